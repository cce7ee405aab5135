"""The curation funnel: a sequence of steps that drop images, with the status of every image."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from sightline.builders.checked_images import CheckedImages
from sightline.formats.groups import ORIGINAL, GroupLine
from sightline.types import ImageFile


class ImageStatus(Struct, frozen=True):
    """The status of an image.

    Attributes:
        step: The step that dropped it, '' if none did.
        text: Share of its area that text covers, 0-1.
    """

    step: str = ""
    why: str = ""
    like: str = ""
    distance: int | None = None
    words: int | None = None
    text: float | None = None


class FunnelStep(Struct, frozen=True):
    """A step: its name, how many images came to it, and how many it dropped."""

    step: str
    came: int
    dropped: int

    @property
    def left(self) -> int:
        """How many images went on."""
        return self.came - self.dropped


class Funnel(Struct, frozen=True):
    """The status of all images, by name in their order, and the counts of each step."""

    gallery: CheckedImages
    settings: Mapping[str, Any]
    statuses: Mapping[str, ImageStatus]
    steps: tuple[FunnelStep, ...] = field(default_factory=tuple)

    @property
    def kept(self) -> dict[str, ImageFile]:
        """The images that no step dropped, by name."""
        return {name: file for name, file in self.gallery.files.items() if not self.statuses[name].step}

    @property
    def dropped(self) -> dict[str, str]:
        """The dropped images, each with 'step: reason'."""
        return {name: f"{one.step}: {one.why}" for name, one in self.statuses.items() if one.step}

    def drop(self, step: str, dropped: Iterable[tuple[str, ImageStatus]]) -> Funnel:
        new, came = dict(dropped), sum(not one.step for one in self.statuses.values())
        old = {name: self.statuses[name] for name in new}
        statuses = {
            name: replace(one, step=step, words=old[name].words, text=old[name].text)
            for name, one in new.items()
        }
        steps = (*self.steps, FunnelStep(step, came, len(new)))
        return replace(self, statuses={**self.statuses, **statuses}, steps=steps)

    def update(self, change: Callable[[str, ImageStatus], ImageStatus]) -> Funnel:
        statuses = {name: one if one.step else change(name, one) for name, one in self.statuses.items()}
        return replace(self, statuses=statuses)


def start_funnel(gallery: CheckedImages, settings: Mapping[str, Any]) -> Funnel:
    """Start with all images, and drop the broken ones."""
    names = [*gallery.files, *gallery.broken]
    funnel = Funnel(gallery, settings, dict.fromkeys(names, ImageStatus()))
    return funnel.drop("broken", ((name, ImageStatus(why=why)) for name, why in gallery.broken.items()))


def review_columns(funnel: Funnel) -> dict[str, dict[str, str]]:
    """The columns of a review list about the images that are left."""
    columns = {}
    for name, file in funnel.kept.items():
        status = funnel.statuses[name]
        words = "" if status.words is None else str(status.words)
        text = "" if status.text is None else f"{status.text:.3f}"
        columns[file.digest] = {"image": file.path, "words": words, "text": text}
    return columns


def near_duplicate_lines(funnel: Funnel, limit: int) -> list[GroupLine]:
    """Kept images with their dropped near-duplicates, a group each, for a preview sheet."""
    groups: dict[str, list[tuple[int, str]]] = {}
    for name, status in funnel.statuses.items():
        if status.distance is not None:
            groups.setdefault(status.like, []).append((status.distance, name))
    files = funnel.gallery.files
    lines = []
    for kept in sorted(groups, key=lambda kept: -max(groups[kept])[0])[:limit]:
        lines.append(GroupLine(kept, ORIGINAL, (files[kept].path,), ""))
        lines += [
            GroupLine(kept, name, (files[name].path,), "", labels={"distance": str(distance)})
            for distance, name in sorted(groups[kept], reverse=True)
        ]
    return lines


def curation_report(funnel: Funnel) -> dict[str, Any]:
    """The content of curation.json."""
    return {
        "schema": 1,
        "settings": funnel.settings,
        "images": len(funnel.statuses),
        "kept": len(funnel.kept),
        "steps": [{**asdict(step), "left": step.left} for step in funnel.steps],
        "statuses": [{"image": name, **asdict(status)} for name, status in funnel.statuses.items()],
    }
