"""Where in somebody's code a moment of a thread lies: function, module, label.

Backward runs on threads of its own, where no function and no module of theirs is open. Its ops lead
to their forward ops, and these to the code; where they do not, the thread that waits for them
stands at the call that began it.
"""

from bisect import bisect_right
from typing import NamedTuple

from .frames import MODULE, is_module
from .lanes import Spans, by_thread
from .linked import Linked
from .trace import Span, Thread


class Place(NamedTuple):
    """None: nothing of the kind is open there, or it was not recorded."""

    frame: str | None  # the innermost function that is no library's
    module: str | None  # the innermost
    label: str | None  # the innermost
    backward: bool  # whether it is the backward of what stands there


class Places:
    def __init__(self, linked: Linked) -> None:
        trace = linked.trace
        self._services = linked.services
        modules = [span for span in trace.frames if is_module(span.name)]
        frames = [span for span in trace.frames if not is_module(span.name)]
        labels = [span for span in trace.annotations if not span.is_profiler_step]
        self._frames, self.modules, self._labels = map(_lanes, (frames, modules, labels))
        self._roots = {
            thread: [root.start for root in roots]
            for thread, roots in linked.services.roots.items()
        }

    def forward_of(self, thread: Thread, moment: int) -> tuple[Thread, int] | None:
        """Thread and moment of the forward op of which the backward runs there."""
        root = self._root(thread, moment)
        forward = self._services.links.forward_of(root) if root else None
        return (forward.thread, forward.start) if forward else None

    def at(self, thread: Thread, moment: int) -> Place:
        """The label is that around the launch, and for backward that of the thread which waits."""
        root = self._root(thread, moment)
        waiting = self._services.waiting(thread, moment) if root else None
        label = _name(self._labels, thread, moment)
        if label is None and waiting:
            label = _name(self._labels, waiting, moment)
        # Recomputing a checkpoint calls modules on the backward's own thread.
        frame, module = (_name(of, thread, moment) for of in (self._frames, self.modules))
        if root and module is None:
            if forward := self.forward_of(thread, moment):
                module = _name(self.modules, *forward)
                frame = frame or _name(self._frames, *forward)
            elif waiting:
                frame = frame or _name(self._frames, waiting, moment)
        return Place(frame, module and module.removeprefix(MODULE), label, bool(root))

    def _root(self, thread: Thread, moment: int) -> Span | None:
        """The outermost backward op that runs there."""
        if (starts := self._roots.get(thread)) is None:
            return None
        at = bisect_right(starts, moment) - 1
        root = self._services.roots[thread][at] if at >= 0 else None
        return root if root and moment < (root.end or 0) else None


def _lanes(spans: list[Span]) -> dict[Thread, Spans]:
    return {thread: Spans(found) for thread, found in by_thread(spans).items()}


def _name(lanes: dict[Thread, Spans], thread: Thread, moment: int) -> str | None:
    if (spans := lanes.get(thread)) is None:
        return None
    index = spans.at(moment)
    return spans[index].name if index >= 0 else None
