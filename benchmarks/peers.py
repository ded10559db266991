"""Estimators for many players: ours, those of ContextCite, LIME and shap, and shapiq.

Approximators of shapiq run in the Python that has it.
"""

import json
import os
import subprocess
import sys
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import comb
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

import numpy as np
import shap
from games import BoolArray, FloatArray, LargeGame, share_inside
from sklearn.linear_model import LassoCV, Ridge

import shap_ext  # noqa: F401  makes shap.Explainer know our algorithms
from shapley_adapters.hierarchies.default_trees import tree_of_places

_WORKER = Path(__file__).with_name("shapiq_worker.py")

_ONE_THREAD = {"OMP_NUM_THREADS": "1", "OMP_THREAD_LIMIT": "1"}
"""LightGBM starts a thread per core in spite of the first variable; on busy cores they wait."""

ValuesOf = Callable[[BoolArray], FloatArray]
"""Coalitions of one row, (C, M), to values, (C,)."""


class UnusableBudgetError(Exception):
    """An approximator cannot use the budget; the message says why."""


@dataclass(frozen=True)
class Approximator:
    """A class of shapiq and how to use it best.

    Attributes
    ----------
    kind : str
        The class.
    options : callable
        Number of players and budget to the options of the class.
    form : str
        What tells it from others of the class, in tables.
    most_per_player : int
        The evaluations a player beyond which it takes too long.
    """

    kind: str
    options: Callable[[int, int], dict[str, Any]]
    form: str = ""
    most_per_player: int = sys.maxsize

    @property
    def name(self) -> str:
        """What tables call it."""
        return " ".join(["shapiq", self.kind, self.form]).strip()


def fixed(kind: str, form: str = "", **options: Any) -> Approximator:
    """Return a class with the same options for all budgets."""
    return Approximator(kind, lambda n_players, budget: options, form)


def _additive_options(n_players: int, budget: int) -> dict[str, Any]:
    """Return sets of three where the budget is half their number; below, errors are huge."""
    n_sets = sum(comb(n_players, size) for size in range(4))
    return {"max_order": 3 if 2 * budget >= n_sets else 2, "pairing_trick": True}


_SHAPLEY: dict[str, Any] = {"index": "SV", "max_order": 1}
_FOLDS: dict[str, Any] = {"adjustment": True, "k_folds": 5, "proxy_model": "lightgbm"}

APPROXIMATORS = (
    fixed("KernelSHAP", pairing_trick=True),
    fixed("LeverageSHAP"),
    fixed("OddSHAP"),
    fixed("OddSHAP", "factor 5", interaction_factor=5),
    Approximator("kADDSHAP", _additive_options),
    fixed("RegressionMSR", "linear", index="SV", proxy_model="linear"),
    fixed("ProxySHAP", "5 folds", **_SHAPLEY, **_FOLDS),
    fixed("PermutationSamplingSV"),
    Approximator("ShaplEIG", lambda n_players, budget: {"show_progress": False}, "", 8),
)
"""Tried on boosted trees and on the ReLU network. OddSHAP's default, one term for ten evaluations,
is its paper's; one for five was better from 16 evaluations a player on. RegressionMSR and ProxySHAP
with their default, XGBoost, were worse than with these. Those that no page shows are left out."""


