"""A sweep runs every combination in the order of the models, on one store and one budget, a folder each."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

import sightline
from sightline.errors import UserError
from sightline.evaluation.estimate import RunEstimate, add_estimates
from sightline.evaluation.result import Evaluation
from sightline.evaluation.run import run_evaluation
from sightline.evaluation.spec import Spec
from sightline.evaluation.sweep import Sweep, SweepPoint, estimate_sweep, plan_sweep, run_sweep
from training.scenes.build import generate_codis

COT = {"cot": (True, False)}


@pytest.fixture(scope="module")
def codis(tmp_path_factory: pytest.TempPathFactory) -> str:
    return str(generate_codis(tmp_path_factory.mktemp("drawn") / "codis", pairs=6))


def points(
    models: Sequence[str] = ("baseline/chance",),
    options: Mapping[str, Sequence[Any]] | None = None,
    sampling: Mapping[str, Sequence[Any]] | None = None,
    **base: Any,
) -> list[SweepPoint]:
    return plan_sweep([Spec(task="codis", **base)], models, options or {}, sampling or {})


def swept(planned: list[SweepPoint], out: Path | None = None, **more: Any) -> Sweep:
    return asyncio.run(run_sweep(planned, str(out) if out else None, **more))


def test_models_change_slowest_and_the_last_option_fastest() -> None:
    planned = points(("a/x", "b/y"), {"size": (224, 640)}, {"temperature": (0.2, 1)})
    assert [(p.spec.model, *p.values.values()) for p in planned] == [
        (model, size, temperature)
        for model in ("a/x", "b/y")
        for size in (224, 640)
        for temperature in (0.2, 1)
    ]
    assert planned[0].name == "x, size=224, temperature=0.2"
    assert (planned[0].spec.set, planned[0].spec.gen) == ({"size": 224}, {"temperature": 0.2})


def test_an_option_with_one_value_applies_to_all_points_and_is_not_varied() -> None:
    (only,) = points(options={"cot": (False,)}, sampling={"max_tokens": (9,)})
    assert (only.values, only.spec.set, only.spec.gen) == ({}, {"cot": False}, {"max_tokens": 9})


def test_a_sampling_option_with_the_name_of_a_benchmark_option_gets_a_prefix() -> None:
    planned = points(options={"seed": (1, 2)}, sampling={"seed": (3, 4)})
    assert [tuple(p.values.items()) for p in planned][1] == (("seed", 1), ("gen seed", 4))


@pytest.mark.parametrize(
    ("models", "options", "message"),
    [
        ((), {}, "--model has no value"),
        (("a/x", "a/x"), {}, '--model has the value "a/x" twice'),
        (("a/x",), {"cot": (True, True)}, "--set cot has the value true twice"),
        (("a/x",), {"cot": ()}, "--set cot has no value"),
    ],
)
def test_repeated_and_missing_values_are_refused(
    models: Sequence[str], options: Mapping[str, Sequence[Any]], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        points(models, options)


def test_several_tasks_run_model_by_model_each_with_its_folder_and_its_options() -> None:
    bases = [Spec(task=task, out="o", name="n", set={"cot": False}) for task in ("codis", "iibench:cot")]
    planned = plan_sweep(bases, ("a/x", "b/y"), {}, {})
    found = [(p.spec.model, p.spec.task, p.spec.out, p.spec.name, p.spec.set) for p in planned]
    assert found == [
        (model, task, f"o/{name}", f"n:{name}", {"cot": False})
        for model, task, name in (
            ("a/x", "codis", "x_codis"),
            ("a/x", "iibench:cot", "x_iibench-cot"),
            ("b/y", "codis", "y_codis"),
            ("b/y", "iibench:cot", "y_iibench-cot"),
        )
    ]
    with pytest.raises(UserError, match='the task has the value "codis" twice'):
        plan_sweep([bases[0], bases[0]], ("a/x",), {}, {})


def test_one_model_id_for_several_models_is_refused() -> None:
    with pytest.raises(UserError, match="--model-id"):
        points(("a/x", "b/y"), model_id="mine")


values = st.one_of(st.text(max_size=150), st.integers(), st.none(), st.booleans(), st.lists(st.text()))


@given(
    st.lists(st.text(min_size=1, max_size=60), min_size=1, max_size=4, unique=True),
    st.lists(values, min_size=1, max_size=4, unique_by=repr),
)
def test_folder_names_are_safe_and_distinct(models: list[str], chosen: list[Any]) -> None:
    planned = points(models, {"option": chosen}, out="some/where")
    folders = [Path(point.spec.out or "") for point in planned]
    assert {folder.parent for folder in folders} == {Path("some/where")}
    names = [folder.name for folder in folders]
    assert len({name.casefold() for name in names}) == len(planned)
    for name in names:
        assert 0 < len(name) <= 100
        assert set(name) <= set("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.=+-")
        assert name[0] not in ".-"


def test_a_folder_is_named_after_its_point() -> None:
    planned = points(("http://host:8000/v1#llava",), {"size": (224, 640)}, {"temperature": (0.2, 1)}, out="o")
    assert planned[0].spec.out == "o/llava_size=224_temperature=0.2"


def test_every_point_runs_once_and_a_repeated_sweep_sends_nothing(codis: str, tmp_path: Path) -> None:
    out = tmp_path / "out"
    planned = points(options=COT, data=codis, store=str(tmp_path / "s.db"), out=str(out))
    first = swept(planned, out)
    kept = (out / "sweep.json").read_bytes()
    assert [one.evaluation.counts.sent for one in first.points if one.evaluation] == [12, 12]
    assert [point.values for point in first.results] == [{"cot": True}, {"cot": False}]
    for one in json.loads(kept)["points"]:
        written = json.loads((out / one["folder"] / "metrics.json").read_text())
        assert written == {**one["result"], "files": written["files"]}
    again = swept(planned, out)
    assert [one.evaluation.counts.sent for one in again.points if one.evaluation] == [0, 0]
    assert (out / "sweep.json").read_bytes() == kept
    assert "cot=off" in (out / "sweep.md").read_text()


def test_points_reuse_the_answers_of_earlier_points(codis: str, tmp_path: Path) -> None:
    prompts = {"judge_prompt": ("paper", "released")}
    planned = points(options=prompts, data=codis, store=str(tmp_path / "s.db"))
    estimates = estimate_sweep(planned)
    assert [(one.to_ask, one.cached) for one in estimates] == [(12, 0), (0, 12)]
    assert add_estimates(estimates).to_ask == 12
    assert not (tmp_path / "s.db").exists()
    sweep = swept(planned)
    assert [one.evaluation.counts.sent for one in sweep.points if one.evaluation] == [12, 0]


def test_the_estimate_equals_the_number_of_requests_sent(codis: str, tmp_path: Path) -> None:
    planned = points(options=COT, data=codis, store=str(tmp_path / "s.db"))
    asked = add_estimates(estimate_sweep(planned)).to_ask
    assert sum(one.evaluation.counts.sent for one in swept(planned).points if one.evaluation) == asked == 24


def test_a_total_cost_needs_the_cost_of_every_point() -> None:
    def planned(cost: float | None) -> RunEstimate:
        return RunEstimate(
            model="m",
            requests=1,
            cached=0,
            to_ask=1,
            to_ask_at_most=1,
            checks=0,
            prompt_tokens=9,
            completion_tokens=None,
            completion_tokens_at_most=9,
            expected_cost=None,
            full_length_cost=cost,
            has_price=cost is not None,
            probes=1,
            broken_images=0,
            image_bytes=9,
        )

    assert add_estimates([planned(0.5), planned(0.5)]).full_length_cost == 1.0
    assert add_estimates([planned(0.5), planned(None)]).full_length_cost is None
    assert add_estimates([planned(0.5), planned(None)]).has_price is False


def test_a_budget_covers_all_points_and_stops_the_rest(codis: str, tmp_path: Path) -> None:
    options = {**COT, "instructions": (True, False)}
    base: dict[str, Any] = {"data": codis, "store": str(tmp_path / "s.db"), "out": str(tmp_path / "out")}
    sweep = swept(points(options=options, max_requests=20, **base), tmp_path / "out")
    assert [one.evaluation and one.evaluation.counts.sent for one in sweep.points] == [12, 8, None, None]
    assert sweep.exit_status == 4
    kept = json.loads((tmp_path / "out" / "sweep.json").read_text())["points"]
    assert [one["state"] for one in kept] == ["done", "stopped at the budget", "not reached", "not reached"]
    assert [one["exit_status"] for one in kept] == [0, 4, 4, 4]
    rest = swept(points(options=options, max_requests=28, **base), tmp_path / "out")
    assert rest.exit_status == 0
    assert [one.evaluation.counts.sent for one in rest.points if one.evaluation] == [0, 4, 12, 12]


def test_a_wrong_point_is_found_before_the_first_call(codis: str, tmp_path: Path) -> None:
    base: dict[str, Any] = {"data": codis, "store": str(tmp_path / "s.db"), "out": str(tmp_path / "out")}
    for planned in (
        points(options={"cot": (True, "perhaps")}, **base),
        points(("baseline/chance", "baseline/luck"), **base),
    ):
        with pytest.raises(UserError):
            swept(planned, tmp_path / "out")
    assert list(tmp_path.iterdir()) == []


def test_a_point_that_fails_at_the_start_does_not_stop_the_others(codis: str, tmp_path: Path) -> None:
    async def enters(spec: Spec, **options: Any) -> Evaluation:
        if spec.set["cot"]:
            raise UserError("no server there")
        return await run_evaluation(spec, **options)

    out = tmp_path / "out"
    planned = points(options=COT, data=codis, store=str(tmp_path / "s.db"), out=str(out))
    sweep = swept(planned, out, evaluate=enters)
    assert [(one.exit_status, one.error) for one in sweep.points] == [(2, "no server there"), (0, "")]
    assert sweep.exit_status == 2
    assert [one["state"] for one in json.loads((out / "sweep.json").read_text())["points"]] == [
        "no server there",
        "done",
    ]


def test_the_python_api_varies_options_whose_value_is_a_list(codis: str, tmp_path: Path) -> None:
    sweep = sightline.sweep(
        "codis",
        model="baseline/chance",
        data=codis,
        store=tmp_path / "s.db",
        set={"cot": [True, False], "instructions": False},
    )
    assert [one.values for one in sweep.results] == [{"cot": True}, {"cot": False}]
    assert all(one.result.options["instructions"] is False for one in sweep.results)
    pytest.importorskip("pandas")
    frame = sweep.frame()
    assert set(frame[frame["metric"] == "acc_p"]["cot"]) == {True, False}
