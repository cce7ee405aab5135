"""New projects: the sample of the items, their order, gold items, and who cannot take part."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable, Hashable, Mapping, Sequence
from pathlib import Path
from random import Random

from msgspec import Struct
from msgspec.structs import replace

from sightline.annotation.answer_items import (
    answer_items,
    answer_pair_items,
    recorded_folder,
    wrong_answer_items,
)
from sightline.annotation.other_items import (
    caption_items,
    draft_items,
    image_items,
    table_items,
    variant_pair_items,
)
from sightline.annotation.sources import MadeItems, SourceRequest, probe_items
from sightline.annotation.store import AnnotationStore
from sightline.annotation.task import ItemKind, Phase, Task
from sightline.annotation.types import Item, Pick, Project, Values
from sightline.builders.split import proportional
from sightline.errors import UserError
from sightline.formats.jsonl import read_verdicts
from sightline.metrics.agreement import majority
from sightline.scoring.letters import right_positions
from sightline.text import counted
from sightline.types import Verdict


class NewProject(Struct, frozen=True):
    """What `annotate new` says about a project.

    Attributes:
        pick: How clusters are sampled; None: at random, if a number is known.
        annotators: How many annotators judge an item; None as the task says.
        shared: How many queries all annotators judge; None as the task says.
        proposals: A file of verdicts of a model, which annotators confirm or change.
    """

    name: str
    pick: Pick | None = None
    annotators: int | None = None
    shared: int | None = None
    gold: Path | None = None
    proposals: Path | None = None
    training: int = 0
    qualification: int = 0
    disjoint: tuple[str, ...] = ()


class Draft(Struct, frozen=True):
    """A project that is not in the store yet: the project, its items, and notes for the user."""

    project: Project
    items: Sequence[Item]
    notes: Sequence[str]


def draft_project(store: AnnotationStore, request: SourceRequest, new: NewProject) -> Draft:
    """Make the items of a project. The caller adds it to the store."""
    task = request.task
    if request.pairs < 1 or (request.pairs > 1 and (task.items, task.records) != ("images", "codis")):
        expected = "1 or more, for authors of CODIS (author-codis)"
        raise UserError("--pairs does not apply", found=request.pairs, expected=expected)
    for name in new.disjoint:
        store.project(name)
    made = make_items(replace(request, data=request.data or recorded_folder(request)))
    if not made.items:
        raise UserError("the sources give no item", found=", ".join(request.sources))
    if task.produces == "verdicts":
        # A stratum has whole images: only those that are labelled wholly correct a judge.
        first: dict[str, str] = {}
        whole = [
            replace(one, stratum=first.setdefault(one.cluster or str(place), one.stratum))
            for place, one in enumerate(made.items)
        ]
        made = replace(made, items=whole)
    annotators = task.annotators if new.annotators is None else new.annotators
    if annotators < max(task.needed, 1):
        raise UserError(
            "--annotators is too small", found=annotators, expected=f"{max(task.needed, 1)} or more"
        )
    pick, picked = _picked(made, request, new)
    shared = task.shared if new.shared is None else new.shared
    judged = share(picked, shared, annotators, request.seed)
    if new.gold:
        known = known_values(task, judged, new.gold)
        judged = [replace(item, expected=known.get((item.targets, item.variant), {})) for item in judged]
    if new.proposals:
        proposed = known_values(task, judged, new.proposals)
        judged = [replace(item, proposal=proposed.get((item.targets, item.variant), {})) for item in judged]
    picked_items = len(judged)
    task, judged = with_training(task, judged, new.training, new.qualification, request.seed)
    notes = [*made.notes]
    if left_out := picked_items - len(judged):
        notes.append(f"left out, as they repeat a question of training or test: {counted(left_out, 'item')}")
    phases = [phase.name for phase in task.phases]
    items = ordered(judged, phases, mixed=task.mixed, seed=request.seed)
    project = Project(
        name=new.name,
        task=task,
        sources=request.sources,
        data=made.data,
        benchmark=made.benchmark,
        options=made.options,
        seed=request.seed,
        annotators=annotators,
        pick=pick,
        of=len(made.items),
        disjoint=new.disjoint,
    )
    return Draft(project, items, notes)


def absent_parts(draft: Draft) -> list[str]:
    """Name, in at most one note, the parts of the page that no item has: one may be misspelt."""
    task, texts = draft.project.task, {name for item in draft.items for name in item.texts}
    absent = [part.name for part in task.shows if part.kind in ("text", "options") and part.name not in texts]
    return [f"no item has {', '.join(absent)}: the page does not show it"] if absent else []


def _picked(made: MadeItems, request: SourceRequest, new: NewProject) -> tuple[Pick, list[Item]]:
    if made.sampled and request.images is not None:
        raise UserError("--images does not apply to this task, which draws answers", expected="--items N")
    clusters = len({item.cluster for item in made.items})
    count = request.task.sample or None if request.images is None else request.images
    if request.count is not None:
        if request.count < 1:
            raise UserError("--items samples nothing", found=request.count, expected="1 or more")
        # Whole clusters: what is known of a part of an image's items is no unit of an interval.
        count = max(1, round(request.count * clusters / len(made.items)))
    if made.sampled or new.pick == "all" or count is None or count >= clusters:
        return "all", made.items
    pick = new.pick or ("stratified" if request.by else "random")
    return pick, pick_items(made.items, pick, count, request.seed)


# -- The registry of makers of items, by the kind that a task declares

MAKERS: dict[ItemKind, Callable[[SourceRequest], MadeItems]] = {
    "answers": answer_items,
    "wrong-answers": wrong_answer_items,
    "answer-pairs": answer_pair_items,
    "probes": probe_items,
    "variant-pairs": variant_pair_items,
    "images": image_items,
    "captions": caption_items,
    "table-lines": table_items,
    "drafts": draft_items,
}


def make_items(request: SourceRequest) -> MadeItems:
    """Make the items of a new project. They have no numbers yet."""
    return MAKERS[request.task.items](request)


# -- Which items a project takes, and in which order: whole clusters, with known inclusion probabilities


def pick_items(items: Sequence[Item], pick: Pick, clusters: int | None, seed: int) -> list[Item]:
    """Sample whole clusters, all items about an image or none; without a number, all clusters."""
    if pick == "all" or clusters is None:
        return list(items)
    if clusters < 1:
        raise UserError("--images samples nothing", found=clusters, expected="1 or more")
    stratum_of: dict[str, str] = {}
    for item in items:
        stratum_of.setdefault(item.cluster, item.stratum if pick == "stratified" else "")
    sizes = Counter(stratum_of.values())
    counts = _drawn(dict(sorted(sizes.items())), min(clusters, len(stratum_of)))
    members: dict[str, list[str]] = defaultdict(list)
    for cluster, stratum in stratum_of.items():
        members[stratum].append(cluster)
    random = Random(f"sample {seed}")
    probability: dict[str, float] = {}
    for stratum in sorted(members):
        for cluster in random.sample(members[stratum], counts[stratum]):
            probability[cluster] = counts[stratum] / sizes[stratum]
    return [
        replace(item, probability=probability[item.cluster]) for item in items if item.cluster in probability
    ]


def _drawn(sizes: Mapping[str, int], count: int) -> dict[str, int]:
    """How many clusters of each stratum are drawn: in proportion to its size, but each has a part."""
    if count < len(sizes):
        raise UserError(
            "the sample leaves strata without an image",
            found=f"{counted(count, 'image')}",
            expected=f"{len(sizes)} images or more, one for each stratum",
        )
    counts = proportional(sizes, count)
    if all(counts[stratum] for stratum in sizes):
        return counts
    more = proportional({stratum: size - 1 for stratum, size in sizes.items()}, count - len(sizes))
    return {stratum: 1 + more[stratum] for stratum in sizes}


def share(items: Sequence[Item], shared: int, annotators: int, seed: int) -> list[Item]:
    """Give some items to all annotators and the others to one each (CODIS, appendix A).

    The same queries are shared in each run: items with the same texts but the response.
    """
    queries = list(dict.fromkeys(_query(item) for item in items))
    if not shared or shared >= len(queries):
        return list(items)
    drawn = set(Random(f"shared {seed}").sample(sorted(queries), shared))
    return [replace(item, annotators=annotators if _query(item) in drawn else 1) for item in items]


def ordered(items: Sequence[Item], phases: Sequence[str], *, mixed: bool, seed: int) -> list[Item]:
    """Order and number the items of a project.

    In a mixed order, the items of the strata alternate in proportion to their number, so that what is
    judged first is a sample of the whole.
    """
    names = phases or [""]
    by_phase: Mapping[str, list[Item]] = {name: [] for name in names}
    for item in items:
        by_phase[item.phase].append(item)
    result: list[Item] = []
    for name in names:
        result += _alternating(by_phase[name], seed) if mixed else by_phase[name]
    return [replace(item, number=number) for number, item in enumerate(result, start=1)]


def _alternating(items: Sequence[Item], seed: int) -> list[Item]:
    """The items of each stratum in random order, spread evenly over the whole."""
    random = Random(f"order {seed}")
    strata: dict[str, list[Item]] = defaultdict(list)
    for item in items:
        strata[item.stratum].append(item)
    placed: list[tuple[float, float, Item]] = []
    for stratum in sorted(strata):
        members = random.sample(strata[stratum], len(strata[stratum]))
        placed += [
            ((place + random.random()) / len(members), random.random(), item)
            for place, item in enumerate(members)
        ]
    return [item for *_, item in sorted(placed, key=lambda one: one[:2])]


def _query(item: Item) -> tuple[str, ...]:
    sample = item.hidden.get("sample", "")
    return (sample if isinstance(sample, str) else " ".join(sample), item.variant)


# -- Items whose values are known: gold items and proposals from a file, training, qualification tests

TRAINING, TEST = "training", "qualification"


def with_training(
    task: Task, items: Sequence[Item], training: int, test: int, seed: int
) -> tuple[Task, list[Item]]:
    """Put items with known values into phases before the work.

    In a task of answers, the references of a question are its known values. What else is asked about that
    question, with another context or without one, is left out: the annotator has seen an answer.
    """
    if not training and not test:
        return task, list(items)
    known: dict[Hashable, list[int]] = defaultdict(list)
    for place, item in enumerate(items):
        if _known(task, item):
            known[_question(task, item, place)].append(place)
    if min(training, test) < 0 or len(known) < training + test:
        raise UserError(
            "too few items have known values for --training and --qualification",
            found=f"{len(known):,} {'questions' if task.produces == 'answers' else 'items'}",
            expected=f"{training + test:,}; --gold FILE names known verdicts",
        )
    random = Random(f"training {seed}")
    asked = random.sample(list(known), training + test)
    drawn = [random.choice(known[question]) for question in asked]
    phase_of = {place: TRAINING if number < training else TEST for number, place in enumerate(drawn)}
    phased = [
        replace(item, phase=phase_of[place], expected=_known(task, item)) if place in phase_of else item
        for place, item in enumerate(items)
        if place in phase_of or _question(task, item, place) not in asked
    ]
    before = [
        Phase(TRAINING, "Training", "training", "You see the expected answers after each item."),
        Phase(TEST, "Test", "qualification", "A short test. It shows whether the task suits you."),
    ]
    used = [phase for phase in before if phase.name in phase_of.values()]
    return replace(task, phases=(*used, *(task.phases or (Phase(""),)))), phased


def known_values(task: Task, items: Sequence[Item], file: Path) -> dict[tuple[tuple[str, ...], str], Values]:
    verdicts = read_verdicts(file)
    by_targets: dict[tuple[str, ...], list[Verdict]] = defaultdict(list)
    for verdict in verdicts:
        if verdict.question == task.question:
            by_targets[verdict.targets].append(verdict)
    known = {}
    for item in items:
        fitting = [one for one in by_targets[item.targets] if one.variant in ("", item.variant)]
        if fitting:
            known[item.targets, item.variant] = _majority_values(task, fitting, file)
    if task.produces != "verdicts" or not known:
        raise UserError(
            "no line is about an item of this project",
            file=file,
            found=f"{len(verdicts):,} verdicts",
            expected=f"verdicts on answers of the sources, with question '{task.question}'",
        )
    return known


def _majority_values(task: Task, verdicts: Sequence[Verdict], file: Path) -> Values:
    """The values of the verdicts on one item, with the labels of those that agree."""
    name = majority(verdict.verdict for verdict in verdicts)
    if name is None:
        raise UserError(
            "verdicts on one item contradict each other, and none has a majority",
            file=file,
            field="targets",
            found=", ".join(verdicts[0].targets),
            expected="one known verdict for an item",
        )
    labels = tuple(
        dict.fromkeys(label for verdict in verdicts if verdict.verdict == name for label in verdict.labels)
    )
    given = {
        name: labels if task.field(name).kind == "choices" else labels[0]
        for name in task.label_fields
        if labels
    }
    return {task.decides[0]: name, **given}


def _question(task: Task, item: Item, place: int) -> Hashable:
    """What is equal for items to answer that ask the same; of other tasks, each item is by itself."""
    return (item.cluster, item.texts.get("question")) if task.produces == "answers" else place


def _known(task: Task, item: Item) -> Values:
    references = item.hidden.get("references", ())
    if item.expected or task.produces != "answers" or not references:
        return item.expected
    if not (options := item.texts.get("options")):
        return {"answer": references}
    # A reference may be a letter; annotators choose a text.
    right = tuple(options[position] for position in sorted(right_positions(references, options)))
    return {"option": right} if right else item.expected
