"""A network that embeds each number of a row by piecewise-linear functions, for tables."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import InvalidArgumentError

OPTIONS = "student_options (network_options of a Surrogate)"
"""The argument with the options of a network, for messages."""

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"elu": nn.ELU, "relu": nn.ReLU}
"""The functions between layers, by their names."""


def dense_layers(sizes: Sequence[int], n_outputs: int, activation: str = "elu") -> list[nn.Module]:
    """Return linear layers from `sizes[0]` inputs to `n_outputs`, with functions between them.

    `sizes` are the number of inputs and the sizes of the hidden layers.
    """
    hidden = [
        layer
        for first, second in itertools.pairwise(sizes)
        for layer in (nn.Linear(first, second), ACTIVATIONS[activation]())
    ]
    return [*hidden, nn.Linear(sizes[-1], n_outputs)]


_MOST_ROWS = 2**14
"""Rows from which the knots are computed."""

_MOST_NUMBERS = 2**21
"""Numbers that a pass computes at once, which bounds the memory; more at once are slower."""


class PiecewiseLinear(nn.Module):
    """Functions of single numbers, linear between knots and constant outside them.

    The parameters are the increments from knot to knot, so that one step of the optimiser moves a
    function at all knots beyond (Gorishniy et al., 2022, piecewise-linear encoding).

    Parameters
    ----------
    n_inputs, n_knots, n_functions : int
        There are `n_functions` functions of each of `n_inputs` numbers.
    """

    knots: Tensor

    def __init__(self, n_inputs: int, n_knots: int, n_functions: int) -> None:
        super().__init__()
        self.register_buffer("knots", torch.linspace(-2, 2, n_knots).repeat(n_inputs, 1))
        self.increments = nn.Parameter(torch.empty(n_inputs, n_knots, n_functions))
        nn.init.normal_(self.increments, std=n_knots**-0.5)

    def forward(self, x: Tensor) -> Tensor:
        """Return the functions, (B, D, F), of numbers, (B, D)."""
        lower, upper = self.knots[:, None, :-1], self.knots[:, None, 1:]
        # Equal knots, of numbers that many rows share, are steps: their pieces are passed or not.
        lengths = (upper - lower).clamp(min=1e-30)
        ahead = ((upper - x.T[:, :, None]) / lengths).clamp(0, 1)  # (D, B, knots - 1)
        # The first increment is the mean over knots, of which k in n lie below the k-th piece.
        n_knots = self.knots.shape[1]
        weights = torch.arange(1, n_knots).to(ahead) / n_knots - ahead
        mean, increments = self.increments[:, :1], self.increments[:, 1:]
        return torch.baddbmm(mean, weights, increments).transpose(0, 1)

    def place_knots(self, rows: Tensor) -> None:
        """Place the knots at quantiles of the numbers of rows, (R, D)."""
        shares = np.linspace(0, 1, self.knots.shape[1])
        # The method "lower" returns numbers of the rows, so that these lie exactly on knots.
        quantiles = np.quantile(rows.numpy(), shares, axis=0, method="lower")
        self.knots.copy_(torch.as_tensor(quantiles.T))


class EmbeddingNetwork(nn.Module):
    """Piecewise-linear functions of each number, and dense layers for all numbers together.

    The attribution of a player is the inner product of functions of its own numbers and a vector
    that dense layers compute from embeddings of all numbers, plus one function of its own numbers.
    So the form of an attribution as a function of its own feature, steps of trees included, is
    learned from few rows, and the dense layers need to learn only how other features change it.

    Parameters
    ----------
    input_shape : sequence of int
        Shape of one row.
    n_players, n_outputs : int
        Shape of the result for a row.
    widths : sequence of int
        Sizes of the hidden layers.
    knots : int
        Number of knots of each function, at quantiles of the training rows.
    width : int
        Number of functions that embed a number for the dense layers.
    rank : int
        Length of the vectors of the inner product.
    players : sequence of int, optional
        The player of each number of a row; by default there is one player for each number.
    """

    weight_decay = 1.0
    """Of AdamW. On boosted trees with 57 features, errors of 2.35 with 1e-4 and 2.10 with 1."""

    def __init__(
        self,
        input_shape: Sequence[int],
        n_players: int,
        n_outputs: int,
        widths: Sequence[int] = (256,),
        knots: int = 33,
        width: int = 8,
        rank: int = 64,
        players: Sequence[int] | None = None,
    ) -> None:
        super().__init__()
        n_inputs = int(torch.Size(input_shape).numel())
        self.n_players, self.width, self.rank = n_players, width, rank
        self.players = _checked_players(players, n_inputs, n_players)
        self.functions = PiecewiseLinear(n_inputs, knots, width + rank + n_outputs)
        with torch.no_grad():
            self.functions.increments[:, :, width : width + rank] /= rank**0.5
            self.functions.increments[:, :, width + rank :] = 0.0
        self.rows_at_once = max(1, _MOST_NUMBERS // self.functions.increments[:, :, 0].numel())
        sizes = [n_inputs * (width + 1), *widths]
        self.layers = nn.Sequential(*dense_layers(sizes, rank * n_outputs))

    def place_knots(self, rows: Any, centre: Tensor, spread: Tensor) -> None:
        """Place the knots at quantiles of training rows, (R, …), standardised if there is a scale.

        The arithmetic is that of `ExplainerNetwork`, so that repeated numbers lie on knots.
        """
        sample = rows[:_MOST_ROWS]
        if not isinstance(sample, Tensor):
            sample = torch.as_tensor(np.array(sample, dtype=np.float32))
        sample = sample.detach().cpu().float()
        if centre.numel():
            sample = (sample - centre.float()) / spread.float()
        self.functions.place_knots(sample.flatten(1))

    def check_weights(self) -> None:
        """Raise a ValueError if the knots of a number are not in order."""
        if not (self.functions.knots.diff(dim=1) >= 0).all():
            raise ValueError("its tensor functions.knots is not in order")

    def forward(self, x: Tensor) -> Tensor:
        """Return attributions, (B, M, K), of rows, (B, …)."""
        numbers = x.flatten(1).float()
        values = self.functions(numbers)
        embeddings = values[:, :, : self.width].flatten(1)
        vectors = self.layers(torch.cat([embeddings, numbers], dim=1)).unflatten(1, (self.rank, -1))
        own = values[:, :, self.width : self.width + self.rank]
        attributions: Tensor = own @ vectors + values[:, :, self.width + self.rank :]
        if self.players is None:
            return attributions
        sums = attributions.new_zeros(x.shape[0], self.n_players, attributions.shape[2])
        players = torch.as_tensor(self.players, device=x.device)
        of_players: Tensor = sums.index_add(1, players, attributions)
        return of_players


def _checked_players(
    players: Sequence[int] | None, n_inputs: int, n_players: int
) -> list[int] | None:
    """Return the player of each number; None if they have the same order."""
    if players is None and n_inputs != n_players:
        raise InvalidArgumentError(
            f"student='embeddings' has {n_inputs} numbers in a row for {n_players} features, and "
            "needs the feature of each number. Pass student_options={'players': [0, 0, 1, …]}, or "
            "use student='mlp'."
        )
    if players is None or list(players) == list(range(n_inputs)):
        return None
    if len(players) != n_inputs or not all(0 <= player < n_players for player in players):
        raise InvalidArgumentError(
            f"student_options={{'players': …}} must hold {n_inputs} numbers from 0 to "
            f"{n_players - 1}, the feature of each number of a row; it holds {len(players)} from "
            f"{min(players, default=0)} to {max(players, default=0)}."
        )
    return list(players)
