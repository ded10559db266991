"""Surrogates against conditional expectations by enumeration, and their files."""

import functools
import json
from itertools import chain, combinations
from typing import Any

import numpy as np
import pytest

from tests.helpers.brute_force import conditional_values

torch: Any = pytest.importorskip("torch")
pytest.importorskip("safetensors")
safetensors = pytest.importorskip("safetensors.torch")

from shapley_adapters.amortized.amortized import AmortizedShapley  # noqa: E402
from shapley_adapters.amortized.fitting import built, split_rows  # noqa: E402
from shapley_adapters.errors import InvalidArgumentError  # noqa: E402
from shapley_adapters.surrogates.surrogate_training import TrainedSurrogate  # noqa: E402
from shapley_adapters.training_options import SurrogateOptions  # noqa: E402

# The second column is a copy of the first; the third is more likely where the first is large.
KINDS = np.array([[a, a, b, c] for a in range(3) for b in (0, 1, *[1] * a) for c in range(2)])
ROWS = np.tile(KINDS, (24, 1)).astype(np.float32)
PLAYERS = np.arange(4)
EVERY = list(chain.from_iterable(combinations(range(4), size) for size in range(5)))


def model(x):
    """The copy is not used: only what is known of it tells."""
    return (x[:, 0] * (1 + x[:, 2]) + x[:, 2] * x[:, 3])[:, None]


def classifier(x):
    odds = np.exp(model(x)[:, 0] - 2)
    return np.stack([1 / (1 + odds), odds / (1 + odds)], axis=1)


def fitted(predict=model, rows=ROWS, players=PLAYERS, network="mlp", options=None, **training):
    training = {"epochs": 2, "seed": 0, "rows_per_step": 32, "coalitions": 4} | training
    options = SurrogateOptions(network=network, network_options=options, **training)
    return TrainedSurrogate.fit(rows, predict(rows), players, options)


def told_and_exact(surrogate, predict, kinds=KINDS, coalitions=EVERY):
    """Return what the surrogate and enumeration say of all kinds of rows and coalitions."""
    marks = np.array([[i in members for i in range(4)] for members in coalitions])
    told = [surrogate.outputs(kinds.astype(np.float32), np.tile(m, (len(kinds), 1))) for m in marks]
    exact = [
        [conditional_values(predict, row, kinds)(members) for row in kinds]
        for members in coalitions
    ]
    return np.array(told), np.array(exact)


@functools.cache
def fitted_well(predict):
    return fitted(predict, epochs=40, coalitions=8)


@pytest.mark.parametrize("predict", [model, classifier])
def test_it_learns_the_conditional_expectation(predict):
    told, exact = told_and_exact(fitted_well(predict), predict)
    size = exact.std()
    assert np.sqrt(((told - exact) ** 2).mean()) < 0.1 * size
    # Absent numbers at their mean, as with one background row, are something else.
    mean = ROWS.mean(axis=0)
    masked = [predict(np.where([i in members for i in range(4)], KINDS, mean)) for members in EVERY]
    assert np.sqrt(((np.array(masked) - exact) ** 2).mean()) > 0.3 * size


def test_probabilities_stay_probabilities():
    surrogate = fitted(classifier)
    told, _ = told_and_exact(surrogate, classifier)
    assert surrogate.validation.loss == "kl"
    assert (told > 0).all()
    np.testing.assert_allclose(told.sum(axis=2), 1, atol=1e-12)
    assert fitted(classifier, loss="squared").validation.loss == "squared"


@pytest.mark.parametrize("predict", [model, classifier])
def test_validation_tells_the_errors(predict):
    """Against the definitions, on the held-out rows, whose coalitions are of all sizes alike."""
    surrogate = fitted_well(predict)
    training = SurrogateOptions(seed=0)
    held_out, kept = split_rows(training, len(ROWS), len(ROWS))
    rows, outputs = ROWS[held_out], predict(ROWS)
    wanted, mean, scale = outputs[held_out], outputs[kept].mean(0), outputs[kept].std(0)

    def distance(told):
        if predict is classifier:
            return (wanted * np.log(wanted / told)).sum(axis=1).mean()
        return (((wanted - told) / scale) ** 2).sum(axis=1).mean()

    found = surrogate.validation
    assert found.n_rows == len(held_out)
    assert found.constant_error == pytest.approx(distance(mean))
    whole = distance(surrogate.outputs(rows, np.ones(rows.shape, dtype=bool)))
    assert found.full_error == pytest.approx(whole, rel=1e-4)
    sizes = {size: [m for m in EVERY if len(m) == size] for size in range(5)}
    marks = {s: [np.isin(PLAYERS, m) for m in sets] for s, sets in sizes.items()}
    by_size = [
        np.mean([distance(surrogate.outputs(rows, np.tile(m, (len(rows), 1)))) for m in sets])
        for sets in marks.values()
    ]
    # 16 random coalitions of each of some 50 rows: the mean scatters by a few percent.
    assert found.error == pytest.approx(np.mean(by_size), rel=0.15)
    assert found.full_error < found.error < found.constant_error


