"""Question rephrasing (MM-R3, section 3.2): a chat model writes three rephrasings of each long question.

The questions come from the files of OKVQA and InfographicVQA, or from tables."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any, TypeVar

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from sightline.builders.folder import (
    BuildIdentity,
    BuildManifest,
    Contents,
    ExcludedFolder,
    build_identity,
    built_image_path,
    everything_dropped,
    read_excluded,
    share_label,
    write_folder,
)
from sightline.builders.replies import (
    MAX_ATTEMPTS,
    ReplyRequests,
    ReplyResult,
    collect_replies,
    dropped_reasons,
    read_rephrasings,
    unanswered_reasons,
)
from sightline.builders.sources import (
    SourceItem,
    check_sources,
    confined,
    refuse_duplicate_ids,
    table_sources,
)
from sightline.engine.client import ModelClient
from sightline.errors import UserError
from sightline.formats.files import json_digest, read_bytes
from sightline.formats.groups import ORIGINAL, GroupLine
from sightline.store.answers import KeyedRequest
from sightline.store.store import Store
from sightline.text import fill, json_records, load
from sightline.types import Answer, ImageFile, Message, user

KIND = "rephrase"
SAMPLING: Mapping[str, Any] = {"temperature": 1, "max_tokens": 1024}
"""Unpublished in the paper. A second attempt needs a temperature: at 0 the reply would be the same."""

Rephrasings = tuple[str, ...]


class RephraseJob(Struct, frozen=True):
    """What to rephrase, checked before anything is asked."""

    sources: tuple[SourceItem, ...]
    files: Mapping[str, ImageFile]
    settings: Mapping[str, Any]
    excluded: tuple[ExcludedFolder, ...] = ()
    dropped: Mapping[str, str] = field(default_factory=dict)
    passed_over: Mapping[str, int] = field(default_factory=dict)

    @property
    def identity(self) -> BuildIdentity:
        """The identity of the build. Replies are not part of it: later ones complete the same folder."""
        digests = {name: file.digest for name, file in self.files.items()}
        return build_identity(KIND, self.settings, self.excluded, self.dropped, digests)


class RephraseManifest(BuildManifest, frozen=True):
    """The manifest of rephrasings, with the questions whose request failed and the reason."""

    unanswered: Mapping[str, str] = field(default_factory=dict)


def prepare_rephrasing(
    sources: Sequence[SourceItem],
    client: ModelClient,
    *,
    seed: int = 0,
    min_words: int = 0,
    passed_over: Mapping[str, int] | None = None,
    apart_from: Sequence[Path] = (),
) -> RephraseJob:
    """Check the images, and drop unusable ones and those that a folder of `apart_from` uses."""
    excluded, folder_of = read_excluded(apart_from)
    files, dropped = check_sources(sources, folder_of)
    usable = tuple(source for source in sources if source.id in files)
    if not usable:
        raise everything_dropped(dropped, "questions")
    settings = {
        **client.description,
        "request": _prompts()["request"],
        "prompt": _prompts()["prompt"],
        "asks": MAX_ATTEMPTS,
        "min_words": min_words,
        "seed": seed,
        "questions": json_digest([[source.id, source.question, source.references] for source in sources]),
    }
    plain = msgspec.json.decode(msgspec.json.encode(settings))
    return RephraseJob(usable, files, plain, excluded, dropped, passed_over or {})


def rephrasing_request(source: SourceItem) -> tuple[Message, ...]:
    """The request for a question: the paper's prompt with the first reference, without the image."""
    text = fill(_prompts()["request"], question=source.question, answer=source.references[0])
    return (user(text),)


def rephrasing_requests(job: RephraseJob, client: ModelClient) -> ReplyRequests[Rephrasings]:
    sources = {source.id: source for source in job.sources}

    def ask(name: str, draw: int) -> KeyedRequest:
        return client.keyed(rephrasing_request(sources[name]), draw)

    def read_answer(name: str, answer: Answer) -> tuple[Rephrasings | None, str]:
        source = sources[name]
        parsed = read_rephrasings(answer.text, source.question, source.references, cut=answer.truncated)
        return parsed.rephrasings or None, parsed.objection

    return ReplyRequests(list(sources), ask, read_answer)


async def rephrase(
    job: RephraseJob, client: ModelClient, store: Store, *, show_progress: bool = False
) -> dict[str, ReplyResult[Rephrasings]]:
    return await collect_replies(
        rephrasing_requests(job, client), client, store, "rephrasing", show_progress=show_progress
    )


def write_rephrasings(
    job: RephraseJob, results: Mapping[str, ReplyResult[Rephrasings]], out: Path, *, force: bool = False
) -> RephraseManifest:
    """Write images/, groups.jsonl and, last, manifest.json: the same bytes for the same replies."""
    done = [source for source in job.sources if results[source.id].value]
    dropped = {**job.dropped, **dropped_reasons(results)}
    if not done:
        raise everything_dropped(dropped, "questions")
    lines = [line for source in done for line in _lines(source, job.files[source.id], results[source.id])]
    contents = Contents(
        groups=len(done),
        probes=len(lines),
        lines=lines,
        sources={source.id: job.files[source.id].digest for source in done},
        dropped=dropped,
        passed_over=job.passed_over,
        excluded=job.excluded,
    )
    unanswered = unanswered_reasons(results)
    images = {_image_path(file): file for file in (job.files[source.id] for source in done)}
    manifest = partial(RephraseManifest, unanswered=unanswered)
    return write_folder(out, job.identity, contents, images, manifest=manifest, force=force)


