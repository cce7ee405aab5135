"""Whatever a file holds, a command reads it, or refuses it in one message that names it (exit status 2)."""

from __future__ import annotations

import csv
import io
import json
import os
import shutil
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from PIL import Image
from tests.hostile.damage import Damage, damaged
from tests.hostile.readers import unsafe

from sightline.cli.main import main
from sightline.formats.groups import GroupLine, write_groups
from sightline.formats.tables import workbook_bytes
from training.scenes.build import generate_codis, generate_contextual, generate_iibench

GROUPS = [
    GroupLine(f"g{n // 3}", f"v{n % 3}", prompt=f"Is it {n} or 3?", references=("3",)) for n in range(9)
]
RUN = "--model baseline/chance --dry-run --quiet"
HUMAN = "--human human.jsonl"
IMPORT = "--task iibench:none --data iibench --allow-missing --out imported.jsonl --force"
BUILD = "--kind blur --out out --processes 1 --force --quiet"
ASSIGNED = (
    "build mask instances.json --images images --spec types.json --labels labels.json"
    " --out masked --processes 1 --force --quiet"
)
REPHRASE = f"build rephrase questions.json --images images --min-words 1 --out rephrased {RUN}"
CONFIG = '[models.a]\nspec = "openai/x"\n[hosts."a.b"]\nkey = "K"\n[prices.a]\nprompt = 1.0\ncompletion = 2\n'
TASK = """
name = "mine"
title = "Mine"
items = "answers"
produces = "verdicts"
question = "correct"
decides = ["verdict"]
annotators = 1
[[shows]]
name = "question"
kind = "text"
[[fields]]
name = "verdict"
kind = "choice"
options = [{ value = "right", key = "1" }, { value = "wrong" }]
"""
PLUGIN = 'def make(rest, name, options):\n    raise ValueError\n\n\nmodels = {"mine/": make}\n'
TABLE = 'image,question,answer\nimages/a.png,What is it?,a cup\nimages/b.png,What is this?,"[""tea""]"\n'
LMMS = {
    "doc_id": 0,
    "target": "answers",
    "filtered_resps": ["(B)"],
    "submission": {"id": "test-1", "predict_answer": "B", "response": "(B)"},
    "input": "Question: Why?\n(A) one\n(B) two\nAnswer:",
}
VLM = "index,id,question,A,B,image_path,prediction\n1,test-1,Why?,one,two,1.jpg,(B)\n"
INSTANCES = {
    "images": [{"id": 7, "file_name": "a.png", "width": 8, "height": 8}],
    "annotations": [
        {
            "id": 1,
            "image_id": 7,
            "category_id": 1,
            "bbox": [0, 0, 4, 4],
            "area": 9,
            "segmentation": [[0, 0, 4, 0, 4, 4]],
        }
    ],
    "categories": [{"id": 1, "name": "cup"}],
}

# File -> the commands that read it.
COMMANDS: dict[str, tuple[str, ...]] = {
    "sightline.toml": (f"run groups:groups.jsonl {RUN} --config sightline.toml",),
    "policy.toml": ("report results --policy policy.toml", "compare results other --policy policy.toml"),
    "task.toml": ("annotate new task.toml results --name mine --store tasks.db",),
    "plugin.py": (f"run groups:groups.jsonl {RUN} --plugin plugin.py",),
    "groups.jsonl": (f"run groups:groups.jsonl {RUN}",),
    "results/metrics.json": (
        "report results --format json",
        "compare results other",
        "show results",
        "score groups:groups.jsonl results/answers.jsonl --set embedder=none --quiet",
        f"judge-report results {HUMAN}",
    ),
    "results/answers.jsonl": (
        "compare results other",
        "show results",
        f"judge-report results {HUMAN}",
        "export results --as jsonl --out exported.jsonl --force",
    ),
    "results/verdicts.jsonl": ("show results", f"judge-report results {HUMAN}"),
    "human.jsonl": (
        f"judge-report results {HUMAN}",
        f"run groups:groups.jsonl {RUN} --judge human:human.jsonl",
    ),
    "sweep.json": ("report .",),
    "lmms.jsonl": (f"import lmms.jsonl {IMPORT}",),
    "vlm.csv": (f"import vlm.csv {IMPORT}",),
    "vlm.xlsx": (f"import vlm.xlsx {IMPORT}",),
    "iibench/test.json": (
        f"run iibench:none {RUN} --data iibench",
        "data check iibench --data iibench --quiet",
    ),
    "codis/data.json": (f"run codis {RUN} --data codis", "data check codis --data codis --quiet"),
    "contextual/contextual_val.csv": (f"run contextual {RUN} --data contextual --split val",),
    "captions.json": (f"run codis:captions {RUN} --data codis --set captions=captions.json",),
    "answers.json": (f"run iibench:none {RUN} --data iibench --set answers=answers.json",),
    "table.csv": (f"build perturb table.csv {BUILD}",),
    "table.jsonl": (f"build perturb table.jsonl {BUILD}",),
    "built/manifest.json": (f"build perturb table.csv --apart-from built {BUILD}",),
    "built/groups.jsonl": (f"run groups:built/groups.jsonl {RUN}",),
    "instances.json": ("build mask instances.json --images images --out out --processes 1 --force --quiet",),
    "types.json": (ASSIGNED,),
    "labels.json": (ASSIGNED,),
    "questions.json": (REPHRASE,),
    "mscoco_val2014_annotations.json": (REPHRASE,),
    "anna.csv": ("annotate import rated anna.csv --store rated.db",),
    "studio.json": ("annotate import rated studio.json --store rated.db",),
    "studio.csv": ("annotate import rated studio.csv --store rated.db",),
    "potato.jsonl": ("annotate import rated potato.jsonl --store rated.db",),
    "user_state.json": ("annotate import rated user_state.json --store rated.db",),
}
OUTCOMES = {
    "table.csv": "sources",
    "table.jsonl": "sources",
    "built/manifest.json": "sources",
    "instances.json": "sources",
    "questions.json": "questions",
    "mscoco_val2014_annotations.json": "questions",
}
"""File -> what a message may name instead, if the file can be read and nothing in it can be used."""

