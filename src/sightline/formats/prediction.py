"""One answer as a file holds it, and readers for the fields that all layouts share."""

from __future__ import annotations

import re
from collections.abc import Callable, Collection, Iterable, Mapping, Sequence
from difflib import get_close_matches
from functools import lru_cache
from pathlib import Path
from typing import Any, Literal, NamedTuple

from msgspec import Struct, field
from msgspec.structs import replace

from sightline.errors import UserError, some_of
from sightline.text import Records, cell_text
from sightline.types import ImageSize, Labels, Usage, Verdict

FILE_MODEL = "file:"
"""Before the name of a file of answers, which is the model where the user names none."""


class Prediction(Struct, frozen=True):
    """A model's answer to one probe, collected by any tool.

    `question`, `context` and `options` are those that the model saw, in the order it saw them; `image` is the
    path of the record's image, or the digest of one that the file holds; `cluster` is what the user named
    as the independent unit; `images` are the paths of the images sent, `image_sizes` their sizes,
    `prompt` is the text sent. `references` are the letters of the right options, in the order of
    `options`; where there are no options, the right answers. Each is empty if the file does not hold it,
    and so are `key`, `finish_reason`, `version`, `usage` and `reasoning`, which our own answers.jsonl
    holds. An option that is '' was an empty cell between others; `empty_options` are all empty cells of
    options, also those after the last one (`jsonl.as_asked` completes them from the data). `repeated` is
    the number of further answers to the same probe in the file; `doubt` says why the response may not be
    what the model wrote. `error` is the text of a recorded failed call; the response is then empty.
    `model` is the model that answered, in files of several models. `verdicts` are those that the file
    gives on the answer, without their targets; `scores` are those of its tool. `sample_digest` is that of
    our own answers.jsonl.
    """

    sample: str
    variant: str
    response: str
    draw: int = 0
    question: str = ""
    options: tuple[str, ...] = ()
    references: tuple[str, ...] = ()
    labels: Labels = field(default_factory=dict)
    image: str = ""
    cluster: str = ""
    images: tuple[str, ...] = ()
    image_sizes: tuple[ImageSize | None, ...] = ()
    prompt: str = ""
    context: str = ""
    error: str | None = None
    key: str = ""
    finish_reason: str = ""
    version: str = ""
    usage: Usage = field(default_factory=Usage)
    model: str = ""
    verdicts: tuple[Verdict, ...] = ()
    scores: ToolScores | None = None
    sample_digest: str = ""
    reasoning: str = ""
    empty_options: tuple[EmptyOption, ...] = ()
    repeated: int = 0
    doubt: str = ""


class ToolScores(NamedTuple):
    """What a record holds that may be the score of its answer, by the name that --columns takes."""

    tool: str
    by_name: Mapping[str, object]
    extracted: str | None


class EmptyOption(NamedTuple):
    """The place of an option that a file does not hold, as error messages name it."""

    file: str
    record: str
    field: str

    def error(self) -> UserError:
        return UserError(
            "is empty between options, so that the letters after it are uncertain",
            file=self.file,
            record=self.record,
            field=self.field,
            expected="the text of the option (tools that read tables with pandas lose texts such as None, NA "
            "and null), or the options of the data: --data or a groups file",
        )


class Layout(Struct, frozen=True):
    """A file layout.

    `fields` names the fields that identify it, for error messages. `recognises` checks a record (of a table:
    its columns). `read` reads all records of a file, each with its position, and raises UserError where one
    is wrong.
    """

    fields: str
    recognises: Callable[[dict[str, Any]], bool]
    read: Callable[[Records, PredictionFile], list[Prediction]]


class AnswerFiles(Struct, frozen=True):
    """How files of other tools hold the answers to a benchmark. The defaults suit one probe a sample.

    `layouts` are the benchmark's own released layouts. `variants` describes the variants that a record must
    name where a sample has several probes; '' says that it has one. `sample_id` finds the benchmark's id
    among the values of a foreign record, and `sample_ids` describes such ids; without it the first value
    is the id. `any_task`: a file may hold the questions of any task, one a record. `question_in` reads
    the question and the options from a prompt, ('', ()) where it has none.
    """

    layouts: tuple[Layout, ...] = ()
    variants: str = ""
    sample_id: Callable[[Iterable[object]], str | None] | None = None
    sample_ids: str = ""
    question_in: Callable[[str], tuple[str, tuple[str, ...]]] | None = None
    any_task: bool = False


