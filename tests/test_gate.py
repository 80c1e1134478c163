"""Is it slower? On real repeats, and on made ones."""

import json
import random
from dataclasses import replace
from statistics import stdev

import pytest
from build import ROOT

from common.cli import UserError
from common.compare.gate import below, gate, grown, quantile
from common.read.repeats import Part, Repeat, repeat_of
from common.read.trace import read
from common.show.gate import gate_json, markdown, show_gate
from common.show.terminal import console

DATA = ROOT / "tests" / "data"
NAIVE = json.loads((DATA / "repeats_of_naive.json").read_text())
FLASH = sorted((DATA / "repeats").glob("*.json.gz"))


def repeat(ns, number=0, **changes) -> Repeat:
    one = Repeat(
        f"{number}.json", "forward", "fwd", 3, True, ns, ns, ns, (Part("mul", "k", 1, ns),),
        None, "NVIDIA H200",
    )  # fmt: skip
    return replace(one, **changes)


def group(values):
    return [repeat(value, number) for number, value in enumerate(values)]


@pytest.mark.parametrize(
    "freedom, table", [(1, 63.657), (2, 9.925), (4, 4.604), (8, 3.355), (18, 2.878), (120, 2.617)]
)
def test_student_s_t(freedom, table):
    """The table of Fisher and Yates, for 0.995."""
    assert quantile(0.995, freedom) == pytest.approx(table, abs=0.001)
    assert below(table, freedom) == pytest.approx(0.995, abs=1e-4)


@pytest.mark.parametrize("metric", ["work", "busy", "elapsed"])
@pytest.mark.parametrize("size", [2, 5, 10])
def test_real_repeats_of_one_variant(metric, size):
    """At most 1 false alarm in 200; at least 99 % of +10 % found."""
    chance, alarms, caught = random.Random(size), 0, 0
    for _ in range(200):
        drawn = chance.sample(NAIVE[metric], 2 * size)
        base, new = group(drawn[:size]), drawn[size:]
        alarms += gate(base, group(new), "work", 0.05).verdict == "slower"
        caught += gate(base, group([1.1 * ns for ns in new]), "work", 0.05).verdict == "slower"
    assert alarms <= 1 and caught >= 198


def test_noise_makes_no_alarm_and_is_told():
    """Normal noise of 4 %: the threshold is often passed by chance, the bound hardly ever."""
    chance, verdicts = random.Random(1), []
    for _ in range(400):
        base, new = ([chance.gauss(1000, 40) for _ in range(3)] for _ in "ab")
        verdicts.append(gate(group(base), group(new), "work", 0.02).verdict)
    assert verdicts.count("slower") <= 2 and verdicts.count("unclear") > 50


def test_bounds_and_spread():
    base, new = [100.0, 101, 99], [110.0, 111, 109]
    seen = grown(base, new)
    assert seen.share == pytest.approx(0.1, abs=0.001) and seen.low < 0.1 < seen.high
    assert seen.spread == pytest.approx(stdev(base) / 100, rel=0.1)
    assert grown(base, [x * 3 for x in base]).tells == pytest.approx(grown(base, base).tells)


def test_a_single_pair_has_no_spread(capsys):
    seen = gate(group([100]), group([106]), "work", 0.05)
    assert (seen.verdict, seen.growth.low) == ("slower", None)
    assert gate(group([100]), group([104]), "work", 0.05).verdict == "not slower"
    show_gate(console(), seen)
    assert "no measure of the spread" in capsys.readouterr().out
    # One against several has a spread.
    assert gate(group([100]), group([106, 106.1, 106.05]), "work", 0.05).growth.low > 0


def test_a_copy_is_no_repeat():
    seen = gate(group([100, 100]), group([106, 107]), "work", 0.05)
    assert len(seen.base) == 1
    assert [doubt.what for doubt in seen.doubts] == ["same recording"]


@pytest.mark.parametrize(
    "other, said",
    [
        ({"on_gpu": False}, "no GPU events"),
        ({"unit": "recording"}, "by the forward"),
        ({"work": None}, "is unknown"),
    ],
)
def test_what_cannot_be_compared(other, said):
    with pytest.raises(UserError, match=said):
        gate([repeat(100)], [repeat(100, **other)], "work", 0.05)
    with pytest.raises(UserError, match="no repeats of one thing"):
        gate([repeat(100, records="a"), repeat(101, records="b")], group([100]), "work", 0.05)


def test_another_device_is_a_doubt():
    seen = gate(group([100]), [repeat(100, device="NVIDIA A100")], "work", 0.05)
    assert gate_json(seen)["warnings"] == ["BASE ran on NVIDIA H200, NEW on NVIDIA A100"]


def test_what_grew_comes_first():
    def two(mul, add, number):
        parts = (Part("mul", "m", 1, mul), Part("add", "a", 2, add))
        return repeat(mul + add, number, parts=parts)

    base = [two(100 + n, 50 + n / 10, n) for n in range(3)]
    new = [two(101 + n, 90 + n / 10, n) for n in range(3)]
    first, second = gate(base, new, "work", 0.05).parts
    assert (first.kind, first.more, first.beyond) == ("add", pytest.approx(40), True)
    assert (second.kind, second.beyond) == ("mul", False)


def test_a_recording_s_values_are_those_of_its_forwards():
    one = repeat_of(read(FLASH[0]), "flash")
    assert (one.unit, one.region, one.units) == ("forward", "sdpa_fwd", 10)
    assert one.work == one.busy < one.elapsed
    (part,) = one.parts
    assert (part.kind, part.count) == ("attention", 1)
    assert part.ns == pytest.approx(one.work, rel=0.05)  # a mean, beside a median


def test_markdown_obeys_nothing_of_a_name():
    seen = gate(group([100]), [repeat(110, parts=(Part("mul", "a|b<img>", 1, 110),))], "work", 0.05)
    text = markdown(seen)
    assert "<img>" not in text and "**slower" in text
    assert all(row.count(" | ") == 5 for row in text.splitlines() if row.startswith("| mul"))
