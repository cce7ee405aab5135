"""Judging by a model: the prompts of the papers, and the parsing of replies."""

from __future__ import annotations

import re
from collections.abc import Iterator, Sequence
from typing import Literal, NamedTuple

from msgspec import Struct

from sightline.scoring.reasoning import cut_reasoning
from sightline.scoring.scorer import ModelScorer, Reading
from sightline.scoring.text import lexicon, respelled, words
from sightline.text import fill, load
from sightline.types import Case, ImageRef, Message, user


def right_or_wrong(prompt: str, *, released: bool = False) -> ModelScorer:
    """A judge that replies 'right' or 'wrong' about an answer and its reference (CODIS, Table 12)."""

    def ask(case: Case) -> tuple[Message, ...]:
        return (
            user(
                fill(prompt, question=case.probe_question, reference=case.references[0], output=case.texts[0])
            ),
        )

    def read(reply: str) -> Reading:
        if released:
            return Reading("right" if "right" in reply else "wrong", reply)
        return Reading(read_verdict(reply, CORRECT), reply)

    return ModelScorer("right_or_wrong", "correct", ask, read)


def same_or_different(prompt: str) -> ModelScorer:
    """A judge that decides whether two answers have the same meaning."""

    def ask(case: Case) -> tuple[Message, ...]:
        first, second = case.texts
        return (user(fill(prompt, question=case.probe_question, first=first, second=second)),)

    def read(reply: str) -> Reading:
        return Reading(read_verdict(reply, SAME), reply)

    return ModelScorer("same_or_different", "same_meaning", ask, read)


def same_meaning_by_model() -> ModelScorer:
    """A judge that compares two answers with the prompt of this package, since no paper prints one."""
    return same_or_different(load(__package__)["same_meaning"]["text"])


def accepted(prompt: str, *, needs_images: bool = False, released: bool = False) -> ModelScorer:
    """A judge that ends its reply with 'Judgement: Yes' or 'Judgement: No' (ConTextual, Figure 20).

    A reply without a verdict (see `read_verdict`) is requested once more, then it is undecided.
    """

    def ask(case: Case) -> tuple[Message, ...]:
        words = fill(
            prompt, instruction=case.probe_question, reference=case.references[0], prediction=case.texts[0]
        )
        images = [ImageRef(file.path) for file in case.images] if needs_images else []
        return (user(*images, words),)

    def read(reply: str) -> Reading:
        return _released_judgement(reply) if released else Reading(read_verdict(reply, CORRECT), reply)

    return ModelScorer("accepted", "correct", ask, read, needs_images, max_attempts=2)


def _released_judgement(reply: str) -> Reading:
    _, stated, said = reply.partition("Judgement: ")
    if stated:
        yes, no = "Yes" in said, "No" in said
    else:
        yes, no = reply == "Yes", reply == "No"
    return Reading("right" if yes else "wrong" if no else "undecided", reply)


# -- Reads the verdict of a judge model from its reply

ReplyVerdict = Literal["right", "wrong", "undecided"]


class VerdictWords(Struct, frozen=True):
    """The words by which a judge states one of two verdicts, besides yes and no."""

    right: frozenset[str]
    wrong: frozenset[str]
    leading: frozenset[str] = frozenset()
    following: frozenset[str] = frozenset()
    compared: bool = False


CORRECT = VerdictWords(
    lexicon("right correct accurate acceptable accept accepted valid"),
    lexicon("wrong incorrect inaccurate unacceptable reject rejected invalid mistaken erroneous"),
    compared=True,
)
"""The verdict of a judge that decides whether a response is correct."""

SAME = VerdictWords(
    lexicon("same identical equivalent synonymous agree"),
    lexicon("different differ differs distinct dissimilar nonequivalent"),
    leading=lexicon(
        """first second one other ask asks asking convey say express have has share for in about they them
        sentences statements"""
    ),
    following=lexicon("from to thing things"),
)
"""The verdict of a judge that decides whether two texts mean the same."""

