"""Judged groups into numbers: aggregation, the results folder, comparison, conditions."""
