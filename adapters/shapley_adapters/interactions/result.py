"""Interactions of sets of players, and their standard errors, for all rows and outputs."""

from __future__ import annotations

import importlib
import math
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import scipy.special

from ..arguments import checked_choice, checked_count
from ..array_types import AttributionArray, FloatArray, IntArray
from ..errors import InvalidArgumentError, MissingPackageError
from ..memory_bounds import memory_limit
from .indices import Family, Index, all_sets, index_of

_NAMES = {
    "shapley": "SII",
    "shapley_taylor": "STII",
    "banzhaf": "BII",
    "faithful_shapley": "FSII",
    "faithful_banzhaf": "FBII",
    "moebius": "Moebius",
}
"""The names of shapiq for ours."""

SemivalueIndex: TypeAlias = str | Sequence[float | str]
"""A semivalue: a name, ("beta", a, b), or the weights of sizes."""

INDICES = (*_NAMES, "k-SII", *_NAMES.values())
"""The names of indices of interaction."""

_HAS_EMPTY_SET = "k-SII", "STII", "FSII", "Moebius"
"""Indices whose value of the empty set is that of the empty coalition."""

_MOST_ORDER = 5

_SUM_TOLERANCE = 1e-9

_BYTES_OF_SET = 64
"""Bytes for each set: interactions and errors, those of pairs as matrices, too."""


@dataclass(frozen=True)
class InteractionRequest:
    """The interactions that a call asks for.

    Attributes
    ----------
    name : str
        The name of the index by shapiq.
    order : int
        The most players in a set.
    kind : {"pairs", "sets", "semivalues"}
        Whether matrices of pairs are wanted, whose main effects follow from attributions; sets of
        1, …, `order` players; or semivalues of single players in place of attributions.
    parameters : tuple of float
        Those of a semivalue; see `Family`.
    """

    name: str
    order: int = 2
    kind: str = "pairs"
    parameters: tuple[float, ...] = ()

    @property
    def are_pairs(self) -> bool:
        """Whether matrices of pairs are wanted."""
        return self.kind == "pairs"

    @property
    def are_semivalues(self) -> bool:
        """Whether semivalues of single players are wanted."""
        return self.kind == "semivalues"

    def __str__(self) -> str:
        """Return what is wanted, for messages."""
        return "semivalues" if self.are_semivalues else f"interactions by {self.name}"

    @property
    def family(self) -> Family:
        """The index with its weights."""
        return Family(self.name, self.order, self.parameters)

    @property
    def sizes(self) -> tuple[int, ...]:
        """The sizes of the sets."""
        return (2,) if self.are_pairs else tuple(range(1, self.order + 1))

    def index(self, n_players: int) -> Index:
        """Return the index for all sets of some players."""
        return index_of(self.family, self.sizes, n_players)

    def n_sets(self, n_players: int) -> int:
        """Return the number of sets."""
        return sum(math.comb(n_players, size) for size in self.sizes)

    def check_memory(self, shape: tuple[int, int, int]) -> None:
        """Refuse attributions of a shape, (R, M, K), whose interactions do not fit into memory.

        Raises
        ------
        InvalidArgumentError
            If the interactions do not fit.
        """
        n_rows, n_players, n_outputs = shape
        if self.name == "sizes" and len(self.parameters) != n_players:
            raise InvalidArgumentError(
                "index must have a weight for each number of other features, 0 to "
                f"{n_players - 1}; got {len(self.parameters)} weights for {n_players} features."
            )
        needed = _BYTES_OF_SET * n_rows * self.n_sets(n_players) * n_outputs
        limit = memory_limit()
        if needed > limit:
            raise InvalidArgumentError(
                f"interactions of up to {self.order} of {n_players} players need about "
                f"{needed / 2**30:.3g} GiB of memory for {n_rows} rows and {n_outputs} outputs. At "
                f"most {limit / 2**30:.3g} GiB, half of the memory, may be used. Explain fewer "
                "rows or outputs at a time, or group features (groups= or a coarser masker in "
                "shap, feature_mask in captum)."
            )


