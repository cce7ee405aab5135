"""ConTextual against its paper and released files: data, labels, prompts, references, scores."""

from __future__ import annotations

import asyncio
import csv
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.contextual.benchmark import Contextual
from sightline.cli.main import main
from sightline.errors import UserError
from sightline.evaluation.options import effective
from sightline.evaluation.result import Evaluation
from sightline.evaluation.score import score_file
from sightline.evaluation.spec import Spec
from sightline.types import ImageRef, MetricValue, Sample, Text
from training.scenes.build import generate_contextual

HEADER = "image_url,instruction,response,category\n"


@pytest.fixture
def data(shared: Path) -> Path:
    return shared / "data" / "contextual"


def options_of(setting: str = "default", seed: int = 0, **chosen: Any) -> dict[str, Any]:
    benchmark: Benchmark = Contextual()
    spec = Spec(task=f"contextual:{setting}", set=chosen, seed=seed)
    return dict(effective(benchmark, benchmark.settings[setting], spec).benchmark)


def samples_of(data: Path, split: str, setting: str = "default", **chosen: Any) -> Sequence[Sample]:
    return Contextual().samples(data, split, options_of(setting, **chosen))


def table(folder: Path, split: str, lines: Sequence[Sequence[str]]) -> Path:
    """A folder with a table of url, instruction, response, category."""
    folder.mkdir(exist_ok=True)
    with (folder / f"contextual_{split}.csv").open("w", newline="") as stream:
        csv.writer(stream).writerows([HEADER.strip().split(","), *lines])
    return folder


def turns(sample: Sample, **options: Any) -> list[tuple[str, list[str]]]:
    """Role and parts of each message, images by their paths in the folder."""
    (probe,) = Contextual().probes(sample, options_of(**options))
    return [
        (
            message.role,
            [
                part.text if isinstance(part, Text) else part.path.removeprefix(f"{part.root}/")
                for part in message.parts
            ],
        )
        for message in probe.messages
    ]


def score(data: Path, file: Path, **options: Any) -> Evaluation:
    return asyncio.run(score_file(Spec(task="contextual", data=str(data), **options), str(file)))


def found(evaluation: Evaluation, subset: str = "all", metric: str = "accepted") -> MetricValue:
    (value,) = [m for m in evaluation.metrics if (m.metric, m.subset) == (metric, subset)]
    return value


def test_the_data_are_those_of_the_paper(data: Path) -> None:
    samples = samples_of(data, "test")
    assert len(samples) == len({sample.id for sample in samples}) == 506
    assert Counter(sample.labels["category"] for sample in samples) == {
        "time": 50,
        "shopping": 50,
        "navigation-transportation": 50,
        "abstract": 50,
        "app": 50,
        "web": 50,
        "infographics": 50,
        "Miscellaneous Natural Scenes": 156,
    }
    assert Counter(sample.labels.get("source") for sample in samples) == {
        None: 350,
        "stvqa": 75,
        "estvqa": 81,
    }
    # Appendix G.2: shopping, navigation and miscellaneous natural scenes are natural.
    assert Counter(sample.labels["scene"] for sample in samples) == {"natural": 256, "digital": 250}


def test_every_instance_of_val_stands_in_test_and_brings_its_reference(data: Path) -> None:
    test, val = samples_of(data, "test"), samples_of(data, "val")
    assert Counter(sample.labels["category"] for sample in val)["Miscellaneous Natural Scenes"] == 30
    asked = {(sample.id, sample.question): sample.references for sample in test}
    assert all(asked[sample.id, sample.question] == sample.references for sample in val)
    assert sum(bool(sample.references) for sample in test) == 100


def test_without_val_beside_it_test_has_no_references(data: Path, tmp_path: Path) -> None:
    (tmp_path / "contextual_test.csv").symlink_to(data / "contextual_test.csv")
    samples = samples_of(tmp_path, "test")
    assert len(samples) == 506
    assert not any(sample.references for sample in samples)


def test_a_query_is_the_image_and_the_instruction_as_released_and_nothing_else(data: Path) -> None:
    with (data / "contextual_test.csv").open(newline="") as stream:
        released = [row["instruction"] for row in csv.DictReader(stream)]
    samples = samples_of(data, "test")
    asked = [turns(sample) for sample in samples]
    assert [parts[1] for ((_, parts),) in asked] == released
    assert all(role == "user" for ((role, _),) in asked)
    assert asked[0][0][1][0] == (
        "images/time-images/Customizable-Analog-Alarm-Clock-with-jQuery-Canvas-thooClock.jpg"
    )


