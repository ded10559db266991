"""The rule of the verdicts: each case has its condition, and the words that the page prints."""

import math
from collections import defaultdict
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import chain
from typing import Any, NamedTuple

import numpy as np
from scipy.stats import t as student

from .items import Comparison

FACTOR, DIFFERENCE = 1.25, 0.02
CONFIDENCE = 0.95
FEWEST_NETWORKS = 3


class Answer(NamedTuple):
    """A name, and when it is given: the words of the page and the condition of the code."""

    name: str
    words: str
    holds: Callable[[Any], bool]


@dataclass(frozen=True)
class Spread:
    """A number of several networks, beside what the paper says of it.

    Attributes
    ----------
    numbers : sequence of float
        One for each network.
    of : Comparison
        Of any of the networks: what the paper says.
    """

    numbers: Sequence[float]
    of: Comparison

    @property
    def mean(self) -> float:
        """The mean over networks."""
        return float(np.mean(self.numbers))

    @property
    def error(self) -> float:
        """The standard error of the mean; NaN for a single network."""
        n = len(self.numbers)
        return float(np.std(self.numbers, ddof=1) / math.sqrt(n)) if n > 1 else math.nan

    @property
    def interval(self) -> tuple[float, float]:
        """The interval of the mean, by Student's t."""
        n = len(self.numbers)
        half = student.ppf((1 + CONFIDENCE) / 2, n - 1) * self.error if n > 1 else math.inf
        return self.mean - half, self.mean + half

    @property
    def bounds(self) -> tuple[float, float] | None:
        """Between which numbers agree with the published one; None if there is no such number."""
        theirs = self.of.theirs
        if theirs is None:
            return None
        if self.of.is_ratio:
            return theirs / FACTOR, theirs * FACTOR
        return theirs - DIFFERENCE, theirs + DIFFERENCE

    @property
    def side(self) -> str | None:
        """The side that the paper names, "above" or "below"; None if it names none."""
        neutral, theirs = self.of.neutral, self.of.theirs
        if neutral is None or self.of.leads is not None:
            return self.of.leads
        if theirs is None or theirs == neutral:
            return None
        return "above" if theirs > neutral else "below"

    @property
    def agrees(self) -> bool:
        """Whether the whole interval is in the bounds."""
        (low, high), bounds = self.interval, self.bounds
        return bounds is not None and bounds[0] <= low and high <= bounds[1]

    def is_beyond(self, side: str | None) -> bool:
        """Return whether the whole interval is on a side of the neutral number."""
        (low, high), neutral = self.interval, self.of.neutral
        if neutral is None or side is None:
            return False
        return low > neutral if side == "above" else high < neutral

    @property
    def is_elsewhere(self) -> bool:
        """Whether the whole interval is on the other side, or outside the bounds without sides."""
        if self.side is not None:
            return self.is_beyond("below" if self.side == "above" else "above")
        (low, high), bounds = self.interval, self.bounds
        return bounds is not None and (high < bounds[0] or low > bounds[1])


AGREES, SAME, OTHER, OPEN = "agrees", "same side", "differs", "open"
ANSWERS = (
    Answer(
        AGREES,
        f"the whole interval is within a factor of {FACTOR} of the published ratio, or within "
        f"{DIFFERENCE} of the published score",
        lambda spread: spread.agrees,
    ),
    Answer(
        SAME,
        "the whole interval is on the paper's side of the neutral number, which is 1 for ratios "
        "and 0 for differences",
        lambda spread: spread.is_beyond(spread.side),
    ),
    Answer(
        OTHER,
        "the whole interval is on the other side; or, for numbers that have no sides (accuracies, "
        "values, sides that are equal there), it lies outside the bounds of the first case",
        lambda spread: spread.is_elsewhere,
    ),
    Answer(OPEN, "all others", lambda _: True),
)
"""The first that holds is given."""

