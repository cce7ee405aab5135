"""Every human task of the papers in Chromium, from `annotate new` to what the table of the docs promises."""

from __future__ import annotations

import csv
import json
import os
import re
import shutil
import subprocess
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import redirect_stdout
from io import StringIO
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image
from playwright.sync_api import Browser, Page, expect, sync_playwright
from tests.e2e.conftest import SIGHTLINE

from sightline.annotation.task import task_names
from sightline.cli.main import main

pytestmark = pytest.mark.browser

CHROMIUM = shutil.which("chromium") or shutil.which("chromium-browser") or shutil.which("google-chrome")
DOCS = Path(__file__).resolve().parents[3] / "docs"

Seen = Mapping[str, Any]
"""What a page shows: the label of each part -> its texts; "colours" of the images."""

Filled = Mapping[str, str]
"""What a human fills in: label -> text or option, several with `; `; '' -> the button that sends the form."""


class Row(NamedTuple):
    """A row of the table."""

    paper: str
    section: str
    humans: str
    command: str
    becomes: str


def _rows() -> dict[str, Row]:
    """The rows of the table by the names of their projects."""
    table = (DOCS / "annotation-tasks.md").read_text().split("| paper | section | humans |")[1]
    lines = table.split("\n\n")[0].splitlines()[2:]
    rows = [Row(*(cell.strip() for cell in line.strip("|").split(" | "))) for line in lines]
    return {row.command.split("--name ")[1].split()[0].strip("`"): row for row in rows}


ROWS = _rows()


class Job(NamedTuple):
    """How humans do a task, after which others, and what it becomes."""

    humans: tuple[str, ...]
    answer: Callable[[str, Seen], Filled]
    check: Callable[[Desk], None]
    after: tuple[str, ...] = ()
    fifth: str = ""
    is_agreed_on: bool = False  # Who differs sees at the end what the others said, and judges once more.


class Desk:
    """A folder in which all commands run, the server of its store, and the browsers of humans."""

    def __init__(self, browser: Browser, base: str) -> None:
        self.browser, self.base = browser, base
        self.printed: dict[str, str] = {}
        self.ends: dict[tuple[str, str], str] = {}

    def finish(self, name: str) -> None:
        """Do a task, unless it is done: new, invite, work, export, and the commands of its row."""
        if name in self.printed:
            return
        job, row = JOBS[name], ROWS[name]
        for earlier in job.after:
            self.finish(earlier)
        command("annotate", "new", *row.command.strip("`").split())
        for human, link in self.links(name, *job.humans).items():
            self.work(name, human, link, job.answer)
        if job.fifth:
            for human, link in self.links(name, job.fifth, "--role", "adjudicator").items():
                self.work(name, human, link, job.answer)
        if job.is_agreed_on:
            for human, link in self.links(name, *job.humans).items():
                self.work(name, human, link, job.answer)
        command("annotate", "export", name, "--out", f"out/{name}")
        commands = re.findall(r"`sightline ([^`]+)`", row.becomes)
        first, *others = job.humans
        for words in commands:
            # A command of one human stands for those of all who have a result.
            is_for_each = first in words and not any(other in words for other in others)
            able = [other for other in others if is_for_each and Path("out", name, other).exists()]
            for human in [first, *able]:
                printed = command(*words.replace(first, human).split())
                self.printed[name] = f"{self.printed.get(name, '')}\n{printed}"
        self.printed.setdefault(name, "")

    def links(self, name: str, *words: str) -> dict[str, str]:
        made: dict[str, str] = json.loads(
            command("annotate", "invite", name, *words, "--url", self.base, "--json")
        )
        return made

    def work(self, name: str, human: str, link: str, answer: Callable[[str, Seen], Filled]) -> None:
        """Do everything that the pages of a human show."""
        context = self.browser.new_context()
        page = context.new_page()
        page.set_default_timeout(10_000)
        page.goto(link)
        page.wait_for_url(re.compile(r"/annotate/\d+/"))
        if page.url.endswith("/guidelines"):
            _press(page, "n")
        while page.locator("#judge").count():
            seen = _look(page)
            _fill(page, seen, answer(human, seen))
        self.ends[name, human] = page.locator("main").inner_text()
        context.close()


def command(*words: str) -> str:
    """Run a command that succeeds, in a thread without Playwright's event loop; returns what it prints."""
    printed = StringIO()
    with redirect_stdout(printed), ThreadPoolExecutor(1) as thread:
        assert thread.submit(main, list(words)).result() == 0, words
    return printed.getvalue()


