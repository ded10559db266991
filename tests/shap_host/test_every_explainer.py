"""What each explainer of `shap_ext.__all__` must do, whatever its method.

`TABLE` says how each is built. A test sees that the table holds all of them.
"""

import functools
import importlib.util
import inspect
import pickle
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext
from shapley_adapters.errors import InvalidArgumentError, ShapleyExtError
from tests.helpers.estimator_table import ESTIMATORS, OF_CLASSES
from tests.shap_host.games import curved, curved_columns, reloaded, rows

M = 7
X, BACKGROUND = rows(4, M), rows(12, M, seed=1)
COLUMNS = list("abcdefg")
CAN_TRAIN = all(map(importlib.util.find_spec, ("torch", "safetensors")))
TINY: dict[str, Any] = {
    "epochs": 2,
    "evaluations": 16,
    "student_options": {"widths": (8,)},
    "rows_per_step": 4,
}


def of_frames(x):
    """Return outputs of a DataFrame, which must have kept its columns."""
    assert list(x.columns) == COLUMNS
    return curved(x)


@dataclass(frozen=True)
class Made:
    """How an explainer is built for a table of 7 features.

    Attributes
    ----------
    options : dict
        What it cannot do without.
    other : dict
        An option with a value that is not its default, to see that it is kept.
    budget : int or None
        A `max_evals` that leaves something to chance; None where it takes none, or takes all.
    is_efficient : bool
        Whether attributions and base value sum to the model's output.
    has_errors : bool
        Whether it gives standard errors.
    """

    name: str
    explainer: type
    options: dict = field(default_factory=dict)
    other: dict = field(default_factory=dict)
    budget: int | None = 60
    is_efficient: bool = True
    has_errors: bool = True
    is_trained: bool = False

    @property
    def call(self):
        """Arguments of a call."""
        return {"silent": True} | ({} if self.budget is None else {"max_evals": self.budget})

    def build(self, model=curved, background=BACKGROUND, seed=0, **options):
        return shap.Explainer(
            model, background, algorithm=self.name, seed=seed, **(self.options | options)
        )


def other_option(row):
    """Return an option of an estimator, or of all, with another value than its default."""
    defaults = inspect.signature(row.explainer).parameters
    others = (
        {name: value}
        for one in ESTIMATORS
        for name, value in one.options.items()
        if one.explainer is row.explainer and value != defaults[name].default
    )
    return next(others, {"independent_rows": True})


def of_estimator(row):
    if row.is_exact:
        return Made(row.algorithm, row.explainer, other={"groups": {"h": [0, 1]}}, budget=None)
    return Made(row.algorithm, row.explainer, other=other_option(row))


GRAPH: dict[str, Any] = {"graph": "line"}
UNIONS: dict[str, Any] = {"hierarchy": [list(range(M - 2)), [M - 2, M - 1]]}
CAUSES: dict[str, Any] = {"order": [list(range(M - 2)), [M - 2, M - 1]]}
SHARED: dict[str, Any] = {"budget": 180}  # three members of 60
TABLE = [
    Made("ava", shap_ext.AVAExplainer, other={"n_neighbors": 3}, is_efficient=False),
    Made("centroid", shap_ext.CentroidExplainer, other={"distance": "l1"}, **SHARED),
    Made("convex", shap_ext.ConvexExplainer, other={"weights": [1, 2, 3]}, **SHARED),
    Made(
        "lowcomplexity",
        shap_ext.LowComplexityExplainer,
        other={"n_steps": 7},
        is_efficient=False,
        has_errors=False,
        **SHARED,
    ),
    Made("cshapley", shap_ext.CShapleyExplainer, GRAPH, {"order": 1}, is_efficient=False),
    Made("lshapley", shap_ext.LShapleyExplainer, GRAPH, {"order": 1}, is_efficient=False),
    Made("myerson", shap_ext.MyersonExplainer, GRAPH),
    Made("hierarchy", shap_ext.HierarchyExplainer, UNIONS),
    Made("asymmetric", shap_ext.AsymmetricExplainer, CAUSES),
    *map(of_estimator, OF_CLASSES),
    Made("simshap", shap_ext.SimShapExplainer, TINY, budget=None, is_trained=True),
    Made("fastshap", shap_ext.FastShapExplainer, TINY, budget=None, is_trained=True),
]
needs_training = pytest.mark.skipif(not CAN_TRAIN, reason="torch or safetensors missing")
CASES = [
    pytest.param(made, marks=needs_training if made.is_trained else (), id=made.name)
    for made in TABLE
]
every = pytest.mark.parametrize("made", CASES)
# One of each way through the host, for what no method does by itself.
OF_EACH_WAY = ("ava", "centroid", "lshapley", "oddgp", "randomorder", "simshap")
some = pytest.mark.parametrize("made", [case for case in CASES if case.id in OF_EACH_WAY])
pytestmark = pytest.mark.filterwarnings("error")


