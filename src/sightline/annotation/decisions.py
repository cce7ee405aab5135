"""What the judgements of an item decide, the consensus step, the labels, and the results of gold items."""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from itertools import groupby
from random import Random
from typing import Literal

from msgspec import Struct

from sightline.annotation.state import State, same_answer
from sightline.annotation.task import ADJUDICATOR, Task
from sightline.annotation.types import OWNER, Annotator, Entry, Item, Project, Values, as_given, is_asked
from sightline.benchmarks.registry import benchmark
from sightline.evaluation.judges import RulesJudge
from sightline.metrics.agreement import majority
from sightline.scoring.text import folded
from sightline.types import LETTERS, Case, Verdict, VerdictName

YES, NO = "yes", "no"

Status = Literal["open", "decided", "tie", "settled"]
"""`open`: judgements are missing. `tie`: none of all votes decides. `settled`: somebody has decided a tie."""


class Decision(Struct, frozen=True):
    """The decision about an item: its value, and the votes of the raters by annotator.

    The value is None without a decision. An open item has a value if the missing votes cannot change it.
    """

    status: Status
    value: str | None
    votes: Mapping[int, str]


def wanted(project: Project, item: Item) -> int:
    return item.annotators or project.annotators


def settlers(annotators: Iterable[Annotator]) -> frozenset[int]:
    """Find who settles items, and does not vote."""
    return frozenset({OWNER, *(one.number for one in annotators if one.role == ADJUDICATOR)})


def judged_by_raters(state: State, settling: Iterable[int]) -> Counter[int]:
    judged = state.judged.copy()
    for settler in settling:
        entries = state.of_annotator(settler).items()
        judged.subtract(number for number, entry in entries if entry.action == "judge")
    return judged


def vote(task: Task, values: Values) -> str | None:
    """Read an annotator's vote from the values of the deciding fields.

    Returns:
        The value of the one deciding field; of several fields `yes` if all have an option of tone `yes`,
        otherwise `no`; None if the task decides nothing, or the field was not asked.
    """
    if len(task.decides) == 1:
        value = values.get(task.decides[0])
        return value if isinstance(value, str) else None
    if not task.decides or not any(name in values for name in task.decides):
        return None
    return YES if all(_is_yes(task, name, values) for name in task.decides) else NO


def decide(project: Project, item: Item, entries: Mapping[int, Entry], settling: Collection[int]) -> Decision:
    task = project.task
    judged = {number: entry for number, entry in entries.items() if entry.action == "judge"}
    raters = {number: entry for number, entry in judged.items() if number not in settling}
    votes = votes_of(task, raters)
    settled = [
        (entry.number, cast)
        for number, entry in judged.items()
        if number in settling and ((cast := vote(task, entry.values)) or not task.decides)
    ]
    if settled:
        return Decision("settled", max(settled)[1], votes)
    of = wanted(project, item)
    value = _accepted(task, list(votes.values()), of) if task.needed else _majority(list(votes.values()), of)
    if len(raters) < of:
        return Decision("open", value, votes)
    if task.decides:
        is_tie = value is None and bool(votes)
    else:
        is_tie = task.ties != "open" and bool(open_labels(task, item, raters, settling))
    return Decision("tie" if is_tie else "decided", value, votes)


def votes_of(task: Task, entries: Mapping[int, Entry]) -> dict[int, str]:
    return {
        number: cast
        for number, entry in entries.items()
        if entry.action == "judge" and (cast := vote(task, entry.values))
    }


def decisions_of(state: State, annotators: Iterable[Annotator]) -> dict[int, Decision]:
    """Decide about all items of the work, without gold items, training and tests."""
    settling = settlers(annotators)
    return {
        number: decide(state.project, item, state.of_item(number), settling)
        for number, item in state.items.items()
        if state.project.task.phase(item.phase).kind == "work" and not is_gold(state, item)
    }


def _majority(votes: Sequence[str], of: int) -> str | None:
    """The most frequent vote, as soon as the missing votes cannot change it."""
    if len(votes) >= of:
        return majority(votes)
    value = majority(votes)
    return value if value is not None and 2 * votes.count(value) > of else None


def _accepted(task: Task, votes: Sequence[str], of: int) -> str | None:
    """`yes` with the votes that acceptance needs, `no` when they cannot be reached any more."""
    accepting = sum(in_favour(task, value) for value in votes)
    if accepting >= task.needed:
        return YES
    return NO if len(votes) - accepting > of - task.needed else None


