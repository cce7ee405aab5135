"""Adapters on models of several architectures: their inputs, and what they change."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if None in (find_spec("torch"), find_spec("transformers"), find_spec("peft")):
    pytest.skip("needs the extra 'adapter'", allow_module_level=True)

import torch
from msgspec.structs import replace

from sightline.adapter.architectures import AdapterConfig, BiLstm, Lora, Prefix
from sightline.adapter.attach import with_adapter
from sightline.adapter.saved_adapter import (
    AdapterMetadata,
    SavedAdapter,
    copy_weights,
    read_weights,
    save_adapter,
)
from sightline.errors import UserError
from sightline.models.local.load import LocalArgs, load
from sightline.models.local.model import LocalModel
from sightline.types import Answer, Failure, ImageRef, Request

Folder = Callable[[str], Path]
Asking = Callable[..., Request]

ARCHITECTURES = ("llava", "blip2", "blip2_t5", "instructblip", "qwen2_vl", "paligemma", "idefics3")
QUESTIONS = ("what is this", "is the cat red", "is this a dog, yes or no: what is the cat", "?")
CHOICES = ("yes", "no", "a red dog", "the cat is blue", "T", "<", "9 9")
KINDS: dict[str, AdapterConfig] = {
    "bilstm": BiLstm(hidden=6),
    "prefix": Prefix(prefix=6),
    "lora": Lora(rank=2),
}


def _ask(model: LocalModel, requests: Sequence[Request]) -> list[Answer | Failure]:
    async def run() -> list[Answer | Failure]:
        async with model:
            found = [pair async for pair in model.answer(requests)]
        return [answer for _, answer in sorted(found, key=lambda pair: pair[0])]

    return asyncio.run(run())


def _texts(model: LocalModel, requests: Sequence[Request]) -> list[str]:
    answers = _ask(model, requests)
    assert not any(isinstance(answer, Failure) for answer in answers), answers
    return [answer.text for answer in answers if isinstance(answer, Answer)]


def _saved(base: Path, kind: AdapterConfig, place: Path, scale: float = 1.0) -> SavedAdapter:
    """An adapter of that kind with random weights that are large enough to change answers."""
    plain = LocalModel(base, name="hf/tiny")
    torch.manual_seed(11)
    made = with_adapter(load(plain.checkpoint, plain.args), kind)
    with torch.no_grad():
        for weight in made.weights.values():
            weight.normal_(std=scale)
    save_adapter(place, AdapterMetadata(kind, plain.identity, 1), made.weights)
    return SavedAdapter(place)


def _requests(images: list[ImageRef], asking: Asking, **options: Any) -> list[Request]:
    return [asking(image, question, **options) for image in images[:3] for question in QUESTIONS]


@pytest.mark.parametrize(
    ("name", "choices"), [*((name, ()) for name in ARCHITECTURES), ("llava", CHOICES), ("blip2_t5", CHOICES)]
)
def test_an_adapter_without_vectors_gives_the_answers_of_the_base_model(
    name: str,
    choices: tuple[str, ...],
    folder: Folder,
    images: list[ImageRef],
    asking: Asking,
    tmp_path: Path,
) -> None:
    requests = _requests(images, asking, choices=choices)
    empty = _saved(folder(name), BiLstm(prefix=0, hidden=4), tmp_path)
    plain = _texts(LocalModel(folder(name), name="hf/tiny"), requests)
    assert _texts(LocalModel(folder(name), name="hf/tiny", attachment=empty), requests) == plain
    assert len(set(plain)) > 1


@pytest.mark.slow
@pytest.mark.parametrize(
    ("name", "kind", "choices"),
    [
        *((name, kind, ()) for name in ARCHITECTURES for kind in KINDS),
        *((name, "bilstm", CHOICES) for name in ARCHITECTURES),
    ],
)
def test_batched_answers_equal_single_answers_and_differ_from_the_base_model(
    name: str,
    kind: str,
    choices: tuple[str, ...],
    folder: Folder,
    images: list[ImageRef],
    asking: Asking,
    tmp_path: Path,
) -> None:
    requests = _requests(images, asking, choices=choices)
    saved = _saved(folder(name), KINDS[kind], tmp_path, scale=1.0)
    together = _texts(LocalModel(folder(name), name="hf/tiny", attachment=saved), requests)
    single = LocalModel(folder(name), name="hf/tiny", args=LocalArgs(batch=1), attachment=saved)
    assert together[:5] == _texts(single, requests[:5])
    assert together != _texts(LocalModel(folder(name), name="hf/tiny"), requests)


@pytest.mark.parametrize("name", ["llava", "blip2", "blip2_t5", "qwen2_vl"])
def test_vectors_precede_the_embeddings_of_prompt_and_image(
    name: str, folder: Folder, images: list[ImageRef], asking: Asking
) -> None:
    """Behind the vectors, the language model receives the same embeddings as without the adapter."""
    from sightline.adapter.batch import ExampleEncoder, training_batch
    from sightline.adapter.examples import TrainingExample
    from sightline.models.local.model import embedding_receiver

    given: list[tuple[torch.Tensor, torch.Tensor]] = []

    def run(kind: AdapterConfig | None) -> Any:
        plain = LocalModel(folder(name), name="hf/tiny")
        loaded = load(plain.checkpoint, plain.args)
        made = with_adapter(loaded, kind).loaded if kind is not None else loaded
        embedding_receiver(made).register_forward_pre_hook(
            lambda _, __, said: given.append((said["inputs_embeds"], said["attention_mask"])),
            with_kwargs=True,
        )
        encoder = ExampleEncoder(made, "auto", cache_bytes=0, max_answer_tokens=20)
        examples = [
            TrainingExample(asking(images[0], words, choices=["yes"]), "yes", ("yes",))
            for words in ("what", "is the cat red")
        ]
        batch = training_batch(made, [encoder.encode(example) for example in examples])
        if made.prefix_vectors is not None:
            made.prefix_vectors.activate(batch.prompt_mask)
        with torch.no_grad():
            made.model(**batch.inputs)
        return made

    run(None)
    made = run(Prefix(prefix=2))
    (plain, _), (wider, mask) = given
    assert torch.equal(wider[:, 2:], plain)
    assert torch.equal(wider[0, :2], made.prefix_vectors.module.vectors)
    assert mask.shape == wider.shape[:2]
    assert bool(mask[:, :2].bool().all())


@pytest.mark.parametrize("kind", KINDS)
def test_a_saved_adapter_loads_bit_for_bit(kind: str, folder: Folder, tmp_path: Path) -> None:
    saved = _saved(folder("llava"), KINDS[kind], tmp_path / "one")
    plain = LocalModel(folder("llava"), name="hf/tiny")
    made = with_adapter(load(plain.checkpoint, plain.args), KINDS[kind])
    weights = read_weights(tmp_path / "one")
    assert weights.keys() == made.weights.keys()
    copy_weights(weights, made.weights, tmp_path)
    save_adapter(tmp_path / "two", saved.metadata, made.weights)
    for file in ("adapter.json", "adapter.safetensors"):
        assert (tmp_path / "one" / file).read_bytes() == (tmp_path / "two" / file).read_bytes()


def test_lora_is_merged_into_the_weights_that_it_changes(folder: Folder, tmp_path: Path) -> None:
    """After merging, the model has the modules of the base model and the logits of LoRA."""
    saved = _saved(folder("llava"), KINDS["lora"], tmp_path, scale=0.3)
    plain = LocalModel(folder("llava"), name="hf/tiny")
    beside = with_adapter(load(plain.checkpoint, plain.args), KINDS["lora"])
    copy_weights(read_weights(tmp_path), beside.weights, tmp_path)
    merged, base = saved.attach(load(plain.checkpoint, plain.args)), load(plain.checkpoint, plain.args)
    assert [*dict(merged.model.named_modules())] == [*dict(base.model.named_modules())]
    ids = torch.arange(4, 20)[None]
    with torch.no_grad():
        one, other, without = (each.model(input_ids=ids).logits for each in (merged, beside.loaded, base))
    assert torch.allclose(one, other, atol=1e-4)
    assert not torch.allclose(one, without, atol=1e-2)


def test_the_identity_of_a_model_includes_its_adapter(folder: Folder, tmp_path: Path) -> None:
    plain = LocalModel(folder("llava"), name="hf/tiny")
    one = _saved(folder("llava"), KINDS["prefix"], tmp_path / "one")
    two = _saved(folder("llava"), KINDS["prefix"], tmp_path / "two", scale=2)
    named = {LocalModel(folder("llava"), name="hf/tiny", attachment=saved).identity for saved in (one, two)}
    assert len({plain.identity, *named}) == 3


def test_another_base_model_is_refused(folder: Folder, tmp_path: Path) -> None:
    saved = _saved(folder("llava"), KINDS["prefix"], tmp_path)
    trained, given = (LocalModel(folder(name), name="hf/tiny").identity for name in ("llava", "blip2"))
    with pytest.raises(UserError, match="trained on another model") as refused:
        LocalModel(folder("blip2"), name="hf/tiny", attachment=saved)
    assert refused.value.found == trained, "the file holds the identity of its training"
    assert given in str(refused.value.expected)
    half = LocalModel(folder("llava"), name="hf/tiny", args=LocalArgs(dtype="bfloat16"), attachment=saved)
    assert "bfloat16 adapter" in half.identity


def test_another_template_than_in_training_is_refused(folder: Folder, tmp_path: Path) -> None:
    saved = _saved(folder("chat"), KINDS["prefix"], tmp_path)
    plain = LocalArgs(template="plain")
    with pytest.raises(UserError, match=r"another template .*found 'plain'.*--model-arg template=auto"):
        LocalModel(folder("chat"), name="hf/tiny", args=plain, attachment=saved)
    base = LocalModel(folder("chat"), name="hf/tiny", args=plain).identity
    save_adapter(tmp_path, replace(saved.metadata, base=base), {})
    LocalModel(folder("chat"), name="hf/tiny", args=plain, attachment=SavedAdapter(tmp_path))
    with pytest.raises(UserError, match=r"--model-arg template=plain"):
        LocalModel(folder("chat"), name="hf/tiny", attachment=SavedAdapter(tmp_path))


def test_a_training_image_is_refused(
    folder: Folder, images: list[ImageRef], asking: Asking, tmp_path: Path
) -> None:
    saved = _saved(folder("llava"), KINDS["prefix"], tmp_path)
    known, other = asking(images[0], "what"), asking(images[1], "what")
    digest = known.images[images[0].path].digest
    save_adapter(
        tmp_path,
        replace(saved.metadata, images=(digest,)),
        {name: torch.nn.Parameter(tensor) for name, tensor in read_weights(tmp_path).items()},
    )
    model = LocalModel(folder("llava"), name="hf/tiny", attachment=SavedAdapter(tmp_path))
    fine, refused = _ask(model, [other, known])
    assert isinstance(fine, Answer)
    assert isinstance(refused, Failure)
    assert refused.kind == "permanent"
    assert "was trained on this image" in refused.message


def test_weights_that_do_not_fit_the_metadata_are_an_error(folder: Folder, tmp_path: Path) -> None:
    saved = _saved(folder("llava"), Prefix(prefix=2), tmp_path)
    save_adapter(tmp_path, saved.metadata, {"vectors": torch.nn.Parameter(torch.zeros(3, 32))})
    model = LocalModel(folder("llava"), name="hf/tiny", attachment=SavedAdapter(tmp_path))
    with pytest.raises(UserError, match=r"do not fit adapter.json \(found 'vectors'\)"):
        _ask(model, [])


@pytest.mark.parametrize(
    ("broken", "said"),
    [
        ("", "lacks adapter.json"),
        ("{", "cannot be read"),
        ('{"adapter": {"kind": "other"}}', "cannot be read"),
    ],
)
def test_a_folder_without_an_adapter_is_an_error(broken: str, said: str, tmp_path: Path) -> None:
    if broken:
        (tmp_path / "adapter.json").write_text(broken)
    with pytest.raises(UserError, match=said):
        SavedAdapter(tmp_path)
