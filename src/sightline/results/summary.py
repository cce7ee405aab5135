"""Counts over all judged groups, and the notes of a result that follow from them."""

from __future__ import annotations

from collections import Counter

from msgspec import Struct, field

from sightline.errors import some_of
from sightline.judging.panel import JudgedGroup
from sightline.scoring.flags import flag, undecided_flags
from sightline.types import Outcome, Verdict

MAX_UNANSWERED = 10
"""The number of probes without an answer that a summary lists."""

MAX_EXAMPLES = 5
"""The number of examples that a note lists."""

MANY_UNDECIDED = 0.2
"""The share of undecided verdicts above which a note recommends another judge."""

LONG_RESPONSE = 200
"""The number of words above which an embedding model may cut off the end of a response."""


class AnswerCounts(Struct):
    """The numbers of judged answers, by kind.

    `undecided_flags` counts answers of which it is undecided whether they have a flag (`scoring.flags`),
    `undecided_replies` replies of judge models that hold no verdict, `judge_errors` verdicts that a
    judge could not give, `by_file_name` samples whose cluster is named after an unreadable image file,
    `groups_not_sent` groups of which some probe was not sent, `with_partner` the other groups for which
    all answers of a partner setting exist, by setting, `invalid_usage` answers whose token counts are no
    numbers.
    """

    samples: int = 0
    probes: int = 0
    statuses: Counter[str] = field(default_factory=Counter)
    verdicts: Counter[str] = field(default_factory=Counter)
    truncated: int = 0
    refused: int = 0
    groups: int = 0
    undecided_flags: Counter[str] = field(default_factory=Counter)
    groups_not_sent: int = 0
    with_partner: Counter[str] = field(default_factory=Counter)
    long_responses: int = 0
    by_file_name: int = 0
    undecided_replies: int = 0
    judge_errors: int = 0
    not_sampled: int = 0
    invalid_usage: int = 0

    @property
    def sent(self) -> int:
        """The number of probes that were sent."""
        return self.probes - self.statuses["not_sent"]

    @property
    def answered(self) -> int:
        """The number of probes with an answer, which may be empty."""
        return self.statuses["ok"] + self.statuses["empty"]


class Examples(Struct):
    """The first examples of what notes and error lists name.

    `unanswered` holds sample, variant and error.
    """

    undecided_replies: list[str] = field(default_factory=list)
    without_reference: list[str] = field(default_factory=list)
    unanswered: list[tuple[str, str, str]] = field(default_factory=list)


class Summary:
    """Counts, examples and reported versions over judged groups, added up in the order of the samples."""

    def __init__(self) -> None:
        self.counts = AnswerCounts()
        self.examples = Examples()
        self.model_versions: set[str] = set()
        self.judge_versions: set[str] = set()
        self._last_sample = ""

    def add(self, judged: JudgedGroup) -> None:
        group = judged.group
        if group.id != self._last_sample:
            self._last_sample = group.id
            self.counts.samples += 1
            self.counts.by_file_name += group.cluster.startswith("file ")
        for verdict in judged.verdicts:
            self._add_verdict(verdict)
        self.counts.groups += 1
        self.counts.groups_not_sent += not group.sent
        if group.sent:
            self.counts.with_partner.update(group.partners.keys())
        for outcome in group:
            self._add_outcome(outcome)

    def _add_verdict(self, verdict: Verdict) -> None:
        self.counts.judge_errors += verdict.verdict == "error"
        if verdict.version:
            self.judge_versions.add(f"{verdict.judge}: {verdict.version}")
        if verdict.kind == "model" and verdict.verdict == "undecided":
            self.counts.undecided_replies += 1
            if len(self.examples.undecided_replies) < MAX_EXAMPLES:
                self.examples.undecided_replies.append(verdict.raw)

    def _add_outcome(self, outcome: Outcome) -> None:
        counts, examples = self.counts, self.examples
        counts.probes += 1
        counts.statuses[outcome.status] += 1
        if outcome.status == "not_sent":
            return
        counts.verdicts[outcome.verdict] += 1
        counts.truncated += outcome.truncated
        counts.invalid_usage += bool(outcome.usage.invalid)
        # A response has fewer words than characters: most responses need no split.
        counts.long_responses += (
            len(outcome.response) > LONG_RESPONSE and len(outcome.response.split()) > LONG_RESPONSE
        )
        counts.refused += bool(flag(outcome.scores, "refused"))
        counts.undecided_flags.update(undecided_flags(outcome.scores))
        if outcome.version:
            self.model_versions.add(outcome.version)
        if outcome.verdict == "unscored":
            self._add_unscored(outcome)
        if not outcome.answered and len(examples.unanswered) < MAX_UNANSWERED:
            examples.unanswered.append((outcome.sample, outcome.variant, outcome.error or ""))

    def _add_unscored(self, outcome: Outcome) -> None:
        """Only a sample that humans judged leaves out an answer with a reference."""
        if outcome.references:
            self.counts.not_sampled += 1
        elif len(self.examples.without_reference) < MAX_EXAMPLES:
            self.examples.without_reference.append(outcome.sample)


