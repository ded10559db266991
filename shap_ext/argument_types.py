"""Types of the arguments of the shap explainers, by role."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

from shapley_adapters.array_types import FloatArray

if TYPE_CHECKING:
    import numpy as np
    import numpy.typing as npt
    import pandas as pd
    import scipy.sparse
    import shap
    from pandas.api.extensions import ExtensionDtype
    from shap.utils import OpChain
    from torch import Tensor

    from shapley_adapters.array_types import IntArray


class Predictor(Protocol):
    """A fitted estimator or Booster: anything with `predict`."""

    @property
    def predict(self) -> Callable[..., Any]:
        """Return predictions for rows."""


Model: TypeAlias = Callable[..., Any] | Predictor
"""The model to explain."""

Table: TypeAlias = "npt.NDArray[Any] | pd.DataFrame | scipy.sparse.spmatrix"
"""Rows of numbers or objects, (R, …), in one object."""

Rows: TypeAlias = "Table | pd.Series | Tensor | Sequence[object]"
"""Rows as users pass them: a table, a list such as of texts, or one row."""


class Summary(Protocol):
    """Background rows with weights, such as `shap.kmeans` returns."""

    @property
    def data(self) -> Any:
        """The rows."""

    @property
    def weights(self) -> Any:
        """The weights of the rows."""


Masker: TypeAlias = "Table | Tensor | Summary | shap.maskers.Masker | Callable[..., Any] | None"
"""Background rows, one of shap's maskers, or a function of a mask and a row."""

Link: TypeAlias = "Callable[[FloatArray], npt.ArrayLike] | str"
"""A function of outputs, or the name of one."""

Groups: TypeAlias = "Mapping[str, Sequence[Hashable]] | npt.NDArray[np.integer[Any]]"
"""Names of groups, and the names or indices of their columns."""

Explanation: TypeAlias = "shap.Explanation"
"""Attributions with the names and rows that belong to them."""

Values: TypeAlias = "npt.NDArray[Any] | Tensor"
"""Attributions alone."""

Outputs: TypeAlias = "Sequence[int] | IntArray | OpChain | None"
"""Indices of outputs, or a chain that selects some for each row; all where it is None."""

Dtype: TypeAlias = "np.dtype[Any] | ExtensionDtype"
"""The type of a column."""


class HasAttribute(Protocol):
    """One of captum's attribution methods."""

    @property
    def attribute(self) -> Callable[..., Any]:
        """Return attributions of inputs."""


ExplainerLike: TypeAlias = str | Callable[..., Any] | HasAttribute
"""The name of an algorithm, an explainer, a function of rows, or one of captum's methods."""
