"""The estimators as explainers of shap: each is its options and its estimator."""

from __future__ import annotations

import copy
import copyreg
import functools
from collections.abc import Sequence
from dataclasses import field, replace
from typing import Any

import numpy as np
import shap

import shapley_adapters as core
from shapley_adapters import Estimate, Game, PlayerTree, Settings, estimate
from shapley_adapters.arguments import checked_flag
from shapley_adapters.constructors import write_constructor
from shapley_adapters.cooperators.choices import Cooperators
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
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

from ..games.explained_rows import ExplainedRows
from ..maskers import ConditionalMasker
from ..shap_internals import image_shape
from .coalition_explainer import CoalitionExplainer
from .native_explainers import NativeExplainer
from .player_trees import trees_of_rows
from .sampling_explainer import SamplingExplainer
from .shared_parameters import documented

_MOST_PIXELS = 64
"""Images of more pixels are explained by squares of squares: learning from evaluations of 3,072
numbers takes 77 s of `oddgp`, where their hierarchy takes half a second."""

_EVALUATIONS_OF_IMAGES = 500
"""The evaluations that shap's own explainer of images has by default."""


@documented
@write_constructor
class BestExplainer(SamplingExplainer):
    """Exact Shapley values where they cost no more, else the most accurate estimate for the time.

    The first of these that applies is chosen, and `last_estimate.choice` says which one and why:

    1. Trees that `shap.TreeExplainer` supports and linear models, with a plain background of
       numbers: exact values by their structure. Trees without a background have those of the
       shares of their training rows at each split, as in shap. Where values do not sum to the
       model's outputs, the rules that follow explain the same outputs.
    2. Images of more than 64 pixels, with `shap.maskers.Image`: Owen values of squares of squares
       (`HierarchyExplainer`), with at most 500 evaluations by default, as many as shap takes.
       `groups`, `interactions` and `max_seconds` explain pixels or groups by the rules that follow.
    3. All 2^M coalitions of M features, which are exact: up to 10 features, where the budget pays
       for them, and where they take no longer than an estimate.
    4. Odd Gaussian-process regression (`OddGPExplainer`); with equal weights, or random orders,
       where its own work takes seconds and longer than the model.

    Costs are measured with the first evaluations. With `max_seconds`, the choice is what errs
    least within that time. A call with the explainer that was chosen, its budget
    (`last_estimate.budget`) and `seed` repeats the numbers exactly.

    Parameters
    ----------
    {parameters}
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.BestExplainer(model, np.zeros((1, 10)), seed=0)
    >>> explainer(np.arange(1.0, 11.0)[None]).values[0, :3].round(6)
    array([ 55., 110., 165.])
    >>> explainer.last_estimate.choice
    'all 2^10 coalitions, which the budget pays for'
    """

    name = "best"

    _known_native: NativeExplainer | None = field(default=None, init=False)

    def _estimator(self) -> core.Best:
        return core.Best()

    def explained_rows(self, args: tuple[Any, ...], model: Any = None) -> ExplainedRows:
        """Return the rows of a call; trees without a background need no other reference."""
        if model is None and self._has_paths and len(args) == 1:
            twin = CoalitionExplainer(
                self.model, args[0][:1], feature_names=self.feature_names, groups=self.groups
            )
            return twin.explained_rows(args)
        return super().explained_rows(args, model)

    @property
    def _native(self) -> NativeExplainer | None:
        """What has exact values by the structure of the model; None of other functions."""
        structure = self.explained_function.structure
        if structure is None or self.link is not shap.links.identity:
            return None
        known = self._known_native
        if known is None or known.structure is not structure or known.masker is not self.masker:
            known = self._known_native = NativeExplainer(structure, self.masker)
        return known

    @property
    def _has_paths(self) -> bool:
        """Whether trees are explained by the paths of their training rows, as in shap."""
        return self._native is not None and self._native.has_paths

    def _settings(self, explained: ExplainedRows, settings: Settings) -> Settings:
        """Take the hierarchy of an image of many pixels."""
        shape = image_shape(self.masker)
        is_large = shape is not None and np.prod(shape[:2]) > _MOST_PIXELS
        needs_players = self.groups is not None or settings.interactions or settings.max_seconds
        if not is_large or needs_players:
            return settings
        budget = settings.budget
        if budget is None and settings.tolerance is None:
            budget = _EVALUATIONS_OF_IMAGES
        trees = trees_of_rows(None, explained, self.masker)
        return replace(settings, graph=trees, budget=budget)

    def _estimator_of_call(self, settings: Settings) -> Estimator[Any]:
        return self._estimator() if settings.graph is None else core.Hierarchy()

    def _estimate(self, game: Game, args: tuple[Any, ...], settings: Settings) -> Estimate:
        if settings.graph is not None:  # of an image
            n_pixels = int(np.prod((image_shape(self.masker) or ())[:2]))
            choice = (
                f"hierarchy: squares of squares, because the image has {n_pixels} pixels, more "
                f"than {_MOST_PIXELS}"
            )
            if settings.budget == _EVALUATIONS_OF_IMAGES:
                choice += f"; at most {settings.budget} evaluations, as in shap"
            return replace(estimate(game, core.Hierarchy(), settings), choice=choice)
        native, refusal = self._native, ""
        needs_coalitions = self.groups is not None or settings.interactions or settings.trace
        if native is not None and not needs_coalitions:
            exact = native.estimate(game, args[0], settings.seed)
            if exact is not None:
                return exact
            kind = type(native.structure).__name__
            refusal = f"; shap has no exact values of {kind} for these rows"
        if self._has_paths:
            game = super().explained_rows(args).game  # with zeros as reference
        result = super()._estimate(game, args, settings)
        return replace(result, choice=result.choice + refusal)


