"""Likelihoods of options against one plain pass over prompt and option, for models that keep state."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from PIL import Image
from tests import tiny_models

from sightline.models.local import generate
from sightline.models.local.encode import Encoded, Encoder, compatible_batches, prompt_of
from sightline.models.local.load import Loaded, LocalArgs, Sampling, load, read_checkpoint
from sightline.types import ImageRef, Request, user

pytestmark = pytest.mark.skipif(
    None in (find_spec("torch"), find_spec("transformers")), reason="needs the extra 'local'"
)

FAMILIES = ("qwen2_vl", "qwen2_5_vl", "qwen3_vl", "glm4v", "qwen3_5", "llava", "idefics3")
CLOSE = 1e-5
FEW = ("yes", "a red dog")
MANY = ("no", "the cat is blue", "9 9", "a dog, a cat and a dog")
WORDS = ("what is the cat", "what is the dog")

Folder = Callable[[str], Path]
Asking = Callable[..., Request]


def loaded_of(folder: Path) -> Loaded:
    return load(read_checkpoint(folder, LocalArgs()), LocalArgs())


def encoded_of(loaded: Loaded, requests: Sequence[Request]) -> list[Encoded]:
    encoder = Encoder(loaded, "auto")
    encoded = [encoder.encode(request) for request in requests]
    assert all(isinstance(each, Encoded) for each in encoded), encoded
    return [each for each in encoded if isinstance(each, Encoded)]


def scored(loaded: Loaded, encoded: Sequence[Encoded]) -> dict[str, list[float]]:
    """The likelihoods of each request's options by its key, in batches as a window makes them."""
    found: dict[str, list[float]] = {}
    for batch in compatible_batches(enumerate(encoded)):
        rows = [each for _, each in batch]
        choices = [generate.choice_tokens(loaded, each) for each in rows]
        with import_module("torch").inference_mode():
            means = generate._score_decoder(loaded, rows, choices)
        found |= {each.request.key: several for each, several in zip(rows, means, strict=True)}
    return found


def plain(model: Any, loaded: Loaded, encoded: Sequence[Encoded]) -> dict[str, list[float]]:
    """The same by one pass over prompt and option; `model` is a copy that nothing else has used."""
    torch: Any = import_module("torch")

    def mean(each: Encoded, tokens: list[int]) -> float:
        ids = torch.tensor([tokens])
        more = {"input_ids": ids, "attention_mask": torch.ones_like(ids)}
        more["mm_token_type_ids"] = torch.zeros_like(ids)
        both = {name: torch.cat((each.inputs[name], more[name]), 1) for name in more if name in each.inputs}
        if hasattr(model.base_model, "rope_deltas"):
            model.base_model.rope_deltas = None
        with torch.no_grad():
            logits = model(**{**each.inputs, **both}, use_cache=False).logits[0, each.tokens - 1 : -1]
        return float(logits.log_softmax(-1).gather(1, ids[0][:, None]).mean())

    return {
        each.request.key: [mean(each, tokens) for tokens in generate.choice_tokens(loaded, each)]
        for each in encoded
    }


def farthest(found: dict[str, list[float]], expected: dict[str, list[float]]) -> float:
    assert found.keys() == expected.keys()
    pairs = [pair for key in found for pair in zip(found[key], expected[key], strict=True)]
    return max(abs(one - other) for one, other in pairs)


@pytest.fixture
def shapes(tmp_path: Path) -> list[ImageRef]:
    """Images of as many tokens, whose text begins at unequal positions."""
    found = []
    for size in ((64, 16), (32, 32), (16, 64)):
        Image.effect_noise(size, 90).save(tmp_path / f"{size}.png")
        found.append(ImageRef(str(tmp_path / f"{size}.png")))
    return found


def windows_of(images: Sequence[ImageRef], shapes: Sequence[ImageRef], asking: Asking) -> list[list[Request]]:
    """Windows of requests with unequal numbers of options: of several images, of two images each, of none."""
    return [
        [
            asking(shown, WORDS[0], choices=MANY[:count])
            for shown, count in zip(shapes, (3, 1, 4), strict=True)
        ],
        [asking(images[n], WORDS[n % 2], choices=(FEW, MANY)[n % 2]) for n in range(4)],
        [
            asking("this is a long text without any image: " + WORDS[n], choices=(FEW, MANY)[n])
            for n in (0, 1)
        ],
        [asking(images[n], images[n + 1], WORDS[n], choices=(MANY, FEW)[n]) for n in (0, 1)],
        [asking(images[0], WORDS[n], choices=(MANY, FEW)[n]) for n in (0, 1)],
    ]


