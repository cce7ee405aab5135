"""A probe as the file that holds its answer says it was asked: question, options and their letters."""

from __future__ import annotations

from msgspec.structs import replace

from sightline.formats.prediction import Prediction
from sightline.scoring.multiple_choice import LETTERS, carry_letter
from sightline.types import Probe


def as_asked(probe: Probe, prediction: Prediction | None) -> Probe:
    """Describe a probe as its recorded answer says it was asked.

    The file always wins: its question, its options in their order, and the letters of the references in that
    order. A benchmark's own order applies only to an answer without options.

    Args:
        probe: The probe as the setting renders it.
        prediction: The recorded answer; None for a probe that a model is asked now.

    Returns:
        The probe with the question, the options and the references that fit the answer. A reference whose
        option is not among those of the file is left out.
    """
    if prediction is None:
        return probe
    probe = replace(probe, question=prediction.question or probe.question)
    if not prediction.options or prediction.options == probe.options:
        return probe
    return replace(probe, options=prediction.options, references=_carried(probe, prediction.options))


def _carried(probe: Probe, order: tuple[str, ...]) -> tuple[str, ...]:
    """The references in another order of the options: letters change, texts stay."""
    letters = LETTERS[: len(probe.options)]
    return tuple(
        carried
        for reference in probe.references
        if (
            carried := carry_letter(reference, probe.options, order)
            if reference and reference in letters
            else reference
        )
    )
