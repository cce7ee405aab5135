"""Names of sampling options: what no known server takes is refused with the nearest name."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.cli.main import main
from sightline.errors import UserError
from sightline.models.base import KNOWN, OPENAI, PROTOCOL_FIELDS, SGLANG, VLLM
from training.scenes.build import generate_codis


def test_each_name_is_in_one_list_only_and_none_is_a_field_that_sightline_sets() -> None:
    assert len(KNOWN) == len(OPENAI) + len(VLLM) + len(SGLANG)
    assert not KNOWN & set(PROTOCOL_FIELDS)


@pytest.fixture
def codis(tmp_path: Path) -> Path:
    return generate_codis(tmp_path / "codis", pairs=1)


def dry_run(data: Path, model: str, *words: str) -> int:
    return main(["run", "codis", "--data", str(data), "--model", model, "--dry-run", *words])


@pytest.mark.parametrize("model", ["http://127.0.0.1:9/v1#m", "baseline/chance", "mini"])
@pytest.mark.parametrize(
    ("name", "nearest"), [("temperatur", "temperature"), ("top-p", "top_p"), ("max_token", "max_tokens")]
)
def test_a_misspelled_name_is_refused_with_the_nearest(
    codis: Path, capsys: pytest.CaptureFixture[str], model: str, name: str, nearest: str
) -> None:
    assert dry_run(codis, model, "--gen", f"{name}=0.7") == 2
    assert f"did you mean '{nearest}'?" in capsys.readouterr().err


def test_known_names_pass_and_so_do_all_names_if_the_user_insists(codis: Path) -> None:
    known = [word for name in ("top_k", "min_p", "regex", "seed") for word in ("--gen", f"{name}=1")]
    assert dry_run(codis, "http://127.0.0.1:9/v1#m", *known) == 0
    assert dry_run(codis, "http://127.0.0.1:9/v1#m", "--gen", "temperatur=0.7", "--gen-any") == 0


def test_the_options_of_judges_are_checked_too(codis: Path, tmp_path: Path) -> None:
    options: dict[str, Any] = {"model": "baseline/chance", "data": codis, "store": tmp_path / "s.db"}
    with pytest.raises(UserError, match="--judge-gen temperatur is not a sampling option"):
        sightline.run("codis", judge="http://127.0.0.1:9/v1#judge", judge_gen={"temperatur": 0}, **options)
