"""A network that predicts attributions, with the scales of its inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import InvalidArgumentError, row_number
from .networks import EmbeddingNetwork

_ROWS_AT_ONCE = 4096
_SAMPLED = 2**14
"""Rows from which scales and knots are computed."""

_IMAGES_AT_ONCE = 256
"""Convolutions store many numbers per pixel, and are slower if these do not fit in the cache."""


class ExplainerNetwork(nn.Module):
    """A network from standardised inputs to attributions in units of the outputs.

    Players that cannot change the value of a row get exactly 0.

    Parameters
    ----------
    network : Module
        Maps inputs, (B, …), to attributions, (B, M, K).
    centre, spread : Tensors
        Mean and scale of the inputs; empty if inputs are whole numbers.
    scale : Tensor, (K,)
        Root mean square of v(N) − v(∅), for each output.
    empty : Tensor, (K,)
        v(∅) if it is the same for all rows, else NaN.
    """

    centre: Tensor
    spread: Tensor
    scale: Tensor
    empty: Tensor

    def __init__(
        self, network: nn.Module, centre: Tensor, spread: Tensor, scale: Tensor, empty: Tensor
    ) -> None:
        super().__init__()
        self.network = network
        for name, value in (("centre", centre), ("spread", spread), ("scale", scale)):
            self.register_buffer(name, value.float().clone())  # exports share no tensors
        self.register_buffer("empty", empty.double())

    @classmethod
    def around(
        cls, network: nn.Module, inputs: Any, grand_minus_empty: Any, empty: Any
    ) -> ExplainerNetwork:
        """Return `network` with the scales of its inputs and outputs, computed from rows."""
        no_statistics = torch.zeros(0)
        centre, spread = no_statistics, no_statistics
        if not are_whole(inputs):
            centre, spread = centre_and_spread(inputs)
        size = np.sqrt((np.asarray(grand_minus_empty) ** 2).mean(axis=0))
        is_same = np.ptp(empty, axis=0) <= 1e-9 * np.maximum(np.abs(empty).max(axis=0), 1e-300)
        scale = torch.as_tensor(np.where(size > 0, size, 1.0))
        common = torch.as_tensor(np.where(is_same, empty[0], np.nan))
        explainer = cls(network, centre, spread, scale, common)
        if isinstance(network, EmbeddingNetwork):
            network.functions.place_knots(explainer.flattened(inputs[:_SAMPLED]))
        return explainer

    def forward(self, x: Tensor, active: Tensor) -> Tensor:
        """Return attributions, (B, M, K), of inputs, (B, …), given the active players, (B, M)."""
        attributions: Tensor = self.network(self.standardised(x)) * self.scale
        return attributions * active[:, :, None]

    def standardised(self, x: Tensor) -> Tensor:
        """Return inputs as the bare network sees them."""
        return (x - self.centre) / self.spread if self.centre.numel() else x

    def flattened(self, inputs: Any) -> Tensor:
        """Return the standardised numbers of rows, (R, …), as (R, D), on the CPU."""
        numbers = tensor_of(inputs).detach().to(self.scale.device, torch.float32)
        return self.standardised(numbers).cpu().flatten(1)

    def explained(
        self, inputs: Any, active: Any, batch_size: int | None = None, first: int = 0
    ) -> Iterator[Any]:
        """Yield the attributions of batches of rows, (B, M, K), in double precision.

        `inputs` may be anything that slices return rows of, such as a memory-mapped array. Rows
        with NaN or infinite numbers are refused.
        """
        size = batch_size or (_ROWS_AT_ONCE if len(inputs.shape) == 2 else _IMAGES_AT_ONCE)
        if isinstance(self.network, EmbeddingNetwork):
            size = min(size, self.network.rows_at_once)
        self.eval()
        for start in range(0, len(inputs), size):
            part = slice(start, start + size)
            x = inputs[part]
            check_finite(x, first + start)
            x = tensor_of(x)
            x = x.float() if self.centre.numel() else x
            with torch.no_grad():
                attributions = self(x.to(self.scale.device), torch.as_tensor(active[part]))
            yield attributions.cpu().double().numpy()


def tensor_of(inputs: Any) -> Tensor:
    """Return inputs as a tensor; read-only arrays are copied, because torch warns of them."""
    if isinstance(inputs, Tensor):
        return inputs
    return torch.as_tensor(np.require(inputs, requirements=["C", "W"]))


def centre_and_spread(rows: Any) -> tuple[Tensor, Tensor]:
    """Return the mean and the scale of each number of the rows, for standardising them."""
    sample = np.asarray(rows[:_SAMPLED], dtype=np.float64)
    # Indicators that are 1 in few rows would become huge if divided by their standard deviation.
    lowest, highest = sample.min(axis=0), sample.max(axis=0)
    are_marks = ((sample == lowest) | (sample == highest)).all(axis=0)
    spread = torch.as_tensor(np.where(are_marks, highest - lowest, sample.std(axis=0)))
    spread = torch.where(spread > 1e-7, spread, torch.ones_like(spread))
    return torch.as_tensor(sample.mean(axis=0)), spread


def check_finite(inputs: Any, first: int = 0) -> None:
    """Refuse inputs that hold NaN or infinite numbers; `first` is the number of the first row.

    Raises
    ------
    InvalidArgumentError
        If there is one.
    """
    array = np.asarray(inputs)
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return
    row = int(np.argmin(np.isfinite(array).reshape(len(array), -1).all(axis=1)))
    raise InvalidArgumentError(
        "The network's input holds NaN or an infinite number in row "
        f"{row_number(first + row)}. Fill in missing values. If the model needs them missing, fill "
        "them in for the network only, by features= (shap)."
    )


def are_whole(inputs: Any) -> bool:
    """Return whether inputs are whole numbers, which stand for tokens or categories."""
    dtype = inputs.dtype
    if isinstance(dtype, torch.dtype):
        return not (dtype.is_floating_point or dtype == torch.bool)
    return bool(np.issubdtype(dtype, np.integer))
