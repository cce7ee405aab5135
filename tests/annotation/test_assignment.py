"""Assignment: whatever annotators do, in whatever order, the rules of the project hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from functools import partial
from itertools import pairwise
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from msgspec.structs import replace

from sightline.annotation.assignment import choose, is_free, items_left
from sightline.annotation.creation import with_training
from sightline.annotation.decisions import (
    GoldResult,
    decide,
    decisions_of,
    gold_result,
    is_gold,
    is_reconsidered,
    match_of,
    others_said,
    settlers,
)
from sightline.annotation.overview import overview, stuck_sentence
from sightline.annotation.state import State
from sightline.annotation.task import ADJUDICATOR, Phase, Task, task
from sightline.annotation.types import Action, Annotator, Entry, Item, Lease, Project
from sightline.benchmarks.base import defaults
from sightline.benchmarks.registry import benchmark
from sightline.errors import UserError
from sightline.evaluation.options import setting_of

ALWAYS = 1e12
"""When the links of these tests end."""

RATE = replace(task("rate"), gold=replace(task("rate").gold, every=4))


class Work:
    """A project in memory, with annotators who work one step after another."""

    def __init__(self, project: Project, items: Sequence[Item], annotators: Sequence[Annotator]) -> None:
        self.state = State(project, items)
        self.annotators = list(annotators)
        self.leases: list[Lease] = []
        self.log: list[Entry] = []
        self.now = 0.0

    def take(self, annotator: Annotator) -> Item | None:
        self.now += 1
        item = choose(self.state, self.annotators, annotator, self.leases, self.now)
        if item is not None:
            self.leases = [
                lease
                for lease in self.leases
                if (lease.item, lease.annotator) != (item.number, annotator.number)
            ]
            self.leases.append(Lease(item.number, annotator.number, self.now + 1800))
        return item

    def act(self, annotator: Annotator, item: Item, action: Action, value: str = "right") -> None:
        number = len(self.log) + 1
        values = {"verdict": value} if action == "judge" else {}
        own = self.state.of_annotator(annotator.number).get(item.number)
        is_judged = own is not None and own.action == "judge"
        gives_back = is_judged or is_free(self.state, self.annotators, annotator, self.leases, item)
        again = action == "judge" and is_reconsidered(self.state, self.annotators, annotator, item.number)
        entry = Entry(
            number,
            item.number,
            annotator.number,
            action,
            f"form {number}",
            self.now,
            values,
            reconsidered=again,
        )
        self.log.append(entry)
        self.state = self.state.advance([entry])
        self.leases = [
            one for one in self.leases if (one.item, one.annotator) != (item.number, annotator.number)
        ]
        if action == "undo" and gives_back:
            self.leases.append(Lease(item.number, annotator.number, self.now + 1800))

    def finish(self, annotator: Annotator, value: str = "right") -> list[Item]:
        """Let an annotator judge everything; returns the items in their order."""
        seen = []
        while (item := self.take(annotator)) is not None:
            self.act(annotator, item, "judge", value)
            seen.append(item)
        return seen


def rating(
    items: int, annotators: int = 3, per_item: int = 3, annotators_: int = 0, **fields: object
) -> Work:
    project = Project("p", RATE, annotators=per_item)
    return Work(
        project,
        [Item(number, annotators=annotators_, **fields) for number in range(1, items + 1)],  # type: ignore[arg-type]
        [Annotator(number, f"annotator {number}", expires=ALWAYS) for number in range(1, annotators + 1)],
    )


Steps = st.lists(
    st.tuples(
        st.integers(0, 4), st.sampled_from(["judge", "judge", "judge", "skip", "broken", "undo", "leave"])
    ),
    max_size=120,
)


@settings(max_examples=60, deadline=None)
@given(st.integers(1, 12), st.integers(1, 3), Steps)
def test_no_item_gets_more_judgements_than_it_needs_and_none_twice_from_one_annotator(
    items: int, per_item: int, steps: list[tuple[int, str]]
) -> None:
    work = rating(items, annotators=5, per_item=per_item)
    hand: dict[int, Item] = {}
    last: dict[int, Item] = {}
    for who, what in steps:
        work.now += 1
        annotator = work.annotators[who]
        if what == "undo":
            if who in last:
                undone = last.pop(who)
                work.act(annotator, undone, "undo")
                if any((one.item, one.annotator) == (undone.number, annotator.number) for one in work.leases):
                    hand[who] = undone
            continue
        item = work.take(annotator)
        if item is None:
            continue
        assert hand.get(who, item) == item, "the item in hand comes first"
        assert item.number not in work.state.of_annotator(annotator.number)
        hand[who] = item
        in_hand = {(lease.item, lease.annotator) for lease in work.leases}
        for number in work.state.items:
            judged = {by for by, entry in work.state.of_item(number).items() if entry.action == "judge"}
            holding = {by for held, by in in_hand if held == number}
            assert len(judged | holding) <= per_item
        if what != "leave":
            work.act(annotator, item, what)  # type: ignore[arg-type]
            held = [one.item for one in work.leases if one.annotator == annotator.number]
            hand.pop(who)
            if held:
                hand[who] = work.state.items[held[-1]]
            last[who] = item


@settings(max_examples=60, deadline=None)
@given(Steps)
def test_the_same_log_gives_the_same_choice(steps: list[tuple[int, str]]) -> None:
    work = rating(8, annotators=5, per_item=2)
    for who, what in steps:
        item = work.take(work.annotators[who])
        if item is not None and what in ("judge", "skip", "broken"):
            work.act(work.annotators[who], item, what)  # type: ignore[arg-type]
    again = State(work.state.project, list(work.state.items.values())).advance(work.log)
    for annotator in work.annotators:
        expected = choose(work.state, work.annotators, annotator, work.leases, work.now)
        assert choose(again, work.annotators, annotator, work.leases, work.now) == expected


@settings(max_examples=80, deadline=None)
@given(st.lists(st.integers(0, 5), min_size=1, max_size=20))
def test_members_of_a_group_never_follow_each_other_where_that_is_possible(groups: list[int]) -> None:
    items = [Item(number, group=f"g{group}") for number, group in enumerate(groups, start=1)]
    annotator = Annotator(1, "a", expires=ALWAYS)
    seen = Work(Project("p", RATE, annotators=1), items, [annotator]).finish(annotator)
    assert len(seen) == len(items)
    possible = max(Counter(groups).values()) <= (len(groups) + 1) // 2
    assert not possible or all(one.group != two.group for one, two in pairwise(seen))


def test_an_annotator_never_judges_their_own_work() -> None:
    work = rating(3, authors=("Annotator 1",))
    assert work.finish(work.annotators[0]) == []
    assert len(work.finish(work.annotators[1])) == 3


def test_what_is_nearest_to_completion_comes_first() -> None:
    work = rating(4)
    first, second, _ = work.annotators
    item = work.take(first)
    assert item is not None
    work.act(first, item, "judge")
    assert work.take(second) == item


def test_a_lease_that_ends_gives_the_item_to_others() -> None:
    work = rating(1, per_item=1)
    first, second, _ = work.annotators
    assert work.take(first) is not None
    assert work.take(second) is None
    work.now += 3600
    assert work.take(second) is not None


def test_an_adjudicator_gets_ties_only_and_each_once() -> None:
    fifth = Annotator(5, "fifth", ADJUDICATOR, expires=ALWAYS)
    work = rating(4, annotators=4, per_item=4)
    work.annotators.append(fifth)
    assert work.take(fifth) is None
    for annotator, value in zip(work.annotators, ["right", "right", "wrong", "wrong"], strict=False):
        for item in work.state.items.values():
            work.act(annotator, item, "judge", value if item.number < 3 else "right")
    assert [item.number for item in work.finish(fifth, "wrong")] == [1, 2]
    decision = decide(
        work.state.project, work.state.items[1], work.state.of_item(1), settlers(work.annotators)
    )
    assert (decision.status, decision.value, len(decision.votes)) == ("settled", "wrong", 4)


def test_gold_items_go_to_everybody_at_places_of_their_own_and_count_for_no_item() -> None:
    gold = [Item(number, expected={"verdict": "right"}) for number in (1, 2, 3)]
    items = [*gold, *(Item(number) for number in range(4, 16))]
    annotators = [Annotator(number, f"a{number}", expires=ALWAYS) for number in (1, 2)]
    work = Work(Project("p", RATE, annotators=2), items, annotators)
    places = []
    for annotator in annotators:
        seen = work.finish(annotator)
        assert len(seen) >= 12 + 2
        places.append([place for place, item in enumerate(seen) if is_gold(work.state, item)])
    assert places[0] != places[1]
    assert all(len({place // 4 for place in own}) == len(own) for own in places), "one in each four"


def test_the_first_judgement_of_a_gold_item_counts_and_a_slip_can_be_corrected_at_once() -> None:
    work = rating(3, annotators=1, per_item=1)
    gold = replace(work.state.items[1], expected={"verdict": "right"})
    work.state = State(work.state.project, [gold, *list(work.state.items.values())[1:]])
    [one] = work.annotators
    work.act(one, gold, "judge", "wrong")
    work.act(one, gold, "undo")
    work.act(one, gold, "judge", "right")
    assert gold_result(work.state, 1) == GoldResult(1, 1)
    work.act(one, work.state.items[2], "judge")
    for _ in range(2):
        work.act(one, gold, "judge", "wrong")
        assert gold_result(work.state, 1) == GoldResult(1, 1), "what is changed later does not count"
    assert work.state.of_annotator(1)[1].values == {"verdict": "wrong"}


def test_annotators_who_differ_judge_once_more_and_agreement_is_that_of_the_first_judgements() -> None:
    work = rating(2, annotators=2, per_item=2)
    work.state = State(
        replace(work.state.project, task=replace(RATE, ties="consensus")), list(work.state.items.values())
    )
    one, two = work.annotators
    assert len(work.finish(one, "right")) == 2
    assert work.take(one) is None, "nobody differs yet"
    assert len(work.finish(two, "wrong")) == 4, "two items, and both once more"
    assert [entry.reconsidered for entry in work.log] == [False] * 4 + [True] * 2
    item = work.take(one)
    assert item is not None
    assert [
        entry.values["verdict"] for entry in others_said(work.state, work.annotators, one, item.number)
    ] == ["wrong"]
    work.act(one, item, "judge", "wrong")
    assert decisions_of(work.state, work.annotators)[item.number].status == "decided"
    work.act(one, item, "undo")
    assert work.state.of_item(item.number)[1].values == {"verdict": "right"}, "the first judgement is back"
    assert len(work.finish(one, "wrong")) == 2
    assert work.take(two) is None
    seen = overview(work.state, work.annotators, work.now)
    assert seen.with_status("decided") == [1, 2]
    assert [row.agreement for row in seen.annotators] == [0, 0]


def test_annotators_who_fail_gold_are_paused_if_the_owner_says_so_until_they_are_forgiven() -> None:
    rule = replace(RATE.gold, every=1, failures=2, action="pause")
    project = Project("p", replace(RATE, gold=rule), annotators=1)
    gold = [Item(number, expected={"verdict": "right"}) for number in (1, 2, 3)]
    annotator = Annotator(1, "a", expires=ALWAYS)
    work = Work(project, [*gold, *(Item(number) for number in range(4, 9))], [annotator])
    assert len(work.finish(annotator, "wrong")) == 2
    assert work.take(replace(annotator, forgiven=2)) is not None


def test_a_phase_begins_when_the_earlier_one_ends_and_a_failed_test_ends_the_work() -> None:
    phases = (Phase("test", kind="qualification"), Phase("work"))
    declared = replace(RATE, phases=phases)
    items = [Item(n, phase="test", expected={"verdict": "right"}) for n in (1, 2)]
    items += [Item(n, phase="work") for n in (3, 4)]
    annotators = [Annotator(1, "a", expires=ALWAYS), Annotator(2, "b", expires=ALWAYS)]
    work = Work(Project("p", declared, annotators=1), items, annotators)
    assert [item.number for item in work.finish(annotators[0], "wrong")] == [1, 2]
    assert [item.number for item in work.finish(annotators[1], "right")] == [1, 2, 3, 4]


@settings(max_examples=60, deadline=None)
@given(st.lists(st.integers(0, 7), min_size=2, max_size=16), st.integers(0, 9))
def test_answers_come_in_an_order_of_the_annotators_own_and_contexts_of_a_question_stand_apart(
    questions: list[int], seed: int
) -> None:
    items = [Item(number, phase="with", group=f"q{of}") for number, of in enumerate(questions, start=1)]
    annotators = [Annotator(number, str(number), expires=ALWAYS) for number in (1, 2)]
    project = Project("p", task("respond"), annotators=2, seed=seed)
    works = [Work(project, items, annotators) for _ in range(2)]
    alone = [works[0].finish(annotators[1]), works[0].finish(annotators[0])]
    assert alone[1] == works[1].finish(annotators[0])  # Whatever others have done.
    most = Counter(questions).most_common(1)[0][1]
    for seen in alone:
        assert len(seen) == len(items)
        if most <= (len(items) + 1) // 2:
            assert all(one.group != other.group for one, other in pairwise(seen))


def test_annotators_who_answer_get_different_orders() -> None:
    items = [Item(number, phase="answer", group=str(number)) for number in range(1, 21)]
    annotators = [Annotator(number, str(number), expires=ALWAYS) for number in (1, 2, 3)]
    work = Work(Project("p", task("respond"), annotators=3), items, annotators)
    orders = {tuple(item.number for item in work.finish(one)) for one in annotators}
    assert len(orders) == 3


def test_what_asks_a_training_question_again_is_left_out() -> None:
    items = [
        Item(
            0, texts={"question": (question,)}, cluster=image, variant=variant, hidden={"references": ("x",)}
        )
        for image in ("one", "two")
        for question in ("Up?", "Why?")
        for variant in ("context_1", "context_2")
    ]
    without = [replace(item, variant="", hidden={}) for item in items[::2]]
    _, drawn = with_training(task("respond"), [*without, *items], 1, 2, 5)
    asked = [(item.cluster, item.texts["question"]) for item in drawn]
    first = [(item.cluster, item.texts["question"]) for item in drawn if item.phase]
    assert len(set(first)) == 3
    assert all(asked.count(one) == 1 for one in first)
    assert len(drawn) == 3 + 3
    with pytest.raises(UserError, match="4 questions"):
        with_training(task("respond"), items, 3, 2, 5)


def test_without_context_comes_before_every_context() -> None:
    declared: Task = task("respond")
    items = [Item(n, phase="with", group="g") for n in (1, 2)] + [Item(3, phase="without", group="x")]
    annotator = Annotator(1, "a", expires=ALWAYS)
    seen = Work(Project("p", declared, annotators=1), items, [annotator]).finish(annotator)
    assert [item.phase for item in seen] == ["without", "with", "with"]


def test_items_for_one_annotator_each_are_split_evenly_until_somebody_leaves() -> None:
    work = rating(10, annotators=4, per_item=4, annotators_=1)
    assert [len(work.finish(annotator)) for annotator in work.annotators[:3]] == [3, 3, 3]
    work.annotators[3] = replace(work.annotators[3], revoked=True)
    assert len(work.finish(work.annotators[0])) == 1


@settings(max_examples=100, deadline=None)
@given(
    st.integers(1, 12),
    st.lists(st.sampled_from(["works", "leaves", "expires", "paused", "fails"]), min_size=1, max_size=4),
    st.lists(
        st.tuples(st.integers(0, 3), st.sampled_from(["judge", "judge", "skip", "broken"])), max_size=30
    ),
    st.sampled_from([0, 1]),
)
def test_no_item_is_left_that_somebody_who_comes_back_may_still_judge(
    items: int, fates: list[str], steps: list[tuple[int, str]], single: int
) -> None:
    work = rating(items, annotators=len(fates), per_item=len(fates), annotators_=single)
    for who, action in steps:
        annotator = work.annotators[who % len(fates)]
        if (item := work.take(annotator)) is not None:
            work.act(annotator, item, action)  # type: ignore[arg-type]
    changes: dict[str, dict[str, Any]] = {
        "leaves": {"revoked": True},
        "expires": {"expires": 1.0},
        "paused": {"paused": True},
    }
    work.annotators = [
        replace(one, **changes.get(fate, {})) for one, fate in zip(work.annotators, fates, strict=True)
    ]
    able = [one for one, fate in zip(work.annotators, fates, strict=True) if fate not in changes]
    work.now += 3600
    while sum(len(work.finish(one)) for one in able):
        pass
    for number, item in work.state.items.items():
        entries = work.state.of_item(number)
        missing = (single or len(fates)) - sum(entry.action == "judge" for entry in entries.values())
        broken = sum(entry.action == "broken" for entry in entries.values()) >= 2
        assert missing == 0 or broken or all(one.number in entries for one in able), item
    seen = overview(work.state, work.annotators, work.now)
    assert seen.obtainable == 0, "nothing that the owner is told to wait for"


def test_a_single_item_that_one_rater_skips_goes_to_others_though_they_have_their_share() -> None:
    work = rating(40, annotators=4, per_item=4, annotators_=1)
    for _ in range(3):
        item = work.take(work.annotators[0])
        assert item is not None
        work.act(work.annotators[0], item, "skip")
    counts = [len(work.finish(annotator)) for annotator in work.annotators]
    assert (counts, sum(work.state.judged.values())) == ([10, 10, 10, 10], 40)


def test_the_same_raters_judge_all_shared_queries_until_one_of_them_leaves() -> None:
    work = rating(20, annotators=6, per_item=4, annotators_=4)
    assert work.take(work.annotators[5]) is None, "the fifth and the sixth have no shared query"
    for annotator in work.annotators[1:4]:
        assert len(work.finish(annotator)) == 20
    for _ in range(8):
        item = work.take(work.annotators[0])
        assert item is not None
        work.act(work.annotators[0], item, "judge")
    work.annotators[0] = replace(work.annotators[0], revoked=True)
    assert [len(work.finish(annotator)) for annotator in work.annotators[4:]] == [12, 0]
    assert set(work.state.judged.values()) == {4}


def test_who_has_an_expired_link_keeps_nothing_from_the_others() -> None:
    work = rating(40, annotators=4, per_item=4, annotators_=1)
    work.annotators[3] = replace(work.annotators[3], expires=0.5)
    assert [len(work.finish(annotator)) for annotator in work.annotators[:3]] == [14, 14, 12]


def test_a_share_is_shown_as_what_is_left() -> None:
    work = rating(40, annotators=4, per_item=4, annotators_=1)
    assert items_left(work.state, work.annotators, work.annotators[0], work.now) == 10
    work.finish(work.annotators[0])
    assert items_left(work.state, work.annotators, work.annotators[0], work.now) == 0


def test_the_owner_learns_which_items_nobody_can_finish_and_who_skipped_them() -> None:
    work = rating(3)
    first = work.annotators[0]
    item = work.take(first)
    assert item is not None
    work.act(first, item, "skip")
    assert stuck_sentence(overview(work.state, work.annotators, work.now)) == (
        "1 item lacks judgements that nobody can give now: 1. "
        "Invite somebody, or ask who skipped or reported them: annotator 1."
    )
    for annotator in work.annotators:
        work.finish(annotator)
    seen = overview(work.state, work.annotators, work.now)
    assert (seen.judgements, seen.wanted, seen.obtainable, list(seen.stuck)) == (8, 9, 0, [1])
    assert {row.standing for row in seen.annotators} == {"no item left"}
    work.annotators.append(Annotator(4, "new", expires=ALWAYS))
    assert stuck_sentence(overview(work.state, work.annotators, work.now)) == ""
    assert work.finish(work.annotators[3]) == [item]


def test_a_state_does_not_change_while_somebody_reads_it() -> None:
    work = rating(3)
    work.finish(work.annotators[0])
    before = work.state
    seen = overview(before, work.annotators, work.now)
    work.finish(work.annotators[1])
    work.act(work.annotators[0], before.items[1], "undo")
    assert overview(before, work.annotators, work.now) == seen
    assert len(work.state.of_annotator(1)) == 2


@pytest.mark.parametrize(("reference", "right"), [("B", ("a drum",)), ("A DRUM", ("a drum",)), ("C", None)])
def test_the_known_option_of_a_training_item_is_its_text(
    reference: str, right: tuple[str, ...] | None
) -> None:
    item = Item(1, texts={"options": ("a kite", "a drum")}, hidden={"references": (reference,)})
    draft = partial(with_training, task("respond"), [item], 1, 0, 0)
    if right is None:
        with pytest.raises(UserError):
            draft()
    else:
        assert [one.expected for one in draft()[1]] == [{"option": right}]


@pytest.mark.parametrize(
    ("name", "item", "values", "match"),
    [
        ("codis", Item(1, texts={"question": ("Up or down?",)}), {"answer": "Down"}, "right"),
        ("codis", Item(1, texts={"question": ("Up or down?",)}), {"answer": "It goes down"}, "right"),
        ("codis", Item(1, texts={"question": ("Up or down?",)}), {"answer": "Up"}, "wrong"),
        ("iibench", Item(1, texts={"options": ("Up.", "Down.")}), {"option": "Down."}, "right"),
        ("iibench", Item(1, texts={"options": ("Up.", "Down.")}), {"option": "Up."}, "wrong"),
        ("groups", Item(1, texts={"question": ("Where to?",)}), {"answer": "it's DOWN!"}, "right"),
        ("contextual", Item(1, texts={"question": ("Where to?",)}), {"answer": "down"}, "right"),
        ("contextual", Item(1, texts={"question": ("Where to?",)}), {"answer": "below"}, "waiting"),
    ],
)
def test_expected_answers_are_compared_as_the_benchmark_compares_responses(
    name: str, item: Item, values: dict[str, str], match: str
) -> None:
    source = benchmark(name)
    effective = defaults(source, setting_of(source, name))
    known = {"option": ("Down.",)} if "option" in values else {"answer": ("Down.",)}
    reference = "B" if "option" in values else "Down."
    item = replace(item, expected=known, hidden={"sample": "1", "references": (reference,)})
    state = State(Project("p", task("respond"), benchmark=name, options=effective), [item])
    assert match_of(state, item, values) == match
