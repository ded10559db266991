"""Base of the explainers made of an estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import shap

from shapley_adapters import Settings
from shapley_adapters.arguments import (
    checked_choice,
    checked_count,
    checked_flag,
    checked_seed,
    count_or_auto,
)
from shapley_adapters.constructors import write_constructor
from shapley_adapters.errors import InvalidArgumentError

from ..argument_types import Rows
from ..inputs.explained_function import prediction
from ..shap_internals import BAR_DELAY
from .coalition_explainer import CoalitionExplainer

if TYPE_CHECKING:
    from shapley_adapters.global_importance.losses import LossFunction

    from ..importance import ExplainedImportance


@write_constructor
class SamplingExplainer(CoalitionExplainer):
    """Base of the explainers made of an estimator: all but networks."""

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
        max_evals: int | str = "auto",
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
            The rows. A tuple for a model with several inputs.
        y : array, (R,), optional
            The labels, for `kind="loss"`.
        kind : {"mean_absolute", "mean", "loss"}
            What is averaged over rows. `"mean_absolute"`: absolute attributions, as in shap's bar
            plot; standard errors include the bias by the errors of the rows. `"mean"`: the
            attributions. `"loss"`: by how much a feature lowers the loss of the model's prediction
            (SAGE).
        loss : {"squared_error", "cross_entropy"} or callable, optional
            The loss, for `kind="loss"`. A function of predictions and labels that returns one loss
            for each. Cross entropy needs a model that returns probabilities, and labels that are
            indices of classes.
        max_evals : int or "auto"
            Evaluations per row, as in a call of the explainer.
        n_rows : int, optional
            How many rows to draw at random. By default all.
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
            If `max_evals` is too small; the message has the minimum.

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
        from shapley_adapters.global_importance.losses import (
            LossGame,
            check_no_loss,
            checked_loss,
        )
        from shapley_adapters.global_importance.result import TITLES

        from ..importance import ExplainedImportance

        checked_choice("kind", kind, tuple(TITLES))
        is_population = checked_flag("population", population)
        # A loss is that of predictions, whatever outputs of the model a call explains.
        model = prediction(self.model).model if kind == "loss" else None
        explained = self.explained_rows(X if isinstance(X, tuple) else (X,), model)
        if explained.groups is None:
            raise InvalidArgumentError(
                "X has features of its own in each row, such as tokens of texts; there is no mean "
                "over rows. Group them into features that all rows have."
            )
        settings = Settings(
            seed=checked_seed(self.seed),
            budget=count_or_auto("max_evals", max_evals),
            batch_size=count_or_auto("batch_size", batch_size),
            graph=self._graph(explained) if self.structure else None,
            n_jobs=self.n_jobs,
            progress_delay=None if checked_flag("silent", silent) else BAR_DELAY,
            name=self.name,
            budget_name="max_evals",
        )
        game: Any = self._valued(explained)
        if kind == "loss":
            if self.link is not shap.links.identity:
                raise InvalidArgumentError(
                    "link is used for the output, but kind='loss' explains the loss of the output "
                    "itself. Leave out link, or apply it in a loss function of your own."
                )
            game = explained.game
            labelled = checked_loss(loss, y, game.n_rows, "y", self.value_function)
            game = LossGame(game, labelled, game.background_weights)
        else:
            check_no_loss(kind, loss=loss, y=y)
        importance = ExplainedImportance.from_game(
            game,
            self._estimator(),
            settings,
            kind,
            n_rows=None if n_rows is None else checked_count("n_rows", n_rows),
            is_population=is_population,
            names=list(map(str, explained.groups.names)),
        )
        n_outputs = importance.values[0].size
        output_names = self._checked_output_names(game, n_outputs)
        if n_outputs == 1 or output_names is None:
            return importance
        return replace(importance, output_names=list(output_names))
