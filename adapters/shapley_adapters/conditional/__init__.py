"""Distributions of absent features given the present ones."""

from .draws import Sampled, SamplingFunction
from .forest import Forest
from .gaussian import CausalGaussian, Confounded, Copula, Gaussian
from .weighted_rows import Categorical, Empirical

__all__ = [
    "Categorical",
    "CausalGaussian",
    "Confounded",
    "Copula",
    "Empirical",
    "Forest",
    "Gaussian",
    "Sampled",
    "SamplingFunction",
]
