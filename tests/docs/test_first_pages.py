"""The commands of the first pages run in their order, in an empty folder, without a model."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

DOCS = Path(__file__).resolve().parents[2] / "docs"


@pytest.mark.parametrize("page", ["groups.md", "scoring.md"])
def test_the_commands_of_the_page_run_as_they_are_printed(page: str, tmp_path: Path) -> None:
    blocks = re.findall(r"^```bash\n(.*?)^```", (DOCS / page).read_text(), re.MULTILINE | re.DOTALL)
    assert len(blocks) >= 4
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(blocks)],
        cwd=tmp_path,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    assert "acc" in ended.stdout
    if page == "groups.md":
        assert "no difference of acc is shown" in ended.stdout.lower() or "is ahead of" in ended.stdout
