"""The language of the reports' own words: English where it stands in the code, else by one table.

A sentence is a template, such as "{kernels} a forward". It stands in the code where it is said, and
is its own key in the table of the other language. What is no word of ours stays as it is: names of
ops, kernels, labels and files, and what JSON holds.
"""

import os
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import wraps
from typing import Any, ParamSpec, TypeVar

from ..cli import option
from .vietnamese import SENTENCES

LANGUAGES: dict[str, dict[str, str]] = {"en": {}, "vi": SENTENCES}

_spoken = "en"

P = ParamSpec("P")
R = TypeVar("R")


def of_locale(environment: Mapping[str, str] = os.environ) -> str:
    """The reader's, if reports can be had in it. The first of these that is set decides, as POSIX
    has it."""
    names = (environment.get(name) for name in ("LC_ALL", "LC_MESSAGES", "LANG"))
    locale = next(filter(None, names), "")
    language = locale.replace("-", "_").partition("_")[0].partition(".")[0].lower()
    return language if language in LANGUAGES else "en"


def lang_option() -> Any:
    """The option of a command that reports; `speak` takes what it was given."""
    return option(
        None,
        "language of the report (default: vi where the locale is Vietnamese, else en)",
        choices=tuple(LANGUAGES),
    )


def speak(language: str | None) -> None:
    """Say all that follows in this language; None is the reader's own."""
    global _spoken
    _spoken = language or of_locale()


def spoken() -> str:
    return _spoken


@contextmanager
def speaking(language: str) -> Iterator[None]:
    before = _spoken
    speak(language)
    try:
        yield
    finally:
        speak(before)


def in_english(of: Callable[P, R]) -> Callable[P, R]:
    """For what programs read."""

    @wraps(of)
    def english(*arguments: P.args, **named: P.kwargs) -> R:
        with speaking("en"):
            return of(*arguments, **named)

    return english


def say(template: str, /, **fields: object) -> str:
    """The sentence in the language that is spoken, with its fields filled in."""
    return LANGUAGES[_spoken].get(template, template).format(**fields)


def word(name: str) -> str:
    """A word of ours in the language that is spoken; a stranger's name as it is."""
    return LANGUAGES[_spoken].get(name, name)