class PredictionFile(Struct, frozen=True):
    """A file of answers: its path, how answers to the benchmark are written, and the setting they answer.

    With `allow_missing`, a reader skips an answer that a record lacks, so that it counts as missing; without
    it, a missing answer is an error. `questions` says where the questions are: with `data`, an answer may
    name no variant (''), and `match` gives it the only one of its sample; with `file`, the file alone
    holds them. With `scores_only`, the tool's scores are the verdicts: a log of log-likelihoods has no more.
    """

    path: Path
    conventions: AnswerFiles
    setting: str
    allow_missing: bool = False
    questions: Literal["", "data", "file"] = ""
    scores_only: bool = False

    @property
    def is_whole(self) -> bool:
        """Whether the records are the samples, whatever the task."""
        return self.questions == "file" and self.conventions.any_task

    def at(self, record: str) -> RecordLocation:
        return RecordLocation(self.path, record)


class RecordLocation(NamedTuple):
    """A record of a file, as error messages name it."""

    file: Path
    record: str

    def error(
        self, message: str, *, field: str | None = None, found: object = None, expected: str | None = None
    ) -> UserError:
        return UserError(
            message, file=self.file, record=self.record, field=field, found=found, expected=expected
        )


def identifier(value: object, field: str, location: RecordLocation) -> str:
    """Read a sample's id: a non-empty text, or a number as its text (1.0 as 1)."""
    if isinstance(value, bool) or not isinstance(value, str | int | float | None):
        raise location.error("is not an id", field=field, found=value, expected="the sample's id as text")
    if not (text := cell_text(value)):
        raise location.error("has no id", field=field, expected="the sample's id as text")
    return text


RESPONSES = ("response", "output", "prediction", "text")
"""The fields that may hold a response."""

ONLY_VARIANT = "asked"
"""The variant of a record that is a sample of its own."""

TOOLS = ("lm-eval", "lmms-eval", "evalscope", "VLMEvalKit", "inspect_ai", "file")
"""The judges that are the tool that collected the answers; `file` for the scores of any other file."""

NAMED_COLUMNS = "`score` or `import` with --columns {}, where the file calls it otherwise"
"""The remedy for a file whose columns or fields have other names."""


def variant_of(value: object, source: PredictionFile, location: RecordLocation) -> str:
    """Read the variant of a record; where a sample has one probe and the record names none, the setting."""
    if value is None or value == "":
        if not source.conventions.variants:
            return source.setting
        if source.is_whole:
            return ONLY_VARIANT
        if source.questions == "data":
            return ""
        raise unnamed_variant(source.conventions.variants, location)
    return optional_text(value, "variant", location)


def unnamed_variant(variants: str, location: RecordLocation) -> UserError:
    expected = f"{variants}; or {NAMED_COLUMNS.format('variant=COLUMN')}"
    return location.error("does not say which variant it answers", field="variant", expected=expected)


def optional_text(value: object, field: str, location: RecordLocation) -> str:
    """Read an optional text; '' for None. A number is its text."""
    if not isinstance(value, str | int | float | None):
        raise location.error("is not a text", field=field, found=value, expected="a text")
    return cell_text(value)


def options_in(
    cells: Iterable[tuple[str, object]], location: RecordLocation
) -> tuple[tuple[str, ...], tuple[EmptyOption, ...]]:
    """Read the options in cells that have names, and the places of the empty ones.

    Options may be numbers. An empty cell before the last option is the option ''.
    """
    found = [(name, cell_text(cell)) for name, cell in cells]
    last = max((place for place, (_, text) in enumerate(found, 1) if text), default=0)
    empty = [EmptyOption(str(location.file), location.record, name) for name, text in found if not text]
    return tuple(text for _, text in found[:last]), tuple(empty) if last else ()


def listed_options(
    value: object, field: str, location: RecordLocation
) -> tuple[tuple[str, ...], tuple[EmptyOption, ...]]:
    """Read an optional list of options, texts or numbers, and the places of the empty ones (null)."""
    if value is None:
        return (), ()
    if not isinstance(value, list | tuple) or not all(isinstance(v, str | int | float | None) for v in value):
        raise location.error("is not a list of texts", field=field, found=value, expected="a list of texts")
    return options_in(((f"{field}[{place}]", one) for place, one in enumerate(value)), location)


