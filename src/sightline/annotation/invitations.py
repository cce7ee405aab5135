"""Invitations: personal links for annotators, their renewal and their end."""

from __future__ import annotations

from collections.abc import Iterable

from msgspec.structs import replace

from sightline.annotation.store import AnnotationStore, ProjectRow
from sightline.annotation.task import ADJUDICATOR, RATER
from sightline.annotation.types import Annotator
from sightline.errors import UserError, unknown_name

ROLES = (RATER, ADJUDICATOR)
LONGEST_NAME = 100


def invite(
    store: AnnotationStore,
    row: ProjectRow,
    name: str,
    expires: float,
    *,
    role: str = RATER,
    strata: tuple[str, ...] = (),
) -> Annotator:
    """Invite somebody; an annotator who was invited before gets a new link, and the old one ends.

    Args:
        expires: When the link ends, in seconds since 1970.
    """
    name = " ".join(name.split())
    check_name(name)
    if role not in ROLES:
        raise unknown_name("role", role, ROLES)
    known = {item.stratum for item in store.items(row.number)} if strata else set()
    for stratum in strata:
        if stratum not in known:
            raise unknown_name("stratum", stratum, sorted(known))
    for other in _disjoint_projects(store.projects(), row):
        if any(one.name.casefold() == name.casefold() for one in store.annotators(other.number)):
            raise UserError(
                f"'{name}' is an annotator of the project {other.project.name}",
                expected=f"somebody else: nobody takes part in {other.project.task.name} and "
                f"{row.project.task.name} on the same data",
            )
    for one in store.annotators(row.number):
        if one.name.casefold() == name.casefold():
            if one.role != role:
                raise UserError(
                    f"'{one.name}' has the role {one.role}", expected="another name for another role"
                )
            if strata:
                store.change_annotator(row.number, one.number, lambda found: replace(found, strata=strata))
            return renew(store, row, one.number, expires)
    return store.invite(row.number, Annotator(0, name, role, expires=expires, strata=strata))


def check_name(name: str) -> None:
    """Check the name of an annotator."""
    if not name or len(name) > LONGEST_NAME or not name.isprintable():
        raise UserError("the name cannot be used", found=name, expected=f"1 to {LONGEST_NAME} characters")


def renew(store: AnnotationStore, row: ProjectRow, number: int, expires: float) -> Annotator:
    """Give an annotator a new link; the old one ends.

    Args:
        expires: When the link ends, in seconds since 1970.
    """
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
