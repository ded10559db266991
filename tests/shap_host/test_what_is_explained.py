"""What is explained follows from the model alone: unit, values, shape and names.

A grid of frames, maskers and models, each by three algorithms with all coalitions, against an
enumeration that knows none of these.
"""

from itertools import product
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import scipy.sparse
import shap
import sklearn.base
from sklearn.calibration import CalibratedClassifierCV
from sklearn.ensemble import (
    ExtraTreesClassifier,
    HistGradientBoostingClassifier,
    HistGradientBoostingRegressor,
    RandomForestClassifier,
    VotingClassifier,
)
from sklearn.linear_model import LogisticRegression, PoissonRegressor
from sklearn.model_selection import GridSearchCV
from sklearn.naive_bayes import GaussianNB
from sklearn.neighbors import KNeighborsClassifier
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler

import shap_ext  # noqa: F401 # it makes shap know the algorithms
from shapley_adapters.errors import InvalidArgumentError, ShapleyExtWarning
from tests.helpers.brute_force import masked_model_values, shapley_values
from tests.helpers.thin_products import covering

NAMES = ["age", "income", "rent", "debt"]
NUMBERS = np.random.default_rng(0).normal(size=(120, 4)).round(1)
NUMBERS[:, 3] = np.arange(120) % 3  # codes of categories
FRAME = pd.DataFrame(NUMBERS, columns=NAMES)
WORDS = np.array(["u", "v", "w"])
ILL = np.where(NUMBERS[:, 0] * NUMBERS[:, 1] + NUMBERS[:, 3] > 1, "well", "ill")
N_BACKGROUND, N_ROWS = 8, 2


def boosted(rows=FRAME):
    trees = lightgbm.LGBMClassifier(n_estimators=8, min_child_samples=5, verbose=-1, n_jobs=1)
    return trees.fit(rows, ILL)


def with_categories(numbers):
    frame = pd.DataFrame(np.asarray(numbers), columns=NAMES)
    frame["debt"] = pd.Categorical(WORDS[frame["debt"].astype(int)], categories=WORDS)
    return frame


def by_name(model, **options):
    """Return a method of a model, of a table of numbers."""
    return lambda x: getattr(model, options.get("method", "predict"))(
        pd.DataFrame(np.asarray(x), columns=NAMES), **options.get("further", {})
    )


LOGISTIC = LogisticRegression().fit(FRAME, ILL)
FOREST = RandomForestClassifier(5, max_depth=3, random_state=0).fit(FRAME, ILL)
BOOSTED = boosted()
CATEGORIES = boosted(with_categories(NUMBERS))
PIPELINE = make_pipeline(StandardScaler(), LogisticRegression()).fit(FRAME, ILL)


def product_of_two(rows):
    columns = [np.asarray(rows[name]) for name in NAMES] if hasattr(rows, "columns") else None
    return columns[0] * columns[1] if columns else (rows.T[0] * rows.T[1])


# The model, the function that is explained, its unit, and the names of its outputs.
MODELS = {
    "linear": (LOGISTIC, by_name(LOGISTIC, method="decision_function"), "raw", None),
    "forest": (FOREST, by_name(FOREST, method="predict_proba"), "probability", ["ill", "well"]),
    "boosted": (BOOSTED, by_name(BOOSTED, further={"raw_score": True}), "raw", None),
    "categories": (
        CATEGORIES,
        lambda x: CATEGORIES.predict(with_categories(x), raw_score=True),
        "raw",
        None,
    ),
    "pipeline": (PIPELINE, by_name(PIPELINE, method="decision_function"), "raw", None),
    "function": (product_of_two, lambda x: x[:, 0] * x[:, 1], "raw", None),
}

FRAMES: dict[str, Any] = {
    "array": lambda frame: frame.to_numpy(),
    "pandas": lambda frame: frame,
    "nullable": lambda frame: frame.convert_dtypes(),
    "polars": lambda frame: pytest.importorskip("polars").from_pandas(frame),
    "arrow": lambda frame: pytest.importorskip("pyarrow").Table.from_pandas(
        frame, preserve_index=False
    ),
    "sparse": lambda frame: scipy.sparse.csr_matrix(frame.to_numpy()),
}


