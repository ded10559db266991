"""What type checkers and editors read; tests/test_public_signatures.py writes the functions."""

from shapley_adapters.array_types import FloatArray
from shapley_adapters.criteria import CoalitionErrors, Curve, Neighbourhood, Sensitivity
from shapley_adapters.games.value_functions import ValueFunctionOrName

from .argument_types import Explanation, Groups, Link, Masker, Model, Rows, Values
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

def absolute_error(
    explanation: Explanation | Values,
    exact: Explanation | Values,
) -> FloatArray:
    """Return AE, the sum of the absolute errors of all features; less is better."""

def complexity(
    explanation: Explanation | Values,
) -> FloatArray:
    """Return the entropy of the features' shares in an explanation; less is simpler."""

def deletion_curve(
    explanation: Explanation | Values,
    model: Model,
    masker: Masker,
    X: Rows | None = ...,
    *,
    n_steps: int | None = ...,
    order: str = ...,
    link: Link = ...,
    groups: Groups | None = ...,
) -> Curve:
    """Return the output while features leave, the largest attributions first."""

def energy_score(
    masker: Masker,
    X: Rows,
    *,
    n_coalitions: int = ...,
    seed: int | None = ...,
) -> CoalitionErrors:
    """Return the energy score of draws of absent features; lower is better."""

def faithfulness(
    explanation: Explanation | Values,
    model: Model,
    masker: Masker,
    X: Rows | None = ...,
    *,
    subset_size: int | None = ...,
    n_subsets: int = ...,
    seed: int | None = ...,
    link: Link = ...,
    groups: Groups | None = ...,
) -> FloatArray:
    """Return how well sums of attributions correlate with losses of output; higher is better."""

def insertion_curve(
    explanation: Explanation | Values,
    model: Model,
    masker: Masker,
    X: Rows | None = ...,
    *,
    n_steps: int | None = ...,
    order: str = ...,
    link: Link = ...,
    groups: Groups | None = ...,
) -> Curve:
    """Return the output while features join, the largest attributions first."""

def masked_log_odds(
    explanation: Explanation | Values,
    model: Model,
    masker: Masker,
    X: Rows | None = ...,
    *,
    n_steps: int | None = ...,
    order: str = ...,
    value_function: ValueFunctionOrName = ...,
    groups: Groups | None = ...,
) -> Curve:
    """Return the change in log-odds of a class as its largest attributions are masked."""

def monotonicity(
    explanation: Explanation | Values,
    model: Model,
    masker: Masker,
    X: Rows | None = ...,
    *,
    link: Link = ...,
    groups: Groups | None = ...,
) -> FloatArray:
    """Return how often a feature adds no more than the feature before it; higher is better."""

def mse_v(
    model: Model,
    masker: Masker,
    X: Rows,
    *,
    n_coalitions: int = ...,
    seed: int | None = ...,
    link: Link = ...,
    groups: Groups | None = ...,
) -> CoalitionErrors:
    """Return MSE_v: how well values of coalitions predict the output; lower is better."""

def ranking_accuracy(
    explanation: Explanation | Values,
    exact: Explanation | Values,
    *,
    order: str = ...,
) -> FloatArray:
    """Return ACC, the share of ranks that are right, where rank m has the weight 1/m."""
