"""What intervals resample: the samples that show one picture are a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from sightline.pictures import BadPicture, look
from sightline.types import Picture, PictureFile, Probe, Sample


def cluster_of(sample: Sample, seen: Mapping[str, PictureFile | BadPicture]) -> str:
    """What intervals resample for a sample: what it says, else the digest of its first picture.

    A picture that cannot be read stands for itself by its name in the data folder, a sample without one for
    itself.
    """
    if sample.cluster is not None or not sample.pictures:
        return sample.cluster or sample.id
    picture = sample.pictures[0]
    file = seen.get(picture.path)
    if isinstance(file, PictureFile):
        return file.digest
    return f"file {os.path.relpath(picture.path, picture.root or os.path.dirname(picture.path))}"


def look_at(sample: Sample, probes: Iterable[Probe] = ()) -> Mapping[str, PictureFile | BadPicture]:
    """What is seen of the picture that stands for a sample, and of what a judge of these probes is shown,
    without a store to remember it."""
    seen: dict[str, PictureFile | BadPicture] = {}
    shown = (picture for probe in probes for picture in probe.evidence)
    for picture in dict.fromkeys([*standing_for(sample), *shown]):
        try:
            seen[picture.path] = look(picture, {})
        except BadPicture as error:
            seen[picture.path] = error
    return seen


def standing_for(sample: Sample) -> tuple[Picture, ...]:
    """The picture whose digest is the cluster of a sample that names none."""
    return sample.pictures[:1] if sample.cluster is None else ()
