"""What the metrics.json of a results folder says was run."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sightline.errors import UserError

METRICS = "metrics.json"


class RunMetadata(Struct, frozen=True):
    """Who answered what, with which options, and of which versions everything was."""

    benchmark: str
    setting: str
    model: str
    options: Mapping[str, Any] = {}
    versions: Mapping[str, Any] = {}


def read_run_metadata(folder: Path) -> RunMetadata | None:
    """What was run; None where there is no metrics.json, or another tool's. UserError where it is no JSON."""
    file = folder / METRICS
    try:
        return msgspec.json.decode(file.read_bytes(), type=RunMetadata)
    except (FileNotFoundError, NotADirectoryError, msgspec.ValidationError):
        return None
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror or error}", file=file) from None
    except msgspec.DecodeError as error:
        expected = "the file that `sightline run` wrote, or none"
        raise UserError(f"is no JSON ({error})", file=file, expected=expected) from None
