"""Clusters: the samples that show the same image, which are one independent unit of confidence intervals."""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping

from sightline.images import BadImage, inspect_image
from sightline.types import ImageFile, ImageRef, Probe, Sample


def cluster_of(sample: Sample, files: Mapping[str, ImageFile | BadImage]) -> str:
    """The cluster of a sample.

    Args:
        sample: The sample.
        files: Image path -> the inspected file, or the error that it raised.

    Returns:
        The cluster that the sample names, otherwise the digest of its first image. For an unreadable image it
        is its name in the data folder, for a sample without images the sample's id.
    """
    if sample.cluster is not None or not sample.images:
        return sample.cluster or sample.id
    image = sample.images[0]
    file = files.get(image.path)
    if isinstance(file, ImageFile):
        return file.digest
    return f"file {os.path.relpath(image.path, image.root or os.path.dirname(image.path))}"


def inspect_sample(sample: Sample, probes: Iterable[Probe] = ()) -> Mapping[str, ImageFile | BadImage]:
    """Inspect the image that names the cluster of a sample, and the images that judges see; uses no store.

    Args:
        sample: The sample.
        probes: Its probes, whose `evidence` lists the images for judges.

    Returns:
        Image path -> the inspected file, or the error that it raised.
    """
    files: dict[str, ImageFile | BadImage] = {}
    evidence = (image for probe in probes for image in probe.evidence)
    for image in dict.fromkeys([*cluster_images(sample), *evidence]):
        try:
            files[image.path] = inspect_image(image, {})
        except BadImage as error:
            files[image.path] = error
    return files


def cluster_images(sample: Sample) -> tuple[ImageRef, ...]:
    """The image whose digest is the cluster of a sample.

    Args:
        sample: The sample.

    Returns:
        The first image, as a tuple; empty if the sample names its cluster or has no image.
    """
    return sample.images[:1] if sample.cluster is None else ()
