"""Cross-contributions from derivatives. Needs torch, so import it only where a game has them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

import numpy as np
import torch

from .array_types import IntArray, ScoreArray
from .batched_evaluation import in_batches, ran_out_of_memory
from .errors import DerivativeError
from .games import DifferentiableGame


def hessian_scores(game: DifferentiableGame, rows: IntArray) -> tuple[ScoreArray, int]:
    """Return η of `shear.txt` Eq. 11 for each row, (R, M, M), and the backward passes it took.

    The second derivative is taken along the players' directions, from the absent to the present
    input, so that a player of several columns needs one backward pass, as one of a single column
    does; for single columns this is |x_i − x̄_i| |2 ∂²f/∂x_i∂x_j| |x_j − x̄_j| as printed. Several
    outputs add up. Takes 1 + M backward passes for each row and output.
    """

    def scores(points: IntArray) -> tuple[torch.Tensor, int]:
        presence = game.fully_present(len(points)).requires_grad_()
        outputs = _tracked(game.presence_values(points, presence))
        total = presence.new_zeros((*presence.shape, presence.shape[1]))
        for output in outputs.sum(dim=0):
            (slope,) = torch.autograd.grad(output, presence, create_graph=True)
            if not slope.requires_grad:
                raise DerivativeError(
                    "The first derivative cannot be differentiated again: the model is linear in "
                    "its inputs, or it holds an operation that is differentiable only once."
                )
            curvature = [
                torch.autograd.grad(column, presence, retain_graph=True)[0]
                for column in slope.sum(dim=0)
            ]
            total += 2 * torch.stack(curvature, dim=1).abs()
        return total, outputs.shape[1] * (1 + game.n_players)

    return _collected(scores, rows, max(1, game.evaluations_per_batch // 4))


def gradient_scores(game: DifferentiableGame, rows: IntArray) -> tuple[ScoreArray, int]:
    """Return how much the slope of each player changes when another one leaves, (R, M, M).

    For networks of straight pieces (ReLU, max-pooling), whose second derivative is zero wherever
    it exists. Takes M + 1 backward passes for each row and output.
    """
    n_players = game.n_players

    def scores(points: IntArray) -> tuple[torch.Tensor, int]:
        presence = game.fully_present(len(points) * (n_players + 1))
        by_row = presence.view(len(points), n_players + 1, n_players)
        by_row[:, 1:].diagonal(dim1=1, dim2=2).zero_()  # point 1 + j is without player j
        presence.requires_grad_()
        outputs = _tracked(game.presence_values(np.repeat(points, n_players + 1), presence))
        total = presence.new_zeros((len(points), n_players, n_players))
        for output in outputs.sum(dim=0):
            (slopes,) = torch.autograd.grad(output, presence, retain_graph=True)
            slopes = slopes.view(len(points), n_players + 1, n_players)
            change = (slopes[:, :1] - slopes[:, 1:]).abs()
            total += change + change.transpose(1, 2)
        return total, outputs.shape[1] * (1 + n_players)

    return _collected(scores, rows, max(1, game.evaluations_per_batch // (4 * (n_players + 1))))


def _collected(
    scores: Callable[[IntArray], tuple[torch.Tensor, int]], rows: IntArray, batch_size: int
) -> tuple[ScoreArray, int]:
    """Run `scores` over the rows in batches and return its results without their diagonals."""
    collected: list[ScoreArray] = []
    n_passes = 0

    def collect(start: int, stop: int) -> None:
        nonlocal n_passes
        with _derivatives_allowed():
            batch, n_passes = scores(rows[start:stop])
        collected.append(batch.detach().to(device="cpu", dtype=torch.float64).numpy())

    in_batches(len(rows), batch_size, collect)
    result: ScoreArray = np.concatenate(collected)
    result[:, np.eye(result.shape[1], dtype=bool)] = 0.0
    return result, n_passes


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
