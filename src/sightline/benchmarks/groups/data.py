"""Makes samples and probes of a groups file, or of a file of answers that contains the questions."""

from __future__ import annotations

import os
from collections.abc import Iterable, Iterator, Sequence
from operator import attrgetter
from pathlib import Path

from msgspec import UNSET, Struct
from msgspec.structs import replace

from sightline.errors import UserError
from sightline.formats.groups import (
    ORIGINAL,
    GroupFile,
    GroupLine,
    by_group,
    check_options,
    open_groups,
    second_cluster,
    size_of,
)
from sightline.formats.jsonl import counted_notes
from sightline.formats.prediction import (
    Prediction,
    RecordLocation,
    plain_reply,
    without_missing,
)
from sightline.types import ImageRef, Probe, Sample, user

GROUPS = "groups.jsonl"
"""The name of the groups file in a built folder."""

SAMPLING_DRAWS = 4
"""How often the unchanged input is sent (MM-R3 4.2: Sampling)."""


class LineSelection(Struct, frozen=True):
    """Which lines of a groups file are sent, and how.

    `size` keeps the lines with that label `size`. Without it, `one_size` keeps the images in their own size,
    or else in the only size that a builder made. `selected_lines` explains `unchanged` and `all_variants`.
    With `likelihood`, the model's answer to a line with options is the most likely option. Without `images`,
    only the prompts are sent. With `evidence`, a judge sees the images.
    """

    size: int | None = None
    one_size: bool = False
    unchanged: bool = False
    all_variants: bool = False
    likelihood: bool = False
    images: bool = True
    evidence: bool = False


def read_samples(file: Path, selection: LineSelection) -> Iterator[Sample]:
    return _samples(_groups_of_size(open_groups(file), selection), file, str(file.parent), selection)


def line_samples(file: Path) -> list[Sample]:
    """Each line as a sample of its own: what `data check` and `data describe` count."""
    root = str(file.parent)
    return [
        Sample(
            id=f"{line.group}, {line.variant}",
            question=line.question or line.prompt,
            images=tuple(ImageRef(os.path.join(root, image), root) for image in line.images),
            references=line.references,
            options=line.options,
            labels={**line.labels, "variant": line.variant},
            record=line,
        )
        for line in open_groups(file).lines()
    ]


def answered_samples(answers: Sequence[Prediction], file: Path, selection: LineSelection) -> Iterator[Sample]:
    """Make samples of what answers were asked; of several draws, the first counts."""
    lines: dict[tuple[str, str], GroupLine] = {}
    clusters: dict[str, str] = {}
    named = {answer.sample for answer in answers if answer.cluster}
    for answer in answers:
        if (answer.sample, answer.variant) in lines:
            continue
        line = _answered_line(answer)
        if answer.sample not in named:
            line = replace(line, cluster=clusters.setdefault(answer.sample, answer.image))
        # In our own answers.jsonl, an upper-case letter is a letter, whatever the order of the options is.
        if not answer.key:
            check_options(line, answer.sample, file)
        if line.cluster and clusters.setdefault(line.group, line.cluster) != line.cluster:
            first = f"its first record with one, '{clusters[line.group]}',"
            raise second_cluster(line, clusters[line.group], first, answer.sample, file)
        lines[answer.sample, answer.variant] = line
    size = _selected_size(list(dict.fromkeys(map(size_of, lines.values()))), selection, file)
    groups = by_group(line for line in lines.values() if size is None or size_of(line) == size)
    return _samples(groups.values(), file, "", selection)


def _answered_line(answer: Prediction) -> GroupLine:
    if "" in answer.options:
        raise answer.empty_options[0].error()
    return GroupLine(
        answer.sample,
        answer.variant,
        prompt=answer.prompt,
        question=answer.question,
        references=answer.references,
        options=answer.options,
        labels=answer.labels,
        cluster=answer.cluster,
    )


def left_out_notes(file: Path, selection: LineSelection) -> list[str]:
    """Write notes on the variant `original`, which is sent either for Sampling only or alone."""
    checked = open_groups(file)
    asks_originals = selection.unchanged and not selection.all_variants
    if not (checked.originals or asks_originals):
        return []
    groups, originals, left_out = 0, 0, 0
    for lines in _groups_of_size(checked, selection):
        groups += 1
        originals += sum(line.variant == ORIGINAL for line in lines)
        left_out += not selected_lines(lines, selection)
    lack = f"no line of variant '{ORIGINAL}'" if asks_originals else f"no line but '{ORIGINAL}'"
    return counted_notes(
        (
            0 if asks_originals else originals,
            f"lines of variant '{ORIGINAL}', the unchanged input, are not sent and count in no metric",
        ),
        (left_out, f"of {groups:,} groups are left out: they have {lack}"),
    )


