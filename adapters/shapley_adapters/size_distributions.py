"""How coalition sizes are weighted and drawn.

The Shapley kernel gives a coalition of s of M players the weight 1 / (C(M, s) s (M − s)), hence all
coalitions of size s together 1 / (s (M − s)).
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from .array_types import FloatArray

SIZE_DISTRIBUTIONS = ("kernel", "leverage")


def kernel_mass(n_players: int) -> FloatArray:
    """Return the Shapley-kernel weight of all coalitions of size 1, …, M − 1, scaled to sum 1."""
    sizes = np.arange(1, n_players)
    mass = 1.0 / (sizes * (n_players - sizes))
    normalized: FloatArray = mass / mass.sum()
    return normalized


def size_probabilities(n_players: int, distribution: str) -> FloatArray:
    """Return how likely the sizes 1, …, M − 1 are to be drawn.

    `"kernel"` draws them in proportion to their kernel weight (KernelSHAP). `"leverage"` draws
    them uniformly, which is in proportion to the leverage that a coalition has in the regression
    (Musco and Witter, Leverage SHAP).
    """
    if distribution == "kernel":
        return kernel_mass(n_players)
    return np.full(n_players - 1, 1.0 / (n_players - 1))


def random_subsets(
    sizes: npt.NDArray[np.integer], n_players: int, rng: np.random.Generator
) -> npt.NDArray[np.bool_]:
    """Draw one coalition of each given size uniformly, (len(sizes), M)."""
    ranks = rng.permuted(np.tile(np.arange(n_players), (len(sizes), 1)), axis=1)
    return ranks < np.asarray(sizes)[:, None]