@documented
class EnumerationExplainer(CoalitionExplainer):
    """Shapley values by enumeration of all 2^M coalitions, for up to 20 players.

    Unlike shap's exact explainer, it evaluates the coalitions of all rows together and accepts
    groups of columns as players. It finds features that equal the background by comparing their
    values. For Owen values of clustered maskers use shap's; here a clustering is only plotted.

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
    global_importance = SamplingExplainer.global_importance

    def _estimator(self) -> core.Exact:
        return core.Exact()


@documented
@write_constructor
class OddGPExplainer(SamplingExplainer):
    """Shapley values as the posterior of a Gaussian process on the odd part of the game.

    The most accurate estimator of this package on all models and games of its benchmarks, for
    budgets of at least four evaluations per feature. It evaluates pairs of complementary
    coalitions, selected so that they leave little posterior variance. A prior over interactions of
    all odd sizes predicts the other coalitions. The strengths of the prior and the weight of each
    feature are learned from the row's values. The values sum exactly to the model's output. They
    are exact when all coalitions are evaluated. Otherwise the estimate is biased: it shrinks
    interactions that the evaluations do not determine. Standard errors are posterior standard
    deviations. Works with any budget of at least 4 evaluations. Learning takes about 3 milliseconds
    per row and output at 200 evaluations, and 17 at 800.

    Parameters
    ----------
    {parameters}
    weights : {"learned", "equal"}
        Whether features have different weights in interactions, learned per row. With equal weights
        all rows share their linear algebra, which takes less than a millisecond per row, but the
        estimates are less accurate.
    cooperators : {None, "auto", "hessian", "gradient", "difference"} or array
        Scores of the interactions of features, as a prior of the weights. None: no scores. Other
        values as in SHEAR, except `"auto"`: it computes derivatives if the model has them, at M + 1
        backward passes per row, and no scores otherwise. `last_estimate.cooperators` names the kind
        used. Scores help below 16 evaluations per feature.
    unbiased : bool
        Whether the estimates are unbiased, for users who average or subtract many of them. All
        pairs are then drawn at random, in eight parts. The posterior given the other parts predicts
        each part, and the part corrects the errors of these predictions without bias. Standard
        errors describe the random choice of coalitions. The error is mostly 1.2 to 2.5 times that
        of the biased estimate, and learning takes eight times as long.
    graph : str, graph, or list of graphs, optional
        Which features are near each other, as in `MyersonExplainer`. Interactions of near features
        are then expected to be larger, if the values of the row do not deny it. Of use from about
        4 evaluations per feature on, most for networks on graphs.
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.OddGPExplainer(model, np.zeros((1, 12)), seed=0)
    >>> explainer(np.arange(1.0, 13.0)[None], max_evals=100).values[0, :3].round(6)
    array([ 78., 156., 234.])
    """

    name = "odd GP"

    has_graph = True

    weights: str = "learned"
    cooperators: Cooperators | None = None
    unbiased: bool = False
    graph: GraphLike | None = None

    def _estimator(self) -> core.OddGP:
        return core.OddGP(self.weights, self.cooperators, self.unbiased)

    def _graph(self, explained: ExplainedRows) -> Structure | Sequence[Structure] | None:
        return None if self.graph is None else super()._graph(explained)


@documented
@write_constructor
class ShearExplainer(SamplingExplainer):
    """SHEAR: enumerate the strongest cooperators of each feature, draw the others at random.

    With N evaluations per player, all subsets of its log2(N / 2) strongest cooperators are
    evaluated (Wang et al., Accelerating Shapley Explanation via Contributive Cooperator Selection,
    ICML 2022, Eq. 12–14). All players share one budget: a coalition that several players need is
    evaluated once, and the saved evaluations are used for others. Unbiased with the default
    options, and efficient. Needs at least 4 M + 2 evaluations.

    Parameters
    ----------
    {parameters}
    cooperators : {"auto", "hessian", "gradient", "difference", "random", "learned"} or array
        How the strongest cooperators are found. `"hessian"`: second derivatives (Eq. 11) of a torch
        module, 1 + M backward passes. `"gradient"`: differences of first derivatives, M + 1
        backward passes, suited to ReLU networks. `"difference"`: M + M (M − 1) / 2 evaluations, for
        any model. `"auto"`: the first of these that gives scores other than zero for the row;
        differences only if they cost at most half the budget, otherwise at random. `"learned"`: a
        regression learns the interactions from all values, for any model; the draws, of which each
        serves all players, estimate only what it leaves. The most accurate. An array, (M, M)
        or (R, M, M), holds your scores. Backward passes are reported, and are not part of the
        budget.
    complement : {"posterior", "uniform", "none"}
        How the players that are not cooperators are drawn. `"posterior"`: as in a random order,
        which is unbiased. `"uniform"`: each with probability 1/2, as in the authors' code.
        `"none"`: not at all (Eq. 13).
    antithetic : bool
        Whether complementary subsets of the cooperators get complementary draws (4.2).
    efficient : bool
        Whether the values are made to sum to the model's output.
    {independent_rows}

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

    cooperators: Cooperators = "auto"
    complement: str = "posterior"
    antithetic: bool = True
    efficient: bool = True

    def _estimator(self) -> core.Shear:
        return core.Shear(self.complement, self.antithetic, self.efficient, self.cooperators)


