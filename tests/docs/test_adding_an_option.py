"""The example of docs/adding-an-option.md adds an option to every interface by changing two files."""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

import sightline
from sightline.builders.synthetic import generate_codis

PAGE = Path(__file__).resolve().parents[2] / "docs" / "adding-an-option.md"


@pytest.fixture
def changed(tmp_path: Path) -> Path:
    """A copy of the package with the changes of the page; the folder for PYTHONPATH."""
    shutil.copytree(Path(sightline.__file__).parent, tmp_path / "src" / "sightline")
    blocks = re.findall(r"```diff\n--- a/(.*?)\n.*?\n(@@.*?)```", PAGE.read_text(), re.DOTALL)
    assert len(blocks) == 2
    for file, block in blocks:
        path = tmp_path / file
        text = path.read_text()
        for hunk in block.split("@@\n")[1:]:
            lines = hunk.splitlines(keepends=True)
            before = "".join(line[1:] for line in lines if not line.startswith("+"))
            assert text.count(before) == 1, before
            text = text.replace(before, "".join(line[1:] for line in lines if not line.startswith("-")))
        path.write_text(text)
    return tmp_path / "src"


def test_a_new_option_of_run_touches_two_files(changed: Path, tmp_path: Path) -> None:
    data = generate_codis(tmp_path / "codis", pairs=2)

    def call(*words: str) -> str:
        done = subprocess.run(
            [sys.executable, *words],
            capture_output=True,
            text=True,
            env={**os.environ, "PYTHONPATH": str(changed)},
            cwd=tmp_path,
        )
        return done.stdout + done.stderr

    command = ("-m", "sightline", "run", "codis", "--model", "baseline/chance", "--data", str(data))
    assert "run 1:" in call(*command, "--max-tokens", "7")
    # The sampling options are checked where they are combined.
    assert "--gen max_tokens=0 is out of range" in call(*command, "--max-tokens", "0")
    assert "--max-tokens N" in call("-m", "sightline", "sweep", "--help")
    code = "import sightline; sightline.run('codis', model='baseline/chance', max_tokens='7')"
    assert "wrong value of the option max_tokens (found '7'); expected int" in call("-c", code)
