"""Constructors of both hosts: their signatures, and the arguments that they refuse.

The classes are read from `__all__`, so that a new one is tested without a new line here.
"""

import inspect
import io
import re
from collections import Counter

import numpy as np
import pytest
import shap

import shap_ext
from tests.helpers.optional import HAS_TORCH, captum_ext

# Tools, which take a method; captum writes most of their constructors.
TOOLS = {
    *("DataLoaderAttribution", "EmbeddingAttribution", "LLMAttribution", "RemoteLLMAttribution"),
}
WITHOUT_DRAWS = {
    *("EnumerationExplainer", "FastShapExplainer", "SimShapExplainer"),
    *("Exact", "FastShap", "SimShap"),
}
ON_GRAPHS = {"Asymmetric", "CShapley", "LShapley", "Myerson", "OddGP"}
OF_MODELS = {
    *("model", "masker", "link", "feature_names", "output_names", "linearize_link", "seed"),
}
PACKAGES = ("shap_ext", "captum_ext", "shapley_adapters")
BACKGROUND = np.zeros((1, 3))


def classes_with(package, method):
    """Return the public classes of a package that have a method, by name."""
    public = {name: getattr(package, name) for name in package.__all__}
    return {
        name: one
        for name, one in public.items()
        if isinstance(one, type) and hasattr(one, method) and name not in TOOLS
    }


EXPLAINERS = classes_with(shap_ext, "explain_row")
METHODS = classes_with(captum_ext, "attribute") if HAS_TORCH else {}
CLASSES = EXPLAINERS | METHODS
AGGREGATES = {
    *("AVAExplainer", "CentroidExplainer", "ConvexExplainer", "LowComplexityExplainer"),
    *("AVA", "Centroid", "Convex", "LowComplexity"),
}
ESTIMATORS = {name: kind for name, kind in CLASSES.items() if name not in AGGREGATES}
each_class = pytest.mark.parametrize("kind", CLASSES.values(), ids=CLASSES)
each_estimator = pytest.mark.parametrize("kind", ESTIMATORS.values(), ids=ESTIMATORS)
each_explainer = pytest.mark.parametrize("kind", EXPLAINERS.values(), ids=EXPLAINERS)


def parameters(kind):
    return dict(inspect.signature(kind).parameters)


def described(kind):
    """Return the names that the section "Parameters" of a docstring describes."""
    text = str(inspect.getdoc(kind))
    section = re.search(r"\nParameters\n-+\n(.*?)(\n\n|\Z)", text, re.DOTALL)
    assert section is not None
    heads = re.findall(r"^(\w.*?)(?: : .*)?$", section[1], re.MULTILINE)
    return [name for head in heads for name in head.split(", ")]


def by_position(kind):
    """Return what a class needs by position, and one argument too many."""
    if kind.__name__ in EXPLAINERS:
        return [lambda x: x.sum(axis=1), BACKGROUND, shap.links.identity, None]
    if kind.__name__ == "AVA":
        return [lambda x: x, captum_ext.Exact, None]
    return [[lambda x: x] if kind.__name__ in AGGREGATES else lambda x: x.sum(axis=1), None]


def test_every_class_of_both_hosts_is_looked_at():
    assert len(EXPLAINERS) >= 16
    assert len(METHODS) >= 15 or not HAS_TORCH
    assert AGGREGATES & set(CLASSES) == {n for n in AGGREGATES if HAS_TORCH or n in EXPLAINERS}


@each_class
def test_each_parameter_is_named_described_and_written_once(kind):
    kinds = {one.kind for one in parameters(kind).values()}
    assert kinds <= {inspect.Parameter.POSITIONAL_OR_KEYWORD, inspect.Parameter.KEYWORD_ONLY}
    assert list(inspect.signature(kind.__init__).parameters) == ["self", *parameters(kind)]
    assert Counter(described(kind)) == Counter(list(parameters(kind)))
    ours = [one for one in kind.__mro__ if one.__module__.startswith(PACKAGES)]
    written = Counter(name for one in ours for name in inspect.get_annotations(one))
    assert {written[name] for name in parameters(kind)} == {1}
    for one in ours:
        constructor = inspect.unwrap(vars(one).get("__init__", object.__init__))
        code = getattr(constructor, "__code__", None)
        assert code is None or code.co_filename == "<string>"  # made from fields, not by hand