@pytest.mark.parametrize("name", FAMILIES)
def test_windows_one_after_another_are_as_likely_as_by_plain_passes(
    name: str, folder: Folder, images: list[ImageRef], shapes: list[ImageRef], asking: Asking
) -> None:
    loaded = loaded_of(folder(name))
    untouched = copy.deepcopy(loaded.model)
    for requests in windows_of(images, shapes, asking):
        encoded = encoded_of(loaded, requests)
        found, expected = scored(loaded, encoded), plain(untouched, loaded, encoded)
        assert farthest(found, expected) <= CLOSE
        assert len({round(mean, 4) for means in expected.values() for mean in means}) > len(FEW)


@pytest.mark.slow
@pytest.mark.parametrize("name", FAMILIES)
def test_two_threads_do_not_change_each_other_s_likelihoods(
    name: str, folder: Folder, images: list[ImageRef], shapes: list[ImageRef], asking: Asking
) -> None:
    loaded = loaded_of(folder(name))
    windows = [encoded_of(loaded, requests) for requests in windows_of(images, shapes, asking)]
    expected = [plain(copy.deepcopy(loaded.model), loaded, encoded) for encoded in windows]
    with ThreadPoolExecutor(2) as threads:
        found = list(threads.map(lambda encoded: scored(loaded, encoded), windows * 8))
    assert max(farthest(*pair) for pair in zip(found, expected * 8, strict=True)) <= CLOSE


def test_convolutions_of_a_hybrid_model_do_not_lose_their_state(images: list[ImageRef]) -> None:
    loaded, encoded = lfm2_vl()
    assert not generate._can_be_copied(loaded.model(**encoded[0].inputs, use_cache=True).past_key_values)
    found = scored(loaded, encoded)
    assert farthest(found, plain(copy.deepcopy(loaded.model), loaded, encoded)) <= CLOSE


def lfm2_vl() -> tuple[Loaded, list[Encoded]]:
    """LFM2-VL with two requests; its image processor needs torchvision, so the tensors are made here."""
    t, torch = import_module("transformers"), import_module("torch")
    words = tiny_models.tokenizer("<image>")
    text = tiny_models.llama(len(words)) | {"layer_types": ["conv", "full_attention"]}
    vision = {**tiny_models.BERT, "model_type": "siglip2_vision_model", "patch_size": 8, "num_patches": 16}
    config = t.Lfm2VlConfig(
        vision_config=vision,
        text_config={**text, "model_type": "lfm2"},
        image_token_id=3,
        projector_hidden_size=32,
    )
    model = t.Lfm2VlForConditionalGeneration(config).eval()
    tiny_models.spread(model)
    loaded = Loaded(
        kind="lfm2_vl",
        model=model,
        processor=SimpleNamespace(tokenizer=words),
        device=torch.device("cpu"),
        positions=256,
        ends=frozenset({2}),
        pad=0,
        is_seq2seq=False,
    )
    encoded = []
    for number, choices in enumerate((FEW, MANY)):
        request = Request(str(number), (user(WORDS[number]),), {}, {}, choices=choices)
        prompt = prompt_of(request, loaded.processor, loaded.kind)
        tokens = words(prompt.text, add_special_tokens=False)["input_ids"]
        ids = torch.tensor([[3, 3, 3, 3, *tokens]])
        inputs = {
            "input_ids": ids,
            "attention_mask": torch.ones_like(ids),
            "pixel_values": torch.randn(1, 16, 8 * 8 * 3),
            "pixel_attention_mask": torch.ones(1, 16, dtype=torch.long),
            "spatial_shapes": torch.tensor([[4, 4]]),
        }
        encoded.append(Encoded(request, prompt, inputs, ids.shape[1], 8, Sampling()))
    return loaded, encoded
