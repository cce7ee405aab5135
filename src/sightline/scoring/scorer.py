"""The kinds of scorers: a rule, or pure functions around a model call or an embedding; replies of judges."""

from __future__ import annotations

import re
from ast import literal_eval
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Literal, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from sightline.scoring.markup import without_tokens
from sightline.scoring.reasoning import cut_reasoning
from sightline.scoring.text import lexicon, respelled, words
from sightline.text import fill, load
from sightline.types import Answer, Case, Group, ImageRef, Message, Outcome, Text, Verdict, VerdictName, user

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

    Vectors = NDArray[np.float32]

JUDGE_SAMPLING: Mapping[str, Any] = {"temperature": 0, "max_tokens": 1024}
"""The default sampling options of a judge model; all four papers leave them unpublished."""


class Reading(Struct, frozen=True):
    """The result of a scorer.

    Attributes:
        extracted: The option or text that was extracted from the response.
        rule: The rule that decided, in a few words; '' if the scorer has one rule only.
        words: The words of the response that the rule read, or the reference that it found there.
    """

    verdict: VerdictName
    raw: str = ""
    extracted: str | None = None
    scores: Mapping[str, float] = field(default_factory=dict)
    rule: str = ""
    words: str = ""


RuleVerdict = Literal["right", "wrong", "undecided"]
"""What rules decide about a response with a reference."""


class RuleScorer(Struct, frozen=True):
    """A scorer that decides a case by rules."""

    name: str
    question: str
    decide: Callable[[Case], Reading]


class ModelScorer(Struct, frozen=True):
    """A scorer that asks a model about a case and reads its reply.

    Attributes:
        max_attempts: The number of requests, at least 1, that are sent until a reply holds a verdict.
        reads_truncated: Whether a truncated reply is read; otherwise it holds no verdict.
        concerns: Whether the model is asked about a case; None: about all.
    """

    name: str
    question: str
    ask: Callable[[Case], tuple[Message, ...]]
    read: Callable[[Case, str], Reading]
    needs_images: bool = False
    max_attempts: int = 1
    reads_truncated: bool = False
    concerns: Callable[[Case], bool] | None = None

    def reading(self, reply: Answer, case: Case) -> Reading:
        """Read a reply, unless it is truncated."""
        if reply.truncated and not self.reads_truncated:
            return Reading("undecided", reply.text)
        return self.read(case, reply.text)


class VectorScorer(Struct, frozen=True):
    """A scorer that reads a group by the vectors of its texts.

    Attributes:
        texts: The texts to embed, none of them empty.
        read: Takes their unit vectors in the same order, shape (texts, dimensions), and the share of the
            tokens of each text that the embedder does not know, 0 to 1; returns the group with scores and
            judgements.
    """

    name: str
    question: str
    texts: Callable[[Group], Sequence[str]]
    read: Callable[[Group, Vectors, Sequence[float]], Group]


Scorer = RuleScorer | ModelScorer | VectorScorer

_S = TypeVar("_S", RuleScorer, ModelScorer, VectorScorer)


def by_question(scorers: Iterable[Scorer], scorer_type: type[_S]) -> dict[str, _S]:
    """Select the scorers of one type.

    Returns:
        Question -> its scorer of this type. A question that no scorer of this type decides is absent.
    """
    return {scorer.question: scorer for scorer in scorers if isinstance(scorer, scorer_type)}


# -- Why an answer got its verdict


class Explanation(Struct, frozen=True):
    """How the verdict on an answer came about: the rule that decided, and the words that it read.

    `option` is what was extracted from the response, '' for nothing. The rule is that of the rules if they
    gave the verdict, and the words are the response where it read none; otherwise the rule is the judge, and
    the words are those of its reply.
    """

    sample: str
    variant: str
    draw: int
    verdict: VerdictName
    option: str
    rule: str
    words: str


WORST_FIRST: Sequence[VerdictName] = ("error", "miss", "refused", "wrong", "undecided", "unscored", "right")
"""The order of explanations."""

LONGEST_WORDS = 160
"""The most characters of the words of an explanation."""


