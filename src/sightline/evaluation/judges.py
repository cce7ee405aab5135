"""The judges of an evaluation (rules, models, humans), their panel, and the verdict that counts."""

from __future__ import annotations

import importlib
from collections import Counter, defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from itertools import combinations, product
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from msgspec import Struct
from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.errors import UserError
from sightline.evaluation.options import JudgeModel, recorded_tags
from sightline.evaluation.plan import AnswerLookup
from sightline.evaluation.runs import StoredRun
from sightline.evaluation.spec import Decide
from sightline.formats.jsonl import read_verdicts
from sightline.formats.prediction import TOOLS
from sightline.images import transform_for
from sightline.metrics.agreement import (
    CORRECT,
    MAJORITY_OF,
    Rater,
    VerdictCodes,
    agreement,
    agreement_with_humans,
    human_consistency,
    majority,
    self_agreement,
)
from sightline.metrics.consistency import of_answers
from sightline.plugins import wrong_return
from sightline.scoring.reasoning import without_reasoning
from sightline.scoring.scorer import ModelScorer, Reading, RuleScorer, by_question
from sightline.store.answers import KeyedRequest, with_key
from sightline.store.database import NoStoreError
from sightline.store.store import Store
from sightline.types import (
    NOT_SENT,
    Answer,
    Case,
    Failure,
    Group,
    ImageFile,
    JudgeKind,
    Metric,
    MetricValue,
    Outcome,
    Request,
    Term,
    Verdict,
    VerdictName,
)

AnswersByKey = Mapping[str, Answer | Failure]
"""Answers and failures by key; a missing key was not sent."""

UNREADABLE_IMAGE = "the image for the judge cannot be read"
"""The error of a judge that needs the image of a case."""

MOST_READINGS = 512
"""The number of different cases whose readings by rules are kept."""

HUMAN_PREFIX = "human:"
"""A judge `human:FILE` is a file of human verdicts, `human:PROJECT` an annotation project of the store."""


class Judge(Protocol):
    """Decides cases, if necessary with the replies of a model."""

    name: str
    repeats: int = 1
    """How often this judge is asked about a case."""
    max_attempts: int = 1
    """The number of requests that this judge sends at most in each repeat; 0 if it asks no model."""
    is_sample: bool = False
    """Whether it is humans who were asked about a sample."""
    reads_all: bool = False
    """Whether empty answers and failed calls are judged, too: a tool has a score for each."""

    def request(self, case: Case, repeat: int = 0, attempt: int = 0) -> KeyedRequest | None:
        """The request that this judge sends before it can decide; None for none. `repeat` is from 0."""

    def decide(self, case: Case, replies: AnswersByKey) -> list[Verdict]:
        """No verdict if the judge cannot decide this question; one for each human or repeat of a model."""


class RulesJudge(Judge):
    """The benchmark's own rules."""

    name = "rules"
    max_attempts = 0

    def __init__(self, benchmark: Benchmark, options: Mapping[str, Any]) -> None:
        self._scorers = by_question(benchmark.scorers(options), RuleScorer)
        self._readings: dict[tuple[object, ...], Reading] = {}

    def request(self, case: Case, repeat: int = 0, attempt: int = 0) -> KeyedRequest | None:
        return None

    def decide(self, case: Case, replies: AnswersByKey) -> list[Verdict]:
        scorer = self._scorers.get(case.question)
        if scorer is None:
            return []
        # Draws of a probe often have equal responses, and follow each other.
        key = (case.question, case.texts, case.probe_question, case.references, case.options, case.variant)
        reading = self._readings.get(key)
        if reading is None:
            reading = scorer.decide(case)
            if not isinstance(reading, Reading):
                raise wrong_return(scorer.decide, reading, Reading)
            if len(self._readings) >= MOST_READINGS:
                self._readings.clear()
            self._readings[key] = reading
        return [_verdict(case, reading, scorer.name, self.name, "rules")]