def texts(value: object, field: str, location: RecordLocation) -> tuple[str, ...]:
    """Read an optional list of texts; () for None."""
    if value is None:
        return ()
    if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
        raise location.error("is not a list of texts", field=field, found=value, expected="a list of texts")
    return tuple(value)


def labels_of(value: object, field: str, location: RecordLocation) -> dict[str, str | tuple[str, ...]]:
    """Read optional labels: an object whose values are texts or lists of texts.

    Returns label name -> value or values; empty if the value is None.
    """
    if value is None:
        return {}
    if not isinstance(value, Mapping):
        raise location.error(
            "is not an object", field=field, found=value, expected="label names with their values"
        )
    return {
        str(name): label if isinstance(label, str) else texts(label, f"{field}.{name}", location)
        for name, label in value.items()
    }


FAILED = ("Failed to obtain answer", "[LMMS_EVAL_REQUEST_FAILED")
"""How VLMEvalKit and lmms-eval write a failed call where a response is expected."""


class Response(NamedTuple):
    """These fields of a `Prediction`."""

    response: str
    error: str | None = None
    reasoning: str = ""


def reply(value: Any, field: str, location: RecordLocation) -> Response:
    """Read a response of a released format: that of `plain_reply`, but null is a failed call too.

    So is an object without a text: II-Bench/II-Bench infer/infer.py records {"error": "..."}, and its eval.py
    counts any object as an error.
    """
    if value is None:
        return Response("", "no answer was recorded")
    if isinstance(value, dict) and content_of(value) is None:
        return Response("", str(value.get("error") or value))
    return plain_reply(value, field, location)


def plain_reply(value: Any, field: str, location: RecordLocation) -> Response:
    """Read a response: a text, a number, an object or parts with a text, or the record of a failed call.

    null is an empty answer: so chat completions write a message without text. A failed call is an object with
    `error`.
    """
    if isinstance(value, list) and len(value) == 1:
        (value,) = value
    if isinstance(value, dict) and value.get("error"):
        return Response("", str(value["error"]))
    expected = "a text, null for an empty answer, or {'error': ...} for a failed call"
    if isinstance(value, list) and not any(isinstance(one, dict) for one in value):
        expected = "one text; several answers of one probe are records with their own 'draw'"
    elif (content := content_of(value)) is not None:
        if content.text.startswith(FAILED):
            return Response("", content.text)
        return Response(content.text, None, content.reasoning)
    raise location.error("is not an answer", field=field, found=value, expected=expected)


_NO_VALUE = ("nan", "NaN", "NAN", "<NA>")
_WORDS_FOR_NO_VALUE = ("None", "null", "NULL", "N/A", "n/a", "#N/A", "NA")

NAN = "are 'nan', which pandas writes for a missing value: they were read as empty answers"
MISSING = (
    "are words that tools write for a missing value too (None, null, N/A): they were read as these words"
)
EMPTY = "are empty cells, as tools write failed calls too: they were read as empty answers"


def without_missing(one: Prediction, *, has_cells: bool = False) -> Prediction:
    """Say what a response was read as that tools write for a missing value; our own files hold none."""
    word = one.response.strip()
    if one.error is not None or one.key or one.doubt or word in one.options:
        return one
    if word in _NO_VALUE:
        return replace(one, response="", doubt=NAN)
    if word in _WORDS_FOR_NO_VALUE:
        return replace(one, doubt=MISSING)
    return one if word or not has_cells else replace(one, doubt=EMPTY)


# -- What chat completions and the files of other tools hold: the content of a message, and finish reasons


class Content(NamedTuple):
    """The text of a message, and its reasoning."""

    text: str
    reasoning: str

    @property
    def joined(self) -> str:
        return "\n\n".join(filter(None, self))


_TEXTS = ("text", "content", "output_text", "refusal", "message", "choices", "response", "output", "answer")
_THOUGHTS = ("reasoning_content", "reasoning", "thinking", "summary")
"""The fields of a part of a message that hold its text, or its reasoning."""

_NOTHING: tuple[object, ...] = (None, "", [])


def content_of(value: Any) -> Content | None:
    """Read the content of a message: a text, a number, an object, or a list of texts and objects.

    >>> content_of([{"type": "reasoning", "text": "A or B?"}, {"type": "text", "text": "B"}])
    Content(text='B', reasoning='A or B?')

    Returns the content, which is empty for null and an empty list; None if no part of it is understood.
    """
    if isinstance(value, dict):
        return _content_of_part(value)
    if not isinstance(value, list):
        return Content(cell_text(value), "")
    parts = [content_of(part) for part in value if isinstance(part, str | dict)]
    understood = [part for part in parts if part is not None]
    if value and not understood:
        return None
    return Content(
        "".join(part.text for part in understood),
        "\n\n".join(part.reasoning for part in understood if part.reasoning),
    )


