"""Projects from `annotate new` to what they produce. All tasks: viewer/annotation/test_human_tasks.py."""

from __future__ import annotations

import csv
import json
import shutil
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from sqlalchemy import select
from tests.annotation.working import command, work

from sightline.annotation.store import AnnotationStore
from sightline.annotation.types import Annotator, Item
from sightline.benchmarks.iibench.benchmark import ERRORS
from sightline.cli.main import main
from sightline.evaluation.folder import read_result
from sightline.evaluation.reports import report_runs
from sightline.formats.jsonl import read_verdicts
from sightline.reporting.judges import ONE_ERROR, SEVERAL_ERRORS
from sightline.store import schema
from sightline.store.store import Store

PAIRS = 12


@pytest.fixture
def codis(shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The first pairs of CODIS as a data folder, in which the test works."""
    monkeypatch.chdir(tmp_path)
    source = shared / "data" / "codis"
    folder = tmp_path / "codis"
    (folder / "images").mkdir(parents=True)
    records = json.loads((source / "data.json").read_text())[:PAIRS]
    (folder / "data.json").write_text(json.dumps(records))
    for name in {record["image_id"] for record in records}:
        shutil.copy(source / "images" / name, folder / "images")
    return folder


def lines_of(file: str | Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in Path(file).read_text().splitlines()]


def run(codis: Path, setting: str, out: str) -> None:
    model = ("--model", "baseline/chance", "--data", codis, "--quiet", "--out", out)
    command("run", f"codis{setting}", *model)


def value(folder: str, metric: str) -> float | None:
    result = read_result(Path(folder))
    return next(one.value for one in result.metrics if one.metric == metric and one.subset == "all")


def annotate(
    task: str, name: str, *sources: str | Path, people: tuple[str, ...] = ("anna", "ben", "chloe")
) -> None:
    command("annotate", "new", task, *sources, "--name", name, "--seed", "1")
    command("annotate", "invite", name, *people)


def export(name: str) -> Path:
    command("annotate", "export", name, "--out", f"out-{name}")
    return Path(f"out-{name}")


def test_a_plan_before_and_during_an_annotation_names_the_images_to_label(
    codis: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(codis, "", "a")
    annotate("rate", "blind", "a", people=("anna",))

    def plan(*words: str) -> dict[str, Any]:
        capsys.readouterr()
        command("annotate", "plan", "a", "--half-width", "10", "--json", *words)
        found = json.loads(capsys.readouterr().out)
        return next(one for one in found if one["metric"] == "acc_q")

    images = {record["image_id"] for record in json.loads((codis / "data.json").read_text())}
    before = plan("--by", "category")
    assert before["half_widths"] is None
    assert sum(of["clusters"] for of in before["strata"]) == len(images)
    assert {of["labelled"] for of in before["strata"]} == {0}
    work("blind")
    (done,) = plan("--human", "blind")["strata"]
    assert done["labelled"] == done["these"] == len(images)
    with pytest.raises(AssertionError):
        command("annotate", "plan", "a", "--by", "colour")
    assert "category" in capsys.readouterr().err


def test_judged_answers_enter_score_and_the_judge_report_and_a_tie_goes_to_a_fifth(codis: Path) -> None:
    run(codis, "", "a")
    command("annotate", "new", "judge", "a", "--name", "t8", "--data", codis, "--shared", "6")
    command("annotate", "invite", "t8", "a", "b", "c", "d")
    command("annotate", "invite", "t8", "e", "--role", "adjudicator")

    def half(annotator: Annotator, item: Item, field: str) -> str:
        return "right" if item.annotators == 1 or annotator.name in "abe" else "wrong"

    assert work("t8", half) == 6 * 5 + (2 * PAIRS - 6)
    file = export("t8") / "verdicts.jsonl"
    verdicts = read_verdicts(file)
    assert {verdict.judge for verdict in verdicts} == set("abcde")
    command(
        "score",
        "codis",
        "a/answers.jsonl",
        "--data",
        codis,
        "--judge",
        f"human:{file}",
        "--out",
        "judged",
        "--quiet",
    )
    assert value("judged", "acc_q") == 100
    assert value("judged", "human_consistency") == 50, "two of four raters agree with the fifth"
    command("judge-report", "a", "--human", file)


def test_rated_runs_are_blind_and_every_rater_sees_both(codis: Path) -> None:
    run(codis, "", "a")
    command(
        "run", "codis", "--model", "baseline/chance", "--data", codis, "--fresh", "b", "--quiet", "--out", "b"
    )
    annotate("rate", "blind", "a", "b")
    assert work("blind") == 3 * len(
        {answer["key"] for run in "ab" for answer in lines_of(f"{run}/answers.jsonl")}
    )
    items = (export("blind") / "items.csv").read_text()
    assert "baseline" not in items
    assert "chance" not in items


def test_humans_answer_as_models_do_and_the_same_answer_counts_without_context(codis: Path) -> None:
    annotate("respond", "humans", "codis", "--data", codis, people=("anna", "ben"))

    def knows(annotator: Annotator, item: Item, field: str) -> str:
        references = item.hidden.get("references", ())
        return references[0] if references else "I cannot tell"

    work("humans", knows)
    out = export("humans")
    assert {path.name for path in out.iterdir() if path.is_dir()} == {"anna", "ben"}
    command(
        *("score", "codis", out / "anna/default.jsonl", "--model", "human:anna", "--data", codis),
        *("--with", f"no-context={out}/anna/no-context.jsonl", "--quiet", "--out", "anna"),
    )
    result = read_result(Path("anna"))
    assert result.model == "human:anna"
    assert result.errors == 0
    without = lines_of(out / "anna/no-context.jsonl")
    assert len(without) == 2 * PAIRS


def test_humans_have_an_agreement_with_themselves_over_the_wordings_of_a_question(codis: Path) -> None:
    """Three groups of three wordings: anna answers alike, ben once otherwise, which leaves 1 of 3 pairs."""
    images = sorted((codis / "images").iterdir())[:3]
    lines = [
        {
            "group": image.stem,
            "variant": variant,
            "images": [f"images/{image.name}"],
            "prompt": f"{variant}: what?",
        }
        for image in images
        for variant in ("r1", "r2", "r3")
    ]
    (codis / "mine.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    task, data = f"groups:{codis}/mine.jsonl", ("--data", codis)
    annotate("respond", "humans", task, *data, people=("anna", "ben"))

    def answer(annotator: Annotator, item: Item, field: str) -> str:
        is_other = annotator.name == "ben" and images[0].stem in str(item.hidden) and item.variant == "r3"
        return "a dog" if is_other else "a cat"

    work("humans", answer)
    out = export("humans")
    for name in ("anna", "ben"):
        (file,) = (out / name).glob("*.jsonl")
        score = ("score", task, file, *data, "--set", "embedder=none", "--model", f"human:{name}")
        command(*score, "--quiet", "--out", name)
    assert value("anna", "agree") == 100
    assert value("ben", "agree") == pytest.approx(100 * 7 / 9)
    average, best, worst, _ = report_runs(["anna", "ben"], "").humans
    agree = next(one for one in average.metrics if (one.metric, one.subset) == ("agree", "all"))
    assert agree.value == pytest.approx(100 * 16 / 18)
    assert (best.model, worst.model) == ("Humans, best (anna)", "Humans, worst (ben)")


def test_a_sample_that_humans_answered_is_scored_by_itself(codis: Path) -> None:
    command("annotate", "new", "respond", "codis", "--name", "s", "--data", codis, "--images", "2")
    command("annotate", "invite", "s", "anna")
    work("s", lambda _, item, __: (item.hidden.get("references") or ("no",))[0])
    out = export("s")
    words = ["score", "codis", str(out / "anna/default.jsonl"), "--model", "human:anna", "--data", str(codis)]
    assert main([*words, "--quiet"]) == 2, "most of the data has no answer"
    command(*words, "--only-answered", "--quiet", "--out", "anna")
    result = read_result(Path("anna"))
    answered = {line["id"] for line in lines_of(out / "anna/default.jsonl")}
    assert (result.samples, result.errors) == (len(answered), 0)
    assert value("anna", "acc_p") == 100


def test_images_that_humans_keep_are_a_folder_for_build_curate(codis: Path) -> None:
    pytest.importorskip("imagehash", reason="curating needs the extra `build`")
    command("build", "curate", codis / "images", "--out", "candidates", "--distance", "0", "--quiet")
    annotate("screen", "keep", "candidates", people=("anna",))
    images = work("keep", lambda _, item, field: "drop" if field == "decision" and item.number == 1 else "")
    command("build", "curate", export("keep") / "kept", "--out", "selected", "--distance", "0", "--quiet")
    assert json.loads(Path("selected/curation.json").read_text())["kept"] == images - 1


def test_captions_that_humans_write_are_what_a_run_sends(codis: Path) -> None:
    annotate("write-captions", "write", codis / "images", people=("anna", "ben"))
    images = work("write", lambda _, item, __: f"caption of {item.hidden['image']}")
    file = export("write") / "captions.json"
    written = json.loads(file.read_text())
    assert written == {name: f"caption of {name}" for name in written}
    assert len(written) == images
    model = ("--model", "baseline/chance", "--data", codis, "--quiet", "--out", "c")
    command("run", "codis:captions", "--set", f"captions={file}", *model)
    for answer in lines_of("c/answers.jsonl"):
        image = next(
            r["image_id"]
            for r in json.loads((codis / "data.json").read_text())
            if r["id"] == answer["sample"]
        )
        assert f"caption of {image}" in answer["prompt"]


def test_captions_suffice_for_questions_as_in_table_5_of_codis(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """96 images, 302 queries, which are 151 pairs: a caption may suffice for some pairs of its image."""
    monkeypatch.chdir(tmp_path)
    data = shared / "data" / "codis"
    pairs: dict[str, list[str]] = {}
    for record in json.loads((data / "data.json").read_text()):
        pairs.setdefault(record["image_id"], []).append(record["id"])
    chosen = sorted(pairs, key=lambda image: -len(pairs[image]))[:96]
    first = [pairs[image][0] for image in chosen]
    further = [pair for image in chosen for pair in pairs[image][1:]]
    sufficient = {*first, *further[: 151 - 96]}
    Path("captions.json").write_text(json.dumps({name: f"caption of {name}" for name in pairs}))
    annotate("screen-captions", "suffices", "codis", "captions.json", "--data", data, people=("anna",))
    work("suffices", lambda _, item, __: "" if item.hidden["sample"] in sufficient else "not sufficient")
    file = export("suffices") / "captions.json"
    model = ("--model", "baseline/chance", "--data", data, "--quiet", "--out", "c")
    command("run", "codis:captions", "--set", f"captions={file}", *model)
    result = read_result(Path("c"))
    assert (result.samples, result.probes, result.metrics[0].clusters) == (151, 302, 96)
    assert {answer["sample"] for answer in lines_of("c/answers.jsonl")} == sufficient


def test_authors_write_up_to_four_pairs_about_an_image_and_skip_what_it_does_not_give(codis: Path) -> None:
    command("annotate", "new", "author-codis", codis / "images", "--name", "many", "--pairs", "4")
    command("annotate", "invite", "many", "anna", "ben")
    images = len(list((codis / "images").iterdir()))
    assert (
        work("many", lambda _, item, field: f"{field} {item.number}" if field == "question" else "")
        == 4 * images
    )
    out = export("many") / "data"
    records = json.loads((out / "data.json").read_text())
    assert set(Counter(record["image_id"] for record in records).values()) == {4}
    assert len({record["id"] for record in records}) == len({r["question"] for r in records}) == 4 * images
    command("data", "check", "codis", "--data", out)
    annotate("cross-check", "check", "many", people=("anna", "ben", "c", "d", "e"))
    store = AnnotationStore(Store.open("sightline.db"), lambda: 0.0)
    assert len(store.items(store.project("check").number)) == 4 * images, "each pair is checked by itself"
    assert main(["annotate", "new", "screen", str(codis / "images"), "--name", "no", "--pairs", "2"]) == 2


def test_authors_write_pairs_and_the_other_four_check_them(
    codis: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    people = ("a", "b", "c", "d", "e")
    annotate("author-codis", "drafts", codis / "images", people=people)
    drafts = work("drafts")
    out = export("drafts")
    capsys.readouterr()
    command("data", "check", "codis", "--data", out / "data")
    written = json.loads((out / "data/data.json").read_text())
    assert all(record["scenario"] for record in written), "the scenario of Figure 3 is kept"
    annotate("cross-check", "check", "drafts", people=people)

    def rejects_the_first(annotator: Annotator, item: Item, field: str) -> str:
        return "no" if field == "minor" and item.number == 1 and annotator.name in "ab" else ""

    assert work("check", rejects_the_first) == 4 * drafts
    out = export("check")
    funnel = json.loads((out / "funnel.json").read_text())
    assert (funnel["accepted"], funnel["returned"]) == (drafts - 1, 1)
    returned = list(csv.DictReader((out / "returned.csv").open()))
    assert {row["failed"] for row in returned} == {"minor"}
    checked = json.loads((out / "data/data.json").read_text())
    assert all(record["scenario"] for record in checked)
    run(out / "data", "", "own")
    assert any(metric.subset.startswith("scenario=") for metric in read_result(Path("own")).metrics)
    command("annotate", "new", "cross-check", "drafts", "check", "--name", "round-2")
    store = AnnotationStore(Store.open("sightline.db"), lambda: 0.0)
    assert len(store.items(store.project("round-2").number)) == 1, "only the open draft comes again"


def test_errors_are_named_and_a_models_proposal_is_shown(codis: Path) -> None:
    run(codis, "", "a")
    wrong = [answer["key"] for answer in lines_of("a/answers.jsonl") if answer["verdict"] == "wrong"]
    lines = [
        {"targets": [key], "question": "correct", "verdict": "wrong", "judge": "m", "kind": "model"}
        for key in wrong
    ]
    Path("proposals.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    annotate("errors", "why", "a", "--items", "4", "--proposals", "proposals.jsonl")
    work("why", lambda _, item, field: str(item.proposal.get(field, "")))
    verdicts = read_verdicts(export("why") / "verdicts.jsonl")
    assert len(verdicts) == 4 * 2
    assert {verdict.verdict for verdict in verdicts} == {"wrong"}


def test_an_answer_has_one_error_as_in_figure_4_of_ii_bench_unless_the_project_takes_several(
    shared: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The shares of a model add up to 100 %, as those that the figure prints of GPT-4V."""
    monkeypatch.chdir(tmp_path)
    data = shared / "data" / "iibench"
    model = ("--model", "baseline/chance", "--quiet", "--out", "a")
    command("run", "iibench:none", *model, "--data", data, "--split", "dev")

    def errors_of(name: str, *more: str) -> tuple[Path, Counter[str], dict[str, Any]]:
        command("annotate", "new", "errors", "a", "--name", name, "--data", data, *more)
        command("annotate", "invite", name, "anna", "ben")
        work(name, lambda _, item, field: ERRORS[item.number % 3] if field == "errors" else "")
        file = export(name) / "verdicts.jsonl"
        named = Counter(error for verdict in read_verdicts(file) for error in verdict.labels)
        return file, named, table_of(file)

    def table_of(file: Path) -> dict[str, Any]:
        capsys.readouterr()
        command("judge-report", "a", "--human", file, "--format", "json", "--data", data)
        tables: list[dict[str, Any]] = json.loads(capsys.readouterr().out)
        return next(one for one in tables if one["title"].startswith("Errors"))

    _, named, table = errors_of("one")
    shares = {row["error"]: row["baseline/chance value"] for row in table["rows"]}
    assert len(named) == 3
    assert {error: share for error, share in shares.items() if share is not None} == {
        error: pytest.approx(100 * count / named.total()) for error, count in named.items()
    }
    assert sum(row["GPT-4V (Figure 4) value"] for row in table["rows"]) == 100
    assert table["notes"][0] == ONE_ERROR

    file, same, _ = errors_of("several", "--several")
    assert same == named
    second = (json.loads(line) for line in file.read_text().splitlines())
    lines = [{**line, "labels": sorted({*line["labels"], ERRORS[0]})} for line in second]
    file.write_text("\n".join(map(json.dumps, lines)))
    assert table_of(file)["notes"][0] == SEVERAL_ERRORS


def test_a_project_that_cannot_be_made_leaves_no_store(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    assert main(["annotate", "new", "judge", "nowhere", "--name", "x"]) == 2
    assert list(tmp_path.iterdir()) == []


def test_a_sample_of_humans_alone_leaves_out_what_nobody_read(
    codis: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(codis, "", "a")
    command("annotate", "new", "rate", "a", "--name", "part", "--images", "4", "--data", codis)
    command("annotate", "invite", "part", "anna", "ben", "chloe")
    work("part", lambda *_: "right")
    file = export("part") / "verdicts.jsonl"
    sampled = {verdict.targets for verdict in read_verdicts(file)}
    answers = ("score", "codis", "a/answers.jsonl", "--data", codis, "--out", "b")
    command(*answers, "--judge", f"human:{file}")
    assert value("b", "acc_q") == 100
    judged = [one for one in lines_of("b/answers.jsonl") if one["verdict"] == "right"]
    assert {(one["key"],) for one in judged} == sampled
    assert "humans judged a sample" in capsys.readouterr().err + Path("b/metrics.json").read_text()


def test_raters_see_the_image_although_the_model_did_not(codis: Path) -> None:
    run(codis, ":no-image", "t")
    command("annotate", "new", "rate", "t", "--name", "blind", "--data", codis)
    command("annotate", "export", "blind", "--out", "out")
    rows = list(csv.DictReader(Path("out/items.csv").read_text().splitlines()))
    assert rows
    assert all((codis / row["image"]).is_file() and row["image"] for row in rows)


def test_what_a_page_will_not_show_is_said(codis: Path, capsys: pytest.CaptureFixture[str]) -> None:
    run(codis, "", "a")
    Path("mine.toml").write_text(
        'name = "mine"\ntitle = "Mine"\nitems = "answers"\nproduces = "judgements"\n'
        'shows = [{name = "question", kind = "text"}, {name = "respnse", kind = "text"}]\n'
        'fields = [{name = "note", kind = "text"}]\n'
    )
    command("annotate", "new", "mine.toml", "a", "--name", "m")
    said = capsys.readouterr().err
    assert "no item has respnse" in said
    assert "image" not in said, "this task shows none"
    command("annotate", "new", "rate", "a", "--name", "r")
    assert "annotators see no image" in capsys.readouterr().err


def test_the_images_of_a_run_of_the_store_are_those_that_it_recorded(
    codis: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    run(codis, "", "a")
    capsys.readouterr()
    command("annotate", "new", "rate", "1", "--name", "r")
    assert "annotators see no image" not in capsys.readouterr().err
    command("annotate", "export", "r", "--out", "out")
    rows = list(csv.DictReader(Path("out/items.csv").read_text().splitlines()))
    assert rows
    assert all((codis / row["image"]).is_file() and row["image"] for row in rows)


def test_deleting_a_project_asks_with_the_number_of_judgements_and_leaves_runs_and_other_projects(
    codis: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    run(codis, "", "a")
    for name in ("blind", "other"):
        annotate("judge", name, "a", "--data", codis, people=("anna", "ben"))
        assert work(name) == 4 * PAIRS
    command(
        "score", "codis", "a/answers.jsonl", "--data", codis, "--judge", "human:blind", "--name", "judged"
    )
    assert main(["annotate", "delete", "blind"]) == 2
    assert "expected --yes" in capsys.readouterr().err
    monkeypatch.setattr("sys.stdin.isatty", lambda: True, raising=False)
    for reply, left in (("n", ["blind", "other"]), ("y", ["other"])):
        monkeypatch.setattr("builtins.input", lambda _, reply=reply: reply)
        assert main(["annotate", "delete", "blind"]) == 0
        asked = capsys.readouterr().out
        assert f"{4 * PAIRS} judgements of 2 annotators" in asked
        assert "export first: sightline annotate export blind --out blind" in asked
        assert main(["annotate", "status", "--json"]) == 0
        assert [one["name"] for one in json.loads(capsys.readouterr().out)] == left
    command("report", "judged")
    with closing(Store.open("sightline.db", create=False)) as store, store.database.read() as connection:
        for table in (schema.annotation_items, schema.annotators, schema.annotation_log):
            assert set(connection.core.execute(select(table.c.project).distinct()).scalars()) == {2}
    # The name is free again, for a project of another number and with other links.
    annotate("judge", "blind", "a", "--data", codis, people=("anna",))
    capsys.readouterr()
    assert main(["annotate", "status", "--json"]) == 0
    assert [one["number"] for one in json.loads(capsys.readouterr().out)] == [2, 3]