LOOK = """() => {
  const colour = (image) => {
    const canvas = document.createElement("canvas").getContext("2d");
    canvas.drawImage(image, 0, 0);
    const [r, g, b] = canvas.getImageData(0, 0, 1, 1).data;
    return r > 200 ? "red" : g > 100 ? "green" : b > 200 ? "blue" : "grey";
  };
  const all = (selector, root = document) => [...root.querySelectorAll(selector)];
  const words = (one) => one.innerText.split("\\n")[0].replace(/ optional$/, "").trim();
  const parts = all(".fields section.field:has(h2.lab)").map((one) =>
    [words(one.querySelector("h2.lab")), all("p.text, ol.letters li", one).map((text) => text.innerText)]);
  const controls = {};
  for (const one of all("section.field > label.lab")) controls[words(one)] = `[id='${one.htmlFor}']`;
  for (const group of all("fieldset.field"))
    for (const one of all("label.pick", group)) {
      const input = one.querySelector("input");
      const named = `${words(group.querySelector("legend"))}: ${words(one.querySelector("span"))}`;
      controls[named] = `[name='${input.name}'][value='${input.value}']`;
    }
  for (const one of all("button[name^=f-]")) controls[words(one.querySelector("span"))] = one.dataset.key;
  return {...Object.fromEntries(parts), colours: all("figure.images img").map(colour), controls};
}"""


def _look(page: Page) -> Seen:
    return page.evaluate(LOOK)  # type: ignore[no-any-return]


def _press(page: Page, key: str) -> None:
    """Press a key that leads to another page, and wait for its images, too."""
    page.evaluate("window.left = true")
    page.keyboard.press(key)
    page.wait_for_function("() => !window.left && document.readyState === 'complete'")


def _fill(page: Page, seen: Seen, filled: Filled) -> None:
    """Fill in what the page asks for, and send it: by a button's key, else with Control and Enter."""
    controls = seen["controls"]
    for label, value in filled.items():
        if label in controls:
            page.fill(controls[label], value)
        elif label:
            for option in value.split("; "):
                page.check(controls[f"{label}: {option}"])
    page.keyboard.press("Escape")
    _press(page, controls[filled[""]] if "" in filled else "Control+Enter")
    assert page.get_by_role("alert").all_inner_texts() == []
    if page.url.endswith("/feedback"):
        _press(page, "n")


@pytest.fixture(scope="module")
def desk(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Desk]:
    if CHROMIUM is None:
        pytest.skip("no Chromium is installed here: apt-get install chromium")
    folder = tmp_path_factory.mktemp("human-tasks")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        _sources()
        server = subprocess.Popen([*SIGHTLINE, "serve", "--port", "0"], stdout=subprocess.PIPE, text=True)
        try:
            assert server.stdout is not None
            base = re.search(r"http://[^/]+", server.stdout.readline())
            assert base is not None
            with sync_playwright() as started:
                sandbox = [] if os.getuid() else ["--no-sandbox"]
                expect.set_options(timeout=30_000)
                browser = started.chromium.launch(executable_path=CHROMIUM, args=sandbox)
                yield Desk(browser, base[0])
                browser.close()
        finally:
            server.terminate()
            server.wait()


# -- The data: images of one colour, three pairs, four questions, three instructions, and responses of models

COLOURS = ("red", "green", "blue")

PAIRS = (
    ("000", "red", "Up or down?", "It lies above.", "Up.", "It lies below.", "Down."),
    ("001", "red", "Morning or evening?", "The sun rises.", "Morning.", "It sets.", "Evening."),
    ("002", "green", "Left or right?", "Seen from here.", "Left.", "From behind.", "Right."),
)
"""CODIS: id, colour, question, and twice a context and its answer."""

SAID = {"000": ("Up.", "Down."), "001": ("Morning.", "Morning."), "002": ("Left.", "It is left.")}

WITHOUT = {"000": "Up.", "001": "Evening.", "002": "Left."}
"""What a model said to each pair, and without context."""

LETTERS = {"q1": "A", "q2": "B", "q3": "B", "q4": "C"}
"""II-Bench: what a model chose; A is right everywhere."""