# The text is in lower case, so that no word of it looks like a mark.
_RIGHT, _WRONG, _YES, _NO, _FITS, _DIFFERS = "RIGHT", "WRONG", "YES", "NO", "FITS", "DIFFERS"
_MARK = re.compile(rf"\b(?:{_RIGHT}|{_WRONG}|{_YES}|{_NO}|{_FITS}|{_DIFFERS})\b")
_MEANS_RIGHT = (_RIGHT, _YES, _FITS)
_OPPOSITE = {_RIGHT: _WRONG, _WRONG: _RIGHT, _FITS: _DIFFERS, _DIFFERS: _FITS}
_FOR, _AGAINST = rf"\b(?:{_RIGHT}|{_YES})\b", rf"\b(?:{_WRONG}|{_NO})\b"

# Text that is not the judge's own statement, and markup.
_QUOTATION = r"[\"'“][^\"'”\n]{1,40}[\"'”]"
_PLAIN: tuple[tuple[re.Pattern[str], str], ...] = tuple(
    (re.compile(pattern, re.MULTILINE), replacement)
    for pattern, replacement in (
        (r",\s*(?=[\"']\w+[\"']\s*:)", "\n"),
        (r"<(?:judge?ment|verdict|answer|result|decision)>", "\njudgement: "),
        (r"\\boxed\s*\{\s*(?:\\\w+\s*\{)?([^{}]*)\}?\s*\}", r"\njudgement: \1\n"),
        (
            r"(?:[\"']|^)(?:is[_ ])?(?:correct|right|accepted|acceptable|same|equivalent|match(?:es)?)"
            r"\W*[:=]\W*(true|false|yes|no)\b",
            r"\njudgement: \1",
        ),
        # A response that is quoted: 'The output is "right". The groundtruth is "left".'
        (
            r"(\b(?:answer|output|response|prediction)\s+(?:is|was)\s+)[\"'“]right[\"'”]"
            r"(?=[.,;]?\s+(?:and |while |but |whereas )?(?:the )?ground[- ]?truth\s+(?:is|was|says)\b)",
            r"\1quoted",
        ),
        (r"\b(?:absolutely|certainly|definitely|of course) not\b(?=\W*$)", "no"),
        (
            r"\b(accept|reject)\s+(?:this|the)\s+(?=(?:\w+\s+)?(?:answer|output|response|prediction)\b)",
            r"\1 ",
        ),
        (rf"(\bshould (?:be|have been|say|read)\s+){_QUOTATION}", r"\1"),
        (rf"(\b(?:answer|output|response|prediction)\s+){_QUOTATION}(?=\s+(?:is|was|does|would)\b)", r"\1"),
        (r"\\(?:text|textbf|mathrm|mathbf)\b|</[a-z]+>|[*_#`~\"'“”„«»「」『』\[\]{}$\\<>✅❌✓✗]", ""),
        (
            r"\b(?:output|answer|response|prediction|model)\s+"
            r"(?:says?|answers|responds|replies|prints|reads|outputs|states)\b(?!\s+(?:is|are))",
            "stated",
        ),
        (r"\bground[- ]truth\b", "groundtruth"),
    )
)
_LINE_OF_REFERENCE = re.compile(r"\b(?:groundtruth|reference)\b[^\n:]{0,12}:")
_LINE_OF_RESPONSE = re.compile(
    r"^\W*(?:(?:the|model|predicted|extracted|final)\W+)*(?:output|answer|response|prediction)\W*:.*$",
    re.MULTILINE,
)
_ASIDES = tuple(
    (re.compile(pattern), replacement)
    for pattern, replacement in (
        (
            r"\b(?:groundtruth|reference|expected|question|context|instruction)"
            r"(?:\s+(?:answer|response|output|label|is|says))*\W*:[^\n,;.]*",
            "",
        ),
        (
            r"\b(?:(?:first|second|other)\s+(?:final\s+)?(?:answer|question)|(?:answer|question)\s+(?:[12ab]|one|two))"
            r"\s*:[^\n,;.]*",
            "",
        ),
        (r"\bno\.\s*(?=\d)", "number "),
        # The direction: 'The output is right and the groundtruth is left.'
        (
            r"\bright\b(?=[^\w(:.\n]+(?:(?:and|while|but|whereas)\W+)?(?:the )?(?:groundtruth|reference)\b"
            r"[^.\n]{0,12}\b(?:is|was|says?)\b)",
            "rightwards",
        ),
        (
            r",\s*(?:unfortunately|in (?:my opinion|fact|this case)|however|therefore|thus|hence|clearly"
            r"|indeed|overall|of course)\s*,",
            " ",
        ),
        (r"\b(?:even though|although|though|even if|while|whereas|despite)\b[^,.;\n]*", ""),
        (
            r"\A[\s•-]*(?:yes|right|correct|ok|okay)\W+(?=let (?:me|us)\b|here\b|first\b|now\b"
            r"|please\b|i (?:can|will|am|need|have|would be|understand)\b"
            r"|so the (?:groundtruth|reference|question|instruction)\b)",
            "",
        ),
    )
)

