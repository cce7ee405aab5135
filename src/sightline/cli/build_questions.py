"""`sightline build`: what writes or measures texts (rephrase, synthesize, equivalence), curates or splits."""

from __future__ import annotations

import argparse
import os
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.build_options import (
    add_building,
    add_limit,
    add_output,
    add_requests,
    add_workers,
    estimate_requests,
    limited,
    print_built,
    print_by_reason,
    print_requests,
    request_exit_status,
    workers,
)
from sightline.cli.options import (
    add_quiet,
    add_request_limits,
    add_store,
    client_options,
    model_client_options,
    pairs,
)
from sightline.cli.printing import plain_table, print_budget_stop, print_json
from sightline.errors import UserError, some_of
from sightline.text import print_line, print_note

if TYPE_CHECKING:
    from sightline.builders.curate import CurationOptions, Funnel
    from sightline.builders.equivalence import EquivalenceMeasure, EquivalenceReport, VariantPair
    from sightline.builders.rephrase import RephraseJob
    from sightline.builders.synthesize import SynthesisJob
    from sightline.builders.wording import Wording
    from sightline.engine.client import ModelClient
    from sightline.models.embedder import Embedder
    from sightline.models.ocr import Reader
    from sightline.reporting.table import ReportTable


# -- `sightline build rephrase`: three rephrasings of each long question, by a chat model

REPHRASE_EXAMPLE = """examples:
  sightline build rephrase OpenEnded_mscoco_val2014_questions.json --images val2014 --out rephrased
      --annotations mscoco_val2014_annotations.json --model openai/gpt-3.5-turbo
  sightline build rephrase infographicsVQA_val_v1.0_withQT.json --images images --out rephrased
      --model http://localhost:8000/v1#llama
  sightline build rephrase questions.jsonl --model http://localhost:8000/v1#llama --out mine --dry-run

A table (JSON Lines or CSV) has the columns image, question, and answer or answers. The model receives the
question and its first answer, never the image. After an unusable reply, the request is sent again, at most
twice. Replies are cached in the store: the same command builds the same folder.
"""


def register_rephrase(parser: argparse.ArgumentParser) -> None:
    parser.epilog = REPHRASE_EXAMPLE
    add = parser.add_argument_group("questions").add_argument
    add("sources", nargs="+", metavar="SOURCE", help="questions: OKVQA's, InfographicVQA's, JSONL or CSV")
    add("--images", action="append", default=[], metavar="DIR", help="folder of their images; may repeat")
    add(
        "--annotations",
        metavar="FILE",
        help="OKVQA's answers (default: mscoco_..._annotations.json in the same folder)",
    )
    add("--min-words", type=int, default=11, metavar="N", help="leave out shorter questions (default: 11)")
    add_building(parser, images=False)
    add_requests(parser, fresh=False)
    parser.set_defaults(execute=execute_rephrase)


def execute_rephrase(options: argparse.Namespace) -> int:
    """Ask and build the folder; returns 1 if a question has no answer yet, 4 if the budget is reached."""
    from sightline.builders.folder import refuse_other_contents
    from sightline.builders.rephrase import SAMPLING, prepare_rephrasing, read_questions
    from sightline.engine.client import ModelClient

    out = Path(options.out)
    questions = read_questions(
        [Path(file) for file in options.sources],
        [Path(folder) for folder in options.images],
        annotations=Path(options.annotations) if options.annotations else None,
        min_words=options.min_words,
    )
    # Another seed asks for other rephrasings; with the same seed the store has the replies.
    asking = model_client_options(options, fresh=f"seed {options.seed}" if options.seed else "")
    client = ModelClient(asking, SAMPLING)
    job = prepare_rephrasing(
        limited(questions.sources, options),
        client,
        seed=options.seed,
        min_words=options.min_words,
        passed_over=questions.passed_over,
        apart_from=[Path(folder) for folder in options.apart_from],
    )
    refuse_other_contents(out, job.identity, force=options.force)
    return _rephrasing_dry_run(job, client) if options.dry_run else _build_rephrasings(job, client, options)


