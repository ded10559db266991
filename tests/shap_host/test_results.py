"""What comes back: the fields of the Explanation, reproducibility, and saved explainers."""

import copy
import pickle
import time
from typing import Any

import numpy as np
import pandas as pd
import pytest
import shap

from shapley_adapters.errors import InvalidArgumentError
from tests.shap_host.games import curved, curved_columns, network, reloaded, rows

# No warnings in ordinary use.
pytestmark = pytest.mark.filterwarnings("error")

NAMES = ["enumeration", "shear"]
every_name = pytest.mark.parametrize("name", NAMES)
COLUMNS = list("abcdefghi")
X, BACKGROUND = rows(3, 9), rows(2, 9, seed=1)


def build(name="shear", model=curved, background=BACKGROUND, seed=0, **options):
    return shap.Explainer(model, background, algorithm=name, seed=seed, **options)


def budget(name, n_evaluations=110):
    """Leave something to chance where the estimator does; 2^9 = 512 coalitions are all."""
    return {} if name == "enumeration" else {"max_evals": n_evaluations}


# Fields


@pytest.mark.parametrize("rows_named", [True, False])
@pytest.mark.parametrize("names_given", [True, False])
@pytest.mark.parametrize("background_named", [True, False])
@pytest.mark.every_combination
def test_whose_feature_names_count(rows_named, names_given, background_named):
    frame, given = pd.DataFrame(X, columns=COLUMNS), [name.upper() for name in COLUMNS]
    background = pd.DataFrame(BACKGROUND, columns=COLUMNS) if background_named else BACKGROUND
    explainer = build(
        "enumeration",
        lambda x: curved(np.asarray(x)),
        background,
        feature_names=given if names_given else None,
    )
    sv = explainer(frame if rows_named else X)
    others = COLUMNS if background_named else [f"Feature {i}" for i in range(9)]
    assert sv.feature_names == (COLUMNS if rows_named else given if names_given else others)
    assert explainer.feature_names == (given if names_given else None)
    assert sv.error_std is sv.lower_bounds is sv.upper_bounds is sv.display_data is None


def test_names_may_be_any_sequence():
    explainer = build(
        model=curved_columns,
        feature_names=pd.Index(COLUMNS),
        output_names=np.array(["u", "v", "w"]),
    )
    sv = explainer(X, max_evals=110)
    assert sv.feature_names == COLUMNS
    assert explainer.output_names == ["u", "v", "w"]
    assert list(sv.output_names) == ["u", "v", "w"]


def test_slices_of_groups_keep_what_is_shown():
    x = np.array([[1.0, 0, 3], [0, 1, 4]])
    sv = build(
        "shear", curved, np.zeros((1, 3)), groups={"kind": [0, 1]}, feature_names=list("xyz")
    )(x, error_bounds=True)
    assert sv[0].display_data.tolist() == ["x", 3.0]
    assert sv[:, "kind"].display_data.tolist() == ["x", "y"]
    assert sv[0].feature_names == ["kind", "z"]


def test_compute_time_is_that_of_the_call():
    def slow(x):
        time.sleep(0.02)
        return curved(x)

    started = time.perf_counter()
    sv = build(model=slow)(X, max_evals=110)
    assert 0.02 < sv.compute_time <= time.perf_counter() - started + 0.01


# One row


@every_name
def test_explain_row_takes_what_shap_passes(name):
    arguments = {  # with which shap's own __call__ calls it
        "max_evals": 512,
        "main_effects": False,
        "error_bounds": False,
        "outputs": None,
        "silent": True,
    }
    made = build(name, curved_columns).explain_row(X[0], batch_size="auto", **arguments)
    theirs = shap.ExactExplainer(curved_columns, BACKGROUND)
    wanted = theirs.explain_row(X[0], batch_size=10, interactions=False, **arguments)
    np.testing.assert_allclose(made["values"], wanted["values"], rtol=0, atol=1e-9)
    np.testing.assert_allclose(made["expected_values"], wanted["expected_values"], atol=1e-9)
    assert [tuple(shape) for shape in made["mask_shapes"]] == [
        tuple(shape) for shape in wanted["mask_shapes"]
    ]
    assert set(wanted) <= set(made)


# Copies and files


def full(name="shear", model=curved_columns, background=BACKGROUND):
    """Return an explainer with nothing at its default."""
    own: dict[str, dict[str, Any]] = {
        "shear": {"cooperators": "random", "complement": "uniform", "efficient": False},
        "leastsquares": {"paired": False, "sizes": "leverage"},
    }
    return build(
        name,
        model,
        background,
        seed=11,
        feature_names=COLUMNS,
        output_names=["u", "v", "w"],
        linearize_link=False,
        groups={"pair": ["a", "i"]},
        **own[name],
    )


def assert_same(restored, explainer, explained=X):
    name = type(explainer).name
    assert type(restored) is type(explainer)
    options = ["seed", "feature_names", "output_names", "linearize_link", "groups"]
    options += ["cooperators", "complement", "efficient", "paired", "sizes"]
    for option in options:
        assert getattr(restored, option, None) == getattr(explainer, option, None), option
    evals = {} if name == "enumeration" else {"max_evals": 110}
    first, second = explainer(explained, **evals), restored(explained, **evals)
    np.testing.assert_array_equal(first.values, second.values)
    np.testing.assert_array_equal(first.base_values, second.base_values)
    assert first.feature_names == second.feature_names
    assert list(first.output_names) == list(second.output_names)


COPIES = {
    "pickle": lambda e: pickle.loads(pickle.dumps(e)),
    "deepcopy": copy.deepcopy,
    "copy": copy.copy,
}


@pytest.mark.parametrize("way", COPIES)
def test_copies_of_explainers_of_modules_and_frames(way):
    net = network(9, 3)
    explainer = full(model=net)
    assert_same(COPIES[way](explainer), explainer)
    frame = pd.DataFrame((X * 3).round().astype(int), columns=COLUMNS)
    background = pd.DataFrame(BACKGROUND, columns=COLUMNS)
    explainer = full(model=of_frame, background=background)
    assert_same(COPIES[way](explainer), explainer, frame)


def of_frame(frame):
    return curved_columns(frame[COLUMNS].to_numpy(float))


@pytest.mark.parametrize(
    "wrap",
    [lambda b: b, shap.maskers.Independent, shap.maskers.Partition],
    ids=["frame", "Independent", "Partition"],
)
def test_saved_explainers_of_frames(wrap):
    background = pd.DataFrame(rows(5, 9, seed=1), columns=COLUMNS)
    frame = pd.DataFrame(X, columns=COLUMNS)
    explainer = full(model=of_frame, background=wrap(background))
    assert_same(reloaded(explainer, shap.Explainer), explainer, frame)


def test_shap_loads_its_own_files_as_before():
    theirs = shap.PermutationExplainer(curved, BACKGROUND)
    assert type(reloaded(theirs, shap.Explainer)) is shap.PermutationExplainer


# Estimates from the first evaluations of a call


def test_a_trace_ends_at_the_estimate():
    explainer = build("oddgp")
    e = explainer(X, max_evals=200, trace=True, silent=True)
    trace = explainer.last_estimate.trace
    np.testing.assert_array_equal(trace.values[:, :, -1, 0], e.values)
    assert (trace.evaluations[:, -1] == 200).all()
    with pytest.raises(InvalidArgumentError, match="trace=True"):
        explainer(X, trace=True, interactions=True)