# Verdicts in other words.
_FAULT = (
    r"(?:discrepanc(?:y|ies)|differences?|errors?|issues?|mistakes?|contradictions?|inconsistenc(?:y|ies)"
    r"|mismatch(?:es)?|conflicts?|deviations?)\b"
)
_NO_FAULT = re.compile(rf"\b(?:no|not any|without(?: any)?)\s+(?:\w+\s+)?{_FAULT}")
_FITTING = re.compile(
    r"\b(?:match(?:es)?|(?:agrees?|consistent|in line|aligns?|coincides?) with|equals?|corresponds? to"
    r"|the same as|identical to|equivalent to|(?:be )?inferred)\b"
)
_DIFFERING = re.compile(
    r"\b(?:contradicts?|conflicts? with|inconsistent with|(?:differs?|deviates?|different) from|mismatch)\b"
)
_OBJECTING_QUESTION = re.compile(
    rf"\b(?:{_WRONG}|{_DIFFERS}|(?:a|any|some)\s+(?:\w+\s+)?{_FAULT})[^.?!\n]*\?\s*({_YES}|{_NO})\b"
)
_PARTIAL = re.compile(
    r"\b(?:partially|partly|half|somewhat|in part|not necessarily|not only|not just|not an?)\s+"
    rf"(?:the\s+)?{_MARK.pattern}"
)
_NEGATED = re.compile(
    r"\b(?:not|never|hardly|far from|no longer)\s+(?:(?:quite|entirely|fully|completely|totally|strictly"
    r"|really|exactly|actually|all|at|the|a|an|be|been|being|considered|deemed|judged|regarded|counted|accepted|seen"
    r"|as|give|provide|semantically|factually|mean|ask|asking|convey|say|express|have|share)\s+)*"
    rf"({'|'.join(_OPPOSITE)})\b"
)
_DENIED = re.compile(
    r"\b((?:do|does|did|would) )not (think|believe|say|consider|agree)\b((?: that)?(?:\s+\w+){0,6}?\s+)"
    rf"({_RIGHT}|{_WRONG})\b"
)
_REPEATED = re.compile(rf"({_MARK.pattern})(?:\s+\1)+")
_BETWEEN = r"\W*(?:\b(?:or|nor|and|vs)\b|[/|])\W*(?:(?:the|an?|is|it is|not)\s+)*"
_NO_STATEMENT = re.compile(
    rf"{_FOR}{_BETWEEN}{_AGAINST}|{_AGAINST}{_BETWEEN}{_FOR}|{_FOR}\s+or\s+not\b"
    rf"|\b(?:{_RIGHT}|{_WRONG})\s+(?:final\s+)?(?:answer|response|output|one|question|thing)"
    r"(?:\s*:[^\n,;.]*|(?=\s+(?:is|was|would|should|to|has|must)\b))"
    rf"|(?<=[(,;])\s*{_RIGHT}\s*:[^\n,;.)]*"
    rf"|(?:(?<=[.!?\n])|^)\s*(?:in order )?to be (?:considered |judged )?{_RIGHT}"
)
"""Restated alternatives, the expected answer ('the right answer is up') and purposes ('To be right, ...')."""

