"""The processor of a checkpoint (transformers' name): converts images and text to the model's inputs."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from sightline.decoding import UNDECODABLE
from sightline.errors import UserError
from sightline.models.local.args import LocalArgs
from sightline.models.local.checkpoint import INSTALL, PROCESSORS, Checkpoint
from sightline.models.transformers_loading import without_progress_bar


def load_processor(checkpoint: Checkpoint, args: LocalArgs) -> Any:
    library: Any = import_module("transformers")
    folder = checkpoint.folder
    options = {"local_files_only": True, "trust_remote_code": args.trust_remote_code}
    try:
        with silent():
            kind = _without_video(library, folder) or library.AutoProcessor
            processor = kind.from_pretrained(str(folder), **options)
    except ImportError as error:
        raise UserError(
            "its processor needs a package that is not installed",
            file=folder,
            found=first_line(error),
            expected=f"{INSTALL}, and that package beside it, such as `pip install torchvision`",
        ) from None
    # The libraries raise many types of errors for a folder that they cannot load.
    except Exception as error:
        raise UserError(
            "its processor cannot be loaded",
            file=folder,
            found=f"{type(error).__name__}: {first_line(error)}",
            expected="the whole folder of a transformers model, with processor and tokenizer",
        ) from error
    if checkpoint.takes_images and not hasattr(processor, "image_processor"):
        raise UserError(
            "its processor does not accept images",
            file=folder,
            found=type(processor).__name__,
            expected="the files of the processor next to those of the tokenizer",
        )
    if checkpoint.chat_template is not None and args.template != "plain":
        _check_template(folder, processor)
    return processor


def _check_template(folder: Path, processor: Any) -> None:
    """Raise UserError if the chat template has a syntax error; other errors appear with a conversation."""
    from jinja2 import TemplateSyntaxError

    hello = [{"role": "user", "content": [{"type": "text", "text": "Hello"}]}]
    try:
        processor.apply_chat_template(hello, add_generation_prompt=True, tokenize=False)
    except TemplateSyntaxError as error:
        raise UserError(
            f"its chat template is broken at line {error.lineno}",
            file=folder,
            found=error.message,
            expected="a template that can be read, or --model-arg template=plain",
        ) from None
    # A template is a program: it may refuse a conversation without an image.
    except Exception:
        return


def _without_video(library: Any, folder: Path) -> Any:
    """The processor's class without its video part if that cannot be loaded, otherwise None.

    The video part needs torchvision, which images do not.
    """
    kind = getattr(library, _class_name(folder), None)
    if kind is None or find_spec("torchvision") is not None:
        return None
    if set(kind.get_attributes()) != {"image_processor", "tokenizer", "video_processor"}:
        return None
    parts = classmethod(lambda _: ["image_processor", "tokenizer"])
    return type(kind.__name__, (kind,), {"get_attributes": parts})


def _class_name(folder: Path) -> str:
    for name in PROCESSORS:
        try:
            class_name = json.loads((folder / name).read_bytes()).get("processor_class")
        except (OSError, AttributeError, *UNDECODABLE):
            continue
        if isinstance(class_name, str):
            return class_name
    return ""


def first_line(error: BaseException) -> str:
    """Shorten an error message: libraries add pages of advice."""
    return next((line.strip() for line in str(error).splitlines() if line.strip()), type(error).__name__)


@contextmanager
def silent() -> Iterator[None]:
    """Disable the progress bar and the warnings of transformers inside the block."""
    logging = import_module("transformers.utils.logging")
    level = logging.get_verbosity()
    logging.set_verbosity_error()
    try:
        with without_progress_bar():
            yield
    finally:
        logging.set_verbosity(level)
