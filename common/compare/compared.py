"""An observation, laid beside what somebody expected of it."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from ..read.observe import Observation
from .claims import Answered, Evidence, Expectation, Others, answer
from .rows import Pair, align, parse_guess, rows


@dataclass(frozen=True)
class Score:
    """How a guess came out, step by step."""

    right: int  # named, at their place in the order
    rows: int  # that there are to name
    out_of_order: tuple[str, ...]  # named, elsewhere
    missed: tuple[str, ...]
    invented: tuple[str, ...]


def score(pairs: Sequence[Pair]) -> Score:
    came = [pair.row.kind for pair in pairs if pair.row and pair.guess is None]
    said = [pair.guess for pair in pairs if pair.guess and pair.row is None]
    elsewhere = Counter(came) & Counter(said)
    return Score(
        right=sum(pair.guess is not None and pair.row is not None for pair in pairs),
        rows=sum(pair.row is not None for pair in pairs),
        out_of_order=tuple(elsewhere.elements()),
        missed=_without(came, elsewhere),
        invented=_without(said, elsewhere),
    )


def _without(kinds: Sequence[str], some: Mapping[str, int]) -> tuple[str, ...]:
    """In their order, less so many of each."""
    left, found = dict(some), []
    for kind in kinds:
        if left.get(kind):
            left[kind] -= 1
        else:
            found.append(kind)
    return tuple(found)


@dataclass(frozen=True)
class Compared:
    """What a report shows of one region. Without a guess the pairs are the rows alone.

    `score` is of a guess that the user made; None where the pairs hold what a script expects.
    """

    seen: Observation
    pairs: tuple[Pair, ...]
    guessed: bool = False
    score: Score | None = None
    reasons: Mapping[str, str] = field(default_factory=dict)
    answers: Answered = ()


def compare(seen: Observation, guess: str | None = None) -> Compared:
    """With a guess alone, or with none. Raises UserError for a word that is no kind of step."""
    words = () if guess is None else parse_guess(guess)
    pairs = tuple(align(words, rows(seen.steps)))
    return Compared(seen, pairs, guess is not None, None if guess is None else score(pairs))


def compare_with(
    seen: Observation, expected: Expectation, others: Others, guess: str | None = None
) -> Compared:
    """With all that a lesson expects; `guess` stands for the lesson's own. Raises UserError as
    `compare` does."""
    words = parse_guess(expected.guess if guess is None else guess)
    pairs = tuple(align(words, rows(seen.steps)))
    answers = answer(expected.claims, Evidence(seen, others))
    own = None if guess is None else score(pairs)
    return Compared(seen, pairs, True, own, expected.reasons, answers)
