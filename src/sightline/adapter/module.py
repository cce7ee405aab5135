"""What makes the vectors that are put before a prompt's embeddings."""

from __future__ import annotations

from typing import cast

import torch
from torch import Tensor, nn
from torch.nn.utils.rnn import pack_padded_sequence, pad_packed_sequence

from sightline.adapter.kinds import BiLstm, Prefix

SPREAD = 0.02
"""The standard deviation of free vectors before training: that of most models' embeddings."""


class BiLstmPrefix(nn.Module):
    """MM-R3's adapter (5.1): Bi-LSTM, max-pooling over the tokens, MLP.

    The paper gives the layers, their width and the size of the prefix; the one hidden layer of the MLP, as
    wide as what it reads, with ReLU, is that of Newman et al. 2022, whom it follows.
    """

    def __init__(self, kind: BiLstm, width: int) -> None:
        super().__init__()
        hidden = kind.hidden or width
        self.length, self.width = kind.prefix, width
        self.lstm = nn.LSTM(width, hidden, kind.layers, batch_first=True, bidirectional=True)
        self.mlp = nn.Sequential(
            nn.Linear(2 * hidden, 2 * hidden), nn.ReLU(), nn.Linear(2 * hidden, kind.prefix * width)
        )

    def forward(self, embeddings: Tensor, seen: Tensor) -> Tensor:
        """The prefix of each row, (B, prefix, width), from embeddings (B, T, width) and which of them are
        the prompt's, (B, T) bool with one at least in each row; the others have no part in it."""
        lengths = seen.sum(1)
        order = (~seen).to(torch.uint8).argsort(dim=1, stable=True)[:, : int(lengths.max())]
        prompts = embeddings.gather(1, order[..., None].expand(-1, -1, self.width))
        packed = pack_padded_sequence(prompts, lengths.cpu(), batch_first=True, enforce_sorted=False)
        read, _ = pad_packed_sequence(self.lstm(packed)[0], batch_first=True, padding_value=float("-inf"))
        return cast(Tensor, self.mlp(read.amax(1))).view(-1, self.length, self.width)


class FreePrefix(nn.Module):
    """The same vectors before every prompt."""

    def __init__(self, kind: Prefix, width: int) -> None:
        super().__init__()
        self.length, self.width = kind.prefix, width
        self.vectors = nn.Parameter(torch.randn(kind.prefix, width) * SPREAD)

    def forward(self, embeddings: Tensor, seen: Tensor) -> Tensor:
        """As `BiLstmPrefix`, whatever the prompts are."""
        return self.vectors.expand(len(embeddings), -1, -1)


PrefixModule = BiLstmPrefix | FreePrefix


def prefix_module(kind: BiLstm | Prefix, width: int) -> PrefixModule:
    """A module with new weights, by torch's own dice, for a language model with embeddings that wide."""
    return BiLstmPrefix(kind, width) if isinstance(kind, BiLstm) else FreePrefix(kind, width)
