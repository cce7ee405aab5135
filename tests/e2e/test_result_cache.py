"""A result that was judged before is not judged again, unless anything that it depends on changed."""

from __future__ import annotations

import json
import sqlite3
from collections.abc import Callable
from pathlib import Path
from typing import Any

import msgspec
import pytest
from msgspec.structs import replace

import sightline
from sightline.benchmarks.groups.benchmark import Groups
from sightline.engine import runs
from sightline.engine.answers import Attempt
from sightline.engine.store import Store
from sightline.evaluation import code_digest as code
from sightline.evaluation import result_key
from sightline.evaluation.description import describe_evaluation
from sightline.evaluation.prepare import prepare_evaluation
from sightline.evaluation.prepared import PreparedMeasures
from sightline.evaluation.recompute import recompute
from sightline.formats.groups import GroupLine, write_groups
from sightline.metric_types import Result
from sightline.models.embedder import SentenceEmbedder
from sightline.plan.spec import Spec
from sightline.results import aggregate, result_cache
from sightline.types import Failure

FILES = ("answers.jsonl", "verdicts.jsonl", "metrics.json", "report.md")

Judged = Callable[[], int]


@pytest.fixture
def judged(monkeypatch: pytest.MonkeyPatch) -> Judged:
    """How often answers were judged since the last call."""
    calls: list[str] = []
    judge = aggregate.count_answers

    def counted(*arguments: Any, **options: Any) -> Any:
        calls.append("judged")
        return judge(*arguments, **options)

    def count() -> int:
        number = len(calls)
        calls.clear()
        return number

    monkeypatch.setattr(aggregate, "count_answers", counted)
    return count


@pytest.fixture
def run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[..., sightline.Evaluation]:
    """Runs a groups file of 40 probes; the lines of its files fill several parts."""
    monkeypatch.setattr(runs, "PROBES_PER_CHUNK", 7)
    monkeypatch.setattr(result_cache, "LEAST_LINES", 1)
    monkeypatch.chdir(tmp_path)
    lines = [
        GroupLine(f"g{number % 10}", f"v{number // 10}", prompt=f"Is it {number} or 3?", references=("3",))
        for number in range(40)
    ]
    write_groups(lines, tmp_path / "g.jsonl")

    def start(out: str | None = "out", **options: Any) -> sightline.Evaluation:
        options = {"set": {"embedder": "none"}, "model": "baseline/chance", "force": True, **options}
        return sightline.run("groups:g.jsonl", out=out, **options)

    return start


def content(folder: str) -> dict[str, bytes]:
    return {name: Path(folder, name).read_bytes() for name in FILES}


def plain(result: Result) -> Any:
    return json.loads(msgspec.json.encode(result))


def test_the_files_of_a_cached_result_have_the_same_bytes(run: Any, judged: Judged, store_url: str) -> None:
    first = run(store=store_url)
    assert judged() == 1
    again = run(out="again", store=store_url)
    assert judged() == 0
    assert content("out") == content("again")
    assert (again.result, again.unanswered) == (first.result, first.unanswered)


@pytest.mark.parametrize(
    "damage",
    [
        "UPDATE results SET body = substr(body, 1, length(body) - 9)",
        "DELETE FROM results WHERE length(body) = {}",
    ],
    ids=["damaged", "a part is missing"],
)
def test_a_cached_result_that_is_damaged_is_judged_again_and_replaced(
    run: Any, judged: Judged, capsys: pytest.CaptureFixture[str], damage: str
) -> None:
    first = run()
    judged()
    before = content("out")
    with sqlite3.connect("sightline.db") as connection:
        sizes = connection.execute("SELECT min(length(body)) FROM results").fetchone()
        connection.execute(damage.format(*sizes))
    again = run()
    assert judged() == 1
    assert "judged again" in capsys.readouterr().err
    assert (content("out"), again.result) == (before, first.result)
    run()
    assert judged() == 0, "the damaged result was not replaced"
    assert capsys.readouterr().err == ""


def test_without_a_folder_the_result_is_cached_without_its_lines(run: Any, judged: Judged) -> None:
    run(out=None)
    run(out=None)
    assert judged() == 1
    run()
    assert judged() == 1, "the lines were not kept"
    run(out=None)
    assert judged() == 0


def test_without_a_folder_the_lines_of_a_cached_result_are_not_read(
    run: Any, judged: Judged, monkeypatch: pytest.MonkeyPatch
) -> None:
    run()
    assert judged() == 1
    monkeypatch.delattr(result_cache.ResultCache, "lines")
    run(out=None)
    assert judged() == 0


