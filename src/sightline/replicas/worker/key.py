"""The key of a worker: random for each run, in an environment variable or in a file for its owner only."""

from __future__ import annotations

import os
import secrets
import stat
from pathlib import Path

from sightline.errors import UserError
from sightline.replicas.worker.wire import KEY_VARIABLE

SHORTEST = 16


def worker_key(file: Path) -> tuple[str, bool]:
    """The key that clients of a worker must send.

    Args:
        file: Where a new key is written if the environment variable has none; a key that is there is used.
    """
    key = os.environ.get(KEY_VARIABLE, "").strip()
    if key:
        _check(key, KEY_VARIABLE)
        return key, False
    try:
        file.parent.mkdir(parents=True, exist_ok=True)
        return write_key(file), True
    except FileExistsError:
        return read_key(file), True
    except OSError as error:
        raise UserError(f"the key cannot be written ({error.strerror})", file=file) from None


def write_key(file: Path) -> str:
    key = secrets.token_urlsafe(32)
    # The file has its key from the beginning: a process that ends in between leaves none without.
    draft = file.with_name(f".{file.name}-{secrets.token_hex(4)}")
    try:
        with open(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as out:
            out.write(key)
        os.link(draft, file)
    finally:
        draft.unlink(missing_ok=True)
    return key


def read_key(file: Path) -> str:
    try:
        with file.open() as lines:
            if stat.S_IMODE(os.fstat(lines.fileno()).st_mode) & 0o077:
                raise UserError("others may read this key", file=file, expected=f"chmod 600 {file}")
            key = lines.read().strip()
    except (OSError, UnicodeDecodeError) as error:
        raise UserError(f"the key cannot be read ({error})", file=file) from None
    _check(key, str(file))
    return key


def _check(key: str, where: str) -> None:
    if len(key) < SHORTEST or not key.isascii() or not key.isprintable():
        raise UserError(f"the key in {where} is too short", expected=f"{SHORTEST} random characters or more")
