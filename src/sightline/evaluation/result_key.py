"""The digest of everything that a judged result depends on."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator

import msgspec

from sightline.engine.probe_chunks import split_keys
from sightline.engine.probe_rows import probe_rows
from sightline.engine.store import Store
from sightline.evaluation.code_digest import is_own, unchanged_code
from sightline.evaluation.prepared import Prepared
from sightline.judging.judges import judge_kind
from sightline.judging.text_metrics import identities_of
from sightline.results.description import EvaluationDescription

_COUNTING = struct.Struct("<qd")
_NO_ANSWER = _COUNTING.pack(-1, 0.0)


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
    if not all(judge_kind(judge) == "rules" for judge in judges) or not all(map(is_own, code)):
        return None
    embedder = measures.embedder.identity if measures.embedder is not None else None
    identities = identities_of(measures.text_metrics)
    if (loaded_code := unchanged_code()) is None:
        return None
    digest = hashlib.sha256(loaded_code)
    digest.update(msgspec.json.encode([description, embedder, identities], order="deterministic"))
    for piece in _collected(store, run):
        digest.update(piece)
    return digest.digest()


def _collected(store: Store, run: int) -> Iterator[bytes]:
    """The probes of a run, and the number and time of each answer that counts."""
    for row in probe_rows(store.database, run):
        yield row.content
        yield row.keys
        keys = split_keys(row.keys)
        counting = store.answers.counting(keys)
        yield b"".join([_COUNTING.pack(*counting[key]) if key in counting else _NO_ANSWER for key in keys])
