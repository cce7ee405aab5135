"""Headers of weight files: the number of parameters, and whether the file is complete."""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
from msgspec import Struct

from sightline.decoding import UNDECODABLE
from sightline.errors import UserError

_POINTER = b"version https://git-lfs"


class _Tensor(Struct):
    shape: list[int] = []
    data_offsets: tuple[int, int] = (0, 0)


def parameter_count(file: Path) -> int:
    """Count the parameters in a weight file."""
    size = file.stat().st_size
    with file.open("rb") as opened:
        if opened.read(len(_POINTER)) == _POINTER:
            raise UserError(
                "is a pointer of Git LFS and not the weights", file=file, expected="`git lfs pull` first"
            )
        if file.suffix != ".safetensors":
            return 0
        opened.seek(0)
        length = int.from_bytes(opened.read(8), "little")
        # Another file format may contain any length here.
        header = opened.read(min(length, size))
    try:
        tensors = msgspec.json.decode(header, type=dict[str, _Tensor])
    except UNDECODABLE:
        raise UserError("is damaged, or not a safetensors file", file=file) from None
    tensors.pop("__metadata__", None)
    whole = 8 + length + max((tensor.data_offsets[1] for tensor in tensors.values()), default=0)
    if size < whole:
        raise UserError(
            f"is truncated: {size:,} of {whole:,} bytes", file=file, expected="the whole file: fetch it again"
        )
    return sum(math.prod(tensor.shape) for tensor in tensors.values())
