"""Equivalence of what was built: pairs for humans, and three measures that are never mixed."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray
from PIL import Image
from scipy.stats import binomtest

from sightline.builders import equivalence
from sightline.builders.equivalence import (
    VariantPair,
    by_humans,
    by_judge,
    by_similarity,
    draw_pairs,
    not_requested,
    read_pairs,
)
from sightline.cli.main import main
from sightline.engine.client import ClientOptions, ModelClient
from sightline.errors import UserError
from sightline.formats.groups import GroupLine, write_groups
from sightline.models.offline import OfflineModel
from sightline.types import Answer, Failure, Request


def rephrased(folder: Path, groups: int, *, images: int | None = None) -> Path:
    """A folder of rephrasings: so many groups of an original and three variants, over so many images."""
    folder.mkdir()
    lines = []
    for number in range(groups):
        image = f"{number % (images or groups)}.png"
        Image.new("RGB", (4, 4), (number % (images or groups), 0, 0)).save(folder / image)
        for variant in ("original", "r1", "r2", "r3"):
            question = f"{variant} of {number}?"
            lines.append(
                GroupLine(f"g{number}", variant, (image,), f"Please: {question}", question, cluster=image)
            )
    write_groups(lines, folder / "groups.jsonl")
    return folder


def restyled(folder: Path) -> Path:
    folder.mkdir()
    for variant, colour in {"original": "red", "candy": "blue", "udnie": "green"}.items():
        Image.new("RGB", (4, 4), colour).save(folder / f"{variant}.png")
    names = ("original", "candy", "udnie")
    write_groups(
        [GroupLine("g", name, (f"{name}.png",), "Describe.") for name in names], folder / "groups.jsonl"
    )
    return folder


def judged_by(
    folder: Path, pairs: Sequence[VariantPair], verdicts: Sequence[str], judge: str = "ann"
) -> Path:
    """The verdicts of a human on pairs, as `annotate export` writes them."""
    lines = [
        {
            "targets": pair.targets,
            "question": "equivalent",
            "kind": "human",
            "verdict": verdict,
            "judge": judge,
        }
        for pair, verdict in zip(pairs, verdicts, strict=True)
    ]
    file = folder / f"{judge}.jsonl"
    file.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return file


def test_one_pair_per_group_is_sampled_by_the_seed(tmp_path: Path) -> None:
    pairs = read_pairs(rephrased(tmp_path / "d", 300))
    assert len(pairs) == 900
    drawn = draw_pairs(pairs, 100, 1)
    assert len({pair.group for pair in drawn}) == len(drawn) == 100
    assert drawn == draw_pairs(pairs, 100, 1) != draw_pairs(pairs, 100, 2)
    assert [pairs.index(pair) for pair in drawn] == sorted(pairs.index(pair) for pair in drawn)
    assert min(Counter(pair.variant for pair in draw_pairs(pairs, 300, 0)).values()) > 70
    assert len(draw_pairs(pairs, 1000, 0)) == 300


def test_the_share_of_humans_has_a_wilson_interval_and_the_published_value(tmp_path: Path) -> None:
    pairs = read_pairs(rephrased(tmp_path / "d", 100))
    file = judged_by(tmp_path, draw_pairs(pairs, 100, 0), ["right"] * 92 + ["wrong"] * 8)
    found = by_humans(pairs, file, kind="rephrase")
    (metric,) = found.metrics
    assert (metric.value, metric.n, metric.clusters, metric.interval) == (92, 100, 100, "wilson")
    expected = binomtest(92, 100).proportion_ci(method="wilson")
    assert (metric.low, metric.high) == pytest.approx((100 * expected.low, 100 * expected.high))
    assert metric.published is not None
    assert (metric.published[0].value, metric.judge) == (92, "ann")
    assert len(found.different) == 8
    (restyle,) = by_humans(pairs, file, kind="restyle").metrics
    assert restyle.published is not None
    assert restyle.published[0].value == 86
    assert by_humans(pairs, file, kind="mask").metrics[0].published is None


def test_pairs_about_one_image_form_one_cluster(tmp_path: Path) -> None:
    pairs = read_pairs(rephrased(tmp_path / "d", 40, images=10))
    by_image = ["right" if number % 4 else "wrong" for number in range(40)]
    (metric,) = by_humans(pairs, judged_by(tmp_path, draw_pairs(pairs, 40, 0), by_image)).metrics
    expected = binomtest(30, 40).proportion_ci(method="wilson")
    assert (metric.value, metric.n, metric.clusters, metric.interval) == (75, 40, 10, "wilson")
    assert metric.low is not None
    assert metric.low != pytest.approx(100 * expected.low)


def test_the_majority_of_several_humans_counts_and_a_tie_is_excluded(tmp_path: Path) -> None:
    pairs = read_pairs(rephrased(tmp_path / "d", 4))
    votes = {
        "ann": ["right", "right", "right", "unscored"],
        "bob": ["right", "right", "wrong", "unscored"],
        "cyd": ["right", "wrong", "unscored", "unscored"],
    }
    files = [judged_by(tmp_path, draw_pairs(pairs, 4, 0), given, name) for name, given in votes.items()]
    whole = tmp_path / "all.jsonl"
    stray = {"targets": ["x", "y"], "question": "equivalent", "verdict": "right", "judge": "bob"}
    whole.write_text("".join(file.read_text() for file in files) + json.dumps(stray) + "\n")
    found = by_humans(pairs, whole)
    (metric,) = found.metrics
    assert (metric.value, metric.n, metric.judge) == (100, 2, "ann, bob, cyd")
    assert found.notes == [
        "pairs excluded: not filled in: 1",
        "pairs excluded because of a tie: 1",
        "lines that are not about a pair of this folder: 1",
    ]


def test_a_verdict_does_not_apply_to_a_changed_pair(tmp_path: Path) -> None:
    folder = restyled(tmp_path / "d")
    pairs = read_pairs(folder)
    file = judged_by(tmp_path, pairs[:1], ["right"])
    assert by_humans(pairs, file).metrics[0].value == 100
    Image.new("RGB", (4, 4), "black").save(folder / "candy.png")
    with pytest.raises(UserError, match="no line is about a pair of this folder"):
        by_humans(read_pairs(folder), file)


def test_a_file_without_a_decision_gives_null_with_a_reason(tmp_path: Path) -> None:
    pairs = read_pairs(rephrased(tmp_path / "d", 3))
    (metric,) = by_humans(pairs, judged_by(tmp_path, pairs[:3], ["unscored"] * 3)).metrics
    assert (metric.value, metric.n, metric.reason) == (None, 0, "no pair is decided")


class Angles:
    """An embedder that puts each text at the angle that it ends with, in degrees."""

    name = "angles"
    identity = "angles"

    def embed(self, texts: Sequence[str]) -> NDArray[np.float32]:
        angles = np.radians([0.0 if "original" in text else 30.0 * int(text[1]) for text in texts])
        return np.stack([np.cos(angles), np.sin(angles)], axis=1).astype(np.float32)

    def unknown(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return np.zeros(len(texts), dtype=np.float32)


def test_similarity_is_the_mean_cosine_and_the_share_above_seven_tenths(tmp_path: Path) -> None:
    pairs = read_pairs(rephrased(tmp_path / "d", 5))
    mean, share = by_similarity(pairs, Angles()).metrics  # 30, 60 and 90 degrees
    assert mean.value == pytest.approx(100 * (3**0.5 / 2 + 0.5 + 0) / 3, abs=1e-4)
    assert share.value == pytest.approx(100 / 3)
    assert (share.n, share.clusters) == (15, 5)


def test_a_place_that_no_measure_uses_is_refused(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    folder = str(rephrased(tmp_path / "d", 1))
    for more in (["--on", "ray"], ["--on", "ray", "--similarity"]):
        assert main(["build", "equivalence", folder, *more]) == 2
        assert "has no effect" in capsys.readouterr().err


def test_the_similarity_does_not_depend_on_how_many_pairs_are_embedded_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = read_pairs(rephrased(tmp_path / "d", 5))
    whole = by_similarity(pairs, Angles())
    monkeypatch.setattr(equivalence, "BATCH", 4)
    assert by_similarity(pairs, Angles()) == whole


@pytest.mark.slow
def test_the_default_embedder_is_that_of_the_paper() -> None:
    pytest.importorskip("sentence_transformers")
    from sightline.builders.equivalence import VariantPair
    from sightline.models.embedder import embedder

    pair = VariantPair(("a", "b"), "g", "r1", "text", "stainless steel", "copper", "c")
    assert by_similarity([pair], embedder()).metrics[0].value == pytest.approx(50.87, abs=0.01)


def test_pairs_of_images_have_neither_judge_nor_similarity_values_and_the_reason_is_given(
    tmp_path: Path,
) -> None:
    pairs = read_pairs(restyled(tmp_path / "d"))
    assert [(pair.variant, Path(pair.second).name) for pair in pairs] == [
        ("candy", "candy.png"),
        ("udnie", "udnie.png"),
    ]
    for metric in by_similarity(pairs, Angles()).metrics:
        assert (metric.value, metric.reason) == (
            None,
            "sentence similarity compares texts; these pairs differ in their images",
        )
    (metric,) = judged(tmp_path, pairs).metrics
    assert (metric.value, metric.n) == (None, 0)
    assert "images" in str(metric.reason)


def judged(folder: Path, pairs: Any) -> Any:
    client = ModelClient(ClientOptions(model="baseline/chance", store=str(folder / "s.db")), {})
    with client.store() as store:
        return asyncio.run(by_judge(pairs, client, store, "baseline/chance"))


class Wavering(OfflineModel):
    """A judge that finds first variants the same, second ones different, and of third ones cannot tell."""

    name = identity = "wavering"
    host = "tests"

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        replies = {"r1 of": "same", "r2 of": '"Different".', "r3 of": "the same, or different"}
        for place, request in enumerate(requests):
            yield place, Answer(next(said for mark, said in replies.items() if mark in str(request.messages)))


def test_a_pair_with_an_unclear_reply_is_excluded_and_counted(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.replicas.fleet.resolve", lambda *_: [Wavering()])
    found = judged(tmp_path, read_pairs(rephrased(tmp_path / "d", 10)))
    (metric,) = found.metrics
    assert (metric.value, metric.n, metric.judge) == (50, 20, "baseline/chance")
    assert found.notes == ["pairs excluded: the judge's reply is neither 'same' nor 'different': 10"]


def test_a_measure_that_was_not_requested_is_null_and_names_its_option() -> None:
    assert [metric.reason for metric in not_requested("similarity", "--similarity").metrics] == [
        "not requested: --similarity"
    ] * 2


@pytest.mark.parametrize(
    ("lines", "message"),
    [
        ([GroupLine("g", "r1", (), "x")], "has no original"),
        ([GroupLine("g", "original", (), "x")], "originals alone"),
        (
            [GroupLine("g", "original", (), "x"), GroupLine("g", "r1", (), "x")],
            "neither question nor image",
        ),
        ([GroupLine("g", "original", ("a",), "x"), GroupLine("g", "r1", ("b",), "x")], "No such file"),
    ],
)
def test_a_folder_without_pairs_is_a_user_error(tmp_path: Path, lines: list[GroupLine], message: str) -> None:
    with pytest.raises(UserError, match="contains no groups"):
        read_pairs(tmp_path)
    write_groups(lines, tmp_path / "groups.jsonl")
    with pytest.raises(UserError, match=message):
        read_pairs(tmp_path)
