"""Reads the folder of a model, and loads model and processor or says in one message why that fails."""

from __future__ import annotations

import contextlib
import json
import math
import re
from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from importlib import import_module
from importlib.metadata import PackageNotFoundError, version
from importlib.util import find_spec
from pathlib import Path
from typing import Annotated, Any, Literal, Protocol

from msgspec import Meta, Struct

from sightline.errors import UserError, did_you_mean, needs_extra, unknown_name
from sightline.images import MAX_BYTES, MEDIA_TYPES, ImageLimits
from sightline.models.base import Capabilities, read_values
from sightline.models.model_files import (
    answer_files,
    digest_of_files,
    folder_of,
    no_folder,
    without_progress_bar,
)
from sightline.text import UNDECODABLE, fault, print_note

OWN_BYTES = 2**30
"""Memory of a device that this process and its driver may use before a model is loaded."""

_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


class PrefixVectors(Protocol):
    """Vectors that an adapter puts before the embeddings of each prompt; `length` is how many."""

    length: int

    def activate(self, prompt_mask: Any) -> None:
        """Put the vectors into the next call of the model.

        `prompt_mask`: the mask of the prompts, shape (rows, tokens); the first `length` tokens of a row are
        reserved.
        """


class Loaded(Struct, frozen=True):
    """A model on its device.

    Attributes:
        positions: Largest number of tokens, prompt and answer together; None for any number.
        prefix_vectors: Vectors of an adapter before each prompt, None for none.
    """

    kind: str
    model: Any
    processor: Any
    device: Any
    positions: int | None
    ends: frozenset[int]
    pad: int
    is_seq2seq: bool
    prefix_vectors: PrefixVectors | None = None


def load(checkpoint: Checkpoint, args: LocalArgs) -> Loaded:
    try:
        import torch

        library: Any = import_module("transformers")
    except ImportError:
        raise UserError("a local model needs torch and transformers", expected=INSTALL) from None
    _check_kind(checkpoint, args, library)
    device = _device(args.device, torch)
    _check_dtype(checkpoint.dtype, device, torch)
    processor = load_processor(checkpoint, args)
    _check_memory(checkpoint, device, torch)
    if device.type == "cuda":
        free, total = torch.cuda.mem_get_info(device)
        if shared := shared_device(str(device), free, total, torch.cuda.memory_reserved(device)):
            print_note(f"{checkpoint.folder}: {shared}")
    model = _model(checkpoint, args, getattr(torch, checkpoint.dtype), device)
    tokenizer = processor.tokenizer
    ends = _ends(model, tokenizer)
    pad = tokenizer.pad_token_id
    return Loaded(
        kind=checkpoint.kind,
        model=model,
        processor=processor,
        device=device,
        positions=_positions(model.config),
        ends=frozenset(ends),
        pad=pad if pad is not None else min(ends, default=0),
        is_seq2seq=bool(_language_model(model).config.is_encoder_decoder),
    )


def _check_kind(checkpoint: Checkpoint, args: LocalArgs, library: Any) -> None:
    """Raise UserError if transformers does not know the architecture, and the folder's code may not run."""
    if checkpoint.kind not in library.CONFIG_MAPPING and not args.trust_remote_code:
        near = did_you_mean(checkpoint.kind, library.CONFIG_MAPPING)
        raise UserError(
            f"transformers {library.__version__} does not support the model_type '{checkpoint.kind}'{near}",
            file=checkpoint.folder / "config.json",
            expected="a newer transformers, or --model-arg trust_remote_code=true where the folder brings"
            " code of its own",
        )


def _device(requested: str, torch: Any) -> Any:
    has_cuda, has_mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    if requested == "auto":
        return torch.device("cuda" if has_cuda else "mps" if has_mps else "cpu")
    device = torch.device(requested)
    if device.type == "cuda" and not has_cuda:
        raise UserError(
            f"--model-arg device={requested}: torch finds no CUDA device on this machine",
            expected="device=cpu, or a torch with CUDA and a driver that fits it",
        )
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(
            f"--model-arg device={requested}: there are {torch.cuda.device_count()} CUDA devices,"
            " counted from 0"
        )
    if device.type == "mps" and not has_mps:
        raise UserError(
            "--model-arg device=mps: torch finds no Apple GPU on this machine", expected="device=cpu"
        )
    return device


