"""Aggregates as explainers of shap: members of all kinds, plots, budgets, saving, wrong calls."""

from typing import Any

import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext
from shap_ext.criteria import faithfulness
from shapley_adapters.aggregation import Centroid, Convex, LowComplexity
from shapley_adapters.criteria import Neighbourhood
from shapley_adapters.errors import InvalidArgumentError, ShapleyExtWarning
from tests.helpers.optional import HAS_TORCH, torch
from tests.shap_host.games import (
    ROUNDING,
    Seen,
    curved,
    curved_columns,
    network,
    of_module,
    oracle,
    rows,
)

BACKGROUND, X, DATA = rows(2, 4, seed=1), rows(3, 4), rows(20, 4, seed=2)
AGGREGATES = [shap_ext.CentroidExplainer, shap_ext.ConvexExplainer, shap_ext.LowComplexityExplainer]


def doubled(x):
    return 2 * np.asarray(x)


def negated(x):
    return -np.asarray(x) + 0.5


# --- AVA ---


@pytest.mark.parametrize("normalized", [True, False])
def test_ava_averages_the_explanations_of_neighbours(normalized):
    """With their base values, so that the sums are those of the averaged outputs."""
    explainer = shap_ext.AVAExplainer(
        curved, BACKGROUND, dataset=DATA, n_neighbors=3, normalized=normalized
    )
    found = explainer(X, silent=True)
    each = shap_ext.EnumerationExplainer(curved, BACKGROUND)(DATA, silent=True)
    for row in range(3):
        away = np.linalg.norm(DATA - X[row], axis=1)
        nearest = np.argsort(away)[:3]
        weights = 1 / away[nearest]
        weights /= weights.sum() if normalized else 1
        np.testing.assert_allclose(found.values[row], weights @ each.values[nearest], **ROUNDING)
        base = weights @ each.base_values[nearest]
        np.testing.assert_allclose(found.base_values[row], base, **ROUNDING)


def test_functions_may_return_the_same_memory_again():
    memory = np.empty((20, 4))

    def reusing(x):
        return np.multiply(x, 2, out=memory[: len(x)])

    explainer = shap_ext.AVAExplainer(
        curved, BACKGROUND, dataset=DATA, n_neighbors=3, explainer=reusing
    )
    explainer(X[:1], silent=True)  # which explains some neighbours
    plain = shap_ext.AVAExplainer(
        curved, BACKGROUND, dataset=DATA, n_neighbors=3, explainer=doubled
    )
    np.testing.assert_array_equal(explainer(X, silent=True).values, plain(X, silent=True).values)


def test_neighbours_are_explained_anew_on_other_terms():
    model = Seen(curved)
    explainer = shap_ext.AVAExplainer(
        model, rows(1, 9), dataset=rows(5, 9, 3), n_neighbors=5, seed=0, explainer="leastsquares"
    )
    sizes = []
    for budget in (60, 60, 200, 200):
        before = len(model.calls)
        explainer(rows(2, 9), max_evals=budget, silent=True)
        sizes.append(len(model.calls) - before)
    assert sizes[0] > 0 < sizes[2]
    assert sizes[1] == sizes[3] == 0
    n_calls = len(model.calls)  # no numbers depend on these two
    explainer(rows(2, 9), max_evals=200, silent=False, batch_size=7)
    assert len(model.calls) == n_calls


def test_training_a_network_is_noticed():
    net = network(4)
    explainer = shap_ext.AVAExplainer(net, BACKGROUND, dataset=DATA, n_neighbors=2)
    before = explainer(X, silent=True).values
    with torch.no_grad():
        net[2].weight.mul_(2)
    np.testing.assert_allclose(explainer(X, silent=True).values, 2 * before, **ROUNDING)
    net[2].weight.data.mul_(5)  # of which torch itself takes no notice
    np.testing.assert_allclose(explainer(X, silent=True).values, 10 * before, rtol=1e-10)


def test_ava_of_groups_shows_the_groups_of_the_rows():
    hot = np.eye(3)[[0, 2, 1, 1, 0]]
    table = np.column_stack([np.arange(5.0), hot])
    frame = pd.DataFrame(table, columns=["size", "kind_a", "kind_b", "kind_c"])
    grouped = shap_ext.EnumerationExplainer(
        lambda x: curved(np.asarray(x)), frame[:1], groups={"kind": ["kind_a", "kind_b", "kind_c"]}
    )
    ava = shap_ext.AVAExplainer(curved, dataset=frame, explainer=grouped, n_neighbors=2)
    found, alone = ava(frame[3:], silent=True), grouped(frame[3:], silent=True)
    assert found.values.shape == np.shape(found.data) == np.shape(found.display_data) == (2, 2)
    np.testing.assert_array_equal(found.data, alone.data)
    assert found.display_data.tolist() == alone.display_data.tolist()
    assert found.feature_names == alone.feature_names


