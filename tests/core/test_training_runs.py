"""Training that is interrupted, in torch's other modes, or with large seeds."""

from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from shapley_adapters.amortized.amortized import AmortizedShapley  # noqa: E402
from shapley_adapters.amortized.fitting import split_rows  # noqa: E402
from shapley_adapters.amortized.training import Training  # noqa: E402
from shapley_adapters.amortized.unlike_rows import n_shifted_rows  # noqa: E402
from shapley_adapters.errors import InvalidArgumentError  # noqa: E402
from shapley_adapters.surrogates.surrogate_training import TrainedSurrogate  # noqa: E402
from shapley_adapters.training_options import SurrogateOptions  # noqa: E402
from tests.helpers.brute_force import game_shapley_values  # noqa: E402
from tests.helpers.reference_games import RowsGame  # noqa: E402

N_PLAYERS = 5
ROWS = np.random.default_rng(0).normal(size=(60, N_PLAYERS)).astype(np.float32)
INTO = np.random.default_rng(1).normal(size=(N_PLAYERS, 3))


def curved(rows=ROWS):
    """Return a smooth function of each row."""
    return RowsGame(lambda x: np.tanh(x @ INTO).sum(axis=1, keepdims=True), rows)


def explainer(network="mlp", **options):
    options = {"epochs": 6, "seed": 0, "evaluations": 8, "rows_per_step": 16} | options
    return AmortizedShapley.fit(curved(), ROWS, Training(student=network, **options))


def surrogate(network="mlp", **options):
    options = {"epochs": 6, "seed": 0, "coalitions": 4, "rows_per_step": 16} | options
    outputs = curved()(np.arange(len(ROWS)), np.ones(ROWS.shape, dtype=bool))
    training = SurrogateOptions(network=network, **options)
    return TrainedSurrogate.fit(ROWS, outputs, np.arange(N_PLAYERS), training)


def controlled(network="mlp", **options):
    return explainer(network, labels="controlled", **options)


each_training = pytest.mark.parametrize("fit", [explainer, controlled, surrogate])


def weights(trained):
    network = getattr(trained, "network", None) or trained.network
    return {name: tensor.numpy() for name, tensor in network.state_dict().items()}


def assert_same(first, second):
    for name, value in weights(first).items():
        np.testing.assert_array_equal(value, weights(second)[name], err_msg=name)


@pytest.mark.parametrize("fit", [explainer, controlled])
def test_the_best_epoch_is_kept(fit):
    made = fit(validation_evaluations=2**N_PLAYERS, learning_rate=0.3, epochs=12)
    errors = [record.absolute_error for record in made.history]
    assert np.argmin(errors) < len(errors) - 1
    held_out, _ = split_rows(Training(seed=0), len(ROWS), len(ROWS))
    found = made.explain(curved(), ROWS, efficient=True).estimate.values[held_out]
    wanted = game_shapley_values(curved())[held_out]
    assert np.abs(found - wanted).sum(axis=1).mean() == pytest.approx(min(errors), rel=1e-4)


@each_training
@pytest.mark.parametrize("place", [(RowsGame, "__call__"), (torch.optim.AdamW, "step")])
def test_interrupts_are_keyboard_interrupts_and_leave_the_generator_alone(fit, place, monkeypatch):
    def interrupted(*_):
        raise KeyboardInterrupt

    monkeypatch.setattr(*place, interrupted)
    state = torch.get_rng_state()
    with pytest.raises(KeyboardInterrupt):
        fit()
    assert torch.equal(torch.get_rng_state(), state)


@pytest.mark.parametrize(
    ("fit", "mode"), [(explainer, "double"), (controlled, "inference"), (surrogate, "no_grad")]
)
def test_modes_of_torch_change_nothing(fit, mode):
    wanted = fit()
    if mode == "double":
        torch.set_default_dtype(torch.float64)
        try:
            found = fit()
        finally:
            torch.set_default_dtype(torch.float32)
    else:
        with torch.inference_mode() if mode == "inference" else torch.no_grad():
            found = fit()
    assert_same(found, wanted)