LONG = {"red": "STOP stands on it.", "green": "It is 5 + 2, so 7.", "blue": "A warm house."}
SHORT = {"red": "STOP", "green": "I do not know.", "blue": "I cannot tell."}
INSTRUCTIONS = {"red": "What stands on it?", "green": "What is the sum?", "blue": "What does it sell?"}
RESPONSES = {"red": "STOP", "green": "7", "blue": "Warmth at home."}


def _lines(file: str, lines: list[dict[str, Any]]) -> None:
    Path(file).parent.mkdir(parents=True, exist_ok=True)
    Path(file).write_text("".join(json.dumps(line) + "\n" for line in lines))


def _sources() -> None:
    """Write the folders that the table names."""
    for folder in ("images", "codis/images", "iibench/images", "contextual/images", "rephrased/images"):
        Path(folder).mkdir(parents=True)
        for colour in COLOURS:
            Image.new("RGB", (40, 20), colour).save(f"{folder}/{colour}.png")
    records = [
        {
            "id": pair,
            "image_id": f"{colour}.png",
            "question": question,
            "context": {"context_1": one, "context_2": two},
            "answer": {"answer_1": first, "answer_2": second},
            "category": "Attributes",
        }
        for pair, colour, question, one, first, two, second in PAIRS
    ]
    Path("codis/data.json").write_text(json.dumps(records))
    said = [
        {"id": pair, "variant": f"context_{number}", "response": response}
        for pair, responses in SAID.items()
        for number, response in enumerate(responses, 1)
    ]
    _lines("a.jsonl", said)
    _lines("without.jsonl", [{**one, "response": WITHOUT[one["id"]]} for one in said])
    command("score", "codis", "a.jsonl", "--data", "codis", "--model", "a", "--out", "results/a")
    command(
        *("score", "codis:no-context", "without.jsonl", "--data", "codis", "--model", "a"),
        *("--out", "results/without"),
    )
    options = [f"option {letter}" for letter in "ABCDEF"]
    questions = [
        {
            "id": number,
            "question": f"What is {number}?",
            "options": options,
            "correct_option": "option A",
            "answer": "A",
        }
        for number in LETTERS
    ]
    about: dict[str, Any] = {
        "difficulty": "Easy",
        "emotion": "Neutral",
        "image_type": "Meme",
        "rhetoric": ["Metaphor"],
    }
    domains = {"red": "Life", "green": "Life", "blue": "Art"}
    iibench: list[dict[str, Any]] = [
        {
            "local_path": f"images/{colour}.png",
            "questions": questions[at : at + 1] if at < 2 else questions[2:],
            "meta_data": {**about, "domain": domains[colour], "explanation": "It means something."},
        }
        for at, colour in enumerate(COLOURS)
    ]
    Path("iibench/dev.json").write_text(json.dumps(iibench))
    _lines("letters.jsonl", [{"id": one, "response": letter} for one, letter in LETTERS.items()])
    command(
        *("score", "iibench:none", "letters.jsonl", "--data", "iibench", "--split", "dev", "--model", "a"),
        *("--out", "results/letters"),
    )
    with Path("contextual/contextual_val.csv").open("w", newline="") as file:
        table = csv.writer(file)
        table.writerow(("image_url", "instruction", "response", "category"))
        for colour in COLOURS:
            table.writerow((f"images/{colour}.png", INSTRUCTIONS[colour], RESPONSES[colour], "abstract"))
    for model, responses in (("long", LONG), ("short", SHORT)):
        lines = [{"id": f"images/{colour}.png", "response": text} for colour, text in responses.items()]
        _lines(f"{model}.jsonl", lines)
        command(
            *("score", "contextual", f"{model}.jsonl", "--data", "contextual", "--split", "val"),
            *("--model", model, "--out", f"results/{model}"),
        )
    shutil.copytree("images", "restyled/images")
    for colour in COLOURS:
        Image.new("L", (40, 20), 90).save(f"restyled/images/{colour}-grey.png")
    asked = {"original": "Which colour is it?", "r1": "What is its colour?"}
    _lines(
        "rephrased/groups.jsonl",
        [
            {"group": colour, "variant": variant, "images": [f"images/{colour}.png"], "prompt": prompt}
            for colour in COLOURS
            for variant, prompt in (asked | ({"r1": "How large is it?"} if colour == "blue" else {})).items()
        ],
    )
    _lines(
        "restyled/groups.jsonl",
        [
            {"group": colour, "variant": variant, "images": [f"images/{name}.png"], "prompt": "What is it?"}
            for colour in COLOURS
            for variant, name in (("original", colour), ("grey", f"{colour}-grey"))
        ],
    )


