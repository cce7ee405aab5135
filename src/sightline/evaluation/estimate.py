"""What a run would send to its model and its judges, and its cost; nothing is sent or written."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from typing import Any

from msgspec import Struct, structs
from msgspec.structs import replace

from sightline.config import DEFAULT_FILE
from sightline.engine.existing_store import existing_or_empty_store
from sightline.engine.store import Store
from sightline.engine.token_estimate import CHARACTERS_PER_TOKEN, DEFAULT_MAX_TOKENS, token_limit
from sightline.evaluation.batches import price_note
from sightline.evaluation.description import judge_sampling, model_identity
from sightline.evaluation.image_text import UncachedImages, cached_images_as_text
from sightline.evaluation.judge_panel import prepared_panel
from sightline.evaluation.key_set import KeySet
from sightline.evaluation.planning import images_to_show, make_plan
from sightline.evaluation.prepare import prepare_evaluation
from sightline.evaluation.prepared import Prepared
from sightline.evaluation.request_estimate import (
    AnswerLengths,
    BatchTally,
    RequestsEstimate,
    RequestTally,
)
from sightline.judging.groups import CollectedAnswers
from sightline.models.base import Model
from sightline.models.batch.endpoint import BatchEndpoint
from sightline.plan.plan import Plan
from sightline.plan.spec import Spec
from sightline.plan.stored_probe import read_stored_probes
from sightline.replicas.pool import ReplicaPool
from sightline.results.stored_run import readable_runs
from sightline.types import Answer, Failure

OTHER_ANSWERS = 500
"""Answers of another run whose lengths are used at most."""
JUDGED_TOGETHER = 64
"""Judge requests that are looked up together."""


class RunEstimate(RequestsEstimate, frozen=True, kw_only=True):
    """What a run would send: the requests to its model, and those to its judges.

    It has more than 15 fields because it is the output of `--dry-run --json`: one flat record.

    Attributes:
        image_bytes: Bytes of the images in the requests to send.
        images_to_read: Images that the OCR reader would read; None without --augment. The text of unread
            images is missing from the tokens.
        captions_to_ask: Captions that would be requested; None without --augment.
        total_expected_cost: The expected cost of model and judges; None if one of them is unknown.
        total_full_length_cost: The `full_length_cost` of model and judges; None if one of them is unknown.
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
    probes: int = 0
    broken_images: int = 0


class _AssumedAnswers:
    """The answers of the store, and assumed ones for requests that a run would send."""

    def __init__(self, store: Store, to_send: Sequence[KeySet], characters: int) -> None:
        self._store = store
        self._to_send = to_send
        self._characters = characters

    def look_up(self, keys: Sequence[str]) -> Mapping[str, Answer | Failure]:
        """As `Answers.look_up`; an assumed answer has an expected length and is like no other one."""
        assumed = {
            key: Answer((f"{key} " * self._characters)[: max(len(key), self._characters)])
            for key in keys
            if any(key in keys_to_send for keys_to_send in self._to_send)
        }
        return {**self._store.answers.look_up(keys), **assumed}


def estimate_run(spec: Spec, planned_keys: KeySet | None = None) -> RunEstimate:
    """Plan a run and count its requests. The store is only read."""
    planned_keys = KeySet() if planned_keys is None else planned_keys
    prepared = prepare_evaluation(spec, keyless=True)
    with existing_or_empty_store(spec.store) as store:
        augmented, uncached = None, None
        if prepared.models.replacement is not None:
            images = images_to_show(prepared)
            augmented, uncached = cached_images_as_text(prepared.models.replacement, images, store)
        plan = make_plan(prepared, store, augmented, read_only=True)
        planned = _count(prepared, plan, store, planned_keys)
        own = planned.tally.lengths
        other, source = (own, "") if own.answers else _lengths_of_other_run(prepared, store)
        model = planned.tally.estimate(other)
        judges = _judges(prepared, plan, planned.tally, other, store, planned_keys)
    planned_keys.update(planned.tally.counted)
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
        notes=tuple(_notes(prepared, both, source, uncached)),
        scripts=tuple(
            one.script
            for several in (prepared.models.models, *prepared.judges.models.values())
            for one in several
            if isinstance(one, ReplicaPool) and one.script
        ),
    )


def add_estimates(estimates: Sequence[RunEstimate]) -> RunEstimate:
    """Add estimates.

    Returns:
        Their sum; a number is None if it is None in any of them.
    """
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
    """The fields of the sum of estimates."""
    numbers = [name for name in kind.__struct_fields__ if name not in ("model", "has_price")]
    return {
        "model": ", ".join(dict.fromkeys(one.model for one in estimates)),
        "has_price": all(one.has_price for one in estimates),
        **{name: _sum([getattr(one, name) for one in estimates]) for name in numbers},
    }


def _sum(numbers: Sequence[Any]) -> Any:
    """The sum; None if any number is None."""
    return None if None in numbers else sum(numbers)


def _count(prepared: Prepared, plan: Plan, store: Store, planned_keys: KeySet) -> _Planned:
    """Count the requests of a plan."""
    spec, models = prepared.spec, prepared.models.models
    sampling = models[0].effective(prepared.task.options.sampling)
    planned = _Planned(_tally(prepared, spec.model, models, sampling))
    for chunk in plan.chunks():
        requests = [one.request for one in chunk if one.request is not None]
        stored = store.answers.look_up([keyed.request.key for keyed in requests])
        planned.tally.add(requests, stored, planned_keys, retry=spec.retry_errors)
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

    collected = CollectedAnswers(probes=plan.probes, answers=answers)
    panel, estimates = prepared_panel(prepared), []
    for judge in panel.judges:
        models = prepared.judges.models.get(judge.name)
        if models is None:
            continue
        sampling = judge_sampling(prepared.spec, models[0])
        tally = replace(_tally(prepared, judge.name, models, sampling), attempts=judge.max_attempts)
        requests = replace(panel, judges=[judge]).requests(collected.groups())
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
    """What is missing from the costs, and why."""
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
    if len(both) > 1:
        yield "requests to judges: at most, because equal answers are judged once"
    if uncached is not None and uncached.to_caption:
        yield "captions are not part of the cost"
