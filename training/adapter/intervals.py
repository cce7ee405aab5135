"""Confidence intervals that cover both the seeds of the training and the groups of the test.

Every seed answers every group: the design is crossed. The model of the values is

    d[seed, group] = mean + a[seed] + b[group] + e[seed, group]

with independent random effects (two-way random effects).
With mean squares A (seeds), B (groups) and E (rest), the variance of the mean over S seeds and G groups is
estimated by (A + B - E) / (S G), but by no less than A / (S G) or B / (S G). Satterthwaite's formula gives
the degrees of freedom of Student's t: near 4 with five seeds that differ much, near G - 1 if they do not
differ. The simulation in tests/training/test_intervals.py shows the coverage with known truth.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from sightline.metrics.statistics import two_sided_quantile
from training.adapter.result_files import Floats

LEVEL = 0.95


class Estimate(Struct, frozen=True):
    """A mean with its 95 % confidence interval.

    Attributes:
        mean: The mean.
        low, high: The bounds.
        error: The standard error; 0 if nothing varies.
        freedom: The degrees of freedom of the standard error.
        seeds: The standard deviation between the means of the seeds; 0 for one seed.
    """

    mean: float
    low: float
    high: float
    error: float
    freedom: float
    seeds: float

    def p_value(self, null: float = 0.0) -> float:
        """The two-sided p-value of the t test of a mean.

        Args:
            null: The mean under the null hypothesis.

        Returns:
            The p-value; 1 if nothing varies and the mean is `null`, 0 if nothing varies and it is not.
        """
        from scipy.special import stdtr

        if not self.error:
            return float(self.mean == null)
        return float(2 * stdtr(self.freedom, -abs(self.mean - null) / self.error))

    def p_above(self, null: float) -> float:
        """The one-sided p-value of the hypothesis that the mean is at most `null`.

        Args:
            null: The bound.

        Returns:
            The p-value.
        """
        p = self.p_value(null) / 2
        return p if self.mean > null else 1 - p


def estimate(values: Floats) -> Estimate:
    """Estimate a mean over seeds and groups.

    Args:
        values: The values, shape (seeds, groups), at least two groups. With one seed, the interval covers the
            groups only.

    Returns:
        The estimate.
    """
    seeds, groups = values.shape
    mean = float(values.mean())
    of_seeds, of_groups = values.mean(axis=1), values.mean(axis=0)
    between_groups = seeds * float(of_groups.var(ddof=1))
    if seeds == 1:
        variance, freedom, spread = between_groups / groups, groups - 1.0, 0.0
    else:
        between_seeds = groups * float(of_seeds.var(ddof=1))
        rest = values - of_seeds[:, None] - of_groups[None] + mean
        within = float((rest**2).sum()) / ((seeds - 1) * (groups - 1))
        parts = [
            (between_seeds, seeds - 1),
            (between_groups, groups - 1),
            (-within, (seeds - 1) * (groups - 1)),
        ]
        combined = sum(square for square, _ in parts)
        floor = max(parts[:2])
        if combined < floor[0]:
            combined, parts = floor[0], [floor]
        squares = sum(square**2 / freedom for square, freedom in parts)
        freedom = combined**2 / squares if squares else math.inf
        freedom = min(max(freedom, seeds - 1.0), groups - 1.0)
        variance, spread = combined / (seeds * groups), float(of_seeds.std(ddof=1))
    error = math.sqrt(max(variance, 0.0))
    reach = float(two_sided_quantile(np.array([freedom]), LEVEL)[0]) * error
    return Estimate(mean, mean - reach, mean + reach, error, freedom, spread)


def stacked(values: Sequence[Floats]) -> Floats:
    """The values of seeds, shape (groups,) each, as one array (seeds, groups)."""
    return np.stack(values)
