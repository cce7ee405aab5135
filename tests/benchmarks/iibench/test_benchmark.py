"""II-Bench against its released files: prompts byte for byte, extraction count for count."""

from __future__ import annotations

import asyncio
import gzip
import json
from collections import Counter
from pathlib import Path
from typing import Any

import msgspec
import pytest

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.iibench.benchmark import IIBench
from sightline.errors import UserError
from sightline.evaluation.options import effective
from sightline.evaluation.result import Evaluation
from sightline.evaluation.score import score_file
from sightline.evaluation.spec import Spec
from sightline.types import ImageRef, Probe, Sample, Text

TEXT_SETTINGS = ("none", "cot", "domain", "emotion", "rhetoric")
LABELS = ("domain", "emotion", "image_type", "difficulty", "rhetoric")


def options_of(setting: str, **chosen: Any) -> dict[str, Any]:
    benchmark: Benchmark = IIBench()
    spec = Spec(task=f"iibench:{setting}", set=chosen)
    return dict(effective(benchmark, benchmark.settings[setting], spec).benchmark)


def probes_of(data: Path, setting: str, split: str = "test", **chosen: Any) -> list[tuple[Sample, Probe]]:
    benchmark, options = IIBench(), options_of(setting, **chosen)
    samples = benchmark.samples(data, split, options)
    return [(sample, probe) for sample in samples for probe in benchmark.probes(sample, options)]


def text_of(probe: Probe) -> str:
    return "".join(part.text for part in probe.messages[0].parts if isinstance(part, Text))


def images_of(probe: Probe) -> list[str]:
    return [Path(part.path).stem for part in probe.messages[0].parts if isinstance(part, ImageRef)]


def released(shared: Path, setting: str) -> Path:
    return shared / "data" / "iibench" / "released" / f"yi-vl-6b-chat_test_{setting}.jsonl.gz"


def score(shared: Path, setting: str, **options: Any) -> Evaluation:
    data = str(shared / "data" / "iibench")
    spec = Spec(**{"task": f"iibench:{setting}", "data": data, **options})
    return asyncio.run(score_file(spec, str(released(shared, setting))))


@pytest.fixture(scope="module")
def of_none(shared: Path) -> Evaluation:
    """The released answers of the setting `none`, scored."""
    return score(shared, "none")


@pytest.mark.parametrize("setting", TEXT_SETTINGS)
def test_prompts_equal_the_released_files_byte_for_byte(shared: Path, setting: str) -> None:
    with gzip.open(released(shared, setting), "rt", encoding="utf-8") as file:
        records = [json.loads(line) for line in file]
    printed = {question["id"]: question["prompt"] for record in records for question in record["questions"]}
    probes = probes_of(shared / "data" / "iibench", setting, options=str(released(shared, setting)))
    assert len(probes) == 1399
    assert {probe.sample: text_of(probe) for _, probe in probes} == printed


@pytest.mark.slow
@pytest.mark.parametrize("setting", TEXT_SETTINGS)
def test_extraction_error_and_miss_equal_the_golden_counts_overall_and_per_label(
    shared: Path, of_none: Evaluation, setting: str
) -> None:
    golden = json.loads((shared / "data" / "iibench" / "golden_tables.json").read_text())
    expected = golden["extraction"][f"yi-vl-6b-chat/{setting}"]
    result = (of_none if setting == "none" else score(shared, setting)).result
    values = {(metric.metric, metric.subset): metric for metric in result.metrics}
    assert (result.samples, result.errors, result.misses) == (1399, expected["errors"], expected["miss"])
    assert values["miss", "all"].value == pytest.approx(100 * expected["miss"] / 1399, abs=1e-9)
    for letter in "ABCDEF":
        count = values[f"answered_{letter}", "all"]
        assert round((count.value or 0) * count.n / 100) == expected["extracted"].get(letter, 0)
        for label in LABELS:
            for value, letters in expected["extracted_by_label"][label].items():
                count = values[f"answered_{letter}", f"{label}={value}"]
                assert count.n == golden["denominators_test_questions"][label][value]
                assert round((count.value or 0) * count.n / 100) == letters.get(letter, 0)


