"""Judging answers by rules, models and humans, and how far judges agree."""
