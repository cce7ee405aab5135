"""Asking for something of use: where a reply gives nothing that can be used, the same is asked again."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, NamedTuple, TypeVar

from msgspec import Struct

from sightline.engine.client import ModelClient
from sightline.engine.keys import KeyedRequest
from sightline.engine.store import Store
from sightline.types import Answer, Failure

ASKS = 3
"""How often something is asked for before it is dropped."""

T = TypeVar("T")


class ReplyResult(Struct, Generic[T], frozen=True):
    """What became of one thing: what was `found`, or why it was dropped, or why it has no answer yet.

    `draw` says which chance gave the reply (0 for the first), `key` is the reply's address in the store.
    """

    found: T | None = None
    draw: int = 0
    key: str = ""
    dropped: str = ""
    unanswered: str = ""


class ReplyRequests(Struct, Generic[T], frozen=True):
    """What is asked for, by name: the request of a draw, and what an answer gives, or the objection to it."""

    names: Sequence[str]
    request: Callable[[str, int], KeyedRequest]
    read: Callable[[str, Answer], tuple[T | None, str]]


class RequestCounts(NamedTuple):
    """How many requests are known, and how many will be sent at least and at most, as the replies decide."""

    known: int
    at_least: int
    at_most: int


async def collect_replies(
    wanted: ReplyRequests[T], client: ModelClient, store: Store, title: str, *, show_progress: bool = False
) -> dict[str, ReplyResult[T]]:
    """Ask what the store does not hold, up to ASKS times; what became of each, by name.

    Raises UserError where the model cannot be used at all, EnvironmentFailedError where the store fails.
    Cancelled, it keeps everything answered so far.
    """
    found: dict[str, ReplyResult[T]] = {}
    pending = wanted.names
    async with client.kept_open():
        for draw in range(ASKS):
            requests = _requests(wanted, pending, draw)
            again = f" again ({draw})" if draw else ""
            await client.ask(store, list(requests.values()), f"{title}{again}", show_progress=show_progress)
            found |= _obtained(wanted, requests, store, draw, client.counts.stopped)
            pending = [name for name in pending if _wants_another(found[name], draw)]
            if not pending or client.counts.stopped:
                break
    return found


def count_requests(wanted: ReplyRequests[T], client: ModelClient, store: Store) -> RequestCounts:
    """What `collect_replies` would ask, by what the store holds; nothing is asked or written."""
    pending = wanted.names
    known = least = most = 0
    for draw in range(ASKS):
        requests = _requests(wanted, pending, draw)
        settled = client.settled(store, list(requests.values()))
        unknown = {keyed.request.key for keyed in requests.values()} - settled
        known, least, most = known + len(settled), least + len(unknown), most + len(unknown) * (ASKS - draw)
        answered = {name: keyed for name, keyed in requests.items() if keyed.request.key in settled}
        found = _obtained(wanted, answered, store, draw, "")
        pending = [name for name in answered if _wants_another(found[name], draw)]
    return RequestCounts(known, least, most)


def _requests(wanted: ReplyRequests[T], names: Sequence[str], draw: int) -> dict[str, KeyedRequest]:
    return {name: wanted.request(name, draw) for name in names}


def _obtained(
    wanted: ReplyRequests[T], requests: Mapping[str, KeyedRequest], store: Store, draw: int, stopped: str
) -> dict[str, ReplyResult[T]]:
    keys = {name: keyed.request.key for name, keyed in requests.items()}
    known = store.look_up(list(keys.values()))
    return {name: _read(wanted, name, key, known.get(key), draw, stopped) for name, key in keys.items()}


def _read(
    wanted: ReplyRequests[T], name: str, key: str, result: Answer | Failure | None, draw: int, stopped: str
) -> ReplyResult[T]:
    if not isinstance(result, Answer):
        why = "the budget is spent" if stopped == "budget" else "not asked"
        return ReplyResult(draw=draw, key=key, unanswered=why if result is None else result.message)
    found, objection = wanted.read(name, result)
    return ReplyResult(found, draw, key, dropped=objection)


def _wants_another(one: ReplyResult[T], draw: int) -> bool:
    return bool(one.dropped) and draw + 1 < ASKS
