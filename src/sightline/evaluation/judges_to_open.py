"""The model judges that an answer can reach: they must be usable before the first one is paid for."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence

from msgspec.structs import replace

from sightline.evaluation.judge_panel import prepared_panel
from sightline.evaluation.prepared import Prepared
from sightline.judging.groups import CollectedAnswers
from sightline.plan.stored_probe import StoredProbe
from sightline.types import Answer


class _AssumedAnswers:
    """An answer to every request, like no other one: equal answers need no judge."""

    def look_up(self, keys: Sequence[str]) -> Mapping[str, Answer]:
        """As `Answers.look_up`."""
        return {key: Answer(key) for key in keys}


def judges_to_open(prepared: Prepared, probes: Callable[[], Iterable[StoredProbe]]) -> set[str]:
    """Find the model judges that may be asked.

    Others are named in vain, for example where rules decide all cases of a benchmark. Their requests are made
    as if every probe were answered, up to the first one of each judge.
    """
    panel = prepared_panel(prepared)
    waiting = {
        judge.name: replace(panel, judges=[judge])
        for judge in panel.judges
        if judge.name in prepared.judges.models
    }
    found: set[str] = set()
    if waiting:
        for group in CollectedAnswers(probes=probes, answers=_AssumedAnswers()).groups():
            reached = [name for name, one in waiting.items() if any(True for _ in one.requests([group]))]
            found.update(reached)
            for name in reached:
                del waiting[name]
            if not waiting:
                break
    return found
