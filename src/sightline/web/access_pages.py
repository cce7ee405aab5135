"""The two pages that need no template: the refusal, and the page that sets a cookie and continues."""

from __future__ import annotations

import base64
import hashlib
import html

from msgspec import Struct
from starlette.responses import HTMLResponse, Response

STYLE = (
    ":root{color-scheme:light dark;font:16px/1.5 system-ui,sans-serif}"
    "main{max-width:36rem;margin:12vh auto;padding:0 1.25rem}h1{font-size:1.5rem;line-height:1.25}"
)
"""The style of the refusal: it is in the page, because a stranger gets no other file."""

STYLE_DIGEST = f"sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}"
"""The digest by which the content security policy allows this style, and no other inline one."""

NOT_KEPT = {"cache-control": "no-store"}


class Cookie(Struct, frozen=True):
    """A cookie that scripts and other sites cannot use.

    Attributes:
        seconds: How long browsers keep it; None: until they end.
    """

    name: str
    value: str
    encrypted: bool
    seconds: int | None = None


def refusal(status: int, reason: str, title: str = "Not allowed") -> Response:
    """Refuse a request."""
    return HTMLResponse(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Sightline</title>'
        f"<style>{STYLE}</style></head><body><main><h1>{html.escape(title)}</h1><p>{html.escape(reason)}</p></main></body></html>",
        status,
        headers=NOT_KEPT,
    )


def welcome(target: str, cookie: Cookie) -> Response:
    """Set a cookie, and continue at an address without the token.

    A page that continues, not a redirect: if a link on another site led here, a browser would not send a
    SameSite=Strict cookie with the redirect.
    """
    target = html.escape(target)
    response = HTMLResponse(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Sightline</title>'
        f'<meta http-equiv="refresh" content="0;url={target}"></head>'
        f'<body><main><p><a href="{target}">Continue</a></p></main></body></html>',
        headers=NOT_KEPT,
    )
    response.set_cookie(
        cookie.name,
        cookie.value,
        max_age=cookie.seconds,
        httponly=True,
        samesite="strict",
        secure=cookie.encrypted,
    )
    return response