@documented
@write_constructor
class RandomOrderExplainer(SamplingExplainer):
    """Shapley values from random orders of the features and their reverses.

    Unbiased; the values sum exactly to the model's output. A pair of orders of M features costs 2
    (M − 1) evaluations. Pairs make quadratic models exact. The counterpart of shap's permutation
    explainer, for all rows at once and with standard errors. Fewer than 2 M evaluations, 4 at
    least, pay for an order of blocks of features, which share the contribution of their block
    equally. This is biased towards equal values, and a warning says how much.

    Parameters
    ----------
    {parameters}
    antithetic : bool
        Whether each order comes with its reverse.
    {independent_rows}

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

    antithetic: bool = True

    def _estimator(self) -> core.RandomOrder:
        return core.RandomOrder(self.antithetic)


@documented
@write_constructor
class LeastSquaresExplainer(SamplingExplainer):
    """Shapley values as the solution of a weighted regression (KernelSHAP).

    The values sum exactly to the model's output. By default the estimator is consistent, with a
    bias in proportion to 1 / budget. `unbiased=True` has no bias but a larger variance. The
    counterpart of shap's kernel explainer, for all rows at once, with pairs and standard errors.
    Needs at least 4 evaluations. Few evaluations are spent on random orders, and the regression is
    on differences of successive outputs: below 2 M + 2 or, with more than 30 features, until draws
    of coalitions would cover the single features, at 8 to 15 evaluations per feature.

    Parameters
    ----------
    {parameters}
    {least_squares_options}
    {independent_rows}

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

    paired: bool = True
    sizes: str = "kernel"
    replacement: bool = True
    unbiased: bool = False

    def _estimator(self) -> core.LeastSquares | core.UnbiasedLeastSquares:
        return core.least_squares(self.paired, self.sizes, self.replacement, self.unbiased)


