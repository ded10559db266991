"""AVA, attributions by neighbours."""

from __future__ import annotations

import copy
from dataclasses import field
from functools import partial
from typing import Any

import captum.attr
import numpy as np
import torch
from torch import Tensor

from shapley_adapters.aggregation import Aggregate, averaged_over_neighbours
from shapley_adapters.aggregation.base_explainers import RowCache, name_of
from shapley_adapters.aggregation.neighbours import NeighbourOptions, check_embedding
from shapley_adapters.array_types import FloatArray, IntArray
from shapley_adapters.constructors import write_constructor
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.torch_support.array_module import module_version
from shapley_adapters.torch_support.tensor_arrays import array_of_tensor

from ..argument_types import Inputs, Method, Target
from ..attributions.attribute_methods import NamedAttribution, attribute_method, future_method
from ..captum_internals import TargetType, TensorOrTupleOfTensorsGeneric
from ..inputs.checks import checked_inputs, checked_target
from ..inputs.forward_arguments import Shared, copied
from .base_explainers import (
    Layout,
    attribute_by,
    check_method,
    completed,
    shared_arguments,
    shared_by_all,
    takes,
)


@write_constructor
class AVA(NamedAttribution, NeighbourOptions):
    """An input attributed by the Shapley values of its nearest neighbours.

    Σ_z φ(v_z) / ρ(x, z) over the k nearest rows z of the data (Bhatt, Weller and Moura, Evaluating
    and aggregating feature-based model explanations). Inputs at a small distance share most of
    their neighbours, so their attributions differ little: AVA lowers sensitivity. It is itself a
    Shapley value explanation (Theorem 1), of the weighted average of the neighbours' games. Each
    neighbour is attributed once per target, when it is first needed. `forget` drops these
    attributions; a change of the parameters of a module drops them, too.

    Parameters
    ----------
    attribution_method : Attribution or function
        Attributes the neighbours. For Theorem 1 it must return Shapley values.
    dataset : Tensor or tuple of Tensors, (D, …)
        The rows from which neighbours are taken, in the form of the inputs.
    n_neighbors : int, optional
        How many neighbours explain an input; by default 10, or as many rows as there are.
    metric, metric_params, normalized, at_zero, smoothing
        The distance ρ and its weights, as in `shapley_adapters.aggregation.NeighbourSearch`.
    embed : callable, optional
        Function from inputs to tensors, (B, F), between which distances are computed, such as the
        activations of a layer; by default the flattened inputs.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import AVA, Exact
    >>> dataset = torch.tensor([[1.0, 0.0], [3.0, 0.0], [9.0, 9.0]])
    >>> ava = AVA(Exact(lambda x: x[:, 0] ** 2), dataset, n_neighbors=2)
    >>> ava.attribute(torch.tensor([[2.0, 0.0]]))  # (1 + 9) / 2
    tensor([[5., 0.]])
    """

    _results = ("last_aggregate", "_terms", "_layouts", "_caches")
    _through_futures = False

    attribution_method: Method = field(kw_only=False)
    dataset: Inputs = field(kw_only=False)
    last_aggregate: Aggregate | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        check_method("attribution_method", self.attribution_method)
        forward_func = getattr(self.attribution_method, "forward_func", None)
        captum.attr.Attribution.__init__(self, forward_func)
        self._is_tuple = isinstance(self.dataset, tuple)
        self.dataset = checked_inputs(self.dataset)
        self._index = self._index_of(self._embeddings("dataset", self.dataset))
        self.forget()

    @property
    def multiplies_by_inputs(self) -> bool:
        """Whether the method's attributions are in units of the output."""
        return bool(getattr(self.attribution_method, "multiplies_by_inputs", False))

    def forget(self) -> None:
        """Drop the neighbours' attributions."""
        self._terms: Any = None
        self._layouts: dict[Any, Layout] = {}
        self._caches: dict[Any, RowCache] = {}

    @attribute_method
    def attribute(
        self,
        inputs: TensorOrTupleOfTensorsGeneric,
        *,
        target: TargetType = None,
        **kwargs: Any,
    ) -> Any:
        """Attribute the output for each input to the features, by its neighbours.

        All arguments except the inputs are passed by name, because captum's classes differ in
        their second argument.

        Parameters
        ----------
        inputs : Tensor or tuple of Tensors
            The inputs; the first dimension counts the B examples.
        target : int, tuple, Tensor or list, optional
            Which output to explain, in any of captum's forms. The neighbours of an example are
            explained for the target of the example.
        **kwargs
            Further arguments of the method, for the neighbours, such as `baselines` with one row or
            `n_samples`, which counts per neighbour. An argument with one entry per example, of
            first dimension B > 1, has no meaning for neighbours and raises an error.

        Returns
        -------
        Tensor or tuple of Tensors
            With the shape, type and device of the method's attributions.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError
            If an argument cannot be used; the message names it.
        """
        tensors = checked_inputs(inputs)
        n_examples = len(tensors[0])
        targets = _example_targets(checked_target(target, n_examples), n_examples)
        if target is not None and not takes(self.attribution_method, "target"):
            raise InvalidArgumentError(
                f"target is given, but {name_of(self.attribution_method)} has no argument target."
            )
        methods = [self.attribution_method]
        arguments = shared_by_all(methods, shared_arguments(methods, kwargs), n_examples)
        self._renew(arguments)
        near = self._index.nearest(self._embeddings("inputs", tensors))
        weights = self._index.search.weights(near.distances)
        for target_of_rows in dict.fromkeys(targets):
            cache = self._caches.setdefault(target_of_rows, RowCache(len(self.dataset[0])))
            indices = near.indices[[example_target == target_of_rows for example_target in targets]]
            cache.fill(indices, partial(self._attribute_rows, target_of_rows, arguments))
        explained = np.concatenate(
            [
                self._caches[example_target].at(indices[None])[0]
                for example_target, indices in zip(targets, near.indices, strict=True)
            ]
        )
        values = averaged_over_neighbours(weights, explained)
        self.last_aggregate = Aggregate(values, weights)
        return self._layouts[targets[0]].tensors(values, isinstance(inputs, tuple))

    attribute_future = future_method(attribute)

    def _prepared_for_futures(self) -> AVA:
        """Return a copy that calls `attribute_future` of its method and has its own cache."""
        twin = copy.copy(self)
        twin._through_futures = True
        twin.forget()
        return twin

    def _renew(self, arguments: dict[str, Any]) -> None:
        """Drop attributions that were computed with other arguments or another model."""
        terms = module_version(self.forward_func), _contents(arguments)
        if terms != self._terms:
            self.forget()
            self._terms = terms

    def _attribute_rows(
        self, target: Target, arguments: dict[str, Any], indices: IntArray
    ) -> tuple[FloatArray]:
        """Return the attributions of rows of the data for a target."""
        rows = tuple(tensor[indices.tolist()] for tensor in self.dataset)
        with_target = {**arguments, **({} if target is None else {"target": target})}
        own_inputs = rows if self._is_tuple else rows[0]
        attributions = completed(
            attribute_by(self.attribution_method, own_inputs, with_target, self._through_futures)
        )
        layout = Layout(attributions, rows)
        values = layout.array(name_of(self.attribution_method), attributions)
        if len(values) != len(indices):
            raise InvalidArgumentError(
                f"{name_of(self.attribution_method)} attributes {len(values)} examples for "
                f"{len(indices)} rows of the data; AVA needs one for each."
            )
        self._layouts[target] = layout
        return (values,)

    def _embeddings(self, name: str, tensors: tuple[Tensor, ...]) -> FloatArray:
        if self.embed is not None:
            with torch.no_grad():
                embeddings = self.embed(*copied(tensors))
            tensors = embeddings if isinstance(embeddings, tuple) else (embeddings,)
        flat = [array_of_tensor(tensor).reshape(len(tensor), -1) for tensor in tensors]
        numbers: FloatArray = np.concatenate(flat, axis=1)
        check_embedding(name, numbers)
        return numbers


def _example_targets(target: Target, n_examples: int) -> list[Any]:
    """Return the target of each example, in a form that can be looked up."""
    if isinstance(target, Tensor):
        target = target.reshape(-1).tolist()
    if isinstance(target, list):
        return target * n_examples if len(target) == 1 else target
    return [target] * n_examples


def _contents(argument: object) -> Any:
    """Return what says of nested arguments, by ==, whether they are equal, of any device."""
    if isinstance(argument, dict):
        return {name: _contents(part) for name, part in argument.items()}
    if isinstance(argument, (tuple, list)):
        return [_contents(part) for part in argument]
    if isinstance(argument, Shared):
        return Shared, _contents(argument.value)
    if isinstance(argument, (Tensor, np.ndarray)):
        return type(argument), argument.dtype, argument.shape, argument.tolist()
    return type(argument), argument
