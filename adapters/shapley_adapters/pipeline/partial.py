"""What a call has computed before an error or Ctrl-C: rows with attributions and errors."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from ..array_types import BoolArray, IntArray, ValueArray
from ..errors import ShapleyExtError
from ..estimators.exact import FullDesign
from ..estimators.protocol import Solution
from ..games.evaluation import Evaluator, Request
from ..remote.remote_model import answered_only
from .designs import PendingRows
from .result import Estimate
from .settings import estimation_cost
from .solutions import solve_near_one

if TYPE_CHECKING:
    from .run import Run

_FEW_EVALUATIONS = 4
"""Values that are looked up at a time among the answers of a remote model."""

_UNSOLVED = (ShapleyExtError, ArithmeticError, np.linalg.LinAlgError)
"""Errors of an estimate from the values so far. The user must see the error that ended the call."""

_NUMBERS = ("values", "standard_errors", "degrees_of_freedom", "value_errors")
"""Fields of an estimate that are NaN for rows without one."""


@dataclass(frozen=True)
class Partial:
    """What a call has computed before an error or Ctrl-C ended it.

    The error has it as `error.partial`, and the explainer or method as `last_partial`.

    Attributes
    ----------
    rows : array of int, (r,)
        The rows that have attributions, counted from 0 among those of the call.
    are_finished : array of bool, (r,)
        Which of them have all their evaluations: they equal those of the whole call. The others
        have an estimate from the evaluations that came before the error, with larger errors.
    result : object
        The attributions of these rows with their standard errors: in shap an Explanation, in captum
        a pair of tensors. None without any row.
    estimate : Estimate
        The estimate of all rows of the call, NaN for those that are not in `rows`.
    """

    rows: IntArray
    are_finished: BoolArray
    estimate: Estimate
    result: Any = None

    def __repr__(self) -> str:
        """State how many rows there are."""
        n_rows = len(self.estimate.values)
        n_finished = int(self.are_finished.sum())
        begun = len(self.rows) - n_finished
        return f"Partial({n_finished} of {n_rows} rows finished, {begun} estimated from less)"


def attach_partial(
    error: BaseException, result: Estimate, are_known: BoolArray, are_finished: BoolArray
) -> None:
    """Give an error what was computed before it."""
    for name in _NUMBERS:
        getattr(result, name)[~are_known] = np.nan
    rows = np.flatnonzero(are_known)
    vars(error)["partial"] = Partial(rows, are_finished[rows], result)


def complete_partial(
    error: BaseException, owner: Any, result_of: Callable[[Estimate, IntArray], Any]
) -> None:
    """Add the host's form of the result, and keep it where a notebook finds it.

    A call that ended before any row was begun leaves none, nor that of an earlier call.

    Parameters
    ----------
    error : BaseException
        The error of a call.
    owner : explainer or method
        Its `last_partial` is set.
    result_of : callable
        Returns the result of some rows of an estimate.
    """
    partial = getattr(error, "partial", None)
    if not isinstance(partial, Partial):
        owner.last_partial = None
        return
    if len(partial.rows):
        with suppress(Exception):  # whatever it is, the user must see the error of the call
            partial = replace(partial, result=result_of(partial.estimate, partial.rows))
        n_finished, n_rows = partial.are_finished.sum(), len(partial.estimate.values)
        error.add_note(
            f"{n_finished} of {n_rows} rows are finished, and {len(partial.rows) - n_finished} "
            "have an estimate from fewer evaluations: see last_partial, or partial of the error."
        )
    vars(error)["partial"] = owner.last_partial = partial


def record_arrived(
    run: Run,
    pending: Sequence[PendingRows],
    arrived: list[ValueArray],
    record: Callable[[PendingRows, IntArray | slice, Solution], None],
    evaluate: Evaluator,
) -> None:
    """Record the rows whose values have arrived before an error, and what a part of them says.

    A row whose design is cut short has the estimate of the smaller design, as in a trace.
    """
    run.n_label_repeats = 0  # they would ask the model
    requests = [of_group.request() for of_group in pending]
    if getattr(run.game, "usage", None) is not None:
        _add_answered(run, requests, arrived)
    flat = np.concatenate(arrived) if arrived else np.zeros((0, 1))
    for of_group, request in zip(pending, requests, strict=True):
        counts = request.pairs_of_rows
        own = flat[: counts.sum()]
        flat = flat[len(own) :]
        n_arrived = np.clip(len(own) - (np.cumsum(counts) - counts), 0, counts)
        padded = np.zeros((request.n_pairs, own.shape[1]))
        padded[: len(own)] = own
        values = request.values(padded)
        are_complete = n_arrived == counts
        begun: list[PendingRows] = []
        if are_complete.any():
            rows = np.flatnonzero(are_complete)
            complete = of_group.subset_rows(rows)
            with suppress(*_UNSOLVED):
                begun += run._finish_round(complete, values[rows], record, evaluate)
        for n_values in np.unique(n_arrived[~are_complete]).tolist():
            rows = np.flatnonzero(~are_complete & (n_arrived == n_values))
            part, new = of_group.subset_rows(rows), values[rows]
            if of_group.drawn is None and n_values:
                known = np.concatenate([part.values, new[:, :n_values]], axis=1)
                part = replace(part, values=known)
            begun.append(part)
        for part in begun:
            with suppress(*_UNSOLVED):
                _record_begun(run, part, record)


def _add_answered(run: Run, requests: Sequence[Request], arrived: list[ValueArray]) -> None:
    """Add the values of the batch that failed, as far as a remote model has answered its rows."""
    evaluate = Evaluator(run.evaluated_game, batch_size=_FEW_EVALUATIONS)
    token = answered_only.set(True)
    try:
        with suppress(Exception):  # it ends at the first row without an answer
            evaluate(requests, arrived)
    finally:
        answered_only.reset(token)


def _record_begun(
    run: Run,
    pending: PendingRows,
    record: Callable[[PendingRows, IntArray | slice, Solution], None],
) -> None:
    """Record rows by the smaller design of the values that they have, if it allows an estimate."""
    design, n_values = pending.design, pending.values.shape[1]
    with_errors = replace(run.settings, with_errors=True)
    least = estimation_cost(pending.group.n_players, run.estimator, with_errors)
    fewest = max(least, design.fewest_coalitions)
    if isinstance(design, FullDesign) or design.is_whole or n_values < fewest:
        return
    with_means = run._with_means(pending)
    smaller = design.within(n_values)
    solution = solve_near_one(run.estimator, smaller, with_means.values, with_means.errors)
    record(replace(with_means, design=smaller, round_end=n_values), slice(None), solution)
    run.are_finished[pending.group.rows] = False
