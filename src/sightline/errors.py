"""The exceptions for wrong input and for a failing environment; texts without secrets and invisible signs."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from itertools import islice
from urllib.parse import unquote

MAX_FOUND = 300
"""The number of characters of a found value that a message shows."""


class UserError(Exception):
    """The input or the call is wrong, and the user can correct it (exit status 2).

    Its text is the complete message: where (`file`, `record`, `field`), what is wrong, what was `found`
    and what is `expected`. It is one line without control characters and passwords, followed by the lines of
    another program's log that it quotes.
    """

    def __init__(
        self,
        message: str,
        *,
        file: object = None,
        record: object = None,
        field: str | None = None,
        found: object = None,
        expected: str | None = None,
        quoted: Sequence[str] = (),
    ) -> None:
        self.message, self.file, self.record, self.field = message, file, record, field
        self.found, self.expected = found, expected
        super().__init__(hide_secrets("\n".join(map(visible, (self._text(), *quoted)))))

    def _text(self) -> str:
        location = [
            str(self.file) if self.file is not None else "",
            f"record {self.record}" if self.record is not None else "",
            f"field {self.field}" if self.field is not None else "",
        ]
        where = ", ".join(part for part in location if part)
        text = f"{where}: {self.message}" if where else self.message
        if self.found is not None:
            text += f" (found {_shorten(self.found)})"
        if self.expected is not None:
            text += f"; expected {self.expected}"
        return text


class NoSuchRecordError(UserError):
    """A run or a group with this number does not exist."""


class EnvironmentFailedError(Exception):
    """The environment fails during a run, such as a full disk or a lost store (exit status 3).

    Everything that was committed before stays in the store. Its text has no passwords and keys.
    """

    def __init__(self, message: str) -> None:
        super().__init__(hide_secrets(message))


def unknown_name(kind: str, name: str, known: Iterable[str]) -> UserError:
    names = sorted(known)
    return UserError(
        f"unknown {kind} '{name}'{did_you_mean(name, names)}", expected=f"one of {', '.join(names)}"
    )


def did_you_mean(name: str, known: Iterable[str]) -> str:
    """A suggestion for a misspelled name; '' if none is similar.

    >>> did_you_mean("gpt-4i", ["GPT-4o", "Gemini"])
    ", did you mean 'GPT-4o'?"
    """
    folded = {other.casefold(): other for other in known}
    near = get_close_matches(name.casefold(), folded, n=1, cutoff=0.5)
    return f", did you mean '{folded[near[0]]}'?" if near else ""


def some_of(names: Collection[str], most: int, *, total: int | None = None, separator: str = ", ") -> str:
    """The first names of a long list, and the number of the others.

    >>> some_of(["a", "b", "c"], 2)
    'a, b and 1 more'
    >>> some_of(["a: no image", "b: no text"], 1, separator="; ")
    'a: no image; and 1 more'
    """
    listed = separator.join(islice(names, most))
    more = (len(names) if total is None else total) - min(len(names), most)
    return f"{listed}{separator.rstrip(', ')} and {more:,} more" if more > 0 else listed


def _shorten(found: object) -> str:
    """A found value as Python writes it, long enough for the messages of other libraries."""
    text = repr(found)
    return text if len(text) <= MAX_FOUND else text[: MAX_FOUND - 3] + "..."


@contextmanager
def needs_extra(extra: str, message: str, file: object = None) -> Iterator[None]:
    """Import packages of an extra; where one is missing, the error names the command that installs it."""
    try:
        yield
    except ImportError:
        raise UserError(message, file=file, expected=f"pip install 'sightline[{extra}]'") from None


# -- Recognizes and hides secrets in texts: passwords and tokens in URLs, API keys

HIDDEN = "***"

# A URL in a text. A path made of a URL has one slash.
_URL = re.compile(r"\b[a-z][a-z0-9+.-]*:/{1,2}\S+", re.IGNORECASE)
# The greedy match includes each @ that a password should have encoded; a path of the web may have one, too.
_USER_PASSWORD = re.compile(r"^([\w+.-]+:/{0,3}[^:/@?]*):.*@", re.DOTALL)
_WEB_USER = re.compile(r"^(https?:/{1,2})[^/?#]*@", re.IGNORECASE)
_PARAMETER = re.compile(r"([?&;])([^=&;#\s]+)=([^&#\s]*)")

# Of a name without separators. Settings of tokenizers (pad_token, stop_token_ids) are no secrets.
_SECRET_NAME = re.compile(
    r"key(?!word)|secret|passw|credential|auth(?!or(?!iz))|headers?|cookie|bearer"
    r"|(?<!pad|eos|bos|unk|sep|cls|max)token(?!iz|s|id|type|budget|prob)"
)
_SIGNATURE = re.compile(r"(?:^|[^a-z])sig(?:nature)?$", re.IGNORECASE)

# The keys of well-known services: OpenAI, Anthropic and others (sk-), Stripe, Hugging Face, GitHub, GitLab,
# Slack, AWS, Google, Groq, Replicate, NVIDIA, Perplexity, xAI, and JSON Web Tokens. Names of files may begin
# with sk-, too, but have no long part with a digit.
_KEY = re.compile(
    r"\b(?:(?:sk|pk|rk)[-_](?=[\w-]*[A-Za-z0-9]{12})(?=[\w-]*\d)|hf_|gh[pousr]_|github_pat_|glpat-|xox[abeprs]-|AKIA|ASIA|AIza|ya29\.|gsk_|r8_|nvapi-"
    r"|pplx-|xai-|eyJ[\w-]+\.eyJ)[\w.-]{12,}"
)

SHORTEST_KEY = 16
"""Parts of shorter keys stay: local servers get keys such as `not-needed`, whose words other texts have."""


def hide_password(url: str) -> str:
    """Hide the password of a URL, and the values of parameters that hold secrets.

    >>> hide_password("postgresql://me:s@cret@host/name?sslpassword=secret")
    'postgresql://me:***@host/name?sslpassword=***'
    >>> hide_password("https://token@host/a.tar.gz?X-Amz-Signature=secret&part=1")
    'https://***@host/a.tar.gz?X-Amz-Signature=***&part=1'
    """
    is_web = re.match(r"https?:", url, re.IGNORECASE)
    hidden = _WEB_USER.sub(rf"\1{HIDDEN}@", url) if is_web else _USER_PASSWORD.sub(rf"\1:{HIDDEN}@", url)
    return _PARAMETER.sub(_hide_parameter, hidden)


def hide_secrets(text: str) -> str:
    """Hide the passwords and tokens of URLs in a text, and what looks like an API key.

    >>> hide_secrets("no variable sk-proj-0123456789abcdef, as postgresql://me:secret@host/name says")
    'no variable ***, as postgresql://me:***@host/name says'
    >>> hide_secrets("sk-models-of-july-2/weights")
    'sk-models-of-july-2/weights'
    """
    return _KEY.sub(HIDDEN, _URL.sub(lambda url: hide_password(url[0]), text))


def is_secret_name(name: str) -> bool:
    """Decide whether the name of an option, a variable or a parameter says that its value is a secret.

    >>> [name for name in ("api_key", "HF_TOKEN", "max_token", "pad_token") if is_secret_name(name)]
    ['api_key', 'HF_TOKEN']
    """
    return bool(_SECRET_NAME.search(re.sub(r"[^a-z0-9]", "", name.rpartition(".")[2].lower())))


def holds_secret(value: object) -> bool:
    """Decide whether a value of an option, or one inside it, is or names a secret.

    >>> holds_secret({"callback": ["https://me:secret@host"]}), holds_secret({"metadata": {"api_key": "x"}})
    (True, True)
    >>> holds_secret({"stop": ["Question:"], "metadata": {"url": "https://host/a"}})
    False
    """
    if isinstance(value, Mapping):
        return any(is_secret_name(str(name)) or holds_secret(one) for name, one in value.items())
    if isinstance(value, list | tuple):
        return any(map(holds_secret, value))
    return isinstance(value, str) and hide_secrets(value) != value


def is_key_shaped(text: str) -> bool:
    """Decide whether a text looks like an API key of a well-known service."""
    return _KEY.search(text) is not None


def hide_key(text: str, key: str, shown: str = "[key]") -> str:
    r"""Hide a key in a text, in every spelling of JSON, also where the text has only the greater part of it.

    >>> hide_key("invalid: abcdefghijkl****", "abcdefghijklmnop")
    'invalid: [key]****'
    >>> hide_key(r'{"error": "no key ab\/\u0063+"}', "ab/c+")
    '{"error": "no key [key]"}'
    """
    text = text.replace(key, shown)
    if "\\" in text:
        text = _spellings(key).sub(lambda _: shown, text)
    if len(key) < SHORTEST_KEY:
        return text
    # A part that is longer than half of the key contains one of these.
    size = (len(key) // 2 + 2) // 2
    parts = [key[start : start + size] for start in range(0, len(key) - size + 1, size)]
    if not any(part in text for part in parts):
        return text
    for found in sorted(_common_parts(text, key, parts), key=len, reverse=True):
        text = text.replace(found, shown)
    return text


@cache
def _spellings(key: str) -> re.Pattern[str]:
    """A key in JSON, and in JSON within a text of JSON: each character as it is, escaped, or as its code."""
    units = [(sign, sign.encode("utf-16-be").hex()) for sign in key]
    codes = ["".join(rf"\\+u{code[at : at + 4]}" for at in range(0, len(code), 4)) for _, code in units]
    return re.compile(
        "".join(
            rf"(?:\\*{re.escape(sign)}|(?i:{code}))" for (sign, _), code in zip(units, codes, strict=True)
        )
    )


def _common_parts(text: str, key: str, parts: list[str]) -> Iterator[str]:
    """The longest texts around each part that text and key share, if longer than half of the key."""
    for number, part in enumerate(parts):
        at = text.find(part)
        while at >= 0:
            start, end = number * len(part), (number + 1) * len(part)
            first, last = at, at + len(part)
            while start and first and key[start - 1] == text[first - 1]:
                start, first = start - 1, first - 1
            while end < len(key) and last < len(text) and key[end] == text[last]:
                end, last = end + 1, last + 1
            if 2 * (end - start) > len(key):
                yield key[start:end]
            at = text.find(part, last)


def _hide_parameter(found: re.Match[str]) -> str:
    separator, name, value = found.groups()
    plain = unquote(name)
    is_secret = is_secret_name(plain) or _SIGNATURE.search(plain)
    return f"{separator}{name}={HIDDEN if is_secret else value}"


# -- Shows the characters that a reader would not see, or that change how other text is displayed

_CONTROLS = "\x00-\x1f\x7f-\x9f"
_SEPARATORS = "\u2028\u2029"
_BIDIRECTIONAL = "\u061c\u200e\u200f\u202a-\u202e\u2066-\u2069"
_SURROGATES = "\ud800-\udfff"
_INVISIBLE = (
    "\u00ad\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180f\u200b-\u200d\u2060-\u2065\u206a-\u206f\u3164\ufe00-\ufe0f"
    "\ufeff\uffa0\ufff0-\ufffb\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0000-\U000e0fff"
)
"""The other characters of Unicode's property Default_Ignorable_Code_Point, and interlinear annotations."""