def _rephrasing_dry_run(job: RephraseJob, client: ModelClient) -> int:
    from sightline.builders.rephrase import rephrasing_requests

    print_line(f"questions                   {len(job.sources):,}")
    for reason, count in job.passed_over.items():
        print_line(f"  passed over: {count:,}, {reason}")
    for reason, count in Counter(job.dropped.values()).items():
        print_line(f"  dropped: {count:,}, {reason}")
    estimate_requests(rephrasing_requests(job, client), client)
    return 0


def _build_rephrasings(job: RephraseJob, client: ModelClient, options: argparse.Namespace) -> int:
    import asyncio

    from sightline.builders.rephrase import rephrase, write_rephrasings
    from sightline.builders.replies import unanswered_reasons

    out = Path(options.out)
    if not options.quiet:
        print_note(f"{len(job.sources):,} questions to rephrase, {len(job.dropped):,} dropped")
    with client.store() as store:
        results = asyncio.run(rephrase(job, client, store, show_progress=not options.quiet))
    unanswered = unanswered_reasons(results)
    print_requests(client)
    if any(one.value for one in results.values()) or not unanswered:
        print_built(write_rephrasings(job, results, out, force=options.force), out)
    return request_exit_status(client, unanswered, f"{len(job.sources):,} questions", "answer")


# -- `sightline build reword`: other wordings of the questions of a groups file

REWORD_EXAMPLE = """examples:
  sightline data groups questions.csv --group id --prompt question --options A B C D --references answer
  sightline build reword data/questions --kind typos --kind case --kind options --out data/reworded.jsonl
  sightline build reword mine.jsonl --kind templates --template "Look closely. {question}" --out looked.jsonl
  sightline build reword mine.jsonl --language German --language Hindi --model openai/gpt-4o --out two.jsonl
  sightline run groups:data/reworded.jsonl --model http://localhost:8000/v1#llava --name reworded
  sightline report reworded --by wording

Every line stays, with the label `wording` = asked; each of its wordings is another variant of its group.
typos: in words of four letters or more, never in numbers, placeholders, quoted texts, options or answers.
case: lower and upper. templates: texts around the question. negation: of questions for yes or no, in a
group of its own with the other answer. options: their orders; references become texts of options.
--language: a chat model translates the question. Lines without a wording are counted with the reason.
"""
WORDINGS = ("typos", "case", "templates", "negation", "options")


def register_reword(parser: argparse.ArgumentParser) -> None:
    parser.epilog = REWORD_EXAMPLE
    group = parser.add_argument_group("wordings")
    add = group.add_argument
    add("groups", metavar="GROUPS", help="groups file, or a folder with groups.jsonl")
    add("--kind", action="append", default=[], choices=WORDINGS, help="what to change; may repeat")
    add("--rate", type=float, action="append", metavar="N", help="typos per 100 letters (default: 2, 5, 10)")
    add(
        "--template",
        action="append",
        metavar="TEXT",
        help="text with {question}; may repeat",
    )
    add("--orders", type=int, metavar="N", help="N random orders of options (default: all rotations)")
    add("--language", action="append", default=[], metavar="NAME", help="language; may repeat")
    add("--answer-in", default="English", metavar="NAME", help="language of its answers (default: English)")
    add("--seed", type=int, default=0, metavar="N", help="seed of typos, orders, replies (default: 0)")
    add_limit(group, "groups")
    add("--out", required=True, metavar="FILE", help="groups file, above the images of GROUPS")
    add_output(group, force="replace FILE")
    add_requests(parser, fresh=False, model_required=False)
    parser.set_defaults(execute=execute_reword)


