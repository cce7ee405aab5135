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

from sightline.scoring.mentions import (
    FILL,
    TOKEN,
    Languages,
    Marked,
    Options,
    alike,
    content_of,
    expanded,
    is_open,
    label_pattern,
    languages_of,
    plain_text,
    quoted,
    sentence_around,
    sentences_of,
    shared_words,
    tokens_of,
    word_pattern,
    words_of,
)
from sightline.scoring.text import lexicon


class Said(NamedTuple):
    """Whether a response says yes, None where it says both; the words that it reads."""

    yes: bool | None
    words: str


# -- The words yes and no

_STOP = r"(?=\W*(?:$|\n)|\s*[,.!;:，。！；：、—–\-(（)\]\"'」”»]|です|でした|입니다|이에요|예요|的)"
_BEGIN = r"(?:^|(?<=[.!?。！？\n:：→⇒])|(?<=[.!?:→⇒]\s))[\s\"'(\[*#\-「«“]*"


def worded(response: str, marked: Marked) -> Said | None:
    """Yes or no as a label states it, or as a sentence begins with it; None if it states neither."""
    languages = tuple(sorted({*marked.languages, "en"}))
    plain = word_pattern(r"^\W*({yes}|{no})(?:\W+\1)+\W*$", languages).sub(r"\1", plain_text(response))
    both = r"^\W*(?:{yes}\s*(?:{either}|/)\s*{no}|{no}\s*(?:{either}|/)\s*{yes})\W*$"
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
        rf"(?<=[,，]\s)(?:{polar})(?=\s*(?:[,，–—.!]|$))",
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
            return _last(text, said, languages)
    return None


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


def restated(response: str, options: Options, question: str) -> Said | None:
    """Yes for a response that states what a yes/no question asks, no for one that denies it."""
    plain = plain_text(response)
    if len(options.polar) != len(options.texts) or is_open(plain):
        return None
    if elliptic := _ELLIPSIS.match(expanded(plain)):
        return Said(not elliptic[1], quoted(plain))
    question = question[: at + 1] if (at := max(question.find("?"), question.find("？"))) >= 0 else question
    sentences = [part for part in sentences_of(plain) if not part.rstrip().endswith(("?", "？"))]
    asked, languages = content_of(question), languages_of(f"{question} {plain}")
    question_denies = word_pattern("{denies}", languages).search(_A_NOT_A.sub("", question))
    if not asked or not sentences or question_denies:
        return None
    return _in_its_words(question, sentences, asked, languages) or _by_pronoun(question, sentences, languages)


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
        whole = shared_words(asked, sentence) >= 0.75 * len(asked)
        return Said(False, quoted(sentence)) if whole else None
    if denies.search(sentence) or not _repeats(question, sentence, languages):
        return None
    return Said(True, quoted(sentence))


_PLACES = lexicon(
    """on in under above below behind between at near inside outside left right auf unter über neben hinter
    vor links rechts sur sous dans devant derrière gauche droite sobre debajo encima detrás delante izquierda
    derecha на под над за перед в слева справа"""
)


def _repeats(question: str, sentence: str, languages: Languages) -> bool:
    """Whether a sentence states what a question asks: all its words, in their order, and the same places."""
    asked = [word for word in tokens_of(question) if word not in words_of("common")]
    stated = tokens_of(sentence)
    at = [next((i for i, other in enumerate(stated) if alike(word, other)), -1) for word in asked]
    if -1 in at or not (at == sorted(at) or languages[0] in ("ja", "ko", "zh")):
        return False
    if len(stated) > 2 * len(tokens_of(question)) + 4:
        return False
    if _places(question) == _places(sentence):
        return True
    # 'Is there a dog in the image?': 'I can see a dog.' says no more and no less.
    more = content_of(sentence) - words_of("articles") - words_of("pronouns") - {"i", "we"}
    here = _places(_without_image(question, languages)) == _places(_without_image(sentence, languages))
    return here and all(any(alike(word, other) for word in asked) for other in more)


def _places(text: str) -> set[str]:
    return {word for word in tokens_of(text) if word in _PLACES}


def _without_image(text: str, languages: Languages) -> str:
    return word_pattern(r"(?:in|on|im|auf|dans|sur|en|на|в)\s+(?:[^\W\d]+['’\s]\s*)?{images}", languages).sub(
        " ", text
    )


def _by_pronoun(question: str, sentences: Sequence[str], languages: Languages) -> Said | None:
    """What the first sentence says with a pronoun in the place of the subject, or without it."""
    sentence, rest = sentences[0], " ".join(sentences[1:])
    turned = word_pattern("{unsure}|{tentative}|{revises}|{turns}|{denies}", languages)
    if turned.search(rest) or word_pattern("{unsure}|{tentative}", languages).search(sentence):
        return None
    for language in languages:
        read = _predicate_at_end if language in ("zh", "ja", "ko") else _other_words
        if (yes := read(question, sentence, language)) is not None:
            return Said(yes, quoted(sentence))
    return None


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


