"""The style network: the public outputs pixel by pixel, any size, and weights that are read without trust."""

from __future__ import annotations

import hashlib
import importlib.util
import io
import json
import math
import pickle
import subprocess
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sightline.builders import style_network
from sightline.builders.style_network import Weights, paint, read_weights, shapes
from sightline.data.pull import NETWORK_STYLES
from sightline.errors import UserError

torch = pytest.importorskip("torch", reason="restyling needs the extra `local`")

import numpy as np  # noqa: E402 - after the skip
from PIL import Image  # noqa: E402


@cache
def drawn_weights() -> dict[str, Any]:
    generator = torch.Generator().manual_seed(0)
    weights = {}
    for key, shape in shapes().items():
        scale = 1 / math.sqrt(math.prod(shape[1:]) or 1)
        weights[key] = scale * torch.randn(shape, generator=generator)
    weights["deconv3.conv2d.weight"] *= 40
    weights["deconv3.conv2d.bias"] += 128
    return weights


def random_weights() -> dict[str, Any]:
    """Weights of a network that was never trained, of a size that keeps values within sight."""
    return dict(drawn_weights())


def ncnn(weights: Weights) -> bytes:
    """The weights as ncnn stores them."""
    out = bytearray()
    for key, tensor in weights.items():
        if key.endswith("conv2d.weight"):
            out += b"\x47\x6b\x30\x01" + tensor.half().numpy().tobytes()
            out += bytes(-len(out) % 4)
        else:
            out += tensor.float().numpy().tobytes()
    return bytes(out)


def noise(height: int, width: int, seed: int = 0) -> np.ndarray[Any, np.dtype[np.uint8]]:
    return np.random.default_rng(seed).integers(0, 256, (height, width, 3), dtype=np.uint8)


@pytest.fixture(scope="module")
def plain() -> Callable[[Weights, Any], Any]:
    """The network as it was published, which perf/ measures against."""
    path = Path(__file__).parents[2] / "perf/restyle.py"
    # The script imports its neighbour, as scripts do.
    sys.path.append(str(path.parent))
    spec = importlib.util.spec_from_file_location("perf_restyle", path)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    network: Callable[[Weights, Any], Any] = module.plain_network
    return network


@pytest.fixture
def save(tmp_path: Path) -> Callable[[Any], Path]:
    """Writes something as torch does."""

    def write(content: Any) -> Path:
        path = tmp_path / "weights.pth"
        torch.save(content, path)
        return path

    return write


@pytest.mark.parametrize("style", NETWORK_STYLES)
def test_the_public_weights_give_the_public_images(shared: Path, style: str) -> None:
    folder = shared / "data/styles"
    image, expected = (
        np.asarray(Image.open(folder / f"check/{name}_256.png").convert("RGB")) for name in ("amber", style)
    )
    painted = paint(read_weights(folder / f"{style}.pth"), image)
    differing = np.abs(painted.astype(int) - expected)
    assert differing.max() <= 1
    assert differing.mean() < 0.001


@pytest.mark.parametrize("style", NETWORK_STYLES)
def test_the_state_dicts_equal_the_released_ncnn_weights(shared: Path, tmp_path: Path, style: str) -> None:
    folder = shared / "data/styles"
    weights = read_weights(folder / f"{style}.pth")
    released = tmp_path / f"{style}.bin"
    released.write_bytes(ncnn(weights))
    digest = hashlib.sha256(released.read_bytes()).hexdigest()
    assert digest == json.loads((folder / "SOURCE.json").read_text())[style]["ncnn_bin_sha256"]
    read = read_weights(released)
    assert list(read) == list(weights)
    assert all(torch.equal(read[key], weights[key]) for key in weights)