def explanations(
    outcomes: Iterable[Outcome], cases: Iterable[Case], scorers: Iterable[Scorer], verdicts: Iterable[Verdict]
) -> list[Explanation]:
    """Explain the verdicts that count on the answers of a judged group.

    Returns:
        An explanation for each outcome. The rules read the answers again: a verdict that was
        stored by other rules differs, and the explanation says so.
    """
    scorer = by_question(scorers, RuleScorer).get("correct")
    by_index = {case.outcome_index: case for case in cases if case.question == "correct"}
    raw = {(one.targets, one.judge): one.raw for one in verdicts if one.question == "correct"}
    found = []
    for index, outcome in enumerate(outcomes):
        if outcome.status != "ok":
            rule, words = outcome.status.replace("_", " "), outcome.error or ""
        elif outcome.judge == "rules" and scorer is not None and index in by_index:
            reading = scorer.decide(by_index[index])
            rule, words = reading.rule or scorer.name, reading.words or reading.extracted or outcome.response
            if reading.verdict != outcome.verdict:
                rule = f"{rule}; these rules now give {reading.verdict}"
        else:
            rule = f"judge {outcome.judge}" if outcome.judge else ""
            words = raw.get(((outcome.key,), outcome.judge), "")
        words = " ".join(words.split())
        found.append(
            Explanation(
                sample=outcome.sample,
                variant=outcome.variant,
                draw=outcome.draw,
                verdict=outcome.verdict,
                option=outcome.extracted or "",
                rule=rule,
                words=words if len(words) <= LONGEST_WORDS else words[: LONGEST_WORDS - 1] + "…",
            )
        )
    return found


# -- Flags among the scores of an answer: yes-or-no readings of a response, which may be undecided

_UNDECIDED = "_undecided"


def flags(readings: Mapping[str, bool | None]) -> dict[str, float]:
    """The scores that stand for readings of a response. `readings`: whether something holds, by name; None if
    it is undecided.

    >>> flags({"refused": True, "names_shape": False, "names_lines": None})
    {'refused': 1.0, 'names_lines_undecided': 1.0}
    """
    held = {
        name: name if holds else name + _UNDECIDED for name, holds in readings.items() if holds is not False
    }
    return dict.fromkeys(held.values(), 1.0)


def flag(scores: Mapping[str, float], name: str) -> bool | None:
    """Read one flag.

    >>> flag({"refused": 1.0}, "refused"), flag({}, "refused"), flag({"refused_undecided": 1.0}, "refused")
    (True, False, None)
    """
    return None if name + _UNDECIDED in scores else scores.get(name) == 1.0


def undecided_flags(scores: Mapping[str, float]) -> Iterator[str]:
    """The readings of a response that are undecided."""
    return (name.removesuffix(_UNDECIDED) for name in scores if name.endswith(_UNDECIDED))


# -- Judging by a model: the prompts of the papers, and the parsing of replies


def right_or_wrong(prompt: str, *, released: bool = False) -> ModelScorer:
    """A judge that replies 'right' or 'wrong' about an answer and its reference (CODIS, Table 12)."""

    def ask(case: Case) -> tuple[Message, ...]:
        return (
            user(
                fill(prompt, question=case.probe_question, reference=case.references[0], output=case.texts[0])
            ),
        )

    def read(case: Case, reply: str) -> Reading:
        if released:
            return Reading("right" if "right" in reply else "wrong", reply)
        return Reading(read_verdict(reply, CORRECT), reply)

    return ModelScorer("right_or_wrong", "correct", ask, read, reads_truncated=released)


def same_or_different(prompt: str) -> ModelScorer:
    """A judge that decides whether two answers have the same meaning.

    A reply without a verdict (see `read_verdict`) is requested once more, then it is undecided.
    """

    def ask(case: Case) -> tuple[Message, ...]:
        first, second = case.texts
        return (user(fill(prompt, question=case.probe_question, first=first, second=second)),)

    return ModelScorer("same_or_different", "same_meaning", ask, _reader(SAME), max_attempts=2)


def _reader(vocabulary: VerdictWords) -> Callable[[Case, str], Reading]:
    return lambda case, reply: Reading(read_verdict(reply, vocabulary), reply)


def same_meaning_by_model() -> ModelScorer:
    """A judge that compares two answers with the prompt of this package, since no paper prints one."""
    return same_or_different(load(__package__)["same_meaning"]["text"])


