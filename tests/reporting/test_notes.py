"""The notes below a table."""

from __future__ import annotations

import pytest
from msgspec.structs import replace
from tests.reporting.charts.test_curves import point

from sightline.reporting.notes import run_notes


@pytest.mark.parametrize(("benchmark", "noted"), [("codis", False), ("gone", True)])
def test_a_result_of_a_benchmark_that_is_not_installed_says_so(benchmark: str, noted: bool) -> None:
    notes = run_notes(replace(point("m", 30.0, {}).result, benchmark=benchmark))
    assert any(f"the benchmark {benchmark} is not installed" in note for note in notes) == noted
