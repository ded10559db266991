"""Distributions of absent features given the present ones."""

from .causal import CausalGaussian, Confounded
from .copula import Copula
from .forest import Forest
from .gaussian import Gaussian
from .sampler import Sampled, SamplingFunction
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
