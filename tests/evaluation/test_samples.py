"""Which samples an evaluation takes, and that reading them again gives the same ones."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from sightline.benchmarks.base import Benchmark
from sightline.errors import UserError
from sightline.evaluation import plan as module
from sightline.evaluation.plan import Samples, SampleSelection
from sightline.types import Metric, Probe, Sample

ALL = [Sample(f"s{n}", "?") for n in range(50)]


class Streamed(Benchmark):
    """A benchmark whose samples are read when they are needed."""

    name = "streamed"

    def __init__(self, samples: Sequence[Sample]) -> None:
        self.content = samples

    def samples(self, folder: Path | None, split: str, options: Mapping[str, Any]) -> Iterable[Sample]:
        return iter(self.content)

    def probes(self, sample: Sample, options: Mapping[str, Any]) -> Iterator[Probe]:
        return iter(())

    def metrics(self, options: Mapping[str, Any]) -> Sequence[Metric]:
        return ()


EVERY = SampleSelection()


def samples_of(
    benchmark: Benchmark, selection: SampleSelection = EVERY, visited: list[Sample] | None = None
) -> Samples:
    seen: list[Sample] = [] if visited is None else visited
    samples = Samples(benchmark, partial(benchmark.samples, None, "test", {}), selection)
    samples.read_all(seen.append)
    return samples


@pytest.fixture(params=[10, 4096])
def _held(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> None:
    """Samples that are read again at each pass, and samples that are held."""
    monkeypatch.setattr(module, "HELD", request.param)


@pytest.mark.usefixtures("_held")
@pytest.mark.parametrize("shuffle", [False, True])
def test_every_pass_gives_the_selected_samples_in_their_order(shuffle: bool) -> None:
    for limit in (None, 1, 7, 50, 60):
        visited: list[Sample] = []
        samples = samples_of(Streamed(ALL), SampleSelection(limit, shuffle, seed=3), visited)
        chosen = list(samples)
        assert len(chosen) == min(limit or 50, 50)
        assert [one for one in ALL if one in chosen] == chosen == list(samples) == visited


def test_a_shuffled_limit_is_seeded_and_a_plain_one_takes_the_first() -> None:
    def take(*selection: Any) -> list[Sample]:
        return list(samples_of(Streamed(ALL), SampleSelection(*selection)))

    assert take(5) == ALL[:5]
    assert take(5, True, 1) == take(5, True, 1)
    assert take(5, True, 1) != take(5, True, 2)


@pytest.mark.usefixtures("_held")
def test_ids_select_samples_in_the_order_of_the_data_and_an_absent_one_is_named() -> None:
    comma = replace(ALL[0], id="a,b")
    visited: list[Sample] = []
    asked = SampleSelection(ids=(f"{ALL[9].id},{ALL[3].id}", "a,b"))
    samples = samples_of(Streamed([*ALL, comma]), asked, visited)
    assert list(samples) == visited == [ALL[3], ALL[9], comma] == list(samples)
    with pytest.raises(UserError, match=r"no such sample \(found 'x, y'"):
        samples_of(Streamed(ALL), SampleSelection(ids=(f"x,{ALL[3].id}", "y")))


@pytest.mark.usefixtures("_held")
@given(st.integers(0, 49), st.integers(0, 49))
def test_two_samples_with_one_id_are_refused_wherever_they_are(first: int, second: int) -> None:
    content = list(ALL)
    content[first] = content[second]
    if first == second:
        assert len(list(samples_of(Streamed(content)))) == 50
    else:
        with pytest.raises(UserError, match=f"the same id.*{ALL[second].id}|{ALL[second].id}.*the same id"):
            samples_of(Streamed(content), SampleSelection(limit=1))


@pytest.mark.usefixtures("_held")
def test_different_ids_with_one_hash_are_different_samples(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "hash", len, raising=False)
    assert list(samples_of(Streamed(ALL))) == ALL


def test_data_that_change_between_two_passes_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "HELD", 10)
    benchmark = Streamed(ALL)
    samples = samples_of(benchmark)
    others = (Sample("other", "?"), Sample("s20", "another question"), Sample("s20", "?", references=("no",)))
    for changed in (ALL[:-1], *([*ALL[:20], other, *ALL[21:]] for other in others)):
        benchmark.content = changed
        with pytest.raises(UserError, match="the data changed"):
            list(samples)
