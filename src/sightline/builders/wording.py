"""Other wordings of the questions of a groups file: typos, case, negation, option orders, languages.

They change how something is asked and not the right answer, except for the negation, which turns it. Where
that is not certain, the line has no such wording, and the reason is listed."""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import factorial
from pathlib import Path
from random import Random
from typing import Any

from msgspec import UNSET, Struct
from msgspec.structs import replace

from sightline.builders.rephrase import edits
from sightline.builders.replies import ReplyRequests, ReplyResult
from sightline.engine.client import ModelClient
from sightline.errors import UserError
from sightline.formats.files import file_digest_or_error
from sightline.formats.groups import ORIGINAL, GroupLine, by_group, check_options, read_groups, write_groups
from sightline.scoring.letters import position_of_letter
from sightline.scoring.text import words
from sightline.store.answers import KeyedRequest
from sightline.text import fill
from sightline.types import LETTERS, Answer, user

ASKED = "asked"
"""The label of a question as it stands in the file, and the variant of one that is not sent there."""

TEMPLATES = ("Question: {question}", "Please answer this: {question}", "{question} Please give the answer.")

Reworded = tuple[str, str, GroupLine | str]
"""The variant, its label, and the line in this wording or why there is none."""


class Wording(Struct, frozen=True):
    """What to make of each line.

    Attributes:
        kinds: Names of `KINDS`.
        rates: Typos per 100 letters.
        templates: Texts around the question, which stands at {question}.
        orders: The number of random orders of the options; None for all rotations.
        languages: Languages for a model to translate questions into.
    """

    kinds: tuple[str, ...] = ()
    rates: tuple[float, ...] = (2, 5, 10)
    templates: tuple[str, ...] = TEMPLATES
    orders: int | None = None
    languages: tuple[str, ...] = ()
    seed: int = 0


class _LeftOutError(Exception):
    """Why a line has no wording of a kind."""


def reword(line: GroupLine, wording: Wording) -> tuple[list[GroupLine], dict[str, str]]:
    """The other wordings of a line, and why others are left out, by variant or kind."""
    lines: list[GroupLine] = []
    left_out: dict[str, str] = {}
    if wording.languages:
        try:
            question_of(line)
        except _LeftOutError as reason:
            left_out["language"] = str(reason)
    for kind in wording.kinds:
        try:
            for variant, label, made in KINDS[kind](line, wording):
                if isinstance(made, str):
                    left_out[variant] = made
                else:
                    lines.append(_named(line, made, variant, label))
        except _LeftOutError as reason:
            left_out[kind] = str(reason)
    return lines, left_out


def _named(line: GroupLine, made: GroupLine, variant: str, label: str) -> GroupLine:
    name = variant if line.variant == ASKED else f"{line.variant}-{variant}"
    return replace(made, variant=name, labels={**made.labels, "wording": label}, response=UNSET)


# -- The question of a line, and what stays as it is in every wording

_KEPT = re.compile(r"\{[^{}]*\}|<[^<>]*>|https?://\S+|\"[^\"]*\"|“[^”]*”|`[^`]*`|\w*\d\w*")
"""Placeholders, URLs, quoted texts, numbers and names with digits."""

_LETTER = re.compile(r"\b[A-Z]\b")
_WORD = re.compile(r"[^\W\d_]+(?:['’][^\W\d_]+)*")


def question_of(line: GroupLine) -> str:
    """The question in the prompt, without the options below it."""
    if line.question:
        if line.prompt.count(line.question) != 1:
            raise _LeftOutError("its prompt does not hold its question once")
        return line.question
    spans = _shown_options(line)
    question = line.prompt[: spans[0][0]].rstrip() if spans else line.prompt
    if not question:
        raise _LeftOutError("it has no question")
    return question


