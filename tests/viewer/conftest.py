"""A store with runs of synthetic CODIS data, and clients of the viewer over it."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from starlette.testclient import TestClient

from sightline.cli.main import main
from sightline.store.store import Store
from sightline.viewer.access import Access, AccessControl
from sightline.viewer.app import create_app
from training.scenes.build import generate_codis

TOKEN = "the right token"
HOST = "http://127.0.0.1:8765"
ACCESS = Access(token=TOKEN, names=frozenset({"lab.example"}), port=8765)


@pytest.fixture(scope="session")
def codis(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return generate_codis(tmp_path_factory.mktemp("web") / "codis", pairs=30)


@pytest.fixture(scope="session")
def store_file(codis: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A store with run 1, named base, and run 2 with another seed: both complete."""
    file = tmp_path_factory.mktemp("store") / "sightline.db"
    words = [
        "run",
        "codis",
        "--model",
        "baseline/chance",
        "--data",
        str(codis),
        "--quiet",
        "--store",
        str(file),
    ]
    assert main([*words, "--name", "base", "--tag", "july"]) == 0
    assert main([*words, "--seed", "7"]) == 0
    return file


@pytest.fixture(scope="session")
def store(store_file: Path) -> Iterator[Store]:
    store = Store.open(str(store_file), create=False)
    yield store
    store.close()


@pytest.fixture(scope="session")
def stranger(store: Store) -> TestClient:
    """A browser that never saw the token."""
    return TestClient(AccessControl(create_app(store), ACCESS), base_url=HOST, follow_redirects=False)


@pytest.fixture(scope="session")
def client(store: Store) -> TestClient:
    """A browser that opened the printed URL."""
    client = TestClient(AccessControl(create_app(store), ACCESS), base_url=HOST, follow_redirects=False)
    assert client.get("/", params={"token": TOKEN}).status_code == 200
    return client


@pytest.fixture(scope="session")
def disputed(codis: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Store]:
    """A store with run 1, judged by rules, and run 2, by a human too, who differs on 4 responses."""
    folder = tmp_path_factory.mktemp("disputed")
    results, humans, file = folder / "results", folder / "humans.jsonl", folder / "judged.db"
    words = ["--model", "baseline/chance", "--data", str(codis), "--store", str(file), "--quiet"]
    assert main(["run", "codis", *words, "--out", str(results)]) == 0
    answers = [json.loads(line) for line in (results / "answers.jsonl").read_text().splitlines()]
    opposite = {"right": "wrong", "wrong": "right"}
    lines = [
        {
            "targets": [answer["key"]],
            "question": "correct",
            "scorer": "form",
            "judge": "anna",
            "kind": "human",
            "draw": 0,
            "verdict": opposite[answer["verdict"]] if number < 4 else answer["verdict"],
            "value": None,
            "raw": "",
            "variant": answer["variant"],
        }
        for number, answer in enumerate(answers)
    ]
    humans.write_text("".join(f"{json.dumps(line)}\n" for line in lines))
    assert main(["run", "codis", *words, "--judge", "rules", "--judge", f"human:{humans}"]) == 0
    store = Store.open(str(file), create=False)
    yield store
    store.close()
