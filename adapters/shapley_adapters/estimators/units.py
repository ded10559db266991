"""Designs of units, the same for all rows: coalitions that are useful only together."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, ClassVar

from ..array_types import CoalitionArray, IntArray
from ..coalitions.tables import pack, select_units, units_within
from .protocol import Design, DesignRequest

if TYPE_CHECKING:
    from typing_extensions import Self


@dataclass(frozen=True)
class UnitDesign(Design):
    """Units of S coalitions each, such as a coalition and its complement.

    Estimators that need more than the coalitions inherit from it and add arrays. `unit_fields`
    names the arrays with an entry per unit, of which a smaller design has the first entries.

    Attributes
    ----------
    positions : array, (U, S)
        Indices of the coalitions of each unit into the table.
    """

    positions: IntArray

    unit_fields: ClassVar[tuple[str, ...]] = ("positions",)

    def within(self, n_coalitions: int) -> Self:
        """Return the design of the units whose coalitions are among the first of the table."""
        n_units = int(units_within(self.positions[None], n_coalitions)[0])
        first: dict[str, Any] = {name: getattr(self, name)[:n_units] for name in self.unit_fields}
        return replace(self, table=self.table.first(n_coalitions), **first)


def select_within_budget(request: DesignRequest, units: CoalitionArray) -> UnitDesign:
    """Return the design of the first units that are within the budget.

    Each distinct coalition is evaluated once. Those of `request.known` and of earlier units cost
    nothing. The budget therefore usually covers more units than its quotient by the unit size:
    offer about twice as many.

    Parameters
    ----------
    request : DesignRequest
        The request that `Estimator.design` received.
    units : array of bool, (U, S, M)
        The units in the order in which they are to be evaluated: S coalitions of M players each.
    """
    selection = select_units(request.known, pack(units)[None], request.budget)
    return UnitDesign(selection.table, selection.positions[0, : selection.n_units[0]])
