"""The option that a response chooses. It reads what the response states; it never guesses.

The first rank that finds a statement decides, and two statements of the same rank that differ are no choice:

1. `text`: the response is an option's text: exactly, then in any case, then without punctuation and articles.
2. `container`: what `\\boxed{}`, `<answer>` or a JSON field named answer holds.
3. `statement`: what follows a label ('Answer:', 'the answer is', '答案', '정답'), or is called correct.
4. `line`: a line that is only a letter or an option.
5. `leading letter`: a letter with its sign at the start of a line ('B) a drum').
6. `conclusion`: what a conclusion or a sentence names at once ('so it is a drum').
7. `letter`: the only letter that is named.
8. `option`: the only option whose text is held; of yes and no, the stated word.

A denied or excluded letter or text is not chosen, and the word 'no' within an option denies nothing. A list of
the options is no statement. A later statement replaces an earlier one only where the response revises it
('wait'). `A` and `I` before a word are words. Letters in option texts, URLs and quoted questions are no letters.
What a response only mentions (7 and 8) does not count if it was cut off or asks back.
"""

from __future__ import annotations

import json
import re
import tomllib
import unicodedata
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cache, cached_property, lru_cache
from importlib.resources import files
from string import ascii_uppercase
from typing import Literal, NamedTuple

from sightline.scoring.text import normalised, ungrouped
from sightline.types import Outcome

LETTERS = ascii_uppercase
"""The letters of options in the order shown; options after Z have none."""

Rule = Literal[
    "text",
    "container",
    "statement",
    "line",
    "leading letter",
    "conclusion",
    "letter",
    "option",
    "several",
    "none",
]


class Choice(NamedTuple):
    """The position of the chosen option from 0, None for none; the rank that decided; the words it read."""

    position: int | None
    rule: Rule
    words: str = ""


def read_choice(response: str, options: Sequence[str], question: str = "") -> Choice:
    """The option that a response chooses; the rule is `several` for statements that differ.

    The question tells what a denial means ('Which is NOT shown?'), and what 'It is.' states.

    >>> read_choice("It is not A. Answer: a drum", ["a kite", "a drum"])
    Choice(position=1, rule='statement', words='Answer: a drum')
    >>> read_choice("A or B", ["a kite", "a drum"])
    Choice(position=None, rule='several', words='A, B')
    """
    texts = tuple(options)
    negated = bool(question) and len(texts) > 2 and _asks_for_the_wrong(question)
    read = _read_choice(response, texts, negated)
    if read.rule == "none" and question and response.strip():
        return _stated_by_question(question, response, _prepared(texts))
    return read


def chosen_letter(response: str, options: Sequence[str], question: str = "") -> str | None:
    """The letter of the option that a response chooses; None if it chooses none, or one after Z.

    >>> fruits = ["a red apple", "a green pear"]
    >>> chosen_letter("b)", fruits), chosen_letter("A green pear.", fruits), chosen_letter("Pears?", fruits)
    ('B', 'B', None)
    """
    position = read_choice(response, options, question).position
    return None if position is None or position >= len(LETTERS) else LETTERS[position]


def chosen_option(outcome: Outcome) -> str | None:
    """The normalised text of the option that an answer chooses; None if it chooses none."""
    position = read_choice(outcome.response, outcome.options, outcome.question).position
    return None if position is None else normalised(outcome.options[position])


# -- The words of each language: `answer_words.toml`

_EDGE = "A-Za-z0-9_\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff\u1e00-\u1eff"
"""Signs next to which a word of a script with blanks goes on; Chinese, Japanese and Korean signs do not."""

_LATIN = ("en", "de", "fr", "es")
_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+")

Languages = tuple[str, ...]


@cache
def _table() -> Mapping[str, Mapping[str, Sequence[str]]]:
    """The words by language and name of their list."""
    return tomllib.loads((files(__package__) / "answer_words.toml").read_text(encoding="utf-8"))


@cache
def _words(name: str, languages: Languages | None = None) -> frozenset[str]:
    chosen = _table() if languages is None else {language: _table()[language] for language in languages}
    return frozenset(word for lists in chosen.values() for word in lists.get(name, ()))


@cache
def _vocabulary(language: str) -> frozenset[str]:
    return frozenset(
        part
        for name, words in _table()[language].items()
        if name != "ordinals"
        for word in words
        for part in word.split()
    )


def _languages(text: str) -> Languages:
    """The languages of a text: by its scripts, and of Latin words those that know the most of them."""
    found = []
    if re.search(r"[\u3040-\u30ff]", text):
        found.append("ja")
    elif re.search(r"[\u3400-\u9fff]", text):
        found.append("zh")
    if re.search(r"[\uac00-\ud7af]", text):
        found.append("ko")
    if re.search(r"[\u0400-\u04ff]", text):
        found.append("ru")
    words = set(re.findall(r"[a-z\u00df-\u024f]{2,}", text[:4000].casefold()))
    known = {language: len(words & _vocabulary(language)) for language in _LATIN}
    most = max(known.values())
    if words and (most or not found):
        found += [language for language in _LATIN if known[language] >= 0.7 * most]
    return tuple(found or ["en"])


@cache
def _phrases(words: frozenset[str]) -> str:
    """A pattern of any of the phrases, the longest first; '(?!)' for none."""
    parts = []
    for word in sorted(words, key=lambda one: (-len(one), one)):
        start = f"(?<![{_EDGE}])" if re.match(f"[{_EDGE}]", word) else ""
        end = f"(?![{_EDGE}])" if re.match(f"[{_EDGE}]", word[-1]) else ""
        part = r"\s+".join(map(re.escape, word.split())).replace("'", "['’]")
        parts.append(part + end if word == "n't" else start + part + end)
    return f"(?:{'|'.join(parts)})" if parts else "(?!)"


_LIST = re.compile(r"\{([a-z_]+)\}")


@cache
def _pattern(form: str, languages: Languages) -> re.Pattern[str]:
    """Compile a pattern in which `{name}` stands for the words of a list, and `{M}` for a mention."""
    form = _LIST.sub(lambda found: _phrases(_words(found[1], languages)), form)
    form = form.replace("{M}", f"[{_LETTER}-{_LAST}]")
    return re.compile(form, re.IGNORECASE)


# -- The options of a question

_LETTER, _TEXT, _LAST = "\ue000", "\ue400", "\ue7ff"
"""Signs that stand for mentions: of letters from U+E000, of texts from U+E400, in the order of the options."""
_MENTION = re.compile(f"[{_LETTER}-{_LAST}]")
_LETTER_SIGN, _TEXT_SIGN = f"[{_LETTER}-\ue3ff]", f"[{_TEXT}-{_LAST}]"
_APOSTROPHE = "\ue801"

