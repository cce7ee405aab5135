"""The training loss, compared with transformers and with explicit formulas."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest

if None in (find_spec("torch"), find_spec("transformers"), find_spec("peft")):
    pytest.skip("needs the extra 'adapter'", allow_module_level=True)

import torch
from tests.adapter.training import ARCHITECTURES, Folder, attached_to, encoder_of

from sightline.adapter.architectures import BiLstm, Prefix
from sightline.adapter.attach import with_adapter
from sightline.adapter.batch import IGNORED, EncodedExample, ExampleEncoder, training_batch
from sightline.adapter.examples import read_examples
from sightline.adapter.trainer import (
    Recipe,
    Trainer,
    TrainingStep,
    answer_logits,
    cross_entropy,
    disagreement,
)
from sightline.models.local.load import load
from sightline.models.local.model import LocalModel


@pytest.mark.parametrize("loss", ["ce", "ce+consistency"])
@pytest.mark.parametrize("parts", [2, 3, 5, 9])
def test_a_step_in_several_passes_has_the_loss_and_the_gradients_of_one(
    parts: int, loss: Any, folder: Folder, data: Path
) -> None:
    """Compares gradients, not weights: Adam ignores a constant factor of the gradients."""
    groups = read_examples([data], {})
    # Groups of two and of three, with answers of several lengths.
    groups = [group[number % 2 :] for number, group in enumerate(groups)]

    def stepped(accumulate: int) -> tuple[TrainingStep, dict[str, torch.Tensor]]:
        attached = attached_to(folder("llava"), BiLstm(hidden=6))
        recipe = Recipe(steps=9, batch=5, rate=1e-3, loss=loss, consistency=3.0, accumulate=accumulate)
        trainer = Trainer(attached, encoder_of(attached), groups, recipe)
        step = next(trainer.steps())
        return step, {name: _gradient(weight) for name, weight in attached.weights.items()}

    (one, whole), (other, summed) = stepped(1), stepped(parts)
    assert (other.loss, other.disagreement) == pytest.approx((one.loss, one.disagreement), rel=1e-5)
    assert one.disagreement > 1e-4
    for name, gradient in whole.items():
        assert gradient.abs().max() > 0, name
        assert torch.allclose(summed[name], gradient, rtol=1e-4, atol=1e-5 * float(gradient.abs().max())), (
            name
        )


def _gradient(weight: torch.nn.Parameter) -> torch.Tensor:
    assert weight.grad is not None
    return weight.grad.clone()


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_the_loss_equals_that_of_transformers_on_the_answer_tokens(
    name: str, folder: Folder, data: Path
) -> None:
    """Against transformers' loss on one example at a time, with labels on the answer alone."""
    attached = attached_to(folder(name), BiLstm(prefix=0, hidden=3))
    loaded, encoder = attached.loaded, encoder_of(attached)
    ready = [encoder.encode(one) for group in read_examples([data], {})[:4] for one in group]
    batch = training_batch(loaded, ready)
    ours = cross_entropy(answer_logits(attached, batch), batch.targets).item()
    total = 0.0
    for one in ready:
        if loaded.is_seq2seq:
            alone = training_batch(loaded, [one])
            inputs = {key: value for key, value in alone.inputs.items() if key != "decoder_input_ids"}
            said = loaded.model(**inputs, labels=alone.targets)
        else:
            # The last token of an answer is not an input, so the token after it takes its position.
            inputs = training_batch(loaded, [one._replace(answer=[*one.answer, loaded.pad])]).inputs
            labels = inputs["input_ids"].clone()
            labels[:, : one.prompt.tokens] = IGNORED
            assert labels[labels != IGNORED].tolist() == one.answer
            said = loaded.model(**inputs, labels=labels)
        total += said.loss.item() * len(one.answer)
    assert ours == pytest.approx(total, rel=1e-5)


@pytest.mark.parametrize("name", ARCHITECTURES)
def test_a_batch_has_the_loss_and_the_gradients_of_its_examples(
    name: str, folder: Folder, data: Path
) -> None:
    """Padding influences neither, including the adapter."""
    attached = attached_to(folder(name), BiLstm(hidden=6))
    encoder = encoder_of(attached)
    ready = [encoder.encode(one) for group in read_examples([data], {})[:4] for one in group]
    assert len({one.prompt.tokens for one in ready}) > 1 < len({len(one.answer) for one in ready})

    def learned(batches: list[list[EncodedExample]]) -> tuple[float, dict[str, torch.Tensor]]:
        attached.loaded.model.zero_grad()
        for weight in attached.weights.values():
            weight.grad = None
        total = 0.0
        for rows in batches:
            batch = training_batch(attached.loaded, rows)
            loss = cross_entropy(answer_logits(attached, batch), batch.targets)
            loss.backward()  # type: ignore[no-untyped-call]
            total += loss.item()
        return total, {key: _gradient(weight) for key, weight in attached.weights.items()}

    (together, gradients), (alone, summed) = learned([ready]), learned([[one] for one in ready])
    assert together == pytest.approx(alone, rel=1e-5)
    for key, gradient in gradients.items():
        scale = float(gradient.abs().max())
        assert scale > 0, key
        assert torch.allclose(summed[key], gradient, rtol=1e-3, atol=1e-4 * scale), key


def test_the_disagreement_is_the_mean_divergence_of_pairs() -> None:
    torch.manual_seed(0)
    logits = torch.randn(5, 4, 7)
    targets = torch.full((5, 4), IGNORED)
    for row, places in enumerate(((1, 2), (0, 1), (2, 3), (0, 3), (1, 2))):
        targets[row, list(places)] = torch.tensor([3, 2]) if row != 3 else torch.tensor([5, 5])
    from torch.distributions import Categorical, kl_divergence

    def said(row: int) -> Categorical:
        return Categorical(logits=logits[row][targets[row] != IGNORED])

    first = [kl_divergence(said(a), said(b)).mean() for a in (0, 1, 2) for b in (0, 1, 2) if a != b]
    expected = torch.stack(first).mean()
    # Row 3 should give another answer than row 4, so that group has nothing to compare.
    found = disagreement(logits, targets, [range(3), range(3, 5)])
    assert found.item() == pytest.approx(expected.item(), rel=1e-5)
    assert disagreement(logits, targets, [range(3, 5)]).item() == 0


@pytest.mark.parametrize("name", ["llava", "paligemma", "qwen2_vl", "idefics3"])
def test_attention_within_an_answer_is_causal(name: str, folder: Folder, data: Path) -> None:
    plain = LocalModel(folder(name), name="hf/tiny")
    attached = with_adapter(load(plain.checkpoint, plain.args), Prefix())
    encoder = ExampleEncoder(attached.loaded, "auto", cache_bytes=0, max_answer_tokens=20)
    ready = encoder.encode(read_examples([data], {})[1][0])
    assert len(ready.answer) > 2
    first, other = (
        answer_logits(attached, training_batch(attached.loaded, [ready._replace(answer=answer)]))[0]
        for answer in (ready.answer, [*ready.answer[:-2], 7, ready.answer[-1]])
    )
    assert torch.equal(first[:-1], other[:-1])
    assert not torch.equal(first[-1], other[-1])