def unread_responses(file: Path) -> list[str]:
    """Write a note on the responses in lines whose answers come from elsewhere."""
    return counted_notes(
        (
            open_groups(file).responses,
            "lines hold a response: only `sightline score` without a file of answers reads it",
        )
    )


def responses_in_lines(file: Path, selection: LineSelection) -> list[Prediction]:
    """The answers that the lines of a groups file hold; lines without a response have none."""
    answers = [
        without_missing(
            Prediction(
                sample=line.group,
                variant=line.variant,
                **plain_reply(line.response, "response", RecordLocation(file, line.group))._asdict(),
                question=line.question or line.prompt,
                options=line.options,
                images=line.images,
                prompt=line.prompt,
            )
        )
        for sample in read_samples(file, selection)
        for line in selected_lines(sample.record, selection)
        if line.response is not UNSET
    ]
    if not answers:
        raise UserError(
            "no line has a response",
            file=file,
            field="response",
            expected=f"sightline score groups:{file} ANSWERS",
        )
    return answers


def sorted_sample(sample: Sample) -> Sample:
    lines = sorted(sample.record, key=attrgetter("variant"))
    root = sample.images[0].root if sample.images else ""
    return sample if lines == list(sample.record) else _sample(lines, root)


def line_probes(sample: Sample, selection: LineSelection) -> Iterator[Probe]:
    root = sample.images[0].root if sample.images else ""
    for line in selected_lines(sample.record, selection):
        found = tuple(ImageRef(os.path.join(root, one), root) for one in line.images)
        images = found if selection.images else ()
        if selection.evidence and not found:
            raise UserError(
                "has no image that a judge could see",
                record=f"{line.group}, {line.variant}",
                expected="images in each line, or no --set judge_image=on",
            )
        if not selection.images and not line.prompt:
            raise UserError(
                "has images but no prompt, so that nothing is left to send",
                record=f"{line.group}, {line.variant}",
                expected="a prompt in each line, or --set image=on",
            )
        yield Probe(
            sample=sample.id,
            variant=line.variant,
            messages=(user(*images, *([line.prompt] if line.prompt else [])),),
            question=line.question or line.prompt,
            references=tuple(reference for reference in line.references if reference.strip()),
            options=line.options,
            labels=line.labels,
            draws=SAMPLING_DRAWS if selection.unchanged else 0,
            choices=line.options if selection.likelihood else (),
            evidence=found if selection.evidence else (),
        )


def selected_lines(lines: Sequence[GroupLine], selection: LineSelection) -> list[GroupLine]:
    """Select the lines of a group that are sent.

    These are all lines but the original, or with `unchanged` the original alone. With `unchanged` and
    `all_variants` they are all lines but the original: for context reasoning, the paper's Sampling repeats
    the masked images.
    """
    original = selection.unchanged and not selection.all_variants
    return [line for line in lines if (line.variant == ORIGINAL) == original]


def _samples(
    groups: Iterable[Sequence[GroupLine]], file: Path, root: str, selection: LineSelection
) -> Iterator[Sample]:
    has_samples = False
    for lines in groups:
        if selected_lines(lines, selection):
            has_samples = True
            yield _sample(lines, root)
    if has_samples:
        return
    if selection.unchanged and not selection.all_variants:
        raise UserError(
            f"no group has a line with variant '{ORIGINAL}'",
            file=file,
            expected="the unchanged input as a line of each group",
        )
    raise UserError(
        "no group has a perturbed line",
        file=file,
        expected="lines of other variants, or --set unchanged=on",
    )


def _sample(lines: Sequence[GroupLine], root: str) -> Sample:
    first = lines[0]
    return Sample(
        id=first.group,
        question=first.question or first.prompt,
        images=tuple(ImageRef(os.path.join(root, image), root) for line in lines for image in line.images),
        references=first.references,
        labels=first.labels,
        cluster=first.cluster or None,
        record=tuple(lines),
    )


def _groups_of_size(file: GroupFile, selection: LineSelection) -> Iterable[Sequence[GroupLine]]:
    size = _selected_size(file.sizes, selection, file.path)
    if size is None:
        return file.groups()
    of_size = ([line for line in lines if size_of(line) == size] for lines in file.groups())
    return filter(None, of_size)


def _selected_size(sizes: Sequence[str], selection: LineSelection, file: Path) -> str | None:
    """The size of the lines that are sent; None for all sizes."""
    if selection.size is None and not selection.one_size:
        return None
    size = str(selection.size) if selection.size is not None else ORIGINAL if ORIGINAL in sizes else sizes[0]
    several = selection.size is None and ORIGINAL not in sizes and len(sizes) > 1
    if several or size not in sizes:
        built = ", ".join(name for name in sizes if name != ORIGINAL)
        raise UserError(
            "has images of several sizes" if several else f"has no images of size {size}",
            file=file,
            expected=f"--set size=S with S one of {built}" if built else "no --set size: none was built",
        )
    return size
