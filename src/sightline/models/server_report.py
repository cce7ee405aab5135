"""What a server says about the models that it serves: its reply to GET /v1/models."""

from __future__ import annotations

import msgspec
from msgspec import Struct


class ServerReport(Struct, frozen=True, omit_defaults=True):
    """What a server says about one model. The time of `created` is left out: it changes with each restart.

    Attributes:
        root: Where the server has the weights from (vLLM, SGLang).
        max_model_len: The maximum number of tokens of prompt and response.
    """

    address: str
    id: str | None = None
    root: str | None = None
    max_model_len: int | None = None


class _ListedModel(Struct):
    id: str
    root: str | None = None
    max_model_len: int | None = None


class _ModelList(Struct):
    data: list[_ListedModel]


def read_server_report(raw: bytes, address: str, model: str) -> ServerReport | None:
    """Read what a server says about a model.

    Returns:
        The report, without `id` if the server does not list the model; None if the body is not a list of
        models.
    """
    try:
        listed = msgspec.json.decode(raw, type=_ModelList).data
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        return None
    for one in listed:
        if one.id == model:
            return ServerReport(address, one.id, one.root, one.max_model_len)
    return ServerReport(address)
