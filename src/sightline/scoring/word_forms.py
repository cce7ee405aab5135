"""The words of a text in any form: which option a sentence names in other forms of its words."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

from sightline.scoring.answer_words import TOKEN, Languages, word_pattern, words_of
from sightline.scoring.markup import plain_text
from sightline.scoring.mentions import Options, content_words


def tokens_of(text: str) -> list[str]:
    return [word.casefold() for word in TOKEN.findall(plain_text(text)) if not word.isdecimal()]


def content_of(text: str) -> set[str]:
    """The words of a text that are not common; of Chinese, Japanese and Korean the signs."""
    return {word for word in tokens_of(text) if word not in words_of("common")}


def shared_words(asked: Iterable[str], sentence: str) -> int:
    stated = content_of(sentence)
    return sum(any(alike(word, other) for other in stated) for word in asked)


def alike(word: str, other: str) -> bool:
    """Whether two words are the same but for their endings."""
    if _are_verb_and_adjective(word, other):
        return False
    shared = max(4, min(len(word), len(other)) - 2)
    if word == other or (len(word) > 3 and len(other) > 3 and word[:shared] == other[:shared]):
        return True
    return (
        len(word) == len(other) == 4 and word[:3] == other[:3] and {word[3], other[3]} <= {"o", "a"}
    )  # rojo, roja


_RU_ADJECTIVE = re.compile("(?:[ыи][йех]|[ыи]ми?|[оеу]й|[ая]я|[ое]е|[ое](?:го|му)|ую|юю)$")
_RU_VERB = re.compile("(?:[аяеиую]т|ть)(?:ся)?$")


def _are_verb_and_adjective(word: str, other: str) -> bool:
    """Whether two Russian words only share a stem: 'готовит', 'готовый'."""
    return any(
        _RU_VERB.search(one) and _RU_ADJECTIVE.search(two) for one, two in ((word, other), (other, word))
    )


def inflected(sentence: str, options: Options, question: str, languages: Languages) -> list[int]:
    """The options whose words a sentence holds in their order, in any form ('einen Waschbären').

    A sentence with a denial is only an option with one. Words of one stem ('surrealistisch', 'Surrealismus')
    and surnames count where no option has the form that stands there.
    """
    denies = word_pattern("{denies}|{denied_before}", languages)
    # 'thirteen hours instead of twelve' denies what follows only.
    sentence = word_pattern("{contrasts}.*", languages).sub("", sentence)
    denied = len(denies.findall(sentence))
    of_all = set.intersection(*({word.casefold() for word in words} for words in options.content))
    asked = tokens_of(question)
    same = of_all | set(asked)
    stated = content_words(sentence)
    may_be = [
        (position, words)
        for position, words in enumerate(options.content)
        # It has a word of its own, of which a form can be told from another word.
        if any(len(word) > 3 and not any(alike(word.casefold(), one) for one in same) for word in words)
        and len(denies.findall(options.texts[position])) == denied
    ]
    found = [position for position, words in may_be if _holds_forms(stated, words, languages)]
    if found or denied:
        return found
    if options.are_names:
        surnames = [(position, words[-1].casefold()) for position, words in may_be]
        return [
            position for position, name in surnames if any(alike(name, word.casefold()) for word in stated)
        ]
    if len(stated) > 3 and not any(
        alike(word, one.casefold()) for word in asked if len(word) > 3 for one in stated
    ):
        return []
    held = {
        position: [
            any(_akin(word, one, languages) for one in stated)
            for word in words
            if word.casefold() not in same
        ]
        for position, words in may_be
    }
    some = [position for position, words in held.items() if any(words)]
    return some if len(some) == 1 and all(held[some[0]]) and len(options.content[some[0]]) <= 2 else []


def _akin(word: str, other: str, languages: Languages) -> bool:
    """Whether two words are of one stem: 'Surrealismus' and 'surrealistisch', not 'Niger' and 'Nigeria'."""
    if "en" in languages and word[0].isupper() and other[0].isupper():
        return word == other
    word, other = word.casefold(), other.casefold()
    shorter, longer = sorted((word, other), key=len)
    same = next((i for i, sign in enumerate(shorter) if sign != longer[i]), len(shorter))
    return word == other or (
        same >= 5 and same >= 0.6 * len(longer) and not _are_verb_and_adjective(word, other)
    )


def _holds_forms(stated: Sequence[str], words: Sequence[str], languages: Languages) -> bool:
    """Whether a sentence holds forms of these words in their order; of English names only the same form."""
    at = 0
    for word in words:
        while at < len(stated):
            other, at = stated[at], at + 1
            names = "en" in languages and word[0].isupper() and other[0].isupper()
            if word == other or (not names and alike(word.casefold(), other.casefold())):
                break
        else:
            return False
    return True
