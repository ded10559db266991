"""Batches of a table become batches of attributions: in this process, and sent by pickle."""

import pickle
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import cloudpickle
import numpy as np
import pandas as pd
import pytest
import shap
from sklearn.ensemble import HistGradientBoostingClassifier

import shap_ext
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from tests.helpers.optional import captum_ext, nn, torch

COLUMNS = ["age", "income", "height"]


def table(n_rows=12, seed=0):
    random = np.random.default_rng(seed)
    frame = pd.DataFrame(random.normal(size=(n_rows, 3)), columns=COLUMNS)
    frame.insert(0, "id", np.arange(n_rows) + 100)
    frame["name"] = [f"row {n}" for n in range(n_rows)]
    return frame


def model(x):
    """Return an output of each row, of which no bit depends on the batch."""
    x = np.asarray(x, dtype=float)
    return np.sin(x).prod(axis=1) + x[:, 0] * x[:, 2]


def explainer(function=model, masker=None, **options):
    masker = np.full((2, 3), 0.1) if masker is None else masker
    return shap.Explainer(function, masker, algorithm="oddgp", seed=1, **options)


def through_pickle(function):
    return pickle.loads(cloudpickle.dumps(function))


def test_batches_hold_what_one_call_returns():
    rows = table()
    made = explainer()
    explain = made.batch_function(rows.head(1), keep=["id", "name"], max_evals=6, error_bounds=True)
    wanted = made(rows[COLUMNS].to_numpy(), max_evals=6, error_bounds=True)
    explain = through_pickle(explain)
    batches = list(explain.each_batch(iter([rows[:5], rows[5:6], rows[6:]])))
    found = pd.concat(batches)
    assert list(found.columns) == explain.columns
    np.testing.assert_array_equal(found[[f"shap_{c}" for c in COLUMNS]], wanted.values)
    np.testing.assert_array_equal(found[[f"shap_error_{c}" for c in COLUMNS]], wanted.error_std)
    np.testing.assert_array_equal(found["shap_base_value"], wanted.base_values)
    pd.testing.assert_frame_equal(found[["id", "name"]], rows[["id", "name"]])
    pd.testing.assert_index_equal(found.index, rows.index)
    for batch in (*batches, explain(rows[:0])):
        pd.testing.assert_series_equal(batch.dtypes, explain.meta.dtypes)


def test_frames_outputs_and_groups_name_the_columns():
    rows = table()
    classes = (rows["age"] > 0).to_numpy()
    boosted = HistGradientBoostingClassifier(max_iter=3, min_samples_leaf=2)
    boosted.fit(rows[COLUMNS], classes)
    made = explainer(boosted, rows[COLUMNS].head(3), groups={"person": ["age", "height"]},
                     output_names=["no", "yes"], model_output="probability")  # fmt: skip
    explain = made.batch_function(rows.head(1), features=COLUMNS, prefix="phi_")
    assert explain.columns == [
        "phi_person_no", "phi_income_no", "phi_person_yes", "phi_income_yes",
        "phi_base_value_no", "phi_base_value_yes",
    ]  # fmt: skip
    found, wanted = explain(rows), made(rows[COLUMNS])
    np.testing.assert_array_equal(found["phi_income_yes"], wanted.values[:, 1, 1])
    np.testing.assert_array_equal(found["phi_base_value_no"], wanted.base_values[:, 0])


def test_schemas_of_the_engines_name_the_same_columns():
    rows = table().astype({"id": "int32"})
    explain = explainer().batch_function(rows.head(1), keep=["id", "name"])
    assert explain.spark_schema == (
        "`id` int, `name` string, `shap_age` double, `shap_income` double, `shap_height` double, "
        "`shap_base_value` double"
    )
    assert len(explain.meta) == 0 and list(explain.meta) == explain.columns
    pa = pytest.importorskip("pyarrow", reason="pyarrow is not installed")
    assert explain.arrow_schema.names == explain.columns
    assert explain.arrow_schema.field("id").type == pa.int32()
    of_table = explain(pa.Table.from_pandas(rows))
    assert of_table.schema.equals(explain.arrow_schema)
    (batch,) = explain.each_batch(iter(pa.Table.from_pandas(rows).to_batches()))
    assert isinstance(batch, pa.RecordBatch) and batch.schema.equals(explain.arrow_schema)
    np.testing.assert_array_equal(of_table.to_pandas()["shap_age"], explain(rows)["shap_age"])


