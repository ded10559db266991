"""Baselines that are drawn given the present features; features are those of flattened examples.

For the argument `baselines` of the methods of captum_ext. The numbers are those of the maskers of
the same names in `shap_ext.maskers`.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shapley_adapters.conditional import hosted, regression
from shapley_adapters.conditional.draws import ConditionalDistribution, checked_draws
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.torch_support.tensor_arrays import array_of

from .inputs.baselines import Baselines
from .inputs.checks import checked_plain

__all__ = [
    "Categorical",
    "Causal",
    "ConditionalBaselines",
    "ConditionalMean",
    "Copula",
    "Empirical",
    "Forest",
    "Gaussian",
    "Sampled",
]


class ConditionalBaselines(hosted.DrawnFeatures[Tensor]):
    """Draws absent features given the present ones; its subclasses say from which distribution.

    Attributes
    ----------
    shape : tuple of int
        Shape of an example.
    draws : ConditionalDraws
        The distribution, with its random numbers.
    """

    shape: tuple[int, ...]

    _data = "Tensor, (N, …), of N examples"

    def _fit(
        self,
        data: Tensor,
        fitted: Callable[..., ConditionalDistribution],
        draws: int,
        seed: int | None,
    ) -> None:
        """Fit a distribution to examples, flattened."""
        data = _examples(data)
        distribution = fitted(array_of(data).reshape(len(data), -1))
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
        if not self.are_values_of_data and not inputs[0].is_floating_point():
            raise InvalidArgumentTypeError(
                f"inputs hold {inputs[0].dtype} numbers, to which draws would be rounded. Pass "
                "inputs.float()."
            )
        return Baselines((inputs[0][:1] * 0,), (False,), self.draws.points.n_draws)


class Gaussian(hosted.Gaussian[Tensor], ConditionalBaselines):
    """Draws absent features from a normal distribution, given the present ones.

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


class Causal(hosted.Causal[Tensor], ConditionalBaselines):
    """Draws absent features as they would be if the present ones were set by an intervention."""


class Copula(hosted.Copula[Tensor], ConditionalBaselines):
    """Draws absent features given the present ones: any margins, which depend like normal ones."""


class Empirical(hosted.Empirical[Tensor], ConditionalBaselines):
    """Draws the absent features of rows of the data that are near to the present ones."""


class Categorical(hosted.Categorical[Tensor], ConditionalBaselines):
    """Draws the absent features of rows of the data that have the same present values."""


class Forest(hosted.Forest[Tensor], ConditionalBaselines):
    """Draws the absent features of rows that share leaves of a forest with the present ones."""


class Sampled(hosted.Sampled[Tensor], ConditionalBaselines):
    """Draws absent features by a function of yours, such as a generative model."""


class ConditionalMean(regression.ConditionalMean[Tensor]):
    """With its `reference` as `baselines`, it takes the place of the forward function.

    Examples
    --------
    >>> import torch
    >>> import captum_ext
    >>> data = torch.randn(1000, 2, generator=torch.Generator().manual_seed(0))
    >>> data[:, 1] += data[:, 0]
    >>> mean = captum_ext.conditional.ConditionalMean(lambda x: 4 * x[:, 0], data)
    >>> method = captum_ext.Exact(mean, seed=0)
    >>> method.attribute(torch.tensor([[1.0, 2.0]]), baselines=mean.reference).round()
    tensor([[2., 2.]])
    """

    _data_text = ConditionalBaselines._data

    def _read(self, data: Tensor) -> tuple[Any, None, Tensor]:
        data = _examples(data)
        self._shape_of_example = data.shape[1:]
        return array_of(data).reshape(len(data), -1), None, data

    def _evaluated(self, rows: Tensor) -> Any:
        with torch.no_grad():
            return self.model(rows)

    def __call__(self, inputs: Tensor) -> Tensor:
        """Return the outputs, (B,) or (B, K), of examples whose absent numbers are NaN."""
        numbers = array_of(inputs).reshape(len(inputs), -1).astype(np.float64)
        means = self._means(numbers, lambda selected: inputs[torch.from_numpy(selected)])
        dtype = inputs.dtype if inputs.is_floating_point() else torch.get_default_dtype()
        return torch.as_tensor(means).to(inputs.device, dtype)

    @property
    def reference(self) -> Tensor:
        """An example of which nothing is present, the baseline that goes with this function."""
        return torch.full((1, *self._shape_of_example), torch.nan)


def _examples(data: Tensor) -> Tensor:
    """Return checked examples, (N, …)."""
    data = checked_plain("data", data, "a tensor of examples")
    if data.dim() < 2 or len(data) == 0:
        raise InvalidArgumentError(
            f"data has shape {tuple(data.shape)}; a tensor of examples (N, …) is needed."
        )
    return data
