"""Synthetic instructions: who is shown what, what becomes of replies, and a folder for ConTextual."""

from __future__ import annotations

import csv
import json
from collections.abc import AsyncIterator, Mapping, Sequence
from pathlib import Path

import pytest
from PIL import Image

from sightline.benchmarks.contextual.data import COLUMNS
from sightline.builders.folder import read_manifest
from sightline.builders.replies import MAX_ATTEMPTS
from sightline.builders.synthesize import CATEGORY
from sightline.cli.main import main
from sightline.models.base import Capabilities
from sightline.models.offline import OfflineModel
from sightline.text import load
from sightline.types import Answer, Failure, ImageRef, Request, Text

Capture = pytest.CaptureFixture[str]
Reply = str | Answer | Failure

EXAMPLES = ("images/stvqa-images/2342209.jpg", "images/estvqa-images/019231.jpg")


def said(instruction: str, response: str = "23") -> str:
    return f"Good Instruction: {instruction}\nResponse: {response}"


class Writer(OfflineModel):
    """Writes of each image what it was told to write, by the draw; remembers what it was asked."""

    name = identity = host = "writer"

    def __init__(self) -> None:
        self.replies: Mapping[str, Sequence[Reply]] = {}
        self.asked: list[Request] = []

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        self.asked += requests
        for index, request in enumerate(requests):
            name = Path(shown(request)[-1]).stem
            reply = self.replies.get(name, [said(f"Name the sign of the {name} door.")])[request.draw]
            yield index, Answer(reply) if isinstance(reply, str) else reply


def shown(request: Request) -> list[str]:
    """The images of a request, in their order."""
    return [part.path for part in request.messages[0].parts if isinstance(part, ImageRef)]


@pytest.fixture
def writer(monkeypatch: pytest.MonkeyPatch) -> Writer:
    model = Writer()
    monkeypatch.setattr("sightline.replicas.fleet.resolve", lambda *_: [model])
    return model


