"""The words of an answer: its answer part, its sentences, its words in lower case, and their stems."""

from __future__ import annotations

import re
import unicodedata
from collections.abc import Callable, Sequence
from functools import lru_cache, update_wrapper
from typing import Generic, ParamSpec, TypeVar

# -- A bounded cache of pure functions of short texts, which rules read several times in one case

SHORT = 256
"""The most characters of texts whose result is kept: a cache takes a few MB at most."""

ENTRIES = 1024

P = ParamSpec("P")
T = TypeVar("T")


class cached_for_short_texts(Generic[P, T]):  # noqa: N801 - a decorator
    """Decorates a pure function of texts: the latest results for short texts are kept.

    The arguments are texts, given by position, and the result is immutable.
    """

    __wrapped__: Callable[P, T]

    def __init__(self, function: Callable[P, T]) -> None:
        update_wrapper(self, function)
        self._function = function
        self._cached = lru_cache(maxsize=ENTRIES)(function)

    def __call__(self, *texts: P.args, **named: P.kwargs) -> T:
        """The result of the function."""
        if sum(map(len, texts)) > SHORT:  # type: ignore[arg-type]
            return self._function(*texts, **named)
        return self._cached(*texts, **named)  # type: ignore[arg-type]


def lexicon(listed: str) -> frozenset[str]:
    """Make a set of words."""
    return frozenset(listed.split())


FUNCTION_WORDS = lexicon(
    """a an the this that these those there here it its itself i me my mine we us our you your yours
    he him his she her hers they them their one ones what which who whose whom when where why how
    am is are was were be been being do does did done has have had having
    will would shall should can could may might must
    in on at of to from by for with as and or but so then than if whether because since
    also just very more most likely probably possibly therefore thus hence"""
)
"""Words without content of their own. Particles (up, off, out) are not among them: they distinguish 'taking
off' from 'putting on'."""

_ESCAPED_NEWLINE = re.compile(r"\\n")
_SENTENCE_END = re.compile(r"(?<=[.!?])[\s\"'*)]+|\n+")
_WORD = re.compile(r"\d+(?:[.:]\d+)*|[^\W\d_]+")
_SPELLINGS = tuple(
    (literal, re.compile(pattern), spelling)
    for literal, pattern, spelling in (
        ("can", r"\bcan'?t\b|\bcannot\b", "can not"),
        ("won't", r"\bwon't\b", "will not"),
        ("n't", r"n't\b", " not"),
        ("i'm", r"\bi'm\b", "i am"),
        ("'s", r"\b(it|he|she|this|that|there|here|what|who)'s\b", r"\1 is"),
        ("'re", r"'re\b", " are"),
        ("'", r"'(?:s|ll|ve|d)\b", " "),
        ("clockwise", r"\b(?:counter|anti)[\s-]*(?=clockwise\b)", "counter"),
        ("th", r"\b(north|south)[\s-]?(east|west)(?=(?:ern|erly|wards?)?\b)", r"\1\2"),
        ("non-", r"\bnon-(?=[a-z])", "non"),
        ("upside", r"\bupside[\s-]+down\b", "upsidedown"),
        ("gray", r"\bgray(?=(?:s|ish)?\b)", "grey"),
    )
)
"""What every match holds, which is fast to test, the pattern, and the replacement."""

_IRREGULAR = {
    form: base
    for base, forms in {
        "begin": "began begun",
        "bring": "brought",
        "break": "broke broken",
        "catch": "caught",
        "come": "came",
        "draw": "drew drawn",
        "drive": "drove driven",
        "eat": "ate eaten",
        "fall": "fell fallen",
        "fly": "flew flown",
        "freeze": "froze frozen",
        "give": "gave given",
        "go": "goes went gone",
        "hold": "held",
        "lose": "lost",
        "make": "made",
        "ride": "rode ridden",
        "rise": "rose risen",
        "run": "ran",
        "say": "said",
        "see": "saw seen",
        "send": "sent",
        "sit": "sat",
        "speak": "spoke spoken",
        "stand": "stood",
        "take": "took taken",
        "throw": "threw thrown",
        "wear": "wore worn",
        "write": "wrote written",
    }.items()
    for form in forms.split()
}
_DIRECTION = re.compile(
    r"(up|down|in|out|on|back|left|right|north|south|east|west|(?:north|south)(?:east|west))"
    r"(?:(?:wards?|ern|erly)(?:ly)?|bound|most)"
)
_VOWEL = re.compile(r"[aeiouy]")


