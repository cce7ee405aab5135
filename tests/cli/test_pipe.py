"""Whoever reads standard output may leave: nothing is wrong then, and the course is told all the same."""

from __future__ import annotations

import json
import shlex
import subprocess
import sys
from pathlib import Path

import pytest

from sightline.cli.main import main
from training.scenes.build import generate_iibench

SIGHTLINE = [sys.executable, "-m", "sightline"]


def left_alone(tmp_path: Path, *words: str) -> tuple[int, str]:
    """Exit status and standard error of a command whose output nobody reads."""
    process = subprocess.Popen(
        [*SIGHTLINE, *words], cwd=tmp_path, text=True, stdout=subprocess.PIPE, stderr=subprocess.PIPE
    )
    assert process.stdout is not None
    process.stdout.close()
    assert process.stderr is not None
    error = process.stderr.read()
    return process.wait(), error


@pytest.mark.slow
@pytest.mark.parametrize("form", ["table", "json"])
def test_a_run_that_nobody_reads_ends_as_it_went_and_tells_its_course(tmp_path: Path, form: str) -> None:
    generate_iibench(tmp_path / "data", questions=1, dev=2)
    words = ["--model", "baseline/chance", "--data", "data", "--split", "dev", "--quiet", "--format", form]
    assert left_alone(tmp_path, "run", "iibench", *words) == (0, "run 1: sent 2, cached 0, retries 0\n")
    status, error = left_alone(tmp_path, "run", "iibench", *words, "--fresh", "x", "--max-requests", "1")
    assert (status, "requests to the model stopped at the budget" in error) == (4, True)


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_a_disk_that_is_full_is_told_of_standard_output(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*SIGHTLINE, "list", "contextual", "--json"],
            cwd=tmp_path,
            text=True,
            stdout=full,
            stderr=subprocess.PIPE,
        )
    told = "sightline: standard output: cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (3, told)


@pytest.mark.slow
def test_a_report_that_nobody_reads_is_no_error(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    generate_iibench(tmp_path / "data", questions=1, dev=2)
    run()
    assert left_alone(tmp_path, "report") == (0, "")
    assert left_alone(tmp_path, "report", "--pivot") == (0, "")


@pytest.mark.slow
def test_commands_that_print_line_by_line_end_as_they_went(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    generate_iibench(tmp_path / "data", questions=1, dev=2)
    run()
    assert left_alone(tmp_path, "show", "1") == (0, "")
    assert left_alone(tmp_path, "data", "describe", "iibench", "--data", "data") == (0, "")


@pytest.mark.slow
@pytest.mark.parametrize("form", ["table", "json"])
def test_a_condition_holds_where_nobody_reads_the_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    generate_iibench(tmp_path / "data", questions=1, dev=12)
    images = json.loads((tmp_path / "data" / "dev.json").read_bytes())
    key = {one["id"]: one["answer"] for image in images for one in image["questions"]}
    wrong = {name: "B" if letter == "A" else "A" for name, letter in key.items()}
    for name, said in (("right", key), ("wrong", wrong)):
        lines = [json.dumps({"id": one, "response": letter}) for one, letter in said.items()]
        (tmp_path / f"{name}.jsonl").write_text("\n".join(lines))
        run(f"replay/{name}.jsonl")
    for command, condition in (("report 2", "accuracy<30"), ("compare 1 2", "worse")):
        words = [*command.split(), "--format", form, "--fail-if", condition]
        status, error = left_alone(tmp_path, *words)
        assert (status, error.startswith(f"--fail-if {condition}: ")) == (5, True), error


def test_a_fault_in_the_data_is_told_where_nobody_reads_the_table(tmp_path: Path) -> None:
    generate_iibench(tmp_path / "data", questions=1, dev=2)
    (tmp_path / "data" / "images" / "dev" / "dev-1.png").unlink()
    status, error = left_alone(tmp_path, "data", "check", "iibench", "--data", "data", "--quiet")
    assert (status, "missing: images/dev/dev-1.png" in error) == (1, True)


def run(model: str = "baseline/chance") -> None:
    assert main(["run", "iibench", "--model", model, "--data", "data", "--split", "dev", "--quiet"]) == 0


RUN = ("run", "iibench", "--model", "baseline/chance", "--data", "data", "--split", "dev", "--name", "zoë名")


@pytest.mark.slow
@pytest.mark.skipif(sys.platform == "win32", reason="redirections of a POSIX shell")
@pytest.mark.parametrize(
    "streams",
    ["<&-", ">&-", "2>&-", ">&- 2>&-", "<&- >&- 2>&-", "</dev/null", "| true", "2> >(true)", "2>/dev/full"],
)
@pytest.mark.parametrize("form", ["table", "json"])
def test_a_complete_run_is_complete_whatever_its_streams_are(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, streams: str, form: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONUNBUFFERED", "1")
    generate_iibench(tmp_path / "data", questions=1, dev=2)
    command = shlex.join([*SIGHTLINE, *RUN, "--format", form, "--out", "out"])
    script = f"{command} {streams}; exit ${{PIPESTATUS[0]}}"
    done = subprocess.run(["bash", "-c", script], capture_output=True)
    assert done.returncode == 0
    assert len((tmp_path / "out" / "answers.jsonl").read_bytes().splitlines()) == 2
    listed = subprocess.run([*SIGHTLINE, "runs", "list", "--json"], capture_output=True)
    assert [(run["name"], run["state"]) for run in json.loads(listed.stdout)] == [("zoë名", "complete")]
    if "<" in streams and ">" not in streams:
        assert "zoë名".encode() in done.stdout or form == "json"


@pytest.mark.slow
@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "cp1252", "utf-8"])
def test_an_encoding_without_a_character_loses_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, encoding: str
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("PYTHONIOENCODING", encoding)
    generate_iibench(tmp_path / "data", questions=1, dev=2)
    printed = subprocess.run([*SIGHTLINE, *RUN], capture_output=True)
    assert (printed.returncode, b"Traceback" in printed.stderr) == (0, False)
    as_json = subprocess.run([*SIGHTLINE, "runs", "list", "--json"], capture_output=True)
    assert [run["name"] for run in json.loads(as_json.stdout.decode(encoding))] == ["zoë名"]
    shown = subprocess.run([*SIGHTLINE, "runs", "list"], capture_output=True).stdout.decode(encoding)
    assert ("zoë名" if encoding == "utf-8" else r"\u540d") in shown


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full")
def test_lines_that_a_full_disk_loses_at_the_end_are_told(tmp_path: Path) -> None:
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [*SIGHTLINE, "annotate", "tasks"], stdout=full, stderr=subprocess.PIPE, text=True
        )
    told = "sightline: standard output: cannot be written: No space left on device\n"
    assert (done.returncode, done.stderr) == (3, told)


@pytest.mark.skipif(sys.platform == "win32", reason="redirections of a POSIX shell")
def test_a_file_never_takes_the_number_of_a_closed_stream(tmp_path: Path) -> None:
    code = (
        "from sightline.cli.printing import open_streams; open_streams(); file = open('n', 'w');"
        "print(file.fileno(), file=file)"
    )
    script = shlex.join([sys.executable, "-c", code]) + " <&- >&- 2>&-"
    assert subprocess.run(["bash", "-c", script], cwd=tmp_path).returncode == 0
    assert int((tmp_path / "n").read_text()) > 2
