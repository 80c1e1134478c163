"""The page: one lane for each variant, to scale, and nothing from elsewhere."""

import re
from html.parser import HTMLParser

import pytest
from build import RECORDED, SCRIPTS, forward, recording, story, trace, write
from seen import groups, sweep_of
from test_glance import run

from common.compare.variants import sweeps
from common.read.kinds import VOCABULARY
from common.show import page
from common.show.tables import glance_table

VOID = {"meta"}


class Reader(HTMLParser):
    """The page as a tree of (tag, attributes, text); every tag closed in its turn."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.words = [], [], []
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))
        if tag not in VOID:
            self.open.append(tag)

    def handle_startendtag(self, tag, attributes):
        self.tags.append((tag, dict(attributes)))

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        self.words.append(data)

    def of(self, tag, name=None):
        return [a for t, a in self.tags if t == tag and (name is None or a.get("class") == name)]


def lanes(text):
    """{variant: [(left, width) in percent]} in the order of the page."""
    found = {}
    for name, lane in re.findall(r"<h3>([^<]*)</h3><p class=\"time\">.*?<ol (.*?)</ol>", text):
        bars = re.findall(r"left:([\d.]+)%;width:([\d.]+)%", lane)
        found[name] = [tuple(map(float, bar)) for bar in bars]
    return found


def shipped(mode="eager"):
    post = (8, 16, 1024, 64), "bf16", mode
    made = [(one, one.conditions) for one in groups(RECORDED)]
    return [one for one, same in made if (same.shape, same.dtype, same.mode) == post]


def test_it_is_well_formed_and_loads_nothing():
    text = page.page(groups(RECORDED), [], {})
    read = Reader(text)
    assert not re.search(r"https?:|//|url\(|@import|<script|<link|<img|\son\w+=", text)
    (policy,) = [a["content"] for a in read.of("meta") if "http-equiv" in a]
    assert policy == "default-src 'none'; style-src 'unsafe-inline'"
    assert not {"src", "href"} & {name for _, attributes in read.tags for name in attributes}


def test_one_lane_for_every_variant_and_one_bar_for_every_piece_of_work():
    (one, *_) = shipped()
    drawn = lanes(page.page([one], [], {}))
    assert list(drawn) == [variant.name for variant in one.variants]
    count = {name: len(bars) for name, bars in drawn.items()}
    assert count["04_a naive"] == 7 and count["04_b in-place"] == 6  # the copy that vanishes
    assert count["04_c math"] == 20
    assert count["04_c flash"] == count["04_c efficient"] == 1


def test_widths_are_the_times_on_one_scale():
    (one, *_) = shipped()
    drawn = lanes(page.page([one], [], {}))
    percents, times = [], []
    for variant in one.variants:
        percents += [width for _, width in drawn[variant.name]]
        times += [bar.duration for bar in page.bars(variant.seen)]
    unit = sum(percents) / sum(times)
    assert percents == pytest.approx([unit * ns for ns in times], abs=1e-4)
    # The one that lasts longest fills the width.
    ends = {name: max(left + width for left, width in bars) for name, bars in drawn.items()}
    assert max(ends.values()) == ends["04_c math"] == pytest.approx(100, abs=1e-3)


def test_eager_and_compiled_lanes_share_a_scale():
    both = groups(recording("04_c", backend="math"), recording("04_c", "compile", "math"))
    assert [one.conditions.mode for one in both] == ["eager", "compile"]
    eager, compiled = page.scales(both)
    assert eager == compiled
    alone = page.scales(both[1:])[0]
    assert alone < compiled  # of itself it would be drawn larger


def test_the_lane_is_the_forward_of_median_time(tmp_path):
    events = [forward(at, ("mul", "k", us)) for at, us in ((100, 30), (50_000, 10), (90_000, 20))]
    (one,) = groups(write(tmp_path, trace(events, about=story())))
    assert [bar.duration for bar in page.bars(one.variants[0].seen)] == [20_000]


def test_a_lane_of_unknown_times_says_so(tmp_path):
    events = forward(100, ("mul", "k", 0))
    for event in events:
        if event["cat"] == "kernel":
            event["ts"] = event["dur"] = 0
    (one,) = groups(write(tmp_path, trace(events, about=story())))
    assert "no step with a known time" in page.page([one], [], {})


def test_what_comes_from_a_trace_is_escaped(tmp_path):
    evil = '"><script>alert(1)</script>&'
    about = story(title=evil, device={"type": "cuda", "name": evil})
    (one,) = groups(write(tmp_path, trace(forward(100, ("mul", evil, 5)), about=about)))
    text = page.page([one], [], {((evil, evil), "eager", 5): evil})
    Reader(text)
    assert "<script" not in text and "&lt;script&gt;alert(1)" in text


def test_every_bar_tells_its_kernel_and_its_time():
    (one, *_) = groups(recording("04_a"))
    text = page.page([one], [], {})
    tips = re.findall(r'<li class="[^"]*" tabindex="0".*?<span class="tip">(.*?)</span></li>', text)
    assert len(tips) == 7
    assert any("Memcpy DtoD" in tip and "masked_fill › clone › copy_" in tip for tip in tips)
    assert all(re.search(r"[\d.]+ µs", tip) for tip in tips)


def test_the_table_holds_the_figures_of_the_terminal():
    (one, *_) = shipped()
    words = Reader(page.page([one], [], {})).words
    _, lines = glance_table(one)
    assert all(cell in words for line in lines for cell in line if cell)


def test_curves_climb_by_their_power_on_equal_axes(tmp_path):
    found = groups(sweep_of(tmp_path))
    text = page.page(found[:1], sweeps(found), {})
    Reader(text)
    memory = re.findall(r"<figure>.*?</figure>", text, re.S)[1]
    naive, flash = (
        [tuple(map(float, point.split(","))) for point in line.split()]
        for line in re.findall(r'<polyline points="([^"]*)"', memory)
    )
    assert len(naive) == 3 and len(flash) == 4

    def slope(points):
        return (points[0][1] - points[-1][1]) / (points[-1][0] - points[0][0])

    assert slope(naive) / slope(flash) == pytest.approx(2, rel=0.02)
    assert "04_a at 2048: no recording" in text


@pytest.mark.parametrize("width", [1, 2, 7, 8, 9.99, 80, 99, 8_000, 9_990, 123_456, 8.5e6, 3e9])
def test_an_axis_of_any_width_has_a_few_ticks(width):
    ticks = page._ticks(width)
    assert ticks[0] == 0 and len(ticks) <= 4 and all(tick < width for tick in ticks)
    assert width < 2 or len(ticks) >= 2


@pytest.mark.parametrize(("low", "high"), [(2.1, 9.5), (3, 3), (1, 1e6), (0.5, 20), (1e-9, 1e9)])
def test_a_scale_has_marks_even_between_two_powers(low, high):
    marks = page._marks(low, high, 10)
    assert 1 <= len(marks) <= 6 and all(low <= mark <= high for mark in marks)
    assert marks == sorted(set(marks))


@pytest.mark.parametrize(
    "chosen", [["--only", "flash"], ["--only", "04_a", "--mode", "eager", "--sweep", "1024,2048"]]
)
def test_the_shipped_recordings_make_a_page_of_any_choice(chosen, tmp_path):
    written = tmp_path / "page.html"
    assert run(*chosen, "--html", written).returncode == 0
    assert "</html>" in written.read_text()


def test_names_at_the_ends_of_curves_do_not_overlap():
    for places in ([100, 101, 102, 30], [page.HIGH] * 8, [page.TOP] * 8):
        moved = sorted(page._apart(places))
        assert all(b - a >= page.LINE - 1e-9 for a, b in zip(moved, moved[1:], strict=False))
        assert moved[-1] <= page.HIGH


def _luminance(colour):
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    r, g, b = (c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts)
    return 0.2126 * r + 0.7152 * g + 0.0722 * b


def contrast(one, other):
    low, high = sorted((_luminance(one), _luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_every_kind_has_a_colour():
    assert set(VOCABULARY) <= page.ROW.keys()
    assert set(page.ROW.values()) == page.COLOURS.keys()


def test_words_on_every_colour_can_be_read():
    """WCAG 2.2 AA: 4.5 to 1 for text; lines and bars against the page 3 to 1."""
    for light, dark in page.COLOURS.values():
        assert contrast(light, "#ffffff") >= 4.5 and contrast(dark, "#14161a") >= 4.5
    for light, dark in page.CURVE_COLOURS:
        assert contrast(light, "#fbfaf8") >= 4.5 and contrast(dark, "#14161a") >= 4.5
    assert contrast("#5b626d", "#fbfaf8") >= 4.5 and contrast("#a3a9b3", "#14161a") >= 4.5


# ── The file ──────────────────────────────────────────────────────────────────────────────────────


def test_the_command_writes_it_whole_and_names_what_it_replaces(tmp_path):
    file = tmp_path / "g.html"
    done = run("--html", file, recording("04_a"))
    assert done.returncode == 0 and "g.html is written" in done.stderr
    assert "04_a naive" in done.stdout  # the table is printed all the same
    first = file.read_text()
    Reader(first)
    assert SCRIPTS["04_a"][:4] in first
    assert "g.html is replaced" in run("--html", file, recording("04_a")).stderr
    assert file.read_text() == first and list(tmp_path.iterdir()) == [file]


def test_an_error_leaves_no_file(tmp_path):
    done = run("--html", tmp_path / "g.html", tmp_path)
    assert done.returncode == 2 and list(tmp_path.iterdir()) == []