def execute_reword(options: argparse.Namespace) -> int:
    """Write the file; returns 1 if a question has no translation yet, 4 if the budget is reached."""
    import asyncio

    from sightline.benchmarks.groups.data import GROUPS
    from sightline.builders import wording
    from sightline.builders.replies import collect_replies, dropped_reasons, unanswered_reasons
    from sightline.engine.client import ModelClient
    from sightline.formats.files import refuse_overwriting

    file, out = Path(options.groups), Path(options.out)
    file = file / GROUPS if file.is_dir() else file
    limited([], options)
    made = wording.reword_groups(file, _wording(options), options.limit)
    if options.dry_run:
        print_line(f"wordings                    {sum(len(others) for _, others in made.lines):,}")
    else:
        refuse_overwriting(out, options.force, read=[file])
    client, results = None, {}
    if options.model:
        asking = model_client_options(options, fresh=f"seed {options.seed}" if options.seed else "")
        client = ModelClient(asking, wording.SAMPLING)
        requests = wording.translation_requests(made.asked, client)
        if options.dry_run:
            estimate_requests(requests, client)
        else:
            with client.store() as store:
                show = not options.quiet
                replies = collect_replies(requests, client, store, "translating", show_progress=show)
                results = asyncio.run(replies)
            print_requests(client)
    for reason, count in Counter({**made.left_out, **dropped_reasons(results)}.values()).most_common():
        print_note(f"  left out: {count:,}, {reason}")
    if options.dry_run:
        return 0
    lines = list(wording.with_translations(made, results, options.answer_in))
    wording.write_rewordings(lines, file, out)
    print_line(f"{out}: {len({line.group for line in lines}):,} groups, {len(lines):,} probes")
    if client is None:
        return 0
    unanswered = unanswered_reasons(results)
    return request_exit_status(client, unanswered, f"{len(made.asked):,} questions", "translation")


def _wording(options: argparse.Namespace) -> Wording:
    from sightline.builders.wording import TEMPLATES, Wording

    needed = [("rate", "typos"), ("template", "templates"), ("orders", "options")]
    for option, kind in needed:
        if getattr(options, option) is not None and kind not in options.kind:
            raise UserError(f"--{option} has no effect", expected=f"--kind {kind} with it")
    if bool(options.language) != bool(options.model):
        raise UserError("--language and --model belong together", expected="both, or neither")
    if not options.kind and not options.language:
        raise UserError("nothing is to be reworded", expected="--kind NAME, or --language NAME")
    for rate in options.rate or ():
        if not 0 < rate <= 20:
            raise UserError("--rate is wrong", found=rate, expected="more than 0 and at most 20")
    for template in options.template or ():
        if "{question}" not in template:
            raise UserError("--template has no {question}", found=template)
    if options.orders is not None and options.orders < 1:
        raise UserError("--orders is too small", found=options.orders, expected="1 or more")
    return Wording(
        kinds=tuple(dict.fromkeys(options.kind)),
        rates=tuple(dict.fromkeys(options.rate or Wording().rates)),
        templates=tuple(dict.fromkeys(options.template or TEMPLATES)),
        orders=options.orders,
        languages=tuple(dict.fromkeys(options.language)),
        seed=options.seed,
    )


# -- `sightline build synthesize`: instructions for images, with responses, by a model that takes images

SYNTHESIZE_EXAMPLE = """examples:
  sightline build synthesize --model openai/gpt-4o --images raw --examples data/contextual --out written
  sightline annotate new verify written/contextual_synthetic.csv --name synthetic
  sightline annotate invite synthetic Anna Ben          (then sightline serve, until all are judged)
  sightline annotate export synthetic --out synthetic
  sightline run contextual --split synthetic --data synthetic/verified --model http://localhost:8000/v1#llava

The prompt shows the two examples of Figure 22, good and bad instructions with the reasons, and then the
image. The examples' images are ConTextual's own. After an unusable reply, the request is sent again, at
most twice. Replies are cached in the store: the same command builds the same folder. DIR receives images/ and
contextual_synthetic.csv. Let humans accept the instructions with `sightline annotate new verify`.
"""


def register_synthesize(parser: argparse.ArgumentParser) -> None:
    parser.epilog = SYNTHESIZE_EXAMPLE
    group = parser.add_argument_group("images")
    add = group.add_argument
    add("--images", required=True, metavar="DIR", help="candidates: any folder of images, or a data folder")
    add(
        "--examples",
        metavar="DIR",
        help="ConTextual's data folder with the two images of the prompt (default: SIGHTLINE_DATA)",
    )
    add(
        "--category",
        metavar="NAME",
        help="category of all instructions (default: Miscellaneous Natural Scenes)",
    )
    add_limit(group, "images")
    building = parser.add_argument_group("building")
    building.add_argument(
        "--out",
        required=True,
        metavar="DIR",
        help="folder for contextual_synthetic.csv, images/, manifest.json",
    )
    add_output(building)
    add_requests(parser)
    parser.set_defaults(execute=execute_synthesize)


