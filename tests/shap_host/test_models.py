"""Models in the forms in which users pass them, their outputs and their links."""

import functools
import warnings
from typing import Any

import lightgbm
import numpy as np
import pandas as pd
import pytest
import shap
import sklearn.ensemble
import sklearn.linear_model
import sklearn.pipeline
import sklearn.preprocessing
import sklearn.svm

import shap_ext
from shapley_adapters.errors import ModelOutputError, ShapleyExtWarning
from tests.helpers.brute_force import masked_model_values, shapley_values
from tests.helpers.estimator_table import ESTIMATORS
from tests.helpers.optional import nn, torch
from tests.shap_host.games import (
    ROUNDING,
    Seen,
    curved,
    curved_columns,
    network,
    of_module,
    oracle,
    oracle_of_frame,
    probability,
    rows,
)

# No warnings in ordinary use.
pytestmark = pytest.mark.filterwarnings("error")

every_row = pytest.mark.parametrize("row", ESTIMATORS, ids=lambda row: row.id)
NAMES = ["enumeration", "randomorder", "leastsquares", "shear"]
every_name = pytest.mark.parametrize("name", NAMES)

TRAIN = rows(120, 5, seed=2)
LABELS = np.digitize(curved(TRAIN), [-0.5, 0.5])
X, BACKGROUND = rows(3, 5), rows(4, 5, seed=1)


def explain(model, background=BACKGROUND, explained=X, name="shear", **options):
    return shap.Explainer(model, background, algorithm=name, seed=0, **options)(explained)


# scikit-learn and LightGBM


def classifier():
    return sklearn.ensemble.RandomForestClassifier(5, random_state=0).fit(TRAIN, LABELS)


def regressor():
    return sklearn.ensemble.GradientBoostingRegressor(random_state=0).fit(TRAIN, curved(TRAIN))


def pipeline():
    steps = sklearn.preprocessing.StandardScaler(), sklearn.linear_model.LogisticRegression()
    return sklearn.pipeline.make_pipeline(*steps).fit(TRAIN, LABELS)


def boosted(kind):
    return kind(n_estimators=10, verbose=-1, n_jobs=1)


@every_name
@pytest.mark.parametrize(
    ("build", "method"),
    [
        (classifier, "predict_proba"),
        (regressor, "predict"),
        (pipeline, "decision_function"),
        (lambda: sklearn.svm.SVC().fit(TRAIN, LABELS), "decision_function"),
        (lambda: boosted(lightgbm.LGBMRegressor).fit(TRAIN, curved(TRAIN)), "predict"),
        (lambda: boosted(lightgbm.LGBMRegressor).fit(TRAIN, curved(TRAIN)).booster_, "predict"),
    ],
    ids=["classifier", "regressor", "pipeline", "no probabilities", "LightGBM", "Booster"],
)
def test_estimators_as_they_are_and_their_methods(name, build, method):
    model = build()
    function = getattr(model, method)
    wanted = oracle(function, X, BACKGROUND)
    np.testing.assert_allclose(explain(model, name=name).values, wanted, **ROUNDING)
    np.testing.assert_allclose(explain(function, name=name).values, wanted, **ROUNDING)


def test_estimators_fitted_on_frames_see_frames():
    frame = pd.DataFrame(TRAIN, columns=list("abcde"))
    x, background = frame.iloc[:3], frame.iloc[3:7]
    for model in (
        sklearn.ensemble.RandomForestClassifier(5, random_state=0),
        boosted(lightgbm.LGBMClassifier),
    ):
        model.fit(frame, LABELS)
        is_forest = hasattr(model, "estimators_")
        outputs = (
            model.predict_proba if is_forest else functools.partial(model.predict, raw_score=True)
        )
        # scikit-learn warns where names are missing, and warnings are errors here.
        sv = explain(model, background, x)
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            wanted = oracle(outputs, x, background)
        np.testing.assert_allclose(sv.values, wanted, **ROUNDING)
        assert sv.shape == (3, 5, 3)


