"""plan: does cuDNN look for its kernel anew in every call? The same call made twice, with shapes
and strides that the process has not met; flash, which has nothing to look for, as the control."""

from collections.abc import Sequence

from ..cli import UserError
from ..read.known import total
from ..show.words import duration
from . import Asked, Recipe, Recorded, Result, sdpa, sdpa_subject, us

BACKENDS = ("cudnn", "flash")
BEFORE = 4  # forwards: the check of the result, the memory's, the wait and the warm-up
KNOWN, AGAIN = "met before", "again"
CALLS = (
    f"as given, {KNOWN}", "shorter rows", f"shorter rows, {AGAIN}", "fewer sequences",
    f"fewer sequences, {AGAIN}", "other strides", f"other strides, {AGAIN}", f"as given, {KNOWN}",
)  # fmt: skip
SEARCHES = 10  # times as long as the second call


def read(seen: Sequence[Recorded]) -> Result:
    lines, found, said = [], [], []
    for one in sorted(
        seen, key=lambda s: BACKENDS.index(s.variant) if s.variant in BACKENDS else 9
    ):
        forwards, calls = one.seen.forwards, one.story.calls
        if not calls or len(calls) != len(forwards):
            raise UserError(f"{one.file}: it does not tell what each of its forwards was")
        for call, forward in zip(calls, forwards, strict=True):
            gpu = total(step.ns for step in forward.steps) if one.seen.on_gpu else None
            lines.append([one.variant, call, duration(forward.cpu_ns), duration(gpu)])
            found.append(
                {
                    "file": one.file,
                    "backend": one.variant,
                    "call": call,
                    "cpu_us": us(forward.cpu_ns),
                    "gpu_us": us(gpu),
                }
            )
        pairs = [
            (calls[n], forwards[n].cpu_ns, forwards[n + 1].cpu_ns)
            for n in range(len(calls) - 1)
            if calls[n + 1] == f"{calls[n]}, {AGAIN}"
        ]
        said.append(_of(one.variant, pairs))
    heads = ("backend", "call", "CPU", "GPU")
    return Result(heads, lines, found, said)


def _of(backend: str, pairs: Sequence[tuple[str, int, int]]) -> str:
    """From what the first and the second call took, ns, of each new kind of call."""
    long = [(call, first, second) for call, first, second in pairs if first > SEARCHES * second]
    if not pairs:
        return f"{backend}: no call is there twice, nothing to tell."
    if not long:
        most = max(first / second for _, first, second in pairs)
        return (
            f"{backend}: a first call takes at most {most:.1f} times as long as the second: "
            "nothing is looked for."
        )
    firsts = [first for _, first, _ in long]
    seconds = [second for *_, second in long]
    return (
        f"{backend}: the first call with {' or '.join(call for call, *_ in long)} takes "
        f"{duration(min(firsts))} to {duration(max(firsts))} on the CPU, the second "
        f"{duration(min(seconds))} to {duration(max(seconds))}: the kernel is looked for once, and "
        "kept by shape and strides."
    )


def recipes(asked: Asked) -> list[Recipe]:
    work = asked.work

    def calls():
        """An attention whose recorded calls are CALLS, whatever it is given."""
        made: list[tuple] = []
        count = 0

        def forward(q, k, v):
            nonlocal count
            if not made:
                given = q, k, v
                shorter = tuple(x[:, :, : work.seq // 2].contiguous() for x in given)
                fewer = tuple(x[: max(1, work.batch - 1), 1:].contiguous() for x in given)
                other = tuple(x.transpose(1, 2).contiguous().transpose(1, 2) for x in given)
                made.extend((given, shorter, shorter, fewer, fewer, other, other, given))
            count += 1
            number = count - BEFORE - 1
            return sdpa(*(made[number] if 0 < number < len(made) else (q, k, v)))

        return forward

    return [
        Recipe(
            backend, work, calls(), sdpa_subject(backend), backend, len(CALLS), "every step", CALLS
        )
        for backend in BACKENDS
    ]