_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufe0e\ufe0f\ufeff"))
_MARKUP = re.compile(
    r"\\(?:text|textbf|mathrm|mathbf|mathit|textit|operatorname|rm|bf)\s*\{([^{}]*)\}"
    r"|\$+|\\[()\[\],;!]|\\%|`+|\*+|</?(?:b|i|em|strong|u|p|span|br)\s*/?>"
    rf"|(?<![{_EDGE}])_+|_+(?![{_EDGE}])|(?m:^\s*(?:>|#+)\s*)"
)
_LATEX = {"\\pi": "π", "\\times": "×", "\\degree": "°", "^\\circ": "°", "\\circ": "°", "\\cdot": "·"}
_REPEATED = re.compile(r"(\b\w+\b[.,!]?)(?:\s+\1){2,}", re.IGNORECASE)
_OWN_LABEL = re.compile(
    r"\s*(?:[(\[]\s*([A-Za-zА-Еа-е]|\d{1,2})\s*[)\]]|([A-Za-zА-Еа-е]|\d{1,2})\s*[.):、](?!\d))\s*(?=\S)"
)
_CASED, _WORD = re.compile(f"[{_EDGE}]"), re.compile(r"[^\W_]")
_NUMBER = re.compile(r"-?\d+(?:[.,:]\d+)*")
_FORMULA = re.compile(r"[=^+*/<>|\\-]")


def _plain(text: str) -> str:
    """A text without markup and invisible signs, full-width letters folded, thousands without commas."""
    folded = unicodedata.normalize("NFKC", text.translate(_INVISIBLE)).replace("’", "'")
    for command, sign in _LATEX.items():
        folded = folded.replace(command, sign) if "\\" in folded else folded
    previous = ""
    while previous != folded:
        previous, folded = folded, _MARKUP.sub(lambda found: found[1] or "", folded)
    return _REPEATED.sub(r"\1", ungrouped(folded)).strip()


def _without_accents(text: str) -> str:
    decomposed = unicodedata.normalize("NFD", text.casefold())
    return "".join(sign for sign in decomposed if sign.isalnum() and not unicodedata.combining(sign))


class _Options:
    """The options of a question: their letters, their texts, and the pattern that finds the texts."""

    def __init__(self, options: Sequence[str]) -> None:
        self.raw = [option.strip() for option in options]
        self.folded = [option.casefold() for option in self.raw]
        self.labels = dict(zip(LETTERS, range(len(options)), strict=False))
        self.letters = self.labels
        self.texts = plain = [_plain(option) for option in options]
        if len(options) > 1 and all(map(_OWN_LABEL.match, plain)):
            self._take_own_labels(plain)
        elif len(set(plain)) == len(plain) and all(len(text) == 1 and text in LETTERS for text in plain):
            # Letters are texts here; only what is written like a label ('option D') is one.
            self.letters = {text: position for position, text in enumerate(plain)}

    def _take_own_labels(self, plain: Sequence[str]) -> None:
        found = [_OWN_LABEL.match(text) for text in plain]
        labels = [(label[1] or label[2]).upper() for label in found if label]
        if len(set(labels)) < len(labels):
            return
        self.texts = [_OWN_LABEL.sub("", text, count=1) for text in plain]
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
                if word in _words(name):
                    said[position] = value
        return said if sorted(said.values()) == [False, True] else {}

    @cached_property
    def normalised(self) -> Sequence[str]:
        return [normalised(text) for text in self.texts]

    @cached_property
    def numbers(self) -> Sequence[str]:
        """The number of each option, if each holds one and no two the same; empty otherwise."""
        found = [_NUMBER.findall(text) for text in self.texts]
        same = len({one[0].replace(",", ".") for one in found if len(one) == 1}) < len(self.texts)
        short = all(len(re.findall(r"[^\W\d_]+", text)) <= 2 for text in self.texts)
        return [] if same or not short else [one[0] for one in found]

    @cached_property
    def _searched(self) -> tuple[re.Pattern[str] | None, Sequence[int]]:
        """The texts that are searched in a response: those with a word that no other option equals."""
        bare = [_without_article(normalised(text.replace("'", _APOSTROPHE))) for text in self.texts]
        parts: list[tuple[int, int, str]] = []
        for position, text in enumerate(self.texts):
            if not _WORD.search(text) or position in self.polar or text.upper() in self.letters:
                continue
            if self.normalised.count(self.normalised[position]) > 1:
                if len(text) > 2 and _FORMULA.search(text):
                    parts.append((len(text), position, _formula(text)))
            elif bare.count(bare[position]) == 1:
                parts.append((len(text), position, _searched_text(bare[position])))
            else:
                parts.append((len(text), position, _searched_text(self.normalised[position])))
        parts += [
            (0, i, rf"(?<![{_EDGE}.,:\-]){re.escape(n)}(?![\d]|[.,:]\d)") for i, n in enumerate(self.numbers)
        ]
        parts.sort(key=lambda part: -part[0])
        if not parts:
            return None, []
        return re.compile("|".join(f"({part})" for _, _, part in parts), re.I), [part[1] for part in parts]

    def mark_texts(self, text: str) -> str:
        """Put signs in the place of the texts of options."""
        pattern, positions = self._searched
        if pattern is None:
            return text
        return pattern.sub(lambda found: chr(ord(_TEXT) + positions[(found.lastindex or 1) - 1]), text)

    def written(self, text: str) -> list[int]:
        """The positions of the options that a text equals as it is written, or else in any case."""
        for texts, sought in ((self.raw, text), (self.folded, text.casefold())):
            if same := _equal(texts, sought):
                return same
        return []

    def whole(self, text: str) -> list[int]:
        """The positions of the options that a text equals: as written, without marks, normalised, in part."""
        plain = _plain(text)
        bare = plain.strip(" \t\r\n.。!！\"'“”‘’「」『』«»")
        for sought in (text.strip(), plain, bare):
            if sought and (same := self.written(sought)):
                return same
        folded = [option.casefold() for option in self.texts]
        expanded = re.sub(r"n't\b", " not", plain)
        for texts, sought in (
            (self.texts, plain),
            (folded, bare.casefold()),
            (self.normalised, normalised(plain)),
            (self.normalised, normalised(expanded)),
        ):
            if sought and (same := _equal(texts, sought)):
                return same
        if len(bare) <= 60 and _WORD.search(bare):
            if same := _equal([_without_accents(option) for option in self.texts], _without_accents(bare)):
                return same
            return self._part(normalised(bare))
        return []

    def _part(self, text: str) -> list[int]:
        """The only option that holds a text of one to four words: 'Van Gogh' of 'Vincent van Gogh'."""
        words = text.split()
        common = _words("common") | _words("denies") | _words("yes") | _words("no") | _words("articles")
        if (
            not 1 <= len(words) <= 4
            or len(text) < 4
            or all(word in common or word.isdigit() for word in words)
        ):
            return []
        held = [position for position, option in enumerate(self.normalised) if f" {text} " in f" {option} "]
        return held if len(held) == 1 else []


