"""How many wrong tokens an address of the network may try."""

from __future__ import annotations

from threading import Lock

from sightline.formats.digests import text_digest

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
        """Note a wrong token.

        Args:
            now: Seconds since 1970.
        """
        digest = bytes.fromhex(text_digest(token))
        with self._lock:
            if len(self._times) > MOST_ADDRESSES:
                self._times = {name: times for name in self._times if (times := self._recent(name, now))}
            times = self._recent(address, now)
            if len(times) < WRONG_TOKENS:
                times[digest] = now
            self._times[address] = times

    def is_stopped(self, address: str, now: float) -> bool:
        """Whether an address has tried too many wrong tokens.

        Args:
            now: Seconds since 1970.
        """
        with self._lock:
            return len(self._recent(address, now)) >= WRONG_TOKENS

    def _recent(self, address: str, now: float) -> dict[bytes, float]:
        times = self._times.get(address, {})
        return {digest: time for digest, time in times.items() if now - time < WINDOW_SECONDS}
