"""What the reader must know before trusting a number."""

from collections.abc import Sequence

from ..cli import named
from ..read.linked import Linked
from ..read.observe import Observation
from ..read.survey import Survey
from ..read.trace import GpuEvent, Trace
from .language import say
from .words import FEW, duration, few, plural, private


def trust(linked: Linked) -> str | None:
    """How far a trace can be trusted that does not hold all it should, in one line."""
    trace, joined = linked.trace, linked.joined
    if trace.gpu and not (trace.ops or trace.annotations or trace.calls):
        return say(
            "no CPU events: the GPU's own times hold; what launched them, and for which label, is "
            "not recorded (profile with CPU activity too)"
        )
    said = []
    launches = joined.launches(trace.calls) - len(joined.captured) if joined.lost else 0
    if launches:
        said.append(
            say(
                "{lost} of {launches} lost their GPU record, so GPU times and counts are lower "
                "bounds",
                lost=f"{len(joined.lost):,}",
                launches=plural(launches, "launch"),
            )
        )
    if joined.leaked and len(joined.leaked) * 20 > len(trace.gpu):
        said.append(
            say(
                "{leaked} of {events} have no launch in the file: recording began in the middle of "
                "work, and they are under no label",
                leaked=f"{len(joined.leaked):,}",
                events=plural(len(trace.gpu), "GPU event"),
            )
        )
    if linked.skew is not None:
        said.append(
            say(
                "the clocks of CPU and GPU disagree, so times hold within each, and no cause of "
                "idle time is known"
            )
        )
    return "; ".join(said) or None


def warnings(seen: Observation) -> list[str]:
    """What the reader must know before trusting a number."""
    trace, said = seen.trace, _of_the_file(seen.trace)
    said += _of_witnesses(seen.linked)
    if not trace.gpu and not any(call.launches for call in trace.calls):
        if trace.story is None or trace.story.device.type != "cpu":
            said.append(
                say(
                    "no GPU events in the trace (CUPTI unavailable or CUDA activity off): "
                    "kernel counts and GPU times are unknown"
                )
            )
    if seen.untimed:
        said.append(
            say(
                "{regions} has no usable time, left out"
                if seen.untimed == 1
                else "{regions} have no usable time, left out",
                regions=plural(seen.untimed, "region"),
            )
        )
    lost = [say("launch {correlation}", correlation=call.correlation) for call in seen.lost]
    without = few(lost) or say("no launch")
    # As `join` has it: moved to the launches that went without only if the numbers agree.
    moved = len(seen.lost) == sum(count - 1 for _, count in seen.shared)
    how = say("joined in order of time" if moved else "all counted with that launch")
    for call, count in seen.shared[:FEW]:
        said.append(
            say(
                "correlation {correlation} belongs to {count} kernels but its launch ({call}) "
                "starts one; {launches} have no kernel; {how}"
                if len(seen.lost) > 1
                else "correlation {correlation} belongs to {count} kernels but its launch ({call}) "
                "starts one; {launches} has no kernel; {how}",
                correlation=call.correlation,
                count=count,
                call=named(call.name),
                launches=without,
                how=how,
            )
        )
    if more := seen.shared[FEW:]:
        ids = plural(len(more), "more correlation id")
        said.append(say("{ids} of several kernels", ids=ids))
    unlinked = sum(e.correlation is None and e.sort == "kernel" for e in seen.leaked)
    if unlinked:
        said.append(
            say(
                "{kernels} has correlation 0 and cannot be linked"
                if unlinked == 1
                else "{kernels} have correlation 0 and cannot be linked",
                kernels=plural(unlinked, "kernel"),
            )
        )
    if before := sum(e.correlation is not None for e in seen.leaked):
        said.append(
            say(
                "{events} without a launch in the file, left out: launched before recording "
                "started, as by a warm-up that was not synchronised",
                events=plural(before, "GPU event"),
            )
        )
    if seen.lost and not seen.shared:
        said.append(_lost(len(seen.lost)))
    if timeless := [event for event in trace.gpu if event.duration is None]:
        word = "kernel" if all(event.sort == "kernel" for event in timeless) else "GPU event"
        said.append(
            say(
                "{events} has ts 0 / dur 0; its time is unknown"
                if len(timeless) == 1
                else "{events} have ts 0 / dur 0; their times are unknown",
                events=plural(len(timeless), word),
            )
        )
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
            say(
                "kernel {number} lasts {time} us but the next kernel on its stream starts {after} "
                "us after its start; its duration (and the CUDA total) is not credible",
                number=numbers[id(event)],
                time=f"{lasts / 1e3:.0f}",
                after=f"{(following - start) / 1e3:.0f}",
            )
        )
    if others := told[FEW:]:
        kernels = plural(len(others), "more kernel")
        said.append(say("{kernels} of no credible duration", kernels=kernels))
    said += _of_processes(seen.undecided, seen.processes)
    if seen.nested:
        said.append(
            say(
                "{regions} inside another one of this label: what is done there is counted in both",
                regions=plural(seen.nested, "region"),
            )
        )
    if seen.overlapping:
        said.append(
            say(
                "{regions} begun inside another one on the same thread and ended behind it: "
                "recordings of several processes under one process id, whose work cannot be told "
                "apart?",
                regions=plural(seen.overlapping, "region"),
            )
        )
    if seen.unfinished:
        said.append(
            say(
                "{regions} has a negative or zero duration (unfinished), left out"
                if seen.unfinished == 1
                else "{regions} have a negative or zero duration (unfinished), left out",
                regions=plural(seen.unfinished, "region"),
            )
        )
    if seen.elsewhere:
        said.append(
            say(
                "{events} was launched by other threads during the region and not counted"
                if seen.elsewhere == 1
                else "{events} were launched by other threads during the region and not counted",
                events=plural(seen.elsewhere, "GPU event"),
            )
        )
    if not seen.alike:
        said.append(say("the forwards differ: steps and times are those of the first"))
    if seen.hides_compiled:
        said.append(
            say(
                "compiled C++ leaves no event on the CPU: what it did is no step here, and in no "
                "time but the forward's (TORCHINDUCTOR_CPP_ENABLE_KERNEL_PROFILE=1 records it)"
            )
        )
    if seen.story and seen.story.compiled and seen.forwards and not seen.compiled:
        said.append(say("recorded as compiled, and no compiled code ran: this is eager"))
    asked, ran = seen.story and seen.story.variant, seen.backend
    if asked == "auto" and ran == "math":
        said.append(say("no fused kernel served this shape; math materialises the score matrix"))
    elif ran and asked in ("math", "flash", "efficient", "cudnn") and asked != ran:
        said.append(say("backend {asked} was asked for, and {ran} ran", asked=asked, ran=ran))
    return said


