"""What the members of an aggregate have spent in a call."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class SpentEvaluations:
    """The evaluations of the members of an aggregate in one call, all rows together.

    An evaluation is that of one coalition of one row. Members of other packages are not counted.

    Attributes
    ----------
    counted : tuple of (str, int)
        The name of each member that counts, and its evaluations.
    not_counted : tuple of str
        The names of the others.
    """

    counted: tuple[tuple[str, int], ...]
    not_counted: tuple[str, ...]

    @classmethod
    def from_members(cls, members: Iterable[tuple[str, int | None]]) -> SpentEvaluations:
        """Return the counts of named members; None for those that do not count."""
        named = list(members)
        return cls(
            tuple((name, count) for name, count in named if count is not None),
            tuple(name for name, count in named if count is None),
        )

    @property
    def total(self) -> int:
        """The evaluations of the members that count."""
        return sum(count for _, count in self.counted)

    def __str__(self) -> str:
        """Return the counts, and who does not count."""
        parts = [f"{name}: {count:,}" for name, count in self.counted]
        if self.not_counted:
            parts.append(f"not counted: {', '.join(self.not_counted)}")
        return "; ".join(parts)


def latest_evaluations(explainer: Any) -> int | None:
    """Return the evaluations of an explainer's latest call; None if it does not count them."""
    spent = getattr(explainer, "last_evaluations", None)
    if isinstance(spent, SpentEvaluations):
        return None if spent.not_counted else spent.total
    counts = getattr(getattr(explainer, "last_estimate", None), "evaluations", None)
    return None if counts is None else int(counts.sum())
