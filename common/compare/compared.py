"""An observation, laid beside what somebody expected of it."""

from collections.abc import Mapping
from dataclasses import dataclass, field

from ..read.observe import Observation
from .claims import Answered, Evidence, Expectation, Others, answer
from .rows import Pair, align, parse_guess, rows


@dataclass(frozen=True)
class Compared:
    """What a report shows of one region. Without a guess the pairs are the rows alone."""

    seen: Observation
    pairs: tuple[Pair, ...]
    guessed: bool = False
    reasons: Mapping[str, str] = field(default_factory=dict)
    answers: Answered = ()


def compare(seen: Observation, guess: str | None = None) -> Compared:
    """With a guess alone, or with none. Raises UserError for a word that is no kind of step."""
    words = () if guess is None else parse_guess(guess)
    return Compared(seen, tuple(align(words, rows(seen.steps))), guess is not None)


def compare_with(
    seen: Observation, expected: Expectation, others: Others, guess: str | None = None
) -> Compared:
    """With all that a lesson expects; `guess` stands for the lesson's own. Raises UserError as
    `compare` does."""
    words = parse_guess(expected.guess if guess is None else guess)
    pairs = tuple(align(words, rows(seen.steps)))
    answers = answer(expected.claims, Evidence(seen, others))
    return Compared(seen, pairs, True, expected.reasons, answers)