def with_question(line: GroupLine, question: str) -> GroupLine:
    """The line with another question, in its prompt too, and how far that is from its own."""
    asked = question_of(line)
    prompt = line.prompt.replace(asked, question, 1)
    labels = {**line.labels, "edits": edits(asked, question)}
    return replace(line, prompt=prompt, question=question if line.question else "", labels=labels)


def kept_spans(line: GroupLine) -> list[tuple[int, int]]:
    """What stays of a question; with options, single capital letters may name them."""
    text = question_of(line)
    patterns = (_KEPT, _LETTER) if line.options else (_KEPT,)
    return sorted(found.span() for pattern in patterns for found in pattern.finditer(text))


# -- Typos, case, and texts around a question

SHORTEST = 4
"""The letters of the shortest word that gets a typo."""

_NEIGHBOURS = {
    key: row[max(place - 1, 0) : place] + row[place + 1 : place + 2]
    for row in ("qwertyuiop", "asdfghjkl", "zxcvbnm")
    for place, key in enumerate(row)
}


def _typos(line: GroupLine, wording: Wording) -> Iterator[Reworded]:
    question = question_of(line)
    answers = {word for text in (*line.options, *line.references) for word in words(text)}
    earlier = {question}
    for rate in wording.rates:
        random = Random(f"typos {wording.seed} {line.group} {line.variant}")
        text = with_typos(question, rate, random, kept_spans(line), answers)
        same = "its question is too short for another number of typos"
        yield f"typos-{rate:g}", f"typos {rate:g} %", same if text in earlier else with_question(line, text)
        earlier.add(text)


def with_typos(
    text: str,
    rate: float,
    random: Random,
    kept: Sequence[tuple[int, int]] = (),
    answers: Collection[str] = (),
) -> str:
    """Put `rate` typos per 100 letters into a text: at least one, at most one a word.

    A typo drops, doubles or swaps letters inside a word, or takes a key beside one. With equal random
    choices, a higher rate adds to the typos of a lower one.

    >>> with_typos("What is written on bus 1234?", 5, Random(0))
    'What is wtitten on bus 1234?'
    """
    found = [
        one.span()
        for one in _WORD.finditer(text)
        if len(one[0]) >= SHORTEST
        and not any(start < one.end() and one.start() < end for start, end in kept)
        and not set(words(one[0])) & set(answers)
    ]
    if not found:
        raise _LeftOutError("its question has no word for a typo")
    drawn = [(start, end, _typo(text[start:end], random)) for start, end in random.sample(found, len(found))]
    for start, end, word in sorted(drawn[: max(1, round(sum(map(str.isalpha, text)) * rate / 100))])[::-1]:
        text = text[:start] + word + text[end:]
    return text


def _typo(word: str, random: Random) -> str:
    place = random.choice([place for place in range(1, len(word) - 1) if word[place].isalpha()])
    letter, before, after = word[place], word[:place], word[place + 1 :]
    ways = [before + after, before + letter + letter + after]
    if len(after) > 1 and after[0].isalpha() and after[0] != letter:
        ways.append(before + after[0] + letter + after[1:])
    if near := _NEIGHBOURS.get(letter):
        ways.append(before + random.choice(near) + after)
    return random.choice(ways)


def _cases(line: GroupLine, wording: Wording) -> Iterator[Reworded]:
    question = question_of(line)
    for name, convert in (("lower", str.lower), ("upper", str.upper)):
        text, at = "", 0
        for start, end in [*kept_spans(line), (len(question), len(question))]:
            text += convert(question[at:start]) + question[max(at, start) : end]
            at = max(at, end)
        same = "its question is in this case already"
        yield name, f"{name} case", same if text == question else with_question(line, text)


def _templates(line: GroupLine, wording: Wording) -> Iterator[Reworded]:
    for number, template in enumerate(wording.templates, 1):
        text = fill(template, question=question_of(line))
        yield f"template-{number}", f"template {number}", with_question(line, text)


# -- Negation: what is asked is turned, and the answer with it

