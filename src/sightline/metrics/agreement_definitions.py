"""The definitions of the metrics of agreement, which every result has."""

from __future__ import annotations

from collections.abc import Mapping

from sightline.metric_types import PERCENT, MetricDefinition

WITH_HUMANS = "agreement_with_humans"
"""The name of the agreement of a judge model with humans."""

DEFINITIONS: Mapping[str, MetricDefinition] = {
    "agreement": MetricDefinition(
        meaning="answers on which two judges agree, right or not right, of those that both decided",
        better="higher",
        range=PERCENT,
        source="Sightline, for every benchmark",
    ),
    WITH_HUMANS: MetricDefinition(
        meaning="answers on which a judge model agrees with the majority of the humans, of all that both"
        " evaluated; an undecided verdict of the model counts as not right",
        better="higher",
        range=PERCENT,
        source="Sightline, for every benchmark",
    ),
    "self_agreement": MetricDefinition(
        meaning="answers, or pairs of answers, on which all repeats of a judge give the same verdict: right,"
        " not right or undecided",
        better="higher",
        range=PERCENT,
        source="Sightline, for every benchmark",
    ),
    "self_alpha": MetricDefinition(
        meaning="agreement of the repeats of a judge corrected for chance: Krippendorff's alpha over right,"
        " not right and undecided",
        better="higher",
        range=(-1.0, 1.0),
        unit="number",
        source="Sightline, for every benchmark",
    ),
    "human_consistency": MetricDefinition(
        meaning="ratings that agree with the majority of the human annotators",
        better="higher",
        range=PERCENT,
        source="Sightline, for every benchmark",
    ),
}
"""The metrics by name. Every benchmark gets them, so `source` names no paper."""
