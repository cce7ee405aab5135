"""`sightline import`: predictions of other tools as answers.jsonl."""

from __future__ import annotations

import argparse
import sys
from pathlib import Path

EXAMPLE = """examples:
  sightline import model_samples_ii_bench.jsonl --task iibench:none --data data/iibench --out answers.jsonl
  sightline import outputs.json --task codis --data data/codis --out answers.jsonl
  sightline import master.json --task contextual --judgements gpt4_judgments.json --allow-missing \\
      --data data/contextual --out answers.jsonl --verdicts verdicts.jsonl

FILE may be the released layouts of CODIS, ConTextual and II-Bench, lmms-eval's sample logs, VLMEvalKit's
tables, or plain JSON lines of {"id", "variant", "response"}; each may be gzipped. Nothing is judged:
`sightline score` does. What FILE itself says of its answers goes to --verdicts, for `--judge human:FILE`.
Where FILE holds the answers of several models, they are written model by model, and `version` names it:
`score --model NAME` takes those of one, `judge-report --task` all.
"""


def register(parser: argparse.ArgumentParser) -> None:
    """Add the options of `import`."""
    parser.epilog = EXAMPLE
    parser.add_argument("file", metavar="FILE", help="the predictions")
    parser.add_argument(
        "--task", required=True, metavar="TASK", help="what they answer: codis, or iibench:SETTING"
    )
    parser.add_argument("--out", required=True, metavar="FILE", help="the answers.jsonl to write")
    parser.add_argument(
        "--data",
        metavar="DIR",
        help="data folder in the released layout (else SIGHTLINE_DATA): ids are checked against it, and "
        "questions, labels and references added; without one, what FILE says is all",
    )
    parser.add_argument("--split", metavar="S", help="split of the data")
    parser.add_argument(
        "--allow-missing", action="store_true", help="leave missing answers out instead of refusing FILE"
    )
    parser.add_argument("--model", default="", metavar="NAME", help="only this model's answers of FILE")
    parser.add_argument(
        "--verdicts", metavar="FILE", help="the verdicts.jsonl to write: what the file says of its answers"
    )
    parser.add_argument(
        "--judgements", metavar="FILE", help="ConTextual's gpt4_judgments.json about these answers"
    )
    parser.add_argument("--force", action="store_true", help="write over a FILE that exists")
    parser.set_defaults(execute=execute)


def execute(options: argparse.Namespace) -> int:
    """Write the answers."""
    from sightline.errors import UserError
    from sightline.formats.files import refuse_overwriting
    from sightline.formats.jsonl import write_answers
    from sightline.formats.read import only_of_model, read_predictions
    from sightline.formats.verdict_flags import contradictions
    from sightline.formats.verdicts import write_verdicts
    from sightline.judging.import_answers import import_answers
    from sightline.plan.effective import setting_of, variant_of
    from sightline.plan.spec import Spec
    from sightline.registry import benchmark as find_benchmark

    out, file = Path(options.out), Path(options.file)
    for path in (out, *map(Path, filter(None, [options.verdicts]))):
        refuse_overwriting(path, options.force, read=[file])
    spec = Spec(
        task=options.task, data=options.data, split=options.split, allow_missing=options.allow_missing
    )
    benchmark = find_benchmark(spec.task.partition(":")[0])
    variant = variant_of(benchmark, setting_of(benchmark, spec.task))
    read = read_predictions(file, benchmark.answer_files, setting=variant, allow_missing=spec.allow_missing)
    if options.judgements:
        read = benchmark.add_judgements(read, Path(options.judgements))
    chosen = only_of_model(read, options.model, file) if options.model else read
    found = import_answers(spec, chosen, file)
    verdicts = [verdict for one in found for verdict in one.verdicts]
    if options.verdicts and not verdicts:
        raise UserError("says nothing of its answers", file=file, expected="no --verdicts")
    write_answers([one.outcome for one in found], out)
    print(f"written: {out} ({len(found):,} answers, not judged)", file=sys.stderr)
    if found and all(one.outcome.response in one.outcome.references for one in found):
        print("every answer is its reference, word for word: FILE may be the data itself", file=sys.stderr)
    if options.verdicts:
        write_verdicts(verdicts, Path(options.verdicts))
        print(f"written: {options.verdicts} ({len(verdicts):,} verdicts)", file=sys.stderr)
        for line in contradictions(verdicts):
            print(f"contradicted: {line}", file=sys.stderr)
    return 0