def right_answer() -> ModelScorer:
    """A judge that compares an answer with its references by the prompt of this package."""
    prompt = load(__package__)["right_answer"]["text"]

    def ask(case: Case) -> tuple[Message, ...]:
        texts = {"references": "\n".join(case.references), "answer": case.texts[0]}
        return (user(fill(prompt, question=case.probe_question, **texts)),)

    return ModelScorer("right_answer", "correct", ask, _reader(CORRECT), max_attempts=2)


def seeing(scorer: ModelScorer, images: bool) -> ModelScorer:
    """The same judge; with `images` it gets those of an answer before its prompt."""
    if not images:
        return scorer

    def ask(case: Case) -> tuple[Message, ...]:
        *before, last = scorer.ask(case)
        return (*before, Message(last.role, (*(ImageRef(file.path) for file in case.images), *last.parts)))

    return replace(scorer, ask=ask, needs_images=True)


def accepted(prompt: str, *, released: bool = False) -> ModelScorer:
    """A judge that ends its reply with 'Judgement: Yes' or 'Judgement: No' (ConTextual, Figure 20).

    A reply without a verdict (see `read_verdict`) is requested once more, then it is undecided.
    """

    def ask(case: Case) -> tuple[Message, ...]:
        words = fill(
            prompt, instruction=case.probe_question, reference=case.references[0], prediction=case.texts[0]
        )
        return (user(words),)

    def read(case: Case, reply: str) -> Reading:
        return _released_judgement(reply) if released else Reading(read_verdict(reply, CORRECT), reply)

    return ModelScorer("accepted", "correct", ask, read, max_attempts=2, reads_truncated=released)


def _released_judgement(reply: str) -> Reading:
    _, stated, said = reply.partition("Judgement: ")
    if stated:
        yes, no = "Yes" in said, "No" in said
    else:
        yes, no = reply == "Yes", reply == "No"
    return Reading("right" if yes else "wrong" if no else "undecided", reply)


# -- Which of two answers a judge prefers

Choice = Literal["first", "second", "tie"]
_MARKS: Mapping[str, Choice] = {"A": "first", "B": "second", "C": "tie"}


def ask_preference(
    question: str, answers: tuple[str, str], reference: str = "", images: Sequence[ImageRef] = ()
) -> tuple[Message, ...]:
    """Ask which of two answers is better, with the prompts of Zheng et al. 2023, after the images, if any."""
    prompt = load(__package__)["preferred_by_reference" if reference else "preferred"]
    first, second = answers
    text = fill(prompt["text"], question=question, reference=reference, first=first, second=second)
    return Message("system", (Text(prompt["system"]),)), user(*images, text)


def read_preference(reply: Answer) -> Choice | None:
    """The last mark of a reply; None without one, or if the reply is truncated.

    >>> read_preference(Answer("B is vague. [[A]]")), read_preference(Answer("Both are good."))
    ('first', None)
    """
    marks = re.findall(r"\[\[([ABC])\]\]", cut_reasoning(reply.text).answer)
    return _MARKS[marks[-1]] if marks and not reply.truncated else None


# -- Reads the verdict of a judge model from its reply

ReplyVerdict = Literal["right", "wrong", "undecided"]
_OPPOSITE: dict[ReplyVerdict, ReplyVerdict] = {"right": "wrong", "wrong": "right"}


class VerdictWords(Struct, frozen=True):
    """The words by which a judge states one of two verdicts, besides yes and no.

    `before` may stand before them. `fits` and `differs` compare texts; they count if nothing else is stated.
    """

    right: frozenset[str]
    wrong: frozenset[str]
    before: frozenset[str] = frozenset()
    fits: frozenset[str] = frozenset()
    differs: frozenset[str] = frozenset()


_FAULTS = lexicon(
    """discrepancy discrepancies difference differences error errors issue issues mistake mistakes
    contradiction contradictions inconsistency mismatch conflict"""
)
CORRECT = VerdictWords(
    lexicon("right correct accurate acceptable accept accepted valid"),
    lexicon("wrong incorrect inaccurate unacceptable reject rejected invalid mistaken erroneous"),
    fits=lexicon("match matches consistent agrees inferred equals"),
    differs=lexicon("contradicts inconsistent") | _FAULTS,
)
"""The verdict of a judge that decides whether a response is correct."""

