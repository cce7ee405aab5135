"""Similarity of answers to their references and to each other (MM-R3 3.3), and whether it can be trusted."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, pairwise
from typing import TYPE_CHECKING, Literal

from msgspec.structs import replace

from sightline.scoring.non_answers import declines
from sightline.scoring.offered import OPPOSITES
from sightline.scoring.polarity import explicit
from sightline.scoring.scorer import VectorScorer
from sightline.scoring.text import (
    NEGATIONS,
    NUMBER_WORDS,
    OPEN,
    colours,
    content,
    denials,
    excludes,
    lexicon,
    normalised,
    numbers,
    on_the_dial,
    respelled,
    statements,
    times_of_day,
    ungrouped,
    words,
)
from sightline.types import PERCENT, Group, MetricDefinition, MetricValue, Outcome, Verdict

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    from sightline.scoring.scorer import Vectors


THRESHOLD = 0.7
"""Two answers are consistent if their cosine similarity is above this (MM-R3 3.3)."""

PRECISION = 2e-6
"""Similarities that differ by less are equal: vectors are in single precision."""

SIMILAR = "similar"
"""The question of the verdict on a pair: right is consistent, `value` is the cosine, -1 to 1.

`value` is None if the answers were compared by the options that they choose."""

UNKNOWN = "unknown_words"
"""The score of an answer of which the embedder does not know too many tokens; it reads all of them as one."""

MOST_UNKNOWN = 0.25
"""The share of unknown tokens that an answer may hold.

