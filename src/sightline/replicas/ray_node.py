"""Work on a node of Ray: checks of the node, the served model, calls and their images."""

from __future__ import annotations

import asyncio
import os
import pickle
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import AsyncExitStack, ExitStack, contextmanager
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from sightline import __version__
from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.files import file_digest, file_digest_or_error, writing
from sightline.images import check_content
from sightline.models.registry import ModelOptions, resolve
from sightline.types import ImageFile

PACKAGES = ("sightline", "pillow", "numpy", "torch", "onnxruntime", "rapidocr", "ImageHash")
"""The packages whose versions decide the bytes of a result."""


class Work(Struct, frozen=True):
    """A call of a function with an item; `image` is the path and SHA-256 of its image, or None."""

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
    """Do a piece of work; `content` is None if this machine may share the image's file."""
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


# -- A model on a node of Ray: opened once, and served to the driver by HTTP as on other places


class ModelCopy(Struct, frozen=True):
    """The model that a node opens, and the key of its server."""

    spec: str
    args: Mapping[str, Any]
    identity: str
    folder: str
    key: str
    version: str = __version__


class ServedCopy(Struct, frozen=True):
    """An open model and its server, which end with the process."""

    address: str
    failed: asyncio.Future[None]
    opened: AsyncExitStack

    async def until_failed(self) -> tuple[str, str]:
        """Wait until the model can answer no request: 'wrong' or 'failed', and the reason."""
        try:
            await self.failed
        except UserError as error:
            return "wrong", str(error)
        except EnvironmentFailedError as error:
            return "failed", str(error)
        raise AssertionError


async def serve_model(payload: bytes, host: str) -> tuple[str, Any]:
    """Open a model and serve it: 'done' and the ServedCopy, or 'wrong' or 'failed' and the reason."""
    try:
        return "done", await _served(pickle.loads(payload), host)
    except UserError as error:
        return "wrong", str(error)
    except EnvironmentFailedError as error:
        return "failed", str(error)


async def _served(copy: ModelCopy, host: str) -> ServedCopy:
    # Tasks of builders need no server.
    from sightline.replicas.worker import Serving, serving_worker

    if copy.version != __version__:
        raise UserError("another version of Sightline", found=__version__, expected=copy.version)
    enter(copy.folder)
    [model] = resolve(copy.spec, ModelOptions(args=copy.args))
    if model.identity != copy.identity:
        raise UserError(f"{copy.spec} is another model there", found=model.identity, expected=copy.identity)
    opened = AsyncExitStack()
    serving = serving_worker(model, Serving(host=host, port=0, key=copy.key))
    address, failed = await opened.enter_async_context(serving)
    return ServedCopy(address, failed, opened)


# -- Images on a node: the shared file where there is one, otherwise a copy of the bytes that were sent


@contextmanager
def image_on_node(path: str, digest: str, content: bytes | None) -> Iterator[str | None]:
    """Find an image on this machine.

    Args:
        content: Its bytes, None if the driver did not send them.

    Yields:
        The path if the file there has this content, otherwise that of a copy, which is removed afterwards;
        None without content.
    """
    if file_digest_or_error(path) == digest:
        yield path
    elif content is None:
        yield None
    else:
        check_content(path, content, digest)
        with ExitStack() as stack:
            with writing("the folder of temporary files (TMPDIR)"):
                folder = stack.enter_context(
                    tempfile.TemporaryDirectory(prefix="sightline-", ignore_cleanup_errors=True)
                )
                copy = Path(folder, f"image{os.path.splitext(path)[1]}")
                with writing(copy):
                    copy.write_bytes(content)
            yield str(copy)


def at_path(image: ImageFile, path: str) -> ImageFile:
    status = os.stat(path)
    return replace(image, path=path, stamp=(status.st_size, status.st_mtime_ns))
