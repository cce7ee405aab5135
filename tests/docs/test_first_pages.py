"""The commands of the README and of the first pages run in their order, in an empty folder, as printed.

Blocks of `sh` need a network, a browser or GPUs, and are left out.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from sightline.annotation.live import Form, LiveProject
from sightline.annotation.store import AnnotationStore
from sightline.store.store import Store

ROOT = Path(__file__).resolve().parents[2]
SERVED = "```sh\nsightline serve\n```"
"""Where annotators work."""


def run_blocks(text: str, folder: Path) -> str:
    """Run the blocks of a text in one shell, and return what they print."""
    blocks = re.findall(r"^```bash\n(.*?)^```", text, re.MULTILINE | re.DOTALL)
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    ended = subprocess.run(
        ["bash", "-euo", "pipefail", "-c", "\n".join(blocks)],
        cwd=folder,
        env={**os.environ, "PATH": path},
        capture_output=True,
        text=True,
    )
    assert ended.returncode == 0, ended.stderr
    return ended.stdout


def test_the_front_page_shows_the_command_of_the_readme_and_the_output_of_the_tutorial() -> None:
    front, readme, tutorial = (
        re.findall(r"^```(?:bash|text)\n(.*?)^```", (ROOT / page).read_text(), re.MULTILINE | re.DOTALL)
        for page in ("docs/README.md", "README.md", "docs/quickstart.md")
    )
    assert (front[0] in readme, front[1] in tutorial) == (True, True)


def test_the_page_of_own_groups_ends_with_a_comparison(tmp_path: Path) -> None:
    out = run_blocks((ROOT / "docs/groups.md").read_text(), tmp_path)
    assert "no difference of acc is shown" in out.lower() or "is ahead of" in out


def test_the_page_of_collected_answers_scores_both_as_right(tmp_path: Path) -> None:
    out = run_blocks((ROOT / "docs/scoring.md").read_text(), tmp_path)
    assert re.search(r"acc +100\.0", out)


def test_the_page_of_annotators_ends_with_their_values(tmp_path: Path) -> None:
    """Three annotators accept everything where the page says that they work."""
    before, served, after = (ROOT / "docs/annotation.md").read_text().partition(SERVED)
    assert served
    run_blocks(before, tmp_path)
    store = Store.open(str(tmp_path / "sightline.db"), create=False)
    projects = AnnotationStore(store, time.time)
    live = LiveProject(projects, projects.project("blind"), time.time)
    for one in live.annotators():
        while (item := live.next_item(one)) is not None:
            form = Form(f"{one.number} {item.number}", item.number, "judge", {"verdict": ["right"]})
            live.submit(one, form)
    store.close()
    out = run_blocks(after, tmp_path)
    assert "judgements: 24 of 24" in out
    assert re.search(r"acc +100\.0", out)
    assert (tmp_path / "export/verdicts.jsonl").read_text().count("\n") == 24


@pytest.mark.slow
def test_the_readme_and_then_the_tutorial_run_from_the_quickstart_to_a_comparison(tmp_path: Path) -> None:
    """The environment is the test's own; CI runs the commands that make a new one."""
    use, develop, _ = (ROOT / "README.md").read_text().partition("## Develop")
    use, number = re.subn(r"^python3 -m venv .* && \.venv/bin/(?=sightline )", "", use, flags=re.MULTILINE)
    assert (number, develop) == (1, "## Develop")
    out = run_blocks(re.sub(r"^source .*", "", use, flags=re.MULTILINE), tmp_path)
    assert "project 1, humans" in out
    assert (tmp_path / "report.html").exists()
    tutorial = tmp_path / "tutorial"
    tutorial.mkdir()
    # The quickstart continues one that is there: its answers are not asked for again.
    (tmp_path / "quickstart").rename(tutorial / "quickstart")
    run_blocks((ROOT / "docs/quickstart.md").read_text(), tutorial)
    assert (tutorial / "both.html").exists()
