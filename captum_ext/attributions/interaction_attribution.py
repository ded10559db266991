"""Interactions of pairs of features, as tensors."""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shapley_adapters.arguments import checked_choice, checked_flag
from shapley_adapters.array_types import FloatArray
from shapley_adapters.errors import InvalidArgumentTypeError
from shapley_adapters.interactions.indices import INDICES

from ..captum_internals import BaselineType, TargetType, TensorOrTupleOfTensorsGeneric
from ..inputs.checks import checked_inputs
from .attributed_streams import StreamAttribution


class InteractionAttribution(StreamAttribution):
    """Base of the attribution methods that also give interactions."""

    last_estimate: Any
    _evaluates_coalitions = True
    _interaction_index = ""  # of the copy of a call of `interactions`, whose `attribute` reads it

    def attribute(self, inputs: Any, *args: Any, **options: Any) -> Any:
        """Attribute the output of the forward function to its inputs."""
        raise NotImplementedError

    def interactions(
        self,
        inputs: TensorOrTupleOfTensorsGeneric,
        baselines: BaselineType = None,
        target: TargetType = None,
        additional_forward_args: object = None,
        feature_mask: TensorOrTupleOfTensorsGeneric | None = None,
        n_samples: int | None = None,
        perturbations_per_eval: int | None = None,
        *,
        index: str = "shapley",
        show_progress: bool = False,
        return_standard_error: bool = False,
        tolerance: float | str | None = None,
        max_seconds: float | None = None,
    ) -> Any:
        """Return the interactions of all pairs of features, from the evaluations of `attribute`.

        `last_estimate` then holds the attributions and the interactions. `last_estimate.to_shapiq`
        converts the interactions to an object of shapiq.

        Parameters
        ----------
        inputs, baselines, target, additional_forward_args, feature_mask, n_samples
            As in `attribute`.
        perturbations_per_eval, show_progress, tolerance, max_seconds
            As in `attribute`. The tolerance is one for the attributions.
        index : {"shapley", "shapley_taylor", "banzhaf"}
            The index of interaction.
        return_standard_error : bool
            Whether to return the standard errors, too.

        Returns
        -------
        Tensor, (B, output shape, M, M)
            A symmetric matrix for each example, in the type and on the device of the inputs: half
            of the interaction of a pair at both of its entries, and main effects on the diagonal.
            Each row of the matrix sums to the attribution of its feature. The M features are those
            of the feature mask, in the order of their ids. Without a mask, they are the numbers of
            an example, those of all inputs one after the other.
        Tensor
            With `return_standard_error`, the standard errors in the same form.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError, BudgetError
            If an argument cannot be used, or the method cannot estimate interactions; the message
            names methods that can.

        Examples
        --------
        >>> import torch
        >>> from captum_ext import OddGP
        >>> x = torch.tensor([[1.0, 2.0, 3.0]])
        >>> OddGP(lambda x: x.sum(dim=1) ** 2, seed=0).interactions(x).round()
        tensor([[[1., 2., 3.],
                 [2., 4., 6.],
                 [3., 6., 9.]]])
        """
        if not self._evaluates_coalitions:
            raise InvalidArgumentTypeError(
                f"{type(self).__name__} has no interactions: its network gives attributions in one "
                "pass. Use OddGP or Best."
            )
        twin = copy.copy(self)
        twin._interaction_index = checked_choice("index", index, INDICES)
        checked_flag("return_standard_error", return_standard_error)
        answer = twin.attribute(
            inputs,
            baselines,
            target,
            additional_forward_args,
            feature_mask,
            n_samples,
            perturbations_per_eval,
            show_progress=show_progress,
            return_standard_error=return_standard_error,
            tolerance=tolerance,
            max_seconds=max_seconds,
        )
        attributions = answer[0] if return_standard_error else answer
        self.last_estimate = estimate = twin.last_estimate
        pairs = estimate.interactions
        matrices = _as_tensor(pairs.matrices(estimate.values), inputs, attributions)
        if not return_standard_error:
            return matrices
        return matrices, _as_tensor(pairs.error_matrices(), inputs, attributions)


def _as_tensor(matrices: FloatArray, inputs: Any, attributions: Any) -> Tensor:
    """Return matrices of players, (R, M, M, K), as a tensor, (R, output shape, M, M).

    The attributions, in the form of the inputs, have the type, the device and the output shape.
    """
    tensors = attributions if isinstance(attributions, tuple) else (attributions,)
    of_floats = [tensor for tensor in tensors if tensor.is_floating_point()]
    n_axes = checked_inputs(inputs)[0].dim() - 1  # of one example
    leading = tensors[0].shape[: tensors[0].dim() - n_axes]
    n_players = matrices.shape[1]
    shaped = np.moveaxis(matrices, 3, 1).reshape(*leading, n_players, n_players)
    return torch.from_numpy(shaped.copy()).to(
        device=tensors[0].device, dtype=(of_floats or tensors)[0].dtype
    )
