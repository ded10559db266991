"""The estimators of other packages: checks of their results, and classes of the hosts for them."""

from __future__ import annotations

import copy
import dataclasses
import inspect
import numbers
from collections.abc import Callable, Collection, Mapping
from functools import partial
from inspect import Parameter
from typing import Any

import numpy as np

from ..array_types import ValueArray
from ..constructors import write_constructor
from ..errors import EstimatorError, InvalidArgumentError, InvalidArgumentTypeError
from .protocol import Design, DesignRequest, Solution


def with_checks(estimator: Any) -> Any:
    """Return a copy of an estimator whose three methods check what they return.

    The copy has the class of the estimator, and can be pickled if the estimator can.
    """
    checked = copy.copy(estimator)
    methods: dict[str, Callable[..., Any]] = {
        "minimum_budget": _minimum_budget,
        "design": _design,
        "solve": _solve,
    }
    for name, method in methods.items():
        object.__setattr__(checked, name, partial(method, estimator))  # estimators may be frozen
    return checked


def _minimum_budget(estimator: Any, n_players: int, with_errors: bool = False) -> Any:
    budget = estimator.minimum_budget(n_players, with_errors)
    if not isinstance(budget, numbers.Real) or not np.isfinite(float(budget)):
        raise _wrong(estimator, "minimum_budget", f"{budget!r}; return a whole number")
    return budget


def _design(estimator: Any, request: DesignRequest) -> Any:
    design = estimator.design(request)
    if not isinstance(design, Design):
        advice = "return a shapley_adapters.estimators.Design"
        raise _wrong(estimator, "design", f"{_brief(design)}; {advice}")
    n_players = design.table.coalitions.shape[-1]
    if n_players != request.n_players and not estimator.needs_graph:
        advice = f"return coalitions of {request.n_players}, the request's n_players"
        raise _wrong(estimator, "design", f"coalitions of {n_players} players; {advice}")
    return design


def _solve(estimator: Any, design: Any, values: ValueArray) -> Any:
    solution = estimator.solve(design, values)
    if not isinstance(solution, Solution):
        advice = "return a shapley_adapters.estimators.Solution"
        raise _wrong(estimator, "solve", f"{_brief(solution)}; {advice}")
    n_players = design.table.coalitions.shape[-1]
    if estimator.needs_graph:  # which solves for all nodes of the graph
        n_players = np.shape(solution.values)[1:2] or n_players
    shape = (len(values), *np.atleast_1d(n_players).tolist(), values.shape[2])
    for name in ("values", "standard_errors"):
        _check_numbers(estimator, name, getattr(solution, name), shape)
    if not np.isfinite(solution.values).all():
        advice = "all values given to it are finite. Return finite attributions"
        raise _wrong(estimator, "solve", f"values that are NaN or infinite; {advice}")
    if (solution.standard_errors < 0).any():
        advice = "return numbers from 0 on, or NaN where an error is unknown"
        raise _wrong(estimator, "solve", f"negative standard_errors; {advice}")
    return solution


def _check_numbers(estimator: Any, name: str, array: object, shape: tuple[int, ...]) -> None:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu" or array.shape != shape:
        advice = f"return an array of numbers of shape {shape}: rows, players and outputs"
        raise _wrong(estimator, "solve", f"{name} that are {_brief(array)}; {advice}")


def _brief(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    return f"an object of type {type(value).__name__}"


def _wrong(estimator: Any, method: str, result: str) -> EstimatorError:
    return EstimatorError(f"{type(estimator).__name__}.{method} returned {result}.")


_METHODS = ("minimum_budget", "design", "solve")


class MadeFromEstimator(type):
    """The type of classes that are made from an estimator class, so that they can be pickled."""

    estimator_class: type[Any]


def class_from_estimator(
    kind: type[MadeFromEstimator],
    class_name: str,
    base: type[Any],
    estimator: type[Any],
    shared: Mapping[str, Any] | None = None,
) -> Any:
    """Return a class of a host whose options are those of an estimator class.

    Parameters
    ----------
    kind : type
        The type of the class, which defines how it is pickled.
    class_name : str
        Its name.
    base : type
        The host's class that it inherits from.
    estimator : type
        A class with the methods of `Estimator`, usually a frozen dataclass.
    shared : mapping, optional
        Options of the host's class, and their defaults, that come before those of the estimator.

    Raises
    ------
    InvalidArgumentTypeError
        If `estimator` is not the class of an estimator, or an option cannot be passed by name.
    InvalidArgumentError
        If an option has a name that the host's class uses.
    """
    shared = shared or {}
    options = _options(estimator, {*dir(base), *inspect.signature(base).parameters, *shared})

    def _estimator(self: Any) -> Any:
        given = {option.name: getattr(self, option.name) for option in options}
        return with_checks(estimator(**given))

    members = {
        "__module__": estimator.__module__,
        "__doc__": estimator.__doc__,
        "__annotations__": dict.fromkeys([*shared, *(option.name for option in options)], Any),
        **shared,
        **{option.name: _field(option, estimator) for option in options},
        "_estimator": _estimator,
        "estimator_class": estimator,
    }
    return write_constructor(kind(class_name, (base,), members))


def _field(option: Parameter, estimator: Any) -> Any:
    """Return the field of an option, with the estimator's default if there is one."""
    if dataclasses.is_dataclass(estimator):
        fields = {field.name: field for field in dataclasses.fields(estimator)}
        factory = fields[option.name].default_factory
        if factory is not dataclasses.MISSING:
            return dataclasses.field(default_factory=factory)
    if option.default is Parameter.empty:
        return dataclasses.field()
    return dataclasses.field(default=option.default)


def _options(estimator: Any, reserved: Collection[str]) -> list[Parameter]:
    """Return the options of an estimator class: the arguments of its constructor."""
    if not inspect.isclass(estimator):
        raise InvalidArgumentTypeError(
            f"estimator must be a class; got {estimator!r}. Pass the class itself, not an object."
        )
    missing = [name for name in _METHODS if not callable(getattr(estimator, name, None))]
    if missing:
        raise InvalidArgumentTypeError(
            f"{estimator.__name__} lacks {', '.join(missing)}. Inherit from "
            "shapley_adapters.estimators.Estimator and write these methods."
        )
    options = list(inspect.signature(estimator).parameters.values())
    for option in options:
        _check(option, estimator.__name__, reserved)
    return options


def _check(option: Parameter, owner: str, reserved: Collection[str]) -> None:
    if option.kind not in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY):
        raise InvalidArgumentTypeError(
            f"{owner} takes {option}, whose names are not known. Give each option a name, as a "
            "dataclass does."
        )
    if option.name in reserved:
        raise InvalidArgumentError(
            f"{owner} has an option {option.name!r}, a name that the host's class uses itself. "
            "Rename the option."
        )
