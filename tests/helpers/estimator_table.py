"""All estimators with all options that change what they do, and what may be asked of each.

A new estimator needs rows here: lists of names and classes, bounds and most budgets are made from
these rows. Tests whose budgets are plain numbers suit estimators that need no more than SHEAR.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

import shap_ext
import shapley_adapters as core
from tests.helpers.optional import captum_ext


@dataclass(frozen=True)
class Row:
    """One estimator with its options, in the core and in both hosts.

    Attributes
    ----------
    name : str
        The name of the estimator, and of its classes in the hosts where these have no other.
    options : dict
        Options of the estimator, named alike everywhere. The first row of a class has options that
        say the same as the defaults, or none.
    least : callable
        The least budget that the documentation promises, as a function of the number of players.
    is_unbiased, is_efficient, exact_on_additive, exact_on_quadratic : bool
        What its documentation promises; efficiency and exactness hold up to rounding.
    rounding : float
        How exact exactness is.
    is_linear : bool
        Whether it is linear in the game, given the draws.
    ignores_level : bool
        Whether adding a constant to the game changes no estimate.
    keeps_null_players : bool
        Whether a null player that nobody has set aside gets exactly 0.
    error_ratio : tuple of float
        Between which bounds the mean squared standard error is, divided by the variance over seeds.
        The variance of 400 seeds, summed over 4 games and 7 free players, is known to about 2 %,
        hence 10 % to both sides of what is expected: 1 where units are independent.
    least_error_ratio : float
        The least that this ratio may be for a single player, whose variance is known to 7 %.
    learned_rounding : float
        By how much results may differ where values differ in their last digits. Hyperparameters
        that a row learns depend on inverses of nearly singular matrices. Measured: 1e-5 of 3.4.
    fits_outputs_together : bool
        Whether the outputs of a row share what they teach, so that those of another output change
        an estimate.
    fits_folds : bool
        Whether an estimate fits a process to each of several folds, which takes forty times as long
        as other estimates. Tests over seeds have a third of the seeds then.
    """

    id: str
    name: str
    options: dict[str, Any] = field(default_factory=dict)
    least: Callable[[int], int] = field(kw_only=True)
    is_unbiased: bool = True
    is_efficient: bool = True
    keeps_null_players: bool = True
    exact_on_additive: bool = True
    exact_on_quadratic: bool = True
    rounding: float = 1e-10
    is_linear: bool = True
    ignores_level: bool = True
    is_exact: bool = False
    error_ratio: tuple[float, float] = (0.9, 1.1)
    least_error_ratio: float = 0.65
    learned_rounding: float = 1e-9
    fits_outputs_together: bool = False
    fits_folds: bool = False

    @property
    def estimator(self) -> type:
        """The class of the core, whose `best` is `OddGP`."""
        return getattr(core, "OddGP" if self.name == "Best" else self.name)

    @property
    def attribution(self) -> type:
        """The class of captum's host, in which unbiased regressions are an option."""
        return getattr(captum_ext, self.name.removeprefix("Unbiased"))

    @property
    def explainer(self) -> type:
        """The class of shap's host, whose own `ExactExplainer` enumeration is not to hide."""
        name = "Enumeration" if self.name == "Exact" else self.name.removeprefix("Unbiased")
        return getattr(shap_ext, f"{name}Explainer")

    @property
    def algorithm(self):
        """The name of the explainer in `shap.Explainer(..., algorithm=…)`."""
        (name,) = (n for n, one in shap_ext.algorithms().items() if one is self.explainer)
        return name

    @property
    def cooperators(self):
        """How SHEAR finds cooperators; None for the others."""
        return self.options.get("cooperators", "auto") if self.estimator is core.Shear else None

    @property
    def is_posterior(self):
        """Whether its errors speak of the game given its values, not of the draws."""
        return self.estimator is core.OddGP and not self.options.get("unbiased")

    def budget(self, n_players, usual):
        """Return a budget that leaves something to chance: `usual`, or more where it needs more.

        Exact estimators evaluate all coalitions. Two least budgets suffice for standard errors.
        """
        if self.is_exact:
            return 2**n_players
        least = self.least(n_players)
        return usual if least <= usual else min(2 * least, 2**n_players - 1)

    def n_seeds(self, usual):
        """Return over how many seeds a test repeats its estimates."""
        return usual // 3 if self.fits_folds else usual

    def build(self):
        """Return the core's estimator."""
        if self.estimator is core.UnbiasedLeastSquares:  # an option of least squares in the hosts
            return self.estimator(paired=self.options["paired"])
        own = {name: value for name, value in self.options.items() if name != "graph"}
        return self.estimator(**own)

    def estimate(self, game, budget=None, seed=0, **options):
        """Run the estimator on a game of the core."""
        if "graph" in self.options:
            options = {"graph": core.PlayerGraph.line(game.n_players), **options}
        settings = core.Settings(seed=seed, budget=budget, **options)
        return core.estimate(game, self.build(), settings)


