"""`sightline list` names the options that a user may set, and no others."""

from __future__ import annotations

import json

import pytest

from sightline.cli.main import main


@pytest.mark.parametrize(
    ("benchmark", "internal", "listed"),
    [
        ("iibench", "variant", "options"),
        ("contextual", "variant", "answers"),
        ("groups", "answers", "file"),
    ],
)
def test_an_internal_option_is_not_listed(
    benchmark: str, internal: str, listed: str, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["list", benchmark, "--json"]) == 0
    ((_, declared),) = _benchmarks(capsys.readouterr().out)
    assert internal not in declared["options"]
    assert listed in declared["options"]


def _benchmarks(printed: str) -> list[tuple[str, dict[str, dict[str, str]]]]:
    return [(entry["name"], entry) for entry in json.loads(printed)]
