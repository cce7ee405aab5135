"""Writes built folders: locks a folder, resumes after a kill, copies images, writes the manifest last."""

from __future__ import annotations

import io
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal, TypeVar

from msgspec import Struct, field, structs

import sightline
from sightline.errors import EnvironmentFailedError, UserError, some_of
from sightline.formats.files import (
    changed_files,
    file_digest,
    file_digest_or_error,
    json_digest,
    read_bytes,
    refuse_unwritable,
    write_atomically,
    writing,
)
from sightline.formats.groups import GroupLine, write_groups
from sightline.formats.journal import JOURNAL, Journal, header_of
from sightline.images import BadImage, inspect_image, orientation, read_image, read_original
from sightline.text import decode_json, indented_json
from sightline.types import ImageFile, ImageRef

if TYPE_CHECKING:
    from PIL.Image import Image


# -- manifest.json: the content of a built folder, what it was built from, and the fingerprint of the
#    build

MANIFEST = "manifest.json"


class BuildIdentity(Struct, frozen=True):
    """What a folder is built from.

    `header` holds kind, settings and versions, which a message can print. `fingerprint` is a digest of
    everything that decides the content: equal fingerprints mean equal bytes.
    """

    header: Mapping[str, Any]
    fingerprint: str


class ExcludedFolder(Struct, frozen=True):
    """A built folder whose images are excluded: its name, its manifest's SHA-256, its number of images."""

    folder: str
    manifest: str
    images: int


class BuildManifest(Struct, frozen=True):
    """The content of manifest.json. `versions`: versions of the software that may change bytes."""

    kind: str
    settings: Mapping[str, Any]
    versions: Mapping[str, str]
    groups: int
    probes: int
    images: int
    fingerprint: str = ""
    apart_from: tuple[ExcludedFolder, ...] = ()
    dropped: Mapping[str, str] = field(default_factory=dict)
    passed_over: Mapping[str, int] = field(default_factory=dict)
    sources: Mapping[str, str] = field(default_factory=dict)
    made: Mapping[str, str] = field(default_factory=dict)
    schema: int = 1


def build_identity(
    kind: str,
    settings: Mapping[str, Any],
    *content: Any,
    versions: Mapping[str, str] | None = None,
) -> BuildIdentity:
    """Identify a build. `versions` are those of other software than Sightline that may change bytes."""
    header = {
        "kind": kind,
        "settings": settings,
        "versions": {"sightline": sightline.__version__, **(versions or {})},
    }
    return BuildIdentity(header, json_digest([header, *content] if content else header))


def read_manifest(folder: Path) -> BuildManifest:
    path = folder / MANIFEST
    if not path.is_file():
        problem = "is not finished" if header_of(folder) else "is not a folder of `sightline build`"
        raise UserError(problem, file=folder, expected=f"a folder with {MANIFEST}")
    return decode_json(read_bytes(path), BuildManifest, path, "a manifest")


def write_manifest(manifest: BuildManifest, folder: Path) -> None:
    """Write manifest.json. Write it last: a folder with a manifest counts as finished."""
    write_atomically(folder / MANIFEST, [indented_json(manifest)])


def read_excluded(folders: Sequence[Path]) -> tuple[tuple[ExcludedFolder, ...], dict[str, str]]:
    """Read which images the folders of `--apart-from` use."""
    excluded: list[ExcludedFolder] = []
    folder_of: dict[str, str] = {}
    for folder in folders:
        images = set(read_manifest(folder).sources.values())
        name = folder.resolve().name
        folder_of.update(dict.fromkeys(images, name))
        excluded.append(ExcludedFolder(name, file_digest(folder / MANIFEST), len(images)))
    return tuple(excluded), folder_of


def image_versions() -> dict[str, str]:
    """Versions of the software that writes images; another version may write other bytes."""
    import PIL
    from PIL import features

    codecs = {name: features.version(name) or "" for name in ("jpg", "zlib")}
    return {"pillow": PIL.__version__, **codecs}


def describe_difference(old: Any, new: Mapping[str, Any]) -> str:
    """The differences of kind, settings and versions of two builds; '' if there are none.

    >>> one = {"kind": "mask", "settings": {"seed": 1}, "versions": {}}
    >>> describe_difference(one, {**one, "settings": {"seed": 2}})
    'seed 1 instead of 2'
    """
    if not isinstance(old, dict) or old.get("kind") != new["kind"]:
        return f"kind {old.get('kind') if isinstance(old, dict) else old!r} instead of {new['kind']!r}"
    differences = []
    for part in ("settings", "versions"):
        before = old.get(part) or {}
        keys = [key for key in {**before, **new[part]} if before.get(key) != new[part].get(key)]
        differences += [f"{key} {before.get(key)!r} instead of {new[part].get(key)!r}" for key in keys]
    return ", ".join(differences)


GROUPS, IMAGES = "groups.jsonl", "images"

