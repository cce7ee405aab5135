"""Counts over all judged groups of an evaluation, and the notes of its result that follow from them."""

from __future__ import annotations

import re
from array import array
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, NamedTuple

import numpy as np
from msgspec import UNSET, Struct, UnsetType, field

from sightline.config import Price
from sightline.errors import some_of
from sightline.evaluation.judges import JudgedGroup
from sightline.formats.jsonl import as_asked, counted_notes, prompt_text
from sightline.formats.prediction import Prediction
from sightline.scoring.letters import right_positions
from sightline.scoring.reasoning import leading_tag
from sightline.scoring.scorer import flag, undecided_flags
from sightline.text import counted
from sightline.types import CUT_OFF, ImageSize, Outcome, Probe, Repeated, Spent, Usage, Verdict

MAX_UNANSWERED = 10
"""The number of probes without an answer that a summary lists."""

MAX_EXAMPLES = 5
"""The number of examples that a note lists."""

LONG_RESPONSE = 200
"""The number of words above which an embedding model may cut off the end of a response."""


COMMON_TAG = 0.05
"""Share of the responses that begin with an unknown tag from which on a note names it."""


class ReasoningCounts(Struct):
    """The responses that held reasoning, the finish reasons of those without anything else, and the tags that
    answers begin with."""

    answered: int = 0
    held: int = 0
    only: Counter[str] = field(default_factory=Counter)
    leading: Counter[str] = field(default_factory=Counter)

    def add(self, outcome: Outcome) -> None:
        self.answered += outcome.answered
        self.held += bool(outcome.reasoning)
        if tag := leading_tag(outcome.response):
            self.leading[tag] += 1
        if outcome.reasoning and outcome.status == "empty":
            self.only[outcome.finish_reason] += 1

    def notes(self) -> list[str]:
        """Notes on the reasoning that was cut, and on tags that may hold some."""
        return [
            *self._cut_notes(),
            *(
                f"{number:,} of {self.answered:,} responses begin with <{tag}>...</{tag}>, which is read as"
                f" their answer: if it is reasoning, add --reasoning-tags {tag}"
                for tag, number in self.leading.most_common()
                if number >= COMMON_TAG * self.answered
            ),
        ]

    def _cut_notes(self) -> list[str]:
        """One note, or none where no response held reasoning."""
        if not self.held:
            return []
        note = (
            f"{self.held:,} of {self.answered:,} responses held reasoning, which is cut: judges and metrics"
            " read only the answers"
        )
        if not self.only:
            return [note]
        reasons = ", ".join(f"{number:,} {reason or 'unknown'}" for reason, number in self.only.most_common())
        truncated = sum(number for reason, number in self.only.items() if reason in CUT_OFF)
        return [
            f"{note}. {self.only.total():,} held only reasoning and no answer (finish reasons: {reasons};"
            f" {truncated:,} reached the token limit)"
        ]


MIN_REPEATED = 10
"""The number of requests with two answers or more of which something is said if all repeats are equal."""


class RepeatCounts:
    """The requests with several answers, and those of which all are equal, their reasoning too.

    All answers of a sample follow each other.
    """

    def __init__(self) -> None:
        self._repeated = self._differing = 0
        self._of_sample: dict[str, list[tuple[str, str]]] = {}

    def next_sample(self) -> None:
        for texts in self._of_sample.values():
            self._repeated += len(texts) > 1
            self._differing += len(set(texts)) > 1
        self._of_sample = {}

    def add(self, outcome: Outcome) -> None:
        if outcome.status == "ok":
            self._of_sample.setdefault(outcome.variant, []).append((outcome.response, outcome.reasoning))

    def notes(self, sampling: Mapping[str, Any]) -> list[str]:
        """One note, if no answer differs where `sampling` asks for a random choice of tokens."""
        self.next_sample()
        temperature = sampling.get("temperature") or 0
        if temperature <= 0 or self._repeated < MIN_REPEATED or self._differing:
            return []
        return [
            f"the repeats of each of {self._repeated:,} requests are equal in text at temperature"
            f" {temperature:g}, and tell nothing (docs/models.md: What a reply counts as)"
        ]


