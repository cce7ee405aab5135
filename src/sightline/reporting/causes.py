"""Where two runs of the same items differ: prompts, images, responses, reading, references, items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import chain, takewhile
from typing import Literal, NamedTuple

from msgspec import Struct
from msgspec.structs import replace

from sightline.metrics.flips import IMAGE_DIGEST, Pairing, probe_pairs
from sightline.reporting.comparison import NOTHING_SHARED
from sightline.reporting.table import Column, Field, ReportTable, build_table
from sightline.scoring.letters import right_positions
from sightline.scoring.text import in_one_spelling
from sightline.text import counted
from sightline.types import BETWEEN_PARTS, Group, GroupKey, Outcome

Cause = Literal["prompts", "images", "responses", "reading", "references"]

CAUSES: Mapping[Cause, str] = {
    "prompts": "the text sent, or the options in their order",
    "images": "the sizes in which the images were sent, or their digests",
    "responses": "the text of the response, or whether there is one",
    "reading": "right in one run only, with the same response and the same references",
    "references": "the right answers",
}
"""What may differ, in the order in which it is looked for."""

_OF_VERDICTS = ("reading", "references")

EXAMPLES = 3
"""The items that are shown of each difference."""

SHOWN = 40
"""The characters of a text that a table shows, from where two texts differ; JSON and CSV hold all."""


class Example(Struct, frozen=True):
    """An item in which two runs differ: what each of them has, and the response if it is the same."""

    what: str
    sample: str
    variant: str
    draw: int
    texts: tuple[str, str]
    verdicts: tuple[str, ...]
    response: str = ""


class Counts(Struct):
    """How many items differ in something, of how many it is known in both runs, and how many verdicts do.

    `changed` counts the items that are right in one run only because of this: the first that differs of what
    leads to another response, and with the same response the references, else the reading.
    """

    differ: int = 0
    known: int = 0
    changed: int = 0


class Causes(Struct, frozen=True):
    """What differs between two runs.

    Of `items` that both hold, `right` are right in each run and `scored` have a verdict. `only` counts the
    items of one run only. A comparison leaves out `left_out` samples, whose data differ; `other_data` counts
    those of another cluster, other images or other labels.
    """

    runs: tuple[str, str]
    counts: Mapping[Cause, Counts]
    examples: Sequence[Example]
    items: int
    right: tuple[int, int]
    scored: tuple[int, int]
    only: tuple[int, int]
    left_out: int
    other_data: Mapping[str, int]


class _Sides(NamedTuple):
    """What both runs have of something, as texts; None where one does not say."""

    first: str | None
    second: str | None

    @property
    def known(self) -> bool:
        return self.first is not None and self.second is not None


def find_causes(
    runs: tuple[str, str],
    base: Mapping[GroupKey, Group],
    other: Mapping[GroupKey, Group],
    pairing: Pairing,
) -> Causes:
    """Compare two runs item by item. `pairing` holds pairs of other data, too."""
    counts = {cause: Counts() for cause in CAUSES}
    shown: defaultdict[str, list[Example]] = defaultdict(list)
    items, right, scored, only = 0, [0, 0], [0, 0], [0, 0]
    matched: tuple[set[_Item], set[_Item]] = (set(), set())

    def show(example: Example) -> None:
        if len(shown[example.what]) < EXAMPLES:
            shown[example.what].append(example)

    for both in chain.from_iterable(map(probe_pairs, pairing.pairs)):
        items += 1
        for side, one in enumerate(both):
            right[side] += one.right
            scored[side] += one.verdict != "unscored"
            matched[side].add(_item(one))
        _compare(*both, counts, show)
    for side, groups in enumerate((base, other)):
        lacking = pairing.missing[1 - side]
        if not (lacking.samples or lacking.probes):
            continue
        for one in (one for key in groups for one in groups[key]):
            if _item(one) not in matched[side]:
                only[side] += 1
                texts = (one.response, "") if side == 0 else ("", one.response)
                show(Example(f"only in {runs[side]}", *_item(one), texts, (one.verdict,)))
    order = [*CAUSES, *(f"only in {run}" for run in runs)]
    return Causes(
        runs,
        counts,
        [example for what in order for example in shown[what]],
        items,
        (right[0], right[1]),
        (scored[0], scored[1]),
        (only[0], only[1]),
        len(pairing.different),
        _other_data(pairing),
    )


def _other_data(pairing: Pairing) -> Mapping[str, int]:
    """How many of the samples whose data differ do so in what no row counts."""
    different, found = set(pairing.different), defaultdict[str, set[str]](set)
    for before, after in pairing.pairs:
        if after.id not in different:
            continue
        digests = _image_digests(before.outcomes[0], after.outcomes[0])
        differs = {
            "cluster": before.cluster != after.cluster,
            "images": digests.known and digests.first != digests.second,
            "labels": before.outcomes[0].labels != after.outcomes[0].labels,
        }
        for what in (name for name, is_other in differs.items() if is_other):
            found[what].add(after.id)
    return {what: len(samples) for what, samples in found.items()}


_Item = tuple[str, str, int]
"""The sample, the variant and the draw of an answer."""


def _item(one: Outcome) -> _Item:
    return one.sample, one.variant, one.draw


def _compare(
    before: Outcome, after: Outcome, counts: Mapping[Cause, Counts], show: Callable[[Example], None]
) -> None:
    changed = _has_other_verdict(before, after)
    # The same letter is another answer where the options are others.
    is_same = before.answered == after.answered and before.response == after.response
    is_same = is_same and not _has_other_options(before, after)
    for cause, sides, differs in _differences(before, after):
        one = counts[cause]
        one.known += sides.known
        if not (sides.known and differs):
            continue
        one.differ += 1
        if (cause in _OF_VERDICTS) == is_same:
            one.changed += changed
            changed = False
        show(
            Example(
                cause,
                *_item(after),
                (sides.first or "", sides.second or ""),
                (before.verdict, after.verdict),
                "" if before.response != after.response else after.response,
            )
        )


def _differences(before: Outcome, after: Outcome) -> Iterator[tuple[Cause, _Sides, bool]]:
    """Each cause with what both runs have, and whether that differs; references first decide the reading."""
    asked = _Sides(*(one.prompt or None for one in (before, after)))
    if asked.first == asked.second or not asked.known:
        listed = _Sides(*(" | ".join(one.options) or None for one in (before, after)))
        asked = listed if listed.known and listed.first != listed.second else asked
    yield "prompts", asked, asked.first != asked.second
    sizes = _Sides(_sizes(before), _sizes(after))
    if not sizes.known or sizes.first == sizes.second:
        digests = _image_digests(before, after)
        sizes = digests if digests.known and (not sizes.known or digests.first != digests.second) else sizes
    yield "images", sizes, sizes.first != sizes.second
    said = _Sides(*(one.response if one.answered else f"no answer: {one.error}" for one in (before, after)))
    yield "responses", said, said.first != said.second and (before.answered or after.answered)
    references = _Sides(*("; ".join(one.references) or None for one in (before, after)))
    same_references = (
        not references.known
        or (before.references == after.references and before.options == after.options)
        or right_answers(before) == right_answers(after)
    )
    read = _Sides(*(f"{one.extracted or one.verdict} ({one.judge})" for one in (before, after)))
    is_read = said.first == said.second and same_references and not _has_other_options(before, after)
    yield "reading", read, is_read and _has_other_verdict(before, after)
    yield "references", references, not same_references


def _has_other_verdict(before: Outcome, after: Outcome) -> bool:
    return before.right != after.right and "unscored" not in (before.verdict, after.verdict)


def _has_other_options(before: Outcome, after: Outcome) -> bool:
    return bool(before.options and after.options) and before.options != after.options


def right_answers(one: Outcome) -> frozenset[str]:
    """The right answers as texts in one spelling, whatever the order of the options."""
    positions = right_positions(one.references, one.options)
    texts = [one.options[position] for position in positions] or one.references
    return frozenset(map(in_one_spelling, texts))


def _sizes(one: Outcome) -> str | None:
    known = [f"{size[0]} x {size[1]}" for size in one.image_sizes if size is not None]
    return ", ".join(known) if known and len(known) == len(one.image_sizes) else None


def _image_digests(before: Outcome, after: Outcome) -> _Sides:
    parts = (one.sample_digest.partition(BETWEEN_PARTS)[2] or None for one in (before, after))
    digests = _Sides(*parts)
    clusters = [one.cluster if IMAGE_DIGEST.fullmatch(one.cluster) else None for one in (before, after)]
    return digests if digests.known else _Sides(*clusters)


# -- Tables: counts of each difference, and examples


def causes_tables(found: Causes, task: str, *, full: bool) -> list[ReportTable]:
    """The counts, and three items of each difference."""
    return [_counts_table(found, task), _examples_table(found, task, full=full)]


class _Row(NamedTuple):
    what: str
    differ: int
    known: int | None
    changed: int | None


def _counts_table(found: Causes, task: str) -> ReportTable:
    rows = [_Row(cause, one.differ, one.known, one.changed) for cause, one in found.counts.items()]
    rows += [
        _Row(f"only in {run}", number, None, None) for run, number in zip(found.runs, found.only, strict=True)
    ]
    fields: list[Field[_Row]] = [
        (Column("text", "", "what"), lambda row: row.what),
        (Column("count", "differ", "differ"), lambda row: row.differ),
        (Column("count", "of", "known"), lambda row: row.known),
        (Column("count", "other\nverdict", "changed"), lambda row: row.changed),
    ]
    notes = [
        f"{cause}: of {counted(found.items - one.known, 'item')} a run does not hold them"
        for cause, one in found.counts.items()
        if one.known < found.items
    ]
    notes += [
        f"{run}: {counted(found.items - scored, 'answer')} without a reference or a score have no verdict"
        for run, scored in zip(found.runs, found.scored, strict=True)
        if scored < found.items
    ]
    if found.left_out:
        named = ", ".join(f"{what} of {number:,}" for what, number in found.other_data.items())
        notes.append(
            f"compare leaves out {counted(found.left_out, 'sample')}, whose data differ: "
            f"{named or 'no cluster, image or label, so that it is a text: see prompts and references'}"
        )
    legend = [
        *(f"{cause}: {meaning}" for cause, meaning in CAUSES.items()),
        "other verdict: right in one run only; each counts once: where the responses differ, at the first of"
        " prompts, images and responses that differs, otherwise at references or reading",
    ]
    made = build_table(f"{task}, why they differ", fields, rows, notes, legend)
    return replace(made, lead=_lead(found))


def _lead(found: Causes) -> str:
    first, second = found.runs
    shares = [
        f"{100 * right / scored:.1f} %" if scored else "none scored"
        for right, scored in zip(found.right, found.scored, strict=True)
    ]
    total = sum(one.changed for one in found.counts.values())
    if not found.items:
        return NOTHING_SHARED
    shared = counted(found.items, "answer")
    said = f"Of {shared} that both hold, these are right: {shares[0]} in {first}, {shares[1]} in {second}"
    if not total:
        return f"{said}. No verdict differs"
    parts = [f"{one.changed:,} by {cause}" for cause, one in found.counts.items() if one.changed]
    return f"{said}. {counted(total, 'other verdict')}: {', '.join(parts)}"


def _examples_table(found: Causes, task: str, *, full: bool) -> ReportTable:
    def text(side: int) -> Callable[[Example], str]:
        return lambda one: one.texts[side] if full else _from_difference(one.texts, side)

    fields: list[Field[Example]] = [
        (Column("text", "", "what"), lambda one: one.what),
        (Column("text", "sample", "sample"), lambda one: one.sample),
        (Column("text", "variant", "variant"), lambda one: one.variant),
        (Column("text", found.runs[0], "first"), text(0)),
        (Column("text", found.runs[1], "second"), text(1)),
        (Column("text", "verdicts", "verdicts"), lambda one: ", ".join(one.verdicts)),
        (
            Column("text", "response of both", "response"),
            lambda one: one.response if full else _short(one.response),
        ),
    ]
    if any(one.draw for one in found.examples):
        fields.insert(3, (Column("count", "draw", "draw"), lambda one: one.draw))
    return build_table(f"{task}, examples", fields, found.examples, [])


def _from_difference(texts: tuple[str, str], side: int) -> str:
    """A text on one line, from shortly before the place where it leaves the other one.

    Spaces and line breaks are written out where only they differ.
    """
    one, other = (" ".join(text.split()) for text in (texts[side], texts[1 - side]))
    if one == other:
        one, other = (repr(text)[1:-1].replace(" ", "\u2423") for text in (texts[side], texts[1 - side]))
    place = sum(1 for _ in takewhile(lambda pair: pair[0] == pair[1], zip(one, other, strict=False)))
    start = max(0, place - SHOWN // 2) if len(one) > SHOWN and other else 0
    return ("..." if start else "") + _short(one[start:])


def _short(text: str) -> str:
    text = " ".join(text.split())
    return text if len(text) <= SHOWN else f"{text[:SHOWN]}..."
