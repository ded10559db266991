"""Convex combinations of explanations: losses, as functions of the weights, and learned weights.

A loss takes weights, (G,), and returns one number per input, (R,); lower is better.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy  # which loads its submodules where they are used

from ..arguments import check_unmasked, checked_choice
from ..array_types import BoolArray, CoalitionArray, FloatArray
from ..criteria.attribution_arrays import entropy_of_shares
from ..criteria.faithfulness import pearson
from ..criteria.sensitivity import Neighbourhood, explained_neighbours
from ..errors import InvalidArgumentError
from ..workers import one_blas_thread

Loss: TypeAlias = Callable[[FloatArray], FloatArray]

_RANDOM_STARTS = 4
_NEAR_VERTEX = 0.95


@one_blas_thread()
def combined(weights: FloatArray, candidates: FloatArray) -> FloatArray:
    """Return Σ_i w_i g_i of candidates, (G, …)."""
    return np.tensordot(weights, candidates, axes=1)


def sensitivity_loss(differences: FloatArray, is_neighbour: BoolArray) -> Loss:
    """Return μ_A, mean distances of combinations for inputs and for neighbours; it is convex.

    Parameters
    ----------
    differences : array, (G, R, n, M)
        Each candidate's explanation of an input minus those of the input's neighbours.
    is_neighbour : array, (R, n)
        Which neighbours count; at least one per input.
    """

    def loss(weights: FloatArray) -> FloatArray:
        distances = np.linalg.norm(combined(weights, differences), axis=2)
        return np.where(is_neighbour, distances, 0.0).sum(axis=1) / is_neighbour.sum(axis=1)

    return loss


def sensitivity_around(
    candidates: Callable[..., FloatArray],
    predict: Callable[[FloatArray], Any],
    rows: Any,
    neighbourhood: Neighbourhood,
    *,
    seed: int,
    with_owners: bool = False,
) -> Loss:
    """Return the average sensitivity of combinations; leaves out rows without neighbours.

    Each output of a row counts as an input of its own.

    Parameters
    ----------
    candidates : callable
        Takes rows, returns explanations (G, R, …, M).
    predict, rows, neighbourhood, seed, with_owners
        As in `shapley_adapters.criteria.measured_sensitivity`.

    Raises
    ------
    InvalidArgumentError
        If no neighbour counts.
    """

    def explain(*points: Any) -> FloatArray:
        found = candidates(*points)
        return np.moveaxis(found.reshape(*found.shape[:2], -1, found.shape[-1]), 0, 1)

    of_rows, neighbours, is_neighbour = explained_neighbours(
        explain, predict, rows, neighbourhood, seed=seed, with_owners=with_owners
    )
    has_any = is_neighbour.any(axis=1)
    if not has_any.any():
        raise InvalidArgumentError(
            "No row has a neighbour that keeps the prediction; draw more, or change the radius."
        )
    moved = of_rows[has_any, None] - neighbours[has_any]  # (R, n, G, K, M)
    per_output = np.moveaxis(moved, (2, 3), (0, 2))  # (G, R, K, n, M)
    n_candidates, _, n_outputs, *sizes = per_output.shape
    flat = per_output.reshape(n_candidates, -1, *sizes)
    return sensitivity_loss(flat, np.repeat(is_neighbour[has_any], n_outputs, axis=0))


def unfaithfulness_loss(
    candidates: FloatArray, subsets: CoalitionArray, losses: FloatArray
) -> Loss:
    """Return 1 − μ_F of combinations of candidates, (G, R, M).

    From the losses of output, (R, n), without each of the subsets, (n, M).
    """
    sums = candidates @ subsets.T.astype(float)
    return lambda weights: 1 - pearson(combined(weights, sums), losses)


def criterion_loss(candidates: FloatArray, criterion: Callable[[FloatArray], Any]) -> Loss:
    """Return a criterion of combinations of candidates, (G, R, M), such as the complexity μ_C.

    The criterion takes explanations, (R, M), and returns one number for each; lower is better.
    """
    n_rows = candidates.shape[1]

    def loss(weights: FloatArray) -> FloatArray:
        losses = np.asarray(criterion(combined(weights, candidates)), dtype=np.float64)
        if losses.shape != (n_rows,) or not np.isfinite(losses).all():
            raise InvalidArgumentError(
                f"the criterion must return {n_rows} finite numbers, one for each explanation; it "
                f"returned shape {losses.shape}."
            )
        return losses

    return loss


def check_criterion(
    name: str, criterion: object, known: tuple[str, ...], neighbourhood: object
) -> None:
    """Refuse a criterion for which no weights can be learned; `name` is that of the argument."""
    if isinstance(criterion, str):
        checked_choice(name, criterion, known)
        if criterion in ("sensitivity", "trade_off") and neighbourhood is None:
            raise InvalidArgumentError(
                f"neighbourhood= is needed for {name}={criterion!r}, such as "
                "Neighbourhood(radius=0.1), from which neighbours are drawn."
            )
    if not isinstance(neighbourhood, (Neighbourhood, type(None))):
        raise InvalidArgumentError(
            "neighbourhood must be a shapley_adapters.criteria.Neighbourhood; got "
            f"{type(neighbourhood).__name__}."
        )


def loss_of_criterion(
    criterion: str | Callable[[FloatArray], Any],
    candidates: Callable[[], FloatArray],
    sensitivity: Callable[[], Loss],
    unfaithfulness: Callable[[], Loss] | None = None,
    complexity_weight: float = 1.0,
) -> Loss:
    """Return the loss that the name of a criterion, or a function, stands for.

    Parameters
    ----------
    criterion : str or callable
        `"complexity"`, `"sensitivity"`, `"faithfulness"`, `"trade_off"`, or a criterion as in
        `criterion_loss`.
    candidates : callable
        Returns the explanations of the inputs, (G, R, …, M). Each output is an input of its own.
    sensitivity, unfaithfulness : callable
        Functions that return these losses.
    complexity_weight : float
        λ of `"trade_off"`, the sensitivity plus λ times the complexity.
    """
    if criterion == "sensitivity":
        return sensitivity()
    if criterion == "faithfulness" and unfaithfulness is not None:
        return unfaithfulness()
    found = candidates()
    per_output = found.reshape(len(found), -1, found.shape[-1])
    own = criterion_loss(per_output, criterion if callable(criterion) else entropy_of_shares)
    if criterion != "trade_off":
        return own
    moved = sensitivity()
    return lambda weights: moved(weights) + complexity_weight * own(weights)


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


def _on_simplex(weights: FloatArray) -> FloatArray:
    """Return the weights on the simplex; rounding or a finite difference may have moved them."""
    positive = np.clip(weights, 0.0, None)
    return positive / positive.sum()


def checked_weights(weights: FloatArray | None, n_candidates: int) -> FloatArray:
    """Return the weights divided by their sum; equal weights by default."""
    if weights is None:
        return np.full(n_candidates, 1 / n_candidates)
    check_unmasked("weights", weights)
    array = np.asarray(weights, dtype=np.float64)
    is_usable = array.shape == (n_candidates,) and np.isfinite(array).all() and (array >= 0).all()
    if not is_usable or array.sum() == 0:
        raise InvalidArgumentError(
            f"weights must hold one number for each of the {n_candidates} candidates, finite and "
            f"not negative, at least one positive; got {array.tolist()}."
        )
    return array / array.sum()
