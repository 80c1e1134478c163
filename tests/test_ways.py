"""Every GPU event of a trace with its kind and way, whatever its label."""

from build import NVJET, ROOT, forward, kernel, launch, recordings
from seen import look, recorded

from common.read.linked import link
from common.read.trace import read
from common.read.ways import Ways, events


def test_kinds_and_ways_are_those_of_the_steps():
    """Of recordings in which all stands in forwards."""
    for what in recordings():
        seen = recorded(*what)
        ways = Ways()
        found = {id(one.event): one for one in events(seen.linked, ways)}
        steps = [step for f in seen.forwards for step in (*f.steps, *f.others) if step.on_gpu]
        assert len(found) == len(seen.trace.gpu)
        for step in steps:
            one = found[id(step.on_gpu.event)]
            assert (one.kind, ways.path(one.way)) == (step.kind, step.path)


def test_each_credible_event_stands_there_once():
    for path in sorted((ROOT / "tests" / "data" / "traces").glob("*.json.gz")):
        linked = link(read(path))
        found = [id(one.event) for one in events(linked, Ways())]
        assert len(found) == len(set(found))
        assert set(found) == {id(e) for e in linked.trace.gpu} - linked.timeless


def test_what_has_no_launch_goes_by_its_name(tmp_path):
    seen = look(tmp_path, forward(100, ("mul", "k", 5)), kernel(99, 900, 5), launch(50, 5000))
    [one] = [one for one in events(seen.linked, Ways()) if one.call is None]
    assert (one.kind, one.way, one.op, one.event.name) == ("matmul", -1, -1, NVJET)