def summary_notes(summary: Summary, planned_samples: int) -> list[str]:
    """The notes that a reader of the result needs."""
    counts, examples, notes = summary.counts, summary.examples, []
    if counts.samples < planned_samples:
        notes.append(f"incomplete: {counts.samples} of {planned_samples} samples")
    if counts.groups_not_sent:
        notes.append(
            f"incomplete: {counts.statuses['not_sent']:,} of {counts.probes:,} probes were not sent; their "
            f"{counts.groups_not_sent:,} groups are left out of all metrics. Run the same command again to "
            "send them"
        )
    sent_groups = counts.groups - counts.groups_not_sent
    for setting, complete in sorted(counts.with_partner.items()):
        if complete < sent_groups:
            notes.append(
                f"incomplete: {sent_groups - complete:,} of {sent_groups:,} groups lack answers of setting "
                f"{setting!r}; metrics that compare with it leave these groups out"
            )
    if counts.verdicts["undecided"] > MANY_UNDECIDED * counts.sent:
        notes.append(
            f"{counts.verdicts['undecided']:,} of {counts.sent:,} verdicts are undecided and count as "
            "not right. Use another --judge (a model or human:FILE) to decide them"
        )
    for name, undecided in sorted(counts.undecided_flags.items()):
        notes.append(
            f"`{name}` leaves out {undecided:,} of {counts.answered:,} answers that rules cannot decide on"
        )
    if counts.judge_errors:
        notes.append(
            f"{counts.judge_errors:,} judgements are missing: the judge failed, or the budget was reached"
        )
    notes += _unscored_notes(counts, examples)
    if examples.undecided_replies:
        replies = [repr(" ".join(reply.split())[:60]) for reply in examples.undecided_replies]
        listed = some_of(replies, len(replies), total=counts.undecided_replies)
        notes.append(f"judge replies without a verdict: {listed}")
    if counts.invalid_usage:
        notes.append(
            f"the server reports invalid token counts for {counts.invalid_usage:,} answers; `usage` names "
            "them, and no budget counts them"
        )
    if counts.by_file_name:
        notes.append(
            f"the images of {counts.by_file_name} samples cannot be read: their clusters are named after "
            "the files"
        )
    return notes


def _unscored_notes(counts: AnswerCounts, examples: Examples) -> list[str]:
    notes = []
    if counts.not_sampled:
        notes.append(
            f"humans judged a sample, and no other judge is named: {counts.not_sampled:,} of {counts.sent:,} "
            "answers have no verdict and are left out of all metrics; the values are those of the sample, "
            "unweighted. Name a judge that reads everything before human:FILE to correct its values"
        )
    unscored = counts.verdicts["unscored"] - counts.not_sampled
    if 0 < unscored < counts.sent:
        names = some_of(examples.without_reference, unscored, total=unscored)
        notes.append(f"{unscored} answers have no reference and are not scored: {names}")
    return notes


def long_response_notes(summary: Summary) -> list[str]:
    """The note on responses that are longer than embedding models read."""
    if not summary.counts.long_responses:
        return []
    return [
        f"{summary.counts.long_responses:,} answers have more than {LONG_RESPONSE} words: embedding models "
        "read about 250 tokens and ignore the rest"
    ]
