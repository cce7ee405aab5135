"""Examples as what the model is given in training: each prompt with its answer behind it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, Literal, NamedTuple

import torch
from msgspec.structs import replace
from torch import Tensor

from sightline.adapter.examples import Example
from sightline.errors import UserError
from sightline.models.local.encode import Encoded, Encoder
from sightline.models.local.inputs import fill_up, runs_along
from sightline.models.local.likelihood import choice_tokens, decoder_start
from sightline.models.local.load import Loaded
from sightline.models.local.vision import Features, encoded_images, to_device, with_encoded
from sightline.types import Failure

IGNORED = -100

Template = Literal["auto", "chat", "plain"]


class Ready(NamedTuple):
    """An example made ready: its prompt, the tokens of its answer with the one that ends it, and its
    images where they are encoded already."""

    prompt: Encoded
    answer: list[int]
    features: Features | None


class Maker:
    """Makes examples ready, and remembers them for as long as `room` bytes are enough."""

    def __init__(
        self, loaded: Loaded, template: Template, *, room: int, longest: int, ahead: int = 0
    ) -> None:
        """An answer may have `longest` tokens, with the one that ends it; `ahead` are those that an adapter
        will put before prompts, where it is not attached yet."""
        self._loaded, self._encoder = loaded, Encoder(loaded, template)
        self._room, self._longest, self._ahead = room, longest, ahead
        self._names: set[str] | None = None
        self._ready: dict[str, Ready] = {}
        self._features: dict[tuple[str, ...], Features | None] = {}
        self._end = _end(loaded)

    def make(self, example: Example) -> Ready:
        """Raises UserError for an example that the model cannot be asked, or whose answer is too long."""
        key = example.request.key
        ready = self._ready.get(key)
        if ready is None:
            ready = self._make(example)
            shown = ready.prompt.shown
            size = _bytes(ready, counted=shown in self._features)
            if size <= self._room:
                self._room -= size
                self._ready[key] = ready
                self._features[shown] = ready.features
        return ready

    def check(self, example: Example) -> None:
        """Raise UserError as `make` does, and where this example cannot be in one batch with those before;
        remember nothing."""
        prompt = self.encode(example)
        self._tokens(example, prompt)
        self._names = self._names or set(prompt.inputs)
        if set(prompt.inputs) != self._names:
            raise UserError(
                "some examples show an image and others none",
                record=example.request.key,
                expected="only ones with images, or only ones without",
            )

    def encode(self, example: Example) -> Encoded:
        """The prompt as the model takes it. Raises UserError where it cannot be asked."""
        prompt = self._encoder.encode(example.request)
        if isinstance(prompt, Failure):
            raise UserError(f"the model cannot be asked this: {prompt.message}", record=example.request.key)
        return prompt

    def _tokens(self, example: Example, prompt: Encoded) -> list[int]:
        """The answer's tokens, with the one that ends it."""
        asked = replace(prompt, request=replace(prompt.request, choices=(example.answer,)))
        answer = [*choice_tokens(self._loaded, asked)[0], *self._end]
        key, length = example.request.key, len(answer)
        if length > self._longest:
            raise UserError(
                f"the answer has {length} tokens",
                record=key,
                expected=f"at most {self._longest}, with the one that ends it (--max-target)",
            )
        if self._loaded.positions is None or self._loaded.is_seq2seq:
            return answer
        free = self._loaded.positions - prompt.tokens - length
        if self._ahead > free:
            raise UserError(
                f"the model holds {self._loaded.positions:,} tokens: the prompt has {prompt.tokens:,}, the"
                f" answer {length:,}, the adapter's prefix {self._ahead:,}",
                record=key,
                expected=f"--set prefix={free} at most" if free > 0 else "a shorter prompt or answer",
            )
        return answer

    def _make(self, example: Example) -> Ready:
        prompt = self.encode(example)
        answer = self._tokens(example, prompt)
        features = self._encoded(prompt)
        if features is None:
            return Ready(prompt, answer, None)
        words = {name: tensor for name, tensor in prompt.inputs.items() if not name.startswith("pixel_")}
        return Ready(replace(prompt, inputs=words), answer, features)

    def _encoded(self, prompt: Encoded) -> Features | None:
        """The images of a prompt as vectors, once for all that show the same ones."""
        if not prompt.shown or prompt.shown in self._features:
            return self._features.get(prompt.shown)
        with torch.no_grad():
            features = encoded_images(self._loaded, [prompt])
        return features[0] if features is not None else None


