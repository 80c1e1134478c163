"""The page: one lane for each variant, to scale, and nothing from elsewhere."""

import re
from html.parser import HTMLParser
from itertools import combinations
from math import atan2, cos, degrees, exp, hypot, radians, sin, sqrt
from pathlib import Path
from urllib.parse import unquote

import pytest
from build import RECORDED, ROOT, SCRIPTS, forward, recording, story, trace, write
from seen import groups, sweep_of
from test_glance import run

from common.compare.facts import POST
from common.compare.variants import sweeps
from common.read.kinds import VOCABULARY
from common.show import page
from common.show.html import COLOURS, ROW, ticks
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
    text = re.sub(r'<h3 class="magnified">.*?<p class="note">', "", text)
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
    assert text == page.page(groups(RECORDED), [], {}, place=Path("/elsewhere/page.html"))
    (policy,) = [a["content"] for a in read.of("meta") if "http-equiv" in a]
    assert policy == (
        "default-src 'none'; style-src 'unsafe-inline'; base-uri 'none'; form-action 'none'"
    )
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
    tips = re.findall(
        r'<li class="[^"]*" style=[^>]*>(?:(?!</li>).)*?<span class="tip">(.*?)</span></li>', text
    )
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
    marks = ticks(width)
    assert marks[0] == 0 and len(marks) <= 4 and all(tick < width for tick in marks)
    assert width < 2 or len(marks) >= 2


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
    assert set(VOCABULARY) <= ROW.keys()
    assert set(ROW.values()) == COLOURS.keys()


def test_words_on_every_colour_can_be_read():
    """WCAG 2.2 AA: 4.5 to 1 for text; lines and bars against the page 3 to 1."""
    for light, dark in COLOURS.values():
        assert contrast(light, "#ffffff") >= 4.5 and contrast(dark, "#14161a") >= 4.5
    for light, dark in page.CURVE_COLOURS:
        assert contrast(light, "#fbfaf8") >= 4.5 and contrast(dark, "#14161a") >= 4.5
    assert contrast("#5b626d", "#fbfaf8") >= 4.5 and contrast("#a3a9b3", "#14161a") >= 4.5


# How much red, green and blue light (linear) a colour of the screen comes to for who lacks one sort
# of cones. Source: Machado, Oliveira and Fernandes, "A Physiologically-based Model for Simulation
# of Color Vision Deficiency" (2009), severity 1.
SEEN_BY = {
    "all cones": ((1, 0, 0), (0, 1, 0), (0, 0, 1)),
    "protanopia": (
        (0.152286, 1.052583, -0.204868),
        (0.114503, 0.786281, 0.099216),
        (-0.003882, -0.048116, 1.051998),
    ),
    "deuteranopia": (
        (0.367322, 0.860646, -0.227968),
        (0.280085, 0.672501, 0.047413),
        (-0.011820, 0.042940, 0.968881),
    ),
}
# IEC 61966-2-1, D65.
TO_XYZ = (
    (0.4124564, 0.3575761, 0.1804375),
    (0.2126729, 0.7151522, 0.0721750),
    (0.0193339, 0.1191920, 0.9503041),
)
WHITE = (0.95047, 1.0, 1.08883)
NAIVE = ("matmul", "arithmetic", "copy", "mask", "softmax")  # what a naive forward's lane shows


def _times(matrix, vector):
    return [sum(a * b for a, b in zip(line, vector, strict=True)) for line in matrix]


def lab(colour, seen_by="all cones"):
    """CIELAB of a colour such as #1d5fc4, as the reader sees it."""
    parts = [int(colour[i : i + 2], 16) / 255 for i in (1, 3, 5)]
    light = [c / 12.92 if c <= 0.04045 else ((c + 0.055) / 1.055) ** 2.4 for c in parts]
    light = [min(max(c, 0), 1) for c in _times(SEEN_BY[seen_by], light)]
    x, y, z = (
        t ** (1 / 3) if t > 216 / 24389 else (24389 / 27 * t + 16) / 116
        for t in (v / w for v, w in zip(_times(TO_XYZ, light), WHITE, strict=True))
    )
    return 116 * y - 16, 500 * (x - y), 200 * (y - z)