_POLAR = re.compile(
    r"([^?]*\?)(\s*(?:(?:please |kindly )?(?:answer|respond|reply)\b[^?]*\byes\b[^?]*)?)", re.IGNORECASE
)
"""A question, and a request for yes or no after it."""

_BE = "is|are|was|were"
_VERB = rf"(?:{_BE}|do|does|did|can|could|will|would|has|have|had|should|must|may|might)"
_THIS = "this|that|these|those"
_POLAR_START = re.compile(rf"{_VERB}\s+\w", re.IGNORECASE)
_SUBJECT = re.compile(
    rf"({_VERB})\s+(there|it|he|she|they|we|you|I|(?<=(?:is|re|as)\s)(?:{_THIS})(?=\s+(?:an?|the)\s)|"
    rf"(?<=(?:is|re|as)\s)(?:the|{_THIS}|his|her|its|their|my|your|our)\s+[^\W\d_]+(?=\s+an?\s))\s+(.+)\?",
    re.IGNORECASE | re.DOTALL,
)
"""A verb, a subject whose end is certain, and what is asked of it.

In 'Is the animal a dog?' the article begins what is asked. A pattern cannot know where the subject of 'Is the
bus near us red?' ends.
"""

_UNSURE = re.compile(
    r"\b(?:or|not|never|no|nor|neither|nobody|nothing|none|without|cannot)\b|n['’]t\b", re.IGNORECASE
)
_NEGATED_START = re.compile(r"\w+n['’]t\b", re.IGNORECASE)
_TURNED = {"yes": "no", "no": "yes"}


def _negations(line: GroupLine, wording: Wording) -> Iterator[Reworded]:
    """The negated lines are a group of their own, because another answer is right."""
    parts = _POLAR.fullmatch(question_of(line))
    if parts is None or not _POLAR_START.match(parts[1]):
        is_negated = _NEGATED_START.match(question_of(line)) is not None
        raise _LeftOutError(
            "its question is negated already" if is_negated else "its question does not ask for yes or no"
        )
    asked, request = parts.groups()
    turned = replace(line, group=f"{line.group}@negated", references=_turned_references(line))
    if found := None if _UNSURE.search(asked) else _SUBJECT.fullmatch(asked):
        verb, subject, rest = found.groups()
        subject = "I" if subject in ("i", "I") else subject[0].lower() + subject[1:]
        negated = f"Is it false that {subject} {verb.lower()} {rest}?{request}"
        yield "negated-false", "is it false that", with_question(turned, negated)
    else:
        yield "negated-false", "", "how its question is negated is not certain"
    if re.search(r"\bor\b", asked, re.IGNORECASE):
        yield "negated-no", "", "its question offers a choice"
    else:
        no = f'Is "no" the right answer to this question: {asked}{request}'
        yield "negated-no", 'is "no" the right answer', with_question(turned, no)


def _turned_references(line: GroupLine) -> tuple[str, ...]:
    texts = [option.strip().casefold() for option in line.options]
    turned, answers = [], set()
    for reference in map(str.strip, line.references):
        position = position_of_letter(reference, texts)
        plain = reference.rstrip(".").casefold() if position is None else texts[position]
        if plain not in _TURNED or (texts and sorted(texts) != ["no", "yes"]):
            raise _LeftOutError("its right answer is not one of yes and no")
        answers.add(plain)
        turned.append(_TURNED[plain] if position is None else LETTERS[1 - position])
    if len(answers) != 1:
        raise _LeftOutError("its right answer is not one of yes and no")
    return tuple(dict.fromkeys(turned))


# -- Orders of options: references are texts, so that those of all orders are equal

_BY_LETTER = r"(?:options?|answers?|choices?) \(?[A-Z]\b|\(?\b[A-Z]\)? (?:and|or|nor|&) \(?[A-Z]\b"
_NAMES_OPTIONS = re.compile(_BY_LETTER, re.IGNORECASE)
_OF_OTHERS = re.compile(
    r"\b(?:(?:all|none|both|neither|either|any)(?: of)?(?: the)? (?:above|below|these|them|others?|options)"
    rf"|(?:first|second|last|other|previous|following) (?:option|answer|choice)s?|{_BY_LETTER})\b",
    re.IGNORECASE,
)
"""An option that names others, by place or letter."""


