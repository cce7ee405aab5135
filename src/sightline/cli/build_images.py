"""`sightline build`: what makes images (perturb, mask, restyle) or reads them (read, caption)."""

from __future__ import annotations

import argparse
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sightline.cli.build_options import (
    add_building,
    add_limit,
    add_output,
    add_requests,
    add_sources,
    add_workers,
    limited,
    make,
    print_by_reason,
    print_request_estimate,
    print_requests,
    request_exit_status,
    sources_of,
    workers,
)
from sightline.cli.options import add_plugins, add_store, model_client_options
from sightline.errors import UserError
from sightline.text import print_line, print_note

if TYPE_CHECKING:
    from sightline.builders.mask import MaskAssignment
    from sightline.builders.sources import CheckedImages, SourceItem
    from sightline.engine.client import Captioner, ModelClient
    from sightline.store.store import OcrResult


# -- `sightline build perturb`: applies a perturbation to images: crop, jpeg, rotate, blur, or a plugin's

PERTURB_EXAMPLE = """examples:
  sightline build perturb photos --kind jpeg --out compressed
  sightline build perturb questions.csv --images photos --kind mirror --plugin mirror.py --out mirrored

mirror.py, a perturbation of your own; the labels of a variant become subsets of the metrics:
  from PIL import ImageOps

  class Mirror:
      name = "mirror"
      variants = {"mirrored": {"mirror": "yes"}}

      def apply(self, image, variant, random):
          return ImageOps.mirror(image)

  perturbations = {"mirror": Mirror}
"""


def register_perturb(parser: argparse.ArgumentParser) -> None:
    parser.epilog = PERTURB_EXAMPLE
    add_sources(parser)
    add = parser.add_argument
    add("--kind", required=True, metavar="NAME", help="crop, jpeg, rotate, blur, or one of a plugin's")
    add(
        "--prompt",
        metavar="TEXT",
        help="prompt for sources without a question (default: MM-R3's about the place); if it contains "
        "{question}, it is the prompt for all sources, with their question in that position",
    )
    add_plugins(parser)
    add_building(parser)
    parser.set_defaults(execute=execute_perturb)


def execute_perturb(options: argparse.Namespace) -> int:
    from sightline.builders.perturb import Perturb, load_perturbation
    from sightline.builders.run import BuildSpec
    from sightline.formats.files import file_digest
    from sightline.text import load

    plugins = tuple(str(Path(file).absolute()) for file in options.plugin)
    perturbation = load_perturbation(options.kind, plugins)
    prompt = (
        load("sightline.benchmarks.mmr3")["restyling"]["prompt"] if options.prompt is None else options.prompt
    )
    sources = sources_of(options)
    _refuse_missing_questions(sources, prompt)
    settings = {
        "perturbation": options.kind,
        "variants": dict(perturbation.variants),
        "prompt": prompt,
        "plugins": [{"file": Path(file).name, "sha256": file_digest(file)} for file in plugins],
    }
    maker = Perturb(options.kind, prompt, options.seed, options.format, plugins)
    images = 1 + len(perturbation.variants)
    spec = BuildSpec(kind="perturb", settings=settings, images_per_source=images)
    return make(options, sources, maker, spec)


def _refuse_missing_questions(sources: list[SourceItem], prompt: str) -> None:
    for source in sources:
        if not source.question and (not prompt.strip() or "{question}" in prompt):
            raise UserError(
                "has no question",
                file=source.image,
                record=source.id,
                expected="a question, or a --prompt that needs none",
            )


# -- `sightline build mask`: masks an object of each COCO image in three ways, for context reasoning

MASK_EXAMPLE = """examples:
  sightline build mask instances_val2017.json --images val2017 --out masked --limit 500
  sightline build mask instances.json --images coco --out test --spec types.json --labels labels.json

An object can be masked if it is not a crowd and covers 10 to 25 % of the image. --seed draws
one per image. A mask has 1, 3, 5 or 7 horizontal bands of one colour with gaps of equal height, clipped to
the object's box or to the ellipse inscribed in it. Pixels outside the box do not change (in PNG; JPEG is
lossy).
"""


