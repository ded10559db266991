"""Interactions of all pairs of players, and their standard errors.

An interaction is an average of v(S ∪ ij) − v(S ∪ i) − v(S ∪ j) + v(S) over the coalitions S of the
other players. The indices differ in the weight of a coalition, which depends on its size only.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

import numpy as np
import scipy.special

from ..arguments import checked_choice
from ..array_types import AttributionArray, FloatArray, IntArray
from ..errors import InvalidArgumentError, MissingPackageError
from ..memory_bounds import memory_limit

INDICES = ("shapley", "shapley_taylor", "banzhaf")


_NAMES = {"shapley": "k-SII", "shapley_taylor": "STII", "banzhaf": "BII"}
"""The names of shapiq for our indices. Its k-SII of order 2 has the main effects of our matrices,
and so has its STII; our estimates have no Banzhaf values, so that BII has pairs only."""

_BYTES_OF_CELL = 32
"""Bytes for each entry of the matrices: interactions and errors, of pairs and as matrices."""


def checked_index(name: str, value: Any) -> str | None:
    """Return the name of an index; None for False, and "shapley" for True."""
    if value is False:
        return None
    return "shapley" if value is True else checked_choice(name, value, INDICES)


def weights_of_sizes(index: str, n_players: int) -> FloatArray:
    """Return the weight of a coalition of 0, …, M − 2 other players, (M − 1,)."""
    sizes = np.arange(n_players - 1)
    if index == "banzhaf":
        return np.full(n_players - 1, 0.5 ** (n_players - 2))
    if index == "shapley_taylor":
        return np.asarray(2 / n_players / scipy.special.comb(n_players - 1, sizes))
    counts = scipy.special.comb(n_players - 2, sizes)
    return np.asarray(1 / (n_players - 1) / counts)


def weights_of_members(index: str, n_players: int) -> FloatArray:
    """Return the weight of v(S) by the size of S, 0 to M, and the members of the pair in it.

    Returns
    -------
    array, (3, M + 1)
        The weights if S has none, one, or both of the players.
    """
    of_others = weights_of_sizes(index, n_players)
    weights = np.zeros((3, n_players + 1))
    for n_inside, sign in enumerate((1.0, -1.0, 1.0)):
        weights[n_inside, n_inside : n_inside + n_players - 1] = sign * of_others
    return weights


def sum_of_squares(of_members: FloatArray) -> float:
    """Return the sum of squared weights over all coalitions, of weights as `weights_of_members`.

    The numbers of coalitions may exceed the largest floating-point number, so that products with
    them are computed by logarithms.
    """
    n_others = of_members.shape[1] - 3
    n_inside, sizes = np.nonzero(of_members)
    outside = sizes - n_inside  # members other than the pair
    log_counts = scipy.special.gammaln(n_others + 1) + np.log(np.array([1, 2, 1]))[n_inside]
    log_counts -= scipy.special.gammaln(outside + 1) + scipy.special.gammaln(n_others - outside + 1)
    log_weights = np.log(np.abs(of_members[n_inside, sizes]))
    return float(np.exp(log_counts + 2 * log_weights).sum())


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


def pair_numbers(first: IntArray, second: IntArray, n_players: int) -> IntArray:
    """Return the numbers of pairs of players, in any order, among all pairs of `n_players`."""
    lower, upper = np.minimum(first, second), np.maximum(first, second)
    numbers: IntArray = lower * n_players - lower * (lower + 1) // 2 + upper - lower - 1
    return numbers


def interaction_values(
    index: str,
    matrix: FloatArray,
    baseline: float,
    n_evaluations: int,
    is_estimated: bool,
) -> Any:
    """Return `shapiq.InteractionValues` of one row and output.

    Parameters
    ----------
    index : str
        The name of the index.
    matrix : array, (M, M)
        Main effects on the diagonal, and half of the interaction at both entries of a pair.
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
    n_players = len(matrix)
    first, second = pairs_of(n_players)
    sets: list[tuple[int, ...]] = list(zip(first.tolist(), second.tolist(), strict=True))
    values = 2 * matrix[first, second]
    has_mains = index != "banzhaf"
    if has_mains:
        sets = [(), *((player,) for player in range(n_players)), *sets]
        values = np.concatenate([[baseline], np.diag(matrix), values])
    return shapiq.InteractionValues(
        values=values,
        index=_NAMES[index],
        max_order=2,
        min_order=0 if has_mains else 2,
        n_players=n_players,
        interaction_lookup={players: number for number, players in enumerate(sets)},
        estimated=is_estimated,
        estimation_budget=n_evaluations,
        baseline_value=baseline,
    )


