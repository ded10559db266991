"""An item of a paper, what it claims, and what a network says of that."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path


@dataclass(frozen=True)
class Claim:
    """A sentence of a paper, and what must not be able to pass for it.

    Attributes
    ----------
    quote : str
        The words that are checked, or the caption where there are none.
    place : str
        Where they stand.
    control : str
        What takes the place of the method that is praised; comparisons with it must fail.
    """

    quote: str
    place: str
    control: str


@dataclass(frozen=True)
class Comparison:
    """One published number beside ours, of one network.

    Attributes
    ----------
    quantity : str
        Its name, the same for all networks.
    theirs : float or None
        The published number; None if the paper only says which side leads.
    ours : float
        Our number.
    control : float
        The same of the control; NaN if it was not run.
    neutral : float or None
        The number at which no side leads: 1 for ratios, 0 for differences; None if no number does.
    leads : {"above", "below"} or None
        The side of `neutral` that the paper names. By default the side of `theirs`.
    is_ratio : bool
        Whether numbers agree within a factor, or else within a difference.
    claim : int
        The place of its claim among those of the item.
    """

    quantity: str
    theirs: float | None
    ours: float
    control: float
    neutral: float | None = 1.0
    leads: str | None = None
    is_ratio: bool = True
    claim: int = 0


def difference(
    quantity: str,
    ours: float,
    control: float,
    leads: str | None = None,
    theirs: float | None = None,
    claim: int = 0,
) -> Comparison:
    """Return a comparison of differences: no side leads at 0."""
    return Comparison(quantity, theirs, ours, control, 0.0, leads, False, claim)


@dataclass(frozen=True)
class Outcome:
    """The numbers of one network.

    Attributes
    ----------
    comparisons : sequence of Comparison
        What the verdict follows from.
    settings : dict of str to str
        Rows, evaluations, model and its accuracy.
    notes : sequence of str
        What a reader has to know, in full sentences.
    draw : callable, optional
        Draws the picture into a file.
    """

    comparisons: Sequence[Comparison]
    settings: Mapping[str, str]
    notes: Sequence[str] = ()
    draw: Callable[[Path], None] | None = None


@dataclass(frozen=True)
class Setting:
    """The folders of a run, whether it is a quick one, and the number of the network.

    Attributes
    ----------
    seed : int
        Another network, trained on another split of the data, and other draws.
    """

    data: Path
    cache: Path
    is_quick: bool
    seed: int = 0


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
    claims : sequence of Claim
        What the paper says of it.
    files : sequence of str
        Data files that it needs, in the folder of data sets.
    minutes : float
        Time of a network on one core.
    run : callable or None
        Computes our numbers for a network; None if this cannot be done.
    reason : str
        Why it cannot be done.
    """

    name: str
    title: str
    source: str
    claims: Sequence[Claim] = ()
    files: Sequence[str] = ()
    minutes: float = 1.0
    run: Callable[[Setting], Outcome] | None = None
    reason: str = ""
