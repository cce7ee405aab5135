"""The base class of every benchmark: what it declares, with defaults for what most of them share."""

from __future__ import annotations

import os
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Literal

from msgspec import Struct, field

from sightline.errors import UserError, unknown_name
from sightline.formats.jsonl import ExportFormat
from sightline.formats.prediction import AnswerFiles, Prediction
from sightline.scoring.scorer import Reading, RuleScorer, Scorer
from sightline.types import (
    PERCENT,
    Case,
    Group,
    ImageRef,
    Metric,
    MetricValue,
    Outcome,
    Probe,
    Range,
    Sample,
    Term,
    Verdict,
)

# -- What a user may choose of a benchmark: its options (`--set`) and its named settings

FILE = "FILE"
"""The name of a setting that stands for any file: `groups:mine.jsonl` sets the option `file`."""


class BenchmarkOption(Struct, frozen=True):
    """One `--set` key of a benchmark.

    A value is one of `choices`; without choices, a whole number from `least`; without both, a text. The
    default is always allowed. `labels` are heads for values in tables of several runs (value -> head), in the
    order of the columns. An `internal` option is set by settings or by code: `sightline list` leaves it out.
    """

    default: Any
    summary: str
    choices: tuple[Any, ...] | None = None
    least: int | None = None
    labels: Mapping[Any, str] = field(default_factory=dict)
    internal: bool = False

    def allows(self, value: Any) -> bool:
        """Whether the option takes a value that the user gave."""
        if self.choices is not None:
            return any(value == choice and type(value) is type(choice) for choice in self.choices)
        if self.least is not None:
            counts = isinstance(value, int) and not isinstance(value, bool) and value >= self.least
            return counts or value is self.default
        return isinstance(value, str) or value == self.default

    @property
    def allowed(self) -> str:
        """A description of the allowed values, for help texts and error messages."""
        if self.choices is not None:
            return "one of " + ", ".join(map(_as_typed, self.choices))
        return f"a whole number from {self.least}" if self.least is not None else "a text"

    def label(self, value: Any) -> str | None:
        """The label of a value; None if it has none."""
        return next((label for choice, label in self.labels.items() if choice == value), None)


def _as_typed(choice: Any) -> str:
    """A choice as the user types it after --set KEY=; True and False are switches, 0 and 1 are not."""
    return ("off", "on")[choice] if isinstance(choice, bool) else str(choice)


ANSWER_BY = BenchmarkOption(
    "text", "read the response (text), or choose the most likely option (likelihood)", ("text", "likelihood")
)
"""The option `answer_by` of benchmarks whose questions offer options."""


class Setting(Struct, frozen=True):
    """A named way to run a benchmark.

    `options` are those that it fixes. `reproduces` names the tables of the paper. `sampling` holds the
    sampling defaults, `sampling_source` where they come from ('unpublished' if the paper does not say).
    """

    name: str
    summary: str
    reproduces: str = "nothing published"
    options: Mapping[str, Any] = field(default_factory=dict)
    sampling: Mapping[str, Any] = field(default_factory=dict)
    sampling_source: str = "unpublished"


def by_name(*settings: Setting) -> dict[str, Setting]:
    """Index settings by their names; the default one comes first."""
    return {setting.name: setting for setting in settings}


