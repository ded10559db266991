"""Every public estimator of Shapley values on one game, each through its own call.

A game is given as a model of M columns that are 1 for present players and 0 for absent ones, with
zeros as the only background row. An estimator whose package is not installed is named as such.
"""

from __future__ import annotations

import os
import sys
import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cache, partial
from importlib import import_module
from importlib.util import find_spec
from math import comb
from pathlib import Path
from typing import Any

import numpy as np
import shap
import torch
from captum.attr import KernelShap, ShapleyValueSampling
from coalition_games import BoolArray, FloatArray
from scipy.cluster.hierarchy import linkage
from shapiq_contenders import APPROXIMATORS, Approximator, ShapiqWorker

import shap_ext  # noqa: F401  makes shap.Explainer know our algorithms

SHAPIQ_VARIABLE = "SHAPLEY_EXT_SHAPIQ_PYTHON"
"""Names a Python with shapiq, where this one has none."""

_NORMAL_95 = 1.96
_TOO_SLOW = ("ProxySHAP", "ProxySPEX", "SPEX", "ShaplEIG")


@dataclass
class OneGame:
    """The game of one row.

    Attributes
    ----------
    values_of : callable
        Coalitions, (C, M), to values, (C,).
    n_players : int
        M.
    n_evaluations : int
        How many coalitions were evaluated.
    seconds : float
        Time spent on evaluating them.
    """

    values_of: Callable[[BoolArray], FloatArray]
    n_players: int
    n_evaluations: int = 0
    seconds: float = 0.0

    def __call__(self, present: Any) -> FloatArray:
        """Return the values, (C,), of columns that are 1 or 0, (C, M)."""
        started = time.perf_counter()
        coalitions = np.asarray(present, dtype=np.float64).reshape(-1, self.n_players) > 0.5
        values = self.values_of(coalitions)
        self.n_evaluations += len(coalitions)
        self.seconds += time.perf_counter() - started
        return values

    @property
    def background(self) -> FloatArray:
        """The row without players, (1, M)."""
        return np.zeros((1, self.n_players))

    @property
    def row(self) -> FloatArray:
        """The row of all players, (1, M)."""
        return np.ones((1, self.n_players))


@dataclass(frozen=True)
class Values:
    """Attributions, (M,), and half the width of a 95 % interval of each, where there is one."""

    values: FloatArray
    half_width: FloatArray | None = None


Explain = Callable[[OneGame, int, int], Values]
"""A game, a budget and a seed to attributions."""


@dataclass(frozen=True)
class PublicEstimator:
    """An estimator.

    Attributes
    ----------
    name : str
        What tables call it.
    explain : callable or None
        None if it takes no part.
    reason : str
        Why it takes no part.
    """

    name: str
    explain: Explain | None = None
    reason: str = ""


def public_estimators() -> Sequence[PublicEstimator]:
    """Return all estimators, ours first."""
    ours = [
        PublicEstimator(f"{name} (ours)", partial(_by_ours, name))
        for name in ("oddgp", "shear", "leastsquares", "randomorder")
    ]
    of_shap: dict[str, Explain] = {
        "shap permutation": _by_shap_permutation,
        "shap kernel": partial(_by_shap_kernel, {}),
        "shap kernel, l1_reg=False": partial(_by_shap_kernel, {"l1_reg": False}),
        "shap sampling": _by_shap_sampling,
        "shap partition (Owen values)": _by_shap_partition,
    }
    return [
        *ours,
        *(PublicEstimator(name, explain) for name, explain in of_shap.items()),
        PublicEstimator("captum ShapleyValueSampling", _by_captum_sampling),
        PublicEstimator("captum KernelShap", _by_captum_kernel),
        *_of_shapiq(),
        _if_installed("LightSHAP kernel", "lightshap", partial(_by_lightshap, "kernel")),
        _if_installed("LightSHAP permutation", "lightshap", partial(_by_lightshap, "permutation")),
        _if_installed("fastshap KernelExplainer", "fastshap", _by_fastshap),
        _if_installed("shapley-regression", "shapreg", partial(_by_regression, "shapley")),
        _if_installed("shapley-regression, unbiased", "shapreg",
                      partial(_by_regression, "shapley_unbiased")),
        _if_installed("shapley-regression, sampling", "shapreg", _by_shapreg_sampling),
        PublicEstimator("sage-importance", None, "explains the loss over a data set, not a row"),
        PublicEstimator("leverageshap", None, "not on PyPI; see shapiq LeverageSHAP"),
    ]  # fmt: skip


def _if_installed(name: str, module: str, explain: Explain) -> PublicEstimator:
    if find_spec(module) is None:
        return PublicEstimator(name, None, "not installed")
    return PublicEstimator(name, explain)


def _by_ours(algorithm: str, game: OneGame, budget: int, seed: int) -> Values:
    explainer = shap.Explainer(game, game.background, algorithm=algorithm, seed=seed)
    values = explainer(game.row, max_evals=budget, silent=True).values[0]
    lower, upper = explainer.last_estimate.interval(0.95)
    return Values(values, (upper - lower)[0, :, 0] / 2)


def _by_shap_permutation(game: OneGame, budget: int, seed: int) -> Values:
    masker = shap.maskers.Independent(game.background)
    explainer = shap.PermutationExplainer(game, masker, seed=seed)
    return Values(explainer(game.row, max_evals=budget, silent=True).values[0])


def _by_shap_kernel(options: dict[str, Any], game: OneGame, budget: int, seed: int) -> Values:
    np.random.seed(seed)  # noqa: NPY002  it draws from the global generator
    explainer = shap.KernelExplainer(game, game.background)
    return Values(explainer.shap_values(game.row, nsamples=budget - 2, silent=True, **options)[0])


