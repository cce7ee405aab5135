"""The pinned digests are those of the released records; only these get published figures."""

from __future__ import annotations

import json
import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.benchmarks.base import defaults
from sightline.benchmarks.codis.benchmark import Codis
from sightline.benchmarks.contextual.benchmark import Contextual
from sightline.benchmarks.iibench.benchmark import IIBench
from sightline.benchmarks.mmr3.benchmark import MMR3, assigned_values
from sightline.benchmarks.released import pinned_digests, record_digest
from sightline.formats.groups import GroupLine, by_group
from sightline.types import Result

SPLITS = (
    (Codis, "codis", ("test",)),
    (IIBench, "iibench", ("test", "dev")),
    (Contextual, "contextual", ("test", "val")),
)

NOTE = "the data are not verifiably those that the paper released, so published figures are not shown"


def released(data: Path, kind: Any, splits: tuple[str, ...]) -> set[str]:
    benchmark = kind()
    options = {**defaults(benchmark, next(iter(benchmark.settings.values()))), "seed": 0}
    return {
        record_digest(name, record)
        for split in splits
        for name, record in benchmark.released_records(data, split, options).items()
    }


@pytest.mark.parametrize(("kind", "name", "splits"), SPLITS)
def test_the_pinned_digests_are_those_of_the_released_records(
    shared: Path, kind: Any, name: str, splits: tuple[str, ...]
) -> None:
    assert pinned_digests(kind.released_digests) == released(shared / "data" / name, kind, splits)


def test_the_pinned_digests_of_mmr3_are_those_of_the_authors_label_files(shared: Path) -> None:
    folder = shared / "data" / "mmr3" / "author_labels"
    read = {file.stem: json.loads(file.read_bytes()) for file in folder.glob("*.json")}
    places = {**read["indoor_labels"], **read["landmarks_labels"]}
    restyled = [GroupLine(stem, "mosaic", references=(place,)) for stem, place in places.items()]
    masked = [
        GroupLine(
            key.partition("_")[0],
            f"m{key.partition('_')[2]}",
            references=(read["coco_category_dic"][str(read["labels"][key])],),
            labels={"colour": one["colors"], "lines": str(one["lines"]), "shape": one["draw_type"]},
        )
        for key, one in read["types"].items()
    ]
    digests = {
        record_digest(name, record)
        for lines, task in ((restyled, "restyling"), (masked, "context"))
        for name, record in assigned_values(by_group(lines), task).items()
    }
    assert MMR3.released_digests is not None
    assert pinned_digests(MMR3.released_digests) == digests
    assert assigned_values(by_group(restyled), "rephrasing") == {}


def results(task: str, data: Path, tmp_path: Path, **more: Any) -> Result:
    store = str(tmp_path / "s.db")
    return sightline.run(task, model="baseline/chance", data=data, store=store, **more).result


def change(path: Path, edit: Callable[[Any], None]) -> None:
    content = json.loads(path.read_bytes())
    edit(content)
    path.write_text(json.dumps(content))


def new_text(records: Any) -> None:
    records[3]["questions"][0]["question"] += " Say why."


def new_option(records: Any) -> None:
    records[3]["questions"][0]["options"][2] = "another one"


def new_label(records: Any) -> None:
    records[3]["meta_data"]["domain"] = "Art" if records[3]["meta_data"]["domain"] != "Art" else "Life"


def new_path(records: Any) -> None:
    records[3]["local_path"] = "images/another.png"


def new_order(records: Any) -> None:
    records.reverse()


@pytest.mark.parametrize(
    ("edit", "theirs"),
    [(new_text, False), (new_option, False), (new_label, False), (new_path, True), (new_order, True)],
)
def test_one_changed_record_is_other_data(
    shared: Path, tmp_path: Path, edit: Callable[[Any], None], theirs: bool
) -> None:
    shutil.copy(shared / "data" / "iibench" / "dev.json", tmp_path)
    change(tmp_path / "dev.json", edit)
    result = results("iibench:none", tmp_path, tmp_path, split="dev", against="GPT-4o")
    assert any(metric.published for metric in result.metrics) == theirs
    assert result.options["other_data"] == (None if theirs else True)
    assert (NOTE in result.notes) != theirs


def test_a_part_of_the_released_records_is_released_data_and_its_size_is_shown(
    shared: Path, tmp_path: Path
) -> None:
    data = shared / "data" / "codis"
    result = results("codis", data, tmp_path, limit=7, shuffle=True, against="GPT-4V")
    published = [value for metric in result.metrics for value in metric.published or ()]
    assert published
    assert not any(value.comparable for value in published)
    assert any("7 pairs here, 353 in the paper" in (value.note or "") for value in published)


def test_the_answer_key_of_a_user_does_not_make_other_data(shared: Path, tmp_path: Path) -> None:
    key = tmp_path / "key.json"
    key.write_text(json.dumps({f"test-{n}": "A" for n in range(1, 1400)}))
    data = shared / "data" / "iibench"
    result = results("iibench:none", data, tmp_path, limit=5, set={"answers": str(key)}, against="GPT-4o")
    assert any(metric.published for metric in result.metrics if metric.metric == "accuracy")


def test_answers_without_a_data_folder_are_scored_and_have_no_released_record(tmp_path: Path) -> None:
    line = {"group": "g", "variant": "candy", "response": "a beach", "references": ["beach"]}
    file = tmp_path / "a.jsonl"
    file.write_text("\n".join(json.dumps({**line, "variant": variant}) for variant in ("candy", "udnie")))
    result = sightline.score("mmr3:restyling", file, set={"embedder": "none"}, against="GPT-4o").result
    assert result.options["other_data"] is True
    assert all(metric.published is None for metric in result.metrics)