SAME = VerdictWords(
    lexicon("same identical equivalent synonymous agree"),
    lexicon("different differ differs distinct dissimilar nonequivalent"),
    lexicon(
        """first second one other ask asks asking convey express has share about they them answers questions
        meanings sentences statements outputs"""
    ),
    differs=_FAULTS,
)
"""The verdict of a judge that decides whether two texts mean the same."""

_YES, _NO = lexicon("yes yeah yep yup true"), lexicon("no nope false")
_TURNS = lexicon("not never hardly neither without nothing far no")
_RESERVES = lexicon(
    """partially partly partial half somewhat mostly largely mainly almost nearly generally broadly
    roughly part maybe perhaps possibly might may could unclear unsure if unless whether either or nor
    depends except otherwise only extent reservation reservations caveat caveats exception exceptions
    technically arguably kind sort"""
)
_DEGREES = _RESERVES - lexicon("might may could either or nor whether part half")
"""Reservations: a clause with one of the first states no verdict; one of the second, nowhere in its sentence,
that a response is right."""

_BEFORE_NO = lexicon(
    """so therefore thus hence overall finally ultimately then conclude is a an it this that i we my the
    would will be must should have to say output print respond reply judge go with think judgement
    judgment verdict decision final answer give of still actually clearly definitely certainly surely
    probably likely absolutely in summary"""
)
_BEFORE = _BEFORE_NO | lexicon(
    """find finds concluding conclusion are was do does did yes as been being can has its these those
    there both two all also indeed marked mark rate rated judged label evaluate choose believe
    consider considered deem deemed count counts seem seems appears essentially basically semantically
    factually fully entirely completely very exactly quite really strictly any call at for gives gave
    provide provides provided lean towards toward model predicted given extracted from response
    prediction result results question meaning mean means me after careful longer sorry no"""
)
"""What may stand before the word of a verdict in its clause; before yes and no, less."""

_NOUNS = lexicon(
    """answer answers output outputs response prediction meaning meanings thing things question questions
    one judgement judgment verdict"""
)
_AFTER_NO = lexicon(
    """explanation reason reasoning rationale confidence note with as the it this that they there he she
    you both these actually"""
)
_SURE = lexicon("absolutely certainly definitely clearly surely probably of course")
_SENSES = lexicon("meaning substance content essence any this complete incomplete consistent clear")
_COPULAS = lexicon("is was would should to has must")
_AFTER = _AFTER_NO | _NOUNS | lexicon("according overall too also then here based per under given from to")
"""What may follow it: after yes and no, no noun, which they would deny ('No answer')."""


_MARKUP = re.compile(
    r"\\[a-z]+(?=\s*\{)|</[a-z]+>|<(?:judge?ment|verdict|answer|result|decision)>|[*_#`~\"'“”„«»「」『』\[\]{}$\\<>✅❌✓✗]"
)
_QUOTE = r"[\"'“][^\"'”\n]{1,60}[\"'”]"
_REPORTED = re.compile(
    rf"\b(?:answer|output|response|prediction)\s+(?:of\s+)?{_QUOTE}(?=\s+(?:is|was|does|would)\b)"
    rf"|\b(?:is|was)\s+{_QUOTE}(?=[.,;]?\s+(?:(?:and|while|but|whereas) )?(?:the )?groundtruth\b)"
    r"|\bno\.\s*(?=\d)"
    r"|\b(?:right|correct|expected) (?:answer|output|response|one)\s*:[^\n,;.]*"
    r"|\A\W*(?:yes|right|correct|ok|okay)\W+"
    r"(?=(?:let (?:me|us)|here|first|now|please|i (?:can|will|need|have))\b)"
)
"""What is said of a response, no verdict of it; 'No. 5'; the 'Yes' of 'Yes, let me see'."""

