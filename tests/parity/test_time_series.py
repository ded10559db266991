"""Time series by windows and channels, in both hosts: labels, and numbers by hand."""

import numpy as np
import pytest

from shapley_adapters import windows
from shapley_adapters.errors import InvalidArgumentError
from tests.helpers.brute_force import shapley_values
from tests.helpers.optional import captum_ext, torch

shap = pytest.importorskip("shap")
import shap_ext  # noqa: E402

SERIES = np.random.default_rng(0).normal(size=(9, 2))
MEAN = np.array([[0.5, -1.0]])


@pytest.mark.parametrize(
    ("shape", "options", "wanted"),
    [
        ((5, 2), {"width": 2}, [[0, 1], [0, 1], [2, 3], [2, 3], [4, 5]]),
        ((4, 2), {"width": 3, "offset": 2}, [[0, 1], [0, 1], [2, 3], [2, 3]]),
        ((3, 2), {}, [[0, 1]] * 3),
        ((5,), {"width": 2, "offset": 1}, [0, 1, 1, 2, 2]),
        ((5,), {"change_points": [1, 4]}, [0, 1, 1, 1, 2]),
        ((2, 3), {"width": 2, "channels_last": False}, [[0, 0, 2], [1, 1, 3]]),
        ((2, 3), {"width": 1, "channels": "together"}, [[0, 0, 0], [1, 1, 1]]),
        ((2, 3), {"width": 1, "channels": ["acc", "gyro", "acc"]}, [[0, 1, 0], [2, 3, 2]]),
    ],
)
def test_labels(shape, options, wanted):
    labels = windows(shape, **options)
    assert labels.tolist() == wanted
    assert labels.flags.c_contiguous  # captum's samplers need contiguous masks


@pytest.mark.parametrize(
    ("shape", "options", "message"),
    [
        ((1, 5, 2), {}, r"x.shape\[1:\]"),
        ((5,), {"width": 6}, "width may be up to 5"),
        ((5,), {"width": 2, "offset": 2}, "offset must be less"),
        ((5,), {"width": 0}, "width"),
        ((5,), {"change_points": [2, 2]}, "rise, from 1 to 4.*empty"),
        ((5,), {"change_points": [5]}, "rise, from 1 to 4"),
        ((5,), {"change_points": [0.5]}, "whole numbers"),
        ((5,), {"change_points": [2], "width": 2}, "leave width and offset out"),
        ((5, 2), {"channels": ["a"]}, "1 names, but the series has 2"),
        ((5, 2), {"channels": "joint"}, "'apart', 'together'"),
    ],
)
def test_labels_that_do_not_fit_are_refused(shape, options, message):
    with pytest.raises(InvalidArgumentError, match=message):
        windows(shape, **options)


def model(x):
    """Return a score of series, (N, times, channels), in which windows and channels interact."""
    first = np.tanh(x[..., 0] @ np.linspace(-1, 1, 9))
    return first * np.cos(x[..., 1].sum(axis=1)) + x[:, -1, 0] ** 2 + x[:, 4, 1]


def by_hand(labels):
    """Return the Shapley value of each label."""

    def value(coalition):
        present = np.isin(labels, list(coalition))
        return model(np.where(present, SERIES, MEAN)[None])[0]

    return shapley_values(labels.max() + 1, value)


LABELS = {
    "fixed": windows(SERIES.shape, 4),
    "change points": windows(SERIES.shape, change_points=[2, 7], channels="together"),
    "channels": windows(SERIES.shape),
}


@pytest.mark.parametrize("labels", LABELS.values(), ids=LABELS)
def test_windows_through_both_hosts(labels):
    masker = shap_ext.maskers.Superpixels(labels, np.broadcast_to(MEAN, SERIES.shape))
    sv = shap.Explainer(model, masker, algorithm="enumeration")(SERIES[None])
    sums = np.bincount(labels.ravel(), sv.values[0].ravel())
    np.testing.assert_allclose(sums, by_hand(labels), rtol=0, atol=1e-10)
    attributions = captum_ext.Exact(lambda x: torch.from_numpy(model(x.numpy()))).attribute(
        torch.from_numpy(SERIES[None]),
        baselines=torch.from_numpy(np.broadcast_to(MEAN, SERIES.shape).copy())[None],
        feature_mask=torch.as_tensor(labels)[None],
    )
    np.testing.assert_allclose(attributions[0], by_hand(labels)[labels], rtol=0, atol=1e-10)
