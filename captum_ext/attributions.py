"""The attribution methods: each is its options and its estimator."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import shapley_adapters as core
from shapley_adapters.array_types import ScoreArray
from shapley_adapters.cooperators import checked_cooperators, checked_prior

from .coalition_attribution import CoalitionAttribution


class Exact(CoalitionAttribution):
    """Shapley values by enumeration of all 2^M coalitions, for up to 20 features.

    Unlike `captum.attr.ShapleyValues`, which runs through all M! orders, this evaluates each
    coalition once. Features whose input equals their baseline do not count.

    Parameters
    ----------
    forward_func : callable
        The model, or any function of the inputs.
    seed : int, optional
        Taken for uniformity; nothing is random here.
    value_function : {"raw", "log_probability", "expected_log_probability", "margin"}
        What is explained of a classifier's outputs, or a `ValueFunction` that says more. `target`,
        if given, names the class.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Exact
    >>> Exact(lambda x: x[:, 0] * x[:, 1] + x[:, 2]).attribute(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[1., 1., 3.]])
    """

    def _estimator(self) -> core.Exact:
        return core.Exact()


class OddGP(CoalitionAttribution):
    """Shapley values as the posterior of a Gaussian process on the odd part of the game.

    The most accurate estimator here from four evaluations a feature on, for any model. Pairs of
    complementary coalitions, chosen to leave little posterior variance, are evaluated; a prior over
    interactions of degrees 1, 3 and 5 fills in the rest, its strengths and the weight of each
    feature learned from the example's own values. The attributions sum to the difference of the
    outputs exactly. Not unbiased: it shrinks what the evaluations leave open. Standard errors are
    posterior standard deviations. Works with any budget from 4 evaluations on; learning takes about
    4 milliseconds an example and output at 200 evaluations, 17 at 800.

    Parameters
    ----------
    forward_func : callable
        The model, or any function of the inputs.
    seed : int, optional
        Seed of which feature plays which part in the coalitions.
    value_function : {"raw", "log_probability", "expected_log_probability", "margin"}
        What is explained of a classifier's outputs, or a `ValueFunction` that says more. `target`,
        if given, names the class.
    weights : {"learned", "equal"}
        Whether features have weights of their own in interactions, learned for each example. With
        equal ones examples share their linear algebra, which takes less than a millisecond an
        example, and are less accurate.
    cooperators : {None, "auto", "hessian", "gradient", "difference"} or array
        What tells beforehand which features interact, as a prior of the weights. None: nothing but
        the values themselves. Ways and shapes as in SHEAR; `"auto"` takes derivatives where the
        model has them, at M + 1 backward passes an example, and asks for nothing elsewhere.
        `last_estimate.cooperators` says what served. It helps below 16 evaluations a feature.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import OddGP
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> OddGP(lambda x: x.sum(1) ** 2, seed=0).attribute(x, n_samples=100)[0, :3]
    tensor([ 78., 156., 234.])
    """

    def __init__(
        self,
        forward_func: Callable[..., Any],
        *,
        seed: int | None = None,
        value_function: Any = "raw",
        weights: str = "learned",
        cooperators: Any = None,
    ) -> None:
        super().__init__(forward_func, seed=seed, value_function=value_function)
        self.weights = weights
        self.cooperators = cooperators
        self._estimator()  # refuses options that cannot be used
        self._cooperators()

    def _estimator(self) -> core.OddGP:
        return core.OddGP(self.weights)

    def _cooperators(self) -> str | ScoreArray | None:
        return checked_prior(self.cooperators, self.weights)


class RandomOrder(CoalitionAttribution):
    """Shapley values from random orders of the features and their reverses.

    Unbiased; the attributions sum to the difference of the outputs exactly. A pair of orders of M
    features costs 2 (M − 1) evaluations and makes quadratic models exact. The counterpart of
    `captum.attr.ShapleyValueSampling`, with pairs, a budget and standard errors.

    Parameters
    ----------
    forward_func : callable
        The model, or any function of the inputs.
    seed : int, optional
        Seed of the orders.
    value_function : {"raw", "log_probability", "expected_log_probability", "margin"}
        What is explained of a classifier's outputs, or a `ValueFunction` that says more. `target`,
        if given, names the class.
    antithetic : bool
        Whether each order comes with its reverse.

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
    ) -> None:
        super().__init__(forward_func, seed=seed, value_function=value_function)
        self.antithetic = antithetic
        self._estimator()  # refuses options that cannot be used

    def _estimator(self) -> core.RandomOrder:
        return core.RandomOrder(self.antithetic)


