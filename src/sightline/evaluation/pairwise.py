"""Pairwise judgement: a judge model sees a question with the answers of two runs, once in each order.

Judges prefer an answer for its position; a preference counts if it is the same in both orders (Zheng et al.
2023, section 3.4).
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from functools import partial
from typing import Literal, NamedTuple

import numpy as np
from msgspec.structs import replace

from sightline.builders.replies import MAX_ATTEMPTS, ReplyRequests, ReplyResult, collect_replies
from sightline.config import Price
from sightline.engine.client import ModelClient
from sightline.engine.limits import DEFAULT_MAX_TOKENS, token_limit
from sightline.errors import UserError, unknown_name
from sightline.evaluation.estimate import RequestsEstimate, RequestTally
from sightline.formats.jsonl import counted_notes
from sightline.images import BadImage
from sightline.metrics.flips import probe_pairs
from sightline.metrics.significance import Comparison, flip_clusters, holm
from sightline.metrics.statistics import LEVEL, cluster_positions, clustered_mean
from sightline.reporting.table import (
    Column,
    Field,
    PValue,
    ReportTable,
    build_table,
    clusters_cell,
    number_text,
    value_cell,
)
from sightline.scoring.letters import are_listed
from sightline.scoring.scorer import Choice, ask_preference, read_preference
from sightline.store.answers import KeyedRequest
from sightline.store.database import run_in_thread
from sightline.store.store import Store, inspect_images
from sightline.text import counted
from sightline.types import LETTERS, Answer, ImageFile, ImageRef, MetricValue, Outcome, each_value

Images = Mapping[str, ImageFile]
"""The images of questions by their paths in the data folder; empty if the judge sees none."""

Preference = Literal["win", "loss", "tie", "order-dependent"]

_SCORES: Mapping[Preference, float] = {"win": 1.0, "loss": 0.0, "tie": 0.5, "order-dependent": 0.5}


class AnswerPair(NamedTuple):
    """The answers of the base run and of the other run to one question."""

    cluster: str
    base: Outcome
    other: Outcome

    @property
    def equal(self) -> bool:
        """Whether both answers have the same text: a tie without a judge."""
        return self.base.response.strip() == self.other.response.strip()

    @property
    def question(self) -> str:
        """The question as the judge sees it, with its context, and its options if it does not list them."""
        shown = self.other
        context = f"Context: {shown.context}" if shown.context else ""
        asked = shown.question or shown.prompt
        options = () if are_listed(shown.options, asked) else zip(LETTERS, shown.options, strict=False)
        return "\n".join(filter(None, (context, asked, *(f"{letter}. {text}" for letter, text in options))))

    @property
    def images(self) -> tuple[str, ...]:
        """The images of the question by their paths in the data folder, as one of the runs sent them."""
        return self.other.images or self.base.images

    def request(self, client: ModelClient, swapped: bool, draw: int, images: Images) -> KeyedRequest:
        answers = (self.base.response, self.other.response)
        reference = self.other.references[0] if self.other.references else ""
        files = [images[path] for path in self.images if images]
        shown = [ImageRef(file.path) for file in files]
        messages = ask_preference(self.question, answers[::-1] if swapped else answers, reference, shown)
        return client.keyed(messages, draw, files)


class JudgedPair(NamedTuple):
    """What the judge chose in both orders; None where it gave no verdict. `base` is shown first, first."""

    pair: AnswerPair
    choices: tuple[Choice | None, Choice | None]

    @property
    def preference(self) -> Preference | None:
        """What the choices are for the other run; None if one is missing."""
        first, swapped = self.choices
        if first is None or swapped is None:
            return None
        # For whom each choice is: -1 the base run, 1 the other one.
        sides = _SIDES[first], -_SIDES[swapped]
        named: Mapping[int, Preference] = {1: "win", 0: "tie", -1: "loss"}
        return named[sides[0]] if sides[0] == sides[1] else "order-dependent"


_SIDES: Mapping[Choice, int] = {"first": -1, "tie": 0, "second": 1}


class Judgements(NamedTuple):
    """All pairs of two runs as a judge sees them, and why requests have no answer."""

    judge: str
    pairs: Sequence[JudgedPair]
    left_out: int
    unanswered: Mapping[str, str]
    sees_images: bool = False

    @property
    def without_verdict(self) -> int:
        """The pairs for which the judge gave no verdict in one of the orders."""
        return sum(one.preference is None for one in self.pairs)


def answer_pairs(comparison: Comparison) -> list[AnswerPair]:
    """The pairs of answers to the same probe of two runs, or of several pairs of runs."""
    return [
        AnswerPair(pair.other.cluster or pair.other.id, base, other)
        for pairs in comparison.answers.pairs
        for pair in pairs
        for base, other in probe_pairs(pair)
    ]


def _images(pairs: Iterable[AnswerPair], folder: str | None, client: ModelClient, store: Store) -> Images:
    """The images of the questions in a data folder, which a judge must accept."""
    if folder is None:
        return {}
    if not client.capabilities.images:
        raise UserError("this judge does not accept images", expected="one that does, or no --data")
    paths = dict.fromkeys(path for pair in pairs if not pair.equal for path in pair.images)
    inspected = inspect_images(
        {path: ImageRef(os.path.join(folder, path), folder) for path in paths}, store, records=False
    )
    files: dict[str, ImageFile] = {}
    for path, file in inspected.items():
        if isinstance(file, BadImage):
            raise UserError(str(file), expected="--data with the data folder of the runs")
        files[path] = file
    return files


def _wanted(pairs: Sequence[AnswerPair], client: ModelClient, images: Images) -> ReplyRequests[Choice]:
    """The requests about pairs: two for each that a judge must see."""
    about = {
        f"{number} {swapped:d}": (pair, swapped)
        for number, pair in enumerate(pairs)
        if not pair.equal
        for swapped in (False, True)
    }

    def request(name: str, draw: int) -> KeyedRequest:
        pair, swapped = about[name]
        return pair.request(client, swapped, draw, images)

    def read(name: str, reply: Answer) -> tuple[Choice | None, str]:
        choice = read_preference(reply)
        return choice, "" if choice else "the reply has no verdict"

    return ReplyRequests(list(about), request, read)


def estimate_judging(
    comparison: Comparison,
    judge: str,
    client: ModelClient,
    store: Store,
    price: Price | None,
    folder: str | None = None,
) -> RequestsEstimate:
    """What `judge_answers` would send, and its cost; nothing is sent or written."""
    pairs = _with_text(answer_pairs(comparison))
    wanted = _wanted(pairs, client, _images(pairs, folder, client, store))
    tally = RequestTally(
        model=judge,
        price=price,
        max_tokens=token_limit(client.sampling) or DEFAULT_MAX_TOKENS,
        attempts=MAX_ATTEMPTS,
    )
    requests = [wanted.request(name, 0) for name in wanted.names]
    stored = store.answers.look_up([keyed.request.key for keyed in requests])
    tally.add(requests, stored, set(), retry=False)
    return tally.estimate()


async def judge_answers(
    comparison: Comparison,
    judge: str,
    client: ModelClient,
    store: Store,
    folder: str | None = None,
    *,
    show_progress: bool = False,
) -> Judgements:
    """Ask the judge about every pair of answers in both orders; cached replies are not requested again.

    When cancelled, the store keeps all replies so far.

    Args:
        folder: The data folder whose images the judge sees; None for no image.
    """
    every = answer_pairs(comparison)
    pairs = _with_text(every)
    if not pairs:
        raise UserError("the runs have no answers to the same probe", expected="runs with shared probes")
    images = await run_in_thread(_images, pairs, folder, client, store)
    wanted = _wanted(pairs, client, images)
    replies = await collect_replies(wanted, client, store, f"judge {judge}", show_progress=show_progress)

    def choice(number: int, swapped: bool) -> Choice | None:
        found: ReplyResult[Choice] | None = replies.get(f"{number} {swapped:d}")
        return "tie" if found is None else found.value

    judged = [
        JudgedPair(pair, (choice(number, False), choice(number, True))) for number, pair in enumerate(pairs)
    ]
    unanswered = {name: reply.unanswered for name, reply in replies.items() if reply.unanswered}
    return Judgements(judge, judged, len(every) - len(pairs), unanswered, folder is not None)


def _with_text(pairs: Iterable[AnswerPair]) -> list[AnswerPair]:
    return [pair for pair in pairs if pair.base.status == pair.other.status == "ok"]


# -- The tables of judgements


class _Row(NamedTuple):
    """The judgements on the pairs of a subset, and the p-value of their win rate."""

    subset: str
    rate: MetricValue
    counts: Mapping[Preference, int]
    p: float | None


def pairwise_tables(
    comparison: Comparison, judgements: Judgements, by: str | None = None, *, full: bool = False
) -> list[ReportTable]:
    """The preferences over all pairs and under each value of the label `by`; with `full`, each pair too."""
    decided = [(one.pair, one.preference) for one in judgements.pairs if one.preference is not None]
    subsets = {"all": decided}
    if by is not None:
        labelled = [one.pair.other.labels for one in judgements.pairs]
        if not any(by in labels for labels in labelled):
            raise unknown_name("label", by, {label for labels in labelled for label in labels})
        values = {value for labels in labelled for value in each_value(labels.get(by, ()))}
        for value in sorted(values):
            subsets[f"{by}={value}"] = [
                one for one in decided if value in each_value(one[0].other.labels.get(by, ()))
            ]
    rows = [_row(subset, pairs) for subset, pairs in subsets.items()]
    corrected = holm([row.p for row in rows])
    rows = [row._replace(p=p) for row, p in zip(rows, corrected, strict=True)]
    fields: list[Field[_Row]] = [
        (Column("text", "subset", "subset", aside=by is None), lambda row: row.subset),
        (Column("value", "win rate\n95 %", "win_rate"), lambda row: value_cell(row.rate)),
        (Column("p_value", "p\nHolm", "holm"), lambda row: PValue(row.p)),
        *(
            (Column("count", name.replace("-", "-\n"), name.replace("-", "_")), partial(_count, name))
            for name in _SCORES
        ),
        (Column("count", "pairs", "pairs"), lambda row: int(row.rate.n)),
        (Column("count", "clusters", "clusters"), lambda row: clusters_cell(row.rate)),
    ]
    names = [", ".join(side.runs) for side in comparison.sides]
    title = f"{comparison.task}, judged in pairs by {judgements.judge}"
    table = build_table(title, fields, rows, _notes(judgements, names), _LEGEND)
    listed = [_pairs_table(title, judgements.pairs)] if full else []
    return [replace(table, lead=_lead(rows[0], names, judgements)), *listed]


def _count(name: Preference, row: _Row) -> int:
    return row.counts.get(name, 0)


def _row(subset: str, decided: Sequence[tuple[AnswerPair, Preference]]) -> _Row:
    """The row of a subset; ties without a judge alone make no win rate."""
    if all(pair.equal for pair, _ in decided):
        decided = []
    scores = [(pair.cluster, _SCORES[preference]) for pair, preference in decided]
    rate = clustered_mean("win_rate", scores, reason="the judge decided no pair")
    leads = np.array([score - 0.5 for _, score in scores])
    clusters = cluster_positions([cluster for cluster, _ in scores])
    p = flip_clusters(leads, clusters).p if scores else None
    return _Row(subset, rate, Counter(preference for _, preference in decided), p)


def _lead(row: _Row, names: Sequence[str], judgements: Judgements) -> str:
    different = sum(not one.pair.equal for one in judgements.pairs)
    missing = f"{judgements.without_verdict:,} of {different:,} different pairs have no verdict"
    return "; ".join(filter(None, (_preferred(row, names), missing if judgements.without_verdict else "")))


def _preferred(row: _Row, names: Sequence[str]) -> str:
    base, other = names
    if row.rate.value is None or row.p is None:
        return ""
    if row.p > LEVEL:
        return f"No preference between {base} and {other} is shown ({counted(int(row.rate.n), 'pair')})"
    ahead, behind = (other, base) if row.rate.value > 50 else (base, other)
    rate = max(row.rate.value, 100 - row.rate.value)
    return f"{ahead} is preferred to {behind}: win rate {number_text(rate)} % of {row.rate.n:,.0f} pairs"


def _notes(judgements: Judgements, names: Sequence[str]) -> list[str]:
    pairs = judgements.pairs
    same = [one.choices[0] for one in pairs if one.choices[0] == one.choices[1]]
    hidden = [
        one.pair for one in pairs if not one.pair.equal and one.pair.images and not judgements.sees_images
    ]
    failed = counted(len(judgements.unanswered), "request")
    blind = sum(not pair.other.references for pair in hidden)
    counts = [
        (
            judgements.without_verdict,
            f"have no verdict in both orders and are left out; {failed} without an answer",
        ),
        (judgements.left_out, "are left out: an answer is missing or empty"),
        (len(hidden), f"are about images, which the judge does not see; {blind:,} of them have no reference"),
        (same.count("first"), "are order-dependent with the answer shown first preferred twice"),
        (same.count("second"), "are order-dependent with the answer shown second preferred twice"),
        (sum(one.pair.equal for one in pairs), "are ties without a judge: both answers have the same text"),
    ]
    return [
        f"win: {names[1]} is better than {names[0]} in both orders; loss: the reverse",
        *counted_notes(*((number, f"pairs {words}") for number, words in counts)),
    ]


_LEGEND = (
    "win rate: wins and half of the ties and of the order-dependent pairs, of all pairs; 50 is no preference",
    "order-dependent: the judge prefers another answer, or none, if the two answers change places",
    "p: cluster sign-flip permutation test against a win rate of 50, with Holm's correction for the rows",
    "the prompts are those of Zheng et al. 2023, with the reference where there is one",
)


def _pairs_table(title: str, pairs: Sequence[JudgedPair]) -> ReportTable:
    fields: list[Field[JudgedPair]] = [
        (Column("text", "sample", "sample"), lambda one: one.pair.other.sample),
        (Column("text", "variant", "variant"), lambda one: one.pair.other.variant),
        (Column("count", "draw", "draw"), lambda one: one.pair.other.draw),
        (Column("text", "preference", "preference"), lambda one: one.preference or "undecided"),
        (Column("text", "base first", "base_first"), lambda one: one.choices[0] or "undecided"),
        (Column("text", "other first", "other_first"), lambda one: one.choices[1] or "undecided"),
    ]
    return build_table(f"{title}, pairs", fields, pairs, [])
