"""Value functions of tensors, for derivatives. Needs torch: import it only if there are tensors."""

from __future__ import annotations

import numpy as np
import torch

from ..array_types import BoolArray, FloatArray


def tensor_values(
    outputs: torch.Tensor,
    weights: FloatArray,
    are_probabilities: BoolArray | None,
    background_weights: FloatArray | None = None,
) -> torch.Tensor:
    """Return the values of outputs, (P, B, K), as (P, 1).

    Parameters
    ----------
    outputs : tensor, (P, B, K)
        Outputs of the model for B background rows; a single one stands for two classes.
    weights : array, (P, max(K, 2))
        Weight of each class.
    are_probabilities : array, (P,), or None
        Which outputs are probabilities; the others are logits, and are converted to probabilities.
        Then logarithms of their means are taken. None for the means of plain outputs.
    background_weights : array, (B,), optional
        Weight of each background row, with sum 1; by default they are equal.
    """
    wide = outputs
    if outputs.shape[2] == 1:
        first_class = torch.zeros_like(outputs)
        if are_probabilities is not None:
            is_probability = torch.as_tensor(are_probabilities, device=outputs.device)
            first_class = torch.where(is_probability[:, None, None], 1 - outputs, first_class)
        wide = torch.cat([first_class, outputs], dim=2)
    if are_probabilities is not None:
        is_probability = torch.as_tensor(are_probabilities, device=wide.device)[:, None, None]
        least = torch.finfo(wide.dtype).tiny
        # The branch that is not used must still have finite derivatives.
        logs = torch.where(is_probability, wide, torch.ones_like(wide)).clamp(min=least).log()
        wide = torch.where(is_probability, logs, torch.log_softmax(wide, dim=2))
    if background_weights is None:
        background_weights = np.full(wide.shape[1], 1 / wide.shape[1])
    shares = wide.new_tensor(background_weights)[:, None]
    of_classes = (wide * shares).sum(dim=1)
    if are_probabilities is not None:
        of_classes = torch.logsumexp(wide + shares.log(), dim=1)
    of_weights = torch.as_tensor(weights, dtype=wide.dtype, device=wide.device)
    return (of_classes * of_weights).sum(dim=1, keepdim=True)
