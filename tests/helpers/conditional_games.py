"""Games of features drawn given others, whose exact values follow from a closed form."""

import numpy as np

from .brute_force import shapley_values


def normal_game(row, mean, covariance, expected):
    """Return the game of a row of a normal distribution.

    `expected(means, covariances)` returns the expectation of the model for a row of which all
    features are normally distributed, some of them without variance.
    """

    def value(coalition):
        present = sorted(coalition)
        absent = [column for column in range(len(row)) if column not in coalition]
        means, covariances = np.array(row, dtype=float), np.zeros((len(row), len(row)))
        means[absent] = np.asarray(mean)[absent]
        of_absent = covariance[np.ix_(absent, absent)]
        if present and absent:
            inverse = np.linalg.inv(covariance[np.ix_(present, present)])
            across = covariance[np.ix_(absent, present)]
            means[absent] += across @ inverse @ (np.asarray(row) - mean)[present]
            of_absent = of_absent - across @ inverse @ across.T
        covariances[np.ix_(absent, absent)] = of_absent
        return expected(means, covariances)

    return value


def normal_shapley_values(rows, mean, covariance, expected):
    """Return the Shapley values, (R, D), of rows of a normal distribution."""
    games = [normal_game(row, mean, covariance, expected) for row in rows]
    return np.array([shapley_values(rows.shape[1], game) for game in games])


def interventional_game(row, mean, covariance, components, confounded, expected, causes=None):
    """Return the game of linear structural equations, whose noise is normal.

    A feature that is not set is a linear function of its causes, and noise. Features of a component
    that is not confounded are ordered so that those that are set come first. `causes` are those of
    each component, by default all features of the components before it. The model may see further
    features of the row in place of those that follow the set ones.
    """
    n_features = len(row)
    if causes is None:
        causes = [
            [c for earlier in components[:place] for c in earlier]
            for place in range(len(components))
        ]

    def value(coalition, shown=frozenset()):
        effects, noise = np.zeros((n_features, n_features)), np.zeros((n_features, n_features))
        for members, is_confounded, earlier in zip(components, confounded, causes, strict=True):
            absent = [member for member in members if member not in coalition]
            is_set = [member for member in members if member in coalition]
            given = list(earlier) + ([] if is_confounded else is_set)
            across = covariance[np.ix_(absent, given)]
            slopes = across @ np.linalg.pinv(covariance[np.ix_(given, given)])
            effects[np.ix_(absent, given)] = slopes
            noise[np.ix_(absent, absent)] = covariance[np.ix_(absent, absent)] - slopes @ across.T
        start = np.array([row[j] - mean[j] if j in coalition else 0.0 for j in range(n_features)])
        solved = np.linalg.inv(np.eye(n_features) - effects)  # x = start + effects x + noise
        means, covariances = mean + solved @ start, solved @ noise @ solved.T
        for player in shown:
            means[player], covariances[player], covariances[:, player] = row[player], 0.0, 0.0
        return expected(means, covariances)

    return value


class Quadratic:
    """The model x·w + xᵀAx, whose expectation is μ·w + μᵀAμ + tr(AΣ)."""

    def __init__(self, n_features, seed):
        rng = np.random.default_rng(seed)
        self.weights = rng.normal(size=n_features)
        self.matrix = rng.normal(size=(n_features, n_features)) / n_features

    def __call__(self, x):
        return x @ self.weights + ((x @ self.matrix) * x).sum(axis=-1)

    def expected(self, means, covariances):
        return self(means) + np.trace(self.matrix @ covariances)


def correlated_rows(n_rows, n_features, seed):
    rng = np.random.default_rng(seed)
    return rng.normal(size=(n_rows, n_features)) @ rng.normal(size=(n_features, n_features)) / 2
