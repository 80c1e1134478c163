"""A forward's rows with their loops folded, in so many lines; also of real models."""

import pytest
from build import FLASH, NVJET, ROOT, forward, trace, write
from seen import look

from common.compare.loops import (
    ROOM,
    Line,
    Repeat,
    Several,
    folded,
    has_loops,
    in_lines,
    lines,
    rows_of,
)
from common.compare.rows import rows
from common.read.observe import observe
from common.read.trace import read

SHAPES = sorted((ROOT / "tests" / "data" / "shapes").glob("*.json.gz"))
LAYER = (
    ("layer_norm native_layer_norm", "k", 3), ("linear addmm", NVJET, 9),
    ("scaled_dot_product_attention _flash_attention_forward", FLASH, 20),
    ("linear addmm", NVJET, 5), ("add", "k", 2), ("layer_norm native_layer_norm", "k", 3),
    ("linear addmm", NVJET, 11), ("gelu", "k", 4), ("linear addmm", NVJET, 13), ("add", "k", 2),
)  # fmt: skip
MODEL = (("embedding", "k", 2), *LAYER * 12, ("layer_norm native_layer_norm", "k", 3))


def generate(tokens=16, layers=8):
    """Decode steps of layers, the first one without a cache to put together."""
    cached = (*LAYER[:2], ("cat", "k", 1), *LAYER[2:])
    steps = []
    for token in range(tokens):
        steps += [("embedding", "k", 2), *(cached if token else LAYER) * layers]
        steps += [("linear mm", NVJET, 9), ("argmax", "k", 1)]
    return steps


def recorded(path):
    return observe(read(path))


@pytest.mark.parametrize("path", SHAPES, ids=lambda path: path.name)
@pytest.mark.parametrize("room", [1, 5, 12, ROOM, 10_000])
def test_no_row_is_lost_and_all_adds_up(path, room):
    seen = recorded(path)
    its = rows(seen.steps)
    parts = in_lines(folded(its), room)
    assert lines(parts) <= max(room, 1)
    assert sorted(map(id, rows_of(parts))) == sorted(map(id, its))
    assert sum(part.ns for part in parts if not isinstance(part, Repeat)) + sum(
        part.ns + sum(one.ns for _, d in part.deviations for one in d)
        for part in parts if isinstance(part, Repeat)
    ) == pytest.approx(seen.gpu_ns)  # fmt: skip
    assert sum(row.count for row in rows_of(parts)) == len(seen.steps)


def test_the_layers_of_a_model_are_one_loop(tmp_path):
    parts = folded(rows(look(tmp_path, forward(100, *MODEL)).steps))
    first, loop, last = parts
    assert isinstance(loop, Repeat) and loop.counts == (12,)
    assert [part.first.kind for part in loop.body] == [
        "normalization", "matmul", "attention", "matmul", "add",
        "normalization", "matmul", "activation", "matmul", "add",
    ]  # fmt: skip
    assert (first.first.kind, last.first.kind) == ("embedding", "normalization")
    assert loop.body[2].ns == 12 * 20_000 and loop.body[2].count == 12


def test_generate_is_a_loop_of_loops(tmp_path):
    parts = folded(rows(look(tmp_path, forward(100, *generate())).steps))
    loops = [part for part in parts if isinstance(part, Repeat)]
    assert [loop.counts for loop in loops] == [(8,), (15,)]
    [layers] = [part for part in loops[1].body if isinstance(part, Repeat)]
    assert layers.counts == (8,) * 15


def test_which_kernel_a_library_takes_may_differ_from_turn_to_turn(tmp_path):
    """A loop of cuBLAS's choice is a loop nevertheless; and so is one of one or three kernels."""
    steps = [
        step
        for turn in range(6)
        for step in (
            ("linear addmm", NVJET if turn % 2 else "ampere_sgemm_128x64_tn", 9),
            ("gelu", "k", 1),
        )  # fmt: skip
    ]
    [loop] = folded(rows(look(tmp_path, forward(100, *steps)).steps))
    assert loop.counts == (6,) and len({row.main.name for row in loop.body[0].rows}) == 2


def test_without_repetition_nothing_is_folded(tmp_path):
    steps = (("mul", "k", 1), ("softmax", "k", 2), ("linear mm", NVJET, 3), ("gelu", "k", 4))
    parts = folded(rows(look(tmp_path, forward(100, *steps)).steps))
    assert all(isinstance(part, Line) for part in parts) and not has_loops(parts)


def test_cheap_neighbours_share_a_line_the_dear_keep_theirs(tmp_path):
    ops = "mul add sub div exp neg abs sin cos tan".split()
    steps = [(op, f"k{n}", 100 if n in (3, 7) else 1) for n, op in enumerate(ops)]
    parts = in_lines(folded(rows(look(tmp_path, forward(100, *steps)).steps)), 5)
    assert [type(part) for part in parts] == [Several, Line, Several, Line, Several]
    assert [part.count for part in parts] == [3, 1, 3, 1, 2]
    assert parts[0].ns == 3000


def test_a_thousand_different_steps_fit_too(tmp_path):
    steps = [(f"op{n}", f"k{n}", 1 + n % 7) for n in range(300)]
    parts = in_lines(
        folded(rows(observe(read(write(tmp_path, trace(forward(100, *steps))))).steps))
    )
    assert lines(parts) <= ROOM and sum(part.count for part in parts) == 300
