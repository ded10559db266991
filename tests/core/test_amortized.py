"""Networks that explain: targets against enumeration, training, and files."""

from contextlib import nullcontext
from functools import partial
from typing import Any

import numpy as np
import pytest

from shapley_adapters import LeastSquares
from tests.core.test_training_runs import assert_same, weights
from tests.helpers.brute_force import game_shapley_values
from tests.helpers.reference_games import RowsGame, TableGame
from tests.helpers.signed_files import signed

torch: Any = pytest.importorskip("torch")
pytest.importorskip("safetensors")
safetensors = pytest.importorskip("safetensors.torch")


from shapley_adapters.amortized.amortized import AmortizedShapley  # noqa: E402
from shapley_adapters.amortized.explainer_network import ExplainerNetwork  # noqa: E402
from shapley_adapters.amortized.fitting import built, rate_of, split_rows  # noqa: E402
from shapley_adapters.amortized.ledger import TrainingRows  # noqa: E402
from shapley_adapters.amortized.networks import MLP, UNet, build  # noqa: E402
from shapley_adapters.amortized.training import (  # noqa: E402  # noqa: E402
    Training,
    draw_coalitions,
    label_loss,
    sim_semivalues,
    stochastic_loss,
)
from shapley_adapters.amortized.unlike_rows import mixed_rows  # noqa: E402
from shapley_adapters.errors import InvalidArgumentError, ShapleyExtWarning  # noqa: E402

N_PLAYERS = 4
GAMMA = 2 / 3 + 1 / 4
EVERY = (np.arange(1, 15)[:, None] >> np.arange(4)) & 1
# By the Shapley kernel, 1 / (C(4, s) s (4 − s)): coalitions of one or three twice as often.
IN_PROPORTION = np.concatenate([EVERY, EVERY[EVERY.sum(axis=1) != 2]])


@pytest.fixture
def game():
    return TableGame(np.random.default_rng(0).normal(size=(3, 16, 2)))


def whole_batch(game):
    """Return what the loss takes when every coalition is drawn as often as it should be."""
    values = game.values[:, IN_PROPORTION @ (1 << np.arange(4))] - game.values[:, :1]
    tensors = [
        np.tile(IN_PROPORTION, (3, 1, 1)).astype(float),
        values,
        game.values[:, 15] - game.values[:, 0],
        np.ones((3, 4)),
        np.full(3, GAMMA),
    ]
    return [torch.as_tensor(tensor) for tensor in tensors]


def test_sim_semivalues_have_the_shapley_values_as_expectation(game):
    coalitions, values, rise, active, totals = whole_batch(game)
    found = sim_semivalues(coalitions, values, active, totals) + rise[:, None] / N_PLAYERS
    np.testing.assert_allclose(found.numpy(), game_shapley_values(game), atol=1e-10)


@pytest.mark.parametrize("paired", [True, False])
def test_coalitions_are_drawn_by_the_kernel_of_the_active_players(paired):
    """Five players have the mass .3, .2, .2, .3; standard errors are below .003."""
    active = np.array([[True] * 5, [True, False, True, False, True]])
    drawn = draw_coalitions(active, 30_001, paired, np.random.default_rng(0))
    sizes = np.bincount(drawn[0].sum(axis=1), minlength=6) / 30_001
    np.testing.assert_allclose(sizes, [0, 0.3, 0.2, 0.2, 0.3, 0], atol=0.01)
    np.testing.assert_allclose(drawn.mean(axis=1), active / 2, atol=0.01)
    assert set(drawn[1].sum(axis=1)) == {1, 2}


@pytest.mark.parametrize("target", ["simsemivalue", "controlled"])
def test_whatever_the_network_says_its_loss_pulls_to_the_shapley_values(game, target):
    """The gradient of ‖g − φ‖², exactly: a control variate changes no expectation."""
    told = torch.randn(3, 4, 2, generator=torch.Generator().manual_seed(0), dtype=torch.float64)
    told.requires_grad_()
    stochastic_loss(target, told, *whole_batch(game)).backward()
    wanted = 2 * (told.detach().numpy() - game_shapley_values(game)) / 3
    np.testing.assert_allclose(told.grad.numpy(), wanted, atol=1e-10)