def _prompts() -> Mapping[str, str]:
    prompts: Mapping[str, str] = load("sightline.benchmarks.mmr3")["rephrasing"]
    return prompts


def _lines(source: SourceItem, file: ImageFile, result: ReplyResult[Rephrasings]) -> list[GroupLine]:
    questions = {ORIGINAL: source.question}
    questions |= {f"r{number}": text for number, text in enumerate(result.value or (), 1)}
    return [
        GroupLine(
            group=source.id,
            variant=variant,
            images=(_image_path(file),),
            prompt=fill(_prompts()["prompt"], question=question),
            question=question,
            references=source.references,
            labels=source.labels
            if variant == ORIGINAL
            else {**source.labels, "edits": edits(source.question, question)},
            cluster=file.digest,
            facts={} if variant == ORIGINAL else {"reply": result.key, "draw": result.draw},
        )
        for variant, question in questions.items()
    ]


def edits(question: str, rephrased: str) -> str:
    """How far a rephrasing is from its question: their edit distance in words, over the longer one's words.

    >>> edits("What is it?", "What is this thing?")
    '50-60 %'
    """
    first, second = (text.casefold().rstrip("?. ").split() for text in (question, rephrased))
    row = list(range(len(second) + 1))
    for number, word in enumerate(first, 1):
        before, row[0] = row[0], number
        for place, other in enumerate(second, 1):
            changed = before + (word != other)
            before, row[place] = row[place], min(changed, row[place] + 1, row[place - 1] + 1)
    return share_label(row[-1] / max(len(first), len(second)))


def _image_path(file: ImageFile) -> str:
    """An image's path in the folder, named by its content: two sources with the same image share one file."""
    return built_image_path(file.digest[:16], file.format)


# -- Reads questions about images with reference answers: OKVQA's files, InfographicVQA's, and tables

LONG = 11
"""Smallest number of words of a question to rephrase: 'more than 10 words' (MM-R3, section 3.2)."""

TOO_SHORT = "the question is too short"
NO_ANSWER = "no reference answer"
NO_QUESTION = "no question"

T = TypeVar("T")


class QuestionSet(Struct, frozen=True):
    """Questions to rephrase, and the number of the others by reason.

    A source's `references` are its distinct answers in order; its label `source` names the data set.
    """

    sources: tuple[SourceItem, ...]
    passed_over: Mapping[str, int] = field(default_factory=dict)


def read_questions(
    files: Sequence[Path],
    images: Sequence[Path] = (),
    *,
    annotations: Path | None = None,
    min_words: int = LONG,
) -> QuestionSet:
    """Read questions, in order of the files.

    The content decides the format: VQA (OKVQA: `questions`), InfographicVQA (`data`), or otherwise a table
    (JSON Lines, JSON list or CSV) with the columns image, question and answer or answers.
    """
    read = [source for file in files for source in _read(file, list(images) or [file.parent], annotations)]
    refuse_duplicate_ids(read)
    kept, passed_over = [], Counter[str]()
    for source in read:
        if reason := _unfit(source, min_words):
            passed_over[reason] += 1
        else:
            kept.append(source)
    if not kept:
        why = ", ".join(f"{reason}: {count:,}" for reason, count in passed_over.items()) or "it holds none"
        raise UserError(
            f"no question is left ({why})",
            file=files[0] if files else None,
            expected=f"questions of at least {min_words} words with an answer",
        )
    return QuestionSet(tuple(kept), dict(passed_over))


def word_count(question: str) -> int:
    """Count the words of a question: parts between blanks that are not punctuation only.

    >>> word_count("What is it - a bus ?")
    5
    """
    return sum(any(map(str.isalnum, word)) for word in question.split())


def _unfit(source: SourceItem, min_words: int) -> str:
    if not source.question:
        return NO_QUESTION
    if word_count(source.question) < min_words:
        return TOO_SHORT
    return "" if source.references else NO_ANSWER


class _VqaQuestion(Struct, frozen=True):
    """A record of OpenEnded_mscoco_val2014_questions.json."""

    question_id: int | str
    image_id: int
    question: str


class _VqaAnswer(Struct, frozen=True):
    """One human's answer; `answer` is the normalised text that the benchmark uses."""

    answer: str


class _VqaAnnotation(Struct, frozen=True):
    """A record of mscoco_val2014_annotations.json."""

    question_id: int | str
    answers: tuple[_VqaAnswer, ...]


