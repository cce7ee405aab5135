"""The labels that options carry themselves: ア and イ, 가 and 나, 甲 and 乙, III and IV, ① and ②.

Such options are read by the letters of their places: in the options and in the response, a label that stands
as one becomes its letter. What may also be a word stays unless its neighbours show a label.
"""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Mapping, Sequence
from functools import lru_cache
from string import ascii_uppercase
from typing import NamedTuple

from sightline.scoring.answer_words import EDGE, LETTER, Languages, word_pattern
from sightline.scoring.markup import plain_text


class _Series(NamedTuple):
    """Labels in their order, and what stands before and behind one that is no part of a word."""

    labels: Sequence[str]
    before: str
    behind: str


_BEFORE_KANA = (
    r"(?<![\u3041-\u309f\u30a0-\u30ff\u3400-\u9fff])|(?<=[はがのとやもかりて肢え案号述文])|(?<=なく)"
)
_BEHIND_KANA = (
    r"(?![\u3041-\u30ff\u3400-\u9fff])"
    r"|(?=です|でしょ|だ|が|を|は|と|も|や|か|の|で(?:は|あ)|に(?:な|該|当))"
)
_BEHIND_HANGUL = (
    r"(?=\s*[).:,/\]」』\"'*]|\s*$|번|\s?입니다|이다|[와과랑나]\s|\s*(?:이나|또는|혹은|및)\s"
    r"|[가이]\s+(?:정답|맞|옳|답|가장|적절)|[를을]\s+(?:선택|고))"
)
_SERIES = (
    _Series("アイウエオカキクケコ", _BEFORE_KANA, _BEHIND_KANA),
    _Series("イロハニホヘト", _BEFORE_KANA, _BEHIND_KANA),
    _Series("가나다라마바사아", r"(?<![\uac00-\ud7af])", _BEHIND_HANGUL),
    _Series("ㄱㄴㄷㄹㅁㅂㅅ", r"(?<![\u3131-\u318e\uac00-\ud7af])", r"(?![\u3131-\u318e])"),
    _Series(
        "甲乙丙丁戊己庚辛",
        r"(?<![\u3400-\u9fff])|(?<=[选選是为為项項案和与與或])",
        r"(?![\u3400-\u9fff])|(?=[项項是才正最更对對符和与與或还還不也都])",
    ),
    _Series(("I", "II", "III", "IV", "V", "VI", "VII", "VIII"), r"(?<![\w.'’-])", r"(?![\w'’-])"),
)
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
            names = "|".join(sorted(letters, key=len, reverse=True))
            bare = zip(signs, letters.values(), folded, strict=True)
            return _Carried(
                letters,
                re.compile(rf"(?m)(?:{series.before})(?:{names})(?:{series.behind})"),
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