@documented
@write_constructor
class LShapleyExplainer(SamplingExplainer):
    """L-Shapley values: each feature's Shapley value among its neighbours on a graph.

    For features with neighbours, such as words, pixels or atoms, if features that are far apart
    hardly interact. The value of feature i is its Shapley value in the game of the features within
    `order` edges (Chen et al., L-Shapley and C-Shapley, ICLR 2019, Definition 1). The values do not
    sum to the model's output unless the order covers the graph. The cost depends on order and
    graph: 2^(2k) evaluations per word for order k on a text. Without `max_evals`, a given order may
    need up to 65,536 evaluations per row. If the order costs more than the budget, random orders of
    the large neighbourhoods are drawn. This is unbiased for the L-Shapley value of that order, and
    has standard errors. Everything else is exact, with standard errors of 0. `last_estimate.orders`
    holds the order used.

    Parameters
    ----------
    {parameters}
    {graph}
    order : int or "auto"
        The largest distance of considered features, in edges. By default the largest order that
        `max_evals` allows, and at least 1; if order 1 costs more, random orders are drawn. If
        `max_evals` does not allow these either, the order is 0, with a warning.
    context : {"removed", "kept"}
        Whether features outside the neighbourhood are absent, as in the paper, or present, as in
        the authors' code.
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> explainer = shap_ext.LShapleyExplainer(model, np.zeros((1, 3)), graph="line", order=1)
    >>> explainer(np.array([[1.0, 2.0, 3.0]])).values
    array([[1., 1., 3.]])
    """

    name = "L-Shapley"
    has_graph = True

    graph: GraphLike | None = None
    order: int | str = "auto"
    context: str = "removed"

    def _estimator(self) -> core.LShapley:
        return core.LShapley(self.order, self.context)


@documented
@write_constructor
class CShapleyExplainer(SamplingExplainer):
    """C-Shapley values: marginal contributions to connected sets of features on a graph.

    For features with neighbours, such as words, pixels or atoms, if features that are far apart
    hardly interact. The value of feature i is a weighted sum of v(U) − v(U∖i) over the connected
    sets U around i, within `order` edges (Chen et al., L-Shapley and C-Shapley, ICLR 2019,
    Definition 2). On a text these sets are the n-grams around a word. The values do not sum to the
    model's output. The cost depends on order and graph: about k² + 2k evaluations per word for
    order k on a text. Without `max_evals`, a given order may need up to 65,536 evaluations per row.
    If the order costs more than the budget, random orders of the large neighbourhoods are drawn. A
    feature then gets its marginal contribution to its component when it arrives. This is unbiased
    for the C-Shapley value of that order, and has standard errors. Everything else is exact, with
    standard errors of 0. For the regression and for `weighting="paper"`, nothing is drawn.
    `last_estimate.orders` holds the order used.

    Parameters
    ----------
    {parameters}
    {graph}
    order : int or "auto"
        The largest distance of considered features, in edges; for the regression, the largest size
        of the sets. By default the largest order that `max_evals` allows. For the sum it is at
        least 1; if order 1 costs more, random orders are drawn. If `max_evals` allows no neighbours
        at all, each feature is taken by itself, with a warning.
    {c_shapley_options}
    efficient : bool
        Whether the regression is made to sum to the model's output.
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x[:, 0] * x[:, 1] + x[:, 2]
    >>> explainer = shap_ext.CShapleyExplainer(model, np.zeros((1, 3)), graph="line", order=1)
    >>> explainer(np.array([[1.0, 2.0, 3.0]])).values
    array([[1., 1., 3.]])
    """

    name = "C-Shapley"
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
class MyersonExplainer(SamplingExplainer):
    """Myerson values: Shapley values of features that act together only where they are connected.

    For features with neighbours, such as atoms of a molecule. The value of a coalition is the sum
    of the values of its connected components. The Myerson value (1977) is the Shapley value of this
    game. It needs the values of connected sets only. If there are more of them than `max_evals`
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
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x[:, 0] * x[:, 2]
    >>> explainer = shap_ext.MyersonExplainer(model, np.zeros((1, 3)), graph="line")
    >>> explainer(np.array([[1.0, 2.0, 3.0]])).values
    array([[1., 1., 1.]])
    """

    name = "Myerson"
    has_graph = True

    graph: GraphLike | None = None

    def _estimator(self) -> core.Myerson:
        return core.Myerson()


