"""How much the words of a question reveal without the image."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from sightline.plugins import plug_in
from training.mini import exam, words


def test_a_guess_follows_the_words_or_the_most_frequent_right_option() -> None:
    read = [("What color is the sky?", "blue")] * 3 + [("What color is the grass?", "green")] * 2
    options = "Which?\n(A) up\n(B) down"
    guesser = words.Words("words", [*read, (options, "B")])
    assert guesser.guess("color of grass") == "green"
    assert guesser.guess("What color is it?") == "blue"
    assert guesser.guess("Now?\n(A) down\n(B) up") == "down"


@pytest.mark.slow
def test_without_images_the_synthetic_questions_stay_near_chance(tmp_path: Path) -> None:
    """As in `exam`: the options of pictograms give no hint, and CODIS pairs need their image."""
    plug_in(words.__file__)
    others = exam.parts(tmp_path / "read", 120, 1)
    (tmp_path / "read" / words.READ).write_text(json.dumps([part.spec for part in others]))
    values = {}
    for part in exam.parts(tmp_path / "data", 120, 2):
        if part.metric in ("acc_p", "accuracy") and " no " not in part.title:
            found = exam.metric_values(part, f"words/{tmp_path / 'read'}", tmp_path)
            values[part.title] = found[0].value
    assert values["II-Bench accuracy"] is not None
    assert values["II-Bench accuracy"] < 30
    assert values["CODIS acc_p"] is not None
    assert values["CODIS acc_p"] < 35
