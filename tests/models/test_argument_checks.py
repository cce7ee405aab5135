"""Values that an option cannot have: which, of which option, and what it can be."""

from __future__ import annotations

from typing import Any

import pytest

from sightline.errors import UserError
from sightline.models.base import read_values
from sightline.models.local.load import LocalArgs, Sampling
from sightline.models.openai import EndpointArgs


@pytest.mark.parametrize(
    ("kind", "values", "message"),
    [
        (
            LocalArgs,
            {"batch": 4, "dtype": "fp16"},
            "-x dtype cannot be 'fp16', did you mean 'float16'?;"
            " expected one of auto, bfloat16, float16, float32",
        ),
        (
            LocalArgs,
            {"device": "gpu"},
            "-x device cannot be 'gpu'; expected auto, cpu, mps, cuda or cuda:NUMBER",
        ),
        (LocalArgs, {"batch": 0}, "-x batch cannot be 0; expected a whole number, 1 or more"),
        (LocalArgs, {"batch": "all"}, "-x batch cannot be 'all'; expected a whole number, 1 or more"),
        (
            LocalArgs,
            {"trust_remote_code": "yes"},
            "-x trust_remote_code cannot be 'yes'; expected true or false",
        ),
        (LocalArgs, {"revision": 3}, "-x revision cannot be 3; expected text"),
        (Sampling, {"top_p": 2}, "-x top_p cannot be 2; expected a number, more than 0, 1 at most"),
        (EndpointArgs, {"detail": "max"}, "-x detail cannot be 'max'; expected one of auto, high, low"),
    ],
)
def test_the_option_its_value_and_what_it_can_be_are_named(
    kind: type[Any], values: dict[str, Any], message: str
) -> None:
    with pytest.raises(UserError) as error:
        read_values("-x", values, kind)
    assert str(error.value) == message


def test_values_that_can_be_are_taken() -> None:
    assert read_values("-x", {"device": "cuda:1", "revision": None}, LocalArgs).device == "cuda:1"