def test_the_instruction_stands_before_the_image_where_that_is_chosen(data: Path) -> None:
    """The released eval_gpt4v.py sends the text, then the image; eval_gemini.py the image first."""
    sample = samples_of(data, "val", "2-shot")[0]
    for setting in ("default", "2-shot"):
        by_default, chosen = (
            turns(sample, setting=setting, **first) for first in ({}, {"first": "instruction"})
        )
        assert by_default[-1][1][0].startswith("images/")
        assert [(role, parts[::-1]) for role, parts in by_default] == chosen


def test_the_examples_of_fewer_shots_are_among_those_of_more(data: Path) -> None:
    shown = {}
    for shots in (2, 4, 8):
        sample = samples_of(data, "val", f"{shots}-shot")[0]
        said = turns(sample, setting=f"{shots}-shot")
        assert [role for role, _ in said] == ["user", "assistant"] * shots + ["user"]
        shown[shots] = said[:-1]
        assert said[-1][1][1] == sample.question
    assert shown[2] == shown[4][:4]
    assert shown[4] == shown[8][:8]
    responses = {row.question: row.references for row in samples_of(data, "val")}
    for (_, (_, instruction)), (_, (response,)) in zip(shown[8][::2], shown[8][1::2], strict=True):
        assert responses[instruction] == (response,)


@pytest.mark.parametrize("split", ["val", "test"])
def test_the_eight_examples_are_left_out_at_every_number_of_shots(data: Path, split: str) -> None:
    every = {sample.id for sample in samples_of(data, split)}
    kept = [{sample.id for sample in samples_of(data, split, f"{shots}-shot")} for shots in (0, 2, 4, 8)]
    assert all(ids == kept[0] for ids in kept)
    examples = samples_of(data, "val", "8-shot")[0].record.examples
    assert every - kept[0] == {example.image_url for example in examples}
    assert len(every) - len(kept[0]) == 8


def test_another_seed_draws_other_examples_and_the_same_seed_the_same(data: Path) -> None:
    def drawn(seed: int) -> Any:
        return samples_of(data, "test", "2-shot", seed=seed)[0].record.examples

    assert drawn(0) == drawn(0)
    assert drawn(0) != drawn(1)


def test_the_settings_ask_under_their_shots_and_the_default_one_is_zero_shot(data: Path) -> None:
    sample = samples_of(data, "val", "8-shot")[0]
    for setting, variant in (("default", "0-shot"), ("0-shot", "0-shot"), ("8-shot", "8-shot")):
        (probe,) = Contextual().probes(sample, options_of(setting))
        assert probe.variant == variant


def test_a_judge_is_shown_the_image_where_that_is_chosen(data: Path) -> None:
    sample = samples_of(data, "val")[0]
    for chosen in (False, True):
        (probe,) = Contextual().probes(sample, options_of(judge_image=chosen))
        assert probe.evidence == (sample.images if chosen else ())


@pytest.mark.parametrize("form", ["csv", "jsonl", "json"])
def test_an_answers_file_brings_references_and_a_labels_file_tasks(
    data: Path, tmp_path: Path, form: str
) -> None:
    samples = samples_of(data, "test")
    pairs = [(sample.id, f"reference, {n}") for n, sample in enumerate(samples)]
    file, labels = tmp_path / f"r.{form}", tmp_path / "labels.jsonl"
    if form == "csv":
        with file.open("w", newline="") as stream:
            csv.writer(stream).writerows([("image_url", "response"), *pairs])
    elif form == "jsonl":
        file.write_text("".join(json.dumps({"image_url": u, "response": r}) + "\n" for u, r in pairs))
    else:
        file.write_text(json.dumps(dict(pairs)))
    labels.write_text(json.dumps({"image_url": samples[3].id, "task": "math"}) + "\n")
    read = samples_of(data, "test", answers=str(file), labels=str(labels))
    assert [sample.references for sample in read] == [(reference,) for _, reference in pairs]
    assert [sample.id for sample in read if sample.labels.get("task") == "math"] == [samples[3].id]


@pytest.mark.parametrize(
    ("line", "told"),
    [
        ({"image_url": "https://h/unheard.jpg", "response": "x"}, "is not an instance of the data"),
        ({"image_url": "https://h/x.jpg", "response": 7}, "field response: is not a text"),
    ],
)
def test_what_is_wrong_in_an_answers_file_is_told(tmp_path: Path, line: dict[str, Any], told: str) -> None:
    folder = table(tmp_path / "d", "test", [("https://h/x.jpg", "What?", "", "time")])
    (tmp_path / "r.jsonl").write_text(json.dumps(line) + "\n")
    with pytest.raises(UserError, match=told):
        samples_of(folder, "test", answers=str(tmp_path / "r.jsonl"))