def test_lightgbm_with_a_categorical_column():
    frame = pd.DataFrame(TRAIN[:, :3], columns=list("abc"))
    kinds = pd.Categorical(np.where(TRAIN[:, 3] > 0.5, "x", np.where(TRAIN[:, 4] > 0, "y", "z")))
    frame["kind"] = kinds
    model = boosted(lightgbm.LGBMClassifier).fit(frame, LABELS)
    sv = explain(model, frame.iloc[:4], frame.iloc[4:6])

    def of_frame(masked):
        return model.predict(masked.astype(frame.dtypes), raw_score=True)

    wanted = oracle_of_frame(of_frame, frame.iloc[4:6], frame.iloc[:4])
    np.testing.assert_allclose(sv.values, wanted, **ROUNDING)
    assert (sv.values[:, 3] != 0).any()


def test_output_names_are_the_users():
    sv = explain(classifier(), output_names=["low", "middle", "high"])
    assert list(sv.output_names) == ["low", "middle", "high"]
    np.testing.assert_array_equal(sv[:, :, "high"].values, sv.values[..., 2])
    assert explain(regressor(), output_names=["out"]).shape == (3, 5)


# Torch modules


@every_row
@pytest.mark.parametrize("n_background", [1, 3])
def test_modules_as_they_are(row, n_background):
    net, background = network(5, 2), rows(n_background, 5, seed=1)
    sv = row.explainer(net, background, seed=0, **row.options)(X)
    np.testing.assert_allclose(sv.values, oracle(of_module(net), X, background), **ROUNDING)


@pytest.mark.parametrize(
    ("activation", "found"), [(nn.ELU, "hessian"), (nn.Tanh, "hessian"), (nn.ReLU, "gradient")]
)
@pytest.mark.parametrize("n_background", [1, 3])
def test_cooperators_are_found_through_derivatives(activation, found, n_background):
    net = network(9, 2, activation)
    explainer = shap.Explainer(net, rows(n_background, 9, seed=1), algorithm="shear", seed=0)
    explainer(rows(3, 9), max_evals=100)
    spent = explainer.last_estimate
    assert spent.cooperators.tolist() == [found] * 3
    # 1 + M for each of two outputs; ReLU networks try second derivatives first.
    assert spent.backward_passes.tolist() == [20 if found == "hessian" else 40] * 3
    assert (spent.evaluations <= 100).all()


class Triples(nn.Module):
    """Each input interacts with two others only."""

    def __init__(self):
        super().__init__()
        self.scale = nn.Parameter(torch.tensor(1.0, dtype=torch.float64))

    def forward(self, x):
        return (self.scale * x.reshape(-1, 4, 3).prod(dim=2)).tanh().sum(dim=1)


def test_derivatives_find_the_partners():
    # With its two partners among the three cooperators that the budget allows, a player's value
    # is exact; else it is not.
    x, background = rows(2, 12, 3), rows(1, 12)
    wanted = np.concatenate(
        [
            oracle(lambda x: np.tanh(x.prod(axis=1)), x[:, c : c + 3], background[:, c : c + 3])
            for c in range(0, 12, 3)
        ],
        axis=1,
    )
    for cooperators in ("hessian", "difference", "auto", "random"):
        explainer = shap_ext.ShearExplainer(Triples(), background, seed=0, cooperators=cooperators)
        error = np.abs(explainer(x, max_evals=330).values - wanted).max()
        assert (error < 1e-11) == (cooperators != "random"), (cooperators, error)


