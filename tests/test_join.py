"""Who made what: ids against threads, times and clocks; lost, doubled and captured launches."""

import copy as copies

import pytest
from build import LABEL, THREAD, copy, kernel, launch, op, region, trace, write
from seen import look

from common.compare.compared import compare
from common.read.join import join
from common.read.linked import link
from common.read.observe import observe
from common.read.survey import survey
from common.read.trace import read
from common.show.as_json import as_json, usage_json
from common.show.warnings import survey_warnings, warnings

TITLE = {"ph": "M", "name": "process_name", "pid": 0, "tid": 0, "args": {}}


def linked(tmp_path, *events):
    return link(read(write(tmp_path, trace(*events))))


def by_op(tmp_path, *events):
    """What each op launched, in µs, without the ops inside it."""
    seen = survey(read(write(tmp_path, trace(*events))))
    return {total.name: total.gpu and total.gpu / 1000 for total in seen.ops}


def two_ops(**late):
    """aten::bmm and aten::softmax, each with its launch; `late` changes bmm's."""
    bmm = launch(1, 12, "hipModuleLaunchKernel", external=5)
    return [
        region(0, 100),
        op("aten::bmm", 10, 10, external=5), bmm | late,
        op("aten::softmax", 30, 10, external=6),
        launch(2, 35, "hipLaunchKernel", external=6),
        kernel(1, 200, 7), kernel(2, 210, 3),
    ]  # fmt: skip


# ── Two witnesses ─────────────────────────────────────────────────────────────────────────────────


def test_where_both_witnesses_agree_nothing_is_moved(tmp_path):
    assert by_op(tmp_path, two_ops()) == {"aten::bmm": 7, "aten::softmax": 3}
    assert linked(tmp_path, two_ops()).placed.moved == 0


@pytest.mark.parametrize(
    "late",
    [
        {"ts": two_ops()[3]["ts"] + 1},  # inside the next op
        {"ts": two_ops()[3]["ts"] - 1},  # inside none
        {"tid": 9},
        {"pid": 0, "tid": 0},
        {"ts": two_ops()[0]["ts"] + 500},  # behind the label
    ],
)
def test_the_id_tells_which_op_launched(tmp_path, late):
    """Stamped late, as HIP's calls are, or under another thread's name."""
    seen = linked(tmp_path, two_ops(**late))
    assert seen.placed.moved == 1 and not seen.placed.unknown
    assert by_op(tmp_path, two_ops(**late)) == {"aten::bmm": 7, "aten::softmax": 3}
    found = look(tmp_path, two_ops(**late))
    assert [step.path for step in found.steps] == [("aten::bmm",), ("aten::softmax",)]
    assert (found.launches_per_forward, found.elsewhere) == (2, 0)
    assert any("External id names; the id decides" in warning for warning in warnings(found))


@pytest.mark.parametrize("spelling", [str, int, float])
def test_ids_are_numbers_however_they_are_spelled(tmp_path, spelling):
    events = two_ops(tid=9)
    for event in events:
        for key in ("External id", "correlation"):
            if key in event["args"] and event["cat"] != "cpu_op":
                event["args"][key] = spelling(event["args"][key])
        if event["cat"] == "cpu_op":
            event["tid"] = str(event["tid"])
    assert by_op(tmp_path, events) == {"aten::bmm": 7, "aten::softmax": 3}


def test_the_id_of_an_outer_op_or_of_the_label_contradicts_nothing(tmp_path):
    events = [region(0, 100), op("aten::matmul", 5, 50, external=4), op("aten::bmm", 10, 10),
              launch(1, 12, external=4), launch(2, 70, external=1), kernel(1, 200, 7),
              kernel(2, 210, 3)]  # fmt: skip
    assert linked(tmp_path, events).placed.moved == 0
    assert by_op(tmp_path, events) == {"aten::bmm": 7, "aten::matmul": 0}


def test_an_id_that_several_ops_carry_names_none(tmp_path):
    """A counter that began anew: time and thread stand."""
    events = two_ops(tid=THREAD) + [op("aten::other", 400, 10, external=6)]
    events[4]["args"]["External id"] = 6
    events[4]["ts"] = events[1]["ts"] + 5  # inside bmm
    seen = linked(tmp_path, events)
    assert seen.placed.moved == 0 and not seen.placed.unknown
    assert by_op(tmp_path, events)["aten::bmm"] == 10


