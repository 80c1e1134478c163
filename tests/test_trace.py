"""Files of every shape: the same trace, or one clean error; never a guess and never a crash."""

import copy as copies
import gzip
import json
import random
import re
import tempfile
from pathlib import Path

import hypothesis
import pytest
from build import (
    LABEL,
    START,
    copy,
    forward,
    kernel,
    launch,
    load,
    op,
    recording,
    recordings,
    region,
    story,
    trace,
    write,
)
from hypothesis import strategies as st

from common.cli import UserError
from common.compare.compared import compare
from common.read import pieces as reader
from common.read import trace as parser
from common.read.observe import Observation, observe
from common.read.trace import Trace, read
from common.show import report
from common.show.as_json import as_json
from common.show.terminal import console
from common.story import read_story

STORY = read_story(story())
SMALL = trace(forward(100, ("mul", "k<1>", 7.5), ("softmax _softmax", "copy", 3)))


def same(path, other) -> bool:
    """Whether two files read as the same trace."""
    names = ("story", "devices", "annotations", "ops", "calls", "gpu")
    a, b = read(path), read(other)
    return all(getattr(a, name) == getattr(b, name) for name in names)


def error(path) -> str:
    with pytest.raises(UserError) as caught:
        read(path)
    message = str(caught.value)
    assert path.name in message and "\n" not in message
    return message


def place(message: str) -> tuple[int, int]:
    line, column = re.search(r"in line (\d+), column (\d+)$", message).groups()
    return int(line), int(column)


# ── One content, many files ───────────────────────────────────────────────────────────────────────