_DEFINITE = lexicon("the this that these those der die das le la les l el los las his her their its my your")


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
    if not said or (said[0] not in pronouns and language != "es"):
        return None
    pronoun = said.pop(0) if said[0] in pronouns else ""
    passed = denials | words_of("articles", (language,)) | {"ne", "n", "l", "d", "de"}
    if language == "en":
        passed |= _DO
    matched: set[int] = set()
    for word in said:
        at = next((i for i, other in enumerate(asked) if i not in matched and alike(word, other)), None)
        if at is not None:
            matched.add(at)
        elif word not in passed:
            return None
    empty = words_of("common", (language,)) | words_of("articles") | _DEFINITE | _AUXILIARIES
    content = [i for i, word in enumerate(asked) if word not in empty]
    missing = [i for i in content if i not in matched]
    denied = sum(word in denials for word in said)
    if not missing or len(missing) == len(content) or denied > 1:
        return None
    if language != "ru" and missing[0] != min((i for i in content if i >= start), default=-1):
        return None
    # 'It is red.' leaves a part of 'Is the car big and red?' open.
    parts = words_of("either", (language,)) & set(asked)
    if parts - set(said) or _places(" ".join(said)) != _places(" ".join(asked[missing[-1] + 1 :])):
        return None
    return not denied if _is_subject(asked, missing, pronoun, language) else None


_CAN_NOT = re.compile(r"\bca(?:n't|n?not|\s+not)\b", re.IGNORECASE)
_DO = lexicon("do does did")


def _is_subject(asked: Sequence[str], missing: Sequence[int], pronoun: str, language: str) -> bool:
    """Whether the words that a sentence leaves out are one noun that its pronoun may stand for."""
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


# In Chinese a predicate follows its subject, in Japanese and Korean it ends the sentence: a reply that begins
# with a pronoun, or leaves the subject out, ends as the question does.

_CJK_ENDS = {
    "zh": re.compile(r"[吗嗎呢吧么的了]+$"),
    "ja": re.compile(r"(?:です|ます)?か$|です$|よ$|ね$"),
    "ko": re.compile(
        r"\s*(?:습니까|습니다|ㅂ니까|나요|어요|아요|는가요|은가요|인가요|입니까|입니다|이에요|예요|이다|다)$"
    ),
}
_JA_DENIED = re.compile(r"(?:では|じゃ)(?:ない|ありません)$|(?:ない|ません)$")
_JA_FORMS = (
    ("ています", "ている"), ("ていません", "ていない"), ("でいます", "でいる"), ("でいません", "でいない"),
    ("てます", "ている"), ("てません", "ていない"),
)  # fmt: skip
_KO_DENIED = re.compile(r"(?:지|이|가|은|는)\s*(?:않|아니|아닙|못)\S*$")
_LEFT_OUT = re.compile(r"[はがもをにで、,]$|[은는이가을를에도서]\s$|^$")


def _predicate_at_end(question: str, sentence: str, language: str) -> bool | None:
    """Whether a sentence of Chinese, Japanese or Korean repeats the end of the question, or denies it."""
    asked, said = (re.sub(r"[\s?？。.!！、，,]+$", "", text.strip()) for text in (question, sentence))
    asked = re.split(r"[。？?！!\n]", asked)[-1]
    for pronoun in sorted(words_of("pronouns", (language,)), key=len, reverse=True):
        if said.startswith(pronoun):
            said = said[len(pronoun) :].lstrip(" 、，,")
            break
    else:
        pronoun = ""
    said, denied = _without_denial(said, language)
    asked, _ = _without_denial(asked, language) if language != "zh" else (asked, False)
    if language == "zh":
        asked, said = (_CJK_ENDS["zh"].sub("", re.sub("[着著了过過]", "", text)) for text in (asked, said))
    if len(said) < (2 if language == "zh" else 1) or not asked.endswith(said):
        return None
    before = asked[: len(asked) - len(said)]
    if language != "zh":
        return not denied if _LEFT_OUT.search(before) else None
    led = pronoun or said[0] in "是在有能会可"
    return not denied if before and (led or denied) and before[-1] != "的" else None


def _without_denial(text: str, language: str) -> tuple[str, bool]:
    """The predicate of a sentence in its plain and undenied form, and whether it was denied."""
    if language == "zh":
        bare = re.sub(r"^(?:并|並)?(?:没有|沒有|没|沒|不)", "", text)
        return bare, bare != text
    if language == "ja":
        text = re.sub(r"(?:です|の)?か$", "", text)
        for polite, plain in _JA_FORMS:
            if text.endswith(polite):
                text = text[: -len(polite)] + plain
        text = re.sub(r"(?:です|だ)$", "", text)
        if not (found := _JA_DENIED.search(text)):
            return text, False
        stem = text[: found.start()]
        if stem.endswith(("てい", "でい")):
            return f"{stem}る", True
        return (f"{stem[:-1]}い" if stem.endswith("く") else stem), True
    if found := _KO_DENIED.search(text):
        return text[: found.start()].rstrip(), True
    return _CJK_ENDS["ko"].sub("", text), False
