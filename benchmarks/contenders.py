"""The contenders of the accuracy benchmark: ours through shap, shap's own, and the peers."""

from __future__ import annotations

import argparse
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Protocol

import numpy as np
import shap
from adult import AdultBenchmark
from coalition_games import BoolArray, FloatArray, TabulatedGame
from explained_models import ExplainedModel
from peers import (
    Answer,
    averaged_small_regressions,
    permutation_sampling,
    pooled_regression,
    shear_as_published,
)

import shap_ext  # noqa: F401  makes shap.Explainer know our algorithms

Estimator = Callable[[int, int], Answer]
"""Budget for each row and seed to attributions of all rows."""


@dataclass(frozen=True)
class Contender:
    """An estimator and how to show it.

    Attributes
    ----------
    name : str
        What tables and pictures call it.
    family : str
        "shear", "ablation", "ours", "paper" or "shap".
    estimate : callable
        Budget and seed to an `Answer`.
    """

    name: str
    family: str
    estimate: Estimator


SHEAR = "SHEAR (ours)"
AUTHORS = "SHEAR, authors' options"
PUBLISHED = "SHEAR as published"
ABLATIONS: dict[str, dict[str, Any]] = {
    "no antithetic draws": {"antithetic": False},
    "random cooperators": {"cooperators": "random"},
    "no complement (Eq. 13)": {"complement": "none"},
    "not efficient": {"efficient": False},
}
FAMILY: list[tuple[str, tuple[str], dict[str, Any]]] = [
    ("leastsquares, no replacement", ("leastsquares",), {"replacement": False}),
    ("leastsquares, unbiased", ("leastsquares",), {"unbiased": True}),
    ("simsemivalue as printed", ("simsemivalue",), {"paired": False, "centred": False}),
    ("semivalue", ("semivalue",), {}),
]
"""The rest of SimSHAP's Table 1; the paired and centred sim-semivalue is unbiased least squares."""


def contenders(benchmark: AdultBenchmark, game: TabulatedGame) -> list[Contender]:
    """Return all contenders; those that are not ours see the tabulated game."""
    scores = benchmark.hessian_scores()
    authors = {"cooperators": scores, "complement": "uniform", "efficient": False}

    def ours(algorithm: str, **options: Any) -> Estimator:
        return partial(by_our_explainer, benchmark, algorithm, options)

    def peer(function: Callable[..., Answer], **options: Any) -> Estimator:
        return lambda budget, seed: function(game, budget, np.random.default_rng(seed), **options)

    return [
        Contender(SHEAR, "shear", ours("shear")),
        Contender(AUTHORS, "shear", ours("shear", **authors)),
        Contender(PUBLISHED, "shear", peer(shear_as_published, scores=scores)),
        *(Contender(name, "ablation", ours("shear", **o)) for name, o in ABLATIONS.items()),
        Contender("oddgp (ours)", "ours", ours("oddgp")),
        Contender("oddgp, equal weights (ours)", "ours", ours("oddgp", weights="equal")),
        Contender("randomorder (ours)", "ours", ours("randomorder")),
        Contender("leastsquares, kernel (ours)", "ours", ours("leastsquares")),
        Contender("leastsquares, leverage (ours)", "ours", ours("leastsquares", sizes="leverage")),
        *(Contender(name, "ours", ours(*arguments, **o)) for name, arguments, o in FAMILY),
        Contender("KS, pooled", "paper", peer(pooled_regression, paired=False)),
        Contender("KS-Pair, pooled", "paper", peer(pooled_regression, paired=True)),
        Contender("KS, averaged", "paper", peer(averaged_small_regressions, paired=False)),
        Contender("KS-Pair, averaged", "paper", peer(averaged_small_regressions, paired=True)),
        Contender("PS", "paper", peer(permutation_sampling, antithetic=False)),
        Contender("APS", "paper", peer(permutation_sampling, antithetic=True)),
        Contender("shap permutation", "shap", partial(by_shap_permutation, game)),
        Contender("shap kernel, l1_reg=False", "shap", partial(by_shap_kernel, game)),
    ]


def by_our_explainer(
    explained: ExplainedModel, algorithm: str, options: dict[str, Any], budget: int, seed: int
) -> Answer:
    """Explain all rows through `shap.Explainer`."""
    explainer = our_explainer(explained, algorithm, options, seed)
    explanation = explainer(explained.rows, max_evals=budget, silent=True)
    spent = explainer.last_estimate
    return Answer(
        explanation.values, float(spent.evaluations.mean()), float(spent.backward_passes.max())
    )


def our_explainer(
    explained: ExplainedModel, algorithm: str, options: dict[str, Any], seed: int
) -> Any:
    """Return an explainer of ours, by shap's door."""
    return shap.Explainer(
        explained.model,
        explained.reference,
        algorithm=algorithm,
        seed=seed,
        feature_names=explained.column_names,
        groups=explained.groups,
        **options,
    )


class GameOfAllRows(Protocol):
    """The games of all rows, that take the same coalitions."""

    @property
    def n_players(self) -> int:
        """M, the number of players."""

    def __call__(self, coalitions: BoolArray) -> FloatArray:
        """Return the values, (R, C), of coalitions, (1, C, M)."""


class _CountingModel:
    """A game as a model of M columns, 1 or 0, with the games of all rows as its outputs."""

    def __init__(self, game: GameOfAllRows) -> None:
        self.game = game
        self.n_rows_run = 0

    def __call__(self, present: FloatArray) -> FloatArray:
        self.n_rows_run += len(present)
        return self.game(present[None] > 0.5).T

    @property
    def columns(self) -> tuple[FloatArray, FloatArray]:
        """A background row and a row to explain."""
        return np.zeros((1, self.game.n_players)), np.ones((1, self.game.n_players))


def by_shap_permutation(game: GameOfAllRows, budget: int, seed: int) -> Answer:
    """Explain all rows by shap's permutation explainer, with the same permutations."""
    model = _CountingModel(game)
    background, row = model.columns
    masker = shap.maskers.Independent(background)
    explainer = shap.PermutationExplainer(model, masker, seed=seed)
    values = explainer(row, max_evals=budget, silent=True).values[0].T
    return Answer(values, model.n_rows_run)


def by_shap_kernel(game: GameOfAllRows, budget: int, seed: int) -> Answer:
    """Explain all rows by shap's kernel explainer, with the same coalitions."""
    model = _CountingModel(game)
    background, row = model.columns
    np.random.seed(seed)  # noqa: NPY002  it draws from the global generator
    explainer = shap.KernelExplainer(model, background)
    # It counts the two end points apart. By default, it would keep no more than ten players.
    values = explainer.shap_values(row, nsamples=budget - 2, l1_reg=False, silent=True)[0].T
    return Answer(values, model.n_rows_run)


def add_choice_arguments(parser: argparse.ArgumentParser) -> None:
    """Add which contenders to run, and which not."""
    parser.add_argument("--only", nargs="+", metavar="WORD", help="contenders by parts of names")
    parser.add_argument("--without", nargs="+", default=[], metavar="WORD", help="the same")


def takes_part(name: str, arguments: argparse.Namespace) -> bool:
    """Tell whether the arguments let a contender take part."""
    is_named = arguments.only is None or any(word in name for word in arguments.only)
    return is_named and not any(word in name for word in arguments.without)
