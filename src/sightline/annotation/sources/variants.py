"""Items of an original and its variant: do both mean the same (MM-R3, section 3.2)?"""

from __future__ import annotations

from pathlib import Path

from sightline.annotation.sources.images import FolderImages
from sightline.annotation.sources.request import MadeItems, SourceRequest
from sightline.annotation.types import Item
from sightline.builders.variant_pairs import VariantPair, draw_pairs, read_pairs
from sightline.errors import UserError

PAIRS = 100
"""The pairs that the paper drew, at most one of a group."""


def variant_pair_items(request: SourceRequest) -> MadeItems:
    """Make an item of each drawn pair of a built folder."""
    if len(request.sources) != 1:
        found = ", ".join(request.sources)
        raise UserError("one folder is needed", found=found, expected="a folder of `sightline build`")
    folder = Path(request.sources[0])
    pairs = draw_pairs(read_pairs(folder), request.count or PAIRS, request.seed)
    images = FolderImages(folder)
    images.add(path for pair in pairs if pair.kind == "image" for path in _paths(pair))
    items = [_item(pair, images) for pair in pairs]
    return MadeItems(items, "", images.notes(), str(folder.resolve()), sampled=True)


def _item(pair: VariantPair, images: FolderImages) -> Item:
    is_text = pair.kind == "text"
    return Item(
        0,
        texts={"original": (pair.first,), "variant": (pair.second,)} if is_text else {},
        images={}
        if is_text
        else dict(zip(("first", "second"), map(images.found, _split(pair)), strict=True)),
        cluster=pair.cluster,
        stratum=pair.variant,
        group=pair.group,
        targets=pair.targets,
        variant=pair.variant,
        hidden={"sample": pair.group},
    )


def _split(pair: VariantPair) -> tuple[list[str], list[str]]:
    return pair.first.split(", "), pair.second.split(", ")


def _paths(pair: VariantPair) -> list[str]:
    return [str(Path(path).absolute()) for side in _split(pair) for path in side]
