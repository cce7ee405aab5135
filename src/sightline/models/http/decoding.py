"""Decompresses the bodies of servers that compress although they were not asked to."""

from __future__ import annotations

import zlib


class Decoder:
    """Decompresses one body as it arrives, and never more of it than is asked for."""

    def __init__(self, coding: str) -> None:
        """Prepare it.

        Raises:
            ValueError: The coding is neither gzip nor deflate.
        """
        if coding not in ("gzip", "x-gzip", "deflate"):
            raise ValueError(f"it is compressed with {coding[:40]!r}, which is not supported")
        self._is_deflate = coding == "deflate"
        self._stream: zlib._Decompress | None = None

    def decode(self, piece: bytes, most: int) -> bytes:
        """Decompress a piece.

        Args:
            most: The most bytes to return. What would exceed them is lost: the caller has reached its limit.

        Returns:
            The bytes.

        Raises:
            ValueError: The piece is invalid.
        """
        if self._stream is None:
            # Some servers send deflate without the header of zlib, whose first byte ends in 8.
            is_raw = self._is_deflate and piece[0] & 0xF != 8
            self._stream = zlib.decompressobj(
                -zlib.MAX_WBITS if is_raw else zlib.MAX_WBITS + (0 if self._is_deflate else 16)
            )
        try:
            decoded = self._stream.decompress(piece, most)
        except zlib.error as error:
            raise ValueError(f"it cannot be decompressed ({error})") from None
        if self._stream.eof and self._stream.unused_data:
            raise ValueError("data follow the end of the compressed body")
        return decoded

    def finish(self) -> None:
        """End the body. Raises ValueError if its end is missing."""
        if self._stream is not None and not self._stream.eof:
            raise ValueError("the end of the compressed body is missing")
