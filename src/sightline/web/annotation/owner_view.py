"""What the owner's page shows beside the overview: the chart, the links, what to settle first."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from msgspec import Struct

from sightline.annotation.agreement import AgreementPoint
from sightline.annotation.decisions import settlers
from sightline.annotation.labels import open_labels
from sightline.annotation.links import token_of
from sightline.annotation.overview import Overview
from sightline.annotation.state import State
from sightline.annotation.store import ProjectRow
from sightline.annotation.task import Task
from sightline.annotation.types import Annotator, Entry, Item, Values
from sightline.metrics.dawid_skene import Vote
from sightline.metrics.label_quality import LabelQuality, label_quality

LEFT, RIGHT, TOP, BOTTOM = 40.0, 500.0, 20.0, 150.0
"""The area of the chart, in its own units."""

MOST_DOUBTFUL = 20
DOUBTFUL = 0.25
"""The probability that a majority is wrong, from which the owner is asked to look at the item."""

DAY = 86_400.0


class GrowthChart(Struct, frozen=True):
    """The agreement as it grows: a line, the band of its interval, the ticks of the axes."""

    line: str
    band: str
    x_ticks: Sequence[tuple[float, str]]
    y_ticks: Sequence[tuple[float, str]]
    last: tuple[float, float]
    label: str


class Doubtful(Struct, frozen=True):
    """An item to adjudicate: its text, the votes by the name of the annotator, and why."""

    item: Item
    text: str
    votes: Mapping[str, str]
    why: str


class PersonalLink(Struct, frozen=True):
    """A personal link: the annotator, the URL, and how long it lasts; '' if it has ended."""

    annotator: Annotator
    url: str
    left: str


def growth_chart(points: Sequence[AgreementPoint]) -> GrowthChart | None:
    """Draw the agreement as it grows.

    Returns:
        The chart from 0 to 1; None with fewer than two points that have a value.
    """
    drawn = [point for point in points if point.value.value is not None]
    if len(drawn) < 2:
        return None
    most = drawn[-1].items

    def place(items: int, value: float | None) -> tuple[float, float]:
        height = min(max(value or 0.0, 0.0), 1.0)
        return LEFT + (RIGHT - LEFT) * items / most, BOTTOM - (BOTTOM - TOP) * height

    bounded = [point for point in drawn if point.value.low is not None]
    band = [place(point.items, point.value.low) for point in bounded]
    band += [place(point.items, point.value.high) for point in reversed(bounded)]
    line = [place(point.items, point.value.value) for point in drawn]
    first, last = drawn[0], drawn[-1]
    return GrowthChart(
        line=_points(line),
        band=_points(band),
        x_ticks=[(place(most * step // 4, 0)[0], str(most * step // 4)) for step in range(5)],
        y_ticks=[(BOTTOM - (BOTTOM - TOP) * step / 4, f"{step / 4:.2f}") for step in range(5)],
        last=line[-1],
        label=f"Krippendorff's alpha from {first.value.value:.2f} at {first.items} items to "
        f"{last.value.value:.2f} at {last.items} items",
    )


def quality_of(seen: Overview) -> LabelQuality | str:
    """Estimate labels and annotators by Dawid and Skene.

    Returns:
        The quality, or why there is none. Items and annotators are named by their numbers.
    """
    return label_quality(
        Vote(str(item), str(annotator), vote)
        for item, votes in seen.votes.items()
        for annotator, vote in votes.items()
    )


def doubtful_items(
    state: State, seen: Overview, annotators: Sequence[Annotator], quality: LabelQuality | str
) -> list[Doubtful]:
    """List the items to adjudicate: those without a decision, then those whose majority is doubtful.

    Args:
        quality: The labels by Dawid and Skene; a reason if there are none.
    """
    names = {one.number: one.name for one in annotators}
    labels = {} if isinstance(quality, str) else {int(one.item): one for one in quality.items}
    order = [*labels, *(number for number in seen.decisions if number not in labels)]
    ties = [number for number in order if seen.decisions[number].status == "tie"]
    doubted = [
        number
        for number, label in labels.items()
        if seen.decisions[number].status == "decided" and label.loss >= DOUBTFUL
    ]
    found = []
    for number in (*ties, *doubted[:MOST_DOUBTFUL]):
        label, decision, item = labels.get(number), seen.decisions[number], state.items[number]
        why = f"Dawid-Skene: {label.likely} {label.posterior[label.likely]:.2f}" if label else ""
        if decision.status == "tie":
            settling = settlers(annotators)
            differ = open_labels(state.project.task, item, state.of_item(number), settling)
            none = f"no majority for {', '.join(differ)}" if differ and not decision.votes else "no decision"
            why = none + (f"; {why}" if why else "")
        votes = {names.get(by, str(by)): vote for by, vote in decision.votes.items()}
        found.append(Doubtful(item, item_text(state.project.task, item), votes, why))
    return found


def item_text(task: Task, item: Item) -> str:
    """Say in one line what an item is about."""
    parts = sorted(task.shows, key=lambda part: not part.highlight)
    return next((text for part in parts for text in item.texts.get(part.name, ())), "")


def personal_links(
    row: ProjectRow, annotators: Sequence[Annotator], base: str, now: float
) -> list[PersonalLink]:
    """List the personal links of a project.

    Args:
        now: Seconds since 1970.
    """
    links = []
    for one in annotators:
        days = (one.expires - now) / DAY
        left = "" if one.revoked or days <= 0 else f"{days:.0f} days left" if days >= 1.5 else "1 day left"
        links.append(PersonalLink(one, f"{base}/annotate/{token_of(row, one)}", left))
    return links


def said(task: Task, values: Values) -> str:
    """Write values in one line, with the labels of their options."""
    labels = {(field.name, option.value): option.text for field in task.fields for option in field.options}
    words = []
    for field in task.fields:
        value = values.get(field.name, ())
        words += [
            labels.get((field.name, one), one) for one in ((value,) if isinstance(value, str) else value)
        ]
    return ", ".join(words)


def seconds_of(entries: Sequence[Entry]) -> float | None:
    """Average the time that annotators took for an item.

    Returns:
        The mean in seconds; None without any.
    """
    seconds = [entry.seconds for entry in entries if entry.action == "judge" and entry.seconds]
    return sum(seconds) / len(seconds) if seconds else None


def _points(places: Sequence[tuple[float, float]]) -> str:
    return " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
