"""The prefix cache of a batch: the common beginning of prompts, images included, is read once."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import takewhile
from typing import Any

from sightline.models.local.batches import collate
from sightline.models.local.encode import Encoded
from sightline.models.local.image_features import share_images, takes_encoded, to_device
from sightline.models.local.input_tensors import images_of, pad_tensors
from sightline.models.local.load import Loaded

MIN_PREFIX = 16
"""The shortest common beginning, in tokens, that is worth a separate forward pass."""


def batch_inputs(loaded: Loaded, batch: Sequence[Encoded]) -> dict[str, Any]:
    """Build the inputs of a batch, with shared parts computed once as far as the architecture allows.

    If prompts begin with the same tokens, `past_key_values` holds that beginning and `input_ids` are padded
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
    cache = loaded.model(**inputs, use_cache=True, logits_to_keep=1).past_key_values
    cache.batch_select_indices(torch.tensor(group_of, device=loaded.device))
    rests = [encoded.inputs["input_ids"][:, length:] for encoded in batch]
    token_ids = torch.cat((ids[group_of], torch.cat(pad_tensors(rests, loaded.pad))), dim=1)
    gaps = torch.cat(pad_tensors([torch.ones_like(rest) for rest in rests], 0))
    mask = torch.cat((torch.ones_like(token_ids[:, :length]), gaps), dim=1)
    return {**to_device({"input_ids": token_ids, "attention_mask": mask}, loaded), "past_key_values": cache}
