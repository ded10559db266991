"""Superpixels as feature masks: the same segments as in shap_ext, and captum's picture of them."""

import numpy as np
import pytest

from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from tests.helpers.optional import captum_ext, torch

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