def register_mask(parser: argparse.ArgumentParser) -> None:
    parser.epilog = MASK_EXAMPLE
    parser.add_argument("instances", metavar="INSTANCES.json", help="objects in COCO's format")
    parser.add_argument("--images", required=True, metavar="DIR", help="folder of the images that it names")
    spec = parser.add_argument_group("the authors' maskings instead of random ones")
    add = spec.add_argument
    add("--spec", metavar="types.json", help="'<COCO id>_<0|1|2>' -> colors, lines, draw_type")
    add("--labels", metavar="labels.json", help="'<COCO id>_<0|1|2>' -> category id of the object")
    add_building(parser)
    parser.set_defaults(execute=execute_mask)


def execute_mask(options: argparse.Namespace) -> int:
    _check_options(options)
    assignment = _assignment(options)
    if assignment is not None and assignment.left_out:
        print_note(f"left out of the spec: {', '.join(assignment.left_out)}")
    from sightline.builders.coco import MAX_AREA, MIN_AREA, read_instances
    from sightline.builders.mask import KIND, VARIANTS, Mask, count_passed_over, mask_sources, prompt
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
    """Refuse options that do not belong together, and a folder that is not there."""
    if (options.spec is None) != (options.labels is None):
        missing = "--labels" if options.labels is None else "--spec"
        raise UserError(
            f"{missing} is missing", expected="--spec types.json and --labels labels.json together"
        )
    if not Path(options.images).is_dir():
        raise UserError(
            "there is no such folder", file=options.images, expected="a folder of images for --images"
        )


def _assignment(options: argparse.Namespace) -> MaskAssignment | None:
    if options.spec is None:
        return None
    from sightline.builders.mask import read_assignment

    return read_assignment(Path(options.spec), Path(options.labels))


def _file_digest(path: Path) -> dict[str, str]:
    """A file's name and digest, for the manifest."""
    from sightline.formats.files import file_digest

    return {"file": path.name, "sha256": file_digest(path)}


# -- `sightline build restyle`: repaints images in the styles of MM-R3, or in your own styles

RESTYLE_EXAMPLE = """examples:
  sightline build restyle indoor/Images --out restyled
  sightline build restyle train.csv --images landmarks --labels train_label_to_category.csv --out restyled
  sightline build restyle photos --size original,224,640,1024 --out sizes
  sightline build restyle photos --style candy --style my/waves.pth --out two

`sightline data pull styles` downloads the weights of candy, mosaic and udnie. Your own style is a state dict
of the network of pytorch/examples fast_neural_style, named by path. grayscale needs neither weights nor
torch. A process takes up to 2 GB at the default --max-pixels; fewer pixels or --processes take less.
"""


def register_restyle(parser: argparse.ArgumentParser) -> None:
    parser.epilog = RESTYLE_EXAMPLE
    add_sources(parser)
    styles = parser.add_argument_group("styles")
    add = styles.add_argument
    add(
        "--style",
        action="append",
        metavar="NAME|PATH",
        help="candy, mosaic, udnie, grayscale, or a file of weights; may repeat (default: those four)",
    )
    add(
        "--size",
        metavar="N[,...]",
        help="resize to squares of N pixels per side first; 'original' keeps the size; each size has its own "
        "group, ID@N, and a label",
    )
    add(
        "--weights",
        metavar="DIR",
        help="folder of the weights of candy, mosaic and udnie (default: ./data/styles)",
    )
    add(
        "--max-pixels",
        type=int,
        metavar="N",
        help="first scale larger images down to N pixels, recorded in `facts` (default: 4,000,000)",
    )
    add(
        "--device",
        metavar="NAME",
        help="device of the networks: cpu, cuda (default: cuda if there is one, with --processes 1)",
    )
    add_building(parser)
    parser.set_defaults(execute=execute_restyle)


def execute_restyle(options: argparse.Namespace) -> int:
    from sightline.builders import restyle
    from sightline.builders.run import BuildSpec
    from sightline.data.pull import STYLES_FOLDER

    most = restyle.MAX_PIXELS if options.max_pixels is None else options.max_pixels
    if most < 1:
        raise UserError("--max-pixels is too small", found=most, expected="1 or more")
    sizes = _sizes(options.size, most)
    folder = Path(options.weights) if options.weights else STYLES_FOLDER
    styles = restyle.find_styles(options.style or restyle.STYLES, folder)
    sources = limited(sources_of(options), options)
    restyle.refuse_equal_names(sources, sizes, styles)
    runs = restyle.device_versions(styles, options.device)
    device = runs.get("device", "cpu")
    maker = restyle.Restyle(styles, sizes, restyle.prompt(), options.format, most, device)
    settings: dict[str, Any] = {
        "styles": {style.name: style.sha256 for style in styles},
        "sizes": list(sizes),
        "max_pixels": most,
        "prompt": maker.prompt,
        **runs,
    }
    images = len(sizes or (0,)) * (1 + len(styles))
    # A second process doubles the memory on a GPU and gains little.
    processes = None if device == "cpu" else 1
    spec = BuildSpec(kind=restyle.KIND, settings=settings, images_per_source=images)
    return make(options, sources, maker, spec, processes)


