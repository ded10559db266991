"""Measures of explanations, on arrays with features last, and on games."""

from .attribution_arrays import absolute_error, complexity, ranking_accuracy
from .faithfulness import (
    Curve,
    deletion_curve,
    faithfulness,
    insertion_curve,
    masked_log_odds,
    monotonicity,
)
from .neighbourhoods import Neighbourhood
from .sensitivity import Sensitivity, measured_sensitivity, sensitivity

__all__ = [
    "Curve",
    "Neighbourhood",
    "Sensitivity",
    "absolute_error",
    "complexity",
    "deletion_curve",
    "faithfulness",
    "insertion_curve",
    "masked_log_odds",
    "measured_sensitivity",
    "monotonicity",
    "ranking_accuracy",
    "sensitivity",
]