def _check_dtype(dtype: str, device: Any, torch: Any) -> None:
    try:
        one = torch.ones(2, 2, dtype=getattr(torch, dtype), device=device)
        unusable = not bool(torch.isfinite(one @ one).all())
    except (RuntimeError, TypeError):
        unusable = True
    if unusable or (dtype == "bfloat16" and device.type == "cuda" and not torch.cuda.is_bf16_supported()):
        raise UserError(
            f"--model-arg dtype: {device} does not support {dtype}",
            expected="dtype=float32, or another device",
        )


def _model(checkpoint: Checkpoint, args: LocalArgs, dtype: Any, device: Any) -> Any:
    library: Any = import_module("transformers")
    try:
        with silent():
            model, report = library.AutoModelForImageTextToText.from_pretrained(
                str(checkpoint.folder),
                local_files_only=True,
                dtype=dtype,
                attn_implementation=args.attention,
                trust_remote_code=args.trust_remote_code,
                output_loading_info=True,
                ignore_mismatched_sizes=True,  # Refused below, by name and shape.
            )
        model = model.to(device).eval()
    except Exception as error:
        raise _cannot_load(checkpoint, args, device, error) from error
    _check_weights(checkpoint, report)
    _forget_sampling(model)
    return model


def _cannot_load(checkpoint: Checkpoint, args: LocalArgs, device: Any, error: Exception) -> UserError:
    if is_out_of_memory(error):
        return too_large(checkpoint, f"{device} has too little memory")
    why = first_line(error)
    if isinstance(error, ImportError) and args.attention == "flash_attention_2":
        return UserError(
            "--model-arg attention=flash_attention_2 is not available here",
            found=why.rpartition("following error: ")[2],
            expected="`pip install flash-attn` on a machine with CUDA, or attention=sdpa",
        )
    _check_torchvision(checkpoint.folder)
    is_other_kind = "Unrecognized configuration" in str(error)
    return UserError(
        "is not an image-text-to-text model" if is_other_kind else "cannot be loaded",
        file=checkpoint.folder,
        found=f"{type(error).__name__}: {why}",
        expected="a checkpoint that transformers loads with AutoModelForImageTextToText",
    )


def _check_weights(checkpoint: Checkpoint, report: Mapping[str, Any]) -> None:
    missing, mismatched = sorted(report["missing_keys"]), sorted(report["mismatched_keys"])
    if mismatched:
        name, shape, expected = mismatched[0]
        what = f"{len(mismatched)} of its weights have another shape than its config says"
        example = f"{name}: {tuple(shape)}, not {tuple(expected)}"
    elif missing:
        what = f"its weights lack {len(missing)} of the model's parameters"
        example = missing[0]
    else:
        return
    raise UserError(what, file=checkpoint.folder, found=example, expected="weights that belong to its config")


def _forget_sampling(model: Any) -> None:
    """Remove the checkpoint's sampling options: only those of the request apply, as its key says."""
    library: Any = import_module("transformers")
    for part in (model, getattr(model, "language_model", None)):
        config = getattr(part, "generation_config", None)
        if part is not None and config is not None:
            tokens = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")
            part.generation_config = library.GenerationConfig(
                **{name: getattr(config, name, None) for name in tokens}
            )


def _ends(model: Any, tokenizer: Any) -> set[int]:
    """The tokens that end an answer, from the model, otherwise from its tokenizer."""
    ends: set[int] = set()
    for part in (model, getattr(model, "language_model", None)):
        end = getattr(getattr(part, "generation_config", None), "eos_token_id", None)
        ends |= {end} if isinstance(end, int) else set(end or ())
    return ends or ({tokenizer.eos_token_id} if tokenizer.eos_token_id is not None else set())


def _language_model(model: Any) -> Any:
    """The part that generates text: the language model of BLIP models, otherwise the whole model."""
    inner = getattr(model, "language_model", None)
    return inner if hasattr(inner, "generation_config") else model