class Semivalue(CoalitionAttribution):
    """Shapley values from marginal contributions, drawn for each feature alone.

    ApproSemivalue (Castro et al., 2009; Zhang et al., SimSHAP, 2023, Eq. 2). Unbiased. Random
    orders draw from the same distribution at half the price: prefer them. Needs at least 4 M + 2
    evaluations.

    Parameters
    ----------
    forward_func : callable
        The model, or any function of the inputs.
    seed : int, optional
        Seed of the draws.
    value_function : {"raw", "log_probability", "expected_log_probability", "margin"}
        What is explained of a classifier's outputs, or a `ValueFunction` that says more. `target`,
        if given, names the class.
    antithetic : bool
        Whether each coalition comes with its complement among the other features.
    efficient : bool
        Whether what the attributions lack of the difference of the outputs is shared equally.

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
    ) -> None:
        super().__init__(forward_func, seed=seed, value_function=value_function)
        self.antithetic = antithetic
        self.efficient = efficient
        self._estimator()  # refuses options that cannot be used

    def _estimator(self) -> core.Semivalue:
        return core.Semivalue(self.antithetic, self.efficient)


class LeastSquares(CoalitionAttribution):
    """Shapley values as the solution of a weighted regression (KernelSHAP).

    The attributions sum to the difference of the outputs exactly. Consistent, with a bias that
    vanishes with the inverse of the budget, or unbiased, at the price of a larger variance. The
    counterpart of `captum.attr.KernelShap`, solved for all examples at once. Needs at least 2 M + 2
    evaluations; the unbiased form needs 4.

    Parameters
    ----------
    forward_func : callable
        The model, or any function of the inputs.
    seed : int, optional
        Seed of the coalitions.
    value_function : {"raw", "log_probability", "expected_log_probability", "margin"}
        What is explained of a classifier's outputs, or a `ValueFunction` that says more. `target`,
        if given, names the class.
    paired : bool
        Whether each coalition comes with its complement; quadratic models are exact then.
    sizes : {"kernel", "leverage"}
        Whether coalition sizes are drawn by the Shapley kernel or by their leverage, uniformly.
    replacement : bool
        Whether coalitions are drawn with replacement, or each once, with the weights that match.
    unbiased : bool
        Whether to solve with the exact matrix (Covert and Lee, Improving KernelSHAP, AISTATS 2021)
        in place of that of the draws.

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
    ) -> None:
        super().__init__(forward_func, seed=seed, value_function=value_function)
        self.paired = paired
        self.sizes = sizes
        self.replacement = replacement
        self.unbiased = unbiased
        self._estimator()  # refuses options that cannot be used

    def _estimator(self) -> core.LeastSquares | core.UnbiasedLeastSquares:
        return core.least_squares(self.paired, self.sizes, self.replacement, self.unbiased)


class SimSemivalue(CoalitionAttribution):
    """Shapley values from one draw of coalitions for all features, signed by membership.

    The estimator of SimSHAP (Zhang et al., 2023, Table 1 and Eq. 14), and draw by draw the same as
    the unbiased form of least squares. Unbiased; the attributions sum to the difference of the
    outputs exactly. Works with any budget from 4 evaluations on, but has a larger variance than
    random orders.

    Parameters
    ----------
    forward_func : callable
        The model, or any function of the inputs.
    seed : int, optional
        Seed of the draws.
    value_function : {"raw", "log_probability", "expected_log_probability", "margin"}
        What is explained of a classifier's outputs, or a `ValueFunction` that says more. `target`,
        if given, names the class.
    paired : bool
        Whether each coalition comes with its complement.
    centred : bool
        Whether values count from the straight line between the outputs without and with all
        features, which lowers the variance and leaves the expectation; the paper's form does not.

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
    ) -> None:
        super().__init__(forward_func, seed=seed, value_function=value_function)
        self.paired = paired
        self.centred = centred
        self._estimator()  # refuses options that cannot be used

    def _estimator(self) -> core.SimSemivalue:
        return core.SimSemivalue(self.paired, self.centred)


class Shear(CoalitionAttribution):
    """SHEAR: enumerate the strongest cooperators of each feature, draw the others at random.

    With N evaluations a feature, all subsets of its log2(N / 2) strongest cooperators are
    evaluated (Wang et al., Accelerating Shapley Explanation via Contributive Cooperator Selection,
    ICML 2022, Eq. 12–14). All features share one budget: a coalition that serves several is
    evaluated once, and what that frees is spent. Unbiased with the default options, and efficient.
    Needs at least 4 M + 2 evaluations.

    Parameters
    ----------
    forward_func : callable
        The model, or any function of the inputs.
    seed : int, optional
        Seed of the draws.
    value_function : {"raw", "log_probability", "expected_log_probability", "margin"}
        What is explained of a classifier's outputs, or a `ValueFunction` that says more. `target`,
        if given, names the class.
    cooperators : {"auto", "hessian", "gradient", "difference", "random"} or array
        How the strongest cooperators are found. `"hessian"`: second derivatives (Eq. 11), 1 + M
        backward passes. `"gradient"`: differences of first derivatives, M + 1 backward passes,
        right for ReLU networks. `"difference"`: M + M (M − 1) / 2 evaluations, for any model.
        `"auto"`: the first of these that says something about the example; differences only where
        they cost at most half the budget, else at random. An array, (M, M) or (B, M, M), holds
        scores of your own. Backward passes are reported, and not part of the budget.
    complement : {"posterior", "uniform", "none"}
        How the features that are not cooperators are drawn: as in a random order, which is
        unbiased; by fair coins, as the authors' code does; or not at all (Eq. 13).
    antithetic : bool
        Whether complementary subsets of the cooperators get complementary draws (§4.2).
    efficient : bool
        Whether the attributions are made to sum to the difference of the outputs.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Shear
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> shear = Shear(lambda x: x.sum(1) ** 2, seed=0)
    >>> shear.attribute(x, n_samples=100)[0, :3]
    tensor([ 78., 156., 234.])
    >>> shear.last_estimate.cooperators
    array(['hessian'], dtype='<U10')
    """

    def __init__(
        self,
        forward_func: Callable[..., Any],
        *,
        seed: int | None = None,
        value_function: Any = "raw",
        cooperators: Any = "auto",
        complement: str = "posterior",
        antithetic: bool = True,
        efficient: bool = True,
    ) -> None:
        super().__init__(forward_func, seed=seed, value_function=value_function)
        self.cooperators = cooperators
        self.complement = complement
        self.antithetic = antithetic
        self.efficient = efficient
        checked_cooperators(cooperators)
        self._estimator()  # refuses options that cannot be used

    def _estimator(self) -> core.Shear:
        return core.Shear(self.complement, self.antithetic, self.efficient)

    def _cooperators(self) -> str | ScoreArray:
        return checked_cooperators(self.cooperators)
