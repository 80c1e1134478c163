"""The whole of a trace: sums over labels, kernels and ops, told apart as one region is."""

import copy as copies

import pytest
from build import forward, kernel, launch, memset, op, region, trace, write

from common.read.observe import observe
from common.read.survey import survey
from common.read.trace import read
from common.show.as_json import survey_json
from common.show.survey import show_survey
from common.show.terminal import console
from common.show.warnings import survey_warnings


def look(tmp_path, *events):
    return survey(read(write(tmp_path, trace(*events))))


def totals(found):
    """(count, CPU µs, GPU µs) by name."""
    return {t.name: (t.count, t.cpu / 1000, t.gpu and t.gpu / 1000) for t in found}


def test_labels_in_labels_hold_the_inner_ones_work(tmp_path):
    seen = look(
        tmp_path,
        region(0, 100, "model"), op("aten::a", 5, 80), launch(1, 6),
        region(10, 50, "block"), op("aten::b", 20, 20), launch(2, 25),
        region(65, 10, "block"), launch(3, 66), launch(4, 95),
        kernel(1, 200, 1, "k"), kernel(2, 210, 2, "k"), kernel(3, 220, 4, "k"),
        kernel(4, 230, 8, "j"), kernel(9, 100, 16, "nobody's"),
    )  # fmt: skip
    assert totals(seen.labels) == {"model": (1, 100, 15), "block": (2, 60, 6)}
    assert [label.name for label in seen.labels] == ["model", "block"]
    assert totals(seen.kernels) == {"nobody's": (1, 0, 16), "j": (1, 0, 8), "k": (3, 0, 7)}
    # An op without the ops inside it; a launch outside any op is no op's.
    assert totals(seen.ops) == {"aten::a": (1, 60, 5), "aten::b": (1, 20, 2)}
    assert [event.name for event in seen.linked.joined.leaked] == ["nobody's"]
    assert (seen.usage.work, seen.usage.events) == (31_000, 5)


def test_a_label_s_gpu_time_is_that_of_its_forwards(tmp_path):
    """What the survey sums, `--region` shows one by one."""
    path = write(tmp_path, trace(
        forward(100, ("mul", "k", 5), ("add", "copy", 7), label="a"),
        forward(900, ("sub", "j", 3), label="b"), forward(1500, ("sub", "j", 4), label="b"),
    ))  # fmt: skip
    for label in survey(read(path)).labels:
        seen = observe(read(path), label.name)
        assert (label.count, label.gpu) == (len(seen.forwards), seen.gpu_sum_ns)
        assert label.cpu == sum(forward.cpu_ns for forward in seen.forwards)


@pytest.mark.parametrize("call", ["cudaGraphLaunch", "hipGraphLaunch"])
def test_all_of_a_graph_counts_where_it_is_launched(tmp_path, call):
    seen = look(
        tmp_path,
        region(0, 50, "replay"), launch(1, 10, call), region(60, 50, "replay"), launch(2, 70, call),
        region(120, 9, "other"),
        [[kernel(n, 100 * n, 5, "a"), kernel(n, 100 * n + 10, 6, "b"), memset(n, 100 * n + 20, 1)]
         for n in (1, 2)],
    )  # fmt: skip
    assert totals(seen.labels) == {"replay": (2, 100, 24), "other": (1, 9, 0)}
    assert totals(seen.kernels)["b"] == (2, 0, 12)
    assert not (seen.linked.joined.leaked or seen.linked.joined.lost)


def ranks(*parted):
    """Two ranks whose correlation ids are the same, with what stands between them."""
    both = []
    for number, us in enumerate((5, 9)):
        one = forward(100, ("mul", "k", us), label="a"), forward(300, ("add", "k", us), label="b")
        events = copies.deepcopy(trace(one)["traceEvents"][1:])
        for event in events:
            event["pid"] = number if event["cat"] == "kernel" else 1000 + number
        both += [*parted, *events]
    return both


def test_ranks_keep_apart_and_are_summed(tmp_path):
    seen = look(tmp_path, ranks({"ph": "M", "name": "process_name", "args": {}}))
    assert totals(seen.labels) == {"a": (2, 60, 14), "b": (2, 60, 14)}
    assert totals(seen.ops) == {"aten::mul": (2, 36, 14), "aten::add": (2, 36, 14)}
    assert survey_warnings(seen) == ["2 processes in one file; what all of them did is counted"]


def test_whose_work_is_unknown_is_no_label_s(tmp_path, capsys):
    """Nothing parts the ranks: kernels are counted, and what a label launched is unknown."""
    seen = look(tmp_path, ranks())
    assert totals(seen.labels) == {"a": (2, 60, None), "b": (2, 60, None)}
    assert totals(seen.ops) == {"aten::mul": (2, 36, None), "aten::add": (2, 36, None)}
    assert survey_json(seen)["labels"][0]["gpu_us"] is None
    show_survey(console(), seen)
    assert "60 µs  unknown" in capsys.readouterr().out
    assert totals(seen.kernels) == {"k": (4, 0, 28)}
    assert len(seen.linked.joined.undecided) == 4
    assert any("4 GPU events of a correlation id" in text for text in survey_warnings(seen))


def test_many_names_are_ten(tmp_path):
    seen = look(tmp_path, [forward(100 * n, (f"op{n}", f"k{n}", n), label=f"l{n}")
                           for n in range(1, 31)])  # fmt: skip
    assert [total.name for total in seen.kernels] == [f"k{n}" for n in range(30, 20, -1)]
    assert [total.name for total in seen.ops] == [f"aten::op{n}" for n in range(30, 20, -1)]
    assert len(seen.labels) == 30


def test_an_op_that_ends_behind_its_caller_takes_no_more_from_it_than_it_has(tmp_path):
    """Rounded times, or an op that waits: a caller's own time is never negative."""
    seen = look(tmp_path, op("aten::a", 10, 40), op("aten::b", 30, 50), op("aten::c", 40, 20))
    assert totals(seen.ops) == {"aten::a": (1, 20, 0), "aten::b": (1, 30, 0), "aten::c": (1, 20, 0)}
    inside = look(tmp_path, op("aten::a", 10, 40), op("aten::b", 10, 90))
    assert all(total.cpu >= 0 for total in inside.ops)
