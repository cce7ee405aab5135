"""Things by their names: what reports know of a benchmark, and which factory makes a model."""

from __future__ import annotations

from importlib.metadata import EntryPoint, EntryPoints
from pathlib import Path

import pytest

from sightline import registry
from sightline.benchmarks.base import Facts
from sightline.errors import UserError
from sightline.registry import facts, model_factory, plug_in


@pytest.fixture
def plugged(monkeypatch: pytest.MonkeyPatch) -> None:
    """What a test plugs in goes when it ends."""
    monkeypatch.setattr(registry, "_plugged", {kind: {} for kind in registry._plugged})


def test_a_benchmark_carries_what_reports_know_of_it() -> None:
    assert facts("codis").leading == ("acc_p", "acc_q")
    assert facts("codis").coefficient == "pearson"
    assert list(facts("iibench").chance) == ["accuracy"]


def test_of_a_benchmark_that_is_not_loaded_nothing_is_known() -> None:
    assert facts("of a plugin that is not loaded") == Facts()


@pytest.mark.usefixtures("plugged")
def test_a_plugins_benchmark_may_name_facts_or_none(tmp_path: Path) -> None:
    file = tmp_path / "mine.py"
    file.write_text(
        "from sightline.benchmarks.base import Facts\n\n\n"
        "class Bare:\n    name = 'bare'\n\n\n"
        "class Telling:\n    name = 'telling'\n    facts = Facts(leading=('score',))\n\n\n"
        "benchmarks = {'bare': Bare, 'telling': Telling}\n"
    )
    plug_in(str(file))
    assert facts("bare") == Facts()
    assert facts("telling").leading == ("score",)


@pytest.mark.usefixtures("plugged")
def test_the_longest_prefix_makes_the_model_wherever_it_is_registered(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    names = ("minicpm/", "openai/ours/", "hf/ours/")
    installed = EntryPoints(EntryPoint(name, "operator:itemgetter", "sightline.models") for name in names)
    monkeypatch.setattr("importlib.metadata.entry_points", lambda group: installed.select(group=group))
    registry._plugged["models"] = {"hf/ours/too/": list, "hf/": dict}
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


@pytest.mark.usefixtures("plugged")
@pytest.mark.parametrize("spec", ["minimax", "mini/", "mini/m", "alone2"])
def test_a_name_without_a_closing_slash_is_no_prefix(spec: str) -> None:
    registry._plugged["models"] = {"alone": list, "mine/": list}
    assert model_factory("alone") == ("alone", list)
    with pytest.raises(UserError, match=r"unknown model.*\balone, .*mine/\.\.\.") as refused:
        model_factory(spec)
    assert spec in str(refused.value)
