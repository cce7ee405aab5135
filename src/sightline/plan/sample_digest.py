"""The digest of a sample: `compare` pairs two runs only on samples with equal data."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import product
from typing import TYPE_CHECKING, Any

from sightline.formats.digests import json_digest
from sightline.types import ImageFile, Sample

if TYPE_CHECKING:  # `compare --help` loads this module
    from sightline.benchmarks.base import Benchmark
    from sightline.images import BadImage

_BETWEEN = "-"
"""Stands between the digest of the texts and that of the images."""

_OR = "/"
"""Stands between the digest of a sample and that of its lines in the order of their file."""


def sample_digest(
    benchmark: Benchmark, sample: Sample, files: Mapping[str, ImageFile | BadImage] | None = None
) -> str:
    ordered = benchmark.in_order(sample)
    forms = [ordered] if ordered is sample else [ordered, sample]
    return _OR.join(_digest_in_order(benchmark, form, files) for form in forms)


def with_images_of(digest: str, recorded: str) -> str:
    """Complete the digest of a sample whose images are unknown by one that a file of answers records.

    Args:
        recorded: The recorded digest; '' if there is none.

    Returns:
        The digest, with the recorded images if it has none itself.
    """
    if _BETWEEN in digest:
        return digest
    forms, known = digest.split(_OR), recorded.split(_OR)
    images = ["".join(form.partition(_BETWEEN)[1:]) for form in known]
    if len(forms) > len(known):  # an earlier version recorded the order of the file only
        images = ["", *images]
    return _OR.join(form + image for form, image in zip(forms, images, strict=False))


def may_be_equal(first: str, second: str) -> bool:
    """Whether two samples have equal texts and images, as far as both digests say.

    >>> may_be_equal("a-1", "a"), may_be_equal("a-1", "a-2"), may_be_equal("", "a-2")
    (True, False, True)
    >>> may_be_equal("a-1/b-2", "b-2"), may_be_equal("a-1/b-2", "a-1/c-3"), may_be_equal("a/b", "c/d")
    (True, True, False)
    """
    return any(_form_may_be_equal(*forms) for forms in product(first.split(_OR), second.split(_OR)))


def hold_images(first: str, second: str) -> bool:
    """Whether two samples have images that both digests hold, so that no other sign of them is needed."""
    return _BETWEEN in first and _BETWEEN in second


def _digest(content: Any) -> str:
    return json_digest(content)[:16]


def _digest_in_order(
    benchmark: Benchmark, sample: Sample, files: Mapping[str, ImageFile | BadImage] | None
) -> str:
    texts = _digest([sample.id, benchmark.sample_content(sample)])
    if not sample.images:
        return texts
    images = [(files or {}).get(image.path) for image in sample.images]
    contents = [file.digest for file in images if isinstance(file, ImageFile)]
    return texts + _BETWEEN + _digest(contents) if len(contents) == len(images) else texts


def _form_may_be_equal(first: str, second: str) -> bool:
    parts = zip(first.split(_BETWEEN), second.split(_BETWEEN), strict=False)
    return all(one == other or not (one and other) for one, other in parts)
