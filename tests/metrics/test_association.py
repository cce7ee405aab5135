"""Statistics of judges against scikit-learn, scipy and krippendorff: ties, repeats, degenerate data."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from sightline.metrics.association import (
    AGREEMENT,
    ALPHA,
    ALPHA_OF_TWO,
    KAPPA,
    NOMINAL_ALPHA,
    ROC_AUC,
    SPEARMAN,
    Statistic,
    roc_curve,
    value_of,
)
from sightline.metrics.statistics import Floats

pytest.importorskip("sklearn", reason="needs the extra 'dev'")
pytest.importorskip("krippendorff", reason="needs the extra 'dev'")

Pairs = list[tuple[float, int]]

SCORES = st.one_of(
    st.integers(0, 3).map(float), st.floats(-1e6, 1e6, allow_nan=False), st.sampled_from([0.0, 0.5, 1.0])
)
SCORED = st.lists(st.tuples(SCORES, st.integers(0, 1)), max_size=40)
READ = st.lists(st.tuples(st.integers(0, 1).map(float), st.integers(0, 1)), max_size=40)


def columns(pairs: Pairs) -> tuple[Floats, Floats]:
    """Two columns of shape (n,)."""
    table = np.array(pairs, dtype=np.float64).reshape(-1, 2)
    return table[:, 0], table[:, 1]


def quietly(of: Callable[..., Any], *series: Any) -> float | None:
    """What a library gives, None where it gives no number or refuses the data."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        try:
            value = float(of(*series))
        except ValueError:
            return None
    return None if np.isnan(value) else value


def sklearn_auc(scores: Floats, truth: Floats) -> float:
    from sklearn.metrics import roc_auc_score

    return float(roc_auc_score(truth, scores))


def scipy_spearman(first: Floats, second: Floats) -> float:
    from scipy.stats import spearmanr

    return float(spearmanr(first, second).statistic)


def sklearn_kappa(first: Floats, second: Floats) -> float:
    from sklearn.metrics import cohen_kappa_score

    return float(cohen_kappa_score(first, second))


def sklearn_agreement(first: Floats, second: Floats) -> float:
    from sklearn.metrics import accuracy_score

    return float(accuracy_score(first, second))


def library_alpha(first: Floats, second: Floats) -> float:
    import krippendorff

    return float(krippendorff.alpha(np.array([first, second]), level_of_measurement="nominal"))


OF_TWO = [
    pytest.param(ROC_AUC, sklearn_auc, id="roc_auc"),
    pytest.param(SPEARMAN, scipy_spearman, id="spearman"),
]
OF_READINGS = [
    pytest.param(AGREEMENT, sklearn_agreement, id="agreement"),
    pytest.param(KAPPA, sklearn_kappa, id="kappa"),
    pytest.param(ALPHA_OF_TWO, library_alpha, id="alpha"),
]


def check(statistic: Statistic, library: Callable[..., float], pairs: Pairs) -> None:
    """Ours is the library's to 1e-9, and None where that knows none."""
    first, second = columns(pairs)
    ours = value_of(statistic, first, second)
    theirs = quietly(library, first, second) if pairs else None
    if theirs is None:
        assert ours is None
    else:
        assert ours == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize(("statistic", "library"), OF_TWO)
@given(pairs=SCORED)
@example(pairs=[])
@example(pairs=[(1.0, 1)])
@example(pairs=[(1.0, 1), (2.0, 1)])
@example(pairs=[(1.0, 1), (1.0, 0)])
@example(pairs=[(0.0, 0), (1.0, 1)])
def test_scores_against_verdicts_are_those_of_the_library(
    statistic: Statistic, library: Callable[..., float], pairs: Pairs
) -> None:
    check(statistic, library, pairs)


@pytest.mark.parametrize(("statistic", "library"), OF_READINGS)
@given(pairs=READ)
@example(pairs=[])
@example(pairs=[(1.0, 0)])
@example(pairs=[(1.0, 1), (1.0, 1)])
@example(pairs=[(1.0, 0), (1.0, 1)])
@example(pairs=[(1.0, 0), (0.0, 1)])
def test_the_association_of_two_raters_equals_the_library(
    statistic: Statistic, library: Callable[..., float], pairs: Pairs
) -> None:
    check(statistic, library, pairs)


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0, np.nan]), min_size=4, max_size=4), max_size=20))
@example([[0.0, 1.0, np.nan, np.nan], [1.0, np.nan, np.nan, np.nan]])
@example([[1.0, 1.0, np.nan, np.nan]])
def test_alpha_of_several_raters_with_gaps_is_that_of_the_library(ratings: list[list[float]]) -> None:
    import krippendorff

    votes = np.array(ratings).reshape(-1, 4)
    right, wrong = (votes == 1).sum(axis=1), (votes == 0).sum(axis=1)
    pairable = right + wrong >= 2
    # The library takes single ratings for part of its domain; they pair with nothing.
    domain = len({*votes[pairable][~np.isnan(votes[pairable])].tolist()})
    ours = value_of(ALPHA, right.astype(np.float64), wrong.astype(np.float64))
    if domain < 2:
        assert ours is None
    else:
        theirs = krippendorff.alpha(votes[pairable].T, level_of_measurement="nominal")
        assert ours == pytest.approx(theirs, abs=1e-9)


