"""What a call will cost: the call itself, with a stand-in for the model, and nothing solved."""

from __future__ import annotations

import copy
from collections.abc import Callable
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from ..arguments import checked_flag
from ..array_types import IntArray
from ..errors import InvalidArgumentError
from ..games.value_functions import checked_value_function
from ..remote.remote_model import RemoteModel
from ..remote.stand_in import stand_in_for
from .result import Estimate, evaluations_text
from .run_warnings import RunWarnings, collected_run_warnings

planning: ContextVar[bool] = ContextVar("planning", default=False)
"""Whether a call runs for its plan alone."""


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
        What the counts do not hold: how a tolerance or a choice by measured times may change them.
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
    call: Callable[[Any, Any], object],
    *,
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
        Makes the call of a copy of it with a stand-in for the model.
    measure : bool
        Whether to ask the model once.
    has_batch_size : bool
        Whether the user chose the size of batches.

    Raises
    ------
    InvalidArgumentError
        If a network explains, or the number of classes is needed and the model is not asked.
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
    stand_in = stand_in_for(model, measure)
    counted = getattr(stand_in, "stand_in", stand_in)
    token = planning.set(True)
    try:
        with collected_run_warnings(RunWarnings()):  # of a call that is not made
            call(twin, stand_in)
    finally:
        planning.reset(token)
    estimate: Estimate = twin.last_estimate
    usage, are_calls_known = counted.usage, has_batch_size or isinstance(model, RemoteModel)
    return Plan(
        evaluations=estimate.evaluations,
        model_rows=estimate.model_rows,
        check_evaluations=estimate.check_evaluations,
        rows=usage.rows,
        remembered_rows=usage.remembered_rows,
        calls=usage.calls if are_calls_known else None,
        seconds=counted.seconds,
        money=counted.money,
        note=estimate.choice,
    )