class ModelJudge(Judge):
    """A model that receives the benchmark's judge prompts.

    It does not decide whether an answer without a reference is correct.
    """

    def __init__(
        self,
        name: str,
        model: JudgeModel,
        benchmark: Benchmark,
        options: Mapping[str, Any],
        repeats: int = 1,
        reasoning_tags: Sequence[str] = (),
    ) -> None:
        self.name = name
        self.repeats = repeats
        self._reasoning_tags = reasoning_tags
        self._model = model
        self._scorers = by_question(benchmark.scorers(options), ModelScorer)
        self.max_attempts = max((scorer.max_attempts for scorer in self._scorers.values()), default=1)

    def request(self, case: Case, repeat: int = 0, attempt: int = 0) -> KeyedRequest | None:
        """The judge prompt for this case; its reply is cached like any answer.

        Each request of a case has its own draw, which does not depend on the number of repeats.
        """
        scorer = self._scorer(case)
        if scorer is None or attempt >= scorer.max_attempts or (scorer.needs_images and not case.images):
            return None
        messages = scorer.ask(case)
        images = {file.path: self._transformed(file) for file in case.images if scorer.needs_images}
        draw = repeat * scorer.max_attempts + attempt
        return with_key(Request("", messages, self._model.sampling, images, draw), self._model.identity)

    def decide(self, case: Case, replies: AnswersByKey) -> list[Verdict]:
        """The verdict in the replies of each repeat.

        It is `undecided` if no reply of the repeat holds one, `error` if there is no reply.
        """
        scorer = self._scorer(case)
        if scorer is None:
            return []
        return [self._decide_once(case, scorer, replies, repeat) for repeat in range(self.repeats)]

    def _decide_once(self, case: Case, scorer: ModelScorer, replies: AnswersByKey, repeat: int) -> Verdict:
        for attempt in range(scorer.max_attempts):
            keyed = self.request(case, repeat, attempt)
            if keyed is None:
                reply: Answer | Failure | None = Failure("permanent", UNREADABLE_IMAGE)
            else:
                reply = replies.get(keyed.request.key)
            if isinstance(reply, Answer):
                reply = without_reasoning(reply, self._reasoning_tags)
                reading, version = scorer.reading(reply, case), reply.version
            elif attempt == 0:
                reading, version = Reading("error", reply.message if reply is not None else NOT_SENT), ""
            else:
                break
            draw = repeat * scorer.max_attempts + attempt
            verdict = _verdict(case, reading, scorer.name, self.name, "model")
            verdict = replace(verdict, draw=draw, version=version)
            if reading.verdict != "undecided":
                break
        return verdict

    def _scorer(self, case: Case) -> ModelScorer | None:
        if case.question == "correct" and not case.references:
            return None
        scorer = self._scorers.get(case.question)
        return scorer if scorer is None or scorer.concerns is None or scorer.concerns(case) else None

    def _transformed(self, file: ImageFile) -> ImageFile:
        return replace(file, transform=transform_for(file, self._model.limits))


class RecordedJudge(Judge):
    """Verdicts of humans, from a file or an annotation project, or those of the tool of a file of answers."""

    max_attempts = 0

    def __init__(self, name: str, verdicts: Sequence[Verdict]) -> None:
        self.name = name
        self.verdicts: list[Verdict] = []
        self.matched = 0
        self.reads_all = judge_kind(name) == "tool"
        self._by_case: dict[tuple[str, tuple[str, ...]], list[Verdict]] = defaultdict(list)
        self.add(verdicts)

    def add(self, verdicts: Sequence[Verdict]) -> None:
        self.verdicts += verdicts
        self.is_sample = any(verdict.inclusion is not None for verdict in self.verdicts)
        for verdict in verdicts:
            self._by_case[verdict.question, verdict.targets].append(verdict)

    def request(self, case: Case, repeat: int = 0, attempt: int = 0) -> KeyedRequest | None:
        return None

    def decide(self, case: Case, replies: AnswersByKey) -> list[Verdict]:
        """The verdicts of all humans; two answers may be compared in either order."""
        verdicts = self._by_case.get((case.question, case.targets)) or self._by_case.get(
            (case.question, case.targets[::-1]), []
        )
        fitting = [verdict for verdict in verdicts if verdict.variant in ("", case.variant)]
        self.matched += len(fitting)
        return [replace(verdict, targets=case.targets, variant=case.variant) for verdict in fitting]