def execute_synthesize(options: argparse.Namespace) -> int:
    """Ask and build the folder; returns 1 if an image has no answer yet, 4 if the budget is reached."""
    from sightline.builders.folder import refuse_other_contents, refuse_out_inside_inputs
    from sightline.builders.sources import check_images, images_in
    from sightline.builders.synthesize import CATEGORY, SAMPLING, example_images, prepare_synthesis
    from sightline.engine.client import ModelClient

    client = ModelClient(model_client_options(options, options.fresh), SAMPLING)
    data = options.examples or os.environ.get("SIGHTLINE_DATA")
    examples = example_images(Path(data) if data else None)
    folder, out = Path(options.images), Path(options.out)
    refuse_out_inside_inputs(out, [folder, *(Path(example.path) for example in examples)])
    images = limited(list(images_in(folder).items()), options)
    gallery = check_images(dict(images), show_progress=not options.quiet)
    category = CATEGORY if options.category is None else options.category
    job = prepare_synthesis(gallery, examples, client, category=category)
    refuse_other_contents(out, job.identity, force=options.force)
    return _synthesis_dry_run(job, client) if options.dry_run else _build_synthesis(job, client, options)


def _synthesis_dry_run(job: SynthesisJob, client: ModelClient) -> int:
    from sightline.builders.synthesize import instruction_requests

    print_line(f"images                      {len(job.images):,}")
    print_line(f"  dropped: {len(job.dropped):,}")
    estimate_requests(instruction_requests(job, client), client, ", of three images each")
    return 0


def _build_synthesis(job: SynthesisJob, client: ModelClient, options: argparse.Namespace) -> int:
    import asyncio

    from sightline.builders.replies import unanswered_reasons
    from sightline.builders.synthesize import TABLE, synthesize, write_instructions

    out = Path(options.out)
    with client.store() as store:
        results = asyncio.run(synthesize(job, client, store, show_progress=not options.quiet))
    unanswered = unanswered_reasons(results)
    print_requests(client)
    if any(one.value for one in results.values()) or not unanswered:
        manifest = write_instructions(job, results, out, force=options.force)
        print_line(f"{out / TABLE}: {manifest.groups:,} instructions with responses; let humans accept them:")
        print_line(f"  sightline annotate new verify {out / TABLE} --name synthetic")
        print_by_reason(manifest.dropped)
    return request_exit_status(client, unanswered, f"{len(job.images):,} images", "instruction")


# -- `sightline build equivalence`: measures how far variants mean the same as their originals

EQUIVALENCE_EXAMPLE = """examples:
  sightline annotate new equivalence rephrased --name pairs           (then invite, serve, export --out pairs)
  sightline build equivalence rephrased --human pairs/verdicts.jsonl
  sightline build equivalence rephrased --judge openai/gpt-4o --similarity --json

The three measures are reported separately (MM-R3, section 3.2: humans found 92 % of 100 rephrasings and 86 %
of 100 restyled images equivalent). `annotate new equivalence` samples pairs, one per group, for humans. A
judge model and sentence similarity compare questions only; humans compare images too.
"""
PRINTED_PAIRS = 5


def register_equivalence(parser: argparse.ArgumentParser) -> None:
    parser.epilog = EQUIVALENCE_EXAMPLE
    parser.add_argument("folder", metavar="DIR", help="built folder")
    add = parser.add_argument_group("measures").add_argument
    add("--human", metavar="FILE.jsonl", help="verdicts.jsonl of `annotate export`")
    add("--judge", metavar="SPEC", help="chat model that decides whether two questions mean the same")
    add("--judge-gen", action="append", default=[], metavar="KEY=VALUE", help="sampling option for the judge")
    add("--similarity", action="store_true", help="compute sentence similarity of questions")
    add("--embedder", metavar="NAME", help="embedder for --similarity (default: all-MiniLM-L6-v2)")
    some = "compare N sampled pairs, one per group, by judge and similarity (default: all)"
    add("--pairs", type=int, metavar="N", help=some)
    add(
        "--seed",
        type=int,
        default=0,
        metavar="N",
        help="seed of the sample (default: 0)",
    )
    add("--json", action="store_true", help="print the measures as JSON")
    add_quiet(parser)
    asking = parser.add_argument_group("requests to the judge")
    add_request_limits(asking)
    add_store(asking)
    parser.set_defaults(execute=execute_equivalence)


