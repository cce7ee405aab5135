"""The adapter's module, compared with an implementation in numpy and with itself."""

from __future__ import annotations

from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

if find_spec("torch") is None:
    pytest.skip("needs the extra 'local'", allow_module_level=True)

import torch

from sightline.adapter.architectures import BiLstm, Prefix
from sightline.adapter.attach import BiLstmPrefix, FreePrefix

WIDTH = 5
Floats = NDArray[np.float64]


def _module(dtype: torch.dtype = torch.float64, **sizes: Any) -> BiLstmPrefix:
    torch.manual_seed(3)
    return BiLstmPrefix(BiLstm(**sizes), WIDTH).to(dtype)


def _sigmoid(x: Floats) -> Floats:
    return 1 / (1 + np.exp(-x))


def _direction(rows: Floats, weights: dict[str, Floats], name: str) -> Floats:
    """One direction of an LSTM layer over rows (T, n), written out."""
    hidden = weights[f"lstm.weight_hh_{name}"].shape[1]
    h, c, said = np.zeros(hidden), np.zeros(hidden), []
    for row in rows:
        gates = weights[f"lstm.weight_ih_{name}"] @ row + weights[f"lstm.bias_ih_{name}"]
        gates = gates + weights[f"lstm.weight_hh_{name}"] @ h + weights[f"lstm.bias_hh_{name}"]
        i, f, g, o = np.split(gates, 4)
        c = _sigmoid(f) * c + _sigmoid(i) * np.tanh(g)
        h = _sigmoid(o) * np.tanh(c)
        said.append(h)
    return np.stack(said)


def _plainly(rows: Floats, weights: dict[str, Floats], layers: int) -> Floats:
    """Section 5.1 in numpy: Bi-LSTM, the maximum over the tokens, an MLP."""
    for layer in range(layers):
        forth = _direction(rows, weights, f"l{layer}")
        back = _direction(rows[::-1], weights, f"l{layer}_reverse")[::-1]
        rows = np.concatenate((forth, back), axis=1)
    pooled = rows.max(axis=0)
    inner = np.maximum(0, weights["mlp.0.weight"] @ pooled + weights["mlp.0.bias"])
    made: Floats = weights["mlp.2.weight"] @ inner + weights["mlp.2.bias"]
    return made


def _weights(module: BiLstmPrefix) -> dict[str, Floats]:
    return {name: weight.detach().numpy().copy() for name, weight in module.named_parameters()}


def _prompts() -> tuple[torch.Tensor, torch.Tensor]:
    """Three prompts of different lengths, with padding on the left, on the right and on both sides."""
    torch.manual_seed(5)
    seen = torch.tensor([[1, 1, 1, 1, 0, 0], [0, 0, 0, 0, 1, 1], [0, 1, 1, 1, 0, 0]]).bool()
    return torch.randn(3, 6, WIDTH, dtype=torch.float64), seen


@pytest.mark.parametrize("layers", [1, 2])
def test_the_module_equals_the_paper_in_numpy(layers: int) -> None:
    module = _module(layers=layers, hidden=4)
    embeddings, seen = _prompts()
    made = module(embeddings, seen).detach().numpy()
    assert made.shape == (3, 3, WIDTH)
    for row in range(3):
        expected = _plainly(embeddings[row][seen[row]].numpy(), _weights(module), layers)
        np.testing.assert_allclose(made[row].ravel(), expected, rtol=1e-10, atol=1e-12)


@pytest.mark.slow
def test_gradients_equal_finite_differences() -> None:
    module = _module(layers=2, hidden=3, prefix=2)
    embeddings, seen = _prompts()
    embeddings.requires_grad_()
    parameters = tuple(module.parameters())

    def said(*_: Any) -> Any:
        return module(embeddings, seen)

    assert torch.autograd.gradcheck(said, (embeddings, *parameters), atol=1e-6)


@pytest.mark.parametrize("dtype", [torch.float32, torch.float64])
def test_embeddings_outside_the_prompt_change_nothing(dtype: torch.dtype) -> None:
    module = _module(dtype)
    embeddings, seen = _prompts()
    embeddings = embeddings.to(dtype)
    together = module(embeddings, seen)
    noise = torch.where(seen[..., None], embeddings, 1e4 * torch.randn_like(embeddings))
    assert torch.allclose(module(noise, seen), together, atol=1e-6)
    for row in range(3):
        alone = embeddings[row][seen[row]][None]
        assert torch.allclose(
            module(alone, torch.ones(alone.shape[:2], dtype=torch.bool))[0], together[row], atol=1e-6
        )


def test_the_default_sizes_are_those_of_the_paper() -> None:
    module = BiLstmPrefix(BiLstm(), 16)
    assert (module.length, module.lstm.num_layers, module.lstm.hidden_size, module.lstm.dropout) == (
        3,
        2,
        16,
        0,
    )
    assert module.lstm.bidirectional


def test_free_vectors_are_the_same_for_every_prompt() -> None:
    module = FreePrefix(Prefix(prefix=4), WIDTH)
    made = module(*_prompts())
    assert made.shape == (3, 4, WIDTH)
    assert torch.equal(made[0], made[2])
    assert [name for name, _ in module.named_parameters()] == ["vectors"]
