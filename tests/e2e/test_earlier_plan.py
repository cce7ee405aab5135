"""A run takes over the plan of an earlier one only if everything that the plan depends on is the same."""

from __future__ import annotations

import dataclasses
import os
import shutil
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from msgspec.structs import replace
from PIL import Image

import sightline
from sightline.benchmarks.groups.benchmark import Groups
from sightline.engine.store import Store
from sightline.errors import UserError
from sightline.evaluation import code_digest as code
from sightline.evaluation import earlier_plan, plan_key
from sightline.evaluation.prepare import prepare_evaluation
from sightline.formats.groups import GroupLine, write_groups
from sightline.images import ImageLimits
from sightline.maintenance.store_maintenance import CleaningOptions, clean
from sightline.models.baseline import ChanceBaseline
from sightline.plan.plan import Plan
from sightline.plan.samples import Samples
from sightline.plan.spec import Spec

FILES = ("answers.jsonl", "verdicts.jsonl", "metrics.json", "report.md")

Planned = Callable[[], bool]
Run = Callable[..., sightline.Evaluation]


@pytest.fixture
def planned(monkeypatch: pytest.MonkeyPatch) -> Planned:
    """Whether data were read and planned since the last call."""
    steps: set[str] = set()
    read, plan = Samples.read_all, Plan.chunks

    def counted_reading(*arguments: Any) -> Any:
        steps.add("read")
        return read(*arguments)

    def counted_plan(self: Plan) -> Iterator[Any]:
        steps.add("planned")
        return plan(self)

    def count() -> bool:
        found = set(steps)
        steps.clear()
        assert found in (set(), {"planned"}, {"read", "planned"})
        return "planned" in found

    monkeypatch.setattr(Samples, "read_all", counted_reading)
    monkeypatch.setattr(Plan, "chunks", counted_plan)
    return count


def lines() -> list[GroupLine]:
    return [
        GroupLine(
            f"g{number // 3}",
            f"v{number % 3}",
            images=(f"i{number // 3}.png",) if number < 6 else (),
            prompt=f"Is it {number} or 3?",
            references=("3",),
        )
        for number in range(12)
    ]


def paint(name: str, colour: str) -> None:
    Image.new("RGB", (8, 8), colour).save(name)


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Run:
    """Runs a groups file of 12 probes, 6 of which show an image."""
    monkeypatch.chdir(tmp_path)
    write_groups(lines(), Path("g.jsonl"))
    paint("i0.png", "red")
    paint("i1.png", "green")
    return start


def start(out: str | None = "out", **options: Any) -> sightline.Evaluation:
    options = {"set": {"embedder": "none"}, "model": "baseline/chance", "force": True, **options}
    return sightline.run("groups:g.jsonl", out=out, **options)


def content(folder: str) -> dict[str, bytes]:
    return {name: Path(folder, name).read_bytes() for name in FILES}


def of_run(store_url: str, evaluation: sightline.Evaluation) -> Any:
    """What the store holds of a run, except what names it."""
    number = evaluation.run
    assert number is not None
    store = Store.open(store_url)
    body, is_finished = store.runs.get(number)
    probes = list(store.runs.probes(number))
    store.close()
    return body, is_finished, probes


