"""Explain a model where only one host is installed: `python try_host.py shap`, or `captum`.

Run in the environment of an installed wheel. Fails if anything of the other host is there, or if a
module of the side imports a package that the side's extra does not install.
"""

import importlib
import importlib.metadata
import importlib.util
import pkgutil
import sys
from pathlib import Path

import numpy as np

ABSENT = {"shap": ["captum", "torch"], "captum": ["numba", "shap"]}
OPTIONAL = {"shap": {"safetensors", "torch"}, "captum": {"safetensors"}}
"""What modules of a side may need although its extra does not install it."""


def import_everything(side):
    """Import every module of a side; returns how many there are."""
    n_modules = 0
    for package in ("shapley_adapters", f"{side}_ext"):
        (folder,) = importlib.import_module(package).__path__
        assert Path(sys.prefix) in Path(folder).parents, f"{package} comes from {folder}"
        for module in pkgutil.walk_packages([folder], f"{package}.", onerror=lambda _: None):
            n_modules += 1
            try:
                importlib.import_module(module.name)
            except ModuleNotFoundError as error:
                if error.name not in OPTIONAL[side]:
                    raise
    return n_modules


def explain_by_shap():
    """Explain trees; returns the attributions, the sums that they must have, and the host."""
    import shap
    from sklearn.datasets import load_breast_cancer
    from sklearn.ensemble import HistGradientBoostingClassifier

    import shap_ext

    rows, labels = load_breast_cancer(return_X_y=True, as_frame=True)
    trees = HistGradientBoostingClassifier(max_iter=20, random_state=0).fit(rows, labels)
    model = trees.decision_function
    assert {"oddgp", "shear"} <= set(shap_ext.algorithms())
    explainer = shap.Explainer(model, rows[:20], algorithm="oddgp", seed=0)
    explanation = explainer(rows[:3], max_evals=240, error_bounds=True)
    assert explanation.error_std.max() > 0
    return explanation.values, model(rows[:3]) - explanation.base_values, shap


def explain_by_captum():
    """Explain a network; returns the attributions, the sums that they must have, and the host."""
    import captum
    import torch

    from captum_ext import OddGP

    torch.manual_seed(0)
    net = torch.nn.Sequential(torch.nn.Linear(12, 16), torch.nn.Tanh(), torch.nn.Linear(16, 1))
    x, reference = torch.randn(3, 12), torch.zeros(1, 12)
    attributions = OddGP(net, seed=0).attribute(x, baselines=reference, target=0, n_samples=96)
    sums = (net(x) - net(reference))[:, 0]
    return attributions.detach().numpy(), sums.detach().numpy(), captum


def check_refusal_of(other):
    """Check that the other side says how to install it."""
    message = "no error"
    try:
        importlib.import_module(f"{other}_ext")
    except ImportError as error:
        message = str(error)
    assert f"pip install 'shapley-ext[{other}]'" in message, message


def main(side):
    """Check one side."""
    for package in ABSENT[side]:
        assert importlib.util.find_spec(package) is None, f"{package} is installed"
    n_modules = import_everything(side)
    values, sums, host = explain_by_shap() if side == "shap" else explain_by_captum()
    np.testing.assert_allclose(values.sum(axis=1), sums, atol=1e-5)
    check_refusal_of("captum" if side == "shap" else "shap")
    print(
        f"{host.__name__} {host.__version__}, numpy {np.__version__}: explained, "
        f"{n_modules} modules imported; "
        f"not installed: {', '.join(ABSENT[side])}"
    )


main(sys.argv[1])
