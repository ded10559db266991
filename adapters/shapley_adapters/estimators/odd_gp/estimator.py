"""Odd Gaussian-process regression: the posterior of the Shapley values, given some values."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import ClassVar

import numpy as np

from ...arguments import checked_choice, checked_flag
from ...array_types import (
    AttributionArray,
    CoalitionArray,
    DistanceArray,
    FloatArray,
    IntArray,
    ScoreArray,
    ValueArray,
)
from ...cooperators.choices import checked_prior
from ...errors import InvalidArgumentError
from ...interactions.result import INDICES, PairSolution
from ..cross_fitting import cross_fitted, variances_of_errors
from ..pair_folds import FOLDS, CoalitionDraws, FoldedDraws, draw_folds, select_draws
from ..protocol import Design, DesignRequest, Estimator, Operations, Solution
from ..value_errors import ValueErrors
from .design import n_pairs_before_choice, pairs_for_smooth_games, spread_pairs
from .estimands import Estimand, PairInteractions, ShapleyValues, TaylorPart
from .exact_games import exact_if_of_pairs
from .expected_triples import even_differences
from .marginal_likelihood import mean_squares
from .pair_interactions import (
    MOST_VALUES_OF_PAIRS,
    differences_of_evens,
    memory_of_pairs,
    pair_solution,
    with_odd_part,
)
from .posterior import Posterior
from .posteriors_of_rows import DENSE_PAIRS, FIRST_VALUES, posteriors_of_rows
from .prior_fitting import log_weights_from_scores
from .smooth_games import are_smooth
from .values_design import (
    N_SINGLES,
    are_few,
    n_before_singles,
    pairs_after_singles,
    singles_say_much,
    spread_values,
    with_singles,
)
from .values_posterior import (
    memory_of_values,
    operations_of_values,
    posterior_of_values,
)
from .values_prior import ErrorCovariances
from .wider_intervals import variances_of_jumps

WEIGHTS = ("learned", "equal")

_FREEDOM_OF_FEW = 2.0
"""Degrees of freedom of the errors if there are at most as many pairs as players. So few pairs
hardly determine the scale of a game. Measured with 20 to 100 players: with these degrees of
freedom, confidence intervals have their nominal coverage on most games."""


def prior_shares(means: AttributionArray, standard_errors: AttributionArray) -> FloatArray:
    """Return the share of the prior in the variance of the attributions over the players, (R,).

    The prior expects equal attributions, which sum to the known total. Given the values, the sum of
    the squared distances of the attributions from their average is expected to be that of the
    posterior means plus the posterior variances. The values determine the first part; the second
    part comes from the prior. The share is that of the second part, over all players and outputs
    of a row: 1 before any value is known, 0 if the attributions are exact. Its square
    root is the expected error of the means, relative to the differences between attributions.

    Parameters
    ----------
    means, standard_errors : arrays, (R, M, K)
        Posterior means and standard deviations of the attributions.
    """
    determined = ((means - means.mean(axis=1, keepdims=True)) ** 2).sum(axis=(1, 2))
    undetermined = (standard_errors**2).sum(axis=(1, 2))
    expected = determined + undetermined
    shares: FloatArray = undetermined / np.where(expected > 0, expected, 1.0)
    return shares


@dataclass(frozen=True)
class OddDesign(Design):
    """Pairs of complements, or coalitions alone, and the prior means of the weights of each row.

    Attributes
    ----------
    draws : CoalitionDraws
        The pairs, shared by all rows; with folds if the estimate is unbiased. With few evaluations
        for many players, coalitions alone, of which some may have complements.
    log_weights : array, (R, M), or None
        Prior means of the logarithms of the weights.
    of_others : CoalitionDraws, optional
        The pairs of rows whose games are smooth; or, where `draws` are coalitions alone, those of
        rows of whose games single players say much.
    n_first : int
        The number of first draws that say which games are. They are the same for all rows.
    distances : array of arrays, (R,), optional
        The distances between the players of each row on its graph.
    """

    draws: CoalitionDraws
    log_weights: FloatArray | None
    of_others: CoalitionDraws | None = None
    n_first: int = 0
    distances: DistanceArray | None = None

    @property
    def n_before_choice(self) -> int:
        """The coalitions of the first pairs, and those that were known before."""
        if self.of_others is None:
            return 0
        return int(self.draws.positions[: self.n_first].max()) + 1

    @property
    def fewest_coalitions(self) -> int:
        """Those of the first pair, which may follow values that chose it, or of two blocks."""
        of_first = int(self.draws.positions[0].max()) + 1
        return max(self.draws.fewest_coalitions, of_first)

    def within(self, n_coalitions: int) -> OddDesign:
        """Return the design that the first coalitions make."""
        draws = self.draws.within(n_coalitions)
        return self.with_draws(draws)

    def with_draws(self, draws: CoalitionDraws) -> OddDesign:
        """Return the design of other pairs, which leaves no choice."""
        return OddDesign(draws.table, draws, self.log_weights, distances=self.distances)

    def subset_rows(self, indices: IntArray) -> OddDesign:
        """Return the design of some of the rows."""
        return replace(
            self,
            log_weights=None if self.log_weights is None else self.log_weights[indices],
            distances=None if self.distances is None else self.distances[indices],
        )


@dataclass(frozen=True)
class OddGP(Estimator[OddDesign]):
    """Gaussian-process regression on the odd part of the game.

    The prior has interactions of all odd sizes. Its hyperparameters say how strongly each player
    takes part in interactions, and which sizes matter. They are fitted to the values of the row by
    the marginal likelihood. The interactions do not explain each value exactly. The residual is a
    part of the game as well, so that the posterior is exact once all pairs are evaluated. Given the
    hyperparameters, the posterior mean is linear in the values. It satisfies efficiency exactly. It
    shrinks towards the prior mean, and so is not unbiased over the choice of coalitions. Standard
    errors are posterior standard deviations: the uncertainty about the game, given the values.

    Parameters
    ----------
    weights : {"learned", "equal"}
        Whether each player has its own weight in interactions. With equal weights, rows share the
        factorisations of matrices, which is faster for many rows.
    cooperators : {None, "auto", "hessian", "gradient", "difference"} or array
        How to compute the players' scores, which give the prior of the weights; None for no prior.
    unbiased : bool
        Draw all pairs at random, in folds. The posterior mean, given all other pairs, is the
        control variate of a fold; see `cross_fitting`. Standard errors are then those of the draws.
    """

    interaction_indices: ClassVar[tuple[str, ...]] = INDICES
    has_orders_for_few_rows: ClassVar[bool] = True

    weights: str = "learned"
    cooperators: str | ScoreArray | None = None
    unbiased: bool = False

    def __post_init__(self) -> None:
        checked_choice("weights", self.weights, WEIGHTS)
        checked_flag("unbiased", self.unbiased)
        checked_prior(self.cooperators, self.weights)

    @property
    def is_drawn_by_labels(self) -> bool:
        """Little else is drawn, except for an unbiased estimate.

        Its folds correct each other without bias only over the draws of all folds. Rows that shared
        the draws and differed in labels would share a part of their errors.
        """
        return not self.unbiased

    @property
    def is_unbiased(self) -> bool:
        """If asked for; otherwise the estimate shrinks."""
        return self.unbiased

    @property
    def can_use_graph(self) -> bool:
        """Whether weights are learned; interactions of near players then may be, too."""
        return self.weights == "learned"

    @property
    def score_source(self) -> str | ScoreArray | None:
        """How the scores of the prior are computed: by derivatives, or else by values."""
        return checked_prior(self.cooperators, self.weights)

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of one pair, or of two for errors of draws, and the end points."""
        del n_players  # the posterior exists for any number of values
        return 6 if with_errors and self.unbiased else 4

    def useful_budget(self, n_players: int) -> int:
        """Return two evaluations per player, or one for many players.

        Two are enough for each single player and its complement. With fewer, most of an attribution
        is the equal share that the prior gives. Measured on models with 20 to 30 players: the share
        of the prior is .6 to .9 at one evaluation per player, and .02 to .3 at two. Values of
        halves of many players have a share of .1 to .4 at one. An unbiased estimate has no such
        share.
        """
        if self.unbiased:
            return 0
        return n_players if are_few(n_players, n_players) else 2 * n_players

    def memory(self, n_players: int, budget: int) -> int:
        """Return the bytes of the coalitions, and of the kernels of all pairs solved exactly."""
        if are_few(n_players, budget):
            return 10 * budget * n_players + memory_of_values(n_players, budget)
        n_dense = min(budget // 2, DENSE_PAIRS)
        return (10 * budget + 700 * n_dense) * n_players

    def operations(self, n_players: int, budget: int) -> Operations:
        """Return those of products of matrices: without complements, or through first values."""
        if are_few(n_players, budget):
            return operations_of_values(n_players, budget)
        n_pairs, n_kept = budget // 2, n_players + FIRST_VALUES
        of_value = n_kept**2 + FIRST_VALUES**2 + 2 * n_kept * n_players
        solution = float(n_pairs * of_value * (n_pairs > DENSE_PAIRS))
        if self.unbiased:
            solution *= FOLDS
        is_shared = self.weights == "equal"
        return Operations(solution * is_shared, solution * (not is_shared))

    def interaction_memory(self, n_players: int, budget: int) -> int:
        """Return the bytes of the posterior of all pairs; further threads have a bound."""
        return memory_of_pairs(n_players, budget // 2)

    def design(self, request: DesignRequest) -> OddDesign:
        """Choose the most informative pairs, or draw them; the players are in random order."""
        has_scores = request.has_scores is not None and request.has_scores.any()
        log_weights = None
        if request.scores is not None and has_scores:
            log_weights = log_weights_from_scores(request.scores)
        if self.unbiased:
            draws: CoalitionDraws = draw_folds(request)
            return OddDesign(draws.table, draws, log_weights, distances=request.distances)
        is_all_planned = request.planned == request.budget  # a tolerance may end the row earlier
        if are_few(request.n_players, request.budget) and not (has_scores or request.needs_pairs):
            n_before = n_before_singles(request.n_players, request.budget)
            if is_all_planned or not n_before:
                return _design_of_values(request, n_before)
        members = spread_pairs(request.n_players, (request.budget - 2) // 2, request.rng)
        draws = select_draws(request, members, paired=True)
        n_first = n_pairs_before_choice(request.n_players, len(members))
        if not (n_first and is_all_planned and self.weights == "learned"):
            return OddDesign(draws.table, draws, log_weights, distances=request.distances)
        of_smooth = select_draws(request, pairs_for_smooth_games(members, n_first), paired=True)
        return OddDesign(draws.table, draws, log_weights, of_smooth, n_first, request.distances)

    def chosen_designs(
        self, design: OddDesign, values: ValueArray
    ) -> list[tuple[IntArray, OddDesign]]:
        """Return the designs of rows whose games are smooth or local, and of all others."""
        of_others, n_first = design.of_others, design.n_first
        if of_others is None:
            raise InvalidArgumentError("The design leaves no choice.")
        first = replace(
            design.draws,
            positions=design.draws.positions[:n_first],
            members=design.draws.members[:n_first],
        )
        if first.is_paired:
            evens = even_differences(*_complement_values(first, values))
            are = are_smooth(_signs(_with_all(first.members)), evens)
            without_choice = design.draws
        else:
            are = singles_say_much(design.table.coalitions[0, : values.shape[1]], values)
            # Single players of which the others are a world of their own are better left out.
            without_choice = _without_singles(design.draws, n_first)
        chosen = []
        for draws, indices in (
            (of_others, np.flatnonzero(are)),
            (without_choice, np.flatnonzero(~are)),
        ):
            if len(indices):
                chosen.append((indices, design.subset_rows(indices).with_draws(draws)))
        return chosen

    @property
    def has_process(self) -> bool:
        """Whether it learns weights from all values together, as that process does."""
        return self.weights == "learned" and self.cooperators is None and not self.unbiased

    def enough_coalitions(self, n_players: int) -> int:
        """Return 16 per player, of which half are complements.

        Measured on five fitted models with 12 features and 100 background rows, from 200 to 1,600
        model rows per feature.
        """
        return 16 * n_players

    def solve(self, design: OddDesign, values: ValueArray) -> Solution:
        """Return the attributions and standard errors of all rows and outputs."""
        return self._solution(design, values)

    def solve_with_errors(
        self, design: OddDesign, values: ValueArray, errors: ValueErrors
    ) -> Solution:
        """Return the posterior, given values with errors, which are no part of the game."""
        draws = design.draws
        if isinstance(draws, FoldedDraws) or not errors.odd.any():
            solution = super().solve_with_errors(design, values, errors)
            if not isinstance(draws, FoldedDraws):
                return solution
            of_pairs = errors.odd.take(draws.positions[:, 0], axis=1)
            return solution.with_variances(variances_of_errors(draws, of_pairs))
        solution = self._solution(design, values, errors)
        return solution.with_variances(errors.variances_of_ends(design.table.coalitions.shape[2]))

    def _solution(
        self, design: OddDesign, values: ValueArray, errors: ValueErrors | None = None
    ) -> Solution:
        """Return the attributions and standard errors, given values with errors or without."""
        draws, log_weights, distances = design.draws, design.log_weights, design.distances
        if not draws.is_paired:
            return self._solution_of_values(design, values, errors)
        total = (values[:, 1] - values[:, 0])[:, None] / 2  # the odd part at all players together
        targets = draws.targets(values, centred=False)
        if isinstance(draws, FoldedDraws):

            def fit(
                pairs: IntArray, other_pairs: IntArray
            ) -> tuple[FloatArray, FloatArray, FloatArray]:
                members, other_members = draws.members[pairs], draws.members[other_pairs]
                results = self._shapley_values(
                    members,
                    total,
                    targets[:, pairs],
                    log_weights,
                    other_members,
                    distances=distances,
                )
                return results.means, results.predictions, results.variances

            return cross_fitted(draws, targets, fit)
        n_pairs, n_players = draws.members.shape
        complements = _complement_values(draws, values)
        evens = even_differences(*complements) if self.weights == "learned" else None
        of_values = None if errors is None else _errors_of_pairs(draws, errors.odd)
        results = self._shapley_values(
            draws.members,
            total,
            targets,
            log_weights,
            evens=evens,
            errors=of_values,
            error_freedom=np.inf if errors is None else errors.freedom,
            distances=distances,
        )
        standard_errors = np.sqrt(
            results.variances + _variances_without_odd_part(draws.members, *complements)
        )
        most_freedom = _FREEDOM_OF_FEW if n_pairs <= n_players else np.inf
        freedom = np.minimum(results.freedom, most_freedom)
        shares = prior_shares(results.means, standard_errors)
        return Solution(results.means, standard_errors, freedom, shares)

    def _solution_of_values(
        self, design: OddDesign, values: ValueArray, errors: ValueErrors | None
    ) -> Solution:
        """Return the attributions and standard errors, given values with or without complements."""
        n_rows, _, n_outputs = values.shape
        indices = np.concatenate([[0, 1], design.draws.positions[:, 0]])
        members = design.table.coalitions[0, indices]
        targets = np.ascontiguousarray(values[:, indices].transpose(1, 0, 2))
        targets = targets.reshape(len(indices), -1)
        of_values = None
        if errors is not None:
            of_values = ErrorCovariances.from_value_errors(members, errors, indices)
        is_sparse = self.weights == "learned"
        found = posterior_of_values(members, targets, of_values, is_sparse, n_outputs)
        means, variances = (
            np.ascontiguousarray(array.reshape(-1, n_rows, n_outputs).transpose(1, 0, 2))
            for array in (found.means, found.variances)
        )
        standard_errors = np.sqrt(variances)
        shares = prior_shares(means, standard_errors)
        freedom = found.freedom.reshape(n_rows, 1, n_outputs)
        return Solution(means, standard_errors, freedom, shares)

    def predict(
        self,
        members: CoalitionArray,
        total: FloatArray,
        targets: FloatArray,
        other_members: CoalitionArray,
    ) -> Posterior:
        """Return the posterior of all rows and outputs, (R, ..., K), without scores.

        Parameters
        ----------
        members : array, (n, M)
            Distinct coalitions, without the complements of each other.
        total, targets : arrays, (R, 1, K) and (R, n, K)
            The odd part of the game at all players together, and at these coalitions.
        other_members : array, (m, M)
            Other coalitions, whose values are predicted.
        """
        return self._shapley_values(members, total, targets, other_members=other_members)

    def pair_interactions(
        self,
        design: OddDesign,
        values: ValueArray,
        errors: AttributionArray,
        index: str,
        value_errors: ValueErrors | None = None,
    ) -> PairSolution:
        """Return the posterior of the interactions: their means and standard deviations."""
        draws, is_taylor = design.draws, index == "shapley_taylor"
        n_players = draws.members.shape[1]
        members = draws.members[:MOST_VALUES_OF_PAIRS]
        first, second = (
            of_all[:, : len(members) + 1] for of_all in _complement_values(draws, values)
        )
        estimand = PairInteractions(n_players, "shapley" if is_taylor else index)
        evens = (first + second) / 2
        differences = differences_of_evens(evens)
        if value_errors is None:
            found = self._solved(
                estimand, members, differences, design.log_weights, distances=design.distances
            )
            found = exact_if_of_pairs(estimand, _signs(_with_all(members)), evens, found)
        else:
            of_values = _errors_of_pairs(draws, value_errors.even)[:, : len(members) + 1]
            found = self._solved(
                estimand,
                members,
                differences,
                design.log_weights,
                errors=of_values,
                error_freedom=value_errors.freedom,
                distances=design.distances,
            )
        of_errors = np.zeros_like(errors) if is_taylor else errors
        solution = pair_solution(found, of_errors)
        if not is_taylor:
            return solution
        odd = self._solved(
            TaylorPart(n_players),
            members,
            (first - second) / 2,
            design.log_weights,
            distances=design.distances,
        )
        shapley = self.solve(design, values).values
        return with_odd_part(solution, members, (first - second) / 2, odd, shapley, errors)

    def _shapley_values(
        self,
        members: CoalitionArray,
        total: FloatArray,
        targets: FloatArray,
        log_weights: FloatArray | None = None,
        other_members: CoalitionArray | None = None,
        evens: FloatArray | None = None,
        errors: FloatArray | None = None,
        error_freedom: float = np.inf,
        distances: DistanceArray | None = None,
    ) -> Posterior:
        """Return the posterior of the Shapley values of all rows and outputs, (R, M, K).

        Parameters are those of `predict` and of `_solved`.
        """
        n_players = members.shape[1]
        targets, estimand = np.concatenate([total, targets], axis=1), ShapleyValues(n_players)
        found = self._solved(
            estimand,
            members,
            targets,
            log_weights,
            other_members,
            evens,
            errors,
            error_freedom,
            distances,
        )
        # The residual of efficiency, which is rounding.
        residual = 2 * total - found.means.sum(axis=1, keepdims=True)
        return replace(found, means=found.means + residual / n_players)

    def _solved(
        self,
        estimand: Estimand,
        members: CoalitionArray,
        targets: FloatArray,
        log_weights: FloatArray | None,
        other_members: CoalitionArray | None = None,
        evens: FloatArray | None = None,
        errors: FloatArray | None = None,
        error_freedom: float = np.inf,
        distances: DistanceArray | None = None,
    ) -> Posterior:
        """Return the posterior of all rows and outputs, (R, ..., K).

        Parameters
        ----------
        estimand : Estimand
            What is estimated.
        members : array, (n, M)
            The coalitions.
        targets : array, (R, n + 1, K)
            The part of the game at all players together, and at these coalitions.
        log_weights : array, (R, M), or None
            Prior means of the logarithms of the weights.
        other_members : array, (m, M), optional
            Other coalitions, whose values are predicted.
        evens : array, (R, n, K), optional
            The even part of the game at these coalitions; see `even_differences`.
        errors : array, (R, n + 1, K), optional
            Variances of the errors of the targets.
        error_freedom : float
            Degrees of freedom of these variances.
        distances : array of arrays, (R,), optional
            The distances between the players of each row on its graph.
        """
        other_members = members[:0] if other_members is None else other_members
        n_rows, n, n_outputs = targets.shape
        flat = np.ascontiguousarray(targets.transpose(1, 0, 2)).reshape(n, -1)
        size = np.sqrt(mean_squares(flat))
        is_something = size > 0
        results = Posterior.unknown(estimand.n_outputs, len(other_members), len(size))
        if is_something.any():
            centres = log_weights
            if centres is not None:
                centres = np.repeat(centres, n_outputs, axis=0)[is_something]
            if distances is not None:
                distances = np.repeat(distances, n_outputs)[is_something]
            if evens is not None:
                evens = evens.transpose(1, 0, 2).reshape(n - 1, -1)[:, is_something]
            scale = size[is_something]
            if errors is not None:
                errors = errors.transpose(1, 0, 2).reshape(n, -1)[:, is_something] / scale**2
            scaled = posteriors_of_rows(
                estimand,
                _signs(_with_all(members)),
                flat[:, is_something] / scale,
                self.weights,
                centres,
                _signs(other_members),
                evens,
                errors,
                error_freedom,
                distances,
                np.repeat(np.arange(n_rows), n_outputs)[is_something],
            )
            results.means[:, is_something] = scaled.means * scale
            results.variances[:, is_something] = scaled.variances * scale**2
            results.predictions[:, is_something] = scaled.predictions * scale
            results.freedom[:, is_something] = scaled.freedom
        return Posterior(
            *(
                np.ascontiguousarray(array.reshape(-1, n_rows, n_outputs).transpose(1, 0, 2))
                for array in results.arrays
            )
        )


def _design_of_values(request: DesignRequest, n_before: int) -> OddDesign:
    """Return the design of values without complements, or of a choice after the first ones."""
    n_players, rng = request.n_players, request.rng
    members = spread_values(n_players, request.budget, rng)
    if not n_before:
        draws = select_draws(request, members, paired=False)
        return OddDesign(draws.table, draws, None)
    n_first = n_before + 2 * N_SINGLES
    draws = select_draws(request, with_singles(members, n_before, rng), paired=False)
    n_known = int(draws.positions[:n_first].max()) + 1
    after = replace(request, known=draws.table.coalitions[0, :n_known])
    n_pairs = (request.budget - n_known) // 2 + N_SINGLES
    pairs = select_draws(after, pairs_after_singles(n_players, n_pairs, rng), paired=True)
    return OddDesign(draws.table, draws, None, pairs, n_first, request.distances)


def _without_singles(draws: CoalitionDraws, n_first: int) -> CoalitionDraws:
    """Return the draws without the single players at the end of the first ones."""
    keep = np.ones(len(draws.members), dtype=bool)
    keep[n_first - 2 * N_SINGLES : n_first] = False
    return replace(draws, positions=draws.positions[keep], members=draws.members[keep])


def _complement_values(draws: CoalitionDraws, values: ValueArray) -> tuple[FloatArray, FloatArray]:
    """Return the values of coalitions and of their complements, (R, n + 1, K) each.

    Those of all players and of none come first.
    """
    first, second = (np.take(values, draws.positions[:, side], axis=1) for side in (0, 1))
    first = np.concatenate([values[:, 1:2], first], axis=1)
    return first, np.concatenate([values[:, :1], second], axis=1)


def _errors_of_pairs(draws: CoalitionDraws, variances: FloatArray) -> FloatArray:
    """Return the variances of a part of the game at all players and at pairs, (R, n + 1, K).

    Those of all players are left out: their error is common to all differences from them.
    """
    of_pairs = np.take(variances, draws.positions[:, 0], axis=1)
    return np.concatenate([np.zeros_like(of_pairs[:, :1]), of_pairs], axis=1)


def _variances_without_odd_part(
    members: CoalitionArray, first: FloatArray, second: FloatArray
) -> FloatArray:
    """Return the variances of the attributions of games whose odd part is 0 so far, (R, M, K).

    The posterior says nothing of them, because all its values are 0. If they are labels, they may
    jump elsewhere, as their even part does. The variances of other games are 0.

    Parameters
    ----------
    members : array, (n, M)
        The coalitions.
    first, second : arrays, (R, n + 1, K)
        Their values and those of their complements; see `_complement_values`.
    """
    n_rows, n, n_outputs = first.shape
    are_equal = (first == second).all(axis=1, keepdims=True)
    if not are_equal.any():
        return np.zeros((n_rows, members.shape[1], n_outputs))
    evens = np.where(are_equal, first - first[:, :1], 0.0)
    targets = np.ascontiguousarray(evens.transpose(1, 0, 2)).reshape(n, -1)
    signs = _signs(_with_all(members))
    unknown = np.zeros((signs.shape[1], targets.shape[1]))
    variances = variances_of_jumps(signs, targets, unknown, unknown)
    return variances.reshape(-1, n_rows, n_outputs).transpose(1, 0, 2)


def _with_all(members: CoalitionArray) -> CoalitionArray:
    """Return the coalition of all players, followed by others."""
    return np.concatenate([np.ones((1, members.shape[1]), dtype=bool), members])


def _signs(members: CoalitionArray) -> FloatArray:
    """Return 1 for the members of coalitions, −1 for the other players."""
    signs: FloatArray = np.where(members, 1.0, -1.0)
    return signs
