"""A run with all that its files for other tools hold, and the names in it that everybody may read."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from datetime import UTC, datetime
from functools import cached_property
from pathlib import Path, PurePosixPath
from typing import TYPE_CHECKING, Any, NamedTuple

from msgspec import Struct

from sightline.evaluation.spec import Spec, spec_data_folder
from sightline.formats.jsonl import METRICS, VERDICTS, counted_notes, read_recorded_verdicts
from sightline.types import BETWEEN_PARTS, ImageFile, Outcome, Result, Verdict

if TYPE_CHECKING:
    from sightline.evaluation.compare import RunName
    from sightline.evaluation.run_images import RunImages
    from sightline.store.store import Store


class SentImage(NamedTuple):
    """An image of an answer: its digest, '' if it is unknown, and its file, None if it was not found.

    Without the digest of what was sent, a file counts if the digest of its sample holds it.
    """

    path: str
    digest: str
    file: ImageFile | None


class Exported(Struct, frozen=True, dict=True):
    """A run with all that its files for other tools hold.

    `verdicts` are those of every judge on one answer, by its key; `about_several` counts those on several
    answers together. `images` are those of each answer. The run began at `time` and ended at `end`, in
    seconds since 1970; for a results folder both are when it was written. `model` is the model's name for
    others, `dataset` the data set on the Hub, ORG/NAME:TASK, or ''.
    """

    result: Result
    outcomes: Sequence[Outcome]
    verdicts: Mapping[str, Sequence[Verdict]]
    about_several: int
    images: Mapping[str, Sequence[SentImage]]
    time: float
    end: float
    model: str
    dataset: str

    @property
    def when(self) -> str:
        return iso_time(self.time)

    @cached_property
    def judge_models(self) -> frozenset[str]:
        return frozenset(
            one.judge for verdicts in self.verdicts.values() for one in verdicts if one.kind == "model"
        )

    @property
    def selection(self) -> dict[str, Any]:
        """The options that left out groups, by name."""
        return {name: self.result.options[name] for name in ("limit", "ids") if self.result.options.get(name)}

    def unknown_images(self, what: str) -> list[str]:
        paths = {image.path for images in self.images.values() for image in images if not image.digest}
        return counted_notes((len(paths), f"images {what}: it is not known that the files are those sent"))

    def notes(self) -> list[str]:
        """What no format of single answers holds."""
        return [
            *(f"the run is a part of its data (--{name})" for name in self.selection),
            *counted_notes(
                (
                    sum(one.first is not None for one in self.outcomes),
                    "truncated answers that were sent again are left out: the second answers count",
                ),
                (self.about_several, "verdicts on several answers together are left out"),
            ),
        ]


def iso_time(time: float) -> str:
    return datetime.fromtimestamp(time, UTC).isoformat(timespec="seconds")


def exported_run(store: Store | None, name: RunName, data: str | None, model: str, dataset: str) -> Exported:
    from sightline.evaluation.compare import judged_run
    from sightline.evaluation.run_images import RunImages
    from sightline.evaluation.runs import read_stored_run

    verdicts: list[Verdict] = []
    run = judged_run(store, name, lambda judged: verdicts.extend(judged.verdicts))
    found = spec_data_folder(Spec(task="", data=data))
    folders = [found] if found else []
    if isinstance(name, Path):
        verdicts = read_recorded_verdicts(name / VERDICTS)
        time = end = (name / METRICS).stat().st_mtime
    else:
        assert store is not None
        folders += map(Path, read_stored_run(store, name).folders)
        row = store.runs.row(name)
        time, end = row.created, row.finished or row.created
    of_answer: dict[str, dict[tuple[str, str, int], Verdict]] = {}
    for one in verdicts:
        if len(one.targets) == 1:
            of_answer.setdefault(one.targets[0], {})[one.question, one.judge, one.draw] = one
    outcomes = [outcome for group in run.groups.values() for outcome in group]
    return Exported(
        result=run.result,
        outcomes=outcomes,
        verdicts={key: list(found.values()) for key, found in of_answer.items()},
        about_several=sum(len(one.targets) > 1 for one in verdicts),
        images=_images(outcomes, RunImages(store, folders), None if isinstance(name, Path) else store),
        time=time,
        end=end,
        model=model or run.result.model,
        dataset=dataset,
    )


def _images(
    outcomes: Sequence[Outcome], folders: RunImages, store: Store | None
) -> dict[str, tuple[SentImage, ...]]:
    keys = sorted({one.key for one in outcomes if one.images})
    sent = store.answers.images(keys) if store is not None and keys else {}
    found: dict[tuple[str, str], SentImage] = {}

    def image(path: str, digest: str) -> SentImage:
        if (path, digest) not in found:
            found[path, digest] = _image(path, digest, folders)
        return found[path, digest]

    samples: dict[str, list[Outcome]] = {}
    for one in outcomes:
        samples.setdefault(one.sample, []).append(one)
    images: dict[str, tuple[SentImage, ...]] = {}
    for members in samples.values():
        unknown = [one for one in members if len(sent.get(one.key, ())) != len(one.images)]
        are_sent = bool(unknown) and _are_of_sample(members, lambda path: image(path, "").digest)
        for one in members:
            digests = sent.get(one.key, ())
            if len(digests) == len(one.images):
                images[one.key] = tuple(map(image, one.images, digests))
            elif are_sent:
                images[one.key] = tuple(image(path, "") for path in one.images)
            else:
                images[one.key] = tuple(SentImage(path, "", None) for path in one.images)
    return images


def _are_of_sample(outcomes: Sequence[Outcome], digest_of: Callable[[str], str]) -> bool:
    """Whether the digest of a sample is that of the files that its outcomes name."""
    from sightline.evaluation.plan import images_digest

    recorded = outcomes[0].sample_digest.partition(BETWEEN_PARTS)[2]
    by_variant = {one.variant: one.images for one in outcomes}
    every = [path for images in by_variant.values() for path in images]
    # A sample lists an image once, or once for each variant that shows it.
    return recorded != "" and any(
        images_digest([digest_of(path) for path in paths]) == recorded
        for paths in (every, list(dict.fromkeys(every)))
    )


def _image(path: str, digest: str, folders: RunImages) -> SentImage:
    from sightline.evaluation.run_images import ImageError

    try:
        file = folders.find(path, digest)
    except ImageError:
        return SentImage(path, digest, None)
    return SentImage(path, file.digest, file)


# -- Names without paths and addresses of the user, and without those of humans

RUN_BY = ("hf", "inspect", "sglang", "vllm")
"""The first part of a model's name that says how it is run."""


def public_task(result: Result) -> str:
    return f"{result.benchmark}:{result.setting_name}"


def public_judges(judges: str) -> str:
    names, sign, rest = judges.partition(" (decides: ")
    return ", ".join(dict.fromkeys(map(public_judge, names.split(", ")))) + sign + rest


def public_judge(name: str) -> str:
    """The name of a judge without its address or folder, and without the names of humans.

    >>> [public_judge(name) for name in ("http://10.0.0.1:8000/v1#see", "hf//srv/see", "human:a/b.jsonl")]
    ['see', 'hf/see', 'human']
    """
    if name.startswith("human"):
        return "human"
    if "://" in name:
        return name.partition("#")[2] or "a model at an address"
    first, _, rest = name.partition("/")
    is_folder = first in RUN_BY and rest.startswith(("/", ".", "~"))
    return f"{first}/{PurePosixPath(rest).name}" if is_folder else name
