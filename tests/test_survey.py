"""The whole of a trace: sums over labels, kernels and ops, told apart as one region is."""

import copy as copies
import io
import re

import pytest
from build import forward, kernel, launch, memset, op, region, trace, write

from common.read.labels import is_incidental
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


# ── Which labels there are ────────────────────────────────────────────────────────────────────────


def shown(seen) -> str:
    out = console()
    out.file = io.StringIO()
    show_survey(out, seen)
    return out.file.getvalue()


STEPS = [region(0, 300, "ProfilerStep#4"), region(400, 300, "ProfilerStep#5")]


def test_without_a_label_steps_kernels_and_ops_are_told(tmp_path):
    seen = look(tmp_path, STEPS, op("aten::mm", 10, 50), launch(1, 20), kernel(1, 500, 30, "k"),
                op("aten::mm", 410, 50), launch(2, 420), kernel(2, 600, 50, "k"))  # fmt: skip
    assert seen.labels == () and seen.unlabelled == 80_000
    assert [(s.name, s.cpu, s.gpu) for s in seen.steps] == [
        ("ProfilerStep#4", 300_000, 30_000), ("ProfilerStep#5", 300_000, 50_000)
    ]  # fmt: skip
    assert totals(seen.kernels) == {"k": (2, 0, 80)} and totals(seen.ops)["aten::mm"][2] == 80
    text = shown(seen)
    assert "2 profiler steps, mean: CPU 300 µs, GPU 40 µs" in text
    assert "labels" not in text and "--region" not in text
    found = survey_json(seen)
    assert (found["labels"], found["unlabelled_gpu_us"]) == ([], 80)


def test_a_profiler_step_has_what_autograd_threads_launch_in_it(tmp_path):
    node = "autograd::engine::evaluate_function: MmBackward0"
    seen = look(tmp_path, STEPS[0], op("aten::mm", 10, 5), launch(1, 11), kernel(1, 500, 30),
                op(node, 100, 50, thread=77), launch(2, 110, thread=77),
                kernel(2, 600, 50))  # fmt: skip
    assert [step.gpu for step in seen.steps] == [80_000]


@pytest.mark.parametrize(
    "name",
    [
        "enumerate(DataLoader)#_SingleProcessDataLoaderIter.__next__", "Optimizer.step#AdamW.step",
        "nccl:all_reduce", "gloo:broadcast", "## Call CompiledFxGraph ##", "ProfilerStep#7",
        "nn.Module: Linear_0", "train.py(12): step", "Torch-Compiled Region: 0/0",
    ],
)  # fmt: skip
def test_labels_that_nobody_gave_are_incidental(name):
    assert is_incidental(name)


@pytest.mark.parametrize("name", ["forward", "step", "nccl", "my gloo: test", "Optimizer", ""])
def test_other_labels_are_somebody_s(name):
    assert not is_incidental(name)


def test_what_has_no_label_has_a_line_of_its_own(tmp_path):
    seen = look(tmp_path, region(0, 50, "a"), launch(1, 10), kernel(1, 100, 3),
                launch(2, 60), kernel(2, 110, 4), kernel(9, 200, 5))  # fmt: skip
    assert seen.unlabelled == 9000 and seen.labels[0].gpu == 3000
    assert re.search(r"^under no label +9 µs$", shown(seen), re.M)
    assert "under no label" not in shown(look(tmp_path, region(0, 50), launch(1, 1),
                                              kernel(1, 100, 3)))  # fmt: skip


def test_what_autograd_threads_launched_stands_apart(tmp_path):
    node = "autograd::engine::evaluate_function: MmBackward0"
    text = shown(look(tmp_path, region(0, 300, "b"), launch(1, 5), kernel(1, 500, 3),
                      op(node, 50, 50, thread=77), launch(2, 60, thread=77),
                      kernel(2, 510, 40)))  # fmt: skip
    assert re.search(r"^labels +times +CPU +GPU +own thread +autograd$", text, re.M)
    assert re.search(r"^b +1 +300 µs +43 µs +3 µs +40 µs$", text, re.M)


