"""Global importance of features, by an explainer."""

from __future__ import annotations

from typing import Any

import shap

from shapley_adapters import Settings
from shapley_adapters.arguments import checked_flag, checked_seed, count_or_auto
from shapley_adapters.constructors import write_constructor
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.games.value_functions import checked_value_function
from shapley_adapters.global_importance.estimate_importance import estimate_importance
from shapley_adapters.global_importance.loss_game import LossGame
from shapley_adapters.global_importance.losses import LossFunction, checked_loss
from shapley_adapters.global_importance.requests import check_no_loss, checked_plan

from ..argument_types import Rows
from ..games.explained_rows import ExplainedRows
from ..results.global_importance import ExplainedImportance
from .coalition_explainer import CoalitionExplainer
from .explained_streams import BAR_DELAY


@write_constructor
class ImportanceExplainer(CoalitionExplainer):
    """Base of the explainers that give the importance of features over a data set."""

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
        plan = checked_plan(
            kind=kind,
            n_rows=n_rows,
            tolerance=tolerance,
            total=total_evals,
            population=population,
            total_name="total_evals",
        )
        # A loss is that of predictions, whatever outputs of the model a call explains.
        model = self.model if plan.kind == "loss" else self._explained_model
        explained = self._rows_of(X if isinstance(X, tuple) else (X,), model)
        if explained.groups is None:
            raise InvalidArgumentError(
                "X has features of its own in each row, such as tokens of texts; there is no mean "
                "over rows. Group them into features that all rows have."
            )
        settings = Settings(
            seed=checked_seed(self.seed),
            budget=count_or_auto("max_evals", max_evals),
            batch_size=count_or_auto("batch_size", batch_size),
            graph=self._graph(explained.layout),
            n_jobs=self.n_jobs,
            progress_delay=None if checked_flag("silent", silent) else BAR_DELAY,
            name=self.name,
            budget_name="max_evals",
        )
        game: Any = self._valued(explained)
        if plan.kind == "loss":
            game = self._loss_game(explained, loss, y)
        else:
            check_no_loss(plan.kind, loss=loss, y=y)
        result = estimate_importance(game, self._estimator(), settings, plan)
        output_names = self._checked_output_names(game, result.parts.mean.shape[1])
        names = list(map(str, explained.groups.names))
        return ExplainedImportance.of(result, plan.kind, names, output_names, settings.seed)

    def _loss_game(self, explained: ExplainedRows, loss: Any, y: Any) -> LossGame:
        """Return the game of the loss of the averaged output."""
        if self.link is not shap.links.identity:
            raise InvalidArgumentError(
                "link is used for the output, but kind='loss' explains the loss of the output "
                "itself. Leave out link, or apply it in a loss function of your own."
            )
        if not checked_value_function(self.value_function).is_raw:
            raise InvalidArgumentError(
                f"value_function={self.value_function!r} is used for the output, but kind='loss' "
                "explains the loss of the output itself. Leave out value_function."
            )
        game: Any = explained.game
        return LossGame(game, checked_loss(loss, y, game.n_rows), game.background_weights)
