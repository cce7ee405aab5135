"""`sightline build rephrase`: three rephrasings of each long question, by a chat model."""

from __future__ import annotations

import argparse
import asyncio
from collections import Counter
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.build_options import (
    add_building,
    add_requests,
    draw_sheet,
    estimate_requests,
    limited,
    preview_path,
    print_built,
    print_requests,
    request_exit_status,
)
from sightline.cli.options import model_client_options
from sightline.output import print_line, print_note

if TYPE_CHECKING:
    from sightline.builders.rephrase import RephraseJob
    from sightline.engine.client import ModelClient

SUMMARY = "write three rephrasings of each question with a chat model (MM-R3)"

EXAMPLE = """examples:
  sightline build rephrase OpenEnded_mscoco_val2014_questions.json --images val2014 --out rephrased
      --annotations mscoco_val2014_annotations.json --model openai/gpt-3.5-turbo
  sightline build rephrase infographicsVQA_val_v1.0_withQT.json --images images --out rephrased
      --model http://localhost:8000/v1#llama
  sightline build rephrase questions.jsonl --model http://localhost:8000/v1#llama --out mine --dry-run

A table (JSON Lines or CSV) has the columns image, question, and answer or answers. The model receives the
question and its first answer, never the image. After an unusable reply, the request is sent again, at most
twice. Replies are cached in the store: the same command builds the same folder.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build rephrase`."""
    parser.epilog = EXAMPLE
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
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Ask and build the folder; returns 1 if a question has no answer yet, 4 if the budget is reached."""
    from sightline.builders.built_folder import refuse_other_contents
    from sightline.builders.question_files import read_questions
    from sightline.builders.rephrase import SAMPLING, prepare_rephrasing
    from sightline.engine.client import ModelClient

    out, sheet = Path(options.out), preview_path(options)
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
    return _dry_run(job, client) if options.dry_run else _build(job, client, options, sheet)


def _dry_run(job: RephraseJob, client: ModelClient) -> int:
    from sightline.builders.rephrase import rephrasing_requests

    print_line(f"questions                   {len(job.sources):,}")
    for reason, count in job.passed_over.items():
        print_line(f"  passed over: {count:,}, {reason}")
    for reason, count in Counter(job.dropped.values()).items():
        print_line(f"  dropped: {count:,}, {reason}")
    estimate_requests(rephrasing_requests(job, client), client)
    return 0


def _build(job: RephraseJob, client: ModelClient, options: argparse.Namespace, sheet: Path | None) -> int:
    from sightline.builders.rephrase import rephrase, write_rephrasings
    from sightline.builders.reply_retries import unanswered_reasons

    out = Path(options.out)
    if not options.quiet:
        print_note(f"{len(job.sources):,} questions to rephrase, {len(job.dropped):,} dropped")
    with client.store() as store:
        results = asyncio.run(rephrase(job, client, store, show_progress=not options.quiet))
    unanswered = unanswered_reasons(results)
    print_requests(client)
    if any(one.value for one in results.values()) or not unanswered:
        print_built(write_rephrasings(job, results, out, force=options.force), out)
        draw_sheet(out, sheet, options.seed)
    return request_exit_status(client, unanswered, f"{len(job.sources):,} questions", "answer")
