"""The digest of a sample tells texts and images apart; what is unknown of one side is not compared."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from PIL import Image

import sightline
from sightline.evaluation.compare import compare_runs
from sightline.evaluation.plan import with_images_of
from sightline.formats.groups import GroupLine, write_groups
from sightline.formats.jsonl import read_outcomes
from sightline.metrics.flips import may_be_equal


def groups_file(folder: Path, colour: str, prompt: str = "What is it?") -> Path:
    """A groups file of two variants whose images have this colour, and whose cluster is that of a source."""
    folder.mkdir()
    for variant in ("original", "v1", "v2"):
        Image.new("RGB", (8, 8), colour if variant != "original" else "white").save(folder / f"{variant}.png")
    lines = [GroupLine("a", name, (f"{name}.png",), prompt, cluster="c") for name in ("original", "v1", "v2")]
    write_groups(lines, folder / "groups.jsonl")
    return folder / "groups.jsonl"


def run(file: Path, out: Path, *, unchanged: bool = False) -> str:
    """The digest of the sample as a run writes it."""
    changed = {"embedder": "none", "unchanged": unchanged}
    answers = out.with_suffix(".jsonl")
    lines = [{"group": "a", "variant": name, "response": "red"} for name in ("original", "v1", "v2")]
    answers.write_text("\n".join(map(json.dumps, lines)))
    store = out.with_suffix(".db")
    sightline.run(f"groups:{file}", model=f"replay/{answers}", set=changed, store=store, out=out)
    (digest,) = {outcome.sample_digest for outcome in read_outcomes(out / "answers.jsonl")}
    return digest


def test_samples_with_other_images_differ_whatever_their_cluster(tmp_path: Path) -> None:
    red, blue = (groups_file(tmp_path / colour, colour) for colour in ("red", "blue"))
    digests = [run(file, tmp_path / f"out{number}") for number, file in enumerate((red, blue, red))]
    assert not may_be_equal(digests[0], digests[1])
    assert digests[0] == digests[2] == run(red, tmp_path / "unchanged", unchanged=True)


def test_answers_that_are_scored_keep_the_images_of_their_run(tmp_path: Path) -> None:
    file = groups_file(tmp_path / "red", "red")
    digest = run(file, tmp_path / "run")
    answers = tmp_path / "run" / "answers.jsonl"
    sightline.score(f"groups:{file}", answers, set={"embedder": "none"}, out=tmp_path / "scored")
    assert {one.sample_digest for one in read_outcomes(tmp_path / "scored" / "answers.jsonl")} == {digest}


def test_images_that_cannot_be_read_are_not_compared(tmp_path: Path) -> None:
    file = groups_file(tmp_path / "red", "red")
    whole = run(file, tmp_path / "run")
    (file.parent / "original.png").unlink()
    texts = run(file, tmp_path / "without")
    assert (texts, may_be_equal(texts, whole)) == (whole.partition("-")[0], True)
    other = run(groups_file(tmp_path / "other", "red", "Who?"), tmp_path / "out")
    assert not may_be_equal(texts, other)


def test_the_order_of_lines_and_groups_changes_neither_digest_nor_comparison(tmp_path: Path) -> None:
    """Three groups of three images; each line has its own image, and no line names a cluster."""
    colours = ("red", "green", "blue")
    for group in "abc":
        for colour in colours:
            Image.new("RGB", (8, ord(group)), colour).save(tmp_path / f"{group}-{colour}.png")
    lines = [
        GroupLine(group, colour, (f"{group}-{colour}.png",), "What is it?", references=(colour,))
        for group in "abc"
        for colour in colours
    ]
    answers = tmp_path / "answers.jsonl"
    said = [{"group": line.group, "variant": line.variant, "response": "red"} for line in lines]
    answers.write_text("\n".join(map(json.dumps, said)))
    store, found = tmp_path / "s.db", []
    for name, order in (("listed", lines), ("reversed", lines[::-1]), ("mixed", lines[::2] + lines[1::2])):
        write_groups(order, tmp_path / f"{name}.jsonl")
        found.append(
            sightline.run(
                f"groups:{tmp_path / name}.jsonl",
                model=f"replay/{answers}",
                set={"embedder": "none"},
                store=store,
                out=tmp_path / name,
            )
        )
    first, *others = (
        read_outcomes(tmp_path / name / "answers.jsonl") for name in ("listed", "reversed", "mixed")
    )
    digests = {outcome.sample: outcome.sample_digest for outcome in first}
    for outcomes in others:
        assert all(digests[one.sample] == one.sample_digest for one in outcomes)
    comparison = compare_runs(None, [(tmp_path / "listed", tmp_path / "mixed")])
    assert not comparison.different_samples


@pytest.mark.parametrize(
    ("digest", "recorded", "expected"),
    [
        ("a", "b-2", "a-2"),
        ("a-1", "b-2", "a-1"),
        ("a", "b", "a"),
        ("a", "", "a"),
    ],
)
def test_only_unknown_images_are_taken_from_a_file(digest: str, recorded: str, expected: str) -> None:
    assert with_images_of(digest, recorded) == expected
