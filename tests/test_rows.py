"""Alignment against a brute force, and steps as a reader sees them."""

import random
from itertools import combinations, product

import pytest
from build import NVJET, SOFTMAX, forward, kernel, launch, op, recordings, region
from seen import look, recorded

from common.cli import UserError
from common.compare import rows as rows_module
from common.compare.rows import (
    Row,
    align,
    differences,
    parse_guess,
    rows,
)
from common.read.kinds import VOCABULARY
from common.read.observe import Step, wrappers


def kinds(seen):
    return [row.kind for row in rows(seen.steps)]


# ── Alignment ─────────────────────────────────────────────────────────────────────────────────────


def agreements(left, right) -> int:
    """The most that can agree in order, by trying every choice."""
    for size in range(min(len(left), len(right)), 0, -1):
        if {tuple(c) for c in combinations(left, size)} & {
            tuple(c) for c in combinations(right, size)
        }:
            return size
    return 0


@pytest.mark.parametrize("seed", range(150))
def test_alignment_keeps_everything_in_order_and_agrees_as_often_as_possible(seed):
    rng = random.Random(seed)
    words = "matmul mul mask copy"[: rng.choice([6, 10, 20])].split()
    guess = rng.choices(words, k=rng.randint(0, 7))
    seen = [Row(kind, ()) for kind in rng.choices(words, k=rng.randint(0, 8))]
    pairs = align(guess, seen)
    assert [pair.guess for pair in pairs if pair.guess] == guess
    assert [id(pair.row) for pair in pairs if pair.row] == list(map(id, seen))
    assert all(pair.guess or pair.row for pair in pairs)
    both = [pair for pair in pairs if pair.guess and pair.row]
    assert all(pair.guess == pair.row.kind for pair in both)
    assert len(both) == agreements(guess, [row.kind for row in seen])


def counted(kind, times):
    """A row of as many neighbours."""
    return Row(kind, tuple(Step(kind, kind, 1, None) for _ in range(times)))


@pytest.mark.parametrize("seed", range(60))
def test_neighbours_counted_together_agree_with_as_many_words(seed):
    rng = random.Random(seed)
    kinds = rng.choices(["cast", "mul", "fill"], k=rng.randint(1, 5))
    seen = [counted(kind, rng.randint(1, 4)) for kind in kinds]
    every = [row.kind for row in seen for _ in row.steps]
    pairs = align(every, seen)
    assert [step for pair in pairs for step in pair.row.steps] == [s for r in seen for s in r.steps]
    assert [pair.guess for pair in pairs for _ in range(pair.words)] == every
    # A word left out somewhere: all others agree, and nothing is lost.
    guess = rng.choices(["cast", "mul", "fill"], k=rng.randint(0, 8))
    pairs = align(guess, seen)
    assert [pair.guess for pair in pairs if pair.guess for _ in range(pair.words)] == guess
    assert sum(len(pair.row.steps) for pair in pairs if pair.row) == len(every)
    agreed = sum(pair.words for pair in pairs if pair.guess and pair.row)
    assert agreed == agreements(guess, every)


def test_one_word_stands_for_neighbours_and_other_numbers_divide_them():
    def shown(guess, *seen):
        return [
            (pair.guess, pair.words if pair.guess else 0, pair.row and len(pair.row.steps))
            for pair in align(guess.split(), seen)
        ]

    three = counted("cast", 3)
    assert shown("cast", three) == [("cast", 1, 3)]
    assert shown("cast cast cast", three) == [("cast", 3, 3)]
    assert shown("cast cast", three) == [("cast", 2, 2), (None, 0, 1)]
    assert shown("cast cast cast cast", three) == [("cast", 3, 3), ("cast", 1, None)]
    assert shown("mul cast", three) == [("mul", 1, None), ("cast", 1, 3)]
    # What compiled C++ does between two matmuls leaves no row: both of them were guessed.
    assert shown("matmul fused matmul", counted("matmul", 2)) == [
        ("matmul", 1, 1), ("fused", 1, None), ("matmul", 1, 1),
    ]  # fmt: skip


def test_a_right_guess_agrees_in_every_line():
    for what in recordings():
        seen = rows(recorded(*what).steps)
        pairs = align([row.kind for row in seen], seen)
        assert [(pair.guess, pair.row) for pair in pairs] == [(row.kind, row) for row in seen]