def checked_pairs(name: str, value: Any) -> InteractionRequest | None:
    """Return the request for matrices of pairs; none for False, and Shapley's for True.

    A request is returned as it is.
    """
    if value is False:
        return None
    if isinstance(value, InteractionRequest):
        return value
    index = "shapley" if value is True else checked_choice(name, value, INDICES)
    return InteractionRequest(_NAMES.get(index, index))


def checked_sets(index: Any, order: Any) -> InteractionRequest:
    """Return the request for sets of up to `order` players."""
    name = checked_choice("index", index, INDICES)
    if checked_count("order", order) > _MOST_ORDER:
        raise InvalidArgumentError(f"order must be at most {_MOST_ORDER}; got {order}.")
    return InteractionRequest(_NAMES.get(name, name), order, "sets")


def checked_semivalues(index: SemivalueIndex) -> InteractionRequest:
    """Return the request for semivalues: a name, ("beta", α, β), or the weights of sizes."""
    if isinstance(index, str):
        name = checked_choice("index", index, ("shapley", "banzhaf"))
        return InteractionRequest(_NAMES[name], 1, "semivalues")
    parts = list(index) if isinstance(index, Sequence | np.ndarray) else []
    name, numbers = ("beta", parts[1:]) if parts[:1] == ["beta"] else ("sizes", parts)
    try:
        weights = np.array(numbers, dtype=np.float64)
    except (TypeError, ValueError):
        weights = np.zeros(0)
    is_right = weights.ndim == 1 and np.isfinite(weights).all() and (weights >= 0).all()
    if name == "beta":
        is_right = is_right and len(weights) == 2 and (weights > 0).all()
        weights = weights[::-1]  # Beta(α, β) has the chance of Beta(β, α) that another is present
    else:
        is_right = is_right and len(weights) > 0 and abs(weights.sum() - 1) < _SUM_TOLERANCE
    if not is_right:
        raise InvalidArgumentError(
            'index must be "shapley", "banzhaf", ("beta", a, b) with positive numbers, or '
            f"weights; got {index!r}. Weights are those of coalitions of 0, …, M − 1 other "
            "features. They must not be negative, and must sum to 1."
        )
    return InteractionRequest(name, 1, "semivalues", tuple(weights.tolist()))


def pairs_of(n_players: int) -> tuple[IntArray, IntArray]:
    """Return the first and the second player of each pair, in the order of all arrays of pairs."""
    first, second = np.triu_indices(n_players, 1)
    return first, second


def membership(n_players: int) -> FloatArray:
    """Return 1 for both players of each pair and 0 for the others, (P, M)."""
    first, second = pairs_of(n_players)
    members = np.zeros((len(first), n_players))
    numbers = np.arange(len(first))
    members[numbers, first] = members[numbers, second] = 1.0
    return members


def set_numbers(sets: IntArray, n_players: int) -> IntArray:
    """Return the numbers of sets, (..., a), in any order, among all sets of their size, (...)."""
    size = sets.shape[-1]
    after = n_players - 1 - np.sort(sets, axis=-1)
    following = scipy.special.comb(after, np.arange(size, 0, -1)).sum(axis=-1)
    return math.comb(n_players, size) - 1 - following.astype(np.intp)


@dataclass(frozen=True)
class SetSolution:
    """The interactions that an estimator computes for the players of a design.

    Attributes
    ----------
    values, standard_errors : arrays, (R, k, K)
        The interaction of each set, and its standard error.
    main_errors : array, (R, M, K)
        Standard errors of the main effects: attributions less half of the player's interactions.
    """

    values: FloatArray
    standard_errors: FloatArray
    main_errors: FloatArray

    @classmethod
    def exact(cls, values: FloatArray, n_players: int) -> SetSolution:
        """Return interactions without errors."""
        n_rows, _, n_outputs = values.shape
        return cls(values, np.zeros_like(values), np.zeros((n_rows, n_players, n_outputs)))


