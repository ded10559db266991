"""Students that learn labels in one fit: regressors of scikit-learn, and boosted trees."""

from __future__ import annotations

import copy
import itertools
from collections.abc import Iterator, Sequence
from typing import Any, Protocol, TypeGuard

import numpy as np
import torch
from torch import Tensor, nn

from ..array_types import FloatArray
from ..errors import InvalidArgumentError

_LEAST_IN_LEAF = 10


class ScikitRegressor(Protocol):
    """A regressor of scikit-learn, of several outputs."""

    def fit(self, X: Any, y: Any) -> Any:  # noqa: N803  scikit-learn's name
        """Learn y, (R, outputs), of X, (R, D)."""

    def predict(self, X: Any) -> Any:  # noqa: N803  scikit-learn's name
        """Return predictions, (R, outputs)."""


def is_regressor(student: object) -> TypeGuard[ScikitRegressor]:
    """Return whether a student fits and predicts as scikit-learn's do."""
    return hasattr(student, "fit") and hasattr(student, "predict")


class FittedRegressor(nn.Module):
    """A regressor of scikit-learn, of which a copy learns labels in one fit, not by gradients.

    Its own random state is set where it is None, so that the seed decides everything.
    """

    def __init__(self, regressor: ScikitRegressor | None, n_players: int, n_outputs: int) -> None:
        super().__init__()
        self.regressor: Any = copy.deepcopy(regressor)
        self.shape = (n_players, n_outputs)

    def forward(self, x: Tensor) -> Tensor:
        """Return attributions, (B, M, K), of rows, (B, …)."""
        return self._attributions(self.regressor.predict(_numbers(x)))

    def stages(self, x: Tensor) -> Iterator[Tensor]:
        """Yield the attributions, (B, M, K), after each stage of the fit."""
        yield self(x)

    def keep(self, n_stages: int) -> None:
        """Keep the first stages only."""

    def _attributions(self, predicted: Any) -> Tensor:
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


class BoostedTrees(FittedRegressor):
    """Gradient boosted trees, a regressor for each player and output, for tables.

    They are those of LightGBM where it is installed, otherwise of scikit-learn's
    `HistGradientBoostingRegressor`; both with up to 31 leaves and shrinkage .1.

    Parameters
    ----------
    input_shape : sequence of int
        Shape of one row.
    n_players, n_outputs : int
        Shape of the result for a row.
    rounds : int
        Trees of each player and output; those after the best round are not used.
    levels : int
        Largest depth of a tree.
    """

    def __init__(
        self,
        input_shape: Sequence[int],
        n_players: int,
        n_outputs: int,
        rounds: int = 100,
        levels: int = 6,
    ) -> None:
        super().__init__(None, n_players, n_outputs)
        del input_shape  # the trees learn it
        self.rounds, self.levels = rounds, levels

    def forward(self, x: Tensor) -> Tensor:
        """Return attributions, (B, M, K), of rows, (B, …)."""
        rows = _numbers(x)
        predicted = [
            next(itertools.islice(trees.staged_predict(rows), self.rounds - 1, None))
            if hasattr(trees, "staged_predict")
            else trees.predict(rows, num_iteration=self.rounds)
            for trees in self.regressor
        ]
        return self._attributions(np.stack(predicted, axis=1))

    def stages(self, x: Tensor) -> Iterator[Tensor]:
        """Yield the attributions, (B, M, K), after each round."""
        rows = _numbers(x)
        for predicted in zip(*(self._staged(trees, rows) for trees in self.regressor), strict=True):
            yield self._attributions(np.stack(predicted, axis=1))

    def _staged(self, trees: Any, rows: FloatArray) -> Iterator[FloatArray]:
        if hasattr(trees, "staged_predict"):
            return iter(trees.staged_predict(rows))
        single = (
            trees.predict(rows, start_iteration=n, num_iteration=1) for n in range(self.rounds)
        )
        return itertools.accumulate(single)

    def keep(self, n_stages: int) -> None:
        """Use the first trees of each sum only."""
        self.rounds = n_stages

    def learn(self, inputs: FloatArray, labels: FloatArray, seed: int) -> None:
        """Grow the trees of each label, (R, M·K)."""
        try:
            import lightgbm
        except ImportError:
            from sklearn.ensemble import HistGradientBoostingRegressor

            grower = HistGradientBoostingRegressor(
                max_iter=self.rounds,
                max_depth=self.levels,
                min_samples_leaf=_LEAST_IN_LEAF,
                early_stopping=False,
                random_state=seed % 2**32,
            )
            self.regressor = [copy.copy(grower).fit(inputs, label) for label in labels.T]
            return
        options = {
            "num_leaves": 31,
            "max_depth": self.levels,
            "min_data_in_leaf": _LEAST_IN_LEAF,
            "seed": seed % 2**31,
            "deterministic": True,
            "force_col_wise": True,
            "num_threads": torch.get_num_threads(),
            "verbosity": -1,
        }
        self.regressor = [
            lightgbm.train(options, lightgbm.Dataset(inputs, label), self.rounds)
            for label in labels.T
        ]


def _numbers(x: Tensor) -> FloatArray:
    numbers: FloatArray = x.flatten(1).cpu().numpy()
    return numbers
