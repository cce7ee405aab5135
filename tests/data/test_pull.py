"""A data set is pulled completely and verified, or not at all."""

from __future__ import annotations

import errno
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sightline.benchmarks.base import Release
from sightline.data import archives
from sightline.data.pull import load_samples, pull
from sightline.errors import EnvironmentFailedError, UserError

Pack = Callable[..., bytes]


def files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


@pytest.fixture
def archive(tmp_path: Path, pack: Pack) -> Callable[..., str]:
    """Writes an archive of the small data set; returns its name."""

    def write(*arguments: Any, **options: Any) -> str:
        path = tmp_path / "archive.tar.gz"
        path.write_bytes(pack(*arguments, **options))
        return str(path)

    return write


def test_the_archive_becomes_the_layout_that_the_benchmark_reads(
    tmp_path: Path, source: Release, archive: Callable[..., str], content: dict[str, bytes]
) -> None:
    folder, fetched = pull(source, tmp_path / "data", origin=archive())
    assert (folder, fetched) == (tmp_path / "data/codis", True)
    assert files(tmp_path / "data") == ["codis/data.json", "codis/images/a.jpg", "codis/images/b.jpg"]
    assert (folder / "images/a.jpg").read_bytes() == content["data/images/a.jpg"]
    assert [sample.id for sample in load_samples(source, folder, "test")] == ["000", "001", "002"]


def test_an_existing_data_set_is_not_downloaded_again(
    tmp_path: Path, source: Release, archive: Callable[..., str]
) -> None:
    pull(source, tmp_path, origin=archive())
    assert pull(source, tmp_path, origin="no such file") == (tmp_path / "codis", False)


def test_a_folder_with_other_content_is_not_changed(
    tmp_path: Path, source: Release, archive: Callable[..., str]
) -> None:
    mine = tmp_path / "codis/data.json"
    mine.parent.mkdir()
    mine.write_text("mine")
    with pytest.raises(UserError, match="already exists and differs from the release"):
        pull(source, tmp_path, origin=archive())
    assert mine.read_text() == "mine"
    assert files(tmp_path / "codis") == ["data.json"]


WRONG: dict[str, tuple[dict[str, Any], str]] = {
    "other records": ({"data/data.json": b"[]"}, "data/data.json has the SHA-256 4f53cda18c2b"),
    "no records": ({"data/data.json": None}, "data/data.json is missing"),
    "not an image": (
        {"data/images/b.jpg": None},
        "1 of 2 images are missing or broken, the first: images/b.jpg",
    ),
    "no image but text": ({"data/images/b.jpg": b"hello"}, "the first: images/b.jpg: not an image"),
    "a way out": ({"data/images/../../../b.jpg": b"x"}, "is outside the data folder"),
    "an absolute way": ({"/data/images/b.jpg": b"x"}, "is outside the data folder"),
}


@pytest.mark.parametrize("case", WRONG)
def test_another_archive_is_refused_and_leaves_nothing(
    tmp_path: Path, source: Release, archive: Callable[..., str], case: str
) -> None:
    changes, message = WRONG[case]
    with pytest.raises(UserError, match=message) as caught:
        pull(source, tmp_path / "data", origin=archive(changes))
    assert "THUNLP-MT/CODIS at d070cf759c42676c88925004c83f1d81585675a7" in str(caught.value)
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("kind", [tarfile.SYMTYPE, tarfile.LNKTYPE, tarfile.CHRTYPE, tarfile.FIFOTYPE])
def test_a_member_that_is_not_a_file_is_refused(
    tmp_path: Path, source: Release, archive: Callable[..., str], kind: bytes
) -> None:
    member = tarfile.TarInfo()
    member.type, member.linkname = kind, "/etc/passwd"
    with pytest.raises(UserError, match=r"b\.jpg is a link or a device, not a file"):
        pull(source, tmp_path / "data", origin=archive({"data/images/b.jpg": member}))
    assert not (tmp_path / "data").exists()


@pytest.mark.parametrize("limit", ["MAX_FILE", "MAX_TOTAL"])
def test_a_member_or_an_archive_that_is_too_large_is_refused(
    tmp_path: Path,
    source: Release,
    archive: Callable[..., str],
    monkeypatch: pytest.MonkeyPatch,
    limit: str,
) -> None:
    monkeypatch.setattr(archives, limit, 100)
    with pytest.raises(UserError, match="more than 100"):
        pull(source, tmp_path / "data", origin=archive())


@pytest.mark.parametrize("kept", [0, 5, 300, -9, -1])
def test_a_truncated_archive_is_refused(tmp_path: Path, source: Release, pack: Pack, kept: int) -> None:
    cut = tmp_path / "cut.tar.gz"
    cut.write_bytes(pack()[:kept])
    with pytest.raises(UserError, match="the archive is broken or incomplete"):
        pull(source, tmp_path / "data", origin=str(cut))
    assert not (tmp_path / "data").exists()


