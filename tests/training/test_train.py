"""Packing, learning and continuing after a kill in the training script."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("transformers", reason="needs the extra local")

import torch

from training.mini.checkpoint import ANSWER, BOS, IMAGE, IMAGE_TOKENS, model, processor, save, tokenizer
from training.mini.lessons import Turn
from training.mini.train import (
    IGNORED,
    learn,
    lessons_of,
    logits,
    optimizers,
    pack,
    pixel_values,
    rate_at,
    read_state,
    write_state,
)

pytestmark = pytest.mark.slow


@pytest.fixture(scope="module")
def words() -> Any:
    return tokenizer()


@pytest.fixture(scope="module")
def made(words: Any) -> Any:
    torch.manual_seed(3)
    untrained = model(len(words))
    untrained.train(False)
    return untrained


@torch.no_grad()
def test_a_turn_in_a_packed_row_is_processed_independently(made: Any, words: Any) -> None:
    (one,) = lessons_of(1, 5, 1)
    together, targets = logits(made, pack([one], words, 400))
    alone = [logits(made, pack([one._replace(turns=[turn])], words, 400)) for turn in one.turns]
    fitting = [pair for pair in alone if len(pair[1])]
    assert torch.equal(targets, torch.cat([target for _, target in fitting])[: len(targets)])
    assert torch.allclose(together, torch.cat([found for found, _ in fitting])[: len(targets)], atol=1e-4)


@torch.no_grad()
def test_a_packed_question_equals_the_output_of_the_processor(made: Any, words: Any) -> None:
    (one,) = lessons_of(1, 9, 1)
    turn: Turn = one.turns[0]
    batch = pack([one._replace(turns=[turn])], words, 400)
    content = [{"type": "text", "text": turn.prompt}, {"type": "image"}]
    conversation: Any = [{"role": "user", "content": content}]
    text = processor(words).apply_chat_template(conversation, tokenize=False)
    encoded = processor(words)(text=text, images=[one.image], return_tensors="pt")
    asked = int((batch.targets[0] != IGNORED).argmax())
    assert batch.ids[0, :asked].tolist() == encoded["input_ids"][0].tolist()
    assert batch.ids[0, 0] == BOS
    assert batch.ids[0, asked - 1] == ANSWER
    assert (batch.ids[0] == IMAGE).sum() == IMAGE_TOKENS
    assert torch.allclose(pixel_values(batch.pixels, made.device), encoded["pixel_values"], atol=1e-5)


def test_every_answer_can_be_encoded_and_decoded(words: Any) -> None:
    for step in range(4):
        for one in lessons_of(2, step, 12):
            for turn in one.turns:
                ids = words(turn.answer, add_special_tokens=False).input_ids
                assert words.unk_token_id not in ids
                said = words.decode(ids)
                assert said.replace(" ", "").casefold() == turn.answer.replace(" ", "").casefold()


def test_the_learning_rate_warms_up_stays_and_decays() -> None:
    rates = [rate_at(step, 1000) for step in range(1000)]
    assert rates[0] < 0.01
    assert rates[300] == 1.0
    assert np.all(np.diff(rates[650:]) < 0)
    assert rates[-1] < 0.02


def test_the_checkpoint_is_small_and_loads_with_the_same_weights(
    made: Any, words: Any, tmp_path: Path
) -> None:
    from transformers import AutoModelForImageTextToText, AutoProcessor

    save(made, words, tmp_path)
    assert sum(file.stat().st_size for file in tmp_path.iterdir()) < 6_000_000
    again = AutoModelForImageTextToText.from_pretrained(tmp_path, dtype=torch.float32)
    loader: Any = AutoProcessor
    assert loader.from_pretrained(tmp_path).image_processor.size == {"height": 64, "width": 64}
    for name, weight in again.state_dict().items():
        assert torch.equal(weight, made.state_dict()[name].half().float())


def test_a_training_that_was_stopped_continues_to_the_same_weights(words: Any, tmp_path: Path) -> None:
    batches = [pack(lessons_of(1, step, 2), words, 272) for step in range(4)]

    def fresh() -> tuple[Any, list[torch.optim.Optimizer]]:
        torch.manual_seed(1)
        untrained = model(len(words))
        return untrained, optimizers(untrained, 4e-3)

    whole, steppers = fresh()
    losses = [learn(whole, steppers, batch, bf16=True) for batch in batches]
    part, steppers = fresh()
    for batch in batches[:2]:
        learn(part, steppers, batch, bf16=True)
    write_state(part, steppers, 2, tmp_path / "state.pt")
    again, steppers = fresh()
    assert read_state(again, steppers, tmp_path / "state.pt") == 2
    assert [learn(again, steppers, batch, bf16=True) for batch in batches[2:]] == losses[2:]
    assert all(torch.equal(weight, whole.state_dict()[name]) for name, weight in again.state_dict().items())
