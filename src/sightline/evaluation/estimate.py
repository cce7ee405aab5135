"""What a run would send to its model and its judges, and its cost; nothing is sent or written."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from msgspec import Struct, field, structs
from msgspec.structs import replace

from sightline.config import DEFAULT_FILE, BatchSettings, Price
from sightline.engine.endpoint_check import CLOSED, choose, is_comparable
from sightline.engine.limits import (
    CHARACTERS_PER_TOKEN,
    DEFAULT_MAX_TOKENS,
    completion_tokens,
    prompt_tokens,
    token_limit,
)
from sightline.evaluation.batches import price_note
from sightline.evaluation.image_texts import UncachedImages, cached_images_as_text, images_in_probes
from sightline.evaluation.options import reasoning_names
from sightline.evaluation.plan import CollectedAnswers, Plan, read_stored_probes
from sightline.evaluation.prepare import (
    Prepared,
    judge_sampling,
    make_plan,
    model_identity,
    prepare_evaluation,
    prepared_panel,
)
from sightline.evaluation.runs import readable_runs
from sightline.evaluation.sending import checks_images
from sightline.evaluation.spec import Spec
from sightline.metrics.significance import expected_detectable
from sightline.models.base import Model
from sightline.models.batch_client import AROUND_BODY
from sightline.models.batches import BatchEndpoint
from sightline.replicas.fleet import ReplicaPool
from sightline.store.answers import KeyedRequest, is_settled, state_of
from sightline.store.store import Store, existing_or_empty_store
from sightline.types import Answer, Failure, Usage

KeySet = set[int]
"""Request keys by their first 64 bits, which take a third of the memory of the keys."""


def _number(key: str) -> int:
    return int(key[:16], 16)


# -- The requests that would be sent to one model, and what they would cost


class RequestsEstimate(Struct, frozen=True, kw_only=True):
    """What would be sent to one model.

    Attributes:
        prompt_tokens: Tokens of the requests to send: four characters or 750 pixels per token, times the
            ratio that cached answers of the run show.
        completion_tokens: Expected tokens of the answers, by the mean of cached answers; None without any.
        expected_cost: The cost by `completion_tokens`, with the checks; None if one of these is unknown.
        full_length_cost: The cost by `to_ask_at_most` and `completion_tokens_at_most`, with the checks. Not a
            bound: `prompt_tokens` is an estimate, above all that of images, and calls that fail and are sent
            again are not part of it. None without a price if anything would be sent.
        batch_files: Files of --batch that are uploaded; None if the model is not asked in batches.
        batch_bytes: Their bytes, with images as they are in the data; None likewise.
    """

    model: str
    requests: int
    cached: int
    to_ask: int
    to_ask_at_most: int
    checks: int
    prompt_tokens: int
    completion_tokens: int | None
    completion_tokens_at_most: int
    expected_cost: float | None
    full_length_cost: float | None
    has_price: bool
    batch_files: int | None = None
    batch_bytes: int | None = None


class AnswerLengths(Struct):
    """Lengths of cached answers: sums of tokens, and the rough estimates of the same prompts."""

    answers: int = 0
    completion_tokens: int = 0
    prompt_tokens: int = 0
    rough_prompt_tokens: int = 0

    def add(self, answer: Answer, rough_prompt_tokens: int = 0) -> None:
        """Count a cached answer; `rough_prompt_tokens` is 0 if the rough estimate is not known."""
        self.answers += 1
        completion = answer.usage.completion_tokens
        self.completion_tokens += completion_tokens(answer) if completion is None else completion
        if rough_prompt_tokens and answer.usage.prompt_tokens:
            self.prompt_tokens += answer.usage.prompt_tokens
            self.rough_prompt_tokens += rough_prompt_tokens

    @property
    def mean_completion(self) -> float | None:
        return self.completion_tokens / self.answers if self.answers else None

    @property
    def prompt_ratio(self) -> float:
        """Tokens of a prompt by its rough estimate; 1 without answers that report them."""
        return self.prompt_tokens / self.rough_prompt_tokens if self.rough_prompt_tokens else 1.0


class BatchTally(Struct):
    """Counts the files of batches that requests fill, and their bytes."""

    settings: BatchSettings
    files: int = 0
    bytes: int = 0
    _lines: int = 0
    _size: int = 0

    def add(self, keyed: KeyedRequest) -> None:
        images = sum(4 * ((file.stamp[0] + 2) // 3) for file in keyed.request.images.values())
        line = AROUND_BODY + len(keyed.canonical) + images
        is_full = self._lines == self.settings.lines or self._size + line > self.settings.bytes
        if not self.files or is_full:
            self.files, self._lines, self._size = self.files + 1, 0, 0
        self._lines, self._size, self.bytes = self._lines + 1, self._size + line, self.bytes + line


class RequestTally(Struct, kw_only=True):
    """Counts the requests to one model; a price is None if sightline.toml has none.

    `endpoints` are those that are checked, at `check_price`, before cached answers are used. `image_bytes`
    and `rough_tokens` are those of the requests to send. `possible` are requests that only some answers need.
    """

    model: str
    price: Price | None
    max_tokens: int
    attempts: int = 1
    endpoints: int = 0
    check_price: Price | None = None
    batches: BatchTally | None = None
    counted: KeySet = field(default_factory=set)
    to_send: KeySet = field(default_factory=set)
    image_bytes: int = 0
    rough_tokens: int = 0
    possible: KeySet = field(default_factory=set)
    possible_tokens: int = 0
    lengths: AnswerLengths = field(default_factory=AnswerLengths)
    _comparable: dict[str, Answer] = field(default_factory=dict)

    def add(
        self,
        requests: Iterable[KeyedRequest],
        stored: Mapping[str, Answer | Failure],
        planned: KeySet,
        *,
        retry: bool,
    ) -> None:
        """Count requests; those counted before are skipped."""
        for keyed in requests:
            number = _number(keyed.request.key)
            if number in self.counted:
                continue
            size, key = _size(keyed), keyed.request.key
            result = stored.get(key)
            if isinstance(result, Answer):
                self.lengths.add(result, size[1])
                if len(self._comparable) < CLOSED and is_comparable(keyed.request, result):
                    self._comparable[key] = result
            settled = result is not None and is_settled(state_of(result), retry_errors=retry)
            self.counted.add(number)
            if number not in planned and not settled:
                self.to_send.add(number)
                self.image_bytes += size[0]
                self.rough_tokens += size[1]
                if self.batches is not None:
                    self.batches.add(keyed)

    def add_possible(
        self, requests: Sequence[KeyedRequest], stored: Mapping[str, Answer | Failure], *, retry: bool
    ) -> None:
        """Count requests that the answers to others decide on."""
        for keyed in requests:
            result = stored.get(keyed.request.key)
            settled = result is not None and is_settled(state_of(result), retry_errors=retry)
            if not settled and _number(keyed.request.key) not in self.possible:
                self.possible.add(_number(keyed.request.key))
                self.possible_tokens += _size(keyed)[1]

    def estimate(self, other: AnswerLengths | None = None) -> RequestsEstimate:
        """Estimate the cost of what was counted; `other` is used where no answer was counted."""
        to_send = len(self.to_send)
        lengths = self.lengths if self.lengths.answers else other or self.lengths
        prompt = round(self.rough_tokens * lengths.prompt_ratio)
        mean = lengths.mean_completion
        expected = round(to_send * mean) if mean is not None else None
        if not to_send:
            expected = 0
        texts = {key: answer.text for key, answer in self._comparable.items()} if to_send else {}
        checked = [self._comparable[key] for key in choose(texts)]
        most = (to_send + len(self.possible)) * self.attempts
        most_prompt = round((self.rough_tokens + self.possible_tokens) * lengths.prompt_ratio) * self.attempts
        expected_usage = None if expected is None else Usage(prompt, expected)
        return RequestsEstimate(
            model=self.model,
            requests=len(self.counted),
            cached=len(self.counted) - to_send,
            to_ask=to_send,
            to_ask_at_most=most,
            checks=len(checked) * self.endpoints,
            prompt_tokens=prompt,
            completion_tokens=expected,
            completion_tokens_at_most=most * self.max_tokens,
            expected_cost=self._total(expected_usage, checked),
            full_length_cost=self._total(Usage(most_prompt, most * self.max_tokens), checked),
            has_price=self.price is not None,
            batch_files=self.batches.files if self.batches is not None else None,
            batch_bytes=self.batches.bytes if self.batches is not None else None,
        )

    def _total(self, usage: Usage | None, checked: Iterable[Answer]) -> float | None:
        """The cost of requests and of checks of all endpoints; None if it is unknown."""
        if usage == Usage(0, 0):
            return 0.0
        if usage is None or self.price is None:
            return None
        checks = sum(self.check_price.of(answer.usage) for answer in checked) if self.check_price else 0.0
        return self.price.of(usage) + self.endpoints * checks


def _size(keyed: KeyedRequest) -> tuple[int, int]:
    """The bytes of the images and the rough number of tokens of one request."""
    return sum(file.stamp[0] for file in keyed.request.images.values()), prompt_tokens(keyed)


OTHER_ANSWERS = 500
"""Answers of another run whose lengths are used at most."""
JUDGED_TOGETHER = 64
"""Judge requests that are looked up together."""


CHANGED = 0.2
"""The share of groups that is taken to change between two models, where power is told before a run."""

FEWEST_CHANGED = 25
"""The changed groups from which the normal distribution holds, which the power is computed by."""


class RunEstimate(RequestsEstimate, frozen=True, kw_only=True):
    """What a run would send: the requests to its model, and those to its judges.

    Attributes:
        images_to_read: Images that the OCR reader would read; None without --augment. The text of unread
            images is missing from the tokens.
        captions_to_ask: Captions that would be requested; None without --augment.
        total_expected_cost: That of model and judges, like `total_full_length_cost`; None if one is unknown.
    """

    probes: int
    broken_images: int
    image_bytes: int
    images_to_read: int | None = None
    captions_to_ask: int | None = None
    judges: tuple[RequestsEstimate, ...] = ()
    total_expected_cost: float | None = None
    total_full_length_cost: float | None = None
    notes: tuple[str, ...] = ()
    scripts: tuple[str, ...] = ()


class _Planned(Struct):
    """What was counted over a plan."""

    tally: RequestTally
    retries: RequestTally | None = None
    probes: int = 0
    broken_images: int = 0


class _AssumedAnswers:
    """The answers of the store, and assumed ones for requests that a run would send."""

    def __init__(self, store: Store, to_send: Sequence[KeySet], characters: int) -> None:
        self._store = store
        self._to_send = to_send
        self._characters = characters

    def look_up(self, keys: Sequence[str]) -> Mapping[str, Answer | Failure]:
        """An assumed answer has an expected length and is like no other one."""
        assumed = {
            key: Answer((f"{key} " * self._characters)[: max(len(key), self._characters)])
            for key in keys
            if any(_number(key) in keys_to_send for keys_to_send in self._to_send)
        }
        return {**self._store.answers.look_up(keys), **assumed}


def estimate_run(spec: Spec, planned_keys: KeySet | None = None) -> RunEstimate:
    """Plan a run and count its requests. The store is only read."""
    planned_keys = set() if planned_keys is None else planned_keys
    prepared = prepare_evaluation(spec, keyless=True)
    with existing_or_empty_store(spec.store) as store:
        augmented, uncached = None, None
        if prepared.models.replacement is not None:
            task = prepared.task
            images = images_in_probes(task.benchmark, task.samples, task.shown)
            augmented, uncached = cached_images_as_text(prepared.models.replacement, images, store)
        plan = make_plan(prepared, store, augmented, read_only=True)
        planned = _count(prepared, plan, store, planned_keys)
        own = planned.tally.lengths
        other, source = (own, "") if own.answers else _lengths_of_other_run(prepared, store)
        model = planned.tally.estimate(other)
        if planned.retries is not None:
            model = RequestsEstimate(**_added([model, planned.retries.estimate(other)], RequestsEstimate))
        judges = _judges(prepared, plan, planned.tally, other, store, planned_keys)
    planned_keys.update(planned.tally.counted)
    if planned.retries is not None:
        planned_keys.update(planned.retries.counted)
    both = (model, *judges)
    return RunEstimate(
        **structs.asdict(model),
        probes=planned.probes,
        broken_images=planned.broken_images,
        image_bytes=planned.tally.image_bytes,
        images_to_read=uncached.to_read if uncached else None,
        captions_to_ask=uncached.to_caption if uncached else None,
        judges=judges,
        total_expected_cost=_sum([one.expected_cost for one in both]),
        total_full_length_cost=_sum([one.full_length_cost for one in both]),
        notes=(
            *_notes(prepared, both, source, uncached),
            *_image_check_notes(prepared, both[0].to_ask),
            *_power_notes(prepared.survey.samples),
        ),
        scripts=tuple(
            one.script
            for several in (prepared.models.models, *prepared.judges.models.values())
            for one in several
            if isinstance(one, ReplicaPool) and one.script
        ),
    )


def add_estimates(estimates: Sequence[RunEstimate]) -> RunEstimate:
    """Add estimates; a number is None if it is None in any of them."""
    judges: dict[str, list[RequestsEstimate]] = {}
    for estimate in estimates:
        for judge in estimate.judges:
            judges.setdefault(judge.model, []).append(judge)
    return RunEstimate(
        **_added(estimates, RequestsEstimate),
        **{
            name: _sum([getattr(one, name) for one in estimates])
            for name in ("probes", "broken_images", "image_bytes", "images_to_read", "captions_to_ask")
        },
        judges=tuple(RequestsEstimate(**_added(several, RequestsEstimate)) for several in judges.values()),
        total_expected_cost=_sum([one.total_expected_cost for one in estimates]),
        total_full_length_cost=_sum([one.total_full_length_cost for one in estimates]),
        notes=tuple(dict.fromkeys(note for one in estimates for note in one.notes)),
        scripts=tuple(dict.fromkeys(script for one in estimates for script in one.scripts)),
    )


def _added(estimates: Sequence[RequestsEstimate], kind: type[RequestsEstimate]) -> dict[str, Any]:
    numbers = [name for name in kind.__struct_fields__ if name not in ("model", "has_price")]
    return {
        "model": ", ".join(dict.fromkeys(one.model for one in estimates)),
        "has_price": all(one.has_price for one in estimates),
        **{name: _sum([getattr(one, name) for one in estimates]) for name in numbers},
    }


def _sum(numbers: Sequence[Any]) -> Any:
    return None if None in numbers else sum(numbers)


def _count(prepared: Prepared, plan: Plan, store: Store, planned_keys: KeySet) -> _Planned:
    spec, models = prepared.spec, prepared.models.models
    sampling = models[0].effective(prepared.task.options.sampling)
    planned = _Planned(_tally(prepared, spec.model, models, sampling))
    if spec.retry_truncated is not None:
        longer = {**sampling, "max_tokens": spec.retry_truncated}
        planned.retries = replace(_tally(prepared, spec.model, models, longer), endpoints=0)
    for chunk in plan.chunks():
        requests = [one.request for one in chunk if one.request is not None]
        stored = store.answers.look_up([keyed.request.key for keyed in requests])
        planned.tally.add(requests, stored, planned_keys, retry=spec.retry_errors)
        if planned.retries is not None:
            truncated = [
                one.retry
                for one in chunk
                if one.retry is not None and getattr(stored.get(one.probe.key), "truncated", False)
            ]
            answered = store.answers.look_up([keyed.request.key for keyed in truncated])
            planned.retries.add(truncated, answered, planned_keys, retry=spec.retry_errors)
            awaited = [
                one.retry
                for one in chunk
                if one.retry is not None and _number(one.probe.key) in planned.tally.to_send
            ]
            answered = store.answers.look_up([keyed.request.key for keyed in awaited])
            planned.retries.add_possible(awaited, answered, retry=spec.retry_errors)
        planned.probes += len(chunk)
        planned.broken_images += len(chunk) - len(requests)
    return planned


def _judges(
    prepared: Prepared,
    plan: Plan,
    asked: RequestTally,
    lengths: AnswerLengths,
    store: Store,
    planned_keys: KeySet,
) -> tuple[RequestsEstimate, ...]:
    tokens = lengths.mean_completion or asked.max_tokens
    answers = _AssumedAnswers(store, [asked.to_send, planned_keys], round(tokens * CHARACTERS_PER_TOKEN))

    tags = reasoning_names(prepared.spec)
    collected = CollectedAnswers(
        probes=plan.probes,
        answers=answers,
        reasoning_tags=tags,
        retries=prepared.spec.retry_truncated is not None,
    )
    panel, estimates = prepared_panel(prepared), []
    for judge in panel.judges:
        models = prepared.judges.models.get(judge.name)
        if models is None:
            continue
        sampling = judge_sampling(prepared.spec, models[0])
        # Second answers are judged, too.
        answers_each = 2 if collected.retries and asked.to_send else 1
        tally = replace(
            _tally(prepared, judge.name, models, sampling), attempts=judge.max_attempts * answers_each
        )
        requests = replace(panel, judges=[judge]).requests(collected.groups_to_judge())
        while chunk := list(islice(requests, JUDGED_TOGETHER)):
            stored = store.answers.look_up([keyed.request.key for keyed in chunk])
            tally.add(chunk, stored, planned_keys, retry=prepared.spec.retry_errors)
        planned_keys.update(tally.counted)
        estimates.append(tally.estimate())
    return tuple(estimates)


def _tally(
    prepared: Prepared, name: str, models: Sequence[Model], sampling: Mapping[str, Any]
) -> RequestTally:
    checked = prepared.spec.fingerprint == "on" and models[0].capabilities.endpoint
    return RequestTally(
        model=name,
        price=prepared.config.price(name, in_batches=isinstance(models[0], BatchEndpoint)),
        check_price=prepared.config.price(name),
        batches=BatchTally(models[0].settings) if isinstance(models[0], BatchEndpoint) else None,
        max_tokens=token_limit(sampling) or DEFAULT_MAX_TOKENS,
        endpoints=len(models) if checked else 0,
    )


def _lengths_of_other_run(prepared: Prepared, store: Store) -> tuple[AnswerLengths, str]:
    """The lengths of answers of the latest run of this model on this benchmark, and the name of the run."""
    lengths = AnswerLengths()
    identity = model_identity(prepared)
    for run in reversed(readable_runs(store)):
        if (run.description.identity, run.description.benchmark) == (identity, prepared.task.benchmark.name):
            probes = islice(read_stored_probes(store, run.number), OTHER_ANSWERS)
            for result in store.answers.look_up([probe.key for probe in probes]).values():
                if isinstance(result, Answer):
                    lengths.add(result)
            if lengths.answers:
                return lengths, f"run {run.number} ({run.task})"
    return lengths, ""


def _notes(
    prepared: Prepared, both: Sequence[RequestsEstimate], source: str, uncached: UncachedImages | None
) -> Iterator[str]:
    spec = prepared.spec
    for one in both:
        if one.to_ask and not one.has_price:
            yield (
                f'no price for {one.model}: its cost is missing; expected [prices."{one.model}"] prompt and'
                f" completion, per million tokens, in {DEFAULT_FILE}"
            )
        if one.to_ask and one.completion_tokens is None:
            yield (
                f"the store holds no answer of {one.model} on this benchmark: the expected length of its"
                " answers, and so the expected cost, is unknown"
            )
    if source and both[0].to_ask:
        yield f"expected lengths of answers: from {source}"
    samplings = {spec.model: prepared.models.models[0].effective(prepared.task.options.sampling)}
    samplings |= {name: judge_sampling(spec, one[0]) for name, one in prepared.judges.models.items()}
    for name, sampling in samplings.items():
        if token_limit(sampling) is None:
            yield f"{name} has no token limit: its full length is taken as {DEFAULT_MAX_TOKENS:,} tokens"
    batched = {spec.model: prepared.models.models, **prepared.judges.models} if spec.batch else {}
    for name, models in batched.items():
        if isinstance(models[0], BatchEndpoint) and (note := price_note(name, prepared.config)):
            yield note
    model, *judges = both
    if spec.retry_truncated is not None and model.to_ask_at_most > model.to_ask:
        more = model.to_ask_at_most - model.to_ask
        yield f"to ask at most: {more:,} more if each new answer reaches the token limit (--retry-truncated)"
    if judges:
        again = any(judge.to_ask_at_most > judge.to_ask for judge in judges)
        second = " and each second answer" if spec.retry_truncated is not None and model.to_ask else ""
        most = f"; at most: again for each undecided reply{second}" if again else ""
        yield f"to ask of judges: one for each answer or pair, fewer where answers are equal{most}"
    if uncached is not None and uncached.to_caption:
        yield "captions are not part of the cost"


def _power_notes(groups: int) -> list[str]:
    if groups * CHANGED < FEWEST_CHANGED:
        return []
    seen = 100 * expected_detectable(groups, CHANGED)
    return [
        f"{groups:,} groups detect a difference of {seen:.1f} points between two models (power 80 %) if"
        f" {100 * CHANGED:.0f} % of them are right with one model only; groups that share images detect less"
    ]


def _image_check_notes(prepared: Prepared, to_ask: int) -> list[str]:
    if not to_ask or not checks_images(prepared):
        return []
    return [
        "9 requests more before the first, at most 33: whether the endpoint keeps plain images apart "
        "(--canary off); the cost is without them"
    ]
