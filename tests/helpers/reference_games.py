"""Games with known properties, in the form that the core takes."""

import numpy as np

from shapley_adapters import Game
from shapley_adapters.coalitions.tables import end_points
from shapley_adapters.estimators.protocol import DesignRequest


class TableGame(Game):
    """Games given by the values of all coalitions, (R, 2^M, K); bit j of the place is player j."""

    n_rows: int
    n_players: int
    evaluations_per_batch: int

    def __init__(self, values, *, evaluations_per_batch=1000, active=None):
        self.values = np.asarray(values, dtype=float)
        self.n_rows = len(self.values)
        self.n_players = int(np.log2(self.values.shape[1]))
        self.evaluations_per_batch = evaluations_per_batch
        self.active = active
        self.asked = []  # (row, place) of each evaluation, in order
        self.batch_sizes = []

    def active_players(self):
        return super().active_players() if self.active is None else self.active

    def __call__(self, rows, coalitions):
        places = coalitions @ (1 << np.arange(self.n_players))
        self.asked += list(zip(rows.tolist(), places.tolist(), strict=True))
        self.batch_sizes.append(len(rows))
        return self.values[rows, places]

    def value_of(self, row):
        """Return the game of one row as a function of a set of players, for the oracle."""
        return lambda coalition: self.values[row, sum(1 << player for player in coalition)]


def with_null_players(game, active):
    """Return `game` with values in which only the `active` players of each row count."""
    places = np.arange(2**game.n_players)
    seen = active @ (1 << np.arange(game.n_players))
    values = [of_row[places & own] for of_row, own in zip(game.values, seen, strict=True)]
    return TableGame(values, active=active)


def from_function(function, n_players, n_rows=1, **options):
    """Return the game whose value is `function(coalitions)`, the same for all rows."""
    places = np.arange(2**n_players)
    coalitions = (places[:, None] >> np.arange(n_players)) % 2 == 1
    values = np.asarray(function(coalitions), dtype=float).reshape(len(places), -1)
    return TableGame(np.repeat(values[None], n_rows, axis=0), **options)


def random_game(n_players, *, n_rows=1, n_outputs=1, seed=0, **options):
    """Return games whose values are independent normal numbers: interactions of all orders."""
    rng = np.random.default_rng(seed)
    return TableGame(rng.normal(size=(n_rows, 2**n_players, n_outputs)), **options)


def smooth_game(n_players, *, n_rows=1, n_outputs=1, seed=0, **options):
    """Return games like those of a network: interactions that fade with their order."""
    rng = np.random.default_rng(seed)
    places = np.arange(2**n_players)
    coalitions = ((places[:, None] >> np.arange(n_players)) % 2).astype(float)
    weights = rng.normal(size=(n_rows, n_players, 8, n_outputs)) / np.sqrt(n_players)
    offsets = rng.normal(size=(n_rows, 1, 8, n_outputs))
    hidden = np.einsum("cm,rmho->rcho", coalitions, weights) + offsets
    return TableGame(np.tanh(hidden).sum(axis=2), **options)


def product_game(n_players, members, **options):
    """Return the game that is 1 where all `members` are present: an interaction of that order."""
    members = list(members)
    return from_function(lambda z: z[:, members].all(axis=1), n_players, **options)


def additive_game(weights, **options):
    """Return the game that adds up the weights of the present players."""
    return from_function(lambda z: z @ np.asarray(weights), len(weights), **options)


def quadratic_game(n_players, *, seed=0, **options):
    """Return a game with weights and pairwise interactions only."""
    rng = np.random.default_rng(seed)
    single, pairs = rng.normal(size=n_players), rng.normal(size=(n_players, n_players))
    return from_function(
        lambda z: z @ single + np.einsum("ci,cj,ij->c", z, z, pairs), n_players, **options
    )


class FunctionGame(Game):
    """Games of too many players for a table: the value is `function(coalitions)`, for any row."""

    n_rows: int
    n_players: int
    evaluations_per_batch: int

    def __init__(self, function, n_players, *, n_rows=1, evaluations_per_batch=1000, active=None):
        self.function = function
        self.n_players = n_players
        self.n_rows = n_rows
        self.evaluations_per_batch = evaluations_per_batch
        self.active = active

    def active_players(self):
        return super().active_players() if self.active is None else self.active

    def __call__(self, rows, coalitions):
        return np.asarray(self.function(coalitions), dtype=float).reshape(len(rows), -1)


class RowsGame(Game):
    """A function of rows of numbers, (R, M), absent ones being 0. Counts its evaluations."""

    n_rows: int
    n_players: int
    evaluations_per_batch = 4096

    def __init__(self, function, x):
        self.function, self.x, self.n_evaluated = function, x, 0
        self.n_rows, self.n_players = x.shape

    def active_players(self):
        return self.x != 0

    def value_of(self, row):
        """Return the game of one row as a function of a set of players, for the oracle."""
        every = np.arange(self.n_players)
        return lambda players: self(np.array([row]), np.isin(every, list(players))[None])[0]

    def __call__(self, rows, coalitions):
        self.n_evaluated += len(rows)
        return self.function(self.x[rows] * coalitions)


def request_of(n_players, budget, seed=0, planned=None, **options):
    """Return the request of a design that may evaluate as much as is planned."""
    rng, known = np.random.default_rng(seed), end_points(n_players)
    return DesignRequest(n_players, budget, planned or budget, rng, known, **options)


def asked_for_estimate(game, result):
    """Return what was asked of a `TableGame`, without what looks for random answers.

    A coalition of the first row twice and its output follow the ends of all rows; some values are
    asked for once more later.
    """
    n_checks, start = result.check_evaluations, 2 * game.n_rows
    n_first = 3 if n_checks and len(set(game.asked[start : start + 2])) == 1 else 0
    asked, n_left = game.asked[:start], n_checks - n_first
    seen = set(asked)
    for pair in game.asked[start + n_first :]:
        if pair in seen and n_left:
            n_left -= 1
        else:
            asked.append(pair)
            seen.add(pair)
    return asked
