"""Items of answers, alone or in pairs, and the judged runs that they are drawn from."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from random import Random
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sightline.annotation.sources import (
    FolderImages,
    MadeItems,
    SourceRequest,
    label_of,
    read_probes,
    shown_images,
)
from sightline.annotation.types import Item, ItemImage
from sightline.benchmarks.registry import benchmark_class
from sightline.builders.split import draw_indices
from sightline.errors import UserError
from sightline.evaluation.compare import judged_run
from sightline.evaluation.runs import find_run, read_stored_run
from sightline.formats.jsonl import METRICS, read_outcomes
from sightline.store.store import Store
from sightline.types import Case, Group, GroupKey, Outcome

SAME_MEANING = "same_meaning"
SPLIT = "split"
ERROR_TYPES = "error types"
"""The texts of an item that list the errors which the benchmark's paper distinguishes."""


def answer_items(request: SourceRequest) -> MadeItems:
    """Make an item of each answer of runs.

    Of several runs, an instance is left out if one of its answers failed, so that all are compared on the
    same instances.
    """
    runs = read_runs(request.sources, request.store)
    outcomes = [_first_answers(run) for run in runs]
    kept = {one.key for unit in shared_instances(outcomes) for one in unit}
    return _made(request, runs, *_items(request, runs, outcomes, kept))


def wrong_answer_items(request: SourceRequest) -> MadeItems:
    """Make an item of sampled answers that are not right, in proportion to a label (II-Bench,
    section 4.3).
    """
    runs = read_runs(request.sources, request.store)
    outcomes = [_first_answers(run) for run in runs]
    count = request.task.sample if request.count is None else request.count
    drawn = [
        draw_units(units, count or len(units), request.seed, request.by)
        for units in map(wrong_answers, outcomes)
    ]
    kept = {one.key for units in drawn for (one,) in units}
    items, notes = _items(request, runs, outcomes, kept)
    errors = next((benchmark_class(run.benchmark).error_types for run in runs if run.benchmark), ())
    if errors:
        items = [replace(item, texts={**item.texts, ERROR_TYPES: errors}) for item in items]
    return replace(_made(request, runs, items, notes), sampled=True)


def answer_pair_items(request: SourceRequest) -> MadeItems:
    """Make an item of each two answers whose meaning the benchmark compares (CODIS 4.2).

    Runs of other settings of the same model are partners: with a run `codis:no-context`, each answer is
    compared with the one without context, too.
    """
    runs = read_runs(request.sources, request.store)
    outcomes = [[one for group in run.groups.values() for one in group] for run in runs]
    images = _Images(request, runs, outcomes)
    items = [
        item
        for run in runs
        for group in run.groups.values()
        for item in _pairs_of(request, run, _with_partners(run, group, runs), images)
    ]
    unique = {frozenset(item.targets): item for item in items}
    if not unique:
        raise UserError(
            "no two answers are compared", found=f"{len(runs)} runs", expected="runs of CODIS, or of groups"
        )
    return _made(request, runs, list(unique.values()), images.notes)


def _made(
    request: SourceRequest, runs: Sequence[SourceRun], items: list[Item], notes: list[str]
) -> MadeItems:
    benchmark = next((f"{run.benchmark}:{run.setting}" for run in runs if run.benchmark), "")
    return MadeItems(items, benchmark, notes, str(request.data.resolve()) if request.data else "")


def _first_answers(run: SourceRun) -> list[Outcome]:
    return [one for group in run.groups.values() for one in group if one.draw == 0]


def _items(
    request: SourceRequest,
    runs: Sequence[SourceRun],
    outcomes: Sequence[Sequence[Outcome]],
    kept: Collection[str],
) -> tuple[list[Item], list[str]]:
    images = _Images(request, runs, outcomes)
    items = [
        _answer_item(request, run, one, images)
        for run, of_run in zip(runs, outcomes, strict=True)
        for one in of_run
        if one.key in kept
    ]
    return items, images.notes


def _answer_item(request: SourceRequest, run: SourceRun, outcome: Outcome, images: _Images) -> Item:
    return Item(
        0,
        texts=_filled(
            context=[outcome.context],
            question=[outcome.question],
            options=outcome.options,
            reference=outcome.references,
            response=[outcome.response],
        ),
        images=images.of(outcome),
        cluster=outcome.cluster or outcome.sample,
        stratum=label_of(outcome.labels, request.by),
        group=f"{outcome.sample} {outcome.variant}",
        targets=(outcome.key,),
        variant=outcome.variant,
        hidden=_hidden(run, outcome, verdict=outcome.verdict),
    )


