"""A piece of work on a node: checks of the node, the image, the call."""

from __future__ import annotations

import os
import pickle
from collections.abc import Callable, Mapping
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from msgspec import Struct

from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.digests import file_digest
from sightline.replicas.on_ray.node_images import image_on_node

PACKAGES = ("sightline", "pillow", "numpy", "torch", "onnxruntime", "rapidocr", "ImageHash")
"""The packages whose versions decide the bytes of a result."""


class Work(Struct, frozen=True):
    """A call of a function with an item.

    Attributes:
        image: Path and SHA-256 of the item's image; None if it has none.
    """

    function: Callable[[Any], Any]
    item: Any
    image: tuple[str, str] | None
    moved: Callable[[Any, str], Any]
    restored: Callable[[Any, str, str], Any]
    files: Mapping[str, str]
    folder: str
    versions: Mapping[str, str]


@cache
def installed_versions(packages: tuple[str, ...] = PACKAGES) -> dict[str, str]:
    """The versions of the packages that decide the bytes of a result."""
    return {name: found for name in packages if (found := _version(name))}


def carry_out(payload: bytes, content: bytes | None, node: str) -> tuple[str, str, Any]:
    """Do a piece of work.

    Args:
        content: The bytes of the image, None if this machine may share the file.
    """
    try:
        return _carried_out(pickle.loads(payload), content, node)
    except UserError as error:
        return "wrong", node, str(error)
    except EnvironmentFailedError as error:
        return "failed", node, str(error)
    # Any error must reach the driver as text: its type may need a package that the driver lacks.
    except Exception as error:
        return "error", node, f"{type(error).__name__}: {error}"


def enter(folder: str) -> None:
    """Make a folder the working folder, if this machine has it."""
    if os.path.isdir(folder):
        os.chdir(folder)


def _carried_out(work: Work, content: bytes | None, node: str) -> tuple[str, str, Any]:
    installed = installed_versions(tuple(work.versions))
    for name, expected in work.versions.items():
        if (found := installed.get(name)) != expected:
            raise UserError(
                f"another version of {name} gives other results", found=found or "none", expected=expected
            )
    enter(work.folder)
    for file, digest in work.files.items():
        _check_shared(file, digest)
    if work.image is None:
        return "done", node, work.function(work.item)
    path, digest = work.image
    with image_on_node(path, digest, content) as local:
        if local is None:
            return "absent", node, None
        result = work.function(work.item if local == path else work.moved(work.item, local))
        return "done", node, result if local == path else work.restored(result, path, local)


@cache
def _check_shared(file: str, digest: str) -> None:
    try:
        same = file_digest(file) == digest
    except OSError:
        same = False
    if not same:
        raise UserError("the file is absent or differs", file=file, expected="the same file on each node")


def _version(name: str) -> str:
    try:
        return version(name)
    except PackageNotFoundError:
        return ""
