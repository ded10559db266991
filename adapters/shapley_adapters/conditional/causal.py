"""Absent features after an intervention that sets the present ones."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from ..array_types import BoolArray, FloatArray
from ..errors import InvalidArgumentError
from .gaussian import Gaussian

CausalOrder: TypeAlias = Sequence[object]
"""Columns, or lists of columns whose order is not known, causes before effects."""


@dataclass
class CausalGaussian(Gaussian):
    """A normal distribution in which setting a feature does not change its causes.

    Features are drawn one component of the causal order after the other, each given all features of
    earlier components. Present features of the same component count, too, if these influence each
    other; not if all of them have a common cause that is not observed (Heskes et al., 2020, section
    4, equation 6). Draws are linear in the present features and in normal numbers, so that both
    matrices of `Gaussian` are composed.

    Attributes
    ----------
    components : array of int, (D,)
        The component of each feature; causes have smaller numbers.
    is_confounded : array of bool, (components,)
        Whether the features of a component have a common cause that is not observed.
    """

    components: npt.NDArray[np.intp] = field(kw_only=True)
    is_confounded: BoolArray = field(kw_only=True)

    @classmethod
    def fitted_in_order(
        cls,
        data: npt.NDArray[Any],
        names: Sequence[Any] | None = None,
        *,
        order: CausalOrder,
        confounded: bool | Sequence[bool],
    ) -> CausalGaussian:
        """Return the distribution with the mean and the covariance of rows, (N, D).

        Raises
        ------
        InvalidArgumentError
            If the order does not hold each column once, or as in `Gaussian.fitted`.
        """
        normal = Gaussian.fitted(data, names)
        components = _checked_components(order, data.shape[1], names)
        n_components = len(order)
        flags = np.atleast_1d(np.asarray(confounded))
        if flags.dtype != bool or flags.size not in (1, n_components):
            raise InvalidArgumentError(
                f"confounded must be True or False, for all components of order or for each of the "
                f"{n_components}; got {confounded!r}."
            )
        return cls(
            normal.mean,
            normal.covariance,
            components=components,
            is_confounded=np.broadcast_to(flags, n_components),
        )

    def _conditional_matrices(self, keys: npt.NDArray[Any]) -> FloatArray:
        known, absent = np.split(keys, 2, axis=1)
        identity = np.eye(known.shape[1])
        slopes, roots = (
            np.where(known[:, None], identity, 0.0),
            np.zeros((len(keys), *identity.shape)),
        )
        for component, is_confounded in enumerate(self.is_confounded):
            is_own = self.components == component
            given = (known | absent) & (self.components < component)
            if not is_confounded:
                given |= known & is_own
            matrices = super()._conditional_matrices(
                np.concatenate([given, absent & is_own], axis=1)
            )
            own_slopes, own_roots = matrices[:, 0], matrices[:, 1]
            slopes = slopes + own_slopes @ slopes
            roots = roots + own_slopes @ roots + own_roots
        return np.stack([slopes, roots], axis=1)


def _checked_components(
    order: CausalOrder, n_columns: int, names: Sequence[Any] | None
) -> npt.NDArray[np.intp]:
    """Return the place in the order of each column, (D,)."""
    components = np.full(n_columns, -1)
    for place, entry in enumerate(order):
        for column in entry if isinstance(entry, (list, tuple, set, frozenset)) else [entry]:
            index = column
            if names is not None and column in names:
                index = list(names).index(column)
            if not isinstance(index, (int, np.integer)) or not 0 <= index < n_columns:
                raise InvalidArgumentError(
                    f"order holds {column!r}, which is no column of data. Name columns as data "
                    f"does, or by their indices from 0 to {n_columns - 1}."
                )
            if components[index] >= 0:
                raise InvalidArgumentError(
                    f"order holds {column!r} twice, so that it would be its own cause. Put columns "
                    "whose order is not known into one list."
                )
            components[index] = place
    lacking = np.flatnonzero(components < 0).tolist()
    if lacking:
        shown = lacking if names is None else [names[index] for index in lacking]
        raise InvalidArgumentError(
            f"order lacks the columns {shown[:5]}. Each column has a place: put those without "
            "causes first."
        )
    return components