def background_rows(name):
    return NUMBERS[:N_BACKGROUND] if name != "none" else np.zeros((1, 4))


def masker_of(name, frame, in_form):
    if name == "rows":
        return in_form(frame)
    if name == "kmeans":
        return shap.kmeans(frame, N_BACKGROUND)  # as many as rows: the rows themselves
    if name == "Partition":
        return shap.maskers.Partition(frame)
    return None


def fits(kind, form, masker):
    """Tell what can be: shap's maskers need numbers, LightGBM takes categories in pandas alone."""
    if kind == "categories":
        return masker == "rows" and form in ("pandas", "nullable")
    return form != "sparse" or (masker != "Partition" and kind not in ("function", "pipeline"))


ALL_CALLS = [
    call for call in product(MODELS, FRAMES, ("rows", "kmeans", "Partition", "none")) if fits(*call)
]


@pytest.mark.parametrize("call", [ALL_CALLS[i] for i in covering(ALL_CALLS)], ids=", ".join)
@pytest.mark.filterwarnings("ignore:.*feature names", "ignore:No masker was given")
def test_the_model_alone_says_what_is_explained(call):
    kind, form, masker = call
    if (kind, form) == ("boosted", "polars"):
        pytest.importorskip("pyarrow", reason="LightGBM reads frames of old polars by pyarrow")
    model, function, unit, names = MODELS[kind]
    has_categories = kind == "categories"
    table = with_categories(NUMBERS) if has_categories else FRAME
    in_form = FRAMES[form]
    rows = in_form(table[20 : 20 + N_ROWS])
    given = masker_of(masker, table[:N_BACKGROUND], in_form)
    for algorithm in ("best", "oddgp", "leastsquares"):
        explainer = shap.Explainer(model, given, algorithm=algorithm, seed=0)
        explained = explainer(rows, silent=True)
        assert explainer.last_estimate.unit == explained.call.unit == unit
        if masker == "none" and algorithm == "best" and kind in ("forest", "boosted"):
            wanted = shap.TreeExplainer(model)(table[20 : 20 + N_ROWS]).values
        else:
            wanted = np.stack(
                [
                    shapley_values(4, masked_model_values(function, row, background_rows(masker)))
                    for row in NUMBERS[20 : 20 + N_ROWS]
                ]
            )
        assert explained.values.shape == wanted.shape
        np.testing.assert_allclose(explained.values, wanted, atol=1e-6)
        assert explained.output_names == names
        if form in ("pandas", "nullable", "polars", "arrow"):
            assert list(explained.feature_names) == NAMES


PROBABLE = {
    "neighbours": KNeighborsClassifier(3),
    "bayes": GaussianNB(),
    "calibrated": CalibratedClassifierCV(LogisticRegression(), cv=2),
    "voting": VotingClassifier([("a", LogisticRegression()), ("b", GaussianNB())], voting="soft"),
    "trees": ExtraTreesClassifier(4, max_depth=3, random_state=0),
}


@pytest.mark.parametrize("kind", PROBABLE)
@pytest.mark.parametrize("algorithm", ["best", "leastsquares"])
def test_other_classifiers_are_explained_by_probabilities(kind, algorithm):
    model = sklearn.base.clone(PROBABLE[kind]).fit(NUMBERS, ILL)
    explained = shap.Explainer(model, NUMBERS[:5], algorithm=algorithm, seed=0)(NUMBERS[20:22])
    sums = explained.values.sum(axis=1) + explained.base_values
    np.testing.assert_allclose(sums, model.predict_proba(NUMBERS[20:22]), atol=1e-7)
    assert explained.call.unit == "probability"
    assert explained[:, :, "well"].values.shape == (2, 4)


