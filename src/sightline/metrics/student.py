"""Quantiles of Student's t distribution. To import those of scipy takes longer than to judge a small run."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

_MOST_FREEDOM = 1e18
"""From here on, the quantiles are those of the normal distribution in all digits."""
_MOST_STEPS = 50
_PRECISE = 1e-10
"""The relative size of a step after which there is none: each step doubles the number of exact digits."""
_SHIFT = np.arange(20.0)


def two_sided_quantile(freedom: Floats, level: float = 0.95) -> Floats:
    """The quantile of Student's t distribution that bounds a two-sided interval.

    With t = sqrt(freedom) sinh(s), the density of s is 2 r sech(s)^freedom / sqrt(pi) for s above 0, where r
    is Gamma((freedom + 1) / 2) / Gamma(freedom / 2). Its integral is found by Gauss-Legendre quadrature, and
    its bound by Newton's method, which approaches it from below as the density decreases.

    Args:
        freedom: The degrees of freedom; infinite for the normal distribution, 0 or NaN if undefined.
        level: The confidence level, 0-1.

    Returns:
        The quantiles, of the shape of `freedom`; 12 digits are exact from 1 degree of freedom on. NaN where
        `freedom` is undefined.

    >>> two_sided_quantile(np.array([1, 30, np.inf])).round(3).tolist()
    [12.706, 2.042, 1.96]
    """
    values = np.asarray(freedom, dtype=np.float64)
    return _quantiles(values.tobytes(), level).reshape(values.shape)


@lru_cache(maxsize=64)
def _quantiles(freedom: bytes, level: float) -> Floats:
    """The quantiles of the values in these bytes; each kind of interval asks for those of the same values."""
    values = np.frombuffer(freedom)
    defined = np.where(values > 0, np.minimum(values, _MOST_FREEDOM), np.nan)
    distinct, places = np.unique(defined, return_inverse=True)
    total = level * math.sqrt(math.pi) / (2 * _gamma_ratio(distinct / 2))
    bounds = np.zeros(len(distinct))
    for _ in range(_MOST_STEPS):
        integrals = bounds * (_density(bounds[:, None] * _NODES, distinct[:, None]) @ _WEIGHTS)
        steps = (total - integrals) / _density(bounds, distinct)
        bounds += steps
        if not (steps > _PRECISE * bounds).any():
            break
    quantiles: Floats = (np.sqrt(distinct) * np.sinh(bounds))[places]
    quantiles.flags.writeable = False
    return quantiles


def _density(bounds: Floats, freedom: Floats) -> Floats:
    """sech(bounds) ** freedom, exact for small bounds too."""
    density: Floats = np.exp(-freedom * np.log1p(2 * np.sinh(bounds / 2) ** 2))
    return density


def _gamma_ratio(x: Floats) -> Floats:
    """Gamma(x + 1/2) / Gamma(x): the asymptotic series of the ratio (NIST DLMF 5.11.14) at a larger x."""
    higher = x + len(_SHIFT) - 0.25
    square = higher**-2
    series = 1 + square * (1 / 64 + square * (-19 / 8192 + square * (631 / 524288 - square * 174317 / 2**27)))
    at = x[:, None] + _SHIFT
    ratio: Floats = np.sqrt(higher) * series * np.prod(at / (at + 0.5), axis=1)
    return ratio


def _gauss_legendre(points: int) -> tuple[Floats, Floats]:
    """Nodes and weights of the quadrature on 0-1, by eigenvalues (Golub and Welsch 1969)."""
    k = np.arange(1.0, points)
    beside = k / np.sqrt(4 * k**2 - 1)
    values, vectors = np.linalg.eigh(np.diag(beside, -1))
    return (values + 1) / 2, vectors[0] ** 2


_NODES, _WEIGHTS = _gauss_legendre(32)
