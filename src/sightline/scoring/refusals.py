"""Whether a response refuses to answer: it states an inability and gives no answer."""

from __future__ import annotations

import re
from collections.abc import Iterator

from msgspec import Struct

from sightline.scoring.short_texts import cached_for_short_texts
from sightline.scoring.statements import AUXILIARIES, statements, without_lead_in
from sightline.scoring.text import FUNCTION_WORDS, sentences, words

_ADVERBS = r"(?:\w+ly |still |also |just |even |really |simply )*"
_TELL = (
    r"(?:tell|told|say|said|know|read|see|seen|view|make out|hear|determin|identif|answer"
    r"|recogni[sz]|discern"
    r"|distinguish|confirm|verif|assess|interpret|infer|deduc|ascertain|conclud|guess|predict"
    r"|decipher|detect"
    r"|establish|calculat|comput|count|explain|estimat|compar|solve|specif|evaluat|judge|describ|transcrib"
    r"|nam|list|locat|translat|quot|summari[sz]|label"
    r"|perceiv|understand|understood|be (?:certain|sure))(?:e|es|ed|s|d|ing|n|y|ied|ying)?\b"
)
"""Verbs of finding something out and of telling it."""

_FACTS = (
    r"(?:information|info|context|details?|evidence|indications?|knowledge|clues?|hints?|cues|data|(?:clear"
    r" )?answer)"
)
_INPUT = r"(?:image|picture|photo|photograph|attachment|file|screenshot|comic)"
_SOURCE = (
    rf"(?:{_INPUT}|scene|context|question|description|caption|text|document|infographic|chart|table"
    r"|instruction|sign|it)"
)
_CAN_NOT = r"(?:(?:can|could) not|not able to|unable to|fail(?:ed|s)? to)"
_HARD = (
    r"(?:not possible|impossible|not feasible|not easy|difficult|hard|challenging|tricky|tough"
    r"|no way|no means)"
)
_UNREADABLE = (
    r"(?:(?:not (?:\w+ly )?(?:legible|readable|identifiable|recogni[sz]able|discernible|known|answerable)"
    r"|illegible|unreadable|unidentifiable|unrecogni[sz]able|indiscernible|unanswerable|undetermined"
    r"|indeterminate|unclear|unknown|uncertain))"
)
_INABILITY = tuple(
    re.compile(pattern)
    for pattern in (
        # The speaker can not, does not or will not.
        rf"\bi {_ADVERBS}(?:can|could) not\b(?! believe| wait| help but| imagine)"
        rf"|\bi (?:\w+ ){{1,8}}?(?:and|so|thus|therefore) (?:thus |therefore )?can not (?:{_TELL})"
        rf"|\b(?:we|one|you) can not (?:{_TELL}) (?:what|which|who|whether|if|how|where|when|from)\b",
        r"\bi (?:am|was) (?:\w+ )?(?:not (?:\w+ )?(?:able|allowed|permitted|equipped|designed|comfortable"
        r"|in a position)|unable|incapable|forbidden)\b",
        rf"\bi (?:will|would|may|must|should) not {_ADVERBS}(?:be able|help|assist|provide|give"
        rf"|share|comment"
        rf"|speculate|{_TELL})\b",
        rf"\bi {_ADVERBS}(?:fail(?:ed)? to|struggle to|lack|(?:have|see) (?:no|trouble|difficulty"
        rf"|insufficient)"
        r"|(?:do|did|would) not (?:\w+ )?(?:have|possess|understand|recogni[sz]e|identify|feel comfortable)"
        rf"|do not (?:\w+ )?see (?:\w+ )?{_INPUT}|do not (?:\w+ )?know (?:what|which|who|whose"
        rf"|whether|if|how"
        r"|where|when|why|the|this|that)|(?:would )?(?:need|require)|would have to)\b"
        r"|\bone would (?:need|have) to\b",
        r"\bi am (?:\w+ )?(?:not (?:\w+ )?(?:sure|certain)|unsure|uncertain) (?:of|about|what|which"
        r"|who|whether"
        r"|if|how|where|when|why)\b",
        r"\bi (?:\w+ )?(?:must |have to |need to |will have to |would )?(?:respectfully )?(?:decline|refuse"
        r"|refrain|abstain)\b|\b(?:rather|prefer) not\b|\bnot something i (?:can|am)\b",
        rf"^(?:\w+ly |sorry |so |and |but |well |i am afraid )*(?:{_CAN_NOT}|{_HARD} to) {_ADVERBS}(?:be"
        rf" )?(?:{_TELL}|provide|help|assist|find|locate)\b",
        # Something keeps the speaker from it.
        r"\b(?:not|no|none|nothing|nor|too|hides?|covers?|prevents?|impossible|hard|difficult|insufficient"
        r"|without)\b(?: \w+){0,14}? (?:for|allow\w*|let\w*|permit\w*|enabl\w*|tell\w*|giv\w*"
        r"|prevent\w*) me\b"
        r"|\bprevents? me\b|\b(?:beyond|against) my \w+|\billegible to me\b",
        r"\b(?:against|violates?|conflicts? with|prohibit\w* by) (?:my|our|the) (?:\w+ )*(?:polic(?:y|ies)"
        r"|guidelines?|rules|principles)\b",
        # Nobody can.
        rf"\b(?:it|that|this|which|makes?|making|is|seems|remains)(?: it)? {_ADVERBS}{_HARD}"
        rf"(?: for (?:me|us|anyone))? to {_ADVERBS}(?:{_TELL}|provide|give)\b|\bno (?:way"
        rf"|means) (?:to|of) {_TELL}",
        rf"\bcan not {_ADVERBS}be {_ADVERBS}(?:{_TELL}|found|provided|given|inferred)\b",
        rf"^(?:nobody|no one|none of (?:us|them|the \w+)) (?:can (?:\w+ )?{_TELL}|knows)\b|\bno \w+ can be"
        rf" {_TELL}|\b(?:could|may|might) be anything\b|\banyone guess\b",
        rf"\btoo \w+ (?:for (?:\w+ ){{1,4}}?)?to (?:be )?(?:{_TELL})"
        rf"|\b(?:not enough|insufficient|too little)\b.* to {_TELL}",
        # The input is missing, or nothing in it tells.
        rf"\bno (?:\w+ )?{_INPUT}\b|\b{_INPUT} (?:\w+ ){{0,2}}?(?:(?:did|does|was|is"
        rf"|could) not (?:\w+ )?(?:load"
        r"|attach|upload|provid|includ|open|available|come)|failed to|is missing|is corrupted)"
        r"|\byou (?:did|have) not (?:attach|provid|upload|includ|sen[dt]|shar)|\bforgot(?:ten)? to \w+"
        r"|\bnothing to (?:describe|caption|see|read|answer)\b",
        rf"(?<!has )(?<!have )(?<!had )\b(?:no|not any|not enough|insufficient"
        rf"|not sufficient|too little)"
        rf" (?:\w+ ){{0,2}}?{_FACTS}"
        rf"\b(?! (?:desk|sign|board|cent))|\b(?:more|additional|further) {_FACTS} (?:is|are"
        rf"|would be) (?:needed|required|necessary)"
        rf"|\b(?:needs?|requires?) (?:more|additional|further) {_FACTS}"
        rf"|\b{_FACTS} (?:is|are) not (?:\w+ )?(?:in|given|provided|available|present|shown|visible)\b",
        r"\b(?:nothing|none) (?:in|of|about|on) (?:\w+ ){1,4}?(?:tells?|indicates?|reveals?|shows?"
        r"|suggests?|that would|says?)\b",
        rf"\b{_SOURCE} (?:\w+ ){{0,3}}?(?:lacks?|has no) (?:\w+ ){{0,2}}?{_FACTS}\b"
        rf"|\b{_SOURCE}(?: \w+){{0,3}}? (?:do|does|did) not (?:\w+ )?(?:provide|give|specify"
        rf"|mention|indicate"
        rf"|state|say|tell|reveal|offer|disclose|(?:show|contain|include|have) (?:\w+ ){{0,2}}?(?:{_FACTS}"
        rf"|what|which|who|whether|when|where|how))\b|\bdepends on (?:the )?{_FACTS}",
        r"\b(?:is|are|was) not (?:\w+ )?(?:mentioned|specified|stated|indicated|disclosed)\b"
        r"|^not (?:mentioned|specified|stated|indicated|given|provided)\b",
        rf"\b(?:is|are|remains?|be|being) (?:\w+ly |still |too |completely "
        rf"|entirely )*{_UNREADABLE}\b(?! to (?:him"
        r"|her|them|the))|^(?:unclear|unanswerable|undetermined|indeterminate|illegible|unreadable"
        r"|unidentifiable|unrecogni[sz]able)$|^(?:unclear|unknown|not clear) (?:what|which|who|whether|from"
        r"|how|where|when)\b|\bnot clear (?:what|which|who|whether|if|from|how|where|when)\b",
    )
)
"""A statement of one of these patterns says that the speaker, or anybody, cannot or will not answer."""

