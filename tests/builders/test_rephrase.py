"""What becomes of replies: groups, images copied once, a manifest; and of questions without one."""

from __future__ import annotations

import asyncio
import hashlib
import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any, ClassVar, Self

import pytest
from PIL import Image

from sightline.builders.folder import read_manifest, refuse_other_contents
from sightline.builders.rephrase import (
    SAMPLING,
    RephraseJob,
    prepare_rephrasing,
    rephrase,
    rephrasing_request,
    write_rephrasings,
)
from sightline.builders.replies import MAX_ATTEMPTS, ReplyResult
from sightline.builders.sources import SourceItem
from sightline.engine.client import ClientOptions, ModelClient
from sightline.errors import EnvironmentFailedError, UserError
from sightline.formats.groups import read_groups
from sightline.formats.journal import JOURNAL
from sightline.models.offline import ChanceBaseline
from sightline.types import Answer, Failure, Request, Text

THREE = ("What was used to make them?", "Of what are they made?", "Which material are they of?")


@pytest.fixture
def client(tmp_path: Path) -> ModelClient:
    return ModelClient(ClientOptions(model="baseline/chance", store=str(tmp_path / "s.db")), SAMPLING)


@pytest.fixture
def sources(tmp_path: Path) -> list[SourceItem]:
    """Three questions about two images, of which one lies there under two names."""
    for name, colour in {"a.png": "red", "twin.png": "red", "b.jpg": "blue"}.items():
        Image.new("RGB", (9, 7), colour).save(tmp_path / name)
    return [
        SourceItem(f"q-{name}", str(tmp_path / name), ("copper", "steel"), f"What is {name} made of?")
        for name in ("a.png", "twin.png", "b.jpg")
    ]


def all_rephrased(job: RephraseJob) -> dict[str, ReplyResult[tuple[str, ...]]]:
    return {source.id: ReplyResult(THREE, draw=1, key="k") for source in job.sources}


def test_a_model_is_asked_in_the_papers_words_without_the_image() -> None:
    (message,) = rephrasing_request(
        SourceItem("q", "a.png", ("copper", "steel"), "Of what are the {vessels} made?")
    )
    assert message.role == "user"
    assert message.parts == (
        Text(
            "I have a question: Of what are the {vessels} made? Please give me three different types of "
            "rephrased questions to which the answer would be copper."
        ),
    )


def test_a_group_holds_the_original_and_three_rephrasings_in_the_papers_prompt(
    tmp_path: Path, client: ModelClient, sources: list[SourceItem]
) -> None:
    job = prepare_rephrasing(sources, client)
    write_rephrasings(job, all_rephrased(job), tmp_path / "out")
    lines = read_groups(tmp_path / "out" / "groups.jsonl")[:4]
    assert [line.variant for line in lines] == ["original", "r1", "r2", "r3"]
    assert lines[1].prompt == f"Please answer the question with a very-short answer. {THREE[0]}"
    assert [line.question for line in lines] == ["What is a.png made of?", *THREE]
    assert {line.references for line in lines} == {("copper", "steel")}
    assert [line.facts for line in lines] == [{}] + 3 * [{"reply": "k", "draw": 1}]


def test_equal_images_are_copied_once_as_they_are_and_are_one_cluster(
    tmp_path: Path, client: ModelClient, sources: list[SourceItem]
) -> None:
    job = prepare_rephrasing(sources, client)
    out = tmp_path / "out"
    manifest = write_rephrasings(job, all_rephrased(job), out)
    lines = read_groups(out / "groups.jsonl")
    assert manifest.images == len(list((out / "images").iterdir())) == 2
    assert len({line.cluster for line in lines}) == 2
    for source, line in zip(sources, lines[::4], strict=True):
        (image,) = line.images
        content = Path(source.image).read_bytes()
        assert (out / image).read_bytes() == content
        assert hashlib.sha256(content).hexdigest() == line.cluster == manifest.sources[source.id]


def test_the_same_replies_give_the_same_bytes(
    tmp_path: Path, client: ModelClient, sources: list[SourceItem]
) -> None:
    job = prepare_rephrasing(sources, client)
    for out in ("one", "two", "two"):
        write_rephrasings(job, all_rephrased(job), tmp_path / out)
    files = {
        out: {path.name: path.read_bytes() for path in (tmp_path / out).rglob("*") if path.is_file()}
        for out in ("one", "two")
    }
    assert files["one"] == files["two"]
    assert sorted(files["one"])[-2:] == ["groups.jsonl", "manifest.json"]


