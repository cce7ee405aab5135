"""From rows, answers and judges to a Result: the one path that run, score and report share."""

from __future__ import annotations

import hashlib
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from typing import Any, Protocol

from msgspec import Struct, field
from msgspec.structs import replace

import sightline
from sightline.benchmarks.base import Benchmark
from sightline.judging.agreement import agreements
from sightline.judging.groups import NOT_ASKED, Judged, Known, graded_partners, judged, unjudged
from sightline.judging.judges import HumanJudge, Judge, judge_kind
from sightline.judging.similarity import Similarity
from sightline.judging.text_metrics import TextMeasures
from sightline.metrics.tally import tally
from sightline.plan.spec import Decide
from sightline.plan.stored_probe import StoredProbe
from sightline.scoring.similarity import SIMILAR
from sightline.types import Group, MetricValue, Result, Verdict

UNANSWERED_SHOWN = 10
MANY = 0.2
"""The share of undecided verdicts from which a reader is told what could decide them."""

LONG = 200
"""Words of an answer from which its end may not be embedded."""

SHOWN = 5
"""How many examples a note names."""


class Description(Struct, frozen=True):
    """What an evaluation is, beside its rows: all that a result must say of itself.

    `chosen` are the effective options of the benchmark, `options` those and all others. `data_digest` is
    that of the samples, `planned` their number.
    """

    benchmark: str
    setting: str
    model: str
    identity: str
    judges: tuple[str, ...]
    decide: Decide
    chosen: Mapping[str, Any]
    options: Mapping[str, Any]
    data_digest: str
    planned: int
    against: str | None = None
    seed: int = 0
    notes: list[str] = field(default_factory=list)


class Sink(Protocol):
    """Where judged groups go besides the metrics."""

    def take(self, judged: Judged) -> None:
        """Take one group, in the order of the samples."""


class Summary(Struct):
    """Counts over everything that was judged."""

    samples: int = 0
    last_sample: str = ""
    probes: int = 0
    judge_errors: int = 0
    not_asked: int = 0
    by_name: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    truncated: int = 0
    refused: int = 0
    unparsed: int = 0
    long: int = 0
    versions: Counter[str] = field(default_factory=Counter)
    judge_versions: set[str] = field(default_factory=set)
    replies: list[str] = field(default_factory=list)
    without_key: list[str] = field(default_factory=list)
    unanswered: list[tuple[str, str, str]] = field(default_factory=list)

    def add(self, judged: Judged) -> None:
        """Count one group."""
        self.samples += judged.group.id != self.last_sample
        self.by_name += judged.group.id != self.last_sample and judged.group.cluster.startswith("file ")
        self.last_sample = judged.group.id
        self.unparsed += sum(v.kind == "model" and v.verdict == "undecided" for v in judged.verdicts)
        self.judge_errors += sum(v.verdict == "error" for v in judged.verdicts)
        for verdict in judged.verdicts:
            if verdict.version:
                self.judge_versions.add(f"{verdict.judge}: {verdict.version}")
            if verdict.kind == "model" and verdict.verdict == "undecided" and len(self.replies) < SHOWN:
                self.replies.append(verdict.raw)
        for outcome in judged.group:
            self.probes += 1
            self.statuses[outcome.status] += 1
            self.verdicts[outcome.verdict] += 1
            self.truncated += outcome.truncated
            self.not_asked += outcome.error == NOT_ASKED
            self.long += len(outcome.response) > LONG and len(outcome.response.split()) > LONG
            self.refused += bool(outcome.scores.get("refused"))
            if outcome.version:
                self.versions[outcome.version] += 1
            if outcome.verdict == "unscored" and len(self.without_key) < SHOWN:
                self.without_key.append(outcome.sample)
            if not outcome.answered and len(self.unanswered) < UNANSWERED_SHOWN:
                self.unanswered.append((outcome.sample, outcome.variant, outcome.error or ""))


def conclude(
    description: Description,
    benchmark: Benchmark,
    rows: Callable[[], Iterable[StoredProbe]],
    answers: Known,
    judges: Sequence[Judge],
    replies: Known,
    sink: Sink,
    similarity: Similarity | None = None,
    texts: TextMeasures | None = None,
) -> tuple[Result, Summary]:
    """Judge every group, count, and tally; one pass, of which only numbers are kept.

    Where answers are compared by `similarity`, or with their references by `texts`, a pass before it embeds
    or measures them. Of several judges, or people, the verdicts are kept too: they are compared.
    """
    metrics = benchmark.metrics(description.chosen)
    graded = graded_partners(metrics)
    summary = Summary()
    digest = hashlib.sha256(description.data_digest.encode())
    several = len(judges) > 1 or any(isinstance(judge, HumanJudge) for judge in judges)
    verdicts: list[Verdict] = []
    clusters: dict[tuple[str, ...], str] = {}

    if similarity is not None:
        similarity.embed(unjudged(rows(), answers))
    if texts is not None:
        texts.prepare(unjudged(rows(), answers))

    def measured() -> Iterator[Group]:
        groups = unjudged(rows(), answers)
        groups = groups if similarity is None else similarity.measured(groups)
        return groups if texts is None else texts.measured(groups)

    def groups() -> Iterator[Group]:
        for one in judged(measured(), benchmark, judges, description.decide, replies, graded):
            summary.add(one)
            digest.update(one.group.cluster.encode())
            sink.take(one)
            if several:
                verdicts.extend(one.verdicts)
                clusters.update({verdict.targets: one.group.cluster for verdict in one.verdicts})
            yield one.group

    values = [
        *tally(groups(), metrics, seed=description.seed),
        *side_by_side(description, benchmark, measured, judges, replies),
        *agreements(verdicts, clusters, description.seed),
    ]
    notes = [
        *description.notes,
        *_notes(description, summary),
        *(_long_answers(summary) if similarity is not None else []),
        *_idle(judges),
    ]
    versions = {
        "sightline": sightline.__version__,
        "reported": sorted(summary.versions),
        "judges": sorted(summary.judge_versions),
        **({"embedder": similarity.identity} if similarity is not None else {}),
        **(texts.identities if texts is not None else {}),
    }
    return _result(description, summary, digest.hexdigest(), versions, values, notes), summary


