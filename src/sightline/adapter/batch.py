"""Turns training examples into tensors: each prompt followed by its answer."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
from msgspec.structs import replace
from torch import Tensor

from sightline.adapter.examples import TrainingExample
from sightline.errors import UserError
from sightline.models.local.encode import (
    Encoded,
    Encoder,
    Features,
    encoded_images,
    is_token_aligned,
    pad_tensors,
    to_device,
    with_encoded,
)
from sightline.models.local.generate import choice_tokens, decoder_start
from sightline.models.local.load import Loaded
from sightline.types import Failure

IGNORED = -100

Template = Literal["auto", "chat", "plain"]


class EncodedExample(NamedTuple):
    """An encoded prompt, the tokens of its answer including the end token, and its image features.

    `features` is None if the prompt has no image or the model cannot reuse encoded images.
    """

    prompt: Encoded
    answer: list[int]
    features: Features | None


class ExampleEncoder:
    """Encodes examples and caches them in memory."""

    def __init__(
        self,
        loaded: Loaded,
        template: Template,
        *,
        cache_bytes: int,
        max_answer_tokens: int,
        prefix_length: int = 0,
    ) -> None:
        """Prepare an encoder. `max_answer_tokens`: the most tokens of an answer, including the end token."""
        self._loaded, self._encoder = loaded, Encoder(loaded, template)
        self._free_bytes, self._max_answer_tokens = cache_bytes, max_answer_tokens
        self._prefix_length = prefix_length
        self._input_names: set[str] | None = None
        self._cached: dict[str, EncodedExample] = {}
        self._features: dict[tuple[str, ...], Features | None] = {}
        self._end = _end_token(loaded)

    def encode(self, example: TrainingExample) -> EncodedExample:
        key = example.request.key
        encoded = self._cached.get(key)
        if encoded is None:
            encoded = self._encode(example)
            images = encoded.prompt.image_keys
            size = _bytes(encoded, without_features=images in self._features)
            if size <= self._free_bytes:
                self._free_bytes -= size
                self._cached[key] = encoded
                self._features[images] = encoded.features
        return encoded

    def check(self, example: TrainingExample) -> None:
        """Check, without caching, that an example can be encoded, and batched with those checked before."""
        prompt = self.encode_prompt(example)
        self._answer_tokens(example, prompt)
        self._input_names = self._input_names or set(prompt.inputs)
        if set(prompt.inputs) != self._input_names:
            raise UserError(
                "some examples have an image and others have none",
                record=example.request.key,
                expected="only examples with images, or only examples without",
            )

    def encode_prompt(self, example: TrainingExample) -> Encoded:
        prompt = self._encoder.encode(example.request)
        if isinstance(prompt, Failure):
            raise UserError(
                f"the model cannot take this prompt: {prompt.message}", record=example.request.key
            )
        return prompt

    def _answer_tokens(self, example: TrainingExample, prompt: Encoded) -> list[int]:
        with_choice = replace(prompt, request=replace(prompt.request, choices=(example.answer,)))
        answer = [*choice_tokens(self._loaded, with_choice)[0], *self._end]
        key, length = example.request.key, len(answer)
        if length > self._max_answer_tokens:
            raise UserError(
                f"the answer has {length} tokens",
                record=key,
                expected=f"at most {self._max_answer_tokens}, including the end token (--max-answer-tokens)",
            )
        if self._loaded.positions is None or self._loaded.is_seq2seq:
            return answer
        free = self._loaded.positions - prompt.tokens - length
        if self._prefix_length > free:
            raise UserError(
                f"the model's context holds {self._loaded.positions:,} tokens: the prompt has"
                f" {prompt.tokens:,}, the answer {length:,}, the adapter's prefix {self._prefix_length:,}",
                record=key,
                expected=f"--set prefix={free} at most" if free > 0 else "a shorter prompt or answer",
            )
        return answer

    def _encode(self, example: TrainingExample) -> EncodedExample:
        prompt = self.encode_prompt(example)
        answer = self._answer_tokens(example, prompt)
        features = self._image_features(prompt)
        if features is None:
            return EncodedExample(prompt, answer, None)
        text = {name: tensor for name, tensor in prompt.inputs.items() if not name.startswith("pixel_")}
        return EncodedExample(replace(prompt, inputs=text), answer, features)

    def _image_features(self, prompt: Encoded) -> Features | None:
        if not prompt.image_keys or prompt.image_keys in self._features:
            return self._features.get(prompt.image_keys)
        with torch.no_grad():
            features = encoded_images(self._loaded, [prompt])
        return features[0] if features is not None else None


def _end_token(loaded: Loaded) -> list[int]:
    """The end token: the tokenizer's own if there are several, [] if the model has none."""
    token = getattr(loaded.processor.tokenizer, "eos_token_id", None)
    return [token] if token in loaded.ends else sorted(loaded.ends)[:1]


