"""One table of estimators, one set of properties; then the same numbers through both hosts.

A new estimator is a new row of `tests/helpers/estimator_table.py`.
"""

from dataclasses import replace

import numpy as np
import pytest
import scipy.stats

from shapley_adapters.errors import InvalidArgumentError
from tests.helpers.brute_force import game_shapley_values
from tests.helpers.estimator_table import ESTIMATORS, OF_CLASSES, OF_CORE, SEVERAL, over
from tests.helpers.optional import torch
from tests.helpers.reference_games import (
    TableGame,
    additive_game,
    asked_for_estimate,
    quadratic_game,
    random_game,
    smooth_game,
)

M = 7
FULL = 2**M
PARTIAL = 100
"""Less than FULL, and more than SHEAR needs at most, for errors: 8 M + 2 + M (M + 1)/2."""

RANDOM = [row for row in OF_CORE if not row.is_exact]
IS_SHEAR = [row for row in ESTIMATORS if row.cooperators is not None]


def budget_of(row):
    return row.budget(M, PARTIAL)


def with_cooperators(row, cooperators):
    """Return the row with cooperators that do not depend on the game's values."""
    if row.cooperators in (None, "learned"):
        return row
    return replace(row, options={**row.options, "cooperators": cooperators})


def some_scores(seed=0):
    scores = np.random.default_rng(seed).random((M, M))
    return scores + scores.T


def values_of(row, game, **settings):
    settings.setdefault("budget", budget_of(row))
    return row.estimate(game, **settings).values


# --- what Shapley values are ---


@over(OF_CORE)
@pytest.mark.parametrize("budget", [FULL, FULL + 50])
def test_exact_where_the_budget_pays_for_all_coalitions(row, budget):
    game = random_game(M, n_rows=2, n_outputs=2)
    result = row.estimate(game, budget=budget)
    np.testing.assert_allclose(result.values, game_shapley_values(game), atol=1e-10)
    assert (result.standard_errors == 0).all()
    assert result.evaluations.tolist() == [FULL, FULL]


@over(OF_CORE)
@pytest.mark.parametrize("make", [random_game, smooth_game])
def test_efficiency(row, make):
    game = make(M, n_rows=3, n_outputs=2)
    result = row.estimate(game, budget=budget_of(row))
    missing = result.grand_values - result.empty_values - result.values.sum(axis=1)
    if row.is_efficient:
        np.testing.assert_allclose(missing, 0, atol=1e-10)
    else:
        assert np.abs(missing).min() > 1e-6


@over(OF_CORE)
def test_null_players_get_nothing(row):
    """Players that only the values show to be null; hosts set aside those that they know."""
    if not row.keeps_null_players:
        pytest.skip("gives null players nothing only where the values say so")
    places = np.arange(2**M) & ~0b0100100
    game = TableGame(random_game(M, n_rows=3).values[:, places])
    nulls = values_of(row, game)[:, [2, 5]]
    np.testing.assert_allclose(nulls, 0, atol=1e-12)


@over(OF_CORE)
@pytest.mark.parametrize("kind", ["additive", "quadratic"])
@pytest.mark.every_combination
def test_games_of_single_players_and_pairs(row, kind):
    game = additive_game(np.arange(M) ** 2 - 10.0) if kind == "additive" else quadratic_game(M)
    error = np.abs(values_of(row, game) - game_shapley_values(game)).max()
    if getattr(row, f"exact_on_{kind}"):
        assert error < row.rounding
    else:
        assert error > 1e-3


@over(OF_CORE)
@pytest.mark.parametrize("cooperators", ["random", some_scores()], ids=["random", "array"])
def test_linear_in_the_game(row, cooperators):
    """With the same draws, and with cooperators that do not depend on the values."""
    row = with_cooperators(row, cooperators)
    first, second = random_game(M, n_rows=2, seed=1), smooth_game(M, n_rows=2, seed=2)
    mixed = TableGame(2.5 * first.values - 0.5 * second.values)
    expected = 2.5 * values_of(row, first) - 0.5 * values_of(row, second)
    if row.is_linear:
        np.testing.assert_allclose(values_of(row, mixed), expected, atol=1e-10)
    else:  # what it learns of a game is not
        assert np.abs(values_of(row, mixed) - expected).max() > 1e-6


@over(OF_CORE)
def test_shift_and_scale_of_the_game(row):
    game = random_game(M, n_outputs=2)
    moved = TableGame((3 if row.ignores_level else 0) - 2 * game.values)
    np.testing.assert_allclose(values_of(row, moved), -2 * values_of(row, game), atol=1e-10)
    if not row.ignores_level:
        lifted = values_of(row, TableGame(3 + game.values))
        assert np.abs(lifted - values_of(row, game)).max() > 1e-3


