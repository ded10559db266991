"""Rows, backgrounds, maskers and groups in the forms in which users pass them."""

import warnings
from types import SimpleNamespace

import numpy as np
import pandas as pd
import pytest
import shap

import shap_ext
from shap_ext.games.table_games import TabularGame
from shapley_adapters.errors import ShapleyExtWarning
from tests.helpers.optional import nn, torch
from tests.shap_host.games import (
    ROUNDING,
    Seen,
    curved,
    network,
    of_module,
    oracle,
    oracle_of,
    rows,
)

# No warnings in ordinary use.
pytestmark = pytest.mark.filterwarnings("error")

NAMES = ["randomorder", "shear"]
every_name = pytest.mark.parametrize("name", NAMES)


def explain(model, background, explained, name="enumeration", **options):
    return shap.Explainer(model, background, algorithm=name, seed=0, **options)(explained)


# Arrays


@pytest.mark.parametrize("dtype", [np.float16, np.float32, np.float64, np.int32, np.int64, bool])
def test_models_see_the_type_that_rows_and_background_share(dtype):
    x = (rows(3, 4) > 0).astype(dtype)
    model = Seen(curved)
    sv = explain(model, x[:1], x[1:])
    assert {call.dtype for call in model.calls} == {np.dtype(dtype)}
    assert sv.data.dtype == dtype
    np.testing.assert_allclose(sv.values, oracle(curved, x[1:], x[:1]), **ROUNDING)


@pytest.mark.parametrize(
    "dtype", ["?", "i1", "u2", "i4", "i8", "f2", "f4", "f8", "c16", "M8[s]", "O"]
)
@pytest.mark.parametrize("n_background", [1, 4])
def test_masked_numbers_are_those_of_row_and_background_bit_by_bit(
    dtype, n_background, monkeypatch
):
    """Zeros keep their sign, missing numbers their bits, and whole numbers do not overflow."""
    monkeypatch.setattr("shap_ext.games.table_games._BLOCK_BYTES", 100)
    rng = np.random.default_rng(0)
    table = rng.integers(-128, 128, size=(9, 5)).astype(dtype)
    if table.dtype.kind in "fc":
        table[[0, 2, 4, 6], [0, 1, 2, 3]] = -0.0, np.nan, np.inf, -np.inf
    players, coalitions = np.array([0, 2, 1, 0, 1]), rng.random((20, 3)) < 0.5
    rows, present = rng.integers(9, size=20), coalitions[:, None, players]
    game = SimpleNamespace(rows=table, background=table[:n_background], players=players)
    masked = TabularGame._masked(game, rows, coalitions)  # type: ignore[arg-type]
    expected = np.where(present, table[rows][:, None], game.background)
    assert masked.dtype == expected.dtype
    assert masked.tobytes() == expected.tobytes()


def test_later_changes_of_the_background_do_not_reach_the_explainer():
    x, background = rows(2, 4), rows(3, 4, seed=1)
    explainer = shap.Explainer(curved, background, algorithm="shear", seed=0)
    before = explainer(x).values
    background[:] = 0
    np.testing.assert_array_equal(explainer(x).values, before)


# Features that equal the background


@every_name
@pytest.mark.parametrize("scale", [1e-9, 1.0, 1e9])
def test_equal_features_get_zero_and_different_ones_do_not(name, scale):
    # shap compares by np.isclose: on these scales 1e-9 it takes all features for equal, and on
    # 1e9 those that differ in the sixth digit.
    background = np.array([[1.0, 2.0, 3.0, 4.0]]) * scale
    x = background + np.array([[0.0, 1e-6, 0.0, -1e-6]]) * scale

    def model(x):
        moved = (x / scale - background / scale) * 1e6
        return 2 * moved[:, 1] * (1 + moved[:, 3]) + moved[:, 0] + moved[:, 2]

    values = explain(model, background, x, name).values[0]
    assert values[0] == 0.0
    assert values[2] == 0.0
    # v = 2a(1 + b) with a = 1, b = -1: φ_a = 2 - 1, φ_b = -1. The differences keep 9 digits.
    np.testing.assert_allclose(values[[1, 3]], [1.0, -1.0], rtol=0, atol=1e-7)


