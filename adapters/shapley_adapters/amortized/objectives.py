"""Training objectives of amortized explainers (Zhang et al., 2023, Definition 3).

All are distances ‖g(x) − φ_x‖_M between predictions g(x) and targets φ_x. With M = I, the target is
an unbiased estimate from a few coalitions (SimSHAP), or a label that is computed before training.
With M = XᵀWX it is the loss of the regression itself (FastSHAP).
"""

from __future__ import annotations

import torch
from torch import Tensor

STOCHASTIC = ("controlled", "simsemivalue", "fastshap")
"""Targets for which new coalitions are drawn in each epoch."""

LABELS = ("oddgp", "leastsquares")
"""Targets that are estimated once for each row."""

TARGETS = LABELS + STOCHASTIC


def method_of(target: str) -> str:
    """Return the method whose target this is, "simshap" or "fastshap"."""
    return "fastshap" if target == "fastshap" else "simshap"


_WEIGHT_OF_GAPS = 0.02
"""Of the squared gap to v(N) − v(∅) in the loss. On digits, errors with labels of 5.5, 4.9, 6.6 and
9.6 with 0, 0.02, 0.1 and 1; on Adult, .145 with all."""


def efficient(attributions: Tensor, grand_minus_empty: Tensor, active: Tensor) -> Tensor:
    """Return attributions, (B, M, K), that sum to v(N) − v(∅), `rise`, (B, K).

    The difference is shared equally by the `active` players, (B, M).
    """
    share = active[:, :, None].to(attributions.dtype)
    counts = share.sum(dim=1).clamp(min=1.0)
    missing = (grand_minus_empty - attributions.sum(dim=1)) / counts
    return attributions + share * missing[:, None]


def label_loss(
    attributions: Tensor, labels: Tensor, grand_minus_empty: Tensor, active: Tensor
) -> Tensor:
    """Return the squared distance to labels, with attributions, (B, M, K), made efficient first.

    The gap to v(N) − v(∅), `grand_minus_empty`, is known when a row is explained, so that the
    network need not learn it. It has a small weight in the loss nevertheless, for use of the
    network without v(N).
    """
    fair = efficient(attributions, grand_minus_empty, active)
    return (
        ((fair - labels) ** 2 + _WEIGHT_OF_GAPS * (attributions - fair) ** 2).sum(dim=(1, 2)).mean()
    )


def stochastic_loss(
    target: str,
    attributions: Tensor,
    coalitions: Tensor,
    values: Tensor,
    grand_minus_empty: Tensor,
    active: Tensor,
    kernel_total: Tensor,
) -> Tensor:
    """Return the loss of a batch.

    FastSHAP's says nothing about the sum of the network's own attributions. The gap has a small
    weight in it, for use of the network without v(N), and because gaps tell which rows are unlike
    the training rows.

    Parameters
    ----------
    target : str
        One of `STOCHASTIC`.
    attributions : Tensor, (B, M, K)
        Predictions of the network; 0 for players that are not active.
    coalitions : Tensor, (B, S, M)
        Drawn by the Shapley kernel of each row's active players.
    values : Tensor, (B, S, K)
        v(S) − v(∅).
    rise : Tensor, (B, K)
        v(N) − v(∅).
    active : Tensor, (B, M)
        Which players can change the value of the row.
    kernel_total : Tensor, (B,)
        γ of each row's active players.
    """
    if target == "fastshap":
        fair = efficient(attributions, grand_minus_empty, active)
        loss = ((values - coalitions @ fair) ** 2).mean(dim=1).sum(dim=1).mean()
        return loss + _WEIGHT_OF_GAPS * ((attributions - fair).sum(dim=1) ** 2).sum(dim=1).mean()
    control_variate = torch.zeros_like(attributions)
    if target == "controlled":
        control_variate = efficient(attributions.detach(), grand_minus_empty, active)
    targets = sim_semivalues(
        coalitions, values - coalitions @ control_variate, active, kernel_total
    )
    counts = active.sum(dim=1).clamp(min=1.0)[:, None]
    remainder = (grand_minus_empty - control_variate.sum(dim=1)) / counts
    targets = control_variate + targets + remainder[:, None] * active[:, :, None]
    return ((attributions - targets) ** 2).sum(dim=(1, 2)).mean()


def sim_semivalues(
    coalitions: Tensor, values: Tensor, active: Tensor, kernel_total: Tensor
) -> Tensor:
    """Return the mean of a_S v(S) over the coalitions, (B, M, K) (Zhang et al., 2023, Table 1).

    a_S is γ (d − s) for members of S and −γ s for other players, with d active players.
    """
    sizes = coalitions.sum(dim=2, keepdim=True)
    counts = active.sum(dim=1)[:, None, None]
    coefficients = (counts * coalitions - sizes) * active[:, None] * kernel_total[:, None, None]
    return coefficients.transpose(1, 2) @ values / coalitions.shape[1]
