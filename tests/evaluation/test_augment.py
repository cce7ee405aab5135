"""Evaluations with --augment: what is read by OCR, captioned, sent, refused and reported."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pytest

import sightline
from sightline import plugins
from sightline.errors import UserError
from sightline.evaluation.estimate import estimate_run
from sightline.evaluation.result import Evaluation
from sightline.evaluation.spec import Spec
from sightline.evaluation.sweep import plan_sweep
from sightline.images import BadImage
from sightline.models.base import Capabilities
from sightline.models.ocr import Word
from sightline.models.offline import OfflineModel
from sightline.types import Answer, Augmentation, Failure, ImageFile, ImageRef, Request, Text
from training.scenes.build import generate_codis, generate_contextual

PAIRS = 6


class Signs:
    """An OCR reader: the file name above the word 'sign'; it fails on the file named `blank`."""

    name = "signs"
    identity = "signs 1"
    reading: ClassVar[list[str]] = []
    blank: str = "none"

    def __init__(self, threads: int = 0) -> None:
        self.threads = threads

    def read(self, image: ImageFile) -> tuple[Word, ...]:
        name = Path(image.path).stem
        if name == self.blank:
            raise BadImage(f"{image.path}: cannot be read")
        self.reading.append(name)
        return (Word(name, (10, 0, 10 + 10 * len(name), 10), 1.0), Word("sign", (50, 20, 90, 30), 1.0))


class Asked(OfflineModel):
    """Answers yes and keeps its requests; it does not accept images."""

    capabilities = Capabilities(images=False)
    requests: ClassVar[list[Request]] = []

    def __init__(self, name: str) -> None:
        self.name = self.identity = self.host = name

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        for index, request in enumerate(requests):
            self.requests.append(request)
            yield index, Answer("yes", finish_reason="stop")


class Captions(Asked):
    """Gives every image the same caption of two lines."""

    capabilities = Capabilities()
    requests: ClassVar[list[Request]] = []

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        async for index, _ in super().answer(requests):
            yield index, Answer("a wall\nand a tree", finish_reason="stop")


@pytest.fixture(autouse=True)
def stand_ins(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr("sightline.evaluation.image_texts.RapidOcr", Signs)
    for kind in (Asked, Captions):
        monkeypatch.setattr(kind, "requests", [])
    monkeypatch.setattr(Signs, "reading", [])
    models = {"blind": lambda *_: [Asked("blind")], "sees": lambda *_: [Captions("sees")]}
    monkeypatch.setattr(plugins, "plugged_in", {**plugins.plugged_in, "models": models})
    monkeypatch.chdir(tmp_path)


@pytest.fixture(scope="module")
def codis(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate_codis(tmp_path_factory.mktemp("drawn") / "codis", pairs=PAIRS)


def names(codis: Path) -> list[str]:
    return [path.stem for path in sorted((codis / "images").iterdir())]


def run(
    codis: Path, augment: Augmentation | None = "layout", model: str = "blind", **options: Any
) -> Evaluation:
    task = options.pop("task", "codis")
    return sightline.run(task, model=model, data=codis, augment=augment, store="s.db", **options)


def asked() -> list[str]:
    """The texts of all requests; asserts that no request holds an image."""
    assert not any(request.images for request in Asked.requests)
    parts = [part for request in Asked.requests for message in request.messages for part in message.parts]
    assert not any(isinstance(part, ImageRef) for part in parts)
    return [part.text for part in parts if isinstance(part, Text)]


def test_a_text_only_model_gets_the_ocr_text_of_each_image_and_no_image(codis: Path) -> None:
    done = run(codis)
    assert (done.result.probes, done.result.errors, done.exit_status) == (2 * PAIRS, 0, 0)
    texts = asked()
    assert len(texts) == 2 * PAIRS
    records = json.loads((codis / "data.json").read_text())
    for record in records:
        name = record["image_id"].removesuffix(".png")
        own = [text for text in texts if f"\nQuestion: {record['question']}\nOCR TEXT:\n{name}\n" in text]
        assert len(own) >= 2
    # Ten pixels a character: 'sign' begins four characters behind the name.
    assert all("    sign\nAnswer:" in text for text in texts)
    assert sorted(Signs.reading) == names(codis)


def test_a_repeated_run_reads_and_sends_nothing(codis: Path) -> None:
    first = run(codis)
    read, sent = len(Signs.reading), len(Asked.requests)
    again = run(codis)
    assert (len(Signs.reading), len(Asked.requests)) == (read, sent)
    assert again.result.metrics == first.result.metrics
    run(codis, "ocr")
    assert len(Signs.reading) == read
    assert len(Asked.requests) == 2 * sent


def test_another_reader_with_equal_results_changes_no_request(
    codis: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(codis)
    sent = len(Asked.requests)
    monkeypatch.setattr(Signs, "identity", "signs 2")
    second = run(codis)
    assert len(Signs.reading) == 2 * len(names(codis))
    assert len(Asked.requests) == sent
    assert first.result.model_identity != second.result.model_identity


def test_a_result_names_its_augmentation(codis: Path) -> None:
    done = run(codis, "layout+caption", captioner="sees", out="results").result
    options = json.loads(Path("results/metrics.json").read_text())["options"]
    assert options == json.loads(json.dumps(done.options))
    assert (options["augment"], options["reader"]) == ("layout+caption", "signs 1")
    assert options["captioned_by"]["model"] == "sees"
    assert options["captioned_by"]["prompt"].startswith("Describe this picture")
    assert done.model_identity == "blind with layout+caption by signs 1, captions by sees"
    plain = run(codis, None, "baseline/chance").result
    assert plain.options["augment"] is None
    assert "reader" not in plain.options
    assert plain.model_identity == "baseline/chance seed 0"


def test_each_image_is_captioned_once(codis: Path) -> None:
    done = run(codis, "layout+caption", captioner="sees")
    assert len(Captions.requests) == len(names(codis)) == done.caption_counts.sent
    assert all("\nImage Caption: a wall and a tree\nAnswer:" in text for text in asked())
    assert run(codis, "layout+caption", captioner="sees").caption_counts.sent == 0
    assert len(Captions.requests) == len(names(codis))


def test_captions_and_answers_share_one_budget(codis: Path) -> None:
    images = len(names(codis))
    done = run(codis, "layout+caption", captioner="sees", max_requests=images + 3)
    assert (len(Captions.requests), len(Asked.requests), done.exit_status) == (images, 3, 4)
    fewer = run(codis, "layout+caption", captioner="sees", max_requests=2, fresh="anew")
    assert (len(Captions.requests), fewer.counts.sent, fewer.exit_status) == (images, 2, 4)


def test_a_budget_spent_on_captions_sends_no_probe_without_its_caption(codis: Path) -> None:
    done = run(codis, "layout+caption", captioner="sees", max_requests=1)
    assert (len(Captions.requests), len(Asked.requests), done.exit_status) == (1, 0, 4)
    assert any("has no caption: the budget is reached" in why for _, _, why in done.unanswered)


def test_an_unreadable_image_affects_only_its_own_probes(
    codis: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = names(codis)[0]
    monkeypatch.setattr(Signs, "blank", first)
    done = run(codis)
    records = json.loads((codis / "data.json").read_text())
    lost = [record["id"] for record in records if record["image_id"] == f"{first}.png"]
    assert (done.result.errors, done.exit_status) == (2 * len(lost), 1)
    assert {sample for sample, _, _ in done.unanswered} == set(lost)
    assert all(why.endswith(f"{first}.png: cannot be read") for _, _, why in done.unanswered)
    monkeypatch.setattr(Signs, "blank", "none")
    assert run(codis).exit_status == 0


def test_a_caption_file_is_matched_by_the_names_that_build_caption_writes(codis: Path) -> None:
    first, *rest = names(codis)
    lines = [{"image_id": f"{name}.png", "caption": f"a caption\nof {name}"} for name in rest]
    Path("captions.json").write_text(json.dumps(lines))
    done = run(codis, "layout+caption", captions="captions.json")
    texts = asked()
    assert all(any(f"\nImage Caption: a caption of {name}\n" in text for text in texts) for name in rest)
    assert done.result.errors > 0
    assert all(f"{first}.png: has no caption in captions.json" in why for _, _, why in done.unanswered)
    assert set(done.result.options["captioned_by"]) == {"file", "digest"}


def test_a_dry_run_reads_sends_and_writes_nothing_and_its_estimate_is_exact(codis: Path) -> None:
    spec = Spec(
        task="codis",
        model="blind",
        data=str(codis),
        augment="layout+caption",
        captioner="sees",
        store="s.db",
    )
    before = estimate_run(spec)
    images = len(names(codis))
    assert (before.to_ask, before.images_to_read, before.captions_to_ask) == (2 * PAIRS, images, images)
    assert before.image_bytes == 0
    assert [*Signs.reading, *Asked.requests, *Captions.requests, *Path().iterdir()] == []
    run(codis, "layout+caption", captioner="sees")
    after = estimate_run(spec)
    assert (after.to_ask, after.images_to_read, after.captions_to_ask) == (0, 0, 0)
    assert estimate_run(Spec(task="codis", model="baseline/chance", data=str(codis))).images_to_read is None


def test_few_shot_examples_are_turns_of_their_own(tmp_path: Path) -> None:
    data = generate_contextual(tmp_path / "contextual", questions=20, val=20)
    done = run(data, "layout", task="contextual:2-shot", limit=3)
    assert (done.result.errors, len(Asked.requests)) == (0, 3)
    asked()
    for request in Asked.requests:
        texts = [
            part.text for message in request.messages for part in message.parts if isinstance(part, Text)
        ]
        assert [message.role for message in request.messages] == ["user", "assistant"] * 2 + ["user"]
        assert [text.startswith("You are OCRGPT") for text in texts[::2]] == [True, False, False]
        assert [text.startswith("NOW YOUR TURN:\n") for text in texts[::2]] == [False, False, True]
        assert all("    sign\nAnswer:" in text for text in texts[::2])
        assert not any("Answer:" in text for text in texts[1::2])


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"captioner": "sees"}, "--captioner has an effect with --augment"),
        (
            {"augment": None, "captions": "c.json"},
            "--captions has an effect with --augment",
        ),
        ({"augment": "layout+caption"}, "needs one source of captions, found none"),
        (
            {"augment": "layout+caption", "captioner": "sees", "captions": "c.json"},
            "needs one source of captions, found captioner and captions",
        ),
        ({"augment": "layout+caption", "captioner": "blind"}, "--captioner blind does not accept images"),
        ({"augment": "layout+caption", "captions": "gone.json"}, "gone.json"),
        ({"augment": "layout+caption", "captions": "other.json"}, "contains no caption of any image"),
        ({"augment": "letters"}, "letters"),
        ({"task": "codis:no-image"}, "this setting has none"),
        ({"model": "replay/answers.jsonl"}, "it replays answers that exist already"),
    ],
)
def test_options_without_effect_are_refused_before_anything_is_read_or_sent(
    codis: Path, options: dict[str, Any], message: str
) -> None:
    Path("other.json").write_text('[{"image_id": "somewhere.png", "caption": "else"}]')
    Path("answers.jsonl").write_text('{"sample": "000", "variant": "context_1", "response": "yes"}\n')
    with pytest.raises(UserError, match=message):
        run(codis, **options)
    assert [*Signs.reading, *Asked.requests, *Captions.requests, *Path().glob("*.db")] == []


def test_a_caption_name_that_fits_two_images_is_refused(tmp_path: Path, codis: Path) -> None:
    lines = []
    for folder in ("one", "two"):
        (tmp_path / "own" / folder).mkdir(parents=True)
        (tmp_path / "own" / folder / "a.png").write_bytes((codis / "images" / "scene-000.png").read_bytes())
        lines.append({"group": folder, "variant": "seen", "images": [f"{folder}/a.png"], "prompt": "?"})
    Path("own/groups.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    words: dict[str, Any] = {
        "task": "groups:own/groups.jsonl",
        "augment": "layout+caption",
        "captions": "captions.json",
    }
    Path("captions.json").write_text('{"a.png": "a wall"}')
    with pytest.raises(UserError, match="fits two images"):
        run(codis, set={"embedder": "none"}, **words)
    Path("captions.json").write_text('{"one/a.png": "a wall", "two/a.png": "a tree"}')
    assert run(codis, set={"embedder": "none"}, **words).result.errors == 0
    assert [text.rpartition("Image Caption: ")[2] for text in asked()] == [
        "a wall\nAnswer:",
        "a tree\nAnswer:",
    ]


def test_a_sweep_varies_augment_and_passes_captions_to_the_points_that_use_them() -> None:
    base = Spec(task="codis", captions="c.json", out="results")
    points = plan_sweep([base], ["m"], {}, {}, ["ocr", "layout", "layout+caption"])
    assert [(one.spec.augment, one.spec.captions) for one in points] == [
        ("ocr", None),
        ("layout", None),
        ("layout+caption", "c.json"),
    ]
    assert [one.name for one in points] == [
        "m, augment=ocr",
        "m, augment=layout",
        "m, augment=layout+caption",
    ]
    assert len({one.spec.out for one in points}) == 3
    (only,) = plan_sweep([base], ["m"], {}, {}, ["ocr"])
    assert (only.values, only.spec.captions) == ({}, "c.json")
    with pytest.raises(UserError, match="did you mean 'layout'"):
        plan_sweep([base], ["m"], {}, {}, ["layuot"])
    with pytest.raises(UserError, match="twice"):
        plan_sweep([base], ["m"], {}, {}, ["ocr", "ocr"])


def test_a_sweep_table_has_a_column_for_each_augmentation(codis: Path) -> None:
    sweep = sightline.sweep("codis", model="blind", data=codis, augment=["ocr", "layout"], store="s.db")
    assert [dict(one.values) for one in sweep.results] == [{"augment": "ocr"}, {"augment": "layout"}]
    assert sweep.exit_status == 0
    assert sorted(Signs.reading) == names(codis)
