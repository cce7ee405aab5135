"""The kinds of adapter and their sizes, and what is kept of one in a folder."""

from __future__ import annotations

from typing import Annotated

from msgspec import Meta, Struct

Size = Annotated[int, Meta(ge=1)]


class BiLstm(Struct, frozen=True, forbid_unknown_fields=True, tag="bilstm", tag_field="kind"):
    """MM-R3's adapter (5.1, 5.2): a Bi-LSTM over the prompt's embeddings, max-pooled, and an MLP that makes
    `prefix` vectors of it. `hidden` is a direction's width, None that of the embeddings, as in the paper."""

    prefix: Annotated[int, Meta(ge=0)] = 3
    hidden: Size | None = None
    layers: Size = 2


class Prefix(Struct, frozen=True, forbid_unknown_fields=True, tag="prefix", tag_field="kind"):
    """Prompt tuning (Lester et al. 2021): `prefix` free vectors, the same before every prompt."""

    prefix: Annotated[int, Meta(ge=0)] = 3


class Lora(Struct, frozen=True, forbid_unknown_fields=True, tag="lora", tag_field="kind"):
    """LoRA (Hu et al. 2021) on all linear layers of the language model, by peft."""

    rank: Size = 16
    alpha: Size = 32


Kind = BiLstm | Prefix | Lora
KINDS: dict[str, type[Kind]] = {"bilstm": BiLstm, "prefix": Prefix, "lora": Lora}
