"""The records that all modules share: from Sample and Probe to Outcome and Group, then metrics and results.

They are frozen structs. They hold data and small derived properties, and have no side effects.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Container, Hashable, Iterable, Iterator, Mapping
from functools import cached_property, lru_cache
from pathlib import PurePath
from string import ascii_uppercase
from typing import Annotated, Any, Literal, TypeVar

from msgspec import UNSET, Meta, Struct, UnsetType, field

T = TypeVar("T")

Labels = Mapping[str, str | tuple[str, ...]]
"""Label name -> its value, or its values if a sample has several (II-Bench's rhetoric)."""

VerdictName = Literal["right", "wrong", "miss", "undecided", "refused", "error", "unscored"]
JudgeKind = Literal["rules", "model", "human", "tool"]
"""`tool`: the tool that collected the answers, whose scores its file holds."""

Role = Literal["system", "user", "assistant"]
Augmentation = Literal["ocr", "layout", "layout+caption"]
"""The text that replaces images: OCR text, OCR text in its layout, or that and a caption (ConTextual 3.1)."""

CAPTIONED: Augmentation = "layout+caption"

Fingerprint = Literal["on", "off"]
"""Whether endpoints with cached answers are checked before more requests are sent."""

Canary = Literal["stop", "note", "off"]
"""What follows where an endpoint takes images under equal text for one another."""

Repeated = Literal["error", "first", "last"]
"""Which of several answers of one probe in a file counts."""

LETTERS = ascii_uppercase
"""The letters of options in the order shown; options after Z have none."""

CUT_OFF = ("length", "max_tokens")
"""The finish reasons of a response that reached the token limit."""


class Text(Struct, frozen=True, tag="text"):
    """A part of a message that is text."""

    text: str


class ImageRef(Struct, frozen=True, tag="image"):
    """A part of a message that is an image, by its path; the file is read only when it is sent.

    `root` is the data folder that the path must not leave; '' allows any path.
    """

    path: str
    root: str = ""


Part = Text | ImageRef


class Message(Struct, frozen=True):
    """One turn of a conversation."""

    role: Role
    parts: tuple[Part, ...]


def user(*parts: Part | str) -> Message:
    """A message of the role `user`."""
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


class Sample(Struct, frozen=True):
    """One item of a benchmark.

    `cluster` names the independent unit of confidence intervals. None stands for the digest of the first
    image, so that samples of one image form one cluster. `record` is the released record, of a type that the
    benchmark defines.
    """

    id: str
    question: str
    images: tuple[ImageRef, ...] = ()
    references: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    labels: Labels = field(default_factory=dict)
    cluster: str | None = None
    record: Any = None


class Probe(Struct, frozen=True):
    """One query to the model for a sample; the probes of a sample form its group.

    Attributes:
        question: The question as a judge reads it.
        references: The correct answers of this probe (CODIS: the answer under this context).
        labels: The labels of the sample, and those of this probe.
        draws: 0 if each draw of the sample is a group; otherwise all draws of this probe form one group, and
            another setting is compared with this number of draws.
        choices: The answers of which the model takes the most likely one; empty for a free response. With one
            choice, the response is the mean log-likelihood of its tokens.
        evidence: The images that a judge of the answer sees.
        context: The context in which the question is asked, if the messages hold one.
    """

    sample: str
    variant: str
    messages: tuple[Message, ...]
    question: str
    references: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    labels: Labels = field(default_factory=dict)
    draws: int = 0
    choices: tuple[str, ...] = ()
    evidence: tuple[ImageRef, ...] = ()
    context: str = ""


HiddenContent = Literal["frames", "transparency", "levels"]
"""What no model sees of an image file: all frames but the first; what white shows through; dark levels."""


class ImageFile(Struct, frozen=True):
    """An inspected image file.

    Attributes:
        path: The path as the image reference has it.
        format: The true format, by Pillow's name.
        width, height: In pixels, of the upright image.
        stamp: The size in bytes and the modification time in ns at the inspection.
        transform: The change before sending, part of the request's key; '' if the original bytes are sent.
    """

    path: str
    digest: str
    format: str
    width: int
    height: int
    stamp: tuple[int, int]
    transform: str = ""
    hidden: tuple[HiddenContent, ...] = ()


ImageSize = tuple[int, int]
"""Width and height in pixels."""


class Origin(Struct, frozen=True):
    """The probe that a request was made from, with its options; not part of the key."""

    benchmark: str
    setting: str
    sample: str
    variant: str
    draw: int = 0
    options: tuple[str, ...] = ()


class Request(Struct, frozen=True):
    """A probe as it is sent to one model.

    `key` is the key of its answer in the store. `images` maps the path of each `ImageRef` in `messages` to
    the inspected file. `sampling` holds the effective sampling and provider options. With `choices`, the
    answer is the one that the model finds most likely.
    """

    key: str
    messages: tuple[Message, ...]
    sampling: Mapping[str, Any]
    images: Mapping[str, ImageFile] = field(default_factory=dict)
    draw: int = 0
    origin: Origin | None = None
    choices: tuple[str, ...] = ()


class Usage(Struct, frozen=True, omit_defaults=True):
    """The tokens of one call as the server reports them; None if it does not.

    `cached_tokens` are the tokens of the prompt that the server had in its prefix cache, `image_tokens` those
    that it made of the images. `invalid` names the counts that the server reports and that are no numbers of
    tokens.
    """

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None
    cached_tokens: int | None = None
    image_tokens: int | None = None
    invalid: tuple[str, ...] = ()


class Answer(Struct, frozen=True, omit_defaults=True):
    """The response of a model to a request.

    `latency` is in seconds. `version` is the version that the server reports of the model.
    """

    text: str
    reasoning: str = ""
    finish_reason: str = ""
    usage: Usage = field(default_factory=Usage)
    latency: float = 0.0
    version: str = ""

    @property
    def truncated(self) -> bool:
        return self.finish_reason in CUT_OFF


class Failure(Struct, frozen=True, omit_defaults=True):
    """A call without an answer.

    The next run retries `transient` failures. Only --retry-errors retries `permanent` and `blocked` ones
    (content filter, context overflow). `retry_after` is in seconds, `status` the HTTP status.
    """

    kind: Literal["transient", "permanent", "blocked"]
    message: str
    retry_after: float | None = None
    status: int | None = None


TIMED_OUT = 408
"""The `status` of a failure without a reply in time."""

NOT_SENT = "not sent"
"""The `error` of a probe that was not sent: the budget was reached, or the run was interrupted."""


def _written(default: Any) -> Any:
    """A default that stays in the JSON of a struct with `omit_defaults`.

    msgspec leaves out a field whose value is its plain default, but writes one whose default comes from a
    factory.
    """
    return field(default_factory=lambda: default)


class Verdict(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The reading of one or more answers by a judge: one line of verdicts.jsonl, in the order of the line.

    A line always holds the fields down to `raw`, and the others if they are set. `draw` counts from 0.

    Attributes:
        question: What is decided: `correct`, `same_meaning` (right is same) or another of the benchmark.
        judge: `rules`, or the name of a model or a human; `kind` says which.
        verdict: The verdict; `error` if the judge gave none.
        value: The number behind the verdict, such as a cosine similarity.
        raw: The text that was read: the reply, or a part of the response.
        variant: The probe whose reference was used: two probes may share an answer; '' if unknown.
        labels: The errors that a human names in the answer.
        inclusion: The probability with which the cluster of the answers was picked for humans; None if all
            clusters had the same.
        stratum: The part of the data that the cluster was picked from, such as a category; '' if from all.
        strata: How many strata must have a labelled cluster so that the labels stand for all; 0 for any.
    """

    targets: tuple[str, ...]
    question: str
    scorer: str
    judge: str
    kind: JudgeKind
    draw: int = _written(0)
    verdict: VerdictName
    value: float | None = _written(None)
    raw: str = _written("")
    extracted: str | None = None
    variant: str = ""
    version: str = ""
    scores: Mapping[str, float] = field(default_factory=dict)
    labels: tuple[str, ...] = ()
    inclusion: Annotated[float, Meta(gt=0, le=1)] | None = None
    stratum: str = ""
    strata: int = 0


class FirstAnswer(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The truncated answer that another one with a higher token limit has replaced (--retry-truncated).

    `key` is its key in the store; the other fields are those of an `Outcome`.
    """

    key: str
    response: str
    finish_reason: str
    reasoning: str = ""


BETWEEN_PARTS = "-"
"""Stands between the digests of the texts and of the images of a sample."""


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A probe with its answer and the verdict that counts: one line of answers.jsonl, in its order.

    A line always holds the fields down to `scores`, the others if they are set, and `group`, which equals
    `sample` (see `formats.jsonl`). `draw` counts from 0.

    Attributes:
        response: The text of the answer, without its reasoning; empty if there is none.
        status: `empty` is an answer without text, `error` a failed call. `not_sent` is a probe that was not
            sent; its verdict is `unscored`.
        question, context: Of the probe; `options` are in the order shown.
        images: The images sent, in their order, by their paths in the data folder.
        image_sizes: Width and height of each image as it was sent, in pixels; None if they result from a
            limit of its bytes. Empty if it is not known what was sent.
        prompt: The text sent; `formats.jsonl` gives the form of several messages.
        sample_digest: The digest of the sample, whatever the setting; '' if unknown.
        reasoning: What was cut from the response, or what the server sent apart.
        first: The truncated answer that this one has replaced.
        latency: The seconds from the request to the answer, whenever it was sent; 0 if they are unknown.
    """

    sample: str
    variant: str
    draw: int
    key: str
    labels: Labels
    response: str
    status: Literal["ok", "empty", "error", "not_sent"]
    finish_reason: str
    usage: Usage
    verdict: VerdictName
    extracted: str | None = _written(None)
    references: tuple[str, ...] = _written(())
    judge: str = _written("")
    scores: Mapping[str, float] = _written({})
    question: str = ""
    options: tuple[str, ...] = ()
    context: str = ""
    images: tuple[str, ...] = ()
    image_sizes: tuple[ImageSize | None, ...] = ()
    prompt: str = ""
    cluster: str = ""
    error: str | None = None
    version: str = ""
    sample_digest: str = ""
    reasoning: str = ""
    first: FirstAnswer | None = None
    latency: float = 0.0

    @property
    def right(self) -> bool:
        """Whether the verdict is `right`; error, miss, refused and undecided are not."""
        return self.verdict == "right"

    @property
    def scored(self) -> bool:
        """Whether the answer counts: it has a verdict, or at least a reference."""
        return self.verdict in ("right", "wrong") or (bool(self.references) and self.verdict != "unscored")

    @property
    def truncated(self) -> bool:
        return self.finish_reason in CUT_OFF

    @property
    def answered(self) -> bool:
        """Whether there is an answer; an empty one counts."""
        return self.status in ("ok", "empty")


GroupKey = tuple[str, int, str]
"""The identity of a group in a run: the sample, the draw, and the variant whose draws it pools, or ''."""


class Group(Struct, frozen=True, dict=True):
    """The outcomes of one sample in one draw, by variant, and the verdicts on several of them.

    A group that pools holds all draws of one variant instead.

    Attributes:
        draw: The repeat, from 0; 0 if it pools.
        cluster: The independent unit of confidence intervals.
        judgements: The verdicts with two targets or more (`same_meaning`).
        partners: The outcomes of other settings that metrics read, by setting and in the same order; without
            the settings that have no answers.
        evidence: The images that a judge of an answer sees, by answer key.
        pooled: The variant whose draws it pools; '' if it does not.
    """

    id: str
    draw: int
    cluster: str
    outcomes: tuple[Outcome, ...]
    judgements: tuple[Verdict, ...] = ()
    partners: Mapping[str, tuple[Outcome, ...]] = field(default_factory=dict)
    evidence: Mapping[str, tuple[ImageFile, ...]] = field(default_factory=dict)
    pooled: str = ""

    @property
    def key(self) -> GroupKey:
        """The identity of the group: its run has no other group with this key."""
        return self.id, self.draw, self.pooled

    def once(self, key: Hashable, derive: Callable[[Group], T]) -> T:
        """What a function derives from the group: the group keeps what several metrics share."""
        kept = self._derived
        if key not in kept:
            kept[key] = derive(self)
        found: T = kept[key]
        return found

    @cached_property
    def _derived(self) -> dict[Hashable, Any]:
        return {}

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def __len__(self) -> int:
        return len(self.outcomes)

    @property
    def sent(self) -> bool:
        """Whether every probe was sent. Metrics leave out all other groups."""
        return all(outcome.status != "not_sent" for outcome in self.outcomes)

    @cached_property
    def complete(self) -> bool:
        """Whether every probe has an answer."""
        return all(outcome.answered for outcome in self.outcomes)

    @cached_property
    def labels(self) -> Labels:
        first = self.outcomes[0].labels
        if all(outcome.labels == first for outcome in self.outcomes):
            return first
        return {
            name: value
            for name, value in first.items()
            if all(outcome.labels.get(name) == value for outcome in self.outcomes)
        }

    def judgement(self, question: str, *targets: str) -> Verdict | None:
        """The verdict on exactly these answers; None if there is none."""
        for verdict in self.judgements:
            if verdict.question == question and verdict.targets == targets:
                return verdict
        return None


class Case(Struct, frozen=True):
    """Something to judge: one answer against its reference, or several answers against each other.

    Attributes:
        question: What is decided, such as `correct` or `same_meaning`.
        probe_question: The question that the model was asked.
        texts: The responses, in the order of `targets`.
        outcome_index: The index of the outcome in its group; None for a case about several.
        variant: The probe of a case about one answer.
        images: The images that a judge may see.
    """

    targets: tuple[str, ...]
    question: str
    probe_question: str
    texts: tuple[str, ...]
    references: tuple[str, ...] = ()
    options: tuple[str, ...] = ()
    outcome_index: int | None = None
    variant: str = ""
    images: tuple[ImageFile, ...] = ()

    @property
    def needs_no_judge(self) -> bool:
        """Whether equal texts are compared: they mean the same."""
        return self.question == "same_meaning" and len(set(self.texts)) == 1


# -- Metrics and results: what a metric is, its values, and the result of an evaluation

Unit = Literal["percent", "points", "number"]
"""Points are differences of percentages."""

Better = Literal["higher", "lower", "neither"]
"""Which direction of a metric is better."""

Reads = Literal["answers", "verdicts", "letters"]

LabelKind = Literal["any", "shared", "varying"]

Range = tuple[float | None, float | None]
"""The smallest and the largest possible value of a metric; None if there is no bound."""

PERCENT = (0.0, 100.0)
"""The range of a metric that is a share."""

RELIABLE_CLUSTERS = 10
"""A confidence interval of fewer clusters is approximate."""

IntervalMethod = Literal["wilson", "wilson, approximate", "t", "t, approximate"]
"""How a confidence interval was made (`metrics/statistics.py`)."""


def is_approximate(method: IntervalMethod | None) -> bool:
    """Whether an interval is of fewer than RELIABLE_CLUSTERS clusters."""
    return method is not None and method.endswith("approximate")


class Term(Struct, frozen=True):
    """The contribution of one group to a metric: its value is the sum of `sum` over the sum of `count`.

    `labels` are the labels under which the term also counts; None stands for those of the group. A term
    about one outcome with labels of its own (a style, a mask) has `outcome.labels`. A term that is not
    `overall` counts under its labels only.
    """

    sum: float
    count: float
    labels: Labels | None = None
    overall: bool = True


class MetricDefinition(Struct, frozen=True):
    """What a metric means: an entry of `metric_definitions` in metrics.json. `graded`: whether a unit may
    have any value of the range (a similarity); otherwise it is right or wrong.
    """

    meaning: str
    better: Better
    range: Range
    unit: Unit = "percent"
    source: str = ""
    graded: bool = False


class Metric(Struct, frozen=True, kw_only=True):
    """A metric over groups. Subsets, n, confidence intervals and paired differences follow from `terms`.

    Attributes:
        terms: What one group adds to the metric.
        meaning: What the metric measures: one line in plain words.
        better: Which direction is better; `neither` for a description of the responses.
        range: The smallest and the largest possible value, in `unit`.
        source: The section or table of the paper that defines it.
        unit: The unit of the values.
        needs: Another setting whose answers the metric reads; without them it is null with that reason.
        how_to_run: The arguments of `sightline run` for the setting `needs`, if it is an option.
        judged: The question whose verdicts the metric uses; None if it reads the answers themselves.
        absent: The reason that is given if no group yields a term.
        counts_failures: Whether the metric counts probes without an answer, so that it has a value where
            nothing was answered.
        labels: The labels under which the metric has values. `varying`: those that vary within a group, and
            no value over all; `shared`: the others.
        per_group: Whether each term is about several answers, all of a group or of a part of it: the term is
            undecided if undecided outcomes could change it.
        graded: Whether a unit may have any value of the range (a similarity); otherwise it is right or wrong.
        reads: What `terms` reads of a group: anything of its answers; or only their verdicts, or these and
            letters, as `verdict_pattern` lists them (metrics/tally.py). The terms of groups that are equal in
            this are made once.
    """

    name: str
    terms: Callable[[Group], Iterable[Term]]
    meaning: str
    better: Better
    range: Range = PERCENT
    source: str
    unit: Unit = "percent"
    needs: str | None = None
    how_to_run: str = ""
    judged: str | None = "correct"
    absent: str = "no probe has a value for it"
    counts_failures: bool = False
    labels: LabelKind = "any"
    per_group: bool = False
    graded: bool = False
    reads: Reads = "answers"

    @property
    def definition(self) -> MetricDefinition:
        """The part of the metric that results and reports show."""
        return MetricDefinition(self.meaning, self.better, self.range, self.unit, self.source, self.graded)


JUDGE_PARTS = ("judge", "judges", "repeated_judge", "responder")
"""What subsets that no label makes begin with: the values of each judge, of two judges, of each responder."""

_RESERVED = (*JUDGE_PARTS, "answers")
"""Labels that are quoted: 'answers=first' is the value before truncated requests were sent again."""

_SUBSET = re.compile(r'("(?:[^"\\]|\\.)*"|[^=]*)=(.*)', re.DOTALL)


def each_value(values: str | tuple[str, ...]) -> tuple[str, ...]:
    return (values,) if isinstance(values, str) else values


def subset_name(label: str, value: str) -> str:
    """The name of the subset with one value of one label: each subset has one name, and each name one subset.

    A label or a value that holds '=' or begins with a quotation mark is quoted, as JSON is; so is a label
    that is called like a part of results.

    >>> print(subset_name("style", "oil"), subset_name("a=b", "c"), subset_name("judge", "rules"))
    style=oil "a=b"=c "judge"=rules
    """
    return f"{_quoted(label, _RESERVED)}={_quoted(value)}"


@lru_cache(maxsize=4096)
def split_subset(subset: str) -> tuple[str, str]:
    """The label and the value that a subset's name is made of; ('', '') for 'all'.

    A label that is called like a part of results stays quoted.

    >>> split_subset('"a=b"=c'), split_subset("judge=rules"), split_subset('"judge"=rules')
    (('a=b', 'c'), ('judge', 'rules'), ('"judge"', 'rules'))
    """
    match = _SUBSET.fullmatch(subset)
    if match is None:
        return "", ""
    label, value = map(_unquoted, match.groups())
    return (match[1] if label in _RESERVED else label), value


def _quoted(text: str, reserved: Container[str] = ()) -> str:
    needs_quotes = "=" in text or text.startswith('"') or text in reserved
    return json.dumps(text, ensure_ascii=False) if needs_quotes else text


def _unquoted(text: str) -> str:
    if not text.startswith('"'):
        return text
    try:
        return str(json.loads(text))
    except ValueError:  # the name of a judge, which is never quoted
        return text


class MetricValue(Struct, frozen=True):
    """One value of a metric with its context: one entry of metrics.json.

    Attributes:
        subset: 'all', 'LABEL=VALUE' (see `subset_name`), or a part by judges such as 'judge=NAME'.
        value: The value in `unit`; None if it is undefined, with n 0 and a `reason`.
        n: The number that the metric averages over.
        clusters: The number of independent images.
        low: The lower bound of the 95 % confidence interval; None without an interval.
        unit: The unit; shares are percentages 0-100.
        published: The figures of papers for this metric and subset.
        value_decided: The value without undecided verdicts.
        value_if_right: The value if all undecided verdicts were right.
    """

    metric: str
    subset: str
    value: float | None
    n: float
    clusters: int
    low: float | None = None
    high: float | None = None
    interval: IntervalMethod | None = None
    unit: Unit = "percent"
    reason: str | None = None
    published: list[PublishedValue] | None = None
    value_decided: float | None = None
    value_if_right: float | None = None
    judge: str | None = None

    @property
    def changed_if_right(self) -> float | None:
        """The value if all undecided verdicts were right; None if that changes nothing."""
        return None if self.value_if_right == self.value else self.value_if_right


class PublishedValue(Struct, frozen=True):
    """A figure that a paper prints for the same metric and subset.

    `comparable` is False if it measures something else; `note` says what. The note of a comparable figure
    says what else to know, such as who judged it. `also` names later tables that print the same figure.
    """

    row: str
    value: float
    table: str
    comparable: bool = True
    note: str | None = None
    also: tuple[str, ...] = ()

    @property
    def mark(self) -> str:
        """What stands behind the figure: '*' if it is not comparable, '†' if it has a note, otherwise ''."""
        if not self.comparable:
            return "*"
        return "†" if self.note else ""


FIRST_ANSWERS = "answers=first"
"""The subset of values with the first answers, before truncated ones were asked again."""


class CorrectedValue(Struct, frozen=True, kw_only=True):
    """The value of a metric by a judge, corrected by humans who labelled a sample of the clusters.

    Attributes:
        labelled: The number of clusters that humans labelled wholly.
        partly: The number of further clusters with some label, which are left out.
        judged: The judge's value of all clusters.
        human: The humans' value of the labelled clusters.
        sampled: The judge's value of the labelled clusters; None if nothing can be corrected.
        bias: The judge's value minus the humans', of the labelled clusters.
        finite: The corrected value with the interval for these clusters alone: for what humans would say of
            all of them. None if nothing can be corrected.
        weight: How much the judge counts in the corrected value, 0-1; None without one.
        narrowed: By how much the corrected interval is narrower than the humans', in percent; negative if it
            is wider.
        needed: The number of further clusters to label for an interval half as wide; None if all clusters
            would not be enough.
    """

    metric: str
    judge: str
    humans: str
    labelled: int
    partly: int
    judged: MetricValue
    human: MetricValue
    corrected: MetricValue
    bias: MetricValue
    sampled: MetricValue | None = None
    finite: MetricValue | None = None
    weight: float | None = None
    narrowed: float | None = None
    needed: int | None = None


class Spent(Struct, frozen=True, omit_defaults=True):
    """What the answers of a run took, cached ones included.

    Attributes:
        tokens: Of prompts and answers, as the servers report them.
        cost: At the price of the model; None if it is unknown.
        p50, p95: The quantiles of the seconds from a request to its answer; None if they are unknown.
    """

    answers: int
    tokens: int = 0
    cost: float | None = None
    p50: float | None = None
    p95: float | None = None


class Result(Struct, frozen=True, kw_only=True):
    """The result of an evaluation: all of metrics.json, in the order of the file.

    The fields are more than 15 because metrics.json is flat by contract. `metrics` are in the order of the
    benchmark. `errors` are failed calls, `not_sent` the probes that were not sent; neither has an answer.
    `ids_digest` is the digest of the ids of the samples. `corrected` has the metrics of each judge that read
    all answers, if humans labelled a part of them. `spent` is there if tokens or latencies are known.
    """

    benchmark: str
    setting: str
    model: str
    model_identity: str
    judge: str
    options: Mapping[str, Any]
    samples: int
    probes: int
    errors: int
    misses: int
    undecided: int
    truncated: int
    versions: Mapping[str, Any]
    data_digest: str
    metrics: list[MetricValue]
    empty: int = 0
    refused: int = 0
    unscored: int = 0
    unparsed: int = 0
    judge_errors: int = 0
    not_sent: int = 0
    mixed_versions: bool = False
    notes: list[str] = field(default_factory=list)
    metric_definitions: Mapping[str, MetricDefinition] = field(default_factory=dict)
    ids_digest: str = ""
    corrected: list[CorrectedValue] = field(default_factory=list)
    schema: int = 1
    spent: Spent | UnsetType = UNSET

    @property
    def unanswered(self) -> int:
        """The number of probes without an answer: failed or not sent."""
        return self.errors + self.not_sent

    @property
    def setting_name(self) -> str:
        """The setting without the folder of a groups file, which others need not know."""
        return PurePath(self.setting).stem if self.setting == self.options.get("file") else self.setting


def difference_range(bounds: Range) -> Range:
    """The range of the difference of two values.

    >>> difference_range((0.0, 100.0))
    (-100.0, 100.0)
    """
    low, high = bounds
    return (None, None) if low is None or high is None else (low - high, high - low)
