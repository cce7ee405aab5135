"""Files are known again by their content."""

from __future__ import annotations

from pathlib import Path

from sightline.formats.files import changed_files, file_digest


def test_missing_and_changed_files_are_listed(tmp_path: Path) -> None:
    for name in ("a", "b", "c"):
        (tmp_path / name).write_text(name)
    files = {name: file_digest(tmp_path / name) for name in ("a", "b", "c")}
    (tmp_path / "b").write_text("other")
    (tmp_path / "c").unlink()
    assert changed_files(tmp_path, files) == ["b", "c"]
