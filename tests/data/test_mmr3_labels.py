"""The label files of MM-R3's authors are pulled at a pinned revision, as JSON that the builders read."""

from __future__ import annotations

import hashlib
import io
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest
from msgspec.structs import replace

from sightline.benchmarks.base import Release, ReleasedFile
from sightline.builders.mask import read_assignment
from sightline.cli.main import main
from sightline.data.pull import MMR3_LABELS, pull
from sightline.errors import UserError

Pack = Callable[..., bytes]

DRAWN = {
    f"000000000009_{n}": {"colors": "red", "lines": lines, "draw_type": "ellipse"}
    for n, lines in enumerate((1, 3, 5))
}
ENTRIES: dict[str, dict[Any, Any]] = {
    "types": DRAWN,
    "labels": dict.fromkeys(DRAWN, 18),
    "coco_category_dic": {18: "dog"},
}


def as_npy(entries: object) -> bytes:
    out = io.BytesIO()
    np.save(out, np.array(entries, dtype=object), allow_pickle=True)
    return out.getvalue()


def digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


@pytest.fixture
def contents() -> dict[str, bytes]:
    return {file.path: as_npy(ENTRIES.get(Path(file.name).stem, {"a": ["b"]})) for file in MMR3_LABELS.files}


@pytest.fixture
def source(contents: dict[str, bytes]) -> Release:
    """The release with small files, their digests pinned."""

    def pinned(file: ReleasedFile) -> ReleasedFile:
        entries = ENTRIES.get(Path(file.name).stem, {"a": ["b"]})
        forms = {name: digest(msgspec.json.encode(entries)) for name in file.forms}
        return replace(file, sha256=digest(contents[file.path]), forms=forms)

    return replace(MMR3_LABELS, files=tuple(map(pinned, MMR3_LABELS.files)))


def test_the_pinned_digests_are_those_of_the_authors_files(shared: Path) -> None:
    """The files were read from the repository by other code than Sightline's."""
    for file in MMR3_LABELS.files:
        ((name, expected),) = file.forms.items()
        entries = json.loads((shared / "data/mmr3/author_labels" / name).read_bytes())
        assert digest(msgspec.json.encode(entries)) == expected, name


def test_the_files_of_the_archive_become_json(
    tmp_path: Path, source: Release, contents: dict[str, bytes], pack: Pack, server: Any
) -> None:
    server.content = pack(contents, 0)
    folder, fetched = pull(source, tmp_path, origin=server.url)
    assert (folder, fetched) == (tmp_path / "mmr3", True)
    assert sorted(path.name for path in folder.iterdir()) == sorted(
        name for file in source.files for name in file.forms
    )
    assert json.loads((folder / "coco_category_dic.json").read_bytes()) == {"18": "dog"}
    read = read_assignment(folder / "types.json", folder / "labels.json")
    assert [one.lines for one in read.maskings[9]] == [1, 3, 5]
    assert read.categories == {9: 18}
    (folder / "context").mkdir()  # what builders add
    assert pull(source, tmp_path, origin="no such file") == (folder, False)
    assert pull(source, tmp_path / "other", origin=str(folder)) == (tmp_path / "other" / "mmr3", True)


def test_a_changed_file_is_refused_before_its_pickle_is_read(
    tmp_path: Path, source: Release, contents: dict[str, bytes], pack: Pack, server: Any
) -> None:
    class Evil:
        def __reduce__(self) -> tuple[Any, ...]:
            return Path.touch, (tmp_path / "executed",)

    server.content = pack({**contents, source.files[0].path: as_npy(Evil())}, 0)
    with pytest.raises(UserError, match=r"types\.npy has the SHA-256"):
        pull(source, tmp_path / "data", origin=server.url)
    assert list(tmp_path.iterdir()) == []


def test_the_command_says_where_the_images_are(
    tmp_path: Path,
    source: Release,
    contents: dict[str, bytes],
    pack: Pack,
    server: Any,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    monkeypatch.setattr("sightline.data.pull.MMR3_LABELS", source)
    server.content = pack(contents, 0)
    assert main(["data", "pull", "mmr3", "--from", server.url, "--to", str(tmp_path)]) == 0
    out = capsys.readouterr().out
    for name in ("COCO", "MIT Indoor-67", "Google Landmarks v2", "OK-VQA", "InfographicVQA"):
        assert f"not in it: {name}" in out