def _equal(texts: Sequence[str], sought: str) -> list[int]:
    return [position for position, option in enumerate(texts) if option == sought]


def _without_article(text: str) -> str:
    """A text without the article that it begins with in any language."""
    first, _, rest = text.partition(" ")
    return rest if rest and first in _words("articles") else text


def _formula(text: str) -> str:
    """The pattern of a text that is told from another option by its signs only."""
    return r"(?<![\w=^+*/-])" + r"\s*".join(re.escape(part) for part in text.split()) + r"(?![\w^])"


def _searched_text(text: str) -> str:
    """The pattern of a normalised text in a response, with or without an article."""
    words = [re.escape(word).replace(_APOSTROPHE, "['’]?") for word in text.split()]
    pattern = r"[\s\W_]{1,3}(?:(?:an?|the)\s+)?".join(words)
    start = rf"(?<![{_EDGE}])(?:{_phrases(_words('articles'))}\s*)?" if _CASED.match(text[0]) else ""
    if re.match(r"[\d.-]", text):
        start = rf"(?<![{_EDGE}.,:\-])"
    end = rf"(?![{_EDGE}]|[.,:]\d|['’]s\b)" if _CASED.match(text[-1]) else ""
    if len(text) == 1 and not _CASED.match(text):
        # One sign of Chinese or Japanese is a word only where nothing of a word stands beside it.
        start, end = (
            r"(?:(?<=[是为は:：「『“\"'«\u3041-\u309f])|(?<![^\W_]))",
            r"(?=[\s。.,，、！!」』”\"'でだ色]|$)",
        )
    return start + pattern + end


_prepared = lru_cache(maxsize=512)(_Options)


# -- Mentions: each letter and each text of an option in a response becomes one sign

_URL = re.compile(
    r"(?:\b[a-z][a-z0-9+.-]*://|\bwww\.)\S+|\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|jpg|png)\b", re.I
)
_QUOTED_QUESTION = re.compile(r"[\"“「『'‘«][^\"”」』»\n]{4,300}?[?？]\s*[\"”」』'’»]")
_CYRILLIC = re.compile(rf"(?<![{_EDGE}])[АБГД](?=[\s).:,;»\"*]|$)")
_AS_LATIN = {"А": "A", "Б": "B", "Г": "D", "Д": "E"}
"""Letters of Russian labels. В, С and Е are left out: they look like other letters of Latin labels."""

_LABEL = r"([A-Za-z]|\d{1,2})"
_IN_BRACKETS = re.compile(rf"[(\[【「『〔<]\s*{_LABEL}\s*[)\]】」』〕>](?!\s*[=:]\s*\d)")
_AT_LINE = re.compile(
    rf"(?m)^(?:\s*(?:[-•+]\s+)?){_LABEL}(?:\s*[.):、,](?=[\s{_LETTER}-{_LAST}]|$|[^\x00-\x7f])|(?=\s*$))"
)
_BEFORE_NOUN = re.compile(rf"(?<![{_EDGE}])([A-Z])\s*(?=선택지|옵션|选项|選項|项|項|번|を選)")
_ALONE = re.compile(
    rf"(?<![{_EDGE}'.\-°])(?<![{_EDGE}:]{{2}}/)(?<!:/)(?<!//)([A-Z])"
    rf"(?![{_EDGE}]|['’][A-Za-z]|[-/][a-z]|\.[A-Za-z]|:[/\\]|\s*[=<>])"
)
_CJK_BEFORE = frozenset(
    "是为為选選案項项答故除和与與及或即就非肢えはがのとかやもでを은는이가답로와과나번说說排"
)
"""Chinese, Japanese and Korean signs after which a letter is one; after others it belongs to a word ('点B')."""


class _Marked(NamedTuple):
    """A response with a sign for each mention, its languages, and whether it was cut off or asks back."""

    text: str
    languages: Languages
    is_open: bool


def _mark(response: str, options: _Options) -> _Marked:
    plain = _plain(response)
    languages = _languages(plain)
    text = _QUOTED_QUESTION.sub(" ", _URL.sub(" ", plain))
    if options.numbers:
        text = _with_digits(text, languages)
    text = _mark_letters(options.mark_texts(text), options, languages)
    return _Marked(_without_lists(text, languages), languages, _is_open(text))


def _with_digits(text: str, languages: Languages) -> str:
    digits = {word: str(n) for one in languages for n, word in enumerate(_table()[one].get("numbers", ()))}
    return _pattern("{numbers}", languages).sub(lambda found: digits.get(found[0].casefold(), found[0]), text)


def _is_open(text: str) -> bool:
    """Whether a response breaks off within a sentence, or ends with a question."""
    end = text.rstrip()
    if end.endswith(("?", "？")):
        return True
    return len(end) > 60 and (
        end[-1] in ",，、:：;；(—–-" or re.search(rf"[{_EDGE}\u3040-\u30ff]$", end) is not None
    )


def _mark_letters(text: str, options: _Options, languages: Languages) -> str:
    """Put signs in the place of letters: in brackets, at the start of a line, after 'option', or alone."""

    def put(pattern: re.Pattern[str], text: str, letters: Mapping[str, int]) -> str:
        def sign(found: re.Match[str]) -> str:
            # Where letters are texts, 'the letter D' is a text, 'option D' a label.
            known = options.letters if pattern is named and letter_word.search(found[0]) else letters
            position = known.get(found[1].upper())
            after = text[found.end(1) :]
            if position is None or (pattern is named and not _stands_alone(found[1], after, languages)):
                return found[0]
            before, behind = found.start(1) - found.start(), found.end(1) - found.start()
            kept = (" ", " ") if pattern is _IN_BRACKETS else (found[0][:before], found[0][behind:])
            return kept[0] + chr(ord(_LETTER) + position) + kept[1]

        return pattern.sub(sign, text)

    if "ru" in languages:
        text = _CYRILLIC.sub(lambda found: _AS_LATIN[found[0]], text)
    letter_word = _pattern("{letter_words}", languages)
    named = _pattern(
        rf"{{options}}\s*(?:is\s+)?[:：]?\s*[\"'“«]?((?<![A-Za-z])[A-Z])(?![{_EDGE}'])", languages
    )
    for pattern in (_IN_BRACKETS, _AT_LINE, named, _BEFORE_NOUN):
        text = put(pattern, text, options.labels)
    places = {word: n for one in languages for n, word in enumerate(_table()[one].get("ordinals", ()))}

    def ordinal(found: re.Match[str]) -> str:
        place = places[re.sub(r"\s+", " ", found[1]).casefold()]
        return chr(ord(_LETTER) + place) if place < len(options.texts) else found[0]

    text = _pattern(r"({ordinals})\s*{options}(?!\s*[A-Z]\b)", languages).sub(ordinal, text)

    def alone(found: re.Match[str]) -> str:
        position, before, after = options.letters.get(found[1]), text[: found.start()], text[found.end() :]
        if position is None or not _may_follow(before, after, options.letters, languages):
            return found[0]
        if found[1] == "A" and not after.strip() and before.rstrip(" ").endswith("."):
            return found[0]  # an article, after which the response was cut off
        return chr(ord(_LETTER) + position) if _may_precede(found[1], after, languages) else found[0]

    return _ALONE.sub(alone, text)


