"""Synthetic scenes in the released formats of the four benchmarks, for the embedded model `mini`.

    python -m training.scenes --out scenes
    python -m training.scenes --benchmark mmr3 --for-training --count 400 --seed 7 --out train
    python -m training.scenes --quickstart src/sightline/data/quickstart.zip

The same seed makes the same scenes. Every scene has a combination that is not in the training set of `mini`.
Scenes for training an adapter have none of these, so that it does not learn the answers of the test. The
styles of MM-R3's scenes are fixed image operations with the names of the paper's styles, not its networks.

--quickstart writes the data that `sightline quickstart` unpacks.
"""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from io import BytesIO
from pathlib import Path
from tempfile import TemporaryDirectory
from zipfile import ZIP_DEFLATED, ZipFile, ZipInfo

from PIL import Image

from sightline.errors import UserError
from sightline.formats.files import MARKER
from training.scenes.build import generate_codis, generate_contextual, generate_iibench, generate_mmr3

BENCHMARKS = ("codis", "iibench", "mmr3", "contextual")
COUNT = 60
QUICKSTART_GROUPS = 32
"""Groups of each task of MM-R3 in the quickstart, which keep its archive under 2 MB."""


def main() -> None:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter, prog="training.scenes"
    )
    add = parser.add_argument
    add("--out", type=Path, metavar="DIR", help="folder, with a subfolder for each benchmark")
    add("--benchmark", action="append", choices=BENCHMARKS, help="only this one; may repeat")
    add("--count", type=int, default=COUNT, metavar="N", help="pairs, questions per split, groups per task")
    add("--seed", type=int, default=0, metavar="N", help="seed of all random choices")
    add("--for-training", action="store_true", help="with --benchmark mmr3: scenes that no test uses")
    add("--quickstart", type=Path, metavar="FILE", help="write the data of the quickstart, a zip archive")
    options = parser.parse_args()
    if (options.out is None) == (options.quickstart is None):
        parser.error("expected --out DIR or --quickstart FILE")
    if options.count < 1:
        parser.error("--count: expected 1 or more")
    if options.for_training and options.benchmark != ["mmr3"]:
        parser.error("--for-training: expected --benchmark mmr3")
    try:
        if options.quickstart is not None:
            options.quickstart.write_bytes(quickstart_archive())
        else:
            for name in options.benchmark or BENCHMARKS:
                print(_generate(name, options.out / name, options))
    except UserError as error:
        raise SystemExit(str(error)) from None


def _generate(name: str, folder: Path, options: argparse.Namespace) -> Path:
    count, seed = options.count, options.seed
    if name == "codis":
        return generate_codis(folder, pairs=count, seed=seed)
    if name == "iibench":
        return generate_iibench(folder, questions=count, dev=count, seed=seed)
    if name == "mmr3":
        return generate_mmr3(folder, groups=count, seed=seed, held_out=not options.for_training)
    return generate_contextual(folder, questions=count, val=count, seed=seed)


def quickstart_archive() -> bytes:
    """The data of the quickstart as a zip archive. Equal encoders of PNG and deflate give equal bytes."""
    archive = BytesIO()
    with ZipFile(archive, "w") as out:
        for name, content in quickstart_files().items():
            out.writestr(ZipInfo(name), content, ZIP_DEFLATED, 9)
    return archive.getvalue()


def quickstart_files() -> Mapping[str, bytes]:
    """The files of the quickstart by name: the splits that it runs, with the marker of each folder first."""
    files: dict[str, bytes] = {}
    with TemporaryDirectory() as folder:
        root = Path(folder)
        generate_codis(root / "codis")
        generate_iibench(root / "iibench", questions=0)
        generate_contextual(root / "contextual", questions=0)
        generate_mmr3(root / "mmr3", groups=QUICKSTART_GROUPS)
        for marker in sorted(root.glob(f"*/{MARKER}")):
            names = [name for name in marker.read_text().splitlines() if name not in _EMPTY_SPLITS]
            files[f"{marker.parent.name}/{MARKER}"] = "\n".join(names).encode()
            for name in names:
                file = marker.parent / name
                files[f"{marker.parent.name}/{name}"] = (
                    _smaller(file) if file.suffix == ".png" else file.read_bytes()
                )
    return files


_EMPTY_SPLITS = frozenset({"test.json", "answers.json", "contextual_test.csv"})


def _smaller(image: Path) -> bytes:
    stream = BytesIO()
    with Image.open(image) as opened:
        opened.save(stream, "PNG", optimize=True)
    return stream.getvalue()


if __name__ == "__main__":
    main()
