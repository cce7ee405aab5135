"""The feed-forward style network of Johnson et al. 2016 with instance normalisation, which repaints images.

The architecture is that of pytorch/examples, fast_neural_style/neural_style/transformer_net.py. The output
equals that of the original code up to rounding errors; two kinds of layers are computed more cheaply
(`_enlarged`, `_by_fours`).
"""

from __future__ import annotations

import math
import os
import re
import warnings
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline.errors import UserError, needs_extra, some_of

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray
    from torch import Tensor

SMALLEST = 8
"""Smaller sides (in pixels) are padded with the last row or column: the network mirrors four pixels at the
border, and one on a grid of a fourth of the size."""
MAX_BYTES = 64 * 1024 * 1024
"""Largest size of a file of weights; real ones have 3.4 or 6.7 MB."""

_TAG = b"\x47\x6b\x30\x01"
"""The marker before the half-precision weights of a convolution in ncnn's files."""
_UNUSED_KEYS = re.compile(r"(^|\.)in\d\.(running_mean|running_var|num_batches_tracked)$")
"""Unused keys that old versions of torch wrote for instance normalisation."""
_OUT_OF_MEMORY = re.compile(
    r"out of memory|DefaultCPUAllocator|bad_alloc|CUDNN_STATUS_ALLOC_FAILED", re.IGNORECASE
)
"""Texts of torch's errors for missing memory, on a GPU or on the CPU."""
_RESIDUAL = tuple(f"res{number}" for number in range(1, 6))

Weights = Mapping[str, "Tensor"]


def read_weights(path: Path) -> Weights:
    """Read the network's weights without executing anything in the file."""
    import_torch()
    try:
        size = path.stat().st_size
    except OSError as error:
        raise UserError(f"cannot be read: {error.strerror}", file=path, expected="style weights") from None
    if size > MAX_BYTES:
        raise UserError(f"has {size:,} bytes, more than {MAX_BYTES:,}", file=path, expected=_EXPECTED)
    weights = _from_ncnn(path) if path.suffix == ".bin" else _from_state_dict(path)
    wrong = [name for name, tensor in weights.items() if not bool(tensor.isfinite().all())]
    if wrong:
        raise UserError("holds numbers that are not finite", file=path, field=wrong[0], expected=_EXPECTED)
    return weights


def paint(weights: Weights, pixels: NDArray[np.uint8]) -> NDArray[np.uint8]:
    """Repaint an image in the style of the weights, on the device of the weights.

    The network's output has sides that are multiples of four pixels; it is cropped to the image. Fractions
    are truncated, as in pytorch/examples. On the CPU one thread computes, so that the bytes do not depend on
    the number of threads; use several processes for several images. It needs 400 bytes of memory per pixel.

    Args:
        pixels: An RGB image of shape (height, width, 3), 0-255.

    Returns:
        The repainted image, of the same shape and range.
    """
    import numpy as np

    torch = import_torch()
    height, width = pixels.shape[:2]
    missing = [(0, max(0, SMALLEST - height)), (0, max(0, SMALLEST - width)), (0, 0)]
    device = weights["conv1.conv2d.bias"].device
    with _enough_memory(), torch.inference_mode(), _reproducible():
        image = torch.from_numpy(np.pad(pixels, missing, mode="edge")).to(device)
        painted = _forward(weights, image.permute(2, 0, 1)[None].float())[0, :, :height, :width]
        values: NDArray[np.uint8] = painted.clamp_(0, 255).byte().permute(1, 2, 0).contiguous().cpu().numpy()
    return values


def on_device(weights: Weights, device: str) -> Weights:
    with _enough_memory():
        return {key: tensor.to(device) for key, tensor in weights.items()}


def shapes() -> dict[str, tuple[int, ...]]:
    """The keys of the state dict with their shapes, in the network's order."""
    convolutions = [
        ("conv1", "in1", 3, 32, 9),
        ("conv2", "in2", 32, 64, 3),
        ("conv3", "in3", 64, 128, 3),
        *((f"{block}.conv{n}", f"{block}.in{n}", 128, 128, 3) for block in _RESIDUAL for n in (1, 2)),
        ("deconv1", "in4", 128, 64, 3),
        ("deconv2", "in5", 64, 32, 3),
        ("deconv3", "", 32, 3, 9),
    ]
    keys: dict[str, tuple[int, ...]] = {}
    for name, norm, inward, outward, side in convolutions:
        keys[f"{name}.conv2d.weight"] = (outward, inward, side, side)
        keys[f"{name}.conv2d.bias"] = (outward,)
        if norm:
            keys[f"{norm}.weight"] = keys[f"{norm}.bias"] = (outward,)
    return keys


