"""The profiler's steps: a table, the one out of line, and why."""

import pytest
from build import ROOT, kernel, launch, op, region, trace, write

from common.cli import UserError
from common.read.linked import link
from common.read.steps import profiled_steps
from common.read.survey import survey
from common.read.trace import read
from common.show.steps import show_steps, steps_json
from common.show.terminal import console

RANK = ROOT / "tests" / "data" / "ranks" / "rank1.json.gz"


def training(slow=3, count=6, loader=400, longer=0):
    """Steps of 100 µs with one kernel of 30 µs; before the launch of one the loader takes long."""
    events, at, gpu = [], 0, 0
    for number in range(count):
        wait = loader if number == slow else 5
        events += [
            region(at, 100 + wait, f"ProfilerStep#{number}"),
            region(at + 1, wait, "enumerate(DataLoader)#_Single.__next__"),
            op("aten::mm", at + wait + 10, 20), launch(number + 1, at + wait + 12),
        ]  # fmt: skip
        us = 30 + (longer if number == slow else 0)
        gpu = max(gpu, at + wait + 20)
        events.append(kernel(number + 1, gpu, us))
        gpu += us
        at += 100 + wait
    return trace(events)


def found(tmp_path, content):
    return profiled_steps(link(read(write(tmp_path, content))))


def test_table_adds_up(tmp_path):
    path = write(tmp_path, training())
    seen = profiled_steps(link(read(path)))
    used = survey(read(path)).usage
    assert [step.gpu for step in seen.steps] == [30_000] * 6
    assert [step.cpu for step in seen.steps] == [105_000] * 3 + [500_000] + [105_000] * 2
    assert sum(step.idle for step in seen.steps) == used.idle
    assert (seen.cpu.median, seen.cpu.distance, seen.cpu.most) == (105_000, 0, 500_000)


def test_the_step_out_of_line_and_what_differs(tmp_path):
    (outlier,) = found(tmp_path, training()).outliers
    assert (outlier.step.name, outlier.by, outlier.more) == ("ProfilerStep#3", "cpu", 395_000)
    changes = {(one.what, one.name): one.more for one in outlier.changes}
    assert changes["label", "enumerate(DataLoader)#_Single.__next__"] == 395_000
    # A stretch is all of its culprit's: of 470 µs the loader took 395.
    assert changes["idle", "the data loader"] == 470_000
    assert not any(what == "kernel" for what, _ in changes)


def test_a_longer_kernel_is_found_on_the_gpu(tmp_path):
    (outlier,) = found(tmp_path, training(loader=5, longer=40)).outliers
    assert (outlier.by, outlier.more) == ("gpu", 40_000)
    assert [one.what for one in outlier.changes][0] == "kernel"


def test_alike_steps_have_none(tmp_path):
    assert found(tmp_path, training(loader=5)).outliers == ()
    assert found(tmp_path, training(count=3, slow=1)).outliers == ()  # too few to tell


def test_a_real_slow_loader():
    """The loader of one rank slept for 30 ms in the fourth step."""
    (outlier,) = profiled_steps(link(read(RANK))).outliers
    assert outlier.step.name == "ProfilerStep#6" and 30e6 < outlier.more < 32e6
    assert any("DataLoader" in one.name and one.more > 30e6 for one in outlier.changes)


def test_report_and_json(tmp_path, capsys):
    seen = found(tmp_path, training())
    show_steps(console(), seen)
    out = capsys.readouterr().out
    assert out.count("out of line") == 1 and "GPU idle, CPU in: the data loader" in out
    told = steps_json(seen)
    assert told["cpu"]["median_us"] == 105 and told["outliers"][0]["step"] == "ProfilerStep#3"
    assert steps_json(seen, 2)["left_out"] == {"steps": 4, "outliers": 0}


def test_without_a_gpu_its_times_are_unknown(tmp_path):
    seen = found(tmp_path, trace([region(100 * n, 90, f"ProfilerStep#{n}") for n in range(3)]))
    assert [step.gpu for step in seen.steps] == [None] * 3 and seen.gpu is None
    assert steps_json(seen)["gpu"] is None


def test_without_steps_the_schedule_is_named(tmp_path):
    with pytest.raises(UserError, match="schedule"):
        show_steps(console(), found(tmp_path, trace(region(0, 10))))
