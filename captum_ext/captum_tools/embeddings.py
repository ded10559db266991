"""Tokens as players, absent where the output of the model's embedding layer is the baseline's."""

from __future__ import annotations

import copy
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError, ModelOutputError

from ..argument_types import ForwardFunction, Target
from ..attributions.amortized_attribution import refuse_trained
from ..attributions.coalition_attribution import CoalitionAttribution
from ..inputs.baselines import BaselineDistribution
from ..inputs.forward_arguments import PerExample, arguments_of_rows, checked_additional


class EmbeddingAttribution:
    """Attribute the output of a model to its tokens, through its embedding layer.

    Token ids are whole numbers, of which there are no gradients. Here an absent token has the
    embedding of its baseline, as in captum's `LayerIntegratedGradients`, so that methods that use
    gradients can explain it: `OddGP(net)`, or SHEAR by derivatives. The ids that
    the model reads elsewhere, such as for its mask of attention, stay those of the example. Where
    they have no other use, values of coalitions are those of the masked ids. It cannot be put into
    captum's NoiseTunnel.

    Parameters
    ----------
    attr_method : Attribution
        A method of this package, with the model as its `forward_func`. Its `last_estimate` is that
        of the latest call.
    layer : torch.nn.Module
        The layer that makes embeddings, (P, …, D), of ids, (P, …). The model runs it once in each
        call, such as `model.get_input_embeddings()` of transformers.

    Raises
    ------
    InvalidArgumentTypeError
        If the method is none of this package, or the layer is no module.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import EmbeddingAttribution, OddGP
    >>> embedding = torch.nn.Embedding.from_pretrained(torch.tensor([[0.0], [2.0], [3.0]]))
    >>> def net(ids):  # the product of the first two numbers, and the third
    ...     numbers = embedding(ids)[..., 0]
    ...     return numbers[:, 0] * numbers[:, 1] + numbers[:, 2]
    >>> method = EmbeddingAttribution(OddGP(net), embedding)
    >>> method.attribute(torch.tensor([[1, 2, 2]]), baselines=0)
    tensor([[3., 3., 3.]])
    """

    def __init__(self, attr_method: CoalitionAttribution, layer: nn.Module) -> None:
        if not isinstance(attr_method, CoalitionAttribution):
            raise InvalidArgumentTypeError(
                "attr_method must be a method of this package; got "
                f"{type(attr_method).__name__}. Pass captum_ext.OddGP(model)."
            )
        refuse_trained(attr_method, "embeddings")
        if not isinstance(layer, nn.Module):
            raise InvalidArgumentTypeError(
                f"layer must be a torch.nn.Module; got {type(layer).__name__}. Pass the layer that "
                "makes embeddings, such as model.get_input_embeddings()."
            )
        self.layer = layer
        self.attr_method: Any = copy.copy(attr_method)
        self.attr_method.forward_func = _FromEmbeddings(attr_method.forward_func, layer)

    @property
    def last_estimate(self) -> Any:
        """The estimate of the latest call."""
        return self.attr_method.last_estimate

    def attribute(
        self,
        inputs: Tensor,
        baselines: int | Tensor = 0,
        target: Target = None,
        additional_forward_args: Any = None,
        feature_mask: Tensor | None = None,
        n_samples: int | None = None,
        **options: Any,
    ) -> Any:
        """Attribute the output to tokens.

        Two forward passes for each example find the embeddings; they are no part of `n_samples`.
        With `return_input_shape=False`, there is one number for each player, by its id.

        Parameters
        ----------
        inputs : Tensor, (B, …)
            Ids of tokens.
        baselines : int or Tensor, (1, …) or (B, …)
            Ids in place of absent tokens, such as that of padding.
        target, additional_forward_args, n_samples
            As in the `attribute` of the method.
        feature_mask : Tensor, (1, …) or (B, …), optional
            Whole numbers, equal for tokens that are one player, such as those of a word. By default
            each token is a player.
        **options
            Other arguments of the method's `attribute`.

        Returns
        -------
        Tensor, (B, …)
            Attributions of tokens; with several outputs, (B, output shape, …). All tokens of a
            group get the attribution of the group.
        Tensor
            With `return_standard_error`, the standard errors in the same form.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError
            If ids are no whole numbers, or shapes differ.
        ModelOutputError
            If the layer does not run once in a call, or returns no embedding for each token.
        """
        _check_ids("inputs", inputs)
        tokens = inputs.shape[1:]
        if isinstance(baselines, int):
            baselines = torch.full_like(inputs[:1], baselines)
        _check_ids("baselines", baselines, inputs)
        if feature_mask is None:
            feature_mask = torch.arange(tokens.numel()).reshape(1, *tokens)
        _check_ids("feature_mask", feature_mask, inputs)
        further = checked_additional(additional_forward_args, (inputs,))
        arguments = arguments_of_rows(further, np.arange(len(inputs)), len(inputs))
        find: _FromEmbeddings = self.attr_method.forward_func
        of_inputs = find.embeddings(inputs, arguments)
        of_baselines = find.embeddings(baselines.expand_as(inputs), arguments)
        players = torch.unique(feature_mask, return_inverse=True)[1]
        mask = players.reshape(*players.shape, *(1 for _ in of_inputs.shape[inputs.dim() :]))
        spread = options.pop("return_input_shape", True)
        found = self.attr_method.attribute(
            of_inputs,
            of_baselines,
            target,
            (PerExample(inputs), *further),
            mask.expand(-1, *of_inputs.shape[1:]),
            n_samples,
            return_input_shape=False,
            **options,
        )
        if not spread:
            return found

        def of_tokens(per_player: Tensor) -> Tensor:
            between = (1 for _ in per_player.shape[2:])
            index = players.reshape(len(players), *between, -1).to(per_player.device)
            of_each = torch.take_along_dim(per_player, index, dim=-1)
            return of_each.reshape(*per_player.shape[:-1], *tokens)

        return tuple(map(of_tokens, found)) if isinstance(found, tuple) else of_tokens(found)


