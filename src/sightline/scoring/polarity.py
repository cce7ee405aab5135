"""Whether an answer to a yes/no question says yes or no, in these words or by a whole sentence."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from itertools import pairwise

from sightline.scoring.non_answers import declines
from sightline.scoring.offered import DETERMINERS, PLACES, Offer, OfferedOption, kind_of, offer_of, relation
from sightline.scoring.text import (
    AUXILIARIES,
    FUNCTION_WORDS,
    NAMES_NOTHING,
    NEGATIONS,
    OPEN,
    cached_for_short_texts,
    denials,
    excludes,
    is_question,
    lexicon,
    respelled,
    sentences,
    settle,
    statements,
    stem,
    words,
)

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
_INTERJECTION = re.compile(r"\A\W*(?:well|right|ok|okay)\b\s*[,.;:…-]")
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
    """Yes or no as an answer says it, by these words or by a statement that affirms or negates the question;
    OPEN if the answer declines; None if it cannot be decided.

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
    """Whether a statement affirms or negates what a yes/no question asks; OPEN if it leaves that under
    'whether' or 'if'; None if it does neither.

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
    rest = _ANSWER_WORD.sub(",", _INTERJECTION.sub("", text))
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
    """The subject and the predicate: the words before and after the first be, have, do or modal."""
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


# -- The option that an answer chooses among those that its question offers

_HEDGES = frozenset({"either", "both", "neither"})
_BEFORE_AN_OPTION = DETERMINERS | PLACES
_JOINTS = frozenset({"and", "or", "nor"})
_OF_AN_ANSWER = lexicon("the my final correct right answer is would be")
_ASIDE = re.compile(
    r"\b(?:because|since|after|before|given|due to|based on|unlike|without|while|whereas|although|though)\b"
)
_SO = re.compile(r"\b(?:so|therefore|thus|hence|means that|implies that)\b")
NEITHER = "neither"
"""The choice of an answer that rejects all options or what they presuppose."""

_DOUBTS = lexicon("maybe perhaps possibly sometimes could might may")
_NO_OPTION = re.compile(
    r"\b(?:neither|none|both|the same|equally|not moving|stationary|motionless|standing still|parked|stopped"
    r"|static|nothing|nobody|no one)\b|^all$"
)
"""What an answer says that rejects all options, or what they presuppose."""

_FOLLOWS_A_SIDE = frozenset({"side", "hand", "track"})
_REACH = 5  # the most words between a negation and the word that it negates

Named = list[tuple[int, OfferedOption]]


def chosen_option(question: str, answer: str) -> str | None:
    """The option of a question that an answer chooses.

    Returns:
        The option in the words of the question, or another value of the same kind ('southwest', 'in the
        middle'); NEITHER if it rejects all of them ('Neither', 'No', 'It is not moving'); OPEN if it
        declines to choose or names several options side by side; None if that cannot be decided.

    >>> chosen_option("Is it going up or down?", "It is heading upwards.")
    'up'
    >>> chosen_option("Is it going up or down?", "Up or down.")
    '?'
    """
    offer = offer_of(question)
    if offer is None:
        return None
    return settle(answer, lambda statement: _read(offer, statement), offer.about)


def _read(offer: Offer, statement: str) -> str | None:
    """The option that one statement chooses; OPEN or None as in `chosen_option`."""
    tokens = words(statement)
    if declines(statement):
        return OPEN
    if _speaks_of_another(offer, tokens):
        return None
    if excludes(statement) and not any(excludes(" ".join(option.words)) for option in offer.options):
        return None
    named = _named(offer, tokens)
    if _hedged(offer, tokens, named):
        return OPEN
    for narrowed in (_main(offer, statement), _concluded(offer, statement), _destination(tokens, named)):
        if len(found := {option for _, option in narrowed}) == 1:
            return " ".join(found.pop().words)
    if named:
        return OPEN if _DOUBTS & set(tokens) else None
    if _NO_OPTION.search(" ".join(tokens)) or explicit(statement) is not None:
        return NEITHER
    return _other_value(offer, tokens)


def _other_value(offer: Offer, tokens: tuple[str, ...]) -> str | None:
    """A value that the question does not offer, of the kind that its options are of: 'southwest'."""
    offered = frozenset().union(*(option.keys for option in offer.options))
    beside = offered | offer.about | offer.aside
    kind = kind_of(option.keys for option in offer.options)
    values = {
        word
        for i, word in enumerate(tokens)
        if word in kind and stem(word) not in beside and not _denied(tokens, i)
    }
    return values.pop() if len(values) == 1 else None


def _speaks_of_another(offer: Offer, tokens: tuple[str, ...]) -> bool:
    """Whether the subject is something that the question names but does not ask about."""
    verb = next((i for i, word in enumerate(tokens) if word in ("is", "are", "was", "were")), 0)
    subject = {stem(word) for word in tokens[:verb] if word not in FUNCTION_WORDS}
    return bool(subject) and subject <= offer.aside


def _named(offer: Offer, tokens: tuple[str, ...]) -> Named:
    """The options in a statement with their positions, unless negated or meant otherwise."""
    positions = ((at, option) for option in offer.options for at in _positions(offer, option, tokens))
    candidates = (
        position for position in positions if tokens[position[0] : position[0] + 2] not in offer.pairs
    )
    return sorted(
        (position for position in candidates if not _denied(tokens, position[0])),
        key=lambda position: position[0],
    )


def _positions(offer: Offer, option: OfferedOption, tokens: tuple[str, ...]) -> Iterator[int]:
    stems = tuple(map(stem, tokens))
    if option.keys:
        yield from (i for i, found in enumerate(stems) if found in option.keys)
        if "leav" in option.keys:
            yield from (i for i in range(len(tokens)) if _is_past_of_leave(tokens, i))
        return
    if any(other.keys & set(stems) for other in offer.options):
        return
    if not option.apart:
        own = [found for found in option.phrase if found not in FUNCTION_WORDS]
        order = [i for i, found in enumerate(stems) if found in own]
        if own and [stems[i] for i in order] == own:
            yield order[0]
    elif tuple(word for word in tokens if word not in _OF_AN_ANSWER) == option.apart:
        yield len(tokens) - 1
    else:
        yield from _phrase_positions(option, tokens, stems)


def _phrase_positions(
    option: OfferedOption, tokens: tuple[str, ...], stems: tuple[str, ...]
) -> Iterator[int]:
    bare = [i for i, word in enumerate(tokens) if word not in DETERMINERS or stems[i] in option.phrase]
    size = len(option.phrase)
    for start in range(len(bare) - size + 1):
        if tuple(stems[i] for i in bare[start : start + size]) == option.phrase:
            yield bare[start]


def _is_past_of_leave(tokens: tuple[str, ...], at: int) -> bool:
    before, after = tokens[at - 1 : at], tokens[at + 1 : at + 2]
    is_side = bool(set(before) & (DETERMINERS | PLACES) or set(after) & _FOLLOWS_A_SIDE)
    return tokens[at] == "left" and not is_side


def _denied(tokens: tuple[str, ...], at: int) -> bool:
    """Whether the word at this position is negated, as in 'not up'."""
    return bool(NEGATIONS & set(tokens[max(0, at - _REACH) : at]))


def _hedged(offer: Offer, tokens: tuple[str, ...], named: Named) -> bool:
    """Whether options stand side by side ('up or down', 'east, west and north'), or follow 'both'."""
    own = {word for option in offer.options for word in option.words} | DETERMINERS | _JOINTS
    for (at, option), (then, other) in pairwise(named):
        between = set(tokens[at + 1 : then])
        if option != other and ("or" in between or (between & _JOINTS and between <= own)):
            return True
    return any(_follows_hedge(tokens, at) for at, _ in named)


def _follows_hedge(tokens: tuple[str, ...], at: int) -> bool:
    lead = [word for word in tokens[:at] if word not in _BEFORE_AN_OPTION]
    return bool(lead) and lead[-1] in _HEDGES


def _main(offer: Offer, statement: str) -> Named:
    """The options outside of subordinate clauses ('... because ...', 'Since ..., ...')."""
    clauses = (_ASIDE.split(part, maxsplit=1)[0] for part in respelled(statement).split(","))
    return [position for clause in clauses for position in _named(offer, words(clause))]


def _concluded(offer: Offer, statement: str) -> Named:
    """The options after the last 'so' or the like."""
    return _named(offer, words(_SO.split(respelled(statement))[-1]))


def _destination(tokens: tuple[str, ...], named: Named) -> Named:
    """The second of two options in 'from the left to the right', unless the question asks for the origin."""
    if len(named) != 2 or any("from" in option.words for _, option in named):
        return named
    (start, _), (end, _) = named
    is_route = "from" in tokens[max(0, start - 3) : start] and "to" in tokens[start:end]
    return named[1:] if is_route else named