_NEXT_LETTER = re.compile(r"\s*(?:,|and|&|/)\s*([A-Z])(?![\w.])")
_PREVIOUS_LETTER = re.compile(r"(?<!\w)([A-Z])\s*(?:,|and|&|/)\s*$")


def _may_follow(before: str, after: str, letters: Mapping[str, int], languages: Languages) -> bool:
    """Whether a letter may stand after this text: not after a noun ('vitamin C'), nor in 'C, E and G'."""
    beside = (_NEXT_LETTER.match(after), _PREVIOUS_LETTER.search(before))
    if any(found is not None and found[1] not in letters for found in beside):
        return False
    if before and re.match(r"[\u30a0-\u30ff\u3400-\u9fff\uac00-\ud7af]", before[-1]):
        return before[-1] in _CJK_BEFORE
    last = re.search(rf"([{_EDGE}']+)[ \t]+$", before)
    if last is None or last[1].endswith(("'s", "'re")):
        return True
    if last[1] in ("a", "an"):
        return False
    return (
        _pattern("^{leads}$|^{links}$|^{nouns}$|^{articles}$|^{options}$", languages).match(last[1])
        is not None
    )


def _may_precede(letter: str, after: str, languages: Languages) -> bool:
    """Whether a letter may stand before this text: `A` and `I` not before a word that goes on."""
    following = re.match(rf"[ \t]+([{_EDGE}']+)", after)
    if following is None:
        return not (letter == "A" and re.match(rf"[ \t]+{_TEXT_SIGN}", after) and after.lstrip()[0] > _TEXT)
    if letter == "I":
        return following[1] in ("is", "because", "or", "and", "seems")
    if letter == "A":
        return _pattern("^{follows}$|^{either}$", languages).match(following[1]) is not None
    return True


def _stands_alone(letter: str, after: str, languages: Languages) -> bool:
    """Whether a letter after a label is one: `a`, `A` and `I` not before a word that goes on."""
    following = re.match(rf"[ \t]+([{_EDGE}']+)", after)
    if following is None:
        return not (letter in "aA" and re.match(rf"[ \t]+{_TEXT_SIGN}", after) and after.lstrip()[0] > _TEXT)
    if letter in "iI":
        return following[1] in ("is", "because", "or", "and")
    if letter.islower() or letter == "A":
        return _pattern("^{follows}$|^{either}$", languages).match(following[1]) is not None
    return True


_LISTED = re.compile(
    rf"(?m)^[ \t]*(?:[-•+]\s+)?({_LETTER_SIGN})[ \t]*[.):、][ \t]*"
    rf"(?:{_TEXT_SIGN}[ \t.,;。]*|[^\n{_LETTER}-{_LAST}]*)$"
)
_TABLE_ROW = re.compile(r"(?m)^[ \t]*\|.*\|[ \t]*$")
_LISTED_INLINE = re.compile(
    rf"(?:{_LETTER_SIGN}[\s.):、]*{_TEXT_SIGN}[\s,;，、.。/]*(?:and|or|或|и|или|und|oder|et|ou|y|o)?\s*){{2,}}"
)


def _without_lists(text: str, languages: Languages) -> str:
    """Leave out lists that only repeat the options: lines 'A. ...', 'B. ...', or the same in one line."""
    text = _LISTED_INLINE.sub(
        lambda found: " " if len(set(re.findall(_LETTER_SIGN, found[0]))) > 1 else found[0], text
    )
    remark = _pattern(r"{right}|[✓✔✅☑✗✘❌]|{denied_after}\W*$|[-–—:(].*{denied_after}", languages)
    text = _TABLE_ROW.sub(" ", text)
    lines = [found for found in _LISTED.finditer(text) if not remark.search(found[0])]
    if len({found[1] for found in lines}) < 2:
        return text
    for found in reversed(lines):
        text = f"{text[: found.start()]} {text[found.end() :]}"
    return text


# -- Sentences, and which of their mentions are denied

_SENTENCE = re.compile(
    r"[^\n.!?。！？;；]*(?:(?:"
    rf"\.(?=\S)(?!{_LETTER_SIGN})|(?<={_LETTER_SIGN})\.(?=[ \t]*{_TEXT_SIGN})|(?<=\b[A-Za-z])\.(?=\s*[a-z])"
    r")[^\n.!?。！？;；]*)*[.!?。！？;；\n]*"
)


class _Mention(NamedTuple):
    """An option that a sentence names, its place in the sentence, and whether it is denied."""

    position: int
    start: int
    is_letter: bool
    denied: bool


def _sentences(text: str) -> list[str]:
    return [part for part in _SENTENCE.findall(text) if part.strip()]


def _position(sign: str) -> int:
    return ord(sign) - ord(_TEXT if sign >= _TEXT else _LETTER)


def _joint(languages: Languages) -> re.Pattern[str]:
    """What joins mentions to a list: commas, strokes, 'and', 'or'."""
    blank = r"[\s\"'()\[\]]*"
    return _pattern(
        rf"{blank}(?:[,，、/&+|]?{blank}(?:{{either}}|{{options}})?{blank}){{1,3}}(?:{{options}}\s*)?",
        languages,
    )


def _mentions(sentence: str, languages: Languages) -> list[_Mention]:
    found = list(_MENTION.finditer(sentence))
    ends = [*(mention.start() for mention in found[1:]), len(sentence)][: len(found)]
    denied = [
        _denial(sentence, mention.start(), end, languages) for mention, end in zip(found, ends, strict=True)
    ]
    for i in range(len(found) - 2, -1, -1):
        # A denial after a list holds for all of it: 'A, B and D are wrong'.
        between = sentence[found[i].end() : found[i + 1].start()]
        if denied[i + 1] == "after" and not denied[i] and _joint(languages).fullmatch(between):
            denied[i] = "after"
    return [
        _Mention(_position(mention[0]), mention.start(), mention[0] < _TEXT, bool(why))
        for mention, why in zip(found, denied, strict=True)
    ]


