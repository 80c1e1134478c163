"""peak: which tensors add up to a peak, and what forgetting the scores is said to save."""

import json

from experiments import WAITING, conclusions, peak, refused


def test_the_peak_falls_by_the_output(tmp_path, ask):
    folder = peak(tmp_path, naive=528, **{"naive-del": 512, "in-place": 528, "in-place-del": 512})
    first, naive, in_place = conclusions(ask, "peak", folder)
    assert first == "In place, the peak is where it was."
    assert naive.startswith(
        "naive: with the scores forgotten the peak is 16 MiB lower, the size of the output. So the "
        "peak stood at the last matmul"
    )
    assert in_place.startswith("in-place: with")
    found = json.loads(ask("peak", "--json", "--replay", folder)[1])["recordings"]
    assert [one["held_at_the_peak"] for one in found] == [
        "2 score-sized tensors and the output", "2 score-sized tensors"
    ] * 2  # fmt: skip


def test_other_figures_get_no_explanation(tmp_path, ask):
    """A peak that no whole tensors add up to is not explained, nor is a fall of another size."""
    folder = peak(tmp_path, naive=600, **{"naive-del": 500, "in-place": 400, "in-place-del": 400})
    first, naive, in_place = conclusions(ask, "peak", folder)
    assert first == "In place, the peak is 200 MiB lower."
    assert naive == "naive: with the scores forgotten the peak is 100 MiB lower."
    assert in_place == "in-place: forgetting the scores does not lower the peak."
    found = json.loads(ask("peak", "--json", "--replay", folder)[1])["recordings"]
    assert {one["held_at_the_peak"] for one in found} == {None}
    assert "unknown" in ask("peak", "--replay", folder)[1]


def test_what_cannot_be_read(tmp_path, ask):
    assert "fewer than two" in refused(ask, "peak", "--replay", peak(tmp_path, naive=528))
    assert "does not tell the peak" in refused(
        ask, "peak", "--replay", peak(tmp_path / "cpu", naive=None)
    )


@WAITING
def test_shipped_peak(ask):
    code, out, err = ask("peak", "--replay", "--json")
    assert code == 0, err
    assert len(json.loads(out)["recordings"]) == 4