_WORTH = {AGREES: 2, SAME: 1, OTHER: 0, OPEN: 0}


def answer(spread: Spread) -> str:
    """Return what networks say of a published number."""
    return next(one.name for one in ANSWERS if one.holds(spread))


@dataclass(frozen=True)
class Tested:
    """A comparison over all networks: our number, and that of the control."""

    ours: Spread
    control: Spread

    @property
    def answer(self) -> str:
        """What our numbers say."""
        return answer(self.ours)

    @property
    def is_passed_by_control(self) -> bool:
        """Whether the control says as much for the paper as we do."""
        return self.is_controlled and 0 < _WORTH[self.answer] <= _WORTH[answer(self.control)]

    @property
    def is_controlled(self) -> bool:
        """Whether the control was run with all networks."""
        return not math.isnan(self.control.mean)

    @property
    def counts(self) -> bool:
        """Whether the comparison says something for or against the paper."""
        return self.is_controlled and not self.is_passed_by_control


def gather(runs: Sequence[Sequence[Comparison]]) -> list[Tested]:
    """Return each comparison over the networks that have it."""
    by_quantity = defaultdict[str, list[Comparison]](list)
    for comparison in chain(*runs):
        by_quantity[comparison.quantity].append(comparison)
    return [
        Tested(
            *(Spread([getattr(one, of) for one in found], found[0]) for of in ("ours", "control"))
        )
        for found in by_quantity.values()
    ]


@dataclass(frozen=True)
class Evidence:
    """All that is known of an item.

    Attributes
    ----------
    is_possible : bool
        Whether it can be computed at all.
    n_networks : int
        How many networks were run.
    tested : sequence of Tested
        Their comparisons.
    """

    is_possible: bool
    n_networks: int
    tested: Sequence[Tested]

    @property
    def counted(self) -> list[str]:
        """The answers of the comparisons that count."""
        return [one.answer for one in self.tested if one.counts]

    def share(self, *names: str) -> float:
        """Return the share of some answers among those that count."""
        return sum(self.counted.count(name) for name in names) / len(self.counted)


VERDICTS = (
    Answer(
        "cannot be reproduced",
        "the data, the model or the people of the experiment are not available",
        lambda e: not e.is_possible,
    ),
    Answer(
        "too few networks",
        f"fewer than {FEWEST_NETWORKS} networks were run",
        lambda e: e.n_networks < FEWEST_NETWORKS,
    ),
    Answer(
        "no verdict",
        "half of the comparisons or more do not count",
        lambda e: 2 * len(e.counted) <= len(e.tested),
    ),
    Answer(
        "reproduced", f"all comparisons that count say “{AGREES}”", lambda e: e.share(AGREES) == 1
    ),
    Answer(
        "reproduced in direction",
        f"more than half of them say “{AGREES}” or “{SAME}”, and none “{OTHER}”",
        lambda e: e.share(AGREES, SAME) > 0.5 and e.share(OTHER) == 0,
    ),
    Answer("not reproduced", "all others", lambda _: True),
)
"""The first that holds is given."""


def verdict(evidence: Evidence) -> str:
    """Return the verdict on an item."""
    return next(one.name for one in VERDICTS if one.holds(evidence))


def words() -> str:
    """Return the rule as the page prints it."""
    answers, verdicts = (
        ";\n".join(f"- **{one.name}**: {one.words}" for one in cases) + "."
        for cases in (ANSWERS, VERDICTS)
    )
    return (
        "Numbers are means over networks, each trained on another split of the data; the interval "
        f"is that of {CONFIDENCE:.0%} by Student's t. The first case that holds is the answer of a "
        f"comparison:\n\n{answers}\n\n"
        "A control takes the place of the method that the paper praises. It passes if its answer "
        "is as good as ours. A comparison whose control passes, or was not run, counts neither for "
        f"nor against the paper. The first case that holds is the verdict:\n\n{verdicts}"
    )