def _sizes(words: str | None, most: int) -> tuple[int, ...]:
    """Sides in pixels, 0 for the original size; empty without --size."""
    if words is None:
        return ()
    sizes = []
    for word in words.split(","):
        size = 0 if word == "original" else int(word) if word.isascii() and word.isdecimal() else -1
        if size < 1 and word != "original":
            raise UserError(
                "--size is wrong", found=word, expected="original, or pixels per side such as 224"
            )
        if size * size > most:
            raise UserError(f"--size {size} is more than {most:,} pixels", expected="a larger --max-pixels")
        if size in sizes:
            raise UserError(f"--size names {word} twice", expected="each size once")
        sizes.append(size)
    return tuple(sizes)


# -- `sightline build read`: reads the text in images by OCR

READ_EXAMPLE = """examples:
  sightline build read data/contextual --out read.jsonl
  sightline build read sign.jpg menu.png --text layout
  sightline build read data/iibench --out read.jsonl --processes 2 --store iibench.db

OCR text is cached in the store: a second call uses the cache, and so does `sightline run --augment` with that
store. Copies of an image are read once.
"""


def register_read(parser: argparse.ArgumentParser) -> None:
    parser.epilog = READ_EXAMPLE
    group = parser.add_argument_group("images")
    add = group.add_argument
    add(
        "data",
        metavar="DATA",
        nargs="+",
        help="image files, data folders of CODIS, ConTextual or II-Bench, any folders of images, or "
        "groups files",
    )
    add("--out", metavar="FILE", help="JSON lines of image_id, digest, reader, words (text, box, confidence)")
    add(
        "--text",
        choices=("ocr", "layout"),
        help="print the text of each image: in reading order (ocr), or with layout",
    )
    add_limit(group, "images")
    add_output(group, force="replace FILE")
    execution = parser.add_argument_group("execution")
    add_workers(execution)
    add_store(execution)
    parser.set_defaults(execute=execute_read)


def execute_read(options: argparse.Namespace) -> int:
    """Read, write and print; returns 1 if an image could not be read."""
    from sightline.builders.folder import everything_dropped
    from sightline.builders.read import images_at, read_all, write_ocr_texts
    from sightline.builders.sources import check_images
    from sightline.formats.files import refuse_overwriting
    from sightline.images import BadImage
    from sightline.models.ocr import RapidOcr
    from sightline.store.store import Store

    if not options.out and not options.text:
        raise UserError("neither --out nor --text is given", expected="--out FILE, --text layout, or both")
    out = Path(options.out) if options.out else None
    data = [Path(path) for path in options.data]
    if out is not None:
        refuse_overwriting(out, options.force, read=data)
    processes, threads = workers(options)
    reader = RapidOcr(threads)
    images = limited(list(images_at(data).items()), options)
    gallery = check_images(dict(images), show_progress=not options.quiet)
    if not gallery.files:
        raise everything_dropped(gallery.broken, "images")
    store = Store.open(options.store)
    try:
        texts = read_all(gallery, reader, store, processes=processes, show_progress=not options.quiet)
    finally:
        store.close()
    if out is not None:
        write_ocr_texts(texts, gallery, reader, out)
    if options.text:
        _print_texts(texts, options.text)
    unread = {
        name: str(words).removeprefix(f"{gallery.files[name].path}: ")
        for name, words in texts.items()
        if isinstance(words, BadImage)
    }
    return _print_result(gallery, {**gallery.broken, **unread}, out)


def _print_texts(texts: Mapping[str, OcrResult], form: str) -> None:
    from sightline.cli.printing import output_errors
    from sightline.images import BadImage
    from sightline.models.ocr import layout_text, plain_text

    to_text = layout_text if form == "layout" else plain_text
    with output_errors():
        for name, words in texts.items():
            if not isinstance(words, BadImage):
                for line in (f"== {name}", *to_text(words).split("\n"), ""):
                    print_line(line)


