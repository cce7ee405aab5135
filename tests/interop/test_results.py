"""A run leaves as a file of another tool, which that tool's own library opens."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace
from tests.environments import call as run
from tests.environments import python_of

from sightline.cli.main import main
from sightline.formats.jsonl import read_outcomes
from sightline.interop.tracking import tracked_values
from sightline.types import Result
from training.scenes.build import generate_codis, generate_iibench

Capture = pytest.CaptureFixture[str]

REPLIES = (
    {"response": "Yes.", "finish_reason": "stop", "version": "v1", "reasoning": "The sign says so."},
    {"response": "No.", "usage": {"prompt_tokens": 90, "completion_tokens": 2, "cached_tokens": 64}},
    {"response": "It is the left one.\nLeft.", "finish_reason": "length"},
    {"response": ""},
    {"error": "time-out"},
    {"response": "I cannot tell."},
)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.delenv("SIGHTLINE_DATA", raising=False)


@pytest.fixture
def codis(tmp_path: Path) -> Path:
    folder = tmp_path / "codis"
    generate_codis(folder)
    return folder


def call(*words: str | Path, status: Sequence[int] = (0,)) -> None:
    assert main([*map(str, words)]) in status


def scored(codis: Path, *more: str) -> dict[str, Any]:
    """The metrics.json of a file of two repeats with every kind of answer, in `own`, run 1."""
    records = json.loads((codis / "data.json").read_text())
    probes = [(one["id"], f"context_{half}", draw) for one in records for half in (1, 2) for draw in (0, 1)]
    lines = [
        {"id": sample, "variant": variant, "draw": draw, **REPLIES[number % len(REPLIES)]}
        for number, (sample, variant, draw) in enumerate(probes)
    ]
    Path("answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    call("score", "codis", "answers.jsonl", "--data", codis, "--out", "own", "--quiet", *more, status=(0, 1))
    result: dict[str, Any] = json.loads(Path("own/metrics.json").read_text())
    return result


# -- Logs of inspect_ai

OF_THE_FILE = ("model", "model_identity", "options", "files", "spent")


@pytest.mark.parametrize("name", ["run.eval", "run.json"])
def test_a_log_of_inspect_gives_the_metrics_of_the_run_again(codis: Path, name: str) -> None:
    pytest.importorskip("inspect_ai")
    own = scored(codis)
    call("export", "1", "--as", "inspect", "--out", name)
    call("score", "codis", name, "--data", codis, "--out", "back", "--quiet", status=(0, 1))
    back = json.loads(Path("back/metrics.json").read_text())
    assert {one: own[one] for one in own if one not in OF_THE_FILE} == {
        one: back[one] for one in own if one not in OF_THE_FILE
    }
    # `score` reads no latency.
    for first, second in zip(
        read_outcomes(Path("own/answers.jsonl")), read_outcomes(Path("back/answers.jsonl")), strict=True
    ):
        assert replace(first, latency=0.0) == second


def test_options_in_several_orders_come_back_from_a_log(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai")
    from inspect_ai.log import read_eval_log

    generate_iibench(tmp_path / "ii")
    options = ("--data", tmp_path / "ii", "--split", "dev", "--set", "orders=3", "--quiet")
    call("run", "iibench:none", *options, "--model", "baseline/chance", "--out", "own")
    call("export", "own", "--as", "inspect", "--out", "run.eval", "--data", tmp_path / "ii")
    call("score", "iibench:none", "run.eval", *options, "--out", "back")
    own, back = (json.loads(Path(name, "metrics.json").read_text()) for name in ("own", "back"))
    assert own["metrics"] == back["metrics"]
    samples = read_eval_log("run.eval").samples or []
    by_letter = [(sample.choices or [])["ABCDEF".index(sample.target[0])] for sample in samples]
    right = {sample.metadata["group"]: text for sample, text in zip(samples, by_letter, strict=True)}
    assert all(
        right[sample.metadata["group"]] == text for sample, text in zip(samples, by_letter, strict=True)
    )
    assert len({tuple(sample.choices or ()) for sample in samples}) > len(right)


def test_inspect_reads_question_images_choices_scores_and_metrics_of_a_log(codis: Path) -> None:
    pytest.importorskip("inspect_ai")
    from inspect_ai.log import read_eval_log
    from inspect_ai.model import ContentImage

    asked = ("run", "codis", "--model", "baseline/chance", "--repeats", "2", "--out", "own", "--quiet")
    call(*asked, "--data", codis)
    own = json.loads(Path("own/metrics.json").read_text())
    call("export", "own", "--as", "inspect", "--out", "run.eval", "--data", codis)
    log = read_eval_log("run.eval", resolve_attachments=True)
    outcomes = list(read_outcomes(Path("own/answers.jsonl")))
    assert log.status == "success"
    assert log.samples is not None
    samples = {(one.id, one.epoch): one for one in log.samples}
    assert len(samples) == len(outcomes)
    for outcome in outcomes:
        sample = samples[f"{outcome.sample}/{outcome.variant}", outcome.draw + 1]
        assert not isinstance(sample.input, str)
        (message,) = sample.input
        assert message.text == outcome.prompt
        (image,) = [part for part in message.content if isinstance(part, ContentImage)]
        sent = base64.b64decode(image.image.partition(",")[2])
        assert hashlib.sha256(sent).hexdigest() == sample.metadata["images"][0]["sha256"]
        assert sent == (codis / outcome.images[0]).read_bytes()
        assert sample.metadata["cluster"] == outcome.cluster
        assert sample.metadata["group"] == outcome.sample
        assert sample.target == list(outcome.references)
        assert sample.output.completion == outcome.response
        assert (sample.error.message if sample.error else None) == outcome.error
        assert sample.scores is not None
        value = {"right": "C", "wrong": "I"}.get(outcome.verdict, "N")
        assert sample.scores["verdict"].value == value
        assert outcome.judge in (sample.scores["verdict"].explanation or "")
    assert log.results is not None
    found = {name: one.value for name, one in log.results.scores[0].metrics.items()}
    (acc,) = [one for one in own["metrics"] if (one["metric"], one["subset"]) == ("acc_p", "all")]
    names = ("acc_p", "acc_p_low", "acc_p_high", "acc_p_n")
    assert [found[name] for name in names] == [acc[name] for name in ("value", "low", "high", "n")]
    assert log.results.headline is not None
    assert log.results.headline.metric == "acc_p"
    assert log.results.metadata is not None
    assert log.results.metadata["metrics"] == own["metrics"]


def test_images_that_changed_are_left_out_and_counted(codis: Path, capsys: Capture) -> None:
    pytest.importorskip("inspect_ai")
    from inspect_ai.log import read_eval_log

    call("run", "codis", "--model", "baseline/chance", "--data", codis, "--quiet")
    first = next(iter(sorted((codis / "images").iterdir())))
    first.write_bytes(next(iter(sorted((codis / "images").iterdir(), reverse=True))).read_bytes())
    capsys.readouterr()
    call("export", "1", "--as", "inspect", "--out", "run.eval")
    assert "1 images were not found as they were sent" in capsys.readouterr().err
    log = read_eval_log("run.eval")
    assert log.samples is not None
    shown = {one["path"]: one["sha256"] for sample in log.samples for one in sample.metadata["images"]}
    assert shown[f"images/{first.name}"] != hashlib.sha256(first.read_bytes()).hexdigest()


def test_images_of_a_results_folder_are_those_that_its_digests_name(codis: Path, capsys: Capture) -> None:
    pytest.importorskip("inspect_ai")
    from inspect_ai.log import read_eval_log
    from inspect_ai.model import ContentImage

    call("run", "codis", "--model", "baseline/chance", "--data", codis, "--out", "own", "--quiet")
    first, *_, last = sorted((codis / "images").iterdir())
    first.write_bytes(last.read_bytes())
    capsys.readouterr()
    call("export", "own", "--as", "inspect", "--out", "run.eval", "--data", codis)
    assert "1 images were not found as they were sent" in capsys.readouterr().err
    for sample in read_eval_log("run.eval", resolve_attachments=True).samples or []:
        (image,) = sample.metadata["images"]
        assert not isinstance(sample.input, str)
        shown = [part for part in sample.input[0].content if isinstance(part, ContentImage)]
        was_replaced = image["path"] == f"images/{first.name}"
        assert (len(shown), "sha256" in image) == (0 if was_replaced else 1, not was_replaced)
    call("export", "own", "--as", "eee", "--model", "acme/see", "--out", ".", "--data", codis)
    assert "1 images have no digest in its lines" in capsys.readouterr().err


def test_an_incomplete_run_leaves_as_one(codis: Path, capsys: Capture) -> None:
    pytest.importorskip("inspect_ai")
    hub = pytest.importorskip("huggingface_hub")
    yaml = pytest.importorskip("yaml")
    from inspect_ai.log import read_eval_log

    asked = ("run", "codis", "--model", "baseline/chance", "--data", codis, "--quiet")
    call(*asked, "--limit", "12", "--max-requests", "21", status=(4,))
    call("export", "1", "--as", "inspect", "--model", "acme/see", "--out", "run.eval")
    log = read_eval_log("run.eval")
    assert (log.status, log.eval.config.limit, log.eval.model) == ("cancelled", 12, "acme/see")
    assert list(log.stats.model_usage) == ["acme/see"]
    words = ("export", "1", "--as", "hf-eval-results", "--dataset", "acme/codis:test", "--out", "codis.yaml")
    call(*words, status=(2,))
    assert "3 not sent; --limit 12" in capsys.readouterr().err
    assert not Path("codis.yaml").exists()
    call(*words, "--force")
    (entry,) = hub.parse_eval_result_entries(yaml.safe_load(Path("codis.yaml").read_text()))
    assert "of 24 probes 3 not sent, --limit 12" in entry.notes


def test_partial_scores_of_a_tool_leave_as_they_are_and_come_back(tmp_path: Path) -> None:
    pytest.importorskip("inspect_ai")
    scores = (0.25, 0.5, 1.0, 0.75, 0.9, 0.0)
    lines = [
        {"doc_id": n, "target": "cat", "input": f"Q{n}", "filtered_resps": "cat", "anls": score}
        for n, score in enumerate(scores)
    ]
    Path("frac.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    options = ("--set", "embedder=none", "--quiet")
    call("score", "groups", "frac.jsonl", "--judge", "lmms-eval", *options, "--out", "own")
    call("export", "1", "--as", "inspect", "--out", "run.eval")
    call("score", "groups", "run.eval", "--judge", "inspect_ai", *options, "--out", "back")
    own, back = (
        [
            (one["value"], one["n"])
            for one in json.loads(Path(name, "metrics.json").read_text())["metrics"]
            if (one["metric"], one["subset"]) == ("score", "all")
        ]
        for name in ("own", "back")
    )
    assert own == back == [(pytest.approx(100 * sum(scores) / 6), 6)]
    call("export", "1", "--as", "eee", "--model", "acme/see", "--out", ".")
    (found,) = Path("data").rglob("*.jsonl")
    evaluated = [json.loads(line)["evaluation"] for line in found.read_text().splitlines()]
    assert [one["score"] for one in evaluated] == list(scores)
    assert [one["is_correct"] for one in evaluated] == [score == 1 for score in scores]


def test_a_log_needs_a_name_that_inspect_opens(codis: Path, capsys: Capture) -> None:
    scored(codis)
    call("export", "1", "--as", "inspect", "--out", "run.jsonl", status=(2,))
    assert ".eval" in capsys.readouterr().err


# -- Every Eval Ever


SCHEMA_CHECK = """
import json, sys
from importlib.resources import files
from pathlib import Path

