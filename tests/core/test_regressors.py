"""Students that learn in one fit: trees against the libraries that grow them, and refusals."""

import pickle
from typing import Any

import numpy as np
import pytest

torch: Any = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from sklearn.ensemble import (  # noqa: E402
    ExtraTreesRegressor,
    GradientBoostingRegressor,
    HistGradientBoostingRegressor,
)

import shap_ext  # noqa: E402
from shapley_adapters.amortized.amortized import AmortizedShapley  # noqa: E402
from shapley_adapters.amortized.networks import boosted_trees  # noqa: E402
from shapley_adapters.amortized.training import Training  # noqa: E402
from shapley_adapters.errors import InvalidArgumentError  # noqa: E402
from tests.helpers.reference_games import RowsGame  # noqa: E402
from tests.helpers.signed_files import parts_of, signed  # noqa: E402

pytestmark = pytest.mark.filterwarnings("ignore:.*unlike the rows")  # steps have rare large gaps

RNG = np.random.default_rng(0)
X = RNG.normal(size=(400, 5)).astype(np.float32)
X[:, 2] = np.round(X[:, 2]) + 0.0  # numbers that are equal, and at thresholds
X[::7, 1] = 0.0
REFERENCE = np.zeros((1, 5), dtype=np.float32)


def steps(x):
    return (x[:, 0] > 0.3) * 2.0 + (x[:, 1] > 0) * (x[:, 2] > 0) - 1.0


def shapley_values(rows):
    """Return the values of `steps`, by hand: one feature alone, and two that share."""
    at_reference = -1.0 + 0.0
    first = (rows[:, 0] > 0.3) * 2.0
    both = ((rows[:, 1] > 0) * (rows[:, 2] > 0)) / 2
    assert steps(REFERENCE) == at_reference
    return np.stack([first, both, both, 0 * first, 0 * first], axis=1)


def explainer(**options: Any) -> Any:
    options = {"student": "trees", "seed": 0, **options}
    return shap_ext.SimShapExplainer(steps, REFERENCE, training_data=X[:320], **options)


def test_trees_are_those_of_scikit_learn():
    labels = np.stack([X[:, 0] * X[:, 1], np.sin(X[:, 2]), np.zeros(len(X))], axis=1)
    grown = HistGradientBoostingRegressor(
        max_iter=40,
        max_depth=6,
        min_samples_leaf=10,
        l2_regularization=5.0,
        early_stopping=False,
        random_state=0,
    )
    wanted = np.stack([grown.fit(X, label).predict(X) for label in labels.T], axis=1)
    trees, single = boosted_trees([5], 3, 1, rounds=40), boosted_trees([5], 1, 1, rounds=40)
    trees.learn(X.astype(np.float64), labels, 0)
    np.testing.assert_allclose(trees(torch.as_tensor(X))[:, :, 0].numpy(), wanted, atol=1e-6)
    single.learn(X.astype(np.float64), labels[:, 1:2], 0)
    np.testing.assert_allclose(single(torch.as_tensor(X))[:, :, 0], wanted[:, 1:2], atol=1e-6)


def test_trees_learn_steps():
    made = explainer()
    found = made(X[320:], error_bounds=True)
    exact = shapley_values(X[320:])
    assert np.abs(found.values - exact).sum() < 0.1 * np.abs(exact).sum()
    assert (found.values[X[320:] == 0] == 0).all()
    (record,) = made.trained.history
    assert record.absolute_error < 0.1 * np.abs(exact).sum(axis=1).mean()


def test_evaluations_are_counted_and_seeds_repeat():
    games = [RowsGame(lambda x: steps(x)[:, None], X) for _ in range(2)]
    made = [AmortizedShapley.fit(game, X, Training(seed=3, student="trees")) for game in games]
    assert games[0].n_evaluated == made[0].evaluations == made[1].evaluations
    assert made[0].history == made[1].history
    first, second = (one.network.network(torch.as_tensor(X)) for one in made)
    assert torch.equal(first, second)


def test_refinement_and_streams_take_trees():
    made = explainer().fit(silent=True)
    exact = shapley_values(X[320:])
    refined = made(X[320:], max_evals=30, silent=True)
    np.testing.assert_allclose(refined.values, exact, atol=1e-6)  # of all 32 coalitions
    whole = made.stream(X, silent=True)
    np.testing.assert_array_equal(made.stream(X[:7], silent=True), whole[:7])


def test_trees_are_refused_by_files_and_can_be_pickled(tmp_path):
    made = explainer(student_options={"rounds": 9}).fit(silent=True)
    with pytest.raises(InvalidArgumentError, match="'trees' cannot be written.*student='mlp'"):
        made.save_trained(tmp_path / "a")
    assert not list(tmp_path.iterdir())
    again = pickle.loads(pickle.dumps(made))
    np.testing.assert_array_equal(made.stream(X, silent=True), again.stream(X, silent=True))


def test_files_that_claim_to_hold_trees_are_refused(tmp_path):
    path = tmp_path / "a"
    explainer(student="mlp", epochs=1).fit(silent=True).save_trained(path)
    header, about, data = parts_of(path.read_bytes())
    about["description"]["network"] = "trees"
    path.write_bytes(signed(header, about, data))
    with pytest.raises(InvalidArgumentError, match="files hold no trees"):
        explainer(trained=path, student="mlp")


def test_regressors_of_scikit_learn(tmp_path):
    forest = ExtraTreesRegressor(20)
    made = explainer(student=forest)
    found = made(X[320:], silent=True).values
    exact = shapley_values(X[320:])
    assert np.abs(found - exact).sum() < 0.3 * np.abs(exact).sum()
    assert not hasattr(forest, "estimators_")  # a copy is fitted, with a seed of its own
    np.testing.assert_array_equal(found, explainer(student=forest)(X[320:], silent=True).values)
    with pytest.raises(InvalidArgumentError, match="'ExtraTreesRegressor' cannot be.*'mlp'"):
        made.save_trained(tmp_path / "a.pt")
    assert not list(tmp_path.iterdir())


def test_regressors_of_one_output_are_refused_by_name():
    with pytest.raises(InvalidArgumentError, match="MultiOutputRegressor.GradientBoosting"):
        explainer(student=GradientBoostingRegressor()).fit(silent=True)


def test_targets_without_labels_are_refused_before_any_evaluation():
    def model(x):
        raise AssertionError

    options: dict[str, Any] = {"training_data": X, "student": "trees", "seed": 0}
    with pytest.raises(InvalidArgumentError, match="labels='controlled'.*labels='oddgp'"):
        shap_ext.SimShapExplainer(model, REFERENCE, labels="controlled", **options)
    with pytest.raises(InvalidArgumentError, match="labels='fastshap'.*SimSHAP"):
        shap_ext.FastShapExplainer(model, REFERENCE, **options)
