"""Answers of whole batches against those of transformers' own loop, a request at a time."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from itertools import cycle, islice
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from msgspec.structs import replace
from PIL import Image

from sightline.models.local import model as module
from sightline.models.local.load import LocalArgs
from sightline.models.local.model import LocalModel
from sightline.types import Answer, Failure, ImageRef, Request

pytestmark = pytest.mark.skipif(
    None in (find_spec("torch"), find_spec("transformers")), reason="needs the extra 'local'"
)

Folder = Callable[[str], Path]
Asking = Callable[..., Request]

ARCHITECTURES = ("llava", "chat", "blip2", "blip2_t5", "instructblip", "qwen2_vl", "paligemma", "idefics3")
QUESTIONS = (
    "what is this",
    "is the cat red",
    "is this a dog, yes or no: what is the cat and what is the dog",
    "?",
)
CHOICES = ("yes", "no", "a red dog", "the cat is blue", "T", "<", "9 9")

# The prompts as the models' own pages give them.
FORMS = {
    "llava": "USER: <image>\n{} ASSISTANT:",
    "chat": "user:<image>{}\nassistant:",
    "blip2": "Question: {} Answer:",
    "blip2_t5": "Question: {} Answer:",
    "instructblip": "{}",
    "qwen2_vl": "user:<|vision_start|><|image_pad|><|vision_end|>{}\nassistant:",
    "paligemma": "<image>{}",
    "idefics3": "User:<image>{}<end_of_utterance>\nAssistant:",
}


def ask(model: Any, requests: Sequence[Request]) -> list[Any]:
    """The answers in the order of the requests, all handed over at once."""

    async def run() -> list[Any]:
        async with model:
            return await answers_of(model, requests)

    return asyncio.run(run())


async def answers_of(model: LocalModel, requests: Sequence[Request]) -> list[Any]:
    """The answers of an open model, each request answered once."""
    found = [pair async for pair in model.answer(requests)]
    assert sorted(place for place, _ in found) == list(range(len(requests)))
    return [answer for _, answer in sorted(found, key=lambda pair: pair[0])]


class Plain:
    """transformers as its pages use it: one prompt, one image, one call."""

    def __init__(self, name: str, folder: Path) -> None:
        from sightline.models.local.load import load_processor, read_checkpoint

        library: Any = import_module("transformers")
        self.torch: Any = import_module("torch")
        self.name = name
        # Qwen's processor does not load without torchvision by itself.
        self.processor = load_processor(read_checkpoint(folder, LocalArgs()), LocalArgs())
        self.model = library.AutoModelForImageTextToText.from_pretrained(folder).eval()
        self.is_seq2seq = name == "blip2_t5"

    def inputs(self, question: str, image: ImageRef) -> dict[str, Any]:
        opened = Image.open(image.path).convert("RGB")
        made = self.processor(
            text=[FORMS[self.name].format(question)], images=[[opened]], return_tensors="pt"
        )
        return {name: tensor for name, tensor in made.items() if name != "labels"}

    def generate(self, question: str, image: ImageRef, tokens: int) -> str:
        inputs = self.inputs(question, image)
        made = self.model.generate(
            **inputs, max_new_tokens=tokens, do_sample=False, eos_token_id=2, pad_token_id=0
        )
        start = 1 if self.is_seq2seq else inputs["input_ids"].shape[1]
        return str(self.processor.tokenizer.decode(made[0, start:], skip_special_tokens=True)).strip()

    def likelihood(self, question: str, image: ImageRef, choice: str) -> float:
        """The mean log-likelihood of a choice's tokens, by one pass over prompt and choice."""
        inputs = self.inputs(question, image)
        leads = {"paligemma": "", "instructblip": " ", "blip2_t5": ""}
        text = leads.get(self.name, " ") + choice
        ids = self.processor.tokenizer(text, add_special_tokens=False, return_tensors="pt")["input_ids"]
        with self.torch.no_grad():
            if self.is_seq2seq:
                start = self.torch.cat((self.torch.zeros(1, 1, dtype=self.torch.long), ids[:, :-1]), 1)
                logits = self.model(**inputs, decoder_input_ids=start).logits[0]
            else:
                more = {"input_ids": ids, "attention_mask": self.torch.ones_like(ids)}
                more |= {
                    "token_type_ids": self.torch.ones_like(ids),
                    "mm_token_type_ids": self.torch.zeros_like(ids),
                }
                both = {
                    name: self.torch.cat((inputs[name], more[name]), 1) for name in more if name in inputs
                }
                logits = self.model(**{**inputs, **both}).logits[0, inputs["input_ids"].shape[1] - 1 : -1]
        likely = logits.log_softmax(-1).gather(1, ids[0][:, None])
        return float(likely.mean())


