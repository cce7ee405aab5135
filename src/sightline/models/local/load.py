"""A model and its processor, loaded and ready, or one message that says why not."""

from __future__ import annotations

import json
from importlib import import_module
from pathlib import Path
from typing import Any, Protocol

from msgspec import Struct

from sightline.errors import UserError
from sightline.models.local.args import LocalArgs
from sightline.models.local.checkpoint import INSTALL, Checkpoint
from sightline.models.local.processor import first_line, load_processor, silent

_BYTES = {"float32": 4, "bfloat16": 2, "float16": 2}


class Before(Protocol):
    """Vectors that are put before the embeddings of each prompt: `length` of them."""

    length: int

    def arm(self, seen: Any) -> None:
        """Put them into the next call of the model, whose mask (rows, tokens) shows where each row begins:
        the first `length` tokens of a row are room for them."""


class Loaded(Struct, frozen=True):
    """A model on its device. `positions` is how many tokens, prompt and answer together, it can hold at
    most (None: any number); `ends` are the tokens that end an answer, `pad` the one that fills up.
    `is_seq2seq` says that an encoder reads the prompt and a decoder writes the answer. `before` is what an
    attachment puts before prompts."""

    kind: str
    model: Any
    processor: Any
    device: Any
    positions: int | None
    ends: frozenset[int]
    pad: int
    is_seq2seq: bool
    before: Before | None = None


def load(checkpoint: Checkpoint, args: LocalArgs) -> Loaded:
    """Load a model. Raises UserError where a library, the device, memory or a part of it is missing."""
    try:
        import torch

        import_module("transformers")
    except ImportError:
        raise UserError("a local model needs torch and transformers", expected=INSTALL) from None
    device = _device(args.device, torch)
    _check_dtype(checkpoint.dtype, device, torch)
    processor = load_processor(checkpoint, args)
    _check_memory(checkpoint, device, torch)
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
        is_seq2seq=bool(_speaker(model).config.is_encoder_decoder),
    )


def _device(wanted: str, torch: Any) -> Any:
    has_cuda, has_mps = torch.cuda.is_available(), torch.backends.mps.is_available()
    if wanted == "auto":
        return torch.device("cuda" if has_cuda else "mps" if has_mps else "cpu")
    device = torch.device(wanted)
    if device.type == "cuda" and not has_cuda:
        raise UserError(
            f"--model-arg device={wanted}: torch sees no CUDA device on this machine",
            expected="device=cpu, or a torch with CUDA and a driver that fits it",
        )
    if device.type == "cuda" and (device.index or 0) >= torch.cuda.device_count():
        raise UserError(
            f"--model-arg device={wanted}: there are {torch.cuda.device_count()} CUDA devices, counted from 0"
        )
    if device.type == "mps" and not has_mps:
        raise UserError(
            "--model-arg device=mps: torch sees no Apple GPU on this machine", expected="device=cpu"
        )
    return device


def _check_dtype(dtype: str, device: Any, torch: Any) -> None:
    """Raise UserError where the device does not calculate in this number type."""
    try:
        one = torch.ones(2, 2, dtype=getattr(torch, dtype), device=device)
        unusable = not bool(torch.isfinite(one @ one).all())
    except (RuntimeError, TypeError):
        unusable = True
    if unusable or (dtype == "bfloat16" and device.type == "cuda" and not torch.cuda.is_bf16_supported()):
        raise UserError(
            f"--model-arg dtype: {device} does not calculate in {dtype}",
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
            )
        model = model.to(device).eval()
    except Exception as error:
        if is_out_of_memory(error):
            raise _too_large(checkpoint, f"{device} has too little memory") from None
        what = (
            "is no image-text-to-text model"
            if "Unrecognized configuration" in str(error)
            else "cannot be loaded"
        )
        raise UserError(
            what,
            file=checkpoint.folder,
            found=f"{type(error).__name__}: {first_line(error)}",
            expected="a checkpoint that transformers loads with AutoModelForImageTextToText",
        ) from error
    if report["missing_keys"]:
        raise UserError(
            f"its weights lack {len(report['missing_keys'])} of the model's parameters",
            file=checkpoint.folder,
            found=min(report["missing_keys"]),
            expected="weights that belong to its config",
        )
    _forget_sampling(model)
    return model


