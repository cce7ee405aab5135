"""Whether a response refuses to answer: it states an inability and gives no answer."""

from __future__ import annotations

import re

from sightline.scoring.statements import statements, without_lead_in
from sightline.scoring.text import sentences, words

_TELL = (
    r"(?:tell|say|know|determin\w*|identif\w*|answer\w*|read|recogni[sz]\w*|discern\w*|distinguish\w*"
    r"|make out"
    r"|confirm\w*|verif\w*|assess\w*|interpret\w*|infer\w*|deduc\w*|ascertain\w*|conclu\w*|guess\w*"
    r"|predict\w*"
    r"|decipher\w*|detect\w*|establish\w*|calculat\w*|comput\w*|count|hear|explain|estimat\w*|compare"
    r"|solve|specif\w*|evaluat\w*|judge|describ\w*)"
)
_FIND_OUT = (
    rf"(?:{_TELL}|see|seen|view\w*|perceiv\w*|observ\w*|understand|process\w*|access\w*|analy[sz]\w*"
    r"|open|load|display|locate|find|grasp|comprehend)"
)
_DO = (
    r"(?:help(?! \w+ing)|advise|assist|provid\w*|giv\w*|offer\w*|respond|comment|comply|fulfil+|continue"
    r"|engage|support|share|discuss|speculat\w*|generate|complete|choose|pick|select|accurately"
    r"|definitively|directly"
    r"|do (?:that|this)"
    r"|be (?:certain|sure|able)|make (?:a|an|any )?\w+)"
)
_SELF = r"(?:i|me|model|assistant|(?<!that )we)"
_CAN_NOT = (
    r"(?:(?:am |are |was )?(?:\w+ly |still |also )?(?:not (?:\w+ly )?(?:able|allowed|permitted|equipped"
    r"|designed) to|unable to|incapable of)|fail(?:ed)? to|(?:can|could|will|would|may) not(?: be able to)?"
    r"|do not have (?:the |any )?(?:ability|capability|means|capacity) (?:to|of))"
)
_FACTS = (
    r"(?:information|context|details?|evidence|indication|knowledge|clues?|hints?|mention|(?:clear "
    r"|definite )?answer)"
)
_SOURCE = (
    r"(?:image|picture|photo|context|question|description|caption|text|document|infographic|chart|table|it"
    r"|instruction|options?)"
)
_KNOWN = (
    r"(?:determined|identified|answered|known|told|inferred|established|ascertained|assessed|seen|read"
    r"|recogni[sz]ed|concluded|confirmed|discerned|interpreted|explained|understood|deciphered|verified"
    r"|calculated|computed|counted|estimated)(?! by (?:the|an?) )"
)
_INABILITY = tuple(
    re.compile(pattern)
    for pattern in (
        # The speaker cannot, does not or will not.
        rf"\b{_SELF} {_CAN_NOT}(?: \w+ly| even| just)* (?:{_FIND_OUT}|{_DO})\b(?! my)",
        rf"^(?:\w+ly |sorry |so |and |but |however |well )*(?:{_CAN_NOT}"
        rf"|not possible to)(?: be)?(?: \w+ly)* (?:{_TELL}|see|view\w*|access|{_DO})\b",
        rf"\b(?:you|one) can not {_TELL}\b.* from (?:the|this) {_SOURCE}\b"
        rf"|\bi can not(?: do)?$|\bnot something i (?:can|am)\b",
        rf"\bi (?:\w+ly )?(?:do|did) not (?:\w+ly )?(?:know|understand|identify|recogni[sz]e|find"
        rf"|feel comfortable|see (?:an|any|the) (?:image|picture|photo|attachment|file|masked)"
        rf"|have (?:\w+ ){{0,2}}(?:{_FACTS}|access|visual|capabilit\w+|to|answer|idea))",
        rf"\bi (?:\w+ly )?(?:have|see) no (?:{_FACTS}|idea|clue|way|access|image|picture|answer)"
        rf"|^(?:no|not an?) (?:idea|clue|answer|comment)$|^(?:do not know|dunno|idk|n a)$",
        r"\bi (?:am having|have) (?:trouble|difficulty)|\b(?:i|you) would (?:need|have) to\b"
        r"|\bprevents? (?:me|us) from\b",
        rf"\bi (?:would )?(?:lack|need more) (?:\w+ ){{0,2}}?{_FACTS}|\bi wish i knew|^wish i knew"
        rf"|\bbeyond my \w+",
        r"\bi am (?:\w+ )?(?:not (?:\w+ )?(?:sure|certain|comfortable)|unsure|uncertain)\b|^not sure$",
        r"\bi (?:can only|am only able to) (?:see|view)\b",
        r"\bi (?:\w+ )?(?:must|have to|need to|will have to)? ?(?:decline|refuse)\b|\brather not\b"
        r"|\bprefer not to\b|\b(?:against|violates?) (?:my|our) \w+|\bnot in a position to\b"
        r"|\binappropriate for me\b",
        r"\b(?:i am|as) (?:just |only )?an? (?:\w+ ){0,3}?(?:ai|llm|(?:language|text|based|vision"
        r"|multimodal) (?:\w+ )?model|model(?= i\b)|assistant)\b",
        r"^(?:please|could you|can you) (?:\w+ )?(?:provide|upload|share|attach|send|clarify"
        r"|specify)\b",
        # Nobody can.
        rf"\b(?:it|that|this|which|makes?|making|is|^) ?(?:it )?(?:\w+ly |just "
        rf"|also )?(?:not (?:\w+ )?possible|impossible|not feasible|difficult|hard"
        rf"|challenging)(?: for (?:me|us))? to (?:\w+ly )?(?:{_TELL}|see|provide|give)\b",
        rf"\b(?:can|could) not (?:\w+ly )?be (?:\w+ly )?{_KNOWN}\b",
        r"\bno (?:way|means) (?:(?:for (?:me|us) )?(?:to|of)|i can) \w+|^(?:nobody|no one) (?:can \w+"
        r"|knows$)",
        rf"\btoo \w+(?: \w+){{0,5}} for (?:me|us) to (?:{_FIND_OUT}|{_DO})|\btoo \w+ to {_TELL}\b",
        r"\b(?:could|may|might) be anything\b|\banyone guess\b",
        # Nothing tells.
        rf"\bdepends on (?:the )?{_FACTS}|\bnothing in (?:the|this) {_SOURCE} (?:that|to|tells"
        rf"|indicates|shows)\b",
        rf"\b{_SOURCE}\b(?: \w+){{0,4}}? (?:(?:do|does|did) not (?:\w+ )?(?:(?:provide|give|contain"
        rf"|include|offer|show|have) (?:\w+ ){{0,3}}?(?:{_FACTS}|what|which|who|whether|when|where"
        rf"|how)|specify|mention|indicate|state|say|tell|reveal)|lacks (?:\w+ ){{0,3}}?{_FACTS})",
        r"\b(?:caption|text|document|context|description) (?:does|did) not (?:contain|include|provide"
        r"|give)\b",
        r"\bno (?:\w+ ){1,3}to (?:answer|determine|identify)\b",
        rf"\b(?:not enough|insufficient|no|not any|not sufficient) (?:\w+ ){{0,2}}?{_FACTS}\b(?! (?:desk|sign"
        rf"|board|cent))",
        rf"\bmore {_FACTS} (?:is|are|would be) (?:needed|required|necessary)|\b{_FACTS} (?:is"
        rf"|are) not (?:\w+ )?(?:in|given|provided|available|present|shown|visible)",
        r"\b(?:is|are) not (?:mentioned|specified|stated|indicated|disclosed)\b|\bis not known$"
        r"|\bnot clear$",
        r"^(?:there is )?no (?:image|picture)$|\b(?:image|picture|file) (?:did not load"
        r"|failed to load|is missing)|\byou did not (?:attach|provide|upload|include|send)\b"
        r"|\bno (?:image|picture|photo|attachment|file) (?:is |was |has been )?(?:attached|provided"
        r"|included|uploaded|given|available)|\bnone of the \w+ can be \w+",
        r"\b(?:unclear|unknown|uncertain|not clear) (?:what|which|who|whether|from|how|where)\b"
        r"|\b(?:what|who|which|whether|identity|name|type|nature|question|answer|meaning|object|text|writing"
        r"|handwriting|sign)\b.* (?:is|are|remains?) (?:still )?(?:unknown|unclear|illegible"
        r"|unreadable)(?:$| (?:because|since|as|due)\b)|\bnot (?:legible|identifiable|recogni[sz]able"
        r"|readable|discernible)|\bun(?:identifi|recogni[sz])able\b|^not (?:visible|mentioned|specified"
        r"|stated|indicated|given|provided)\b|^(?:(?:it|this|that"
        r"|(?:the )?answer) (?:is )?)?(?:unknown|unclear|unanswerable|not answerable|undetermined"
        r"|undeterminable|indeterminate)$",
    )
)
_APOLOGY = re.compile(r"^(?:i am (?:\w+ )?sorry|sorry|(?:my )?apologies|i apologi[sz]e)\b")
_REGRETS = re.compile(r"(?:for|about)\b")
_ASIDE = re.compile(
    r"\b(?:if you|please|feel free|let me know|i can (?:\w+ )?(?:help|describe|try|provide|tell|offer"
    r"|assist)"
    r"|i (?:may|might|could|will|would) be (?:able|happy|glad)|happy to|would you|could you|can you|here is"
    r"|i will|because|recommend\w*|consult|helpful|beyond|polic(?:y|ies)|guidelines?|privacy|designed"
    r"|capabilit\w+|more (?:context|information|details?)|resolution|upload|provided?|needed|requires?)\b"
)
_AROUND = re.compile(
    r"\b(?:surround\w*|background|visible parts?|rest of|anything|any of|private|sensitive|offensive"
    r"|harmful"
    r"|(?:the|this|an?) (?:image|picture|photo|photograph|scene) (?:\w+ )?"
    r"(?:shows?|depicts?|features?|contains?|displays?|is|appears?|seems?|of))\b"
)
_CHOICE = re.compile(
    r"\([A-F]\)|^\W*[A-F]\W*$|^\W*[A-F][).:]\s|\b(?:[Oo]ption|[Cc]hoose|[Pp]ick|[Ss]elect)\s+\W?[A-F]\b"
)
_ANSWER = re.compile(r"\b(?:answer|choice|option) (?:is|would be|could be|might be|seems)\b")
_GUESS = re.compile(
    r"\b(?:likely|probably|most probable|perhaps|maybe|possibly|presumably|it is an? |appears?|seems?"
    r"|looks?|resembles?"
    r"|(?:might|may|could|would|must) (?:\w+ )?(?:be|represent|contain)"
    r"|i (?:would )?(?:think|believe|guess|say|assume|suppose|choose|go with)|my (?:best )?guess)\b"
)
_ASSERTS = re.compile(
    r"^(?:so |still |but |however |therefore |thus |yet )*"
    r"(?:it|this|that|these|they|there|he|she|i see|the (?:\w+ )?(?:region|area|object|part))\b"
)
_INDIRECT = re.compile(r"\b(?:what|which|who|whose|whether|if|how|where|why|because|as|since)\b")
_SUBORDINATE = re.compile(
    r"\b(?:although|(?:even )?though|because|since|as(?= (?:it|i)\b))\b[^,;.]*", re.IGNORECASE
)
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
    for sentence in sentences(_SUBORDINATE.sub(_without_inability, _QUOTED.sub("", response))):
        for turn, statement in enumerate(statements(sentence)):
            text = " ".join(words(statement))
            if apology := _APOLOGY.match(text):
                text = text[apology.end() :].strip()
            if not text or (apology and _REGRETS.match(text)):
                declined = declined or not text
            elif (rest := _after_inability(text)) is not None:
                declined = True
                if _guesses(rest):
                    return False
            elif _answers(" ".join(words(without_lead_in(statement))), declined, turned=turn > 0):
                return False
            else:
                declined = declined or apology is not None
    return declined


def _without_inability(clause: re.Match[str]) -> str:
    """A subordinate clause; nothing if it states an inability ('although I can't see it')."""
    return clause[0] if _after_inability(" ".join(words(clause[0]))) is None else ""


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
