"""Groups of rows that are treated alike, their scores, and their designs, made once for all."""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from threading import Lock
from typing import TYPE_CHECKING, Any

import numpy as np
import numpy.typing as npt

from ..array_types import (
    BoolArray,
    CoalitionArray,
    DistanceArray,
    FloatArray,
    IntArray,
    ScoreArray,
    ValueArray,
)
from ..coalitions.tables import CoalitionTable, pack
from ..cooperators.choices import DERIVATIVES, LEARNED
from ..cooperators.scores import difference_coalitions, difference_scores, scores_before_evaluation
from ..errors import BudgetError, InvalidArgumentTypeError
from ..estimators.exact import full_design
from ..estimators.graph.linear_design import DesignMemoryError
from ..estimators.protocol import Design, DesignRequest, Estimator, GraphView, Passes
from ..estimators.value_errors import ValueErrors
from ..games.drawn_values import DrawnRequest
from ..games.evaluation import Evaluator, Request
from ..graphs.player_graph import PlayerGraph
from ..graphs.reading import Structure
from .settings import RowBudget, Settings, memory_error

if TYPE_CHECKING:
    from .run import Run

GROWTH = 1.25
"""Factor from the end of a round to the end of the next. At most a fifth of the evaluations of a
row come after it could have stopped."""

_MOST_DESIGNS = 16
_MOST_BYTES = 2**26
"""Bounds on the number of designs, and on the bytes of all their coalitions. The other arrays of a
design take about as much memory again."""

_MOST_SHARED = 64
"""The most designs that one run keeps for its later rows."""


@dataclass(frozen=True)
class RowGroup:
    """Some rows of a game, seen as games of their m active players.

    They have as many active players and the same known coalitions.

    Attributes
    ----------
    rows : array, (R,)
        The rows of the game.
    players : array, (R, m)
        The active players of each row, in the order of the coalitions' columns.
    n_players, n_game_players : int
        The number of active players, m, and of players of the game.
    known : array, (n, m)
        The coalitions evaluated so far.
    known_values : array, (R, n, K)
        Their values.
    scores, sources, backward_passes : arrays, (R, m, m), (R,) and (R,), or None
        How much the players of each row cooperate, the source of these scores, and the backward
        passes that they needed.
    graph : PlayerGraph, optional
        The graph of all players of the game. All rows of a group have the same graph and the same
        active players.
    own_words : array, (R, 4), or None
        Part of the seed of each row's random draws, where rows have draws of their own.
    distances : array of arrays, (R,), optional
        The distances between the active players of each row on its graph, for estimators of the
        Shapley values of the whole game.
    has_gradients : bool
        Whether gradients of the model are of use.
    n_passes, n_beside_values : int
        The passes for gradients of each row so far, and the evaluations that they count as, beside
        the values of no and of all players, which come from the first two.
    """

    rows: IntArray
    players: IntArray
    n_players: int
    n_game_players: int
    known: CoalitionArray
    known_values: ValueArray
    scores: ScoreArray | None = None
    sources: npt.NDArray[np.str_] | None = None
    backward_passes: IntArray | None = None
    graph: Structure | None = None
    own_words: npt.NDArray[np.uint32] | None = None
    distances: DistanceArray | None = None
    has_gradients: bool = False
    n_passes: int = 0
    n_beside_values: int = 0

    def with_passes(self, n_passes: int) -> RowGroup:
        """Return the group with so many passes."""
        n_outputs = self.known_values.shape[2]
        n_beside = n_passes * Passes.cost(n_outputs) - 2
        backward = np.full(len(self.rows), n_passes * n_outputs)
        return replace(self, n_passes=n_passes, n_beside_values=n_beside, backward_passes=backward)

    def subset_rows(self, keep: BoolArray | IntArray) -> RowGroup:
        """Return the group of some of its rows, given by their indices or by a mask."""
        arrays = {name: getattr(self, name) for name in _OF_ROWS}
        return replace(self, **{n: a[keep] for n, a in arrays.items() if a is not None})

    def one_by_one(self) -> list[RowGroup]:
        """Return each row as a group."""
        return [self.subset_rows(np.array([index])) for index in range(len(self.rows))]

    def generator(self, seed: int, *purpose: int) -> np.random.Generator:
        """Return the random stream of the group, or of its only row.

        Each number of players has its own stream, so that the other rows have no influence.
        """
        words = () if self.own_words is None else tuple(self.own_words[0].tolist())
        key = (self.n_players, *purpose, *words)
        return np.random.default_rng(np.random.SeedSequence(seed, spawn_key=key))

    def relabelled(self, seed: int) -> RowGroup:
        """Return the group with the players of each row in a random order, drawn for the row."""
        orders = [row.generator(seed, 2).permutation(self.n_players) for row in self.one_by_one()]
        players, distances = np.take_along_axis(self.players, np.array(orders), axis=1), None
        if self.distances is not None:
            distances = self.distances.copy()
            for row, order in enumerate(orders):
                distances[row] = distances[row][np.ix_(order, order)]
        return replace(self, players=players, own_words=None, distances=distances)

    def on_graphs(self, graphs: Sequence[Structure]) -> RowGroup:
        """Return the group with the distances between its players on the graphs of all rows."""
        known: dict[Hashable, FloatArray] = {}
        distances: DistanceArray = np.empty(len(self.rows), dtype=object)
        for index, (row, players) in enumerate(zip(self.rows, self.players, strict=True)):
            graph = graphs[row]
            if not isinstance(graph, PlayerGraph):
                raise InvalidArgumentTypeError(
                    f"graph must be a PlayerGraph; got {type(graph).__name__}."
                )
            key = graph, players.tobytes()
            if key not in known:
                known[key] = graph.distances()[np.ix_(players, players)]
            distances[index] = known[key]
        return replace(self, distances=distances)

    def scored(
        self, scores: ScoreArray, sources: npt.NDArray[np.str_] | str, passes: IntArray
    ) -> RowGroup:
        """Return the group with the scores of its active players."""
        row_sources = np.broadcast_to(np.asarray(sources, dtype="U10"), self.rows.shape)
        return replace(self, scores=scores, sources=row_sources, backward_passes=passes)