class _Infographic(Struct, frozen=True, rename={"id": "questionId", "image": "image_local_name"}):
    """A record of InfographicVQA's JSON; the test split has no answers."""

    id: int | str
    question: str
    image: str
    answers: tuple[str, ...] = ()


def _read(file: Path, images: Sequence[Path], annotations: Path | None) -> Sequence[SourceItem]:
    content = read_bytes(file)
    if content.lstrip().startswith(b"{"):
        rows = json_records(content, file)
        whole = rows[0][1]
        if len(rows) == 1 and isinstance(whole.get("questions"), list):
            return _vqa(whole, file, images, annotations)
        if len(rows) == 1 and isinstance(whole.get("data"), list):
            return _infographics(whole["data"], file, images)
        if len(rows) == 1 and isinstance(whole.get("annotations"), list):
            raise UserError(
                "holds annotations instead of questions",
                file=file,
                expected="such as OpenEnded_mscoco_val2014_questions.json, with this file in --annotations",
            )
    return _table(file, images)


def _vqa(
    whole: dict[str, Any], file: Path, images: Sequence[Path], annotations: Path | None
) -> list[SourceItem]:
    part = str(whole.get("data_subtype") or "val2014")
    path = annotations or file.with_name(f"mscoco_{part}_annotations.json")
    whole_annotations = _annotations(path, file)
    answers = {
        str(record.question_id): _distinct([one.answer for one in record.answers])
        for record in _records(
            whole_annotations["annotations"], _VqaAnnotation, path, "annotations", "question_id"
        )
    }
    # OK-VQA names itself in `info`; any other file is another data set in the VQA format.
    name = "okvqa" if any("OK-VQA" in str(one.get("info")) for one in (whole, whole_annotations)) else "vqa"
    part = confined(part, file, None, "data_subtype")
    return [
        _located(
            SourceItem(
                id=f"{name}-{question.question_id}",
                image=f"COCO_{part}_{question.image_id:012d}.jpg",
                references=answers.get(str(question.question_id), ()),
                question=_one_line(question.question),
                labels={"source": name},
            ),
            images,
            part,
        )
        for question in _records(whole["questions"], _VqaQuestion, file, "questions", "question_id")
    ]


def _annotations(path: Path, questions: Path) -> dict[str, Any]:
    if not path.is_file():
        raise UserError(
            "the file of answers is missing",
            file=path,
            expected=f"--annotations FILE, the annotations of {questions.name}",
        )
    whole = json_records(read_bytes(path), path)[0][1]
    if not isinstance(whole.get("annotations"), list):
        raise UserError(
            "contains no annotations", file=path, field="annotations", expected="a list of records"
        )
    return whole


def _infographics(listed: list[Any], file: Path, images: Sequence[Path]) -> list[SourceItem]:
    records = _records(listed, _Infographic, file, "data", "questionId")
    return [
        _located(
            SourceItem(
                id=f"infographicvqa-{record.id}",
                image=confined(record.image, file, record.id, "image_local_name", images[0]),
                references=_distinct(record.answers),
                question=_one_line(record.question),
                labels={"source": "infographicvqa"},
            ),
            images,
            "images",
        )
        for record in records
    ]


def _table(file: Path, images: Sequence[Path]) -> list[SourceItem]:
    root = images[0]
    return [
        _located(
            replace(
                source,
                image=str(Path(source.image).relative_to(root)),
                question=_one_line(source.question),
                references=_distinct(source.references),
            ),
            images,
            "",
        )
        for source in table_sources(file, root)
    ]


def _records(listed: list[Any], kind: type[T], file: Path, name: str, identity: str) -> list[T]:
    """Convert the entries of a list; UserError names record and field of an invalid one."""
    try:
        return msgspec.convert(listed, list[kind])  # type: ignore[valid-type]
    except msgspec.ValidationError:
        for number, entry in enumerate(listed, 1):
            try:
                msgspec.convert(entry, kind)
            except msgspec.ValidationError as error:
                text, _, location = str(error).partition(" - at `$")
                entry_id = entry.get(identity) if isinstance(entry, dict) else None
                raise UserError(
                    text[0].lower() + text[1:],
                    file=file,
                    record=f"{name} {number}" if entry_id is None else entry_id,
                    field=location.strip("`.") or None,
                    found=None if isinstance(entry, dict) else entry,
                    expected=f"a record with {', '.join(_names(kind))}",
                ) from None
        raise


def _names(kind: type[Any]) -> Sequence[str]:
    return [one.encode_name for one in msgspec.structs.fields(kind)]


def _located(source: SourceItem, images: Sequence[Path], folder: str) -> SourceItem:
    """The source with the path of its image: in one of the folders, or in a subfolder of the given name."""
    candidates = [(parent / source.image, root) for root in images for parent in (root, root / folder)]
    path, root = next((pair for pair in candidates if pair[0].is_file()), candidates[0])
    return replace(source, image=str(path), root=str(root))


def _distinct(answers: Sequence[str]) -> tuple[str, ...]:
    return tuple(dict.fromkeys(one for answer in answers if (one := _one_line(answer))))


def _one_line(text: str) -> str:
    return " ".join(text.split())
