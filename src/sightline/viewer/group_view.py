"""A group as pages show it: what its probes share once, then what differs, side by side.

What is shared follows from the probes themselves: the contexts of CODIS differ under one image and question,
the images of MM-R3's styles and masks under one question, its rephrasings under one image.
"""

from __future__ import annotations

import base64
import io
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from difflib import SequenceMatcher
from functools import cache
from operator import itemgetter

from msgspec import Struct
from msgspec.structs import replace

from sightline.evaluation.run_images import NOT_SENT, SIDE, ImageError, RunImages
from sightline.scoring.letters import right_positions
from sightline.scoring.scorer import Explanation
from sightline.types import LETTERS, Labels, Outcome, Verdict, VerdictName
from sightline.viewer.environment import shorten
from sightline.viewer.index_types import GroupDetail, GroupRow, IndexedImage, SimilarityMatrix

SHADES = 5
"""The number of shades of a similarity matrix."""

FLAG_SCORES = (0.0, 1.0)
"""The values of scores that are flags."""


ABSENCES = {"empty": "[empty response]", "not_sent": "[not sent]", "error": "[no answer]"}
"""Status of an answer -> what stands in the place of its text."""


class ShownImage(Struct, frozen=True):
    """An image on a page; the width is that of the shown image, in pixels."""

    name: str
    source: str = ""
    width: int = 0
    height: int = 0
    notice: str = ""


ImageSource = Callable[[IndexedImage], ShownImage]
"""Finds how an image is shown."""


class JudgeLine(Struct, frozen=True):
    """A verdict of one judge on one answer."""

    judge: str
    verdict: VerdictName
    extracted: str
    raw: str


class ProbeView(Struct, frozen=True):
    """A probe beside the others of its group: its own parts, without those that all share.

    `notice` says what of the response is not shown, or why there is none.
    """

    number: int
    name: str
    outcome: Outcome
    images: tuple[ShownImage, ...]
    question: str
    references: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    pieces: tuple[Piece, ...]
    notice: str
    scores: tuple[tuple[str, float], ...]
    judges: tuple[JudgeLine, ...]
    explanation: Explanation | None = None

    @property
    def verdict(self) -> VerdictName:
        return self.outcome.verdict

    @property
    def judges_differ(self) -> bool:
        """Whether one judge calls the answer right, and another one wrong."""
        return {"right", "wrong"} <= {line.verdict for line in self.judges}

    @property
    def label(self) -> str:
        """What sets the probe apart: its context, its question, or its name."""
        return self.outcome.context or self.question or self.name


class OptionRow(Struct, frozen=True):
    """An option of a question: who chose it.

    `letter` is the number of an option after Z, and '' for responses that choose none.
    """

    letter: str
    text: str
    is_reference: bool
    chosen: tuple[VerdictName | None, ...]


class MatrixCell(Struct, frozen=True):
    """The similarity of two answers; `shade` is 1 to SHADES, 0 for an answer and itself, or without value."""

    text: str
    shade: int = 0
    over: bool = False


class GroupView(Struct, frozen=True):
    """A group on a page."""

    row: GroupRow
    images: tuple[ShownImage, ...]
    question: str
    references: tuple[str, ...]
    facts: tuple[tuple[str, str], ...]
    probes: tuple[ProbeView, ...]
    options: tuple[OptionRow, ...] = ()
    matrix: tuple[tuple[MatrixCell, ...], ...] = ()
    variants: tuple[str, ...] = ()
    threshold: float = 0.0
    misfits: tuple[str, ...] = ()

    @property
    def columns(self) -> int:
        """The number of probes beside each other, 2 to 4."""
        count = len(self.probes)
        return 4 if count == 4 or count > 6 else 3 if count != 2 else 2

    @property
    def has_own_images(self) -> bool:
        return any(probe.images for probe in self.probes)

    @property
    def has_own_references(self) -> bool:
        return any(probe.references for probe in self.probes)

    @property
    def own_part(self) -> str:
        if any(probe.outcome.context for probe in self.probes):
            return "Context"
        return "Variant" if self.question else "Question"


