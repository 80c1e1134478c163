"""A chain of ops in words: hashes and wrappers of the compiler never reach a reader raw."""

import io
import re

import pytest
from build import recording, recordings
from seen import groups, recorded

from common import scripts
from common.compare.compared import compare_with
from common.read.op_names import chain, said
from common.read.recordings import Siblings
from common.show import report
from common.show.page import page
from common.show.tables import show_groups
from common.show.terminal import console

GRAPH = "## Call CompiledFxGraph fq5xm2l6wsr4h3qz7d6c5x2u3w3y ##"
REGION = "Torch-Compiled Region: 0/0"
RAW = re.compile(r"CompiledFxGraph|Torch-Compiled|##|Region: ?\d|\bf[a-z0-9]{30,}")


@pytest.mark.parametrize(
    ("name", "words"),
    [
        ("aten::masked_fill", "masked_fill"),
        ("mylib::op", "mylib::op"),
        (GRAPH, "compiled graph"),
        (GRAPH.strip("# "), "compiled graph"),
        (REGION, ""),
        ("Torch-Compiled Region: 12/3 (twice)", ""),
        ("triton_poi_fused_mul_0", "mul"),
        ("triton_per_fused__softmax_exp_12", "softmax_exp"),
        (f"triton_poi_fused_{'add_' * 20}0", f"{'add_' * 7}a…"),
    ],
)
def test_one_op_in_words(name, words):
    assert said(name) == words


def test_a_chain_says_each_once():
    assert chain(["aten::matmul", "aten::bmm"]) == "matmul › bmm"
    assert chain([REGION, GRAPH, GRAPH.strip("# "), "aten::mm"]) == "compiled graph › mm"
    assert chain(["aten::to", "aten::_to_copy", "aten::to"]) == "to › _to_copy › to"
    assert chain([]) == chain([REGION]) == "no op"


COMPILED = [what for what in recordings() if what[1] == "compile"]


def compared(what):
    """As the script lays it beside its lesson."""
    seen = recorded(*what)
    script = scripts.load(seen.story.script)
    chosen = {script.Options.chooses: what[2]} if script.Options.chooses else {}
    lesson = script.lesson(script.Options(**chosen))
    return compare_with(seen, lesson.compiled, Siblings(seen))


@pytest.mark.parametrize("what", COMPILED, ids=" ".join)
def test_no_raw_name_in_a_report_of_a_compiled_recording(what):
    out = console()
    out.file = io.StringIO()
    found = compared(what)
    report.show(out, found)
    report.show_difference(out, recorded("04_a"), found.seen)
    text = out.file.getvalue()
    assert any(RAW.search(name) for step in found.seen.steps for name in step.path)
    assert not RAW.search(text), RAW.search(text)
    assert text.count("all of it inside compiled graph") <= 1
    for line in text.splitlines():
        assert line.count("compiled graph") <= 1
    for claim, answer in found.answers:
        assert not RAW.search(claim.sentence + answer.evidence)


def test_no_raw_name_on_the_page_or_in_the_table():
    found = groups(*(recording(*what) for what in COMPILED))
    text = page(found, [], {})
    text = re.sub(r"<style.*?</style>", "", text, flags=re.DOTALL)
    assert "compiled graph" in text and not RAW.search(text)
    out = console()
    out.file = io.StringIO()
    show_groups(out, found)
    assert not RAW.search(out.file.getvalue())
