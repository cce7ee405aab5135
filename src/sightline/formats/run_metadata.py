"""The metadata of a run in the metrics.json of its results folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sightline.decoding import UNDECODABLE, fault
from sightline.errors import UserError
from sightline.formats.whole_results import METRICS, refuse_mixed_files


class RunMetadata(Struct, frozen=True):
    """The benchmark, setting, model, options and versions of a run."""

    benchmark: str
    setting: str
    model: str
    options: Mapping[str, Any] = {}
    versions: Mapping[str, Any] = {}


def read_run_metadata(folder: Path) -> RunMetadata | None:
    """Read the metadata of a run.

    Returns:
        The metadata; None if there is no metrics.json, or one of another tool.
    """
    refuse_mixed_files(folder)
    file = folder / METRICS
    try:
        return msgspec.json.decode(file.read_bytes(), type=RunMetadata)
    except (FileNotFoundError, NotADirectoryError, msgspec.ValidationError):
        return None
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror or error}", file=file) from None
    except UNDECODABLE as error:
        expected = "the file that `sightline run` wrote, or none"
        raise UserError(f"is not JSON ({fault(error)})", file=file, expected=expected) from None
