"""The digest of the data of an evaluation, which does not depend on the order of the samples."""

from __future__ import annotations

import hashlib

_DIGITS = 32
"""Hexadecimal digits of a digest. Earlier versions wrote 64, of the samples in their order."""

_BETWEEN = "-"
"""Stands between the digest of the texts and that of the first images."""


class SetDigest:
    """The digest of texts in any order: the sum of their SHA-256, so that memory does not grow.

    >>> first, second = SetDigest(), SetDigest()
    >>> for text in (b"a", b"b"):
    ...     first.add(text)
    >>> for text in (b"b", b"a"):
    ...     second.add(text)
    >>> first.hexdigest() == second.hexdigest()
    True
    """

    def __init__(self) -> None:
        """Start without texts."""
        self._sum = 0

    def add(self, text: bytes) -> None:
        """Add a text.

        Args:
            text: The text. A text that is added twice counts twice.
        """
        self._sum += int.from_bytes(hashlib.sha256(text).digest())

    def hexdigest(self) -> str:
        """The digest of the texts so far.

        Returns:
            32 hexadecimal digits.
        """
        return f"{self._sum % 16**_DIGITS:0{_DIGITS}x}"


def with_images(texts: str, images: str) -> str:
    """Join the digest of the texts of all samples and that of their first images.

    Args:
        texts: The digest of the texts.
        images: The digest of the images.

    Returns:
        The `data_digest` of a result.
    """
    return texts + _BETWEEN + images


def texts_of(data_digest: str) -> str:
    """Take the digest of the texts from that of a run or of a result.

    Args:
        data_digest: The digest.

    Returns:
        The digest of the texts; '' if an earlier version wrote it, for which the order counted.
    """
    texts = data_digest.partition(_BETWEEN)[0]
    return texts if len(texts) == _DIGITS else ""
