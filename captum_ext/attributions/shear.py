"""SHEAR."""

from __future__ import annotations

import shapley_adapters as core
from shapley_adapters.constructors import write_constructor
from shapley_adapters.cooperators.choices import Cooperators

from .sampling_attribution import SamplingAttribution
from .shared_parameters import documented


@documented
@write_constructor
class Shear(SamplingAttribution):
    """SHEAR: enumerate the strongest cooperators of each feature, draw the others at random.

    With N evaluations per feature, all subsets of its log2(N / 2) strongest cooperators are
    evaluated (Wang et al., Accelerating Shapley Explanation via Contributive Cooperator Selection,
    ICML 2022, Eq. 12–14). All features share one budget: a coalition that several features need is
    evaluated once, and the saved evaluations are used for others. Unbiased with the default
    options, and efficient. Needs at least 4 M + 2 evaluations.

    Parameters
    ----------
    {parameters}
    cooperators : {"auto", "hessian", "gradient", "difference", "random", "learned"} or array
        How the strongest cooperators are found. `"hessian"`: second derivatives (Eq. 11) of a torch
        module, 1 + M backward passes. `"gradient"`: differences of first derivatives, M + 1
        backward passes, suited to ReLU networks. `"difference"`: M + M (M − 1) / 2 evaluations, for
        any model. `"auto"`: the first of these that gives scores other than zero for the example;
        differences only if they cost at most half the budget, otherwise at random. `"learned"`: a
        regression learns the interactions from all values, for any model; the draws, of which each
        serves all features, estimate only what it leaves. The most accurate. An array, (M, M)
        or (B, M, M), holds your scores. Backward passes are reported, and are not part of the
        budget.
    complement : {"posterior", "uniform", "none"}
        How the features that are not cooperators are drawn. `"posterior"`: as in a random order,
        which is unbiased. `"uniform"`: each with probability 1/2, as in the authors' code.
        `"none"`: not at all (Eq. 13).
    antithetic : bool
        Whether complementary subsets of the cooperators get complementary draws (4.2).
    efficient : bool
        Whether the attributions are made to sum to the difference of the outputs.
    {independent_rows}

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

    cooperators: Cooperators = "auto"
    complement: str = "posterior"
    antithetic: bool = True
    efficient: bool = True

    def _estimator(self) -> core.Shear:
        return core.Shear(self.complement, self.antithetic, self.efficient, self.cooperators)
