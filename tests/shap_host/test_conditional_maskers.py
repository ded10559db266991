"""Absent features drawn given the present ones: values, error bars, forms of input, bad input."""

import pickle

import numpy as np
import pandas as pd
import pytest
import shap
from sklearn.ensemble import ExtraTreesRegressor
from sklearn.linear_model import LinearRegression

import shap_ext
from shap_ext import criteria
from shap_ext.maskers import Categorical, Causal, Copula, Empirical, Forest, Gaussian, Sampled
from shap_ext.models import ConditionalMean
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ShapleyExtError,
    ShapleyExtWarning,
)
from tests.helpers.brute_force import conditional_values, shapley_values
from tests.helpers.conditional_games import (
    Quadratic,
    correlated_rows,
    interventional_game,
    normal_game,
    normal_shapley_values,
)
from tests.shap_host.games import Seen

N_FEATURES = 6
DATA = correlated_rows(500, N_FEATURES, seed=0)
ROWS = DATA[:3]
MODEL = Quadratic(N_FEATURES, seed=0)


def explained(masker, algorithm="enumeration", model=MODEL, rows=ROWS, seed=0, **budget):
    explainer = shap.Explainer(model, masker, algorithm=algorithm, seed=seed)
    return explainer(rows, silent=True, **budget), explainer.last_estimate


def exact_values(model, data=DATA, rows=ROWS):
    return normal_shapley_values(rows, data.mean(axis=0), np.cov(data.T), model.expected)


def test_values_of_a_normal_distribution():
    """The error of 2,048 points is a hundredth of that of the values."""
    exact = exact_values(MODEL)
    found, estimate = explained(Gaussian(DATA, draws=2048))
    of_draws = np.sqrt(estimate.standard_errors**2 - estimate.fit_errors**2)
    assert np.abs(found.values - exact).max() < 5 * of_draws.max() + 1e-12
    assert of_draws.max() < 0.01 * np.abs(exact).mean()
    assert np.ptp(found.base_values) == 0
    total = found.values.sum(axis=1) + found.base_values
    np.testing.assert_allclose(total, MODEL(ROWS), rtol=1e-10)


def test_values_do_not_depend_on_batches_order_and_copies():
    masker = Gaussian(DATA, draws=8)
    explainer = shap.Explainer(MODEL, masker, algorithm="leastsquares", seed=0)
    found = explainer(ROWS, max_evals=40, silent=True).values
    for other in (
        explainer(ROWS, max_evals=40, silent=True, batch_size=3),
        explainer(ROWS[::-1], max_evals=40, silent=True)[::-1],
        explainer(ROWS[:1], max_evals=40, silent=True),
        explained(pickle.loads(pickle.dumps(masker)), "leastsquares", max_evals=40)[0],
    ):
        np.testing.assert_allclose(other.values, found[: len(other)], rtol=1e-9)
    others = explained(Gaussian(DATA, draws=8, seed=1), "leastsquares", max_evals=40)[0]
    assert np.abs(others.values - found).max() > 1e-3


@pytest.mark.parametrize("algorithm", ["exact", "permutation"])
def test_explainers_of_shap_take_the_masker(algorithm):
    """They draw each coalition once; permutations leave an error of their own."""
    exact = exact_values(MODEL)
    explainer = shap.Explainer(MODEL, Gaussian(DATA, draws=256), algorithm=algorithm, seed=0)
    off = np.abs(explainer(ROWS).values - exact).max()
    assert off < (0.05 if algorithm == "exact" else 1.0) * np.abs(exact).max()


def test_frames_reach_the_model_with_their_columns():
    frame = pd.DataFrame(DATA, columns=list("abcdef"))
    frame["a"] = frame["a"].round().astype(int)
    seen = Seen(lambda frame: MODEL(frame.to_numpy()))
    found, _ = explained(Gaussian(frame, draws=4), model=seen, rows=frame[:2])
    assert found.feature_names == list("abcdef")
    assert all(list(table.columns) == list("abcdef") for table in seen.calls)
    assert any((table["a"] % 1 != 0).any() for table in seen.calls)  # draws are not whole numbers
    plain, _ = explained(Gaussian(frame.to_numpy(), draws=4), rows=frame[:2].to_numpy())
    np.testing.assert_allclose(found.values, plain.values, rtol=1e-12)