def test_numbers_missing_in_row_and_background_cost_no_evaluations():
    x, background = np.array([[np.nan, 1.0, 2.0]]), np.array([[np.nan, 3.0, 4.0]])
    explainer = shap.Explainer(
        lambda masked: np.nansum(masked, axis=1) ** 2, background, algorithm="enumeration"
    )
    np.testing.assert_allclose(explainer(x).values, [[0.0, -20.0, -20.0]], **ROUNDING)
    assert explainer.last_estimate.evaluations.tolist() == [4]


def test_equal_features_cost_no_evaluations():
    background = rows(1, 30)
    x = background.copy()
    x[0, :5] += 1
    explainer = shap.Explainer(curved, background, algorithm="shear")
    sv = explainer(x, max_evals=32)
    assert explainer.last_estimate.evaluations.tolist() == [32]
    assert (sv.values[0, 5:] == 0).all()
    # A feature that equals one background row but not the other counts.
    explainer = shap.Explainer(curved, np.concatenate([background, x]), algorithm="randomorder")
    explainer(background, max_evals=100)
    assert explainer.last_estimate.evaluations.tolist() == [32]


# DataFrames


MIXED = pd.DataFrame(
    {
        "count": np.array([1, 2, 3, 4], dtype=np.int64),
        "flag": [True, False, True, False],
        "size": [0.5, 1.5, -2.5, 3.5],
        "small": np.array([0.25, -1.0, 2.0, 0.5], dtype=np.float32),
    }
)


def test_torch_modules_take_frames_of_numbers_and_booleans():
    """As get_dummies makes them; plots take means and colours of their data."""
    net, background, x = network(4), MIXED.iloc[:2], MIXED.iloc[2:]
    sv = explain(net, background, x)
    assert sv.data.dtype.kind == "f"
    np.testing.assert_array_equal(sv.data[0], [3, 1, -2.5, 2])
    wanted = oracle(
        lambda x: of_module(net)(x)[:, 0], x.to_numpy(float), background.to_numpy(float)
    )
    np.testing.assert_allclose(sv.values, wanted, **ROUNDING)


def test_background_types_hold_where_the_rows_are_an_array():
    frame = pd.DataFrame({"colour": pd.Categorical(["red", "blue", "green"]), "count": [1, 2, 3]})
    model = Seen(lambda frame: frame["colour"].cat.codes * frame["count"].to_numpy(float))
    sv = explain(model, frame.iloc[:1], frame.iloc[1:].to_numpy())
    pd.testing.assert_series_equal(model.calls[-1].dtypes, frame.dtypes)
    # red, blue, green are 2, 0, 1.
    np.testing.assert_allclose(sv.values, [[-3.0, 1.0], [-2.0, 3.0]], **ROUNDING)


def test_frames_without_a_background_frame_reach_the_model_as_arrays():
    frame = pd.DataFrame(rows(2, 3), columns=list("abc"))
    model = Seen(curved)
    sv = explain(model, np.zeros((1, 3)), frame)
    assert all(type(call) is np.ndarray for call in model.calls)
    assert sv.feature_names == list("abc")


# Backgrounds and maskers


def test_clustering_of_partition_maskers_is_handed_on():
    masker = shap.maskers.Partition(rows(20, 4, seed=1))
    sv = explain(curved, masker, rows(3, 4))
    assert sv.clustering.shape == (3, 3, 4)
    np.testing.assert_array_equal(sv.clustering[1], masker.clustering)
    np.testing.assert_allclose(sv.values, oracle(curved, rows(3, 4), masker.data), **ROUNDING)
    theirs = shap.PartitionExplainer(curved, masker)(rows(3, 4))
    np.testing.assert_array_equal(sv[0].clustering, theirs[0].clustering)
    explainer = shap.Explainer(curved, masker, algorithm="oddgp", seed=0)
    made = explainer.explain_row(rows(3, 4)[0], error_bounds=True)
    np.testing.assert_array_equal(made["clustering"], masker.clustering)
    assert made["values"].shape == made["error_std"].shape == (4,)
    assert explain(curved, rows(20, 4), rows(3, 4)).clustering is None
    grouped = explain(curved, masker, rows(3, 4), groups={"pair": [0, 1]})
    assert grouped.clustering is None  # it is one of columns, not of players