def ties_of(decisions: Mapping[int, Decision]) -> list[int]:
    """List the items without a decision although all judgements are there."""
    return [number for number, decision in decisions.items() if decision.status == "tie"]


def in_favour(task: Task, value: str) -> bool:
    if len(task.decides) == 1:
        return _is_yes(task, task.decides[0], {task.decides[0]: value})
    return value == YES


def _is_yes(task: Task, name: str, values: Values) -> bool:
    return any(
        option.tone == "yes" and option.value == values.get(name) for option in task.field(name).options
    )


# -- The consensus step: annotators who differ on an item see what the others said, and judge it again


def to_reconsider(state: State, annotators: Sequence[Annotator], annotator: Annotator) -> Iterator[Item]:
    """List the items that an annotator judges once more, with the judgements of the others in view."""
    if state.project.task.ties != "consensus":
        return
    settling = settlers(annotators)
    if annotator.number in settling:
        return
    for number, entry in state.of_annotator(annotator.number).items():
        if entry.action == "judge" and not entry.reconsidered and _is_contested(state, number, settling):
            yield state.items[number]


def is_reconsidered(state: State, annotators: Sequence[Annotator], annotator: Annotator, item: int) -> bool:
    """Whether a judgement of an annotator on an item is, or would be, one with the others in view."""
    own = state.of_annotator(annotator.number).get(item)
    if own is None or own.action != "judge":
        return False
    return own.reconsidered or any(one.number == item for one in to_reconsider(state, annotators, annotator))


def others_said(
    state: State, annotators: Sequence[Annotator], annotator: Annotator, item: int
) -> list[Entry]:
    """List what the others said about an item that an annotator reconsiders; none if they do not."""
    if not is_reconsidered(state, annotators, annotator, item):
        return []
    apart = {annotator.number, *settlers(annotators)}
    entries = state.of_item(item).items()
    return [entry for by, entry in entries if by not in apart and entry.action == "judge"]


def _is_contested(state: State, number: int, settling: frozenset[int]) -> bool:
    task, item = state.project.task, state.items[number]
    if item.expected:
        return False
    decision = decide(state.project, item, state.of_item(number), settling)
    rejected = task.needed > 0 and decision.status == "decided" and not in_favour(task, decision.value or "")
    return decision.status == "tie" or (
        rejected and any(in_favour(task, value) for value in decision.votes.values())
    )


# -- The labels that annotators give an item, such as its domain: what each says, and what has no majority

Label = frozenset[str]
"""The values that an annotator gives a label; a set of several values counts as one value."""


def label_votes(task: Task, item: Item, entries: Mapping[int, Entry], name: str) -> dict[int, Label]:
    field = task.field(name)
    given = {by: as_given(entry.values) for by, entry in entries.items() if entry.action == "judge"}
    return {by: frozenset(own.get(name, ())) for by, own in given.items() if is_asked(field, item, own)}


def open_labels(
    task: Task, item: Item, entries: Mapping[int, Entry], settling: Collection[int]
) -> tuple[str, ...]:
    """List the fields of labels without a majority; none before anybody has judged the item."""
    raters = {number: entry for number, entry in entries.items() if number not in settling}
    votes = {name: label_votes(task, item, raters, name) for name in task.labels}
    return tuple(name for name, of in votes.items() if of and majority(of.values(), absolute=True) is None)


# -- Items whose values are known: gold items among the others, training, and qualification tests


class GoldResult(Struct, frozen=True):
    """How many gold items an annotator judged, how many as expected; how many only the owner can decide."""

    judged: int
    right: int
    waiting: int = 0

    @property
    def failures(self) -> int:
        """The gold items that were judged otherwise."""
        return self.judged - self.right - self.waiting


Match = Literal["right", "wrong", "waiting"]
"""What a comparison with known values gives; `waiting`: only the owner can decide, and has not yet."""


def is_gold(state: State, item: Item) -> bool:
    """Whether an item is a gold item: its values are known, and its phase is work."""
    return bool(item.expected) and state.project.task.phase(item.phase).kind == "work"


def is_expected(expected: Values, values: Values) -> bool:
    """Whether values are those that are known."""
    return all(_alternatives(values.get(name, "")) & _alternatives(known) for name, known in expected.items())


