"""Tiny models with random weights, one of each architecture, saved as folders that transformers loads."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from PIL import Image

from sightline.images import inspect_image
from sightline.types import ImageRef, Part, Request, Text, user

SIDE = 32
WORDS = ("what", "is", "this", "a", "the", "cat", "dog", "yes", "no", "red", "blue", "USER", "ASSISTANT")
BERT = {"hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2, "intermediate_size": 64}
LAYERS = {**BERT, "hidden_act": "gelu"}
CHAT = (
    "{% for m in messages %}{{ m['role'] }}:{% for c in m['content'] %}{% if c['type'] == 'image' %}MARK"
    "{% else %}{{ c['text'] }}{% endif %}{% endfor %}{{ '\n' }}{% endfor %}"
    "{% if add_generation_prompt %}assistant:{% endif %}"
)


def _library(name: str) -> Any:
    """A module of transformers or tokenizers, whose types say little."""
    return import_module(name)


def tokenizer(*special: str, **names: str) -> Any:
    """A tokenizer of bytes and a few words; the special tokens come first: pad, start, end, then these."""
    tokenizers, models = _library("tokenizers"), _library("tokenizers.models")
    pre, decoders = _library("tokenizers.pre_tokenizers"), _library("tokenizers.decoders")
    merges: list[tuple[str, str]] = []
    for word in WORDS:
        for form in (word, f"Ġ{word}"):
            merges += [(form[:end], form[end]) for end in range(1, len(form))]
    merges = list(dict.fromkeys(merges))
    tokens = ["<pad>", "<s>", "</s>", *special, *sorted(pre.ByteLevel.alphabet())]
    tokens += [first + second for first, second in merges]
    vocabulary = {token: place for place, token in enumerate(dict.fromkeys(tokens))}
    made = tokenizers.Tokenizer(models.BPE(vocabulary, merges))
    made.pre_tokenizer = pre.ByteLevel(add_prefix_space=False)
    made.decoder = decoders.ByteLevel()
    return _library("transformers").PreTrainedTokenizerFast(
        tokenizer_object=made,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        extra_special_tokens=dict(names),
        model_max_length=4096,
    )


def _pil(kind: str, name: str, **options: Any) -> Any:
    module = _library(f"transformers.models.{kind}.image_processing_pil_{kind}")
    return getattr(module, name)(**options)


def _square(kind: str, name: str) -> Any:
    return _pil(kind, name, size={"height": SIDE, "width": SIDE})


def llama(size: int, **more: Any) -> dict[str, Any]:
    text = {"vocab_size": size, "hidden_size": 32, "num_hidden_layers": 2, "num_attention_heads": 2}
    text |= {"num_key_value_heads": 2, "intermediate_size": 64, "max_position_embeddings": 256}
    return text | {"pad_token_id": 0, "bos_token_id": 1, "eos_token_id": 2} | more


def llava() -> tuple[Any, Any]:
    t, words = _library("transformers"), tokenizer("<image>", image_token="<image>")
    images = _pil(
        "clip",
        "CLIPImageProcessorPil",
        size={"shortest_edge": SIDE},
        crop_size={"height": SIDE, "width": SIDE},
    )
    config = t.LlavaConfig(
        vision_config=t.CLIPVisionConfig(**BERT, image_size=SIDE, patch_size=8),
        text_config=t.LlamaConfig(**llama(len(words))),
        image_token_index=3,
        vision_feature_layer=-1,
    )
    processor = t.LlavaProcessor(
        images,
        words,
        patch_size=8,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
    )
    return t.LlavaForConditionalGeneration(config), processor


def chat() -> tuple[Any, Any]:
    model, processor = llava()
    processor.chat_template = CHAT.replace("MARK", "<image>")
    return model, processor


def _blip(prefix: str, text: Any, words: Any) -> Any:
    t = _library("transformers")
    vision = {**LAYERS, "image_size": SIDE, "patch_size": 8, "initializer_range": 0.02}
    former = {**BERT, "vocab_size": len(words), "encoder_hidden_size": 32, "cross_attention_frequency": 1}
    return getattr(t, f"{prefix}Config")(
        vision_config=vision,
        qformer_config={**former, "hidden_dropout_prob": 0.1, "max_position_embeddings": 128},
        text_config=text,
        num_query_tokens=4,
        image_token_index=3,
    )


def _opt(size: int) -> Any:
    return _library("transformers").OPTConfig(
        vocab_size=size,
        hidden_size=32,
        word_embed_proj_dim=32,
        num_hidden_layers=2,
        num_attention_heads=2,
        ffn_dim=64,
        max_position_embeddings=256,
        pad_token_id=0,
        bos_token_id=1,
        eos_token_id=2,
    )


def blip2() -> tuple[Any, Any]:
    t, words = _library("transformers"), tokenizer("<image>")
    config = _blip("Blip2", _opt(len(words)), words)
    processor = t.Blip2Processor(_square("blip", "BlipImageProcessorPil"), words, num_query_tokens=4)
    return t.Blip2ForConditionalGeneration(config), processor


def blip2_t5() -> tuple[Any, Any]:
    t, words = _library("transformers"), tokenizer("<image>")
    text = t.T5Config(
        vocab_size=len(words),
        d_model=32,
        d_kv=16,
        d_ff=64,
        num_layers=2,
        num_heads=2,
        pad_token_id=0,
        eos_token_id=2,
        decoder_start_token_id=0,
    )
    config = _blip("Blip2", text, words)
    processor = t.Blip2Processor(_square("blip", "BlipImageProcessorPil"), words, num_query_tokens=4)
    return t.Blip2ForConditionalGeneration(config), processor


def instructblip() -> tuple[Any, Any]:
    t, words = _library("transformers"), tokenizer("<image>")
    config = _blip("InstructBlip", _opt(len(words)), words)
    processor = t.InstructBlipProcessor(
        _square("blip", "BlipImageProcessorPil"), words, qformer_tokenizer=tokenizer(), num_query_tokens=4
    )
    return t.InstructBlipForConditionalGeneration(config), processor


QWEN_MARKS = ("<|vision_start|>", "<|vision_end|>", "<|image_pad|>", "<|video_pad|>")
QWEN_IDS = {"image_token_id": 5, "video_token_id": 6}
AXES = {"rope_type": "default", "rope_theta": 1e4, "mrope_section": [2, 3, 3]}
GRID = {"depth": 2, "num_heads": 2, "patch_size": 8, "hidden_size": 32}


def _qwen_processor(words: Any) -> Any:
    """Patches of 8 pixels, and four of them a token, as all families with M-RoPE take them."""
    words.add_special_tokens({"additional_special_tokens": list(QWEN_MARKS)})
    images = _pil(
        "qwen2_vl", "Qwen2VLImageProcessorPil", patch_size=8, merge_size=2, min_pixels=256, max_pixels=4096
    )
    template = CHAT.replace("MARK", "<|vision_start|><|image_pad|><|vision_end|>")
    # Without films, whose part of the processor needs torchvision.
    parts = classmethod(lambda _: ["image_processor", "tokenizer"])
    kind = _library("transformers").Qwen2VLProcessor
    return type("Qwen2VLProcessor", (kind,), {"get_attributes": parts})(images, words, chat_template=template)


def _qwen(name: str, vision: dict[str, Any], **marks: int) -> tuple[Any, Any]:
    t, words = _library("transformers"), tokenizer(*QWEN_MARKS)
    text = llama(len(words), rope_parameters=AXES)
    more = QWEN_IDS | (marks or {"vision_start_token_id": 3, "vision_end_token_id": 4})
    config = getattr(t, f"{name}Config")(text_config=text, vision_config=GRID | vision, **more)
    return getattr(t, f"{name}ForConditionalGeneration")(config), _qwen_processor(words)


def qwen2_vl() -> tuple[Any, Any]:
    return _qwen("Qwen2VL", {"embed_dim": 32})


def qwen2_5_vl() -> tuple[Any, Any]:
    sizes = {"intermediate_size": 64, "out_hidden_size": 32, "window_size": 32, "fullatt_block_indexes": [1]}
    return _qwen("Qwen2_5_VL", sizes)


def qwen3_vl() -> tuple[Any, Any]:
    layers = {"deepstack_visual_indexes": [0], "num_position_embeddings": 64}
    return _qwen("Qwen3VL", layers | {"intermediate_size": 64, "out_hidden_size": 32})


def qwen3_5() -> tuple[Any, Any]:
    t, words = _library("transformers"), tokenizer(*QWEN_MARKS)
    linear = {"linear_key_head_dim": 16, "linear_value_head_dim": 16, "linear_num_key_heads": 2}
    kinds = {
        "layer_types": ["linear_attention", "full_attention"],
        "linear_num_value_heads": 2,
        "head_dim": 16,
    }
    text = llama(len(words), rope_parameters=AXES | {"partial_rotary_factor": 1.0}) | linear | kinds
    sizes = {"intermediate_size": 64, "out_hidden_size": 32, "num_position_embeddings": 64}
    marks = QWEN_IDS | {"vision_start_token_id": 3, "vision_end_token_id": 4}
    config = t.Qwen3_5Config(text_config=text, vision_config=GRID | sizes, **marks)
    return t.Qwen3_5ForConditionalGeneration(config), _qwen_processor(words)


def glm4v() -> tuple[Any, Any]:
    sizes = {"intermediate_size": 64, "out_hidden_size": 32, "image_size": 64}
    return _qwen("Glm4v", sizes, image_start_token_id=3, image_end_token_id=4)


def paligemma() -> tuple[Any, Any]:
    t, words = _library("transformers"), tokenizer("<image>", image_token="<image>")
    images = _square("siglip", "SiglipImageProcessorPil")
    images.image_seq_length = 16
    text = llama(len(words), head_dim=16) | {"num_key_value_heads": 1}
    config = t.PaliGemmaConfig(
        vision_config={**BERT, "model_type": "siglip_vision_model", "image_size": SIDE, "patch_size": 8},
        text_config={**text, "model_type": "gemma"},
        image_token_index=3,
        projection_dim=32,
        hidden_size=32,
    )
    return t.PaliGemmaForConditionalGeneration(config), t.PaliGemmaProcessor(images, words)


def idefics3() -> tuple[Any, Any]:
    marks = ("<image>", "<fake_token_around_image>", "<end_of_utterance>", "<global-img>")
    rows = tuple(f"<row_{row}_col_{column}>" for row in range(1, 7) for column in range(1, 7))
    t, words = _library("transformers"), tokenizer(*marks, *rows)
    words.add_special_tokens({"additional_special_tokens": [*marks, *rows]})
    images = _pil(
        "idefics3",
        "Idefics3ImageProcessorPil",
        size={"longest_edge": SIDE},
        max_image_size={"longest_edge": SIDE},
        do_image_splitting=False,
    )
    config = t.Idefics3Config(
        vision_config={**BERT, "image_size": SIDE, "patch_size": 8},
        text_config={**llama(len(words)), "model_type": "llama"},
        image_token_id=3,
        scale_factor=2,
        pad_token_id=0,
    )
    processor = t.Idefics3Processor(images, words, image_seq_len=4)
    return t.Idefics3ForConditionalGeneration(config), processor


ARCHITECTURES = {
    made.__name__: made
    for made in (
        *(llava, chat, blip2, blip2_t5, instructblip, paligemma, idefics3),
        *(qwen2_vl, qwen2_5_vl, qwen3_vl, qwen3_5, glm4v),
    )
}


def spread(model: Any) -> None:
    """Random weights whose answers differ: those that models begin with make all tokens equally likely."""
    torch = import_module("torch")
    torch.manual_seed(7)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if "query_tokens" in name or "class_embedding" in name:
                parameter.normal_()
            elif parameter.ndim > 1:
                parameter.normal_(std=1.5 * parameter[0].numel() ** -0.5)


@pytest.fixture(scope="session", autouse=True)
def one_thread() -> None:
    """Models as small as these lose by threads, and on a busy machine they wait for each other."""
    if find_spec("torch") is not None:
        import_module("torch").set_num_threads(1)


@pytest.fixture(scope="session")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Callable[[str], Path]:
    """The folder of the tiny model of that architecture."""
    made: dict[str, Path] = {}

    def of(name: str) -> Path:
        if name not in made:
            made[name] = tmp_path_factory.mktemp("models") / name
            model, processor = ARCHITECTURES[name]()
            spread(model)
            model.save_pretrained(made[name])
            processor.save_pretrained(made[name])
        return made[name]

    return of


@pytest.fixture(scope="session")
def images(tmp_path_factory: pytest.TempPathFactory) -> list[ImageRef]:
    """Six images of one size that look nothing like each other."""
    folder, random = tmp_path_factory.mktemp("images"), np.random.default_rng(3)
    for number in range(6):
        pixels = random.integers(0, 256, (4, 6, 3), dtype=np.uint8)
        Image.fromarray(pixels).resize((48, 40), Image.Resampling.NEAREST).save(folder / f"{number}.png")
    return [ImageRef(str(folder / f"{number}.png")) for number in range(6)]


@pytest.fixture
def asking() -> Callable[..., Request]:
    """Makes a request of images and texts, with sampling options by name."""

    def ask(*parts: Part | str, choices: Sequence[str] = (), **sampling: Any) -> Request:
        shown = {part.path: inspect_image(part, {}) for part in parts if isinstance(part, ImageRef)}
        words = " ".join(part.text if isinstance(part, Text) else str(part) for part in parts)
        options = {"temperature": 0, "max_tokens": 8, **sampling}
        return Request(f"{words} {options}", (user(*parts),), options, shown, choices=tuple(choices))

    return ask