@over([row for row in OF_CLASSES if row in RANDOM])
@pytest.mark.slow
def test_relabelled_players_take_their_values_with_them(row):
    """Exactly, where all is enumerated; else on average.

    Of 2 · 2 · 7 means |z| > 4 happens once in 500 runs.
    """
    order = np.random.default_rng(5).permutation(M)
    game = random_game(M, n_rows=2)
    places = (np.arange(2**M)[:, None] >> order & 1) @ (1 << np.arange(M))
    relabelled = TableGame(np.empty_like(game.values))
    relabelled.values[:, places] = game.values  # player j of the new game is order[j] of the old
    np.testing.assert_allclose(
        values_of(row, relabelled, budget=FULL),
        values_of(row, game, budget=FULL)[:, order],
        atol=1e-12,
    )
    n = row.n_seeds(50)
    before = np.array([values_of(row, game, seed=s)[:, order] for s in range(n)])
    after = np.array([values_of(row, relabelled, seed=s + n) for s in range(n)])
    for moment in (1, 2):
        first, second = before**moment, after**moment
        difference = first.mean(axis=0) - second.mean(axis=0)
        spread = np.sqrt((first.var(axis=0) + second.var(axis=0)) / n)
        assert (np.abs(difference) < 4 * spread + 1e-10).all()


@over([row for row in RANDOM if (row.is_unbiased or row in IS_SHEAR) and not row.fits_folds])
@pytest.mark.slow
def test_unbiased_where_promised(row):
    """The mean over seeds against the oracle, at 8 rows · 7 players.

    |z| > 4.5 happens once in 2000 runs of an unbiased estimator; the biased forms of SHEAR are
    farther out than 8. Estimators that fit folds have tests of their own, in fewer dimensions.
    """
    game = random_game(M, n_rows=8, seed=6)
    drawn = np.array([values_of(row, game, seed=s, budget=70) for s in range(200)])
    spread = drawn.std(axis=0, ddof=1) / np.sqrt(len(drawn))
    z = (drawn.mean(axis=0) - game_shapley_values(game)) / np.maximum(spread, 1e-12)
    if row.is_unbiased:
        assert np.abs(z).max() < 4.5
    else:
        assert np.abs(z).max() > 8


# --- how estimates are made ---


@over(OF_CORE)
@pytest.mark.parametrize("budget", [86, 101, FULL - 1, FULL])
def test_the_budget_is_kept_and_each_pair_asked_once(row, budget):
    game = random_game(M, n_rows=3)
    budget = FULL if row.is_exact else budget
    result = row.estimate(game, budget=budget)
    assert result.check_evaluations <= max(4, 0.05 * 3 * budget)
    for_estimate = asked_for_estimate(game, result)
    assert len(set(for_estimate)) == len(for_estimate)
    asked = np.bincount([row for row, _ in for_estimate])
    assert len(for_estimate) <= 3 * budget
    assert asked.tolist() == result.evaluations.tolist()
    assert (asked <= max(budget, budget_of(row) if row.is_exact else 0)).all()


@over(RANDOM)
def test_seeds(row):
    """The seed decides; SHEAR draws nothing where complements are left out and scores given."""
    game = random_game(M)
    first, again, other = (row.estimate(game, budget=PARTIAL, seed=seed) for seed in (3, 3, 4))
    np.testing.assert_array_equal(first.values, again.values)
    np.testing.assert_array_equal(first.standard_errors, again.standard_errors)
    assert (first.seed, other.seed) == (3, 4)
    if row.options.get("complement") == "none":
        np.testing.assert_array_equal(first.values, other.values)
    else:
        assert np.abs(first.values - other.values).min() > 1e-9


@over(SEVERAL)
@pytest.mark.parametrize("batch_size", [1, 13, 10_000])
@pytest.mark.every_combination
def test_batch_size_changes_nothing(row, batch_size):
    values = random_game(M, n_rows=3, n_outputs=2).values
    expected = row.estimate(TableGame(values), budget=budget_of(row))
    game = TableGame(values)
    result = row.estimate(game, budget=budget_of(row), batch_size=batch_size)
    np.testing.assert_array_equal(result.values, expected.values)
    np.testing.assert_array_equal(result.standard_errors, expected.standard_errors)
    assert max(game.batch_sizes) <= batch_size


