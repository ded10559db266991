"""Cross-contributions from derivatives. Needs torch: import it only for games with derivatives."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch

from ..array_types import BoolArray, FloatArray, IntArray, ScoreArray
from ..errors import DerivativeError, ShapleyExtError
from ..games.evaluation import in_batches, ran_out_of_memory
from ..games.game import Game

_Result = TypeVar("_Result")

_HINTS = {
    "scaled_dot_product": (
        "Fused attention is differentiable only once; call the model inside "
        "torch.nn.attention.sdpa_kernel(SDPBackend.MATH) to use another implementation."
    ),
    "inference tensors": "The model was built or loaded under torch.inference_mode.",
    "use_reentrant": "Checkpoint with use_reentrant=False.",
}


@contextmanager
def attempted() -> Iterator[None]:
    """Convert any error of the model during differentiation to a DerivativeError.

    Models may raise any error if their input requires a gradient. An error with another cause
    occurs again when coalitions are evaluated. Errors of memory are raised unchanged, because
    smaller batches may avoid them.
    """
    try:
        yield
    except ShapleyExtError:
        raise
    except Exception as error:
        if ran_out_of_memory(error):
            raise
        raise DerivativeError(
            f"The derivatives of the model cannot be taken ({type(error).__name__}: "
            f"{_brief(error)})."
        ) from error


def with_or_without_cudnn(call: Callable[[], _Result]) -> _Result:
    """Return `call()`; repeat it without cuDNN if cuDNN's recurrent layers refuse a derivative.

    These layers have derivatives in training mode only, and no second derivatives. PyTorch's own
    recurrent layers have both.
    """
    try:
        return call()
    except DerivativeError as error:
        text = str(error).lower()
        if "cudnn" not in text or "rnn" not in text or not torch.backends.cudnn.enabled:
            raise
    torch.backends.cudnn.enabled = False
    try:
        return call()
    finally:
        torch.backends.cudnn.enabled = True


def holds_custom_functions(outputs: torch.Tensor) -> bool:
    """Return whether `outputs` depend on a `torch.autograd.Function` written in Python.

    The derivative of such a function may not be differentiable again, and PyTorch raises no error.
    """
    visited, waiting = set(), [outputs.grad_fn]
    while waiting:
        node = waiting.pop()
        if node is None or node in visited:
            continue
        if isinstance(node, torch.autograd.function.BackwardCFunction):
            return True
        visited.add(node)
        waiting += [following for following, _ in node.next_functions]
    return False


def _brief(error: Exception) -> str:
    """Return the first line of an error, and a hint if its cause is known."""
    text = str(error)
    first = text.strip().partition("\n")[0].rstrip(".")
    hints = [hint for part, hint in _HINTS.items() if part in text.lower()]
    return ". ".join([first, *(hint.rstrip(".") for hint in hints)])


_LARGEST_STEP = 0.05
_TOLERATED = 0.05
"""Largest share of the change of an output, or of a slope, that derivatives may not explain."""

_ROUNDING_ERRORS = 64.0
"""The assumed error of a forward pass, in units of one rounding error."""

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
        Whether all computed derivatives of the row are zero, so that they give no scores.
    are_partial : array, (R,)
        Whether the derivatives do not explain the change of the output over a small step. Part of
        the model then has no derivatives.
    """

    values: ScoreArray
    backward_passes: IntArray
    are_empty: BoolArray
    are_partial: BoolArray


def hessian_scores(game: Game, rows: IntArray, batch_size: int | None = None) -> DerivativeScores:
    """Return η for each row (Wang et al., 2022, Eq. 11).

    The second derivative is taken along the players' directions, from the absent to the present
    input, so that a player with several columns needs one backward pass only. For players with one
    column this is the printed |x_i − x̄_i| |2 ∂²f/∂x_i∂x_j| |x_j − x̄_j|. Scores are summed over
    outputs. Takes 1 + M backward passes per row and output.
    """
    points = _Points(game, rows, batch_size)
    are_custom, are_straight = [], []

    def curvatures(start: int, stop: int) -> list[torch.Tensor]:
        presence = game.fully_present(stop - start).requires_grad_()
        outputs = points.outputs(np.arange(start, stop), presence)
        are_custom.append(holds_custom_functions(outputs))
        total = presence.new_zeros((*presence.shape, presence.shape[1]))
        slopes, slope_changes = [], []
        for output in outputs.sum(dim=0):
            slope = _slope(output, presence, create_graph=True)
            curvature = _curvature(slope, presence)
            are_straight.append(curvature is None)
            slopes.append(slope)
            slope_changes.append(
                torch.zeros_like(slope) if curvature is None else curvature.sum(dim=2)
            )
            total += 0.0 if curvature is None else 2 * curvature.abs()
        return [total, outputs, torch.stack(slopes, dim=1), torch.stack(slope_changes, dim=1)]

    scores, outputs, slopes, slope_changes = _collected(curvatures, len(rows), points.batch_size)
    if all(are_straight):
        # The slope may still require a gradient, if it depends on the parameters.
        raise DerivativeError(
            "The first derivative cannot be differentiated again. The model is linear in the "
            "inputs that it does not detach, or has an operation that is differentiable only once."
        )
    points.backward_passes += outputs.shape[1] * (1 + game.n_players)
    curvature = scores.sum(axis=(1, 2)) / 2
    are_partial = points.unexplained_by_slopes(outputs, slopes, curvature)
    if any(are_custom):  # other functions have a second derivative or raise an error
        are_partial |= points.unexplained_by_curvature(slopes, slope_changes, curvature)
    scores = _without_diagonal(scores)
    are_empty: BoolArray = scores.sum(axis=(1, 2)) == 0
    return DerivativeScores(scores, points.backward_passes, are_empty, are_partial)


