"""Annotation pages: the time of a page with 10 annotators at once; no judgement is lost or doubled.

    python perf/annotation.py [--short] [--items N] [--annotators N] [--pause S] [--store URL]
                              [--folder DIR]

The server is `sightline serve`, a process of its own. Each annotator opens the own link and judges items
until none is left: three annotators per item. `--pause` is the time that an annotator takes for an item, on
average; 0 measures the server at its limit. A judgement is one form and the page of the next item, which
follows it. At the end the log is compared with what the pages confirmed.
"""

from __future__ import annotations

import asyncio
import html
import re
import resource
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from random import Random
from statistics import quantiles

import aiohttp

from report import Report, new_parser
from sightline.annotation.links import token_of
from sightline.annotation.store import AnnotationStore
from sightline.annotation.task import task
from sightline.annotation.types import Annotator, Item, Project
from sightline.store.store import Store

PER_ITEM = 3
DAY = 86_400.0
HIDDEN = re.compile(r'<input type="hidden" name="([^"]+)" value="([^"]*)">')

Confirmed = list[tuple[int, int, str]]
"""Annotator, item and verdict of each judgement that a page confirmed."""


def main() -> None:
    """Measure and print."""
    parser = new_parser(__doc__)
    parser.add_argument("--short", action="store_true", help="100 items")
    parser.add_argument("--items", type=int, default=1000)
    parser.add_argument("--annotators", type=int, default=10)
    parser.add_argument("--pause", type=float, default=0.0, help="seconds that an annotator takes per item")
    parser.add_argument("--store", help="database URL; default: a new SQLite file")
    parser.add_argument("--folder", type=Path, help="make the temporary folder here")
    options = parser.parse_args()
    items = 100 if options.short else options.items
    with tempfile.TemporaryDirectory(dir=options.folder) as folder:
        url = options.store or str(Path(folder) / "sightline.db")
        number, tokens = _prepare(url, items, options.annotators)
        confirmed, seconds, wall = _measure(url, tokens, options.pause)
        report = Report()
        _add_times(report, seconds, wall, len(confirmed))
        _compare(url, number, items, confirmed)
        report.note(f"Nothing is lost or doubled: each of {items:,} items has {PER_ITEM} judgements.")
        report.save(options.json)


def _prepare(url: str, items: int, annotators: int) -> tuple[int, list[str]]:
    store = Store.open(url)
    projects = AnnotationStore(store, time.time)
    made = [
        Item(
            number,
            texts={
                "question": (f"What does image {number} show? " * 3,),
                "reference": ("A clock that shows 8:27.",),
                "response": (f"Response {number}. " * 20,),
            },
            group=str(number // 4),
            cluster=str(number // 2),
            targets=(f"{number:064x}",),
        )
        for number in range(1, items + 1)
    ]
    name = f"perf-{time.time_ns()}"
    number = projects.create(Project(name, task("rate"), annotators=PER_ITEM, seed=1), made)
    row = projects.project(name)
    invited = [
        projects.invite(number, Annotator(0, f"A{one}", expires=time.time() + DAY))
        for one in range(annotators)
    ]
    tokens = [token_of(row, one) for one in invited]
    store.close()
    return number, tokens


def _measure(url: str, tokens: list[str], pause: float) -> tuple[Confirmed, list[float], float]:
    command = [sys.executable, "-m", "sightline", "serve", "--store", url, "--port", "0"]
    server = subprocess.Popen(command, stdout=subprocess.PIPE, text=True)
    assert server.stdout is not None
    try:
        found = re.search(r"http://[^/]+", server.stdout.readline())
        if found is None:
            raise SystemExit("the server did not start")
        began = time.perf_counter()
        confirmed, seconds = asyncio.run(_work(found[0], tokens, pause))
        return confirmed, seconds, time.perf_counter() - began
    finally:
        server.send_signal(signal.SIGINT)
        server.wait()


async def _work(base: str, tokens: list[str], pause: float) -> tuple[Confirmed, list[float]]:
    done = await asyncio.gather(*(_annotate(base, token, pause) for token in tokens))
    return [one for confirmed, _ in done for one in confirmed], [one for _, times in done for one in times]


async def _annotate(base: str, token: str, pause: float) -> tuple[Confirmed, list[float]]:
    """Judge until no item is left."""
    project, annotator = map(int, token.split(".")[:2])
    random = Random(annotator)
    confirmed: Confirmed = []
    seconds = []
    jar = aiohttp.CookieJar(unsafe=True)
    async with aiohttp.ClientSession(base, cookie_jar=jar, headers={"origin": base}) as session:
        await _page(session, "GET", f"/annotate/{token}")
        page, _ = await _page(session, "GET", f"/annotate/{project}/item")
        while item := re.search(r'id="judge".*action="/annotate/\d+/items/(\d+)"', page):
            await asyncio.sleep(random.expovariate(1 / pause) if pause else 0)
            form = dict(HIDDEN.findall(page.partition('id="judge"')[2].partition("</form>")[0]))
            verdict = random.randrange(2)
            fields = {name: html.unescape(value) for name, value in form.items()} | {
                "f-verdict": str(verdict)
            }
            path = f"/annotate/{project}/items/{item[1]}"
            page, took = await _page(session, "POST", path, fields)
            seconds.append(took)
            if f"Saved: {('Accept', 'Reject')[verdict]}." in page or "There is no item left" in page:
                confirmed.append((annotator, int(item[1]), ("right", "wrong")[verdict]))
    return confirmed, seconds


async def _page(
    session: aiohttp.ClientSession, method: str, path: str, fields: dict[str, str] | None = None
) -> tuple[str, float]:
    """A page, with the redirect to it, and its time."""
    began = time.perf_counter()
    async with session.request(method, path, data=fields) as answer:
        text = await answer.text()
        if answer.status != 200:
            raise SystemExit(f"{method} {path}: {answer.status} {text}")
    return text, time.perf_counter() - began


def _add_times(report: Report, seconds: list[float], wall: float, judgements: int) -> None:
    usage = resource.getrusage(resource.RUSAGE_CHILDREN)
    cpu = usage.ru_utime + usage.ru_stime
    cuts = quantiles(seconds, n=100)
    heads = ("wall", "p50", "p95", "p99", "processor time of the server a judgement", "peak MB")
    report.table("A judgement and the next page", "", *heads)
    report.row(
        f"{judgements:,} judgements",
        f"{wall:.1f} s",
        *(f"{1000 * cuts[percent - 1]:.0f} ms" for percent in (50, 95, 99)),
        f"{1000 * cpu / judgements:.1f} ms",
        f"{usage.ru_maxrss / 1024:.0f}",
    )


def _compare(url: str, number: int, items: int, confirmed: Confirmed) -> None:
    """Stop with an error if the log is not what the pages confirmed, or an item has too many judgements."""
    store = Store.open(url)
    log = AnnotationStore(store, time.time).entries(number)
    store.close()
    found = Counter((one.annotator, one.item, one.values["verdict"]) for one in log)
    if found != Counter(confirmed):
        raise SystemExit(f"the log differs: {len(log):,} entries, {len(confirmed):,} confirmed judgements")
    per_item = Counter(item for _, item, _ in confirmed)
    if set(per_item.values()) != {PER_ITEM} or len(per_item) != items:
        raise SystemExit(f"judgements per item: {Counter(per_item.values())}")
    if len({(one.annotator, one.item) for one in log}) != len(log):
        raise SystemExit("an annotator judged an item twice")


if __name__ == "__main__":
    main()
