"""What is checked and recorded before the first call."""

from __future__ import annotations

import shutil
from pathlib import Path

import pytest

import sightline
from sightline.builders.synthetic import generate_codis, generate_contextual
from sightline.errors import UserError
from sightline.formats.synthetic_marker import MARKER
from sightline.models.base import Capabilities
from sightline.models.baseline import ChanceBaseline


def test_a_run_on_synthetic_scenes_says_so_and_shows_no_published_figures(tmp_path: Path) -> None:
    data = generate_codis(tmp_path / "codis", pairs=2)
    store = str(tmp_path / "s.db")

    def run() -> sightline.Evaluation:
        return sightline.run("codis", model="baseline/chance", data=data, store=store, against="GPT-4V")

    drawn = run().result
    assert drawn.options["synthetic"] is True
    assert all(metric.published is None for metric in drawn.metrics)
    assert any(note.startswith("the data are synthetic") for note in drawn.notes)
    (data / MARKER).unlink()
    own = run().result
    assert own.options["synthetic"] is None
    assert any(metric.published for metric in own.metrics)


@pytest.mark.parametrize("split", ["test", "val"])
def test_only_released_tables_get_published_figures(split: str, shared: Path, tmp_path: Path) -> None:
    """A table of the released length, as `build split` writes from other data, gets none."""
    table = f"contextual_{split}.csv"
    copies = {name: tmp_path / name / table for name in ("released", "own")}
    for copy in copies.values():
        copy.parent.mkdir()
        shutil.copy(shared / "data/contextual" / table, copy)
    copies["own"].write_text(copies["own"].read_text().replace("What", "Which", 1))
    found = {
        name: sightline.run(
            "contextual",
            model="baseline/chance",
            data=copy.parent,
            split=split,
            store=str(tmp_path / "s.db"),
            against="GPT-4V",
        ).result
        for name, copy in copies.items()
    }
    assert found["released"].options["other_data"] is None
    assert any(metric.published for metric in found["released"].metrics)
    assert found["own"].options["other_data"] is True
    assert not any(metric.published for metric in found["own"].metrics)
    assert "the data differ from those of the paper, so published figures are not shown" in found["own"].notes


def test_a_judge_that_takes_no_images_is_refused_if_its_prompt_holds_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = generate_contextual(tmp_path / "contextual", questions=0, val=2)
    monkeypatch.setattr(ChanceBaseline, "capabilities", Capabilities(images=False))
    (tmp_path / "a.jsonl").write_text('{"id": "images/val-001.png", "response": "left"}\n')
    with pytest.raises(UserError, match="the judge baseline/chance takes no images"):
        sightline.score(
            "contextual",
            tmp_path / "a.jsonl",
            data=data,
            split="val",
            judge="baseline/chance",
            set={"judge_image": True},
        )
