"""The metadata of a results folder: read from our metrics.json only; a broken file is an error."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sightline.errors import UserError
from sightline.formats.jsonl import RunMetadata, read_run_metadata

OURS = {"schema": 1, "benchmark": "codis", "setting": "default", "model": "m", "options": {"seed": 0}}


@pytest.mark.parametrize(
    ("content", "found"),
    [
        (json.dumps({**OURS, "metrics": []}), RunMetadata("codis", "default", "m", {"seed": 0})),
        (json.dumps({"accuracy": 0.5}), None),
        ("[]", None),
        (None, None),
    ],
)
def test_only_our_own_file_is_read(tmp_path: Path, content: str | None, found: RunMetadata | None) -> None:
    if content is not None:
        (tmp_path / "metrics.json").write_text(content)
    assert read_run_metadata(tmp_path) == found


def test_a_broken_file_is_refused(tmp_path: Path) -> None:
    (tmp_path / "metrics.json").write_text('{"benchmark": "codis", "set')
    with pytest.raises(UserError, match=r"metrics\.json: is not JSON"):
        read_run_metadata(tmp_path)
