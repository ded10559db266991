"""Pictures beside their standard errors, and superpixels as feature masks."""

from typing import Any

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from captum.attr import visualization

import captum_ext
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

HEIGHT, WIDTH = 6, 8
draw = captum_ext.visualize_image_attr_with_error


def image(channels=3, seed=0):
    rng = np.random.default_rng(seed)
    values = rng.normal(size=(HEIGHT, WIDTH, channels))
    return values, rng.uniform(0.05, 0.8, size=values.shape)


def draw_unshown(values, errors, **options):
    figure, axes = draw(values, errors, use_pyplot=False, **options)
    figure.canvas.draw()
    return axes, [axes.images[-1] for axes in axes]


def test_standard_errors_have_their_own_scale_from_zero():
    values, errors = image()
    _, (_, picture) = draw_unshown(values, errors)
    np.testing.assert_allclose(picture.get_array(), errors.sum(2))
    assert picture.get_clim() == pytest.approx((0, errors.sum(2).max()))


@pytest.mark.parametrize("sign", ["all", "absolute_value", "positive", "negative"])
def test_both_pictures_have_the_unit_of_the_attributions(sign):
    values, errors = image()
    parts: dict[str, Any] = {
        "all": lambda sums: sums,
        "absolute_value": np.abs,
        "positive": lambda sums: np.maximum(sums, 0),
        "negative": lambda sums: np.minimum(sums, 0),
    }
    expected = parts[sign](values.sum(2))
    axes, (picture, _) = draw_unshown(values, errors, sign=sign)
    low, high = picture.get_clim()
    np.testing.assert_allclose(picture.get_array(), np.clip(expected, low, high))
    assert max(-low, high) in np.abs(expected)  # captum's limit without outliers
    assert picture.colorbar is not None
    plain = visualization.visualize_image_attr(values, sign=sign, use_pyplot=False)[1].images[-1]
    colours, plain_colours = (
        image.cmap(image.norm(np.asarray(image.get_array()))) for image in (picture, plain)
    )
    np.testing.assert_allclose(colours, plain_colours, atol=0.01)
    label = axes[1].images[-1].colorbar.ax.get_xlabel()
    assert label == f"attributions: up to {np.abs(values.sum(2)).max():.3g}"


@pytest.mark.parametrize("unknown", [0, np.nan])
def test_errors_of_zero_and_unknown_errors_are_drawn(unknown):
    values, errors = image()
    _, (_, error_picture) = draw_unshown(values, errors * unknown)
    assert error_picture.get_clim() == pytest.approx((0, np.abs(values.sum(2)).max()))
    draw_unshown(values * 0, errors * 0)


@pytest.mark.every_combination
@pytest.mark.parametrize("factor", [0, 1, -1])
@pytest.mark.parametrize(
    ("sign", "method"),
    [
        ("all", "heat_map"), ("absolute_value", "masked_image"), ("positive", "blended_heat_map"),
        ("negative", "heat_map"),
    ],
)  # fmt: skip
def test_attributions_of_one_sign_or_none_are_drawn(sign, method, factor):
    values = np.abs(image()[0])
    _, (picture, errors) = draw_unshown(
        factor * values, values, sign=sign, method=method, original_image=values
    )
    low, high = picture.get_clim()
    assert low < high or method == "masked_image"
    assert errors.get_clim()[1] == pytest.approx(values.sum(2).max())
    is_shown = factor and (sign, factor) not in [("positive", -1), ("negative", 1)]
    assert np.any(picture.get_array()) == bool(is_shown)


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
    _, axes = draw(values, errors, show_colorbar=False, use_pyplot=False)
    assert axes[0].images[0].colorbar is None
    assert tuple(figure.get_size_inches()) == (6, 4)


def test_tensors_and_given_axes():
    values, errors = map(torch.as_tensor, image())
    given = plt.subplots(1, 2)
    figure, axes = draw(values, errors.requires_grad_(), plt_fig_axis=given, use_pyplot=False)
    assert figure is given[0]
    assert list(axes) == list(given[1])
    np.testing.assert_allclose(np.asarray(axes[1].images[-1].get_array()), errors.detach().sum(2))


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


# --- superpixels as feature masks: the same segments as in shap_ext ---


IMAGES = torch.as_tensor(np.random.default_rng(0).random((2, 3, 6, 8)))
LABELS = np.array([[7, 7, 0, 0], [7, 3, 3, 0], [5, 5, 3, 0]]).repeat(2, 0).repeat(2, 1)