def test_groups_of_columns_are_drawn_together():
    groups = {"first": [0, 1, 2], "second": [3, 4], "third": [5]}
    explainer = shap.Explainer(
        MODEL, Gaussian(DATA, draws=1024), algorithm="enumeration", seed=0, groups=groups
    )
    found = explainer(ROWS, silent=True)
    columns = list(groups.values())
    for row, values in zip(ROWS, found.values, strict=True):
        game = normal_game(row, DATA.mean(axis=0), np.cov(DATA.T), MODEL.expected)
        exact = shapley_values(3, lambda s, game=game: game({c for g in s for c in columns[g]}))
        np.testing.assert_allclose(values, exact, atol=0.02 * np.abs(exact).max())


def test_missing_values_of_rows_stay_missing_and_say_nothing():
    rows = ROWS.copy()
    rows[:, 2] = np.nan
    seen = Seen(lambda x: MODEL(np.nan_to_num(x)))
    explained(Gaussian(DATA, draws=4), model=seen, rows=rows)
    table = np.concatenate(seen.calls)
    assert 0 < np.isnan(table[:, 2]).sum() < len(table)
    assert not np.isnan(np.delete(table, 2, axis=1)).any()


@pytest.mark.parametrize("distribution", [Gaussian, Copula, Empirical, Forest])
def test_objects_are_numbers_where_the_data_are(distribution):
    masker, rows = distribution(DATA[:50]), pd.DataFrame(ROWS)
    found, _ = explained(masker, rows=rows.astype(object))
    np.testing.assert_array_equal(found.values, explained(masker, rows=rows)[0].values)


def test_columns_without_variance_and_singular_covariances():
    constant = np.column_stack([DATA, np.full(len(DATA), 0.3)])
    rows = constant[:3]
    found, _ = explained(Gaussian(constant, draws=8), model=lambda x: MODEL(x[:, :6]), rows=rows)
    assert np.isfinite(found.values).all()
    copied = np.column_stack([DATA, DATA[:, 0]])
    with pytest.warns(ShapleyExtWarning, match="follow from others"):
        masker = Gaussian(copied, draws=8)
    drawn = masker(np.arange(7) == 0, copied[0])
    np.testing.assert_allclose(drawn[:, 6], copied[0, 0], atol=0.02)


WITH_MISSING, WITH_INFINITE = DATA.copy(), DATA.copy()
WITH_MISSING[7, 2], WITH_INFINITE[0, 1] = np.nan, np.inf
COLOURS = pd.DataFrame({"number": [1.0, 2.0, 3.0], "colour": ["red", "red", "blue"]})
DAYS = pd.DataFrame({"a": np.arange(20.0), "day": pd.date_range("2020-01-01", periods=20)})
TEXTS = pd.DataFrame(ROWS).assign(text="a")[[0, 1, 2, 3, 4, "text"]].to_numpy(object)
LINE, WIDE = LinearRegression(), np.tile(DATA, 3)[:, :13]
PART = shap.maskers.FixedComposite(Gaussian(DATA))


def on_hierarchy(**budget):
    explainer = shap_ext.HierarchyExplainer(MODEL, Gaussian(DATA), hierarchy=[range(3), 3, 4, 5])
    return explainer(ROWS, **budget)