def test_ava_of_frames_with_categories():
    frame = pd.DataFrame({"size": [1.0, 2.0, 9.0, 8.0], "kind": ["a", "b", "a", "b"]})

    def model(x):
        return x["size"].to_numpy(float) * np.where(x["kind"] == "a", 2.0, 3.0)

    def embed(x):
        return x[["size"]].to_numpy(float)

    with pytest.raises(InvalidArgumentError, match="embed="):
        shap_ext.AVAExplainer(model, frame[:1], dataset=frame)
    explainer = shap_ext.AVAExplainer(
        model, frame[:1], dataset=frame, n_neighbors=2, embed=embed, explainer="enumeration"
    )
    asked = pd.DataFrame({"size": [1.5], "kind": ["z"]})
    found = explainer(asked, silent=True)
    assert found.feature_names == ["size", "kind"]
    assert found.data.tolist() == [[1.5, "z"]]
    near = shap_ext.EnumerationExplainer(model, frame[:1])(frame[:2], silent=True)
    np.testing.assert_allclose(found.values, near.values.mean(0, keepdims=True), **ROUNDING)


# --- aggregates of explainers ---


@pytest.mark.parametrize("algorithm", ["centroid", "convex", "lowcomplexity"])
def test_members_are_ours_and_shaps_and_functions(algorithm):
    members = ["exact", "shear", shap.ExactExplainer(curved, BACKGROUND), doubled]
    explainer = shap.Explainer(curved, BACKGROUND, algorithm=algorithm, explainers=members, seed=0)
    found = explainer(X, silent=True)
    exact = oracle(curved, X, BACKGROUND)
    candidates = [exact, exact, exact, doubled(X)]
    aggregator: dict[str, Any] = {
        "centroid": Centroid(),
        "convex": Convex(),
        "lowcomplexity": LowComplexity(),
    }
    expected = aggregator[algorithm](candidates).values
    np.testing.assert_allclose(found.values, expected, atol=1e-9)
    np.testing.assert_allclose(explainer.last_candidates, candidates, atol=1e-9)
    np.testing.assert_allclose(found.base_values, curved(BACKGROUND).mean(), **ROUNDING)


@pytest.mark.parametrize(
    "options",
    [
        {"distance": "l2", "power": 1},
        {"distance": 3},
        {"distance": "kendall", "order": "magnitude"},
        {"scale": "l2"},
    ],
    ids=str,
)
def test_kinds_of_centroids(options):
    members = [doubled, negated, lambda x: x**3]
    found = shap_ext.CentroidExplainer(curved, explainers=members, **options)(X)
    expected = Centroid(**options)([member(X) for member in members])
    np.testing.assert_allclose(found.values, expected.values)


@pytest.mark.parametrize("weights", ["complexity", "sensitivity", "faithfulness", "trade_off"])
def test_weights_are_learned_for_a_criterion(weights):
    members = ["exact", lambda x: rows(len(x), 4, 9), negated]
    explainer = shap_ext.ConvexExplainer(
        curved,
        BACKGROUND,
        explainers=members,
        weights=weights,
        dataset=DATA,
        neighbourhood=Neighbourhood(0.2, keep="all"),
        seed=1,
    )
    found = explainer(X, silent=True)
    learned = explainer.learned_weights
    assert (learned.loss.mean() <= learned.candidate_losses.mean(axis=1) + 1e-12).all()
    expected = Convex(learned.weights)(explainer.last_candidates).values
    np.testing.assert_allclose(found.values, expected, **ROUNDING)
    if weights == "faithfulness":  # noise and a linear map say nothing about the model
        assert learned.weights.argmax() == 0
        given = shap_ext.criteria.faithfulness(
            explainer(DATA, silent=True), curved, BACKGROUND, DATA, seed=1
        )
        np.testing.assert_allclose(1 - learned.loss, given, atol=1e-9)


