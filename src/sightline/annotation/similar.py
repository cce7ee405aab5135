"""Existing texts that are similar to what an author writes, so that data stays diverse (CODIS, section 3.4).

The paper names no measure: this is the cosine of the words, which weigh more the fewer texts have them.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from collections.abc import Mapping, Sequence

from msgspec.structs import replace

from sightline.annotation.asked import Given, as_given
from sightline.annotation.state import State
from sightline.annotation.types import Item

MOST, LEAST = 3, 0.3
"""How many texts are shown, and the cosine from which they count as similar."""

NOTHING = "Nothing similar is there yet."

_WORD = re.compile(r"\w+")


def with_similar(state: State, item: Item, given: Given) -> Item:
    """Add the texts of other items that are similar to an item and what is filled in.

    Returns:
        The item with the texts of the parts of kind `similar`; the same item if the task has none.
    """
    parts = [part.name for part in state.project.task.shows if part.kind == "similar"]
    if not parts:
        return item
    others = [text for number in state.items if number != item.number and (text := _written(state, number))]
    own = " ".join((*_texts_of(item), *_filled(state, given)))
    found = tuple(others[place] for place in most_similar(own, others)) or (NOTHING,)
    return replace(item, texts={**item.texts, **dict.fromkeys(parts, found)})


def most_similar(text: str, others: Sequence[str], most: int = MOST) -> list[int]:
    """Find the texts that have the most in common with a text.

    >>> most_similar("Is the train leaving?", ["Which season is it?", "Is the train leaving or arriving?"])
    [1]
    """
    words = [Counter(_WORD.findall(one.casefold())) for one in (text, *others)]
    spread = Counter(word for of_text in words for word in of_text)
    weight = {word: math.log(1 + len(words) / count) for word, count in spread.items()}
    vectors = [{word: count * weight[word] for word, count in of_text.items()} for of_text in words]
    cosines = [(_cosine(vectors[0], vector), place) for place, vector in enumerate(vectors[1:])]
    return [place for cosine, place in sorted(cosines, key=lambda one: (-one[0], one[1])) if cosine >= LEAST][
        :most
    ]


def _cosine(one: Mapping[str, float], other: Mapping[str, float]) -> float:
    lengths = math.hypot(*one.values()) * math.hypot(*other.values())
    return sum(weight * other.get(word, 0.0) for word, weight in one.items()) / lengths if lengths else 0.0


def _written(state: State, number: int) -> str:
    """The texts of an item, and what annotators wrote about it."""
    entries = state.of_item(number).values()
    written = [text for one in entries for text in _filled(state, as_given(one.values))]
    return "\n".join((*_texts_of(state.items[number]), *written))


def _texts_of(item: Item) -> list[str]:
    return [text for texts in item.texts.values() for text in texts]


def _filled(state: State, given: Given) -> list[str]:
    """The texts that were typed, in the order of the fields."""
    names = [field.name for field in state.project.task.fields if field.kind == "text"]
    return [text for name in names for text in given.get(name, ()) if text]