def group_view(detail: GroupDetail, shown: ImageSource, explained: Sequence[Explanation] = ()) -> GroupView:
    """A group; `explained` are explanations of its answers in their order, empty for none."""
    outcomes = detail.outcomes
    same_images = len(set(detail.images)) == 1
    same_question = len({outcome.question for outcome in outcomes}) == 1
    same_references = len({outcome.references for outcome in outcomes}) == 1
    shared_labels = _shared([outcome.labels for outcome in outcomes])
    responses = [shorten(outcome.response) for outcome in outcomes]
    marked = mark_differences([response.text for response in responses])
    probes = tuple(
        ProbeView(
            number=number,
            name=_name(outcome, outcomes),
            outcome=outcome,
            images=() if same_images else tuple(map(shown, images)),
            question="" if same_question else outcome.question,
            references=() if same_references else outcome.references,
            facts=_own_facts(outcome, shared_labels),
            pieces=pieces,
            notice=outcome.error or response.notice or ABSENCES.get(outcome.status, ""),
            scores=_numbers(outcome.scores),
            judges=_judges(outcome, detail.verdicts),
            explanation=explained[number - 1] if explained else None,
        )
        for number, (outcome, images, response, pieces) in enumerate(
            zip(outcomes, detail.images, responses, marked, strict=True), 1
        )
    )
    similarity = detail.similarity
    return GroupView(
        row=detail.row,
        images=tuple(map(shown, detail.images[0])) if same_images else (),
        question=outcomes[0].question if same_question else "",
        references=outcomes[0].references if same_references else (),
        facts=_facts(shared_labels),
        probes=probes,
        options=_options(outcomes),
        matrix=_matrix(similarity) if similarity else (),
        variants=similarity.variants if similarity else (),
        threshold=similarity.threshold if similarity else 0.0,
        misfits=_misfits(detail, [probe.name for probe in probes]),
    )


def _name(outcome: Outcome, outcomes: Sequence[Outcome]) -> str:
    """The variant, and the draw where a variant has several."""
    draws = sum(other.variant == outcome.variant for other in outcomes)
    return f"{outcome.variant}, draw {outcome.draw}" if draws > 1 else outcome.variant


def _shared(labels: Sequence[Labels]) -> Labels:
    return {
        name: value for name, value in labels[0].items() if all(other.get(name) == value for other in labels)
    }


def _facts(labels: Labels) -> tuple[tuple[str, str], ...]:
    return tuple(
        (name, value if isinstance(value, str) else ", ".join(value)) for name, value in labels.items()
    )


def _own_facts(outcome: Outcome, shared: Labels) -> tuple[tuple[str, str], ...]:
    """The labels of one probe, without one that only repeats its variant (a style)."""
    own = {name: value for name, value in outcome.labels.items() if name not in shared}
    return _facts({name: value for name, value in own.items() if value != outcome.variant})


def _numbers(scores: Mapping[str, float]) -> tuple[tuple[str, float], ...]:
    """The scores that are numbers: a flag is 1, or absent."""
    return tuple((name, value) for name, value in scores.items() if value not in FLAG_SCORES)


def _judges(outcome: Outcome, verdicts: Iterable[Verdict]) -> tuple[JudgeLine, ...]:
    """The verdicts on this answer alone."""
    return tuple(
        JudgeLine(
            verdict.judge if not verdict.draw else f"{verdict.judge}, repeat {verdict.draw}",
            verdict.verdict,
            verdict.extracted or "",
            verdict.raw if verdict.kind != "rules" else "",
        )
        for verdict in verdicts
        if verdict.targets == (outcome.key,) and verdict.question == "correct"
        if verdict.variant in ("", outcome.variant)
    )


def _options(outcomes: Sequence[Outcome]) -> tuple[OptionRow, ...]:
    """The options in the order of the first probe; another order of the same options is followed by text.

    The right option is marked if it is the same for all probes.
    """
    options = outcomes[0].options
    if not options or any(set(outcome.options) != set(options) for outcome in outcomes):
        return ()
    right = [
        {outcome.options[place] for place in right_positions(outcome.references, outcome.options)}
        for outcome in outcomes
    ]
    references = right[0] if all(texts == right[0] for texts in right) else set()
    chosen = [_option_text(outcome) for outcome in outcomes]

    def row(letter: str, text: str, is_reference: bool) -> OptionRow:
        verdicts = (o.verdict if found == text else None for o, found in zip(outcomes, chosen, strict=True))
        return OptionRow(letter, text, is_reference, tuple(verdicts))

    rows = [
        row(LETTERS[place] if place < len(LETTERS) else str(place + 1), text, text in references)
        for place, text in enumerate(options)
    ]
    none = tuple(
        None if found in options else outcome.verdict for outcome, found in zip(outcomes, chosen, strict=True)
    )
    return (*rows, *([OptionRow("", "no option found", False, none)] if any(none) else []))


def _option_text(outcome: Outcome) -> str:
    """The option that was extracted from a response; '' for none."""
    chosen = right_positions([outcome.extracted] if outcome.extracted else [], outcome.options)
    return outcome.options[min(chosen)] if chosen else ""


def _matrix(similarity: SimilarityMatrix) -> tuple[tuple[MatrixCell, ...], ...]:
    return tuple(
        tuple(
            MatrixCell("·") if place == other else _cell(value, similarity.threshold)
            for other, value in enumerate(row)
        )
        for place, row in enumerate(similarity.values)
    )