REASONS = 3
"""Dropped sources that an error names."""

ManifestT = TypeVar("ManifestT", bound=BuildManifest)


class Contents(Struct, frozen=True, kw_only=True):
    """What a builder writes in addition to the images, and what its manifest records."""

    groups: int
    probes: int
    lines: Sequence[GroupLine] = ()
    files: Mapping[str, bytes] = field(default_factory=dict)
    sources: Mapping[str, str]
    dropped: Mapping[str, str]
    passed_over: Mapping[str, int] = field(default_factory=dict)
    excluded: tuple[ExcludedFolder, ...] = ()


class BuiltFolder:
    """A folder that is being built, locked against other processes. `open_folder` makes it."""

    def __init__(self, path: Path, identity: BuildIdentity, journal: Journal) -> None:
        self.path = path
        self.identity = identity
        self.journal = journal

    @property
    def finished(self) -> bool:
        return (self.path / MANIFEST).exists()

    def begin(self) -> None:
        """Start or resume this build; whatever it finished before a kill stays.

        The journal names the new build before anything of an old build is removed, and the old manifest goes
        first. After a kill at any moment the folder is either the old one, complete, or one that was begun.
        """
        if not self.finished and self.journal.header() == self.identity.header:
            return
        made = read_manifest(self.path).made if self.finished else {}
        tables = [name for name in made if Path(name).name == name]
        self.journal.begin(self.identity.header)
        with writing(self.path):
            for name in (MANIFEST, GROUPS, *tables):
                (self.path / name).unlink(missing_ok=True)
        self.remove_images_except(())

    def remove_images_except(self, paths: Collection[str]) -> None:
        """Remove all other images, and files that killed processes left half-written."""
        images = self.path / IMAGES
        with writing(self.path):
            images.mkdir(exist_ok=True)
            for path in images.rglob("*"):
                if path.is_file() and path.relative_to(self.path).as_posix() not in paths:
                    path.unlink()
            for name in (GROUPS, MANIFEST):
                for path in self.path.glob(f".{name}.*.tmp"):
                    path.unlink()

    @contextmanager
    def remove_partial_images_on_error(self) -> Iterator[None]:
        """Remove the files that interrupted worker processes left half-written, if the block ends early."""
        try:
            yield
        except BaseException:
            for path in (self.path / IMAGES).rglob(".*.tmp"):
                # The error that ended the block is the one to report.
                with suppress(OSError):
                    path.unlink()
            raise

    def copy_images(self, images: Mapping[str, ImageFile]) -> dict[str, str]:
        """Copy images unchanged into the folder, and remove all other images."""
        self.remove_images_except(images.keys())
        add_images(images, self.path)
        return {name: file.digest for name, file in images.items()}

    def finish(
        self,
        contents: Contents,
        images: Mapping[str, str],
        manifest: Callable[..., ManifestT],
    ) -> ManifestT:
        """Write the files and the manifest, and remove the journal."""
        if contents.lines:
            write_groups(contents.lines, self.path / GROUPS)
        for name, content in contents.files.items():
            write_atomically(self.path / name, [content])
        names = [*([GROUPS] if contents.lines else []), *contents.files]
        whole = manifest(
            **self.identity.header,
            groups=contents.groups,
            probes=contents.probes,
            images=len(images),
            fingerprint=self.identity.fingerprint,
            apart_from=contents.excluded,
            dropped=contents.dropped,
            passed_over=contents.passed_over,
            sources=contents.sources,
            made={**{name: file_digest(self.path / name) for name in names}, **images},
        )
        write_manifest(whole, self.path)
        self.journal.discard()
        return whole


@contextmanager
def open_folder(path: Path, identity: BuildIdentity, *, force: bool) -> Iterator[BuiltFolder]:
    refuse_other_contents(path, identity, force=force)
    with Journal(path) as journal:
        # Another process may have built there since.
        refuse_other_contents(path, identity, force=force)
        yield BuiltFolder(path, identity, journal)


def write_folder(
    path: Path,
    identity: BuildIdentity,
    contents: Contents,
    images: Mapping[str, ImageFile],
    *,
    manifest: Callable[..., ManifestT],
    force: bool = False,
) -> ManifestT:
    """Write copied images, files and, last, the manifest; equal arguments always write equal bytes."""
    with open_folder(path, identity, force=force) as folder:
        folder.begin()
        return folder.finish(contents, folder.copy_images(images), manifest)


def built_image_path(stem: str, image_format: str) -> str:
    return f"{IMAGES}/{stem}{ENDINGS[image_format][0]}"


def share_label(share: float) -> str:
    """A label for a share, in steps of ten percent.

    >>> share_label(0.4), share_label(1.0)
    ('40-50 %', '90-100 %')
    """
    lower = min(int(share * 10), 9) * 10
    return f"{lower}-{lower + 10} %"


