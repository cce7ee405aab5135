"""Blocks of groups: rows for lists, and lines of answers.jsonl and verdicts.jsonl, compressed."""

from __future__ import annotations

from sightline.outcome_index.group_entry import StoredRow
from sightline.outcome_index.stored_body import StoredBody
from sightline.results.folder import Lines

BLOCK = 64
"""The groups of a block."""

ROWS = StoredBody(list[StoredRow], "index_blocks")
"""The row of each group of a block."""

LINES = StoredBody(list[Lines], "index_blocks")
"""The lines of each group of a block."""
