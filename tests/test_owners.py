"""Whose GPU time it is: labels, the autograd threads that work for them, and what has no label."""

import gzip
import json
from collections import defaultdict
from decimal import Decimal
from pathlib import Path

import pytest
from build import CASES, ROOT, START, THREAD, kernel, launch, op, recording, region, trace, write
from hypothesis import given, settings
from hypothesis import strategies as st

from common.read.linked import link
from common.read.observe import observe
from common.read.owners import Interval, Ledger, common, merged
from common.read.survey import survey
from common.read.trace import read
from common.show.as_json import survey_json

TRACES = sorted((ROOT / "tests" / "data" / "traces").glob("*.json.gz"))
WORKER = 77  # an autograd thread
NODE = "autograd::engine::evaluate_function: "


def look(tmp_path, *events):
    return survey(read(write(tmp_path, trace(*events))))


def labels(seen):
    """(own, on autograd threads, of its backward) in µs, by name."""
    parts = {one.name: (one.own, one.others, one.backward) for one in seen.labels}
    return {
        name: tuple(None if ns is None else ns / 1000 for ns in three)
        for name, three in parts.items()
    }


def parts(seen):
    """The same without the last."""
    return {name: three[:2] for name, three in labels(seen).items()}


def work(correlation, ts, us, thread=THREAD):
    """A launch, and the kernel that it starts."""
    return [
        launch(correlation, ts, thread=thread),
        kernel(correlation, 5000 + 100 * correlation, us),
    ]


def node(ts, dur, thread=WORKER, name="MmBackward0", **args):
    return op(NODE + name, ts, dur, thread, **args)


def arrow(number, whence, at, to):
    """From a forward op's thread to the backward op that begins at `at`."""
    one = {"cat": "fwdbwd", "name": "fwdbwd", "id": number, "pid": THREAD}
    return [
        one | {"ph": "s", "tid": whence, "ts": START},
        one | {"ph": "f", "tid": to, "ts": START + at},
    ]


# ── Backward belongs to its label ─────────────────────────────────────────────────────────────────


def training():
    """2 µs launched by backward's own thread, 40 by the autograd thread for it."""
    return [
        region(0, 100, "forward"), op("aten::mm", 10, 20, sequence=1), work(1, 15, 30),
        region(200, 400, "backward"), op("aten::ones_like", 205, 5), work(2, 206, 2),
        node(220, 100, sequence=1, forward_thread=1), work(3, 230, 40, WORKER),
        region(700, 50, "optimizer"), op("aten::add_", 705, 20), work(4, 706, 5),
    ]  # fmt: skip


def test_what_autograd_threads_launch_is_the_waiting_label_s(tmp_path):
    seen = look(tmp_path, training())
    assert parts(seen) == {"forward": (30, 0), "backward": (2, 40), "optimizer": (5, 0)}
    assert seen.unlabelled == 0


def test_no_label_s_name_decides(tmp_path):
    events = training()
    for event in events:
        if isinstance(event, dict) and event["name"] == "backward":
            event["name"] = "anything"
    assert parts(look(tmp_path, events))["anything"] == (2, 40)


def test_what_follows_the_graph_s_last_node_is_the_label_s_while_it_waits(tmp_path):
    """DDP copies its buckets in a final callback, outside evaluate_function."""
    seen = look(
        tmp_path, training(), op("aten::copy_", 330, 10, WORKER), work(5, 335, 7, WORKER),
        work(6, 340, 8, WORKER),  # outside any op
    )  # fmt: skip
    assert parts(seen)["backward"] == (2, 55) and seen.unlabelled == 0


def test_once_the_label_goes_on_the_autograd_thread_works_for_nobody(tmp_path):
    seen = look(tmp_path, training(), op("aten::sum", 350, 20), work(5, 400, 7, WORKER))
    assert parts(seen)["backward"] == (2, 40) and seen.unlabelled == 7000


