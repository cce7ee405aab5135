"""Commands on a SQLite store load no SQLAlchemy: its import takes a tenth of the time of a small run."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sightline.builders.scenes.build import generate_codis
from sightline.formats.groups import GroupLine, write_groups

COMMAND = (
    "import sys; from sightline.cli.main import main; assert main(sys.argv[1:]) == 0; "
    "print(sorted(name for name in sys.modules if name.partition('.')[0] == 'sqlalchemy'))"
)
OPTIONS = ("--set", "embedder=none", "--quiet", "--force")
RUN = ("run", "groups:g.jsonl", "--model", "baseline/chance", "--out", "out")


def _loaded(*words: str) -> str:
    """The modules of SQLAlchemy that a command has loaded at its end."""
    done = subprocess.run(
        [sys.executable, "-c", COMMAND, *words], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return done.stdout.splitlines()[-1]


@pytest.fixture(autouse=True)
def groups(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    lines = [
        GroupLine(f"g{n // 3}", f"v{n % 3}", prompt=f"Is it {n} or 3?", references=("3",)) for n in range(9)
    ]
    write_groups(lines, Path("g.jsonl"))


@pytest.mark.slow
@pytest.mark.parametrize("store", ["s.db", "sqlite:///s.db", "sqlite:///:memory:"])
def test_a_run_loads_no_sqlalchemy_whether_its_store_is_new_or_has_its_result(store: str) -> None:
    for _ in range(2):
        assert _loaded(*RUN, "--store", store, *OPTIONS) == "[]"


@pytest.mark.slow
def test_a_run_in_an_existing_store_loads_no_sqlalchemy() -> None:
    assert _loaded(*RUN, "--store", "s.db", *OPTIONS) == "[]"
    assert _loaded(*RUN, "--store", "s.db", "--seed", "1", *OPTIONS) == "[]"


@pytest.mark.slow
def test_a_sweep_loads_no_sqlalchemy() -> None:
    generate_codis(Path("codis"), pairs=3)
    task = ("codis", "--data", "codis", "--model", "baseline/chance", "--set", "cot=on,off")
    assert _loaded("sweep", *task, "--out", "out", "--store", "s.db", "--quiet") == "[]"


@pytest.mark.slow
def test_scoring_answers_and_reporting_load_no_sqlalchemy() -> None:
    assert _loaded(*RUN, "--store", "s.db", *OPTIONS) == "[]"
    task = ("groups:g.jsonl", "out/answers.jsonl")
    assert _loaded("score", *task, "--out", "scored", "--store", "s.db", *OPTIONS) == "[]"
    assert _loaded("report", "1", "--store", "s.db") == "[]"