def test_the_loss_of_fastshap_is_least_at_the_shapley_values(game):
    exact = torch.as_tensor(game_shapley_values(game)).requires_grad_()
    batch = whole_batch(game)
    least = stochastic_loss("fastshap", exact, *batch)
    least.backward()
    np.testing.assert_allclose(exact.grad.numpy(), 0, atol=1e-10)
    tilted = exact.detach() + torch.eye(4, 2) - torch.eye(4, 2)[[1, 0, 2, 3]]
    shifted = exact.detach() + 1.0
    for other in (tilted, shifted):  # the sum is learned, too
        assert stochastic_loss("fastshap", other, *batch) > least


def test_the_loss_of_labels_is_least_at_the_labels_and_forgives_gaps(game):
    exact = torch.as_tensor(game_shapley_values(game))
    _, _, rise, active, _ = whole_batch(game)
    told = exact.clone().requires_grad_()
    label_loss(told, exact, rise, active).backward()
    np.testing.assert_allclose(told.grad.numpy(), 0, atol=1e-12)
    shifted, tilted = exact + 1.0, exact.clone()
    tilted[:, 0] += 2.0
    tilted[:, 1] -= 2.0  # the sum stays
    gap, tilt = (float(label_loss(one, exact, rise, active)) for one in (shifted, tilted))
    assert 0 < gap < 0.05 * 8  # 4 players and 2 outputs, each off by 1
    assert tilt == pytest.approx(2 * 2 * 4)


def test_control_variates_take_variance(game):
    """At the Shapley values themselves, single pairs of coalitions scatter far less."""
    additive = np.random.default_rng(1).normal(size=(3, 4, 2))
    members = (np.arange(16)[:, None] >> np.arange(4)) & 1
    game = TableGame(0.2 * game.values + members @ additive)
    coalitions, values, rise, active, totals = whole_batch(game)
    exact = torch.as_tensor(game_shapley_values(game))

    def spread(target):
        losses = []
        for place in range(7):
            pair = [place, 13 - place]
            part = coalitions[:, pair], values[:, pair], rise, active, totals
            losses.append(float(stochastic_loss(target, exact, *part)))
        return np.mean(losses)

    assert spread("controlled") < 0.5 * spread("simsemivalue")


# --- training ---


def counting_game(n_rows=80, n_players=6):
    """Return rows of a smooth function of their own numbers, some of them at the reference."""
    rng = np.random.default_rng(0)
    x = rng.normal(size=(n_rows, n_players)).astype(np.float32)
    x[::4, 1] = 0.0
    x[0] = 0.0
    into, out = rng.normal(size=(n_players, 4)), rng.normal(size=(4, 2))
    return RowsGame(lambda masked: np.tanh(masked @ into) @ out + 1.0, x)


def fitted(game=None, **options):
    game = game or counting_game()
    options = {"epochs": 4, "seed": 0} | options
    return AmortizedShapley.fit(game, game.x, Training(**options))


ALL_TARGETS = ["oddgp", "leastsquares", "controlled", "simsemivalue", "fastshap"]


@pytest.mark.parametrize("target", ALL_TARGETS)
def test_training_is_repeatable_and_leaves_global_generators_alone(target):
    before = torch.random.get_rng_state(), np.random.get_state(legacy=False)["state"]["key"].copy()  # noqa: NPY002
    first, again = (fitted(labels=target, evaluations=16) for _ in range(2))
    other = fitted(labels=target, evaluations=16, seed=1)
    assert torch.equal(before[0], torch.random.get_rng_state())
    assert (before[1] == np.random.get_state(legacy=False)["state"]["key"]).all()  # noqa: NPY002
    assert_same(first, again)
    assert first.history == again.history
    assert any((v != weights(other)[k]).any() for k, v in weights(first).items())