class ShapiqWorker:
    """A process with shapiq that asks for the values of coalitions.

    Parameters
    ----------
    python : Path
        The interpreter of an environment with shapiq.

    Attributes
    ----------
    version : str
        The version of shapiq.
    """

    def __init__(self, python: Path) -> None:
        self.process = subprocess.Popen(
            [str(python), str(_WORKER)],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            env={**os.environ, **_ONE_THREAD, "PYTHONPATH": ""},
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        # Of their own, for both sides close what they hold.
        self.to_worker = Connection(os.dup(self.process.stdin.fileno()), readable=False)
        self.from_worker = Connection(os.dup(self.process.stdout.fileno()), writable=False)
        try:
            self.version = self.from_worker.recv_bytes().decode()
        except EOFError:
            raise SystemExit(
                f"{python} cannot run shapiq: install benchmarks/requirements-shapiq.txt "
                "there, or leave --shapiq-python out."
            ) from None

    def explain(
        self,
        approximator: Approximator,
        values_of: ValuesOf,
        n_players: int,
        budget: int,
        seed: int,
        of_size: int = 1,
    ) -> FloatArray:
        """Explain one row.

        Returns
        -------
        array, (M,), or (T,)
            The values, or the interactions of all sets of `of_size` players.

        Raises
        ------
        UnusableBudgetError
            If it refuses the budget, or wants more.
        """
        request = {
            "class": approximator.kind,
            "options": approximator.options(n_players, budget),
            "n_players": n_players,
            "budget": budget,
            "seed": seed,
            "of_size": of_size,
        }
        self.to_worker.send_bytes(json.dumps(request).encode())
        n_bytes, n_asked = (n_players + 7) // 8, 0
        while True:
            message = self.from_worker.recv_bytes()
            kind, rest = message[:1], message[1:]
            if kind == b"=":
                return np.frombuffer(rest)
            if kind == b"!":
                raise UnusableBudgetError(rest.decode())
            packed = np.frombuffer(rest, dtype=np.uint8).reshape(-1, n_bytes)
            n_asked += len(packed)
            coalitions = np.unpackbits(packed, axis=1, count=n_players).astype(bool)
            values = values_of(coalitions) if n_asked <= budget else np.empty(0)
            self.to_worker.send_bytes(values.tobytes())


_LIME_WIDTH = 25.0


@dataclass(frozen=True)
class Answer:
    """What an estimator found.

    Attributes
    ----------
    values : array, (M,)
        Attributions.
    inside : float
        The share of Shapley values in 95 % intervals.
    """

    values: FloatArray
    inside: float = np.nan


class CountedGame:
    """A game as a model of 0 and 1, which counts its evaluations."""

    def __init__(self, game: LargeGame) -> None:
        self.game = game
        self.n_evaluations = 0

    def __call__(self, present: FloatArray | BoolArray) -> FloatArray:
        """Return the values of coalitions, (C, M)."""
        self.n_evaluations += len(present)
        return self.game.values(np.asarray(present, dtype=float) > 0.5)

    @property
    def columns(self) -> tuple[FloatArray, FloatArray]:
        """A background row and a row to explain."""
        return np.zeros((1, self.game.n_players)), np.ones((1, self.game.n_players))


Explain = Callable[[CountedGame, int, int], Answer]
"""A game, evaluations and a seed to attributions."""


def limit_of(budget: int) -> int:
    """Return the `max_evals` with which ours evaluate at most so often.

    To look for noise, a call evaluates four of its coalitions, or one of 32, once more.
    """
    return max(4, min(budget - 4, int((budget - 2) * 32 / 33)))


def by_ours(algorithm: str, game: CountedGame, budget: int, seed: int) -> Answer:
    """Explain by an explainer of ours, through shap."""
    background, row = game.columns
    masker = shap.maskers.Independent(background)
    explainer = shap.Explainer(game, masker, algorithm=algorithm, seed=seed)
    values = np.asarray(explainer(row, max_evals=limit_of(budget), silent=True).values)[0]
    exact = game.game.exact[None]
    rounding = 1e-9 * np.abs(exact).sum()
    return Answer(values, share_inside(explainer.last_estimate, exact, slack=rounding))


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


def with_tree(explainer: type, clustering: FloatArray) -> Explain:
    """Return a contender that explains by an explainer of shap's kind on a tree."""

    def contender(game: CountedGame, budget: int, seed: int) -> Answer:
        background, row = game.columns
        masker = shap.maskers.Partition(background, clustering=clustering)
        is_theirs = explainer is shap.explainers.Partition
        np.random.seed(seed)  # noqa: NPY002 # Partition breaks ties by it
        made = explainer(game, masker, **({} if is_theirs else {"seed": seed}))
        # Partition counts the ends apart.
        limit = budget - 2 if is_theirs else limit_of(budget)
        found = made(row, max_evals=limit, silent=True)
        return Answer(np.asarray(found.values)[0])

    return contender


def by_partition(game: CountedGame, budget: int, seed: int) -> Answer:
    """Explain by shap's PartitionExplainer, on a tree that halves the line of the players."""
    n_players = game.game.n_players
    tree = tree_of_places([np.arange(n_players)], n_players).to_linkage(n_players)
    return with_tree(shap.explainers.Partition, tree)(game, budget, seed)


def by_shapiq(
    worker: ShapiqWorker, approximator: Approximator, game: CountedGame, budget: int, seed: int
) -> Answer:
    """Explain by an approximator of shapiq, in its environment."""
    return Answer(worker.explain(approximator, game, game.game.n_players, budget, seed))


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
SHAPIQ = {
    "shapiq, OddSHAP": fixed("OddSHAP", interaction_factor=5),
    # Without the search of hyperparameters, which takes minutes.
    "shapiq, ProxySPEX": fixed("ProxySPEX", **_SHAPLEY, pairing_trick=True, hpo=False),
}


def all_contenders(worker: ShapiqWorker | None) -> dict[str, Explain]:
    """Return ours, and the peers, with shapiq's where there is a process for it."""
    found = OURS | PEERS
    if worker is not None:
        found |= {name: partial(by_shapiq, worker, peer) for name, peer in SHAPIQ.items()}
    return found


def explain(contender: Explain, game: LargeGame, budget: int, seed: int) -> Answer | None:
    """Return an answer; None if the budget is refused, or exceeded."""
    counted = CountedGame(game)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # small budgets
        try:
            answer = contender(counted, budget, seed)
        except (ValueError, UnusableBudgetError, np.linalg.LinAlgError):
            return None
    return answer if counted.n_evaluations <= budget else None
