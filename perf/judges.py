"""A judge that is asked while the model answers, beside one that is asked at the end: whole processes.

    python perf/judges.py [--short] [--json FILE]

Model and judge are two local servers with the same latencies. A limit of requests that nothing reaches makes
the judge wait for the end. Both runs must count the same requests and write the same answers; otherwise the
script fails.
"""

from __future__ import annotations

import re
import tempfile
from pathlib import Path

from engine import REALISTIC, Server
from process_usage import ProcessUsage, draw_scenes
from report import Report, new_parser

QUESTIONS, SHORT_QUESTIONS = 600, 60
CONCURRENCY = 16


def main() -> None:
    """Measure and print."""
    parser = new_parser(__doc__)
    parser.add_argument("--short", action="store_true", help=f"{SHORT_QUESTIONS} questions")
    options = parser.parse_args()
    report = Report()
    report.table("", "run", "wall", "ratio to the run without a judge", "processor", "peak MB")
    with tempfile.TemporaryDirectory() as folder:
        _measure(Path(folder), SHORT_QUESTIONS if options.short else QUESTIONS, report)
    report.save(options.json)


def _measure(folder: Path, questions: int, report: Report) -> None:
    data = draw_scenes(folder / "data", "contextual", questions)
    with (
        Server((*REALISTIC, "--pad", "3", "--letters", "12")) as model,
        Server((*REALISTIC, "--words", "yes|no")) as judge,
    ):

        def run(name: str, *words: str) -> ProcessUsage:
            places = ["--data", str(data), "--store", str(folder / f"{name}.db"), "--out", str(folder / name)]
            asked = ["--model", _name(model), "--concurrency", str(CONCURRENCY), "--split", "val", "--quiet"]
            judge.reset()
            return model.run(["-m", "sightline", "run", "contextual", *asked, *places, *words]).usage

        alone = run("alone")
        early = run("early", "--judge", _name(judge))
        at_end = run("at_end", "--judge", _name(judge), "--max-requests", "1000000")
    # How long an answer took is measured, and the same in no two runs.
    texts = [(folder / name / "answers.jsonl").read_text() for name in ("early", "at_end")]
    written = [re.sub(r'"latency":[0-9.e-]+', "", text) for text in texts]
    assert written[0] == written[1], "the answers differ"
    for name, usage in (
        ("without a judge", alone),
        ("with a judge, asked while the model answers", early),
        ("with a judge, asked at the end", at_end),
    ):
        report.row(
            name,
            f"{usage.wall:.1f} s",
            f"{usage.wall / alone.wall:.2f}",
            f"{usage.cpu:.1f} s",
            f"{usage.memory:.0f}",
        )


def _name(server: Server) -> str:
    return f"http://127.0.0.1:{server.port}/v1#mock"


if __name__ == "__main__":
    main()
