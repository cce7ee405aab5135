"""What is known of an evaluation before the first call."""

from __future__ import annotations

from pathlib import Path

import sightline
from sightline.build.mini import draw_codis
from sightline.formats.drawn import MARK


def test_a_run_on_drawn_scenes_says_so_and_sets_no_paper_beside_itself(tmp_path: Path) -> None:
    data = draw_codis(tmp_path / "codis", pairs=2)
    store = str(tmp_path / "s.db")

    def run() -> sightline.Evaluation:
        return sightline.run("codis", model="baseline/chance", data=data, store=store, against="GPT-4V")

    drawn = run().result
    assert drawn.options["drawn"] is True
    assert all(metric.published is None for metric in drawn.metrics)
    assert any(note.startswith("drawn scenes, not the data of the paper") for note in drawn.notes)
    (data / MARK).unlink()
    own = run().result
    assert own.options["drawn"] is None
    assert any(metric.published for metric in own.metrics)