@given(st.lists(st.lists(st.sampled_from([0.0, 1.0, 2.0, 3.0, np.nan]), min_size=4, max_size=4), max_size=20))
@example([[0.0, 1.0, 2.0, np.nan], [1.0, 1.0, np.nan, np.nan]])
def test_alpha_of_several_categories_with_gaps_is_that_of_the_library(ratings: list[list[float]]) -> None:
    import krippendorff

    votes = np.array(ratings).reshape(-1, 4)
    counts = np.stack([(votes == kind).sum(axis=1) for kind in range(4)], axis=1).astype(np.float64)
    pairable = counts.sum(axis=1) >= 2
    ours = value_of(NOMINAL_ALPHA, counts, counts.sum(axis=1))
    if (counts[pairable].sum(axis=0) > 0).sum() < 2:
        assert ours is None
    else:
        theirs = krippendorff.alpha(votes[pairable].T, level_of_measurement="nominal")
        assert ours == pytest.approx(theirs, abs=1e-9)


@pytest.mark.parametrize("statistic", [ROC_AUC, SPEARMAN, AGREEMENT, KAPPA, ALPHA_OF_TWO])
@given(data=st.data())
def test_a_weight_stands_for_so_many_copies(statistic: Statistic, data: st.DataObject) -> None:
    pairs = data.draw(READ.filter(bool) if statistic not in (ROC_AUC, SPEARMAN) else SCORED.filter(bool))
    first, second = columns(pairs)
    counts = data.draw(
        st.lists(st.integers(0, 3), min_size=len(pairs), max_size=len(pairs)).filter(lambda held: any(held))
    )
    weighed = statistic.of(first, second, np.array([counts, counts], dtype=np.float64))
    copied = value_of(statistic, np.repeat(first, counts), np.repeat(second, counts))
    assert weighed.shape == (2,)
    if copied is None:
        assert np.isnan(weighed).all()
    else:
        assert weighed == pytest.approx([copied, copied], abs=1e-9)


@given(st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9)), min_size=3, max_size=30))
def test_spearman_of_two_series_with_ties_is_scipys(points: list[tuple[int, int]]) -> None:
    first, second = np.array(points, dtype=np.float64).T
    found = value_of(SPEARMAN, first, second)
    if len(set(first)) == 1 or len(set(second)) == 1:
        assert found is None
    else:
        assert found == pytest.approx(scipy_spearman(first, second), abs=1e-9)


@given(st.lists(st.floats(allow_nan=False, allow_infinity=False), min_size=2, max_size=40, unique=True))
def test_spearman_reads_the_order_alone(series: list[float]) -> None:
    values = np.array(series)
    ranks = values.argsort().argsort().astype(np.float64)
    assert value_of(SPEARMAN, values, ranks) == 1
    assert value_of(SPEARMAN, values, -ranks) == -1


@given(SCORED.filter(bool))
def test_turning_scores_round_turns_the_area_round(pairs: Pairs) -> None:
    scores, truth = columns(pairs)
    area, turned = value_of(ROC_AUC, scores, truth), value_of(ROC_AUC, -scores, truth)
    if area is not None:
        assert turned == pytest.approx(1 - area, abs=1e-12)


def test_an_area_of_two_readings_is_the_mean_of_their_hits() -> None:
    """Of a judge who says right or wrong: half of what share of the right and of the wrong ones it knows."""
    verdicts = np.array([1, 1, 1, 0, 0, 0, 1, 0], dtype=np.float64)
    truth = np.array([1, 1, 1, 1, 0, 0, 0, 0], dtype=np.float64)
    assert value_of(ROC_AUC, verdicts, truth) == pytest.approx((3 / 4 + 3 / 4) / 2)


@given(SCORED)
def test_the_roc_curve_has_the_points_of_scikit_learn_and_the_area_of_roc_auc(pairs: Pairs) -> None:
    from sklearn.metrics import roc_curve as expected

    scores, truth = columns(pairs)
    curve = roc_curve(scores, truth)
    if len(set(truth)) < 2:
        assert curve == ()
        return
    wrong, right, _ = expected(truth, scores, drop_intermediate=False)
    assert set(curve) <= set(zip(wrong.tolist(), right.tolist(), strict=True))
    area = np.trapezoid(*np.array(curve).T[::-1])
    assert area == pytest.approx(value_of(ROC_AUC, scores, truth))