def test_a_label_may_launch_nothing_itself(tmp_path):
    """The forward thread has no op and no call: it waits from the label's begin to its end."""
    seen = look(tmp_path, region(0, 400, "backward"), node(20, 100), work(1, 30, 40, WORKER),
                work(2, 200, 3, WORKER), work(3, 500, 9, WORKER))  # fmt: skip
    assert parts(seen) == {"backward": (0, 43)} and seen.unlabelled == 9000


def test_labels_around_the_waiting_one_have_it_too(tmp_path):
    seen = look(tmp_path, region(0, 900, "step"), training(), region(210, 380, "inner"))
    assert parts(seen)["step"] == (37, 40)
    assert parts(seen)["inner"] == (0, 40) and parts(seen)["backward"] == (2, 40)
    assert seen.unlabelled == 0


def test_a_label_on_both_threads_has_it_once(tmp_path):
    """On the worker it is its own; what the other thread waits for is not added again."""
    seen = look(tmp_path, training(), region(225, 20, "backward", WORKER))
    [backward] = [one for one in seen.labels if one.name == "backward"]
    assert (backward.own, backward.others, backward.gpu) == (42_000, 0, 42_000)
    assert len(list(seen.linked.owners.events("backward"))) == 2
    assert seen.unlabelled == 0


# ── Who waits for nobody ──────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("numbered", [True, False])
@pytest.mark.parametrize("name", ["gloo:all_reduce", "nccl:all_reduce", "somebody's"])
def test_a_quiet_label_of_another_thread_gets_none_of_it(tmp_path, numbered, name):
    """It is open on a thread that begins nothing meanwhile, as the waiting one does."""
    events = training()
    if not numbered:
        for event in events:
            if isinstance(event, dict):
                for key in ("Sequence number", "Fwd thread id"):
                    event["args"].pop(key, None)
    seen = look(tmp_path, events, region(210, 200, name, 55))
    assert parts(seen)["backward"] == (2, 40)
    assert parts(seen)[name] == (0, 0)


@pytest.mark.parametrize("when", [(215, 0), (335, 60)])
def test_a_label_that_is_quiet_longer_gets_none_of_it_either(tmp_path, when):
    """Though it holds all of the wait, or only part of it: it launched nothing before."""
    seen = look(tmp_path, training(), region(150, 500, "gloo:send", 55))
    assert parts(seen)["backward"] == (2, 40) and parts(seen)["gloo:send"] == (0, 0)


def test_a_thread_that_evaluates_no_graph_works_for_nobody(tmp_path):
    seen = look(tmp_path, region(0, 400, "a"), op("aten::mm", 20, 100, WORKER),
                work(1, 30, 40, WORKER))  # fmt: skip
    assert parts(seen) == {"a": (0, 0)} and seen.unlabelled == 40_000


def test_other_threads_that_launch_meanwhile_stay_apart(tmp_path):
    """Each event once: the autograd thread's with the label, the loader's elsewhere."""
    events = training(), op("aten::to", 240, 20, 99), work(9, 250, 11, 99)
    assert parts(look(tmp_path, events))["backward"] == (2, 40)
    seen = observe(read(write(tmp_path, trace(events))), "backward")
    assert ([f.steps[0].ns for f in seen.forwards], seen.elsewhere) == ([2000], 1)
    assert [step.ns for step in seen.other_steps] == [40_000]
    assert (seen.gpu_own_ns, seen.gpu_others_ns) == (2000, 40_000)


# ── From backward ops to forward ops ──────────────────────────────────────────────────────────────


def test_a_forward_label_says_what_its_backward_cost(tmp_path):
    found = labels(look(tmp_path, training()))
    assert found["forward"] == (30, 0, 40)
    assert found["backward"][2] == 0 and found["optimizer"][2] == 0