def _tool_scores(group: Group) -> list[Term]:
    return of_answers([(one.scores["score"], one.labels) for one in group if "score" in one.scores])


TOOL_SCORE = Metric(
    name="score",
    terms=_tool_scores,
    meaning="the mean of the scores that the tool of the file gave; 100 is the full score",
    better="higher",
    source="the file of answers",
    judged=None,
    absent="no score of a tool counts",
)


def metrics_of(benchmark: Benchmark, options: Mapping[str, Any], judges: Iterable[str]) -> list[Metric]:
    """The metrics of a benchmark, and the scores of a tool that is among the judges."""
    own = list(benchmark.metrics(options))
    return [*own, TOOL_SCORE] if any(judge_kind(name) == "tool" for name in judges) else own


def judge_kind(judge: str) -> JudgeKind:
    if judge == "rules":
        return "rules"
    if judge in TOOLS:
        return "tool"
    return "human" if judge.startswith(HUMAN_PREFIX) else "model"


def check_judge_kinds(
    benchmark: Benchmark, judges: Sequence[str], options: Mapping[str, Any], *, asks_model: bool = False
) -> None:
    """Raise UserError for a judge of a kind that the benchmark does not take, or not with these options."""
    for judge in judges:
        if judge_kind(judge) == "tool":
            if asks_model:
                raise UserError(
                    f"the judge '{judge}' is the scores in a file of {judge}, and a model is asked here",
                    expected=f"sightline score {benchmark.name} FILE --judge {judge}",
                )
            continue
        if judge_kind(judge) not in benchmark.judged_by:
            raise UserError(
                f"{benchmark.name} does not accept the judge '{judge}': rules read its answers",
                expected=f"--judge {' or '.join(benchmark.judged_by)}",
            )
        if judge_kind(judge) == "model" and not by_question(benchmark.scorers(options), ModelScorer):
            raise UserError(
                f"the judge '{judge}' has nothing to decide: these options of {benchmark.name} ask no model",
                expected="--judge rules, or other values of --set",
            )


def check_judge_options(judges: Sequence[str], options: Mapping[str, Any]) -> None:
    for name in ("judge_answers", "judge_image"):
        if options.get(name) and "model" not in map(judge_kind, judges):
            raise UserError(f"--set {name}=on has no effect: no judge is a model", expected="--judge MODEL")


def with_deciding_rules(
    benchmark: Benchmark, judges: Sequence[str], options: Mapping[str, Any]
) -> tuple[str, ...]:
    """Put the rules before judges none of which can decide of every answer whether it is correct."""
    able = "rules" in judges or any(can_decide(benchmark, judge, "correct", options) for judge in judges)
    return tuple(judges) if able else ("rules", *judges)


def can_decide(benchmark: Benchmark, judge: str, question: str, options: Mapping[str, Any]) -> bool:
    """Whether a judge takes every case of a question."""
    kind = judge_kind(judge)
    if kind in ("human", "tool"):
        return True
    scorers = benchmark.scorers(options)
    if kind == "rules":
        return question in by_question(scorers, RuleScorer)
    scorer = by_question(scorers, ModelScorer).get(question)
    return scorer is not None and scorer.concerns is None


def _verdict(case: Case, reading: Reading, scorer: str, judge: str, kind: JudgeKind) -> Verdict:
    return Verdict(
        targets=case.targets,
        question=case.question,
        scorer=scorer,
        judge=judge,
        kind=kind,
        verdict=reading.verdict,
        raw=reading.raw,
        extracted=reading.extracted,
        variant=case.variant,
        scores=reading.scores,
    )


# -- The verdicts of humans that a user names: those of a file, or of an annotation project of the store

