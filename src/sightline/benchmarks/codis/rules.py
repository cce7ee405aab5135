"""The offline judge of CODIS: compares an answer with its ground truth or another answer; output bias."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import lru_cache
from itertools import takewhile
from typing import Literal

from msgspec import Struct

from sightline.errors import UserError
from sightline.scoring.non_answers import declines
from sightline.scoring.offered import offer_of, relation
from sightline.scoring.polarity import (
    NEITHER,
    NO,
    YES,
    asks_yes_or_no,
    chosen_option,
    explicit,
    said_yes_or_no,
)
from sightline.scoring.scorer import RuleVerdict
from sightline.scoring.text import (
    FUNCTION_WORDS,
    NAMES_NOTHING,
    NUMBER_WORDS,
    OPEN,
    allowed_times,
    announced,
    answer_part,
    cached_for_short_texts,
    colours,
    content,
    denials,
    excludes,
    is_question,
    joined,
    lexicon,
    numbers,
    on_the_dial,
    statements,
    stem,
    times_of_day,
    without_lead_in,
    words,
)
from sightline.types import Group, Metric, Outcome, Term

_CHOICE_WORDS = frozenset({"or", "either", "both", "neither"})
_FULL_DAY = re.compile(r"\b24(?:-| )?h(?:ou)?rs?\b", re.IGNORECASE)

_TIME_IN_WORDS = re.compile(
    rf"\d|\b(?:{'|'.join(sorted(NUMBER_WORDS))}|half|quarter|noon|midday|midnight|past|o['’]?clock)\b",
    re.IGNORECASE,
)
"""What an answer needs to name a time: figures, or a time in words, which these rules do not read."""

_RELATIVE_TIME = re.compile(r"\b(?:before|after|until)\s+\d", re.IGNORECASE)
"""A time from which another one is computed: '10 minutes before 7:23'."""

_THERE_IS_NO = re.compile(r"\bthere (?:is|are|was|were)(?: no\b|n[’']t\b| not any\b)", re.IGNORECASE)

_RELATIONS = frozenset({"before", "after", "near", "beside", "behind"})


def judge_answer_part(question: str, reference: str, answer: str) -> tuple[RuleVerdict, str]:
    """Decide whether an answer part agrees with the ground truth (CODIS 4.2), and by which rule.

    Whole words are compared. Every ground truth is definite, so an answer is wrong if it is empty, declines
    ('it cannot be determined') or names several options. It is undecided if it uses a synonym, contradicts
    itself or breaks off.

    >>> judge_answer_part("Is it going up or down?", "Up.", "It goes upwards")[0]
    'right'
    >>> judge_answer_part("Does it run clockwise or counterclockwise?", "Clockwise.", "Counterclockwise.")[0]
    'wrong'
    """
    if all(map(is_question, statements(answer))):
        return "wrong", "only questions, or empty"
    if words(answer) == words(reference):
        return "right", "the words of the reference"
    if allowed := allowed_times(reference):
        return _judge_time(question, allowed, answer), "times of day"
    claimed, expected = claim_of(question, answer), claim_of(question, reference)
    if expected is None and explicit(reference):
        claimed, expected = said_yes_or_no(question, answer), explicit(reference)
    if claimed == OPEN:
        return "wrong", "leaves the question open"
    if expected is None:
        return _judge_words(reference, answer), "content words"
    if claimed is None:
        return "undecided", f"claim unclear, expected: {expected}"
    return "right" if claimed == expected else "wrong", f"claims: {claimed}"


@cached_for_short_texts
def claim_of(question: str, answer: str) -> str | None:
    """Read the claim of an answer to a question that offers options or asks yes or no.

    Returns the words of the chosen option, 'yes' or 'no'; OPEN if the answer leaves the question open; None
    if it is unclear or the question is of another kind.
    """
    if offer_of(question) is not None:
        return chosen_option(question, answer)
    if set(words(answer)) <= NAMES_NOTHING:
        return OPEN
    return said_yes_or_no(question, answer) if asks_yes_or_no(question) else None


def times_in(question: str, answer: str) -> frozenset[int]:
    times = times_of_day(answer)
    return times if _FULL_DAY.search(question) else on_the_dial(times)


def _judge_time(question: str, allowed: frozenset[int], answer: str) -> RuleVerdict:
    final = announced(answer) or answer
    times = times_in(question, final)
    if times and _RELATIVE_TIME.search(final):
        return "undecided"
    if not times:
        return "undecided" if _TIME_IN_WORDS.search(final) and not declines(final, question) else "wrong"
    if not _FULL_DAY.search(question):
        allowed = on_the_dial(allowed)
    if times <= allowed:
        return "right"
    return "undecided" if times & allowed else "wrong"


def _judge_words(reference: str, answer: str) -> RuleVerdict:
    """For a free question: the reference's words in the answer, or other words in their place."""
    final = announced(answer) or answer
    stated = statements(final)
    if any(map(declines, stated)) or _names_nothing(final) or _CHOICE_WORDS & set(words(final)):
        return "wrong"
    answer = " ".join(stated)
    if excludes(final) or _relates(reference, answer):
        return "undecided"
    expected_words, words_of_answer = _matter(reference, answer), _matter(answer, reference)
    found = _holds(words_of_answer, expected_words)
    if explicit(final) and not found:
        return "wrong"
    is_other = _is_other(words_of_answer, expected_words)
    if denials(reference) != denials(answer):
        denied = found or bool(_THERE_IS_NO.search(answer)) or (is_other and not denials(answer))
        return "wrong" if denied else "undecided"
    for kind in (numbers, colours):
        expected, named = kind(reference), kind(answer)
        if len(expected) == 1 and len(content(reference)) <= 1 and named:
            return "right" if named == expected else "wrong"
    if sorted(expected_words) == sorted(words_of_answer):
        return "right" if expected_words == words_of_answer else "wrong"
    if found:
        return "right"
    return "wrong" if is_other else "undecided"


