"""A small network on CIFAR-10 that expects masked images, and scores of insertion and deletion."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np
import torch
from games import FloatArray
from scipy.ndimage import gaussian_filter
from torch import Tensor, nn

from .items import Setting

GRID = 16
"""Regions along a side, of 2 × 2 pixels."""

FILES = ("cifar10/cifar10_train.npz", "cifar10/cifar10_test.npz")
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
def images(setting: Setting, n_training: int, n_shown: int, epochs: int) -> Images:
    """Train the network or read it from the cache, and take images that it classifies right.

    The split is CIFAR-10's own; another seed takes other images of both parts.
    """
    seed = setting.seed
    parts = [np.load(setting.data / file) for file in FILES]
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
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = _network()
        if path.is_file():
            network.load_state_dict(torch.load(path, weights_only=True))
            return network.eval()
        n_steps = epochs * -(-len(x) // 64)
        optimizer = torch.optim.AdamW(network.parameters(), lr=3e-3, weight_decay=0.02)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, 3e-3, n_steps)
        for _ in range(epochs):
            for batch in torch.randperm(len(x)).split(64):
                some = torch.where(
                    torch.rand(len(batch), 1, 1, 1) < 0.5, x[batch].flip(3), x[batch]
                )
                share = torch.rand(len(batch), 1, 1, 1)
                present = torch.rand(len(batch), 1, GRID, GRID) < torch.clamp(1.5 * share, max=1.0)
                masked = some * nn.functional.interpolate(present.float(), scale_factor=2)
                loss = nn.functional.cross_entropy(network(masked), y[batch])
                optimizer.zero_grad()
                loss.backward()
                optimizer.step()
                schedule.step()
    cache_folder.mkdir(parents=True, exist_ok=True)
    torch.save(network.state_dict(), path)
    return network.eval()


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
    scaled: FloatArray = (values - low) / change
    return scaled


def _logits(of_images: Images, inputs: Tensor) -> FloatArray:
    """Return the logits of the predicted classes, (images, steps)."""
    n_steps = inputs.shape[1]
    with torch.no_grad():
        found = torch.cat([of_images.network(some) for some in inputs.flatten(0, 1).split(512)])
    targets = of_images.targets.repeat_interleave(n_steps)
    picked: FloatArray = found.gather(1, targets[:, None]).reshape(-1, n_steps).double().numpy()
    return picked


def area(scaled: FloatArray) -> FloatArray:
    """Return the area under each curve, (images,)."""
    areas: FloatArray = ((scaled[:, 1:] + scaled[:, :-1]) / 2).mean(axis=1)
    return areas