def _forget_sampling(model: Any) -> None:
    """Without the checkpoint's own sampling options: a request says all that there is, so its key does."""
    library: Any = import_module("transformers")
    for part in (model, getattr(model, "language_model", None)):
        said = getattr(part, "generation_config", None)
        if part is not None and said is not None:
            tokens = ("bos_token_id", "eos_token_id", "pad_token_id", "decoder_start_token_id")
            part.generation_config = library.GenerationConfig(
                **{name: getattr(said, name, None) for name in tokens}
            )


def _ends(model: Any, tokenizer: Any) -> set[int]:
    """The tokens that end an answer, as the model says, else as its tokenizer does."""
    ends: set[int] = set()
    for part in (model, getattr(model, "language_model", None)):
        said = getattr(getattr(part, "generation_config", None), "eos_token_id", None)
        ends |= {said} if isinstance(said, int) else set(said or ())
    return ends or ({tokenizer.eos_token_id} if tokenizer.eos_token_id is not None else set())


def _speaker(model: Any) -> Any:
    """The part that writes: a language model of its own within the BLIPs, else the whole."""
    inner = getattr(model, "language_model", None)
    return inner if hasattr(inner, "generation_config") else model


def _positions(config: Any) -> int | None:
    text = config.get_text_config()
    found = getattr(text, "max_position_embeddings", None)
    return found if isinstance(found, int) and found > 0 else None


def _check_memory(checkpoint: Checkpoint, device: Any, torch: Any) -> None:
    """Raise UserError where the weights alone are larger than the memory that is free."""
    needed = _parameters(checkpoint) * _BYTES[checkpoint.dtype]
    free = torch.cuda.mem_get_info(device)[0] if device.type == "cuda" else _free_memory()
    if free is not None and needed > free:
        raise _too_large(checkpoint, f"{needed:,} bytes in {checkpoint.dtype}, {free:,} are free on {device}")


def _too_large(checkpoint: Checkpoint, why: str) -> UserError:
    return UserError(
        f"its weights do not fit into memory: {why}",
        file=checkpoint.folder,
        expected="a smaller --model-arg dtype, another device, or a smaller model",
    )


def _parameters(checkpoint: Checkpoint) -> int:
    """Numbers in the weights; 0 for kinds of files that do not say it."""
    total = 0
    for name in checkpoint.weights:
        if name.suffix != ".safetensors":
            return 0
        with (checkpoint.folder / name).open("rb") as file:
            try:
                header = json.loads(file.read(int.from_bytes(file.read(8), "little")))
            except (ValueError, OverflowError, MemoryError):
                raise UserError("is damaged, or no safetensors file", file=checkpoint.folder / name) from None
        shapes = (entry["shape"] for key, entry in header.items() if key != "__metadata__")
        total += sum(_product(shape) for shape in shapes)
    return total


def _product(shape: list[int]) -> int:
    size = 1
    for side in shape:
        size *= side
    return size


def _free_memory() -> int | None:
    """Bytes of memory that may still be taken; None where the system does not say."""
    try:
        lines = Path("/proc/meminfo").read_text("ascii").splitlines()
    except OSError:
        return None
    for line in lines:
        if line.startswith("MemAvailable:"):
            return int(line.split()[1]) * 1024
    return None


def is_out_of_memory(error: BaseException) -> bool:
    """Whether an error says that memory, of whatever device, did not suffice."""
    import torch

    if isinstance(error, MemoryError | torch.OutOfMemoryError):
        return True
    text = str(error).lower()
    return isinstance(error, RuntimeError) and any(
        sign in text for sign in ("can't allocate memory", "not enough memory", "out of memory")
    )