def trainers(arrows):
    """Two threads train at once, and both count their graph nodes from 1. The engine calls them 1
    and 2, in the order that is not that of their thread ids; its one thread serves both in turn."""
    events = []
    for thread, number, us in ((101, 2, 10), (102, 1, 20)):
        at = 10 * number
        events += [
            region(0, 100, f"forward {thread}", thread),
            op("aten::mm", at, 5, thread, sequence=1), work(number, at + 1, 1, thread),
            op("aten::mm", at + 20, 5, thread, sequence=2),
            region(200, 700, f"backward {thread}", thread),
            op("aten::ones_like", 205 + number, 1, thread),
        ]  # fmt: skip
        for sequence in (1, 2):
            start = 200 + 100 * number + 40 * (2 - sequence)
            events.append(node(start, 30, sequence=sequence, forward_thread=number))
            events += work(10 * number + sequence, start + 5, us * sequence, WORKER)
            if arrows:
                events.append(arrow(10 * number + sequence, thread, start, WORKER))
    return events


def test_two_trainers_with_equal_numbers_are_told_apart_by_arrows(tmp_path):
    found = labels(look(tmp_path, trainers(arrows=True)))
    assert found["forward 101"] == (1, 0, 30) and found["forward 102"] == (1, 0, 60)
    assert found["backward 101"] == (0, 30, 0) and found["backward 102"] == (0, 60, 0)


def test_numbers_alone_do_where_they_are_a_thread_s_own(tmp_path):
    """No arrow says which thread the engine means by 1; but only one has such ops."""
    events = trainers(arrows=False)
    for event in events:
        number = event.get("args", {}).get("Sequence number") if isinstance(event, dict) else None
        first = isinstance(event, dict) and (
            event["tid"] == 102 or event["args"].get("Fwd thread id") == 1
        )
        if number and first:
            event["args"]["Sequence number"] += 1000
    found = labels(look(tmp_path, events))
    assert found["forward 101"] == (1, 0, 30) and found["forward 102"] == (1, 0, 60)
    assert found["backward 101"][1] == 30 and found["backward 102"][1] == 60


def test_what_cannot_be_told_is_a_remainder_and_is_not_spread(tmp_path):
    seen = look(tmp_path, trainers(arrows=False))
    found = labels(seen)
    known = found["forward 101"][2] + found["forward 102"][2] + seen.unlinked_backward / 1000
    assert known == 90 and seen.unlinked_backward == 90_000
    lent = sum(found[f"backward {thread}"][1] for thread in (101, 102))
    assert lent + seen.unlabelled / 1000 == 90


def test_checkpointing_computes_forward_again_on_the_autograd_thread(tmp_path):
    """The ops of the second forward carry the first one's numbers, and a node in a node evaluates
    them: all of it is the backward of the op that was checkpointed, once."""
    seen = look(
        tmp_path,
        region(0, 100, "forward"), op("CheckpointFunction", 10, 20, sequence=1), work(1, 15, 30),
        region(200, 400, "backward"), op("aten::ones_like", 205, 5),
        node(220, 200, name="CheckpointFunctionBackward", sequence=1, forward_thread=1),
        op("aten::mm", 230, 20, WORKER, sequence=1), work(2, 235, 31, WORKER),
        node(260, 40, sequence=1, forward_thread=2), work(3, 270, 62, WORKER),
    )  # fmt: skip
    assert labels(seen) == {"forward": (30, 0, 93), "backward": (0, 93, 0)}
    assert (seen.unlabelled, seen.unlinked_backward) == (0, 0)


def test_accumulating_gradients_has_no_forward(tmp_path):
    """AccumulateGrad carries no number: a remainder, which is shown."""
    seen = look(tmp_path, training(), node(340, 20, name="torch::autograd::AccumulateGrad"),
                work(5, 345, 6, WORKER))  # fmt: skip
    assert labels(seen)["forward"] == (30, 0, 40)
    assert parts(seen)["backward"] == (2, 46)
    assert seen.unlinked_backward == 6000
    assert survey_json(seen)["backward_unlinked_gpu_us"] == 6


