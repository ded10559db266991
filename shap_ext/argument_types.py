"""Types of what users pass to shap's side, by role."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import numpy.typing as npt

from shapley_adapters.array_types import FloatArray

if TYPE_CHECKING:
    import pandas as pd
    import scipy.sparse
    import shap
    from torch import Tensor


class Predictor(Protocol):
    """A fitted estimator or Booster: anything with `predict`."""

    @property
    def predict(self) -> Callable[..., Any]:
        """Return predictions for rows."""


Model: TypeAlias = Callable[..., Any] | Predictor
"""What is explained."""

Table: TypeAlias = "npt.NDArray[Any] | pd.DataFrame | scipy.sparse.spmatrix | Tensor"
"""Rows of numbers or objects, (R, …)."""

Masker: TypeAlias = "Table | shap.maskers.Masker | Callable[..., Any] | None"
"""Background rows, one of shap's maskers, or a function of a mask and a row."""

Link: TypeAlias = Callable[[FloatArray], FloatArray] | str
"""A function of outputs, or the name of one."""

Groups: TypeAlias = Mapping[str, Sequence[Hashable]]
"""Names of groups, and the names or indices of their columns."""