def _pairs_of(request: SourceRequest, run: SourceRun, group: Group, images: _Images) -> Iterator[Item]:
    answered = {
        one.key: one
        for one in (*group, *(one for of in group.partners.values() for one in of))
        if one.answered
    }
    for case in _cases(run, group):
        keys = case.targets
        if case.question == SAME_MEANING and len(keys) == 2 and set(keys) <= answered.keys():
            first = answered[keys[0]]
            if not case.needs_no_judge:
                yield Item(
                    0,
                    texts=_filled(
                        question=[case.probe_question], first=[case.texts[0]], second=[case.texts[1]]
                    ),
                    images=images.of(first),
                    cluster=group.cluster or group.id,
                    stratum=label_of(first.labels, request.by),
                    group=group.id,
                    targets=keys,
                    hidden=_hidden(run, first),
                )


def _cases(run: SourceRun, group: Group) -> Iterator[Case]:
    if run.benchmark:
        yield from benchmark_class(run.benchmark)().cases(group)


def _with_partners(run: SourceRun, group: Group, runs: Sequence[SourceRun]) -> Group:
    """The group with the answers of the same model in other settings."""
    partners = {
        other.setting: other.groups[group.key].outcomes
        for other in runs
        if other.model == run.model and other.setting != run.setting and group.key in other.groups
    }
    return replace(group, partners=partners)


class _Images:
    """The images of probes: those that a run sent; of none, those of the benchmark's sample."""

    def __init__(
        self, request: SourceRequest, runs: Sequence[SourceRun], outcomes: Sequence[Sequence[Outcome]]
    ) -> None:
        self.notes: list[str] = []
        self._paths: dict[ProbeName, Sequence[str]] = dict(sent_images(outcomes))
        self._folder = None if request.data is None else FolderImages(request.data)
        if self._folder is None:
            count = len({path for of in self._paths.values() for path in of})
            if count and any(part.kind == "image" for part in request.task.shows):
                self.notes.append(
                    f"annotators see no image: nothing says where the {count:,} images of these runs are; "
                    "start the project again with --data DIR"
                )
            return
        # Paths of a setting whose images lie in a folder of their own, as MM-R3's, are found by its samples.
        self._paths = {
            name: paths
            for name, paths in self._paths.items()
            if all((self._folder.folder / path).is_file() for path in paths)
        }
        missing = {(one.sample, one.variant) for of in outcomes for one in of} - self._paths.keys()
        self._add_of_samples(request, runs, missing)
        self._folder.add(path for of in self._paths.values() for path in of)
        self.notes += self._folder.notes()

    def of(self, outcome: Outcome) -> Mapping[str, tuple[ItemImage, ...]]:
        paths = self._paths.get((outcome.sample, outcome.variant), ())
        found = self._folder.found(paths) if self._folder else ()
        return {"image": found} if found else {}

    def _add_of_samples(
        self, request: SourceRequest, runs: Sequence[SourceRun], missing: Collection[ProbeName]
    ) -> None:
        """A model without images was asked too: humans see the image of the sample."""
        run = next((run for run in runs if run.benchmark), None)
        if not missing or run is None:
            return
        split = str(run.options.get(SPLIT, ""))
        task = f"{run.benchmark}:{run.setting}"
        try:
            asked = read_probes(replace(request, sources=(task,), split=split, options=run.options))
        except UserError as error:
            self.notes.append(f"{len(missing):,} probes without images in these runs show none: {error}")
            return
        for sample, probe in asked.probes:
            if (probe.sample, probe.variant) in missing:
                refs = shown_images(sample, probe)
                self._paths[probe.sample, probe.variant] = [ref.path for ref in refs]


def _filled(**texts: Sequence[str]) -> dict[str, tuple[str, ...]]:
    return {name: tuple(of) for name, of in texts.items() if any(of)}


def _hidden(run: SourceRun, outcome: Outcome, **more: str) -> dict[str, str | tuple[str, ...]]:
    return {"model": run.model, "run": run.name, "sample": outcome.sample, "judge": outcome.judge, **more}


# -- Which answers humans rate, or explain: instances that all runs answered, or sampled wrong answers

WRONG = ("wrong", "miss", "refused")

Unit = tuple[Outcome, ...]
"""What is drawn as a whole: all answers to an instance, or one wrong answer."""

ProbeName = tuple[str, str]
"""Sample and variant."""