def answer_part(output: str) -> str:
    r"""The part of an output that answers: the text after the last newline (CODIS, Table 11).

    Newlines at the end do not count. In an output without newlines the two characters '\n' count as one: some
    outputs in Figures 6-10 are escaped.

    >>> answer_part("The sun rises in the east.\nWest.\n")
    'West.'
    """
    output = output.strip()
    if "\n" not in output:
        output = _ESCAPED_NEWLINE.sub("\n", output).strip()
    return output.rpartition("\n")[2].strip()


def joined(tokens: Sequence[str], other: Sequence[str]) -> tuple[str, ...]:
    """Words with neighbours joined that another text writes as one word.

    >>> joined(("his", "seat", "belt"), ("the", "seatbelt"))
    ('his', 'seatbelt')
    """
    found: list[str] = []
    for token in tokens:
        if found and found[-1] + token in other:
            found[-1] += token
        else:
            found.append(token)
    return tuple(found)


@cached_for_short_texts
def sentences(text: str) -> tuple[str, ...]:
    """The sentences of a text.

    >>> sentences("It is leaving. Answer: leaving")
    ('It is leaving.', 'Answer: leaving')
    """
    return tuple(part for part in _SENTENCE_END.split(text) if words(part))


def is_question(text: str) -> bool:
    """Whether a text ends with a question mark, quotes and markup aside.

    >>> is_question('"Up?"'), is_question("Up? Yes.")
    (True, False)
    """
    return text.rstrip(" \"')*").endswith("?")


@cached_for_short_texts
def words(text: str) -> tuple[str, ...]:
    """The words of a text in lower case, without punctuation.

    Contractions are expanded ('isn't' is 'is not'), 'anti-clockwise' is one word. Numbers keep their inner
    signs: '7:23'. Compound directions are one word: 'south-west'.

    >>> words("It isn't moving Anti-clockwise!")
    ('it', 'is', 'not', 'moving', 'counterclockwise')
    """
    return tuple(_WORD.findall(respelled(text)))


@cached_for_short_texts
def respelled(text: str) -> str:
    """A text in lower case with its punctuation, contractions expanded and compounds spelled one way."""
    text = unicodedata.normalize("NFKC", text).casefold()
    text = text.replace("‘", "'").replace("’", "'").replace("`", "'")
    for literal, pattern, spelling in _SPELLINGS:
        if literal in text:
            text = pattern.sub(spelling, text)
    return text


def content(text: str) -> tuple[str, ...]:
    """The stems of the content words of a text.

    >>> content("She is putting on the headset.")
    ('put', 'headset')
    """
    return tuple(stem(word) for word in words(text) if word not in FUNCTION_WORDS)


@lru_cache(maxsize=8192)
def stem(word: str) -> str:
    """The common stem of the inflections of a word.

    Library stemmers do not replace this one: Porter, Snowball and Lancaster separate irregular forms,
    directions and negative prefixes that the rules of CODIS rely on.

    >>> {stem(word) for word in ("upwards", "upward", "up")}, stem("closing") == stem("closed")
    ({'up'}, True)
    """
    if direction := _DIRECTION.fullmatch(word):
        return direction[1]
    word = _without_ending(_IRREGULAR.get(word, word))
    if len(word) > 3 and word[-1] == word[-2] and word[-1] not in "aeiou":
        word = word[:-1]
    return word[:-1] if len(word) > 3 and word.endswith("e") else word


def _without_ending(word: str) -> str:
    if word.endswith("ies") and len(word) > 4:
        word = word[:-3] + "y"
    elif word.endswith("es") and word[:-2].endswith(("s", "x", "z", "ch", "sh")):
        word = word[:-2]
    elif word.endswith("s") and len(word) > 3 and not word.endswith(("ss", "us", "is", "ous")):
        word = word[:-1]
    for ending, least in (("ing", 2), ("ed", 3), ("er", 3), ("ly", 4), ("ion", 4)):
        base = word.removesuffix(ending)
        if base != word and len(base) >= least and _VOWEL.search(base) and not word.endswith("eed"):
            return base
    return word


# -- The statements of a free answer: which commit themselves, which decline, and which one counts

OPEN = "?"
"""The reading of a statement that leaves the question open: it declines, or names options without
choosing."""

NEGATIONS = lexicon("not no never neither nor none nobody nothing hardly unlikely impossible unable")
"""Words that negate a statement (after the cues of the *SEM 2012 shared task on negation)."""

NAMES_NOTHING = lexicon("none nobody nothing neither nor either both")
"""The pronouns that, as a whole answer, choose nothing."""

AUXILIARIES = lexicon(
    """am is are was were be been do does did has have had
    will would shall should can could may might must"""
)
"""The forms of be, have and do, and the modals."""

