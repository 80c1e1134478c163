"""Tables in any width: numbers are whole, whatever gives way."""

import io
import re

import pytest
from build import recording
from rich.console import Console
from seen import recorded

from common.compare.compared import compare
from common.compare.rows import rows
from common.read.linked import link
from common.read.survey import survey
from common.read.trace import read
from common.show import report
from common.show.survey import show_survey

NUMBER = re.compile(r"\d[\d,.]* (?:µs|ms)")


def printed(width, show) -> str:
    out = Console(
        file=io.StringIO(), width=width, no_color=True, highlight=False, markup=False, emoji=False
    )
    show(out)
    return out.file.getvalue()


SHOWS = {
    "a region": lambda out: report.show(
        out, compare(recorded("04_a", "eager"), "matmul mul softmax matmul")
    ),
    "two": lambda out: report.show_difference(
        out, recorded("04_a", "eager"), recorded("04_c", "eager", "math")
    ),
    "a survey": lambda out: show_survey(out, survey(link(read(recording("04_a", "eager"))))),
}


@pytest.mark.parametrize("width", [40, 50, 60, 80, 100])
@pytest.mark.parametrize("what", SHOWS)
def test_no_number_is_cut_at_any_width(what, width):
    wide, text = printed(200, SHOWS[what]), printed(width, SHOWS[what])
    assert not re.search(r"(?<!\S)[+-]?\d[\d,.]*(?: [µm]?)?…", text)
    tables = [line for line in text.splitlines() if len(NUMBER.findall(line)) >= 1]
    whole = set(NUMBER.findall(wide))
    assert tables and {one for line in tables for one in NUMBER.findall(line)} <= whole
    assert all(len(line) <= width for line in text.splitlines())


def test_the_time_of_every_step_stands_in_the_narrowest():
    times = [f"{row.ns / 1e3:,.1f} µs" for row in rows(recorded("04_a", "eager").steps)]
    text = printed(40, lambda out: report.show(out, compare(recorded("04_a", "eager"))))
    assert all(time in text for time in times)
    assert "clone ›" in text and "on the GPU" in text  # the launching ops, and a head whole