def test_the_naive_guess_misses_the_copy_alone():
    pairs = align("matmul mul mask softmax matmul".split(), rows(recorded("04_a", "eager").steps))
    assert [pair.row.kind for pair in pairs if pair.guess is None] == ["copy"]
    assert all(pair.row for pair in pairs)


def test_guesses_are_words_of_the_vocabulary():
    assert parse_guess("matmul softmax matmul") == ("matmul", "softmax", "matmul")
    assert parse_guess(" MatMul,softmax ,  mask\n") == ("matmul", "softmax", "mask")
    assert parse_guess(" ".join(VOCABULARY)) == VOCABULARY
    for text in ("matmull", "matmul soft max", "matmul;mul", "aten::mul"):
        with pytest.raises(UserError, match="is no kind of step; choose from matmul attention"):
            parse_guess(text)
    for text in ("", " ", ","):
        with pytest.raises(UserError, match="no step given"):
            parse_guess(text)


# ── Rows ──────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("what", recordings())
def test_rows_hold_every_step_once_and_in_order(what):
    steps = recorded(*what).steps
    assert [step for row in rows(steps) for step in row.steps] == list(steps)


def test_rows_of_the_recordings():
    naive = "matmul mul copy mask softmax matmul"
    assert kinds(recorded("04_a", "eager")) == naive.split()
    assert kinds(recorded("04_b", "eager")) == naive.replace(" copy", "").split()
    assert kinds(recorded("04_a", "compile")) == ["matmul", "fused", "matmul"]
    for backend in ("auto", "efficient", "flash", "cudnn"):
        assert kinds(recorded("04_c", "eager", backend)) == ["attention"]


def test_a_memset_joins_the_kernel_that_it_prepares():
    first = rows(recorded("04_a", "eager").steps)[0]
    assert [step.kind for step in first.steps] == ["memset", "matmul"]
    assert first.main.kind == "matmul"
    assert first.ns == sum(step.ns for step in first.steps)


def test_a_memset_of_its_own_stays_alone(tmp_path):
    """That of another op prepares nothing for the next."""
    seen = look(tmp_path, forward(100, ("zero_", "memset", 1), ("mul", "k", 5)))
    assert kinds(seen) == ["memset", "mul"]
    assert kinds(look(tmp_path, forward(100, ("mul", "k", 5), ("zero_", "memset", 1)))) == [
        "mul",
        "memset",
    ]


def test_math_s_long_runs_are_grouped_by_the_op():
    """20 kernels in 14 lines: the safe softmax's five as one, neighbouring casts counted."""
    seen = rows(recorded("04_c", "eager", "math").steps)
    assert len(seen) == 14
    [softmax] = [row for row in seen if row.op]
    assert (softmax.kind, softmax.op, len(softmax.steps)) == ("softmax", "aten::_safe_softmax", 5)
    assert all(step.under("aten::_safe_softmax") for step in softmax.steps)
    assert [len(row.steps) for row in seen if row.kind == "cast"] == [3, 1, 1]


@pytest.mark.parametrize(
    ("inside", "shown"),
    [
        (["mul", "add"], ["mul", "add", "sub"]),
        (["mul", "add", "mul"], ["softmax", "sub"]),  # three are a long run
        (["mul", "add", "mul", "exp"], ["softmax", "sub"]),
        (["mul", "mul", "mul"], ["mul", "sub"]),  # of one kind they are counted
    ],
)
def test_a_run_of_one_op_is_long_from_three_steps_on(tmp_path, inside, shown):
    events = [region(0, 200), op("aten::softmax", 5, 100), op("aten::sub", 150, 20)]
    for number, name in enumerate([*inside, None], 1):
        at = 10 + 20 * number if name else 155
        events += [op(f"aten::{name}", at, 9)] if name else []
        events += [launch(number, at + 1), kernel(number, 500 + 10 * number, 5, "k")]
    assert kinds(look(tmp_path, events)) == shown


def test_what_masked_fill_copies_is_not_merged_with_what_it_fills():
    """The lesson of 04_a: two steps under one op are still two lines."""
    copy, mask = rows(recorded("04_a", "eager").steps)[2:4]
    assert (copy.kind, mask.kind) == ("copy", "mask")
    assert copy.main.under("aten::masked_fill") and mask.main.under("aten::masked_fill")


