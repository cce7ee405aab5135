"""The adapter study: its values are those of `sightline run`, it continues after a kill, its page follows."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pytest

from training.adapter.design import (
    ARMS,
    KINDS,
    Arm,
    ArmUnit,
    RateUnit,
    Sizes,
    Unit,
    arm_file,
    arm_units,
    rate_units,
)
from training.adapter.measured import Measured, missing_units
from training.adapter.result_files import (
    RESULTS,
    CurvePoint,
    Design,
    Held,
    PaperResult,
    RateResult,
    ResultFiles,
    TaskShape,
    TaskValues,
    UnitResult,
    encode,
)
from training.adapter.study import chosen_rates, main
from training.adapter.tables import PAGE, section, with_section

GROUPS, SEEDS = 30, 3
SIZES = {"rephrasing": 3, "restyling": 4, "context": 3}
TESTS = ("rephrasing", "restyling", "context", "restyling, one word")


def _values(generator: np.random.Generator, size: int, right: float) -> TaskValues:
    pairs = size * (size - 1) // 2
    return TaskValues(
        acc=encode(generator.binomial(size, right, GROUPS).tolist()),
        con=encode(generator.binomial(pairs, right, GROUPS).tolist()),
        agree=encode(generator.binomial(pairs, right, GROUPS).tolist()),
        s_c=encode((200 + generator.integers(500, 1000, GROUPS)).tolist(), 2),
        label_acc=encode(generator.binomial(1, right, GROUPS).tolist()),
        label_con=encode(generator.binomial(size - 1, right, GROUPS).tolist()),
    )


def _unit(generator: np.random.Generator, right: float = 0.5, **more: Any) -> UnitResult:
    tasks = {name: _values(generator, SIZES[name.partition(",")[0]], right) for name in TESTS}
    return UnitResult(tasks=tasks, tokens=dict.fromkeys(TESTS, 2.0), **more)


def _study(folder: Path) -> ResultFiles:
    """Complete results of invented values: only LoRA with ce has an effect."""
    generator = np.random.default_rng(3)
    results = ResultFiles(folder)
    sizes = Sizes(test=GROUPS, seeds=SEEDS)
    results.keep_design(Design(sizes, {task: TaskShape(size, "1" * GROUPS) for task, size in SIZES.items()}))
    for unit in rate_units():
        held = Held(1.0, 0.5, 0.4 + (unit.rate == 3e-3) / 10)
        results.write(unit.name, RateResult(unit.kind, unit.loss, unit.rate, unit.seed, held))
    results.write("base", _unit(generator))
    curve = [CurvePoint(0, Held(2, 0.5, 0.5)), CurvePoint(250, Held(1, 0.5, 0.5))]
    results.write("paper-rate", PaperResult(curve, _unit(generator, steps=250)))
    for arm_unit in arm_units(sizes, chosen_rates(results)):
        arm = arm_unit.arm
        right = 1.0 if arm == Arm("lora", "ce") else 0.5
        more = {"kind": arm.kind, "loss": arm.loss, "data": arm.data, "rate": arm_unit.rate}
        results.write(arm_unit.name, _unit(generator, right, **more, seed=arm_unit.seed, training_seconds=2))
    return results


def test_the_page_holds_the_tables_that_the_command_writes_from_the_results() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert with_section(page, section(ResultFiles(RESULTS))) == page


def test_the_results_in_the_repository_are_small() -> None:
    assert sum(file.stat().st_size for file in RESULTS.glob("*")) < 1_000_000


def test_the_tables_need_neither_the_model_nor_torch() -> None:
    code = "import sys, training.adapter.tables; sys.exit('torch' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], cwd=PAGE.parents[1], check=False).returncode == 0


def test_a_count_is_read_as_it_was_written(tmp_path: Path) -> None:
    measured = Measured(results := _study(tmp_path), _design(results))
    stored = results.unit(arm_file(Arm("lora", "ce"), 1)).tasks["context"]
    assert stored.values("acc", 3).tolist() == [1.0] * GROUPS
    base = results.unit("base").tasks["context"]
    expected = [100 * (1 - int(digit) / 3) for digit in base.acc]
    assert measured.differences(Arm("lora", "ce"), "context", "acc")[1].tolist() == pytest.approx(expected)
    assert 0.5 <= base.values("s_c", 3).min() <= base.values("s_c", 3).max() < 1


def _design(results: ResultFiles) -> Design:
    design = results.design()
    assert design is not None
    return design


def test_only_an_effect_is_bold_and_the_rate_with_the_best_mean_is_used(tmp_path: Path) -> None:
    results = _study(tmp_path)
    text = section(results)
    assert all(rate == 3e-3 for key, rate in chosen_rates(results).items() if key[0] != "prefix")
    head, rows = _first_table(text)
    column = head.index("`lora`")
    for row in rows[1:]:
        assert ("**" in row[column]) == (not row[0].endswith("s_c")), row
        assert not any("**" in text for text in row[2:column])
    assert all(title in text for title in ("yes", "not shown", "SD ", "**0.003**: 100.0, 100.0"))


def _first_table(text: str) -> tuple[list[str], list[list[str]]]:
    lines = [line for line in text.split("`--loss")[1].splitlines() if line.startswith("|")]
    cells = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines]
    return cells[0], cells[2:]


def test_without_all_results_the_page_has_no_table(tmp_path: Path) -> None:
    assert "No results are there yet." in section(ResultFiles(tmp_path / "none"))
    results = _study(tmp_path)
    (tmp_path / "base.json").unlink()
    assert section(results).startswith("The results are not complete yet")
    assert missing_units(results, _design(results)) == 1


def test_results_of_other_sizes_are_not_continued(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    _study(tmp_path)
    assert main(["--results", str(tmp_path)]) == 2
    assert "already holds results; expected --resume" in capsys.readouterr().err


needs_torch = pytest.mark.skipif(
    None in (find_spec("torch"), find_spec("transformers"), find_spec("peft")),
    reason="needs the extra 'adapter'",
)
TOY = ["--groups", "8", "--test", "3", "--steps", "2", "--batch", "2", "--seeds", "2", "--paper-steps", "2"]


@needs_torch
def test_after_a_stop_only_what_is_missing_is_done(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    generator = np.random.default_rng(0)
    done: list[str] = []

    class Stub:
        """Invents results, and is killed in the fifth and in the sixtieth unit."""

        def __init__(self, *_: object) -> None: ...

        def do(self, unit: Unit) -> msgspec.Struct:
            if len(done) in (4, 59) and (not done or done[-1] != "killed"):
                done.append("killed")
                raise KeyboardInterrupt
            done.append(unit.name)
            if isinstance(unit, RateUnit):
                return RateResult(unit.kind, unit.loss, unit.rate, unit.seed, Held(1, 0.5, 0.5))
            found = _unit(generator, rate=unit.rate if isinstance(unit, ArmUnit) else 0)
            return PaperResult([], found) if unit.name == "paper-rate" else found

    class NoScenes:
        """No data: the stub needs none."""

        def __init__(self, _: Path, sizes: Sizes) -> None:
            self.sizes = sizes

        def generate(self) -> None: ...

        def design(self) -> Design:
            return Design(self.sizes, {})

    monkeypatch.setattr("training.adapter.work.Worker", Stub)
    monkeypatch.setattr("training.adapter.scenes.Scenes", NoScenes)
    command = [*TOY, "--results", str(tmp_path / "r"), "--work", str(tmp_path / "w"), "--processes", "0"]
    for _ in range(2):
        with pytest.raises(KeyboardInterrupt):
            main([*command, "--resume"])
    assert main([*command, "--resume"]) == 0
    names = [name for name in done if name != "killed"]
    assert len(names) == len(set(names)) == 2 + sum(1 for _ in rate_units()) + 2 * len(ARMS)
    assert main([*command, "--resume"]) == 0
    assert len(done) == len(names) + 2


@needs_torch
@pytest.mark.slow
def test_the_values_of_a_test_are_those_of_run(tmp_path: Path) -> None:
    """An adapter is trained, tested and saved; `run` with it gives the same acc, con, s_c and agree."""
    import sightline
    from sightline.adapter.saved_adapter import AdapterMetadata, save_adapter
    from sightline.models.registry import ModelOptions, resolve
    from training.adapter.work import Worker

    sizes = Sizes(groups=8, test=3, steps=8, batch=2, seeds=2, paper_steps=2)
    from training.adapter.scenes import Scenes

    scenes = Scenes(tmp_path / "w", sizes)
    scenes.generate()
    worker = Worker(tmp_path / "w", sizes)
    bench = worker._bench
    identity = resolve("mini", ModelOptions())[0].identity
    for kind in ("bilstm-47", None):
        adapted = None if kind is None else bench.attach(KINDS[kind], 0)
        arguments: dict[str, Any] = {}
        if adapted is not None and kind is not None:
            # Weights far from zero, so that answers change.
            save_adapter(tmp_path / "a", AdapterMetadata(KINDS[kind], identity, 1), adapted.weights)
            arguments = {"adapter": str(tmp_path / "a")}
        tested = bench.test(adapted, None if kind is None else KINDS[kind])
        for task, size in SIZES.items():
            run = sightline.run(
                f"mmr3:{task}",
                model="mini",
                data=str(tmp_path / "w" / "test-3"),
                store=str(tmp_path / "s.db"),
                model_arg=arguments,
            )
            found = {(one.metric, one.subset): one.value for one in run.result.metrics}
            for metric in ("acc", "con", "s_c", "agree"):
                value = 100 * float(tested.tasks[task].values(metric, size).mean())
                assert value == pytest.approx(found[metric, "all"], abs=0.11), (task, metric)
