"""Answers by likelihood: the choice of a request with the highest likelihood per token."""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import Any

from sightline.models.local.batches import collate
from sightline.models.local.encode import Encoded
from sightline.models.local.image_features import to_device
from sightline.models.local.load import Loaded
from sightline.models.local.prefix_cache import batch_inputs
from sightline.types import Answer, Usage


def score_choices(loaded: Loaded, batch: Sequence[Encoded], version: str) -> list[Answer]:
    """Choose for each request the choice with the highest mean log-likelihood of its tokens after the prompt.

    The prompts of a batch have one length, so there is no padding. Of equally likely choices the first one
    wins. `completion_tokens` are those of the choice.
    """
    import torch

    began = time.perf_counter()
    choices = [choice_tokens(loaded, encoded) for encoded in batch]
    with torch.inference_mode():
        likelihoods = (_score_encoder_decoder if loaded.is_seq2seq else _score_decoder)(
            loaded, batch, choices
        )
    seconds = (time.perf_counter() - began) / len(batch)
    answers = []
    for encoded, tokens, means in zip(batch, choices, likelihoods, strict=True):
        best = max(range(len(tokens)), key=means.__getitem__)
        answers.append(
            Answer(
                encoded.request.choices[best],
                finish_reason="likelihood",
                usage=Usage(prompt_tokens=encoded.tokens, completion_tokens=len(tokens[best])),
                latency=seconds,
                version=version,
            )
        )
    return answers


def choice_tokens(loaded: Loaded, encoded: Encoded) -> list[list[int]]:
    """Tokenize choices as they would follow the prompt, without special tokens."""

    def tokens(text: str) -> list[int]:
        token_ids: list[int] = loaded.processor.tokenizer(text, add_special_tokens=False)["input_ids"]
        return token_ids

    if loaded.is_seq2seq:
        return [tokens(choice) for choice in encoded.request.choices]
    before = encoded.prompt.text + encoded.prompt.ending
    prompt = tokens(before)
    tokenized = []
    for choice in encoded.request.choices:
        joined = tokens(before + encoded.prompt.lead + choice)
        # If the end of the prompt and the choice share a token, the choice is tokenized separately.
        follows = joined[: len(prompt)] == prompt and len(joined) > len(prompt)
        tokenized.append(joined[len(prompt) :] if follows else tokens(choice))
    return tokenized


def _score_decoder(
    loaded: Loaded, batch: Sequence[Encoded], choices: Sequence[Sequence[list[int]]]
) -> list[list[float]]:
    """Mean log-likelihoods; the prompt is read once, and all choices continue from its cache."""
    inputs = batch_inputs(loaded, batch)
    if loaded.prefix_vectors is not None:
        loaded.prefix_vectors.activate(inputs["attention_mask"])
    if "past_key_values" in inputs:
        # The prompts have one length, so no padding needs a mask.
        del inputs["attention_mask"]
        inputs["input_ids"] = inputs["input_ids"][:, inputs["past_key_values"].get_seq_length() :]
    output = loaded.model(**inputs, use_cache=True, logits_to_keep=1)
    first = output.logits[:, -1].float().log_softmax(-1)
    rows = [(row, tokens) for row, several in enumerate(choices) for tokens in several]
    sums = [float(first[row, tokens[0]]) if tokens else float("-inf") for row, tokens in rows]
    continued = [position for position, (_, tokens) in enumerate(rows) if len(tokens) > 1]
    if continued:
        cache = getattr(output, "past_key_values", None) or output.language_model_outputs.past_key_values
        cache.batch_select_indices(_tensor([rows[position][0] for position in continued], loaded))
        decoder = loaded.model if hasattr(output, "past_key_values") else loaded.model.language_model
        token_ids = _pad_right([rows[position][1][:-1] for position in continued], loaded)
        logits = decoder(input_ids=token_ids, past_key_values=cache, use_cache=True).logits
        for position, extra in zip(
            continued, _sums(logits, [rows[position][1][1:] for position in continued]), strict=True
        ):
            sums[position] += extra
    return _means(sums, choices)


def _score_encoder_decoder(
    loaded: Loaded, batch: Sequence[Encoded], choices: Sequence[Sequence[list[int]]]
) -> list[list[float]]:
    """Mean log-likelihoods of an encoder-decoder model, which reads the prompt for each choice."""
    rows = [(encoded, tokens) for encoded, several in zip(batch, choices, strict=True) for tokens in several]
    inputs = to_device(collate([encoded for encoded, _ in rows], loaded.pad), loaded)
    start = decoder_start(loaded.model)
    token_ids = _pad_right([[start, *tokens[:-1]] for _, tokens in rows], loaded)
    if loaded.prefix_vectors is not None:
        loaded.prefix_vectors.activate(inputs["attention_mask"])
    logits = loaded.model(**inputs, decoder_input_ids=token_ids).logits
    sums = _sums(logits, [tokens for _, tokens in rows])
    return _means(
        [total if tokens else float("-inf") for total, (_, tokens) in zip(sums, rows, strict=True)], choices
    )


def _sums(logits: Any, targets: Sequence[list[int]]) -> list[float]:
    """The log-likelihood of each row's tokens, which are at the start of the row."""
    log_likelihoods = logits.float().log_softmax(-1)
    return [
        sum(float(log_likelihoods[row, position, token]) for position, token in enumerate(tokens))
        for row, tokens in enumerate(targets)
    ]


def _means(sums: Sequence[float], choices: Sequence[Sequence[list[int]]]) -> list[list[float]]:
    remaining = iter(sums)
    return [[next(remaining) / max(1, len(tokens)) for tokens in several] for several in choices]


def _pad_right(rows: Sequence[list[int]], loaded: Loaded) -> Any:
    """Tokens as a tensor, shape (rows, longest row). Padding comes after everything that is read."""
    width = max(map(len, rows))
    return _tensor([row + [loaded.pad] * (width - len(row)) for row in rows], loaded)


def _tensor(numbers: Any, loaded: Loaded) -> Any:
    import torch

    return torch.tensor(numbers, dtype=torch.long, device=loaded.device)


def decoder_start(model: Any) -> int:
    """Find the token that starts the answers of an encoder-decoder model."""
    for part in (model, getattr(model, "language_model", None)):
        start = getattr(getattr(part, "generation_config", None), "decoder_start_token_id", None)
        if isinstance(start, int):
            return start
    return int(model.config.get_text_config().decoder_start_token_id)
