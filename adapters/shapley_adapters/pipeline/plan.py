"""What a call will cost: the call itself, with a stand-in for the model, and nothing solved."""

from __future__ import annotations

import copy
from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from ..arguments import checked_flag
from ..array_types import IntArray
from ..errors import BudgetError, InvalidArgumentError
from ..games.value_functions import checked_value_function
from ..remote.remote_model import RemoteModel
from ..remote.stand_in import StandIn, stand_in_for
from .deadline import PLANNED_SHARE
from .result import Estimate, evaluations_text
from .run_warnings import RunWarnings, collected_run_warnings

_MOST_TRIALS = 8
"""Budgets that are tried for a time. Costs are nearly proportional to them: three are enough."""

_AIM = 0.97
"""The share of the time that a trial aims at, so that it is not just above."""

_MOST_EVALUATIONS = 10**6
"""Of all rows together, for a time that would pay for more: they are planned in about a second."""


@dataclass(frozen=True)
class Plan:
    """What a call will cost, found without making it.

    The call runs with a stand-in for the model, and nothing is computed from its outputs. All
    counts are therefore those of the call, as long as the model answers equal questions alike.

    Attributes
    ----------
    evaluations : array, (R,)
        Coalitions that are evaluated for each row.
    model_rows : array, (R,)
        Rows of the model's input for each row.
    check_evaluations : int
        Evaluations, for all rows together, that look for random answers.
    rows : int
        Rows that the model is asked for in all. It may be less than the sum of `model_rows` where
        rows share the value without any feature, and with a `memory`.
    remembered_rows : int
        Rows whose outputs the `memory` of a `RemoteModel` has or will have.
    calls : int or None
        Calls of a `RemoteModel`, without repetitions after errors, or of any model with batches of
        a given size. None where the size of batches follows from their times.
    seconds : float
        The expected seconds of the model, by the calls of a `RemoteModel` so far or by the call
        that was measured; NaN without any, except that the rates of a `RemoteModel` give a least
        time. Our own work is not part of it.
    money : float
        The expected cost, in the unit of `cost=` of a `RemoteModel`; NaN where a function says it
        and there was no call yet.
    note : str
        What the counts do not hold: how a tolerance, a time or a choice by measured times may
        change them.
    """

    evaluations: IntArray
    model_rows: IntArray
    check_evaluations: int
    rows: int
    remembered_rows: int
    calls: int | None
    seconds: float
    money: float
    note: str = ""

    def __str__(self) -> str:
        """State the counts and what they cost."""
        n_rows = len(self.evaluations)
        parts = [
            f"{n_rows} rows, {evaluations_text(self.evaluations)} evaluations each",
            f"{self.rows:,} rows of the model",
        ]
        if self.calls is not None:
            parts[-1] += f" in {self.calls:,} calls"
        if self.remembered_rows:
            parts.append(f"{self.remembered_rows:,} rows remembered")
        if not np.isnan(self.seconds):
            parts.append(f"about {self.seconds:.2g} s")
        if self.money and not np.isnan(self.money):
            parts.append(f"cost {self.money:.4g}")
        return "; ".join(parts) + (f". {self.note}" if self.note else "")


def plan_call(
    explainer: Any,
    model: Callable[..., Any],
    call: Callable[[Any, Any, int | None], object],
    *,
    budget: int | None,
    max_seconds: float | None,
    measure: bool,
    has_batch_size: bool,
) -> Plan:
    """Return the plan of a call.

    Parameters
    ----------
    explainer : explainer or method
        Whose call it is.
    model : callable
        Its model.
    call : callable
        Makes the call of a copy of it with a stand-in for the model and a budget.
    budget : int, optional
        The evaluations of each row.
    max_seconds : float, optional
        The time for the call; `budget` is then a further limit.
    measure : bool
        Whether to ask the model once.
    has_batch_size : bool
        Whether the user chose the size of batches.

    Raises
    ------
    InvalidArgumentError
        If a network explains, or the number of classes is needed and the model is not asked, or the
        model's time for a `max_seconds`.
    BudgetError
        If the call would refuse its budget, or the time does not pay for an estimate.
    """
    if not explainer._evaluates_coalitions:
        raise InvalidArgumentError(
            f"{type(explainer).__name__} explains by a network, which is trained first. plan() is "
            "for the methods that evaluate coalitions of each row, such as OddGP."
        )
    checked_flag("measure", measure)
    if not measure and not checked_value_function(explainer.value_function).is_raw:
        raise InvalidArgumentError(
            f"value_function={explainer.value_function!r} needs the number of classes: pass "
            "measure=True, by which the model is called once."
        )
    twin = copy.copy(explainer)
    twin.n_jobs = 1  # one process counts
    twin._is_planned = True
    stand_in = stand_in_for(model, measure)
    counted: StandIn = getattr(stand_in, "stand_in", stand_in)
    are_calls_known = has_batch_size or isinstance(model, RemoteModel)

    def plan(budget: int | None) -> Plan:
        counted.restart()
        with collected_run_warnings(RunWarnings()):  # of a call that is not made
            call(twin, stand_in, budget)
        estimate: Estimate = twin.last_estimate
        return Plan(
            evaluations=estimate.evaluations,
            model_rows=estimate.model_rows,
            check_evaluations=estimate.check_evaluations,
            rows=counted.usage.rows,
            remembered_rows=counted.usage.remembered_rows,
            calls=counted.usage.calls if are_calls_known else None,
            seconds=counted.seconds,
            money=counted.money,
            note=estimate.choice,
        )

    return plan(budget) if max_seconds is None else _plan_within(plan, budget, max_seconds)


def _plan_within(plan: Callable[[int | None], Plan], limit: int | None, max_seconds: float) -> Plan:
    """Return the plan of the largest budget whose model time fits into a time."""
    found = plan(limit)
    if np.isnan(found.seconds):
        raise InvalidArgumentError(
            f"max_seconds={max_seconds:g} needs the time of the model: pass measure=True, by which "
            "the model is called once. A RemoteModel that was called before needs no further call."
        )
    time, n_rows, fits = PLANNED_SHARE * max_seconds, len(found.evaluations), found
    most = limit or max(1, _MOST_EVALUATIONS // n_rows)
    for _ in range(_MOST_TRIALS):
        evaluated = int(found.evaluations.max())
        budget = min(most, int(evaluated * _AIM * time / max(found.seconds, 1e-9)))
        if found.seconds <= time:
            fits = found
            if budget <= evaluated:
                break
        try:
            found = plan(max(1, budget))
        except BudgetError as error:
            if error.needed is None:
                raise
            fits = plan(error.needed)
            if fits.seconds <= max_seconds:  # the smallest one may use all of the time
                break
            raise BudgetError(
                f"max_seconds={max_seconds:g} is too short: at least {error.needed} evaluations "
                f"are needed for each of {n_rows} rows, for which the model takes about "
                f"{fits.seconds:.2g} seconds. Pass more, or fewer rows.",
                error.needed,
            ) from error
        if found.evaluations.max() == fits.evaluations.max():  # all coalitions
            break
    note = (
        f"At most: max_seconds={max_seconds:g} pays for so many evaluations by the model's time "
        "alone; a call also measures its costs, and computes."
    )
    return replace(fits, note=" ".join(filter(None, (fits.note, note))))
