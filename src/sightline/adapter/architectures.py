"""The adapter architectures and their sizes, as `adapter.json` stores them; they are read without torch."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

MOST = 65_536
"""The largest size of an adapter: wider than the embeddings of every model."""

PositiveInt = Annotated[int, Meta(ge=1, le=MOST)]
PrefixLength = Annotated[int, Meta(ge=0, le=MOST)]
Layers = Annotated[int, Meta(ge=1, le=64)]


class BiLstm(Struct, frozen=True, forbid_unknown_fields=True, tag="bilstm", tag_field="kind"):
    """The adapter of MM-R3 (5.1, 5.2): Bi-LSTM over the prompt's embeddings, max-pooling, MLP.

    The MLP computes `prefix` vectors. `hidden` is the width of one direction of the LSTM. None means the
    width of the embeddings, as in the paper.
    """

    prefix: PrefixLength = 3
    hidden: PositiveInt | None = None
    layers: Layers = 2


class Prefix(Struct, frozen=True, forbid_unknown_fields=True, tag="prefix", tag_field="kind"):
    """Prompt tuning (Lester et al. 2021): `prefix` free vectors, the same for every prompt."""

    prefix: PrefixLength = 3


class Lora(Struct, frozen=True, forbid_unknown_fields=True, tag="lora", tag_field="kind"):
    """LoRA (Hu et al. 2021) on all linear layers of the language model, implemented by peft."""

    rank: Annotated[int, Meta(ge=1, le=4096)] = 16
    alpha: PositiveInt = 32


AdapterConfig = BiLstm | Prefix | Lora
ARCHITECTURES: dict[str, type[AdapterConfig]] = {"bilstm": BiLstm, "prefix": Prefix, "lora": Lora}
