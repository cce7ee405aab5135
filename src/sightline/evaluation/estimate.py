"""What a run would ask, before anything is asked or written."""

from __future__ import annotations

import tempfile
from pathlib import Path

from msgspec import Struct

from sightline.engine.keys import KeyedRequest
from sightline.engine.retry import is_settled
from sightline.engine.store import Store
from sightline.evaluation.augment import known_in_words
from sightline.evaluation.prepare import prepare
from sightline.evaluation.run import all_images, plan_of
from sightline.plan.spec import Spec
from sightline.types import Text

CHARACTERS_PER_TOKEN = 4
PIXELS_PER_TOKEN = 750
"""A rough mean over today's vision encoders; the real figure is the server's."""


class Estimate(Struct, frozen=True):
    """An estimate: probes, distinct requests, what is known, what would be sent.

    Tokens are rough: four characters and 750 pixels a token, answers at their limit. Costs are by the
    prices in sightline.toml, None where there is none. Judges are not in it: what they cost depends on
    the answers. Where images are told in words, `images_to_read` and `captions_to_ask` are what is to be
    done for that, None else; captions are in no other number, and the words of images that were not read
    yet not among the tokens.
    """

    probes: int
    requests: int
    already_known: int
    to_ask: int
    broken_images: int
    image_bytes: int
    prompt_tokens: int
    completion_tokens_at_most: int
    estimated_cost: float | None = None
    images_to_read: int | None = None
    captions_to_ask: int | None = None


def estimate(spec: Spec, planned: set[str] | None = None) -> Estimate:
    """Look at everything and ask nothing. Raises UserError as a run would; the store is only read.

    `planned` holds the keys that others will have asked by then, and takes those of this run.
    """
    planned = set() if planned is None else planned
    ready = prepare(spec, keyless=True)
    with tempfile.TemporaryDirectory() as scratch:
        there = "://" in spec.store or Path(spec.store).exists()
        store = Store.open(spec.store if there else f"{scratch}/none.db")
        try:
            augmented, unknown = None, None
            if ready.augment is not None:
                augmented, unknown = known_in_words(ready.augment, all_images(ready), store)
            probes, broken, asked = 0, 0, {}
            known = 0
            for chunk in plan_of(ready, store, augmented, records=False).chunks():
                made = [pair for _, pairs in chunk for pair in pairs]
                probes += len(made)
                broken += sum(keyed is None for _, keyed in made)
                new = {keyed.request.key: keyed for _, keyed in made if keyed is not None}
                new = {key: keyed for key, keyed in new.items() if key not in asked}
                found = store.look_up(list(new))
                for key, keyed in new.items():
                    answered = key in planned or is_settled(found.get(key), spec.retry_errors)
                    known += answered
                    asked[key] = (0, 0) if answered else _size(keyed)
        finally:
            store.close()
    planned.update(asked)
    to_ask = len(asked) - known
    prompt = sum(tokens for _, tokens in asked.values())
    completion = to_ask * int(ready.options.sampling.get("max_tokens", 1024))
    price = ready.config.price(spec.model)
    cost = (prompt * price.prompt + completion * price.completion) / 1e6 if price else None
    return Estimate(
        probes=probes,
        requests=len(asked),
        already_known=known,
        to_ask=to_ask,
        broken_images=broken,
        image_bytes=sum(size for size, _ in asked.values()),
        prompt_tokens=prompt,
        completion_tokens_at_most=completion,
        estimated_cost=cost,
        images_to_read=unknown.to_read if unknown else None,
        captions_to_ask=unknown.to_caption if unknown else None,
    )


def _size(keyed: KeyedRequest) -> tuple[int, int]:
    """Bytes of the images and rough tokens of one request."""
    request = keyed.request
    characters = sum(
        len(part.text) for message in request.messages for part in message.parts if isinstance(part, Text)
    )
    pixels = sum(file.width * file.height for file in request.images.values())
    size = sum(file.stamp[0] for file in request.images.values())
    return size, characters // CHARACTERS_PER_TOKEN + pixels // PIXELS_PER_TOKEN
