"""`sightline data` as a user meets it: what is printed, where, and with which exit status."""

from __future__ import annotations

import gzip
import io
import json
import shutil
import tarfile
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

from sightline.benchmarks.registry import benchmark as find_benchmark
from sightline.cli.main import main
from sightline.data.pull import checked_releases, releases
from training.scenes.build import generate_contextual

Capture = pytest.CaptureFixture[str]


@pytest.fixture(autouse=True)
def _no_data_folder_from_outside(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("SIGHTLINE_DATA", raising=False)


def released_iibench(shared: Path) -> bytes:
    """II-Bench's archive as released but for its images, which are scaled down here."""
    data = shared / "data/iibench"
    names = {entry["dst"]: entry["src"] for entry in json.loads((data / "images_map.json").read_text())}
    members: dict[str, bytes] = {"README.md": b"# II-Bench"}
    for split in ("test", "dev"):
        records: list[dict[str, Any]] = json.loads((data / f"{split}.json").read_text())
        for record in records:
            here = Path(record["local_path"])
            record["local_path"] = str(here.with_name(names[here.name]))
            members[record["local_path"]] = (data / here).read_bytes()
        members[f"data/{split}.json"] = json.dumps(records, ensure_ascii=False, indent=4).encode()
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode="w") as archive:
        for name, content in members.items():
            member = tarfile.TarInfo(f"II-Bench-main/{name}")
            member.size = len(content)
            archive.addfile(member, io.BytesIO(content))
    return gzip.compress(out.getvalue(), 0)