def test_the_one_miss_is_the_one_that_the_released_files_hold(shared: Path, tmp_path: Path) -> None:
    score(shared, "none", out=str(tmp_path / "out"))
    lines = (tmp_path / "out" / "answers.jsonl").read_text().splitlines()
    misses = [line["sample"] for line in map(json.loads, lines) if line["verdict"] == "miss"]
    assert misses == ["test-909"]


def test_without_an_answer_key_accuracy_is_null_and_says_why(of_none: Evaluation) -> None:
    accuracy = of_none.result.metrics[0]
    assert (accuracy.metric, accuracy.value, accuracy.n) == ("accuracy", None, 0)
    assert "released without answers" in (accuracy.reason or "")


def test_without_a_data_folder_the_predictions_file_is_enough(shared: Path, of_none: Evaluation) -> None:
    with_data = of_none.result
    alone = score(shared, "none", data=None).result
    assert [(m.metric, m.subset, m.value, m.n) for m in alone.metrics] == [
        (m.metric, m.subset, m.value, m.n) for m in with_data.metrics
    ]


@pytest.mark.slow
@pytest.mark.parametrize("as_text", [False, True])
def test_an_answers_file_is_right_to_the_count_though_the_shown_order_differs(
    shared: Path, tmp_path: Path, as_text: bool
) -> None:
    """The key names an option of test.json; the file shows other orders. Counted here by hand."""
    data = shared / "data" / "iibench"
    options = {
        question["id"]: question["options"]
        for record in json.loads((data / "test.json").read_text())
        for question in record["questions"]
    }
    key = {name: "ABCDEF"[number % 6] for number, name in enumerate(options)}
    written = {
        name: options[name]["ABCDEF".index(letter)] if as_text else letter for name, letter in key.items()
    }
    (tmp_path / "key.json").write_text(json.dumps(written))
    answers = tmp_path / "key.json"

    right, unscored = 0, 0
    with gzip.open(released(shared, "none"), "rt", encoding="utf-8") as file:
        for record in map(json.loads, file):
            (question,) = record["questions"]
            wanted = options[question["id"]]["ABCDEF".index(key[question["id"]])]
            shown = question["options"]
            letter = _letter_of(wanted, options[question["id"]], shown)
            unscored += letter is None and question["id"] != "test-909"
            # Every released answer but a few is one letter; those few are read by the golden tables' test.
            right += letter is not None and _plain(question["response"]) == letter
    result = score(shared, "none", set={"answers": str(answers)}).result
    accuracy = result.metrics[0]
    assert result.unscored == unscored
    assert accuracy.n == 1399 - unscored
    assert abs(round((accuracy.value or 0) * accuracy.n / 100) - right) <= _not_plain(shared)


def _letter_of(wanted: str, order: list[str], shown: list[str]) -> str | None:
    if wanted in shown:
        return "ABCDEF"[shown.index(wanted)]
    alike = [option for option in shown if option.casefold() == wanted.casefold()]
    if len(alike) == 1:
        return "ABCDEF"[shown.index(alike[0])]
    lost = [option for option in order if option not in shown]
    new = [option for option in shown if option not in order]
    return "ABCDEF"[shown.index(new[0])] if lost == [wanted] and len(new) == 1 else None


def _plain(response: str) -> str:
    return response.strip() if response.strip() in tuple("ABCDEF") else ""


def _not_plain(shared: Path) -> int:
    with gzip.open(released(shared, "none"), "rt", encoding="utf-8") as file:
        responses = [json.loads(line)["questions"][0]["response"] for line in file]
    return sum(not _plain(response) for response in responses)


