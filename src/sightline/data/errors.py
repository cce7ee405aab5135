"""Why an image was not to be had."""

from __future__ import annotations

LONGEST_DETAIL = 300


class DownloadError(Exception):
    """An image that was not fetched: the `reason` in a word or two, which counts, and the `detail`.

    `passing`: it may be had if it is asked for again, after `wait` seconds where the server says for how
    long. A detail may hold a server's own words: it is cut, and nothing in it moves a terminal's cursor.
    """

    def __init__(self, reason: str, detail: str, *, passing: bool = False, wait: float | None = None) -> None:
        self.reason, self.passing, self.wait = reason, passing, wait
        self.detail = "".join(sign if sign.isprintable() else " " for sign in detail[:LONGEST_DETAIL])
        super().__init__(f"{reason}: {self.detail}")
