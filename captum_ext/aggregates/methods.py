"""Aggregates of several attributions, and their base."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import field
from typing import Any, ClassVar

import captum.attr
import numpy as np
from torch import Tensor

import shapley_adapters.aggregation as core
from shapley_adapters.aggregation import Aggregator
from shapley_adapters.aggregation.aggregators import with_options_of
from shapley_adapters.aggregation.base_explainers import latest_evaluations, name_of
from shapley_adapters.aggregation.convex import check_criterion, loss_of_criterion
from shapley_adapters.array_types import FloatArray
from shapley_adapters.constructors import write_constructor
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.errors import BudgetError, InvalidArgumentError, InvalidArgumentTypeError

from ..argument_types import Inputs, Target
from ..attributions.attribute_methods import attribute_method, future_method
from ..captum_internals import TargetType, TensorOrTupleOfTensorsGeneric
from ..inputs.checks import checked_inputs
from .base_explainers import (
    DrawnInputs,
    Layout,
    attribute_by,
    checked_methods,
    completed,
    object_of,
    shared_arguments,
    takes,
)


@write_constructor
class AggregateAttribution(captum.attr.Attribution):  # type: ignore[misc] # captum is untyped
    """Base of the attributions that combine those of several methods.

    Attributes
    ----------
    last_aggregate : Aggregate or None
        The aggregate of the latest call of `attribute`, with features last. It holds weights and
        proofs.
    last_evaluations : SpentEvaluations or None
        What each method spent in the latest call of `attribute`, and which of them are not counted.
    """

    _results = ("last_aggregate", "last_evaluations")
    _through_futures = False
    _kind: ClassVar[type[Any]]

    attribution_methods: Sequence[Any] = field(kw_only=False)
    last_aggregate: core.Aggregate | None = field(default=None, init=False)
    last_evaluations: core.SpentEvaluations | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self.attribution_methods = checked_methods("attribution_methods", self.attribution_methods)
        super().__init__(getattr(self.attribution_methods[0], "forward_func", None))
        self._aggregator()  # refuses options that cannot be used

    @property
    def multiplies_by_inputs(self) -> bool:
        """Whether all methods' attributions are in units of the output."""
        return all(
            bool(getattr(method, "multiplies_by_inputs", False))
            for method in self.attribution_methods
        )

    def _aggregator(self) -> Any:
        """Return the aggregator of the core with the options of this object."""
        return with_options_of(self._kind, self)

    @attribute_method
    def attribute(
        self,
        inputs: TensorOrTupleOfTensorsGeneric,
        *,
        target: TargetType = None,
        **kwargs: Any,
    ) -> Any:
        """Attribute by all methods and combine their attributions.

        All arguments except the inputs are passed by name, because captum's classes differ in
        their second argument.

        Parameters
        ----------
        inputs : Tensor or tuple of Tensors
            The inputs; the first dimension counts the examples.
        target : int, tuple, Tensor or list, optional
            Which output to explain, in any of captum's forms.
        **kwargs
            Further arguments of the methods, such as `baselines`; each gets those that it has, and
            one of them must have it. `n_samples` is the budget of all methods together: those that
            take it get equal shares. For arguments of one method alone, pass a
            `functools.partial` of its `attribute` as the method.

        Returns
        -------
        Tensor or tuple of Tensors
            In the form of the first method's attributions.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError
            If no method has an argument, or attributions have different shapes.
        """
        tensors = checked_inputs(inputs)
        arguments = shared_arguments(self.attribution_methods, kwargs)
        if target is not None:
            self._check_target()
            arguments["target"] = target
        layout, candidates = self._candidates(inputs, tensors, arguments)
        aggregate = self._aggregator()(candidates)
        self.last_aggregate = aggregate
        self.last_evaluations = core.SpentEvaluations.from_members(
            (name_of(object_of(method)), latest_evaluations(object_of(method)))
            for method in self.attribution_methods
        )
        return layout.tensors(aggregate.values, isinstance(inputs, tuple))

    attribute_future = future_method(attribute)

    def _prepared_for_futures(self) -> AggregateAttribution:
        """Return a copy that asks its methods for futures."""
        twin = copy.copy(self)
        twin._through_futures = True
        return twin

    def _check_target(self) -> None:
        for method in self.attribution_methods:
            if not takes(method, "target"):
                raise InvalidArgumentError(
                    f"target is given, but {name_of(method)} has no argument target, and would "
                    "attribute something else. Pass a function with it."
                )

    def _candidates(
        self, inputs: Inputs, tensors: tuple[Tensor, ...], arguments: dict[str, Any]
    ) -> tuple[Layout, list[FloatArray]]:
        layout, candidates, started = None, [], []
        for method in self.attribution_methods:
            with _shared_budget():
                started.append(attribute_by(method, inputs, arguments, self._through_futures))
        for method, attributions in zip(self.attribution_methods, started, strict=True):
            with _shared_budget():
                attributions_of_method = completed(attributions)
            layout = Layout(attributions_of_method, tensors) if layout is None else layout
            candidates.append(layout.array(name_of(method), attributions_of_method))
        if layout is None:  # there is at least one method
            raise InvalidArgumentError("attribution_methods is empty.")
        return layout, candidates