_CUE = re.compile(
    r"\b(?:i(?! can not (?:believe|wait|help but|imagine))|me|my|our)\b.*\b(?:not|no|never|none|nothing"
    r"|unable|in\w*appropriate|beyond|pass|unwilling|speculat\w+|difficult|hard|impossible)\b"
    r"|\b(?:not|no|never|none|nothing|unable|inappropriate|impossible|difficult|hard|speculati\w+"
    r"|beyond)\b.*"
    r"\b(?:i|me|my|our)\b"
    r"|\b(?:is|are) (?:\w+ly )?not (?:\w+ly )?(?:visible|shown|clear|given|provided|available|present)\b"
    rf"|^(?:{_UNREADABLE}$|not (?:visible|sure|certain|shown|clear|possible)|no (?:idea|clue|answer"
    rf"|comment)\b)"
    rf"|\b{_HARD} to {_TELL}|^(?:nobody|no one) (?:can|could|would|knows)\b|\btoo \w+ (?:for|to)\b"
    rf"|\bcan not be seen\b"
    r"|^(?:please|could you|can you|kindly) \w+|\bas an? (?:\w+ ){0,3}?(?:ai|model|assistant)\b"
    rf"|\bi am (?:just |only )?an? (?:\w+ )?(?:ai|model|assistant)\b|\b(?:no|not any) (?:signs?|{_FACTS})\b"
    rf"|^without {_TELL}"
)
"""A sign of an inability, too weak to decide by itself."""