def gradient_scores(game: Game, rows: IntArray, batch_size: int | None = None) -> DerivativeScores:
    """Return the change of each player's slope when another player leaves.

    For piecewise linear networks (ReLU, max-pooling), whose second derivative is zero wherever
    it exists. Takes M + 1 backward passes per row and output.
    """
    n_players = game.n_players
    n_points = n_players + 1  # all players, then all without each player in turn
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
    are_partial = points.unexplained_by_slopes(outputs[:, 0], slopes[:, 0], change.sum(axis=(1, 2)))
    return DerivativeScores(scores, points.backward_passes, are_empty, are_partial)


def values_and_slopes(
    game: Game,
    rows: IntArray,
    presence: FloatArray,
    batch_size: int | None = None,
    is_required: bool = True,
) -> tuple[FloatArray, FloatArray, str | None]:
    """Return the outputs, (P, K), and their slopes, (P, M, K), at degrees of presence, (P, M).

    Takes a forward pass, and a backward pass of each output. Unless they are required, those of
    several outputs are left out, and the third value says why slopes are 0.

    Raises
    ------
    DerivativeError
        If there is no derivative and it is required, or if the model fails.
    """
    points = _Points(game, rows, batch_size, is_required)

    def of_batch(start: int, stop: int) -> list[torch.Tensor]:
        ones = game.fully_present(stop - start)
        degrees = torch.from_numpy(presence[start:stop]).to(ones)
        return points.outputs_and_slopes(np.arange(start, stop), degrees)

    values, slopes = _collected(of_batch, len(rows), points.batch_size)
    return values, slopes.swapaxes(1, 2), points.obstacle


