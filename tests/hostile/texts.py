"""Texts that models, data and servers may contain: by kind in texts.jsonl, and any others by hypothesis."""

from __future__ import annotations

import json
from pathlib import Path

from hypothesis import strategies as st

LINES = [json.loads(line) for line in Path(__file__).with_name("texts.jsonl").read_text().splitlines()]
TEXTS: list[str] = [line["text"] for line in LINES]

PIECES = [*TEXTS, *"\\`*_[]()<>&|~$^{}#%+-=!@:;.,'\"/ \n\r\t", "1. ", "www.", "://", "--", "\u200d", "\ud800"]

texts = st.one_of(
    st.text(st.characters(exclude_categories=[]), max_size=20),
    st.lists(st.sampled_from(PIECES), max_size=6).map("".join),
)
"""Any text, lone surrogates too, often with the characters that have a meaning somewhere."""
