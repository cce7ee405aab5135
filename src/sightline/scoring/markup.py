"""The markup of responses: control tokens, what containers hold, and the text without all this."""

from __future__ import annotations

import json
import re
import unicodedata
from collections.abc import Iterator

from sightline.scoring.answer_words import EDGE, words_of
from sightline.scoring.text import INVISIBLE, cached_for_short_texts, ungrouped


def without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text.casefold())
    return "".join(sign for sign in decomposed if sign.isalnum() and not unicodedata.combining(sign))


# -- Control tokens

_FIRST_TOKENS = re.compile(
    r"(?:\s*(?:<\|[a-z_]+\|>|</?s>|<(?:bos|eos|pad|unk|(?:start|end)_of_turn)>|\[/?INST\])"
    r"(?:\s*(?:assistant|model)\s*(?:\n|:|$))?)+",
    re.IGNORECASE,
)
_LAST_TOKEN = re.compile(
    r"<\|(?:im_end|im_start|eot_id|eom_id|endoftext|end_of_text|end_of_turn_token|end|eos|eot|return)\|>"
    r"|</s>|<(?:eo[ahmst]|(?:start|end)_of_turn)>|\[EOS\]|<｜end▁of▁sentence｜>",
    re.IGNORECASE,
)
_OTHER_TOKEN = re.compile(r"<(?:eoe|pad|unk|sep|0x0A)>", re.IGNORECASE)


def without_tokens(response: str) -> str:
    """A response without the control tokens of its model, up to the first that ends it.

    >>> without_tokens("A string. <eoe> Answer: B<eoa> Answer: A")
    'A string. \\n Answer: B'
    """
    if "<" not in response and "[" not in response:
        return response
    first = _FIRST_TOKENS.match(response)
    text = _LAST_TOKEN.split(response[first.end() :] if first else response, maxsplit=1)[0]
    return _OTHER_TOKEN.sub("\n", text) if text.strip() else response


_OF_ANOTHER = re.compile(r"\n(?:Question|User|Human|Q)\s*:")
_ANSWER_LIST = re.compile(
    r"(?<=\S )((?!\S* ?[Oo]p)([^\n.:]{8,30}[ :])\(?[A-Z]\)?\.?)(?:\n+[^\n]{0,40}:)?"
    r"(?:\n+\2\(?[A-Z]\)?\.?){3,}\s*\Z"
)
"""Three answers or more behind the one that a sentence leads to: they are of other questions, or of none."""


def own_turn(response: str) -> str:
    """A response without control tokens, and without the questions and answers that a model goes on with."""
    return _ANSWER_LIST.sub(r"\1", _OF_ANOTHER.split(without_tokens(response).strip(), maxsplit=1)[0])


# -- Containers

_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{")
_TAG_NAMES = {name.replace(" ", "_") for name in words_of("nouns") - words_of("claims")} | {
    "final",
    "final_answer",
}
_TAGGED = re.compile(
    rf"<({'|'.join(sorted(_TAG_NAMES | {without_accents(name) for name in _TAG_NAMES}))})\b[^<>]*>"
    r"(.*?)(?:</\1\s*>|$)",
    re.IGNORECASE | re.DOTALL,
)
"""Tags named like the label of an answer in any language: `<answer>`, `<respuesta>`."""
_JSON = re.compile(r"\{[^{}]*\}")
_FIELDS = (
    "final_answer",
    "short_answer",
    "answer",
    "choice",
    "option",
    "selected_option",
    "label",
    "prediction",
    "response",
)


def contents_of(response: str) -> Iterator[str]:
    """What the containers of a response hold."""
    for found in _BOXED.finditer(response):
        depth, end = 1, found.end()
        while end < len(response) and depth:
            depth += {"{": 1, "}": -1}.get(response[end], 0)
            end += 1
        yield response[found.end() : end - 1] if not depth else ""
    for found in _TAGGED.finditer(response):
        if not _BOXED.search(found[2]):
            yield found[2]
    for found in _JSON.finditer(response):
        if (held := _answer_field(found[0])) is not None:
            yield held


def _answer_field(text: str) -> str | None:
    try:
        held = json.loads(text)
    except ValueError:
        return None
    folded = {str(name).casefold().replace(" ", "_"): value for name, value in held.items()}
    value = next((folded[name] for name in _FIELDS if name in folded), None)
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None


# -- The text without markup

_MARKUP = re.compile(
    r"\\(?:text|textbf|mathrm|mathbf|mathit|textit|operatorname|rm|bf)\s*\{([^{}]*)\}"
    r"|\$+|\\[()\[\],;!]|\\%|`+|\*+|</?(?:b|i|em|strong|u|p|span|br)\s*/?>"
    rf"|(?<![{EDGE}])_+|_+(?![{EDGE}])|(?m:^\s*(?:>|#+)\s*)"
)
_MARKUP_SIGN = re.compile(r"[\\$`*<>_#]")
_LATEX = {
    "\\pi": "π", "\\Omega": "Ω", "\\times": "×", "\\cdot": "·", "\\degree": "°", "^\\circ": "°", "\\circ": "°"
}  # fmt: skip
_RAISED = re.compile(r"(?<=[A-Za-z)])[\^_]\{?(-?\d+)\}?(?!\w)|(?<=[A-Z][a-z])_(\d)|(?<=[A-Z])_\{?(\d+)\}?")
_FRACTION = re.compile(r"\\[dt]?frac\s*(?:\{([^{}]+)\}\s*\{([^{}]+)\}|(\d)(\d))")
_REPEATED = re.compile(r"(\b\w+\b[.,!]?)(?:\s+\1){2,}", re.IGNORECASE)
_ONE_SPELLING = str.maketrans("’ёЁ−", "'еЕ-")


@cached_for_short_texts
def plain_text(text: str) -> str:
    """A text without markup and invisible signs, full-width letters folded, thousands without commas."""
    folded = text
    if not text.isascii():
        folded = unicodedata.normalize("NFKC", text.translate(INVISIBLE)).translate(_ONE_SPELLING)
    if "\\" in folded:
        folded = _FRACTION.sub(lambda found: f"{found[1] or found[3]}/{found[2] or found[4]}", folded)
        for command, sign in _LATEX.items():
            folded = folded.replace(command, sign)
    previous = "" if _MARKUP_SIGN.search(folded) else folded
    while previous != folded:
        previous, folded = folded, _MARKUP.sub(lambda found: found[1] or "", folded)
    if "^" in folded or "_" in folded:  # '²' is folded to '2', too
        folded = _RAISED.sub(lambda found: found[1] or found[2] or found[3], folded)
    return _REPEATED.sub(r"\1", ungrouped(folded)).strip()
