"""The mechanisms of odd Gaussian-process regression, and how each is switched off."""

from __future__ import annotations

import importlib
import pkgutil
from collections.abc import Callable
from dataclasses import dataclass
from types import ModuleType
from typing import Any

import numpy as np

from shapley_adapters.estimators import odd_gp
from shapley_adapters.estimators.odd_gp import (
    design,
    estimator,
    exact_games,
    expected_triples,
    left_out_values,
    posterior,
    posteriors_of_rows,
    prior_fitting,
    prior_grid,
    smooth_games,
    sparse_interactions,
    variances_of_features,
    wider_intervals,
)

PACKAGE: list[ModuleType] = [
    importlib.import_module(f"{odd_gp.__name__}.{module.name}")
    for module in pkgutil.iter_modules(odd_gp.__path__)
]

CACHES: list[Callable[[], None]] = [
    prior_grid._cache.clear,
    prior_fitting._cache.clear,
    prior_grid._families.cache_clear,
]
"""What keeps results that a switch may change."""


@dataclass(frozen=True)
class Mechanism:
    """What to replace, and the code and the numbers that would leave."""

    patches: tuple[tuple[Any, str, Any], ...]
    sources: tuple[Any, ...] = ()
    numbers: tuple[Any, ...] = ()


def _no_triples(kernel: Any, targets: Any, prior: Any) -> Any:
    return [sparse_interactions.SparseInteractions.empty() for _ in targets], prior


def _drawn_pairs(n_players: int, n_pairs: int, rng: np.random.Generator) -> Any:
    n_there = 2 ** (n_players - 1) - 1 if n_players < 60 else n_pairs
    singles = np.eye(n_players, dtype=bool)[rng.permutation(n_players)]
    singles = singles[: min(n_pairs, n_there)]
    return design._topped_up(singles, min(n_pairs, n_there), rng, 2)


def _no_scale(self: Any, factors: Any, whitened: Any, spread: Any) -> Any:
    return np.ones_like(spread), np.full_like(spread, np.inf)


def _nothing(signs: Any, targets: Any, means: Any, variances: Any) -> Any:
    return np.zeros_like(means)


def _no_additive(signs: Any, targets: Any) -> Any:
    return exact_games.ExactFit.none(signs.shape[1], targets.shape[1])


MECHANISMS: dict[str, Mechanism] = {
    "greedy design": Mechanism(((estimator, "spread_pairs", _drawn_pairs),), (design._Search,)),
    "choice by smoothness": Mechanism(
        ((estimator, "n_pairs_before_choice", lambda n_players, n_pairs: 0),),
        (smooth_games, design.n_pairs_before_choice, design.pairs_for_smooth_games),
    ),
    "priors of all twos": Mechanism(
        ((posterior, "has_all_twos", lambda signs: False),),
        (posterior.choices_around, posterior.has_all_twos),
    ),
    "prior of more noise": Mechanism(((posterior, "_MORE_NOISE", 1.0),)),
    "learned strengths": Mechanism(
        ((posteriors_of_rows, "fit_priors", lambda signs, targets, start, _: start),),
        (prior_fitting,),
    ),
    "last two steps of the fit": Mechanism(((prior_fitting, "_OVERRELAXATION", (3.0, 1.0)),)),
    "grid of 150 starts, of 12": Mechanism(
        (
            (prior_grid, "_LEVELS", (3.0,)),
            (prior_grid, "_INTERACTIONS", np.array([1e-4, 1e-2, 1e-1, 1.0])),
            (prior_grid, "_NOISE", (1e-4, 1e-2, 0.3)),
        ),
    ),
    "sparse triples": Mechanism(
        ((posteriors_of_rows, "find_sparse_interactions", _no_triples),),
        (sparse_interactions, variances_of_features),
    ),
    "shares of all others": Mechanism(
        ((sparse_interactions, "_SHARES", ()),), (sparse_interactions._with_less_of_others,)
    ),
    "second look": Mechanism(
        ((sparse_interactions, "_LOOKS", 1),), (sparse_interactions._energies,)
    ),
    "expected triples": Mechanism(
        ((posteriors_of_rows, "expected_triples", lambda *_: {}),),
        (expected_triples,),
    ),
    "exact terms": Mechanism(
        ((posteriors_of_rows, "with_exact_games", lambda k, t, p, s, found: found),),
        (
            exact_games.with_exact_games,
            exact_games.ProductsOfSigns,
            exact_games._posterior_coefficients,
            exact_games._exact_values,
            exact_games._fitted,
            exact_games._leaves_remainder,
        ),
    ),
    "additive games": Mechanism(
        ((posteriors_of_rows, "additive_games", _no_additive),), (exact_games.additive_games,)
    ),
    "scale by left-out values": Mechanism(
        ((left_out_values.SizeWeights, "scale_and_freedom", _no_scale),), (left_out_values,)
    ),
    "growth by the fit": Mechanism(
        ((posterior, "growth_by_fit", lambda n, n_fitted: 1.0),), (posterior.growth_by_fit,)
    ),
    "two degrees of freedom of few": Mechanism(((estimator, "_FREEDOM_OF_FEW", np.inf),)),
    "effects that fade": Mechanism(
        ((posteriors_of_rows, "variances_of_fading", _nothing),),
        (wider_intervals.variances_of_fading, wider_intervals._slopes),
    ),
    "jumps of few numbers": Mechanism(
        (
            (posteriors_of_rows, "variances_of_jumps", _nothing),
            (estimator, "variances_of_jumps", _nothing),
        ),
        (wider_intervals.variances_of_jumps, wider_intervals._steps, wider_intervals._are_sums),
    ),
}