@pytest.mark.parametrize(("height", "width"), [(8, 8), (32, 20), (33, 50), (41, 30), (9, 87)])
def test_pixels_are_those_of_the_network_as_published(
    plain: Callable[[Weights, Any], Any], height: int, width: int
) -> None:
    weights, image = random_weights(), noise(height, width)
    with torch.inference_mode():
        whole = plain(weights, torch.from_numpy(image).permute(2, 0, 1)[None].float())
    expected = whole[0, :, :height, :width].permute(1, 2, 0).clamp(0, 255).numpy()
    assert expected.std() > 10
    assert np.abs(paint(weights, image) - (expected - 0.5)).max() < 0.51


@settings(max_examples=20, deadline=None)
@given(st.integers(1, 40), st.integers(1, 40))
def test_any_size_is_kept(height: int, width: int) -> None:
    painted = paint(random_weights(), noise(height, width))
    assert painted.shape == (height, width, 3)
    assert painted.dtype == np.uint8


def test_an_image_too_small_for_the_network_is_padded_with_its_border() -> None:
    small = noise(3, 5)
    continued = np.pad(small, [(0, 5), (0, 3), (0, 0)], mode="edge")
    assert np.array_equal(paint(random_weights(), small), paint(random_weights(), continued)[:3, :5])


def test_the_number_of_threads_changes_no_pixel_and_is_restored() -> None:
    before = torch.get_num_threads()
    try:
        painted = []
        for threads in (1, 2, 3):
            torch.set_num_threads(threads)
            painted.append(paint(random_weights(), noise(70, 90)).tobytes())
            assert torch.get_num_threads() == threads
        assert len(set(painted)) == 1
    finally:
        torch.set_num_threads(before)


def test_keys_of_old_versions_of_torch_are_ignored(save: Callable[[Any], Path]) -> None:
    left = {f"{name}.running_mean": torch.zeros(32) for name in ("in1", "in5", "res1.in1", "res5.in2")}
    assert list(read_weights(save({**random_weights(), **left}))) == list(shapes())


def test_half_precision_is_read_as_single(save: Callable[[Any], Path]) -> None:
    halves = {key: tensor.half() for key, tensor in random_weights().items()}
    read = read_weights(save(halves))
    assert all(torch.equal(read[key], halves[key].float()) for key in halves)
    assert {tensor.dtype for tensor in read.values()} == {torch.float32}


def without(*keys: str) -> dict[str, Any]:
    return {key: tensor for key, tensor in random_weights().items() if key not in keys}


WRONG: dict[str, tuple[Any, str]] = {
    "a key missing": (without("in3.bias", "conv1.conv2d.weight"), r"lacks conv1\.conv2d\.weight, in3\.bias;"),
    "all keys missing": ({}, r"lacks conv1\.conv2d\.weight, .* and 57 more"),
    "a key too many": (
        {**without(), "head.weight": torch.zeros(1)},
        "has keys that the network does not have: head.weight",
    ),
    "another shape": (
        {**without(), "in1.bias": torch.zeros(31)},
        r"field in1\.bias: has another shape \(found \(31,\)\); expected \(32,\)",
    ),
    "no tensor": ({**without(), "in1.bias": 3}, r"in1\.bias: has another shape \(found 'int'\)"),
    "sparse": (
        {**without(), "in1.bias": torch.zeros(32).to_sparse()},
        r"field in1\.bias: contains no plain numbers \(found 'torch.float32, torch.sparse_coo'\)",
    ),
    "no dict": ([torch.zeros(1)], r"is not a state dict \(found 'list'\)"),
    "not a number": ({**without(), "in1.bias": torch.full((32,), torch.nan)}, "numbers that are not finite"),
}


@pytest.mark.parametrize("case", WRONG)
def test_other_weights_are_refused_with_what_is_wrong(save: Callable[[Any], Path], case: str) -> None:
    content, message = WRONG[case]
    path = save(content)
    with pytest.raises(UserError, match=message) as caught:
        read_weights(path)
    assert str(caught.value).startswith(str(path))


