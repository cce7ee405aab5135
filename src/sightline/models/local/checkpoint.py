"""A model's folder, read without loading the model: architecture, weights, identity."""

from __future__ import annotations

import contextlib
import json
import re
from pathlib import Path
from typing import Any

from msgspec import Struct

from sightline.decoding import UNDECODABLE, fault
from sightline.errors import UserError
from sightline.images import MAX_BYTES, MEDIA_TYPES, ImageLimits
from sightline.models.base import Capabilities
from sightline.models.local.args import LocalArgs
from sightline.models.local.weight_headers import parameter_count
from sightline.models.model_files import answer_files, digest_of_files, folder_of, no_folder

INSTALL = "pip install 'sightline[local]'"
PROCESSORS = ("processor_config.json", "preprocessor_config.json")
_VISION = ("vision_config", "image_token_id", "image_token_index")
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_ONE_IMAGE = ("blip", "blip-2", "git", "instructblip", "kosmos-2", "pix2struct", "udop")
_DOWNLOADED = ["*.json", "*.safetensors", "*.jinja", "*.model", "*.txt", "*.tiktoken", "*.py", "*.bin"]
_IGNORED = ["*/*"]
_IGNORED_WITH_SAFETENSORS = [*_IGNORED, "*.bin"]
"""What of a repository is downloaded, and what of that is not: folders, and weights that are there twice."""
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


class Checkpoint(Struct, frozen=True):
    """A folder that holds a model.

    Attributes:
        chat_template: The processor's chat template, None without one.
    """

    folder: Path
    kind: str
    architecture: str
    dtype: str
    weights: tuple[Path, ...]
    parameters: int
    chat_template: str | None
    takes_images: bool

    @property
    def capabilities(self) -> Capabilities:
        """What the model accepts, as far as its files say."""
        return Capabilities(
            own_process=True,
            own_sampling=True,
            images=self.takes_images,
            several_images=self.takes_images and self.kind not in _ONE_IMAGE,
            system_role=self.chat_template is not None and "system" in self.chat_template,
            likelihood=True,
            # Pillow reads all formats, and nothing is sent over a network.
            limits=ImageLimits(formats=tuple(MEDIA_TYPES), max_bytes=MAX_BYTES),
        )

    def identity(self) -> str:
        """Compute the digest of every file that affects the answers; the folder's name does not matter."""
        digest = digest_of_files(self.folder, {*answer_files(self.folder), *self.weights})
        return f"{self.architecture} sha256:{digest} {self.dtype}"


def find_folder(name: str, args: LocalArgs, *, fetch: bool) -> Path:
    """Find a model on this machine: a folder, or a snapshot of a model of the Hugging Face Hub."""
    folder = folder_of(name)
    if folder is None:
        return _snapshot(_hub_name(name), args.revision, fetch)
    if args.revision is not None:
        raise UserError("--model-arg revision: a folder contains only one revision", file=folder)
    return folder


def find_config(name: str) -> Path:
    """Find the folder with the config.json of a model; from the Hugging Face Hub only this file is
    downloaded.
    """
    folder = folder_of(name)
    if folder is not None:
        return folder
    try:
        from huggingface_hub import hf_hub_download
    except ImportError:
        raise UserError("a local model needs transformers", expected=INSTALL) from None
    repository = _hub_name(name)
    try:
        return Path(hf_hub_download(repository, "config.json")).parent
    # As in `_snapshot`.
    except Exception as error:
        raise _download_failed(name, None, error) from error


def _hub_name(name: str) -> str:
    """The name, if it can be one of the Hub. Raises UserError if it cannot."""
    if not _HUB_NAME.fullmatch(name) or name.startswith("."):
        raise no_folder(name)
    return name


def _snapshot(name: str, revision: str | None, fetch: bool) -> Path:
    try:
        from huggingface_hub import snapshot_download
        from huggingface_hub.errors import HFValidationError, LocalEntryNotFoundError
    except ImportError:
        raise UserError("a local model needs transformers", expected=INSTALL) from None
    selection: dict[str, Any] = {"revision": revision, "allow_patterns": _DOWNLOADED}
    # Many repositories hold their weights in both formats; older ones only without safetensors.
    for ignored in (_IGNORED_WITH_SAFETENSORS, _IGNORED):
        with contextlib.suppress(HFValidationError, LocalEntryNotFoundError):
            snapshot = Path(
                snapshot_download(name, **selection, ignore_patterns=ignored, local_files_only=True)
            )
            if _is_complete(snapshot):
                return snapshot
    if not fetch:
        raise UserError(
            f"the model '{name}' is not on this machine yet", expected=f"`hf download {name}` first"
        )
    try:
        ignored = _IGNORED_WITH_SAFETENSORS if _has_safetensors(name, revision) else _IGNORED
        return Path(snapshot_download(name, **selection, ignore_patterns=ignored))
    # Without a network the HTTP library raises its own errors, which differ by version.
    except Exception as error:
        raise _download_failed(name, revision, error) from error


