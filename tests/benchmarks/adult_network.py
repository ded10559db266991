"""The network of the Adult benchmark (Wang et al., ICML 2022, Appendix H)."""

from __future__ import annotations

import copy
import hashlib
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from coalition_games import FloatArray
from torch import Tensor, nn

ACTIVATIONS: dict[str, Callable[[], nn.Module]] = {"elu": nn.ELU, "relu": nn.ReLU}
ACTIVATION_NAMES = {"elu": "ELU", "relu": "ReLU"}
OUTPUTS = ("margin", "probability")
_SEED = 2022
_PATIENCE = 5
_MOST_EPOCHS = 100

InputArray = npt.NDArray[np.float32]
LabelArray = npt.NDArray[np.int64]


class Explained(nn.Module):
    """One number of the network's two logits: f1 − f0, or the probability of class 1."""

    def __init__(self, network: nn.Module, output: str) -> None:
        super().__init__()
        self.network = network
        self.output = output

    def forward(self, x: Tensor) -> Tensor:
        """Return the explained output, (B,)."""
        logits = self.network(x)
        margin: Tensor = logits[:, 1] - logits[:, 0]
        # With two classes, the softmax is the logistic function of the margin.
        return margin if self.output == "margin" else torch.sigmoid(margin)

    def predict(self, x: npt.NDArray[Any]) -> FloatArray:
        """Return the explained output of an array."""
        with torch.no_grad():
            output: Tensor = self(torch.as_tensor(x, dtype=torch.float32))
        return output.numpy().astype(np.float64)


def trained_network(
    inputs: Mapping[str, InputArray],
    labels: Mapping[str, LabelArray],
    activation: str,
    cache: Path,
) -> nn.Module:
    """Read the network of this data, activation and version of torch, or train and keep it.

    Parameters
    ----------
    inputs, labels : mappings of str to arrays
        The parts "training" and "validation".
    activation : str
        One of `ACTIVATIONS`.
    cache : Path
        Folder of trained networks.
    """
    key = hashlib.sha256(f"{activation} {torch.__version__}".encode())
    key.update(Path(__file__).read_bytes())  # other settings, another network
    key.update(inputs["training"].tobytes())
    path = cache / f"adult-{activation}-{key.hexdigest()[:12]}.pt"
    if path.is_file():
        network = _network(inputs["training"].shape[1], activation)
        network.load_state_dict(torch.load(path, weights_only=True))
        return network.eval()
    with torch.random.fork_rng():
        torch.manual_seed(_SEED)
        trained = _train(inputs, labels, activation)
    cache.mkdir(parents=True, exist_ok=True)
    torch.save(trained.state_dict(), path)
    return trained


def _network(n_columns: int, activation: str) -> nn.Sequential:
    """Return three layers with 64 hidden units."""
    between = ACTIVATIONS[activation]
    return nn.Sequential(
        nn.Linear(n_columns, 64), between(), nn.Linear(64, 64), between(), nn.Linear(64, 2)
    )


def _train(
    inputs: Mapping[str, InputArray], labels: Mapping[str, LabelArray], activation: str
) -> nn.Module:
    """Minimise the cross-entropy until the validation part stops getting better."""
    X = {part: torch.as_tensor(array) for part, array in inputs.items()}
    y = {part: torch.as_tensor(array) for part, array in labels.items()}
    network = _network(X["training"].shape[1], activation)
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    best_loss, best, n_worse = float("inf"), network, 0
    for _ in range(_MOST_EPOCHS):
        for batch in torch.split(torch.randperm(len(X["training"])), 256):
            optimizer.zero_grad()
            logits = network(X["training"][batch])
            loss: Tensor = nn.functional.cross_entropy(logits, y["training"][batch])
            torch.autograd.backward(loss)
            optimizer.step()
        with torch.no_grad():
            validation_loss = float(
                nn.functional.cross_entropy(network(X["validation"]), y["validation"])
            )
        n_worse += 1
        if validation_loss < best_loss:
            best_loss, best, n_worse = validation_loss, copy.deepcopy(network), 0
        if n_worse == _PATIENCE:
            break
    return best.eval()
