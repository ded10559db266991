"""Attribution methods of estimators of other packages."""

from __future__ import annotations

import functools
from typing import Any

from shapley_adapters.estimators.protocol import Estimator
from shapley_adapters.estimators.registered import class_from_estimator

from .sampling_attribution import SamplingAttribution
from .shared_parameters import TEXTS


@functools.cache
def attribution_class(estimator: type[Estimator[Any]]) -> type[SamplingAttribution]:
    """Return an attribution method that estimates by an estimator of your own.

    The method has the name of the estimator class, and its options as keyword-only arguments beside
    those that all methods share. It works as the methods of this package do: with budgets,
    tolerances, standard errors, feature masks and baselines. Equal estimator classes give the same
    method.

    Parameters
    ----------
    estimator : type
        A class with the methods of `shapley_adapters.estimators.Estimator`, usually a frozen
        dataclass. To be pickled, it must be importable.

    Returns
    -------
    type
        The attribution method, a subclass of `captum.attr.PerturbationAttribution`.

    Raises
    ------
    InvalidArgumentTypeError
        If it is not the class of an estimator, or its options cannot be passed by name.
    InvalidArgumentError
        If an option has a name that the method uses itself, such as `seed`.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import attribution_class
    >>> from shapley_adapters import RandomOrder  # stands for an estimator of your own
    >>> Method = attribution_class(RandomOrder)
    >>> x = torch.arange(1.0, 13.0)[None]
    >>> method = Method(lambda x: x.sum(1) ** 2, antithetic=True, seed=0)
    >>> method.attribute(x, n_samples=100)[0, :3]
    tensor([ 78., 156., 234.])
    """
    recipe = (attribution_class, (estimator,))
    method: type[SamplingAttribution] = class_from_estimator(
        SamplingAttribution, "", estimator, TEXTS, recipe
    )
    return method