_LABEL = re.compile(
    r"\b(?P<noun>judge?ment|verdict|decision|evaluation|assessment|conclusion|ruling|final answer(?=\s*:))"
    r"(?:\s*\([^)\n]*\)|\s+(?:for|of|on|about)\s+[a-z ]{1,30}?)?\s*(?:is\b\s*)?(?:[:=\n→]|->|=>|\s-|\bis\b)"
)
_FINAL = re.compile(r"\bfinal\b")
_SHORT = 3
"""The most words of a sentence that says no more than a verdict."""
_JSON = re.compile(r"\[\s*\{.*\}\s*\]|\{.*\}", re.DOTALL)
_KEYS = (
    lexicon("judgement judgment verdict decision ruling"),
    lexicon(
        "correct right accepted acceptable accurate valid same equivalent match matches identical correctness"
    )
    | (_OBJECTING_KEYS := lexicon("incorrect notcorrect wrong different notsame unacceptable rejected")),
    lexicon("evaluation result label answer output response conclusion assessment score"),
)
_PREFIX = re.compile(r"\A(?:(?:the)?(?:answer|response|output|prediction)?(?:is|are)|final|overall|my)")
"""The fields of an object that hold a verdict; the first kind that is there is read."""

_SENTENCE = re.compile(r"((?:[^.!?。！？\n]|[.!?](?=\d))+)([.!?。！？]*)")
_CLAUSE = re.compile(
    r"([,;:=()|—–→]|\s-+>?\s|->|=>|\b(?:so|therefore|thus|hence|because|since|while|whereas|which)\b"
    r"|\band (?=(?:so|therefore|thus|hence|the|it|i|is|are|they|this)\b)|\bas (?=(?:it|the|this|no|not)\b))"
)
_INTRODUCING = re.compile(r"[:;=—–→>-]|so|therefore|thus|hence")
_REASON = re.compile(r"\W*(?:since|because|as|given)\b")
_ASIDE = re.compile(r"(?<=\w)[^\w\n(]*\((?!\s*(?:but|though|although|partial|most|except|only))[^)\n]*\)?")
_CONTRAST = re.compile(r"\b(?:but|however|although|though|yet|except|apart from|other than|despite)\b")
_CONCESSION = re.compile(
    r"\A\W*(?:(?:even )?though|although|while|despite|even if)\b[^,]*,|,?\s*\beven (?:though|if)\b.*"
)


def read_verdict(reply: str, vocabulary: VerdictWords) -> ReplyVerdict:
    """Read the verdict of a judge model.

    Read are a JSON object, the last label ('Verdict: right'), and otherwise the clauses that say nothing but
    a verdict, which must agree. Labels that differ are undecided, unless the last one is final ('Final
    verdict: right'). A negation turns a verdict; a reservation ('Correct, but ...', 'partially correct')
    leaves it undecided. If the reply corrects itself ('Wait, ...'), what follows counts.

    >>> read_verdict("Judgement: Yes. There is no discrepancy", CORRECT)
    'right'
    >>> read_verdict("They don't mean the same.", SAME), read_verdict('{"correct": "false"}', CORRECT)
    ('wrong', 'wrong')
    >>> read_verdict("Correct, but the year is missing.", CORRECT)
    'undecided'
    """
    reply = without_tokens(cut_reasoning(reply).answer)
    if (found := _JSON.search(reply)) and isinstance(value := _json_value(found[0]), dict | list):
        both = {_of_json(value, vocabulary), read_verdict(reply.replace(found[0], ""), vocabulary)}
        stated = both - {"undecided"}
        return stated.pop() if len(stated) == 1 else "undecided"
    text = re.sub(r"\s*\n\s*", "\n", respelled(reply).replace("anything but", "not"))
    text = _MARKUP.sub("", _REPORTED.sub("answer", re.sub(r"ground[- ]truth", "groundtruth", text)))
    withdrawn, last = corrected(text)
    if last is None:
        return _read(text, vocabulary)
    verdict = _read(re.sub(r"\A\W*(?:no|nope)\b", "", last), vocabulary)
    if verdict != "undecided" or (withdrawn and _read(withdrawn, vocabulary) == "wrong"):
        return verdict
    verdict = _read(last, vocabulary)
    return verdict if withdrawn or verdict != "undecided" else _read(text, vocabulary)