def test_derivatives_with_groups_of_columns_and_images():
    net = nn.Sequential(nn.Flatten(), *network(36, 2)).eval()
    x = rows(2, 36).reshape(2, 1, 6, 6)
    groups = {f"row {i}": list(range(6 * i, 6 * i + 6)) for i in range(6)}
    for options in ({}, {"groups": groups}):
        explainer = shap.Explainer(net, algorithm="shear", seed=0, **options)
        with pytest.warns(ShapleyExtWarning, match="absent features are zero"):
            sv = explainer(x, max_evals=200 if not options else 60)
        assert explainer.last_estimate.cooperators.tolist() == ["hessian"] * 2
        total = sv.values.sum(axis=(1, 2, 3)) if not options else sv.values.sum(axis=1)
        wanted = of_module(net)(x) - of_module(net)(np.zeros_like(x))
        np.testing.assert_allclose(total, wanted, **ROUNDING)


def test_modules_that_detach_fall_back_to_evaluations():
    class Detached(nn.Module):
        def forward(self, x):
            return torch.as_tensor(curved(x.detach().numpy()))

    explainer = shap.Explainer(Detached(), rows(1, 9), algorithm="shear", seed=0)
    explainer(rows(2, 9, 3), max_evals=200)
    assert explainer.last_estimate.cooperators.tolist() == ["difference"] * 2
    with pytest.raises(RuntimeError, match="does not depend differentiably on its input"):
        shap_ext.ShearExplainer(Detached(), rows(1, 9), cooperators="hessian")(
            rows(2, 9, 3), max_evals=200
        )


@every_name
def test_modules_are_left_as_they_were(name):
    net = network(9, 2)
    net.train()
    net[0].weight.grad = torch.full_like(net[0].weight, 7.0)
    net[2].weight.requires_grad_(False)
    before = {key: value.clone() for key, value in net.state_dict().items()}
    explain(net, rows(2, 9), rows(2, 9, 3), name)
    assert net.training
    assert all(layer.training for layer in net)
    assert (net[0].weight.grad == 7).all()
    assert net[0].bias.grad is None
    assert net[2].weight.grad is None
    assert not net[2].weight.requires_grad
    assert net[0].weight.requires_grad
    for key, value in net.state_dict().items():
        assert torch.equal(value, before[key])


@every_name
@pytest.mark.parametrize("layer", [nn.Dropout(0.5), nn.BatchNorm1d(16)], ids=["dropout", "norm"])
def test_training_mode_is_announced_and_kept(name, layer):
    linear, activation, last = network(4)
    net = nn.Sequential(linear, layer.double(), activation, last).train()
    explainer = shap.Explainer(net, np.zeros((1, 4)), algorithm=name, seed=0)
    with pytest.warns(ShapleyExtWarning, match="training mode"):
        explainer(rows(1, 4))
    assert net.training
    assert layer.training
    net.eval()
    explainer(rows(1, 4))  # in silence


@every_name
@pytest.mark.parametrize("dtype", [torch.float64, torch.float32, torch.float16])
def test_modules_keep_their_precision(name, dtype):
    seen = []
    net = network(5, dtype=dtype)
    net.register_forward_pre_hook(lambda module, inputs: seen.append(inputs[0].dtype))
    for x_type in (np.float64, np.float32):
        sv = explain(net, BACKGROUND.astype(x_type), X.astype(x_type), name)
        assert sv.values.dtype == np.float64
    assert set(seen) == {dtype}
    if dtype == torch.float64:
        wanted = oracle(lambda x: of_module(net)(x)[:, 0], X, BACKGROUND)
        np.testing.assert_allclose(explain(net, name=name).values, wanted, **ROUNDING)
    else:
        double = network(5)
        wanted = oracle(lambda x: of_module(double)(x)[:, 0], X, BACKGROUND)
        # Outputs of order 10 in a precision of 3 or 7 digits.
        tolerance = 1e-5 if dtype == torch.float32 else 0.1
        np.testing.assert_allclose(explain(net, name=name).values, wanted, rtol=0, atol=tolerance)


def test_modules_without_parameters_keep_the_precision_of_the_rows():
    class Product(nn.Module):
        def forward(self, x):
            return torch.tanh(x).prod(dim=1)

    wanted = oracle(lambda x: np.tanh(x).prod(axis=1), X, BACKGROUND)
    np.testing.assert_allclose(explain(Product()).values, wanted, **ROUNDING)