def test_without_numbers_what_backward_cost_is_unknown(tmp_path):
    seen = look(tmp_path, region(0, 400, "backward"), node(20, 100), work(1, 30, 40, WORKER))
    assert labels(seen) == {"backward": (0, 40, None)} and seen.unlinked_backward is None
    assert survey_json(seen)["labels"][0]["backward_gpu_us"] is None


# ── Sums ──────────────────────────────────────────────────────────────────────────────────────────


def test_a_label_nested_in_itself_counts_once(tmp_path):
    seen = look(tmp_path, region(0, 200), work(1, 5, 10), region(50, 100), work(2, 60, 20))
    [label] = seen.labels
    assert (label.count, label.cpu, label.gpu) == (2, 200_000, 30_000)


@pytest.mark.parametrize("lost", [{"dur": 0, "ts": 0}, {"dur": -1}, {"dur": None}])
def test_an_unknown_duration_makes_its_label_s_time_unknown(tmp_path, lost):
    events = training()
    kernels = [e for one in events if isinstance(one, list) for e in one if e["cat"] == "kernel"]
    kernels[2].update(lost)  # of backward, by the autograd thread
    seen = look(tmp_path, events)
    found = {one.name: one for one in seen.labels}
    assert (found["backward"].own, found["backward"].others) == (2000, None)
    assert found["backward"].gpu is found["backward"].busy is seen.unlabelled is None
    assert found["forward"].gpu == 30_000 and found["forward"].backward is None


def test_streams_at_once_are_summed_and_their_union_stands_beside(tmp_path):
    seen = look(tmp_path, region(0, 100), launch(1, 10), launch(2, 20), kernel(1, 200, 50),
                kernel(2, 220, 50, stream=8))  # fmt: skip
    [label] = seen.labels
    assert (label.gpu, label.busy) == (100_000, 70_000)


# ── Real traces, by plain loops ───────────────────────────────────────────────────────────────────


def by_plain_loops(path: Path):
    """(own, autograd) by label; GPU time under no label, and all. One thread is labelled, and the
    autograd threads work for it."""
    timed = [
        event
        for event in json.loads(gzip.decompress(path.read_bytes()), parse_float=Decimal)[
            "traceEvents"
        ]
        if event["ph"] == "X"
    ]
    ns: dict = defaultdict(int)
    for event in timed:
        if event["cat"] in ("kernel", "gpu_memcpy", "gpu_memset"):
            ns[event["args"]["correlation"]] += int(event["dur"] * 1000)
    spans = [
        event
        for event in timed
        if event["cat"] == "user_annotation" and not event["name"].startswith("ProfilerStep#")
    ]
    workers = {event["tid"] for event in timed if event["name"].startswith(NODE)}
    found: dict = {span["name"]: [0, 0] for span in spans}
    unlabelled, answered = 0, set()
    for call in timed:
        correlation = call.get("args", {}).get("correlation")
        if call["cat"] not in ("cuda_runtime", "cuda_driver") or correlation not in ns:
            continue
        assert correlation not in answered
        answered.add(correlation)
        around = {
            (span["name"], span["tid"] != call["tid"])
            for span in spans
            if span["ts"] <= call["ts"] < span["ts"] + span["dur"]
            and (span["tid"] == call["tid"] or call["tid"] in workers)
        }
        for name, other in around:
            found[name][other] += ns[correlation]
        unlabelled += 0 if around else ns[correlation]
    unlabelled += sum(time for correlation, time in ns.items() if correlation not in answered)
    return {name: tuple(both) for name, both in found.items()}, unlabelled, sum(ns.values())


@pytest.mark.parametrize("path", [*TRACES, recording("04_a"), recording("04_d", "compile", "flex")],
                         ids=lambda path: path.name)  # fmt: skip