def shared_instances(runs: Sequence[Sequence[Outcome]]) -> list[Unit]:
    """Select the instances that every run has answered and that have a reference.

    An instance is a group of probes. It is left out as a whole if one of its answers failed, or if runs
    answered different probes of it.
    """
    by_run = [_instances(run) for run in runs]
    units = [
        tuple(outcome for instances in by_run for outcome in instances[name])
        for name in by_run[0]
        if all(_complete(instances.get(name, [])) for instances in by_run)
        and len({_probes(instances[name]) for instances in by_run}) == 1
    ]
    if not units:
        some = "the run" if len(runs) == 1 else f"each of the {len(runs)} runs"
        sent = [outcome for instances in by_run for found in instances.values() for outcome in found]
        raise UserError(
            f"no instance has an answer of {some}",
            found=f"{sum(outcome.answered for outcome in sent):,} of {len(sent):,} probes have an answer",
            expected="answers with references; several runs are on the same data, in one setting",
        )
    return units


def wrong_answers(run: Sequence[Outcome]) -> list[Unit]:
    units: list[Unit] = [(outcome,) for outcome in run if outcome.verdict in WRONG]
    if not units:
        raise UserError("no answer is wrong", found=f"{len(run):,} answers", expected="judged answers")
    return units


def draw_units(units: Sequence[Unit], count: int, seed: int, by: str = "") -> list[Unit]:
    """Draw units at random, in proportion to the values of the label `by`; '' for none."""
    if count < 1:
        raise UserError("--items draws nothing", found=count, expected="1 or more")
    categories = [label_of(unit[0].labels, by) for unit in units]
    indices = draw_indices(categories, min(count, len(units)), Random(f"rating {seed}"))
    return [units[index] for index in indices]


def sent_images(runs: Iterable[Sequence[Outcome]]) -> dict[ProbeName, tuple[str, ...]]:
    images: dict[ProbeName, tuple[str, ...]] = {}
    for run in runs:
        for outcome in run:
            if outcome.images:
                images.setdefault((outcome.sample, outcome.variant), outcome.images)
    return images


def _instances(run: Iterable[Outcome]) -> dict[str, list[Outcome]]:
    instances: dict[str, list[Outcome]] = defaultdict(list)
    for outcome in run:
        instances[outcome.sample].append(outcome)
    return dict(instances)


def _complete(answers: Sequence[Outcome]) -> bool:
    return bool(answers) and all(one.answered and one.references for one in answers)


def _probes(answers: Iterable[Outcome]) -> frozenset[tuple[str, str]]:
    return frozenset((one.sample, one.variant) for one in answers)


# -- Judged runs as sources: runs of the store, results folders, and files of answers


class SourceRun(Struct, frozen=True):
    """A run: what the user called it, its benchmark and setting ('' if unknown), model, groups, options."""

    name: str
    benchmark: str
    setting: str
    model: str
    groups: dict[GroupKey, Group]
    options: Mapping[str, Any] = {}


def read_runs(words: tuple[str, ...], store: Store) -> list[SourceRun]:
    runs = [_read(word, store) for word in dict.fromkeys(words)]
    for what, found in (
        ("benchmarks", [run.benchmark for run in runs if run.benchmark]),
        ("splits", [str(run.options["split"]) for run in runs if "split" in run.options]),
    ):
        if len(names := dict.fromkeys(found)) > 1:
            raise UserError(f"the runs are of several {what}", found=", ".join(names), expected="one")
    return runs


def _read(word: str, store: Store) -> SourceRun:
    path = Path(word)
    if path.is_file():
        return SourceRun(word, "", "", word, _groups(path))
    folder = path.is_dir() and (path / METRICS).is_file()
    run = judged_run(store, path if folder or path.is_dir() else find_run(store, word))
    result = run.result
    groups = dict(run.groups)
    return SourceRun(run.name, result.benchmark, result.setting, result.model, groups, result.options)


def recorded_folder(request: SourceRequest) -> Path | None:
    """The one folder of images that the sources, all runs of the store, record; None for none or several."""
    folders: set[str] = set()
    for word in request.sources:
        if Path(word).exists():
            return None
        try:
            folders.update(read_stored_run(request.store, find_run(request.store, word)).folders)
        except UserError:
            return None
    return Path(*folders) if len(folders) == 1 and Path(*folders).is_dir() else None


def _groups(file: Path) -> dict[GroupKey, Group]:
    members: dict[GroupKey, list[Outcome]] = defaultdict(list)
    for outcome in read_outcomes(file):
        members[outcome.sample, outcome.draw, ""].append(outcome)
    return {key: Group(key[0], key[1], of[0].cluster, tuple(of)) for key, of in members.items()}
