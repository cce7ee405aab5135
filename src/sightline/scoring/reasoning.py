"""Cuts the reasoning from a response: what is left is the answer, which rules, judges and metrics read.

Reasoning is:

- What stands between `<NAME>` and `</NAME>` with one of the names below, in any case and with attributes,
  also between `[THINK]` and `[/THINK]`, `◁think▷` and `◁/think▷`, and the paired tokens below. Blocks may be
  nested and occur anywhere; a closing tag of another name closes them too.
- All text before a closing tag without an opening one, because the opening one may be in the prompt. After a
  closed block, such a tag at the very end of the response is only dropped.
- All text after an opening tag that nothing closes: the response was cut off.
- The channels of harmony (gpt-oss) other than `final`, also where a server has removed their tokens, and the
  channels of Gemma 4.
- The text around `<|begin_of_box|>B<|end_of_box|>` (GLM): the content of the boxes is the answer.

A tag is text, and not cut, where the response writes about it:

- It is in quotation marks or in a code span; or, outside reasoning, in a code block that does not begin the
  response.
- A word such as `tag` or `token` stands next to it within a sentence.
- It opens within a sentence and nothing closes it, or only dots, 'and', or one word of this sentence stand
  between the two tags.

A response without any of this stays as it is, to the last character.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import cache
from typing import NamedTuple

from msgspec.structs import replace

from sightline.errors import UserError
from sightline.scoring.text import lexicon
from sightline.types import Answer

NAMES = (
    "think", "thinking", "thought", "thoughts", "reasoning", "reflection", "scratchpad", "analysis",
    "seed:think", "longcat_think", "mm:think",
)  # fmt: skip
"""The names of tags around reasoning; --reasoning-tags adds others."""

TOKENS = {
    "<|START_THINKING|>": "<|END_THINKING|>",
    "<|begin_of_thought|>": "<|end_of_thought|>",
    "<|inner_prefix|>": "<|inner_suffix|>",
    "<|channel>": "<channel|>",
}
"""Paired tokens around reasoning: Command A, Sky-T1 and OpenThinker, Apertus, Gemma 4."""

FRAMES = ("<|START_RESPONSE|>", "<|END_RESPONSE|>", "<|begin_of_solution|>", "<|end_of_solution|>")
"""Tokens around the answers of such models, which are dropped."""

_NAME = re.compile(r"[^\W_][\w:.\-]*")


class Cut(NamedTuple):
    """The answer in a response, and the reasoning that was cut from it; '' if there is none."""

    answer: str
    reasoning: str


def cut_reasoning(response: str, names: Sequence[str] = ()) -> Cut:
    """Cut the reasoning from a response; `names` are further names of tags.

    >>> cut_reasoning("<think>A string: (A)?</think>B")
    Cut(answer='B', reasoning='A string: (A)?')
    >>> cut_reasoning("The `<think>` tag")
    Cut(answer='The `<think>` tag', reasoning='')
    """
    tags = _tags((*NAMES, *names))
    answer = response
    thoughts: list[str] = []
    # Again on the rest, so that what is stored without reasoning is read as what was received.
    while _SIGN.search(answer) or tags.search(answer):
        rest, found = _cut_once(answer, tags)
        if rest == answer:
            break
        answer = rest.strip()
        thoughts += found
    return Cut(answer, "\n\n".join(filter(None, map(str.strip, thoughts))))


def _cut_once(response: str, tags: re.Pattern[str]) -> tuple[str, list[str]]:
    text, channels = _final_channel(response)
    text, blocks = _without_blocks(text, tags)
    text, around = _boxed(text)
    return text, [*channels, *blocks, *around]


def without_reasoning(answer: Answer, names: Sequence[str] = ()) -> Answer:
    """The answer whose text is only what answers; its reasoning follows what the server sent apart."""
    text, thoughts = cut_reasoning(answer.text, names)
    if text == answer.text:
        return answer
    return replace(answer, text=text, reasoning="\n\n".join(filter(None, (answer.reasoning, thoughts))))


def check_names(names: Sequence[str]) -> None:
    """Raise UserError for a name that no tag has."""
    for name in names:
        if not _NAME.fullmatch(name):
            raise UserError(
                f"--reasoning-tags '{name}' is not the name of a tag",
                expected="names without brackets, such as summary or my:thoughts",
            )


def tag_notes(names: Sequence[str], texts: Iterable[str]) -> list[str]:
    """Write a note on each further name of which none of the texts has a tag: it may be misspelled."""
    left = {
        name: re.compile(rf"<\s*/?\s*{re.escape(name)}\b", re.IGNORECASE)
        for name in names
        if name not in NAMES
    }
    for text in texts:
        for name in [name for name, tag in left.items() if tag.search(text)]:
            del left[name]
        if not left:
            break
    return [f"--reasoning-tags {name}: no response holds a tag <{name}>" for name in left]


_LEADING = re.compile(
    r"\s*[<◁]([^\W_][\w:.\-]*)(?:\s[^<>]*)?[>▷](?s:.*?)[<◁]/\s*\1\s*[>▷]\s*\S", re.IGNORECASE
)
_NO_REASONING = lexicon(
    """answer final final_answer choice option response output result solution conclusion a b blockquote
    body br center code details div em font h1 h2 h3 h4 html i img li ocr ol p pre q s section small span
    strong sub sup table text u ul"""
)
"""Names of tags around answers, and of HTML."""


def leading_tag(answer: str) -> str:
    """The name of the pair of tags that an answer begins with, if it may hold reasoning; '' without one.

    >>> leading_tag("<mull>A string: (A)?</mull>B"), leading_tag("<answer>B</answer> It is round.")
    ('mull', '')
    """
    found = _LEADING.match(answer)
    name = found[1].casefold() if found else ""
    return "" if name in _NO_REASONING else name


# -- Channels: harmony, also without its tokens

_SIGN = re.compile(
    r"<\|message\|>|<\|channel\|>|<\|(?:begin|end)_of_box\|>|\Aanalysis(?=[A-Z])|\Aassistantfinal"
    + "".join("|" + re.escape(token) for token in FRAMES)
)
"""What a response has from which something other than a block is cut."""

_HEADER = re.compile(
    r"(?:<\|start\|>\s*assistant\s*)?(?:<\|channel\|>|\A(?=(?:analysis|commentary|final)<\|message\|>))"
    r"\s*(?P<name>\w+)[^<]*(?:<\|constrain\|>[^<]*)?(?:<\|message\|>|\Z)"
)
_END_OF_MESSAGE = re.compile(r"<\|(?:end|return|call|start)\|>")


def _final_channel(text: str) -> tuple[str, list[str]]:
    """The final channel, and the others; without channels the text itself."""
    headers = [found for found in _HEADER.finditer(text) if not _is_quoted(text, *found.span())]
    if not headers:
        return _final_without_tokens(text)
    thoughts = [_END_OF_MESSAGE.split(text[: headers[0].start()])[0]]
    final: list[str] = []
    for header, following in zip(headers, [*headers[1:], None], strict=True):
        content = text[header.end() : following.start() if following else len(text)]
        part = final if header["name"] == "final" else thoughts
        part.append(_END_OF_MESSAGE.split(content)[0])
    return "\n".join(final), thoughts


def _final_without_tokens(text: str) -> tuple[str, list[str]]:
    """'analysisIs it A?assistantfinalB': the channels of a server that removes the tokens."""
    if not re.match(r"analysis[A-Z]|assistantfinal", text):
        return text, []
    *thoughts, last = text.removeprefix("analysis").split("assistantfinal")
    return (last, thoughts) if thoughts else ("", [last])


# -- Blocks between tags

_NOUN = r"(?:tag|token|marker|delimiter|element|block|section)s?\b"
_NOUN_AFTER = re.compile(rf"[ \t]+{_NOUN}")
_NOUN_BEFORE = re.compile(rf"\b(?:{_NOUN}|called|named)[ \t]+\Z")
_WITHIN_SENTENCE = re.compile(r"[\w,;)][ \t]+\Z")
_CONJUNCTION = re.compile(r"\s+(?:and|or|to|until)\s+", re.IGNORECASE)
_NOTHING = re.compile(r"[\s,/&…–—.-]*")
_ONE_WORD = re.compile(r"\S{1,20}")
_SENTENCE_GOES_ON = re.compile(r"[ \t]+[a-z]")
_CODE_BLOCK = re.compile(r"^[ \t]*(```+|~~~+).*?^[ \t]*\1[ \t]*$", re.DOTALL | re.MULTILINE)
_QUOTES = {"“": "”", "‘": "’", "«": "»", "「": "」", "『": "』", "„": "“"}
_GEMMA_LABEL = re.compile(r"\s*thought\s*\n")

_CONTEXT = 40
"""Characters before a tag in which the words next to it are."""


class _Tag(NamedTuple):
    kind: str
    start: int
    end: int


@cache
def _tags(names: tuple[str, ...]) -> re.Pattern[str]:
    """The tags with these names; the last group says whether one opens, closes, or is empty (`<think/>`)."""
    listed = "|".join(sorted(map(re.escape, dict.fromkeys(names)), key=len, reverse=True))
    opening, closing = ("|".join(map(re.escape, tokens)) for tokens in (TOKENS, TOKENS.values()))
    attributes = r"""(?:\s(?:"[^"<\n]*"|'[^'<\n]*'|[^<>])*+)?"""
    return re.compile(
        rf"(?P<close><\s*/\s*(?:{listed})\s*>|\[/THINK\]|◁\s*/\s*(?:{listed})\s*▷|{closing})"
        rf"|(?P<empty><\s*(?:{listed})(?:\s[^<>]*)?/>)"
        rf"|(?P<open><\s*(?:{listed}){attributes}>|\[THINK\]|◁\s*(?:{listed})\s*▷|{opening})",
        re.IGNORECASE,
    )


def _without_blocks(text: str, pattern: re.Pattern[str]) -> tuple[str, list[str]]:
    """The text outside the blocks, and what stands in each of them."""
    tags = [
        _Tag(str(found.lastgroup), *found.span())
        for found in pattern.finditer(text)
        if not _is_quoted(text, *found.span())
    ]
    code = [found.span() for found in _CODE_BLOCK.finditer(text) if tags and text[: found.start()].strip()]
    answer: list[str] = []
    thoughts: list[str] = []
    depth = start = opened = closed = 0
    mentioned: set[int] = set()
    for number, tag in enumerate(tags):
        if number in mentioned:
            continue
        if not depth:
            mentions = _mentioned(text, tags, number, code)
            mentioned |= mentions
            if number in mentions:
                continue
        elif _NOUN_AFTER.match(text, tag.end) and text[tag.start - 1].isspace():
            continue
        if tag.kind == "open":
            if not depth:
                answer.append(text[start : tag.start])
                start = tag.end
            doubled = depth > 0 and not text[opened : tag.start].strip()
            depth += not doubled
            opened = tag.end
        elif depth:
            depth -= tag.kind == "close"
            if not depth:
                thoughts.append(_labelless(text, start, tag.start))
                start, closed = tag.end, closed + 1
        elif tag.kind == "empty" or (closed and not text[tag.end :].strip()):
            answer.append(text[start : tag.start])
            start = tag.end
        else:
            thoughts.append(_joined([*answer, text[start : tag.start]]))
            answer, start = [], tag.end
    if depth:
        thoughts.append(_labelless(text, start, len(text)))
    else:
        answer.append(text[start:])
    return _joined(answer), thoughts


def _joined(pieces: Sequence[str]) -> str:
    """The pieces of a text, with white space where a block was cut out between two words."""
    joined = ""
    for piece in pieces:
        touching = joined and piece and not (joined[-1].isspace() or piece[0].isspace())
        joined += f" {piece}" if touching else piece
    return joined


def _labelless(text: str, start: int, end: int) -> str:
    """A thought; that of Gemma 4 without the name of its channel."""
    content = text[start:end]
    return _GEMMA_LABEL.sub("", content, count=1) if text.endswith("<|channel>", 0, start) else content


# -- Tags that a response only writes about


def _mentioned(text: str, tags: Sequence[_Tag], number: int, code: Sequence[tuple[int, int]]) -> set[int]:
    """The numbers of the tags, from one outside reasoning on, that are only mentioned."""
    tag = tags[number]
    before = text[max(0, tag.start - _CONTEXT) : tag.start]
    within = _WITHIN_SENTENCE.search(before) is not None
    if any(start <= tag.start < end for start, end in code) or _NOUN_BEFORE.search(before):
        return {number}
    if _NOUN_AFTER.match(text, tag.end) and (within or tag.kind == "open"):
        return {number}
    if tag.kind != "open":
        return set()
    closing = next((later for later in range(number + 1, len(tags)) if tags[later].kind == "close"), None)
    if closing is None:
        return {number} if within else set()
    between = text[tag.end : tags[closing].start]
    if _CONJUNCTION.fullmatch(between) or (within and _NOTHING.fullmatch(between)):
        return {number, closing}
    if within and _ONE_WORD.fullmatch(between) and _SENTENCE_GOES_ON.match(text, tags[closing].end):
        return {number, closing}
    return set()


def _is_quoted(text: str, start: int, end: int) -> bool:
    """Whether quotation marks, or the back quotes of a code span on its line, enclose a tag."""
    line = text.rfind("\n", 0, start) + 1
    stop = text.find("\n", end)
    stop = stop if stop >= 0 else len(text)
    # Counted in place, and last: a model that repeats itself writes thousands of tags in one line.
    if text.find("`", end, stop) >= 0 and text.count("`", line, start) % 2:
        return True
    left, right = text[max(line, start - 1) : start], text[end : min(end + 1, stop)]
    if left == right == '"':
        return text.count('"', line, start) % 2 == 1
    if left == right == "'":
        return not text[max(line, start - 2) : start - 1].isalnum()
    return bool(left) and _QUOTES.get(left) == right


# -- Boxes

_BOX = re.compile(r"<\|begin_of_box\|>(.*?)(?:<\|end_of_box\|>|\Z)", re.DOTALL)
_BEGIN = re.compile(r"<\|begin_of_box\|>")
_FRAME = re.compile("|".join(map(re.escape, ("<|end_of_box|>", *FRAMES))))


def _boxed(text: str) -> tuple[str, list[str]]:
    """The content of the boxes, and the text around them; without boxes the text itself."""
    boxes = [found for found in _BOX.finditer(text) if not _is_quoted(text, *found.span())]
    if not boxes:
        return _unframed(text), []
    starts = [0, *(box.end() for box in boxes)]
    ends = [*(box.start() for box in boxes), len(text)]
    around = " ".join(text[start:end].strip() for start, end in zip(starts, ends, strict=True))
    return "\n".join(_BEGIN.sub("", box[1]).strip() for box in boxes), [_unframed(around)]


def _unframed(text: str) -> str:
    """The text without the tokens around an answer."""
    return _FRAME.sub(lambda found: found[0] if _is_quoted(text, *found.span()) else "", text)