def import_torch() -> Any:
    # torch reads this at its first allocation: large pages save a fifth of the time of these layers.
    os.environ.setdefault("THP_MEM_ALLOC_ENABLE", "1")
    with needs_extra("local", "restyling needs torch"):
        import torch
    return torch


_EXPECTED = "a state dict of the network of pytorch/examples fast_neural_style (.pth), or ncnn's form (.bin)"


def _from_state_dict(path: Path) -> Weights:
    torch = import_torch()
    try:
        with warnings.catch_warnings():
            # torch warns about the pickle version of other files.
            warnings.simplefilter("ignore")
            loaded = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # unpickling and unzipping raise many kinds of errors
        why = next(iter(str(error).splitlines()), "") or type(error).__name__
        raise UserError(
            "cannot be read as weights alone; nothing in it was executed",
            file=path,
            found=why,
            expected=_EXPECTED,
        ) from None
    if not isinstance(loaded, dict):
        raise UserError("is not a state dict", file=path, found=type(loaded).__name__, expected=_EXPECTED)
    loaded = {key: value for key, value in loaded.items() if not _UNUSED_KEYS.search(str(key))}
    expected_shapes = shapes()
    _refuse_keys(path, "lacks", [key for key in expected_shapes if key not in loaded])
    unknown = [str(key) for key in loaded if key not in expected_shapes]
    _refuse_keys(path, "has keys that the network does not have:", unknown)
    for key, shape in expected_shapes.items():
        value = loaded[key]
        if not isinstance(value, torch.Tensor) or tuple(value.shape) != shape:
            what = tuple(getattr(value, "shape", ())) or type(value).__name__
            raise UserError("has another shape", file=path, field=key, found=what, expected=str(shape))
        if not value.is_floating_point() or value.layout != torch.strided:
            kind = f"{value.dtype}, {value.layout}"
            raise UserError("contains no plain numbers", file=path, field=key, found=kind, expected=_EXPECTED)
    return {key: loaded[key].float() for key in expected_shapes}


def _refuse_keys(path: Path, what: str, keys: list[str]) -> None:
    if keys:
        raise UserError(f"{what} {some_of(keys, 5)}", file=path, expected=_EXPECTED)


def _from_ncnn(path: Path) -> Weights:
    """ncnn's format: per layer a marker, the weights in half precision, and the bias in single precision."""
    import numpy as np

    torch = import_torch()
    content = path.read_bytes()
    weights: dict[str, Tensor] = {}
    offset = 0
    for key, shape in shapes().items():
        half = len(shape) == 4
        if half:
            if content[offset : offset + 4] != _TAG:
                break
            offset += 4
        size = math.prod(shape)
        end = offset + size * (2 if half else 4)
        if end > len(content):
            break
        values = np.frombuffer(content, "<f2" if half else "<f4", size, offset).astype(np.float32)
        weights[key] = torch.from_numpy(values.reshape(shape))
        # Each array begins at a multiple of four bytes.
        offset = end + -end % 4
    if len(weights) < len(shapes()) or offset != len(content):
        raise UserError("is not a weights file of that network", file=path, expected=_EXPECTED)
    return weights


@contextmanager
def _reproducible() -> Iterator[None]:
    """One thread on the CPU; on a GPU single precision and deterministic algorithms."""
    torch = import_torch()
    before = torch.get_num_threads()
    torch.set_num_threads(1)
    try:
        with torch.backends.cudnn.flags(enabled=True, deterministic=True, allow_tf32=False):
            yield
    finally:
        torch.set_num_threads(before)


