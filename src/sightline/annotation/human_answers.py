"""Humans' answers as files that `sightline score` reads: a row `human:NAME` for each."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence

from msgspec import Struct

from sightline.annotation.judgements import Judgement, judgements
from sightline.annotation.sources.probes import WITHOUT
from sightline.annotation.state import State
from sightline.annotation.types import Annotator
from sightline.scoring.letters import LETTERS

NO_CONTEXT = "no-context"
"""The setting of answers that were given without the context."""


class HumanAnswer(Struct, frozen=True):
    """An answer: one line of a file that `score` reads."""

    id: str
    variant: str
    response: str
    model: str


def human_answers(
    state: State, annotators: Sequence[Annotator]
) -> Mapping[tuple[str, str], list[HumanAnswer]]:
    setting = state.project.benchmark.partition(":")[2] or "default"
    found: dict[tuple[str, str], list[HumanAnswer]] = defaultdict(list)
    for one in judgements(state, annotators):
        if state.project.task.phase(one.item.phase).kind == "work":
            part = NO_CONTEXT if one.item.phase == WITHOUT else setting
            found[one.name, part] += _lines(one)
    return {key: sorted(lines, key=lambda line: (line.id, line.variant)) for key, lines in found.items()}


def _lines(one: Judgement) -> Iterator[HumanAnswer]:
    text = _response(one)
    probes = one.item.hidden.get("probes") or f"{one.item.hidden['sample']}\t{one.item.variant}"
    for probe in [probes] if isinstance(probes, str) else probes:
        sample, _, variant = probe.partition("\t")
        yield HumanAnswer(sample, variant, text, f"human:{one.name}")


def _response(one: Judgement) -> str:
    """The answer; of a chosen option its letter, which is what prompts ask of models."""
    values = one.entry.values
    option, answer = values.get("option"), values.get("answer", "")
    if isinstance(option, str):
        return f"({LETTERS[one.item.texts['options'].index(option)]})"
    return answer if isinstance(answer, str) else ", ".join(answer)
