"""CODIS against its paper and released files: data, prompts, scores."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from sightline.benchmarks.base import Benchmark
from sightline.benchmarks.codis.benchmark import Codis
from sightline.errors import UserError
from sightline.evaluation.options import effective
from sightline.evaluation.result import Evaluation
from sightline.evaluation.score import score_file
from sightline.evaluation.spec import Spec
from sightline.text import load
from sightline.types import ImageRef, Probe, Sample, Text


def options_of(setting: str, **chosen: Any) -> dict[str, Any]:
    benchmark: Benchmark = Codis()
    spec = Spec(task=f"codis:{setting}", set=chosen)
    return dict(effective(benchmark, benchmark.settings[setting], spec).benchmark)


def probes_of(data: Path, setting: str, **chosen: Any) -> list[tuple[Sample, Probe]]:
    benchmark, options = Codis(), options_of(setting, **chosen)
    return [
        (sample, probe)
        for sample in benchmark.samples(data, "test", options)
        for probe in benchmark.probes(sample, options)
    ]


def text_of(probe: Probe) -> str:
    return "".join(part.text for part in probe.messages[0].parts if isinstance(part, Text))


def shows_a_image(probe: Probe) -> bool:
    return any(isinstance(part, ImageRef) for part in probe.messages[0].parts)


@pytest.fixture
def data(shared: Path) -> Path:
    return shared / "data" / "codis"


def score(data: Path, file: Path, **options: Any) -> Evaluation:
    return asyncio.run(score_file(Spec(task="codis", data=str(data), **options), str(file)))


def test_the_data_are_those_of_the_paper(data: Path) -> None:
    samples = Codis().samples(data, "test", options_of("default"))
    assert len(samples) == 353
    assert len({sample.images[0].path for sample in samples}) == 216
    assert Counter(sample.labels["category"] for sample in samples) == {
        "Location and Orientation": 84,
        "Temporal Information": 95,
        "Cultural Background": 47,
        "Attributes": 75,
        "Relationships": 52,
    }


@pytest.mark.parametrize(
    ("setting", "row"),
    [
        ("default", "w/ DI w/ CoT"),
        ("no-cot", "w/ DI w/o CoT"),
        ("no-instructions", "w/o DI w/ CoT"),
        ("plain", "w/o DI w/o CoT"),
    ],
)
def test_the_four_prompts_are_those_of_table_11(data: Path, setting: str, row: str) -> None:
    printed = json.loads((data / "prompts.json").read_text())["inference_prompts_table11"][row]
    for sample, probe in probes_of(data, setting):
        context = getattr(sample.record[0].context, probe.variant)
        expected = (printed.replace(" Context: [CONTEXT HERE]", f"\nContext: {context}")).replace(
            " Question: [QUESTION HERE]", f"\nQuestion: {sample.question}"
        )
        assert text_of(probe) == expected
        assert shows_a_image(probe)


def test_the_judge_prompts_are_those_of_table_12_and_of_the_released_script(data: Path) -> None:
    printed = json.loads((data / "prompts.json").read_text())
    table = (
        printed["eval_prompt_paper_table12"].replace("- 1.", "1.").replace("- 2.", "2.").replace("- 3.", "3.")
    )
    ours = load("sightline.benchmarks.codis")["judge"]["text"]
    filled = ours.replace("{question}", "[QUESTION HERE]").replace("{reference}", "[GROUNDTRUTH HERE]")
    assert filled.replace("{output}", "[OUTPUT HERE]") == table
    released = load("sightline.benchmarks.codis")["judge_released"]["text"]
    for name in ("question", "reference", "output"):
        released = released.replace(f"{{{name}}}", "{}")
    assert released == printed["eval_prompt_repo"]


def test_without_context_each_image_question_is_asked_once_and_mentions_no_context(data: Path) -> None:
    probes = probes_of(data, "no-context")
    assert len(probes) == 706
    assert len({(text_of(probe), sample.images[0].path) for sample, probe in probes}) == 308
    assert not any(
        "context" in text_of(probe).replace(sample.question, "").lower() for sample, probe in probes
    )


def test_text_only_is_the_default_prompt_without_the_image(data: Path) -> None:
    for (_, shown), (_, bare) in zip(probes_of(data, "default"), probes_of(data, "no-image"), strict=True):
        assert text_of(shown) == text_of(bare)
        assert not shows_a_image(bare)


def test_captions_stand_in_the_images_place_for_the_pairs_that_have_one(data: Path, tmp_path: Path) -> None:
    first = Codis().samples(data, "test", options_of("default"))[0].record[0].image_id
    (tmp_path / "captions.jsonl").write_text(json.dumps({"image_id": first, "caption": "a {question} hand"}))
    probes = probes_of(data, "captions", captions=str(tmp_path / "captions.jsonl"))
    assert {sample.record[0].image_id for sample, _ in probes} == {first}
    for _, probe in probes:
        assert "phrase.\nImage description: a {question} hand\nContext: " in text_of(probe)
        assert not shows_a_image(probe)


def test_captions_without_a_file_say_what_is_missing(data: Path) -> None:
    with pytest.raises(UserError, match="--set captions=FILE"):
        Codis().samples(data, "test", options_of("captions"))


def test_a_caption_whose_name_is_no_image_is_refused_while_an_image_lacks_one(
    data: Path, tmp_path: Path
) -> None:
    first, *others = dict.fromkeys(
        sample.record[0].image_id for sample in Codis().samples(data, "test", options_of("default"))
    )
    file = tmp_path / "captions.json"
    file.write_text(json.dumps({f"images/{first}": "a hand"}))
    options = options_of("captions", captions=str(file))
    with pytest.raises(UserError, match=f"did you mean '{first}'") as refused:
        Codis().samples(data, "test", options)
    assert (refused.value.file, refused.value.record) == (str(file), f"images/{first}")
    file.write_text(json.dumps(dict.fromkeys([first, *others, "of-more-data.jpg"], "a hand")))
    assert len(Codis().samples(data, "test", options)) == 353


@pytest.mark.parametrize(
    ("record", "message"),
    [
        ({"imageid": "a.jpg", "caption": "a hand"}, "entry 1: lacks image_id, did you mean 'imageid'"),
        ({"image_id": "a.jpg", "caption": 5}, "entry 1, field caption: is not a text"),
    ],
)
def test_a_wrong_record_of_captions_is_named(
    data: Path, tmp_path: Path, record: dict[str, Any], message: str
) -> None:
    (tmp_path / "captions.json").write_text(json.dumps([record]))
    with pytest.raises(UserError, match=message):
        Codis().samples(data, "test", options_of("captions", captions=str(tmp_path / "captions.json")))


def test_the_ground_truths_score_100_and_with_halves_swapped_no_pair_is_right(
    data: Path, tmp_path: Path
) -> None:
    right = score(data, data / "output_example.json").result
    assert [(m.metric, m.value) for m in right.metrics if m.subset == "all"][:2] == [
        ("acc_p", 100.0),
        ("acc_q", 100.0),
    ]
    assert right.undecided == 0
    awareness = next(m for m in right.metrics if m.metric == "context_awareness")
    assert awareness.value == 100.0
    swapped = [
        {
            "id": entry["id"],
            "output": {
                "output_1": entry["output"]["output_2"],
                "output_2": entry["output"]["output_1"],
            },
        }
        for entry in json.loads((data / "output_example.json").read_text())
    ]
    (tmp_path / "swapped.json").write_text(json.dumps(swapped))
    assert score(data, tmp_path / "swapped.json").result.metrics[0].value == 0.0


def test_answers_of_a_results_folder_score_to_the_same_numbers(data: Path, tmp_path: Path) -> None:
    first = score(data, data / "output_example.json", out=str(tmp_path / "a"))
    again = score(data, tmp_path / "a" / "answers.jsonl", out=str(tmp_path / "b"))
    assert again.result.metrics == first.result.metrics
    assert again.result.data_digest == first.result.data_digest
    assert (tmp_path / "a" / "predictions.json").read_bytes() == (
        tmp_path / "b" / "predictions.json"
    ).read_bytes()


def test_humans_overrule_the_rules_where_they_are_named_first(data: Path, tmp_path: Path) -> None:
    score(data, data / "output_example.json", out=str(tmp_path / "a"))
    lines = (tmp_path / "a" / "answers.jsonl").read_text().splitlines()
    verdicts = [
        {"targets": [json.loads(line)["key"]], "question": "correct", "verdict": "wrong", "judge": "ann"}
        for line in lines[:4]
    ]
    (tmp_path / "ann.jsonl").write_text("\n".join(map(json.dumps, verdicts)))
    judges = (f"human:{tmp_path / 'ann.jsonl'}", "rules")
    result = score(data, data / "output_example.json", judge=judges).result
    assert result.metrics[0].value == pytest.approx(100 * 351 / 353)


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda e: e.pop(), "2 of 706 answers are missing: 352"),
        (lambda e: e.append(dict(e[0])), "000"),
        (lambda e: e[3]["output"].pop("output_2"), "003.*output_2"),
        (lambda e: e[3]["output"].update(output_1=[[7]]), "003.*output_1"),
        (lambda e: e[3].update(id="99x"), "99x"),
    ],
)
def test_a_faulty_output_file_is_refused_by_id(data: Path, tmp_path: Path, change: Any, message: str) -> None:
    entries = json.loads((data / "output_example.json").read_text())
    change(entries)
    (tmp_path / "outputs.json").write_text(json.dumps(entries))
    with pytest.raises(UserError, match=message):
        score(data, tmp_path / "outputs.json")


def test_allowed_missing_answers_count_as_wrong_and_are_counted(data: Path, tmp_path: Path) -> None:
    entries = json.loads((data / "output_example.json").read_text())[:-3]
    (tmp_path / "outputs.json").write_text(json.dumps(entries))
    evaluation = score(data, tmp_path / "outputs.json", allow_missing=True)
    assert evaluation.result.errors == 6
    assert evaluation.result.metrics[0].value == pytest.approx(100 * 350 / 353)
    assert evaluation.exit_status == 1


@pytest.mark.parametrize(
    ("change", "message"),
    [
        (lambda r: r[5].pop("question"), "record 005, field question"),
        (lambda r: r[5]["context"].pop("context_2"), "record 005, field context.context_2"),
        (lambda r: r[5].update(id="004"), "record 004, field id"),
        (lambda r: r[5].update(answer="x"), "record 005, field answer"),
    ],
)
def test_a_faulty_record_is_refused_by_id_and_field(
    data: Path, tmp_path: Path, change: Any, message: str
) -> None:
    records = json.loads((data / "data.json").read_text())
    change(records)
    (tmp_path / "data.json").write_text(json.dumps(records))
    with pytest.raises(UserError, match=message):
        Codis().samples(tmp_path, "test", options_of("default"))


def test_truncated_data_are_refused(data: Path, tmp_path: Path) -> None:
    (tmp_path / "data.json").write_bytes((data / "data.json").read_bytes()[:20_000])
    with pytest.raises(UserError, match="not valid JSON"):
        Codis().samples(tmp_path, "test", options_of("default"))


def test_several_judges_are_set_against_each_other(data: Path, tmp_path: Path) -> None:
    score(data, data / "output_example.json", out=str(tmp_path / "a"))
    keys = [json.loads(line)["key"] for line in (tmp_path / "a" / "answers.jsonl").read_text().splitlines()]
    said = ["right"] * 95 + ["wrong"] * 5
    lines = [
        {"targets": [key], "question": "correct", "verdict": verdict, "judge": judge}
        for judge in ("ann", "bob", "cid", "dan")
        for key, verdict in zip(keys, said, strict=False)
        if judge != "dan" or verdict == "right" or key != keys[99]
    ]
    (tmp_path / "human.jsonl").write_text("\n".join(map(json.dumps, lines)))
    judges = ("rules", f"human:{tmp_path / 'human.jsonl'}")
    found = {
        (metric.metric, metric.subset): metric
        for metric in score(data, data / "output_example.json", judge=judges).result.metrics
    }
    both = found["agreement", "judges=rules and ann"]
    assert (both.value, both.n) == (95.0, 100)
    assert found["agreement", "judges=ann and bob"].value == 100.0
    assert found["human_consistency", "all"].value == 100.0
    assert found["human_consistency", "all"].n == 4 * 99


def test_answers_of_one_setting_are_not_scored_as_another(data: Path, tmp_path: Path) -> None:
    score(data, data / "output_example.json", out=str(tmp_path / "a"))
    with pytest.raises(UserError, match="belong to codis:default"):
        asyncio.run(
            score_file(Spec(task="codis:plain", data=str(data)), str(tmp_path / "a" / "answers.jsonl"))
        )


def test_other_words_can_be_counted(data: Path) -> None:
    result = score(data, data / "output_example.json", set={"bias": "left:right"}).result
    sides = {m.metric: m for m in result.metrics if m.subset == "words=left:right"}
    assert sides["bias_first"].n > 40
    assert (sides["bias_neither"].value or 0) < 10
    with pytest.raises(UserError, match="not a pair of words"):
        score(data, data / "output_example.json", set={"bias": "left"})
