"""Base of the explainers made of an estimator."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any, Unpack

import shap

from shapley_adapters.arguments import checked_choice, checked_count, checked_flag
from shapley_adapters.constructors import write_constructor
from shapley_adapters.errors import InvalidArgumentError

from ..argument_types import Rows
from ..inputs.models import prediction
from .call_options import OPTIONS, ExplainerOptions
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

    @OPTIONS.documented("importance")
    def global_importance(
        self,
        X: Rows,
        y: Any = None,
        *,
        kind: str = "mean_absolute",
        loss: str | LossFunction | None = None,
        n_rows: int | None = None,
        population: bool = False,
        **options: Unpack[ExplainerOptions],
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
        n_rows : int, optional
            How many rows to draw at random. By default all.
        population : bool
            Whether the rows of `X` are all that there are. The rows that are not drawn are then the
            only uncertainty of the sample, and there is none if all are drawn.
        **options
            The options of the call of the explainer.

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
        from shapley_adapters.global_importance.losses import LossGame, check_no_loss, checked_loss
        from shapley_adapters.global_importance.result import TITLES

        from ..importance import ExplainedImportance

        fields, _ = OPTIONS.read("importance", options)
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
        settings = super()._settings(explained, fields)  # no hierarchy of pixels
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