_NOT_TOLD = re.compile(
    rf"\b(?:(?<!can )(?<!could )not|no|nothing|none|never|unable|impossible|without|needs?"
    rf"|requires?)\b.*\b{_TELL}"
)
_OTHERS = re.compile(
    r"\b(?:h?e|she|they|his|her|their|who|people|(?:wo)?m[ae]n|boys?|girls?|person|child(?:ren)?"
    r"|parents?|students?"
    r"|employees?|voters?|patients?|drivers?|says?|reads?|mocks?|means?|tells)\b"
)
"""Somebody else who may not know, or a text that says so."""

_DO_NOT_KNOW = re.compile(
    r"^(?:(?:i am )?sorry )?(?:i )?(?:(?:\w+ly )?(?:do not|dont) (?:\w+ )?know|dunno|idk"
    r"|(?:am )?(?:\w+ly )?(?:not"
    r" (?:\w+ )?(?:sure|certain)|unsure|uncertain)|(?:have )?no (?:idea|clue)"
    r"|do not have an? (?:idea|clue))"
    r"(?: sorry)?$"
)
"""The answer 'I don't know'."""

_CHOICE = re.compile(
    r"\([A-F]\)|^\W*[A-F]\W*$|^\W*[A-F][).:]\s|\b(?:[Oo]ption|[Cc]hoose|[Pp]ick|[Ss]elect)\s+\W?[A-F]\b"
)
_GUESS = re.compile(
    r"\b(?:likely|probably|most probable|perhaps|maybe|possibly|presumably|appears?|seems?|looks"
    r"|looks? like|resembles?"
    r"|suggests?|points? to|impl(?:y|ies)|implied"
    r"|(?<!i )(?<!you )(?:might|may|could|must) (?:\w+ )?(?:be|represent|contain)|shows? that it is"
    r"|i (?:would |do )?(?:think|believe|guess|say|assume|suppose|choose|bet|go (?:with|for))"
    r"|my (?:best )?guess"
    r"|(?:the|my|best) (?:\w+ )?(?:answer|choice|option) (?:is|would be|might be))\b"
)
_AROUND = re.compile(
    r"\b(?:surround\w*|background|around|visible|rest of|anything|any of|private|privacy|sensitive"
    r"|offensive"
    r"|harmful|violat\w*|blur\w*|blank|dark|black|corrupt\w*|distort\w*|small|low|resolution|quality|angle"
    r"|hid\w*|cover\w*|obscur\w*|block\w*|conceal\w*|mask\w*|overlay\w*|rectang\w*|ellipse"
    r"|turned away|cut off"
    r"|too|image|picture|photo|photograph|file|upload\w*|attach\w*|missing|provid\w*|need\w*|requir\w*"
    r"|if you|please|feel free|let me know|i can|i (?:may|might|could|will|would) be|happy"
    r"|would you|could you"
    r"|can you|here is|i will|recommend\w*|consult|helpful|beyond|polic(?:y|ies)|guidelines?|designed"
    r"|capabilit\w+|more|ai|model|assistant)\b"
)
"""What explains an inability or describes the input, and offers of help."""

