"""Students that learn labels in one fit: boosted trees, and regressors of scikit-learn.

Boosted trees are arrays of columns, thresholds and leaves, whoever grew them. They are evaluated,
saved, loaded and exported as the weights of networks are, without the library that grew them.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol, TypeGuard

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ..array_types import FloatArray, IntArray
from ..errors import InvalidArgumentError

_RATE, _LEAVES, _LEAST_IN_LEAF = 0.1, 31, 10

_MOST_LEVELS = 12

_MOST_STEPS = 2**17
"""Trees times rows that are evaluated at once, which bounds the memory; more at once are slower."""


class ScikitRegressor(Protocol):
    """A regressor of scikit-learn, of several outputs."""

    def fit(self, X: Any, y: Any) -> Any:  # noqa: N803  scikit-learn's name
        """Learn y, (R, outputs), of X, (R, D)."""

    def predict(self, X: Any) -> Any:  # noqa: N803  scikit-learn's name
        """Return predictions, (R, outputs)."""


def is_regressor(student: object) -> TypeGuard[ScikitRegressor]:
    """Return whether a student fits and predicts as scikit-learn's do."""
    return hasattr(student, "fit") and hasattr(student, "predict")


class LabelRegressor(nn.Module):
    """A module from inputs to attributions that learns labels in one fit, not by gradients."""

    rows_at_once: int

    def learn(self, inputs: FloatArray, labels: FloatArray, seed: int) -> None:
        """Learn labels, (R, M·K), of inputs, (R, D)."""
        raise NotImplementedError

    def stages(self, x: Tensor) -> Tensor:
        """Return the attributions after each stage of the fit, (stages, B, M, K)."""
        raise NotImplementedError

    def keep(self, n_stages: int) -> None:
        """Keep the first stages only."""

    def options(self) -> dict[str, int]:
        """Return the options with which a student of the same arrays is built."""
        return {}


