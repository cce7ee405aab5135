"""Judges are compared with humans: verdicts that count, undecided ones, and comparisons without a result."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from sightline.errors import UserError
from sightline.evaluation.judge_data import read_judge_data
from sightline.evaluation.judge_report import judge_report
from sightline.evaluation.spec import Spec
from sightline.formats.jsonl import write_answers, write_verdicts
from sightline.reporting.judges import JudgeReport, JudgeResult, judge_tables
from sightline.types import Outcome, Usage, Verdict, VerdictName

SAID: dict[str, VerdictName] = {"r": "right", "w": "wrong", "u": "undecided", "e": "error", "m": "miss"}


def verdicts(judge: str, kind: str, letters: str, prefix: str = "a", **more: str) -> list[Verdict]:
    """One verdict per letter, on a0, a1, ...; '-' gives no verdict."""
    assert kind in ("rules", "model", "human")
    return [
        Verdict(
            targets=(f"{prefix}{place}",),
            question="correct",
            scorer=more.get("scorer", "s"),
            judge=judge,
            kind="rules" if kind == "rules" else "model" if kind == "model" else "human",
            verdict=SAID[letter],
            variant=more.get("variant", ""),
        )
        for place, letter in enumerate(letters)
        if letter != "-"
    ]


def answers(count: int, prefix: str = "a", scores: Sequence[float] = (), version: str = "") -> list[Outcome]:
    return [
        Outcome(
            sample=str(place // 2),
            variant="v",
            draw=0,
            key=f"{prefix}{place}",
            labels={"category": "time" if place % 2 else "web", "tags": ("x", "y")},
            response="said",
            status="ok",
            finish_reason="",
            usage=Usage(),
            verdict="unscored",
            scores={"rouge_l": scores[place], "refused": 1.0} if scores else {},
            cluster=f"image {place // 2}",
            version=version,
        )
        for place in range(count)
    ]


def folder(
    place: Path,
    given: Sequence[Verdict],
    said: Sequence[Outcome] = (),
    model: str = "",
    *,
    benchmark: str = "contextual",
    options: Mapping[str, Any] | None = None,
    versions: Mapping[str, Any] | None = None,
) -> str:
    """A results folder."""
    place.mkdir()
    write_verdicts(given, place / "verdicts.jsonl")
    if said:
        write_answers(said, place / "answers.jsonl")
    if model:
        metrics = {"benchmark": benchmark, "setting": "default", "model": model, "options": options or {}}
        versions = versions or {"rouge_l": "rouge-score 9"}
        (place / "metrics.json").write_text(json.dumps({**metrics, "versions": versions}))
    return str(place)


def report(*sources: str, human: Sequence[str] = (), labels: Sequence[str] = ()) -> JudgeReport:
    return judge_report(read_judge_data(sources, human, Spec(task="")), labels)


def row(found: JudgeReport, judge: str, subset: str = "all") -> JudgeResult:
    (one,) = [row for row in found.rows if (row.judge, row.subset) == (judge, subset)]
    return one


def test_the_majority_of_humans_is_the_reference_and_a_tie_is_left_out(tmp_path: Path) -> None:
    given = [
        *verdicts("ann", "human", "rrww"),
        *verdicts("bob", "human", "rwwr"),
        *verdicts("cid", "human", "rrr-"),
        *verdicts("gpt", "model", "rrwr"),
    ]
    found = report(folder(tmp_path / "a", given))
    assert (found.humans.raters, found.humans.answers, found.humans.tied) == (3, 4, 1)
    gpt = row(found, "gpt")
    assert (gpt.answers, gpt.decided) == (3, 3)
    assert (gpt.roc_auc.value, gpt.agreement.value, gpt.kappa.value, gpt.alpha.value) == (100, 100, 1, 1)


def test_the_majority_of_a_judges_repeats_is_compared_and_its_own_agreement_shown(tmp_path: Path) -> None:
    repeats = [
        replace(one, draw=draw)
        for draw, letters in enumerate(("rrww", "rwww", "rrrw"))
        for one in verdicts("gpt", "model", letters)
    ]
    found = report(folder(tmp_path / "a", [*verdicts("ann", "human", "rrw-"), *repeats]))
    assert (row(found, "gpt").agreement.value, row(found, "gpt").decided) == (100, 3)
    share, alpha = found.repeats
    assert (share.metric, share.value, share.n) == ("self_agreement", 50, 4)
    assert alpha.metric == "self_alpha"
    titles = [table.title for table in judge_tables(found)]
    assert "Agreement of each judge with its own repeats" in titles


def test_an_undecided_verdict_ranks_between_right_and_wrong_and_does_not_agree(tmp_path: Path) -> None:
    metrics = pytest.importorskip("sklearn.metrics", reason="needs the extra 'dev'")
    stats = pytest.importorskip("scipy.stats", reason="needs the extra 'dev'")
    given = [*verdicts("ann", "human", "rrrrwwww"), *verdicts("rules", "rules", "ruurwuwe")]
    rules = row(report(folder(tmp_path / "a", given)), "rules")
    truth, levels = [1, 1, 1, 1, 0, 0, 0], [1, 0.5, 0.5, 1, 0, 0.5, 0]
    assert (rules.answers, rules.decided) == (7, 4)
    assert rules.roc_auc.value == pytest.approx(100 * metrics.roc_auc_score(truth, levels))
    assert rules.spearman.value == pytest.approx(stats.spearmanr(truth, levels).statistic)
    assert (rules.agreement.value, rules.agreement.n) == (100, 4)


def test_a_miss_is_not_right_and_of_several_verdicts_the_first_that_decides_counts(tmp_path: Path) -> None:
    given = [*verdicts("ann", "human", "wrr"), *verdicts("gpt", "model", "mur")]
    given += [
        Verdict(
            targets=("a1",),
            question="correct",
            scorer="s",
            judge="gpt",
            kind="model",
            verdict="right",
            draw=1,
        )
    ]
    found = row(report(folder(tmp_path / "a", given)), "gpt")
    assert (found.decided, found.agreement.value) == (3, 100)


def test_scores_of_answers_are_ranked_and_give_no_verdict(tmp_path: Path) -> None:
    humans = verdicts("ann", "human", "rrww")
    found = report(folder(tmp_path / "a", humans, answers(4, scores=[50, 30, 40, 10]), "llava"))
    rouge = row(found, "rouge_l")
    assert rouge.roc_auc.value == pytest.approx(75)
    assert (rouge.decided, rouge.agreement.value, rouge.kappa.value) == (None, None, None)
    assert found.versions == {"rouge_l": "rouge-score 9"}
    assert {one.judge for one in found.rows} == {"rouge_l"}, "a flag such as refused is no metric"
    assert (rouge.roc_auc.clusters, rouge.roc_auc.n) == (2, 4)


def test_human_verdicts_may_have_their_own_file_and_count_once(tmp_path: Path) -> None:
    humans = verdicts("ann", "human", "rrww")
    results = folder(tmp_path / "a", [*humans, *verdicts("gpt", "model", "rwww")], answers(4), "llava")
    write_verdicts(verdicts("ann", "human", "rrww"), tmp_path / "human.jsonl")
    once = report(results)
    again = report(results, f"{results}/verdicts.jsonl", human=[str(tmp_path / "human.jsonl")])
    assert row(once, "gpt") == row(again, "gpt")
    assert again.humans.raters == 1


def test_a_judge_in_the_human_file_is_not_a_human(tmp_path: Path) -> None:
    results = folder(tmp_path / "a", verdicts("ann", "human", "rrww"), answers(4), "llava")
    write_verdicts(verdicts("gpt-4", "model", "rwww"), tmp_path / "judge.jsonl")
    found = report(results, human=[str(tmp_path / "judge.jsonl")])
    assert (found.humans.raters, row(found, "gpt-4").answers) == (1, 4)
    alone = folder(tmp_path / "b", verdicts("rules", "rules", "rrww"), answers(4), "llava")
    with pytest.raises(UserError, match=r"0 human verdicts.*verdicts of rules \(rules\), gpt-4 \(model\)"):
        report(alone, human=[str(tmp_path / "judge.jsonl")])


def test_judges_have_short_names_and_a_note_gives_the_full_ones(tmp_path: Path) -> None:
    address = "http://127.0.0.1:8000/v1#qwen"
    given = [*verdicts("ann", "human", "rrww"), *verdicts("rules", "rules", "rwww")]
    given += [*verdicts(address, "model", "rrww"), *verdicts(address, "model", "rrrw", scorer="other/seen")]
    whole, against_best, *_ = judge_tables(report(folder(tmp_path / "a", given)))
    assert [line[0] for line in whole.rows] == ["rules", "qwen (s)", "qwen (other/seen)"]
    assert f"qwen is {address}" in whole.notes
    assert against_best.title == "ROC-AUC minus that of qwen (s)"


def test_responders_and_labels_have_rows_of_their_own(tmp_path: Path) -> None:
    one = folder(
        tmp_path / "a",
        [*verdicts("ann", "human", "rrww"), *verdicts("gpt", "model", "rrww")],
        answers(4),
        "llava",
    )
    other = folder(
        tmp_path / "b",
        [*verdicts("ann", "human", "rwrw", "b"), *verdicts("gpt", "model", "wrwr", "b")],
        answers(4, "b"),
        "qwen",
    )
    found = report(one, other, labels=["category", "tags"])
    subsets = ["all", "responder=llava", "responder=qwen", "category=web", "category=time"]
    assert [row.subset for row in found.rows] == [*subsets, "tags=x", "tags=y"]
    assert row(found, "gpt", "responder=llava").agreement.value == 100
    assert row(found, "gpt", "responder=qwen").agreement.value == 0
    assert row(found, "gpt").agreement.value == 50
    assert row(found, "gpt").agreement.clusters == 2, "both answered the same images"
    assert found.benchmarks == ("contextual",)


def test_imported_answers_name_their_model(tmp_path: Path) -> None:
    said = [*answers(2, version="llava"), *answers(2, "b", version="qwen")]
    given = [
        *verdicts("ann", "human", "rw"),
        *verdicts("ann", "human", "rw", "b"),
        *verdicts("g", "model", "rw"),
    ]
    found = report(folder(tmp_path / "a", given, said))
    assert [one.subset for one in found.rows] == ["all", "responder=llava", "responder=qwen"]
    assert row(found, "g", "responder=qwen").answers == 0


def test_one_judge_with_two_prompts_is_two_judges(tmp_path: Path) -> None:
    given = [
        *verdicts("ann", "human", "rw"),
        *verdicts("gpt", "model", "rw", scorer="text"),
        *verdicts("gpt", "model", "wr", scorer="image"),
    ]
    found = report(folder(tmp_path / "a", given))
    assert [(one.judge, one.roc_auc.value) for one in found.rows] == [
        ("gpt (text)", 100),
        ("gpt (image)", 0),
    ]


def judged(name: str, sampling: Mapping[str, Any], **options: Any) -> dict[str, Any]:
    return {"shots": len(name), **options, "judge_sampling": {"gpt": sampling}}


def test_one_judge_under_two_options_is_two_judges_named_after_them(tmp_path: Path) -> None:
    """ConTextual, Figure 20: by the text alone, and with the image."""
    humans = verdicts("ann", "human", "rrww")
    text, image, again = (
        folder(
            tmp_path / name,
            [*humans, *verdicts("gpt", "model", said), *verdicts("rules", "rules", "ruww")],
            answers(4),
            "llava",
            options=judged(name, {"temperature": 0}, judge_image=sees, judge_parse="last"),
        )
        for name, said, sees in (("text", "rwrw", False), ("image", "rrww", True), ("again", "rrww", True))
    )
    found = report(text, image, again)
    assert {one.judge: one.roc_auc.value for one in found.rows} == {
        "gpt (s, judge_image=false)": 50,
        "gpt (s, judge_image=true)": 100,
        "rules": 100,
    }
    assert [one.judge for one in report(image, again).rows] == ["gpt", "rules"]


def test_one_judge_under_two_options_is_two_judges_on_different_answers_too(tmp_path: Path) -> None:
    one, other = (
        folder(
            tmp_path / name,
            [*verdicts("ann", "human", "rw", name), *verdicts("gpt", "model", "rw", name)],
            answers(2, name),
            name,
            options=judged(name, {"temperature": temperature}),
        )
        for name, temperature in (("a", 0), ("b", 1))
    )
    assert {row.judge: row.answers for row in report(one, other).rows if row.subset == "all"} == {
        'gpt (s, judge_sampling={"temperature": 0})': 2,
        'gpt (s, judge_sampling={"temperature": 1})': 2,
    }


def test_scores_of_two_models_under_one_name_are_refused(tmp_path: Path) -> None:
    humans = verdicts("ann", "human", "rrww")
    one, other = (
        folder(
            tmp_path / name,
            humans,
            answers(4, scores=[4, 3, 2, 1]),
            name,
            versions={"sightline": name, "rouge_l": version},
        )
        for name, version in (("a", "rouge-score 9"), ("b", "rouge-score 10"))
    )
    told = r"b/metrics\.json.*versions\.rouge_l.*rouge-score 10.*rouge-score 9.*--set text_metrics=rouge_l"
    with pytest.raises(UserError, match=told):
        report(one, other)
    assert report(one).versions == {"rouge_l": "rouge-score 9"}


def test_the_first_verdict_that_decides_counts_also_across_folders(tmp_path: Path) -> None:
    humans = verdicts("ann", "human", "rrw")
    first = folder(tmp_path / "a", [*humans, *verdicts("gpt", "model", "wur")], answers(3), "llava")
    again = folder(tmp_path / "b", verdicts("gpt", "model", "urw"), answers(3), "llava")
    gpt = row(report(first, again), "gpt")
    assert gpt.decided == 3
    assert gpt.agreement.value == pytest.approx(100 / 3)
    gpt = row(report(again, first), "gpt")
    assert gpt.decided == 3
    assert gpt.agreement.value == pytest.approx(200 / 3)


def test_samples_of_two_benchmarks_with_one_id_are_two_clusters(tmp_path: Path) -> None:
    def read(name: str, benchmark: str) -> str:
        said = [replace(one, cluster="") for one in answers(4, name)]
        given = [*verdicts("ann", "human", "rrww", name), *verdicts("gpt", "model", "rwww", name)]
        return folder(tmp_path / name, given, said, f"model-{name}", benchmark=benchmark)

    one, other, same = read("a", "contextual"), read("b", "codis"), read("c", "contextual")
    assert row(report(one, other), "gpt").agreement.clusters == 4
    assert row(report(one, same), "gpt").agreement.clusters == 2


def test_a_judge_without_spread_is_neither_distinguishable_nor_not(tmp_path: Path) -> None:
    given = [
        *verdicts("ann", "human", "rw" * 20),
        *verdicts("good", "model", "rw" * 20),
        *verdicts("yes", "model", "r" * 40),
        *verdicts("fair", "model", "rw" * 19 + "wr"),
    ]
    against_best = judge_tables(report(folder(tmp_path / "a", given)))[1]
    said = [column.key for column in against_best.columns].index("distinguishable")
    assert [(line[0], line[said]) for line in against_best.rows] == [
        ("fair", "no"),
        ("yes", "unknown"),
    ]
    told = "good; these data do not distinguish it from fair; unknown for yes: there is no test"
    assert against_best.notes[0].endswith(told)


def test_a_verdict_applies_to_the_variant_that_it_names(tmp_path: Path) -> None:
    given = [
        *verdicts("ann", "human", "rw", variant="v"),
        *verdicts("gpt", "model", "rw", variant="other"),
        *verdicts("any", "model", "rw"),
    ]
    found = report(folder(tmp_path / "a", given, answers(2), "llava"))
    assert {one.judge for one in found.rows} == {"any"}
    assert found.notes == ["2 of 2 verdicts by gpt belong to none of these answers"]


def test_a_verdict_without_a_variant_applies_to_the_variant_of_other_verdicts(tmp_path: Path) -> None:
    given = [*verdicts("ann", "human", "rw"), *verdicts("gpt", "model", "rw", variant="v")]
    found = report(folder(tmp_path / "a", given))
    assert (found.humans.answers, row(found, "gpt").answers, found.notes) == (2, 2, [])


def test_an_answer_that_two_files_hold_under_two_names_counts_once_and_for_both(tmp_path: Path) -> None:
    given = [*verdicts("ann", "human", "rrww"), *verdicts("gpt", "model", "rwww")]
    one, again = (
        folder(tmp_path / name, given, answers(4, scores=scores), model)
        for name, scores, model in (("a", [4, 3, 2, 1], "llava"), ("b", [], "file:llava.jsonl"))
    )
    found = report(one, again)
    assert row(found, "gpt") == row(report(one), "gpt")
    assert (found.humans.answers, row(found, "gpt").answers, row(found, "rouge_l").answers) == (4, 4, 4)
    for model in ("llava", "file:llava.jsonl"):
        assert row(found, "gpt", f"responder={model}").answers == 4


def test_one_image_under_two_names_is_one_cluster(tmp_path: Path) -> None:
    """A run knows the digest of an image, answers that were imported without it its path."""
    seen = answers(4)
    by_path = [replace(one, cluster=f"file images/{one.sample}.jpg") for one in answers(4, "b")]
    # Of the second file, one more sample shows the first one's image.
    shared = replace(by_path[0], sample="9", key="b9")
    given = [
        *verdicts("ann", "human", "rrww"),
        *verdicts("ann", "human", "rwrw", "b"),
        Verdict(targets=("b9",), question="correct", scorer="s", judge="ann", kind="human", verdict="right"),
        *verdicts("gpt", "model", "rrwr"),
        *verdicts("gpt", "model", "rwrr", "b"),
    ]
    one = folder(tmp_path / "a", given, seen, "llava")
    other = folder(tmp_path / "b", given, [*by_path, shared], "qwen")
    assert row(report(one, other), "gpt").agreement.clusters == 2
    assert row(report(one), "gpt").agreement.clusters == 2
    assert report(one, other).humans.answers == 9


def test_the_other_judges_are_compared_with_the_best_one(tmp_path: Path) -> None:
    given = [
        *verdicts("ann", "human", "rw" * 20),
        *verdicts("good", "model", "rw" * 19 + "wr"),
        *verdicts("bad", "model", "rrww" * 10),
    ]
    found = report(folder(tmp_path / "a", given))
    assert found.best == "good"
    ((name, contrast),) = found.contrasts
    assert (name, contrast.distinguishable, contrast.holm) == ("bad", True, contrast.p)
    assert contrast.difference.value == pytest.approx(-45)
    assert contrast.needed is not None
    assert contrast.needed < 40


def test_only_judges_of_all_answers_can_be_the_best(tmp_path: Path) -> None:
    """An area of 100 over four easy answers does not beat one of 97.5 over all forty."""
    given = [
        *verdicts("ann", "human", "rw" * 20),
        *verdicts("good", "model", "rw" * 19 + "ww"),
        *verdicts("bad", "model", "rrww" * 10),
        *verdicts("brief", "model", "rwrw"),
    ]
    found = report(folder(tmp_path / "a", given))
    assert row(found, "brief").roc_auc.value == 100
    assert found.best == "good"
    assert [(name, one.difference.n) for name, one in found.contrasts] == [("brief", 4), ("bad", 40)]
    (note, *_) = judge_tables(found)[1].notes
    assert note.startswith("the highest ROC-AUC of those that read 40 answers, which brief (4) did not: good")


def test_the_agreement_of_humans_with_each_other(tmp_path: Path) -> None:
    krippendorff = pytest.importorskip("krippendorff", reason="needs the extra 'dev'")
    votes = ["rrwwrw", "rrwrr-", "-rwwrw"]
    given = [
        one for name, letters in zip("abc", votes, strict=True) for one in verdicts(name, "human", letters)
    ]
    found = report(folder(tmp_path / "a", [*given, *verdicts("gpt", "model", "rrwwrw")])).humans
    numbers = [[{"r": 1.0, "w": 0.0, "-": float("nan")}[letter] for letter in letters] for letters in votes]
    wanted = krippendorff.alpha(numbers, level_of_measurement="nominal")
    assert found.alpha.value == pytest.approx(wanted, abs=1e-9)
    assert [pair.subset for pair in found.pairs] == ["humans=a and b", "humans=a and c", "humans=b and c"]
    assert [pair.n for pair in found.pairs] == [5, 5, 4]


def test_verdicts_on_other_answers_are_refused(tmp_path: Path) -> None:
    results = folder(tmp_path / "a", verdicts("gpt", "model", "rw"), answers(2), "llava")
    write_verdicts(verdicts("ann", "human", "rw", "z"), tmp_path / "others.jsonl")
    told = r"humans decided on none of the 2 answers.*2 of 2 verdicts by ann.*--human FILE"
    with pytest.raises(UserError, match=told):
        report(results, human=[str(tmp_path / "others.jsonl")])


def test_verdicts_that_match_no_answer_are_left_out_and_noted(tmp_path: Path) -> None:
    own = [*verdicts("ann", "human", "rrww"), *verdicts("gpt", "model", "rwww")]
    results = folder(tmp_path / "a", own, answers(4), "llava")
    write_verdicts([*verdicts("bob", "human", "rw"), *verdicts("bob", "human", "rwr", "z")], tmp_path / "v")
    folder(tmp_path / "b", verdicts("gpt", "model", "r", "z"))
    found = report(results, str(tmp_path / "b"), human=[str(tmp_path / "v")])
    assert found.notes == [
        "3 of 5 verdicts by bob belong to none of these answers",
        "1 of 5 verdicts by gpt belong to none of these answers",
    ]
    assert (found.humans.raters, found.humans.answers, row(found, "gpt").answers) == (2, 4, 3)


def test_a_judge_report_needs_a_judge_besides_humans(tmp_path: Path) -> None:
    with pytest.raises(UserError, match="no judge and no metric"):
        report(folder(tmp_path / "a", verdicts("ann", "human", "rw")))


def test_a_file_that_holds_no_verdicts_needs_a_task(tmp_path: Path) -> None:
    (tmp_path / "answers.jsonl").write_text('{"id": "1", "response": "yes"}\n')
    with pytest.raises(UserError, match=r"contains no verdicts.*--task"):
        report(str(tmp_path / "answers.jsonl"))


def test_a_folder_without_verdicts_is_refused(tmp_path: Path) -> None:
    with pytest.raises(UserError, match=r"contains no verdicts\.jsonl"):
        report(str(tmp_path))