@every_name
def test_whole_numbers_stay_whole_numbers_for_embeddings(name):
    generator = torch.Generator().manual_seed(0)
    net = nn.Sequential(nn.Embedding(10, 3), nn.Flatten(), nn.Tanh(), nn.Linear(12, 1)).double()
    for parameter in net.parameters():
        parameter.data = torch.randn(parameter.shape, generator=generator, dtype=torch.float64)
    x, background = np.array([[1, 2, 3, 4], [9, 8, 7, 0]]), np.zeros((1, 4), dtype=int)
    sv = explain(net, background, x, name)
    wanted = oracle(lambda x: of_module(net)(x.astype(int))[:, 0], x, background)
    np.testing.assert_allclose(sv.values, wanted, **ROUNDING)


@every_name
def test_whole_numbers_for_networks_of_floats(name):
    # A table of counts is whole numbers to NumPy, but not to nn.Linear.
    net = network(4)
    x, background = np.array([[1, 2, 3, 4], [9, 8, 7, 0]]), np.zeros((1, 4), dtype=int)
    wanted = oracle(lambda x: of_module(net)(x)[:, 0], x, background)
    for kind in (np.asarray, pd.DataFrame):
        sv = explain(net, kind(background), kind(x), name)
        np.testing.assert_allclose(sv.values, wanted, **ROUNDING)


@every_name
def test_modules_of_one_output_in_either_shape(name):
    class Squeezed(nn.Module):
        def __init__(self, net):
            super().__init__()
            self.net = net

        def forward(self, x):
            return self.net(x)[:, 0]

    net = network(5)
    flat, column = explain(Squeezed(net), name=name), explain(net, name=name)
    np.testing.assert_array_equal(flat.values, column.values)
    assert flat.values.shape == column.values.shape == (3, 5)
    assert flat.base_values.shape == column.base_values.shape == (3,)
    np.testing.assert_array_equal(flat.base_values, column.base_values)


def test_modules_under_no_grad_and_in_inference_mode():
    net = network(9)
    explainer = shap.Explainer(net, rows(1, 9), algorithm="shear", seed=0)
    wanted = explainer(rows(2, 9, 3), max_evals=100).values
    for mode in (torch.no_grad, torch.inference_mode):
        with mode():
            np.testing.assert_array_equal(explainer(rows(2, 9, 3), max_evals=100).values, wanted)
        assert explainer.last_estimate.cooperators.tolist() == ["hessian"] * 2


def test_a_module_wrapped_by_shap_and_a_subclassed_module():
    net = network(5)
    wanted = explain(net).values
    np.testing.assert_array_equal(explain(shap.models.Model(net)).values, wanted)

    class Own(type(net)):  # type: ignore[misc] # of any class
        pass

    own = Own(*net).eval()
    np.testing.assert_array_equal(explain(own).values, wanted)


# Outputs


@every_name
@pytest.mark.parametrize(
    "convert",
    [
        list,
        tuple,
        pd.Series,
        lambda y: pd.Series(y, index=np.arange(len(y))[::-1]),
        pd.DataFrame,
        lambda y: torch.as_tensor(y).requires_grad_(),
        lambda y: y[:, None],
        lambda y: y.astype(object),
        lambda y: y[:, None].tolist(),
    ],
    ids=["list", "tuple", "Series", "reversed", "DataFrame", "tensor", "column", "object", "lists"],
)
def test_outputs_of_all_kinds(name, convert):
    sv = explain(lambda x: convert(curved(x)), name=name)
    np.testing.assert_allclose(sv.values, oracle(curved, X, BACKGROUND), **ROUNDING)
    assert sv.base_values.shape == (3,)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, bool])
def test_outputs_of_all_types_are_added_up_in_double_precision(dtype):
    def model(x):
        return (curved(x) * 3).astype(dtype)

    sv = explain(model)
    assert sv.values.dtype == sv.base_values.dtype == np.float64
    np.testing.assert_allclose(sv.values, oracle(model, X, BACKGROUND), **ROUNDING)