class TrainingBatch(NamedTuple):
    """Tensors for one forward pass of B rows.

    `inputs` are the model's keyword arguments. `prompt_mask` (B, T) is 1 for prompts and the placeholders
    in front of them. `targets` (B, L) holds the token that should follow each position of the logits, or
    IGNORED at positions of the prompt.
    """

    inputs: dict[str, Any]
    prompt_mask: Tensor
    targets: Tensor


def training_batch(loaded: Loaded, examples: Sequence[EncodedExample]) -> TrainingBatch:
    """Collate examples into one batch, padded on the right."""
    if loaded.is_seq2seq:
        inputs = _collated([dict(example.prompt.inputs) for example in examples], examples, loaded)
        start = decoder_start(loaded.model)
        inputs["decoder_input_ids"] = _padded(
            [[start, *example.answer[:-1]] for example in examples], loaded.pad
        )
        targets = _padded([example.answer for example in examples], IGNORED)
    else:
        inputs = _collated([_with_answer(example, loaded.kind) for example in examples], examples, loaded)
        targets = _padded(
            [[IGNORED] * (example.prompt.tokens - 1) + example.answer for example in examples], IGNORED
        )
    prompt_mask = _padded([[1] * example.prompt.tokens for example in examples], 0)
    on_device = to_device(inputs, loaded)
    if examples[0].features is not None:
        on_device = with_encoded(
            on_device, [example.features for example in examples if example.features is not None]
        )
    return TrainingBatch(on_device, prompt_mask.to(loaded.device), targets.to(loaded.device))


def _with_answer(example: EncodedExample, architecture: str) -> dict[str, Any]:
    """The inputs of a prompt followed by its answer without the end token."""
    answer = torch.tensor([example.answer[:-1]])
    appended = {"input_ids": answer, "attention_mask": torch.ones_like(answer)}
    if architecture == "paligemma":
        # PaliGemma reads its prompts in both directions; type 1 makes attention causal for the answer. In
        # other models token types mark images.
        appended["token_type_ids"] = torch.ones_like(answer)
    inputs = dict(example.prompt.inputs)
    for name, tensor in example.prompt.inputs.items():
        if is_token_aligned(name, tensor, example.prompt.tokens) and not name.startswith("qformer_"):
            suffix = appended.get(name, torch.zeros_like(answer)).to(tensor.dtype)
            inputs[name] = torch.cat((tensor, suffix), dim=1)
    return inputs


def _collated(
    rows: Sequence[dict[str, Any]], examples: Sequence[EncodedExample], loaded: Loaded
) -> dict[str, Any]:
    collated: dict[str, Any] = {}
    for name, first in examples[0].prompt.inputs.items():
        tensors = [row[name] for row in rows]
        if is_token_aligned(name, first, examples[0].prompt.tokens):
            tensors = pad_tensors(tensors, loaded.pad if name == "input_ids" else 0, left=False)
        collated[name] = torch.cat(tensors)
    return collated


def _padded(rows: Sequence[list[int]], padding: int) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([row + [padding] * (width - len(row)) for row in rows])


def _bytes(example: EncodedExample, *, without_features: bool) -> int:
    tensors = [tensor for tensor in example.prompt.inputs.values() if isinstance(tensor, Tensor)]
    tensors += example.features.images if example.features is not None and not without_features else []
    return sum(tensor.nbytes for tensor in tensors)
