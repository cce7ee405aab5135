"""Pairs in CODIS' layout: data.json and images/, of authors' drafts or of those that the others accepted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

from sightline.annotation.judgements import name_of
from sightline.annotation.records.request import RecordsRequest
from sightline.annotation.types import Item, Values
from sightline.benchmarks.codis.data import RECORDS, CodisRecord, ContextAnswers, Contexts
from sightline.builders.manifest import indented_json
from sightline.formats.files import write_atomically
from sightline.formats.tables import csv_bytes

FOLDER, RETURNED, FUNNEL = "data", "returned.csv", "funnel.json"


def write(request: RecordsRequest) -> Iterator[tuple[Path, str]]:
    """Write the drafts, or the accepted ones, what goes back to the authors, and the funnel."""
    is_check = request.state.project.task.items == "drafts"
    kept: list[tuple[Item, Values]] = []
    funnel: dict[str, int] = {"items": len(request.state.items), "written": 0, "given up": 0}
    returned = [["item", "author", "by", "failed", "remark"]]
    for item in request.state.items.values():
        if is_check:
            decision = request.decision(item)
            funnel["written"] += 1
            if decision.value == "yes":
                kept.append((item, {name: texts[0] for name, texts in item.texts.items()}))
            elif decision.value == "no":
                returned += _failures(request, item)
            continue
        for entry in request.state.of_item(item.number).values():
            funnel["given up"] += entry.action in ("skip", "broken")
            if entry.action == "judge":
                funnel["written"] += 1
                kept.append((item, entry.values))
    records = [_record(request, place, item, values) for place, (item, values) in enumerate(kept)]
    (request.out / FOLDER).mkdir(parents=True, exist_ok=True)
    write_atomically(request.out / FOLDER / RECORDS, [indented_json(records)])
    yield request.out / FOLDER / RECORDS, f"{len(records):,} pairs"
    if is_check:
        funnel |= {"accepted": len(kept), "returned": len({row[0] for row in returned[1:]})}
        write_atomically(request.out / RETURNED, [csv_bytes(returned)])
        yield request.out / RETURNED, f"{funnel['returned']:,} drafts go back to their authors"
    write_atomically(request.out / FUNNEL, [indented_json(funnel)])
    yield request.out / FUNNEL, ", ".join(f"{count:,} {word}" for word, count in funnel.items())


def _record(request: RecordsRequest, place: int, item: Item, values: Values) -> CodisRecord:
    image = item.images["image"][0]
    name = f"{image.digest[:10]}{Path(image.path).suffix.lower()}"
    request.copy(image, f"{FOLDER}/images/{name}")
    text: dict[str, Any] = {key: value for key, value in values.items() if isinstance(value, str)}
    return CodisRecord(
        id=f"{place:03d}",
        image_id=name,
        question=text["question"],
        context=Contexts(text["context_1"], text["context_2"]),
        answer=ContextAnswers(text["answer_1"], text["answer_2"]),
        category=text["category"],
    )


def _failures(request: RecordsRequest, item: Item) -> Iterator[list[str]]:
    """What each checker found wrong in a draft."""
    task = request.state.project.task
    for by, entry in request.state.of_item(item.number).items():
        failed = [name for name in task.decides if entry.values.get(name) == "no"]
        if entry.action == "judge" and failed:
            remark = entry.values.get("remark", "")
            name = name_of(request.annotators, by)
            yield [str(item.hidden["item"]), item.authors[0], name, ", ".join(failed), str(remark)]
