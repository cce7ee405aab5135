"""perf/size.py counts what stands in a checkout."""

from __future__ import annotations

from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]

ARROWS = """
ORDER = ["cli", "web.pages", "web", "engine"]
TOP = ("api",)
REGISTERED_ABOVE = {("registry.py", "engine"): "models by name"}
"""
UPWARD = """
import sightline.cli
from sightline import api


def late() -> None:
    from sightline.web.pages import one, two
    from sightline.web import shared


NAMED = "sightline.web.pages:one"
"""
SOURCES = {
    "tests/test_arrows.py": ARROWS,
    "src/sightline/__init__.py": "from sightline.api import run\n",
    "src/sightline/api.py": '"""The API."""\n\n\nclass Run:\n    """One run.\n\n    Many words.\n    """\n',
    "src/sightline/registry.py": 'MODELS = {"mini": "sightline.engine.core:Mini"}\n',
    "src/sightline/cli/main.py": "from sightline.web.pages.one import show\n",
    "src/sightline/web/shared.py": "X = 'no docstring'\n",
    "src/sightline/web/pages/one.py": "from sightline.web.shared import X\n",
    "src/sightline/web/templates/page.html": "<p>\n",
    "src/sightline/engine/core.py": UPWARD,
    "src/sightline/engine/prompts.toml": "a = 1\nb = 2\n",
}


@pytest.fixture
def tree(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.syspath_prepend(str(ROOT / "perf"))
    for name, text in SOURCES.items():
        file = tmp_path / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text)
    return tmp_path


def test_lines_files_docstrings_and_packages_are_counted(tree: Path) -> None:
    from size import FolderSize, folder_size

    lines = sum(
        text.count("\n") for name, text in SOURCES.items() if name.startswith("src") and name.endswith(".py")
    )
    assert folder_size(tree / "src") == FolderSize(
        lines=lines, data_lines=2, files=7, docstring_lines=1 + 4, packages=5, root_modules=3
    )
    assert folder_size(tree / "findings") == FolderSize()


def test_imports_of_a_higher_package_are_found_in_functions_and_strings_too(tree: Path) -> None:
    from size import arrows_up

    found = [(arrow.file, arrow.package, arrow.imported) for arrow in arrows_up(tree)]
    upward = ["cli", "api", "web.pages", "web", "web.pages"]
    assert found == [("engine/core.py", "engine", name) for name in upward]
