"""The option that a response chooses. It reads what the response states; it never guesses.

The first rank that finds a statement decides, and two statements of the same rank that differ are no choice:

1. `text`: the response is an option's text: exactly, then in any case, then without punctuation and articles.
2. `container`: what `\\boxed{}`, `<answer>` or a JSON field named answer holds.
3. `statement`: what follows a label ('Answer:', 'the answer is', '答案', '정답'), or is called correct.
4. `line`: a line that is only a letter or an option.
5. `leading letter`: a letter with its sign at the start of a line ('B) a drum').
6. `letter`: the only letter that is named.
7. `option`: the only option whose text is held; of yes and no, the stated word.

A denied or excluded letter or text is not chosen, and the word 'no' within an option denies nothing. A list of the
options is no statement. A later statement replaces an earlier one only where the response revises it ('wait',
'final answer'). `A` and `I` before a word are words. Letters in option texts, URLs and quoted questions are no letters.
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
    "text", "container", "statement", "line", "leading letter", "letter", "option", "several", "none"
]


class Choice(NamedTuple):
    """The position of the chosen option from 0, None for none; the rank that decided; the words it read."""

    position: int | None
    rule: Rule
    words: str = ""


def read_choice(response: str, options: Sequence[str], question: str = "") -> Choice:
    """The option that a response chooses; the rule is `several` for statements that differ.

    Of a yes/no question that is given, the asked statement and its denial are read, too.

    >>> read_choice("It is not A. Answer: a drum", ["a kite", "a drum"])
    Choice(position=1, rule='statement', words='Answer: a drum')
    >>> read_choice("A or B", ["a kite", "a drum"])
    Choice(position=None, rule='several', words='A, B')
    """
    read = _read_choice(response, tuple(options))
    if read.rule == "none" and question and response.strip():
        return _stated_by_question(question, response, _prepared(tuple(options)))
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


# -- The words of each language

_EDGE = "A-Za-z0-9_\u00c0-\u024f\u0370-\u03ff\u0400-\u04ff\u1e00-\u1eff"
"""Signs next to which a word of a script with blanks goes on; Chinese, Japanese and Korean signs do not."""


def _phrases(words: Iterable[str]) -> str:
    """A pattern of any of the phrases, the longest first; '(?!)' for none."""
    parts = []
    for word in sorted(set(words), key=len, reverse=True):
        start = f"(?<![{_EDGE}])" if re.match(f"[{_EDGE}]", word) else ""
        end = f"(?![{_EDGE}])" if re.match(f"[{_EDGE}]", word[-1]) else ""
        part = r"\s+".join(map(re.escape, word.split())).replace("'", "['’]")
        parts.append(part + end if word == "n't" else start + part + end)
    return f"(?:{'|'.join(parts)})" if parts else "(?!)"


@cache
def _lists() -> Mapping[str, frozenset[str]]:
    """The words of all languages by the name of their list."""
    table = tomllib.loads((files(__package__) / "answer_words.toml").read_text(encoding="utf-8"))
    names = {name for lists in table.values() for name in lists}
    return {
        name: frozenset(word for lists in table.values() for word in lists.get(name, ())) for name in names
    }


@cache
def _ordinals() -> Mapping[str, int]:
    table = tomllib.loads((files(__package__) / "answer_words.toml").read_text(encoding="utf-8"))
    return {word: place for lists in table.values() for place, word in enumerate(lists.get("ordinals", ()))}


@cache
def _articles() -> str:
    return _phrases(_lists()["articles"])


@cache
def _numerals() -> Mapping[str, str]:
    """The digits of number words from 0 to 12."""
    table = tomllib.loads((files(__package__) / "answer_words.toml").read_text(encoding="utf-8"))
    return {word: str(value) for lists in table.values() for value, word in enumerate(lists.get("numbers", ()))}


@cache
def _pattern(form: str) -> re.Pattern[str]:
    """Compile a pattern in which `{name}` stands for the words of a list, `{M}` for a mention."""
    for name, words in _lists().items():
        if f"{{{name}}}" in form:
            form = form.replace(f"{{{name}}}", _phrases(words))
    form = form.replace("{M}", f"[{_LETTER}-{_LAST}]").replace("{_}", _FILL)
    return re.compile(form, re.IGNORECASE)


# -- Mentions: each letter and each text of an option in a response becomes one sign

_LETTER, _TEXT, _LAST = "\ue000", "\ue400", "\ue7ff"
"""The signs of mentions: those of letters from U+E000, those of texts from U+E400, in the order of the options."""
_ONE = re.compile(f"[{_LETTER}-{_LAST}]")
_LETTER_SIGNS = f"[{_LETTER}-\ue3ff]"
_FILL = r"[\s\"'“”‘’「」『』《》〈〉【】\[\](){}<>*_:：=,，.、#•\-–—→|]*"
"""What may stand between a label and what it labels: blanks, brackets, quotes, marks."""

_MARKUP = re.compile(
    r"\\(?:text|textbf|mathrm|mathbf|mathit|textit|operatorname|rm|bf)\s*\{([^{}]*)\}|\$+|\\[()\[\],;!]|`+|\*+"
    rf"|(?<![{_EDGE}])_+|_+(?![{_EDGE}])|(?m:^\s*(?:>|#+)\s*)|</?(?:b|i|em|strong|u|p|span|br)\s*/?>"
)
_URL = re.compile(r"(?:\b[a-z][a-z0-9+.-]*://|\bwww\.)\S+|\b[\w-]+(?:\.[\w-]+)*\.(?:com|org|net|jpg|png)\b", re.I)
_QUOTED_QUESTION = re.compile(r"[\"“「『'‘][^\"”」』\n]{4,300}?[?？][\"”」』'’]")
_INVISIBLE = dict.fromkeys(map(ord, "\u00ad\u200b\u200c\u200d\u2060\ufe0e\ufe0f\ufeff"))
_OWN_LABEL = re.compile(r"\s*(?:[(\[（]\s*([A-Za-z]|\d{1,2})\s*[)\]）]|([A-Za-z]|\d{1,2})\s*[.):．）：、])\s*(?=\S)")
_CASED = re.compile(f"[{_EDGE}]")
_WORD = re.compile(r"[^\W_]")


class _Options:
    """The options of a question: their letters, their texts, and the pattern that finds the texts."""

    def __init__(self, options: Sequence[str]) -> None:
        self.raw = [option.strip() for option in options]
        self.folded = [option.casefold() for option in self.raw]
        self.letters = dict(zip(LETTERS, range(len(options)), strict=False))
        self.texts = plain = [_plain(option) for option in options]
        if len(options) > 1 and all(map(_OWN_LABEL.match, plain)):
            self._take_own_labels(plain)
        elif len(set(plain)) == len(plain) and all(len(text) == 1 and text in LETTERS for text in plain):
            self.letters = {text: position for position, text in enumerate(plain)}
        self.polar = _polarities(self.texts)

    def _take_own_labels(self, plain: Sequence[str]) -> None:
        found = [_OWN_LABEL.match(text) for text in plain]
        labels = [(label[1] or label[2]).upper() for label in found if label]
        if len(set(labels)) < len(labels):
            return
        self.texts = [_OWN_LABEL.sub("", text, count=1) for text in plain]
        own = {label: position for position, label in enumerate(labels)}
        if set(own) <= set(LETTERS) and not own.items() <= self.letters.items():
            self.letters = {}  # shown under one letter, labelled with another: a letter says nothing
        self.letters |= own

    @cached_property
    def normalised(self) -> list[str]:
        return [normalised(text) for text in self.texts]

    @cached_property
    def are_numbers(self) -> bool:
        return all(text.replace(".", "", 1).lstrip("-").isdigit() for text in self.normalised)

    @cached_property
    def _searched(self) -> tuple[re.Pattern[str] | None, list[int]]:
        """The texts that are searched in a response: those with a word that no other option equals."""
        texts = self.normalised
        bare = [_without_article(text) for text in texts]
        bare = [short if bare.count(short) == 1 else text for short, text in zip(bare, texts, strict=True)]
        order = sorted(range(len(texts)), key=lambda position: -len(texts[position]))
        positions = [
            position
            for position in order
            if (texts.count(texts[position]) == 1 or _is_formula(self.texts[position]))
            and _WORD.search(texts[position])
            and position not in self.polar
            and texts[position].upper() not in self.letters
        ]
        parts = [
            f"({_formula(self.texts[position]) if texts.count(texts[position]) > 1 else _searched_text(bare[position])})"
            for position in positions
        ]
        return re.compile("|".join(parts), re.IGNORECASE) if parts else None, positions

    def mark_texts(self, text: str) -> str:
        """Put signs in the place of the texts of options."""
        pattern, positions = self._searched
        if pattern is None:
            return text
        return pattern.sub(lambda found: chr(ord(_TEXT) + positions[(found.lastindex or 1) - 1]), text)

    def written(self, text: str) -> list[int]:
        """The positions of the options that a text equals as it is written, or else in any case."""
        for texts, sought in ((self.raw, text), (self.folded, text.casefold())):
            if same := [position for position, option in enumerate(texts) if option == sought]:
                return same
        return []

    def whole(self, text: str) -> list[int]:
        """The positions of the options that a text equals: as it is written, without marks, or normalised."""
        plain = _plain(text)
        bare = plain.strip(" \t\r\n.。\"'“”‘’「」『』")
        for sought in (text.strip(), plain, bare):
            if sought and (same := self.written(sought)):
                return same
        levels: list[tuple[Sequence[str], str]] = [
            (self.texts, plain),
            ([option.casefold() for option in self.texts], bare.casefold()),
            (self.normalised, normalised(plain)),
        ]
        for texts, sought in levels:
            if sought and (same := [position for position, option in enumerate(texts) if option == sought]):
                return same
        return []


_prepared = lru_cache(maxsize=512)(_Options)


def _without_article(text: str) -> str:
    """A text without the article of another language that it begins with."""
    first, _, rest = text.partition(" ")
    return rest if rest and first in _lists()["articles"] else text


def _is_formula(text: str) -> bool:
    return len(text) > 2 and re.search(r"[=^+*/<>|\\-]", text) is not None


def _formula(text: str) -> str:
    """The pattern of a text that is told from another option by its signs only."""
    return rf"(?<![\w=^+*/-])" + r"\s*".join(re.escape(part) for part in text.split()) + r"(?![\w^])"


def _searched_text(text: str) -> str:
    """The pattern of a normalised text in a response, with or without an article."""
    words = [re.escape(word) for word in text.split()]
    pattern = r"[\s\W_]{1,3}(?:(?:an?|the)\s+)?".join(words) if words else "(?!)"
    start = rf"(?<![{_EDGE}])(?:{_articles()}\s*)?" if _CASED.match(text[0]) else ""
    if re.match(r"[\d.-]", text):
        start = rf"(?<![{_EDGE}.,:\-])"
    end = rf"(?![{_EDGE}]|[.,:]\d)" if _CASED.match(text[-1]) else ""
    if len(text) == 1 and not _CASED.match(text):
        # One sign of Chinese or Japanese is a word only where nothing of a word stands beside it.
        start, end = r"(?:(?<=[是为は:：「『“\"'])|(?<![^\W_]))", r"(?=[\s。.,，、！!」』”\"'でだ]|$)"
    return start + pattern + end


_REPEATED = re.compile(r"(\b\w+\b[.,!]?)(?:\s+\1){2,}", re.IGNORECASE)


def _plain(text: str) -> str:
    """A text without markup and invisible signs, full-width letters folded, thousands without commas."""
    folded = unicodedata.normalize("NFKC", text.translate(_INVISIBLE)).replace("’", "'")
    previous = ""
    while previous != folded:
        previous, folded = folded, _MARKUP.sub(lambda found: found[1] or "", folded)
    return _REPEATED.sub(r"\1", ungrouped(folded)).strip()


def _position(sign: str) -> int:
    return ord(sign) - ord(_TEXT if sign >= _TEXT else _LETTER)


_CYRILLIC = re.compile(rf"(?<![{_EDGE}])[АБГД](?=[\s).:,;»\"*]|$)")
_AS_LATIN = {"А": "A", "Б": "B", "Г": "D", "Д": "E"}
"""Letters of Russian labels. В, С and Е are left out: they look like other letters of Latin labels."""

_IN_BRACKETS = re.compile(r"[(\[（【「『〔<]\s*([A-Za-z]|\d{1,2})\s*[)\]）】」』〕>](?!\s*[=:]\s*\d)")
_AT_LINE = re.compile(rf"(?m)^(\s*(?:[-•+]\s+)?)([A-Za-z]|\d{{1,2}})(\s*[.):：、,，](?=[\s{_LETTER}-{_LAST}]|$|[^\x00-\x7f])|(?=\s*$))")
_ALONE = re.compile(rf"(?<![{_EDGE}'.\-])(?<![{_EDGE}:]{{2}}/)(?<!:/)(?<!//)([A-Z])(?![{_EDGE}]|['’][A-Za-z]|[-/][a-z]|\.[A-Za-z]|:[/\\])")


def _mark_letters(text: str, options: _Options) -> str:
    """Put signs in the place of letters: in brackets, at the start of a line, after 'option', or alone."""
    letters = options.letters

    def sign(found: str) -> str:
        return chr(ord(_LETTER) + letters[found.upper()])

    def replaced(pattern: re.Pattern[str], text: str, group: int = 1, *, checked: bool = False) -> str:
        def put(found: re.Match[str]) -> str:
            if found[group].upper() not in letters:
                return found[0]
            if checked and not _stands_alone(found[group], text[found.end(group) :]):
                return found[0]
            start, end = found.start(group) - found.start(), found.end(group) - found.start()
            if group == 1 and pattern is _IN_BRACKETS:
                return f" {sign(found[group])} "
            return found[0][:start] + sign(found[group]) + found[0][end:]

        return pattern.sub(put, text)

    text = replaced(_IN_BRACKETS, _CYRILLIC.sub(lambda found: _AS_LATIN[found[0]], text))
    text = replaced(_AT_LINE, text, 2)
    text = replaced(_pattern(rf"{{options}}\s*(?:is\s+)?[:：]?\s*\"?((?<![A-Za-z])[A-Z])(?![{_EDGE}'])"), text, checked=True)
    text = replaced(_pattern(rf"(?<![{_EDGE}])([A-Z])\s*(?=선택지|옵션|选项|選項|项|項|번|を選)"), text)

    def ordinal(found: re.Match[str]) -> str:
        place = _ordinals()[re.sub(r"\s+", " ", found[1]).casefold()]
        return chr(ord(_LETTER) + place) if place < len(options.texts) else found[0]

    text = _pattern(r"({ordinals})\s*{options}(?!\s*[A-Z]\b)").sub(ordinal, text)

    def alone(found: re.Match[str]) -> str:
        letter = found[1]
        if letter not in letters:
            return letter
        before, after = text[: found.start()], text[found.end() :]
        if not _may_follow(before) or not _may_precede(letter, after, before):
            return letter
        return sign(letter)

    return _ALONE.sub(alone, text)


def _may_follow(before: str) -> bool:
    """Whether a letter may stand after this text: not after a noun, as in 'vitamin C'."""
    last = re.search(rf"([{_EDGE}']+)[ \t]+$", before)
    if last is None or last[1].endswith(("'s", "'re")):
        return True
    return _pattern(r"^{leads}$|^{links}$|^{nouns}$").match(last[1]) is not None


def _may_precede(letter: str, after: str, before: str) -> bool:
    """Whether a letter may stand before this text: `A` and `I` not before a word that goes on."""
    following = re.match(rf"[ \t]+([{_EDGE}']+)", after)
    if following is None:
        return not (letter == "A" and re.match(rf"\s+{_ONE.pattern}", after) and _sign_is_text(after))
    if letter in "AI":
        return _pattern(r"^{follows}$|^{either}$").match(following[1]) is not None and not (
            letter == "I" and _pattern(r"^(?:have|do|did|can|would|could|should|must|may|might|was|also|just|has|be|am)$").match(following[1])
        )
    return True


def _sign_is_text(after: str) -> bool:
    """Whether an article stands before the text of another option than the first: 'A' + 'red car'."""
    sign = after.lstrip()[0]
    return sign > _TEXT


def _marked(response: str, options: _Options) -> str:
    """The response with a sign for each mention; URLs and quoted questions are left out."""
    text = _URL.sub(" ", _plain(response))
    if options.are_numbers:
        text = _pattern(r"{numbers}").sub(lambda found: _numerals().get(found[0].casefold(), found[0]), text)
    return _mark_letters(options.mark_texts(_QUOTED_QUESTION.sub(" ", text)), options)


# -- Sentences, and which of their mentions are denied

_SENTENCE = re.compile(rf"[^\n.!?。！？;；]*(?:(?:\.(?=\S)(?!{_LETTER_SIGNS})|(?<={_LETTER_SIGNS})\.(?=[ \t]*[{_TEXT}-{_LAST}])|(?<=\b[A-Za-z])\.(?=\s*[a-z]))[^\n.!?。！？;；]*)*[.!?。！？;；\n]*")


class _Mention(NamedTuple):
    """An option that a sentence names, its place in the sentence, and whether it is denied."""

    position: int
    start: int
    is_letter: bool
    denied: bool


def _sentences(text: str) -> list[str]:
    return [part for part in _SENTENCE.findall(text) if part.strip()]


def _mentions(sentence: str) -> list[_Mention]:
    found = list(_ONE.finditer(sentence))
    denied = [
        _is_denied(sentence, mention.start(), found[i + 1].start() if i + 1 < len(found) else len(sentence))
        for i, mention in enumerate(found)
    ]
    # A denial after a list holds for all of it: 'A, B and D are wrong'.
    for i in range(len(found) - 2, -1, -1):
        between = sentence[found[i].end() : found[i + 1].start()]
        if denied[i + 1] == "after" and _JOIN().fullmatch(between) and not denied[i]:
            denied[i] = "after"
    return [
        _Mention(_position(mention[0]), mention.start(), mention[0] < _TEXT, bool(denied[i]))
        for i, mention in enumerate(found)
    ]


def _JOIN() -> re.Pattern[str]:  # noqa: N802 - a pattern that is compiled late
    return _pattern(r"[\s\"'()\[\]]*(?:[,，、/&+|]?[\s\"'()\[\]]*(?:{either}|{options})?[\s\"'()\[\]]*){1,3}(?:{options}\s*)?")


def _is_denied(sentence: str, at: int, end: int) -> str:
    """'before' or 'after', where the denial stands; '' for none."""
    before, after = sentence[:at], sentence[at + 1 : end]
    # A turn ends the reach of a denial: 'not A but B'. So does a new clause: 'not red, it is B'.
    turn = None
    for turn in _pattern(r"[;:：]|{turns}(?!\s*(?:not\b|n't))|[,，–—-]\s*(?:{restarts})").finditer(before):
        pass
    reach = before[turn.end() :] if turn else before
    whole = before
    interjection = re.sub(r"(?i)^\W*(?:no|nein|non|нет|nope)\s*[,.!:]", "", reach)
    denial = None
    for denial in _pattern(r"{denied_before}").finditer(interjection):
        pass
    if denial is not None and not (turn and _anything_but(whole)):
        gap = interjection[denial.end() :]
        if len(gap) <= 60 and not _pattern(r"[,，].*{links}").search(gap):
            return "before"
    if _anything_but(whole):
        return "before"
    if _pattern(r"^[\s\"'(\[,)\]]*(?:and|but|rather|y|e|et|und|и|а|sondern)?[\s,]*(?:{denied_before})[\s\"'(]*(?:{options})?[\s\"'(]*$").match(after) and end < len(sentence):
        return ""  # the denial is of the next mention: 'B, not A'
    if re.match(r"[\s)\]\"':.\-–—]*[✗✘❌×🚫]", after):
        return "after"
    if _pattern(
        r"^[\s)\]\"'、]*(?:{_}(?:{carries}[\s,'\"]*){0,5}|\s*[:：\-–—(（]\s*(?:{carries}\s*)?)(?:{denied_after})"
    ).match(after) and not re.match(r"[\s\"')\]]*,", after):
        return "after"
    return ""


def _anything_but(before: str) -> bool:
    return re.search(r"(?i)\banything\s+(?:other\s+than|but)\s*(?:option\s*)?[\"'(]*$", before) is not None


# -- The ranks


@lru_cache(maxsize=1024)
def _read_choice(response: str, texts: tuple[str, ...]) -> Choice:
    options = _prepared(texts)
    if not response.strip() or not texts:
        return Choice(None, "none")
    if same := options.written(response.strip()):
        return _decided(same, "text", response)
    bare = response.strip(" \t\n.()[]:*_\"'`{}") if len(response) < 20 else ""
    if len(bare) == 1 and bare.upper() in options.letters:
        return Choice(options.letters[bare.upper()], "line", response.strip())
    if same := options.whole(response):
        return _decided(same, "text", response)
    bare = _plain(response).strip(" \t\n.()[]:：。（）「」\"'<>{}")
    if len(bare) <= 2 and bare.upper() in options.letters:
        return Choice(options.letters[bare.upper()], "line", response.strip())
    contents = list(_contents(response))
    if contents:
        return _from_container(contents, options)
    return _from_text(response, options)


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
        with_answer = _answer_field(found[0])
        if with_answer is not None:
            yield with_answer


def _answer_field(text: str) -> str | None:
    try:
        held = json.loads(text)
    except ValueError:
        return None
    folded = {str(name).casefold().replace(" ", "_"): value for name, value in held.items()}
    value = next((folded[name] for name in _FIELDS if name in folded), None)
    return str(value) if isinstance(value, str | int | float) and not isinstance(value, bool) else None


def _from_container(contents: Sequence[str], options: _Options) -> Choice:
    read = [(text, _read_choice(text, tuple(options.raw)).position) for text in contents]
    positions = [position for _, position in read if position is not None]
    if not positions or read[-1][1] is None:
        return Choice(None, "none", _quoted(contents[-1]))
    return _decided(positions, "container", " | ".join(text for text, position in read if position is not None))


def _from_text(response: str, options: _Options) -> Choice:
    text = _without_lists(_marked(response, options))
    if options.polar and (polar := _stated_polarity(response, text, options)):
        return polar
    for rule, statements in (
        ("statement", _labelled(text, options)),
        ("line", _lines(text, options)),
        ("leading letter", _leading(text)),
        ("statement", _concluded(text) or _closing(text)),
        ("statement", _said(text)),
    ):
        if statements:
            return _last_of(statements, text, rule, response, options)
    sentences = _sentences(text)
    held = [(mention, sentence) for sentence in sentences for mention in _mentions(sentence)]
    for rule, is_letter in (("letter", True), ("option", False)):
        named = [(m.position, s) for m, s in held if m.is_letter is is_letter and not m.denied]
        if named and not (rule == "option" and options.are_numbers and _OTHER_NUMBER.search(text)):
            positions = [position for position, _ in named]
            if len(set(positions)) > 1 and (last := _revised(text, positions, is_letter=is_letter)) is not None:
                return Choice(last, rule, _quoted(_readable(named[-1][1], options)))  # type: ignore[arg-type]
            if len(set(positions)) > 1:
                shown = ", ".join(dict.fromkeys(_name(p, options, is_letter) for p in positions))
                return Choice(None, "several", shown)
            return Choice(positions[0], rule, _quoted(_readable(named[0][1], options)))  # type: ignore[arg-type]
    return Choice(None, "none")


def _revised(text: str, positions: Sequence[int], *, is_letter: bool) -> int | None:
    """The last named option, if the response revises before it what it named; None otherwise."""
    signs = [found for found in _ONE.finditer(text) if (found[0] < _TEXT) is is_letter]
    last = next(found for found in reversed(signs) if _position(found[0]) == positions[-1])
    others = [found for found in signs if found.start() < last.start() and _position(found[0]) != positions[-1]]
    if not others or not _pattern(r"{revises}").search(text[others[-1].end() : last.start()]):
        return None
    return positions[-1]


def _name(position: int, options: _Options, is_letter: bool) -> str:
    return next((l for l, p in options.letters.items() if p == position), "") if is_letter else options.texts[position]


def _readable(text: str, options: _Options) -> str:
    return _ONE.sub(lambda found: _name(_position(found[0]), options, found[0] < _TEXT), text)


class _Statement(NamedTuple):
    position: int
    start: int
    words: str


def _last_of(
    statements: Sequence[_Statement], text: str, rule: str, response: str, options: _Options
) -> Choice:
    """The statement that counts: the only one, or the last one if the response revises the others."""
    words = _quoted(_readable(statements[-1].words, options))
    positions = [statement.position for statement in statements]
    if len(set(positions)) == 1 and positions[0] >= 0:
        return Choice(positions[0], rule, words)  # type: ignore[arg-type]
    if len(set(positions)) == 1:
        return Choice(None, "several", words)
    last = statements[-1]
    other = max(statement.start for statement in statements if statement.position != last.position)
    if _pattern(r"{revises}").search(text[other : last.start + 40]) and last.position >= 0:
        return Choice(last.position, rule, words)  # type: ignore[arg-type]
    return Choice(None, "several", ", ".join(dict.fromkeys(_quoted(_readable(s.words, options)) for s in statements)))


def _label_pattern() -> re.Pattern[str]:
    between = rf"(?:[\s*\"'(]+[^\s.:：=?？\n{_LETTER}-{_LAST}]+){{0,7}}?"
    return _pattern(
        rf"(?:(?<![{_EDGE}])(?:wrong|incorrect|falsche|mauvaise|incorrecta|неверный|неправильный)\s+)?"
        rf"(?:{{nouns}}(?:{between}\s*{{links}}|[\s*\"')\]]*[:：=]|\s*\n+(?=[\s({{_}}]*(?:{{M}}|[A-Za-z]\W*(?:$|\n))))"
        r"|{choosing})[ \t:：]*"
    )


def _labelled(text: str, options: _Options) -> list[_Statement]:
    """What labels state, and what is called correct."""
    statements = []
    for label in _label_pattern().finditer(text):
        if re.match(r"(?i)(wrong|incorrect|falsche|mauvaise|incorrecta|неверный|неправильный)\s", label[0]):
            continue
        if (position := _after_label(text[label.end() :], label[0], options)) is not None:
            tail = re.match(r"\s*[^\n]*", text[label.end() :])
            words = label[0] + (tail[0] if tail else "")
            statements.append(_Statement(position, label.start(), words))
    for found in _pattern(r"{M}(?P<close>[\s)\]\"'.:：\-–—,]*)(?:{options}\s*)?(?:(?:is|are)\s+)?(?:{right}|[✓✔✅☑])").finditer(text):
        start = max(text.rfind(mark, 0, found.start()) for mark in ("\n", ". ", "。")) + 1
        sentence = text[start:].split("\n", 1)[0]
        mention = next((m for m in _mentions(sentence) if m.start == found.start() - start), None)
        joined = re.search(_JOIN().pattern + "$", text[start : found.start()]) if mention else None
        if mention is not None and not mention.denied and "\n" not in found["close"]:
            if joined and joined[0].strip() and _ONE.search(text[max(start, joined.start() - 1) : joined.start() or 1]):
                continue  # 'A and B are correct'
            statements.append(_Statement(mention.position, found.start(), found[0]))
    return sorted(statements, key=lambda statement: statement.start)


_ADJOINING = r"[\s\"'“”「」(\[*:：,，、]*(?:(?:the|an?|option|la|le|el|der|die|das|ein|eine|un|une|los|las|les)\s+)*"


def _concluded(text: str) -> list[_Statement]:
    """What a conclusion names at once: 'so this has to be B'."""
    form = rf"{{concludes}}[\s,，:：]*(?:{{says}}|(?:[^\s,.;。，{_LETTER}-{_LAST}]+\s+){{{{0,3}}}}{{links}})?{_ADJOINING}({{M}})"
    return _adjoining(text, form)


def _said(text: str) -> list[_Statement]:
    """What a sentence calls the thing asked for: 'it is a drum'."""
    statements = _adjoining(text, rf"(?<!\w)(?<!if )(?<!whether ){{says}}{_ADJOINING}({{M}})")
    return statements + _adjoining(text, r"({M})[\s」』\"')]*{said}")


def _adjoining(text: str, form: str) -> list[_Statement]:
    statements = []
    for found in _pattern(form).finditer(text):
        start = max(text.rfind(mark, 0, found.start(1)) for mark in ("\n", ". ", "。", "! ", "? ")) + 1
        sentence = re.split(r"[\n。]", text[start:], maxsplit=1)[0]
        mentions = _mentions(sentence)
        at = next(i for i, mention in enumerate(mentions) if mention.start == found.start(1) - start)
        mention, behind = mentions[at], mentions[at + 1 : at + 2]
        if mention.denied or sentence.rstrip().endswith(("?", "？")):
            continue
        between = sentence[mention.start + 1 : behind[0].start] if behind else ""
        ahead = sentence[mentions[at - 1].start + 1 : mention.start] if at else ""
        joined = (behind and not behind[0].denied and behind[0].position != mention.position and _JOIN().fullmatch(between)) or (
            at and not mentions[at - 1].denied and mentions[at - 1].position != mention.position and _JOIN().fullmatch(ahead)
        )
        statements.append(_Statement(-1 if joined else mention.position, found.start(1), sentence))
    return statements


def _after_label(tail: str, label: str, options: _Options) -> int | None:
    """The option that follows a label; -1 for several, None for none."""
    opening = re.match(rf"{_FILL}", tail)
    rest = tail[opening.end() :] if opening else tail
    first = re.match(rf"([A-Za-z]|\d{{1,2}})(?![{_EDGE}]|['’][A-Za-z]|[-/.][A-Za-z])", rest)
    if first and first[1].upper() in options.letters and _stands_alone(first[1], rest[first.end() :]):
        rest = chr(ord(_LETTER) + options.letters[first[1].upper()]) + rest[first.end() :]
    sentence = (_sentences(rest) or [""])[0]
    whole = options.whole(sentence.rstrip("\n"))
    if len(whole) == 1 and not _ONE.search(sentence):
        return whole[0]
    lead = re.sub(r"\s+", " ", label)
    mentions = [m for m in _mentions(f"{lead} {sentence}")]
    stated = [m for m in mentions if not m.denied]
    if not stated:
        return None
    chosen = stated[0]
    shown = f"{lead} {sentence}"
    after = shown[chosen.start + 1 :]
    others = [m for m in stated[1:] if m.position != chosen.position]
    if others:
        between = shown[chosen.start + 1 : others[0].start]
        behind = shown[others[0].start + 1 :]
        if re.fullmatch(r"[\s)\]\"'.:：]*", between) and chosen.is_letter and not others[0].is_letter:
            return -1  # 'B: a kite', where the kite is A
        joined = _JOIN().fullmatch(between)
        if joined and (between.strip(" \"'()[]") or chosen.is_letter) and not _goes_on(behind, between):
            return -1
    del after
    return chosen.position


def _goes_on(behind: str, between: str) -> bool:
    """Whether a clause follows a mention after a comma: 'B, A is too bright'."""
    joint = between.strip(" \"'()[]")
    return joint in ("", ",", "，") and _pattern(r"^[\s)\"']*(?:{carries}|{follows})").match(behind) is not None


def _stands_alone(letter: str, after: str) -> bool:
    """Whether a letter after a label is one: `a`, `A` and `I` not before a word that goes on."""
    following = re.match(rf"[ \t]+([{_EDGE}']+)", after)
    if following is None:
        return not (letter in "aA" and re.match(rf"[ \t]+[{_TEXT}-{_LAST}]", after))
    if letter.islower() and letter not in "ai":
        return _pattern(r"^{follows}$|^{either}$").match(following[1]) is not None
    if letter in "aAiI":
        return _pattern(r"^(?:because|since|as|is|for|and|or|but|due|although|while|porque|parce|car|weil|da|denn|потому|так|и|oder|und|ou|et|o|y)$").match(following[1]) is not None
    return True


def _lines(text: str, options: _Options) -> list[_Statement]:
    """Lines that are only a letter or a text."""
    statements = []
    for found in re.finditer(r"[^\n]+", text):
        line = found[0]
        alone = _pattern(r"\W*(?:{options}\s*)?[\W_]*").fullmatch(_ONE.sub("", line))
        mentions = _ONE.findall(line)
        if not mentions or not alone:
            continue
        positions = {_position(sign) for sign in mentions}
        if len(mentions) <= 2 and len(positions) == 1:
            statements.append(_Statement(positions.pop(), found.start(), line))
        elif len(positions) > 1:
            statements.append(_Statement(-1, found.start(), line))
    return statements


def _closing(text: str) -> list[_Statement]:
    """A letter or a text alone at the end, after a colon or a dash: 'The trunk tells: B.'"""
    found = re.search(rf"[^\n]*[:：–—]\s*[\"'“(\[]*([{_LETTER}-{_LAST}])[\s\W]*$", text)
    if found is None or len(set(_ONE.findall(text[found.end(1) - 1 :]))) > 1:
        return []
    return [_Statement(_position(found[1]), found.start(1), found[0])]


def _leading(text: str) -> list[_Statement]:
    """Letters with their sign at the start of a line, or of the response."""
    statements = []
    pattern = rf"(?m)^\s*(?:[-•+]\s+)?(?:(?i:option|choice|选项|선택지|вариант|opción)\s+)?({_LETTER_SIGNS})(\s*[.):：、,，\-–—]|\s+(?=[{_TEXT}-{_LAST}])|\s*\n|(?=\s+(?:because|since|as|weil|car|porque|потому)\b))"
    for found in re.finditer(pattern, text):
        line = text[found.start(1) :].split("\n", 1)[0]
        sentence = (_sentences(line) or [line])[0]
        mentions = _mentions(sentence)
        if not mentions or mentions[0].denied:
            continue
        first, others = mentions[0], [m for m in mentions[1:] if not m.denied and m.position != mentions[0].position]
        position = first.position
        if others:
            between = sentence[first.start + 1 : others[0].start]
            if re.fullmatch(r"[\s)\]\"'.:：\-–—]*", between) and not others[0].is_letter:
                position = -1  # 'B) a kite', where the kite is A
            elif _JOIN().fullmatch(between) and not _goes_on(sentence[others[0].start + 1 :], between):
                position = -1
        statements.append(_Statement(position, found.start(1), line))
    return statements


_OTHER_NUMBER = re.compile(r"(?<![^\W\d_])\d+")
"""A number that no option holds: options that are numbers are then held by chance."""

_LISTED = re.compile(
    rf"(?m)^[ \t]*(?:[-•+]\s+)?({_LETTER_SIGNS})[ \t]*[.):：、][ \t]*(?:([{_TEXT}-{_LAST}])[ \t.,;。]*|[^\n{_LETTER}-{_LAST}]*)$"
)
_LISTED_INLINE = re.compile(rf"(?:{_LETTER_SIGNS}[\s.):：、]*[{_TEXT}-{_LAST}][\s,;，、.。/]*(?:and|or|或|и|und|et|y)?\s*){{2,}}")


def _without_lists(text: str) -> str:
    """Leave out lists that only repeat the options: lines 'A. ...', 'B. ...', or the same in one line."""
    text = _LISTED_INLINE.sub(
        lambda found: " " if len(set(re.findall(_LETTER_SIGNS, found[0]))) > 1 else found[0], text
    )
    lines = [found for found in _LISTED.finditer(text) if not _is_remark(found[0])]
    if len({found[1] for found in lines}) < 2:
        return text
    for found in reversed(lines):
        text = text[: found.start()] + " " + text[found.end() :]
    return text


def _is_remark(line: str) -> bool:
    """Whether a line of a list says that its option is right or wrong."""
    return _pattern(r"{right}|[✓✔✅☑✗✘❌]|(?:{denied_after})\W*$|[-–—:：(].*(?:{denied_after})").search(line) is not None


# -- Yes and no


@cache
def _polar_words() -> Mapping[str, bool]:
    lists = _lists()
    return {**dict.fromkeys(lists["yes"], True), **dict.fromkeys(lists["no"], False)}


def _polarities(texts: Sequence[str]) -> dict[int, bool]:
    """The options that say yes or no, by position, if exactly one says yes and one says no."""
    said: dict[int, bool] = {}
    for position, text in enumerate(texts):
        word = re.split(r"[,.，。、;:：]", text.casefold().strip(), maxsplit=1)[0].strip()
        if word in _polar_words():
            said[position] = _polar_words()[word]
    return said if sorted(said.values()) == [False, True] else {}


def _stated_polarity(response: str, text: str, options: _Options) -> Choice | None:
    """Yes or no as a sentence begins with it or a label states it; None if the response states neither."""
    by_polarity = {said: position for position, said in options.polar.items()}
    plain = _plain(response)
    if _pattern(r"^\W*(?:{yes})\s*(?:{either}|/)\s*(?:{no})\W*$|^\W*(?:{no})\s*(?:{either}|/)\s*(?:{yes})\W*$").match(plain):
        return Choice(None, "several", _quoted(plain))
    labelled: list[tuple[int, bool, str]] = []
    leading: list[tuple[int, bool, str]] = []
    polar = r"(?P<yes>{yes})|(?P<no>{no})"
    stop = r"(?=\W*(?:$|\n)|\s*[,.!;:，。！；：、—–\-)\]\"'])"
    for label in _label_pattern().finditer(text):
        rest = text[label.end() :]
        found = _pattern(rf"{_FILL}(?:{polar}){stop}").match(rest)
        if found:
            labelled.append((label.start(), bool(found["yes"]), label[0] + found[0]))
    begin = r"(?:^|(?<=[.!?。！？\n:：])|(?<=[.!?:]\s))[\s\"'(\[*#\-]*"
    forms = (
        rf"{begin}(?:{polar})(?:{stop}|(?=\s+(?:{{after_no}})))",
        rf"(?<=[,，]\s)(?:{polar})(?=[,，])",
    )
    for found in (found for form in forms for found in _pattern(form).finditer(plain)):
        leading.append((found.start(), bool(found["yes"]), found[0]))
    for said in (labelled, leading):
        values = {value for _, value, _ in said}
        if len(values) == 1:
            return Choice(by_polarity[values.pop()], "option", _quoted(said[-1][2]))
        if len(values) > 1:
            last = said[-1]
            other = max(start for start, value, _ in said if value is not last[1])
            source = text if said is labelled else plain
            if _pattern(r"{revises}").search(source[other : last[0] + 20]):
                return Choice(by_polarity[last[1]], "option", _quoted(last[2]))
            return Choice(None, "several", ", ".join(words.strip() for _, _, words in said))
    return None


_TOKEN = re.compile(r"[\u3040-\u30ff\u3400-\u9fff\uac00-\ud7af]|[^\W_]+", re.UNICODE)


def _stated_by_question(question: str, response: str, options: _Options) -> Choice:
    """Yes for a response that states what a yes/no question asks, no for one that denies it."""
    nothing = Choice(None, "none")
    if len(options.polar) != len(options.texts):
        return nothing
    sentence = next((part for part in _sentences(_plain(response)) if not part.rstrip().endswith(("?", "？"))), "")
    asked = _content(question)
    if not asked or _pattern(r"{unsure}").search(sentence) or _pattern(r"{denies}").search(question):
        return nothing
    stated = _content(sentence)
    shared = sum(any(_alike(word, other) for other in stated) for word in asked)
    if shared < 0.75 * len(asked):
        return nothing
    said = _pattern(r"{denies}").search(sentence) is None
    return Choice(next(p for p, value in options.polar.items() if value is said), "option", _quoted(sentence))


def _content(text: str) -> set[str]:
    """The words of a text that are not common; of Chinese, Japanese and Korean the signs."""
    words = {word.casefold() for word in _TOKEN.findall(_plain(text))}
    return {word for word in words if word not in _lists()["common"] and not word.isdecimal()}


def _alike(word: str, other: str) -> bool:
    """Whether two words are the same but for their endings."""
    shared = max(4, min(len(word), len(other)) - 2)
    return word == other or (len(word) > 3 and len(other) > 3 and word[:shared] == other[:shared])
