"""Reads three rephrasings from a reply in any format, and sends a request again if its reply is unusable."""

from __future__ import annotations

import ast
import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Generic, TypeVar

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

    Supported are JSON (strings, or objects that hold them, fenced or within prose), numbered and bulleted
    items, and quoted lines. Without any of these, sentences that end in a question mark are taken.

    >>> rephrasings('Sure!\n1. "What is it?" (formal)\n2) **Direct:** Name it.\n\nShall I go on?')
    ('What is it?', 'Name it.')
    """
    text = _broken_up(_plain(reply))
    marked = [_cleaned(find(text)) for find in _FINDERS]
    best = next((found for found in marked if len(_questions(found)) >= REQUIRED), [])
    best = best or max(marked, key=lambda found: (len(_questions(found)) > 0, len(found)))
    if not _questions(best):
        best = _cleaned(_sentences(text)) or best
    if cut and best and not _ENDED.search(best[-1]):
        best = best[:-1]
    return tuple(_questions(best) if len(_questions(best)) >= REQUIRED else best)


_NOUN = (
    r"(?:questions?|re-?phras\w+|re-?word\w+|paraphras\w+|versions?|varia\w+|alternatives?|options?|types?)"
)
_ORDINAL = r"(?:first|second|third|1st|2nd|3rd)"
_COUNT = r"(?:\d{1,2}|[a-e]|one|two|three)"
_LABELLED = (
    rf"(?:(?:[\w-]+[ ]){{0,3}}?{_NOUN}[ ]*\#?[ ]*{_COUNT}|{_ORDINAL}(?:[ ][\w-]+){{0,2}}[ ]{_NOUN}|[qr]\d)"
    r"[*_]*[ ]*(?::|[.)](?=\s)|[-–—](?=\s))"
)
_BARE = (
    r"(?:[(\[](?:\d{1,2}|[a-e])[)\]]|\#?\d{1,2}[.)](?=[^\W\d])|\d{1,2}[ ]*\|"
    r"|\#?(?:\d{1,2}|[a-e])(?:[.)][*_]*(?=\s|$|[\"“'*])|:(?=\s|$)|[ ][-–—](?=\s)))"
)
_NUMBERED = re.compile(rf"[\s*_#>|•-]*(?:{_LABELLED}|{_BARE})[.:)*_]*\s*", re.IGNORECASE)
_BULLET = re.compile(r"\s*(?:[•◦▪‣●·→➤▶–—+-]|\*(?!\*))\s*(?=\S)")

_INLINE_NUMBER = re.compile(r"(?<!\S)[*_(\[]{0,3}(\d)[.)\]][*_]*(?=\s)")
_INLINE_LABEL = re.compile(rf"(?<=[?.!:\"”*])\s+(?=[*_]*{_LABELLED})", re.IGNORECASE)
_INLINE_BULLET = re.compile(r"(?<=[?\"”*:])[ ]+(?=[•◦▪‣●·–—*-][ ])")

_QUOTES = {'"': '"', "“": "”", "„": "“", "«": "»", "‘": "’", "'": "'"}
_QUOTED_LINE = re.compile(r"\s*([\"“„«‘'].+?)[\s,;]*")
_QUOTED = re.compile(r"\"([^\"]+\?)\"|“([^“”]+\?)”")

_TAG_OF_ITEM = re.compile(r"<(?:li|p|br)\b[^<>]*>", re.IGNORECASE)
_TAG = re.compile(r"</?(?:ol|ul|li|p|b|strong|i|em|div|html|body)\b[^<>]*>", re.IGNORECASE)

_BOLD_LABEL = re.compile(r"^\*\*[^*]{1,60}(?::\*\*|\*\*[ ]*[:–—-])\s*")
_LABEL = re.compile(rf"^(?:[\w-]+[ ]){{0,3}}?{_NOUN}[ ]*:\s*", re.IGNORECASE)
_NOTE = re.compile(r"\s*[(\[](?:[^()\[\]]*)[)\]]\s*$|\s+(?:answer|note)\s*:.*$", re.IGNORECASE)
_SKIPPED_KEY = re.compile(r"original|answer|type|style|note|expla|tone|id$|number|index", re.IGNORECASE)
_OWN_WORDS = re.compile(r"^\W*(?:the[ ])?original\b", re.IGNORECASE)

_POLITE = r"(?:sure|certainly|of course|okay|ok|absolutely|great|yes)"
_LEAD = re.compile(
    rf"^(?:{_POLITE}\b[^:?]*?[!.,:]\s*)?(?:here|below|these|the following|three|you could)\b[^:]*:\s*"
    rf"|^{_POLITE}[ ]*[!.,:]\s*",
    re.IGNORECASE,
)
_OFFER = re.compile(
    r"^\W*(?:would you like|do you (?:want|need|have)|shall i|should i|is there anything|can i|may i|"
    r"do(?:es)? (?:these|this|any)|are these|anything else|need more|let me know|how do (?:these|they))",
    re.IGNORECASE,
)
_ENDED = re.compile(r"[?.!。？！][\"”»’')*_]*$")


def _plain(reply: str) -> str:
    """The reply without HTML tags and keycaps; escaped newlines count if there are no others."""
    text = reply.replace("\r\n", "\n").replace("\ufe0f\u20e3", ".").strip()
    if "\n" not in text:
        text = text.replace("\\n", "\n")
    return _TAG.sub("", _TAG_OF_ITEM.sub("\n- ", text))


def _broken_up(text: str) -> str:
    """Put items that share a line on lines of their own."""
    lines = []
    for line in text.split("\n"):
        line = _INLINE_LABEL.sub("\n", _INLINE_BULLET.sub("\n", line))
        counted, places = 0, []
        for found in _INLINE_NUMBER.finditer(line):
            if int(found[1]) == counted + 1:
                counted += 1
                places.append(found.start())
        if counted > 1:
            edges = [0, *places, len(line)]
            line = "\n".join(line[start:end] for start, end in pairwise(edges))
        lines.append(line)
    return "\n".join(lines)


def _in_json(text: str) -> list[str]:
    """The texts in all JSON lists and objects of a reply, or in a list in Python's notation."""
    decoder, found, place = json.JSONDecoder(), list[str](), 0
    for start in (match.start() for match in re.finditer(r"[\[{]", text)):
        if start < place:
            continue
        try:
            value, place = decoder.raw_decode(text, start)
        except (ValueError, RecursionError):
            continue
        found.extend(_texts_in(value))
    if not found and (listed := re.search(r"\[\s*['\"].*\]", text, re.DOTALL)):
        try:
            found.extend(_texts_in(ast.literal_eval(listed[0])))
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            return found
    return found


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


