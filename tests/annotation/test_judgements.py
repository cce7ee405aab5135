"""What a project's judgements become: verdicts, known values, decisions, folders of answers."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from msgspec.structs import replace

from sightline.annotation.creation import known_values
from sightline.annotation.decisions import decide, settlers, verdicts
from sightline.annotation.export import export_project
from sightline.annotation.state import State
from sightline.annotation.task import task
from sightline.annotation.types import OWNER, Annotator, Entry, Item, Project
from sightline.errors import UserError

RATERS = [Annotator(number, name) for number, name in enumerate(("A B", "A-B", "log.jsonl"), start=1)]


def judged(votes: dict[int, str]) -> State:
    state = State(Project("p", task("rate")), [Item(1, targets=("k",))])
    return state.advance(
        [
            Entry(number, 1, by, "judge", str(number), 0.0, {"verdict": vote})
            for number, (by, vote) in enumerate(votes.items(), start=1)
        ]
    )


@pytest.mark.parametrize(
    ("votes", "lines"),
    [
        ({1: "right", 2: "right", 3: "wrong"}, ["right", "right", "wrong"]),
        ({1: "right", 2: "wrong", OWNER: "wrong"}, ["right", "wrong", "wrong"]),
        ({1: "right", 2: "right", 3: "right", OWNER: "wrong"}, ["wrong"]),
    ],
)
def test_the_majority_of_the_verdicts_of_an_item_is_its_decision(
    votes: dict[int, str], lines: list[str]
) -> None:
    assert [verdict.verdict for verdict in verdicts(judged(votes), RATERS)] == lines


def gold(folder: Path, *lines: tuple[str, str]) -> Path:
    file = folder / "gold.jsonl"
    rows = [
        {"targets": ["k"], "question": question, "verdict": verdict, "judge": f"j{number}"}
        for number, (verdict, question) in enumerate(lines)
    ]
    file.write_text("".join(json.dumps(row) + "\n" for row in rows))
    return file


def test_the_known_value_is_the_majority_of_the_verdicts_on_the_tasks_question(tmp_path: Path) -> None:
    file = gold(
        tmp_path, ("right", "correct"), ("right", "correct"), ("wrong", "correct"), ("wrong", "same_meaning")
    )
    known = known_values(task("rate"), [Item(1, targets=("k",), variant="v")], file)
    assert known == {(("k",), "v"): {"verdict": "right"}}


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([("right", "correct"), ("wrong", "correct")], "contradict each other"),
        ([("right", "same_meaning")], "no line is about an item"),
    ],
)
def test_known_values_that_are_none_are_refused(
    tmp_path: Path, lines: list[tuple[str, str]], message: str
) -> None:
    with pytest.raises(UserError, match=message):
        known_values(task("rate"), [Item(1, targets=("k",))], gold(tmp_path, *lines))


def test_an_item_that_asks_for_no_decision_is_decided_when_it_is_done() -> None:
    item = Item(1)
    project = Project("p", task("respond"), annotators=2)
    entries = {n: Entry(n, 1, n, "judge", str(n), 0.0, {"answer": "x"}) for n in (1, 2)}
    assert decide(project, item, {1: entries[1]}, settlers(())).status == "open"
    assert decide(project, item, entries, settlers(())).status == "decided"


def test_strata_that_are_judged_in_part_have_the_probability_of_their_part() -> None:
    """Of 4 images of one stratum 2 are judged wholly, of 2 of the other 1: each was sampled with 0.5."""
    items = [
        Item(number, cluster=cluster, stratum=stratum, targets=(str(number),), probability=0.5)
        for number, (cluster, stratum) in enumerate(
            [(c, "web") for c in "aabcd"] + [(c, "time") for c in "eff"], start=1
        )
    ]
    entries = [
        Entry(n, n, 1, "judge", str(n), 0.0, {"verdict": "right"}) for n in (1, 2, 3, 6, 7)
    ]  # a and b, e; f in part
    project = Project("p", task("rate"), annotators=1, pick="stratified")
    found = list(verdicts(State(project, items).advance(entries), RATERS))
    assert {(one.stratum, one.inclusion) for one in found} == {("web", 0.25), ("time", 0.25)}
    more = [Entry(n, n, 1, "judge", str(n), 0.0, {"verdict": "right"}) for n in (4, 5, 8)]
    for pick, inclusion in (("stratified", 0.5), ("all", None)):
        done = State(replace(project, pick=pick), items).advance([*entries, *more])
        assert {one.inclusion for one in verdicts(done, RATERS)} == {inclusion}


def test_every_annotator_has_a_folder_of_answers_of_their_own(tmp_path: Path) -> None:
    item = Item(1, texts={"question": ("?",)}, hidden={"sample": "s", "setting": "", "id": "s"})
    state = State(Project("p", task("respond")), [item]).advance(
        [Entry(n, 1, n, "judge", str(n), 0.0, {"answer": f"of {n}"}) for n in (1, 2, 3)]
    )
    written = dict(export_project(state, RATERS, [], tmp_path, xlsx=False))
    answers = [path for path, content in written.items() if "answers of human:" in content]
    assert len({path.parent for path in answers}) == 3
    assert all(f"of {number}" in path.read_text() for number, path in enumerate(answers, start=1))
