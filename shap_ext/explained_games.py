"""Explanations of games of your own: functions of coalitions, whose players are no features."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from shapley_adapters import errors
from shapley_adapters.arguments import checked_choice
from shapley_adapters.coalition_function import CoalitionFunction, without_own
from shapley_adapters.interactions.result import SemivalueIndex

from .explainers.call_options import OPTIONS
from .explainers.sampling_explainer import SamplingExplainer
from .shap_internals import algorithms, registered_name


@OPTIONS.documented("game")
def explain_game(
    value: Callable[..., Any],
    players: int | Iterable[Hashable] | Mapping[Any, Sequence[Hashable]],
    *,
    algorithm: str = "best",
    as_sets: bool = False,
    on_error: str | float | Callable[[Any], Any] = "raise",
    index: SemivalueIndex = "shapley",
    output_names: Sequence[str] | None = None,
    seed: int | None = None,
    n_jobs: int | None = None,
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
    n_jobs : int, optional
        The number of worker processes that share the coalitions of each call; −1 for one per core.
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
    own = without_own(options, kind, SamplingExplainer)
    OPTIONS.read("game", options)
    game = CoalitionFunction(value, players, as_sets, on_error, n_jobs)
    own |= {"feature_names": game.names, "output_names": output_names, "seed": seed}
    present = np.ones((1, len(game.names)), dtype=bool)
    explainer = kind(game, ~present, **own)
    weights: Any = {} if str(index) == "shapley" else {"index": index}
    explained = (explainer.semivalues if weights else explainer)(present, **weights, **options)
    record, n_failed, result = explained.call, game.warn_of_failures(), explained[0]
    result.call = replace(
        record,
        model=getattr(value, "__qualname__", type(value).__name__),
        failed_coalitions=n_failed,
        warnings=errors.warnings_since(record.started) if n_failed else record.warnings,
    )
    result.data = None  # plots show the names alone
    return result
