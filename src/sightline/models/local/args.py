"""What may be said of a local model: how it is loaded, and how it answers."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import Meta, Struct

from sightline.errors import unknown_name
from sightline.models.argument_checks import read_values

MAX_TOKENS = 512
"""Tokens of an answer where nobody says how many."""

BATCH = 32
"""Requests in one forward pass: on two cores twice as many are 4 % faster, and take twice the memory."""


class LocalArgs(Struct, frozen=True, forbid_unknown_fields=True):
    """`--model-arg` for local models.

    `dtype` auto is the checkpoint's own, `device` auto the first accelerator there is. `batch` is how many
    requests go through the model at once, halved for as long as memory does not suffice. `revision` is a
    branch, tag or commit of the Hugging Face Hub. `template` auto takes the processor's chat template
    where there is one, else the plain prompt that the architecture was made for. `adapter` is the folder
    of one that was trained on this model.
    """

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    device: Annotated[
        str, Meta(pattern=r"^(auto|cpu|cuda(:\d+)?|mps)$", description="auto, cpu, mps, cuda or cuda:NUMBER")
    ] = "auto"
    attention: Literal["eager", "sdpa", "flash_attention_2"] = "sdpa"
    batch: Annotated[int, Meta(ge=1)] = BATCH
    revision: str | None = None
    trust_remote_code: bool = False
    template: Literal["auto", "chat", "plain"] = "auto"
    adapter: str | None = None


class Sampling(Struct, frozen=True, forbid_unknown_fields=True):
    """The sampling options of a request. Temperature 0 takes the likeliest token each time."""

    temperature: Annotated[float, Meta(ge=0)] = 0.0
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    top_k: Annotated[int, Meta(ge=0)] = 0
    max_tokens: Annotated[int, Meta(ge=1)] = MAX_TOKENS
    seed: int = 0
    repetition_penalty: Annotated[float, Meta(gt=0)] = 1.0


def effective(wanted: Mapping[str, Any]) -> dict[str, Any]:
    """What of the wanted options has a part in the answer; what is left out has its neutral value.

    Raises UserError for an option that a local model does not have, and for a value out of range.
    """
    for name in wanted:
        if name not in Sampling.__struct_fields__:
            raise unknown_name("sampling option of a local model", name, Sampling.__struct_fields__)
    sampling = read_sampling(wanted)
    used: dict[str, Any] = {"temperature": sampling.temperature, "max_tokens": sampling.max_tokens}
    if sampling.repetition_penalty != 1:
        used["repetition_penalty"] = sampling.repetition_penalty
    if sampling.temperature == 0:
        return used
    used["seed"] = sampling.seed
    if sampling.top_p < 1:
        used["top_p"] = sampling.top_p
    if sampling.top_k > 0:
        used["top_k"] = sampling.top_k
    return used


def read_sampling(options: Mapping[str, Any]) -> Sampling:
    """The options with their types and ranges checked. Raises UserError."""
    return read_values("--gen", options, Sampling)
