"""The true attributions that benchmarks measure errors by are those of enumeration."""

import sys
from importlib import import_module
from pathlib import Path

import numpy as np
import pytest

from tests.helpers.brute_force import shapley_values
from tests.helpers.optional import HAS_TORCH

BENCHMARKS = Path(__file__).parents[1] / "benchmarks"


@pytest.fixture
def script(monkeypatch):
    """Import a script of the benchmarks, which find each other by their names alone."""
    monkeypatch.setattr(sys, "path", [*sys.path, str(BENCHMARKS)])
    return import_module


def enumerated(values, n_players):
    """Return the Shapley values of a function of coalitions, (C, M)."""

    def value(players):
        present = np.zeros((1, n_players), dtype=bool)
        present[0, list(players)] = True
        return values(present)[0]

    return shapley_values(n_players, value)


@pytest.mark.parametrize(
    "kind",
    [
        *("sub_games", "pooling_network", "attention"),  # large ones
        *("radial", "rules", "unanimity", "exponential", "pairs", "maximum", "vote"),
    ],
)
def test_games_have_the_values_of_enumeration(script, kind):
    for seed in range(4):
        large = getattr(script("games"), kind, None)
        game = large(10, seed) if large else script("drawn_games").drawn_game(kind, 10, seed)
        expected = enumerated(game.values, 10)
        scale = np.abs(expected).sum()
        np.testing.assert_allclose(game.exact, expected, rtol=0, atol=1e-12 * scale)


@pytest.mark.parametrize("algorithm", ["oddgp", "leastsquares", "randomorder"])
def test_ours_take_no_more_evaluations_than_their_peers(script, algorithm):
    """Or `explain` would leave them out: a call looks for noise beside its budget."""
    peers, game = script("peers"), script("games").sub_games(50, 0)
    for budget in (12, 50, 100, 200, 400, 1000):
        assert peers.explain(peers.OURS[algorithm], game, budget, 0) is not None


def test_sums_of_sub_games_leave_players_out(script):
    game = script("games").sub_games(200, 0, share=0.1)
    assert (game.exact != 0).sum() == 20


def test_converged_values_are_within_their_standard_errors(script):
    """Of 12 players and 4 games, fewer than 1 in 1,000 runs has a z above 5."""
    for seed in range(4):
        game = script("games").sub_games(12, seed)
        found = script("games").converged(game.values, 12)
        z = (found.exact - game.exact) / found.standard_errors
        assert np.abs(z).max() < 5
        assert 0.5 < np.sqrt(np.mean(z**2)) < 2
        assert found.exact.sum() == pytest.approx(game.exact.sum(), abs=1e-9)


@pytest.mark.skipif(not HAS_TORCH, reason="texts are read with torch")
def test_mean_gains_are_within_their_standard_errors(script):
    game = script("games").attention(8, 0)

    def gains(orders):
        found = np.empty(orders.shape)
        for order, gained in zip(orders, found, strict=True):
            ranks = order.argsort()
            joined = ranks[None] < np.arange(len(order) + 1)[:, None]
            gained[order] = np.diff(game.values(joined))
        return found

    module = script("large_models")
    module_orders, module._N_ORDERS = module._N_ORDERS, 400
    try:
        found, errors = module.mean_gains(gains, 8)
    finally:
        module._N_ORDERS = module_orders
    assert np.abs(found - game.exact).max() < 5 * errors.max()


@pytest.mark.skipif(not HAS_TORCH, reason="it measures captum's explainers, too")
def test_values_of_support_vectors_are_those_of_enumeration(script):
    pytest.importorskip("lightgbm")
    task = script("model_rows").Task("support vectors", 7, 5, 2)
    for row, truth in zip(task.rows, task.truth, strict=True):
        expected = enumerated(lambda present, row=row: task.coalition_values(row, present), 7)
        np.testing.assert_allclose(truth, expected, rtol=0, atol=1e-12)


@pytest.mark.skipif(not HAS_TORCH, reason="it measures captum's explainers, too")
def test_rows_for_the_same_error_are_read_from_the_curve(script):
    """Errors that fall with the root of the rows: half of the error takes four times the rows."""
    pytest.importorskip("lightgbm")
    module = script("model_rows")
    pandas = script("pandas")
    rows = np.array([10.0, 40.0, 160.0])
    errors = pandas.DataFrame(
        {module.OURS: 0.5 / np.sqrt(rows), "other": 1 / np.sqrt(rows)}, index=rows
    )
    assert module.share_of_rows(errors.iloc[1:], "other") == pytest.approx(0.5)
    assert module.share_of_rows(errors, "other") == pytest.approx((1 * 0.25 * 0.25) ** (1 / 3))


@pytest.mark.skipif(not HAS_TORCH, reason="texts are read with torch")
def test_a_text_without_words_has_the_log_odds_of_the_whole_pipeline(script):
    module, data = script("large_models"), script("data_files").data_folder()
    if not (data / "yahoo_answers" / "yahoo_answers.csv.gz").is_file():
        pytest.skip("needs the texts")
    model = module.TextModel(data, "yahoo")
    words = model.explained_text(100, 0)
    present = np.random.default_rng(0).random((20, 100)) < 0.5
    kept = [[w for w, here in zip(words, row, strict=True) if here] for row in present]
    chances = model.network.predict_proba(model.vectorizer.transform([words, *kept]))
    chance = chances[1:, chances[0].argmax()]
    expected = np.log(chance / (1 - chance))
    np.testing.assert_allclose(model.values(words)(present), expected, rtol=1e-9)


@pytest.mark.skipif(not HAS_TORCH, reason="it measures captum's explainers, too")
def test_the_readme_says_what_was_measured(script):
    pytest.importorskip("lightgbm")
    module = script("model_rows")
    measured = module.sentence(module.judge(script("pandas").read_csv(module.KEPT)))
    assert measured in (BENCHMARKS.parent / "README.md").read_text(encoding="utf-8")


@pytest.mark.parametrize("kind", ["network", "pooled text", "label"])
def test_drawn_networks_have_them_within_their_standard_errors(script, kind):
    game = script("drawn_games").drawn_game(kind, 8, 0)
    errors = np.maximum(game.standard_errors, 1e-12)
    assert np.abs((game.exact - enumerated(game.values, 8)) / errors).max() < 5


def test_an_ablation_changes_what_it_says(script, capsys, monkeypatch):
    """Rules are found less well where players are taken for alike; later all is as before."""
    ablation = script("ablation")
    few = ["--players", "10", "--per-player", "8", "--games", "2", "--kinds", "rules"]
    for options in (
        ["--set", "prior._SD_STRENGTH=0.01"],
        ["--other", "shapley_adapters.estimators.odd_gp.estimator:OddGP"],
    ):
        monkeypatch.setattr(sys, "argv", ["ablation.py", *few, *options])
        ablation.main()
    changed, same = (part.split()[0] for part in capsys.readouterr().out.split("all: ")[1:])
    assert float(changed) > 1.1
    assert same == "1.000"
