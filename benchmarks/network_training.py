"""How the networks of the benchmarks are trained, kept and explained."""

import copy
import hashlib
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt
import torch
from games import FloatArray
from torch import Tensor, nn

_SEED = 2022
_PATIENCE = 5
_MOST_EPOCHS = 100

InputArray = npt.NDArray[Any]
"""Numbers as float32, tokens as int64."""

LabelArray = npt.NDArray[np.int64]


class Explained(nn.Module):
    """The explained output of a network of two classes.

    The logit of the second class, by default less that of the first.
    """

    def __init__(self, network: nn.Module, *, is_margin: bool = True) -> None:
        super().__init__()
        self.network, self.is_margin = network, is_margin

    def forward(self, x: Tensor) -> Tensor:
        """Return the output, (B,)."""
        logits = self.network(x)
        return logits[:, 1] - logits[:, 0] if self.is_margin else logits[:, 1]

    def predict(self, x: npt.NDArray[Any]) -> FloatArray:
        """Return the output of an array."""
        with torch.no_grad():
            output: Tensor = self(torch.as_tensor(x, dtype=torch.float32))
        return output.numpy().astype(np.float64)


def kept_or_trained(
    make: Callable[[], nn.Module], path: Path, seed: int, train: Callable[[Any], object]
) -> Any:
    """Return a network with the weights of a file, or train it and keep them."""
    with torch.random.fork_rng():
        torch.manual_seed(seed)
        network = make()
        if path.is_file():
            network.load_state_dict(torch.load(path, weights_only=True))
        else:
            train(network)
            path.parent.mkdir(parents=True, exist_ok=True)
            torch.save(network.state_dict(), path)
    return network.eval()


def trained_network(
    name: str,
    make: Callable[[], nn.Module],
    inputs: Mapping[str, InputArray],
    labels: Mapping[str, LabelArray],
    cache: Path,
    seed: int = 0,
) -> nn.Module:
    """Read the network of this data, form and version of torch, or train and keep it.

    Parameters
    ----------
    name : str
        What its file is called.
    make : callable
        Returns the untrained network.
    inputs, labels : mappings of str to arrays
        The parts "training" and "validation".
    cache : Path
        Folder of trained networks.
    seed : int
        Another one, another network.
    """
    with torch.random.fork_rng():  # another form or other settings, another network
        key = hashlib.sha256(f"{make()} {torch.__version__} {seed}".encode())
    key.update(Path(__file__).read_bytes())
    key.update(inputs["training"].tobytes())
    path = cache / f"{name}-{key.hexdigest()[:12]}.pt"
    return kept_or_trained(make, path, _SEED + seed, partial(_train, inputs=inputs, labels=labels))


def accuracy(network: nn.Module, inputs: InputArray, labels: LabelArray) -> float:
    """Return the share of the labels that the network tells right."""
    with torch.no_grad():
        told = network(torch.as_tensor(inputs)).argmax(dim=1).numpy()
    return float((told == labels).mean())


def _train(
    network: nn.Module, inputs: Mapping[str, InputArray], labels: Mapping[str, LabelArray]
) -> None:
    """Minimise the cross-entropy until the validation part stops getting better."""
    X = {part: torch.as_tensor(array) for part, array in inputs.items()}
    y = {part: torch.as_tensor(array) for part, array in labels.items()}
    optimizer = torch.optim.Adam(network.parameters(), lr=1e-3)
    best_loss, best, n_worse = float("inf"), network.state_dict(), 0
    for _ in range(_MOST_EPOCHS):
        network.train()
        for batch in torch.split(torch.randperm(len(X["training"])), 256):
            optimizer.zero_grad()
            logits = network(X["training"][batch])
            loss: Tensor = nn.functional.cross_entropy(logits, y["training"][batch])
            torch.autograd.backward(loss)
            optimizer.step()
        network.eval()
        with torch.no_grad():
            validation_loss = float(
                nn.functional.cross_entropy(network(X["validation"]), y["validation"])
            )
        n_worse += 1
        if validation_loss < best_loss:
            best_loss, best, n_worse = validation_loss, copy.deepcopy(network.state_dict()), 0
        if n_worse == _PATIENCE:
            break
    network.load_state_dict(best)