PROJECT_VERDICTS = "sightline.annotation.export:project_verdicts"
"""What reads the verdicts of `--judge human:PROJECT`: a function of the store and the project's name."""


def human_verdicts(word: str, store: str) -> list[Verdict]:
    if Path(word).is_file():
        return read_verdicts(Path(word))
    found = _of_project(word, store)
    if found is None:
        raise UserError(
            "there is neither such a file of human verdicts nor such an annotation project",
            file=store,
            found=word,
            expected="a verdicts.jsonl, or a project of this store (`sightline annotate status`)",
        )
    return found


def human_judge(name: str, store: str) -> RecordedJudge:
    return RecordedJudge(name, human_verdicts(name.removeprefix(HUMAN_PREFIX), store))


def _of_project(word: str, url: str) -> list[Verdict] | None:
    """The verdicts of an annotation project; None if there is no such project."""
    try:
        store = Store.open(url, create=False)
    except NoStoreError:
        return None
    module, _, function = PROJECT_VERDICTS.partition(":")
    try:
        found: list[Verdict] | None = getattr(importlib.import_module(module), function)(store, word)
        return found
    finally:
        store.close()


# -- The panel of judges: their requests to models, and groups with all verdicts and those that count


class JudgedGroup(NamedTuple):
    """A group whose outcomes carry the verdict that counts, and every verdict of every judge on it."""

    group: Group
    verdicts: list[Verdict]