@over(OF_CORE)
def test_rows_do_not_matter_to_each_other(row):
    """Neither their order nor their company."""
    values = random_game(M, n_rows=5, n_outputs=2).values
    active = np.ones((5, M), dtype=bool)
    active[3, :2] = False
    expected = row.estimate(TableGame(values, active=active), budget=budget_of(row))
    for chosen in ([4, 2, 0, 3, 1], [2], [3, 1]):
        game = TableGame(values[chosen], active=active[chosen])
        result = row.estimate(game, budget=budget_of(row))
        # Products of other matrix sizes may round otherwise.
        np.testing.assert_allclose(result.values, expected.values[chosen], atol=1e-12)
        np.testing.assert_allclose(
            result.standard_errors, expected.standard_errors[chosen], atol=1e-12
        )
        np.testing.assert_array_equal(result.evaluations, expected.evaluations[chosen])


TOGETHER = [row for row in OF_CORE if row.fits_outputs_together]


@over([row for row in OF_CORE if row not in TOGETHER])
@pytest.mark.parametrize("cooperators", ["random", some_scores()], ids=["random", "array"])
def test_several_outputs_equal_one_at_a_time(row, cooperators):
    """With cooperators that do not depend on the outputs."""
    row = with_cooperators(row, cooperators)
    game = random_game(M, n_rows=2, n_outputs=3)
    together = row.estimate(game, budget=budget_of(row))
    for output in range(3):
        alone = row.estimate(TableGame(game.values[:, :, [output]]), budget=budget_of(row))
        np.testing.assert_allclose(alone.values, together.values[:, :, [output]], atol=1e-12)
        np.testing.assert_allclose(
            alone.standard_errors, together.standard_errors[:, :, [output]], atol=1e-12
        )


@over(TOGETHER)
def test_outputs_that_share_what_they_teach(row):
    """Multiples of one output teach no more than it; the order of others has no influence."""
    game = random_game(M, n_rows=2, n_outputs=3)
    of_one = TableGame(game.values[:, :, :1])
    multiples = TableGame(of_one.values * np.array([1.0, -2.0, 0.5]))
    alone, together = (row.estimate(one, budget=budget_of(row)) for one in (of_one, multiples))
    backwards = row.estimate(TableGame(game.values[:, :, ::-1]), budget=budget_of(row))
    forwards = row.estimate(game, budget=budget_of(row))
    near = {"rtol": 0, "atol": 10 * row.learned_rounding}  # of values that are 20 times as large
    for name, signs in (("values", [1.0, -2.0, 0.5]), ("standard_errors", [1.0, 2.0, 0.5])):
        np.testing.assert_allclose(
            getattr(together, name), getattr(alone, name) * np.array(signs), **near
        )
        np.testing.assert_allclose(
            getattr(backwards, name)[:, :, ::-1], getattr(forwards, name), **near
        )


@over(TOGETHER)
def test_intervals_of_outputs_that_share_what_they_teach(row):
    game = random_game(M, n_rows=8, n_outputs=3)
    lower, upper = row.estimate(game, budget=budget_of(row), with_errors=True).interval()
    exact = game_shapley_values(game)
    # Of 168 values, whose errors go together within an output.
    assert ((lower <= exact) & (exact <= upper)).mean() > 0.88


@over([row for row in OF_CLASSES if row in RANDOM])
def test_more_evaluations_err_less(row):
    """Six rows of smooth games; what a method cannot reach, such as bias, does not grow either."""
    game = smooth_game(9, n_rows=6)
    exact = game_shapley_values(game)
    errors = [
        np.mean([np.abs(row.estimate(game, budget=b, seed=s).values - exact) for s in range(3)])
        for b in (100, 400)
    ]
    assert errors[1] < 0.75 * errors[0]


# --- through the hosts ---


def lookup(values, n_samples):
    """Return the model of `TableGame` rows whose present features all hold 1 + the row's number.

    The empty coalition is the same input for all rows, so it must have the same value.
    """
    seen = []

    def model(x):
        seen.append(len(x))
        places = (x != 0) @ (1 << np.arange(M))
        rows = np.maximum(x.max(axis=1).astype(int) - 1, 0)
        return values[rows, places]

    x = np.repeat(np.arange(1.0, n_samples + 1)[:, None], M, axis=1)
    return model, x, seen


@pytest.fixture(params=[1, 2], ids=["one output", "two outputs"])
def played(request):
    values = random_game(M, n_rows=3, n_outputs=request.param, seed=9).values
    values[:, 0] = 0.25
    return TableGame(values)


