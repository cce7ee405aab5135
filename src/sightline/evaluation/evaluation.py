"""The outcome of one evaluation."""

from __future__ import annotations

from typing import Any

import msgspec
from msgspec import Struct, field

from sightline.engine.counts import Counts
from sightline.metric_types import MetricValue, Result
from sightline.reporting.html_table import html
from sightline.reporting.tables import summary
from sightline.reporting.tables_text import import_pandas
from sightline.secret_text import hide_secrets


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
        """The requests to the captioner, to the model, and to the judges."""
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
        from sightline.evaluation.answers_frame import answers_frame
        from sightline.evaluation.kept_answers import kept_answers

        return answers_frame(kept_answers(self.run, self.store, self.out), self.folders, thumbnails)

    def _repr_html_(self) -> str:
        """The tables of the result as a notebook shows them."""
        return html(summary([self.result]))
