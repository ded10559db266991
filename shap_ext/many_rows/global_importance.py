"""Global importance of features, by an explainer."""

from __future__ import annotations

from typing import Any

import shap

from shapley_adapters import Settings
from shapley_adapters.arguments import checked_flag, checked_seed, count_or_auto
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.games.value_functions import checked_value_function
from shapley_adapters.global_importance.estimate_importance import estimate_importance
from shapley_adapters.global_importance.losses import (
    LossFunction,
    LossGame,
    check_no_loss,
    checked_loss,
    checked_plan,
)

from ..argument_types import Rows
from ..results.global_importance import ExplainedImportance
from ..shap_internals import BAR_DELAY


def global_importance(
    explainer: Any,
    X: Rows,
    y: Any,
    *,
    kind: str,
    loss: str | LossFunction | None,
    tolerance: float | str | None,
    max_evals: int | str,
    total_evals: int | None,
    n_rows: int | None,
    population: bool,
    batch_size: int | str,
    silent: bool,
) -> ExplainedImportance:
    """Return the importance of each feature over a data set; see `SamplingExplainer`."""
    plan = checked_plan(
        kind=kind,
        n_rows=n_rows,
        tolerance=tolerance,
        total=total_evals,
        population=population,
        total_name="total_evals",
    )
    # A loss is that of predictions, whatever outputs of the model a call explains.
    model = explainer.model if plan.kind == "loss" else None
    explained = explainer.explained_rows(X if isinstance(X, tuple) else (X,), model)
    if explained.groups is None:
        raise InvalidArgumentError(
            "X has features of its own in each row, such as tokens of texts; there is no mean "
            "over rows. Group them into features that all rows have."
        )
    settings = Settings(
        seed=checked_seed(explainer.seed),
        budget=count_or_auto("max_evals", max_evals),
        batch_size=count_or_auto("batch_size", batch_size),
        graph=explainer._graph(explained) if explainer.has_graph else None,
        n_jobs=explainer.n_jobs,
        progress_delay=None if checked_flag("silent", silent) else BAR_DELAY,
        name=explainer.name,
        budget_name="max_evals",
    )
    game: Any = explainer._valued(explained)
    if plan.kind == "loss":
        game = _loss_game(explainer, explained, loss, y)
    else:
        check_no_loss(plan.kind, loss=loss, y=y)
    result = estimate_importance(game, explainer._estimator(), settings, plan)
    output_names = explainer._checked_output_names(game, result.parts.mean.shape[1])
    names = list(map(str, explained.groups.names))
    return ExplainedImportance.from_estimate(result, plan.kind, names, output_names, settings.seed)


def _loss_game(explainer: Any, explained: Any, loss: Any, y: Any) -> LossGame:
    """Return the game of the loss of the averaged output."""
    if explainer.link is not shap.links.identity:
        raise InvalidArgumentError(
            "link is used for the output, but kind='loss' explains the loss of the output "
            "itself. Leave out link, or apply it in a loss function of your own."
        )
    if not checked_value_function(explainer.value_function).is_raw:
        raise InvalidArgumentError(
            f"value_function={explainer.value_function!r} is used for the output, but kind='loss' "
            "explains the loss of the output itself. Leave out value_function."
        )
    game: Any = explained.game
    return LossGame(game, checked_loss(loss, y, game.n_rows), game.background_weights)