def _orders(line: GroupLine, wording: Wording) -> Iterator[Reworded]:
    if len(line.options) < 2:
        raise _LeftOutError("it has no options")
    if any(map(_OF_OTHERS.search, line.options)) or _NAMES_OPTIONS.search(question_of(line)):
        raise _LeftOutError("its question or an option names options by place or letter")
    spans = _shown_options(line)
    if not spans:
        raise _LeftOutError("its prompt does not list its options one below the other or by letter")
    places = tuple(range(len(line.options)))
    orders = dict.fromkeys(places[number:] + places[:number] for number in places[1:])
    name = "rotated"
    if wording.orders is not None:
        name, random = "order", Random(f"options {wording.seed} {line.group} {line.variant}")
        orders = {}
        while len(orders) < min(wording.orders, factorial(len(places)) - 1):
            drawn = tuple(random.sample(places, len(places)))
            if drawn != places:
                orders[drawn] = None
    for number, order in enumerate(orders, 1):
        options = tuple(line.options[place] for place in order)
        prompt = line.prompt
        for (_, start, end), option in reversed(list(zip(spans, options, strict=True))):
            prompt = prompt[:start] + option.strip() + prompt[end:]
        made = replace(by_text(line), options=options, prompt=prompt)
        try:
            check_options(made, "", Path())
        except UserError:
            raise _LeftOutError("its options are letters themselves") from None
        yield f"{name}-{number}", f"options {name} {number}", made


def by_text(line: GroupLine) -> GroupLine:
    """The line with the texts of its right options in place of their letters."""
    places = [(one, position_of_letter(one.strip(), line.options)) for one in line.references]
    texts = (one if place is None else line.options[place] for one, place in places)
    return replace(line, references=tuple(dict.fromkeys(texts)))


def _shown_options(line: GroupLine) -> list[tuple[int, int, int]]:
    """Where a prompt lists the options: starts of marks, starts and ends of texts; [] if it does not."""
    spans = []
    at = line.prompt.find(line.question) + len(line.question) if line.question else 0
    for letter, option in zip(LETTERS, line.options, strict=False):
        mark = rf"(?:(?<!\S)[(\[]?{letter}[.):\]]+[ \t]*|^[ \t]*(?:[-*•][ \t]*)?)"
        end = r"(?=\s*(?:$|[,;]|[(\[]?[A-Z][.):\]]))"
        found = re.compile(f"{mark}({re.escape(option.strip())}){end}", re.MULTILINE).search(line.prompt, at)
        if found is None:
            return []
        spans.append((found.start(), *found.span(1)))
        at = found.end()
    return spans if len(spans) == len(line.options) else []


KINDS: Mapping[str, Callable[[GroupLine, Wording], Iterator[Reworded]]] = {
    "typos": _typos,
    "case": _cases,
    "templates": _templates,
    "negation": _negations,
    "options": _orders,
}


# -- Languages: a model translates the question; options stay, so that answers can be compared

SAMPLING: Mapping[str, Any] = {"temperature": 1, "max_tokens": 1024}
"""An unusable reply needs another one: at temperature 0 it would be the same."""

TRANSLATE = """Translate this question into {language}. Keep names, numbers and texts in quotes as they are. \
Reply with the translation only, in one line.

{question}"""

ANSWER_IN = "\nAnswer in {language}."


class Rewordings(Struct, frozen=True):
    """Each line with its other wordings; what to translate, with the language; why others are left out."""

    lines: tuple[tuple[GroupLine, Sequence[GroupLine]], ...]
    asked: Mapping[str, tuple[GroupLine, str]]
    left_out: Mapping[str, str]