@functools.cache
def built(name):
    """Return an explainer for the tests that do not change it, and its explanation of X."""
    made = next(one for one in TABLE if one.name == name)
    explainer = made.build()
    return explainer, explainer(X, **made.call)


def check_same(one, other):
    np.testing.assert_array_equal(one.values, other.values)
    np.testing.assert_array_equal(one.base_values, other.base_values)


# The table


def test_the_table_holds_every_explainer_and_every_name():
    public = [getattr(shap_ext, name) for name in shap_ext.__all__]
    explainers = {one for one in public if inspect.isclass(one) and issubclass(one, shap.Explainer)}
    assert explainers == {made.explainer for made in TABLE}
    assert shap_ext.algorithms() == {made.name: made.explainer for made in TABLE}
    assert len(TABLE) == len(explainers)


@every
def test_the_name_builds_the_class_and_both_explain_alike(made):
    explainer, explained = built(made.name)
    assert type(explainer) is made.explainer
    by_class = made.explainer(curved, BACKGROUND, seed=0, **made.options)
    check_same(by_class(X, **made.call), explained)


# What comes back


@every
def test_explanations_are_complete(made):
    explainer, explained = built(made.name)
    assert isinstance(explained, shap.Explanation)
    assert explained.values.shape == explained.data.shape == (4, M)
    assert explained.base_values.shape == (4,)
    assert np.isfinite(explained.values).all()
    assert (explained.values != 0).any()
    np.testing.assert_array_equal(explained.data, X)
    gaps = np.abs(explained.values.sum(axis=1) + explained.base_values - curved(X))
    # Networks sum in single precision.
    assert (gaps < (1e-5 if made.is_trained else 1e-10)).all() == made.is_efficient
    assert isinstance(explainer.seed, int)


@every
def test_several_outputs(made):
    explained = made.build(curved_columns)(X, **made.call)
    assert explained.values.shape == (4, M, 3)
    assert explained.base_values.shape == (4, 3)
    some = made.build(curved_columns, output_names=["u", "v", "w"])(X, outputs=[2, 0], **made.call)
    np.testing.assert_array_equal(some.values, explained.values[..., [2, 0]])
    assert list(some.output_names) == ["w", "u"]


@every
def test_equal_calls_give_equal_results_and_leave_the_global_generator(made):
    explainer, explained = built(made.name)
    state = np.random.get_state(legacy=False)["state"]["key"].copy()  # noqa: NPY002
    check_same(explainer(X, **made.call), explained)
    check_same(made.build()(X, **made.call), explained)
    np.testing.assert_array_equal(np.random.get_state(legacy=False)["state"]["key"], state)  # noqa: NPY002
    is_drawn = made.name not in ("cshapley", "lshapley", "myerson", "hierarchy", "asymmetric")
    if made.budget is not None and is_drawn:
        others = made.build(seed=1)(X, **made.call)
        assert (others.values != explained.values).any()


@every
def test_rows_do_not_depend_on_the_other_rows(made):
    explainer, explained = built(made.name)
    alone = explainer(X[2:3], **made.call)
    np.testing.assert_allclose(alone.values[0], explained.values[2], rtol=0, atol=1e-6)


@every
def test_error_bounds_are_given_or_refused(made):
    explainer = built(made.name)[0]
    if not made.has_errors:
        with pytest.raises(InvalidArgumentError, match="error_bounds"):
            explainer(X, error_bounds=True, **made.call)
        return
    explained = explainer(X, error_bounds=True, **made.call)
    assert (explained.lower_bounds <= explained.values).all()
    assert (explained.values <= explained.upper_bounds).all()
    assert (explained.error_std >= 0).all()
    assert (explained * -1).lower_bounds is not None
    assert explained.mean(0).lower_bounds is None