@pytest.mark.parametrize("target", ["oddgp", "leastsquares"])
def test_labels_are_those_of_the_estimator_that_is_named(target, monkeypatch):
    class UsedError(Exception):
        pass

    def refuse(*_):
        raise UsedError

    monkeypatch.setattr(LeastSquares, "design", refuse)
    with pytest.raises(UsedError) if target == "leastsquares" else nullcontext():
        fitted(labels=target, evaluations=16, epochs=1)


@pytest.mark.parametrize("target", ALL_TARGETS)
def test_evaluations_are_counted(target):
    game = counting_game()
    trained = fitted(game, labels=target, evaluations=16)
    assert game.n_evaluated == trained.evaluations
    assert 0 < trained.validation_evaluations < trained.evaluations
    spent = [record.evaluations for record in trained.history]
    per_epoch = 72 * 16 if target in ALL_TARGETS[2:] else 0
    np.testing.assert_array_equal(np.diff(spent), per_epoch)
    assert spent[-1] == trained.evaluations


@pytest.mark.parametrize("target", ["oddgp", "controlled", "fastshap"])
@pytest.mark.slow
def test_networks_learn(target):
    game, new = counting_game(600), counting_game(600)  # the same function
    new.x, new.n_rows = np.random.default_rng(9).normal(size=(100, 6)).astype(np.float32), 100
    exact = game_shapley_values(new)
    amortized = fitted(game, labels=target, epochs=25, evaluations=32)
    error = np.abs(amortized.explain(new, new.x, True).estimate.values - exact).sum(axis=1).mean()
    mean = np.abs(exact - exact.mean(axis=0)).sum(axis=1).mean()
    assert error < 0.35 * mean
    last = min(record.absolute_error for record in amortized.history)
    assert last == pytest.approx(error, rel=0.5)
    raw = amortized.explain(new, new.x, False).estimate.values
    raw_error = np.abs(raw - exact).sum(axis=1).mean()
    assert raw_error < 0.45 * mean


def test_null_players_and_rows_at_the_reference_get_nothing():
    game = counting_game()
    found = fitted(game).explain(game, game.x, efficient=True).estimate
    assert (found.values[~game.active_players()] == 0).all()
    total = found.values.sum(axis=1) - (found.grand_values - found.empty_values)
    np.testing.assert_allclose(total, 0, atol=1e-10)
    assert (found.standard_errors[~game.active_players()] == 0).all()
    assert (found.standard_errors[game.active_players()] > 0).all()
    # v(∅) is the same for all, and known: it is looked at once.
    np.testing.assert_array_equal(found.evaluations, [2] + [1] * 79)


def test_the_efficiency_gap_is_told():
    game = counting_game()
    amortized = fitted(game)
    made, bare = (amortized.explain(game, game.x, flag) for flag in (True, False))
    wanted = made.estimate.grand_values - made.estimate.empty_values
    np.testing.assert_allclose(
        made.efficiency_gaps, wanted - bare.estimate.values.sum(axis=1), atol=1e-12
    )
    assert np.isnan(bare.efficiency_gaps).all()
    assert bare.estimate.evaluations.sum() == 1


@pytest.mark.parametrize("target", ["oddgp", "fastshap"])
def test_without_the_model_s_output_errors_hold_and_far_rows_are_named(target):
    """For FastSHAP, too: where it does not learn sums, intervals of such rows hold a third."""
    game, new = counting_game(300), counting_game(300)
    amortized = fitted(game, labels=target, epochs=15)
    new.x = 3 * new.x
    exact = game_shapley_values(new)
    with pytest.warns(ShapleyExtWarning, match="distance to the nearest"):
        found = amortized.explain(new, new.x, False)
    assert len(found.unlike_rows) > 50
    held = np.abs(found.estimate.values - exact) <= 2.5 * found.estimate.standard_errors
    assert held[new.active_players()].mean() > 0.85
    sizes = np.sqrt((amortized.network.scale.double().numpy() ** 2).mean())
    assert np.mean(amortized.gaps.sizes) < 0.6 * sizes
    assert len(amortized.explain(game, game.x, False).unlike_rows) == 0