@contextmanager
def _enough_memory() -> Iterator[None]:
    """Turn torch's RuntimeError for missing memory into a MemoryError."""
    try:
        yield
    except RuntimeError as error:
        # A GPU raises the subclass torch.OutOfMemoryError, the CPU a plain RuntimeError.
        if _OUT_OF_MEMORY.search(str(error)):
            raise MemoryError(str(error).partition("\n")[0]) from None
        raise


def _forward(weights: Weights, x: Tensor) -> Tensor:
    """The network: (1, 3, H, W) with values 0-255 becomes (1, 3, 4 * ceil(H / 4), 4 * ceil(W / 4)).

    Each statement frees its input before the next one allocates memory.
    """

    def normalise(x: Tensor, name: str) -> Tensor:
        from torch.nn import functional

        return functional.instance_norm(x, weight=weights[f"{name}.weight"], bias=weights[f"{name}.bias"])

    for layer, stride in ((1, 1), (2, 2), (3, 2)):
        x = _bordered(x, 4 if layer == 1 else 1)
        x = _convolved(x, weights, f"conv{layer}", stride)
        x = normalise(x, f"in{layer}").relu_()
    for block in _RESIDUAL:
        y = _convolved(_bordered(x, 1), weights, f"{block}.conv1")
        y = normalise(y, f"{block}.in1").relu_()
        y = _convolved(_bordered(y, 1), weights, f"{block}.conv2")
        x = normalise(y, f"{block}.in2").add_(x)
    for layer in (1, 2):
        # Mirroring the enlarged image by one pixel equals repeating the border of the small one.
        x = _bordered(x, 1, "replicate")
        x = _enlarged(x, weights, f"deconv{layer}")
        x = normalise(x, f"in{layer + 3}").relu_()
    x = _bordered(x, 4)
    return _by_fours(x, weights, "deconv3")


def _bordered(x: Tensor, by: int, mode: str = "reflect") -> Tensor:
    from torch.nn import functional

    return functional.pad(x, (by, by, by, by), mode=mode)


def _convolved(x: Tensor, weights: Weights, name: str, stride: int = 1) -> Tensor:
    from torch.nn import functional

    return functional.conv2d(x, weights[f"{name}.conv2d.weight"], weights[f"{name}.conv2d.bias"], stride)


def _enlarged(x: Tensor, weights: Weights, name: str) -> Tensor:
    """A bordered image enlarged twice by repeating pixels, and convolved with 3 x 3.

    Of nine pixels under the kernel only four differ, so that each of the four places in a repeated pixel has
    a kernel of 2 x 2 on the small image; one convolution computes all of them.
    """
    import torch
    from torch.nn import functional

    kernel, bias = weights[f"{name}.conv2d.weight"], weights[f"{name}.conv2d.bias"]
    places = [(row, column) for row in (0, 1) for column in (0, 1)]
    small = torch.cat([_folded(_folded(kernel, 2, row), 3, column) for row, column in places])
    y = functional.conv2d(x, small, bias.repeat(4))
    height, width = x.shape[2] - 2, x.shape[3] - 2
    out = x.new_empty((1, len(bias), 2 * height, 2 * width))
    for part, (row, column) in zip(y.chunk(4, 1), places, strict=True):
        out[:, :, row::2, column::2] = part[:, :, row : row + height, column : column + width]
    return out


def _folded(kernel: Tensor, axis: int, place: int) -> Tensor:
    """Three weights along an axis as two: those that fall on the same pixel of the small image together."""
    import torch

    first, middle, last = (kernel.narrow(axis, start, 1) for start in range(3))
    return torch.cat([first, middle + last] if place == 0 else [first + middle, last], axis)


def _by_fours(x: Tensor, weights: Weights, name: str) -> Tensor:
    """A bordered image convolved to three channels: computed as twelve, by a kernel that moves two pixels.

    Processors compute sixteen channels in the time of three. The result's sides must be even.
    """
    import torch
    from torch.nn import functional

    kernel, bias = weights[f"{name}.conv2d.weight"], weights[f"{name}.conv2d.bias"]
    shifted = [functional.pad(kernel, (c, 1 - c, r, 1 - r)) for r in (0, 1) for c in (0, 1)]
    moved = torch.stack(shifted, 1).flatten(0, 1)
    return functional.pixel_shuffle(functional.conv2d(x, moved, bias.repeat_interleave(4), 2), 2)
