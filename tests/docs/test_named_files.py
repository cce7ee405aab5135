"""The files and folders that the docs name exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
NAMED = re.compile(r"\b((?:tests|src|perf|training|docs)/[\w./-]*(?:\.\w+|/))")

TO_BE_WRITTEN = {
    "src/sightline/benchmarks/arrows/benchmark.py",
    "src/sightline/cli/count.py",
    "src/sightline/formats/tsv_answers.py",
}
"""The files that the examples of docs/adding-a-benchmark.md and docs/extending.md let the reader write."""


@pytest.mark.parametrize("page", [*ROOT.glob("docs/*.md"), ROOT / "README.md"], ids=lambda path: path.stem)
def test_every_named_file_exists(page: Path) -> None:
    named = set(NAMED.findall(page.read_text(encoding="utf-8"))) - TO_BE_WRITTEN
    assert [name for name in sorted(named) if not (ROOT / name).exists()] == []
