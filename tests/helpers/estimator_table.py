"""All estimators with all options that change what they do, and what may be asked of each."""

from dataclasses import dataclass, field
from typing import Any

import shap_ext
import shapley_adapters as core
from tests.helpers.optional import captum_ext


@dataclass(frozen=True)
class Row:
    """One estimator with its options, in the core and in both hosts.

    Attributes
    ----------
    options : dict
        Options of the estimator, named alike everywhere.
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
    """

    id: str
    estimator: type
    explainer: type
    attribution: type
    options: dict[str, Any] = field(default_factory=dict)
    is_unbiased: bool = True
    is_efficient: bool = True
    keeps_null_players: bool = True
    exact_on_additive: bool = True
    exact_on_quadratic: bool = True
    rounding: float = 1e-10
    is_linear: bool = True
    ignores_level: bool = True
    is_exact: bool = False

    @property
    def cooperators(self):
        """How SHEAR finds cooperators; None for the others."""
        return self.options.get("cooperators", "auto") if self.estimator is core.Shear else None

    @property
    def is_posterior(self):
        """Whether its errors speak of the game given its values, not of the draws."""
        return self.estimator is core.OddGP

    def build(self):
        """Return the core's estimator."""
        if self.estimator is core.UnbiasedLeastSquares:  # an option of least squares in the hosts
            return self.estimator(paired=self.options["paired"])
        return self.estimator(**self.options)

    def estimate(self, game, budget=None, seed=0, **options):
        """Run the estimator on a game of the core."""
        settings = core.Settings(seed=seed, budget=budget, **options)
        return core.estimate(game, self.build(), settings)


def _shear(name, **facts):
    options = facts.pop("options", {})
    return Row(name, core.Shear, shap_ext.ShearExplainer, captum_ext.Shear, options, **facts)


ESTIMATORS = [
    Row("exact", core.Exact, shap_ext.EnumerationExplainer, captum_ext.Exact, is_exact=True),
    Row("random order", core.RandomOrder, shap_ext.RandomOrderExplainer, captum_ext.RandomOrder),
    Row(
        "random order, single",
        core.RandomOrder,
        shap_ext.RandomOrderExplainer,
        captum_ext.RandomOrder,
        {"antithetic": False},
        exact_on_quadratic=False,
    ),
    *(
        Row(
            f"least squares, {'paired' if paired else 'single'}, {sizes}",
            core.LeastSquares,
            shap_ext.LeastSquaresExplainer,
            captum_ext.LeastSquares,
            {"paired": paired, "sizes": sizes},
            is_unbiased=False,  # only in the limit
            keeps_null_players=False,
            exact_on_quadratic=paired,
        )
        for paired in (True, False)
        for sizes in ("kernel", "leverage")
    ),
    *(
        Row(
            f"least squares, no replacement, {'paired' if paired else 'single'}, {sizes}",
            core.LeastSquares,
            shap_ext.LeastSquaresExplainer,
            captum_ext.LeastSquares,
            {"paired": paired, "sizes": sizes, "replacement": False},
            is_unbiased=False,  # only in the limit
            keeps_null_players=False,
            exact_on_quadratic=paired,
        )
        for paired, sizes in ((True, "kernel"), (True, "leverage"), (False, "kernel"))
    ),
    *(
        Row(
            f"unbiased least squares, {'paired' if paired else 'single'}",
            core.UnbiasedLeastSquares,
            shap_ext.LeastSquaresExplainer,
            captum_ext.LeastSquares,
            {"unbiased": True, "paired": paired},
            keeps_null_players=False,
            exact_on_additive=False,
            exact_on_quadratic=False,
        )
        for paired in (True, False)
    ),
    *(
        Row(
            f"sim-semivalue, {name}",
            core.SimSemivalue,
            shap_ext.SimSemivalueExplainer,
            captum_ext.SimSemivalue,
            options,
            keeps_null_players=False,
            exact_on_additive=False,
            exact_on_quadratic=False,
            ignores_level=name != "as printed",
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
            core.OddGP,
            shap_ext.OddGPExplainer,
            captum_ext.OddGP,
            {"weights": weights},
            is_unbiased=False,  # it shrinks
            keeps_null_players=False,
            is_linear=False,
            rounding=1e-8,  # small ridges keep its matrices invertible
        )
        for weights in ("learned", "equal")
    ),
    Row(
        "semivalue",
        core.Semivalue,
        shap_ext.SemivalueExplainer,
        captum_ext.Semivalue,
        keeps_null_players=False,
    ),
    Row(
        "semivalue, single",
        core.Semivalue,
        shap_ext.SemivalueExplainer,
        captum_ext.Semivalue,
        {"antithetic": False},
        keeps_null_players=False,
        exact_on_quadratic=False,
    ),
    Row(
        "semivalue, not efficient",
        core.Semivalue,
        shap_ext.SemivalueExplainer,
        captum_ext.Semivalue,
        {"efficient": False},
        is_efficient=False,
    ),
    _shear("shear", options={"cooperators": "difference"}),
    _shear("shear, auto"),
    _shear("shear, random", options={"cooperators": "random"}, keeps_null_players=False),
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
