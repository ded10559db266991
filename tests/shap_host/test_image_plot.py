"""Our image plot: shap's, with panels of errors."""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import shap

import shap_ext
from shap_ext.maskers import Superpixels


@pytest.mark.parametrize(("shape", "n_outputs"), [((6, 8), 1), ((6, 8, 1), 3), ((6, 8, 3), 3)])
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
    panels = figure.axes[:-2]
    n_columns = 2 * n_outputs + 1
    assert len(panels) == 2 * n_columns
    assert names is None or [p.get_title() for p in panels[1:n_columns:2]] == names
    assert {p.get_title() for p in panels[2:n_columns:2]} == {"± (95 % interval)"}
    sums = [found.values, found.upper_bounds - found.values]
    if len(shape) == 3:
        sums = [array.sum(axis=3) for array in sums]
    for k in range(n_outputs):
        for row in range(2):
            pair = panels[row * n_columns + 1 + 2 * k :][:2]
            for panel, numbers in zip(pair, sums, strict=True):
                wanted = numbers[row].reshape(6, 8, n_outputs)[..., k]
                np.testing.assert_allclose(panel.images[1].get_array(), wanted, atol=1e-12)
            limit = np.abs(sums[0]).max()
            assert 0.9 * limit < pair[0].images[1].get_clim()[1] <= limit
            assert pair[1].images[1].get_clim() == pytest.approx(
                (0, sums[1].max() or pair[0].images[1].get_clim()[1])
            )
    errors_bar, values_bar = (axes.get_xlabel() for axes in figure.axes[-2:])
    assert values_bar == "SHAP value"
    assert errors_bar == "half width of the 95 % interval"
    one = shap_ext.plots.image(found[1], show=False)
    assert len(one.axes) == n_columns + 2
    np.testing.assert_array_equal(
        one.axes[2].images[1].get_array(), panels[n_columns + 2].images[1].get_array()
    )
    plt.close("all")


@pytest.mark.parametrize(("factor", "width"), [(0, 0), (0, 0.2), (-1, 0.2), (1, 0)])
def test_zeros_and_one_sign_are_drawn(factor, width):
    values = factor * np.random.default_rng(0).random((1, 6, 8))
    found = shap.Explanation(
        values,
        base_values=np.zeros(1),
        data=np.ones((1, 6, 8)),
        lower_bounds=values - width,
        upper_bounds=values + width,
        error_std=np.full(values.shape, width / 2),
    )
    figure = shap_ext.plots.image(found, show=False)
    figure.canvas.draw()
    picture, errors = (axes.images[1] for axes in figure.axes[1:3])
    limit = np.abs(values).max() or width or 1.0
    low, high = picture.get_clim()
    assert low == -high
    assert 0.9 * limit < high <= limit
    assert errors.get_clim() == pytest.approx((0, width or high))
    given = shap_ext.plots.image(found, vmax=3, show=False)
    assert given.axes[1].images[1].get_clim() == (-3, 3)
    plt.close("all")