def test_the_same_run_neither_reads_nor_plans_and_gives_the_same_files(
    run: Run, planned: Planned, store_url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    first = run(store=store_url)
    assert planned()
    taken = run(out="taken", store=store_url)
    assert not planned()
    monkeypatch.setattr("sightline.evaluation.run.take_over", lambda *_, **__: False)
    again = run(out="planned", store=store_url)
    assert planned()
    assert content("out") == content("taken") == content("planned")
    assert taken.counts == again.counts
    assert (taken.result, taken.folders) == (first.result, first.folders)
    assert of_run(store_url, taken) == of_run(store_url, again)
    assert of_run(store_url, first)[2] == of_run(store_url, taken)[2]


def test_options_that_no_request_depends_on_leave_the_plan(run: Run, planned: Planned) -> None:
    run()
    planned()
    run(out="other", concurrency=2, name="second", tag=["t"], max_requests=5, decide="majority")
    assert not planned()


def edit_data() -> None:
    text = Path("g.jsonl").read_text()
    Path("g.jsonl").write_text(text.replace("Is it 7", "Is it 8"))


def edit_data_in_place() -> None:
    """Size and times stay."""
    info = os.stat("g.jsonl")
    with Path("g.jsonl").open("r+b") as file:
        file.seek(file.read().index(b'"3"') + 1)
        file.write(b"4")
    os.utime("g.jsonl", ns=(info.st_atime_ns, info.st_mtime_ns))


def paint_image() -> None:
    """Size and modification time of the file stay."""
    info = os.stat("i1.png")
    paint("i1.png", "blue")
    os.utime("i1.png", ns=(info.st_atime_ns, info.st_mtime_ns))


def replace_image() -> None:
    paint("new.png", "blue")
    shutil.move("new.png", "i0.png")


def cut_image() -> None:
    Path("i0.png").write_bytes(Path("i0.png").read_bytes()[:30])


CHANGES: dict[str, Callable[[], None]] = {
    "data": edit_data,
    "data of the same size and time": edit_data_in_place,
    "image of the same size and time": paint_image,
    "another image": replace_image,
    "a broken image": cut_image,
    "no image": Path("i0.png").unlink,
}


@pytest.mark.parametrize("name", CHANGES)
def test_changed_data_and_images_are_planned_as_in_a_new_store(run: Run, planned: Planned, name: str) -> None:
    run()
    planned()
    CHANGES[name]()
    run()
    assert planned()
    run(out="new", store="new.db")
    assert content("out") == content("new")


OPTIONS: dict[str, dict[str, Any]] = {
    "limit": {"limit": 2},
    "shuffle": {"limit": 2, "shuffle": True},
    "repeats": {"repeats": 2},
    "fresh": {"fresh": "today"},
    "option of the benchmark": {"set": {"embedder": "none", "unchanged": True}},
    "sampling": {"gen": {"temperature": 1}},
    "seed": {"seed": 1},
    "identity": {"model_id": "mine"},
}


@pytest.mark.parametrize("name", OPTIONS)
def test_other_options_are_planned_as_in_a_new_store(run: Run, planned: Planned, name: str) -> None:
    write_groups([*lines(), GroupLine("g0", "original", prompt="Is it?")], Path("g.jsonl"))
    run()
    planned()
    run(**OPTIONS[name])
    assert planned()
    run(out="new", store="new.db", **OPTIONS[name])
    assert content("out") == content("new")


def test_other_limits_of_the_model_are_planned(
    run: Run, planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    planned()
    limits = ImageLimits(max_side=4)
    monkeypatch.setattr(ChanceBaseline, "capabilities", replace(ChanceBaseline.capabilities, limits=limits))
    run()
    assert planned()


def test_other_code_plans_again(run: Run, planned: Planned, monkeypatch: pytest.MonkeyPatch) -> None:
    run()
    planned()
    monkeypatch.setattr(code, "_LOADED_CODE", b"another version")
    monkeypatch.setattr(code, "code_digest", lambda: b"another version")
    run()
    assert planned()


def test_code_that_changed_during_the_run_keeps_no_plan(
    run: Run, planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code, "_LOADED_CODE", b"before the change")
    run()
    planned()
    run()
    assert planned()


class PluginGroups(Groups):
    """A benchmark that is no part of the package."""


def test_a_benchmark_of_a_plugin_is_always_planned(
    run: Run, planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.evaluation.prepare.find_benchmark", lambda name: PluginGroups())
    run()
    planned()
    run()
    assert planned()


OTHER_VALUES: dict[str, Any] = {
    "set": {"empty": "ignore"},
    "gen": {"top_p": 0.5},
    "model_arg": {"a": 1},
    "limit": 1,
    "repeats": 2,
    "seed": 9,
    "augment": "ocr",
}


@pytest.mark.parametrize("name", sorted({*Spec.__dataclass_fields__} - plan_key.NOT_PLANNED))
def test_every_option_is_part_of_the_key_unless_it_is_named(run: Run, name: str) -> None:
    spec = Spec(task="groups:g.jsonl", model="baseline/chance", set={"embedder": "none"})
    prepared = prepare_evaluation(spec)
    value = getattr(spec, name)
    other = OTHER_VALUES.get(name, not value if isinstance(value, bool) else f"{value} other")
    keys = [
        plan_key.plan_key(one, prepared.task, prepared.models)
        for one in (spec, dataclasses.replace(spec, **{name: other}))
    ]
    assert None not in keys
    assert keys[0] != keys[1]


def test_options_that_are_left_out_of_the_key_exist() -> None:
    assert set(Spec.__dataclass_fields__) >= plan_key.NOT_PLANNED


EDITS = st.lists(
    st.one_of(
        st.tuples(st.just("word"), st.integers(0, 11), st.sampled_from(["Is it A?", "B", "Is it 3 or 3?"])),
        st.tuples(st.just("swap"), st.integers(0, 10), st.just("")),
        st.tuples(st.just("drop"), st.integers(0, 11), st.just("")),
        st.tuples(st.just("double"), st.integers(0, 11), st.just("")),
        st.tuples(st.just("paint"), st.integers(0, 1), st.sampled_from(["red", "green", "blue"])),
        st.tuples(st.just("nothing"), st.just(0), st.just("")),
    ),
    min_size=1,
    max_size=5,
)


def edited(content: list[GroupLine], how: str, at: int, word: str) -> list[GroupLine]:
    at = min(at, len(content) - 1)
    if how == "word":
        return [*content[:at], replace(content[at], prompt=word), *content[at + 1 :]]
    if how == "swap":
        return [*content[:at], *content[at : at + 2][::-1], *content[at + 2 :]]
    if how == "drop" and len(content) > 1:
        return [*content[:at], *content[at + 1 :]]
    return [*content, content[at]] if how == "double" else content


@settings(max_examples=5, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(EDITS)
def test_whatever_is_edited_each_run_is_that_of_a_new_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, edits: list[tuple[str, int, str]]
) -> None:
    monkeypatch.chdir(tmp_path)
    for path in tmp_path.glob("*.db*"):
        path.unlink()
    data = lines()
    for name in ("i0.png", "i1.png"):
        paint(name, "red")

    def outcome(out: str, store: str) -> Any:
        try:
            start(out, store=store)
        except UserError as error:
            return str(error)
        return content(out)

    for how, at, word in edits:
        if how == "paint":
            paint(f"i{at}.png", word)
        data = edited(data, how, at, word)
        write_groups(data, Path("g.jsonl"))
        for path in tmp_path.glob("new.db*"):
            path.unlink()
        assert outcome("out", "sightline.db") == outcome("new", "new.db")


def test_a_plan_with_a_broken_image_is_not_kept(run: Run, planned: Planned) -> None:
    Path("i0.png").write_bytes(b"no image")
    run()
    planned()
    run()
    assert planned()


def test_data_that_change_during_the_run_keep_no_plan(
    run: Run, planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = ChanceBaseline.answer

    def answer_and_edit(self: ChanceBaseline, requests: Any) -> Any:
        edit_data()
        return answer(self, requests)

    monkeypatch.setattr(ChanceBaseline, "answer", answer_and_edit)
    before = Path("g.jsonl").read_bytes()
    run()
    monkeypatch.setattr(ChanceBaseline, "answer", answer)
    planned()
    run()
    assert planned()
    Path("g.jsonl").write_bytes(before)
    run()
    assert planned()


def test_an_image_that_changes_after_it_was_planned_is_planned_again(
    run: Run, planned: Planned, monkeypatch: pytest.MonkeyPatch
) -> None:
    answer = ChanceBaseline.answer

    def answer_and_paint(self: ChanceBaseline, requests: Any) -> Any:
        replace_image()
        return answer(self, requests)

    monkeypatch.setattr(ChanceBaseline, "answer", answer_and_paint)
    run()
    monkeypatch.setattr(ChanceBaseline, "answer", answer)
    planned()
    run()
    assert planned()


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE plans SET body = substr(body, 1, length(body) - 3)",
        "DELETE FROM plans",
        "DELETE FROM probes WHERE run = 1 AND place > 0",
        "UPDATE probes SET answer_keys = zeroblob(length(answer_keys)) WHERE run = 1 AND place > 0",
        "DELETE FROM runs WHERE id = 1",
        "DELETE FROM answers WHERE id = 5",
    ],
    ids=["damaged plan", "no plan", "fewer probes", "damaged probes", "no run", "an answer is missing"],
)
def test_a_plan_that_cannot_be_used_is_made_again_and_kept(
    run: Run, planned: Planned, monkeypatch: pytest.MonkeyPatch, damage: str
) -> None:
    monkeypatch.setattr("sightline.engine.runs.PROBES_PER_CHUNK", 5)
    run()
    before = content("out")
    with sqlite3.connect("sightline.db") as connection:
        connection.execute(damage)
    planned()
    run()
    assert planned()
    assert content("out") == before
    run()
    assert not planned()
    assert content("out") == before


def test_failed_requests_are_asked_again_only_with_retry_errors(run: Run) -> None:
    run()
    with sqlite3.connect("sightline.db") as connection:
        connection.execute("UPDATE answers SET state = 3 WHERE id = 1")
    store = Store.open("sightline.db")
    plan = earlier_plan.find_plan("sightline.db", _key())
    assert plan is not None
    number = store.runs.start({})
    assert earlier_plan.take_over(plan, store, number, retry_errors=False)
    number = store.runs.start({})
    assert not earlier_plan.take_over(plan, store, number, retry_errors=True)
    store.close()


def _key() -> bytes:
    spec = Spec(task="groups:g.jsonl", model="baseline/chance", set={"embedder": "none"}, force=True)
    prepared = prepare_evaluation(spec)
    key = plan_key.plan_key(prepared.spec, prepared.task, prepared.models)
    assert key is not None
    return key


def test_a_missing_store_is_not_made_by_looking_for_a_plan(run: Run) -> None:
    edit = Path("g.jsonl").read_text().replace('"prompt"', '"promt"', 1)
    Path("g.jsonl").write_text(edit)
    with pytest.raises(UserError, match="promt"):
        run()
    assert not Path("sightline.db").exists()


def test_a_pipe_is_refused_and_not_read(run: Run) -> None:
    Path("g.jsonl").unlink()
    os.mkfifo("g.jsonl")
    with pytest.raises(UserError, match="a file, not a folder or a pipe"):
        run()


def test_the_plan_is_dropped_with_the_caches(run: Run, planned: Planned) -> None:
    run()
    clean("sightline.db", CleaningOptions(caches=True))
    planned()
    run()
    assert planned()


def test_notes_on_lines_that_are_not_asked_stay(run: Run, planned: Planned) -> None:
    write_groups([*lines(), GroupLine("g0", "original", prompt="Is it?")], Path("g.jsonl"))
    notes = [run().result.notes for _ in range(2)]
    assert notes[0] == notes[1]
    assert any("original" in note for note in notes[0])


IIBENCH_FILES = (*FILES, "predictions.jsonl", "submission.jsonl")


@pytest.mark.parametrize("changed", ["data/test.json", "answers.json", "data/images/4.png"])
def test_iibench_is_planned_again_if_one_of_its_files_changed(
    iibench_folder: Callable[..., Path], planned: Planned, monkeypatch: pytest.MonkeyPatch, changed: str
) -> None:
    data = iibench_folder(8)
    monkeypatch.chdir(data.parent)
    Path("answers.json").write_text('{"test-3": "C"}')
    options: dict[str, Any] = {"model": "baseline/chance", "data": "data", "set": {"answers": "answers.json"}}

    def written(out: str, store: str = "sightline.db") -> dict[str, bytes]:
        sightline.run("iibench", out=out, store=store, force=True, **options)
        return {name: Path(out, name).read_bytes() for name in IIBENCH_FILES}

    first = written("first")
    assert planned()
    assert written("taken") == first
    assert not planned()
    if changed.endswith(".png"):
        paint(changed, "red")
    else:
        old, new = ("C", "D") if changed == "answers.json" else ("meaning B of 3", "meaning X of 3")
        Path(changed).write_text(Path(changed).read_text().replace(old, new))
    after = written("after")
    assert planned()
    assert after == written("new", "new.db") != first


def runs_of(url: str) -> list[int]:
    store = Store.open(url)
    numbers = [one.number for one in store.runs.all()]
    store.close()
    return numbers
