"""A convolutional network on digits; the players are squares of pixels."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from coalition_games import IntArray
from data_files import data_file, in_turns, parts
from explained_models import ExplainedModel
from network_training import Explained, InputArray, LabelArray, accuracy, trained_network
from torch import nn

DIGITS_FILE = "mnist5k/mnist5k.npz"
SIDE = 28
COMPARED = (3, 8)
"""Explained is the logit of an eight less that of a three, on images of both."""


def digits(folder: Path, cache: Path, n_rows: int, square: int) -> ExplainedModel:
    """Return threes and eights of the test part; absent squares take the mean training image.

    Parameters
    ----------
    square : int
        Pixels along the side of a player: 4 makes 49 players, 2 makes 196.
    """
    images, labels = _read(folder)
    places = parts(len(images))
    inputs = {part: images[place] for part, place in places.items()}
    shown = {part: labels[place] for part, place in places.items()}
    network = trained_network("digits", _network, inputs, shown, cache)
    is_eight = (labels == COMPARED[1]).astype(np.int64)
    compared = places["test"][np.isin(labels[places["test"]], COMPARED)]
    players = _player_of_pixel(square)
    names = [f"pixel {pixel}" for pixel in range(SIDE**2)]
    return ExplainedModel(
        model=Explained(network, classes=COMPARED).eval().requires_grad_(False),
        rows=images[in_turns(is_eight, compared)[:n_rows]],
        reference=inputs["training"].mean(axis=0, keepdims=True),
        column_names=names,
        groups={
            f"square {player}": [names[pixel] for pixel in np.flatnonzero(players == player)]
            for player in range(players.max() + 1)
        },
        player_of_column=players,
        accuracy=accuracy(network, inputs["test"], shown["test"]),
    )


def training_images(folder: Path) -> InputArray:
    """Return the threes and eights that the network was trained on, (R, 784)."""
    images, labels = _read(folder)
    training = parts(len(images))["training"]
    return images[training[np.isin(labels[training], COMPARED)]]


def _read(folder: Path) -> tuple[InputArray, LabelArray]:
    with np.load(data_file(folder, DIGITS_FILE)) as file:
        images = (file["images"].reshape(-1, SIDE**2) / 255).astype(np.float32)
        return images, file["labels"].astype(np.int64)


def _player_of_pixel(square: int) -> IntArray:
    """Return the number of the square that each pixel lies in, row by row, (784,)."""
    band = np.arange(SIDE) // square
    return (band[:, None] * (SIDE // square) + band).ravel()


def _network() -> nn.Sequential:
    return nn.Sequential(
        nn.Unflatten(1, (1, SIDE, SIDE)),
        nn.Conv2d(1, 8, 5, stride=2, padding=2),
        nn.ReLU(),
        nn.Conv2d(8, 16, 3, stride=2, padding=1),
        nn.ReLU(),
        nn.Flatten(),
        nn.Linear(16 * 7 * 7, 64),
        nn.ReLU(),
        nn.Linear(64, 10),
    )
