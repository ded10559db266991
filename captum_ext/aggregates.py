"""Attributions that are made of others."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import captum.attr
import numpy as np

import shapley_adapters.aggregation as core
from shapley_adapters.aggregation.members import name_of
from shapley_adapters.arguments import checked_choice
from shapley_adapters.array_types import FloatArray
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.errors import BudgetError, InvalidArgumentError

from .attribute_methods import attribute_method, future_method
from .captum_internals import TargetType, TensorOrTupleOfTensorsGeneric
from .inputs import checked_inputs
from .learning_material import ExplainedInputs
from .members import Layout, attribute_by, checked_methods, completed, shared_arguments, takes


class AggregateAttribution(captum.attr.Attribution):  # type: ignore[misc] # captum is untyped
    """Base of the attributions that combine those of several methods.

    Attributes
    ----------
    last_aggregate : Aggregate or None
        What the latest call of `attribute` made of the methods' attributions, features last:
        weights and proofs.
    """

    _results = ("last_aggregate",)
    _through_futures = False

    def __init__(self, attribution_methods: Sequence[Any]) -> None:
        self.attribution_methods = checked_methods("attribution_methods", attribution_methods)
        super().__init__(getattr(self.attribution_methods[0], "forward_func", None))
        self.last_aggregate: core.Aggregate | None = None

    @property
    def multiplies_by_inputs(self) -> bool:
        """Whether all methods' attributions are in units of the output."""
        return all(
            bool(getattr(method, "multiplies_by_inputs", False))
            for method in self.attribution_methods
        )

    def _aggregator(self) -> Any:
        """Return the aggregator of the core with the options of this object."""
        raise NotImplementedError

    @attribute_method
    def attribute(
        self,
        inputs: TensorOrTupleOfTensorsGeneric,
        *,
        target: TargetType = None,
        **kwargs: Any,
    ) -> Any:
        """Attribute by all methods and combine what they find.

        All arguments but the inputs are passed by name, because captum's classes differ in what
        comes second.

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
        made = self._aggregator()(candidates)
        self.last_aggregate = made
        return layout.tensors(made.values, isinstance(inputs, tuple))

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
        self, inputs: Any, tensors: Any, arguments: dict[str, Any]
    ) -> tuple[Layout, list[FloatArray]]:
        layout, candidates, started = None, [], []
        for method in self.attribution_methods:
            with _shared_budget():
                started.append(attribute_by(method, inputs, arguments, self._through_futures))
        for method, attributions in zip(self.attribution_methods, started, strict=True):
            with _shared_budget():
                found = completed(attributions)
            layout = Layout(found, tensors) if layout is None else layout
            candidates.append(layout.array(name_of(method), found))
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

    def __init__(
        self,
        attribution_methods: Sequence[Any],
        *,
        distance: Any = "l2",
        power: float | None = None,
        scale: str = "none",
        order: str = "value",
        approximate: bool = False,
    ) -> None:
        super().__init__(attribution_methods)
        self.distance, self.power, self.scale = distance, power, scale
        self.order, self.approximate = order, approximate
        self._aggregator()  # refuses options that cannot be used

    def _aggregator(self) -> core.Centroid:
        return core.Centroid(self.distance, self.power, self.scale, self.order, self.approximate)


class Convex(AggregateAttribution):
    """A convex combination of the attributions of several methods.

    Σ_i w_i g_i (Bhatt, Weller and Moura), with given weights, or with weights learned by `learn`.

    Parameters
    ----------
    attribution_methods : sequence
        As in `Centroid`.
    weights : sequence of float, optional
        One for each method, not negative; they are divided by their sum. Equal by default.
    scale : {"none", "l1", "l2", "max"}
        Whether each attribution is first brought to the mean size of all, measured so.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Convex
    >>> Convex([lambda x: x, lambda x: 5 * x], weights=[3, 1]).attribute(torch.ones(1, 2))
    tensor([[2., 2.]])
    """

    def __init__(
        self,
        attribution_methods: Sequence[Any],
        *,
        weights: Any = None,
        scale: str = "none",
    ) -> None:
        super().__init__(attribution_methods)
        self.weights, self.scale = weights, scale
        self.learned: core.LearnedWeights | None = None
        self._aggregator()(np.zeros((len(self.attribution_methods), 1, 1)))

    def _aggregator(self) -> core.Convex:
        return core.Convex(self.weights, self.scale)

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
            A function of attributions, (R, M), to one number each, less of which is better.
        neighbourhood : shapley_adapters.criteria.Neighbourhood, optional
            Where sensitivity, on average, looks for neighbours; `forward_func` of the first method
            tells which keep the prediction.
        seed : int
            Seed of random starts, and of the neighbours.
        """
        if not callable(criterion):
            checked_choice("criterion", criterion, ("complexity", "sensitivity"))
        explained = self._explained(inputs, target, kwargs)
        loss: Any
        if callable(criterion):
            loss = core.CriterionLoss(explained(), criterion)
        elif criterion == "complexity":
            loss = core.ComplexityLoss(explained())
        else:
            loss = explained.sensitivity(neighbourhood, self.forward_func, seed)
        self.learned = core.learned_weights(loss, len(self.attribution_methods), seed=seed)
        self.weights = self.learned.weights
        return self.learned

    def trade_off(
        self,
        inputs: TensorOrTupleOfTensorsGeneric,
        neighbourhood: Neighbourhood,
        strengths: Any = None,
        *,
        target: TargetType = None,
        seed: int = 0,
        **kwargs: Any,
    ) -> core.TradeOff:
        """Return what sensitivity and complexity combinations reach together, to be plotted.

        Parameters
        ----------
        inputs, target, neighbourhood, seed, **kwargs
            As in `learn`.
        strengths : sequence of float, optional
            How much a nat of complexity weighs; by default 16 values over three decades.
        """
        explained = self._explained(inputs, target, kwargs)
        sensitivity = explained.sensitivity(neighbourhood, self.forward_func, seed)
        return core.trade_off(core.ComplexityLoss(explained()), sensitivity, strengths, seed=seed)

    def _explained(self, inputs: Any, target: Any, kwargs: dict[str, Any]) -> ExplainedInputs:
        arguments = shared_arguments(self.attribution_methods, kwargs)
        if target is not None:
            self._check_target()

        def candidates(given: Any, own_target: Any, others: dict[str, Any]) -> FloatArray:
            own = {} if own_target is None else {"target": own_target}
            _, found = self._candidates(given, checked_inputs(given), {**others, **own})
            return core.on_one_scale(np.array(found), self.scale)

        return ExplainedInputs(candidates, inputs, target, arguments, self.attribution_methods)


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

    def __init__(
        self,
        attribution_methods: Sequence[Any],
        *,
        method: str = "descent",
        scale: str = "none",
        n_steps: int = 20,
        n_rounds: int = 20,
        tolerance: float = 1e-3,
        n_points: int = 1000,
    ) -> None:
        super().__init__(attribution_methods)
        self.method, self.scale, self.n_steps = method, scale, n_steps
        self.n_rounds, self.tolerance, self.n_points = n_rounds, tolerance, n_points
        self._aggregator()  # refuses options that cannot be used

    def _aggregator(self) -> core.LowComplexity:
        return core.LowComplexity(
            self.method, self.scale, self.n_steps, self.n_rounds, self.tolerance, self.n_points
        )
