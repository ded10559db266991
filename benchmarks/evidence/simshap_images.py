"""Table 3, Figures 3 and 4 and Tables 9 to 12 of SimSHAP: insertion and deletion on CIFAR-10.

The network is small and expects masked images.
"""

import hashlib
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, partial
from itertools import product
from pathlib import Path
from typing import Any

import captum.attr
import numpy as np
import torch
from games import FloatArray
from network_training import kept_or_trained
from scipy.ndimage import gaussian_filter
from torch import Tensor, nn

import captum_ext

from .items import Claim, Item, Outcome, Setting, difference
from .pictures import draw_images, draw_lines

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

    @property
    def mask(self) -> Tensor:
        """The region of each pixel, (1, 1, 32, 32)."""
        band = torch.arange(32) // 2
        return (band[:, None] * GRID + band)[None, None]


@cache
def _images(setting: Setting) -> Images:
    """Train the network or read it from the cache, and take images that it classifies right.

    The split is CIFAR-10's own; another seed takes other images of both parts.
    """
    n_training, n_shown, epochs = (40, 6, 2) if setting.is_quick else (_N_TRAINING, 40, 15)
    both = []
    for file in _FILES:
        part = np.load(setting.data / file)
        order = np.random.default_rng(setting.seed).permutation(len(part["labels"]))
        pixels = np.moveaxis(part["images"][order] / 255.0, 3, 1) - 0.5  # 0 is grey
        both += [
            torch.tensor(pixels, dtype=torch.float32) * 4,
            torch.tensor(part["labels"][order].astype(np.int64)),
        ]
    x, y, x_test, y_test = both
    network = _trained(x, y, epochs, setting.cache, setting.seed)
    with torch.no_grad():
        told = torch.cat([network(some).argmax(1) for some in x_test.split(100)])
    is_right = told == y_test
    shown = is_right.nonzero()[:, 0][:: max(int(is_right.sum()) // n_shown, 1)][:n_shown]
    accuracy = float(is_right.float().mean())
    return Images(network, x[:n_training], x_test[shown], told[shown], accuracy)


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
    kinds = {"insertion": (x, blurred, 0, -1), "deletion": (torch.zeros_like(x), x, -1, 0)}
    found = {}
    for kind, (present, absent, low, high) in kinds.items():
        inputs = torch.where(chosen, present[:, None], absent[:, None]).flatten(0, 1)
        with torch.no_grad():
            logits = torch.cat([of_images.network(some) for some in inputs.split(512)])
        targets = of_images.targets.repeat_interleave(_N_STEPS + 1)
        of_class = logits.gather(1, targets[:, None]).reshape(len(x), -1).double().numpy()
        change = of_class[:, [high]] - of_class[:, [low]]
        change[change < _LEAST_CHANGE] = np.nan
        found[kind] = (of_class - of_class[:, [low]]) / change
    return found


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
    scaled = {name: curves(of_images, values) for name, values in found.items()}
    comparisons = []
    for (place, kind), name in product(enumerate(_KINDS), _PUBLISHED):
        if name != _SIM:
            theirs = _PUBLISHED[_SIM][place] - _PUBLISHED[name][place]
            ours, control = (_gap(scaled[one], scaled[name], kind) for one in (_SIM, _RANDOM))
            quantity = f"area of {kind} by {_SIM} less that by {name}"
            comparisons.append(difference(quantity, ours, control, theirs=theirs, claim=place))
    left_out = {kind: np.isnan(scaled[_SIM][kind]).all(axis=1).sum() for kind in _KINDS}
    note = (
        "Curves of the logit of the predicted class, scaled so that they run from 0 to 1 (from 1 "
        "to 0 for deletion); images whose logit hardly changes are left out "
        f"({', '.join(f'{n} of {kind}' for kind, n in left_out.items())}). "
        "Logits below that of the grey image give negative areas. The classifier has seen masked "
        "images and is its own surrogate, so that KernelSHAP and KernelSHAP-S are one. "
    )
    shares = np.linspace(0, 100, _N_STEPS + 1)
    lines = {
        kind: {name: (shares, np.nanmean(of[kind], axis=0)) for name, of in scaled.items()}
        for kind in _KINDS
    }
    names = "regions inserted or deleted, %", "logit, scaled"
    draw = partial(draw_lines, lines, *names, style="-")
    return Outcome(comparisons, _settings(setting), (note + _SHORT,), draw)


def _gap(ours: Mapping[str, FloatArray], others: Mapping[str, FloatArray], kind: str) -> float:
    """Return how much larger the mean area is than that of others."""
    return float(np.nanmean(area(ours[kind]) - area(others[kind])))


def _tables_9_to_12(setting: Setting) -> Outcome:
    """Compare some settings of each table with the default."""
    of_images = _images(setting)

    def curves_with(**changed: Any) -> Mapping[str, FloatArray]:
        return curves(of_images, _by_network(setting, _SIM, tuple(changed.items())))

    base, again = curves_with(), curves_with(again=1)
    comparisons = []
    for name, (changed, theirs) in list(_SETTINGS.items())[: 1 if setting.is_quick else None]:
        scaled = curves_with(**changed)
        for place, kind in enumerate(_KINDS):
            ours, control = (_gap(one, base, kind) for one in (scaled, again))
            published = theirs[place] - _PUBLISHED_DEFAULT[place]
            quantity = f"area of {kind}, {name}, less that of the default"
            comparisons.append(difference(quantity, ours, control, theirs=published))
    note = (
        "Two settings of Table 9 (learning rate), one of Table 10 (epochs), one of Table 11 "
        "(batch) and two of Table 12 (share of the images); the captions of Tables 10 and 12 are "
        f"exchanged. Default: {_DEFAULT['epochs']} epochs, learning rate 2e-3, batches of 32. "
    )
    return Outcome(comparisons, _settings(setting), (note + _SHORT,))


def _figure_3(setting: Setting) -> Outcome:
    """Show the attributions of three images."""
    found, of_images, comparisons = _all(setting), _images(setting), []
    reference = found["KernelSHAP-S"]
    for name in (_SIM, "FastSHAP"):
        ours, control = (
            np.mean([np.corrcoef(*pair)[0, 1] for pair in zip(found[name], those, strict=True)])
            for those in (reference, np.roll(reference, 1, axis=0))
        )
        quantity = f"correlation of {name} with KernelSHAP-S over the regions"
        comparisons.append(difference(quantity, float(ours), float(control), "above"))
    note = (
        f"The paper shows three images without numbers. Blue regions speak for the class. {_SHORT}"
    )
    shown = np.moveaxis(of_images.shown[:3].numpy(), 1, -1) / 4 + 0.5
    grids = {name: values[:3].reshape(-1, GRID, GRID) for name, values in found.items()}
    draw = partial(draw_images, {"image": list(np.clip(shown, 0, 1)), **grids})
    return Outcome(comparisons, _settings(setting), notes=(note,), draw=draw)


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