LEAST_IMAGE_TOKENS = 64
"""The fewest tokens that models make of a large image, except those that read it by cross-attention.

64: MiniCPM-V, SmolVLM; 70 and 85: GPT-5 and GPT-4o with `detail` low; 196: Qwen3-VL; 256: InternVL, Gemma 3;
576: LLaVA. 1: Llama 3.2 Vision."""

LARGE_IMAGE = 448
"""Width and height in pixels from which an image takes LEAST_IMAGE_TOKENS."""

SHORT_TEXT = 200
"""The number of tokens, at least, of texts in which those of an image cannot be hidden."""

_PIECE = re.compile(r"\w+|[^\w\s]+(?!\S)")
"""Words, and signs at their end: tokenizers make at least one token of each."""


class PromptTokens(NamedTuple):
    """The prompt tokens that a server reported for a request, and the fewest that its text takes."""

    reported: int
    of_text: int
    images: int

    @property
    def lack_images(self) -> bool:
        return self.reported - self.of_text < LEAST_IMAGE_TOKENS * self.images


class ImageTokenCounts(Struct):
    """The requests with a short text and large images, and those whose prompt tokens lack the images."""

    compared: int = 0
    lacking: int = 0
    example: PromptTokens | None = None

    def add(self, outcome: Outcome) -> None:
        usage, sizes = outcome.usage, outcome.image_sizes
        if not usage.prompt_tokens or usage.image_tokens or not sizes or not all(map(_is_large, sizes)):
            return
        # Some servers leave the tokens of their prefix cache out.
        reported = usage.prompt_tokens + (usage.cached_tokens or 0)
        found = PromptTokens(reported, len(_PIECE.findall(outcome.prompt)), len(sizes))
        # With fewer tokens than the text takes, the server has not counted.
        if found.of_text > min(SHORT_TEXT, reported):
            return
        self.compared += 1
        if found.lack_images:
            self.lacking += 1
            self.example = self.example or found

    def notes(self) -> list[str]:
        """One note, if the prompt tokens of most of these requests lack the images."""
        if self.example is None or 2 * self.lacking < self.compared:
            return []
        reported, of_text, images = self.example
        return [
            f"the prompt tokens of {self.lacking:,} of {self.compared:,} requests with a short text and large"
            f" images leave fewer than {LEAST_IMAGE_TOKENS} for each image, such as {reported:,} tokens for"
            f" {counted(images, 'image')} and a text of at least {of_text:,}: it may not have got the images"
            " (docs/models.md: What a reply counts as)"
        ]


def _is_large(size: ImageSize | None) -> bool:
    return size is not None and min(size) >= LARGE_IMAGE