def _misfits(detail: GroupDetail, names: Sequence[str]) -> tuple[str, ...]:
    """What makes a group inconsistent: which pairs, and the similarity by which this was decided."""
    found = []
    for misfit in detail.row.misfits:
        pair = f"{names[misfit.first]} and {names[misfit.second]}"
        similarity = detail.similarity
        value = similarity.values[misfit.first][misfit.second] if similarity else None
        if similarity is None or value is None:
            measured = ""
        else:
            measured = f": similarity {value:.2f}, consistent above {similarity.threshold:.2f}"
        if misfit.is_same:
            text = f"{pair} have the same answer, but different references{measured}"
        else:
            text = f"{pair} have the same reference, but different answers{measured}"
        found.append((2.0 if value is None else value, text))
    return tuple(text for _, text in sorted(found, key=itemgetter(0)))


def _cell(value: float | None, threshold: float) -> MatrixCell:
    if value is None:
        return MatrixCell("")
    text = f"{value:.2f}".replace("0.", ".", 1) if 0 <= value < 1 else f"{value:.2f}"
    shade = 1 + min(SHADES - 1, max(0, int(value * SHADES)))
    return MatrixCell(text, shade, value > threshold)


# -- Marks the words in which the responses of a group differ

MOST_WORDS = 250
"""The words of a response that are compared; later ones are not marked."""

_SPLIT = re.compile(r"\s+|[^\s]+")


class Piece(Struct, frozen=True):
    """A part of a response; `marked` if the other responses do not have it."""

    text: str
    marked: bool = False


def mark_differences(responses: Sequence[str]) -> list[tuple[Piece, ...]]:
    """Mark the words that are not common to all responses.

    Responses without a common word, and a single response, have no marks: there is nothing to compare.

    >>> mark_differences(["It is east.", "It is west."])[0]
    (Piece(text='It is ', marked=False), Piece(text='east.', marked=True))
    """
    split = [_SPLIT.findall(response) for response in responses]
    words = [[_plain(token) for token in tokens if not token.isspace()][:MOST_WORDS] for tokens in split]
    common = words[0] if words else []
    for other in words[1:]:
        common = [common[at] for at in sorted(_matched(common, other))]
    if len(responses) < 2 or not common:
        return [(Piece(response),) for response in responses]
    return [_pieces(tokens, _matched(own, common)) for tokens, own in zip(split, words, strict=True)]


def _matched(words: Sequence[str], others: Sequence[str]) -> set[int]:
    """The places of the words that are also in others, in the same order."""
    blocks = SequenceMatcher(None, words, others, autojunk=False).get_matching_blocks()
    return {place for block in blocks for place in range(block.a, block.a + block.size)}


def _pieces(tokens: Sequence[str], common: set[int]) -> tuple[Piece, ...]:
    """Join tokens to pieces; the space between two marked words is marked."""
    pieces: list[Piece] = []
    number = -1
    for token in tokens:
        number += not token.isspace()
        marked = not token.isspace() and number not in common and number < MOST_WORDS
        if marked and len(pieces) > 1 and pieces[-1].text.isspace() and pieces[-2].marked:
            space = pieces.pop().text
            pieces[-1] = Piece(pieces[-1].text + space + token, True)
        elif pieces and pieces[-1].marked == marked and not (token.isspace() and marked):
            pieces[-1] = Piece(pieces[-1].text + token, marked)
        else:
            pieces.append(Piece(token, marked))
    return tuple(pieces)


def _plain(word: str) -> str:
    """A word without its case and the punctuation around it."""
    return word.casefold().strip(".,;:!?\"'()[]*`") or word


# -- Images inside a page: thumbnails as data URLs, or the reason why an image is not shown

QUALITY = 60
"""The quality of images that are smaller than a thumbnail."""


def thumbnails(images: RunImages, side: int = SIDE) -> ImageSource:
    """Show images as parts of the page itself, at most `side` pixels wide and high."""

    @cache
    def shown(image: IndexedImage) -> ShownImage:
        try:
            body = images.thumbnail(image.path, image.digest)
        except ImageError as error:
            return ShownImage(image.path, notice=f"{image.path}: not shown, {error.message}")
        inline = _inline(image.path, body, side)
        return inline if image.is_sent else replace(inline, notice=NOT_SENT)

    return shown


def _inline(name: str, body: bytes, side: int) -> ShownImage:
    """A WebP image as a data URL, made smaller if a side is longer."""
    from PIL import Image

    image = Image.open(io.BytesIO(body))
    if max(image.size) > side:
        image.thumbnail((side, side))
        out = io.BytesIO()
        image.save(out, "WEBP", quality=QUALITY)
        body = out.getvalue()
    source = f"data:image/webp;base64,{base64.b64encode(body).decode()}"
    return ShownImage(name, source, *image.size)
