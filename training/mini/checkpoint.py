"""The untrained model, its tokenizer and its processor: a small LLaVA."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import torch
from tokenizers import AddedToken, Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers
from transformers import (
    CLIPImageProcessorPil,
    CLIPVisionConfig,
    LlamaConfig,
    LlavaConfig,
    LlavaForConditionalGeneration,
    LlavaProcessor,
    PreTrainedTokenizerFast,
)

from sightline.scoring.options import SIX_LETTERS
from sightline.text import load
from training.mini.lessons import SIDE, WORLDS

PATCH = 8
IMAGE_TOKENS = (SIDE // PATCH) ** 2
VISION, WIDTH, LAYERS = 96, 128, 4
SPECIAL = ("<pad>", "<s>", "</s>", "<unk>", "<image>", "<answer>")
PAD, BOS, EOS, UNKNOWN, IMAGE, ANSWER = range(6)
MEAN, SPREAD = 0.5, 0.25

TEMPLATE = (
    "{{ bos_token }}{% for message in messages %}"
    "{% if message['role'] == 'assistant' %}"
    "{% for part in message['content'] %}{{ part['text'] }}{% endfor %}{{ eos_token }}"
    "{% else %}"
    "{% for part in message['content'] %}{% if part['type'] == 'image' %}<image>{% endif %}{% endfor %}"
    "{% for part in message['content'] %}{% if part['type'] == 'text' %}{{ part['text'] }}{% endif %}"
    "{% endfor %}"
    "<answer>{% endif %}{% endfor %}"
)
"""Images before the text, as in LLaVA's own template."""


def instructions() -> list[str]:
    """The fixed instructions of the papers' prompts; each becomes one token."""
    codis, iibench, mmr3 = (
        load("sightline.benchmarks.codis"),
        load("sightline.benchmarks.iibench"),
        load("sightline.benchmarks.mmr3"),
    )
    texts = [
        *(codis[part][name] for part in ("inference", "no_context") for name in ("opening", "cot", "direct")),
        codis["inference"]["instructions"],
        codis["inference"]["cot_with_instructions"],
        iibench["none"]["instruction"],
        mmr3["rephrasing"]["prompt"].partition("{")[0],
        mmr3["restyling"]["prompt"],
        mmr3["context"]["prompt"],
    ]
    return list(dict.fromkeys(text.strip() for text in texts))


def vocabulary(texts: Iterable[str]) -> list[str]:
    """Every word, digit and punctuation mark of the texts, as the tokenizer splits them."""
    splitter, normalizer = _pre_tokenizer(), _normalizer()
    pieces: set[str] = set()
    for text in set(texts):
        pieces.update(piece for piece, _ in splitter.pre_tokenize_str(normalizer.normalize_str(text)))
    return sorted(pieces)


def lesson_texts(count: int = 4000) -> Iterator[str]:
    """The texts of many lessons; words that only tests use stay unknown."""
    random = Random(0)
    for number in range(count):
        for turn in list(WORLDS.values())[number % len(WORLDS)](random).turns:
            yield turn.prompt
            yield turn.answer


def tokenizer() -> PreTrainedTokenizerFast:
    """A word-level tokenizer; the papers' instructions and the letters of options are one token each."""
    words = vocabulary(_without(instructions(), lesson_texts()))
    whole = [*instructions(), *(f"({letter})" for letter in SIX_LETTERS)]
    word_level = Tokenizer(
        models.WordLevel({token: i for i, token in enumerate([*SPECIAL, *words])}, "<unk>")
    )
    word_level.normalizer = _normalizer()
    word_level.pre_tokenizer = _pre_tokenizer()
    word_level.decoder = decoders.Metaspace(replacement="▁", prepend_scheme="always")
    word_level.add_special_tokens([AddedToken(token, special=True) for token in SPECIAL])
    word_level.add_tokens([AddedToken(text, normalized=False, lstrip=True, rstrip=True) for text in whole])
    kind: Any = PreTrainedTokenizerFast
    return kind(  # type: ignore[no-any-return]
        tokenizer_object=word_level,
        pad_token="<pad>",
        bos_token="<s>",
        eos_token="</s>",
        unk_token="<unk>",
        padding_side="left",
        model_max_length=1024,
        clean_up_tokenization_spaces=False,
    )


