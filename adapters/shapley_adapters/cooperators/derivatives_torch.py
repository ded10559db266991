"""Cross-contributions from derivatives. Needs torch, so import it only where a game has them."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field

import numpy as np
import torch

from ..array_types import BoolArray, FloatArray, IntArray, ScoreArray
from ..errors import DerivativeError
from ..games.evaluation import in_batches, ran_out_of_memory
from ..games.game import DifferentiableGame
from .autograd_torch import (
    attempted,
    derivatives_allowed,
    holds_custom_functions,
    with_or_without_cudnn,
)

_LARGEST_STEP = 0.05
_TOLERATED = 0.05
"""How much of the change of an output, or of a slope, derivatives may leave unexplained."""

_ROUNDING_ERRORS = 64.0
"""Of how many roundings the error of a forward pass is taken to consist."""

_DETACHED = (
    "The model's output does not depend differentiably on its input: something detaches or rounds "
    "it, converts it to NumPy, or switches gradients off."
)


@dataclass(frozen=True)
class DerivativeScores:
    """Cross-contributions of some rows.

    Attributes
    ----------
    values : array, (R, M, M)
        The scores.
    backward_passes : array, (R,)
        The backward passes that each row took.
    are_empty : array, (R,)
        Where the derivatives say nothing: all that were looked at are zero.
    are_partial : array, (R,)
        Where the derivatives do not explain how the output changes nearby, so that part of the
        model must have hidden from them.
    """

    values: ScoreArray
    backward_passes: IntArray
    are_empty: BoolArray
    are_partial: BoolArray


def hessian_scores(
    game: DifferentiableGame, rows: IntArray, batch_size: int | None = None
) -> DerivativeScores:
    """Return η for each row (Wang et al., 2022, Eq. 11).

    The second derivative is taken along the players' directions, from the absent to the present
    input, so that a player of several columns needs one backward pass, as one of a single column
    does; for single columns this is |x_i − x̄_i| |2 ∂²f/∂x_i∂x_j| |x_j − x̄_j| as printed. Several
    outputs add up. Takes 1 + M backward passes for each row and output.
    """
    points = _Points(game, rows, batch_size)
    are_custom, are_straight = [], []

    def curvatures(start: int, stop: int) -> list[torch.Tensor]:
        presence = game.fully_present(stop - start).requires_grad_()
        outputs = points.outputs(np.arange(start, stop), presence)
        are_custom.append(holds_custom_functions(outputs))
        total = presence.new_zeros((*presence.shape, presence.shape[1]))
        slopes, bends = [], []
        for output in outputs.sum(dim=0):
            slope = _slope(output, presence, create_graph=True)
            curvature = _curvature(slope, presence)
            are_straight.append(curvature is None)
            slopes.append(slope)
            bends.append(torch.zeros_like(slope) if curvature is None else curvature.sum(dim=2))
            total += 0.0 if curvature is None else 2 * curvature.abs()
        return [total, outputs, torch.stack(slopes, dim=1), torch.stack(bends, dim=1)]

    scores, outputs, slopes, bends = _collected(curvatures, len(rows), points.batch_size)
    if all(are_straight):
        # Of the parameters alone the slope may depend all the same.
        raise DerivativeError(
            "The first derivative cannot be differentiated again: the model is linear in its "
            "inputs, as far as it does not detach them, or it holds an operation that is "
            "differentiable only once."
        )
    points.backward_passes += outputs.shape[1] * (1 + game.n_players)
    curvature = scores.sum(axis=(1, 2)) / 2
    are_partial = points.hide_slopes(outputs, slopes, curvature)
    if any(are_custom):  # all others either have a second derivative or refuse it
        are_partial |= points.hide_bends(slopes, bends, curvature)
    scores = _without_diagonal(scores)
    are_empty: BoolArray = scores.sum(axis=(1, 2)) == 0
    return DerivativeScores(scores, points.backward_passes, are_empty, are_partial)


def gradient_scores(
    game: DifferentiableGame, rows: IntArray, batch_size: int | None = None
) -> DerivativeScores:
    """Return how much the slope of each player changes when another one leaves.

    For networks of straight pieces (ReLU, max-pooling), whose second derivative is zero wherever
    it exists. Takes M + 1 backward passes for each row and output.
    """
    n_players = game.n_players
    n_points = n_players + 1  # everyone, then without each player in turn
    points = _Points(game, rows, batch_size)

    def outputs_and_slopes(start: int, stop: int) -> list[torch.Tensor]:
        row, point = np.divmod(np.arange(start, stop), n_points)
        presence = game.fully_present(stop - start)
        lacking = np.flatnonzero(point > 0)
        presence[lacking, point[lacking] - 1] = 0.0
        return points.outputs_and_slopes(row, presence)

    outputs, slopes = _collected(outputs_and_slopes, len(rows) * n_points, points.batch_size)
    outputs = outputs.reshape(len(rows), n_points, -1)
    slopes = slopes.reshape(len(rows), n_points, -1, n_players)
    with np.errstate(invalid="ignore"):  # of infinite slopes
        change = np.abs(slopes[:, :1] - slopes[:, 1:]).sum(axis=2)
    scores = _without_diagonal(change + change.transpose(0, 2, 1))
    are_empty: BoolArray = np.abs(slopes).sum(axis=(1, 2, 3)) == 0
    are_partial = points.hide_slopes(outputs[:, 0], slopes[:, 0], change.sum(axis=(1, 2)))
    return DerivativeScores(scores, points.backward_passes, are_empty, are_partial)


@dataclass
class _Points:
    """Where a game is looked at: rows with players who are present to a degree."""

    game: DifferentiableGame
    rows: IntArray
    given_batch_size: int | None
    rounding: float = field(default=0.0, init=False)
    backward_passes: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.backward_passes = np.zeros(len(self.rows), dtype=np.intp)

    @property
    def batch_size(self) -> int:
        """How many points to take at a time."""
        return self.given_batch_size or max(1, self.game.evaluations_per_batch // 4)

    def outputs(self, places: IntArray, presence: torch.Tensor) -> torch.Tensor:
        """Return the outputs for the rows at `places`, (P, K)."""
        with attempted():
            outputs = self.game.presence_values(self.rows[places], presence)
        if outputs.is_floating_point():
            precisions = torch.finfo(presence.dtype).eps, torch.finfo(outputs.dtype).eps
            self.rounding = max(precisions)
        if torch.is_grad_enabled() and not outputs.requires_grad:
            raise DerivativeError(_DETACHED)
        return outputs

    def outputs_and_slopes(self, places: IntArray, presence: torch.Tensor) -> list[torch.Tensor]:
        """Return the outputs, (P, K), and the slopes of each, (P, K, M)."""
        presence.requires_grad_()
        outputs = self.outputs(places, presence)
        slopes = [_slope(output, presence) for output in outputs.sum(dim=0)]
        np.add.at(self.backward_passes, places, len(slopes))
        return [outputs, torch.stack(slopes, dim=1)]

    def hide_slopes(
        self, outputs: FloatArray, slopes: FloatArray, curvature: FloatArray
    ) -> BoolArray:
        """Tell which rows' outputs, (R, K), change otherwise than by the slopes, (R, K, M).

        By as much as `curvature`, (R,), bends the slopes over the step, they may.
        """

        def nearby(places: IntArray, presence: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                return self.outputs(places, presence)

        scale = np.abs(slopes).sum(axis=(1, 2))
        return self._change_otherwise(outputs, slopes.sum(axis=2), scale, nearby, curvature)

    def hide_bends(self, slopes: FloatArray, bends: FloatArray, scale: FloatArray) -> BoolArray:
        """Tell which rows' slopes, (R, K, M), change otherwise than by the curvature's sums."""

        def nearby(places: IntArray, presence: torch.Tensor) -> torch.Tensor:
            return self.outputs_and_slopes(places, presence)[1].flatten(1)

        flat = len(slopes), -1
        return self._change_otherwise(slopes.reshape(flat), bends.reshape(flat), scale, nearby)

    def _change_otherwise(
        self,
        given: FloatArray,
        derivative: FloatArray,
        scale: FloatArray,
        nearby: Callable[[IntArray, torch.Tensor], torch.Tensor],
        curvature: FloatArray | float = 0.0,
    ) -> BoolArray:
        """Compare the change of what is `given`, (R, n), when all players leave by a small step.

        What does not fit is compared over a larger step, too: over a small one, kinks and parts of
        low precision may count too much.
        """
        differs = np.ones(len(given), dtype=bool)
        for step in (self.rounding**0.4, _LARGEST_STEP):
            if not differs.any():
                break
            # All rows, because some models take no single ones.
            near = self._stepped(step, nearby)
            noise = _ROUNDING_ERRORS * self.rounding * np.abs(given).sum(axis=1)
            with np.errstate(invalid="ignore"):  # NaN is told elsewhere
                error = np.abs(given - near - step * derivative).sum(axis=1)
                # Where all slopes vanish, as at a maximum, their bends are all the change there is.
                allowed = np.maximum(_TOLERATED * step * scale, step**2 * curvature / 2)
                differs &= error > allowed + noise
        return differs

    def _stepped(
        self, step: float, nearby: Callable[[IntArray, torch.Tensor], torch.Tensor]
    ) -> FloatArray:
        def at_step(start: int, stop: int) -> list[torch.Tensor]:
            presence = self.game.fully_present(stop - start) * (1 - step)
            return [nearby(np.arange(start, stop), presence)]

        return _collected(at_step, len(self.rows), self.batch_size)[0]


def _slope(
    output: torch.Tensor, presence: torch.Tensor, create_graph: bool = False
) -> torch.Tensor:
    """Return the slopes of an output added up over rows, which do not depend on each other."""
    slope = _gradient(output, presence, create_graph)
    if slope is None:
        raise DerivativeError(_DETACHED)
    return slope


def _curvature(slope: torch.Tensor, presence: torch.Tensor) -> torch.Tensor | None:
    """Differentiate the slopes, (P, M), once more, (P, M, M); None where all are constant."""
    if not slope.requires_grad:
        return None
    columns = [_gradient(column, presence) for column in slope.sum(dim=0)]
    if all(column is None for column in columns):
        return None
    zero = torch.zeros_like(presence)
    return torch.stack([zero if column is None else column for column in columns], dim=1)


def _gradient(
    output: torch.Tensor, presence: torch.Tensor, create_graph: bool = False
) -> torch.Tensor | None:
    with attempted():
        (gradient,) = torch.autograd.grad(
            output, presence, retain_graph=True, create_graph=create_graph, allow_unused=True
        )
    found: torch.Tensor | None = gradient
    return found


def _collected(
    call: Callable[[int, int], list[torch.Tensor]], total: int, size: int
) -> list[FloatArray]:
    """Run `call` over `total` items in batches and join each of its results."""
    collected: list[list[FloatArray]] = []

    def collect(start: int, stop: int) -> None:
        with derivatives_allowed():
            batch = with_or_without_cudnn(lambda: call(start, stop))
        # To the CPU first: not all devices have double precision.
        collected.append([part.detach().cpu().to(torch.float64).numpy() for part in batch])

    try:
        in_batches(total, size, collect)
    except (MemoryError, RuntimeError) as error:
        if not ran_out_of_memory(error):
            raise
        raise DerivativeError(
            "Memory does not suffice for the derivatives of even one row."
        ) from error
    return [np.concatenate(parts) for parts in zip(*collected, strict=True)]


def _without_diagonal(scores: ScoreArray) -> ScoreArray:
    scores[:, np.eye(scores.shape[1], dtype=bool)] = 0.0
    return scores
