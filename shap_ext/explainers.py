"""The explainers: each is its options and its estimator."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import shap

import shapley_adapters as core
from shapley_adapters.array_types import ScoreArray
from shapley_adapters.cooperators import checked_cooperators

from .coalition_explainer import CoalitionExplainer

_SHARED_PARAMETERS = """model : callable, torch module, or estimator with predict_proba or predict
        What to explain. Torch modules may be handed over as they are.
    masker : array, DataFrame, shap masker, function, or None
        Background rows, or anything that shap takes for a masker. Without one, absent features of
        arrays are zero, which a warning says.
    link : callable
        Link function between the model's output and the units of the explanation.
    feature_names, output_names : sequence of str, optional
        Names, for plots.
    linearize_link : bool
        Whether background rows are weighted so that additive models stay additive, as in shap.
    seed : int, optional
        Seed of all random choices.
    groups : mapping of names to columns, optional
        Columns that go together as one player, by name or place, such as one-hot blocks.
    algorithm : str, optional
        Ignored; shap passes it."""


class EnumerationExplainer(CoalitionExplainer):
    """Shapley values by enumeration of all 2^M coalitions, for up to 20 players.

    Unlike shap's own exact explainer, it evaluates the coalitions of all rows together, takes
    groups of columns as players, and tells features that equal the background by equality. Owen
    values of clustered maskers are shap's; here a clustering is only drawn.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> explainer = shap_ext.EnumerationExplainer(lambda x: x[:, 0] * x[:, 1], np.zeros((1, 2)))
    >>> explainer(np.array([[2.0, 3.0]])).values
    array([[3., 3.]])
    """

    name = "enumeration"

    def _estimator(self) -> core.Exact:
        return core.Exact()


class RandomOrderExplainer(CoalitionExplainer):
    """Shapley values from random orders of the features and their reverses.

    Unbiased; the values sum to the model's output exactly. A pair of orders of M players costs
    2 (M − 1) evaluations and makes quadratic models exact. The counterpart of shap's permutation
    explainer, for all rows at once and with standard errors.

    Parameters
    ----------
    {parameters}
    antithetic : bool
        Whether each order comes with its reverse.

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.RandomOrderExplainer(model, np.zeros((1, 12)), seed=0)
    >>> explainer(np.arange(1.0, 13.0)[None], max_evals=100).values[0, :3].round(6)
    array([ 78., 156., 234.])
    """

    name = "random order"

    def __init__(
        self,
        model: Any,
        masker: Any = None,
        link: Callable[[Any], Any] = shap.links.identity,
        feature_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        linearize_link: bool = True,
        seed: int | None = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        algorithm: str | None = None,  # shap passes it back in when it unwraps a pipeline
        antithetic: bool = True,
    ) -> None:
        super().__init__(
            model, masker, link, feature_names, output_names, linearize_link, seed, groups
        )
        self.antithetic = antithetic
        self._estimator()  # refuses options that cannot be used

    def _estimator(self) -> core.RandomOrder:
        return core.RandomOrder(self.antithetic)


class LeastSquaresExplainer(CoalitionExplainer):
    """Shapley values as the solution of a weighted regression (KernelSHAP).

    The values sum to the model's output exactly. Consistent, with a bias that vanishes with the
    inverse of the budget. The counterpart of shap's kernel explainer, for all rows at once, with
    pairs and standard errors. Needs at least 2 M + 2 evaluations.

    Parameters
    ----------
    {parameters}
    paired : bool
        Whether each coalition comes with its complement; quadratic models are exact then.
    sizes : {{"kernel", "leverage"}}
        Whether coalition sizes are drawn by the Shapley kernel or by their leverage, uniformly.

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.LeastSquaresExplainer(model, np.zeros((1, 12)), seed=0)
    >>> explainer(np.arange(1.0, 13.0)[None], max_evals=100).values[0, :3].round(6)
    array([ 78., 156., 234.])
    """

    name = "least squares"

    def __init__(
        self,
        model: Any,
        masker: Any = None,
        link: Callable[[Any], Any] = shap.links.identity,
        feature_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        linearize_link: bool = True,
        seed: int | None = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        algorithm: str | None = None,  # shap passes it back in when it unwraps a pipeline
        paired: bool = True,
        sizes: str = "kernel",
    ) -> None:
        super().__init__(
            model, masker, link, feature_names, output_names, linearize_link, seed, groups
        )
        self.paired = paired
        self.sizes = sizes
        self._estimator()  # refuses options that cannot be used

    def _estimator(self) -> core.LeastSquares:
        return core.LeastSquares(self.paired, self.sizes)


class ShearExplainer(CoalitionExplainer):
    """SHEAR: enumerate the strongest cooperators of each feature, draw the others at random.

    With N evaluations a player, all subsets of its log2(N / 2) strongest cooperators are evaluated
    (Wang et al., Accelerating Shapley Explanation via Contributive Cooperator Selection, ICML
    2022, Eq. 12–14). All players share one budget: a coalition that serves several is evaluated
    once, and what that frees is spent. Unbiased with the default options, and efficient. Needs at
    least 4 M + 2 evaluations.

    Parameters
    ----------
    {parameters}
    cooperators : {{"auto", "hessian", "gradient", "difference", "random"}} or array
        How the strongest cooperators are found. `"hessian"`: second derivatives (Eq. 11) of a
        torch module, 1 + M backward passes. `"gradient"`: differences of first derivatives, M + 1
        backward passes, right for ReLU networks. `"difference"`: M + M (M − 1) / 2 evaluations,
        for any model. `"auto"`: the first of these that says something about the row; differences
        only where they cost at most half the budget, else at random. An array, (M, M) or
        (R, M, M), holds scores of your own. Backward passes are reported, and not part of the
        budget.
    complement : {{"posterior", "uniform", "none"}}
        How the players that are not cooperators are drawn: as in a random order, which is
        unbiased; by fair coins, as the authors' code does; or not at all (Eq. 13).
    antithetic : bool
        Whether complementary subsets of the cooperators get complementary draws (§4.2).
    efficient : bool
        Whether the values are made to sum to the model's output.

    Examples
    --------
    >>> import numpy as np
    >>> import shap, shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap.Explainer(model, np.zeros((1, 12)), algorithm="shear", seed=0)
    >>> explainer(np.arange(1.0, 13.0)[None], max_evals=100).values[0, :3].round(6)
    array([ 78., 156., 234.])
    """

    name = "SHEAR"

    def __init__(
        self,
        model: Any,
        masker: Any = None,
        link: Callable[[Any], Any] = shap.links.identity,
        feature_names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        linearize_link: bool = True,
        seed: int | None = None,
        groups: Mapping[str, Sequence[Any]] | None = None,
        algorithm: str | None = None,  # shap passes it back in when it unwraps a pipeline
        cooperators: Any = "auto",
        complement: str = "posterior",
        antithetic: bool = True,
        efficient: bool = True,
    ) -> None:
        super().__init__(
            model, masker, link, feature_names, output_names, linearize_link, seed, groups
        )
        self.cooperators = cooperators
        self.complement = complement
        self.antithetic = antithetic
        self.efficient = efficient
        self._estimator()  # refuses options that cannot be used
        checked_cooperators(cooperators)

    def _estimator(self) -> core.Shear:
        return core.Shear(self.complement, self.antithetic, self.efficient)

    def _cooperators(self) -> str | ScoreArray:
        return checked_cooperators(self.cooperators)


for _explainer in (
    EnumerationExplainer,
    RandomOrderExplainer,
    LeastSquaresExplainer,
    ShearExplainer,
):
    # Under `python -OO` there are no docstrings to complete.
    _explainer.__doc__ = (_explainer.__doc__ or "").format(parameters=_SHARED_PARAMETERS)