class BoostedTrees(LabelRegressor):
    """Gradient boosted trees, a sum of trees for each player and output, for tables.

    They are grown by LightGBM where it is installed, otherwise by scikit-learn's
    `HistGradientBoostingRegressor`; both with up to 31 leaves and shrinkage .1.

    Parameters
    ----------
    input_shape : sequence of int
        Shape of one row.
    n_players, n_outputs : int
        Shape of the result for a row.
    rounds : int
        Trees of each player and output; those after the best round are dropped.
    levels : int
        Largest depth of a tree, up to 12.
    """

    columns: Tensor
    thresholds: Tensor
    leaves: Tensor

    def __init__(
        self,
        input_shape: Sequence[int],
        n_players: int,
        n_outputs: int,
        rounds: int = 100,
        levels: int = 6,
    ) -> None:
        super().__init__()
        if levels > _MOST_LEVELS:
            raise InvalidArgumentError(
                f"levels must be at most {_MOST_LEVELS}, for up to {2**_MOST_LEVELS} leaves of a "
                f"tree; got {levels}."
            )
        self.shape, self.rounds, self.levels = (n_players, n_outputs), rounds, levels
        self.n_inputs = int(torch.Size(input_shape).numel())
        n_sums, n_leaves = n_players * n_outputs, 2**levels
        self.rows_at_once = max(1, _MOST_STEPS // (n_sums * rounds))
        # Complete trees: the children of node i are 2i + 1 and 2i + 2.
        nodes = n_sums, rounds, n_leaves - 1
        self.register_buffer("columns", torch.zeros(nodes, dtype=torch.int32))
        self.register_buffer("thresholds", torch.zeros(nodes))
        self.register_buffer("leaves", torch.zeros(n_sums, rounds, n_leaves))

    def forward(self, x: Tensor) -> Tensor:
        """Return attributions, (B, M, K), of rows, (B, …)."""
        return self._of_trees(x).sum(dim=2).reshape(-1, *self.shape)

    def stages(self, x: Tensor) -> Tensor:
        """Return the attributions after each round, (rounds, B, M, K)."""
        sums = self._of_trees(x).cumsum(dim=2).movedim(2, 0)
        return sums.reshape(*sums.shape[:2], *self.shape)

    def _of_trees(self, x: Tensor) -> Tensor:
        """Return the value of each tree, (B, M·K, rounds)."""
        x = x.flatten(1).float()
        columns, thresholds = self.columns.flatten(), self.thresholds.flatten()
        n_leaves = 2**self.levels
        n_trees = self.shape[0] * self.shape[1] * self.rounds
        trees = torch.arange(n_trees, device=x.device)[None]
        node = torch.zeros_like(trees).expand(x.shape[0], n_trees)
        for _ in range(self.levels):
            at = node + trees * (n_leaves - 1)
            number = x.gather(1, columns[at].long())
            node = 2 * node + 1 + (number > thresholds[at]).long()
        leaf = node - (n_leaves - 1) + trees * n_leaves
        values = self.leaves.flatten()[leaf]
        return values.reshape(-1, self.shape[0] * self.shape[1], self.rounds)

    def learn(self, inputs: FloatArray, labels: FloatArray, seed: int) -> None:
        """Grow the trees of each label, (R, M·K)."""
        grow = _grower()
        for number, label in enumerate(labels.T):
            trees = grow(inputs, label, self.rounds, self.levels, seed)
            for name, values in _completed(trees, self.levels).items():
                getattr(self, name)[number, : len(values)] = torch.as_tensor(values)

    def keep(self, n_stages: int) -> None:
        """Keep the first trees of each sum only."""
        for name in ("columns", "thresholds", "leaves"):
            setattr(self, name, getattr(self, name)[:, :n_stages].clone())
        self.rounds = n_stages

    def options(self) -> dict[str, int]:
        """Return the rounds that were kept, and the levels."""
        return {"rounds": self.rounds, "levels": self.levels}

    def check_weights(self) -> None:
        """Raise a ValueError if trees look at columns that rows do not have."""
        if not ((self.columns >= 0) & (self.columns < self.n_inputs)).all():
            raise ValueError("its tensor columns names columns that rows do not have")


class FittedRegressor(LabelRegressor):
    """A regressor of scikit-learn, of which a copy is fitted.

    Its own random state is set where it is None, so that the seed decides everything.
    """

    rows_at_once = 4096

    def __init__(self, regressor: ScikitRegressor, n_players: int, n_outputs: int) -> None:
        super().__init__()
        self.regressor: Any = copy.deepcopy(regressor)
        self.shape = (n_players, n_outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return attributions, (B, M, K), of rows, (B, …)."""
        predicted = self.regressor.predict(x.flatten(1).cpu().numpy())
        return torch.as_tensor(np.asarray(predicted, dtype=np.float32)).reshape(-1, *self.shape)

    def stages(self, x: Tensor) -> Tensor:
        """Return the attributions, (1, B, M, K)."""
        stage: Tensor = self(x)
        return stage[None]

    def learn(self, inputs: FloatArray, labels: FloatArray, seed: int) -> None:
        """Fit the regressor.

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
        try:
            self.regressor.fit(inputs, target)
            n_found = np.size(self.regressor.predict(inputs[:1]))
        except (TypeError, ValueError) as error:
            raise self._refusal(labels.shape[1], str(error)) from error
        if n_found != labels.shape[1]:
            raise self._refusal(labels.shape[1], f"it returned {n_found} numbers for a row")

    def _refusal(self, n_labels: int, reason: str) -> InvalidArgumentError:
        name = type(self.regressor).__name__
        return InvalidArgumentError(
            f"student={name}(…) must learn {n_labels} numbers for each row, one for each player "
            f"and output of the model: {reason}. Pass "
            f"sklearn.multioutput.MultiOutputRegressor({name}(…)), or student='trees'."
        )


def refuse_to_write(student: nn.Module) -> None:
    """Refuse to write a student that only its own pickle could hold.

    Raises
    ------
    InvalidArgumentError
        If it is a regressor of scikit-learn.
    """
    if isinstance(student, FittedRegressor):
        name = type(student.regressor).__name__
        raise InvalidArgumentError(
            f"A student that is a {name} of scikit-learn cannot be written to a file: only a "
            "pickle holds it, and reading one runs any code in it. Train with student='trees' or "
            "a network; or pickle the explainer yourself, and read only files that you trust."
        )


class _Trees(NamedTuple):
    """Trees as arrays of all their nodes; leaves are their own children."""

    roots: IntArray
    columns: IntArray
    thresholds: FloatArray
    left: IntArray
    right: IntArray
    values: FloatArray


def _completed(trees: _Trees, levels: int) -> dict[str, npt.NDArray[Any]]:
    """Return columns, thresholds and leaves of the same trees, complete to a number of levels.

    Below a leaf of the given trees, all numbers go left.
    """
    is_leaf = trees.left == np.arange(len(trees.left))
    limits = _rounded_down(np.where(is_leaf, np.inf, trees.thresholds))
    nodes, columns, thresholds = trees.roots[:, None], [], []
    for _ in range(levels):
        columns.append(np.where(is_leaf, 0, trees.columns)[nodes])
        thresholds.append(limits[nodes])
        children = np.stack([trees.left[nodes], trees.right[nodes]], axis=2)
        nodes = children.reshape(len(nodes), -1)
    return {
        "columns": np.concatenate(columns, axis=1).astype(np.int32),
        "thresholds": np.concatenate(thresholds, axis=1),
        "leaves": trees.values[nodes].astype(np.float32),
    }


def _rounded_down(thresholds: FloatArray) -> npt.NDArray[np.float32]:
    """Return the largest numbers in single precision that are not above the thresholds.

    A number in single precision is at most one of these if and only if it is at most the other.
    """
    limits = np.finfo(np.float32)
    bounded = np.clip(thresholds, limits.min, limits.max)
    rounded = bounded.astype(np.float32)
    return np.where(rounded > bounded, np.nextafter(rounded, limits.min), rounded)


def _grower() -> Any:
    """Return the function that grows the trees of one label."""
    try:
        import lightgbm  # noqa: F401
    except ImportError:
        return _grown_by_scikit_learn
    return _grown_by_lightgbm


def _grown_by_lightgbm(
    inputs: FloatArray, label: FloatArray, rounds: int, levels: int, seed: int
) -> _Trees:
    import lightgbm

    options = {
        "objective": "regression",
        "learning_rate": _RATE,
        "num_leaves": min(_LEAVES, 2**levels),
        "max_depth": levels,
        "min_data_in_leaf": _LEAST_IN_LEAF,
        "seed": seed % 2**31,
        "deterministic": True,
        "force_col_wise": True,
        "num_threads": torch.get_num_threads(),
        "verbosity": -1,
    }
    booster = lightgbm.train(options, lightgbm.Dataset(inputs, label), rounds)
    parts = [_tree_of_text(text) for text in booster.model_to_string().split("Tree=")[1:]]
    return _joined(parts)


def _tree_of_text(text: str) -> _Trees:
    """Return a tree of LightGBM's text, where a child below 0 is the leaf of its complement."""
    entries = dict(line.split("=", 1) for line in text.splitlines() if "=" in line)

    def numbers(name: str) -> FloatArray:
        return np.array(entries.get(name, "").split(), dtype=np.float64)

    values = numbers("leaf_value")
    columns, n_splits = numbers("split_feature"), len(numbers("split_feature"))
    leaves = n_splits + np.arange(len(values))

    def children(name: str) -> IntArray:
        child = numbers(name).astype(np.intp)
        return np.concatenate([np.where(child < 0, n_splits + ~child, child), leaves])

    nothing = np.zeros(len(values))
    return _Trees(
        np.array([0]),
        np.concatenate([columns, nothing]).astype(np.intp),
        np.concatenate([numbers("threshold"), nothing]),
        children("left_child"),
        children("right_child"),
        np.concatenate([np.zeros(n_splits), values]),
    )


def _grown_by_scikit_learn(
    inputs: FloatArray, label: FloatArray, rounds: int, levels: int, seed: int
) -> _Trees:
    from sklearn.ensemble import HistGradientBoostingRegressor

    fitted = HistGradientBoostingRegressor(
        learning_rate=_RATE,
        max_iter=rounds,
        max_leaf_nodes=min(_LEAVES, 2**levels),
        max_depth=levels,
        min_samples_leaf=_LEAST_IN_LEAF,
        early_stopping=False,
        random_state=seed % 2**32,
    ).fit(inputs, label)
    parts = [_tree_of_nodes(of_round[0].nodes) for of_round in fitted._predictors]
    first = parts[0]
    parts[0] = first._replace(values=first.values + float(np.ravel(fitted._baseline_prediction)[0]))
    return _joined(parts)


def _tree_of_nodes(nodes: Any) -> _Trees:
    """Return a tree of scikit-learn's records of nodes."""
    own, is_leaf = np.arange(len(nodes)), nodes["is_leaf"].astype(bool)
    return _Trees(
        np.array([0]),
        nodes["feature_idx"].astype(np.intp),
        nodes["num_threshold"].astype(np.float64),
        np.where(is_leaf, own, nodes["left"]).astype(np.intp),
        np.where(is_leaf, own, nodes["right"]).astype(np.intp),
        nodes["value"].astype(np.float64),
    )


def _joined(parts: Sequence[_Trees]) -> _Trees:
    """Return all trees in the same arrays."""
    sizes = [len(tree.left) for tree in parts]
    starts = np.cumsum([0, *sizes[:-1]])
    return _Trees(
        starts,
        np.concatenate([tree.columns for tree in parts]),
        np.concatenate([tree.thresholds for tree in parts]),
        np.concatenate([tree.left + start for tree, start in zip(parts, starts, strict=True)]),
        np.concatenate([tree.right + start for tree, start in zip(parts, starts, strict=True)]),
        np.concatenate([tree.values for tree in parts]),
    )
