"""SimSHAP and FastSHAP through shap: training, explaining, streaming, files and plots."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import shap
from hypothesis import given, settings
from hypothesis import strategies as st

import shap_ext
from shapley_adapters.errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ShapleyExtError,
    ShapleyExtWarning,
)

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from tests.helpers.signed_files import parts_of, signed  # noqa: E402

N = 6
RNG = np.random.default_rng(0)
X = RNG.normal(size=(300, N)).astype(np.float32)
INTO = RNG.normal(size=(N, 5))
REFERENCE = np.zeros((1, N), dtype=np.float32)
FEW: dict[str, Any] = {"epochs": 15, "seed": 0, "rows_per_step": 32}


def curved(x):
    return np.tanh(np.asarray(x, dtype=float) @ INTO).sum(axis=1)


def two_outputs(x):
    return np.stack([curved(x), np.asarray(x, dtype=float).sum(axis=1)], axis=1)


@pytest.fixture(scope="module")
def explainer():
    return shap.Explainer(curved, REFERENCE, algorithm="simshap", training_data=X, **FEW).fit()


def test_torch_modules_and_value_functions():
    net = torch.nn.Sequential(torch.nn.Linear(N, 8), torch.nn.Tanh(), torch.nn.Linear(8, 3)).eval()
    made = shap_ext.SimShapExplainer(
        net,
        REFERENCE,
        training_data=X,
        value_function=shap_ext.ValueFunction("log_probability", scale="logits"),
        **FEW,
    )
    found = made(X[:5])
    assert found.shape == (5, N)
    wanted = torch.log_softmax(net(torch.as_tensor(X[:5])), dim=1).max(dim=1).values
    total = found.values.sum(axis=1) + found.base_values
    np.testing.assert_allclose(total, wanted.detach().numpy(), atol=1e-5)


def test_streams_of_memory_mapped_rows(explainer, tmp_path):
    rows = np.lib.format.open_memmap(
        tmp_path / "rows.npy", "w+", dtype=np.float32, shape=(40_000, N)
    )
    rows[:] = np.random.default_rng(2).normal(size=rows.shape)
    out = np.lib.format.open_memmap(tmp_path / "out.npy", "w+", shape=rows.shape)
    assert explainer.stream(rows, out, silent=True) is out
    explainer.efficient = False
    try:
        np.testing.assert_allclose(out[:50], explainer(rows[:50]).values, atol=1e-6)
        np.testing.assert_allclose(out[-50:], explainer(rows[-50:]).values, atol=1e-6)
    finally:
        explainer.efficient = True
    frame = pd.DataFrame(rows[:100])
    np.testing.assert_allclose(explainer.stream(frame, silent=True), out[:100], atol=1e-6)
    with pytest.raises(InvalidArgumentError, match="out"):
        explainer.stream(rows, out[:5], silent=True)


def test_files(explainer, tmp_path):
    path = tmp_path / "trained.safetensors"
    explainer.save_trained(path)
    loaded = shap.Explainer(curved, REFERENCE, algorithm="simshap", trained=path)
    np.testing.assert_array_equal(loaded(X[:9]).values, explainer(X[:9]).values)
    with pytest.raises(InvalidArgumentError, match="another model"):
        shap.Explainer(lambda x: 2 * curved(x), REFERENCE, algorithm="simshap", trained=path)
    with pytest.raises(InvalidArgumentError, match="another model, or with another reference"):
        shap.Explainer(curved, REFERENCE + 1, algorithm="simshap", trained=path)
    with pytest.raises(InvalidArgumentError, match="1 outputs"):
        shap.Explainer(two_outputs, REFERENCE, algorithm="simshap", trained=path)


def test_files_refuse_other_models_where_features_are_given(tmp_path):
    """Whatever the network sees, the model is run on rows as they were."""
    frame = pd.DataFrame(
        {
            "a": ["x", "y"] * 20,
            "b": np.linspace(-1, 1, 40),
            "c": pd.Categorical(list("uvwz") * 10, categories=list("zwvuq")),
            "d": np.arange(40) % 3 == 0,
            "e": pd.date_range("2020-01-01", periods=40),
            7: pd.array([1, None] * 20, dtype="Int64"),
        }
    )

    def model(rows):
        assert list(rows.dtypes) == list(frame.dtypes)
        return rows["b"].to_numpy() * (rows["a"] == "x") + rows["c"].cat.codes + rows["d"]

    def explainer(model, **options):
        features = lambda rows: rows[["b", "b"]].to_numpy()  # noqa: E731
        return shap_ext.SimShapExplainer(model, frame[:1], features=features, **FEW, **options)

    made = explainer(model, training_data=frame)
    wanted = made(frame[:4])
    made.save_trained(tmp_path / "a")
    again = explainer(model, trained=tmp_path / "a")
    np.testing.assert_array_equal(again(frame[:4]).values, wanted.values)
    with pytest.raises(InvalidArgumentError, match="another model"):
        explainer(lambda rows: -model(rows), trained=tmp_path / "a")


class Thing:
    pass


def test_files_say_where_no_model_can_be_told(tmp_path):
    frame = pd.DataFrame({"a": [Thing() for _ in range(40)], "b": np.arange(40.0)})

    def explainer(**options):
        return shap_ext.SimShapExplainer(
            lambda rows: rows["b"].to_numpy(),
            frame[:1],
            features=lambda rows: rows[["b"]].to_numpy(),
            **FEW,
            **options,
        )

    explainer(training_data=frame).fit().save_trained(tmp_path / "a")
    with pytest.warns(ShapleyExtWarning, match="cannot check whether"):
        explainer(trained=tmp_path / "a")


def test_wrong_calls(explainer):
    for options in ({"max_seconds": 1.0}, {"interactions": True}):
        with pytest.raises(InvalidArgumentError, match=next(iter(options))):
            explainer(X[:2], **options)
    with pytest.raises(InvalidArgumentError, match="training_data"):
        shap_ext.SimShapExplainer(curved, REFERENCE, **FEW)(X[:2])
    with pytest.raises(InvalidArgumentError, match="Explain a ConditionalMean"):
        shap_ext.SimShapExplainer(
            curved, shap_ext.maskers.Gaussian(X), training_data=X, **FEW
        ).fit()


def test_frames_of_booleans_and_numbers():
    """As `pd.get_dummies` makes them; nullable columns too."""
    frame = pd.DataFrame(X, columns=list("abcdef")).assign(
        e=X[:, 4] > 0, f=pd.array((X[:, 5] > 0).astype(int), dtype="Int64")
    )

    def model(rows):
        return curved(np.asarray(rows, dtype=float))

    made = shap.Explainer(
        model, frame[:1], algorithm="simshap", training_data=frame, n_mixed_rows=30, **FEW
    )
    assert made(frame[:4]).shape == (4, N)
    words = frame.assign(g=pd.Categorical(["x", "y"] * 150))
    other = shap_ext.SimShapExplainer(
        lambda rows: model(rows.drop(columns="g")), words[:1], training_data=words, **FEW
    )
    with pytest.raises(InvalidArgumentTypeError, match=r"\['g'\].*features="):
        other.fit()


def test_missing_values_are_filled_in_by_features():
    holes = X.copy()
    holes[::7, 1] = np.nan

    def model(x):
        return curved(np.nan_to_num(x, nan=1.0))

    def explainer(**options):
        return shap.Explainer(
            model, REFERENCE, algorithm="simshap", training_data=holes, **FEW, **options
        )

    with pytest.raises(InvalidArgumentError, match="row 0.*features="):
        explainer().fit()
    found = explainer(features=lambda x: np.c_[np.nan_to_num(x), np.isnan(x)])(holes[:9])
    assert np.isfinite(found.values).all()


def test_streams_say_which_row_is_missing_something(explainer):
    rows = np.zeros((20_000, N), dtype=np.float32)
    rows[18_000, 2] = np.nan
    with pytest.raises(InvalidArgumentError, match="row 18000"):
        explainer.stream(rows, silent=True)


# --- networks of piecewise-linear functions ---


def steps(x):
    x = np.asarray(x, dtype=float)
    return np.sign(x[:, 0] - 0.3) * np.where(x[:, 1] > -0.5, 2.0, -1.0) + np.sign(x[:, 2] - 0.7)


def embeddings(model, rows, **options):
    return shap.Explainer(
        model,
        rows[:1] * 0,
        training_data=rows,
        student="embeddings",
        **({"algorithm": "simshap"} | FEW | options),
    )


def test_embeddings_need_the_feature_of_each_number_that_features_makes():
    def twice(rows):
        return np.concatenate([rows, rows**2], axis=1)

    with pytest.raises(InvalidArgumentError, match=r"12 numbers in a row for 6 features.*players"):
        embeddings(steps, X, features=twice).fit(silent=True)
    options = {"players": [0, 1, 2, 3, 4, 5] * 2}
    made = embeddings(steps, X, features=twice, student_options=options).fit(silent=True)
    assert made(X[:3], silent=True).shape == (3, 6)


@pytest.mark.parametrize(
    ("options", "wanted"),
    [({}, "embeddings"), ({"features": np.square}, "mlp"), ({"preset": "paper"}, "mlp")],
    ids=["table", "features", "preset"],
)
def test_the_default_student_depends_on_the_inputs(options, wanted):
    made = shap_ext.SimShapExplainer(
        steps, REFERENCE, training_data=X[:40], epochs=1, seed=0, **options
    ).fit(silent=True)
    assert made.trained.description.network == wanted


def test_surrogates_are_not_made_of_embeddings():
    with pytest.raises(InvalidArgumentError, match=r"surrogate.*network='mlp'"):
        shap_ext.Surrogate(steps, network="embeddings", seed=0).fit(X)


# --- other files, other rows, interrupted ---


QUICK: dict[str, Any] = {**FEW, "epochs": 3}
EIGHTY = X[:80]


def made(algorithm="simshap", model=curved, **options):
    options = QUICK | {"training_data": EIGHTY} | options
    return shap.Explainer(model, REFERENCE, algorithm=algorithm, **options)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "trained"
    made().fit().save_trained(path)
    return path


# --- files ---


ROWS = st.sampled_from(
    [
        None,
        5,
        "array",
        [],
        {},
        {"array": [["a"]], "dtype": "<U100000000"},
        {"array": EIGHTY[:8].tolist(), "dtype": "V1000000000"},
        {"array": EIGHTY[:8].tolist(), "dtype": 5},
        {"array": EIGHTY[:8].tolist(), "dtype": "nothing"},
        {"array": EIGHTY[:8].tolist()},
        {"array": EIGHTY[:3].tolist(), "dtype": "<f4"},
        {"array": [[1.0], [1.0, 2.0]], "dtype": "<f4"},
        {"array": 5, "dtype": "<f4"},
        {"names": [], "columns": []},
        {"names": ["a"], "columns": 5},
        *(
            {"names": names, "columns": columns}
            for names, columns in [
                (["a"], [{"values": [1] * 8, "dtype": "<U100000000"}]),
                (["a"], [{"values": 5, "dtype": "int64"}]),
                (["a", "b"], [{"values": [1, 2], "dtype": "int64"}, {"values": []}]),
                (["a"], [{"codes": [7] * 8, "categories": {"values": [1], "dtype": "int64"}}]),
                (["a"], [{"values": ["x"] * 8, "dtype": "datetime64[ns]"}]),
                (["a"], [{"values": [1] * 8, "dtype": "datetime64[ns, Nowhere/None]"}]),
                (["a"], [{"values": [1] * 8, "dtype": "int64"}] * 2),
                ([{}], [{"values": [1] * 8, "dtype": "int64"}]),
            ]
        ),
    ]
)


@settings(max_examples=60, derandomize=True)
@given(rows=ROWS)
def test_kept_rows_that_were_changed_are_refused(rows, path, tmp_path):
    header, about, tensors = parts_of(path.read_bytes())
    about["description"]["host"] = {"rows": rows}
    (tmp_path / "a").write_bytes(signed(header, about, tensors))
    if rows is None:  # what the network saw of the rows is used
        made(trained=tmp_path / "a")
        return
    with pytest.raises(ShapleyExtError):
        made(trained=tmp_path / "a")


@pytest.mark.parametrize("columns", [5, "abcde", [], ["a"], [{}] * N])
def test_columns_of_surrogates_that_were_changed_are_refused(columns, tmp_path):
    frame = pd.DataFrame(EIGHTY, columns=list("abcdef"))
    shap_ext.Surrogate(curved, **QUICK).fit(frame).save(tmp_path / "whole")
    shap_ext.Surrogate.load(tmp_path / "whole", model=curved)
    header, about, tensors = parts_of((tmp_path / "whole").read_bytes())
    about["about"]["host"]["columns"] = columns
    (tmp_path / "a").write_bytes(signed(header, about, tensors))
    with pytest.raises(ShapleyExtError, match="again"):
        shap_ext.Surrogate.load(tmp_path / "a", model=curved)


def test_wide_tables_are_saved_without_their_rows(tmp_path):
    wide = np.random.default_rng(0).normal(size=(4, 30_000)).astype(np.float32)
    groups = {"first": list(range(15_000)), "second": list(range(15_000, 30_000))}

    def explainer(**options):
        return shap.Explainer(
            lambda x: np.asarray(x)[:, ::100].sum(axis=1),
            wide[:1] * 0,
            algorithm="simshap",
            groups=groups,
            student_options={"widths": (2,)},
            epochs=1,
            **options,
        )

    fitted = explainer(training_data=np.repeat(wide, 4, axis=0)).fit()
    fitted.save_trained(tmp_path / "a")
    loaded = explainer(trained=tmp_path / "a")
    np.testing.assert_array_equal(loaded(wide[:2]).values, fitted(wide[:2]).values)


def test_options_of_numpy_are_saved(tmp_path):
    made(student_options={"widths": (np.int64(8),)}).fit().save_trained(tmp_path / "a")
    about = parts_of((tmp_path / "a").read_bytes())[1]
    assert json.dumps(about["description"]["options"]) == '{"widths": [8]}'
    made(trained=tmp_path / "a")


# --- rows ---


def loader():
    data = torch.utils.data.TensorDataset(torch.as_tensor(EIGHTY))
    return torch.utils.data.DataLoader(data, batch_size=20)


@pytest.mark.parametrize(
    ("data", "came"),
    [
        (EIGHTY[:0], r"\(0, 6\)"),
        (EIGHTY[:1], r"\(1, 6\)"),
        (EIGHTY[0], r"\(6,\)"),
        (pd.DataFrame(EIGHTY)[:0], r"\(0, 6\)"),
        (loader(), "DataLoader"),
        ((row for row in EIGHTY), "generator"),
        (EIGHTY.tolist(), "list"),
    ],
    ids=["no rows", "one row", "a row", "empty frame", "loader", "generator", "list"],
)
def test_what_holds_no_rows_is_refused(data, came):
    with pytest.raises(InvalidArgumentError, match=rf"training_data.*{came}.*at least 2"):
        made(training_data=data).fit()
    with pytest.raises(InvalidArgumentError, match=came):
        made().fit(data)