def _print_result(gallery: CheckedImages, unread: Mapping[str, str], out: Path | None) -> int:
    """Print on standard error how many images were read, and the reasons for the others."""
    images = len(gallery.files) + len(gallery.broken)
    file = f"{out}: " if out is not None else ""
    print_note(f"{file}{images - len(unread):,} of {images:,} images read")
    print_by_reason(unread)
    return 1 if unread else 0


# -- `sightline build caption`: writes captions of images with a model that takes images

CAPTION_EXAMPLE = """examples:
  sightline build caption data/codis --model http://localhost:8000/v1#llava --out captions.json
  sightline run codis:captions --set captions=captions.json --model openai/gpt-4o --data data/codis
  sightline build caption photos --model openai/gpt-4o --out captions.json --dry-run

Copies of an image are captioned once. Replies are cached in the store: the same command resumes after an
interruption, and asks nothing if all captions are cached.
"""


def register_caption(parser: argparse.ArgumentParser) -> None:
    parser.epilog = CAPTION_EXAMPLE
    group = parser.add_argument_group("captions")
    add = group.add_argument
    add(
        "data",
        metavar="DATA",
        help="data folder of CODIS or II-Bench, any folder of images, a built folder or a groups file",
    )
    add("--out", required=True, metavar="FILE", help="JSON list of image_id, caption, model, reply")
    add("--prompt", metavar="TEXT", help="prompt for each image (default: asks for a detailed description)")
    add_limit(group, "images")
    add_output(group, force="replace other captions in FILE")
    add_requests(parser)
    parser.set_defaults(execute=execute_caption)


def execute_caption(options: argparse.Namespace) -> int:
    """Ask and write the file; returns 1 if an image has no caption, 4 if the budget is reached."""
    from sightline.builders.folder import everything_dropped
    from sightline.builders.read import refuse_other_captions
    from sightline.builders.sources import check_images, images_in
    from sightline.engine.client import SAMPLING, Captioner, ModelClient

    client = ModelClient(model_client_options(options, options.fresh), SAMPLING)
    captioner = Captioner(client, options.prompt, again=options.retry_errors)
    images = limited(list(images_in(Path(options.data)).items()), options)
    gallery = check_images(dict(images), show_progress=not options.quiet)
    if not gallery.files:
        raise everything_dropped(gallery.broken, "images")
    with client.store(only_read=True) as store:
        cached = gallery.named(captioner.cached(gallery.files.values(), store))
    refuse_other_captions(Path(options.out), cached, force=options.force)
    return (
        _dry_run(gallery, captioner, client) if options.dry_run else _ask(gallery, captioner, client, options)
    )


def _dry_run(gallery: CheckedImages, captioner: Captioner, client: ModelClient) -> int:
    with client.store(only_read=True) as store:
        estimate = captioner.estimate(gallery.files.values(), store)
    print_line(f"images                      {len(gallery.files):,}")
    for name, reason in gallery.broken.items():
        print_line(f"  broken: {name}: {reason}")
    print_line(f"distinct images             {estimate.cached + estimate.to_send:,}")
    print_request_estimate(estimate)
    return 0


def _ask(
    gallery: CheckedImages, captioner: Captioner, client: ModelClient, options: argparse.Namespace
) -> int:
    import asyncio

    from sightline.builders.read import write_captions

    out = Path(options.out)
    with client.store() as store:
        describing = captioner.describe(gallery.files.values(), store, show_progress=not options.quiet)
        by_digest = asyncio.run(describing)
    print_requests(client)
    captions = gallery.named(by_digest)
    written = sum(bool(one.text) for one in captions.values())
    if written:
        write_captions(captions, options.model, out)
        print_line(f"{out}: {written:,} captions of {len(set(by_digest)):,} distinct images")
    truncated = sum(one.cut for one in captions.values() if one.text)
    if truncated:
        print_note(f"{truncated:,} captions are truncated; raise --gen max_tokens=N")
    missing = {**gallery.broken, **{name: one.missing for name, one in captions.items() if one.missing}}
    total = len(captions) + len(gallery.broken)
    return request_exit_status(client, missing, f"{total:,} images", "caption")
