"""What a model does with images, options and parallel calls: small questions whose answers are known.

Prefix caches that take images under equal text for one image were reported of several engines (vLLM #20261,
SGLang #5455), and groups are their worst case: the same text about one image after the other.
"""

from __future__ import annotations

import asyncio
import re
import secrets
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import TYPE_CHECKING, Any, Literal, NamedTuple

from msgspec.structs import replace

from sightline.engine.endpoint_check import AskAgain
from sightline.engine.limits import full_length_usage
from sightline.engine.selector import OpenModels
from sightline.errors import UserError
from sightline.images import inspect_image, transform_for
from sightline.models.base import Model
from sightline.models.openai import OpenAICompatible
from sightline.store.answers import with_key
from sightline.text import counted, load
from sightline.types import CUT_OFF, Answer, Failure, ImageFile, ImageRef, Request, user

if TYPE_CHECKING:
    from PIL.Image import Image

COLOURS = {"red": "#d02020", "green": "#209030", "blue": "#2040d0"}
SIDE = 448
"""Width and height of the images, in pixels."""
NUMBERS = {64: "4817", 32: "9352", 24: "2069", 16: "7183", 12: "5640", 8: "3926"}
"""Size of the digits in pixels -> the number that an image shows."""
PARALLEL = 8
"""Calls at a time; so often a question is asked at once."""
CONFIRMING = 4
"""How often each image is asked again, alone and mixed, where an image was taken for another one."""
MIXED_UP = 6
"""So many wrong answers of `3 * CONFIRMING` under equal text, and none alone, are no accident.

A model that names a colour rightly 8 or 9 times of 10 gets there in fewer than 1 of 1,000 checks.
"""
TRIES = 3
_TAKES_NO_IMAGES = re.compile(
    r"not (?:an? )?(?:multi-?modal|vision)|(?:support|accept|allow|take).{0,60}(?:image|vision|multi-?modal)"
    r"|(?:image|vision|multi-?modal).{0,60}(?:support|accepted|allowed)",
    re.IGNORECASE,
)
"""Words of a server that refuses a request for its image."""

Ask = Callable[[Request], Awaitable[Answer | Failure]]


class Finding(NamedTuple):
    """Whether a model does one thing, and what was asked and came back."""

    what: str
    state: Literal["yes", "no", "unknown"]
    evidence: str
    is_fault: bool = False


class Questions:
    """Asks a model in words and images, and counts questions and answers.

    `failure` says why one has no answer; `takes_no_images` that the server refused one for its image.
    """

    def __init__(self, model: Model, ask: Ask) -> None:
        self._model = model
        self._ask = ask
        self.texts: Mapping[str, str] = load(__package__)["check"]
        self.asked = self.answered = 0
        self.failure = ""
        self.takes_no_images = False

    async def __call__(self, *parts: ImageFile | str, **sampling: Any) -> Answer | None:
        """Ask once; None where there is no answer."""
        limits = self._model.capabilities.limits
        images = [part for part in parts if isinstance(part, ImageFile)]
        try:
            effective = self._model.effective({"temperature": 0, "max_tokens": 512, **sampling})
        except UserError as error:  # local models refuse what they do not have
            self.failure = error.message
            return None
        request = Request(
            "",
            (user(*(part if isinstance(part, str) else ImageRef(part.path) for part in parts)),),
            effective,
            {one.path: replace(one, transform=transform_for(one, limits)) for one in images},
        )
        self.asked += 1
        result = await self._ask(request)
        if isinstance(result, Answer):
            self.answered += 1
            return result
        self.failure = result.message
        if images and result.kind == "permanent" and _TAKES_NO_IMAGES.search(result.message):
            self.takes_no_images = True
        return None

    async def texts_of(self, questions: Iterable[Awaitable[Answer | None]]) -> list[str | None]:
        """The texts of answers that are asked for at the same time."""
        return [None if one is None else one.text.strip() for one in await asyncio.gather(*questions)]


# -- The images


class Drawn(NamedTuple):
    """The images of a check: by colour, with two colours each, by the size of digits."""

    colours: Mapping[str, ImageFile]
    above: ImageFile
    beside: ImageFile
    numbers: Mapping[int, ImageFile]


@contextmanager
def drawn_images() -> Iterator[Drawn]:
    with drawn_colours() as colours:
        folder = Path(next(iter(colours.values())).path).parent
        yield Drawn(
            colours,
            _saved(_halves("red", "green"), folder / "above.png"),
            _saved(_halves("red", "blue").rotate(90), folder / "beside.png"),
            {size: _saved(_number(text, size), folder / f"{size}.png") for size, text in NUMBERS.items()},
        )


