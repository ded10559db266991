"""The explainers that do more than their estimator, and those of estimators of other packages."""

from __future__ import annotations

import copy
import functools
from dataclasses import field, replace
from typing import Any

import numpy as np
import shap

import shapley_adapters as core
from shapley_adapters import Estimate, Game, Settings, estimate
from shapley_adapters.arguments import checked_flag
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.estimators.protocol import Estimator
from shapley_adapters.estimators.registered import class_from_estimator, options_from
from shapley_adapters.graphs.causal_graph import CausalEdges, CausalOrder, read_causal_graph

from ..games.explained_rows import ExplainedRows
from ..maskers import ConditionalMasker
from ..shap_internals import image_shape
from .coalition_explainer import CoalitionExplainer
from .native_explainers import NativeExplainer
from .player_trees import trees_of_rows
from .sampling_explainer import SamplingExplainer
from .shared_parameters import TEXTS

_MOST_PIXELS = 64
"""Images of more pixels are explained by squares of squares: learning from evaluations of 3,072
numbers takes 77 s of `oddgp`, where their hierarchy takes half a second."""

_EVALUATIONS_OF_IMAGES = 500
"""The evaluations that shap's own explainer of images has by default."""


@options_from(core.Best, TEXTS)
class BestExplainer(SamplingExplainer):
    """Two rules come first.

    - Trees that `shap.TreeExplainer` supports and linear models, with a plain background of
      numbers: exact values by their structure. Trees without a background have those of the shares
      of their training rows at each split, as in shap. Where values do not sum to the model's
      outputs, the other rules explain the same outputs.
    - Images of more than 64 pixels, with `shap.maskers.Image`: Owen values of squares of squares
      (`HierarchyExplainer`), with at most 500 evaluations by default, as many as shap takes.
      `groups`, `interactions` and `max_seconds` explain pixels or groups by the other rules.
    """

    _known_native: NativeExplainer | None = field(default=None, init=False)

    def explained_rows(self, args: tuple[Any, ...], model: Any = None) -> ExplainedRows:
        """Return the rows of a call; trees without a background need no other reference."""
        native = self._native if model is None else None
        if native is not None and native.has_paths and len(args) == 1:
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

    def _settings(self, explained: ExplainedRows, fields: dict[str, Any]) -> Settings:
        """Return the settings of a call, with the hierarchy of an image of many pixels."""
        settings = super()._settings(explained, fields)
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
        if native is not None and native.has_paths:
            game = super().explained_rows(args).game  # with zeros as reference
        result = super()._estimate(game, args, settings)
        return replace(result, choice=result.choice + refusal)


@options_from(core.Asymmetric, TEXTS)
class AsymmetricExplainer(SamplingExplainer):
    """Values are split into direct and indirect effects by `split_effects`.

    Parameters
    ----------
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

    def _graph(self, explained: ExplainedRows) -> Any:
        if not isinstance(self.masker, ConditionalMasker) or not self.masker.is_split:
            return super()._graph(explained)
        order, n_features = self.order, explained.layout.n_players // 2
        if order is None and self.graph is None:
            order = [list(range(n_features))]
        names = self.masker.background.columns
        return replace(read_causal_graph(order, self.graph, n_features, names), is_split=True)


@functools.cache
def explainer_class(name: str, estimator: type[Estimator[Any]]) -> type[SamplingExplainer]:
    """Return the explainer whose options are those of an estimator of another package.

    `name` is the name of the method in messages and on progress bars.
    """
    recipe = (explainer_class, (name, estimator))
    explainer: type[SamplingExplainer] = class_from_estimator(
        SamplingExplainer, "Explainer", estimator, TEXTS, recipe
    )
    explainer.name = name
    return explainer
