"""The estimators as attributions of captum: each is its options and its estimator."""

from __future__ import annotations

import copyreg
import functools
from collections.abc import Sequence
from typing import Any

import shapley_adapters as core
from shapley_adapters import PlayerTree
from shapley_adapters.constructors import write_constructor
from shapley_adapters.cooperators.choices import Cooperators
from shapley_adapters.estimators.protocol import Estimator
from shapley_adapters.estimators.registered import MadeFromEstimator, class_from_estimator
from shapley_adapters.graphs.causal_graph import (
    CausalEdges,
    CausalGraph,
    CausalOrder,
    read_causal_graph,
)
from shapley_adapters.graphs.reading import GraphLike, Structure
from shapley_adapters.hierarchies.reading import HierarchyLike

from ..games.forward_function_game import ForwardFunctionGame
from .attribute_methods import trees_of_inputs
from .coalition_attribution import CoalitionAttribution
from .sampling_attribution import SamplingAttribution
from .shared_parameters import documented


@documented
@write_constructor
class Best(SamplingAttribution):
    """Exact Shapley values where they cost no more, else the most accurate estimate for the time.

    The first of these that applies is chosen, and `last_estimate.choice` says which one and why:

    1. All 2^M coalitions of M features, which are exact: up to 10 features, where the budget pays
       for them, and where they take no longer than an estimate.
    2. Odd Gaussian-process regression (`OddGP`); with equal weights, or random orders, where its
       own work takes seconds and longer than the forward function.

    Costs are measured with the first evaluations. With `max_seconds`, the choice is what errs
    least within that time. A call of the method that was chosen, with its budget
    (`last_estimate.budget`) and `seed`, repeats the numbers exactly.

    Parameters
    ----------
    {parameters}
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Best
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> method = Best(lambda x: x.sum(1) ** 2, seed=0)
    >>> method.attribute(x, max_seconds=10.0)[0, :3]
    tensor([ 78., 156., 234.])
    >>> method.last_estimate.enumerated
    array([ True])
    """

    def _estimator(self) -> core.Best:
        return core.Best()


@documented
class Exact(CoalitionAttribution):
    """Shapley values by enumeration of all 2^M coalitions, for up to 20 features.

    Unlike `captum.attr.ShapleyValues`, which evaluates all M! orders, this evaluates each coalition
    once. Features whose input equals their baseline are not players. Nothing is random; `seed` has
    no effect.

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

    global_importance = SamplingAttribution.global_importance

    def _estimator(self) -> core.Exact:
        return core.Exact()


@documented
@write_constructor
class OddGP(SamplingAttribution):
    """Shapley values as the posterior of a Gaussian process on the odd part of the game.

    The most accurate estimator of this package on all models and games of its benchmarks, for
    budgets of at least four evaluations per feature. It evaluates pairs of complementary
    coalitions, selected so that they leave little posterior variance. A prior over interactions of
    all odd sizes predicts the other coalitions. The strengths of the prior and the weight of each
    feature are learned from the example's values. The values sum exactly to the difference of the
    outputs. They are exact when all coalitions are evaluated. Otherwise the estimate is biased: it
    shrinks interactions that the evaluations do not determine. Standard errors are posterior
    standard deviations. Works with any budget of at least 4 evaluations. Learning takes about 3
    milliseconds per example and output at 200 evaluations, and 17 at 800.

    Parameters
    ----------
    {parameters}
    weights : {"learned", "equal"}
        Whether features have different weights in interactions, learned per example. With equal
        weights all examples share their linear algebra, which takes less than a millisecond per
        example, but the estimates are less accurate.
    cooperators : {None, "auto", "hessian", "gradient", "difference"} or array
        Scores of the interactions of features, as a prior of the weights. None: no scores. Other
        values as in SHEAR, except `"auto"`: it computes derivatives if the model has them, at M + 1
        backward passes per example, and no scores otherwise. `last_estimate.cooperators` names the
        kind used. Scores help below 16 evaluations per feature.
    unbiased : bool
        Whether the estimates are unbiased, for users who average or subtract many of them. All
        pairs are then drawn at random, in eight parts. The posterior given the other parts predicts
        each part, and the part corrects the errors of these predictions without bias. Standard
        errors describe the random choice of coalitions. The error is mostly 1.2 to 2.5 times that
        of the biased estimate, and learning takes eight times as long.
    graph : str, graph, or list of graphs, optional
        Which features are near each other, as in `Myerson`. Interactions of near features are then
        expected to be larger, if the values of the example do not deny it. Of use from about 4
        evaluations per feature on, most for networks on graphs.
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import OddGP
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> OddGP(lambda x: x.sum(1) ** 2, seed=0).attribute(x, n_samples=100)[0, :3]
    tensor([ 78., 156., 234.])
    """

    has_graph = True

    weights: str = "learned"
    cooperators: Cooperators | None = None
    unbiased: bool = False
    graph: GraphLike | None = None

    def _estimator(self) -> core.OddGP:
        return core.OddGP(self.weights, self.cooperators, self.unbiased)

    def _graph(self, game: ForwardFunctionGame) -> Structure | Sequence[Structure] | None:
        return None if self.graph is None else super()._graph(game)


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


@documented
@write_constructor
class RandomOrder(SamplingAttribution):
    """Shapley values from random orders of the features and their reverses.

    Unbiased; the attributions sum exactly to the difference of the outputs. A pair of orders of M
    features costs 2 (M − 1) evaluations. Pairs make quadratic models exact. The counterpart of
    `captum.attr.ShapleyValueSampling`, with pairs, a budget and standard errors. Fewer than 2 M
    evaluations, 4 at least, pay for an order of blocks of features, which share the contribution of
    their block equally. This is biased towards equal attributions, and a warning says how much.

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

    antithetic: bool = True

    def _estimator(self) -> core.RandomOrder:
        return core.RandomOrder(self.antithetic)