def test_a_changed_byte_is_detected_anywhere_in_the_archive(
    tmp_path: Path, source: Release, pack: Pack, content: dict[str, bytes]
) -> None:
    stored = bytearray(pack(level=0))
    stored[stored.index(content["static/images/logo.jpg"]) + 200] ^= 1
    damaged = tmp_path / "damaged.tar.gz"
    damaged.write_bytes(stored)
    with pytest.raises(UserError, match="CRC check failed"):
        pull(source, tmp_path / "data", origin=str(damaged))


@pytest.mark.parametrize(
    ("given", "told"),
    [("absent.tar.gz", "does not exist"), (".", "is a folder; expected the .tar.gz of")],
)
def test_an_archive_that_is_not_a_file_is_refused(
    tmp_path: Path, source: Release, given: str, told: str
) -> None:
    with pytest.raises(UserError, match=told):
        pull(source, tmp_path / "data", origin=str(tmp_path / given))


def test_a_full_disk_is_reported_and_leaves_nothing(
    tmp_path: Path, source: Release, archive: Callable[..., str], monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: object, **__: object) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr(tarfile.TarFile, "extract", full)
    with pytest.raises(EnvironmentFailedError, match="cannot be written: No space left on device"):
        pull(source, tmp_path / "data", origin=archive())
    assert not (tmp_path / "data").exists()


def test_a_downloaded_archive_is_not_kept(tmp_path: Path, source: Release, pack: Pack, server: Any) -> None:
    server.content = pack()
    folder, _ = pull(source, tmp_path, origin=server.url)
    assert files(tmp_path) == ["codis/data.json", "codis/images/a.jpg", "codis/images/b.jpg"]
    assert folder == tmp_path / "codis"


def test_an_interrupted_download_continues(tmp_path: Path, source: Release, pack: Pack, server: Any) -> None:
    server.content, server.cut = pack(), 1000
    with pytest.raises(EnvironmentFailedError, match=r"1,000 bytes received: .*; the same command continues"):
        pull(source, tmp_path, origin=server.url)
    assert not (tmp_path / "codis").exists()
    server.cut = None
    pull(source, tmp_path, origin=server.url)
    assert server.asked == [None, "bytes=1000-"]
    assert server.sent == len(server.content)
    assert files(tmp_path) == ["codis/data.json", "codis/images/a.jpg", "codis/images/b.jpg"]


def test_a_download_of_another_archive_is_removed(
    tmp_path: Path, source: Release, pack: Pack, server: Any
) -> None:
    server.content = pack({"data/data.json": b"[]"})
    with pytest.raises(UserError, match="SHA-256"):
        pull(source, tmp_path, origin=server.url)
    assert files(tmp_path) == []


def test_parts_of_two_archives_are_never_combined(
    tmp_path: Path, source: Release, pack: Pack, server: Any
) -> None:
    server.content, server.cut = pack(level=0), 2000
    with pytest.raises(EnvironmentFailedError):
        pull(source, tmp_path, origin=server.url)
    server.content, server.cut = pack({"README.md": b"# another"}, level=0), None
    with pytest.raises(UserError, match="the archive is broken or incomplete"):
        pull(source, tmp_path, origin=server.url)
    assert files(tmp_path) == []
    pull(source, tmp_path, origin=server.url)
    assert (tmp_path / "codis/data.json").is_file()


class Elsewhere(Release, frozen=True):
    """A release whose public archive is on loopback."""

    address: str = ""

    @property
    def url(self) -> str:
        return self.address


def test_a_missing_public_archive_is_an_environment_error(
    tmp_path: Path, source: Release, server: Any
) -> None:
    server.status = 404
    gone = Elsewhere(**{name: getattr(source, name) for name in source.__struct_fields__}, address=server.url)
    with pytest.raises(EnvironmentFailedError, match=r"the server answers 404 .* use --from"):
        pull(gone, tmp_path / "data")
    with pytest.raises(UserError, match="the server answers 404"):
        pull(source, tmp_path / "data", origin=server.url)
    assert not (tmp_path / "data").exists()


def test_the_pinned_urls_contain_full_revisions() -> None:
    from sightline.data.pull import releases

    for source in releases().values():
        assert len(source.revision) == 40
        assert source.url == f"https://codeload.github.com/{source.repository}/tar.gz/{source.revision}"
        assert all(len(records.sha256) == 64 for records in source.records)
    assert replace(releases()["codis"], revision="x").url.endswith("/x")