class Loading:
    """A model that counts its loads in this process."""

    n_loads = 0

    def __call__(self, x):
        return model(x)

    def __getstate__(self):
        return {"state": "not empty, so that it is set"}

    def __setstate__(self, state):
        Loading.n_loads += 1


def test_a_process_loads_the_model_once():
    rows = table(200)
    sent = cloudpickle.dumps(explainer(Loading()).batch_function(rows.head(1), keep=["id", "name"]))
    Loading.n_loads = 0
    functions = [pickle.loads(sent) for _ in range(8)]
    barrier = threading.Barrier(8)

    def run(function):
        barrier.wait()
        return function(rows)

    with ThreadPoolExecutor(8) as pool:
        found = list(pool.map(run, functions))
    assert Loading.n_loads == 1
    for one in found:
        pd.testing.assert_frame_equal(one, found[0])


def called(rows, batch=None, **options):
    """Make a function of batches, and call it with one."""
    explain = explainer().batch_function(rows, **options)
    return batch is not None and explain(batch)


ROWS, IDS = table(), {"keep": ["id", "name"]}


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: called(ROWS, ROWS.drop(columns="age"), **IDS), "batch has no column 'age'"),
        (lambda: called(ROWS, {"age": np.zeros(3)}, **IDS), "got dict.*batch_format='pandas'"),
        (lambda: called(ROWS[:0]), "at least one row.*without rows"),
        (lambda: called(ROWS, features=["weight"]), "example has no column 'weight'"),
        (lambda: called(ROWS, features=COLUMNS, keep=["age"], prefix=""), "named 'age'.*prefix"),
        (lambda: called(ROWS, keep=["key"]), "example has no column 'key'"),
        (lambda: called(ROWS[["age", "income", "income"]]), "several columns of the name 'income'"),
        (
            lambda: called(ROWS, ROWS[["age", *COLUMNS]], features=COLUMNS),
            "batch has several columns of the name 'age'",
        ),
        (
            lambda: explainer(partial(lambda _, x: model(x), threading.Lock())).batch_function(
                ROWS, **IDS
            ),
            "cannot be sent",
        ),
    ],
)
def test_what_cannot_be_explained_is_named(call, words):
    with pytest.raises((InvalidArgumentError, InvalidArgumentTypeError), match=words):
        call()


def test_captum_explains_batches_of_a_table():
    generator = torch.Generator().manual_seed(0)
    net = nn.Sequential(nn.Linear(3, 4), nn.Tanh(), nn.Linear(4, 2)).double().eval()
    with torch.no_grad():
        for parameter in net.parameters():
            parameter.copy_(torch.randn(parameter.shape, generator=generator))
    rows = table()
    method = captum_ext.OddGP(net, seed=0)
    options = {"target": 1, "n_samples": 6, "return_standard_error": True}
    explain = method.batch_function(rows.head(1), keep=["id", "name"], **options)
    explain = through_pickle(explain)
    inputs = torch.tensor(rows[COLUMNS].to_numpy())
    values, errors = method.attribute(inputs, **options)
    found = explain(rows)
    np.testing.assert_allclose(found[[f"attribution_{c}" for c in COLUMNS]], values, atol=1e-12)
    np.testing.assert_allclose(
        found[[f"attribution_error_{c}" for c in COLUMNS]], errors, atol=1e-12
    )
    of_both = method.batch_function(rows.head(1), features=COLUMNS)
    assert of_both.columns[:4] == [
        "attribution_age_0", "attribution_income_0", "attribution_height_0", "attribution_age_1",
    ]  # fmt: skip


def test_rows_of_a_frame_are_copied_once_and_not_for_each_batch():
    """Rows of a frame are stored by columns; to take some of them copies the whole table."""
    columns = np.random.default_rng(0).normal(size=(3, 50))
    frame = pd.DataFrame(dict(enumerate(columns)))
    explainer = shap_ext.RandomOrderExplainer(lambda rows: rows[:, 0], np.zeros((1, 3)))
    assert not frame.to_numpy().flags.c_contiguous
    assert explainer.explained_rows((frame,)).game.rows.flags.c_contiguous