def test_both_hosts_have_the_same_segments():
    maskers = pytest.importorskip("shap_ext").maskers

    def brightness(image):
        return (4 * image.mean(axis=-1)).astype(int)

    for segments in ((2, 3), 7, LABELS, brightness):
        mask = captum_ext.superpixels(IMAGES, segments)
        for image, of_image in zip(IMAGES, mask, strict=True):
            row = maskers.Superpixels(segments, 0.0).row(image.movedim(0, -1))
            np.testing.assert_array_equal(of_image[0], row.places)


def test_labels_of_each_image_and_windows_of_series():
    labels = np.stack([LABELS, LABELS[::-1]])
    mask = captum_ext.superpixels(IMAGES, torch.as_tensor(labels.copy()))
    np.testing.assert_array_equal(mask[:, 0].argmax(dim=1).shape, (2, 8))
    np.testing.assert_array_equal(mask[0, 0], mask[1, 0].flip(0))
    windows = captum_ext.superpixels(IMAGES[:, 0], (3, 1))
    assert windows.shape == (2, 6, 8)
    np.testing.assert_array_equal(windows[0, :, 0], [0, 0, 1, 1, 2, 2])


VOLUMES = torch.as_tensor(np.random.default_rng(1).random((2, 1, 4, 6, 8)))


def test_cells_of_a_number_of_segments_are_squares_in_images_of_any_shape():
    mask = captum_ext.superpixels(torch.zeros(1, 3, 4, 16), 16)
    np.testing.assert_array_equal(mask[0, 0], np.arange(16).reshape(2, 8).repeat(2, 0).repeat(2, 1))


@pytest.mark.parametrize("segments", [1, 8, 24, 100])
def test_cells_of_volumes_are_nearly_cubes(segments):
    mask = captum_ext.superpixels(VOLUMES, segments)[0, 0].numpy()
    counts = [len(np.unique(mask.take(0, axis=a).take(0, axis=b))) for a, b in _LINES]
    assert 0.5 * segments <= np.prod(counts) == mask.max() + 1 <= 1.6 * segments
    sides = np.array(mask.shape) / counts
    assert sides.max() <= 2.7 * sides.min()


_LINES = [(2, 1), (2, 0), (1, 0)]


def test_labels_of_volumes():
    labels = np.arange(4)[:, None, None] * np.ones((4, 6, 8), dtype=int)
    mask = captum_ext.superpixels(VOLUMES, labels)
    np.testing.assert_array_equal(mask[1, 0], labels)
    each = captum_ext.superpixels(VOLUMES, np.stack([labels, labels[::-1]]))
    np.testing.assert_array_equal(each[1, 0], labels[::-1])
    bright = captum_ext.superpixels(VOLUMES, lambda volume: (volume[..., 0] > 0.5).astype(int))
    np.testing.assert_array_equal(bright[:, 0], VOLUMES[:, 0] > 0.5)
    if pytest.importorskip("skimage"):
        found = captum_ext.superpixels(VOLUMES, 6, method="slic")
        assert found.shape == mask.shape


@pytest.mark.parametrize(
    ("images", "segments", "message"),
    [
        (IMAGES, LABELS[:4], r"labels of the shape \(4, 8\).*images, number 0, has 6 x 8"),
        (IMAGES, LABELS + np.nan, "segments holds NaN in 48 places"),
        (IMAGES, (7, 1), "would leave segments of images, number 0, empty"),
        (IMAGES, np.stack([LABELS] * 3), "labels of 3 images, but images holds 2"),
        (IMAGES[0, 0], 4, r"images has the shape \(6, 8\)"),
        (list(IMAGES), 4, "images must be a tensor.*of images of one size"),
        (IMAGES.movedim(1, -1), 4, r"images must have their channels first"),
        (VOLUMES, (2, 2), "slices, lines and columns"),
        (VOLUMES, np.zeros((6, 8), dtype=int), r"\(depth, height, width\)"),
        (VOLUMES, (5, 1, 1), "4 x 6 x 8 pixels"),
        (VOLUMES, np.zeros((4, 6, 7), dtype=int), "4 x 6 x 8 pixels"),
        (VOLUMES, 4 * 6 * 8 + 1, "192 pixels"),
    ],
)
def test_what_fits_no_images_is_refused(images, segments, message):
    with pytest.raises((InvalidArgumentError, InvalidArgumentTypeError), match=message):
        captum_ext.superpixels(images, segments)