@dataclass(frozen=True)
class Interactions:
    """The interactions of all sets of players of some sizes, for each row and output.

    Sets are ordered by their size, then by their players: (0, 1), (0, 2), …, (1, 2), ….

    Attributes
    ----------
    request : InteractionRequest
        The index and the sizes.
    values : array, (R, k, K)
        The interaction of each set, in units of the game's value.
    standard_errors : array, (R, k, K)
        Their standard errors; 0 where every coalition was evaluated.
    main_errors : array, (R, M, K)
        Standard errors of the main effects, the diagonal of `matrices`.
    """

    request: InteractionRequest
    values: FloatArray
    standard_errors: FloatArray
    main_errors: FloatArray

    @classmethod
    def blank(cls, request: InteractionRequest, shape: tuple[int, int, int]) -> Interactions:
        """Return interactions of 0 for attributions of a shape, (R, M, K), if memory suffices."""
        request.check_memory(shape)
        n_rows, n_players, n_outputs = shape
        values, errors = np.zeros((2, n_rows, request.n_sets(n_players), n_outputs))
        return cls(request, values, errors, np.zeros(shape))

    @property
    def n_players(self) -> int:
        """The number of players, M."""
        return int(self.main_errors.shape[1])

    @property
    def sets(self) -> list[tuple[int, ...]]:
        """The players of each set, (k,)."""
        sizes = self.request.sizes
        return [
            tuple(players) for size in sizes for players in all_sets(self.n_players, size).tolist()
        ]

    def subset_rows(self, start: int, stop: int) -> Interactions:
        """Return those of the rows from `start` to `stop`, in the same memory."""
        rows = slice(start, stop)
        return Interactions(
            self.request, self.values[rows], self.standard_errors[rows], self.main_errors[rows]
        )

    def set_rows(self, start: int, stop: int, interactions: Interactions) -> None:
        """Store the interactions of the rows from `start` to `stop`."""
        self.values[start:stop] = interactions.values
        self.standard_errors[start:stop] = interactions.standard_errors
        self.main_errors[start:stop] = interactions.main_errors

    def record(self, rows: IntArray, players: IntArray, solution: SetSolution) -> None:
        """Store the interactions of some rows, among their active players, (r, m)."""
        start, first = 0, 0
        for size in self.request.sizes:
            local = all_sets(players.shape[1], size)
            of_solution = slice(start, start := start + len(local))
            numbers = first + set_numbers(players[:, local], self.n_players)
            first += math.comb(self.n_players, size)
            self.values[rows[:, None], numbers] = solution.values[:, of_solution]
            self.standard_errors[rows[:, None], numbers] = solution.standard_errors[:, of_solution]
        self.main_errors[rows[:, None], players] = solution.main_errors

    def freedom(self, of_players: FloatArray) -> FloatArray:
        """Return degrees of freedom, (R, k, K), from those of the players, (R, M, K).

        Interactions have none of their own: the even part gives many of them, and the odd part
        gives the attributions. A set has the fewest of its players'.
        """
        sizes = self.request.sizes
        of_sizes = [of_players[:, all_sets(self.n_players, size)].min(axis=2) for size in sizes]
        return np.concatenate(of_sizes, axis=1)

    def matrices(self, attributions: AttributionArray) -> FloatArray:
        """Return the matrix of each row and output in the convention of shap, (R, M, M, K).

        Each of the two entries of a pair has half of its interaction. The diagonal has the main
        effects, such that each row of the matrix sums to the attribution of its player.

        Parameters
        ----------
        attributions : array, (R, M, K)
            The attributions of the same estimate.
        """
        matrices = self._symmetric(self.values / 2)
        players = np.arange(self.n_players)
        matrices[:, players, players] = attributions - matrices.sum(axis=2)
        return matrices

    def error_matrices(self) -> FloatArray:
        """Return the standard errors of `matrices`, (R, M, M, K)."""
        errors = self._symmetric(self.standard_errors / 2)
        players = np.arange(self.n_players)
        errors[:, players, players] = self.main_errors
        return errors

    def _symmetric(self, of_pairs: FloatArray) -> FloatArray:
        """Return numbers of pairs, (R, P, K), as symmetric matrices of diagonal 0."""
        if not self.request.are_pairs:
            raise InvalidArgumentError(
                f"Interactions of up to {self.request.order} players have no matrices; only those "
                "of pairs have."
            )
        n_rows, _, n_outputs = of_pairs.shape
        matrices = np.zeros((n_rows, self.n_players, self.n_players, n_outputs))
        first, second = pairs_of(self.n_players)
        matrices[:, first, second] = of_pairs
        matrices[:, second, first] = of_pairs
        return matrices


