"""The images of a user's own table of URLs are downloaded under the same rules as those of a data set."""

from __future__ import annotations

from pathlib import Path

import pytest
from tests.data.hostile import Hostile, drawn, files, hostile, page

from sightline.cli.main import main
from sightline.data.image_download import read_url_table
from sightline.errors import UserError

__all__ = ["hostile"]


def read(folder: Path, text: str, name: str = "mine.csv") -> dict[str, str]:
    (folder / name).write_text(text)
    return read_url_table(folder / name)


def test_a_path_is_the_column_image_or_host_and_path_of_the_url(tmp_path: Path) -> None:
    expected = {"https://h/a%20b/c.png?size=1": "images/h/a b/c.png", "http://h/d": "images/x/y.png"}
    assert read(tmp_path, "id,url,image\n1,https://h/a%20b/c.png?size=1,\n2,http://h/d,x/y.png\n") == expected
    lines = '{"url": "https://h/a%20b/c.png?size=1"}\n{"url": "http://h/d", "image": "x/y.png"}\n'
    assert read(tmp_path, lines, "mine.jsonl") == expected


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("link\nhttp://h/a.png\n", "line 2.*expected a column url"),
        ('url\nhttp://h/a.png\n" "\n', "line 3.*has no URL"),
        ("url,image\nhttp://h/a.png,a.png\nhttp://h/a.png,b.png\n", "line 3.*two paths"),
    ],
)
def test_a_wrong_table_is_an_error_that_names_the_line(tmp_path: Path, text: str, message: str) -> None:
    with pytest.raises(UserError, match=message):
        read(tmp_path, text)


def test_images_of_a_table_are_downloaded_and_failures_listed(
    hostile: Hostile, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    hostile.serve({"/a.png": page(drawn())})
    table = tmp_path / "mine.csv"
    rows = (hostile.url("/a.png") + ",a.png", hostile.url("/b.png") + ",b.png", "http://h/c.png,../c.png")
    table.write_text("url,image\n" + "".join(f"{row}\n" for row in rows))
    words = ["data", "pull", str(table), "--to", str(tmp_path / "to"), "--quiet"]
    assert main([*words, "--allow-private"]) == 1
    said = " ".join(capsys.readouterr().out.split())
    assert f"{tmp_path}/to/mine: images of {table} images: 3; present 0, downloaded 1, missing 2" in said
    assert files(tmp_path / "to") == ["mine/image_manifest.json", "mine/images/a.png"]
    connections = hostile.connections
    assert main(words) == 1
    assert "127.0.0.1 is not a public address" in " ".join(capsys.readouterr().out.split())
    assert hostile.connections == connections


def test_a_name_that_is_neither_a_data_set_nor_a_table_is_wrong_input(
    capsys: pytest.CaptureFixture[str],
) -> None:
    assert main(["data", "pull", "contextaul"]) == 2
    assert "contextual" in capsys.readouterr().err
