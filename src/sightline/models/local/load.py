"""Loads a model and its processor, or says in one message why that fails."""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from sightline.errors import UserError, did_you_mean
from sightline.models.local.args import LocalArgs
from sightline.models.local.checkpoint import INSTALL, Checkpoint
from sightline.models.local.processor import first_line, load_processor, silent
from sightline.output import print_note

OWN_BYTES = 2**30
"""Memory of a device that this process and its driver may use before a model is loaded."""

_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


class PrefixVectors(Protocol):
    """Vectors that an adapter puts before the embeddings of each prompt; `length` is how many."""

    length: int

    def activate(self, prompt_mask: Any) -> None:
        """Put the vectors into the next call of the model.

        Args:
            prompt_mask: The mask of the prompts, shape (rows, tokens); the first `length` tokens of a row are
                reserved.
        """


class Loaded(Struct, frozen=True):
    """A model on its device.

    Attributes:
        positions: Largest number of tokens, prompt and answer together; None for any number.
        ends: Tokens that end an answer.
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
    """Load a model."""
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
    """Raise UserError if the device does not support the number type."""
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
    """The error that a failure of transformers means."""
    if is_out_of_memory(error):
        return too_large(checkpoint, f"{device} has too little memory")
    why = first_line(error)
    if isinstance(error, ImportError) and args.attention == "flash_attention_2":
        return UserError(
            "--model-arg attention=flash_attention_2 is not available here",
            found=why.rpartition("following error: ")[2],
            expected="`pip install flash-attn` on a machine with CUDA, or attention=sdpa",
        )
    is_other_kind = "Unrecognized configuration" in str(error)
    return UserError(
        "is not an image-text-to-text model" if is_other_kind else "cannot be loaded",
        file=checkpoint.folder,
        found=f"{type(error).__name__}: {why}",
        expected="a checkpoint that transformers loads with AutoModelForImageTextToText",
    )


def _check_weights(checkpoint: Checkpoint, report: Mapping[str, Any]) -> None:
    """Raise UserError if parameters of the model have no weights, or weights of another shape."""
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
    """Describe a device that other processes use, judged by its memory before the model is loaded.

    Args:
        free: Bytes of its free memory.
        total: Bytes of its memory.
        own: Bytes that this process has reserved, for another model.
    """
    used = total - free - own
    if used <= OWN_BYTES:
        return ""
    return (
        f"{device} is shared: other processes use {used / 2**30:.1f} of {total / 2**30:.1f} GiB of its"
        " memory; each slows the others down, and memory may run out later"
        " (--model-arg device=cuda:N chooses another device)"
    )


def _check_memory(checkpoint: Checkpoint, device: Any, torch: Any) -> None:
    """Raise UserError if the weights alone exceed the free memory."""
    needed = checkpoint.parameters * _BYTES[checkpoint.dtype]
    free = _free_on_device(device, torch) if device.type == "cuda" else _free_memory()
    if free is not None and needed > free:
        raise too_large(checkpoint, f"{needed:,} bytes in {checkpoint.dtype}, {free:,} are free on {device}")


def too_large(checkpoint: Checkpoint, why: str) -> UserError:
    """The error of a model that does not fit into memory."""
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
