"""Which answers humans see: what all runs answered, whole, and samples of wrong ones in proportion."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given
from hypothesis import strategies as st

from sightline.annotation.answer_items import Unit, draw_units, shared_instances, wrong_answers
from sightline.errors import UserError
from sightline.types import Outcome, Usage, VerdictName


def answer(model: str, group: str, response: str = "said", **more: object) -> Outcome:
    fields: dict[str, object] = {
        "sample": group,
        "variant": "v",
        "draw": 0,
        "key": f"{model} {group}",
        "labels": {"category": "web" if int(group) % 4 else "time"},
        "response": response,
        "status": "ok",
        "finish_reason": "",
        "usage": Usage(),
        "verdict": "wrong",
        "references": ("right",),
        "question": f"Question {group}?",
        **more,
    }
    return Outcome(**fields)  # type: ignore[arg-type]


def run(model: str, groups: Sequence[int], **more: object) -> list[Outcome]:
    return [answer(model, str(group), f"{model} says {group}", **more) for group in groups]


def test_an_instance_is_shared_if_every_run_answered_all_of_it_and_it_has_a_reference() -> None:
    first = [*run("a", range(4)), answer("a", "4", references=()), answer("a", "5", variant="w")]
    first.append(answer("a", "5", status="error"))
    second = [*run("b", [2, 0, 4, 5]), answer("b", "3", "", status="empty"), answer("b", "9")]
    units = shared_instances([first, second])
    assert [[one.key for one in unit] for unit in units] == [["a 0", "b 0"], ["a 2", "b 2"], ["a 3", "b 3"]]
    with pytest.raises(UserError, match="no instance has an answer of each of the 2 runs"):
        shared_instances([first, run("b", [77])])


def test_an_instance_with_different_probes_in_two_runs_is_not_shared() -> None:
    first = [*run("a", range(3)), *run("a", [0, 1], variant="w")]
    second = [*run("b", [0, 2]), *run("b", [0, 1], variant="w"), answer("b", "1", variant="x")]
    assert {unit[0].sample for unit in shared_instances([first, second])} == {"0", "2"}


def test_wrong_answers_exclude_right_and_missing_ones() -> None:
    said: list[VerdictName] = ["right", "wrong", "miss", "refused", "error", "undecided", "unscored"]
    given = [answer("a", str(number), verdict=verdict) for number, verdict in enumerate(said)]
    assert [unit[0].verdict for unit in wrong_answers(given)] == ["wrong", "miss", "refused"]
    with pytest.raises(UserError, match="no answer is wrong"):
        wrong_answers(given[:1])


@given(st.integers(1, 60), st.integers(1, 60), st.integers(0, 3))
def test_a_sample_has_distinct_units_in_order_and_in_proportion_to_a_label(
    size: int, count: int, seed: int
) -> None:
    units: list[Unit] = [(one,) for one in run("a", range(size))]
    for label in ("", "category"):
        drawn = draw_units(units, count, seed, label)
        assert drawn == draw_units(units, count, seed, label)
        places = [units.index(unit) for unit in drawn]
        assert places == sorted(set(places))
        assert len(drawn) == min(count, size)
    whole, part = (Counter(unit[0].labels["category"] for unit in of) for of in (units, drawn))
    assert all(abs(part[name] - len(drawn) * whole[name] / size) < 1 for name in whole)


def test_another_seed_samples_other_units() -> None:
    units = [(one,) for one in run("a", range(50))]
    assert draw_units(units, 10, 0) != draw_units(units, 10, 1)


@pytest.mark.parametrize(
    ("count", "label", "said"), [(0, "", "draws nothing"), (1, "domain", "unknown label")]
)
def test_an_impossible_sample_is_refused(count: int, label: str, said: str) -> None:
    with pytest.raises(UserError, match=said):
        draw_units([(answer("a", "1"),)], count, 0, label)