_NOT_CHARACTERS = "\ufdd0-\ufdef" + "".join(
    f"{chr(plane + 0xFFFE)}{chr(plane + 0xFFFF)}" for plane in range(0, 0x110000, 0x10000)
)
_UNSAFE = f"[{_CONTROLS}{_SEPARATORS}{_BIDIRECTIONAL}{_SURROGATES}{_INVISIBLE}{_NOT_CHARACTERS}]"

_UNSAFE_PRINTABLE = re.compile(
    "[\u034f\u115f\u1160\u17b4\u17b5\u180b-\u180d\u180f\u3164\ufe00-\ufe0f\uffa0\U000e0100-\U000e01ef]"
)
"""Those that `str.isprintable` accepts."""

_EMOJI = (
    "[©®‼⁉™ℹ\u2190-\u21ff\u2300-\u27bf\u2900-\u297f\u2b00-\u2bff〰〽㊗㊙\U0001f000-\U0001faff]"
    "[\ufe0e\ufe0f]?[\U0001f3fb-\U0001f3ff]?"
)
_TAGS = "(?:gbeng|gbsct|gbwls)".translate({ord(letter): 0xE0000 + ord(letter) for letter in "begclnstw"})
_SPACELESS = "[\u0e00-\u0eff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff]"
_MEANINGFUL = (
    "\U0001f3f4" + _TAGS + "\U000e007f",  # the flags of England, Scotland and Wales
    f"{_EMOJI}(?:\u200d{_EMOJI})*",
    "[0-9#*]\ufe0f(?=\u20e3)",  # keycaps
    "[\u3400-\u9fff\uf900-\ufaff\U00020000-\U0003ffff][\ufe00-\ufe02\U000e0100-\U000e01ef]",  # forms of Han
    "[\u1820-\u18aa][\u180b-\u180d\u180f]",  # forms of Mongolian letters
    "[\u1820-\u18aa]\u180e(?=[\u1820\u1821])",
    # Joiners in Arabic and in the scripts of India and of South-East Asia.
    "[\u0620-\u08ff\u0900-\u0dff\u1000-\u109f\u1780-\u17b3\u17b6-\u17ff\u1b00-\u1b7f\ua980-\ua9df][\u200c\u200d]",
    f"{_SPACELESS}\u200b(?={_SPACELESS})",  # where a line may break between words without spaces
)
"""Invisible characters in the places where the spelling of a language, or an emoji, needs them."""


