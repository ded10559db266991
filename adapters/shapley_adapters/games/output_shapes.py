"""The shape of a model's output for one row, which is the same in all calls."""

from __future__ import annotations

from dataclasses import dataclass, field

from ..errors import ModelOutputError


@dataclass
class OutputShape:
    """Remembers the shape of the output for one row, and refuses outputs of another shape.

    Attributes
    ----------
    model : str
        The name of the model in messages, such as "The model".
    advice : str
        Advice to the user if the shape varies.
    shape : tuple of int, or None
        The shape; None before the first call.
    """

    model: str
    advice: str
    shape: tuple[int, ...] | None = field(default=None, init=False)

    def check(self, shape: tuple[int, ...]) -> None:
        """Compare the shape of another call.

        Raises
        ------
        ModelOutputError
            If the output has no number, or if its shape differs from that of earlier calls.
        """
        if 0 in shape:
            raise ModelOutputError(
                f"{self.model} returns no number for a row: its output for one row has shape "
                f"{shape}. Return at least one number."
            )
        if self.shape not in (None, shape):
            raise ModelOutputError(
                f"{self.model} must return outputs of the same shape in all calls; for one row "
                f"the shape was {self.shape} first and {shape} later. {self.advice}"
            )
        self.shape = shape
