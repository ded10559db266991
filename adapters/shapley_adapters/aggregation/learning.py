"""Weights of a convex combination, learned for a criterion on a set of inputs."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import scipy.optimize

from ..arguments import check_unmasked
from ..array_types import FloatArray
from ..errors import InvalidArgumentError
from .losses import Loss

_RANDOM_STARTS = 4
_NEAR_VERTEX = 0.95


@dataclass(frozen=True)
class LearnedWeights:
    """Learned weights, and their losses on the inputs that they were learned from.

    Attributes
    ----------
    weights : array, (G,)
        Not negative, 1 in sum.
    loss : array, (R,)
        The loss of the combination for each input.
    candidate_losses : array, (G, R)
        The losses of single candidates. No candidate has a lower mean loss than the combination.
    """

    weights: FloatArray
    loss: FloatArray
    candidate_losses: FloatArray


def learned_weights(loss: Loss, n_candidates: int, *, seed: int = 0) -> LearnedWeights:
    """Minimise the mean of a loss over the weights of a convex combination.

    Sequential quadratic programming starts from equal weights, from weights close to each
    candidate, and from a few random weights. The candidates themselves are compared too, so that
    the result is at least as good as the best of them on these inputs. For a convex loss, such as
    sensitivity, it is the minimum.

    Parameters
    ----------
    loss : callable
        Takes weights (G,), returns losses (R,).
    n_candidates : int
        G.
    seed : int
        Seed of the random starts.
    """
    vertices = np.eye(n_candidates)
    pool = [*vertices]
    if n_candidates > 1:
        middle = np.full(n_candidates, 1 / n_candidates)
        near = _NEAR_VERTEX * vertices + (1 - _NEAR_VERTEX) * middle
        drawn = np.random.default_rng(seed).dirichlet(np.ones(n_candidates), size=_RANDOM_STARTS)
        pool += [middle, *(_descend(loss, start) for start in (middle, *near, *drawn))]
    best = pool[int(np.argmin([loss(weights).mean() for weights in pool]))]
    return LearnedWeights(best, loss(best), np.array([loss(vertex) for vertex in vertices]))


def _descend(loss: Loss, start: FloatArray) -> FloatArray:
    """Return weights of lower loss than those at the start, or the start itself."""
    # The tolerance of the solver is relative to this, so that the unit of the loss does not matter.
    unit = float(np.abs(loss(start)).mean()) or 1.0
    optimum = scipy.optimize.minimize(
        lambda weights: float(loss(_on_simplex(weights)).mean()) / unit,
        start,
        method="SLSQP",
        bounds=[(0.0, 1.0)] * len(start),
        constraints={"type": "eq", "fun": lambda w: w.sum() - 1, "jac": np.ones_like},
        options={"maxiter": 200, "ftol": 1e-12},
    )
    optimised = _on_simplex(optimum.x)
    return optimised if loss(optimised).mean() <= loss(start).mean() else start


def _on_simplex(start: FloatArray) -> FloatArray:
    """Return the weights on the simplex; rounding or a finite difference may have moved them."""
    positive = np.clip(start, 0.0, None)
    total = positive.sum()
    on_simplex: FloatArray = (
        positive / total if total > 0 else np.full_like(positive, 1 / len(positive))
    )
    return on_simplex


def checked_weights(weights: FloatArray | None, n_candidates: int) -> FloatArray:
    """Return the weights divided by their sum; equal weights by default."""
    if weights is None:
        return np.full(n_candidates, 1 / n_candidates)
    check_unmasked("weights", weights)
    array = np.asarray(weights, dtype=np.float64)
    if array.shape != (n_candidates,):
        raise InvalidArgumentError(
            f"weights must hold one number for each of the {n_candidates} candidates; got shape "
            f"{array.shape}."
        )
    if not np.isfinite(array).all() or (array < 0).any() or array.sum() == 0:
        raise InvalidArgumentError(
            f"weights must be finite and not negative, at least one positive; got {array.tolist()}."
        )
    shares: FloatArray = array / array.sum()
    return shares
