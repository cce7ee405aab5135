"""Which requests go together, and what becomes of their inputs."""

from __future__ import annotations

from importlib import import_module
from importlib.util import find_spec
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.models.local.encode import Encoded, Prompt, collate, compatible_batches, similar_chunks
from sightline.models.local.load import Sampling
from sightline.types import ImageFile, ImageRef, Request, user

pytestmark = pytest.mark.skipif(
    None in (find_spec("torch"), find_spec("transformers")), reason="needs the extra 'local'"
)


def _request(image: int, text: str, **sampling: Any) -> Request:
    name = f"{image}.png"
    file = ImageFile(name, f"{image:064}", "PNG", 8 + image % 2, 8, (1, 1))
    return Request("key", (user(ImageRef(name), text),), sampling, {name: file})


@given(
    st.lists(st.tuples(st.integers(0, 4), st.integers(0, 30), st.integers(1, 2)), max_size=40),
    st.integers(1, 9),
)
def test_every_request_is_in_one_chunk_and_those_that_share_a_image_are_neighbours(
    drawn: list[tuple[int, int, int]], size: int
) -> None:
    requests = [_request(image, "x" * length, max_tokens=tokens) for image, length, tokens in drawn]
    found = list(similar_chunks(requests, size))
    order = [place for chunk in found for place in chunk]
    assert sorted(order) == list(range(len(requests)))
    assert all(len(chunk) <= size for chunk in found)
    shown = [(drawn[place][2], drawn[place][0]) for place in order]
    changes = sum(one != other for one, other in pairwise(shown))
    assert changes == max(0, len(set(shown)) - 1)


def _encoded(
    tokens: int, *, limit: int = 8, side: int = 4, choices: tuple[str, ...] = (), **more: Any
) -> Encoded:
    torch: Any = import_module("torch")
    inputs = {
        "input_ids": torch.full((1, tokens), 7),
        "attention_mask": torch.ones(1, tokens, dtype=torch.long),
        "pixel_values": torch.zeros(1, 3, side, side),
        **more,
    }
    request = Request("key", (user("a"),), {}, choices=choices)
    return Encoded(request, Prompt("a", ()), inputs, tokens, limit, Sampling())


def test_only_inputs_that_fit_together_share_a_batch() -> None:
    everything = [
        _encoded(3), _encoded(5), _encoded(3, side=6), _encoded(3, limit=4), _encoded(3, choices=("a",)),
        _encoded(5, choices=("b",)), _encoded(3, choices=("c",)),
    ]  # fmt: skip
    places = [[place for place, _ in batch] for batch in compatible_batches(enumerate(everything))]
    assert places == [[0, 1], [2], [3], [4, 6], [5]]


def test_prompts_are_filled_up_on_their_left_and_the_q_former_s_on_their_right() -> None:
    torch: Any = import_module("torch")
    former = {"qformer_input_ids": torch.full((1, 2), 5)}, {"qformer_input_ids": torch.full((1, 3), 5)}
    inputs = collate([_encoded(3, **former[0]), _encoded(1, **former[1])], pad=9)
    assert inputs["input_ids"].tolist() == [[7, 7, 7], [9, 9, 7]]
    assert inputs["attention_mask"].tolist() == [[1, 1, 1], [0, 0, 1]]
    assert inputs["qformer_input_ids"].tolist() == [[5, 5, 0], [5, 5, 5]]
    assert inputs["pixel_values"].shape == (2, 3, 4, 4)
