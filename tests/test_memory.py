"""Memory over a recording: the allocator's own sums, and whose the blocks are."""

import gzip
import json

import pytest
from build import ROOT, START, THREAD, op, region, trace, write

from common.cli import UserError
from common.read.linked import link
from common.read.memory import memory, thinned
from common.read.trace import read
from common.show.memory import COLUMNS, memory_json, picture, show_memory
from common.show.terminal import console

REAL = ROOT / "tests" / "data" / "traces" / "gpt_stack_shapes_memory.json.gz"


def block(ts, size, address, held, device=0, kind=1):
    args = {"Bytes": size, "Addr": address, "Total Allocated": held, "Total Reserved": 5000,
            "Device Type": kind, "Device Id": device}  # fmt: skip
    return {"ph": "i", "cat": "cpu_instant_event", "s": "t", "name": "[memory]", "pid": THREAD,
            "tid": THREAD, "ts": START + ts, "args": args}  # fmt: skip


def seen_in(tmp_path, *events):
    linked = link(read(write(tmp_path, trace(*events))))
    return linked, memory(linked)


EVENTS = [
    region(0, 100, "model"), op("aten::mm", 5, 20), op("aten::add", 40, 20),
    block(10, 300, 1, 1300), block(45, 500, 2, 1800), block(50, -300, 1, 1500),
    block(55, 100, 3, 1600), block(110, -500, 2, 1100), block(120, -100, 3, 1000),
]  # fmt: skip


def test_peak_and_whose_it_is(tmp_path):
    _, (seen,) = seen_in(tmp_path, EVENTS)
    assert (seen.begin, seen.peak, seen.end, seen.before) == (1000, 1800, 1000, 1000)
    assert [(one.name, one.bytes) for one in seen.by_op] == [("aten::add", 500), ("aten::mm", 300)]
    assert [(one.name, one.bytes, one.blocks) for one in seen.by_label] == [("model", 800, 2)]
    assert [(one.name, one.bytes) for one in seen.by_module] == [(None, 800)]
    assert (seen.taken, seen.returned, seen.reserved, seen.odd) == (3, 3, 5000, 0)


def test_order_in_the_file_does_not_matter(tmp_path):
    _, (one,) = seen_in(tmp_path, EVENTS)
    _, (other,) = seen_in(tmp_path, list(reversed(EVENTS)))
    assert one == other


def test_a_lost_event_is_told(tmp_path, capsys):
    linked, found = seen_in(tmp_path, [event for event in EVENTS if event.get("ts") != START + 50])
    assert found[0].odd == 1
    show_memory(console(), linked, found)
    assert "1 memory event at odds" in capsys.readouterr().out


def test_a_device_each_and_the_cpu_last(tmp_path):
    cpu = [block(10, 8, 9, 8, None, 0)]
    _, found = seen_in(tmp_path, EVENTS, cpu, block(10, 70, 9, 70, device=1))
    assert [(one.device, one.peak) for one in found] == [
        ((1, 0), 1800),
        ((1, 1), 70),
        ((0, None), 8),
    ]


def test_the_curve_thinned_keeps_its_peak(tmp_path):
    _, (seen,) = seen_in(tmp_path, EVENTS)
    for points in (1, 2, 7, 500):
        heights = [held for _, held in thinned(seen, points)]
        assert len(heights) == points and max(heights) == seen.peak
    rows = picture(seen)
    assert all(len(row) <= 10 + COLUMNS for row in rows) and "█" in rows[0]


def test_a_real_recording_adds_up():
    events = json.loads(gzip.decompress(REAL.read_bytes()))["traceEvents"]
    totals = [e["args"]["Total Allocated"] for e in events if e["name"] == "[memory]"]
    (seen,) = memory(link(read(REAL)))
    assert seen.peak == max(totals) and seen.odd == 0 and len(seen.curve) == len(totals)
    for held in (seen.by_op, seen.by_label, seen.by_module):
        assert sum(one.bytes for one in held) + seen.before == seen.peak
    assert {one.name for one in seen.by_label} == {"forward", "backward"}
    assert seen.by_module[0].name == "GPT_0"


def test_report_and_json(capsys):
    linked = link(read(REAL))
    found = memory(linked)
    show_memory(console(), linked, found)
    out = capsys.readouterr().out
    assert "GPU 0: peak 3.35 GiB" in out and "taken before recording began" in out
    (device,) = memory_json(linked, found)["devices"]
    assert device["peak_bytes"] == max(held for _, held in device["curve"]) == found[0].peak
    less = memory_json(linked, found, 3)
    assert less["devices"][0]["left_out"]["by_op"] == len(found[0].by_op) - 3
    assert less["devices"][0]["curve"] is None and len(json.dumps(less)) < 3000


def test_without_memory_the_flag_is_named(tmp_path):
    linked, found = seen_in(tmp_path, region(0, 10))
    with pytest.raises(UserError, match="profile_memory=True"):
        show_memory(console(), linked, found)
    with pytest.raises(UserError, match="profile_memory=True"):
        memory_json(linked, found)
