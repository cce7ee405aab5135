"""MM-R3 from images to tables: masking, asking, Sampling, reports, scores of answers from elsewhere."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from itertools import combinations, groupby
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from PIL import Image
from tests.results import lasting_lines

from sightline.cli.main import main

pytestmark = pytest.mark.slow

WORDS = (
    "A refrigerator.|a green square|In the masked region, there is a bowl.|a bowl|I cannot see the region."
)
GROUPS = 4
WARM = ("--gen", "temperature=0.7")
DIFFERENCES = [f"{name}_minus_sampling" for name in ("acc", "s_gt", "con", "s_c")]

Metrics = dict[tuple[str, str], dict[str, Any]]


class Done(NamedTuple):
    """A masked data set that was asked about, then asked about unchanged: the folder all of it lies in."""

    folder: Path
    server: Any
    asked: tuple[int, int]

    def run(self, *more: object) -> list[str]:
        """The words of a run at the temperature of both."""
        words = ["run", "mmr3:context", "--data", "masked", "--model", self.server.model, "--quiet"]
        return [*words, *WARM, *map(str, more)]


@pytest.fixture(scope="module")
def done(shared: Path, module_folder: Path, module_mock: Callable[..., Any]) -> Done:
    pytest.importorskip("sentence_transformers", reason="similarity needs the extra `local`")
    pytest.importorskip("pycocotools", reason="masking needs the extra `build`")
    coco, server = shared / "data" / "coco", module_mock("--words", WORDS)
    whole = Done(module_folder, server, (0, 0))
    masking = ["build", "mask", coco / "instances_val2017_mini.json", "--images", coco / "images"]
    asked = []
    for words in (
        [*masking, "--limit", GROUPS, "--out", "masked", "--quiet"],
        whole.run("--out", "all"),
        whole.run("--set", "unchanged=on", "--repeats", 4, "--out", "sampling"),
    ):
        with pytest.MonkeyPatch.context() as patch:
            patch.chdir(module_folder)
            assert main([str(word) for word in words]) == 0
        asked.append(server.stats()["requests"])
    return whole._replace(asked=(asked[1], asked[2] - asked[1]))


@pytest.fixture
def here(done: Done, monkeypatch: pytest.MonkeyPatch) -> Done:
    monkeypatch.chdir(done.folder)
    return done


def write(name: str, records: Iterable[dict[str, Any]]) -> str:
    Path(name).write_text("".join(json.dumps(record) + "\n" for record in records))
    return name


def by_name(result: dict[str, Any]) -> Metrics:
    return {(one["metric"], one["subset"]): one for one in result["metrics"]}


def kept(folder: str) -> Metrics:
    return by_name(json.loads(Path(folder, "metrics.json").read_text()))


def printed(capsys: pytest.CaptureFixture[str], *words: object, status: int = 0) -> dict[str, Any]:
    """The result that a command prints as JSON."""
    capsys.readouterr()
    assert main([*map(str, words), "--json"]) == status
    result: dict[str, Any] = json.loads(capsys.readouterr().out)
    return result


def refused(capsys: pytest.CaptureFixture[str], *words: object) -> str:
    """The one message of a command that is refused."""
    capsys.readouterr()
    assert main([*map(str, words)]) == 2
    out, err = capsys.readouterr()
    assert out == ""
    assert err.startswith("sightline: ")
    assert err.count("\n") == 1
    return err


def plain(group: str, responses: Sequence[str], *references: str, **labels: str) -> list[dict[str, Any]]:
    """The answers of a group as anyone may write them down."""
    styles = ("candy", "mosaic", "udnie", "grayscale")
    return [
        {
            "group": group,
            "variant": style,
            "response": response,
            "references": list(references),
            "labels": {"style": style, **labels},
        }
        for style, response in zip(styles, responses, strict=False)
    ]


def test_every_masked_image_is_asked_once_and_the_unmasked_one_never(here: Done) -> None:
    assert here.asked[0] == 3 * GROUPS
    answers = lasting_lines(Path("all/answers.jsonl"))
    assert [line["variant"] for line in answers] == ["m0", "m1", "m2"] * GROUPS
    assert all(line["references"] == [line["labels"]["category"]] for line in answers)
    assert kept("all")["con", "all"]["n"] == 3 * GROUPS
    assert kept("all")["con", "all"]["clusters"] == GROUPS


def test_sampling_asks_each_masked_image_three_times_more(here: Done) -> None:
    assert here.asked[1] == 3 * 3 * GROUPS
    images = {(line["sample"], line["variant"]) for line in lasting_lines(Path("sampling/answers.jsonl"))}
    assert len(images) == 3 * GROUPS
    assert kept("sampling")["acc", "all"]["n"] == 4 * 3 * GROUPS
    assert kept("sampling")["con", "all"]["n"] == 6 * 3 * GROUPS
    assert kept("sampling")["con", "all"]["clusters"] == GROUPS
    assert not any(metric in DIFFERENCES for metric, _ in kept("sampling"))


def test_second_runs_send_nothing_and_say_the_same(here: Done, capsys: pytest.CaptureFixture[str]) -> None:
    before = here.server.stats()["requests"]
    again = printed(capsys, *here.run("--set", "unchanged=on", "--repeats", 4))
    assert by_name(again) == kept("sampling")
    printed(capsys, *here.run())
    assert here.server.stats()["requests"] == before


def consistency(folder: str, *name: str) -> dict[tuple[str, ...], float]:
    """The share of consistent pairs of each group, which these fields name, counted from the files alone."""
    values = {
        tuple(one["targets"]): one["value"]
        for one in lasting_lines(Path(f"{folder}/verdicts.jsonl"))
        if one["value"]
    }
    found = {}
    answers = lasting_lines(Path(f"{folder}/answers.jsonl"))
    for group, members in groupby(answers, key=lambda line: tuple(line[field] for field in name)):
        pairs = [values[pair] > 0.7 for pair in combinations([one["key"] for one in members], 2)]
        found[group] = sum(pairs) / len(pairs)
    return found


def test_the_report_of_an_earlier_run_holds_it_against_sampling_from_the_store(
    here: Done, capsys: pytest.CaptureFixture[str]
) -> None:
    assert {kept("all")[name, "all"]["reason"] for name in DIFFERENCES} == {
        "needs a run of setting 'unchanged' with the same model and the same options"
        " (--set unchanged=on --repeats 4)"
    }
    metrics = by_name(printed(capsys, "report", 1))
    whole, unchanged = consistency("all", "sample"), consistency("sampling", "sample", "variant")
    of_each = [
        share - sum(unchanged[group, f"m{nth}"] for nth in range(3)) / 3 for (group,), share in whole.items()
    ]
    assert metrics["con_minus_sampling", "all"]["value"] == pytest.approx(100 * sum(of_each) / GROUPS)
    assert [metrics[name, "all"]["n"] for name in DIFFERENCES] == [GROUPS] * 4
    rest = {place: value for place, value in metrics.items() if place[0] not in DIFFERENCES}
    assert rest == {place: value for place, value in kept("all").items() if place[0] not in DIFFERENCES}


def test_answers_at_another_temperature_are_not_held_against_sampling(
    here: Done, capsys: pytest.CaptureFixture[str]
) -> None:
    cold = printed(capsys, *here.run("--gen", "temperature=0.2"))
    assert [by_name(cold)[name, "all"]["value"] for name in DIFFERENCES] == [None] * 4


@pytest.mark.parametrize("data", [(), ("--data", "masked")])
def test_scoring_the_answers_of_a_results_folder_gives_its_metrics(
    here: Done, capsys: pytest.CaptureFixture[str], data: tuple[str, ...]
) -> None:
    scoring = ("score", "mmr3:context", "all/answers.jsonl", *data, "--out", f"scored{len(data)}")
    assert by_name(printed(capsys, *scoring)) == kept("all")
    assert lasting_lines(Path(f"scored{len(data)}/answers.jsonl")) == lasting_lines(Path("all/answers.jsonl"))
    against = printed(capsys, *scoring, "--with", "unchanged=sampling/answers.jsonl")
    assert by_name(against) == by_name(printed(capsys, "report", 1))
    unchanged = ("score", "mmr3:context", "sampling/answers.jsonl", "--set", "unchanged=on", *data)
    assert by_name(printed(capsys, *unchanged)) == kept("sampling")


def test_answers_of_sampling_are_not_taken_for_answers_to_what_changed(
    here: Done, capsys: pytest.CaptureFixture[str]
) -> None:
    said = refused(capsys, "score", "mmr3:context", "sampling/answers.jsonl")
    assert "belong to mmr3:context --set unchanged=on" in said
    of_all = ("all/answers.jsonl", "--with", "unchanged=all/answers.jsonl")
    assert "instead of mmr3:context --set unchanged=on" in refused(capsys, "score", "mmr3:context", *of_all)


def test_without_images_a_group_is_one_request_and_the_difference_is_that_of_both_runs(
    here: Done, capsys: pytest.CaptureFixture[str]
) -> None:
    before = here.server.stats()
    hidden = printed(capsys, *here.run("--set", "image=off", "--out", "hidden"))
    after = here.server.stats()
    assert after["requests"] - before["requests"] == 1  # all ask the same question
    assert after["with_image"] == before["with_image"]
    capsys.readouterr()
    assert main(["report", "all", "hidden", "--without-image", "--json"]) == 0
    [[row]] = [table["rows"] for table in json.loads(capsys.readouterr().out)]
    acc = kept("all")["acc", "all"]["value"], by_name(hidden)["acc", "all"]["value"]
    assert (row["metric"], row["with value"], row["without value"]) == ("acc", *map(pytest.approx, acc))
    assert row["difference value"] == pytest.approx(acc[0] - acc[1])
    assert row["chance value"] is None


def test_chance_is_the_share_of_right_options_of_each_question(
    here: Done, capsys: pytest.CaptureFixture[str]
) -> None:
    questions = [("one", ("car", "bus")), ("two", ("car", "bus", "tram", "bike"))]
    lines = [
        {"group": f"{name}{number}", "variant": "v", "prompt": f"{name} {number}?", "images": ["0.png"]}
        | {"options": options, "references": ["A"]}
        for name, options in questions
        for number in range(3)
    ]
    Path("choice").mkdir()
    Image.new("RGB", (32, 32), "red").save("choice/0.png")
    write("choice/groups.jsonl", lines)
    asking = ["run", "groups:choice/groups.jsonl", "--model", here.server.model, "--quiet"]
    for more in (["--out", "choice/shown"], ["--out", "choice/blind", "--set", "image=off"]):
        assert main([*asking, *more]) == 0
    capsys.readouterr()
    assert main(["report", "choice/shown", "choice/blind", "--without-image", "--json"]) == 0
    [[row]] = [table["rows"] for table in json.loads(capsys.readouterr().out)]
    assert row["chance value"] == pytest.approx(100 * (1 / 2 + 1 / 4) / 2)


def test_the_same_file_as_a_groups_file_is_known_already(
    here: Done, capsys: pytest.CaptureFixture[str]
) -> None:
    before = here.server.stats()["requests"]
    asking = ["run", "groups:masked/groups.jsonl", *here.run()[4:]]
    whole = by_name(printed(capsys, *asking, "--set", "task=context", "--out", "groups"))
    first = by_name(printed(capsys, "report", 1))
    assert whole == first
    plainly = by_name(printed(capsys, *asking))
    assert here.server.stats()["requests"] == before
    assert plainly["acc", "all"]["value"] == first["acc", "all"]["value"]
    assert ("names_colour", "all") not in plainly
    moved = ("score", "groups:masked/../masked/groups.jsonl", "groups/answers.jsonl", "--set", "task=context")
    assert by_name(printed(capsys, *moved))["con", "all"] == first["con", "all"]


def test_what_asks_other_words_is_held_against_its_original(
    here: Done, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = {"original": "What is it?", "r1": "Which thing is it?", "r2": "Say what it is.", "r3": "It is?"}
    records = [
        {"group": name, "variant": variant, "prompt": f"{words} ({name})", "references": ["a bowl"]}
        for name in ("one", "two")
        for variant, words in asked.items()
    ]
    write("words.jsonl", records)
    asking = ["run", "groups:words.jsonl", "--model", here.server.model, *WARM]
    sampling = printed(capsys, *asking, "--set", "unchanged=on", "--repeats", 4, "--out", "words-unchanged")
    assert (sampling["samples"], sampling["probes"]) == (2, 8)
    whole = by_name(printed(capsys, *asking, "--out", "words"))
    by_hand = [by_name(result)["acc", "all"]["value"] for result in (printed(capsys, *asking), sampling)]
    assert whole["acc_minus_sampling", "all"]["value"] == pytest.approx(by_hand[0] - by_hand[1])
    with_unchanged = ("words/answers.jsonl", "--with", "unchanged=words-unchanged/answers.jsonl")
    assert by_name(printed(capsys, "score", "groups:words.jsonl", *with_unchanged)) == whole
    assert "--data DIR" in refused(capsys, "score", "groups", *with_unchanged)


BUS = (
    "the inside of a bus",
    "the inside of a bus with stained glass windows",
    "the interior of a bus",
    "the inside of a bus",
)
"""What BLIP-2 says in Figure 8; the paper prints s_gt 81.7, con 50 and s_c 82.2."""


def test_lines_from_elsewhere_give_the_figures_of_the_paper(
    here: Done, capsys: pytest.CaptureFixture[str]
) -> None:
    long = "A street with a bus. " + "word " * 10_000
    records = [*plain("bus", BUS, "inside bus"), *plain("long", [long, "A street with a bus."], "bus")]
    result = printed(capsys, "score", "mmr3:restyling", write("plain.jsonl", records), "--out", "plain")
    assert (result["samples"], result["probes"], result["errors"]) == (2, 6, 0)
    assert any("1 answers have more than 200 words" in note for note in result["notes"])
    write("bus.jsonl", records[:4])
    bus = by_name(printed(capsys, "score", "mmr3:restyling", "bus.jsonl"))
    figures = {"s_gt": 81.7, "con": 50, "s_c": 82.2}
    assert {name: bus[name, "all"]["value"] for name in figures} == pytest.approx(figures, abs=0.05)
    of_styles = [
        bus["con_by_response", f"style={style}"] for style in ("candy", "mosaic", "udnie", "grayscale")
    ]
    assert [one["n"] for one in of_styles] == [1, 1, 1, 1]
    assert sum(one["value"] for one in of_styles) / 4 == pytest.approx(50)


def test_an_empty_answer_is_wrong_and_unlike_all_others_or_left_out(
    here: Done, capsys: pytest.CaptureFixture[str]
) -> None:
    write("empty.jsonl", plain("g", ["a bowl", "a bowl", ""], "a bowl"))
    scoring = ("score", "mmr3:restyling", "empty.jsonl")
    counted = by_name(printed(capsys, *scoring))
    shares = {
        "acc": 200 / 3,
        "s_gt": 200 / 3,
        "con": 100 / 3,
        "s_c": 100 / 3,
        "pairs_left_out": 0,
        "empty": 100 / 3,
    }
    assert {name: counted[name, "all"]["value"] for name in shares} == pytest.approx(shares, abs=1e-3)
    assert {counted[name, "all"]["n"] for name in shares} == {3}
    ignored = by_name(printed(capsys, *scoring, "--set", "empty=ignore"))
    rest = {"acc": 100, "s_gt": 100, "con": 100, "s_c": 100, "pairs_left_out": 200 / 3, "empty": 100 / 3}
    assert {name: ignored[name, "all"]["value"] for name in rest} == pytest.approx(rest, abs=1e-3)
    assert [ignored[name, "all"]["n"] for name in rest] == [2, 2, 1, 1, 3, 3]


def test_a_missing_variant_is_wrong_and_its_pairs_are_counted(
    here: Done, capsys: pytest.CaptureFixture[str]
) -> None:
    write("short.jsonl", lasting_lines(Path("all/answers.jsonl"))[1:])
    scoring = ("score", "mmr3:context", "short.jsonl", "--data", "masked")
    assert f"1 of {3 * GROUPS} answers are missing" in refused(capsys, *scoring)
    result = printed(capsys, *scoring, "--allow-missing", status=1)
    metrics = by_name(result)
    assert result["errors"] == 1
    assert metrics["acc", "all"]["n"] == 3 * GROUPS
    assert metrics["s_gt", "all"]["n"] == 3 * GROUPS - 1
    assert metrics["con", "all"]["n"] == 3 * GROUPS - 2
    assert metrics["pairs_left_out", "all"]["value"] == pytest.approx(100 * 2 / (3 * GROUPS))
    known = printed(capsys, "score", "mmr3:context", "short.jsonl")
    assert (known["errors"], by_name(known)["pairs_left_out", "all"]["value"]) == (0, 0)


def test_without_an_embedder_only_what_needs_none_has_a_value(
    here: Done, capsys: pytest.CaptureFixture[str]
) -> None:
    found = by_name(printed(capsys, "score", "mmr3:context", "all/answers.jsonl", "--set", "embedder=none"))
    assert found["acc", "all"] == kept("all")["acc", "all"]
    assert found["agree", "all"] == kept("all")["agree", "all"]
    for name in ("s_gt", "con", "s_c", "con_failures"):
        assert (found[name, "all"]["value"], found[name, "all"]["n"]) == (None, 0)
        assert found[name, "all"]["reason"] == "no similarities: embedder=none"


def test_an_unknown_embedder_is_refused_before_anything_is_asked_or_written(
    mock: Callable[..., Any], command: Callable[..., Any], done: Done, tmp_path: Path
) -> None:
    server = mock()
    words = ["run", "mmr3:context", "--data", done.folder / "masked", "--model", server.model, "--out", "out"]
    status, out, err = command(*words, "--set", "embedder=no-such-model")
    assert (status, out) == (2, "")
    assert err.startswith("sightline: the embedder 'no-such-model' is neither a folder nor in the")
    assert err.count("\n") == 1
    assert server.stats()["requests"] == 0
    assert list(tmp_path.iterdir()) == []


def test_a_label_of_three_hundred_values_has_no_subsets(
    here: Done, capsys: pytest.CaptureFixture[str]
) -> None:
    records = [
        line for nth in range(300) for line in plain(f"g{nth}", ["yes", "no"], "yes", place=f"place {nth}")
    ]
    scoring = ("score", "mmr3:restyling", write("many.jsonl", records), "--set", "embedder=none")
    metrics = by_name(printed(capsys, *scoring))
    assert metrics["acc", "all"]["n"] == 600
    assert metrics["acc", "style=candy"]["value"] == 100
    assert not any(subset.startswith("place=") for _, subset in metrics)


def test_answers_alone_are_nothing_to_ask_about(here: Done, capsys: pytest.CaptureFixture[str]) -> None:
    before = here.server.stats()["requests"]
    asking = ["run", "mmr3:context", "--model", here.server.model, "--set", "answers=all/answers.jsonl"]
    assert "no data folder for mmr3:context" in refused(capsys, *asking)
    assert here.server.stats()["requests"] == before


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (["--data", "masked", "--set", "empty=ignored"], "did you mean 'ignore'"),
        (["--data", "masked", "--set", "task=restyling"], "unknown option of mmr3 'task'"),
        (["--data", "masked", "--set", "size=224"], "has no images of size 224"),
        (["--data", "nowhere"], "this data folder does not exist"),
        ([], "no data folder for mmr3:context"),
    ],
)
def test_a_wrong_call_is_told_in_one_message(
    here: Done, capsys: pytest.CaptureFixture[str], words: list[str], message: str
) -> None:
    assert message in refused(capsys, "run", "mmr3:context", "--model", here.server.model, *words)


def test_a_judge_of_meaning_stands_for_nothing_else(
    here: Done, mock: Callable[..., Any], capsys: pytest.CaptureFixture[str]
) -> None:
    judge = mock("--words", "same|different").model
    metrics = by_name(printed(capsys, *here.run("--judge", judge)))
    whole = metrics["same_meaning", "all"]
    assert whole["judge"] == judge
    assert whole["n"] == 3 * GROUPS
    assert metrics["same_meaning", f"judge={judge}"]["value"] == whole["value"]
    assert metrics["acc", "judge=rules"]["value"] == kept("all")["acc", "all"]["value"]
    assert ("acc", f"judge={judge}") not in metrics
    assert ("same_meaning", "judge=rules") not in metrics


def test_where_humans_alone_judge_answers_are_compared_all_the_same(
    here: Done, capsys: pytest.CaptureFixture[str]
) -> None:
    verdicts = [
        {"targets": [line["key"]], "question": "correct", "verdict": "right", "judge": "ann"}
        for line in lasting_lines(Path("all/answers.jsonl"))
    ]
    scoring = ("score", "mmr3:context", "all/answers.jsonl", "--judge")
    metrics = by_name(printed(capsys, *scoring, "human:" + write("human.jsonl", verdicts)))
    assert metrics["acc", "all"]["value"] == 100
    for name in ("s_gt", "con", "s_c", "agree", "refused", "names_shape"):
        assert metrics[name, "all"] == kept("all")[name, "all"]
