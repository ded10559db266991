"""captum's tools around our methods: NoiseTunnel, metrics, statistics and pictures.

Four features, so that the default budget pays for all coalitions, and captum's own exact method
tells what each tool has to return. captum's tools are written for float32, and so are these tests.
"""

import matplotlib.pyplot as plt
import numpy as np
import pytest
import torch
from captum.attr import NoiseTunnel, ShapleyValues, visualization
from captum.metrics import infidelity, infidelity_perturb_func_decorator, sensitivity_max
from torch import nn

from tests.captum_host.networks import examples, network
from tests.helpers.estimator_table import OF_KINDS
from tests.helpers.tolerances import Tolerances

pytestmark = pytest.mark.filterwarnings("error")

ROUNDING: Tolerances = {"rtol": 1e-5, "atol": 1e-5}
X = examples(3, 4, dtype=torch.float32)
NET = network(4, 2, dtype=torch.float32)

every_class = pytest.mark.parametrize("row", OF_KINDS, ids=lambda row: row.attribution.__name__)


def built(row, forward_func=NET):
    return row.attribution(forward_func, seed=0, **row.options)


def seeded(function, *args, **kwargs):
    """Call one of captum's tools with equal random numbers each time."""
    with torch.random.fork_rng():
        torch.manual_seed(0)
        return function(*args, **kwargs)


# NoiseTunnel


@every_class
@pytest.mark.parametrize("kind", ["smoothgrad", "smoothgrad_sq", "vargrad"])
@pytest.mark.parametrize("at_once", [None, 2])
def test_noise_tunnel(row, kind, at_once):
    arguments = {
        "nt_type": kind,
        "nt_samples": 5,
        "nt_samples_batch_size": at_once,
        "stdevs": 0.3,
        "target": torch.tensor([0, 1, 0]),
        "baselines": examples(3, 4, dtype=torch.float32, seed=4),
        "feature_mask": torch.tensor([[0, 1, 1, 2]]),
    }
    ours = seeded(NoiseTunnel(built(row)).attribute, X, **arguments)
    theirs = seeded(NoiseTunnel(ShapleyValues(NET)).attribute, X, **arguments)
    torch.testing.assert_close(ours, theirs, **ROUNDING)
    assert ours.abs().max() > 0.01


@every_class
def test_noise_tunnel_over_tuples_and_masks_of_each_example(row):
    y = examples(3, 1, 2, dtype=torch.float32, seed=2)

    def forward(a, b, scale):
        return torch.tanh(a).prod(dim=1) * b.sum(dim=(1, 2)) * scale

    arguments = {
        "nt_samples": 4,
        "stdevs": (0.1, 0.2),
        "additional_forward_args": (torch.tensor([1.0, 2.0, 3.0]),),
        "feature_mask": (
            torch.tensor([[0, 0, 1, 1], [1, 0, 1, 0], [0, 1, 1, 0]]),
            torch.tensor([[[2, 0]]]),
        ),
    }
    ours = seeded(NoiseTunnel(built(row, forward)).attribute, (X, y), **arguments)
    theirs = seeded(NoiseTunnel(ShapleyValues(forward)).attribute, (X, y), **arguments)
    for a, b in zip(ours, theirs, strict=True):
        torch.testing.assert_close(a, b, **ROUNDING)


# Metrics


@every_class
@pytest.mark.parametrize("per_batch", [None, 4])
def test_sensitivity(row, per_batch):
    arguments = {
        "perturb_radius": 0.1,
        "n_perturb_samples": 3,
        "max_examples_per_batch": per_batch,
        "target": torch.tensor([0, 1, 0]),
        "baselines": examples(3, 4, dtype=torch.float32, seed=4),
    }
    ours = seeded(sensitivity_max, built(row).attribute, X, **arguments)
    theirs = seeded(sensitivity_max, ShapleyValues(NET).attribute, X, **arguments)
    torch.testing.assert_close(ours, theirs, **ROUNDING)
    assert (ours > 0.01).all()


@infidelity_perturb_func_decorator(True)
def without_some(inputs, baselines):
    keep = torch.rand(inputs.shape) < 0.5
    return torch.where(keep, inputs, baselines)


@every_class
def test_infidelity(row):
    method = built(row)
    assert method.multiplies_by_inputs  # as the decorator wants it
    baselines = examples(3, 4, dtype=torch.float32, seed=4)
    target = torch.tensor([0, 1, 0])
    scores = [
        seeded(
            infidelity,
            NET,
            without_some,
            X,
            made,
            baselines=baselines,
            target=target,
            n_perturb_samples=6,
        )
        for made in (
            method.attribute(X, baselines=baselines, target=target),
            ShapleyValues(NET).attribute(X, baselines=baselines, target=target),
        )
    ]
    torch.testing.assert_close(scores[0], scores[1], **ROUNDING)
    assert (scores[0] > 1e-4).all()


# Pictures


@pytest.fixture(autouse=True)
def _no_open_figures():
    yield
    plt.close("all")


@every_class
@pytest.mark.parametrize(
    "method", ["heat_map", "blended_heat_map", "masked_image", "alpha_scaling"]
)
def test_images(row, method):
    image = examples(1, 3, 4, 4, dtype=torch.float32).abs().clamp(max=1)
    mask = torch.arange(4).reshape(2, 2).repeat_interleave(2, 0).repeat_interleave(2, 1)
    made = built(row, lambda x: torch.tanh(x).mean(dim=(1, 2, 3))).attribute(
        image, feature_mask=mask
    )
    assert made.shape == image.shape
    pictures = [tensor[0].permute(1, 2, 0).numpy() for tensor in (made, image)]
    _, axes = visualization.visualize_image_attr(
        *pictures, method=method, sign="positive", show_colorbar=True, use_pyplot=False
    )
    drawn = axes.get_images()[-1].get_array()
    assert drawn.shape[:2] == (4, 4)
    assert np.ptp(np.asarray(drawn)) > 0


@every_class
def test_texts(row):
    embedding = nn.Embedding(10, 3)
    ids = torch.tensor([[4, 2, 7, 1]])
    made = built(row, lambda z: embedding(z).tanh().sum(dim=(1, 2))).attribute(ids, baselines=0)
    words = ["not", "bad", "at", "all"]
    marked = visualization.format_word_importances(words, made[0] / made.abs().max())
    assert marked.count("<mark") == 4
    pytest.importorskip("IPython", reason="captum shows texts with IPython")
    record = visualization.VisualizationDataRecord(
        made[0], 0.9, "yes", "yes", "yes", made.sum(), words, 0.0
    )
    html = visualization.visualize_text([record]).data
    assert all(word in html for word in words)
