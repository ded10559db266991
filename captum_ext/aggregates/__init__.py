"""Attributions that are made of those of other methods, or of those of similar inputs.

`__init__.pyi` has them for type checkers and editors.
"""

from .methods import AVA, Centroid, Convex, LowComplexity

__all__ = ["AVA", "Centroid", "Convex", "LowComplexity"]