_FAULT = re.compile(
    r"\b(?:no|not|nothing|you (?:have|did|forgot|may|might)|too|anything|surroundings?|background"
    r"|inappropriate|speculat\w*|mask\w*|sensitive|offensive|private|harmful|violat\w*|blur\w*|blank|corrupt\w*"
    r"|distort\w*|missing|hid\w*|cover\w*|obscur\w*|(?:completely|entirely|mostly|all) \w+)\b"
)
"""What makes 'it seems' an explanation of an inability."""

_OF_INPUT = re.compile(rf"\b{_INPUT}(?: \w+){{0,3}} ?$")
_INDIRECT = re.compile(r"\b(?:what|which|who|whose|whether|if|how|where|why|because|as|since)\b")
_APOLOGY = re.compile(
    r"^(?:(?:i am (?:\w+ )?(?:sorry|afraid)|sorry|(?:my )?apologies|i apologi[sz]e|unfortunately"
    r"|regrettably)\b"
    r"(?: for .*| about .*)? ?)+(?:that |but |and )?"
)
_CONCESSION = re.compile(r"(?:although|(?:even )?though|while)\b")
_CONCEDES = re.compile(r"\W*(?:although|(?:even )?though|while|because|since|as)\b", re.IGNORECASE)
_FIRST_COMMA = re.compile(r",\s+")
_CLAUSE = re.compile(
    r"[;:]\s+|,?\s+(?=(?:although|though|even though)\b)"
    r"|,\s+(?=(?:so|therefore|because|since|i|it|that|this)\b)"
    r"|,?\s+(?=(?:so|and|because|since|as) (?:i|it)\b)",
    re.IGNORECASE,
)
_REASON = re.compile(r"(?:because|since|as|so|due to|based on|given|to|if) ")
_YES_OR_NO = re.compile(r"\W*(?:yes|no)\W*(?:[,.;:!]|$)", re.IGNORECASE)
_QUOTED = re.compile(r"[\"“][^\"”]*[\"”]|(?<!\w)['‘][^'’]{2,}['’](?!\w)")