@each_training
def test_modules_in_double_precision_are_trained(fit, tmp_path):
    n_inputs, n_outputs = (10, 1) if fit is surrogate else (N_PLAYERS, N_PLAYERS)

    class Own(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layer = torch.nn.Linear(n_inputs, n_outputs)

        def forward(self, x):
            return self.layer(x.flatten(1)).unflatten(1, (-1, 1))

    made = fit(Own().double(), epochs=1)
    made.save(tmp_path / "a")
    assert_same(type(made).load(tmp_path / "a", Own().double()), made)


@each_training
def test_seeds_of_any_size(fit):
    large = fit(seed=2**70, epochs=1)
    assert_same(fit(seed=2**70, epochs=1), large)
    assert any((weights(fit(seed=0, epochs=1))[k] != v).any() for k, v in weights(large).items())


@each_training
def test_training_that_diverges_is_refused(fit):
    with pytest.raises(InvalidArgumentError, match=r"diverged.*learning_rate below"):
        fit(learning_rate=1e30, max_gradient_norm=None)


# --- validation ---


@pytest.mark.parametrize("target", ["oddgp", "fastshap"])
@pytest.mark.parametrize(("n_rows", "n_players"), [(2000, 5), (400, 30), (2000, 13)])
def test_validation_is_a_bounded_share_of_the_evaluations(target, n_rows, n_players):
    game, shifted = (
        RowsGame(
            lambda x: x.sum(axis=1, keepdims=True),
            np.random.default_rng(0).normal(size=(n, n_players)).astype(np.float32),
        )
        for n in (n_rows, n_shifted_rows(n_rows))
    )
    training = Training(epochs=1, seed=0, labels=target)
    made = AmortizedShapley.fit(game, game.x, training, shifted=lambda: (shifted, shifted.x))
    assert made.evaluations == game.n_evaluated + shifted.n_evaluated
    least = 16 * 8 * n_players + 2 * round(0.1 * n_rows) + 2 * shifted.n_rows
    of_training = made.evaluations - made.validation_evaluations
    assert made.validation_evaluations <= max(0.1 * of_training, least)


def test_validation_costs_what_is_asked_for():
    made = explainer(validation_evaluations=32)
    assert made.validation_evaluations == 6 * (32 + 2)


# --- unlike rows ---


@pytest.fixture(scope="module")
def learned():
    game = curved(np.random.default_rng(2).normal(size=(300, N_PLAYERS)).astype(np.float32))
    return AmortizedShapley.fit(game, game.x, Training(epochs=20, seed=0, rows_per_step=32))


def test_rows_like_those_trained_on_are_not_warned_of(learned):
    """Warnings are errors in tests; 100 calls of 50 rows, and of one row each."""
    rng = np.random.default_rng(3)
    for _ in range(100):
        rows = curved(rng.normal(size=(50, N_PLAYERS)).astype(np.float32))
        assert not len(learned.explain(rows, rows.x, efficient=True).unlike_rows)
        one = curved(rows.x[:1])
        assert not len(learned.explain(one, one.x, efficient=True).unlike_rows)


def test_rows_unlike_those_trained_on_are_warned_of(learned):
    rng = np.random.default_rng(3)
    x = rng.normal(size=(50, N_PLAYERS)).astype(np.float32)
    x[[7, 20]] *= 20
    rows = curved(x)
    with pytest.warns(match=r"2 of 50 rows are unlike.*rows 7, 20\. .*oddgp, or train"):
        found = learned.explain(rows, rows.x, efficient=True)
    np.testing.assert_array_equal(found.unlike_rows, [7, 20])
    far = curved(3 * rng.normal(size=(200, N_PLAYERS)).astype(np.float32))
    with pytest.warns(match=r"of 200 rows are unlike.*, …\. "):
        found = learned.explain(far, far.x, efficient=True)
    assert len(found.unlike_rows) > 50
    with pytest.warns(match=r"of 200 rows are unlike.*distance.*, …\. "):
        unvalued = learned.explain(far, far.x, efficient=False)  # v(N) is not known
    assert len(unvalued.unlike_rows) > 50


@pytest.mark.filterwarnings("ignore:.*unlike the rows")
def test_few_rows_like_those_trained_on_are_far_from_them(learned):
    rows = curved(np.random.default_rng(3).normal(size=(5000, N_PLAYERS)).astype(np.float32))
    assert len(learned.explain(rows, rows.x, efficient=False).unlike_rows) < 25


def test_held_out_gaps_are_those_of_the_network(learned):
    training = Training(seed=0)
    game = curved(np.random.default_rng(2).normal(size=(300, N_PLAYERS)).astype(np.float32))
    held_out, _ = split_rows(training, 300, 300)
    gaps = learned.explain(game, game.x, efficient=True).efficiency_gaps[held_out]
    known = learned.gaps
    assert known.sizes[0] == pytest.approx(np.sqrt((gaps**2).mean()), rel=1e-4)
    assert known.largest * known.sizes[0] == pytest.approx(np.abs(gaps).max(), rel=1e-4)
    assert known.n_rows == 30


def test_gaps_go_with_the_file(learned, tmp_path):
    learned.save(tmp_path / "a")
    assert AmortizedShapley.load(tmp_path / "a").gaps == learned.gaps
