"""Estimators for many players: ours, those of ContextCite, LIME, shap and shapiq."""

from __future__ import annotations

import time
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial

import numpy as np
import shap
from coalition_games import BoolArray, FloatArray, IntArray
from large_games import LargeGame
from shapiq_contenders import Approximator, ShapiqWorker, UnusableBudgetError
from sklearn.linear_model import LassoCV, Ridge

import shap_ext  # noqa: F401  makes shap.Explainer know our algorithms

_LIME_WIDTH = 25.0


@dataclass(frozen=True)
class Answer:
    """What an estimator found.

    Attributes
    ----------
    values : array, (M,)
        Attributions.
    inside : array of bool, (M,), optional
        Whether 95 % intervals hold the Shapley values.
    """

    values: FloatArray
    inside: BoolArray | None = None


class CountedGame:
    """A game as a model of 0 and 1, which counts its evaluations and its own time."""

    def __init__(self, game: LargeGame) -> None:
        self.game = game
        self.n_evaluations = 0
        self.seconds = 0.0

    def __call__(self, present: FloatArray | BoolArray) -> FloatArray:
        """Return the values of coalitions, (C, M)."""
        started = time.process_time()
        found = self.game.values(np.asarray(present, dtype=float) > 0.5)
        self.seconds += time.process_time() - started
        self.n_evaluations += len(present)
        return found

    @property
    def columns(self) -> tuple[FloatArray, FloatArray]:
        """A background row and a row to explain."""
        return np.zeros((1, self.game.n_players)), np.ones((1, self.game.n_players))


Explain = Callable[[CountedGame, int, int], Answer]
"""A game, evaluations and a seed to attributions."""


def by_ours(algorithm: str, game: CountedGame, budget: int, seed: int) -> Answer:
    """Explain by an explainer of ours, through shap."""
    background, row = game.columns
    masker = shap.maskers.Independent(background)
    explainer = shap.Explainer(game, masker, algorithm=algorithm, seed=seed)
    # From 100 on, a call evaluates two coalitions twice, which come on top: it looks for noise.
    limit = budget if budget < 100 else budget - 2
    values = np.asarray(explainer(row, max_evals=limit, silent=True).values)[0]
    lower, upper = explainer.last_estimate.interval()
    exact, rounding = game.game.exact, 1e-9 * np.abs(game.game.exact).sum()
    inside = (lower[0, :, 0] - rounding <= exact) & (exact <= upper[0, :, 0] + rounding)
    return Answer(values, inside)