def _differences(n_players):
    return n_players * (n_players + 1) // 2


def _shear(name, **facts):
    """Return a row of SHEAR.

    It takes the highest interaction that strata tell for noise, and draws variances together by
    their logarithms, whose mean is less; the largest of them become smaller.
    """
    options = facts.pop("options", {})
    n_scores = _differences if options.get("cooperators") == "difference" else lambda m: 0
    return Row(
        name,
        "Shear",
        options,
        least=lambda m: 4 * m + 2 + n_scores(m),
        error_ratio=(0.75, 1.2),
        least_error_ratio=0.5,
        **facts,
    )


# A residual is divided by 1 − its leverage h, which makes its square too large by up to
# 1/(1 − h); h averages 7/30 or less here.
_OF_LEAST_SQUARES: dict[str, Any] = {
    "is_unbiased": False,  # only in the limit
    "keeps_null_players": False,
    "error_ratio": (0.9, 1.1 / (1 - 7 / 30)),
}

_OF_PROCESS: dict[str, Any] = {
    "keeps_null_players": False,
    "is_linear": False,
    "rounding": 1e-8,  # small ridges keep its matrices invertible
    "learned_rounding": 3e-5,
    "fits_outputs_together": True,
    "least": lambda m: 4,
}


def _constant(least: int) -> Callable[[int], int]:
    return lambda m: least


