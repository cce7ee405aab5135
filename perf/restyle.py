"""`build restyle` against a plain loop: whole processes, the 216 CODIS images in the paper's four styles.

    python perf/restyle.py [--limit N] [--rounds N] [--processes N]

The plain loop restyles one image after the other with torch's defaults, all its threads included, and
writes the same PNG files. Prints images per second (originals and grayscale included) for both, the ratio
of the times, peak memory of the largest process, and how far the images differ. Compare ratios: wall times
differ between machines.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from process_usage import run_python
from report import Report, new_parser

SHARED = Path(os.environ.get("SIGHTLINE_SHARED") or Path(__file__).resolve().parents[2] / "shared")
IMAGES = SHARED / "data/codis/images"
WEIGHTS = SHARED / "data/styles"
PAINTED = ("candy", "mosaic", "udnie")


def main() -> None:
    """Measure and print; with --plain, run the plain loop in this process."""
    parser = new_parser(__doc__)
    parser.add_argument("--limit", type=int, default=216, help="images that are restyled")
    parser.add_argument("--rounds", type=int, default=1, help="rounds; the median is printed")
    parser.add_argument("--processes", type=int, default=os.cpu_count() or 1, help="of ours")
    parser.add_argument("--plain", metavar="DIR", help=argparse.SUPPRESS)
    options = parser.parse_args()
    if options.plain:
        _plain_loop(Path(options.plain), options.limit)
        return
    report = Report()
    _measure(options.limit, options.rounds, options.processes, report)
    report.save(options.json)


def plain_network(weights: Mapping[str, Any], x: Any) -> Any:
    """Apply the style network of pytorch/examples, layer by layer.

    Args:
        weights: Name -> weights of one style.
        x: An image, shape (1, 3, H, W), values 0-255, sides multiples of 4.

    Returns:
        The restyled image, same shape.
    """
    from torch.nn import functional

    def convolved(x: Any, name: str, stride: int = 1) -> Any:
        kernel, bias = weights[f"{name}.conv2d.weight"], weights[f"{name}.conv2d.bias"]
        border = (kernel.shape[-1] // 2,) * 4
        return functional.conv2d(functional.pad(x, border, mode="reflect"), kernel, bias, stride)

    def normalised(x: Any, name: str) -> Any:
        return functional.instance_norm(x, weight=weights[f"{name}.weight"], bias=weights[f"{name}.bias"])

    for layer, stride in ((1, 1), (2, 2), (3, 2)):
        x = functional.relu(normalised(convolved(x, f"conv{layer}", stride), f"in{layer}"))
    for block in range(1, 6):
        y = functional.relu(normalised(convolved(x, f"res{block}.conv1"), f"res{block}.in1"))
        x = normalised(convolved(y, f"res{block}.conv2"), f"res{block}.in2") + x
    for layer in (1, 2):
        x = functional.interpolate(x, scale_factor=2, mode="nearest")
        x = functional.relu(normalised(convolved(x, f"deconv{layer}"), f"in{layer + 3}"))
    return convolved(x, "deconv3")


def _plain_loop(out: Path, limit: int) -> None:
    import numpy as np
    import torch
    from PIL import Image

    networks = {style: torch.load(WEIGHTS / f"{style}.pth", weights_only=True) for style in PAINTED}
    networks = {style: {key: w.float() for key, w in found.items()} for style, found in networks.items()}
    for path in sorted(IMAGES.iterdir())[:limit]:
        with Image.open(path) as opened:
            image = opened.convert("RGB")
        image.save(out / f"{path.stem}_original.png")
        image.convert("L").convert("RGB").save(out / f"{path.stem}_grayscale.png")
        x = torch.from_numpy(np.array(image)).permute(2, 0, 1)[None].float()
        for style, weights in networks.items():
            with torch.inference_mode():
                painted = plain_network(weights, x)[0, :, : image.height, : image.width]
            pixels = painted.clamp(0, 255).byte().permute(1, 2, 0).contiguous().numpy()
            Image.fromarray(pixels).save(out / f"{path.stem}_{style}.png")


def _measure(limit: int, rounds: int, processes: int, report: Report) -> None:
    plain, ours = [], []
    with tempfile.TemporaryDirectory() as folder:
        loop, built = Path(folder, "plain"), Path(folder, "ours")
        loop.mkdir()
        words = ["build", "restyle", str(IMAGES), "--weights", str(WEIGHTS), "--out", str(built)]
        words += ["--limit", str(limit), "--processes", str(processes), "--quiet", "--force"]
        for _ in range(rounds):
            plain.append(run_python([__file__, "--plain", str(loop), "--limit", str(limit)]))
            ours.append(run_python(["-m", "sightline", *words]))
        written = len(list(loop.iterdir()))
        columns = ("images a second", "wall", "processor", "peak MB of the largest process")
        report.table(f"{limit} photos, {written} images, rounds: {rounds}", "", *columns)
        for name, ran in (("plain loop", plain), (f"`build restyle`, {processes} processes", ours)):
            wall, cpu, memory = (statistics.median(part) for part in zip(*ran, strict=True))
            report.row(name, f"{written / wall:.2f}", f"{wall:.1f} s", f"{cpu:.1f} s", f"{memory:.0f}")
        ratio = statistics.median(mine.wall / other.wall for mine, other in zip(ours, plain, strict=True))
        report.note(f"Ratio of the times: {ratio:.2f} (aim: at most 1).")
        report.note(f"{_differences(loop, built / 'images')}.")


def _differences(plain: Path, ours: Path) -> str:
    import numpy as np
    from PIL import Image

    most, differing, pixels = 0, 0, 0
    for path in plain.iterdir():
        one, other = (np.asarray(Image.open(folder / path.name), dtype=int) for folder in (plain, ours))
        difference = np.abs(one - other)
        most = max(most, int(difference.max()))
        differing += int((difference > 0).sum())
        pixels += difference.size
    return f"{1e6 * differing / pixels:.1f} of a million values differ, by {most} of 255 at most"


if __name__ == "__main__":
    main()
