"""`--json --top N`: a few kilobytes, and what they leave out is said."""

import json
from functools import partial

import pytest
from build import ROOT, forward, recording, trace, write

from common.look import Options, look

A, B = recording("04_a"), recording("04_b")
SHAPES = sorted((ROOT / "tests" / "data" / "shapes").glob("*.json.gz"))


@pytest.fixture
def ask(asked):
    return partial(asked, look, Options)


def answer(ask, *arguments):
    code, out, err = ask(*arguments, "--json")
    assert (code, err) == (0, "")
    return json.loads(out), len(out)


@pytest.mark.parametrize("path", SHAPES, ids=lambda path: path.name)
@pytest.mark.parametrize("how", [(), ("--survey",)])
def test_a_few_kilobytes_whatever_the_trace(ask, path, how):
    for most, bytes_ in ((1, 3_000), (5, 5_000), (10, 8_000)):
        found, size = answer(ask, path, *how, "--top", most)
        assert size < bytes_, size
        assert all(
            len(value) <= max(most, 3) for value in found.values() if isinstance(value, list)
        )


def test_names_of_any_length_do_not_count(ask, tmp_path):
    steps = [(f"op{n}{'x' * 5000}", f"void {'y' * 5000}{n}", 5) for n in range(40)]
    path = write(tmp_path, trace(forward(100, *steps, label="z" * 9000)))
    for how in ((), ("--survey",)):
        _, size = answer(ask, path, *how, "--top", 5)
        assert size < 6_000


def test_what_is_left_out_and_what_is_there_are_all(ask):
    for path in SHAPES:
        whole, _ = answer(ask, path)
        short, _ = answer(ask, path, "--top", 3)
        there = sum(step["steps"] for step in short["steps"])
        assert there + short["left_out"]["steps"] == len(whole["steps"])
        us = sum(step["us"] for step in short["steps"]) + short["left_out"]["steps_us"]
        assert us == pytest.approx(whole["cuda_us_per_forward"], abs=0.01)
        kinds = len(short["share_of_time"]) - 1 + short["left_out"]["kinds"]
        assert kinds == len(whole["time_by_kind"]) - 1


def test_of_two_traces_the_steps_that_differ_most(ask):
    short, size = answer(ask, A, B, "--top", 1)
    assert size < 2_000
    [step] = short["steps"]
    assert (step["kind"], step["only_in"], step["b_us"]) == ("copy", "a", None)
    assert short["left_out"]["places"] == 5


def test_top_is_for_programs(ask):
    code, out, err = ask(A, "--top", 3)
    assert (code, out) == (2, "") and "--top goes with --json" in err
    code, _, err = ask(A, "--survey", "--all")
    assert code == 2 and "--all prints a forward's steps" in err
    code, _, err = ask(A, "--json", "--top", 0)
    assert code == 2 and "at least 1" in err