class JudgePanel(Struct, frozen=True, kw_only=True):
    """The judges of an evaluation, and the rule by which one verdict per case counts.

    `decide` is `first` (the first judge who decides) or `majority`. `judged_partners` names the partner
    settings whose answers are judged too (see the function of that name). With `only_labelled`, an answer
    that no judge labelled is left out; otherwise it is undecided, or an error.
    """

    benchmark: Benchmark
    judges: Sequence[Judge]
    decide: Decide = "first"
    judged_partners: Collection[str] = ()
    only_labelled: bool = False

    @property
    def reads_a_sample(self) -> bool:
        """Whether all judges are humans who were asked about a sample."""
        return all(judge.is_sample for judge in self.judges)

    def requests(self, groups: Iterable[Group]) -> Iterator[KeyedRequest]:
        for group in groups:
            for case in self._all_cases(group):
                for judge in self.judges:
                    for repeat in range(judge.repeats):
                        keyed = judge.request(case, repeat)
                        if keyed is not None:
                            yield keyed

    def retry_requests(
        self, groups: Iterable[Group], replies: AnswerLookup, attempt: int
    ) -> Iterator[KeyedRequest]:
        """The requests of another attempt, for the repeats whose replies so far hold no verdict."""
        for group in groups:
            cases = list(self._all_cases(group))
            by_key = self._replies(cases, replies)
            for case in cases:
                for judge in self.judges:
                    if judge.request(case, attempt=attempt) is None:
                        continue
                    for repeat, verdict in enumerate(judge.decide(case, by_key)):
                        keyed = judge.request(case, repeat, attempt)
                        if keyed and verdict.verdict == "undecided":
                            yield keyed

    def judge(self, groups: Iterable[Group], replies: AnswerLookup) -> Iterator[JudgedGroup]:
        for group in groups:
            by_key = self._replies(self._all_cases(group), replies)
            partners = dict(group.partners)
            for name, partner in self._partner_groups(group):
                judged = self._judge_cases(partner, self._single_cases(partner), by_key)
                partners[name] = judged.group.outcomes
            complete = replace(group, partners=partners)
            yield self._judge_cases(complete, list(self._cases(complete)), by_key)

    def labelled_clusters(
        self, groups: Iterable[Group], metrics: Sequence[Metric]
    ) -> Mapping[str, Collection[str]]:
        """The clusters in which humans answered the question of a metric; of metrics with open cases only.

        In these clusters, cases that need no human count, too.
        """
        answered: defaultdict[str, set[str]] = defaultdict(set)
        labelled: set[str] = set()
        is_part: set[str] = set()
        for group in groups:
            for case in self._all_cases(group):
                given = any(judge.decide(case, {}) for judge in self.judges)
                if case.needs_no_judge and not given:
                    continue
                if given:
                    answered[case.question].add(group.cluster or group.id)
                for metric in metrics:
                    if concerns(metric, group, case.question, case.targets):
                        (labelled if given else is_part).add(metric.name)
        return {
            metric.name: answered[metric.judged or ""] if metric.name in labelled else ()
            for metric in metrics
            if metric.name in is_part
        }

    def _replies(self, cases: Iterable[Case], replies: AnswerLookup) -> Mapping[str, Answer | Failure]:
        if not any(judge.max_attempts for judge in self.judges):
            return {}
        keys = [
            keyed.request.key for case in cases for judge in self.judges for keyed in _requests(judge, case)
        ]
        return replies.look_up(keys) if keys else {}

    def _all_cases(self, group: Group) -> Iterator[Case]:
        yield from self._cases(group)
        for _, partner in self._partner_groups(group):
            yield from self._single_cases(partner)

    def _cases(self, group: Group) -> Iterator[Case]:
        return answered_cases(self.benchmark, group, reads_all=any(judge.reads_all for judge in self.judges))

    def _partner_groups(self, group: Group) -> Iterator[tuple[str, Group]]:
        for name, outcomes in group.partners.items():
            if name in self.judged_partners:
                yield name, replace(group, outcomes=outcomes, partners={})

    def _single_cases(self, group: Group) -> list[Case]:
        return [case for case in self._cases(group) if len(case.targets) == 1]

    def _judge_cases(
        self, group: Group, cases: Sequence[Case], replies: Mapping[str, Answer | Failure]
    ) -> JudgedGroup:
        keys = {outcome.key for outcome in group}
        verdicts = [verdict for verdict in group.judgements if keys.issuperset(verdict.targets)]
        outcomes = list(group.outcomes)
        judgements = list(group.judgements)
        only_labelled = self.only_labelled or self.reads_a_sample
        for case in cases:
            by_judge = [judge.decide(case, replies) for judge in self.judges]
            verdicts += [verdict for opinions in by_judge for verdict in opinions]
            if case.question != "correct" and not any(by_judge):
                judgements += same_without_judge([case])
                continue
            selected = select_verdict(case, by_judge, self.decide)
            if only_labelled and all(one.verdict == "error" for opinions in by_judge for one in opinions):
                # Nobody read the answer: it is neither right nor wrong.
                selected = replace(selected, verdict="unscored")
            # Two probes may share one request (CODIS without context): use the position, not the key.
            if case.outcome_index is not None and case.question == "correct":
                outcomes[case.outcome_index] = with_verdict(outcomes[case.outcome_index], selected)
            else:
                judgements.append(selected)
        return JudgedGroup(replace(group, outcomes=tuple(outcomes), judgements=tuple(judgements)), verdicts)


def answered_cases(benchmark: Benchmark, group: Group, *, reads_all: bool = False) -> Iterator[Case]:
    """The cases whose answers all exist.

    An empty answer is wrong without a judge, but it can be compared with another answer. With `reads_all`, a
    judge decides every single answer that was sent, empty and failed ones too.
    """
    outcomes = [*group, *(outcome for partners in group.partners.values() for outcome in partners)]
    answered = {outcome.key for outcome in outcomes if outcome.answered}
    if reads_all:
        with_text = {outcome.key for outcome in outcomes if outcome.status != "not_sent"}
    else:
        with_text = {outcome.key for outcome in outcomes if outcome.status == "ok"}
    for case in benchmark.cases(group):
        if set(case.targets) <= (with_text if len(case.targets) == 1 else answered):
            yield case


def same_without_judge(cases: Iterable[Case]) -> Iterator[Verdict]:
    """The decisions on cases that no judge decided: equal texts mean the same. Verdicts files lack them."""
    for case in cases:
        if case.needs_no_judge:
            yield replace(_open_verdict(case), scorer="equal", verdict="right")