def _positions(config: Any) -> int | None:
    text = config.get_text_config()
    positions = getattr(text, "max_position_embeddings", None)
    return positions if isinstance(positions, int) and positions > 0 else None


def shared_device(device: str, free: int, total: int, own: int) -> str:
    """Describe a device that other processes use, judged by its memory before the model is loaded."""
    used = total - free - own
    if used <= OWN_BYTES:
        return ""
    return (
        f"{device} is shared: other processes use {used / 2**30:.1f} of {total / 2**30:.1f} GiB of its"
        " memory; each slows the others down, and memory may run out later"
        " (--model-arg device=cuda:N chooses another device)"
    )


def _check_memory(checkpoint: Checkpoint, device: Any, torch: Any) -> None:
    needed = checkpoint.parameters * _BYTES[checkpoint.dtype]
    free = _free_on_device(device, torch) if device.type == "cuda" else _free_memory()
    if free is not None and needed > free:
        raise too_large(checkpoint, f"{needed:,} bytes in {checkpoint.dtype}, {free:,} are free on {device}")


def too_large(checkpoint: Checkpoint, why: str) -> UserError:
    return UserError(
        f"its weights do not fit into memory: {why}",
        file=checkpoint.folder,
        expected="a smaller --model-arg dtype, another device, or a smaller model",
    )


def _free_on_device(device: Any, torch: Any) -> int:
    """Bytes that a model may take: free ones, and those that this process has reserved and does not use."""
    unused = torch.cuda.memory_reserved(device) - torch.cuda.memory_allocated(device)
    free: int = torch.cuda.mem_get_info(device)[0] + unused
    return free


def _free_memory() -> int | None:
    """Bytes of free memory; None if the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def is_out_of_memory(error: BaseException) -> bool:
    """Check whether an error means that memory, of any device, did not suffice."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(
        sign in text for sign in ("can't allocate memory", "not enough memory", "out of memory")
    )


# -- The processor of a checkpoint (transformers' name): converts images and text to the model's inputs


def load_processor(checkpoint: Checkpoint, args: LocalArgs) -> Any:
    library: Any = import_module("transformers")
    folder = checkpoint.folder
    options = {"local_files_only": True, "trust_remote_code": args.trust_remote_code}
    try:
        with silent():
            kind = _without_video(library, folder) or library.AutoProcessor
            processor = kind.from_pretrained(str(folder), **options)
    except ImportError as error:
        _check_torchvision(folder)
        raise UserError(
            "its processor needs a package that is not installed",
            file=folder,
            found=first_line(error),
            expected=f"{INSTALL}, and that package beside it, such as `pip install torchvision`",
        ) from None
    # The libraries raise many types of errors for a folder that they cannot load.
    except Exception as error:
        _check_torchvision(folder)
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


def _check_torchvision(folder: Path) -> None:
    """Raise UserError if torchvision is installed and cannot be imported: transformers names other causes."""
    if find_spec("torchvision") is None:
        return
    try:
        import_module("torchvision")
    # One that was built for another torch fails in its compiled part, with errors of any type.
    except Exception as error:
        raise UserError(
            "cannot be loaded: the installed torchvision does not fit torch",
            file=folder,
            found=f"{type(error).__name__}: {first_line(error)}",
            expected="`pip install torchvision` of the release that belongs to torch, or no torchvision",
        ) from None


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
    names = (config.get("processor_class") for config in _processor_configs(folder))
    return next((name for name in names if isinstance(name, str)), "")


def image_processor_of(folder: Path) -> dict[str, Any]:
    """The sizes to which a processor brings images, as its configuration states them."""
    found: dict[str, Any] = {}
    for config in _processor_configs(folder):
        inner = config.get("image_processor")
        for part in (config, inner if isinstance(inner, dict) else {}):
            found |= {name: part[name] for name in IMAGE_SIZES if part.get(name) is not None}
    return found


