"""Groups in the terminal: the question, the image as a link, and a line for each answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from sightline.outcome_index.images import ImageError, RunImages
from sightline.outcome_index.index import OutcomeIndex
from sightline.outcome_index.types import ChangedGroup, GroupDetail, GroupRow, IndexedImage
from sightline.output import print_note
from sightline.reporting.console import Console
from sightline.types import Outcome
from sightline.visible import visible

LONGEST = 280
"""The most characters of a response or context; the whole text is in the results folder and in `--json`."""

MARKS = {
    "right": ("✓", "cyan"),
    "wrong": ("✗", "red"),
    "undecided": ("?", "yellow"),
    "miss": ("–", "magenta"),
    "refused": ("/", "magenta"),
    "error": ("!", "bright_black"),
    "unscored": ("·", "bright_black"),
}
"""Verdict -> its mark and its colour."""


class ShownGroups(Struct, frozen=True):
    """The first groups of a list; `total` is the number of groups in the list."""

    run: int
    total: int
    groups: Sequence[GroupDetail]


class FlippedGroups(Struct, frozen=True):
    """The first groups in which an answer became right or wrong from a run to another one."""

    run: int
    other: int
    total: int
    groups: Sequence[ChangedGroup]


def print_groups(shown: ShownGroups | FlippedGroups, index: OutcomeIndex) -> None:
    """Print groups on standard output.

    Args:
        shown: The groups.
        index: Where their images are looked up.
    """
    console = Console(highlight=False)
    problems: list[ImageError] = []
    images = index.images(shown.run if isinstance(shown, ShownGroups) else shown.other)
    for place, sides in enumerate(_sides(shown), start=1):
        detail = sides[-1][1]
        console.print(_title(place, detail.row))
        for question in dict.fromkeys(one.question for one in detail.outcomes):
            console.print(Padding(Text(_short(question)), (0, 0, 0, 3)))
        for image in dict.fromkeys(image for several in detail.images for image in several):
            console.print(Padding(_link(image, images, problems), (0, 0, 0, 3)), soft_wrap=True)
        console.print(Padding(_answers(sides), (0, 0, 1, 3)))
    listed = len(shown.groups)
    console.print(Text(f"{listed} of {shown.total} groups" if listed else "no group", style="bold"))
    if problems:
        print_note(f"{len(problems)} images are not found; the first one: {problems[0]}")


def _sides(shown: ShownGroups | FlippedGroups) -> Iterator[list[tuple[int, GroupDetail]]]:
    """Each group with the number of its run; of a flipped group, in both runs."""
    if isinstance(shown, ShownGroups):
        yield from ([(shown.run, detail)] for detail in shown.groups)
    else:
        yield from ([(shown.run, one.base), (shown.other, one.other)] for one in shown.groups)


def _title(place: int, row: GroupRow) -> Text:
    draw = f", draw {row.draw}" if row.draw else ""
    title = Text(
        f"{place}  {visible(row.sample)}{draw}{' ' + visible(row.pooled) if row.pooled else ''}", "bold"
    )
    for flag in row.flags:
        title.append(f"  {flag}", "red")
    if row.similarity is not None:
        title.append(f"  least similarity {row.similarity:.2f}", "not bold")
    labels = ", ".join(f"{visible(name)}: {visible(value)}" for name, value in row.labels)
    return title.append(f"  {labels}", "not bold bright_black") if labels else title


def _link(image: IndexedImage, images: RunImages, problems: list[ImageError]) -> Text:
    """The path of an image, a link in terminals that have links. Not found: its name, and a problem more."""
    try:
        path = Path(images.find(image.path, image.digest).path)
    except ImageError as error:
        problems.append(error)
        return Text(visible(image.path), "bright_black")
    return Text(visible(str(path)), Style(link=path.resolve().as_uri()))


def _answers(sides: Sequence[tuple[int, GroupDetail]]) -> Table:
    """A row for each probe: its verdict and response in each run, and what differs between the probes."""
    outcomes = sides[-1][1].outcomes
    grid = Table(
        box=None, padding=(0, 2, 0, 0), show_header=True, header_style="bright_black", pad_edge=False
    )
    grid.add_column("", no_wrap=True)
    for run, _ in sides:
        grid.add_column(f"response, run {run}" if len(sides) > 1 else "response", ratio=3)
    grid.add_column("reference", ratio=1)
    if any(one.context for one in outcomes):
        grid.add_column("context", ratio=2)
    earlier = [{(one.variant, one.draw): one for one in detail.outcomes} for _, detail in sides]
    for one in outcomes:
        found = [by_probe.get((one.variant, one.draw)) for by_probe in earlier]
        cells = [Text(visible(one.variant)), *map(_response, found), Text(_short(" | ".join(one.references)))]
        if len(grid.columns) > len(cells):
            cells.append(Text(_short(one.context), "bright_black"))
        grid.add_row(*cells)
    return grid


def _response(outcome: Outcome | None) -> Text:
    if outcome is None:
        return Text("(no such probe)", "bright_black")
    mark, colour = MARKS[outcome.verdict]
    text = Text(f"{mark} {outcome.verdict}  ", colour)
    missing = {"empty": "(empty)", "not_sent": "(not sent)", "error": f"({outcome.error})"}.get(
        outcome.status
    )
    return text.append(_short(missing or outcome.response), "bright_black" if missing else "default")


def _short(text: str) -> str:
    """One visible line of a text: its beginning and its end, where answers often stand."""
    line = visible(" ".join(text.split()))
    if len(line) <= LONGEST:
        return line
    half = (LONGEST - 5) // 2
    return f"{line[:half]} [...] {line[-half:]}"
