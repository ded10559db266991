"""Users' functions of coalitions: their players, and coalitions without a value."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence, Set, Sized
from concurrent.futures import ThreadPoolExecutor
from math import isnan
from numbers import Integral, Real
from typing import Any

import numpy as np

from .arguments import checked_choice, checked_count, checked_flag
from .array_types import FloatArray, IntArray
from .errors import (
    InvalidArgumentError,
    InvalidArgumentTypeError,
    ModelOutputError,
    NonFiniteValueError,
    warn_user,
)
from .games.evaluation import OutputShape, as_outputs, ran_out_of_memory
from .remote import RemoteModel
from .torch_support.tensor_arrays import array_of, tensor_beside
from .workers import Part, checked_n_jobs, n_workers_for, results_of_parts

_NOT_REPLACED = (InvalidArgumentError, InvalidArgumentTypeError, ModelOutputError)
"""Errors that `on_error` does not replace: the function is wrong, whatever the coalition."""


def _read_players(players: Any) -> tuple[list[str], list[Any], IntArray]:
    """Return the names of the players, the names of the columns, and the player of each column."""
    if isinstance(players, Integral):
        members: list[Any] = list(range(checked_count("players", players)))
        return [f"Player {player}" for player in members], members, np.array(members)
    is_list = isinstance(players, Iterable) and not isinstance(players, (str, bytes, Set))
    labels = list(players) if is_list else []
    groups = list(players.values()) if isinstance(players, Mapping) else [[one] for one in labels]
    filled = [isinstance(g, Sized) and not isinstance(g, str) and len(g) for g in groups]
    are_missing = [
        one is None or one == "" or (isinstance(one, float) and isnan(one)) for one in labels
    ]
    if not groups or not all(filled) or any(are_missing):
        raise InvalidArgumentError(
            "players must be a number, a list of names, or a mapping of group names to lists of "
            f"members, at least one each; got {players!s:.99}. Names are in the order of columns."
        )
    names, members = list(map(str, labels)), [member for group in groups for member in group]
    for word, them in {"names": names, "members": list(map(str, members))}.items():
        label, count = Counter(them).most_common(1)[0]
        if count > 1:
            raise InvalidArgumentError(
                f"players must have unique {word}; got {label!r} {count} times. Number them."
            )
    player_of = np.repeat(np.arange(len(names)), list(map(len, groups)))
    if isinstance(players, Mapping) and all(isinstance(member, Integral) for member in members):
        player_of, members = player_of[np.argsort(members)], sorted(members)
        if members != list(range(len(members))):
            raise InvalidArgumentError(
                f"players needs columns 0 to {len(members) - 1}; got {members[0]} to {members[-1]}."
            )
    return names, members, player_of


class _Coalitions(np.ndarray[Any, Any]):
    """Coalitions that refuse to look for a name, which no boolean array contains."""

    def __contains__(self, item: object) -> bool:
        if self.dtype != bool or isinstance(item, (bool, np.bool_)):
            return super().__contains__(item)
        raise InvalidArgumentTypeError(f"value seeks {item!r} in an array. Pass as_sets=True.")


class CoalitionFunction:
    """A user's function of coalitions as a model, whose rows say which players are present.

    Parameters
    ----------
    value, players, as_sets, on_error, n_jobs
        As in `explain_game`.

    Attributes
    ----------
    names : list of str
        The names of the players.
    failed : set of bytes
        The coalitions without a value.
    first_error : str
        Why the first of them has none.
    rows_at_once, rounding, output_names, fewer_players
        What explainers ask of a model.
    """

    fewer_players = "Group players (players= takes a mapping of names to lists of members)"

    def __init__(
        self, value: Any, players: Any, as_sets: bool, on_error: Any, n_jobs: int | None
    ) -> None:
        if not callable(value):
            raise InvalidArgumentTypeError(f"value must be a function; got {type(value).__name__}.")
        if not callable(on_error) and not isinstance(on_error, Real):
            checked_choice("on_error", on_error, ("raise", "a number", "a function"))
        if inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(type(value).__call__):
            value = RemoteModel(value)
        self.names, self.members, self.player_of = _read_players(players)
        self.value, self.on_error = value, on_error
        self.as_sets = checked_flag("as_sets", as_sets)
        self.n_jobs = checked_n_jobs(n_jobs)
        self.failed: set[bytes] = set()
        self.first_error, self.rounding = "", 0.0
        self.output_names: list[str] | None = None
        self.rows_at_once = getattr(value, "rows_at_once", None)
        self._fails = False
        self._shape = OutputShape("value", "Return as many numbers for each coalition.")

    def __call__(self, given: Any) -> Any:
        """Return the values, (n, K), of coalitions of players, (n, M); of a tensor as a tensor."""
        present = given > 0.5
        values = self._values_or_nan(present)
        for index in np.flatnonzero(np.isnan(values).any(axis=1)):
            coalition = self._as_users_take_them(present[index : index + 1])[0]
            other = self.on_error
            if isinstance(other, str):
                raise NonFiniteValueError(f"value is NaN for {coalition}; pass on_error=.")
            self.failed.add(array_of(present[index]).tobytes())
            self.first_error = self.first_error or "value returned NaN."
            values[index] = self._as_values([other(coalition)], 1) if callable(other) else other
        return tensor_beside(given, values)

    def warn_of_failures(self) -> int:
        """Return the number of coalitions without a value; warn if there are any."""
        n_failed = len(self.failed)
        if n_failed:
            warn_user(f"Coalitions whose value is on_error: {n_failed}. First: {self.first_error}")
        return n_failed

    def _as_users_take_them(self, present: Any) -> Any:
        """Return coalitions of players as arrays or tensors, or as sets, of members."""
        columns = present[:, self.player_of]
        if not self.as_sets:
            return columns.view(_Coalitions) if isinstance(columns, np.ndarray) else columns
        rows = array_of(columns)
        return [frozenset(self.members[place] for place in np.flatnonzero(row)) for row in rows]

    def _values_or_nan(self, present: Any) -> FloatArray:
        """Return the values; NaN where `value` raises an exception and `on_error` has others.

        After a first exception, each coalition is a part of its own.
        """
        n = len(present)
        size = 1 if self._fails else -(-n // n_workers_for(self.n_jobs, n))
        parts = [(start, min(start + size, n)) for start in range(0, n, size)]
        values = []
        for part, answer in zip(parts, self._answers(present, parts), strict=True):
            asked = present[slice(*part)]
            if not isinstance(answer, Exception):
                values.append(self._as_values(answer, len(asked)))
                continue
            self._check_error(answer, asked)
            unknown = np.full((1, *(self._shape.shape or ())), np.nan)
            values.append(self._values_or_nan(asked) if len(asked) > 1 else unknown)
        return np.concatenate(values)

    def _answers(self, present: Any, parts: Sequence[Part]) -> list[Any]:
        """Return what `value` returns or raises for each part of the coalitions."""
        coalitions = self._as_users_take_them(present)
        n_workers = n_workers_for(self.n_jobs, len(parts))
        if n_workers > 1 and not isinstance(self.value, RemoteModel):
            of_part = lambda part: (coalitions[slice(*part)],)  # noqa: E731
            found = results_of_parts(self.value, _answer, parts, of_part, n_workers)
            return [answer for _, answer in found]
        ask = lambda part: _answer(self.value, None, part, coalitions[slice(*part)])  # noqa: E731
        if not isinstance(self.value, RemoteModel):
            return list(map(ask, parts))
        with ThreadPoolExecutor(self.value.concurrency) as pool:
            return list(pool.map(ask, parts))

    def _check_error(self, error: Exception, present: Any) -> None:
        """Raise an exception of `value` unless `on_error` has another value."""
        is_refused = isinstance(error, _NOT_REPLACED) and not isinstance(error, NonFiniteValueError)
        if self.on_error == "raise" or is_refused or ran_out_of_memory(error):
            kind = "array" if isinstance(present, np.ndarray) else "tensor"
            given = "sets" if self.as_sets else f"a boolean {kind}"
            error.add_note(f"value got {given}, as_sets={self.as_sets}")
            raise error
        self.first_error = self.first_error or f"{type(error).__name__}: {error}"
        if not self._fails and self._shape.shape is None:
            everyone = self._as_users_take_them(present[:1] | True)
            try:
                self._as_values(self.value(everyone), 1)  # which says how many outputs there are
            except NonFiniteValueError:  # of a remote model; then there is one
                self._as_values([np.nan], 1)
        self._fails = True

    def _as_values(self, output: Any, n_coalitions: int) -> FloatArray:
        try:
            values = as_outputs(output, n_coalitions, self._shape)
        except ModelOutputError as error:
            raise ModelOutputError(f"value(coalitions), of {n_coalitions}: {error}") from error
        self.rounding, self.output_names = self._shape.rounding, self._shape.names
        return values


def without_own(options: dict[str, Any], method: type, shared: type) -> dict[str, Any]:
    """Remove the options of a method from those of a call, and return them.

    `shared` is the base class of methods, whose parameters are not options of one method.
    """
    of_all, known = (inspect.signature(each).parameters for each in (shared, method))
    return {name: options.pop(name) for name in options.keys() & (known.keys() - of_all.keys())}


def _answer(value: Callable[[Any], Any], stop: Any, part: Part, coalitions: Any) -> Any:
    """Return what `value` returns or raises, in this process or in a worker."""
    del stop, part
    try:
        return value(coalitions)
    except Exception as error:
        return error
