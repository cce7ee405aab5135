"""Personal links: tokens that are signed with the secret of a project, expire, and can be revoked.

They hold no name, only numbers, and give access to the items of one annotator.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
from typing import Literal

from msgspec import Struct

from sightline.annotation.store import ProjectRow
from sightline.annotation.types import Annotator

_SIGNATURE_BYTES = 18

Problem = Literal["invalid", "expired", "revoked"]


class Claim(Struct, frozen=True):
    """What a token says, before its signature is checked: project, annotator, version of the link, end."""

    project: int
    annotator: int
    version: int
    expires: int


def token_of(row: ProjectRow, annotator: Annotator) -> str:
    """Make the token of an annotator's link."""
    body = f"{row.number}.{annotator.number}.{annotator.version}.{int(annotator.expires)}"
    return f"{body}.{_signature(row.secret, f'link {body}')}"


def claim_of(token: str) -> Claim | None:
    """Read a token. Its signature is not checked yet.

    Returns:
        What it claims; None if it has not the form of a token.
    """
    parts = token.split(".")
    if (
        len(parts) != 5
        or len(token) > 200
        or not token.isascii()
        or not all(part.isdecimal() for part in parts[:4])
    ):
        return None
    return Claim(*map(int, parts[:4]))


def check(token: str, row: ProjectRow, annotator: Annotator | None, now: float) -> Problem | None:
    """Check a token.

    Args:
        annotator: The annotator that it claims; None if the project has none of this number.
        now: Seconds since 1970.

    Returns:
        What is wrong; None if it gives access.
    """
    claim = claim_of(token)
    body, _, signature = token.rpartition(".")
    if claim is None or not hmac.compare_digest(signature, _signature(row.secret, f"link {body}")):
        return "invalid"
    if annotator is None or claim.project != row.number or claim.annotator != annotator.number:
        return "invalid"
    if annotator.revoked or claim.version != annotator.version:
        return "revoked"
    return "expired" if claim.expires <= now else None


def image_name(row: ProjectRow, item: int, digest: str) -> str:
    """Name an image of an item on pages: neither path nor digest, and other names in each item."""
    return _signature(row.secret, f"image {item} {digest}")


def form_token(row: ProjectRow, annotator: Annotator, item: int) -> str:
    """Make the token that a form about an item holds, against forged forms.

    Args:
        item: The number of the item; 0 for a form about none.
    """
    return _signature(row.secret, f"form {annotator.number} {annotator.version} {item}")


def is_form_token(token: str, row: ProjectRow, annotator: Annotator, item: int) -> bool:
    return token.isascii() and hmac.compare_digest(token, form_token(row, annotator, item))


def _signature(secret: bytes, text: str) -> str:
    digest = hmac.new(secret, text.encode(), hashlib.sha256).digest()[:_SIGNATURE_BYTES]
    return base64.urlsafe_b64encode(digest).decode()
