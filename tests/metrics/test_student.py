"""Quantiles of Student's t distribution against scipy, and against those that have a formula."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from scipy.special import stdtrit
from scipy.stats import norm

from sightline.metrics.statistics import two_sided_quantile

LEVELS = st.sampled_from([0.8, 0.9, 0.95, 0.99])
FREEDOM = st.floats(1, 1e9) | st.just(math.inf)


@given(st.lists(FREEDOM, min_size=1, max_size=9), LEVELS)
@example([1.0, 1.0401, 1.98, 149.9, 150.1], 0.99)
def test_quantiles_are_those_of_scipy(freedom: list[float], level: float) -> None:
    found = two_sided_quantile(np.array(freedom), level)
    assert found == pytest.approx(stdtrit(np.array(freedom), (1 + level) / 2), rel=1e-12)


@pytest.mark.parametrize("level", [0.5, 0.8, 0.9, 0.95, 0.99])
def test_the_quantiles_with_one_and_with_two_degrees_and_of_the_normal_distribution_have_a_formula(
    level: float,
) -> None:
    one, two = math.tan(math.pi * level / 2), level * math.sqrt(2 / (1 - level**2))
    formulas = [one, two, norm.ppf((1 + level) / 2)]
    assert two_sided_quantile(np.array([1, 2, np.inf]), level) == pytest.approx(formulas, rel=1e-12)


@pytest.mark.filterwarnings("error")
@pytest.mark.parametrize("undefined", [math.nan, 0.0, -1.0])
def test_undefined_degrees_have_an_undefined_quantile_and_change_no_other(undefined: float) -> None:
    both = two_sided_quantile(np.array([undefined, 3.0]))
    assert np.isnan(both[0])
    assert both[1] == pytest.approx(3.182446305284263, rel=1e-12)


@pytest.mark.parametrize("shape", [(), (0,), (2, 3)])
def test_the_quantiles_have_the_shape_of_the_degrees(shape: tuple[int, ...]) -> None:
    assert two_sided_quantile(np.full(shape, 4.0)).shape == shape
