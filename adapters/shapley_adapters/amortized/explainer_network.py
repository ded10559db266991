"""A network that explains, with what it needs to know of inputs and outputs."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from ..errors import InvalidArgumentError

_ROWS_AT_ONCE = 4096
_IMAGES_AT_ONCE = 256
"""Convolutions keep many numbers for each pixel, and slow down where these leave the cache."""


class ExplainerNetwork(nn.Module):
    """A network between standardised inputs and attributions in units of the outputs.

    Players that cannot change the value of a row get exactly 0.

    Parameters
    ----------
    network : Module
        From inputs, (B, …), to attributions, (B, M, K).
    centre, spread : Tensors
        Mean and size of the inputs; empty where inputs are whole numbers.
    scale : Tensor, (K,)
        Size of each output's rise from v(∅) to v(N).
    empty : Tensor, (K,)
        v(∅), where it is the same for all rows; NaN where it is not.
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
            self.register_buffer(name, value.float())
        self.register_buffer("empty", empty.double())

    @classmethod
    def around(cls, network: nn.Module, inputs: Any, rise: Any, empty: Any) -> ExplainerNetwork:
        """Return `network` with what rows tell of the sizes of inputs and outputs."""
        nothing = torch.zeros(0)
        centre, spread = nothing, nothing
        if not are_whole(inputs):
            centre, spread = centre_and_spread(inputs)
        size = np.sqrt((np.asarray(rise) ** 2).mean(axis=0))
        is_same = np.ptp(empty, axis=0) <= 1e-9 * np.maximum(np.abs(empty).max(axis=0), 1e-300)
        return cls(
            network,
            centre,
            spread,
            torch.as_tensor(np.where(size > 0, size, 1.0)),
            torch.as_tensor(np.where(is_same, empty[0], np.nan)),
        )

    def forward(self, x: Tensor, active: Tensor) -> Tensor:
        """Return attributions, (B, M, K), of inputs, (B, …), given the active players, (B, M)."""
        if self.centre.numel():
            x = (x - self.centre) / self.spread
        told: Tensor = self.network(x) * self.scale
        return told * active[:, :, None]

    def explained(
        self, inputs: Any, active: Any, batch_size: int | None = None, first: int = 0
    ) -> Iterator[Any]:
        """Yield the attributions of some rows after the other, (B, M, K), in double precision.

        `inputs` may be anything that gives rows by slices, such as a memory-mapped array. Refuses
        rows that hold NaN or infinite numbers.
        """
        is_table = len(inputs.shape) == 2
        size = batch_size or (_ROWS_AT_ONCE if is_table else _IMAGES_AT_ONCE)
        self.eval()
        for start in range(0, len(inputs), size):
            part = slice(start, start + size)
            x = inputs[part]
            check_finite(x, first + start)
            x = x if isinstance(x, Tensor) else torch.as_tensor(np.ascontiguousarray(x))
            x = x.float() if self.centre.numel() else x
            with torch.no_grad():
                told = self(x.to(self.scale.device), torch.as_tensor(active[part]))
            yield told.cpu().double().numpy()


def centre_and_spread(rows: Any) -> tuple[Tensor, Tensor]:
    """Return the mean and the size of each number of some rows, by which they are standardised."""
    some = np.asarray(rows[: 2**14], dtype=np.float64)
    # Rare marks, 1 in few rows, would become huge by their standard deviation.
    lowest, highest = some.min(axis=0), some.max(axis=0)
    are_marks = ((some == lowest) | (some == highest)).all(axis=0)
    spread = torch.as_tensor(np.where(are_marks, highest - lowest, some.std(axis=0)))
    spread = torch.where(spread > 1e-7, spread, torch.ones_like(spread))
    return torch.as_tensor(some.mean(axis=0)), spread


def check_finite(inputs: Any, first: int = 0) -> None:
    """Refuse inputs of which a network makes NaN; `first` is the number of the first row.

    Raises
    ------
    InvalidArgumentError
        If any is NaN or infinite.
    """
    array = np.asarray(inputs)
    if array.dtype.kind != "f" or np.isfinite(array).all():
        return
    row = int(np.argmin(np.isfinite(array).reshape(len(array), -1).all(axis=1)))
    raise InvalidArgumentError(
        f"row {first + row} of what the network sees holds NaN or an infinite number, of which it "
        "can make nothing. Fill in what is missing; where the model is to see it missing, let "
        "features=, where there is one, fill it in for the network alone."
    )


def are_whole(inputs: Any) -> bool:
    """Tell whether inputs are whole numbers, which name something rather than measure it."""
    dtype = inputs.dtype
    if isinstance(dtype, torch.dtype):
        return not (dtype.is_floating_point or dtype == torch.bool)
    return bool(np.issubdtype(dtype, np.integer))
