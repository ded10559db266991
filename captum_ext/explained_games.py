"""Attributions of games of your own: functions of coalitions, whose players are no features."""

from __future__ import annotations

from collections.abc import Callable, Hashable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
import torch
from torch import Tensor

from shapley_adapters import Estimate
from shapley_adapters.arguments import checked_count
from shapley_adapters.array_types import FloatArray
from shapley_adapters.coalition_function import CoalitionFunction, without_own
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.interactions.result import SemivalueIndex

from .attributions import Best
from .attributions.call_options import OPTIONS
from .attributions.sampling_attribution import SamplingAttribution

if TYPE_CHECKING:
    import pandas as pd
    from matplotlib.axes import Axes


@dataclass(frozen=True)
class GameAttributions:
    """Attributions of the players of a game, with standard errors.

    Attributes
    ----------
    players : tuple of str, (M,)
        The names of the players.
    values : Tensor, (M,) or (K, M)
        The attributions, for each of K outputs.
    standard_errors : Tensor, of the shape of `values`
        0 where all coalitions were evaluated.
    interactions : Tensor, (M, M) or (K, M, M), or None
        Those of pairs, as of `interactions` of the methods.
    failed_coalitions : int
        The number of coalitions without a value.
    estimate : Estimate
        The estimate of one row, with its cost and the values of no and of all players.
    """

    players: tuple[str, ...]
    values: Tensor
    standard_errors: Tensor
    interactions: Tensor | None
    failed_coalitions: int
    estimate: Estimate

    def to_frame(self, output: int = 0, confidence: float = 0.95) -> pd.DataFrame:
        """Return a table of the players, the largest attribution first.

        Parameters
        ----------
        output : int
            The output.
        confidence : float
            The share of cases in which the interval from `lower` to `upper` holds the value.
        """
        import pandas as pd

        n_outputs = self.estimate.values.shape[2]
        if checked_count("output", output, minimum=0) >= n_outputs:
            raise InvalidArgumentError(
                f"output must be one of the {n_outputs} outputs, counted from 0; got {output}."
            )
        lower, upper = self.estimate.interval(confidence)
        columns = {
            "value": self.estimate.values,
            "standard_error": self.estimate.standard_errors,
            "lower": lower,
            "upper": upper,
        }
        frame = pd.DataFrame(
            {name: array[0, :, output] for name, array in columns.items()},
            index=pd.Index(self.players, name="player"),
        )
        return frame.sort_values("value", key=np.abs, ascending=False, kind="stable")

    def plot(
        self,
        output: int = 0,
        *,
        max_display: int = 10,
        confidence: float = 0.95,
        ax: Axes | None = None,
    ) -> Any:
        """Draw the largest attributions as bars with their intervals; needs matplotlib.

        Parameters
        ----------
        output : int
            The output.
        max_display : int
            The number of players to draw.
        confidence : float
            That of the intervals.
        ax : matplotlib axes, optional
            The axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib axes
        """
        from shapley_adapters.global_importance.result import draw_bars

        frame = self.to_frame(output, confidence).head(checked_count("max_display", max_display))
        return draw_bars(frame, "attribution", confidence, ax)


@OPTIONS.documented("game")
def explain_game(
    value: Callable[..., Any],
    players: int | Iterable[Hashable] | Mapping[Any, Sequence[Hashable]],
    *,
    method: type[SamplingAttribution] = Best,
    as_sets: bool = False,
    on_error: str | float | Callable[[Any], Any] = "raise",
    index: SemivalueIndex = "shapley",
    interactions: bool = False,
    seed: int | None = None,
    n_jobs: int | None = None,
    **options: Any,
) -> GameAttributions:
    """Attribute the value of a function of coalitions to players: neurons, heads, training rows.

    Parameters
    ----------
    value : callable
        Returns the values of n coalitions, (n,) or (n, K) for K outputs, as a tensor, an array or
        a list. A function, a coroutine function, which is called as by `RemoteModel(value)`, or a
        `RemoteModel`. It gets a boolean tensor (n, M) that says who is present, on torch's
        default device, and must take any n.
    players : int, sequence or mapping
        The number of players, M, or their names. A mapping has groups as players, each with its
        members; `value` then gets coalitions of all members. Members are columns, counted from 0,
        or names of columns in the order of the mapping.
    method : type
        The class of an attribution method of this package, or of `attribution_class`. Its options,
        such as `graph`, are passed by name, like those of the call.
    as_sets : bool
        Whether `value` gets a list of frozensets of the players or members that are present.
    on_error : "raise", number or callable
        What stands for the value of a coalition that has none: `value` raises an exception for it,
        or returns NaN. A function gets this coalition, (M,) or a frozenset, and returns its value.
        After a first exception, each coalition is a call of its own. That of all players must have
        a value if the first call fails: it says how many outputs there are.
    index : str, tuple or sequence of float
        `"shapley"`, or another semivalue: `"banzhaf"`, `("beta", a, b)` or weights of sizes; see
        `semivalues` of the methods.
    interactions : bool
        Whether to return the Shapley interactions of all pairs, too.
    seed : int, optional
        Seed of all random choices.
    n_jobs : int, optional
        The number of worker processes that share the coalitions of each call; −1 for one per core.
    **options
        The options of the call.

    Returns
    -------
    GameAttributions
        `values` (M,) or (K, M), `standard_errors`, `to_frame()` and `plot()`.

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
    >>> import torch
    >>> from captum_ext import explain_game
    >>> profit = lambda present: 10.0 * (present[:, 0] & present[:, 1])
    >>> explain_game(profit, ["ann", "bob", "eve"]).values
    tensor([5., 5., 0.], dtype=torch.float64)
    """
    if not (isinstance(method, type) and issubclass(method, SamplingAttribution)):
        raise InvalidArgumentTypeError(
            "method must be the class of an attribution method that evaluates coalitions, such as "
            f"OddGP; got {method!r:.99}."
        )
    own = without_own(options, method, SamplingAttribution)
    OPTIONS.read("game", options)
    is_shapley = str(index) == "shapley"
    if interactions and not is_shapley:
        raise InvalidArgumentError(f"interactions=True needs index='shapley'; got {index!r}.")
    game = CoalitionFunction(value, players, as_sets, on_error, n_jobs)
    attribution = method(game, seed=seed, **own)
    everyone = torch.ones(1, len(game.names))
    if interactions:
        attribution.interactions(everyone, **options)
    elif is_shapley:
        attribution.attribute(everyone, return_standard_error=True, **options)
    else:
        attribution.semivalues(everyone, index=index, return_standard_error=True, **options)
    found: Any = attribution.last_estimate
    return GameAttributions(
        tuple(game.names),
        _without_row(found.values),
        _without_row(found.standard_errors),
        _without_row(found.interactions.matrices(found.values)) if interactions else None,
        game.warn_of_failures(),
        found,
    )


def _without_row(array: FloatArray) -> Tensor:
    """Return an array of one row, (1, …, K), as a tensor, (K, …), or (…) of one output."""
    tensor = torch.from_numpy(np.moveaxis(array[0], -1, 0).copy())
    return tensor[0] if len(tensor) == 1 else tensor
