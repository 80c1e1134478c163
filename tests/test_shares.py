"""What a GPU's time went to, each nanosecond once."""

from build import ROOT, forward, kernel, launch, op, recordings, region
from hypothesis import given, settings
from hypothesis import strategies as st
from seen import look, recorded
from test_usage import event

from common.compare.advice import top_of_region, top_of_trace
from common.read.linked import link
from common.read.shares import shares
from common.read.survey import survey
from common.read.trace import read

SPANS = st.lists(
    st.tuples(
        st.integers(0, 40), st.integers(0, 15), st.sampled_from(["mul", "matmul", "communication"]),
        st.integers(0, 1),
    ),
    min_size=1, max_size=12,
)  # fmt: skip


@settings(deadline=None, max_examples=300)
@given(SPANS)
def test_each_moment_counts_once(spans):
    """Against a clock that looks at every nanosecond."""
    found = shares([[(event(s, d, device=gpu), kind) for s, d, kind, gpu in spans]])
    whole = idle = communication = 0
    for gpu in {gpu for *_, gpu in spans}:
        its = [span for span in spans if span[3] == gpu]
        low, high = min(s for s, *_ in its), max(s + d for s, d, *_ in its)
        whole += high - low
        for moment in range(low, high):
            running = {kind for s, d, kind, _ in its if s <= moment < s + d}
            idle += not running
            communication += running == {"communication"}
    assert (found.whole, found.idle) == (whole, idle)
    assert found.kinds.get("communication", 0) == communication
    assert sum(found.kinds.values()) + found.idle == found.whole
    assert list(found.kinds.values()) == sorted(found.kinds.values(), reverse=True)


def test_what_lies_between_forwards_is_nobody_s():
    parts = [[(event(0, 10), "mul")], [(event(1000, 30), "add")]]
    found = shares(parts)
    assert (found.whole, found.idle, found.kinds) == (40, 0, {"add": 30, "mul": 10})
    assert found.of(10) == 0.25 and shares([]).of(10) == 0


def test_of_a_region_they_are_those_of_its_usage():
    for what in recordings():
        seen = recorded(*what)
        found = top_of_region(seen).shares
        assert (found.whole, found.idle) == (seen.usage.span, seen.usage.idle)


def test_of_a_trace_too():
    linked = link(read(ROOT / "tests" / "data" / "traces" / "train_one_step.json.gz"))
    usage = survey(linked).usage
    found = top_of_trace(linked, usage).shares
    assert (found.whole, found.idle) == (usage.span, usage.idle)


def test_the_kind_is_that_of_the_steps(tmp_path):
    events = [region(0, 100), op("aten::silu", 5, 30), launch(1, 10), kernel(1, 500, 7, "k")]
    events += forward(2000, ("masked_fill clone copy_", "copy", 3), label="other")
    linked = look(tmp_path, events, region="fwd").linked
    kinds = top_of_trace(linked, survey(linked).usage).shares.kinds
    assert kinds == {"activation": 7000, "copy": 3000}
