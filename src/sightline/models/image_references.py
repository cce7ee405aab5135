"""References to images in place of their bytes: what a server reads or has cached is not sent."""

from __future__ import annotations

from typing import Any, Protocol

from msgspec import Struct

from sightline.types import Failure, ImageFile, Request


class ImageTraffic(Struct, frozen=True):
    """The bytes of images in the bodies of requests to a server that accepts references.

    Attributes:
        sent: Bytes of the data URLs that were sent.
        not_sent: Bytes of the data URLs that were replaced by a reference.
        resent: Requests that were sent again with all bytes, because the server refused a reference.
    """

    sent: int = 0
    not_sent: int = 0
    resent: int = 0

    def plus(self, later: ImageTraffic) -> ImageTraffic:
        return ImageTraffic(
            self.sent + later.sent, self.not_sent + later.not_sent, self.resent + later.resent
        )

    def since(self, earlier: ImageTraffic) -> ImageTraffic:
        """Subtract what an earlier look showed."""
        return ImageTraffic(
            self.sent - earlier.sent, self.not_sent - earlier.not_sent, self.resent - earlier.resent
        )


class Exchange(Protocol):
    """How the images of one request are sent."""

    def reference(self, file: ImageFile) -> dict[str, Any] | None:
        """Refer to an image.

        Returns:
            The part of the message; None if the bytes must be sent.
        """
        ...

    def sends(self, file: ImageFile, url: bytes) -> dict[str, Any]:
        """Record that the bytes of an image are sent."""
        ...

    def is_refused(self, failure: Failure) -> bool:
        """Find out whether the server cannot use a reference. Afterwards `reference` returns None.

        Returns:
            Whether to send the request again, with all bytes.
        """
        ...

    def accepted(self) -> None:
        """Record that the server has answered."""
        ...


class ImageReferences(Protocol):
    """What is known of the images that one server can do without. Belongs to one event loop.

    Attributes:
        sends_once: Whether the bytes of an image are needed until a first request with it has an answer.
    """

    traffic: ImageTraffic
    sends_once: bool

    def probe(self, model: str) -> dict[str, Any] | None:
        """A request that a server answers only if it ignores references.

        Returns:
            The body; None if such a server refuses the first reference in any case.
        """
        ...

    def exchange(self, request: Request) -> Exchange:
        """Begin to send a request."""
        ...
