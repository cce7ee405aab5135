"""The nouns of Sightline: Sample -> Probe -> Request -> Answer -> Verdict -> Outcome -> Group -> Metric.

Plain frozen records. They hold data and small derived views, never behaviour with effects, and every
other module speaks in them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct, field

Labels = Mapping[str, str | tuple[str, ...]]
"""Label name -> its value, or its values where a sample carries several (II-Bench's rhetoric)."""

VerdictName = Literal["right", "wrong", "miss", "undecided", "refused", "error", "unscored"]
JudgeKind = Literal["rules", "model", "human"]
Role = Literal["system", "user", "assistant"]
Unit = Literal["percent", "points", "number"]
"""Points are differences of percentages."""

Augmentation = Literal["ocr", "layout", "layout+caption"]
"""The text that replaces images: OCR text, OCR text in its layout, or that and a caption (ConTextual 3.1)."""

Better = Literal["higher", "lower", "neither"]
"""Which direction of a metric is better."""

Range = tuple[float | None, float | None]
"""The smallest and the largest possible value of a metric; None if there is no bound."""

PERCENT = (0.0, 100.0)
"""The range of a metric that is a share."""


CUT_OFF = ("length", "max_tokens")
"""The finish reasons of a model that was stopped by its token limit."""

UNCHANGED = "unchanged"
"""The option, and the setting, that asks the unchanged input again and again (MM-R3 4.2: Sampling)."""


class Text(Struct, frozen=True, tag="text"):
    """A piece of a message that is words."""

    text: str


class ImageRef(Struct, frozen=True, tag="image"):
    """A piece of a message that is an image, named by its place on disk; read only when it is sent.

    `root` is the data folder that the image must not leave.
    """

    path: str
    root: str = ""


Part = Text | ImageRef


class Message(Struct, frozen=True):
    """One turn of a conversation."""

    role: Role
    parts: tuple[Part, ...]


def user(*parts: Part | str) -> Message:
    """A user turn made of texts and images, in the order given."""
    return Message("user", tuple(Text(part) if isinstance(part, str) else part for part in parts))


class Sample(Struct, frozen=True):
    """One item of a benchmark.

    `cluster` names what intervals resample; None means the digest of the first image, so that
    samples which show the same image fall together. `record` is the released record, typed by its
    benchmark.
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
    """One query put to the model for a sample. The probes of a sample are its group.

    `references` and `options` are those of this probe (CODIS: the answer under this context;
    II-Bench: the options in the order shown). `question` is what a judge is told was asked. `draws` is 0
    where every draw of the sample is a group of its own; a probe that is asked again unchanged has all its
    draws in a group of its own, and `draws` of them are what another setting is held against. `choices` are
    the answers of which the model takes the likeliest; where there are none it answers in words.
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


class ImageFile(Struct, frozen=True):
    """An image on disk that was looked at: its digest, its true format, its size in pixels and bytes.

    `transform` is empty where the original bytes are sent, else it says what is done to them; it is
    part of the request's key. `stamp` (size, mtime in ns) is what the digest was computed for.
    """

    path: str
    digest: str
    format: str
    width: int
    height: int
    stamp: tuple[int, int]
    transform: str = ""


class Origin(Struct, frozen=True):
    """Which probe a request was rendered from; no part of its key."""

    benchmark: str
    setting: str
    sample: str
    variant: str
    draw: int = 0


class Request(Struct, frozen=True):
    """A probe rendered for one model. `key` is the address of its answer in the store.

    `images` maps the path of every `ImageRef` in `messages` to what is known of that file.
    `sampling` holds the effective sampling and provider options that are sent. Where there are `choices`,
    the answer is the one of them that the model finds likeliest.
    """

    key: str
    messages: tuple[Message, ...]
    sampling: Mapping[str, Any]
    images: Mapping[str, ImageFile] = field(default_factory=dict)
    draw: int = 0
    origin: Origin | None = None
    choices: tuple[str, ...] = ()


class Usage(Struct, frozen=True, omit_defaults=True):
    """Tokens of one call, as the server counted them; None where it did not say."""

    prompt_tokens: int | None = None
    completion_tokens: int | None = None
    reasoning_tokens: int | None = None


class Answer(Struct, frozen=True):
    """What the model returned for a request. `latency` is in seconds; `version` is the model's name
    for itself, as the server reported it."""

    text: str
    reasoning: str = ""
    finish_reason: str = ""
    usage: Usage = field(default_factory=Usage)
    latency: float = 0.0
    version: str = ""

    @property
    def truncated(self) -> bool:
        """Whether the model was cut off by its token limit."""
        return self.finish_reason in CUT_OFF


class Failure(Struct, frozen=True):
    """A call that gave no answer.

    `transient`: asked again by the next run. `permanent` and `blocked` (content filter, context
    overflow): asked again only with --retry-errors. `retry_after` is in seconds.
    """

    kind: Literal["transient", "permanent", "blocked"]
    message: str
    retry_after: float | None = None
    status: int | None = None


def _written(default: Any) -> Any:
    """A default that stays in the JSON of a struct with `omit_defaults`.

    msgspec leaves out a field whose value is its plain default, but writes one whose default comes from a
    factory.
    """
    return field(default_factory=lambda: default)


def _no_scores() -> Mapping[str, float]:
    """Empty scores that are written: msgspec leaves out an empty dict that the factory `dict` made."""
    return {}


class Verdict(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A scorer's reading of one or more answers: one line of verdicts.jsonl.

    The order of the fields is that of the line. Lines always hold the fields down to `raw`, the others only
    if they are set.

    Attributes:
        targets: The keys of the answers.
        question: What is decided: `correct` (verdict right, wrong ...), `same_meaning` (right is same, wrong
            is different) or another question of the benchmark.
        scorer: The name of the scorer.
        judge: Who decides: `rules`, the name of a model, or the name of a human.
        kind: The kind of judge.
        draw: The repeat of the judge's request, from 0.
        verdict: The verdict; `error` if the judge could not be asked.
        value: A number that the verdict rests on, such as a cosine similarity.
        raw: The reply, or the part of the response, that was read.
        extracted: The option read from the response.
        variant: The probe whose reference the answer is compared with, as two probes may share an answer;
            '' if unknown.
        version: The version that the judge model reports of itself.
        scores: Numbers by name.
        labels: The errors that a human names in the answer.
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


class Outcome(Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A probe with its answer and the verdict that counts: one line of answers.jsonl.

    The order of the fields is that of the line. Lines always hold the fields down to `scores`, the others
    only if they are set. A line also holds `group`, which equals `sample` (see `formats.jsonl`).

    Attributes:
        sample: The id of the sample, which is also the id of its group.
        variant: The name of the probe.
        draw: The repeat, from 0.
        key: The key of the answer in the store.
        labels: The labels of the probe.
        response: The text of the answer; empty if there is none.
        status: `ok`, `empty` (an answer without text) or `error` (no answer).
        finish_reason: Why the model stopped.
        usage: The tokens of the call.
        verdict: The verdict that counts.
        extracted: The option read from the response.
        references: The correct answers.
        judge: Who gave the verdict.
        scores: Numbers by name.
        question: The question of the probe.
        options: The options of the question, in the order shown.
        cluster: The cluster that confidence intervals resample.
        error: Why there is no answer.
        version: The version that the model reports of itself.
    """

    sample: str
    variant: str
    draw: int
    key: str
    labels: Labels
    response: str
    status: Literal["ok", "empty", "error"]
    finish_reason: str
    usage: Usage
    verdict: VerdictName
    extracted: str | None = _written(None)
    references: tuple[str, ...] = _written(())
    judge: str = _written("")
    scores: Mapping[str, float] = field(default_factory=_no_scores)
    question: str = ""
    options: tuple[str, ...] = ()
    cluster: str = ""
    error: str | None = None
    version: str = ""

    @property
    def right(self) -> bool:
        """Whether the answer counts as right; error, miss, refused and undecided do not."""
        return self.verdict == "right"

    @property
    def scored(self) -> bool:
        """Whether it counts for or against the model: there is a reference to hold it against."""
        return self.verdict in ("right", "wrong") or (bool(self.references) and self.verdict != "unscored")

    @property
    def truncated(self) -> bool:
        """Whether the model was cut off by its token limit."""
        return self.finish_reason in CUT_OFF

    @property
    def answered(self) -> bool:
        """Whether the model gave any answer (an empty one is an answer)."""
        return self.status != "error"


class Group(Struct, frozen=True):
    """The outcomes of one sample (in one draw), in variant order, and the verdicts on several of them.

    `judgements` are verdicts with two targets or more (`same_meaning`). `partners` holds, per other
    setting that a metric needs, that setting's outcomes for the same sample in the same variant order;
    it lacks a setting whose answers are not known. `evidence` holds, by answer key, the images that a judge
    of that answer is shown.
    """

    id: str
    draw: int
    cluster: str
    outcomes: tuple[Outcome, ...]
    judgements: tuple[Verdict, ...] = ()
    partners: Mapping[str, tuple[Outcome, ...]] = field(default_factory=dict)
    evidence: Mapping[str, tuple[ImageFile, ...]] = field(default_factory=dict)

    def __iter__(self) -> Iterator[Outcome]:
        return iter(self.outcomes)

    def __len__(self) -> int:
        return len(self.outcomes)

    @property
    def labels(self) -> Labels:
        """The labels that belong to the group as a whole: those that all its outcomes share."""
        first = self.outcomes[0].labels
        if all(outcome.labels == first for outcome in self.outcomes):
            return first
        return {
            name: value
            for name, value in first.items()
            if all(outcome.labels.get(name) == value for outcome in self.outcomes)
        }

    def judgement(self, question: str, *targets: str) -> Verdict | None:
        """The verdict on exactly these answers, or None where nobody gave one."""
        for verdict in self.judgements:
            if verdict.question == question and verdict.targets == targets:
                return verdict
        return None


class Term(Struct, frozen=True):
    """What one group adds to a metric: value = sum of `sum` over sum of `count`.

    `labels` are those under which the term also counts; None means those that the whole group shares. A
    term about one outcome whose labels are its own (a style, a mask) carries `outcome.labels`. One that is
    not `overall` counts under its labels alone: a pair counts once over all, and a part of it under the
    label of either answer.
    """

    sum: float
    count: float
    labels: Labels | None = None
    overall: bool = True


class MetricDefinition(Struct, frozen=True):
    """What a metric means: an entry of `metric_definitions` in metrics.json.

    Attributes:
        meaning: One line in plain words.
        better: Which direction is better; `neither` for a description of the responses.
        range: The smallest and the largest possible value, in `unit`.
        unit: The unit of the values.
        source: The section or table of the paper that defines it.
    """

    meaning: str
    better: Better
    range: Range
    unit: Unit = "percent"
    source: str = ""


class Metric(Struct, frozen=True, kw_only=True):
    """A metric over groups. Subsets, n, confidence intervals and paired differences follow from `terms`.

    Attributes:
        name: The name in metrics.json.
        terms: What one group adds to the metric.
        meaning: What the metric measures: one line in plain words.
        better: Which direction is better; `neither` for a description of the responses.
        range: The smallest and the largest possible value, in `unit`.
        source: The section or table of the paper that defines it.
        unit: The unit of the values.
        needs: Another setting whose answers the metric reads; without them it is null with that reason.
        judged: The question whose verdicts the metric uses; None if it reads the answers themselves.
        absent: The reason that is given if no group yields a term.
        whole: Whether a group counts as one unit: one undecided outcome leaves the group undecided.
    """

    name: str
    terms: Callable[[Group], Iterable[Term]]
    meaning: str
    better: Better
    range: Range
    source: str
    unit: Unit = "percent"
    needs: str | None = None
    judged: str | None = "correct"
    absent: str = "no probe counts towards it"
    whole: bool = False

    @property
    def definition(self) -> MetricDefinition:
        """The part of the metric that results and reports show."""
        return MetricDefinition(self.meaning, self.better, self.range, self.unit, self.source)


class MetricValue(Struct, frozen=True):
    """One number and all that must travel with it: one entry of metrics.json.

    Shares are percentages 0-100. `n` counts what the metric averages over, `clusters` the independent
    images among them; `low` and `high` bound the 95 % interval of kind `interval`, None where the clusters
    show no spread. An undefined value is None with n 0 and a `reason`. `value_decided` leaves undecided
    verdicts out; `value_if_right` is the value if every undecided one were right.
    """

    metric: str
    subset: str
    value: float | None
    n: float
    clusters: int
    low: float | None = None
    high: float | None = None
    interval: Literal["bootstrap", "wilson"] | None = None
    unit: Unit = "percent"
    reason: str | None = None
    published: list[PublishedValue] | None = None
    value_decided: float | None = None
    value_if_right: float | None = None
    judge: str | None = None


class PublishedValue(Struct, frozen=True):
    """A figure as a paper printed it, for the same metric and subset.

    `comparable` is False where `note` says why it does not measure the same thing.
    """

    row: str
    value: float
    table: str
    comparable: bool = True
    note: str | None = None


class Result(Struct, frozen=True):
    """What a run came to: the whole of metrics.json. `metrics` are in the order of the benchmark."""

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
    mixed_versions: bool = False
    notes: list[str] = field(default_factory=list)
    metric_definitions: Mapping[str, MetricDefinition] = field(default_factory=dict)
    schema: int = 1


class Case(Struct, frozen=True):
    """Something to be judged: one answer against its reference, or two answers against each other.

    `texts` are the answers' texts in the order of `targets`; `references` and `options` belong to the
    question that was asked. A case about one answer says its `place` in the group and its `variant`; it holds
    the `images` that a judge may be shown of it.
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
