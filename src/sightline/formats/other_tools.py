"""Reads answers that any tool collected: detects the layout of the file and refuses what is ambiguous."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Callable, Mapping, Sequence
from itertools import takewhile
from operator import eq
from pathlib import Path
from typing import TYPE_CHECKING, Any, Literal

import pybase64
from msgspec import to_builtins
from msgspec.structs import replace

from sightline.errors import UserError, did_you_mean, some_of
from sightline.formats import jsonl
from sightline.formats.columns import completed, labels_in, named, right_answers, score_name
from sightline.formats.files import read_bytes
from sightline.formats.prediction import (
    FILE_MODEL,
    LISTED,
    NAMED_COLUMNS,
    NO_ANSWER,
    AnswerFiles,
    EmptyOption,
    Layout,
    Prediction,
    PredictionFile,
    RecordLocation,
    Response,
    finish_reason,
    identifier,
    listed_options,
    optional_text,
    options_in,
    plain_reply,
    reply,
    variant_of,
    without_missing,
)
from sightline.formats.tables import (
    LONGEST_WORKBOOK_CELL,
    is_workbook,
    read_table,
    table_rows,
)
from sightline.text import Records, json_records
from sightline.types import LETTERS, Repeated, Usage

if TYPE_CHECKING:
    from inspect_ai.log import EvalLog, EvalSample
    from inspect_ai.model import ChatMessage, ModelOutput, ModelUsage


# -- Logs of inspect_ai: `.eval` files and its JSON format, read by inspect_ai itself (the extra
#    `inspect`)

_JSON_LOG = re.compile(rb'\s*\{\s*"version":\s*\d+,\s*"status":')

_UNREAD = {"messages", "events", "store"}
"""Fields that hold most of a log and no answer."""


def is_inspect_log(path: Path, content: bytes) -> bool:
    return path.suffix == ".eval" or _JSON_LOG.match(content) is not None


def read_inspect_log(source: PredictionFile, columns: Mapping[str, str]) -> list[Prediction]:
    log = _log(source.path)
    if not log.samples:
        ended = f", and its run ended with: {log.error.message}" if log.error else ""
        raise UserError(
            f"is a log without samples (status {log.status}){ended}",
            file=source.path,
            expected="a log of a run that asked samples, with --log-samples",
        )
    rows = named([_row_of_sample(sample) for sample in log.samples], columns, source.path)
    model = "" if log.eval.model.startswith(FILE_MODEL) else log.eval.model
    return [
        _prediction_of_sample(sample, record, model, source.at(where), source)
        for sample, (where, record) in zip(log.samples, rows, strict=True)
    ]


def _row_of_sample(sample: EvalSample) -> tuple[str, dict[str, Any]]:
    """What --columns may name in a sample: its metadata, and its scores as inspect_ai counts them."""
    from inspect_ai.scorer import value_to_float

    as_number = value_to_float()
    scores = {
        name: as_number(score.value) if _is_grade(score.value) else score.value
        for name, score in (sample.scores or {}).items()
    }
    return f"{sample.id}, epoch {sample.epoch}", {"metadata": sample.metadata or {}, "scores": scores}


def _is_grade(value: object) -> bool:
    """Whether inspect_ai knows what a text is worth: it takes any other one for 0, with a warning."""
    return isinstance(value, str) and (
        value in ("C", "I", "P", "N") or value.lower() in ("yes", "no", "true", "false")
    )


def _log(path: Path) -> EvalLog:
    try:
        from inspect_ai.log import read_eval_log
    except ImportError as error:
        raise UserError(
            f"is a log of inspect_ai, which needs {error.name}",
            file=path,
            expected="pip install 'sightline[inspect]'",
        ) from None
    form: Any = "eval" if path.suffix == ".eval" else "json"
    try:
        return read_eval_log(path, resolve_attachments="core", format=form, exclude_fields=_UNREAD)
    except Exception as error:  # Its readers raise errors of zipfile, json and pydantic.
        raise UserError(f"inspect_ai cannot read this log: {error}", file=path) from None


def _prediction_of_sample(
    sample: EvalSample,
    record: Mapping[str, Any],
    model: str,
    location: RecordLocation,
    source: PredictionFile,
) -> Prediction:
    metadata = sample.metadata or {}
    probe = metadata.get("probe")
    given = probe if isinstance(probe, dict) else {"sample": sample.id, **metadata}
    known = source.conventions.sample_id
    found = known([given["sample"], *metadata.values()]) if known and given is not probe else None
    output = sample.output
    choices = tuple(sample.choices or ())
    asked = [{"content": sample.input}] if isinstance(sample.input, str) else _plain(sample.input)
    read = Prediction(
        sample=found or identifier(record.get("id", given["sample"]), "id", location),
        variant=variant_of(record.get("variant", given.get("variant")), source, location),
        draw=sample.epoch - 1,
        **_response(sample)._asdict(),
        # `shuffle_choices` of a data set changes choices and target; our own tasks name theirs in the probe.
        options=choices,
        references=_target_letters(sample.target, len(choices))
        if choices
        else _texts_of(sample.target, source),
        labels=labels_in(metadata),
        image=_image_in(asked) if source.is_whole else "",
        # Without the choices, which a solver adds: it is not all of what was sent.
        prompt=_prompt_of(asked) if source.is_whole else "",
        finish_reason="" if output.empty else finish_reason(output.stop_reason),
        version=output.model,
        usage=inspect_usage(output.usage),
        model=model,
    )
    if given is probe:
        # Our own logs hold the line of answers.jsonl, or its part about the question.
        otherwise = {
            "finish_reason": read.finish_reason,
            "version": read.version,
            "usage": to_builtins(read.usage),
        }
        (line,) = jsonl.read([(location.record, {**otherwise, **probe, "response": ""})], source)
        of_inspect = ("draw", "response", "error", "reasoning", "references", "model")
        read = replace(
            line, **{name: getattr(read, name) for name in of_inspect}, options=choices or line.options
        )
    scores = {f"scores.{name}": value for name, value in record["scores"].items()}
    extracted = next((one.answer for one in (sample.scores or {}).values()), None)
    return completed(read, record, location, "inspect_ai", scores, extracted)


def _plain(messages: Sequence[ChatMessage]) -> list[dict[str, Any]]:
    return [message.model_dump() for message in messages]


def _target_letters(target: str | list[str], choices: int) -> tuple[str, ...]:
    """The letters of a target, 'B' or 'A, C', as inspect_ai reads it; () if it is a text."""
    written = [target] if isinstance(target, str) else target
    letters = tuple(letter for one in written for letter in one.replace(",", " ").split())
    return letters if set(letters) <= set(LETTERS[:choices]) else ()


def _response(sample: EvalSample) -> Response:
    output = sample.output
    stated = sample.error.message or "the sample failed" if sample.error else output.error
    if not output.empty:
        stated = NO_ANSWER.get(finish_reason(output.stop_reason)) or stated
    elif not stated:
        stated = "no answer was recorded"
    return Response("", stated) if stated else Response(output.completion, None, inspect_reasoning(output))


def inspect_reasoning(output: ModelOutput) -> str:
    from inspect_ai.model import ContentReasoning

    content = output.message.content
    blocks = [part for part in content if isinstance(part, ContentReasoning)]
    texts = (block.summary if block.redacted else block.reasoning for block in blocks)
    return "\n\n".join(text for text in texts if text)


def inspect_usage(usage: ModelUsage | None) -> Usage:
    """Tokens as the provider counted them; inspect counts cached ones separately."""
    if usage is None:
        return Usage()
    prompt = usage.input_tokens + (usage.input_tokens_cache_read or 0) + (usage.input_tokens_cache_write or 0)
    return Usage(prompt, usage.output_tokens, usage.reasoning_tokens, usage.input_tokens_cache_read)


# -- The sample logs of lm-eval (`samples_TASK_DATE.jsonl`) and lmms-eval (`DATE_samples_TASK.jsonl`), written
#    with --log_samples


def is_lm_eval(record: dict[str, Any]) -> bool:
    return {"doc_id", "resps", "arguments"} <= record.keys()


def read_lm_eval(rows: Records, source: PredictionFile) -> list[Prediction]:
    """Read one answer a repeat, as the model gave it: from `resps`.

    `filtered_resps` is what a filter extracted, often of the first repeat only, and a record is written again
    for each filter: the records of other filters are left out. null is a response that is missing.
    """
    predictions: list[Prediction] = []
    filters: dict[tuple[str, str], object] = {}
    for where, record in rows:
        prompt = _first_prompt(record["arguments"])
        names = record.get("metrics") or record.keys() - _LM_EVAL
        scores = {name: record.get(name) for name in names}
        found = _record(record, "resps", prompt, where, source, reply, ("lm-eval", scores))
        key = found[0].sample, found[0].variant
        if filters.setdefault(key, record.get("filter")) == record.get("filter"):
            predictions.extend(found)
    return predictions


_LM_EVAL = {
    *("doc_id", "doc", "target", "arguments", "resps", "filtered_resps", "filter", "metrics", "input"),
    *("input_media", "token_counts", "doc_hash", "prompt_hash", "target_hash", "id", "response"),
}
"""The fields of a record of lm-eval or lmms-eval that are no metric of its task."""


def _first_prompt(arguments: object) -> object:
    """The prompt in {"gen_args_0": {"arg_0": ...}}; older versions wrote lists."""
    for _ in range(2):
        members = list(arguments.values()) if isinstance(arguments, dict) else arguments
        arguments = members[0] if isinstance(members, list) and members else None
    return arguments


def is_lmms_eval(record: dict[str, Any]) -> bool:
    return "doc_id" in record and ("filtered_resps" in record or "resps" in record)


def read_lmms_eval(rows: Records, source: PredictionFile) -> list[Prediction]:
    """Read one answer a repeat. The id is that of `doc`, or of the metric that carries one.

    The task ii_bench (lmms_eval/tasks/ii_bench/utils.py) carries it in its metric `submission`; the options
    that the model saw are read from `input`. lmms-eval 0.7.3 writes a call that it did not make, or that
    failed (Claude, Reka), as a response '' without token counts, where other responses of the file have them.
    """
    counted = any(any(_token_counts(record)) for _, record in rows)
    predictions: list[Prediction] = []
    for where, record in rows:
        holder = "filtered_resps" if "filtered_resps" in record else "resps"
        metrics = {name: value for name, value in record.items() if name not in _LM_EVAL}
        scores = {score_name(name, value): value for name, value in metrics.items()}
        found = _record(
            record, holder, record.get("input"), where, source, plain_reply, ("lmms-eval", scores)
        )
        counts = _token_counts(record)
        if len(counts) == len(found):
            found = [_as_counted(one, tokens, counted) for one, tokens in zip(found, counts, strict=True)]
        predictions.extend(found)
    return predictions


def _as_counted(one: Prediction, tokens: object, others_are_counted: bool) -> Prediction:
    if one.response or one.error is not None or tokens or (tokens is None and not others_are_counted):
        return one
    return replace(one, error="lmms-eval recorded neither a response nor its tokens")


def _token_counts(record: Mapping[str, Any]) -> list[Any]:
    counts = record.get("token_counts")
    return counts if isinstance(counts, list) else []


def _record(
    record: dict[str, Any],
    named: str,
    prompt: object,
    where: str,
    source: PredictionFile,
    read: Callable[[Any, str, RecordLocation], Response],
    scored: tuple[str, Mapping[str, object]],
) -> list[Prediction]:
    # --columns names fields of the record itself, which come first.
    objects = [entry for entry in (record, record.get("doc"), *record.values()) if isinstance(entry, dict)]
    named = "response" if "response" in record else named
    sample = _lmms_eval_sample(record, objects, source.at(where), source)
    location = source.at(sample)
    question_in = source.conventions.question_in
    question, shown = question_in(prompt) if question_in and isinstance(prompt, str) else ("", ())
    options, empty_options, labels = _options_of_document(record, location)
    if source.is_whole and not options and isinstance(prompt, str):
        shown = _options_in_prompt(prompt)
    if shown and "options" not in record:
        options, empty_options, labels = shown, (), ()
    references = _target_of(record.get("target"), options, labels)
    variant = next((entry["variant"] for entry in objects if "variant" in entry), None)
    responses = _responses(record, named, location, source)
    found = [
        Prediction(
            sample=sample,
            variant=variant_of(variant, source, location),
            **read(response, named, location)._asdict(),
            draw=draw,
            question=question,
            options=options,
            empty_options=empty_options,
            references=references if options else _texts_of(record.get("target"), source),
            labels={name: text for entry in objects[::-1] for name, text in labels_in(entry).items()},
            image=_named_image(record, objects),
            prompt=prompt if isinstance(prompt, str) else "",
        )
        for draw, response in enumerate(responses)
    ]
    tool, scores = scored
    # A filter took one of several repeats, mostly the first: the score is that of no other.
    scores = scores if len(found) == 1 else {}
    return [completed(one, record, location, tool, scores) for one in found]


def _named_image(record: Mapping[str, Any], objects: Sequence[Mapping[str, Any]]) -> str:
    """The path of the first image; lmms-eval logs those that stand in the document as `input_media`."""
    media = record.get("input_media")
    found = [*(entry.get("local_path") for entry in objects), *(media if isinstance(media, list) else [])]
    return next((path for path in found if isinstance(path, str)), "")


def _options_of_document(
    record: Mapping[str, Any], location: RecordLocation
) -> tuple[tuple[str, ...], tuple[EmptyOption, ...], tuple[str, ...]]:
    """The options that the model saw, their empty ones and their labels, which only the form of ARC has.

    A task keeps them as it likes: what is no list in `doc` is not read, but what --columns names must be one.
    """
    if "options" in record:
        found, labels = _labelled(record["options"])
        return *listed_options(found, "options", location), labels
    doc = record.get("doc")
    for name in ("options", "choices"):
        found, labels = _labelled(doc.get(name) if isinstance(doc, dict) else None)
        if isinstance(found, list) and all(isinstance(one, str | int | float | None) for one in found):
            return *listed_options(found, f"doc.{name}", location), labels
    return (), (), ()


def _labelled(value: object) -> tuple[object, tuple[str, ...]]:
    """Options and their labels, () if they have none. ARC has {"text": [...], "label": ["A", ...]}."""
    if not isinstance(value, dict) or not isinstance(value.get("text"), list):
        return value, ()
    labels = value.get("label")
    if not isinstance(labels, list) or len(labels) != len(value["text"]):
        return value["text"], ()
    pairs = list(zip(map(str, labels), value["text"], strict=True))
    if {label for label, _ in pairs} == set(LETTERS[: len(pairs)]):
        pairs.sort(key=lambda pair: pair[0])
    return [text for _, text in pairs], tuple(label for label, _ in pairs)


def _texts_of(target: object, source: PredictionFile) -> tuple[str, ...]:
    """The texts of a target; none where there are data: a task may put a placeholder for hidden answers."""
    return right_answers(target) if source.is_whole else ()


_TARGET = re.compile(r"\s*\(?([A-Z]|[0-9]{1,3})[).]?\s*")


def _target_of(target: object, options: tuple[str, ...], labels: tuple[str, ...]) -> tuple[str, ...]:
    """The letter of a target: a label, a letter or a number from 0; () if it is none, or may be two of them.

    A number may be a label of ARC or an option itself.
    """
    found = _TARGET.fullmatch(str(target)) if isinstance(target, str | int) else None
    if found is None:
        return ()
    name, letters = found[1], LETTERS[: len(options)]
    if name in labels:
        meant = {labels.index(name)}
    elif name.isdecimal():
        meant = {int(name), *(place for place, option in enumerate(options) if option.strip() == name)}
    else:
        meant = {letters.find(name)}
    places = [place for place in meant if 0 <= place < len(letters)]
    return (letters[places[0]],) if len(places) == 1 else ()


def _lmms_eval_sample(
    record: dict[str, Any],
    objects: list[dict[str, Any]],
    location: RecordLocation,
    source: PredictionFile,
) -> str:
    conventions = source.conventions
    ids = [entry["id"] for entry in objects if "id" in entry]
    if conventions.sample_id is None:
        if source.is_whole and not ids:
            return str(record["doc_id"])
        if not ids:
            expected = (
                f"an id in 'doc' or in a metric; or {NAMED_COLUMNS.format('id=doc.FIELD or id=doc_id')}"
            )
            raise location.error("does not say which sample it answers", field="doc.id", expected=expected)
        return identifier(ids[0], "doc.id", location)
    sample = conventions.sample_id([*ids, *(entry.get("local_path") for entry in objects)])
    if sample is None:
        raise location.error(
            "does not say which question it answers",
            field="submission.id",
            found=ids[0] if ids else f"only doc_id {record['doc_id']}, a row of an unnamed split",
            expected=f"{conventions.sample_ids} in submission.id, doc.id or doc.local_path"
            " (lmms-eval logs the first unless --predict_only is given);"
            f" or {NAMED_COLUMNS.format('id=doc.FIELD')}",
        )
    return sample


def _responses(
    record: dict[str, Any], named: str, location: RecordLocation, source: PredictionFile
) -> list[Any]:
    """The responses, one a repeat: a text, a list of texts, or a list with such a list."""
    value = record[named]
    if isinstance(value, list) and len(value) == 1 and isinstance(value[0], list):
        value = value[0]
    responses = value if isinstance(value, list) else [value]
    if not responses or any(isinstance(one, bool | list | dict) for one in responses):
        if source.scores_only:
            return [""]
        raise location.error(
            "has no answer",
            field=named,
            found=value,
            expected="a text or a list of texts; log-likelihoods of options are no responses, but the tool's "
            "scores of them count with its name as --judge",
        )
    return responses


LM_EVAL = Layout("lm-eval's sample logs (doc_id, arguments, resps)", is_lm_eval, read_lm_eval)
LMMS_EVAL = Layout("lmms-eval's sample logs (doc_id, filtered_resps)", is_lmms_eval, read_lmms_eval)


# -- evalscope's reviews (reviews/MODEL/TASK_SUBSET.jsonl) and predictions (predictions/MODEL/...)


def is_evalscope(record: dict[str, Any]) -> bool:
    return {"index", "messages"} <= record.keys() and ("sample_score" in record or "model_output" in record)


def read_evalscope(rows: Records, source: PredictionFile) -> list[Prediction]:
    """Read one answer a record, as the model gave it: `prediction` of a score is what a filter left.

    `index` counts the samples of a subset, and the repeats of each apart; `group_id` of a review counts the
    samples. The benchmark's own id comes first, where the metadata of the sample hold one.
    """
    found = [_prediction_of_review(record, source.at(where), source) for where, record in rows]
    asked = [(one.prompt, one.image) for one in found]
    if all("sample_score" not in record for _, record in rows) and any(map(eq, asked, asked[1:])):
        raise UserError(
            "holds repeats of questions, and does not say which sample an index is",
            file=source.path,
            expected="the file of the same name in the folder reviews",
        )
    return found


def _prediction_of_review(
    record: dict[str, Any], location: RecordLocation, source: PredictionFile
) -> Prediction:
    scored = _object(record.get("sample_score"))
    metadata = _object(scored.get("sample_metadata") or record.get("metadata"))
    number = record["index"] if scored.get("group_id") is None else scored["group_id"]
    known = source.conventions.sample_id
    named = record.get("id", metadata.get("id", number))
    sample = (known([named, *metadata.values()]) if known else None) or identifier(named, "index", location)
    location = source.at(sample)
    output = _object(record.get("model_output"))
    messages = [message for message in record["messages"] if isinstance(message, dict)]
    asked = [message for message in messages if message.get("role") != "assistant"]
    prompt = _prompt_of(asked)
    options, empty_options = listed_options(
        record.get("options", _options_in_prompt(prompt) or None), "options", location
    )
    target = record.get("target") or ()
    letters = tuple(letter for one in target for letter in _target_of(one, options, ()))
    score = _object(scored.get("score"))
    values = _object(score.get("value"))
    found = Prediction(
        sample=sample,
        variant=variant_of(record.get("variant", metadata.get("variant")), source, location),
        draw=scored.get("generation_index") or 0,
        **_response_of_review(record, messages, output, location)._asdict(),
        options=options,
        empty_options=empty_options,
        references=letters if options else _texts_of(target, source),
        labels=labels_in(metadata),
        image=_image_in(asked),
        prompt=prompt,
        finish_reason=finish_reason(_object(_first_of(output.get("choices"))).get("stop_reason")),
        version=str(output.get("model") or ""),
        usage=jsonl.read_usage(output.get("usage")),
    )
    main = score.get("main_score_name") or next(iter(values), "")
    extracted = score.get("extracted_prediction")
    return completed(found, record, location, "evalscope", {main: values.get(main)}, extracted)


def _response_of_review(
    record: Mapping[str, Any],
    messages: Sequence[Mapping[str, Any]],
    output: Mapping[str, Any],
    location: RecordLocation,
) -> Response:
    if "response" in record:
        return reply(record["response"], "response", location)
    if output.get("error"):
        return Response("", str(output["error"]))
    last = messages[-1] if messages else {}
    if last.get("role") != "assistant":
        return Response("", "no answer was recorded")
    return plain_reply(last.get("content"), "messages", location)


def _object(value: object) -> Mapping[str, Any]:
    return value if isinstance(value, dict) else {}


def _first_of(value: object) -> object:
    return value[0] if isinstance(value, list) and value else None


def _prompt_of(messages: Sequence[Mapping[str, Any]]) -> str:
    """The text of messages; their parts stand in their order, images left out."""
    contents = [message.get("content") for message in messages]
    parts = [part for content in contents for part in (content if isinstance(content, list) else [content])]
    texts = (part.get("text") if isinstance(part, dict) else part for part in parts)
    return "\n".join(text for text in texts if isinstance(text, str) and text)


def _image_in(messages: Sequence[Mapping[str, Any]]) -> str:
    """The path or the URL of the first image; of one whose content the file holds, its digest."""
    parts = (part for message in messages for part in message.get("content") or () if isinstance(part, dict))
    image = next((part["image"] for part in parts if isinstance(part.get("image"), str)), "")
    head, _, data = image.partition(";base64,")
    if not head.startswith("data:") or not data:
        return image
    return hashlib.sha256(pybase64.b64decode(data)).hexdigest()


_LISTED_OPTION = re.compile(r"^\(?([A-Z])[).:] +(.*)$", re.MULTILINE)


def _options_in_prompt(prompt: str) -> tuple[str, ...]:
    """The options that a prompt lists, each in a line: `A) bus`, `(A) bus`, `A. bus` or `A: bus`.

    The files of evalscope (evalscope/utils/multi_choices.py) and lmms-eval hold them nowhere else.
    After examples with options, those of the last list count.
    """
    found = _LISTED_OPTION.findall(prompt)
    starts = [place for place, (letter, _) in enumerate(found) if letter == "A"]
    listed = found[starts[-1] :] if starts else []
    texts = tuple(text.strip() for _, text in listed)
    in_order = LETTERS.startswith("".join(letter for letter, _ in listed))
    return texts if in_order and 1 < len(texts) == len(set(texts)) else ()


EVALSCOPE = Layout("evalscope's reviews (index, messages, sample_score)", is_evalscope, read_evalscope)


# -- VLMEvalKit's result tables: xlsx (its default), tsv, csv or json

IDS = ("id", "sample", "index")
IMAGES = ("local_path", "image_path")


def is_vlmevalkit(record: dict[str, Any]) -> bool:
    return "index" in record and "prediction" in record


def read_vlmevalkit(rows: Records, source: PredictionFile) -> list[Prediction]:
    """Read one answer a row.

    `index` only counts rows. Where the benchmark knows its own ids (`AnswerFiles.sample_id`), the id is the
    first of the columns `id`, `sample`, `index`, `local_path` and `image_path` that holds one. Elsewhere it
    is `id`, else `sample`, else `index`. A benchmark with several probes a sample needs the column `variant`.
    """
    return [_prediction_of_row(record, where, source) for where, record in rows]


def _prediction_of_row(record: dict[str, Any], where: str, source: PredictionFile) -> Prediction:
    sample = _vlmevalkit_sample(record, source.at(where), source.conventions)
    location = source.at(sample)
    letters = takewhile(record.__contains__, LETTERS)
    options, empty_options = options_in(((letter, record[letter]) for letter in letters), source.at(where))
    answer = record.get("answer")
    found = Prediction(
        sample=sample,
        variant=variant_of(record.get("variant"), source, location),
        **plain_reply(record.get("prediction"), "prediction", location)._asdict(),
        question=optional_text(record.get("question"), "question", location),
        options=options,
        empty_options=empty_options,
        references=_target_of(answer, options, ()) if options else _texts_of(answer, source),
        labels=labels_in(record),
        image=_text(record, "local_path") or _text(record, "image_path"),
    )
    return completed(
        found, record, location, "VLMEvalKit", {name: record.get(name) for name in ("hit", "score")}
    )


def _vlmevalkit_sample(record: dict[str, Any], location: RecordLocation, conventions: AnswerFiles) -> str:
    if conventions.sample_id is None:
        column = next((name for name in IDS if name in record), "index")
        return identifier(record.get(column), column, location)
    sample = conventions.sample_id(record.get(column) for column in IDS + IMAGES)
    if sample is None:
        raise location.error(
            "does not say which question it answers",
            field="id",
            found=f"only index {record.get('index')}, a row of an unnamed split",
            expected=f"{conventions.sample_ids} in one of the columns {', '.join(IDS + IMAGES)}",
        )
    return sample


def _text(record: dict[str, Any], column: str) -> str:
    cell = record.get(column)
    return cell if isinstance(cell, str) else ""


VLMEVALKIT = Layout("VLMEvalKit's tables (index, prediction)", is_vlmevalkit, read_vlmevalkit)


LAYOUTS = (LM_EVAL, LMMS_EVAL, EVALSCOPE, VLMEVALKIT, jsonl.LAYOUT)
"""The layouts for answers to any benchmark, those with the most specific fields first."""


def read_predictions(
    path: Path,
    conventions: AnswerFiles,
    *,
    setting: str,
    allow_missing: bool = False,
    questions: Literal["", "data", "file"] = "",
    repeated: Repeated = "error",
    columns: Mapping[str, str] | None = None,
    scores_only: bool = False,
) -> list[Prediction]:
    """Read the answers in a file, whatever tool wrote it.

    Reads our answers.jsonl and plain JSON (Lines), the benchmark's released layouts, sample logs of lm-eval
    and lmms-eval, reviews and predictions of evalscope, VLMEvalKit's tables (xlsx, tsv, csv, json) and logs
    of inspect_ai; text may be gzipped. A file may hold the answers of several models: `of_model` selects one.

    Args:
        setting: The variant of answers that name none, where a sample has one probe.
        questions: Where the questions are, as in `PredictionFile`.
        repeated: What happens if a probe has several answers, as in the file of a tool that appends to it.
        columns: The columns of the file, or the fields of its records, that hold an id, a response and so on.
        scores_only: Whether only the scores of the file's tool count, as in `PredictionFile`.
    """
    source = PredictionFile(path, conventions, setting, allow_missing, questions, scores_only)
    content = read_bytes(path)
    if is_inspect_log(path, content):
        predictions = read_inspect_log(source, columns or {})
    else:
        predictions = _of_layout(content, source, columns or {})
    return _each_once(predictions, repeated, path)


def _of_layout(content: bytes, source: PredictionFile, columns: Mapping[str, str]) -> list[Prediction]:
    if content.lstrip()[:1] in (b"{", b"["):
        rows = named(json_records(content, source.path, keys_once=True), columns, source.path)
        layout = _layout([record for _, record in rows], source)
        found = layout.read(rows, source)
        # A benchmark's released files hold texts: "null" is what a model wrote there.
        return [without_missing(one, has_cells=False) for one in found] if layout in LAYOUTS else found
    table = read_table(content, source.path)
    header = named([("line 1", dict.fromkeys(table.header))], columns, source.path)
    layout = _layout([record for _, record in header], source)
    predictions = layout.read(named(table_rows(table, source.path), columns, source.path), source)
    doubted = (replace(one, doubt=_doubt(one.response, content)) for one in predictions)
    return [without_missing(one, has_cells=True) for one in doubted]


# -- Responses that a table may have changed

_LINK = re.compile(r"(?:ftp|http)s?://|mailto:|(?:in|ex)ternal:")
"""What XlsxWriter, and so pandas and VLMEvalKit, writes as a link (strings_to_urls)."""

CUT = "have 32,767 characters, the most that a cell of a spreadsheet holds: they are probably cut"
LINK = (
    "begin like a URL: pandas writes such a cell as a link, changes some, and drops those of more than 2,079 "
    "characters"
)


def _doubt(response: str, content: bytes) -> str:
    """Why a response in a table may not be what the model wrote; '' if nothing speaks for that."""
    units = len(response) + sum(character > "\uffff" for character in response)
    if LONGEST_WORKBOOK_CELL in (len(response), units):
        return CUT
    return LINK if is_workbook(content) and _LINK.match(response) else ""


def of_model(predictions: Sequence[Prediction], model: str, path: Path) -> list[Prediction]:
    """Select the answers of one model from a file that holds those of several."""
    if len({prediction.model for prediction in predictions}) < 2:
        return list(predictions)
    return only_of_model(predictions, model, path)


def only_of_model(predictions: Sequence[Prediction], model: str, path: Path) -> list[Prediction]:
    models = dict.fromkeys(prediction.model for prediction in predictions)
    if model not in models:
        named = [name for name in models if name]
        none = f", none of them '{model}'{did_you_mean(model, named)}" if model else ""
        raise UserError(
            f"holds the answers of {len(models)} model{'s' * (len(models) > 1)}{none}",
            file=path,
            expected=f"--model with one of {', '.join(named)}"
            if named
            else "no --model, because the file names no model",
        )
    return [prediction for prediction in predictions if prediction.model == model]


def _layout(records: Sequence[dict[str, Any]], source: PredictionFile) -> Layout:
    layouts: tuple[Layout, ...] = (*source.conventions.layouts, *LAYOUTS)
    for record in records:
        for layout in layouts:
            if layout.recognises(record):
                return layout
    fields = ", ".join(records[0]) if records else ""
    raise UserError(
        "the format is unknown",
        file=source.path,
        found=f"the fields {fields}" if fields else "no record",
        expected="one of: "
        + "; ".join(layout.fields for layout in layouts)
        + f"; or {NAMED_COLUMNS.format('id=question_id,response=answer')}",
    )


def _each_once(predictions: Sequence[Prediction], repeated: Repeated, path: Path) -> list[Prediction]:
    """One answer of each probe: the first, the last, or an error if there are several."""
    found: dict[tuple[str, str, str, int], Prediction] = {}
    again: dict[tuple[str, str, str, int], int] = {}
    for prediction in predictions:
        key = (prediction.model, prediction.sample, prediction.variant, prediction.draw)
        if key in found:
            again[key] = again.get(key, 0) + 1
        if key not in found or repeated == "last":
            found[key] = prediction
    if again and repeated == "error":
        raise UserError(
            f"{len(again):,} of {len(found):,} probes are answered twice or more: "
            + some_of([f"{sample} ({variant}, draw {draw})" for _, sample, variant, draw in again], LISTED),
            file=path,
            record=next(iter(again))[1],
            field="id",
            expected="one answer each (repeats carry their own 'draw'), or --repeated first or last of "
            "`score` and `import`, for the file of a tool that appends",
        )
    return [replace(one, repeated=again[key]) if key in again else one for key, one in found.items()]
