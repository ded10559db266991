"""FastSHAP as its authors train it, in plain torch: nothing of our training takes part.

The settings are those of the paper's code (github.com/iancovert/fastshap, notebook of the census
data): two layers of 128 with ReLU, 32 coalitions in pairs for each row of a batch of 32, Adam, a
learning rate that is halved when the validation loss stops falling, additive normalisation in
training and when explaining, and validation on 100 rows with 128 coalitions each. Their early stop
is left out, so that all of the evaluations are used; the best epoch counts.
"""

import copy
from collections.abc import Callable
from dataclasses import dataclass

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
    network, rng, n_evaluated = make(), np.random.default_rng(seed), 0
    n_rows, n_players = len(game.rows), game.n_players
    sizes = np.arange(1, n_players)
    kernel = 1 / (sizes * (n_players - sizes))

    def evaluated(rows: IntArray, coalitions: BoolArray) -> Tensor:
        nonlocal n_evaluated
        n_evaluated += len(rows)
        starts = range(0, len(rows), _MOST_EVALUATIONS)
        parts = [slice(start, start + _MOST_EVALUATIONS) for start in starts]
        values = np.concatenate([game.of_pairs(rows[part], coalitions[part]) for part in parts])
        return torch.as_tensor(values)

    def drawn(rows: IntArray, n_samples: int) -> tuple[Tensor, Tensor]:
        """Draw coalitions of each row by the Shapley kernel, with complements, and evaluate."""
        shape = len(rows), n_samples // 2
        chosen = rng.choice(sizes, size=shape, p=kernel / kernel.sum())
        ranks = rng.random((*shape, n_players)).argsort(axis=-1).argsort(axis=-1)
        halves = ranks < chosen[:, :, None]
        coalitions = np.stack([halves, ~halves], axis=2).reshape(len(rows), -1, n_players)
        values = evaluated(np.repeat(rows, n_samples), coalitions.reshape(-1, n_players))
        return torch.as_tensor(coalitions).float(), values.reshape(len(rows), -1).float()

    def loss_of(rows: IntArray, coalitions: Tensor, values: Tensor) -> Tensor:
        attributions = _normalised(network(inputs[rows]), rises[rows])
        sums = torch.einsum("bsm,bm->bs", coalitions, attributions) + empty
        return n_players * ((sums - values) ** 2).mean()

    every, n_held_out = np.arange(n_rows), min(_VALIDATION_ROWS, n_rows // 10)
    held_out, training = np.split(rng.permutation(n_rows), [n_held_out])
    empty = float(evaluated(every[:1], np.zeros((1, n_players), dtype=bool))[0])
    rises = (evaluated(every, np.ones((n_rows, n_players), dtype=bool)) - empty).float()
    validation = drawn(held_out, _VALIDATION_SAMPLES)
    per_epoch = len(training) // _BATCH * _BATCH * _SAMPLES
    optimizer = torch.optim.Adam(network.parameters(), lr=learning_rate)
    plateau = torch.optim.lr_scheduler.ReduceLROnPlateau(
        optimizer, factor=_FACTOR, patience=_PATIENCE, min_lr=_SMALLEST_RATE
    )
    losses, best = list[float](), network.state_dict()
    for _ in range(max(1, (n_evaluations - n_evaluated) // per_epoch)):
        order = rng.permutation(training)
        for start in range(0, len(order) - _BATCH + 1, _BATCH):
            rows = order[start : start + _BATCH]
            some = drawn(rows, _SAMPLES)
            optimizer.zero_grad()
            torch.autograd.backward(loss_of(rows, *some))
            optimizer.step()
        with torch.no_grad():
            losses.append(float(loss_of(held_out, *validation)))
        plateau.step(losses[-1])
        if losses[-1] == min(losses):
            best = copy.deepcopy(network.state_dict())
    network.load_state_dict(best)
    return Recipe(network, n_evaluated, n_held_out * (_VALIDATION_SAMPLES + 1), losses)


def _normalised(predictions: Tensor, rises: Tensor) -> Tensor:
    """Share what is missing of the sums among all players."""
    attributions = predictions.reshape(len(predictions), -1)
    missing = rises - attributions.sum(dim=1)
    return attributions + missing[:, None] / attributions.shape[1]
