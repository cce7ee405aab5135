"""A funnel: images on their way through steps that drop some, and what became of each."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Any

from msgspec import Struct, field
from msgspec.structs import asdict, replace

from sightline.builders.image_index import CheckedImages
from sightline.formats.groups import ORIGINAL, GroupLine
from sightline.types import ImageFile


class ImageStatus(Struct, frozen=True):
    """What became of an image: the step at which it was dropped ('' for none), and why.

    `like` is the image of which it is a copy, `distance` in how many of 256 bits they differ. `words` and
    `text` (share of the area, 0-1) are known of what was read.
    """

    step: str = ""
    why: str = ""
    like: str = ""
    distance: int | None = None
    words: int | None = None
    text: float | None = None


class FunnelStep(Struct, frozen=True):
    """How many images came to a step, and how many it dropped."""

    step: str
    came: int
    dropped: int

    @property
    def left(self) -> int:
        """How many went on."""
        return self.came - self.dropped


class Funnel(Struct, frozen=True):
    """What became of all images, by name in their order, and how many fell at each step."""

    gallery: CheckedImages
    settings: Mapping[str, Any]
    statuses: Mapping[str, ImageStatus]
    steps: tuple[FunnelStep, ...] = field(default_factory=tuple)

    @property
    def kept(self) -> dict[str, ImageFile]:
        """The images that are left, by name."""
        return {name: file for name, file in self.gallery.files.items() if not self.statuses[name].step}

    @property
    def dropped(self) -> dict[str, str]:
        """The others, each with the step and the reason."""
        return {name: f"{fate.step}: {fate.why}" for name, fate in self.statuses.items() if fate.step}

    def after(self, step: str, dropped: Iterable[tuple[str, ImageStatus]]) -> Funnel:
        """The same with one step more, by which these images were dropped; what is known of them stays."""
        found, came = dict(dropped), sum(not fate.step for fate in self.statuses.values())
        known = {name: self.statuses[name] for name in found}
        statuses = {
            name: replace(fate, step=step, words=known[name].words, text=known[name].text)
            for name, fate in found.items()
        }
        steps = (*self.steps, FunnelStep(step, came, len(found)))
        return replace(self, statuses={**self.statuses, **statuses}, steps=steps)

    def having(self, known: Callable[[str, ImageStatus], ImageStatus]) -> Funnel:
        """The same with more known of the images that are left."""
        statuses = {name: fate if fate.step else known(name, fate) for name, fate in self.statuses.items()}
        return replace(self, statuses=statuses)


def funnel_of(gallery: CheckedImages, settings: Mapping[str, Any]) -> Funnel:
    """The beginning: all images, of which those that cannot be shown fall at once."""
    names = [*gallery.files, *gallery.broken]
    whole = Funnel(gallery, settings, dict.fromkeys(names, ImageStatus()))
    return whole.after("broken", ((name, ImageStatus(why=why)) for name, why in gallery.broken.items()))


def listed(funnel: Funnel) -> dict[str, dict[str, str]]:
    """What people are shown of the images that are left, by digest."""
    shown = {}
    for name, file in funnel.kept.items():
        fate = funnel.statuses[name]
        words = "" if fate.words is None else str(fate.words)
        text = "" if fate.text is None else f"{fate.text:.3f}"
        shown[file.digest] = {"image": file.path, "words": words, "text": text}
    return shown


def alike_lines(funnel: Funnel, most: int) -> list[GroupLine]:
    """Images with those that were dropped for looking like them, a group each, as lines for a sheet.

    At most so many groups, those with the farthest copies first, and of each the farthest copies first: they
    are the doubtful ones.
    """
    groups: dict[str, list[tuple[int, str]]] = {}
    for name, fate in funnel.statuses.items():
        if fate.distance is not None:
            groups.setdefault(fate.like, []).append((fate.distance, name))
    files = funnel.gallery.files
    lines = []
    for kept in sorted(groups, key=lambda kept: -max(groups[kept])[0])[:most]:
        lines.append(GroupLine(kept, ORIGINAL, (files[kept].path,), ""))
        lines += [
            GroupLine(kept, name, (files[name].path,), "", labels={"distance": str(distance)})
            for distance, name in sorted(groups[kept], reverse=True)
        ]
    return lines


def report(funnel: Funnel) -> dict[str, Any]:
    """The whole of curation.json: settings, steps, and every image with what became of it."""
    return {
        "schema": 1,
        "settings": funnel.settings,
        "images": len(funnel.statuses),
        "kept": len(funnel.kept),
        "steps": [{**asdict(step), "left": step.left} for step in funnel.steps],
        "fates": [{"image": name, **asdict(fate)} for name, fate in funnel.statuses.items()],
    }
