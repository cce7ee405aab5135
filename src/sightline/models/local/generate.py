"""The answers to a batch of requests, generated or chosen by likelihood, each as if it were alone."""

from __future__ import annotations

import inspect
import time
from collections.abc import Mapping, Sequence
from itertools import takewhile
from random import Random
from threading import Event
from typing import Any

from sightline.models.local.encode import (
    Encoded,
    collate,
    images_of,
    pad_tensors,
    share_images,
    takes_encoded,
    to_device,
    with_placeholders,
)
from sightline.models.local.load import Loaded, Sampling
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
        usage=_usage(encoded, len(answer_tokens)),
        latency=seconds,
        version=version,
    )


def _usage(encoded: Encoded, answer_tokens: int) -> Usage:
    return Usage(encoded.tokens, answer_tokens, image_tokens=encoded.image_tokens)


# -- Answers by likelihood: the choice of a request with the highest likelihood per token


def score_choices(loaded: Loaded, batch: Sequence[Encoded], version: str) -> list[Answer]:
    """Choose for each request the choice with the highest mean log-likelihood of its tokens after the prompt.

    The prompts of a batch have one length, so there is no padding. Of equally likely choices the first one
    wins; of a single choice, the answer is the number. `completion_tokens` are those of the choice.
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
                encoded.request.choices[best] if len(tokens) > 1 else repr(means[0]),
                finish_reason="likelihood",
                usage=_usage(encoded, len(tokens[best])),
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
    """Mean log-likelihoods; the prompt is read once, and all choices continue from copies of its cache."""
    inputs = batch_inputs(loaded, batch)
    if loaded.prefix_vectors is not None:
        loaded.prefix_vectors.activate(inputs["attention_mask"])
    if (prefix := inputs.get(cache_name(loaded.model))) is not None:
        # The prompts have one length, so no padding needs a mask.
        del inputs["attention_mask"]
        inputs["input_ids"] = inputs["input_ids"][:, prefix.get_seq_length() :]
    positions = _rotary_positions(loaded, inputs)
    if positions is not None:
        inputs["position_ids"] = positions
    output = loaded.model(**inputs, use_cache=True, logits_to_keep=1)
    first = output.logits[:, -1].float().log_softmax(-1)
    rows = [(row, tokens) for row, several in enumerate(choices) for tokens in several]
    sums = [float(first[row, tokens[0]]) if tokens else float("-inf") for row, tokens in rows]
    longer = [place for place, (_, tokens) in enumerate(rows) if len(tokens) > 1]
    parts = [rows[place] for place in longer]
    output, decoder = _decoding(output, loaded.model)
    name = cache_name(decoder)
    cache: Any = getattr(output, name, None)
    if not _can_be_copied(cache) or (positions is None and _keeps_positions(loaded)):
        for start in range(0, len(longer), len(batch)):
            part = slice(start, start + len(batch))
            for place, total in zip(longer[part], _sums_in_one_pass(loaded, batch, parts[part]), strict=True):
                sums[place] = total
    elif longer:
        row_of = _tensor([row for row, _ in parts], loaded)
        cache.batch_select_indices(row_of)
        token_ids = _pad_right([tokens[:-1] for _, tokens in parts], loaded)
        more: dict[str, Any] = {"input_ids": token_ids, name: cache}
        if positions is not None:
            after = positions.amax(dim=(0, 2))[row_of][:, None] + 1
            steps = _tensor(range(token_ids.shape[1]), loaded)
            more["position_ids"] = (after + steps).expand(len(positions), -1, -1)
        logits = decoder(**more, use_cache=True).logits
        for place, extra in zip(longer, _sums(logits, [tokens[1:] for _, tokens in parts]), strict=True):
            sums[place] += extra
    return _means(sums, choices)


def _sums_in_one_pass(
    loaded: Loaded, batch: Sequence[Encoded], rows: Sequence[tuple[int, list[int]]]
) -> list[float]:
    """The log-likelihoods of choices, each (row of its prompt, tokens), read with their prompts."""
    token_ids = _pad_right([tokens[:-1] for _, tokens in rows], loaded)
    width = token_ids.shape[1]
    prompts = collate([batch[row] for row, _ in rows], loaded.pad)
    inputs = to_device(with_placeholders(prompts, width, loaded.pad, left=False), loaded)
    inputs["input_ids"][:, -width:] = token_ids
    if loaded.prefix_vectors is not None:
        loaded.prefix_vectors.activate(inputs["attention_mask"])
    logits = loaded.model(**inputs, use_cache=False, logits_to_keep=width + 1).logits
    return _sums(logits[:, -width - 1 :], [tokens for _, tokens in rows])


def _decoding(output: Any, model: Any) -> tuple[Any, Any]:
    """The output that holds the cache, and the model that continues from it: BLIP models hold another one."""
    inner = getattr(output, "language_model_outputs", None)
    return (output, model) if inner is None else (inner, model.language_model)


def cache_name(model: Any) -> str:
    """The name of a model's cache in its inputs and outputs, which transformers 5.24 changed."""
    return "cache" if "cache" in inspect.signature(model.forward).parameters else "past_key_values"


def _can_be_copied(cache: Any) -> bool:
    """Whether a cache holds keys and values only: other states (linear attention, convolutions) are not
    copied with them, and not every model continues from them with several tokens.
    """
    from transformers.cache_utils import DynamicLayer, DynamicSlidingWindowLayer

    kinds = {type(layer) for layer in getattr(cache, "layers", ())}
    return bool(kinds) and kinds <= {DynamicLayer, DynamicSlidingWindowLayer}


