"""Criteria of shap's explanations: complexity, sensitivity, faithfulness and accuracy.

Each takes Explanations or arrays in shap's order of axes, (R, M) or (R, M, K), and returns one
number per row, (R,), or per row and output, (R, K).
"""

from functools import partial

from shap.links import identity

import shapley_adapters.criteria as core
from shapley_adapters.criteria import CoalitionErrors, Curve, Neighbourhood, Sensitivity
from shapley_adapters.criteria.hosted import hosted

from .explainers import judged_explanations as judged
from .explainers.judged_explanations import sensitivity

__all__ = [
    "CoalitionErrors",
    "Curve",
    "Neighbourhood",
    "Sensitivity",
    "absolute_error",
    "complexity",
    "deletion_curve",
    "energy_score",
    "faithfulness",
    "insertion_curve",
    "masked_log_odds",
    "monotonicity",
    "mse_v",
    "ranking_accuracy",
    "sensitivity",
]

_hosted = partial(hosted, module=__name__, returned="array, (R,) or (R, K)")
_of_outputs = partial(_hosted, value_function=judged.OUTPUTS)

complexity = _hosted(core.complexity, judged.values)
absolute_error = _hosted(core.absolute_error, judged.values_and_exact)
ranking_accuracy = _hosted(core.ranking_accuracy, judged.values_and_exact)
faithfulness = _of_outputs(core.faithfulness, judged.values_and_game)
monotonicity = _of_outputs(core.monotonicity, judged.values_and_game)
insertion_curve = _of_outputs(core.insertion_curve, judged.values_and_game)
deletion_curve = _of_outputs(core.deletion_curve, judged.values_and_game)
masked_log_odds = _hosted(core.masked_log_odds, judged.values_and_game, link=identity)
mse_v = _hosted(core.mse_v, judged.games)
energy_score = _hosted(core.energy_score, judged.rows_and_draws)
