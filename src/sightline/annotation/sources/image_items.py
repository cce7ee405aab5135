"""Items of images: those of a folder, and those whose caption is checked."""

from __future__ import annotations

import os
from collections import defaultdict
from pathlib import Path

from msgspec.structs import replace

from sightline.annotation.records.kinds import proposals
from sightline.annotation.sources.images import FolderImages
from sightline.annotation.sources.probes import label_of, read_probes, shown_images
from sightline.annotation.sources.request import MadeItems, SourceRequest
from sightline.annotation.types import Item
from sightline.benchmarks.captions import read_captions
from sightline.builders.sources import folder_sources
from sightline.errors import UserError
from sightline.types import Probe, Sample


def image_items(request: SourceRequest) -> MadeItems:
    """Make an item of each image of a folder. Authors see the records that it holds already, to correct them."""
    if len(request.sources) != 1 or not Path(request.sources[0]).is_dir():
        raise UserError(
            "one folder of images is needed",
            found=", ".join(request.sources),
            expected="annotate new TASK FOLDER",
        )
    folder = Path(request.sources[0])
    paths = [os.path.relpath(source.image, folder) for source in folder_sources(folder)]
    images = FolderImages(folder)
    images.add(paths)
    known = proposals(request.task.records, folder, request.split)
    items = [
        Item(
            0,
            images={"image": found},
            cluster=found[0].digest,
            proposal=known.get(path, {}),
            hidden={"image": path},
        )
        for path in paths
        if (found := images.found([path]))
    ]
    return MadeItems(items, "", images.notes(), str(folder.resolve()))


def caption_items(request: SourceRequest) -> MadeItems:
    """Make an item of each image that has a caption, with all questions and contexts about it (CODIS 5.1)."""
    if len(request.sources) != 2:
        found = ", ".join(request.sources)
        raise UserError(
            "a benchmark and a file of captions are needed", found=found, expected="codis captions.json"
        )
    captions = read_captions(request.sources[1], True)
    asked = read_probes(replace(request, sources=request.sources[:1]))
    folder = request.folder("the images of the captions")
    probes: dict[str, list[tuple[Sample, Probe]]] = defaultdict(list)
    for sample, probe in asked.probes:
        for ref in shown_images(sample, probe)[:1]:
            probes[ref.path].append((sample, probe))
    images = FolderImages(folder)
    images.add(probes)
    items = [
        Item(
            0,
            texts={
                "caption": (captions[name],),
                "question": tuple(dict.fromkeys(probe.question for _, probe in about)),
                "context": tuple(dict.fromkeys(probe.context for _, probe in about if probe.context)),
            },
            images={"image": images.found([path])},
            cluster=path,
            stratum=label_of(about[0][1].labels, request.by),
            hidden={"image": name, "caption": captions[name]},
        )
        for path, about in probes.items()
        if (name := os.path.basename(path)) in captions
    ]
    if not items:
        raise UserError(
            "no caption is of an image of the benchmark",
            file=request.sources[1],
            found=f"{len(captions):,} captions",
        )
    return MadeItems(items, asked.name, images.notes(), str(folder.resolve()))