@pytest.mark.parametrize(
    ("call", "message"),
    [
        (lambda: Gaussian(DATA[:5]), "data has 5 rows and 6 columns"),
        (lambda: Gaussian(COLOURS), "'red' in column 'colour'"),
        (lambda: Gaussian(WITH_MISSING), "nan in row 7, column 2"),
        (lambda: Gaussian(DATA[0]), "a table of rows is needed"),
        (lambda: Forest(DATA[:5]), "data has 5 rows; trees need at least 12"),
        (lambda: Empirical(DATA, sigma=0), "sigma must be positive; got 0"),
        (lambda: Gaussian(DATA, draws=0), "draws must be at least 1; got 0"),
        (lambda: explained(Gaussian(DATA), rows=ROWS[:, :5]), "X has 5 columns"),
        (lambda: explained(Forest(DATA), rows=TEXTS), "not numbers, but the data of the masker"),
        (lambda: Forest(WITH_INFINITE), "infinite numbers in column 1"),
        (lambda: Forest(DAYS), "dates or times in column 'day'. Convert"),
        (lambda: explained(PART), "Gaussian is part of another masker"),
        (lambda: ConditionalMean(MODEL, WITH_MISSING), "nan in row 7, column 2"),
        (lambda: ConditionalMean(lambda x: x[:, 0] * np.nan, DATA), "row 0 of data is nan"),
        (lambda: ConditionalMean(MODEL, DATA, LinearRegression), "regressor must be an object"),
        (lambda: ConditionalMean(MODEL, WIDE, separate=True), "data has 13 columns"),
        (
            lambda: on_hierarchy(max_evals=10),
            "max_evals=10 is too small and pays, with repeated draws, for 6 coal",
        ),
        (
            lambda: on_hierarchy(max_model_rows=10),
            "With max_model_rows=10, max_evals=0 is too small: hierarchy",
        ),
    ],
)
def test_bad_input(call, message):
    with pytest.raises(ShapleyExtError, match=message):
        call()


def test_copula_of_skewed_margins():
    """Two log-normal features: E[x₀ | x₁] = exp(ρ z₁ + (1 − ρ²) / 2), but for the fit to 20,000."""
    rng, rho = np.random.default_rng(0), 0.7
    normal = rng.normal(size=(20_000, 2))
    normal[:, 1] = rho * normal[:, 0] + np.sqrt(1 - rho**2) * normal[:, 1]
    for value in (-1.0, 0.5, 1.5):
        row = np.exp(np.array([[0.0, value]]))
        masker = Copula(np.exp(normal), draws=1024)
        drawn = masker(np.array([False, True]), row[0])
        expected = np.exp(rho * value + (1 - rho**2) / 2)
        np.testing.assert_allclose(drawn[:, 0].mean(), expected, rtol=0.04)
        assert (drawn[:, 1] == row[0, 1]).all()


def nearest_rows_game(row, data, sigma, eta):
    """The weights of Aas, Jullum and Løland (2021), section 3.3, one coalition at a time."""

    def value(coalition):
        present = sorted(coalition)
        weights = np.ones(len(data))
        if present:
            inverse = np.linalg.inv(np.cov(data.T)[np.ix_(present, present)])
            for place, other in enumerate(data):
                difference = (other - row)[present]
                distance = difference @ inverse @ difference / len(present)
                width = sigma or len(data) ** (-1 / (len(present) + 4)) / np.sqrt(len(present))
                weights[place] = np.exp(-distance / (2 * width**2))
        order = sorted(range(len(data)), key=lambda place: -weights[place])
        kept = 0.0
        total = weights.sum()
        for place in order:
            kept, weights[place] = (
                kept + weights[place],
                weights[place] if kept < eta * total else 0.0,
            )
        masked = data.copy()
        masked[:, present] = row[present]
        return np.average(MODEL(masked), weights=weights)

    return value


@pytest.mark.parametrize(("sigma", "eta"), [(0.4, 0.95), (1.0, 0.5), (None, 0.95)])
def test_weights_of_near_rows(sigma, eta):
    """Draws of one coordinate: 1,024 of them leave an error of a thousandth of the spread."""
    data = DATA[:60]
    masker = Empirical(data, draws=1024, sigma=sigma, eta=eta)
    found, _ = explained(masker, rows=DATA[60:61])
    game = nearest_rows_game(DATA[60], data, sigma, eta)
    np.testing.assert_allclose(
        found.values[0], shapley_values(N_FEATURES, game), atol=0.005 * np.std(MODEL(data))
    )


