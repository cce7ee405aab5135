"""The labels that options carry themselves: ア and イ, 가 and 나, 甲 and 乙, III and IV, ① and ②.

Such options are read by the letters of their places: in the options and in the response, a label that stands
as one becomes its letter. What may also be a word stays unless its neighbours show a label.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from string import ascii_uppercase
from typing import NamedTuple

from sightline.scoring.answer_words import EDGE, LETTER, Languages, word_pattern, words_of
from sightline.scoring.markup import plain_text
from sightline.scoring.text import lexicon


class _Series(NamedTuple):
    """Labels in their order, and the signs beside which one is a part of a word."""

    labels: Sequence[str]
    signs: str
    language: str = ""
    """The language whose words may stand beside a label without a blank: 答えはア, 选甲, 가입니다."""


_KANA_AND_HAN = r"\u3041-\u30ff\u3400-\u9fff"
_SERIES = (
    _Series("アイウエオカキクケコ", _KANA_AND_HAN, "ja"),
    _Series("イロハニホヘト", _KANA_AND_HAN, "ja"),
    _Series("가나다라마바사아", r"\uac00-\ud7af", "ko"),
    _Series("ㄱㄴㄷㄹㅁㅂㅅ", r"\u3131-\u318e"),
    _Series("甲乙丙丁戊己庚辛", _KANA_AND_HAN, "zh"),
    _Series(("I", "II", "III", "IV", "V", "VI", "VII", "VIII"), r"\w'’-"),
)


def _found_in_text(series: _Series, labels: Iterable[str]) -> re.Pattern[str]:
    """The pattern of labels that stand as such in a response."""
    names = "|".join(sorted(labels, key=len, reverse=True))
    before, behind = f"(?<![{series.signs}])", f"(?![{series.signs}])"
    languages = (series.language,) if series.language else ()
    if series.language == "ko":  # has blanks
        behind = rf"{behind}(?=\s*(?:[^\w\s]|$))|(?=\s*(?:{{said}}|{{right}}|{{options}})|\s*{{either}}\s)"
    elif series.language:
        words = frozenset().union(*(words_of(name, languages) for name in _BEFORE))
        before += "".join(f"|(?<={re.escape(word)})" for word in sorted(words))
        behind += "|(?={said}|{right}|{options}|{either}|{carries}|{links}|{denied_after}|だ)"
    # Labels keep their case: I is one, i is not.
    return re.compile(word_pattern(rf"(?m:(?:{before})(?:{names})(?:{behind}))", languages).pattern)


_BEFORE = lexicon("carries either links options nouns concludes choosing turns denied_before")
"""The lists of words after which a label stands without a blank."""
_CARRIED = r"\s*[(（\[]?\s*{}\s*[)）\].:：、．]\s*(?=\S)"
_FIRST_CARRIED = re.compile(_CARRIED.format(r"[アイ가ㄱ甲Iiⅰ\u2160]"))
"""How a first option begins that may carry the first label of a series."""
_PRONOUN = re.compile(r"I[ \t]+(?!(?:or|and|is|und|oder|ist|et|ou|est|y|o|es|и|или)\b)[^\W\d_A-Z]")
_SMALL_ROMAN = re.compile(
    r"(?<![\w.'’-])(?:i{2,3}|iv|vi{1,3}|[iv](?=[).:\]](?!\w)))(?![\w'’-])|(?<=[(\[])[iv](?=[)\]])"
)
_NUMERALS = re.compile("[\u2160-\u217b]+")
_CIRCLED_NUMBERS = frozenset("①②③④⑤⑥⑦⑧⑨⑩⑪⑫⑬⑭⑮⑯⑰⑱⑲⑳")
_BEFORE_PARTICLE = re.compile(r"([①-⑳])(?=[がはをかとやも]|です)")
_CIRCLED = re.compile(r"\s*([①-⑳])(?!\s*[.):：、])\s*(?=\S)")


def lettered(response: str, options: Sequence[str]) -> tuple[str, tuple[str, ...]]:
    """A response and its options with letters in the place of the labels that the options carry."""
    texts = _signed(tuple(options))
    carried = _carried(texts)
    if carried is None:
        numbered = all(text.lstrip()[:1] in _CIRCLED_NUMBERS for text in texts if text.strip())
        return (_BEFORE_PARTICLE.sub(r"\1番", response) if numbered else response), texts
    letters = carried.letters

    def letter(found: re.Match[str]) -> str:
        # A pronoun is none: 'I think'.
        return found[0] if _PRONOUN.match(found.string, found.start()) else letters[found[0]]

    return carried.label.sub(letter, _folded(response) if "I" in letters else response), carried.options


@lru_cache(maxsize=512)
def _signed(options: tuple[str, ...]) -> tuple[str, ...]:
    """Options with a point after the circled numbers before them, which are read as numbers."""
    if len(options) > 1 and all(_CIRCLED.match(option) for option in options):
        return tuple(_CIRCLED.sub(r"\1. ", option, count=1) for option in options)
    return options


class _Carried(NamedTuple):
    """The labels that options carry."""

    letters: Mapping[str, str]
    """The letter of each label."""
    label: re.Pattern[str]
    """Finds the labels in a response."""
    options: tuple[str, ...]
    """The options with the letters before them."""


@lru_cache(maxsize=512)
def _carried(options: tuple[str, ...]) -> _Carried | None:
    """The first labels of a series, where all options carry them in their order."""
    if len(options) < 2 or not _FIRST_CARRIED.match(options[0]):
        return None
    folded = [_folded(option) for option in options]
    for series in _SERIES:
        letters = dict(zip(series.labels[: len(options)], ascii_uppercase, strict=False))
        signs = [re.compile(_CARRIED.format(label)) for label in letters]
        if len(signs) == len(options) and all(map(re.Pattern.match, signs, folded)):
            bare = zip(signs, letters.values(), folded, strict=True)
            return _Carried(
                letters,
                _found_in_text(series, letters),
                tuple(sign.sub(f"{letter}. ", text, count=1) for sign, letter, text in bare),
            )
    return None


def _folded(text: str) -> str:
    """A text with Roman numerals in capital letters where they are labels."""
    text = _NUMERALS.sub(lambda found: unicodedata.normalize("NFKC", found[0]), text)
    return _SMALL_ROMAN.sub(lambda found: found[0].upper(), text)


# -- Letters and numbers

OWN_LABEL = re.compile(
    r"\s*(?:[(\[]\s*([A-Za-zА-Еа-е]|\d{1,2})\s*[)\]]|([A-Za-zА-Еа-е]|\d{1,2})\s*[.):、](?!\d))\s*(?=\S)"
)


def may_carry_labels(options: Sequence[str]) -> bool:
    """Whether the first option begins with a label of its own, as all do where labels count."""
    return len(options) > 1 and OWN_LABEL.match(plain_text(options[0])) is not None


_NUMBER_SIGN = r"(?:n\s?[°ºo]\.?|№|nr\.|number|num[eé]ro|nummer|номер|番号|#)"


def mark_numbers(text: str, labels: Mapping[str, int], languages: Languages) -> str:
    """Put signs in the place of numbers that name an option by its label: 'option 3', 'numéro 5', '2番'.

    They are labels also where a text is a number: of '1. 2' and '2. 3', 'option 2' names the second.
    """
    if not any(label.isdecimal() for label in labels):
        return text
    number = rf"(?<![{EDGE}.,])(\d{{1,2}})(?![{EDGE}]|[.,:]\d|\s*[%°])"

    def sign(found: re.Match[str]) -> str:
        given = found[1] or found[2]
        position = labels.get(given)
        return found[0] if position is None else found[0].replace(given, chr(ord(LETTER) + position))

    named = rf"(?:{{options}}(?:\s*{_NUMBER_SIGN})?|{_NUMBER_SIGN})\s*[:：]?\s*[\"'“«(]?{number}"
    return word_pattern(rf"{named}|(?<![{EDGE}.,])(\d{{1,2}})\s?(?:番|번)(?![目째])", languages).sub(
        sign, text
    )


_CYRILLIC = re.compile(rf"(?<![{EDGE}])(?:[АБГД](?=[\s).:,;»\"*]|$)|[ВСЕ](?=[).:,;»\"*]|\s*(?:\n|$)))")
_IN_CYRILLIC = {"А": "A", "Б": "B", "В": "C", "Г": "D", "Д": "E", "Е": "F"}
_EITHER_WAY = {letter: _IN_CYRILLIC[letter] for letter in "АБГД"}
_LOOKS_LIKE = {"А": "A", "В": "B", "С": "C", "Е": "E"}


def latin_labels(text: str, labels: Mapping[str, int]) -> str:
    """Cyrillic letters alone as the Latin letters of the places that they name.

    Options with Cyrillic labels are counted А, Б, В. In a Russian text, В may be the second (B) or the third,
    and is neither; in another language it is the Latin letter that it looks like.
    """
    if any(label in labels for label in "БВГД"):
        latin = _IN_CYRILLIC
    else:
        latin = _EITHER_WAY if re.search("[БГДЖ-РТ-Яа-я]", text) else _LOOKS_LIKE
    return _CYRILLIC.sub(lambda found: latin.get(found[0], found[0]), text)