ESTIMATORS = [
    Row("exact", "Exact", is_exact=True, least=lambda m: 2**m),
    Row("random order", "RandomOrder", least=_constant(4)),
    Row(
        "random order, single",
        "RandomOrder",
        {"antithetic": False},
        exact_on_quadratic=False,
        least=_constant(3),
    ),
    *(
        Row(
            f"least squares, {'paired' if paired else 'single'}, {sizes}",
            "LeastSquares",
            {"paired": paired, "sizes": sizes},
            exact_on_quadratic=paired,
            least=_constant(4 if paired else 3),
            **_OF_LEAST_SQUARES,
        )
        for paired in (True, False)
        for sizes in ("kernel", "leverage")
    ),
    *(
        Row(
            f"least squares, no replacement, {'paired' if paired else 'single'}, {sizes}",
            "LeastSquares",
            {"paired": paired, "sizes": sizes, "replacement": False},
            is_linear=not paired,  # so few are drawn that a ridge is chosen
            exact_on_quadratic=paired,
            least=_constant(4 if paired else 3),
            **_OF_LEAST_SQUARES,
        )
        for paired, sizes in ((True, "kernel"), (True, "leverage"), (False, "kernel"))
    ),
    *(
        Row(
            f"unbiased least squares, {'paired' if paired else 'single'}",
            "UnbiasedLeastSquares",
            {"unbiased": True, "paired": paired},
            keeps_null_players=False,
            exact_on_additive=False,
            exact_on_quadratic=False,
            least=_constant(4 if paired else 3),
        )
        for paired in (True, False)
    ),
    *(
        Row(
            f"sim-semivalue, {name}",
            "SimSemivalue",
            options,
            keeps_null_players=False,
            exact_on_additive=False,
            exact_on_quadratic=False,
            ignores_level=name != "as printed",
            least=_constant(4 if name == "paired" else 3),
        )
        for name, options in (
            ("paired", {}),
            ("single", {"paired": False}),
            ("as printed", {"paired": False, "centred": False}),
        )
    ),
    *(
        Row(
            f"odd GP, {weights} weights",
            "OddGP",
            {"weights": weights},
            is_unbiased=False,  # it shrinks
            **_OF_PROCESS,
        )
        for weights in ("learned", "equal")
    ),
    Row(
        "best",
        "Best",
        is_unbiased=False,  # as odd GP, where it does not enumerate
        **_OF_PROCESS,
    ),
    Row(
        "odd GP, unbiased",
        "OddGP",
        {"weights": "equal", "unbiased": True},
        fits_folds=True,
        **_OF_PROCESS,
        error_ratio=(0.9, 1.4),  # folds are taken to err alike, more than they do here
    ),
    Row("semivalue", "Semivalue", keeps_null_players=False, least=lambda m: 4 * m + 2),
    Row(
        "semivalue, single",
        "Semivalue",
        {"antithetic": False},
        keeps_null_players=False,
        exact_on_quadratic=False,
        least=lambda m: 2 * m + 2,
    ),
    Row(
        "semivalue, not efficient",
        "Semivalue",
        {"efficient": False},
        is_efficient=False,
        least=lambda m: 4 * m + 2,
    ),
    _shear("shear, auto"),
    _shear("shear", options={"cooperators": "difference"}),
    _shear("shear, random", options={"cooperators": "random"}, keeps_null_players=False),
    Row(
        "shear, learned",
        "Shear",
        {"cooperators": "learned"},
        fits_folds=True,
        keeps_null_players=False,
        is_linear=False,
        rounding=1e-6,  # noise of a kernel keeps its matrices invertible
        learned_rounding=3e-5,
        fits_outputs_together=True,
        least=lambda m: 4 * m + 2,
        # The folds are taken to err alike, more or less than they do.
        error_ratio=(0.82, 1.6),
    ),
    _shear(
        "shear, not efficient",
        options={"cooperators": "difference", "efficient": False},
        is_efficient=False,
    ),
    _shear(
        "shear, uniform",
        options={"cooperators": "difference", "complement": "uniform"},
        is_unbiased=False,
    ),
    _shear(
        "shear, none",
        options={"cooperators": "difference", "complement": "none"},
        is_unbiased=False,
        exact_on_quadratic=False,
    ),
    _shear(
        "shear, not antithetic",
        options={"cooperators": "difference", "antithetic": False},
        exact_on_quadratic=False,
    ),
]

OF_CORE = [row for row in ESTIMATORS if row.id != "best"]
"""For tests without hosts: `best` is `oddgp` in the core."""

SEVERAL = [
    row
    for row in ESTIMATORS
    if row.id in ("exact", "random order", "odd GP, learned weights", "shear, auto")
]
"""One that draws nothing, one that draws, one that learns, one with cooperators: for what hosts and
the pipeline do with any estimator."""

OF_CLASSES = list({row.explainer: row for row in reversed(ESTIMATORS)}.values())[::-1]
"""The first row of each class: its default options."""

OF_KINDS = [
    *(row for row in ESTIMATORS if row.id in {"random order", "odd GP, learned weights"}),
    Row(
        "L-Shapley",
        "LShapley",
        {"graph": "line", "order": 20},  # so that all players see each other
        least=lambda m: 4,
    ),
]
"""One estimator that draws, one that learns, and one on a graph.

They stand for all where a property is that of the pipeline or of a host. Where all coalitions are
evaluated, each of them is exact.
"""


def over(table):
    """Return a parametrisation by rows of the table."""
    return pytest.mark.parametrize("row", table, ids=lambda row: row.id)


every_row = over(OF_KINDS)
