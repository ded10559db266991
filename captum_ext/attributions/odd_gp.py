"""Odd Gaussian-process regression."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor
from shapley_adapters.cooperators.choices import Cooperators

from .sampling_attribution import SamplingAttribution
from .shared_parameters import documented


@documented
@write_constructor
class OddGP(SamplingAttribution):
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
    {parameters}
    weights : {"learned", "equal"}
        Whether features have weights of their own in interactions, learned for each example. With
        equal ones examples share their linear algebra, which takes less than a millisecond an
        example, and are less accurate.
    cooperators : {None, "auto", "hessian", "gradient", "difference"} or array
        What tells beforehand which features interact, as a prior of the weights. None: nothing but
        the values themselves. Ways and shapes as in SHEAR; `"auto"` takes derivatives where the
        model has them, at M + 1 backward passes an example, and asks for nothing elsewhere.
        `last_estimate.cooperators` says what served. It helps below 16 evaluations a feature.
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import OddGP
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> OddGP(lambda x: x.sum(1) ** 2, seed=0).attribute(x, n_samples=100)[0, :3]
    tensor([ 78., 156., 234.])
    """

    weights: str = "learned"
    cooperators: Cooperators | None = None

    def _estimator(self) -> core.OddGP:
        return core.OddGP(self.weights, self.cooperators)
