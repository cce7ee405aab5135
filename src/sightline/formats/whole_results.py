"""Whether the files of a results folder are of one run: metrics.json holds the digests of the others."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import msgspec
from msgspec import Struct

from sightline.decoding import UNDECODABLE
from sightline.errors import UserError
from sightline.formats.digests import file_digest

METRICS = "metrics.json"

UNFINISHED = ".metrics.json.unfinished"
"""The next metrics.json, while the other files are put in their places."""

REPORT = "report.md"
"""The report, which may be edited: no command reads it."""


RUN_AGAIN = "the same command as before, which writes all files again"


class _Written(Struct):
    files: Mapping[str, str] = {}


def written_files(folder: Path) -> Mapping[str, str]:
    """Find which files a run wrote."""
    try:
        return msgspec.json.decode((folder / METRICS).read_bytes(), type=_Written).files
    except (OSError, *UNDECODABLE):
        return {}


def refuse_mixed_files(folder: Path) -> None:
    """Refuse a results folder with a file that is not of its run. A missing file is not refused here."""
    if (folder / UNFINISHED).exists():
        raise UserError(
            "holds files of two runs: writing the results has not ended, or was interrupted",
            file=folder,
            expected=RUN_AGAIN,
        )
    for name, digest in written_files(folder).items():
        file = folder / name
        if name != REPORT and file.is_file() and file_digest(file) != digest:
            raise UserError(
                f"is not the file of the run that wrote {METRICS}",
                file=file,
                expected=f"{RUN_AGAIN}, or a copy of the file in a folder of its own",
            )