@documented
@write_constructor
class HierarchyExplainer(SamplingExplainer):
    """Owen values of a hierarchy: words in sentences in paragraphs, pixels in squares in squares.

    The value of a feature is its mean contribution over all orders in which the features of each
    union stay together (Owen, 1977; for more than two levels Winter, 1989). If `max_evals` pays for
    all coalitions of these orders, values are exact. Otherwise the unions at the top are put in an
    order and its reverse, and then, where most is unknown, the parts of unions in their places. The
    features of a union that is not split share its value equally. A union that is split in some
    places gets predicted values in the others: values are biased by these, and errors hold how far
    they may be off. By default `max_evals` is at most 1,008.
    The values of each union sum to its own value, and all of them to the model's output.
    `hierarchical_values` and `clustering` of the Explanation hold the tree of texts, of images and
    of maskers with a clustering, so that `shap.plots.text` shows unions that are not split as
    phrases.

    Parameters
    ----------
    {parameters}
    {hierarchy}
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x[:, 0] * x[:, 1] * x[:, 2]
    >>> explainer = shap_ext.HierarchyExplainer(model, np.zeros((1, 3)), hierarchy=[0, [1, 2]])
    >>> explainer(np.array([[1.0, 2.0, 3.0]])).values
    array([[3. , 1.5, 1.5]])
    """

    name = "hierarchy"
    has_graph = True

    hierarchy: HierarchyLike | None = None

    def _graph(self, explained: ExplainedRows) -> PlayerTree | Sequence[PlayerTree]:
        return trees_of_rows(self.hierarchy, explained, self.masker)

    def _estimator(self) -> core.Hierarchy:
        return core.Hierarchy()


@documented
@write_constructor
class AsymmetricExplainer(SamplingExplainer):
    """Asymmetric Shapley values: contributions in the orders in which causes come before effects.

    The value of a feature is its mean contribution over all these orders, each as likely as the
    others (Frye, Rowat and Feige, Asymmetric Shapley Values, NeurIPS 2020). Given absent features
    that follow the present ones, such as `shap_ext.maskers.Gaussian`, causes get credit for what
    their effects tell. Values sum exactly to the model's output. If `max_evals` pays for all
    coalitions that begin such orders, they are exact; otherwise orders are drawn, which is
    unbiased. Trees, lists of lists and their combinations may have any number of features. Other
    partial orders may have 65,536 sets of features that hold the causes of all of them; more are
    refused. No other explainer estimates these values: they weight coalitions by their size, or
    pair them with their complements, which is right for the Shapley value alone.

    Parameters
    ----------
    {parameters}
    {causes}
    split_effects : bool
        Whether to return two features for each: its direct part, what the model's output changes by
        when it sees the value and the other features keep their distribution, and its indirect
        part, by that change of their distribution (Heskes et al., Causal Shapley Values, NeurIPS
        2020). Both sum to the value. They need a masker of
        `shap_ext.maskers` that draws absent features, such as `Causal`, and twice as many
        evaluations for each order. Without an order or a graph, all orders are taken. Error bars of
        direct parts are too long: they ignore that both of their values have the same draws. Those
        of indirect parts are somewhat short with less than two evaluations of each coalition: 95 %
        intervals of four features held .89.
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> cause = np.random.default_rng(0).normal(size=10_000)
    >>> X = np.column_stack([cause, cause + np.random.default_rng(1).normal(size=10_000)])
    >>> masker = shap_ext.maskers.Gaussian(X)
    >>> explainer = shap_ext.AsymmetricExplainer(lambda x: 4 * x[:, 1], masker, order=[0, 1])
    >>> explainer(np.array([[1.0, 2.0]])).values.round() + 0  # the cause tells half of the effect
    array([[4., 4.]])
    """

    name = "asymmetric"
    has_graph = True

    order: CausalOrder | None = None
    graph: CausalEdges | None = None
    split_effects: bool = False

    def __post_init__(self) -> None:
        super().__post_init__()
        if not checked_flag("split_effects", self.split_effects):
            return
        if not isinstance(self.masker, ConditionalMasker):
            raise InvalidArgumentTypeError(
                "split_effects=True needs a masker that draws absent features given the present "
                f"ones, such as shap_ext.maskers.Causal; got {type(self.masker).__name__}."
            )
        if self.groups is not None or self.feature_names is not None:
            raise InvalidArgumentError(
                "split_effects=True takes neither groups nor feature_names: pass the masker a "
                "DataFrame with the names."
            )
        self.masker = copy.copy(self.masker)
        self.masker.is_split = True

    def explained_rows(self, args: tuple[Any, ...], model: Any = None) -> ExplainedRows:
        """Return the rows of a call; both parts of a feature have the same names in all rows."""
        explained = super().explained_rows(args, model)
        if not self.split_effects:
            return explained
        (part,) = explained.parts
        names = None if part.feature_names is None else part.feature_names[0]
        table = np.array(list(part.data))
        return replace(explained, parts=[replace(part, data=table, feature_names=names)])

    def _graph(self, explained: ExplainedRows) -> CausalGraph:
        layout, order = explained.layout, self.order
        if not isinstance(self.masker, ConditionalMasker) or not self.masker.is_split:
            return read_causal_graph(order, self.graph, layout.n_players, layout.names)
        n_features, names = layout.n_players // 2, self.masker.background.columns
        if order is None and self.graph is None:
            order = [list(range(n_features))]
        graph = read_causal_graph(order, self.graph, n_features, names)
        return replace(graph, is_split=True)

    def _estimator(self) -> core.Asymmetric:
        return core.Asymmetric()