_OF_ROWS = (
    "rows",
    "players",
    "known_values",
    "scores",
    "sources",
    "backward_passes",
    "own_words",
    "distances",
)
"""The fields of a `RowGroup` that have an entry for each row."""


def scored(run: Run, group: RowGroup, evaluate: Evaluator) -> list[RowGroup]:
    """Return the group with scores of its players, where their coalitions are drawn.

    Two groups where some rows have derivatives and others do not. These have scores by differences
    of values if the user chose them or they are cheap, else at random, and none where the user
    chose derivatives alone.
    """
    source, n_players = run.estimator.score_source, group.n_players
    choice = source if isinstance(source, str) else ""
    run.warnings.score_source = choice or run.warnings.score_source
    budget, n_differences = run.budgets[n_players], n_players * (n_players + 1) // 2
    if budget.enumerates_now or source is None:
        return [group]
    # Differences of means of draws have errors: unless asked for, they are not worth their rows of
    # the model (12 features, 100 background rows, 500 to 2,000 model rows each).
    limit = 0 if run.has_draws else budget.first_check
    minimum = run.estimator.minimum_budget(n_players, run.settings.needs_errors)
    are_cheap = 2 * (n_differences + 1) <= limit and minimum + n_differences <= limit
    by_differences = choice == "difference" or (choice == "auto" and are_cheap)
    computed = scores_before_evaluation(
        run.game, group.rows, source, run.settings.batch_size, by_differences
    )
    run.warnings.count_scores(computed)
    row = np.arange(len(computed.values))[:, None, None]
    scores = computed.values[row, group.players[:, :, None], group.players[:, None, :]]
    passes, is_missing = computed.backward_passes, computed.sources == ""
    parts = []
    if not is_missing.all():
        known = ~is_missing
        part = group.subset_rows(known)
        parts.append(part.scored(scores[known], computed.sources[known], passes[known]))
    if not is_missing.any():
        return parts
    rest, passes = group.subset_rows(is_missing), passes[is_missing]
    shape = n_players, n_players
    if choice == DERIVATIVES:
        return [*parts, rest.scored(np.zeros((len(rest.rows), *shape)), "", passes)]
    if by_differences:
        coalitions = difference_coalitions(n_players)
        rest, values = run.knowing(rest, coalitions, evaluate)
        positions = {key.tobytes(): index for index, key in enumerate(pack(rest.known))}
        indices = [positions[key.tobytes()] for key in pack(coalitions)]
        differences = difference_scores(values[:, 1], values[:, indices], n_players)
        return [*parts, rest.scored(differences, "difference", passes)]
    # At random, by another stream than the coalitions; rows without draws of their own share it.
    alone = rest.one_by_one() if rest.own_words is not None else [rest]
    drawn = [one.generator(run.settings.seed, 1).random(shape) for one in alone]
    at_random = np.broadcast_to(drawn, (len(rest.rows), *shape))
    return [*parts, rest.scored(at_random, LEARNED if choice == LEARNED else "random", passes)]