def through_shap(row, values, seed, **arguments):
    model, x, seen = lookup(values, len(values))
    explainer = row.explainer(
        lambda x: model(x)[:, 0] if values.shape[2] == 1 else model(x),
        np.zeros((1, M)),
        seed=seed,
        **row.options,
    )
    seen.clear()
    explanation = explainer(x, silent=True, **arguments)
    return explanation, explainer.last_estimate, sum(seen)


def through_captum(row, values, seed, **arguments):
    model, x, seen = lookup(values, len(values))
    method = row.attribution(lambda x: torch.as_tensor(model(x.numpy())), seed=seed, **row.options)
    result = method.attribute(torch.as_tensor(x), **arguments)
    return result, method.last_estimate, sum(seen)


def detached(row):
    """Return the row with cooperators that both hosts can find: by values, never by derivatives."""
    return with_cooperators(row, "difference") if row.cooperators == "auto" else row


(ODD_GP,) = (row for row in ESTIMATORS if row.id == "odd GP, learned weights")
ON_LINE = replace(ODD_GP, id="odd GP on a line", options={"graph": "line"})


@over([*map(detached, ESTIMATORS), with_cooperators(IS_SHEAR[0], some_scores()), ON_LINE])
def test_both_hosts_give_the_numbers_of_the_core(row, played):
    budget = budget_of(row)
    expected = row.estimate(played, budget=budget, seed=11)

    explanation, of_shap, n_shap = through_shap(row, played.values, 11, max_evals=budget)
    found = explanation.values.reshape(3, M, -1)
    np.testing.assert_allclose(found, expected.values, atol=1e-10)
    np.testing.assert_allclose(explanation.base_values.reshape(3, -1), 0.25, atol=1e-15)

    attributions, of_captum, n_captum = through_captum(row, played.values, 11, n_samples=budget)
    found = attributions.numpy().reshape(3, -1, M).transpose(0, 2, 1)
    np.testing.assert_allclose(found, expected.values, atol=1e-10)

    for host, n_model_rows in ((of_shap, n_shap), (of_captum, n_captum)):
        np.testing.assert_array_equal(host.evaluations, expected.evaluations)
        np.testing.assert_array_equal(host.cooperators, expected.cooperators)
        n_beside = host.check_evaluations + host.timing_evaluations
        assert n_model_rows == expected.evaluations.sum() + n_beside
        assert n_model_rows - host.timing_evaluations <= 1.05 * 3 * budget
        assert host.seed == 11


@over([*map(detached, OF_CLASSES)])
def test_both_hosts_give_the_standard_errors_of_the_core(row, played):
    budget = budget_of(row)
    expected = row.estimate(played, budget=budget, seed=2, with_errors=True).standard_errors
    assert row.is_exact or expected.min() > 0

    explanation, _, _ = through_shap(row, played.values, 2, max_evals=budget, error_bounds=True)
    np.testing.assert_allclose(explanation.error_std.reshape(3, M, -1), expected, atol=1e-10)
    half_width = (explanation.upper_bounds - explanation.lower_bounds) / 2
    made = row.estimate(played, budget=budget, seed=2, with_errors=True)
    width = scipy.stats.t.ppf(0.975, made.degrees_of_freedom).reshape(half_width.shape)
    np.testing.assert_allclose(half_width, width * explanation.error_std, rtol=1e-9)

    (_, errors), _, _ = through_captum(
        row, played.values, 2, n_samples=budget, return_standard_error=True
    )
    found = errors.numpy().reshape(3, -1, M).transpose(0, 2, 1)
    np.testing.assert_allclose(found, expected, atol=1e-10)


@over([row for row in ESTIMATORS if row.options.get("complement") == "none"])
def test_both_hosts_refuse_standard_errors_where_nothing_is_random(row, played):
    with pytest.raises(InvalidArgumentError, match="complement='none'"):
        through_shap(row, played.values, 0, max_evals=PARTIAL, error_bounds=True)
    with pytest.raises(InvalidArgumentError, match="complement='none'"):
        through_captum(row, played.values, 0, n_samples=PARTIAL, return_standard_error=True)


@over([row for row in SEVERAL if not row.is_exact])
def test_both_hosts_refuse_too_small_a_budget_in_their_own_words(row, played):
    budget = row.build().minimum_budget(M) - 1
    told = f"={budget} is too small: .* needs at least"
    with pytest.raises(ValueError, match=f"max_evals{told}"):
        through_shap(row, played.values, 0, max_evals=budget)
    with pytest.raises(ValueError, match=f"n_samples{told}"):
        through_captum(row, played.values, 0, n_samples=budget)