def execute_equivalence(options: argparse.Namespace) -> int:
    """Measure; returns 1 if an answer of the judge is missing, 4 at the end of the budget."""
    from sightline.builders.equivalence import draw_pairs, read_pairs
    from sightline.engine.client import ModelClient
    from sightline.scoring.scorer import JUDGE_SAMPLING

    _check_options(options)
    every = read_pairs(Path(options.folder))
    drawn = every if options.pairs is None else draw_pairs(every, options.pairs, options.seed)
    client = None
    if options.judge is not None:
        gen = pairs(options.judge_gen, "--judge-gen")
        client = ModelClient(client_options(options, options.judge, gen=gen), JUDGE_SAMPLING)
    embedder = _embedder(options)
    humans = _humans(options, every)
    report = _measured(options, every, drawn, humans, client, embedder)
    _print_equivalence(report, options.json)
    if client is not None and client.counts.stopped == "budget":
        print_budget_stop("judging")
        return 4
    return 1 if report.unanswered else 0


def _check_options(options: argparse.Namespace) -> None:
    if options.pairs is not None and options.pairs < 1:
        raise UserError(f"--pairs {options.pairs} is too small", expected="at least 1")
    if options.judge_gen and options.judge is None:
        raise UserError("--judge-gen needs a judge", expected="--judge SPEC with it")
    if options.on is not None and options.judge is None:
        raise UserError(
            f"--on {options.on} has no effect", expected="--judge with a model that Sightline runs"
        )
    if options.embedder is not None and not options.similarity:
        raise UserError("--embedder needs sentence similarity", expected="--similarity with it")


def _embedder(options: argparse.Namespace) -> Embedder | None:
    if not options.similarity:
        return None
    from sightline.models.embedder import DEFAULT, embedder

    return embedder(DEFAULT if options.embedder is None else options.embedder)


def _humans(options: argparse.Namespace, every: list[VariantPair]) -> EquivalenceMeasure | None:
    if options.human is None:
        return None
    from sightline.builders.equivalence import by_humans, kind_of_folder

    kind = kind_of_folder(Path(options.folder))
    return by_humans(every, Path(options.human), kind=kind)


def _measured(
    options: argparse.Namespace,
    every: list[VariantPair],
    drawn: list[VariantPair],
    humans: EquivalenceMeasure | None,
    client: ModelClient | None,
    embedder: Embedder | None,
) -> EquivalenceReport:
    import asyncio

    from sightline.builders.equivalence import (
        HUMANS,
        JUDGE,
        SIMILARITY,
        by_judge,
        by_similarity,
        equivalence_report,
        not_requested,
    )

    measures = {
        HUMANS: humans or not_requested(HUMANS, "--human FILE, of `annotate new equivalence`"),
        JUDGE: not_requested(JUDGE, "--judge MODEL"),
        SIMILARITY: not_requested(SIMILARITY, "--similarity"),
    }
    if embedder is not None:
        measures[SIMILARITY] = by_similarity(drawn, embedder, show_progress=not options.quiet)
    if client is not None:
        with client.store() as store:
            judging = by_judge(drawn, client, store, options.judge, show_progress=not options.quiet)
            measures[JUDGE] = asyncio.run(judging)
    identity = embedder.identity if embedder is not None else None
    return equivalence_report(Path(options.folder), every, len(drawn), measures, identity)


def _print_equivalence(report: EquivalenceReport, as_json: bool) -> None:
    if as_json:
        print_json(report)
        return
    from sightline.reporting.table import show

    show([_equivalence_table(report)])
    for name, different in report.different.items():
        listed = some_of([f"{group} {variant}" for group, variant in different], PRINTED_PAIRS)
        verdict = "not above 0.7" if name == "similarity" else "different"
        print_note(f"{name}: {verdict}: {listed}")


