"""The network of the Adult benchmark (Wang et al., ICML 2022, Appendix H)."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path

from network_training import InputArray, LabelArray, trained_network
from torch import nn

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"elu": nn.ELU, "relu": nn.ReLU}
ACTIVATION_NAMES = {"elu": "ELU", "relu": "ReLU"}


def perceptron(n_columns: int, activation: str) -> nn.Sequential:
    """Return three layers with 64 hidden units and two logits."""
    between = ACTIVATIONS[activation]
    return nn.Sequential(
        nn.Linear(n_columns, 64), between(), nn.Linear(64, 64), between(), nn.Linear(64, 2)
    )


def trained_perceptron(
    name: str,
    inputs: Mapping[str, InputArray],
    labels: Mapping[str, LabelArray],
    activation: str,
    cache: Path,
    seed: int = 0,
) -> nn.Module:
    """Return the network of a table, trained now or before."""
    make = partial(perceptron, inputs["training"].shape[1], activation)
    return trained_network(f"{name}-{activation}", make, inputs, labels, cache, seed)
