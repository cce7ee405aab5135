"""What is checked and recorded before the first call."""

from __future__ import annotations

import shutil
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

import sightline
from sightline.benchmarks.codis.benchmark import Codis
from sightline.errors import UserError
from sightline.formats.files import MARKER
from sightline.models.base import Capabilities
from sightline.models.offline import ChanceBaseline
from sightline.scoring.scorer import ModelScorer, Reading, Scorer
from sightline.types import Case, Probe, Sample, user
from training.scenes.build import generate_codis, generate_contextual


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
    assert all(metric.published is None for metric in own.metrics)


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
    assert (
        "the data are not verifiably those that the paper released, so published figures are not shown"
        in found["own"].notes
    )


def test_a_judge_that_takes_no_images_is_refused_if_its_prompt_holds_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = generate_contextual(tmp_path / "contextual", questions=0, val=2)
    monkeypatch.setattr(ChanceBaseline, "capabilities", Capabilities(images=False))
    (tmp_path / "a.jsonl").write_text('{"id": "images/val-001.png", "response": "left"}\n')
    with pytest.raises(UserError, match="the judge baseline/chance does not accept images"):
        sightline.score(
            "contextual",
            tmp_path / "a.jsonl",
            data=data,
            split="val",
            judge="baseline/chance",
            set={"judge_image": True},
        )


def comparing_judge(monkeypatch: pytest.MonkeyPatch, tmp_path: Path, **needs: Any) -> dict[str, Any]:
    """Gives CODIS a judge model for `same_meaning` alone; returns the options of `score`."""
    own = Codis.scorers

    def scorers(self: Codis, options: Mapping[str, Any]) -> Sequence[Scorer]:
        rules = [scorer for scorer in own(self, options) if not isinstance(scorer, ModelScorer)]
        return [*rules, ModelScorer("same", "same_meaning", prompt, lambda *_: Reading("undecided"), **needs)]

    def prompt(case: Case) -> tuple[Any, ...]:
        return (user("same? " + " / ".join(case.texts)),)

    monkeypatch.setattr(Codis, "scorers", scorers)
    (tmp_path / "a.jsonl").write_text(
        '{"id": "000", "variant": "context_1", "response": "left"}\n'
        '{"id": "000", "variant": "context_2", "response": "right"}\n'
    )
    data = generate_codis(tmp_path / "codis", pairs=1)
    return {"data": data, "judge": ["rules", "baseline/chance"], "store": str(tmp_path / "s.db")}


def test_a_judge_of_any_question_is_asked_as_often_as_its_scorer_states(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = comparing_judge(monkeypatch, tmp_path, max_attempts=3)
    scored = sightline.score("codis", tmp_path / "a.jsonl", **options)
    assert scored.judge_counts is not None
    assert scored.judge_counts.sent == 3


def test_a_judge_of_any_question_that_needs_images_must_take_them(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    options = comparing_judge(monkeypatch, tmp_path, needs_images=True)
    monkeypatch.setattr(ChanceBaseline, "capabilities", Capabilities(images=False))
    with pytest.raises(UserError, match="the judge baseline/chance does not accept images"):
        sightline.score("codis", tmp_path / "a.jsonl", **options)


class _Repeats(Codis):
    """CODIS with the same id, or the same variant, twice."""

    def __init__(self, what: str) -> None:
        self._what = what

    def samples(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> Sequence[Sample]:
        samples = super().samples(folder, split, options)
        return [*samples, samples[0]] if self._what == "id" else samples

    def probes(self, sample: Sample, options: Mapping[str, Any]) -> Iterator[Probe]:
        for probe in super().probes(sample, options):
            yield replace(probe, variant="context_1") if self._what == "variant" else probe


@pytest.mark.parametrize("what", ["id", "variant"])
def test_samples_and_probes_with_equal_names_are_refused(
    what: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    data = generate_codis(tmp_path / "codis", pairs=2)
    monkeypatch.setattr("sightline.evaluation.prepare.find_benchmark", lambda name: _Repeats(what))
    with pytest.raises(UserError, match=f"the same {what}"):
        sightline.run("codis", model="baseline/chance", data=data, store=str(tmp_path / "s.db"))