def processor(words: PreTrainedTokenizerFast) -> LlavaProcessor:
    """A processor that resizes images to SIDE x SIDE pixels and inserts one image token per patch."""
    images = CLIPImageProcessorPil(
        size={"height": SIDE, "width": SIDE},
        do_center_crop=False,
        image_mean=[MEAN] * 3,
        image_std=[SPREAD] * 3,
        resample=3,
    )
    kind: Any = LlavaProcessor
    return kind(  # type: ignore[no-any-return]
        image_processor=images,
        tokenizer=words,
        patch_size=PATCH,
        vision_feature_select_strategy="default",
        num_additional_image_tokens=1,
        image_token="<image>",
        chat_template=TEMPLATE,
    )


def model(size: int) -> LlavaForConditionalGeneration:
    """An untrained CLIP vision tower, projector and Llama decoder, initialized by torch's global seed."""
    vision = CLIPVisionConfig(
        hidden_size=VISION,
        intermediate_size=3 * VISION,
        num_hidden_layers=3,
        num_attention_heads=4,
        image_size=SIDE,
        patch_size=PATCH,
        projection_dim=64,
    )
    words = LlamaConfig(
        vocab_size=size,
        hidden_size=WIDTH,
        intermediate_size=3 * WIDTH,
        num_hidden_layers=LAYERS,
        num_attention_heads=4,
        num_key_value_heads=4,
        max_position_embeddings=1024,
        initializer_range=0.05,
        pad_token_id=PAD,
        bos_token_id=BOS,
        eos_token_id=EOS,
        tie_word_embeddings=True,
    )
    config: Any = LlavaConfig
    llava = LlavaForConditionalGeneration(
        config(
            vision_config=vision,
            text_config=words,
            image_token_id=IMAGE,
            image_seq_length=IMAGE_TOKENS,
            vision_feature_layer=-1,
            vision_feature_select_strategy="default",
            projector_hidden_act="gelu",
            tie_word_embeddings=True,
        )
    )
    llava.generation_config.pad_token_id = PAD
    llava.generation_config.bos_token_id = BOS
    llava.generation_config.eos_token_id = EOS
    with torch.no_grad():
        _prepare(llava)
    return llava


def save(llava: Any, words: PreTrainedTokenizerFast, folder: Path) -> None:
    """Write the complete checkpoint, with weights in half precision."""
    llava.to(torch.float16).save_pretrained(folder)
    llava.to(torch.float32)
    processor(words).save_pretrained(folder)
    for file in folder.iterdir():
        file.chmod(0o644)


def _prepare(llava: LlavaForConditionalGeneration) -> None:
    """Initialize the projector by its fan-in, and patch positions as waves as strong as the patches.

    With the usual initialization, a tower as narrow as this one does not learn to locate things.
    """
    projector = llava.model.multi_modal_projector
    for linear in (projector.linear_1, projector.linear_2):
        torch.nn.init.normal_(linear.weight, std=linear.in_features**-0.5)
    tower: Any = llava.model.vision_tower
    embeddings = getattr(tower, "vision_model", tower).embeddings
    edge = SIDE // PATCH
    down, across = torch.meshgrid(torch.arange(float(edge)), torch.arange(float(edge)), indexing="ij")
    waves = (2 ** torch.linspace(-3, 1, VISION // 4)).view(1, -1)
    parts = [f(axis.reshape(-1, 1) * waves) for axis in (down, across) for f in (torch.sin, torch.cos)]
    embeddings.position_embedding.weight[1:] = 0.4 * torch.cat(parts, 1)


def _without(fixed: list[str], texts: Iterable[str]) -> Iterable[str]:
    pattern = re.compile("|".join(map(re.escape, sorted(fixed, key=len, reverse=True))))
    for text in texts:
        yield from re.split(r"\([A-F]\)", pattern.sub(" ", text))


def _normalizer() -> Any:
    return normalizers.Sequence(
        [normalizers.Lowercase(), normalizers.Replace(Regex(r"\s+"), " "), normalizers.Strip()]
    )


def _pre_tokenizer() -> Any:
    return pre_tokenizers.Sequence(
        [
            pre_tokenizers.Metaspace(replacement="▁", prepend_scheme="always"),
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.Split(Regex(r"[^\w▁]"), behavior="isolated"),
        ]
    )
