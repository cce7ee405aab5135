"""The style weights are pulled like a data set: completely and verified, or not at all."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sightline.benchmarks.base import Release, ReleasedFile
from sightline.cli.main import main
from sightline.data.pull import NETWORK_STYLES, STYLE_WEIGHTS, pull, weights_file
from sightline.errors import EnvironmentFailedError, UserError

Pack = Callable[..., bytes]
ASSETS = "app/src/main/assets"
NAMES = ["styles/candy.bin", "styles/mosaic.bin", "styles/udnie.bin"]


def weights(style: str) -> bytes:
    return hashlib.sha512(style.encode()).digest() * 1000


@pytest.fixture
def source() -> Release:
    """The release with weights that are easily made, their digests pinned."""

    def pinned(file: ReleasedFile) -> ReleasedFile:
        style = Path(file.name).stem
        forms = {name: hashlib.sha256(weights(name)).hexdigest() for name in file.forms}
        return replace(file, sha256=hashlib.sha256(weights(style)).hexdigest(), forms=forms)

    return replace(STYLE_WEIGHTS, files=tuple(pinned(file) for file in STYLE_WEIGHTS.files))


@pytest.fixture
def archive(pack: Pack) -> Callable[..., bytes]:
    """Makes the repository's .tar.gz; arguments replace or (None) leave out members."""

    def make(changes: dict[str, bytes | None] | None = None) -> bytes:
        members = {f"{ASSETS}/{style}.bin": weights(style) for style in (*NETWORK_STYLES, "rain")}
        return pack({**members, **(changes or {})}, 0)

    return make


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_only_the_three_styles_are_extracted(
    tmp_path: Path, source: Release, archive: Callable[..., bytes], server: Any
) -> None:
    server.content = archive()
    folder, fetched = pull(source, tmp_path, origin=server.url)
    assert (folder, fetched) == (tmp_path / "styles", True)
    assert files(tmp_path) == NAMES
    assert (folder / "candy.bin").read_bytes() == weights("candy")
    assert pull(source, tmp_path, origin="no such file") == (folder, False)


def test_an_interrupted_download_of_weights_continues(
    tmp_path: Path, source: Release, archive: Callable[..., bytes], server: Any
) -> None:
    server.content, server.cut = archive(), 70_000
    with pytest.raises(EnvironmentFailedError, match="the same command continues from there"):
        pull(source, tmp_path, origin=server.url)
    assert not (tmp_path / "styles").exists()
    server.cut = None
    pull(source, tmp_path, origin=server.url)
    assert server.asked == [None, "bytes=70000-"]
    assert server.sent == len(server.content)
    assert files(tmp_path) == NAMES


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({f"{ASSETS}/udnie.bin": None}, "app/src/main/assets/udnie.bin is missing"),
        ({f"{ASSETS}/mosaic.bin": b"other"}, "app/src/main/assets/mosaic.bin has the SHA-256 d9298a10d1b0"),
    ],
)
def test_an_archive_of_other_weights_is_refused_and_leaves_nothing(
    tmp_path: Path,
    source: Release,
    archive: Callable[..., bytes],
    changes: dict[str, bytes | None],
    message: str,
) -> None:
    path = tmp_path / "archive.tar.gz"
    path.write_bytes(archive(changes))
    with pytest.raises(UserError, match=message) as caught:
        pull(source, tmp_path / "data", origin=str(path))
    assert "or a folder with candy.bin, mosaic.bin, udnie.bin of that revision" in str(caught.value)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("layout", ["{style}.bin", ASSETS + "/{style}.bin", "{style}.pth"])
def test_a_folder_with_the_files_is_accepted(tmp_path: Path, source: Release, layout: str) -> None:
    mine = tmp_path / "mine"
    for style in NETWORK_STYLES:
        path = mine / layout.format(style=style)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(weights(path.name if path.suffix == ".pth" else style))
    (mine / "notes.txt").write_text("mine")
    pull(source, tmp_path, origin=str(mine))
    names = [f"styles/{style}{Path(layout).suffix}" for style in NETWORK_STYLES]
    assert files(tmp_path / "styles") == [Path(name).name for name in names]
    assert [weights_file(style, tmp_path / "styles") for style in NETWORK_STYLES] == [
        tmp_path / n for n in names
    ]


def test_a_folder_with_other_files_is_refused_and_leaves_nothing(tmp_path: Path, source: Release) -> None:
    (tmp_path / "mine").mkdir()
    for style in NETWORK_STYLES:
        (tmp_path / f"mine/{style}.bin").write_bytes(b"mine")
    with pytest.raises(UserError, match=r"candy\.bin has the SHA-256"):
        pull(source, tmp_path / "data", origin=str(tmp_path / "mine"))
    assert not (tmp_path / "data").exists()


def test_the_state_dicts_of_the_shared_folder_have_the_pinned_digests(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["data", "pull", "styles", "--from", str(shared / "data/styles"), "--to", str(tmp_path)]
    assert main(words) == 0
    said = capsys.readouterr().out
    assert f"{tmp_path}/styles: nihui/ncnn-android-styletransfer at {STYLE_WEIGHTS.revision}\n" in said
    assert "Johnson et al. 2016" in said
    assert "BSD-3-Clause" in said
    assert files(tmp_path) == ["styles/candy.pth", "styles/mosaic.pth", "styles/udnie.pth"]
    assert main(words) == 0
    assert "already present" in capsys.readouterr().out


def test_styles_can_be_pulled_but_not_checked(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["data", "check", "styles"]) == 2
    assert "unknown data set 'styles'" in capsys.readouterr().err


def test_missing_weights_name_the_command_that_downloads_them(tmp_path: Path) -> None:
    with pytest.raises(
        UserError, match=r"no weights of the style 'candy'; expected .*`sightline data pull st"
    ):
        weights_file("candy", tmp_path)


def test_the_pinned_url_contains_a_full_revision() -> None:
    assert len(STYLE_WEIGHTS.revision) == 40
    assert STYLE_WEIGHTS.url.endswith(f"nihui/ncnn-android-styletransfer/tar.gz/{STYLE_WEIGHTS.revision}")
    digests = {digest for file in STYLE_WEIGHTS.files for digest in (file.sha256, *file.forms.values())}
    assert len(digests) == 6
    assert {len(digest) for digest in digests} == {64}
