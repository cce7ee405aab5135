"""Groups files: which probes they stand for, what is unchanged, and how answers are read."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from sightline.benchmarks.groups.benchmark import Groups
from sightline.benchmarks.mmr3.benchmark import MMR3
from sightline.errors import UserError
from sightline.evaluation.options import effective, setting_of
from sightline.evaluation.spec import Spec
from sightline.formats.groups import GroupLine, write_groups
from sightline.formats.other_tools import read_predictions
from sightline.scoring.scorer import RuleScorer, by_question
from sightline.types import Case, ImageRef


def options(task: str, **chosen: Any) -> Mapping[str, Any]:
    benchmark = MMR3() if task.startswith("mmr3") else Groups()
    return effective(benchmark, setting_of(benchmark, task), Spec(task=task, set=chosen)).benchmark


def masked(group: str, **labels: str) -> list[GroupLine]:
    variants = ("original", "m0", "m1", "m2")
    return [
        GroupLine(group, name, (f"images/{group}/{name}.png",), "What?", references=("cat",), cluster=group)
        for name in variants
    ]


@pytest.fixture
def data(tmp_path: Path) -> Path:
    (tmp_path / "context").mkdir()
    write_groups([*masked("a"), *masked("b")], tmp_path / "context" / "groups.jsonl")
    return tmp_path


def asked(data: Path, task: str = "mmr3:context", **chosen: Any) -> list[tuple[str, str, int]]:
    chosen_options = options(task, **chosen)
    benchmark = MMR3()
    return [
        (probe.sample, probe.variant, probe.draws)
        for sample in benchmark.samples(data, "test", chosen_options)
        for probe in benchmark.probes(sample, chosen_options)
    ]


def test_the_original_is_never_among_the_perturbed_probes(data: Path) -> None:
    assert [(name, variant) for name, variant, _ in asked(data)] == [
        (group, variant) for group in "ab" for variant in ("m0", "m1", "m2")
    ]


def test_for_sampling_each_masked_image_is_asked_by_itself(data: Path) -> None:
    assert asked(data, unchanged=True) == [(group, name, 4) for group in "ab" for name in ("m0", "m1", "m2")]


def test_for_sampling_of_another_task_the_original_is_asked(data: Path) -> None:
    (data / "restyling").mkdir()
    (data / "context" / "groups.jsonl").rename(data / "restyling" / "groups.jsonl")
    found = asked(data, "mmr3:restyling", unchanged=True)
    assert [(name, variant) for name, variant, _ in found] == [("a", "original"), ("b", "original")]


def test_a_group_is_held_against_what_sampling_asks(data: Path) -> None:
    benchmark, chosen = MMR3(), options("mmr3:context")
    (first, *_) = benchmark.samples(data, "test", chosen)
    partner = benchmark.partner("unchanged", chosen)
    assert [probe.variant for probe in benchmark.probes(first, partner)] == ["m0", "m1", "m2"]
    assert all(probe.draws == 4 for probe in benchmark.probes(first, partner))


def test_images_lie_beside_the_groups_file_and_come_before_the_prompt(data: Path) -> None:
    benchmark, chosen = MMR3(), options("mmr3:context")
    (first, *_) = benchmark.samples(data, "test", chosen)
    image, _ = next(iter(benchmark.probes(first, chosen))).messages[0].parts
    assert isinstance(image, ImageRef)
    assert image.path == str(data / "context" / "images/a/m0.png")
    assert image.root == str(data / "context")


def test_one_of_several_sizes_must_be_named(tmp_path: Path) -> None:
    lines = [
        GroupLine(f"a@{size}", style, ("x.png",), "Where?", labels={"size": size, "style": style})
        for size in ("224", "640")
        for style in ("candy", "mosaic")
    ]
    write_groups(lines, tmp_path / "groups.jsonl")
    with pytest.raises(UserError, match=r"several sizes.*--set size=S with S one of 224, 640"):
        asked(tmp_path, "mmr3:restyling")
    assert {name for name, *_ in asked(tmp_path, "mmr3:restyling", size=640)} == {"a@640"}
    with pytest.raises(UserError, match="has no images of size 1024"):
        asked(tmp_path, "mmr3:restyling", size=1024)


def test_the_images_own_size_is_that_of_no_other(tmp_path: Path) -> None:
    lines = [
        GroupLine(group, "candy", ("x.png",), "Where?", labels={"size": size, "style": "candy"})
        for group, size in (("a", "original"), ("a@224", "224"))
    ]
    write_groups(lines, tmp_path / "groups.jsonl")
    assert [name for name, *_ in asked(tmp_path, "mmr3:restyling")] == ["a"]
    assert [name for name, *_ in asked(tmp_path, "mmr3:restyling", size=224)] == ["a@224"]


@pytest.mark.parametrize("task", ["rephrasing", "restyling"])
def test_a_group_is_held_against_its_own_original(data: Path, task: str) -> None:
    (data / "context").rename(data / task)
    benchmark, chosen = MMR3(), options(f"mmr3:{task}")
    (first, *_) = benchmark.samples(data, "test", chosen)
    partner = benchmark.partner("unchanged", chosen)
    (probe,) = benchmark.probes(first, partner)
    assert (probe.sample, probe.variant, probe.draws) == ("a", "original", 4)
    shown = {image.path for image in first.images}
    assert {part.path for part in probe.messages[0].parts if isinstance(part, ImageRef)} <= shown


def test_the_setting_alone_says_which_task_it_is() -> None:
    assert "task" not in MMR3().options
    assert options("mmr3:context")["task"] == "context"
    with pytest.raises(UserError, match="unknown option of mmr3 'task'"):
        effective(MMR3(), setting_of(MMR3(), "mmr3"), Spec(task="mmr3", set={"task": "restyling"}))


def test_a_folder_of_another_builder_is_refused(data: Path) -> None:
    (data / "context" / "manifest.json").write_text('{"kind": "restyle"}')
    with pytest.raises(UserError, match=r"made by `sightline build restyle`.*build mask"):
        asked(data)


def test_a_folder_without_groups_says_what_makes_one(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"groups.jsonl is neither.*sightline build rephrase --out"):
        asked(tmp_path, "mmr3:rephrasing")


@pytest.mark.parametrize(
    ("line", "message"),
    [
        ('{"variant": "m0", "prompt": "x"}', "line 1.*group"),
        ('{"group": "", "variant": "m0", "prompt": "x"}', "line 1, field group.*is empty"),
        ('{"group": "a", "variant": "m0"}', "field prompt"),
        ('{"group": "a", "variant": "m0", "prompt": "x", "labels": {"a": 3}}', "labels"),
        ('{"group": "a", "variant": "m0", "prompt": "x"', "line 1.*is not valid JSON"),
    ],
)
def test_a_broken_line_is_named(tmp_path: Path, line: str, message: str) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text(line + "\n")
    with pytest.raises(UserError, match=f"(?s){message}"):
        Groups().samples(None, "test", options(f"groups:{file}"))


def test_a_variant_twice_in_a_group_is_refused(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    file.write_text('{"group": "a", "variant": "m0", "prompt": "x"}\n' * 2)
    with pytest.raises(UserError, match="variant 'm0' on line 1 already"):
        Groups().samples(None, "test", options(f"groups:{file}"))


def test_answers_that_carry_their_references_need_no_data(tmp_path: Path) -> None:
    file = tmp_path / "answers.jsonl"
    line = (
        '{"group": "a", "variant": "%s", "response": "x", "references": ["cat"], "labels": {"style": "%s"}}\n'
    )
    file.write_text("".join(line % (style, style) for style in ("candy", "mosaic")))
    answers = read_predictions(file, MMR3.answer_files, setting="restyling")
    chosen = {**options("mmr3:restyling"), **MMR3().options_from_answers(str(file), answers, None)}
    (sample,) = MMR3().samples_in_answers(answers, "test", chosen)
    assert [probe.references for probe in MMR3().probes(sample, chosen)] == [("cat",), ("cat",)]


def verdict(task: str, said: str, *references: str, shown: tuple[str, ...] = ()) -> tuple[str, str | None]:
    benchmark = MMR3() if task.startswith("mmr3") else Groups()
    scorer = by_question(benchmark.scorers(options(task)), RuleScorer)["correct"]
    case = Case(("k",), "correct", "?", (said,), references, shown, 0)
    reading = scorer.decide(case)
    return reading.verdict, reading.extracted


def test_an_answer_is_right_where_any_reference_occurs_in_it() -> None:
    assert verdict("mmr3:context", "Oranges.", "apple", "orange") == ("right", "oranges")
    assert verdict("mmr3:context", "a lemon", "orange")[0] == "wrong"


def test_without_a_reference_an_answer_is_unscored() -> None:
    assert verdict("groups:x", "a lemon")[0] == "unscored"


def test_where_options_were_shown_the_right_one_must_be_chosen() -> None:
    shown = ("a cat", "a dog")
    assert verdict("groups:x", "The answer is B", "A dog", shown=shown) == ("right", "B")
    assert verdict("groups:x", "The answer is A", "b dog", "B", shown=shown) == ("wrong", "A")


def test_a_label_size_of_one_s_own_is_a_label(tmp_path: Path) -> None:
    file = tmp_path / "mine.jsonl"
    sizes: list[dict[str, str]] = [{}, {"size": "large"}, {"size": "small"}]
    write_groups([GroupLine("a", f"v{n}", prompt="?", labels=size) for n, size in enumerate(sizes)], file)
    (sample,) = Groups().samples(None, "test", options(f"groups:{file}"))
    assert len(list(Groups().probes(sample, options(f"groups:{file}")))) == 3


def test_a_folder_stands_for_the_groups_file_in_it(data: Path) -> None:
    assert len(list(Groups().samples(None, "test", options(f"groups:{data / 'context'}")))) == 2


def test_sampling_at_temperature_0_gets_a_note() -> None:
    unchanged = {**options("mmr3:context"), "unchanged": True}
    assert len(MMR3().sampling_notes(unchanged, {"temperature": 0})) == 1
    assert MMR3().sampling_notes(unchanged, {"temperature": 0.7}) == []
    assert MMR3().sampling_notes(options("mmr3:context"), {"temperature": 0}) == []


def test_sampling_is_a_task_of_its_own() -> None:
    chosen = options("mmr3:context")
    assert MMR3().task_arguments(chosen) == ""
    assert MMR3().task_arguments({**chosen, "unchanged": True}) == "--set unchanged=on"
