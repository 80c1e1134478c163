"""plan: whether a first call stands out from the second."""

import json

from build import region
from experiments import WAITING, conclusions, plan, refused, save


def test_a_first_call_that_stands_out_is_told(tmp_path, ask):
    plan(tmp_path, "cudnn", 90_000, 100, 60_000, 120)
    plan(tmp_path, "flash", 110, 100, 150, 100)
    cudnn, flash = conclusions(ask, "plan", tmp_path)
    assert cudnn == (
        "cudnn: the first call with call 0 or call 1 takes 60 ms to 90 ms on the CPU, the second "
        "100 µs to 120 µs: the kernel is looked for once, and kept by shape and strides."
    )
    assert flash == (
        "flash: a first call takes at most 1.5 times as long as the second: nothing is looked for."
    )


def test_a_search_that_is_not_kept(tmp_path, ask):
    """Slow both times: no first call stands out, and nobody says that something was kept."""
    assert "kept" not in conclusions(ask, "plan", plan(tmp_path, "cudnn", 90_000, 89_000))[0]


def test_forwards_without_names_are_refused(tmp_path, ask):
    save(tmp_path, "plan", "cudnn", [region(1000, 5), region(2000, 5)], calls=["one"])
    assert "does not tell what each of its forwards was" in refused(
        ask, "plan", "--replay", tmp_path
    )


@WAITING
def test_shipped_plan(ask):
    code, out, err = ask("plan", "--replay", "--json")
    assert code == 0, err
    assert {one["backend"] for one in json.loads(out)["recordings"]} == {"cudnn", "flash"}
