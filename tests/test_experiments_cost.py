"""cost: whom it ranks, and what it says that it cannot tell."""

import json

from experiments import WAITING, conclusions, cost, refused

from common.experiments import BACKENDS
from common.experiments.cost import LEAST, above


def test_an_order_is_claimed_only_where_no_process_turns_it(tmp_path, ask):
    folder = cost(
        tmp_path,
        math=[(400, 500), (410, 500), (405, 500), (420, 500)],
        flash=[(60, 90), (61, 91), (62, 90), (63, 92)],
        cudnn=[(50, 200), (52, 210), (50, 205), (60, 201)],  # in one process as dear as flash
    )
    first, second = conclusions(ask, "cost", folder)
    assert first == (
        "Not recorded: math > flash ≈ cudnn   (≈: not every process of the one above every process "
        "of the other)"
    )
    assert second == (
        "Recording costs CPU time of its own, differently for each: 29.2 µs more for flash, 151 µs "
        "more for cudnn. No one figure could be subtracted, and none is."
    )


def test_three_processes_are_too_few(tmp_path, ask):
    """However far apart they lie: of three and three, chance puts all of one above in 1 of 10."""
    three = cost(tmp_path, a=[(400, 500)] * 3, b=[(50, 60)] * 3)
    assert conclusions(ask, "cost", three)[0].startswith("Not recorded: a ≈ b ")
    assert f"or fewer than {LEAST} of them" in conclusions(ask, "cost", three)[0]
    four = cost(tmp_path / "4", a=[(400, 500)] * 4, b=[(50, 60)] * 4)
    assert conclusions(ask, "cost", four)[0] == "Not recorded: a > b"


def test_above():
    assert above([5, 6, 7, 8], [1, 2, 3, 4])
    assert not above([5, 6, 7, 8], [1, 2, 3, 5])
    assert not above([5, 6, 7], [1, 2, 3, 4])


def test_an_order_that_recording_turns_is_named(tmp_path, ask):
    folder = cost(tmp_path, flash=[(60, 90)] * 4, cudnn=[(50, 200)] * 4)
    assert conclusions(ask, "cost", folder)[-1] == (
        "It turns the order: recorded, cudnn above flash in every process."
    )


def test_figures_are_medians_of_each_process(tmp_path, ask):
    folder = cost(tmp_path, flash=[(60, 90), (64, 80)], cudnn=[(50, 200), (40, 210)])
    flash, cudnn = json.loads(ask("cost", "--json", "--replay", folder)[1])["recordings"]
    assert flash["unrecorded_cpu_us"] == [60, 64] and flash["recorded_cpu_us"] == [90, 80]
    assert (cudnn["processes"], cudnn["unrecorded_forwards"]) == (2, 6)
    out = ask("cost", "--replay", folder)[1]
    assert "60 µs – 64 µs" in out and "1.2 – 1.5" in out


def test_one_variant_cannot_be_compared(tmp_path, ask):
    assert "fewer than two" in refused(ask, "cost", "--replay", cost(tmp_path, flash=[(1, 2)]))


@WAITING
def test_shipped_cost(ask):
    code, out, err = ask("cost", "--replay", "--json")
    assert code == 0, err
    found = json.loads(out)["recordings"]
    assert {one["variant"] for one in found} >= {*BACKENDS, "triton", "gluon", "flex"}
    assert all(one["processes"] >= LEAST for one in found)
