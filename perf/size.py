"""The size of the code: lines, files, packages, loaded modules, imports against the order of packages.

    python perf/size.py [--tree DIR] [--cases] [--walk] [--json]

Counts a checkout, by default the one that holds this script; the libraries are those of the Python that runs
it. The commands run on twelve small pairs in CODIS' layout, which the script makes: the counts are the same
everywhere.
"""

from __future__ import annotations

import argparse
import ast
import csv
import json
import os
import re
import subprocess
import sys
import tempfile
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from threading import Thread
from typing import Any, NamedTuple

from PIL import Image

from report import Table

FOLDERS = ("src", "training", "perf", "tests", "findings")
COLUMNS = (
    "folder",
    "lines of Python",
    "lines of TOML and JSON",
    "Python files",
    "lines of docstrings",
    "packages",
    "modules in the root",
)

DRIVER = """
import atexit, json, os, runpy, sys, threading

file, traced, *words = sys.argv[1:]
entered = set()
# Bodies of modules and classes lack CO_OPTIMIZED. A comprehension is entered by a function, or at import.
NO_FUNCTION = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def trace(frame, event, argument):
    code = frame.f_code
    if event == "call" and code.co_flags & 1 and code.co_name not in NO_FUNCTION:
        entered.add(code.co_filename)


def write():
    sys.setprofile(None)
    loaded = [name for name in list(sys.modules) if name == "sightline" or name.startswith("sightline.")]
    with open(file, "w") as written:
        json.dump({"modules": sorted(loaded), "entered": sorted(entered)}, written)


def leave(status, leave_now=os._exit):
    write()
    leave_now(status)


atexit.register(write)
os._exit = leave
sys.argv = ["sightline", *words]
if traced == "yes":
    threading.setprofile(trace)
    sys.setprofile(trace)
runpy.run_module("sightline", run_name="__main__", alter_sys=True)
"""
"""Runs a command, and writes what it loaded and entered when its process ends, in whatever way."""


class FolderSize(NamedTuple):
    """What one folder holds; packages are folders with Python files."""

    lines: int = 0
    data_lines: int = 0
    files: int = 0
    docstring_lines: int = 0
    packages: int = 0
    root_modules: int = 0


class Arrow(NamedTuple):
    """An import, or a name in a string, of a package that stands above the package of the file."""

    file: str
    line: int
    package: str
    imported: str


class Process(NamedTuple):
    """What a command had loaded at its exit, and the files of the package whose functions it entered."""

    modules: list[str]
    entered: list[str]