def _matter(text: str, other: str) -> tuple[str, ...]:
    """The stems of the content words of a text, with compounds as in the other text."""
    return tuple(stem(word) for word in joined(words(text), words(other)) if word not in FUNCTION_WORDS)


def _holds(tokens: Sequence[str], phrase: Sequence[str]) -> bool:
    """Whether stems contain a phrase, word by word or by synonyms."""
    size = len(phrase)
    return bool(phrase) and any(
        all(map(_means, tokens[start : start + size], phrase)) for start in range(len(tokens) - size + 1)
    )


def _is_other(tokens: Sequence[str], expected: Sequence[str]) -> bool:
    """Whether stems name something else: an opposite of an expected word, or no expected word at all."""
    related = [relation(token, word) for token in tokens for word in expected]
    return bool(tokens) and (-1 in related or 1 not in related)


def _means(one: str, other: str) -> bool:
    return relation(one, other) == 1


def _names_nothing(answer: str) -> bool:
    return set(words(answer)) <= NAMES_NOTHING


def _relates(reference: str, answer: str) -> bool:
    """Whether an answer refers to the reference by a relation: 'the day after', 'Tom's brother'."""
    own = words(reference)
    if _RELATIONS & set(words(answer)) - set(own):
        return True
    return any(re.search(rf"\b{re.escape(word)}['’]s\b", answer, re.IGNORECASE) for word in own)


# -- Decides by rules whether two outputs mean the same: the offline judge of CODIS 4.2, Tables 3 and 4

SAME_FROM = 0.6
"""The overlap of content words (Dice, 0 to 1) from which two free answers count as the same in meaning."""

_REPORTS = frozenset(
    map(stem, lexicon("answer think believe guess say appear seem look case context image picture photo"))
)
"""Words that report an answer without being part of it ('I think', 'it looks like')."""

_CHOICE = frozenset({"or", "either"})
_CLAUSE_END = re.compile(r"[,:]\s")