def difference(one, other):
    """CIEDE2000 of two colours in CIELAB. Source: Sharma, Wu and Dalal, "The CIEDE2000
    Color-Difference Formula: Implementation Notes" (2005)."""
    (l1, a1, b1), (l2, a2, b2) = one, other
    mean = (hypot(a1, b1) + hypot(a2, b2)) / 2
    more = 1.5 - sqrt(mean**7 / (mean**7 + 25**7)) / 2
    a1, a2 = a1 * more, a2 * more
    c1, c2 = hypot(a1, b1), hypot(a2, b2)
    h1, h2 = (degrees(atan2(b, a)) % 360 for a, b in ((a1, b1), (a2, b2)))
    turn = (h2 - h1 + 180) % 360 - 180 if c1 * c2 else 0
    lightness, chroma = l2 - l1, c2 - c1
    hue = 2 * sqrt(c1 * c2) * sin(radians(turn / 2))
    light, c = (l1 + l2) / 2, (c1 + c2) / 2
    h = h1 + h2
    if c1 * c2:
        h = h / 2 if abs(h1 - h2) <= 180 else (h + (360 if h < 360 else -360)) / 2
    t = 1 - 0.17 * cos(radians(h - 30)) + 0.24 * cos(radians(2 * h))
    t += 0.32 * cos(radians(3 * h + 6)) - 0.2 * cos(radians(4 * h - 63))
    lightness /= 1 + 0.015 * (light - 50) ** 2 / sqrt(20 + (light - 50) ** 2)
    chroma /= 1 + 0.045 * c
    hue /= 1 + 0.015 * c * t
    turned = -2 * sqrt(c**7 / (c**7 + 25**7)) * sin(radians(60 * exp(-(((h - 275) / 25) ** 2))))
    return sqrt(lightness**2 + chroma**2 + hue**2 + turned * chroma * hue)


@pytest.mark.parametrize(
    ("one", "other", "published"),
    [
        ((50, 2.6772, -79.7751), (50, 0, -82.7485), 2.0425),
        ((50, 2.5, 0), (73, 25, -18), 27.1492),
        ((50, 2.5, 0), (50, 0, -2.5), 4.3065),
        ((22.7233, 20.0904, -46.6940), (23.0331, 14.9730, -42.5619), 2.0373),
    ],
)
def test_the_difference_is_the_published_one(one, other, published):
    assert difference(one, other) == pytest.approx(published, abs=1e-4)


def test_red_and_green_are_near_for_who_lacks_cones():
    red, green = "#c3261b", "#3b7410"
    assert difference(lab(red), lab(green)) > 50
    assert difference(lab(red, "deuteranopia"), lab(green, "deuteranopia")) < 10


@pytest.mark.parametrize("mode", [0, 1], ids=["light", "dark"])
@pytest.mark.parametrize("seen_by", SEEN_BY)
def test_colours_differ_for_every_reader(mode, seen_by):
    """Just noticeable is 1 to 2 of CIEDE2000; a naive forward's steps, the lesson, differ by ten
    times that, any others by five times."""
    apart = {
        pair: difference(*(lab(COLOURS[row][mode], seen_by) for row in pair))
        for pair in combinations(COLOURS, 2)
    }
    assert min(apart[pair] for pair in apart if set(pair) <= set(NAIVE)) >= 20, apart
    assert min(apart.values()) >= 10, apart


def test_copy_and_mask_have_a_pattern_too():
    head = page.page(groups(recording("04_a")), [], {})
    for row in ("copy", "mask"):
        assert f".{row} {{ background-image: " in head
    assert "background: #" not in re.sub(
        r":root \{.*?\}", "", head
    )  # it would wipe the pattern out


# ── What is said of it all ────────────────────────────────────────────────────────────────────────


def test_the_headline_is_computed_from_the_recordings():
    found = shipped()
    naive, *others = found[0].variants
    best = min(others, key=lambda variant: variant.ns)
    head, below = page.headline(found)
    times = float(re.match(r"([\d.]+) times faster than naive", head)[1])
    less = float(re.search(r"with ([\d.]+) times less memory", head)[1])
    assert times == pytest.approx(naive.ns / best.ns, rel=0.01)
    assert less == pytest.approx(naive.peak_bytes / best.peak_bytes, rel=0.02)
    assert best.name in below and "NVIDIA H200" in below


def test_no_headline_where_nothing_is_faster_or_memory_is_unknown(tmp_path):
    assert page.headline(groups(recording("04_a")))[1] == ""
    for script, us, peak in (("04_a", 10, None), ("04_b", 5, 7)):
        about = story(script=SCRIPTS[script], peak_bytes=peak)
        write(tmp_path, trace(forward(100, ("mul", "k", us)), about=about), f"{script}.json")
    head, below = page.headline(groups(tmp_path))
    assert head == "2 times faster than naive attention" and "peak" not in below


def test_every_variant_is_told_in_a_clause():
    (one, *_) = shipped()
    text = page.page([one], [], {})
    lessons = re.findall(r'<p class="lesson">(.*?)</p>', text)
    assert len(lessons) == len(one.variants) and all(": " in lesson for lesson in lessons)
    assert lessons[0].startswith("five lines, one op each: ")