@pytest.mark.parametrize("target", ["oddgp", "controlled"])
def test_finished_training_is_not_paid_again(target, tmp_path):
    first = fitted(labels=target, folder=tmp_path)
    game = counting_game()
    again = fitted(game, labels=target, folder=tmp_path)
    assert game.n_evaluated <= first.evaluations / 20
    assert_same(first, again)
    assert first.history == again.history


def test_values_of_other_models_are_refused(tmp_path):
    first = fitted(folder=tmp_path)
    game = counting_game()
    game.function = lambda masked: -masked[:, :2]
    with pytest.raises(InvalidArgumentError, match="folder=.*another model.*another folder"):
        fitted(game, folder=tmp_path)
    again = fitted(folder=tmp_path)  # and nothing has been spoilt
    assert_same(first, again)


def other_rows(**options):
    game = counting_game()
    game.x = game.x.copy()
    game.x[-1, 2] += 1e-3
    return fitted(game, **options)


def of_network(network, network_options=None, **options):
    game = counting_game()
    options |= {"student": network, "student_options": network_options}
    return AmortizedShapley.fit(game, game.x, Training(epochs=4, seed=0, **options))


@pytest.mark.parametrize(
    "other",
    [
        partial(fitted, seed=1),
        partial(fitted, labels="leastsquares"),
        other_rows,
        partial(of_network, "mlp", {"widths": (8,)}),
        lambda **options: of_network(built(0, Own), **options),
    ],
)
def test_other_trainings_in_the_same_folder_begin_anew(other, tmp_path):
    first = fitted(folder=tmp_path)
    found, wanted = other(folder=tmp_path), other()
    assert_same(wanted, found)
    assert len(found.history) == len(wanted.history)
    before = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    again = fitted(folder=tmp_path)
    assert_same(first, again)
    assert {path: path.stat().st_mtime_ns for path in before} == before


def test_batches_of_rows_to_explain_do_not_matter():
    game = counting_game()
    amortized = fitted(game)
    whole = amortized.explain(game, game.x, False).estimate.values
    parts = amortized.explain(game, game.x, False, batch_size=7).estimate.values
    np.testing.assert_allclose(parts, whole, atol=1e-6)
    streamed = np.concatenate(list(amortized.stream(game.x, game.active_players(), 7)))
    np.testing.assert_array_equal(streamed, parts)


@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_inputs_that_are_no_numbers_are_refused(bad):
    game = counting_game()
    amortized = fitted(game, epochs=1)
    inputs = game.x.copy()
    inputs[70, 3] = bad
    with pytest.raises(InvalidArgumentError, match="row 70.*features="):
        AmortizedShapley.fit(game, inputs, Training(epochs=1, seed=0))
    with pytest.raises(InvalidArgumentError, match="row 70.*features="):
        amortized.explain(game, torch.as_tensor(inputs), True)
    with pytest.raises(InvalidArgumentError, match="row 70.*features="):
        list(amortized.stream(inputs, game.active_players(), batch_size=7))


