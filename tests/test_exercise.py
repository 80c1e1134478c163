"""Exercises: the right answer is told from a wrong one, and comes from the recording."""

import json
import re
import subprocess
import sys

import pytest
from build import ROOT, recording, truth

from common import exercise
from common.cli import UserError
from common.exercise import EXERCISES, Options, is_right

GUIDE = (ROOT / "docs" / "guide.md").read_text()


def asked(capsys, *given, **more) -> dict:
    exercise.exercise(Options(*given, json=True, **more))
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize("number", range(1, len(EXERCISES) + 1))
def test_the_right_answer_is_right_and_another_is_not(capsys, number):
    solved = asked(capsys, number, solution=True)
    answer = solved["answer"]
    assert solved["working"] and solved["right"] is None
    assert asked(capsys, number, answer=str(answer))["right"] is True
    wrong = "nothing" if isinstance(answer, str) else str(answer * 1.1)
    told = asked(capsys, number, answer=wrong)
    assert (told["right"], told["answer"], told["working"]) == (False, None, None)


def test_answers_come_from_the_recording(capsys):
    """Two of them by plain loops over the file."""
    forwards = truth(recording("04_a"))
    mask = float(sum(f["work"][4]["event"]["dur"] for f in forwards)) / 3  # µs
    copy = float(sum(f["work"][3]["event"]["dur"] for f in forwards)) / 3
    assert asked(capsys, 1, solution=True)["answer"] == pytest.approx(2 * 2**28 / mask / 1e6)
    assert asked(capsys, 2, solution=True)["answer"] == pytest.approx(32 * copy / 1e3)


def test_a_number_may_be_rounded():
    assert is_right(1.498, "1.5") and is_right(213_188.0, "213,188") and is_right(11.4, "11.4 %")
    assert not is_right(11.4, "11") and not is_right(8, "9")
    assert is_right(1.498, "1,5") and is_right(1.498, " 1.50 TB/s") and is_right(4.08, "4.08ms")
    assert is_right("aten::bmm", "BMM") and not is_right("bf16", "fp16")
    with pytest.raises(UserError, match="a number is asked for"):
        is_right(1.5, "fast")


def test_a_question_alone_does_not_give_its_answer(capsys):
    for number, one in enumerate(EXERCISES, 1):
        exercise.exercise(Options(number))
        shown = capsys.readouterr().out
        assert one.question.split()[0] in shown and f"common.exercise {number} --answer" in shown
        assert "right" not in shown.split()


def test_what_is_refused():
    with pytest.raises(UserError, match=f"there are {len(EXERCISES)}"):
        exercise.exercise(Options(99))
    with pytest.raises(UserError, match="which exercise"):
        exercise.exercise(Options(answer="3"))


def test_every_section_of_the_guide_has_one():
    """At the end of each of its sections; and no exercise is left without a place."""
    sections = re.split(r"^## (?=\d)", GUIDE, flags=re.MULTILINE)[1:]
    for section in sections[1:]:
        assert "**Exercise" in section, section[:30]
    told = re.findall(r"\*\*Exercises?\*\* (\d+)(?: and (\d+))?", GUIDE)
    assert {int(n) for pair in told for n in pair if n} == set(range(1, len(EXERCISES) + 1))
    assert len(EXERCISES) >= 12


def test_no_torch_is_needed():
    code = (
        "import sys; sys.modules['torch'] = None; from common import exercise as e; "
        "e.exercise(e.Options(8, answer='8'))"
    )
    done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True)
    assert done.returncode == 0 and "\nright\n" in done.stdout, done.stderr


@pytest.mark.parametrize("given", ["", "nan", "inf", "1.2.3", "1 2", "0x8"])
def test_what_is_no_number_is_refused(given):
    with pytest.raises(UserError, match="a number is asked for"):
        is_right(8.0, given)


def test_the_list_for_a_program(capsys):
    exercise.exercise(Options(json=True))
    listed = json.loads(capsys.readouterr().out)["exercises"]
    assert [one["exercise"] for one in listed] == list(range(1, len(EXERCISES) + 1))


def test_the_list(capsys):
    exercise.exercise(Options())
    out = " ".join(capsys.readouterr().out.split())
    assert all(" ".join(one.question.split()) in out for one in EXERCISES)
