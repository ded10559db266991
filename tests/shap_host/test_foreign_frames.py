"""Tables of polars, pyarrow and other packages as rows, backgrounds, batches and streams."""

import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext
from shapley_adapters.errors import InvalidArgumentTypeError, ShapleyExtWarning
from tests.shap_host.games import Seen

pytestmark = pytest.mark.versions

polars = pytest.importorskip("polars")
pyarrow = pytest.importorskip("pyarrow")


class Streamed:
    """A table that only has Arrow's protocol."""

    def __init__(self, table):
        self.table = table

    def __arrow_c_stream__(self, requested_schema=None):
        return self.table.__arrow_c_stream__(requested_schema)


class Interchanged:
    """A table that only has the older protocol of data frames."""

    def __init__(self, table):
        self.table = table

    def __dataframe__(self, nan_as_null=False, allow_copy=True):
        return self.table.__dataframe__(nan_as_null=nan_as_null, allow_copy=allow_copy)


KINDS = {
    "polars": polars.DataFrame,
    "pyarrow": pyarrow.table,
    "stream": lambda columns: Streamed(polars.DataFrame(columns)),
    "interchange": lambda columns: Interchanged(pyarrow.table(columns)),
}
NUMBERS = {
    "age": np.array([30, 41, 25, 60], dtype=np.int32),
    "income": np.array([1.5, 2.25, -3.0, 0.1]),
    "is_new": np.array([True, False, True, True]),
}


def model(frame):
    """Take a frame of any package."""
    age, income, is_new = (np.asarray(frame[name]) for name in NUMBERS)
    return age * income + 2.0 * is_new * income


def explained(rows, background, **options):
    explainer = shap.Explainer(model, background, algorithm="best", seed=0, **options)
    return explainer(rows)


@pytest.mark.parametrize("kind", KINDS)
def test_equals_the_call_with_pandas(kind):
    order = [3, 1, 0, 2]
    rest = {name: values[order] for name, values in NUMBERS.items()}
    make = KINDS[kind]
    answer = explained(make(NUMBERS), make(rest))
    expected = explained(pd.DataFrame(NUMBERS), pd.DataFrame(rest))
    np.testing.assert_array_equal(answer.values, expected.values)
    np.testing.assert_array_equal(answer.base_values, expected.base_values)
    np.testing.assert_array_equal(answer.data, expected.data)
    assert list(answer.feature_names) == ["age", "income", "is_new"]


@pytest.mark.parametrize("kind", ["polars", "pyarrow"])
def test_models_get_frames_of_the_package_of_the_background(kind):
    table, frame = KINDS[kind](NUMBERS), pd.DataFrame(NUMBERS)
    for background, rows in ((table, table), (table, frame), (frame, table)):
        seen = Seen(model)
        shap.Explainer(seen, background, algorithm="best", seed=0)(rows)
        assert {type(call) for call in seen.calls} == {type(background)}


def test_columns_keep_their_types():
    columns = {
        "small": polars.Series([1, 2], dtype=polars.Int8),
        "single": polars.Series([1.0, None], dtype=polars.Float32),
        "count": polars.Series([3, None]),
        "flag": polars.Series([True, None]),
        "word": polars.Series(["a", None]),
        "colour": polars.Series(["red", None], dtype=polars.Categorical),
        "size": polars.Series(["L", "S"], dtype=polars.Enum(["S", "M", "L"])),
        "when": polars.Series([0, 10**6]).cast(polars.Datetime("us")),
    }
    table = polars.DataFrame(columns)
    remember = Seen(lambda frame: np.asarray(frame["small"], dtype=float))
    seen = remember.calls
    shap.Explainer(remember, table, algorithm="best", seed=0)(table)
    assert seen[0].schema == table.schema
    assert any(frame["count"].null_count() and frame["flag"].null_count() for frame in seen)
    # Integers and booleans of one, floats of the other: the type of both.
    other = table.with_columns(polars.Series("small", [0.5, 1.5]), flag=polars.Series([1, 0]))
    shap.Explainer(remember, table, algorithm="best", seed=0)(other)
    assert seen[-1].schema == table.schema | {
        "small": polars.Float64,
        "count": polars.Int64,
        "flag": polars.Float64,
    }

    shap.Explainer(remember, table.to_pandas(), algorithm="best", seed=0)(table)
    assert isinstance(seen[-1], pd.DataFrame)