def test_rows_far_from_the_data():
    masker = Empirical(DATA, sigma=0.1)
    assert np.isfinite(masker(np.ones(N_FEATURES) > 2, DATA[0] + 100)).all()
    with pytest.warns(ShapleyExtWarning, match=r"(?s)far from all rows.*sigma=0.1"):
        drawn = masker(np.arange(N_FEATURES) == 0, DATA[0] + 100)
    nearest = np.argmin(np.abs(DATA[:, 0] - DATA[0, 0] - 100))
    assert (drawn[:, 1:] == DATA[nearest, 1:]).all()


def categories(n_rows):
    rng = np.random.default_rng(3)
    sky = rng.choice(["blue", "grey", "black"], n_rows)
    rain = np.where(sky == "blue", "no", rng.choice(["no", "yes"], n_rows))
    level = np.where(rain == "yes", 2, rng.integers(1, 3, n_rows))
    wind = rng.choice([0.0, 1.0, np.nan], n_rows)
    frame = pd.DataFrame({"sky": sky, "rain": rain, "level": level, "wind": wind})
    return frame.astype({"sky": "category"})


def wetness(frame):
    wind = frame["wind"].fillna(-1).to_numpy(dtype=float)
    return (frame["rain"] == "yes") * 1.0 * frame["level"].to_numpy(dtype=float) + wind


def test_categories_follow_the_rows_that_have_the_present_values():
    data = categories(200)
    rows = data[:4]
    found, _ = explained(Categorical(data, draws=1024), model=wetness, rows=rows)
    codes = np.column_stack([pd.factorize(data[column])[0] for column in data])
    outputs = wetness(data)
    for place, values in enumerate(found.values):
        game = conditional_values(lambda _: outputs, codes[place], codes)
        exact = shapley_values(4, lambda s, game=game: float(game(s)))
        np.testing.assert_allclose(values, exact, atol=0.005)


def test_forests_find_what_the_present_features_tell():
    """Numbers that follow a category, also a missing one: means within 4 standard errors of it."""
    rng = np.random.default_rng(4)
    kind = rng.choice(np.array(["low", "high", None], dtype=object), 400)
    level = np.select([kind == "low", kind == "high"], [-3.0, 5.0], 1.0) + rng.normal(size=400)
    frame = pd.DataFrame({"kind": kind, "level": level, "other": rng.normal(size=400)})
    masker = Forest(frame, draws=256)
    for value, mean in (("low", -3.0), ("high", 5.0), (None, 1.0)):
        row = np.array([value, 0.0, 0.0], dtype=object)
        drawn = masker(np.array([True, False, False]), row)
        assert abs(drawn[:, 1].astype(float).mean() - mean) < 4 / np.sqrt(100)
    drawn = masker(np.array([False, True, False]), np.array(["", 5.0, 0.0], dtype=object))
    assert (drawn[:, 0] == "high").mean() > 0.9
    found, _ = explained(
        masker, model=lambda x: x["level"].to_numpy(dtype=float), rows=frame[kind == "high"][:2]
    )
    assert np.abs(found.values[:, 0]).min() > np.abs(found.values[:, 2]).max()


@pytest.mark.filterwarnings("error::RuntimeWarning", "ignore:Present features are so far")
def test_draws_that_are_all_the_same_row():
    _, estimate = explained(
        Empirical(DATA), "oddgp", lambda x: x.sum(axis=1), ROWS + 1e3, max_evals=30
    )
    assert np.isfinite(estimate.values).all() and np.isfinite(estimate.standard_errors).all()


