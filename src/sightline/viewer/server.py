"""Starts the web server: the address, the URL with the token, the warnings, and the end by Ctrl-C."""

from __future__ import annotations

import errno
import secrets
import socket
import ssl
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path
from urllib.parse import urlsplit

from msgspec import Struct
from starlette.types import ASGIApp

from sightline.errors import UserError
from sightline.evaluation.run_images import ImageError
from sightline.models.base import is_loopback
from sightline.store.store import Store
from sightline.text import counted
from sightline.viewer.access import TOKEN, Access
from sightline.viewer.index import OutcomeIndex

SECONDS_TO_END = 2
"""How long responses in progress may take after Ctrl-C."""


class Listening(Struct, frozen=True, kw_only=True):
    """Where the server listens; without a certificate there is no TLS.

    The key is None if the certificate's file holds it.
    """

    host: str = "127.0.0.1"
    port: int = 8765
    names: Sequence[str] = ()
    certificate: Path | None = None
    key: Path | None = None
    url: str = ""

    @property
    def is_local(self) -> bool:
        return is_loopback(self.host)


def bind(listening: Listening) -> socket.socket:
    host, port = listening.host, listening.port
    try:
        family, kind, protocol, _, address = socket.getaddrinfo(
            host, port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
        )[0]
    except OSError as error:
        raise UserError(f"--host {host}: {error.strerror}", expected="an address of this computer") from None
    bound = socket.socket(family, kind, protocol)
    bound.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    try:
        bound.bind(address)
        bound.listen()  # From here on, browsers wait for the server instead of failing.
    except OSError as error:
        bound.close()
        if error.errno == errno.EADDRINUSE:
            raise UserError(
                f"port {port} of {host} is in use", expected="--port 0 for a free port, or another number"
            ) from None
        expected = "a port above 1023" if error.errno == errno.EACCES else "an address of this computer"
        raise UserError(f"cannot listen on {host}:{port}: {error.strerror}", expected=expected) from None
    return bound


def check_certificate(listening: Listening) -> None:
    if listening.certificate is None:
        if listening.key is not None:
            raise UserError("--tls-key has no certificate", expected="--tls-certificate FILE too")
        return
    try:
        ssl.create_default_context(ssl.Purpose.CLIENT_AUTH).load_cert_chain(
            listening.certificate, listening.key
        )
    except OSError as error:
        raise UserError(
            f"the certificate cannot be used: {error.strerror or error}",
            file=listening.certificate,
            expected="--tls-certificate FILE and --tls-key FILE in PEM format, without a password",
        ) from None


def access_of(listening: Listening, port: int) -> Access:
    """The rules of access, with a new token."""
    own = () if listening.is_local else (listening.host, socket.gethostname(), socket.getfqdn())
    behind = [urlsplit(listening.url).hostname or ""] if listening.url else []
    return Access(
        token=secrets.token_urlsafe(24),
        names=frozenset(name.lower() for name in (*own, *listening.names, *behind)),
        port=port,
        encrypted=listening.certificate is not None or listening.url.startswith("https:"),
    )


def url_of(listening: Listening, access: Access) -> str:
    return f"{base_url(listening, access)}/?{TOKEN}={access.token}"


def base_url(listening: Listening, access: Access) -> str:
    if listening.url:
        return listening.url
    host = listening.host
    if host in ("0.0.0.0", "::"):
        host = socket.gethostname()
    if ":" in host:
        host = f"[{host}]"
    return f"{'https' if access.encrypted else 'http'}://{host}:{access.port}"


def read_url(url: str) -> str:
    expected = "--url https://HOST, without a path: the paths of pages begin at the host"
    try:
        parts = urlsplit(url)
        named = parts.hostname and parts.port != 0 and parts.username is None
    except ValueError:
        named = False
    if (
        not named
        or parts.scheme not in ("http", "https")
        or parts.path.strip("/")
        or parts.query
        or parts.fragment
    ):
        raise UserError("--url is no URL of a server", found=url, expected=expected)
    return url.rstrip("/")


def warning_of(listening: Listening) -> str:
    """What to warn of; '' if there is nothing."""
    if listening.is_local or listening.certificate is not None:
        return ""
    return (
        f"warning: other computers can connect to {listening.host}, and the connection is not encrypted: "
        "whoever reads the network can read the token and all pages. Use --tls-certificate FILE, or an "
        "SSH tunnel to the default address"
    )


def run_server(app: ASGIApp, bound: socket.socket, listening: Listening) -> None:
    """Answer requests until Ctrl-C or SIGTERM."""
    import uvicorn

    config = uvicorn.Config(
        app,
        log_level="warning",
        access_log=False,  # The log would hold the token.
        server_header=False,
        proxy_headers=False,
        ws="none",
        timeout_graceful_shutdown=SECONDS_TO_END,
        ssl_certfile=listening.certificate,
        ssl_keyfile=listening.key,
    )
    try:
        # The server ends, restores the signal handlers, then raises the signal again.
        with suppress(KeyboardInterrupt):
            uvicorn.Server(config).run(sockets=[bound])
    finally:
        bound.close()


# -- What `sightline serve` says at its start of data folders that lack the images of the runs

MOST_RUNS = 20
"""The runs that are looked at, the latest ones."""


def missing_images_note(store: Store, data: Sequence[Path]) -> str:
    """Look for one image of each of the latest indexed runs; name those without, and the remedy."""
    index = OutcomeIndex(store, data)
    ready = [one.run for one in index.runs() if one.state.step == "ready"][-MOST_RUNS:]
    problems = {run: problem for run in ready if (problem := _problem(index, run)) is not None}
    if not problems:
        return ""
    first, reason = next(iter(problems.items()))
    more = f" and {counted(len(problems) - 1, 'other run')}" if len(problems) > 1 else ""
    return (
        f"the images of run {first}{more} are not in {', '.join(map(str, data))}, so that they are not shown"
        f" ({reason}); name their data folder with --data DIR"
    )


def _problem(index: OutcomeIndex, run: int) -> ImageError | None:
    """Why the first image of a run is not found."""
    rows = index.open(run).page(limit=1).rows
    image = rows[0].image if rows else None
    if image is None:
        return None
    try:
        index.images(run).find(image.path, image.digest)
    except ImageError as error:
        return error
    return None
