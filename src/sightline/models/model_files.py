"""A model's files: the folder that a name means, and their digests.

The digest of big weights is remembered on disk, so that they are read once.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable
from functools import cache
from pathlib import Path

from sightline.errors import UserError
from sightline.paths import cache_folder

LARGE = 16 * 1024 * 1024
"""Bytes from which on a file's digest is remembered on disk."""


_OF_NO_EFFECT = (
    ".",
    "README",
    "LICENSE",
    "optimizer",
    "scheduler",
    "scaler",
    "rng_state",
    "trainer_state",
    "training_args",
)
"""How the names of files begin that lie among weights and have no part in answers."""


def folder_of(name: str) -> Path | None:
    """The folder that a model's name means; None where it may be a name of the Hugging Face Hub.

    Raises UserError where it can be nothing but a path, and nothing is there.
    """
    path = Path(os.path.expanduser(name))
    if path.is_dir():
        return path
    if name.startswith((".", "/", "~")) and not path.exists():
        raise no_folder(name)
    return None


def cached_folder(repository: str) -> Path | None:
    """The folder of the Hugging Face cache that holds a model, None where none does; no network is asked."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(repository, local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError, OSError):
        return None


def no_folder(name: str) -> UserError:
    """The error for a name that is neither a folder nor one of the Hub."""
    return UserError(f"there is no folder '{name}'", expected="a folder, or ORG/NAME of the Hugging Face Hub")


def answer_files(folder: Path) -> list[Path]:
    """The files of a model's folder that may have a part in its answers: weights, of adapters too, config,
    processor, tokenizer, code."""
    files = (path.name for path in folder.iterdir() if path.is_file())
    return [Path(name) for name in files if not name.startswith(_OF_NO_EFFECT)]


def digest_of_files(folder: Path, parts: Iterable[Path]) -> str:
    """The digest of files by their names within a folder and by what they hold: 64 hexadecimal digits.

    A file is read again only where its size or its time of change is another. Raises OSError where one
    cannot be read.
    """
    digest = hashlib.sha256()
    for part in sorted(parts):
        place = (folder / part).resolve()
        stamp = place.stat()
        # Copies and archives carry the time of change along; the inode's own time nobody can set.
        content = _content(place, (stamp.st_size, stamp.st_mtime_ns, stamp.st_ctime_ns, stamp.st_ino))
        digest.update(f"{part.as_posix()} {content}\n".encode())
    return digest.hexdigest()


@cache
def _content(place: Path, stamp: tuple[int, ...]) -> str:
    """The digest of one file's content; `stamp`, its size in bytes and its times, tells its states apart."""
    if stamp[0] < LARGE:
        return _read(place)
    # A file for each digest: two processes at once need no lock, and nothing has to be parsed.
    state = hashlib.sha256(f"{place}\n{stamp}".encode()).hexdigest()
    known = cache_folder() / "digests" / state
    try:
        content = known.read_text("ascii")
    except (OSError, UnicodeDecodeError):
        content = ""
    if len(content) != 64:
        content = _read(place)
        _keep(content, known)
    return content


def _keep(content: str, known: Path) -> None:
    draft = known.with_name(f"{known.name}.{os.getpid()}")
    try:
        known.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(content, "ascii")
        draft.replace(known)
    except OSError:
        # A cache that cannot be written costs time, and nothing else.
        return


def _read(place: Path) -> str:
    with place.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