def _equivalence_table(report: EquivalenceReport) -> ReportTable:
    from sightline.reporting.table import Column, clusters_cell, n_cell, published_cell, value_cell
    from sightline.reporting.table import ReportTable as Table

    labels = {
        "human": "human: same meaning",
        "judge": "judge: same meaning",
        "similarity": "sentence similarity, mean",
        "similar": "sentence similarity above 0.7",
    }
    printed = [
        published_cell(metric, metric.published[0]) if metric.published else None for metric in report.metrics
    ]
    columns = [
        Column("text", "measure", "measure"),
        Column("value", "percent\n95 %", ""),
        Column("count", "pairs", "pairs"),
        Column("count", "images", "images"),
        *([Column("published", "humans\n3.2", "humans (3.2)")] if any(printed) else []),
    ]
    rows = [
        (labels[metric.metric], value_cell(metric), n_cell(metric), clusters_cell(metric))
        + ((figure,) if any(printed) else ())
        for metric, figure in zip(report.metrics, printed, strict=True)
    ]
    notes = [
        *(f"{labels[metric.metric]}: {metric.reason}" for metric in report.metrics if metric.reason),
        *(f"{metric.metric}: {metric.judge}" for metric in report.metrics if metric.judge),
        *(f"published: {value.note}" for metric in report.metrics for value in metric.published or ()),
        *report.notes,
    ]
    compared = "" if report.pairs == report.pairs_built else f", {report.pairs:,} compared"
    title = f"{report.folder}: {report.pairs_built:,} pairs of an original and a variant{compared}"
    return Table(title, tuple(columns), tuple(rows), tuple(notes))


# -- `sightline build curate`: selects raw images worth annotating, and records why others are dropped

CURATE_EXAMPLE = """examples:
  sightline build curate raw --out candidates
  sightline build curate raw --max-text 0.3 --out candidates
  sightline annotate new screen candidates --name keep         (then invite, serve, export --out screened)
  sightline build curate stvqa estvqa --top 500 --out candidates

The steps drop, in this order: broken files; exact copies; near-duplicates; images that text covers too much
(--max-text); all but the images with the most words (--top). Without --out only the counts are printed.
Hashes and OCR text are cached in the store. What remains is for humans: with `annotate new screen` they keep
or drop each image, and screened/kept is a folder of images for the next step, or for build curate again.
"""
REASONS = {
    "broken": "is broken",
    "copy": "is a copy of another file",
    "undecoded": "cannot be decoded",
    "near_duplicate": "is a near-duplicate",
    "unreadable": "OCR fails on it",
    "text": "text covers too much of the area",
    "words": "is not among the --top N by number of words",
}
"""Step -> why it drops an image."""


def register_curate(parser: argparse.ArgumentParser) -> None:
    parser.epilog = CURATE_EXAMPLE
    images = parser.add_argument_group("images")
    help_data = "folders of images, data folders, or image files"
    images.add_argument("data", metavar="DATA", nargs="+", help=help_data)
    add_limit(images, "images")
    steps = parser.add_argument_group("steps")
    add = steps.add_argument
    bits = "near-duplicates differ in at most N of 256 hash bits (default: 48)"
    add("--distance", type=int, metavar="N", help=bits)
    share = "drop images in which text covers more than this share of the area (0 to 1, for example 0.3)"
    add("--max-text", type=float, metavar="SHARE", help=share)
    add("--top", type=int, metavar="N", help="keep the N images with the most words (ConTextual: 500)")
    results = parser.add_argument_group("results")
    add = results.add_argument
    add("--out", metavar="DIR", help="folder for images/, curation.json and manifest.json")
    add("--json", action="store_true", help="print curation.json instead of the counts")
    add_output(results)
    execution = parser.add_argument_group("execution")
    add_workers(execution)
    add_store(execution)
    parser.set_defaults(execute=execute_curate)


