"""`sightline build` from its words to its folder, with exit statuses that say how it ended."""

from __future__ import annotations

import hashlib
import json
import os
import resource
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from PIL import Image

from sightline.builders.folder import read_manifest
from sightline.cli.build import SUBCOMMANDS
from sightline.cli.main import main
from sightline.formats.groups import read_groups
from sightline.formats.journal import JOURNAL

Capture = pytest.CaptureFixture[str]

MIRROR = """from PIL import ImageOps

class Mirror:
    name = "mirror"
    variants = {"mirrored": {"mirror": "yes"}}

    def apply(self, image, variant, random):
        return ImageOps.mirror(image)

perturbations = {"mirror": Mirror}
"""


def draw(path: Path, seed: int, side: int = 32) -> None:
    values = np.random.default_rng(seed).integers(0, 256, (side, side, 3), dtype=np.uint8)
    path.parent.mkdir(parents=True, exist_ok=True)
    Image.fromarray(values).save(path)


@pytest.fixture
def photos(tmp_path: Path) -> Path:
    """Two class folders with two images each."""
    for number in range(4):
        draw(tmp_path / "photos" / ("wine_cellar" if number % 2 else "bar") / f"{number}.png", number)
    return tmp_path / "photos"


def content(folder: Path) -> dict[str, str]:
    return {
        path.relative_to(folder).as_posix(): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in folder.rglob("*")
        if path.is_file()
    }


def perturb(source: Path, out: Path, *words: str) -> int:
    base = ["build", "perturb", str(source), "--out", str(out), "--quiet"]
    usual = {"--processes": "1", "--kind": "jpeg"}
    added = [word for option, value in usual.items() if option not in words for word in (option, value)]
    return main([*base, *added, *words])


# --- words


def test_build_without_a_subcommand_lists_all_subcommands(capsys: Capture) -> None:
    assert main(["build"]) == 0
    shown = capsys.readouterr().out
    for subcommand, (_, summary) in SUBCOMMANDS.items():
        assert f"    {subcommand}" in shown
        assert summary.split()[0] in shown


@pytest.mark.parametrize("subcommand", SUBCOMMANDS)
def test_every_subcommand_has_help_with_an_example(subcommand: str, capsys: Capture) -> None:
    with pytest.raises(SystemExit) as stopped:
        main(["build", subcommand, "--help"])
    assert stopped.value.code == 0
    assert f"sightline build {subcommand} " in capsys.readouterr().out.split("example", 1)[1]