_LABEL = re.compile(
    r"\b(?:judge?ment|verdict|decision|evaluation|assessment|conclusion|ruling|determination"
    r"|final answer(?=\s*:))"
    r"(?:\s*\([^)\n]*\)|\s+(?:for|of|on|about)\s+[a-z ]{1,30}?)?\s*(?:is\b\s*)?(?:[:=\n→]|->|=>|\s-|\bis\b)"
)
_UNCLEAR = re.compile(
    r"\W*(?:(?:it|this) is |i am )?(?:unclear|unsure|undecided"
    r"|(?:not|no longer)(?: \w+ly| so| quite)? (?:sure|clear|certain)"
    r"|(?:i )?can not|n/a|unknown|inconclusive|ambiguous|maybe|(?:it )?depends|indeterminate|partial"
    r"|partially|partly)\b"
)
_REJECTS = re.compile(r"\W*(?:no|nope)\b")
"""The 'no' by which a correction takes back what precedes it: 'Different. Wait, no. The same.'"""

_SENTENCE = re.compile(r"((?:[^.!?。！？\n]|[.!?](?=\d))+)([.!?。！？\n]*)")
_CLAUSE = re.compile(
    r"[,;:()=|—–→]|\s-+>?\s|->|=>"
    r"|\b(?:so|therefore|thus|hence|because|since|but|however)\b"
    r"|\band (?=(?:so|therefore|thus|hence|the|it|i|is|are|they|this)\b)"
)
_INTRODUCING = re.compile(r"[:;=—–→>-]|\b(?:so|therefore|thus|hence)\b")
_REASON_FIRST = re.compile(r"\W*(?:since|because|as|given)\b")
_CONDITION = re.compile(r"\b(?:if|unless|otherwise)\b")
_RESERVATION = re.compile(r"\b(?:but|however|only|partially|partly|part|some|if|whether)\b")

_LEADING_ALL = lexicon(
    """so therefore thus hence overall finally ultimately then conclude is a an it this that i we my the
    would will be must should have to say output print respond reply judge go with think judgement
    judgment verdict decision final give of still actually clearly definitely certainly surely probably likely
    absolutely"""
)
_LEADING = _LEADING_ALL | lexicon(
    """find finds concluding conclusion are was do does did yes no as its these those both two all also
    indeed outputs answer answers mark marked rate rated judged label choose believe consider
    considered deem deemed count counts seems appears essentially basically semantically factually
    mostly largely fully entirely completely absolutely very exactly gives gave provides provided
    lean towards toward model predicted given extracted from response responses prediction
    predictions result results question questions meaning meanings mean means can confirm in summary"""
)
_FOLLOWING_ALL = lexicon("explanation reason reasoning rationale confidence note with")
_FOLLOWING = _FOLLOWING_ALL | lexicon(
    """answer answers output outputs response prediction meaning meanings thing things question questions
    one according overall too also then here based judgement judgment verdict per under as given"""
)
_FOLLOWING_YES_OR_NO = _FOLLOWING_ALL | lexicon("as the it this that they there he she you both these its")
_FOLLOWING_PHRASE = re.compile(r"\s*in (?:meaning|substance|this case|content|essence|any case)\b")


LONGEST_LEAD = 240
"""The number of characters of a clause in which its verdict word must be."""


class _Statement(NamedTuple):
    """A verdict that a clause states: where its sentence begins, and whether it is `right`."""

    position: int
    is_right: bool


