"""What an installation holds besides Python files."""

from __future__ import annotations

import tomllib
from pathlib import Path

import sightline

ROOT = Path(sightline.__file__).parent
PROJECT = Path(__file__).parents[1] / "pyproject.toml"


def test_every_data_file_of_the_package_is_installed() -> None:
    patterns = tomllib.loads(PROJECT.read_text())["tool"]["setuptools"]["package-data"]["sightline"]
    installed = {file for pattern in patterns for file in ROOT.glob(pattern)}
    files = {file for file in ROOT.rglob("*") if file.is_file() and "__pycache__" not in file.parts}
    assert sorted(file for file in files - installed if file.suffix != ".py") == []
