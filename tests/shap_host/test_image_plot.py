"""Our image plot: shap's, with hatching."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import shap

import shap_ext
from shap_ext.maskers import Superpixels
from shapley_adapters.errors import InvalidArgumentError


@pytest.mark.parametrize("n_outputs", [1, 3])
@pytest.mark.parametrize("shape", [(6, 8), (6, 8, 1), (6, 8, 3)])
def test_plots_take_them_without_a_further_call(shape, n_outputs):
    images = np.random.default_rng(3).random((2, *shape))

    def outputs(x):
        x = x.reshape(len(x), 6, 8, -1)
        return np.tanh(5 * x * x[:, ::-1])[..., 0].reshape(len(x), -1)[:, 10 : 10 + n_outputs]

    names = ["cat", "dog", "owl"][:n_outputs] if n_outputs > 1 else None
    explainer = shap.Explainer(
        outputs, Superpixels((3, 4)), algorithm="randomorder", seed=0, output_names=names
    )
    found = explainer(images, max_evals=60, error_bounds=True)
    shap.image_plot(found, show=False)
    figure = shap_ext.plots.image(found, show=False)
    panels = figure.axes[:-1]
    assert len(panels) == 2 * (n_outputs + 1)
    assert names is None or [p.get_title() for p in panels[1 : n_outputs + 1]] == names
    sums = [found.values, found.upper_bounds - found.values]
    if len(shape) == 3:
        sums = [array.sum(axis=3) for array in sums]
    hatched = np.abs(sums[0]) <= sums[1]
    assert 0 < hatched.mean() < 1
    first = hatched[0].reshape(6, 8, -1)[..., 0].astype(int)
    runs = sum(len(item.get_paths()) for item in panels[1].collections)
    assert runs == (np.diff(first, axis=1, prepend=0) > 0).sum()
    assert len(shap_ext.plots.image(found[1], show=False).axes) == n_outputs + 2
    plt.close("all")


def test_it_needs_bounds_and_images():
    explainer = shap.Explainer(
        lambda x: x.reshape(len(x), -1).sum(axis=1), np.zeros((1, 4)), algorithm="oddgp", seed=0
    )
    with pytest.raises(InvalidArgumentError, match="no bounds"):
        shap_ext.plots.image(explainer(np.ones((1, 4))))
    pairs = explainer(np.ones((2, 4)), interactions=True, error_bounds=True)
    with pytest.raises(InvalidArgumentError, match="needs images, and attributions of their shape"):
        shap_ext.plots.image(pairs[..., 0])