def test_what_was_published_stands_beside_on_the_same_scale():
    found = shipped()
    text = page.page(found, [], {})
    bars = re.findall(r'<p class="post( \w+)?"><i style="width:([\d.]+)%"></i><span>(.*?)<', text)
    assert len(bars) == sum(one.gpu_us is not None for one in POST.values()) == 5
    (width,), (finer,) = page.scales(found), page.finer_scales(found)
    place = {words: (kind, float(share)) for kind, share, words in bars}
    kind, share = place["A100, as published: 1.96 ms"]  # in place
    assert share == pytest.approx(100 * 1_955_000 / width, abs=1e-3)
    assert place["A100, as published: 7.24 ms, longer than the lane"] == (" beyond", 100)
    kind, share = place["A100, as published: 147 µs"]  # flash, magnified
    assert share == pytest.approx(100 * 146_800 / finer, abs=1e-3)
    assert "for an NVIDIA A100-SXM4-80GB" in text


def test_short_lanes_are_magnified_on_one_scale():
    found = shipped()
    text = page.page(found, [], {})
    (fine,) = re.findall(r'<h3 class="magnified">(.*?)<p class="note">', text)
    (width,), (finer,) = page.scales(found), page.finer_scales(found)
    short = [v for v in found[0].variants if page.is_short(v, width)]
    assert re.findall(r"<h3>(.*?)</h3>", fine) == [v.name for v in short] and len(short) == 8
    widths = [float(w) for w in re.findall(r"left:[\d.]+%;width:([\d.]+)%", fine)]
    times = [bar.duration for v in short for bar in page.bars(v.seen)]
    assert widths == pytest.approx([100 * ns / finer for ns in times], abs=1e-3)
    assert page.finer_scales(groups(recording("04_a"))) == [None]
    assert page.finer_scales(groups(recording("04_c", backend="flash"))) == [None]


# ── A forward opened ──────────────────────────────────────────────────────────────────────────────


def test_an_arrow_leads_from_every_launch_to_its_work():
    (one,) = groups(recording("04_a"))
    seen = one.variants[0].seen
    text = page.page([one], [], {})
    forward = page._median(seen)
    start = forward.span.start
    width = max(step.gpu.start + step.gpu.duration for step in forward.steps) - start
    arrows = re.findall(r'<path d="M([\d.]+) 0L([\d.]+) 1"/>', text)
    expected = [
        (100 * (s.on_gpu.launch.start - start) / width, 100 * (s.gpu.start - start) / width)
        for s in forward.steps
    ]
    assert len(arrows) == 7
    for arrow, ends in zip(arrows, expected, strict=True):
        assert tuple(map(float, arrow)) == pytest.approx(ends, abs=1e-3)
    assert all(launch < work for launch, work in expected)
    assert text.count("<details>") == 1 and "masked_fill › clone › copy_ · cudaMemcpyAsync" in text


def test_clocks_that_disagree_have_no_arrows(tmp_path):
    events = forward(100_000, ("mul", "k", 5), ("add", "k", 5))
    for event in events:
        if event["cat"] == "kernel":
            event["ts"] -= 50_000
    (one,) = groups(write(tmp_path, trace(events, about=story())))
    text = page.page([one], [], {})
    assert "The clocks of CPU and GPU disagree: no arrows." in text and 'class="arrows"' not in text
    assert text.count("<strong>mul ·") + text.count("<strong>add ·") == 4  # tips and steps


def test_targets_can_be_hit_and_reached_by_keyboard():
    """What can be opened or followed is native, and 24 pixels high; bars are not among it."""
    text = page.page(groups(recording("04_a")), [], {})
    read = Reader(text)
    assert [t for t, a in read.tags if "tabindex" in a] == ["div"]  # the table, for its scrolling
    sizes = dict(re.findall(r"^(a|summary) \{[^}]*?min-height: ([\d.]+)rem", text, re.M))
    assert {"a", "summary"} == set(sizes) and all(float(rem) * 16 >= 24 for rem in sizes.values())


def test_links_lead_to_the_recordings_and_the_guide_and_nowhere_else(tmp_path):
    read = Reader(page.page(groups(recording("04_a")), [], {}, place=ROOT / "docs" / "g.html"))
    links = [attributes["href"] for attributes in read.of("a")]
    assert len(links) == 2 and all((ROOT / "docs" / link).is_file() for link in links)
    odd = write(
        tmp_path, trace(forward(100, ("mul", "k", 5)), about=story()), "javascript:a b%.json"
    )
    (link,) = Reader(page.page(groups(odd), [], {}, place=tmp_path / "g.html")).of("a")
    assert unquote(link["href"]) == odd.name and ":" not in link["href"]


def test_a_page_tells_no_way_through_folders_around_it(tmp_path):
    kept = tmp_path / "somebody" / "private"
    kept.mkdir(parents=True)
    file = write(kept, trace(forward(100, ("mul", "k", 5)), about=story()), "t.json")
    away = tmp_path / "shared"
    away.mkdir()
    text = page.page(groups(file), [], {}, place=away / "g.html")
    assert "href" not in text and "private" not in text and "t.json" in text


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