def read_verdict(reply: str, vocabulary: VerdictWords) -> ReplyVerdict:
    """Read the verdict of a judge model.

    If the reply corrects itself ('Wait, ...'), only the text after the last correction counts; without a
    verdict there, the reply is undecided. The last labelled verdict counts, otherwise all verdicts
    must agree. Restated alternatives ('right or wrong') state no verdict.

    Returns:
        The verdict; `undecided` if the reply states both or none.

    >>> read_verdict("Judgement: Yes. There is no discrepancy", CORRECT)
    'right'
    >>> read_verdict("The two answers don't mean the same.", SAME)
    'wrong'
    >>> read_verdict("Judgement: Yes. Actually no, it misses a word.", CORRECT)
    'wrong'
    >>> read_verdict("It is either right or wrong.", CORRECT)
    'undecided'
    """
    text = _plain(reply)
    withdrawn, last = corrected(text)
    if last is None:
        return _read(text, vocabulary)
    if _UNCLEAR.match(last):
        return "undecided"
    verdict = _read(_REJECTS.sub("", last), vocabulary)
    if verdict != "undecided" or (withdrawn and _read(withdrawn, vocabulary) == "wrong"):
        return verdict
    verdict = _read(last, vocabulary)
    return verdict if withdrawn or verdict != "undecided" else _read(text, vocabulary)


def _read(part: str, vocabulary: VerdictWords) -> ReplyVerdict:
    """The verdict of a text that does not correct itself."""
    text = _marked(part, vocabulary)
    for labelled in reversed(_LABEL.split(text)[1:]):
        if _UNCLEAR.match(labelled):
            return "undecided"
        stated = list(_statements(labelled, vocabulary, labelled=True))
        if stated:
            return _settled([one for one in stated if one.position == stated[0].position])
    stated = list(_statements(text, vocabulary))
    return _settled(stated) if stated else _compared(text)


def _plain(reply: str) -> str:
    """The reply in lower case, without its reasoning part, markup and restated texts."""
    text = re.sub(r"[^\S\n]+", " ", respelled(cut_reasoning(reply).answer))
    text = re.sub(r"\s*\n\s*", "\n", text)
    for pattern, replacement in _PLAIN:
        text = pattern.sub(replacement, text)
    if _LINE_OF_REFERENCE.search(text):
        text = _LINE_OF_RESPONSE.sub("", text)
    for pattern, replacement in _ASIDES:
        text = pattern.sub(replacement, text)
    return text


def _marked(text: str, vocabulary: VerdictWords) -> str:
    """The text with a mark for each verdict word, in its sense ('not correct', 'no discrepancy')."""
    text = _NO_FAULT.sub(_FITS, text)
    if vocabulary.compared:
        text = _FITTING.sub(_FITS, _DIFFERING.sub(_DIFFERS, text))
    for mark, listed in (
        (_RIGHT, vocabulary.right),
        (_WRONG, vocabulary.wrong),
        (_YES, ("yes", "yeah", "yep", "yup", "true")),
        (_NO, ("no", "nope", "false")),
    ):
        text = re.sub(rf"\b(?:{'|'.join(sorted(listed))})\b", mark, text)
    text = _OBJECTING_QUESTION.sub(lambda found: f"? {_NO if found[1] == _YES else _YES}", text)
    text = _PARTIAL.sub("", text)
    text = _NEGATED.sub(lambda found: _OPPOSITE[found[1]], text)
    text = _DENIED.sub(lambda found: f"{found[1]}{found[2]}{found[3]}{_OPPOSITE[found[4]]}", text)
    return _NO_STATEMENT.sub("unstated", _REPEATED.sub(r"\1", text))


def _statements(text: str, vocabulary: VerdictWords, *, labelled: bool = False) -> Iterator[_Statement]:
    """The verdicts that the clauses of a text state; questions state none.

    Under a condition, and as a word in a list, a verdict word states none either.
    """
    sentences = [found for found in _SENTENCE.finditer(text) if words(found[1])]
    for sentence in sentences:
        if "?" in sentence[2]:
            continue
        closing = labelled or sentence is sentences[-1]
        conditional = _CONDITION.search(sentence[1]) is not None
        reason_first = _REASON_FIRST.match(sentence[1]) is not None
        contrasted = False
        for number, (separator, clause) in enumerate(_clauses(sentence[1])):
            mark = _stated_mark(clause, vocabulary, closing=closing)
            if mark is None:
                continue
            is_word_alone = len(words(clause)) == 1
            introduced = reason_first or _INTRODUCING.search(separator) is not None
            if conditional:
                counts = number == 0 and is_word_alone and "otherwise" not in sentence[1]
            else:
                counts = number == 0 or not is_word_alone or introduced
            if counts or contrasted:
                contrasted = True
                yield _Statement(sentence.start(), mark in _MEANS_RIGHT)


