"""Networks that explain, used as they should not be: other files, other rows, interrupted."""

import json
from typing import Any

import numpy as np
import pandas as pd
import pytest
import shap
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

import shap_ext
from shapley_adapters.errors import InvalidArgumentError, ShapleyExtError, ShapleyExtWarning

torch = pytest.importorskip("torch")
pytest.importorskip("safetensors")

from tests.helpers.signed_files import parts_of, signed  # noqa: E402

N = 5
RNG = np.random.default_rng(0)
X = RNG.normal(size=(80, N)).astype(np.float32)
INTO = RNG.normal(size=(N, 3))
REFERENCE = np.zeros((1, N), dtype=np.float32)
FEW: dict[str, Any] = {"epochs": 3, "seed": 0, "rows_per_step": 32}


def curved(x):
    return np.tanh(np.asarray(x, dtype=float) @ INTO).sum(axis=1)


def made(algorithm="simshap", model=curved, **options):
    options = FEW | {"training_data": X} | options
    return shap.Explainer(model, REFERENCE, algorithm=algorithm, **options)


@pytest.fixture(scope="module")
def path(tmp_path_factory):
    path = tmp_path_factory.mktemp("files") / "trained"
    made().fit().save_trained(path)
    return path


# --- files ---


def test_files_of_another_method_are_refused_with_the_right_one(path, tmp_path):
    with pytest.raises(InvalidArgumentError, match=r"trained by simshap.*algorithm='simshap'"):
        made("fastshap", trained=path)
    made("fastshap").fit().save_trained(tmp_path / "fast")
    with pytest.raises(InvalidArgumentError, match=r"trained by fastshap.*algorithm='fastshap'"):
        made("simshap", trained=tmp_path / "fast")
    with pytest.raises(InvalidArgumentError, match=r"labels='oddgp', not by simshap with 'contr"):
        made("simshap", trained=path, labels="controlled")
    made("simshap", labels="controlled").fit().save_trained(tmp_path / "controlled")
    assert made("simshap", trained=tmp_path / "controlled").labels == "controlled"


def test_files_of_surrogates_and_networks_are_told_apart(path, tmp_path):
    shap_ext.Surrogate(curved, **FEW).fit(X).save(tmp_path / "surrogate")
    with pytest.raises(InvalidArgumentError, match=r"of kind 'surrogate'.*Surrogate\.load"):
        made(trained=tmp_path / "surrogate")
    with pytest.raises(InvalidArgumentError, match=r"of kind 'explainer'.*trained="):
        shap_ext.Surrogate.load(path)


ROWS = st.sampled_from(
    [
        None,
        5,
        "array",
        [],
        {},
        {"array": [["a"]], "dtype": "<U100000000"},
        {"array": X[:8].tolist(), "dtype": "V1000000000"},
        {"array": X[:8].tolist(), "dtype": 5},
        {"array": X[:8].tolist(), "dtype": "nothing"},
        {"array": X[:8].tolist()},
        {"array": X[:3].tolist(), "dtype": "<f4"},
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


@settings(
    max_examples=60,
    deadline=None,
    derandomize=True,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
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
    frame = pd.DataFrame(X, columns=list("abcde"))
    shap_ext.Surrogate(curved, **FEW).fit(frame).save(tmp_path / "whole")
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
    data = torch.utils.data.TensorDataset(torch.as_tensor(X))
    return torch.utils.data.DataLoader(data, batch_size=20)


@pytest.mark.parametrize(
    ("data", "came"),
    [
        (X[:0], r"\(0, 5\)"),
        (X[:1], r"\(1, 5\)"),
        (X[0], r"\(5,\)"),
        (pd.DataFrame(X)[:0], r"\(0, 5\)"),
        (loader(), "DataLoader"),
        ((row for row in X), "generator"),
        (X.tolist(), "list"),
    ],
    ids=["no rows", "one row", "a row", "empty frame", "loader", "generator", "list"],
)
def test_what_holds_no_rows_is_refused(data, came):
    with pytest.raises(InvalidArgumentError, match=rf"training_data.*{came}.*at least 2"):
        made(training_data=data).fit()
    with pytest.raises(InvalidArgumentError, match=came):
        made().fit(data)


def test_rows_unlike_the_training_rows_are_warned_of():
    explainer = made(epochs=20, training_data=np.tile(X, (4, 1))).fit()
    explainer(X)  # no warning, which would be an error
    assert len(explainer.last_unlike_rows) == 0
    far = X.copy()
    far[[3, 30]] *= 100
    with pytest.warns(ShapleyExtWarning, match=r"2 of 80 rows are unlike.*rows 3, 30"):
        explainer(far)
    np.testing.assert_array_equal(explainer.last_unlike_rows, [3, 30])


# --- training ---


def test_bars_appear_after_ten_seconds_and_never_where_silent(monkeypatch, capfd):
    made().fit()
    assert capfd.readouterr() == ("", "")
    for module in ("explainers.amortized_explainer", "explainers.surrogate"):
        monkeypatch.setattr(f"shap_ext.{module}.BAR_DELAY", 0.0)
    made().fit(silent=True)
    made()(X[:3], silent=True)
    assert capfd.readouterr() == ("", "")
    made().fit()
    shown = capfd.readouterr().err
    for part in ("end points", "values of held-out rows", "labels of training rows", "fitting"):
        assert f"SimSHAP: {part}: 100%" in shown
    made(surrogate=True).fit()
    assert "Surrogate: outputs: 100%" in capfd.readouterr().err
