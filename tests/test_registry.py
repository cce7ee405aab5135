"""What reports know of a benchmark is found by its name, or is empty."""

from __future__ import annotations

from pathlib import Path

import pytest

from sightline import registry
from sightline.benchmarks.base import Facts
from sightline.registry import facts, plug_in


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
