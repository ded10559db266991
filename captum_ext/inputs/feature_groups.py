"""Conversion of feature masks to players, and of results per player to the shape of the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeVar

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor

from shapley_adapters.array_types import IntArray
from shapley_adapters.errors import InvalidArgumentError

from .checks import checked_plain, parts_of

ScalarT = TypeVar("ScalarT", bound=np.generic)

_MAX_GAPS = 100
"""Largest number of columns per id, for results with a column for every id."""


@dataclass(frozen=True)
class FeatureGroups:
    """The player of each number of the inputs.

    Attributes
    ----------
    n_players : int
        Number of different ids in the mask; players are numbered in the order of their ids.
    players : tuple of arrays, (1 or B, size of one example) each
        The player of each number, for each input tensor; the first dimension is 1 if all examples
        have the same groups.
    is_plain : bool
        Whether there is one input tensor and each of its numbers is a player, in order.
    ids : array, (n_players,)
        The id of each player in the mask.
    """

    n_players: int
    players: tuple[IntArray, ...]
    is_plain: bool
    ids: IntArray

    @property
    def differ_by_example(self) -> bool:
        """Whether examples have different groups."""
        return any(len(players) > 1 for players in self.players)

    def players_of_one_example(self) -> IntArray | None:
        """Return the player of each number of all inputs; None if examples differ in groups."""
        if self.differ_by_example:
            return None
        return np.concatenate([players[0] for players in self.players])

    def columns(self, per_player: npt.NDArray[ScalarT]) -> npt.NDArray[ScalarT]:
        """Return (R, columns, K), with a column for each id from the smallest to the largest."""
        offsets = self.ids - self.ids[0]
        shape = len(per_player), int(offsets[-1]) + 1, per_player.shape[2]
        columns = np.zeros(shape, per_player.dtype)
        columns[:, offsets] = per_player
        return columns

    def check_columns(self) -> None:
        """Refuse masks for which most columns would be empty.

        Raises
        ------
        InvalidArgumentError
            If there are few ids between the smallest and the largest.
        """
        if int(self.ids[-1]) - int(self.ids[0]) >= _MAX_GAPS * self.n_players:
            raise InvalidArgumentError(
                f"return_input_shape=False needs a column for each id of feature_mask from "
                f"{self.ids[0]} to {self.ids[-1]}, but there are only {self.n_players} ids. Number "
                "them without gaps: torch.unique(feature_mask, return_inverse=True)[1]."
            )

    def spread(
        self, per_player: npt.NDArray[ScalarT], rows: IntArray, index: int
    ) -> npt.NDArray[ScalarT]:
        """Return the entry of its player for each number of input tensor `index`.

        Parameters
        ----------
        per_player : array, (P, M) or (P, M, K)
            Entries per player.
        rows : array, (P,)
            The example of each entry.
        index : int
            Index of the input tensor.

        Returns
        -------
        array, (P, size of one example) or (P, size of one example, K)
        """
        players = self.players[index]
        if self.is_plain:
            return per_player
        if len(players) == 1:
            return per_player[:, players[0]]
        players_of_rows = players[rows]
        return per_player[np.arange(len(players_of_rows))[:, None], players_of_rows]

    def layouts(self, shapes: Sequence[tuple[int, ...]]) -> list[list[IntArray]]:
        """Return the player of each number of each input, per example or once for all of them.

        Parameters
        ----------
        shapes : sequence of tuples
            The shapes of one example of each input.
        """
        n_rows = max(len(players) for players in self.players)
        return [
            [
                players[row if len(players) > 1 else 0].reshape(shape)
                for players, shape in zip(self.players, shapes, strict=True)
            ]
            for row in range(n_rows)
        ]

    def spread_tensor(self, per_player: Tensor, rows: IntArray, index: int) -> Tensor:
        """Do the same as `spread` for a tensor, (P, M), on its device and with derivatives."""
        players = self.players[index]
        if self.is_plain:
            return per_player
        players_of_rows = torch.as_tensor(players if len(players) == 1 else players[rows])
        return per_player.gather(
            1, players_of_rows.to(per_player.device).expand(len(per_player), -1)
        )


def from_feature_mask(
    feature_mask: Tensor | tuple[Tensor, ...] | None, inputs: tuple[Tensor, ...]
) -> FeatureGroups:
    """Convert captum's `feature_mask`; without one, each number of an example is a player.

    Ids may be any whole numbers, in any order, with gaps. The same id in several tensors is the
    same player. A player that an example does not have gets 0 for this example.
    """
    if feature_mask is None:
        ends = np.cumsum([tensor[0].numel() for tensor in inputs])
        masks = [of_input[None] for of_input in np.split(np.arange(ends[-1]), ends[:-1])]
    else:
        pairs = zip(parts_of("feature_mask", feature_mask, len(inputs)), inputs, strict=True)
        masks = [_flat(*pair, f"feature_mask[{index}]") for index, pair in enumerate(pairs)]
    ids, positions = np.unique(np.concatenate([m.ravel() for m in masks]), return_inverse=True)
    if len(ids) == 0:
        raise InvalidArgumentError("inputs must hold at least one number for each example.")
    parts = np.split(positions, np.cumsum([m.size for m in masks])[:-1])
    players = tuple(part.reshape(m.shape) for part, m in zip(parts, masks, strict=True))
    is_plain = len(inputs) == 1 and np.array_equal(players[0], np.arange(len(ids))[None])
    return FeatureGroups(len(ids), players, is_plain, ids)


def _flat(mask: Tensor, tensor: Tensor, name: str) -> IntArray:
    """Return one mask as (1 or B, size of one example)."""
    mask = checked_plain(name, mask)
    if mask.is_floating_point() or mask.dtype == torch.bool:
        whole = mask.long()
        if (differ := whole.to(mask.dtype) != mask).any():
            raise InvalidArgumentError(
                f"{name} must hold whole numbers, the ids of features; it holds "
                f"{mask[differ][0].item()}. Number the groups: torch.unique(mask, "
                "return_inverse=True)[1]."
            )
        mask = whole
    wide = mask.reshape((1,) * (tensor.dim() - mask.dim()) + tuple(mask.shape))
    fits = wide.dim() == tensor.dim() and all(
        have in (1, want) for have, want in zip(wide.shape, tensor.shape, strict=True)
    )
    if not fits:
        raise InvalidArgumentError(
            f"{name} has shape {tuple(mask.shape)}, which does not broadcast to "
            f"its input's {tuple(tensor.shape)}. Pass a label for each entry of an example, in the "
            f"shape {(1, *tensor.shape[1:])}."
        )
    expanded = wide.expand(wide.shape[0], *tensor.shape[1:])
    return expanded.reshape(wide.shape[0], tensor[0].numel()).cpu().numpy()
