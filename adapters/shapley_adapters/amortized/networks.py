"""Students: networks and regressors from an input to the attributions of all its players."""

from __future__ import annotations

import copy
import inspect
import itertools
import reprlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypeGuard

import numpy as np
import torch
from sklearn.ensemble import HistGradientBoostingRegressor
from sklearn.multioutput import MultiOutputRegressor
from torch import Tensor, nn

from ..arguments import checked_choice, checked_count
from ..array_types import FloatArray, IntArray
from ..errors import InvalidArgumentError
from ..training_options import ScikitRegressor

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
        return sums.index_add(1, players, attributions)


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


class MLP(nn.Module):
    """Dense layers, for tables.

    Parameters
    ----------
    input_shape : sequence of int
        Shape of one row.
    n_players, n_outputs : int
        Shape of the result for a row.
    widths : sequence of int
        Sizes of the hidden layers.
    activation : {"elu", "relu"}
        The function after each hidden layer.
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        n_players: int,
        n_outputs: int,
        widths: Sequence[int] = (256, 256),
        activation: str = "elu",
    ) -> None:
        super().__init__()
        n_inputs = int(torch.Size(input_shape).numel())
        layers = dense_layers([n_inputs, *widths], n_players * n_outputs, activation)
        self.layers = nn.Sequential(nn.Flatten(), *layers)
        self.shape = (n_players, n_outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return attributions, (B, M, K), of rows, (B, …)."""
        return self.layers(x).unflatten(1, self.shape)


_MOST_LEVELS = 30
"""Images have no more than 2^30 pixels on a side."""


class UNet(nn.Module):
    """A U-Net of convolutions, for images.

    The attributions form a grid of any size, such as 16 × 16 for the 2 × 2 superpixels of 32 × 32
    pixels.

    Parameters
    ----------
    input_shape : (C, H, W), or (H, W)
        Shape of one image.
    n_players, n_outputs : int
        Shape of the result for a row; players are the cells of the grid, row by row.
    grid : (int, int), optional
        Rows and columns of the attributions; a square by default.
    width : int
        Channels of the first level; each level has twice those of the level before.
    depth : int
        How many times the image is halved.
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        n_players: int,
        n_outputs: int,
        grid: Sequence[int] | None = None,
        width: int = 16,
        depth: int = 2,
    ) -> None:
        super().__init__()
        self.grid = _grid(n_players, grid)
        self.has_channels = len(input_shape) == 3
        if depth > _MOST_LEVELS:
            raise InvalidArgumentError(f"depth must be at most {_MOST_LEVELS}; got {depth}.")
        if len(input_shape) not in (2, 3):
            raise InvalidArgumentError(
                f"A U-Net needs images, (C, H, W) or (H, W); the rows have shape "
                f"{tuple(input_shape)}. Use 'mlp', or a module of your own."
            )
        channels = [input_shape[0] if self.has_channels else 1]
        channels += [width * 2**level for level in range(depth + 1)]
        self.down = nn.ModuleList(_block(a, b) for a, b in itertools.pairwise(channels))
        self.up = nn.ModuleList(
            _block(deep + shallow, shallow) for shallow, deep in itertools.pairwise(channels[1:])
        )
        self.head = nn.Conv2d(width, n_outputs, 1)

    def forward(self, x: Tensor) -> Tensor:
        """Return attributions, (B, M, K), of images."""
        x = x if self.has_channels else x[:, None]
        levels = []
        for level, block in enumerate(self.down):
            x = block(nn.functional.avg_pool2d(x, 2, ceil_mode=True) if level else x)
            levels.append(x)
        x = levels.pop()
        for block, skip in zip(reversed(self.up), reversed(levels), strict=True):
            wide = nn.functional.interpolate(x, skip.shape[2:], mode="nearest")
            x = block(torch.cat([wide, skip], dim=1))
        cells = nn.functional.adaptive_avg_pool2d(self.head(x), self.grid)
        return cells.flatten(2).transpose(1, 2)


_LEAST_IN_LEAF = 10

_SHRINKAGE = 5.0
"""Of leaves. On three tables with labels of 600 rows, .99, .98 and .98 times the error without."""


def is_regressor(student: object) -> TypeGuard[ScikitRegressor]:
    """Return whether a student fits and predicts as scikit-learn's do."""
    return hasattr(student, "fit") and hasattr(student, "predict")


