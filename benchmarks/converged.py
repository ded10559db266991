"""Shapley values where nothing gives them exactly: a surrogate's own, and an unbiased rest.

A smooth surrogate of the game, whose values are known in closed form, takes away most of what makes
estimates spread; least squares with very many evaluations finds the values of what is left, with
standard errors. Whatever the surrogate is, its error cancels: a poor one only widens the errors.
Neither shares code with the estimator that the benchmark is about.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path

import numpy as np
import scipy.linalg
from coalition_games import BoolArray, FloatArray
from core_games import CoreGame
from explained_models import ExplainedModel, ReferenceValues

import shapley_adapters as core

_N_PAIRS = 2000
"""Pairs that the surrogate learns from."""

_N_HELD_OUT = 500
"""Pairs among these by which its form is chosen."""

_POWERS = (0.0, 0.5, 1.0)
_RATIOS = (0.03, 0.3, 3.0)
_NOISES = (1e-3, 1e-1)

ValuesOf = Callable[[BoolArray], FloatArray]
"""Coalitions of one row, (C, M), to values, (C,)."""


def converged(
    name: str, explained: ExplainedModel, n_evaluations: int, cache: Path
) -> ReferenceValues:
    """Return the values of all rows and their standard errors, from the cache where it has them.

    Parameters
    ----------
    name : str
        What the file is called.
    explained : ExplainedModel
        The model and its rows.
    n_evaluations : int
        Evaluations for each row that the least squares may make, once the surrogate is learned.
    cache : Path
        Folder that keeps the values.
    """
    path = cache / f"{name}-values-{_key(explained, n_evaluations)}.npz"
    found = [np.empty((0, explained.n_players))] * 2
    if path.is_file():
        with np.load(path) as file:
            found = [file["values"], file["errors"]]
    game, n_rows = explained.evaluated(), len(explained.rows)
    for row in range(len(found[0]), n_rows):
        of_row = _of_row(partial(game.of_row, row), explained, n_evaluations, row)
        found = [np.vstack([old, new]) for old, new in zip(found, of_row, strict=True)]
        cache.mkdir(parents=True, exist_ok=True)
        np.savez(path, values=found[0], errors=found[1])  # after each row, for it takes time
    source = f"converged, {n_evaluations} evaluations a row"
    return ReferenceValues(found[0][:n_rows], found[1][:n_rows], source)


def _key(explained: ExplainedModel, n_evaluations: int) -> str:
    """Tell models, players and settings apart; more rows continue those that are there."""
    settings = (n_evaluations, _N_PAIRS, _N_HELD_OUT, _POWERS, _RATIOS, _NOISES)
    key = hashlib.sha256(f"{settings} {explained.player_of_column.tolist()}".encode())
    key.update(explained.reference.tobytes() + explained.rows[0].tobytes())
    key.update(explained.model.predict(np.stack([*explained.reference, explained.rows[0]])))
    return key.hexdigest()[:12]


def _of_row(
    values_of: ValuesOf, explained: ExplainedModel, n_evaluations: int, row: int
) -> tuple[FloatArray, FloatArray]:
    """Return the values and standard errors of one row, (M,) each."""
    present = np.not_equal(explained.rows[row], explained.reference[0])
    active = np.unique(explained.player_of_column[present])

    def of_active(coalitions: BoolArray) -> FloatArray:
        whole = np.zeros((len(coalitions), explained.n_players), dtype=bool)
        whole[:, active] = coalitions
        return values_of(whole)

    rng = np.random.default_rng([2022, row])
    surrogate = _learned(of_active, len(active), rng)
    rest = CoreGame(lambda rows, S: of_active(S) - surrogate(S), len(active), n_rows=1)
    least_squares = core.least_squares(True, "leverage", True, False)
    settings = core.Settings(seed=row, budget=n_evaluations, with_errors=True)
    estimate = core.estimate(rest, least_squares, settings)
    values, errors = np.zeros((2, explained.n_players))
    values[active] = surrogate.shapley_values() + estimate.values[0, :, 0]
    errors[active] = estimate.standard_errors[0, :, 0]
    return values, errors


@dataclass(frozen=True)
class Surrogate:
    """An odd game: kernel ridge regression with products of one and of three players' signs.

    Attributes
    ----------
    signs : array, (n, M)
        ±1, the coalitions that it learned from.
    weights : array, (M,)
        How strongly each player takes part in products of three.
    ratio : float
        How strong products of three are beside single players.
    coefficients : array, (n,)
        Of the kernels at `signs`.
    """

    signs: FloatArray
    weights: FloatArray
    ratio: float
    coefficients: FloatArray

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        """Return the values of coalitions, (C,)."""
        signs = np.where(coalitions, 1.0, -1.0)
        return _kernel(signs, self.signs, self.weights, self.ratio) @ self.coefficients

    def shapley_values(self) -> FloatArray:
        """Return its Shapley values, (M,): a product of k signs gives 2 / k to each of its players.

        A product that a player is in is its sign times a product of two of the others.
        """
        factors = self.signs * self.weights
        total, squares = factors.sum(axis=1, keepdims=True), (factors**2).sum(axis=1, keepdims=True)
        of_two_others = (total**2 - squares) / 2 - factors * (total - factors)
        third = self.ratio * _scale(self.weights) * factors * of_two_others
        per_kernel = 2 * self.signs / self.signs.shape[1] + 2 / 3 * third
        values: FloatArray = self.coefficients @ per_kernel
        return values


def _learned(values_of: ValuesOf, n_players: int, rng: np.random.Generator) -> Surrogate:
    """Learn the surrogate from random pairs; held-out pairs decide its form."""
    sizes = rng.integers(1, n_players, size=(_N_PAIRS, 1))
    coalitions = rng.random((_N_PAIRS, n_players)).argsort(axis=1) < sizes
    odd = (values_of(coalitions) - values_of(~coalitions)) / 2
    signs = np.where(coalitions, 1.0, -1.0)
    slopes = np.abs(np.linalg.lstsq(signs, odd, rcond=None)[0])
    strengths = slopes / slopes.mean() + 0.05
    few, held_out = slice(_N_HELD_OUT, None), slice(0, _N_HELD_OUT)

    def error(form: tuple[float, float, float]) -> float:
        power, ratio, noise = form
        surrogate = _fitted(signs[few], odd[few], strengths**power, ratio, noise)
        return float(((odd[held_out] - surrogate(coalitions[held_out])) ** 2).mean())

    power, ratio, noise = min(product(_POWERS, _RATIOS, _NOISES), key=error)
    return _fitted(signs, odd, strengths**power, ratio, noise)


def _fitted(
    signs: FloatArray, odd: FloatArray, weights: FloatArray, ratio: float, noise: float
) -> Surrogate:
    kernel = _kernel(signs, signs, weights, ratio)
    kernel[np.diag_indices(len(kernel))] += noise * ratio
    coefficients = scipy.linalg.solve(kernel, odd, assume_a="pos", overwrite_a=True)
    return Surrogate(signs, weights, ratio, coefficients)


def _kernel(one: FloatArray, other: FloatArray, weights: FloatArray, ratio: float) -> FloatArray:
    """Return Σ_i z_i z′_i / M and the weighted sum over all sets of three players, (n, n′)."""
    first = (one * weights) @ other.T
    third = (one * weights**3) @ other.T
    # The sum of products of three different numbers, from their power sums (Newton); in place and
    # without powers, for these are large.
    products = first * first
    products -= 3 * (weights**2).sum()
    products *= first
    products += 2 * third
    products *= ratio * _scale(weights) / 6
    products += (one / one.shape[1]) @ other.T
    return products


def _scale(weights: FloatArray) -> float:
    """Return what makes the kernel of sets of three 1 on its diagonal."""
    sums = [(weights**k).sum() for k in (1, 2, 3)]
    return float(6 / (sums[0] ** 3 - 3 * sums[0] * sums[1] + 2 * sums[2]))
