"""Judging answers by rules, models and humans; the agreement of judges; the judge report."""