def visible(text: str) -> str:
    r"""Show a text in one line, with the escapes of Python for characters that are not safe to display.

    Control characters, line breaks, bidirectional controls, invisible characters, lone surrogates, and a
    combining mark at the beginning become `\n`, `\x1b`, `\u202e` or `\U000e0041`. Invisible characters stay
    where the spelling of a language needs them: joiners in Arabic, Persian and Indian scripts and in emoji,
    variation selectors behind the characters that have variants. All other text stays, backslashes too, so
    that the result is for readers, and is not to be parsed. A shown text stays as it is if it is shown again.

    >>> visible("one\nline\x1b[2J"), visible("100 % \u202eright")
    ('one\\nline\\x1b[2J', '100 % \\u202eright')
    """
    if text.isascii() and text.isprintable():
        return text
    shown = replace_unsafe(text, _escape)
    return _escape(shown[0]) + shown[1:] if unicodedata.category(shown[0])[0] == "M" else shown


def visible_lines(text: str) -> str:
    return "\n".join(map(visible, text.replace("\r\n", "\n").split("\n")))


def replace_unsafe(text: str, escape: Callable[[str], str]) -> str:
    """Replace the characters that `visible` replaces, but for a combining mark at the beginning."""
    if text.isprintable() and not _UNSAFE_PRINTABLE.search(text):
        return text  # as almost every text
    return _pattern().sub(lambda found: found[0] if found.lastgroup is None else escape(found[0]), text)


@cache
def _pattern() -> re.Pattern[str]:
    return re.compile(f"{'|'.join(_MEANINGFUL)}|(?P<unsafe>{_UNSAFE})")


def _escape(character: str) -> str:
    return character.encode("unicode_escape").decode()