# ── Unknown is not zero ───────────────────────────────────────────────────────────────────────────


def test_a_label_that_never_ended_has_unknown_times(tmp_path):
    seen = look(tmp_path, region(0, -1, "open"), region(0, 100, "b"), launch(1, 10),
                kernel(1, 200, 5))  # fmt: skip
    found = {label["name"]: label for label in survey_json(seen)["labels"]}
    assert (found["b"]["gpu_us"], found["b"]["cpu_us"]) == (5, 100)
    for key in ("cpu_us", "gpu_us", "gpu_own_us", "gpu_other_threads_us", "gpu_busy_us"):
        assert found["open"][key] is None
    assert found["open"]["count"] == 1
    assert re.search(r"^open +1 +unknown +unknown$", shown(seen), re.M)


def test_lost_times_are_unknown_wherever_they_would_be_summed(tmp_path):
    lost = kernel(1, 200, 5, "lost") | {"ts": 0, "dur": 0}
    seen = look(
        tmp_path,
        region(0, 50, "a"),
        op("aten::a", 5, 20),
        launch(1, 10),
        lost,
        region(60, 50, "b"),
        op("aten::b", 65, 20),
        launch(2, 70),
        kernel(2, 300, 7, "k"),
    )
    assert [(label.name, label.gpu) for label in seen.labels] == [("b", 7000), ("a", None)]
    assert {total.name: total.gpu for total in seen.ops} == {"aten::b": 7000, "aten::a": None}
    assert {total.name: total.gpu for total in seen.kernels} == {"k": 7000, "lost": None}
    assert seen.unlabelled is None and seen.usage.work == 7000
    assert "1 GPU event of unknown time, counted and not summed" in survey_warnings(seen)


def test_incredible_durations_are_counted_and_not_summed(tmp_path):
    seen = look(
        tmp_path,
        region(0, 50, "a"),
        launch(1, 10),
        launch(2, 20),
        launch(3, 30),
        kernel(1, 100, 10**9, "long"),
        kernel(2, 200, 7, "k"),
        kernel(3, 300, 2, "k"),
    )
    assert {total.name: (total.count, total.gpu) for total in seen.kernels} == {
        "k": (2, 9000), "long": (1, None)
    }  # fmt: skip
    assert (seen.labels[0].gpu, seen.unlabelled, seen.usage.work) == (None, None, 9000)
    assert any("1 GPU event of no credible duration" in text for text in survey_warnings(seen))


def test_an_op_without_its_time_has_none(tmp_path):
    timeless = op("aten::a", 5, 20) | {"ts": None}
    seen = look(tmp_path, region(0, 50, "a"), op("aten::a", 10, 5), timeless)
    assert [(total.count, total.cpu) for total in seen.ops] == [(2, None)]


# ── Communication ─────────────────────────────────────────────────────────────────────────────────

BROADCAST = "ncclDevKernel_Broadcast_RING_LL_int8_t(ncclDevKernelArgsStorage<4096ul>)"


def told(**changes):
    return {
        "Collective name": "broadcast", "dtype": "Float", "In msg nelems": 1024,
        "Out msg nelems": 1024, "Group size": 8, "Process Group Name": "0",
        "Process Group Description": "default_pg", "Process Group Ranks": "[0, 1, 2, 3, ...]",
    } | changes  # fmt: skip