# -- What humans do, and what becomes of it, counted by hand


def _metric(folder: str, name: str, subset: str = "all") -> Any:
    found = json.loads(Path(folder, "metrics.json").read_text())["metrics"]
    return next(one["value"] for one in found if (one["metric"], one["subset"]) == (name, subset))


def _table(file: str) -> list[dict[str, str]]:
    with Path(file).open(newline="") as lines:
        return list(csv.DictReader(lines))


def _keep(reason: str) -> Callable[[str, Seen], Filled]:
    """Keep all images but the blue one."""
    drop = {"Reason to drop it": reason, "": "Drop"}
    return lambda _, seen: drop if seen["colours"] == ["blue"] else {"": "Keep"}


def _screened(name: str, reason: str) -> Callable[[Desk], None]:
    def check(_: Desk) -> None:
        assert {file.name for file in Path(f"out/{name}/kept").rglob("*.png")} == {"red.png", "green.png"}
        dropped = [row for row in _table(f"out/{name}/decisions.csv") if row["decision"] == "drop"]
        assert [(row["image"], row["reasons"]) for row in dropped] == [("blue.png", reason)]

    return check


def _author_pair(_: str, seen: Seen) -> Filled:
    (colour,) = seen["colours"]
    fields = {
        "Category": "Attributes",
        "Scenario": "colour",
        "Question": f"Is it {colour} or not?",
        "First context": "In daylight.",
        "Answer under the first context": f"It is {colour}.",
        "Second context": "In the dark.",
        "Answer under the second context": "It is not.",
    }
    return {
        label: text for label, text in fields.items() if {label, f"{label}: {text}"} & set(seen["controls"])
    }


def _written(desk: Desk) -> None:
    records = json.loads(Path("out/write/data/data.json").read_text())
    asked = Counter(record["question"] for record in records)
    assert asked == {"Is it red or not?": 2, "Is it green or not?": 2}
    assert {tuple(record["answer"].values()) for record in records} == {
        ("It is red.", "It is not."),
        ("It is green.", "It is not."),
    }


def _check_draft(human: str, seen: Seen) -> Filled:
    """Everybody finds the green pairs too large a difference, but only Cyd says so."""
    is_returned = human == "Cyd" and seen["colours"] == ["green"]
    rules = (
        "Correct",
        "Different from existing data",
        "Unanswerable without context",
        "Image and context both needed",
        "Small difference, different answers",
        "Objective answers",
    )
    return {rule: "No" if is_returned and rule.startswith("Small") else "Yes" for rule in rules}


def _checked(desk: Desk) -> None:
    funnel = json.loads(Path("out/check/funnel.json").read_text())
    assert (funnel["accepted"], funnel["returned"]) == (2, 2)
    assert {row["failed"] for row in _table("out/check/returned.csv")} == {"minor"}
    assert len(json.loads(Path("out/check/data/data.json").read_text())) == 2
    assert json.loads(Path("own/metrics.json").read_text())["samples"] == 2


def _judge(human: str, seen: Seen) -> Filled:
    """The truth: as the references, but the answer "Left." is wrong. Rob errs on 2 answers, Sue on 3.

    Both err on "Up.", a tie that the fifth settles.
    """
    (response,), (truth,) = seen["Answer to judge"], seen["Ground truth"]
    errs = {"Rob": {"Up.", "Down."}, "Sue": {"Up.", "Morning."}}.get(human, set())
    is_right = (response == truth and response != "Left.") != (response in errs)
    return {"": "Right" if is_right else "Wrong"}


def _judged(desk: Desk) -> None:
    assert _metric("judged", "acc_p") == pytest.approx(100 / 3)
    assert _metric("judged", "acc_q") == pytest.approx(100 * 3 / 6)
    assert _metric("judged", "human_consistency") == pytest.approx(100 * (6 + 6 + 4 + 3) / 24)
    assert "83.3" in desk.printed["judge"], "rules differ from the humans on one of six answers"


def _mean(_: str, seen: Seen) -> Filled:
    """Two answers mean the same if they name the same word."""
    (first,), (second,) = seen["First answer"], seen["Second answer"]
    return {"": "Same" if {"left"} <= set(re.findall("left", (first + second).lower())) else "Different"}


