"""Who may use the pages: the token, the Host header, the origin of forms, and the headers of each response.

Every request passes `AccessControl` first. On a shared machine, each user can connect to a loopback address,
so that the token is needed there too. The token of the owner opens all pages but those of annotators, whose
personal links open only them: `Gate` decides there.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import html
import ipaddress
import re
from collections.abc import Mapping
from http.cookies import CookieError, SimpleCookie
from threading import Lock
from typing import Final
from urllib.parse import parse_qsl, urlencode, urlsplit

from msgspec import Struct
from starlette.concurrency import run_in_threadpool
from starlette.datastructures import Headers, MutableHeaders
from starlette.requests import Request
from starlette.responses import HTMLResponse, Response
from starlette.types import ASGIApp, Message, Receive, Scope, Send

from sightline.annotation.links import Problem
from sightline.annotation.task import CROWD
from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.files import text_digest
from sightline.viewer.projects import Holder, Projects

# -- The two pages that need no template: the refusal, and the page that sets a cookie and continues

STYLE = (
    ":root{color-scheme:light dark;--bg:#fff;--line:#e3e3de;--ink:#1a1c1f;--ink-2:#4f535a;--accent:#1f4fb8}"
    "@media(prefers-color-scheme:dark){"
    ":root{--bg:#15171a;--line:#2e3339;--ink:#e7e8ea;--ink-2:#b4b9c0;--accent:#8fb3ff}}"
    'body{margin:0;background:var(--bg);color:var(--ink-2);font:1rem/1.5 -apple-system,"Segoe UI",Roboto,'
    '"Noto Sans","Liberation Sans","Helvetica Neue",Arial,sans-serif}'
    "header{display:flex;gap:.5rem;align-items:center;padding:.75rem 1.5rem}"
    "header{border-bottom:1px solid var(--line)}"
    "header,h1{color:var(--ink);font-weight:650}svg{width:18px;height:18px}"
    "main{max-width:36rem;margin:12vh auto;padding:0 1.5rem}h1{font-size:1.375rem;line-height:1.25}"
    "a{color:var(--accent)}"
)
"""The style of these pages, like that of all others; it is in the page, as a stranger gets no other file."""

STYLE_DIGEST = f"sha256-{base64.b64encode(hashlib.sha256(STYLE.encode()).digest()).decode()}"
"""The digest by which the content security policy allows this style, and no other inline one."""

NOT_KEPT = {"cache-control": "no-store"}


class Cookie(Struct, frozen=True):
    """A cookie that scripts and other sites cannot use; kept for `seconds`, or until the browser ends."""

    name: str
    value: str
    encrypted: bool
    seconds: int | None = None


LOGO = (
    '<svg viewBox="0 0 18 18" aria-hidden="true"><path d="M1 4.5L17 9 1 13.5" fill="none"'
    ' stroke="currentColor" stroke-width="1.6"/><circle cx="11.2" cy="9" r="2.6" fill="currentColor"/></svg>'
)


def _bare_page(main: str, status: int = 200, head: str = "") -> Response:
    return HTMLResponse(
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width, initial-scale=1"><title>Sightline</title>'
        f"{head}<style>{STYLE}</style></head><body><header>{LOGO}Sightline</header><main>{main}</main></body></html>",
        status,
        headers=NOT_KEPT,
    )


def refusal(status: int, reason: str, title: str = "Not allowed") -> Response:
    return _bare_page(f"<h1>{html.escape(title)}</h1><p>{html.escape(reason)}</p>", status)


def welcome(target: str, cookie: Cookie) -> Response:
    """Set a cookie, and continue at an address without the token.

    A page that continues, not a redirect: if a link on another site led here, a browser would not send a
    SameSite=Strict cookie with the redirect.
    """
    target = html.escape(target)
    response = _bare_page(
        f'<p><a href="{target}">Continue</a></p>',
        head=f'<meta http-equiv="refresh" content="0;url={target}">',
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
        return f"sightline-{self.port}"

    def accepts_host(self, header: str) -> bool:
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
        """Wrap an application; without a gate nobody may use the pages of annotators."""
        self._app = app
        self._access = access
        self._gate = gate

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
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
            try:
                answer = await run_in_threadpool(self._gate.answer, scope, cookies)
            except EnvironmentFailedError:
                text = "The server cannot read its store now. Nothing was saved. Try again in a minute."
                return refusal(503, text, "Not saved")
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


# -- Who may use the pages of annotators: personal links, which open one project's pages and nothing else

ROOT = "/annotate"
_KEY: Final = "sightline.holder"
_LINK = re.compile(r"/annotate/([^/]*\.[^/]*)/?")
_PAGE = re.compile(r"/annotate/(\d{1,15})(?:/.*)?")

KEPT = "Your work is kept; what you were typing is on the page again if you open a new link in this browser."
ENDED: Mapping[Problem, str] = {
    "invalid": "This link is not valid. Copy the whole link that you were given.",
    "expired": f"This link has ended. Ask whoever invited you for a new one. {KEPT}",
    "revoked": f"This link was replaced or revoked. Ask whoever invited you for a new one. {KEPT}",
}
OWN_IDS = ("prolific_pid", "workerid", "participantid", "id")
"""The parameters in which crowd platforms append the id of a worker, in any case of letters."""

ASK_ID = (
    '<h1>Your id</h1><p role="alert">{}</p><form><p><label>The id that your platform gave you'
    ' <input name="id" maxlength="100" required autofocus autocomplete="off"></label>'
    " <button>Continue</button></p></form>"
)


class Gate:
    """Lets annotators in: `/annotate/TOKEN` sets the cookie of a project, its other pages need the cookie."""

    def __init__(self, projects: Projects, port: int, *, encrypted: bool) -> None:
        self._projects = projects
        self._prefix = f"sightline-annotate-{port}-"
        self._encrypted = encrypted
        self._guesses = Guesses()

    def is_for(self, path: str) -> bool:
        return path == ROOT or path.startswith(f"{ROOT}/")

    def shares(self, scope: Scope, cookies: Mapping[str, str]) -> bool:
        """Whether an annotator may have what is not of a project: styles, scripts, the icon."""
        if not scope["path"].startswith(("/static/", "/favicon.ico")):
            return False
        tokens = [value for name, value in cookies.items() if name.startswith(self._prefix)]
        return any(isinstance(self._holder(scope, token), Holder) for token in tokens)

    def answer(self, scope: Scope, cookies: Mapping[str, str]) -> Response | None:
        """Refuse a request or set the cookie; None lets the request pass with its holder."""
        if link := _LINK.fullmatch(scope["path"]):
            if scope["method"] != "GET":
                return refusal(405, "A link can only be opened.")
            token, holder = link[1], self._holder(scope, link[1])
            if isinstance(holder, Holder) and holder.annotator.role == CROWD:
                own_id = _own_id(scope)
                try:
                    token = self._projects.worker_token(holder, own_id)
                except UserError as error:
                    return _bare_page(ASK_ID.format(html.escape(error.message) if own_id else ""), 400)
                holder = self._holder(scope, token)
            return self._welcome(token, holder) if isinstance(holder, Holder) else holder
        page = _PAGE.fullmatch(scope["path"])
        token = cookies.get(self._prefix + page[1].lstrip("0")) if page else None
        if page is None or token is None:
            return refusal(403, "Open the personal link that you were given.")
        holder = self._holder(scope, token)
        if not isinstance(holder, Holder):
            return holder
        if holder.live.row.number != int(page[1]) or holder.annotator.role == CROWD:
            return refusal(403, "This link is one of another project.")
        scope[_KEY] = holder
        return None

    def _holder(self, scope: Scope, token: str) -> Holder | Response:
        """The holder of a token. Only wrong tokens are guesses: a signed link opens, whoever else guesses."""
        found = self._projects.holder(token)
        if isinstance(found, Holder):
            return found
        address, now = (scope.get("client") or ("",))[0], self._projects.clock()
        if found == "invalid" and self._guesses.is_stopped(address, now):
            response = refusal(429, "Too many wrong links were tried. Wait a minute.", "Wait a minute")
            response.headers["retry-after"] = str(int(WINDOW_SECONDS))
            return response
        if found == "invalid":
            self._guesses.add(address, token, now)
        return refusal(403, ENDED[found], "This link does not open anything")

    def _welcome(self, token: str, holder: Holder) -> Response:
        number = holder.live.row.number
        left = int(holder.annotator.expires - self._projects.clock())
        cookie = Cookie(f"{self._prefix}{number}", token, self._encrypted, left)
        return welcome(f"{ROOT}/{number}/", cookie)


def _own_id(scope: Scope) -> str:
    """The id of a worker in the address of a crowd link; '' if there is none."""
    given = {name.casefold(): value for name, value in parse_qsl(scope["query_string"].decode("latin-1"))}
    return next((given[name] for name in OWN_IDS if name in given), "")


def holder_of(request: Request) -> Holder:
    holder: Holder = request.scope[_KEY]
    return holder


# -- How many wrong tokens an address of the network may try

WRONG_TOKENS = 20
"""The different wrong tokens that an address may show in WINDOW_SECONDS."""

WINDOW_SECONDS = 60.0
MOST_ADDRESSES = 10_000


class Guesses:
    """The wrong tokens of the last minute, by address. A browser that repeats one is not stopped."""

    def __init__(self) -> None:
        self._lock = Lock()
        self._times: dict[str, dict[bytes, float]] = {}

    def add(self, address: str, token: str, now: float) -> None:
        """Note a wrong token; `now` is in seconds since 1970."""
        digest = bytes.fromhex(text_digest(token))
        with self._lock:
            if len(self._times) > MOST_ADDRESSES:
                self._times = {name: times for name in self._times if (times := self._recent(name, now))}
            times = self._recent(address, now)
            if len(times) < WRONG_TOKENS:
                times[digest] = now
            self._times[address] = times

    def is_stopped(self, address: str, now: float) -> bool:
        """Whether an address has tried too many wrong tokens; `now` is in seconds since 1970."""
        with self._lock:
            return len(self._recent(address, now)) >= WRONG_TOKENS

    def _recent(self, address: str, now: float) -> dict[bytes, float]:
        times = self._times.get(address, {})
        return {digest: time for digest, time in times.items() if now - time < WINDOW_SECONDS}
