"""Budgets of two evaluations per player and fewer: what `oddgp` says about its prior."""

import re
import time
import warnings

import numpy as np
import pytest

import shap_ext
from shapley_adapters.errors import ShapleyExtWarning
from tests.parity.test_time_budgets import HOSTS, by_shap

N_ROWS = 6


def additive(rows):
    return (lambda x: x.sum(axis=1)), rows


def pairwise(rows):
    """Return products of neighbours beside a sum."""
    others = np.roll(rows, 1, axis=1)

    def model(x):
        return x.sum(axis=1) + (x * np.roll(x, 1, axis=1)).sum(axis=1)

    return model, rows + (rows * others + rows * np.roll(rows, -1, axis=1)) / 2


def sparse(rows):
    return (lambda x: x[:, :4].sum(axis=1)), rows * (np.arange(rows.shape[1]) < 4)


def triples(rows):
    """Return products of three features each; a third of the features have no effect."""
    n_used = rows.shape[1] // 9 * 6

    def parts(x):
        return x[:, :n_used].reshape(len(x), -1, 3).prod(axis=2)

    shares = np.zeros_like(rows)
    shares[:, :n_used] = np.repeat(parts(rows) / 3, 3, axis=1)
    return (lambda x: parts(x).sum(axis=1)), shares


def explained(game, n_players, n_evaluations, seed):
    rows = np.random.default_rng(n_players).normal(size=(N_ROWS, n_players))
    model, exact = game(rows)
    explainer = shap_ext.OddGPExplainer(model, 0 * rows[:1], seed=seed)
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", ".* is little for", ShapleyExtWarning)
        explainer(rows, max_evals=n_evaluations)
    return explainer.last_estimate, exact


def relative_error(values, exact):
    """Return the error relative to the differences between attributions, over all rows."""
    spread = ((exact - exact.mean(axis=1, keepdims=True)) ** 2).sum(axis=1)
    return np.sqrt((((values - exact) ** 2).sum(axis=1) / spread).mean())


@pytest.mark.slow
@pytest.mark.parametrize("per_player", [1, 2])
@pytest.mark.parametrize("game", [additive, pairwise, sparse, triples])
@pytest.mark.every_combination
def test_the_share_of_the_prior_predicts_the_error_and_intervals_hold(game, per_player):
    """Over two numbers of players and three seeds; the attributions of a row share their scale.

    The measured ratio is .5 to 1, and 1.4 for triples at two evaluations per player: with as many
    values as players, they look like single players.
    """
    predicted, actual, inside = [], [], []
    for n_players in (20, 80):
        for seed in range(3):
            estimate, exact = explained(game, n_players, per_player * n_players, seed)
            predicted.append(estimate.prior_shares.mean())
            actual.append(relative_error(estimate.values[..., 0], exact) ** 2)
            ends = [estimate.interval(share) for share in (0.95, 0.68)]
            exact = exact[..., None]
            inside.append([((a - 1e-9 <= exact) & (exact <= b + 1e-9)).mean() for a, b in ends])
    assert (np.mean(inside, axis=0) >= [0.93, 0.67]).all()
    expected, error = np.sqrt([np.mean(predicted), np.mean(actual)])
    assert error <= (1.6 if game is triples else 1.1) * expected + 0.05
    # At two, games of pairs are exact, whatever the share says of larger sets.
    assert expected < 0.05 or per_player == 2 or error >= 0.7 * expected


@pytest.mark.parametrize("n_players", [20, 50, 100])
def test_few_values_make_no_triples_of_players_stand_out(n_players):
    """With as many pairs as players, triples explained the values of single players by chance."""
    estimate, exact = explained(sparse, n_players, 2 * n_players, 0)
    assert relative_error(estimate.values[..., 0], exact) < 0.3


@HOSTS
def test_one_warning_states_the_share_and_the_remedy(explain):
    rows = np.random.default_rng(0).normal(size=(5, 60))
    rows[3:, 20:] = 0.0  # fewer players, for which the budget is enough
    model, _ = pairwise(rows)
    with pytest.warns(ShapleyExtWarning) as caught:
        _, estimate = explain(model, rows, "OddGP", max_evals=44)
    (warning,) = caught
    words = (
        r"44 is little for 60 players: below 60 evaluations.* (\d+)% of their variance.*to 60 at"
    )
    (percent,) = re.search(words, str(warning.message)).groups()
    assert int(percent) == round(100 * estimate.prior_shares[:3].mean()) > 10
    assert estimate.prior_shares[3:].mean() < estimate.prior_shares[:3].min()


def test_the_share_is_zero_where_nothing_is_left_to_a_prior():
    rows = np.random.default_rng(0).normal(size=(3, 6))
    model, _ = pairwise(rows)
    assert (by_shap(model, rows, "oddgp", max_evals=64)[1].prior_shares == 0).all()
    explainer = shap_ext.RandomOrderExplainer(model, 0 * rows[:1], seed=0)
    explainer(rows, max_evals=30)
    assert (explainer.last_estimate.prior_shares == 0).all()
    of_nothing = by_shap(lambda x: 0 * x[:, 0], rows, "oddgp", max_evals=30)[1]
    assert (of_nothing.prior_shares == 0).all()


def test_the_remedy_for_too_short_a_time_is_more_time():
    rows = np.random.default_rng(0).normal(size=(2, 40))
    model, _ = pairwise(rows)

    def slow(x):
        time.sleep(0.02 * len(x))
        return model(x)

    with pytest.warns(ShapleyExtWarning, match="Raise max_seconds until max_evals=40 fits"):
        by_shap(slow, rows, "oddgp", max_seconds=0.8)
    with pytest.warns(ShapleyExtWarning, match="Raise max_evals to 40"):
        by_shap(model, rows, "oddgp", max_evals=20, max_seconds=60)
