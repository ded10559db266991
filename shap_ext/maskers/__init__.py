"""Maskers beside those of shap: distributions of absent features, and images by superpixels."""

from .conditional import (
    Categorical,
    Causal,
    ConditionalMasker,
    Copula,
    Empirical,
    Forest,
    Gaussian,
    Sampled,
)
from .superpixels import Superpixels

__all__ = [
    "Categorical",
    "Causal",
    "ConditionalMasker",
    "Copula",
    "Empirical",
    "Forest",
    "Gaussian",
    "Sampled",
    "Superpixels",
]
