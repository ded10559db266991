"""AVA, explanations by neighbours, for shap."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import numpy as np
import pandas as pd

from shapley_adapters.aggregation import Aggregate, SpentEvaluations, averaged_over_neighbours
from shapley_adapters.aggregation.base_explainers import RowCache
from shapley_adapters.aggregation.neighbours import NeighbourOptions, check_embedding
from shapley_adapters.array_types import FloatArray, IntArray
from shapley_adapters.constructors import write_constructor
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.frames import pandas_frame
from shapley_adapters.torch_support.tensor_arrays import array_of

from ..argument_types import ExplainerLike, Model, Table
from ..explainers.shared_parameters import documented
from ..inputs.datasets import plain_array_of
from ..inputs.models import inner_model, is_torch_module
from ..results.explanations import folded, has_outputs
from ..shap_internals import background_of
from .aggregate_explainer import AggregateExplainer, Combination, Spread
from .base_explainers import BaseExplainer, check_explainer


@documented
@write_constructor
class AVAExplainer(AggregateExplainer, NeighbourOptions):
    """A row explained by the Shapley values of its nearest neighbours (AVA).

    Σ_z φ(v_z) / ρ(x, z) over the k nearest rows z of the data (Bhatt, Weller and Moura, Evaluating
    and aggregating feature-based model explanations). Rows at a small distance share most of their
    neighbours, so their explanations differ little: AVA lowers sensitivity. It is itself a Shapley
    value explanation (Theorem 1), of the weighted average of the neighbours' games. Values and base
    values therefore sum to the weighted mean of the model's outputs for the neighbours, not to the
    output for the row.

    Parameters
    ----------
    {of_aggregates}
    explainer : str, explainer, function, or one of captum's methods
        Explains the neighbours. For Theorem 1 it must return Shapley values. It is passed in the
        same forms as to the other aggregates.
    dataset : array or DataFrame, (D, …), optional
        The rows from which neighbours are taken; by default the rows of `masker`. Each is explained
        once, when it is first needed; `forget` drops these explanations.
    n_neighbors : int, optional
        How many neighbours explain a row; by default 10, or as many rows as the data have.
    metric : str or callable
        The distance ρ: any of scikit-learn's `NearestNeighbors`, or a function of two rows.
    metric_params : mapping, optional
        Further arguments of the distance.
    normalized : bool
        Whether the weights are divided by their sum, so that values keep their scale. The paper
        prints them undivided.
    at_zero : {"only", "leave_out"}
        How neighbours at distance 0 count. `"only"`: they alone explain the row, which is the
        limit. `"leave_out"`: they are skipped, so that a row of the data is explained by others.
    smoothing : float
        Added to all distances.
    embed : callable, optional
        Function from rows to arrays of numbers, (R, F), between which distances are computed; by
        default the flattened rows. Needed if rows hold values that are not numbers.

    Notes
    -----
    The cost is that of explaining the neighbours that were not explained before, `max_evals` per
    neighbour.

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

    explainer: ExplainerLike = "oddgp"
    dataset: Any = None

    def __post_init__(self) -> None:
        if self.dataset is None:
            self.dataset = self.masker  # all of it: shap draws from a large table
        super().__post_init__()
        check_explainer("explainer", self.explainer)
        self.dataset = _checked_data(self.dataset)
        self._index = self._index_of(self._embeddings(self.dataset, "dataset"))
        self.forget()

    def forget(self) -> None:
        """Drop the neighbours' explanations, as after the model was fitted anew.

        Changes of the parameters of torch modules are noticed without.
        """
        self._cache = RowCache(len(self.dataset))
        self._terms: Any = None
        self._template: Any = None

    def _specs(self) -> list[Any]:
        return [self.explainer]

    def _combine(
        self, rows: Table, arguments: Mapping[str, Any], error_bounds: bool
    ) -> Combination:
        search = self._index.search
        near = self._index.nearest(self._embeddings(rows, "X"))
        weights = search.weights(near.distances)
        (explainer,) = self._base_explainers()
        self._renew(arguments)
        self.last_evaluations = SpentEvaluations(((explainer.name, 0),), ())
        self._cache.fill(near.indices, lambda new: self._explain_rows(new, explainer, arguments))
        arrays = self._cache.at(near.indices)
        means: list[Any] = [
            None if array is None else averaged_over_neighbours(weights, array) for array in arrays
        ]
        values, base, errors, half_widths = means
        if error_bounds and errors is None:
            raise InvalidArgumentError(
                f"error_bounds=True, but {explainer.name} gives no standard errors."
            )
        if base is None:
            base = np.zeros(folded(values, has_outputs(values, rows)).shape[:-1])
        spread = Spread(errors, half_widths) if error_bounds else None
        self.last_aggregate = Aggregate(values, weights)
        self.last_candidates = [arrays[0]]
        return Combination(values, base, spread, self._template, *explainer.plot_data(rows, values))

    def _renew(self, arguments: Mapping[str, Any]) -> None:
        """Drop explanations that were computed with other arguments or by another model."""
        terms = (_version(self.model), tuple(sorted(arguments.items())))
        if terms != self._terms:
            self.forget()
            self._terms = terms

    def _explain_rows(
        self, indices: IntArray, explainer: BaseExplainer, arguments: Mapping[str, Any]
    ) -> Any:
        """Return values, base values, errors and half-widths of rows of the data."""
        result = explainer.explain(_rows_at(self.dataset, indices), arguments)
        self._template = result.explanation
        counts = [(explainer.name, result.n_evaluations)]
        self.last_evaluations = SpentEvaluations.from_members(counts)
        return result.values, result.base_values, result.errors, result.half_widths

    def _embeddings(self, rows: Table, name: str) -> FloatArray:
        embedding = array_of(rows if self.embed is None else self.embed(rows.copy()))
        try:
            numbers = np.array(embedding, dtype=np.float64).reshape(len(rows), -1)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentError(
                f"{name} holds values that are not numbers, between which there is no distance. "
                "Pass embed=, a function that turns rows into numbers."
            ) from error
        check_embedding(name, numbers)
        return numbers


def _checked_data(dataset: object) -> Any:
    dataset = plain_array_of(array_of(pandas_frame(dataset, "dataset")), "dataset")
    if not isinstance(dataset, (np.ndarray, pd.DataFrame)):
        background = None if dataset is None else background_of(dataset)
        dataset = background if isinstance(background, np.ndarray) else None
    if dataset is None or dataset.ndim < 2 or len(dataset) == 0:
        raise InvalidArgumentError(
            "dataset= is needed, a table of the rows among which neighbours are looked for, unless "
            "masker= is one."
        )
    return _rows_at(dataset, np.arange(len(dataset)))  # a copy


def _rows_at(data: Table, indices: IntArray) -> Any:
    """Return rows of an array or a DataFrame."""
    return data.iloc[indices] if isinstance(data, pd.DataFrame) else data[indices]


def _version(model: Model) -> Any:
    if not is_torch_module(inner_model(model)):
        return ()
    from shapley_adapters.torch_support.array_module import module_version

    return module_version(inner_model(model))
