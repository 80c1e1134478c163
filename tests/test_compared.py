"""An observation beside a guess, or beside all that a lesson expects."""

import pytest
from build import forward
from seen import look, recorded

from common.cli import UserError
from common.compare.claims import Answer, Claim, Expectation
from common.compare.compared import compare, compare_with


def asked(evidence) -> Answer:
    return Answer("yes", f"{len(evidence.steps('copy'))} {evidence.others.get(('s', ''))}")


EXPECTED = Expectation(
    "matmul mul mask softmax matmul", (Claim("s", asked),), {"+copy": "it clones"}
)


def test_without_a_guess_the_pairs_are_the_rows():
    found = compare(recorded("04_a"))
    assert not found.guessed and found.answers == () and found.reasons == {}
    assert [(pair.guess, pair.row.kind) for pair in found.pairs] == [
        (None, kind) for kind in "matmul mul copy mask softmax matmul".split()
    ]


def test_a_guess_is_laid_beside_them():
    found = compare(recorded("04_a"), "matmul, cat")
    assert found.guessed
    assert [pair.guess for pair in found.pairs if pair.guess] == ["matmul", "cat"]
    assert [pair.guess for pair in found.pairs if pair.row is None] == ["cat"]


def test_a_guess_of_nothing_is_refused_and_is_not_no_guess():
    for words, message in (("", "no step given"), ("magic", "'magic' is no kind of step")):
        with pytest.raises(UserError, match=message):
            compare(recorded("04_a"), words)
        with pytest.raises(UserError, match=message):
            compare_with(recorded("04_a"), EXPECTED, {}, words)


def test_with_a_lesson_its_guess_its_reasons_and_its_answers_stand_beside_it(tmp_path):
    other = look(tmp_path, forward(100, ("mul", "k", 5)))
    found = compare_with(recorded("04_a"), EXPECTED, {("s", ""): other})
    assert [pair.row.kind for pair in found.pairs if pair.guess is None] == ["copy"]
    assert found.guessed and found.reasons == {"+copy": "it clones"}
    assert found.answers == ((EXPECTED.claims[0], Answer("yes", f"1 {other}")),)


def test_one_s_own_guess_stands_for_the_lesson_s_and_the_rest_remains():
    found = compare_with(recorded("04_a"), EXPECTED, {}, "copy")
    assert [pair.guess for pair in found.pairs if pair.guess] == ["copy"]
    assert found.reasons and found.answers[0][1].evidence == "1 None"