@dataclass(frozen=True)
class SetInteractions:
    """Interactions of sets of features, for each row and output.

    Attributes
    ----------
    index : str
        The name of the index by shapiq.
    order : int
        The most features in a set.
    sets : list of tuple of int
        The features of each set, by their numbers: first single features, then pairs, ….
    names : sequence of str
        The names of the features.
    values, standard_errors : arrays, (R, k, K)
        The interaction of each set, in units of the model's output, and its standard error; 0 if
        all coalitions were evaluated.
    degrees_of_freedom : array, (R, k, K)
        Those of the standard errors.
    """

    index: str
    order: int
    sets: list[tuple[int, ...]]
    names: Sequence[str]
    values: FloatArray
    standard_errors: FloatArray
    degrees_of_freedom: FloatArray

    def strongest(
        self,
        n: int = 10,
        *,
        row: int = 0,
        output: int = 0,
        size: int | None = None,
        level: float = 0.95,
    ) -> Any:
        """Return the sets with the largest interactions, as a DataFrame.

        The strongest of many sets are often those whose errors are large. Therefore, the intervals
        hold for all sets of the row together (Bonferroni), whichever are looked at.

        Parameters
        ----------
        n : int
            How many sets.
        row, output : int
            The row and the output.
        size : int, optional
            Only sets of so many features; by default of any number.
        level : float
            The share of rows in which all intervals shall hold.

        Returns
        -------
        DataFrame
            The columns `features`, `value`, `standard_error`, `lower` and `upper`.
        """
        pandas = importlib.import_module("pandas")
        sizes = np.array([len(players) for players in self.sets])
        values = self.values[row, :, output]
        chosen = np.flatnonzero(sizes == size) if size is not None else np.arange(len(sizes))
        chosen = chosen[np.argsort(-np.abs(values[chosen]), kind="stable")][: checked_count("n", n)]
        errors = self.standard_errors[row, :, output]
        tail = (1 - level) / 2 / max(int((errors > 0).sum()), 1)
        errors, freedom = errors[chosen], self.degrees_of_freedom[row, chosen, output]
        is_normal = np.isinf(freedom)
        widths = -errors * np.where(
            is_normal,
            scipy.special.ndtri(tail),
            scipy.special.stdtrit(np.where(is_normal, 1.0, freedom), tail),
        )
        return pandas.DataFrame(
            {
                "features": [tuple(self.names[j] for j in self.sets[place]) for place in chosen],
                "value": values[chosen],
                "standard_error": errors,
                "lower": values[chosen] - widths,
                "upper": values[chosen] + widths,
            }
        )


def interaction_values(
    name: str,
    order: int,
    sets: Sequence[tuple[int, ...]],
    values: FloatArray,
    n_players: int,
    baseline: float,
    n_evaluations: int,
    is_estimated: bool,
) -> Any:
    """Return `shapiq.InteractionValues` of one row and output.

    Parameters
    ----------
    name, order
        The index and the most players in a set.
    sets : sequence of tuple of int, (k,)
        The players of each set.
    values : array, (k,)
        Their interactions.
    n_players : int
        The number of players.
    baseline : float
        The value of the empty coalition.
    n_evaluations : int
        The evaluations of the row.
    is_estimated : bool
        Whether some coalitions were not evaluated.

    Raises
    ------
    MissingPackageError
        If shapiq is not installed.
    """
    try:
        shapiq = importlib.import_module("shapiq")
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"to_shapiq needs shapiq, but {error.name} is not installed: pip install shapiq. It "
            "needs Python 3.12 or newer.",
            name=error.name,
        ) from error
    if name in _HAS_EMPTY_SET:
        sets, values = [(), *sets], np.concatenate([[baseline], values])
    return shapiq.InteractionValues(
        values=values,
        index=name,
        max_order=order,
        min_order=min(map(len, sets), default=order),
        n_players=n_players,
        interaction_lookup={players: number for number, players in enumerate(sets)},
        estimated=is_estimated,
        estimation_budget=n_evaluations,
        baseline_value=baseline,
    )
