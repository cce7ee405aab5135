"""The layout is found by looking into the file; what nobody knows is refused with what was looked for."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from sightline.benchmarks.registry import benchmark_class
from sightline.errors import UserError
from sightline.formats.other_tools import LAYOUTS, read_predictions


@pytest.mark.parametrize(
    ("content", "found"),
    [
        ('{"schema": 1, "metrics": []}', "the fields schema, metrics"),
        ('[{"id": "000", "answer": "A"}]', "the fields id, answer"),
        ("[]", "no record"),
        ("# Notes\nsome words, and some more\n", "the fields # Notes"),
        ("index,question\n1,Why?\n", "the fields index, question"),
    ],
)
def test_an_unknown_layout_is_refused_with_what_was_looked_for(
    tmp_path: Path, content: str, found: str
) -> None:
    path = tmp_path / "f"
    path.write_text(content)
    with pytest.raises(UserError) as caught:
        read_predictions(path, benchmark_class("iibench").answer_files, setting="none")
    assert f"{path}: the format is unknown (found '{found}')" in str(caught.value)
    for layout in (*LAYOUTS, *benchmark_class("iibench").answer_files.layouts):
        assert layout.fields in str(caught.value)


def test_bytes_that_are_no_text_are_refused(tmp_path: Path) -> None:
    (tmp_path / "f.bin").write_bytes(b"\x89PNG\r\n\x1a\n")
    with pytest.raises(UserError, match="neither a workbook nor UTF-8 text"):
        read_predictions(tmp_path / "f.bin", benchmark_class("iibench").answer_files, setting="none")


def test_a_broken_first_record_does_not_hide_the_layout(tmp_path: Path) -> None:
    path = tmp_path / "f.jsonl"
    path.write_text('{"id": "test-1"}\n{"id": "test-2", "response": "A"}\n')
    with pytest.raises(UserError, match="record line 1, field response: has no answer"):
        read_predictions(path, benchmark_class("iibench").answer_files, setting="none")


def test_reading_formats_loads_nothing_heavy() -> None:
    heavy = "{'numpy', 'pandas', 'openpyxl', 'PIL'}"
    code = f"import sys, sightline.formats.other_tools; print({heavy} & set(sys.modules))"
    assert subprocess.run([sys.executable, "-c", code], capture_output=True, text=True).stdout == "set()\n"
