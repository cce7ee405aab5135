"""Options that are sent: what no server can take is found before the first call."""

from __future__ import annotations

from typing import Any

import pytest

from sightline.errors import UserError
from sightline.plan.effective import effective, setting_of
from sightline.plan.spec import Spec
from sightline.registry import benchmark


def sampling(**gen: Any) -> dict[str, Any]:
    codis = benchmark("codis")
    return dict(effective(codis, setting_of(codis, "codis"), Spec(task="codis", gen=gen)).sampling)


@pytest.mark.parametrize(
    "gen",
    [
        {"temperature": "hot"},
        {"temperature": -1},
        {"temperature": float("nan")},
        {"temperature": float("inf")},
        {"temperature": True},
        {"top_p": 1.5},
        {"max_tokens": 0},
    ],
)
def test_values_that_no_server_can_take_are_refused(gen: dict[str, Any]) -> None:
    with pytest.raises(UserError, match=rf"--gen {next(iter(gen))}=.*expected a number from"):
        sampling(**gen)


def test_null_leaves_an_option_out_and_unknown_ones_pass() -> None:
    assert sampling(temperature=None, top_k=5, top_p=0.9) == {"max_tokens": 1024, "top_k": 5, "top_p": 0.9}