def refuse_out_inside_inputs(out: Path, inputs: Iterable[Path]) -> None:
    """Refuse an output folder that overlaps with the inputs.

    A folder built inside a folder of images would be read as images by the next command. An input inside the
    output folder would be replaced.
    """
    for one in inputs:
        target, source = out.resolve(), one.resolve()
        if source.is_dir() and target.is_relative_to(source):
            raise UserError(
                "is inside the image folder: the next build would read its images as input",
                file=out,
                expected=f"an --out outside {one}",
            )
        if source.is_relative_to(target):
            raise UserError(f"contains the input {one}", file=out, expected="another --out")


def refuse_other_contents(out: Path, identity: BuildIdentity, *, force: bool) -> None:
    """Refuse a folder that cannot be written or holds anything but this build, begun or finished."""
    if out.exists() and not out.is_dir():
        raise UserError("is not a folder", file=out, expected="a folder for --out")
    refuse_unwritable(out)
    difference = _difference(out, identity)
    if difference and not force:
        raise UserError(
            f"holds another build: {difference}",
            file=out,
            expected="another --out, or --force to rebuild it",
        )


def refuse_changed_files(folder: Path, manifest: BuildManifest) -> None:
    others = changed_files(folder, manifest.made)
    if others:
        raise UserError(
            f"{len(others):,} of the files built there are missing or changed, first {others[0]}",
            file=folder,
            expected="the folder as it was built, or --force to rebuild it",
        )


def add_images(images: Mapping[str, ImageFile], folder: Path) -> None:
    """Copy images unchanged into a folder and leave its other files alone."""
    for name, file in images.items():
        if file_digest_or_error(folder / name) == file.digest:
            continue
        try:
            content = read_original(file.path, file.digest)
        except BadImage as error:
            raise EnvironmentFailedError(f"{error}; run the same command again to continue") from None
        with writing(folder):
            (folder / name).parent.mkdir(parents=True, exist_ok=True)
        write_atomically(folder / name, [content])


def everything_dropped(dropped: Mapping[str, str], what: str) -> UserError:
    if not dropped:
        return UserError(f"there are no {what}", expected="at least one")
    reasons = some_of([f"{name}: {reason}" for name, reason in dropped.items()], REASONS, separator="; ")
    return UserError(
        f"all {len(dropped):,} {what} are dropped ({reasons})", expected=f"at least one usable {what}"
    )


def _difference(out: Path, identity: BuildIdentity) -> str:
    """How the folder's build differs from this one, '' if equal; UserError if no builder made the folder."""
    if (out / MANIFEST).exists():
        built = read_manifest(out)
        if built.fingerprint == identity.fingerprint:
            return ""
        return (
            describe_difference(structs.asdict(built), identity.header)
            or "other sources, images or --apart-from"
        )
    begun = header_of(out)
    if begun is not None:
        return describe_difference(begun, identity.header)
    if not any(path.is_file() and path.name != JOURNAL for path in out.rglob("*")):
        return ""
    # A kill during Journal.begin can cut off the journal's first line.
    if (out / JOURNAL).exists():
        return "its journal is incomplete"
    raise UserError("contains something else", file=out, expected="an empty or a new folder for --out")


# -- Reads any supported image as an upright RGB one, and writes PNG and JPEG reproducibly

Form = Literal["png", "jpeg"]

ENDINGS: Mapping[str, tuple[str, ...]] = {
    "JPEG": (".jpg", ".jpeg"),
    "PNG": (".png",),
    "WEBP": (".webp",),
    "GIF": (".gif",),
    "BMP": (".bmp",),
    "TIFF": (".tiff", ".tif"),
    "AVIF": (".avif",),
    "JPEG2000": (".jp2", ".j2k", ".jpx"),
    "HEIF": (".heic", ".heif"),
}
"""Format (Pillow's name) -> possible endings of its files; written files get the first."""
SUFFIXES = tuple(ending for endings in ENDINGS.values() for ending in endings)


def open_upright(path: str | Path) -> Image:
    """Read what every model sees of an image file, in RGB."""
    return read_image(inspect_image(ImageRef(str(path)), {}))


def save(image: Image, path: Path, form: Form) -> None:
    """Write an image atomically. The same pixels always give the same bytes."""
    out = io.BytesIO()
    if form == "png":
        # Photographs of 768 pixels: a third of the time of the default level, a tenth more bytes.
        image.save(out, "PNG", compress_level=2, icc_profile=None)
    else:
        image.save(out, "JPEG", quality=95, subsampling=0, icc_profile=None, comment=b"")
    write_atomically(path, [out.getvalue()])


def rotates_in_place(path: str) -> bool:
    """Whether EXIF rotates or mirrors an image without a change of its size, which would reveal it."""
    from PIL import Image

    with Image.open(path) as image:
        turned = orientation(image)
        return turned in {2, 3, 4} or (turned >= 5 and image.width == image.height)
