"""The released prediction format of each benchmark, written from outcomes."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sightline.benchmarks.codis.formats import write_codis
from sightline.benchmarks.contextual.formats import write_judgements, write_predictions
from sightline.benchmarks.iibench.formats import write_iibench, write_iibench_submission
from sightline.formats.files import json_records, read_bytes
from sightline.types import Outcome

RELEASED = ("predictions.json", "judgments.json", "predictions.jsonl", "submission.jsonl")
"""The files that `write_released` may write."""


def write_released(
    benchmark: str, model: str, outcomes: Sequence[Outcome], folder: Path, data: Path | None, split: str
) -> list[Path]:
    """Write what the benchmark's own scripts read; returns the files.

    CODIS: predictions.json. ConTextual: predictions.json for the test leaderboard and, where any answer was
    held against a reference, judgments.json for that of val. II-Bench: predictions.jsonl in the released
    layout and submission.jsonl for the challenge, both where the data folder is known. A benchmark without a
    released format: nothing.
    """
    if benchmark == "codis":
        write_codis(outcomes, folder / "predictions.json")
        return [folder / "predictions.json"]
    if benchmark == "contextual":
        return _contextual(outcomes, model, folder)
    if benchmark == "iibench" and data is not None:
        return _iibench(outcomes, folder, data, split)
    return []


def iibench_records(data: Path, split: str) -> list[dict[str, Any]]:
    """The records of a split as II-Bench released them; `data` is their folder, or the one above.

    UserError where there is no such file.
    """
    place = data if (data / f"{split}.json").is_file() else data / "iibench"
    path = place / f"{split}.json"
    return [record for _, record in json_records(read_bytes(path), path)]


def released_options(records: Sequence[dict[str, Any]]) -> dict[str, list[str]]:
    """The options of each question, by its id, in the released order."""
    return {question["id"]: question["options"] for record in records for question in record["questions"]}


def _contextual(outcomes: Sequence[Outcome], model: str, folder: Path) -> list[Path]:
    predictions, judgements = folder / "predictions.json", folder / "judgments.json"
    write_predictions(outcomes, model, predictions)
    if not any(outcome.scored for outcome in outcomes):
        return [predictions]
    write_judgements(outcomes, model, judgements)
    return [predictions, judgements]


def _iibench(outcomes: Sequence[Outcome], folder: Path, data: Path, split: str) -> list[Path]:
    records = iibench_records(data, split)
    write_iibench(outcomes, records, folder / "predictions.jsonl")
    write_iibench_submission(outcomes, folder / "submission.jsonl", released_options(records))
    return [folder / "predictions.jsonl", folder / "submission.jsonl"]
