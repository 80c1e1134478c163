"""Modules and functions that the GPU's time belongs to; against the file, by plain loops."""

import gzip
import json

import pytest
from build import ROOT, THREAD, kernel, launch, op, region, trace, write

from common.cli import UserError
from common.read.linked import link
from common.read.modules import code, folded
from common.read.trace import read
from common.show.modules import modules_json, show_modules
from common.show.terminal import console

REAL = ROOT / "tests" / "data" / "traces" / "gpt_stack_shapes_memory.json.gz"


def frame(name, ts, dur, thread=THREAD):
    event = op(name, ts, dur, thread)
    return event | {"cat": "python_function", "args": {"Python id": 1}}


def model(*more):
    """Two layers of two modules each, and an optimizer behind them."""
    events = [region(0, 300), frame("train.py(1): main", 0, 400), frame("nn.Module: GPT_0", 5, 200)]
    for layer in range(2):
        at = 10 + 50 * layer
        events += [
            frame(f"nn.Module: Block_{layer}", at, 45),
            frame("model.py(9): forward", at + 1, 43),
            frame("torch/nn/functional.py(2): linear", at + 2, 40),
        ]
        for part in range(2):
            number = 1 + 2 * layer + part
            name = f"nn.Module: {('Linear', 'Norm')[part]}_{layer}"
            events += [
                frame(name, at + 2 + 20 * part, 15), op("aten::mm", at + 3 + 20 * part, 10),
                launch(number, at + 4 + 20 * part), kernel(number, 1000 + 10 * number, number, "k"),
            ]  # fmt: skip
    events += [launch(9, 250), kernel(9, 2000, 100, "step")]
    return trace(events, *more)


def found(tmp_path, content):
    return code(link(read(write(tmp_path, content))))


def test_a_module_holds_what_is_launched_in_it(tmp_path):
    seen = found(tmp_path, model())
    (gpt,) = seen.modules
    assert (gpt.name, gpt.kind, gpt.calls, gpt.cpu, gpt.forward) == (
        "GPT_0",
        "GPT",
        1,
        200_000,
        10_000,
    )
    assert [block.forward for block in gpt.inside] == [3_000, 7_000]
    assert [inner.name for inner in gpt.inside[0].inside] == ["Linear_0", "Norm_0"]
    assert (seen.forward, seen.elsewhere, seen.work) == (10_000, 100_000, 110_000)


def test_layers_are_one_line(tmp_path):
    (gpt,) = folded(found(tmp_path, model()).modules)
    (blocks,) = gpt.inside
    assert len(blocks.modules) == 2 and (blocks.calls, blocks.forward) == (2, 10_000)
    assert [(len(one.modules), one.forward) for one in blocks.inside] == [(2, 4_000), (2, 6_000)]


def test_layers_that_differ_stay_apart(tmp_path):
    extra = [frame("nn.Module: Dropout_0", 100, 1)]
    (gpt,) = folded(found(tmp_path, model(extra)).modules)
    assert [len(one.modules) for one in gpt.inside] == [1, 1]


def test_the_innermost_function_of_one_s_own(tmp_path):
    step, k = found(tmp_path, model()).dearest
    assert (step.kernel.name, step.by_frame) == ("step", (("train.py(1): main", False, 100_000),))
    assert k.by_frame == (("model.py(9): forward", False, 10_000),)
    assert {share.place.module for share in k.shares} == {
        "Linear_0", "Norm_0", "Linear_1", "Norm_1"
    }  # fmt: skip


def test_forward_by_a_loop_over_the_file():
    """Launches inside the outermost module's call, on its thread."""
    events = json.loads(gzip.decompress(REAL.read_bytes()))["traceEvents"]
    modules = [e for e in events if e["name"] == "nn.Module: GPT_0"]
    times = {}
    for event in events:
        if event.get("cat") in ("kernel", "gpu_memcpy", "gpu_memset"):
            times.setdefault(event["args"]["correlation"], []).append(event["dur"])
    us = 0.0
    for call in events:
        if call.get("cat") in ("cuda_runtime", "cuda_driver"):
            inside = any(
                m["tid"] == call["tid"] and m["ts"] <= call["ts"] < m["ts"] + m["dur"]
                for m in modules
            )
            us += sum(times.get(call["args"].get("correlation"), [])) if inside else 0
    seen = code(link(read(REAL)))
    assert seen.forward == pytest.approx(1000 * us, abs=100)
    assert seen.backward > seen.forward  # of a model that trains
    assert seen.forward + seen.backward + seen.elsewhere == seen.work
    (gpt,) = seen.modules
    assert sum(inner.backward for inner in gpt.inside) <= gpt.backward


def test_backward_stands_where_its_forward_does():
    for dear in code(link(read(REAL))).dearest:
        for share in dear.shares:
            if share.place.backward:
                assert share.place.label == "backward" and share.place.frame is not None


def test_report_and_json(capsys):
    seen = code(link(read(REAL)))
    show_modules(console(), seen)
    out = capsys.readouterr().out
    assert "  Block ×2 " in out and "h200_real_models.py(52): step" in out
    told = modules_json(seen)
    assert told["modules"][0]["inside"][2]["inside"][0]["module"] == "LayerNorm_0"
    assert "left_out" not in told
    less = modules_json(seen, 2)
    assert less["left_out"] == {"modules": 0, "kernels": 8} and len(less["kernels"]) == 2
    assert len(json.dumps(less)) < 4096


def test_without_stacks_the_flag_is_named(tmp_path):
    seen = found(tmp_path, trace(region(0, 10), op("aten::mm", 1, 5)))
    for shown in (lambda: show_modules(console(), seen), lambda: modules_json(seen)):
        with pytest.raises(UserError, match="with_stack=True"):
            shown()