Chinese answers to questions about images have 0.4 to 1 with all-MiniLM-L6-v2, English ones with an emoji
0.05 to 0.25."""

CONTRADICTION = "contradiction"
"""The score of the verdict on a consistent pair whose answers contradict each other."""


def similarity(embedder: str, prepared: Callable[[str], str]) -> VectorScorer:
    """A scorer that gives every answer `s_gt` and every pair of answers its similarity.

    An empty answer has similarity 0 to everything. `s_gt` is 100 times the cosine to the nearest reference,
    which may be below 0. Failed answers have no similarity, nor have their pairs. Answers to questions with
    options are compared by the options that they choose (`same_option`): here they have no `s_gt`, and a
    similarity, that of the chosen option, only to answers to questions without options.
    """

    def post_processed(group: Group) -> list[str]:
        return [prepared(text) if text else "" for text in _compared_texts(group)]

    def texts(group: Group) -> list[str]:
        return [text for text in post_processed(group) if text] + _references(group)

    def read(group: Group, vectors: Vectors, unknown: Sequence[float]) -> Group:
        if all(outcome.options for outcome in group):
            return group
        answers, references = post_processed(group), _references(group)
        rows = _rows(answers)
        close = cosines(vectors[: len(rows)] @ vectors.T if rows else vectors)
        column = {reference: len(rows) + nth for nth, reference in enumerate(references)}

        def cosine(first: int, second: int) -> float | None:
            outcomes = group.outcomes[first], group.outcomes[second]
            if not all(outcome.answered for outcome in outcomes):
                return None
            if first in rows and second in rows:
                return float(close[rows[first], rows[second]])
            return 0.0

        def s_gt(number: int, outcome: Outcome) -> Mapping[str, float]:
            nearest = [column[name] for name in outcome.references if name in column]
            if not nearest or not outcome.answered or outcome.options:
                return {}
            if number not in rows:
                return {"s_gt": 0.0}
            return {"s_gt": 100 * max(float(close[rows[number], reference]) for reference in nearest)}

        def unknown_words(number: int) -> Mapping[str, float]:
            return {UNKNOWN: 1.0} if number in rows and unknown[rows[number]] > MOST_UNKNOWN else {}

        outcomes = tuple(
            replace(outcome, scores={**outcome.scores, **s_gt(number, outcome), **unknown_words(number)})
            for number, outcome in enumerate(group)
        )
        pairs = tuple(_pairs(group, embedder, cosine))
        return replace(group, outcomes=outcomes, judgements=(*group.judgements, *pairs))

    return VectorScorer("similarity", SIMILAR, texts, read)


def cosines(products: Vectors) -> NDArray[np.float64]:
    """Cosine similarities from the dot products of unit vectors in single precision.

    `products`: the products, of any shape. Returns -1 to 1; exactly 1 for equal vectors and -1 for opposite
    ones, whatever rounding made of them.
    """
    found = products.astype("float64")
    found[found > 1 - PRECISION] = 1
    found[found < PRECISION - 1] = -1
    return found


def _compared_texts(group: Group) -> list[str]:
    """The text of each answer that has a similarity: the response, or the chosen option; '' for others."""
    if all(outcome.options for outcome in group):
        return [""] * len(group)
    return [
        (chosen_text(outcome) or "") if outcome.options and outcome.answered else outcome.response
        for outcome in group
    ]


def chosen_text(outcome: Outcome) -> str | None:
    """The text of the option that an answer chooses, as `chosen.chosen_option` reads it."""
    # Its patterns take 60 ms to compile, in runs without options for nothing.
    from sightline.scoring.chosen import chosen_option

    return chosen_option(outcome)


def _rows(answers: Sequence[str]) -> dict[int, int]:
    """The row of the vector of each answer that is not empty."""
    return {number: row for row, number in enumerate(n for n, text in enumerate(answers) if text)}


def _references(group: Group) -> list[str]:
    free = (outcome for outcome in group if not outcome.options)
    return list(dict.fromkeys(name for outcome in free for name in outcome.references if name.strip()))


def _pairs(group: Group, embedder: str, cosine: Callable[[int, int], float | None]) -> Iterator[Verdict]:
    for first, second in combinations(range(len(group)), 2):
        outcomes = group.outcomes[first], group.outcomes[second]
        value = cosine(first, second)
        if value is not None and not all(outcome.options for outcome in outcomes):
            yield pair_verdict(*outcomes, value, embedder)


def same_option(group: Group) -> Iterator[Verdict]:
    """Compare the answers to questions with options by the options that they choose.

    Options are compared by their texts, so that their order does not matter.

    Yields:
        A verdict for each two answers whose questions have options: right if both choose the same option. An
        answer that chooses none differs from every other answer. Failed answers are not compared.
    """
    chosen = [(outcome, chosen_text(outcome)) for outcome in group if outcome.options and outcome.answered]
    for (first, option), (second, other) in combinations(chosen, 2):
        yield Verdict(
            targets=(first.key, second.key),
            question=SIMILAR,
            scorer="same_option",
            judge="rules",
            kind="rules",
            verdict="right" if option is not None and option == other else "wrong",
        )


def pair_verdict(first: Outcome, second: Outcome, value: float, embedder: str) -> Verdict:
    consistent, differ = value > THRESHOLD, first.response != second.response
    contradictory = consistent and differ and _contradict(first.response, second.response)
    return Verdict(
        targets=(first.key, second.key),
        question=SIMILAR,
        scorer="similarity",
        judge=embedder,
        kind="model",
        verdict="right" if consistent else "wrong",
        value=value,
        scores={CONTRADICTION: 1.0} if contradictory else {},
    )


def _contradict(first: str, second: str) -> bool:
    # Most evaluations need only the names in this module, and start 5 % slower with the rules imported.

    return contradiction(first, second) is not None


# -- Whether two answers plainly contradict each other, however similar their sentences are

Kind = Literal["yes/no", "number", "colour", "left/right", "opposite"]

_COMPASS = lexicon("north south east west")

_SIDE_BEFORE = lexicon("the to on its his her their far turn turning turns upper lower top bottom")
_SIDE_AFTER = lexicon("side hand corner of arm foot leg wing lane turn edge end half")
_ANSWER_OPENS = re.compile(r"^\W*(?:yes|yeah|yep|no|nope)\b[\s,;:.!-]*", re.IGNORECASE)
_SCALED = lexicon(
    """hundred thousand million billion trillion dozen half quarter third couple pair several
    hundreds thousands millions billions dozens minus negative percent"""
)
_MEASURE = re.compile(r"\d\s*([a-z%°$€£]+)")
_UNITS = lexicon(
    """mm cm m km in ft yd mi inch inches foot feet yard yards mile miles meter meters metre metres
    centimeter centimeters kilometer kilometers kilometre kilometres s sec second seconds min minute minutes
    h hr hour hours day days week weeks month months year years g kg mg gram grams kilogram kilograms lb lbs
    pound pounds oz ounce ounces ton tons l ml liter liters litre litres dollar dollars euro euros cent cents
    c f degree degrees celsius fahrenheit am pm k b bn"""
)
_DETERMINERS = lexicon("a an the this that one some")


def contradiction(first: str, second: str) -> Kind | None:
    """The kind of word in which two answers contradict each other.

    Each answer must be one statement that neither declines nor excludes its words ('anything but red'),
    and hold exactly one value of the kind: 'red' does not contradict 'red and blue'. In answers with a
    negation only yes and no are compared. Numbers with different units ('60 minutes', '1 hour') are not
    compared.

    Returns:
        The kind; None if they do not plainly contradict each other.

    >>> contradiction("Yes.", "No, it is not."), contradiction("a red bus", "A blue bus.")
    ('yes/no', 'colour')
    >>> contradiction("red", "red and blue"), contradiction("2", "two")
    (None, None)
    """
    if not (_is_plain(first) and _is_plain(second)):
        return None
    stated = explicit(first), explicit(second)
    if OPEN in stated:
        return None
    if None not in stated and stated[0] != stated[1]:
        return "yes/no"
    if stated == (None, None) and _denies_other(first, second):
        return "yes/no"
    one, other = (_ANSWER_OPENS.sub("", text) for text in (first, second))
    if denials(one) or denials(other):
        return None
    for kind, values in _KINDS:
        left, right = values(one), values(other)
        if len(left) == len(right) == 1 and left != right:
            return None if kind == "number" and _measure(one) != _measure(other) else kind
    return "opposite" if _are_opposite(one, other) else None


def _is_plain(text: str) -> bool:
    parts = statements(text)
    return len(parts) == 1 and not declines(parts[0]) and not excludes(parts[0])


def _denies_other(first: str, second: str) -> bool:
    """Whether one answer is the negation of the other: 'it is not red', 'it is red'."""
    stems = [tuple(word for word in content(text) if word not in NEGATIONS) for text in (first, second)]
    return bool(stems[0]) and stems[0] == stems[1] and {denials(first), denials(second)} == {0, 1}


def _times(text: str) -> frozenset[float]:
    """The times of day in a text, in minutes on a 12-hour clock face: 7:23 may be 19:23."""
    return frozenset(map(float, on_the_dial(times_of_day(text))))


def _numbers(text: str) -> frozenset[float]:
    """The number of a text; none if a word scales it, or if 'one' is a pronoun."""
    plain = ungrouped(text)
    tokens = words(plain)
    if _SCALED & set(tokens):
        return frozenset()
    values_found = numbers(plain)
    is_pronoun = "one" in tokens and tokens not in (("one",), ("just", "one"), ("only", "one"))
    return values_found - {1.0} if is_pronoun and "1" not in tokens else values_found


def _measure(text: str) -> str:
    """The unit of the number in a text: 'minutes', '%'."""
    plain = ungrouped(respelled(text))
    figures = _MEASURE.findall(plain)
    if figures:
        return figures[0] if not figures[0].isalpha() or figures[0] in _UNITS else ""
    tokens = words(plain)
    after = [then for word, then in pairwise(tokens) if word in NUMBER_WORDS]
    return after[0] if after and after[0] in _UNITS else ""


def _colours(text: str) -> frozenset[str]:
    """The colours in a text; 'an orange' is a fruit."""
    tokens = words(text)
    fruit = any(
        word == "orange" and place and tokens[place - 1] in _DETERMINERS and place + 1 == len(tokens)
        for place, word in enumerate(tokens)
    )
    return colours(text) - {"orange"} if fruit else colours(text)


def _sides(text: str) -> frozenset[str]:
    """Left and right as sides: not in 'he left' or 'the right answer'."""
    tokens = ("", *words(text), "")
    alone = len(tokens) == 3
    return frozenset(
        word
        for before, word, after in zip(tokens, tokens[1:], tokens[2:], strict=False)
        if word in ("left", "right")
        and (alone or after in _SIDE_AFTER or (not after and before in _SIDE_BEFORE))
    )


def _compass(text: str) -> frozenset[str]:
    return frozenset(word for word in words(text) if word in _COMPASS)


def _are_opposite(first: str, second: str) -> bool:
    """Whether the answers hold words of the two different sides of a pair of opposites."""
    one, other = set(words(first)), set(words(second))
    for pair in OPPOSITES:
        left, right = ([bool(side & held) for side in pair.strict] for held in (one, other))
        if sum(left) == sum(right) == 1 and left != right:
            return True
    return len(_compass(first)) == len(_compass(second)) == 1 and _compass(first) != _compass(second)


_KINDS: tuple[tuple[Kind, Callable[[str], frozenset[str] | frozenset[float]]], ...] = (
    ("number", _times),
    ("number", _numbers),
    ("colour", _colours),
    ("left/right", _sides),
)


# -- Whether similarity can tell the short answers of a run apart: the metric `confused`, and its warning

CONFUSED = "confused"

SHORT = 5
"""The number of words up to which a text is short."""

MOST_TEXTS = 1000
"""The number of distinct texts, the most frequent ones, that are compared with each other."""

MOST_KEPT = 20_000
"""The number of distinct short texts, the first ones, that are counted: more would take memory with each."""

UNRELIABLE = 10.0
"""The value of `confused`, in percent, above which similarity metrics are unreliable.