def test_an_id_that_nothing_carries_says_nothing(tmp_path):
    events = two_ops()
    events[2]["args"]["External id"] = 99
    assert linked(tmp_path, events).placed.moved == 0
    assert by_op(tmp_path, events) == {"aten::bmm": 7, "aten::softmax": 3}


def both_ranks(**changes):
    """The same program in two processes, with the same ids."""
    file = []
    for pid, us in ((1, 7), (2, 9)):
        events = [region(0, 100), op("aten::bmm", 10, 10, external=5),
                  launch(1, 12, external=5) | changes, kernel(1, 200, us)]  # fmt: skip
        for event in copies.deepcopy(events):
            if event["cat"] != "kernel" and "pid" not in (changes if "corr" in event else {}):
                event["pid"] = pid if event["pid"] == THREAD else event["pid"]
            file.append(event)
        file.append(TITLE)
    return file


def test_equal_ids_of_two_processes_are_two_ids(tmp_path):
    """Each call is moved to the op of its own process."""
    seen = survey(read(write(tmp_path, trace(both_ranks(tid=9)))))
    assert seen.linked.placed.moved == 2
    assert [(total.name, total.count, total.gpu) for total in seen.ops] == [
        ("aten::bmm", 2, 16_000)
    ]
    assert [label.gpu for label in seen.labels] == [16_000]


def test_a_call_of_no_process_that_ops_of_two_may_have_made_is_unknown(tmp_path):
    """Never 0: sums that may hold it are null, and a warning says so."""
    file = [TITLE]
    for pid in (1, 2):
        for event in (region(0, 100), op("aten::bmm", 10, 10, external=5)):
            file.append(event | {"pid": pid})
        file.append(TITLE)
    file += [launch(1, 12, external=5) | {"pid": 3}, kernel(1, 200, 7)]
    seen = survey(read(write(tmp_path, trace(file))))
    assert len(seen.linked.placed.unknown) == 1
    assert any("an External id of several ops" in warning for warning in survey_warnings(seen))
    assert [kernel.gpu for kernel in seen.kernels] == [7000]
    assert [label.gpu for label in seen.labels] == [None]
    assert [op.gpu for op in seen.ops] == [None]
    assert (seen.unlabelled, seen.usage.work) == (None, 7000)
    found = as_json(compare(observe(seen.trace)))
    assert found["kernels_per_forward"] is found["gpu_own_us"] is found["gpu"] is None


# ── Launches ──────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("answered", [True, False])
@pytest.mark.parametrize("driver_first", [True, False])
def test_a_launch_of_the_runtime_and_the_driver_s_inside_it_are_one(
    tmp_path, answered, driver_first
):
    pair = [launch(1, 10), launch(1, 11, "cuLaunchKernel", dur=2)]
    events = [region(0, 50), pair[::-1] if driver_first else pair, launch(2, 20),
              kernel(2, 100, 5)]  # fmt: skip
    seen = look(tmp_path, *events, *[kernel(1, 90, 5)] * answered)
    assert seen.launches_per_forward == 2
    assert len(seen.lost) == sum(forward.lost for forward in seen.forwards) == (not answered)
    assert seen.per_forward("kernel") == 1 + answered


def test_a_copy_that_launches_nothing_is_not_lost(tmp_path):
    assert not linked(tmp_path, launch(1, 10, "cudaMemcpyAsync")).joined.lost


def test_work_without_its_call_is_leaked_and_counted_once(tmp_path):
    found = linked(tmp_path, launch(1, 10), kernel(1, 50, 5), kernel(2, 60, 5), kernel(0, 70, 5))
    assert {event.correlation for event in found.joined.leaked} == {2, None}
    everything = [one.event for one in found.launched()]
    assert len(everything) == 3 and {id(e) for e in everything} == {id(e) for e in found.trace.gpu}


