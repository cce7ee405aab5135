"""The data folder of an evaluation."""

from __future__ import annotations

import os
from pathlib import Path

from sightline.plan.spec import Spec


def spec_data_folder(spec: Spec) -> Path | None:
    """The data folder of an evaluation.

    Returns:
        --data, otherwise the environment variable SIGHTLINE_DATA, otherwise None.
    """
    path = spec.data or os.environ.get("SIGHTLINE_DATA")
    return Path(path) if path else None
