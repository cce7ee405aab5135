"""The digest of everything that a judged result depends on."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import struct
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path

import msgspec

import sightline
from sightline.engine.probe_chunks import split_keys
from sightline.engine.store import Store
from sightline.evaluation.prepared import Prepared
from sightline.judging.judges import judge_kind
from sightline.judging.text_metrics import identities_of
from sightline.results.description import EvaluationDescription

_COUNTING = struct.Struct("<qd")
_NO_ANSWER = _COUNTING.pack(-1, 0.0)
_NUMERIC = ("numpy", "scipy")
"""The libraries that compute numbers of a result; another version may change their last digits."""


def result_key(
    prepared: Prepared, description: EvaluationDescription, store: Store, run: int
) -> bytes | None:
    """Compute the key of the result of a run whose answers are collected.

    It covers the code of the package, the description, the stored probes, the answers that count, and the
    identities of the measures.

    Args:
        prepared: The evaluation.
        description: What the result reports about it.
        store: The store that holds the run.
        run: The number of the run.

    Returns:
        A SHA-256; None if the result may depend on anything else: a judge that is no rule, code of a
        plugin, or code of the package that changed since this process loaded it.
    """
    measures, judges = prepared.measures, prepared.spec.judge
    code = [prepared.task.benchmark, measures.embedder, *measures.text_metrics.values()]
    if not all(judge_kind(judge) == "rules" for judge in judges) or not all(map(_is_own, code)):
        return None
    embedder = measures.embedder.identity if measures.embedder is not None else None
    identities = identities_of(measures.text_metrics)
    code_now = code_digest()
    if code_now != _LOADED_CODE:
        # Modules may have been loaded before and after the change: nobody knows which code judges.
        return None
    digest = hashlib.sha256(code_now)
    digest.update(msgspec.json.encode([description, embedder, identities], order="deterministic"))
    for piece in _collected(store, run):
        digest.update(piece)
    return digest.digest()


def code_digest() -> bytes:
    """The digest of the code that judges and counts.

    Returns:
        A SHA-256 of path, size and time of all files of the package, and of the versions of Python and of
        the libraries that compute numbers. Hidden and temporary files of editors are left out.
    """
    digest = hashlib.sha256(sys.version.encode())
    folder = Path(sightline.__file__).parent
    for path in (*sorted(_files(folder)), *_numeric_libraries()):
        stamp = path.stat()
        digest.update(f"{path} {stamp.st_size} {stamp.st_mtime_ns}\n".encode())
    return digest.digest()


def _files(folder: Path) -> Iterator[Path]:
    for root, folders, names in os.walk(folder):
        folders[:] = [name for name in folders if name != "__pycache__"]
        yield from (Path(root, name) for name in names if not name.startswith((".", "#")))


def _numeric_libraries() -> Iterable[Path]:
    found = map(importlib.util.find_spec, _NUMERIC)
    return [Path(spec.origin).parent / "version.py" for spec in found if spec is not None and spec.origin]


def _is_own(part: object) -> bool:
    """Whether the code of an object is part of the package; None has no code."""
    return part is None or type(part).__module__.partition(".")[0] == sightline.__name__


_LOADED_CODE = code_digest()


def _collected(store: Store, run: int) -> Iterator[bytes]:
    """The probes of a run, and the number and time of each answer that counts."""
    for chunk in store.runs.chunks(run):
        yield b"%d " % chunk.first
        yield hashlib.sha256(chunk.definitions).digest()
        yield chunk.keys
        keys = split_keys(chunk.keys)
        counting = store.answers.counting(keys)
        yield b"".join([_COUNTING.pack(*counting[key]) if key in counting else _NO_ANSWER for key in keys])
