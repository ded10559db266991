"""Nullable columns of pandas in batches, for models of arrays."""

import numpy as np
import pandas as pd
import pytest

import shap_ext

NULLABLE: dict[str, list] = {"Int64": [1, 2], "Float64": [1.5, 2.5], "boolean": [True, False]}


@pytest.mark.parametrize("dtype", NULLABLE)
@pytest.mark.parametrize("has_nulls", [False, True])
def test_nullable_columns_become_floats_in_batches(dtype, has_nulls):
    cells = [NULLABLE[dtype][0], None] if has_nulls else NULLABLE[dtype]
    frame = pd.DataFrame({"x": pd.array(cells, dtype=dtype), "y": [3.0, 4.0]})
    seen = []

    def of_arrays(rows):
        seen.append(rows.dtype)
        return np.nan_to_num(rows, nan=9.0).prod(axis=1)

    explainer = shap_ext.EnumerationExplainer(of_arrays, np.zeros((1, 2)), seed=0)
    answer = explainer.batch_function(frame.head(1))(frame)
    floats = frame.to_numpy(dtype=float, na_value=np.nan)
    np.testing.assert_array_equal(answer[["shap_x", "shap_y"]], explainer(floats).values)
    assert set(seen) == {np.dtype(float)}


def test_nullable_numbers_beside_texts_hold_nan():
    frame = pd.DataFrame({"x": pd.array([1, None], dtype="Int64"), "word": ["a", "b"]})
    explainer = shap_ext.EnumerationExplainer(
        lambda rows: np.isnan(rows[:, 0].astype(float)) + 0.0,
        np.array([[0.0, "c"]], dtype=object),
        seed=0,
    )
    answer = explainer.batch_function(frame.head(1))(frame)
    assert answer["shap_x"].tolist() == [0.0, 1.0]


@pytest.mark.parametrize(
    ("cells", "kept"),
    [([1, 2, None], "Int64"), ([True, False, None], "boolean"), ([1.5, 2.5, None], "float64")],
)
def test_kept_columns_may_lack_entries_that_the_example_has(cells, kept):
    """An engine's first row is no nullable column, and its later batches hold NaN or None."""
    frame = pd.DataFrame({"x": [1.0, 2.0, 3.0], "y": [3.0, 4.0, 5.0], "kept": cells})
    example = frame.head(1).astype({"kept": type(cells[0])})
    explainer = shap_ext.EnumerationExplainer(lambda rows: rows.sum(axis=1), np.zeros((1, 2)))
    explain = explainer.batch_function(example, keep=["kept"])
    answer = explain(frame)["kept"]
    assert str(answer.dtype) == kept
    assert answer.isna().tolist() == [False, False, True]
    assert answer[:2].tolist() == cells[:2]
    assert explain(frame[:2])["kept"].dtype == example["kept"].dtype


MIXED = pd.DataFrame(
    {
        "x": [1.5, -2.5, 0.5, 4.0],
        "n": [3, 1, 2, 5],
        "flag": [True, False, False, True],
        "text": ["u", "v", "v", "u"],
        "kind": pd.Categorical(list("abba")),
    }
)
BACKENDS = {
    "plain": MIXED,
    "numpy_nullable": MIXED.convert_dtypes(dtype_backend="numpy_nullable"),
    "pyarrow": None,
}


def frame_of(backend):
    if backend != "pyarrow":
        return BACKENDS[backend]
    pytest.importorskip("pyarrow")
    return MIXED.convert_dtypes(dtype_backend="pyarrow")


@pytest.mark.parametrize("of_rows", BACKENDS)
@pytest.mark.parametrize("of_background", BACKENDS)
def test_a_model_gets_the_types_of_the_background(of_rows, of_background):
    seen = set()

    def model(rows):
        seen.add(tuple(rows.dtypes))
        texts = (rows["text"] == "u").to_numpy(float) + (rows["kind"] == "a").to_numpy(float)
        numbers = [rows[name].to_numpy(float) for name in ("x", "n", "flag")]
        return numbers[0] * numbers[1] * (1 + texts) + numbers[2]

    background, rows = frame_of(of_background)[:2], frame_of(of_rows)[2:]
    explainer = shap_ext.EnumerationExplainer(model, background, seed=0)
    values = explainer(rows, silent=True).values
    assert seen == {tuple(background.dtypes)}
    one = explainer(rows.iloc[1], silent=True).values
    plain = shap_ext.EnumerationExplainer(model, MIXED[:2], seed=0)(MIXED[2:], silent=True)
    np.testing.assert_array_equal(values, plain.values)
    np.testing.assert_array_equal(one, plain.values[1])


@pytest.mark.parametrize("backend", ["numpy_nullable", "pyarrow"])
def test_values_that_the_types_of_the_background_cannot_hold(backend):
    """Nulls in whole numbers of NumPy, and fractions in whole numbers, make columns of floats."""
    types = set()

    def model(rows):
        types.add(rows["n"].dtype)
        return rows["x"].to_numpy(float) + rows["n"].to_numpy(float, na_value=9.0)

    numbers, nulls = MIXED[["x", "n"]], frame_of(backend)[["x", "n"]].copy()
    nulls.loc[3, "n"] = pd.NA
    values = shap_ext.EnumerationExplainer(model, numbers[:2], seed=0)(
        nulls[2:], silent=True
    ).values
    assert types == {np.dtype(float)}
    np.testing.assert_allclose(values, numbers[2:].assign(n=[2, 9]) - numbers[:2].mean())
    types.clear()
    fractions = numbers.assign(n=numbers["n"] + 0.5)
    shap_ext.EnumerationExplainer(model, nulls[:2], seed=0)(fractions[2:], silent=True)
    (dtype,) = types
    assert dtype == frame_of(backend)["x"].dtype