@pytest.mark.parametrize(("setting", "shots"), [("1-shot", 1), ("2-shot", 2), ("3-shot", 3)])
def test_few_shot_prompts_show_the_examples_first_and_leave_them_out_of_scoring(
    shared: Path, setting: str, shots: int
) -> None:
    probes = probes_of(shared / "data" / "iibench", setting, split="dev")
    assert len(probes) == 32
    _, probe = probes[0]
    assert images_of(probe)[:shots] == ["dev-1", "dev-20", "dev-35"][:shots]
    assert images_of(probe)[shots] == probe.sample
    text = text_of(probe)
    assert text.count("Question: ") == shots + 1
    assert [line for line in text.splitlines() if line.startswith("Answer: ")] == [
        "Answer: (D)",
        "Answer: (A)",
        "Answer: (E)",
    ][:shots]
    assert f"Picture: <Picture {shots + 1}>\n" in text
    assert text.endswith("\nAnswer:\n")


def test_a_three_shot_prompt_reads_as_the_released_loader_joins_it(shared: Path) -> None:
    text = text_of(probes_of(shared / "data" / "iibench", "3-shot")[0][1])
    assert text.startswith(
        "Instruction: Please try to answer the single-answer multiple choice question below based on the "
        "examples(with answers) and the corresponding pictures.\nQuestion: In the comic image, what"
    )
    assert "Answer: (D)\n\nQuestion: What hidden message" in text
    assert "Answer: (E)\n\nQuestion: " in text


def test_no_image_is_the_prompt_of_none_without_the_image(shared: Path) -> None:
    data = shared / "data" / "iibench"
    with_image, without = probes_of(data, "none")[0][1], probes_of(data, "no-image")[0][1]
    assert text_of(with_image) == text_of(without)
    assert (images_of(with_image), images_of(without)) == (["test-1"], [])


def test_shuffled_orders_hold_the_same_options_and_know_the_right_letter(shared: Path) -> None:
    probes = probes_of(shared / "data" / "iibench", "shuffled", split="dev")
    by_sample: dict[str, list[Probe]] = {}
    for _, probe in probes:
        by_sample.setdefault(probe.sample, []).append(probe)
    for group in by_sample.values():
        assert [probe.variant for probe in group] == ["order_0", "order_1", "order_2"]
        assert len({frozenset(probe.options) for probe in group}) == 1
        right = {probe.options["ABCDEF".index(probe.references[0])] for probe in group}
        assert len(right) == 1
    assert Counter(len({probe.options for probe in group}) for group in by_sample.values())[3] >= 33


def test_the_answer_of_dev_is_the_option_that_dev_names(shared: Path) -> None:
    records = json.loads((shared / "data" / "iibench" / "dev.json").read_text())
    named = {q["id"]: q["correct_option"] for record in records for q in record["questions"]}
    for _, probe in probes_of(shared / "data" / "iibench", "none", split="dev"):
        assert probe.options["ABCDEF".index(probe.references[0])] == named[probe.sample]


def test_answers_of_the_shown_file_alone_cannot_be_letters(shared: Path, tmp_path: Path) -> None:
    (tmp_path / "key.json").write_text('{"test-1": "A"}')
    with pytest.raises(UserError, match="released order"):
        score(shared, "none", data=None, set={"answers": str(tmp_path / "key.json")})


@pytest.mark.parametrize(
    ("key", "message"),
    [
        ({"test-1": "G"}, "test-1, field answer"),
        ({"test-1": 3}, "test-1, field answer"),
        ({"test-99999": "A"}, "test-99999"),
    ],
)
def test_a_wrong_answers_file_is_refused_with_the_question_it_is_wrong_about(
    shared: Path, tmp_path: Path, key: dict[str, Any], message: str
) -> None:
    (tmp_path / "key.json").write_bytes(msgspec.json.encode(key))
    with pytest.raises(UserError, match=message):
        score(shared, "none", set={"answers": str(tmp_path / "key.json")})


@pytest.mark.slow
def test_a_file_scored_under_another_setting_says_so(shared: Path) -> None:
    data = str(shared / "data" / "iibench")
    spec = Spec(task="iibench:none", data=data)
    notes = asyncio.run(score_file(spec, str(released(shared, "cot")))).result.notes
    assert "1,399 of 1,399 prompts in the file are not those of iibench:none" in notes
    assert not score(shared, "cot").result.notes