def test_a_trade_off_where_complexity_has_no_weight_is_sensitivity():
    def learned(**options):
        members = ["exact", lambda x: rows(len(x), 4, 9), negated]
        near: dict[str, Any] = {"neighbourhood": Neighbourhood(0.2, keep="all"), "dataset": DATA}
        explainer = shap_ext.ConvexExplainer(
            curved, BACKGROUND, explainers=members, seed=1, **near, **options
        )
        return explainer.learn().weights

    wanted = learned(weights="sensitivity")
    np.testing.assert_array_equal(learned(weights="trade_off", complexity_weight=0.0), wanted)
    assert not np.allclose(learned(weights="trade_off", complexity_weight=2.0), wanted)


def test_faithfulness_is_learned_of_grouped_columns():
    data = rows(6, 4, 3)

    def member(x):
        return np.asarray(x)[:, :3]

    grouped = shap_ext.EnumerationExplainer(curved, BACKGROUND, groups={"pair": [1, 2]})
    convex = shap_ext.ConvexExplainer(
        curved, BACKGROUND, explainers=[grouped, member], weights="faithfulness", dataset=data
    )
    found = convex(X, silent=True)
    assert found.values.shape == (3, 3)
    faithful = [
        faithfulness(one, curved, BACKGROUND, data, groups=grouped.groups).mean()
        for one in (convex(data, silent=True), grouped(data, silent=True), member(data))
    ]
    assert faithful[0] >= max(faithful[1:]) - 1e-9
    strange = shap_ext.ConvexExplainer(
        curved, BACKGROUND, explainers=[member, member], weights="faithfulness", dataset=data
    )
    with pytest.raises(InvalidArgumentError, match="3 features.* 4 players.*groups"):
        strange.learn()


# --- budgets, errors, seeds ---


def test_the_budget_is_shared():
    model = Seen(curved)
    explainer = shap_ext.CentroidExplainer(
        model, rows(1, 12), explainers=["leastsquares", "oddgp", doubled], seed=0
    )
    explainer(rows(1, 12, 3), max_evals=200, silent=True)
    used = sum(len(call) for call in model.calls)
    assert 150 < used <= 1.05 * 200


def test_error_bounds_add_up_or_are_refused():
    members = ["leastsquares", "oddgp"]
    explained = rows(2, 12, 3)
    mean = shap_ext.CentroidExplainer(curved, rows(1, 12), explainers=members, seed=3)
    found = mean(explained, max_evals=200, error_bounds=True, silent=True)
    alone = [
        shap.Explainer(curved, rows(1, 12), algorithm=name, seed=3)(
            explained, max_evals=100, error_bounds=True, silent=True
        )
        for name in members
    ]
    np.testing.assert_allclose(found.error_std, (alone[0].error_std + alone[1].error_std) / 2)
    assert (found.upper_bounds > found.values).any()
    ava = shap_ext.AVAExplainer(curved, rows(1, 12), dataset=explained, seed=3)
    assert (ava(explained, max_evals=100, error_bounds=True, silent=True).error_std > 0).any()
    median = shap_ext.CentroidExplainer(curved, rows(1, 12), explainers=members, distance="l1")
    with pytest.raises(InvalidArgumentError, match="no fixed linear combination"):
        median(explained, error_bounds=True, silent=True)
    silent = shap_ext.CentroidExplainer(curved, explainers=[doubled])
    with pytest.raises(InvalidArgumentError, match="doubled gives no standard errors"):
        silent(X, error_bounds=True)


@pytest.mark.parametrize("algorithm", ["permutation", "partition"])
def test_members_of_shap_leave_numpys_generator_as_it_was(algorithm):
    """shap seeds the generator that all of NumPy shares, and draws from it."""
    masker = shap.maskers.Partition(DATA) if algorithm == "partition" else DATA
    explainer = shap_ext.CentroidExplainer(curved, masker, explainers=[algorithm], seed=3)
    found = []
    for seed in (7, 8):
        np.random.seed(seed)  # noqa: NPY002
        before = np.random.get_state(legacy=False)  # noqa: NPY002
        found.append(explainer(X, silent=True).values)
        after = np.random.get_state(legacy=False)  # noqa: NPY002
        np.testing.assert_equal(after, before)
    np.testing.assert_array_equal(found[0], found[1])


@pytest.mark.parametrize("seed", [None, 2**32, 2**62 + 1])
def test_members_of_shap_take_seeds_of_any_size(seed):
    """The seeds that are drawn have 63 bits; NumPy's global generator takes 32."""
    explainer = shap_ext.CentroidExplainer(curved, DATA, explainers=["permutation"], seed=seed)
    assert np.isfinite(explainer(X, silent=True).values).all()


