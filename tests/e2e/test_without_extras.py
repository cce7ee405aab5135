"""An installation without extras: what works, and what a command says that needs one."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

PLAIN = """
import importlib.metadata as metadata, re, sys

def named(requirements):
    return {re.split(r"[\\[<>=!~;( ]", line)[0].lower().replace("-", "_") for line in requirements}

todo = named(line for line in metadata.requires("sightline") if "extra ==" not in line)
kept = {"sightline"}
while todo:
    name = todo.pop()
    kept.add(name)
    try:
        todo |= named(line for line in metadata.requires(name) or () if "extra ==" not in line) - kept
    except metadata.PackageNotFoundError:
        pass
hidden = {
    package
    for package, names in metadata.packages_distributions().items()
    if not kept & {name.lower().replace("-", "_") for name in names}
}
assert {"torch", "pandas", "jinja2", "inspect_ai"} <= hidden, hidden
assert not {"numpy", "sqlalchemy", "aiohttp"} & hidden, hidden

class Finder:
    def __init__(self, finder):
        self.finder = finder
    def find_spec(self, name, path=None, target=None):
        return None if name.partition(".")[0] in hidden else self.finder.find_spec(name, path, target)
    def __getattr__(self, name):
        return getattr(self.finder, name)

sys.meta_path[:] = [Finder(finder) for finder in sys.meta_path]
"""
"""Hides every installed package that `pip install sightline` does not install."""

IMPORT_ALL = """
import importlib, pkgutil, sightline
for module in pkgutil.walk_packages(sightline.__path__, "sightline."):
    if not module.name.endswith("__main__"):
        try:
            importlib.import_module(module.name)
        except Exception as error:
            print(module.name)
"""

NEED_AN_EXTRA = ("sightline.adapter.", "sightline.viewer.", "sightline.interop.inspect_")
NEEDS_PANDAS = "sightline.evaluation.answers_frame"

GROUPS = """\
{"group": "a", "variant": "r1", "prompt": "Is it day?", "references": ["yes"]}
{"group": "a", "variant": "r2", "prompt": "Is it daytime?", "references": ["yes"]}
"""
RUN = ["run", "groups:groups.jsonl", "--set", "embedder=none", "--store", "s.db"]


def plain(folder: Path, *words: str) -> subprocess.CompletedProcess[str]:
    script = f"{PLAIN}\nfrom sightline.cli.main import main\nsys.exit(main(sys.argv[1:]))"
    return subprocess.run([sys.executable, "-c", script, *words], cwd=folder, capture_output=True, text=True)


@pytest.mark.slow
def test_other_modules_need_no_extra() -> None:
    done = subprocess.run(
        [sys.executable, "-c", PLAIN + IMPORT_ALL], capture_output=True, text=True, check=True
    )
    failed = set(done.stdout.split())
    assert NEEDS_PANDAS in failed
    assert [name for name in sorted(failed - {NEEDS_PANDAS}) if not name.startswith(NEED_AN_EXTRA)] == []


@pytest.mark.slow
def test_runs_are_made_read_and_judged_without_an_extra(tmp_path: Path) -> None:
    (tmp_path / "groups.jsonl").write_text(GROUPS)
    for words in (
        [*RUN, "--model", "baseline/chance", "--out", "out"],
        ["score", "groups:groups.jsonl", "out/answers.jsonl", "--set", "embedder=none", "--store", "s.db"],
        ["report", "1", "--store", "s.db"],
        ["show", "1", "--store", "s.db"],
        ["compare", "1", "out", "--store", "s.db"],
        ["annotate", "new", "rate", "1", "--store", "s.db", "--name", "me"],
        ["store", "verify", "--store", "s.db"],
    ):
        done = plain(tmp_path, *words)
        assert done.returncode == 0, (words, done.stdout, done.stderr)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("words", "extra"),
    [
        (["report", "1", "--store", "s.db", "--html", "r.html"], "web"),
        (["serve", "--store", "s.db"], "web"),
        (["worker", "--model", "mini"], "local"),
        ([*RUN, "--model", "mini"], "local"),
        (["score", "groups:groups.jsonl", "answers.xlsx", "--store", "s.db"], "table"),
        (["data", "pack", "groups.jsonl", "--out", "packed"], "table"),
        (["export", "1", "--as", "inspect", "--out", "r.eval", "--store", "s.db"], "inspect"),
        (["export", "1", "--as", "hf-eval-results", "--out", "r.yaml", "--store", "s.db"], "hub"),
    ],
)
def test_a_command_names_the_extra_that_it_needs(tmp_path: Path, words: list[str], extra: str) -> None:
    (tmp_path / "groups.jsonl").write_text(GROUPS)
    (tmp_path / "answers.xlsx").write_bytes(b"PK\x03\x04")
    assert plain(tmp_path, *RUN, "--model", "baseline/chance").returncode == 0
    done = plain(tmp_path, *words)
    assert done.returncode == 2, done.stderr
    assert f"pip install 'sightline[{extra}]'" in done.stderr