_ANYTHING_BUT = re.compile(r"\banything\s+(?:other\s+than|but)\s*(?:option\s*)?[\"'(]*$", re.IGNORECASE)
_INTERJECTION = re.compile(r"^\W*(?:no|nein|non|нет|nope)\s*[,.!:]", re.IGNORECASE)


def _denial(sentence: str, at: int, end: int, languages: Languages) -> str:
    """'before' or 'after' a mention, where its denial stands; '' for none."""
    before, after = sentence[:at], sentence[at + 1 : end]
    if _ANYTHING_BUT.search(before):
        return "before"
    # A turn ends the reach of a denial: 'not A but B'. So does a new clause: 'not red, it is B'.
    turns = _pattern(r"[;:：]|{turns}(?!\s*(?:not\b|n't))|[,，–—-]\s*{restarts}", languages)
    reach = before[max((turn.end() for turn in turns.finditer(before)), default=0) :]
    reach = _INTERJECTION.sub("", reach)
    last = max(
        (denial.end() for denial in _pattern("{denied_before}|{tentative}", languages).finditer(reach)),
        default=None,
    )
    if last is not None and len(reach) - last <= 60:
        if not _pattern(r"[,，].*{links}", languages).search(reach[last:]):
            return "before"
    of_next = r"^[\s\"'(\[,)\]]*(?:and|but|rather|y|e|et|und|и|а|sondern)?[\s,]*{denied_before}[\s\"'(]*{options}?[\s\"'(]*$"
    if end < len(sentence) and _pattern(of_next, languages).match(after):
        return ""  # the denial is of the next mention: 'B, not A'
    if re.match(r"[\s)\]\"':.\-–—]*[✗✘❌×🚫]", after):
        return "after"
    follows = r"^[\s)\]\"'、»”」]*(?:(?:[\s\"'*_]*{carries}[\s,'\"]*){0,6}|\s*[:：\-–—(（]\s*(?:{carries}\s*)?){denied_after}"
    if not re.match(r"[\s\"')\]]*,", after) and _pattern(follows, languages).match(after):
        return "after"
    return ""


# -- The ranks


@lru_cache(maxsize=1024)
def _read_choice(response: str, texts: tuple[str, ...], negated: bool) -> Choice:
    if not response.strip() or not texts:
        return Choice(None, "none")
    options = _prepared(texts)
    if same := options.written(response.strip()):
        return _decided(same, "text", response)
    if letter := _bare_letter(response.strip(" \t\n.()[]:*_\"'`{}") if len(response) < 20 else "", options):
        return letter
    if same := options.whole(response):
        return _decided(same, "text", response)
    if letter := _bare_letter(_plain(response).strip(" \t\n.()[]:。「」【】『』\"'<>{}《》"), options):
        return letter
    if contents := list(_contents(response)):
        return _from_container(contents, options, negated)
    return _from_text(response, options, negated)


def _bare_letter(text: str, options: _Options) -> Choice | None:
    position = options.letters.get(text.upper()) if len(text) <= 2 else None
    if position is None and len(text) == 1 and text in "ynjYNJ":
        # The initial of yes or no, where it is no letter of an option.
        position = next((p for p, said in options.polar.items() if said is (text in "yjYJ")), None)
    return None if position is None else Choice(position, "line", text)


def _decided(positions: Sequence[int], rule: Rule, words: str) -> Choice:
    if len(set(positions)) == 1:
        return Choice(positions[0], rule, _quoted(words))
    return Choice(None, "several", _quoted(words))


def _quoted(words: str) -> str:
    text = " ".join(words.split())
    return text if len(text) <= 120 else f"{text[:119]}…"


_BOXED = re.compile(r"\\(?:boxed|fbox)\s*\{")
_TAGGED = re.compile(r"<(answer|final_answer|choice)\b[^<>]*>(.*?)(?:</\1\s*>|$)", re.IGNORECASE | re.DOTALL)
_JSON = re.compile(r"\{[^{}]*\}")
_FIELDS = ("final_answer", "answer", "choice", "option", "selected_option", "label", "prediction", "response")


def _contents(response: str) -> Iterator[str]:
    """What the containers of a response hold."""
    for found in _BOXED.finditer(response):
        depth, end = 1, found.end()
        while end < len(response) and depth:
            depth += {"{": 1, "}": -1}.get(response[end], 0)
            end += 1
        yield response[found.end() : end - 1] if not depth else ""
    for found in _TAGGED.finditer(response):
        if not _BOXED.search(found[2]):
            yield found[2]
    for found in _JSON.finditer(response):
        if (held := _answer_field(found[0])) is not None:
            yield held


def _answer_field(text: str) -> str | None:
    try:
        held = json.loads(text)
    except ValueError:
        return None
    folded = {str(name).casefold().replace(" ", "_"): value for name, value in held.items()}
    value = next((folded[name] for name in _FIELDS if name in folded), None)
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def _from_container(contents: Sequence[str], options: _Options, negated: bool) -> Choice:
    read = [(text, _read_choice(text, tuple(options.raw), negated).position) for text in contents]
    positions = [position for _, position in read if position is not None]
    if not positions or read[-1][1] is None:
        return Choice(None, "none", _quoted(contents[-1]))
    return _decided(
        positions, "container", " | ".join(text for text, position in read if position is not None)
    )


class _Statement(NamedTuple):
    """A position, -1 for several; where it stands in the text; the words that state it."""

    position: int
    start: int
    words: str


def _from_text(response: str, options: _Options, negated: bool) -> Choice:
    marked = _mark(response, options)
    if options.polar and (polar := _stated_polarity(response, marked, options)):
        return polar
    ranks: tuple[tuple[Rule, list[_Statement]], ...] = (
        ("statement", _labelled(marked, options, negated)),
        ("statement", _called_wrong(marked) if negated else []),
        ("line", [] if marked.is_open else _lines(marked)),
        ("leading letter", _leading(marked)),
        ("conclusion", [] if marked.is_open else _concluded(marked) or _closing(marked)),
        ("conclusion", [] if marked.is_open else _said(marked) or _first_sentence(marked, options)),
    )
    for rule, statements in ranks:
        if statements:
            return _the_one(statements, rule, marked, options)
    return _only_mentioned(marked, options)


