"""The attribution methods: each is its options and its estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import shapley_adapters as core
from shapley_adapters.arguments import checked_flag

from .coalition_attribution import CoalitionAttribution
from .shared_parameters import documented


@documented
class Exact(CoalitionAttribution):
    """Shapley values by enumeration of all 2^M coalitions, for up to 20 features.

    Unlike `captum.attr.ShapleyValues`, which runs through all M! orders, this evaluates each
    coalition once. Features whose input equals their baseline do not count. Nothing is random: the
    seed is taken for uniformity.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Exact
    >>> Exact(lambda x: x[:, 0] * x[:, 1] + x[:, 2]).attribute(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[1., 1., 3.]])
    """

    def _estimator(self) -> core.Exact:
        return core.Exact()


@documented
class RandomOrder(CoalitionAttribution):
    """Shapley values from random orders of the features and their reverses.

    Unbiased; the attributions sum to the difference of the outputs exactly. A pair of orders of M
    features costs 2 (M − 1) evaluations and makes quadratic models exact. The counterpart of
    `captum.attr.ShapleyValueSampling`, with pairs, a budget and standard errors.

    Parameters
    ----------
    {parameters}
    antithetic : bool
        Whether each order comes with its reverse.
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import RandomOrder
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> RandomOrder(lambda x: x.sum(1) ** 2, seed=0).attribute(x, n_samples=100)[0, :3]
    tensor([ 78., 156., 234.])
    """

    def __init__(
        self,
        forward_func: Callable[..., Any],
        *,
        seed: int | None = None,
        value_function: Any = "raw",
        antithetic: bool = True,
        independent_rows: bool = False,
    ) -> None:
        super().__init__(forward_func, seed=seed, value_function=value_function)
        self.antithetic = antithetic
        self.independent_rows = checked_flag("independent_rows", independent_rows)
        self._estimator()  # refuses options that cannot be used

    def _estimator(self) -> core.RandomOrder:
        return core.RandomOrder(self.antithetic)


@documented
class Semivalue(CoalitionAttribution):
    """Shapley values from marginal contributions, drawn for each feature alone.

    ApproSemivalue (Castro et al., 2009; Zhang et al., SimSHAP, 2023, Eq. 2). Unbiased. Random
    orders draw from the same distribution at half the price: prefer them. Needs at least 4 M + 2
    evaluations.

    Parameters
    ----------
    {parameters}
    antithetic : bool
        Whether each coalition comes with its complement among the other features.
    efficient : bool
        Whether what the attributions lack of the difference of the outputs is shared equally.
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Semivalue
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> Semivalue(lambda x: x.sum(1) ** 2, seed=0).attribute(x, n_samples=100)[0, :3]
    tensor([ 78., 156., 234.])
    """

    def __init__(
        self,
        forward_func: Callable[..., Any],
        *,
        seed: int | None = None,
        value_function: Any = "raw",
        antithetic: bool = True,
        efficient: bool = True,
        independent_rows: bool = False,
    ) -> None:
        super().__init__(forward_func, seed=seed, value_function=value_function)
        self.antithetic = antithetic
        self.efficient = efficient
        self.independent_rows = checked_flag("independent_rows", independent_rows)
        self._estimator()  # refuses options that cannot be used

    def _estimator(self) -> core.Semivalue:
        return core.Semivalue(self.antithetic, self.efficient)


@documented
class LeastSquares(CoalitionAttribution):
    """Shapley values as the solution of a weighted regression (KernelSHAP).

    The attributions sum to the difference of the outputs exactly. Consistent, with a bias that
    vanishes with the inverse of the budget, or unbiased, at the price of a larger variance. The
    counterpart of `captum.attr.KernelShap`, solved for all examples at once. Needs at least 2 M + 2
    evaluations; the unbiased form needs 4.

    Parameters
    ----------
    {parameters}
    {least_squares_options}
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import LeastSquares
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> LeastSquares(lambda x: x.sum(1) ** 2, seed=0).attribute(x, n_samples=100)[0, :3]
    tensor([ 78., 156., 234.])
    """

    def __init__(
        self,
        forward_func: Callable[..., Any],
        *,
        seed: int | None = None,
        value_function: Any = "raw",
        paired: bool = True,
        sizes: str = "kernel",
        replacement: bool = True,
        unbiased: bool = False,
        independent_rows: bool = False,
    ) -> None:
        super().__init__(forward_func, seed=seed, value_function=value_function)
        self.paired = paired
        self.sizes = sizes
        self.replacement = replacement
        self.unbiased = unbiased
        self.independent_rows = checked_flag("independent_rows", independent_rows)
        self._estimator()  # refuses options that cannot be used

    def _estimator(self) -> core.LeastSquares | core.UnbiasedLeastSquares:
        return core.least_squares(self.paired, self.sizes, self.replacement, self.unbiased)


@documented
class SimSemivalue(CoalitionAttribution):
    """Shapley values from one draw of coalitions for all features, signed by membership.

    The estimator of SimSHAP (Zhang et al., 2023, Table 1 and Eq. 14), and draw by draw the same as
    the unbiased form of least squares. Unbiased; the attributions sum to the difference of the
    outputs exactly. Works with any budget from 4 evaluations on, but has a larger variance than
    random orders.

    Parameters
    ----------
    {parameters}
    paired : bool
        Whether each coalition comes with its complement.
    centred : bool
        Whether values count from the straight line between the outputs without and with all
        features, which lowers the variance and leaves the expectation; the paper's form does not.
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import SimSemivalue
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> SimSemivalue(lambda x: x.sum(1) ** 2, seed=0).attribute(x, n_samples=100).sum()
    tensor(6084.)
    """

    def __init__(
        self,
        forward_func: Callable[..., Any],
        *,
        seed: int | None = None,
        value_function: Any = "raw",
        paired: bool = True,
        centred: bool = True,
        independent_rows: bool = False,
    ) -> None:
        super().__init__(forward_func, seed=seed, value_function=value_function)
        self.paired = paired
        self.centred = centred
        self.independent_rows = checked_flag("independent_rows", independent_rows)
        self._estimator()  # refuses options that cannot be used

    def _estimator(self) -> core.SimSemivalue:
        return core.SimSemivalue(self.paired, self.centred)
