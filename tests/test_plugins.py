"""Plugins: whatever of a plugin fails is reported as its own error, with file and line."""

from __future__ import annotations

from pathlib import Path

import pytest

from sightline import plugins
from sightline.cli.main import main

PLUGIN = """
from sightline.benchmarks.base import Benchmark
from sightline.types import Metric, Term
from sightline.models.offline import ChanceBaseline
from sightline.scoring.scorer import Reading
from sightline.types import Probe, Sample, user


def terms(group):
    yield Term(1, 1)  # terms


class Mine(Benchmark):
    name = "mine"

    def samples(self, folder, split, options):
        return [Sample(id="a", question="Red?", references=("yes",))]  # samples

    def probes(self, sample, options):
        yield Probe(sample.id, "default", (user("Red?"),), "Red?", ("yes",))  # probes

    def rule(self, case):
        return Reading("right")  # rule

    def metrics(self, options):
        return [Metric(name="m", terms=terms, meaning="m", better="higher", range=(0, 100), source="-")]


class Model(ChanceBaseline):
    async def answer(self, requests):
        async for answer in super().answer(requests):
            yield answer  # answer


def make(rest, spec, options):
    return [Model(0)]  # make


benchmarks = {"mine": Mine}
models = {"my/": make}
"""


@pytest.fixture
def here(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder to work in."""
    monkeypatch.chdir(tmp_path)
    return tmp_path


def run(here: Path, source: str, capsys: pytest.CaptureFixture[str]) -> tuple[int, str]:
    (here / "mine.py").write_text(source)
    capsys.readouterr()
    status = main(["run", "mine", "--plugin", "mine.py", "--model", "my/model", "--quiet"])
    return status, capsys.readouterr().err


def line_of(source: str, text: str) -> int:
    return source[: source.index(text)].count("\n") + 1


@pytest.mark.parametrize("place", ["terms", "samples", "probes", "rule", "answer", "make"])
def test_an_exception_in_a_plugin_names_its_file_and_line(
    here: Path, capsys: pytest.CaptureFixture[str], place: str
) -> None:
    line = line_of(PLUGIN, f"  # {place}")
    lines = PLUGIN.split("\n")
    indent = lines[line - 1][: -len(lines[line - 1].lstrip())]
    lines[line - 1] = f"{indent}raise OSError('not here')\n{lines[line - 1]}"
    status, message = run(here, "\n".join(lines), capsys)
    assert status == 2
    assert f"mine.py, line {line}: the plugin fails in " in message
    assert f"{place}: OSError: not here" in message


@pytest.mark.parametrize(
    ("returned", "expected"),
    [
        ("Term(1, 1)", "Term"),
        ('Sample(id="a", question="Red?", references=("yes",))', "Sample"),
        ('Probe(sample.id, "default", (user("Red?"),), "Red?", ("yes",))', "Probe"),
        ('Reading("right")', "Reading"),
        ("[Model(0)]", "list"),
        ("Model(0)", "Model"),
    ],
)
def test_a_plugin_that_returns_something_else_is_told_what_was_expected(
    here: Path, capsys: pytest.CaptureFixture[str], returned: str, expected: str
) -> None:
    status, message = run(here, PLUGIN.replace(returned, "'text'"), capsys)
    assert status == 2
    assert "mine.py, line " in message
    assert f"returned something else than {expected} (found 'text')" in message


@pytest.mark.parametrize(
    ("source", "message"),
    [
        ("x = 1\nx = \n", "mine.py, line 2: is not valid Python"),
        ("x = 1\n\nx.y\n", "mine.py, line 3: the plugin fails: AttributeError"),
        ("x = 1\n", "mine.py: defines none of benchmarks, models, perturbations"),
        ("benchmarks = [1]\n", "mine.py, field benchmarks: is no mapping"),
        ("models = {'my/': None}\n", "mine.py, field models: is not a name with its class or function"),
        ("models = {'my/': dict}\n", "mine.py, field models: is not a name with its class or function"),
        ("models = {3: print}\n", "mine.py, field models: is not a name with its class or function"),
        ("models = {'a\\x00': print}\n", "mine.py, field models: is not a name with its class or function"),
        ("perturbations = {'a': 3}\n", "mine.py, field perturbations: is not a name with its class"),
        (PLUGIN.replace("(Benchmark)", ""), "the benchmark registered as 'mine' is not a benchmark"),
        (PLUGIN.replace("def rule(self, case)", "def rule(self, one)"), "has a method with other arguments"),
    ],
)
def test_a_plugin_that_cannot_be_used_is_refused_with_its_file(
    here: Path, capsys: pytest.CaptureFixture[str], source: str, message: str
) -> None:
    status, found = run(here, source, capsys)
    assert status == 2
    assert "mine.py" in found
    assert message in found


def test_a_run_of_a_plugin_is_reported_with_the_plugin_and_names_it_without(
    here: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert run(here, PLUGIN, capsys)[0] == 0
    monkeypatch.setattr(plugins, "plugged_in", {kind: {} for kind in plugins.plugged_in})
    assert main(["report"]) == 2
    assert f"run 1 used the benchmark 'mine' of a plugin, which is not loaded; expected --plugin {here}" in (
        capsys.readouterr().err
    )
    assert main(["report", "--plugin", "mine.py"]) == 0


def test_an_error_without_a_plugin_is_no_plugins_error() -> None:
    with pytest.raises(KeyError) as caught:
        raise KeyError("x")
    assert plugins.error_of_plugin(caught.value) is None
