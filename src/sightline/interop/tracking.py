"""`--track NAME`: the numbers of runs and trainings in an experiment tracker."""

from __future__ import annotations

import re
import tempfile
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from sightline.errors import UserError, needs_extra
from sightline.evaluation.options import EvaluationDescription, judge_names
from sightline.evaluation.result import Evaluation
from sightline.evaluation.run import run_evaluation
from sightline.evaluation.spec import Spec
from sightline.plugins import check_contract, error_and_line, find_entry
from sightline.store.database import run_in_thread
from sightline.store.store import Store
from sightline.text import print_note
from sightline.types import Result

TRACKERS = {"wandb": "sightline.interop.tracking:WandB"}


class TrackedRun(Struct, frozen=True):
    """What a tracker learns before the first request of a run, or before the first step of a training.

    `kind` is `run` or `training`. `settings` are the task, the model and all options, as metrics.json has
    them; they hold no secret. `arguments` are the tracker's own, from --track-arg.
    """

    name: str
    kind: str
    settings: Mapping[str, Any]
    arguments: Mapping[str, Any]


class Tracker(ABC):
    """Where the numbers of one run or training go; made without arguments.

    An exception of `start` refuses the run. An exception of the other methods is noted, and the run goes on.
    """

    name: str
    """That by which it is registered."""

    @abstractmethod
    def start(self, run: TrackedRun) -> None:
        """Begin a run of the tracker."""

    @abstractmethod
    def log(self, values: Mapping[str, float], step: int | None) -> None:
        """Take values by names such as `codis/default/acc_p`; `step` is that of a training, None without."""

    @abstractmethod
    def finish(self, files: Sequence[Path], exit_status: int) -> None:
        """End the tracked run, also one that failed.

        Args:
            files: What to keep beside the numbers; the files are gone afterwards.
            exit_status: That of the command (docs/results.md).
        """


class WandB(Tracker):
    """Weights & Biases, by its own client: its variables (WANDB_PROJECT, WANDB_MODE, ...) hold here too."""

    name = "wandb"

    def start(self, run: TrackedRun) -> None:
        with needs_extra("wandb", "--track wandb needs wandb"):
            import wandb
        self._wandb, self._with_steps = wandb, set[str]()
        # create_new: by default the client ends the run that another evaluation of this process still has.
        # x_disable_meta: it would send the words of the command, console what the command prints; quiet: it
        # would print the values.
        self._run = wandb.init(
            **{
                "name": run.name,
                "job_type": run.kind,
                "config": run.settings,
                "reinit": "create_new",
                "settings": wandb.Settings(console="off", quiet=True, x_disable_meta=True),
                **run.arguments,
            }
        )

    def log(self, values: Mapping[str, float], step: int | None) -> None:
        if step is None:
            self._run.log(dict(values))
            return
        # The client's own step counts calls and never goes back, and a training resumes at a checkpoint.
        for name in values.keys() - self._with_steps:
            self._run.define_metric(name, step_metric=STEP)
            self._with_steps.add(name)
        self._run.log({**values, STEP: step})

    def finish(self, files: Sequence[Path], exit_status: int) -> None:
        try:
            if files:
                artifact = self._wandb.Artifact(f"sightline-{self._run.id}", type="evaluation")
                for file in files:
                    artifact.add_file(str(file))
                self._run.log_artifact(artifact)
        finally:
            self._run.finish(exit_code=exit_status)


STEP = "sightline/step"
"""The name of the steps in W&B: the x axis of what has some."""


# -- Runs: the leading values with their intervals, the report as a file


async def run_tracked(spec: Spec, *, show_progress: bool = False, **more: Any) -> Evaluation:
    """Run an evaluation as `run_evaluation` does, and give its numbers to the tracker of --track."""
    if spec.track is None:
        if spec.track_arg:
            raise UserError("--track-arg has no effect without --track", expected="--track wandb")
        return await run_evaluation(spec, show_progress=show_progress, **more)
    arguments = dict(spec.track_arg)
    step, with_report = _step(arguments.pop("step", None)), arguments.pop("report", "on")
    if with_report not in ("on", "off", True, False):
        raise UserError("--track-arg report is neither on nor off", found=with_report, expected="on or off")
    with tracking(spec.track) as tracked:

        def start(run: int, description: EvaluationDescription) -> None:
            task = f"{description.benchmark}:{description.setting}"
            name = spec.name or f"{task} {description.model}"
            settings = {
                "run": run,
                "task": task,
                "model": description.model,
                "judge": judge_names(description),
                "data_digest": description.data_digest,
                **msgspec.to_builtins(description.options),
            }
            tracked.start(TrackedRun(name, "run", settings, arguments))

        evaluation = await run_evaluation(spec, show_progress=show_progress, on_start=start, **more)
        await run_in_thread(_finish_run, tracked, evaluation, step, report=with_report in ("on", True))
    return evaluation