@contextmanager
def drawn_colours() -> Iterator[Mapping[str, ImageFile]]:
    """Draw an image of each colour into a temporary folder."""
    with TemporaryDirectory(prefix="sightline-check-") as name:
        yield {colour: _saved(_halves(colour, colour), Path(name) / f"{colour}.png") for colour in COLOURS}


def _saved(image: Image, path: Path) -> ImageFile:
    image.save(path)
    return inspect_image(ImageRef(str(path)), {})


def _halves(upper: str, lower: str) -> Image:
    from PIL import Image

    image = Image.new("RGB", (SIDE, SIDE), COLOURS[upper])
    image.paste(COLOURS[lower], (0, SIDE // 2, SIDE, SIDE))
    return image


def _number(text: str, size: int) -> Image:
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (SIDE, SIDE), "white")
    place = SIDE // 2, SIDE // 2
    ImageDraw.Draw(image).text(place, text, "black", ImageFont.load_default(size), anchor="mm")
    return image


# -- Images: whether they are seen, kept apart, upright, and how small text may be


class _Seen(NamedTuple):
    """The colour of an image, and the one that the answer names, None for none or several."""

    shown: str
    named: str | None
    is_answered: bool

    @property
    def is_wrong(self) -> bool:
        return self.named != self.shown


async def check_images(ask: Questions, colours: Mapping[str, ImageFile]) -> list[Finding]:
    """Find whether a model sees images, and whether it keeps apart those that are asked under equal text.

    Each image is asked alone, after text that nobody sent before, and then all together under one text, cold
    and warm. A wrong answer under equal text counts only if it comes again, with every image right alone.
    """
    alone = await _alone(ask, colours, 1)
    sees, apart = "sees images", "keeps images under equal text apart"
    if any(one.is_wrong for one in alone):
        few = (ask.takes_no_images and not ask.answered) or sum(
            one.is_answered and one.is_wrong for one in alone
        ) > 1
        found = f"{_right(alone)} alone{_first_wrong(alone)}{_failed(ask)}"
        return [
            Finding(sees, "no" if few else "unknown", found, is_fault=few),
            Finding(apart, "unknown", "it takes a model that names each colour alone"),
        ]
    seen = Finding(sees, "yes", f"{_right(alone)} alone")
    mixed = await _mixed(ask, colours, 2)
    if not any(one.is_wrong for one in mixed):
        return [seen, Finding(apart, "yes", f"{_right(mixed)} under equal text")]
    alone += await _alone(ask, colours, CONFIRMING)
    again = await _mixed(ask, colours, CONFIRMING)
    found = (
        f"{_right(alone)} alone, {_right([*mixed, *again])} under equal text{_first_wrong([*mixed, *again])}"
    )
    if not any(one.is_wrong for one in alone) and sum(one.is_wrong for one in again) >= MIXED_UP:
        return [seen, Finding(apart, "no", found, is_fault=True)]
    return [seen, Finding(apart, "unknown", found)]


async def _alone(ask: Questions, colours: Mapping[str, ImageFile], times: int) -> list[_Seen]:
    shown = [colour for _ in range(times) for colour in colours]
    return await _named(ask, colours, [(colour, secrets.token_hex(8)) for colour in shown])


async def _mixed(ask: Questions, colours: Mapping[str, ImageFile], rounds: int) -> list[_Seen]:
    fresh, shown = secrets.token_hex(8), list(colours)
    seen: list[_Seen] = []
    for turn in range(rounds):
        order = shown[turn % len(shown) :] + shown[: turn % len(shown)]
        seen += await _named(ask, colours, [(colour, fresh) for colour in order])
    return seen


async def _named(
    ask: Questions, colours: Mapping[str, ImageFile], asked: Sequence[tuple[str, str]]
) -> list[_Seen]:
    texts = await ask.texts_of(
        ask(ask.texts["fresh"].format(fresh), colours[colour], ask.texts["colour"]) for colour, fresh in asked
    )
    return [
        _Seen(colour, _colour_in(text), text is not None)
        for (colour, _), text in zip(asked, texts, strict=True)
    ]


def _colour_in(text: str | None) -> str | None:
    named = {one for one in COLOURS if re.search(rf"\b{one}\b", (text or "").lower())}
    return named.pop() if len(named) == 1 else None


def _right(seen: Sequence[_Seen]) -> str:
    return f"{sum(not one.is_wrong for one in seen)} of {counted(len(seen), 'colour')} right"


def _first_wrong(seen: Sequence[_Seen]) -> str:
    wrong = next((one for one in seen if one.is_wrong and one.named), None)
    return f" ({wrong.shown} was called {wrong.named})" if wrong else ""


def _failed(ask: Questions) -> str:
    return f"; without an answer: {ask.failure}" if ask.failure else ""


async def check_upright(ask: Questions, drawn: Drawn) -> Finding:
    """Find whether a model sees images as they are, not turned or mirrored."""
    what, colour = "sees images upright", ask.texts["colour"]
    places = [(drawn.above, "upper", "red"), (drawn.beside, "left", "red")]
    texts = await ask.texts_of(
        ask(image, ask.texts["half"].format(place), colour) for image, place, _ in places
    )
    named = [_colour_in(text) for text in texts]
    found = ", ".join(
        f"{place} half: {one or 'no colour'}" for one, (_, place, _) in zip(named, places, strict=True)
    )
    if named == [shown for *_, shown in places]:
        return Finding(what, "yes", found)
    if named == ["green", "blue"]:
        return Finding(what, "no", f"{found}: both are the other half", is_fault=True)
    return Finding(what, "unknown", f"{found}; both are red{_failed(ask)}")


async def check_small_text(ask: Questions, numbers: Mapping[int, ImageFile]) -> Finding:
    """Find how small digits may be that a model reads, each size asked once."""
    texts = await ask.texts_of(ask(image, ask.texts["number"]) for image in numbers.values())
    read: list[int] = []
    for size, text in zip(numbers, texts, strict=True):
        if re.findall(r"\d+", text or "") != [NUMBERS[size]]:
            break
        read.append(size)
    what = "reads small text"
    if not read:
        state: Literal["no", "unknown"] = "unknown" if texts[0] is None else "no"
        return Finding(what, state, f"digits of {max(numbers)} pixels are not read{_failed(ask)}")
    rest = [size for size in numbers if size < read[-1]]
    missed = f", not those of {rest[0]}" if rest else ""
    return Finding(
        what, "yes", f"digits of {read[-1]} pixels in an image of {SIDE} x {SIDE} are read{missed}"
    )


# -- Options and load


async def check_repeats(ask: Questions) -> list[Finding]:
    """Find whether answers at temperature 0 are the same again, and among parallel calls."""
    question, what = ask.texts["open"], ("repeats answers at temperature 0", "answers in parallel as alone")
    (first,) = await ask.texts_of([ask(question)])
    (second,) = [None] if first is None else await ask.texts_of([ask(question)])
    if first is None or second is None:
        return [Finding(one, "unknown", f"no answer: {ask.failure}") for one in what]
    if first != second:
        differ = Finding(what[0], "no", f"one question asked twice: {_difference(first, second)}")
        return [differ, Finding(what[1], "unknown", "it takes answers that are the same again")]
    together = await ask.texts_of(ask(question) for _ in range(PARALLEL))
    others = [text for text in together if text != first]
    answered = [text for text in others if text is not None]
    if answered:
        evidence = f"{len(others)} of {PARALLEL} differ: {_difference(first, answered[0])}"
    else:
        evidence = f"{PARALLEL - len(others)} of {PARALLEL} are the same{_failed(ask) if others else ''}"
    return [
        Finding(what[0], "yes", "one question asked twice has one answer"),
        Finding(what[1], "no" if answered else "unknown" if others else "yes", evidence),
    ]


async def check_seed(ask: Questions) -> Finding:
    """Find whether a seed repeats an answer that is drawn."""
    first, same, other = await ask.texts_of(
        ask(ask.texts["open"], temperature=1, seed=seed) for seed in (1, 1, 2)
    )
    what = "keeps seeds"
    if first is None or same is None or other is None:
        return Finding(what, "unknown", f"no answer: {ask.failure}")
    if first != same:
        return Finding(what, "no", f"two answers with seed 1: {_difference(first, same)}")
    if first == other:
        return Finding(what, "unknown", "at temperature 1, seeds 1 and 2 give the same answer")
    return Finding(what, "yes", "at temperature 1, seed 1 repeats its answer, and seed 2 gives another one")


async def check_token_limit(ask: Questions) -> Finding:
    """Find whether `max_tokens` holds, and whether the reply says that it ended the answer."""
    what, answer = "reports the token limit", await ask(ask.texts["count"], max_tokens=8)
    if answer is None:
        return Finding(what, "unknown", f"no answer: {ask.failure}")
    if answer.finish_reason in CUT_OFF:
        return Finding(what, "yes", f"finish reason '{answer.finish_reason}' at max_tokens=8")
    numbers = [int(number) for number in re.findall(r"\d+", answer.text)]
    if numbers[:2] != [1, 2]:
        return Finding(what, "unknown", f"asked to count, it answers '{answer.text.strip()[:40]}'")
    if max(numbers) >= 20:
        return Finding(what, "no", "max_tokens=8 is ignored: the answer counts on")
    unnoticed = f"finish reason '{answer.finish_reason}' at max_tokens=8: truncated answers are not noticed"
    return Finding(what, "no", unnoticed)


async def check_stop(ask: Questions) -> Finding:
    """Find whether a text of `stop` ends the answer."""
    what, answer = "keeps stop", await ask(ask.texts["count"], stop=["5"])
    if answer is None:
        return Finding(what, "unknown", f"no answer: {ask.failure}")
    counted_to = re.findall(r"\d", answer.text)
    if "6" in counted_to:
        return Finding(what, "no", "stop=['5'] is ignored: the answer counts on")
    kept = counted_to[:3] == ["1", "2", "3"]
    return Finding(
        what, "yes" if kept else "unknown", f"with stop=['5'] the answer is '{answer.text.strip()[:40]}'"
    )


def _difference(first: str, second: str) -> str:
    """Where two texts begin to differ."""
    same = next(
        (place for place, (a, b) in enumerate(zip(first, second, strict=False)) if a != b),
        min(len(first), len(second)),
    )
    start = max(0, same - 10)
    return f"'{first[start : same + 20]}' and '{second[start : same + 20]}' at character {same + 1}"


# -- The check of images at the start of a run

REMEDY = (
    "a server whose prefix cache tells images apart (vLLM: --no-enable-prefix-caching, SGLang: "
    "--disable-radix-cache), or --canary note"
)


class ImageCheck:
    """Checks, before the first request of a run, that its endpoints keep images under equal text apart.

    `notes` say what was found where it is not that.
    """

    def __init__(self, models: Sequence[Model], *, stops: bool) -> None:
        """With `stops`, images that are mixed up end the run, otherwise they are a note."""
        self.notes: list[str] = []
        self._models = models
        self._stops = stops

    async def before_sending(self, opened: OpenModels, ask: AskAgain) -> None:
        """Check the endpoints. UserError: one mixes images up, and that stops the run."""
        with drawn_colours() as colours:
            checks = [self._check(model, colours, opened, ask) for model in self._models]
            for note in await asyncio.gather(*checks):
                self.notes += [note] if note else []

    async def _check(
        self, model: Model, colours: Mapping[str, ImageFile], opened: OpenModels, ask: AskAgain
    ) -> str:
        try:
            await opened.open(model)
        except UserError:
            return ""  # the run says so

        async def send(request: Request) -> Answer | Failure:
            keyed = with_key(request, model.identity)
            return await ask(model, keyed, full_length_usage(keyed))

        sees, apart = await check_images(Questions(model, send), colours)
        if apart.state == "yes":
            return ""
        if apart.state == "no":
            message = f"{model.name} takes images under equal text for one another: {apart.evidence}"
            if self._stops:
                raise UserError(message, expected=REMEDY)
            return message
        found = sees.evidence if sees.state != "yes" else apart.evidence
        name = model.name if len(self._models) > 1 else "the model"
        return (
            f"{name} was not shown to keep images under equal text apart: {found} (`sightline check` asks"
            " more)"
        )


# -- The whole check


class ServerCheck(NamedTuple):
    """What was found of a model, and with how many requests."""

    findings: list[Finding]
    asked: int


async def check_server(model: Model) -> ServerCheck:
    """Ask a model the questions. UserError: it cannot be used at all."""
    async with model:
        ask = Questions(model, _sender(model))
        findings: list[Finding] = []
        if model.capabilities.images:
            with drawn_images() as drawn:
                findings += await check_images(ask, drawn.colours)
                if not ask.answered and await ask(ask.texts["open"]) is None:
                    return ServerCheck([_unanswered(findings[0].what, ask)], ask.asked)
                if not ask.takes_no_images:
                    findings.append(await check_upright(ask, drawn))
                    findings.append(await check_small_text(ask, drawn.numbers))
        findings += await check_repeats(ask)
        if not ask.answered:
            return ServerCheck([_unanswered("answers", ask)], ask.asked)
        if model.capabilities.seed:
            findings.append(await check_seed(ask))
        findings += [await check_token_limit(ask), await check_stop(ask)]
        if isinstance(model, OpenAICompatible) and (model.form.responses or model.has_streamed):
            form = "the Responses API" if model.form.responses else "chat completions"
            streamed = " in event streams" if model.has_streamed else ""
            findings.insert(0, Finding("plain chat completions", "no", f"it answers by {form}{streamed}"))
    return ServerCheck(findings, ask.asked)


def _unanswered(what: str, ask: Questions) -> Finding:
    return Finding(what, "unknown", f"no question has an answer: {ask.failure}", is_fault=True)


def _sender(model: Model) -> Ask:
    """Send a request, at most `PARALLEL` at a time, and again after a transient failure."""
    slots = asyncio.Semaphore(min(PARALLEL, model.parallel or PARALLEL))

    async def send(request: Request) -> Answer | Failure:
        result: Answer | Failure = Failure("transient", f"{model.name} gave no answer")
        for attempt in range(TRIES):
            async with slots:
                async for _, answer in model.answer([request]):
                    result = answer
            if isinstance(result, Answer) or result.kind != "transient":
                break
            await asyncio.sleep(result.retry_after or attempt + 1)
        return result

    return send
