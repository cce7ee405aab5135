"""The examples in docs/ do what they say."""

from __future__ import annotations

import json
import re
from importlib.metadata import version
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from PIL import Image, ImageOps

import sightline
from sightline.cli.main import main
from sightline.formats.groups import read_groups
from sightline.metrics.statistics import TOO_FEW
from sightline.plugins import plug_in

DOCS = Path(__file__).resolve().parents[2] / "docs"


def whole_example(page: str) -> str:
    """The first Python block of a page that is a file by itself."""
    return next(block for block in python_blocks(page) if "import" in block)


def python_blocks(page: str) -> list[str]:
    """The Python blocks of a page, in its order."""
    blocks: list[str] = re.findall(r"```python\n(.*?)```", (DOCS / page).read_text(), re.DOTALL)
    return blocks


def test_the_benchmark_of_the_docs_runs_with_the_model_of_the_docs(tmp_path: Path) -> None:
    (tmp_path / "arrows.py").write_text(whole_example("adding-a-benchmark.md"))
    (tmp_path / "says.py").write_text(whole_example("models.md"))
    plug_in(str(tmp_path / "arrows.py"))
    plug_in(str(tmp_path / "says.py"))
    run = sightline.run(
        "arrows", model="says/Left.", data=arrow_images(tmp_path / "images"), store=tmp_path / "s.db"
    )
    assert (run.result.samples, run.result.errors) == (3, 0)
    assert round(run.metrics[0].value or 0, 1) == 66.7
    assert run.metrics[0].reason == TOO_FEW


@pytest.mark.parametrize(
    ("selection", "answers"),
    [
        ([], 3),
        (["--limit", "2"], 2),
        (["--limit", "2", "--shuffle"], 2),
        (["--repeats", "2"], 6),
        (["--limit", "2", "--shuffle", "--repeats", "2"], 4),
    ],
)
def test_the_benchmark_of_the_docs_takes_the_options_that_select_samples(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], selection: list[str], answers: int
) -> None:
    (tmp_path / "arrows.py").write_text(whole_example("adding-a-benchmark.md"))
    words = ["--plugin", str(tmp_path / "arrows.py"), "--data", str(arrow_images(tmp_path / "images"))]
    store = ["--store", str(tmp_path / "s.db"), "--json"]
    assert main(["run", "arrows", "--model", "baseline/chance", *words, *store, *selection]) == 0
    assert json.loads(capsys.readouterr().out)["metrics"][0]["n"] == answers


def arrow_images(folder: Path) -> Path:
    """The data of the docs' benchmark: three arrows, one of which points right."""
    folder.mkdir()
    lines = []
    for number, way in enumerate(("left", "right", "left")):
        Image.new("RGB", (8, 8), (number, 0, 0)).save(folder / f"{number}.png")
        lines.append(json.dumps({"id": str(number), "image": f"{number}.png", "answer": way}))
    (folder / "arrows.jsonl").write_text("\n".join(lines))
    return folder


def test_the_perturbation_of_the_docs_builds_groups_that_run(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    Image.radial_gradient("L").crop((0, 0, 99, 60)).save("photos/a.png")
    Path("mirror.py").write_text(whole_example("building.md"))
    words = ["build", "perturb", "photos", "--kind", "mirror", "--plugin", "mirror.py", "--out", "mirrored"]
    assert main(words) == 0
    with (
        Image.open("mirrored/images/a_original.png") as before,
        Image.open("mirrored/images/a_mirrored.png") as after,
    ):
        assert after.tobytes() == ImageOps.mirror(before).tobytes() != before.tobytes()
    asking = ["--model", "baseline/chance", "--set", "embedder=none", "--json"]
    assert main(["run", "groups:mirrored/groups.jsonl", *asking]) == 0
    capsys.readouterr()


def test_the_building_in_python_of_the_docs_builds(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "photos").mkdir()
    Image.radial_gradient("L").save("photos/a.png")
    exec(python_blocks("python.md")[2], {})
    assert len(read_groups(tmp_path / "compressed" / "groups.jsonl")) == 4


def test_the_layout_of_the_docs_is_what_it_prints(capsys: pytest.CaptureFixture[str]) -> None:
    exec(python_blocks("reading.md")[-1], {})
    printed = re.findall(r"```text\n(.*?)```", (DOCS / "reading.md").read_text(), re.DOTALL)
    assert capsys.readouterr().out == printed[0]


@pytest.mark.slow
def test_the_images_of_the_docs_read_as_the_docs_say(
    shared: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pytest.importorskip("rapidocr", reason="needs the extra 'ocr'")
    if not version("rapidocr").startswith("3.10."):
        pytest.skip("the docs say what RapidOCR 3.10 reads")
    page = (DOCS / "reading.md").read_text()
    told = re.findall(r"\*\*`(.+?)`\*\*.*?```text\n(.*?)```", page, re.DOTALL)
    assert len(told) == 10
    images = [str(shared / "data" / name) for name, _ in told]
    words = ["build", "read", *images, "--text", "layout", "--store", str(tmp_path / "s.db"), "--quiet"]
    assert main([*words, "--processes", "1", "--threads", "1"]) == 0
    blocks = [f"== {path}\n{text}" for path, (_, text) in zip(images, told, strict=True)]
    assert capsys.readouterr().out.split("\n\n") == [*(block.rstrip("\n") for block in blocks), ""]


@pytest.mark.slow
@pytest.mark.skipif(find_spec("transformers") is None, reason="needs the extra 'local'")
def test_the_adapter_in_python_of_the_docs_is_trained_and_compared(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    exec(python_blocks("python.md")[3], names)
    assert names["trained"].parameters == 3 * 128
    assert len(names["trained"].validations) == 2
    assert names["comparison"].task == "mmr3:restyling"
    assert names["comparison"].runs == (tuple(f"run {evaluation.run}" for evaluation in names["runs"]),)
    changes = {change.metric: change for change in names["comparison"].differences if change.subset == "all"}
    assert {"acc", "con", "agree"} <= changes.keys()
    assert changes["agree"].n == 6


def test_the_groups_file_of_the_docs_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    (block,) = re.findall(r"```json\n(.*?)```", (DOCS / "benchmarks.md").read_text(), re.DOTALL)
    Path("mine.jsonl").write_text(block)
    asking = ["--model", "baseline/chance", "--set", "embedder=none", "--json"]
    assert main(["run", "groups:mine.jsonl", *asking]) == 0
    assert (json.loads(capsys.readouterr().out)["samples"], len(block.splitlines())) == (1, 3)


def test_every_setting_of_the_docs_exists_and_every_setting_is_in_the_docs() -> None:
    from sightline.benchmarks.registry import benchmark, benchmark_names

    text = (DOCS / "benchmarks.md").read_text()
    for name in ("codis", "iibench", "mmr3"):
        assert name in benchmark_names()
        for setting in benchmark(name).settings:
            assert setting == "default" or setting in text, setting
