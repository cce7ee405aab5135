"""Modules that only the processes of a trial import."""

collect_ignore = ["preloaded.py"]
