"""A results folder opens as a run of a temporary store: it has the groups and numbers of the run."""

from __future__ import annotations

import os
from pathlib import Path

import pytest
from msgspec.structs import replace

import sightline
from sightline.cli.main import main
from sightline.errors import UserError
from sightline.evaluation.run_images import NOT_SENT
from sightline.store.store import Store
from sightline.text import local_time
from sightline.viewer.index import OutcomeIndex
from sightline.viewer.opened import import_results
from training.scenes.build import generate_codis


def test_a_folder_shows_what_its_run_shows(tmp_path: Path) -> None:
    data = generate_codis(tmp_path / "codis", pairs=6)
    url, out = str(tmp_path / "s.db"), tmp_path / "results"
    sightline.run("codis", model="baseline/chance", data=data, store=url, out=out)
    there, here = Store.open(url), Store.open(str(tmp_path / "temporary.db"))
    original, opened = OutcomeIndex(there), OutcomeIndex(here)
    original.build(1)
    os.utime(out / "metrics.json", (1e9, 1e9))
    run = import_results(here, out, [data])
    line = opened.summary(run).line
    assert (line.name, line.started, line.note) == ("results", local_time(1e9), str(out))
    assert line.seconds is None, "the time since the files were written is no time of the run"
    again = opened.summary(import_results(here, out)).line
    assert again.name is None, "a name belongs to one run"
    assert opened.state(run).step == "ready"
    assert opened.summary(run).result == original.summary(1).result
    assert opened.summary(run).line.task == "codis:default"
    assert opened.open(run).page() == original.open(1).page()
    for number in range(1, 7):
        original_group = original.open(1).group(number)
        assert all(image.is_sent for images in original_group.images for image in images)
        unsent = tuple(
            tuple(replace(image, is_sent=False) for image in images) for images in original_group.images
        )
        assert opened.open(run).group(number) == replace(original_group, images=unsent)
    image = opened.open(run).group(1).images[0][0]
    assert opened.open(run).image_path(image.digest) == image.path
    shown = [
        index.images(number).content(image.path, image.digest)
        for index, number in ((opened, run), (original, 1))
    ]
    assert shown[0] == shown[1]
    there.close()
    here.close()


def test_replayed_answers_show_the_images_of_the_data_folder_and_say_that_none_was_sent(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = generate_codis(tmp_path / "codis", pairs=6)
    url, out = str(tmp_path / "s.db"), tmp_path / "results"
    sightline.run("codis", model="baseline/chance", data=data, store=url, out=out)
    sightline.run("codis", model=f"replay/{out / 'answers.jsonl'}", data=data, store=url)
    store = Store.open(url)
    index = OutcomeIndex(store)
    index.build(1)
    index.build(2)
    for number in range(1, 7):
        sent, replayed = (index.open(run).group(number) for run in (1, 2))
        assert [[replace(image, is_sent=True) for image in images] for images in replayed.images] == [
            list(images) for images in sent.images
        ]
        assert not any(image.is_sent for images in replayed.images for image in images)
    store.close()
    assert main(["show", "1", "-n", "1", "--store", url]) == 0
    assert NOT_SENT not in capsys.readouterr().out
    assert main(["show", "2", "-n", "1", "--store", url]) == 0
    assert NOT_SENT in capsys.readouterr().out


def test_a_folder_without_results_is_an_error(tmp_path: Path) -> None:
    store = Store.open(str(tmp_path / "s.db"))
    with pytest.raises(UserError, match="nor a results folder"):
        import_results(store, tmp_path)
    assert store.runs.all() == []
    store.close()
