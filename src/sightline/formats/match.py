"""Matches predictions with the probes of a benchmark; reports unknown and missing ones."""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches
from pathlib import Path

from sightline.errors import UserError, some_of
from sightline.formats.prediction import Prediction

LISTED = 5
"""The most ids that a message lists."""


def match(
    predictions: Sequence[Prediction],
    expected: Sequence[tuple[str, str]],
    *,
    file: Path,
    allow_missing: bool,
) -> dict[tuple[str, str, int], Prediction]:
    """Match predictions with probes. Every probe needs an answer in every draw that the file has."""
    probes = set(expected)
    _refuse_unknown_samples(predictions, list(dict.fromkeys(sample for sample, _ in expected)), file)
    _refuse_unknown_variants(predictions, probes, file)
    matched = {(p.sample, p.variant, p.draw): p for p in predictions}
    draws = sorted({p.draw for p in predictions}) or [0]
    absent = [(*probe, draw) for probe in expected for draw in draws if (*probe, draw) not in matched]
    if absent and not allow_missing:
        raise UserError(
            f"{len(absent)} of {len(expected) * len(draws)} answers are missing: "
            + some_of([_named(*probe, draws) for probe in absent], LISTED),
            file=file,
            expected="an answer for every probe; --only-answered, which leaves the others out; "
            "or --allow-missing, which counts the missing as wrong",
        )
    return matched


def _refuse_unknown_samples(predictions: Sequence[Prediction], ids: list[str], file: Path) -> None:
    samples = set(ids)
    unknown = [p.sample for p in predictions if p.sample not in samples]
    if not unknown:
        return
    near = get_close_matches(unknown[0], ids, n=1, cutoff=0.0) or ["none"]
    raise UserError(
        f"{len(unknown)} of {len(predictions)} answers are for samples that the benchmark does not have: "
        + some_of(dict.fromkeys(unknown), LISTED),
        file=file,
        field="id",
        expected=f"ids of its {len(ids)} samples; nearest to '{unknown[0]}' is '{near[0]}'",
    )


def _refuse_unknown_variants(
    predictions: Sequence[Prediction], probes: set[tuple[str, str]], file: Path
) -> None:
    unknown = next((p for p in predictions if (p.sample, p.variant) not in probes), None)
    if unknown is None:
        return
    variants = sorted(variant for sample, variant in probes if sample == unknown.sample)
    raise UserError(
        "answers a variant that this setting does not have",
        file=file,
        record=unknown.sample,
        field="variant",
        found=unknown.variant,
        expected=" or ".join(f"'{variant}'" for variant in variants),
    )


def _named(sample: str, variant: str, draw: int, draws: Sequence[int]) -> str:
    return f"{sample} ({variant})" if len(draws) == 1 else f"{sample} ({variant}, draw {draw})"