def _the_one(statements: Sequence[_Statement], rule: Rule, marked: _Marked, options: _Options) -> Choice:
    """The statement that counts: the only one, or the last one if the response revises the others."""
    last = statements[-1]
    words = _quoted(_readable(last.words, options))
    others = [
        one
        for one in statements
        if one.position not in ((last.position, -1) if last.position >= 0 else (-1,))
    ]
    revises = _pattern("{revises}", marked.languages)
    if rule != "statement" and last.position >= 0:
        later = [
            found
            for found in _MENTION.finditer(marked.text, last.start + 1)
            if _position(found[0]) != last.position and revises.search(marked.text, last.start, found.start())
        ]
        if later:
            final = later[-1]
            sentence, start = _sentence_around(marked.text, final.start())
            mention = next(
                m for m in _mentions(sentence, marked.languages) if m.start == final.start() - start
            )
            if not mention.denied:
                return Choice(mention.position, rule, _quoted(_readable(sentence, options)))
    if not others and last.position >= 0:
        return Choice(last.position, rule, words)
    if others and last.position >= 0 and revises.search(marked.text, others[-1].start + 1, last.start + 40):
        return Choice(last.position, rule, words)
    shown = dict.fromkeys(_quoted(_readable(statement.words, options)) for statement in statements)
    return Choice(None, "several", ", ".join(shown))


def _readable(text: str, options: _Options) -> str:
    return _MENTION.sub(lambda found: _name(_position(found[0]), options, found[0] < _TEXT), text)


def _name(position: int, options: _Options, is_letter: bool) -> str:
    if not is_letter:
        return options.texts[position]
    return next((letter for letter, place in options.letters.items() if place == position), "")


def _sentence_around(text: str, at: int) -> tuple[str, int]:
    """The sentence that holds a place of the text, and where it starts."""
    start = 0
    for sentence in _SENTENCE.findall(text):
        if start <= at < start + len(sentence):
            return sentence, start
        start += len(sentence)
    return text, 0


_FILL = r"[\s\"'“”‘’「」『』《》〈〉«»【】\[\](){}<>*_:：=,，.、#•\-–—→⇒|]*"
"""What may stand between a label and what it labels: blanks, brackets, quotes, marks."""
_ADJOINING = (
    r"[\s\"'“”「」«(\[*:：,，、=→]*(?:(?:the|an?|option|la|le|l'|el|der|die|das|ein|eine|un|une|los|las|les)\s+)*"
    r"(?:[A-Za-z]\s*=\s*)?(?:[^\W\d_]+\s+(?=[«\"“「『]))?[«\"“「『]?"
)
_WRONG = re.compile(
    r"\s*(?:wrong|incorrect|falsche|mauvaise|incorrecta|неверный|неправильный)\s|.*\b(?:wrong|incorrect)\b",
    re.IGNORECASE,
)


def _label_pattern(languages: Languages) -> re.Pattern[str]:
    between = rf"(?:[\s*\"'(]+[^\s.:：=?？\n{_LETTER}-{_LAST}]+){{0,7}}?"
    alone = r"\s*\n+(?=[\s(]*(?:{M}|[A-Za-z]\W*(?:$|\n)))"
    wrong = rf"(?:(?<![{_EDGE}])(?:wrong|incorrect|falsche|mauvaise|incorrecta|неверный|неправильный)\s+)?"
    return _pattern(
        rf"(?:{wrong}{{nouns}}(?:{between}\s*{{links}}|[\s*\"')\]」】]*[:：=]|{alone})|(?!选项|選項){{choosing}}|最[^，。,\n]{{1,8}}是|[→⇒]|=>)[ \t:：]*",
        languages,
    )


def _labelled(marked: _Marked, options: _Options, negated: bool) -> list[_Statement]:
    """What labels state, and what is called correct."""
    text, languages = marked.text, marked.languages
    statements = []
    for label in _label_pattern(languages).finditer(text):
        if _WRONG.match(label[0]) and not negated:
            continue
        sentence, start = _sentence_around(text, label.start())
        turned = re.split(r"[,;，；]|\b(?:but|aber|mais|pero|но)\b", sentence[: label.start() - start])[-1]
        if _pattern("{tentative}", languages).search(turned):
            continue
        if (position := _after_label(text[label.end() :], label[0], options, languages)) is not None:
            tail = re.match(r"\s*[^\n]*", text[label.end() :])
            statements.append(_Statement(position, label.start(), label[0] + (tail[0] if tail else "")))
    called = _pattern(
        r"{M}(?P<close>[\s)\]\"'»”」.:：\-–—,]*)(?:{options}\s*)?(?:(?:is|are)\s+)?(?:{right}|[✓✔✅☑])",
        languages,
    )
    for found in called.finditer(text):
        sentence, start = _sentence_around(text, found.start())
        mentions = _mentions(sentence, languages)
        at = next(i for i, mention in enumerate(mentions) if mention.start == found.start() - start)
        if mentions[at].denied or "\n" in found["close"] or negated:
            continue
        if at and _joint(languages).fullmatch(sentence[mentions[at - 1].start + 1 : mentions[at].start]):
            continue  # 'A and B are correct'
        statements.append(_Statement(mentions[at].position, found.start(), found[0]))
    return sorted(statements, key=lambda statement: statement.start)


def _called_wrong(marked: _Marked) -> list[_Statement]:
    """The only option that is called wrong, for a question that asks for it."""
    found = [
        _Statement(mention.position, 0, sentence)
        for sentence in _sentences(marked.text)
        for mention in _mentions(sentence, marked.languages)
        if mention.denied
    ]
    return found if len({statement.position for statement in found}) == 1 else []


def _after_label(tail: str, label: str, options: _Options, languages: Languages) -> int | None:
    """The option that follows a label; -1 for several, None for none."""
    opening = re.match(_FILL, tail)
    rest = tail[opening.end() :] if opening else tail
    first = re.match(rf"{_LABEL}(?![{_EDGE}]|['’][A-Za-z]|[-/.][A-Za-z])", rest)
    if first and (place := options.letters.get(first[1].upper())) is not None:
        if _stands_alone(first[1], rest[first.end() :], languages):
            rest = chr(ord(_LETTER) + place) + rest[first.end() :]
    sentence = (_sentences(rest) or [""])[0]
    if not _MENTION.search(sentence):
        same = options.whole(sentence.rstrip("\n"))
        return same[0] if len(same) == 1 else None
    shown = f"{' '.join(label.split())} {sentence}"
    stated = [mention for mention in _mentions(shown, languages) if not mention.denied]
    if not stated:
        return None
    chosen = stated[0]
    other = next((mention for mention in stated if mention.position != chosen.position), None)
    if other is not None and _is_joined(shown, chosen, other, languages):
        return -1
    if _pattern(r"{either_or}\s*(?:\S+\s+){0,2}$", languages).search(shown[: chosen.start]):
        return -1
    return chosen.position


