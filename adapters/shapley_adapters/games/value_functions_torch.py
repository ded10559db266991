"""Value functions of tensors, for derivatives. Needs torch: import it only if there are tensors."""

from __future__ import annotations

import torch

from ..array_types import BoolArray, FloatArray


def tensor_values(
    outputs: torch.Tensor, weights: FloatArray, are_probabilities: BoolArray | None
) -> torch.Tensor:
    """Return the values of outputs, (P, K), as (P, 1).

    Parameters
    ----------
    outputs : tensor, (P, K)
        Outputs of the model; a single one stands for two classes.
    weights : array, (P, max(K, 2))
        Weight of each class.
    are_probabilities : array, (P,), or None
        Which outputs are probabilities; the others are logits, and are converted to probabilities.
        Then logarithms are taken. None for plain outputs.
    """
    wide = outputs
    if outputs.shape[1] == 1:
        first_class = torch.zeros_like(outputs)
        if are_probabilities is not None:
            is_probability = torch.as_tensor(are_probabilities, device=outputs.device)[:, None]
            first_class = torch.where(is_probability, 1 - outputs, first_class)
        wide = torch.cat([first_class, outputs], dim=1)
    if are_probabilities is not None:
        is_probability = torch.as_tensor(are_probabilities, device=wide.device)[:, None]
        least = torch.finfo(wide.dtype).tiny
        # The branch that is not used must still have finite derivatives.
        logs = torch.where(is_probability, wide, torch.ones_like(wide)).clamp(min=least).log()
        wide = torch.where(is_probability, logs, torch.log_softmax(wide, dim=1))
    return (wide * torch.as_tensor(weights, dtype=wide.dtype, device=wide.device)).sum(
        dim=1, keepdim=True
    )