def _keeps_positions(loaded: Loaded) -> bool:
    """Whether a model keeps the offset of its latest images (M-RoPE) for the next call, whoever makes it."""
    return hasattr(loaded.model.base_model, "rope_deltas")


def _rotary_positions(loaded: Loaded, inputs: Mapping[str, Any]) -> Any:
    """The positions of prompts, shape (axes, rows, tokens), for models that would keep an offset of them.

    None for other models, and for those that need more than grids of images for it.
    """
    if not _keeps_positions(loaded):
        return None
    ids = inputs["input_ids"]
    if not any(name.startswith(("pixel_", "image_", "mm_encoder_")) for name in inputs):
        return _tensor(range(ids.shape[1]), loaded).expand(3, len(ids), -1)
    compute = getattr(loaded.model.base_model, "get_rope_index", None)
    names = ("input_ids", "mm_token_type_ids", "image_grid_thw", "attention_mask")
    if compute is None or not {*names} <= {*inputs} & {*inspect.signature(compute).parameters}:
        return None
    return compute(**{name: inputs[name] for name in names})[0]


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


# -- The prefix cache of a batch: the common beginning of prompts, images included, is read once

MIN_PREFIX = 16
"""The shortest common beginning, in tokens, that is worth a separate forward pass."""


def batch_inputs(loaded: Loaded, batch: Sequence[Encoded]) -> dict[str, Any]:
    """Build the inputs of a batch, with shared parts computed once as far as the architecture allows.

    If prompts begin with the same tokens, a cache holds that beginning and `input_ids` are padded
    after it; otherwise shared images are encoded once. Prompts that begin with vectors of an adapter have no
    common beginning.
    """
    groups = _groups(batch)
    shares = loaded.prefix_vectors is None and len(groups) < len(batch)
    length = _common_length(loaded, batch, groups) if shares else 0
    if length < MIN_PREFIX:
        return share_images(loaded, batch, to_device(collate(batch, loaded.pad), loaded))
    return _read_once(loaded, batch, groups, length)


def _groups(batch: Sequence[Encoded]) -> list[list[int]]:
    """Positions of the requests with the same images."""
    groups: dict[tuple[str, ...], list[int]] = {}
    for position, encoded in enumerate(batch):
        groups.setdefault(encoded.image_keys, []).append(position)
    return list(groups.values())


def _common_length(loaded: Loaded, batch: Sequence[Encoded], groups: Sequence[list[int]]) -> int:
    """How many tokens each group has in common at its beginning, all its images included; otherwise 0."""
    if not _reads_in_order(loaded, batch[0]):
        return 0
    rows = [encoded.inputs["input_ids"][0].tolist() for encoded in batch]
    # At least one token remains for each request: a model needs one to continue from.
    length = min(len(row) - 1 for row in rows)
    length = min(
        length, *(_common_prefix([rows[position] for position in positions]) for positions in groups)
    )
    mark = getattr(loaded.model.config, "image_token_id", None)
    return 0 if mark is None or any(mark in row[length:] for row in rows) else length


def _common_prefix(rows: Sequence[list[int]]) -> int:
    return sum(1 for _ in takewhile(lambda tokens: len(set(tokens)) == 1, zip(*rows, strict=False)))


def _reads_in_order(loaded: Loaded, encoded: Encoded) -> bool:
    """Whether the cached state of a token depends only on earlier tokens, and the cache holds all tokens."""
    from transformers.cache_utils import DynamicCache, DynamicLayer

    names = {name for name in encoded.inputs if not name.startswith(("pixel_", "image_"))}
    if loaded.is_seq2seq or names != {"input_ids", "attention_mask"} or not takes_encoded(loaded.model):
        return False
    if _keeps_positions(loaded):
        return False
    cache = DynamicCache(config=loaded.model.config.get_text_config())
    return all(type(layer) is DynamicLayer for layer in cache.layers)


def _read_once(
    loaded: Loaded, batch: Sequence[Encoded], groups: Sequence[list[int]], length: int
) -> dict[str, Any]:
    """The inputs that continue after the first `length` tokens, which are read here, once for each group."""
    import torch

    firsts = [batch[positions[0]] for positions in groups]
    group_of = [0] * len(batch)
    for number, positions in enumerate(groups):
        for position in positions:
            group_of[position] = number
    ids = torch.cat([encoded.inputs["input_ids"][:, :length] for encoded in firsts])
    images = [images_of(encoded.inputs, encoded.tokens) for encoded in firsts]
    image_inputs = {name: torch.cat([each[name] for each in images]) for name in images[0]}
    inputs = to_device({"input_ids": ids, "attention_mask": torch.ones_like(ids), **image_inputs}, loaded)
    name = cache_name(loaded.model)
    cache = getattr(loaded.model(**inputs, use_cache=True, logits_to_keep=1), name)
    cache.batch_select_indices(torch.tensor(group_of, device=loaded.device))
    rests = [encoded.inputs["input_ids"][:, length:] for encoded in batch]
    token_ids = torch.cat((ids[group_of], torch.cat(pad_tensors(rests, loaded.pad))), dim=1)
    gaps = torch.cat(pad_tensors([torch.ones_like(rest) for rest in rests], 0))
    mask = torch.cat((torch.ones_like(token_ids[:, :length]), gaps), dim=1)
    return {**to_device({"input_ids": token_ids, "attention_mask": mask}, loaded), name: cache}
