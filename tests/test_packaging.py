"""What an installation holds besides Python files, and that wheel and sdist install and run."""

from __future__ import annotations

import shutil
import subprocess
import sys
import tarfile
import tomllib
import zipfile
from pathlib import Path

import pytest
from tests.environments import call, environment, python_of

import sightline

ROOT = Path(sightline.__file__).parent
PROJECT = Path(__file__).parents[1]
BUILTIN_SCHEMAS = {
    "CITATION.cff": "citation-file-format",
    "action.yml": "github-actions",
    ".github/workflows/*.yml": "github-workflows",
    ".github/ISSUE_TEMPLATE/*.yml": "github-issue-forms",
}


def test_every_data_file_of_the_package_is_installed() -> None:
    patterns = tomllib.loads((PROJECT / "pyproject.toml").read_text())
    patterns = patterns["tool"]["setuptools"]["package-data"]["sightline"]
    installed = {file for pattern in patterns for file in ROOT.glob(pattern)}
    files = {file for file in ROOT.rglob("*") if file.is_file() and "__pycache__" not in file.parts}
    assert sorted(file for file in files - installed if file.suffix != ".py") == []


@pytest.mark.parametrize("pattern", BUILTIN_SCHEMAS)
def test_files_for_github_are_valid_by_its_schemas(pattern: str) -> None:
    files = list(map(str, PROJECT.glob(pattern)))
    words = ["-m", "check_jsonschema", "--builtin-schema", f"vendor.{BUILTIN_SCHEMAS[pattern]}"]
    checked = subprocess.run([sys.executable, *words, *files], capture_output=True, text=True)
    assert checked.returncode == 0, checked.stdout + checked.stderr


@pytest.fixture(scope="module")
def built(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A folder with the sdist of this tree, and the wheel that is built from it, checked by twine."""
    folder = tmp_path_factory.mktemp("built")
    tree = folder / "tree"
    tree.mkdir()
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(PROJECT / name, tree)
    shutil.copytree(PROJECT / "src", tree / "src", ignore=shutil.ignore_patterns("*.egg-info", "__pycache__"))
    python = environment(sys.executable, folder / "tools", "build", "twine")
    call(folder, python, "-m", "build", "--outdir", "dist", "tree")
    dist = folder / "dist"
    call(folder, python, "-m", "twine", "check", "--strict", *map(str, dist.iterdir()))
    return dist


@pytest.mark.slow
@pytest.mark.timeout(900)  # pip installs from the registry
def test_the_wheel_from_the_sdist_holds_the_files_of_the_package(built: Path) -> None:
    files = {file for file in ROOT.rglob("*") if file.is_file() and "__pycache__" not in file.parts}
    pages = {f"sightline/docs/{page.name}" for page in PROJECT.glob("docs/*.md")}
    names = pages | {str(file.relative_to(ROOT.parent)) for file in files}
    (wheel,), (sdist,) = built.glob("*.whl"), built.glob("*.tar.gz")
    assert {name for name in zipfile.ZipFile(wheel).namelist() if ".dist-info/" not in name} == names
    with tarfile.open(sdist) as archive:
        packed = {name.partition("/src/")[2] for name in archive.getnames()}
    assert names <= packed


@pytest.mark.slow
@pytest.mark.timeout(900)
@pytest.mark.parametrize("which", ["oldest", "newest"])
def test_the_wheel_alone_runs_the_quickstart_in_a_newenvironment(
    built: Path, tmp_path: Path, which: str
) -> None:
    found = [python for python in map(python_of, ("3.11", "3.12", "3.13", "3.14")) if python]
    if which == "newest" and len(found) < 2:
        pytest.skip("a second Python of 3.11 to 3.14 is not installed")
    python = found[0] if which == "oldest" else found[-1]
    (wheel,) = built.glob("*.whl")
    own = environment(python, tmp_path / "new", str(wheel))
    command = str(Path(own).with_name("sightline"))
    page = PROJECT / "docs/quickstart.md"
    assert call(tmp_path, command, "docs", "quickstart") == page.read_text()
    call(tmp_path, command, "quickstart")
    run = {file.parent.name.partition("-")[0] for file in tmp_path.glob("quickstart/results/*/metrics.json")}
    assert run == {"codis", "contextual", "iibench"}  # MM-R3 needs the extra embedder