def reword_groups(file: Path, wording: Wording, limit: int | None = None) -> Rewordings:
    """Reword the lines of a groups file; of a group that has an original alone, a copy that is sent."""
    done: list[tuple[GroupLine, Sequence[GroupLine]]] = []
    asked: dict[str, tuple[GroupLine, str]] = {}
    left_out: dict[str, str] = {}
    for group, lines in list(by_group(read_groups(file)).items())[:limit]:
        images = [name for line in lines for name in line.images]
        digest = file_digest_or_error(file.parent / images[0]) if images else group
        cluster = lines[0].cluster or (digest if isinstance(digest, str) else "")
        sent = [line for line in lines if line.variant != ORIGINAL]
        copies = [] if sent else [replace(line, variant=ASKED, response=UNSET) for line in lines]
        for line in (replace(line, cluster=cluster) for line in [*lines, *copies]):
            if line.variant == ORIGINAL:
                done.append((line, ()))
                continue
            line = replace(line, labels={"wording": ASKED, **line.labels})
            line = by_text(line) if "options" in wording.kinds else line
            made, reasons = reword(line, wording)
            done.append((line, made))
            if reasons.get("language") is None:
                asked |= {f"{group} {line.variant} {name}": (line, name) for name in wording.languages}
            left_out |= {f"{group} {line.variant} {what}": reason for what, reason in reasons.items()}
    return Rewordings(tuple(done), asked, left_out)


def translation_requests(
    asked: Mapping[str, tuple[GroupLine, str]], client: ModelClient
) -> ReplyRequests[str]:
    def ask(name: str, draw: int) -> KeyedRequest:
        line, language = asked[name]
        text = fill(TRANSLATE, language=language, question=question_of(line))
        return client.keyed((user(text),), draw)

    def read(name: str, answer: Answer) -> tuple[str | None, str]:
        return read_translation(answer.text, asked[name][0], cut=answer.truncated)

    return ReplyRequests(list(asked), ask, read)


def read_translation(reply: str, line: GroupLine, *, cut: bool = False) -> tuple[str | None, str]:
    question, text = question_of(line), reply.strip()
    if not text or cut or "\n" in text:
        return None, "the reply is not one line"
    if words(text) == words(question):
        return None, "the reply is the question itself"
    kept = (question[start:end].strip('"“”`') for start, end in kept_spans(line))
    lost = next((one for one in kept if one not in text), "")
    return (None, f"the translation lost '{lost}'") if lost else (text, "")


def with_translations(
    made: Rewordings, results: Mapping[str, ReplyResult[str]], answer_in: str
) -> Iterator[GroupLine]:
    """All lines, those of a group together."""
    translated: dict[tuple[str, str], list[GroupLine]] = {}
    for name, result in results.items():
        line, language = made.asked[name]
        if result.value:
            one = with_question(line, result.value)
            if not line.options:
                one = replace(one, prompt=one.prompt + fill(ANSWER_IN, language=answer_in))
            facts = {**line.facts, "reply": result.key, "draw": result.draw}
            one = replace(_named(line, one, language, f"in {language}"), facts=facts)
            translated.setdefault((line.group, line.variant), []).append(one)
    for line, others in made.lines:
        yield from (line, *others, *translated.get((line.group, line.variant), ()))


def write_rewordings(lines: Sequence[GroupLine], file: Path, out: Path) -> None:
    """Write the lines, with the paths of their images from the folder of the new file."""
    folder = Path(os.path.relpath(file.parent.resolve(), out.parent.resolve()))
    if folder.parts[:1] == ("..",) and any(line.images for line in lines):
        raise UserError(
            "is not above the images of the groups file",
            file=out,
            expected=f"a file in {file.parent}, or in a folder above it",
        )
    write_groups(
        (replace(line, images=tuple((folder / name).as_posix() for name in line.images)) for line in lines),
        out,
    )
