"""tuning: what an autotuned kernel shows that was not warmed up."""

import json

from build import FLASH, forward, op, region
from experiments import WAITING, conclusions, refused, save, tuned


def test_tuning_counts_the_runs_and_the_forms_of_the_kernel(tmp_path, ask):
    once = ("sdpa", FLASH, 55)
    save(tmp_path, "tuning", "triton", tuned(5000, 128, 256, 128), forward(8000, once),
         forward(9000, once))  # fmt: skip
    code, out, err = ask("tuning", "--json", "--replay", tmp_path)
    assert code == 0, err
    found = json.loads(out)
    first, second, third = found["recordings"]
    assert first["attention_kernels"] == 3 and first["forms_of_the_kernel"] == 2
    assert first["other_gpu_events"] == 3 and first["gpu_us"] == 330
    assert second["attention_kernels"] == third["attention_kernels"] == 1
    runs, average = found["conclusions"]
    assert "3 runs of one kernel in 2 forms" in runs and "3 events" in runs
    assert "147 µs" in average and "55 µs" in average  # (330 + 55 + 55) / 3


def test_tuning_reads_one_recording_of_a_gpu(tmp_path, ask):
    once = ("sdpa", FLASH, 55)
    for number, shape in enumerate(([2, 4, 256, 64], [2, 4, 512, 64])):
        save(tmp_path / "two", "tuning", "triton", forward(5000, once), file=str(number),
             shape=shape)  # fmt: skip
    assert "reads one recording, and there are 2" in refused(
        ask, "tuning", "--replay", tmp_path / "two"
    )
    save(tmp_path / "cpu", "tuning", "triton", region(0, 50), op("aten::mul", 5, 20))
    assert "recorded without a GPU?" in refused(ask, "tuning", "--replay", tmp_path / "cpu")


def test_a_form_that_changes_again_is_not_hidden(tmp_path, ask):
    one, other = (
        forward(at, ("sdpa", FLASH, 55), grid=[grid, 1, 1]) for at, grid in ((8000, 8), (9000, 4))
    )
    save(tmp_path, "tuning", "triton", tuned(5000, 128, 256), one, other)
    said = conclusions(ask, "tuning", tmp_path)[0]
    assert "8×1×1" in said and "4×1×1" in said


def test_tuning_that_does_not_show_is_not_claimed(tmp_path, ask):
    once = ("sdpa", FLASH, 55)
    save(tmp_path, "tuning", "triton", forward(5000, once), forward(8000, once))
    (said,) = conclusions(ask, "tuning", tmp_path)
    assert said.startswith("No forward that tunes")


@WAITING
def test_shipped_tuning(ask):
    found = json.loads(ask("tuning", "--replay", "--json")[1])
    first, *later = found["recordings"]
    assert first["attention_kernels"] > first["forms_of_the_kernel"] > 1
    assert [f["attention_kernels"] for f in later] == [1, 1]
    assert "Tuning shows" in found["conclusions"][0]