class Benchmark(ABC):
    """A benchmark: samples, the probes of each, the cases to judge in each group, and the metrics.

    A small benchmark sets `name` and overrides `samples`, `probes`, `rule` and `metrics`. Everything else
    has a default that suits a benchmark whose answers are judged one by one. A benchmark holds no state.

    Arguments mean the same in all methods: `folder` is the data folder, None if the user named none; `split`
    is one of `splits`, and `sample` one of `samples`; `options` are the effective options. Notes are lines
    for the result. A method that reads files raises UserError where a file, record or field is missing or
    wrong.
    """

    name: str
    """The name under which it is registered."""
    title: str = ""
    citation: str = ""
    splits: tuple[str, ...] = ("test",)
    """The splits of its data, the default first."""
    settings: Mapping[str, Setting] = by_name(Setting("default", "the questions as they are"))
    """The named ways to run it, the default first."""
    options: Mapping[str, BenchmarkOption] = {}
    """The `--set` keys. The methods get their effective values, and `options["seed"]` from `--seed`. The key
    `image` says with the value False or 'none' that no image is sent."""
    presets: Mapping[str, Mapping[str, Any]] = {}
    """Named sets of sampling options for `--preset NAME`."""
    judged_by: tuple[str, ...] = ("rules", "human")
    """The kinds of judges that it takes: `rules`, `model`, `human`."""

    release: Release | None = None
    """The public data set that `sightline data` fetches and checks."""
    elsewhere: str = ""
    """Where its data are, if `sightline data pull` does not fetch them."""
    unpinned: UserRecords | None = None
    """The records of these data, with their number. Sightline does not know the digest of their file."""
    published: Path | None = None
    """The JSON file with the figures that its paper printed (`benchmarks.released` declares its format)."""
    released_digests: Path | None = None
    """The JSON list of the digests of `released_records`, as the paper released them. Other data get no
    published figures."""
    corrections: Path | None = None
    """The file of disputed references that `report --corrections NAME` reads; nothing else does."""
    answer_files: AnswerFiles = AnswerFiles()
    """How files of other tools hold the answers to it."""
    export_formats: Mapping[str, ExportFormat] = {}
    """The formats of its own that `sightline export --as NAME` writes, by name."""

    leading_metrics: tuple[str, ...] = ()
    """The metrics that compact tables show. The first one is the headline of every view of a run."""
    exact_metric: str = ""
    """The metric that follows the headline where similarity cannot tell the answers of a run apart."""
    companions: Mapping[str, str] = {}
    """A leading metric -> the metric that compact tables show beside it where the two differ."""
    chance_notes: Mapping[str, str] = {}
    """Metric -> a line that says which value guessing gives."""
    correlated_metrics: tuple[tuple[str, str], ...] = ()
    """The pairs of metrics whose correlation over models its paper discusses."""
    correlation: Literal["pearson", "spearman"] = "pearson"
    """The correlation coefficient that its paper uses."""
    radar_labels: tuple[str, ...] = ()
    """The labels whose values `--plot` draws as the spokes of a radar."""
    spread_metrics: tuple[str, ...] = ()
    """The metrics whose spread over models its paper discusses."""
    report_sections: tuple[ReportSection | ByOwnLabels, ...] = ()
    """What its HTML report shows besides the leading metrics; by default the first of them by each label."""
    chance_levels: Mapping[str, float] = {}
    """Metric -> the value that guessing gives, where it is one number for all samples."""
    error_types: tuple[str, ...] = ()
    """The types of model errors that its paper distinguishes."""
    has_commands: bool = False
    """Whether its questions are mostly commands, so that their verbs can be counted."""

    @abstractmethod
    def samples(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> Iterable[Sample]:
        """Read and check the records of a split.

        Returns:
            The samples in the order of the records; a generator is enough.
        """

    @abstractmethod
    def probes(self, sample: Sample, options: Mapping[str, Any]) -> Iterator[Probe]:
        """Render the queries of a sample.

        Yields:
            The probes in variant order; together they are the sample's group.
        """

    @abstractmethod
    def metrics(self, options: Mapping[str, Any]) -> Sequence[Metric]:
        """List the metrics under these options, the primary one first."""

    def rule(self, case: Case) -> Reading:
        """Judge one answer by rules; by default it stays unscored.

        Args:
            case: The answer with its question and references.

        Returns:
            The verdict, and what was extracted from the response.
        """
        return Reading("unscored")

    def scorers(self, options: Mapping[str, Any]) -> Sequence[Scorer]:
        """List the scorers; by default `rule` for the question `correct`.

        Returns:
            At most one scorer of each type for each question. Without a `RuleScorer`, `ModelScorer` or
            `VectorScorer` for a question, rules, judge models or embedders do not decide it.
        """
        return [RuleScorer(f"{self.name}/rules", "correct", self.rule)]

    def text_scores(self, outcome: Outcome, options: Mapping[str, Any]) -> Mapping[str, float]:
        """Read numbers from a response by rules, whoever judges it; by default none.

        Metrics count these scores and never read a response themselves.

        Args:
            outcome: An outcome with a response, which may be empty.

        Returns:
            Numbers by name, which join `Outcome.scores`.
        """
        return {}

    def reference_sides(self, outcome: Outcome) -> Sequence[str]:
        """List what the first reference of a question without options can be; by default any text."""
        return ()

    def pair_verdicts(self, group: Group) -> Iterable[Verdict]:
        """Compare answers of a group by rules, whoever judges them; by default none are compared.

        Args:
            group: The answers of one sample, or of one probe of a partner setting.

        Returns:
            The verdicts, which join `Group.judgements`.
        """
        return ()

    def cases(self, group: Group) -> Iterator[Case]:
        """List what is to be judged in a group; by default each answer by itself.

        Args:
            group: The answers of one sample. Cases about failed or empty answers are allowed; no judge is
                called for them.

        Yields:
            Cases about single answers first, then comparisons.
        """
        yield from answer_cases(group)

    def partner(self, setting: str, options: Mapping[str, Any]) -> dict[str, Any]:
        """Derive the options of another setting whose answers a metric needs (`Metric.needs`).

        By default they are these options with what the other setting fixes.
        """
        other = self.settings.get(setting)
        return {**options, **(other.options if other else {})}

    def in_order(self, sample: Sample) -> Sample:
        """Put the parts of a sample in an order that does not depend on the order of its file.

        Digests of data are made of the result; by default the sample stays as it is.
        """
        return sample

    def sample_content(self, sample: Sample) -> Any:
        """List what of a sample is data, and the same in every setting.

        `compare` pairs two runs only on samples of equal content.

        Returns:
            Plain data or structs; by default the question, the names of the images, the references, the
            options in any order, and the record.
        """
        names = [os.path.basename(image.path) for image in sample.images]
        return [sample.question, names, sample.references, sorted(sample.options), sample.record]

    def pools_draws(self, options: Mapping[str, Any]) -> bool:
        """Whether all draws of a probe form one group (`Probe.draws`); by default each draw does."""
        return False

    def task_arguments(self, options: Mapping[str, Any]) -> str:
        """Name the options under which answers belong to a task of their own.

        `score` refuses answers of one task under another.

        Returns:
            The arguments as the user types them, such as `--set unchanged=on`; by default none ('').
        """
        return ""

    def sampling_notes(self, options: Mapping[str, Any], sampling: Mapping[str, Any]) -> list[str]:
        """Write notes on effective sampling options that do not suit the benchmark; by default none."""
        return []

    def value_notes(self, values: Mapping[str, MetricValue], options: Mapping[str, Any]) -> list[str]:
        """Write notes on values over all (by metric) that change how others are read; by default none."""
        return []

    def left_out_notes(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> list[str]:
        """Write notes on records of the data that are not asked; by default none."""
        return []

    def options_from_answers(
        self, file: str, predictions: Sequence[Prediction], folder: Path | None
    ) -> dict[str, Any]:
        """Derive options from a file of answers that holds what the model got, such as its questions.

        By default none.
        """
        return {}

    def samples_in_answers(
        self, answers: Sequence[Prediction], split: str, options: Mapping[str, Any]
    ) -> Iterable[Sample]:
        """Read the samples that a file of answers holds, by the options that the file gave.

        By default those of `samples` without a folder.
        """
        return self.samples(None, split, options)

    def own_answers(self, folder: Path | None, options: Mapping[str, Any]) -> tuple[Path, list[Prediction]]:
        """Read the answers that the data itself holds, and name the file that holds them.

        Raises:
            UserError: The data has no answers (the default).
        """
        raise UserError("no file of answers", expected=f"sightline score {self.name} FILE")

    def unread_answers_notes(self, folder: Path | None, options: Mapping[str, Any]) -> list[str]:
        """Write notes on answers that the data itself holds, where others are judged; by default none."""
        return []

    def add_judgements(self, predictions: Sequence[Prediction], path: Path) -> list[Prediction]:
        """Add the verdicts of a released file of judgements to the answers that they judge.

        Raises:
            UserError: The benchmark released no judgements (the default), or the file is wrong.
        """
        raise UserError(
            f"{self.name} has no file format for judgements", file=path, expected="no --judgements"
        )

    def released_records(
        self, folder: Path | None, split: str, options: Mapping[str, Any]
    ) -> Mapping[str, Any]:
        """Read the values of records that the paper released, to compare them with `released_digests`.

        Returns:
            Sample id -> the released values, without paths of images; by default none.
        """
        return {}

    def images_by_id(self, folder: Path) -> Mapping[str, ImageRef] | None:
        """List the images of a folder in the released format by the ids that the records give them.

        None if the folder does not have this layout (the default).
        """
        return None

    def extra_texts(self, folder: Path, split: str) -> Mapping[str, list[str]]:
        """Read the texts of a split that its samples do not hold, for `sightline data describe`.

        Returns:
            Kind of text -> the texts; by default none.
        """
        return {}


JUDGE_IMAGE = BenchmarkOption(False, "send the image to the judge too", (True, False))


def defaults(benchmark: Benchmark, setting: Setting) -> dict[str, Any]:
    """Compute the options of a benchmark under a setting where the user sets none."""
    return {**{name: option.default for name, option in benchmark.options.items()}, **setting.options}


def answer_cases(group: Group, question: str = "correct") -> Iterator[Case]:
    """Make a case about each answer of a group, in their order."""
    for index, outcome in enumerate(group):
        yield Case(
            targets=(outcome.key,),
            question=question,
            probe_question=outcome.question,
            texts=(outcome.response,),
            references=outcome.references,
            options=outcome.options,
            outcome_index=index,
            variant=outcome.variant,
            images=group.evidence.get(outcome.key, ()),
        )


# -- What the report of a benchmark shows besides its leading metrics; `viewer/sections.py` draws it


class ByLabel(Struct, frozen=True):
    """A metric under each value of a label; `radar` draws it as a radar chart too."""

    metric: str
    label: str
    radar: bool = False


class PairCounts(Struct, frozen=True):
    """How many pairs of answers are both right, one right, none or undecided; how many are the same twice.

    `both` is the metric of pairs with both answers right, `differ` that of pairs whose answers differ.
    """

    both: str
    differ: str
    label: str


class Shares(Struct, frozen=True):
    """Metrics that add up to 100 % under each value of a label; `parts`: each, and what it counts."""

    title: str
    parts: tuple[tuple[str, str], ...]
    label: str


class Against(Struct, frozen=True):
    """One metric against another: a point for each run, and for each row of the paper."""

    x: str
    y: str


class Together(Struct, frozen=True):
    """Some metrics over all samples, with the reason where one has no value."""

    title: str
    metrics: tuple[str, ...]


class Differences(Struct, frozen=True):
    """Metrics beside the same metrics of other answers, of which the run measures the difference.

    `here` and `there` are what the answers of the run and the others are called. `metrics` has each metric,
    and the one that is its difference, here minus there.
    """

    title: str
    here: str
    there: str
    metrics: tuple[tuple[str, str], ...]


class ByJudge(Struct, frozen=True):
    """A metric as each judge alone decides it, and how the judges agree."""

    metric: str


ReportSection = ByLabel | PairCounts | Shares | Against | Together | Differences | ByJudge


class ByOwnLabels(Struct, frozen=True):
    """Metrics under each value of every label of the user, which no other section names."""

    metrics: tuple[str, ...]


# -- The declaration of a public data set: repository, pinned revision, digests, licence, published counts


class ReleasedRecords(Struct, frozen=True):
    """A released file of records: a split of the data set.

    `path` is its path in the repository, `name` its name in a data folder. `samples` and `images` (distinct
    by content) are the paper's counts.
    """

    split: str
    path: str
    name: str
    sha256: str
    samples: int
    images: int

    @property
    def accepted(self) -> Mapping[str, str]:
        """The names under which a data folder may hold the file, each with its SHA-256."""
        return {self.name: self.sha256}


class UserRecords(Struct, frozen=True):
    """A file of records in the released format that is not part of a pinned release: a split.

    `samples` is the number that was released; None for a split of the user's own.
    """

    split: str
    name: str
    samples: int | None = None


class ReleasedFile(Struct, frozen=True):
    """A released file without records.

    `path` is its path in the repository, `name` its name in a data folder. `forms` maps other names of the
    same content to their SHA-256.
    """

    path: str
    name: str
    sha256: str
    forms: Mapping[str, str] = {}

    @property
    def accepted(self) -> Mapping[str, str]:
        """The names under which a data folder may hold the file, each with its SHA-256."""
        return {self.name: self.sha256, **self.forms}


class Release(Struct, frozen=True):
    """A public data set at a pinned revision.

    `name` is the folder that `data pull` makes. `archive` is the URL of a release that is not a revision of
    a repository at GitHub. `images` is the repository's folder of images. Where the
    repository holds no images, `image_urls` is the column of the records with the URL of each image, and
    `image_path` maps a URL to the image's path in a data folder. `user_records` are splits that a data
    folder may hold although nobody released them. `elsewhere` names what the repository lacks, where it is
    and which command takes it.
    """

    name: str
    repository: str
    revision: str
    paper: str
    licence: str
    records: tuple[ReleasedRecords, ...] = ()
    images: str = ""
    image_urls: str = ""
    image_path: Callable[[str], str] | None = None
    files: tuple[ReleasedFile, ...] = ()
    user_records: tuple[UserRecords, ...] = ()
    archive: str = ""
    elsewhere: tuple[str, ...] = ()

    @property
    def contents(self) -> tuple[ReleasedRecords | ReleasedFile, ...]:
        """The files to take from the repository, without its images."""
        return (*self.records, *self.files)

    @property
    def splits(self) -> tuple[ReleasedRecords | UserRecords, ...]:
        """The records that a data folder may hold, one file a split."""
        return (*self.records, *self.user_records)

    @property
    def url(self) -> str:
        """The URL of the repository's archive at the pinned revision."""
        return self.archive or f"https://codeload.github.com/{self.repository}/tar.gz/{self.revision}"


# -- Text metrics and their options, for any benchmark whose answers have references

NAMES = ("rouge_l", "bertscore", "bleurt")
"""The text metrics of ConTextual (3.2.2, Table 3)."""

_MEANINGS: Mapping[str, str] = {
    "rouge_l": "F1 of the longest common subsequence with the reference (ROUGE-L), x 100",
    "bertscore": "F1 of token embeddings matched with the reference (BERTScore), x 100",
    "bleurt": "similarity to the reference by a trained regression model (BLEURT), x 100",
}
RANGES: Mapping[str, Range] = {
    "rouge_l": PERCENT,
    "bertscore": (None, None),  # an F1 of cosines leaves -100 to 100 if precision and recall differ in sign
    "bleurt": (None, None),
}

NONE = "none"

TEXT_METRICS: Mapping[str, BenchmarkOption] = {
    "text_metrics": BenchmarkOption(NONE, f"similarity to the references: some of {','.join(NAMES)}"),
    "bertscore_model": BenchmarkOption(
        "all-MiniLM-L6-v2", "encoder of bertscore: a folder, or a name of the Hub"
    ),
    "bertscore_layer": BenchmarkOption(
        None, "layer of that encoder; null: bert-score's own layer for this model, or the last", least=1
    ),
    "bleurt_model": BenchmarkOption(
        None, "checkpoint of bleurt (one regression output): a folder, or a name of the Hub"
    ),
}
"""The `--set` keys of the text metrics, for `Benchmark.options`."""


def requested_metrics(options: Mapping[str, Any]) -> tuple[str, ...]:
    """List the text metrics that the options request.

    >>> requested_metrics({"text_metrics": "bertscore,rouge_l"})
    ('bertscore', 'rouge_l')
    """
    listed = str(options.get("text_metrics", NONE))
    names = tuple(dict.fromkeys(name.strip() for name in listed.split(",") if name.strip()))
    if names in ((), (NONE,)):
        return ()
    for name in names:
        if name not in NAMES:
            raise unknown_name("text metric", name, NAMES)
    return names


def text_metrics(options: Mapping[str, Any]) -> list[Metric]:
    """Define the text metrics that the options request: means over the answers that have references, x 100.

    Failed answers are left out. Of several references, the most similar one counts.
    """
    return [
        Metric(
            name=name,
            terms=_mean_of(name),
            meaning=_MEANINGS[name],
            better="higher",
            range=RANGES[name],
            graded=True,
            source="ConTextual 3.2.2, Table 3",
            judged=None,
            absent="no answer has a reference",
        )
        for name in requested_metrics(options)
    ]


def _mean_of(name: str) -> Callable[[Group], Iterator[Term]]:
    def terms(group: Group) -> Iterator[Term]:
        for outcome in group:
            if name in outcome.scores:
                yield Term(outcome.scores[name] / 100, 1, outcome.labels)

    return terms
