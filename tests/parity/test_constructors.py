"""Constructors of both hosts: their signatures, and the arguments that they refuse.

The classes are read from `__all__`, so that a new one is tested without a new line here.
"""

import inspect
import re
from collections import Counter

import numpy as np
import pytest
import shap

import shap_ext
from tests.helpers.optional import HAS_TORCH, captum_ext
from tests.shap_host.games import reloaded

# Tools, which take a method; captum writes most of their constructors.
TOOLS = {
    *("DataLoaderAttribution", "EmbeddingAttribution", "LLMAttribution", "RemoteLLMAttribution"),
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
each_class = pytest.mark.parametrize("kind", CLASSES.values(), ids=CLASSES)


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


def test_a_name_like_no_other_is_refused_with_all_that_there_are():
    with pytest.raises(TypeError, match=r"'zzz'\. Its arguments are model, masker, .*antithetic"):
        shap_ext.ShearExplainer(lambda x: x, BACKGROUND, zzz=1)  # type: ignore[call-arg]


def test_a_file_of_another_class_is_refused():
    with pytest.raises(TypeError, match=r"OddGPExplainer.*ShearExplainer"):
        reloaded(shap_ext.OddGPExplainer(np.sum, BACKGROUND), shap_ext.ShearExplainer)
