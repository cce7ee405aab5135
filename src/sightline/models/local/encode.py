"""Encoding: from a request to tokens and prepared images, and from several requests to a batch."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Literal, NamedTuple

from msgspec import Struct

from sightline.images import BadImage, read_image
from sightline.models.local.load import NEEDS_IMAGE, Loaded, Sampling, is_out_of_memory, read_sampling
from sightline.types import Failure, ImageFile, ImageRef, Message, Request, Text

CACHED_IMAGES = 8
"""Number of prepared images in the cache, for the next requests with the same image."""

STEP = 32
"""Limits of answer tokens are rounded down to multiples of this, so that requests near the end of the context
still share a batch.
"""


class Encoded(Struct, frozen=True):
    """A request as the model receives it. `image_tokens`: those of the prompt's tokens that its images take;
    None if the model marks none.
    """

    request: Request
    prompt: Prompt
    inputs: Mapping[str, Any]
    tokens: int
    limit: int
    sampling: Sampling
    image_tokens: int | None = None

    @property
    def image_keys(self) -> tuple[str, ...]:
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
            if self._loaded.kind in NEEDS_IMAGE and not prompt.images:
                raise UnsupportedRequestError("this architecture answers nothing without an image")
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
        return Encoded(request, prompt, inputs, tokens, limit, sampling, self._image_tokens(inputs, images))

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
        if self._image_tokens(inputs, images) == 0:
            raise UnsupportedRequestError(
                "its processor puts no image into the prompt: its settings (num_query_tokens,"
                " image_token) do not belong to the model's config"
            )
        inputs.pop("labels", None)
        return inputs

    def _image_tokens(self, inputs: Mapping[str, Any], images: Sequence[Any]) -> int | None:
        """Count the image tokens of a prompt; None if it has no images, or the model has no such token."""
        mark = getattr(self._loaded.model.config, "image_token_id", None)
        return int((inputs["input_ids"] == mark).sum()) if images and mark is not None else None

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


# -- Prompts: from a conversation to the text that a model reads, with a marker for each image


class UnsupportedRequestError(Exception):
    """A request that this model does not support; its text says why."""


class Prompt(NamedTuple):
    """A prompt as text."""

    text: str
    images: tuple[ImageFile, ...]
    ending: str = ""
    lead: str = " "


class Plain(NamedTuple):
    """The prompt that an architecture was trained with."""

    form: str
    marked: bool = True
    ending: str = ""
    lead: str = " "


# The prompts on the models' own pages, for checkpoints without a chat template.
_PLAIN = {
    "blip-2": Plain("Question: {} Answer:", marked=False),
    "idefics2": Plain("User:{}<end_of_utterance>\nAssistant:"),
    "idefics3": Plain("User:{}<end_of_utterance>\nAssistant:"),
    "instructblip": Plain("{}", marked=False),
    "llava": Plain("USER: {} ASSISTANT:"),
    "llava_next": Plain("USER: {} ASSISTANT:"),
    "paligemma": Plain("{}", ending="\n", lead=""),
    "vipllava": Plain("###Human: {}###Assistant:"),
}

_NEW_LINE_BEFORE_TEXT = ("llava", "llava_next", "vipllava")


def prompt_of(
    request: Request, processor: Any, kind: str, template: Literal["auto", "chat", "plain"] = "auto"
) -> Prompt:
    images = images_in(request)
    has_template = bool(getattr(processor, "chat_template", None))
    if template == "chat" and not has_template:
        raise UnsupportedRequestError("its processor has no chat template: leave template=chat out")
    if has_template and template != "plain":
        text = _chat(request.messages, processor)
        return Prompt(text, images, lead="" if text[-1:].isspace() or text.endswith(">") else " ")
    plain = _PLAIN.get(kind, Plain("{}", marked=bool(getattr(processor, "image_token", None))))
    text = plain.form.format(_turn(request.messages, processor, kind, plain))
    return Prompt(text, images, plain.ending, plain.lead)


def images_in(request: Request) -> tuple[ImageFile, ...]:
    return tuple(
        request.images[part.path]
        for message in request.messages
        for part in message.parts
        if isinstance(part, ImageRef)
    )


def _chat(messages: Sequence[Message], processor: Any) -> str:
    turns = [
        {
            "role": message.role,
            "content": [
                {"type": "text", "text": part.text} if isinstance(part, Text) else {"type": "image"}
                for part in message.parts
            ],
        }
        for message in messages
    ]
    try:
        text: str = processor.apply_chat_template(turns, add_generation_prompt=True, tokenize=False)
    # A template is a program that may raise any error.
    except Exception as error:
        raise UnsupportedRequestError(f"its chat template refuses the conversation: {error}") from None
    return text


def _turn(messages: Sequence[Message], processor: Any, kind: str, plain: Plain) -> str:
    """The one turn of a plain prompt; a system message comes before its text."""
    *before, last = messages
    if last.role != "user" or any(message.role != "system" for message in before):
        raise UnsupportedRequestError(
            "its processor has no chat template, so it accepts one turn, not a conversation"
        )
    mark = str(getattr(processor, "image_token", "")) if plain.marked else ""
    if mark and kind in _NEW_LINE_BEFORE_TEXT:
        mark += "\n"
    system_parts = [part for message in before for part in message.parts]
    pieces: list[str] = []
    for part in (*system_parts, *last.parts):
        if not isinstance(part, Text):
            pieces.append(mark)
            continue
        # A line break separates two texts; nothing separates an image and its text.
        follows_text = bool(pieces) and pieces[-1] != mark
        pieces.append(f"\n{part.text}" if follows_text else part.text)
    return "".join(pieces)


# -- The tensors of a request: which of them have a token dimension, and how they are padded


def images_of(inputs: Mapping[str, Any], tokens: int) -> dict[str, Any]:
    """Select the inputs that hold images. `tokens`: tokens of its prompt."""
    return {name: tensor for name, tensor in inputs.items() if not is_token_aligned(name, tensor, tokens)}


def is_token_aligned(name: str, tensor: Any, tokens: int) -> bool:
    """Check whether an input has one entry for each token, of the prompt or of the Q-Former's text.

    `tokens`: tokens of the prompt.
    """
    if name.startswith("qformer_"):
        return True
    is_of_images = name.startswith(("pixel_", "image_"))
    return not is_of_images and tensor.ndim >= 2 and tensor.shape[1] == tokens


def pad_tensors(tensors: Sequence[Any], value: int, *, left: bool = True) -> list[Any]:
    """Pad tensors to the length of the longest. `tensors`: tensors of shape (1, tokens, ...)."""
    import torch

    width = max(tensor.shape[1] for tensor in tensors)
    filled = []
    for tensor in tensors:
        room = tensor.new_full((tensor.shape[0], width - tensor.shape[1], *tensor.shape[2:]), value)
        filled.append(torch.cat((room, tensor) if left else (tensor, room), dim=1))
    return filled


def with_placeholders(
    inputs: Mapping[str, Any], length: int, pad: int, *, left: bool = True
) -> dict[str, Any]:
    """Put padding that counts before or after a prompt, for vectors or tokens that are written there."""
    import torch

    tokens = inputs["input_ids"].shape[1]
    values = {"input_ids": pad, "attention_mask": 1}
    wider = dict(inputs)
    for name, tensor in inputs.items():
        if is_token_aligned(name, tensor, tokens) and not name.startswith("qformer_"):
            room = tensor.new_full((tensor.shape[0], length, *tensor.shape[2:]), values.get(name, 0))
            wider[name] = torch.cat((room, tensor) if left else (tensor, room), dim=1)
    return wider


# -- Image features: images that several requests of a batch share are encoded once, if the architecture
#    allows it


class Features(NamedTuple):
    """The encoded images of a request. `images`: a tensor (vectors, width) for each image."""

    images: list[Any]
    stacked: bool


def share_images(loaded: Loaded, batch: Sequence[Encoded], inputs: Mapping[str, Any]) -> dict[str, Any]:
    """Encode each distinct image of a batch once."""
    distinct = {encoded.image_keys: encoded for encoded in batch}
    if len(distinct) == len(batch) or "pixel_values" not in inputs:
        return dict(inputs)
    features = encoded_images(loaded, list(distinct.values()))
    if features is None:
        return dict(inputs)
    by_images = dict(zip(distinct, features, strict=True))
    return with_encoded(inputs, [by_images[encoded.image_keys] for encoded in batch])


def encoded_images(loaded: Loaded, requests: Sequence[Encoded]) -> list[Features] | None:
    """Encode the images of requests.

    An architecture allows it if its images become vectors that do not depend on the text, and its forward
    pass accepts them in place of the images.

    Returns:
        The features of each request; None if the architecture does not allow it.
    """
    if not takes_encoded(loaded.model):
        return None
    encoded = _encode(loaded, requests)
    features = getattr(encoded, "pooler_output", None)
    # Some architectures also use features of other layers; these are not supported here.
    if features is None or getattr(encoded, "deepstack_features", None) is not None:
        return None
    parts = _parts(features, requests)
    if parts is None:
        return None
    stacked = not isinstance(features, list | tuple)
    return [Features([features[position] for position in positions], stacked) for positions in parts]


def with_encoded(inputs: Mapping[str, Any], features: Sequence[Features]) -> dict[str, Any]:
    import torch
    from transformers.modeling_outputs import BaseModelOutputWithPooling

    each: Any = [vectors for request_features in features for vectors in request_features.images]
    each = torch.stack(each) if features[0].stacked else each
    others = {name: tensor for name, tensor in inputs.items() if not name.startswith("pixel_")}
    return {**others, "mm_encoder_outputs": {"image": BaseModelOutputWithPooling(pooler_output=each)}}


def takes_encoded(model: Any) -> bool:
    """Check whether a model accepts encoded images in place of images, in `generate` too."""
    from transformers import GenerationMixin

    own_generate = type(model).generate is not GenerationMixin.generate
    return (
        not own_generate
        and "mm_encoder_outputs" in inspect.signature(model.forward).parameters
        and hasattr(model.base_model, "get_image_features")
    )


def _encode(loaded: Loaded, requests: Sequence[Encoded]) -> Any:
    import torch

    encode = loaded.model.base_model.get_image_features
    parameters = inspect.signature(encode).parameters
    image_inputs = [images_of(request.inputs, request.tokens) for request in requests]
    inputs = {
        name: torch.cat([tensors[name] for tensors in image_inputs])
        for name in image_inputs[0]
        if name in parameters
    }
    return encode(**to_device(inputs, loaded), return_dict=True)


def _parts(features: Any, requests: Sequence[Encoded]) -> list[range] | None:
    """Which features belong to each request: one for an image, or the same number for each request."""
    images = [len(request.prompt.images) for request in requests]
    if len(features) != sum(images):
        if len(features) % len(requests):
            return None
        images = [len(features) // len(requests)] * len(requests)
    ends = [sum(images[: position + 1]) for position in range(len(images))]
    return [range(end - count, end) for count, end in zip(images, ends, strict=True)]


def to_device(inputs: Mapping[str, Any], loaded: Loaded) -> dict[str, Any]:
    """Move inputs to the model's device, images in its number type."""
    return {
        name: tensor.to(loaded.device, loaded.model.dtype if tensor.is_floating_point() else None)
        for name, tensor in inputs.items()
    }


