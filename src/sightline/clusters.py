"""What intervals resample: the samples that show one image are a cluster."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from sightline.images import BadImage, inspect_image
from sightline.types import ImageFile, ImageRef, Probe, Sample


def cluster_of(sample: Sample, seen: Mapping[str, ImageFile | BadImage]) -> str:
    """What intervals resample for a sample: what it says, else the digest of its first image.

    An image that cannot be read stands for itself by its name in the data folder, a sample without one for
    itself.
    """
    if sample.cluster is not None or not sample.images:
        return sample.cluster or sample.id
    image = sample.images[0]
    file = seen.get(image.path)
    if isinstance(file, ImageFile):
        return file.digest
    return f"file {os.path.relpath(image.path, image.root or os.path.dirname(image.path))}"


def inspect_images(sample: Sample, probes: Iterable[Probe] = ()) -> Mapping[str, ImageFile | BadImage]:
    """What is seen of the image that stands for a sample, and of what a judge of these probes is shown,
    without a store to remember it."""
    seen: dict[str, ImageFile | BadImage] = {}
    shown = (image for probe in probes for image in probe.evidence)
    for image in dict.fromkeys([*cluster_images(sample), *shown]):
        try:
            seen[image.path] = inspect_image(image, {})
        except BadImage as error:
            seen[image.path] = error
    return seen


def cluster_images(sample: Sample) -> tuple[ImageRef, ...]:
    """The image whose digest is the cluster of a sample that names none."""
    return sample.images[:1] if sample.cluster is None else ()