def test_more_background_rows_than_shap_keeps_are_announced():
    background = rows(130, 3)
    with pytest.warns(ShapleyExtWarning, match=r"masker has 130 rows, of which 100 are drawn"):
        explainer = shap.Explainer(curved, background, algorithm="shear")
    assert len(explainer.masker.data) == 100
    with pytest.warns(ShapleyExtWarning, match="130 rows"):
        shap_ext.EnumerationExplainer(curved, pd.DataFrame(background))
    # As the warning says: this way all are used, in silence.
    masker = shap.maskers.Independent(background, max_samples=130)
    sv = explain(curved, masker, rows(1, 3))
    np.testing.assert_allclose(sv.values, oracle(curved, rows(1, 3), background), **ROUNDING)
    shap.Explainer(curved, background[:100], algorithm="shear")


def test_functions_as_maskers_may_return_frames_and_reuse_their_memory():
    buffer = np.empty((1, 3))

    def reusing(mask, x):
        buffer[:] = np.where(mask, x, 0)
        return buffer

    def of_frames(mask, x):
        return pd.DataFrame(np.where(mask, x, 0)[None], columns=list("abc"))

    x = rows(2, 3)
    wanted = oracle(curved, x, np.zeros((1, 3)))
    np.testing.assert_allclose(explain(curved, reusing, x).values, wanted, **ROUNDING)
    model = Seen(lambda frame: curved(frame.to_numpy()))
    np.testing.assert_allclose(explain(model, of_frames, x).values, wanted, **ROUNDING)
    assert all(list(call.columns) == list("abc") for call in model.calls)


def test_functions_as_maskers_may_return_another_number_of_rows_for_each_row():
    def masker(mask, x):
        n_rows = 1 if x[0] > 0 else 4
        return np.where(mask, x, np.arange(float(n_rows))[:, None])

    x = np.array([[1.0, 2.0, 3.0], [-1.0, 0.5, 2.0]])
    sv = explain(curved, masker, x)
    for place, n_rows in enumerate((1, 4)):
        background = np.repeat(np.arange(float(n_rows))[:, None], 3, axis=1)
        np.testing.assert_allclose(
            sv.values[place], oracle(curved, x[[place]], background)[0], **ROUNDING
        )


@every_name
def test_models_of_several_inputs_give_one_explanation_for_each(name):
    def model(x, y):
        return curved(np.concatenate([x, y], axis=1))

    def masker(mask, x, y):
        return (np.where(mask[:2], x, 0)[None], np.where(mask[2:], y, 0)[None])

    x, y = rows(3, 2), rows(3, 3, seed=1)
    first, second = shap.Explainer(model, masker, algorithm=name, seed=0)(x, y)
    wanted = oracle(curved, np.concatenate([x, y], axis=1), np.zeros((1, 5)))
    np.testing.assert_allclose(first.values, wanted[:, :2], **ROUNDING)
    np.testing.assert_allclose(second.values, wanted[:, 2:], **ROUNDING)
    np.testing.assert_array_equal(first.data, x)
    np.testing.assert_array_equal(second.data, y)


# No masker


def test_warnings_point_to_the_users_line():
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        explainer = shap.Explainer(curved, algorithm="shear")
        explainer(rows(1, 3))
        explainer.explain_row(rows(1, 3)[0])
        shap.Explainer(curved, rows(101, 3), algorithm="shear")
        shap_ext.ShearExplainer(curved, rows(101, 3))
        shap_ext.EnumerationExplainer(curved, rows(101, 3))
    assert [warning.category for warning in caught] == [ShapleyExtWarning] * 5
    assert {warning.filename for warning in caught} == {__file__}