class AnswerCounts(Struct):
    """The numbers of judged answers, by kind.

    `undecided_flags` counts answers of which it is undecided whether they have a flag (`scoring.scorer`),
    `undecided_replies` replies of judge models without a verdict, by question, `judge_errors` verdicts that a
    judge could not give, `by_file_name` samples whose cluster is named after an unreadable image file,
    `retried` truncated answers that were asked again, `retried_truncated` those of them that are truncated
    again, `groups_not_sent` groups of which some probe was not sent, `with_partner` the other groups for
    which all answers of a partner setting exist, by setting, `invalid_usage` answers whose token counts are
    no numbers.
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
    undecided_replies: Counter[str] = field(default_factory=Counter)
    judge_errors: int = 0
    not_sampled: int = 0
    other_options: int = 0
    invalid_usage: int = 0
    reasoning: ReasoningCounts = field(default_factory=ReasoningCounts)
    image_tokens: ImageTokenCounts = field(default_factory=ImageTokenCounts)
    retried: int = 0
    retried_truncated: int = 0

    @property
    def sent(self) -> int:
        return self.probes - self.statuses["not_sent"]

    @property
    def answered(self) -> int:
        """The number of probes with an answer, which may be empty."""
        return self.statuses["ok"] + self.statuses["empty"]


class Examples(Struct):
    """The first examples of what notes and error lists name. `unanswered`: sample, variant, error."""

    undecided_replies: list[str] = field(default_factory=list)
    without_reference: list[str] = field(default_factory=list)
    other_options: list[str] = field(default_factory=list)
    unanswered: list[tuple[str, str, str]] = field(default_factory=list)


class Summary:
    """Counts, examples and reported versions over judged groups, added up in the order of the samples."""

    def __init__(self) -> None:
        self.counts = AnswerCounts()
        self.examples = Examples()
        self.repeats = RepeatCounts()
        self.model_versions: set[str] = set()
        self.judge_versions: set[str] = set()
        self._last_sample = ""
        self._latencies = array("d")
        self._tokens: Counter[str] = Counter()

    def spent(self, price: Price | None) -> Spent | UnsetType:
        """What the answers took; unset where nothing of it is known."""
        tokens = self._tokens
        if not (tokens.total() or self._latencies):
            return UNSET
        usage = Usage(tokens["prompt"], tokens["completion"], cached_tokens=tokens["cached"])
        quantiles = np.quantile(self._latencies, (0.5, 0.95)) if self._latencies else (None, None)
        p50, p95 = (None if one is None else round(float(one), 4) for one in quantiles)
        answered = self.counts.statuses["ok"] + self.counts.statuses["empty"]
        cost = price.of(usage) if price is not None and tokens.total() else None
        return Spent(answered, tokens["prompt"] + tokens["completion"], cost, p50, p95)

    def add(self, judged: JudgedGroup) -> None:
        group = judged.group
        if group.id != self._last_sample:
            self._last_sample = group.id
            self.repeats.next_sample()
            self.counts.samples += 1
            self.counts.by_file_name += group.cluster.startswith("file ")
        for verdict in judged.verdicts:
            self._add_verdict(verdict)
        self.counts.groups += 1
        self.counts.groups_not_sent += not group.sent
        if group.sent:
            for setting in group.partners:
                self.counts.with_partner[setting] += 1
        for outcome in group:
            self._add_outcome(outcome)

    def _add_verdict(self, verdict: Verdict) -> None:
        self.counts.judge_errors += verdict.verdict == "error"
        if verdict.version:
            self.judge_versions.add(f"{verdict.judge}: {verdict.version}")
        if verdict.kind == "model" and verdict.verdict == "undecided":
            self.counts.undecided_replies[verdict.question] += 1
            if len(self.examples.undecided_replies) < MAX_EXAMPLES:
                reply = repr(" ".join(verdict.raw.split())[:60])
                self.examples.undecided_replies.append(f"{reply} ({verdict.question})")

    def _add_outcome(self, outcome: Outcome) -> None:
        counts, examples = self.counts, self.examples
        counts.probes += 1
        counts.statuses[outcome.status] += 1
        if outcome.status == "not_sent":
            return
        counts.verdicts[outcome.verdict] += 1
        counts.truncated += outcome.truncated
        if outcome.latency:
            self._latencies.append(outcome.latency)
        self._tokens["prompt"] += outcome.usage.prompt_tokens or 0
        self._tokens["completion"] += outcome.usage.completion_tokens or 0
        self._tokens["cached"] += outcome.usage.cached_tokens or 0
        counts.reasoning.add(outcome)
        counts.image_tokens.add(outcome)
        self.repeats.add(outcome)
        if outcome.first is not None:
            counts.retried += 1
            counts.retried_truncated += outcome.truncated
        counts.invalid_usage += bool(outcome.usage.invalid)
        # A response has fewer words than characters: most responses need no split.
        counts.long_responses += (
            len(outcome.response) > LONG_RESPONSE and len(outcome.response.split()) > LONG_RESPONSE
        )
        counts.refused += bool(flag(outcome.scores, "refused"))
        for name in undecided_flags(outcome.scores):
            counts.undecided_flags[name] += 1
        if outcome.version:
            self.model_versions.add(outcome.version)
        if outcome.verdict == "unscored":
            self._add_unscored(outcome)
        if not outcome.answered and len(examples.unanswered) < MAX_UNANSWERED:
            examples.unanswered.append((outcome.sample, outcome.variant, outcome.error or ""))

    def _add_unscored(self, outcome: Outcome) -> None:
        """The file's options may lack the reference; otherwise humans judged only a sample."""
        right = right_positions(outcome.references, outcome.options)
        if outcome.options and outcome.references and not right:
            self.counts.other_options += 1
            if len(self.examples.other_options) < MAX_EXAMPLES:
                self.examples.other_options.append(outcome.sample)
        elif outcome.references and not outcome.judge:
            self.counts.not_sampled += 1
        elif len(self.examples.without_reference) < MAX_EXAMPLES:
            self.examples.without_reference.append(outcome.sample)