def _by_shap_sampling(game: OneGame, budget: int, seed: int) -> Values:
    np.random.seed(seed)  # noqa: NPY002
    explainer = shap.SamplingExplainer(game, game.background)
    # A sample of it is two evaluations.
    found = explainer.shap_values(game.row, nsamples=(budget - 2) // 2, silent=True)
    return Values(found[0])


def _by_shap_partition(game: OneGame, budget: int, seed: int) -> Values:
    del seed
    positions = np.arange(game.n_players, dtype=float)[:, None]
    masker = shap.maskers.Partition(game.background, clustering=linkage(positions, "complete"))
    explainer = shap.PartitionExplainer(game, masker)
    return Values(explainer(game.row, max_evals=budget, silent=True).values[0])


def _by_captum_sampling(game: OneGame, budget: int, seed: int) -> Values:
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    method = ShapleyValueSampling(partial(_as_tensor, game))
    orders = max((budget - 2) // game.n_players, 1)
    inputs, baselines = torch.as_tensor(game.row), torch.as_tensor(game.background)
    found = method.attribute(
        inputs, baselines, n_samples=orders, perturbations_per_eval=game.n_players
    )
    return Values(found[0].double().numpy())


def _by_captum_kernel(game: OneGame, budget: int, seed: int) -> Values:
    torch.manual_seed(seed)
    np.random.seed(seed)  # noqa: NPY002
    method = KernelShap(partial(_as_tensor, game))
    inputs, baselines = torch.as_tensor(game.row), torch.as_tensor(game.background)
    found = method.attribute(inputs, baselines, n_samples=budget - 2, perturbations_per_eval=64)
    return Values(found[0].double().numpy())


def _as_tensor(game: OneGame, present: torch.Tensor) -> torch.Tensor:
    return torch.as_tensor(game(present.numpy()))


def _by_lightshap(method: str, game: OneGame, budget: int, seed: int) -> Values:
    explain_any = import_module("lightshap").explain_any
    n_players = game.n_players
    # An iteration of permutations is one order and its reverse; of the kernel, as many draws.
    of_singles = 2 * n_players
    fixed = of_singles if method == "permutation" or n_players > 16 else n_players * (n_players + 1)
    iterations = max((budget - 2 - fixed) // of_singles, 1)
    found = explain_any(
        game, game.row, game.background,
        method=method, max_iter=iterations, tol=1e-12, random_state=seed, verbose=False,
    )  # fmt: skip
    errors = np.asarray(found.standard_errors, dtype=np.float64).ravel()
    return Values(np.asarray(found.shap_values, dtype=np.float64).ravel(), _NORMAL_95 * errors)


def _by_fastshap(game: OneGame, budget: int, seed: int) -> Values:
    """Explain with the largest coalition sizes that the budget pays in full; nothing is drawn."""
    del seed
    n_players, n_sizes, spent = game.n_players, 0, 2
    while spent <= budget and n_sizes < n_players // 2:
        n_sizes += 1
        spent += 2 * comb(n_players, n_sizes)
    n_sizes = max(n_sizes - 1, 1)
    explainer = import_module("fastshap").KernelExplainer(game, game.background)
    found = explainer.calculate_shap_values(game.row, n_coalition_sizes=n_sizes)
    return Values(np.asarray(found, dtype=np.float64).ravel()[:n_players])


def _by_regression(module: str, game: OneGame, budget: int, seed: int) -> Values:
    np.random.seed(seed)  # noqa: NPY002
    regression = import_module(f"shapreg.{module}").ShapleyRegression
    n_pairs = (budget - 2) // 2
    of_batch = max(n_pairs // 16, 1)  # the deviations come from sixteen batches or more
    found = regression(
        _regression_game(game), batch_size=of_batch, detect_convergence=False,
        n_samples=n_pairs // of_batch * of_batch, bar=False,
    )  # fmt: skip
    return Values(found.values, _NORMAL_95 * found.std)


def _by_shapreg_sampling(game: OneGame, budget: int, seed: int) -> Values:
    np.random.seed(seed)  # noqa: NPY002
    sampling = import_module("shapreg.shapley_sampling").ShapleySampling
    n_orders = max((budget - 2) // game.n_players, 1)
    found = sampling(
        _regression_game(game), batch_size=1, detect_convergence=False, n_samples=n_orders,
        bar=False,
    )  # fmt: skip
    return Values(found.values, _NORMAL_95 * found.std)


def _regression_game(game: OneGame) -> Any:
    base = import_module("shapreg.games").CooperativeGame

    def start(self: Any) -> None:
        self.players = game.n_players

    members = {"__init__": start, "__call__": lambda self, coalitions: game(coalitions)}
    return type("GameOfOneRow", (base,), members)()


def _of_shapiq() -> list[PublicEstimator]:
    worker = _shapiq_worker()
    return [_one_of_shapiq(one, worker) for one in APPROXIMATORS]


def _one_of_shapiq(one: Approximator, worker: ShapiqWorker | None) -> PublicEstimator:
    if worker is None:
        return PublicEstimator(one.name, None, "not installed")
    if one.kind in _TOO_SLOW:
        return PublicEstimator(one.name, None, "too slow here; see benchmarks/oddgp_accuracy.py")
    return PublicEstimator(one.name, partial(_by_shapiq, worker, one))


@cache
def _shapiq_worker() -> ShapiqWorker | None:
    named = os.environ.get(SHAPIQ_VARIABLE)
    if named is None and find_spec("shapiq") is None:
        return None
    return ShapiqWorker(Path(named or sys.executable))


def _by_shapiq(
    worker: ShapiqWorker, one: Approximator, game: OneGame, budget: int, seed: int
) -> Values:
    values, _, _ = worker.explain(one, game, game.n_players, budget, seed)
    return Values(values)