TEXT = json.dumps(SMALL)
FORMS = {
    "minified": json.dumps(SMALL, separators=(",", ":")).encode(),
    "indented": json.dumps(SMALL, indent=4).encode(),
    "windows lines": json.dumps(SMALL, indent=1).replace("\n", "\r\n").encode(),
    "blank around": b"\n\t " + TEXT.encode() + b"\r\n \n",
    "keys the other way round": json.dumps(
        dict(reversed(SMALL.items())) | {"traceEvents": SMALL["traceEvents"]}
    ).encode(),
    "utf-8 mark": b"\xef\xbb\xbf" + TEXT.encode(),
    "utf-16 little": b"\xff\xfe" + TEXT.encode("utf-16-le"),
    "utf-16 big": b"\xfe\xff" + TEXT.encode("utf-16-be"),
    "gzip": gzip.compress(TEXT.encode()),
    "gzip in two members": gzip.compress(TEXT[:200].encode()) + gzip.compress(TEXT[200:].encode()),
    "gzip, zeros behind": gzip.compress(TEXT.encode()) + bytes(16),
    "gzip of utf-8 mark": gzip.compress(b"\xef\xbb\xbf" + TEXT.encode()),
    "gzip of utf-16": gzip.compress(TEXT.encode("utf-16")),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize("name", ["t.json", "t.json.gz", "t.txt", "no ending"])
def test_content_decides_not_the_name(tmp_path, form, name):
    plain = write(tmp_path, SMALL, "plain.json")
    assert same(write(tmp_path, FORMS[form], name), plain)


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
def test_the_events_alone_are_a_trace_too(tmp_path, pack):
    """Chrome's other form: a list, without what stands around it."""
    alone = read(write(tmp_path, pack(json.dumps(SMALL["traceEvents"]).encode()), "list.json"))
    whole = read(write(tmp_path, SMALL))
    assert (alone.annotations, alone.ops, alone.gpu) == (whole.annotations, whole.ops, whole.gpu)
    assert (alone.devices, alone.story) == ((), None)


@pytest.mark.parametrize(("script", "mode", "backend"), recordings())
def test_recording_is_read_whole(script, mode, backend):
    """Every timed event of every category that is work, counted by the standard library."""
    path = recording(script, mode, backend)
    counts = {}
    for event in load(path)["traceEvents"]:
        if event["ph"] == "X":
            counts[event["cat"]] = counts.get(event["cat"], 0) + 1
    found = read(path)
    assert len(found.annotations) == counts["user_annotation"]
    assert len(found.ops) == counts["cpu_op"]
    assert len(found.calls) == counts["cuda_runtime"] + counts.get("cuda_driver", 0)
    for sort, cat in (("kernel", "kernel"), ("copy", "gpu_memcpy"), ("memset", "gpu_memset")):
        assert sum(event.sort == sort for event in found.gpu) == counts.get(cat, 0)
    assert found.profiler_steps == 3
    assert found.labels == {found.story.label: 3}
    assert found.devices[0]["name"] == "NVIDIA H200"


# ── In pieces ─────────────────────────────────────────────────────────────────────────────────────


def pieces(path, monkeypatch, size=512) -> int:
    """How many pieces a file is read in, with blocks of this size."""
    monkeypatch.setattr(reader, "BLOCK", size)
    try:
        blocks = reader.read_blocks(path, 1, False, lambda share: None, path)
        blocks = reader.utf8(path, blocks, path)
        return sum(1 for _ in reader.cut(blocks))
    except reader.NotInPieces:
        return 0


@pytest.mark.parametrize("form", FORMS)
def test_pieces_make_the_same_trace(tmp_path, monkeypatch, form):
    plain = read(write(tmp_path, SMALL, "plain.json"))
    path = write(tmp_path, FORMS[form], "t.json")
    monkeypatch.setattr(reader, "BLOCK", 512)
    found = read(path)
    assert (found.ops, found.calls, found.gpu) == (plain.ops, plain.calls, plain.gpu)
    assert (found.devices, found.annotations) == (plain.devices, plain.annotations)


@pytest.mark.parametrize(("script", "mode", "backend"), recordings())
def test_a_recording_in_pieces(monkeypatch, script, mode, backend):
    path = recording(script, mode, backend)
    whole = read(path)
    assert pieces(path, monkeypatch, 4096) > 5
    assert read(path) == whole


@pytest.mark.parametrize("indent", [None, 1, 4])
@pytest.mark.parametrize("size", [300, 700, 5000])
def test_faults_have_their_place_in_pieces_too(tmp_path, monkeypatch, indent, size):
    events = [
        op("mul", 10 * i, 5) | {"args": {"x": [{"name": "},"}, {"ts": 1}]}} for i in range(99)
    ]
    text = json.dumps(trace(events, op("HERE", 2, 1), events), indent=indent)
    for bad in ("a\\qb", "a\tb"):
        path = write(tmp_path, text.replace("HERE", bad).encode())
        whole = error(path)
        monkeypatch.setattr(reader, "BLOCK", size)
        assert error(path) == whole
        monkeypatch.undo()


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("indent", [None, 1])
def test_a_fault_is_placed_without_the_whole_file_in_memory(tmp_path, monkeypatch, pack, indent):
    """At both ends and in the middle of a file of several blocks."""
    monkeypatch.setattr(reader, "whole", lambda *_: pytest.fail("the whole file was taken"))
    text = json.dumps(trace([op(f"o{i}", i, 5) for i in range(30_000)]), indent=indent)
    assert len(text) > 3 * reader.BLOCK
    for number in (0, 15_000, 29_999):
        at = text.index(f'"o{number}"') + 2
        faults = {
            "raw control character 0x01 in a string": text[:at] + "\x01" + text[at:],
            "unexpected token `True`": text[: at - 2] + "True" + text[at + 1 + len(str(number)) :],
            "invalid \\escape: an unescaped Windows path?": text[:at] + "\\W" + text[at:],
        }
        for words, damaged in faults.items():
            message = error(write(tmp_path, pack(damaged.encode())))
            assert words in message
            start = at - 2 if "True" in words else at
            expected = text.count("\n", 0, start) + 1, start - text.rfind("\n", 0, start)
            assert place(message) == expected
        if number:  # else a single block is left
            message = error(write(tmp_path, pack(text[:at].encode())))
            line = text.count("\n", 0, at) + 1
            assert f"unexpected end of file in line {line}: unterminated string" in message
        soon = text.replace(f'"name": "o{number}"', '"ts": "soon"')
        assert read(write(tmp_path, pack(soon.encode()))).odd_events == 1
        # As far as it is sound, all the same.
        found = read(write(tmp_path, pack(faults["unexpected token `True`"].encode())), True)
        assert (len(found.ops), found.left_out_events, len(found.devices)) == (29_999, 1, 1)


def test_what_cannot_be_cut_has_a_limit(tmp_path, monkeypatch):
    """As a file of blanks behind its first event."""
    text = json.dumps(SMALL)
    for name, size in (("BLOCK", 1000), ("MOST", 3000), ("WHOLE", 9000)):
        monkeypatch.setattr(reader, name, size)
    assert len(read(write(tmp_path, (text + " " * 4000).encode())).ops) == 3
    assert "no list of events to be read one by one" in error(
        write(tmp_path, (text + " " * 9000).encode())
    )


def test_what_stands_before_the_events_can_be_at_fault(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "BLOCK", 1000)
    text = json.dumps(trace([op("mul", i, 5) for i in range(99)]))
    message = error(
        write(tmp_path, text.replace('"schemaVersion": 1', '"schemaVersion": x').encode())
    )
    assert "unexpected token `x`" in message and place(message) == (1, 19)


def test_lists_of_objects_and_second_lists_do_not_mislead(tmp_path, monkeypatch):
    """What looks like a cut between events, and is none."""
    odd = trace([op("mul", i, 1) | {"x": [{"ph": "X"}, {"ph": "X"}]} for i in range(50)])
    more = [op("no", i, 1) for i in range(50)]
    for content in (odd, odd | {"behind": more}, {"before": {"traceEvents": more}} | odd):
        path = write(tmp_path, content)
        whole = read(path)
        monkeypatch.setattr(reader, "BLOCK", 1000)
        assert read(path) == whole and len(whole.ops) == 50
        monkeypatch.undo()


# ── Salvage ───────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("pack", [bytes, gzip.compress])
@pytest.mark.parametrize("size", [400, 1 << 20])
def test_a_cut_file_is_salvaged_up_to_its_end(tmp_path, monkeypatch, pack, size):
    events = [op(f"o{i}", 10 * i, 5) for i in range(40)]
    text = json.dumps(trace(events, device=None), indent=1)
    monkeypatch.setattr(reader, "BLOCK", size)
    for number in (1, 7, 39):
        cut = text[: text.index(f'"o{number}"') + 3]
        path = write(tmp_path, pack(cut.encode()))
        error(path)
        found = read(path, salvage=True)
        assert [span.name for span in found.ops] == [f"o{i}" for i in range(number)]
        lost = len(cut) - cut.rindex("{")
        assert lost - 60 <= found.left_out <= lost + 60 and found.left_out_events == 1


def test_an_event_that_is_broken_costs_no_other(tmp_path):
    text = json.dumps(trace([op(f"o{i}", i, 5) for i in range(9)]))
    path = write(tmp_path, text.replace('"o4"', '"o\x01"').encode())
    found = read(path, salvage=True)
    assert [span.name for span in found.ops] == [f"o{i}" for i in range(9) if i != 4]
    assert found.left_out_events == 1 and found.devices


STANDS = {"before": lambda file: file, "behind": lambda file: dict(reversed(file.items()))}


@pytest.mark.parametrize("size", [700, 1 << 20])
@pytest.mark.parametrize("stands", STANDS)
def test_salvage_keeps_what_stands_around_the_events(tmp_path, monkeypatch, size, stands):
    """The GPU's properties and our story, before the events or behind them."""
    monkeypatch.setattr(reader, "BLOCK", size)
    whole = trace([op(f"o{i}", i, 5) for i in range(20)], about=story())
    text = json.dumps(STANDS[stands](whole))
    for number in (0, 10, 19):
        path = write(tmp_path, text.replace(f'"o{number}"', '"o\x01"').encode())
        found = read(path, salvage=True)
        assert [span.name for span in found.ops] == [f"o{i}" for i in range(20) if i != number]
        assert (found.left_out_events, found.story, len(found.devices)) == (1, STORY, 1)


@pytest.mark.parametrize("stands", STANDS)
def test_salvage_keeps_the_events_where_what_stands_around_is_broken(tmp_path, stands):
    text = json.dumps(STANDS[stands](trace([op(f"o{i}", i, 5) for i in range(9)])))
    path = write(tmp_path, text.replace("NVIDIA", "NVIDIA\x01").encode())
    error(path)
    found = read(path, salvage=True)
    assert len(found.ops) == 9 and found.devices == () and found.left_out > 300
    assert found.left_out_events == 0


def test_salvage_gives_up_an_event_without_end_and_no_other(tmp_path, monkeypatch):
    monkeypatch.setattr(reader, "BLOCK", 1000)
    monkeypatch.setattr(reader, "MOST", 4000)
    text = json.dumps(trace([op(f"o{i}", i, 5) for i in range(60)]))
    path = write(tmp_path, text.replace('"o30"', '"' + "x" * 20_000).encode())
    found = read(path, salvage=True)
    assert [span.name for span in found.ops] == [f"o{i}" for i in range(60) if i != 30]
    assert 20_000 < found.left_out < 20_300


def test_a_long_event_at_a_broken_end_is_kept(tmp_path):
    long = op("o1", 1, 5) | {"args": {"stack": ["x" * 50] * 200}}
    text = json.dumps(trace(op("o0", 0, 5), long))
    found = read(write(tmp_path, text[:-20].encode()), salvage=True)
    assert [span.name for span in found.ops] == ["o0", "o1"]
    assert 0 < found.left_out < 60 and found.left_out_events == 0


def test_a_sound_file_loses_nothing_by_salvage():
    assert read(recording("04_a"), salvage=True) == read(recording("04_a"))


# ── Times ─────────────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("written", "nanoseconds"),
    [
        ("1790857026123456.789", 1790857026123456789),  # the epoch: a float would end in 750
        ("5159173031257.428", 5159173031257428),
        ("5159173031257", 5159173031257000),
        ('"5159173031257.428"', 5159173031257428),
        ('"1790857026123456.789"', 1790857026123456789),
        ("5.15e12", 5150000000000000),
        ("0.001", 1),
        ("9007199254740993.001", 9007199254740993001),
    ],
)
def test_times_keep_their_nanoseconds(tmp_path, written, nanoseconds):
    text = json.dumps(trace(region(0, 10), kernel(1, 5, 2)))
    path = write(tmp_path, text.replace(str(START), written).replace(str(START + 5), written)
                 .encode())  # fmt: skip
    found = read(path)
    assert found.annotations[0].start == found.gpu[0].start == nanoseconds


