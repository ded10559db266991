"""Baselines that are drawn given the present features."""

from __future__ import annotations

from typing import Any

import numpy.typing as npt
from torch import Tensor

from shapley_adapters.conditional.columns import checked_numbers
from shapley_adapters.conditional.draws import (
    ConditionalDistribution,
    ConditionalDraws,
    checked_draws,
)
from shapley_adapters.conditional.gaussian import Gaussian as GaussianDistribution
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.torch_support.tensor_arrays import array_of

from .inputs.baselines import Baselines
from .inputs.checks import check_plain

__all__ = ["ConditionalBaselines", "Gaussian"]


class ConditionalBaselines:
    """Draws absent features given the present ones; its subclasses say from which distribution.

    Attributes
    ----------
    shape : tuple of int
        Shape of an example.
    draws : ConditionalDraws
        The distribution, with its random numbers.
    """

    shape: tuple[int, ...]
    draws: ConditionalDraws

    def _set(
        self,
        data: Tensor,
        distribution: ConditionalDistribution,
        draws: int,
        seed: int | None,
    ) -> None:
        self.shape = tuple(data.shape[1:])
        self.draws = checked_draws(distribution, data[0].numel(), draws, seed)

    def baselines_of(self, inputs: tuple[Tensor, ...]) -> Baselines:
        """Return the baselines of a game of checked inputs: only their number counts.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError
            If the inputs are not one tensor of numbers like the data.
        """
        if len(inputs) != 1 or tuple(inputs[0].shape[1:]) != self.shape:
            shapes = " and ".join(str(tuple(tensor.shape)) for tensor in inputs)
            raise InvalidArgumentError(
                f"baselines, {type(self).__name__}, draws examples of the shape {self.shape}; "
                f"inputs have the shape {shapes}. Pass one tensor of such examples."
            )
        if not inputs[0].is_floating_point():
            raise InvalidArgumentTypeError(
                f"inputs hold {inputs[0].dtype} numbers, to which draws would be rounded. Pass "
                "inputs.float()."
            )
        return Baselines((inputs[0][:1] * 0,), (False,), self.draws.points.n_draws)


class Gaussian(ConditionalBaselines):
    """Draws absent features from a normal distribution, given the present ones.

    For the argument `baselines` of the methods of captum_ext. The value of a coalition is the mean
    of the output over these draws; see `shap_ext.maskers.Gaussian`, which gives the same numbers.

    Parameters
    ----------
    data : Tensor, (N, *shape of an example)
        Examples from which mean and covariance are computed: more examples than features.
    draws : int
        Rows of the forward function for each coalition: Sobol points with a random shift for each
        coalition. Powers of 2 are best.
    seed : int, optional
        Seed of the shifts. None draws one.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If the data are not finite numbers, or too few.

    Notes
    -----
    Each evaluation costs `draws` rows of the forward function. A part of the coalitions is drawn
    twice, so that standard errors hold the noise of the draws; they do not hold the error of the
    fitted distribution.

    Examples
    --------
    >>> import torch
    >>> import captum_ext
    >>> first = torch.randn(1000, generator=torch.Generator().manual_seed(0))
    >>> data = torch.stack([first, first], dim=1) + torch.tensor([[0.0, 1.0]])
    >>> data[:, 1] += torch.randn(1000, generator=torch.Generator().manual_seed(1))
    >>> baselines = captum_ext.conditional.Gaussian(data, draws=64)
    >>> method = captum_ext.Exact(lambda x: 4 * x[:, 0], seed=0)
    >>> method.attribute(torch.tensor([[1.0, 3.0]]), baselines=baselines).round()
    tensor([[2., 2.]])
    """

    def __init__(self, data: Tensor, draws: int = 16, seed: int | None = 0) -> None:
        table = checked_numbers(_table(data), None)
        self._set(data, GaussianDistribution.fitted(table), draws, seed)


def _table(data: Tensor) -> npt.NDArray[Any]:
    """Return examples as a table, with a row for each."""
    if not isinstance(data, Tensor):
        raise InvalidArgumentTypeError(
            f"data must be a tensor of examples; got {type(data).__name__}. Convert it with "
            "torch.as_tensor."
        )
    check_plain("data", data)
    if data.dim() < 2:
        raise InvalidArgumentError(
            f"data has shape {tuple(data.shape)}; a tensor of examples (N, …) is needed."
        )
    table: npt.NDArray[Any] = array_of(data).reshape(len(data), -1)
    return table
