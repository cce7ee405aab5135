"""The error of a failed image download."""

from __future__ import annotations

from sightline.visible import visible

MAX_DETAIL = 300
"""The most characters of an error's detail."""


class DownloadError(Exception):
    """A failed image download: the `reason` in a few words, by which failures are counted, and the `detail`.

    `retryable` means that another attempt may succeed, after `wait` seconds if the server gave a time. A
    detail may contain text from a server, so it is cut and shown in one line.
    """

    def __init__(
        self, reason: str, detail: str, *, retryable: bool = False, wait: float | None = None
    ) -> None:
        self.reason, self.retryable, self.wait = reason, retryable, wait
        self.detail = visible(detail[:MAX_DETAIL])
        super().__init__(f"{reason}: {self.detail}")
