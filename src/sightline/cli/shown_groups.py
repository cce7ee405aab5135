"""Groups in the terminal: the question, the image as a link, and a line for each answer."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path

from msgspec import Struct
from rich.console import RenderableType
from rich.padding import Padding
from rich.style import Style
from rich.table import Table
from rich.text import Text

from sightline.errors import visible
from sightline.evaluation.run_images import NOT_SENT, ImageError, RunImages
from sightline.reporting.table import Console, WithoutPadding
from sightline.text import counted, print_note
from sightline.types import Outcome
from sightline.viewer.index import OutcomeIndex
from sightline.viewer.index_types import ChangedGroup, GroupDetail, IndexedImage

LONGEST = 280
"""The most characters of a response or context; the whole text is in the results folder and in `--json`."""

LONGEST_REASONING = 90
"""The most characters of a response's reasoning."""

LEAST_WIDTH = 100
"""The width of a terminal that has room for responses, references and contexts beside each other."""

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


def print_groups(shown: ShownGroups | FlippedGroups, index: OutcomeIndex, names: Sequence[str]) -> None:
    """Print groups on standard output."""
    console = Console(highlight=False)
    problems: list[ImageError] = []
    images = index.images(shown.run if isinstance(shown, ShownGroups) else shown.other)
    for place, sides in enumerate(_sides(shown), start=1):
        detail = sides[-1][1]
        change = None if isinstance(shown, ShownGroups) else shown.groups[place - 1].change
        console.print(WithoutPadding(_title(place, detail, change)))
        console.print(WithoutPadding(Padding(_questions(detail.outcomes), (0, 0, 0, 3))))
        for image in dict.fromkeys(image for several in detail.images for image in several):
            console.print(Text("   ").append_text(_link(image, images, problems)), soft_wrap=True)
        answers = _answers([one for _, one in sides], names, console.width)
        console.print(WithoutPadding(Padding(answers, (0, 0, 1, 3))))
    listed = len(shown.groups)
    console.print(
        Text(f"{listed} of {counted(shown.total, 'group')}" if listed else "no group", style="bold")
    )
    if problems:
        missing = "1 image is" if len(problems) == 1 else f"{len(problems)} images are"
        print_note(f"{missing} not found; the first one: {problems[0]}")


def _sides(shown: ShownGroups | FlippedGroups) -> Iterator[list[tuple[int, GroupDetail]]]:
    """Each group with the number of its run; of a flipped group, in both runs."""
    if isinstance(shown, ShownGroups):
        yield from ([(shown.run, detail)] for detail in shown.groups)
    else:
        yield from ([(shown.run, one.base), (shown.other, one.other)] for one in shown.groups)


def _title(place: int, detail: GroupDetail, change: str | None) -> Table:
    """The number of a group, and beside it what stands out: flags, change, least similar pair, labels."""
    row = detail.row
    draw = f", draw {row.draw}" if row.draw else ""
    title = Text(f"{visible(row.sample)}{draw}{' ' + visible(row.pooled) if row.pooled else ''}", "bold")
    if change is not None:
        title.append(f"  {change}", "cyan" if change == "gained" else "red")
    for flag in row.flags:
        title.append(f"  {flag}", "red")
    if row.similarity is not None:
        title.append(f"  least similarity {row.similarity:.2f}{_least_similar(detail)}", "not bold")
    values: dict[str, list[str]] = {}
    for name, value in row.labels:
        values.setdefault(visible(name), []).append(visible(value))
    labels = "; ".join(f"{name}: {', '.join(held)}" for name, held in values.items())
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(style="bold", no_wrap=True)
    grid.add_column()
    grid.add_row(str(place), title.append(f"  {labels}", "not bold bright_black") if labels else title)
    return grid


def _least_similar(detail: GroupDetail) -> str:
    """The least similar pair of answers, and the similarity above which a pair is consistent."""
    matrix = detail.similarity
    if matrix is None:
        return ""
    pairs = [
        (value, matrix.variants[first], matrix.variants[second])
        for first, row in enumerate(matrix.values)
        for second, value in enumerate(row[:first])
        if value is not None
    ]
    if not pairs:
        return ""
    _, first, second = min(pairs, key=lambda pair: pair[0])
    return f" of {visible(second)} and {visible(first)} (consistent above {matrix.threshold:g})"