EXAMPLES = int(os.environ.get("SIGHTLINE_EXAMPLES", "4"))
"""How many damaged contents of a file are tried; a trial by hand takes 1,000."""


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """A folder with a valid file for each command."""
    folder = tmp_path_factory.mktemp("files")
    with pytest.MonkeyPatch.context() as patch:
        patch.chdir(folder)
        patch.delenv("SIGHTLINE_CONFIG", raising=False)
        write_groups(GROUPS, Path("groups.jsonl"))
        made = "run groups:groups.jsonl --model baseline/chance --set embedder=none --quiet"
        assert main(f"{made} --judge baseline/chance --judge rules --out results".split()) == 0
        shutil.copytree("results", "other")
        generate_codis(Path("codis"), pairs=2)
        generate_iibench(Path("iibench"), questions=2, dev=2)
        generate_contextual(Path("contextual"), questions=2, val=2)
        _write_small_files()
        _write_made_files()
        yield folder


def _write_small_files() -> None:
    human = Path("results/verdicts.jsonl").read_text().replace('"rules"', '"human"')
    answers = [{"answer": "a"}]
    drawn = {"colors": "blue", "lines": 3, "draw_type": "ellipse"}
    texts: dict[str, Any] = {
        "sightline.toml": CONFIG,
        "policy.toml": '[groups.acc]\nmin = 3\ntest = "better"\n["groups:groups.jsonl".acc]\nmargin = 2\n',
        "task.toml": TASK,
        "plugin.py": PLUGIN,
        "human.jsonl": human,
        "lmms.jsonl": LMMS,
        "vlm.csv": VLM,
        "table.csv": TABLE,
        "table.jsonl": {
            "image": "images/a.png",
            "question": "What?",
            "answers": ["a"],
            "options": ["a", "b"],
        },
        "instances.json": INSTANCES,
        "types.json": {f"000000000007_{number}": drawn for number in range(3)},
        "labels.json": {f"000000000007_{number}": 1 for number in range(3)},
        "questions.json": {"questions": [{"question_id": 1, "image_id": 7, "question": "What is it?"}]},
        "mscoco_val2014_annotations.json": {"annotations": [{"question_id": 1, "answers": answers}]},
        "captions.json": {"scene-000.png": "a house", "scene-001.png": "a tree"},
        "answers.json": {"test-1": "A"},
    }
    for name, text in texts.items():
        Path(name).write_text(text if isinstance(text, str) else json.dumps(text))
    Path("images").mkdir()
    for name, seed in (("a", 9), ("b", 3), ("COCO_val2014_000000000007", 5)):
        Image.effect_mandelbrot((64, 64), (-2, -1, 1, 1), seed).save(f"images/{name}.png")
    Image.open("images/a.png").convert("RGB").save("images/COCO_val2014_000000000007.jpg")
    Path("vlm.xlsx").write_bytes(workbook_bytes(list(csv.reader(io.StringIO(VLM)))))


def _write_made_files() -> None:
    """Files that commands write and others read."""
    for command in (
        f"build perturb table.csv {BUILD}",
        "annotate new rate results --name rated --store rated.db",
        "sweep codis --data codis --model baseline/chance --out sweep --quiet",
    ):
        assert main(command.split()) == 0
    Path("out").rename("built")
    Path("anna.csv").write_text("item,by,verdict\nitem-0001,anna,right\n")
    choice = {"from_name": "verdict", "value": {"choices": ["right"]}}
    annotated = {"data": {"item": "item-0002"}, "annotations": [{"result": [choice], "completed_by": 7}]}
    Path("studio.json").write_text(json.dumps([annotated]))
    potato = {"id": "item-0003", "user_id": "ben", "label_annotations": {"verdict": {"right": "1"}}}
    Path("potato.jsonl").write_text(json.dumps(potato))
    Path("studio.csv").write_text("annotation_id,annotator,item,verdict\n1,7,item-0004,right\n")
    entry = [{"schema": "verdict", "name": "right"}, "right"]
    state = {"user_id": "cleo", "instance_id_to_label_to_value": {"item-0005": [entry]}}
    Path("user_state.json").write_text(json.dumps(state))
    shutil.copy("sweep/sweep.json", ".")


@pytest.mark.slow
@pytest.mark.parametrize("file", COMMANDS)
def test_a_damaged_file_is_read_or_named(folder: Path, capsys: pytest.CaptureFixture[str], file: str) -> None:
    path = folder / file
    valid = path.read_bytes()

    @settings(max_examples=EXAMPLES, suppress_health_check=list(HealthCheck))
    @given(damaged(valid), st.sampled_from(COMMANDS[file]))
    def check(damage: Damage, command: str) -> None:
        path.write_bytes(damage.content)
        status = main(command.split())
        printed = capsys.readouterr().err
        assert status in (0, 1, 2, 5), printed
        assert not unsafe(printed)
        if status == 2:
            assert len(printed.splitlines()) == 1
            assert any(
                name in printed for name in (path.name, path.parent.name, OUTCOMES.get(file, path.name))
            ), printed

    try:
        check()
    finally:
        path.write_bytes(valid)
