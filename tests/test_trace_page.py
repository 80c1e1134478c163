"""`look --html`: the report as a page, with the roofline; nothing from elsewhere or unescaped."""

import re
from functools import partial
from xml.etree import ElementTree

import pytest
from build import H200, ROOT, forward, recording, trace, write

from common.look import Options, look
from common.show.roofline import roofline

SHAPES = ROOT / "tests" / "data" / "shapes"
SVG = "{http://www.w3.org/2000/svg}"


@pytest.fixture
def ask(asked):
    return partial(asked, look, Options)


def page(ask, tmp_path, *arguments) -> str:
    target = tmp_path / "page.html"
    code, _, err = ask(*arguments, "--html", target)
    assert code == 0 and "page.html is" in err
    return target.read_text()


@pytest.mark.parametrize("how", [(), ("--survey",)])
def test_a_recording_with_shapes_has_a_roofline(ask, tmp_path, how):
    html = page(ask, tmp_path, SHAPES / "gpt_forward_shapes.json.gz", *how)
    [svg] = re.findall(r"<svg.*?</svg>", html, re.S)
    drawn = ElementTree.fromstring(
        svg.replace("<svg", '<svg xmlns="http://www.w3.org/2000/svg"', 1)
    )
    points = drawn.findall(f"{SVG}circle")
    assert len(points) >= 5
    words = [text.text for text in drawn.findall(f"{SVG}text")]
    assert "989 TFLOP/s" in words and "4.8 TB/s" in words
    for point in points:  # inside the picture
        assert 0 < float(point.get("cx")) < 720 and 0 < float(point.get("cy")) < 420
    assert "http" not in html.replace("http-equiv", "") and "<script" not in html


def test_without_shapes_there_is_none_but_the_steps_are_there(ask, tmp_path):
    html = page(ask, tmp_path, SHAPES / "resnet_forward.json.gz")
    assert "<svg" not in html and "GPU time: conv" in html and "<h2>Steps</h2>" in html


def test_our_own_recordings_have_one_by_their_story(ask, tmp_path):
    assert "<svg" in page(ask, tmp_path, recording("04_a"))


def test_names_of_a_stranger_stay_words(ask, tmp_path):
    evil = "</td><script>alert(1)</script>\x1b[31m"
    events = forward(100, (evil, evil, 5), label=evil)
    path = write(tmp_path, trace(events, device=H200 | {"name": evil}))
    for how in ((), ("--survey",)):
        html = page(ask, tmp_path, path, *how)
        assert "<script" not in html and "\x1b" not in html


def test_what_cannot_be_written_is_said_before_the_work(ask, tmp_path):
    code, out, err = ask(recording("04_a"), "--html", tmp_path / "no" / "page.html")
    assert (code, out) == (2, "") and "--html" in err
    code, _, err = ask(recording("04_a"), recording("04_b"), "--html", tmp_path / "p.html")
    assert code == 2 and "--html is of one trace" in err


def test_nothing_to_draw_is_nothing():
    assert roofline([]) == ""
