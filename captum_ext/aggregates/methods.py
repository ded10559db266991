"""Attributions that are made of those of other methods, or of those of similar inputs."""

from __future__ import annotations

import copy
from collections.abc import Callable, Sequence
from dataclasses import field
from functools import partial
from typing import Any, ClassVar

import captum.attr
import numpy as np
import torch
from torch import Tensor
from torch.futures import Future

import shapley_adapters.aggregation as core
from shapley_adapters.aggregation import convex, members, neighbours
from shapley_adapters.array_types import FloatArray, IntArray
from shapley_adapters.constructors import options_of, with_options_of, write_constructor
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.torch_support.array_module import module_version
from shapley_adapters.torch_support.tensor_arrays import array_of_tensor

from ..argument_types import Inputs, Method, Target
from ..attributions.attribute_methods import NamedAttribution, attribute_method, future_method
from ..captum_internals import TargetType, TensorOrTupleOfTensorsGeneric
from ..inputs.checks import checked_inputs, checked_target
from ..inputs.forward_arguments import Shared, copied
from .base_explainers import (
    METHOD,
    Layout,
    attribute_by,
    drawn_inputs,
    object_of,
    shared_arguments,
    shared_by_all,
    takes,
)


@write_constructor
class AggregateAttribution(NamedAttribution):
    """Base of the attributions that are made of those of other methods.

    Attributes
    ----------
    attribution_methods : list
        The other methods.
    last_aggregate : Aggregate or None
        The aggregate of the latest call of `attribute`, with features last. It holds weights and
        proofs.
    last_evaluations : SpentEvaluations or None
        What each method spent in the latest call of `attribute`, and which of them are not counted.
        None for `AVA`.
    """

    _results: ClassVar[tuple[str, ...]] = ("last_aggregate", "last_evaluations")
    _through_futures = False
    _kind: ClassVar[type[Any]]

    attribution_methods: Sequence[Any] = field(kw_only=False)
    last_aggregate: core.Aggregate | None = field(default=None, init=False)
    last_evaluations: core.SpentEvaluations | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        methods = members.checked_members("attribution_methods", self.attribution_methods, METHOD)
        self.attribution_methods = methods
        captum.attr.Attribution.__init__(self, getattr(methods[0], "forward_func", None))
        self._check_options()

    def _check_options(self) -> None:
        self._aggregator()

    def _aggregator(self) -> Any:
        """Return the options of this object as those of the core: an aggregator, or a search."""
        return with_options_of(self._kind, self)

    @property
    def multiplies_by_inputs(self) -> bool:
        """Whether all methods' attributions are in units of the output."""
        methods = self.attribution_methods
        return all(bool(getattr(one, "multiplies_by_inputs", False)) for one in methods)

    @attribute_method
    def attribute(
        self,
        inputs: TensorOrTupleOfTensorsGeneric,
        *,
        target: TargetType = None,
        **kwargs: Any,
    ) -> Any:
        """Attribute by other methods, and combine their attributions.

        All arguments except the inputs are passed by name, because captum's classes differ in
        their second argument.

        Parameters
        ----------
        inputs : Tensor or tuple of Tensors
            The inputs; the first dimension counts the examples.
        target : int, tuple, Tensor or list, optional
            Which output to explain, in any of captum's forms. `AVA` explains the neighbours of an
            example for the target of the example.
        **kwargs
            Further arguments of the methods, such as `baselines`; each gets those that it has, and
            one of them must have it. `n_samples` is the budget of all methods together: those that
            take it get equal shares. For arguments of one method alone, pass a
            `functools.partial` of its `attribute` as the method. Arguments of `AVA` are for the
            neighbours: `n_samples` counts per neighbour, and an argument with one entry per
            example, of first dimension B > 1, raises an error.

        Returns
        -------
        Tensor or tuple of Tensors
            In the form of the first method's attributions.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError
            If an argument cannot be used, no method has it, or attributions have different shapes.
        """
        tensors = checked_inputs(inputs)
        arguments = shared_arguments(self.attribution_methods, kwargs)
        self._check_target(target)
        layout, self.last_aggregate = self._combine(inputs, tensors, target, arguments)
        return layout.tensors(self.last_aggregate.values, isinstance(inputs, tuple))

    attribute_future = future_method(attribute)

    def _prepared_for_futures(self) -> Any:
        """Return a copy that asks its methods for futures."""
        twin = copy.copy(self)
        twin._through_futures = True
        return twin

    def _combine(
        self, inputs: Inputs, tensors: tuple[Tensor, ...], target: Target, arguments: dict[str, Any]
    ) -> tuple[Layout, core.Aggregate]:
        layout, candidates = self._attributed(inputs, tensors, target, arguments)
        objects = map(object_of, self.attribution_methods)
        self.last_evaluations = core.SpentEvaluations.from_members(
            (members.name_of(method), method) for method in objects
        )
        return layout, self._aggregator()(candidates)

    def _check_target(self, target: Target) -> None:
        for method in self.attribution_methods:
            if target is not None and not takes(method, "target"):
                raise InvalidArgumentError(
                    f"target is given, but {members.name_of(method)} has no argument target, and "
                    "would attribute something else. Pass a function with it."
                )

    def _attributed(
        self, inputs: Inputs, tensors: tuple[Tensor, ...], target: Target, arguments: dict[str, Any]
    ) -> tuple[Layout, list[FloatArray]]:
        """Return the attributions by each method as arrays, (B, …, M)."""
        methods = self.attribution_methods
        if target is not None:
            arguments = {**arguments, "target": target}
        with members.shared_budget(
            "n_samples", sum(takes(method, "n_samples") for method in methods)
        ):
            started = [
                attribute_by(method, inputs, arguments, self._through_futures) for method in methods
            ]
            found = [one.wait() if isinstance(one, Future) else one for one in started]
        layout = Layout(found[0], tensors)
        names = map(members.name_of, methods)
        return layout, [layout.array(name, one) for name, one in zip(names, found, strict=True)]


