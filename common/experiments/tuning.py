"""tuning: what a trace shows of an autotuned kernel that was not warmed up. The first recorded
forward has forgotten which tiles are fastest."""

from collections.abc import Sequence
from dataclasses import replace
from statistics import mean

from ..cli import UserError
from ..read.known import total
from ..show.words import duration
from . import Asked, Recipe, Recorded, Result, us

BEFORE = 4  # forwards: the check of the result, the memory's, the wait and the warm-up
MS = 4  # of runs that the tuner gives each configuration; Triton's own default is 100


def read(seen: Sequence[Recorded]) -> Result:
    """What each forward ran: the kernel in how many forms, and what else."""
    one, *more = seen
    if more:
        raise UserError(
            f"tuning reads one recording, and there are {len(seen)}: {one.file} and "
            f"{more[0].file}; give one of them with --replay"
        )
    one.require_gpu()
    lines, found = [], []
    for number, forward in enumerate(one.seen.forwards, 1):
        kernels = [step for step in forward.steps if step.kind == "attention"]
        others = [step for step in forward.steps if step.kind != "attention"]
        launched = [step.gpu for step in kernels if step.gpu]
        forms = {(event.grid, event.block, event.shared_memory) for event in launched}
        kinds = ", ".join(dict.fromkeys(step.kind for step in others))
        gpu = total(step.ns for step in forward.steps)
        lines.append(
            [
                f"forward {number}",
                f"{len(kernels)}",
                f"{len(forms)}",
                f"{len(others)} {kinds}".rstrip(),
                duration(gpu),
                duration(forward.cpu_ns),
            ]
        )
        found.append(
            {
                "file": one.file,
                "forward": number,
                "attention_kernels": len(kernels),
                "forms_of_the_kernel": len(forms),
                "other_gpu_events": len(others),
                "gpu_us": us(gpu),
                "cpu_us": us(forward.cpu_ns),
            }
        )
    heads = ("", "attention\nkernels", "forms\nof it", "others", "GPU", "CPU")
    return Result(heads, lines, found, _of_tuning(one, found))


def _of_tuning(one: Recorded, found: Sequence[dict]) -> list[str]:
    first, *later = found
    alike = {(f["attention_kernels"], f["other_gpu_events"]) for f in later}
    if not later or alike != {(1, 0)} or first["attention_kernels"] <= 1:
        return ["No forward that tunes stands before forwards that do not: nothing to tell apart."]
    steps = [step for forward in one.seen.forwards[1:] for step in forward.steps]
    grids = {step.gpu.grid for step in steps if step.gpu}
    kept = " or ".join("×".join(map(str, grid)) if grid else "unknown" for grid in grids)
    said = [
        f"Tuning shows as {first['attention_kernels']} runs of one kernel in "
        f"{first['forms_of_the_kernel']} forms (grid, block, shared memory), and "
        f"{first['other_gpu_events']} events between them that are not attention; the form kept "
        f"has grid {kept}."
    ]
    if how := one.story.configuration:
        said.append(f"Here it was {how}; Triton's own default is 100 ms.")
    if first["gpu_us"] and None not in [f["gpu_us"] for f in later]:
        usual = mean(f["gpu_us"] for f in later)
        said.append(
            f"An average over these {len(found)} forwards would say "
            f"{duration(mean(f['gpu_us'] for f in found) * 1e3)} of GPU time a forward; "
            f"without the first it is {duration(usual * 1e3)}."
        )
    return said


def recipes(asked: Asked) -> list[Recipe]:
    import triton
    from triton.testing import do_bench

    from .. import scripts

    script = scripts.load("04_d_kernels_attention")

    def bench(kernel, quantiles):
        return do_bench(kernel, warmup=1, rep=MS, quantiles=quantiles)

    tune = triton.autotune(script.TILES, key=script.KEY, do_bench=bench)
    tuner = tune(script.flash_attention_triton)
    calls = 0

    def forgetful(q, k, v):
        nonlocal calls
        calls += 1
        if calls == BEFORE + 1:
            tuner.cache.clear()
        return script.triton_attention(q, k, v, tuner=tuner)

    def configuration(work) -> str:
        return f"tuned in the first recorded forward, {MS} ms a configuration"

    subject = script.lesson(script.Options()).subject
    return [Recipe("triton", asked.work, forgetful, replace(subject, configuration=configuration))]