def test_intervals_are_as_wide_as_the_members_say():
    """With three draws a 95 % interval of Student's reaches further than 1.96 errors."""
    explained, background = rows(2, 8, 3), rows(1, 8)
    settings: dict[str, Any] = {"max_evals": 34, "error_bounds": True, "silent": True}
    alone = shap_ext.RandomOrderExplainer(curved, background, seed=3)(explained, **settings)
    widths = alone.upper_bounds - alone.values
    assert (widths > 4 * alone.error_std).all()
    both: dict[str, Any] = {"explainers": ["randomorder", "randomorder"], "seed": 3}
    convex = shap_ext.ConvexExplainer(curved, background, weights=[3, 1], **both)
    found = convex(explained, **{**settings, "max_evals": 68})
    np.testing.assert_allclose(found.error_std, alone.error_std)
    np.testing.assert_allclose(found.upper_bounds - found.values, widths)
    np.testing.assert_allclose(found.values - found.lower_bounds, widths)
    ava = shap_ext.AVAExplainer(
        curved, background, dataset=explained, explainer="randomorder", n_neighbors=2, seed=3
    )
    for _ in range(2):  # what is remembered keeps its intervals
        own = ava(explained, **settings)
        np.testing.assert_allclose(own.upper_bounds - own.values, widths)


# --- at home in shap ---


def test_images_keep_their_shape():
    images = rows(2, 48).reshape(2, 4, 4, 3)
    found = shap_ext.CentroidExplainer(curved, explainers=[lambda x: x, lambda x: 3 * x])(images)
    np.testing.assert_allclose(found.values, 2 * images)
    ava = shap_ext.AVAExplainer(curved, dataset=images, explainer=lambda x: 5 * x)
    np.testing.assert_allclose(ava(images).values, 5 * images)
    for one in (found, ava(images)):
        np.testing.assert_array_equal(one.data, images)  # of the rows, not of their neighbours


@pytest.mark.skipif(not HAS_TORCH, reason="torch is not installed")
def test_methods_of_captum_are_members():
    import captum.attr

    net = network(4)
    model = of_module(net)
    members = [captum.attr.ShapleyValues(net), "exact", captum.attr.InputXGradient(net)]
    explainer = shap_ext.CentroidExplainer(net, np.zeros((1, 4)), explainers=members)
    found = explainer(X, silent=True)
    exact = oracle(lambda x: model(x)[:, 0], X, np.zeros((1, 4)))
    np.testing.assert_allclose(explainer.last_candidates[0], exact, atol=1e-6)
    x = torch.as_tensor(X).requires_grad_()
    net(x).sum().backward()
    np.testing.assert_allclose(explainer.last_candidates[2], (x.grad * x).detach().numpy())
    np.testing.assert_allclose(found.values, np.mean(explainer.last_candidates, axis=0))


# --- combining what is there ---


def test_outputs_of_captum_are_put_in_shaps_order():
    explanation = shap_ext.EnumerationExplainer(curved_columns, BACKGROUND)(X, silent=True)
    tensor = torch.as_tensor(np.moveaxis(explanation.values, 2, 1).copy())
    found = shap_ext.combine([explanation, tensor], Centroid("l1"))
    np.testing.assert_allclose(found.values, explanation.values, **ROUNDING)


# --- wrong calls ---


AVERAGE, CONVEX, _, AVA = *AGGREGATES, shap_ext.AVAExplainer
OF_ONE = {"explainers": [doubled]}
OF_TWO = {"explainers": [doubled, negated]}
TRADE_OFF = {**OF_TWO, "weights": "trade_off", "neighbourhood": Neighbourhood(0.2)}


