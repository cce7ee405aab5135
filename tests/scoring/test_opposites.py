"""Which words exclude each other."""

from __future__ import annotations

from hypothesis import given
from hypothesis import strategies as st

from sightline.scoring.offered import OPPOSITES, kind_of, relation, synonyms

STEMS = st.sampled_from(sorted({word for pair in OPPOSITES for side in pair.sides for word in side}))


@given(STEMS, STEMS)
def test_a_relation_has_no_order(one: str, other: str) -> None:
    assert relation(one, other) == relation(other, one)
    assert relation(one, one) == 1


@given(STEMS, STEMS)
def test_synonyms_never_mean_both_sides(one: str, other: str) -> None:
    assert not synonyms(one, other) & synonyms(other, one)


def test_no_word_of_a_pair_is_on_both_sides() -> None:
    for pair in OPPOSITES:
        assert not pair.strict[0] & pair.strict[1]
        assert not pair.sides[0] & pair.sides[1]


def test_a_kind_has_a_word_of_every_option() -> None:
    assert "middle" in kind_of([frozenset({"left"}), frozenset({"right", "aside"})])
    assert not kind_of([frozenset({"left"}), frozenset({"blu"})])
