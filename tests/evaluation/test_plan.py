"""The positions that order probes, and which samples are neighbours."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sightline.evaluation.plan import probe_position, sample_index


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 100), st.integers(0, 100))
def test_positions_order_by_sample_then_by_probe(a: int, b: int, m: int, n: int) -> None:
    assert (probe_position(a, m) < probe_position(b, n)) == ((a, m) < (b, n))
    assert sample_index(probe_position(a, m)) == a