@pytest.mark.parametrize("kind", [np.asarray, torch.as_tensor], ids=["array", "tensor"])
def test_images_with_images_as_background(kind):
    net = nn.Sequential(nn.Conv2d(1, 2, 2), nn.Tanh(), nn.Flatten(), nn.Linear(8, 1)).double()
    x, background = rows(2, 9).reshape(2, 1, 3, 3), rows(3, 9, seed=1).reshape(3, 1, 3, 3)
    explainer = shap.Explainer(net, kind(background), algorithm="shear", seed=0)
    sv = explainer(kind(x), max_evals=512)
    wanted = oracle(
        lambda x: of_module(net)(x.reshape(-1, 1, 3, 3))[:, 0],
        x.reshape(2, 9),
        background.reshape(3, 9),
    )
    assert sv.values.shape == x.shape
    np.testing.assert_allclose(sv.values.reshape(2, 9), wanted, **ROUNDING)


def test_no_masker_for_what_is_no_table_of_numbers_is_refused():
    explainer = shap.Explainer(curved, algorithm="shear")
    frame = pd.DataFrame({"a": [1.0], "colour": ["red"], "size": pd.Categorical([3])})
    for x, words in (
        (frame, r"columns \['colour', 'size'\] hold no real numbers"),
        (np.array([["a", "b", "c"]]), "X holds <U1"),
        (["a text"], "X holds <U6"),
        (np.array([[np.datetime64("2020-01-01")]]), "X holds datetime64"),
    ):
        with pytest.raises(
            ValueError, match=f"masker=None does not define .*{words}.* Pass background"
        ):
            explainer(x)


# Groups


def grouped_oracle(model, explained, background, players):
    """Return the Shapley values of players that own several columns, (R, players)."""

    def value(row, coalition):
        masked = np.array(background, dtype=float)
        for player in coalition:
            masked[:, players[player]] = row[players[player]]
        return np.mean(model(masked), axis=0)

    return oracle_of(value, len(players), np.asarray(explained, dtype=float))


@every_name
def test_groups_by_place_and_by_name_are_single_players(name):
    frame = pd.DataFrame(rows(5, 7), columns=list("abcdefg"))
    x, background = frame.iloc[:2], frame.iloc[2:]
    players = [[0], [1, 5], [2], [3, 4, 6]]
    wanted = grouped_oracle(curved, x, background, players)
    # Players stand where their first column stands.
    for groups in (
        {"rest": ["g", "d", "e"], "pair": ["b", "f"]},
        {"pair": np.array([1, 5]), "rest": (6, 3, 4)},
        {"pair": ["b", 5], "rest": ["g", *range(3, 5)]},
    ):
        sv = explain(curved, background, x, name, groups=groups)
        assert sv.feature_names == ["a", "pair", "c", "rest"]
        np.testing.assert_allclose(sv.values, wanted, **ROUNDING)
        assert sv.values.shape == sv.data.shape == sv.display_data.shape == (2, 4)


def test_groups_of_names_that_are_numbers_go_by_name_first():
    frame = pd.DataFrame(rows(2, 3), columns=[2, 1, 0])
    sv = explain(curved, frame, frame, groups={"pair": [2, 1]})
    np.testing.assert_allclose(
        sv.values, grouped_oracle(curved, frame, frame, [[0, 1], [2]]), **ROUNDING
    )
    assert sv.feature_names == ["pair", "0"]


ONE_HOT = pd.get_dummies(
    pd.DataFrame(
        {
            "age": [20.0, 30.0, 40.0, 50.0],
            "colour": ["red", "green", "blue", "red"],
            "shape": ["round", "flat", "flat", "round"],
        }
    ),
    dtype=float,
)
BLOCKS = {
    "colour": ["colour_blue", "colour_green", "colour_red"],
    "shape": ["shape_flat", "shape_round"],
}


