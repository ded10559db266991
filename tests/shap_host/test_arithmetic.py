"""Error bounds under shap's arithmetic: right, or gone."""

import copy
import pickle

import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext
from shap_ext import shap_internals
from shapley_adapters.aggregation import Centroid
from shapley_adapters.errors import ShapleyExtWarning
from tests.shap_host.games import curved, curved_columns, oracle, rows

# Old releases of matplotlib use names of pyparsing that are going away.
pytestmark = pytest.mark.filterwarnings("error", "ignore:'.*deprecated:DeprecationWarning")

X, BACKGROUND = rows(5, 9), rows(2, 9, seed=1)
FIELDS = ("values", "lower_bounds", "upper_bounds", "error_std")


def explained(model=curved, x=X, seed=0, **options):
    explainer = shap_ext.ShearExplainer(model, BACKGROUND, seed=seed)
    return explainer(x, max_evals=110, error_bounds=True, **options)


@pytest.fixture
def e():
    return explained()


def check_bounds(one, scale, of):
    """See that bounds and errors are those of `of`, scaled, around the values of `one`."""
    assert isinstance(one, shap.Explanation)
    half = (of.upper_bounds - of.values) * np.abs(scale)
    np.testing.assert_allclose(one.upper_bounds, one.values + half, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(one.lower_bounds, one.values - half, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(one.error_std, of.error_std * np.abs(scale), rtol=1e-12)


def check_gone(one):
    assert isinstance(one, shap.Explanation)
    assert one.lower_bounds is one.upper_bounds is one.error_std is None


@pytest.mark.parametrize(
    ("change", "scale"),
    [
        (lambda e: e * 2, 2),
        (lambda e: 2 * e, 2),
        (lambda e: e * -1, -1),
        (lambda e: e * np.float32(-3), -3),
        (lambda e: e * np.array(-3), -3),
        (lambda e: e / -4, 0.25),
        (lambda e: e + 3, 1),
        (lambda e: 3 + e, 1),
        (lambda e: e - 3.5, 1),
        (lambda e: 3 - e, 1),
        (lambda e: (e * -2 + 1) / 8, 0.25),
        (lambda e: e * True, 1),
    ],
)
def test_numbers_scale_and_shift_the_bounds(e, change, scale):
    changed = change(e)
    plain = change(shap.Explanation(e.values, e.base_values, e.data))
    for field in ("values", "base_values", "data"):
        np.testing.assert_array_equal(getattr(changed, field), getattr(plain, field))
    assert changed.feature_names == e.feature_names
    check_bounds(changed, scale, e)
    check_bounds(e, 1, explained())  # the operand is as it was


def test_negation_is_a_product_with_minus_one(e):
    check_bounds(-(e + 2), -1, e)
    np.testing.assert_array_equal((-e).values, -e.values)
    np.testing.assert_array_equal((-e).base_values, -e.base_values)
    np.testing.assert_array_equal((-e[0]).lower_bounds, -e.upper_bounds[0])


def test_arrays_scale_the_bounds_feature_by_feature(e):
    row = e[0]
    by = np.linspace(-2.0, 3.0, 9)
    check_bounds(row * by, by, row)
    check_bounds(row + by, 1, row)
    check_bounds(by * row, by, row)
    check_bounds(np.float64(-2) * row, -2, row)
    with pytest.warns(ShapleyExtWarning, match="different shapes"):
        check_gone(row * by[:, None])


@pytest.mark.parametrize(
    "change",
    [
        lambda e: e.abs,
        lambda e: e.flip,
        lambda e: e.argsort,
        lambda e: e.mean(0),
        lambda e: e.mean(axis=1),
        lambda e: e.abs.mean(0),
        lambda e: e.sum(0),
        lambda e: e.sum(axis=1),
        lambda e: e.max(0),
        lambda e: e.min(1),
        lambda e: e.percentile(50, axis=0),
        lambda e: e.sum(axis=1, grouping={"Feature 1": "pair", "Feature 2": "pair"}),
        lambda e: shap.Explanation.abs.mean(0).apply(e),
    ],
)
def test_what_has_no_known_error_has_no_bounds(e, change):
    changed = change(e)
    plain = shap.Explanation(e.values, e.base_values, e.data, feature_names=e.feature_names)
    np.testing.assert_array_equal(changed.values, change(plain).values)
    check_gone(changed)
    check_bounds(e, 1, explained())


@pytest.mark.parametrize(
    ("change", "reason"),
    [
        (lambda e: e * e, "product or quotient"),
        (lambda e: e / (e * 0 + 1), "product or quotient"),
        (lambda e: e - shap.Explanation(e.values, e.base_values, e.data), "right has none"),
        (lambda e: e + e.mean(0), "right has none"),
        (lambda e: e[0] + e, "different shapes"),
        (lambda e: e.hstack(shap.Explanation(e.values, e.base_values)), "one part has none"),
    ],
)
def test_operations_of_users_that_remove_bounds_warn(e, change, reason):
    with pytest.warns(ShapleyExtWarning, match=f"no error bounds: .*{reason}"):
        check_gone(change(e))
    check_bounds(e, 1, explained())


def test_errors_of_differences_with_other_seeds_add_as_squares(e):
    other = explained(seed=1)
    for changed, values in ((e - other, e.values - other.values), (e + other, None)):
        half = np.hypot(e.upper_bounds - e.values, other.upper_bounds - other.values)
        np.testing.assert_allclose(changed.upper_bounds, changed.values + half, rtol=1e-12)
        np.testing.assert_allclose(changed.lower_bounds, changed.values - half, rtol=1e-12)
        np.testing.assert_allclose(changed.error_std, np.hypot(e.error_std, other.error_std))
        if values is not None:
            np.testing.assert_array_equal(changed.values, values)
    mean = sum([e, other]) / 2
    np.testing.assert_allclose(mean.error_std, np.hypot(e.error_std, other.error_std) / 2)


def test_errors_of_differences_with_common_draws_add(e):
    """Nothing is known of how they are correlated, and this is the largest error possible."""
    changed, errors = e[0] - e[1], e.error_std[0] + e.error_std[1]
    np.testing.assert_allclose(changed.error_std, errors)
    check_bounds(-changed, 1, changed)
    third = explained(seed=1)
    of_both = (e - third)[0] - third[1]  # the seed of the third is in both terms
    wanted = np.hypot(e.error_std[0], third.error_std[0]) + third.error_std[1]
    np.testing.assert_allclose(of_both.error_std, wanted)
    unknown = pickle.loads(pickle.dumps(third))
    unknown.seeds = None
    np.testing.assert_allclose((e - unknown).error_std, e.error_std + unknown.error_std)


def test_ends_of_intervals_change_sides_in_differences(e):
    """An interval that is not centred keeps its longer side where it belongs."""
    shap_internals.set_bounds(e, e.values - 1, e.values + 3, e.error_std)
    changed = e[0] - e[1]
    np.testing.assert_allclose(changed.upper_bounds - changed.values, 4)
    np.testing.assert_allclose(changed.values - changed.lower_bounds, 4)
    exact = e[1] * 0
    np.testing.assert_allclose((exact - e[0]).upper_bounds - (exact - e[0]).values, 1)
    np.testing.assert_allclose((e[0] - exact).upper_bounds - (e[0] - exact).values, 3)


@pytest.mark.slow
@pytest.mark.parametrize("other_seed", [False, True])
@pytest.mark.parametrize("partner", ["near", "mirrored"])
def test_intervals_of_differences_hold(partner, other_seed):
    """40 pairs of rows of 9 features: 360 intervals, of which 90 % are 4 standard errors off."""
    rng, hits, n_pairs = np.random.default_rng(5), [], 40
    for seed in range(n_pairs):
        x = rng.normal(size=(1, 9))
        y = -x if partner == "mirrored" else x + 0.1 * rng.normal(size=(1, 9))
        difference = explained(x=x, seed=seed) - explained(x=y, seed=seed + n_pairs * other_seed)
        truth = oracle(curved, x, BACKGROUND) - oracle(curved, y, BACKGROUND)
        hits.append((difference.lower_bounds <= truth) & (truth <= difference.upper_bounds))
    assert 0.9 < np.mean(hits) <= (0.99 if other_seed else 1)


def test_joined_features_keep_their_bounds(e):
    joined = e[:, :4].hstack(e[:, 4:])
    np.testing.assert_array_equal(joined.values, e.values)
    check_bounds(joined, 1, e)
    check_bounds(joined * -2, 2, e)


def test_explanations_of_shap_on_the_left_are_still_what_is_subtracted_from(e):
    plain = shap.Explanation(e.values + 1, e.base_values, e.data)
    with pytest.warns(ShapleyExtWarning, match="left has none"):
        changed = plain - e
    np.testing.assert_array_equal(changed.values, (e.values + 1) - e.values)
    check_gone(changed)


@pytest.mark.parametrize(
    "item",
    [
        0,
        np.int64(3),
        slice(1, 4),
        [3, 0],
        np.array([True, False, True, False, False]),
        (slice(None), 2),
        (slice(None), "Feature 2"),
        (2, slice(3, 5)),
        (Ellipsis, 1),
        shap.Explanation.abs.sum(1).argsort,
    ],
    ids=str,
)
def test_selecting_selects_the_bounds(e, item):
    numbered = np.arange(e.values.size).reshape(e.values.shape)
    places = shap.Explanation(numbered, feature_names=e.feature_names)
    if isinstance(item, shap.utils.OpChain):
        item = list(map(int, item.apply(e).values))
    chosen = places[item].values.astype(int).ravel()
    for field in FIELDS:
        got, all_of_it = getattr(e[item], field), getattr(e, field)
        np.testing.assert_array_equal(np.ravel(got), np.ravel(all_of_it)[chosen])
    check_bounds(e[item] * -1, 1, e[item])


def test_samples_cohorts_and_copies_keep_the_bounds(e):
    check_bounds(e.sample(3) * 2, 2, e.sample(3))
    assert e.sample(3).lower_bounds.shape == (3, 9)
    cohorts = e.cohorts(["a", "b", "a", "b", "b"]).cohorts
    np.testing.assert_array_equal(cohorts["a"].error_std, e.error_std[[0, 2]])
    check_bounds(cohorts["b"] * -1, 1, cohorts["b"])
    check_gone(cohorts["b"].mean(0))
    assert sorted(e.hclust()) == list(range(5))
    for copied in (copy.copy(e), copy.deepcopy(e), pickle.loads(pickle.dumps(e)), e.identity):
        check_bounds(copied, 1, e)
        check_bounds(copied * -1, 1, e)


def test_assigned_values_have_no_bounds(e):
    e.values = e.values * 0
    check_gone(e)
    assert (e * 2).values.shape == (5, 9)
    assert e[1].values.shape == (9,)


def test_outputs_keep_their_bounds():
    e = explained(curved_columns)
    assert e.lower_bounds.shape == (5, 9, 3)
    check_bounds(e * -2, 2, e)
    check_bounds(e[..., 1] * -2, 2, e[..., 1])
    check_bounds(e[:, :, "Output 2"] / 2, 0.5, e[:, :, 2])
    check_gone(e.mean(0))
    chosen = explained(curved_columns, outputs=shap.Explanation.argsort.flip[:2])
    check_bounds(chosen * -1, 1, chosen)


def test_rows_of_different_lengths_keep_their_bounds():
    def length(texts):
        return np.array([len(text.split()) + ("good" in text) * ("not" in text) for text in texts])

    explainer = shap.Explainer(length, shap.maskers.Text(r"\W+"), algorithm="randomorder", seed=0)
    e = explainer(["not good", "a b c not d good e f g h"], max_evals=60, error_bounds=True)
    scaled = e * -2
    for row in range(2):
        check_bounds(scaled[row], 2, e[row])
        check_bounds((e - scaled)[row], 3, e[row])
        np.testing.assert_array_equal(scaled[row].data, e[row].data)  # words cannot be scaled
        np.testing.assert_array_equal((e - scaled)[row].data, e[row].data)
    check_gone(e.mean(0))
    assert len(pickle.loads(pickle.dumps(scaled)).lower_bounds) == 2


def test_aggregates_have_such_bounds_too():
    explainer = shap.Explainer(curved, BACKGROUND, algorithm="centroid", seed=0)
    e = explainer(X, max_evals=330, error_bounds=True)
    check_bounds(e * -2, 2, e)
    difference = e[0] - e[1]  # the members' draws are not recorded
    np.testing.assert_allclose(difference.error_std, e.error_std[0] + e.error_std[1])


def test_combined_explanations_have_no_bounds(e):
    """How the errors of the parts are correlated is not known."""
    combined = shap_ext.combine([e, e * 3], Centroid())
    check_gone(combined)
    np.testing.assert_allclose(combined.values, 2 * e.values, rtol=1e-12)
    check_gone(shap_ext.combine([e], Centroid()))
    check_bounds(e, 1, explained())  # the parts keep theirs


def test_errors_of_rows_cancel_only_in_sums_of_independent_draws():
    def of(seed, x=X):
        explainer = shap_ext.RandomOrderExplainer(
            curved, rows(3, X.shape[1], 1), seed=seed, independent_rows=True
        )
        return explainer(x, max_evals=40, error_bounds=True, silent=True)

    first, second = of(0), of(1)
    assert first.errors_cancel
    for same in (-first, first[1:], first / 2, 1 - first, first + second, first - second):
        assert same.errors_cancel
    assert pickle.loads(pickle.dumps(first + second)).errors_cancel
    assert copy.copy(first).errors_cancel
    for shared in (first - first[::-1], first - first[0], first - second[0]):
        assert not shared.errors_cancel  # rows have draws in common
    assert first[[2, 0]].errors_cancel
    assert first[np.arange(5) > 2].errors_cancel
    for repeated in (first[[0, 0]], first[np.array([1, -4])], first[[0, 0], :2]):
        assert not repeated.errors_cancel


def test_one_row_keeps_the_name_of_its_output_in_copies_and_products():
    def named(x):
        return pd.DataFrame({"no": curved(x), "yes": 2 * curved(x)})

    explainer = shap_ext.OddGPExplainer(
        named, rows(3, X.shape[1], 1), seed=0, output_names=["no", "yes"]
    )
    row = explainer(X, max_evals=40, error_bounds=True, silent=True)[0, :, "yes"]
    for changed, scale in ((copy.copy(row), 1), (-row, -1), (row * 2, 2)):
        assert changed.output_names == row.output_names == "yes"
        np.testing.assert_allclose(changed.values, scale * row.values)
        np.testing.assert_allclose(changed.error_std, abs(scale) * row.error_std)
        assert changed.call is row.call
    assert shap_ext.plots.waterfall(row, show=False).patches