def test_forests_with_columns_that_tell_all_or_nothing():
    """A copy is found whatever the others are, and a constant has nothing to find."""
    noise = np.random.default_rng(0).normal(size=(300, 2))
    kind = np.where(noise[:, 0] > 0, "a", "b")
    frame = pd.DataFrame({"kind": kind, "copy": kind, "noise": noise[:, 1], "constant": 0.3})
    missing = Forest(frame.assign(missing=np.nan))(np.arange(5) < 3, np.append(frame.iloc[0], 0.1))
    assert pd.isna(missing[:, 4]).all()
    masker = Forest(frame, draws=256)
    row = np.array(["a", "", 0.0, 0.3], dtype=object)
    assert (masker(np.arange(4) == 0, row)[:, 1] == "a").mean() > 0.97
    drawn = masker(np.array([True, True, True, False]), row)
    assert (drawn[:, 3] == 0.3).all()
    by_noise = masker(np.array([False, True, True, True]), np.array(["", "b", 3.0, 0.3], object))
    assert (by_noise[:, 0] == "b").mean() > 0.97


def test_values_that_no_row_has():
    data = categories(200)
    row = data[:1].copy()
    row["level"] = 9
    with pytest.warns(ShapleyExtWarning, match="rows with most of them are taken"):
        found, _ = explained(Categorical(data), model=wetness, rows=row)
    assert np.isfinite(found.values).all()
    with pytest.raises(InvalidArgumentError, match=r"500 different values in 500 rows of column 0"):
        Categorical(DATA)


def test_a_function_of_the_user():
    """A function with the draws of a normal distribution; its calls have seeds of their own."""
    mean, covariance, seeds = DATA.mean(axis=0), np.cov(DATA.T), []

    def function(mask, row, n, rng):
        seeds.append(rng.bit_generator.state["state"]["state"])
        drawn = np.tile(row, (n, 1))
        if mask.any():
            across = covariance[~mask][:, mask] @ np.linalg.inv(covariance[mask][:, mask])
            center = mean[~mask] + across @ (row - mean)[mask]
            spread = covariance[~mask][:, ~mask] - across @ covariance[mask][:, ~mask]
        else:
            center, spread = mean, covariance
        drawn[:, ~mask] = rng.multivariate_normal(center, spread, size=n)
        return drawn

    masker = Sampled(function, DATA, draws=256)
    found, estimate = explained(masker, rows=ROWS[:2])
    exact = exact_values(MODEL, rows=ROWS[:2])
    off = (found.values - exact) / estimate.standard_errors[..., 0]
    assert np.abs(off).max() < 4
    assert len(set(seeds)) > 0.9 * len(seeds)
    again, _ = explained(masker, rows=ROWS[:2])
    np.testing.assert_array_equal(again.values, found.values)
    with pytest.raises(InvalidArgumentError, match=r"shape \(256, 6\); it returned shape \(1, 6\)"):
        explained(Sampled(lambda mask, row, n, rng: row[None], DATA, draws=256))
    with pytest.raises(InvalidArgumentTypeError, match="function must be callable"):
        Sampled(DATA, DATA)


CAUSES = [(0, 1), 2, (3, 4, 5)]


def of_causes(data):
    moments = data.mean(axis=0), np.cov(data.T)
    games = [
        interventional_game(row, *moments, [[0, 1], [2], [3, 4, 5]], [False] * 3, MODEL.expected)
        for row in ROWS
    ]
    return np.array([shapley_values(N_FEATURES, game) for game in games])


def of_signs(data):
    signs, outputs = np.sign(data[:, :3]), MODEL(np.sign(data) * SIGNED)
    games = [conditional_values(lambda _: outputs, row, signs) for row in np.sign(ROWS[:, :3])]
    return np.array([shapley_values(3, lambda s, game=game: float(game(s))) for game in games])


def of_means(data):
    """Of the row of means, whose values of a sum depend on no covariance, to first order."""
    moments = data.mean(axis=0), np.cov(data.T)
    return normal_shapley_values(OF_MEANS["rows"], *moments, lambda means, _: means.sum())


