"""docs/reproduction.md lists every table and figure of the papers, with commands whose metrics exist."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from sightline.benchmarks.base import defaults
from sightline.benchmarks.registry import benchmark

PAGE = (Path(__file__).resolve().parents[2] / "docs" / "reproduction.md").read_text()
PAPERS = {"II-Bench": "iibench", "CODIS": "codis", "MM-R3": "mmr3", "ConTextual": "contextual"}


def lines_of(paper: str) -> list[list[str]]:
    """The cells of the lines below the heading `| paper | what | command |`."""
    block = PAGE.split(f"| {paper} | what | command |\n")[1].split("\n\n")[0]
    return [[cell.strip() for cell in line.strip("|").split(" | ")] for line in block.splitlines()[1:]]


def listed(cell: str) -> set[str]:
    """'Table 3, Figures 7-9' -> Table 3, Figure 7, Figure 8, Figure 9."""
    names, kind = set(), ""
    for part in cell.split(", "):
        kind = "Table" if "Table" in part else "Figure" if "Figure" in part else kind
        first, _, last = part.rpartition(" ")[2].partition("-")
        if first.isdecimal():
            names |= {f"{kind} {number}" for number in range(int(first), int(last or first) + 1)}
    return names


@pytest.mark.parametrize("paper", PAPERS)
def test_every_table_and_figure_that_the_paper_captions_is_listed_once(paper: str, shared: Path) -> None:
    text = (shared / "papers" / f"{PAPERS[paper]}.txt").read_text()
    captions = {
        f"{kind} {number}" for kind, number in re.findall(r"^(Table|Figure) (\d+)[.:]", text, re.MULTILINE)
    }
    cells = [listed(cells[0]) for cells in lines_of(paper)]
    assert captions - set().union(*cells) == set()
    assert sum(map(len, cells)) == len(set().union(*cells))


@pytest.mark.parametrize("paper", PAPERS)
def test_every_metric_of_a_listed_command_is_one_of_the_benchmark(paper: str) -> None:
    found = benchmark(PAPERS[paper])
    known = {
        metric.name
        for setting in found.settings.values()
        for metric in found.metrics(defaults(found, setting))
    } | {"agreement_with_humans", "human_consistency"}
    commands = " ".join(cell for cells in lines_of(paper) for cell in cells[2:])
    assert set(re.findall(r"--metric ([a-z_]+)", commands)) - known == set()