def summary_notes(summary: Summary, planned_samples: int, options: Mapping[str, Any]) -> list[str]:
    """Notes on the answers of a run with these options, of as many samples as were planned."""
    counts, examples, notes = summary.counts, summary.examples, []
    if counts.samples < planned_samples:
        some = f"{counts.samples:,} of {planned_samples:,} samples"
        is_wanted = options.get("only_answered")
        notes.append(
            f"only {some} count: the file has no answer to the others" if is_wanted else f"incomplete: {some}"
        )
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
        replies = examples.undecided_replies
        listed = some_of(replies, len(replies), total=sum(counts.undecided_replies.values()))
        asked = ", ".join(f"{number:,} to {name}" for name, number in counts.undecided_replies.items())
        notes.append(f"judge replies without a verdict ({asked}): {listed}")
    notes += counts.reasoning.notes()
    notes += summary.repeats.notes(options.get("sampling") or {})
    notes += counts.image_tokens.notes()
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
    if counts.other_options:
        names = some_of(examples.other_options, counts.other_options, total=counts.other_options)
        notes.append(
            f"{counts.other_options:,} answers are not scored: the options that their file gives lack the "
            f"reference: {names}"
        )
    unscored = counts.verdicts["unscored"] - counts.not_sampled - counts.other_options
    if 0 < unscored < counts.sent:
        names = some_of(examples.without_reference, unscored, total=unscored)
        notes.append(f"{unscored} answers have no reference or no score, and do not count: {names}")
    return notes


def long_response_notes(summary: Summary) -> list[str]:
    if not summary.counts.long_responses:
        return []
    return [
        f"{summary.counts.long_responses:,} answers have more than {LONG_RESPONSE} words: embedding models "
        "read about 250 tokens and ignore the rest"
    ]


# -- What a file of answers says, or does not say, about the probes that it answers


def doubts(predictions: Sequence[Prediction], counts: Repeated = "error") -> list[str]:
    """Notes on answers that the file repeats, of which one counts, and on doubtful responses."""
    doubtful = Counter(one.doubt for one in predictions if one.doubt)
    repeated = [one.repeated for one in predictions if one.repeated]
    return counted_notes(
        (
            sum(repeated),
            f"further answers of {len(repeated):,} probes are in the file and do not count "
            f"(--repeated {counts})",
        ),
        *((number, f"of {len(predictions):,} responses {doubt}") for doubt, number in doubtful.items()),
    )


def recorded_notes(
    recorded: Iterable[tuple[Probe, Prediction]], task: str, counts: Repeated = "error"
) -> list[str]:
    """Notes on what a file of answers says, or does not say, about the probes that it answers."""
    answers: list[Prediction] = []
    prompts, other_prompts, with_options, without_order, without_right, other_right = 0, 0, 0, 0, 0, 0
    for probe, prediction in recorded:
        answers.append(prediction)
        asked = as_asked(probe, prediction)
        # With other options, the prompt of the setting is another one too.
        comparable = bool(prediction.prompt) and asked.options == probe.options
        prompts += comparable
        other_prompts += comparable and prediction.prompt != prompt_text(probe.messages)
        with_options += bool(probe.options)
        without_order += bool(probe.options) and not prediction.options
        without_right += bool(probe.references) and not asked.references
        both = {asked.references, prediction.references}
        if () not in both and len(both) > 1:
            other_right += len({right_positions(one, asked.options) for one in both}) > 1
    return counted_notes(
        (other_prompts, f"of {prompts:,} prompts in the file are not those of {task}"),
        (
            without_order,
            f"of {with_options:,} answers come without the options that the model saw: the order of {task} "
            "is assumed and cannot be verified",
        ),
        (
            without_right,
            f"of {len(answers):,} answers have options in the file without the right one of the data: they "
            "have no reference",
        ),
        (
            other_right,
            f"of {len(answers):,} answers have a right option in the file that is not the one of the data, "
            "which counts",
        ),
    ) + doubts(answers, counts)