def _result(
    description: Description,
    summary: Summary,
    data_digest: str,
    versions: Mapping[str, Any],
    metrics: list[MetricValue],
    notes: list[str],
) -> Result:
    """What an evaluation is and what was counted, in one record."""
    return Result(
        benchmark=description.benchmark,
        setting=description.setting,
        model=description.model,
        model_identity=description.identity,
        judge=_judge_line(description),
        options=description.options,
        samples=summary.samples,
        probes=summary.probes,
        errors=summary.statuses["error"],
        misses=summary.verdicts["miss"],
        undecided=summary.verdicts["undecided"],
        truncated=summary.truncated,
        versions=versions,
        data_digest=data_digest,
        metrics=metrics,
        empty=summary.statuses["empty"],
        refused=summary.refused,
        unscored=summary.verdicts["unscored"],
        unparsed=summary.unparsed,
        judge_errors=summary.judge_errors,
        mixed_versions=len(summary.versions) > 1,
        notes=notes,
    )


def _judge_line(description: Description) -> str:
    names = ", ".join(description.judges)
    return f"{names} (decides: {description.decide})" if len(description.judges) > 1 else names


def side_by_side(
    description: Description,
    benchmark: Benchmark,
    measured: Callable[[], Iterator[Group]],
    judges: Sequence[Judge],
    replies: Known,
) -> list[MetricValue]:
    """Where several judge: what each of them alone makes of the judged metrics (subset 'judge=NAME')."""
    if len(judges) < 2:
        return []
    metrics = [
        metric
        for metric in benchmark.metrics(description.chosen)
        if metric.judged is not None and metric.judged != SIMILAR
    ]
    graded = graded_partners(metrics)
    values: list[MetricValue] = []

    def decides(judge: Judge, question: str | None) -> bool:
        scorer = benchmark.scorer(question or "", judge_kind(judge.name), description.chosen)
        return isinstance(judge, HumanJudge) or scorer is not None

    for judge in judges:
        # One who only compares answers leaves it to the others which of them are right.
        others = [] if decides(judge, "correct") else [one for one in judges if decides(one, "correct")]
        own = [metric for metric in metrics if decides(judge, metric.judged)]
        alone = judged(measured(), benchmark, [judge, *others], "first", replies, graded)
        tallied = tally((one.group for one in alone), own, seed=description.seed)
        values += [replace(value, subset=f"judge={judge.name}") for value in tallied if value.subset == "all"]
    return values


def _notes(description: Description, summary: Summary) -> list[str]:
    """What a reader must know of the whole result beside its numbers."""
    notes = []
    if summary.samples < description.planned:
        notes.append(f"incomplete: {summary.samples} of {description.planned} samples")
    if summary.not_asked:
        notes.append(
            f"incomplete: {summary.not_asked:,} of {summary.probes:,} probes were not asked; they count as "
            "not right, and the same command asks them"
        )
    if summary.verdicts["undecided"] > MANY * summary.probes:
        notes.append(
            f"{summary.verdicts['undecided']:,} of {summary.probes:,} verdicts are undecided and count as "
            "not right: another --judge, a model or people, can decide them"
        )
    if summary.judge_errors:
        notes.append(
            f"{summary.judge_errors:,} judgements could not be had: their judge failed, or the budget was "
            "spent"
        )
    if 0 < summary.verdicts["unscored"] < summary.probes:
        notes.append(
            f"{summary.verdicts['unscored']} answers have no key to score them: "
            + _listed(summary.without_key, summary.verdicts["unscored"])
        )
    if summary.replies:
        shown = [repr(" ".join(reply.split())[:60]) for reply in summary.replies]
        notes.append(f"judge replies that hold no verdict: {_listed(shown, summary.unparsed)}")
    if summary.by_name:
        notes.append(f"images of {summary.by_name} samples could not be read: their clusters go by file name")
    return notes


def _long_answers(summary: Summary) -> list[str]:
    """How many answers are longer than embedding models read."""
    if not summary.long:
        return []
    return [
        f"{summary.long:,} answers have more than {LONG} words: embedding models read some 250 tokens, and "
        "what stands behind them is not compared"
    ]


def _listed(names: Sequence[str], total: int) -> str:
    rest = total - len(names)
    return ", ".join(names) + (f" and {rest} more" if rest > 0 else "")


def _idle(judges: Sequence[Judge]) -> list[str]:
    """The people none of whose verdicts belong to what was judged."""
    return [
        f"{judge.name}: none of its {len(judge.verdicts)} verdicts is on these answers (targets and question)"
        for judge in judges
        if isinstance(judge, HumanJudge) and not judge.matched
    ]
