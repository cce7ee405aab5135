"""Does one unit of the study in a worker process, and returns its result."""

from __future__ import annotations

import time
from pathlib import Path
from typing import IO, cast

import msgspec
import torch
from msgspec import Struct

from sightline.adapter.examples import split
from sightline.adapter.trainer import Recipe, TrainingStep
from sightline.formats.files import AtomicFile
from training.adapter.design import (
    KINDS,
    PAPER_ARM,
    PAPER_CURVE,
    PAPER_RATE,
    ArmUnit,
    Loss,
    PaperUnit,
    RateUnit,
    Sizes,
    Unit,
)
from training.adapter.result_files import CurvePoint, PaperResult, RateResult, UnitResult
from training.adapter.scenes import Scenes
from training.adapter.workbench import Workbench, run_steps

HELD_OUT = 0.1
"""The share of the groups that validate the learning rates."""


class Worker:
    """A process of the study, with one thread."""

    def __init__(self, work: Path, sizes: Sizes) -> None:
        """Load the model.

        Args:
            work: The folder of the data and of checkpoints.
            sizes: The sizes of the study.
        """
        torch.set_num_threads(1)
        self._work, self._sizes = work, sizes
        self._scenes = Scenes(work, sizes)
        self._bench = Workbench(sizes.model, self._scenes)

    def do(self, unit: Unit) -> Struct:
        """Do a unit.

        Args:
            unit: The unit.

        Returns:
            Its result.
        """
        if isinstance(unit, ArmUnit):
            return self._arm(unit)
        if isinstance(unit, RateUnit):
            return self._rate(unit)
        if isinstance(unit, PaperUnit):
            return self._paper(unit)
        tested = self._bench.test(None, None)
        return UnitResult(tasks=tested.tasks, tokens=tested.tokens, test_seconds=tested.seconds)

    def _arm(self, unit: ArmUnit) -> UnitResult:
        arm, kind = unit.arm, KINDS[unit.arm.kind]
        adapted = self._bench.attach(kind, unit.seed)
        recipe = self._recipe(arm.loss, unit.rate, unit.seed, self._sizes.steps)
        trainer = self._bench.trainer(adapted, self._scenes.training(arm.data), recipe)
        began = time.process_time()
        run_steps(trainer)
        seconds = time.process_time() - began
        parameters = sum(weight.numel() for weight in adapted.weights.values())
        tested = self._bench.test(adapted, kind)
        return UnitResult(
            tasks=tested.tasks,
            kind=arm.kind,
            loss=arm.loss,
            data=arm.data,
            seed=unit.seed,
            rate=unit.rate,
            steps=trainer.done,
            parameters=parameters,
            training_seconds=round(seconds, 1),
            test_seconds=tested.seconds,
            tokens=tested.tokens,
        )

    def _rate(self, unit: RateUnit) -> RateResult:
        training, held_out = split(self._scenes.training("parted"), HELD_OUT, unit.seed)
        adapted = self._bench.attach(KINDS[unit.kind], unit.seed)
        recipe = self._recipe(unit.loss, unit.rate, unit.seed, self._sizes.steps)
        began = time.process_time()
        finished = run_steps(self._bench.trainer(adapted, training, recipe))
        held = self._bench.held_out(adapted, held_out) if finished else None
        seconds = round(time.process_time() - began, 1)
        return RateResult(unit.kind, unit.loss, unit.rate, unit.seed, held, seconds)

    def _paper(self, unit: PaperUnit) -> PaperResult:
        """Train with the paper's rate; a checkpoint at each validation lets a later process continue."""
        training, held_out = split(self._scenes.training("parted"), HELD_OUT, unit.seed)
        kind = KINDS[PAPER_ARM.kind]
        adapted = self._bench.attach(kind, unit.seed)
        recipe = self._recipe(PAPER_ARM.loss, PAPER_RATE, unit.seed, self._sizes.paper_steps)
        trainer = self._bench.trainer(adapted, training, recipe)
        checkpoint = self._work / f"paper-rate-{self._sizes.groups}-{self._sizes.batch}-{recipe.steps}.pt"
        if checkpoint.exists():
            content = torch.load(checkpoint, weights_only=True)
            trainer.restore(content["state"])
            curve = msgspec.convert(content["curve"], list[CurvePoint])
        else:
            curve = [CurvePoint(0, self._bench.held_out(None, held_out))]

        def after_step(step: TrainingStep) -> None:
            if step.number % PAPER_CURVE and step.number != recipe.steps:
                return
            curve.append(CurvePoint(step.number, self._bench.held_out(adapted, held_out)))
            with AtomicFile(checkpoint) as file:
                content = {"state": trainer.state(), "curve": msgspec.to_builtins(curve)}
                torch.save(content, cast(IO[bytes], file))

        began = time.process_time()
        run_steps(trainer, after_step)
        seconds = time.process_time() - began
        tested = self._bench.test(adapted, kind)
        return PaperResult(
            curve,
            UnitResult(
                tasks=tested.tasks,
                kind=PAPER_ARM.kind,
                loss=PAPER_ARM.loss,
                seed=unit.seed,
                rate=PAPER_RATE,
                steps=trainer.done,
                parameters=sum(weight.numel() for weight in adapted.weights.values()),
                training_seconds=round(seconds, 1),
                test_seconds=tested.seconds,
                tokens=tested.tokens,
            ),
        )

    def _recipe(self, loss: Loss, rate: float, seed: int, steps: int) -> Recipe:
        return Recipe(steps=steps, batch=self._sizes.batch, rate=rate, loss=loss, seed=seed)