class _FromEmbeddings(nn.Module):
    """A model as a function of the output of its embedding layer."""

    def __init__(self, forward_func: ForwardFunction, layer: nn.Module) -> None:
        super().__init__()
        self.forward_func, self.layer = forward_func, layer

    def forward(self, embeddings: Tensor, ids: Tensor, *arguments: Any) -> Any:
        """Return the output of the model whose layer returns these embeddings."""
        with self._layer_runs(embeddings):
            return self.forward_func(ids, *arguments)

    def embeddings(self, ids: Tensor, arguments: tuple[Any, ...]) -> Tensor:
        """Return the output of the layer for ids, (B, …)."""
        with torch.no_grad(), self._layer_runs() as found:
            self.forward_func(ids, *arguments)
        read, output = found[0]
        if not isinstance(output, Tensor) or output.shape[: ids.dim()] != ids.shape:
            shape = tuple(output.shape) if isinstance(output, Tensor) else type(output).__name__
            raise ModelOutputError(
                f"layer must return an embedding for each of the ids, {tuple(ids.shape)}; "
                f"{type(self.layer).__name__} returned {shape}. Pass the layer that reads the ids."
            )
        if any(isinstance(one, Tensor) and not torch.equal(one, ids) for one in read):
            raise ModelOutputError(
                f"layer must read the ids of the inputs; {type(self.layer).__name__} read others. "
                "The model changes their order or adds some. Pass those that the layer reads, and "
                "a model that takes them."
            )
        return output

    @contextmanager
    def _layer_runs(self, replaced: Tensor | None = None) -> Iterator[list[Any]]:
        """List what the layer reads and returns in this thread, or return other embeddings."""
        thread, runs = threading.get_ident(), []

        def hook(_layer: nn.Module, given: Any, named: Any, output: Any) -> Tensor | None:
            if threading.get_ident() != thread:
                return None
            if replaced is None and isinstance(output, Tensor):
                output = output.clone()  # the model may change it in place
            runs.append(((*given, *named.values())[:1], output))
            return replaced

        handle = self.layer.register_forward_hook(hook, with_kwargs=True)
        try:
            yield runs
        finally:
            handle.remove()
        if len(runs) != 1:
            raise ModelOutputError(
                f"The model ran the layer {type(self.layer).__name__} {len(runs)} times in one "
                "call, and it must run it once. Pass the layer that embeds the ids of the inputs, "
                "and a model that is not compiled or spread over devices."
            )


def _check_ids(name: str, ids: object, inputs: Tensor | None = None) -> None:
    """Refuse what is no tensor of whole numbers, or has not the shape of the inputs."""
    if not isinstance(ids, Tensor) or isinstance(ids, BaselineDistribution):
        kind = type(ids).__name__
    elif ids.is_floating_point() or ids.is_complex():
        kind = f"a tensor of {ids.dtype}"
    elif inputs is None and ids.dim() < 2:
        raise InvalidArgumentError(
            f"inputs must have the shape (examples, tokens); got {tuple(ids.shape)}. Pass "
            "ids[None] for one example."
        )
    elif inputs is not None and (
        ids.shape[1:] != inputs.shape[1:] or not ids.dim() or len(ids) not in (1, len(inputs))
    ):
        raise InvalidArgumentError(
            f"{name} must have the shape of inputs, {tuple(inputs.shape)}, or one row of it; got "
            f"{tuple(ids.shape)}."
        )
    else:
        return
    raise InvalidArgumentTypeError(
        f"{name} must be a tensor of whole numbers{' or one of them' * (name == 'baselines')}; "
        f"got {kind}."
    )
