"""What the reader must know before trusting a number."""

from collections.abc import Sequence

from ..read.observe import Observation
from ..read.survey import Survey
from ..read.trace import GpuEvent, Trace
from .words import FEW, few, plural, private


def warnings(seen: Observation) -> list[str]:
    """What the reader must know before trusting a number."""
    trace, said = seen.trace, _of_the_file(seen.trace)
    if not trace.gpu and not any(call.launches for call in trace.calls):
        if trace.story is None or trace.story.device.type != "cpu":
            said.append(
                "no GPU events in the trace (CUPTI unavailable or CUDA activity off): "
                "kernel counts and GPU times are unknown"
            )
    without = few([f"launch {call.correlation}" for call in seen.lost]) or "no launch"
    # As `join` has it: moved to the launches that went without only if the numbers agree.
    moved = len(seen.lost) == sum(count - 1 for _, count in seen.shared)
    how = "joined in order of time" if moved else "all counted with that launch"
    for call, count in seen.shared[:FEW]:
        said.append(
            f"correlation {call.correlation} belongs to {count} kernels but its launch "
            f"({call.name}) starts one; {without} {'have' if len(seen.lost) > 1 else 'has'} no "
            f"kernel; {how}"
        )
    if more := seen.shared[FEW:]:
        said.append(f"{plural(len(more), 'more correlation id')} of several kernels")
    unlinked = sum(e.correlation is None and e.sort == "kernel" for e in seen.leaked)
    if unlinked:
        verb = "has" if unlinked == 1 else "have"
        said.append(f"{plural(unlinked, 'kernel')} {verb} correlation 0 and cannot be linked")
    if before := sum(e.correlation is not None for e in seen.leaked):
        said.append(
            f"{plural(before, 'GPU event')} without a launch in the file, left out: "
            "launched before recording started, as by a warm-up that was not synchronised"
        )
    if seen.lost and not seen.shared:
        verb = "have" if len(seen.lost) > 1 else "has"
        said.append(
            f"{plural(len(seen.lost), 'launch')} {verb} no kernel record; GPU records were lost"
        )
    if timeless := [event for event in trace.gpu if event.duration is None]:
        word = "kernel" if all(event.sort == "kernel" for event in timeless) else "GPU event"
        verb, whose = ("has", "its time is") if len(timeless) == 1 else ("have", "their times are")
        said.append(f"{plural(len(timeless), word)} {verb} ts 0 / dur 0; {whose} unknown")
    # Of another region: no number here rests on it.
    numbers = _positions(seen) if seen.incredible else {}
    told = [event for event in seen.incredible if id(event) in numbers]
    for event in told[:FEW]:
        start, lasts = event.start, event.duration
        assert start is not None and lasts is not None  # of an incredible event they are known
        following = min(
            e.start
            for e in trace.gpu
            if e.lane == event.lane and e.start is not None and e.start > start
        )
        said.append(
            f"kernel {numbers[id(event)]} lasts {lasts / 1e3:.0f} us but the "
            f"next kernel on its stream starts {(following - start) / 1e3:.0f} us "
            "after its start; its duration (and the CUDA total) is not credible"
        )
    if others := told[FEW:]:
        said.append(f"{plural(len(others), 'more kernel')} of no credible duration")
    said += _of_processes(seen.undecided, seen.processes)
    if seen.nested:
        said.append(
            f"{plural(seen.nested, 'region')} inside another one of this label: what is done there "
            "is counted in both"
        )
    if seen.overlapping:
        said.append(
            f"{plural(seen.overlapping, 'region')} begun inside another one on the same thread and "
            "ended behind it: recordings of several processes under one process id, whose work "
            "cannot be told apart?"
        )
    if seen.unfinished:
        verb = "region has" if seen.unfinished == 1 else "regions have"
        said.append(f"{seen.unfinished} {verb} a negative or zero duration (unfinished), left out")
    if seen.elsewhere:
        verb = "was" if seen.elsewhere == 1 else "were"
        said.append(
            f"{plural(seen.elsewhere, 'GPU event')} {verb} launched by other threads during the "
            "region (as backward is, by the autograd thread) and not counted"
        )
    if not seen.alike:
        said.append("the forwards differ: steps and times are those of the first")
    asked, ran = seen.story and seen.story.variant, seen.backend
    if asked == "auto" and ran == "math":
        said.append("no fused kernel served this shape; math materialises the score matrix")
    elif ran and asked in ("math", "flash", "efficient", "cudnn") and asked != ran:
        said.append(f"backend {asked} was asked for, and {ran} ran")
    return said


def survey_warnings(seen: Survey) -> list[str]:
    said = _of_the_file(seen.trace)
    if seen.leaked:
        said.append(f"{plural(len(seen.leaked), 'GPU event')} without a launch in the file")
    if seen.lost:
        verb = "have" if len(seen.lost) > 1 else "has"
        said.append(
            f"{plural(len(seen.lost), 'launch')} {verb} no kernel record; GPU records were lost"
        )
    said += _of_processes(seen.undecided, len(seen.trace.processes))
    if timeless := sum(event.duration is None for event in seen.trace.gpu):
        said.append(f"{plural(timeless, 'GPU event')} of unknown time, counted and not summed")
    return said


def _of_processes(undecided: Sequence[GpuEvent], processes: int) -> list[str]:
    said = []
    if processes > 1:
        said.append(f"{processes} processes in one file; what all of them did is counted")
    if undecided:
        said.append(
            f"{plural(len(undecided), 'GPU event')} of a correlation id that several calls carry, "
            "as those of several processes do; which of them made it is unknown, left out"
        )
    return said


def _of_the_file(trace: Trace) -> list[str]:
    said = []
    if trace.left_out:
        said.append(
            f"damaged file: {trace.left_out:,} bytes "
            f"({plural(trace.left_out_events, 'event')} or part of one) left out; what is missing "
            "is in no number"
        )
        if trace.gpu and not trace.devices:
            said.append("the GPU's properties are not in what is left of the file")
    if trace.non_finite:
        said.append(
            f"{plural(trace.non_finite, 'non-finite number')} (NaN or Infinity) treated as missing"
        )
    if trace.private:
        said.append(f"before you share it: the file holds {private(trace.private)}")
    return said


def _positions(seen: Observation) -> dict[int, int]:
    """Where in its forward each GPU event stands, by the event's `id`, counted from 1."""
    return {
        id(step.gpu): number
        for forward in seen.forwards
        for number, step in enumerate(forward.steps, 1)
    }
