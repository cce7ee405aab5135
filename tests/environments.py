"""Environments of their own for tests: of the built wheel, and of tools whose pins collide with ours."""

from __future__ import annotations

import os
import shutil
import subprocess
from pathlib import Path

PROJECT = Path(__file__).parents[1]


def python_of(version: str) -> str | None:
    """An interpreter of this version on the path or of pyenv, whose shims exist for others than they run."""
    name = f"python{version}"
    candidates = [shutil.which(name), *Path.home().glob(f".pyenv/versions/{version}.*/bin/{name}")]
    for one in candidates:
        if one and subprocess.run([one, "-c", "import venv"], capture_output=True).returncode == 0:
            return str(one)
    return None


def environment(python: str, folder: Path, *packages: str) -> str:
    """The Python of a new environment with these packages, at the pins of this project."""
    call(folder.parent, python, "-m", "venv", str(folder))
    own = str(folder / "bin/python")
    call(folder.parent, own, "-m", "pip", "install", "-q", "-c", str(PROJECT / "constraints.txt"), *packages)
    return own


def call(folder: Path, *words: str) -> str:
    plain = {name: value for name, value in os.environ.items() if name not in ("PYTHONPATH", "VIRTUAL_ENV")}
    ended = subprocess.run(words, cwd=folder, env=plain, capture_output=True, text=True)
    assert ended.returncode == 0, ended.stdout + ended.stderr
    return ended.stdout
