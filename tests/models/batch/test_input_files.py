"""The input files of batches."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest

from sightline.config import BatchSettings
from sightline.errors import EnvironmentFailedError
from sightline.models import batch_client
from sightline.types import Request, user


def test_a_full_disk_is_named_with_the_folder_and_the_remedy(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(batch_client, "_path", lambda *_: Path("/dev/full"))

    async def encode(_: Request) -> bytes:
        return b"{}"

    async def write() -> list[Any]:
        request = Request("k", (user("?"),), {})
        files = batch_client.input_files([request], encode, BatchSettings(), tmp_path)
        return [file async for file in files]

    expected = f"{tmp_path}: cannot be written: No space left on device; make room"
    with pytest.raises(EnvironmentFailedError, match=expected):
        asyncio.run(write())
