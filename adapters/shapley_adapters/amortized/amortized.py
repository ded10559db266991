"""The amortized explainer that both hosts translate to and from."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from ..array_types import AttributionArray, BoolArray, IntArray, ValueArray
from ..batched_evaluation import Evaluator, Request
from ..coalition_sets import CoalitionTable, end_points
from ..errors import InvalidArgumentError
from ..estimates import Estimate
from ..games import Game
from .checkpoints import network_digest
from .explainer_network import ExplainerNetwork, check_finite
from .fitting import seeded
from .networks import build
from .storage import Description, Fingerprint, Saved, load, save
from .training import SomeRows, Trained, Training, TrainingRows, train


@dataclass(frozen=True)
class Explained:
    """Attributions, and by how much the network's own missed the sum that they should have.

    Attributes
    ----------
    estimate : Estimate
        The attributions.
    efficiency_gaps : array, (R, K)
        v(N) − v(∅) − Σφ of what the network said; NaN where v(N) was not evaluated.
    """

    estimate: Estimate
    efficiency_gaps: ValueArray


@dataclass(frozen=True)
class AmortizedShapley:
    """A network trained to tell Shapley values.

    Explaining a row costs one pass of the network, and an evaluation of v(∅) unless it is the same
    for all rows; with `efficient`, one of v(N). Biased: the network's error is its bias, and what
    `trained.history` says of held-out rows is its size.
    """

    saved: Saved

    @property
    def trained(self) -> Trained:
        """The network and the history of its training."""
        return self.saved.trained

    @classmethod
    def fit(
        cls,
        game: Game,
        inputs: Any,
        training: Training,
        network: str | nn.Module = "mlp",
        options: Mapping[str, Any] | None = None,
        n_real: int | None = None,
    ) -> AmortizedShapley:
        """Train a network on the games of some rows, given what it sees of them, (R, …).

        Parameters
        ----------
        game : Game
            The games of all training rows.
        inputs : array or Tensor, (R, …)
            What the network sees of the rows.
        training : Training
            How to train.
        network : str or Module
            A name of `NETWORKS`, or a module from inputs to (rows, players, outputs).
        options : mapping, optional
            Options of a network given by its name.
        n_real : int, optional
            How many of the rows, the first ones, are real; all by default.

        Raises
        ------
        InvalidArgumentError
            If inputs hold NaN or infinite numbers, the network does not fit them, or `folder` holds
            checkpoints of another training.
        """
        check_finite(inputs)
        rows = TrainingRows(game, inputs, n_real)
        shape, n_outputs = list(inputs.shape[1:]), rows.rise.shape[1]
        given = dict(options or {})
        if isinstance(network, nn.Module):
            name, bare = type(network).__name__, network
        else:
            name = network
            bare = seeded(
                training.seed, lambda: build(name, shape, game.n_players, n_outputs, given)
            )
        explainer = ExplainerNetwork.around(bare, inputs, rows.rise, rows.empty)
        _check_shape(explainer, rows, game.n_players)
        trained = train(rows, explainer, training, network_digest(name, given, bare))
        about = Description(name, given, shape, game.n_players, n_outputs, training.target)
        return cls(Saved(trained, about, Fingerprint.of(inputs, rows.empty, rows.rise)))

    def explain(
        self, game: Game, inputs: Any, efficient: bool, batch_size: int | None = None
    ) -> Explained:
        """Explain all rows of `game`; there are no standard errors."""
        self.check(game.n_players, inputs.shape[1:])
        active = game.active_players()
        parts = list(self.trained.network.explained(inputs, active, batch_size))
        values: AttributionArray = np.concatenate(parts)
        empty, grand, n_evaluations = self._ends(game, efficient)
        gaps = np.full_like(empty, np.nan)
        if efficient:
            gaps = grand - empty - values.sum(axis=1)
            values = with_residual(values, gaps, active)
        else:
            grand = empty + values.sum(axis=1)
        n_rows = game.n_rows
        estimate = Estimate(
            values=values,
            standard_errors=np.full(values.shape, np.nan),
            degrees_of_freedom=np.full(values.shape, np.inf),
            empty_values=empty,
            grand_values=grand,
            evaluations=np.full(n_rows, n_evaluations),
            backward_passes=np.zeros(n_rows, dtype=np.intp),
            cooperators=np.full(n_rows, "", dtype="U10"),
            orders=np.full(n_rows, -1, dtype=np.intp),
            seed=0,
        )
        return Explained(estimate, gaps)

    def stream(
        self, inputs: Any, active: BoolArray, batch_size: int | None = None, first: int = 0
    ) -> Iterator[AttributionArray]:
        """Yield the network's attributions batch after batch; costs no evaluations.

        `first` is the number of the first row, where inputs are part of more, for messages.
        """
        self.check(active.shape[1], inputs.shape[1:])
        yield from self.trained.network.explained(inputs, active, batch_size, first)

    def check(self, n_players: int, input_shape: Any) -> None:
        """Refuse rows of another shape than those that were trained on."""
        about = self.saved.description
        if list(input_shape) != about.input_shape or n_players != about.n_players:
            raise InvalidArgumentError(
                f"The explainer was trained on rows of shape {tuple(about.input_shape)} with "
                f"{about.n_players} players; these have shape {tuple(input_shape)} and "
                f"{n_players} players."
            )

    def save(self, path: Path | str) -> None:
        """Write everything to a file; see `load`."""
        save(path, self.saved)

    @classmethod
    def load(cls, path: Path | str, network: nn.Module | None = None) -> AmortizedShapley:
        """Read what `save` wrote; `network` is needed where it was a module of the user's own."""
        return cls(load(path, network))

    def _ends(self, game: Game, efficient: bool) -> tuple[ValueArray, ValueArray, int]:
        """Return v(∅) and v(N), as far as they are needed, and the evaluations of a row."""
        everyone, nobody = end_points(game.n_players)[::-1]
        known = self.trained.network.empty.numpy()
        is_known = bool(np.isfinite(known).all())
        wanted = [c for c, use in ((nobody, not is_known), (everyone, efficient)) if use]
        rows: IntArray = np.arange(game.n_rows)
        values = np.zeros((game.n_rows, 0, len(known)))
        if wanted:
            table = CoalitionTable(np.array(wanted)[None], np.array([len(wanted)]))
            (values,) = Evaluator(game)([Request(rows, table)])
        empty = np.tile(known, (game.n_rows, 1)) if is_known else values[:, 0]
        return empty, values[:, -1] if efficient else empty, len(wanted)


def with_residual(
    values: AttributionArray, gaps: ValueArray, active: BoolArray
) -> AttributionArray:
    """Share gaps, (R, K), equally among the active players."""
    share = active[:, :, None] / np.maximum(active.sum(axis=1), 1)[:, None, None]
    shared: AttributionArray = values + share * gaps[:, None]
    return shared


def ends_of(game: Game, n_rows: int) -> ValueArray:
    """Return v(∅) and v(N) of the first rows, (R, 2, K)."""
    some = SomeRows(game, np.arange(n_rows))
    table = CoalitionTable(end_points(game.n_players)[None], np.array([2]))
    (values,) = Evaluator(some)([Request(np.arange(n_rows), table)])
    return values


def _check_shape(explainer: ExplainerNetwork, rows: TrainingRows, n_players: int) -> None:
    import torch

    some = np.arange(min(2, rows.game.n_rows))
    with torch.no_grad():
        told = explainer.network(rows.batch(some))
    wanted = (len(some), n_players, rows.rise.shape[1])
    if tuple(told.shape) != wanted:
        raise InvalidArgumentError(
            f"network must return (rows, players, outputs) = {wanted} for {len(some)} rows; it "
            f"returned {tuple(told.shape)}."
        )