@pytest.fixture(scope="module")
def plain(folder: Folder) -> Callable[[str], Plain]:
    made: dict[str, Plain] = {}

    def of(name: str) -> Plain:
        return made.setdefault(name, made.get(name) or Plain(name, folder(name)))

    return of


def _probes(images: Sequence[ImageRef]) -> list[tuple[str, ImageRef]]:
    """Questions of unlike lengths, several to an image, in no helpful order."""
    count = 3 * len(images)
    return list(zip(islice(cycle(QUESTIONS), count), islice(cycle(images), count), strict=True))


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_batch_answers_as_the_plain_loop_does_token_for_token(
    name: str, folder: Folder, plain: Callable[[str], Plain], images: list[ImageRef], asking: Asking
) -> None:
    probes = _probes(images)[:12]
    model = LocalModel(folder(name), name="hf/tiny")
    answers = ask(model, [asking(image, question) for question, image in probes])
    assert [answer.text for answer in answers] == [plain(name).generate(*probe, 8) for probe in probes]
    assert len({answer.text for answer in answers}) > len(QUESTIONS), "the images make no difference"
    reference = plain(name).inputs(*probes[0])
    assert answers[0].usage.prompt_tokens == reference["input_ids"].shape[1]


@pytest.mark.slow
@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_likeliest_choice_is_that_of_a_pass_over_each_choice(
    name: str, folder: Folder, plain: Callable[[str], Plain], images: list[ImageRef], asking: Asking
) -> None:
    probes = _probes(images)[:16]
    expected = []
    for question, image in probes:
        means = [plain(name).likelihood(question, image, choice) for choice in CHOICES]
        expected.append(CHOICES[means.index(max(means))])
    model = LocalModel(folder(name), name="hf/tiny")
    answers = ask(model, [asking(image, question, choices=CHOICES) for question, image in probes])
    assert [answer.text for answer in answers] == expected
    assert {answer.finish_reason for answer in answers} == {"likelihood"}
    assert len(set(expected)) > 1, "all the same: nothing is shown by that"
    alone = ask(model, [asking(image, question, choices=CHOICES[:1]) for question, image in probes])
    means = [plain(name).likelihood(question, image, CHOICES[0]) for question, image in probes]
    assert [float(answer.text) for answer in alone] == pytest.approx(means, abs=1e-4)


