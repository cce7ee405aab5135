"""Recognizes and hides secrets in texts: passwords and tokens in URLs, API keys."""

from __future__ import annotations

import re
from collections.abc import Iterator
from urllib.parse import unquote

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


def is_key_shaped(text: str) -> bool:
    """Decide whether a text looks like an API key of a well-known service."""
    return _KEY.search(text) is not None


def hide_key(text: str, key: str, shown: str = "[key]") -> str:
    """Hide a key in a text, also where the text has only the greater part of it.

    >>> hide_key("invalid: abcdefghijkl****", "abcdefghijklmnop")
    'invalid: [key]****'
    """
    text = text.replace(key, shown)
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
