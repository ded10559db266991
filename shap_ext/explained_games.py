"""Explanations of games of your own: functions of coalitions, whose players are no features."""

from __future__ import annotations

import inspect
from collections import Counter
from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence, Set, Sized
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from numbers import Integral, Real
from typing import Any

import numpy as np

from shapley_adapters import RemoteModel, errors
from shapley_adapters.arguments import checked_choice, checked_count, checked_flag
from shapley_adapters.array_types import BoolArray, FloatArray, IntArray
from shapley_adapters.errors import InvalidArgumentTypeError, NonFiniteValueError, warn_user
from shapley_adapters.games.evaluation import OutputShape, ran_out_of_memory

from .explainers.call_options import OPTIONS
from .explainers.sampling_explainer import SamplingExplainer
from .inputs.models import as_outputs
from .shap_internals import algorithms, registered_name

_OURS = (errors.InvalidArgumentError, InvalidArgumentTypeError, errors.ModelOutputError)
"""Errors that `on_error` does not replace: the function is wrong, whatever the coalition."""


@OPTIONS.documented("game")
def explain_game(
    value: Callable[..., Any],
    players: int | Iterable[Hashable] | Mapping[Any, Sequence[Hashable]],
    *,
    algorithm: str = "best",
    as_sets: bool = False,
    on_error: str | float | Callable[[Any], Any] = "raise",
    index: Any = "shapley",
    output_names: Sequence[str] | None = None,
    seed: int | None = None,
    **options: Any,
) -> Any:
    """Explain a function of coalitions: passages, training rows, tools, channels as players.

    Parameters
    ----------
    value : callable
        Returns the values of n coalitions, (n,) or (n, K) for K outputs. A function, a coroutine
        function, which is called as by `RemoteModel(value)`, or a `RemoteModel`. It gets a boolean
        array (n, M) that says who is present, and must take any n.
    players : int, sequence or mapping
        The number of players, M, or their names. A mapping has groups as players, each with its
        members; `value` then gets coalitions of all members. Members are columns, counted from 0,
        or names of columns in the order of the mapping.
    algorithm : str
        A name of `shap_ext.algorithms()` that estimates each row for itself. Its options, such as
        `graph`, are passed by name, like those of the call.
    as_sets : bool
        Whether `value` gets a list of frozensets of the players or members that are present.
    on_error : "raise", number or callable
        What stands for the value of a coalition that has none: `value` raises an exception for it,
        or returns NaN. A function gets this coalition, (M,) or a frozenset, and returns its value.
        After a first exception, each coalition is a call of its own. That of all players must have
        a value if the first call fails: it says how many outputs there are.
    index : str, tuple or sequence of float
        `"shapley"`, or another semivalue: `"banzhaf"`, `("beta", a, b)` or weights of sizes; see
        `semivalues` of explainers.
    output_names : sequence of str, optional
        Names of the K outputs.
    seed : int, optional
        Seed of all random choices.
    **options
        The options of the call.

    Returns
    -------
    shap.Explanation
        Values (M,) or (M, K), as of one row; (M, M) or (M, M, K) with `interactions`.
        `call.failed_coalitions` is the number of coalitions without a value.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError, BudgetError
        If an argument cannot be used; the message names it.
    ModelOutputError
        If `value` does not return one value for each coalition.
    NonFiniteValueError
        If `value` returns NaN without `on_error`, or an infinite number.
    Exception
        Those of `value`, with a note on what it was given.

    Examples
    --------
    >>> import shap_ext
    >>> profit = lambda coalitions: [10.0 * ({"ann", "bob"} <= present) for present in coalitions]
    >>> explanation = shap_ext.explain_game(profit, ["ann", "bob", "eve"], as_sets=True)
    >>> dict(zip(explanation.feature_names, explanation.values.tolist()))
    {'ann': 5.0, 'bob': 5.0, 'eve': 0.0}
    """
    kinds = {n: kind for n, kind in algorithms().items() if issubclass(kind, SamplingExplainer)}
    kind = kinds[checked_choice("algorithm", registered_name(str(algorithm)), sorted(kinds))]
    shared, known = (inspect.signature(each).parameters for each in (SamplingExplainer, kind))
    own = {name: options.pop(name) for name in options.keys() & (known.keys() - shared.keys())}
    OPTIONS.read("game", options)
    names, members, player_of = _read_players(players)
    if inspect.iscoroutinefunction(value) or inspect.iscoroutinefunction(type(value).__call__):
        value = RemoteModel(value)
    game = _CoalitionFunction(value, members, player_of, checked_flag("as_sets", as_sets), on_error)
    own |= {"feature_names": names, "output_names": output_names, "seed": seed}
    present = np.ones((1, len(names)), dtype=bool)
    explainer = kind(game, ~present, **own)
    weights = {} if str(index) == "shapley" else {"index": index}
    explained = (explainer.semivalues if weights else explainer)(present, **weights, **options)
    record, n_failed, result = explained.call, len(game.failed), explained[0]
    if n_failed:
        warn_user(f"Coalitions whose value is on_error: {n_failed}. First: {game.first_error}")
        record = replace(record, warnings=errors.warnings_since(record.started))
    name = getattr(value, "__qualname__", type(value).__name__)
    result.call = replace(record, model=name, failed_coalitions=n_failed)
    result.data = None  # plots show the names alone
    return result


