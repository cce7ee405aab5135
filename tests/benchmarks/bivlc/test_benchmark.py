"""BiVLC on records of its released layout: the released results, chance, likelihoods of a local model."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from itertools import permutations, product
from pathlib import Path
from typing import Any, cast

import pytest
from PIL import Image

from sightline.benchmarks.bivlc.benchmark import BiVLC
from sightline.cli.main import main
from sightline.types import ImageRef, Probe, Text

CHOICES = ("ipos_2t", "ineg_2t", "tpos_2i", "tneg_2i")

# results/BiVLC_ViT-B-32.csv of IMirandaM/BiVLC at 84f0d175, its columns text_score_i0, text_score_i1,
# image_score_c0 and image_score_c1: how often each combination occurs.
CLIP = {
    "0000": 4,
    "0001": 33,
    "0010": 22,
    "0100": 5,
    "0101": 198,
    "0110": 123,
    "0111": 75,
    "1000": 2,
    "1001": 145,
    "1010": 79,
    "1011": 23,
    "1101": 516,
    "1110": 269,
    "1111": 1439,
}
CLIP_TRUE = {"i2t": 2224, "t2i": 1537, "group": 1439} | dict(
    zip(CHOICES, (2473, 2625, 2030, 2429), strict=True)
)
"""How often its columns text_score, image_score, group_score and those four are true."""


def write(folder: Path, rows: int, shared: bool = False) -> None:
    """Records with captions and images of their own, or with the same two images."""
    (folder / "images").mkdir(parents=True)
    lines = []
    for number in range(rows):
        names = [f"images/{0 if shared else number}_{which}.png" for which in (0, 1)]
        for which, name in enumerate(names):
            if not (folder / name).exists():
                Image.new("RGB", (16, 16), (number % 256, 200 * which, 0)).save(folder / name)
        line = {
            "image": names[0],
            "caption": f"Dog {number} is on a bed.",
            "negative_caption": f"Dog {number} is under a bed.",
            "negative_image": names[1],
            "type": ("replace", "swap", "add")[number % 3],
            "subtype": ("rel", "att", "obj")[number % 3],
        }
        lines.append(json.dumps(line) + "\n")
    (folder / "records.jsonl").write_text("".join(lines))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.chdir(tmp_path)
    return tmp_path


def asked(folder: Path, seed: int = 0) -> list[list[Probe]]:
    options = {"answer_by": "text", "seed": seed}
    return [list(BiVLC().probes(one, options)) for one in BiVLC().samples(folder / "data", "test", options)]


def values(
    capsys: pytest.CaptureFixture[str], folder: Path, task: str, answers: Iterable[Mapping[str, Any]]
) -> dict[str, float]:
    (folder / "answers.jsonl").write_text("".join(json.dumps(line) + "\n" for line in answers))
    assert main(["score", task, "answers.jsonl", "--data", "data", "--json"]) == 0
    metrics = json.loads(capsys.readouterr().out)["metrics"]
    return {one["metric"]: one["value"] for one in metrics if one["subset"] == "all"}


def chosen(folder: Path, right: Sequence[Sequence[bool]]) -> list[dict[str, Any]]:
    """The letters that make these choices right or wrong."""
    return [
        {
            "id": probe.sample,
            "variant": probe.variant,
            "response": f"{probe.references[0] if is_right else 'AB'[probe.references[0] == 'A']}.",
        }
        for probes, choices in zip(asked(folder), right, strict=True)
        for probe, is_right in zip(probes, choices, strict=True)
    ]


def test_choices_as_those_of_the_released_results_give_the_released_scores(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    rows = [[mark == "1" for mark in pattern] for pattern, count in CLIP.items() for _ in range(count)]
    write(folder / "data", len(rows), shared=True)
    found = values(capsys, folder, "bivlc", chosen(folder, rows))
    expected = {name: 100 * count / 2933 for name, count in CLIP_TRUE.items()}
    assert {name: found[name] for name in expected} == pytest.approx(expected)


def test_all_combinations_of_choices_and_all_orders_of_four_scores_give_the_chance_levels(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder / "data", 48)
    found = values(capsys, folder, "bivlc", chosen(folder, [*product((True, False), repeat=4)] * 3))
    assert [found[name] for name in ("i2t", "t2i", "group")] == [25, 25, 6.25]
    lines = [
        {"id": str(number), "variant": pair, "response": str(-score)}
        for number, scores in enumerate([*permutations((0.5, 1.0, 1.5, 2.0))] * 2)
        for pair, score in zip(("c0_i0", "c1_i0", "c0_i1", "c1_i1"), scores, strict=True)
    ]
    found = values(capsys, folder, "bivlc:likelihood", lines)
    assert [found[name] for name in ("i2t", "t2i", "group")] == pytest.approx([25, 25, 100 / 6])
    assert [found[name] for name in CHOICES] == [50] * 4


def test_equal_scores_choose_nothing(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    write(folder / "data", 1)
    pairs = ("c0_i0", "c1_i0", "c0_i1", "c1_i1")
    lines = [{"id": "0", "variant": pair, "response": "-1.5"} for pair in pairs]
    found = values(capsys, folder, "bivlc:likelihood", lines)
    assert [found[name] for name in ("group", *CHOICES)] == [0] * 5


def test_a_letter_is_right_once_in_each_direction_and_the_seed_orders_the_options(folder: Path) -> None:
    write(folder / "data", 40)
    orders = []
    for seed in (0, 1):
        letters = [[probe.references[0] for probe in probes] for probes in asked(folder, seed)]
        assert all(sorted(four[:2]) == sorted(four[2:]) == ["A", "B"] for four in letters)
        orders.append([four[0] for four in letters])
        assert 8 < orders[-1].count("A") < 32
    assert orders[0] != orders[1]


def test_the_prompts_show_both_captions_or_both_images(folder: Path) -> None:
    write(folder / "data", 6)
    for number, (caption_of, _, image_of, _) in enumerate(asked(folder)):
        image, which = cast("tuple[ImageRef, Text]", caption_of.messages[0].parts)
        captions = [f"Dog {number} is on a bed.", f"Dog {number} is under a bed."]
        listed = captions if caption_of.references == ("A",) else captions[::-1]
        assert image.path.endswith(f"{number}_0.png")
        assert f"(A) {listed[0]}\n(B) {listed[1]}\n" in which.text
        head, first, other, second, question = image_of.messages[0].parts
        assert (head, other) == (Text("Image A:"), Text("Image B:"))
        shown = [part.path[-5] for part in (first, second) if isinstance(part, ImageRef)]
        assert shown == (["0", "1"] if image_of.references == ("A",) else ["1", "0"])
        assert f'"{captions[0]}"' in cast("Text", question).text


@pytest.mark.slow
def test_a_local_model_scores_the_four_pairs(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pytest.importorskip("torch")
    write(folder / "data", 2)
    words = ["run", "bivlc:likelihood", "--data", "data", "--model"]
    assert main([*words, "mini", "--out", "out", "--quiet"]) == 0
    capsys.readouterr()
    answers = [json.loads(line) for line in (folder / "out/answers.jsonl").read_text().splitlines()]
    assert [one["variant"] for one in answers[:4]] == ["c0_i0", "c1_i0", "c0_i1", "c1_i1"]
    assert answers[1]["prompt"] == ('Does this figure show "Dog 0 is under a bed."? Please answer yes or no.')
    assert all(float(one["response"]) < 0 for one in answers)
    assert main(["show", "1", "-n", "1"]) == 0
    assert "inconsistent" not in capsys.readouterr().out
    assert main([*words, "baseline/chance"]) == 2
    assert "does not report how likely an answer is" in capsys.readouterr().err


def test_a_wrong_field_is_named_with_file_and_record(
    folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    write(folder / "data", 1)
    file = folder / "data/records.jsonl"
    file.write_text(file.read_text().replace('"rel"', '"relation"'))
    assert main(["run", "bivlc", "--data", "data", "--model", "baseline/chance"]) == 2
    said = " ".join(capsys.readouterr().err.split())
    assert all(word in said for word in ("records.jsonl", "Dog 0 is on a bed.", "subtype", "relation"))
