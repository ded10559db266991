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
