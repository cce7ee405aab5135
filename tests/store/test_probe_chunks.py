"""A chunk gives back its probes byte for byte, and runs whose keys alone differ have the same definitions."""

from __future__ import annotations

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.evaluation.plan import StoredProbe
from sightline.store.answers import key_of
from sightline.store.runs import as_chunk, probes_of

_KEYS = st.binary().map(key_of)
_LABELS = st.dictionaries(st.text() | st.just("key"), st.text() | _KEYS)
_PROBES = st.builds(StoredProbe, st.text(), st.text(), st.integers(0), _KEYS, st.text(), st.text(), _LABELS)
_WITH_PARTNERS = st.builds(
    lambda probe, partners: msgspec.structs.replace(probe, partners={"other": tuple(partners)}),
    _PROBES,
    st.lists(_PROBES, max_size=2),
)


@pytest.mark.slow
@given(st.dictionaries(st.integers(0, 2**62), _WITH_PARTNERS, min_size=1))
def test_probes_come_back_as_they_were_in_the_order_of_their_positions(
    probes: dict[int, StoredProbe],
) -> None:
    numbered = [(position, msgspec.json.encode(probe)) for position, probe in probes.items()]
    assert probes_of(as_chunk(numbered)) == sorted(numbered)


def test_the_definitions_do_not_hold_the_keys() -> None:
    def chunk(name: bytes) -> tuple[int, bytes, bytes]:
        probe = StoredProbe("s", "v", 0, key_of(name), "c", "q")
        return as_chunk([(7, msgspec.json.encode(probe)), (9, msgspec.json.encode(probe))])

    first, second = chunk(b"a"), chunk(b"b")
    assert first[:2] == second[:2]
    assert first[2] == bytes.fromhex(key_of(b"a")) * 2