def _content_of_part(part: dict[str, Any]) -> Content | None:
    text, reasoning = (
        next(filter(None, (content_of(part[name]) for name in names if part.get(name) not in _NOTHING)), None)
        for names in (_TEXTS, _THOUGHTS)
    )
    kind = str(part.get("type", ""))
    if part.get("thought") is True or any(word in kind for word in ("reasoning", "think", "thought")):
        return Content("", (reasoning or text or Content("", "")).joined)
    if text is None and reasoning is None:
        return Content("", "") if any(part.get(name, 0) in (None, "") for name in _TEXTS) else None
    thoughts = (text.reasoning if text else "", reasoning.joined if reasoning else "")
    return Content(text.text if text else "", "\n\n".join(filter(None, thoughts)))


_ENDINGS = {
    # OpenAI, Anthropic, TGI, Cohere, TensorRT-LLM
    "stop": "stop stop_sequence end_turn eos eos_token end_id complete completed finished",
    # OpenAI, Gemini and Anthropic, Cohere, watsonx, llama.cpp
    "length": "length max_tokens max_output_tokens max_new_tokens max_length max_len token_limit limit",
    # OpenAI, Gemini, Anthropic, Bedrock, Cohere, Zhipu
    "content_filter": "content_filter content_filtered safety recitation language blocklist "
    "prohibited_content spii image_safety image_prohibited_content image_recitation model_armor "
    "refusal guardrail_intervened error_toxic sensitive",
    # Mistral, Anthropic and Bedrock, Cohere
    "model_length": "model_length model_context_window_exceeded context_length_exceeded error_limit",
    # OpenRouter, vLLM and SGLang, Gemini, Bedrock, Cohere, DeepSeek, Zhipu, watsonx, TensorRT-LLM, Ollama
    "error": "error abort aborted cancelled canceled user_cancel timeout time_limit failed network_error "
    "insufficient_system_resource malformed_function_call malformed_response malformed_model_output "
    "malformed_tool_use unexpected_tool_call too_many_tool_calls missing_thought_signature server_error "
    "incomplete in_progress queued not_finished load unload",
    "": "null none unspecified",
}
"""Our name of a finish reason -> those of servers and providers, in lower case with `_` between words."""

_ENDING = {name: ours for ours, names in _ENDINGS.items() for name in names.split()}

NO_ANSWER = {
    "content_filter": "the content filter stopped the answer",
    "model_length": "the context is too short for the answer",
    "error": "the generation failed",
}
"""Finish reasons with which there is no answer, whatever the text so far, and what they say."""


def finish_reason(value: Any) -> str:
    """Our name of a finish reason in any spelling; one that is not known stays as it is, '' for none.

    >>> [finish_reason(one) for one in ("MAX_TOKENS", "FinishReason.SAFETY", "OutOfMemory", "tool", None)]
    ['length', 'content_filter', 'error', 'tool', '']
    """
    if isinstance(value, dict):
        value = value.get("type")
    return "" if value is None else _ending(str(value))


@lru_cache(maxsize=256)
def _ending(written: str) -> str:
    words = re.findall("[a-z0-9]+", re.sub("(?<=[a-z])(?=[A-Z])", "_", written).lower())
    name = "_".join(words).removeprefix("finish_reason_")
    # As in `content_filter: RECITATION` of Gemini's OpenAI-compatible API.
    first = next((one for one in ("content_filter", "error", "abort") if name.startswith(f"{one}_")), name)
    failed = "error" if not _SIGNS_OF_FAILURE.isdisjoint(words) else written
    return _ENDING.get(name, _ENDING.get(first, failed))


_SIGNS_OF_FAILURE = frozenset(
    ("error", "abort", "aborted", "failed", "failure", "preempted", "dropped", "crashed", "memory")
)
"""Words of names that are not in the table, such as `internal_error` and `out_of_memory`."""


# -- Matches predictions with the probes of a benchmark; reports unknown and missing ones

WHOLE_NUMBER = re.compile(r"-?[0-9]+\.0+")
"""A whole number with decimals."""

