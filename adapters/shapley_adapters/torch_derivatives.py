"""Cross-contributions from derivatives. Needs torch, so import it only where a game has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch

from .array_types import FloatArray, IntArray, ScoreArray
from .batched_evaluation import in_batches, ran_out_of_memory
from .errors import DerivativeError
from .games import DifferentiableGame


def hessian_scores(
    game: DifferentiableGame, rows: IntArray, batch_size: int | None = None
) -> tuple[ScoreArray, int]:
    """Return η of `shear.txt` Eq. 11 for each row, (R, M, M), and the backward passes it took.

    The second derivative is taken along the players' directions, from the absent to the present
    input, so that a player of several columns needs one backward pass, as one of a single column
    does; for single columns this is |x_i − x̄_i| |2 ∂²f/∂x_i∂x_j| |x_j − x̄_j| as printed. Several
    outputs add up. Takes 1 + M backward passes for each row and output.
    """
    n_outputs = 0

    def curvatures(start: int, stop: int) -> torch.Tensor:
        nonlocal n_outputs
        presence = game.fully_present(stop - start).requires_grad_()
        outputs = _tracked(game.presence_values(rows[start:stop], presence))
        n_outputs = outputs.shape[1]
        total = presence.new_zeros((*presence.shape, presence.shape[1]))
        for output in outputs.sum(dim=0):
            (slope,) = torch.autograd.grad(output, presence, create_graph=True)
            total += 2 * _curvature(slope, presence).abs()
        return total

    size = batch_size or max(1, game.evaluations_per_batch // 4)
    scores = _collected(curvatures, len(rows), size)
    return _without_diagonal(scores), n_outputs * (1 + game.n_players)


def gradient_scores(
    game: DifferentiableGame, rows: IntArray, batch_size: int | None = None
) -> tuple[ScoreArray, int]:
    """Return how much the slope of each player changes when another one leaves, (R, M, M).

    For networks of straight pieces (ReLU, max-pooling), whose second derivative is zero wherever
    it exists. Takes M + 1 backward passes for each row and output, which come second.
    """
    n_players = game.n_players
    n_points = n_players + 1  # everyone, then without each player in turn

    def slopes(start: int, stop: int) -> torch.Tensor:
        row, point = np.divmod(np.arange(start, stop), n_points)
        presence = game.fully_present(stop - start)
        lacking = np.flatnonzero(point > 0)
        presence[lacking, point[lacking] - 1] = 0.0
        presence.requires_grad_()
        outputs = _tracked(game.presence_values(rows[row], presence))
        found = [
            torch.autograd.grad(output, presence, retain_graph=True)[0]
            for output in outputs.sum(dim=0)
        ]
        return torch.stack(found, dim=1)  # (P, K, M)

    size = batch_size or max(1, game.evaluations_per_batch // 4)
    found = _collected(slopes, len(rows) * n_points, size)
    n_outputs = found.shape[1]
    found = found.reshape(len(rows), n_points, n_outputs, n_players)
    change = np.abs(found[:, :1] - found[:, 1:]).sum(axis=2)
    return _without_diagonal(change + change.transpose(0, 2, 1)), n_outputs * n_points


def _curvature(slope: torch.Tensor, presence: torch.Tensor) -> torch.Tensor:
    """Differentiate the slopes, (P, M), once more, (P, M, M)."""
    rows = []
    if slope.requires_grad:
        rows = [
            torch.autograd.grad(column, presence, retain_graph=True, allow_unused=True)[0]
            for column in slope.sum(dim=0)
        ]
    if all(row is None for row in rows):
        # Of the parameters alone the slope may depend all the same.
        raise DerivativeError(
            "The first derivative cannot be differentiated again: the model is linear in its "
            "inputs, or it holds an operation that is differentiable only once."
        )
    zero = torch.zeros_like(presence)
    return torch.stack([zero if row is None else row for row in rows], dim=1)


def _collected(call: Callable[[int, int], torch.Tensor], total: int, size: int) -> FloatArray:
    """Run `call` over `total` items in batches and join its results."""
    collected: list[FloatArray] = []

    def collect(start: int, stop: int) -> None:
        with _derivatives_allowed():
            batch = call(start, stop).detach()
        collected.append(batch.to(device="cpu", dtype=torch.float64).numpy())

    in_batches(total, size, collect)
    return np.concatenate(collected)


def _without_diagonal(scores: ScoreArray) -> ScoreArray:
    scores[:, np.eye(scores.shape[1], dtype=bool)] = 0.0
    return scores


@contextmanager
def _derivatives_allowed() -> Iterator[None]:
    """Take derivatives even where the caller has switched them off; name what forbids them."""
    try:
        with torch.inference_mode(False), torch.enable_grad():
            yield
    except DerivativeError:
        raise
    except (RuntimeError, NotImplementedError) as error:
        if ran_out_of_memory(error):
            raise
        raise DerivativeError(f"The derivatives of the model cannot be taken: {error}") from error


def _tracked(outputs: torch.Tensor) -> torch.Tensor:
    if not outputs.requires_grad:
        raise DerivativeError(
            "The model's output does not depend differentiably on its input: something detaches "
            "it, converts it to NumPy, or switches gradients off."
        )
    return outputs
