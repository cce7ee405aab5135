"""Benchmarks as inspect tasks: inspect and sightline compute the same numbers from the same answers."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import subprocess
import sys
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import sightline
from sightline.evaluation.result import Evaluation
from sightline.evaluation.runs import list_runs
from sightline.viewer.opened import AnswerTask, opened_store
from training.scenes.build import generate_contextual

pytest.importorskip("inspect_ai")

import inspect_ai
from inspect_ai._util.error import PrerequisiteError
from inspect_ai._util.registry import registry_lookup
from inspect_ai.log import EvalLog, read_eval_log, recompute_metrics, write_eval_log
from inspect_ai.model import GenerateConfig, ModelAPI, ModelOutput, ModelUsage, modelapi

COUNTS = ("samples", "probes", "errors", "misses", "undecided", "unscored", "truncated")
OTHERS = ("Yes.", "No.", "Yes, it is.", "I cannot tell.", "")


@modelapi(name="pure")
class Pure(ModelAPI):
    """A provider whose answer is a function of the prompt."""

    answer: Callable[[str], str]
    judgement: Callable[[str], str]
    seen: list[Any]

    def __init__(
        self,
        model_name: str,
        base_url: str | None = None,
        api_key: str | None = None,
        config: GenerateConfig = GenerateConfig(),  # noqa: B008 - as inspect's own
    ) -> None:
        super().__init__(model_name, base_url, api_key, [], config)

    async def generate(self, input: list[Any], tools: Any, tool_choice: Any, config: GenerateConfig) -> Any:  # noqa: A002
        Pure.seen.append(input)
        text = input[-1].text
        said = Pure.judgement(text) if self.model_name == "judge" else Pure.answer(text)
        if said == "fails":
            raise ValueError("there is nothing to say")
        output = ModelOutput.from_content(self.model_name, said)
        output.usage = ModelUsage(input_tokens=9, output_tokens=1)
        return output


def _number(text: str) -> int:
    return int(hashlib.sha256(text.encode()).hexdigest()[:8], 16)


def _any_of(*answers: str) -> Callable[[str], str]:
    return lambda text: answers[_number(text) % len(answers)]


JUDGEMENTS = _any_of("right", "wrong", "I wonder.")


@pytest.fixture(autouse=True)
def _fresh(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    if registry_lookup("task", "sightline/codis") is None:
        pytest.fail(
            "inspect_ai does not take this sightline for an installed package: the metadata that come first "
            f"in {sys.path} have no direct_url.json (a src/ with sightline.egg-info in PYTHONPATH?)"
        )
    Pure.seen = []
    Pure.answer = staticmethod(_any_of(*OTHERS))
    Pure.judgement = staticmethod(JUDGEMENTS)


@pytest.fixture
def codis(tmp_path: Path) -> Path:
    """24 pairs about 12 images."""
    folder = tmp_path / "codis"
    (folder / "images").mkdir(parents=True)
    records = []
    for number in range(24):
        name = f"{number // 2}.png"
        Image.new("RGB", (9, 9), (number // 2, 0, 0)).save(folder / "images" / name)
        records.append(
            {
                "id": str(number),
                "image_id": name,
                "question": f"Is shop {number} open?",
                "context": {"context_1": f"It is Monday, {number}.", "context_2": f"It is Sunday, {number}."},
                "answer": {"answer_1": "Yes", "answer_2": "No"},
                "category": ("Attributes", "Location")[number % 2],
            }
        )
    (folder / "data.json").write_text(json.dumps(records))
    return folder


@pytest.fixture
def iibench(tmp_path: Path) -> Path:
    """18 questions about 9 images, with answers."""
    folder = tmp_path / "iibench"
    (folder / "images").mkdir(parents=True)
    records = []
    for number in range(9):
        Image.new("RGB", (9, 9), (0, number, 0)).save(folder / "images" / f"{number}.png")
        options = [f"meaning {letter} of {number}" for letter in "ABCDEF"]
        questions = [
            {
                "id": f"dev-{number}-{more}",
                "question": f"What of {more}?",
                "options": options,
                "answer": letter,
            }
            for more, letter in enumerate("AC")
        ]
        meta = {"domain": "Life", "emotion": "Positive", "rhetoric": ["Symbolism"]}
        meta |= {"image_type": "Painting", "difficulty": ("Easy", "Hard")[number % 2]}
        records.append({"local_path": f"images/{number}.png", "questions": questions, "meta_data": meta})
    (folder / "dev.json").write_text(json.dumps(records))
    return folder


@pytest.fixture
def groups(tmp_path: Path) -> Path:
    """8 groups of three questions."""
    Image.new("RGB", (9, 9)).save(tmp_path / "a.png")
    lines = [
        {
            "group": f"g{number}",
            "variant": f"r{variant}",
            "images": ["a.png"],
            "prompt": f"{number}: is it open, said in way {variant}?",
            "references": ["yes"],
        }
        for number in range(8)
        for variant in range(3)
    ]
    file = tmp_path / "groups.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def evaluate(name: str, *, epochs: int | None = None, limit: int | None = None, **options: Any) -> EvalLog:
    words = {key: str(value) if isinstance(value, Path) else value for key, value in options.items()}
    (log,) = inspect_ai.eval(
        f"sightline/{name}",
        model="pure/m",
        task_args=words,
        log_dir="logs",
        display="none",
        epochs=epochs,
        limit=limit,
    )
    return log


def counted(log: EvalLog) -> dict[str, float]:
    assert log.results is not None
    (scores,) = log.results.scores
    return {name: metric.value for name, metric in scores.metrics.items()}


def expected(evaluation: Evaluation) -> dict[str, float]:
    """The numbers of an evaluation, under the names that inspect shows."""
    found: dict[str, float] = {name: getattr(evaluation.result, name) for name in COUNTS}
    for one in evaluation.metrics:
        if one.subset == "all" and one.value is not None:
            found[one.metric] = one.value
            found[f"{one.metric}_n"] = one.n
            if one.low is not None and one.high is not None:
                found |= {f"{one.metric}_low": one.low, f"{one.metric}_high": one.high}
    return {**found, "judge_errors": evaluation.result.judge_errors}


def answers_of(log: EvalLog, file: Path) -> Path:
    """Write the answers of a log as another tool would."""
    lines = []
    for sample in log.samples or []:
        assert sample.metadata is not None
        failed = {"error": "failed"} if sample.output.empty else {"response": sample.output.completion}
        probe = sample.metadata["probe"]
        where = {"id": probe["sample"], "variant": probe["variant"]}
        lines.append(json.dumps({**where, "draw": sample.epoch - 1, **failed}))
    file.write_text("\n".join(lines))
    return file


@pytest.mark.slow
@pytest.mark.parametrize("setting", ["default", "plain", "no-context"])
def test_codis_gives_the_numbers_of_score_and_run(codis: Path, tmp_path: Path, setting: str) -> None:
    log = evaluate("codis", data=codis, setting=setting)
    assert log.status == "success"
    file = answers_of(log, tmp_path / "answers.jsonl")
    scored = sightline.score(f"codis:{setting}", file, data=codis)
    run = sightline.run(f"codis:{setting}", model="inspect/pure/m", data=codis, store=tmp_path / "s.db")
    assert counted(log) == expected(scored) == expected(run)
    assert 0 < counted(log)["acc_q"] < 100
    assert (counted(log)["acc_p_n"], counted(log)["acc_q_n"]) == (24, 48)


@pytest.mark.slow
@pytest.mark.parametrize(
    ("setting", "chosen"), [("none", {}), ("cot", {}), ("shuffled", {}), ("none", {"orders": 2})]
)
def test_iibench_gives_the_numbers_of_run(
    iibench: Path, tmp_path: Path, setting: str, chosen: dict[str, Any]
) -> None:
    Pure.answer = staticmethod(_any_of(*(f"({letter})" for letter in "ABCDEF"), "None of these."))
    words = {f"set_{name}": value for name, value in chosen.items()}
    log = evaluate("iibench", data=iibench, setting=setting, split="dev", **words)
    run = sightline.run(
        f"iibench:{setting}", model="inspect/pure/m", data=iibench, split="dev", set=chosen, store="s.db"
    )
    assert counted(log) == expected(run)
    assert 0 < counted(log)["accuracy"] < 100


@pytest.mark.slow
def test_a_groups_file_gives_the_numbers_of_run(groups: Path) -> None:
    log = evaluate("groups", file=groups, set_embedder="none")
    run = sightline.run(f"groups:{groups}", model="inspect/pure/m", set={"embedder": "none"}, store="s.db")
    assert counted(log) == expected(run)
    assert 0 < counted(log)["acc"] < 100


@pytest.mark.slow
def test_consistency_is_measured_with_the_same_embeddings(groups: Path) -> None:
    pytest.importorskip("sentence_transformers")
    log = evaluate("groups", file=groups, store="one.db")
    run = sightline.run(f"groups:{groups}", model="inspect/pure/m", store="other.db")
    assert counted(log) == expected(run)
    assert counted(log)["con_n"] > 0


@pytest.mark.slow
def test_epochs_are_draws(codis: Path, tmp_path: Path) -> None:
    times: dict[str, int] = {}

    def answer(text: str) -> str:
        times[text] = times.get(text, 0) + 1
        return OTHERS[(_number(text) + times[text]) % len(OTHERS)]

    Pure.answer = staticmethod(answer)
    log = evaluate("codis", data=codis, epochs=2)
    scored = sightline.score("codis", answers_of(log, tmp_path / "answers.jsonl"), data=codis)
    assert counted(log) == expected(scored)
    assert counted(log)["acc_p_n"] == 48


@pytest.mark.slow
def test_failed_calls_count_as_errors_and_affect_no_other_sample(codis: Path, tmp_path: Path) -> None:
    Pure.answer = staticmethod(_any_of(*OTHERS, "fails"))
    log = evaluate("codis", data=codis)
    scored = sightline.score("codis", answers_of(log, tmp_path / "answers.jsonl"), data=codis)
    assert counted(log) == expected(scored)
    assert counted(log)["errors"] > 0
    assert counted(log)["acc_p_n"] == 24


@pytest.mark.slow
def test_a_broken_image_is_an_error_of_its_probes_and_sends_no_request(codis: Path) -> None:
    (codis / "images" / "3.png").write_bytes(b"no image")
    log = evaluate("codis", data=codis)
    run = sightline.run("codis", model="inspect/pure/m", data=codis, store="s.db")
    assert counted(log) == expected(run)
    assert counted(log)["errors"] == 4
    assert len(Pure.seen) == 2 * (48 - 4)


@pytest.mark.slow
def test_a_group_cut_by_a_limit_is_not_counted(codis: Path) -> None:
    assert counted(evaluate("codis", data=codis, limit=5))["samples"] == 2


@pytest.mark.slow
def test_a_model_judge_gives_the_verdicts_of_run(codis: Path) -> None:
    judged = counted(evaluate("codis", data=codis, judge="pure/judge"))
    run = sightline.run("codis", model="inspect/pure/m", judge="inspect/pure/judge", data=codis, store="s.db")
    ours = expected(run)
    for name in ("acc_p", "acc_q", "acc_q_low", "acc_q_high", "undecided", "judge_errors"):
        assert judged[name] == ours[name]
    assert judged["undecided"] > 0
    assert judged["acc_q"] != counted(evaluate("codis", data=codis))["acc_q"]


@pytest.mark.slow
@pytest.mark.parametrize("sees", [False, True])
def test_a_contextual_judge_gets_retries_and_images_as_in_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, sees: bool
) -> None:
    data = generate_contextual(tmp_path / "drawn", questions=0, val=12)
    Pure.answer = staticmethod(_any_of("16", "Cuba", "A sign."))
    times: Counter[str] = Counter()

    def judgement(text: str) -> str:
        times[text] += 1
        said = _any_of("Yes", "No", "perhaps")(text)
        return f"Judgement: {'No' if said == 'perhaps' and times[text] == 2 else said}"

    Pure.judgement = staticmethod(judgement)
    words: dict[str, Any] = {"data": data, "split": "val"}
    log = evaluate("contextual", judge="pure/judge", set_judge_image=sees, **words)
    asked, shown = Counter(times), _shown_to_the_judge()
    times.clear()
    chosen = {"judge_image": sees}
    run = sightline.run(
        "contextual", model="inspect/pure/m", judge="inspect/pure/judge", set=chosen, store="s.db", **words
    )
    assert counted(log) == expected(run)
    assert 0 < counted(log)["accepted"] < 100
    assert counted(log)["undecided"] == 0
    assert asked == times
    assert set(asked.values()) == {1, 2}
    assert shown == [sees] * asked.total()


def _shown_to_the_judge() -> list[bool]:
    """For each prompt of Figure 20 that was sent: whether it holds an image."""
    prompts = [turns[-1] for turns in Pure.seen if "ImageTaskEvaluatorGPT" in turns[-1].text]
    return [not isinstance(turn.content, str) for turn in prompts]


@pytest.mark.slow
def test_the_log_alone_is_enough_to_recompute_the_numbers(codis: Path) -> None:
    log = evaluate("codis", data=codis)
    (codis / "data.json").unlink()
    again = read_eval_log(log.location)
    assert again.results is not None
    again.results.scores = []
    recompute_metrics(again)
    assert counted(again) == counted(log)


@pytest.mark.slow
def test_sample_metadata_names_the_probe_and_its_group(codis: Path) -> None:
    log = evaluate("codis", data=codis)
    assert log.eval.dataset.name == "codis:default"
    (sample,) = [one for one in log.samples or [] if one.id == "5/context_2"]
    assert sample.metadata is not None
    probe = {name: sample.metadata["probe"][name] for name in ("sample", "variant", "labels")}
    assert probe == {"sample": "5", "variant": "context_2", "labels": {"category": "Location"}}
    assert sample.target == ["No"]
    assert (log.plan.config.temperature, log.plan.config.max_tokens) == (0, 1024)
    (score,) = (sample.scores or {}).values()
    assert score.value in ("C", "I", "N")


def test_images_are_sent_with_their_true_type_whatever_their_suffix(codis: Path) -> None:
    Image.new("RGB", (9, 9)).save(codis / "images" / "0.png", "JPEG")
    Image.new("RGB", (9, 9)).save(codis / "images" / "1.png", "TIFF")
    evaluate("codis", data=codis, limit=12)
    shown = {part.image for (turn,) in Pure.seen for part in turn.content if part.type == "image"}
    # A TIFF is no image for any model: it goes as a PNG, as it does from us.
    assert sorted(image.partition(";")[0] for image in shown) == ["data:image/jpeg", *["data:image/png"] * 2]
    png = (codis / "images" / "2.png").read_bytes()
    assert f"data:image/png;base64,{base64.b64encode(png).decode()}" in shown


@pytest.mark.parametrize(
    ("task", "words", "message"),
    [
        ("codis", {"data": "nowhere"}, "nowhere"),
        ("codis", {"data": "codis", "setting": "no-contxt"}, "did you mean 'no-context'"),
        ("codis", {"data": "codis", "set_cott": False}, "did you mean 'cot'"),
        ("codis", {"data": "codis", "set_cot": "perhaps"}, "not allowed"),
        ("codis", {"data": "codis", "dta": "x"}, "unknown task argument 'dta', did you mean 'data'"),
        ("codis", {"data": "codis", "judge": "nobody/m"}, "judge=nobody/m.*not recognized"),
        ("codis", {"data": "codis", "judge": "human:x.jsonl"}, "sightline score"),
        ("iibench", {"data": "iibench", "split": "dev", "judge": "pure/judge"}, "rules read its answers"),
        ("iibench", {"data": "iibench", "split": "dev", "set_answer_by": "likelihood"}, "how likely"),
        ("groups", {"file": "nowhere.jsonl", "set_embedder": "none"}, "nowhere.jsonl"),
    ],
)
def test_a_wrong_argument_is_one_message_before_the_first_request(
    codis: Path, iibench: Path, task: str, words: dict[str, Any], message: str
) -> None:
    with pytest.raises(PrerequisiteError) as refused:
        evaluate(task, **words)
    assert re.search(message, str(refused.value.message))
    assert not Pure.seen


@pytest.mark.slow
def test_on_the_command_line_there_is_no_traceback(tmp_path: Path) -> None:
    words = ["eval", "sightline/codis", "--model", "mockllm/model", "-T", "data=nowhere"]
    code = "import sys; from inspect_ai._cli.main import main; main()"
    done = subprocess.run([sys.executable, "-c", code, *words], capture_output=True, text=True, cwd=tmp_path)
    said = done.stdout + done.stderr
    assert done.returncode != 0
    assert "nowhere" in said
    assert "Traceback" not in said


@pytest.mark.slow
def test_a_log_of_inspect_is_a_file_of_answers(codis: Path, tmp_path: Path) -> None:
    log = evaluate("codis", data=codis, epochs=2)
    files = [tmp_path / "log.eval", tmp_path / "log.json"]
    for file in files:
        write_eval_log(log, file)
    answers = answers_of(log, tmp_path / "answers.jsonl")
    store = tmp_path / "s.db"
    by_file = [sightline.score("codis", file, data=codis, store=store) for file in (answers, *files)]
    assert by_file[0].metrics == by_file[1].metrics == by_file[2].metrics
    with opened_store("", files, [codis], AnswerTask("codis")) as opened:
        assert [run.model for run in list_runs(opened)] == ["pure/m", "pure/m"]