def test_what_is_moved_is_told_by_the_args_and_not_by_the_name(tmp_path):
    seen = look(tmp_path, [[launch(n, n), kernel(n, 100 * n, 10, BROADCAST, **told())]
                           for n in (1, 2)])  # fmt: skip
    assert survey_json(seen)["communication"] == [
        {"collective": "broadcast", "dtype": "Float", "elements_in": 1024, "elements_out": 1024,
         "group": "default_pg", "group_size": 8, "ranks": "[0, 1, 2, 3, ...]", "count": 2,
         "gpu_us": 20}
    ]  # fmt: skip
    assert (
        re.search(r"^broadcast · default_pg +Float +1,024 +8 +2 +20 µs$", shown(seen), re.M)
        and "int8" not in shown(seen).split("communication")[1]
    )


def test_collectives_of_other_args_are_other_rows_the_dearest_first(tmp_path):
    args = told(), told(dtype="BFloat16"), told(**{"Group size": 2}), told()
    seen = look(tmp_path, [[launch(n, n), kernel(n, 100 * n, 10 * n, BROADCAST, **one)]
                           for n, one in enumerate(args, 1)])  # fmt: skip
    found = [(one.collective.dtype, one.collective.size, one.count, one.gpu)
             for one in seen.communication]  # fmt: skip
    assert found == [("Float", 8, 2, 50_000), ("Float", 2, 1, 30_000), ("BFloat16", 8, 1, 20_000)]


def test_without_args_what_is_moved_is_unknown(tmp_path):
    seen = look(tmp_path, launch(1, 1), kernel(1, 100, 10, BROADCAST))
    [moved] = survey_json(seen)["communication"]
    assert (moved["count"], moved["gpu_us"]) == (1, 10)
    for key in ("dtype", "elements_in", "elements_out", "group", "group_size", "ranks"):
        assert moved[key] is None
    assert "unknown" in shown(seen)


def test_a_matmul_is_no_communication(tmp_path):
    assert look(tmp_path, launch(1, 1), kernel(1, 100, 10)).communication == ()


# ── Other accelerators, and what the file lacks ───────────────────────────────────────────────────


def test_mtia_is_read(tmp_path):
    seen = look(
        tmp_path, region(0, 50, "a"), region(60, 50, "b"),
        launch(1, 10, "runtimeLaunch") | {"cat": "mtia_runtime"},
        kernel(1, 100, 60, "fc_kernel") | {"cat": "mtia_ccp_events"},
    )  # fmt: skip
    assert totals(seen.labels) == {"a": (1, 50, 60), "b": (1, 50, 0)}
    assert totals(seen.kernels) == {"fc_kernel": (1, 0, 60)} and not survey_warnings(seen)


def test_categories_that_are_not_read_are_named(tmp_path):
    """Those that look like an accelerator's; what only viewers draw is passed over."""
    unread = [kernel(n, 100, 5) | {"cat": "npu_kernel"} for n in (1, 2)]
    drawn = [kernel(3, 100, 5) | {"cat": cat} for cat in ("gpu_user_annotation", "cuda_sync")]
    said = survey_warnings(look(tmp_path, region(0, 50), unread, drawn))
    assert "categories that look like an accelerator's and are not read: npu_kernel (2)" in said


@pytest.mark.parametrize(
    ("events", "words"),
    [
        ([kernel(1, 100, 5)], "no CPU events: the GPU's own times hold"),
        ([launch(1, 1), launch(2, 2), kernel(1, 100, 5)], "1 of 2 launches lost their GPU record"),
        ([launch(1, 1), kernel(1, 100, 5), kernel(2, 50, 5)], "recording began in the middle"),
        ([launch(1, 90_000), kernel(1, 100, 5)], "the clocks of CPU and GPU disagree"),
    ],
)
def test_how_far_to_trust_it_is_said_in_one_line_at_the_top(tmp_path, events, words):
    seen = look(tmp_path, events)
    top = shown(seen).split("\n\n")[0]
    assert "\nhow far to trust it: " in top and words in survey_json(seen)["trust"]
    sound = look(tmp_path, launch(1, 1), kernel(1, 100, 5))
    assert "how far" not in shown(sound) and survey_json(sound)["trust"] is None