@pytest.mark.parametrize("name", ["llava", "qwen2_vl", "paligemma", "idefics3"])
@pytest.mark.parametrize("choices", [(), CHOICES])
def test_a_image_that_several_requests_show_is_encoded_once(
    name: str,
    choices: tuple[str, ...],
    folder: Folder,
    images: list[ImageRef],
    asking: Asking,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    seen: list[int] = []
    load = module.__dict__["load"]

    def watched(*args: Any) -> Any:
        loaded = load(*args)
        core = loaded.model.base_model
        tower = getattr(core, "vision_tower", None) or getattr(core, "vision_model", None) or core.visual
        tower.register_forward_hook(lambda _, __, out: seen.append(len(out.last_hidden_state)))
        return loaded

    monkeypatch.setattr(module, "load", watched)
    requests = [asking(image, "is it a dog" + end, choices=choices) for image in images[:2] for end in "?!."]
    ask(LocalModel(folder(name), name="hf/tiny"), requests)
    # Qwen's tower makes one row of all images: 24 patches each.
    assert seen == [48 if name == "qwen2_vl" else 2]


@pytest.mark.slow
def test_drawn_answers_depend_on_the_request_and_the_seed_and_not_on_the_batch(
    folder: Folder, images: list[ImageRef], asking: Asking
) -> None:
    def drawn(seed: int, batch: int, **options: Any) -> list[str]:
        model = LocalModel(folder("llava"), name="hf/tiny", args=LocalArgs(batch=batch))
        options = {"temperature": 1.0, "seed": seed, **options}
        requests = [asking(image, question, **options) for question, image in _probes(images)]
        return [answer.text for answer in ask(model, requests)]

    assert drawn(0, 32) == drawn(0, 1) == drawn(0, 5)
    assert drawn(0, 32) != drawn(1, 32)
    greedy = [asking(image, question) for question, image in _probes(images)]
    likeliest = [a.text for a in ask(LocalModel(folder("llava"), name="hf/tiny"), greedy)]
    assert drawn(0, 32) != likeliest
    assert drawn(3, 32, top_k=1) == drawn(4, 32, top_p=1e-9) == likeliest


def test_a_repetition_penalty_falls_on_what_was_said_and_not_on_what_fills_up() -> None:
    torch: Any = import_module("torch")
    from sightline.models.local.generate import _Penalty

    end, scores = 2, torch.tensor([[1.0, -1.0, 3.0, 2.0, 0.5, -2.0]])

    def penalized(tokens: list[int], seen: list[int]) -> Any:
        return _Penalty(1.5, torch.tensor([seen]).bool())(torch.tensor([tokens]), scores)

    alone = penalized([3, 5, 4], [1, 1])
    left = penalized([end, end, 3, 5, 4], [0, 0, 1, 1])
    between = penalized([3, end, 5, 4], [1, 0, 1])
    assert alone.tolist()[0] == pytest.approx([1, -1, 3, 2 / 1.5, 0.5 / 1.5, -3])
    assert torch.equal(left, alone)
    assert torch.equal(between, alone)


def test_draws_follow_the_model_s_distribution() -> None:
    torch: Any = import_module("torch")
    from random import Random

    from sightline.models.local.generate import _SeededSampling
    from sightline.models.local.load import Sampling

    scores = torch.tensor([2.0, 1.0, 0.5, -1.0]).expand(8000, 4).clone()
    dice = [Random(number) for number in range(8000)]
    drawn = _SeededSampling(Sampling(temperature=0.7, top_k=3, top_p=0.95), dice)(None, scores).argmax(-1)
    shares = (torch.tensor([2.0, 1.0, 0.5]) / 0.7).softmax(-1)
    assert drawn.bincount(minlength=4)[3] == 0
    assert torch.allclose(drawn.bincount(minlength=4)[:3] / 8000, shares, atol=0.02)


def test_an_answer_ends_at_its_last_token_or_at_its_limit_and_says_which(
    folder: Folder, images: list[ImageRef], asking: Asking
) -> None:
    options = {"max_tokens": 150, "temperature": 5.0}
    # Keys without paths: the same answers are drawn in every run of this test.
    requests = [
        replace(asking(image, question, **options), key=f"request {number}")
        for number, (question, image) in enumerate(_probes(images))
    ]
    model = LocalModel(folder("llava"), name="hf/tiny", version="v1")
    answers = ask(model, requests)
    assert {answer.version for answer in answers} == {"v1"}
    counts = [answer.usage.completion_tokens or 0 for answer in answers]
    reasons = [answer.finish_reason for answer in answers]
    assert set(reasons) == {"stop", "length"}
    # The token that ends an answer may be the last that there is room for.
    assert all(
        n == 150 if reason == "length" else n <= 150 for n, reason in zip(counts, reasons, strict=True)
    )
    cut = ask(model, [asking(images[0], QUESTIONS[0], max_tokens=2)])
    assert [(answer.finish_reason, answer.usage.completion_tokens) for answer in cut] == [("length", 2)]


def test_a_prompt_that_fills_the_context_is_refused_and_a_long_answer_is_cut_to_it(
    folder: Folder, images: list[ImageRef], asking: Asking
) -> None:
    short, long = asking(images[0], "a", max_tokens=4000), asking(images[0], "a " * 300)
    answer, failure = ask(LocalModel(folder("llava"), name="hf/tiny"), [short, long])
    room = 256 - answer.usage.prompt_tokens
    assert answer.usage.completion_tokens <= room - room % 32
    assert failure == Failure("blocked", failure.message)
    assert re.search(r"tokens and leaves no room.*256 in all", failure.message)


def test_where_memory_does_not_suffice_a_batch_is_halved_and_the_one_that_never_fits_has_failed(
    folder: Folder, images: list[ImageRef], asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch: Any = import_module("torch")
    sizes: list[int] = []
    generate = module.__dict__["generate"]

    def tight(loaded: Any, batch: Sequence[Any], *rest: Any) -> list[Answer]:
        sizes.append(len(batch))
        if len(batch) > 4:
            raise torch.OutOfMemoryError("CUDA out of memory")
        if any("dog" in one.prompt.text for one in batch):
            raise RuntimeError("[enforce fail] DefaultCPUAllocator: can't allocate memory: you tried")
        answers: list[Answer] = generate(loaded, batch, *rest)
        return answers

    monkeypatch.setattr(module, "generate", tight)
    probes = _probes(images)
    results = ask(LocalModel(folder("llava"), name="hf/tiny"), [asking(p, q) for q, p in probes])
    for (question, _), result in zip(probes, results, strict=True):
        assert isinstance(result, Failure) == ("dog" in question)
    assert sizes[:2] == [18, 9]
    assert any("memory" in result.message for result in results if isinstance(result, Failure))


@pytest.mark.parametrize("fits", [3, 5])
def test_after_a_batch_that_did_not_fit_later_ones_are_as_small_as_what_fitted_and_the_user_learns_it(
    folder: Folder,
    images: list[ImageRef],
    asking: Asking,
    monkeypatch: pytest.MonkeyPatch,
    capfd: pytest.CaptureFixture[str],
    fits: int,
) -> None:
    torch: Any = import_module("torch")
    generate = module.__dict__["generate"]
    requests = [asking(image, question) for question, image in _probes(images)]
    expected = ask(LocalModel(folder("llava"), name="hf/tiny"), requests)
    sizes: list[list[int]] = []

    def tight(loaded: Any, batch: Sequence[Any], *rest: Any) -> list[Answer]:
        sizes[-1].append(len(batch))
        if len(batch) > fits:
            raise torch.OutOfMemoryError("CUDA out of memory")
        answers: list[Answer] = generate(loaded, batch, *rest)
        return answers

    monkeypatch.setattr(module, "generate", tight)

    async def twice() -> list[list[Any]]:
        found = []
        async with LocalModel(folder("llava"), name="hf/tiny") as model:
            for _ in range(2):
                sizes.append([])
                found.append(await answers_of(model, requests))
        return found

    for results in asyncio.run(twice()):
        assert [result.text for result in results] == [answer.text for answer in expected]
    first, second = sizes
    largest = max(size for size in first if size <= fits)
    assert max(second) <= largest
    notes = [line for line in capfd.readouterr().err.splitlines() if "too little memory" in line]
    assert len(notes) == 1
    assert f"from now on {largest} (--model-arg batch={largest})" in notes[0]


def test_one_request_that_never_fits_leaves_the_others_their_batches(
    folder: Folder, images: list[ImageRef], asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    torch: Any = import_module("torch")
    generate = module.__dict__["generate"]

    def tight(loaded: Any, batch: Sequence[Any], *rest: Any) -> list[Answer]:
        if any("giant" in one.prompt.text for one in batch):
            raise torch.OutOfMemoryError("CUDA out of memory")
        answers: list[Answer] = generate(loaded, batch, *rest)
        return answers

    monkeypatch.setattr(module, "generate", tight)
    questions = [*QUESTIONS[:1] * 15, "giant"]

    async def largest_batch() -> int:
        async with LocalModel(folder("llava"), name="hf/tiny") as model:
            await answers_of(model, [asking(images[0], question) for question in questions])
            return model._max_batch

    assert asyncio.run(largest_batch()) >= 8


def test_what_cannot_be_asked_loses_no_other(
    folder: Folder, images: list[ImageRef], asking: Asking, tmp_path: Path
) -> None:
    gone = tmp_path / "gone.png"
    Image.new("RGB", (20, 20)).save(gone)
    lost = asking(ImageRef(str(gone)), "what is this")
    gone.unlink()
    marked = asking(images[0], "what is <image> this")
    fine = asking(images[0], "what is this")
    first, second, third = ask(LocalModel(folder("llava"), name="hf/tiny"), [lost, marked, fine])
    assert [first.kind, second.kind] == ["permanent", "permanent"]
    assert "gone.png" in first.message
    assert "<image>" in second.message
    assert isinstance(third, Answer)


def test_a_request_on_which_the_model_fails_loses_no_other(
    folder: Folder, images: list[ImageRef], asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate = module.__dict__["generate"]

    def failing(loaded: Any, batch: Sequence[Any], *rest: Any) -> list[Answer]:
        if any("dog" in one.prompt.text for one in batch):
            raise IndexError("index out of range in self")
        answers: list[Answer] = generate(loaded, batch, *rest)
        return answers

    monkeypatch.setattr(module, "generate", failing)
    probes = _probes(images)
    results = ask(LocalModel(folder("llava"), name="hf/tiny"), [asking(p, q) for q, p in probes])
    for (question, _), result in zip(probes, results, strict=True):
        assert isinstance(result, Failure) == ("dog" in question)
    assert any("index out of range" in result.message for result in results if isinstance(result, Failure))


def test_a_window_that_is_given_up_ends_at_its_next_token_and_cuts_off_no_later_one(
    folder: Folder, images: list[ImageRef], asking: Asking, monkeypatch: pytest.MonkeyPatch
) -> None:
    generate = module.__dict__["generate"]
    started, made = Event(), list[int]()

    def held(loaded: Any, batch: Sequence[Any], stop: Event, version: str) -> list[Answer]:
        if not made:
            started.set()
            assert stop.wait(60)
        answers: list[Answer] = generate(loaded, batch, stop, version)
        made.append(answers[0].usage.completion_tokens or 0)
        return answers

    monkeypatch.setattr(module, "generate", held)
    long, fine = asking(images[0], "a", max_tokens=200), asking(images[0], "what is this")

    async def run() -> list[Any]:
        async with LocalModel(folder("llava"), name="hf/tiny", args=LocalArgs(batch=1)) as model:
            task = asyncio.ensure_future(anext(model.answer([long, long])))
            await asyncio.to_thread(started.wait, 60)
            task.cancel()
            with pytest.raises(asyncio.CancelledError):
                await task
            return [answer async for _, answer in model.answer([fine])]

    (after,) = asyncio.run(run())
    # Two are in work at a time.
    assert sorted(made) == [1, 1, after.usage.completion_tokens]
    monkeypatch.undo()
    (alone,) = ask(LocalModel(folder("llava"), name="hf/tiny"), [fine])
    assert (after.text, after.finish_reason) == (alone.text, alone.finish_reason)


@pytest.mark.parametrize("name", ["blip2", "instructblip"])
def test_a_model_that_needs_an_image_says_so(name: str, folder: Folder, asking: Asking) -> None:
    (failure,) = ask(LocalModel(folder(name), name="hf/tiny"), [asking("what is this")])
    assert failure == Failure("permanent", "this architecture answers nothing without an image")