def of_one_hot(frame):
    return frame["age"].to_numpy(float) / 10 * (1 + frame["colour_red"].to_numpy(float)) - frame[
        "colour_green"
    ].to_numpy(float) * frame["shape_flat"].to_numpy(float)


@every_name
@pytest.mark.parametrize("dtype", [float, int, bool])
def test_one_hot_blocks_are_players_and_show_the_hot_column(name, dtype):
    frame = ONE_HOT.astype(dict.fromkeys(ONE_HOT.columns[1:], dtype))
    seen = Seen(of_one_hot)
    sv = explain(seen, frame.iloc[2:], frame.iloc[:2], name, groups=BLOCKS)
    assert sv.feature_names == ["age", "colour", "shape"]
    pd.testing.assert_series_equal(seen.calls[-1].dtypes, frame.dtypes)
    wanted = grouped_oracle(
        lambda x: of_one_hot(pd.DataFrame(x, columns=frame.columns)),
        frame.iloc[:2].to_numpy(float),
        frame.iloc[2:].to_numpy(float),
        [[0], [1, 2, 3], [4, 5]],
    )
    np.testing.assert_allclose(sv.values, wanted, **ROUNDING)
    assert sv.display_data.tolist() == [[20.0, "red", "round"], [30.0, "green", "flat"]]
    np.testing.assert_array_equal(sv.data, [[20.0, 2.0, 1.0], [30.0, 1.0, 0.0]])
    assert sv.data.dtype == np.float64
    # The model never sees a block that is half one row's, half another's.
    for call in seen.calls:
        assert (call[BLOCKS["colour"]].astype(float).sum(axis=1) == 1).all()


def test_blocks_that_are_not_one_hot_say_their_size():
    x = np.array([[1.0, 2.0, 3.0], [0.0, 0.0, 3.0], [1.0, 1.0, 3.0], [0.0, 1.0, 3.0]])
    options = {"groups": {"pair": ["a", "b"]}, "feature_names": list("abc")}
    sv = explain(curved, np.zeros((1, 3)), x, **options)
    assert sv.feature_names == ["pair", "c"]
    assert sv.display_data[:, 0].tolist() == ["2 columns", "2 columns", "2 columns", "b"]
    assert np.isnan(sv.data[:3, 0]).all()
    assert sv.data[3, 0] == 1.0
    assert sv.display_data[:, 1].tolist() == [3.0] * 4


# Batches


@every_name
def test_batches_are_as_large_as_asked_for_and_change_nothing(name):
    x, background = rows(3, 9), rows(5, 9, seed=1)
    options = {"max_evals": 512 if name == "enumeration" else 120}
    default = shap.Explainer(curved, background, algorithm=name, seed=0)(x, **options)
    model = Seen(curved)
    shap.Explainer(model, background, algorithm=name, seed=0)(x, batch_size=10**6, **options)
    largest_call = max(model.calls, key=len)
    for size in (1, 7, np.int64(1000)):
        model = Seen(curved)
        explainer = shap.Explainer(model, background, algorithm=name, seed=0)
        sv = explainer(x, batch_size=size, **options)
        np.testing.assert_allclose(sv.values, default.values, **ROUNDING)
        assert max(len(call) for call in model.calls) == min(5 * size, len(largest_call))


def test_none_and_nan_are_two_values():
    """Encoders of categories have one for each."""

    def model(frame):
        return frame["word"].map(lambda cell: 1.0 if cell is None else 2.0) + frame["size"]

    row, background = (
        pd.DataFrame({"word": pd.Series([word], dtype=object), "size": [size]})
        for word, size in ((np.nan, 3.0), (None, 0.0))
    )
    explanation = shap.Explainer(model, background, algorithm="best")(row)
    np.testing.assert_allclose(explanation.values, [[1.0, 3.0]])