def _is_joined(sentence: str, first: _Mention, other: _Mention, languages: Languages) -> bool:
    """Whether two mentions are named together ('B or C'), or contradict each other ('B: a kite')."""
    between, behind = sentence[first.start + 1 : other.start], sentence[other.start + 1 :]
    if re.fullmatch(r"[\s)\]\"'.:：\-–—]*", between) and first.is_letter and not other.is_letter:
        return True
    joint = _joint(languages).fullmatch(between)
    if joint is None or not (between.strip(" \"'()[]") or first.is_letter):
        return False
    # 'B, A is too bright': a clause follows the comma.
    goes_on = _pattern(r"^[\s)\"']*(?:{carries}|{follows})", languages).match(behind)
    return not (between.strip(" \"'()[]") in ("", ",", "，") and goes_on)


def _lines(marked: _Marked) -> list[_Statement]:
    """Lines that are only a letter or a text."""
    statements = []
    blank = _pattern(r"\W*(?:{options}\s*)?[\W_]*", marked.languages)
    for found in re.finditer(r"[^\n]+", marked.text):
        signs = _MENTION.findall(found[0])
        if (
            not signs
            or found[0].rstrip().endswith((":", "?"))
            or not blank.fullmatch(_MENTION.sub("", found[0]))
        ):
            continue
        positions = {_position(sign) for sign in signs}
        whole = len(positions) == 1 and len(signs) <= 2
        if whole or len(positions) > 1:
            statements.append(_Statement(positions.pop() if whole else -1, found.start(), found[0]))
    return statements


def _leading(marked: _Marked) -> list[_Statement]:
    """Letters with their sign at the start of a line."""
    form = (
        rf"(?m:^)\s*(?:[-•+]\s+)?(?:{{options}}\s*)?({_LETTER_SIGN})"
        rf"(?:\s*[.):、,，\-–—]|\s+(?={_TEXT_SIGN})|\s*\n|(?=\s+(?:because|since|as|weil|car|porque|потому)\b))"
    )
    statements = []
    for found in _pattern(form, marked.languages).finditer(marked.text):
        line = marked.text[found.start(1) :].split("\n", 1)[0]
        mentions = _mentions((_sentences(line) or [line])[0], marked.languages)
        if not mentions or mentions[0].denied:
            continue
        first = mentions[0]
        other = next((m for m in mentions[1:] if not m.denied and m.position != first.position), None)
        joined = other is not None and _is_joined(line, first, other, marked.languages)
        statements.append(_Statement(-1 if joined else first.position, found.start(1), line))
    return statements


def _concluded(marked: _Marked) -> list[_Statement]:
    """What a conclusion names at once: 'so this has to be B'."""
    named = rf"(?:[^\s,.;。，{_LETTER}-{_LAST}]+\s+){{0,3}}{{links}}"
    joined = _adjoining(marked, rf"{{concludes}}[\s,，:：]*(?:{{says}}|{named}){_ADJOINING}({{M}})")
    bare = (
        rf"{{concludes}}[\s,，:：]*{_ADJOINING}({{M}})(?=[\s)\"'»”」]*(?:[.!,;:。，！)\n]|$|because|since))"
    )
    return sorted([*joined, *_adjoining(marked, bare)], key=lambda statement: statement.start)


def _closing(marked: _Marked) -> list[_Statement]:
    """A letter or a text alone at the end, after a colon or a dash: 'The trunk tells: B.'"""
    found = re.search(rf"[^\n]*[:：–—=→⇒]\s*[\"'“(\[«]*([{_LETTER}-{_LAST}])\W*$", marked.text)
    if found is None or len(set(_MENTION.findall(found[0][-3:]))) > 1:
        return []
    return [_Statement(_position(found[1]), found.start(1), found[0])]


def _said(marked: _Marked) -> list[_Statement]:
    """What a sentence calls the thing asked for: 'it is a drum'."""
    before = _adjoining(marked, rf"(?<!if )(?<!whether ){{says}}{_ADJOINING}({{M}})")
    return [*before, *_adjoining(marked, r"({M})[\s」』\"')]*{said}")]


def _first_sentence(marked: _Marked, options: _Options) -> list[_Statement]:
    """The option that the first sentence is, whole or in part: 'Nonpolar covalent. The atoms share ...'"""
    first = (_sentences(marked.text) or [""])[0]
    if len(first) > 60 or _MENTION.search(first) or first.rstrip().endswith(("?", ":", "？", "：")):
        return []
    same = options.whole(first)
    return [_Statement(same[0], 0, first)] if len(same) == 1 else []


def _adjoining(marked: _Marked, form: str) -> list[_Statement]:
    statements, languages = [], marked.languages
    for found in _pattern(form, languages).finditer(marked.text):
        sentence, start = _sentence_around(marked.text, found.start(1))
        mentions = _mentions(sentence, languages)
        at = next(i for i, mention in enumerate(mentions) if mention.start == found.start(1) - start)
        mention = mentions[at]
        if (
            mention.denied
            or sentence.rstrip().endswith(("?", "？"))
            or re.match(r"['’]s\b", sentence[mention.start + 1 :])
        ):
            continue
        beside = [
            other
            for other in (*mentions[max(at - 1, 0) : at], *mentions[at + 1 : at + 2])
            if not other.denied
        ]
        joined = any(
            other.position != mention.position
            and _joint(languages).fullmatch(
                sentence[min(other.start, mention.start) + 1 : max(other.start, mention.start)]
            )
            for other in beside
        ) or _is_hedged(sentence, mention, languages)
        statements.append(_Statement(-1 if joined else mention.position, found.start(1), sentence))
    return statements


def _is_hedged(sentence: str, mention: _Mention, languages: Languages) -> bool:
    """Whether a mention is one of several that are possible: 'either B or ...', 'B or maybe ...'."""
    if _pattern(r"{either_or}\s*(?:\S+\s+){0,3}$", languages).search(sentence[: mention.start]):
        return True
    return (
        re.match(
            r"[\s)\"',]*(?:or|oder|ou|или|либо|или|または|または|或|또는)\b", sentence[mention.start + 1 :]
        )
        is not None
    )