@dataclass(frozen=True)
class PendingRows:
    """Rows of a group with the part of their design that has been evaluated.

    Attributes
    ----------
    group : RowGroup
        The rows.
    design : Design
        All coalitions that may be evaluated for them.
    values : array, (R, n, K)
        The values of the design's first coalitions.
    round_end : int
        The number of coalitions that are evaluated by the end of the present round.
    drawn : array, (1 or R, C, D), optional
        Which draws each coalition of the design has, where values are means of draws. Until they
        are solved, the values are then those of all draws, (R, n, D · K).
    errors : ValueErrors, optional
        The errors of the values, where they are means of draws, once they are solved.
    changes : array, (R, n, N_CHANGES · K), optional
        How these values change by fits of the draws' distribution to other rows; see `refits`.
    is_checked : bool
        Whether some values were evaluated again, to see whether the model answers at random.
    repeated : array, (n,), optional
        The coalitions that were, where answers differ, which is known of a single row.
    again : array, (n, K), optional
        Their second answers.
    noise : tuple, optional
        The variance of an answer, (K,), of rows that may be random as others of the call are, and
        the number of differences that it is known by.
    """

    group: RowGroup
    design: Design
    values: ValueArray
    round_end: int
    drawn: BoolArray | None = None
    errors: ValueErrors | None = None
    changes: ValueArray | None = None
    is_checked: bool = False
    repeated: IntArray | None = None
    again: ValueArray | None = None
    noise: tuple[FloatArray, int] | None = None

    def request(self, table: CoalitionTable | None = None) -> Request:
        """Return the request for some coalitions, by default those that the round still needs."""
        group, start, stop = self.group, self.values.shape[1], self.round_end
        every, counts = self.design.table.coalitions, self.design.table.counts
        left = CoalitionTable(every[:, start:stop], np.clip(counts, start, stop) - start)
        request = Request(group.rows, table or left)
        everyone = np.tile(np.arange(group.n_game_players), (len(group.rows), 1))
        if not np.array_equal(group.players, everyone):
            request = replace(request, players=group.players, n_players=group.n_game_players)
        if self.drawn is None or table is not None:
            return request
        return DrawnRequest(**vars(request), drawn=self.drawn[:, start:stop])

    def subset_rows(self, indices: IntArray) -> PendingRows:
        """Return some of the rows, given by their indices."""
        design, drawn, errors = self.design.subset_rows(indices), self.drawn, self.errors
        most = design.table.coalitions.shape[1]  # the other rows may have had more
        if drawn is not None:
            drawn = (drawn if len(drawn) == 1 else drawn[indices])[:, :most]
        if design.passes is not None:
            design = replace(design, passes=design.passes.subset_rows(indices))
        return replace(
            self,
            group=self.group.subset_rows(indices),
            design=design,
            values=self.values[indices, :most],
            drawn=drawn,
            errors=None if errors is None else errors.subset_rows(indices).first(most),
            changes=None if self.changes is None else self.changes[indices, :most],
        )


_kept: dict[Hashable, Design] = {}
"""Designs on graphs for later calls, the most recent ones last."""

_kept_lock = Lock()  # explainers may run in threads


