"""What trainings have paid for: nothing twice, nothing left out, labels for a second student."""

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("safetensors")

from shapley_adapters import Game
from shapley_adapters.amortized.amortized import AmortizedShapley
from shapley_adapters.amortized.training import Training
from shapley_adapters.errors import InvalidArgumentError
from tests.core.test_training_runs import assert_same

N_ROWS, N_PLAYERS, BUDGET = 300, 8, 24
X = np.random.default_rng(0).normal(size=(N_ROWS, N_PLAYERS)).astype(np.float32)
INTO = np.random.default_rng(1).normal(size=(N_PLAYERS, 3))


class KilledError(Exception):
    pass


class MortalGame(Game):
    """Counts its evaluations, and fails after some of them."""

    n_rows, n_players, evaluations_per_batch = N_ROWS, N_PLAYERS, 64

    def __init__(self, lifetime=10**9, bend=0.0):
        self.n_evaluated, self.lifetime, self.bend = 0, lifetime, bend

    def __call__(self, rows, coalitions):
        self.n_evaluated += len(rows)
        if self.n_evaluated > self.lifetime:
            raise KilledError
        values = np.tanh((X[rows] * coalitions) @ INTO).sum(axis=1, keepdims=True)
        return values + self.bend * (coalitions[:, :1] * 1.0 - coalitions[:, 1:2])  # 0 at the ends


def fitted(game, folder, student="mlp", **options):
    options = {"epochs": 2, "seed": 0, "evaluations": BUDGET, "folder": folder} | options
    return AmortizedShapley.fit(game, X, Training(student=student, **options))


@pytest.mark.parametrize("lifetimes", [(3000,), (900, 2500, 4000), (300, 1300)])
@pytest.mark.parametrize("target", ["oddgp", "controlled"])
def test_killed_trainings_pay_little_twice(target, lifetimes, tmp_path):
    """Again: one row of each kind, and a part of the labels or an epoch, or all ends."""
    whole = MortalGame()
    wanted = fitted(whole, None, labels=target)
    games = [MortalGame(lifetime) for lifetime in lifetimes]
    for game in games:
        with pytest.raises(KilledError):
            fitted(game, tmp_path, labels=target)
    last = MortalGame()
    found = fitted(last, tmp_path, labels=target)
    assert_same(wanted, found)
    assert found.evaluations == whole.n_evaluated
    spent = sum(game.n_evaluated for game in games) + last.n_evaluated
    lost = max(2 * N_ROWS, (64 if target == "oddgp" else N_ROWS) * BUDGET) + 200
    assert spent <= whole.n_evaluated + len(games) * lost


def test_a_second_student_gets_the_labels_for_nothing(tmp_path):
    first = MortalGame()
    fitted(first, tmp_path)
    second = MortalGame()
    trees = fitted(second, tmp_path, "trees")
    assert second.n_evaluated < 200  # one row of each kind once more
    alone = fitted(MortalGame(), None, "trees")
    assert_same(alone, trees)


def test_estimates_of_another_model_are_refused(tmp_path):
    fitted(MortalGame(), tmp_path, "trees")
    with pytest.raises(InvalidArgumentError, match="another model.*another folder"):
        fitted(MortalGame(bend=1.0), tmp_path, "trees")


def test_damaged_files_are_refused_by_name(tmp_path):
    fitted(MortalGame(), tmp_path, "trees")
    path = next(tmp_path.glob("labels-*.safetensors"))
    data = bytearray(path.read_bytes())
    data[-3] ^= 1
    path.write_bytes(data)
    with pytest.raises(InvalidArgumentError, match=f"{path.name} is damaged.*folder=.*Delete it"):
        fitted(MortalGame(), tmp_path, "trees")


def test_files_that_are_gone_are_paid_for_again(tmp_path):
    wanted = fitted(MortalGame(), tmp_path, "trees")
    for path in tmp_path.glob("labels-*.safetensors"):
        path.unlink()
    again = MortalGame()
    found = fitted(again, tmp_path, "trees")
    assert again.n_evaluated > N_ROWS * BUDGET / 2
    assert found.evaluations == wanted.evaluations
