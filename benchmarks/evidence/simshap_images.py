"""Table 3, Figures 3 and 4 and Tables 9 to 12 of SimSHAP: insertion and deletion on CIFAR-10.

The network is small and expects masked images.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from pathlib import Path
from typing import Any

import captum.attr
import matplotlib.pyplot as plt
import numpy as np
import torch
from games import FloatArray
from network_training import kept_or_trained
from scipy.ndimage import gaussian_filter
from torch import Tensor, nn

import captum_ext

from .items import Claim, Item, Outcome, Setting, difference

GRID = 16
"""Regions along a side, of 2 × 2 pixels."""

_FILES = ("cifar10/cifar10_train.npz", "cifar10/cifar10_test.npz")
_N_STEPS = 16
_LEAST_CHANGE = 0.5
"""Images whose logit changes by less than this from one end to the other have no scaled curve."""


@dataclass(frozen=True)
class Images:
    """The network, images to train on and to explain, and the predicted classes of these."""

    network: nn.Sequential
    training: Tensor
    shown: Tensor
    targets: Tensor
    accuracy: float
    class_names: list[str]

    @property
    def mask(self) -> Tensor:
        """The region of each pixel, (1, 1, 32, 32)."""
        band = torch.arange(32) // 2
        return (band[:, None] * GRID + band)[None, None]


@cache
def _images_of(setting: Setting, n_training: int, n_shown: int, epochs: int) -> Images:
    """Train the network or read it from the cache, and take images that it classifies right.

    The split is CIFAR-10's own; another seed takes other images of both parts.
    """
    seed = setting.seed
    parts = [np.load(setting.data / file) for file in _FILES]
    (x, y), (x_test, y_test) = (
        _standardised(part["images"], part["labels"], seed) for part in parts
    )
    network = _trained(x, y, epochs, setting.cache, seed)
    with torch.no_grad():
        told = torch.cat([network(some).argmax(1) for some in x_test.split(100)])
    is_right = told == y_test
    shown = is_right.nonzero()[:, 0][:: max(int(is_right.sum()) // n_shown, 1)][:n_shown]
    names = [str(name) for name in parts[0]["class_names"]]
    accuracy = float(is_right.float().mean())
    return Images(network, x[:n_training], x_test[shown], told[shown], accuracy, names)


def _standardised(pixels: FloatArray, labels: FloatArray, seed: int) -> tuple[Tensor, Tensor]:
    """Return images with 0 for grey, and labels, in an order that mixes the classes."""
    order = np.random.default_rng(seed).permutation(len(pixels))
    x = torch.tensor(np.moveaxis(pixels[order] / 255.0, 3, 1) - 0.5, dtype=torch.float32) * 4
    return x, torch.tensor(labels[order].astype(np.int64))


def _trained(x: Tensor, y: Tensor, epochs: int, cache_folder: Path, seed: int) -> nn.Sequential:
    """Return a network that has seen images with random regions at 0, and mirrored ones."""
    key = hashlib.sha256(
        Path(__file__).read_bytes() + f"{epochs} {torch.__version__} {seed}".encode()
    )
    path = cache_folder / f"cifar-masked-{key.hexdigest()[:12]}.pt"

    def learn(network: nn.Sequential) -> None:
        n_steps = epochs * -(-len(x) // 64)
        optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=0.02)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, n_steps)
        for _ in range(epochs):
            for batch in torch.randperm(len(x)).split(64):
                is_mirrored = torch.rand(len(batch), 1, 1, 1) < 0.5
                some = torch.where(is_mirrored, x[batch].flip(3), x[batch])
                share = torch.rand(len(batch), 1, 1, 1)
                present = torch.rand(len(batch), 1, GRID, GRID) < torch.clamp(1.5 * share, max=1.0)
                masked = some * nn.functional.interpolate(present.float(), scale_factor=2)
                loss = nn.functional.cross_entropy(network(masked), y[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()

    return kept_or_trained(_network, path, seed, learn)


def _network() -> nn.Sequential:
    return nn.Sequential(
        nn.Conv2d(3, 24, 3, stride=2, padding=1), nn.ReLU(),
        nn.Conv2d(24, 48, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Conv2d(48, 64, 3, padding=1), nn.ReLU(), nn.MaxPool2d(2),
        nn.Flatten(), nn.Linear(64 * 16, 10),
    )  # fmt: skip


def curves(of_images: Images, attributions: FloatArray) -> dict[str, FloatArray]:
    """Return the scaled curves, (images, steps + 1), of images whose logit changes enough.

    Insertion goes from the blurred image, scaled to 0, to the image, scaled to 1; deletion from
    the image, scaled to 1, to grey, scaled to 0. The largest attributions come first.
    """
    x = of_images.shown
    blurred = torch.from_numpy(gaussian_filter(x.numpy(), (0, 0, 3, 3)))
    ranks = np.argsort(np.argsort(-attributions, axis=1, kind="stable"), axis=1, kind="stable")
    first = ranks[:, None] < np.linspace(0, GRID**2, _N_STEPS + 1)[:, None]  # (R, T, M)
    chosen = torch.from_numpy(first)[:, :, of_images.mask.flatten()].reshape(
        *first.shape[:2], 1, 32, 32
    )
    inserted = _logits(of_images, torch.where(chosen, x[:, None], blurred[:, None]))
    deleted = _logits(of_images, torch.where(chosen, torch.zeros(1), x[:, None]))
    return {
        "insertion": _scaled(inserted, inserted[:, :1], inserted[:, -1:]),
        "deletion": _scaled(deleted, deleted[:, -1:], deleted[:, :1]),
    }


def _scaled(values: FloatArray, low: FloatArray, high: FloatArray) -> FloatArray:
    """Return curves from 0 to 1; NaN where the ends are close together."""
    change = np.where(high - low < _LEAST_CHANGE, np.nan, high - low)
    return (values - low) / change


def _logits(of_images: Images, inputs: Tensor) -> FloatArray:
    """Return the logits of the predicted classes, (images, steps)."""
    n_steps = inputs.shape[1]
    with torch.no_grad():
        found = torch.cat([of_images.network(some) for some in inputs.flatten(0, 1).split(512)])
    targets = of_images.targets.repeat_interleave(n_steps)
    return found.gather(1, targets[:, None]).reshape(-1, n_steps).double().numpy()


def area(scaled: FloatArray) -> FloatArray:
    """Return the area under each curve, (images,)."""
    return ((scaled[:, 1:] + scaled[:, :-1]) / 2).mean(axis=1)


_SIM, _RANDOM = "SimSHAP", "at random"
_PUBLISHED = {
    _SIM: (0.757, -0.302),
    "FastSHAP": (0.748, -0.133),
    "GradCAM": (0.563, -0.075),
    "IG": (0.241, 0.033),
    "SmoothGrad": (0.318, -0.246),
    "DeepSHAP": (0.291, -0.140),
    "KernelSHAP-S": (0.542, -0.305),
}
"""Areas of insertion and of deletion, Table 3."""

_DEFAULT: dict[str, Any] = {"learning_rate": 2e-3, "epochs": 8, "rows_per_step": 32}
_N_TRAINING = 300
_SETTINGS: dict[str, tuple[dict[str, Any], tuple[float, float]]] = {
    "learning rate × 5 (theirs 1e-3)": ({"learning_rate": 1e-2}, (0.733, -0.301)),
    "learning rate ÷ 20 (theirs 1e-5)": ({"learning_rate": 1e-4}, (0.691, -0.302)),
    "epochs × 0.4 (theirs 200)": ({"epochs": 3}, (0.726, -0.332)),
    "batch ÷ 4 (theirs 64)": ({"rows_per_step": 8}, (0.716, -0.298)),
    "16 % of the images": ({"share": 0.16}, (0.736, -0.359)),
    "40 % of the images": ({"share": 0.4}, (0.767, -0.298)),
}
_PUBLISHED_DEFAULT = (0.755, -0.302)
_KINDS = ("insertion", "deletion")

_SHORT = (
    "Our networks have seen far fewer evaluations than theirs: 300 · 8 · 8 = 19,200, where the "
    "paper has 50,000 · 8 · 500 = 200 million, so that this says little about the method."
)


def _images(setting: Setting) -> Images:
    n_training, n_shown, epochs = (40, 6, 2) if setting.is_quick else (_N_TRAINING, 40, 15)
    return _images_of(setting, n_training, n_shown, epochs)


@cache
def _by_network(setting: Setting, kind: str, changed: tuple[tuple[str, Any], ...]) -> FloatArray:
    """Train SimSHAP or FastSHAP; return the attributions of the regions, (R, 256)."""
    of_images = _images(setting)
    options = {**_DEFAULT, **dict(changed)}
    again = options.pop("again", 0)
    n_training = round(options.pop("share", 1.0) * len(of_images.training))
    if setting.is_quick:
        options["epochs"] = 1
    as_printed = {"labels": "simsemivalue"} if kind == _SIM else {}
    make: Any = captum_ext.SimShap if kind == _SIM else captum_ext.FastShap
    method = make(
        of_images.network, student="unet", student_options={"grid": (GRID, GRID), "width": 8},
        evaluations=8, efficient=False, seed=setting.seed + 100 * again,
        validation_evaluations=64, **as_printed, **options,
    ).fit(of_images.training[:n_training], baselines=0, feature_mask=of_images.mask)  # fmt: skip
    found = method.attribute(
        of_images.shown, baselines=0, target=of_images.targets, feature_mask=of_images.mask,
        return_input_shape=False,
    )  # fmt: skip
    return found.detach().double().numpy()


def _by_captum(setting: Setting) -> dict[str, FloatArray]:
    """Return the attributions of the other methods, pooled to regions."""
    of_images = _images(setting)
    network, x, target = of_images.network, of_images.shown, of_images.targets
    last = [layer for layer in network if isinstance(layer, nn.Conv2d)][-1]
    cam = captum.attr.LayerGradCam(network, last).attribute(x, target=target)
    smooth = captum.attr.NoiseTunnel(captum.attr.Saliency(network))
    torch.manual_seed(setting.seed)
    references = torch.cat([torch.zeros_like(x[:1]), of_images.training[:4]])
    kernel = captum_ext.LeastSquares(network, paired=True, seed=0)
    shapley = kernel.attribute(
        x, baselines=0, target=target, feature_mask=of_images.mask,
        n_samples=600 if setting.is_quick else 1024, return_input_shape=False,
    )  # fmt: skip
    per_pixel = {
        "GradCAM": nn.functional.interpolate(cam, size=(32, 32), mode="bilinear"),
        "IG": captum.attr.IntegratedGradients(network).attribute(x, target=target, n_steps=25),
        "SmoothGrad": smooth.attribute(x, target=target, nt_samples=10, stdevs=0.3, abs=False),
        "DeepSHAP": captum.attr.DeepLiftShap(network).attribute(x, references, target=target),
    }
    pooled = {name: _pooled(found) for name, found in per_pixel.items()}
    return {**pooled, "KernelSHAP-S": shapley.double().numpy()}


def _pooled(found: Tensor) -> FloatArray:
    """Return the sum over colours, averaged over the pixels of each region."""
    regions = nn.functional.avg_pool2d(found.detach().sum(1, keepdim=True), 2)
    return regions.flatten(1).double().numpy()


@cache
def _all(setting: Setting) -> dict[str, FloatArray]:
    networks = {kind: _by_network(setting, kind, ()) for kind in (_SIM, "FastSHAP")}
    return {**networks, **_by_captum(setting)}


def _settings(setting: Setting) -> dict[str, str]:
    of_images = _images(setting)
    return {
        "model": f"CNN of three layers, accuracy {of_images.accuracy:.2f} (theirs a ResNet-18)",
        "trained on": "2,200 images (theirs 50,000), some of them masked",
        "images to train networks on": str(len(of_images.training)),
        "epochs": "1" if setting.is_quick else f"{_DEFAULT['epochs']} (theirs 500)",
        "explained images": str(len(of_images.shown)),
    }


def _table_3(setting: Setting) -> Outcome:
    """Compare the areas of SimSHAP with those of the others."""
    of_images = _images(setting)
    found = dict(_all(setting))
    found[_RANDOM] = np.random.default_rng(setting.seed).random(found[_SIM].shape)
    areas = {name: _areas(of_images, values) for name, values in found.items()}
    comparisons = []
    for place, kind in enumerate(_KINDS):
        for name in _PUBLISHED:
            if name != _SIM:
                ours, control = (
                    float(np.nanmean(areas[one][kind] - areas[name][kind]))
                    for one in (_SIM, _RANDOM)
                )
                theirs = _PUBLISHED[_SIM][place] - _PUBLISHED[name][place]
                quantity = f"area of {kind} by {_SIM} less that by {name}"
                comparisons.append(difference(quantity, ours, control, theirs=theirs, claim=place))
    n_left_out = ", ".join(f"{int(np.isnan(areas[_SIM][kind]).sum())} of {kind}" for kind in _KINDS)
    note = (
        "Curves of the logit of the predicted class, scaled so that they run from 0 to 1 (from 1 "
        f"to 0 for deletion); images whose logit hardly changes are left out ({n_left_out}). "
        "Logits below that of the grey image give negative areas. The classifier has seen masked "
        "images and is its own surrogate, so that KernelSHAP and KernelSHAP-S are one. "
    )
    note += _SHORT
    draw = partial(_draw_curves, of_images, found)
    return Outcome(comparisons, _settings(setting), (note,), draw)


def _areas(of_images: Images, attributions: FloatArray) -> dict[str, FloatArray]:
    found = curves(of_images, attributions)
    return {kind: area(found[kind]) for kind in _KINDS}


def _tables_9_to_12(setting: Setting) -> Outcome:
    """Compare some settings of each table with the default."""
    of_images = _images(setting)
    base, again = (
        _areas(of_images, _by_network(setting, _SIM, changed)) for changed in ((), (("again", 1),))
    )
    comparisons = []
    chosen = list(_SETTINGS.items())[:1] if setting.is_quick else _SETTINGS.items()
    for name, (changed, theirs) in chosen:
        areas = _areas(of_images, _by_network(setting, _SIM, tuple(changed.items())))
        for place, kind in enumerate(_KINDS):
            ours, control = (float(np.nanmean(one[kind] - base[kind])) for one in (areas, again))
            published = theirs[place] - _PUBLISHED_DEFAULT[place]
            quantity = f"area of {kind}, {name}, less that of the default"
            comparisons.append(difference(quantity, ours, control, theirs=published))
    note = (
        "Two settings of Table 9 (learning rate), one of Table 10 (epochs), one of Table 11 "
        "(batch) and two of Table 12 (share of the images); the captions of Tables 10 and 12 are "
        f"exchanged. Default: {_DEFAULT['epochs']} epochs, learning rate 2e-3, batches of 32. "
    )
    note += _SHORT
    return Outcome(comparisons, _settings(setting), (note,))


def _figure_3(setting: Setting) -> Outcome:
    """Show the attributions of three images."""
    found = _all(setting)
    reference = found["KernelSHAP-S"]
    comparisons = []
    for name in (_SIM, "FastSHAP"):
        ours, control = (
            float(
                np.mean([np.corrcoef(a, b)[0, 1] for a, b in zip(found[name], those, strict=True)])
            )
            for those in (reference, np.roll(reference, 1, axis=0))
        )
        quantity = f"correlation of {name} with KernelSHAP-S over the regions"
        comparisons.append(difference(quantity, ours, control, "above"))
    note = (
        f"The paper shows three images without numbers. Blue regions speak for the class. {_SHORT}"
    )
    draw = partial(_draw_images, _images(setting), found)
    return Outcome(comparisons, _settings(setting), notes=(note,), draw=draw)


def _draw_curves(of_images: Images, found: Mapping[str, FloatArray], path: Path) -> None:
    scaled = {name: curves(of_images, values) for name, values in found.items()}
    figure, panels = plt.subplots(1, 2, figsize=(10, 4), layout="constrained")
    for panel, kind in zip(panels, _KINDS, strict=True):
        for name, of_kinds in scaled.items():
            mean = np.nanmean(of_kinds[kind], axis=0)
            width = 2.5 if name == _SIM else 1.2
            panel.plot(np.linspace(0, 100, len(mean)), mean, label=name, linewidth=width)
        panel.set_title(kind)
        panel.set_xlabel(f"regions {'inserted' if kind == 'insertion' else 'deleted'}, %")
        panel.grid(alpha=0.3)
    panels[0].set_ylabel("logit, scaled")
    panels[1].legend(fontsize=8)
    figure.savefig(path, dpi=90)
    plt.close(figure)


def _draw_images(of_images: Images, found: Mapping[str, FloatArray], path: Path) -> None:
    n_rows, n_columns = 3, len(found) + 1
    figure, panels = plt.subplots(
        n_rows, n_columns, figsize=(1.5 * n_columns, 1.6 * n_rows), layout="constrained"
    )
    for row in range(n_rows):
        image = np.moveaxis(of_images.shown[row].numpy(), 0, -1) / 4 + 0.5
        panels[row, 0].imshow(np.clip(image, 0, 1))
        panels[row, 0].set_ylabel(of_images.class_names[int(of_images.targets[row])], fontsize=8)
        for panel, values in zip(panels[row, 1:], found.values(), strict=True):
            most = np.abs(values[row]).max() or 1.0
            grid = values[row].reshape(GRID, GRID)
            panel.imshow(grid, cmap="RdBu", vmin=-most, vmax=most)
    for panel, name in zip(panels[0], ("image", *found), strict=True):
        panel.set_title(name, fontsize=8)
    for panel in panels.flat:
        panel.set_xticks([])
        panel.set_yticks([])
    figure.savefig(path, dpi=80)
    plt.close(figure)


_PAPER = "SimSHAP"

_AT_RANDOM = "random attributions in SimSHAP's place"

ITEMS = (
    Item(
        "simshap-3-images", "Attributions of three images", f"{_PAPER}, Figure 3",
        (Claim("SimSHAP can find important regions, like GradCAM and FastSHAP", "Section 4.2",
               "the values of another image"),),
        _FILES, 4, _figure_3,
    ),
    Item(
        "simshap-3", "Insertion and deletion on CIFAR-10", f"{_PAPER}, Table 3 and Figure 4",
        (Claim("SimSHAP exhibits the best insertion AUC", "Section 4.2.3", _AT_RANDOM),
         Claim("and the second best deletion AUC", "Section 4.2.3", _AT_RANDOM)),
        _FILES, 4, _table_3,
    ),
    Item(
        "simshap-9-to-12", "Settings of SimSHAP on CIFAR-10", f"{_PAPER}, Tables 9 to 12",
        (Claim("Mean Insertion AUC and Deletion AUC of SimSHAP as a function of learning rate […] "
               "limited data […] batch size […] epoch", "captions of Tables 9 to 12",
               "the default again, with other draws"),),
        _FILES, 5, _tables_9_to_12,
    ),
)  # fmt: skip
