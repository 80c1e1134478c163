"""A script's run from guess to report, on recordings: what it refuses, what it takes over."""

import json

import pytest
from build import SCRIPTS, forward, recording, story, trace, write

from common import lesson
from common.cli import UserError
from common.compare import claims as compare_claims
from common.compare.claims import Answer, Claim, Expectation
from common.lesson import Lesson, Options
from common.read import recordings
from common.record.harness import Subject

SCRIPT = SCRIPTS["04_a"]
SUBJECT = Subject("naive attention", "attn_fwd")


def never(work):
    pytest.fail("nothing is built, let alone recorded")


def told(name: str) -> Expectation:
    """Its one claim says which it is."""
    claim = Claim(f"this is the {name} one", lambda evidence: Answer("yes", "it is"))
    return Expectation("matmul softmax", (claim,))


def run(capsys, replay="", **options) -> dict:
    options = Options(replay=str(replay), json=True, **options)
    lesson.run(SCRIPT, Lesson(SUBJECT, told("eager"), told("compiled"), never), options)
    return json.loads(capsys.readouterr().out)


@pytest.mark.parametrize(("compile", "name"), [(False, "eager"), (True, "compiled")])
def test_the_shipped_recording_that_fits_is_laid_beside_its_own_expectation(capsys, compile, name):
    found = run(capsys, compile=compile)
    assert found["about"]["mode"] == ("compile" if compile else "eager")
    assert [claim["claim"] for claim in found["claims"]] == [f"this is the {name} one"]
    assert [pair["guess"] for pair in found["guess"] if pair["guess"]] == ["matmul", "softmax"]


def test_a_file_tells_its_mode_itself(capsys):
    found = run(capsys, replay=recording("04_a", "compile"))  # though --compile was not given
    assert found["claims"][0]["claim"] == "this is the compiled one"


def test_a_guess_given_replaces_the_script_s(capsys):
    found = run(capsys, guess="copy")
    assert [pair for pair in found["guess"] if pair["guess"]] == [{"guess": "copy", "seen": "copy"}]


def test_a_word_unknown_is_refused_before_anything_is_read(capsys):
    with pytest.raises(UserError, match="'magic'"):
        run(capsys, replay="no/such/file", guess="matmul magic")


def test_another_script_s_recording_is_refused(capsys):
    with pytest.raises(UserError, match="it records 04_b_inplace_ops_attention, not 04_a_naive"):
        run(capsys, replay=recording("04_b"))


def test_somebody_s_trace_is_taken_by_the_lesson_s_label(capsys, tmp_path):
    """It tells no story; the label is what it has in common with the script."""
    path = write(tmp_path, trace(forward(100, ("bmm", "k", 5), label="attn_fwd")))
    found = run(capsys, replay=path)
    assert found["region"] == "attn_fwd" and found["regions"] == 1
    other = write(tmp_path, trace(forward(100, ("bmm", "k", 5), label="fwd")), "other.json")
    with pytest.raises(UserError, match="attn_fwd"):
        run(capsys, replay=other)


def test_a_shape_that_is_not_shipped_names_those_that_are(capsys):
    with pytest.raises(UserError, match=r"no shipped recording .*77.*there is .*1024"):
        run(capsys, seq=77)


def test_the_neighbours_of_a_recording_answer_too(capsys, tmp_path):
    """A claim sees what lies beside the recording, of the same work."""
    seen, keys = {}, [(SCRIPTS[name], "") for name in ("04_a", "04_b")]

    def ask(evidence):
        seen.update({key: evidence.others.get(key) for key in keys})
        return Answer("yes", "")

    for script, _ in keys:
        content = trace(forward(100, ("bmm", "k", 5)), about=story(script=script))
        write(tmp_path / script, content, "t.json")
    one = Expectation("matmul", (Claim("?", ask),))
    options = Options(replay=str(tmp_path / SCRIPT / "t.json"), json=True)
    lesson.run(SCRIPT, Lesson(SUBJECT, one, one, never), options)
    mine, other = (seen[key] for key in keys)
    assert mine is None and other.trace.path == tmp_path / SCRIPTS["04_b"] / "t.json"
    capsys.readouterr()


@pytest.mark.parametrize("asks", [False, True])
def test_replay_reads_what_it_shows_and_what_a_claim_asks_for_each_once(capsys, monkeypatch, asks):
    whole, beginnings = [], []
    for module, name, log in (
        (lesson, "read", whole), (recordings, "read", whole), (recordings, "story_of", beginnings),
    ):  # fmt: skip
        original = getattr(module, name)
        monkeypatch.setattr(
            module,
            name,
            lambda path, original=original, log=log: log.append(path) or original(path),
        )
    claims = (
        Claim("one", compare_claims.peak_below(SCRIPTS["04_b"])),
        Claim("and another", compare_claims.peak_below(SCRIPTS["04_b"])),
    )
    expected = Expectation("matmul", claims if asks else ())
    options = Options(replay=str(recording("04_a")), json=True)
    lesson.run(SCRIPT, Lesson(SUBJECT, expected, expected, never), options)
    assert [path.resolve() for path in whole] == [
        recording(name).resolve() for name in (["04_a", "04_b"] if asks else ["04_a"])
    ]
    assert len(beginnings) == len(set(beginnings)) and bool(beginnings) == asks
    capsys.readouterr()