def test_labels_of_real_traces_have_what_plain_loops_give_them(path):
    expected, unlabelled, whole = by_plain_loops(path)
    seen = survey(read(path))
    if not whole:
        assert not seen.trace.gpu
        return
    assert {one.name: (one.own, one.others) for one in seen.labels} == expected
    assert seen.unlabelled == unlabelled
    assert seen.usage.work == whole


def test_a_training_step_s_backward_is_not_two_microseconds():
    [path] = [path for path in TRACES if path.name.startswith("train")]
    seen = survey(read(path))
    found = {one.name: one for one in seen.labels}
    backward, forward = found["backward"], found["forward"]
    assert backward.own < 2000 < 5_000_000 < backward.others
    # All of it is the backward of the label `forward`, or said to be of no known op.
    assert forward.backward + seen.unlinked_backward == pytest.approx(backward.gpu, rel=0.01)
    assert forward.backward > 0.95 * backward.gpu


SMALL = [
    "backward_on_autograd_thread", "nested_same_label", "t24-no-profilerstep", "t41-driver-launch",
    "t37-leak-from-warmup", "t46-rocm-fields",
]  # fmt: skip


def adds_up(path: Path) -> None:
    """The outermost labels and what has none are all there is, each event once."""
    linked = link(read(path))
    seen = survey(linked)
    whole = sum(event.duration or 0 for event in linked.trace.gpu)
    events = [one.event for one in linked.launched()]
    assert len(events) == len({id(event) for event in events})
    assert linked.owners.labelled + seen.unlabelled == whole
    by_label = {
        id(event): event.duration for one in seen.labels for event in linked.owners.events(one.name)
    }
    assert sum(by_label.values()) == linked.owners.labelled
    for one in seen.labels:
        of_it = list(linked.owners.events(one.name))
        assert len(of_it) == len({id(event) for event in of_it})
        assert sum(event.duration for event in of_it) == one.gpu


@pytest.mark.parametrize("path", TRACES, ids=lambda path: path.name)
def test_labels_and_the_unlabelled_are_all_there_is(path):
    adds_up(path)


@pytest.mark.parametrize("name", SMALL)
def test_small_ones_add_up_too(name):
    adds_up(CASES / f"{name}.json")


def test_built_ones_add_up_too(tmp_path):
    for number, events in enumerate(
        (training(), [training(), region(210, 200, "gloo:x", 55)], trainers(True), trainers(False),
         [training(), region(225, 20, "backward", WORKER)])
    ):  # fmt: skip
        adds_up(write(tmp_path, trace(events), f"{number}.json"))


# ── Intervals and sums of them ────────────────────────────────────────────────────────────────────

INTERVALS = st.lists(
    st.tuples(st.integers(0, 30), st.integers(0, 9)).map(lambda one: (one[0], one[0] + one[1])),
    max_size=6,
)


def moments(spans):
    return {at for start, end in spans for at in range(start, end)}


@settings(deadline=None, max_examples=60)
@given(INTERVALS, INTERVALS)
def test_intervals_cover_what_their_parts_cover(left, right):
    one, two = merged(left), merged(right)
    assert moments(one) == moments(left)
    assert all(a.end < b.start for a, b in zip(one, one[1:], strict=False))
    assert moments(common(one, two)) == moments(left) & moments(right)


@settings(deadline=None, max_examples=60)
@given(st.dictionaries(st.integers(0, 20), st.none() | st.integers(0, 9)), INTERVALS)
def test_a_sum_over_intervals_is_that_of_its_moments(amounts, spans):
    """What counts at an end belongs to what follows; one unknown makes the sum unknown."""
    ledger = Ledger(sorted(amounts), [amounts[at] for at in sorted(amounts)])
    within = [amounts[at] for at in amounts if at in moments(spans)]
    expected = None if None in within else sum(within)
    assert ledger.over(merged(spans)) == expected
    assert Ledger([], []).over([Interval(0, 9)]) == 0
