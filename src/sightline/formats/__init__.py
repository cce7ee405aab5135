"""Predictions made anywhere, read from their files; and results, written in the layouts that others read."""

from sightline.benchmarks.codis.formats import write_codis
from sightline.benchmarks.iibench.formats import write_iibench, write_iibench_submission
from sightline.formats.jsonl import read_outcomes, write_answers, write_plain
from sightline.formats.match import match
from sightline.formats.prediction import Prediction
from sightline.formats.read import read_predictions
from sightline.formats.verdicts import read_verdicts, write_verdicts

__all__ = [
    "Prediction",
    "match",
    "read_outcomes",
    "read_predictions",
    "read_verdicts",
    "write_answers",
    "write_codis",
    "write_iibench",
    "write_iibench_submission",
    "write_plain",
    "write_verdicts",
]
