"""Loops of sequences: nothing is lost, known repetition is found, and time stays in proportion."""

import random
import time

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from common.read import fold as module
from common.read.fold import Deviation, Loop, Place, fold, places

LAYER = "norm qkv attn proj add norm2 up act down add2".split()


def unfolded(parts, sequence) -> list:
    """The sequence as the parts say it: each loop's turns one behind the other."""
    found = []
    cursors: dict[int, int] = {}

    def walk(some, turn):
        for part in some:
            if isinstance(part, Place):
                found.append(sequence[part.at[take(part)]])
                continue
            count = part.counts
            # Of a loop inside another one the next count; of one outside, all of its stretches.
            deviations = {one.after: one for one in part.deviations}
            turns = sum(count) if part.deviations or turn is None else count[take(part)]
            for number in range(turns):
                if number in deviations:
                    walk(deviations[number].parts, None)
                walk(part.body, number)

    def take(part):
        cursors[id(part)] = cursors.get(id(part), -1) + 1
        return cursors[id(part)]

    walk(parts, None)
    return found


def check(sequence) -> tuple:
    parts = fold(sequence)
    assert sorted(places(parts)) == list(range(len(sequence)))
    assert unfolded(parts, sequence) == list(sequence)
    assert fold(sequence) == parts
    return parts


def shape(parts):
    """Loops as (turns, body), places as how often."""
    return [
        len(part.at) if isinstance(part, Place) else (part.counts, shape(part.body))
        for part in parts
    ]


@settings(deadline=None, max_examples=300)
@given(st.lists(st.sampled_from("abc"), max_size=60))
def test_nothing_is_lost_whatever_comes(sequence):
    check(sequence)


@settings(deadline=None, max_examples=100)
@given(
    st.lists(st.sampled_from("abcdefgh"), min_size=1, max_size=9, unique=True),
    st.integers(2, 9),
    st.integers(2, 5),
)
def test_a_loop_of_loops_is_found(body, inner, outer):
    """[first, body × inner, last] × outer, of elements that are all different."""
    sequence = (["first"] + body * inner + ["last"]) * outer
    [loop] = check(sequence)
    assert loop.counts == (outer,) and len(loop.body) == 3
    [nested] = [part for part in loop.body if isinstance(part, Loop)]
    assert nested.counts == (inner,) * outer and len(nested.body) == len(body)
    assert [len(place.at) for place in nested.body] == [inner * outer] * len(body)


def test_layers_between_what_is_before_and_behind():
    parts = check(["embedding", *LAYER * 6, "last norm", "head"])
    assert shape(parts) == [1, ((6,), [6] * 10), 1, 1]


def test_decode_steps_of_layers_the_first_one_apart():
    """Prefill has no cache to put together: its layers are another loop."""
    prefill, decode = LAYER, [*LAYER[:2], "cat", *LAYER[2:]]
    token = ["embedding", *decode * 8, "head", "argmax"]
    parts = check(["embedding", *prefill * 8, "head", "argmax", *token * 15])
    assert shape(parts) == [
        1, ((8,), [8] * 10), 1, 1,
        ((15,), [15, ((8,) * 15, [120] * 11), 15, 15]),
    ]  # fmt: skip


def test_stages_of_different_lengths_are_one_loop():
    block, wide = "a b c d".split(), "a b c e d".split()
    sequence = [*"stem pool".split(), *(x for n in (2, 3, 5) for x in wide + block * n), "fc"]
    check(sequence)
    # Both end in d: whether that begins a turn, the sequence alone does not tell.
    parts = fold(sequence, lambda at: {"a": 2, "d": 0}.get(sequence[at], 1))
    [loop] = [part for part in parts if isinstance(part, Loop)]
    assert loop.counts == (3,)
    [blocks] = [part for part in loop.body if isinstance(part, Loop)]
    assert blocks.counts == (2, 3, 5)


def test_a_turn_that_is_different_is_a_deviation():
    odd = [*LAYER[:4], "extra", *LAYER[4:]]
    parts = check(["first", *LAYER * 5, *odd, *LAYER * 6, "last"])
    [loop] = [part for part in parts if isinstance(part, Loop)]
    assert (loop.counts, loop.turns) == ((5, 6), 11)
    [deviation] = loop.deviations
    assert isinstance(deviation, Deviation) and deviation.after == 5
    assert len(deviation.parts) == len(odd)
    # What has little in common with a turn is none.
    parts = check([*LAYER * 5, *"p q r s t u".split(), *LAYER * 6])
    assert [bool(part.deviations) for part in parts if isinstance(part, Loop)] == [False, False]


def test_where_turns_begin():
    sequence = ["add", *LAYER[:-1], "add"] * 1 + [*LAYER[:-1], "add"] * 4
    at_once = fold(sequence)
    natural = fold(sequence, lambda at: 2 * (sequence[at] == "norm"))
    assert [part.at[0] for part in at_once[0].body][0] == 0
    assert isinstance(natural[0], Place) and natural[1].body[0].at[0] == 1
    # As the whole begins, if that begins every turn.
    tokens = ["token", *"a b".split() * 3, "head"] + ["token", *"a c".split() * 3, "head"] * 3
    [outer] = [p for p in fold(tokens) if isinstance(p, Loop) and len(p.body) == 3]
    assert tokens[outer.body[0].at[0]] == "token"


@pytest.mark.parametrize("kind", ["layers", "random", "different", "equal"])
def test_time_is_in_proportion_to_the_length(kind):
    """Ten times as many take no more than some twenty times as long."""

    def made(count):
        rng = random.Random(1)
        return {
            "layers": (["first", *LAYER * 8, "last"] * count)[:count],
            "random": rng.choices(range(40), k=count),
            "different": list(range(count)),
            "equal": [0] * count,
        }[kind]

    def seconds(count):
        sequence, start = made(count), time.process_time()
        fold(sequence)
        return time.process_time() - start

    small = min(seconds(4_000) for _ in range(3))
    assert seconds(40_000) < 25 * small + 0.5


def test_work_is_bounded_by_the_sequence_and_not_by_a_clock(monkeypatch):
    monkeypatch.setattr(module, "LEAST_WORK", 0)
    monkeypatch.setattr(module, "WORK", 1)
    sequence = random.Random(1).choices("ab", k=3000)
    check(sequence)
