"""`sightline annotate invite`: make personal links for annotators."""

from __future__ import annotations

import argparse
import re
import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from sightline.cli.annotation_arguments import add_project, opened_project
from sightline.cli.printing import print_json
from sightline.errors import UserError, unknown_name
from sightline.local_time import local_time
from sightline.output import print_line, print_note, print_url

if TYPE_CHECKING:
    from sightline.annotation.served_url import ServedUrl
    from sightline.annotation.store import AnnotationStore, ProjectRow

SUMMARY = "make personal links for annotators; each link opens one annotator's items"

EXAMPLE = """examples:
  sightline annotate invite blind Anna Ben Chloe
  sightline annotate invite table8 Dora --role adjudicator
  sightline annotate invite blind Anna --expires 30d --url https://annotate.example.org
  sightline annotate invite blind Ben --revoke

An annotator who is invited again gets a new link, and the old one ends; judgements stay. A pseudonym is
enough as a name. Whoever has a link can judge in its name: send it to one person only. Without --url, links
begin with the URL at which this store was served last, and a note says so.
"""

DEFAULT = "http://127.0.0.1:8765"
"""Where `sightline serve` is without options."""

UNITS = {"h": 3600, "d": 86400, "w": 7 * 86400}


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `annotate invite`."""
    parser.epilog = EXAMPLE
    add_project(parser)
    add = parser.add_argument
    add("names", nargs="+", metavar="NAME", help="name or pseudonym of an annotator")
    add("--role", default="rater", help="rater, or adjudicator, who gets only items without a decision")
    add("--stratum", action="append", default=[], metavar="S", help="only items of this stratum; may repeat")
    add(
        "--expires",
        default="14d",
        metavar="TIME",
        help="when the links end, such as 12h, 14d, 4w (default: 14d)",
    )
    add("--url", metavar="BASE", help="URL of `sightline serve` (default: where this store was served last)")
    add("--revoke", action="store_true", help="end the links of these annotators")
    add("--json", action="store_true", help="print the links as JSON")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Invite, and print the links."""
    from sightline.annotation.invitations import invite
    from sightline.annotation.links import token_of
    from sightline.annotation.served_url import served_url

    expires = time.time() + _seconds(options.expires)
    url = (options.url or "").rstrip("/")
    if options.url and not re.match(r"https?://[^/]", url):
        raise UserError("--url is no URL", found=options.url, expected="such as https://annotate.example.org")
    with opened_project(options.project, options.store) as (store, row):
        if options.revoke:
            _revoke(store, row, options.names)
            return 0
        served = served_url(store.database)
        invited = [
            invite(store, row, name, expires, role=options.role, strata=tuple(options.stratum))
            for name in options.names
        ]
    base = url or (served.base if served else DEFAULT)
    links = {one.name: f"{base}/annotate/{token_of(row, one)}" for one in invited}
    if options.json:
        print_json(links)
    else:
        for name, link in links.items():
            print_url(name, link)
    if not url:
        print_note(_origin(base, served))
    print_note("the pages are there while `sightline serve` runs")
    return 0


def _origin(base: str, served: ServedUrl | None) -> str:
    """Why links begin with a URL that the user has not given."""
    if served is None:
        return (
            f"the links begin with {base}, the default of `sightline serve`: this store was never served."
            " If it is served elsewhere, repeat this command with --url BASE, or after `sightline serve`"
        )
    when = local_time(served.started)
    return f"the links begin with {base}, where this store was served last ({when}); --url BASE for another"


def _revoke(store: AnnotationStore, row: ProjectRow, names: Sequence[str]) -> None:
    from sightline.annotation.invitations import revoke

    present = {one.name.casefold(): one for one in store.annotators(row.number)}
    for name in names:
        if name.casefold() not in present:
            raise unknown_name("annotator", name, [one.name for one in present.values()])
    for name in names:
        revoke(store, row, present[name.casefold()].number)
        print_line(f"{name}: the link is revoked")


def _seconds(text: str) -> float:
    match = re.fullmatch(r"(\d{1,4})([hdw])", text)
    if match is None or not int(match[1]):
        raise UserError("--expires is no time", found=text, expected="such as 12h, 14d or 4w")
    return float(int(match[1]) * UNITS[match[2]])
