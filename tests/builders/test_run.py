"""A build is the same for any number of processes and any interruption, and never silently something else."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from pathlib import Path

import numpy as np
import PIL
import pytest
from msgspec import Struct
from PIL import Image

from sightline.builders.folder import BuildManifest, open_upright, read_manifest, save
from sightline.builders.perturb import Perturb
from sightline.builders.run import BuildSpec, SourceResult, build, image_name
from sightline.builders.sources import SourceItem, folder_sources
from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.groups import GroupLine, read_groups
from sightline.formats.journal import JOURNAL
from sightline.images import BadImage

Called = list[str]


def draw(path: Path, seed: int, side: int = 24) -> None:
    values = np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Six images of noise."""
    for number in range(6):
        draw(tmp_path / "photos" / f"p{number}.png", number)
    return tmp_path / "photos"


def content(folder: Path) -> dict[str, str]:
    """Every file of a folder, hidden ones too, with its digest."""
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


class Copies(Struct, frozen=True):
    """Copies each image; `called` hears of every source, and `trouble` may raise at one."""

    called: Called
    trouble: Callable[[SourceItem], None] = lambda source: None

    def __call__(self, source: SourceItem, out: Path) -> SourceResult:
        self.called.append(source.id)
        self.trouble(source)
        name = image_name(source, "copy", "png")
        save(open_upright(source.image), out / name, "png")
        return SourceResult((GroupLine(source.id, "copy", (name,), "What is it?"),))


def copies(photos: Path, out: Path, trouble: Callable[[SourceItem], None] = lambda source: None) -> Called:
    """Build copies; returns the sources that were worked on."""
    called: Called = []
    build(
        folder_sources(photos), Copies(called, trouble), out, BuildSpec(kind="copies", settings={"seed": 0})
    )
    return called


def stop_at(name: str, error: BaseException) -> Callable[[SourceItem], None]:
    def trouble(source: SourceItem) -> None:
        if source.id == name:
            raise error

    return trouble


def perturb(photos: Path, out: Path, processes: int) -> BuildManifest:
    sources = folder_sources(photos)
    settings = {"seed": 0}
    return build(
        sources,
        Perturb("crop", "What?"),
        out,
        BuildSpec(kind="perturb", settings=settings),
        processes=processes,
    )


def test_an_image_that_changes_after_the_check_is_dropped(photos: Path, tmp_path: Path) -> None:
    """Its digest is the cluster of the lines and part of the manifest: other content would falsify both."""

    def change_the_next(source: SourceItem) -> None:
        if source.id == "p1":
            draw(photos / "p2.png", 99)
            (photos / "p3.png").unlink()

    assert copies(photos, tmp_path / "out", change_the_next) == ["p0", "p1", "p4", "p5"]
    dropped = read_manifest(tmp_path / "out").dropped
    assert dropped == {"p2": "changed during the run", "p3": "No such file or directory"}


# --- the same bytes


def test_one_and_two_processes_build_the_same_bytes(photos: Path, tmp_path: Path) -> None:
    assert perturb(photos, tmp_path / "one", 1) == perturb(photos, tmp_path / "two", 2)
    assert content(tmp_path / "one") == content(tmp_path / "two")
    assert len(content(tmp_path / "one")) == 6 * 4 + 2


def test_the_manifest_depends_on_the_content_of_images_and_not_on_their_path(
    photos: Path, tmp_path: Path
) -> None:
    copies(photos, tmp_path / "out")
    moved = photos.rename(tmp_path / "elsewhere")
    assert copies(moved, tmp_path / "out") == []
    draw(moved / "p3.png", 99)
    with pytest.raises(UserError, match="holds another build: other sources"):
        copies(moved, tmp_path / "out")


def test_lines_follow_the_order_of_the_sources_and_have_the_image_digest_as_cluster(
    photos: Path, tmp_path: Path
) -> None:
    perturb(photos, tmp_path / "out", 2)
    lines = read_groups(tmp_path / "out" / "groups.jsonl")
    assert [line.group for line in lines] == [f"p{number}" for number in range(6) for _ in range(4)]
    for line in lines:
        assert line.cluster == hashlib.sha256((photos / f"{line.group}.png").read_bytes()).hexdigest()


