"""Personal links: signed tokens that expire and can be revoked, and invitations.

They hold no name, only numbers, and give access to the items of one annotator.
"""

from __future__ import annotations

import base64
import hashlib
import hmac
import secrets
from collections.abc import Iterable, Mapping
from typing import Any, Literal

from msgspec import Struct
from msgspec.structs import replace

from sightline.annotation.store import AnnotationStore, ProjectRow
from sightline.annotation.task import ADJUDICATOR, CROWD, RATER
from sightline.annotation.types import Annotator
from sightline.errors import UserError, unknown_name

_SIGNATURE_BYTES = 18

Problem = Literal["invalid", "expired", "revoked"]


class Claim(Struct, frozen=True):
    """What a token says, before its signature is checked: project, annotator, version of the link, end."""

    project: int
    annotator: int
    version: int
    expires: int


def token_of(row: ProjectRow, annotator: Annotator) -> str:
    body = f"{row.number}.{annotator.number}.{annotator.version}.{int(annotator.expires)}"
    return f"{body}.{_signature(row.secret, f'link {body}')}"


def claim_of(token: str) -> Claim | None:
    """Read a token without a check of its signature; None if it has not the form of a token."""
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
    """Say what is wrong with a token; None if it gives access."""
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
    """Make the token of a form against forged ones; `item` is 0 for a form about no item."""
    return _signature(row.secret, f"form {annotator.number} {annotator.version} {item}")


def is_form_token(token: str, row: ProjectRow, annotator: Annotator, item: int) -> bool:
    return token.isascii() and hmac.compare_digest(token, form_token(row, annotator, item))


def _signature(secret: bytes, text: str) -> str:
    digest = hmac.new(secret, text.encode(), hashlib.sha256).digest()[:_SIGNATURE_BYTES]
    return base64.urlsafe_b64encode(digest).decode()


# -- Invitations: personal links for annotators, their renewal and their end

ROLES = (RATER, ADJUDICATOR, CROWD)
LONGEST_NAME = 100


def invite(
    store: AnnotationStore,
    row: ProjectRow,
    name: str,
    expires: float,
    *,
    role: str = RATER,
    strata: tuple[str, ...] = (),
    labels: Mapping[str, str] | None = None,
    most: int = 0,
    code: str = "",
) -> Annotator:
    """Invite somebody until `expires` (seconds since 1970); a new link ends an earlier one of the name."""
    name = " ".join(name.split())
    if role not in ROLES:
        raise unknown_name("role", role, ROLES)
    if most < 0 or (code and role != CROWD):
        raise UserError("--most is below 0, or --code is given to a role other than crowd", found=role)
    known = {item.stratum for item in store.items(row.number)} if strata else set()
    for stratum in strata:
        if stratum not in known:
            raise unknown_name("stratum", stratum, sorted(known))
    _check_apart(store, row, name)
    fields: dict[str, Any] = {"strata": strata, "labels": labels, "most": most, "code": code}
    given = {name: value for name, value in fields.items() if value}
    for one in store.annotators(row.number):
        if one.name.casefold() == name.casefold():
            if one.role != role:
                raise UserError(
                    f"'{one.name}' has the role {one.role}", expected="another name for another role"
                )
            if given:
                store.change_annotator(row.number, one.number, lambda found: replace(found, **given))
            return renew(store, row, one.number, expires)
    return store.invite(row.number, Annotator(0, name, role, expires=expires, **given))


def crowd_worker(store: AnnotationStore, row: ProjectRow, link: Annotator, own_id: str) -> Annotator:
    """The annotator of a worker who opens a crowd link, for the first time or again."""
    name = " ".join(own_id.split())
    _check_apart(store, row, name)
    for one in store.annotators(row.number):
        if one.name.casefold() == name.casefold():
            if one.crowd != link.name:
                raise UserError("this id is that of somebody with another link", found=name)
            return store.change_annotator(
                row.number, one.number, lambda found: replace(found, expires=link.expires)
            )
    code = link.code or secrets.token_hex(5).upper()
    worker = replace(link, number=0, name=name, role=RATER, version=1, crowd=link.name, code=code)
    return store.invite(row.number, worker)


def _check_apart(store: AnnotationStore, row: ProjectRow, name: str) -> None:
    """Refuse a name that cannot be used, or that takes part in a project that must be disjoint."""
    check_name(name)
    for other in _disjoint_projects(store.projects(), row):
        if any(one.name.casefold() == name.casefold() for one in store.annotators(other.number)):
            raise UserError(
                f"'{name}' is an annotator of the project {other.project.name}",
                expected=f"somebody else: nobody takes part in {other.project.task.name} and "
                f"{row.project.task.name} on the same data",
            )


def check_name(name: str) -> None:
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise UserError("the name cannot be used", found=name, expected=f"1 to {LONGEST_NAME} characters")


def renew(store: AnnotationStore, row: ProjectRow, number: int, expires: float) -> Annotator:
    """Give an annotator a new link until `expires` (seconds since 1970); the old one ends."""
    return store.change_annotator(
        row.number,
        number,
        lambda one: replace(one, version=one.version + 1, expires=expires, revoked=False),
    )


def revoke(store: AnnotationStore, row: ProjectRow, number: int) -> Annotator:
    """End the link of an annotator; the judgements stay."""
    return store.change_annotator(
        row.number, number, lambda one: replace(one, version=one.version + 1, revoked=True)
    )


def _disjoint_projects(rows: Iterable[ProjectRow], row: ProjectRow) -> list[ProjectRow]:
    """The projects whose annotators cannot take part in this one."""
    return [other for other in rows if other.number != row.number and _are_disjoint(row, other)]


def _are_disjoint(row: ProjectRow, other: ProjectRow) -> bool:
    one, two = row.project, other.project
    if two.name in one.disjoint or one.name in two.disjoint:
        return True
    names = {one.benchmark.partition(":")[0], two.benchmark.partition(":")[0]}
    same_data = (len(names) == 1 and "" not in names) or (one.data == two.data != "")
    return same_data and (two.task.name in one.task.disjoint or one.task.name in two.task.disjoint)
