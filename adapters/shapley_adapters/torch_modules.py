"""Torch modules as models of arrays. Needs torch, so import it only where there is one."""

from __future__ import annotations

from typing import Any

import numpy as np
import numpy.typing as npt
import torch

from .array_types import IntArray
from .errors import ModelOutputError, warn_user

_NORMALIZE_BATCHES = torch.nn.modules.batchnorm._BatchNorm
_DROP_OUT = (
    torch.nn.modules.dropout._DropoutNd,  # its rate is `p`
    torch.nn.MultiheadAttention,  # its rate, and that of the next, is `dropout`
    torch.nn.RNNBase,
)


def warn_in_training_mode(module: Any) -> None:
    """Warn if a layer of `module` behaves differently in training mode, and is in it."""
    if not isinstance(module, torch.nn.Module):
        return
    names = {type(layer).__name__ for layer in module.modules() if _changes_in_training(layer)}
    if names:
        warn_user(
            f"The model is in training mode, in which {', '.join(sorted(names))} make its output "
            "random or dependent on the batch. Call model.eval() first."
        )


def _changes_in_training(layer: torch.nn.Module) -> bool:
    if not layer.training:
        return False
    if isinstance(layer, _DROP_OUT):
        return float(getattr(layer, "p", getattr(layer, "dropout", 0.0))) > 0
    return isinstance(layer, (_NORMALIZE_BATCHES, torch.nn.RReLU))


class ArrayModule:
    """A torch module that takes and returns arrays, in its own precision and on its own device."""

    def __init__(self, module: torch.nn.Module) -> None:
        self.module = module
        parameters = [*module.parameters(), *module.buffers()]
        floating = [tensor for tensor in parameters if tensor.is_floating_point()]
        self.dtype = floating[0].dtype if floating else None
        embeddings = (torch.nn.Embedding, torch.nn.EmbeddingBag)
        self.takes_whole_numbers = any(isinstance(m, embeddings) for m in module.modules())
        self.device = parameters[0].device if parameters else torch.device("cpu")

    def tensor(self, array: npt.NDArray[Any]) -> torch.Tensor:
        """Return `array` as the module takes it.

        In the precision of its parameters; whole numbers stay so where it has embeddings.
        """
        tensor = torch.as_tensor(np.ascontiguousarray(array))
        keep = self.takes_whole_numbers and not tensor.is_floating_point()
        return tensor.to(device=self.device, dtype=None if keep else self.dtype)

    def in_precision(self, array: npt.NDArray[Any]) -> npt.NDArray[Any]:
        """Return `array` in that precision, where NumPy has it."""
        if self.dtype == torch.bfloat16:
            return array
        values: npt.NDArray[Any] = self.tensor(array).cpu().numpy()
        return values

    def __call__(self, *arrays: npt.NDArray[Any]) -> npt.NDArray[np.float64]:
        """Return the module's output for the arrays."""
        with torch.no_grad():
            output = self.module(*map(self.tensor, arrays))
        if not isinstance(output, torch.Tensor):
            raise ModelOutputError(
                f"The model must return a tensor; it returned {type(output).__name__}. Wrap it in "
                "a module that picks the tensor to explain."
            )
        return output.to(device="cpu", dtype=torch.float64).numpy()

    def ones(self, n_points: int, n_players: int) -> torch.Tensor:
        """Return the presence of `n_points` full coalitions."""
        dtype = self.dtype or torch.float64
        return torch.ones(n_points, n_players, dtype=dtype, device=self.device)

    def between(
        self,
        background: npt.NDArray[Any],
        inputs: npt.NDArray[Any],
        players: IntArray,
        presence: torch.Tensor,
        shape: tuple[int, ...],
    ) -> torch.Tensor:
        """Return the output between the background and the inputs, averaged over the background.

        Parameters
        ----------
        background : array, (B, D)
            The values of absent columns.
        inputs : array, (P, D)
            The values of present columns.
        players : array, (D,)
            The player of each column.
        presence : tensor, (P, M)
            How far each player is present.
        shape : tuple of int
            Shape of one input of the module, D numbers in all.
        """
        start = self.tensor(background)
        move = self.tensor(inputs)[:, None] - start  # (P, B, D)
        column = torch.as_tensor(players, device=self.device).expand(len(presence), -1)
        points = start + presence.gather(1, column)[:, None] * move
        outputs = self.module(points.reshape(-1, *shape))
        averages: torch.Tensor = outputs.reshape(len(inputs), len(background), -1).mean(dim=1)
        return averages
