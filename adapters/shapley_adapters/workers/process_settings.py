"""Settings of the parent process that a model may depend on, for workers."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from typing import Any

import numpy as np

_DEVICES = ("cpu", "cuda")


@dataclass(frozen=True)
class ProcessSettings:
    """The settings of NumPy, scikit-learn and torch in the thread that explains.

    Attributes
    ----------
    numpy_errors : mapping
        How NumPy handles floating-point errors, such as overflow.
    sklearn_config : mapping
        The configuration of scikit-learn, empty where it is not loaded.
    torch_dtype : torch.dtype, optional
        The precision of new tensors, where torch is loaded.
    autocast : mapping of str to torch.dtype
        The devices on which torch lowers the precision, and to which type.
    """

    numpy_errors: Mapping[str, Any]
    sklearn_config: Mapping[str, Any]
    torch_dtype: Any = None
    autocast: Mapping[str, Any] | None = None

    @classmethod
    def current(cls) -> ProcessSettings:
        """Return the settings of this thread."""
        sklearn, torch = sys.modules.get("sklearn"), sys.modules.get("torch")
        config = {} if sklearn is None else sklearn.get_config()
        if torch is None:
            return cls(np.geterr(), config)
        autocast = {
            device: torch.get_autocast_dtype(device)
            for device in _DEVICES
            if torch.is_autocast_enabled(device)
        }
        return cls(np.geterr(), config, torch.get_default_dtype(), autocast)

    @contextmanager
    def applied(self) -> Iterator[None]:
        """Apply the settings in this thread, and restore its own afterwards."""
        with ExitStack() as stack:
            stack.enter_context(np.errstate(**self.numpy_errors))
            if self.sklearn_config:
                import sklearn

                stack.enter_context(sklearn.config_context(**self.sklearn_config))
            torch = sys.modules.get("torch")  # loaded with the model, if the model needs it
            if torch is not None and self.torch_dtype is not None:
                self._apply_to_torch(torch, stack)
            yield

    def _apply_to_torch(self, torch: Any, stack: ExitStack) -> None:
        stack.callback(torch.set_default_dtype, torch.get_default_dtype())
        torch.set_default_dtype(self.torch_dtype)
        for device, dtype in (self.autocast or {}).items():
            stack.enter_context(torch.autocast(device, dtype=dtype))
