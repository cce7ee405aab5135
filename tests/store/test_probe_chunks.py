"""A chunk gives back its probes byte for byte, and is refused where it is damaged."""

from __future__ import annotations

from contextlib import suppress

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.evaluation.plan import StoredProbe
from sightline.store.answers import key_of
from sightline.store.runs import decode_probes, encode_probes

_KEYS = st.binary().map(key_of)
_LABELS = st.dictionaries(st.text() | st.just("key"), st.text() | _KEYS)
_PROBES = st.builds(StoredProbe, st.text(), st.text(), st.integers(0), _KEYS, st.text(), st.text(), _LABELS)
_NUMBERED = st.dictionaries(st.integers(0, 2**62), _PROBES.map(msgspec.json.encode), min_size=1)


@pytest.mark.slow
@given(_NUMBERED)
def test_probes_come_back_as_they_were_in_the_order_of_their_positions(probes: dict[int, bytes]) -> None:
    numbered = sorted(probes.items())
    assert decode_probes(min(probes), encode_probes(numbered)) == numbered


@pytest.mark.slow
@given(_NUMBERED, st.data())
def test_a_chunk_with_a_changed_bit_is_refused(probes: dict[int, bytes], data: st.DataObject) -> None:
    body = bytearray(encode_probes(sorted(probes.items())))
    at = data.draw(st.integers(0, 8 * len(body) - 1))
    body[at // 8] ^= 1 << at % 8
    with suppress(ValueError):
        assert decode_probes(min(probes), bytes(body)) == sorted(probes.items()), "a bit without a meaning"