Real short answers that similarity tells apart have at most 0.5 (OK-VQA, indoor scenes, COCO categories,
landmarks); answers that it confuses have 15 (InfographicVQA, many numbers) to 100 (yes and no, letters).
"""

MOST_UNKNOWN_ANSWERS = 10.0
"""The percentage of answers in unknown words above which similarity has no value."""

DEFINITIONS: Mapping[str, MetricDefinition] = {
    CONFUSED: MetricDefinition(
        meaning="pairs of different short texts of the run (answers, references) that count as similar",
        better="neither",
        range=PERCENT,
        source="beyond the paper",
    )
}


class ComparedTexts:
    """The texts of a run that are compared by similarity: how many, and how often each short one occurs."""

    def __init__(self) -> None:
        self.total = 0
        self.short = 0
        self.counts: Counter[str] = Counter()

    def add(self, text: str, count: int = 1) -> None:
        self.total += count
        if len(text.split()) <= SHORT:
            self.short += count
            if text in self.counts or len(self.counts) < MOST_KEPT:
                self.counts[text] += count


def confused(texts: ComparedTexts, clusters: int, vectors: Callable[[Sequence[str]], Vectors]) -> MetricValue:
    """How often two different short texts, drawn at random from those of a run, count as similar.

    Texts are different if they differ after normalisation.

    Args:
        vectors: Returns the unit vectors of some of the texts, shape (texts, dimensions).

    Returns:
        The value in percent, with the number of pairs as n. None with a reason if fewer than half of the
        texts are short, or if there are no two different ones.
    """
    short: Counter[str] = Counter()
    as_written: dict[str, str] = {}
    for text, count in texts.counts.items():
        short[normalised(text)] += count
        as_written.setdefault(normalised(text), text)
    if 2 * texts.short < texts.total:
        return _none(f"fewer than half of the compared texts are short (at most {SHORT} words)")
    frequent = short.most_common(MOST_TEXTS)
    pairs = sum(count for _, count in frequent) ** 2 - sum(count**2 for _, count in frequent)
    if not pairs:
        return _none("no two different short texts are compared by similarity")
    matrix = vectors([as_written[text] for text, _ in frequent])
    similar = 0
    for position, (_, count) in enumerate(frequent):
        close = matrix @ matrix[position] > THRESHOLD
        similar += count * sum(
            frequent[other][1] for other in close.nonzero()[0].tolist() if other != position
        )
    return MetricValue(CONFUSED, "all", 100 * similar / pairs, pairs // 2, clusters)


def similarity_warning(metrics: Iterable[MetricValue]) -> str | None:
    """The warning on the similarity metrics of a run, for every view of it; None if similarity knows the
    words of its answers and tells the short ones apart, or nothing is known.
    """
    for metric in metrics:
        if metric.metric == UNKNOWN and metric.subset == "all" and (metric.value or 0) > MOST_UNKNOWN_ANSWERS:
            return (
                f"con, s_c, s_gt and the metrics made of them have no value here: {unknown_words(metric)}."
                " Use agree, which compares the answers themselves, or --set embedder=NAME"
            )
        if metric.metric == CONFUSED and metric.value is not None and metric.value > UNRELIABLE:
            return (
                f"con, s_c, s_gt and the metrics made of them are unreliable here: over {UNRELIABLE:g} % of "
                "the pairs of different short texts count as similar (metric `confused`). Use agree, which "
                "compares the answers themselves"
            )
    return None


def unknown_words(unknown: MetricValue) -> str:
    """What a value above 0 of the metric UNKNOWN means."""
    limit = f" (limit {MOST_UNKNOWN_ANSWERS:g} %)" if (unknown.value or 0) > MOST_UNKNOWN_ANSWERS else ""
    return (
        f"the embedder does not know the words of {unknown.value:.1f} % of {int(unknown.n):,} answers, and"
        f" reads all unknown words as one{limit}"
    )


def _none(reason: str) -> MetricValue:
    return MetricValue(CONFUSED, "all", None, 0, 0, reason=reason)