@documented
@write_constructor
class SemivalueExplainer(SamplingExplainer):
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
        Whether the values are corrected, all by the same amount, to sum to the model's output.
    {independent_rows}

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.SemivalueExplainer(model, np.zeros((1, 12)), seed=0)
    >>> explainer(np.arange(1.0, 13.0)[None], max_evals=100).values[0, :3].round(6)
    array([ 78., 156., 234.])
    """

    name = "semivalue"

    antithetic: bool = True
    efficient: bool = True

    def _estimator(self) -> core.Semivalue:
        return core.Semivalue(self.antithetic, self.efficient)


@documented
@write_constructor
class SimSemivalueExplainer(SamplingExplainer):
    """Shapley values from one draw of coalitions for all features, signed by membership.

    The estimator of SimSHAP (Zhang et al., 2023, Table 1 and Eq. 14). For the same draws it equals
    the unbiased form of least squares. Unbiased; the values sum exactly to the model's output.
    Works with any budget of at least 4 evaluations, but has a larger variance than random orders.

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
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.SimSemivalueExplainer(model, np.zeros((1, 12)), seed=0)
    >>> round(float(explainer(np.arange(1.0, 13.0)[None], max_evals=100).values.sum()), 6)
    6084.0
    """

    name = "sim-semivalue"

    paired: bool = True
    centred: bool = True

    def _estimator(self) -> core.SimSemivalue:
        return core.SimSemivalue(self.paired, self.centred)


class _ExplainerClass(MadeFromEstimator):
    name: str


@functools.cache
def explainer_class(name: str, estimator: type[Estimator[Any]]) -> type[SamplingExplainer]:
    """Return the explainer whose options are those of an estimator class.

    `name` is the name of the method in messages and on progress bars.
    """
    is_on_graph = getattr(estimator, "needs_graph", False)
    shared = {"graph": None} if is_on_graph else {}
    class_name = f"{getattr(estimator, '__name__', '')}Explainer"
    explainer: Any = class_from_estimator(
        _ExplainerClass, class_name, SamplingExplainer, estimator, shared
    )
    explainer.name, explainer.has_graph = name, is_on_graph
    return explainer  # type: ignore[no-any-return]


def _how_to_make(explainer: _ExplainerClass) -> tuple[Any, ...]:
    return explainer_class, (explainer.name, explainer.estimator_class)


copyreg.pickle(_ExplainerClass, _how_to_make)
