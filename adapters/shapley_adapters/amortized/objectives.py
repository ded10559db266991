"""What an amortized explainer is trained towards (Zhang et al., 2023, Definition 3).

All are distances ‖g(x) − φ_x‖ in some metric. With M = I, the target φ_x is an unbiased estimate
from some coalitions (SimSHAP), or a label made beforehand. With M = XᵀWX it is the loss of the
regression itself (FastSHAP).
"""

from __future__ import annotations

import torch
from torch import Tensor

STOCHASTIC = ("controlled", "simsemivalue", "fastshap")
"""Targets for which coalitions are drawn anew in each epoch."""

LABELS = ("oddgp", "leastsquares")
"""Targets that are estimated once for each row."""

TARGETS = LABELS + STOCHASTIC


def method_of(target: str) -> str:
    """Return the method whose target this is, "simshap" or "fastshap"."""
    return "fastshap" if target == "fastshap" else "simshap"


_WEIGHT_OF_GAPS = 0.02
"""On digits, errors of 5.5, 4.9, 6.6 and 9.6 with 0, 0.02, 0.1 and 1; on Adult, .145 with all."""


def efficient(attributions: Tensor, rise: Tensor, active: Tensor) -> Tensor:
    """Return attributions, (B, M, K), that sum to v(N) − v(∅), `rise`, (B, K).

    What is missing is shared equally by the players that are `active`, (B, M).
    """
    share = active[:, :, None].to(attributions.dtype)
    counts = share.sum(dim=1).clamp(min=1.0)
    missing = (rise - attributions.sum(dim=1)) / counts
    return attributions + share * missing[:, None]


def label_loss(told: Tensor, labels: Tensor, rise: Tensor, active: Tensor) -> Tensor:
    """Return the squared distance to labels, with attributions, (B, M, K), made efficient first.

    What is missing to v(N) − v(∅), `rise`, is known when a row is explained and need not be
    learned; it counts a little all the same, for those who explain by the network alone.
    """
    fair = efficient(told, rise, active)
    return ((fair - labels) ** 2 + _WEIGHT_OF_GAPS * (told - fair) ** 2).sum(dim=(1, 2)).mean()


def stochastic_loss(
    target: str,
    attributions: Tensor,
    coalitions: Tensor,
    values: Tensor,
    rise: Tensor,
    active: Tensor,
    kernel_total: Tensor,
) -> Tensor:
    """Return the loss of a batch.

    Parameters
    ----------
    target : str
        One of `STOCHASTIC`.
    attributions : Tensor, (B, M, K)
        What the network says; 0 for players that are not active.
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
        told = efficient(attributions, rise, active)
        return ((values - coalitions @ told) ** 2).mean(dim=1).sum(dim=1).mean()
    known = torch.zeros_like(attributions)
    if target == "controlled":
        known = efficient(attributions.detach(), rise, active)
    wanted = sim_semivalues(coalitions, values - coalitions @ known, active, kernel_total)
    counts = active.sum(dim=1).clamp(min=1.0)[:, None]
    left = (rise - known.sum(dim=1)) / counts
    wanted = known + wanted + left[:, None] * active[:, :, None]
    return ((attributions - wanted) ** 2).sum(dim=(1, 2)).mean()


def sim_semivalues(
    coalitions: Tensor, values: Tensor, active: Tensor, kernel_total: Tensor
) -> Tensor:
    """Return the mean of a_S v(S) over the coalitions, (B, M, K) (Zhang et al., 2023, Table 1).

    a_S is γ (d − s) for members of S and −γ s for the others, d the number of active players.
    """
    sizes = coalitions.sum(dim=2, keepdim=True)
    counts = active.sum(dim=1)[:, None, None]
    coefficients = (counts * coalitions - sizes) * active[:, None] * kernel_total[:, None, None]
    return coefficients.transpose(1, 2) @ values / coalitions.shape[1]