def test_the_options_of_the_builders_import_nothing_heavy() -> None:
    code = (
        "import sys, sightline.cli.main as m\n"
        "m.build_parser(['build', 'perturb'])\n"
        "heavy = {'torch', 'numpy', 'PIL', 'pycocotools', 'matplotlib', 'sentence_transformers'}\n"
        "print(sorted(n for n in sys.modules if n in heavy))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert done.stdout == "[]\n"


JPEG = ["build", "perturb", "{photos}", "--kind", "jpeg", "--out", "{out}"]
WRONG: dict[str, tuple[list[str], str]] = {
    "a kind unknown": (["build", "maks"], "unknown subcommand of build 'maks', did you mean 'mask'?"),
    "an option unknown": (["build", "perturb", "x", "--kinds", "jpeg"], "did you mean '--kind'?"),
    "no source": (["build", "perturb", "--kind", "jpeg", "--out", "{out}"], "required: SOURCE"),
    "no out": (["build", "perturb", "{photos}", "--kind", "jpeg"], "required: --out"),
    "source of nowhere": (["build", "perturb", "{out}/none", *JPEG[3:]], "there is no such"),
    "perturbation unknown": (["build", "perturb", "{photos}", "--kind", "jepg", "--out", "{out}"], "'jpeg'?"),
    "limit": ([*JPEG, "--limit", "0"], "--limit leaves nothing"),
    "processes": ([*JPEG, "--processes", "0"], "--processes is"),
    "nothing asked": ([*JPEG, "--prompt", " "], "has no question"),
    "no question to fill in": (
        [*JPEG, "--prompt", "Say: {{question}}"],
        "has no question",
    ),
    "images of a folder": (
        [*JPEG, "--images", "{photos}"],
        "--images needs a table",
    ),
    "images of nowhere": (
        [*JPEG, "--images", "{out}"],
        "there is no such folder",
    ),
    "out among the images": (
        [*JPEG[:-1], "{photos}/made"],
        "is inside the image folder",
    ),
    "out is the images' folder": ([*JPEG[:-1], "{photos}"], "is inside"),
    "out holds the images": (
        [*JPEG[:-1], "{photos}/.."],
        "contains the input",
    ),
    "no plugin": (
        ["build", "perturb", "{photos}", "--kind", "own", "--out", "{out}", "--plugin", "{out}.py"],
        "there is no such file",
    ),
    "apart from nothing built": (
        [*JPEG, "--apart-from", "{photos}"],
        "is not a folder of `sightline build`",
    ),
}  # fmt: skip


@pytest.mark.parametrize("case", WRONG)
def test_a_wrong_call_is_refused_in_one_line_and_nothing_is_written(
    tmp_path: Path, photos: Path, capsys: Capture, case: str
) -> None:
    words, message = WRONG[case]
    before = content(tmp_path)
    status = main([word.format(photos=photos, out=tmp_path / "out") for word in words])
    said = capsys.readouterr().err
    assert status == 2
    assert message in said
    assert said.startswith("sightline: ")
    assert "Traceback" not in said
    assert content(tmp_path) == before
    assert not (tmp_path / "out").exists()


# --- what is built


def test_a_folder_of_classes_becomes_groups_with_the_papers_question(
    tmp_path: Path, photos: Path, capsys: Capture
) -> None:
    assert perturb(photos, tmp_path / "out", "--format", "jpeg") == 0
    assert "4 groups, 16 probes" in capsys.readouterr().out
    lines = read_groups(tmp_path / "out" / "groups.jsonl")
    # Chou et al. 2024, Appendix A: the prompt of image restyling.
    assert {line.prompt for line in lines} == {"Please describe the place in the image in two sentences."}
    assert [line.references for line in lines[::4]] == [("bar",)] * 2 + [("wine cellar",)] * 2
    assert {Path(line.images[0]).suffix for line in lines} == {".jpg"}
    settings = read_manifest(tmp_path / "out").settings
    assert (settings["perturbation"], settings["seed"], settings["format"]) == ("jpeg", 0, "jpeg")


def test_a_second_run_finds_all_done_and_other_options_are_refused(
    tmp_path: Path, photos: Path, capsys: Capture
) -> None:
    out = tmp_path / "out"
    assert perturb(photos, out) == 0
    before = {path: path.stat().st_mtime_ns for path in out.rglob("*")}
    assert perturb(photos, out) == 0
    assert perturb(photos, out, "--processes", "2") == 0
    assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
    for words, differs in (
        (("--kind", "crop"), "perturbation 'jpeg' instead of 'crop'"),
        (("--seed", "1"), "seed 0 instead of 1"),
        (("--prompt", "What?"), "instead of 'What?'"),
        (("--format", "jpeg"), "format 'png' instead of 'jpeg'"),
        (("--limit", "2"), "other sources"),
    ):
        capsys.readouterr()
        assert perturb(photos, out, *words) == 2
        assert differs in capsys.readouterr().err
        assert {path: path.stat().st_mtime_ns for path in out.rglob("*")} == before
    assert perturb(photos, out, "--seed", "1", "--force") == 0
    assert read_manifest(out).settings["seed"] == 1


def test_drops_are_reported_with_their_reasons(tmp_path: Path, photos: Path, capsys: Capture) -> None:
    (photos / "bar" / "text.jpg").write_text("404: not found")
    (photos / "bar" / "empty.jpg").write_bytes(b"")
    assert perturb(photos, tmp_path / "out") == 0
    said = capsys.readouterr().err
    assert "dropped: bar-empty: the file is empty" in said
    assert "dropped: bar-text: not an image in a known format" in said
    assert list(read_manifest(tmp_path / "out").dropped) == ["bar-empty", "bar-text"]


def test_where_nothing_is_left_the_reason_is_reported(tmp_path: Path, capsys: Capture) -> None:
    (tmp_path / "bad").mkdir()
    (tmp_path / "bad" / "a.jpg").write_text("404")
    assert perturb(tmp_path / "bad", tmp_path / "out") == 2
    assert "all 1 sources are dropped (a: not an image" in capsys.readouterr().err
    assert not (tmp_path / "out").exists()


def test_training_and_test_sets_are_kept_apart_by_image(
    tmp_path: Path, photos: Path, capsys: Capture
) -> None:
    assert perturb(photos, tmp_path / "test", "--limit", "3") == 0
    assert perturb(photos, tmp_path / "train", "--apart-from", str(tmp_path / "test")) == 0
    assert "compared with its 3 images" in capsys.readouterr().out
    test, train = (set(read_manifest(tmp_path / name).sources.values()) for name in ("test", "train"))
    assert (len(test), len(train), test & train) == (3, 1, set())


def test_a_perturbation_of_ones_own_works_in_other_processes_too(tmp_path: Path, photos: Path) -> None:
    (tmp_path / "mirror.py").write_text(MIRROR)
    words = ("--kind", "mirror", "--plugin", str(tmp_path / "mirror.py"))
    assert perturb(photos, tmp_path / "one", *words) == 0
    assert perturb(photos, tmp_path / "two", *words, "--processes", "2") == 0
    assert content(tmp_path / "one") == content(tmp_path / "two")
    original, mirrored = read_groups(tmp_path / "one" / "groups.jsonl")[:2]
    before, after = (
        np.asarray(Image.open(tmp_path / "one" / line.images[0])) for line in (original, mirrored)
    )
    assert np.array_equal(after, before[:, ::-1])
    assert mirrored.labels == {"class": "bar", "mirror": "yes"}


def test_a_plugin_that_changed_is_another_setting(tmp_path: Path, photos: Path, capsys: Capture) -> None:
    (tmp_path / "mirror.py").write_text(MIRROR)
    words = ("--kind", "mirror", "--plugin", str(tmp_path / "mirror.py"))
    assert perturb(photos, tmp_path / "out", *words) == 0
    (tmp_path / "mirror.py").write_text(MIRROR.replace("mirror(image)", "flip(image)"))
    assert perturb(photos, tmp_path / "out", *words) == 2
    assert "holds another build: plugins" in capsys.readouterr().err


def test_the_questions_of_a_table_become_prompts(tmp_path: Path, photos: Path) -> None:
    rows = [{"image": "bar/0.png", "question": "How many?", "answers": ["two", "2"]}, {"image": "bar/2.png"}]
    (tmp_path / "t.jsonl").write_text("".join(json.dumps(row) + "\n" for row in rows))
    assert perturb(tmp_path / "t.jsonl", tmp_path / "out", "--images", str(photos), "--prompt", "Where?") == 0
    lines = read_groups(tmp_path / "out" / "groups.jsonl")
    assert [(line.prompt, line.references) for line in lines[::4]] == [
        ("How many?", ("two", "2")),
        ("Where?", ()),
    ]


# --- ends before the end


def command(photos: Path, out: Path, processes: int) -> list[str]:
    words = ["build", "perturb", str(photos), "--kind", "blur", "--out", str(out), "--quiet"]
    return [sys.executable, "-m", "sightline", *words, "--processes", str(processes)]


@pytest.fixture(scope="module")
def many(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Images enough to be interrupted in, the last one large, and the undisturbed build of them."""
    folder = tmp_path_factory.mktemp("many")
    for number in range(24):
        draw(folder / "photos" / f"p{number:02}.png", number, 200)
    draw(folder / "photos" / "z.png", 99, 400)
    assert perturb(folder / "photos", folder / "whole", "--kind", "blur") == 0
    return folder


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_ctrl_c_ends_with_130_says_so_quietly_and_the_same_command_goes_on(
    many: Path, tmp_path: Path, processes: int
) -> None:
    out = tmp_path / "out"
    words = command(many / "photos", out, processes)
    # A session of its own: Ctrl-C reaches every process of it, as on a terminal.
    with subprocess.Popen(words, stderr=subprocess.PIPE, text=True, start_new_session=True) as process:
        while not (out / JOURNAL).exists() or (out / JOURNAL).read_bytes().count(b"\n") < 3:
            time.sleep(0.002)
        os.killpg(process.pid, signal.SIGINT)
        _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert said.count("\n") == 1
    assert said.startswith("interrupted")
    assert "run the same command" in said
    assert perturb(many / "photos", out, "--kind", "blur") == 0
    assert content(out) == content(many / "whole")


@pytest.mark.slow
@pytest.mark.parametrize("processes", [1, 2])
def test_a_disk_that_refuses_gives_3_and_keeps_what_is_done(
    many: Path, tmp_path: Path, processes: int
) -> None:
    out = tmp_path / "out"
    words = command(many / "photos", out, processes)
    # No file may grow beyond this: the images of the large source do, those of the others do not.
    done = subprocess.run(
        words,
        capture_output=True,
        text=True,
        preexec_fn=lambda: resource.setrlimit(resource.RLIMIT_FSIZE, (300_000, 300_000)),
    )
    assert done.returncode == 3
    assert "z_original.png: cannot be written: File too large" in done.stderr
    assert done.stderr.count("\n") == 1
    # Of two processes the other one may still have been at work on the last but one.
    assert (out / JOURNAL).read_bytes().count(b"\n") >= 24
    assert not (out / "manifest.json").exists()
    assert not list(out.rglob("*.tmp"))
    assert perturb(many / "photos", out, "--kind", "blur") == 0
    assert content(out) == content(many / "whole")


@pytest.mark.slow
def test_a_second_process_in_the_same_folder_is_refused(many: Path, tmp_path: Path) -> None:
    out = tmp_path / "out"
    words = command(many / "photos", out, 1)
    with subprocess.Popen(words) as process:
        while not (out / JOURNAL).exists() or (out / JOURNAL).read_bytes().count(b"\n") < 2:
            time.sleep(0.002)
        os.kill(process.pid, signal.SIGSTOP)
        second = subprocess.run(words, capture_output=True, text=True)
        os.kill(process.pid, signal.SIGCONT)
    assert second.returncode == 2
    assert "another process works there" in second.stderr
    assert process.returncode == 0
    assert content(out) == content(many / "whole")
