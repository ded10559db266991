"""Estimators of other packages: the one of docs/adding_an_estimator.md, installed by pip."""

import importlib
import importlib.util
import inspect
import io
import os
import pickle
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import shap
from shap.utils._exceptions import InvalidAlgorithmError

import shap_ext
import shapley_adapters as core
from shap_ext.explainers.methods import explainer_class
from shapley_adapters.errors import EstimatorError, InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.estimators.protocol import Solution
from tests.helpers.optional import captum_ext, torch
from tests.shap_host.games import ROUNDING, curved, oracle, rows

ROOT = Path(__file__).parents[2]
PAGE = ROOT / "docs" / "adding_an_estimator.md"
BLOCKS = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
BACKENDS = {"hatchling": "hatchling.build", "setuptools": "setuptools.build_meta"}
X, BACKGROUND = rows(3, 9), rows(2, 9, seed=1)
ALL = 2**9

pytestmark = pytest.mark.filterwarnings("error")


@pytest.fixture(scope="module")
def site(tmp_path_factory):
    """Return the folder that the package of the page is installed to."""
    backend = next((name for name in BACKENDS if importlib.util.find_spec(name)), None)
    if backend is None or importlib.util.find_spec("pip") is None:
        pytest.skip("installing a package needs pip, and hatchling or setuptools")
    project, target = tmp_path_factory.mktemp("shapley-pairs"), tmp_path_factory.mktemp("site")
    (project / "shapley_pairs").mkdir()
    (project / "shapley_pairs" / "__init__.py").write_text(BLOCKS[0], encoding="utf-8")
    (project / "pyproject.toml").write_text(
        f'[build-system]\nrequires = ["{backend}"]\nbuild-backend = "{BACKENDS[backend]}"\n'
        '[project]\nname = "shapley-pairs"\nversion = "0.1"\n'
    )
    command = [sys.executable, "-m", "pip", "install", "--quiet", "--no-build-isolation"]
    command += ["--no-deps", "--no-index", "--target", str(target), str(project)]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return target


@pytest.fixture
def estimator(site, monkeypatch):
    """Return the estimator of the installed package, registered with shap while the test runs."""
    monkeypatch.syspath_prepend(str(site))
    package = importlib.import_module("shapley_pairs")
    assert Path(str(package.__file__)).is_relative_to(site)
    shap_ext.register_estimator("Marginal-Pairs", package.MarginalPairs)
    yield package.MarginalPairs
    shap_ext.unregister_estimator("marginalpairs")


def build(**options):
    return shap.Explainer(curved, BACKGROUND, algorithm="marginal_pairs", seed=3, **options)


@pytest.mark.parametrize("block", range(1, len(BLOCKS)))
def test_the_page_runs(block, estimator, capsys):
    if "torch" in BLOCKS[block]:
        torch.ones(1)  # skips where it is not installed
    exec(compile(BLOCKS[block], str(PAGE), "exec"), {})
    assert "False" not in capsys.readouterr().out


def test_shap_explains_by_it(estimator):
    explainer = build()
    assert type(explainer) is shap_ext.algorithms()["marginalpairs"]
    members = ("marginalpairs", "leastsquares")
    mean = shap_ext.CentroidExplainer(curved, BACKGROUND, explainers=members, seed=0)
    for exact in (explainer(X, max_evals=ALL), mean(X, max_evals=2 * ALL)):
        np.testing.assert_allclose(exact.values, oracle(curved, X, BACKGROUND), **ROUNDING)
    drawn = explainer(X, max_evals=100, error_bounds=True, check_additivity=True)
    assert (drawn.error_std > 0).all()
    assert explainer.last_estimate.method == "MarginalPairs"
    assert (explainer.last_estimate.evaluations <= 100).all()
    with pytest.raises(ValueError, match=r"max_evals=19 is too small: Marginal-Pairs needs .* 20"):
        explainer(X, max_evals=19)


