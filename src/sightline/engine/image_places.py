"""Where images are: which hosts have them, and which images are on their way to a host."""

from __future__ import annotations

REMEMBERED = 4096
"""Images whose host is remembered, and images of which a host is known to have them."""


class ImagePlaces:
    """What was sent to which host. Belongs to one event loop."""

    def __init__(self) -> None:
        self._hosts: dict[str, str] = {}
        self._arriving: dict[tuple[str, str], int] = {}
        self._arrived: dict[tuple[str, str], None] = {}

    def is_elsewhere(self, image: str, host: str) -> bool:
        """Find out whether an image was sent to another host last."""
        return self._hosts.get(image, host) != host

    def is_arriving(self, image: str, host: str) -> bool:
        """Find out whether a first request with an image has no answer yet."""
        return (host, image) in self._arriving

    def sent(self, image: str, host: str, *, may_arrive: bool) -> None:
        """Record that a request with an image is sent."""
        self._hosts.pop(image, None)
        self._hosts[image] = host
        if len(self._hosts) > REMEMBERED:
            del self._hosts[next(iter(self._hosts))]
        place = host, image
        if may_arrive and place not in self._arrived:
            self._arriving[place] = self._arriving.get(place, 0) + 1

    def ended(self, image: str, host: str) -> None:
        """Record that a request is not in flight any more."""
        place = host, image
        left = self._arriving.pop(place, 0) - 1
        if left > 0:
            self._arriving[place] = left
        self._arrived.pop(place, None)
        self._arrived[place] = None
        if len(self._arrived) > REMEMBERED:
            del self._arrived[next(iter(self._arrived))]
