"""Exact Shapley values by enumeration."""

from __future__ import annotations

import shapley_adapters as core

from .coalition_attribution import CoalitionAttribution
from .sampling_attribution import SamplingAttribution
from .shared_parameters import documented


@documented
class Exact(CoalitionAttribution):
    """Shapley values by enumeration of all 2^M coalitions, for up to 20 features.

    Unlike `captum.attr.ShapleyValues`, which evaluates all M! orders, this evaluates each coalition
    once. Features whose input equals their baseline are not players. Nothing is random; `seed` has
    no effect.

    Parameters
    ----------
    {parameters}

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Exact
    >>> Exact(lambda x: x[:, 0] * x[:, 1] + x[:, 2]).attribute(torch.tensor([[1.0, 2.0, 3.0]]))
    tensor([[1., 1., 3.]])
    """

    global_importance = SamplingAttribution.global_importance

    def _estimator(self) -> core.Exact:
        return core.Exact()
