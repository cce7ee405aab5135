"""Output bias: which of two words the outputs name, where the question offers both (CODIS 5.2)."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Literal

from msgspec import Struct

from sightline.errors import UserError
from sightline.metric_types import PERCENT, Metric, Term
from sightline.scoring.offered_options import offer_of
from sightline.scoring.polarity import NO, YES, asks_yes_or_no, said_yes_or_no
from sightline.scoring.text import FUNCTION_WORDS, answer_part, stem, words
from sightline.types import Group, Outcome


class WordSet(Struct, frozen=True):
    """Two words that a question may offer; outputs are counted by which of them they name.

    Inflections count as the word ('upwards' as 'up'). If the second word is the first with 'not' before it,
    the set applies to yes-or-no questions that hold the first word: yes names the first, no the second.
    """

    first: str
    second: str

    @property
    def name(self) -> str:
        """The set's name in labels: 'up:down'."""
        return f"{self.first}:{self.second}"

    @property
    def score(self) -> str:
        """The name of the score that holds the word which an output names."""
        return f"words {self.name}"

    @property
    def negates(self) -> bool:
        """Whether the second word is the negated first word."""
        return self.second == f"not {self.first}"


DEFAULT_SETS = "up:down,morning:afternoon,appropriate:not appropriate"


def word_sets(text: str) -> tuple[WordSet, ...]:
    """Parse sets of words.

    >>> [words.name for words in word_sets("left:right")]
    ['left:right']
    """
    sets = []
    for pair in text.split(","):
        first, colon, second = (part.strip() for part in pair.partition(":"))
        if not (first and colon and second):
            raise UserError(f"'{pair}' is not a pair of words", expected=f"pairs such as {DEFAULT_SETS}")
        sets.append(WordSet(first, second))
    return tuple(sets)


BIAS_SETS = word_sets(DEFAULT_SETS)
"""The three pairs of words of Table 6."""

Side = Literal["first", "second", "neither"]

_CODES: Mapping[Side, float] = {"neither": 0.0, "first": 1.0, "second": 2.0}
"""The value of the score of each side."""

_SIDES: Mapping[Side, str] = {
    "first": "outputs that name the first word of a pair that the question offers",
    "second": "outputs that name the second word of a pair that the question offers",
    "neither": "outputs that name neither or both words of a pair that the question offers",
}


def bias_metrics(sets: Sequence[WordSet] = BIAS_SETS) -> tuple[Metric, ...]:
    """Define the shares of outputs that name the first word, the second, and neither or both (Table 6).

    They count outputs, not occurrences, among those whose question offers the two words of a set. Each term
    has the label `words` ('up:down'). Failed calls are left out.
    """
    return tuple(
        Metric(
            name=f"bias_{side}",
            terms=_share(side, sets),
            meaning=meaning,
            better="neither",
            range=PERCENT,
            source="CODIS 5.2, Table 6",
            judged=None,
            absent="no question offers both words of a pair",
        )
        for side, meaning in _SIDES.items()
    )


@lru_cache(maxsize=2048)
def offers(question: str, pair: WordSet) -> bool:
    """Check whether a question offers the two words of a set, and no others.

    >>> offers("Is it moving upwards or downwards?", BIAS_SETS[0])
    True
    >>> offers("Is it up, down, left or right?", BIAS_SETS[0])
    False
    """
    if pair.negates:
        return asks_yes_or_no(question) and stem(pair.first) in map(stem, words(question))
    offer = offer_of(question)
    named = [{stem(word) for word in option.words} - _SMALL for option in offer.options] if offer else []
    return len(named) == 2 and all({stem(word)} in named for word in (pair.first, pair.second))


def named_side(question: str, output: str, pair: WordSet) -> Side:
    """Find which word of a set the answer part of an output names.

    >>> named_side("Is it going up or down?", "Upwards.", BIAS_SETS[0])
    'first'
    >>> named_side("Is the gesture appropriate?", "It is inappropriate.", BIAS_SETS[2])
    'second'
    """
    answer = answer_part(output)
    if pair.negates:
        sides: Mapping[str, Side] = {YES: "first", NO: "second"}
        return sides.get(said_yes_or_no(question, answer) or "", "neither")
    stems = set(map(stem, words(answer)))
    first, second = stem(pair.first) in stems, stem(pair.second) in stems
    return "neither" if first == second else "first" if first else "second"


def bias_scores(outcome: Outcome, sets: Sequence[WordSet]) -> dict[str, float]:
    """The word of each set that an output names, for the sets that its question offers."""
    return {
        pair.score: _CODES[named_side(outcome.question, outcome.response, pair)]
        for pair in sets
        if offers(outcome.question, pair)
    }


_SMALL = frozenset(map(stem, FUNCTION_WORDS))


def _share(side: Side, sets: Sequence[WordSet]) -> Callable[[Group], Iterator[Term]]:
    def terms(group: Group) -> Iterator[Term]:
        for pair in sets:
            codes = [outcome.scores[pair.score] for outcome in group if pair.score in outcome.scores]
            if codes:
                yield Term(codes.count(_CODES[side]), len(codes), {"words": pair.name})

    return terms
