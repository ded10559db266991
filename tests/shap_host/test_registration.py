"""The algorithms in `shap.Explainer`: explicit, reversible, and in nobody's way."""

import functools
import importlib
import inspect

import numpy as np
import pytest
import shap
import sklearn.ensemble
from shap import Explainer  # bound before anything here registers again
from shap.utils._exceptions import InvalidAlgorithmError

import shap_ext
import shap_ext.registration
from tests.shap_host.games import curved, rows

pytestmark = [pytest.mark.versions, pytest.mark.filterwarnings("error")]

ALL = shap_ext.algorithms()
BACKGROUND, X = rows(2, 4, seed=1), rows(3, 4)


@pytest.fixture(autouse=True)
def restored():
    """Leave `shap.Explainer` as the import of shap_ext makes it."""
    before = Explainer.__init__
    yield
    Explainer.__init__ = before
    shap_ext.register()
    assert Explainer.__init__ is before


def bare_init():
    """Return shap's own `Explainer.__init__`."""
    return inspect.unwrap(Explainer.__init__)


@pytest.mark.parametrize(
    "name", ["random_order", "random-order", "Random_Order", "RANDOMORDER", "-random__order-"]
)
def test_case_hyphen_and_underscore_do_not_matter(name):
    assert type(Explainer(curved, BACKGROUND, algorithm=name)) is shap_ext.RandomOrderExplainer


@pytest.mark.parametrize("name", ["random order", "shear2", "she", "", "Exact", "sheär"])
def test_unknown_names_are_still_refused_by_shap(name):
    with pytest.raises(InvalidAlgorithmError, match="Unknown algorithm type passed") as raised:
        shap.Explainer(curved, BACKGROUND, algorithm=name)
    for known in (*shap_ext.algorithms(), "permutation", "partition", "tree"):
        assert f" {known}" in str(raised.value), known


def test_everything_given_arrives():
    built = shap.Explainer(
        curved,
        BACKGROUND,
        shap.links.logit,
        "shear",
        ["out"],
        list("abcd"),
        False,
        5,
        groups={"both": ["a", "c"]},
        complement="uniform",
        antithetic=False,
        efficient=False,
        cooperators="random",
    )
    assert built.link is shap.links.logit
    assert (built.output_names, built.feature_names) == (["out"], list("abcd"))
    assert (built.linearize_link, built.seed) == (False, 5)
    assert built.groups == {"both": ["a", "c"]}
    assert (built.complement, built.antithetic) == ("uniform", False)
    assert (built.efficient, built.cooperators) == (False, "random")


@pytest.mark.parametrize("algorithm", ["auto", "exact", "permutation", "partition", "tree"])
def test_built_in_algorithms_stay_identical(algorithm):
    model = curved
    if algorithm == "tree":
        forest = sklearn.ensemble.RandomForestRegressor(n_estimators=3, random_state=0)
        model = forest.fit(rows(30, 4), curved(rows(30, 4)))

    def explain():
        # A few of shap's own explainers draw from the global generator.
        np.random.seed(0)  # noqa: NPY002
        explainer = shap.Explainer(model, BACKGROUND, algorithm=algorithm, seed=3)
        return type(explainer), explainer(X)

    registered = explain()
    shap_ext.unregister()
    assert Explainer.__init__ is bare_init()
    bare = explain()
    assert registered[0] is bare[0]
    np.testing.assert_array_equal(registered[1].values, bare[1].values)
    np.testing.assert_array_equal(registered[1].base_values, bare[1].base_values)


def test_built_in_classes_and_subclasses_are_untouched():
    class Own(shap.Explainer):
        def __init__(self, model, masker, extra):
            super().__init__(model, masker, algorithm="shear")  # in a subclass shap ignores it
            self.extra = extra

    own = Own(curved, BACKGROUND, 1)
    assert type(own) is Own
    assert own.extra == 1
    assert type(shap.PermutationExplainer(curved, BACKGROUND)) is shap.PermutationExplainer
    assert type(shap.ExactExplainer(curved, BACKGROUND)) is shap.ExactExplainer


def test_signature_and_name_of_the_constructor_are_kept():
    shap_ext.unregister()
    bare = inspect.signature(Explainer.__init__), inspect.getfullargspec(Explainer.__init__)
    doc = Explainer.__init__.__doc__
    shap_ext.register()
    assert inspect.signature(Explainer.__init__) == bare[0]
    assert inspect.getfullargspec(Explainer.__init__) == bare[1]
    assert Explainer.__init__.__doc__ == doc
    assert Explainer.__init__.__name__ == "__init__"


def test_unregister_restores_the_very_original():
    original = bare_init()
    shap_ext.unregister()
    assert Explainer.__init__ is original
    assert shap_ext.algorithms() == {}
    with pytest.raises(InvalidAlgorithmError):
        shap.Explainer(curved, BACKGROUND, algorithm="shear")
    shap_ext.unregister()  # nothing left to do
    assert Explainer.__init__ is original
    # The classes themselves do not need the registration.
    assert shap_ext.ShearExplainer(curved, BACKGROUND)(X).shape == (3, 4)


@pytest.mark.parametrize("polite", [True, False], ids=["functools.wraps", "bare wrapper"])
def test_wrapper_of_others_on_top_survives(polite):
    ours, calls = Explainer.__init__, []

    def foreign(self, *args, **kwargs):
        calls.append(type(self))
        ours(self, *args, **kwargs)

    Explainer.__init__ = functools.wraps(ours)(foreign) if polite else foreign
    theirs = Explainer.__init__
    assert type(shap.Explainer(curved, BACKGROUND, algorithm="shear")) is shap_ext.ShearExplainer
    assert calls
    shap_ext.unregister()
    assert Explainer.__init__ is theirs  # not ours to remove
    with pytest.raises(InvalidAlgorithmError):
        shap.Explainer(curved, BACKGROUND, algorithm="shear")
    shap_ext.register()
    assert type(shap.Explainer(curved, BACKGROUND, algorithm="shear")) is shap_ext.ShearExplainer
    if polite:
        assert Explainer.__init__ is theirs


def test_reloading_the_module_does_no_harm():
    before = Explainer.__init__
    reloaded = importlib.reload(shap_ext.registration)
    assert reloaded.algorithms() == ALL
    reloaded.register()
    assert Explainer.__init__ is before
    assert type(shap.Explainer(curved, BACKGROUND, algorithm="shear")) is shap_ext.ShearExplainer
    reloaded.unregister()
    assert Explainer.__init__ is bare_init()


def test_own_names_never_shadow_those_of_shap(monkeypatch):
    monkeypatch.setitem(shap_ext.registration._ALGORITHMS, "exact", shap_ext.ShearExplainer)
    with pytest.raises(ValueError, match="'exact' is shap's own"):
        shap_ext.register()
    assert type(shap.Explainer(curved, BACKGROUND, algorithm="exact")) is shap.ExactExplainer