class Payload:
    """What leaves a file behind where it is unpickled."""

    def __init__(self, path: Path) -> None:
        self.path = path

    def __reduce__(self) -> tuple[Any, ...]:
        return (Path.touch, (self.path,))


@pytest.mark.parametrize("how", ["torch", "pickle"])
def test_pickled_code_is_refused_and_not_executed(tmp_path: Path, how: str) -> None:
    trace, path = tmp_path / "executed", tmp_path / "weights.pth"
    content = {**random_weights(), "in1.bias": Payload(trace)}
    if how == "torch":
        torch.save(content, path)
    else:
        path.write_bytes(pickle.dumps(content))
    with pytest.raises(UserError, match="cannot be read as weights alone; nothing in it was executed"):
        read_weights(path)
    assert not trace.exists()


def saved() -> bytes:
    out = io.BytesIO()
    torch.save(random_weights(), out)
    return out.getvalue()


@pytest.mark.parametrize(
    "content", [b"", b"hello", b"PK\x03\x04", b"\x80\x02.", saved()[:-100], saved()[:100_000]]
)
def test_a_broken_file_or_one_of_another_type_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "weights.pth"
    path.write_bytes(content)
    with pytest.raises(UserError, match=r"weights\.pth: .*expected a state dict of the network"):
        read_weights(path)


@pytest.mark.parametrize("change", [lambda b: b[:-4], lambda b: b + b"0000", lambda b: b[4:], lambda _: b""])
def test_a_truncated_or_different_ncnn_file_is_refused(
    tmp_path: Path, change: Callable[[bytes], bytes]
) -> None:
    path = tmp_path / "candy.bin"
    path.write_bytes(change(ncnn(random_weights())))
    with pytest.raises(UserError, match=r"candy\.bin: is not a weights file of that network"):
        read_weights(path)


def test_missing_weights_are_reported(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"absent\.pth: cannot be read: No such file"):
        read_weights(tmp_path / "absent.pth")


def test_without_torch_the_error_names_the_extra_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "torch", None)
    with pytest.raises(UserError, match=r"needs torch; expected pip install 'sightline\[local\]'"):
        read_weights(tmp_path / "candy.pth")


def test_too_little_memory_of_any_device_is_a_memory_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def on_gpu(weights: Weights, x: Any) -> Any:
        raise torch.OutOfMemoryError("CUDA out of memory. Tried to allocate 2.00 GiB. GPU 0 has a total ...")

    def on_cpu(weights: Weights, x: Any) -> Any:
        return torch.empty(2**50, dtype=torch.uint8)

    for forward in (on_gpu, on_cpu):
        monkeypatch.setattr(style_network, "_forward", forward)
        with pytest.raises(MemoryError, match="allocate"):
            paint(random_weights(), noise(8, 8))


def test_other_errors_of_torch_are_not_changed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(style_network, "_forward", lambda weights, x: torch.zeros(2) + torch.zeros(3))
    with pytest.raises(RuntimeError, match="must match the size"):
        paint(random_weights(), noise(8, 8))


@pytest.mark.slow
@pytest.mark.skipif(sys.platform != "linux", reason="address space is limited as Linux does")
def test_a_process_without_memory_reports_it() -> None:
    code = (
        "import math, resource, numpy as np, torch\n"
        "from sightline.builders.style_network import paint, shapes\n"
        "w = {k: torch.randn(s) / math.sqrt(math.prod(s[1:]) or 1) for k, s in shapes().items()}\n"
        "paint(w, np.zeros((64, 64, 3), np.uint8))\n"
        "used = int(open('/proc/self/statm').read().split()[0]) * 4096 + (150 << 20)\n"
        "resource.setrlimit(resource.RLIMIT_AS, (used, used))\n"
        "try:\n    paint(w, np.zeros((1500, 2000, 3), np.uint8))\n"
        "except MemoryError as error:\n    print(error)\n"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert "DefaultCPUAllocator: can't allocate memory" in done.stdout
