"""Base of the explainers that draw coalitions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from shapley_adapters.arguments import checked_flag
from shapley_adapters.constructors import write_constructor
from shapley_adapters.global_importance.losses import LossFunction

from ..argument_types import Rows
from .coalition_explainer import CoalitionExplainer

if TYPE_CHECKING:
    from ..results.global_importance import ExplainedImportance


@write_constructor
class SamplingExplainer(CoalitionExplainer):
    """Base of the explainers that draw coalitions: all but enumeration and networks."""

    independent_rows: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_flag("independent_rows", self.independent_rows)
        self._estimator()  # refuses options that cannot be used

    def global_importance(
        self,
        X: Rows,
        y: Any = None,
        *,
        kind: str = "mean_absolute",
        loss: str | LossFunction | None = None,
        tolerance: float | str | None = None,
        max_evals: int | str = "auto",
        total_evals: int | None = None,
        n_rows: int | None = None,
        population: bool = False,
        batch_size: int | str = "auto",
        silent: bool = False,
    ) -> ExplainedImportance:
        """Return the importance of each feature over a data set, with standard errors.

        The rows of `X` are a sample. Standard errors hold both its randomness and that of the
        coalitions. Each row has random coalitions of its own.

        Parameters
        ----------
        X : array, DataFrame or list, (R, …)
            The rows. A smaller number of them is drawn at random with `n_rows`, `tolerance` or
            `total_evals`. A tuple for a model with several inputs.
        y : array, (R,), optional
            The labels, for `kind="loss"`.
        kind : {"mean_absolute", "mean", "loss"}
            What is averaged over rows. `"mean_absolute"`: absolute attributions, as in shap's bar
            plot, corrected for the bias by the errors of the rows. `"mean"`: the attributions.
            `"loss"`: by how much a feature lowers the loss of the model's prediction (SAGE).
        loss : {"squared_error", "cross_entropy"} or callable, optional
            The loss, for `kind="loss"`. A function of predictions and labels that returns one loss
            for each. Cross entropy needs a model that returns probabilities, and labels that are
            indices of classes.
        tolerance : float or str, optional
            The largest standard error allowed: a number in units of the result, or a percentage of
            the distance between the largest and the smallest importance, as in `"2%"`. A pilot
            sample chooses rows and evaluations per row; rows are added until it is reached.
        max_evals : int or "auto"
            Evaluations per row. By default `tolerance` or `total_evals` choose it; without both it
            is that of a call of the explainer.
        total_evals : int, optional
            Evaluations for all rows together. A pilot sample chooses how to divide them.
        n_rows : int, optional
            How many rows to draw; with `tolerance`, at most. By default all.
        population : bool
            Whether the rows of `X` are all that there are. The rows that are not drawn are then the
            only uncertainty of the sample, and there is none if all are drawn.
        batch_size, silent
            As in a call of the explainer.

        Returns
        -------
        GlobalImportance
            `values`, `standard_errors`, `interval()`, `to_frame()`, `plot()`, `to_explanation()`.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError
            If an argument cannot be used; the message names it.
        BudgetError
            If `max_evals` or `total_evals` is too small; the message has the minimum.

        Examples
        --------
        >>> import numpy as np
        >>> import shap_ext
        >>> rows = np.random.default_rng(0).normal(size=(200, 3))
        >>> model = lambda x: 2 * x[:, 0] - x[:, 1]
        >>> explainer = shap_ext.RandomOrderExplainer(model, np.zeros((1, 3)), seed=0)
        >>> explainer.global_importance(rows, kind="mean_absolute").values.round(1)
        array([1.6, 0.8, 0. ])
        """
        from ..many_rows.global_importance import global_importance

        return global_importance(
            self,
            X,
            y,
            kind=kind,
            loss=loss,
            tolerance=tolerance,
            max_evals=max_evals,
            total_evals=total_evals,
            n_rows=n_rows,
            population=population,
            batch_size=batch_size,
            silent=silent,
        )