def test_a_image_with_several_instructions_has_numbered_ids(tmp_path: Path) -> None:
    url = "https://h/x.jpg"
    folder = table(tmp_path / "d", "test", [(url, f"What {n}?", "", "time") for n in range(3)])
    samples = samples_of(folder, "test")
    assert [sample.id for sample in samples] == [url, f"{url}#2", f"{url}#3"]
    assert len({sample.images for sample in samples}) == 1


@pytest.mark.parametrize(
    ("lines", "told"),
    [
        ([("https://h/x.jpg", "What?", "", "time")] * 2, "this instance occurs twice"),
        ([("https://h/x.jpg", " ", "", "time")], "line 2, field instruction: is blank"),
        ([("https://h/x.jpg", "What?", "", "")], "field category: is blank"),
        (
            [("https://h/x.jpg", "What?", "", "time"), ("https://i/x.jpg", "What?", "", "time")],
            "the image has the path of another URL's image",
        ),
    ],
)
def test_what_is_wrong_in_a_table_is_told_with_its_line(
    tmp_path: Path, lines: list[tuple[str, ...]], told: str
) -> None:
    folder = table(tmp_path / "d", "test", lines)
    with pytest.raises(UserError, match=told):
        samples_of(folder, "test")


def test_a_table_without_a_column_is_refused(tmp_path: Path) -> None:
    (tmp_path / "contextual_test.csv").write_text("image_url,category\nhttps://h/x.jpg,time\n")
    with pytest.raises(UserError, match="field instruction: lacks a column"):
        samples_of(tmp_path, "test")


def test_only_the_table_of_test_may_lack_the_responses(tmp_path: Path) -> None:
    """Else a column by another name would leave all of val without a reference, in silence."""
    misnamed = "image_url,instruction,answer,category\nhttps://h/x.jpg,What?,this,time\n"
    (tmp_path / "contextual_test.csv").write_text(misnamed)
    with pytest.raises(UserError, match=r"_test\.csv, record line 1, field answer: is an unknown field"):
        samples_of(tmp_path, "test")
    (tmp_path / "contextual_test.csv").write_text(
        "image_url,instruction,category\nhttps://h/x.jpg,What?,time\n"
    )
    assert samples_of(tmp_path, "test")[0].references == ()
    for split in ("val", "synthetic"):
        (tmp_path / f"contextual_{split}.csv").write_text(misnamed)
        for asked in (split, "test"):
            with pytest.raises(UserError, match=f"_{split}.csv, field response: lacks a column"):
                samples_of(tmp_path, asked)
        (tmp_path / f"contextual_{split}.csv").unlink()


def test_few_shots_need_eight_solved_instances(tmp_path: Path) -> None:
    folder = table(tmp_path / "d", "val", [(f"https://h/{n}.jpg", "?", "x", "time") for n in range(7)])
    with pytest.raises(UserError, match="has 7 instances with a response"):
        samples_of(folder, "val", "2-shot")
    assert len(samples_of(folder, "val")) == 7


def test_on_test_accepted_is_over_the_references_that_there_are(data: Path, tmp_path: Path) -> None:
    """Of the released answers 12 have a reference; what the file lacks is not accepted."""
    run = score(data, data / "master.json", model="gemini-pro-vision", allow_missing=True)
    accepted = found(run)
    assert (accepted.n, run.result.samples, run.result.errors) == (100, 506, 464)
    unanswered = found(run, "category=Miscellaneous Natural Scenes")
    assert (unanswered.value, unanswered.n, unanswered.reason) == (None, 0, "no probe was answered")
    assert found(run, "scene=digital").n == 50

    (tmp_path / "contextual_test.csv").symlink_to(data / "contextual_test.csv")
    bare = score(tmp_path, data / "master.json", model="gemini-pro-vision", allow_missing=True)
    assert found(bare).value is None
    assert found(bare).n == 0
    assert "the references of test" in (found(bare).reason or "")
    assert bare.result.unscored == 42


def test_without_labels_the_rows_of_tasks_are_null_and_say_why(data: Path, tmp_path: Path) -> None:
    file, labels = tmp_path / "a.jsonl", tmp_path / "tasks.json"
    samples = samples_of(data, "val")
    lines = [{"id": sample.id, "response": sample.references[0]} for sample in samples]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    labels.write_text(json.dumps({sample.id: "math" for sample in samples[:3]}))
    bare = score(data, file, split="val")
    for task in ("extractive", "math"):
        row = found(bare, f"task={task}")
        assert (row.value, row.n) == (None, 0)
        assert "--set labels=FILE" in (row.reason or "")
    assert found(score(data, file, split="val", set={"labels": str(labels)}), "task=math").n == 3


