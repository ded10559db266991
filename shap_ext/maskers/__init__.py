"""Maskers beside those of shap: absent features by distribution, images and texts by segments."""

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
from .text_segments import TextSegments

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
    "TextSegments",
]
