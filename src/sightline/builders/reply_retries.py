"""Sends requests, and sends one again if its reply is unusable, up to MAX_ATTEMPTS times."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Generic, TypeVar

from msgspec import Struct

from sightline.engine.client import ModelClient, RequestEstimate
from sightline.engine.keys import KeyedRequest
from sightline.engine.store import Store
from sightline.engine.threads import run_in_thread
from sightline.types import Answer, Failure

MAX_ATTEMPTS = 3
"""Number of attempts before something is dropped."""

T = TypeVar("T")


class ReplyResult(Struct, Generic[T], frozen=True):
    """The result of one request: a value, or why it was dropped, or why it has no answer yet.

    Attributes:
        value: What was read from the reply; None without a usable reply.
    """

    value: T | None = None
    draw: int = 0
    key: str = ""
    dropped: str = ""
    unanswered: str = ""


class ReplyRequests(Struct, Generic[T], frozen=True):
    """What to ask, by name.

    Attributes:
        read: Reads an answer: the value and '', or None and what is wrong with the reply.
    """

    names: Sequence[str]
    request: Callable[[str, int], KeyedRequest]
    read: Callable[[str, Answer], tuple[T | None, str]]


async def collect_replies(
    wanted: ReplyRequests[T], client: ModelClient, store: Store, title: str, *, show_progress: bool = False
) -> dict[str, ReplyResult[T]]:
    """Ask for everything that the store does not hold, up to MAX_ATTEMPTS times each.

    If this is cancelled, the store keeps all replies so far.
    """
    results: dict[str, ReplyResult[T]] = {}
    pending = wanted.names
    async with client.keep_open():
        for draw in range(MAX_ATTEMPTS):
            requests = await run_in_thread(_requests, wanted, pending, draw)
            again = f" again ({draw})" if draw else ""
            await client.ask(store, list(requests.values()), f"{title}{again}", show_progress=show_progress)
            stopped = client.counts.stopped
            results |= await run_in_thread(_results, wanted, requests, store, draw, stopped)
            pending = [name for name in pending if _needs_another(results[name], draw)]
            if not pending or stopped:
                break
    return results


def count_requests(wanted: ReplyRequests[T], client: ModelClient, store: Store) -> RequestEstimate:
    """Count what `collect_replies` would ask. Nothing is asked or written."""
    pending = wanted.names
    cached = least = most = 0
    for draw in range(MAX_ATTEMPTS):
        requests = _requests(wanted, pending, draw)
        settled = client.settled(store, list(requests.values()))
        missing = {keyed.request.key for keyed in requests.values()} - settled
        cached += len(settled)
        least += len(missing)
        most += len(missing) * (MAX_ATTEMPTS - draw)
        answered = {name: keyed for name, keyed in requests.items() if keyed.request.key in settled}
        results = _results(wanted, answered, store, draw, "")
        pending = [name for name in answered if _needs_another(results[name], draw)]
    return RequestEstimate(cached, least, most)


def dropped_reasons(results: Mapping[str, ReplyResult[T]]) -> dict[str, str]:
    """Select what was dropped."""
    return {name: result.dropped for name, result in results.items() if result.dropped}


def unanswered_reasons(results: Mapping[str, ReplyResult[T]]) -> dict[str, str]:
    """Select what has no answer."""
    return {name: result.unanswered for name, result in results.items() if result.unanswered}


def _requests(wanted: ReplyRequests[T], names: Sequence[str], draw: int) -> dict[str, KeyedRequest]:
    return {name: wanted.request(name, draw) for name in names}


def _results(
    wanted: ReplyRequests[T], requests: Mapping[str, KeyedRequest], store: Store, draw: int, stopped: str
) -> dict[str, ReplyResult[T]]:
    """The results of the requests, by what the store holds now; `stopped` is why asking stopped early."""
    keys = {name: keyed.request.key for name, keyed in requests.items()}
    replies = store.answers.look_up(list(keys.values()))
    missing = "the budget is reached" if stopped == "budget" else "not asked"
    return {name: _result(wanted, name, draw, key, replies.get(key) or missing) for name, key in keys.items()}


def _result(
    wanted: ReplyRequests[T], name: str, draw: int, key: str, reply: Answer | Failure | str
) -> ReplyResult[T]:
    if not isinstance(reply, Answer):
        why = reply if isinstance(reply, str) else reply.message
        return ReplyResult(draw=draw, key=key, unanswered=why)
    value, objection = wanted.read(name, reply)
    return ReplyResult(value, draw, key, dropped=objection)


def _needs_another(result: ReplyResult[T], draw: int) -> bool:
    return bool(result.dropped) and draw + 1 < MAX_ATTEMPTS
