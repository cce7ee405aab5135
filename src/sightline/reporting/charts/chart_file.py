"""The file of a chart: PNG, SVG or PDF for one or two columns of a paper; equal data give equal bytes."""

from __future__ import annotations

import io
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

from sightline.errors import UserError
from sightline.formats.files import write_atomically

if TYPE_CHECKING:
    from matplotlib.figure import Figure

FORMS: Mapping[str, dict[str, Any]] = {
    ".svg": {"Date": None},
    ".pdf": {"CreationDate": None},
    ".png": {"Software": None},
}
"""The file types, and the metadata that would differ between two calls or two versions."""

PaperColumns = Literal[1, 2]

WIDTHS: Mapping[PaperColumns, float] = {1: 3.35, 2: 6.9}
"""The width of a chart in inches: 85 and 175 mm, one and two columns of a paper."""

SETTINGS: dict[Any, Any] = {
    "font.size": 8,
    "axes.titlesize": 8,
    "axes.titleweight": "bold",
    "axes.linewidth": 0.6,
    "axes.labelsize": 8,
    "xtick.labelsize": 7,
    "ytick.labelsize": 7,
    "legend.fontsize": 7,
    "hatch.linewidth": 0.6,
    # Ids inside an SVG would be random, and its letters depend on the fonts of the reader.
    "svg.hashsalt": "sightline",
    "svg.fonttype": "path",
    # TrueType: publishers refuse Type 3 fonts.
    "pdf.fonttype": 42,
}


def check_chart_file(path: Path) -> None:
    """Check before any work that a chart can be written."""
    from importlib.util import find_spec

    if path.suffix.lower() not in FORMS:
        raise UserError(
            "unknown file type for a plot", file=path, expected="a name ending in .svg, .pdf or .png"
        )
    if path.is_dir() or not path.parent.is_dir():
        raise UserError(
            "cannot be written: not a file in an existing folder",
            file=path,
            expected="a file name in an existing folder",
        )
    if find_spec("matplotlib") is None:
        raise UserError("plots need matplotlib", expected="pip install 'sightline[plot]'")


def write_chart(path: Path, draw: Callable[[], Figure]) -> None:
    """Draw a chart and write it; the user's settings of matplotlib change nothing."""
    import matplotlib

    form = path.suffix.lower()
    file = io.BytesIO()
    with matplotlib.rc_context():
        matplotlib.rcdefaults()
        matplotlib.rcParams.update(SETTINGS)
        draw().savefig(file, format=form[1:], dpi=300, metadata=FORMS[form])
    write_atomically(path, [file.getvalue()])