def _processor_configs(folder: Path) -> Iterator[dict[str, Any]]:
    for name in PROCESSORS:
        with suppress(OSError, *UNDECODABLE):
            config = json.loads((folder / name).read_bytes())
            if isinstance(config, dict):
                yield config


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


# -- A model's folder, read without loading the model: architecture, weights, identity

INSTALL = "pip install 'sightline[local]'"
PROCESSORS = ("processor_config.json", "preprocessor_config.json")
IMAGE_SIZES = ("min_pixels", "max_pixels", "size")
"""What a processor's configuration says of the size of images. Where it says nothing, its class decides."""
_VISION = ("vision_config", "image_token_id", "image_token_index")
_WEIGHTS = ("model.safetensors", "pytorch_model.bin")
_ONE_IMAGE = ("blip", "blip-2", "git", "instructblip", "kosmos-2", "pix2struct", "udop")
NEEDS_IMAGE = ("blip-2", "instructblip")
_DOWNLOADED = ["*.json", "*.safetensors", "*.jinja", "*.model", "*.txt", "*.tiktoken", "*.py", "*.bin"]
_IGNORED = ["*/*"]
_IGNORED_WITH_SAFETENSORS = [*_IGNORED, "*.bin"]
"""What of a repository is downloaded, and what of that is not: folders, and weights that are there twice."""
_HUB_NAME = re.compile(r"[\w.-]+/[\w.-]+")


class Checkpoint(Struct, frozen=True):
    """A folder that holds a model. `chat_template`: the processor's chat template, None without one."""

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
            needs_image=self.kind in NEEDS_IMAGE,
            system_role=self.chat_template is not None and "system" in self.chat_template,
            likelihood=True,
            # Pillow reads all formats, and nothing is sent over a network.
            limits=ImageLimits(formats=tuple(MEDIA_TYPES), max_bytes=MAX_BYTES),
            image_processor=image_processor_of(self.folder) if self.takes_images else {},
        )

    def identity(self) -> str:
        """Compute the digest of every file that affects the answers; the folder's name does not matter."""
        digest = digest_of_files(self.folder, {*answer_files(self.folder), *self.weights})
        # With torchvision, transformers resizes images to other pixels than with Pillow.
        library = _torchvision() if self.takes_images else ""
        return f"{self.architecture} sha256:{digest} {self.dtype}{library}"


def _torchvision() -> str:
    try:
        return f" torchvision {version('torchvision')}"
    except PackageNotFoundError:
        return ""


def find_folder(name: str, args: LocalArgs, *, fetch: bool) -> Path:
    """Find a model on this machine: a folder, or a snapshot of a model of the Hugging Face Hub."""
    folder = folder_of(name)
    if folder is None:
        return _snapshot(_hub_name(name), args.revision, fetch)
    if args.revision is not None:
        raise UserError("--model-arg revision: a folder contains only one revision", file=folder)
    return folder