import jsonschema

log, lines = (Path(name).read_text() for name in sys.argv[1:])
schemas = files("every_eval_ever.schemas")
wrong = []
for name, records in {"eval": [log], "instance_level_eval": lines.splitlines()}.items():
    schema = json.loads((schemas / f"{name}.schema.json").read_text())
    validator = jsonschema.validators.validator_for(schema)(schema)
    for record in records:
        wrong += [error.message for error in validator.iter_errors(json.loads(record))]
print(wrong[:3])
"""


@pytest.mark.slow
@pytest.mark.timeout(600)  # pip installs from the registry
def test_every_eval_ever_takes_the_files_of_a_run(codis: Path, tmp_path: Path) -> None:
    python = python_of("3.12")
    if python is None:
        pytest.skip("every-eval-ever needs Python 3.12")
    own = scored(codis, "--judge", "baseline/chance", "--judge", "rules")
    # The developer stands in the name, and an answer without a verdict has no line.
    call("export", "1", "--as", "eee", "--model", "hf/acme/see-7b", "--out", tmp_path)
    folder = tmp_path / "data/codis/acme/see-7b"
    (log,), (lines,) = folder.glob("*.json"), folder.glob("*.jsonl")
    # All that its validator needs; the package itself installs half a gigabyte.
    run(tmp_path, python, "-m", "venv", "eee")
    validator = str(tmp_path / "eee/bin/python")
    run(tmp_path, validator, "-m", "pip", "install", "-q", "--no-deps", "every-eval-ever==0.3.0")
    needed = ("pydantic>=2.12", "rich<15", "requests", "pyyaml", "jsonschema")
    run(tmp_path, validator, "-m", "pip", "install", "-q", *needed)
    words = ("-m", "every_eval_ever.validator.cli", "--format", "json", str(log), str(lines))
    reports = json.loads(run(tmp_path, validator, *words))  # exit status 2: warnings only
    assert [(one["valid"], one["errors"], one["warnings"]) for one in reports] == [(True, [], [])] * 2
    assert reports[1]["line_count"] == 168
    # The validator takes more than the schemas that the package has.
    script = tmp_path / "schema.py"
    script.write_text(SCHEMA_CHECK)
    assert run(tmp_path, validator, str(script), str(log), str(lines)) == "[]\n"
    results = json.loads(log.read_text())["evaluation_results"]
    assert len(results) == sum(one["value"] is not None for one in own["metrics"])
    (found,) = [one for one in results if one["evaluation_result_id"] == "acc_p:all"]
    (expected,) = [one for one in own["metrics"] if (one["metric"], one["subset"]) == ("acc_p", "all")]
    (judge,) = found["metric_config"]["llm_scoring"]["judges"]
    assert judge["model_info"]["name"] == "baseline/chance"
    interval = found["score_details"]["uncertainty"]["confidence_interval"]
    assert found["score_details"]["score"] == expected["value"]
    assert (interval["lower"], interval["upper"]) == (expected["low"], expected["high"])
    assert expected["interval"] in interval["method"]


def test_a_line_of_every_eval_ever_holds_group_variant_draw_cluster_and_digests(codis: Path) -> None:
    call("run", "codis", "--model", "baseline/chance", "--repeats", "2", "--data", codis, "--out", "own")
    call("export", "1", "--as", "eee", "--model", "acme/see", "--out", ".")
    (lines,) = Path("data/codis/acme/see").glob("*.jsonl")
    outcomes = list(read_outcomes(Path("own/answers.jsonl")))
    for line, outcome in zip(map(json.loads, lines.read_text().splitlines()), outcomes, strict=True):
        metadata = line["metadata"]
        # Its schema wants texts.
        assert all(isinstance(value, str) for value in metadata.values())
        named = ("group", "variant", "draw", "cluster")
        assert [metadata[name] for name in named] == [
            outcome.sample,
            outcome.variant,
            str(outcome.draw),
            outcome.cluster,
        ]
        (image,) = outcome.images
        sent = [hashlib.sha256((codis / image).read_bytes()).hexdigest()]
        assert json.loads(metadata["image_sha256"]) == sent
        assert line["evaluation"]["is_correct"] == outcome.right
        assert line["input"]["formatted"] == outcome.prompt


def test_an_export_to_every_eval_ever_keeps_a_file_that_was_filled_in(codis: Path, capsys: Capture) -> None:
    own = scored(codis)
    words = ("export", "1", "--as", "eee", "--model", "acme/see", "--out", ".")
    before = time.time()
    call(*words)
    (log,) = Path("data/codis/acme/see").glob("*.json")
    record = json.loads(log.read_text())
    assert before - 1 <= int(record["retrieved_timestamp"]) <= time.time()
    (details,) = {json.dumps(one["score_details"]["details"]) for one in record["evaluation_results"]}
    assert json.loads(details) == {name: str(own[name]) for name in ("errors", "undecided")}
    record["source_metadata"]["source_organization_name"] = "acme"
    log.write_text(json.dumps(record))
    call(*words, status=(2,))
    assert "--force" in capsys.readouterr().err
    assert json.loads(log.read_text()) == record
    call(*words, "--force")
    assert json.loads(log.read_text())["source_metadata"]["source_organization_name"] == "unknown"
    assert len(list(log.parent.iterdir())) == 2


def test_no_path_and_no_address_leaves_for_everybody(tmp_path: Path) -> None:
    pytest.importorskip("huggingface_hub")
    folder = tmp_path / "secretproj"
    folder.mkdir()
    line = {"group": "g", "variant": "a", "prompt": "Is it?", "references": ["yes"]}
    (folder / "mine.jsonl").write_text(json.dumps(line) + "\n")
    (folder / "answers.jsonl").write_text(json.dumps({"id": "g", "variant": "a", "response": "yes"}) + "\n")
    address = "http://inner.acme.example:8000/v1#see"
    words = ("score", "groups:secretproj/mine.jsonl", "secretproj/answers.jsonl", "--model", address)
    call(*words, "--set", "embedder=none", "--out", "own", "--quiet")
    call("export", "1", "--as", "eee", "--model", "acme/see", "--out", "eee")
    call("export", "1", "--as", "hf-eval-results", "--dataset", "acme/mine:test", "--out", "mine.yaml")
    files = [path for path in Path("eee").rglob("*") if path.is_file()]
    assert len(files) == 2
    for path in (*files, Path("mine.yaml")):
        assert not re.search("secretproj|inner.acme", path.read_text()), path
        assert "groups:mine" in path.read_text()
    result = msgspec.json.decode(Path("own/metrics.json").read_bytes(), type=Result)
    assert {name.rpartition("/")[0] for name in tracked_values(result)} == {"groups/mine"}


@pytest.mark.parametrize("model", ["mini", "http://host:8000/v1#llava", "hf/mini", "a/b/"])
def test_a_model_without_a_developer_is_refused_with_the_option_that_names_one(
    codis: Path, capsys: Capture, model: str
) -> None:
    scored(codis)
    call("export", "1", "--as", "eee", "--model", model, "--out", ".", status=(2,))
    assert "--model DEVELOPER/NAME" in capsys.readouterr().err
    assert not Path("data").exists()


# -- Results of a model on the Hugging Face Hub


def test_huggingface_hub_reads_the_headline_with_n_and_interval_in_its_notes(codis: Path) -> None:
    hub = pytest.importorskip("huggingface_hub")
    yaml = pytest.importorskip("yaml")
    own = scored(codis)
    words = ("--as", "hf-eval-results", "--dataset", "acme/codis:test", "--out", ".eval_results/codis.yaml")
    call("export", "1", *words)
    (entry,) = hub.parse_eval_result_entries(yaml.safe_load(Path(".eval_results/codis.yaml").read_text()))
    (acc,) = [one for one in own["metrics"] if (one["metric"], one["subset"]) == ("acc_p", "all")]
    assert (entry.dataset_id, entry.task_id, entry.value) == ("acme/codis", "test", acc["value"])
    assert isinstance(entry.date, str)
    for part in ("acc_p, percent", f"n {acc['n']:g}", f"{acc['low']:.2f} to {acc['high']:.2f}", "rules"):
        assert part in entry.notes


def test_a_result_on_the_hub_needs_its_data_set_and_task(codis: Path, capsys: Capture) -> None:
    pytest.importorskip("huggingface_hub")
    scored(codis)
    words = ("--as", "hf-eval-results", "--out", "codis.yaml", "--dataset", "acme/codis")
    call("export", "1", *words, status=(2,))
    assert "--dataset ORG/NAME:TASK" in capsys.readouterr().err