def survey_warnings(seen: Survey) -> list[str]:
    said, joined = _of_the_file(seen.trace), seen.linked.joined
    said += _of_witnesses(seen.linked)
    if joined.leaked:
        events = plural(len(joined.leaked), "GPU event")
        said.append(say("{events} without a launch in the file", events=events))
    if joined.lost:
        said.append(_lost(len(joined.lost)))
    said += _of_processes(joined.undecided, len(seen.trace.processes))
    if timeless := sum(event.duration is None for event in seen.trace.gpu):
        events = plural(timeless, "GPU event")
        said.append(say("{events} of unknown time, counted and not summed", events=events))
    if incredible := len(seen.linked.incredible):
        said.append(
            say(
                "{events} of no credible duration (longer than until the next on the stream has "
                "ended), counted and not summed",
                events=plural(incredible, "GPU event"),
            )
        )
    return said


def _lost(launches: int) -> str:
    return say(
        "{launches} has no kernel record; GPU records were lost"
        if launches == 1
        else "{launches} have no kernel record; GPU records were lost",
        launches=plural(launches, "launch"),
    )


def _of_witnesses(linked: Linked) -> list[str]:
    """Where thread and time say one thing, and ids or the other clock another."""
    said, placed = [], linked.placed
    if placed.moved:
        said.append(
            say(
                "{launches} is stamped outside the op that its External id names; the id decides"
                if placed.moved == 1
                else "{launches} are stamped outside the op that their External id names; the id "
                "decides",
                launches=plural(placed.moved, "launch"),
            )
        )
    if placed.unknown:
        said.append(
            say(
                "{launches} has an External id of several ops, and its thread and time name none "
                "of them: what they launched is under no label, and sums that may hold it are "
                "unknown"
                if len(placed.unknown) == 1
                else "{launches} have an External id of several ops, and their thread and time "
                "name none of them: what they launched is under no label, and sums that may hold "
                "it are unknown",
                launches=plural(len(placed.unknown), "launch"),
            )
        )
    if linked.skew is not None:
        said.append(
            say(
                "the clocks of CPU and GPU disagree: kernels start {time} before their launches; "
                "no cause of idle time is read from comparing them",
                time=duration(linked.skew),
            )
        )
    return said


def _of_processes(undecided: Sequence[GpuEvent], processes: int) -> list[str]:
    said = []
    if processes > 1:
        said.append(
            say("{count} processes in one file; what all of them did is counted", count=processes)
        )
    if undecided:
        said.append(
            say(
                "{events} of a correlation id that several calls carry, as those of several "
                "processes do; which of them made it is unknown, left out",
                events=plural(len(undecided), "GPU event"),
            )
        )
    return said


def _of_the_file(trace: Trace) -> list[str]:
    said = []
    if trace.left_out:
        said.append(
            say(
                "damaged file: {bytes} bytes ({events} or part of one) left out; what is missing "
                "is in no number",
                bytes=f"{trace.left_out:,}",
                events=plural(trace.left_out_events, "event"),
            )
        )
        if trace.gpu and not trace.devices:
            said.append(say("the GPU's properties are not in what is left of the file"))
    if untimed := sum(one.sort == "call" for one in trace.untimed):
        calls = plural(untimed, "launch or other call")
        said.append(say("{calls} without a usable time, left out", calls=calls))
    if trace.odd_events:
        said.append(
            say(
                "{events} not as the profiler writes them: read without the field that is odd, or "
                "left out",
                events=plural(trace.odd_events, "event"),
            )
        )
    if lost := trace.unread_work + trace.unpaired:
        said.append(
            say(
                "{events} of a phase that is not read (neither whole nor a pair of begin and end), "
                "left out",
                events=plural(lost, "event"),
            )
        )
    if trace.unread:
        kinds = few([f"{name} ({count:,})" for name, count in trace.unread])
        said.append(
            say("categories that look like an accelerator's and are not read: {kinds}", kinds=kinds)
        )
    if trace.non_finite:
        said.append(
            say(
                "{numbers} (NaN or Infinity) treated as missing",
                numbers=plural(trace.non_finite, "non-finite number"),
            )
        )
    if trace.private:
        found = private(trace.private)
        said.append(say("before you share it: the file holds {found}", found=found))
    return said


def _positions(seen: Observation) -> dict[int, int]:
    """Where in its forward each GPU event stands, by the event's `id`, counted from 1."""
    return {
        id(step.gpu): number
        for forward in seen.forwards
        for number, step in enumerate(forward.steps, 1)
    }