def same_meaning_by_rules(question: str, first: str, second: str) -> RuleVerdict:
    """Decide whether the answer parts of two outputs mean the same.

    A lead-in ('Based on the context, ...') does not count, nor does any other beginning that both answers
    share. The rules then compare the chosen option, yes or no, or the time. Two answers that leave the
    question open mean the same. Otherwise the words count that are not in the question: answers differ if a
    number, a colour or an opposite differs, if they share no word, or if their number of negations or their
    word order differs. Undecided if an answer has no such words, or if only one of two answers to a
    yes/no question can be read.

    >>> same_meaning_by_rules("Is it going up or down?", "Upwards.", "It is going up.")
    'right'
    >>> same_meaning_by_rules("What is it?", "Based on the context, eight.", "Based on the context, two.")
    'wrong'
    """
    one, other = _without_shared_clauses(question, answer_part(first), answer_part(second))
    if words(one) == words(other):
        return "right"
    if not words(one) or not words(other):
        return "wrong"
    claims = _claim(question, one), _claim(question, other)
    if None not in claims and claims != (NEITHER, NEITHER):
        return "right" if claims[0] == claims[1] else "wrong"
    if not (similar := _is_similar(question, one, other)):
        return "undecided" if similar is None or {"yes", "no"} & set(claims) else "wrong"
    return "right" if claims[0] == claims[1] else "undecided"


def _without_shared_clauses(question: str, first: str, second: str) -> tuple[str, str]:
    """Two answers without the clauses with which both begin, unless these already answer the question."""
    ends = [end.end() for end in _CLAUSE_END.finditer(first) if second.startswith(first[: end.end()])]
    shared = ends[-1] if ends else 0
    if not shared or _claim(question, first[:shared]) is not None:
        return first, second
    return first[shared:], second[shared:]


def _claim(question: str, answer: str) -> str | frozenset[int] | None:
    """What an answer claims, if rules can read it: an option, yes or no, OPEN, or times of day."""
    return claim_of(question, answer) or times_in(question, answer) or (OPEN if declines(answer) else None)


def _is_similar(question: str, first: str, second: str) -> bool | None:
    """Whether two answers are lexically similar; None where one has no content words."""
    first, second = without_lead_in(first), without_lead_in(second)
    one, other = _own_words(question, first, second), _own_words(question, second, first)
    if not one or not other:
        return None
    if denials(first) != denials(second) or _offers(first) != _offers(second):
        return False
    if sorted(one) == sorted(other):
        return one == other
    for kind in (numbers, colours):
        values = kind(first), kind(second)
        if all(values) and values[0] != values[1]:
            return False
    return _agree(*_cores(one, other))


def _agree(one: Sequence[str], other: Sequence[str]) -> bool:
    """Whether the words in which two answers differ mean the same, or only one of them says more."""
    if not one or not other:
        return True
    related = [[relation(own, there) for there in other] for own in one]
    if any(-1 in row for row in related):
        return False
    shared = sum(1 in row for row in related), sum(1 in column for column in zip(*related, strict=True))
    return sum(shared) / (len(one) + len(other)) >= SAME_FROM


def _cores(one: Sequence[str], other: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """Two sequences without the beginning and the end that they share."""
    start = _shared_length(one, other)
    one, other = one[start:], other[start:]
    end = _shared_length(one[::-1], other[::-1])
    return one[: len(one) - end], other[: len(other) - end]


def _shared_length(one: Sequence[str], other: Sequence[str]) -> int:
    pairs = zip(one, other, strict=False)
    return sum(1 for _ in takewhile(lambda pair: relation(*pair) == 1, pairs))


def _offers(answer: str) -> bool:
    return bool(_CHOICE & set(words(answer)))


def _own_words(question: str, answer: str, other: str) -> tuple[str, ...]:
    """The stems and numbers of an answer that are not in the question; all of them if all are in it."""
    plain = [stem(word) for word in joined(words(answer), words(other)) if not _says_nothing(word)]
    found = [*plain, *(f"{number:g}" for number in sorted(numbers(answer)))]
    asked = set(content(question)) | _REPORTS
    return tuple(word for word in found if word not in asked) or tuple(found)


def _says_nothing(word: str) -> bool:
    return word in FUNCTION_WORDS | NUMBER_WORDS or word.isdecimal()


# -- Output bias: which of two words the outputs name, where the question offers both (CODIS 5.2)


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
            source="CODIS 5.2, Table 6",
            judged=None,
            absent="no question offers both words of a pair",
            reads="verdicts",
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