def _questions(outcomes: Sequence[Outcome]) -> RenderableType:
    """The questions; several ones with the names of their probes, as the answers have them."""
    asked: dict[str, list[str]] = {}
    for one in outcomes:
        asked.setdefault(one.question, []).append(visible(one.variant))
    if len(asked) == 1:
        return Text(_short(next(iter(asked))))
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for question, variants in asked.items():
        grid.add_row(", ".join(dict.fromkeys(variants)), Text(_short(question)))
    return grid


def _link(image: IndexedImage, images: RunImages, problems: list[ImageError]) -> Text:
    """The path of an image, a link in terminals that have links. Not found: its name, and a problem more."""
    try:
        path = Path(images.find(image.path, image.digest).path)
    except ImageError as error:
        problems.append(error)
        return Text(visible(image.path), "bright_black")
    link = Text(visible(str(path)), Style(link=path.resolve().as_uri()))
    return link if image.is_sent else link.append(f"  {NOT_SENT}", Style(color="bright_black", link=None))


def _answers(sides: Sequence[GroupDetail], names: Sequence[str], width: int) -> RenderableType:
    """Each probe: its verdict and response in each run, its reference and what it was asked with.

    A row for each probe, or in a narrow terminal the cells of each probe one below the other.
    """
    responses = [f"response, {visible(name)}" for name in names] if len(sides) > 1 else ["response"]
    heads = [*responses, "reference", "context"]
    earlier = [{(one.variant, one.draw): one for one in detail.outcomes} for detail in sides]
    rows = [
        (
            Text(visible(one.variant)),
            *(_response(by_probe.get((one.variant, one.draw))) for by_probe in earlier),
            Text(_short(" | ".join(one.references))),
            Text(_short(one.context), "bright_black"),
        )
        for one in sides[-1].outcomes
    ]
    return _beside(heads, rows) if width >= LEAST_WIDTH else _stacked(heads, rows)


def _beside(heads: Sequence[str], rows: Sequence[Sequence[Text]]) -> Table:
    """A table with a row for each probe; a column without a text is left out."""
    filled = [nth for nth in range(len(heads)) if any(row[nth + 1] for row in rows)]
    grid = Table(box=None, padding=(0, 2, 0, 0), header_style="bright_black", pad_edge=False)
    grid.add_column("", no_wrap=True)
    for nth in filled:
        grid.add_column(heads[nth], ratio=3 if heads[nth].startswith("response") else 2)
    for row in rows:
        grid.add_row(row[0], *(row[nth + 1] for nth in filled))
    return grid


def _stacked(heads: Sequence[str], rows: Sequence[Sequence[Text]]) -> Table:
    """The name of each probe, and below it its cells that hold a text."""
    grid = Table.grid(padding=(0, 2, 0, 0))
    grid.add_column(no_wrap=True)
    grid.add_column()
    for name, *cells in rows:
        for head, cell in zip(("", *heads), (name, *cells), strict=True):
            if cell:
                grid.add_row(*((name, "") if cell is name else (Text(f"  {head}", "bright_black"), cell)))
    return grid


def _response(outcome: Outcome | None) -> Text:
    if outcome is None:
        return Text("(no such probe)", "bright_black")
    mark, colour = MARKS[outcome.verdict]
    text = Text(f"{mark} {outcome.verdict}  ", colour)
    missing = {"empty": "(empty)", "not_sent": "(not sent)", "error": f"({outcome.error})"}.get(
        outcome.status
    )
    text.append(_short(missing or outcome.response), "bright_black" if missing else "default")
    if outcome.extracted and outcome.extracted != outcome.response:
        text.append(f"\nextracted: {_short(outcome.extracted)}", "bright_black")
    if outcome.reasoning:
        text.append(f"\nreasoning: {_short(outcome.reasoning, LONGEST_REASONING)}", "bright_black")
    return text


def _short(text: str, longest: int = LONGEST) -> str:
    """One visible line of a text: its beginning and its end, where answers often stand."""
    line = visible(" ".join(text.split()))
    if len(line) <= longest:
        return line
    half = (longest - 5) // 2
    return f"{line[:half]} [...] {line[-half:]}"
