"""Verdicts as codes: what the agreement of judges is computed from, one byte a judge, draw and item."""

from __future__ import annotations

import hashlib
from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
from msgspec import Struct
from numpy.typing import NDArray

from sightline.types import JudgeKind, Verdict, VerdictName

FAILED, UNDECIDED, WRONG, RIGHT = 1, 2, 3, 4
"""The codes of verdicts; 0 is none. Codes from WRONG on are decided, codes from UNDECIDED on are read."""

_CODES: Mapping[VerdictName, int] = {
    "right": RIGHT,
    "wrong": WRONG,
    "miss": WRONG,
    "refused": WRONG,
    "undecided": UNDECIDED,
}
_MODULUS = 1 << 64

Codes = NDArray[np.uint8]
Items = NDArray[np.intp]


class Rater(NamedTuple):
    """One who gives verdicts: a judge by rules, a judge model or a human."""

    name: str
    kind: JudgeKind


class Readings(NamedTuple):
    """What one rater says of the items that it read.

    Attributes:
        items: The items, in the order of their first verdicts, shape (n,).
        codes: UNDECIDED, WRONG or RIGHT of each draw; less where there is none. Shape (n, draws).
    """

    rater: Rater
    items: Items
    codes: Codes


class VerdictCodes(Struct, frozen=True):
    """The verdicts of all raters on m items.

    An item is what one verdict is about: the targets, the question and the variant.

    Attributes:
        ids: The `item_id` of each item, shape (m,).
        clusters: The number of the cluster of each item, shape (m,).
        questions: The number of the question of each item, in the order of `raters`; shape (m,).
        rows: The item of each row, shape (rows,): an item appears again if groups share answers.
    """

    ids: NDArray[np.uint64]
    clusters: Items
    raters: Mapping[str, Sequence[Rater]]
    questions: NDArray[np.uint32]
    rows: Items
    codes: Mapping[Rater, Sequence[Codes]]

    def readings(self, rater: Rater, question: str | None = None) -> Readings:
        """What a rater says of the items of a question.

        Args:
            question: The question; None for all.
        """
        columns = self.codes[rater]
        used = np.zeros(len(self.rows), dtype=np.bool_)
        for column in columns:
            used[: len(column)] |= column >= UNDECIDED
        if question is not None:
            asked = [number for number, name in enumerate(self.raters) if name == question]
            used &= np.isin(self.questions, asked)[self.rows]
        items, first = np.unique(self.rows[used], return_index=True)
        items = items[np.argsort(first)]
        merged = [self._merged(column)[items] for column in columns]
        return Readings(rater, items, np.stack(merged, axis=1))

    def _merged(self, column: Codes) -> Codes:
        """The code of each item, from those of its rows."""
        rows = self.rows[: len(column)]
        codes = np.zeros(len(self.ids), dtype=np.uint8)
        np.maximum.at(codes, rows, np.minimum(column, UNDECIDED))
        decided = np.flatnonzero(column >= WRONG)[::-1]
        codes[rows[decided]] = column[decided]  # the last assignment stays: the first decided row
        return codes


class VerdictCoder:
    """Collects the codes of verdicts, group by group.

    It keeps 20 bytes per item and one byte per item, rater and draw. Items and clusters are told apart by
    checksums of 64 bits.
    """

    def __init__(self) -> None:
        self._targets, self._kinds, self._clusters = array("Q"), array("I"), array("Q")
        self._numbers: dict[tuple[str, str], int] = {}
        self._raters: dict[str, dict[Rater, None]] = {}
        self._codes: dict[Rater, dict[int, bytearray]] = {}

    def add(self, verdicts: Iterable[Verdict], cluster: str | None) -> None:
        """Add the verdicts of a group.

        Args:
            cluster: Its cluster; None makes the targets of each verdict a cluster of their own.
        """
        own = None if cluster is None else _checksum("cluster", cluster)
        rows: dict[tuple[tuple[str, ...], str, str], int] = {}
        for verdict in verdicts:
            item = verdict.targets, verdict.question, verdict.variant
            row = rows.get(item)
            if row is None:
                row = rows[item] = len(self._targets)
                targets = _checksum(*verdict.targets)
                self._targets.append(targets)
                self._kinds.append(self._numbers.setdefault(item[1:], len(self._numbers)))
                self._clusters.append(targets if own is None else own)
            rater = Rater(verdict.judge, verdict.kind)
            self._raters.setdefault(verdict.question, {}).setdefault(rater)
            column = self._codes.setdefault(rater, {}).setdefault(verdict.draw, bytearray())
            if len(column) <= row:
                column.extend(bytes(row + 1 - len(column)))
            if column[row] < WRONG:
                column[row] = max(column[row], _CODES.get(verdict.verdict, FAILED))

    def codes(self) -> VerdictCodes:
        """The codes of all verdicts so far. Nothing can be added while they are in use."""
        targets = np.frombuffer(self._targets, dtype=np.uint64)
        kinds = np.frombuffer(self._kinds, dtype=np.uint32)
        names = np.array([_checksum(*kind) for kind in self._numbers] or [0], dtype=np.uint64)
        ids, first, rows = np.unique(targets + names[kinds], return_index=True, return_inverse=True)
        order = {question: number for number, question in enumerate(self._raters)}
        questions = np.array([order[question] for question, _ in self._numbers] or [0], dtype=np.uint32)
        return VerdictCodes(
            ids=ids,
            clusters=self._cluster_numbers(targets)[first],
            raters={question: list(raters) for question, raters in self._raters.items()},
            questions=questions[kinds[first]],
            rows=rows,
            codes={
                rater: [np.frombuffer(column, dtype=np.uint8) for column in draws.values()]
                for rater, draws in self._codes.items()
            },
        )

    def _cluster_numbers(self, targets: NDArray[np.uint64]) -> Items:
        """The number of the cluster of each row: of equal targets, the last one counts for all."""
        clusters = np.frombuffer(self._clusters, dtype=np.uint64)[::-1]
        _, last, same = np.unique(targets[::-1], return_index=True, return_inverse=True)
        _, numbers = np.unique(clusters[last][same][::-1], return_inverse=True)
        return numbers


def item_id(targets: Sequence[str], question: str, variant: str) -> int:
    """The number by which `VerdictCodes.ids` names an item."""
    return (_checksum(*targets) + _checksum(question, variant)) % _MODULUS


def _checksum(*texts: str) -> int:
    joined = "\0".join(texts).encode("utf-8", "surrogatepass")
    return int.from_bytes(hashlib.blake2b(joined, digest_size=8).digest(), "little")
