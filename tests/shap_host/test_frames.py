"""Frames of all column types, and the models that are trained on them."""

import numpy as np
import pandas as pd
import pytest
import shap
from slicer.slicer_internal import UnifiedDataHandler

import shap_ext  # noqa: F401 # it makes shap know the algorithms
from shap_ext.inputs.datasets import converted
from tests.shap_host.games import ROUNDING, Seen, oracle_of_frame

pytestmark = pytest.mark.versions

N_ROWS = 60
RANDOM = np.random.default_rng(0)
COLOURS, SIZES = ["red", "green", "blue"], ["s", "m", "l"]
FRAME = pd.DataFrame(
    {
        "number": RANDOM.normal(size=N_ROWS),
        "whole": RANDOM.integers(0, 5, N_ROWS),
        "text": RANDOM.choice(COLOURS, N_ROWS),
        "category": pd.Categorical(RANDOM.choice(SIZES, N_ROWS), categories=SIZES),
        "flag": RANDOM.random(N_ROWS) < 0.5,
        "nullable": pd.array(RANDOM.integers(0, 9, N_ROWS), dtype="Int64"),
        "time": pd.Timestamp("2020-01-01") + pd.to_timedelta(RANDOM.integers(0, 900, N_ROWS), "D"),
    }
)
MISSING = FRAME.copy()
for place, name in enumerate(["number", "text", "category", "nullable", "time"]):
    MISSING.loc[place, name] = None  # among the rows that are explained
    MISSING.loc[30 + place, name] = None  # and in the background


def by_columns(frame):
    """Return an output that uses each column as its type allows; wrong types fail."""
    number = frame["number"].fillna(-1).to_numpy()
    is_red = (frame["text"] == "red").to_numpy(dtype=float)
    size = frame["category"].cat.codes.to_numpy()
    flag = (~frame["flag"]).to_numpy(dtype=float)
    nullable = frame["nullable"].fillna(3).to_numpy(dtype=float)
    year = np.nan_to_num(frame["time"].dt.day_of_year.to_numpy(dtype=float), nan=7) / 365
    return np.tanh(number + size * flag) + is_red * nullable + year * frame["whole"].to_numpy()


@pytest.mark.parametrize("frame", [FRAME, MISSING], ids=["complete", "missing"])
@pytest.mark.parametrize("name", ["enumeration", "shear"])
def test_types_reach_the_model(frame, name):
    background, x = frame.iloc[30:35], frame.iloc[[0, 3]]
    seen = Seen(by_columns)
    sv = shap.Explainer(seen, background, algorithm=name, seed=0)(x)
    for call in seen.calls:
        pd.testing.assert_series_equal(call.dtypes, frame.dtypes)

    def typed(masked):
        return by_columns(masked.astype(frame.dtypes.to_dict()))

    np.testing.assert_allclose(sv.values, oracle_of_frame(typed, x, background), **ROUNDING)


def test_types_reach_the_model_through_shaps_maskers():
    """These keep the values of a frame, but not the types of its columns."""
    background, x = FRAME.iloc[30:36], FRAME.iloc[:3]
    wanted = shap.Explainer(by_columns, background, algorithm="enumeration")(x)
    for masker in (
        shap.maskers.Independent(background),
        shap.maskers.Partition(background, clustering=np.zeros((6, 4))),
    ):
        seen = Seen(by_columns)
        sv = shap.Explainer(seen, masker, algorithm="enumeration")(x)
        np.testing.assert_allclose(sv.values, wanted.values, **ROUNDING)
        pd.testing.assert_series_equal(seen.calls[-1].dtypes, FRAME.dtypes)


def test_columns_keep_their_type_where_another_loses_values_or_what_is_missing():
    columns = {"count": [1.5, 2], "flag": np.array([None, True], object), "whole": [1.0, 2.0]}
    dtypes = pd.Series({"count": np.dtype(int), "flag": np.dtype(bool), "whole": np.dtype(int)})
    made = converted(pd.DataFrame(columns), dtypes)
    assert made.dtypes.tolist() == [float, object, int]
    assert made.to_numpy(object).tolist() == [[1.5, None, 1], [2, True, 2]]


def test_categories_that_only_rows_or_background_have_are_joined():
    x = pd.DataFrame({"c": pd.Categorical(["s", "m"], categories=["m", "s"]), "n": [1.0, 2.0]})
    background = pd.DataFrame({"c": pd.Categorical(["l"], categories=["l", "s"]), "n": [0.0]})
    seen = Seen(lambda frame: (frame["c"] == "l").to_numpy() * 2.0 + frame["n"].to_numpy())
    sv = shap.Explainer(seen, background, algorithm="enumeration")(x)
    np.testing.assert_allclose(sv.values, [[-2.0, 1.0], [-2.0, 2.0]], **ROUNDING)
    assert list(seen.calls[-1]["c"].cat.categories) == ["l", "s", "m"]


def test_ordered_categories_of_different_orders_become_objects():
    """No order holds both; the model sees the values, and may refuse them."""
    ordered = [pd.CategoricalDtype(order, ordered=True) for order in (["s", "m"], ["m", "s"])]
    x = pd.DataFrame({"c": pd.Series(["s"], dtype=ordered[0])})
    background = pd.DataFrame({"c": pd.Series(["m"], dtype=ordered[1])})
    seen = Seen(lambda frame: (frame["c"] == "s").to_numpy(dtype=float))
    shap.Explainer(seen, background, algorithm="enumeration")(x)
    assert seen.calls[-1]["c"].dtype == object


def test_times_of_two_resolutions_stay_times():
    x = pd.DataFrame({"t": pd.to_datetime(["2021-03-04"]).astype("datetime64[ns]")})
    background = pd.DataFrame({"t": pd.to_datetime(["2020-01-01"]).astype("datetime64[s]")})
    seen = Seen(lambda frame: frame["t"].dt.year.to_numpy(dtype=float))
    sv = shap.Explainer(seen, background, algorithm="enumeration")(x)
    np.testing.assert_allclose(sv.values, [[1.0]], **ROUNDING)
    assert seen.calls[-1]["t"].dtype == np.dtype("datetime64[ns]")


def test_missing_in_row_and_background_costs_nothing():
    x = MISSING.iloc[:1].copy()
    for name in ("text", "category", "nullable", "time"):
        x[name] = pd.Series([None], dtype=x[name].dtype)
    x["number"] = np.nan
    explainer = shap.Explainer(by_columns, x, algorithm="enumeration")
    other = x.assign(whole=x["whole"] + 1)
    sv = explainer(other)
    assert explainer.last_estimate.evaluations.tolist() == [2]
    assert np.flatnonzero(sv.values[0]).tolist() == [1]


def test_an_explanation_does_not_visit_each_cell(monkeypatch):
    """shap's slicer takes some microseconds for each cell of a table of objects."""
    visited: list[object] = []
    max_dim = UnifiedDataHandler.max_dim

    def counted(part):
        visited.append(part)
        return max_dim(part)

    monkeypatch.setattr(UnifiedDataHandler, "max_dim", counted)
    frame = pd.concat([FRAME] * 5, ignore_index=True)
    explainer = shap.Explainer(by_columns, FRAME.iloc[:1], algorithm="randomorder", seed=0)
    sv = explainer(frame, max_evals=30)
    assert len(visited) < len(frame)
    assert (sv.data == frame.to_numpy(dtype=object)).all()
    assert (sv[3].data == frame.iloc[3].to_numpy(dtype=object)).all()
    assert sv[:, "text"].data.tolist() == frame["text"].tolist()
