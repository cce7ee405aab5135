"""The answers of an evaluation as a data frame that shows their images in a notebook; imports pandas."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterable, Sequence
from typing import Any

from sightline.evaluation.run_tables import answer_row
from sightline.images import BadImage, inspect_image, read_image
from sightline.reporting.tables import import_pandas
from sightline.text import for_html
from sightline.types import ImageRef, Outcome

pandas = import_pandas()

THUMBNAIL = "thumbnail"
MOST_ROWS, LONGEST_CELL = 20, 160
"""The rows that a notebook shows, and the characters of each cell; the data frame holds everything."""


class AnswersFrame(pandas.DataFrame):  # type: ignore[name-defined,misc]
    """A data frame of answers; a notebook shows the images of its column `thumbnail`."""

    @property
    def _constructor(self) -> type[AnswersFrame]:
        return AnswersFrame

    def _repr_html_(self) -> str:
        """The first rows as a notebook shows them: texts are escaped, and thumbnails are images."""
        head = "".join(f"<th>{for_html(str(name))}</th>" for name in self.columns)
        rows = [
            "".join(f"<td>{_cell(str(name), value)}</td>" for name, value in row.items())
            for row in self.head(MOST_ROWS).to_dict("records")
        ]
        more = f"<p>{MOST_ROWS} of {len(self):,} rows</p>" if len(self) > MOST_ROWS else ""
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def answers_frame(
    outcomes: Iterable[Outcome], folders: Sequence[str], thumbnails: int | None
) -> AnswersFrame:
    """Make the data frame; `thumbnails` is their longest side in pixels, None for none."""
    made: dict[str, str] = {}
    rows = []
    for outcome in outcomes:
        row: dict[str, Any] = answer_row(outcome)
        if thumbnails is not None:
            first = outcome.images[0] if outcome.images else ""
            if first not in made:
                made[first] = _thumbnail(first, folders, thumbnails) if first else ""
            row = {THUMBNAIL: made[first], **row}
        rows.append(row)
    return AnswersFrame(rows)


def _thumbnail(path: str, folders: Sequence[str], side: int) -> str:
    """A data URL of an image, at most `side` pixels wide and high; '' if it is missing or broken."""
    for folder in folders:
        try:
            image = read_image(inspect_image(ImageRef(os.path.join(folder, path), folder), {})).convert("RGB")
        except BadImage:
            continue
        image.thumbnail((side, side))
        file = io.BytesIO()
        image.save(file, "WEBP", quality=80)
        return f"data:image/webp;base64,{base64.b64encode(file.getvalue()).decode()}"
    return ""


def _cell(name: str, value: Any) -> str:
    if name == THUMBNAIL:
        # Only what `_thumbnail` makes is an image; a data frame can be changed.
        is_image = isinstance(value, str) and value.startswith("data:image/webp;base64,")
        return f'<img alt="" src="{for_html(value)}">' if is_image else "no image"
    text = "" if value is None or value != value else str(value)
    return for_html(text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}\N{HORIZONTAL ELLIPSIS}")