def _meant(desk: Desk) -> None:
    assert _metric("aware", "context_awareness") == pytest.approx(100 * 1 / 3)
    assert _metric("aware", "output_variability") == pytest.approx(100 * 3 / 6)


def _described(desk: Desk) -> None:
    captions = json.loads(Path("out/describe/captions.json").read_text())
    assert captions == {f"{colour}.png": f"All {colour}." for colour in COLOURS}


def _suffice(_: str, seen: Seen) -> Filled:
    return {"": "Not sufficient" if seen["Question"] == ["Morning or evening?"] else "Sufficient"}


def _sufficed(desk: Desk) -> None:
    captions = json.loads(Path("out/suffice/captions.json").read_text())
    assert captions == {"000": "All red.", "green.png": "All green."}
    assert json.loads(Path("captioned/metrics.json").read_text())["samples"] == 2


def _answer_pair(human: str, seen: Seen) -> Filled:
    """Ada knows all, Bo says "Left." always; without context nobody can tell."""
    (question,), context = seen["Question"], seen.get("Context")
    known = {(pair[2], pair[3]): pair[4] for pair in PAIRS} | {(pair[2], pair[5]): pair[6] for pair in PAIRS}
    if human == "Bo" and question == "Left or right?":
        return {"Your answer": "Left."}
    return {"Your answer": known[question, context[0]] if context else "I cannot tell."}


def _rows_of_annotators(desk: Desk) -> None:
    assert [_metric(f"humans/{name}", "acc_p") for name in ("Ada", "Bo")] == [100, pytest.approx(200 / 3)]
    printed = desk.printed["annotators"]
    assert "83.3" in printed


def _author_questions(_: str, seen: Seen) -> Filled:
    (colour,) = seen["colours"]
    return {
        "Domain": "Life",
        "Emotion": "Positive",
        "Image type": "Meme; Poster",
        "Difficulty": "Easy",
        "Rhetoric": "Metaphor",
        "What the image implies": f"It implies {colour}.",
        "Question 1": f"What does the {colour} imply?",
        "Options of question 1, one a line": "\n".join(f"{colour} {letter}" for letter in "ABCDEF"),
        "Right option of question 1": "C",
        "Source and licence of the image": "drawn here",
    }


def _asked(desk: Desk) -> None:
    records = json.loads(Path("out/ask/data/test.json").read_text())
    assert {one["questions"][0]["correct_option"] for one in records} == {"green C", "red C"}
    assert {tuple(one["meta_data"]["image_type"]) for one in records} == {("Meme", "Poster")}


def _relabel(human: str, seen: Seen) -> Filled:
    """Two of three label the green image otherwise than its author, and one the red one."""
    is_art = human != "Ida" if seen["colours"] == ["green"] else human == "Jon"
    return {
        "Domain": "Art" if is_art else "Life",
        "Source and licence of the image": "drawn here",
    }


def _agreed(desk: Desk) -> None:
    records = json.loads(Path("out/agree/data/test.json").read_text())
    domains = {one["questions"][0]["correct_option"]: one["meta_data"]["domain"] for one in records}
    assert domains == {"green C": "Art", "red C": "Life"}
    agreed = json.loads(Path("out/agree/annotation.json").read_text())["metrics"]
    shares = {one["subset"]: one["value"] for one in agreed if one["metric"] == "agreement"}
    assert (shares["label=domain"], shares["label=emotion"]) == (pytest.approx(100 * 2 / 6), 100)


def _review(human: str, seen: Seen) -> Filled:
    """The green question is easy to two of five; the red one to one."""
    if "Right option" not in seen:
        return {"": next(one for one in seen["controls"] if one.endswith("C"))}
    easy = {"green": {"Kai", "Lou"}, "red": {"Lou"}}[seen["colours"][0]]
    return {"Accurate": "Yes", "Reasonable": "Yes", "Difficult": "No" if human in easy else "Yes"}


def _reviewed(desk: Desk) -> None:
    (accepted,), (rejected,) = (
        _table("out/review/verified/questions.csv"),
        _table("out/review/verified/rejected.csv"),
    )
    assert accepted["question"] == "What does the red imply?"
    assert rejected["question"] == "What does the green imply?"
    assert json.loads(Path("accepted/metrics.json").read_text())["samples"] == 1


