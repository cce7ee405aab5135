"""Reads three rephrasings from a reply in any format, and sends a request again if its reply is unusable."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Generic, NamedTuple, TypeVar

from msgspec import Struct

from sightline.engine.client import ModelClient, RequestEstimate
from sightline.scoring.text import words
from sightline.store.answers import KeyedRequest
from sightline.store.database import run_in_thread
from sightline.store.store import Store
from sightline.types import Answer, Failure

REQUIRED = 3
"""Number of rephrasings of a question (MM-R3, section 3.2)."""

TOO_FEW = "fewer than three distinct rephrasings"
EQUAL = "a rephrasing equals the question"
GIVEN_AWAY = "a rephrasing contains the answer"
"""Reasons for which a reply is unusable, as they are counted; details follow in brackets."""


class ParsedReply(Struct, frozen=True):
    """The contents of a reply: three rephrasings, or none and the reason why it is unusable."""

    rephrasings: tuple[str, ...] = ()
    objection: str = ""


def read_rephrasings(reply: str, question: str, answers: Sequence[str], *, cut: bool = False) -> ParsedReply:
    """Read the first three rephrasings that differ from the question and each other and do not contain the
    answer.

    Texts are compared by their words, without case, punctuation and contractions.

    >>> reply = "1. Whose bus? 2. Whose is it? 3. WHOSE bus"
    >>> read_rephrasings(reply, "Who owns the bus?", ["a school"]).objection
    'fewer than three distinct rephrasings (2)'
    """
    offered: dict[tuple[str, ...], str] = {}
    for text in rephrasings(reply, cut=cut):
        offered.setdefault(words(text), text)
    asked = words(question)
    equal = asked in offered
    offered.pop(asked, None)
    revealed = {text: given_away(text, question, answers) for text in offered.values()}
    fit = [text for text, answer in revealed.items() if not answer][:REQUIRED]
    if len(fit) == REQUIRED:
        return ParsedReply(tuple(fit))
    if answer := next(filter(None, revealed.values()), ""):
        return ParsedReply(objection=f"{GIVEN_AWAY} ('{answer}')")
    return ParsedReply(objection=EQUAL if equal else f"{TOO_FEW} ({len(fit)})")


def given_away(text: str, question: str, answers: Sequence[str]) -> str:
    """Find an answer that a text gives away: all its words occur in the text, and not all in the question; ''
    if there is none.

    >>> given_away("Is the red bus a school bus?", "Who owns the red bus?", ["red", "a school"])
    'a school'
    """
    text_words, question_words = set(words(text)), set(words(question))
    for answer in answers:
        needed = set(words(answer))
        if needed and needed <= text_words and not needed <= question_words:
            return answer
    return ""


def rephrasings(reply: str, *, cut: bool = False) -> tuple[str, ...]:
    r"""Extract the questions of a reply, without list markers, quotes and notes.

    They are the texts in JSON (strings, or objects that hold them, fenced or within prose), otherwise the
    sentences that end in a question mark; if these are too few, the items of a list, which may be requests.

    >>> rephrasings('Sure!\n1. "What is it?" (formal)\n2) **Direct:** Name it.\n\nShall I go on?')
    ('What is it?', 'Name it.')
    """
    items = [_Item(_without_quotes(text), True) for text in _in_json(reply)] or list(_items(reply))
    if cut and items and not items[-1].text.endswith(_ENDS):
        items.pop()
    questions = [item.text for item in items if item.text.endswith(("?", "？"))]
    listed = [item.text for item in items if item.is_listed]
    return tuple(questions if len(questions) >= REQUIRED or not listed else listed)


_ENDS = ("?", ".", "!", "。", "？", "！")
_QUOTES = "*_`\"'“”„«»‘’ "

_TAG = re.compile(r"<[^<>]*>")
_WRAPPED = re.compile(r"\n[ \t]+(?![a-e][.)])(?=[^\W\d_])")
"""A line that goes on in the next one, which is indented."""

_SENTENCE = re.compile(r"(?<=[?？])[\"”»’'*)\]]*[,;]?\s+")

_NOUN = r"(?:questions?|re-?phras\w+|re-?word\w+|paraphras\w+|versions?|variants?|alternatives?|options?)"
_MARK = re.compile(
    rf"""[^\w"“„«‘'(*]*(?:[*_(\[]*(?:
    (?:[\w-]+[ ]){{0,3}}?{_NOUN}[ #]*\w{{0,2}}[*_]*[ ]*(?:[:|]|[.)](?=\s)|$)|
    (?:[qra]?\d{{1,2}}|[a-e])[*_]*(?:[.:)\]](?!\d)|\ufe0f?\u20e3|[ ]*\||[ ][-–—](?=\s))
    )[.:)*_]*\s*)?""",
    re.IGNORECASE | re.VERBOSE,
)
"""The marks and the label before an item."""

_BOLD_LABEL = re.compile(r"\*\*[^*]{1,60}(?::\*\*|\*\*[ ]*[:–—-])\s*")
_LEAD = re.compile(
    r"(?:sure|certainly|of course|okay|ok|absolutely|great|yes|here|below|these|the following|three)"
    r"\b[^:?]*:\s*",
    re.IGNORECASE,
)
_ASIDE = re.compile(
    r"\W*(?:(?:the )?original\b|would you like|do you (?:want|need|have)|shall i|should i|can i|may i|"
    r"is there anything|do(?:es)? (?:these|this|any)|are these|anything else|need more|let me know|"
    r"how do (?:these|they))",
    re.IGNORECASE,
)
"""What is no rephrasing: the original again, and what the model asks its user."""

_SKIPPED_KEY = re.compile(r"original|answer|type|style|note|expla|tone|id$|number|index", re.IGNORECASE)


class _Item(NamedTuple):
    """A text of a reply, and whether it was marked as an item of a list."""

    text: str
    is_listed: bool


def _items(reply: str) -> Iterator[_Item]:
    """The sentences that may be questions, line by line. Newlines that are escaped count too."""
    text = _WRAPPED.sub(" ", _TAG.sub("\n", reply.replace("\\n", "\n")))
    for line in text.splitlines():
        if line.rstrip("* ").endswith(":"):
            continue
        for sentence in _SENTENCE.split(line):
            sentence = sentence.lstrip()
            if lead := _LEAD.match(sentence):
                sentence = sentence[lead.end() :]
            if _ASIDE.match(sentence):
                continue
            end = found.end() if (found := _MARK.match(sentence)) else 0
            rest = _without_quotes(_BOLD_LABEL.sub("", sentence[end:].strip()))
            if words(rest):
                yield _Item(rest, bool(sentence[:end].strip()))


def _without_quotes(text: str) -> str:
    """A text without quotes and emphasis around it; a quotation inside may end with it."""
    bare = " ".join(text.replace("**", "").replace("__", "").split())
    bare = bare.rstrip(",] ").strip(_QUOTES)
    return f'{bare}"' if bare.count('"') % 2 else bare


def _in_json(text: str) -> list[str]:
    decoder, found, place = json.JSONDecoder(), list[str](), 0
    for start in (match.start() for match in re.finditer(r"[\[{]", text)):
        if start < place:
            continue
        try:
            value, place = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        found.extend(_texts_in(value))
    return [text for text in found if words(text)]


def _texts_in(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, list):
        for inner in value:
            yield from _texts_in(inner)
    elif isinstance(value, dict):
        for key, inner in value.items():
            if not _SKIPPED_KEY.search(str(key)) or isinstance(inner, list | dict):
                yield from _texts_in(inner)


# -- Sends requests, and sends one again if its reply is unusable, up to MAX_ATTEMPTS times

MAX_ATTEMPTS = 3
"""Number of attempts before something is dropped."""

T = TypeVar("T")


class ReplyResult(Struct, Generic[T], frozen=True):
    """The result of one request: a value, or why it was dropped, or why it has no answer yet.

    `value`: what was read from the reply; None without a usable reply.
    """

    value: T | None = None
    draw: int = 0
    key: str = ""
    dropped: str = ""
    unanswered: str = ""


class ReplyRequests(Struct, Generic[T], frozen=True):
    """What to ask, by name. `read` returns a value and '', or None and what is wrong with the reply."""

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
    return {name: result.dropped for name, result in results.items() if result.dropped}


def unanswered_reasons(results: Mapping[str, ReplyResult[T]]) -> dict[str, str]:
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
