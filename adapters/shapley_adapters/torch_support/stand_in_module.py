"""A module that stands for another one. Needs torch, so import it only if there is a module."""

from __future__ import annotations

from typing import Any

from torch import nn


class StandInModule(nn.Module):
    """Has the layers, the precision and the device of a module, and the outputs of a stand-in.

    Parameters
    ----------
    stand_in : callable
        Makes the outputs. Its `model` is the module.
    """

    def __init__(self, stand_in: Any) -> None:
        super().__init__()
        self.stand_in = stand_in
        self.layers = stand_in.model
        self.training = self.layers.training

    def forward(self, *inputs: Any) -> Any:
        """Return the made-up outputs."""
        return self.stand_in(*inputs)
