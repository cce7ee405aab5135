"""Whether a response gives a short free answer, to a question without options.

1. A reference that is yes or no counts where the response states this word, as the reader of options reads it
   ('I do not know' holds no 'no').
2. Any other reference counts where the response holds it in whole words that no denial reaches ('It is not a
   bus' does not answer 'bus', '10' does not answer '1'). What it asks, or names beside another possibility
   ('a bus or a tram'), is not held. Chinese and Japanese have no blanks: there each occurrence counts.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import NamedTuple

from sightline.scoring.answer_words import TEXT, word_lists
from sightline.scoring.chosen import is_hedged, read_choice
from sightline.scoring.markup import own_turn
from sightline.scoring.mentions import mark, mentions_of, prepared_options, sentences_of
from sightline.scoring.text import normalised


class FreeAnswer(NamedTuple):
    """The reference that a response gives, None for none; the rule that decided; the words it read."""

    reference: str | None
    rule: str
    words: str


def read_free_answer(response: str, references: Sequence[str], question: str = "") -> FreeAnswer:
    """The first of the references that a response gives.

    >>> read_free_answer("I do not know.", ["no"]).reference is None
    True
    >>> read_free_answer("It is not a bus but a tram.", ["bus", "tram"])
    FreeAnswer(reference='tram', rule='holds the reference', words='tram')
    """
    polar, response = "", own_turn(response)
    for reference in references:
        if (said := _said(reference)) is not None:
            choice = read_choice(response, said, question)
            if choice.position == 0:
                return FreeAnswer(reference, f"states {said[0]}", choice.words)
            polar = f"states {said[1]}" if choice.position == 1 else "states neither yes nor no"
        elif _holds(response, reference):
            return FreeAnswer(reference, "holds the reference", reference)
    return FreeAnswer(None, polar or "holds no reference", response)


def _said(reference: str) -> tuple[str, str] | None:
    """What a reference says that is only yes or no, and its opposite."""
    word = normalised(reference)
    for said, opposite in (("yes", "no"), ("no", "yes")):
        # The further words of a list have other meanings, too: 'negative', 'genau'.
        if any(word in words.get(said, ())[:2] for words in word_lists().values()):
            return said, opposite
    return None


def _holds(response: str, reference: str) -> bool:
    if normalised(response) == normalised(reference):
        return True
    if len(sign := reference.strip()) == 1 and sign.isascii() and sign.isalpha():
        # Also 'A' and 'I', but not the article.
        return re.search(rf"(?<![\w'’-]){sign}(?![\w'’-])", response) is not None
    marked = mark(response, prepared_options((reference,)))
    text = marked.text
    if re.fullmatch("[\u3040-\u30ff\u3400-\u9fff]+", reference.strip()):
        text = text.replace(reference.strip(), TEXT)  # no blanks show where a word of these scripts ends
    return any(
        not mention.is_letter
        and not mention.denied
        and not is_hedged(sentence, mention, marked.languages)
        and not _QUANTITY.match(sentence[mention.start + 1 :])
        and not re.search(r"\d\s*[-–/]\s*$", sentence[: mention.start])
        for sentence in sentences_of(text)
        if not sentence.rstrip().endswith(("?", "？"))
        for mention in mentions_of(sentence, marked.languages)
    )


_QUANTITY = re.compile(r"\s*(?:[-–/]\s*\d|%|(?:hundred|thousand|million|billion)\b)")
"""What makes another number of the one before it: '2-3', '1/2', '2 million'."""
