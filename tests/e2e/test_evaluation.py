"""Whole evaluations on the real data against a local server: every setting, judges, repeats, reports."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

import sightline
from sightline.errors import UserError
from sightline.evaluation.result import Evaluation, recompute
from sightline.store.store import Store

Servers = Callable[..., Any]

CODIS_SETTINGS = {
    "default": 706,
    "no-cot": 706,
    "no-instructions": 706,
    "plain": 706,
    "no-context": 308,
    "no-image": 689,
}
"""Distinct requests of each setting. Without the image some queries of different pairs are one text."""


@pytest.fixture
def codis(shared: Path) -> str:
    return str(shared / "data" / "codis")


@pytest.fixture
def iibench(shared: Path) -> str:
    return str(shared / "data" / "iibench")


def value(evaluation: Evaluation, metric: str, subset: str = "all") -> float | None:
    (found,) = [m for m in evaluation.metrics if (m.metric, m.subset) == (metric, subset)]
    return found.value


def attempts(store: str) -> int:
    opened = Store.open(store, create=False)
    with opened.database.read() as connection:
        count = connection.core.exec_driver_sql("SELECT count(*) FROM answers").scalar_one()
    opened.close()
    return int(count)


def lines(folder: Path, name: str = "answers.jsonl") -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / name).read_text().splitlines()]


@pytest.mark.parametrize("setting", CODIS_SETTINGS)
def test_each_distinct_request_of_codis_is_asked_once(command: Any, codis: str, setting: str) -> None:
    words = ("run", f"codis:{setting}", "--model", "http://127.0.0.1:9/v1#none", "--data", codis)
    status, out, err = command(*words, "--dry-run", "--json")
    assert status == 0, err
    estimate = json.loads(out)
    assert (estimate["probes"], estimate["to_ask"]) == (706, CODIS_SETTINGS[setting])


@pytest.mark.parametrize("setting", ["no-context", "no-image"])
def test_every_probe_of_codis_is_answered_once_and_a_second_run_sends_nothing(
    mock: Servers, codis: str, sqlite_url: str, setting: str
) -> None:
    server = mock()
    options: Any = {"model": server.model, "data": codis, "store": sqlite_url, "canary": "off"}
    first = sightline.run(f"codis:{setting}", **options)
    assert (first.result.probes, first.result.errors) == (706, 0)
    assert first.counts.sent == server.stats()["requests"] == CODIS_SETTINGS[setting]
    assert server.stats()["with_image"] == (0 if setting == "no-image" else CODIS_SETTINGS[setting])
    assert server.stats()["resent"] == 0
    assert attempts(sqlite_url) == CODIS_SETTINGS[setting]
    server.reset()
    again = sightline.run(f"codis:{setting}", **options)
    assert server.stats()["requests"] == again.counts.sent == 0
    assert again.metrics == first.metrics


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "limit", "questions"),
    [("none", None, 1399), *((setting, 40, 40) for setting in ("cot", "domain", "emotion", "rhetoric"))],
)
def test_every_question_of_iibench_is_answered_with_its_own_image(
    mock: Servers, iibench: str, sqlite_url: str, setting: str, limit: int | None, questions: int
) -> None:
    server = mock()
    run = sightline.run(
        f"iibench:{setting}", model=server.model, data=iibench, store=sqlite_url, limit=limit, canary="off"
    )
    stats = server.stats()
    assert (run.result.probes, run.result.errors, run.result.unscored) == (questions, 0, questions)
    assert (stats["requests"], stats["with_image"], stats["resent"]) == (questions, questions, 0)
    assert stats["params_seen"] == {"model": "mock", "temperature": 0, "max_tokens": 1000}


def test_dev_is_scored_against_its_real_answers(
    mock: Servers, iibench: str, tmp_path: Path, sqlite_url: str
) -> None:
    out = tmp_path / "out"
    run = sightline.run("iibench", model=mock().model, data=iibench, split="dev", store=sqlite_url, out=out)
    records = json.loads((Path(iibench) / "dev.json").read_text())
    key = {q["id"]: q["answer"] for record in records for q in record["questions"]}
    right = [line["response"] == f"({key[line['sample']]})" for line in lines(out)]
    assert value(run, "accuracy") == pytest.approx(100 * sum(right) / 35)


def test_repeats_at_a_temperature_are_draws_kept_apart(
    mock: Servers, codis: str, tmp_path: Path, store_url: str
) -> None:
    server = mock()
    out = tmp_path / "out"
    run = sightline.run(
        "codis", model=server.model, data=codis, limit=20, repeats=4, gen={"temperature": 1},
        store=store_url, out=out,
    )  # fmt: skip
    assert server.stats()["requests"] == 160
    assert (run.result.samples, run.result.probes) == (20, 160)
    by_probe: dict[tuple[str, str], set[int]] = {}
    for line in lines(out):
        by_probe.setdefault((line["sample"], line["variant"]), set()).add(line["draw"])
    assert all(draws == {0, 1, 2, 3} for draws in by_probe.values())
    assert len({line["key"] for line in lines(out)}) == 160


@pytest.mark.slow
def test_a_model_judges_beside_the_rules_and_both_are_kept(
    mock: Servers, codis: str, tmp_path: Path, store_url: str
) -> None:
    model, judge = mock(), mock("--words", "right|wrong")
    store, out = store_url, tmp_path / "out"
    judges = (judge.model, "rules")
    options: dict[str, Any] = {"data": codis, "limit": 30, "store": store, "out": out}
    run = sightline.run("codis", model=model.model, judge=judges, **options)
    verdicts = lines(out, "verdicts.jsonl")
    by_model = [v for v in verdicts if v["judge"] == judge.model and v["question"] == "correct"]
    assert len(by_model) == 60
    assert {v["verdict"] for v in by_model} == {"right", "wrong"}
    assert all(v["version"].startswith("judge") or v["version"].startswith("mock") for v in by_model)
    share = sum(v["verdict"] == "right" for v in by_model) / 60
    assert value(run, "acc_q") == pytest.approx(100 * share)
    assert any(metric.metric == "agreement" for metric in run.metrics)
    assert value(run, "acc_q", f"judge={judge.model}") == pytest.approx(100 * share)
    by_rules = [v for v in verdicts if v["judge"] == "rules" and v["question"] == "correct"]
    of_rules = sum(v["verdict"] == "right" for v in by_rules) / 60
    assert value(run, "acc_q", "judge=rules") == pytest.approx(100 * of_rules)
    judge.reset()
    again = sightline.run("codis", model=model.model, judge=judges, **options)
    assert judge.stats()["requests"] == again.judge_counts.sent == 0


def test_a_reply_that_is_no_verdict_is_unparsed_and_undecided(
    mock: Servers, codis: str, sqlite_url: str
) -> None:
    judge = mock("--words", "I would say it depends")
    run = sightline.run(
        "codis", model="baseline/chance", judge=judge.model, data=codis, limit=5, store=sqlite_url
    )
    assert run.result.undecided == 10
    assert run.result.unparsed >= 10
    assert run.exit_status == 0


def test_a_judge_that_is_gone_is_no_verdict_and_no_success(
    mock: Servers, codis: str, sqlite_url: str
) -> None:
    judge = mock("--fail-rate", "1", "--fail-codes", "400,422")
    run = sightline.run(
        "codis", model="baseline/chance", judge=judge.model, data=codis, limit=5, store=sqlite_url
    )
    assert run.result.judge_errors >= 10
    assert run.exit_status == 1
    assert any("judge failed" in note for note in run.result.notes)


def test_output_variability_needs_the_answers_without_context_and_finds_them(
    mock: Servers, codis: str, sqlite_url: str
) -> None:
    server = mock("--words", "Left.|Right.|Up.|Down.")
    options: dict[str, Any] = {
        "model": server.model,
        "data": codis,
        "limit": 40,
        "store": sqlite_url,
    }
    before = next(m for m in sightline.run("codis", **options).metrics if m.metric == "output_variability")
    assert (before.value, before.n) == (None, 0)
    assert before.reason == "needs a run of setting 'no-context' with the same model and the same options"
    without = sightline.run("codis:no-context", **options)
    assert value(without, "acc_p") == 0.0
    after = sightline.run("codis", **options)
    assert after.counts.sent == 0
    variability = next(m for m in after.metrics if m.metric == "output_variability")
    assert variability.value is not None
    assert 0 < variability.n <= 80


def test_other_prompts_are_not_compared_with_answers_to_another_prompt(
    mock: Servers, codis: str, sqlite_url: str
) -> None:
    options: dict[str, Any] = {
        "model": mock().model,
        "data": codis,
        "limit": 5,
        "store": sqlite_url,
    }
    sightline.run("codis:no-context", **options)
    assert value(sightline.run("codis:plain", **options), "output_variability") is None
    sightline.run("codis:no-context", set={"cot": False}, **options)
    assert value(sightline.run("codis:plain", **options), "output_variability") is not None


@pytest.mark.slow
def test_captions_are_scored_beside_the_images_on_the_same_pairs(
    mock: Servers, codis: str, tmp_path: Path, sqlite_url: str
) -> None:
    records = json.loads((Path(codis) / "data.json").read_text())
    shown = {record["image_id"] for record in records[:40]}
    (tmp_path / "captions.json").write_text(json.dumps({name: f"an image {name}" for name in shown}))
    options: dict[str, Any] = {
        "model": mock("--words", "Left.|Right.").model,
        "data": codis,
        "store": sqlite_url,
    }
    whole = sightline.run("codis", **options)
    captioned = sightline.run("codis:captions", set={"captions": str(tmp_path / "captions.json")}, **options)
    pairs = [record for record in records if record["image_id"] in shown]
    assert captioned.result.samples == len(pairs)
    with_images = next(m for m in captioned.metrics if m.metric == "acc_p_images" and m.subset == "all")
    assert with_images.n == len(pairs)
    assert with_images.value is not None
    assert whole.result.samples == 353


def test_image_gain_is_the_difference_between_with_and_without_the_image(
    mock: Servers, iibench: str, sqlite_url: str
) -> None:
    options: dict[str, Any] = {
        "model": mock().model,
        "data": iibench,
        "split": "dev",
        "store": sqlite_url,
    }
    hidden = sightline.run("iibench:no-image", **options)
    shown = sightline.run("iibench:none", **options)
    with_image, without = value(shown, "accuracy"), value(hidden, "accuracy")
    assert with_image is not None
    assert without is not None
    assert value(shown, "image_gain") == pytest.approx(with_image - without)


def test_shuffled_asks_every_order_and_the_submission_undoes_them(
    mock: Servers, iibench: str, tmp_path: Path, sqlite_url: str
) -> None:
    out = tmp_path / "out"
    run = sightline.run(
        "iibench:shuffled",
        model=mock().model,
        data=iibench,
        split="dev",
        store=sqlite_url,
        out=out,
    )
    assert run.result.probes == 105
    assert value(run, "consistent") is not None
    released = {
        q["id"]: q["options"]
        for r in json.loads((Path(iibench) / "dev.json").read_text())
        for q in r["questions"]
    }
    submitted = {line["id"]: line["answer"] for line in lines(out, "submission.jsonl")}
    for line in lines(out):
        if line["variant"] == "order_0":
            chosen = line["options"]["ABCDEF".index(line["extracted"])]
            assert released[line["sample"]]["ABCDEF".index(submitted[line["sample"]])] == chosen


@pytest.mark.slow
def test_score_of_a_runs_answers_gives_the_same_metrics(
    mock: Servers, codis: str, tmp_path: Path, sqlite_url: str
) -> None:
    out = tmp_path / "out"
    server = mock("--words", "Left.|Right.|Yes.|No.")
    run = sightline.run("codis", model=server.model, data=codis, store=sqlite_url, out=out)
    scored = sightline.score("codis", out / "answers.jsonl", data=codis)
    assert scored.metrics == run.metrics
    assert scored.result.data_digest == run.result.data_digest


@pytest.mark.slow
def test_a_report_from_the_store_is_the_result_of_the_run(mock: Servers, codis: str, store_url: str) -> None:
    judge = mock("--words", "right|wrong|same|different")
    run = sightline.run(
        "codis",
        model=mock().model,
        judge=(judge.model, "rules"),
        data=codis,
        limit=25,
        store=store_url,
        against="GPT-4V",
    )
    opened = Store.open(store_url, create=False)
    assert recompute(opened) == run.result
    opened.close()


def test_humans_are_kept_with_the_run_they_judged(codis: str, tmp_path: Path, store_url: str) -> None:
    store, out = store_url, tmp_path / "out"
    options: dict[str, Any] = {"model": "baseline/chance", "data": codis, "limit": 4, "store": store}
    sightline.run("codis", out=out, **options)
    said = [
        {"targets": [line["key"]], "question": "correct", "verdict": "right", "judge": "ann"}
        for line in lines(out)
    ]
    (tmp_path / "ann.jsonl").write_text("\n".join(map(json.dumps, said)))
    run = sightline.run("codis", judge=f"human:{tmp_path / 'ann.jsonl'}", **options)
    assert value(run, "acc_p") == 100.0
    (tmp_path / "ann.jsonl").unlink()
    opened = Store.open(store, create=False)
    assert recompute(opened).metrics == run.metrics
    opened.close()


def test_the_api_works_where_a_loop_already_runs(codis: str, sqlite_url: str) -> None:
    async def notebook() -> Evaluation:
        return sightline.run("codis", model="baseline/chance", data=codis, limit=3, store=sqlite_url)

    run = asyncio.run(notebook())
    assert run.result.samples == 3
    frame = run.frame()
    assert list(frame["metric"])[:2] == ["acc_p", "acc_p"]


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"limt": 3}, "did you mean 'limit'"),
        ({"limit": "3"}, "int"),
        ({"decide": "majorty"}, "majorty|enum"),
    ],
)
def test_the_api_refuses_what_it_does_not_know(codis: str, options: dict[str, Any], message: str) -> None:
    with pytest.raises(UserError, match=message):
        sightline.run("codis", model="baseline/chance", data=codis, **options)


@pytest.mark.slow
def test_a_dry_run_counts_and_neither_asks_nor_writes(
    mock: Servers, command: Callable[..., Any], iibench: str, tmp_path: Path
) -> None:
    server = mock()
    words = ("run", "iibench", "--model", server.model, "--data", iibench, "--dry-run", "--json")
    status, out, _ = command(*words)
    estimate = json.loads(out)
    assert status == 0
    assert (estimate["probes"], estimate["to_ask"], estimate["cached"]) == (1399, 1399, 0)
    assert estimate["image_bytes"] > 10_000_000
    assert server.stats()["requests"] == 0
    assert not (tmp_path / "sightline.db").exists()
    sightline.run("iibench", model=server.model, data=iibench, limit=10, store=str(tmp_path / "sightline.db"))
    _, out, _ = command(*words)
    assert json.loads(out)["cached"] == 10


def test_a_results_folder_used_again_holds_nothing_of_the_run_before(
    codis: str, iibench: str, tmp_path: Path, sqlite_url: str
) -> None:
    out = tmp_path / "out"
    options: dict[str, Any] = {"model": "baseline/chance", "store": sqlite_url, "out": out}
    sightline.run("iibench", data=iibench, split="dev", **options)
    assert (out / "submission.jsonl").exists()
    sightline.run(
        "codis", model="baseline/chance", data=codis, limit=3, store=sqlite_url, out=out, force=True
    )
    assert sorted(path.name for path in out.iterdir()) == [
        "answers.jsonl", "groups.csv", "metrics.json", "predictions.json", "report.md", "verdicts.jsonl",
    ]  # fmt: skip


def test_a_replayed_file_answers_like_the_model_it_came_from(
    codis: str, shared: Path, sqlite_url: str
) -> None:
    file = shared / "data" / "codis" / "output_example.json"
    run = sightline.run("codis", model=f"replay/{file}", data=codis, store=sqlite_url)
    assert value(run, "acc_p") == 100.0


def test_a_replayed_file_needs_no_images(codis: str, tmp_path: Path, sqlite_url: str) -> None:
    (tmp_path / "data.json").write_bytes((Path(codis) / "data.json").read_bytes())
    file = Path(codis) / "output_example.json"
    run = sightline.run("codis", model=f"replay/{file}", data=tmp_path, store=sqlite_url)
    assert (run.result.errors, value(run, "acc_p")) == (0, 100.0)


def test_a_missing_image_leaves_its_cluster_to_its_name(codis: str, tmp_path: Path) -> None:
    (tmp_path / "data.json").write_bytes((Path(codis) / "data.json").read_bytes())
    scored = sightline.score("codis", Path(codis) / "output_example.json", data=tmp_path)
    assert scored.metrics[0].clusters == 216
    assert any("cannot be read" in note for note in scored.result.notes)
