"""captum's pictures beside the standard errors: scales, arguments of captum."""

import matplotlib.pyplot as plt
import numpy as np
import pytest

from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from tests.helpers.optional import HAS_TORCH, captum_ext, torch

if not HAS_TORCH:
    pytest.skip("torch is not installed", allow_module_level=True)

HEIGHT, WIDTH = 6, 8
draw = captum_ext.visualize_image_attr_with_error


@pytest.fixture(autouse=True)
def closed_figures():
    yield
    plt.close("all")


def image(channels=3, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(HEIGHT, WIDTH, channels))
    return values, rng.uniform(0.05, 0.8, size=values.shape)


def test_standard_errors_have_their_own_scale_from_zero():
    values, errors = image()
    _, axes = draw(values, errors, use_pyplot=False)
    picture = axes[1].images[0]
    np.testing.assert_allclose(picture.get_array(), errors.sum(2))
    assert picture.get_clim() == pytest.approx((0, errors.sum(2).max()))


def test_arguments_of_captum_pass_through():
    values, errors = image()
    original = np.random.default_rng(1).random(values.shape)
    figure, axes = draw(
        values,
        errors,
        original,
        "blended_heat_map",
        "all",
        show_colorbar=True,
        title="a title",
        fig_size=(3, 4),
        use_pyplot=False,
    )
    assert axes[0].get_title() == "a title"
    assert len(axes[0].images) == 2  # the image and the heat map
    assert tuple(figure.get_size_inches()) == (6, 4)


def test_tensors_of_a_method_and_given_axes():
    x = torch.rand(1, 2, HEIGHT, WIDTH, generator=torch.Generator().manual_seed(0))
    mask = torch.arange(WIDTH).expand(1, 2, HEIGHT, WIDTH)
    net = lambda x: torch.tanh(x.sum((1, 2)))[:, 0] * x[:, 0].mean((1, 2)) + x[:, 1].amax((1, 2))  # noqa: E731
    attr, error = captum_ext.RandomOrder(net, seed=0).attribute(
        x, feature_mask=mask, n_samples=60, return_standard_error=True
    )
    given = plt.subplots(1, 2)
    figure, axes = draw(
        attr[0].permute(1, 2, 0),
        error[0].permute(1, 2, 0),
        plt_fig_axis=given,
        use_pyplot=False,
    )
    assert figure is given[0]
    assert list(axes) == list(given[1])


def test_figures_are_shown_by_default(monkeypatch):
    shown = []
    monkeypatch.setattr(plt, "show", lambda: shown.append(plt.gcf()))
    figure, _ = draw(*image())
    assert shown == [figure]


def test_batches_are_refused():
    values, errors = image()
    with pytest.raises(InvalidArgumentError, match=r"attr\[0\].permute\(1, 2, 0\)"):
        draw(torch.zeros(2, 3, 4, 4), errors)
    with pytest.raises(InvalidArgumentError, match="same shape"):
        draw(values, errors[:-1])
    with pytest.raises(InvalidArgumentError, match="two axes"):
        draw(values, errors, plt_fig_axis=plt.subplots())
    with pytest.raises(InvalidArgumentTypeError, match="nonsense"):
        draw(values, errors, nonsense=1)
