"""Whether a statement leaves its question open: stated inability, missing evidence, or a hedge."""

from __future__ import annotations

import re

from sightline.scoring.short_texts import cached_for_short_texts
from sightline.scoring.text import FUNCTION_WORDS, is_question, stem, words

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

_LEAVES_OPEN = tuple(
    re.compile(pattern)
    for pattern in (
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
        any(pattern.search(text) for pattern in _LEAVES_OPEN)
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
