"""The graph that an exported network computes: attributions that sum to a given total."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt
import torch
from torch import Tensor, nn

from ..array_types import IntArray
from .explainer_network import ExplainerNetwork, tensor_of


@dataclass(frozen=True)
class ReferenceInputs:
    """The values of absent features, as the network would see them.

    Attributes
    ----------
    rows : array, (B, …)
        One or several reference rows; the model's output is averaged over several.
    players : array, (…)
        The player of each number of a row.
    """

    rows: npt.NDArray[np.generic]
    players: IntArray


class ExportedGraph(nn.Module):
    """A trained network with all steps before and after it that need no model.

    Parameters
    ----------
    explainer : ExplainerNetwork
        The trained network, which standardises its inputs and scales its outputs.
    reference : ReferenceInputs, optional
        Players whose numbers all equal the reference get exactly 0. None: only the players that
        `active` excludes do.
    """

    first: Tensor
    varies: Tensor
    players: Tensor

    def __init__(self, explainer: ExplainerNetwork, reference: ReferenceInputs | None) -> None:
        super().__init__()
        self.explainer = explainer
        self.has_reference = reference is not None
        rows = torch.zeros(1, 1)
        players = torch.zeros(1, dtype=torch.long)
        if reference is not None:
            rows = tensor_of(reference.rows).flatten(1)
            players = tensor_of(reference.players).reshape(-1).long()
        self.register_buffer("first", rows[:1].clone())
        self.register_buffer("varies", (rows != rows[:1]).any(dim=0, keepdim=True))
        self.register_buffer("players", players)

    def forward(self, rows: Tensor, active: Tensor, total: Tensor) -> tuple[Tensor, Tensor]:
        """Return attributions, (B, M, K), and the gaps that were shared, (B, K).

        Parameters
        ----------
        rows : Tensor, (B, …)
            The network's inputs.
        active : bool Tensor, (B, M)
            The players that may get an attribution; all, if nothing else is known.
        total : Tensor, (B, K)
            v(N) − v(∅), to which the attributions shall sum; NaN for the network's own sum.
        """
        if self.has_reference:
            active = active & self._differing(rows, active)
        attributions = self.explainer(rows, active).double()
        gaps = total - attributions.sum(dim=1)
        counts = active.sum(dim=1, keepdim=True).clamp(min=1)
        shared = torch.where(torch.isnan(gaps), torch.zeros_like(gaps), gaps) / counts
        return attributions + shared[:, None] * active[:, :, None], gaps

    def results(self, inputs: Sequence[Tensor]) -> list[npt.NDArray[np.float64]]:
        """Return the attributions and the gaps as arrays."""
        with torch.no_grad():
            return [result.numpy() for result in self(*inputs)]

    def _differing(self, rows: Tensor, active: Tensor) -> Tensor:
        """Return the players with a number other than in the reference, (B, M)."""
        differs = (rows.flatten(1) != self.first) | self.varies
        none = torch.zeros_like(active, dtype=torch.float32)
        return none.index_add(1, self.players, differs.float()) > 0


def example_inputs(
    probes: Tensor, n_players: int, n_outputs: int, n_rows: int
) -> tuple[Tensor, Tensor, Tensor]:
    """Return inputs of the graph for `n_rows` rows, which repeat the stored rows."""
    rows = probes[torch.arange(n_rows) % len(probes)]
    rows = rows.float() if rows.is_floating_point() else rows
    active = torch.ones(n_rows, n_players, dtype=torch.bool)
    total = torch.linspace(-1.0, 1.0, n_rows * n_outputs, dtype=torch.float64)
    return rows, active, total.reshape(n_rows, n_outputs)
