"""Registered names: the contract of a benchmark, its defaults, and the factory that makes a model."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from sightline import plugins
from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.registry import BENCHMARKS, benchmark, benchmark_class
from sightline.errors import UserError
from sightline.models.registry import model_factory
from sightline.plugins import plug_in


def test_a_benchmark_declares_what_reports_show_first() -> None:
    assert benchmark_class("codis").leading_metrics == ("acc_p", "acc_q")
    assert benchmark_class("codis").correlation == "pearson"
    assert list(benchmark_class("iibench").chance_notes) == ["accuracy"]


def test_a_benchmark_that_is_not_loaded_has_the_defaults() -> None:
    assert benchmark_class("of a plugin that is not loaded") is Benchmark


PLUGIN = """
from sightline.benchmarks.base import Benchmark


class Mine(Benchmark):
    name = "mine"
    leading_metrics = ("score",)

    def samples(self, folder, split, options):
        return []

    def probes(self, sample, options):
        yield from ()

    def metrics(self, options):
        return []


benchmarks = {"mine": Mine}
"""


def test_a_plugins_benchmark_overrides_the_defaults_it_wants_to(tmp_path: Path) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN)
    plug_in(str(tmp_path / "mine.py"))
    assert benchmark_class("mine").leading_metrics == ("score",)
    assert benchmark_class("mine").correlated_metrics == ()
    assert list(benchmark("mine").settings) == ["default"]


@pytest.mark.parametrize(
    ("change", "member", "found", "expected"),
    [
        (
            ("class Mine(Benchmark)", "class Mine"),
            None,
            "Mine",
            "derives from sightline.benchmarks.base.Benchmark",
        ),
        (('"mine"\n', '"yours"\n'), "name", "yours", "mine"),
        (("name = ", "title = "), "name", None, "str"),
        (('("score",)', '["score"]'), "leading_metrics", "['score']", "tuple[str, ...]"),
        (("def metrics", "def metric"), "metrics", None, "metrics(self, options)"),
        (
            ("(self, sample, options)", "(self, one)"),
            "probes",
            "probes(self, one)",
            "probes(self, sample, options)",
        ),
    ],
)
def test_the_contract_names_the_member_what_was_found_and_what_was_expected(
    tmp_path: Path, change: tuple[str, str], member: str | None, found: str | None, expected: str
) -> None:
    (tmp_path / "mine.py").write_text(PLUGIN.replace(*change))
    plug_in(str(tmp_path / "mine.py"))
    with pytest.raises(UserError) as refused:
        benchmark("mine")
    assert refused.value.field == member
    assert "the benchmark registered as 'mine'" in refused.value.message
    assert found is None or found in str(refused.value.found)
    assert expected in str(refused.value.expected)


def test_every_registered_benchmark_fits_the_contract() -> None:
    assert [benchmark(name).name for name in BENCHMARKS] == list(BENCHMARKS)


def test_the_longest_prefix_makes_the_model_wherever_it_is_registered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("minicpm/", "openai/ours/", "hf/ours/")
    installed = EntryPoints(EntryPoint(name, "operator:itemgetter", "sightline.models") for name in names)
    monkeypatch.setattr(plugins, "_entry_points", lambda kind: installed.select(group=f"sightline.{kind}"))
    plugins.plugged_in["models"] = {"hf/ours/too/": list, "hf/": dict}
    found = {
        "mini": "mini",
        "minicpm/v-2.6": "minicpm/",
        "openai/gpt": "openai/",
        "openai/ours/m": "openai/ours/",
        "hf/ours/m": "hf/ours/",
        "hf/ours/too/m": "hf/ours/too/",
        "hf/m": "hf/",
    }
    assert {spec: model_factory(spec)[0] for spec in found} == found
    assert model_factory("hf/m")[1] is dict


def test_the_model_at_an_address_is_found_without_a_search_of_other_packages(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.delattr(plugins, "_entry_points")
    assert model_factory("http://localhost:8000/v1#m")[0] == "http://"
    assert model_factory("https://host/v1#m")[0] == "https://"


@pytest.mark.parametrize("spec", ["minimax", "mini/", "mini/m", "alone2"])
def test_a_name_without_a_closing_slash_is_no_prefix(spec: str) -> None:
    plugins.plugged_in["models"] = {"alone": list, "mine/": list}
    assert model_factory("alone") == ("alone", list)
    with pytest.raises(UserError, match=r"unknown model.*\balone, .*mine/\.\.\.") as refused:
        model_factory(spec)
    assert spec in str(refused.value)
