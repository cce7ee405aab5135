"""The registry of makers of items, by the kind that a task declares."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import cast

from sightline.annotation.sources.request import MadeItems, SourceRequest
from sightline.annotation.task import ItemKind

MAKERS: dict[ItemKind, str] = {
    "answers": "sightline.annotation.sources.answers:answer_items",
    "wrong-answers": "sightline.annotation.sources.answers:wrong_answer_items",
    "answer-pairs": "sightline.annotation.sources.answers:answer_pair_items",
    "probes": "sightline.annotation.sources.probes:probe_items",
    "variant-pairs": "sightline.annotation.sources.variants:variant_pair_items",
    "images": "sightline.annotation.sources.image_items:image_items",
    "captions": "sightline.annotation.sources.image_items:caption_items",
    "table-lines": "sightline.annotation.sources.table_items:table_items",
    "drafts": "sightline.annotation.sources.draft_items:draft_items",
}


def make_items(request: SourceRequest) -> MadeItems:
    """Make the items of a new project. They have no numbers yet."""
    module, _, name = MAKERS[request.task.items].partition(":")
    maker = cast(Callable[[SourceRequest], MadeItems], getattr(importlib.import_module(module), name))
    return maker(request)