OF_MEANS = {"rows": DATA.mean(axis=0)[None], "model": lambda x: x.sum(axis=1)}
SIGNED = np.arange(N_FEATURES) < 3
OF_SIGNS = {"rows": np.sign(ROWS[:, :3]), "model": lambda x: MODEL(np.pad(x, ((0, 0), (0, 3))))}


@pytest.mark.parametrize(
    ("masker", "exact", "options"),
    [
        (Gaussian(DATA, draws=256), lambda data: exact_values(MODEL, data), {}),
        (Gaussian(DATA, draws=256), of_means, OF_MEANS),
        (Causal(DATA, CAUSES, draws=256), of_causes, {}),
        (Categorical(np.sign(DATA[:, :3]), draws=256), of_signs, OF_SIGNS),
    ],
)
def test_errors_of_the_fit_are_those_of_fits_to_drawn_rows(masker, exact, options):
    """By the bootstrap of exact values; 10 fits of one and 60 of the other leave some 20 %."""
    rng = np.random.default_rng(0)
    drawn = [exact(DATA[rng.integers(len(DATA), size=len(DATA))]) for _ in range(60)]
    for algorithm, budget in (("enumeration", "auto"), ("oddgp", 60)):
        _, estimate = explained(masker, algorithm, max_evals=budget, trace=True, **options)
        found, right = estimate.fit_errors[..., 0], np.std(drawn, axis=0)
        assert 0.75 < np.sqrt((found**2).sum() / (right**2).sum()) < 1.33
        assert (estimate.trace.standard_errors[:, :, -1] >= estimate.fit_errors).all()


def test_errors_of_fits_to_few_rows():
    sets, exact = enumerate(DATA.reshape(50, 10, N_FEATURES)), exact_values(MODEL)
    ends = [explained(Gaussian(data, seed=seed))[1].interval() for seed, data in sets]
    low, high = np.array(ends).swapaxes(0, 1)[..., 0]
    assert ((low <= exact) & (exact <= high)).mean() > 0.93  # by errors to first order, .87


@pytest.mark.parametrize("of", [Gaussian, Copula, Empirical])
def test_errors_of_copies_scale_with_outputs(of):
    masker, ordinary = pickle.loads(pickle.dumps(of(DATA))), explained(of(DATA))[1]
    for factor in (2.0**-500, 2.0**500):
        _, found = explained(masker, model=lambda x, factor=factor: MODEL(x) * factor)
        np.testing.assert_allclose(found.fit_errors, ordinary.fit_errors * factor)
        np.testing.assert_allclose(found.degrees_of_freedom, ordinary.degrees_of_freedom)


def test_importance_of_drawn_values():
    """Repetitions of sampled rows, and of their losses."""
    exact = exact_values(MODEL)
    explainer = shap_ext.RandomOrderExplainer(MODEL, Gaussian(DATA, draws=8), seed=0)
    found = explainer.global_importance(ROWS, kind="mean", population=True, silent=True)
    off = (found.values - exact.mean(axis=0)) / found.standard_errors
    assert np.abs(off).max() < 4
    assert found.standard_errors.max() < 0.1 * np.abs(exact).max()
    explainer = shap_ext.RandomOrderExplainer(MODEL, Gaussian(DATA, draws=128), seed=0)
    labels = MODEL(DATA[:50])
    by_loss = explainer.global_importance(
        DATA[:50], labels, kind="loss", loss="squared_error", population=True, silent=True
    )
    spread = ((labels - MODEL(DATA).mean()) ** 2).mean()  # of no feature less that of all
    np.testing.assert_allclose(by_loss.values.sum(), spread, rtol=0.1)


@pytest.mark.parametrize(
    ("algorithm", "budget"), [("enumeration", 300), ("oddgp", 40), ("leastsquares", 50)]
)
def test_rows_of_the_model_are_counted_exactly(algorithm, budget):
    """The output for all features has no draws: it is one row."""
    seen = Seen(MODEL)
    options = {"model": seen, "rows": ROWS[:1], "max_evals": budget}
    _, estimate = explained(Gaussian(DATA, draws=8), algorithm, **options)
    assert estimate.model_rows.sum() == sum(map(len, seen.calls))
    assert 0.7 * 8 * budget < estimate.model_rows.sum() <= 8 * budget


