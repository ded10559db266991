"""One module for each family of estimators: pure functions of designs and values.

To write another estimator, inherit from `Estimator`; its methods are documented there. The hosts'
classes have the docstrings of the estimators, which therefore say feature for player.
"""

from ..coalitions.tables import CoalitionTable
from .protocol import Design, DesignRequest, Estimator, Solution, WholeDesign
from .units import UnitDesign, average_draws, select_within_budget

__all__ = [
    "CoalitionTable",
    "Design",
    "DesignRequest",
    "Estimator",
    "Solution",
    "UnitDesign",
    "WholeDesign",
    "average_draws",
    "select_within_budget",
]