def test_every_time_of_the_profiler_fits_a_float():
    """Microseconds since the start of a quarter; around powers of two the last bit matters."""
    rng = random.Random(1)
    for low, high in ((0, 10**6), (2**41, 2**42), (2**42, 2**52 // 1000), (2**42, 2**43)):
        for _ in range(5000):
            ns = rng.randrange(1000 * low, 1000 * high)
            assert parser._nanoseconds(float(f"{ns // 1000}.{ns % 1000:03}")) == ns
            assert parser._nanoseconds(-float(f"{ns // 1000}.{ns % 1000:03}")) == -ns


@pytest.mark.parametrize("size", [2000, 1 << 20])
def test_one_longer_time_makes_all_decimals(tmp_path, monkeypatch, size):
    monkeypatch.setattr(reader, "BLOCK", size)
    late = "1790857026123456.789"
    text = json.dumps(trace([op("mul", i, 5) for i in range(40)], op("mul", 40, "1.234")))
    found = read(write(tmp_path, text.replace(str(START + 40), late).encode()))
    assert found.ops[-1].start == 1790857026123456789
    assert found.ops[-1].end == 1790857026123456789 + 1234
    assert [span.start for span in found.ops[:40]] == [1000 * (START + i) for i in range(40)]


def test_recorded_times_are_exact():
    path = recording("04_a")
    written = [
        (int(event["ts"] * 1000), int((event["ts"] + event["dur"]) * 1000))
        for event in load(path)["traceEvents"]
        if event.get("cat") == "kernel"
    ]
    found = [(event.start, event.end) for event in read(path).gpu if event.sort == "kernel"]
    assert found == written


@pytest.mark.parametrize("duration", [-1, 0, "0", "-1.0", None, "NaN"])
def test_a_range_without_a_duration_did_not_finish(tmp_path, duration):
    open_range = region(0, duration)
    if duration is None:
        del open_range["dur"]
    found = read(write(tmp_path, trace(open_range, region(100, 10))))
    assert [span.end is None for span in found.annotations] == [True, False]


@pytest.mark.parametrize(
    "change",
    [{"dur": -3}, {"dur": None}, {"ts": 0, "dur": 0}, {"ts": 0}, {"ts": None}, {"ts": "NaN"}],
)
def test_a_kernel_without_time_has_an_unknown_one(tmp_path, change):
    event = kernel(1, 5, 2) | change
    found = read(write(tmp_path, trace(region(0, 10), event)))
    assert found.gpu[0].duration is None


def test_a_kernel_too_short_for_its_clock_took_no_time(tmp_path):
    """0 beside a real moment is a measurement, not a hole."""
    found = read(write(tmp_path, trace(region(0, 10), kernel(1, 5, 0))))
    assert found.gpu[0].duration == 0


# ── Fields of other hands ─────────────────────────────────────────────────────────────────────────


def test_numbers_as_text_are_numbers(tmp_path):
    plain = trace(forward(100, ("mul", "k", 7)))
    text = copies.deepcopy(plain)
    for event in text["traceEvents"]:
        for key in ("ts", "dur"):
            if key in event:
                event[key] = f"{event[key]}.000"
        for key in ("correlation", "registers per thread", "shared memory"):
            if key in event["args"]:
                event["args"][key] = str(event["args"][key])
        for key in ("grid", "block"):
            if key in event["args"]:
                event["args"][key] = [str(size) for size in event["args"][key]]
    assert same(write(tmp_path, text, "text.json"), write(tmp_path, plain, "plain.json"))


@pytest.mark.parametrize("value", ["N/A", "", None, -1, 1.5, True, [], {}, "inf", "nan", "12x"])
def test_what_is_no_number_is_unknown_and_not_0(tmp_path, value):
    fields = ("registers per thread", "shared memory", "bytes", "correlation", "grid")
    event = kernel(1, 5, 2)
    event["args"] |= dict.fromkeys(fields, value)
    found = read(write(tmp_path, trace(region(0, 10), event))).gpu[0]
    assert (found.registers, found.shared_memory, found.bytes) == (None, None, None)
    assert (found.correlation, found.grid) == (None, None)


@pytest.mark.parametrize("value", [0, "0", None, "", -7])
def test_correlation_0_joins_nothing(tmp_path, value):
    found = read(write(tmp_path, trace(launch(value, 2), kernel(value, 5, 2))))
    assert (found.calls[0].correlation, found.gpu[0].correlation) == (None, None)


@pytest.mark.parametrize("name", ["a thread", 7, 7.5, [1, 2], {"a": 1}, None, True])
def test_processes_and_threads_may_be_called_anything(tmp_path, name):
    events = forward(100, ("mul", "k", 7))
    for event in events:
        event |= {"pid": name, "tid": name}
        event["args"] |= {"stream": name, "device": name}
    seen = observe(read(write(tmp_path, trace(events))))
    assert [step.path for step in seen.steps] == [("aten::mul",)]
    assert as_json(compare(seen))["kernels_per_forward"] == 1


def test_a_story_counts_when_it_is_whole(tmp_path):
    assert read(write(tmp_path, trace(region(0, 9), about=story()))).story == STORY
    for broken in (
        {},
        [],
        "text",
        {"label": LABEL},
        story(shape=[1, 2]),
        story(device="H200"),
        story(versions={}),
        {key: value for key, value in story().items() if key != "script"},
    ):
        assert read(write(tmp_path, trace(region(0, 9), about=broken))).story is None


# ── Ids of every spelling ─────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("spell", [str, float, lambda number: f"{number}"])
def test_an_id_is_one_however_rows_spell_it(tmp_path, spell):
    """Text in one row and a number in the next."""
    plain = trace(forward(100, ("mul", "k", 7), ("add", "k", 7)))
    other = copies.deepcopy(plain)
    for event in other["traceEvents"][2::2]:
        event |= {"pid": spell(event["pid"]), "tid": spell(event["tid"])}
        for key in ("correlation", "External id", "stream", "device"):
            if key in event["args"]:
                event["args"][key] = spell(event["args"][key])
    assert same(write(tmp_path, other, "other.json"), write(tmp_path, plain, "plain.json"))


@pytest.mark.parametrize("name", ["007", "+7", " 7", "7.5", "0x7", "७", "7" * 30, "-0"])
def test_a_name_that_is_no_plain_number_stays_text(tmp_path, name):
    found = read(write(tmp_path, trace(op("mul", 1, 5) | {"tid": name})))
    assert found.ops[0].thread[1] == name


# ── External id ───────────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize("key", ["External id", "external id"])
def test_external_ids_are_read(tmp_path, key):
    events = [region(0, 50), op("mul", 1, 9), launch(7, 2), kernel(7, 60, 5), op("view", 20, 5)]
    for event, number in zip(events, (1, 4242, 4242, "4242", 9), strict=True):
        event["args"] = {k: v for k, v in event["args"].items() if k != "External id"}
        event["args"][key] = number
    found = read(write(tmp_path, trace(events)))
    assert (found.ops[0].external, found.calls[0].external, found.gpu[0].external) == (4242,) * 3
    assert found.annotations[0].external == 1
    assert found.ops[1].external is None  # nothing was launched under it: nobody asks


@pytest.mark.parametrize("value", [0, -1, None, "", "N/A", [], 10**30, 1.5])
def test_no_external_id(tmp_path, value):
    event = launch(7, 2)
    event["args"]["External id"] = value
    assert read(write(tmp_path, trace(event))).calls[0].external is None


# ── Work without a time ───────────────────────────────────────────────────────────────────────────

NO_TIME = [
    {"ts": None},
    {"ts": "NaN"},
    {"ts": "soon"},
    {"ts": 1e300},
    {"ts": 0, "dur": 0},
    {"ts": 0},
]


@pytest.mark.parametrize("change", NO_TIME)
def test_work_without_a_time_is_not_at_time_0(tmp_path, change):
    events = [region(0, 10), op("mul", 1, 5), launch(7, 2)]
    events[2]["args"]["External id"] = 2
    found = read(write(tmp_path, trace(region(50, 10), [event | change for event in events])))
    assert [span.start for span in found.annotations] == [1000 * (START + 50)]
    assert (found.ops, found.calls) == ((), ())
    assert sorted(one.sort for one in found.untimed) == ["call", "op", "region"]
    [call] = (one for one in found.untimed if one.sort == "call")
    assert (call.name, call.correlation, call.external) == ("cudaLaunchKernel", 7, 2)


@pytest.mark.parametrize("zero", [-1000, -1, 0, 1])
def test_times_may_begin_at_or_before_0(tmp_path, zero):
    events = [region(0, 50), op("mul", 1, 9), launch(7, 2), kernel(7, 20, 5)]
    shifted = [event | {"ts": event["ts"] - START + zero} for event in events]
    found = read(write(tmp_path, trace(shifted)))
    assert found.untimed == () and found.annotations[0].start == 1000 * zero
    assert (found.gpu[0].start, found.gpu[0].duration) == (1000 * (zero + 20), 5000)


@pytest.mark.parametrize("duration", [1e15, 5e12, "1e300"])
def test_a_duration_longer_than_any_recording_is_unknown(tmp_path, duration):
    events = [
        event | {"dur": duration} for event in (region(0, 10), op("a", 1, 2), kernel(1, 5, 2))
    ]
    found = read(write(tmp_path, trace(events, region(90, 5))))
    assert (found.annotations[0].end, found.ops[0].end, found.gpu[0].duration) == (None,) * 3


def test_the_empty_label_is_a_label(tmp_path):
    found = read(write(tmp_path, trace(region(0, 10, ""), region(20, 10, ""), region(40, 5, "a"))))
    assert found.labels == {"": 2, "a": 1}


# ── Begins and ends ───────────────────────────────────────────────────────────────────────────────


def halves(event: dict) -> list[dict]:
    begin = {key: value for key, value in event.items() if key != "dur"} | {"ph": "B"}
    end = {"ph": "E", "pid": event["pid"], "tid": event["tid"], "ts": event["ts"] + event["dur"]}
    return [begin, end]


@pytest.mark.parametrize("order", ["in time", "as they come", "shuffled"])
@pytest.mark.parametrize("size", [300, 1 << 20])
def test_begins_and_ends_are_spans(tmp_path, monkeypatch, order, size):
    events = forward(100, ("matmul bmm", "k", 7), ("mul", "k", 3)) + forward(3000, ("mul", "k", 8))
    both = [half for event in events for half in halves(event)]
    if order == "in time":
        both.sort(key=lambda half: half["ts"])
    elif order == "shuffled":
        random.Random(1).shuffle(both)
    plain, other = write(tmp_path, trace(events), "x.json"), write(tmp_path, trace(both), "be.json")
    monkeypatch.setattr(reader, "BLOCK", size)
    a, b = read(plain), read(other)
    for name in ("annotations", "ops", "calls", "gpu"):
        assert sorted(getattr(a, name), key=repr) == sorted(getattr(b, name), key=repr)
    assert (b.unpaired, b.processes) == (0, a.processes)


def test_halves_without_another(tmp_path):
    begin, end = halves(op("mul", 10, 5))
    found = read(write(tmp_path, trace(end | {"ts": START}, region(0, 50), begin)))
    assert found.unpaired == 1
    assert [(span.name, span.end) for span in found.ops] == [("mul", None)]


@pytest.mark.parametrize("phase", ["b", "i", "S", None, "", 5])
def test_work_of_another_phase_is_counted(tmp_path, phase):
    found = read(write(tmp_path, trace(region(0, 50), op("mul", 1, 5) | {"ph": phase})))
    assert (found.unread_work, found.ops) == (1, ())


def test_what_is_no_work_is_no_loss(tmp_path):
    arrow = {"ph": "s", "cat": "ac2g", "id": 5, "ts": START, "pid": 1, "tid": 1, "name": "ac2g"}
    found = read(write(tmp_path, trace(region(0, 50), arrow, arrow | {"ph": "f"})))
    assert (found.unread_work, found.odd_events, found.unpaired, found.untimed) == (0, 0, 0, ())


@pytest.mark.parametrize(("script", "mode", "backend"), recordings())
def test_a_recording_has_nothing_odd(script, mode, backend):
    found = read(recording(script, mode, backend))
    assert (found.unread_work, found.odd_events, found.unpaired, found.untimed) == (0, 0, 0, ())


# ── Numbers that JSON does not know ───────────────────────────────────────────────────────────────


@pytest.mark.parametrize("token", ["NaN", "Infinity", "-Infinity", "-NaN"])
def test_non_finite_numbers_are_missing_and_counted(tmp_path, token):
    text = json.dumps(trace(region(0, 10), kernel(1, 5, 2, bytes="HERE", registers="HERE")))
    text = text.replace('"grid": [16, 8, 8]', '"grid": [16, "HERE", 8]')
    text = text.replace('"schemaVersion": 1', '"schemaVersion": "HERE"')
    found = read(write(tmp_path, text.replace('"HERE"', token).encode()))
    assert found.non_finite == 4
    assert (found.gpu[0].bytes, found.gpu[0].grid) == (None, None)
    assert found.gpu[0].registers == 168  # what is a number stays


@pytest.mark.parametrize("field", ["ts", "dur"])
def test_a_time_that_is_nan_is_unknown(tmp_path, field):
    event = kernel(1, 5, 2) | {field: "HERE"}
    text = json.dumps(trace(region(0, 10), event)).replace('"HERE"', "NaN")
    found = read(write(tmp_path, text.encode()))
    assert (found.gpu[0].duration, found.non_finite) == (None, 1)


@pytest.mark.parametrize(
    "name", ["NaN", "k<NaN, -Infinity>", "inf", 'a "NaN" b', "\\", '\\"NaN', "x\\\\", "Infinity\n"]
)
def test_names_may_spell_them(tmp_path, name):
    """And a real one beside the name is still found."""
    text = json.dumps(trace(region(0, 10), kernel(1, 5, 2, name, bytes="HERE")))
    found = read(write(tmp_path, text.replace('"HERE"', "NaN").encode()))
    assert (found.gpu[0].name, found.non_finite) == (name, 1)


# ── What is no JSON ───────────────────────────────────────────────────────────────────────────────

# Where a value stands: in the arguments, as a time, at the top, in a list.
HOLES = {
    "argument": '"shared memory": 0',
    "time": '"dur": 2',
    "top": '"schemaVersion": 1',
    "list": "[16",
}
INDENTS = [None, 1]


@pytest.mark.parametrize("hole", HOLES)
@pytest.mark.parametrize("indent", INDENTS)
@pytest.mark.parametrize(
    "token", ["inf", "nan", "nan0", "tru", "True", "False", "None", "undefined", "N", "Inf"]
)
def test_words_that_are_no_values_are_named_and_placed(tmp_path, token, hole, indent):
    text = json.dumps(trace(region(0, 10), kernel(1, 5, 2)), indent=indent)
    text = re.sub(r"\[\s*16", "[16", text)
    old = HOLES[hole]
    new = re.sub(r"\d+$", token, old)
    before = text.index(old)
    assert text.count(old) == 1
    message = error(write(tmp_path, text.replace(old, new).encode()))
    assert f"not valid JSON: unexpected token `{token}`" in message
    at = before + len(new) - len(token)
    assert place(message) == (text.count("\n", 0, at) + 1, at - text.rfind("\n", 0, at))


@pytest.mark.parametrize("token", ["-inf", "-nan", "+1", "+inf", "0x1f", "01", "1.", ".5", "'a'"])
def test_numbers_as_no_json_writes_them_are_placed(tmp_path, token):
    text = json.dumps(trace(region(0, 10), kernel(1, 5, 2)))
    old = '"shared memory": 0'
    message = error(write(tmp_path, text.replace(old, f'"shared memory": {token}').encode()))
    assert "not valid JSON: unexpected" in message
    start = text.index(old) + len('"shared memory": ') + 1
    line, column = place(message)
    assert line == 1 and start <= column <= start + len(token)


@pytest.mark.parametrize("before", ["NaN", "-Infinity", "[NaN, Infinity, NaN]"])
def test_a_place_behind_numbers_that_json_does_not_know(tmp_path, before):
    text = json.dumps(trace(region(0, 10), kernel(1, 5, 2, bytes="A", registers="B")))
    text = text.replace('"A"', before)
    message = error(write(tmp_path, text.replace('"B"', "oops").encode()))
    assert "unexpected token `oops`" in message
    assert place(message) == (1, text.index('"B"') + 1)


@pytest.mark.parametrize("byte", range(0x20))
def test_raw_control_characters_in_strings(tmp_path, byte):
    for mark in ("HERE", "HE\\u0001RE"):  # an escaped one is fine
        text = json.dumps(trace(region(0, 10, "ab"), op("HERE", 1, 5)), indent=1)
        text = text.replace("HERE", mark)
        assert read(write(tmp_path, text.encode())).ops
    broken = text.encode().replace(b"HE\\u0001RE", b"HE" + bytes([byte]) + b"RE")
    message = error(write(tmp_path, broken))
    assert f"raw control character 0x{byte:02x} in a string" in message
    at = broken.index(b"HE") + 2
    assert place(message) == (broken.count(b"\n", 0, at) + 1, at - broken.rfind(b"\n", 0, at))


@pytest.mark.parametrize("path", [r"C:\work\x", r"D:\data", r"a\_b", r"a\u12", r"a\U0001"])
def test_unescaped_windows_paths(tmp_path, path):
    bad = re.search(r"\\(?:[^bnrtfu]|u(?![0-9a-f]{4}))", path).start()
    text = json.dumps(trace(region(0, 10), op("HERE", 1, 5))).replace("HERE", path)
    message = error(write(tmp_path, text.encode()))
    assert "invalid \\escape: an unescaped Windows path?" in message
    assert place(message) == (1, text.index(path) + bad + 1)


@pytest.mark.parametrize("end", ["}]", "]", "}}", "}"])
def test_trailing_commas(tmp_path, end):
    text = json.dumps(trace(region(0, 10)))
    at = text.rindex(end)
    message = error(write(tmp_path, f"{text[:at]},{text[at:]}".encode()))
    assert f"trailing comma before {end[0]}" in message
    assert place(message) == (1, at + 2)


def test_bytes_that_are_no_text(tmp_path):
    text = json.dumps(trace(region(0, 10), op("HERE", 1, 5))).encode()
    for bad in (b"\xff", b"\xc3", b"\xed\xa0\x80"):
        assert "not valid JSON" in error(write(tmp_path, text.replace(b"HERE", bad)))


# ── What is cut ───────────────────────────────────────────────────────────────────────────────────

LITTLE = [region(100, 30, "wört"), op('a"b\\', 101, 20), launch(5, 102) | {"x": [True, None]}]
CUT = {
    "one line": json.dumps(trace(LITTLE, device=None), ensure_ascii=False).encode() + b"\n",
    "many lines": json.dumps(trace(LITTLE, device=None), indent=1).encode() + b"\n",
    "list": json.dumps(LITTLE).encode() + b" \n",
    "utf-8 mark": b"\xef\xbb\xbf" + json.dumps(LITTLE).encode(),
}


@pytest.mark.parametrize("form", CUT)
def test_cut_at_every_byte(tmp_path, form):
    whole = CUT[form]
    path = tmp_path / "cut.json"
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        if end >= len(whole.rstrip()):
            assert len(read(path).ops) == 1  # only blanks are missing
            continue
        message = error(path)
        if whole[:end] not in (b"\xef", b"\xef\xbb"):
            assert ("empty trace" if whole[:end] in (b"", b"\xef\xbb\xbf") else "truncated") in (
                message
            ), whole[:end]


@pytest.mark.parametrize("inside", ["name", "time", "between"])
def test_a_cut_says_where_the_file_ends(tmp_path, inside):
    text = json.dumps(trace(LITTLE), indent=1)
    mark = {"name": "wör", "time": '"dur": 3', "between": "},"}[inside]
    mark = json.dumps(mark)[1:-1] if inside == "name" else mark
    cut = text[: text.index(mark) + len(mark)]
    message = error(write(tmp_path, cut.encode()))
    assert f"end of file in line {cut.count(chr(10)) + 1}:" in message
    assert ("unterminated string" in message) == (inside == "name")


def test_gzip_cut_at_every_byte_or_damaged(tmp_path):
    whole = gzip.compress(json.dumps(LITTLE).encode())
    path = tmp_path / "cut.json.gz"
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        error(path)
    for at in range(10, len(whole)):  # behind the header, whose time and name are free
        path.write_bytes(whole[:at] + bytes([whole[at] ^ 0xFF]) + whole[at + 1 :])
        assert "damaged gzip" in error(path)


@pytest.mark.parametrize("content", [b"", b" \n", b"\xef\xbb\xbf", b"\xff\xfe"])
def test_nothing_is_an_empty_trace(tmp_path, content):
    assert "empty trace (0 bytes)" in error(write(tmp_path, content))
    packed = write(tmp_path, gzip.compress(content), "t.json.gz")
    assert "empty trace (0 bytes after decompression)" in error(packed)


# ── JSON, but no trace ────────────────────────────────────────────────────────────────────────────


@pytest.mark.parametrize(
    ("content", "words"),
    [
        ({}, "it has no traceEvents"),
        ({"nodes": [], "schema": "1"}, "it has no traceEvents"),
        ([], "no events"),
        ({"traceEvents": []}, "no events"),
        ("text", "not a trace"),
        (5, "not a trace"),
        (None, "not a trace"),
        ({"traceEvents": {}}, "not a trace"),
        ({"traceEvents": None}, "not a trace"),
        ([[1]], "not a trace"),
        ([1], "not a trace"),
        ({"traceEvents": [{"ph": "X", "ts": "soon"}]}, "$.traceEvents[0].ts"),
        ({"traceEvents": [{"ph": "X", "cat": ["kernel"]}]}, "$.traceEvents[0].cat"),
        ({"traceEvents": [{"ph": "M", "name": "process_name"}]}, "only metadata"),
        (trace(kernel(1, 2, 3) | {"cat": "Kernel"}), "unsupported old Kineto schema"),
        (trace(op("mul", 2, 3) | {"cat": "Operator"}), "unsupported old Kineto schema"),
    ],
)
def test_other_json_is_refused(tmp_path, content, words):
    path = tmp_path / "other.json"
    path.write_text(json.dumps(content))
    assert words in error(path)


def test_depth_without_end(tmp_path):
    for text in (b"[" * 100_000, b'{"a":' * 100_000, b'{"traceEvents":[],"x":' + b"[" * 100_000):
        error(write(tmp_path, text))


def test_files_that_cannot_be_read(tmp_path):
    assert "No such file" in error(tmp_path / "nowhere.json")
    assert "directory" in error(tmp_path)


# ── Anything at all ───────────────────────────────────────────────────────────────────────────────

VALUES = [
    None, True, 0, -1, 10**30, 1.5, -0.0, "", "text", "0", "1e9", "NaN", [], [1], ["a", None], {},
    {"a": 1}, 2**63, 5_150_000_000_100, "5150000000100.5",
]  # fmt: skip


def mutated(seed: int) -> bytes:
    """A trace with up to four faults: of its events, its fields or its bytes."""
    rng = random.Random(seed)
    whole = copies.deepcopy(
        trace(
            forward(
                100, ("matmul bmm", "memset", 1), ("matmul bmm", "k<1>", 9), ("mul", "copy", 3)
            ),
            forward(3000, ("mul", "k<2>", 8)),
            region(5000, -1),
            copy(99, 10, 5),
            about=story(),
        )
    )
    events = whole["traceEvents"]
    for _ in range(rng.randint(1, 4)):
        kind = rng.randrange(7)
        event = rng.choice(events) if events else {}
        if kind == 0:
            events.remove(event) if event in events else None
        elif kind == 1:
            events.append(copies.deepcopy(event))
        elif kind == 2:
            rng.shuffle(events)
        elif kind in (3, 4) and event:
            event[rng.choice(list(event))] = rng.choice(VALUES)
        elif kind == 5 and isinstance(event.get("args"), dict) and event["args"]:
            event["args"][rng.choice(list(event["args"]))] = rng.choice(VALUES)
        elif kind == 6:
            place = rng.choice([whole, whole["profiling_attention"]])
            key = rng.choice([key for key in place if key != "traceEvents"] or ["x"])
            if key != "profiling_attention":
                place[key] = rng.choice(VALUES)
    data = json.dumps(whole).encode()
    if rng.random() < 0.3:
        data = bytearray(data)
        for _ in range(rng.randint(1, 3)):
            data[rng.randrange(len(data))] = rng.randrange(256)
        data = bytes(data)
    return gzip.compress(data) if rng.random() < 0.1 else data


def test_any_fault_is_one_error_or_an_answer(tmp_path, capsys):
    answers = 0
    for seed in range(600):
        path = write(tmp_path, mutated(seed))
        try:
            seen = observe(read(path))
        except UserError as error:
            assert "\n" not in str(error) and len(str(error)) < 600, seed
            continue
        answers += 1
        assert isinstance(seen, Observation)
        found = as_json(compare(seen))
        json.dumps(found, allow_nan=False)
        assert found["regions"] >= 1
        report.show(console(), compare(seen))
    assert 100 < answers < 590  # the faults are neither all fatal nor all harmless
    capsys.readouterr()


KEYS = [
    "ph",
    "cat",
    "name",
    "ts",
    "dur",
    "pid",
    "tid",
    "args",
    "correlation",
    "grid",
    "traceEvents",
]
ANYTHING = st.recursive(
    st.sampled_from(VALUES) | st.integers() | st.floats() | st.text(max_size=9),
    lambda inside: (
        st.lists(inside, max_size=3)
        | st.dictionaries(st.sampled_from(KEYS) | st.text(max_size=3), inside, max_size=4)
    ),
    max_leaves=6,
)
USUAL = st.fixed_dictionaries(
    {
        "ph": st.sampled_from(["X", "X", "X", "M", "i"]),
        "cat": st.sampled_from(["cpu_op", "kernel", "cuda_runtime", "user_annotation", "ac2g"]),
        "ts": st.integers(0, 10**16) | st.floats(0, 9e12),
        "pid": st.integers(0, 3),
        "args": st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=3),
    },
    optional={"dur": st.floats(-1, 1e4), "name": ANYTHING},
)
EVENTS = st.lists(USUAL, min_size=5, max_size=40)
ODD_EVENTS = st.lists(
    USUAL | st.dictionaries(st.sampled_from(KEYS), ANYTHING, max_size=5) | ANYTHING, max_size=25
)


@hypothesis.settings(
    deadline=None,
    max_examples=200,
    derandomize=True,
    phases=[hypothesis.Phase.generate],  # making a failure small takes minutes
)
@hypothesis.given(
    events=EVENTS | EVENTS | ODD_EVENTS,
    around=st.dictionaries(st.text(max_size=3), EVENTS | ANYTHING, max_size=2),
    behind=st.booleans(),
    indent=st.sampled_from([None, 1]),
    cut=st.none() | st.none() | st.integers(0, 10**6),
    size=st.integers(50, 1000),
)
def test_pieces_of_any_size_read_as_the_whole_does(events, around, behind, indent, cut, size):
    """The same trace, or the same error at the same place; salvage takes no less."""
    file = around | {"traceEvents": events} if not behind else {"traceEvents": events} | around
    text = json.dumps(file, indent=indent).encode()
    text = text if cut is None else text[: cut % len(text)]

    def outcome(block, salvage=False):
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr(reader, "BLOCK", block)
            try:
                return read(path, salvage)
            except UserError as error:
                assert "\n" not in str(error)
                return str(error)

    with tempfile.TemporaryDirectory() as folder:
        path = write(Path(folder), text)
        whole, pieces = outcome(1 << 20), outcome(size)
        assert pieces == whole
        if isinstance(whole, Trace):
            assert outcome(1 << 20, salvage=True) == outcome(size, salvage=True) == whole
