"""The option that a response chooses. It reads what the response states; it never guesses.

The first rank that finds a statement decides, and two statements of the same rank that differ are no choice:

1. `text`: the response is an option's text: exactly, then in any case, then without punctuation and articles.
2. `container`: what `\\boxed{}`, `<answer>` or a JSON field named answer holds.
3. `statement`: what follows a label ('Answer:', 'the answer is', '答案', '정답'), is called correct, or is
   marked in a list or a table of the options (`option_lists`).
4. `line`: a line that is only a letter or an option.
5. `leading letter`: a letter with its sign at the start of a line ('B) a drum').
6. `conclusion`: what a conclusion or a sentence names at once ('so it is a drum').
7. `letter`: the only letter that is named.
8. `option`: the only option whose text is held, or whose words are in another form; of yes and no, the
   stated word (`yes_no`); else the option that is named by its place ('the second one').

A denied or excluded letter or text is not chosen, and the word 'no' within an option denies nothing. A list
of the options is no statement. A later statement replaces an earlier one only where the response revises it
('wait'), and what is called the answer outranks what led to it. `A` and `I` before a word are words. Letters
in option texts, URLs and quoted questions are none.
Labels that options carry themselves (ア, 甲, III) are read as the letters of their places (`labels`).
What a response only mentions (7 and 8) does not count if it was cut off or asks back.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import lru_cache
from typing import Literal, NamedTuple

from sightline.scoring import option_lists, yes_no
from sightline.scoring.answer_words import (
    EDGE,
    FILL,
    LAST,
    LETTER,
    TEXT,
    Languages,
    label_pattern,
    word_pattern,
    words_of,
)
from sightline.scoring.labels import lettered
from sightline.scoring.letters import letter_at
from sightline.scoring.markup import contents_of, own_turn, plain_text
from sightline.scoring.mentions import (
    ALONE,
    LABEL,
    LETTER_SIGN,
    MENTION,
    TEXT_SIGN,
    Marked,
    Mention,
    Options,
    asks_for_the_wrong,
    joining,
    mark,
    mentions_of,
    position_of,
    prepared_options,
    quoted,
    sentence_around,
    sentences_of,
    stands_alone,
    without_open_list,
)
from sightline.scoring.non_answers import is_refusal
from sightline.scoring.text import normalised
from sightline.scoring.word_forms import alike, content_of, inflected, tokens_of
from sightline.types import Outcome

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
    return _read_once(response, tuple(options), question)


@lru_cache(maxsize=1024)
def _read_once(response: str, options: tuple[str, ...], question: str) -> Choice:
    """A judge, the comparison of answers and several metrics read one response."""
    response, texts = lettered(own_turn(response), options)
    response = response if any("=" in text for text in texts) else _LEFT_SIDE.sub(" ", response)
    read = _read_choice(response, texts, question)
    if read.rule == "none" and response.strip():
        return _read_otherwise(response, prepared_options(texts), question) or read
    return read


_TERM = r"\d[\d.,]*(?:\s?(?:[^\W\d_]{1,4}\b|[%°€$]))?"
_LEFT_SIDE = re.compile(rf"(?<![\w.])[$€£]?{_TERM}(?:\s*[-+−×x*/÷·]\s*[$€£]?{_TERM})+\s*=\s*(?=[$€£-]?\d)")
"""The terms of a calculation, of which a response states the result only."""


def chosen_letter(response: str, options: Sequence[str], question: str = "") -> str | None:
    """The letter of the option that a response chooses; None if it chooses none, or one after Z.

    >>> fruits = ["a red apple", "a green pear"]
    >>> chosen_letter("b)", fruits), chosen_letter("A green pear.", fruits), chosen_letter("Pears?", fruits)
    ('B', 'B', None)
    """
    return letter_at(read_choice(response, options, question).position)


def chosen_option(outcome: Outcome) -> str | None:
    """The text of the option that an answer chooses; None if it chooses none.

    It is normalised, so that answers of other probes are compared with it, unless two options of the question
    would then be the same.
    """
    position = read_choice(outcome.response, outcome.options, outcome.question).position
    return None if position is None else _distinct(outcome.options)[position]


@lru_cache(maxsize=1024)
def _distinct(options: tuple[str, ...]) -> tuple[str, ...]:
    texts = [normalised(option) for option in options]
    return tuple(
        text if texts.count(text) == 1 else option.strip()
        for text, option in zip(texts, options, strict=True)
    )


# -- The ranks


def _read_choice(response: str, texts: tuple[str, ...], question: str) -> Choice:
    if not response.strip() or not texts:
        return Choice(None, "none")
    options = prepared_options(texts)
    if same := options.written(response.strip()):
        return _decided(same, "text", response)
    if letter := _bare_letter(response.strip(" \t\n.()[]:*_\"'`{}") if len(response) < 20 else "", options):
        return letter
    if same := options.whole(response):
        led = _LED.match(response)
        letters = [options.letters[led[1]]] if led and led[1] in options.letters else []
        return _decided([*same, *letters], "text", response)
    if letter := _bare_letter(plain_text(response).strip(" \t\n.()[]:。「」【】『』\"'<>{}《》"), options):
        return letter
    if len(set(listed := re.findall(r"[A-Z]", response))) > 1 and _ONLY_LETTERS.fullmatch(response):
        return Choice(None, "several", ", ".join(listed))
    if contents := list(contents_of(response)):
        return _from_container(contents, options, question)
    return _from_text(response, options, question)


_LED = re.compile(r"[\s*_(\[]*([A-Z])[)\].:]\s*\S")
"""The letter before a text: '(A) No' contradicts itself where No is B."""
_ONLY_LETTERS = re.compile(r"\W*[A-Z](?:[\s,/;&]+[A-Z])+\W*")


def _bare_letter(text: str, options: Options) -> Choice | None:
    position = options.letters.get(text.upper()) if len(text) <= 2 else None
    if position is None and len(text) > 2 and len(set(text)) == 1:
        position = options.letters.get(text[0].upper())  # a model that repeats itself
    if position is None and len(text) == 1 and text in "ynjYNJ":
        # The initial of yes or no, where it is no letter of an option.
        position = next((p for p, said in options.polar.items() if said is (text in "yjYJ")), None)
    return None if position is None else Choice(position, "line", text)


def _read_otherwise(response: str, options: Options, question: str) -> Choice | None:
    """What a response states that names no option: a side of yes and no, or a place in the list."""
    said = yes_no.restated(response, options, question) if question else None
    if said := said or yes_no.assented(response, options, question):
        return _of_side(said, options)
    if placed := option_lists.placed_option(response, options, question):
        return _decided(placed.positions, "option", placed.words)
    return None


def _of_side(said: yes_no.Said, options: Options) -> Choice:
    if said.yes is None:
        return Choice(None, "several", said.words)
    return Choice(next(p for p, yes in options.sides.items() if yes is said.yes), "option", said.words)


def _decided(positions: Sequence[int], rule: Rule, words: str) -> Choice:
    if len(set(positions)) == 1:
        return Choice(positions[0], rule, quoted(words))
    return Choice(None, "several", quoted(words))


def _from_container(contents: Sequence[str], options: Options, question: str) -> Choice:
    read = [(text, _contained(text, options, question)) for text in contents]
    positions = [position for _, position in read if position is not None]
    if not positions or read[-1][1] is None:
        return Choice(None, "none", quoted(contents[-1]))
    return _decided(
        positions, "container", " | ".join(text for text, position in read if position is not None)
    )


def _contained(text: str, options: Options, question: str) -> int | None:
    read = read_choice(text, options.raw, question)
    led = re.match(r"\s*[(\[]([A-Z])[)\]]", plain_text(text)) if read.rule in ("none", "option") else None
    return options.letters.get(led[1]) if led else read.position  # '\\boxed{\\textbf{(A)} 5\\sqrt2}'


class _Statement(NamedTuple):
    """A position, -1 for several; where it stands in the text; the words that state it."""

    position: int
    start: int
    words: str
    is_answer: bool = False
    """Whether a noun calls it the answer ('the answer is', not 'I count')."""


def _from_text(response: str, options: Options, question: str) -> Choice:
    marked = without_open_list(mark(response, options))
    negated = bool(question) and len(options.texts) > 2 and asks_for_the_wrong(question)
    if options.polar and (said := yes_no.worded(response, marked)):
        return _of_side(said, options)
    held = [
        (mention, sentence)
        for sentence in sentences_of(marked.text)
        for mention in mentions_of(sentence, marked.languages)
    ]
    denied = {
        mention.position: marked.text.rindex(sentence) + len(sentence)
        for mention, sentence in held
        if mention.denied
    }
    undecided = _is_undecided(marked, options, question)
    for rule, statements in _ranks(response, marked, options, question, held, negated=negated):
        if rule == "conclusion" and undecided:
            break
        if rule == "conclusion":  # 'It shows the drum, so the drum is out.'
            left = [one for one in statements if one.position not in denied]
            statements = left or [one for one in statements if one.start > denied[one.position]]
        if statements:
            return _the_one(statements, rule, marked, options)
    # What a response says is there is not what a negated question asks for.
    declined = is_refusal(response) and not any(is_refusal(options.texts[one.position]) for one, _ in held)
    if negated or declined or undecided:
        return Choice(None, "none")
    return _only_mentioned(marked, held, options, question)


def _is_undecided(marked: Marked, options: Options, question: str) -> bool:
    """Whether a response says that it cannot be told, or that both are equal, and goes back on neither."""
    languages = marked.languages
    equal = rf"{{pair}}[^,.;:!?，。；、{LETTER}-{LAST}]*?{{equal}}"
    form = word_pattern(
        r"(?P<unable>{unable}(?!,?\s+(?:that|dass|que|что)\b))"
        + (f"|{equal}" if _COMPARES.search(question) else ""),
        languages,
    )
    found = max(form.finditer(marked.text), key=re.Match.end, default=None)
    if found is None or any(form.search(text) or is_refusal(text) for text in options.texts):
        return False
    rest = marked.text[found.end() :]
    turn = word_pattern("{turns}|{revises}|{concludes}|{choosing}|{likely}|지만", languages).search(rest)
    if turn and (found["unable"] is None or MENTION.search(rest, turn.start())):
        return False
    seems = word_pattern("{seems}", languages)
    return found["unable"] is not None or not any(
        MENTION.search(clause) and not seems.search(clause) for clause in re.split(r"[,.;:，。；、]", rest)
    )


_COMPARATIVE = (
    r"(?:more|less|fewer|plus|moins|más|menos|mehr|weniger|более|менее)\s+[^\W\d_]+"
    r"|[^\W\d_]{2,}er|mayor|menor|mejor|peor|meilleure?|pire|[^\W\d_]+(?:ее|ше|же|че)"
)
_COMPARES = re.compile(
    rf"\b(?:is|are|was|were|has|have|looks?|ist|sind|war|est|sont|a|es|son|tiene)\s+(?:{_COMPARATIVE})\b"
    rf"|\b(?:{_COMPARATIVE})\W*$|[^\W\d_](?:ее|ше)\b|[更比]|どちら|より|더|보다",
    re.IGNORECASE,
)
"""A question that compares."""


_Held = Sequence[tuple[Mention, str]]
"""The mentions of a response, each with its sentence."""


def _ranks(
    response: str, marked: Marked, options: Options, question: str, held: _Held, *, negated: bool
) -> Iterator[tuple[Rule, list[_Statement]]]:
    """The statements of each rank, the first rank first; a rank that is not needed is not read."""
    yield "statement", _labelled(marked, options, negated)
    if negated:
        yield "statement", _called_wrong(marked, held)
    listed = None if negated else option_lists.marked_option(response, options, question)
    of_list = [_Statement(position, 0, listed.words) for position in listed.positions] if listed else []
    if listed and not listed.bold:
        yield "statement", of_list
    if listed is None or of_list:
        if not marked.is_open:
            yield "line", _lines(marked)
        yield "leading letter", _leading(marked)
    if not marked.is_open:
        yield "conclusion", _concluded(marked) or _closing(marked)
        yield "conclusion", _compared(marked, question)
        yield "conclusion", _said(marked) or _first_sentence(marked, options)
        if not negated:
            yield "conclusion", _of_the_asked(marked, question)
            yield "conclusion", _restated(marked, options, question)
    yield "line", of_list


def _the_one(statements: Sequence[_Statement], rule: Rule, marked: Marked, options: Options) -> Choice:
    """The statement that counts: the only one, or the last one if the response revises the others."""
    last = statements[-1]
    words = quoted(_readable(last.words, options))
    others = [
        one
        for one in statements
        if one.position not in ((last.position, -1) if last.position >= 0 else (-1,))
    ]
    revises = word_pattern("{revises}", marked.languages)
    if last.position >= 0:
        # After a label, only a revision that names the other option at once replaces what was stated.
        near = 25 if rule == "statement" else 200
        later = [
            found
            for found in MENTION.finditer(marked.text, last.start + 1)
            if position_of(found[0]) != last.position
            and revises.search(marked.text, max(last.start, found.start() - near), found.start())
        ]
        if later:
            sentence, mentions, at = _mention_at(marked, later[-1].start())
            if not (mention := mentions[at]).denied:
                return Choice(mention.position, rule, quoted(_readable(sentence, options)))
    if not others and last.position >= 0:
        return Choice(last.position, rule, words)
    if others and last.position >= 0 and revises.search(marked.text, others[-1].start + 1, last.start + 40):
        return Choice(last.position, rule, words)
    shown = dict.fromkeys(quoted(_readable(statement.words, options)) for statement in statements)
    return Choice(None, "several", ", ".join(shown))


def _readable(text: str, options: Options) -> str:
    return MENTION.sub(lambda found: _name(position_of(found[0]), options, found[0] < TEXT), text)


def _name(position: int, options: Options, is_letter: bool) -> str:
    if not is_letter:
        return options.texts[position]
    return next((letter for letter, place in options.letters.items() if place == position), "")


def _mention_at(marked: Marked, place: int) -> tuple[str, Sequence[Mention], int]:
    """The sentence around a mention of the text, the mentions of this sentence, and which of them it is."""
    sentence, start = sentence_around(marked.text, place)
    mentions = mentions_of(sentence, marked.languages)
    return sentence, mentions, next(i for i, one in enumerate(mentions) if one.start == place - start)


_ADJOINING = (
    r"[\s\"'“”「」«(\[*:：,，、=→]*(?:(?:the|an?|option|la|le|l'|el|der|die|das|ein|eine|un|une|los|las|les)\s+)*"
    r"(?:[A-Za-z]\s*=\s*)?(?:[^\W\d_]+\s+(?=[«\"“「『]))?[«\"“「『]?"
)


def _labelled(marked: Marked, options: Options, negated: bool) -> list[_Statement]:
    """What labels state, and what is called correct."""
    text, languages = marked.text, marked.languages
    statements = []
    for label in label_pattern(languages).finditer(text):
        sentence, start = sentence_around(text, label.start())
        if len(_ARROW.findall(sentence)) > 1 and _ARROW.match(label[0]):
            continue  # a path: 'A → B → C'
        if "would" in label[0] and re.search(r"(?i)\bif\b", sentence[: label.start() - start]):
            continue
        denied = r"{denied_before}" if negated else r"{denied_before}|{wrong}"
        if word_pattern(
            rf"(?:{denied}|\b(?:whether|if|ob|each|every|chaque|cada|jede[nrs]?|кажд\w+)\b|[每各]个?|각)\s*(?:{{articles}}\s*)?$",
            languages,
        ).search(sentence[: label.start() - start]):
            continue  # 'No se trata de B', 'Wrong answer: B'
        turned = re.split(r"[,;，；]|\b(?:but|aber|mais|pero|но)\b", sentence[: label.start() - start])[-1]
        if word_pattern("{tentative}", languages).search(turned):
            continue
        if (position := _after_label(text[label.end() :], label[0], options, languages)) is not None:
            tail = re.match(r"\s*[^\n]*", text[label.end() :])
            words = label[0] + (tail[0] if tail else "")
            near = _FAR.match(text, label.end()) is None
            answers = (label["noun"] is not None and near) or _POINTS_AT_LETTER.match(
                text, label.start()
            ) is not None
            statements.append(_Statement(position, label.start(), words, answers))
    called = word_pattern(
        r"{M}(?:\s*\(\s*{M}\s*\))?(?P<close>[\s)\]\"'»”」.:：\-–—,]*)(?:{options}\s*)?(?:(?:is|are)\s+)?(?:{right}|[✓✔✅☑])",
        languages,
    )
    for found in called.finditer(text):
        sentence, mentions, at = _mention_at(marked, found.start())
        ends = "\n" in found["close"] or ("." in found["close"] and found[0].casefold().endswith("it is"))
        if mentions[at].denied or ends or negated:
            continue
        previous = mentions[at - 1] if at else mentions[at]
        between = sentence[previous.start + 1 : mentions[at].start]
        if previous.position != mentions[at].position and joining(languages).fullmatch(between):
            continue  # 'A and B are correct', but not 'of A and B, B is better'
        statements.append(_Statement(mentions[at].position, found.start(), found[0]))
    ticked = [one for one in statements if one.words[-1] in "✓✔✅☑"]
    if len({one.position for one in ticked}) > 1:
        statements = [one for one in statements if one not in ticked]  # steps of a calculation
    # 'I count two here and one there. The answer is C': what is called the answer outranks what led to it.
    answer = max((one.start for one in statements if one.is_answer), default=-1)
    statements = [one for one in statements if one.is_answer or one.start > answer]
    return sorted(statements, key=lambda statement: statement.start)


_FAR = re.compile(rf"[^\n{LETTER}-{LAST}]{{40}}")
"""What parts an answer from its label: 'The solution is made of the salt and ..., or 2 M'."""
_ARROW = re.compile("[→⇒]|=>")
_POINTS_AT_LETTER = re.compile(rf"(?:[→⇒]|=>){FILL}{LETTER_SIGN}\W*$")
"""An arrow to a letter at the end: 'So the total is 5 → D'."""


def _called_wrong(marked: Marked, held: _Held) -> list[_Statement]:
    """The only option that is called wrong, for a question that asks for it."""
    if word_pattern("{revises}", marked.languages).search(marked.text):
        return []
    found = [_Statement(mention.position, 0, sentence) for mention, sentence in held if mention.denied]
    return found if len({statement.position for statement in found}) == 1 else []


def _after_label(tail: str, label: str, options: Options, languages: Languages) -> int | None:
    """The option that follows a label; -1 for several, None for none."""
    opening = re.match(FILL, tail)
    rest = tail[opening.end() :] if opening else tail
    if opening and "\n" in opening[0] and _LISTS.search(rest):
        return None  # 'Each option:', and then a list of them
    first = re.match(rf"{LABEL}(?![{EDGE}]|['’][A-Za-z]|[-/.][A-Za-z])", rest)
    place = options.letters.get(first[1].upper()) if first else None
    if place is None and (beyond := _BEYOND.match(rest)) and beyond[1] not in options.texts:
        return -1  # 'The answer is (E)' of four options
    if first and place is not None and stands_alone(first[1], rest[first.end() :], languages):
        rest = chr(ord(LETTER) + place) + rest[first.end() :]
    sentence = (sentences_of(rest) or [""])[0]
    if not MENTION.search(sentence):
        same = options.whole(sentence.rstrip("\n"))
        return same[0] if len(same) == 1 else None
    shown = f"{' '.join(label.split())} {sentence}"
    stated = [mention for mention in mentions_of(shown, languages) if not mention.denied]
    if not stated:
        return None
    chosen = stated[0]
    other = next((mention for mention in stated if mention.position != chosen.position), None)
    if other is not None and _is_joined(shown, chosen, other, languages):
        return -1
    if word_pattern(r"(?<![最很]){either_or}\s*(?:\S+\s+){0,2}$", languages).search(shown[: chosen.start]):
        return -1
    return chosen.position


_BEYOND = re.compile(r"([B-HJ-Z])(?:[)\]】]+(?!\w)|[.。,，]?\s*(?:\n|$))")
_LISTS = re.compile(rf"\n\s*(?:[-•+*]\s+)?[({{]?(?:{LETTER_SIGN}|[B-Z](?=[.):]))")


def _is_joined(sentence: str, first: Mention, other: Mention, languages: Languages) -> bool:
    """Whether two mentions are named together ('B or C'), or contradict each other ('B: a kite')."""
    own = chr(ord(TEXT if first.is_letter else LETTER) + first.position)
    between, behind = sentence[first.start + 1 : other.start], sentence[other.start + 1 :]
    between = re.sub(rf"^[\s)\]\"'.:：]*{own}", "", between)  # 'A. a kite or B. a drum'
    if re.fullmatch(r"[\s)\]\"'.:：\-–—]*", between) and first.is_letter is not other.is_letter:
        return True
    joint = joining(languages).fullmatch(between)
    if joint is None or not (between.strip(" \"'()[]") or first.is_letter):
        return False
    # 'B, A is too bright': a clause follows the comma.
    goes_on = word_pattern(r"^[\s)\"']*(?:{carries}|{follows})", languages).match(behind)
    joins = word_pattern(r"^[\s)\"']*[,，]?\s*{either}", languages).match(behind)
    return bool(joins) or not (between.strip(" \"'()[]") in ("", ",", "，") and goes_on)


def _lines(marked: Marked) -> list[_Statement]:
    """Lines that are only a letter or a text."""
    statements = []
    blank = word_pattern(r"\W*(?:{options}\s*)?[\W_]*", marked.languages)
    for found in re.finditer(r"[^\n]+", marked.text):
        signs = MENTION.findall(found[0])
        if (
            not signs
            or found[0].rstrip().endswith((":", "?"))
            or not blank.fullmatch(MENTION.sub("", found[0]))
        ):
            continue
        positions = {position_of(sign) for sign in signs}
        whole = len(positions) == 1 and len(signs) <= 2
        if whole or len(positions) > 1:
            statements.append(_Statement(positions.pop() if whole else -1, found.start(), found[0]))
    return statements


def _leading(marked: Marked) -> list[_Statement]:
    """Letters with their sign at the start of a line."""
    form = (
        rf"(?m:^)\s*(?:[-•+]\s+)?(?:{{options}}\s*)?({LETTER_SIGN})"
        rf"(?:\s*[.):、,，\-–—]|\s+(?={TEXT_SIGN})|\s*\n|(?=\s+(?:because|since|as|weil|car|porque|потому)\b))"
    )
    statements = []
    for found in word_pattern(form, marked.languages).finditer(marked.text):
        line = marked.text[found.start(1) :].split("\n", 1)[0]
        mentions = mentions_of((sentences_of(line) or [line])[0], marked.languages)
        verdict = word_pattern(r"{denied_after}[^,.。\s]{0,6}[\s.。]*$", marked.languages).search(line)
        if not mentions or mentions[0].denied or (verdict and len(set(MENTION.findall(line))) <= 2):
            continue
        first = mentions[0]
        other = next((m for m in mentions[1:] if not m.denied and m.position != first.position), None)
        joined = other is not None and _is_joined(line, first, other, marked.languages)
        statements.append(_Statement(-1 if joined else first.position, found.start(1), line))
    # Lines that weigh one option each state none.
    return statements if len({one.position for one in statements}) < 3 else []


def _concluded(marked: Marked) -> list[_Statement]:
    """What a conclusion names at once: 'so this has to be B'."""
    named = rf"(?:[^\s,.;。，{LETTER}-{LAST}]+\s+){{0,5}}{{links}}"
    joined = _adjoining(marked, rf"{{concludes}}[\s,，:：]*(?:{{says}}|{named}){_ADJOINING}({{M}})")
    bare = (
        rf"{{concludes}}[\s,，:：]*{_ADJOINING}({{M}})(?=[\s)\"'»”」]*(?:[.!,;:。，！)\n]|$|because|since))"
    )
    return sorted([*joined, *_adjoining(marked, bare)], key=lambda statement: statement.start)


def _closing(marked: Marked) -> list[_Statement]:
    """A letter or a text alone at the end, after a colon or a dash: 'The trunk tells: B.'"""
    start = marked.text.rstrip().rfind("\n") + 1
    line = marked.text[start:]
    found = re.search(
        rf"(?:[:：–—=→⇒]\s*[\"'“(\[«]*([{LETTER}-{LAST}])|[.。!！]\s+({LETTER_SIGN}))\W*$", line
    )
    if found is None or len(set(MENTION.findall(line[-3:]))) > 1 or len(_ARROW.findall(line)) > 1:
        return []
    if word_pattern("{tentative}", marked.languages).search(line):
        return []  # 'Less likely: A.'
    at = found.start(1 if found[1] else 2)
    return [_Statement(position_of(line[at]), start + at, line)]


def _said(marked: Marked) -> list[_Statement]:
    """What a sentence calls the thing asked for: 'it is a drum'."""
    before = _adjoining(marked, rf"(?<!if )(?<!whether ){{says}}{_ADJOINING}({{M}})")
    return [*before, *_adjoining(marked, r"({M})[\s」』\"')]*{said}")]


def _compared(marked: Marked, question: str) -> list[_Statement]:
    """The first of two options that a sentence compares: 'The right one is larger than the left.'

    -1 where the question asks for another comparison ('smaller').
    """
    if not _COMPARES.search(question):
        return []
    western = word_pattern(rf"(?P<word>{_COMPARATIVE})\s+{{than}}[\s\W]*$", marked.languages)
    denies = word_pattern("{denies}", marked.languages)
    statements = []
    for sentence in sentences_of(marked.text):
        signs = list(MENTION.finditer(sentence))
        if len(signs) != 2 or signs[0][0] == signs[1][0] or sentence.rstrip().endswith(("?", "？")):
            continue
        between, behind = sentence[signs[0].end() : signs[1].start()], sentence[signs[1].end() :]
        # '西瓜比苹果大', 'すいかはりんごより大きい'
        said = re.match(r"(?:更|要|还)?(?P<word>[\u3400-\u9fff])", behind) if between.endswith("比") else None
        said = said or re.match(r"より(?:も|ずっと)?(?P<word>[\u3400-\u9fff])", behind)
        if found := western.search(between) or said:
            same = all(
                word in question or any(alike(word.casefold(), one) for one in tokens_of(question))
                for word in found["word"].split()
            )
            stated = same and not denies.search(sentence)
            position = position_of(signs[0][0]) if stated else -1
            statements.append(_Statement(position, marked.text.index(sentence), sentence))
    return statements


def _restated(marked: Marked, options: Options, question: str) -> list[_Statement]:
    """What the clause names that repeats the question most: 'The largest is housing, followed by food.'

    No other clause that names an option may repeat as much. The thing asked for ('colour') need not be named.
    """
    asked = content_of(_ASKED_KIND.sub(" ", question))
    unsure = word_pattern("{unsure}|{tentative}|{either_or}", marked.languages)
    held: list[tuple[set[str], set[int], str, str]] = []
    for sentence in sentences_of(marked.text) if asked else []:
        if not MENTION.search(sentence) or sentence.rstrip().endswith(("?", "？")) or _UNREAL.match(sentence):
            continue
        denied = {mention.position for mention in mentions_of(sentence, marked.languages) if mention.denied}
        for clause in word_pattern(_CLAUSES, marked.languages).split(sentence):
            named = {position_of(sign) for sign in MENTION.findall(clause)}
            if named:
                stated = content_of(clause)
                shared = {word for word in asked if any(alike(word, other) for other in stated)}
                held.append((shared, named - denied, clause, sentence))
    if not held:
        return []
    at = max(range(len(held)), key=lambda i: len(held[i][0]))
    shared, named, clause, sentence = held[at]
    more = 1 if _SPACED.search(question) else 2
    each = _SIDES.search(clause) and not _SIDES.search(question)
    rival = any(
        other - named and (len(words) > len(shared) - more or (each and _is_other_side(text, clause)))
        for words, other, text, _ in held
    )
    if rival or len(named) != 1 or len(shared) < 0.5 * len(asked) or unsure.search(clause):
        return []
    start = marked.text.index(sentence)
    turn = word_pattern("{turns}|{revises}|지만", marked.languages).search(
        marked.text, start + sentence.index(clause)
    )
    if any(other - named for _, other, _, _ in held[at + 1 :]) and turn:
        return []  # 'The coat looks blue, but it is green'
    if set(inflected(MENTION.sub(" ", sentence), options, question, marked.languages)) - named:
        return []
    return [_Statement(named.pop(), start, sentence)]


def _of_the_asked(marked: Marked, question: str) -> list[_Statement]:
    """What is said to be the thing asked for, in words of the question: 'The smallest portion is food.'"""
    if len(asked := content_of(question)) < 2:
        return []
    form = rf"(?:^|[\s,，:：])((?:[^\s,.;:，。；：{LETTER}-{LAST}]+\s+){{1,7}}?){{links}}{_ADJOINING}({{M}})"
    return [
        statement
        for found, statement in _adjoining_matches(marked, form)
        if len(words := content_of(found[1]) - words_of("articles")) > 1
        and all(any(alike(word, one) for one in asked) for word in words)
    ]


def _is_other_side(text: str, clause: str) -> bool:
    """Whether a clause only says the same of another side: 'a book in the other'."""
    said = content_of(MENTION.sub(" ", _SIDES.sub(" ", text))) - content_of(clause)
    # In Chinese and Japanese, a measure word or a particle may differ.
    return _SIDES.search(text) is not None and len(said) <= (0 if _SPACED.search(clause) else 1)


_SIDES = re.compile(
    r"(?i)\b(?:left|right|in one|on one|other|link\w+|recht\w+|andere\w*|gauche|droite|autre|izquierda"
    r"|derecha|otra|лев\w+|прав\w+|друг\w+)\b|[左右]|왼|오른"
)
"""Two sides that may each have an option: 'a cup in the left hand, a book in the right'."""
_ASKED_KIND = re.compile(
    r"(?i)\b(?:what|which|welche[rsnm]?|quel(?:le)?s?|qué|cuál|как(?:ой|ая|ое|ие|ого|ую|им|ом))"
    r"\s+(?:is |are )?\w+"
)
"""The kind of thing that a question asks for: 'which colour'."""
_SPACED = re.compile(r"[^\W\d_]\s+[^\W\d_]")
_CLAUSES = r"[,，](?!\d)|[;；:：、()（）–—]|\s-\s|{turns}|\bfollowed by\b"


def _first_sentence(marked: Marked, options: Options) -> list[_Statement]:
    """The option that the first sentence is, whole or in part: 'Nonpolar covalent. The atoms share ...'"""
    first = (sentences_of(marked.text) or [""])[0]
    if first.rstrip().endswith(("?", ":", "？", "：")):
        return []
    same = options.whole(first)
    return [_Statement(same[0], 0, first)] if len(same) == 1 else []


def _adjoining(marked: Marked, form: str) -> list[_Statement]:
    """The options that a form names in its last group, unless they are denied or asked; -1 for several."""
    return [statement for _, statement in _adjoining_matches(marked, form)]


def _adjoining_matches(marked: Marked, form: str) -> list[tuple[re.Match[str], _Statement]]:
    statements, languages = [], marked.languages
    for found in word_pattern(form, languages).finditer(marked.text):
        place = found.start(found.re.groups)
        sentence, mentions, at = _mention_at(marked, place)
        mention = mentions[at]
        if mention.denied or sentence.rstrip().endswith(("?", "？")):
            continue
        beside = [
            other
            for other in (*mentions[max(at - 1, 0) : at], *mentions[at + 1 : at + 2])
            if not other.denied
        ]
        joined = any(
            other.position != mention.position
            and joining(languages).fullmatch(
                sentence[min(other.start, mention.start) + 1 : max(other.start, mention.start)]
            )
            for other in beside
        ) or is_hedged(sentence, mention, languages)
        statements.append((found, _Statement(-1 if joined else mention.position, place, sentence)))
    return statements


def is_hedged(sentence: str, mention: Mention, languages: Languages) -> bool:
    """Whether a mention is one of several that are possible: 'either B or ...', 'B or maybe ...'."""
    before = (
        rf"(?<![最很]){{either_or}}\s*(?:\S+\s+){{0,3}}$|(?<![{EDGE}])[A-Z]\s+{{either}}\s+$"
        r"|\b(?:or|oder|ou|или)\s+(?:\S+\s+){0,2}$"
    )
    if word_pattern(before, languages).search(sentence[: mention.start]):
        return True
    behind = sentence[mention.start + 1 :]
    return (
        word_pattern(r"^[\s)\"',]*(?:(?:or|oder|ou|или|либо)\b|また|或|또는|{possibly})", languages).match(
            behind
        )
        is not None
    )


_UNREAL = re.compile(r"\W*if\b.*\b(?:were|was|had)\b|(?!.*\bI\b).*\bwould\b.*\bif\b", re.IGNORECASE)
"""The beginning of a condition that does not hold: 'If it were round, B'."""


def _only_mentioned(marked: Marked, held: _Held, options: Options, question: str) -> Choice:
    """The only letter that is named, or else the only option whose text is held, outside of questions."""
    held = [
        (mention, sentence)
        for mention, sentence in held
        if not sentence.rstrip().endswith(("?", "？")) and not _UNREAL.match(sentence)
    ]
    denied = {mention.position for mention, _ in held if mention.denied}
    would = word_pattern("{would}", marked.languages)
    held = [one for one in held if not would.search(one[1])] or held  # 'Rickets would look like ...'
    # A letter that the question names, but not in a list of the options: 'the region marked C'.
    listed = "|".join(rf"{name}\W{{1,3}}{re.escape(options.raw[at])}" for name, at in options.letters.items())
    prose = re.sub(listed, " ", question)
    asked = {options.letters[letter] for letter in ALONE.findall(prose) if letter in options.letters}
    counts = (
        bool(options.numbers)
        and not options.are_ordinals
        and all(number.isdigit() and int(number) < 100 for number in options.numbers)
    )
    by_chance = counts and _OTHER_NUMBER.search(marked.text) is not None
    rank: Rule
    for rank, is_letter in (("letter", True), ("option", False)):
        named = [
            (mention, sentence)
            for mention, sentence in held
            if mention.is_letter is is_letter
            and mention.position not in denied
            and not (is_letter and (mention.position in asked or _EQUATION.search(sentence)))
        ]
        if not named or (rank == "option" and by_chance):
            continue
        positions = [mention.position for mention, _ in named]
        last, sentence = named[-1]
        if len(set(positions)) > 1 and not _revises_all(marked, last.position):
            shown = dict.fromkeys(_name(position, options, is_letter) for position in positions)
            return Choice(None, "several", ", ".join(shown))
        if marked.is_open or is_hedged(sentence, last, marked.languages):
            return Choice(None, "none")
        if rank == "option" and set(inflected(sentence, options, question, marked.languages)) - {
            last.position
        }:
            return Choice(None, "several", quoted(_readable(sentence, options)))
        return Choice(last.position, rank, quoted(_readable(sentence, options)))
    for sentence in sentences_of(marked.text) if not (marked.is_open or by_chance or options.polar) else []:
        if MENTION.search(sentence) or sentence.rstrip().endswith(("?", "？")):
            continue
        if len(found := inflected(sentence, options, question, marked.languages)) == 1:
            return Choice(found[0], "option", quoted(_readable(sentence, options)))
    return Choice(None, "none")


_EQUATION = re.compile(r"\\[A-Za-z]|(?<![^\W\d_])[A-Za-z]\s*=")
"""A command of LaTeX or a quantity: letters beside it are quantities, too."""
_OTHER_NUMBER = re.compile(r"(?<![^\W\d_])\d+")
"""A number that no option holds: options that are numbers are then held by chance."""


def _revises_all(marked: Marked, position: int) -> bool:
    """Whether the last mention revises the ones of other options before it."""
    signs = list(MENTION.finditer(marked.text))
    last = max((sign.start() for sign in signs if position_of(sign[0]) == position), default=0)
    others = [sign.end() for sign in signs if sign.start() < last and position_of(sign[0]) != position]
    return (
        bool(others)
        and word_pattern("{revises}", marked.languages).search(marked.text, max(others), last) is not None
    )