@each_explainer
def test_explainers_share_the_parameters_of_a_model(kind):
    assert set(parameters(kind)) >= OF_MODELS


@each_estimator
def test_estimators_share_their_parameters(kind):
    name = kind.__name__
    own = {"groups"} | OF_MODELS if name in EXPLAINERS else {"forward_func", "seed"}
    shared = own | {"value_function"}
    assert set(parameters(kind)) >= shared
    assert ("independent_rows" in parameters(kind)) == (name not in WITHOUT_DRAWS)
    assert ("graph" in parameters(kind)) == (name.removesuffix("Explainer") in ON_GRAPHS)


@each_class
def test_only_the_first_parameters_have_a_position(kind):
    positional = [n for n, one in parameters(kind).items() if one.kind is not one.KEYWORD_ONLY]
    of_attribution = ["attribution_method", "dataset"] if kind.__name__ == "AVA" else None
    of_methods = ["attribution_methods"] if kind.__name__ in AGGREGATES else ["forward_func"]
    of_model = ["model", "masker", "link"]
    assert positional == (of_model if kind.__name__ in EXPLAINERS else of_attribution or of_methods)
    given = by_position(kind)
    with pytest.raises(TypeError, match=f"at most {len(given) - 1} arguments by position") as error:
        kind(*given)
    for name in set(parameters(kind)) - set(positional):
        assert re.search(rf"\b{name}\b", str(error.value))


@each_class
def test_a_misspelt_name_is_refused_with_the_right_one(kind):
    for name in parameters(kind):
        wrong = name[:-2] + name[-1] + name[-2] if name[-1] != name[-2] else name + "s"
        with pytest.raises(TypeError, match=rf"'{wrong}'.*Did you mean .*\b{name}\b") as error:
            kind(*by_position(kind)[:-1], **{wrong: None})
        assert kind.__name__ in str(error.value)


def test_a_misspelt_name_is_refused_through_shaps_door():
    with pytest.raises(TypeError, match="'complment'.*Did you mean complement"):
        shap.Explainer(lambda x: x, BACKGROUND, algorithm="shear", complment="uniform")


def test_a_name_like_no_other_is_refused_with_all_that_there_are():
    with pytest.raises(TypeError, match=r"'zzz'\. Its arguments are model, masker, .*antithetic"):
        shap_ext.ShearExplainer(lambda x: x, BACKGROUND, zzz=1)  # type: ignore[call-arg]


@pytest.mark.parametrize(
    "options",
    [{"paired": False, "seed": 3, "sizes": "leverage", "groups": {"both": [0, 1]}}],
)
@pytest.mark.parametrize("loader", [shap.Explainer, shap_ext.LeastSquaresExplainer])
def test_options_by_name_come_back_from_files(options, loader):
    """shap's own loader passes on only what a constructor takes by position."""
    made = shap_ext.LeastSquaresExplainer(np.sum, BACKGROUND, output_names=["sum"], **options)
    file = io.BytesIO()
    made.save(file)
    file.seek(0)
    loaded = loader.load(file)
    assert type(loaded) is type(made)
    for name in parameters(type(made)):
        if name not in ("model", "masker"):
            assert getattr(loaded, name) == getattr(made, name), name


def test_a_file_of_another_class_is_refused():
    file = io.BytesIO()
    shap_ext.OddGPExplainer(np.sum, BACKGROUND).save(file)
    file.seek(0)
    with pytest.raises(TypeError, match=r"OddGPExplainer.*ShearExplainer"):
        shap_ext.ShearExplainer.load(file)
