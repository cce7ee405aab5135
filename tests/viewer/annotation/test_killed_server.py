"""A server that is killed loses nothing that a page confirmed."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import threading
import time
from pathlib import Path

import httpx2
import pytest
from tests.e2e.conftest import SIGHTLINE
from tests.viewer.annotation.conftest import DAY, responses

from sightline.annotation.links import token_of
from sightline.annotation.store import AnnotationStore
from sightline.annotation.task import task
from sightline.annotation.types import Annotator, Project
from sightline.store.store import Store

pytestmark = pytest.mark.slow

NAMES = ("AK", "BR", "CM")


def test_after_kill_9_every_confirmed_judgement_is_in_the_log(tmp_path: Path) -> None:
    url = str(tmp_path / "sightline.db")
    store = Store.open(url)
    annotations = AnnotationStore(store, time.time)
    (tmp_path / "data").mkdir()
    items = responses(tmp_path / "data", 200)
    project = annotations.create(Project("killed", task("rate"), data=str(tmp_path / "data")), items)
    row = annotations.project("killed")
    invited = [annotations.invite(project, Annotator(0, name, expires=time.time() + DAY)) for name in NAMES]
    store.close()
    confirmed: list[tuple[int, int]] = []
    enough = threading.Event()

    def work(base: str, annotator: Annotator) -> None:
        with httpx2.Client(base_url=base, headers={"origin": base}, follow_redirects=True) as client:
            client.get(f"/annotate/{token_of(row, annotator)}")
            page = client.get(f"/annotate/{project}/item").text
            while True:
                form = page.partition('id="judge"')[2].partition("</form>")[0]
                action = re.search(r'action="([^"]+/items/(\d+))"', form)
                assert action is not None
                fields = dict(re.findall(r'<input type="hidden" name="([^"]+)" value="([^"]*)">', form))
                try:
                    page = client.post(action[1], data=fields | {"f-verdict": "0"}).text
                except httpx2.HTTPError:
                    return  # The server was killed before it answered.
                assert "Saved: Accept." in page
                confirmed.append((annotator.number, int(action[2])))
                if len(confirmed) > 40:
                    enough.set()

    server = subprocess.Popen(
        [*SIGHTLINE, "serve", "--store", url, "--port", "0"], stdout=subprocess.PIPE, text=True
    )
    assert server.stdout is not None
    base = re.search(r"http://[^/]+", server.stdout.readline())
    assert base is not None
    workers = [threading.Thread(target=work, args=(base[0], one)) for one in invited]
    for worker in workers:
        worker.start()
    assert enough.wait(60)
    os.kill(server.pid, signal.SIGKILL)
    server.wait()
    for worker in workers:
        worker.join()
    store = Store.open(url)
    log = AnnotationStore(store, time.time).entries(project)
    store.close()
    kept = [(entry.annotator, entry.item) for entry in log]
    assert len(set(kept)) == len(kept)
    assert set(confirmed) <= set(kept)
    # At most one judgement of each annotator was committed and not confirmed.
    assert len(kept) <= len(confirmed) + len(NAMES)