@some
def test_shap_values_are_the_values(made):
    explainer, explained = built(made.name)
    options = {} if made.budget is None else {"nsamples": made.budget - 2}
    got = explainer.shap_values(X, silent=True, **options)
    assert type(got) is np.ndarray
    np.testing.assert_array_equal(got, explained.values)
    one = explainer.shap_values(X[0], silent=True, **options)
    np.testing.assert_allclose(one, explained.values[0], rtol=0, atol=1e-6)
    if made.is_trained:
        refined = explainer.shap_values(X, nsamples=50, silent=True)
        np.testing.assert_array_equal(refined, explainer(X, max_evals=52, silent=True).values)


# The older calls


@some
def test_expected_value_is_the_base_value(made):
    explainer, explained = built(made.name)
    fresh = made.build()
    assert fresh.expected_value == pytest.approx(curved(BACKGROUND).mean(), abs=1e-12)
    assert explainer.expected_value == pytest.approx(explained.base_values[0], abs=1e-12)
    assert type(fresh.expected_value) is float


@every
def test_check_additivity_passes_exactly_where_the_sum_holds(made):
    explainer = built(made.name)[0]
    if made.is_efficient:
        explainer(X, check_additivity=True, **made.call)
        return
    with pytest.raises(ShapleyExtError, match="check_additivity"):
        explainer(X, check_additivity=True, **made.call)


# Rows in other forms


@some
def test_one_row_is_explained_like_the_first_of_a_table(made):
    explainer, explained = built(made.name)
    for row in (pd.Series(X[0], index=COLUMNS), X[0], X[0].tolist()):
        one = explainer(row, **made.call)
        assert one.values.shape == (M,)
        assert np.ndim(one.base_values) == 0
        np.testing.assert_allclose(one.values, explained.values[0], rtol=0, atol=1e-6)


@some
def test_frames_reach_the_model_as_frames(made):
    x, background = pd.DataFrame(X, columns=COLUMNS), pd.DataFrame(BACKGROUND, columns=COLUMNS)
    explained = made.build(of_frames, background)(x, **made.call)
    assert list(explained.feature_names) == COLUMNS
    np.testing.assert_allclose(explained.values, built(made.name)[1].values, rtol=0, atol=1e-6)


# Files and threads


@every
def test_pickles_explain_alike(made):
    explainer, explained = built(made.name)
    check_same(pickle.loads(pickle.dumps(explainer))(X, **made.call), explained)


@every
@pytest.mark.parametrize("loader", ["own class", "shap.Explainer"])
def test_saved_explainers_keep_seed_and_options(made, loader):
    explainer = made.build(seed=11, feature_names=COLUMNS, **made.other)
    if made.is_trained:
        explainer.fit()
    kind = made.explainer if loader == "own class" else shap.Explainer
    loaded = reloaded(explainer, kind)
    assert type(loaded) is made.explainer
    assert (loaded.seed, list(loaded.feature_names)) == (11, COLUMNS)
    for name, value in (made.options | made.other).items():
        assert getattr(loaded, name) == value, name
    check_same(loaded(X, **made.call), explainer(X, **made.call))


@some
def test_threads_explain_alike(made):
    explainer, explained = built(made.name)
    with ThreadPoolExecutor(3) as pool:
        for one in pool.map(lambda _: explainer(X, **made.call), range(3)):
            check_same(one, explained)


# Wrong calls


@every
def test_budgets_that_are_too_small_say_what_is_needed(made):
    words = "max_evals" if made.budget is None else r"max_evals=1\b"
    with pytest.raises(ShapleyExtError, match=words):
        built(made.name)[0](X, max_evals=1)


ROWS = [X[:, :3], X[:0], X[0, :3], None, "text", 3.0, X[None], [[1.0] * M, [1.0]]]


@some
@pytest.mark.parametrize(
    "wrong",
    [
        *({"max_evals": wrong} for wrong in (-1, 1.5, "many", True, None, [100])),
        {"main_effects": True},
        {"error_bounds": 1},
        {"silent": "no"},
        {"batch_size": 0},
        {"check_additivity": None},
        {"outputs": "all"},
        {"outputs": [7]},
        *({"X": wrong} for wrong in ROWS),
    ],
    ids=str,
)
def test_calls_refuse_what_they_cannot_use(made, wrong):
    arguments = {"X": X} | made.call | wrong
    with pytest.raises(ShapleyExtError, match=next(iter(wrong))):
        built(made.name)[0](arguments.pop("X"), **arguments)
