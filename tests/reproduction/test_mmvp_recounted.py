"""MMVP's metrics against a recount by the released gpt_grader.py, which reads answer.jsonl line by line."""

from __future__ import annotations

import csv
import json
import random
import re
import threading
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from itertools import product
from pathlib import Path
from typing import Any

import pytest
from tests.reproduction.recount import Row, Unit, check, draw, evaluate, write_lines

from sightline.cli.main import main

TEXTS = (("Open", "Closed"), ("Facing left", "Facing right"), ("1", "2"))
QUESTIONS = ("Is the door open or closed?", "Which way does the horse face?", "How many cups are there?")
STATED = (
    *(
        "{0}",
        "({0})",
        "({0}) {2}",
        "{2}",
        "**({0})**",
        "Answer: ({0})",
        "\\boxed{{{0}}}",
        "The answer is ({0}).",
    ),
    *("It is not ({1}). Answer: ({0})", "({0}) {2}, not {3}", "All of this speaks for ({0})"),
)
UNSTATED = ("Neither.", "It cannot be told.", "Answer: (a). Answer: (b)", "The answer is (e).")
DISPUTED = (99, 100, 279, 280)


def records(folder: Path, pairs: int) -> list[Row]:
    """Questions.csv in the released columns; (a) is right for the first image of two of three pairs."""
    made = []
    for number in range(1, 2 * pairs + 1):
        pair = (number - 1) // 2
        draw(folder, f"MMVP Images/{number}.jpg", number)
        letter = "ab"[(number + (pair % 3 == 2) + 1) % 2]
        first, second = TEXTS[pair % 3]
        made.append(
            {
                "Index": number,
                "Question": QUESTIONS[pair % 3],
                "Options": f"(a) {first} (b) {second}",
                "Correct Answer": f"({letter})",
            }
        )
    with (folder / "Questions.csv").open("w", newline="") as file:
        writer = csv.DictWriter(file, list(made[0]))
        writer.writeheader()
        writer.writerows(made)
    return made


def other_letter(record: Row) -> str:
    return "(b)" if record["Correct Answer"] == "(a)" else "(a)"


def line_of(record: Row, response: str) -> Row:
    """A line of answer.jsonl as the released evaluate_mllm.py writes it."""
    return {
        "question_id": record["Index"],
        "prompt": f"{record['Question']} {record['Options']}",
        "answer": record["Correct Answer"],
        "response": response,
        "answer_id": f"id{record['Index']}",
        "model_id": "llava",
    }