def _end(loaded: Loaded) -> list[int]:
    """The token that ends an answer: of several the tokenizer's own, none where the model has none."""
    own = getattr(loaded.processor.tokenizer, "eos_token_id", None)
    return [own] if own in loaded.ends else sorted(loaded.ends)[:1]


class Batch(NamedTuple):
    """`inputs` for the model; `seen`, (B, T), where prompts and the room before them are; `targets`, (B, L),
    the token that each place of the logits should be followed by, IGNORED where that is the prompt's."""

    inputs: dict[str, Any]
    seen: Tensor
    targets: Tensor


def compose(loaded: Loaded, examples: Sequence[Ready]) -> Batch:
    """Examples as one batch, each row filled up on its right."""
    if loaded.is_seq2seq:
        inputs = _filled([dict(one.prompt.inputs) for one in examples], examples, loaded)
        start = decoder_start(loaded.model)
        inputs["decoder_input_ids"] = _rows([[start, *one.answer[:-1]] for one in examples], loaded.pad)
        targets = _rows([one.answer for one in examples], IGNORED)
    else:
        inputs = _filled([_with_answer(one, loaded.kind) for one in examples], examples, loaded)
        targets = _rows([[IGNORED] * (one.prompt.tokens - 1) + one.answer for one in examples], IGNORED)
    seen = _rows([[1] * one.prompt.tokens for one in examples], 0)
    given = to_device(inputs, loaded)
    if examples[0].features is not None:
        given = with_encoded(given, [one.features for one in examples if one.features is not None])
    return Batch(given, seen.to(loaded.device), targets.to(loaded.device))


def _with_answer(one: Ready, kind: str) -> dict[str, Any]:
    """The inputs of a prompt with its answer behind it, but for the token that ends it."""
    said = torch.tensor([one.answer[:-1]])
    behind = {"input_ids": said, "attention_mask": torch.ones_like(said)}
    if kind == "paligemma":
        # Its prompts are read in both directions, and only this keeps answers from being; elsewhere it says
        # what is an image.
        behind["token_type_ids"] = torch.ones_like(said)
    inputs = dict(one.prompt.inputs)
    for name, tensor in one.prompt.inputs.items():
        if runs_along(name, tensor, one.prompt.tokens) and not name.startswith("qformer_"):
            more = behind.get(name, torch.zeros_like(said)).to(tensor.dtype)
            inputs[name] = torch.cat((tensor, more), dim=1)
    return inputs


def _filled(rows: Sequence[dict[str, Any]], examples: Sequence[Ready], loaded: Loaded) -> dict[str, Any]:
    together: dict[str, Any] = {}
    for name, first in examples[0].prompt.inputs.items():
        tensors = [row[name] for row in rows]
        if runs_along(name, first, examples[0].prompt.tokens):
            tensors = fill_up(tensors, loaded.pad if name == "input_ids" else 0, left=False)
        together[name] = torch.cat(tensors)
    return together


def _rows(rows: Sequence[list[int]], filler: int) -> Tensor:
    width = max(map(len, rows))
    return torch.tensor([row + [filler] * (width - len(row)) for row in rows])


def _bytes(ready: Ready, *, counted: bool) -> int:
    """What an example takes in memory, but for its encoded images where they are `counted` already."""
    tensors = [tensor for tensor in ready.prompt.inputs.values() if isinstance(tensor, Tensor)]
    tensors += ready.features.images if ready.features is not None and not counted else []
    return sum(tensor.nbytes for tensor in tensors)
