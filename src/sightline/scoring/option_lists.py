"""The option that a response marks in a list or a table of the options, or names by its place."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache
from typing import NamedTuple

from sightline.scoring.answer_words import (
    EDGE,
    Languages,
    languages_of,
    places_of,
    word_lists,
    word_pattern,
    words_of,
)
from sightline.scoring.markup import plain_text
from sightline.scoring.mentions import Options, quoted, sentences_of
from sightline.scoring.text import lexicon
from sightline.scoring.word_forms import content_of, shared_words, tokens_of


class Found(NamedTuple):
    """The positions of the options that a list marks or a response names by place, and the words.

    A list that marks some options as wrong and leaves several has no position.
    """

    positions: Sequence[int]
    words: str
    bold: bool = False
    """Whether nothing but bold letters marks the option."""


# -- Marks beside the options of a list

_YES, _NO = "✓✔✅☑🗸👍◉●🔘", "✗✘❌☐✖🚫👎○◯❎"
_ARROWS = r"←|⬅|👈|<-+|<=+(?=\s*$)|⇐|◀"
_FORWARD = r"→|➡|👉|⇒|=>|->|▶|►"
_BULLET = r"[\s>]*(?:[-•+*](?=\s)\s*)?"
_BOX = re.compile(rf"\s*(?:[\[(](?P<box>[ xX*✓✔✅•])[\])]|(?P<sign>[{_YES}{_NO}]))\ufe0f?\s*(?=\S)")
_SIGN_AT_END = re.compile(
    rf"[\s(\[*_–—:-]*(?:(?P<yes>[{_YES}])|(?P<no>[{_NO}])|(?P<arrow>{_ARROWS}))\ufe0f?[\s)\]*_.]*$"
)
_MAY_MARK = re.compile(
    rf"[{_YES}{_NO}|]|\*\*|__|{_ARROWS}|{_FORWARD}|[\[(（【]\s*[^\W\d]{{2}}|[\[(][ xX*•][\])]"
)
_IN_BRACKETS = re.compile(r"[)\]）】][\s*_.]*$")
_BOLD = re.compile(r"(?:\*\*|__)(?P<text>.+?)(?:\*\*|__)\s*")
_LETTER = re.compile(r"[(\[]?(?P<letter>[A-Za-z])(?:[)\].:、]+|$)\s*(?P<text>.*)$")


class _Row(NamedTuple):
    """An option that a line is: its position, whether it is marked, and whether all of it is bold."""

    position: int
    marked: bool | None
    bold: bool


def marked_option(response: str, options: Options, question: str) -> Found | None:
    """The option that one line of a list of the options marks ('B. a drum ✅'), or the one row of a table.

    One line marks it: with a tick, an arrow, a ticked box or 'correct' behind it, or alone in bold. A table
    has one column of yes and no, and yes in one row.
    """
    if "\n" not in response or not _MAY_MARK.search(response):
        return None
    languages = tuple(sorted({*languages_of(response), *languages_of(question)}))
    rows = list(_table_rows(response, options, question) if "|" in response else ())
    rows = rows or [row for line in response.splitlines() if (row := _row(line, options, languages))]
    if len({row.position for row in rows}) < 2:
        return None
    chosen = [row.position for row in rows if row.marked]
    bold = [row.position for row in rows if row.bold]
    by_bold = not chosen and all(row.marked is None for row in rows) and len(bold) == 1
    if by_bold and not _denies_beside(response, options, languages):
        chosen = bold
    if not chosen and any(row.marked is False for row in rows):
        left = {row.position for row in rows if row.marked is None}
        return Found((), "") if len(left) > 1 else None
    if not chosen:
        return None
    return Found(chosen, ", ".join(quoted(plain_text(options.raw[one])) for one in chosen), by_bold)


def _row(line: str, options: Options, languages: Languages) -> _Row | None:
    text = re.sub(rf"^{_BULLET}", "", line, count=1)
    marked: bool | None = None
    if (led := re.match(rf"(?:\*\*)?\s*(?:{_FORWARD})\ufe0f?\s*", text)) and led[0].strip("* "):
        marked, text = True, text[led.end() :]
    if box := _BOX.match(text):
        marked = (box["box"] or box["sign"]) not in (" ", *_NO)
        text = text[box.end() :]
    end = _SIGN_AT_END.search(text)
    if end is None and _IN_BRACKETS.search(text):
        end = _verdict_at_end(languages).search(text)
    if end is not None:
        marked, text = end["no"] is None, text[: end.start()]
        text += "**" * (text.count("**") % 2)
    bold = (found := _BOLD.fullmatch(text.strip())) is not None
    position = _option_of(found["text"] if found else text, options)
    return None if position is None else _Row(position, marked, bold)


@cache
def _verdict_at_end(languages: Languages) -> re.Pattern[str]:
    """'(correct)', '(richtig)', '(wrong)' at the end of a line."""
    answer = r"(?:{articles}\s*)?(?:(?:{true}|{right})(?:\s*{nouns})?|{nouns})"
    return word_pattern(
        rf"[\s*_]*[(\[（【]\s*(?:(?P<yes>{answer})|(?P<no>{{false}}|{{denied_after}}))\s*[)\]）】][\s*_.]*$",
        languages,
    )


def _option_of(text: str, options: Options) -> int | None:
    """The option that a line or a cell is: its letter, its text, or both, which must agree."""
    plain = plain_text(text).strip(" \t*_")
    found = _LETTER.match(plain)
    if found and (position := options.letters.get(found["letter"].upper())) is not None:
        same = options.written(found["text"].strip(" .")) if found["text"] else [position]
        return position if same == [position] else None
    same = options.written(plain.strip(" ."))
    return same[0] if len(same) == 1 else None


def _denies_beside(response: str, options: Options, languages: Languages) -> bool:
    """Whether the text around a list denies or doubts, so that bold marks no choice."""
    beside = "\n".join(line for line in response.splitlines() if _row(line, options, languages) is None)
    return (
        word_pattern("{denies}|{denied_before}|{unsure}|{tentative}|[?？]", languages).search(beside)
        is not None
    )


# -- Tables

_RULE = re.compile(r"[\s|:\-—]+")


def _table_rows(response: str, options: Options, question: str) -> Iterator[_Row]:
    """The rows of a table with one column of yes and no; none where its head asks something else."""
    lines = [line.strip() for line in response.splitlines() if "|" in line]
    cells = [line.strip("|").split("|") for line in lines if not _RULE.fullmatch(line)]
    rows = []
    head: Sequence[str] = ()
    for row in cells:
        position = next((found for cell in row[:2] if (found := _option_of(cell, options)) is not None), None)
        verdicts = {at: said for at, cell in enumerate(row) if (said := _verdict(cell)) is not None}
        if position is not None:
            rows.append((position, verdicts))
        elif not rows:
            head = row
    columns = {at for _, verdicts in rows for at in verdicts}
    if len(columns) != 1 or any(len(verdicts) != 1 for _, verdicts in rows):
        return
    (column,) = columns
    if column < len(head) and not _is_verdict(head[column], question):
        return
    yield from (_Row(position, verdicts[column], False) for position, verdicts in rows)


def _verdict(cell: str) -> bool | None:
    word = plain_text(cell).casefold().strip(" .!\ufe0f")
    if word in (*_YES, *_NO, "x"):
        return None if word == "x" else word in _YES
    for value, names in ((True, ("yes", "true")), (False, ("no", "false"))):
        if any(word in words_of(name) for name in names):
            return value
    return None


def _is_verdict(head: str, question: str) -> bool:
    """Whether a column is about what the question asks: 'Correct?', 'Answer', or a word of the question."""
    languages = languages_of(f"{head} {question}")
    if word_pattern("{denied_before}|{denied_after}|{denies}|{false}", languages).search(head):
        return False
    named = word_pattern(r"{true}|{right}|{nouns}|{verdicts}|[✓✔✅]", tuple(sorted({*languages, "en"})))
    asked = content_of(head)
    return not head or named.search(head) is not None or (0 < len(asked) <= shared_words(asked, question))


# -- The place of an option

_DIGITS = {"一": 1, "二": 2, "三": 3, "四": 4, "五": 5, "六": 6}
_SIDES = lexicon(
    """left right top bottom middle center centre upper lower front back links rechts gauche droite izquierda
    derecha"""
)
_TAIL = (
    r"(?:\s*(?:です|でした|だと思います|を選びます|が正解です?|が正しいです?|입니다|이에요|예요|이다|이\s*정답입니다"
    r"|가\s*정답입니다|[을를]\s*선택합니다|是正确的|正确|{right}\s*(?:{nouns}|{ones})?))?"
)
"""What may follow a place in a sentence that only names it."""


@cache
def _place_patterns(languages: Languages) -> tuple[re.Pattern[str], re.Pattern[str]]:
    """A sentence that only names a place, and a place anywhere; both with what it is called."""
    digit = r"(?:\d{1,2}|[一二三四五六])"
    sign = r"(?:number|no\.?|nr\.?|nummer|numéro|número|номер|[#№])"
    number = rf"{{listed}}\s*{sign}?\s*(?P<number>{digit}|{{numbers}})(?!\s*[.,]?\d)"
    count = rf"第\s*(?P<zh>{digit})\s*[个個项項]|(?P<ja>{digit})\s*(?:番目|つ目)の?|(?P<ko>\d{{1,2}})번"
    order = r"(?P<ordinal>{ordinals})|(?P<last>{last})"
    place = rf"(?:{number}|(?:{count}|{order})\s*(?:(?P<noun>{{options}}|{{listed}})|{{ones}})?)"
    led = r"(?:(?:{nouns}\s*(?:{links}|[:：=])?|{choosing}|{says}|{concludes}|{revises})[\s,:：]*){0,3}"
    whole = rf"\W*{led}(?:{{articles}}[\s]*)?{place}{_TAIL}\W*"
    return word_pattern(whole, languages), word_pattern(place, languages)


def placed_option(response: str, options: Options, question: str) -> Found | None:
    """The option that a sentence names by its place in the list: 'Option 2', 'the second one'."""
    plain = plain_text(response)
    if len(plain) > 400 or not _names_places(plain.casefold()) or not _may_be_counted(options):
        return None
    languages = tuple(sorted({*languages_of(plain), *languages_of(question)}))
    whole, anywhere = _place_patterns(languages)
    positions: list[int] = []
    for sentence in sentences_of(plain):
        if sentence.rstrip().endswith(("?", "？")):
            continue
        found = whole.fullmatch(sentence.strip())
        if found is None:
            if anywhere.search(sentence):
                return None  # another place is spoken of
            continue
        named = found["number"] is not None or found["noun"] is not None
        if not named and _counts_things(question):
            return None
        place = _place(found, len(options.texts), languages)
        if place is None:
            return None
        positions.append(place)
    return Found(positions, quoted(plain)) if positions else None


def _names_places(text: str) -> bool:
    """Whether a text may name a place at all, which few do: the patterns of their languages take long."""
    words = words_of("ordinals") | words_of("last") | words_of("listed") | {"番目", "つ目", "第", "번"}
    return any(word in text for word in words)


def _place(found: re.Match[str], options: int, languages: Languages) -> int | None:
    if found["last"]:
        return options - 1
    if found["ordinal"]:
        place = places_of("ordinals", languages)[re.sub(r"\s+", " ", found["ordinal"]).casefold()]
    else:
        number = (found["number"] or found["zh"] or found["ja"] or found["ko"]).casefold()
        numbers = {**places_of("numbers", languages), **_DIGITS}
        place = (int(number) if number.isdigit() else numbers[number]) - 1
    return place if 0 <= place < options else None


def _may_be_counted(options: Options) -> bool:
    """Whether no option names a number, an order or a side, of which a place could speak."""
    if len(options.texts) < 2:
        return False
    every = tuple(word_lists())
    sides = re.compile(rf"(?<![{EDGE}])(?:{'|'.join(_SIDES)})(?![{EDGE}])", re.IGNORECASE)
    return not any(_counts(text, every) or sides.search(text) for text in options.texts)


def _counts(text: str, languages: Languages) -> bool:
    """Whether a text names a number from 2 on, or an order; 'one' may be an article."""
    if word_pattern(r"\d|{ordinals}|{last}|[二两兩三四五六七八九十두세둘셋]", languages).search(text):
        return True
    numbers = places_of("numbers", languages)
    return any(numbers.get(word, 0) > 1 for word in tokens_of(text))


def _counts_things(question: str) -> bool:
    """Whether a question itself counts things in an order, so that 'the second one' may be one of these."""
    return _counts(question, languages_of(question))