def _items(mark: re.Pattern[str]) -> Callable[[str], list[str]]:
    """Make a finder of items that begin with a marker and end with their line or sentence."""

    def find(text: str) -> list[str]:
        items: list[str] = []
        going_on = False
        for line in text.split("\n"):
            found = mark.match(line)
            if found and line.strip():
                items.append(line[found.end() :].strip())
                going_on = True
            elif not line.strip():
                going_on = going_on and not items[-1]
            elif going_on and (not items[-1] or (not _ENDED.search(items[-1]) and _continues(line))):
                items[-1] = f"{items[-1]} {line.strip()}".strip()
            else:
                going_on = False
        return items

    return find


def _continues(line: str) -> bool:
    return (line[0].isspace() or line[0].islower()) and not _BULLET.match(line)


def _quoted(text: str) -> list[str]:
    """Lines that are quotations, or otherwise three or more quotations within prose."""
    lines = [found[1] for line in text.split("\n") if (found := _QUOTED_LINE.fullmatch(line))]
    if len(lines) > 1:
        return lines
    inside = [one or other for one, other in _QUOTED.findall(text)]
    return inside if len(inside) >= REQUIRED else lines


def _sentences(text: str) -> list[str]:
    """The questions in a reply without markers, except those of the model to its user."""
    found: list[str] = []
    for line in text.split("\n"):
        if line.rstrip().endswith(":"):
            continue
        for piece in re.split(r"(?<=\?)\s+", line.strip()):
            asked = _LEAD.sub("", piece)
            if "?" in asked and not _OFFER.match(asked):
                found.append(asked)
    return found


_FINDERS = (_in_json, _items(_NUMBERED), _items(_BULLET), _quoted)


def _questions(texts: Sequence[str]) -> list[str]:
    return [text for text in texts if text.rstrip("\"”'*)").endswith(("?", "？"))]


def _cleaned(items: Sequence[str]) -> list[str]:
    texts = (_clean(item) for item in items)
    return [text for text in texts if words(text)]


def _clean(item: str) -> str:
    """Remove emphasis, label, quotes, and the text after the question from an item."""
    if _OWN_WORDS.match(item):
        return ""
    text = _BOLD_LABEL.sub("", " ".join(item.split()).lstrip("•→|> -"))
    text = _LABEL.sub("", text.replace("**", "").replace("__", "").strip("*_` ")).strip()
    closing = _QUOTES.get(text[:1])
    if closing and closing in text[1:]:
        text = text[1 : text.rindex(closing)].strip()
    if found := re.match(r".*[?？]", text):
        rest = text[found.end() :]
        # A quotation inside the question may end with it.
        text = found[0] + ('"' if rest.startswith('"') and found[0].count('"') % 2 else "")
    else:
        text = _NOTE.sub("", text)
    return text.strip("` ,;")


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