def _download_failed(name: str, revision: str | None, error: Exception) -> UserError:
    at = f" at {revision}" if revision else ""
    return UserError(
        f"the model '{name}'{at} cannot be downloaded from the Hugging Face Hub",
        found=f"{type(error).__name__}: {error}",
        expected="the name of a model there, access to it, or the path of a folder",
    )


def _is_complete(folder: Path) -> bool:
    """Whether a snapshot holds a model: other programs leave snapshots with a config only."""
    try:
        read_checkpoint(folder, LocalArgs())
    except UserError:
        return False
    return True


def _has_safetensors(name: str, revision: str | None) -> bool:
    from huggingface_hub import HfApi

    files = HfApi().list_repo_files(name, revision=revision)
    return any(file.endswith(".safetensors") and "/" not in file for file in files)


def read_checkpoint(folder: Path, args: LocalArgs) -> Checkpoint:
    """Read what a folder says about its model."""
    config = _json(folder, "config.json", "the config of a transformers model")
    kind = config.get("model_type")
    if not isinstance(kind, str):
        raise UserError("does not say its model_type", file=folder / "config.json")
    has_processor = any((folder / name).is_file() for name in PROCESSORS)
    has_vision = any(name in config for name in _VISION)
    if has_vision and not has_processor:
        raise UserError(
            "lacks its processor", file=folder, expected=f"{' or '.join(PROCESSORS)}, and its tokenizer"
        )
    architectures = config.get("architectures") or [kind]
    weights = _weights(folder)
    return Checkpoint(
        folder=folder,
        kind=kind,
        architecture=str(architectures[0]),
        dtype=args.dtype if args.dtype != "auto" else _own_dtype(config),
        weights=weights,
        parameters=sum(parameter_count(folder / name) for name in weights),
        chat_template=_chat_template(folder),
        takes_images=has_vision or has_processor,
    )


def _json(folder: Path, name: str, what: str) -> dict[str, Any]:
    try:
        content = json.loads((folder / name).read_bytes())
    except FileNotFoundError:
        raise UserError(f"lacks {name}", file=folder, expected=what) from None
    except (OSError, *UNDECODABLE) as error:
        raise UserError(f"cannot be read ({fault(error)})", file=folder / name, expected=what) from None
    if not isinstance(content, dict):
        raise UserError("contains no JSON object", file=folder / name, expected=what)
    return content


def _own_dtype(config: dict[str, Any]) -> str:
    """The number type in which the weights were published, as far as the config says."""
    inner = config.get("text_config")
    for part in (config, inner if isinstance(inner, dict) else {}):
        dtype = part.get("dtype") or part.get("torch_dtype")
        if dtype in ("float32", "bfloat16", "float16"):
            return str(dtype)
    return "float32"


def _weights(folder: Path) -> tuple[Path, ...]:
    """The files of the weights, relative to the folder; safetensors if there are both kinds."""
    for name in _WEIGHTS:
        if (folder / name).is_file():
            return (Path(name),)
        index = f"{name}.index.json"
        if (folder / index).is_file():
            shards = sorted(set(_json(folder, index, "an index of weights").get("weight_map", {}).values()))
            for shard in shards:
                if not (folder / shard).is_file():
                    raise UserError(f"lacks {shard}, a part of its weights", file=folder)
            return tuple(map(Path, shards))
    raise UserError("lacks its weights", file=folder, expected=f"{_WEIGHTS[0]}, or its parts and their index")


def _chat_template(folder: Path) -> str | None:
    """The processor's chat template, from any of the files that may hold it."""
    if (folder / "chat_template.jinja").is_file():
        return (folder / "chat_template.jinja").read_text("utf-8")
    for name in ("chat_template.json", "processor_config.json"):
        if (folder / name).is_file():
            template = _json(folder, name, "the settings of a processor").get("chat_template")
            if isinstance(template, str):
                return template
    return None