@documented
@write_constructor
class LeastSquares(SamplingAttribution):
    """Shapley values as the solution of a weighted regression (KernelSHAP).

    The attributions sum exactly to the difference of the outputs. By default the estimator is
    consistent, with a bias in proportion to 1 / budget. `unbiased=True` has no bias but a larger
    variance. The counterpart of `captum.attr.KernelShap`, solved for all examples at once. Needs at
    least 4 evaluations. Few evaluations are spent on random orders, and the regression is on
    differences of successive outputs: below 2 M + 2 or, with more than 30 features, until draws of
    coalitions would cover the single features, at 8 to 15 evaluations per feature.

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

    paired: bool = True
    sizes: str = "kernel"
    replacement: bool = True
    unbiased: bool = False

    def _estimator(self) -> core.LeastSquares | core.UnbiasedLeastSquares:
        return core.least_squares(self.paired, self.sizes, self.replacement, self.unbiased)


@documented
@write_constructor
class LShapley(SamplingAttribution):
    """L-Shapley values: each feature's Shapley value among its neighbours on a graph.

    For features with neighbours, such as words, pixels or atoms, if features that are far apart
    hardly interact. The value of feature i is its Shapley value in the game of the features within
    `order` edges (Chen et al., L-Shapley and C-Shapley, ICLR 2019, Definition 1). The values do not
    sum to the difference of the outputs unless the order covers the graph. The cost depends on
    order and graph: 2^(2k) evaluations per word for order k on a text. Without `n_samples`, a given
    order may need up to 65,536 evaluations per example. If the order costs more than the budget,
    random orders of the large neighbourhoods are drawn. This is unbiased for the L-Shapley value of
    that order, and has standard errors. Everything else is exact, with standard errors of 0.
    `last_estimate.orders` holds the order used.

    Parameters
    ----------
    {parameters}
    {graph}
    order : int or "auto"
        The largest distance of considered features, in edges. By default the largest order that
        `n_samples` allows, and at least 1; if order 1 costs more, random orders are drawn. If
        `n_samples` does not allow these either, the order is 0, with a warning.
    context : {"removed", "kept"}
        Whether features outside the neighbourhood are absent, as in the paper, or present, as in
        the authors' code.
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import LShapley
    >>> x = torch.tensor([[1.0, 2.0, 3.0]])
    >>> LShapley(lambda x: x[:, 0] * x[:, 1] + x[:, 2], order=1, graph="line").attribute(x)
    tensor([[1., 1., 3.]])
    """

    has_graph = True

    graph: GraphLike | None = None
    order: int | str = "auto"
    context: str = "removed"

    def _estimator(self) -> core.LShapley:
        return core.LShapley(self.order, self.context)


@documented
@write_constructor
class CShapley(SamplingAttribution):
    """C-Shapley values: marginal contributions to connected sets of features on a graph.

    For features with neighbours, such as words, pixels or atoms, if features that are far apart
    hardly interact. The value of feature i is a weighted sum of v(U) − v(U∖i) over the connected
    sets U around i, within `order` edges (Chen et al., L-Shapley and C-Shapley, ICLR 2019,
    Definition 2). On a text these sets are the n-grams around a word. The values do not sum to the
    difference of the outputs. The cost depends on order and graph: about k² + 2k evaluations per
    word for order k on a text. Without `n_samples`, a given order may need up to 65,536 evaluations
    per example. If the order costs more than the budget, random orders of the large neighbourhoods
    are drawn. A feature then gets its marginal contribution to its component when it arrives. This
    is unbiased for the C-Shapley value of that order, and has standard errors. Everything else is
    exact, with standard errors of 0. For the regression and for `weighting="paper"`, nothing is
    drawn. `last_estimate.orders` holds the order used.

    Parameters
    ----------
    {parameters}
    {graph}
    order : int or "auto"
        The largest distance of considered features, in edges; for the regression, the largest size
        of the sets. By default the largest order that `n_samples` allows. For the sum it is at
        least 1; if order 1 costs more, random orders are drawn. If `n_samples` allows no neighbours
        at all, each feature is taken by itself, with a warning.
    {c_shapley_options}
    efficient : bool
        Whether the regression is made to sum to the difference of the outputs.
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import CShapley
    >>> x = torch.tensor([[1.0, 2.0, 3.0]])
    >>> CShapley(lambda x: x[:, 0] * x[:, 1] + x[:, 2], order=1, graph="line").attribute(x)
    tensor([[1., 1., 3.]])
    """

    has_graph = True

    graph: GraphLike | None = None
    order: int | str = "auto"
    variant: str = "sum"
    context: str = "removed"
    weighting: str = "myerson"
    marginals: str = "removal"
    shapes: str = "auto"
    kernel: str = "shapley"
    efficient: bool = False

    def _estimator(self) -> core.CShapley | core.ConnectedRegression:
        return core.c_shapley(
            self.order,
            self.variant,
            self.context,
            weighting=self.weighting,
            marginals=self.marginals,
            shapes=self.shapes,
            kernel=self.kernel,
            efficient=self.efficient,
        )


@documented
@write_constructor
class Myerson(SamplingAttribution):
    """Myerson values: Shapley values of features that act together only where they are connected.

    For features with neighbours, such as atoms of a molecule. The value of a coalition is the sum
    of the values of its connected components. The Myerson value (1977) is the Shapley value of this
    game. It needs the values of connected sets only. If there are more of them than `n_samples`
    allows, random orders and their reverses are drawn; the estimate is then unbiased and has
    standard errors. The values of each component of the graph sum exactly to the value of this
    component alone. A feature that changes no output may get a value, because it connects others.

    Parameters
    ----------
    {parameters}
    {graph}
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Myerson
    >>> x = torch.tensor([[1.0, 2.0, 3.0]])
    >>> Myerson(lambda x: x[:, 0] * x[:, 2], graph="line").attribute(x)
    tensor([[1., 1., 1.]])
    """

    has_graph = True

    graph: GraphLike | None = None

    def _estimator(self) -> core.Myerson:
        return core.Myerson()


@documented
@write_constructor
class Hierarchy(SamplingAttribution):
    """Owen values of a hierarchy: pixels in squares in squares, words in sentences in paragraphs.

    The value of a feature is its mean contribution over all orders in which the features of each
    union stay together (Owen, 1977; for more than two levels Winter, 1989). If `n_samples` pays for
    all coalitions of these orders, values are exact. Otherwise the unions at the top are put in an
    order and its reverse, and then, where most is unknown, the parts of unions in their places. The
    features of a union that is not split share its value equally. A union that is split in some
    places gets predicted values in the others: values are biased by these, and errors hold how far
    they may be off. By default `n_samples` is at most 1,008.
    The values of each union sum to its own value, and all of them to the difference of the outputs.
    `last_estimate.unions` holds the unions that are not split, and `last_estimate.union_errors` the
    errors of their values.

    Parameters
    ----------
    {parameters}
    {hierarchy}
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Hierarchy
    >>> x = torch.tensor([[1.0, 2.0, 3.0]])
    >>> Hierarchy(lambda x: x[:, 0] * x[:, 1] * x[:, 2], hierarchy=[0, [1, 2]]).attribute(x)
    tensor([[3.0000, 1.5000, 1.5000]])
    """

    has_graph = True

    hierarchy: HierarchyLike | None = None

    def _graph(self, game: ForwardFunctionGame) -> PlayerTree | list[PlayerTree]:
        return trees_of_inputs(self.hierarchy, game)

    def _estimator(self) -> core.Hierarchy:
        return core.Hierarchy()


@documented
@write_constructor
class Asymmetric(SamplingAttribution):
    """Asymmetric Shapley values: contributions in the orders in which causes come before effects.

    The value of a feature is its mean contribution over all these orders, each as likely as the
    others (Frye, Rowat and Feige, Asymmetric Shapley Values, NeurIPS 2020). With baselines that
    follow the present features, such as `captum_ext.conditional.Gaussian`, causes get credit for
    what their effects tell. Attributions sum exactly to the difference of the outputs. If
    `n_samples` pays for all coalitions that begin such orders, they are exact; otherwise orders are
    drawn, which is unbiased. See `shap_ext.AsymmetricExplainer`, which gives the same numbers.

    Parameters
    ----------
    {parameters}
    {causes}
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Asymmetric
    >>> x = torch.tensor([[1.0, 2.0, 3.0]])
    >>> Asymmetric(lambda x: x[:, 0] * x[:, 1] + x[:, 2], order=[0, [1, 2]]).attribute(x)
    tensor([[0., 2., 3.]])
    """

    has_graph = True

    order: CausalOrder | None = None
    graph: CausalEdges | None = None

    def _graph(self, game: ForwardFunctionGame) -> CausalGraph:
        return read_causal_graph(self.order, self.graph, game.n_players)

    def _estimator(self) -> core.Asymmetric:
        return core.Asymmetric()


@documented
@write_constructor
class Semivalue(SamplingAttribution):
    """Shapley values from marginal contributions, drawn for each feature alone.

    ApproSemivalue (Castro et al., 2009; Zhang et al., SimSHAP, 2023, Eq. 2). Unbiased. Random
    orders draw from the same distribution for half the evaluations, so prefer them. Needs at least
    4 M + 2 evaluations.

    Parameters
    ----------
    {parameters}
    antithetic : bool
        Whether each coalition comes with its complement among the other features.
    efficient : bool
        Whether the attributions are corrected, all by the same amount, to sum to the difference
        of the outputs.
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Semivalue
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> Semivalue(lambda x: x.sum(1) ** 2, seed=0).attribute(x, n_samples=100)[0, :3]
    tensor([ 78., 156., 234.])
    """

    antithetic: bool = True
    efficient: bool = True

    def _estimator(self) -> core.Semivalue:
        return core.Semivalue(self.antithetic, self.efficient)


@documented
@write_constructor
class SimSemivalue(SamplingAttribution):
    """Shapley values from one draw of coalitions for all features, signed by membership.

    The estimator of SimSHAP (Zhang et al., 2023, Table 1 and Eq. 14). For the same draws it equals
    the unbiased form of least squares. Unbiased; the attributions sum exactly to the difference of
    the outputs. Works with any budget of at least 4 evaluations, but has a larger variance than
    random orders.

    Parameters
    ----------
    {parameters}
    paired : bool
        Whether each coalition comes with its complement.
    centred : bool
        Whether to subtract first the linear interpolation between the outputs without and with all
        features. This lowers the variance and does not change the expectation. The paper's form
        does not subtract it.
    {independent_rows}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import SimSemivalue
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> SimSemivalue(lambda x: x.sum(1) ** 2, seed=0).attribute(x, n_samples=100).sum()
    tensor(6084.)
    """

    paired: bool = True
    centred: bool = True

    def _estimator(self) -> core.SimSemivalue:
        return core.SimSemivalue(self.paired, self.centred)


class _AttributionClass(MadeFromEstimator):
    """The type of the classes made here."""


@functools.cache
def attribution_class(estimator: type[Estimator[Any]]) -> type[SamplingAttribution]:
    """Return an attribution method that estimates by an estimator of your own.

    The method has the name of the estimator class, and its options as keyword-only arguments beside
    those that all methods share. It works as the methods of this package do: with budgets,
    tolerances, standard errors, feature masks and baselines. Equal estimator classes give the same
    method.

    Parameters
    ----------
    estimator : type
        A class with the methods of `shapley_adapters.estimators.Estimator`, usually a frozen
        dataclass. To be pickled, it must be importable.

    Returns
    -------
    type
        The attribution method, a subclass of `captum.attr.PerturbationAttribution`.

    Raises
    ------
    InvalidArgumentTypeError
        If it is not the class of an estimator, or its options cannot be passed by name.
    InvalidArgumentError
        If an option has a name that the method uses itself, such as `seed`.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import attribution_class
    >>> from shapley_adapters import RandomOrder  # stands for an estimator of your own
    >>> Method = attribution_class(RandomOrder)
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> method = Method(lambda x: x.sum(1) ** 2, antithetic=True, seed=0)
    >>> method.attribute(x, n_samples=100)[0, :3]
    tensor([ 78., 156., 234.])
    """
    is_on_graph = getattr(estimator, "needs_graph", False)
    shared = {"graph": None} if is_on_graph else {}
    class_name = getattr(estimator, "__name__", "")
    attribution: Any = class_from_estimator(
        _AttributionClass, class_name, SamplingAttribution, estimator, shared
    )
    attribution.has_graph = is_on_graph
    return attribution  # type: ignore[no-any-return]


def _how_to_make(attribution: _AttributionClass) -> tuple[Any, ...]:
    return attribution_class, (attribution.estimator_class,)


copyreg.pickle(_AttributionClass, _how_to_make)
