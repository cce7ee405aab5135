"""The last step of every evaluation: judge, count and write; its outcome and its answers for the user."""

from __future__ import annotations

import base64
import io
import os
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from threading import Event
from typing import Any

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from sightline.engine.account import Counts
from sightline.errors import UserError, hide_secrets
from sightline.evaluation.fail_if import conditions_met
from sightline.evaluation.folder import ResultsFolder
from sightline.evaluation.groups import CollectedAnswers
from sightline.evaluation.judges import JudgedGroup
from sightline.evaluation.measures import NO_MEASURES
from sightline.evaluation.options import EvaluationDescription
from sightline.evaluation.panels import answer_measures, prepared_panel
from sightline.evaluation.prepared import Prepared
from sightline.evaluation.published import add_published
from sightline.evaluation.recompute import recompute
from sightline.evaluation.result import aggregate
from sightline.formats.jsonl import read_outcomes
from sightline.images import BadImage, inspect_image, read_image
from sightline.reporting.tables import html, import_pandas, report_markdown, summary
from sightline.store.database import raise_if_set, run_until_cancelled, until_set
from sightline.store.store import Store
from sightline.text import for_html
from sightline.types import ImageRef, MetricValue, Outcome, Result


async def judge_and_write(
    prepared: Prepared,
    description: EvaluationDescription,
    collected: CollectedAnswers,
    store: Store | None,
    *,
    show_progress: bool,
) -> Evaluation:
    """Judge, count and write, in a thread; `store` is None where nothing of it is needed."""
    spec, task = prepared.spec, prepared.task

    def work(stop: Event) -> Evaluation:
        measures = NO_MEASURES
        if store is not None:
            measures = answer_measures(
                task.benchmark, task.options.benchmark, prepared.measures, store, show_progress=show_progress
            )
        with ResultsFolder(spec.out) as folder:
            counted = aggregate(
                description,
                replace(collected, probes=lambda: until_set(collected.probes(), stop)),
                prepared_panel(prepared),
                store.answers if store is not None else collected.answers,
                measures=measures,
                on_group=folder.write,
            )
            result = add_published(counted.result, *spec.against)
            raise_if_set(stop)
            folder.finish(result, task.benchmark, report=report_markdown(result, spec.name), data=task.folder)
        return Evaluation(
            result=result,
            unanswered=counted.unanswered,
            out=spec.out,
            store=spec.store,
            folders=tuple(prepared.survey.folders),
            conditions_met=conditions_met(prepared.fail_if, result),
        )

    return await run_until_cancelled(work)


# -- The outcome of one evaluation


class Evaluation(Struct, frozen=True, kw_only=True):
    """The outcome of an evaluation.

    `run` is its number in `store`; None if it called no model. `folders` are the data folders of its images.
    `name_moved` says that its name belonged to an earlier run, and which run has it now; '' if the name is
    new. `unanswered` lists the first probes without an answer: sample, variant, error. `conditions_met`
    describes each condition of --fail-if that holds.
    """

    result: Result
    run: int | None = None
    name_moved: str = ""
    counts: Counts = field(default_factory=Counts)
    judge_counts: Counts = field(default_factory=Counts)
    caption_counts: Counts = field(default_factory=Counts)
    unanswered: list[tuple[str, str, str]]
    out: str | None = None
    store: str = ""
    folders: tuple[str, ...] = ()
    conditions_met: tuple[str, ...] = ()

    def __repr__(self) -> str:
        """What was evaluated. `asyncio.run` formats it several times, so the values are left out."""
        result = self.result
        task = f"{result.benchmark}:{result.setting}"
        run = f", run {self.run} in {self.store}" if self.run is not None else ""
        shown = f"<Evaluation of {result.model} on {task}: {len(result.metrics):,} values{run}>"
        return hide_secrets(shown)

    @property
    def exit_status(self) -> int:
        """0: everything is answered and judged. 1: some answers or judgements are missing. 4: a budget is
        reached. 5: a condition of --fail-if holds."""
        if "budget" in [counts.stopped for counts in self.all_counts]:
            return 4
        if self.conditions_met:
            return 5
        return 1 if self.result.unanswered or self.result.judge_errors else 0

    @property
    def all_counts(self) -> tuple[Counts, ...]:
        return self.caption_counts, self.counts, self.judge_counts

    @property
    def metrics(self) -> list[MetricValue]:
        """The metrics, the primary one over all samples first."""
        return self.result.metrics

    def frame(self) -> Any:
        """The metrics as a pandas DataFrame, one row each; needs the extra `table`."""
        return import_pandas().DataFrame([msgspec.structs.asdict(metric) for metric in self.result.metrics])

    def answers(self, *, thumbnails: int | None = None) -> Any:
        """The answers as a pandas DataFrame, one row each; needs the extra `table`.

        A stored run is judged again, as by `report`; nothing is sent.

        Args:
            thumbnails: The longest side in pixels of a small version of the first image, which a notebook
                shows; None for no images.
        """
        import_pandas()

        return answers_frame(kept_answers(self.run, self.store, self.out), self.folders, thumbnails)

    def _repr_html_(self) -> str:
        return html(summary([self.result]))


