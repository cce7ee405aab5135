"""Whether a response refuses to answer: it states an inability and gives no answer."""

from __future__ import annotations

import re

from sightline.scoring.statements import statements
from sightline.scoring.text import sentences, words

_FIND_OUT = (
    r"(?:tell|say|know|determin\w*|identif\w*|answer\w*|see|seen|view\w*|read|recogni[sz]\w*|discern\w*"
    r"|distinguish\w*|make out|confirm\w*|verif\w*|assess\w*|interpret\w*|perceiv\w*|observ\w*|infer\w*"
    r"|deduc\w*|ascertain\w*|conclu\w*|guess\w*|predict\w*|understand|process\w*|access\w*|analy[sz]\w*"
    r"|open|load|display|decipher\w*|detect\w*|establish\w*|specif\w*|evaluat\w*|judge|locate|find)"
)
_DO = (
    r"(?:help|assist|provid\w*|giv\w*|offer\w*|describ\w*|respond|comment|comply|fulfil+|continue|engage"
    r"|support"
    r"|share|discuss|generate|complete|choose|pick|select|accurately|definitively|directly|do (?:that|this)"
    r"|be (?:certain|sure|able)|make (?:a|an|any) \w+)"
)
_SELF = r"(?:i|we|me|model|assistant)"
_CAN_NOT = (
    r"(?:(?:am |are )?(?:\w+ly |still |also )?(?:not (?:\w+ly )?(?:able|allowed|permitted|equipped"
    r"|designed) to|unable to"
    r"|incapable of)|(?:can|could|will|would|may) not(?: be able to)?|do not have (?:the "
    r"|any )?(?:ability|capability"
    r"|means|capacity) (?:to|of))"
)
_INABILITY = tuple(
    re.compile(pattern)
    for pattern in (
        rf"\b{_SELF} {_CAN_NOT}(?: \w+ly| even| just)* (?:{_FIND_OUT}|{_DO})\b",
        rf"^(?:\w+ly |sorry |so |and |but |however |well )*(?:{_CAN_NOT}|not possible to|impossible to"
        rf"|difficult to|hard to)"
        rf"(?: be)?(?: \w+ly)* (?:{_FIND_OUT}|{_DO})\b",
        rf"\b(?:it|that|this|which|making|makes|making it"
        rf"|is) (?:\w+ )?(?:\w+ly )?(?:not (?:\w+ )?possible|impossible"
        rf"|not feasible|difficult|hard|challenging)"
        rf"(?: for me| for us)? to (?:\w+ly )?(?:{_FIND_OUT}|{_DO})\b",
        r"\bcan not be (?:\w+ly )?(?:determined|identified|answered|known|told|inferred|established"
        r"|ascertained|assessed"
        r"|seen|read|recogni[sz]ed|concluded|confirmed|discerned)\b",
        rf"\bno way (?:for me )?(?:to|of) (?:{_FIND_OUT}\b|knowing|telling)|\bno way of (?:knowing|telling)",
        rf"\b{_SELF} (?:do|did) not (?:\w+ly )?(?:know|have (?:enough |sufficient |any |the |access "
        rf"|\w+ )?(?:information"
        r"|context|access|details|visual|capabilit\w+|to|knowledge|answer|idea)|feel comfortable"
        r"|see (?:an|any|the) (?:image"
        r"|picture|photo|attachment|file|masked))",
        r"\bi (?:have|see) no (?:idea|clue|information|way|access|image|picture|answer|knowledge)"
        r"|^no idea$|^(?:no|not) clue$",
        r"\b(?:i am|i am really|i am still) (?:not (?:\w+ )?(?:sure|certain)|unsure|uncertain)\b|^not sure$",
        r"\b(?:image|picture|photo|context|question|description|text|it"
        r"|options?)\b(?: \w+){0,4}? (?:(?:do|does|did) not (?:\w+ )?"
        r"(?:provide|give|contain|include|offer|show|have|specify)|lacks) (?:\w+ ){0,3}?(?:information"
        r"|context|detail|evidence)",
        r"\b(?:not enough|insufficient|no|not sufficient) (?:\w+ ){0,2}?(?:information|context|details?"
        r"|evidence)\b"
        r"(?! (?:desk|sign|board|cent))",
        r"\bas an? (?:\w+ ){0,3}?(?:ai|model|assistant|llm)\b|\bi am (?:just "
        r"|only )?an? (?:\w+ ){0,2}?(?:ai|model)\b",
        r"\bi (?:\w+ )?(?:must|have to|need to|will have to)? ?(?:decline|refuse)\b|\brather not\b"
        r"|\bagainst (?:my|our) \w+",
        r"\b(?:unclear|unknown|uncertain|not clear) (?:what|which|who|whether|from|how|where)\b"
        r"|^(?:(?:it|this|that|the answer|answer) (?:is )?)?(?:unknown|unclear|unanswerable"
        r"|not answerable|undetermined"
        r"|indeterminate)$",
    )
)
_APOLOGY = re.compile(
    r"^(?:i am (?:\w+ )?sorry|sorry|(?:my )?apologies|i apologi[sz]e)\b(?: (?:for|about) (?:\w+ ?)*$)?"
)
_ASIDE = re.compile(
    r"\b(?:if you|please|feel free|let me know|i can (?:\w+ )?(?:help|describe|try|provide|tell|offer|assist)"
    r"|i (?:may|might|could|will|would) be (?:able|happy|glad)|happy to|would you|could you|can you|here is"
    r"|i will|because|recommend\w*|consult|helpful|beyond|polic(?:y|ies)|guidelines?|privacy|designed"
    r"|capabilit\w+|more (?:context|information|details?)|resolution|upload|provided?|needed|requires?)\b"
)
_AROUND = re.compile(
    r"\b(?:surround\w*|background|visible parts?|rest of|anything|any of"
    r"|(?:the|this|an?) (?:image|picture|photo|photograph|scene) (?:\w+ )?"
    r"(?:shows?|depicts?|features?|contains?|displays?|is|appears?|seems?|of))\b"
)
_CHOICE = re.compile(
    r"\([A-F]\)|^\W*[A-F]\W*$|^\W*[A-F][).:]\s|\b(?:[Oo]ption|[Cc]hoose|[Pp]ick|[Ss]elect)\s+\W?[A-F]\b"
)
_ANSWER = re.compile(r"\b(?:answer|choice|option) (?:is|would be|could be|might be|seems)\b")
_GUESS = re.compile(
    r"\b(?:likely|probably|most probable|appears?|seems?|looks?|resembles?"
    r"|(?:might|may|could|would|must) (?:\w+ )?(?:be|represent|contain)"
    r"|i (?:would )?(?:think|believe|guess|say|assume|suppose|choose|go with)|my (?:best )?guess)\b"
)
_ASSERTS = re.compile(
    r"^(?:so |still |but |however |therefore |thus |yet )*"
    r"(?:it|this|that|these|they|there|he|she|i see|the (?:\w+ )?(?:region|area|object|part))\b"
)
_INDIRECT = re.compile(r"\b(?:what|which|who|whose|whether|if|how|where|why)\b")
_QUOTED = re.compile(r"[\"“][^\"”]*[\"”]|(?<!\w)['‘][^'’]{2,}['’](?!\w)")