@dataclass
class _Points:
    """Outputs and slopes of a game at rows whose players are present to a degree."""

    game: Game
    rows: IntArray
    fixed_batch_size: int | None
    is_required: bool = True
    obstacle: str | None = field(default=None, init=False)
    rounding: float = field(default=0.0, init=False)
    backward_passes: IntArray = field(init=False)

    def __post_init__(self) -> None:
        self.backward_passes = np.zeros(len(self.rows), dtype=np.intp)

    @property
    def batch_size(self) -> int:
        """Number of points per batch."""
        return self.fixed_batch_size or max(1, self.game.evaluations_per_batch // 4)

    def outputs(self, indices: IntArray, presence: torch.Tensor) -> torch.Tensor:
        """Return the outputs of `self.rows[indices]`, (P, K)."""
        with attempted():
            outputs = self.game.presence_values(self.rows[indices], presence)
        if outputs.is_floating_point():
            precisions = torch.finfo(presence.dtype).eps, torch.finfo(outputs.dtype).eps
            self.rounding = max(precisions)
        return outputs

    def outputs_and_slopes(self, indices: IntArray, presence: torch.Tensor) -> list[torch.Tensor]:
        """Return the outputs, (P, K), and their slopes, (P, K, M), or 0, (P, 1, M)."""
        presence.requires_grad_()
        outputs = self.outputs(indices, presence)
        try:
            if not (self.is_required or outputs.shape[1] == 1):
                raise DerivativeError(f"each of {outputs.shape[1]} outputs needs a backward pass")
            # The last pass frees the graph, which compiled models need, and which saves memory.
            *others, last = outputs.sum(dim=0)
            slopes = [_slope(output, presence, retain_graph=True) for output in others]
            slopes.append(_slope(last, presence))
        except DerivativeError as error:
            if self.is_required or "cudnn" in str(error).lower():  # which is tried without
                raise
            self.obstacle = str(error)
            return [outputs, torch.zeros_like(presence)[:, None]]
        np.add.at(self.backward_passes, indices, len(slopes))
        return [outputs, torch.stack(slopes, dim=1)]

    def unexplained_by_slopes(
        self, outputs: FloatArray, slopes: FloatArray, curvature: FloatArray
    ) -> BoolArray:
        """Return the rows whose outputs, (R, K), do not change by their slopes, (R, K, M).

        The change of the slopes over the step, by `curvature`, (R,), is allowed.
        """

        def nearby(indices: IntArray, presence: torch.Tensor) -> torch.Tensor:
            with torch.no_grad():
                return self.outputs(indices, presence)

        scale = np.abs(slopes).sum(axis=(1, 2))
        return self._has_unexplained_change(outputs, slopes.sum(axis=2), scale, nearby, curvature)

    def unexplained_by_curvature(
        self, slopes: FloatArray, slope_changes: FloatArray, scale: FloatArray
    ) -> BoolArray:
        """Return the rows whose slopes, (R, K, M), do not change by the sums of the curvature."""

        def nearby(indices: IntArray, presence: torch.Tensor) -> torch.Tensor:
            return self.outputs_and_slopes(indices, presence)[1].flatten(1)

        flat = len(slopes), -1
        return self._has_unexplained_change(
            slopes.reshape(flat), slope_changes.reshape(flat), scale, nearby
        )

    def _has_unexplained_change(
        self,
        values: FloatArray,
        derivative: FloatArray,
        scale: FloatArray,
        nearby: Callable[[IntArray, torch.Tensor], torch.Tensor],
        curvature: FloatArray | float = 0.0,
    ) -> BoolArray:
        """Return for which rows a small step of all players changes `values` unexpectedly.

        `values`, (R, n), should change by the step times `derivative`. Rows that differ are
        compared again over a larger step, because kinks and low precision matter less there.
        """
        differs = np.ones(len(values), dtype=bool)
        for step in (self.rounding**0.4, _LARGEST_STEP):
            if not differs.any():
                break
            # All rows at once, because some models do not accept single rows.
            moved = self._stepped(step, nearby)
            noise = _ROUNDING_ERRORS * self.rounding * np.abs(values).sum(axis=1)
            with np.errstate(invalid="ignore"):  # NaN raises an error elsewhere
                error = np.abs(values - moved - step * derivative).sum(axis=1)
                # If all slopes are zero, as at a maximum, only the curvature changes the output.
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


def _slope(output: torch.Tensor, presence: torch.Tensor, **keeps: Any) -> torch.Tensor:
    """Return the slopes of an output summed over rows, which do not depend on each other."""
    slope = _gradient(output, presence, **keeps) if output.requires_grad else None
    if slope is None:
        raise DerivativeError(_DETACHED)
    return slope


def _curvature(slope: torch.Tensor, presence: torch.Tensor) -> torch.Tensor | None:
    """Return the derivative of the slopes, (P, M), as (P, M, M); None if all are constant."""
    if not slope.requires_grad:
        return None
    columns = [_gradient(column, presence, retain_graph=True) for column in slope.sum(dim=0)]
    if all(column is None for column in columns):
        return None
    zero = torch.zeros_like(presence)
    return torch.stack([zero if column is None else column for column in columns], dim=1)


def _gradient(output: torch.Tensor, presence: torch.Tensor, **keeps: Any) -> torch.Tensor | None:
    with attempted():
        (gradient,) = torch.autograd.grad(output, presence, allow_unused=True, **keeps)
    return gradient


def _collected(
    call: Callable[[int, int], list[torch.Tensor]], total: int, size: int
) -> list[FloatArray]:
    """Run `call` over `total` items in batches and join each of its results."""
    collected: list[list[FloatArray]] = []

    def collect(start: int, stop: int) -> None:
        with torch.inference_mode(False), torch.enable_grad():  # even if the caller disabled them
            batch = with_or_without_cudnn(lambda: call(start, stop))
        # To the CPU first: not all devices have double precision.
        collected.append([part.detach().cpu().to(torch.float64).numpy() for part in batch])

    try:
        in_batches(total, size, collect)
    except (MemoryError, RuntimeError) as error:
        if not ran_out_of_memory(error):
            raise
        raise DerivativeError(
            "There is not enough memory for the derivatives of a single row."
        ) from error
    return [np.concatenate(parts) for parts in zip(*collected, strict=True)]


def _without_diagonal(scores: ScoreArray) -> ScoreArray:
    scores[:, np.eye(scores.shape[1], dtype=bool)] = 0.0
    return scores
