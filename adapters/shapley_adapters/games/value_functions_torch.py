"""Value functions of tensors, for derivatives. Needs torch: import it only where there is one."""

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
        What each class counts.
    are_probabilities : array, (P,), or None
        Whose logarithm is taken, logits being turned into probabilities first; None for plain
        outputs.
    """
    wide = outputs
    if outputs.shape[1] == 1:
        other = torch.zeros_like(outputs)
        if are_probabilities is not None:
            given = torch.as_tensor(are_probabilities, device=outputs.device)[:, None]
            other = torch.where(given, 1 - outputs, other)
        wide = torch.cat([other, outputs], dim=1)
    if are_probabilities is not None:
        given = torch.as_tensor(are_probabilities, device=wide.device)[:, None]
        least = torch.finfo(wide.dtype).tiny
        # Either branch is kept differentiable where the other one is taken.
        logs = torch.where(given, wide, torch.ones_like(wide)).clamp(min=least).log()
        wide = torch.where(given, logs, torch.log_softmax(wide, dim=1))
    return (wide * torch.as_tensor(weights, dtype=wide.dtype, device=wide.device)).sum(
        dim=1, keepdim=True
    )