@pytest.mark.slow
def test_iibench_is_pulled_with_its_pinned_digests_and_is_then_the_release(
    shared: Path, tmp_path: Path, capsys: Capture
) -> None:
    archive = tmp_path / "II-Bench.tar.gz"
    archive.write_bytes(released_iibench(shared))
    assert main(["data", "pull", "iibench", "--from", str(archive), "--to", str(tmp_path), "--quiet"]) == 0
    said = capsys.readouterr().out
    assert f"{tmp_path}/iibench: II-Bench/II-Bench at {releases()['iibench'].revision}\n" in said
    assert "arXiv:2406.05862" in said
    assert "licence: none is stated" in said

    assert main(["data", "check", "iibench", "--data", str(tmp_path), "--json", "--quiet"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert [split["released"] for split in found["splits"]] == [True, True]
    assert [split["as_published"] for split in found["splits"]] == [True, True]
    assert found["unreferenced"] == []


def test_a_pulled_data_set_is_told_to_be_there(shared: Path, tmp_path: Path, capsys: Capture) -> None:
    shutil.copytree(shared / "data/codis", tmp_path / "codis")
    assert main(["data", "pull", "codis", "--to", str(tmp_path)]) == 0
    assert "d070cf759c42676c88925004c83f1d81585675a7, already present" in capsys.readouterr().out


def test_an_archive_of_something_else_is_wrong_input(tmp_path: Path, capsys: Capture) -> None:
    archive = tmp_path / "other.tar.gz"
    with tarfile.open(archive, "w:gz"):
        pass
    assert main(["data", "pull", "codis", "--from", str(archive), "--to", str(tmp_path / "data")]) == 2
    assert capsys.readouterr().err == (
        f"sightline: {archive}: data/data.json is missing; expected the .tar.gz of THUNLP-MT/CODIS at "
        "d070cf759c42676c88925004c83f1d81585675a7\n"
    )
    assert not (tmp_path / "data").exists()


def test_no_network_is_a_failure_of_the_surroundings(tmp_path: Path, capsys: Capture) -> None:
    arguments = ["data", "pull", "codis", "--from", "http://127.0.0.1:1/x", "--to", str(tmp_path / "data")]
    assert main(arguments) == 3
    assert "http://127.0.0.1:1/x: cannot be reached" in capsys.readouterr().err
    assert not (tmp_path / "data").exists()


def test_check_prints_the_counts_of_the_paper(shared: Path, capsys: Capture) -> None:
    assert main(["data", "check", "codis", "--data", str(shared / "data/codis"), "--quiet"]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "Location and Orientation 84" in said
    assert "353 samples, 216 image files, 216 distinct images" in said
    assert "the paper counts 353 samples and 216 distinct images: equal" in said
    assert "data.json is the pinned release" in said


@pytest.fixture
def few(shared: Path, tmp_path: Path) -> Path:
    """Three pairs of CODIS and their images."""
    folder = tmp_path / "codis"
    (folder / "images").mkdir(parents=True)
    records = json.loads((shared / "data/codis/data.json").read_text())[:3]
    (folder / "data.json").write_text(json.dumps(records))
    for record in records:
        shutil.copy(shared / "data/codis/images" / record["image_id"], folder / "images")
    return folder


def test_missing_and_broken_images_are_listed_and_counted(few: Path, capsys: Capture) -> None:
    first, second, _ = sorted((few / "images").iterdir())
    first.unlink()
    second.write_bytes(second.read_bytes()[:5000])
    with Image.open(second) as opened:
        assert opened.size > (0, 0)
    (few / "images/.DS_Store").write_bytes(b"x")
    assert main(["data", "check", "codis", "--data", str(few), "--quiet"]) == 1
    said = capsys.readouterr()
    assert "1 images missing, 1 broken" in said.out
    assert "the paper counts 353 samples and 216 distinct images: different" in " ".join(said.out.split())
    assert f"missing: images/{first.name} (00" in said.err
    assert f"broken: images/{second.name} (00" in said.err
    assert "1 files without a record: images/.DS_Store" in said.err


def test_a_wrong_record_is_wrong_input(few: Path, capsys: Capture) -> None:
    records = json.loads((few / "data.json").read_text())
    records[2]["question"] = 7
    (few / "data.json").write_text(json.dumps(records))
    assert main(["data", "check", "codis", "--data", str(few), "--quiet"]) == 2
    said = capsys.readouterr().err
    assert said.startswith(
        f"sightline: {few}/data.json, record 002, field question: expected `str`, got `int`"
    )


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (["pul", "codis"], "unknown subcommand of data 'pul', did you mean 'pull'?"),
        (["pull", "iibnch"], "unknown data set or table 'iibnch', did you mean 'iibench'?"),
        (["check", "codis"], "no data folder for codis; expected --data DIR or SIGHTLINE_DATA"),
        (["check", "codis", "--to", "x"], "unknown option --to"),
        (["check", "codis", "--from", "x"], "unknown option --from"),
        (["pull", "codis", "--split", "test"], "unknown option --split"),
        (["check", "iibench", "--split", "val", "--data", "."], "unknown split of iibench 'val'"),
        (["check", "codis", "--data", "nowhere"], "nowhere: this data folder does not exist"),
        (
            ["check", "bivlc", "--data", "nowhere"],
            "records.jsonl: the files of huggingface.co/datasets/imirandam/",
        ),
        (["check", "mmr3"], "mmr3 names no public data set; expected groups:FILE or bivlc, ciibench"),
    ],
)
def test_a_wrong_call_is_told_in_one_line(capsys: Capture, arguments: list[str], message: str) -> None:
    assert main(["data", *arguments]) == 2
    said = capsys.readouterr().err
    assert message in said
    assert said.count("\n") == 1


def test_help_shows_an_example(capsys: Capture) -> None:
    with pytest.raises(SystemExit):
        main(["data", "--help"])
    assert "sightline data pull codis" in capsys.readouterr().out


@pytest.mark.parametrize("split", [[], ["--split", "synthetic"]])
def test_synthetic_instructions_are_looked_through_with_no_release_to_hold_them_against(
    tmp_path: Path, capsys: Capture, split: list[str]
) -> None:
    generate_contextual(tmp_path, questions=1, val=3)
    (tmp_path / "contextual_val.csv").rename(tmp_path / "contextual_synthetic.csv")
    (tmp_path / "contextual_test.csv").unlink()
    words = ["contextual", "--data", str(tmp_path), *split, "--json", "--quiet"]
    assert main(["data", "describe", *words]) == 0
    assert json.loads(capsys.readouterr().out)["splits"] == {"synthetic": 3}
    assert main(["data", "check", *words]) == 0
    (found,) = json.loads(capsys.readouterr().out)["splits"]
    assert (found["samples"], found["images"], found["broken"]) == (3, 3, [])
    compared = ("released", "published_samples", "published_clusters", "as_published")
    assert [found[name] for name in compared] == [None] * 4
    words.remove("--json")
    assert main(["data", "check", *words]) == 0
    said = " ".join(capsys.readouterr().out.split())
    assert "contextual_synthetic.csv is not part of the release" in said
    assert "the paper counts" not in said


@pytest.mark.parametrize("name", checked_releases())
def test_every_split_of_a_benchmark_can_be_looked_through(name: str) -> None:
    assert {one.split for one in checked_releases()[name].splits} == set(find_benchmark(name).splits)
