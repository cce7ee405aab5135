"""The option that an answer chooses among those that its question offers."""

from __future__ import annotations

import re
from collections.abc import Iterator
from itertools import pairwise

from sightline.scoring.non_answers import declines
from sightline.scoring.offered_options import DETERMINERS, PLACES, Offer, OfferedOption, offer_of
from sightline.scoring.opposites import kind_of
from sightline.scoring.polarity import explicit
from sightline.scoring.statements import NEGATIONS, OPEN, excludes, settle
from sightline.scoring.text import FUNCTION_WORDS, lexicon, respelled, stem, words

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
    """The options in a statement with their positions, without those that are negated or mean something
    else."""
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
    """Whether options stand side by side ('up or down', 'including east, west and north'), or follow
    'both'."""
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
