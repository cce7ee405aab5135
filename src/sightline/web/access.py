"""Who may use the viewer: the token, the Host header, the origin of forms, and the headers of each response.

Every request passes `AccessControl` first. On a shared machine, each user can connect to a loopback address,
so that the token is needed there too.
"""

from __future__ import annotations

import hmac
import html
import ipaddress
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec import Struct
from starlette.datastructures import Headers, MutableHeaders
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

TOKEN = "token"
"""The parameter of the URL that holds the token."""

POLICY = "; ".join(
    (
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "form-action 'self'",
        "base-uri 'none'",
        "frame-ancestors 'none'",
    )
)
"""The content security policy: nothing inline, nothing from another host."""

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
    """The rules of one server.

    Attributes:
        token: The token of the printed URL.
        names: The host names that a request may name, in small letters; IP addresses and `localhost` always
            may, because only names can be made to point here by others (DNS rebinding).
        port: The port, which separates the cookies of several servers on one host.
        encrypted: Whether the connection uses TLS.
    """

    token: str
    names: frozenset[str] = frozenset()
    port: int = 0
    encrypted: bool = False

    @property
    def cookie(self) -> str:
        """The name of the cookie that holds the token."""
        return f"sightline-{self.port}"

    def accepts_host(self, header: str) -> bool:
        """Whether a Host header names this server.

        Args:
            header: The value of the header.

        Returns:
            Whether it holds an IP address, `localhost` or one of `names`, and at most a port.
        """
        try:
            parts = urlsplit(f"//{header}")
            name, _ = parts.hostname, parts.port
        except ValueError:
            return False
        if not name or parts.netloc != header or parts.username is not None or parts.path:
            return False
        return name == "localhost" or name in self.names or _is_address(name)

    def accepts_token(self, token: str) -> bool:
        """Whether a token is the right one; takes the same time for each wrong one.

        Args:
            token: The token.

        Returns:
            Whether it is right.
        """
        return hmac.compare_digest(token.encode(), self.token.encode())


class AccessControl:
    """The ASGI application around the viewer: refuses what `Access` does not allow."""

    def __init__(self, app: ASGIApp, access: Access) -> None:
        """Wrap an application.

        Args:
            app: The application.
            access: The rules.
        """
        self._app = app
        self._access = access

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

        answer = self._answer(scope) or self._app
        await answer(scope, receive, send_with_headers)

    def _answer(self, scope: Scope) -> Response | None:
        """The response to a request that is not passed on."""
        if scope["type"] != "http":
            return _refusal(400, "Only HTTP is supported.")
        headers, access = Headers(scope=scope), self._access
        if len(headers.getlist("host")) != 1 or not access.accepts_host(headers["host"]):
            return _refusal(
                400,
                "This name of the host is not accepted. Use the URL that sightline serve printed, or start "
                "it with --allow-host NAME.",
            )
        query = parse_qsl(scope["query_string"].decode("latin-1"), keep_blank_values=True)
        if given := [value for name, value in query if name == TOKEN]:
            if scope["method"] != "GET" or not access.accepts_token(given[0]):
                return _refusal(403, "This token is not valid. Use the URL that sightline serve printed.")
            return self._welcome(scope["path"], [pair for pair in query if pair[0] != TOKEN])
        if not access.accepts_token(_cookie(headers.get("cookie", ""), access.cookie)):
            return _refusal(403, "A token is needed. Open the URL that sightline serve printed.")
        if scope["method"] not in ("GET", "HEAD") and not _same_origin(headers):
            return _refusal(403, "This form is not one of the viewer.")
        return None

    def _welcome(self, path: str, query: list[tuple[str, str]]) -> Response:
        """Set the cookie, and continue at the same page without the token.

        A page that continues, not a redirect: if a link on another site led here, a browser would not send a
        SameSite=Strict cookie with the redirect.
        """
        target = html.escape("/" + path.lstrip("/") + (f"?{urlencode(query)}" if query else ""))
        response = HTMLResponse(
            f'<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Sightline</title>'
            f'<meta http-equiv="refresh" content="0;url={target}"></head>'
            f'<body><main><p><a href="{target}">Continue</a></p></main></body></html>',
            headers={"cache-control": "no-store"},
        )
        response.set_cookie(
            self._access.cookie,
            self._access.token,
            httponly=True,
            samesite="strict",
            secure=self._access.encrypted,
        )
        return response


def _refusal(status: int, reason: str) -> Response:
    return HTMLResponse(
        '<!doctype html><html lang="en"><head><meta charset="utf-8"><title>Sightline</title></head>'
        f"<body><main><h1>Not allowed</h1><p>{html.escape(reason)}</p></main></body></html>",
        status,
        headers={"cache-control": "no-store"},
    )


def _cookie(header: str, name: str) -> str:
    """The value of a cookie; '' without it."""
    for pair in header.split(";"):
        try:
            found = SimpleCookie(pair.strip()).get(name)
        except CookieError:
            continue
        if found is not None:
            return found.value
    return ""


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
