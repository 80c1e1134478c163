"""The reports' own words in another language: one table, whole, with the same fields."""

import ast
import re
import string
import unicodedata

import pytest
from build import ROOT, forward, kernel, recording, trace, write

from common import glance, look
from common.read import usage
from common.read.privacy import KINDS
from common.show import language
from common.show.vietnamese import SENTENCES
from common.show.words import WHAT

SOURCES = sorted((ROOT / "common").rglob("*.py"))
TABLE = ROOT / "common" / "show" / "vietnamese.py"


def literals(node, named):
    """The words that an expression may come to, as far as they stand in the module; `named` are
    those of its variables and parameters."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        return {node.value}
    if isinstance(node, ast.IfExp):
        return literals(node.body, named) | literals(node.orelse, named)
    return named.get(node.id, set()) if isinstance(node, ast.Name) else set()


def called(name, place):
    """What stands in this place of the calls of a function."""
    found = set()
    for path in SOURCES:
        nodes, named = list(ast.walk(ast.parse(path.read_text()))), {}
        for node in nodes:
            if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name):
                named.setdefault(node.targets[0].id, set()).update(literals(node.value, {}))
            if isinstance(node, ast.FunctionDef):
                late = node.args.args[len(node.args.args) - len(node.args.defaults) :]
                for argument, default in zip(late, node.args.defaults, strict=True):
                    named.setdefault(argument.arg, set()).update(literals(default, {}))
        for node in nodes:
            if isinstance(node, ast.Call) and getattr(node.func, "id", "") == name:
                if len(node.args) > place:
                    found |= literals(node.args[place], named)
    return found


def constants():
    return {
        node.value
        for path in SOURCES
        if path != TABLE
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, ast.Constant) and isinstance(node.value, str)
    }


def fields(template):
    return {name for _, name, _, _ in string.Formatter().parse(template) if name is not None}


def test_every_sentence_that_is_said_has_an_entry():
    said = called("say", 0) | called("plural", 1) | called("plural_of", 0)
    said |= called("time_of_gpu", 1) | set(WHAT.values()) | set(KINDS)
    assert len(said) > 100
    assert sorted(said - SENTENCES.keys() - {""}) == []


def test_no_entry_is_unused():
    assert sorted(SENTENCES.keys() - constants()) == []


def test_both_have_the_same_fields():
    for english, other in SENTENCES.items():
        assert fields(english) == fields(other), english
        assert "" not in fields(english)


def test_edges_are_kept():
    """Blanks and line breaks at the ends are layout, and so are the lines of a head."""
    for english, other in SENTENCES.items():
        assert (
            english[: len(english) - len(english.lstrip())]
            == other[: len(other) - len(other.lstrip())]
        )
        assert english[len(english.rstrip()) :] == other[len(other.rstrip()) :]
        assert unicodedata.is_normalized("NFC", other)  # a letter is one cell wide


@pytest.mark.parametrize(
    ("environment", "expected"),
    [
        ({}, "en"),
        ({"LANG": "vi_VN.UTF-8"}, "vi"),
        ({"LANG": "vi"}, "vi"),
        ({"LC_MESSAGES": "vi_VN", "LANG": "de_DE.UTF-8"}, "vi"),
        ({"LC_ALL": "C", "LANG": "vi_VN.UTF-8"}, "en"),
        ({"LC_ALL": "", "LANG": "vi_VN.UTF-8"}, "vi"),
        ({"LANG": "vie_VN"}, "en"),
        ({"LANG": "fr_FR.UTF-8"}, "en"),
    ],
)
def test_the_locale_of_the_reader(environment, expected):
    assert language.of_locale(environment) == expected


def test_what_is_said_follows_the_language_and_goes_back():
    assert language.say("{first} and {more} more", first="a", more=2) == "a and 2 more"
    with language.speaking("vi"):
        assert language.say("{first} and {more} more", first="{x}", more=2) == "{x} và 2 nữa"
        assert language.in_english(language.say)("unknown") == "unknown"
        assert language.say("unknown") == SENTENCES["unknown"]
    assert language.say("unknown") == "unknown"


class Watched(dict):
    """The table, and what was asked of it in vain."""

    def __init__(self):
        super().__init__(SENTENCES)
        self.missing = set()

    def get(self, key, default=None):
        if key not in self:
            self.missing.add(key)
        return super().get(key, default)


# ── The commands ──────────────────────────────────────────────────────────────────────────────────


@pytest.fixture(autouse=True)
def english_again():
    yield
    language.speak("en")


def test_a_report_is_in_the_language_asked_for_or_the_locale_s(asked, monkeypatch):
    file = recording("04_a")
    _, english, _ = asked(glance.glance, glance.Options, file)
    code, text, _ = asked(glance.glance, glance.Options, "--lang", "vi", file)
    assert code == 0 and text != english
    assert "+1 lần copy từ masked_fill · mask lâu nhất, 34 % thời gian GPU" in text
    numbers = r"\d+(?:\.\d+)?"
    assert re.findall(numbers, text) == re.findall(numbers, english)
    monkeypatch.setenv("LC_ALL", "vi_VN.UTF-8")
    assert asked(glance.glance, glance.Options, file)[1] == text
    assert asked(glance.glance, glance.Options, file, "--lang", "en")[1] == english


def test_json_stays_english(asked, tmp_path):
    damaged = write(tmp_path, trace(forward(100, ("mul", "k", 5)), kernel(77, 50, 1)), "t.json")
    for command, options, file in (
        (glance.glance, glance.Options, recording("04_a")),
        (look.look, look.Options, recording("04_c", backend="math")),
        (look.look, look.Options, damaged),
    ):
        _, english, _ = asked(command, options, file, "--json")
        code, text, _ = asked(command, options, file, "--json", "--lang", "vi")
        assert code == 0 and text == english and english


def test_a_warning_in_vietnamese(asked, tmp_path):
    odd = write(tmp_path, trace(forward(100, ("mul", "k", 5)), kernel(77, 50, 1)), "t.json")
    _, text, _ = asked(look.look, look.Options, odd, "--lang", "vi")
    assert "1 sự kiện GPU không có lệnh khởi chạy trong file, bị bỏ ra" in " ".join(text.split())


def test_a_page_says_its_language(asked, tmp_path):
    asked(
        glance.glance, glance.Options, recording("04_a"), "--lang", "vi", "--html", tmp_path / "g"
    )
    text = (tmp_path / "g").read_text()
    assert '<html lang="vi">' in text and "năm dòng, mỗi dòng một op" in text


def test_nothing_that_is_said_of_recordings_is_missing(asked, monkeypatch):
    """Heads and words that reach `say` by way of a variable."""
    watched = Watched()
    monkeypatch.setitem(language.LANGUAGES, "vi", watched)
    for command, options, *arguments in (
        (look.look, look.Options, "--survey", recording("04_c", backend="math")),
        (look.look, look.Options, "--survey", *sorted((ROOT / "tests/data/traces").iterdir())[-1:]),
        (look.look, look.Options, recording("04_c", backend="cudnn")),
        (glance.glance, glance.Options, "--sweep", "1024,2048"),
    ):
        assert asked(command, options, "--lang", "vi", *arguments)[0] == 0
    names = {name for name in watched.missing if "::" in name or name.startswith(("cu", "Buffer"))}
    assert watched.missing == names, watched.missing - names  # a stranger's, looked up by `word`


def test_a_name_of_a_stranger_stays_as_it_is():
    with language.speaking("vi"):
        assert language.word("{0} {x}") == "{0} {x}"
        assert {language.word(name) for name in usage_words()} & usage_words() == set()


def usage_words():
    """What the reader calls idle time's culprits, where no op of the trace is one."""
    return {v for name, v in vars(usage).items() if name.isupper() and isinstance(v, str)}


def test_a_language_that_there_is_not(asked):
    code, _, said = asked(look.look, look.Options, recording("04_a"), "--lang", "fr")
    assert code == 2 and "invalid choice: 'fr'" in said and said.count("\n") == 1
