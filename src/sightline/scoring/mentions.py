"""The options that a response names, whether a denial reaches them, and the words of eight languages."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import cached_property, lru_cache
from itertools import accumulate, pairwise
from typing import NamedTuple

from sightline.scoring.answer_words import (
    AT_END,
    AT_START,
    CASED,
    EDGE,
    LAST,
    LETTER,
    TEXT,
    TOKEN,
    Languages,
    expanded,
    languages_of,
    phrases,
    places_of,
    simplified,
    word_lists,
    word_pattern,
    words_of,
)
from sightline.scoring.labels import OWN_LABEL, latin_labels, mark_numbers
from sightline.scoring.markup import plain_text, without_accents
from sightline.scoring.text import normalised
from sightline.types import LETTERS

# -- The options of a question

MENTION = re.compile(f"[{LETTER}-{LAST}]")
LETTER_SIGN, TEXT_SIGN = f"[{LETTER}-\ue3ff]", f"[{TEXT}-{LAST}]"
_APOSTROPHE = "\ue801"

_ONE_LETTER = frozenset(LETTERS)
_WORD = re.compile(r"[^\W_]")
_NUMBER = re.compile(r"-?\d+(?:[.,:]\d+)*")
_FORMULA = re.compile(r"[=^+*/<>|\\-]")

_SUPPOSED = re.compile(r"(?:では|じゃ)ないか(?=と|な|。|$)")
"""Japanese 'is it not': a supposition, no denial."""

_PLAIN = {
    "ありません": "ない", "ています": "ている", "ていません": "ていない", "でいます": "でいる",
    "でいません": "でいない", "ております": "ている", "ておりません": "ていない",
    "てしまった": "た",
    "があります": "がある", "がいます": "がいる", "습니다": "다", "입니다": "이다", "아닙니다": "아니다",
}  # fmt: skip
_POLITE = re.compile("|".join(sorted(_PLAIN, key=len, reverse=True)))
"""Polite forms of Japanese and Korean, as in most responses, and their plain ones, as in most options."""


class Options:
    """The options of a question: their letters, their texts, and the pattern that finds the texts."""

    def __init__(self, options: Sequence[str]) -> None:
        self._given = options
        self.raw = [option.strip() for option in options]
        self.folded = [option.casefold() for option in self.raw]
        self.labels = dict(zip(LETTERS, range(len(options)), strict=False))
        self.letters = self.labels
        self.are_letters = False
        # One option after the other: most replies are a letter, for which the others' texts are not needed.
        if len(options) > 1 and all(OWN_LABEL.match(plain_text(option)) for option in options):
            self._take_own_labels()
        elif all(plain_text(one) in _ONE_LETTER for one in options) and len({*self.texts}) == len(options):
            # Letters are texts here; only what is written like a label ('option D') is one.
            self.letters = {text: position for position, text in enumerate(self.texts)}
            self.are_letters = True

    @cached_property
    def texts(self) -> list[str]:
        return [plain_text(option) for option in self._given]

    def _take_own_labels(self) -> None:
        found = [OWN_LABEL.match(text) for text in self.texts]
        labels = [(label[1] or label[2]).upper() for label in found if label]
        if len(set(labels)) < len(labels):
            return
        self.texts = [OWN_LABEL.sub("", text, count=1) for text in self.texts]
        own = {label: position for position, label in enumerate(labels)}
        if set(own) <= set(LETTERS) and not own.items() <= self.labels.items():
            self.labels = {}  # shown under one letter, labelled with another: a letter says nothing
        self.letters = self.labels = self.labels | own

    @cached_property
    def polar(self) -> Mapping[int, bool]:
        """The options that say yes or no, by position, if exactly one says yes and one says no."""
        said: dict[int, bool] = {}
        for position, text in enumerate(self.texts):
            word = re.split(r"[,.，。、;:：]", text.casefold(), maxsplit=1)[0].strip()
            for name, value in (("yes", True), ("no", False)):
                if word in words_of(name):
                    said[position] = value
        return said if sorted(said.values()) == [False, True] else {}

    @cached_property
    def sides(self) -> Mapping[int, bool]:
        """Like `polar`, also of true and false, right and wrong: which option affirms and which denies."""
        if self.polar:
            return self.polar
        said = {
            position: value
            for position, text in enumerate(self.texts)
            for names, value in ((("yes", "true"), True), (("no", "false"), False))
            if any(text.casefold().strip(" .") in words_of(name) for name in names)
        }
        if sorted(said.values()) == [False, True]:
            return said
        return self._denied_pair()

    def _denied_pair(self) -> Mapping[int, bool]:
        """Two options of which one denies the other: 'mask' and 'no mask', 戴了 and 没戴."""
        if len(self.texts) != 2:
            return {}
        plain, denied = zip(*(_without_denial(text) for text in self.texts), strict=True)
        same = plain[0] == plain[1] and sorted(denied) == [False, True]
        return {position: not one for position, one in enumerate(denied)} if same else {}

    @cached_property
    def normalised(self) -> Sequence[str]:
        return [normalised(expanded(text)) for text in self.texts]

    @cached_property
    def numbers(self) -> Sequence[str]:
        """The number of each option, if each holds one and no two the same; empty otherwise."""
        numbers = places_of("numbers", tuple(word_lists()))
        found = [_NUMBER.findall(str(numbers.get(text.casefold(), text))) for text in self.texts]
        same = len({one[0].replace(",", ".") for one in found if len(one) == 1}) < len(self.texts)
        short = all(len(re.findall(r"[^\W\d_]+", text)) <= 2 for text in self.texts)
        return [] if same or not short else [one[0] for one in found]

    @cached_property
    def are_ordinals(self) -> bool:
        """Whether the numbers are places in an order, as in 第2四半期: a number alone is then another one."""
        return bool(self.numbers) and all(re.match(r"[第제]\s?\d", text) for text in self.texts)

    @cached_property
    def content(self) -> Sequence[Sequence[str]]:
        """The words of each text that are not common, as they are written."""
        return [
            [
                word
                for word in content_words(_OF_UNIT.sub("", text))
                if word.casefold() not in words_of("pronouns")
            ]
            or content_words(text)
            for text in self.texts
        ]

    @cached_property
    def are_names(self) -> bool:
        """Whether each option is a first name and a surname, and no two have one in common."""
        words = [word.casefold() for words in self.content for word in words]
        capital = all(
            text[:1].isupper() and word[:1].isupper() for text in self.texts for word in text.split()[-1:]
        )
        return capital and all(len(words) == 2 for words in self.content) and len(set(words)) == len(words)

    @cached_property
    def are_simplified(self) -> bool:
        return all(text == simplified(text) for text in self.texts)

    @cached_property
    def have_plain_forms(self) -> bool:
        """Whether an option ends in a plain form of Japanese or Korean, which responses turn polite."""
        return any(re.search(r"(?:[るただい]|다)[。.]?$", text) for text in self.texts)

    @cached_property
    def _searched(self) -> Sequence[tuple[str, str, int]]:
        """What is searched in a response, the longest first: a word that it needs, its pattern, the position.

        Only texts with a word that no other option equals are searched.
        """
        bare = [_without_article(normalised(text.replace("'", _APOSTROPHE))) for text in self.texts]
        parts: list[tuple[int, int, str, str]] = []
        for position, text in enumerate(self.texts):
            if (
                not _WORD.search(text)
                or position in self.polar
                or text in "AI"
                or text.upper() in self.letters
            ):
                continue
            if self.normalised.count(self.normalised[position]) > 1:
                if len(text) > 2 and _FORMULA.search(text):
                    parts.append((len(text), position, _formula(text), ""))
            elif bare.count(bare[position]) == 1:
                parts.append((len(text), position, _searched_text(bare[position]), _needed(bare[position])))
            else:
                whole = self.normalised[position]
                parts.append((len(text), position, _searched_text(whole), _needed(whole)))
            if "=" in text and len(text) > 2:
                parts.append((len(text), position, _formula(text), ""))
            if (stem := _without_object(bare[position])) and bare.count(bare[position]) == 1:
                # 'on top of the laptop' for 'on top of it'
                noun = rf"(?=\s+{phrases(words_of('articles'))}\s)"
                parts.append((len(stem), position, _searched_text(stem) + noun, _needed(stem)))
        parts += [
            (0, i, rf"{AT_START}(?<![.:\-])(?<!\d,){_number(n)}(?![\d]|[.,:]\d){_unit(self.texts[i], n)}", "")
            for i, n in enumerate(self.numbers)
            if not self.are_ordinals
        ]
        parts.sort(key=lambda part: -part[0])
        return [(needed, pattern, position) for _, position, pattern, needed in parts]

    def mark_texts(self, text: str) -> str:
        """Put signs in the place of the texts of options."""
        # To compile a pattern takes longer than all else; most responses name one option, or a letter.
        folded = text.casefold().replace("\u0307", "").replace("ı", "i")
        parts = [(pattern, position) for needed, pattern, position in self._searched if needed in folded]
        if not parts:
            return text
        pattern = _any_of(tuple(pattern for pattern, _ in parts))
        return pattern.sub(lambda found: chr(ord(TEXT) + parts[(found.lastindex or 1) - 1][1]), text)

    def written(self, text: str) -> list[int]:
        """The positions of the options that a text equals as it is written, or else in any case."""
        for texts, sought in ((self.raw, text), (self.folded, text.casefold())):
            if same := _equal(texts, sought):
                return same
        return []

    def whole(self, text: str) -> list[int]:
        """The positions of the options that a text equals: as written, without marks, normalised, in part."""
        plain = plain_text(text)
        bare = plain.strip(" \t\r\n.。!！\"'“”‘’「」『』«»")
        for sought in (text.strip(), plain, bare):
            if sought and (same := self.written(sought)):
                return same
        folded = [option.casefold() for option in self.texts]
        for texts, sought in (
            (self.texts, plain),
            (folded, bare.casefold()),
            ([_compact(text) for text in self.texts], _compact(plain) if re.search("[=^+]", plain) else ""),
            (self.normalised, normalised(expanded(plain))),
        ):
            if sought and (same := _equal(texts, sought)):
                return same
        if len(bare) <= 60 and _WORD.search(bare):
            if same := _equal([without_accents(option) for option in self.texts], without_accents(bare)):
                return same
            return self._part(normalised(bare))
        return []

    def _part(self, text: str) -> list[int]:
        """The only option that holds a text of a few words, or begins with a number: '12' of '12 cm²'."""
        words = text.split()
        if text.isdigit() and len(text) > 1:
            begin = [i for i, option in enumerate(self.normalised) if option.startswith(f"{text} ")]
            return begin if len(begin) == 1 else []
        common = words_of("common") | words_of("yes") | words_of("no") | words_of("articles")
        short = len(text) == 1 and (not text.isalpha() or text.upper() in self.letters)
        if not 1 <= len(words) <= 4 or short or all(word in common or word.isdigit() for word in words):
            return []
        blank = " " if CASED.search(text) or len(text) < 2 else ""
        held = [
            position
            for position, option in enumerate(self.normalised)
            if f"{blank}{text}{blank}" in f"{blank}{option}{blank}"
        ]
        return held if len(held) == 1 else []


_OF_UNIT = re.compile(r"\s*\([^()\s]{1,6}\)$")
_DENIALS = re.compile(
    r"(?:没有|沒有|没|沒|不|未|无|無|非)(?=.)|\b(?:not|no|nicht|kein\w*|pas|aucune?|не|нет|sin)\s|^un(?=\w{3})"
    r"|(?:지|이|가)?\s*(?:않|아니|아님)\S*|ではない|じゃない|(?<=て)いない"
)
_DENIED_VERB = {
    "없": "있",
    "ない": "ある",
    "無": "有",
    "无": "有",
    "没有": "有",
    "沒有": "有",
    "なし": "あり",
    "いない": "いる",
}
_ENDING = re.compile(r"^已|[了着著过的]|(?:이|한|하는)?(?:다|음|함|임)$|(?:である|いる|だ)$")


def content_words(text: str) -> list[str]:
    common = words_of("common")
    return [word for word in TOKEN.findall(text) if not word.isdecimal() and word.casefold() not in common]


def _without_denial(text: str) -> tuple[str, bool]:
    """A short text without its denial and its ending, and whether it was denied."""
    text = text.casefold().strip(" .。")
    for denied, plain in _DENIED_VERB.items():
        if text.startswith(denied) and (len(denied) > 1 or len(text) < 3):
            return _ENDING.sub("", plain + text[len(denied) :]), True
    bare, count = _DENIALS.subn("", text)
    return _ENDING.sub("", bare).strip(), count == 1


def _compact(text: str) -> str:
    return re.sub(r"[\s.]", "", text)


def _equal(texts: Sequence[str], sought: str) -> list[int]:
    return [position for position, option in enumerate(texts) if option == sought]


_BECAUSE = re.compile(r"(?:because|porque|weil|parce que|parce qu|потому что)\s+")


def _without_article(text: str) -> str:
    """A text without the article or the 'because' that it begins with in any language."""
    text = _BECAUSE.sub("", text, count=1) if _BECAUSE.match(text) else text
    first, _, rest = text.partition(" ")
    return rest if rest and first in words_of("articles") else text


def _without_object(text: str) -> str:
    """A text without the pronoun that it ends with; '' if it ends with none."""
    rest, _, last = text.rpartition(" ")
    return rest if last in words_of("objects") else ""


def _formula(text: str) -> str:
    """The pattern of a text that is told from another option by its signs only."""
    parts = re.findall(r"\w+|[^\w\s]", text)
    return r"(?<![\w=^+*/-])" + r"\s*".join(map(re.escape, parts)) + r"(?!\s*[-+*/^(]|[\w^])"


def _unit(text: str, number: str) -> str:
    """The pattern of what may stand behind a number: its unit of one letter ('1.5 A'), no other noun."""
    if found := re.search(r"\d\s*([A-ZАВС])$", text):
        return rf"(?:\s*[{found[1]}{found[1].translate(_LOOK_ALIKE)}](?!\w))?"
    if noun := re.search(rf"{re.escape(number)}\s+([{EDGE}]{{3}})", text):
        its_own = rf"(?=\s+{noun[1][0]}|(?:\s+[{EDGE}]+){{1,3}}\s+{noun[1]})"
        return rf"(?:(?!\s+[{EDGE}]{{4}})|{its_own})"
    return ""


_LOOK_ALIKE = str.maketrans("АВСABC", "ABCАВС")


def _number(text: str) -> str:
    """The pattern of a number in any spelling: '119', '119.00' and '119,00' are one."""
    whole, _, decimals = text.replace(",", ".").partition(".")
    if not ((whole.lstrip("-").isdigit() and decimals.isdigit()) or not decimals) or ":" in text:
        return re.escape(text)
    decimals = decimals.rstrip("0")
    return rf"{re.escape(whole)}[.,]{decimals}0*" if decimals else rf"{re.escape(whole)}(?:[.,]0+)?"


@lru_cache(maxsize=4096)
def _any_of(patterns: tuple[str, ...]) -> re.Pattern[str]:
    return re.compile("|".join(f"({pattern})" for pattern in patterns), re.I)


def _needed(text: str) -> str:
    """The longest word, in lower case, that a response must hold if `_searched_text` finds a text in it."""
    words = [word for word in text.casefold().split() if re.fullmatch("[a-z]+", word) and "ss" not in word]
    return max(words, key=len, default="")


def _searched_text(text: str) -> str:
    """The pattern of a normalised text in a response, with or without an article."""
    words = [re.escape(word).replace(_APOSTROPHE, "['’]?").replace("ss", "(?:ss|ß)") for word in text.split()]
    pattern = words[0]
    for previous, word in pairwise(words):
        # A unit may stand at its number: '6Ω' is '6 Ω'.
        pattern += (r"[\s\W_]{0,3}" if previous[-1].isdigit() else r"[\s\W_]{1,3}(?:(?:an?|the)\s+)?") + word
    start = rf"{AT_START}(?<!\w-)(?:{phrases(words_of('articles'))}\s*)?" if CASED.match(text[0]) else ""
    if re.match(r"[\d.-]", text):
        start = rf"{AT_START}(?<![.:/\-])(?<!\d,)"
    end = rf"{AT_END}(?![.,:]\d|['’]s\b)" if CASED.match(text[-1]) else ""
    if re.search(r"[a-z]{3}$", text):
        end = r"(?:e?s)?" + end  # a plural
    if len(text) == 1 and not CASED.match(text):
        # One sign is a word only where nothing but a copula, a particle or a measure word stands beside it.
        start = rf"(?:(?<=[{_BEFORE_SIGN}:：「『“\"'«\u3041-\u309f])|(?<![^\W_]))"
        end = r"(?=[\s。.,，、！!」』”\"'でだ色]|边|侧|側|信号|$)"
        if re.match("[\uac00-\ud7af]", text):
            start, end = r"(?<![^\W_])", rf"(?=[^\w]|$|(?:{_COPULAS})|(?:{_PARTICLES})(?![\uac00-\ud7af]))"
    return start + pattern + end


_BEFORE_SIGN = "是为は着了碗杯只隻个個条條张張本把件台辆輛棵朵片瓶块塊头頭匹"
"""What may stand before a word of one Chinese sign: a copula, an aspect, a measure word."""
_COPULAS = "입니다|이다|이에요|예요|이며|이고|인 것"
_PARTICLES = "[이가은는을를도과와로]|으로"
"""What may stand behind a Korean word of one syllable."""

prepared_options = lru_cache(maxsize=512)(Options)


# -- Mentions: each letter and each text of an option in a response becomes one sign

_URL = re.compile(
    r"(?:\b[a-z][a-z0-9+.-]*://|\bwww\.)\S+|\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|jpg|png)\b", re.I
)
_QUOTED_QUESTION = re.compile(r"[\"“「『'‘«][^\"”」』»\n]{4,300}?[?？]\s*[\"”」』'’»]")
_IDIOM = re.compile(
    r"\b(?:that['’]s|that is|you['’]re|all|is this|was) right\b(?! of| side)|\bright (?:away|now|next)\b"
    r"|\b(?:a|ai|as|ont|avons|avez|avait|avaient|aura|ayant|avoir) (?:[^\W\d_]+ )?été\b",
    re.I,
)
LABEL = r"([A-Za-z]|\d{1,2})"
_IN_BRACKETS = re.compile(rf"[(\[【「『〔<]\s*{LABEL}\s*[)\]】」』〕>](?!\s*[=:]\s*\d)")
_AT_LINE = re.compile(
    rf"(?m)^(?:\s*(?:[-•+]\s+)?){LABEL}(?:\s*[.):、,](?=[\s{LETTER}-{LAST}]|$|[^\x00-\x7f])|(?=\s*$))"
)
_BEFORE_NOUN = re.compile(rf"(?<![{EDGE}])([A-Z])\s*(?=선택지|옵션|选项|選項|项|項|번|を選)")
_SMALL_LETTER = re.compile(
    rf"(?<![{EDGE}'.])(?<![A-Za-z][かとやも、,・/])([b-h]|a(?!\s))(?=です|でしょ|だと|を選|が(?:正|最も|適|答|一番|妥当|該当|当ては))"
)
"""A lower-case letter before Japanese words that only an answer has before them."""
ALONE = re.compile(
    rf"(?<![{EDGE}'.\-°∠~{{\\])(?<![{EDGE}:]{{2}}/)(?<!:/)(?<!//)(?<!\b[a-z]\.\s)([A-Z])"
    rf"(?![{EDGE}{{}}]|['’][A-Za-z]|[-/][a-z]|\.[A-Za-z]|:[/\\]|\s*(?:[=<>∩∪⊂∈]|\\c[au]p))"
)
_CJK_BEFORE = frozenset(
    "是为為选選案項项答故除和与與及或即就非肢えはがのとかやもでを은는이가답로와과나번说說排"
)
"""Signs after which a letter is one; after other signs of these scripts it belongs to a word ('点B')."""


class Marked(NamedTuple):
    """A response with a sign for each mention, its languages, and whether it was cut off or asks back."""

    text: str
    languages: Languages
    is_open: bool


def mark(response: str, options: Options) -> Marked:
    plain = MENTION.sub(" ", plain_text(response))
    languages = languages_of(plain)
    text = _SUPPOSED.sub("だ", _QUOTED_QUESTION.sub(" ", _URL.sub(" ", plain)))
    if options.have_plain_forms:
        text = _POLITE.sub(lambda found: _PLAIN[found[0]], text)
    if "zh" in languages and options.are_simplified:
        text = simplified(text)
    if "right" in options.folded or "été" in options.folded:
        text = _IDIOM.sub(" ", text)
    if options.numbers:
        text = _with_digits(text, languages)
    text = options.mark_texts(mark_numbers(text, options.labels, languages))
    text = _mark_letters(latin_labels(text, options.labels), options, languages)
    if options.polar:
        text = _without_own_word(text, options, languages)
    return Marked(_without_lists(text, languages), languages, is_open(text))


def _without_own_word(text: str, options: Options, languages: Languages) -> str:
    """Leave out the yes or no behind the letter of its own option: in '(B) No' it denies nothing."""
    of_word = {said: chr(ord(LETTER) + position) for position, said in options.polar.items()}

    def letter(found: re.Match[str]) -> str:
        said = of_word[found["yes"] is not None]
        return said if said == found[1] else f"{found[1]}/{said}"  # a contradiction is no choice

    form = rf"({LETTER_SIGN})[\s.)\]:：,\-–—*]*(?:(?P<yes>{{yes}})|(?P<no>{{no}}))"
    return word_pattern(form, tuple(sorted({*languages, "en"}))).sub(letter, text)


def _with_digits(text: str, languages: Languages) -> str:
    numbers = places_of("numbers", languages)
    return word_pattern("{numbers}", languages).sub(
        lambda found: str(numbers.get(found[0].casefold(), found[0])), text
    )


def is_open(text: str) -> bool:
    """Whether a response breaks off within a sentence, or ends with a question."""
    end = text.rstrip()
    if end.endswith(("?", "？")):
        return True
    if re.search(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]$", end):
        return len(end) > (30 if re.search(r"[。.!！][^\n]*$", end) else 60)
    return len(end) > 60 and (end[-1] in ",，、:：;；(—–-=+×·/" or re.search(rf"[{EDGE}]$", end) is not None)


def _mark_letters(text: str, options: Options, languages: Languages) -> str:
    """Put signs in the place of letters: in brackets, at the start of a line, after 'option', or alone."""

    def put(pattern: re.Pattern[str], text: str, letters: Mapping[str, int]) -> str:
        def sign(found: re.Match[str]) -> str:
            # Where letters are texts, 'the letter D' is a text, 'option D' a label.
            known = options.letters if pattern is named and letter_word.search(found[0]) else letters
            position = known.get(found[1].upper())
            after = text[found.end(1) :]
            if position is None or (pattern is named and not stands_alone(found[1], after, languages)):
                return found[0]
            before, behind = found.start(1) - found.start(), found.end(1) - found.start()
            kept = (" ", " ") if pattern is _IN_BRACKETS else (found[0][:before], found[0][behind:])
            return kept[0] + chr(ord(LETTER) + position) + kept[1]

        return pattern.sub(sign, text)

    letter_word = word_pattern("{letter_words}", languages)
    named = word_pattern(
        rf"{{options}}\s*(?:is\s+)?[:：]?\s*[\"'“«]?((?<![A-Za-z])[A-Z])(?![{EDGE}'])", languages
    )
    if "ja" in languages:
        text = put(_SMALL_LETTER, text, options.labels)
    for pattern in (_IN_BRACKETS, _AT_LINE, named, _BEFORE_NOUN):
        text = put(pattern, text, options.labels)
    places = places_of("ordinals", languages)

    def ordinal(found: re.Match[str]) -> str:
        place = places[re.sub(r"\s+", " ", found[1]).casefold()]
        return chr(ord(LETTER) + place) if place < len(options.texts) else found[0]

    text = word_pattern(r"({ordinals})\s*{options}(?!\s*[A-Z]\b)", languages).sub(ordinal, text)

    def alone(found: re.Match[str]) -> str:
        position, before, after = options.letters.get(found[1]), text[: found.start()], text[found.end() :]
        if position is None or not (
            (options.are_letters and found[1] not in "AI")
            or _may_follow(before, after, options.letters, languages)
        ):
            return found[0]
        if found[1] == "A" and "en" in languages and not after.strip() and before.rstrip(" ").endswith("."):
            return found[0]  # an article, after which the response was cut off
        return chr(ord(LETTER) + position) if stands_alone(found[1], after, languages) else found[0]

    return ALONE.sub(alone, text)


_NEXT_LETTER = re.compile(r"\s*(?:,|and|&|/)\s*([A-Z])(?![\w.])")
_PREVIOUS_LETTER = re.compile(r"(?<![A-Za-z])([A-Z])\s*(?:,|and|&|/|[和与與及]|(?<=[A-Z])[とや])\s*$")


def _may_follow(before: str, after: str, letters: Mapping[str, int], languages: Languages) -> bool:
    """Whether a letter may stand after this text: not after a noun ('vitamin C'), nor in 'C, E and G'."""
    beside = (_NEXT_LETTER.match(after), _PREVIOUS_LETTER.search(before))
    if any(found is not None and found[1] not in letters for found in beside):
        return False
    if beside[1] and not _may_follow(before[: beside[1].start()], "", letters, languages):
        return False  # '兼具A和B的功能'
    if before and re.match(r"[\u30a0-\u30ff\u3400-\u9fff\uac00-\ud7af]", before[-1]):
        leads = word_pattern("(?:{concludes}|{choosing})$", languages)
        return before[-1] in _CJK_BEFORE or leads.search(before[-6:]) is not None
    if hangul := re.search(r"([\uac00-\ud7af]+)[ \t]+$", before):
        known = word_pattern(
            "{options}$|{nouns}$|{choosing}$|{concludes}$|{either}$|{turns}$|{revises}$", languages
        )
        return hangul[1][-1] in _CJK_BEFORE or known.search(hangul[1]) is not None
    last = re.search(rf"([{EDGE}']+)[ \t]+$", before)
    if last is None or last[1].endswith(("'s", "'re")):
        return True
    if last[1] in ("a", "an"):
        return False
    return (
        word_pattern("^{leads}$|^{links}$|^{nouns}$|^{articles}$|^{options}$", languages).match(last[1])
        is not None
    )


def stands_alone(letter: str, after: str, languages: Languages) -> bool:
    """Whether a letter is one before this text: `a`, `A` and `I` not before a word that goes on."""
    following = re.match(rf"[ \t]+([{EDGE}']+)", after)
    if following is None:
        return not (letter in "aA" and re.match(rf"[ \t]+{TEXT_SIGN}", after) and after.lstrip()[0] > TEXT)
    if letter in "iI":
        return following[1] in ("is", "because", "or", "and", "seems")
    if letter.islower() or letter == "A":
        return word_pattern("^{follows}$|^{either}$", languages).match(following[1]) is not None
    return True


_LISTED = re.compile(
    rf"(?m)^[ \t]*(?:[-•+]\s+)?({LETTER_SIGN})[ \t]*[.):、][ \t]*"
    rf"(?:{TEXT_SIGN}[ \t.,;。]*|[^\n{LETTER}-{LAST}]*)$"
)
_TABLE_ROW = re.compile(r"(?m)^[ \t]*\|.*\|[ \t]*$")
_LISTED_INLINE = re.compile(
    rf"(?:{LETTER_SIGN}[ \t.):、]*{TEXT_SIGN}[ \t,;，、.。/]*"
    r"(?:and|or|或|и|или|und|oder|et|ou|y|o)?[ \t]*){2,}"
)


def _without_lists(text: str, languages: Languages) -> str:
    """Leave out lists that only repeat the options: lines 'A. ...', 'B. ...', or the same in one line."""
    text = _LISTED_INLINE.sub(
        lambda found: " " if len(set(re.findall(LETTER_SIGN, found[0]))) > 1 else found[0], text
    )
    remark = word_pattern(r"{right}|[✓✔✅☑✗✘❌]|{denied_after}\W*$|[-–—:(].*{denied_after}", languages)
    text = _TABLE_ROW.sub(" ", text)
    lines = [found for found in _LISTED.finditer(text) if not remark.search(found[0])]
    if len({found[1] for found in lines}) < 2:
        return text
    last = lines[-1]
    following = _NEXT_ITEM.match(text, last.end())
    if (
        following
        and len(lines) > 2
        and ord(following[1]) == ord(last[1]) + 1
        and not remark.search(following[0])
    ):
        lines.append(following)  # 'J. Both A and B', the last of the list
    for found in reversed(lines):
        text = f"{text[: found.start()]} {text[found.end() :]}"
    return text


_NEXT_ITEM = re.compile(rf"\n[ \t]*(?:[-•+]\s+)?({LETTER_SIGN})[ \t]*[.):、][^\n]*$", re.MULTILINE)
_LIST_ITEM = re.compile(
    rf"(?m)^\s*(?:[-•+*]\s+)?(?:[^\W\d_]{{1,12}}\s?)?({LETTER_SIGN})\s*[.):：、—–-][^\n]*$"
)


def without_open_list(marked: Marked) -> Marked:
    """Leave out remarks on one option after the other that break off: they choose none yet."""
    text = marked.text.rstrip()
    items = list(_LIST_ITEM.finditer(text)) if marked.is_open or text.endswith((",", "，", "、")) else []
    if not items or items[-1].end() < len(text):
        return marked
    before = text[: items[0].start()]
    # 'The best choice is:', and then the answer
    leads = len(items) == 1 and word_pattern(r"{links}[\s*]*[:：]\W*$", marked.languages).search(before)
    return marked if leads or not before.strip() else marked._replace(text=before)


# -- Sentences, and which of their mentions are denied

SENTENCE = re.compile(
    r"[^\n.!?。！？;；]*(?:(?:"
    rf"\.(?=\S)(?!{LETTER_SIGN})|(?<={LETTER_SIGN})\.(?=[ \t]*{TEXT_SIGN})|(?<=\b[A-Za-z])\.(?=\s*[a-z])"
    r")[^\n.!?。！？;；]*)*[.!?。！？;；\n]*"
)


def sentence_around(text: str, at: int) -> tuple[str, int]:
    """The sentence that holds a place of the text, and where it starts."""
    sentences, starts = _parted(text)
    place = bisect_right(starts, at) - 1
    return sentences[place], starts[place]


@lru_cache(maxsize=8)
def _parted(text: str) -> tuple[Sequence[str], Sequence[int]]:
    """The sentences of a text, and where each starts."""
    sentences = [sentence for sentence in SENTENCE.findall(text) if sentence]
    return sentences, list(accumulate(map(len, sentences[:-1]), initial=0))


class Mention(NamedTuple):
    """An option that a sentence names, its place in the sentence, and whether it is denied."""

    position: int
    start: int
    is_letter: bool
    denied: bool


def sentences_of(text: str) -> list[str]:
    return [part for part in SENTENCE.findall(text) if part.strip()]


def quoted(words: str) -> str:
    """The words of a response as they are shown."""
    text = " ".join(words.split())
    return text if len(text) <= 120 else f"{text[:119]}…"


def position_of(sign: str) -> int:
    return ord(sign) - ord(TEXT if sign >= TEXT else LETTER)


def joining(languages: Languages) -> re.Pattern[str]:
    """What joins mentions to a list: commas, strokes, 'and', 'or'."""
    blank = r"[\s\"'()\[\]“”‘’「」『』«»]*"
    return word_pattern(
        rf"{blank}(?:[,，、/&+|]?{blank}(?:{{either}}|{{options}})?{blank}){{1,3}}(?:{{options}}\s*)?",
        languages,
    )


def mentions_of(sentence: str, languages: Languages) -> list[Mention]:
    found = list(MENTION.finditer(sentence))
    ends = [*(mention.start() for mention in found[1:]), len(sentence)][: len(found)]
    denied = [
        _denial(sentence, mention.start(), end, languages) for mention, end in zip(found, ends, strict=True)
    ]
    for i in range(len(found) - 2, -1, -1):
        # A denial after a list holds for all of it: 'A, B and D are wrong'.
        between = sentence[found[i].end() : found[i + 1].start()]
        if denied[i + 1] == "after" and not denied[i] and joining(languages).fullmatch(between):
            denied[i] = "after"
    return [
        Mention(position_of(mention[0]), mention.start(), mention[0] < TEXT, bool(why))
        for mention, why in zip(found, denied, strict=True)
    ]


_ANYTHING_BUT = re.compile(r"\banything\s+(?:other\s+than|but)\s*(?:option\s*)?[\"'(]*$", re.IGNORECASE)
_INTERJECTION = re.compile(r"^\W*(?:no|nein|non|нет|nope)\s*[,.!:]", re.IGNORECASE)

_QUOTED = re.compile(rf"[\"“「『„«‘][^\"”」』“»’{LETTER}-{LAST}]+[\"”」』“»’]")
"""Quoted words, which deny nothing: '„nicht bleichen“'."""


def _denial(sentence: str, at: int, end: int, languages: Languages) -> str:
    """'before' or 'after' a mention, where its denial stands; '' for none."""
    before, after = sentence[:at], sentence[at + 1 : end]
    if _ANYTHING_BUT.search(before):
        return "before"
    # A turn ends the reach of a denial: 'not A but B'. So does a new clause: 'not red, it is B'.
    turns = word_pattern(r"[;:：]|{turns}(?!\s*(?:not\b|n't))|[,，–—-]\s*{restarts}", languages)
    reach = before[max((turn.end() for turn in turns.finditer(before)), default=0) :]
    reach = word_pattern(r"{no_doubt}|[「『][^「『]*[」』]", languages).sub("", _INTERJECTION.sub("", reach))
    last = max(
        (denial.end() for denial in word_pattern("{denied_before}|{tentative}", languages).finditer(reach)),
        default=None,
    )
    if last is not None and len(reach) - last <= 60:
        anew = word_pattern(r"[,，].*{links}", languages).search(reach[last:])
        if not anew:
            return "before"
    joins = r"(?:and|but|rather|y|e|et|und|и|а|sondern)?"
    of_next = rf"^[\s\"'(\[,)\]]*{joins}[\s,]*{{denied_before}}[\s\"'(]*{{options}}?[\s\"'(]*$"
    if end < len(sentence) and word_pattern(of_next, languages).match(after):
        return ""  # the denial is of the next mention: 'B, not A'
    if re.match(r"[\s)\]\"':.\-–—]*[✗✘❌×🚫]", after):
        return "after"
    # In Japanese and Korean a noun may stand between: 'AのXではない', 'A X는 아니다'.
    noun = r"(?:の[^\s、。]{1,8}|\s?[\uac00-\ud7af]{1,8}\s?)?"
    carried = r"(?:[\s\"'*_]*{carries}[\s,'\"]*){0,6}|\s*[:：\-–—(（]\s*(?:{carries}\s*)?"
    follows = rf"^[\s)\]\"'、»”」]*{noun}(?:{carried}){{denied_after}}"
    if not re.match(r"[\s\"')\]]*,", after) and word_pattern(follows, languages).match(after):
        return "after"
    return ""


@lru_cache(maxsize=512)
def asks_for_the_wrong(question: str) -> bool:
    """Whether a question asks for what is not so: 'Which is NOT shown?'"""
    asked = _QUOTED.sub(" ", question.casefold())
    languages = languages_of(asked)
    if languages == ("en",) and not re.search(
        r"\b(?:which|what)\b.*(?:\b(?:not|except|incorrect|false|wrong|untrue)\b|n['’]t\b)", asked
    ):
        return False
    return word_pattern("{wrong_word}|n't", languages).search(asked) is not None
