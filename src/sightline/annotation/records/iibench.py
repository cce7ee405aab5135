"""Records in II-Bench's layout, of what authors wrote about images (II-Bench 3.2, appendix B.3)."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

from sightline.annotation.judgements import judgements
from sightline.annotation.records.request import RecordsRequest
from sightline.annotation.types import Values
from sightline.benchmarks.iibench.records import LABELS
from sightline.builders.annotate import TABLE, group_by_image, write_annotations
from sightline.builders.annotation_form import FILLED, FormLine, find_faults
from sightline.builders.checked_images import check_images
from sightline.scoring.multiple_choice import SIX_LETTERS
from sightline.types import ImageRef

FOLDER, SPLIT = "data", "test"
QUESTIONS = (1, 2, 3)


def write(request: RecordsRequest) -> Iterator[tuple[Path, str]]:
    """Write test.json, questions.csv for the review, the images and the agreement on labels.

    Args:
        request: The project and the folder.

    Yields:
        The files, and what they hold.

    Raises:
        UserError: An annotation has a fault, such as two equal options; the message names item and field.
    """
    folder = request.state.project.data
    paths = {image.path for item in request.state.items.values() for image in item.images["image"]}
    gallery = check_images({path: ImageRef(str(Path(folder) / path), folder) for path in sorted(paths)})
    lines = [
        FormLine(
            one.item.images["image"][0].path,
            one.name,
            cells,
            Path(request.state.project.name),
            f"item {one.item.number}",
        )
        for one in judgements(request.state, request.annotators)
        for cells in _cells(one.entry.values)
    ]
    for fault in find_faults(lines, gallery.files):
        raise fault
    out = request.out / FOLDER
    manifest = write_annotations(group_by_image(lines), gallery, SPLIT, out, force=True)
    yield out / f"{SPLIT}.json", f"{manifest.probes:,} questions about {manifest.groups:,} images"
    yield out / TABLE, "the same questions, for `annotate new review`"


def _cells(values: Values) -> Iterator[dict[str, str]]:
    """The cells of each question: labels, explanation, question, options, letter of the right one."""
    shared = {name: _text(values, name) for name in (*LABELS, "explanation")}
    for number in QUESTIONS:
        question = _text(values, f"question_{number}")
        if question:
            options = _text(values, f"options_{number}").split("\n")
            cells = dict(
                zip(SIX_LETTERS, [option.strip() for option in options if option.strip()], strict=False)
            )
            answer = {"question": question, "answer": _text(values, f"answer_{number}"), **cells}
            yield {**dict.fromkeys(FILLED, ""), **shared, **answer}


def _text(values: Values, name: str) -> str:
    value = values.get(name, "")
    return value if isinstance(value, str) else ", ".join(value)
