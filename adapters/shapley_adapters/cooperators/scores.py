"""Scores of the interactions between players, by which SHEAR selects cooperators.

Odd Gaussian-process regression uses them as a prior.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from ..array_types import CoalitionArray, FloatArray, IntArray, ScoreArray, ValueArray
from ..errors import DerivativeError, InvalidArgumentError, warn_user
from ..games.game import Game
from .choices import DERIVATIVES

if TYPE_CHECKING:
    from .derivatives_torch import DerivativeScores

_OTHER_WAYS = "Use 'difference', which needs evaluations only, or 'auto'."


@dataclass
class Scores:
    """Cross-contributions of some rows of a game, and the source of each row's.

    Attributes
    ----------
    values : array, (R, M, M)
        The scores; 0 if `sources` is "".
    sources : array of str, (R,)
        "hessian", "gradient" or "array", or "" for rows without usable derivatives.
    backward_passes : array, (R,)
        The backward passes of each row.
    n_partial, n_empty : int
        Rows whose derivatives do not explain the output, or are all zero, where a user should know.
    """

    values: ScoreArray
    sources: npt.NDArray[np.str_]
    backward_passes: IntArray = field(init=False)
    n_partial: int = field(default=0, init=False)
    n_empty: int = field(default=0, init=False)

    def __post_init__(self) -> None:
        self.backward_passes = np.zeros(len(self.sources), dtype=np.intp)

    def add(
        self, indices: IntArray, values: ScoreArray, sources: npt.NDArray[np.str_] | str
    ) -> None:
        """Store the scores of the rows at `indices`."""
        self.values[indices] = values
        self.sources[indices] = sources


def scores_before_evaluation(
    game: Game,
    rows: IntArray,
    cooperators: str | ScoreArray,
    batch_size: int | None = None,
    differences_fit: bool = True,
) -> Scores:
    """Return the scores that need no evaluations: those from derivatives or from the user.

    `"auto"` uses the second derivatives. For rows where all of these are zero, as in piecewise
    linear networks, it uses differences of first derivatives. Rows where both are zero get no
    scores. If differences of values fit in the budget (`differences_fit`), rows for which
    derivatives do not explain the output get no scores either.

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
        _add_requested(scores, game, rows, cooperators, batch_size)
    elif cooperators in ("auto", DERIVATIVES) and game.derivative_obstacle is None:
        _add_automatic(scores, game, rows, batch_size, differences_fit)
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


def _add_requested(
    scores: Scores, game: Game, rows: IntArray, way: str, batch_size: int | None
) -> None:
    """Score all rows by `way`, and count those where it is unreliable.

    Raises
    ------
    DerivativeError
        If it is impossible.
    """
    if game.derivative_obstacle is not None:
        raise DerivativeError(
            f"cooperators={way!r} needs derivatives, but {game.derivative_obstacle}. {_OTHER_WAYS}"
        )
    try:
        derivatives = _derivatives(game, rows, way, batch_size)
    except DerivativeError as error:
        once = "'gradient', which differentiates once, or " if way == "hessian" else ""
        raise DerivativeError(
            f"cooperators={way!r}: {error} {_OTHER_WAYS.replace('Use ', f'Use {once}')}"
        ) from error
    is_finite = np.isfinite(derivatives.values).all(axis=(1, 2))
    if not is_finite.all():
        raise DerivativeError(
            f"cooperators={way!r}: the derivatives are not finite for {(~is_finite).sum()} rows. "
            f"{_OTHER_WAYS}"
        )
    scores.add(np.arange(len(rows)), derivatives.values, way)
    scores.backward_passes += derivatives.backward_passes
    scores.n_partial = int(derivatives.are_partial.sum())
    scores.n_empty = int((derivatives.are_empty & ~derivatives.are_partial).sum())


def _add_automatic(
    scores: Scores,
    game: Game,
    rows: IntArray,
    batch_size: int | None,
    differences_fit: bool,
) -> None:
    """Score each row by the first kind of derivatives that is not zero for it."""
    partial = Scores(scores.values.copy(), scores.sources.copy())
    for way in ("hessian", "gradient"):
        is_open = np.flatnonzero(scores.sources == "")
        if len(is_open) == 0:
            return
        try:
            derivatives = _derivatives(game, rows[is_open], way, batch_size)
        except DerivativeError:
            continue  # `sources` records the kind of derivatives that is used
        scores.backward_passes[is_open] += derivatives.backward_passes
        serves = np.isfinite(derivatives.values).all(axis=(1, 2)) & ~derivatives.are_empty
        for scores_to_fill, choice in (
            (scores, ~derivatives.are_partial),
            (partial, derivatives.are_partial),
        ):
            is_chosen = choice & serves
            scores_to_fill.add(is_open[is_chosen], derivatives.values[is_chosen], way)
    open_rows = np.flatnonzero((scores.sources == "") & (partial.sources != ""))
    if len(open_rows) > 0 and not differences_fit:
        # These scores are better than random cooperators.
        scores.add(open_rows, partial.values[open_rows], partial.sources[open_rows])
        scores.n_partial = len(open_rows)


def _derivatives(game: Game, rows: IntArray, way: str, batch_size: int | None) -> DerivativeScores:
    # Imported here, so that models without derivatives do not load torch.
    from .derivatives_torch import gradient_scores, hessian_scores

    compute = hessian_scores if way == "hessian" else gradient_scores
    return compute(game, rows, batch_size)


def warn_of_scores(source: str, n_partial: int, n_empty: int, n_rows: int) -> None:
    """Warn of rows with unreliable scores: `n_partial` and `n_empty` of `n_rows` rows."""
    if n_partial > n_rows // 100:  # a row that happens to be at a kink looks the same
        cooperators = "auto" if source == DERIVATIVES else source
        warn_user(
            f"cooperators={cooperators!r}: the derivatives do not explain how the output changes "
            f"for {n_partial} rows; probably part of the model rounds, detaches or converts its "
            "input. Their cooperators may be poor. Use 'difference', which needs evaluations only."
        )
    if n_empty:
        kind = "second" if source == "hessian" else "first"
        kind_of_model = "ReLU networks" if source == "hessian" else "models that round or compare"
        alternative = "gradient" if source == "hessian" else "difference"
        warn_user(
            f"cooperators={source!r}: all {kind} derivatives vanish for {n_empty} rows, as in "
            f"{kind_of_model}, so that their cooperators are arbitrary. Use {alternative!r}."
        )


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
