"""Rows whose absent features are drawn given the present ones, and checks of the data."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from typing import Any, Protocol

import numpy as np
import numpy.typing as npt
import scipy  # which loads its submodules where they are used

from ..arguments import checked_count, checked_seed
from ..array_types import BoolArray, FloatArray
from ..errors import InvalidArgumentError, InvalidArgumentTypeError
from ..games.fingerprints import as_words, fingerprint
from .refits import FEWEST_DRAWS, N_FITS

_CACHE_BYTES = 2**27


@dataclass
class CoalitionCache:
    """The latest arrays, or other things with `nbytes`, of keys such as coalitions.

    Threads may share a cache: entries are only replaced by equal ones. Copies in other processes
    start empty.

    Attributes
    ----------
    compute : callable
        Returns those of keys, (n, D). That of a key must not depend on the others.
    """

    compute: Callable[[npt.NDArray[Any]], Sequence[Any] | npt.NDArray[Any]]
    _known: dict[bytes, Any] = field(default_factory=dict, init=False, repr=False)

    def __call__(self, keys: BoolArray | npt.NDArray[np.int64]) -> npt.NDArray[Any]:
        """Return the arrays of keys, (P, …)."""
        return np.stack(self.entries(keys))

    def entries(self, keys: BoolArray | npt.NDArray[np.int64]) -> list[Any]:
        """Return what is computed of each key."""
        names = [key.tobytes() for key in keys]
        known = self._known
        firsts = {name: index for index, name in enumerate(names) if name not in known}
        if firsts:
            computed = self.compute(keys[list(firsts.values())])
            # A new dictionary, because another thread may read the old one.
            known = known | dict(zip(firsts, computed, strict=True))
            if len(known) * computed[0].nbytes <= _CACHE_BYTES:
                self._known = known
            else:
                self._known = {}
        return [known[name] for name in names]

    def __getstate__(self) -> dict[str, Any]:
        """Leave the arrays out: they may be large, and are computed again."""
        return {"compute": self.compute, "_known": {}}


_BITS = 32

Words = npt.NDArray[np.uint32]
"""Coordinates of points, as multiples of 2⁻³²."""


@dataclass
class ShiftedPoints:
    """Scrambled Sobol points with a random digital shift for each row, coalition and repetition.

    The bits of all points are changed alike at random (L'Ecuyer and Lemieux, 2002). A mean over the
    points is then unbiased, and its error is smaller than that of independent points: measured on
    conditional normal distributions of 6 and 13 features, .3 to .5 of it at 16 points, .14 to .35
    at 64. Without the scrambling, or with shifts modulo 1, it is half as large again.

    Shifts depend on the contents of the row and on the coalition, not on the order in which they
    are asked for. Those of a row and of a coalition are combined by exclusive or, so that the
    points of two rows or of two coalitions are independent. Without present features, all rows
    share the points, and have the same value.

    Attributes
    ----------
    n_draws : int
        K, the points of each coalition.
    n_features : int
        D.
    seed : int
        Seed of the shifts.
    """

    n_draws: int
    n_features: int
    seed: int
    _points: Words = field(init=False, repr=False)
    _shifts: CoalitionCache = field(init=False, repr=False)

    def __post_init__(self) -> None:
        rng = np.random.default_rng([self.seed, 2])
        scrambled = scipy.stats.qmc.Sobol(self.n_features, seed=rng)
        n_all = 1 << (self.n_draws - 1).bit_length()  # SciPy warns of other numbers
        points = scrambled.random(n_all)[: self.n_draws]
        self._points = np.floor(points * 2.0**_BITS).astype(np.uint32)
        self._shifts = CoalitionCache(self._drawn_shifts)

    def row_shift(self, row: npt.NDArray[np.generic]) -> Words:
        """Return the shift, (D,), of a row, from a digest of its contents."""
        return self._shift(1, *as_words([fingerprint(row)])[0].tolist())

    def __call__(self, masks: BoolArray, row_shift: Words, repeat: int) -> FloatArray:
        """Return the points of coalitions of a row, (P, K, D), each coordinate uniform in (0, 1).

        The first coordinates of the Sobol sequence, which are spread best, go to the first absent
        features.

        Parameters
        ----------
        masks : array, (P, D)
            True where the feature is present.
        row_shift : array, (D,)
            Result of `row_shift`.
        repeat : int
            Points of other repetitions are independent.
        """
        keys = np.concatenate([np.full((len(masks), 1), repeat), masks], axis=1)
        shifts = self._shifts(keys.astype(np.int64))
        shifts = np.where(masks.any(axis=1, keepdims=True), shifts ^ row_shift, shifts)
        dimensions = np.maximum(np.cumsum(~masks, axis=1) - 1, 0)  # (P, D)
        words = self._points.T[dimensions].swapaxes(1, 2) ^ shifts[:, None]
        return (words + 0.5) * 2.0**-_BITS  # the middle of their cells: never 0 or 1

    def _drawn_shifts(self, keys: npt.NDArray[np.int64]) -> Words:
        """Return the shifts of repetitions and coalitions, (n, D)."""
        bits = np.packbits(keys[:, 1:] == 1, axis=1)
        return np.array(
            [
                self._shift(0, repeat, *of_coalition)
                for repeat, of_coalition in zip(keys[:, 0].tolist(), bits.tolist(), strict=True)
            ]
        )

    def _shift(self, *words: int) -> Words:
        rng = np.random.default_rng([self.seed, *words])
        return rng.integers(2**_BITS, size=self.n_features, dtype=np.uint32)


Row = npt.NDArray[Any]
"""(D,): the values of a row, of any type that the distribution takes."""


Filled = tuple[npt.NDArray[Any], Any]
"""Rows, (P, K, D), and what is known of their draws beside them."""


class ConditionalDistribution(Protocol):
    """The distribution of absent features given present ones, for all coalitions."""

    def fill(self, row: Row, masks: BoolArray, points: FloatArray) -> Filled:
        """Return rows, (P, K, D), with the present values of `row`, (D,), and absent ones drawn.

        And what `LogRatios` need to know of them. A pure function: all randomness is in the points.

        Parameters
        ----------
        row : array, (D,)
            Present values.
        masks : array, (P, D)
            True where the feature is present; in each, some are absent.
        points : array, (P, K, D)
            Numbers between 0 and 1 whose coordinates are uniform and independent.
        """


LogRatios = Callable[[Row, BoolArray, Any], FloatArray]
"""The logarithms of the densities of draws by F other fits, less those by this one, (P, K, F).

To first order, and up to a constant of each coalition and fit. Arguments are the row, the masks,
and what `fill` returned beside the draws."""


@dataclass(frozen=True)
class ConditionalDraws:
    """The draws of absent features of any row.

    Attributes
    ----------
    distribution : ConditionalDistribution
        Their distribution.
    points : ShiftedPoints
        The random numbers.
    log_ratios : LogRatios, optional
        Those of fits to other rows, where the distribution knows them.
    """

    distribution: ConditionalDistribution
    points: ShiftedPoints
    log_ratios: LogRatios | None = None

    def of_row(self, row: Row) -> RowDraws:
        """Return the draws of a row, (D,)."""
        return RowDraws(self, row, self.points.row_shift(row))

    def drawn(self, row: Row, masks: BoolArray, repeat: int) -> npt.NDArray[Any]:
        """Return the draws, (P, K, D), of coalitions of a row, (P, D), in one repetition."""
        return self.of_row(row).repeated(repeat)(masks)


@dataclass(frozen=True)
class RowDraws:
    """The draws of absent features of one row.

    Attributes
    ----------
    draws : ConditionalDraws
    row : array, (D,)
        Present values.
    shift : array of words, (D,)
        The row's part of the shifts of its points.
    repeat : int
        The repetition: those of another one are independent.
    """

    draws: ConditionalDraws
    row: Row
    shift: Words
    repeat: int = 0
    _latest: dict[bytes, Any] = field(default_factory=dict, init=False, repr=False, compare=False)

    def __call__(self, masks: BoolArray) -> npt.NDArray[Any]:
        """Return the draws of coalitions, (P, D), as rows, (P, K, D); whole rows are not drawn."""
        is_drawn = ~masks.all(axis=1)
        if not is_drawn.all():
            drawn = self(masks[is_drawn]) if is_drawn.any() else self.row[None, None]
            shape = len(masks), self.draws.points.n_draws, len(self.row)
            table = np.empty(shape, dtype=drawn.dtype)
            table[:], table[is_drawn] = self.row, drawn
            return table
        rows, known = self._filled(masks)
        if self.draws.log_ratios is not None:
            self._latest.clear()
            self._latest[masks.tobytes()] = known
        return rows

    def _filled(self, masks: BoolArray) -> Filled:
        points = self.draws.points(masks, self.shift, self.repeat)
        return self.draws.distribution.fill(self.row, masks, points)

    def log_ratios(self, masks: BoolArray) -> FloatArray:
        """Return those of the draws of coalitions, (P, D), as (P, K, F); 0 of whole rows.

        Mostly of the latest draws, which need not be made again.
        """
        log_ratios: Any = self.draws.log_ratios  # which callers have asked for
        ratios = np.zeros((len(masks), self.draws.points.n_draws, N_FITS))
        is_drawn = ~masks.all(axis=1)
        if is_drawn.any():
            drawn = masks[is_drawn]
            known = self._latest.pop(drawn.tobytes(), None)
            known = self._filled(drawn)[1] if known is None else known
            ratios[is_drawn] = log_ratios(self.row, drawn, known)
        return ratios

    def repeated(self, repeat: int) -> RowDraws:
        """Return the draws of another repetition."""
        return replace(self, repeat=repeat)


def checked_draws(
    distribution: ConditionalDistribution, n_features: int, draws: object, seed: object
) -> ConditionalDraws:
    """Return the draws of a distribution, with the arguments of a user."""
    points = ShiftedPoints(checked_count("draws", draws), n_features, checked_seed(seed))
    refitted, log_ratios = getattr(distribution, "refitted", None), None
    if refitted is not None and points.n_draws >= FEWEST_DRAWS:
        log_ratios = refitted(np.random.default_rng([points.seed, 3]))
    return ConditionalDraws(distribution, points, log_ratios)


SamplingFunction = Callable[[BoolArray, npt.NDArray[Any], int, np.random.Generator], npt.ArrayLike]
"""f(mask, row, n, rng) returns n rows, (n, D)."""


@dataclass
class Sampled:
    """The draws of a function.

    Attributes
    ----------
    function : SamplingFunction
        Draws rows; the values of present features in them are not used.
    """

    function: SamplingFunction

    @classmethod
    def checked(cls, function: object) -> Sampled:
        """Return the distribution of a user's argument."""
        if not callable(function):
            raise InvalidArgumentTypeError(
                "function must be callable as function(mask, row, n, rng) and return n rows; got "
                f"{type(function).__name__}."
            )
        return cls(function)

    def fill(self, row: npt.NDArray[Any], masks: BoolArray, points: FloatArray) -> Filled:
        """Return rows whose absent values are those of the function, (P, K, D)."""
        filled = []
        for mask, own in zip(masks, points, strict=True):
            # The first point is the random shift of the coalition: a seed that no other one has.
            rng = np.random.default_rng(own[0].view(np.uint64).tolist())
            drawn = np.asarray(self.function(mask.copy(), row.copy(), len(own), rng))
            if drawn.shape != own.shape:
                raise InvalidArgumentError(
                    f"function must return {len(own)} rows of {len(row)} values, shape "
                    f"{own.shape}; it returned shape {drawn.shape}."
                )
            filled.append(np.where(mask, row, drawn))
        return np.array(filled), None


def checked_numbers(values: npt.NDArray[Any], names: Sequence[Any] | None) -> FloatArray:
    """Return data, (N, D), as finite numbers.

    Raises
    ------
    InvalidArgumentTypeError
        If a column has values that are not numbers.
    InvalidArgumentError
        If a value is missing or infinite.
    """
    columns = values.T if values.dtype.kind == "O" else [values]
    for place, column in enumerate(columns):
        try:
            np.asarray(column, dtype=np.float64)
        except (TypeError, ValueError) as error:
            raise InvalidArgumentTypeError(
                f"data holds values that are not numbers, such as {column.flat[0]!r} in "
                f"{named_column(place, names)}. Categorical and Forest take categories; the "
                "other distributions need data of numbers only."
            ) from error
    numbers = np.array(values, dtype=np.float64)
    bad = np.argwhere(~np.isfinite(numbers))
    if len(bad):
        row, column = bad[0]
        raise InvalidArgumentError(
            f"data holds {numbers[row, column]} in row {row}, {named_column(column, names)}. The "
            "distribution is fitted to complete rows: drop the others, or fill them in."
        )
    return numbers


def named_column(column: int, names: Sequence[Any] | None) -> str:
    """Return a column for messages: by its name, or by its index."""
    return f"column {column}" if names is None else f"column {names[column]!r}"