@every_name
def test_several_outputs_at_once_are_each_as_if_alone(name):
    explainer = shap.Explainer(curved_columns, rows(2, 9), algorithm=name, seed=0)
    options = {} if name == "enumeration" else {"max_evals": 100}
    x = rows(3, 9, 3)
    if name == "shear":  # its cooperators are those of all outputs together
        explainer.cooperators = "random"
    sv = explainer(x, error_bounds=True, **options)
    assert sv.shape == (3, 9, 3)
    assert sv.base_values.shape == (3, 3)
    for output in range(3):
        explainer.model = lambda x, output=output: curved_columns(x)[:, output]
        alone = explainer(x, error_bounds=True, **options)
        np.testing.assert_allclose(sv[..., output].values, alone.values, **ROUNDING)
        np.testing.assert_allclose(sv[..., output].error_std, alone.error_std, **ROUNDING)
        np.testing.assert_allclose(sv[..., output].base_values, alone.base_values, **ROUNDING)


@every_name
def test_outputs_selects_and_orders(name):
    explainer = shap.Explainer(
        curved_columns, BACKGROUND, algorithm=name, seed=0, output_names=["a", "b", "c"]
    )
    whole = explainer(X, error_bounds=True)
    for places in ([2, 0], (1,), np.array([0, 1]), range(2)):
        some = explainer(X, outputs=places, error_bounds=True)
        np.testing.assert_array_equal(some.values, whole.values[..., list(places)])
        np.testing.assert_array_equal(some.base_values, whole.base_values[..., list(places)])
        np.testing.assert_array_equal(some.upper_bounds, whole.upper_bounds[..., list(places)])
        assert list(some.output_names) == ["abc"[i] for i in places]


def test_outputs_of_several_dimensions_are_flattened():
    def model(x):
        return curved_columns(x)[:, :, None] * np.array([1.0, 2.0])

    sv = explain(model)
    assert sv.shape == (3, 5, 6)
    np.testing.assert_allclose(sv.values[..., 1], 2 * sv.values[..., 0], **ROUNDING)


# Links


def logit(p):
    return np.log(p / (1 - p))


@every_name
@pytest.mark.parametrize("linearize", [True, False])
@pytest.mark.parametrize("n_background", [1, 5])
def test_logit_equals_shaps_exact_explainer(name, linearize, n_background):
    background = rows(n_background, 5, seed=1)
    masker = shap.maskers.Independent(background)
    # Of one row there is nothing to weigh; shap divides 0 by 0 there and returns NaN.
    theirs_linearizes = linearize and n_background > 1
    theirs = shap.ExactExplainer(
        probability, masker, link=shap.links.logit, linearize_link=theirs_linearizes
    )(X)
    sv = explain(
        probability, background, name=name, link=shap.links.logit, linearize_link=linearize
    )
    # shap differentiates the link numerically as we do, by the same step.
    np.testing.assert_allclose(sv.values, theirs.values, rtol=0, atol=1e-6)
    np.testing.assert_allclose(sv.base_values, theirs.base_values, rtol=0, atol=1e-6)


def test_linearized_links_keep_additive_models_additive():
    weights = np.array([1.0, -2.0, 0.5, 0.25, -0.5])

    def model(x):
        return 1 / (1 + np.exp(-x @ weights))

    sv = explain(model, name="enumeration", link=shap.links.logit)
    theirs = shap.ExactExplainer(model, BACKGROUND, link=shap.links.logit)(X)
    np.testing.assert_allclose(sv.values, theirs.values, rtol=0, atol=1e-6)
    # The weights are those of the background, so that the empty coalition is right in any case.
    np.testing.assert_allclose(sv.base_values, [logit(model(BACKGROUND).mean())] * 3, atol=1e-9)
    one = explain(model, BACKGROUND[:1], link=shap.links.logit)
    np.testing.assert_allclose(one.values, (X - BACKGROUND[:1]) * weights, **ROUNDING)