def _clauses(sentence: str) -> Iterator[tuple[str, str]]:
    """The clauses of a sentence that hold words, each with the separator before it."""
    separator, start = "", 0
    for cut in [*_CLAUSE.finditer(sentence), None]:
        clause = sentence[start : cut.start() if cut else len(sentence)]
        if words(clause):
            yield separator, clause
        if cut:
            separator, start = cut[0], cut.end()


def _stated_mark(clause: str, vocabulary: VerdictWords, *, closing: bool) -> str | None:
    """The mark of the verdict that a clause states; None if it states none.

    'The answer is no' may restate an answer, so it counts only in a closing sentence.
    """
    widest = _LEADING | vocabulary.leading
    for found in _MARK.finditer(clause, 0, LONGEST_LEAD):
        before, rest = words(clause[: found.start()]), clause[found.end() :]
        if not widest.issuperset(before):
            return None
        if found[0] in (_FITS, _DIFFERS):
            if not before:
                return found[0]
            continue
        if found[0] in (_YES, _NO):
            leading = _LEADING_ALL | ({"answer"} if closing else set())
            following = _FOLLOWING_YES_OR_NO
        else:
            leading, following = widest, _FOLLOWING | vocabulary.following
        after = words(rest)[:1]
        if leading.issuperset(before) and (following.issuperset(after) or _FOLLOWING_PHRASE.match(rest)):
            return found[0]
    return None


def _settled(stated: Sequence[_Statement]) -> ReplyVerdict:
    verdicts = {one.is_right for one in stated}
    if len(verdicts) > 1:
        return "undecided"
    return "right" if verdicts == {True} else "wrong"


def _compared(text: str) -> ReplyVerdict:
    """The verdict of a reply that only compares the response with its reference, without a reservation."""
    found = {mark for mark in _MARK.findall(text) if mark in (_FITS, _DIFFERS)}
    if len(found) != 1 or _RESERVATION.search(text):
        return "undecided"
    return "right" if found == {_FITS} else "wrong"


# -- Where a text corrects itself: 'Wait, ...', 'Actually, ...', 'Scratch that'

_CORRECTION = re.compile(
    r"(?:^|[.,;:!?()\n—–-]|\b(?:but|and)\b|\s(?=[\w-]+(?: [\w-]+){0,2}[,:]))\s*"
    r"(?:(?:no|oh|ah|hm+|well|so|sorry|ok|okay|but|and|or)\b,?\s*)*"
    r"\b(?:wait(?!\s+(?:for|until|\d))|hold on|hang on|actually|correction|oops|whoops|edit|rather"
    r"|(?:sorry|apologies)(?! for| about)|scratch that|strike that|never ?mind|my (?:mistake|bad|error)"
    r"|i (?:take (?:that|it) back|meant|misread|misspoke|stand corrected|correct myself"
    r"|made (?:a mistake|an error)|(?:now )?reconsider(?:ed)?)"
    r"|let me (?:reconsider|rethink|correct|revise)(?: (?:that|this|it|myself))?"
    r"|(?:up)?on (?:second thoughts?|reflection|reconsideration|closer inspection)"
    r"|(?:looking|reading|checking) (?:again|closer|closely)"
    r"|after (?:re-?\w+|another look|a (?:second|closer) look|further \w+))\b"
)
"""A correction opens a clause or ends in a comma; 'actually' in 'It is actually right' is none."""


def corrected(text: str) -> tuple[str, str | None]:
    """Part a text at its last correction.

    Returns:
        The text between the last two corrections, or before the only one; empty if nothing precedes it. The
        text after the last correction; None if the text does not correct itself.

    >>> corrected("yes. wait, actually no, it differs."), corrected("it is actually right")
    (('yes', ' no, it differs.'), ('', None))
    """
    parts = [part for part in _CORRECTION.split(text) if words(part)]
    if not parts or (len(parts) == 1 and text.startswith(parts[0])):
        return "", None
    return "".join(parts[-2:-1]), parts[-1]