@pytest.mark.parametrize("kind", ["pyarrow", "pandas"])
def test_missing_categories_of_arrow_stay_missing(kind):
    table = pyarrow.table({"colour": pyarrow.array(["red", None, "blue"]).dictionary_encode()})
    rows = table if kind == "pyarrow" else table.to_pandas()

    def is_missing(frame):
        column = frame["colour"]
        return np.asarray(column.is_null() if kind == "pyarrow" else column.isna(), dtype=float)

    answer = shap.Explainer(is_missing, rows[:1], algorithm="best", seed=0)(table)
    assert answer.values.ravel().tolist() == [0.0, 1.0, 0.0]


@pytest.mark.parametrize("place", ["X", "masker"])
def test_dates_are_refused_by_name(place):
    dates = polars.DataFrame({"day": polars.Series([0, 1]).cast(polars.Date), "x": [1.0, 2.0]})
    numbers = polars.DataFrame({"day": [0, 1], "x": [1.0, 2.0]})
    rows, background = (dates, numbers) if place == "X" else (numbers, dates)
    with pytest.raises(InvalidArgumentTypeError, match=f"{place}: column 'day' holds Date.*cast"):
        shap.Explainer(lambda frame: frame["x"], background, algorithm="best", seed=0)(rows)


@pytest.mark.parametrize("place", ["X", "masker"])
def test_lazy_frames_of_polars_are_collected(place):
    table = polars.DataFrame(NUMBERS)
    rows, background = (table.lazy(), table) if place == "X" else (table, table.lazy())
    with pytest.warns(ShapleyExtWarning, match=f"^{place} is a lazy frame.*collect"):
        found = explained(rows, background)
    np.testing.assert_array_equal(found.values, explained(table, table).values)


def test_lazy_streams_and_batches_of_polars_are_collected(tmp_path):
    table = polars.DataFrame(NUMBERS)
    explainer = shap_ext.EnumerationExplainer(model, table, seed=0)
    with pytest.warns(ShapleyExtWarning, match="^rows is a lazy frame"):
        streamed = explainer.explain_stream(table.lazy(), tmp_path / "lazy.npz")[:].values
    np.testing.assert_array_equal(streamed, explainer(table).values)
    with pytest.warns(ShapleyExtWarning, match="^example is a lazy frame"):
        explain = explainer.batch_function(table.lazy())
    with pytest.warns(ShapleyExtWarning, match="^batch is a lazy frame"):
        answer = explain(table.lazy())
    assert answer.equals(explain(table))


def test_batches_come_back_as_they_went_in():
    frame = pd.DataFrame(NUMBERS | {"id": ["a", "b", "c", None]})
    table = polars.DataFrame(NUMBERS | {"id": ["a", "b", "c", None]})
    explainer = shap_ext.EnumerationExplainer(model, pd.DataFrame(NUMBERS), seed=0)
    explain = explainer.batch_function(table[:1], keep=["id"])
    expected = explainer.batch_function(frame.head(1), keep=["id"])(frame)
    answer = explain(table)
    assert isinstance(answer, polars.DataFrame)
    assert answer.columns == list(expected.columns)
    assert answer["id"].to_list() == ["a", "b", "c", None]
    np.testing.assert_array_equal(answer.drop("id").to_numpy(), expected.iloc[:, 1:].to_numpy())
    assert isinstance(explain(frame), pd.DataFrame)
    assert isinstance(explain(pyarrow.table(NUMBERS | {"id": ["a"] * 4})), pyarrow.Table)
