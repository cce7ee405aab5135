"""Clusters: the samples that show the same image, which are one independent unit of confidence intervals."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from sightline.images import BadImage, inspect_image
from sightline.types import ImageFile, ImageRef, Probe, Sample


def cluster_of(sample: Sample, files: Mapping[str, ImageFile | BadImage]) -> str:
    if sample.cluster is not None or not sample.images:
        return sample.cluster or sample.id
    image = sample.images[0]
    file = files.get(image.path)
    if isinstance(file, ImageFile):
        return file.digest
    return f"file {os.path.relpath(image.path, image.root or os.path.dirname(image.path))}"


def inspect_sample(sample: Sample, probes: Iterable[Probe] = ()) -> Mapping[str, ImageFile | BadImage]:
    """Inspect the image that names the cluster of a sample, and the images that judges see; uses no store."""
    files: dict[str, ImageFile | BadImage] = {}
    evidence = (image for probe in probes for image in probe.evidence)
    for image in dict.fromkeys([*cluster_images(sample), *evidence]):
        try:
            files[image.path] = inspect_image(image, {})
        except BadImage as error:
            files[image.path] = error
    return files


def cluster_images(sample: Sample) -> tuple[ImageRef, ...]:
    return sample.images[:1] if sample.cluster is None else ()
