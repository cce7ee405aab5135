"""What can be stored and exported: text that UTF-8 or a database cannot hold is replaced."""

from __future__ import annotations

from msgspec.structs import replace

from sightline.types import Answer, Failure


def storable(result: Answer | Failure) -> Answer | Failure:
    r"""Replace lone surrogates, which libraries of providers take over from JSON such as "\ud800"."""
    match result:
        case Answer():
            texts = (result.text, result.reasoning, result.finish_reason, result.version)
            if all(map(_is_storable, texts)):
                return result
            text, reasoning, finish_reason, version = map(_replaced, texts)
            return replace(
                result, text=text, reasoning=reasoning, finish_reason=finish_reason, version=version
            )
        case Failure():
            if _is_storable(result.message):
                return result
            return replace(result, message=_replaced(result.message))


def storable_text(text: str) -> str:
    """Replace lone surrogates and NUL characters: PostgreSQL has no NUL character in a column of text."""
    return (text if _is_storable(text) else _replaced(text)).replace("\0", "\ufffd")


def _is_storable(text: str) -> bool:
    if text.isascii():
        return True
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _replaced(text: str) -> str:
    """The text with U+FFFD for each lone surrogate; a pair becomes the character that it stands for."""
    return text.encode("utf-16", "surrogatepass").decode("utf-16", "replace")
