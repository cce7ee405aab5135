"""Images are downloaded once to their paths; no interruption loses any."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from pathlib import Path
from typing import Any

import pytest
from tests.data.hostile import LIMITS, Hostile, Page, counts, drawn, files, hostile, noise, page, settle

from sightline.benchmarks.contextual.data import image_path
from sightline.data import image_download
from sightline.data.image_download import IMAGE_MANIFEST, download_images, partial_path
from sightline.errors import EnvironmentFailedError, UserError

__all__ = ["hostile"]

IMAGE = drawn()


def manifest(folder: Path) -> Any:
    return json.loads((folder / IMAGE_MANIFEST).read_text())


def test_images_have_their_names_and_are_listed_with_their_digests(hostile: Hostile, tmp_path: Path) -> None:
    wanted = hostile.serve({"/time/a.png": page(IMAGE), "/web/b.JPG": page(drawn(1, form="JPEG"))})
    found = settle(wanted, tmp_path)
    assert counts(found) == (0, 2, 0)
    assert files(tmp_path) == ["image_manifest.json", "images/time/a.png", "images/web/b.JPG"]
    assert (tmp_path / "images/time/a.png").read_bytes() == IMAGE
    noted = manifest(tmp_path)["images"]
    assert {url: entry["path"] for url, entry in noted.items()} == wanted


TRICKS = (
    "/../../escape.png",
    "/..%2f..%2fescape.png",
    "/%2e%2e/%2e%2e/escape.png",
    "/a/..\\..\\escape.png",
    "/a%00b.png",
    "/a\0b.png",
    "//etc/passwd.png",
    "/" + "long" * 500 + ".png",
    "/" + "deep/" * 400 + "x.png",
    "/CON.png",
    "/a/nul",
    "/COM1.tar.gz/x.png",
    "/dots.../x. ",
    "/x.png:stream",
    "/.journal.jsonl",
    "/image_manifest.json",
    "/ünï/🖼.png",
    "/a?b=../../c.png",
    "/%",
    "/-rf",
    "",
)


def test_no_url_writes_outside_the_folder_of_images(hostile: Hostile, tmp_path: Path) -> None:
    urls = [hostile.url(path) for path in TRICKS]

    class Every(dict[str, Page | list[Page]]):
        def get(self, *_: object) -> Page:
            return page(IMAGE)

    hostile.pages = Every()
    folder = tmp_path / "data"
    found = settle({url: image_path(url) for url in urls}, folder)
    assert found.downloaded + len(found.missing) == len(TRICKS)
    assert found.downloaded >= len(TRICKS) - 3
    assert {name.split("/")[0] for name in files(tmp_path)} == {"data"}
    assert {name.split("/")[0] for name in files(folder)} == {"images", "image_manifest.json"}
    assert len(files(folder)) == found.downloaded + 1
    assert settle({url: image_path(url) for url in urls}, folder).downloaded == 0


PATHS: dict[str, tuple[str, str]] = {
    "up": ("images/../../x.png", "is outside the folder of images"),
    "absolute": ("/tmp/x.png", "is outside the folder of images"),
    "beside the records": ("contextual_test.csv", "is outside the folder of images"),
    "null": ("images/a\0.png", "is outside the folder of images"),
    "a link": ("link/x.png", "is outside"),
    "a folder": ("images/folder", "Is a directory"),
    "below a file": ("images/file/x.png", ""),
    "too long": ("images/" + "x" * 300, "File name too long"),
    "too long a folder": ("images/" + "x" * 300 + "/x.png", "File name too long"),
}


@pytest.mark.parametrize("case", PATHS)
def test_an_invalid_path_is_one_recorded_error(hostile: Hostile, tmp_path: Path, case: str) -> None:
    path, detail = PATHS[case]
    folder, outside = tmp_path / "data", tmp_path / "outside"
    for made in (folder / "images/folder", outside):
        made.mkdir(parents=True)
    (folder / "link").symlink_to(outside)
    (folder / "images/file").write_bytes(IMAGE)
    hostile.serve({"/x.png": page(IMAGE)})
    found = settle({hostile.url("/x.png"): path}, folder)
    (lost,) = found.missing.values()
    assert lost.reason == "name refused"
    assert detail in lost.detail
    assert files(tmp_path) == ["data/image_manifest.json", "data/images/file"]
    assert list(outside.iterdir()) == []


def test_two_urls_never_share_a_name_even_if_only_case_differs(hostile: Hostile, tmp_path: Path) -> None:
    hostile.serve({"/a.png": page(IMAGE)})
    wanted = {hostile.url("/a.png"): "images/a.png", hostile.url("/A.PNG"): "images/A.PNG"}
    (lost,) = settle(wanted, tmp_path).missing.values()
    assert (lost.reason, lost.detail) == ("name refused", f"is used by {hostile.url('/a.png')} already")
    assert hostile.asked == ["/a.png"]


@pytest.fixture
def three(hostile: Hostile, tmp_path: Path) -> dict[str, str]:
    """Three downloaded images."""
    wanted = hostile.serve({f"/{name}.png": page(drawn(ord(name))) for name in "abc"})
    settle(wanted, tmp_path)
    hostile.asked.clear()
    return wanted


def test_a_second_call_downloads_nothing(hostile: Hostile, tmp_path: Path, three: dict[str, str]) -> None:
    before = (tmp_path / IMAGE_MANIFEST).read_bytes()
    assert counts(settle(three, tmp_path)) == (3, 0, 0)
    assert hostile.connections == 3
    assert (tmp_path / IMAGE_MANIFEST).read_bytes() == before


def test_only_missing_and_changed_images_are_downloaded_again(
    hostile: Hostile, tmp_path: Path, three: dict[str, str]
) -> None:
    (tmp_path / "images/a.png").unlink()
    (tmp_path / "images/b.png").write_bytes(drawn(5))
    assert counts(settle(three, tmp_path)) == (1, 2, 0)
    assert sorted(hostile.asked) == ["/a.png", "/b.png"]
    assert (tmp_path / "images/b.png").read_bytes() == drawn(ord("b"))


def test_a_changed_image_stays_if_it_cannot_be_downloaded_again(
    hostile: Hostile, tmp_path: Path, three: dict[str, str]
) -> None:
    (tmp_path / "images/b.png").write_bytes(drawn(5))
    hostile.serve({})
    assert counts(settle(three, tmp_path)) == (2, 0, 1)
    assert (tmp_path / "images/b.png").read_bytes() == drawn(5)
    assert list(manifest(tmp_path)["missing"]) == [hostile.url("/b.png")]


def test_without_the_manifest_complete_images_are_kept(
    hostile: Hostile, tmp_path: Path, three: dict[str, str]
) -> None:
    (tmp_path / IMAGE_MANIFEST).unlink()
    cut = tmp_path / "images/c.png"
    cut.write_bytes(cut.read_bytes()[:60])
    assert counts(settle(three, tmp_path)) == (2, 1, 0)
    assert hostile.asked == ["/c.png"]


def test_an_invalid_manifest_is_wrong_input(tmp_path: Path, three: dict[str, str]) -> None:
    (tmp_path / IMAGE_MANIFEST).write_text('{"images": 3}')
    with pytest.raises(UserError, match=r"image_manifest\.json: is not an image manifest"):
        settle(three, tmp_path)


def test_a_failed_url_is_requested_again_and_then_no_longer_missing(hostile: Hostile, tmp_path: Path) -> None:
    wanted = hostile.serve({"/a.png": [page(status="404 Not Found"), page(IMAGE)]})
    assert counts(settle(wanted, tmp_path)) == (0, 0, 1)
    assert counts(settle(wanted, tmp_path)) == (0, 1, 0)
    assert manifest(tmp_path)["missing"] == {}


def test_entries_of_other_urls_stay_in_the_manifest(hostile: Hostile, tmp_path: Path) -> None:
    """The splits of a data set are downloaded one after the other into one folder."""
    of_val = hostile.serve({"/a.png": page(IMAGE), "/dead.png": page(status="404 Not Found")})
    assert counts(settle(of_val, tmp_path)) == (0, 1, 1)
    before = manifest(tmp_path)
    of_test = hostile.serve({"/b.png": page(IMAGE), "/gone.png": page(status="410 Gone")})
    assert counts(settle(of_test, tmp_path)) == (0, 1, 1)
    after = manifest(tmp_path)
    for kind, names in (("images", ("/a.png", "/b.png")), ("missing", ("/dead.png", "/gone.png"))):
        assert set(after[kind]) == set(map(hostile.url, names))
        assert after[kind].items() >= before[kind].items()


def test_images_of_another_folder_are_copied_before_any_is_downloaded(
    hostile: Hostile, tmp_path: Path, three: dict[str, str]
) -> None:
    (tmp_path / "images/b.png").write_bytes(b"not an image")
    (tmp_path / "images/c.png").unlink()
    (tmp_path / "images/c.png").symlink_to("/etc/passwd")
    fresh = tmp_path / "fresh"
    found = download_images(three, fresh, copy_from=tmp_path, allow_private=True, limits=LIMITS)
    assert counts(found) == (1, 2, 0)
    assert sorted(hostile.asked) == ["/b.png", "/c.png"]
    assert files(fresh) == ["image_manifest.json", "images/a.png", "images/b.png", "images/c.png"]
    assert not (fresh / "images/c.png").is_symlink()
    about_b, about_c = sorted(found.unusable)
    assert about_b.startswith(f"{tmp_path}/images/b.png: not an image")
    assert about_c.startswith(f"{tmp_path}/images/c.png: is outside the data folder")


def test_two_processes_cannot_download_into_one_folder(tmp_path: Path, hostile: Hostile) -> None:
    wanted = hostile.serve({"/a.png": page(IMAGE)})
    inside: list[BaseException] = []

    def again(connection: socket.socket) -> None:
        try:
            settle(wanted, tmp_path)
        except UserError as error:
            inside.append(error)
        connection.sendall(page(IMAGE))

    hostile.pages["/a.png"] = again
    assert settle(wanted, tmp_path).downloaded == 1
    assert "another process works there" in str(inside[0])
    assert "another --to" in str(inside[0])


def test_an_incomplete_copy_is_not_used(
    hostile: Hostile, tmp_path: Path, three: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another process may change an image during the copy; the copy itself must be verified."""

    def half(origin: Path, part: Path) -> None:
        content = origin.read_bytes()
        part.write_bytes(content[: len(content) // 2])

    monkeypatch.setattr(image_download, "copy_image", half)
    fresh = tmp_path / "fresh"
    assert counts(download_images(three, fresh, copy_from=tmp_path, allow_private=True, limits=LIMITS)) == (
        0,
        3,
        0,
    )
    for entry in manifest(fresh)["images"].values():
        content = (fresh / entry["path"]).read_bytes()
        assert hashlib.sha256(content).hexdigest() == entry["sha256"]
        assert content == (tmp_path / entry["path"]).read_bytes()


def test_a_slow_disk_does_not_block_other_downloads(
    hostile: Hostile, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    threads: list[int] = []

    def sync(_: int) -> None:
        threads.append(threading.get_ident())

    monkeypatch.setattr(os, "fsync", sync)
    wanted = hostile.serve({f"/{name}.png": page(drawn(ord(name))) for name in "abc"})
    assert counts(settle(wanted, tmp_path)) == (0, 3, 0)
    # The manifest is written at the end.
    assert len(threads) >= 3
    assert threading.get_ident() not in threads[:3]


PROGRAM = """
import json, signal, sys
from pathlib import Path
from sightline.data.image_download import download_images
signal.signal(signal.SIGTERM, signal.default_int_handler)
download_images(json.loads(sys.argv[1]), Path(sys.argv[2]), allow_private=True)
"""


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGKILL])
def test_after_ctrl_c_or_a_kill_the_same_call_continues(
    hostile: Hostile, tmp_path: Path, number: signal.Signals
) -> None:
    wanted = hostile.serve({f"/{name}.png": page(drawn(ord(name))) for name in "abcd"})
    killed: list[int] = []

    def kill(connection: socket.socket) -> None:
        whole = page(drawn(ord("d")))
        connection.sendall(whole[:-30])
        # Wait until the others are done and this one has a partial file.
        while not (len(list((tmp_path / "images").glob("*.png"))) == 3 and list(tmp_path.rglob(".*.tmp"))):
            if process.poll() is not None:
                return
        process.send_signal(number)
        killed.append(process.wait())

    hostile.pages["/d.png"] = kill
    process = subprocess.Popen([sys.executable, "-c", PROGRAM, json.dumps(wanted), str(tmp_path)], stderr=-1)
    process.communicate(timeout=60)
    assert process.returncode != 0
    assert [name for name in files(tmp_path) if name.endswith(".png")] == [
        f"images/{name}.png" for name in "abc"
    ]
    assert any(name.endswith(".tmp") for name in files(tmp_path)) == (number == signal.SIGKILL)

    hostile.pages["/d.png"] = page(drawn(ord("d")))
    hostile.asked.clear()
    assert counts(settle(wanted, tmp_path)) == (3, 1, 0)
    assert hostile.asked == ["/d.png"]
    assert files(tmp_path) == ["image_manifest.json", *(f"images/{name}.png" for name in "abcd")]


def test_partial_files_of_a_killed_process_are_removed_and_nothing_else(
    hostile: Hostile, tmp_path: Path, three: dict[str, str]
) -> None:
    part = partial_path(tmp_path / "images/a.png", hostile.url("/a.png"))
    part.write_bytes(b"half")
    (tmp_path / f"images/.{part.name}.77.abcd.tmp").write_bytes(b"half")
    (tmp_path / "images/mine.part").write_bytes(b"mine")
    settle(three, tmp_path)
    left = set(files(tmp_path)) - {f"images/{name}.png" for name in "abc"}
    assert left == {"images/mine.part", "image_manifest.json"}


def test_a_full_disk_stops_the_download_and_keeps_finished_images(hostile: Hostile, tmp_path: Path) -> None:
    wanted = hostile.serve({"/a.png": page(IMAGE), "/b.png": page(noise(200))})
    soft, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
    # A limit on file sizes fails in the same place as a full disk.
    resource.setrlimit(resource.RLIMIT_FSIZE, (60_000, hard))
    try:
        with pytest.raises(EnvironmentFailedError, match=os.strerror(errno.EFBIG)):
            settle(wanted, tmp_path, concurrency=1)
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, (soft, hard))
    assert files(tmp_path) == ["images/a.png"]
    hostile.asked.clear()
    assert counts(settle(wanted, tmp_path)) == (1, 1, 0)
    assert hostile.asked == ["/b.png"]


def test_an_unwritable_folder_is_an_environment_error(hostile: Hostile, tmp_path: Path) -> None:
    wanted = hostile.serve({"/a.png": page(IMAGE)})
    (tmp_path / "file").write_text("")
    with pytest.raises(EnvironmentFailedError, match="cannot be written"):
        settle(wanted, tmp_path / "file/data")
