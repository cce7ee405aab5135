"""Reads answers that any tool collected, and writes results in the layouts that other tools read."""

from sightline.formats.jsonl import read_outcomes, write_answers, write_plain
from sightline.formats.match import match
from sightline.formats.prediction import AnswerFiles, Prediction
from sightline.formats.read import read_predictions
from sightline.formats.verdicts import read_verdicts, write_verdicts

__all__ = [
    "AnswerFiles",
    "Prediction",
    "match",
    "read_outcomes",
    "read_predictions",
    "read_verdicts",
    "write_answers",
    "write_plain",
    "write_verdicts",
]
