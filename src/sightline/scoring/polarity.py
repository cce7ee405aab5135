"""Whether an answer to a yes/no question says yes or no, in these words or by a whole sentence."""

from __future__ import annotations

import re
from collections.abc import Sequence

from sightline.scoring.non_answers import declines
from sightline.scoring.offered_options import DETERMINERS, PLACES, offer_of
from sightline.scoring.opposites import relation
from sightline.scoring.short_texts import cached_for_short_texts
from sightline.scoring.statements import (
    AUXILIARIES,
    NAMES_NOTHING,
    NEGATIONS,
    OPEN,
    denials,
    settle,
    statements,
)
from sightline.scoring.text import FUNCTION_WORDS, is_question, lexicon, respelled, sentences, stem, words

YES, NO = "yes", "no"

_FOLLOWS = (
    r"(?=\W*$|\s*[,;:.!?)\]/\"'*–—-]|\s+(?:"
    + "|".join(sorted(FUNCTION_WORDS - lexicon("one ones more most just") | {"not", "only"}))
    + r"|\w{2,}ly)\b)"
)
"""What follows 'no' as an answer ('No, ...', 'No it is not'); before a noun it denies it ('No idea')."""

_YES_WORDS = r"(?:yes|yeah|yep|yup|yea|affirmative)"
_NO_WORDS = r"(?:no|nope|nah)"
_YES = re.compile(
    rf"\b{_YES_WORDS}\b|^\W*(?:(?:that|it|this) is )?(?:sure|certainly|definitely|absolutely|indeed"
    rf"|correct|true"
    r"|exactly|totally|obviously|clearly|naturally|for sure|without a doubt|of course|i (?:think|believe"
    r"|guess|suppose|would say) so)(?=\W*$|\s*[,;:.!])"
)
_NO = re.compile(
    rf"(?:^\W*|[,;:(/\"'*]\s*|\b(?:and|or|but|so|thus|therefore|hence|say|others?|is|be)\s+(?:\W*){{0,1}})"
    rf"\b{_NO_WORDS}\b{_FOLLOWS}"
    rf"|\b{_NO_WORDS}\b(?=\W*$|\s*[,;:.!])"
    r"|^\W*(?:(?:that|it|this) is )?(?:incorrect|false|untrue|not (?:at all|really|correct|true)|never|no way"
    r"|by no means|(?:of course|absolutely|definitely|certainly|i (?:think|guess|would say)) not)(?=\W*$"
    r"|\s*[,;:.!])"
)
_NOT_THAT = re.compile(r"\bno can do\b|\bnot (?:yes|no)\b|\bnot an? (?:\w+ )?yes[ /-](?:or[ -])?no\b")
_SAY = r"(?:say|think|argue|answer|claim|reply|respond|call it)s?"
_OTHERS = r"(?:some|others|many|most|one|people|\w+(?:ics|ers|ents|ists))\b(?: people)?"
_NOT_CLAIMED = re.compile(
    rf"\b{_OTHERS}(?: (?:would|might|may|could|will))?(?: \w+ly)? {_SAY}\W+(?:{_YES_WORDS}|{_NO_WORDS})\b"
    rf"|\b(?:{_YES_WORDS}|{_NO_WORDS})\b\W+(?:is|was) what {_OTHERS}"
    rf"|\b(?:to|for) (?:some|others|many)\W+(?:it is |this is )?(?:{_YES_WORDS}|{_NO_WORDS})\b"
    r"|\b(?:maybe|perhaps|possibly|(?:could|may|might|can)(?: also)? be)(?: a)?\W+"
    rf"(?:{_YES_WORDS}|{_NO_WORDS})\b"
)
"""A yes or no that an answer reports of others or only holds possible."""

_ANSWER_WORD = re.compile(
    r"(?:\b(?:(?:it|this|that|answer) (?:is|would be|will be|should be)\W+|answer\W*:\W*))?"
    rf"\b(?:{_YES_WORDS}\b|{_NO_WORDS}\b{_FOLLOWS})"
)
_CLAUSE = re.compile(r"[,;:()]|\bso\b|\btherefore\b|\band (?=it|he|she|they|you|i)\b")
_REASON = re.compile(
    r"\b(?:because|since|given|due to|based on|if|when|unless|although|though)\b"
    r"|\bas (?=(?:the|it|he|she|they|we|you|i|this|that|there)\b)"
)
_STILL_TO_COME = re.compile(r"\b(?:about|going|yet) to\b|\bwill\b")
_LEFT_OPEN = frozenset({"whether", "if"})
_NO_ADVERBS = lexicon("friendly unfriendly ugly lively early elderly silly deadly only")
_AGAINST_LAW = re.compile(r"\bagainst the (?:law|rules)\b")
_ALLOWS = frozenset(
    map(stem, lexicon("able allowed permitted possible safe recommended advisable okay ok fine"))
)
_ADDS_NOTHING = frozenset(
    map(
        stem,
        lexicon(
            """considered deemed regarded viewed perceived indeed quite too still yet already now about
            think believe guess suppose say seem appear evident apparent obvious"""
        ),
    )
)
_OF_THE_TASK = frozenset(
    map(stem, lexicon("answer question context information image picture photo caption"))
)


