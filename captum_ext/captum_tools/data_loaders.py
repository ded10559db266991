"""captum's attribution of metrics over a data loader, with the methods of this package."""

from __future__ import annotations

import copy
import functools
from collections.abc import Callable
from typing import Any

import captum.attr
import torch

from shapley_adapters.arguments import checked_count
from shapley_adapters.errors import InvalidArgumentError

from ..argument_types import Method
from ..attributions.amortized_attribution import refuse_trained
from ..attributions.coalition_attribution import CoalitionAttribution
from ..inputs.forward_arguments import copied


class DataLoaderAttribution(captum.attr.DataLoaderAttribution):  # type: ignore[misc]
    """`captum.attr.DataLoaderAttribution` that also accepts the methods of this package.

    It explains one metric of a whole data set, such as the accuracy, by the features of the
    examples. An absent feature takes the baseline in all examples. An evaluation is a pass over the
    data; `perturbations_per_pass` evaluations share a pass. Attributions have the shape (1, metric
    shape, shape of an example). The number of evaluations is in `attr_method.last_estimate`.

    Parameters
    ----------
    attr_method : Attribution
        `captum.attr.FeatureAblation` or a method of this package.
    n_samples : int, optional
        The budget of a method of this package; None for the method's default.
    """

    attr_method: Any

    def __init__(self, attr_method: Method, n_samples: int | None = None) -> None:
        if not isinstance(attr_method, CoalitionAttribution):
            if n_samples is not None:
                raise InvalidArgumentError(
                    f"n_samples={n_samples!r} has no meaning for {type(attr_method).__name__}, "
                    "which has no budget; leave it out."
                )
            super().__init__(attr_method)
            return
        refuse_trained(attr_method, "a metric")
        # captum's constructor accepts only its own class, so that it gets one, replaced below.
        forward_func = _with_copies(attr_method.forward_func)
        super().__init__(captum.attr.FeatureAblation(forward_func))
        method: Any = copy.copy(attr_method)
        # captum's masks let derivatives through for some of the features only.
        method.forward_func = torch.no_grad()(self.attr_method.forward_func)
        if n_samples is not None:
            # captum's `attribute` has no n_samples to pass on.
            checked_count("n_samples", n_samples)
            method.attribute = functools.partial(method.attribute, n_samples=n_samples)
        self.attr_method = method


def _with_copies(forward_func: Callable[..., Any]) -> Callable[..., Any]:
    """Return the forward function with copies of its inputs and of its output.

    captum passes the original tensors of the data loader, and stores the output of the first batch.
    Without copies, a forward function that writes into its inputs, or that reuses the memory of its
    output, would change them.
    """

    def forward(*inputs: Any) -> Any:
        return copied(forward_func(*copied(inputs)))

    return forward
