"""FastSHAP as its authors train it, in plain torch: nothing of our training takes part.

The settings are those of the paper's code (github.com/iancovert/fastshap, notebook of the census
data): two layers of 128 with ReLU, 32 coalitions in pairs for each row of a batch of 32, Adam, a
learning rate that is halved when the validation loss stops falling, additive normalisation in
training and when explaining, and validation on 100 rows with 128 coalitions each. Their early stop
is left out, so that all of the evaluations are used; the best epoch counts.
"""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from games import BoolArray, FloatArray, IntArray, ModelGame
from torch import Tensor, nn

LEARNING_RATES = (2e-4, 1e-3, 3e-3)

_BATCH, _SAMPLES, _WIDTH = 32, 32, 128
_VALIDATION_ROWS, _VALIDATION_SAMPLES = 100, 128
_FACTOR, _PATIENCE, _SMALLEST_RATE = 0.5, 2, 1e-5
_MOST_EVALUATIONS = 2**15


@dataclass(frozen=True)
class Recipe:
    """A network trained by the recipe.

    Attributes
    ----------
    network : Module
        Inputs to the attributions of each player, (R, M), before normalisation.
    evaluations, validation_evaluations : int
        All evaluations, and those of them that validation took.
    losses : list of float
        Losses on the validation rows, epoch by epoch.
    """

    network: nn.Module
    evaluations: int
    validation_evaluations: int
    losses: list[float]

    def explain(self, inputs: Tensor, rises: FloatArray) -> FloatArray:
        """Return attributions, (R, M), whose sums are the rises v(N) − v(∅), (R,)."""
        with torch.no_grad():
            values = _normalised(self.network(inputs), torch.as_tensor(rises).float())
        return values.double().numpy()


def table_network(n_inputs: int, n_players: int) -> nn.Module:
    """Return the authors' network for tables."""
    return nn.Sequential(
        nn.Linear(n_inputs, _WIDTH), nn.ReLU(), nn.Linear(_WIDTH, _WIDTH), nn.ReLU(),
        nn.Linear(_WIDTH, n_players),
    )  # fmt: skip


def train_recipe(
    game: ModelGame,
    inputs: Tensor,
    make: Callable[[], nn.Module],
    *,
    learning_rate: float,
    n_evaluations: int,
    seed: int,
) -> Recipe:
    """Train a network until `n_evaluations` are spent, validation and the ends v(∅), v(N) included.

    Parameters
    ----------
    game : ModelGame
        The games of the training rows, some of which are held out.
    inputs : Tensor, (R, …)
        What the network sees of these rows.
    make : callable
        Makes the network.
    """
    torch.manual_seed(seed)
    run = _Run(game, inputs, make(), np.random.default_rng(seed), n_evaluations)
    run.train(learning_rate)
    return Recipe(run.network, run.n_evaluated, run.n_validation, run.losses)


class _Run:
    """A training, which counts what it evaluates."""

    def __init__(
        self,
        game: ModelGame,
        inputs: Tensor,
        network: nn.Module,
        rng: np.random.Generator,
        n_evaluations: int,
    ) -> None:
        self.game, self.inputs, self.network, self.rng = game, inputs, network, rng
        self.n_evaluated, self.losses = 0, list[float]()
        n_rows, n_players = len(game.rows), game.n_players
        self.sizes = np.arange(1, n_players)
        weights = 1 / (self.sizes * (n_players - self.sizes))
        self.probabilities = weights / weights.sum()
        order = rng.permutation(n_rows)
        n_held_out = min(_VALIDATION_ROWS, n_rows // 10)
        self.held_out, self.rows = order[:n_held_out], order[n_held_out:]
        every = np.arange(n_rows)
        self.empty = float(self._evaluate(every[:1], np.zeros((1, n_players), dtype=bool))[0])
        self.rises = torch.as_tensor(self._full(every) - self.empty).float()
        before = self.n_evaluated
        self.coalitions, self.values = self._drawn(self.held_out, _VALIDATION_SAMPLES)
        self.n_validation = self.n_evaluated - before + n_held_out
        per_epoch = len(self.rows) // _BATCH * _BATCH * _SAMPLES
        self.epochs = max(1, (n_evaluations - self.n_evaluated) // per_epoch)

    def train(self, learning_rate: float) -> None:
        """Train the network, and leave it with the weights of its best epoch."""
        optimizer = torch.optim.Adam(self.network.parameters(), lr=learning_rate)
        plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(
            optimizer, factor=_FACTOR, patience=_PATIENCE, min_lr=_SMALLEST_RATE
        )
        best: dict[str, Any] = {}
        for _ in range(self.epochs):
            self._epoch(optimizer)
            with torch.no_grad():
                loss = float(self._loss(self.held_out, self.coalitions, self.values))
            plateau.step(loss)
            if not self.losses or loss < min(self.losses):
                best = copy.deepcopy(self.network.state_dict())
            self.losses.append(loss)
        self.network.load_state_dict(best)

    def _epoch(self, optimizer: torch.optim.Optimizer) -> None:
        order = self.rng.permutation(self.rows)
        for start in range(0, len(order) - _BATCH + 1, _BATCH):
            rows = order[start : start + _BATCH]
            coalitions, values = self._drawn(rows, _SAMPLES)
            optimizer.zero_grad()
            self._loss(rows, coalitions, values).backward()  # type: ignore[no-untyped-call]
            optimizer.step()

    def _loss(self, rows: IntArray, coalitions: Tensor, values: Tensor) -> Tensor:
        attributions = _normalised(self.network(self.inputs[rows]), self.rises[rows])
        sums = torch.einsum("bsm,bm->bs", coalitions, attributions) + self.empty
        return self.game.n_players * ((sums - values) ** 2).mean()

    def _drawn(self, rows: IntArray, n_samples: int) -> tuple[Tensor, Tensor]:
        """Draw coalitions of each row by the Shapley kernel, with complements, and evaluate."""
        n_players, n_pairs = self.game.n_players, n_samples // 2
        sizes = self.rng.choice(self.sizes, size=(len(rows), n_pairs), p=self.probabilities)
        ranks = self.rng.random((len(rows), n_pairs, n_players)).argsort(axis=-1).argsort(axis=-1)
        drawn = ranks < sizes[:, :, None]
        coalitions = np.stack([drawn, ~drawn], axis=2).reshape(len(rows), -1, n_players)
        values = self._evaluate(np.repeat(rows, n_samples), coalitions.reshape(-1, n_players))
        shaped = torch.as_tensor(values.reshape(len(rows), n_samples)).float()
        return torch.as_tensor(coalitions).float(), shaped

    def _full(self, rows: IntArray) -> FloatArray:
        return self._evaluate(rows, np.ones((len(rows), self.game.n_players), dtype=bool))

    def _evaluate(self, rows: IntArray, coalitions: BoolArray) -> FloatArray:
        self.n_evaluated += len(rows)
        starts = range(0, len(rows), _MOST_EVALUATIONS)
        parts = [slice(start, start + _MOST_EVALUATIONS) for start in starts]
        return np.concatenate([self.game.of_pairs(rows[p], coalitions[p]) for p in parts])


def _normalised(predictions: Tensor, rises: Tensor) -> Tensor:
    """Share what is missing of the sums among all players."""
    attributions = predictions.reshape(len(predictions), -1)
    missing = rises - attributions.sum(dim=1)
    return attributions + missing[:, None] / attributions.shape[1]
