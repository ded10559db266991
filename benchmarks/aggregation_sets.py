"""The sets on which aggregates are judged: Adult, and MNIST with a small network."""

from __future__ import annotations

import argparse
import copy
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from adult import CONTINUOUS, prepare
from coalition_games import BoolArray, FloatArray, IntArray
from torch import Tensor, nn

from shapley_adapters.criteria import Neighbourhood

_BLOCK = 4
_N_TRAINED = 3000
_EPOCHS = 8


@dataclass(frozen=True)
class ExplainedSet:
    """A model of classes, rows to explain, and players.

    Attributes
    ----------
    name : str
        The set.
    model : module
        Inputs to one output for each class.
    rows, pool : array, (R, …) and (D, …)
        What is explained, and where AVA looks for neighbours.
    classes : array, (R,)
        The output that is explained for each row.
    reference : array, (1, …)
        Values of absent numbers.
    players : array, (1, …)
        The player of each number.
    radius : float
        How far neighbours may be in each number.
    movable : array, (F,)
        Which numbers neighbours may differ in.
    accuracy : float
        Share of other rows that the model tells right.
    """

    name: str
    model: nn.Module
    rows: npt.NDArray[Any]
    pool: npt.NDArray[Any]
    classes: IntArray
    reference: npt.NDArray[Any]
    players: IntArray
    radius: float
    movable: BoolArray
    accuracy: float

    @property
    def n_players(self) -> int:
        """Number of players."""
        return int(self.players.max()) + 1

    def neighbourhood(self, n_draws: int) -> Neighbourhood:
        """Return where neighbours are drawn; the classes are compared by the caller."""
        return Neighbourhood(self.radius, n_draws=n_draws, keep="all", columns=self.movable)

    def predict(self, rows: npt.NDArray[Any]) -> FloatArray:
        """Return the outputs, (n, K)."""
        with torch.no_grad():
            outputs = [self.model(torch.as_tensor(part)) for part in np.array_split(rows, 20)]
        return torch.cat(outputs).double().numpy()

    def of_players(self, attributions: npt.NDArray[Any], is_of_players: bool) -> FloatArray:
        """Return what each player gets, (n, M): the sum of its numbers, or the one they share."""
        flat = attributions.reshape(len(attributions), -1).astype(np.float64)
        player = self.players.ravel()
        sums = np.zeros((len(flat), self.n_players))
        np.add.at(sums.T, player, flat.T)
        return sums / np.bincount(player) if is_of_players else sums


class _TwoSides(nn.Module):
    """The margin f1 − f0 of two logits as the outputs of two classes, −margin and margin."""

    def __init__(self, network: nn.Module) -> None:
        super().__init__()
        self.network = network

    def forward(self, x: Tensor) -> Tensor:
        """Return (B, 2)."""
        logits = self.network(x)
        difference: Tensor = logits - logits.flip(1)
        return difference


def adult(arguments: argparse.Namespace) -> ExplainedSet:
    """Return rows of Adult; the margin of the predicted class is explained."""
    n_rows = arguments.rows + arguments.pool
    benchmark = prepare(arguments.data, arguments.cache, n_rows, seed=arguments.seed)
    model = _TwoSides(copy.deepcopy(benchmark.model.network)).eval()
    rows, pool = np.split(benchmark.rows, [arguments.rows])
    with torch.no_grad():
        classes = model(torch.as_tensor(rows)).argmax(1).numpy()
    return ExplainedSet(
        name="Adult, elu",
        model=model,
        rows=rows,
        pool=pool,
        classes=classes,
        reference=benchmark.reference.astype(rows.dtype),
        players=benchmark.player_of_column[None],
        radius=0.2,  # standard deviations of the columns that are numbers
        movable=np.isin(benchmark.column_names, CONTINUOUS),
        accuracy=benchmark.accuracy,
    )


def mnist(arguments: argparse.Namespace) -> ExplainedSet:
    """Return handwritten digits in blocks of 4 × 4 pixels; the predicted class is explained."""
    with np.load(arguments.data / "mnist5k" / "mnist5k.npz") as file:
        images, labels = file["images"], file["labels"].astype(np.int64)
    order = np.random.default_rng(arguments.seed).permutation(len(images))
    images = (images[order, None] / 255).astype(np.float32)
    labels = labels[order]
    model = _trained(images[:_N_TRAINED], labels[:_N_TRAINED])
    held_out, rows = images[_N_TRAINED:], images[_N_TRAINED : _N_TRAINED + arguments.rows]
    with torch.no_grad():
        told = model(torch.as_tensor(held_out)).argmax(1).numpy()
    places = np.arange(28) // _BLOCK
    return ExplainedSet(
        name="MNIST",
        model=model,
        rows=rows,
        pool=images[: arguments.pool],
        classes=told[: arguments.rows],
        reference=np.zeros((1, 1, 28, 28), np.float32),
        players=(places[:, None] * (28 // _BLOCK) + places)[None, None],
        radius=0.1,
        movable=np.ones(28 * 28, dtype=bool),
        accuracy=float((told == labels[_N_TRAINED:]).mean()),
    )


def _trained(images: npt.NDArray[np.float32], labels: npt.NDArray[np.int64]) -> nn.Module:
    torch.manual_seed(0)
    network = nn.Sequential(
        nn.Conv2d(1, 16, 5, stride=2),
        nn.ELU(),
        nn.Conv2d(16, 32, 3, stride=2),
        nn.ELU(),
        nn.Flatten(),
        nn.Linear(32 * 5 * 5, 10),
    )
    optimizer = torch.optim.Adam(network.parameters(), lr=2e-3)
    x, y = torch.as_tensor(images), torch.as_tensor(labels)
    for _ in range(_EPOCHS):
        for batch in torch.randperm(len(x)).split(64):  # type: ignore[no-untyped-call] # torch
            optimizer.zero_grad()
            nn.functional.cross_entropy(network(x[batch]), y[batch]).backward()  # type: ignore[no-untyped-call] # torch
            optimizer.step()
    return network.eval().requires_grad_(False)


SETS: dict[str, Callable[[argparse.Namespace], ExplainedSet]] = {"adult": adult, "mnist": mnist}