def test_places_of_a_player_come_and_go_together():
    pairs = np.concatenate([ROWS, ROWS[:, ::-1]], axis=1).reshape(-1, 2, 4)
    players = np.array([0, 1, 2, 3, 3, 2, 1, 0])
    seen = []

    class Watching(torch.nn.Module):
        def __init__(self):
            super().__init__()
            self.layers = torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(16, 1))

        def forward(self, x):
            seen.append(x[:, 1].flatten(1).numpy().copy())
            assert (x[:, 0][x[:, 1] == 0] == 0).all()
            return self.layers(x)

    training = SurrogateOptions(epochs=1, seed=0, network=Watching())
    TrainedSurrogate.fit(pairs, model(ROWS), players, training)
    marks = np.concatenate(seen[1:])  # the first are those that try the network
    np.testing.assert_array_equal(marks[:, :4], marks[:, :3:-1])
    assert len(np.unique(marks, axis=0)) == 16


def test_modules_of_one_s_own_are_copied(tmp_path):
    own = built(0, lambda: torch.nn.Sequential(torch.nn.Flatten(), torch.nn.Linear(8, 1)))
    before = own[1].weight.detach().clone()
    first, again = (fitted(network=own, epochs=1) for _ in range(2))
    first.save(tmp_path / "a")
    loaded, present = TrainedSurrogate.load(tmp_path / "a", own), np.ones(ROWS.shape, dtype=bool)
    np.testing.assert_array_equal(loaded.outputs(ROWS, present), first.outputs(ROWS, present))
    assert torch.equal(own[1].weight, before)
    assert first.validation == again.validation


@pytest.mark.parametrize(
    ("rows", "network", "options"),
    [
        (ROWS.reshape(-1, 4), "mlp", {"widths": [8]}),
        (ROWS.reshape(-1, 1, 2, 2), "unet", {"depth": 1, "width": 4}),
        (ROWS.reshape(-1, 2, 2), "unet", {"depth": 1, "width": 4}),
    ],
    ids=["mlp", "unet", "unet, no channels"],
)
def test_files_of_all_networks_give_the_same_numbers(rows, network, options, tmp_path):
    outputs = model(ROWS)
    training = SurrogateOptions(epochs=2, seed=0, network=network, network_options=options)
    surrogate = TrainedSurrogate.fit(rows, outputs, PLAYERS, training)
    surrogate.save(tmp_path / "a")
    loaded = TrainedSurrogate.load(tmp_path / "a")
    present = np.random.default_rng(0).random(rows.shape) < 0.5
    np.testing.assert_array_equal(loaded.outputs(rows, present), surrogate.outputs(rows, present))
    assert loaded.validation == surrogate.validation
    assert loaded.evaluations == surrogate.evaluations == len(rows)
    assert np.ptp(surrogate.outputs(rows, present)) > 0


def test_files_hold_no_code_and_are_told_apart(tmp_path):
    path = tmp_path / "a"
    fitted(epochs=1).save(path)
    assert b"pickle" not in path.read_bytes()
    with safetensors.safe_open(path, "pt") as file:
        assert json.loads(file.metadata()["shapley_ext"])["kind"] == "surrogate"
    with pytest.raises(InvalidArgumentError, match="is of kind 'surrogate'"):
        AmortizedShapley.load(path)
    (tmp_path / "text").write_text("nothing")
    with pytest.raises(InvalidArgumentError, match="not a file of kind 'surrogate'"):
        TrainedSurrogate.load(tmp_path / "text")


def test_an_interrupt_while_a_file_is_read_is_no_damage(tmp_path, monkeypatch):
    def interrupted(_):
        raise KeyboardInterrupt

    fitted(epochs=1).save(tmp_path / "a")
    monkeypatch.setattr(safetensors, "load", interrupted)
    with pytest.raises(KeyboardInterrupt):
        TrainedSurrogate.load(tmp_path / "a")


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"loss": "absolute"}, "loss"),
        ({"loss": "kl"}, "loss='kl' needs probabilities"),
        ({"coalitions": 0}, "coalitions"),
        ({"network": "forest"}, "network of a Surrogate. must be"),
        ({"network": torch.nn.Flatten()}, "network must return"),
        ({"validation_share": 1.5}, "validation_share"),
        ({"rows": ROWS[:1]}, "at least 2 rows"),
    ],
)
def test_wrong_calls(options, words):
    with pytest.raises(InvalidArgumentError, match=words):
        fitted(**options)
