"""Least squares, KernelSHAP's regression among its forms."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import shapley_adapters as core
from shapley_adapters.arguments import checked_flag

from .coalition_attribution import CoalitionAttribution
from .shared_parameters import documented


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