def test_options_are_those_of_the_estimator(estimator):
    explained = build(efficient=False)(X, max_evals=100)
    gaps = explained.values.sum(axis=1) + explained.base_values - curved(X)
    assert (np.abs(gaps) > 1e-6).all()
    assert build().efficient
    option = inspect.signature(shap_ext.algorithms()["marginalpairs"]).parameters["efficient"]
    assert (option.default, option.kind) == (True, inspect.Parameter.KEYWORD_ONLY)
    assert "efficiency residual" in str(shap_ext.algorithms()["marginalpairs"].__doc__)
    with pytest.raises(TypeError, match="effcient"):
        build(effcient=False)
    made = shap_ext.algorithms()["marginalpairs"]
    with pytest.raises(TypeError):
        made(curved, BACKGROUND, shap.links.identity, None, None, True, 0, None, "raw", False)


def test_both_hosts_give_the_numbers_of_the_core(estimator):
    def of_tensors(x):
        return torch.as_tensor(curved(x.numpy()))

    background = np.zeros((1, 9))
    by_shap = shap.Explainer(curved, background, algorithm="marginalpairs", seed=5)
    explained = by_shap(X, max_evals=90)
    method = captum_ext.attribution_class(estimator)(of_tensors, seed=5)
    attributions = method.attribute(torch.as_tensor(X), n_samples=90)
    np.testing.assert_allclose(attributions.numpy(), explained.values, atol=1e-12)
    assert method.get_name() == "Marginal Pairs"
    assert captum_ext.attribution_class(estimator) is type(method)
    copied = pickle.loads(pickle.dumps(type(method)))
    assert copied is type(method)
    with pytest.raises(TypeError, match="effcient"):
        type(method)(of_tensors, effcient=False)


@pytest.mark.slow
def test_saved_explainers_are_loaded_elsewhere(estimator, site, tmp_path):
    explainer = build(efficient=False)
    expected = explainer(X, max_evals=100).values
    for copied in (pickle.loads(pickle.dumps(explainer)), loaded(saved(explainer))):
        assert type(copied) is type(explainer)
        np.testing.assert_array_equal(copied(X, max_evals=100).values, expected)
    (tmp_path / "explainer").write_bytes(saved(explainer))
    np.save(tmp_path / "x.npy", X)
    code = (
        "import numpy as np, shap\n"
        "with open('explainer', 'rb') as file: explainer = shap.Explainer.load(file)\n"
        "np.save('values.npy', explainer(np.load('x.npy'), max_evals=100).values)"
    )
    places = [str(site), str(ROOT), str(ROOT / "adapters")]
    environment = {**os.environ, "PYTHONPATH": os.pathsep.join(places)}
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", code],
        capture_output=True, text=True, check=False, cwd=tmp_path, env=environment,
    )  # fmt: skip
    assert done.returncode == 0, done.stderr
    np.testing.assert_array_equal(np.load(tmp_path / "values.npy"), expected)


def saved(explainer):
    stream = io.BytesIO()
    explainer.save(stream)
    return stream.getvalue()


def loaded(content):
    return shap.Explainer.load(io.BytesIO(content))


def test_names_are_forgotten(estimator):
    shap_ext.unregister()
    with pytest.raises(InvalidAlgorithmError):
        build()
    shap_ext.register()
    shap_ext.register_estimator("marginalpairs", estimator)
    assert type(build()).__name__ == "MarginalPairsExplainer"
    shap_ext.unregister_estimator("marginalpairs")
    with pytest.raises(InvalidAlgorithmError, match="marginal_pairs"):
        build()
    with pytest.raises(InvalidArgumentError, match="'shear' is an algorithm of shap_ext"):
        shap_ext.unregister_estimator("shear")
    with pytest.raises(InvalidArgumentError, match="not a registered estimator"):
        shap_ext.unregister_estimator("marginalpairs")
    shap_ext.register_estimator("marginalpairs", estimator)  # for the fixture to forget


TAKEN, NO_WORD = "choose another name", "letters and digits"


@pytest.mark.parametrize(
    ("name", "words"),
    [
        *((name, f"{name}.*{TAKEN}") for name in ("exact", "Permutation", "shear", "random-order")),
        *((name, NO_WORD) for name in ("", "-", "two words", "a.b")),
    ],
)
def test_names_of_others_and_what_is_no_word_are_refused(name, words):
    with pytest.raises(InvalidArgumentError, match=words):
        shap_ext.register_estimator(name, core.RandomOrder)


