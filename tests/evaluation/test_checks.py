"""Every probe is checked before the first call, not only the first one; what is not asked is said."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from PIL import Image

import sightline
from sightline.errors import UserError
from sightline.models.base import Capabilities
from sightline.models.offline import OfflineModel
from sightline.types import Answer, Failure, Request


class Limited(OfflineModel):
    """A model that answers nothing, and fails the test if it is asked."""

    name = "limited"
    identity = "limited"
    host = "limited"

    async def answer(self, requests: Sequence[Request]) -> AsyncIterator[tuple[int, Answer | Failure]]:
        raise AssertionError("a request was sent")
        yield  # pragma: no cover


TEXT = {"group": "a", "variant": "v", "prompt": "Why?", "options": ["x", "y"]}


@pytest.mark.parametrize(
    ("capabilities", "last", "chosen", "message"),
    [
        (Capabilities(images=False), {"images": ["i.png"]}, {}, "does not accept images"),
        (Capabilities(several_images=False), {"images": ["i.png", "i.png"]}, {}, "accepts one image"),
        (Capabilities(needs_image=True), {"images": []}, {}, "answers nothing without an image"),
        (Capabilities(likelihood=True), {"options": []}, {"answer_by": "likelihood"}, "has no options"),
    ],
)
def test_a_probe_that_the_model_cannot_take_is_refused_wherever_it_is(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capabilities: Capabilities,
    last: dict[str, Any],
    chosen: dict[str, Any],
    message: str,
) -> None:
    monkeypatch.setattr(Limited, "capabilities", capabilities)
    monkeypatch.setattr("sightline.evaluation.prepare.resolve_on", lambda *_: [Limited()])
    Image.new("RGB", (8, 8)).save(tmp_path / "i.png")
    usual = TEXT | ({"images": ["i.png"]} if capabilities.needs_image else {})
    lines = [usual, {**usual, "variant": "w"}, {**TEXT, "group": "b", **last}]
    (tmp_path / "g.jsonl").write_text("\n".join(map(json.dumps, lines)))
    with pytest.raises(UserError, match=f"record b v: .*{message}"):
        sightline.run(
            f"groups:{tmp_path / 'g.jsonl'}",
            model="limited",
            store=tmp_path / "s.db",
            set={"embedder": "none", **chosen},
        )


@pytest.mark.parametrize(
    ("unchanged", "expected"),
    [
        (
            False,
            [
                "2 lines of variant 'original', the unchanged input, are not sent and count in no metric",
                "1 of 3 groups are left out: they have no line but 'original'",
            ],
        ),
        (True, ["1 of 3 groups are left out: they have no line of variant 'original'"]),
    ],
)
def test_an_original_that_is_missing_or_not_sent_is_reported(
    tmp_path: Path, unchanged: bool, expected: list[str]
) -> None:
    lines = [
        {**TEXT, "group": group, "variant": variant}
        for group, variants in {"a": ["original", "v", "w"], "b": ["v"], "c": ["original"]}.items()
        for variant in variants
    ]
    (tmp_path / "g.jsonl").write_text("\n".join(map(json.dumps, lines)))
    result = sightline.run(
        f"groups:{tmp_path / 'g.jsonl'}",
        model="baseline/chance",
        store=tmp_path / "s.db",
        set={"embedder": "none", "unchanged": unchanged},
    ).result
    assert [note for note in result.notes if "original" in note] == expected
