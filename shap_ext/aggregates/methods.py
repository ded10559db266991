"""Aggregates of the explanations of several explainers, or of similar rows, as explainers."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import field
from typing import Any

import numpy as np
import shap

import shapley_adapters.aggregation as core
from shapley_adapters.aggregation import convex, neighbours
from shapley_adapters.aggregation.members import check_member
from shapley_adapters.arguments import checked_number, checked_seed
from shapley_adapters.array_types import FloatArray, IntArray
from shapley_adapters.constructors import options_of, write_constructor
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.criteria.attribution_arrays import plain_array
from shapley_adapters.criteria.faithfulness import removal_losses
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.games.evaluation import as_outputs
from shapley_adapters.torch_support.tensor_arrays import array_of

from ..argument_types import ExplainerLike, Rows, Table
from ..explainers.coalition_explainer import CoalitionExplainer
from ..explainers.judged_explanations import in_form_of, rows_with_game
from ..explainers.shared_parameters import TEXTS, documented
from ..inputs.models import inner_model, is_torch_module, prediction_function
from ..results.explanations import base_of_rows, folded, has_outputs, unfolded, with_outputs
from .aggregate_explainer import MEMBER, AggregateExplainer, Answer, Member, rows_of_dataset

LEARNED = ("complexity", "sensitivity", "faithfulness", "trade_off")


@options_of(core.Centroid, TEXTS["aggregates"], TEXTS["explainers"])
class CentroidExplainer(AggregateExplainer):
    """The cost is that of all explainers.

    `max_evals` is divided equally among those that have it. Others, such as `shap.KernelExplainer`,
    spend their own budget in addition, which may be larger: `max_evals` does not limit it.

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.CentroidExplainer(model, np.zeros((1, 3)), seed=0, distance="l1")
    >>> explainer(np.array([[1.0, 2.0, 3.0]]), silent=True).values.round(6)
    array([[ 6., 12., 18.]])
    """

    name = "centroid"


@options_of(core.LowComplexity, TEXTS["aggregates"], TEXTS["explainers"])
class LowComplexityExplainer(AggregateExplainer):
    """The cost is that of all explainers; `max_evals` is divided equally among those that have it.

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> explainer = shap_ext.LowComplexityExplainer(
    ...     lambda x: x.sum(axis=1),
    ...     explainers=[lambda x: x * [1, 2, -1], lambda x: x * [1, 3, 1]],
    ...     method="shrinking",
    ... )
    >>> explainer(np.ones((1, 3))).values
    array([[1. , 2.5, 0. ]])
    """

    name = "low complexity"


@documented
@write_constructor
class ConvexExplainer(AggregateExplainer):
    """A weighted mean of the explanations of several explainers.

    Σ_i w_i g_i (Bhatt, Weller and Moura, Evaluating and aggregating feature-based model
    explanations). The weights are passed, or are learned for a criterion on a set of rows. On these
    rows, the combination is at least as good as the best of the explainers. Combinations of Shapley
    estimates sum to the model's output.

    Parameters
    ----------
    {of_aggregates}
    {explainers}
    weights : sequence of float, criterion, or callable, optional
        One number per explainer, not negative; they are divided by their sum. By default they are
        equal. Or the criterion for which weights are learned: `"complexity"`; `"sensitivity"`, the
        average over neighbours; `"faithfulness"`; `"trade_off"`, sensitivity plus
        `complexity_weight` times complexity; or a function of explanations, (R, M), that returns
        one number per explanation, lower is better.
    dataset : array or DataFrame, optional
        The rows on which weights are learned, at the first call or by `learn`; by default those of
        `masker`.
    complexity_weight : float
        λ of `"trade_off"`, in units of the output for a nat.
    neighbourhood : shapley_adapters.criteria.Neighbourhood, optional
        The neighbours for the sensitivity; needed for it and for `"trade_off"`.
    scale : {"none", "l1", "l2", "max"}
        The norm by which each explanation is scaled first, to the mean norm of all. `"none"`: no
        scaling.

    Attributes
    ----------
    learned_weights : LearnedWeights or None
        The learned weights and their losses.

    Notes
    -----
    The cost is that of all explainers. `max_evals` is divided equally among those that have it.
    Learning explains the data once. For sensitivity it also explains their neighbours; for
    faithfulness it also evaluates 100 coalitions per row.

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> model = lambda x: x.sum(axis=1) ** 2
    >>> explainer = shap_ext.ConvexExplainer(
    ...     model, np.zeros((1, 2)), seed=0, explainers=["exact", lambda x: x], weights=[3, 1]
    ... )
    >>> explainer(np.array([[1.0, 2.0]]), silent=True).values
    array([[2.5, 5. ]])
    """

    name = "convex"

    weights: Any = None
    dataset: Any = None
    complexity_weight: float = 1.0
    neighbourhood: Neighbourhood | None = None
    scale: str = "none"
    learned_weights: core.LearnedWeights | None = field(default=None, init=False)

    @property
    def _is_learned(self) -> bool:
        return isinstance(self.weights, str) or callable(self.weights)

    def learn(self, X: Rows | None = None, **arguments: Any) -> core.LearnedWeights:
        """Learn the weights on rows, by default `dataset`, and keep them.

        Parameters
        ----------
        X : array or DataFrame, (R, …), optional
            The rows.
        **arguments
            Arguments of the explainers, such as `max_evals`; each gets those that it takes.
        """
        self._aggregator()
        given = self.dataset if X is None else X
        rows = rows_of_dataset(
            self.masker if given is None else given, "on which weights are learned"
        )
        members, seed = self._members(), checked_seed(self.seed)

        def candidates(x: Table) -> FloatArray:
            values = [answer.values for answer in self._answers(members, x, arguments)]
            with_outputs = has_outputs(values[0], x)
            arrays = np.array([folded(one, with_outputs) for one in values])
            return core.Convex(None, self.scale).scaled(
                arrays if with_outputs else arrays[:, :, None]
            )

        def sensitivity() -> convex.Loss:
            predict = prediction_function(self.model)
            return convex.sensitivity_around(
                lambda x: candidates(in_form_of(rows, x)),
                lambda x: as_outputs(predict(in_form_of(rows, x)), len(x)),
                rows,
                self.neighbourhood,  # type: ignore[arg-type] # which is there: checked
                seed=seed,
            )

        loss = convex.loss_of_criterion(
            self.weights,
            lambda: candidates(rows),
            sensitivity,
            lambda: self._unfaithfulness(rows, candidates(rows), seed),
            self.complexity_weight,
        )
        self.learned_weights = core.learned_weights(loss, len(members), seed=seed)
        return self.learned_weights

    def _combine(
        self, rows: Table, members: Sequence[Member], arguments: Mapping[str, Any]
    ) -> Answer:
        if self._is_learned and self.learned_weights is None:
            self.learn(**{k: v for k, v in arguments.items() if k != "error_bounds"})
        return super()._combine(rows, members, arguments)

    def _aggregator(self) -> core.Convex:
        if not self._is_learned:
            aggregator = core.Convex(self.weights, self.scale)
            aggregator(np.zeros((len(self._specs()), 1, 1)))  # as many as there are explainers
            return aggregator
        convex.check_criterion("weights", self.weights, LEARNED, self.neighbourhood)
        what = "a finite number, not negative"
        checked_number("complexity_weight", self.complexity_weight, what, lambda x: 0 <= x < np.inf)
        learned = self.learned_weights
        return core.Convex(None if learned is None else learned.weights, self.scale)

    def _unfaithfulness(self, rows: Table, candidates: FloatArray, seed: int) -> convex.Loss:
        """Return the distance of combinations from the changes of output without features."""
        # Groups of columns are those of the first explainer that has any.
        of_members = (getattr(explainer, "groups", None) for explainer in self._specs())
        groups = next((groups for groups in of_members if groups is not None), None)
        game = rows_with_game(self.model, self.masker, rows, self.link, groups).game
        *_, n_outputs, n_features = candidates.shape
        if n_features != game.n_players:
            raise InvalidArgumentError(
                f"weights='faithfulness': the explainers explain {n_features} features, but the "
                f"rows have {game.n_players} players. Where they explain groups of columns, one of "
                "them must be an explainer of this package with groups=."
            )
        subsets, losses = removal_losses(game, n_outputs, seed=seed)
        merged = candidates.reshape(len(candidates), -1, n_features)
        flat = losses.reshape(merged.shape[1], -1)
        return convex.unfaithfulness_loss(merged, subsets, flat)


@options_of(core.NeighbourSearch, TEXTS["aggregates"])
class AVAExplainer(AggregateExplainer):
    """Each row of the data is explained once, when it is first needed.

    `forget` drops these explanations. The cost is that of explaining neighbours that were not
    explained before, `max_evals` per neighbour.

    Parameters
    ----------
    explainer : str, explainer, function, or one of captum's methods
        Explains the neighbours. For Theorem 1 it must return Shapley values. It is passed in the
        same forms as to the other aggregates.
    dataset : array or DataFrame, (D, …), optional
        The rows from which neighbours are taken; by default the rows of `masker`.
    embed : callable, optional
        Function from rows to arrays of numbers, (R, F), between which distances are computed; by
        default the flattened rows. Needed if rows hold values that are not numbers.

    Examples
    --------
    >>> import numpy as np
    >>> import shap_ext
    >>> data = np.array([[1.0, 0.0], [3.0, 0.0], [9.0, 9.0]])
    >>> explainer = shap_ext.AVAExplainer(
    ...     lambda x: x[:, 0] ** 2, np.zeros((1, 2)), seed=0, dataset=data, n_neighbors=2
    ... )
    >>> explainer(np.array([[2.0, 0.0]]), silent=True).values  # (1 + 9) / 2
    array([[5., 0.]])
    """

    name = "AVA"

    explainers: Sequence[Any] | None = field(default=None, init=False)
    embed: Callable[..., Any] | None = None
    explainer: ExplainerLike = "oddgp"
    dataset: Any = None

    def __post_init__(self) -> None:
        if self.dataset is None:
            self.dataset = self.masker  # all of it: shap draws from a large table
        super().__post_init__()
        self.dataset = rows_of_dataset(self.dataset, "among which neighbours are looked for").copy()
        self._index = core.NeighbourIndex(
            self._embeddings(self.dataset, "dataset"), self._aggregator()
        )
        self.forget()

    def forget(self) -> None:
        """Drop the neighbours' explanations, as after the model was fitted anew.

        Changes of the parameters of torch modules are noticed without.
        """
        self._known: dict[int, Any] = {}
        self._terms: Any = None
        self._template: Any = None

    def _specs(self) -> list[Any]:
        if not isinstance(self.explainer, str):
            check_member("explainer", self.explainer, MEMBER)
        return [self.explainer]

    def _combine(
        self, rows: Table, members: Sequence[Member], arguments: Mapping[str, Any]
    ) -> Answer:
        (member,) = members
        near = self._index.nearest(self._embeddings(rows, "X"))
        model, version = inner_model(self.model), None
        if is_torch_module(model):
            from shapley_adapters.torch_support.array_module import module_version

            version = module_version(model)
        decisive = {k: v for k, v in arguments.items() if k not in ("batch_size", "silent")}
        terms = version, decisive
        if terms != self._terms:  # of other arguments, or another model
            self.forget()
            self._terms = terms
        self.last_evaluations = core.SpentEvaluations(((member.name, 0),), ())

        def explain(indices: IntArray) -> Any:
            is_frame = hasattr(self.dataset, "iloc")
            points = self.dataset.iloc[indices] if is_frame else self.dataset[indices]
            (answer,) = self._answers(members, points, arguments)
            self._template = answer.template
            return answer.values, answer.base_values, answer.errors, answer.half_widths

        arrays = neighbours.explained_once(self._known, near.indices, explain)
        averages: list[Any] = [
            None if array is None else core.averaged_over_neighbours(near.weights, array)
            for array in arrays
        ]
        values, base_values, errors, half_widths = averages
        if base_values is None:
            base_values = np.zeros(folded(values, has_outputs(values, rows)).shape[:-1])
        self.last_aggregate = core.Aggregate(values, near.weights)
        self.last_candidates = [arrays[0]]
        shown = None, None
        if isinstance(member.explainer, CoalitionExplainer):
            part = member.explainer.explained_rows((rows,)).parts[0]
            shown = part.data, part.display_data
        return Answer(values, base_values, errors, half_widths, self._template, *shown)

    def _embeddings(self, rows: Table, name: str) -> FloatArray:
        embedding = array_of(rows if self.embed is None else self.embed(rows.copy()))
        try:
            numbers = np.array(embedding, dtype=np.float64).reshape(len(rows), -1)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"{name} holds values that are not numbers, between which there is no distance. "
                "Pass embed=, a function that turns rows into numbers."
            ) from error
        neighbours.check_embedding(name, numbers)
        return numbers


def combine(explanations: Sequence[Any], aggregator: core.Aggregator) -> Any:
    """Combine explanations of the same rows, of shap or captum, into one.

    Parameters
    ----------
    explanations : sequence of Explanations, arrays or tensors
        At least one Explanation of shap, from which names, data and outputs come. Tensors of
        captum's attributions have the shape of the rows; those of several outputs, (R, K, …), are
        brought to shap's order, (R, …, K).
    aggregator : aggregator
        `shapley_adapters.aggregation.Centroid`, `Convex` or `LowComplexity`, with its options.

    Returns
    -------
    shap.Explanation
        Base values are the mean of those of the Explanations, with the aggregator's weights where
        it is a convex combination; 0 for rankings.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If there is no Explanation, or shapes differ.

    Examples
    --------
    >>> import numpy as np, shap, shap_ext
    >>> from shapley_adapters.aggregation import Centroid
    >>> first = shap.Explanation(np.array([[1.0, 2.0]]), np.array([0.5]), np.ones((1, 2)))
    >>> shap_ext.combine([first, np.array([[3.0, 2.0]])], Centroid()).values
    array([[2., 2.]])
    """
    if isinstance(explanations, shap.Explanation) or not isinstance(explanations, Sequence):
        raise InvalidArgumentTypeError(
            f"explanations must be a list; got {type(explanations).__name__}."
        )
    template = next((item for item in explanations if isinstance(item, shap.Explanation)), None)
    if template is None:
        raise InvalidArgumentError(
            "explanations must hold a shap.Explanation, for data and names; captum_ext.combine "
            "makes tensors of tensors."
        )
    shape, has_outputs = np.shape(template.values), with_outputs(template)
    candidates, bases = [], []
    for index, item in enumerate(explanations):
        values = plain_array(f"explanations[{index}]", item)
        if has_outputs and hasattr(item, "detach") and values.ndim == len(shape):
            values = np.moveaxis(values, 1, -1)
        if values.shape != shape:
            raise InvalidArgumentError(
                f"explanations[{index}] has shape {values.shape}, but the first Explanation's "
                f"values have {shape}; they must explain the same rows, features and outputs."
            )
        candidates.append(folded(values, has_outputs))
        bases.append(base_of_rows(item, candidates[-1]))
    aggregate = aggregator(candidates)
    return shap.Explanation(
        unfolded(aggregate.values, shape, has_outputs),
        base_values=aggregate.base_values(bases),
        data=template.data,
        display_data=template.display_data,
        feature_names=template.feature_names,
        output_names=template.output_names,
    )