def test_mixed_rows_are_two_real_ones_player_by_player():
    rows = np.arange(40.0).reshape(10, 4)
    players = np.array([0, 1, 1, 2])
    made = mixed_rows(rows, players, 200, seed=0)
    origin = (made // 4).astype(int)
    assert (made == rows[origin, np.arange(4)]).all()
    assert (origin[:, 1] == origin[:, 2]).all()
    assert 1 < max(len(set(row)) for row in origin.tolist()) <= 2
    np.testing.assert_array_equal(made, mixed_rows(rows, players, 200, seed=0))


@pytest.mark.parametrize(
    ("options", "n_steps", "expected"),
    [({}, 4000, 3e-3), ({}, 16_000, 1.5e-3), ({"learning_rate": 0.1}, 16_000, 0.1)],
)
def test_the_more_steps_the_lower_the_rate(options, n_steps, expected):
    assert rate_of(Training(**options), n_steps) == pytest.approx(expected)


def test_gradients_are_clipped_unless_told_otherwise():
    clipped, default, free = (
        weights(fitted(epochs=2, learning_rate_schedule="constant", **options))
        for options in ({"max_gradient_norm": 1.0}, {}, {"max_gradient_norm": None})
    )
    differ = [(value != free[name]).any() for name, value in default.items()]
    assert any(differ)
    for name, value in clipped.items():
        np.testing.assert_array_equal(value, default[name])


def test_patience_ends_training():
    stopped = fitted(epochs=40, patience=1, learning_rate=0.5).history
    errors = [record.absolute_error for record in stopped]
    assert len(errors) < 40
    assert errors[-1] >= errors[-2]
    assert (np.diff(errors[:-1]) < 0).all()


def test_held_out_rows_are_real_ones():
    game = counting_game()
    rows = TrainingRows(game, game.x, n_real=30)
    assert rows.n_real is not None
    held_out, kept = split_rows(Training(validation_share=0.2), rows.n_real, game.n_rows)
    assert len(held_out) == 6
    assert held_out.max() < 30
    np.testing.assert_array_equal(np.sort(np.concatenate([held_out, kept])), np.arange(80))
    assert len(split_rows(Training(validation_share=0.9), 3, 3)[1]) == 1


# --- files ---


def test_files_give_the_same_numbers(tmp_path):
    game = counting_game()
    amortized = fitted(game, labels="controlled", evaluations=8, seed=7)
    amortized.save(tmp_path / "a.safetensors")
    loaded = AmortizedShapley.load(tmp_path / "a.safetensors")
    first, second = (a.explain(game, game.x, True).estimate for a in (amortized, loaded))
    np.testing.assert_array_equal(first.values, second.values)
    assert first.seed == second.seed == 7
    assert loaded.history == amortized.history
    assert loaded.evaluations == amortized.evaluations
    assert loaded.description == amortized.description


def test_files_that_are_none_of_ours_are_refused(tmp_path):
    (tmp_path / "text").write_text("nothing")
    safetensors.save_file({"a": torch.zeros(1)}, tmp_path / "foreign")
    (tmp_path / "newer").write_bytes(signed({}, {"format": 99, "kind": "explainer"}, b""))
    for name, words in (("text", "not a file"), ("foreign", "not a file"), ("newer", "format 99")):
        with pytest.raises(InvalidArgumentError, match=words):
            AmortizedShapley.load(tmp_path / name)


class Own(torch.nn.Module):
    def __init__(self, width=8):
        super().__init__()
        self.layers = torch.nn.Sequential(torch.nn.Linear(6, width), torch.nn.Linear(width, 12))

    def forward(self, x):
        return self.layers(x).unflatten(1, (6, 2))


def test_modules_of_one_s_own_are_trained_saved_and_asked_for(tmp_path):
    game = counting_game()
    own = built(0, Own)
    amortized = AmortizedShapley.fit(game, game.x, Training(epochs=3, seed=0, student=own))
    amortized.save(tmp_path / "a")
    with pytest.raises(InvalidArgumentError, match="Own.*network="):
        AmortizedShapley.load(tmp_path / "a")
    with pytest.raises(InvalidArgumentError, match="do not fit"):
        AmortizedShapley.load(tmp_path / "a", Own(width=3))
    loaded = AmortizedShapley.load(tmp_path / "a", Own())
    np.testing.assert_array_equal(
        loaded.explain(game, game.x, True).estimate.values,
        amortized.explain(game, game.x, True).estimate.values,
    )
    with pytest.raises(InvalidArgumentError, match="must return"):
        of_network(torch.nn.Linear(6, 2))


def test_modules_of_one_s_own_are_copied(tmp_path):
    game, own = counting_game(), built(0, Own)
    before = {name: value.clone() for name, value in own.state_dict().items()}
    training = Training(epochs=3, seed=0, student=own)
    first, again = (AmortizedShapley.fit(game, game.x, training) for _ in range(2))
    for name, value in own.state_dict().items():
        assert torch.equal(value, before[name])
    assert_same(first, again)
    first.save(tmp_path / "a")
    AmortizedShapley.load(tmp_path / "a", own)
    assert torch.equal(own.layers[0].weight, before["layers.0.weight"])


# --- networks ---


@pytest.mark.parametrize(
    ("network", "x", "n_players"),
    [
        (MLP((3, 4), 5, 2), torch.zeros(7, 3, 4), 5),
        (UNet((3, 32, 32), 256, 2), torch.zeros(7, 3, 32, 32), 256),
        (UNet((28, 28), 28, 2, grid=(4, 7)), torch.zeros(7, 28, 28), 28),
        (UNet((1, 7, 9), 63, 2, grid=(7, 9), depth=1), torch.zeros(7, 1, 7, 9), 63),
    ],
    ids=["mlp", "unet", "unet on a grid", "small unet"],
)
def test_networks_return_attributions_of_all_players(network, x, n_players):
    assert network(x).shape == (7, n_players, 2)


def test_cells_of_the_grid_stand_where_they_are_in_the_image():
    """An image that is bright in one corner gets other attributions in that corner."""
    network = built(0, lambda: UNet((1, 16, 16), 16, 1))
    dark, bright = torch.zeros(2, 1, 1, 16, 16)
    bright[..., :4, 12:] = 5.0
    change = (network(bright) - network(dark)).abs()[0, :, 0].reshape(4, 4)
    assert change[:2, 2:].mean() > 1.5 * change[2:, :2].mean()


@pytest.mark.parametrize(
    ("name", "shape", "options", "words"),
    [
        ("mpl", (4,), {}, "network.*mlp.*unet"),
        ("unet", (4,), {}, "images"),
        ("unet", (8, 8), {"grid": (3, 3)}, "grid.*4 players"),
    ],
)
def test_networks_that_do_not_fit_are_named(name, shape, options, words):
    with pytest.raises(InvalidArgumentError, match=words):
        build(name, shape, 4, 1, options)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"labels": "shap"}, "labels"),
        ({"epochs": 0}, "epochs"),
        ({"evaluations": 1}, "evaluations"),
        ({"validation_share": 1.0}, "validation_share"),
        ({"learning_rate": 0.0}, "learning_rate"),
        ({"patience": 0}, "patience must be at least 1"),
        ({"validation_evaluations": -3}, "validation_evaluations"),
    ],
)
def test_training_that_cannot_be_is_named(options, words):
    with pytest.raises(InvalidArgumentError, match=words):
        Training(**options)


def test_inputs_are_standardised_but_not_rare_marks():
    rng = np.random.default_rng(0)
    inputs = np.stack([rng.normal(5, 100, 500), np.eye(500)[3]], axis=1).astype(np.float32)
    network = ExplainerNetwork.around(
        torch.nn.Identity(), inputs, np.ones((500, 1)), np.ones((5, 1))
    )
    assert network.spread[0] == pytest.approx(100, rel=0.1)
    assert network.spread[1] == 1.0
    assert network.empty[0] == 1.0


def test_rows_and_inputs_must_agree():
    game = counting_game()
    with pytest.raises(InvalidArgumentError, match="80"):
        TrainingRows(game, game.x[:5])
    amortized = fitted(game)
    with pytest.raises(InvalidArgumentError, match=r"\(6,\).*\(3,\)"):
        amortized.explain(game, game.x[:, :3], True)
