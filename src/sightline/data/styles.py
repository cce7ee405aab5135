"""The public weights of the style networks: their release, and the file of each style."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

from sightline.benchmarks.base import Release, ReleasedFile
from sightline.errors import UserError

STYLES_FOLDER = Path("data/styles")
"""The folder that `sightline data pull styles` writes."""


def _file(style: str, sha256: str, state_dict: str) -> ReleasedFile:
    """The file of a style: as released for ncnn, or the same weights as a PyTorch state dict."""
    name = f"{style}.bin"
    return ReleasedFile(f"app/src/main/assets/{name}", name, sha256, forms={f"{style}.pth": state_dict})


_FILES: Mapping[str, ReleasedFile] = {
    "candy": _file(
        "candy",
        "33cee36c21be4074eb580fdddebe19e02ffe572a2e302106d739796ea601161c",
        "99e109b5b647efd42ad276fd1d1aa3ed48364668e06ded0da1caee8d0270c3ce",
    ),
    "mosaic": _file(
        "mosaic",
        "b743d9de15069e384dcc95fd2efde910086933a476442efa745cac4b6c529b33",
        "c41e352c17ee9dc0b5044ff9c040daae40e099129e0629ec722a23f62b272132",
    ),
    "udnie": _file(
        "udnie",
        "010006b6d1b7ec281cbe57024d22caad9b1dcf27eb6eef080d93495be306e66f",
        "55f1214cbf71a084dad0bd34d2d177e909ed47468baac660dd3ff4ecc72a82fc",
    ),
}

NETWORK_STYLES = tuple(_FILES)
"""The styles of MM-R3 (section 3.2) that need a network; the fourth is grayscale."""

STYLE_WEIGHTS = Release(
    name="styles",
    repository="nihui/ncnn-android-styletransfer",
    revision="294843d35c9d73dae0f8b5a18674921e75579e22",
    files=tuple(_FILES.values()),
    paper="Johnson et al. 2016, Perceptual Losses for Real-Time Style Transfer and Super-Resolution, "
    "arXiv:1603.08155",
    licence="none is stated there; the weights come from pytorch/examples fast_neural_style (BSD-3-Clause) "
    "by way of the ONNX model zoo",
)
"""The weights of candy, mosaic and udnie, with convolutions in half precision."""


def weights_file(style: str, folder: Path) -> Path:
    for name in (f"{style}.bin", f"{style}.pth"):
        if (folder / name).is_file():
            return folder / name
    raise UserError(
        f"no weights of the style '{style}'",
        file=folder,
        expected=f"{style}.bin or {style}.pth: `sightline data pull styles`, or --weights DIR",
    )
