"""Explanations that trade sensitivity against complexity, and the curve of this trade-off.

Bhatt, Weller and Moura leave the minimisation of E[μ_A + λ μ_C] to future work. Here it is
minimised over the convex combinations of the candidates.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import numpy.typing as npt

from ..array_types import FloatArray
from ..errors import InvalidArgumentError
from .learning import weight_pool
from .losses import ComplexityLoss, SensitivityLoss

_DECADES = 3
_PER_DECADE = 5


@dataclass(frozen=True)
class TradeOff:
    """The learned combinations, one for each weight λ of the complexity, and the candidates.

    Attributes
    ----------
    complexity_weights : array, (L,)
        λ, in units of sensitivity per nat of complexity, increasing.
    weights : array, (L, G)
        Weights of the candidates.
    sensitivity, complexity : array, (L, R)
        μ_A and μ_C of each combination for each input. Along the curve, the mean sensitivity never
        decreases and the mean complexity never increases.
    candidate_sensitivity, candidate_complexity : array, (G, R)
        μ_A and μ_C of the candidates.
    """

    complexity_weights: FloatArray
    weights: FloatArray
    sensitivity: FloatArray
    complexity: FloatArray
    candidate_sensitivity: FloatArray
    candidate_complexity: FloatArray

    def plot(self, ax: Any = None, names: Sequence[str] | None = None) -> Any:
        """Draw the curve with standard errors, and the candidates; returns the axes of matplotlib.

        Parameters
        ----------
        ax : matplotlib axes, optional
            Where to draw; new ones by default.
        names : sequence of str, optional
            Names of the candidates.
        """
        if ax is None:
            import matplotlib.pyplot as plt

            _, ax = plt.subplots(layout="constrained")
        bars = {"xerr": _error(self.complexity), "yerr": _error(self.sensitivity)}
        ax.errorbar(
            self.complexity.mean(axis=1),
            self.sensitivity.mean(axis=1),
            **bars,
            marker="o",
            markersize=4,
            linewidth=1.2,
            elinewidth=0.5,
            label="learned, from λ small (right) to large (left)",
        )
        n_candidates = len(self.candidate_complexity)
        labels = [f"candidate {i}" for i in range(n_candidates)] if names is None else list(names)
        for i, name in enumerate(labels):
            x = self.candidate_complexity[i].mean()
            y = self.candidate_sensitivity[i].mean()
            ax.plot(x, y, marker="s", linestyle="none", label=name)
        ax.set_xlabel("mean complexity (nats)")
        ax.set_ylabel("mean average sensitivity")
        ax.legend(fontsize="small")
        return ax


def trade_off(
    complexity: ComplexityLoss,
    sensitivity: SensitivityLoss,
    complexity_weights: npt.ArrayLike | None = None,
    *,
    seed: int = 0,
) -> TradeOff:
    """Learn the combination of least E[μ_A + λ μ_C] for each weight λ of the complexity.

    The combinations of all λ are compared for each λ, so that along the curve sensitivity and
    complexity move in opposite directions, as they do for exact minima.

    Parameters
    ----------
    complexity, sensitivity
        The losses, of the same candidates and inputs.
    complexity_weights : array, (L,), optional
        λ; by default 16 of them, over three decades around the sensitivity of the candidates.
    seed : int
        Seed of the random starts.
    """
    n_candidates = len(complexity.candidates)
    if complexity_weights is None:
        lambdas = _default_weights(sensitivity, n_candidates)
    else:
        lambdas = _checked(complexity_weights)
    pool: list[FloatArray] = []
    for complexity_weight in lambdas:
        pool += weight_pool(
            lambda w, s=complexity_weight: sensitivity(w) + s * complexity(w),  # type: ignore[misc]
            n_candidates,
            seed=seed,
        )
    objectives = np.array([[sensitivity(w).mean(), complexity(w).mean()] for w in pool])
    best = [int(np.argmin(objectives @ [1.0, weight])) for weight in lambdas]
    weights = np.array([pool[i] for i in best])
    vertices = np.eye(n_candidates)
    return TradeOff(
        complexity_weights=lambdas,
        weights=weights,
        sensitivity=np.array([sensitivity(w) for w in weights]),
        complexity=np.array([complexity(w) for w in weights]),
        candidate_sensitivity=np.array([sensitivity(v) for v in vertices]),
        candidate_complexity=np.array([complexity(v) for v in vertices]),
    )


def _checked(complexity_weights: Any) -> FloatArray:
    lambdas = np.sort(np.asarray(complexity_weights, dtype=np.float64).ravel())
    if len(lambdas) == 0 or not np.isfinite(lambdas).all() or lambdas[0] < 0:
        raise InvalidArgumentError(
            f"complexity_weights must be finite numbers, none negative; got {complexity_weights!r}."
        )
    return lambdas


def _default_weights(sensitivity: SensitivityLoss, n_candidates: int) -> FloatArray:
    level = np.mean([sensitivity(vertex).mean() for vertex in np.eye(n_candidates)])
    if level == 0:
        return np.ones(1)
    half = _DECADES / 2
    return float(level) * np.logspace(-half, half, _DECADES * _PER_DECADE + 1)


def _error(values: FloatArray) -> FloatArray | None:
    n_inputs = values.shape[1]
    return None if n_inputs == 1 else values.std(axis=1, ddof=1) / np.sqrt(n_inputs)