def _choose(human: str, seen: Seen) -> Filled:
    """Eve is right everywhere, Finn about the blue image only."""
    is_right = human == "Eve" or seen["colours"] == ["blue"]
    return {"": "option A" if is_right else "option F"}


def _rows_of_readers(desk: Desk) -> None:
    values = [_metric(f"humans/{name}", "accuracy") for name in ("Eve", "Finn")]
    assert values == [100, 50]
    average = next(line for line in desk.printed["readers"].splitlines() if "average" in line)
    assert "75.0" in average, average


def _name_error(_: str, seen: Seen) -> Filled:
    """B is a misread detail; C is right after all."""
    is_c = any("C" in text or "option C" in text for text in seen["Answer"])
    if is_c:
        return {"Judgement": "Right after all"}
    return {"Judgement": "Wrong", "Error": "detail misunderstanding"}


def _named_errors(desk: Desk) -> None:
    verdicts = [json.loads(line) for line in Path("out/why/verdicts.jsonl").read_text().splitlines()]
    assert Counter((one["verdict"], *one.get("labels", ())) for one in verdicts) == {
        ("wrong", "detail misunderstanding"): 4,
        ("right",): 2,
    }
    line = next(one for one in desk.printed["why"].splitlines() if "detail misunderstanding" in one)
    assert "100.0" in line, line


def _compare_wordings(_: str, seen: Seen) -> Filled:
    return {"": "Equivalent" if "colour" in seen["Variant"][0] else "Not equivalent"}


def _compare_images(_: str, seen: Seen) -> Filled:
    """What is grey can be told from a red and from a green image, not from a blue one."""
    return {"": "Not equivalent" if "blue" in seen["colours"] else "Equivalent"}


def _two_of_three(name: str) -> Callable[[Desk], None]:
    def check(desk: Desk) -> None:
        line = next(one for one in desk.printed[name].splitlines() if "human" in one)
        assert "66.7" in line, line

    return check


def _instruct(_: str, seen: Seen) -> Filled:
    (colour,) = seen["colours"]
    return {
        "Category": "abstract",
        "Instruction": f"Read the {colour} sign.",
        "Response": f"It says {colour}.",
        "Kind of task": "Extractive" if "Kind of task: Extractive" in seen["controls"] else "extractive",
    }


def _instructed(desk: Desk) -> None:
    rows = _table("out/instruct/data/contextual_val.csv")
    assert {(row["instruction"], row["response"]) for row in rows} == {
        (f"Read the {colour} sign.", f"It says {colour}.") for colour in ("red", "green")
    }


def _accepts(*colours: str) -> Callable[[str, Seen], Filled]:
    return lambda _, seen: {"": "Right" if seen["colours"][0] in colours else "Wrong"}


def _verified(desk: Desk) -> None:
    report = json.loads(Path("out/verify/verified/verification.json").read_text())
    assert (report["accepted"], report["rejected"]) == (1, 1)
    (row,) = _table("out/verify/verified/contextual_val.csv")
    assert row["instruction"] == "Read the red sign."


def _reviewed_by_the_other_group(desk: Desk) -> None:
    assert len(_table("out/groups/verified/contextual_val.csv")) == 1


KINDS = {"red": "Extractive", "green": "Math", "blue": "Neither"}


def _kinds(desk: Desk) -> None:
    rows = {row["image_url"]: row["task"] for row in _table("out/kinds/tasks.csv")}
    assert rows == {"images/red.png": "extractive", "images/green.png": "math"}
    assert _metric("kinds", "accepted", "task=extractive") == 100
    assert _metric("kinds", "accepted", "task=math") == 100


def _accept(human: str, seen: Seen) -> Filled:
    """LONG: all right about red and green. SHORT: red alone. Zed differs on red, and is outvoted."""
    assert not {"long", "short"} & set(str(seen).split()), "no page names a model"
    (response,) = seen["Response to rate"]
    is_good = response in (LONG["red"], LONG["green"], SHORT["red"])
    return {"": "Accept" if is_good != (human == "Zed" and "STOP" in response) else "Reject"}


def _rated(desk: Desk) -> None:
    assert _metric("rated", "accepted") == pytest.approx(100 * 2 / 3)
    assert "33.3" in desk.printed["rate"]
    assert "66.7" in desk.printed["rate"]


def _name_fault(_: str, seen: Seen) -> Filled:
    is_sum = seen["colours"] == ["green"]
    return {"Judgement": "Wrong", "Error": "context-sensitive reasoning" if is_sum else "not grounded"}


