"""Surrogates of models that take masked rows, for shap."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt
import pandas as pd

from shapley_adapters import Game
from shapley_adapters.arguments import checked_flag
from shapley_adapters.array_types import FloatArray
from shapley_adapters.constructors import fill_docstring
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.frames import pandas_frame
from shapley_adapters.surrogates.surrogate_model import SurrogateModel
from shapley_adapters.training_options import surrogate_parameters

from ..argument_types import Groups, Table
from ..inputs.rows_json import named_rows
from ..shap_internals import BAR_DELAY
from .coalition_explainer import CoalitionExplainer

if TYPE_CHECKING:
    from torch import Tensor


class Surrogate(SurrogateModel):
    """A network that predicts a model's outputs from rows with absent values, which are NaN.

    It learns the mean output given the present features. This is the value function of SimSHAP and
    FastSHAP. With a background instead, absent features take values that may never occur together
    with the present ones. The fitted surrogate is a model for any explainer. Its `reference` is the
    masker:

    `shap.Explainer(surrogate, surrogate.reference, algorithm="oddgp")`

    Fitting runs the model once on each row. Needs torch and safetensors:
    `pip install shapley-ext[amortized]`.

    Parameters
    ----------
    model : callable, torch module, fitted estimator or Booster
        Any model of numbers.
    network : {"mlp", "unet"} or torch module
        The network. A module of your own gets standardised rows with 0 for absent numbers, and
        beside them the marks of present ones: (rows, 2, …), or (rows, 2 C, height, width) for
        images of C channels; it returns raw outputs, (rows, outputs).
    network_options : mapping, optional
        Options of a named network.
    seed : int, optional
        Seed of the weights, the order of the rows, the split and all coalitions.
    {training}
    """

    def fit(
        self, X: npt.NDArray[Any] | pd.DataFrame, groups: Groups | None = None, silent: bool = False
    ) -> Surrogate:
        """Train on rows of a table, or images with their channels last; returns the surrogate.

        Parameters
        ----------
        X : array or DataFrame, (R, …)
            The rows.
        groups : mapping of names to columns, optional
            Columns that come and go together; those that are explained together should.
        silent : bool
            Whether to show no progress bars; otherwise they appear after ten seconds.
        """
        delay = None if checked_flag("silent", silent) else BAR_DELAY
        rows = pandas_frame(X, "X")
        if np.ndim(rows) < 2 or len(rows) < 2:
            raise InvalidArgumentError(
                f"X must hold at least 2 rows to train on, (R, …); its shape is {np.shape(rows)}."
            )
        inputs = network_inputs(rows, self.network)
        explainer = CoalitionExplainer(self._checked_model(), rows[:1], groups=groups)
        explained = explainer.explained_rows((rows,))
        if explained.groups is None:
            raise InvalidArgumentError("X must hold rows of the same features.")
        players = channels_first(
            explained.groups.players.reshape(1, *np.shape(rows)[1:]), self.network
        )
        columns = list(rows.columns) if isinstance(rows, pd.DataFrame) else None
        self._train(inputs, explained.game, players.ravel(), {"columns": columns}, delay)
        return self

    def __call__(self, rows: Table) -> FloatArray:
        """Return the outputs, (R,) or (R, K), of rows whose absent values are NaN."""
        outputs = self._predict(network_inputs(rows, self.network))
        return outputs[:, 0] if outputs.shape[1] == 1 else outputs

    @property
    def reference(self) -> npt.NDArray[Any]:
        """A row of which nothing is present, the masker that goes with the surrogate."""
        return self._channels_last(self._absent_row())

    def _game_of(self, probes: Tensor) -> Game:
        rows: Any = self._channels_last(probes.numpy())
        columns = self._fitted().about.host.get("columns")
        if columns is not None:
            from shapley_adapters.amortized.storage import refusing

            with refusing("The file", "surrogate"):
                rows = named_rows(rows, columns)
        return CoalitionExplainer(self.model, rows[:1]).explained_rows((rows,)).game

    def _channels_last(self, inputs: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Undo `channels_first`."""
        is_moved = self.network == "unet" and inputs.ndim == 4
        return np.moveaxis(inputs, 1, -1) if is_moved else inputs


fill_docstring(Surrogate, training=surrogate_parameters())


def network_inputs(rows: Table, network: object) -> npt.NDArray[Any]:
    """Return rows as a network sees them: numbers in single precision."""
    values = _frame_numbers(rows) if isinstance(rows, pd.DataFrame) else np.asarray(rows)
    if values.dtype.kind not in "biuf":
        raise InvalidArgumentTypeError(
            f"The network needs numbers, but the rows hold {values.dtype}. Pass features=, a "
            "function that makes an array of numbers of rows, or encode them."
        )
    return channels_first(values.astype(np.float32, copy=False), network)


def _frame_numbers(frame: pd.DataFrame) -> npt.NDArray[Any]:
    """Return the numbers of a frame, whose columns may hold them in different types."""
    non_numeric = [
        name
        for name, dtype in frame.dtypes.items()
        if not pd.api.types.is_numeric_dtype(dtype) or dtype.kind == "c"
    ]
    if non_numeric:
        raise InvalidArgumentTypeError(
            f"The network needs numbers, but the columns {non_numeric} hold none. Pass features=, "
            "a function that makes an array of numbers of rows, or encode them."
        )
    values: npt.NDArray[Any] = frame.to_numpy()
    if values.dtype.kind not in "biuf":  # booleans beside numbers, or nullable columns
        values = frame.to_numpy(dtype=np.float32, na_value=np.nan)
    return values


def channels_first(values: npt.NDArray[Any], network: object) -> npt.NDArray[Any]:
    """Move the channels of images, which shap has last, to where torch has them."""
    return np.moveaxis(values, -1, 1) if network == "unet" and values.ndim == 4 else values
