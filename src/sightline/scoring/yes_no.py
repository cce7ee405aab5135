"""Yes or no, as a response to options that say yes and no states it, in eight languages.

1. The words yes and no, where a label, a sentence or a conclusion states them.
2. A short assent or denial that is the response or its first clause ('Certainly.', 'Not quite.', 'False.').
   Words that also open a conversation ('Of course! ...') count only if what follows repeats the question.
3. A sentence that repeats the question, or denies it: with its words ('The door is open.'), or with a pronoun
   in the place of its subject and all other words ('It is not open.'). A sentence that says more or less
   ('It is open on Sundays.', 'It is closed.') states neither.

Both sides are read alike, and two statements that differ are none.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from functools import cache, lru_cache
from typing import NamedTuple

from sightline.scoring.answer_words import (
    FILL,
    TOKEN,
    Languages,
    expanded,
    label_pattern,
    languages_of,
    simplified,
    word_pattern,
    words_of,
)
from sightline.scoring.markup import plain_text
from sightline.scoring.mentions import Marked, Options, is_open, quoted, sentence_around, sentences_of
from sightline.scoring.predicates import PREDICATES, predicate_at_end
from sightline.scoring.text import lexicon
from sightline.scoring.word_forms import alike, content_of, shared_words, tokens_of


class Said(NamedTuple):
    """Whether a response says yes, None where it says both; the words that it reads."""

    yes: bool | None
    words: str


# -- The words yes and no

_STOP = r"(?=\W*(?:$|\n)|\s*[,.!;:，。！；：、—–\-(（)\]\"'」”»]|です|でした|입니다|이에요|예요|的)"
_BEGIN = r"(?:^|(?<=[.!?。！？\n:：→⇒])|(?<=[.!?:→⇒]\s))[\s\"'(\[*#\-「«“✓✔✅✗✘❌\ufe0f]*"


def worded(response: str, marked: Marked) -> Said | None:
    """Yes or no as a label states it, or as a sentence begins with it; None if it states neither."""
    languages = tuple(sorted({*marked.languages, "en"}))
    plain = word_pattern(r"^\W*({yes}|{no})(?:\W+\1)+\W*$", languages).sub(r"\1", plain_text(response))
    joined = r"[\s,]*(?:{either}|/)\s*"
    both = rf"^\W*(?:{{either}}\s+)?(?:{{yes}}{joined}{{no}}|{{no}}{joined}{{yes}})\W*(?:$|[.:,;])"
    if word_pattern(both, languages).match(plain):
        return Said(None, quoted(plain))
    polar = r"(?P<yes>{yes})|(?P<no>{no})"
    after_label = word_pattern(rf"{FILL}(?:{polar}){_STOP}", languages)
    labelled = [
        (label.start(), found, label[0] + found[0])
        for label in label_pattern(languages).finditer(marked.text)
        if (found := after_label.match(marked.text, label.end()))
    ]
    forms = (
        rf"{_BEGIN}(?:{polar})(?:{_STOP}|(?=\s+{{after_no}}))",
        rf"{{concludes}}[\s,，]*(?:{polar}){_STOP}",
        rf"(?<=[,，]\s)(?:{polar})(?=\s*(?:[,，–—.!:]|$))",
        rf"\b(?:most likely|probably|скорее|wahrscheinlich|probablement|probablemente)\s+(?:{polar}){_STOP}",
        rf"{{revises}}[\s,:.…]*(?:{polar}){_STOP}",
        rf"(?<=\s)(?:{polar})(?:입니다|이다)",
        rf"\bmit\s+(?:{polar})\s+(?:be)?antworten",
    )
    quotes = [
        (found.start(), found, found[0])
        for found in word_pattern(rf"[\"'“‘「『«„](?:{polar})[\"'”’」』»“]", languages).finditer(plain)
    ]
    leading = [
        (found.start(), found, found[0])
        for form in forms
        for found in word_pattern(form, languages).finditer(plain)
        if form is not forms[2]
        or not word_pattern("{unsure}", languages).search(sentence_around(plain, found.start())[0])
    ]
    leading.sort(key=lambda one: (one[0], one[1].end(), one[1]["yes"] is not None, one[2]))
    for text, said in ((marked.text, labelled), (plain, leading), (plain, quotes)):
        if said:
            left = [one for one in said if not _is_conditional(text, one[1], languages)]
            return _last(text, left, languages) if left else None
    return None


def _is_conditional(text: str, found: re.Match[str], languages: Languages) -> bool:
    """Whether a word is what a condition leads to: 'If it is ripe, the answer would be yes.'"""
    sentence, start = sentence_around(text, found.start())
    before = sentence[: found.end() - start]
    condition = word_pattern(r"{conditions}(?=\s|[\u3040-\u9fff\uac00-\ud7af])", languages)
    would = word_pattern("{would}", languages).search(before) is not None
    return condition.search(before) is not None and (would or len(condition.findall(sentence)) > 1)


def _last(text: str, said: Sequence[tuple[int, re.Match[str], str]], languages: Languages) -> Said:
    """The only statement, or the last one if it revises or concludes those that differ."""
    _, last, words = said[-1]
    value = last["yes"] is not None
    other = max(
        (found.end() for _, found, _ in said if (found["yes"] is not None) is not value), default=None
    )
    if other is not None:
        # Not within the stated word itself: 'Yes. No.' revises nothing, 'Yes. No, wait, no.' does.
        start, end = last.span("yes" if value else "no")
        turn = word_pattern("{revises}|{concludes}", languages)
        if not turn.search(text[:start], other) and not turn.search(text, end, end + 20):
            return Said(None, ", ".join(words.strip() for _, _, words in said))
    return Said(value, quoted(words))


# -- Assents and denials in other words


class _Assent(NamedTuple):
    """What a clause says as a whole: yes or no, whether it judges the question, opens or only doubts."""

    yes: bool
    judges: bool
    opens: bool
    doubts: bool


@cache
def _assents() -> dict[str, _Assent]:
    names = {
        "assents": True,
        "openers": True,
        "true": True,
        "dissents": False,
        "doubts": False,
        "false": False,
    }
    found: dict[str, _Assent] = {}
    for name, yes in names.items():
        for word in words_of(name):
            judges, opens, doubts = name in ("true", "false"), name == "openers", name == "doubts"
            before = found.get(word, _Assent(yes, False, False, False))
            found[word] = _Assent(yes, before.judges or judges, before.opens or opens, doubts)
    return found


_CLAUSE_ENDS = re.compile(r"[,;:，、；：–—]|\s-\s")
_MARKS = re.compile(r"[\s\"“”「」『』«».!。！,，、…*]+")
_LEFT_OR_RIGHT = re.compile(r"\b(?:left|right)\b", re.IGNORECASE)
_A_NOT_A = re.compile(r"([\u3400-\u9fff])[不没沒]\1|有[没沒]有|是否|能否|可否")


def assented(response: str, options: Options, question: str) -> Said | None:
    """The short assent or denial that is a response or its first clause; None if there is none."""
    plain = plain_text(response)
    if not options.sides or is_open(plain):
        return None
    if label := label_pattern(languages_of(plain)).match(plain):
        plain = plain[label.end() :].lstrip(" *\"'")
    first = (sentences_of(plain) or [""])[0]
    clause = _CLAUSE_ENDS.split(first, maxsplit=1)[0]
    for part in (first, clause):
        said = _clause_says(_MARKS.sub(" ", part.casefold()).strip(" '"), options, question)
        if said is not None:
            break
    else:
        return None
    rest = plain[plain.index(part) + len(part) :].strip(" \t\n,;:.!，。；：–—-")
    agrees = not rest or _agrees(rest, said, options, question)
    return None if agrees is False else Said(said.yes if agrees else None, quoted(plain))


def _clause_says(clause: str, options: Options, question: str) -> _Assent | None:
    said = _assents().get(clause)
    if said is None and not options.polar:
        # Yes and no to 'true' and 'false'.
        value = True if clause in words_of("yes") else False if clause in words_of("no") else None
        said = None if value is None else _Assent(value, True, False, False)
    if said is None or (said.doubts and len(options.texts) > 2):
        return None
    asked = _A_NOT_A.sub("", question.casefold())
    languages = languages_of(asked)
    # 'Right.' and 'Certainly.' may agree with a denial, 'False.' with what is called false.
    if word_pattern("{denies}|n't", languages).search(asked):
        return None
    if said.judges:
        called = word_pattern("{false}", languages).search(asked)
        if called and not word_pattern("{true}", languages).search(asked):
            return None
        if clause.endswith("right") and _LEFT_OR_RIGHT.search(asked):
            return None
    return said


def _agrees(rest: str, said: _Assent, options: Options, question: str) -> bool | None:
    """Whether what follows an assent leaves it standing; None if it contradicts it."""
    languages = languages_of(f"{question} {rest}")
    read = restated(rest, options, question) if question else None
    if read is not None:
        return True if read.yes is said.yes else None
    if "?" in rest or "？" in rest or word_pattern("{unsure}|{tentative}|{revises}", languages).search(rest):
        return False
    if not said.yes:
        return True
    if word_pattern("{denies}|{denied_before}|n't", languages).search(rest):
        return False
    if said.opens:
        asked = content_of(question)
        return bool(asked) and shared_words(asked, rest) >= 0.66 * len(asked)
    return word_pattern(r"^\W*{descriptions}", languages).match(rest) is None


# -- Sentences that repeat the question or deny it

_ELLIPSIS = re.compile(
    r"^\W*(?:it|they|he|she|there|this|that|these|those|we|you|i)\s+"
    r"(?:is|are|does|do|did|was|were|has|have|can|will)\s*(not|n't)?\W*$",
    re.IGNORECASE,
)


_FRAME = re.compile(
    r".*\b(?:for|among|according to|based on|given) [^?]*,\s*(?=(?:is|are|was|were|do|does|did|has|have) )",
    re.I,
)
"""What a question begins with before it asks: 'According to the map, is ...?'"""


def restated(response: str, options: Options, question: str) -> Said | None:
    """Yes for a response that states what a yes/no question asks, no for one that denies it."""
    plain = plain_text(response)
    if len(options.sides) != len(options.texts) or is_open(plain):
        return None
    if elliptic := _ELLIPSIS.match(expanded(plain)):
        return Said(not elliptic[1], quoted(plain))
    question = question[: at + 1] if (at := max(question.find("?"), question.find("？"))) >= 0 else question
    question = _FRAME.sub("", question)
    sentences = [part for part in sentences_of(plain) if not part.rstrip().endswith(("?", "？"))]
    if any(map(_NOT_SAID.search, sentences)):
        return None
    asked, languages = content_of(question), languages_of(f"{question} {plain}")
    if (
        _PERSON & asked
        and (nobody := next((i for i, one in enumerate(sentences) if _NOBODY.search(one)), None)) is not None
    ):
        sentences[nobody] = _NOBODY.sub("not a person", sentences[nobody])
    if said := _not_every(question, sentences, languages):
        return said
    question_denies = word_pattern("{denies}", languages).search(_A_NOT_A.sub("", question))
    if not asked or not sentences or question_denies:
        return None
    if said := _verdict(question, sentences, languages):
        return said
    for language in languages:
        if language in PREDICATES:
            if language == "zh":
                question, sentences = simplified(question), [simplified(sentence) for sentence in sentences]
            yes = predicate_at_end(question, sentences, language)
            return None if yes is None else Said(yes, quoted(" ".join(sentences)))
    said = _stated(question, sentences, asked, languages)
    ends = list(
        word_pattern(r"(?<!\bis )(?<!\bare ){concludes}\s+(?!that\b)", languages).finditer(sentences[-1])
    )
    if said is None and ends:
        said = _stated(question, [sentences[-1][ends[-1].end() :]], asked, languages)
    return said


def _not_every(question: str, sentences: Sequence[str], languages: Languages) -> Said | None:
    """No where a sentence says 'not all' to a question about all."""
    if not word_pattern("{every}", languages).search(question):
        return None
    every, asked = word_pattern("{every}", languages), content_of(question)
    not_every = word_pattern("(?:{not_every})([^,，;:、。.]*)", languages)
    for sentence in sentences:
        found = not_every.search(re.sub("[「」“”]", "", sentence))
        # 'Not all of the doors' says nothing about all windows.
        more = content_of(found[1]) - words_of("objects") if found else set()
        if found and every.search(sentence) and all(any(alike(one, word) for word in asked) for one in more):
            return Said(False, quoted(sentence))
    return None


def _stated(question: str, sentences: Sequence[str], asked: set[str], languages: Languages) -> Said | None:
    return (
        _emphasised(sentences, asked, languages)
        or _in_its_words(question, sentences, asked, languages)
        or _by_pronoun(question, sentences, languages)
    )


def _emphasised(sentences: Sequence[str], asked: set[str], languages: Languages) -> Said | None:
    """Yes where a Spanish clause begins with it and goes on with words of the question: 'sí lleva casco'."""
    form = word_pattern(r"(?:^|[,;:]|{concludes})\s*sí\s+(?!mism)(?P<rest>.+)", languages)
    turns = word_pattern("{turns}|{denies}", languages)
    for found in filter(None, map(form.search, sentences if "es" in languages else ())):
        if shared_words(asked, found["rest"]) and not turns.search(found["rest"]):
            return Said(True, quoted(found.string))
    return None


def _verdict(question: str, sentences: Sequence[str], languages: Languages) -> Said | None:
    """What a sentence calls the statement that the question gives: 'The claim is false.'"""
    if word_pattern("{false}", languages).search(question):
        return None
    verdict = r"(?P<no>{wrong}|{false})|(?P<yes>{holds}|{true})"
    between = r"(?:[\s,]*(?:{links}|{carries}|{concludes}|{denies}|proposée?|ist|gegebene)){0,5}[\s,]*"
    form = rf"{{claims}}{between}(?:{verdict})"
    of_adjective = r"|(?<![^\W\d_])(?P<not>{wrong})\s+{claims}"
    pattern = word_pattern(form + of_adjective, languages)
    unsure = word_pattern("{unsure}|{tentative}", languages)
    found = [(one, match) for one in sentences if (match := pattern.search(one)) and not unsure.search(one)]
    said = set()
    for sentence, match in found:
        yes, tail = match["yes"] is not None, sentence[match.end() :].strip(" .!。的")
        if set(tokens_of(sentence)) & (_LIMITS | {"would"}) or word_pattern("{turns}", languages).search(
            tail
        ):
            return None
        between = sentence[match.start() : match.start("yes" if yes else "no")] if not match["not"] else ""
        denied = word_pattern("{denies}", languages).search(between)
        if (denied and not yes) or (yes and tail and match["yes"].casefold() in words_of("true")):
            return None
        said.add(yes and not denied)
    return Said(said.pop(), quoted(found[0][0])) if len(said) == 1 else None


def _in_its_words(
    question: str, sentences: Sequence[str], asked: set[str], languages: Languages
) -> Said | None:
    """What the sentence says that repeats the words of the question."""
    unsure = word_pattern("{unsure}|{tentative}", languages)
    if word_pattern(r"^\W*{no}\s+\w", languages).match(sentences[0]) and not unsure.search(sentences[0]):
        # 'No fracture is seen', 'No se ve ninguna bicicleta'
        first = re.split(r"[,，;]|\bbut\b|\bpero\b", sentences[0])[0]
        if "es" in languages or shared_words(asked, first):
            return Said(False, quoted(sentences[0]))
    sentence = max(sentences, key=lambda one: shared_words(asked, one))
    if unsure.search(sentence):
        return None
    denies = word_pattern("{denies}", languages)
    clauses = [clause for clause in re.split(r"[,，;]|\bbut\b", sentence) if shared_words(asked, clause)]
    if any(denies.search(clause) for clause in clauses):
        if _NOT_ONLY.search(sentence):
            return None
        whole = shared_words(asked, sentence) >= 0.75 * len(asked)
        whole = whole or any(
            denies.search(one) and _repeats(question, one, languages, denied=True) for one in clauses
        )
        if _THERE_IS.search(question) and _places(_without_image(sentence, languages)) - _places(question):
            return None  # 'There is no dog on the sofa.'
        return Said(False, quoted(sentence)) if whole else None
    parts = [sentence, *re.split(r"[,，;:]", sentence)]
    if any(
        (one := _assents().get(_MARKS.sub(" ", part.casefold()).strip())) and not one.yes for part in parts
    ):
        return None  # 'On the contrary, the door is open.'
    if denies.search(sentence) or not any(_repeats(question, part, languages) for part in parts):
        return None
    return Said(True, quoted(sentence))


_NOT_ONLY = re.compile(
    r"\b(?:not (?:only|just)|nicht nur|pas (?:que|seulement)|no (?:solo|sólo)|не только)\b", re.IGNORECASE
)
_NOT_SAID = re.compile(
    r"\b(?:(?:would|could|can|do)(?:n't| not)|cannot) (?:say|claim|call|be sure)"
    r"|\b(?:würde|kann) .*nicht (?:sagen|behaupten)"
    r"|\b(?:dirais|peut) pas (?:dire)?|\bno (?:diría|se puede decir)|\bне сказал|\bнельзя сказать"
    r"|(?:\bnot|n't) (?:conclusively|clearly|definitively|explicitly) (?:show|indicat|depict|confirm)"
    r"|\b(?:I|we)(?: do not|(?: do)?n't| did not| didn't) (?:\w+ )?have\b|\bI (?:lack|have no (?!doubt))"
    r"|\b(?:ich|wir) haben? (?:\w+ )?kein|\bn'(?:ai|avons) (?:pas|aucun)|\bno (?:tengo|tenemos|dispongo)\b"
    r"|\bnão (?:tenho|temos|disponho)\b|у меня нет|не располагаю|我(?:并)?[没沒]有|手元に.*ありません"
    r"|(?:저는|제게는).*(?:없습니다|않습니다)",
    re.IGNORECASE,
)
_PERSON = lexicon("person people anyone someone somebody anybody")
_NOBODY = re.compile(r"\b(?:nobody|no one)\b|\banyone\b|\banybody\b", re.IGNORECASE)
_PLACES = lexicon(
    """on in under above below behind between at near inside outside left right auf unter über neben hinter
    vor links rechts sur sous dans devant derrière gauche droite sobre debajo encima detrás delante izquierda
    derecha на под над за перед в слева справа"""
)


_THERE_IS = re.compile(
    r"^\W*(?:(?:is|are|was|were) there|(?:can|do) you (?:see|find)|gibt es|sieht man|y a-t-il"
    r"|est-ce qu'il y a|voit-on"
    r"|hay|se ven?|есть ли|имеется ли|имеются ли|вид(?:ен|на|но|ны) ли)\b|\bzu (?:sehen|erkennen|finden)\W*$"
    r"|^\W*(?:is|are) (?:an?|any|some)\b.*\b(?:visible|present|shown|depicted)\b",
    re.IGNORECASE,
)
"""A question whether something is there."""
_SEEN = lexicon(
    """visible present shown depicted see seen find found there sehen erkennen finden vorhanden gibt voit
    voyez hay ve ven aparece видно есть имеется"""
)
_OF = lexicon("of with from von mit des d de du avec con en из с") | _PLACES
_INDEFINITE = lexicon("a an ein eine einen einem einer un une una des")
_PASSED = lexicon(
    """seem seems appear appears looks indeed also therefore so thus hence currently now still already both
    scheint scheinen also auch tatsächlich daher somit damit noch gerade derzeit eindeutig deutlich
    wahrscheinlich höchstwahrscheinlich vermutlich offensichtlich sehr very bien donc aussi clairement
    semble semblent effectivement actuellement también sí claramente parece parecen efectivamente
    probablement probablemente вероятно действительно значит также сейчас явно похоже"""
)
_SOME = lexicon(
    """some most many few several half einige manche meisten mehrere certains certaines plupart plusieurs
    algunos algunas mayoría varios некоторые большинство многие несколько"""
)
_LIMITS = lexicon(
    """only almost nearly partly half toy fake painted sometimes until unless except nur fast kaum halb
    teilweise hälfte halbvoll presque seulement partiellement moitié sauf sólo solo casi parcialmente hasta
    mitad excepto только почти частично наполовину кроме halfway if when whenever
    wenn falls sofern si quand lorsque cuando если когда"""
)


def _repeats(question: str, sentence: str, languages: Languages, *, denied: bool = False) -> bool:
    """Whether a sentence states what a question asks: its words, in their order, and the same places.

    A denial may leave out where: 'There is no dog.' denies 'Is there a dog on the bed?'
    """
    common, asked = words_of("common", languages), tokens_of(_without_image(question, languages))
    there_is = _THERE_IS.search(question) is not None
    kept = [i for i, word in enumerate(asked) if word not in common and not (there_is and word in _SEEN)]
    stated = tokens_of(sentence)
    at = [next((i for i, other in enumerate(stated) if alike(asked[k], other)), -1) for k in kept]
    missing = [k for k, place in zip(kept, at, strict=True) if place < 0]
    if missing and not _may_be_left_out(asked, missing, kept, anywhere=there_is and denied):
        # 'The triangles are congruent.' for 'Are the two triangles congruent?'
        where = dict(zip(kept, at, strict=True))
        heads = [k + 1 if k + 1 not in missing else k + 2 for k in missing]
        known = [where.get(k, -1) > 0 and k != kept[-1] and stated[where[k] - 1] in _DEFINITE for k in heads]
        if not all(known) or any(asked[k] in _PLACES for k in missing):
            return False
    found = [place for place in at if place >= 0]
    if found and _parts(stated, min(found), max(found), asked, common, there_is=there_is):
        return False
    if not found or _LIMITS & set(stated) - set(asked) or (not there_is and _SOME & set(stated) - set(asked)):
        return False
    if (not missing and not _in_order(found, asked, kept, languages)) or (missing and found != sorted(found)):
        return False
    places = _places(_without_image(sentence, languages))
    if there_is and not places & _places(" ".join(asked)) and (missing or not _places(" ".join(asked))):
        return not _goes_on(stated, found[-1], languages)
    if missing:
        return not places
    if _places(question) == _places(sentence):
        return True
    # 'Is there a dog in the image?': 'I can see a dog.' says no more and no less.
    more = content_of(sentence) - words_of("articles") - words_of("pronouns") - {"i", "we"}
    here = _places(_without_image(question, languages)) == places
    return here and all(any(alike(word, other) for word in asked) for other in more)


def _parts(
    stated: Sequence[str],
    first: int,
    last: int,
    asked: Sequence[str],
    common: frozenset[str],
    *,
    there_is: bool,
) -> bool:
    """Whether words part those of the question, which may then be of two things: 'the shop next door'."""
    passed = common | _PASSED | _AUXILIARIES | words_of("articles") | words_of("pronouns") | _PLACES
    more = [
        i
        for i in range(first, last)
        if stated[i] not in passed
        and stated[i][-2:] != "ly"
        and not any(alike(stated[i], one) for one in asked)
    ]
    # 'is wearing a red hat'
    described = bool(more) and stated[more[0] - 1] in _INDEFINITE and (there_is or last < more[0] + 4)
    return bool(more) and not described


def _may_be_left_out(
    asked: Sequence[str], missing: Sequence[int], kept: Sequence[int], *, anywhere: bool
) -> bool:
    """Whether words only say which subject is meant: 'on the shelf' of 'Are the cups on the shelf full?'"""
    first, last = missing[0], missing[-1]
    before = [
        word for word in asked[max(first - 3, 0) : first] if word not in words_of("articles") | _DEFINITE
    ]
    together = all(k in missing for k in kept if first <= k <= last)
    led = bool(before) and before[-1] in _OF and any(k < first for k in kept)
    return together and led and (anywhere or any(k > last for k in kept))


def _in_order(at: Sequence[int], asked: Sequence[str], kept: Sequence[int], languages: Languages) -> bool:
    """Whether words stand in the order of the question, but for its verb or its subject that moved."""
    if list(at) == sorted(at):
        return True
    if "en" in languages:  # 'The refrigerator door is open.' for 'the door of the refrigerator'
        of = "of" in asked[kept[0] : kept[1]]
        return of and [at[1], at[0], *at[2:]] == sorted(at)
    # A verb goes behind its subject; 'lleva corbata el hombre' has its object first, which has no article.
    object_first = languages[0] == "es" and kept[1] == kept[0] + 1
    return list(at[1:]) == sorted(at[1:]) or ((len(at) == 2 or object_first) and at[-1] < at[0] < at[1])


def _goes_on(stated: Sequence[str], at: int, languages: Languages) -> bool:
    """Whether an English noun may be a part of another one: 'dog' of 'dog house'."""
    if "en" not in languages or at + 1 >= len(stated):
        return False
    word = stated[at + 1]
    return not (
        word in words_of("common") | _PLACES | words_of("pronouns")
        or word[-3:] == "ing"
        or word[-2:] in ("ed", "ly")
    )


def _places(text: str) -> set[str]:
    return {word for word in tokens_of(text) if word in _PLACES}


def _without_image(text: str, languages: Languages) -> str:
    return word_pattern(r"(?:in|on|im|auf|dans|sur|en|на|в)\s+(?:[^\W\d]+['’\s]\s*)?{images}", languages).sub(
        " ", text
    )


def _by_pronoun(question: str, sentences: Sequence[str], languages: Languages) -> Said | None:
    """What the first sentence says with a pronoun in the place of the subject, or without it."""
    clause, turned = sentences[0], ""
    if parted := word_pattern(r"\s*(?:[,;:–—]|{turns}).*$", languages).search(clause):
        clause, turned = clause[: parted.start()], parted[0]
    rest = " ".join(sentences[1:])
    changes = word_pattern("{unsure}|{tentative}|{revises}|{turns}|{denies}", languages)
    if changes.search(rest) or word_pattern("{unsure}|{tentative}", languages).search(sentences[0]):
        return None
    for language in languages:
        yes = _echo(question, clause, language)
        if yes is None:
            yes = _other_words(question, clause, language)
        # 'It is open, but not for visitors.' says neither; 'It is not green but red.' says no.
        if yes is not None and not (yes and changes.search(turned)) and not _LIMITS & set(tokens_of(turned)):
            return Said(yes, quoted(sentences[0]))
    return None


def _echo(question: str, clause: str, language: str) -> bool | None:
    """Whether a few words are the end of the question or deny it: 'Green.', 'Not green.'"""
    said, asked = tokens_of(expanded(clause)), tokens_of(re.split(r",\s", question)[0])
    denials, passed = (
        words_of("denies", (language,)),
        words_of("articles", (language,)) | {"yet", "noch", "encore"},
    )
    either = words_of("either", (language,)) & set(asked)
    if not said or len(said) > 4 or said[0] in _DEFINITE or either:
        return None
    left = [word for word in said if word not in denials | passed | words_of("true") | words_of("false")]
    content = [word for word in asked if word not in words_of("common")]
    if (
        not left
        or not content
        or len(left) > len(asked) - 2
        or asked[-len(left) :] != left
        or left[-1] != content[-1]
    ):
        return None
    denied = sum(word in denials for word in said)
    return not denied if denied < 2 else None


_INVERTED = re.compile(r"-(?:t-)?(?:il|elle|ils|elles|on|ce)\b", re.IGNORECASE)
_AUXILIARIES = lexicon("is are was were do does did has have had can could will would am")
_NO_NOUN = re.compile(r".*(?:ing|ed|ly)$")
_DEGREES = lexicon(
    """very quite too so fully completely partly half mostly almost nearly slightly bright dark deep pale wide
    clear pure all also both still already only just"""
)
_MEN = lexicon("man men boy boys gentleman father son guy king actor")
_WOMEN = lexicon("woman women girl girls lady mother daughter queen actress")
_PERSONS = _MEN | _WOMEN | lexicon("person people child children player players driver adult baby")


_DEFINITE = lexicon(
    "both beiden the this that these those der die das le la les l el los las his her their its my your"
)


@lru_cache(maxsize=512)
def _asked_words(question: str, language: str) -> tuple[tuple[str, ...], int] | None:
    """The words of a question, and from where on its subject is looked for; None if that cannot be told.

    The subject follows the first article of the question; Russian has none.
    """
    text = _without_image(_INVERTED.sub(" ", expanded(question)), (language,))
    words = tuple(word.casefold() for word in TOKEN.findall(re.split(r"[,:.]\s+(?=\S)", text)[-1]))
    articles = words_of("articles", (language,)) | _DEFINITE
    if words_of("pronouns", (language,)) & set(words) - articles:
        return None
    if language == "ru":
        return words, 0
    if language == "en" and (not words or words[0] not in _AUXILIARIES):
        return None
    first = next((i for i, word in enumerate(words) if word in articles), len(words))
    if language == "en" and len(words) > 1 and words[1] not in articles:
        return words, 1  # 'Are people ...?'
    return (words, first + 1) if first < len(words) and words[first] in _DEFINITE else None


def _other_words(question: str, sentence: str, language: str) -> bool | None:
    """Whether a sentence says all that a question asks of its subject, which it calls by a pronoun."""
    if (parted := _asked_words(question, language)) is None:
        return None
    asked, start = parted
    said = [word.casefold() for word in TOKEN.findall(_CAN_NOT.sub("can not", expanded(sentence)))]
    pronouns, denials = words_of("pronouns", (language,)), words_of("denies", (language,))
    empty = words_of("common", (language,)) | words_of("articles") | _DEFINITE | _AUXILIARIES
    content = [i for i, word in enumerate(asked) if word not in empty]
    if not said or not content or (said[0] not in pronouns and language != "es"):
        return None
    pronoun = said.pop(0) if said[0] in pronouns else ""
    passed = denials | words_of("articles", (language,)) | {"ne", "n", "l", "d", "de"}
    if language == "en":
        passed |= _DO
    passed |= _STILL | _PASSED
    denied = sum(word in denials for word in said)
    matched: set[int] = set()
    more: list[int] = []
    for place, word in enumerate(said):
        at = next((i for i, other in enumerate(asked) if i not in matched and alike(word, other)), None)
        if at is not None:
            matched.add(at)
        elif (word in _ONE_OF and place == len(said) - 1) or (word == "en" and language == "fr"):
            matched.add(content[-1])  # 'She is not wearing one.'
        elif word not in passed:
            more.append(place)
    if more and (denied or not _tells_more(said, more, asked)):
        return None
    missing = [i for i in content if i not in matched]
    if denied and len(missing) > 1 and missing[-1] + 1 in matched and asked[missing[-1] - 1] in _INDEFINITE:
        missing.pop()  # 'not wearing a hat' is not wearing a red one
    subject = (
        missing[0] if language == "ru" and missing else min((i for i in content if i >= start), default=-1)
    )
    if not missing or len(missing) == len(content) or denied > 1 or missing[0] != subject:
        return None
    # 'It is red.' leaves a part of 'Is the car big and red?' open.
    parts = words_of("either", (language,)) & set(asked)
    if parts - set(said) or _places(" ".join(said)) != _places(" ".join(asked[missing[-1] + 1 :])):
        return None
    return not denied if _is_subject(asked, missing, pronoun, language) else None


_STILL = lexicon("yet anymore noch mehr encore plus ещё еще уже todavía aún ya")
_ONE_OF = lexicon("one any keinen keine keins keines einen eine eins ninguno ninguna uno una")
_WITH = lexicon("of with de à mit aus con")


def _tells_more(said: Sequence[str], more: Sequence[int], asked: Sequence[str]) -> bool:
    """Whether words only describe what the question leaves open: 'a red hat', 'un chapeau de paille'."""
    first = more[0]
    if not _INDEFINITE & set(asked) or set(said) & _LIMITS or len(more) > 4:
        return False
    named = {i for i, word in enumerate(said) if any(len(word) > 2 and alike(word, other) for other in asked)}
    behind = first > max(named, default=first) and (
        said[first - 1] in _WITH or said[first - 2] in _WITH or first == max(named) + 1 == len(said) - 1
    )
    return behind or (said[first - 1] in _INDEFINITE and more[-1] + 1 in named)


_CAN_NOT = re.compile(r"\bca(?:n't|n?not|\s+not)\b", re.IGNORECASE)
_DO = lexicon("do does did")


def _is_subject(asked: Sequence[str], missing: Sequence[int], pronoun: str, language: str) -> bool:
    """Whether the words that a sentence leaves out are one noun that its pronoun may stand for."""
    of = next((i for i in range(missing[0] + 1, missing[-1]) if asked[i] in _OF), None)
    if of is not None and all(i > of for i in missing[1:]):
        missing = missing[:1]  # 'the man on the left'
    noun = asked[missing[-1]]
    if language != "en":
        return len(missing) == 1
    if len(missing) == 2:
        compound = missing[1] == missing[0] + 1 and (
            noun != "light" or asked[missing[0]] in ("traffic", "street")
        )
        if not compound or noun in _DEGREES or _NO_NOUN.match(noun):
            return False
    elif len(missing) != 1:
        return False
    others = {"he": _WOMEN, "she": _MEN, "it": _PERSONS}
    return noun not in others.get(pronoun, frozenset())
