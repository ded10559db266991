"""An item of a paper, the numbers that answer it, and the rule of the verdict."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

REPRODUCED = "reproduced"
IN_DIRECTION = "reproduced in direction"
NOT_REPRODUCED = "not reproduced"
IMPOSSIBLE = "cannot be reproduced"

FACTOR = 1.25
"""A ratio agrees with the published one within this factor."""

DIFFERENCE = 0.02
"""A score agrees with the published one within this difference."""


@dataclass(frozen=True)
class Comparison:
    """One published number beside ours.

    Attributes
    ----------
    quantity : str
        Its name.
    theirs : float or None
        The published number; None if the paper only says which side leads.
    ours : float
        Our number.
    neutral : float or None
        The number at which no side leads: 1 for ratios, 0 for differences; None if no number does.
    leads : {"above", "below"} or None
        The side of `neutral` that the paper names. By default the side of `theirs`.
    is_ratio : bool
        Whether numbers agree within a factor, or else within a difference.
    """

    quantity: str
    theirs: float | None
    ours: float
    neutral: float | None = 1.0
    leads: str | None = None
    is_ratio: bool = True
    error: float = 0.0

    @property
    def agrees(self) -> bool:
        """Whether our number is close to the published one."""
        if self.theirs is None:
            return False
        if self.is_ratio:
            return 1 / FACTOR <= self.ours / self.theirs <= FACTOR
        return abs(self.ours - self.theirs) <= DIFFERENCE

    @property
    def side(self) -> str:
        """Say "same" or "other" side, or "none" if our number is within two standard errors."""
        if self.neutral is None:
            return "same" if self.agrees else "other"
        beyond = self.ours - self.neutral
        if abs(beyond) <= 2 * self.error:
            return "none"
        published = self.leads or ("above" if (self.theirs or 0.0) > self.neutral else "below")
        return "same" if (beyond > 0) == (published == "above") else "other"


def verdict(comparisons: Sequence[Comparison]) -> str:
    """Return the verdict.

    It is "reproduced" if all published numbers agree with ours. It is "reproduced in direction" if
    none of ours is on the other side by more than two standard errors, and more than half are on
    the published side by more than that. Else it is "not reproduced". If the paper has no numbers
    but names sides, the best verdict is "reproduced in direction".
    """
    if all(comparison.agrees for comparison in comparisons):
        return REPRODUCED
    sides = [comparison.side for comparison in comparisons if not comparison.agrees]
    n_same = len(comparisons) - len(sides) + sides.count("same")
    if "other" not in sides and 2 * n_same > len(comparisons):
        return IN_DIRECTION
    return NOT_REPRODUCED


@dataclass(frozen=True)
class Outcome:
    """The numbers of one run of an item.

    Attributes
    ----------
    comparisons : sequence of Comparison
        What the verdict follows from.
    settings : dict of str to str
        Rows, seeds, model and its accuracy.
    table : dict of str to sequence of str
        More numbers: the head under the key "", then rows by their names.
    notes : sequence of str
        What a reader has to know, in full sentences.
    draw : callable, optional
        Draws the picture into a file.
    """

    comparisons: Sequence[Comparison]
    settings: Mapping[str, str]
    table: Mapping[str, Sequence[str]] = field(default_factory=dict)
    notes: Sequence[str] = ()
    draw: Callable[[Path], None] | None = None


@dataclass(frozen=True)
class Setting:
    """The folders of a run, and whether it is a quick one."""

    data: Path
    cache: Path
    is_quick: bool


@dataclass(frozen=True)
class Item:
    """A table, a figure or a claim.

    Attributes
    ----------
    name : str
        Its name on the command line.
    title : str
        What it shows.
    source : str
        The paper and the number of the table or figure.
    files : sequence of str
        Data files that it needs, in the folder of data sets.
    minutes : float
        Time on two cores.
    run : callable or None
        Computes our numbers; None if this cannot be done.
    reason : str
        Why it cannot be done.
    """

    name: str
    title: str
    source: str
    files: Sequence[str] = ()
    minutes: float = 1.0
    run: Callable[[Setting], Outcome] | None = None
    reason: str = ""