@every_name
@pytest.mark.parametrize("masked_by_function", [False, True])
def test_links_without_linearizing_are_links_of_averages(name, masked_by_function):
    masker = BACKGROUND
    if masked_by_function:
        masker = lambda mask, x: np.where(mask, x, BACKGROUND)  # noqa: E731
    explainer = shap.Explainer(
        probability, masker, algorithm=name, link=logit, linearize_link=False
    )
    sv = explainer(X)
    # The link of the average is a game of its own; the oracle averages what is linked already.
    for place, row in enumerate(X):
        value = masked_model_values(probability, row, BACKGROUND)
        wanted = shapley_values(5, lambda coalition, value=value: logit(value(coalition)))
        np.testing.assert_allclose(sv.values[place], wanted, **ROUNDING)


@every_name
@pytest.mark.parametrize("linearize", [True, False])
def test_links_with_functions_as_maskers_are_those_of_the_table(name, linearize):
    def masker(mask, x):
        return np.where(mask, x, BACKGROUND)

    options = {"link": shap.links.logit, "linearize_link": linearize, "name": name}
    np.testing.assert_allclose(
        explain(probability, masker, **options).values,
        explain(probability, BACKGROUND, **options).values,
        **ROUNDING,
    )


@pytest.mark.parametrize("linearize", [True, False])
def test_any_function_is_a_link(linearize):
    # shap wants links that numba compiles.
    table: dict[str, Any] = {"exp": np.exp, "shifted": lambda y: y + 3}
    for link in table.values():
        sv = explain(curved, link=link, linearize_link=linearize)
        full = link(curved(X))
        np.testing.assert_allclose(sv.values.sum(axis=1) + sv.base_values, full, **ROUNDING)
    shifted = explain(curved, link=table["shifted"], linearize_link=linearize)
    np.testing.assert_allclose(shifted.values, explain(curved).values, rtol=0, atol=1e-8)


def test_own_identity_is_the_identity():
    for linearize in (True, False):
        sv = explain(curved, link=lambda y: y, linearize_link=linearize)
        np.testing.assert_allclose(sv.values, explain(curved).values, rtol=0, atol=1e-9)


def test_the_link_costs_no_evaluations_of_the_budget():
    model = Seen(probability)
    explainer = shap.Explainer(
        model, rows(3, 12, 1), algorithm="leastsquares", link=shap.links.logit, seed=0
    )
    explainer(rows(2, 12), max_evals=100)
    estimate = explainer.last_estimate
    spent = estimate.evaluations.sum() + estimate.check_evaluations
    # The background itself is run once, for the weights.
    assert sum(len(call) for call in model.calls) == 3 * (spent + 1)


@pytest.mark.parametrize("kind", [int, sklearn.linear_model.LinearRegression])
def test_classes_are_no_models(kind):
    with pytest.raises(TypeError, match=f"model must be .* got the class {kind.__name__}.*object"):
        shap.Explainer(kind, np.zeros((1, 3)), algorithm="leastsquares")(np.ones((1, 3)))
    with pytest.raises(TypeError, match="model must be .* got None"):
        shap_ext.Surrogate(None)


@pytest.mark.parametrize("kind", ["int64", "uint64", "object"])
def test_whole_numbers_that_double_precision_rounds_are_refused(kind):
    """2^60 and 2^60 + 1 are one number in double precision."""

    def explain(start):
        explainer = shap.Explainer(
            lambda x: np.array([int(row[0] > 0) + start for row in x], dtype=kind),
            np.zeros((1, 3)),
            algorithm="leastsquares",
            seed=0,
        )
        return explainer(np.ones((1, 3)), max_evals=8).values.tolist()

    with pytest.raises(ModelOutputError, match=r"beyond 2\^53, such as 1152921504606846977"):
        explain(2**60)
    np.testing.assert_allclose(explain(2**40), [[1.0, 0.0, 0.0]], atol=1e-3)
