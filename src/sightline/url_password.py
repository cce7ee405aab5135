"""Hides the passwords of database URLs, which never appear in an output."""

from __future__ import annotations

import re

_URL_IN_TEXT = re.compile(r"\bpostgres[\w+]*:/\S*")
# A path made of a URL has one slash. The greedy match includes each @ that a password should have encoded.
_USER_PASSWORD = re.compile(r"^([\w+.-]+:/{1,2}[^:/@?]*):.*@", re.DOTALL)
_QUERY_PASSWORD = re.compile(r"([?&](?:ssl)?password=)[^&]*")


def hide_password(url: str) -> str:
    """Hide the password of a URL.

    Args:
        url: A URL, valid or not.

    Returns:
        The same with `***` in the place of a password.

    >>> hide_password("postgresql://me:s@cret@host/name?sslpassword=secret")
    'postgresql://me:***@host/name?sslpassword=***'
    """
    return _QUERY_PASSWORD.sub(r"\1***", _USER_PASSWORD.sub(r"\1:***@", url))


def hide_passwords(text: str) -> str:
    """Hide the passwords of PostgreSQL URLs in a text.

    Args:
        text: A text, which may quote what a user wrote in the wrong place.

    Returns:
        The same with `***` in the place of each password.
    """
    return _URL_IN_TEXT.sub(lambda url: hide_password(url[0]), text)