def match_of(state: State, item: Item, values: Values) -> Match:
    """Compare the values of an annotator with those that are known.

    Answers are compared by the rules of the benchmark; what these cannot decide, the owner does.
    """
    if is_expected(item.expected, values):
        return "right"
    if state.project.task.produces != "answers":
        return "wrong"
    response = response_of(item, values)
    verdict = _by_rules(state.project, item, response)
    if verdict in ("undecided", "unscored"):
        accepted = state.is_accepted(item.number, response)
        return "waiting" if accepted is None else "right" if accepted else "wrong"
    return "right" if verdict == "right" else "wrong"


def response_of(item: Item, values: Values) -> str:
    """The answer as a response; of a chosen option its letter, which is what prompts ask of models."""
    option, answer = values.get("option"), values.get("answer", "")
    if isinstance(option, str):
        return f"({LETTERS[item.texts['options'].index(option)]})"
    return answer if isinstance(answer, str) else ", ".join(answer)


def _by_rules(project: Project, item: Item, response: str) -> VerdictName:
    references = item.hidden.get("references", ())
    case = Case(
        targets=(),
        question="correct",
        probe_question="\n".join(item.texts.get("question", ())),
        texts=(response,),
        references=(references,) if isinstance(references, str) else references,
        options=item.texts.get("options", ()),
        outcome_index=0,
        variant=item.variant,
    )
    rules = RulesJudge(benchmark(project.benchmark.partition(":")[0]), project.options)
    return next((verdict.verdict for verdict in rules.decide(case, {})), "undecided")


class AnswerToCompare(Struct, frozen=True):
    """An answer in training or a test that rules cannot compare; `accepted`: the owner's decision, if any."""

    item: Item
    response: str
    names: tuple[str, ...]
    accepted: bool | None


def answers_to_compare(state: State, annotators: Sequence[Annotator]) -> list[AnswerToCompare]:
    """List the answers that the owner compares: undecided ones first, and those of tests before training."""
    if state.project.task.produces != "answers":
        return []
    found: dict[tuple[int, str], AnswerToCompare] = {}
    for one in judgements(state, annotators):
        item, response = one.item, response_of(one.item, one.entry.values)
        if not item.expected or is_expected(item.expected, one.entry.values):
            continue
        if _by_rules(state.project, item, response) not in ("undecided", "unscored"):
            continue
        address = same_answer(item.number, response)
        before = found.get(address)
        names = (*(before.names if before else ()), one.name)
        accepted = state.is_accepted(item.number, response)
        found[address] = AnswerToCompare(item, before.response if before else response, names, accepted)
    kind = {phase.name: phase.kind for phase in state.project.task.phases}
    return sorted(
        found.values(),
        key=lambda one: (one.accepted is not None, kind.get(one.item.phase) != "qualification"),
    )


def gold_result(state: State, annotator: int, phase: str | None = None) -> GoldResult:
    """Count the results of an annotator's gold items, or of the items of a qualification test.

    Of a gold item, what the annotator said first counts; a slip can be corrected before the next item.
    """
    entries = state.first_of(annotator) if phase is None else state.of_annotator(annotator)
    results = [
        match_of(state, item, entry.values)
        for number, entry in entries.items()
        if entry.action == "judge" and (item := state.items[number]).expected
        if (is_gold(state, item) if phase is None else item.phase == phase)
    ]
    return GoldResult(len(results), results.count("right"), results.count("waiting"))


def has_failed(state: State, annotator: Annotator) -> bool:
    """Whether the rule for gold items applies to an annotator."""
    failures = gold_result(state, annotator.number).failures - annotator.forgiven
    return failures >= state.project.task.gold.failures


def gold_is_due(state: State, annotator: int, done: int) -> bool:
    """Whether the next item of an annotator is a gold item.

    One place of every `every` places is drawn at random for each annotator.
    """
    every = state.project.task.gold.every
    block, place = divmod(done, every)
    return Random(f"gold {state.project.seed} {annotator} {block}").randrange(every) == place


def _alternatives(value: str | Sequence[str]) -> set[str]:
    return {folded(text).strip() for text in ([value] if isinstance(value, str) else value)}


# -- The judgements as records that name annotators, items and what they are about

OWNER_NAME = "owner"


class Judgement(Struct, frozen=True):
    """A judgement that stands: the item, who judged it in which role, and the entry."""

    item: Item
    name: str
    role: str
    entry: Entry


def judgements(state: State, annotators: Sequence[Annotator]) -> Iterator[Judgement]:
    """List the judgements that stand, without skips and undone ones."""
    known = {one.number: one for one in annotators}
    for number, item in state.items.items():
        for by, entry in sorted(state.of_item(number).items(), key=lambda one: one[1].number):
            if entry.action == "judge":
                one = known.get(by)
                name, role = (one.name, one.role) if one else (OWNER_NAME, OWNER_NAME)
                yield Judgement(item, name, role, entry)