@contextmanager
def _shared_budget() -> Iterator[None]:
    """Say of a budget that is too small that it is one method's share."""
    try:
        yield
    except BudgetError as error:
        raise BudgetError(
            f"{error} It is this method's part of the budget, which several share."
        ) from error


@write_constructor
class Centroid(AggregateAttribution):
    """The attributions nearest to those of several methods.

    argmin_g Σ_i D(g, g_i)^p (Bhatt, Weller and Moura, Evaluating and aggregating feature-based
    model explanations): the mean, the median, or the Kemeny–Young consensus of their rankings.

    Parameters
    ----------
    attribution_methods : sequence
        Attribution methods, captum's or ours, and functions of the inputs that return attributions:
        tensors, arrays, or Explanations of shap.
    distance, power, scale, order, approximate
        As in `shapley_adapters.aggregation.Centroid`. Rankings give M to the first feature, down to
        1.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Centroid
    >>> Centroid([lambda x: x, lambda x: 2 * x, lambda x: 9 * x], distance="l1").attribute(
    ...     torch.tensor([[1.0, -2.0]])
    ... )
    tensor([[ 2., -4.]])
    """

    _kind = core.Centroid

    distance: str | float = "l2"
    power: float | None = None
    scale: str = "none"
    order: str = "value"
    approximate: bool = False


@write_constructor
class LowComplexity(AggregateAttribution):
    """Attributions no more complex than those of any of several methods.

    Two readings of the algorithms that Bhatt, Weller and Moura show as a figure; see
    `shapley_adapters.aggregation.LowComplexity`, also for the options.

    Parameters
    ----------
    attribution_methods : sequence
        As in `Centroid`.
    method : {"descent", "shrinking"}
        One feature at a time between the attributions and their mean, in the box that they span; or
        drawing in their convex hull.
    scale, n_steps, n_rounds, tolerance, n_points
        As in `shapley_adapters.aggregation.LowComplexity`.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import LowComplexity
    >>> signs = torch.tensor([1.0, 2.0, -1.0]), torch.tensor([1.0, 3.0, 1.0])
    >>> methods = [lambda x: x * signs[0], lambda x: x * signs[1]]
    >>> LowComplexity(methods, method="shrinking").attribute(torch.ones(1, 3))
    tensor([[1.0000, 2.5000, 0.0000]])
    """

    _kind = core.LowComplexity

    method: str = "descent"
    scale: str = "none"
    n_steps: int = 20
    n_rounds: int = 20
    tolerance: float = 1e-3
    n_points: int = 1000


@write_constructor
class Convex(AggregateAttribution):
    """A convex combination of the attributions of several methods.

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

    def __post_init__(self) -> None:
        super().__post_init__()
        self.learned_weights: core.LearnedWeights | None = None
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
        known = ("complexity", "sensitivity")
        around = check_criterion("criterion", criterion, known, neighbourhood)
        arguments = shared_arguments(self.attribution_methods, kwargs)
        if target is not None:
            self._check_target()

        def candidates(of: Inputs, target_of: Target, further: dict[str, Any]) -> FloatArray:
            if target_of is not None:
                further = {**further, "target": target_of}
            _, arrays = self._candidates(of, checked_inputs(of), further)
            return core.on_one_scale(np.array(arrays), self.scale)

        def sensitivity() -> core.SensitivityLoss:
            drawn = DrawnInputs(
                inputs, target, self.forward_func, arguments, self.attribution_methods
            )
            drawn.check(around)
            return core.SensitivityLoss.around(
                lambda rows, owners: candidates(
                    drawn.tensor(rows), drawn.target_of(owners), drawn.arguments
                ),
                drawn.predict,
                drawn.rows,
                around,
                seed=seed,
                with_owners=True,
            )

        loss = loss_of_criterion(
            criterion,
            lambda: candidates(inputs, target, arguments),
            {"sensitivity": sensitivity},
        )
        self.learned_weights = core.learned_weights(loss, len(self.attribution_methods), seed=seed)
        self.weights = self.learned_weights.weights
        return self.learned_weights


def combine(attributions: Sequence[Any], aggregator: Aggregator) -> Any:
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