@dataclass(frozen=True)
class PairSolution:
    """The interactions that an estimator computes for the players of a design.

    Attributes
    ----------
    values, standard_errors : arrays, (R, P, K)
        The interaction of each pair, and its standard error.
    main_errors : array, (R, M, K)
        Standard errors of the main effects: attributions less half of the player's interactions.
    """

    values: FloatArray
    standard_errors: FloatArray
    main_errors: FloatArray

    @classmethod
    def exact(cls, values: FloatArray, n_players: int) -> PairSolution:
        """Return interactions without errors."""
        n_rows, _, n_outputs = values.shape
        return cls(values, np.zeros_like(values), np.zeros((n_rows, n_players, n_outputs)))

    def subset_rows(self, rows: IntArray | slice) -> PairSolution:
        """Return those of some rows."""
        return PairSolution(self.values[rows], self.standard_errors[rows], self.main_errors[rows])


@dataclass(frozen=True)
class PairInteractions:
    """The interactions of all pairs of players, for each row and output.

    Pairs are ordered by their first player, then by their second: (0, 1), (0, 2), …, (1, 2), ….

    Attributes
    ----------
    index : {"shapley", "shapley_taylor", "banzhaf"}
        The index of interaction.
    values : array, (R, P, K)
        The interaction of each of the P = M (M − 1) / 2 pairs, in units of the game's value.
    standard_errors : array, (R, P, K)
        Their standard errors; 0 where every coalition was evaluated.
    main_errors : array, (R, M, K)
        Standard errors of the main effects, the diagonal of `matrices`.
    """

    index: str
    values: FloatArray
    standard_errors: FloatArray
    main_errors: FloatArray

    @classmethod
    def blank(cls, index: str, shape: tuple[int, int, int]) -> PairInteractions:
        """Return interactions of 0 for attributions of a shape, (R, M, K), if memory suffices."""
        cls.check_memory(shape)
        n_rows, n_players, n_outputs = shape
        n_pairs = n_players * (n_players - 1) // 2
        values, errors = np.zeros((2, n_rows, n_pairs, n_outputs))
        return cls(index, values, errors, np.zeros(shape))

    @staticmethod
    def check_memory(shape: tuple[int, int, int]) -> None:
        """Refuse attributions of a shape, (R, M, K), whose interactions do not fit into memory.

        Raises
        ------
        InvalidArgumentError
            If the interactions and their matrices do not fit.
        """
        n_rows, n_players, n_outputs = shape
        needed, limit = _BYTES_OF_CELL * n_rows * n_players**2 * n_outputs, memory_limit()
        if needed > limit:
            raise InvalidArgumentError(
                f"interactions of {n_players} players need about {needed / 2**30:.3g} GiB of "
                f"memory for {n_rows} rows and {n_outputs} outputs. At most {limit / 2**30:.3g} "
                "GiB, half of the memory, may be used. Explain fewer rows or outputs at a time, or "
                "group features (groups= or a coarser masker in shap, feature_mask in captum)."
            )

    @property
    def n_players(self) -> int:
        """The number of players, M."""
        return int(self.main_errors.shape[1])

    def subset_rows(self, start: int, stop: int) -> PairInteractions:
        """Return those of the rows from `start` to `stop`, in the same memory."""
        rows = slice(start, stop)
        return PairInteractions(
            self.index,
            self.values[rows],
            self.standard_errors[rows],
            self.main_errors[rows],
        )

    def set_rows(self, start: int, stop: int, interactions: PairInteractions) -> None:
        """Store the interactions of the rows from `start` to `stop`."""
        self.values[start:stop] = interactions.values
        self.standard_errors[start:stop] = interactions.standard_errors
        self.main_errors[start:stop] = interactions.main_errors

    def record(self, rows: IntArray, players: IntArray, solution: PairSolution) -> None:
        """Store the interactions of some rows, among their active players, (r, m)."""
        first, second = pairs_of(players.shape[1])
        numbers = pair_numbers(players[:, first], players[:, second], self.n_players)
        self.values[rows[:, None], numbers] = solution.values
        self.standard_errors[rows[:, None], numbers] = solution.standard_errors
        self.main_errors[rows[:, None], players] = solution.main_errors

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
        n_rows, _, n_outputs = of_pairs.shape
        matrices = np.zeros((n_rows, self.n_players, self.n_players, n_outputs))
        first, second = pairs_of(self.n_players)
        matrices[:, first, second] = of_pairs
        matrices[:, second, first] = of_pairs
        return matrices


def freedom_of_pairs(of_players: FloatArray) -> FloatArray:
    """Return degrees of freedom for the pairs, (R, P, K), from those of the players, (R, M, K).

    Interactions have no degrees of freedom of their own: the even part gives them, and the odd part
    gives the attributions. A pair has the fewer of its two players'.
    """
    first, second = pairs_of(of_players.shape[1])
    freedom: FloatArray = np.minimum(of_players[:, first], of_players[:, second])
    return freedom
