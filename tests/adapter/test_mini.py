"""An adapter on the embedded model, trained for less than a minute, makes it more consistent."""

from __future__ import annotations

import json
from importlib.util import find_spec
from pathlib import Path

import pytest

if None in (find_spec("torch"), find_spec("transformers"), find_spec("sentence_transformers")):
    pytest.skip("needs the extra 'adapter'", allow_module_level=True)

from sightline.cli.main import main
from training.scenes.build import generate_mmr3


@pytest.mark.slow
def test_a_short_training_raises_con_and_loses_no_accuracy(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """A small version of MM-R3's Table 6: the paper's adapter, restyling, other images for the test."""
    learned, tested = (
        generate_mmr3(tmp_path / "train", groups=80, seed=7, held_out=False),
        generate_mmr3(tmp_path / "test", groups=40, seed=8),
    )
    words = ["adapter", "train", "--model", "mini", "--data", str(learned / "restyling"), "--quiet"]
    words += ["--test", str(tested / "restyling"), "--out", str(tmp_path / "adapter"), "--held-out", "0"]
    assert main([*words, "--rate", "3e-3", "--steps", "60", "--batch", "8", "--seed", "3"]) == 0
    run = ["run", "mmr3:restyling", "--model", "mini", "--data", str(tested), "--quiet"]
    run += ["--store", str(tmp_path / "s.db")]
    assert main(run) == main([*run, "--model-arg", f"adapter={tmp_path / 'adapter'}"]) == 0
    capsys.readouterr()
    report = ["adapter", "report", str(tmp_path / "adapter"), "--store", str(tmp_path / "s.db")]
    assert main([*report, "--format", "json"]) == 0
    effects, *_, costs = json.loads(capsys.readouterr().out)
    changes = {row["metric"]: row for row in effects["rows"]}
    assert changes["con"]["difference value"] > 4
    assert changes["agree"]["difference low"] > 0
    assert changes["acc"]["difference value"] > -3
    # Table 6, BLIP-2.
    assert changes["con"]["BLIP-2"] == "38.4 → 49.0"
    assert costs["rows"][0]["parameters"] == 823_936