LISTED = 5
"""The most ids that a message lists."""


def match(
    predictions: Sequence[Prediction],
    expected: Sequence[tuple[str, str]],
    *,
    file: Path,
    allow_missing: bool,
) -> dict[tuple[str, str, int], Prediction]:
    """Match predictions with probes. Every probe needs an answer in every draw that the file has."""
    probes = set(expected)
    predictions = _with_known_ids(predictions, probes)
    predictions = _with_only_variants(predictions, expected, file)
    _refuse_unknown_samples(predictions, list(dict.fromkeys(sample for sample, _ in expected)), file)
    _refuse_unknown_variants(predictions, probes, file)
    matched = {(p.sample, p.variant, p.draw): p for p in predictions}
    draws = sorted({p.draw for p in predictions}) or [0]
    absent = [(*probe, draw) for probe in expected for draw in draws if (*probe, draw) not in matched]
    if absent and not allow_missing:
        answered = {sample for sample, _, _ in matched}
        has_empty_groups = any(sample not in answered for sample, _ in expected)
        leave_out = "--only-answered leaves out groups without any; " if has_empty_groups else ""
        raise UserError(
            f"{len(absent)} of {len(expected) * len(draws)} answers are missing: "
            + some_of([_named(*probe, draws) for probe in absent], LISTED),
            file=file,
            expected=f"an answer for every probe; {leave_out}--allow-missing counts the missing as not right",
        )
    return matched


def _with_known_ids(predictions: Sequence[Prediction], probes: set[tuple[str, str]]) -> Sequence[Prediction]:
    """Ids and variants that a table made numbers of ('1.0') as the data spell them ('1')."""
    samples, variants = {sample for sample, _ in probes}, {variant for _, variant in probes}

    def known(one: Prediction) -> Prediction:
        sample, variant = _known(one.sample, samples), _known(one.variant, variants)
        changed = sample != one.sample or variant != one.variant
        return replace(one, sample=sample, variant=variant) if changed else one

    return [known(one) for one in predictions]


def _with_only_variants(
    predictions: Sequence[Prediction], expected: Sequence[tuple[str, str]], file: Path
) -> Sequence[Prediction]:
    """Answers that name no variant as those of the only one of their sample."""
    if all(one.variant for one in predictions):
        return predictions
    variants: dict[str, list[str]] = {}
    for sample, variant in expected:
        variants.setdefault(sample, []).append(variant)

    def named(one: Prediction) -> Prediction:
        known = variants.get(one.sample, [""])
        if one.variant or known == [""]:
            return one
        if len(known) > 1:
            raise unnamed_variant(
                " or ".join(f"'{name}'" for name in known), RecordLocation(file, one.sample)
            )
        return replace(one, variant=known[0])

    return [named(one) for one in predictions]


def _known(name: str, names: Collection[str]) -> str:
    if name in names or not WHOLE_NUMBER.fullmatch(name):
        return name
    whole = name.partition(".")[0]
    return whole if whole in names else name


def _refuse_unknown_samples(predictions: Sequence[Prediction], ids: list[str], file: Path) -> None:
    samples = set(ids)
    unknown = [p.sample for p in predictions if p.sample not in samples]
    if not unknown:
        return
    near = get_close_matches(unknown[0], ids, n=1, cutoff=0.0) or ["none"]
    raise UserError(
        f"{len(unknown)} of {len(predictions)} answers are for samples that the benchmark does not have: "
        + some_of(dict.fromkeys(unknown), LISTED),
        file=file,
        field="id",
        expected=f"ids of its {len(ids)} samples; nearest to '{unknown[0]}' is '{near[0]}'",
    )


def _refuse_unknown_variants(
    predictions: Sequence[Prediction], probes: set[tuple[str, str]], file: Path
) -> None:
    unknown = next((p for p in predictions if (p.sample, p.variant) not in probes), None)
    if unknown is None:
        return
    variants = sorted(variant for sample, variant in probes if sample == unknown.sample)
    raise UserError(
        "answers a variant that this setting does not have",
        file=file,
        record=unknown.sample,
        field="variant",
        found=unknown.variant,
        expected=" or ".join(f"'{variant}'" for variant in variants),
    )


def _named(sample: str, variant: str, draw: int, draws: Sequence[int]) -> str:
    return f"{sample} ({variant})" if len(draws) == 1 else f"{sample} ({variant}, draw {draw})"