@cached_for_short_texts
def asks_yes_or_no(question: str) -> bool:
    """Whether a question asks for yes or no.

    It begins with a form of be, have, do or a modal, leading phrases aside, and offers no options.

    >>> asks_yes_or_no("From here, can we see her ear?"), asks_yes_or_no("Is it up or down?")
    (True, False)
    """
    asked = sentences(question)
    clauses = [words(clause) for clause in asked[-1].split(",")] if asked else []
    return offer_of(question) is None and any(clause[:1] and clause[0] in AUXILIARIES for clause in clauses)


def said_yes_or_no(question: str, answer: str) -> str | None:
    """Yes or no as an answer says it, by these words or by a statement that affirms or negates the question.

    Returns:
        YES or NO; OPEN if the answer declines; None if it cannot be decided.

    >>> said_yes_or_no("Is my brother's behavior legal?", "His behavior is likely illegal.")
    'no'
    >>> said_yes_or_no("Is the person in danger?", "Depends on the water.")
    '?'
    """
    worded = any(map(explicit, statements(answer)))

    def read(statement: str) -> str | None:
        if explicit(statement):
            return _weighed(question, statement)
        if declines(statement, question):
            return OPEN
        return None if worded else stated(question, statement)

    return settle(answer, read)


def explicit(statement: str) -> str | None:
    """The word yes or no in a statement ('No, ...', 'Answer: yes').

    'no' before a noun is no answer; it denies the noun.

    Returns:
        YES or NO; OPEN if the statement holds both, None if it holds neither.

    >>> explicit("No, there is danger."), explicit("There is no danger."), explicit("Yes and no.")
    ('no', None, '?')
    """
    text = _NOT_THAT.sub("", respelled(statement))
    yes, no = bool(_YES.search(text)), bool(_NO.search(text))
    return OPEN if yes and no else YES if yes else NO if no else None


def stated(question: str, statement: str) -> str | None:
    """Whether a statement affirms or negates what a yes/no question asks.

    Returns:
        YES or NO; OPEN if it leaves that under 'whether' or 'if'; None if it does neither.

    >>> stated("Can I eat the meat?", "Therefore, it is not safe to eat the meat.")
    'no'
    """
    text = _AGAINST_LAW.sub("illegal", respelled(statement))
    clauses = [clause for clause in _CLAUSE.split(text) if words(clause)]
    for clause in reversed(clauses):
        if (reading := _stated_by(question, clause)) is not None:
            return reading
    return None


def _weighed(question: str, statement: str) -> str | None:
    """The explicit yes or no of a statement, unless the rest declines or contradicts it."""
    reading = explicit(statement)
    if reading is None or reading == OPEN:
        return reading
    text = _NOT_THAT.sub("", respelled(statement))
    if _NOT_CLAIMED.search(text) or is_question(text):
        return OPEN
    rest = _ANSWER_WORD.sub(",", text)
    if _only_declines(rest, question):
        return OPEN
    if declines(statement, question):
        return None
    return reading if stated(question, rest) in (reading, None, OPEN) else None


def _only_declines(statement: str, question: str) -> bool:
    clauses = [clause for clause in _CLAUSE.split(statement) if words(clause)]
    return bool(clauses) and all(declines(clause, question) for clause in clauses)


def _stated_by(question: str, clause: str) -> str | None:
    """Like `stated`, for one clause."""
    main = _REASON.split(clause, maxsplit=1)[0]
    tokens, every = words(main), words(clause)
    if _LEFT_OPEN & set(every) and _covers(question, every[_opens_at(every) :]):
        return OPEN
    if not _covers(question, tokens) and not _is_elliptic(tokens):
        return None
    stems, asked_stems = set(_matter(tokens)), set(_matter(words(question)))
    turned = sum(_turned(own_stem, asked_stem) for own_stem in stems for asked_stem in asked_stems)
    if turned and any(
        _turned(own_stem, asked_stem) and asked_stem in stems
        for own_stem in stems
        for asked_stem in asked_stems
    ):
        return OPEN
    count = turned + denials(main) + _postpones(question, clause)
    return NO if count % 2 else YES


def _postpones(question: str, clause: str) -> bool:
    """Whether a clause puts into the future what the question asks about the past ('Has he ...?')."""
    return words(question)[:1] in (("has",), ("have",), ("did",)) and bool(_STILL_TO_COME.search(clause))