def test_the_references_themselves_are_right_where_rules_decide_and_never_wrong(
    data: Path, tmp_path: Path
) -> None:
    file = tmp_path / "a.jsonl"
    lines = [{"id": sample.id, "response": sample.references[0]} for sample in samples_of(data, "val")]
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    accepted = found(score(data, file, split="val"))
    assert accepted.value is not None
    assert accepted.value_decided == 100.0
    assert accepted.value >= 20.0
    assert accepted.value_if_right == 100.0


def test_the_released_judgements_count_as_the_released_script_counts_them(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """analysis/analyze_performance.py on the released files: 5 of 13."""
    out, said = tmp_path / "answers.jsonl", tmp_path / "verdicts.jsonl"
    words = ["import", str(data / "master.json"), "--task", "contextual", "--data", str(data)]
    words += ["--judgements", str(data / "gpt4_judgments.json"), "--allow-missing"]
    assert main([*words, "--out", str(out), "--verdicts", str(said)]) == 0
    assert "(13 verdicts)" in capsys.readouterr().out
    assert len(out.read_text().splitlines()) == 48
    run = score(
        data, data / "master.json", model="gemini-pro-vision", allow_missing=True, judge=(f"human:{said}",)
    )
    verdicts = [json.loads(line)["verdict"] for line in said.read_text().splitlines()]
    assert Counter(verdicts) == {"right": 5, "wrong": 8}
    accepted = found(run)
    assert accepted.value is not None
    assert round(accepted.value * accepted.n / 100) == 5


def test_the_cases_of_the_appendix_become_answers_and_verdicts(
    data: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    words = ["import", str(data / "appendix_cases.jsonl"), "--task", "contextual", "--split", "val"]
    words += ["--data", str(data), "--allow-missing", "--out", str(tmp_path / "a.jsonl")]
    assert main([*words, "--verdicts", str(tmp_path / "v.jsonl")]) == 0
    assert capsys.readouterr().err.count("contradicted: Figure") == 5
    answers = [json.loads(line) for line in (tmp_path / "a.jsonl").read_text().splitlines()]
    verdicts = [json.loads(line) for line in (tmp_path / "v.jsonl").read_text().splitlines()]
    assert (len(answers), len({answer["key"] for answer in answers})) == (210, 210)
    assert len(verdicts) == 161
    assert {verdict["targets"][0] for verdict in verdicts} <= {answer["key"] for answer in answers}
    assert Counter(answer["version"] for answer in answers)["GPT-4V"] == 30


def test_a_results_folder_holds_the_files_of_both_leaderboards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    data = generate_contextual(tmp_path / "drawn", questions=6, val=6)
    words = ["run", "contextual", "--data", str(data), "--model", "baseline/chance", "--quiet"]
    assert main([*words, "--split", "val", "--out", "val"]) == 0
    assert main([*words, "--out", "test"]) == 0
    names = [f"images/val-{n:03}.png" for n in range(1, 7)]
    predictions = json.loads(Path("val/predictions.json").read_text())["baseline/chance"]
    judged = json.loads(Path("val/judgments.json").read_text())["baseline/chance"]
    assert list(predictions) == list(judged) == names
    assert set(judged.values()) <= {0, 1}
    assert not Path("test/judgments.json").exists()
    export = ["export", "val", "--out", "mine.json", "--as", "contextual-val", "--model", "mine"]
    assert main(export) == 0
    assert json.loads(Path("mine.json").read_text()) == {"mine": judged}
    for layout in ("contextual", "contextual-val"):
        assert main(["export", "val", "--as", layout, "--out", f"{layout}.json"]) == 0
    assert Path("contextual.json").read_bytes() == Path("val/predictions.json").read_bytes()
    assert Path("contextual-val.json").read_bytes() == Path("val/judgments.json").read_bytes()
    assert main(["export", "test", "--as", "contextual-val", "--out", "none.json"]) == 2


def test_scoring_the_answers_of_a_run_gives_its_metrics_again(tmp_path: Path) -> None:
    import sightline

    data = generate_contextual(tmp_path / "drawn", questions=0, val=12)
    options: dict[str, Any] = {"data": data, "split": "val"}
    run = sightline.run(
        "contextual", model="baseline/chance", store=str(tmp_path / "s.db"), out=tmp_path / "r", **options
    )
    again = score(data, tmp_path / "r/answers.jsonl", split="val")
    assert again.metrics == run.metrics


def test_the_image_of_an_instance_lies_in_the_data_folder(tmp_path: Path) -> None:
    folder = table(tmp_path / "d", "test", [("https://h/a/../../x%2F..jpg", "What?", "", "time")])
    (sample,) = samples_of(folder, "test")
    assert sample.images == (ImageRef(str(folder / "images/a/%2E%2E/%2E%2E/x%2F..jpg"), str(folder)),)