@pytest.mark.parametrize(
    ("kind", "options", "call", "words"),
    [
        (AVERAGE, {"explainers": []}, None, "at least one"),
        (AVERAGE, {"explainers": "shear"}, None, "a list"),
        (AVERAGE, {"explainers": ["shear", 3]}, None, r"explainers\[1\].*got 3"),
        (AVERAGE, {"explainers": [shap_ext.ShearExplainer]}, None, r"explainers\[0\]"),
        (AVERAGE, {"explainers": ["sheer"]}, {}, "sheer"),
        (AVERAGE, {"explainers": [doubled, lambda x: x[:, :2]]}, {}, r"\(3, 4\).*\(3, 2\)"),
        (AVERAGE, {"explainers": [lambda x: [x, x]]}, {}, "2 results"),
        (AVERAGE, {"explainers": [lambda x: x[0]]}, {}, r"shape \(4,\) for rows of shape \(3, 4\)"),
        (AVERAGE, {"explainers": [lambda x: x * np.nan]}, {}, "must be finite"),
        (AVERAGE, OF_ONE, {"X": X[0, 0]}, r"X has shape \(\)"),
        (AVERAGE, OF_ONE, {"outputs": [0]}, "no outputs="),
        (AVERAGE, OF_ONE, {"max_evals": "all"}, "'auto'"),
        (CONVEX, {"weights": "beauty"}, None, "'complexity', 'sensitivity'"),
        (CONVEX, {"weights": "sensitivity"}, None, "neighbourhood="),
        (CONVEX, {**OF_TWO, "weights": "complexity", "masker": None}, {}, "dataset= is needed"),
        (
            CONVEX,
            {**TRADE_OFF, "complexity_weight": -0.1},
            None,
            "complexity_weight .*not negative",
        ),
        (
            CONVEX,
            {**TRADE_OFF, "complexity_weight": np.inf},
            None,
            "complexity_weight must be a fin",
        ),
        (AVA, {"masker": None}, None, "dataset= is needed"),
        (AVA, {"dataset": DATA, "explainer": 3}, None, "explainer must be"),
        (AVA, {"dataset": DATA, "explainer": doubled}, {"X": X[:, :3]}, "3 numbers.* data hold 4"),
    ],
)
def test_wrong_calls_say_what_is_wrong(kind, options, call, words):
    def explain():
        explainer = kind(**{"model": curved, "masker": BACKGROUND, **options})
        return call is not None and explainer(**{"X": X, **call})

    with pytest.raises((ValueError, TypeError), match=words):
        explain()


def test_what_cannot_be_combined_is_refused():
    with pytest.raises(InvalidArgumentError, match="captum_ext"):
        shap_ext.combine([doubled(X)], Centroid())
    with pytest.raises(InvalidArgumentError, match=r"explanations\[1\] has shape \(2, 4\)"):
        shap_ext.combine([shap.Explanation(X), X[:2]], Centroid())


def test_large_tables_are_neighbours_in_full():
    with pytest.warns(ShapleyExtWarning, match="150 rows"):
        explainer = shap_ext.AVAExplainer(curved, rows(150, 4), explainer=doubled)
    assert len(explainer.dataset) == 150


# --- costs ---


def test_an_aggregate_says_what_each_member_spent():
    members = ["leastsquares", doubled]
    explainer: Any = shap_ext.CentroidExplainer(curved, BACKGROUND, explainers=members, seed=0)
    assert explainer.last_evaluations is None
    explanation = explainer(X, max_evals=10, silent=True)
    spent: Any = explainer.last_evaluations
    alone = shap.Explainer(curved, BACKGROUND, algorithm="leastsquares", seed=0)
    alone(X, max_evals=10, silent=True)
    assert spent.counted == (("leastsquares", alone.last_estimate.evaluations.sum()),)
    assert spent.not_counted == ("doubled",)
    assert str(spent) == f"leastsquares: {spent.total}; not counted: doubled"
    assert explanation.call.spent == str(spent)


def test_a_member_that_the_budget_cannot_limit_is_refused():
    """shap's kernel explainer would spend thousands of evaluations whatever the budget."""
    members = ["leastsquares", shap.KernelExplainer(curved, BACKGROUND)]
    explainer = shap_ext.CentroidExplainer(curved, BACKGROUND, explainers=members, seed=0)
    with pytest.raises(InvalidArgumentError, match="max_evals=40 cannot limit KernelExplainer"):
        explainer(X, max_evals=40, silent=True)


def test_an_aggregate_within_an_aggregate_is_counted():
    inner = shap_ext.CentroidExplainer(curved, BACKGROUND, explainers=["shear", "oddgp"], seed=0)
    explainer = shap_ext.CentroidExplainer(curved, explainers=[inner, doubled])
    explainer(X, silent=True)
    assert explainer.last_evaluations.counted == (
        ("CentroidExplainer", inner.last_evaluations.total),
    )


def test_ava_counts_the_neighbours_that_it_explains_anew():
    explainer = shap_ext.AVAExplainer(curved, BACKGROUND, dataset=DATA, n_neighbors=20, seed=0)
    explainer(X, max_evals=10, silent=True)
    assert 0 < explainer.last_evaluations.total <= 10 * len(DATA)
    explainer(X, max_evals=10, silent=True)
    assert explainer.last_evaluations.total == 0
