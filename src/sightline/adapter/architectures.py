"""The adapter architectures and their sizes, as `adapter.json` stores them."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

PositiveInt = Annotated[int, Meta(ge=1)]


class BiLstm(Struct, frozen=True, forbid_unknown_fields=True, tag="bilstm", tag_field="kind"):
    """The adapter of MM-R3 (5.1, 5.2): Bi-LSTM over the prompt's embeddings, max-pooling, MLP.

    The MLP computes `prefix` vectors. `hidden` is the width of one direction of the LSTM. None means the
    width of the embeddings, as in the paper.
    """

    prefix: Annotated[int, Meta(ge=0)] = 3
    hidden: PositiveInt | None = None
    layers: PositiveInt = 2


class Prefix(Struct, frozen=True, forbid_unknown_fields=True, tag="prefix", tag_field="kind"):
    """Prompt tuning (Lester et al. 2021): `prefix` free vectors, the same for every prompt."""

    prefix: Annotated[int, Meta(ge=0)] = 3


class Lora(Struct, frozen=True, forbid_unknown_fields=True, tag="lora", tag_field="kind"):
    """LoRA (Hu et al. 2021) on all linear layers of the language model, implemented by peft."""

    rank: PositiveInt = 16
    alpha: PositiveInt = 32


AdapterConfig = BiLstm | Prefix | Lora
ARCHITECTURES: dict[str, type[AdapterConfig]] = {"bilstm": BiLstm, "prefix": Prefix, "lora": Lora}