# -- Batches: which requests share a forward pass, and how their inputs are combined


def similar_chunks(requests: Sequence[Request], size: int) -> Iterator[list[int]]:
    """Divide requests into chunks of similar requests.

    Requests are sorted by sampling, then image size, then images, then the longest text for these images:
    a shared image is encoded once, and similar lengths need little padding.
    """
    images_of_request = [images_in(request) for request in requests]
    longest: dict[tuple[Any, ...], int] = {}
    for request, images in zip(requests, images_of_request, strict=True):
        longest[images] = max(longest.get(images, 0), _characters(request))

    def sort_key(position: int) -> tuple[Any, ...]:
        request, images = requests[position], images_of_request[position]
        return (
            bool(request.choices),
            sorted(request.sampling.items()),
            [(file.width, file.height) for file in images],
            longest[images],
            [file.digest for file in images],
            _characters(request),
        )

    order = sorted(range(len(requests)), key=sort_key)
    for first in range(0, len(order), size):
        yield order[first : first + size]


def compatible_batches(encoded: Iterable[tuple[int, Encoded]]) -> list[list[tuple[int, Encoded]]]:
    """Divide encoded requests into batches that the model accepts as one.

    Requests of a batch have the same sampling, the same limit of answer tokens, and inputs whose shapes
    fit together; if choices are scored, also prompts of one length.
    """
    batches: dict[Any, list[tuple[int, Encoded]]] = {}
    for position, request in encoded:
        shapes = tuple(
            (name, tuple(tensor.shape[1:]))
            for name, tensor in sorted(request.inputs.items())
            if not is_token_aligned(name, tensor, request.tokens)
        )
        batch = (request.sampling, request.limit, shapes, request.tokens if request.request.choices else None)
        batches.setdefault(batch, []).append((position, request))
    return list(batches.values())


def collate(batch: Sequence[Encoded], pad: int) -> dict[str, Any]:
    """Combine the inputs of several requests.

    Inputs along the tokens are padded on the left, those of the Q-Former on the right; images follow each
    other.
    """
    import torch

    combined: dict[str, Any] = {}
    for name in batch[0].inputs:
        tensors = [encoded.inputs[name] for encoded in batch]
        if is_token_aligned(name, tensors[0], batch[0].tokens):
            value = pad if name == "input_ids" else 0
            tensors = pad_tensors(tensors, value, left=not name.startswith("qformer_"))
        combined[name] = torch.cat(tensors)
    return combined


def _characters(request: Request) -> int:
    return sum(
        len(part.text) for message in request.messages for part in message.parts if isinstance(part, Text)
    )