def test_the_manifest_distinguishes_dropped_and_unanswered_questions(
    tmp_path: Path, client: ModelClient, sources: list[SourceItem]
) -> None:
    (tmp_path / "empty.png").touch()
    more = [SourceItem("gone", str(tmp_path / "gone.png")), SourceItem("empty", str(tmp_path / "empty.png"))]
    job = prepare_rephrasing([*sources, *more], client)
    found: dict[str, ReplyResult[tuple[str, ...]]] = {
        "q-a.png": ReplyResult(THREE),
        "q-twin.png": ReplyResult(dropped="a rephrasing equals the question"),
        "q-b.jpg": ReplyResult(unanswered="HTTP 500"),
    }
    manifest = write_rephrasings(job, found, tmp_path / "out")
    assert read_manifest(tmp_path / "out").groups == manifest.groups == 1
    assert manifest.dropped == {
        "gone": "no such image",
        "empty": "the file is empty",
        "q-twin.png": "a rephrasing equals the question",
    }
    assert manifest.unanswered == {"q-b.jpg": "HTTP 500"}
    assert list(manifest.sources) == ["q-a.png"]
    assert manifest.images == 1


def test_nothing_is_written_without_a_rephrased_question(
    tmp_path: Path, client: ModelClient, sources: list[SourceItem]
) -> None:
    job = prepare_rephrasing(sources, client)
    with pytest.raises(UserError, match=r"all 3 questions are dropped \(q-a\.png: why; q-twin\.png: why; "):
        write_rephrasings(
            job, {source.id: ReplyResult(dropped="why") for source in sources}, tmp_path / "out"
        )
    assert not (tmp_path / "out").exists()
    with pytest.raises(UserError, match="no such image"):
        prepare_rephrasing([SourceItem("gone", str(tmp_path / "gone.png"))], client)


def test_an_unusable_reply_is_requested_again_twice_and_then_dropped(
    client: ModelClient, sources: list[SourceItem]
) -> None:
    job = prepare_rephrasing(sources, client)
    with client.store() as store:
        found = asyncio.run(rephrase(job, client, store))  # Chance says yes or no
    assert client.counts.sent == 3 * MAX_ATTEMPTS
    assert {one.dropped for one in found.values()} == {"fewer than three distinct rephrasings (0)"}
    assert {one.draw for one in found.values()} == {MAX_ATTEMPTS - 1}


class Opened(ChanceBaseline):
    """A baseline that tells when it is opened and closed, and by how many calls it was asked."""

    told: ClassVar[list[str]] = []

    async def __aenter__(self) -> Self:
        self.told.append("opened")
        return await super().__aenter__()

    async def __aexit__(self, *how: Any) -> None:
        self.told.append("closed")
        await super().__aexit__(*how)

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        self.told.append("asked")
        async for index, result in super().answer(requests):
            yield index, result