@pytest.mark.parametrize("algorithm", ["best", "oddgp"])
@pytest.mark.parametrize("steps", [(), (StandardScaler(),)])
def test_the_unit_can_be_chosen(algorithm, steps):
    model = make_pipeline(*steps, HistGradientBoostingClassifier(max_iter=5)).fit(NUMBERS, ILL)
    chances = model.predict_proba(NUMBERS[20:22])
    wanted = {
        "auto": model.decision_function(NUMBERS[20:22]),
        "raw": model.decision_function(NUMBERS[20:22]),
        "probability": chances,
        "log_odds": np.log(chances[:, 1] / chances[:, 0]),
    }
    for unit, outputs in wanted.items():
        explainer = shap.Explainer(
            model, NUMBERS[:5], algorithm=algorithm, seed=0, model_output=unit
        )
        explained = explainer(NUMBERS[20:22])
        sums = explained.values.sum(axis=1) + explained.base_values
        np.testing.assert_allclose(sums, outputs, atol=1e-8)
        assert explainer.last_estimate.unit == ("raw" if unit == "auto" else unit)


def test_a_search_is_explained_as_its_best_estimator():
    search = GridSearchCV(LogisticRegression(), {"C": [0.1, 1.0]}, cv=2).fit(NUMBERS, ILL)
    of_search = shap.Explainer(search, NUMBERS[:9], algorithm="best", seed=0)
    alone = shap.Explainer(search.best_estimator_, NUMBERS[:9], algorithm="best", seed=0)
    np.testing.assert_array_equal(of_search(NUMBERS).values, alone(NUMBERS).values)
    assert of_search.last_estimate.method == "LinearExplainer"


@pytest.mark.parametrize(
    "model", [PoissonRegressor(), HistGradientBoostingRegressor(loss="poisson", max_iter=5)]
)
def test_regressors_with_a_logarithm_as_link_are_explained_before_it(model):
    model.fit(NUMBERS, np.exp(NUMBERS[:, 0]))
    for algorithm in ("best", "leastsquares"):
        explained = shap.Explainer(model, NUMBERS[:5], algorithm=algorithm)(NUMBERS[20:22])
        sums = explained.values.sum(axis=1) + explained.base_values
        np.testing.assert_allclose(sums, np.log(model.predict(NUMBERS[20:22])), atol=1e-10)


def test_probabilities_of_0_and_1_have_finite_log_odds():
    model = RandomForestClassifier(3, random_state=0).fit(NUMBERS, ILL)
    explainer = shap.Explainer(model, NUMBERS[:5], algorithm="oddgp", model_output="log_odds")
    assert np.isfinite(explainer(NUMBERS).values).all()


def test_outputs_have_the_names_of_the_columns_of_a_returned_frame():
    def model(x):
        return pd.DataFrame({"ill": x[:, 0] * x[:, 1], "well": x[:, 2]})

    explained = shap.Explainer(model, NUMBERS[:5], algorithm="oddgp")(NUMBERS[20:22])
    assert explained.output_names == ["ill", "well"]


@pytest.mark.parametrize(
    ("model", "unit", "words"),
    [
        (BOOSTED, "margin", "model_output must be one of 'auto', 'raw'.*; got 'margin'"),
        (lambda x: x[:, 0], "probability", "needs a fitted classifier; model is a function"),
        (PoissonRegressor(), "log_odds", "needs predict_proba, which PoissonRegressor"),
    ],
)
def test_units_that_a_model_does_not_have_are_refused(model, unit, words):
    with pytest.raises(InvalidArgumentError, match=words):
        shap.Explainer(model, NUMBERS[:5], algorithm="oddgp", model_output=unit)


def test_categories_of_trees_without_background_are_those_of_shap(capfd):
    rows = with_categories(NUMBERS[20:22])
    with pytest.warns(ShapleyExtWarning, match="follow the training rows of the trees"):
        explained = shap.Explainer(CATEGORIES, algorithm="best")(rows)
    np.testing.assert_allclose(
        explained.values, shap.TreeExplainer(CATEGORIES)(rows).values, atol=1e-12
    )
    shap.Explainer(CATEGORIES, with_categories(NUMBERS[:5]), algorithm="best")(rows)
    assert "NULL" not in capfd.readouterr().err