def concerns(metric: Metric, group: Group, question: str, targets: Iterable[str]) -> bool:
    """Whether a metric reads the decision of a question about these answers of a group or of its partners."""
    if question != metric.judged:
        return False
    within = {outcome.key for outcome in group}.issuperset(targets)
    if metric.needs is None:
        return within
    return question == "correct" or not within


def judged_partners(metrics: Iterable[Metric]) -> set[str]:
    """The partner settings whose answers some metric needs judged, not only compared."""
    return {metric.needs for metric in metrics if metric.needs and metric.judged == "correct"}


def _requests(judge: Judge, case: Case) -> Iterator[KeyedRequest]:
    for repeat, attempt in product(range(judge.repeats), range(judge.max_attempts)):
        keyed = judge.request(case, repeat, attempt)
        if keyed is not None:
            yield keyed


def with_verdict(outcome: Outcome, verdict: Verdict) -> Outcome:
    return replace(
        outcome,
        verdict=verdict.verdict,
        extracted=verdict.extracted,
        judge=verdict.judge,
        scores={**outcome.scores, **verdict.scores},
    )


# -- The verdict that counts, where several judges decide on one case, or one judge several times

_NO_OPINION = ("undecided", "error", "unscored")


def select_verdict(case: Case, by_judge: Sequence[list[Verdict]], decide: Decide) -> Verdict:
    """Select the verdict that counts.

    A majority is one over right and not right (`wrong`, `miss`, `refused`). Verdicts that decide nothing
    (`undecided`, `error`, `unscored`) do not vote. Each judge and each human has one vote: see
    `combine_repeats`.
    """
    if decide == "majority":
        everyone = [verdict for verdicts in by_judge for verdict in verdicts]
        return _majority_verdict(case, combine_repeats(everyone))
    opinions = [_majority_verdict(case, combine_repeats(verdicts)) for verdicts in by_judge if verdicts]
    for opinion in opinions:
        if opinion.verdict not in _NO_OPINION:
            return opinion
    unscored = [opinion for opinion in opinions if opinion.verdict == "unscored"]
    if unscored:
        return unscored[0]
    return replace(opinions[0], verdict="undecided") if opinions else _open_verdict(case)


def combine_repeats(verdicts: Iterable[Verdict]) -> list[Verdict]:
    """Combine the verdicts of each judge on one case.

    Returns:
        One verdict for each judge, in the order of their first verdicts: the majority of its repeats over
        right and not right, `undecided` if they are tied or none decides, `error` if all failed.
    """
    verdicts = list(verdicts)
    if len(verdicts) == 1:
        return verdicts
    by_judge: dict[tuple[str, str], list[Verdict]] = {}
    for verdict in verdicts:
        by_judge.setdefault((verdict.kind, verdict.judge), []).append(verdict)
    return [_of_repeats(own) for own in by_judge.values()]


def _of_repeats(own: Sequence[Verdict]) -> Verdict:
    if (winner := _winner(own)) is not None:
        return winner
    answered = [verdict for verdict in own if verdict.verdict != "error"]
    if len(own) == 1 or not answered:
        return own[0]
    return answered[0] if answered[0].verdict == "unscored" else replace(answered[0], verdict="undecided")


def _majority_verdict(case: Case, verdicts: Sequence[Verdict]) -> Verdict:
    if len(verdicts) == 1:
        return verdicts[0]
    names = ", ".join(dict.fromkeys(verdict.judge for verdict in verdicts))
    winner = _winner(verdicts)
    if winner is None:
        return replace(_open_verdict(case), scorer="majority", judge=names)
    return replace(winner, scorer="majority", judge=f"{MAJORITY_OF}{names}", raw="")


def _winner(verdicts: Sequence[Verdict]) -> Verdict | None:
    """The first verdict of the majority over right and not right, with its most frequent name."""
    deciding = [verdict for verdict in verdicts if verdict.verdict not in _NO_OPINION]
    is_right = majority(verdict.verdict == "right" for verdict in deciding)
    if is_right is None:
        return None
    agreeing = [verdict for verdict in deciding if (verdict.verdict == "right") == is_right]
    ((name, _),) = Counter(verdict.verdict for verdict in agreeing).most_common(1)
    return next(verdict for verdict in agreeing if verdict.verdict == name)