@pytest.fixture
def photos(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Three images, one of them under two names, and the two examples of the prompt."""
    (tmp_path / "photos").mkdir()
    for name, colour in {"red": "red", "twin": "red", "blue": "blue", "grey": "grey"}.items():
        Image.new("RGB", (9, 7), colour).save(tmp_path / "photos" / f"{name}.png")
    for name, colour in zip(EXAMPLES, ("orange", "purple"), strict=True):
        (tmp_path / "contextual" / name).parent.mkdir(parents=True)
        Image.new("RGB", (8, 8), colour).save(tmp_path / "contextual" / name)
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIGHTLINE_DATA", raising=False)
    return tmp_path / "photos"


def build(*words: object, examples: str = "contextual") -> int:
    usual = {"--images": "photos", "--out": "out"}
    given = [word for option, value in usual.items() if option not in words for word in (option, value)]
    asked = ["--model", "writer", "--examples", examples, "--quiet"]
    return main(["build", "synthesize", *asked, *given, *map(str, words)])


def table(file: str = "out/contextual_synthetic.csv") -> list[dict[str, str]]:
    with open(file, newline="", encoding="utf-8") as lines:
        return list(csv.DictReader(lines))


# What is asked


def test_a_model_is_shown_figure_22_with_its_two_images_and_the_candidate_in_their_places(
    photos: Path, writer: Writer
) -> None:
    assert build() == 0
    request = writer.asked[0]
    assert shown(request) == [*(f"contextual/{name}" for name in EXAMPLES), "photos/blue.png"]
    assert set(request.images) == set(shown(request))
    told = ["{picture}" if isinstance(part, ImageRef) else part.text for part in request.messages[0].parts]
    assert "".join(told) == load("sightline.builders")["synthesis"]["text"]
    before = [
        text.text.rstrip().rsplit("\n", 1)[-1]
        for text in request.messages[0].parts[::2]
        if isinstance(text, Text)
    ]
    assert before == ["Uploaded Image 1:", "Uploaded Image 2:", "Uploaded Image 3:", "Response:"]


def test_the_prompt_is_the_papers_word_for_word(shared: Path) -> None:
    paper = (shared / "papers" / "contextual.txt").read_text()
    figure = paper[paper.index("You are InstructionResponseGPT4Vision") :]
    figure = figure[: figure.index("Good Instruction : Determine")]
    prompt = load("sightline.builders")["synthesis"]["text"].replace("{picture}\n", "")
    assert prompt.split() == figure.split()


def test_the_examples_are_those_of_the_released_table(shared: Path) -> None:
    with (shared / "data" / "contextual" / "contextual_test.csv").open(newline="") as file:
        asked = {row["image_url"]: row["instruction"] for row in csv.DictReader(file)}
    synthesis = load("sightline.builders")["synthesis"]
    for url in synthesis["images"]:
        assert f"Good Instruction: {asked[url]}" in synthesis["text"].replace("’", "'")


# What becomes of replies


def test_the_folder_is_in_contextuals_layout_and_runs(photos: Path, writer: Writer, capsys: Capture) -> None:
    assert build() == 0
    assert [tuple(row) for row in table()] == 3 * [COLUMNS]
    assert [row["image_url"] for row in table()] == [f"images/{name}.png" for name in ("blue", "grey", "red")]
    assert {row["category"] for row in table()} == {CATEGORY}
    assert Path("out/images/red.png").read_bytes() == (photos / "red.png").read_bytes()
    capsys.readouterr()
    words = ["run", "contextual", "--split", "synthetic", "--data", "out", "--model", "baseline/chance"]
    assert main([*words, "--json", "--against", "GPT-4V"]) == 0
    result = json.loads(capsys.readouterr().out)
    assert (result["samples"], result["errors"]) == (3, 0)
    subsets = {one["subset"] for one in result["metrics"]}
    assert {f"category={CATEGORY}", "scene=natural"} <= subsets
    (overall,) = [one for one in result["metrics"] if (one["metric"], one["subset"]) == ("accepted", "all")]
    assert overall["published"] is None  # The paper's synthesized instances were not released.


def test_copies_and_the_examples_are_not_sent(photos: Path, writer: Writer) -> None:
    (photos / "one.jpg").write_bytes((photos.parent / "contextual" / EXAMPLES[0]).read_bytes())
    (photos / "broken.png").write_text("no image")
    assert build() == 0
    assert len(writer.asked) == 3
    dropped = read_manifest(Path("out")).dropped
    assert dropped["twin"] == "the same file as red"
    assert dropped["one"] == "it is an example of the prompt"
    assert dropped["broken"].startswith("not an image")


def test_images_dropped_before_and_after_the_request_have_the_same_ids(photos: Path, writer: Writer) -> None:
    (photos / "broken.png").write_text("no image")
    writer.replies = {"blue": MAX_ATTEMPTS * ["nothing"]}
    assert build() == 0
    manifest = read_manifest(Path("out"))
    assert manifest.dropped.keys() == {"broken", "twin", "blue"}
    assert manifest.sources.keys() == {"red", "grey"}


def test_a_reply_that_breaks_a_rule_is_requested_again_twice_and_then_dropped(
    photos: Path, writer: Writer, capsys: Capture
) -> None:
    writer.replies = {
        "red": ["nothing", said("Say it if you can."), said("Name the bold word.", "SALE")],
        "blue": MAX_ATTEMPTS * [said("Count them if it rains.")],
    }
    assert build() == 0
    draws = [request.draw for request in writer.asked if "red" in shown(request)[-1]]
    assert draws == [0, 1, 2]
    assert [row["response"] for row in table()] == ["23", "SALE"]
    assert "the instruction has a condition: blue" in capsys.readouterr().err


def test_an_instruction_that_fits_two_images_is_kept_for_the_first_alone(
    photos: Path, writer: Writer
) -> None:
    general = [said("Name the brightest word.")]
    writer.replies = {"red": general, "blue": general}
    assert build() == 0
    assert [Path(row["image_url"]).stem for row in table()] == ["blue", "grey"]
    why = read_manifest(Path("out")).dropped["red"]
    assert why == "the instruction was written for another image too (blue)"


def test_the_same_command_sends_nothing_and_writes_the_same_bytes(photos: Path, writer: Writer) -> None:
    assert build() == 0
    before = {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()}
    asked = len(writer.asked)
    assert build() == 0
    assert len(writer.asked) == asked
    assert {path: path.read_bytes() for path in Path("out").rglob("*") if path.is_file()} == before
    manifest = json.loads(Path("out/manifest.json").read_text())
    assert manifest["replies"] == {
        Path(shown(one)[-1]).stem: one.key for one in sorted(writer.asked, key=lambda one: shown(one)[-1])
    }
    assert build("--fresh", "again") == 2
    assert build("--fresh", "again", "--force") == 0
    assert len(writer.asked) == 2 * asked


def test_failed_requests_affect_no_other_pair_and_can_succeed_later(
    photos: Path, writer: Writer, capsys: Capture
) -> None:
    writer.replies = {"blue": [Failure("permanent", "it will not say")]}
    assert build() == 1
    assert "1 of 3 images have no instruction" in capsys.readouterr().err
    assert len(table()) == 2
    writer.replies = {}
    assert build("--retry-errors") == 0
    assert len(table()) == 3


def test_the_budget_stops_the_requests_and_a_larger_one_continues(photos: Path, writer: Writer) -> None:
    assert build("--max-requests", 2) == 4
    assert len(table()) == 2
    assert build() == 0
    assert (len(table()), len(writer.asked)) == (3, 3)


def test_a_dry_run_prints_the_number_of_requests_and_writes_no_file(
    photos: Path, writer: Writer, capsys: Capture
) -> None:
    assert build("--dry-run") == 0
    told = " ".join(capsys.readouterr().out.split())
    assert "images 3 dropped: 1 cached requests 0 requests to send 3 to 9" in told
    assert not writer.asked
    assert {path.name for path in Path().iterdir()} == {"photos", "contextual"}


# What is told before anything is asked


def test_without_the_example_images_the_error_names_their_source(
    photos: Path, writer: Writer, capsys: Capture, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert build(examples="photos") == 2
    told = capsys.readouterr().err
    assert EXAMPLES[0] in told
    assert EXAMPLES[1] in told
    assert "`sightline data pull contextual`" in told
    words = ["build", "synthesize", "--model", "writer", "--images", "photos", "--out", "out", "--quiet"]
    assert main(words) == 2
    assert "no folder for the two examples" in capsys.readouterr().err
    monkeypatch.setenv("SIGHTLINE_DATA", str(photos.parent))
    assert main(words) == 0


def test_a_model_that_takes_one_image_is_refused(photos: Path, writer: Writer, capsys: Capture) -> None:
    for capabilities in (Capabilities(several_images=False), Capabilities(images=False)):
        writer.capabilities = capabilities
        assert build() == 2
        assert "does not accept three images" in capsys.readouterr().err
    assert not writer.asked


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--category", " "], "--category is empty"),
        (["--limit", "0"], "--limit leaves nothing"),
        (["--images", "gone"], "no such folder or file"),
        (["--out", "photos/out"], "is inside the image folder"),
        (["--out", "contextual", "--force"], "2342209.jpg"),
        (["--max-cost", "1"], "without a price"),
    ],
)
def test_a_wrong_call_is_refused_before_any_request(
    photos: Path, writer: Writer, words: list[str], message: str, capsys: Capture
) -> None:
    assert build(*words) == 2
    assert message in capsys.readouterr().err
    assert not writer.asked
    assert not Path("out").exists()
