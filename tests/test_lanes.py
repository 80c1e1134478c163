"""What encloses what on a thread, against a search that looks at every range."""

from hypothesis import given, settings
from hypothesis import strategies as st

from common.read.lanes import Lanes, Spans, by_thread
from common.read.trace import Call, Span

HERE = (1, 1)


def span(start, end, name="op", thread=HERE) -> Span:
    return Span(name, start, end, thread)


def lane(*spans) -> Spans:
    """Of ranges in any order."""
    return Lanes(spans, ()).ops[HERE]


@st.composite
def nested(draw, low=0, high=40, depth=4) -> list[Span]:
    """Ranges that end before what encloses them does, in whole microseconds: with many ties."""
    found = []
    for _ in range(draw(st.integers(0, 3))):
        start = draw(st.integers(low, high))
        end = draw(st.integers(start, high))
        found.append(span(start, end if end > start else None))
        if depth and end > start:
            found += draw(nested(start, end, depth - 1))
        low = end
    return found


ANY = st.lists(
    st.tuples(st.integers(0, 40), st.none() | st.integers(1, 40)).map(
        lambda one: span(one[0], None if one[1] is None else one[0] + one[1])
    ),
    max_size=12,
)
SHUFFLED = nested().flatmap(st.permutations)


def open_at(spans, moment) -> list[Span]:
    return [one for one in spans if one.end is not None and one.start <= moment < one.end]


def test_of_equal_starts_the_longer_one_is_the_parent():
    """Whichever of them the file has first."""
    inner, outer, middle = span(10, 20), span(10, 40), span(10, 30)
    for order in ((inner, outer, middle), (outer, middle, inner), (middle, inner, outer)):
        spans = lane(*order)
        assert list(spans) == [outer, middle, inner]
        assert list(spans.parents) == [-1, 0, 1]


def test_what_starts_as_another_one_ends_is_not_in_it():
    spans = lane(span(0, 10), span(10, 20), span(10, 15))
    assert list(spans.parents) == [-1, -1, 1]
    assert [spans.at(moment) for moment in (0, 9, 10, 15, 20)] == [0, 0, 2, 1, -1]
    assert spans.within(0, 10) == (0, 1) and spans.within(10, 20) == (1, 3)


def test_a_range_without_an_end_encloses_nothing():
    spans = lane(span(0, 50), span(5, None), span(6, 9))
    assert list(spans.parents) == [-1, 0, 0]
    assert spans.at(5) == 0


@settings(deadline=None, max_examples=60)
@given(SHUFFLED | ANY, st.integers(-1, 85))
def test_the_innermost_is_the_one_that_began_last(spans, moment):
    """Of those that are open; of equal starts the shorter. Also of ranges that overlap."""
    if not spans:
        return
    found = lane(*spans)
    innermost = min(open_at(spans, moment), key=lambda one: (-one.start, one.end), default=None)
    index = found.at(moment)
    assert (index < 0) == (innermost is None)
    if innermost:
        assert (found[index].start, found[index].end) == (innermost.start, innermost.end)


@settings(deadline=None, max_examples=60)
@given(SHUFFLED)
def test_the_parent_is_what_is_open_when_a_range_begins(spans):
    if not spans:
        return
    found = lane(*spans)
    for index, parent in enumerate(found.parents):
        around = [i for i in range(index) if found[i] in open_at(spans, found[index].start)]
        assert (parent >= 0) == bool(around)
        if around:
            assert found[parent].end == min(found[i].end for i in around)


@settings(deadline=None, max_examples=60)
@given(SHUFFLED | ANY, st.lists(st.integers(-1, 85), max_size=20))
def test_moments_in_order_are_answered_as_one_by_one(spans, moments):
    """Also of ranges that overlap, as of recordings that were put together."""
    if not spans:
        return
    found = lane(*spans)
    moments.sort()
    assert list(found.at_each(moments)) == [found.at(moment) for moment in moments]


class Counting(list):
    """Counts how often a range is looked at."""

    looks = 0

    def __getitem__(self, index):
        self.looks += 1
        return super().__getitem__(index)


def test_a_deep_nest_costs_no_more_for_many_moments():
    """Each range is left once, however deep it lies and however many moments come after it."""

    def looks(depth):
        spans = lane(*(span(n, 10 * depth - n) for n in range(depth)))
        assert spans.parents[-1] == depth - 2
        spans.spans = Counting(spans.spans)
        moments = range(9 * depth, 10 * depth)  # nearly all have ended at the end
        assert list(spans.at_each(moments))[-1] == 0
        return spans.spans.looks

    assert looks(2000) < 2.2 * looks(1000) < 2.2 * 4 * 1000


def test_equal_starts_are_sorted_once():
    """A trace in whole microseconds has thousands of them."""
    spans = [span(n // 1000, n // 1000 + 1 + n % 1000) for n in range(3000)]
    found = lane(*spans)
    assert [one.end - one.start for one in found[:3]] == [1000, 999, 998]
    assert found.starts == sorted(found.starts)


def test_calls_of_a_thread_in_order_of_time():
    other = (1, 2)
    calls = [Call("b", 20, 5, HERE, 2), Call("a", 10, 5, HERE, 1), Call("c", 15, 5, other, 3)]
    found = Lanes((), calls)
    assert [call.name for call in found.calls[HERE]] == ["a", "b"]
    assert [call.name for call in found.calls_within(HERE, 10, 20)] == ["a"]
    assert found.calls_within((9, 9), 0, 100) == []
    assert {thread: len(ones) for thread, ones in by_thread(calls).items()} == {HERE: 2, other: 1}


def test_lanes_are_by_thread():
    assert Lanes([span(0, 9), span(1, 5, thread=(2, 1))], ()).ops.keys() == {HERE, (2, 1)}
