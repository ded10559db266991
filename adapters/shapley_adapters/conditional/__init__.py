"""Distributions of absent features given the present ones."""

from .causal import CausalGaussian, CausalOrder
from .copula import Copula
from .forest import Forest
from .gaussian import Gaussian
from .sampler import Sampled, SamplingFunction
from .weighted_rows import Categorical, Empirical

__all__ = [
    "Categorical",
    "CausalGaussian",
    "CausalOrder",
    "Copula",
    "Empirical",
    "Forest",
    "Gaussian",
    "Sampled",
    "SamplingFunction",
]
