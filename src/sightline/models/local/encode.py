"""Encoding: from a request to tokens and prepared images."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Literal

from msgspec import Struct

from sightline.images import BadImage, read_image
from sightline.models.local.args import Sampling, read_sampling
from sightline.models.local.input_tensors import with_placeholders
from sightline.models.local.load import Loaded, is_out_of_memory
from sightline.models.local.prompt import Prompt, UnsupportedRequestError, prompt_of
from sightline.types import Failure, ImageFile, Request

CACHED_IMAGES = 8
"""Number of prepared images in the cache, for the next requests with the same image."""

STEP = 32
"""Limits of answer tokens are rounded down to multiples of this, so that requests near the end of the context
still share a batch.
"""


class Encoded(Struct, frozen=True):
    """A request as the model receives it.

    Attributes:
        tokens: Tokens of the prompt.
        limit: Largest number of answer tokens.
    """

    request: Request
    prompt: Prompt
    inputs: Mapping[str, Any]
    tokens: int
    limit: int
    sampling: Sampling

    @property
    def image_keys(self) -> tuple[str, ...]:
        """The images by digest and transform."""
        return tuple(f"{file.digest} {file.transform}" for file in self.prompt.images)


class Encoder:
    """Encodes requests; an image that several requests share is opened and prepared once."""

    def __init__(self, loaded: Loaded, template: Literal["auto", "chat", "plain"]) -> None:
        self._loaded = loaded
        self._template = template
        self._opened: dict[str, Any] = {}
        self._processor = loaded.processor
        if hasattr(self._processor, "image_processor"):
            self._processor.image_processor = _CachedImageProcessor(self._processor.image_processor)

    def encode(self, request: Request) -> Encoded | Failure:
        try:
            prompt = prompt_of(request, self._processor, self._loaded.kind, self._template)
            images = [self._open(file) for file in prompt.images]
            inputs = self._inputs(prompt.text, images)
        except (BadImage, UnsupportedRequestError) as error:
            return Failure("permanent", str(error))
        except Exception as error:
            if not is_out_of_memory(error):
                raise
            self._opened.clear()
            return Failure("transient", "not enough memory to prepare its images")
        if self._loaded.prefix_vectors is not None:
            inputs = with_placeholders(inputs, self._loaded.prefix_vectors.length, self._loaded.pad)
        tokens = int(inputs["input_ids"].shape[1])
        sampling = read_sampling(request.sampling)
        limit = self._limit(tokens, sampling.max_tokens)
        if limit < 1:
            return Failure(
                "blocked",
                f"the prompt has {tokens:,} tokens and leaves no room for an answer:"
                f" the model holds {self._loaded.positions:,} in all",
            )
        return Encoded(request, prompt, inputs, tokens, limit, sampling)

    def _inputs(self, text: str, images: list[Any]) -> dict[str, Any]:
        tokenizer = self._processor.tokenizer
        # Do not add a first token if the template wrote it.
        first = getattr(tokenizer, "bos_token", None)
        special = {"add_special_tokens": False} if first and text.startswith(first) else {}
        try:
            inputs = dict(
                self._processor(
                    text=[text], images=[images] if images else None, return_tensors="pt", **special
                )
            )
        # Processors raise any type of error for unsupported requests (no image, too many images, a marker in
        # the text).
        except Exception as error:
            if is_out_of_memory(error):
                raise
            raise UnsupportedRequestError(f"its processor refuses the request: {error}") from error
        self._check_image_tokens(inputs, len(images))
        inputs.pop("labels", None)
        return inputs

    def _check_image_tokens(self, inputs: Mapping[str, Any], images: int) -> None:
        """Raise UnsupportedRequestError if the request has images and the prompt has no image token."""
        config = self._loaded.model.config
        mark = getattr(config, "image_token_id", None)
        if images and mark is not None and not bool((inputs["input_ids"] == mark).any()):
            raise UnsupportedRequestError(
                "its processor puts no image into the prompt: its settings (num_query_tokens,"
                " image_token) do not belong to the model's config"
            )

    def _limit(self, tokens: int, requested: int) -> int:
        positions = self._loaded.positions
        if positions is None or self._loaded.is_seq2seq:
            return requested
        room = positions - tokens
        return min(requested, room - room % STEP or room)

    def _open(self, file: ImageFile) -> Any:
        """The image in RGB, opened once for consecutive requests."""
        key = f"{file.digest} {file.transform}"
        if key not in self._opened:
            if len(self._opened) >= CACHED_IMAGES:
                del self._opened[next(iter(self._opened))]
            self._opened[key] = read_image(file)
        return self._opened[key]


class _CachedImageProcessor:
    """An image processor that caches its results for the latest images."""

    def __init__(self, image_processor: Any) -> None:
        self._image_processor = image_processor
        self._results: dict[tuple[int, ...], tuple[Any, Any]] = {}

    def __call__(self, images: Any, **options: Any) -> Any:
        flat = _flat(images)
        key = tuple(map(id, flat))
        # The images are kept with the result, because an id is unique only while they live.
        if key not in self._results:
            if len(self._results) >= CACHED_IMAGES:
                del self._results[next(iter(self._results))]
            self._results[key] = (flat, self._image_processor(images, **options))
        result = self._results[key][1]
        return type(result)(dict(result))

    def __getattr__(self, name: str) -> Any:
        return getattr(self._image_processor, name)


def _flat(images: Any) -> list[Any]:
    if isinstance(images, list | tuple):
        return [image for inner in images for image in _flat(inner)]
    return [images]
