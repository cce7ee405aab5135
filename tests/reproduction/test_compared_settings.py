"""`compare` on the released answers of Yi-VL-6B under two prompts (II-Bench, Table 4), against the files."""

from __future__ import annotations

import gzip
import json
from collections.abc import Mapping
from pathlib import Path

import pytest

import sightline
from sightline.evaluation.compare import compare_runs
from sightline.metrics.flips import count_changes


def responses(file: Path) -> Mapping[str, str]:
    with gzip.open(file, "rt", encoding="utf-8") as lines:
        records = [json.loads(line) for line in lines]
    return {one["id"]: one["response"] for record in records for one in record["questions"]}


@pytest.mark.slow
def test_settings_are_paired_by_question_and_identical_responses_are_counted(
    shared: Path, tmp_path: Path
) -> None:
    data = shared / "data" / "iibench"
    files = [data / "released" / f"yi-vl-6b-chat_test_{name}.jsonl.gz" for name in ("none", "cot")]
    for setting, file in zip(("none", "cot"), files, strict=True):
        sightline.score(f"iibench:{setting}", str(file), data=str(data), out=str(tmp_path / setting))
    comparison = compare_runs(None, [(tmp_path / "none", tmp_path / "cot")])
    none, cot = map(responses, files)
    (counts,) = count_changes(comparison.answers)
    assert counts.identical == sum(none[name] == cot[name] for name in none)
    assert (counts.compared, len(none)) == (1399, 1399)
    assert [side.lacking_samples for side in comparison.sides] == [0, 0]
    assert comparison.different_samples == []