def main() -> None:
    """Count and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    here = Path(__file__).resolve().parents[1]
    parser.add_argument("--tree", type=Path, default=here, metavar="DIR", help="count the checkout in DIR")
    parser.add_argument("--cases", action="store_true", help="count test cases, too: pytest collects them")
    parser.add_argument("--walk", action="store_true", help="count the files that three data paths enter")
    parser.add_argument("--json", action="store_true", help="print JSON, with names beside the counts")
    options = parser.parse_args()
    tree = options.tree.resolve()
    sizes = {name: folder_size(tree / name) for name in FOLDERS}
    arrows = arrows_up(tree)
    modules = loaded_modules(tree)
    cases = count_cases(tree) if options.cases else None
    walk = walk_paths(tree) if options.walk else None
    if options.json:
        found = {
            "folders": {name: size._asdict() for name, size in sizes.items()},
            "cases": cases,
            "modules": {name: len(names) for name, names in modules.items()},
            "arrows_up": len(arrows),
            "arrows": [arrow._asdict() for arrow in arrows],
            "walk": None
            if walk is None
            else {name: {"files": len(files), "names": files} for name, files in walk.items()},
        }
        print(json.dumps(found, indent=1))
        return
    table = Table("", list(COLUMNS))
    table.rows += [[name, *(f"{count:,}" for count in size)] for name, size in sizes.items()]
    print("\n".join([*table.markdown(), ""]))
    if cases is not None:
        print(f"test cases: {cases:,}")
    for name, names in modules.items():
        print(f"modules of sightline loaded by `{name}`: {len(names)}")
    pairs = sorted({f"{arrow.package} -> {arrow.imported}" for arrow in arrows})
    listed = f" ({', '.join(pairs)})" if pairs else ""
    print(f"imports of a higher package: {len(arrows)}{listed}")
    for name, files in (walk or {}).items():
        print(f"files entered by {name}: {len(files)}")


def folder_size(folder: Path) -> FolderSize:
    """Count one folder; a missing one is empty."""
    sources = sorted(folder.rglob("*.py"))
    data = [file for ending in ("*.toml", "*.json") for file in folder.rglob(ending)]
    root = folder / "sightline" if folder.name == "src" else folder
    return FolderSize(
        lines=sum(map(_lines, sources)),
        data_lines=sum(map(_lines, data)),
        files=len(sources),
        docstring_lines=sum(map(_docstring_lines, sources)),
        packages=len({file.parent for file in sources}),
        root_modules=len(list(root.glob("*.py"))),
    )


def _lines(file: Path) -> int:
    return len(file.read_text(encoding="utf-8", errors="replace").split("\n")) - 1


def _docstring_lines(file: Path) -> int:
    """The lines of the docstrings of a module, its classes and its functions, with their quotes."""
    documented = (ast.Module, ast.ClassDef, ast.FunctionDef, ast.AsyncFunctionDef)
    count = 0
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, documented) and ast.get_docstring(node, clean=False) is not None:
            text = node.body[0]
            count += (text.end_lineno or text.lineno) - text.lineno + 1
    return count


def count_cases(tree: Path) -> int:
    """The test cases that pytest collects, docstring examples included."""
    command = [sys.executable, "-m", "pytest", "--collect-only", "-p", "no:cacheprovider"]
    done = subprocess.run(
        command, cwd=tree, env=_environment(tree), capture_output=True, text=True, check=False
    )
    found = re.search(r"^(\d+)(?:/\d+)? tests? collected", done.stdout, re.MULTILINE)
    if done.returncode or found is None:
        raise SystemExit(f"pytest could not collect the tests:\n{done.stdout[-3000:]}{done.stderr[-1000:]}")
    return int(found[1])


def arrows_up(tree: Path) -> list[Arrow]:
    """Find the imports, and the 'module:name' strings outside registries, of a higher package.

    The order is that of tests/test_arrows.py. Imports inside functions and for type checkers count. Single
    modules stand below all packages, except those of TOP and the facade `sightline`.
    """
    declared = _constants(tree / "tests" / "test_arrows.py")
    order = [str(name) for name in declared["ORDER"]]
    ranks = {name: number for number, name in enumerate(["__init__", *declared["TOP"], *order])}
    root = tree / "src" / "sightline"

    def part(module: str) -> str:
        """The package in ORDER, or the single module: 'sightline.a.b.c' -> 'a.b' or 'a'."""
        _, first, *rest = [*module.split("."), "__init__"][:3]
        nested = f"{first}.{rest[0]}" if rest else first
        return nested if nested in ranks else first

    arrows = []
    for file in sorted(root.rglob("*.py")):
        inside = file.relative_to(root)
        package = part(".".join(["sightline", *inside.with_suffix("").parts]))
        rank = ranks.get(package, len(ranks))
        for line, above in sorted({(line, part(module)) for line, module in _named_modules(file)}):
            registered = (str(inside), above) in declared["REGISTERED_ABOVE"]
            if ranks.get(above, len(ranks)) < rank and not registered:
                arrows.append(Arrow(str(inside), line, package, above))
    return arrows


def _constants(file: Path) -> dict[str, Any]:
    """ORDER, TOP and REGISTERED_ABOVE of the test of the order."""
    assigned = {
        node.targets[0].id: node.value
        for node in ast.parse(file.read_bytes()).body
        if isinstance(node, ast.Assign) and isinstance(node.targets[0], ast.Name)
    }
    return {name: ast.literal_eval(assigned[name]) for name in ("ORDER", "TOP", "REGISTERED_ABOVE")}


def _named_modules(file: Path) -> Iterator[tuple[int, str]]:
    """The line and the name of each module of sightline that a file imports, or names in a string."""
    for node in ast.walk(ast.parse(file.read_bytes())):
        if isinstance(node, ast.ImportFrom):
            names = [f"{node.module}.{name.name}" for name in node.names]
        elif isinstance(node, ast.Import):
            names = [name.name for name in node.names]
        elif isinstance(node, ast.Constant):
            found = re.fullmatch(r"(sightline(?:\.\w+)+):\w+", str(node.value))
            names = [found[1]] if found else []
        else:
            continue
        yield from ((node.lineno, name) for name in names if name.startswith("sightline."))


def loaded_modules(tree: Path) -> dict[str, list[str]]:
    """The modules of sightline that `run` and `score` have loaded at their exit."""
    with _small_data() as folder:
        ran = _process(tree, folder, _run("baseline/chance"), traced=False)
        scored = _process(tree, folder, SCORE, traced=False)
    return {"run codis": ran.modules, "score codis": scored.modules}


def walk_paths(tree: Path) -> dict[str, list[str]]:
    """The files of src whose functions three data paths enter: a run, a score, and a human verdict."""
    with _small_data() as folder, _endpoint() as model:
        ran = _process(tree, folder, _run(model), traced=True).entered
        scored = _process(tree, folder, SCORE, traced=True).entered
        human = set(_process(tree, folder, NEW_PROJECT, traced=True).entered)
        human.update(_process(tree, folder, EXPORT_PROJECT, traced=True).entered)
        _fill_in(folder / "exported" / "items.csv", folder / "filled.csv")
        human.update(_process(tree, folder, IMPORT_JUDGEMENTS, traced=True).entered)
        human.update(_process(tree, folder, JUDGE_REPORT, traced=True).entered)
    return {
        "a run, from the data to metrics.json": ran,
        "a score of collected answers": scored,
        "a human verdict, from the project to the judge report": sorted(human),
    }


def _run(model: str) -> list[str]:
    return ["run", "codis", "--model", model, "--data", "data", "--out", "run", "--quiet"]


SCORE = ["score", "codis", "run/answers.jsonl", "--data", "data", "--out", "scored", "--quiet"]
NEW_PROJECT = ["annotate", "new", "judge", "run", "--name", "project", "--data", "data"]
EXPORT_PROJECT = ["annotate", "export", "project", "--out", "exported"]
IMPORT_JUDGEMENTS = ["annotate", "import", "project", "filled.csv"]
JUDGE_REPORT = ["judge-report", "run", "--human", "project"]


def _process(tree: Path, folder: Path, words: Sequence[str], *, traced: bool) -> Process:
    """Run a command of a checkout in a folder."""
    found = folder / "found.json"
    found.unlink(missing_ok=True)
    command = [sys.executable, "-c", DRIVER, str(found), "yes" if traced else "no", *words]
    done = subprocess.run(
        command, cwd=folder, env=_environment(tree), capture_output=True, text=True, check=False
    )
    if done.returncode or not found.exists():
        raise SystemExit(f"sightline {' '.join(words)} failed ({done.returncode}): {done.stderr}")
    written = json.loads(found.read_text())
    root = tree / "src" / "sightline"
    inside = [Path(name).relative_to(root) for name in written["entered"] if name.startswith(f"{root}/")]
    return Process(written["modules"], [str(file) for file in inside])


def _environment(tree: Path) -> Mapping[str, str]:
    """The environment in which Python imports sightline from a checkout, without settings of the user."""
    kept = {name: value for name, value in os.environ.items() if not name.startswith("SIGHTLINE_")}
    return {**kept, "PYTHONPATH": str(tree / "src")}


@contextmanager
def _small_data() -> Iterator[Path]:
    """Make a folder with twelve pairs about eight images, enough for confidence intervals."""
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        images = folder / "data" / "images"
        images.mkdir(parents=True)
        for number in range(8):
            Image.new("RGB", (64, 48), (30 * number, 90, 200)).save(images / f"{number}.jpg")
        records = [
            {
                "id": f"{number:03}",
                "image_id": f"{number % 8}.jpg",
                "question": f"Is it time for lesson {number}?",
                "context": {"context_1": "It is Monday morning.", "context_2": "It is Sunday night."},
                "answer": {"answer_1": "Yes.", "answer_2": "No."},
                "category": ("Global Background", "Relationships")[number % 2],
            }
            for number in range(12)
        ]
        (folder / "data" / "data.json").write_text(json.dumps(records))
        yield folder


def _fill_in(table: Path, filled: Path) -> None:
    """Write the judgements of two humans, who mostly agree, into the table of a project."""
    with table.open(newline="", encoding="utf-8") as file:
        rows = list(csv.DictReader(file))
    with filled.open("w", newline="", encoding="utf-8") as file:
        writer = csv.DictWriter(file, list(rows[0]))
        writer.writeheader()
        for number, row in enumerate(rows):
            right = number % 2 == 0
            for by, accepts in (("Anna", right), ("Ben", right or number % 5 == 0)):
                writer.writerow({**row, "by": by, "verdict": "right" if accepts else "wrong"})


class _Reply(BaseHTTPRequestHandler):
    """Answers every request of a chat with yes, and names its model."""

    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._send({"object": "list", "data": [{"id": "yes", "object": "model"}]})

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        choice = {"index": 0, "message": {"role": "assistant", "content": "Yes."}, "finish_reason": "stop"}
        self._send({"id": "1", "object": "chat.completion", "model": "yes", "choices": [choice]})

    def _send(self, reply: Mapping[str, object]) -> None:
        body = json.dumps(reply).encode()
        self.send_response(200)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:
        """Print nothing."""


@contextmanager
def _endpoint() -> Iterator[str]:
    """Serve a model; the value is its SPEC."""
    server = ThreadingHTTPServer(("127.0.0.1", 0), _Reply)
    server.daemon_threads = True
    Thread(target=server.serve_forever, daemon=True).start()
    try:
        yield f"http://127.0.0.1:{server.server_address[1]}/v1#yes"
    finally:
        server.shutdown()
        server.server_close()


if __name__ == "__main__":
    main()