def test_equal_neighbours_count_together_and_others_do_not(tmp_path):
    seen = look(
        tmp_path,
        forward(100, ("mul", "k", 5), ("mul", "k", 7), ("add", "k", 1), ("mul", "k", 2),
                ("x mul", "k", 3)),
    )  # fmt: skip
    assert [(row.kind, len(row.steps), row.ns) for row in rows(seen.steps)] == [
        ("mul", 2, 12_000), ("add", 1, 1_000), ("mul", 1, 2_000), ("mul", 1, 3_000),
    ]  # fmt: skip


def test_the_longest_step_stands_for_its_row(tmp_path):
    seen = look(tmp_path, forward(100, ("mul", "short", 5), ("mul", "long", 50), ("mul", "mid", 9)))
    [row] = rows(seen.steps)
    assert row.main.name == "long"


def test_a_row_with_an_unknown_time_has_none(tmp_path):
    events = forward(100, ("mul", "k", 5), ("mul", "k", 5))
    events[-1] |= {"ts": 0, "dur": 0}
    [row] = rows(look(tmp_path, events).steps)
    assert row.ns is None


def test_wrappers_are_what_all_steps_share():
    steps = recorded("04_c", "eager", "math").steps
    assert {step.path[: wrappers(steps)] for step in steps} == {
        ("aten::scaled_dot_product_attention", "aten::_scaled_dot_product_attention_math")
    }
    assert wrappers(recorded("04_a", "eager").steps) == 0
    assert wrappers(()) == 0
    # A single step keeps the op that launches it.
    for step in recorded("04_c", "eager", "flash").steps:
        assert step.path[wrappers([step]) :]


def test_two_calls_of_one_op_are_not_one_wrapper(tmp_path):
    seen = look(tmp_path, forward(100, ("f mul", "k", 5), ("f add", "k", 5)))
    assert wrappers(seen.steps) == 0


# ── Two recordings ────────────────────────────────────────────────────────────────────────────────


def test_naive_against_in_place_differ_by_the_copy_alone():
    pairs = differences(recorded("04_a", "eager"), recorded("04_b", "eager"))
    assert [(one.row.kind, one.b) for one in pairs if not one.in_both] == [("copy", None)]
    both = [one.row.kind for one in pairs if one.in_both]
    assert both == ["matmul", "mul", "mask", "softmax", "matmul"]


@pytest.mark.parametrize("what", recordings())
def test_nothing_differs_from_itself(what):
    for one in differences(recorded(*what), recorded(*what)):
        assert one.in_both and one.a.kind == one.b.kind


def test_differences_are_told_from_both_sides(tmp_path):
    a = look(tmp_path, forward(100, ("matmul", NVJET, 5), ("add", "k", 1)), name="a.json")
    b = look(tmp_path, forward(100, ("matmul", NVJET, 5), ("softmax", SOFTMAX, 2)), name="b.json")
    sides = [(one.a and one.a.kind, one.b and one.b.kind) for one in differences(a, b)]
    assert sorted(sides, key=str) == sorted(
        [("matmul", "matmul"), ("add", None), (None, "softmax")], key=str
    )
    empty = look(tmp_path, region(0, 10), name="c.json")
    assert differences(empty, empty) == []
    alone = [(one.a, one.row.kind) for one in differences(empty, b)]
    assert alone == [(None, "matmul"), (None, "softmax")]


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("bits", [1 << 30, 20])
def test_what_is_too_large_for_one_table_is_aligned_as_well(monkeypatch, seed, bits):
    """In halves, down to a few rows: never fewer agreements than by a table of all lengths."""
    monkeypatch.setattr(rows_module, "_BITS", bits)
    rng = random.Random(seed)
    left = rng.choices("abcd", k=rng.randint(0, 40))
    right = rng.choices("abcde", k=rng.randint(0, 40))
    best = [[0] * (len(right) + 1) for _ in range(len(left) + 1)]
    for i, j in product(reversed(range(len(left))), reversed(range(len(right)))):
        same = left[i] == right[j]
        best[i][j] = best[i + 1][j + 1] + 1 if same else max(best[i + 1][j], best[i][j + 1])
    pairs = rows_module.aligned(left, right)
    assert [i for i, _ in pairs if i is not None] == list(range(len(left)))
    assert [j for _, j in pairs if j is not None] == list(range(len(right)))
    both = [(i, j) for i, j in pairs if i is not None and j is not None]
    assert all(left[i] == right[j] for i, j in both) and len(both) == best[0][0]
