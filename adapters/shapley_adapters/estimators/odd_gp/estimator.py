"""Gaussian-process regression on the game: the posterior of averages, given some values."""

from __future__ import annotations

import copy
from dataclasses import dataclass, field, replace
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
from ...coalitions.tables import complements
from ...cooperators.choices import Cooperators, checked_prior
from ...errors import InvalidArgumentError
from ...interactions.indices import Index, single_players
from ...interactions.result import InteractionRequest, SetSolution, membership
from ..cross_fitting import cross_fitted, variances_of_errors
from ..order_designs import ODD_SHARE
from ..pair_folds import FOLDS, CoalitionDraws, FoldedDraws, draw_folds, select_draws
from ..protocol import Declaration, Design, DesignRequest, Estimator, Operations, Passes, Solution
from ..value_errors import ValueErrors
from .design import (
    are_pairs,
    chosen_blocks,
    chosen_pairs,
    chosen_values,
    effects_are_alike,
    halves_count_most,
    halves_say_little,
    have_complements,
    may_take_twos,
    n_before_blocks,
    n_before_choice,
)
from .fitting import LEARNED_FROM, QUICKLY_FROM, SEARCHED, SEARCHED_EACH
from .games import Games, are_of_pairs, differences, posteriors
from .gradients import MOST_PLAYERS, MOST_READINGS, operations, plan_for, solution_of_rows
from .posterior import DENSE, SETS_AT_ONCE, Posterior, n_seen
from .prior import EVEN, ODD
from .sparse_sets import n_watched

WEIGHTS = {"learned": LEARNED_FROM, "quick": QUICKLY_FROM, "equal": 0}
"""From how many values the weights are learned at most."""

_FREEDOM_OF_FEW = 2.0
"""Least degrees of freedom of the errors, where more values than players hardly determine the scale
of a game; otherwise as many as there are more."""

_MOST_WITH_GRADIENTS = 6
"""Evaluations a player up to which gradients are used unless asked for. Of twelve networks of two
seeds, errors with gradients over those of values alone are .2 to .4 up to two evaluations a player,
.75 at four, and .9 to 1 at eight and sixteen, where learning takes twice as long."""

_MOST_VALUES_OF_PAIRS = 2048
"""Pairs of complements that the interactions are given: the first, if there are more."""

_ERRORS = (
    (0.047, 0.025, 0.0076, 0.0035, 0.0016, 0.0008, 0.0004),
    (0.057, 0.029, 0.0060, 0.0005, 0.000015, 0.0000037, 0.0000021),
    (0.10, 0.066, 0.012, 0.0028, 0.00021, 0.00007, 0.00004),
    (0.076, 0.055, 0.020, 0.0032, 0.00050, 0.00034, 0.00020),
    (0.17, 0.11, 0.058, 0.039, 0.020, 0.010, 0.005),
)
"""Errors to expect with learned weights, measured as `ERRORS_OF_ORDERS` were."""

_SCORE_SHARE = 0.01
"""Share of the scores in equal parts, where they give the centres of the strengths."""


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
    return undetermined / np.where(expected > 0, expected, 1.0)


@dataclass(frozen=True)
class OddDesign(Design):
    """Pairs of complements, or coalitions alone, and the prior means of the strengths of each row.

    Attributes
    ----------
    draws : CoalitionDraws
        The pairs, shared by all rows; with folds if the estimate is unbiased. With few evaluations,
        coalitions alone, of which some may have complements.
    centres : array, (R, M), or None
        Prior means of the logarithms of the strengths.
    of_others : CoalitionDraws, optional
        The pairs, or blocks, of rows whose first values ask for others.
    n_first : int
        How many of the first pairs, or coalitions alone, say which.
    distances : array of arrays, (R,), optional
        The distances between the players of each row on its graph.
    """

    draws: CoalitionDraws
    centres: FloatArray | None
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
        """Those that the pairs need, if the estimate is unbiased."""
        return self.draws.fewest_coalitions

    def within(self, n_coalitions: int) -> OddDesign:
        """Return the design that the first coalitions make."""
        return self.with_draws(self.draws.within(n_coalitions))

    def with_draws(self, draws: CoalitionDraws) -> OddDesign:
        """Return the design of other draws, which leaves no choice."""
        return OddDesign(
            draws.table, draws, self.centres, distances=self.distances, passes=self.passes
        )

    def subset_rows(self, indices: IntArray) -> OddDesign:
        """Return the design of some of the rows."""
        return replace(
            self,
            centres=None if self.centres is None else self.centres[indices],
            distances=None if self.distances is None else self.distances[indices],
        )