def find_config(name: str) -> Path:
    """Find the folder with a model's config.json, the only file that is downloaded from the Hub."""
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
    parameters: Counter[str] = Counter()
    for name in weights:
        parameters += parameters_by_dtype(folder / name)
    own = _own_dtype(config) or _NAMES.get(next(iter(parameters.most_common(1)), ("", 0))[0], "float32")
    return Checkpoint(
        folder=folder,
        kind=kind,
        architecture=str(architectures[0]),
        dtype=args.dtype if args.dtype != "auto" else own,
        weights=weights,
        parameters=parameters.total(),
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


def _own_dtype(config: dict[str, Any]) -> str | None:
    """The number type in which the weights were published, None if the config does not say it."""
    inner = config.get("text_config")
    for part in (config, inner if isinstance(inner, dict) else {}):
        dtype = part.get("dtype") or part.get("torch_dtype")
        if dtype in ("float32", "bfloat16", "float16"):
            return str(dtype)
    return None


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
    if (folder / "chat_template.jinja").is_file():
        return (folder / "chat_template.jinja").read_text("utf-8")
    for name in ("chat_template.json", "processor_config.json"):
        if (folder / name).is_file():
            template = _json(folder, name, "the settings of a processor").get("chat_template")
            if isinstance(template, str):
                return template
    return None


# -- Weight files: the number of parameters, and whether the file is complete

_POINTER = b"version https://git-lfs"
_NAMES = {"F32": "float32", "BF16": "bfloat16", "F16": "float16"}


def parameters_by_dtype(file: Path) -> Counter[str]:
    """Count the parameters in a weight file by number type; those of .bin files are not known."""
    with needs_extra("local", "a local model needs safetensors"):
        from safetensors import SafetensorError, safe_open

    with file.open("rb") as opened:
        if opened.read(len(_POINTER)) == _POINTER:
            raise UserError(
                "is a pointer of Git LFS and not the weights", file=file, expected="`git lfs pull` first"
            )
    found: Counter[str] = Counter()
    if file.suffix == ".safetensors":
        try:
            with safe_open(file, "numpy") as weights:
                for name in sorted(weights.keys()):
                    tensor = weights.get_slice(name)
                    found[tensor.get_dtype()] += math.prod(tensor.get_shape())
        except SafetensorError as error:
            raise UserError(
                f"is truncated, damaged or not a safetensors file ({error})",
                file=file,
                expected="the whole file: fetch it again",
            ) from None
    return found


# -- Why a model with an adapter refuses a request: training included one of its images

_REASON = " was trained on this image"


def refusal_text(image: str, adapter: str) -> str:
    return f"{image}: {adapter}{_REASON}"


def is_refusal(error: str) -> bool:
    """Tell whether an error is the refusal of a training image.

    >>> is_refusal(refusal_text("a.png", "seed0")), is_refusal("connection refused")
    (True, False)
    """
    return error.endswith(_REASON)


# -- Arguments of a local model: how it is loaded, and how it samples

MAX_TOKENS = 512
"""Default token limit of an answer."""

BATCH = 32
"""Requests in one forward pass: on two cores twice as many are 4 % faster, and take twice the memory."""


class LocalArgs(Struct, frozen=True, forbid_unknown_fields=True):
    """`--model-arg` for local models."""

    dtype: Literal["auto", "float32", "bfloat16", "float16"] = "auto"
    device: Annotated[
        str, Meta(pattern=r"^(auto|cpu|cuda(:\d+)?|mps)$", description="auto, cpu, mps, cuda or cuda:NUMBER")
    ] = "auto"
    attention: Literal["eager", "sdpa", "flash_attention_2"] = "sdpa"
    batch: Annotated[int, Meta(ge=1)] = BATCH
    revision: str | None = None
    trust_remote_code: bool = False
    template: Literal["auto", "chat", "plain"] = "auto"
    adapter: str | None = None


class Sampling(Struct, frozen=True, forbid_unknown_fields=True):
    """The sampling options of a request; temperature 0 takes the most likely token each time."""

    temperature: Annotated[float, Meta(ge=0)] = 0.0
    top_p: Annotated[float, Meta(gt=0, le=1)] = 1.0
    top_k: Annotated[int, Meta(ge=0)] = 0
    max_tokens: Annotated[int, Meta(ge=1)] = MAX_TOKENS
    seed: int = 0
    repetition_penalty: Annotated[float, Meta(gt=0)] = 1.0


def effective(options: Mapping[str, Any]) -> dict[str, Any]:
    """Reduce options to those that affect the answer; omitted ones have their neutral value."""
    for name in options:
        if name not in Sampling.__struct_fields__:
            raise unknown_name("sampling option of a local model", name, Sampling.__struct_fields__)
    sampling = read_sampling(options)
    used: dict[str, Any] = {"temperature": sampling.temperature, "max_tokens": sampling.max_tokens}
    if sampling.repetition_penalty != 1:
        used["repetition_penalty"] = sampling.repetition_penalty
    if sampling.temperature == 0:
        return used
    used["seed"] = sampling.seed
    if sampling.top_p < 1:
        used["top_p"] = sampling.top_p
    if sampling.top_k > 0:
        used["top_k"] = sampling.top_k
    return used


def read_sampling(options: Mapping[str, Any]) -> Sampling:
    return read_values("--gen", options, Sampling)