def _design_on_graph(
    estimator: Estimator[Any], request: DesignRequest, keeps_drawn: bool
) -> Design:
    """Return the estimator's design for a request, which is kept for the next calls.

    Images of one size, or texts of one length, have the same graph. A design takes a tenth to a
    fifth of the time of a model's evaluations, so that many calls with one example each should not
    make it again. A drawn design is kept for requests with the same stream of random numbers;
    without `keeps_drawn` it is not: those of rows with draws of their own would replace all others.
    """
    view = request.required_graph_view
    key: Hashable = (
        estimator,
        view.graph,
        view.players.tobytes(),
        request.known.tobytes(),
        request.budget,
        request.planned,
        request.budget_is_default,
        request.needs_errors,
    )
    key_if_drawn: Hashable = (key, repr(request.rng.bit_generator.state))
    with _kept_lock:
        for one in (key, key_if_drawn):
            if one in _kept:
                found = _kept[one] = _kept.pop(one)
                return found
    design: Design = estimator.design(request)
    if design.table.coalitions.nbytes <= _MOST_BYTES and (design.is_whole or keeps_drawn):
        with _kept_lock:
            _kept[key if design.is_whole else key_if_drawn] = design
            while (
                len(_kept) > _MOST_DESIGNS
                or sum(one.table.coalitions.nbytes for one in _kept.values()) > _MOST_BYTES
            ):
                del _kept[next(iter(_kept))]
    return design


@dataclass
class GroupDesigns:
    """Makes the designs of one run.

    Attributes
    ----------
    estimator : Estimator
        The estimator that chooses the coalitions where not all of them are evaluated.
    settings : Settings
        The settings of the run.
    budgets : dict of int to RowBudget
        The budget for each number of active players.
    """

    estimator: Estimator[Any]
    settings: Settings
    budgets: Mapping[int, RowBudget]
    _shared: dict[Hashable, Design] = field(default_factory=dict, init=False)
    _drawn_keys: set[Hashable] = field(default_factory=set, init=False)

    def design_for(self, group: RowGroup) -> Design:
        """Return the design of a group, or of its only row."""
        n_players, budget = group.n_players, self.budgets[group.n_players]
        key: Hashable = n_players, group.has_gradients, group.n_beside_values
        if group.graph is not None:
            key = (group.graph, group.players[0].tobytes())
        # Threads share the designs: another one may clear them meanwhile.
        if (shared := self._shared.get(key)) is not None:
            return shared
        limit, estimator, n_beside = budget.limit, self.estimator, group.n_beside_values
        if group.has_gradients:  # at the ends, and in the middle at least
            n_beside += Passes.cost(group.known_values.shape[2])
        else:
            estimator = estimator.values_alone or estimator
            limit = max(limit - n_beside, min(limit, budget.minimum))
        if budget.can_enumerate and 2**n_players + n_beside <= budget.limit:
            limit = budget.first_limit
        request = DesignRequest(
            n_players=n_players,
            budget=min(limit, 2**n_players),
            planned=min(budget.first_check, 2**n_players),
            rng=group.generator(self.settings.seed),
            known=group.known,
            scores=group.scores,
            has_scores=None if group.sources is None else ~np.isin(group.sources, ("", "random")),
            graph_view=None if group.graph is None else GraphView(group.graph, group.players[0]),
            distances=group.distances,
            budget_is_default=self.settings.budget is None,
            needs_errors=self.settings.needs_errors,
            interactions=self.settings.interactions,
            must_draw=key in self._drawn_keys,
            n_outputs=group.known_values.shape[2],
            has_gradients=group.has_gradients,
        )
        try:
            if budget.enumerates_now:
                design: Design = full_design(n_players, group.known)
            elif estimator.needs_graph:
                design = _design_on_graph(estimator, request, group.own_words is None)
            else:
                design = estimator.design(request)
        except DesignMemoryError as error:
            raise memory_error(n_players, self.settings) from error
        except BudgetError as error:
            given = self.settings.budget
            context = f"{self.settings.budget_name} has to be given"
            if given is not None:
                context = f"{self.settings.budget_text(given)} is too small"
                if request.budget < min(given, 2**n_players):
                    context += f" and pays, with repeated draws, for {request.budget} coalitions"
            raise BudgetError(f"{context}: {self.settings.name} {error}") from error
        is_shared = group.scores is None and group.distances is None
        if is_shared and (group.own_words is None or design.is_whole):
            if len(self._shared) >= _MOST_SHARED:
                self._shared.clear()
            self._shared[key] = design
        else:
            self._drawn_keys.add(key)
        return design
