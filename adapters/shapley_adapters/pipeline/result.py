"""The result record."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt
import scipy.special

from ..arguments import checked_probability
from ..array_types import AttributionArray, FloatArray, IntArray, ValueArray

_ARRAYS = (
    "values",
    "standard_errors",
    "degrees_of_freedom",
    "empty_values",
    "grand_values",
    "evaluations",
    "backward_passes",
    "cooperators",
    "orders",
)
"""The fields of an `Estimate` that have an entry for each row."""


def quantiles(confidence: float, freedom: FloatArray | float = np.inf) -> FloatArray:
    """Return half the width of a central interval as a multiple of the standard error.

    Parameters
    ----------
    confidence : float
        The share of cases in which the interval shall contain the true value.
    freedom : array or float
        Degrees of freedom of the standard errors, for Student's distribution; infinite for the
        normal distribution.
    """
    upper = (1 + confidence) / 2
    finite = np.where(np.isfinite(freedom), freedom, 1.0)
    students: FloatArray = scipy.special.stdtrit(finite, upper)
    return np.where(np.isfinite(freedom), students, scipy.special.ndtri(upper))


@dataclass(frozen=True)
class Estimate:
    """Attributions of all rows, and their cost.

    Attributes
    ----------
    values : array, (R, M, K)
        Attribution of each player to each output, in units of the game's value.
    standard_errors : array, (R, M, K)
        Standard error that the random choice of coalitions leaves in `values`; 0 where every
        coalition was evaluated, NaN where it is unknown.
    degrees_of_freedom : array, (R, M, K)
        The number of draws from which the standard errors are estimated, less the number of other
        quantities estimated from them; infinite where an error is not the spread of draws.
    empty_values, grand_values : array, (R, K)
        Value of the empty coalition and of all players together.
    evaluations : array, (R,)
        Distinct coalitions evaluated for each row, with those that served to choose cooperators.
    backward_passes : array, (R,)
        Backward passes through the model for each row; they are not part of `evaluations`.
    cooperators : array of str, (R,)
        The source of SHEAR's cooperators of each row, and of the prior of odd Gaussian-process
        regression; "" without a prior, for all other estimators, and for rows whose coalitions
        were all evaluated.
    orders : array, (R,)
        The largest order of the neighbourhoods or sets in the graph of each row, the same for all
        players of the row, enumerated or drawn; −1 for estimators without orders and for rows
        without active players.
    seed : int
        The seed of all random choices: pass it to repeat the estimate.
    check_evaluations : int
        Evaluations, 0 to 2 for all rows together, that were made once more at the end to see
        whether the model is deterministic; they are not part of `evaluations`.
    method : str
        The name of the estimator.
    """

    values: AttributionArray
    standard_errors: AttributionArray
    degrees_of_freedom: FloatArray
    empty_values: ValueArray
    grand_values: ValueArray
    evaluations: IntArray
    backward_passes: IntArray
    cooperators: npt.NDArray[np.str_]
    orders: IntArray
    seed: int
    check_evaluations: int = 0
    method: str = ""

    def __repr__(self) -> str:
        """Summarize in one line; the arrays are long."""
        n_rows, n_players, n_outputs = self.values.shape
        sizes = ", ".join(
            _counted(count, noun)
            for count, noun in ((n_rows, "row"), (n_players, "player"), (n_outputs, "output"))
        )
        return (
            f"Estimate({self.method or 'method unknown'}: {sizes}; {_range(self.evaluations)} "
            f"evaluations per row; {self._error_summary()}; seed {self.seed})"
        )

    def _error_summary(self) -> str:
        if not self.standard_errors.size or np.isnan(self.standard_errors).all():
            return "standard errors unknown"
        return f"mean standard error {np.nanmean(self.standard_errors):.3g}"

    def of_rows(self, start: int, stop: int) -> Estimate:
        """Return the estimate of the rows from `start` to `stop`, in the same memory."""
        parts: dict[str, Any] = {name: getattr(self, name)[start:stop] for name in _ARRAYS}
        return replace(self, **parts)

    def set_rows(self, start: int, stop: int, estimate: Estimate) -> None:
        """Store the estimate of the rows from `start` to `stop`."""
        for name in _ARRAYS:
            getattr(self, name)[start:stop] = getattr(estimate, name)

    def interval(self, confidence: float = 0.95) -> tuple[AttributionArray, AttributionArray]:
        """Return the lower and upper ends of intervals that contain the attributions so often.

        Standard errors from few draws are sometimes far too small. Student's distribution corrects
        for that: with four pairs of orders, an interval reaches 3.2 standard errors to each side
        instead of 1.96.

        Parameters
        ----------
        confidence : float
            The share of cases, between 0 and 1.

        Returns
        -------
        tuple of arrays, (R, M, K)
            In units of the game's value; NaN where there are no standard errors.
        """
        checked_probability("confidence", confidence)
        widths = quantiles(confidence, self.degrees_of_freedom) * self.standard_errors
        return self.values - widths, self.values + widths


def blank_estimate(ends: ValueArray, n_players: int, seed: int, method: str) -> Estimate:
    """Return a result without attributions, for the values of the end points, (R, 2, K)."""
    n_rows, _, n_outputs = ends.shape
    shape = (n_rows, n_players, n_outputs)
    return Estimate(
        values=np.zeros(shape),
        standard_errors=np.zeros(shape),
        degrees_of_freedom=np.full(shape, np.inf),
        empty_values=ends[:, 0],
        grand_values=ends[:, 1],
        evaluations=np.full(n_rows, 2),
        backward_passes=np.zeros(n_rows, dtype=np.intp),
        cooperators=np.full(n_rows, "", dtype="U10"),
        orders=np.full(n_rows, -1, dtype=np.intp),
        seed=seed,
        method=method,
    )


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _range(counts: IntArray) -> str:
    """Return the smallest and the largest of some counts, once if they are the same."""
    if not counts.size:
        return "0"
    least, most = int(counts.min()), int(counts.max())
    return f"{least:,}" if least == most else f"{least:,} to {most:,}"
