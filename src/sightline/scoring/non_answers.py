"""Whether a response refuses to answer: it states an inability and gives no answer."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from functools import cache

from msgspec import Struct

from sightline.scoring.text import (
    AUXILIARIES,
    FUNCTION_WORDS,
    cached_for_short_texts,
    is_question,
    sentences,
    statements,
    stem,
    without_lead_in,
    words,
)

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
_INABILITY = (
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


@cache
def _compiled(patterns: Sequence[str]) -> Sequence[re.Pattern[str]]:
    """Long lists, compiled by their first user: it takes 15 ms, and many evaluations read only letters."""
    return tuple(map(re.compile, patterns))


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
        ends = [match.end() for pattern in _compiled(_INABILITY) if (match := pattern.search(text))]
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


# -- Whether a statement leaves its question open: stated inability, missing evidence, or a hedge

_QUALIFIER = (
    r"(?!(?:because|of|the|an?|in|on|to|is|it|i|he|she|we|you|they|this|that|as|since|and|but|or|for|with"
    r"|see)\b)\w+"
)
"""A word between 'no' and its noun; after 'No, ...' a clause begins instead."""

_FIND_OUT = (
    r"(?:determin|tell|know|answer|identif|conclu|confirm|decid|ascertain|infer|specif|establish|judge\b"
    r"|assess|predict|guess|verif|discern|distinguish|recogni[sz]|interpret|deduc|figure"
    r"|decide|make (?:\w+ ){0,3}?out"
    r"|(?:be )?read\b|provid\w+ (?:\w+ ){0,2}(?:answer|information|assistance|response)|be sure|be certain"
    r"|be (?:seen|viewed|drawn|reached|given|said)\b|say (?:for|with|whether|if|which|what|who))"
)
_HELP = (
    r"(?:see|view|say|tell|help|assist|comment|respond|process|access|analy[sz]e|provide|give|offer"
    r"|fulfil+|comply|comprehend|make any|find any|describe|speculate|do (?:this|that))"
)
_EVIDENCE = r"(?:evidence|indications?|signs?|proof|hints?|clues?|suggestions?|reason to)"
_NEEDED = (
    r"(?:ideas?|answers?|comments?|info|information|data|context|details?|knowledge|telling|knowing"
    r"|opinions?|conclusions?|certainty|basis|judge?ments?|consensus|response|preference|guess"
    r"|description|(?:ways?"
    r"|means) (?:to|of))"
)
_RECORD = (
    r"(?:image|images|attachment|picture|photo|photograph|context|question|text|scene|caption|description"
    r"|information)"
)
_SHOW = (
    r"(?:say|show|mention|specif|indicat|provid|reveal|give|tell|contain|includ|state\b|clarif|suggest|depict"
    r"|display|offer|make it|have)"
)
_PRESENT = (
    r"(?:shown|visible|given|provided|mentioned|present|available|seen|found|depicted|displayed|specified"
    r"|label+ed|stated|detected|legible|readable"
    r"|attached|uploaded|included|supplied|shared|loaded|accessible)"
)
_SEND = r"(?:attach|upload|includ|provid|shar|suppl|send|sent|load)\w*"
_ONE = r"(?:it|they|you|one|he|she|i|we|this|that|some|others|the \w+)"
_ANY = r"(?:either|any|both) (?:one|direction|way|option|answer)s?"
_LACK = (
    r"(?:no|not any|not enough|not sufficient|without(?: any| more| enough| further)?|lack(?:s|ing)?(?: of)?"
    r"|insufficient|inadequate|too little"
    r"|(?:needs?|requires?|want|wants|give me|provide) (?:\w+ ){0,2}?(?:more|additional|further)"
    r"|not (?:have|see|find|give|provide|contain|offer|include|got)(?: any| enough| a| the)?)"
)

_LEAVES_OPEN = (
    rf"\b(?:not|unable|impossible|difficult|hard|tough|tricky|insufficient|no way|never|nobody|no one"
    rf"|unclear|uncertain|no {_QUALIFIER})(?: \w+){{0,5}}? {_FIND_OUT}",
    rf"(?:^|\b(?:i|we|one|you|sorry|but|and|am|are|is|model|assistant) )(?:\w+ly )?"
    rf"(?:unable|not able|can not|could not|not allowed|not possible|will not|nobody can|no one can)"
    rf"(?: \w+ly| even)?(?: be)?(?: to)?(?: \w+ly)? {_HELP}",
    rf"\b(?:hard|difficult|impossible|tough|tricky|unable|nobody can|no one can|who can|not possible)"
    rf" (?:to )?(?:\w+ly )?{_HELP}",
    r"\bnot(?: \w+)? (?:clear|certain|sure|known|apparent|obvious|evident"
    r"|specified|stated|mentioned|provided|given|defined|available|indicated|conclusive|relevant)\b",
    r"\b(?:unclear|uncertain|unknown|undetermined|ambiguous|inconclusive|unspecified|indeterminate"
    r"|undecided|unsure|illegible|unreadable|unanswerable|undeterminable|unidentifiable|debatable"
    r"|subjective)\b",
    rf"\b{_LACK} (?:{_QUALIFIER} ){{0,3}}?{_NEEDED}\b",
    rf"\b(?:more|additional|further) (?:{_QUALIFIER} ){{0,3}}?{_NEEDED} (?:\w+ )?"
    r"(?:needed|required|necessary|helpful)\b|^(?:more|additional|further) \w+(?: please)?$",
    r"\bn a$|^no (?:comment|clue)s?\b|^(?:not applicable|no|not) (?:answer|idea)s?\b|\bbeats me\b",
    r"\bvar(?:y|ies) (?:by|from|between|across|depending)\b|\bgr[ae]y area\b|\bdepend(?:s|ing"
    r"|ent)? ?(?:(?:up)?on\b|$)|\bit (?:all )?(?:depends|varies)\b|^depends\b",
    rf"^(?:{_ONE} )?(?:(?:can|could|may|might|will|is|are) )?(?:\w+ )?(?:in |from )?{_ANY}"
    r"(?: (?:works?|(?:is|are|(?:could|can|may|might|would) be)"
    r" (?:\w+ly )?(?:possible|plausible|correct|right|true|fine|valid)))?$"
    r"|\bboth (?:(?:are|is|could be|can be|may be|might be) )?(?:\w+ly )?"
    r"(?:possible|plausible|correct|right|true)\b",
    r"\b(may|might|could)(?: (?!not\b)\w+){0,6}? (?:may|might|could) (?:\w+ )?not\b"
    r"|\b(may|might|could) not(?: \w+){0,6}? (?:may|might|could)\b"
    rf"|\b(?:may|might|could) be(?: \w+){{1,4}}? {_ONE} (?:may|might|could) (?:also )?be\b",
    rf"\b(is|are|was|were|do|does|can) (?:and|but) (?:{_ONE} )?\1 not\b",
    r"^(?!.*\bwhether\b).*\bor (?:maybe |perhaps |possibly )?not$",
    r"\b(?:could|can|may|might) be (?:either|both|any|neither)\b",
    r"\bmatter of (?:\w+ )?(?:opinion|perspective|interpretation|taste)\b|\bopen to (?:\w+ )?interpret",
    r"\bnot (?:necessarily|always)$|^(?:sometimes|it varies|equally likely)$|\bfifty fifty\b|^50 50\b",
    r"^(?:it )?(?:is )?(?:maybe|perhaps|possibly|potentially|could be|might be|may be|conceivably"
    r"|it may|might|might not be)"
    r"(?: (?:yes|no|not|so|and|or|but|it|is|both|either|maybe|perhaps|possibly))*$",
    r"\bi (?:am )?(?:(?:so|very) )?(?:sorry|apologi[sz]e)\b|^(?:sorry|apologies)\b",
    r"\bas an? (?:\w+ )?(?:ai|language model|vision model|assistant)\b|\bi am (?:just |only )?an ai\b",
    r"^(?:to some (?:extent|degree)|somewhat|partly|partially|in part|kind of|sort of|more or less)$"
    r"|\b(?:tricky|tough|good|difficult|hard) (?:one|question)$",
    rf"\b{_RECORD}s?(?: \w+){{0,3}}?"
    r" (?:failed|fails|unable|(?:do|does|did|is|are|was|were|will|can) not)(?: to)?"
    r" (?:be )?(?:load|open|display|upload|render)",
    rf"^(?:the )?{_RECORD}s? not {_PRESENT}|^nothing (?:\w+ )?{_PRESENT}$",
    r"\b(?:not|never|no one|nobody|forgot to|please|could you|can you|kindly|need to|must) (?:\w+ )?"
    rf"{_SEND} (?:\w+ ){{0,2}}?{_RECORD}",
    rf"\bno {_RECORD}s?(?: here| to (?:see|look at|view)| (?:came|comes) through)?$",
    rf"\b{_RECORD} (?:is|was|are|seems|appears) (?:to be )?missing\b",
    rf"\bnot (?:seem|appear) to be (?:an?|any) {_RECORD}"
    rf"|\b(?:no access to|lack|missing) (?:the|this|any|an?) {_RECORD}",
    rf"\btoo \w+ (?:away )?(?:for \w+ )?to (?:\w+ly )?{_FIND_OUT}",
    r"\bi (?:(?:would|will) )?(?:rather|prefer) not\b|\bi (?:refuse|decline)\b|^(?:sorry )?no can do$"
    r"|\bgood as mine\b|\bi wish i knew\b|^dunno\b|\bundecidable\b"
    r"|\bneither confirm nor deny\b|\babstain\b|\bnot (?:have )?enough to go (?:on|by)\b",
    r"^i (?:do not|can not) know$|\bnot a (?:simple )?yes or no question\b",
)
_PERCEPTION = re.compile(r"\b(?:see|seen|visible|view)\b", re.IGNORECASE)
_NO_PROOF = re.compile(rf"\b{_LACK} (?:{_QUALIFIER} ){{0,3}}?{_EVIDENCE}\b|\bnothing (?:\w+ ){{0,5}}?{_SHOW}")
_NOT_SHOWN = re.compile(
    rf"\b{_RECORD}(?: \w+){{0,4}}? (?:(?:do|does|did|can|could|is|are|has|have) not|lacks?)"
    rf"(?: \w+){{0,2}}? ?{_SHOW}"
    rf"|\bno (?:{_QUALIFIER} ){{1,4}}?(?:(?:is|are|was|were|can be|could be) )?(?:\w+ly )?{_PRESENT}\b"
    rf"|\b(?:there (?:is|are|was|were)|i (?:can )?see) no (?:{_QUALIFIER} ){{1,4}}?in (?:the"
    rf"|this) {_RECORD}\b"
    rf"|\b(?:is|are|was|were) not (?:\w+ )?(?:{_PRESENT}|in (?:the|this) {_RECORD})\b"
    rf"|\b{_RECORD}(?: \w+){{0,3}}? too (?!much|many)\w+|\bresolution (?:is|was) too\b"
    rf"|\bi (?:do not|can not|could not) (?:\w+ly )?(?:see|find|detect|spot|notice)\b|^i see no\b"
)


@cached_for_short_texts
def declines(statement: str, question: str = "") -> bool:
    """Whether a statement leaves its question open.

    It states that the answer cannot be found ('It is hard to say', 'No one knows'), that evidence is missing
    ('No information is given', 'There are no clues'), or it hedges ('It depends', 'Perhaps', 'Both are
    possible'). A statement that nothing shows what the question asks ('no sign of danger' for 'Is it
    dangerous?') does not: it may mean no.

    >>> declines("It is not possible to determine whether he is leaving."), declines("He can't turn.")
    (True, False)
    >>> declines("There is no sign of danger.", "Is it in danger?"), declines("No idea.", "Is it in danger?")
    (False, True)
    """
    text = " ".join(words(statement))
    if _PERCEPTION.search(question):
        text = _PERCEPTION.sub("", text)
    return is_question(statement) or (
        any(pattern.search(text) for pattern in _compiled(_LEAVES_OPEN))
        or _lacks(_NO_PROOF, text, question)
        or _lacks(_NOT_SHOWN, text, question)
    )


def _lacks(missing: re.Pattern[str], text: str, question: str) -> bool:
    """Whether a text states that something is missing, other than what the question itself asks about."""
    return bool(missing.search(text)) and not _names_focus(text, question)


def _names_focus(text: str, question: str) -> bool:
    """Whether a text names what a question asks for: its last content word, apart from where it is seen.

    'her ear' in 'Can we see her ear in the image?', but not 'the person' in 'Is the person in danger?'.
    """
    matter = [
        stem(word) for word in words(question) if word not in FUNCTION_WORDS and not re.match(_RECORD, word)
    ]
    said = set(map(stem, words(text)))
    return bool(matter) and any(_same_root(matter[-1], one) for one in said)


def _same_root(one: str, other: str) -> bool:
    """Whether a stem begins with the other one: 'danger', 'dangerous'."""
    short, long = sorted((one, other), key=len)
    return short == long or (len(short) > 3 and long.startswith(short))