def linear(x):
    return np.asarray(x) @ np.arange(1.0, 7.0)


def predicted_values(mean, rows=ROWS, algorithm="enumeration"):
    return explained(mean.reference, algorithm, mean, rows)[0]


@pytest.mark.parametrize(("separate", "error"), [(True, 1e-9), (False, 0.05)])
def test_linear_regressors_of_linear_models(separate, error):
    """One for each coalition is exact, and one for all nearly so."""
    found = predicted_values(ConditionalMean(linear, DATA, LINE, separate=separate))
    games = DATA.mean(axis=0), np.cov(DATA.T), lambda means, covariances: linear(means)
    exact = normal_shapley_values(ROWS, *games)
    np.testing.assert_allclose(found.values, exact, atol=error * np.abs(exact).max())
    np.testing.assert_allclose(found.base_values, linear(DATA).mean(), rtol=1e-12)


def test_the_default_regressor():
    """Its error is below that of rows that are near, and values do not depend on batches."""
    mean, exact = ConditionalMean(MODEL, DATA), exact_values(MODEL)
    found = predicted_values(mean)
    errors = [
        np.abs(other.values - exact).sum() for other in (found, explained(Empirical(DATA))[0])
    ]
    assert errors[0] < 0.8 * errors[1] and errors[0] < 0.3 * np.abs(exact).sum()
    moved = ConditionalMean(lambda x: MODEL(x - 1e9), DATA + 1e9)  # as dates are
    np.testing.assert_allclose(predicted_values(moved, ROWS + 1e9).values, found.values, atol=0.01)
    np.testing.assert_allclose(found.values.sum(axis=1) + found.base_values, MODEL(ROWS))
    again = predicted_values(pickle.loads(pickle.dumps(mean)), ROWS[::-1], "best")[::-1]
    np.testing.assert_allclose(again.values, found.values, atol=1e-7)
    marginal = criteria.mse_v(MODEL, DATA[:100], DATA[100:150])
    assert criteria.mse_v(mean, mean.reference, DATA[100:150]).mean < 0.7 * marginal.mean
    pairs = explained(mean.reference, "best", mean, interactions="SII")[0]
    np.testing.assert_allclose(pairs.values.sum(axis=2), found.values, atol=1e-7)
    share = ConditionalMean(lambda x: 1 / (1 + np.exp(-MODEL(x))), DATA)
    odds = shap.Explainer(share, share.reference, link="logit", algorithm="best", seed=0)(ROWS)
    np.testing.assert_allclose(odds.values.sum(axis=1) + odds.base_values, MODEL(ROWS))
    told = share(np.where(np.arange(6) < 3, DATA, np.nan))
    assert told.min() >= 0 and told.max() <= 1


@pytest.mark.parametrize("separate", [True, False])
def test_regressors_of_frames_several_outputs_and_missing_values(separate):
    frame = pd.DataFrame(DATA, columns=list("abcdef")).assign(
        a=np.arange(500) % 3, b=DATA[:, 1] > 0
    )
    seen = Seen(lambda x: np.column_stack([linear(x.to_numpy(float)), MODEL(x.to_numpy(float))]))
    tree = ExtraTreesRegressor(2, max_depth=3)  # draws splits at random
    mean = ConditionalMean(seen, frame, tree, separate=separate)
    rows = frame[:3].astype({"a": float})
    rows.loc[0, "a"] = np.nan  # is absent
    found = predicted_values(mean, rows)
    assert all((table.dtypes == frame.dtypes).all() for table in seen.calls)
    assert (found.values[0, 0] == 0).all() and (found.values[1:, 0] != 0).all()
    one = ConditionalMean(lambda x: seen(x)[:, 1], frame, tree, separate=separate)
    np.testing.assert_allclose(predicted_values(one, rows).values, found.values[..., 1], atol=1e-12)
