"""Models, and the games that evaluate them."""

from __future__ import annotations

import sys
from collections.abc import Callable
from functools import partial
from typing import Any, TypeGuard

import shap

from shapley_adapters.games.evaluation import ModelCalls, OutputShape
from shapley_adapters.games.game import Game
from shapley_adapters.memory_bounds import MAX_INPUT_BYTES
from shapley_adapters.remote import Usage

new_shape = partial(OutputShape, "The model", "Explain rows with different outputs one at a time.")
"""Returns the shape of the outputs of a model for one row, before its first call."""


new_calls = partial(ModelCalls, "The model")
"""Returns what calls a model, with all rows of a batch if it takes them."""


def is_torch_module(model: object) -> TypeGuard[Any]:
    """Return whether `model` is a torch module, without importing torch."""
    torch = sys.modules.get("torch")
    return torch is not None and isinstance(model, torch.nn.Module)


def inner_model(model: Any) -> Any:
    """Return the model inside `shap.models.Model`, or the model itself."""
    # Its subclasses do more than wrap.
    return model.inner_model if type(model) is shap.models.Model else model


class GameOfModel(Game):
    """Base of the games that evaluate a model.

    Attributes
    ----------
    predict : callable
        The model.
    """

    predict: Callable[..., Any]
    _shape: OutputShape

    @property
    def is_in_training_mode(self) -> bool:
        """Whether the model is known not to be deterministic, which users are warned of."""
        return bool(getattr(self.predict, "is_in_training_mode", False))

    @property
    def answers_at_random(self) -> bool:
        """Whether the model is known to answer at random, as one that samples texts."""
        return bool(getattr(self.predict, "answers_at_random", False))

    @property
    def max_input_bytes(self) -> int:
        """The bytes that the inputs of one batch may take: a share of the free memory of a GPU."""
        return int(getattr(self.predict, "max_input_bytes", MAX_INPUT_BYTES))

    @property
    def output_columns(self) -> list[str] | None:
        """The columns of the frames that the model returns; None of arrays, and before a call."""
        return self._shape.names

    @property
    def usage(self) -> Usage | None:
        """What a remote model was used for so far."""
        return getattr(self.predict, "usage", None)

    @property
    def rounding(self) -> float:
        """Relative rounding error of the model's output, where it is known.

        That of the output is known after the first evaluation; a model may compute less precisely.
        """
        return max(float(getattr(self.predict, "rounding", 0.0)), self._shape.rounding)
