"""Checks of what the methods of estimators of other packages return."""

from __future__ import annotations

import copy
import numbers
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np

from ..array_types import ValueArray
from ..errors import EstimatorError
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
