"""Measures of explanations, on arrays with features last, and on games."""

from .attribution_arrays import absolute_error, complexity, ranking_accuracy
from .coalition_errors import CoalitionErrors, energy_score, mse_v
from .faithfulness import (
    Curve,
    deletion_curve,
    faithfulness,
    insertion_curve,
    masked_log_odds,
    monotonicity,
)
from .sensitivity import Neighbourhood, Sensitivity, measured_sensitivity, sensitivity

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
    "measured_sensitivity",
    "monotonicity",
    "mse_v",
    "ranking_accuracy",
    "sensitivity",
]
