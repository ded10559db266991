"""Maskers beside those of shap: distributions of absent features, and images by superpixels."""

from .conditional import ConditionalMasker, Gaussian
from .superpixels import Superpixels

__all__ = ["ConditionalMasker", "Gaussian", "Superpixels"]
