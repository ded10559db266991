"""Feature masks as players, and back."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from torch import Tensor


@dataclass(frozen=True)
class FeatureGroups:
    """Which player each number of the inputs belongs to.

    Attributes
    ----------
    n_players : int
        How many different ids the mask holds; players are numbered in the order of their ids.
    players : tuple of tensors, (1 or B, size of one example) each
        The player of each number, for each input tensor; the first dimension is 1 where all
        examples have the same groups.
    is_plain : bool
        Whether there is one input tensor, of which each number is a player, in order.
    """

    n_players: int
    players: tuple[Tensor, ...]
    is_plain: bool

    @property
    def differ_by_example(self) -> bool:
        """Whether examples have groups of their own."""
        return any(len(players) > 1 for players in self.players)

    def spread(self, per_player: Tensor, rows: Tensor, index: int) -> Tensor:
        """Give each number of input tensor `index` what belongs to its player.

        Parameters
        ----------
        per_player : tensor, (P, M) or (P, M, K)
            Something for each player.
        rows : tensor, (P,)
            The example that each entry is of.
        index : int
            Which input tensor.

        Returns
        -------
        tensor, (P, size of one example) or (P, size of one example, K)
        """
        players = self.players[index]
        if len(players) > 1:
            own = players[rows]
            if per_player.dim() == 3:
                own = own[:, :, None].expand(-1, -1, per_player.shape[2])
            return per_player.gather(1, own)
        if self.is_plain:
            return per_player
        return per_player[:, players[0]]

    def any_of(self, flags: Tensor, index: int) -> Tensor:
        """Tell for each example which players have a true flag in input tensor `index`, (B, M)."""
        players = self.players[index].expand(len(flags), -1)
        hits = torch.zeros(len(flags), self.n_players, device=flags.device)
        return hits.scatter_add(1, players, flags.to(hits.dtype)) > 0


def from_feature_mask(
    feature_mask: Tensor | tuple[Tensor, ...] | None, inputs: tuple[Tensor, ...]
) -> FeatureGroups:
    """Read captum's `feature_mask`; without one, each number of an example is a player.

    Ids may be any whole numbers, in any order, with gaps. The same id in several tensors is the
    same player. A player that an example does not have gets 0 there.
    """
    if feature_mask is None:
        masks = _consecutive(inputs)
    else:
        masks = _checked(feature_mask, inputs)
    ids, positions = torch.unique(torch.cat([m.reshape(-1) for m in masks]), return_inverse=True)
    if len(ids) == 0:
        raise InvalidArgumentError("inputs must hold at least one number for each example.")
    parts = torch.split(positions, [m.numel() for m in masks])
    players = tuple(part.reshape(m.shape) for part, m in zip(parts, masks, strict=True))
    in_order = torch.arange(len(ids), device=positions.device)
    return FeatureGroups(len(ids), players, torch.equal(positions, in_order))


def _consecutive(inputs: tuple[Tensor, ...]) -> list[Tensor]:
    masks, first = [], 0
    for tensor in inputs:
        size = tensor[0].numel()
        masks.append(torch.arange(first, first + size, device=inputs[0].device)[None])
        first += size
    return masks


def _checked(feature_mask: Tensor | tuple[Tensor, ...], inputs: tuple[Tensor, ...]) -> list[Tensor]:
    masks = feature_mask if isinstance(feature_mask, tuple) else (feature_mask,)
    if len(masks) != len(inputs):
        raise InvalidArgumentError(
            f"feature_mask must hold one tensor for each of the {len(inputs)} inputs; got "
            f"{len(masks)}."
        )
    return [
        _flat(mask, tensor, index)
        for index, (mask, tensor) in enumerate(zip(masks, inputs, strict=True))
    ]


def _flat(mask: Tensor, tensor: Tensor, index: int) -> Tensor:
    """Return one mask as (1 or B, size of one example)."""
    if not isinstance(mask, Tensor):
        raise InvalidArgumentTypeError(
            f"feature_mask[{index}] must be a tensor; got {type(mask).__name__}."
        )
    if mask.is_floating_point() or mask.is_complex() or mask.dtype == torch.bool:
        raise InvalidArgumentTypeError(
            f"feature_mask[{index}] must hold whole numbers; got {mask.dtype}. Use mask.long()."
        )
    wide = mask.reshape((1,) * (tensor.dim() - mask.dim()) + tuple(mask.shape))
    fits = wide.dim() == tensor.dim() and all(
        have in (1, want) for have, want in zip(wide.shape, tensor.shape, strict=True)
    )
    if not fits:
        raise InvalidArgumentError(
            f"feature_mask[{index}] has shape {tuple(mask.shape)}, which does not broadcast to "
            f"its input's {tuple(tensor.shape)}."
        )
    own = wide.expand(wide.shape[0], *tensor.shape[1:])
    return own.reshape(wide.shape[0], tensor[0].numel()).to(tensor.device)
