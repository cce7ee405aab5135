"""Files of models: the folder that a name means, digests of files, and loading with one kind of error.

Digests of large weights are cached on disk, so that each file is read once.
"""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from functools import cache
from importlib import import_module
from pathlib import Path

from sightline.config import cache_folder
from sightline.errors import UserError
from sightline.formats.files import file_digest, text_digest

LARGE = 16 * 1024 * 1024
"""Bytes from which the digest of a file is cached on disk."""


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
"""Beginnings of names of files that lie next to weights and do not affect answers."""


def folder_of(name: str) -> Path | None:
    """Find the folder that a model's name means; None if the name may be on the Hub."""
    path = Path(os.path.expanduser(name))
    if path.is_dir():
        return path
    if name.startswith((".", "/", "~")) and not path.exists():
        raise no_folder(name)
    return None


def cached_folder(repository: str) -> Path | None:
    """Find a model in the Hugging Face cache, without the network; None if it is not cached."""
    from huggingface_hub import snapshot_download
    from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError

    try:
        return Path(snapshot_download(repository, local_files_only=True))
    except (HFValidationError, LocalEntryNotFoundError, OSError):
        return None


def no_folder(name: str) -> UserError:
    return UserError(f"there is no folder '{name}'", expected="a folder, or ORG/NAME of the Hugging Face Hub")


def answer_files(folder: Path) -> list[Path]:
    """List the files of a model's folder that may affect its answers: weights, adapters, config, processor,
    tokenizer, code.
    """
    files = (path.name for path in folder.iterdir() if path.is_file())
    return [Path(name) for name in files if not name.startswith(_OF_NO_EFFECT)]


def digest_of_files(folder: Path, parts: Iterable[Path]) -> str:
    """Compute the digest of files, by their names and contents.

    A file is read again only if its size or a time of change differs.
    """
    digest = hashlib.sha256()
    for part in sorted(parts):
        path = (folder / part).resolve()
        stamp = path.stat()
        # Copies and archives preserve mtime; ctime cannot be set.
        content = _content(path, (stamp.st_size, stamp.st_mtime_ns, stamp.st_ctime_ns, stamp.st_ino))
        digest.update(f"{part.as_posix()} {content}\n".encode())
    return digest.hexdigest()


@cache
def _content(path: Path, stamp: tuple[int, ...]) -> str:
    """The digest of one file's content; `stamp`, its size and times, distinguishes its states."""
    if stamp[0] < LARGE:
        return file_digest(path)
    # One file for each digest: parallel processes need no lock, and nothing needs parsing.
    state = text_digest(f"{path}\n{stamp}")
    cache_file = cache_folder() / "digests" / state
    try:
        content = cache_file.read_text("ascii")
    except (OSError, UnicodeDecodeError):
        content = ""
    if len(content) != 64:
        content = file_digest(path)
        _keep(content, cache_file)
    return content


def _keep(content: str, cache_file: Path) -> None:
    draft = cache_file.with_name(f"{cache_file.name}.{os.getpid()}")
    try:
        cache_file.parent.mkdir(parents=True, exist_ok=True)
        draft.write_text(content, "ascii")
        draft.replace(cache_file)
    except OSError:
        # Without the cache only time is lost.
        return


# -- Loading with transformers and libraries on top of it: without progress bars, with one kind of error


@contextmanager
def without_progress_bar() -> Iterator[None]:
    logging = import_module("transformers.utils.logging")
    was_enabled = logging.is_progress_bar_enabled()
    logging.disable_progress_bar()
    try:
        yield
    finally:
        if was_enabled:
            logging.enable_progress_bar()


@contextmanager
def loading(what: str, folder: Path, *, install: str, expected: str) -> Iterator[None]:
    """Turn every error inside the block into one message for the user; no progress bar is displayed."""
    try:
        with without_progress_bar():
            yield
    except ImportError as error:
        raise UserError(f"{what} needs a missing library", found=str(error), expected=install) from None
    # The libraries raise many types of errors for a folder that they cannot load.
    except Exception as error:
        raise UserError(
            f"{what} cannot be loaded",
            file=folder,
            found=f"{type(error).__name__}: {error}",
            expected=expected,
        ) from error