def verdicts(
    state: State, annotators: Sequence[Annotator], only: Collection[str] | None = None
) -> Iterator[Verdict]:
    """Turn judgements into verdicts, of all or `only` some annotators, without training items and tests."""
    task = state.project.task
    numbers = None if only is None else {one.number for one in annotators if one.name in only}
    samples, strata = _samples(state, numbers)
    for one in _that_count(state, annotators):
        decision = vote(task, one.entry.values)
        if decision is None or task.phase(one.item.phase).kind != "work":
            continue
        if only is not None and one.name not in only:
            continue
        yield Verdict(
            targets=one.item.targets,
            question=task.question,
            scorer="human",
            judge=one.name,
            kind="human",
            verdict=_verdict_name(decision),
            raw=_remarks(state, one.entry.values),
            variant=one.item.variant,
            labels=_labels(state, one.entry.values),
            inclusion=samples[one.item.cluster][0],
            stratum=samples[one.item.cluster][1],
            strata=strata,
        )


def _samples(
    state: State, numbers: Collection[int] | None
) -> tuple[dict[str, tuple[float | None, str]], int]:
    """Cluster -> the probability with which it was picked and judged, and its stratum; then how many strata
    must have a label so that the labels stand for all, 0 for any.

    The strata of a project that is not finished can be judged in part, each in another part: of its clusters,
    which come in random order, those judged so far (by the annotators of these `numbers`) are a sample.
    """
    project = state.project
    first: dict[str, Item] = {}
    whole: dict[str, bool] = {}
    for number, item in state.items.items():
        if project.task.phase(item.phase).kind == "work":
            first.setdefault(item.cluster, item)
            is_judged = state.judged[number] > 0
            if numbers is not None:
                of_item = state.of_item(number).items()
                is_judged = any(by in numbers and entry.action == "judge" for by, entry in of_item)
            whole[item.cluster] = whole.get(item.cluster, True) and is_judged
    sizes = Counter(item.stratum for item in first.values())
    judged = Counter(item.stratum for cluster, item in first.items() if whole[cluster])
    if len(sizes) < 2 or judged == sizes:
        is_sample, strata = project.pick != "all", 0
        parts = dict.fromkeys(sizes, 1.0)
    else:
        is_sample, strata = True, len(sizes)
        parts = {name: max(judged[name], 1) / size for name, size in sizes.items()}
    found = {
        cluster: (item.probability * parts[item.stratum] if is_sample else None, item.stratum)
        for cluster, item in first.items()
    }
    return found, strata


def _that_count(state: State, annotators: Sequence[Annotator]) -> Iterator[Judgement]:
    """The judgements whose majority is the decision about each item."""
    settling = settlers(annotators)
    for item, group in groupby(judgements(state, annotators), key=lambda one: one.item):
        entries = list(group)
        decision = decide(state.project, item, state.of_item(item.number), settling)
        values = [cast for one in entries if (cast := vote(state.project.task, one.entry.values))]
        if decision.status == "settled" and majority(values) != decision.value:
            entries = [one for one in entries if one.entry.annotator in settling][-1:]
        yield from entries


def decided(state: State, annotators: Sequence[Annotator]) -> Mapping[int, str]:
    settling = settlers(annotators)
    found = {
        number: decide(state.project, item, state.of_item(number), settling)
        for number, item in state.items.items()
    }
    return {number: one.value for number, one in found.items() if one.value is not None}


def name_of(annotators: Sequence[Annotator], number: int) -> str:
    if number == OWNER:
        return OWNER_NAME
    return next((one.name for one in annotators if one.number == number), str(number))


def _verdict_name(value: str) -> VerdictName:
    names: dict[str, VerdictName] = {
        "right": "right",
        "wrong": "wrong",
        "undecided": "undecided",
        "refused": "refused",
        "miss": "miss",
    }
    return names[value]


def _labels(state: State, values: Values) -> tuple[str, ...]:
    """The labels that an annotator gives: the errors that they name."""
    given = as_given(values)
    return tuple(value for name in state.project.task.label_fields for value in given.get(name, ()))


def _remarks(state: State, values: Values) -> str:
    names = [field.name for field in state.project.task.fields if field.kind == "text"]
    return "\n".join(one for name in names if isinstance(one := values.get(name, ""), str) and one)