def answers(made: Sequence[Row], seed: int, *, fails: bool) -> tuple[list[Row], list[str]]:
    """The lines of answer.jsonl and what became of each question."""
    pick, lines, fates = random.Random(seed), [], []
    weights = (70, 15, 6, 3, *((3, 3) if fails else (0, 0)))
    for record in made:
        fate = pick.choices(("right", "wrong", "miss", "empty", "failed", "missing"), weights)[0]
        fates.append(fate)
        right = str(record["Correct Answer"])[1]
        wrong = "b" if right == "a" else "a"
        response = pick.choice(UNSTATED) if fate == "miss" else ""
        if fate in ("right", "wrong"):
            said, other = (right, wrong) if fate == "right" else (wrong, right)
            texts = TEXTS[(record["Index"] - 1) // 2 % 3][:: 1 if said == "a" else -1]
            response = pick.choice(STATED).format(said, other, *texts)
        if fate == "failed":
            lines.append(line_of(record, "") | {"response": {"error": "the server closed the connection"}})
        elif fate != "missing":
            lines.append(line_of(record, response))
    return lines, fates


def units(rights: Sequence[bool]) -> Mapping[str, list[Unit]]:
    """Two lines in a row are a pair, which is right if both are, and a cluster."""
    pairs = list(zip(rights[::2], rights[1::2], strict=True))
    return {
        "acc_p": [(f"{place}", first and second) for place, (first, second) in enumerate(pairs)],
        "acc_q": [(f"{place}", right) for place, pair in enumerate(pairs) for right in pair],
    }


def check_rows(found: Row, rights: Sequence[bool]) -> None:
    for metric, members in units(rights).items():
        check(found["rows"][metric, "all"], members)


@pytest.mark.parametrize("seed", [1, 2, 3])
def test_pairs_and_questions_are_counted_as_the_grader_counts_lines(tmp_path: Path, seed: int) -> None:
    data = tmp_path / "data"
    made = records(data, 60)
    lines, fates = answers(made, seed, fails=True)
    file = str(write_lines(tmp_path / "answer.jsonl", lines))
    found = evaluate("score", "mmvp", file, "--allow-missing", data=data, out=tmp_path / "out", status=1)
    check_rows(found, [fate == "right" for fate in fates])
    assert found["rows"]["miss", "all"]["value"] == pytest.approx(100 * fates.count("miss") / 120)
    assert found["errors"] == fates.count("failed") + fates.count("missing")
    replayed = evaluate("run", "mmvp", "--model", f"replay/{file}", data=data, out=tmp_path / "run", status=1)
    assert replayed["metrics"] == found["metrics"]


def test_a_line_without_a_response_is_named(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    made = records(tmp_path / "data", 2)
    lines = [line_of(record, "(a)") for record in made]
    del lines[2]["response"]
    file = str(write_lines(tmp_path / "answer.jsonl", lines))
    assert main(["score", "mmvp", file, "--data", str(tmp_path / "data")]) == 2
    assert "record 3, field response: has no response" in capsys.readouterr().err


def test_all_outcomes_of_a_pair_have_the_chance_values(tmp_path: Path) -> None:
    made = records(tmp_path / "data", 4)
    outcomes = [is_right for pair in product((False, True), repeat=2) for is_right in pair]
    lines = [
        line_of(record, record["Correct Answer"] if is_right else other_letter(record))
        for record, is_right in zip(made, outcomes, strict=True)
    ]
    file = str(write_lines(tmp_path / "answer.jsonl", lines))
    rows = evaluate("score", "mmvp", file, data=tmp_path / "data", out=tmp_path / "out")["rows"]
    assert (rows["acc_p", "all"]["value"], rows["acc_q", "all"]["value"]) == (25, 50)


@contextmanager
def grader(replies: Mapping[str, str], asked: list[Any]) -> Iterator[str]:
    """A server that grades by the prompt of its last message; its URL."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            asked.append(body["messages"])
            content = body["messages"][-1]["content"]
            text = content if isinstance(content, str) else "".join(part.get("text", "") for part in content)
            message = {"role": "assistant", "content": replies.get(text, "I was asked something else.")}
            reply = {"model": "gpt", "choices": [{"message": message, "finish_reason": "stop", "index": 0}]}
            sent = json.dumps(reply).encode()
            self.send_response(200)
            self.send_header("Content-Type", "application/json")
            self.send_header("Content-Length", str(len(sent)))
            self.end_headers()
            self.wfile.write(sent)

        def log_message(self, *_: Any) -> None:
            """Nothing is printed."""

    server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
    thread = threading.Thread(target=server.serve_forever)
    thread.start()
    try:
        yield f"http://127.0.0.1:{server.server_port}/v1#gpt"
    finally:
        server.shutdown()
        thread.join()
        server.server_close()


def test_a_judge_model_is_asked_and_read_as_in_the_grader(tmp_path: Path) -> None:
    data = tmp_path / "data"
    made, pick = records(data, 30), random.Random(4)
    lines, _ = answers(made, 4, fails=False)
    replies, rights = {}, []
    for line in lines:
        line["response"] += f" [{line['question_id']}]"
        prompt = (
            f"Given the following question {line['prompt']}, the correct answer is {line['answer']}. "
            f"Does the following answer correctly answers the question, answer:{line['response']}?"
        )
        reply = pick.choice(("yes", "Yes", "YES", "yes", "no", "No", "yes.", "Yes, it does.", "unsure"))
        replies[prompt] = reply
        graded = reply.lower() if re.fullmatch("yes|no", reply, re.IGNORECASE) else "undetermined"
        rights.append(graded == "yes")
    file = str(write_lines(tmp_path / "answer.jsonl", lines))
    asked: list[Any] = []
    with grader(replies, asked) as url:
        rest = ("--judge", url, "--fingerprint", "off")
        found = evaluate("score", "mmvp", file, *rest, data=data, out=tmp_path / "out")
    check_rows(found, rights)
    system = "You are a helpful and precise assistant for checking the quality of the answer."
    assert {messages[0]["content"] for messages in asked} == {f"{system} Please answer in only yes or no."}


def test_the_corrections_swap_the_answers_of_the_two_disputed_pairs(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = tmp_path / "data"
    made = records(data, 150)
    lines, fates = answers(made, 5, fails=False)
    for number in DISPUTED:
        fates[number - 1] = "wrong"
        lines[number - 1]["response"] = other_letter(made[number - 1])
    file = str(write_lines(tmp_path / "answer.jsonl", lines))
    found = evaluate("score", "mmvp", file, data=data, out=tmp_path / "out")
    rights = [fate == "right" for fate in fates]
    check_rows(found, rights)
    capsys.readouterr()
    assert main(["report", str(tmp_path / "out"), "--corrections", "mmvp", "--json"]) == 0
    (table,) = json.loads(capsys.readouterr().out)
    for number in DISPUTED:
        rights[number - 1] = True
    assert len(table["rows"]) == 2
    for row in table["rows"]:
        revised = {name: row[f"revised {name}"] for name in ("value", "low", "high", "interval", "n")}
        check(revised | {"clusters": 150}, units(rights)[row["metric"]])