_EXCLUDES = re.compile(
    r"\b(?:except(?:ing)?|excluding|apart from|other than|aside from|besides|outside(?: of)?"
    r"|(?:the )?opposite(?: of| to)|(?:anything|everything|everyone|all|nothing) but)\b"
)
_TURN = re.compile(
    r"[;,]?\s+(?:but|however|nevertheless)\b[\s,]*|,\s+(?:while|whereas)\b|;\s*", re.IGNORECASE
)
_LEAD_IN = re.compile(
    r"^\W*(?:(?:based (?:up)?on|given|according to|considering|looking at|judging (?:by|from)|assuming"
    r"|from|in|as"
    r"|since|because|with|under|by|if|when|so|therefore|thus|hence|well|ok|okay|sure|finally|overall"
    r"|(?:my |the )?(?:\w+ )?answer(?: is| would be)?)\b[^,;:]*[,:]\s*)+",
    re.IGNORECASE,
)
_ALTERNATIVE = re.compile(r"\s*(?:[.!?;…]\s*)+\bor\b", re.IGNORECASE)
_PUT_ASIDE = re.compile(r"\b(?:rather than|instead of|as opposed to)\b[^.,;!?]*", re.IGNORECASE)
_CONCLUDES = re.compile(r"^\W*(?:so|therefore|thus|hence|overall|in (?:conclusion|summary)|finally)\b")
_ANNOUNCES = re.compile(r"\banswer\W+(?:\w+\W+){0,2}?(?:is|be)\b|\banswer\W*:")


def excludes(statement: str) -> bool:
    """Whether a statement names something only to exclude it ('any day except Monday', 'the opposite of up').

    >>> excludes("It is anything but red."), excludes("Red, but pale.")
    (True, False)
    """
    return bool(_EXCLUDES.search(" ".join(words(statement))))


@cached_for_short_texts
def statements(answer: str) -> tuple[str, ...]:
    """The statements of an answer: its sentences, split at 'but' or 'whereas', without 'rather than ...'.

    A sentence that begins with 'or' belongs to the one before it.

    >>> statements("It is not up but down. Down rather than up")
    ('It is not up', 'down.', 'Down ')
    """
    remaining = (_PUT_ASIDE.sub("", sentence) for sentence in sentences(_ALTERNATIVE.sub(", or", answer)))
    return tuple(part for sentence in remaining for part in _TURN.split(sentence) if words(part))


def without_lead_in(answer: str) -> str:
    """An answer without the clauses that only lead to it ('Based on the context, ...', 'So, ...').

    >>> without_lead_in("Given the image, so: Eight."), without_lead_in("In the car")
    ('Eight.', 'In the car')
    """
    rest = _LEAD_IN.sub("", answer)
    return rest if words(rest) else answer


def announced(answer: str) -> str | None:
    """The last statement that announces itself as the answer ('The answer is ...', 'Answer: ...').

    Returns:
        The statement; None if there is none.
    """
    parts = [part for part in statements(answer) if _ANNOUNCES.search(respelled(part))]
    return parts[-1] if parts else None


def settle(answer: str, read: Callable[[str], str | None], about: frozenset[str] = frozenset()) -> str | None:
    """Combine the readings of the statements of an answer.

    The announced statement decides if there is one. Otherwise all statements must agree. A later statement
    that is not open replaces an open one. If statements differ, the last one decides if it concludes ('So
    ...') or is a bare word, unless the answer began with a bare word; otherwise those that name what the
    question is about, if they agree.

    Args:
        read: Reads one statement; None if it says nothing.

    Returns:
        The reading; None if no statement says anything or they contradict each other.
    """
    final = announced(answer)
    if final and (reading := read(final)) is not None:
        return reading
    parts = statements(answer)
    parts = parts[parts.index(final) + 1 :] if final else parts
    readings = [(part, reading) for part in parts if (reading := read(part)) is not None]
    while len(readings) > 1 and readings[0][1] == OPEN:
        readings = readings[1:]
    if not readings:
        return None
    last, reading = readings[-1]
    if len({reading for _, reading in readings}) == 1:
        return reading
    if (_CONCLUDES.search(respelled(last)) or _is_bare(last)) and not _is_bare(readings[0][0]):
        return reading
    named = {reading for part, reading in readings if about & set(map(stem, words(part)))}
    return named.pop() if len(named) == 1 else None


def denials(text: str) -> int:
    """Count the negations in a text.

    >>> denials("It is not impossible.")
    2
    """
    return sum(word in NEGATIONS for word in words(text))


def _is_bare(statement: str) -> bool:
    """Whether a statement is a word or phrase of up to three content words, such as 'Left.'"""
    parts = words(statement)
    return sum(word not in FUNCTION_WORDS for word in parts) <= 3 and not AUXILIARIES & set(parts)