def by_lasso(game: CountedGame, budget: int, seed: int) -> Answer:
    """Explain by a lasso on random halves, as ContextCite does (Cohen-Wang et al., 2024).

    The penalty is chosen by cross-validation rather than fixed, which only helps it.
    """
    rng = np.random.default_rng(seed)
    present = rng.random((budget, game.game.n_players)) < 0.5
    values = game(present)
    lasso = LassoCV(cv=min(5, budget // 2), alphas=30, tol=1e-3, max_iter=500)
    return Answer(np.asarray(lasso.fit(present - 0.5, values).coef_))


def by_lime(game: CountedGame, budget: int, seed: int) -> Answer:
    """Explain by a ridge with LIME's kernel and its draws for texts (Ribeiro et al., 2016)."""
    rng = np.random.default_rng(seed)
    n_players = game.game.n_players
    sizes = np.append(n_players, n_players - rng.integers(1, n_players + 1, size=budget - 1))
    present = rng.random((budget, n_players)).argsort(axis=1) < sizes[:, None]
    distances = 100 * (1 - np.sqrt(sizes / n_players))
    weights = np.exp(-((distances / _LIME_WIDTH) ** 2) / 2)
    fitted = Ridge(alpha=1.0).fit(present, game(present), sample_weight=weights)
    return Answer(np.asarray(fitted.coef_))


def by_kernel(game: CountedGame, budget: int, seed: int, l1_reg: object = False) -> Answer:
    """Explain by shap's KernelExplainer."""
    background, row = game.columns
    np.random.seed(seed)  # noqa: NPY002  it draws from the global generator
    explainer = shap.KernelExplainer(game, background)
    # It counts the two end points apart.
    values = explainer.shap_values(row, nsamples=budget - 2, l1_reg=l1_reg, silent=True)
    return Answer(np.asarray(values)[0])


def by_permutation(game: CountedGame, budget: int, seed: int) -> Answer:
    """Explain by shap's PermutationExplainer."""
    if budget < 2 * game.game.n_players + 1:
        raise UnusableBudgetError("fewer than one permutation")
    background, row = game.columns
    explainer = shap.PermutationExplainer(game, shap.maskers.Independent(background), seed=seed)
    return Answer(np.asarray(explainer(row, max_evals=budget, silent=True).values)[0])


def by_partition(game: CountedGame, budget: int, seed: int) -> Answer:
    """Explain by shap's PartitionExplainer, on a tree that halves the line of the players."""
    background, row = game.columns
    masker = shap.maskers.Partition(background, clustering=halving_tree((game.game.n_players,)))
    explainer = shap.PartitionExplainer(game, masker)
    # It evaluates pairs, and one more than it may.
    return Answer(np.asarray(explainer(row, max_evals=budget - 2, silent=True).values)[0])


def halving_tree(shape: tuple[int, ...]) -> FloatArray:
    """Return scipy's form of the tree that halves a grid along its longer side, again and again."""
    places = np.arange(int(np.prod(shape))).reshape(shape)
    merges: list[tuple[float, float, float, float]] = []

    def merge(block: IntArray) -> int:
        if block.size == 1:
            return int(block.item())
        axis = int(np.argmax(block.shape))
        first, second = np.array_split(block, 2, axis)
        own = merge(first), merge(second)
        merges.append((*own, float(block.size), float(block.size)))
        return int(places.size + len(merges) - 1)

    merge(places)
    return np.array(merges)


def by_shapiq(
    worker: ShapiqWorker, approximator: Approximator, game: CountedGame, budget: int, seed: int
) -> Answer:
    """Explain by an approximator of shapiq, in its environment."""
    found, _, _ = worker.explain(approximator, game, game.game.n_players, budget, seed)
    return Answer(found)


def _shapley(**options: object) -> Callable[[int, int], dict[str, object]]:
    return lambda n_players, budget: {"index": "SV", "max_order": 1, **options}


OURS: dict[str, Explain] = {
    name: partial(by_ours, name) for name in ("oddgp", "leastsquares", "randomorder")
}
PARTITION = "shap, partition"
PEERS: dict[str, Explain] = {
    "lasso (ContextCite)": by_lasso,
    "ridge (LIME)": by_lime,
    "shap, kernel": by_kernel,
    "shap, kernel, default": partial(by_kernel, l1_reg="num_features(10)"),
    "shap, permutation": by_permutation,
    PARTITION: by_partition,
}
SHAPIQ: dict[str, Approximator] = {
    "shapiq, OddSHAP": Approximator("OddSHAP", lambda n_players, budget: {"interaction_factor": 5}),
    # Without the search of hyperparameters, which takes minutes.
    "shapiq, ProxySPEX": Approximator("ProxySPEX", _shapley(pairing_trick=True, hpo=False)),
    "shapiq, SPEX": Approximator("SPEX", _shapley()),
}


def all_contenders(worker: ShapiqWorker | None) -> dict[str, Explain]:
    """Return ours, and the peers, with shapiq's where there is a process for it."""
    found = OURS | PEERS
    if worker is not None:
        found |= {name: partial(by_shapiq, worker, peer) for name, peer in SHAPIQ.items()}
    return found


def explain(
    contender: Explain, game: LargeGame, budget: int, seed: int
) -> tuple[Answer, float, float] | None:
    """Return an answer, its own seconds and those of the model; None if the budget is refused.

    Seconds are of this process's processor, without those of shapiq in its own process.
    """
    counted = CountedGame(game)
    started = time.process_time()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small budgets
        try:
            answer = contender(counted, budget, seed)
        except (ValueError, UnusableBudgetError, np.linalg.LinAlgError):
            return None
    if counted.n_evaluations > budget:
        return None
    return answer, time.process_time() - started - counted.seconds, counted.seconds