class FittedRegressor(nn.Module):
    """A regressor of scikit-learn, of which a copy learns labels in one fit, not by gradients.

    Its own random state is set where it is None, so that the seed decides everything.
    """

    def __init__(self, regressor: ScikitRegressor, n_players: int, n_outputs: int) -> None:
        super().__init__()
        self.regressor: Any = copy.deepcopy(regressor)
        self.shape = (n_players, n_outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return attributions, (B, M, K), of rows, (B, …)."""
        predicted = self.regressor.predict(x.flatten(1).cpu().numpy())
        return torch.as_tensor(np.asarray(predicted, dtype=np.float32)).reshape(-1, *self.shape)

    def learn(self, inputs: FloatArray, labels: FloatArray, seed: int) -> None:
        """Fit the regressor to labels, (R, M·K), of inputs, (R, D).

        Raises
        ------
        InvalidArgumentError
            If it does not learn several outputs.
        """
        options: dict[str, Any] = getattr(self.regressor, "get_params", dict)()
        unset = [name for name in options if name.split("__")[-1] == "random_state"]
        for name in unset:
            if options[name] is None:
                self.regressor.set_params(**{name: seed % 2**32})
        target = labels if labels.shape[1] > 1 else labels[:, 0]
        reason, cause = "", None
        try:
            self.regressor.fit(inputs, target)
            n_found = np.size(self.regressor.predict(inputs[:1]))
            if n_found != labels.shape[1]:
                reason = f"it returned {n_found} numbers for a row"
        except (TypeError, ValueError) as error:
            reason, cause = str(error), error
        if reason:
            name = type(self.regressor).__name__
            raise InvalidArgumentError(
                f"student={name}(…) must learn {labels.shape[1]} numbers for each row, one for "
                f"each player and output of the model: {reason}. Pass "
                f"sklearn.multioutput.MultiOutputRegressor({name}(…)), or student='trees'."
            ) from cause


def boosted_trees(
    input_shape: Sequence[int], n_players: int, n_outputs: int, rounds: int = 100, levels: int = 6
) -> FittedRegressor:
    """Return gradient boosted trees of scikit-learn, for each player and output, for tables.

    Parameters
    ----------
    input_shape : sequence of int
        Shape of one row.
    n_players, n_outputs : int
        Shape of the result for a row.
    rounds : int
        Trees of each player and output.
    levels : int
        Largest depth of a tree.
    """
    del input_shape  # the trees learn it
    trees: Any = HistGradientBoostingRegressor(
        max_iter=rounds,
        max_depth=levels,
        min_samples_leaf=_LEAST_IN_LEAF,
        l2_regularization=_SHRINKAGE,
        early_stopping=False,
    )
    trees = trees if n_players * n_outputs == 1 else MultiOutputRegressor(trees)
    return FittedRegressor(trees, n_players, n_outputs)


NETWORKS: dict[str, Callable[..., nn.Module]] = {
    "mlp": MLP,
    "embeddings": EmbeddingNetwork,
    "unet": UNet,
    "trees": boosted_trees,
}
"""The students by their names. Loading a file builds modules of these classes only."""


_LEAST = {"players": 0, "depth": 0, "knots": 2}


def build(
    name: str,
    input_shape: Sequence[int],
    n_players: int,
    n_outputs: int,
    options: Mapping[str, Any],
) -> nn.Module:
    """Return a network by its name.

    Raises
    ------
    InvalidArgumentError
        If there is no such network, or its options cannot be used.
    """
    checked_network(name)
    checked = {option: _checked_option(name, option, value) for option, value in options.items()}
    return NETWORKS[name](list(input_shape), n_players, n_outputs, **checked)


def default_student(inputs: Any, players: IntArray | None) -> str:
    """Return the student of least error for tables, if the player of each number is known."""
    return "embeddings" if players is not None and len(inputs.shape) == 2 else "mlp"


def with_players(
    network: object, options: Mapping[str, Any], players: IntArray | None
) -> dict[str, Any]:
    """Return the options of a network, with the player of each number if it needs to know."""
    if network != "embeddings" or players is None or (players == np.arange(len(players))).all():
        return dict(options)
    return {"players": players.tolist(), **options}


def checked_network(name: str) -> str:
    """Return the name of a student if it is one."""
    if name not in NETWORKS:
        names = ", ".join(map(repr, NETWORKS))
        raise InvalidArgumentError(
            f"student (network of a Surrogate) must be one of {names}, or a module; got {name!r}."
        )
    return name


def _checked_option(network: str, option: str, value: Any) -> Any:
    """Return a size, or a list of sizes."""
    known = list(inspect.signature(NETWORKS[network]).parameters)[3:]
    if option not in known:
        names = ", ".join(map(repr, known))
        raise InvalidArgumentError(f"{OPTIONS} must be of {names} for {network!r}; got {option!r}.")
    label, least = f"{option!r} in {OPTIONS}", _LEAST.get(option, 1)
    if option == "activation":
        return checked_choice(label, value, tuple(ACTIVATIONS))
    if option in ("grid", "players") and value is None:
        return None
    if option not in ("widths", "grid", "players"):
        return checked_count(label, value, least)
    if not isinstance(value, (list, tuple)):
        raise InvalidArgumentError(
            f"{label} must be a list of whole numbers; got {reprlib.repr(value)}."
        )
    return [checked_count(label, size, least) for size in value]


def _block(n_inputs: int, n_outputs: int) -> nn.Module:
    return nn.Sequential(
        nn.Conv2d(n_inputs, n_outputs, 3, padding=1),
        nn.GroupNorm(1, n_outputs),
        nn.ELU(),
        nn.Conv2d(n_outputs, n_outputs, 3, padding=1),
        nn.ELU(),
    )


def _grid(n_players: int, grid: Sequence[int] | None) -> tuple[int, int]:
    if grid is None:
        side = round(n_players**0.5)
        grid = (side, side)
    if len(grid) != 2 or grid[0] * grid[1] != n_players:
        raise InvalidArgumentError(
            f"grid must be the rows and columns of {n_players} players; got {tuple(grid)}. Pass "
            f"{{'grid': (rows, columns)}} as {OPTIONS}."
        )
    return int(grid[0]), int(grid[1])
