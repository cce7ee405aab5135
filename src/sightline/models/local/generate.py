"""Generated answers: a batch of requests through `generate`, each as if it were alone."""

from __future__ import annotations

import time
from collections.abc import Mapping, Sequence
from random import Random
from threading import Event
from typing import Any

from sightline.models.local.args import Sampling
from sightline.models.local.encode import Encoded
from sightline.models.local.load import Loaded
from sightline.models.local.prefix_cache import batch_inputs
from sightline.types import Answer, Usage


def generate(loaded: Loaded, batch: Sequence[Encoded], stop: Event, version: str) -> list[Answer]:
    """Generate answers.

    `completion_tokens` includes the token that ends an answer. Once `stop` is set, answers are cut off
    and must not be used.

    Returns:
        The answers in the order of the requests; `latency` is the batch's time in seconds, divided evenly.
    """
    import torch

    began = time.perf_counter()
    with torch.inference_mode():
        inputs = batch_inputs(loaded, batch)
        if loaded.prefix_vectors is not None:
            loaded.prefix_vectors.activate(inputs["attention_mask"])
        tokens = loaded.model.generate(**inputs, **_options(loaded, batch, inputs, stop))
    # A separate decoder starts with one token; other models continue the prompt.
    before = 1 if loaded.is_seq2seq else inputs["input_ids"].shape[1]
    seconds = (time.perf_counter() - began) / len(batch)
    rows = tokens[:, before:].tolist()
    return [_answer(loaded, encoded, row, seconds, version) for encoded, row in zip(batch, rows, strict=True)]


def _options(
    loaded: Loaded, batch: Sequence[Encoded], inputs: Mapping[str, Any], stop: Event
) -> dict[str, Any]:
    from transformers import LogitsProcessorList, StoppingCriteriaList

    sampling = batch[0].sampling
    options: dict[str, Any] = {
        "do_sample": False,
        "max_new_tokens": batch[0].limit,
        "pad_token_id": loaded.pad,
        "eos_token_id": sorted(loaded.ends) or None,
        "stopping_criteria": StoppingCriteriaList([_StopOnEvent(stop)]),
    }
    processors = LogitsProcessorList()
    if sampling.repetition_penalty != 1:
        prompt_mask = None if loaded.is_seq2seq else inputs["attention_mask"].bool()
        if prompt_mask is not None and loaded.prefix_vectors is not None:
            # The positions of prefix vectors are not part of the prompt.
            prompt_mask = prompt_mask & (prompt_mask.cumsum(1) > loaded.prefix_vectors.length)
        processors.append(_Penalty(sampling.repetition_penalty, prompt_mask))
    if sampling.temperature > 0:
        generators = [Random(f"{sampling.seed} {encoded.request.key}") for encoded in batch]
        processors.append(_SeededSampling(sampling, generators))
    return {**options, "logits_processor": processors}


class _StopOnEvent:
    """Stops `generate` before the next token once an event is set."""

    def __init__(self, stop: Event) -> None:
        self._stop = stop

    def __call__(self, tokens: Any, scores: Any, **_: object) -> Any:
        import torch

        return torch.full((tokens.shape[0],), self._stop.is_set(), device=tokens.device, dtype=torch.bool)


class _Penalty:
    """transformers' repetition penalty without the padding of prompts, which may be the token that ends an
    answer.

    `prompt_mask` is the mask of the prompts, None if answers do not continue them.
    """

    def __init__(self, penalty: float, prompt_mask: Any) -> None:
        from transformers import RepetitionPenaltyLogitsProcessor

        self._penalize = RepetitionPenaltyLogitsProcessor(float(penalty))
        self._prompt_mask = prompt_mask

    def __call__(self, tokens: Any, scores: Any) -> Any:
        import torch

        if self._prompt_mask is not None:
            # Replace padding by the last token of the prompt, which already counts.
            prompts = tokens[:, : self._prompt_mask.shape[1]]
            prompts = prompts.where(self._prompt_mask, prompts[:, -1:])
            tokens = torch.cat((prompts, tokens[:, prompts.shape[1] :]), dim=1)
        return self._penalize(tokens, scores)


class _SeededSampling:
    """Samples the next token of each row with the row's own random generator, and rules out all others.

    The token depends only on its request and seed, whatever else is in the batch.
    """

    def __init__(self, sampling: Sampling, generators: Sequence[Random]) -> None:
        self._sampling = sampling
        self._generators = generators

    def __call__(self, tokens: Any, scores: Any) -> Any:
        import torch

        forced = torch.full_like(scores, -torch.inf)
        return forced.scatter_(1, self._sampled(scores)[:, None], 0.0)

    def _sampled(self, scores: Any) -> Any:
        """The token of each row, shape (rows,)."""
        import torch

        probabilities, order = (
            torch.softmax(scores.double() / self._sampling.temperature, dim=-1)
            if scores.device.type != "mps"
            else torch.softmax(scores / self._sampling.temperature, dim=-1)
        ).sort(dim=-1, descending=True, stable=True)
        if self._sampling.top_k:
            probabilities[:, self._sampling.top_k :] = 0
        before = probabilities.cumsum(-1) - probabilities
        probabilities = probabilities.masked_fill(
            before >= self._sampling.top_p * probabilities.sum(-1, keepdim=True), 0
        )
        sums = probabilities.cumsum(-1)
        uniform = torch.tensor(
            [generator.random() for generator in self._generators], dtype=sums.dtype, device=sums.device
        )
        positions = torch.searchsorted(sums, uniform[:, None] * sums[:, -1:], right=True)
        return order.gather(1, positions.clamp(max=order.shape[1] - 1))[:, 0]


def _answer(loaded: Loaded, encoded: Encoded, row: list[int], seconds: float, version: str) -> Answer:
    length = next((position + 1 for position, token in enumerate(row) if token in loaded.ends), None)
    answer_tokens = row[:length] if length is not None else row
    text = loaded.processor.tokenizer.decode(answer_tokens, skip_special_tokens=True)
    return Answer(
        text.strip(),
        finish_reason="stop" if length is not None else "length",
        usage=Usage(prompt_tokens=encoded.tokens, completion_tokens=len(answer_tokens)),
        latency=seconds,
        version=version,
    )
