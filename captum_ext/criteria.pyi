"""What type checkers and editors read; tests/test_public_signatures.py writes the functions."""

from captum.metrics import infidelity
from torch import Tensor

from shapley_adapters.criteria import CoalitionErrors, Curve, Neighbourhood, Sensitivity
from shapley_adapters.games.value_functions import ValueFunctionOrName

from .aggregates.judged_attributions import sensitivity
from .argument_types import Attributions, Baselines, FeatureMask, ForwardFunction, Inputs, Target
from .conditional import ConditionalBaselines

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
    "infidelity",
    "insertion_curve",
    "masked_log_odds",
    "monotonicity",
    "mse_v",
    "ranking_accuracy",
    "sensitivity",
]

def absolute_error(
    attributions: Attributions,
    exact: Attributions,
) -> Tensor:
    """Return AE, the sum of the absolute errors of all features; less is better."""

def complexity(
    attributions: Attributions,
) -> Tensor:
    """Return the entropy of the features' shares in an explanation; less is simpler."""

def deletion_curve(
    attributions: Attributions,
    forward_func: ForwardFunction,
    inputs: Inputs,
    baselines: Baselines = ...,
    target: Target = ...,
    additional_forward_args: object = ...,
    feature_mask: FeatureMask = ...,
    *,
    n_steps: int | None = ...,
    order: str = ...,
    of_groups: str = ...,
) -> Curve:
    """Return the output while features leave, the largest attributions first."""

def energy_score(
    inputs: Tensor,
    baselines: ConditionalBaselines,
    *,
    n_coalitions: int = ...,
    seed: int | None = ...,
) -> CoalitionErrors:
    """Return the energy score of draws of absent features; lower is better."""

def faithfulness(
    attributions: Attributions,
    forward_func: ForwardFunction,
    inputs: Inputs,
    baselines: Baselines = ...,
    target: Target = ...,
    additional_forward_args: object = ...,
    feature_mask: FeatureMask = ...,
    *,
    subset_size: int | None = ...,
    n_subsets: int = ...,
    seed: int | None = ...,
    of_groups: str = ...,
) -> Tensor:
    """Return how well sums of attributions correlate with losses of output; higher is better."""

def insertion_curve(
    attributions: Attributions,
    forward_func: ForwardFunction,
    inputs: Inputs,
    baselines: Baselines = ...,
    target: Target = ...,
    additional_forward_args: object = ...,
    feature_mask: FeatureMask = ...,
    *,
    n_steps: int | None = ...,
    order: str = ...,
    of_groups: str = ...,
) -> Curve:
    """Return the output while features join, the largest attributions first."""

def masked_log_odds(
    attributions: Attributions,
    forward_func: ForwardFunction,
    inputs: Inputs,
    baselines: Baselines = ...,
    target: Target = ...,
    additional_forward_args: object = ...,
    feature_mask: FeatureMask = ...,
    *,
    n_steps: int | None = ...,
    order: str = ...,
    value_function: ValueFunctionOrName = ...,
    of_groups: str = ...,
) -> Curve:
    """Return the change in log-odds of a class as its largest attributions are masked."""

def monotonicity(
    attributions: Attributions,
    forward_func: ForwardFunction,
    inputs: Inputs,
    baselines: Baselines = ...,
    target: Target = ...,
    additional_forward_args: object = ...,
    feature_mask: FeatureMask = ...,
    *,
    of_groups: str = ...,
) -> Tensor:
    """Return how often a feature adds no more than the feature before it; higher is better."""

def mse_v(
    forward_func: ForwardFunction,
    inputs: Inputs,
    baselines: Baselines = ...,
    target: Target = ...,
    additional_forward_args: object = ...,
    feature_mask: FeatureMask = ...,
    *,
    n_coalitions: int = ...,
    seed: int | None = ...,
) -> CoalitionErrors:
    """Return MSE_v: how well values of coalitions predict the output; lower is better."""

def ranking_accuracy(
    attributions: Attributions,
    exact: Attributions,
    *,
    order: str = ...,
) -> Tensor:
    """Return ACC, the share of ranks that are right, where rank m has the weight 1/m."""