_METHODS = """attribution_methods : sequence
        Attribution methods, captum's or ours, and functions of the inputs that return attributions:
        tensors, arrays, or Explanations of shap."""


@options_of(core.Centroid, _METHODS)
class Centroid(AggregateAttribution):
    """The result has the form of the first method's attributions.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Centroid
    >>> Centroid([lambda x: x, lambda x: 2 * x, lambda x: 9 * x], distance="l1").attribute(
    ...     torch.tensor([[1.0, -2.0]])
    ... )
    tensor([[ 2., -4.]])
    """


@options_of(core.LowComplexity, _METHODS)
class LowComplexity(AggregateAttribution):
    """The result has the form of the first method's attributions.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import LowComplexity
    >>> signs = torch.tensor([1.0, 2.0, -1.0]), torch.tensor([1.0, 3.0, 1.0])
    >>> methods = [lambda x: x * signs[0], lambda x: x * signs[1]]
    >>> LowComplexity(methods, method="shrinking").attribute(torch.ones(1, 3))
    tensor([[1.0000, 2.5000, 0.0000]])
    """


@write_constructor
class Convex(AggregateAttribution):
    """A weighted mean of the attributions of several methods.

    Σ_i w_i g_i (Bhatt, Weller and Moura). The weights are passed, or are learned by `learn`.

    Parameters
    ----------
    attribution_methods : sequence
        As in `Centroid`.
    weights : sequence of float, optional
        One for each method, not negative; they are divided by their sum. Equal by default.
    scale : {"none", "l1", "l2", "max"}
        The norm by which each attribution is scaled first, to the mean norm of all. `"none"`: no
        scaling.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Convex
    >>> Convex([lambda x: x, lambda x: 5 * x], weights=[3, 1]).attribute(torch.ones(1, 2))
    tensor([[2., 2.]])
    """

    _kind = core.Convex

    weights: Any = None
    scale: str = "none"
    learned_weights: core.LearnedWeights | None = field(default=None, init=False)

    def _check_options(self) -> None:
        self._aggregator()(np.zeros((len(self.attribution_methods), 1, 1)))

    def learn(
        self,
        inputs: TensorOrTupleOfTensorsGeneric,
        criterion: Callable[[FloatArray], Any] | str = "complexity",
        *,
        target: TargetType = None,
        neighbourhood: Neighbourhood | None = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> core.LearnedWeights:
        """Learn weights for a criterion on inputs, and use them from now on.

        On these inputs the combination is at least as good as the best of the methods.

        Parameters
        ----------
        inputs, target, **kwargs
            As in `attribute`.
        criterion : {"complexity", "sensitivity"} or callable
            The criterion, by name. Or a function of attributions, (R, M), that returns one number
            per attribution; lower is better.
        neighbourhood : shapley_adapters.criteria.Neighbourhood, optional
            The neighbours for the average sensitivity. `forward_func` of the first method decides
            which of them keep the prediction.
        seed : int
            Seed of random starts, and of the neighbours.
        """
        convex.check_criterion("criterion", criterion, ("complexity", "sensitivity"), neighbourhood)
        arguments = shared_arguments(self.attribution_methods, kwargs)
        self._check_target(target)

        def candidates(of: Inputs, target_of: Target, further: dict[str, Any]) -> FloatArray:
            _, arrays = self._attributed(of, checked_inputs(of), target_of, further)
            return self._aggregator().scaled(arrays)

        def sensitivity() -> convex.Loss:
            around: Any = neighbourhood  # which is there: checked
            of_host = inputs, target, self.forward_func, arguments, self.attribution_methods
            explain, predict, rows = drawn_inputs(*of_host, around, candidates)
            return convex.sensitivity_around(
                explain, predict, rows, around, seed=seed, with_owners=True
            )

        loss = convex.loss_of_criterion(
            criterion, lambda: candidates(inputs, target, arguments), sensitivity
        )
        self.learned_weights = core.learned_weights(loss, len(self.attribution_methods), seed=seed)
        self.weights = self.learned_weights.weights
        return self.learned_weights


@options_of(core.NeighbourSearch)
class AVA(AggregateAttribution):
    """Each neighbour is attributed once per target, when it is first needed.

    `forget` drops these attributions; a change of the parameters of a module drops them, too.

    Parameters
    ----------
    attribution_method : Attribution or function
        Attributes the neighbours. For Theorem 1 it must return Shapley values.
    dataset : Tensor or tuple of Tensors, (D, …)
        The rows from which neighbours are taken, in the form of the inputs.
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

    _results = ("last_aggregate", "_terms", "_layouts", "_known")

    attribution_methods: Sequence[Any] = field(init=False)
    attribution_method: Method = field(kw_only=False)
    dataset: Inputs = field(kw_only=False)
    embed: Callable[..., Any] | None = None

    def __post_init__(self) -> None:
        members.check_member("attribution_method", self.attribution_method, METHOD)
        self.attribution_methods = [self.attribution_method]
        super().__post_init__()
        self._is_tuple = isinstance(self.dataset, tuple)
        self.dataset = checked_inputs(self.dataset)
        self._index = core.NeighbourIndex(
            self._embeddings("dataset", self.dataset), self._aggregator()
        )
        self.forget()

    def forget(self) -> None:
        """Drop the neighbours' attributions."""
        self._terms: Any = None
        self._layouts: dict[Any, Layout] = {}
        self._known: dict[Any, dict[int, FloatArray]] = {}

    def _prepared_for_futures(self) -> Any:
        twin = super()._prepared_for_futures()
        twin.forget()
        return twin

    def _combine(
        self, inputs: Inputs, tensors: tuple[Tensor, ...], target: Target, arguments: dict[str, Any]
    ) -> tuple[Layout, core.Aggregate]:
        n_examples = len(tensors[0])
        targets = _example_targets(checked_target(target, n_examples), n_examples)
        arguments = shared_by_all(self.attribution_methods, arguments, n_examples)
        decisive = {k: v for k, v in arguments.items() if k != "show_progress"}
        terms = module_version(self.forward_func), _contents(decisive)
        if terms != self._terms:  # other arguments, or another model
            self.forget()
            self._terms = terms
        near = self._index.nearest(self._embeddings("inputs", tensors))
        explained: dict[int, Any] = {}
        for one in dict.fromkeys(targets):
            examples = [example for example in range(n_examples) if targets[example] == one]
            explain = partial(self._attribute_rows, one, arguments)
            known = self._known.setdefault(one, {})
            (found,) = neighbours.explained_once(known, near.indices[examples], explain)
            explained.update(zip(examples, found, strict=True))
        in_order = [explained[example] for example in range(n_examples)]
        values = core.averaged_over_neighbours(near.weights, in_order)
        return self._layouts[targets[0]], core.Aggregate(values, near.weights)

    def _attribute_rows(
        self, target: Target, arguments: dict[str, Any], indices: IntArray
    ) -> list[FloatArray]:
        """Return the attributions of rows of the data for a target."""
        rows = tuple(tensor[indices.tolist()] for tensor in self.dataset)
        inputs = rows if self._is_tuple else rows[0]
        self._layouts[target], found = self._attributed(inputs, rows, target, arguments)
        if len(found[0]) != len(indices):
            raise InvalidArgumentError(
                f"{members.name_of(self.attribution_method)} attributes {len(found[0])} examples "
                f"for {len(indices)} rows of the data; AVA needs one for each."
            )
        return found

    def _embeddings(self, name: str, tensors: tuple[Tensor, ...]) -> FloatArray:
        if self.embed is not None:
            with torch.no_grad():
                embeddings = self.embed(*copied(tensors))
            tensors = embeddings if isinstance(embeddings, tuple) else (embeddings,)
        flat = [array_of_tensor(tensor).reshape(len(tensor), -1) for tensor in tensors]
        numbers: FloatArray = np.concatenate(flat, axis=1)
        neighbours.check_embedding(name, numbers)
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
    if isinstance(argument, Shared):
        argument = Shared, argument.value
    if isinstance(argument, (dict, tuple, list)):
        parts = argument.items() if isinstance(argument, dict) else argument
        return [_contents(part) for part in parts]
    if isinstance(argument, (Tensor, np.ndarray)):
        return type(argument), argument.dtype, argument.shape, argument.tolist()
    return type(argument), argument


def combine(attributions: Sequence[Any], aggregator: core.Aggregator) -> Any:
    """Combine attributions of the same inputs, of captum or shap, into one.

    Parameters
    ----------
    attributions : sequence
        Tensors, tuples of tensors where there are several inputs, arrays, and Explanations of shap;
        at least one is a tensor or a tuple of them, of whose form the result is. All have the
        shape of the inputs: of an Explanation of several outputs pass one, `explanation[..., 0]`.
    aggregator : aggregator
        `shapley_adapters.aggregation.Centroid`, `Convex` or `LowComplexity`, with its options.

    Returns
    -------
    Tensor or tuple of Tensors
        In the type and on the device of the first tensors.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If there is no tensor, or shapes differ.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import combine
    >>> from shapley_adapters.aggregation import Centroid
    >>> combine([torch.ones(1, 2), torch.tensor([[3.0, 1.0]])], Centroid())
    tensor([[2., 1.]])
    """
    if isinstance(attributions, Tensor) or not isinstance(attributions, Sequence):
        raise InvalidArgumentTypeError(
            f"attributions must be a list; got {type(attributions).__name__}."
        )
    first = next((item for item in attributions if isinstance(_first(item), Tensor)), None)
    if first is None:
        raise InvalidArgumentError(
            "attributions must hold a tensor; shap_ext.combine makes an Explanation of arrays."
        )
    tensors = first if isinstance(first, tuple) else (first,)
    layout = Layout(first, tensors)
    candidates = [
        layout.array(f"attributions[{index}]", item) for index, item in enumerate(attributions)
    ]
    return layout.tensors(aggregator(candidates).values, isinstance(first, tuple))


def _first(attributions: object) -> Any:
    return attributions[0] if isinstance(attributions, tuple) and attributions else attributions