@cached_for_short_texts
def is_refusal(response: str) -> bool | None:
    """Whether a response refuses to answer: it states an inability and gives no answer.

    The inability is the speaker's own ('I am unable to see it', 'Unable to tell') or nobody's ('It cannot be
    determined'). A response that answers or guesses as well ('but it looks like a bus') is no refusal;
    reasons, offers of help and descriptions of what surrounds the question are no answers. A bare 'I don't
    know' is an answer.

    Returns:
        Whether it refuses; None if it is undecided: the signs are weak, or contradict each other.

    >>> is_refusal("I'm sorry, I can't help with that."), is_refusal("(C)"), is_refusal("Unable to tell.")
    (True, False, True)
    >>> is_refusal("The man cannot see the road."), is_refusal("I can't read it, but it is a stop sign.")
    (False, False)
    >>> is_refusal("I can't read the sign. The shop sells bread."), is_refusal("I don't know.")
    (None, False)
    """
    text = _QUOTED.sub("", response)
    if _CHOICE.search(response) or _DO_NOT_KNOW.search(" ".join(words(text))):
        return False
    clauses = [_Clause.of(part, turned=turned) for part, turned in _clauses(text)]
    unable = [place for place, clause in enumerate(clauses) if clause.unable]
    cued = unable or [place for place, clause in enumerate(clauses) if clause.cue]
    # What stands between two inabilities explains them.
    explained = range(unable[0], unable[-1]) if unable else ()
    answering = [
        place
        for place, clause in enumerate(clauses)
        if clause.answers and (clause.turned or place not in explained)
    ]
    polar = _YES_OR_NO.match(text) is not None
    if not cued or (not unable and (polar or answering)):
        return False
    if any(clause.guesses for clause in clauses):
        return False
    answered = any(
        clauses[place].turned if place > cued[0] else clauses[place].bare for place in answering
    ) or (bool(answering) and any(clauses[place].concedes for place in unable))
    if answered:
        # A response that ends with its inability may have described what it does see.
        return None if clauses[-1].unable and not clauses[-1].concedes else False
    turned = any(clause.turned for clause in clauses[unable[0] + 1 :]) if unable else False
    return True if unable and not (answering or polar or turned) else None


class _Clause(Struct, frozen=True):
    """What one clause of a response does."""

    unable: bool
    cue: bool
    guesses: bool
    answers: bool
    bare: bool
    concedes: bool
    turned: bool

    @classmethod
    def of(cls, part: str, *, turned: bool) -> _Clause:
        whole = " ".join(words(part))
        text = _APOLOGY.sub("", whole)
        ends = [match.end() for pattern in _INABILITY if (match := pattern.search(text))]
        untold = _NOT_TOLD.search(text) and not _OTHERS.search(text)
        cue = bool(ends or untold or _CUE.search(text))
        stated = " ".join(words(without_lead_in(part))) if text == whole else text
        answers = bool({*words(stated)} - FUNCTION_WORDS - {"however"}) and not (
            cue or part.rstrip().endswith("?") or _AROUND.search(stated) or _REASON.match(stated)
        )
        return cls(
            unable=bool(ends),
            cue=cue or text != whole,
            guesses=_guesses(text[min(ends) :] if ends else text),
            answers=answers,
            bare=answers and not turned and len(text.split()) <= 4 and not AUXILIARIES & set(text.split()),
            concedes=_CONCESSION.match(text) is not None,
            turned=turned,
        )


def _clauses(text: str) -> Iterator[tuple[str, bool]]:
    """The clauses of a text, and whether each follows 'but'; 'although ..., it is' are two."""
    for sentence in sentences(text):
        for turn, statement in enumerate(statements(sentence)):
            split = _FIRST_COMMA.split(statement, 1) if _CONCEDES.match(statement) else [statement]
            for part in (clause for piece in split for clause in _CLAUSE.split(piece)):
                if words(part):
                    yield part, turn > 0


def _guesses(text: str) -> bool:
    """Whether a text guesses an answer; 'what it might be' and 'the image seems blurred' are none."""
    guess = _GUESS.search(text)
    if guess is None:
        return False
    before, after = text[: guess.start()], text[guess.end() :]
    return not (
        before.endswith("not ")
        or _INDIRECT.search(before)
        or _OF_INPUT.search(before)
        or _FAULT.search(after)
    )