# -- The answers of a finished evaluation: from its store, or from its results folder


def kept_answers(run: int | None, store: str, out: str | None) -> Iterable[Outcome]:
    """Read the answers with their verdicts; `run` is None if it called no model. Nothing is sent."""
    if run is None:
        if out is None:
            raise UserError("the answers were not kept", expected="score with out=FOLDER")
        return read_outcomes(Path(out) / "answers.jsonl")
    outcomes: list[Outcome] = []

    def keep(judged: JudgedGroup) -> None:
        outcomes.extend(judged.group)

    opened = Store.open(store, create=False)
    try:
        recompute(opened, run, on_group=keep)
    finally:
        opened.close()
    return outcomes


# -- The answers of an evaluation as a data frame that shows their images in a notebook

pandas = import_pandas()

THUMBNAIL = "thumbnail"
MOST_ROWS, LONGEST_CELL = 20, 160
"""The rows that a notebook shows, and the characters of each cell; the data frame holds everything."""


class AnswersFrame(pandas.DataFrame):  # type: ignore[name-defined,misc]
    """A data frame of answers; a notebook shows the images of its column `thumbnail`."""

    @property
    def _constructor(self) -> type[AnswersFrame]:
        return AnswersFrame

    def _repr_html_(self) -> str:
        """The first rows as a notebook shows them: texts are escaped, and thumbnails are images."""
        head = "".join(f"<th>{for_html(str(name))}</th>" for name in self.columns)
        rows = [
            "".join(f"<td>{_cell(str(name), value)}</td>" for name, value in row.items())
            for row in self.head(MOST_ROWS).to_dict("records")
        ]
        more = f"<p>{MOST_ROWS} of {len(self):,} rows</p>" if len(self) > MOST_ROWS else ""
        body = "".join(f"<tr>{row}</tr>" for row in rows)
        return f"<table><thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>{more}"


def answers_frame(
    outcomes: Iterable[Outcome], folders: Sequence[str], thumbnails: int | None
) -> AnswersFrame:
    """Make the data frame; `thumbnails` is their longest side in pixels, None for none."""
    made: dict[str, str] = {}
    rows = []
    for outcome in outcomes:
        row = _row(outcome)
        if thumbnails is not None:
            first = outcome.images[0] if outcome.images else ""
            if first not in made:
                made[first] = _thumbnail(first, folders, thumbnails) if first else ""
            row = {THUMBNAIL: made[first], **row}
        rows.append(row)
    return AnswersFrame(rows)


def _row(outcome: Outcome) -> dict[str, Any]:
    mappings: dict[str, Mapping[str, Any]] = {"label": outcome.labels, "score": outcome.scores}
    return {
        "sample": outcome.sample,
        "variant": outcome.variant,
        "draw": outcome.draw,
        "verdict": outcome.verdict,
        "response": outcome.response,
        "extracted": outcome.extracted,
        "references": list(outcome.references),
        "question": outcome.question,
        "context": outcome.context,
        "status": outcome.status,
        "error": outcome.error,
        "judge": outcome.judge,
        "images": list(outcome.images),
        "prompt": outcome.prompt,
        "key": outcome.key,
        **{f"{kind} {name}": value for kind, held in mappings.items() for name, value in held.items()},
    }


def _thumbnail(path: str, folders: Sequence[str], side: int) -> str:
    """A data URL of an image, at most `side` pixels wide and high; '' if it is missing or broken."""
    for folder in folders:
        try:
            image = read_image(inspect_image(ImageRef(os.path.join(folder, path), folder), {})).convert("RGB")
        except BadImage:
            continue
        image.thumbnail((side, side))
        file = io.BytesIO()
        image.save(file, "WEBP", quality=80)
        return f"data:image/webp;base64,{base64.b64encode(file.getvalue()).decode()}"
    return ""


def _cell(name: str, value: Any) -> str:
    if name == THUMBNAIL:
        # Only what `_thumbnail` makes is an image; a data frame can be changed.
        is_image = isinstance(value, str) and value.startswith("data:image/webp;base64,")
        return f'<img alt="" src="{for_html(value)}">' if is_image else "no image"
    text = "" if value is None or value != value else str(value)
    return for_html(text if len(text) <= LONGEST_CELL else f"{text[:LONGEST_CELL]}\N{HORIZONTAL ELLIPSIS}")
