"""The results of a complete study as arrays: differences of arms from the model alone, by seed and group."""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from training.adapter.design import ARMS, LEFT_OUT, Arm, arm_file, first_units
from training.adapter.result_files import Design, Floats, ResultFiles, UnitResult, decode


def missing_units(results: ResultFiles, design: Design) -> int:
    """Count the units of a study that lack a result.

    Args:
        results: The results so far.
        design: Their design.

    Returns:
        Their number.
    """
    names = [unit.name for unit in first_units()]
    names += [arm_file(arm, seed) for arm in ARMS for seed in range(design.sizes.seeds)]
    return sum(not results.has(name) for name in names)


class Measured:
    """The values of all units."""

    def __init__(self, results: ResultFiles, design: Design) -> None:
        """Read the results.

        Args:
            results: The results of a complete study.
            design: Their design.
        """
        self.results, self.design = results, design
        self.base = results.unit("base")
        self.paper = results.paper()
        seeds = range(design.sizes.seeds)
        self.arms: Mapping[Arm, list[UnitResult]] = {
            arm: [results.unit(arm_file(arm, seed)) for seed in seeds] for arm in ARMS
        }

    def base_mean(self, test: str, metric: str) -> float:
        """A metric of the model without an adapter, in percent."""
        return 100 * float(self._values(self.base, test, metric).mean())

    def differences(self, arm: Arm, test: str, metric: str) -> Floats:
        """A metric with the adapters of an arm minus that without, in points, shape (seeds, groups)."""
        base = self._values(self.base, test, metric)
        return 100 * np.stack([self._values(unit, test, metric) - base for unit in self.arms[arm]])

    def paper_differences(self, test: str, metric: str) -> Floats:
        """The same for the paper's learning rate, shape (1, groups)."""
        base = self._values(self.base, test, metric)
        return 100 * (self._values(self.paper.test, test, metric) - base)[None]

    def between(self, first: Arm, second: Arm, test: str, metric: str) -> Floats:
        """A metric of the second arm minus that of the first, seed by seed, in points."""
        return self.differences(second, test, metric) - self.differences(first, test, metric)

    def label_base_mean(self, task: str, metric: str) -> float:
        """A metric of the answers with the left-out label without an adapter, in percent."""
        return 100 * float(self._label_values(self.base, task, metric).mean())

    def label_differences(self, arm: Arm, task: str, metric: str) -> Floats:
        """The differences of the answers with the left-out label, over the groups that have some."""
        base = self._label_values(self.base, task, metric)
        return 100 * np.stack([self._label_values(unit, task, metric) - base for unit in self.arms[arm]])

    @staticmethod
    def label(task: str) -> str:
        """The label that is left out of the training of a task, such as `style=mosaic`."""
        return "=".join(LEFT_OUT[task])

    def _values(self, unit: UnitResult, test: str, metric: str) -> Floats:
        return unit.tasks[test].values(metric, self.design.shapes[test.partition(",")[0]].size)

    def _label_values(self, unit: UnitResult, task: str, metric: str) -> Floats:
        shape = self.design.shapes[task]
        answers = decode(shape.labelled)
        counts = decode(getattr(unit.tasks[task], f"label_{metric}"))
        most = answers * (1 if metric == "acc" else shape.size - 1)
        found: Floats = counts[answers > 0] / most[answers > 0]
        return found
