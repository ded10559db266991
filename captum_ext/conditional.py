"""Baselines that are drawn given the present features."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy.typing as npt
from torch import Tensor

from shapley_adapters import conditional as core
from shapley_adapters.conditional.draws import (
    ConditionalDistribution,
    ConditionalDraws,
    checked_draws,
)
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.graphs.causal_graph import CausalEdges, CausalOrder
from shapley_adapters.torch_support.tensor_arrays import array_of

from .inputs.baselines import Baselines
from .inputs.checks import check_plain

__all__ = [
    "Categorical",
    "Causal",
    "ConditionalBaselines",
    "Copula",
    "Empirical",
    "Forest",
    "Gaussian",
    "Sampled",
]


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

    are_rounded = True
    """Whether whole numbers would round draws, because they are not all values of the data."""

    def _fit(
        self,
        data: Tensor,
        fitted: Callable[[npt.NDArray[Any]], ConditionalDistribution],
        draws: int,
        seed: int | None,
    ) -> None:
        """Fit a distribution to examples, flattened."""
        if not isinstance(data, Tensor):
            raise InvalidArgumentTypeError(
                f"data must be a tensor of examples; got {type(data).__name__}. Convert it with "
                "torch.as_tensor."
            )
        check_plain("data", data)
        if data.dim() < 2 or len(data) == 0:
            raise InvalidArgumentError(
                f"data has shape {tuple(data.shape)}; a tensor of examples (N, …) is needed."
            )
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
        if self.are_rounded and not inputs[0].is_floating_point():
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
    data : Tensor, (N, …)
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
        self._fit(data, core.Gaussian.fitted, draws, seed)


class Causal(ConditionalBaselines):
    """Draws absent features as they would be if the present ones were set by an intervention.

    See `shap_ext.maskers.Causal`, which gives the same numbers.

    Parameters
    ----------
    data : Tensor, (N, …)
        More examples than features.
    order : list of indices, or of lists of indices, optional
        Causes before effects; features of flattened examples, each once.
    confounded : bool, list of bool, or list of nodes
        Whether features together are related by common causes that are not observed: for all, for
        each entry of an order, or for some nodes of a graph.
    draws : int
        Rows of the forward function for each coalition.
    seed : int, optional
        Seed of the draws. None draws one.
    graph : networkx.DiGraph, or list of pairs, optional
        In place of an order: edges from causes to effects; features whose order is not known are a
        node together, a tuple.
    """

    def __init__(
        self,
        data: Tensor,
        order: CausalOrder | None = None,
        confounded: core.Confounded = False,
        draws: int = 16,
        seed: int | None = 0,
        *,
        graph: CausalEdges | None = None,
    ) -> None:
        fit = core.CausalGaussian.fitted_to_graph
        fitted = partial(fit, order=order, graph=graph, confounded=confounded)
        self._fit(data, fitted, draws, seed)


class Copula(ConditionalBaselines):
    """Draws absent features given the present ones: any margins, which depend like normal ones.

    See `shap_ext.maskers.Copula`, which gives the same numbers.

    Parameters
    ----------
    data : Tensor, (N, …)
        More examples than features.
    draws : int
        Rows of the forward function for each coalition.
    seed : int, optional
        Seed of the draws. None draws one.
    """

    def __init__(self, data: Tensor, draws: int = 16, seed: int | None = 0) -> None:
        self._fit(data, core.Copula.fitted, draws, seed)


class Empirical(ConditionalBaselines):
    """Draws the absent features of examples in the data that are near to the present ones.

    See `shap_ext.maskers.Empirical`, which gives the same numbers.

    Parameters
    ----------
    data : Tensor, (N, …)
        More examples than features.
    draws : int
        Rows of the forward function for each coalition.
    seed : int, optional
        Seed of the draws. None draws one.
    sigma, eta : float
        Width of the kernel, by Scott's rule if it is None, and the share of the weights that is
        kept.
    """

    def __init__(
        self,
        data: Tensor,
        draws: int = 16,
        seed: int | None = 0,
        *,
        sigma: float | None = None,
        eta: float = 0.95,
    ) -> None:
        fitted = partial(core.Empirical.fitted, sigma=sigma, eta=eta)
        self._fit(data, fitted, draws, seed)


class Categorical(ConditionalBaselines):
    """Draws the absent features of examples in the data that have the same present values.

    See `shap_ext.maskers.Categorical`, which gives the same numbers.

    Parameters
    ----------
    data : Tensor, (N, …)
        Examples whose numbers stand for categories.
    draws : int
        Rows of the forward function for each coalition.
    seed : int, optional
        Seed of the draws. None draws one.
    """

    are_rounded = False

    def __init__(self, data: Tensor, draws: int = 16, seed: int | None = 0) -> None:
        self._fit(data, core.Categorical.fitted, draws, seed)


class Forest(ConditionalBaselines):
    """Draws the absent features of examples that share leaves of a forest with the present ones.

    See `shap_ext.maskers.Forest`, which gives the same numbers.

    Parameters
    ----------
    data : Tensor, (N, …)
        At least 12 examples.
    draws : int
        Rows of the forward function for each coalition.
    seed : int, optional
        Seed of the draws. None draws one.
    """

    def __init__(self, data: Tensor, draws: int = 16, seed: int | None = 0) -> None:
        self._fit(data, core.Forest.fitted, draws, seed)


class Sampled(ConditionalBaselines):
    """Draws absent features by a function of yours, such as a generative model.

    Parameters
    ----------
    function : callable
        `function(mask, row, n, rng)` returns `n` rows, (n, D), whose absent values, where `mask` is
        False, are drawn given the present values of `row`. Examples are flattened, as arrays. All
        random numbers must come from `rng`, a NumPy Generator.
    data : Tensor, (N, …)
        Any examples, for their shape.
    draws : int
        Rows of the forward function for each coalition.
    seed : int, optional
        Seed of the generators. None draws one.
    """

    def __init__(
        self,
        function: core.SamplingFunction,
        data: Tensor,
        draws: int = 16,
        seed: int | None = 0,
    ) -> None:
        sampled = core.Sampled.checked(function)
        self._fit(data, lambda _: sampled, draws, seed)
