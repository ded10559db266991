"""Which players cooperate most: the scores by which SHEAR picks cooperators.

Odd Gaussian-process regression takes them as a prior.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING, TypeGuard

import numpy as np
import numpy.typing as npt

from ..array_types import (
    CoalitionArray,
    FloatArray,
    IntArray,
    ScoreArray,
    ValueArray,
)
from ..errors import DerivativeError, InvalidArgumentError, warn_user
from ..games.game import DifferentiableGame, Game
from .choices import DERIVATIVES

if TYPE_CHECKING:
    from .derivatives_torch import DerivativeScores

_OTHER_WAYS = "Use 'difference', which needs evaluations only, or 'auto'."


@dataclass
class Scores:
    """Cross-contributions of some rows of a game, and how each row came by them.

    Attributes
    ----------
    values : array, (R, M, M)
        The scores; 0 where `sources` is "".
    sources : array of str, (R,)
        "hessian", "gradient" or "array", or "" for rows that the derivatives did not serve.
    backward_passes : array, (R,)
        The backward passes spent on each row.
    """

    values: ScoreArray
    sources: npt.NDArray[np.str_]
    backward_passes: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.backward_passes = np.zeros(len(self.sources), dtype=np.intp)

    def add(
        self, places: IntArray, values: ScoreArray, sources: npt.NDArray[np.str_] | str
    ) -> None:
        """Enter the scores of the rows at `places`."""
        self.values[places] = values
        self.sources[places] = sources


def scores_before_evaluation(
    game: Game,
    rows: IntArray,
    cooperators: str | ScoreArray,
    batch_size: int | None = None,
    differences_fit: bool = True,
) -> Scores:
    """Return what is known about the players' interactions before any coalition is evaluated.

    `"auto"` takes the second derivatives; for rows where they all vanish, as in networks of
    straight pieces, the differences of the first. Rows that neither serves are left open, and so
    are those where part of the model hides from derivatives, if `differences_fit` the budget.

    Raises
    ------
    DerivativeError
        If `cooperators` asks for derivatives that the model does not have.
    """
    n_rows, n_players = len(rows), game.n_players
    scores = Scores(np.zeros((n_rows, n_players, n_players)), np.full(n_rows, "", dtype="U10"))
    if not isinstance(cooperators, str):
        fitting = _fitting(cooperators, game.n_rows, n_players)
        scores.values[:] = fitting if fitting.ndim == 2 else fitting[rows]
        scores.sources[:] = "array"
    elif cooperators in ("hessian", "gradient"):
        _add_as_asked(scores, game, rows, cooperators, batch_size)
    elif cooperators in ("auto", DERIVATIVES) and _is_differentiable(game):
        _add_what_serves(scores, game, rows, batch_size, differences_fit)
    return scores


def difference_coalitions(n_players: int) -> CoalitionArray:
    """Return the coalitions that lack one or two players, (M + M (M − 1) / 2, M)."""
    first, second = np.triu_indices(n_players)
    coalitions = np.ones((len(first), n_players), dtype=bool)
    coalitions[np.arange(len(first)), first] = False
    coalitions[np.arange(len(first)), second] = False
    return coalitions


def difference_scores(grand: ValueArray, lacking: ValueArray, n_players: int) -> ScoreArray:
    """Return |v(N) − v(N∖i) − v(N∖j) + v(N∖ij)|, summed over outputs and doubled as in Eq. 11.

    Parameters
    ----------
    grand : array, (R, K)
        Values of all players together.
    lacking : array, (R, M + M (M − 1) / 2, K)
        Values of `difference_coalitions`.
    """
    first, second = np.triu_indices(n_players)
    table: FloatArray = np.zeros((*grand.shape[:1], n_players, n_players, grand.shape[1]))
    table[:, first, second] = lacking
    table[:, second, first] = lacking
    single = np.einsum("riik->rik", table)
    cross = grand[:, None, None] - single[:, :, None] - single[:, None, :] + table
    scores: ScoreArray = 2 * np.abs(cross).sum(axis=3)
    scores[:, np.eye(n_players, dtype=bool)] = 0.0
    return scores


def _add_as_asked(
    scores: Scores, game: Game, rows: IntArray, way: str, batch_size: int | None
) -> None:
    """Score all rows by `way`; say why that is impossible, or what speaks against it."""
    if not _is_differentiable(game):
        raise DerivativeError(
            f"cooperators={way!r} needs derivatives, but {_obstacle(game)}. {_OTHER_WAYS}"
        )
    try:
        found = _derivatives(game, rows, way, batch_size)
    except DerivativeError as error:
        once = "'gradient', which differentiates once, or " if way == "hessian" else ""
        raise DerivativeError(
            f"cooperators={way!r}: {error} {_OTHER_WAYS.replace('Use ', f'Use {once}')}"
        ) from error
    is_finite = np.isfinite(found.values).all(axis=(1, 2))
    if not is_finite.all():
        raise DerivativeError(
            f"cooperators={way!r}: the derivatives are not finite for {(~is_finite).sum()} rows. "
            f"{_OTHER_WAYS}"
        )
    scores.add(np.arange(len(rows)), found.values, way)
    scores.backward_passes += found.backward_passes
    _warn_of_partial(way, int(found.are_partial.sum()), len(rows))
    n_empty = int((found.are_empty & ~found.are_partial).sum())
    if n_empty:
        kind = "second" if way == "hessian" else "first"
        where = "ReLU networks" if way == "hessian" else "models that round or compare"
        other = "gradient" if way == "hessian" else "difference"
        warn_user(
            f"cooperators={way!r}: all {kind} derivatives vanish for {n_empty} rows, as they do "
            f"in {where}, so that the cooperators there are arbitrary. Use {other!r}."
        )


def _add_what_serves(
    scores: Scores,
    game: DifferentiableGame,
    rows: IntArray,
    batch_size: int | None,
    differences_fit: bool,
) -> None:
    """Score each row by the first way that says something about it."""
    partial = Scores(scores.values.copy(), scores.sources.copy())
    for way in ("hessian", "gradient"):
        is_open = np.flatnonzero(scores.sources == "")
        if len(is_open) == 0:
            return
        try:
            found = _derivatives(game, rows[is_open], way, batch_size)
        except DerivativeError:
            continue  # `sources` records what was used in the end
        scores.backward_passes[is_open] += found.backward_passes
        serves = np.isfinite(found.values).all(axis=(1, 2)) & ~found.are_empty
        for kept, choice in ((scores, ~found.are_partial), (partial, found.are_partial)):
            chosen = choice & serves
            kept.add(is_open[chosen], found.values[chosen], way)
    left = np.flatnonzero((scores.sources == "") & (partial.sources != ""))
    if len(left) > 0 and not differences_fit:
        # Better than cooperators drawn at random.
        scores.add(left, partial.values[left], partial.sources[left])
        _warn_of_partial("auto", len(left), len(rows))


def _derivatives(
    game: DifferentiableGame, rows: IntArray, way: str, batch_size: int | None
) -> DerivativeScores:
    # Imported here, so that models without derivatives never load torch.
    from .derivatives_torch import gradient_scores, hessian_scores

    take = hessian_scores if way == "hessian" else gradient_scores
    return take(game, rows, batch_size)


def _warn_of_partial(cooperators: str, n_partial: int, n_rows: int) -> None:
    if n_partial <= n_rows // 100:  # a row that happens to be at a kink looks the same
        return
    warn_user(
        f"cooperators={cooperators!r}: the derivatives do not explain how the output changes for "
        f"{n_partial} rows, as if part of the model rounded, detached or converted its input. The "
        "cooperators there may be poor; 'difference' finds them by evaluations."
    )


def _is_differentiable(game: Game) -> TypeGuard[DifferentiableGame]:
    return isinstance(game, DifferentiableGame) and game.derivative_obstacle is None


def _obstacle(game: Game) -> str:
    return getattr(game, "derivative_obstacle", None) or "the model is not a torch module"


def _fitting(cooperators: ScoreArray, n_rows: int, n_players: int) -> ScoreArray:
    shape = (n_players, n_players) if cooperators.ndim == 2 else (n_rows, n_players, n_players)
    if cooperators.shape != shape:
        raise InvalidArgumentError(
            f"cooperators has shape {cooperators.shape}; with {n_players} players and {n_rows} "
            f"rows it must be ({n_players}, {n_players}) or ({n_rows}, {n_players}, {n_players})."
        )
    scores = cooperators.copy()
    scores[..., np.eye(n_players, dtype=bool)] = 0.0
    return scores