def test_a_model_is_loaded_once_for_all_attempts_and_only_if_a_request_is_sent(
    tmp_path: Path, sources: list[SourceItem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.models.offline.ChanceBaseline", Opened)
    monkeypatch.setattr(Opened, "told", [])
    client = ModelClient(ClientOptions(model="baseline/chance", store=str(tmp_path / "s.db")), SAMPLING)
    job = prepare_rephrasing(sources, client)
    with client.store() as store:
        asyncio.run(rephrase(job, client, store))
        assert Opened.told == ["opened", *MAX_ATTEMPTS * ["asked"], "closed"]
        asyncio.run(rephrase(job, client, store))
        assert Opened.told[-1] == "closed"
        assert len(Opened.told) == MAX_ATTEMPTS + 2
        # Of what is kept open nothing is left: an ask of its own opens and closes.
        more = [client.keyed(rephrasing_request(sources[0]), MAX_ATTEMPTS)]
        asyncio.run(client.ask(store, more, "", show_progress=False))
    assert Opened.told[MAX_ATTEMPTS + 2 :] == ["opened", "asked", "closed"]


def test_an_open_model_is_closed_if_the_store_fails(
    tmp_path: Path, sources: list[SourceItem], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.models.offline.ChanceBaseline", Opened)
    monkeypatch.setattr(Opened, "told", [])
    client = ModelClient(ClientOptions(model="baseline/chance", store=str(tmp_path / "s.db")), SAMPLING)
    job = prepare_rephrasing(sources, client)
    with client.store() as store:
        monkeypatch.setattr(store.answers, "add", broken)
        with pytest.raises(EnvironmentFailedError, match="the disk is full"):
            asyncio.run(rephrase(job, client, store))
    assert Opened.told == ["opened", "asked", "closed"]


def broken(*_: Any) -> None:
    raise EnvironmentFailedError("the disk is full")


def test_images_of_another_builders_folder_are_kept_apart(
    tmp_path: Path, client: ModelClient, sources: list[SourceItem]
) -> None:
    job = prepare_rephrasing(sources[:1], client)
    write_rephrasings(job, all_rephrased(job), tmp_path / "train")
    test = prepare_rephrasing(sources, client, apart_from=[tmp_path / "train"])
    assert [source.id for source in test.sources] == ["q-b.jpg"]
    assert test.dropped == dict.fromkeys(["q-a.png", "q-twin.png"], "its image is in train")
    assert test.excluded[0].images == 1


def test_a_folder_with_anything_else_is_refused_unless_forced(
    tmp_path: Path, client: ModelClient, sources: list[SourceItem]
) -> None:
    out = tmp_path / "out"
    job = prepare_rephrasing(sources, client)
    write_rephrasings(job, all_rephrased(job), out)
    refuse_other_contents(out, job.identity, force=False)
    other = prepare_rephrasing(sources, client, seed=1)
    with pytest.raises(UserError, match="seed 0 instead of 1"):
        refuse_other_contents(out, other.identity, force=False)
    refuse_other_contents(out, other.identity, force=True)
    foreign = tmp_path / "foreign"
    foreign.mkdir()
    (foreign / "thesis.tex").touch()
    with pytest.raises(UserError, match="contains something else"):
        refuse_other_contents(foreign, job.identity, force=True)


def test_a_build_that_was_killed_during_writing_continues(
    tmp_path: Path, client: ModelClient, sources: list[SourceItem]
) -> None:
    out = tmp_path / "out"
    job = prepare_rephrasing(sources, client)
    Path(sources[2].image).write_bytes(b"changed")
    with pytest.raises(EnvironmentFailedError, match="changed during"):
        write_rephrasings(job, all_rephrased(job), out)
    assert not (out / "manifest.json").exists()
    Image.new("RGB", (9, 7), "green").save(sources[2].image)
    again = prepare_rephrasing(sources, client)
    refuse_other_contents(out, again.identity, force=False)
    write_rephrasings(again, all_rephrased(again), out)
    assert json.loads((out / "manifest.json").read_bytes())["groups"] == 3
    assert sorted(path.name for path in out.iterdir()) == ["groups.jsonl", "images", "manifest.json"]
    assert len(list((out / "images").iterdir())) == 2


def bytes_of(folder: Path) -> dict[str, bytes]:
    return {str(path.relative_to(folder)): path.read_bytes() for path in folder.rglob("*") if path.is_file()}


def test_the_second_of_two_concurrent_jobs_does_not_replace_the_folder_of_the_first(
    tmp_path: Path, client: ModelClient, sources: list[SourceItem]
) -> None:
    out = tmp_path / "out"
    first, second = prepare_rephrasing(sources, client), prepare_rephrasing(sources, client, seed=1)
    for job in (first, second):
        refuse_other_contents(out, job.identity, force=False)
    write_rephrasings(first, all_rephrased(first), out)
    before = bytes_of(out)
    with pytest.raises(UserError, match="seed 0 instead of 1"):
        write_rephrasings(second, all_rephrased(second), out)
    assert bytes_of(out) == before
    write_rephrasings(second, all_rephrased(second), out, force=True)
    assert read_manifest(out).settings["seed"] == 1


def test_a_folder_kept_apart_from_another_or_of_other_images_is_refused_unless_forced(
    tmp_path: Path, client: ModelClient, sources: list[SourceItem]
) -> None:
    train, out = tmp_path / "train", tmp_path / "out"
    job = prepare_rephrasing(sources[:1], client)
    write_rephrasings(job, all_rephrased(job), train)
    alone = prepare_rephrasing(sources[2:], client)
    write_rephrasings(alone, all_rephrased(alone), out)
    before = bytes_of(out)
    apart = prepare_rephrasing(sources[2:], client, apart_from=[train])
    Image.new("RGB", (9, 7), "green").save(sources[2].image)
    for other in (apart, prepare_rephrasing(sources[2:], client)):
        with pytest.raises(UserError, match="other sources, images or --apart-from"):
            refuse_other_contents(out, other.identity, force=False)
        with pytest.raises(UserError, match="other sources, images or --apart-from"):
            write_rephrasings(other, all_rephrased(other), out)
    assert bytes_of(out) == before


def test_later_answers_are_added_to_the_folder_without_force(
    tmp_path: Path, client: ModelClient, sources: list[SourceItem]
) -> None:
    job = prepare_rephrasing(sources, client)
    some = {**all_rephrased(job), "q-b.jpg": ReplyResult(unanswered="HTTP 500")}
    assert write_rephrasings(job, some, tmp_path / "out").groups == 2
    assert write_rephrasings(job, all_rephrased(job), tmp_path / "out").groups == 3


def test_a_kill_before_the_journals_first_line_leaves_a_folder_that_is_accepted(
    tmp_path: Path, client: ModelClient, sources: list[SourceItem]
) -> None:
    out = tmp_path / "out"
    out.mkdir()
    (out / JOURNAL).touch()
    job = prepare_rephrasing(sources, client)
    refuse_other_contents(out, job.identity, force=False)
    write_rephrasings(job, all_rephrased(job), out)
    assert sorted(path.name for path in out.iterdir()) == ["groups.jsonl", "images", "manifest.json"]


def test_an_image_that_a_link_leads_outside_is_dropped(
    tmp_path: Path, client: ModelClient, sources: list[SourceItem]
) -> None:
    (tmp_path / "in").mkdir()
    (tmp_path / "in" / "link.png").symlink_to(sources[0].image)
    linked = SourceItem("q", str(tmp_path / "in/link.png"), ("copper",), "What?", root=str(tmp_path / "in"))
    job = prepare_rephrasing([*sources, linked], client)
    assert job.dropped == {"q": "is outside the data folder"}