def _only_mentioned(marked: _Marked, options: _Options) -> Choice:
    """The only letter that is named, or else the only option whose text is held, outside of questions."""
    languages = marked.languages
    held = [
        (mention, sentence)
        for sentence in _sentences(marked.text)
        if not sentence.rstrip().endswith(("?", "？"))
        for mention in _mentions(sentence, languages)
    ]
    denied = {mention.position for mention, _ in held if mention.denied}
    counts = bool(options.numbers) and all(
        number.isdigit() and int(number) < 100 for number in options.numbers
    )
    by_chance = counts and _OTHER_NUMBER.search(marked.text) is not None
    rank: Rule
    for rank, is_letter in (("letter", True), ("option", False)):
        named = [
            (mention, sentence)
            for mention, sentence in held
            if mention.is_letter is is_letter and not mention.denied and mention.position not in denied
        ]
        if not named or (rank == "option" and by_chance):
            continue
        positions = [mention.position for mention, _ in named]
        last, sentence = named[-1]
        if len(set(positions)) > 1 and not _revises_all(marked, last.position):
            shown = dict.fromkeys(_name(position, options, is_letter) for position in positions)
            return Choice(None, "several", ", ".join(shown))
        if marked.is_open or _is_hedged(sentence, last, languages):
            return Choice(None, "none")
        return Choice(last.position, rank, _quoted(_readable(sentence, options)))
    return Choice(None, "none")


_OTHER_NUMBER = re.compile(r"(?<![^\W\d_])\d+")
"""A number that no option holds: options that are numbers are then held by chance."""


def _revises_all(marked: _Marked, position: int) -> bool:
    """Whether the last mention revises the ones of other options before it."""
    signs = list(_MENTION.finditer(marked.text))
    last = max((sign.start() for sign in signs if _position(sign[0]) == position), default=0)
    others = [sign.end() for sign in signs if sign.start() < last and _position(sign[0]) != position]
    return (
        bool(others)
        and _pattern("{revises}", marked.languages).search(marked.text, max(others), last) is not None
    )


# -- Yes and no

_STOP = r"(?=\W*(?:$|\n)|\s*[,.!;:，。！；：、—–\-)\]\"'」”»]|です|でした|입니다|이에요|예요|的)"
_BEGIN = r"(?:^|(?<=[.!?。！？\n:：→⇒])|(?<=[.!?:→⇒]\s))[\s\"'(\[*#\-「«“]*"


def _stated_polarity(response: str, marked: _Marked, options: _Options) -> Choice | None:
    """Yes or no as a label states it, or as a sentence begins with it; None if the response states neither."""
    by_value = {said: position for position, said in options.polar.items()}
    plain, languages = _plain(response), tuple(sorted({*marked.languages, "en"}))
    both = r"^\W*(?:{yes}\s*(?:{either}|/)\s*{no}|{no}\s*(?:{either}|/)\s*{yes})\W*$"
    if _pattern(both, languages).match(plain):
        return Choice(None, "several", _quoted(plain))
    polar = r"(?P<yes>{yes})|(?P<no>{no})"
    after_label = _pattern(rf"{_FILL}(?:{polar}){_STOP}", languages)
    labelled = [
        (label.start(), label.end(), bool(found["yes"]), label[0] + found[0])
        for label in _label_pattern(languages).finditer(marked.text)
        if (found := after_label.match(marked.text, label.end()))
    ]
    forms = (
        rf"{_BEGIN}(?:{polar})(?:{_STOP}|(?=\s+{{after_no}}))",
        rf"{{concludes}}[\s,，]*(?:{polar}){_STOP}",
        rf"(?<=[,，]\s)(?:{polar})(?=\s*[,，–—.])",
    )
    leading = sorted(
        (found.start(), found.end(), bool(found["yes"]), found[0])
        for form in forms
        for found in _pattern(form, languages).finditer(plain)
        if form is not forms[2]
        or not _pattern("{unsure}", languages).search(_sentence_around(plain, found.start())[0])
    )
    for text, said in ((marked.text, labelled), (plain, leading)):
        values = {value for _, _, value, _ in said}
        if not values:
            continue
        start, _, value, words = said[-1]
        other = max((end for _, end, one, _ in said if one is not value), default=None)
        if other is None or _pattern("{revises}|{concludes}", languages).search(text, other, start + 20):
            return Choice(by_value[value], "option", _quoted(words))
        return Choice(None, "several", ", ".join(words.strip() for _, _, _, words in said))
    return None


_ELLIPSIS = re.compile(
    r"^\W*(?:it|they|he|she|there|this|that|these|those|we|you|i)\s+"
    r"(?:is|are|does|do|did|was|were|has|have|can|will)\s*(not|n't)?\W*$",
    re.IGNORECASE,
)


@lru_cache(maxsize=512)
def _asks_for_the_wrong(question: str) -> bool:
    """Whether a question asks for what is not so: 'Which is NOT shown?'"""
    asked = question.casefold()
    languages = _languages(asked)
    if languages == ("en",) and not re.search(
        r"\b(?:which|what)\b.*(?:\b(?:not|except|incorrect|false|wrong|untrue)\b|n['’]t\b)", asked
    ):
        return False
    return _pattern("{wrong_word}|n't", languages).search(asked) is not None


def _stated_by_question(question: str, response: str, options: _Options) -> Choice:
    """Yes for a response that states what a yes/no question asks, no for one that denies it."""
    nothing = Choice(None, "none")
    if len(options.polar) != len(options.texts):
        return nothing
    by_value = {said: position for position, said in options.polar.items()}
    plain = _plain(response)
    if _is_open(plain):
        return nothing
    if elliptic := _ELLIPSIS.match(plain):
        return Choice(by_value[not elliptic[1]], "option", _quoted(plain))
    sentences = [part for part in _sentences(plain) if not part.rstrip().endswith(("?", "？"))]
    asked, languages = _content(question), _languages(f"{question} {plain}")
    if not asked or not sentences or _pattern("{denies}", languages).search(question):
        return nothing
    clauses = [
        (clause, sentence) for sentence in sentences for clause in re.split(r"[,，;]|\bbut\b", sentence)
    ]
    clause, sentence = max(clauses, key=lambda one: _shared(asked, one[0]))
    if _shared(asked, clause) < 0.75 * len(asked) or _pattern("{unsure}", languages).search(sentence):
        return nothing
    said = _pattern("{denies}", languages).search(clause) is None
    return Choice(by_value[said], "option", _quoted(sentence))


def _shared(asked: Iterable[str], sentence: str) -> int:
    stated = _content(sentence)
    return sum(any(_alike(word, other) for other in stated) for word in asked)


def _content(text: str) -> set[str]:
    """The words of a text that are not common; of Chinese, Japanese and Korean the signs."""
    words = {word.casefold() for word in _TOKEN.findall(_plain(text))}
    return {word for word in words if word not in _words("common") and not word.isdecimal()}


def _alike(word: str, other: str) -> bool:
    """Whether two words are the same but for their endings."""
    shared = max(4, min(len(word), len(other)) - 2)
    return word == other or (len(word) > 3 and len(other) > 3 and word[:shared] == other[:shared])