def is_refusal(response: str) -> bool:
    """Whether a response refuses to answer: it states an inability and gives no answer.

    The inability is the speaker's own ('I am unable to see it', 'Unable to tell') or nobody's ('It cannot be
    determined'). A response that answers before or after it, or guesses ('but it looks like a bus'), is no
    refusal; offers of help and descriptions of what surrounds the question are no answers.

    Args:
        response: The response.

    Returns:
        True if it refuses.

    >>> is_refusal("I'm sorry, I can't help with that."), is_refusal("(C)"), is_refusal("Unable to tell.")
    (True, False, True)
    >>> is_refusal("The man cannot see the road."), is_refusal("I can't read it, but it is a stop sign.")
    (False, False)
    """
    if _CHOICE.search(response):
        return False
    declined = False
    for sentence in sentences(_QUOTED.sub("", response)):
        for turn, statement in enumerate(statements(sentence)):
            text = " ".join(words(statement))
            if apology := _APOLOGY.match(text):
                declined, text = True, text[apology.end() :].strip()
            if not text:
                continue
            if (rest := _after_inability(text)) is not None:
                declined = True
                if _guesses(rest):
                    return False
            elif _answers(text, declined, turned=turn > 0):
                return False
    return declined


def _after_inability(text: str) -> str | None:
    """What follows the first statement of an inability in a text; None if the text states none."""
    found = [match for pattern in _INABILITY if (match := pattern.search(text))]
    return text[min(match.end() for match in found) :] if found else None


def _guesses(text: str) -> bool:
    """Whether a text offers an answer as a guess; 'what it might be' is none."""
    guess = _GUESS.search(text)
    return guess is not None and not _AROUND.search(text) and not _INDIRECT.search(text[: guess.start()])


def _answers(text: str, declined: bool, turned: bool) -> bool:
    """Whether a statement without an inability answers, rather than describing what is around or offering
    help; after an inability only a guess, a turn ('but ...') or a statement about the thing asked does."""
    if _ANSWER.search(text):
        return True
    if _ASIDE.search(text) or _AROUND.search(text):
        return False
    return not declined or turned or _guesses(text) or bool(_ASSERTS.search(text))
