"""Evaluations: plan, prepare, send, judge, count, write; scoring, sweeps, comparisons, judge reports."""