def test_report_always_judges_again(run: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    first = run()
    monkeypatch.setattr(result_cache.ResultCache, "load", lambda *_, **__: pytest.fail("it was looked up"))
    store = Store.open("sightline.db")
    assert plain(recompute(store)) == plain(first.result)
    store.close()


def change_options(run: Any) -> None:
    run(set={"embedder": "none", "empty": "ignore"})


def change_row(run: Any) -> None:
    run(limit=5)


def change_data(run: Any) -> None:
    text = Path("g.jsonl").read_text()
    Path("g.jsonl").write_text(text.replace('"references":["3"]', '"references":["4"]', 1))
    run()


def change_model(run: Any) -> None:
    run(seed=1)


def change_code(run: Any) -> None:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(code, "code_digest", lambda: b"other")
        run()


def fail_then_answer(run: Any) -> None:
    """The first probe had failed for good; --retry-errors stores an answer."""
    line = json.loads(Path("out/answers.jsonl").read_text().partition("\n")[0])
    store = Store.open("sightline.db")
    body = store.answers.request(line["key"])
    assert body is not None
    store.close()
    for path in Path().glob("sightline.db*"):
        path.unlink()
    store = Store.open("sightline.db")
    store.answers.add([Attempt(line["key"], body, Failure("permanent", "refused"))])
    store.close()
    run()
    run(retry_errors=True)


@pytest.mark.parametrize(
    ("change", "times"),
    [
        (change_options, 1),
        (change_row, 1),
        (change_data, 1),
        (change_model, 1),
        (change_code, 1),
        (fail_then_answer, 2),
    ],
)
def test_whatever_a_result_depends_on_makes_it_be_judged_again(
    change: Callable[[Any], None], times: int, run: Any, judged: Judged
) -> None:
    run()
    judged()
    change(run)
    assert judged() == times
    stored = Store.open("sightline.db")
    written = json.loads(Path("out/metrics.json").read_text())
    assert written == {**plain(recompute(stored)), "files": written["files"]}, "as report"
    stored.close()


def test_other_published_rows_make_a_result_be_judged_again(
    tmp_path: Path, judged: Judged, monkeypatch: pytest.MonkeyPatch
) -> None:
    from sightline.builders.synthetic import generate_codis

    data = generate_codis(tmp_path / "codis", pairs=3)
    monkeypatch.chdir(tmp_path)
    for against in ([], [], ["GPT-4V"], ["GPT-4V"]):
        sightline.run("codis", model="baseline/chance", data=data, against=against)
    assert judged() == 2


def test_another_answer_under_the_same_key_is_judged(run: Any, judged: Judged) -> None:
    """Two stores may number their attempts alike: the time of an answer counts, too."""
    run()
    with sqlite3.connect("sightline.db") as connection:
        connection.execute("UPDATE answers SET created = created + 1 WHERE id = 1")
    judged()
    run()
    assert judged() == 1


def test_another_embedder_gives_another_key(run: Any) -> None:
    number = run().run
    spec = Spec(task="groups:g.jsonl", model="baseline/chance", set={"embedder": "none"})
    prepared, store = prepare_evaluation(spec), Store.open("sightline.db")
    keys = set()
    for identity in ("one", "other"):
        embedder = object.__new__(SentenceEmbedder)
        embedder.identity = identity
        changed = replace(prepared, measures=PreparedMeasures(embedder=embedder))
        keys.add(result_key.result_key(changed, describe_evaluation(prepared), store, number))
    store.close()
    assert len(keys - {None}) == 2


class PluginGroups(Groups):
    """A benchmark that is no part of the package."""


def test_a_benchmark_of_a_plugin_is_always_judged(
    run: Any, judged: Judged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("sightline.evaluation.prepare.find_benchmark", lambda name: PluginGroups())
    run()
    run()
    assert judged() == 2


def test_the_digest_of_the_code_follows_every_file_but_those_of_editors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "__init__.py").touch()
    (tmp_path / "scoring").mkdir()
    rules = tmp_path / "scoring" / "rules.py"
    rules.write_text("RIGHT = 1")
    monkeypatch.setattr(sightline, "__file__", str(tmp_path / "__init__.py"))
    digest = code.code_digest()
    (tmp_path / "scoring" / ".#rules.py").symlink_to("nobody@nowhere")
    assert code.code_digest() == digest
    rules.write_text("RIGHT = 10")
    assert code.code_digest() != digest


def test_a_result_of_code_that_changed_during_the_run_is_not_kept(
    run: Any, judged: Judged, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(code, "_LOADED_CODE", b"before the change")
    run()
    judged()
    run()
    assert judged() == 1
