"""A folder is never silently something else, and no kill leaves one that nothing accepts."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from pathlib import Path

import pytest
from PIL import Image

from sightline.builders.folder import (
    GROUPS,
    IMAGES,
    MANIFEST,
    BuildIdentity,
    BuildManifest,
    Contents,
    open_folder,
    refuse_other_contents,
    refuse_out_inside_inputs,
    write_manifest,
)
from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.journal import JOURNAL, Journal
from sightline.images import inspect_image
from sightline.types import ImageRef


def of(seed: int, print_: str = "") -> BuildIdentity:
    header = {"kind": "copies", "settings": {"seed": seed}, "versions": {}}
    return BuildIdentity(header, print_ or f"print {seed}")


def make(out: Path, build: BuildIdentity, *, force: bool = False) -> None:
    """Build a folder with one image and a groups file that say by what they were built."""
    with open_folder(out, build, force=force) as folder:
        folder.begin()
        name = f"{IMAGES}/{build.fingerprint}.png"
        (out / IMAGES).mkdir(exist_ok=True)
        (out / name).write_text(build.fingerprint)
        folder.remove_images_except([name])
        (out / GROUPS).write_text(build.fingerprint)
        folder.finish(Contents(groups=1, probes=1, sources={}, dropped={}), {name: ""}, BuildManifest)


def content(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


class Killed(BaseException):
    """Stands for kill -9."""


def kill_at(patch: pytest.MonkeyPatch, step: int) -> None:
    """Let so many writes and removals happen, and none after."""
    left = [step]

    def counted(do: Callable[..., object]) -> Callable[..., object]:
        def wrapped(*words: object, **more: object) -> object:
            left[0] -= 1
            if left[0] < 0:
                raise Killed
            return do(*words, **more)

        return wrapped

    for owner, name in ((Journal, "_write"), (Path, "unlink"), (Path, "write_text"), (Path, "mkdir")):
        patch.setattr(owner, name, counted(getattr(owner, name)))


@pytest.mark.parametrize("step", range(12))
def test_a_folder_is_accepted_wherever_a_forced_build_was_killed(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"
    make(out, of(1))
    before = content(out)
    with monkeypatch.context() as patch:
        kill_at(patch, step)
        with contextlib.suppress(Killed):
            make(out, of(2), force=True)
    found = content(out)
    if MANIFEST in found and found[MANIFEST] == before[MANIFEST]:
        # The old one is whole, and still known as what it is.
        assert before.items() <= found.items()
        refuse_other_contents(out, of(1), force=False)
    else:
        with pytest.raises(UserError, match="holds another build: seed 2 instead of 1"):
            refuse_other_contents(out, of(1), force=False)
    make(out, of(2), force=True)
    make(tmp_path / "new", of(2))
    assert content(out) == content(tmp_path / "new")


@pytest.mark.parametrize("step", range(12))
def test_the_same_command_continues_wherever_a_first_build_was_killed(
    tmp_path: Path, step: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patch:
        kill_at(patch, step)
        with contextlib.suppress(Killed):
            make(tmp_path / "out", of(1))
    make(tmp_path / "out", of(1))
    make(tmp_path / "new", of(1))
    assert content(tmp_path / "out") == content(tmp_path / "new")


@pytest.mark.parametrize("torn", ["", '{"kind": "cop'])
def test_a_journal_without_its_first_line_does_not_count_as_other_content(tmp_path: Path, torn: str) -> None:
    (tmp_path / JOURNAL).write_text(torn)
    make(tmp_path, of(1))
    assert sorted(content(tmp_path)) == [GROUPS, f"{IMAGES}/print 1.png", MANIFEST]


def test_an_incomplete_journal_of_a_replaced_folder_requires_force(tmp_path: Path) -> None:
    make(tmp_path, of(1))
    (tmp_path / MANIFEST).unlink()
    (tmp_path / JOURNAL).touch()
    with pytest.raises(UserError, match=r"its journal is incomplete.*--force"):
        make(tmp_path, of(1))
    make(tmp_path, of(1), force=True)
    assert (tmp_path / MANIFEST).exists()


def test_a_folder_that_another_process_finished_is_not_replaced(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "out"

    class Late(Journal):
        """A journal that is opened after another process has built."""

        def __enter__(self) -> Late:
            monkeypatch.undo()
            make(out, of(1))
            return super().__enter__()

    monkeypatch.setattr("sightline.builders.folder.Journal", Late)
    with pytest.raises(UserError, match="seed 1 instead of 2"):
        make(out, of(2))
    make(tmp_path / "new", of(1))
    assert content(out) == content(tmp_path / "new")


def test_an_equal_header_with_another_fingerprint_means_other_sources(tmp_path: Path) -> None:
    make(tmp_path, of(1))
    with pytest.raises(UserError, match="other sources, images or --apart-from"):
        refuse_other_contents(tmp_path, of(1, "another"), force=False)
    refuse_other_contents(tmp_path, of(1, "another"), force=True)


@pytest.mark.parametrize("name", ["thesis.tex", "images/mine.png", "manifest.json"])
@pytest.mark.parametrize("force", [False, True])
def test_files_that_no_builder_made_are_never_changed(tmp_path: Path, name: str, force: bool) -> None:
    (tmp_path / name).parent.mkdir(exist_ok=True)
    (tmp_path / name).write_text("{}")
    with pytest.raises(UserError, match=r"contains something else|is not a manifest"):
        make(tmp_path, of(1), force=force)
    assert content(tmp_path) == {name: b"{}"}


def test_a_disk_error_is_an_environment_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    make(tmp_path, of(1))

    def refuse(*_: object, **__: object) -> None:
        raise OSError(30, "Read-only file system", str(tmp_path / MANIFEST))

    monkeypatch.setattr(Path, "unlink", refuse)
    with pytest.raises(EnvironmentFailedError, match=r"manifest.json: cannot be written: Read-only"):
        make(tmp_path, of(2), force=True)


def test_a_forced_build_removes_the_other_files_of_the_earlier_build(tmp_path: Path) -> None:
    out = tmp_path / "out"
    with open_folder(out, of(1), force=False) as folder:
        folder.begin()
        (out / "table.csv").write_text("a,b\n")
        made = {"table.csv": "0" * 64, "../outside.txt": "0" * 64}
        write_manifest(BuildManifest(**of(1).header, groups=0, probes=0, images=0, made=made), out)
        folder.journal.discard()
    (tmp_path / "outside.txt").write_text("somebody's")
    make(out, of(2), force=True)
    assert sorted(content(out)) == [GROUPS, f"{IMAGES}/print 2.png", MANIFEST]
    assert (tmp_path / "outside.txt").read_text() == "somebody's"


def test_images_are_copied_into_folders_of_their_own(tmp_path: Path) -> None:
    """ConTextual's lie two deep: images/stvqa-images/1.jpg."""
    Image.new("RGB", (9, 7), "red").save(tmp_path / "red.png")
    file = inspect_image(ImageRef(str(tmp_path / "red.png"), str(tmp_path)), {})
    with open_folder(tmp_path / "out", of(1), force=False) as folder:
        made = folder.copy_images({"images/signs/red.png": file})
    assert made == {"images/signs/red.png": file.digest}
    assert (tmp_path / "out/images/signs/red.png").read_bytes() == (tmp_path / "red.png").read_bytes()


@pytest.mark.parametrize(
    ("out", "source", "told"),
    [
        ("photos", "photos", "is inside the image folder"),
        ("photos/out", "photos", "is inside the image folder"),
        ("link/out", "photos", "is inside the image folder"),
        ("photos", "photos/a", "contains the input .*photos/a"),
        ("photos", "photos/table.csv", "contains the input .*table.csv"),
        ("photos", "link/table.csv", "contains the input .*table.csv"),
        ("photos/a", "photos/table.csv", None),
        ("out", "photos", None),
        ("photos-2", "photos", None),
    ],
)
def test_inputs_and_outputs_cannot_overlap(tmp_path: Path, out: str, source: str, told: str | None) -> None:
    (tmp_path / "photos" / "a").mkdir(parents=True)
    (tmp_path / "photos" / "table.csv").touch()
    (tmp_path / "link").symlink_to(tmp_path / "photos")
    expected = pytest.raises(UserError, match=told) if told else contextlib.nullcontext()
    with expected:
        refuse_out_inside_inputs(tmp_path / out, [tmp_path / "photos-3", tmp_path / source])
