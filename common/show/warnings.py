"""What the reader must know before trusting a number."""

from collections.abc import Sequence

from ..cli import named
from ..read.linked import Linked
from ..read.observe import Observation
from ..read.survey import Survey
from ..read.trace import GpuEvent, Trace
from .words import FEW, duration, few, plural, private


def trust(linked: Linked) -> str | None:
    """How far a trace can be trusted that does not hold all it should, in one line."""
    trace, joined = linked.trace, linked.joined
    if trace.gpu and not (trace.ops or trace.annotations or trace.calls):
        return (
            "no CPU events: the GPU's own times hold; what launched them, and for which label, is "
            "not recorded (profile with CPU activity too)"
        )
    said = []
    launches = joined.launches(trace.calls) - len(joined.captured) if joined.lost else 0
    if launches:
        said.append(
            f"{len(joined.lost):,} of {plural(launches, 'launch')} lost their GPU record, so GPU "
            "times and counts are lower bounds"
        )
    if joined.leaked and len(joined.leaked) * 20 > len(trace.gpu):
        said.append(
            f"{len(joined.leaked):,} of {plural(len(trace.gpu), 'GPU event')} have no launch in "
            "the file: recording began in the middle of work, and they are under no label"
        )
    if linked.skew is not None:
        said.append(
            "the clocks of CPU and GPU disagree, so times hold within each, and no cause of idle "
            "time is known"
        )
    return "; ".join(said) or None


def warnings(seen: Observation) -> list[str]:
    """What the reader must know before trusting a number."""
    trace, said = seen.trace, _of_the_file(seen.trace)
    said += _of_witnesses(seen.linked)
    if not trace.gpu and not any(call.launches for call in trace.calls):
        if trace.story is None or trace.story.device.type != "cpu":
            said.append(
                "no GPU events in the trace (CUPTI unavailable or CUDA activity off): "
                "kernel counts and GPU times are unknown"
            )
    if seen.untimed:
        verb = "has" if seen.untimed == 1 else "have"
        said.append(f"{plural(seen.untimed, 'region')} {verb} no usable time, left out")
    without = few([f"launch {call.correlation}" for call in seen.lost]) or "no launch"
    # As `join` has it: moved to the launches that went without only if the numbers agree.
    moved = len(seen.lost) == sum(count - 1 for _, count in seen.shared)
    how = "joined in order of time" if moved else "all counted with that launch"
    for call, count in seen.shared[:FEW]:
        said.append(
            f"correlation {call.correlation} belongs to {count} kernels but its launch "
            f"({named(call.name)}) starts one; {without} "
            f"{'have' if len(seen.lost) > 1 else 'has'} no kernel; {how}"
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
            "region and not counted"
        )
    if not seen.alike:
        said.append("the forwards differ: steps and times are those of the first")
    if seen.hides_compiled:
        said.append(
            "compiled C++ leaves no event on the CPU: what it did is no step here, and in no time "
            "but the forward's (TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE=1 records it)"
        )
    if seen.story and seen.story.compiled and seen.forwards and not seen.compiled:
        said.append("recorded as compiled, and no compiled code ran: this is eager")
    asked, ran = seen.story and seen.story.variant, seen.backend
    if asked == "auto" and ran == "math":
        said.append("no fused kernel served this shape; math materialises the score matrix")
    elif ran and asked in ("math", "flash", "efficient", "cudnn") and asked != ran:
        said.append(f"backend {asked} was asked for, and {ran} ran")
    return said


def survey_warnings(seen: Survey) -> list[str]:
    said, joined = _of_the_file(seen.trace), seen.linked.joined
    said += _of_witnesses(seen.linked)
    if joined.leaked:
        said.append(f"{plural(len(joined.leaked), 'GPU event')} without a launch in the file")
    if joined.lost:
        verb = "have" if len(joined.lost) > 1 else "has"
        said.append(
            f"{plural(len(joined.lost), 'launch')} {verb} no kernel record; GPU records were lost"
        )
    said += _of_processes(joined.undecided, len(seen.trace.processes))
    if timeless := sum(event.duration is None for event in seen.trace.gpu):
        said.append(f"{plural(timeless, 'GPU event')} of unknown time, counted and not summed")
    if incredible := len(seen.linked.incredible):
        said.append(
            f"{plural(incredible, 'GPU event')} of no credible duration (longer than until the "
            "next on the stream has ended), counted and not summed"
        )
    return said


def _of_witnesses(linked: Linked) -> list[str]:
    """Where thread and time say one thing, and ids or the other clock another."""
    said, placed = [], linked.placed
    if placed.moved:
        verb, their = ("is", "its") if placed.moved == 1 else ("are", "their")
        said.append(
            f"{plural(placed.moved, 'launch')} {verb} stamped outside the op that {their} External "
            "id names; the id decides"
        )
    if placed.unknown:
        count = len(placed.unknown)
        verb, their = ("has", "its") if count == 1 else ("have", "their")
        said.append(
            f"{plural(count, 'launch')} {verb} an External id of several ops, and {their} thread "
            "and time name none of them: what they launched is under no label, and sums that may "
            "hold it are unknown"
        )
    if linked.skew is not None:
        said.append(
            f"the clocks of CPU and GPU disagree: kernels start {duration(linked.skew)} before "
            "their launches; no cause of idle time is read from comparing them"
        )
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
    if untimed := sum(one.sort == "call" for one in trace.untimed):
        said.append(f"{plural(untimed, 'launch or other call')} without a usable time, left out")
    if trace.odd_events:
        said.append(
            f"{plural(trace.odd_events, 'event')} not as the profiler writes them: read without "
            "the field that is odd, or left out"
        )
    if lost := trace.unread_work + trace.unpaired:
        said.append(
            f"{plural(lost, 'event')} of a phase that is not read (neither whole nor a pair of "
            "begin and end), left out"
        )
    if trace.unread:
        kinds = few([f"{name} ({count:,})" for name, count in trace.unread])
        said.append(f"categories that look like an accelerator's and are not read: {kinds}")
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
