"""What a run would send; nothing is sent or written."""

from __future__ import annotations

from msgspec import Struct, field

from sightline.engine.existing_store import existing_or_empty_store
from sightline.engine.keys import KeyedRequest
from sightline.engine.retry import is_settled
from sightline.engine.store import Store
from sightline.evaluation.image_text import UncachedImages, cached_images_as_text
from sightline.evaluation.planning import images_to_show, make_plan
from sightline.evaluation.prepare import prepare_evaluation
from sightline.evaluation.prepared import Prepared
from sightline.plan.plan import PlannedProbe
from sightline.plan.spec import Spec
from sightline.types import Text

CHARACTERS_PER_TOKEN = 4
PIXELS_PER_TOKEN = 750
"""A rough mean over current vision encoders; the real number is the server's."""

DEFAULT_MAX_TOKENS = 1024
"""The assumed length of an answer without a token limit."""


class RunEstimate(Struct, frozen=True):
    """What a run would send to its model; requests to judges depend on the answers and are not included.

    `requests` counts distinct ones: `cached` have an answer, `to_ask` do not. Token numbers are rough (four
    characters or 750 pixels per token, answers as long as their limit); `estimated_cost` is None without a
    price in sightline.toml. With --augment, `images_to_read` and `captions_to_ask` count what OCR reader and
    captioner would do; the text of unread images is missing from `prompt_tokens`.
    """

    probes: int
    requests: int
    cached: int
    to_ask: int
    broken_images: int
    image_bytes: int
    prompt_tokens: int
    completion_tokens_at_most: int
    estimated_cost: float | None = None
    images_to_read: int | None = None
    captions_to_ask: int | None = None


class _Planned(Struct):
    """Counts over a plan. `sizes` maps the key of each request to its bytes and tokens, (0, 0) if cached."""

    probes: int = 0
    broken_images: int = 0
    cached: int = 0
    sizes: dict[str, tuple[int, int]] = field(default_factory=dict)

    def add(self, chunk: list[PlannedProbe], store: Store, planned_keys: set[str], retry: bool) -> None:
        """Add a chunk of the plan."""
        self.probes += len(chunk)
        self.broken_images += sum(planned.request is None for planned in chunk)
        requests = {one.request.request.key: one.request for one in chunk if one.request is not None}
        new = {key: keyed for key, keyed in requests.items() if key not in self.sizes}
        stored = store.look_up(list(new))
        for key, keyed in new.items():
            answered = key in planned_keys or is_settled(stored.get(key), retry)
            self.cached += answered
            self.sizes[key] = (0, 0) if answered else _size(keyed)


def estimate_run(spec: Spec, planned_keys: set[str] | None = None) -> RunEstimate:
    """Plan a run and count its requests. The store is only read.

    Args:
        spec: The evaluation.
        planned_keys: The keys of requests that other runs will have sent before; the keys of this run are
            added to it.

    Returns:
        The estimate.

    Raises:
        UserError: The run itself would be refused.
    """
    planned_keys = set() if planned_keys is None else planned_keys
    prepared = prepare_evaluation(spec, keyless=True)
    planned = _Planned()
    with existing_or_empty_store(spec.store) as store:
        augmented, uncached = None, None
        if prepared.models.replacement is not None:
            images = images_to_show(prepared)
            augmented, uncached = cached_images_as_text(prepared.models.replacement, images, store)
        for chunk in make_plan(prepared, store, augmented, read_only=True).chunks():
            planned.add(chunk, store, planned_keys, spec.retry_errors)
    planned_keys.update(planned.sizes)
    return _estimate(prepared, planned, uncached)


def _estimate(prepared: Prepared, planned: _Planned, uncached: UncachedImages | None) -> RunEstimate:
    to_ask = len(planned.sizes) - planned.cached
    prompt_tokens = sum(tokens for _, tokens in planned.sizes.values())
    limit = prepared.task.options.sampling.get("max_tokens", DEFAULT_MAX_TOKENS)
    completion_tokens = to_ask * int(limit)
    price = prepared.config.price(prepared.spec.model)
    cost = None
    if price:
        cost = (prompt_tokens * price.prompt + completion_tokens * price.completion) / 1e6
    return RunEstimate(
        probes=planned.probes,
        requests=len(planned.sizes),
        cached=planned.cached,
        to_ask=to_ask,
        broken_images=planned.broken_images,
        image_bytes=sum(size for size, _ in planned.sizes.values()),
        prompt_tokens=prompt_tokens,
        completion_tokens_at_most=completion_tokens,
        estimated_cost=cost,
        images_to_read=uncached.to_read if uncached else None,
        captions_to_ask=uncached.to_caption if uncached else None,
    )


def _size(keyed: KeyedRequest) -> tuple[int, int]:
    """The bytes of the images and the rough number of tokens of one request."""
    request = keyed.request
    characters = sum(
        len(part.text) for message in request.messages for part in message.parts if isinstance(part, Text)
    )
    pixels = sum(file.width * file.height for file in request.images.values())
    size = sum(file.stamp[0] for file in request.images.values())
    return size, characters // CHARACTERS_PER_TOKEN + pixels // PIXELS_PER_TOKEN
