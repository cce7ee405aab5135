"""Which samples a limit selects, and the positions that order probes."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sightline.plan.plan import select_samples
from sightline.plan.stored_probe import probe_position, sample_index
from sightline.types import Sample

SAMPLES = [Sample(f"s{n}", "?") for n in range(50)]


@given(st.integers(1, 60), st.integers(0, 5))
def test_a_limit_takes_whole_samples_in_their_order(limit: int, seed: int) -> None:
    chosen = select_samples(SAMPLES, limit, True, seed)
    assert len(chosen) == min(limit, 50)
    assert [sample.id for sample in chosen] == [s.id for s in SAMPLES if s in chosen]


def test_a_shuffled_limit_is_seeded_and_a_plain_one_takes_the_first() -> None:
    assert select_samples(SAMPLES, 5, False, 0) == SAMPLES[:5]
    assert select_samples(SAMPLES, 5, True, 1) == select_samples(SAMPLES, 5, True, 1)
    assert select_samples(SAMPLES, 5, True, 1) != select_samples(SAMPLES, 5, True, 2)


@given(st.integers(0, 1000), st.integers(0, 1000), st.integers(0, 100), st.integers(0, 100))
def test_positions_order_by_sample_then_by_probe(a: int, b: int, m: int, n: int) -> None:
    assert (probe_position(a, m) < probe_position(b, n)) == ((a, m) < (b, n))
    assert sample_index(probe_position(a, m)) == a