def _opens_at(tokens: Sequence[str]) -> int:
    return min((i for i, word in enumerate(tokens) if word in _LEFT_OPEN), default=0)


def _is_elliptic(tokens: Sequence[str]) -> bool:
    """Whether a clause says no more than 'It is.', 'I can not.' or 'Not yet.'"""
    affirms = len(tokens) > 1 and tokens[0] not in AUXILIARIES and tokens[-1] in AUXILIARIES | {"so"}
    return not _matter(tokens) and (affirms or bool((NEGATIONS - NAMES_NOTHING) & set(tokens)))


def _covers(question: str, tokens: Sequence[str]) -> bool:
    """Whether words repeat what the question asks: all of its content words, or a predicate made of them
    alone.

    A subject that shares words with the question but adds others ('the person on the right') may be
    another one.
    """
    asked_stems = _matter(words(question))
    matter = _matter(tokens)
    needed = [asked_stem for asked_stem in asked_stems if asked_stem not in _OF_THE_TASK]
    subject, predicate = _cut(tokens)
    if needed and all(any(_same(own_stem, asked_stem) for own_stem in matter) for asked_stem in needed):
        return not _governed(predicate, asked_stems)
    shared = [any(_same(own_stem, asked_stem) for asked_stem in asked_stems) for own_stem in _matter(subject)]
    if set(matter) <= _OF_THE_TASK:
        return False
    of_the_task = set(_matter(subject)) & _OF_THE_TASK - set(asked_stems)
    if (any(shared) and not all(shared)) or of_the_task:
        return False
    if set(_matter(predicate)) <= _subject(question):
        return False
    return _within(_matter(predicate), asked_stems) or _focussed(question, predicate, asked_stems)


def _subject(question: str) -> set[str]:
    """The first content word of a question that begins 'Is my ...'; what is said of it is yet to come."""
    opening = words(question)
    has_subject = len(opening) > 2 and opening[1] in DETERMINERS | lexicon("the this that")
    stems = _matter(opening)
    return set(stems[:1]) if has_subject and len(stems) > 1 else set()


def _governed(predicate: Sequence[str], asked_stems: Sequence[str]) -> bool:
    """Whether another word governs what was asked, such as 'forbidden to' or 'dangerous to'."""
    lead = next((i for i, word in enumerate(predicate) if _matter([word])), len(predicate))
    governs = predicate[lead + 1 : lead + 2] == ("to",) and predicate[lead] != "going"
    return governs and not set(_matter(predicate[lead : lead + 1])) & (_ALLOWS | set(asked_stems))


def _within(predicate: Sequence[str], asked_stems: Sequence[str]) -> bool:
    predicate_stems = [
        own_stem
        for own_stem in predicate
        if own_stem not in _ALLOWS or any(_same(own_stem, asked_stem) for asked_stem in asked_stems)
    ]
    return bool(predicate_stems) and all(
        any(_same(own_stem, asked_stem) for asked_stem in asked_stems) for own_stem in predicate_stems
    )


def _focussed(question: str, predicate: Sequence[str], asked_stems: Sequence[str]) -> bool:
    """Whether a predicate is the focus of the question, followed by a place or circumstance: 'illegal | in
    Iran'.

    The focus is the last word of the question, or the word after 'is it': 'Is it legal to ...?'
    """
    opening = words(question)
    dummy = len(opening) > 2 and opening[1] == "it" and opening[2] not in FUNCTION_WORDS
    focus = stem(opening[2]) if dummy else (asked_stems[-1] if asked_stems else "")
    end = next(
        (i for i, word in enumerate(predicate) if word in PLACES | {"for"} and _matter(predicate[:i])),
        len(predicate),
    )
    predicate_stems = _matter(predicate[:end])
    return _within(predicate_stems, asked_stems) and any(
        _same(own_stem, focus) for own_stem in predicate_stems
    )


def _cut(tokens: Sequence[str]) -> tuple[Sequence[str], Sequence[str]]:
    """The subject and the predicate: the words before the first form of be, have, do or a modal, and after
    it."""
    at = next((i for i, word in enumerate(tokens) if word in AUXILIARIES), None)
    return (tokens[:at], tokens[at + 1 :]) if at is not None else ((), tokens)


def _matter(tokens: Sequence[str]) -> list[str]:
    stems = [
        stem(word)
        for word in tokens
        if word not in FUNCTION_WORDS | NEGATIONS and (word in _NO_ADVERBS or not word.endswith("ly"))
    ]
    return [own_stem for own_stem in stems if own_stem not in _ADDS_NOTHING]


def _same(one: str, other: str) -> bool:
    """Whether two stems mean the same or the opposite ('legal', 'illegal', 'forbidden')."""
    return one == other or relation(one, other) != 0


def _turned(one: str, other: str) -> bool:
    return relation(one, other) < 0