def _read(text: str, vocabulary: VerdictWords) -> ReplyVerdict:
    """The verdict of a text that does not correct itself."""
    labels = list(_LABEL.finditer(text))
    ends = [*(label.start() for label in labels[1:]), len(text)]
    last: tuple[re.Match[str], ReplyVerdict] | None = None
    for label, end in zip(reversed(labels), reversed(ends), strict=False):
        labelled = text[label.end() : end]
        opening = next((found[1] for found in _SENTENCE.finditer(labelled) if words(found[1])), "")
        stated = _verdicts(labelled, vocabulary)
        if last is not None:
            # What an 'Assessment: ...' goes through in sentences is no verdict beside the one that follows.
            is_verdict = label["noun"] == last[0]["noun"] or len(words(opening)) <= _SHORT
            if stated and stated[0] != last[1] and is_verdict:
                return "undecided"
            continue
        if _RESERVES & {*words(opening)[:4]} and not _of_sentence(opening, vocabulary):
            return "undecided"
        if stated and _FINAL.search(text[max(0, label.start() - 10) : label.end()]):
            return stated[0]
        last = (label, stated[0]) if stated else None
    if last is not None:
        return last[1]
    stated = _verdicts(text, vocabulary) or _compared(text, vocabulary)
    return stated[0] if len(set(stated)) == 1 else "undecided"


def _verdicts(text: str, vocabulary: VerdictWords) -> list[ReplyVerdict]:
    """The verdicts that the sentences of a text state; a last one of one word replaces the others."""
    found: list[ReplyVerdict] = []
    objects = False
    text = re.sub(r"[.!]\s+(?=(?:but|however)\b)", ", ", _ASIDE.sub("", text))
    sentences = [(one, end) for one, end in _SENTENCE.findall(text) if words(one)]
    first_alone = len(sentences) > 0 and len(words(sentences[0][0])) == 1
    for number, (sentence, end) in enumerate(sentences, 1):
        tokens = words(sentence)
        if "?" in end:
            objects = not (vocabulary.wrong | vocabulary.differs).isdisjoint(tokens)
            continue
        if verdict := _of_sentence(sentence, vocabulary):
            if objects and tokens[0] in _YES | _NO:
                verdict = _OPPOSITE.get(verdict, verdict)
            alone = number == len(sentences) and len(tokens) == 1 and not first_alone
            found = [*([] if alone else found), verdict]
        objects = False
    return found


def _of_sentence(sentence: str, vocabulary: VerdictWords) -> ReplyVerdict | None:
    """The verdict of a sentence; undecided if its parts contradict each other or a reservation follows."""
    parts = [_of_part(part, vocabulary) for part in _CONTRAST.split(_CONCESSION.sub("", sentence))]
    stated = {verdict for verdict in parts if verdict}
    reserved = parts[-1] is None or not _DEGREES.isdisjoint(words(sentence))
    if len(stated) > 1 or (stated == {"right"} and reserved):
        return "undecided"
    return next(iter(stated), None)


def _of_part(part: str, vocabulary: VerdictWords) -> ReplyVerdict | None:
    """The verdict of the clauses of a part; a word alone counts where it is first or introduced."""
    found: set[ReplyVerdict] = set()
    separator, offers = ":", False
    reason_first = _REASON.match(part) is not None
    pieces = ["", *_CLAUSE.split(part)]
    for before, clause in zip(pieces[::2], pieces[1::2], strict=True):
        separator += before
        if tokens := words(clause):
            introduced = len(tokens) > 1 or found or reason_first or _INTRODUCING.search(separator)
            if introduced and (verdict := _of_clause(tokens, vocabulary)):
                found.add(verdict)
            offers = offers or (
                "or" in tokens and not (vocabulary.right | vocabulary.wrong).isdisjoint(tokens)
            )
            separator = ""
    return "undecided" if len(found) > 1 or (found and offers) else next(iter(found), None)