def _named_faults(desk: Desk) -> None:
    for error in ("context-sensitive reasoning", "not grounded"):
        line = next(one for one in desk.printed["faults"].splitlines() if error in one)
        assert "50.0" in line, line


def _work_or_guess(human: str, seen: Seen) -> Filled:
    (question,) = seen["Question"]
    colour = next(one for one, asked in INSTRUCTIONS.items() if asked == question)
    return {"Your answer": RESPONSES[colour] if human == "Max" else "No idea."}


def _only_who_passed(desk: Desk) -> None:
    """Max got the third instruction, and is a row; Ned gets nothing, and his answers to the test stay."""
    assert "There is no item left" in desk.ends["workers", "Max"]
    assert "0 of your answers are as expected, and 2 are needed" in desk.ends["workers", "Ned"]
    folders = {path.name for path in Path("out/workers").iterdir() if path.is_dir()}
    assert folders == {"Max"}
    assert _metric("humans/Max", "accepted") == 100
    page = desk.browser.new_page()
    page.goto(desk.links("workers", "Ned")["Ned"])
    page.wait_for_url(re.compile(r"/annotate/\d+/item"))
    assert "No items follow" in page.locator("main").inner_text()
    _press(page, "b")
    assert "The test is over, and its answers stay." in page.locator("main").inner_text()
    assert page.locator("#judge").count() == 0
    page.close()


JOBS: dict[str, Job] = {
    "ambiguous": Job(("Ann",), _keep("Only one reading"), _screened("ambiguous", "not ambiguous")),
    "write": Job(("Al", "Bea"), _author_pair, _written, after=("ambiguous",)),
    "check": Job(("Al", "Bea", "Cyd", "Dan", "Eli"), _check_draft, _checked, after=("write",)),
    "judge": Job(("Pat", "Quy", "Rob", "Sue"), _judge, _judged, fifth="Tom"),
    "meaning": Job(("Una",), _mean, _meant),
    "describe": Job(("Vic",), lambda _, seen: {"Caption": f"All {seen['colours'][0]}."}, _described),
    "suffice": Job(("Wes",), _suffice, _sufficed, after=("describe",)),
    "annotators": Job(("Ada", "Bo"), _answer_pair, _rows_of_annotators),
    "implied": Job(("Ann",), _keep("No implied meaning"), _screened("implied", "no implied meaning")),
    "ask": Job(("Gus",), _author_questions, _asked, after=("implied",)),
    "agree": Job(("Ida", "Jon", "Kim"), _relabel, _agreed, after=("ask",), is_agreed_on=True),
    "review": Job(("Hal", "Kai", "Lou", "Mia", "Noa"), _review, _reviewed, after=("ask",), is_agreed_on=True),
    "readers": Job(("Eve", "Finn"), _choose, _rows_of_readers),
    "why": Job(("Oda", "Pia"), _name_error, _named_errors),
    "reworded": Job(("Ria", "Sam", "Tea"), _compare_wordings, _two_of_three("reworded")),
    "redrawn": Job(("Ria", "Sam", "Tea"), _compare_images, _two_of_three("redrawn")),
    "shortlist": Job(("Ann",), _keep("Not legible"), _screened("shortlist", "quality")),
    "instruct": Job(("Uma",), _instruct, _instructed, after=("shortlist",)),
    "verify": Job(("Val",), _accepts("red"), _verified, after=("instruct",)),
    "groups": Job(("Wim",), _accepts("red"), _reviewed_by_the_other_group, after=("verify",)),
    "kinds": Job(("Xia",), lambda _, seen: {"": KINDS[seen["colours"][0]]}, _kinds, after=("rate",)),
    "workers": Job(("Max", "Ned"), _work_or_guess, _only_who_passed),
    "rate": Job(("Xia", "Yan", "Zed"), _accept, _rated),
    "faults": Job(("Oda", "Pia"), _name_fault, _named_faults, after=("rate",)),
}


@pytest.mark.parametrize("name", ROWS)
def test_a_human_task_becomes_what_the_page_says(desk: Desk, name: str) -> None:
    desk.finish(name)
    JOBS[name].check(desk)


def test_every_row_of_the_page_is_done_here_and_every_task_has_a_row() -> None:
    assert list(JOBS) == list(ROWS)
    assert {row.command.strip("`").split()[0] for row in ROWS.values()} == set(task_names())
