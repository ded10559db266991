"""Maskers beside those of shap: distributions of absent features, and images by superpixels."""

from .conditional import (
    Categorical,
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
    "ConditionalMasker",
    "Copula",
    "Empirical",
    "Forest",
    "Gaussian",
    "Sampled",
    "Superpixels",
]