def _open_verdict(case: Case) -> Verdict:
    verdict: VerdictName = "undecided" if case.references or case.question != "correct" else "unscored"
    return Verdict(
        targets=case.targets,
        question=case.question,
        scorer="",
        judge="",
        kind="rules",
        verdict=verdict,
        variant=case.variant,
    )


# -- The agreement of an evaluation's judges, with each other (CODIS 5.3, Appendix A) and with themselves

MAX_PAIRED_JUDGES = 8
"""With more judges than this, pairs of judges are not compared."""

MIN_HUMANS = 4
"""The number of humans from which their consistency is reported (Appendix A)."""


def agreements(codes: VerdictCodes) -> list[MetricValue]:
    """The agreement of every two judges and of the repeats of each, and of humans with their majority."""
    judges = codes.raters.get(CORRECT, ())
    values = [
        replace(agreement(codes, first, second), subset=f"judges={first.name} and {second.name}")
        for first, second in combinations(judges, 2)
        if len(judges) <= MAX_PAIRED_JUDGES
    ]
    humans = [judge for judge in judges if judge.kind == "human"]
    models = [judge for judge in judges if judge.kind == "model"]
    if humans and models:
        values.append(agreement_with_humans(codes, humans, models[0]))
    values += [
        replace(value, subset=f"repeated_judge={judge.name}")
        for judge in codes.codes
        if judge.kind == "model"
        for value in self_agreement(codes, judge)
    ]
    if len(humans) >= MIN_HUMANS:
        values.append(_consistency(codes, humans))
    return values


def _consistency(codes: VerdictCodes, humans: Sequence[Rater]) -> MetricValue:
    try:
        return human_consistency(codes, humans)
    except UserError as error:
        return MetricValue("human_consistency", "all", None, 0, 0, reason=str(error))


# -- A panel of the judges of an evaluation, made from what the store keeps of an earlier run


def recorded_panel(
    benchmark: Benchmark, run: StoredRun, store: Store, humans: Sequence[RecordedJudge] = ()
) -> JudgePanel:
    """The judges of an earlier run. None is called: their replies and verdicts are in the store."""
    description, options = run.description, run.description.benchmark_options
    earlier = {
        name: RecordedJudge(name, [one for one in store.runs.verdicts(run.number) if one.scorer == name])
        for name in description.judges
        if judge_kind(name) in ("human", "tool")
    }
    judges = make_judges(
        description.judges,
        benchmark,
        options,
        run.judges,
        earlier,
        description.judge_repeats,
        recorded_tags(description),
    )
    return make_panel(benchmark, options, [*judges, *humans], description.decide)


def make_judges(
    names: Iterable[str],
    benchmark: Benchmark,
    options: Mapping[str, Any],
    models: Mapping[str, JudgeModel],
    recorded: Mapping[str, RecordedJudge],
    repeats: int,
    reasoning_tags: Sequence[str],
) -> list[Judge]:
    """The judges of these names; `models` and `recorded` hold what those of these kinds need, by name."""
    kinds: dict[JudgeKind, Callable[[str], Judge]] = {
        "rules": lambda _: RulesJudge(benchmark, options),
        "human": lambda name: recorded[name],
        "tool": lambda name: recorded[name],
        "model": lambda name: ModelJudge(name, models[name], benchmark, options, repeats, reasoning_tags),
    }
    return [kinds[judge_kind(name)](name) for name in names]


def make_panel(
    benchmark: Benchmark, options: Mapping[str, Any], judges: Sequence[Judge], decide: Decide = "first"
) -> JudgePanel:
    """A panel of judges that also judges the partner settings whose verdicts some metric reads."""
    partners = judged_partners(benchmark.metrics(options))
    return JudgePanel(benchmark=benchmark, judges=judges, decide=decide, judged_partners=partners)
