"""`sightline build rephrase`: long questions in three other words each, by a chat model."""

from __future__ import annotations

import argparse
import asyncio
import sys
from collections import Counter
from collections.abc import Mapping
from pathlib import Path
from typing import TYPE_CHECKING

from sightline.cli.build_options import add_building, draw, limited, preview_path, tell, tell_unanswered
from sightline.cli.options import add_asking, add_dry_run, add_model, add_store, asking_of_model
from sightline.cli.printing import print_budget_stop, requests_summary

if TYPE_CHECKING:
    from sightline.builders.rephrase import RephraseJob
    from sightline.engine.client import ModelClient

SUMMARY = "questions in three other words each, by a chat model (MM-R3)"

EXAMPLE = """examples:
  sightline build rephrase OpenEnded_mscoco_val2014_questions.json --images val2014 --out rephrased
      --annotations mscoco_val2014_annotations.json --model openai/gpt-3.5-turbo
  sightline build rephrase infographicsVQA_val_v1.0_withQT.json --images images --out rephrased
      --model http://localhost:8000/v1#llama
  sightline build rephrase questions.jsonl --model http://localhost:8000/v1#llama --out mine --dry-run

A table (JSON Lines or CSV) has the columns image, question, and answer or answers. The model sees the
question and its first known answer, never the image. A reply that cannot be used is asked for again, twice
at most; what was asked is remembered in the store, so that the same command builds the same folder.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `build rephrase`."""
    parser.epilog = EXAMPLE
    source = parser.add_argument_group("what is rephrased")
    add = source.add_argument
    add("sources", nargs="+", metavar="SOURCE", help="questions: OKVQA's, InfographicVQA's, JSONL or CSV")
    add("--images", action="append", default=[], metavar="DIR", help="folder of their images; may repeat")
    add("--annotations", metavar="FILE", help="OKVQA's answers (default: mscoco_..._annotations.json beside)")
    add(
        "--min-words",
        type=int,
        default=11,
        metavar="N",
        help="leave shorter questions out (default 11)",
    )
    add_building(parser, images=False)
    asking = parser.add_argument_group("asking")
    add_model(asking)
    add_asking(asking)
    add_store(asking)
    add_dry_run(asking)
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Ask, and build the folder; 1 where a question has no answer yet, 4 where the budget is reached."""
    from sightline.builders.built_folder import refuse_other_contents
    from sightline.builders.question_files import read_questions
    from sightline.builders.rephrase import SAMPLING, prepare
    from sightline.engine.client import ModelClient

    out, sheet = Path(options.out), preview_path(options)
    questions = read_questions(
        [Path(file) for file in options.sources],
        [Path(folder) for folder in options.images],
        annotations=Path(options.annotations) if options.annotations else None,
        min_words=options.min_words,
    )
    # Another seed asks anew, for other rephrasings; the same one finds its replies in the store.
    asking = asking_of_model(options, fresh=f"seed {options.seed}" if options.seed else "")
    client = ModelClient(asking, SAMPLING)
    job = prepare(
        limited(questions.sources, options),
        client,
        seed=options.seed,
        min_words=options.min_words,
        passed_over=questions.passed_over,
        apart_from=[Path(folder) for folder in options.apart_from],
    )
    refuse_other_contents(out, job.build, force=options.force)
    return _dry_run(job, client) if options.dry_run else _build(job, client, options, sheet)


def _dry_run(job: RephraseJob, client: ModelClient) -> int:
    from sightline.builders.rephrase import estimate

    with client.store(only_read=True) as store:
        found = estimate(job, client, store)
    print(f"questions                   {found.questions:,}")
    for reason, count in job.passed_over.items():
        print(f"  passed over: {count:,}, {reason}")
    _tell_dropped(job.dropped)
    print(f"requests known already      {found.known:,}")
    print(f"requests to be sent         {found.to_ask_at_least:,} to {found.to_ask_at_most:,}")
    return 0


def _build(job: RephraseJob, client: ModelClient, options: argparse.Namespace, sheet: Path | None) -> int:
    from sightline.builders.rephrase import rephrase, write

    out, counts = Path(options.out), client.counts
    if not options.quiet:
        print(f"{len(job.sources):,} questions to rephrase, {len(job.dropped):,} dropped", file=sys.stderr)
    with client.store() as store:
        found = asyncio.run(rephrase(job, client, store, show_progress=not options.quiet))
    unanswered = {name: one.unanswered for name, one in found.items() if one.unanswered}
    print(requests_summary(counts), file=sys.stderr)
    if any(one.rephrasings for one in found.values()) or not unanswered:
        tell(write(job, found, out, force=options.force), out)
        draw(out, sheet, options.seed)
    if counts.stopped == "budget":
        print_budget_stop("requests to the model")
    if unanswered:
        tell_unanswered(unanswered, f"{len(job.sources):,} questions", "answer")
    return 4 if counts.stopped == "budget" else 1 if unanswered else 0


def _tell_dropped(dropped: Mapping[str, str]) -> None:
    for reason, count in Counter(dropped.values()).items():
        print(f"  dropped: {count:,}, {reason}")
