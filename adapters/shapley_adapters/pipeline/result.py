"""The result record."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from functools import reduce
from operator import add
from typing import Any, NamedTuple

import numpy as np
import numpy.typing as npt
import scipy.special

from ..arguments import checked_probability
from ..array_types import AttributionArray, BoolArray, FloatArray, IntArray, ValueArray
from ..conditional.refits import N_FITS
from ..errors import InvalidArgumentError
from ..interactions.ranking import PairRanking, rank_pairs, rounding_of_rows
from ..interactions.result import (
    InteractionRequest,
    Interactions,
    SetInteractions,
    interaction_values,
)
from ..remote import Usage
from .solutions import Trace


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


def percent(level: float) -> str:
    """Return a level as a percentage, such as "95 %"."""
    return f"{100 * level:.4g} %"


class Seconds(NamedTuple):
    """The time of a call: of the model, of the overhead, and of the choice between estimators.

    The first two are NaN where workers share the rows.
    """

    model: float = 0.0
    own: float = 0.0
    choosing: float = 0.0


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
        quantities estimated from them; infinite where an error is not estimated. For odd
        Gaussian-process regression, by the spread of the squared residuals that give the scale of
        its errors; at most 2 up to one evaluation per player.
    empty_values, grand_values : array, (R, K)
        Value of the empty coalition and of all players together.
    evaluations : array, (R,)
        Distinct coalitions evaluated for each row, with those that served to choose cooperators.
    backward_passes : array, (R,)
        Backward passes through the model for each row; they are not part of `evaluations`. Those
        of `gradients` are: each counts as two, and its forward pass as one.
    cooperators : array of str, (R,)
        The source of SHEAR's cooperators of each row, and of the prior of odd Gaussian-process
        regression; "" without a prior, for all other estimators, and for rows whose coalitions
        were all evaluated.
    orders : array, (R,)
        The largest order of the neighbourhoods or sets in the graph of each row, the same for all
        players of the row, enumerated or drawn; −1 for estimators without orders and for rows
        without active players.
    enumerated : array, (R,)
        Whether all coalitions of the row were evaluated, so that its attributions are exact. The
        other rows are estimated by `method`.
    prior_shares : array, (R,)
        The share of the prior in the variance of each row's attributions over its players, for odd
        Gaussian-process regression. The evaluations do not determine it. Its square root is the
        expected error relative to the differences between attributions. 0 for all other estimators
        and for rows whose coalitions were all evaluated.
    model_rows : array, (R,)
        Rows of the model's input for each row: `evaluations` times the background rows, or fewer
        where coalitions are evaluated on a part of these.
    value_errors : array, (R, K)
        The root mean square of the standard errors of the values themselves, where these are means
        of draws: of background rows, or of the answers of a random model. 0 elsewhere.
    fit_errors : array, (R, M, K)
        The part of the standard errors that comes from the fit of a conditional distribution to
        its data: with other rows, it would be another one. More evaluations do not make it smaller,
        and tolerances leave it out. 0 elsewhere, and where it is not known: with less than 4 draws,
        a link, a value function, semivalues, or draws by a function of yours.
    seed : int
        The seed of all random choices: pass it to repeat the estimate.
    budget : int, optional
        The evaluations that each row could have: those that the user named, or those that fitted
        into `max_seconds`. None where the default applied. With this budget and `seed`, an estimate
        that was limited by time can be repeated exactly.
    timing_evaluations : int
        Evaluations, for all rows together, that measured costs and are not part of `evaluations`:
        the values that the chosen estimator did not use.
    check_evaluations : int
        Evaluations of all rows together that were made once more to see whether the model is
        deterministic; they are not part of `evaluations`.
    unit : str
        The unit of the values, where it is known: "raw", "probability" or "log_odds" of a model, or
        the name of a value function; and the link behind it.
    method : str
        The name of the estimator.
    choice : str
        What was chosen by its costs, and why: for `max_seconds`, and by `best`; for gradients of
        the model, where they are not used, and why; "" elsewhere.
    interactions : Interactions, optional
        The interactions of sets of players, where the call asked for them. Their standard
        errors have no degrees of freedom of their own: those of a pair are the fewer of its two
        players'.
    rounding : float
        The relative rounding error of the model's outputs; 0 where it is unknown.
    trace : Trace, optional
        The estimates from the first evaluations, where the call asked for them.
    unions : array, (R, M), optional
        For hierarchies, the union whose value each player shares equally with the others in it, by
        its first player: the player itself where it has a value of its own. −1 for players that
        cannot change the value.
    union_errors : array, (R, M, K), optional
        The standard error of the value of this union.
    seconds : Seconds
        The time of the model, of the overhead, and of the choice between estimators.
    usage : Usage, optional
        Calls, repetitions, seconds and money of a `RemoteModel` in this process.
    errors_cancel : bool
        Whether the errors of different rows are independent and have mean 0, so that they cancel
        in means over rows: an unbiased estimator with independent draws.
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
    enumerated: BoolArray
    prior_shares: FloatArray
    model_rows: IntArray
    value_errors: FloatArray
    fit_errors: AttributionArray
    seed: int
    budget: int | None = None
    timing_evaluations: int = 0
    check_evaluations: int = 0
    method: str = ""
    unit: str = ""
    choice: str = ""
    interactions: Interactions | None = None
    rounding: float = 0.0
    trace: Trace | None = None
    errors_cancel: bool = False
    usage: Usage | None = None
    seconds: Seconds = field(default_factory=Seconds)
    unions: IntArray | None = None
    union_errors: FloatArray | None = None

    def __repr__(self) -> str:
        """Summarize in one line; the arrays are long."""
        n_rows, n_players, n_outputs = self.values.shape
        sizes = ", ".join(
            _counted(count, noun)
            for count, noun in ((n_rows, "row"), (n_players, "player"), (n_outputs, "output"))
        )
        error = "standard errors unknown"
        if self.standard_errors.size and not np.isnan(self.standard_errors).all():
            error = f"mean standard error {np.nanmean(self.standard_errors):.3g}"
        unit = f"; unit: {self.unit}" if self.unit else ""
        choice = f"; chosen: {self.choice}" if self.choice else ""
        return (
            f"Estimate({self._methods()}: {sizes}; "
            f"{_evaluations_text(self.evaluations)} evaluations per row"
            f"; {error}; seed {self.seed}{unit}{choice})"
        )

    def _methods(self) -> str:
        """Name the method, and how many rows were enumerated although it can sample."""
        n_enumerated = int(self.enumerated.sum())
        if not self.method or not n_enumerated or self.method == "Exact":
            return self.method or "method unknown"
        if n_enumerated == len(self.enumerated):
            return "enumeration" if self.evaluations.any() else self.method
        return f"{self.method}, enumeration of {_counted(n_enumerated, 'row')}"

    def _arrays(self) -> tuple[str, ...]:
        """Return the names of the fields with an entry for each row: all arrays."""
        return tuple(name for name, value in vars(self).items() if isinstance(value, np.ndarray))

    def set_rows(self, start: int, stop: int, estimate: Estimate) -> None:
        """Store the estimate of the rows from `start` to `stop`."""
        for name in self._arrays():
            getattr(self, name)[start:stop] = getattr(estimate, name)
        if self.interactions is not None and estimate.interactions is not None:
            self.interactions.set_rows(start, stop, estimate.interactions)
        if self.trace is not None and estimate.trace is not None:
            self.trace.set_rows(start, stop, estimate.trace)

    def subset_rows(self, rows: IntArray | Sequence[int]) -> Estimate:
        """Return the estimate of some rows, without interactions."""
        arrays = {name: getattr(self, name)[rows] for name in self._arrays()}
        return replace(self, interactions=None, **arrays)

    def to_shapiq(self, row: int = 0, output: int = 0) -> Any:
        """Return the interactions of a row as `shapiq.InteractionValues`.

        Needs shapiq and an estimate with interactions.

        Parameters
        ----------
        row, output : int
            The row and the output.

        Returns
        -------
        shapiq.InteractionValues
            Of pairs alone, the Shapley interaction index is k-SII of order 2, whose main effects
            are those of the matrix; so are those of Shapley–Taylor and faithful indices. Others
            have pairs only.
        """
        found = self._required_interactions()
        request, sets = found.request, found.sets
        name, values = request.name, found.values[row, :, output]
        if request.are_pairs:
            name = "k-SII" if name == "SII" else name
            if name in ("k-SII", "STII", "FSII"):
                matrices = found.subset_rows(row, row + 1).matrices(self.values[row : row + 1])
                mains = np.diag(matrices[0, :, :, output])
                sets = [*((player,) for player in range(len(mains))), *sets]
                values = np.concatenate([mains, values])
        return interaction_values(
            name,
            request.order,
            sets,
            values,
            found.n_players,
            float(self.empty_values[row, output]),
            int(self.evaluations[row]),
            not bool(self.enumerated[row]),
        )

    def with_semivalues(self) -> Estimate:
        """Return the estimate with its semivalues, where the call asked for them."""
        found = self.interactions
        if found is None or not found.request.are_semivalues:
            return self
        return replace(
            self,
            values=found.values,
            standard_errors=found.standard_errors,
            fit_errors=np.zeros_like(found.values),
            interactions=None,
        )

    def set_interactions(self, names: Sequence[str] | None = None) -> SetInteractions:
        """Return the interactions of sets of players, with the names of these."""
        found = self._required_interactions()
        return SetInteractions(
            found.request.name,
            found.request.order,
            found.sets,
            names or [f"Feature {player}" for player in range(found.n_players)],
            found.values,
            found.standard_errors,
            found.freedom(self.degrees_of_freedom),
        )

    def rank_interactions(
        self, names: Sequence[str] | None = None, output: int = 0, rate: float = 0.05
    ) -> PairRanking:
        """Rank the pairs of players by their interactions over all rows, with q-values.

        Parameters
        ----------
        names : sequence of str, optional
            Names of the players.
        output : int
            The output.
        rate : float
            The rate of false discoveries, between 0 and 1.
        """
        pairs = self._required_interactions()
        values, empty = self.values[:, :, output], self.empty_values[:, output]
        return rank_pairs(
            pairs.values[:, :, output],
            pairs.standard_errors[:, :, output],
            names,
            rate,
            freedom=pairs.freedom(self.degrees_of_freedom)[:, :, output],
            rounding=rounding_of_rows(values, empty, self.rounding),
        )

    def _required_interactions(self) -> Interactions:
        if self.interactions is None:
            raise InvalidArgumentError(
                "The estimate has no interactions. Ask for them: explainer(X, interactions=True) "
                "in shap, method.interactions(inputs) in captum."
            )
        return self.interactions

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


def mean_estimate(estimates: Sequence[Estimate]) -> Estimate:
    """Return the mean of independent estimates of the same values, and their cost together."""
    first, n = estimates[0], len(estimates)
    if n == 1:
        return first

    def mean(name: str, of: Sequence[Any] = estimates) -> Any:
        return np.mean([getattr(one, name) for one in of], axis=0)

    def error(name: str, of: Sequence[Any] = estimates) -> Any:
        return np.sqrt(sum(getattr(one, name) ** 2 for one in of)) / n

    squares = np.array([one.standard_errors**2 for one in estimates])
    freedom = np.array([one.degrees_of_freedom for one in estimates])
    with np.errstate(invalid="ignore", divide="ignore"):  # by Welch and Satterthwaite
        joint = squares.sum(axis=0) ** 2 / (squares**2 / freedom).sum(axis=0)
    pairs = first.interactions
    if pairs is not None:
        of = [one.interactions for one in estimates]
        pairs = replace(
            pairs,
            values=mean("values", of),
            standard_errors=error("standard_errors", of),
            main_errors=error("main_errors", of),
        )
    return replace(
        first,
        **{name: mean(name) for name in ("values", "empty_values", "grand_values")},
        **{name: error(name) for name in ("standard_errors", "value_errors")},
        **{
            name: sum(getattr(one, name) for one in estimates)
            for name in ("evaluations", "model_rows", "backward_passes")
        },
        timing_evaluations=sum(one.timing_evaluations for one in estimates),
        check_evaluations=sum(one.check_evaluations for one in estimates),
        seconds=Seconds(*np.sum([one.seconds for one in estimates], axis=0).tolist()),
        degrees_of_freedom=np.where(np.isnan(joint), np.inf, joint),
        interactions=pairs,
        usage=first.usage and reduce(add, [one.usage for one in estimates]),
        trace=None,
    )


def blank_estimate(
    ends: ValueArray,
    n_players: int,
    seed: int,
    method: str,
    request: InteractionRequest | None = None,
    traced_limit: int | None = None,
    has_unions: bool = False,
) -> Estimate:
    """Return a result without attributions, for the values of the end points, (R, 2, K).

    With a request for interactions, the result has these, too; with the limit of
    evaluations of a row, a trace; with `has_unions`, the unions of players.
    """
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
        enumerated=np.zeros(n_rows, dtype=bool),
        prior_shares=np.zeros(n_rows),
        model_rows=np.full(n_rows, 2),
        value_errors=np.zeros((n_rows, n_outputs)),
        fit_errors=np.zeros(shape),
        seed=seed,
        method=method,
        interactions=None if request is None else Interactions.blank(request, shape),
        trace=None if traced_limit is None else Trace.blank(traced_limit, shape),
        unions=np.full((n_rows, n_players), -1) if has_unions else None,
        union_errors=np.zeros(shape) if has_unions else None,
    )


def add_fit_errors(result: Estimate, target: Any, errors: AttributionArray) -> None:
    """Add errors of the fit, (R, M, K), to those of the rows at `target`, and of their traces."""
    result.fit_errors[target] = errors
    for one, added in ((result, errors), (result.trace, errors[:, :, None])):
        if one is None:
            continue
        total = np.hypot(one.standard_errors[target], added)
        share = (added / np.where(total > 0, total, 1)) ** 2  # of the variances
        with np.errstate(divide="ignore"):  # by Welch and Satterthwaite
            freedom = (1 - share) ** 2 / one.degrees_of_freedom[target] + share**2 / N_FITS
            one.degrees_of_freedom[target] = 1 / freedom
        one.standard_errors[target] = total


def _counted(count: int, noun: str) -> str:
    return f"{count:,} {noun}{'' if count == 1 else 's'}"


def _evaluations_text(counts: IntArray) -> str:
    """Return the smallest and the largest of some counts, once if they are the same."""
    if not counts.size:
        return "0"
    smallest, largest = int(counts.min()), int(counts.max())
    return f"{smallest:,}" if smallest == largest else f"{smallest:,} to {largest:,}"