@dataclass(frozen=True)
class OddGP(Estimator[OddDesign]):
    """Shapley values by a Gaussian process that learns the interactions of each row.

    The most accurate estimator of this package on most models and games of its benchmarks, for
    budgets of at least four evaluations per feature. It evaluates pairs of complementary
    coalitions, selected so that they leave little posterior variance. A prior over interactions of
    all odd sizes predicts the other coalitions. The strengths of the prior and the weight of each
    feature are fitted to the values of each row by the marginal likelihood. Attributions sum
    exactly to the difference of the outputs with all features and with none. They are exact when
    all coalitions are evaluated. Otherwise the estimate is biased: it shrinks interactions that the
    evaluations do not determine. Standard errors are posterior standard deviations. Works with any
    budget of at least 4 evaluations. Learning takes about 20 milliseconds per row at 13 features
    and 208 evaluations, and 40 at 30 and 480.

    A graph says which features are near each other. Interactions of near features are then expected
    to be larger, if the values of the row do not deny it. Of use from about 4 evaluations per
    feature on, most for networks on graphs.

    Parameters
    ----------
    weights : {"learned", "quick", "equal"}
        Whether features have different weights in interactions, learned per row. `"quick"`: learned
        from the first 60 pairs of each row, in some 20 milliseconds. From 8 evaluations per feature
        on, errors are 1.1 to 2.5 times as large, and mostly a half of those of random orders. With
        equal weights
        all rows share their linear algebra, which takes less than a millisecond per row, but the
        estimates are less accurate.
    cooperators : {None, "auto", "hessian", "gradient", "difference"} or array
        Scores of the interactions of features, as a prior of the weights. None: no scores. Other
        values as in SHEAR, except `"auto"`: it computes derivatives if the model has them, at M + 1
        backward passes per row, and no scores otherwise. `last_estimate.cooperators` names the kind
        used. Scores help below 16 evaluations per feature.
    unbiased : bool
        Whether the estimates are unbiased, for users who average or subtract many of them. All
        pairs are then drawn at random, in eight parts. The posterior given the other parts predicts
        each part, and the part corrects the errors of these predictions without bias. Standard
        errors describe the random choice of coalitions. The error is mostly 1.2 to 2.5 times that
        of the biased estimate, and learning takes eight times as long.
    gradients : {"auto", True, False}
        Whether to use gradients, too, of networks of torch. A forward and backward pass says
        something about every feature, and counts as three evaluations; one of K outputs counts as
        1 + 2 K. Up to two evaluations per feature, errors of networks are mostly .1 to .6 of those
        without, and .6 to 1.2 above; learning takes one to four times as long, with 64 to 100
        features up to ten times. `"auto"`: for one output and up to six evaluations per feature,
        unless another option or argument needs values alone, or interactions are wanted;
        `last_estimate.choice` says what else is in the way. True: what is in the way is an error;
        interactions of pairs err .1 to 1 times as much with gradients, in some networks twice, and
        with two or three outputs mostly .9 to 2 times.
        `last_estimate.backward_passes` counts the backward passes of each row.
    """

    declaration: ClassVar[Declaration | None] = Declaration("odd GP", "distances", errors=_ERRORS)
    has_orders_for_few_rows: ClassVar[bool] = True

    weights: str = "learned"
    cooperators: Cooperators | None = None
    unbiased: bool = False
    gradients: bool | str = "auto"
    score_source: str | ScoreArray | None = field(
        default=None, init=False, repr=False, compare=False
    )

    def __post_init__(self) -> None:
        checked_choice("weights", self.weights, tuple(WEIGHTS))
        if not isinstance(self.gradients, bool) and self.gradients != "auto":
            raise InvalidArgumentError(
                f"gradients must be True, False or 'auto'; got {self.gradients!r}."
            )
        checked_flag("unbiased", self.unbiased)
        prior = checked_prior(self.cooperators, self.weights)
        object.__setattr__(self, "score_source", prior)

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
        return self.weights != "equal"

    @property
    def has_process(self) -> bool:
        """Whether it learns strengths from all values together, as that process does."""
        return self.weights == "learned" and self.cooperators is None and not self.unbiased

    def uses_gradients(self, n_players: int, budget: int) -> bool:
        """Return whether they are asked for, or may be; refuse options that need values alone."""
        if not self.gradients:
            return False
        if self.gradients == "auto":
            are_few = Passes.fewest_evaluations(1) <= budget <= _MOST_WITH_GRADIENTS * n_players
            return are_few and self.has_process and n_players <= MOST_PLAYERS
        needs_values = {
            "weights": self.weights != "learned",
            "cooperators": self.cooperators is not None,
            "unbiased": self.unbiased,
            f"more than {MOST_PLAYERS} features": n_players > MOST_PLAYERS,
        }
        for name in filter(needs_values.get, needs_values):
            raise InvalidArgumentError(
                f"gradients=True cannot be used with {name}. Leave out one of them."
            )
        return True

    @property
    def values_alone(self) -> OddGP | None:
        """The same process without gradients, unless these are required."""
        if self.gradients != "auto":
            return None
        alone = copy.copy(self)  # also of a subclass with other arguments
        object.__setattr__(alone, "gradients", False)
        return alone

    @property
    def linear(self) -> OddGP:
        """The same process with equal weights."""
        return replace(self, weights="equal", cooperators=None, gradients=False)

    def minimum_budget(self, n_players: int, with_errors: bool = False) -> int:
        """Return the cost of one pair, or of two for errors of draws, and the end points.

        With gradients, that of the passes at the end points and in the middle.
        """
        del n_players  # the posterior exists for any number of values
        if self.gradients is True:
            return Passes.fewest_evaluations(1)
        return 6 if with_errors and self.unbiased else 4

    def useful_budget(self, n_players: int) -> int:
        """Return one evaluation per player, below which most of an attribution is the equal share.

        An unbiased estimate has no such share.
        """
        return 0 if self.unbiased else n_players

    def enough_coalitions(self, n_players: int) -> int:
        """Return 16 per player, of which half are complements.

        Measured on five fitted models with 12 features and 100 background rows, from 200 to 1,600
        model rows per feature.
        """
        return 16 * n_players

    def memory(self, n_players: int, budget: int) -> int:
        """Return the bytes of the coalitions, of kernels, and of the search of sparse sets."""
        n_values = _n_values(n_players, budget)
        n = min(n_values, SEARCHED)
        search = 12 * n * n_watched(n, n_players, 3) ** 2
        return 50 * budget * n_players + max(110 * min(n_values, DENSE) ** 2, search)

    def operations(self, n_players: int, budget: int, n_outputs: int = 1) -> Operations:
        """Return those of learning, of the posterior, and of each output.

        Measured with 5 to 500 players, 1 to 64 evaluations of each and 1 to 100 outputs: at most
        1.5 times more or less; with equal weights, where rows share their work, 2.5 times.
        """
        n_values = _n_values(n_players, budget)
        seen = n_seen(n_values)
        posterior = n_values * seen * n_players + 0.08 * seen**3
        posterior += 3.5 * (n_values - seen) * seen**2
        if self.weights == "equal":
            each = 1e7 + 400.0 * n_values**2 + posterior
            return Operations(5e7 + 2 * each, n_outputs * each / 6)
        learned_from = WEIGHTS[self.weights]
        n_fitted = min(n_values, learned_from)
        n = min(n_values, SEARCHED, SEARCHED_EACH * learned_from)
        learning = 5e7 + n_fitted * (7e5 + 1000.0 * n_fitted + 4500.0 * n_players)
        learning += 2.5e5 * (n - n_fitted) + 0.5 * n_outputs * n * n_watched(n, n_players, 3) ** 3
        each = n_outputs * (1.5e5 + 200.0 * n_values * n_players)
        per_row = learning + posterior + 2.0 * n_values * n_players**2 + each
        if self.uses_gradients(n_players, budget) and (self.gradients is True or n_outputs == 1):
            per_row += n_outputs * operations(n_players, budget)
        return Operations(0.0, per_row * (FOLDS if self.unbiased else 1))

    def has_interactions(self, request: InteractionRequest) -> bool:
        """Return True: all indices are averages of the same process."""
        del request
        return True

    def interaction_memory(self, n_players: int, budget: int, request: InteractionRequest) -> int:
        """Return the bytes of the posterior of all sets; further threads have a bound."""
        n_values = min(budget // 2, _MOST_VALUES_OF_PAIRS)
        if self.gradients is True:
            n_values += MOST_READINGS
        n_sets = request.n_sets(n_players)
        return 8 * (min(n_sets, SETS_AT_ONCE) * (7 * n_values + n_players) + 5 * n_sets)

    def design(self, request: DesignRequest) -> OddDesign:
        """Choose the coalitions; the players are in random order."""
        centres = None
        if request.scores is not None and np.any(request.has_scores):
            centres = _centres(request.scores)
        n_players, n_values, rng = request.n_players, request.budget - 2, request.rng

        def designed(draws: CoalitionDraws) -> OddDesign:
            return OddDesign(draws.table, draws, centres, distances=request.distances)

        if request.has_gradients:
            budget = request.budget - (len(request.known) - 2)  # beside the ends
            of_call = request.n_outputs, request.planned, request.interactions is not None
            plan = plan_for(n_players, budget, rng, *of_call)
            draws = select_draws(request, plan.with_values, paired=True)
            return replace(designed(draws), passes=Passes(plan.degrees))
        if self.unbiased:
            return designed(draw_folds(request))
        may_end = request.planned < request.budget  # a tolerance may end the row earlier
        wanted = request.interactions
        if not (may_end or wanted or are_pairs(n_players, n_values)):
            members = chosen_values(n_players, n_values, rng)
            found = designed(select_draws(request, members, paired=False))
            n_left = request.budget - len(request.known)
            n_first = n_before_blocks(n_left)
            if not n_first:
                return found
            known = np.concatenate([request.known, members[:n_first]])
            blocks = chosen_blocks(n_players, (n_left - n_first) // 2, rng)
            of_others = select_draws(replace(request, known=known), blocks, paired=True)
            return replace(found, of_others=of_others, n_first=n_first)
        n_pairs, state = n_values // 2, copy.deepcopy(rng)
        are_halves = False
        if wanted is not None and wanted.are_semivalues:
            are_halves = halves_count_most(wanted.index(n_players))
        members = chosen_pairs(n_players, n_pairs, rng, are_mostly_halves=are_halves)
        draws = select_draws(request, members, paired=True)
        n_first = n_before_choice(n_players, n_pairs)
        if are_halves or may_end or not 0 < n_first <= len(draws.members):
            return designed(draws)
        others = chosen_pairs(n_players, n_pairs, state, has_choice=True)
        of_others = select_draws(request, others, paired=True)
        return replace(designed(draws), of_others=of_others, n_first=n_first)

    def chosen_designs(
        self, design: OddDesign, values: ValueArray
    ) -> list[tuple[IntArray, OddDesign]]:
        """Return the designs of rows whose first values ask for other pairs, and of all others."""
        draws, n_first = design.draws, design.n_first
        if design.of_others is None:
            raise InvalidArgumentError("The design leaves no choice.")
        n_pairs, n_players = draws.members.shape
        if not draws.is_paired:
            halves = values[:, draws.positions[:n_first, 0]]
            ask = halves_say_little(halves, values[:, :2], n_players)
        elif may_take_twos(n_players, n_pairs):
            ask = are_of_pairs(_games_of_part(design, values, EVEN, None, n_first))
        else:
            odds, n_halves = _games_of_part(design, values, ODD, None, n_first).values, n_first // 2
            halves, singles = odds[:, 1 : n_halves + 1], odds[:, n_halves + 1 :]
            ask = ~effects_are_alike(halves, singles, odds[:, :1], n_players)
            at_halves = values[:, draws.positions[:n_halves].ravel()]
            ask &= ~halves_say_little(at_halves, values[:, :2], n_players)
        parts = (draws, np.flatnonzero(~ask)), (design.of_others, np.flatnonzero(ask))
        return [
            (rows, design.subset_rows(rows).with_draws(of_rows))
            for of_rows, rows in parts
            if len(rows)
        ]

    def solve(self, design: OddDesign, values: ValueArray) -> Solution:
        """Return the attributions and standard errors of all rows and outputs."""
        if design.passes is not None:
            index = single_players(design.draws.members.shape[1])
            found = solution_of_rows(design.passes, design.draws, values, index)
            means = _with_total(found, (values[:, 1] - values[:, 0])[:, None])
            standard_errors = np.sqrt(found.variances)
            shares = prior_shares(means, standard_errors)
            return Solution(means, standard_errors, found.freedom[:, None], shares)
        return self._solution(design, values, None)

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
        if not draws.is_paired:
            return solution
        return solution.with_variances(errors.variances_of_ends(design.table.coalitions.shape[2]))

    def _solution(
        self, design: OddDesign, values: ValueArray, errors: ValueErrors | None
    ) -> Solution:
        draws = design.draws
        index = single_players(draws.members.shape[1])
        total = (values[:, 1] - values[:, 0])[:, None]
        if isinstance(draws, FoldedDraws):
            targets = draws.targets(values, centred=False)

            def fit(pairs: IntArray, others: IntArray) -> tuple[FloatArray, FloatArray, FloatArray]:
                odd = np.concatenate([total / 2, targets[:, pairs]], axis=1)
                signs = _signs(_with_all(draws.members[pairs]))
                part = Games(signs, odd, ODD, 1, centres=design.centres, distances=design.distances)
                found = self._predicted(part, draws.members[others])
                return found.means, found.predictions, found.variances

            return cross_fitted(draws, targets, fit)
        games = _games(design, values, errors)
        found = posteriors(games, index, WEIGHTS[self.weights])
        means = _with_total(found, total)
        variances = found.variances
        if draws.is_paired:
            variances = variances + _variances_of_jumps(design, values, games, index)
        elif have_complements(index.n_sets, len(draws.members)):
            # As many pairs as players, the ends included, do not tell larger odd sets from these.
            variances = variances + ODD_SHARE * (means**2).mean(axis=1, keepdims=True)
        standard_errors = np.sqrt(variances)
        n_beyond = len(games.signs) - index.n_sets - 1
        freedom = np.minimum(found.freedom[:, None], max(_FREEDOM_OF_FEW, n_beyond))
        return Solution(means, standard_errors, freedom, prior_shares(means, standard_errors))

    def predict(
        self,
        members: CoalitionArray,
        total: FloatArray,
        targets: FloatArray,
        other_members: CoalitionArray,
    ) -> Posterior:
        """Return the posterior of all rows and outputs, (R, ..., K), and predicted odd parts.

        Parameters
        ----------
        members : array, (n, M)
            Distinct coalitions, without the complements of each other.
        total, targets : arrays, (R, 1, K) and (R, n, K)
            The odd part of the game at all players together, and at these coalitions.
        other_members : array, (m, M)
            Other coalitions, whose values are predicted.
        """
        values = np.concatenate([total, targets], axis=1)
        return self._predicted(Games(_signs(_with_all(members)), values, ODD, 1), other_members)

    def _predicted(self, games: Games, other_members: CoalitionArray) -> Posterior:
        index = single_players(other_members.shape[1])
        found = posteriors(games, index, WEIGHTS[self.weights], _signs(other_members))
        return found._replace(means=_with_total(found, 2 * games.values[:, :1]))

    def interactions(
        self,
        design: OddDesign,
        values: ValueArray,
        errors: AttributionArray,
        request: InteractionRequest,
        value_errors: ValueErrors | None = None,
    ) -> SetSolution:
        """Return the posterior of the interactions: their means and standard deviations."""
        n_players = design.draws.members.shape[1]
        index = request.index(n_players)

        def of_part(parity: int) -> Posterior:
            if design.passes is not None:
                return solution_of_rows(design.passes, design.draws, values, index, parity)
            games = _games_of_part(design, values, parity, value_errors, _MOST_VALUES_OF_PAIRS)
            return posteriors(games, index, WEIGHTS[self.weights])

        parts = [of_part(parity) for parity in (EVEN, ODD) if index.has_parity(parity)]
        means = np.sum([part.means for part in parts], axis=0)
        variances = np.sum([part.variances for part in parts], axis=0)
        if request.are_semivalues and len(design.draws.members) < n_players:
            # Single players explain so few odd parts, whatever these hold of larger sets. How large
            # such sets are is seen in the even parts.
            evens = _games_of_part(design, values, EVEN, None).values
            variances = variances + 4 * evens.var(axis=1, keepdims=True, ddof=1) / evens.shape[1]
        of_mains = errors
        if request.are_pairs:
            of_mains = np.sqrt(errors**2 + membership(n_players).T @ variances / 4)
        return SetSolution(means, np.sqrt(variances), of_mains)


def _n_values(n_players: int, budget: int) -> int:
    """Return how many values the process is given: pairs of complements, or coalitions."""
    return budget // 2 if are_pairs(n_players, budget - 2) else budget


def _games(design: OddDesign, values: ValueArray, errors: ValueErrors | None) -> Games:
    """Return what the process is given: odd parts if all coalitions have complements, or values."""
    draws = design.draws
    if draws.is_paired:
        return _games_of_part(design, values, ODD, errors)
    indices = np.concatenate([[0, 1], draws.positions[:, 0]])
    members = design.table.coalitions[0, indices]
    level = values[:, :2].sum(axis=1, keepdims=True) / 2
    games = Games(_signs(members), values[:, indices] - level, None, 2, centres=design.centres)
    if errors is None:
        return games
    one, other = complements(members)
    one, other = one[other >= 0], other[other >= 0]
    variances, shared = errors.variances[:, indices], (errors.even - errors.odd)[:, indices]

    def covariances(row: int, output: int) -> FloatArray:
        found = np.diag(variances[row, :, output])
        found[one, other] = found[other, one] = shared[row, one, output]
        return found

    return games._replace(errors=covariances, error_freedom=errors.freedom)


def _games_of_part(
    design: OddDesign,
    values: ValueArray,
    parity: int,
    errors: ValueErrors | None,
    most: int | None = None,
) -> Games:
    """Return the odd or even parts at all players and at the first pairs."""
    members, positions = design.draws.members[:most], design.draws.positions[:most]
    first, second = (
        np.concatenate([values[:, [end]], values[:, positions[:, side]]], axis=1)
        for side, end in ((0, 1), (1, 0))
    )
    parts = (first - second) / 2
    if parity == EVEN:
        parts = differences((first + second) / 2)
    signs = _signs(_with_all(members))
    games = Games(signs, parts, parity, 1, centres=design.centres, distances=design.distances)
    if errors is None:
        return games
    of_pairs = np.take(errors.odd if parity == ODD else errors.even, positions[:, 0], axis=1)
    # Those of all players are left out: their error is common to all differences from them.
    variances = np.concatenate([np.zeros_like(of_pairs[:, :1]), of_pairs], axis=1)
    return games._replace(
        errors=lambda row, output: np.diag(variances[row, :, output]),
        error_freedom=errors.freedom,
    )


def _variances_of_jumps(
    design: OddDesign, values: ValueArray, odds: Games, index: Index
) -> FloatArray:
    """Return the variances of games whose odd part is 0 so far, but the even one is not, (R, M, K).

    Labels may jump where nothing was evaluated. By the rule of succession, the share of pairs in
    which they do is 1 over two more than the number of pairs. The variances of others are 0.
    """
    has_odd = odds.values.any(axis=1, keepdims=True)
    if has_odd.all():
        return np.zeros(1)
    evens = _games_of_part(design, values, EVEN, None).values
    jumps = np.where(has_odd, 0.0, np.ptp(evens, axis=1, keepdims=True) / 2)
    weights = index.weights_of_part(design.draws.members, ODD)
    unknown = np.maximum(index.sums_of_squares(ODD) - (weights**2).sum(axis=0), 0.0)
    return jumps**2 * unknown[:, None] / (len(weights) + 2)


def _with_total(found: Posterior, total: FloatArray) -> FloatArray:
    """Return the means with the total that is known, (R, 1, K), by their variances."""
    gap = total - found.means.sum(axis=1, keepdims=True)
    sums = found.variances.sum(axis=1, keepdims=True)
    shares = found.variances / np.where(sums > 0, sums, 1.0)
    shares = np.where(sums > 0, shares, 1 / found.means.shape[1])
    return found.means + gap * shares


def _centres(scores: ScoreArray) -> FloatArray:
    """Return the prior means of the log strengths, (R, M), by scores, (R, M, M)."""
    of_players = np.abs(scores).sum(axis=2)
    mean = of_players.mean(axis=1, keepdims=True)
    shares = of_players / np.where(mean > 0, mean, 1.0)
    return np.log((1 - _SCORE_SHARE) * shares + _SCORE_SHARE)


def _with_all(members: CoalitionArray) -> CoalitionArray:
    """Return the coalition of all players, followed by others."""
    return np.concatenate([np.ones((1, members.shape[1]), dtype=bool), members])


def _signs(members: CoalitionArray) -> FloatArray:
    """Return 1 for the members of coalitions, −1 for the other players."""
    return np.where(members, 1.0, -1.0)