def test_the_manifest_records_the_sources_of_the_folder(photos: Path, tmp_path: Path) -> None:
    perturb(photos, tmp_path / "out", 1)
    manifest = read_manifest(tmp_path / "out")
    assert (manifest.kind, manifest.settings) == ("perturb", {"seed": 0})
    assert (manifest.groups, manifest.probes, manifest.images) == (6, 24, 24)
    assert manifest.versions["pillow"] == PIL.__version__
    assert manifest.sources == {
        path.stem: hashlib.sha256(path.read_bytes()).hexdigest() for path in photos.iterdir()
    }
    made = content(tmp_path / "out")
    made.pop("manifest.json")
    assert manifest.made == made


# --- interruptions


def test_finished_groups_are_not_built_again(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        copies(photos, tmp_path / "out", stop_at("p4", KeyboardInterrupt()))
    assert copies(photos, tmp_path / "out") == ["p4", "p5"]
    copies(photos, tmp_path / "whole")
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_an_image_damaged_since_the_interruption_is_built_again(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        copies(photos, out, stop_at("p4", KeyboardInterrupt()))
    (out / "images" / "p1_copy.png").write_bytes(b"spoilt since")
    assert copies(photos, out) == ["p1", "p4", "p5"]
    copies(photos, tmp_path / "whole")
    assert content(out) == content(tmp_path / "whole")


def test_a_source_changed_since_the_interruption_is_built_again(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        copies(photos, tmp_path / "out", stop_at("p4", KeyboardInterrupt()))
    draw(photos / "p2.png", 99)
    assert copies(photos, tmp_path / "out") == ["p2", "p4", "p5"]
    copies(photos, tmp_path / "whole")
    assert content(tmp_path / "out") == content(tmp_path / "whole")


def test_partial_files_of_killed_processes_are_removed(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    with pytest.raises(KeyboardInterrupt):
        copies(photos, out, stop_at("p4", KeyboardInterrupt()))
    for name in ("images/.p4_copy.png.1.ab.tmp", ".groups.jsonl.1.ab.tmp", ".manifest.json.1.ab.tmp"):
        (out / name).write_bytes(b"half")
    copies(photos, out)
    copies(photos, tmp_path / "whole")
    assert content(out) == content(tmp_path / "whole")


@pytest.mark.parametrize("error", [EnvironmentFailedError("the disk is full"), KeyboardInterrupt()])
def test_partial_files_of_stopped_processes_are_removed(
    error: BaseException, photos: Path, tmp_path: Path
) -> None:
    half = tmp_path / "out" / "images" / ".p5_copy.png.1.ab.tmp"

    def trouble(source: SourceItem) -> None:
        if source.id == "p3":
            # As another process does that is ended because this one failed.
            half.write_bytes(b"half")
            raise error

    with pytest.raises(type(error)):
        copies(photos, tmp_path / "out", trouble)
    assert not half.exists()
    assert copies(photos, tmp_path / "out") == ["p3", "p4", "p5"]


def test_a_kill_between_the_manifest_and_the_end_leaves_a_finished_folder(
    photos: Path, tmp_path: Path
) -> None:
    copies(photos, tmp_path / "out")
    before = content(tmp_path / "out")
    (tmp_path / "out" / JOURNAL).write_text('{"kind":"copies"}\n')
    assert copies(photos, tmp_path / "out") == []
    assert content(tmp_path / "out") == before


def test_too_little_memory_is_an_environment_error_and_finished_work_is_kept(
    photos: Path, tmp_path: Path
) -> None:
    with pytest.raises(EnvironmentFailedError, match=r"p2.png: not enough memory"):
        copies(photos, tmp_path / "out", stop_at("p2", MemoryError()))
    assert copies(photos, tmp_path / "out") == ["p2", "p3", "p4", "p5"]


# --- a folder that is there already


def test_a_second_run_builds_nothing(photos: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    assert copies(photos, out) == [f"p{number}" for number in range(6)]
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    assert copies(photos, out) == []
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before


def test_a_finished_folder_of_other_settings_is_refused_unless_forced(photos: Path, tmp_path: Path) -> None:
    out, sources = tmp_path / "out", folder_sources(photos)
    build(
        sources,
        Perturb("crop", "a"),
        out,
        BuildSpec(kind="perturb", settings={"perturbation": "crop", "seed": 1}),
    )
    before = content(out)
    work, settings = Perturb("jpeg", "a"), {"perturbation": "jpeg", "seed": 1}
    with pytest.raises(UserError, match="perturbation 'crop' instead of 'jpeg'"):
        build(sources, work, out, BuildSpec(kind="perturb", settings=settings))
    assert content(out) == before
    build(sources, work, out, BuildSpec(kind="perturb", settings=settings), force=True)
    build(sources, work, tmp_path / "new", BuildSpec(kind="perturb", settings=settings))
    assert content(out) == content(tmp_path / "new")


def test_an_interrupted_build_of_other_settings_is_refused_unless_forced(
    photos: Path, tmp_path: Path
) -> None:
    out, sources = tmp_path / "out", folder_sources(photos)
    with pytest.raises(KeyboardInterrupt):
        copies(photos, out, stop_at("p4", KeyboardInterrupt()))
    with pytest.raises(UserError, match="seed 0 instead of 1"):
        build(sources, Copies([]), out, BuildSpec(kind="copies", settings={"seed": 1}))
    build(sources, Copies([]), out, BuildSpec(kind="copies", settings={"seed": 1}), force=True)
    build(sources, Copies([]), tmp_path / "new", BuildSpec(kind="copies", settings={"seed": 1}))
    assert content(out) == content(tmp_path / "new")


def test_an_interrupted_forced_build_continues(photos: Path, tmp_path: Path) -> None:
    out, sources, called = tmp_path / "out", folder_sources(photos), Called()
    copies(photos, out)
    with pytest.raises(KeyboardInterrupt):
        build(
            sources,
            Copies([], stop_at("p4", KeyboardInterrupt())),
            out,
            BuildSpec(kind="copies", settings={"seed": 1}),
            force=True,
        )
    build(sources, Copies(called), out, BuildSpec(kind="copies", settings={"seed": 1}), force=True)
    assert called == ["p4", "p5"]


def test_a_forced_build_that_was_killed_at_its_start_continues(
    photos: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out, sources = tmp_path / "out", folder_sources(photos)
    copies(photos, out)

    def kill(*_: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patch:
        patch.setattr("sightline.builders.folder.BuiltFolder.remove_images_except", kill)
        with pytest.raises(KeyboardInterrupt):
            build(sources, Copies([]), out, BuildSpec(kind="copies", settings={"seed": 1}), force=True)
    build(sources, Copies([]), out, BuildSpec(kind="copies", settings={"seed": 1}), force=True)
    build(sources, Copies([]), tmp_path / "new", BuildSpec(kind="copies", settings={"seed": 1}))
    assert content(out) == content(tmp_path / "new")


@pytest.mark.parametrize("force", [False, True])
def test_a_folder_with_other_files_is_never_changed(photos: Path, tmp_path: Path, force: bool) -> None:
    (tmp_path / "out" / "images").mkdir(parents=True)
    (tmp_path / "out" / "images" / "mine.png").write_text("mine")
    with pytest.raises(UserError, match="contains something else"):
        build(
            folder_sources(photos),
            Copies([]),
            tmp_path / "out",
            BuildSpec(kind="copies", settings={}),
            force=force,
        )
    assert list(content(tmp_path / "out")) == ["images/mine.png"]


def test_a_changed_file_in_a_finished_folder_is_reported(photos: Path, tmp_path: Path) -> None:
    copies(photos, tmp_path / "out")
    (tmp_path / "out" / "images" / "p1_copy.png").write_bytes(b"")
    (tmp_path / "out" / "images" / "p2_copy.png").unlink()
    with pytest.raises(UserError, match=r"2 of the files .* missing or changed, first images/p1_copy.png"):
        copies(photos, tmp_path / "out")


def test_a_file_as_output_folder_is_refused(photos: Path, tmp_path: Path) -> None:
    (tmp_path / "out").write_text("")
    with pytest.raises(UserError, match="is not a folder"):
        copies(photos, tmp_path / "out")


# --- drops


def test_a_bad_image_is_dropped_with_its_reason(photos: Path, tmp_path: Path) -> None:
    (photos / "p1.png").write_bytes((photos / "p1.png").read_bytes()[:-200])
    (photos / "p4.png").write_bytes(b"")
    copies(photos, tmp_path / "out")
    manifest = read_manifest(tmp_path / "out")
    assert list(manifest.dropped) == ["p1", "p4"]
    assert manifest.dropped["p1"].startswith("the file ends too early")
    assert manifest.dropped["p4"] == "the file is empty"
    assert list(manifest.sources) == ["p0", "p2", "p3", "p5"]
    assert manifest.groups == 4


def test_a_missing_image_is_dropped(photos: Path, tmp_path: Path) -> None:
    sources = [*folder_sources(photos), SourceItem("gone", str(photos / "gone.png"))]
    manifest = build(sources, Copies([]), tmp_path / "out", BuildSpec(kind="copies", settings={}))
    assert manifest.dropped == {"gone": "no such image"}


def test_a_build_without_usable_sources_reports_the_reasons_and_leaves_no_file(
    photos: Path, tmp_path: Path
) -> None:
    trouble = stop_at("p0", BadImage("too dark"))
    with pytest.raises(UserError, match=r"all 1 sources are dropped \(p0: too dark\)"):
        build(
            folder_sources(photos)[:1],
            Copies([], trouble),
            tmp_path / "out",
            BuildSpec(kind="copies", settings={}),
        )
    assert not (tmp_path / "out").exists()


def test_a_build_without_sources_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="there are no sources"):
        build([], Copies([]), tmp_path / "out", BuildSpec(kind="copies", settings={}))


def test_two_sources_of_one_id_are_refused(photos: Path, tmp_path: Path) -> None:
    sources = folder_sources(photos)
    with pytest.raises(UserError, match="record p0: two sources have this id"):
        build([*sources, sources[0]], Copies([]), tmp_path / "out", BuildSpec(kind="copies", settings={}))
    assert not (tmp_path / "out").exists()


def test_an_image_that_a_link_leads_outside_its_folder_is_dropped(photos: Path, tmp_path: Path) -> None:
    secret = tmp_path / "secret.png"
    (photos / "p1.png").rename(secret)
    (photos / "p1.png").symlink_to(secret)
    (photos / "p7.png").symlink_to("p2.png")
    copies(photos, tmp_path / "out")
    manifest = read_manifest(tmp_path / "out")
    assert manifest.dropped == {"p1": "is outside the data folder"}
    assert manifest.sources["p7"] == manifest.sources["p2"]
    assert hashlib.sha256(secret.read_bytes()).hexdigest() not in content(tmp_path / "out").values()


# --- train and test apart


def test_sources_with_an_image_of_another_folder_are_dropped_whatever_their_name(
    photos: Path, tmp_path: Path
) -> None:
    for name in ("p1", "p4"):
        target = tmp_path / "train" / f"other-{name}.png"
        target.parent.mkdir(exist_ok=True)
        target.write_bytes((photos / f"{name}.png").read_bytes())
    draw(tmp_path / "train" / "own.png", 77)
    copies(tmp_path / "train", tmp_path / "train-built")
    manifest = build(
        folder_sources(photos),
        Copies([]),
        tmp_path / "test-built",
        BuildSpec(kind="copies", settings={}, apart_from=(tmp_path / "train-built",)),
    )
    reason = "its image is in train-built"
    assert manifest.dropped == {"p1": reason, "p4": reason}
    (apart,) = manifest.apart_from
    assert (apart.folder, apart.images) == ("train-built", 3)
    train = read_manifest(tmp_path / "train-built")
    assert not set(train.sources.values()) & set(manifest.sources.values())


def test_a_folder_to_keep_apart_from_must_be_finished(photos: Path, tmp_path: Path) -> None:
    with pytest.raises(KeyboardInterrupt):
        copies(photos, tmp_path / "begun", stop_at("p4", KeyboardInterrupt()))
    for folder, message in (("begun", "is not finished"), ("photos", "is not a folder of `sightline build`")):
        with pytest.raises(UserError, match=message):
            build(
                folder_sources(photos),
                Copies([]),
                tmp_path / "out",
                BuildSpec(kind="copies", settings={}, apart_from=(tmp_path / folder,)),
            )
    assert not (tmp_path / "out").exists()