def execute_curate(options: argparse.Namespace) -> int:
    """Take the images through the steps, write the results, print the counts; the exit status."""
    from msgspec.structs import replace

    from sightline.builders.curate import CurationOptions, curate, write_curated
    from sightline.builders.folder import refuse_out_inside_inputs
    from sightline.builders.near_duplicates import import_imagehash
    from sightline.builders.read import images_at
    from sightline.builders.sources import check_images
    from sightline.formats.files import refuse_unwritable
    from sightline.store.store import Store

    selection = CurationOptions(max_text=options.max_text, top=options.top)
    if options.distance is not None:
        selection = replace(selection, distance=options.distance)
    data = [Path(path) for path in options.data]
    if options.out:
        refuse_out_inside_inputs(Path(options.out), data)
        refuse_unwritable(Path(options.out))
    # A missing library is reported before any image is read.
    import_imagehash()
    processes, threads = workers(options)
    show_progress = not options.quiet
    reader = _reader(selection, threads)
    images = limited(list(images_at(data).items()), options)
    gallery = check_images(dict(images), show_progress=show_progress)
    store = Store.open(options.store)
    try:
        funnel = curate(
            gallery, selection, store, reader=reader, processes=processes, show_progress=show_progress
        )
    finally:
        store.close()
    if options.out is not None:
        write_curated(funnel, Path(options.out), force=options.force)
    _print_funnel(funnel, options)
    return 0


def _reader(selection: CurationOptions, threads: int) -> Reader | None:
    if not selection.needs_ocr:
        return None
    from sightline.models.ocr import RapidOcr

    return RapidOcr(threads)


def _print_funnel(funnel: Funnel, options: argparse.Namespace) -> None:
    if options.json:
        from sightline.builders.curate import curation_report

        print_json(curation_report(funnel))
        return
    from sightline.reporting.table import show

    show([_funnel_table(funnel, Path(options.out) if options.out else None)])


def _funnel_table(funnel: Funnel, out: Path | None) -> ReportTable:
    rows = ((REASONS[step.step], step.came, step.dropped, step.left) for step in funnel.steps)
    notes = []
    if out is not None:
        notes = [
            f"{len(funnel.kept):,} images in {out / 'images'}; the reasons for all in {out / 'curation.json'}"
        ]
    columns = ("reason", "#came", "#dropped", "#left")
    return plain_table(f"{len(funnel.statuses):,} images", columns, rows, notes)


# -- `sightline build split`: draws a validation split in proportion to the categories

SPLIT_EXAMPLE = """examples:
  sightline build split all.csv --out data/mine
  sightline build split all.csv --out data/mine --count 50 --seed 1
  sightline run contextual --data data/mine --split val --model openai/gpt-4o

all.csv has the columns image_url, instruction, response and category. As in ConTextual's release, DIR
receives contextual_val.csv, the sampled rows, and contextual_test.csv, all rows without their responses (the
rows of val are in test too), and the images that are next to all.csv. Of ConTextual's 506 instances, 100 are
30 natural scenes and 10 of each other category.
"""


def register_split(parser: argparse.ArgumentParser) -> None:
    parser.epilog = SPLIT_EXAMPLE
    add = parser.add_argument
    add("table", metavar="TABLE", help="CSV in ConTextual's layout, with responses")
    add("--out", required=True, metavar="DIR", help="folder for contextual_val.csv and contextual_test.csv")
    add(
        "--count",
        type=int,
        default=100,
        metavar="N",
        help="number of rows to sample (default: 100, as in the paper)",
    )
    add("--seed", type=int, default=0, metavar="N", help="seed of the sample (default: 0)")
    add("--force", action="store_true", help="replace the files of an earlier split")
    parser.set_defaults(execute=execute_split)


def execute_split(options: argparse.Namespace) -> int:
    from sightline.builders.sources import check_images
    from sightline.builders.split import split_table, write_split

    split = split_table(Path(options.table), options.count, options.seed)
    gallery = check_images(split.images)
    val, test = write_split(split, gallery.files, Path(options.out), force=options.force)
    parts = ", ".join(
        f"{split.drawn[category]} of {size} {category}" for category, size in split.sizes.items()
    )
    print_line(f"{val}: {len(split.chosen):,} rows ({parts})")
    print_line(f"{test}: all {len(split.rows):,} rows, without their responses")
    print_line(f"  images: {len(gallery.files):,} in {options.out}")
    if gallery.broken:
        print_note(f"images missing or broken: {len(gallery.broken):,}")
        print_by_reason(gallery.broken)
    return 0
