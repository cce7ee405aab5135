"""`sightline build mask`: masks an object of each COCO image in three ways, for context reasoning."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline.cli.build_options import add_building, make
from sightline.cli.printing import print_json
from sightline.errors import UserError
from sightline.output import print_note

if TYPE_CHECKING:
    from sightline.builders.mask_assignment import MaskAssignment
    from sightline.reporting.report_table import ReportTable

SUMMARY = "mask an object of each COCO image in three ways (MM-R3, context reasoning)"

EXAMPLE = """examples:
  sightline build mask instances_val2017.json --images val2017 --out masked --limit 500
  sightline build mask instances.json --images coco --out test --spec types.json --labels labels.json
  sightline build mask --spec types.json --labels labels.json --count

An object can be masked if it is not a crowd and covers 10 to 25 % of the image. --seed draws
one per image. A mask has 1, 3, 5 or 7 horizontal bands of one colour with gaps of equal height, clipped to
the object's box or to the ellipse inscribed in it. Pixels outside the box do not change (in PNG; JPEG is
lossy).
"""
NONE = "none"


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build mask`."""
    parser.epilog = EXAMPLE
    parser.add_argument("instances", nargs="?", metavar="INSTANCES.json", help="objects in COCO's format")
    parser.add_argument("--images", metavar="DIR", help="folder of the images that it names")
    spec = parser.add_argument_group("the authors' maskings instead of random ones")
    add = spec.add_argument
    add("--spec", metavar="types.json", help="'<COCO id>_<0|1|2>' -> colors, lines, draw_type")
    add("--labels", metavar="labels.json", help="'<COCO id>_<0|1|2>' -> category id of the object")
    add(
        "--leave-out",
        action="append",
        metavar="ID",
        help=f"image of the spec to leave out; may repeat; '{NONE}' for none (default: 000000581719, which "
        "is in the authors' files and not among the paper's 4,500 maskings)",
    )
    add("--count", action="store_true", help="count the maskings of the spec; needs no images")
    add("--json", action="store_true", help="print the counts as JSON")
    add_building(parser, out=False)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Build the folder, or count the maskings of a spec; returns the exit status."""
    _check_options(options)
    assignment = _assignment(options)
    if assignment is not None:
        _print_left_out(assignment)
        if options.count:
            _print_counts(assignment, options.json)
            return 0
    from sightline.builders.coco import MAX_AREA, MIN_AREA, read_instances
    from sightline.builders.mask import KIND, Mask, count_passed_over, mask_sources, prompt
    from sightline.builders.masking import VARIANTS
    from sightline.builders.run import BuildSpec

    path = Path(options.instances)
    instances = read_instances(path)
    sources = mask_sources(instances, Path(options.images), options.seed, assignment)
    if not sources:
        raise UserError(
            "no image has an object that can be masked",
            file=path,
            found=f"{len(instances.photos):,} images",
            expected=f"one object that is not a crowd and covers {MIN_AREA} to {MAX_AREA} of its image",
        )
    if assignment is not None:
        counts = f"{len(sources):,} of the {len(assignment.maskings):,} images of the spec"
        print_note(f"{counts} are in the instances file; manifest.json lists the others")
    elif not options.quiet:
        print_note(f"{len(sources):,} of {len(instances.photos):,} images can be masked")
    settings: dict[str, Any] = {
        "instances": _file_digest(path),
        "prompt": prompt(),
        "area": [MIN_AREA, MAX_AREA],
    }
    if assignment is not None:
        settings["spec"] = _file_digest(Path(options.spec))
        settings["labels"] = _file_digest(Path(options.labels))
        settings["left_out"] = list(assignment.left_out)
    spec = BuildSpec(
        kind=KIND,
        settings=settings,
        passed_over={} if assignment is not None else count_passed_over(instances, sources),
        absent={} if assignment is None else assignment.absent_from(instances),
        images_per_source=1 + len(VARIANTS),
    )
    return make(options, sources, Mask(prompt(), options.format), spec)


def _check_options(options: argparse.Namespace) -> None:
    """Refuse options that do not belong together, and missing ones."""
    if (options.spec is None) != (options.labels is None):
        missing = "--labels" if options.labels is None else "--spec"
        raise UserError(
            f"{missing} is missing", expected="--spec types.json and --labels labels.json together"
        )
    if options.spec is None and (options.count or options.leave_out):
        word = "--count" if options.count else "--leave-out"
        raise UserError(f"{word} needs a spec", expected="--spec types.json --labels labels.json")
    if options.json and not options.count:
        raise UserError("--json needs --count; see `sightline build mask --help`")
    if options.count:
        return
    needed = {"INSTANCES.json": options.instances, "--images DIR": options.images, "--out DIR": options.out}
    for word, value in needed.items():
        if value is None:
            raise UserError(f"{word} is missing; see `sightline build mask --help`")
    if not Path(options.images).is_dir():
        raise UserError(
            "there is no such folder", file=options.images, expected="a folder of images for --images"
        )


def _assignment(options: argparse.Namespace) -> MaskAssignment | None:
    if options.spec is None:
        return None
    from sightline.builders.mask_assignment import LEFT_OUT, read_assignment

    leave_out = LEFT_OUT if options.leave_out is None else [one for one in options.leave_out if one != NONE]
    return read_assignment(Path(options.spec), Path(options.labels), leave_out)


def _print_left_out(assignment: MaskAssignment) -> None:
    if assignment.left_out:
        print_note(f"left out of the spec: {', '.join(assignment.left_out)}")


def _print_counts(assignment: MaskAssignment, as_json: bool) -> None:
    if not as_json:
        from sightline.reporting.terminal import show

        show([_table(assignment)])
        return
    counts = {
        "images": len(assignment.maskings),
        "maskings": sum(len(maskings) for maskings in assignment.maskings.values()),
        "images_with_equal_maskings": assignment.with_equal(),
        "left_out": assignment.left_out,
        **assignment.sizes(),
    }
    print_json(counts)


def _table(assignment: MaskAssignment) -> ReportTable:
    from sightline.reporting.report_table import Column, ReportTable

    columns = (
        Column("text", "label", "label"),
        Column("text", "value", "value"),
        Column("count", "maskings", "maskings"),
    )
    sizes = assignment.sizes()
    rows = tuple((label, value, count) for label, counts in sizes.items() for value, count in counts.items())
    whole = sum(sizes["shape"].values())
    notes = (
        f"{len(assignment.maskings):,} images, {whole:,} maskings; "
        f"{assignment.with_equal():,} images have two equal ones",
    )
    return ReportTable("maskings of the spec", columns, rows, notes)


def _file_digest(path: Path) -> dict[str, str]:
    """A file's name and digest, for the manifest."""
    from sightline.formats.digests import file_digest

    return {"file": path.name, "sha256": file_digest(path)}
