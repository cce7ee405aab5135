"""Who may use the pages: the token, the Host header, the origin of forms, and the headers of each response.

Every request passes `AccessControl` first. On a shared machine, each user can connect to a loopback address,
so that the token is needed there too. The token of the owner opens all pages but those of annotators, whose
personal links open only them: `annotation/gate.py` decides there.
"""

from __future__ import annotations

import hmac
import ipaddress
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from typing import TYPE_CHECKING
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sightline.web.access_pages import STYLE_DIGEST, Cookie, refusal, welcome

if TYPE_CHECKING:
    from sightline.web.annotation.gate import Gate

TOKEN = "token"
"""The parameter of the URL that holds the token."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        f"style-src 'self' '{STYLE_DIGEST}'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""The content security policy: nothing from another host, nothing inline but the style of the refusal."""

HEADERS: Mapping[str, str] = {
    "content-security-policy": POLICY,
    "x-content-type-options": "nosniff",
    # Other hosts receive no referrer. With `no-referrer`, forms would not name their origin either.
    "referrer-policy": "same-origin",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
}
"""The headers of every response."""

PRIVATE = "private, no-cache"
"""What caches may do with a page: the browser asks again at each visit."""


class Access(Struct, frozen=True):
    """The rules of one server."""

    token: str
    names: frozenset[str] = frozenset()
    port: int = 0
    encrypted: bool = False

    @property
    def cookie(self) -> str:
        """The name of the cookie that holds the token."""
        return f"sightline-{self.port}"

    def accepts_host(self, header: str) -> bool:
        """Whether a Host header names this server."""
        try:
            parts = urlsplit(f"//{header}")
            name, _ = parts.hostname, parts.port
        except ValueError:
            return False
        if not name or parts.netloc != header or parts.username is not None or parts.path:
            return False
        return name == "localhost" or name in self.names or _is_address(name)

    def accepts_token(self, token: str) -> bool:
        """Whether a token is the right one; takes the same time for each wrong one."""
        return hmac.compare_digest(token.encode(), self.token.encode())


class AccessControl:
    """The ASGI application around the pages: refuses what `Access` and the gate do not allow."""

    def __init__(self, app: ASGIApp, access: Access, gate: Gate | None = None) -> None:
        """Wrap an application.

        Args:
            gate: Who may use the pages of annotators; None if nobody may.
        """
        self._app = app
        self._access = access
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Answer a request, or pass it on."""
        if scope["type"] == "lifespan":
            await self._app(scope, receive, send)
            return

        async def send_with_headers(message: Message) -> None:
            if message["type"] == "http.response.start":
                headers = MutableHeaders(scope=message)
                headers.update(HEADERS)
                headers.setdefault("cache-control", PRIVATE)
            await send(message)

        answer = await self._answer(scope) or self._app
        await answer(scope, receive, send_with_headers)

    async def _answer(self, scope: Scope) -> Response | None:
        """The response to a request that is not passed on."""
        if scope["type"] != "http":
            return refusal(400, "Only HTTP is supported.")
        headers = Headers(scope=scope)
        if len(headers.getlist("host")) != 1 or not self._access.accepts_host(headers["host"]):
            return refusal(
                400,
                "This name of the host is not accepted. Use the URL that sightline serve printed, or start "
                "it with --allow-host NAME.",
            )
        cookies = read_cookies(headers.get("cookie", ""))
        if self._gate is not None and self._gate.is_for(scope["path"]):
            # It reads the store, which can take long.
            answer = await run_in_threadpool(self._gate.answer, scope, cookies)
        else:
            answer = await self._owner_answer(scope, cookies)
        if answer is None and scope["method"] not in ("GET", "HEAD") and not _same_origin(headers):
            return refusal(403, "This form is not one of this server.")
        return answer

    async def _owner_answer(self, scope: Scope, cookies: Mapping[str, str]) -> Response | None:
        """The response if the request has the token to show, a wrong one, or none."""
        access = self._access
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if given := [value for name, value in query if name == TOKEN]:
            if scope["method"] != "GET" or not access.accepts_token(given[0]):
                return refusal(403, "This token is not valid. Use the URL that sightline serve printed.")
            rest = urlencode([pair for pair in query if pair[0] != TOKEN])
            cookie = Cookie(access.cookie, access.token, access.encrypted)
            return welcome("/" + scope["path"].lstrip("/") + (f"?{rest}" if rest else ""), cookie)
        if access.accepts_token(cookies.get(access.cookie, "")):
            return None
        if self._gate is not None and await run_in_threadpool(self._gate.shares, scope, cookies):
            return None
        return refusal(403, "A token is needed. Open the URL that sightline serve printed.")


def read_cookies(header: str) -> Mapping[str, str]:
    """Read the cookies of a request; pairs that are no cookies are left out."""
    found: dict[str, str] = {}
    for pair in header.split(";"):
        try:
            found |= {name: morsel.value for name, morsel in SimpleCookie(pair.strip()).items()}
        except CookieError:
            continue
    return found


def _same_origin(headers: Headers) -> bool:
    """Whether a page of this server sent the form; every browser of today sends Origin with a form."""
    origin = headers.get("origin", "")
    return urlsplit(origin).netloc == headers["host"] and headers.get("sec-fetch-site") in (
        None,
        "same-origin",
    )


def _is_address(name: str) -> bool:
    try:
        ipaddress.ip_address(name)
    except ValueError:
        return False
    return True