def _of_clause(tokens: tuple[str, ...], vocabulary: VerdictWords) -> ReplyVerdict | None:
    """The verdict of a clause that says little else; None if it states none."""
    if not _RESERVES.isdisjoint(tokens):
        return None
    if tokens[-1:] == ("not",) and {*tokens[:-1]} <= _SURE:
        return "wrong"
    listed = vocabulary.right | vocabulary.wrong
    tokens = tuple(token for token, last in zip(tokens, ("", *tokens), strict=False) if token != last)
    for at, token in enumerate(tokens):
        before, after = {*tokens[:at]}, tokens[at + 1 :]
        if token in _YES | _NO and before <= _BEFORE_NO and _AFTER_NO.issuperset(after[:1]):
            return "right" if token in _YES else "wrong"
        if token not in listed:
            continue
        follows = _AFTER.issuperset(after[:1]) or (
            {"in", "and"} & {*after[:1]} and not _SENSES.isdisjoint(after[1:3])
        )
        is_subject = not _NOUNS.isdisjoint(after[:1]) and not _COPULAS.isdisjoint(after[1:2])
        allowed = before <= _BEFORE | _TURNS | vocabulary.before and not {"can", "say"} <= before
        if not allowed or not follows or is_subject:
            return None
        turned = sum(word in _TURNS for word in tokens[:at]) % 2 == 1
        return "right" if (token in vocabulary.right) != turned else "wrong"
    return None


def _compared(text: str, vocabulary: VerdictWords) -> list[ReplyVerdict]:
    """The verdict of a reply that only compares, without a reservation ('matches', 'no discrepancy')."""
    found: list[ReplyVerdict] = []
    for clause in _CLAUSE.split(text) if not _CONTRAST.search(text) else ():
        tokens = words(clause)
        for at, token in enumerate(tokens if len(tokens) > 1 else ()):
            if token in vocabulary.fits | vocabulary.differs and _RESERVES.isdisjoint(tokens):
                turned = sum(word in _TURNS for word in tokens[:at]) % 2 == 1
                found.append("right" if (token in vocabulary.fits) != turned else "wrong")
    return found


def _of_json(value: object, vocabulary: VerdictWords, turned: bool = False) -> ReplyVerdict:
    """The verdict of a JSON value: of its items or fields, or a truth value, 0 or 1, or a text."""
    if isinstance(value, dict):
        named = {_PREFIX.sub("", re.sub("[^a-z]", "", str(key).lower())): one for key, one in value.items()}
        kinds = [{key: one for key, one in named.items() if key in keys} for keys in _KEYS]
        nested = {key: one for key, one in named.items() if isinstance(one, dict | list)}
        read = next(filter(None, kinds), nested)
        inner = {_of_json(one, vocabulary, key in _OBJECTING_KEYS) for key, one in read.items()}
        return inner.pop() if len(inner) == 1 else "undecided"
    if isinstance(value, list):
        inner = {_of_json(one, vocabulary, turned) for one in value}
        return inner.pop() if len(inner) == 1 else "undecided"
    said = {0: "no", 1: "yes", "0": "no", "1": "yes"}.get(value, value)
    verdict = read_verdict(f"Judgement: {said}", vocabulary)
    return _OPPOSITE.get(verdict, verdict) if turned else verdict


def _json_value(text: str) -> object:
    """The object or list that a text is, in JSON or as Python prints it; None if it is none."""
    for decode in (msgspec.json.decode, literal_eval):
        with suppress(ValueError, SyntaxError, MemoryError, RecursionError, TypeError):
            return decode(text)
    return None


# -- Where a text corrects itself: 'Wait, ...', 'Actually, ...', 'Scratch that'

_CORRECTION = re.compile(
    r"(?:^|[.,;:!?()\n—–-]|\b(?:but|and)\b|\s(?=[\w-]+(?: [\w-]+){0,2}[,:]))\s*"
    r"(?:(?:no|oh|ah|hm+|well|so|sorry|ok|okay|but|and|or)\b,?\s*)*"
    r"\b(?:wait(?!\s+(?:for|until|\d))|(?:hold|hang) on|actually|correction|oops|whoops|edit|rather"
    r"|(?:sorry|apologies)(?! for| about)|(?:scratch|strike) that|never ?mind|my (?:mistake|bad|error)"
    r"|i (?:take (?:that|it) back|meant|misread|misspoke|stand corrected|correct myself"
    r"|made (?:a mistake|an error)|(?:now )?reconsider(?:ed)?)"
    r"|let me (?:reconsider|rethink|correct|revise)(?: (?:that|this|it|myself))?"
    r"|(?:up)?on (?:second thoughts?|reflection|reconsideration|closer inspection)"
    r"|(?:looking|reading|checking) (?:again|closer|closely)|after (?:re-?\w+|another look|further \w+))\b"
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
