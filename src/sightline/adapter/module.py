"""The modules that compute the prefix vectors of a prompt."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from sightline.adapter.architectures import BiLstm, Prefix

INITIAL_STD = 0.02
"""The standard deviation of free vectors before training: that of the embeddings of most models."""


class BiLstmPrefix(nn.Module):
    """The adapter of MM-R3 (5.1): Bi-LSTM, max-pooling over the tokens, MLP.

    The paper gives the number of layers, their width and the size of the prefix. The MLP follows Newman et
    al. 2022, on whom the paper builds: one hidden layer as wide as its input, with ReLU.
    """

    def __init__(self, config: BiLstm, width: int) -> None:
        super().__init__()
        hidden = config.hidden or width
        self.length, self.width = config.prefix, width
        self.lstm = nn.LSTM(width, hidden, config.layers, batch_first=True, bidirectional=True)
        self.mlp = nn.Sequential(
            nn.Linear(2 * hidden, 2 * hidden), nn.ReLU(), nn.Linear(2 * hidden, config.prefix * width)
        )

    def forward(self, embeddings: Tensor, prompt_mask: Tensor) -> Tensor:
        """Compute the prefix of each row.

        Args:
            embeddings: Shape (B, T, width).
            prompt_mask: Shape (B, T), bool: True where a token belongs to the prompt, at least once in each
                row. The other embeddings do not influence the result.

        Returns:
            The prefix vectors, shape (B, prefix, width).
        """
        lengths = prompt_mask.sum(1)
        order = (~prompt_mask).to(torch.uint8).argsort(dim=1, stable=True)[:, : int(lengths.max())]
        prompts = embeddings.gather(1, order[..., None].expand(-1, -1, self.width))
        packed = pack_padded_sequence(prompts, lengths.cpu(), batch_first=True, enforce_sorted=False)
        hidden, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, padding_value=float("-inf"))
        return cast(Tensor, self.mlp(hidden.amax(1))).view(-1, self.length, self.width)


class FreePrefix(nn.Module):
    """The same trainable vectors for every prompt."""

    def __init__(self, config: Prefix, width: int) -> None:
        super().__init__()
        self.length, self.width = config.prefix, width
        self.vectors = nn.Parameter(torch.randn(config.prefix, width) * INITIAL_STD)

    def forward(self, embeddings: Tensor, prompt_mask: Tensor) -> Tensor:
        return self.vectors.expand(len(embeddings), -1, -1)


PrefixModule = BiLstmPrefix | FreePrefix


def prefix_module(config: BiLstm | Prefix, width: int) -> PrefixModule:
    """Create a module with new weights from torch's global random generator."""
    return BiLstmPrefix(config, width) if isinstance(config, BiLstm) else FreePrefix(config, width)