class _WithoutSolve:
    def minimum_budget(self, n_players, with_errors=False):
        return 2

    def design(self, request):
        return request


class _Whole(_WithoutSolve):
    def solve(self, design, values):
        return values


class _OfAnyOptions(_Whole):
    def __init__(self, **options):
        self.options = options


class _OfSeed(_Whole):
    def __init__(self, seed=0):
        self.seed = seed


def register_with_shap(estimator):
    return shap_ext.register_estimator("wrong", estimator)


@pytest.mark.parametrize("register", [register_with_shap, captum_ext.attribution_class])
@pytest.mark.parametrize(
    ("wrong", "message"),
    [
        (core.RandomOrder(), "must be a class"),
        ("RandomOrder", "must be a class"),
        (_WithoutSolve, "_WithoutSolve lacks solve"),
        (_OfAnyOptions, r"takes \*\*options"),
        (_OfSeed, "option 'seed'"),
    ],
)
def test_what_is_no_estimator_is_refused(register, wrong, message):
    with pytest.raises((InvalidArgumentTypeError, InvalidArgumentError), match=message):
        register(wrong)
    assert "wrong" not in shap_ext.algorithms()


def test_estimators_on_graphs_take_a_graph():
    line = [(i, i + 1) for i in range(8)]
    shap_ext.register_estimator("mylshapley", core.LShapley)
    try:
        explainer = shap.Explainer(curved, BACKGROUND, algorithm="mylshapley", graph=line, order=2)
        expected = shap_ext.LShapleyExplainer(curved, BACKGROUND, graph=line, order=2)
        np.testing.assert_array_equal(explainer(X).values, expected(X).values)
    finally:
        shap_ext.unregister_estimator("mylshapley")


class _Broken(core.RandomOrder):
    """An estimator whose results have one fault."""

    fault = ""

    def minimum_budget(self, n_players, with_errors=False):
        return None if self.fault == "no budget" else 30

    def design(self, request):
        return None if self.fault == "no design" else super().design(request)

    def solve(self, design, values):
        solution = super().solve(design, values)
        attributions, errors = solution.values, solution.standard_errors
        if self.fault == "no solution":
            return None
        if self.fault == "pair":
            return attributions, errors
        if self.fault == "shape":
            return Solution(attributions[:, 1:], errors)
        if self.fault == "errors":
            return Solution(attributions, None)  # type: ignore[arg-type] # wrong on purpose
        if self.fault == "nan":
            return Solution(attributions * np.nan, errors)
        if self.fault == "negative":
            return Solution(attributions, -1 - errors)
        return Solution(attributions, errors * np.nan)  # unknown errors are right


FAULTS = {
    "no budget": r"None; return a whole number",
    "no design": r"None; return a .*Design",
    "no solution": r"None; return a .*Solution",
    "pair": r"an object of type tuple",
    "shape": r"values that are an array of float64 of shape \(3, 8, 1\); .* of shape \(3, 9, 1\)",
    "errors": r"standard_errors that are None; .* of shape \(3, 9, 1\)",
    "nan": r"values that are NaN",
    "negative": r"negative standard_errors; .* NaN where",
    "": None,
}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("host", ["shap", "captum"])
def test_wrong_results_name_the_estimator(host, fault):
    broken = type("MyEstimator", (_Broken,), {"fault": fault})

    def explain():
        if host == "shap":
            explainer = explainer_class("mine", broken)(curved, BACKGROUND, seed=0)
            return explainer(X, max_evals=60).values
        method = captum_ext.attribution_class(broken)
        return method(lambda x: torch.as_tensor(curved(x.numpy())), seed=0).attribute(
            torch.as_tensor(X), n_samples=60
        )

    if FAULTS[fault] is None:
        assert np.isfinite(np.asarray(explain())).all()
    else:
        with pytest.raises(EstimatorError, match=rf"MyEstimator\.\w+ returned {FAULTS[fault]}"):
            explain()