def _read_players(players: Any) -> tuple[list[str], list[Any], IntArray]:
    """Return the names of the players, the names of the columns, and the player of each column."""
    if isinstance(players, Integral):
        members: list[Any] = list(range(checked_count("players", players)))
        return [f"Player {player}" for player in members], members, np.array(members)
    is_list = isinstance(players, Iterable) and not isinstance(players, (str, bytes, Set))
    labels = list(players) if is_list else []
    groups = list(players.values()) if isinstance(players, Mapping) else [[one] for one in labels]
    filled = [isinstance(g, Sized) and not isinstance(g, str) and len(g) for g in groups]
    if not groups or not all(filled) or any(str(label) in ("", "None", "nan") for label in labels):
        raise errors.InvalidArgumentError(
            "players must be a number, a list of names in the order of the columns, or a mapping "
            f"of names of groups to lists of members, at least one each; got {players!s:.99}."
        )
    names, members = list(map(str, labels)), [member for group in groups for member in group]
    for word, them in {"names": names, "members": list(map(str, members))}.items():
        label, count = Counter(them).most_common(1)[0]
        if count > 1:
            raise errors.InvalidArgumentError(
                f"players must have unique {word}; got {label!r} {count} times. Number them."
            )
    player_of = np.repeat(np.arange(len(names)), list(map(len, groups)))
    if isinstance(players, Mapping) and all(isinstance(member, Integral) for member in members):
        player_of, members = player_of[np.argsort(members)], sorted(members)
        if members != list(range(len(members))):
            raise errors.InvalidArgumentError(
                f"players needs columns 0 to {len(members) - 1}; got {members[0]} to {members[-1]}."
            )
    return names, members, player_of


class _Coalitions(np.ndarray[Any, Any]):
    """Coalitions that refuse to look for a name, which no boolean array contains."""

    def __contains__(self, item: object) -> bool:
        if self.dtype != bool or isinstance(item, (bool, np.bool_)):
            return super().__contains__(item)
        raise InvalidArgumentTypeError(f"value seeks {item!r} in an array. Pass as_sets=True.")


class _CoalitionFunction:
    """A function of coalitions as a model, whose rows say which players are present.

    Attributes
    ----------
    failed : set of bytes
        The coalitions without a value.
    first_error : str
        Why the first of them has none.
    rows_at_once, rounding, output_names, fewer_players
        What explainers ask of a model.
    """

    fewer_players = "Group players (players= takes a mapping of names to lists of members)"

    def __init__(
        self, value: Any, members: list[Any], player_of: IntArray, as_sets: bool, on_error: Any
    ) -> None:
        if not callable(value):
            raise InvalidArgumentTypeError(f"value must be a function; got {type(value).__name__}.")
        if not callable(on_error) and not isinstance(on_error, Real):
            checked_choice("on_error", on_error, ("raise", "a number", "a function"))
        self.value, self.members, self.player_of = value, members, player_of
        self.as_sets, self.on_error, self._raises = as_sets, on_error, False
        self.failed: set[bytes] = set()
        self.first_error, self.rounding = "", 0.0
        self.output_names: list[str] | None = None
        self.rows_at_once = getattr(value, "rows_at_once", None)
        self._shape = OutputShape("value", "Return as many numbers for each coalition.")

    def __call__(self, present: BoolArray) -> FloatArray:
        """Return the values, (n, K), of coalitions of players, (n, M)."""
        coalitions = self._as_users_take_them(present)
        values = self._values_or_nan(coalitions)
        for index in np.flatnonzero(np.isnan(values).any(axis=1)):
            given = self.on_error
            if isinstance(given, str):
                raise NonFiniteValueError(f"value is NaN for {coalitions[index]}; pass on_error=.")
            self.failed.add(present[index].tobytes())
            self.first_error = self.first_error or "value returned NaN."
            if callable(given):
                given = self._as_values([given(coalitions[index])], 1)[0]
            values[index] = given
        return values

    def _as_users_take_them(self, present: BoolArray) -> Any:
        columns = present[:, self.player_of]
        if not self.as_sets:
            return columns.view(_Coalitions)
        return [frozenset(self.members[place] for place in np.flatnonzero(row)) for row in columns]

    def _values_or_nan(self, coalitions: Any) -> FloatArray:
        """Return the values; NaN where `value` raises an exception and `on_error` has others."""
        n = len(coalitions)
        if n == 1 or not self._raises:
            try:
                return self._as_values(self.value(coalitions), n)
            except Exception as error:
                if self.on_error == "raise" or isinstance(error, _OURS) or ran_out_of_memory(error):
                    kind = "sets" if self.as_sets else "a boolean array"
                    error.add_note(f"value got {kind}, as_sets={self.as_sets}")
                    raise
                self._raises = True
                self.first_error = self.first_error or f"{type(error).__name__}: {error}"
                if self._shape.shape is None:  # then all players say how many outputs there are
                    full = np.ones((1, self.player_of.max() + 1), dtype=bool)
                    self._as_values(self.value(self._as_users_take_them(full)), 1)
                if n == 1:
                    return np.full((1, *(self._shape.shape or ())), np.nan)
        single = [coalitions[index : index + 1] for index in range(n)]
        with ThreadPoolExecutor(getattr(self.value, "concurrency", 1)) as pool:
            each = pool.map if isinstance(self.value, RemoteModel) else map
            return np.concatenate(list(each(self._values_or_nan, single)))

    def _as_values(self, output: Any, n_coalitions: int) -> FloatArray:
        try:
            values = as_outputs(output, n_coalitions, self._shape)
        except errors.ModelOutputError as error:
            raise errors.ModelOutputError(f"value of {n_coalitions} coalitions: {error}") from error
        self.rounding, self.output_names = self._shape.rounding, self._shape.names
        return values
