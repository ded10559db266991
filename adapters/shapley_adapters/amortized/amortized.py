"""The amortized explainer that both hosts translate to and from."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
from torch import nn

from ..array_types import AttributionArray, BoolArray, IntArray, ValueArray
from ..coalitions.tables import CoalitionTable, end_points
from ..errors import InvalidArgumentError
from ..games.evaluation import Evaluator, Request
from ..games.game import Game
from ..pipeline.result import Estimate
from .checkpoints import network_digest
from .efficiency_gaps import warn_of_rows
from .explainer_network import ExplainerNetwork, check_finite
from .fingerprints import Fingerprint
from .fitting import outside_inference_mode, seeded
from .networks import build
from .objectives import TARGETS
from .progress import Progress
from .storage import Description, Saved, load, save
from .training import Trained, Training, train
from .training_rows import SomeRows, TrainingRows

_ROUNDING = 1e-3
"""Of v(∅), or of the rise from it: by how much it may differ from what it was in training."""


@dataclass(frozen=True)
class Explained:
    """Attributions, and by how much the network's own missed the sum that they should have.

    Attributes
    ----------
    estimate : Estimate
        The attributions.
    efficiency_gaps : array, (R, K)
        v(N) − v(∅) − Σφ of what the network said; NaN where v(N) was not evaluated.
    unlike_rows : array of int
        The rows whose gaps are far beyond those of held-out rows, and which were warned of.
    """

    estimate: Estimate
    efficiency_gaps: ValueArray
    unlike_rows: IntArray


@dataclass(frozen=True)
class AmortizedShapley:
    """A network trained to tell Shapley values.

    Explaining a row costs one pass of the network, and an evaluation of v(∅), for the first row
    only where it is the same for all; with `efficient`, one of v(N). Biased: the network's error is
    its bias, and what `trained.history` says of held-out rows is its size.
    """

    saved: Saved

    @property
    def trained(self) -> Trained:
        """The network and the history of its training."""
        return self.saved.trained

    @property
    def evaluations(self) -> int:
        """Coalitions evaluated for the rows trained on, v(∅) and v(N) included."""
        return self.trained.evaluations

    @property
    def validation_evaluations(self) -> int:
        """The same for the rows that were held out."""
        return self.trained.validation_evaluations

    @classmethod
    def fit(
        cls,
        game: Game,
        inputs: Any,
        training: Training,
        network: str | nn.Module = "mlp",
        options: Mapping[str, Any] | None = None,
        n_real: int | None = None,
        progress: Progress | None = None,
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
            A name of `NETWORKS`, or a module from inputs to (rows, players, outputs), of which a
            copy is trained.
        options : mapping, optional
            Options of a network given by its name.
        n_real : int, optional
            How many of the rows, the first ones, are real; all by default.
        progress : Progress, optional
            Shows how far the training is; nothing by default.

        Raises
        ------
        InvalidArgumentError
            If inputs hold NaN or infinite numbers, the network does not fit them, or `folder` holds
            checkpoints of another training.
        """
        check_finite(inputs)
        with outside_inference_mode():
            rows = TrainingRows(game, inputs, n_real, progress or Progress())
            return cls._fitted(rows, training, network, dict(options or {}))

    @classmethod
    def _fitted(
        cls, rows: TrainingRows, training: Training, network: str | nn.Module, given: dict[str, Any]
    ) -> AmortizedShapley:
        n_players = rows.game.n_players
        shape, n_outputs = list(rows.inputs.shape[1:]), rows.rise.shape[1]
        if isinstance(network, nn.Module):
            # What it is given is in single precision.
            name, bare = type(network).__name__, copy.deepcopy(network).float()
        else:
            name = network
            bare = seeded(training.seed, lambda: build(name, shape, n_players, n_outputs, given))
        explainer = ExplainerNetwork.around(bare, rows.inputs, rows.rise, rows.empty)
        _check_shape(explainer, rows, n_players)
        trained = train(rows, explainer, training, network_digest(name, given, bare))
        about = Description(
            name, given, shape, n_players, n_outputs, training.target, training.seed
        )
        return cls(Saved(trained, about, Fingerprint.of(rows.inputs, rows.empty, rows.rise)))

    def with_host(self, host: Mapping[str, Any]) -> AmortizedShapley:
        """Return this with what the host wants to find again in the file, such as JSON holds."""
        about = replace(self.saved.description, host=dict(host))
        return AmortizedShapley(replace(self.saved, description=about))

    def explain(
        self, game: Game, inputs: Any, efficient: bool, batch_size: int | None = None
    ) -> Explained:
        """Explain all rows of `game`; there are no standard errors.

        Raises
        ------
        InvalidArgumentError
            If the rows have another shape than those of the training or hold NaN, or v(∅) is not
            what it was for all of those.

        Warns
        -----
        ShapleyExtWarning
            With `efficient`, of rows whose efficiency gaps are far beyond those of held-out rows.
        """
        self.check(game.n_players, inputs.shape[1:])
        active = game.active_players()
        parts = list(self.trained.network.explained(inputs, active, batch_size))
        values: AttributionArray = np.concatenate(parts)
        empty, grand, n_evaluations = self._ends(game, efficient)
        self._check_reference(empty)
        gaps = np.full_like(empty, np.nan)
        unlike: IntArray = np.zeros(0, dtype=np.intp)
        if efficient:
            gaps = grand - empty - values.sum(axis=1)
            unlike = self.trained.gaps.rows_beyond(gaps)
            warn_of_rows(unlike, gaps, self.trained.gaps)
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
            evaluations=n_evaluations,
            backward_passes=np.zeros(n_rows, dtype=np.intp),
            cooperators=np.full(n_rows, "", dtype="U10"),
            orders=np.full(n_rows, -1, dtype=np.intp),
            seed=self.saved.description.seed,
            method="trained network",
        )
        return Explained(estimate, gaps, unlike)

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
    def load(
        cls,
        path: Path | str,
        network: nn.Module | None = None,
        targets: Sequence[str] = TARGETS,
    ) -> AmortizedShapley:
        """Read what `save` wrote.

        `network` is needed where it was a module of the user's own. A network that was trained
        towards none of `targets` is refused.
        """
        return cls(load(path, network, targets))

    def _ends(self, game: Game, efficient: bool) -> tuple[ValueArray, ValueArray, IntArray]:
        """Return v(∅) and v(N) of all rows, and the evaluations of each.

        v(∅) of the first row stands for all where it was the same for all rows of the training;
        without `efficient`, v(∅) stands for v(N).
        """
        nobody, everyone = end_points(game.n_players)
        is_common = bool(np.isfinite(self.trained.network.empty.numpy()).all())
        rows: IntArray = np.arange(game.n_rows)
        asked = rows[:1] if is_common else rows
        requests = [Request(asked, _table_of(nobody))]
        evaluations = np.isin(rows, asked).astype(np.intp)
        if efficient:
            requests.append(Request(rows, _table_of(everyone)))
            evaluations += 1
        ends = [values[:, 0] for values in Evaluator(game)(requests)]
        empty = np.broadcast_to(ends[0], (game.n_rows, ends[0].shape[1])).copy()
        return empty, ends[-1] if efficient else empty, evaluations

    def _check_reference(self, empty: ValueArray) -> None:
        """Refuse v(∅), (R, K), other than it was for all rows of the training."""
        network = self.trained.network
        known, scale = network.empty.numpy(), network.scale.double().numpy()
        if empty.shape[1] != len(known):
            raise InvalidArgumentError(
                f"The network was trained on a model with {len(known)} outputs; this one has "
                f"{empty.shape[1]}."
            )
        gaps = np.nan_to_num(np.abs(empty - known))  # NaN: it was not the same
        if (gaps > _ROUNDING * np.maximum(np.abs(np.nan_to_num(known)), scale)).any():
            row, output = np.unravel_index(np.argmax(gaps), gaps.shape)
            raise InvalidArgumentError(
                "The reference is not that of the training: where all features are absent, the "
                f"model returns {empty[row, output]:.6g}, and it returned {known[output]:.6g} when "
                "the network was trained. Pass the same baselines (captum) or masker (shap), or "
                "train anew."
            )


def _table_of(coalition: BoolArray) -> CoalitionTable:
    """Return the same single coalition for all rows."""
    return CoalitionTable(coalition[None, None], np.array([1]))


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