def _step(word: Any) -> int | None:
    if word is None or (isinstance(word, int) and word >= 0):
        return word
    raise UserError("--track-arg step is no step", found=word, expected="a number of steps, 0 or more")


def _finish_run(tracked: Tracked, evaluation: Evaluation, step: int | None, *, report: bool) -> None:
    tracked.log(tracked_values(evaluation.result), step)
    with tempfile.TemporaryDirectory(prefix="sightline-") as folder:
        files = [Path(folder, "metrics.json")]
        files[0].write_bytes(msgspec.json.format(msgspec.json.encode(evaluation.result), indent=1))
        if report and evaluation.run is not None:
            from sightline.viewer.opened import write_html

            store = Store.open(evaluation.store, create=False)
            try:
                write_html(store, [evaluation.run], Path(folder, "report.html"))
                files.append(Path(folder, "report.html"))
            except UserError as error:  # Without the extra `web`, or a report over its limit.
                print_note(f"the tracker gets no report: {error}")
            finally:
                store.close()
        tracked.finish(files, evaluation.exit_status)


def tracked_values(result: Result) -> dict[str, float]:
    """The values over all samples with their bounds, and what limits them; undefined ones are out."""
    place = f"{result.benchmark}/{result.setting_name}"
    found: dict[str, float | None] = {}
    for one in result.metrics:
        if one.subset == "all":
            name = f"{place}/{one.metric}"
            found |= {name: one.value, f"{name}_low": one.low, f"{name}_high": one.high}
    for count in ("samples", "probes", "errors", "undecided", "not_sent"):
        found[f"{place}/{count}"] = getattr(result, count)
    return {_safe(name): value for name, value in found.items() if value is not None}


def _safe(name: str) -> str:
    """A name that trackers accept: W&B nests names at dots, MLflow refuses most other signs."""
    return re.sub(r"[^\w/ -]", "_", name, flags=re.ASCII)


# -- What a run or training holds of its tracker


@contextmanager
def tracking(name: str) -> Iterator[Tracked]:
    """Hold the tracker of this name until the block ends, and tell it where an exception ended the block."""
    tracked = Tracked(name)
    try:
        yield tracked
    except BaseException as error:
        tracked.finish((), 2 if isinstance(error, UserError) else 3 if isinstance(error, Exception) else 130)
        raise
    tracked.finish((), 0)


class Tracked:
    """A tracker that cannot harm what it tracks: its first error after the start is noted, its log ends."""

    def __init__(self, name: str) -> None:
        entry = find_entry("trackers", name, TRACKERS)
        check_contract("tracker", name, entry, Tracker)
        self._tracker: Tracker = entry()
        self._runs = self._failed = False

    def start(self, run: TrackedRun) -> None:
        try:
            self._tracker.start(run)
        except UserError:
            raise
        except Exception as error:
            raise UserError(
                f"the tracker '{self._tracker.name}' does not start: {error_and_line(error)}",
                expected="a login and arguments that it takes (docs/tracking.md), or no --track",
            ) from error
        self._runs = True

    def log(self, values: Mapping[str, float], step: int | None) -> None:
        if not self._failed:
            self._call(self._tracker.log, values, step)

    def finish(self, files: Sequence[Path], exit_status: int) -> None:
        """End it; a second call does nothing."""
        self._call(self._tracker.finish, files, exit_status)
        self._runs = False

    def _call(self, method: Callable[..., None], *arguments: Any) -> None:
        try:
            if self._runs:
                method(*arguments)
        except Exception as error:
            if not self._failed:
                print_note(
                    f"the tracker '{self._tracker.name}' failed and lacks values: {error_and_line(error)}"
                )
            self._failed = True
