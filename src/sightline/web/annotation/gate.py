"""Who may use the pages of annotators: personal links, which open one project's pages and nothing else."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Final

from starlette.requests import Request
from starlette.responses import Response
from starlette.types import Scope

from sightline.annotation.links import Problem
from sightline.web.access_pages import Cookie, refusal, welcome
from sightline.web.annotation.guesses import WINDOW_SECONDS, Guesses
from sightline.web.annotation.projects import Holder, Projects

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


class Gate:
    """Lets annotators in: `/annotate/TOKEN` sets the cookie of a project, its other pages need the cookie."""

    def __init__(self, projects: Projects, port: int, *, encrypted: bool) -> None:
        self._projects = projects
        self._prefix = f"sightline-annotate-{port}-"
        self._encrypted = encrypted
        self._guesses = Guesses()

    def is_for(self, path: str) -> bool:
        """Whether a path is one of annotators."""
        return path == ROOT or path.startswith(f"{ROOT}/")

    def shares(self, scope: Scope, cookies: Mapping[str, str]) -> bool:
        """Whether an annotator may have what is not of a project: styles, scripts, the icon."""
        if not scope["path"].startswith(("/static/", "/favicon.ico")):
            return False
        tokens = [value for name, value in cookies.items() if name.startswith(self._prefix)]
        return any(isinstance(self._holder(scope, token), Holder) for token in tokens)

    def answer(self, scope: Scope, cookies: Mapping[str, str]) -> Response | None:
        """Refuse a request, or set the cookie, or let the request pass with its holder.

        Returns:
            The response; None if the request passes.
        """
        if link := _LINK.fullmatch(scope["path"]):
            if scope["method"] != "GET":
                return refusal(405, "A link can only be opened.")
            holder = self._holder(scope, link[1])
            return self._welcome(link[1], holder) if isinstance(holder, Holder) else holder
        page = _PAGE.fullmatch(scope["path"])
        token = cookies.get(self._prefix + page[1].lstrip("0")) if page else None
        if page is None or token is None:
            return refusal(403, "Open the personal link that you were given.")
        holder = self._holder(scope, token)
        if not isinstance(holder, Holder):
            return holder
        if holder.live.row.number != int(page[1]):
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


def holder_of(request: Request) -> Holder:
    """The holder of the link with which a request came."""
    holder: Holder = request.scope[_KEY]
    return holder