def test_launches_and_kernels_are_joined_whichever_comes_first_in_the_file(tmp_path):
    events = [launch(1, 10), launch(2, 20), kernel(1, 50, 5, "a"), kernel(2, 60, 5, "b")]
    for order in (events, events[::-1]):
        trace_ = read(write(tmp_path, trace(order)))
        answers = join(trace_).answers
        found = {call.correlation: [e.name for e in answers[id(call)]] for call in trace_.calls}
        assert found == {1: ["a"], 2: ["b"]}


# ── Into a graph ──────────────────────────────────────────────────────────────────────────────────


def capture(*inside, end=True):
    return [region(0, 100), launch(90, 5, "cudaStreamBeginCapture"), inside,
            *[launch(91, 60, "cudaStreamEndCapture")] * end, launch(5, 70),
            kernel(5, 200, 5)]  # fmt: skip


def test_what_a_capture_takes_is_not_lost(tmp_path):
    seen = look(tmp_path, capture(launch(1, 10), launch(2, 20)))
    assert (seen.captured, seen.missing, list(seen.lost)) == (2, 0, [])
    assert seen.per_forward("kernel") == 1 and not warnings(seen)


def test_what_runs_on_another_stream_meanwhile_ran(tmp_path):
    seen = look(tmp_path, capture(launch(1, 10), launch(2, 20), kernel(2, 150, 5)))
    assert (seen.captured, seen.per_forward("kernel"), list(seen.lost)) == (1, 2, [])


def test_before_behind_and_beside_a_capture_launches_may_be_lost(tmp_path):
    """On its own thread after its end; and on any other."""
    seen = look(tmp_path, capture(launch(1, 10)), launch(3, 80), launch(4, 20, thread=77))
    assert sorted(call.correlation for call in seen.lost) == [3, 4]
    assert seen.captured == 1


# ── Two clocks ────────────────────────────────────────────────────────────────────────────────────


def skewed(behind):
    """The GPU's times are so many µs too small."""
    return [region(0, 1000), [[launch(n, 100 * n), kernel(n, 100 * n + 20 - behind, 10)]
                              for n in range(1, 6)]]  # fmt: skip


def test_clocks_that_disagree_are_said_and_give_no_cause(tmp_path):
    seen = look(tmp_path, skewed(2_000_000))
    assert (seen.per_forward("kernel"), seen.gpu_ns, seen.usage.idle) == (5, 50_000, 360_000)
    [said] = warnings(seen)
    assert "the clocks of CPU and GPU disagree: kernels start 2 s before their launches" in said
    found = usage_json(seen.usage)
    assert found["idle_launch_bound_us"] is found["idle_waiting_us"] is None


@pytest.mark.parametrize("behind", [0, 21, 35])
def test_microseconds_between_the_clocks_are_no_alarm(tmp_path, behind):
    seen = look(tmp_path, skewed(behind))
    assert seen.linked.skew is None and not warnings(seen)
    assert usage_json(seen.usage)["idle_launch_bound_us"] is not None


def test_one_odd_kernel_is_no_odd_clock(tmp_path):
    many = [[launch(n, 100 * n), kernel(n, 100 * n + 20, 10)] for n in range(1, 21)]
    many[4][1]["ts"] -= 5000
    assert linked(tmp_path, region(0, 3000, LABEL), many, copy(99, 0, 1)).skew is None


def test_an_id_of_another_process_s_op_decides_nothing(tmp_path):
    """Processes count their External ids each for itself."""
    theirs = [event | {"pid": 7} for event in (region(0, 100), op("aten::bmm", 10, 10, external=5))]
    ours = [region(0, 100), op("aten::mul", 40, 10), launch(1, 60, external=5)]
    seen = observe(read(write(tmp_path, trace(*theirs, *ours, kernel(1, 200, 7)))))
    assert sorted(forward.count("kernel") for forward in seen.forwards) == [0, 1]
    assert not seen.linked.placed.moved


def test_kernels_of_a_graph_before_and_behind_the_metadata_are_one_process_s(tmp_path):
    """In a shuffled file of one process, metadata parts nothing."""
    graph = launch(1, 12, "cudaGraphLaunch")
    events = [kernel(1, 200, 7), TITLE | {"pid": THREAD}, region(0, 100), graph, kernel(1, 210, 3)]
    seen = observe(read(write(tmp_path, trace(*events))))
    assert seen.per_forward("kernel") == 2 and not seen.leaked
