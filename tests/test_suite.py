"""The suite itself: no folder with tests is passed over."""

from __future__ import annotations

from fnmatch import fnmatch
from pathlib import Path

import pytest


def test_no_folder_of_tests_or_of_code_is_passed_over(pytestconfig: pytest.Config) -> None:
    """pytest by itself does not look into folders called `build`."""
    root = pytestconfig.rootpath
    passed_over = pytestconfig.getini("norecursedirs")
    folders = {part for file in _files(root) for part in file.relative_to(root).parts[:-1]}
    assert "build" in folders
    assert not [name for name in folders if any(fnmatch(name, pattern) for pattern in passed_over)]


def _files(root: Path) -> list[Path]:
    return [*root.joinpath("tests").rglob("test_*.py"), *root.joinpath("src").rglob("*.py")]
