"""The server that calls go to, and the heads of their requests."""

from __future__ import annotations

import re
from urllib.parse import quote, urlsplit

from sightline import __version__
from sightline.errors import UserError

USER_AGENT = f"sightline/{__version__}"

_CONTROL = re.compile(r"[\x00-\x1f\x7f]")
_SAFE_IN_PATH = "/%:@!$&'()*+,;="


class Target:
    """A server with its key, and what each request to it says.

    A control character in a header could end it and start another one, so that none is accepted.
    """

    def __init__(self, address: str, key: str | None) -> None:
        """Read the address.

        Args:
            key: The key; None for none.
        """
        if _CONTROL.search(address):
            raise UserError("the URL of a server contains a control character", found=address)
        parts = urlsplit(address)
        self.address = address
        self.hostname = parts.hostname or ""
        self.is_tls = parts.scheme == "https"
        default_port = 443 if self.is_tls else 80
        self.port = parts.port or default_port
        if key is not None and _CONTROL.search(key):
            # The message does not repeat the key.
            raise UserError(
                f"the API key for {self.hostname}:{self.port} contains a control character",
                expected="a key on one line",
            )
        self.headers = {"User-Agent": USER_AGENT, **({"Authorization": f"Bearer {key}"} if key else {})}
        self._path = parts.path
        host = _host_header(self.hostname, None if self.port == default_port else self.port)
        fields = {"Host": host, "Accept": "*/*", **self.headers}
        self._fields = "".join(f"{name}: {value}\r\n" for name, value in fields.items()).encode()

    def head(self, path: str, body: bytes | None) -> bytes:
        """The head of a request.

        Args:
            body: JSON to post; None for GET.

        Raises:
            ValueError: The path contains a control character.
        """
        if _CONTROL.search(path):
            raise ValueError("a path contains a control character")
        target = quote(self._path + path, safe=_SAFE_IN_PATH).encode()
        if body is None:
            return b"GET %b HTTP/1.1\r\n%b\r\n" % (target, self._fields)
        return b"POST %b HTTP/1.1\r\n%bContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % (
            target,
            self._fields,
            len(body),
        )


def _host_header(hostname: str, port: int | None) -> str:
    name = hostname if hostname.isascii() else hostname.encode("idna").decode()
    name = f"[{name}]" if ":" in name else name
    return name if port is None else f"{name}:{port}"
