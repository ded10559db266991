"""Settings of papers as named presets of the networks that explain, through both hosts."""

from typing import Any

import numpy as np
import pytest
import shap

import shap_ext
from shapley_adapters.errors import InvalidArgumentError
from tests.shap_host.games import reloaded

torch: Any = pytest.importorskip("torch")
pytest.importorskip("safetensors")
captum_ext: Any = pytest.importorskip("captum_ext")

N = 4
X = np.random.default_rng(0).normal(size=(80, N)).astype(np.float32)
REFERENCE = np.zeros((1, N), dtype=np.float32)

# As printed: SimSHAP's sections 4.1.1 and 4.2.1, its appendices A.5 and A.6; FastSHAP's notebook.
PRINTED = {
    ("SimShap", "paper"): {
        "labels": "simsemivalue",
        "student": "mlp",
        "student_options": {"widths": (128, 128, 128), "activation": "relu"},
        "evaluations": 64,
        "paired": True,
        "epochs": 1000,
        "rows_per_step": 1024,
        "learning_rate": 7e-4,
        "efficient": False,
    },
    ("SimShap", "paper_images"): {
        "labels": "simsemivalue",
        "student": "unet",
        "evaluations": 8,
        "paired": True,
        "epochs": 500,
        "rows_per_step": 256,
        "learning_rate": 2e-4,
        "efficient": False,
    },
    ("FastShap", "paper"): {
        "student": "mlp",
        "student_options": {"widths": (128, 128), "activation": "relu"},
        "evaluations": 32,
        "paired": True,
        "epochs": 200,
        "rows_per_step": 32,
        "learning_rate": 2e-4,
        "patience": 5,
        "efficient": True,
    },
}
FEW: dict[str, Any] = {"epochs": 2, "seed": 0, "validation_evaluations": 16}


def curved(x):
    return np.tanh(np.asarray(x, dtype=float)).sum(axis=1) + np.asarray(x, dtype=float)[:, 0] ** 2


def forward(x):
    return torch.tanh(x).sum(dim=1) + x[:, 0] ** 2


def through_shap(kind="SimShap", **options):
    """Build it by shap's own constructor, which passes the caller's arguments on."""
    return shap.Explainer(curved, REFERENCE, algorithm=kind.lower(), training_data=X, **options)


def through_captum(kind="SimShap", **options):
    return getattr(captum_ext, kind)(forward, **options)


each_host = pytest.mark.parametrize("make", [through_shap, through_captum])


def fitted(method):
    return method.fit() if hasattr(method, "masker") else method.fit(torch.as_tensor(X))


def values(method):
    if hasattr(method, "masker"):
        return method(X[:5]).values
    return method.attribute(torch.as_tensor(X[:5])).numpy()


@each_host
@pytest.mark.parametrize("which", PRINTED, ids=" ".join)
def test_presets_hold_what_is_printed(make, which):
    kind, name = which
    made = make(kind, preset=name)
    assert made.preset == name
    for argument, value in PRINTED[which].items():
        assert getattr(made, argument) == value, argument


@each_host
def test_passed_arguments_win_even_with_their_default_values(make):
    made = make(
        preset="paper",
        epochs=100,
        rows_per_step=64,
        efficient=True,
        learning_rate=None,
        labels=None,
    )
    assert (made.epochs, made.rows_per_step, made.efficient) == (100, 64, True)
    assert made.learning_rate is None
    assert made.labels == "oddgp"
    assert made.evaluations == 64  # left out
    assert make(preset="paper", paired=False).paired is False  # Algorithm 1 of the paper


@each_host
def test_entries_of_mappings_that_are_passed_win(make):
    made = make(preset="paper", student_options={"widths": (512,)})
    assert made.student_options == {"widths": (512,), "activation": "relu"}
    assert made.max_gradient_norm is None
    other = make(preset="paper", student="unet", student_options={"grid": (2, 2)})
    assert other.student_options == {"grid": (2, 2)}
    module = torch.nn.Linear(N, N)
    assert make(preset="paper", student=module).student_options is None


@each_host
def test_an_unknown_preset_is_refused_with_all_names(make):
    with pytest.raises(
        InvalidArgumentError, match=r"preset must be one of 'paper', 'paper_images'"
    ):
        make(preset="papers")
    with pytest.raises(InvalidArgumentError, match=r"preset must be one of 'paper'; got"):
        make("FastShap", preset="paper_images")
    with pytest.raises(TypeError, match="preset"):
        make(preset=["paper"])


@each_host
@pytest.mark.parametrize("kind", ["SimShap", "FastShap"])
def test_a_preset_is_the_same_as_its_arguments(make, kind):
    """The paper's form, but for few epochs; and with normalised values only where it says so."""
    preset = fitted(make(kind, preset="paper", **FEW))
    printed = {**PRINTED[kind, "paper"], **FEW}
    by_hand = fitted(
        make(kind, learning_rate_schedule="constant", max_gradient_norm=None, **printed)
    )
    np.testing.assert_array_equal(values(preset), values(by_hand))
    module = preset.trained.network.network
    assert any(isinstance(layer, torch.nn.ReLU) for layer in module.modules())
    sums = values(preset).sum(axis=1) - curved(X[:5])
    assert (np.abs(sums).max() < 1e-5) == (kind == "FastShap")


def test_saved_explainers_have_the_same_options():
    """Also an option that the user set back to its default, or changed afterwards."""
    made = through_shap(preset="paper", epochs=100, seed=0)
    made.rows_per_step = 64
    loaded = reloaded(made, shap_ext.SimShapExplainer)
    assert (loaded.preset, loaded.epochs, loaded.rows_per_step) == ("paper", 100, 64)
    assert (loaded.efficient, loaded.learning_rate) == (False, 7e-4)
