"""Training networks that explain, on Lightning."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

import numpy as np
import torch
from torch import Tensor

from ..arguments import checked_choice, checked_count
from ..array_types import BoolArray, IntArray
from ..coalitions.sizes import kernel_mass, kernel_total, random_subsets
from ..coalitions.tables import CoalitionTable
from ..estimators.least_squares.regression import LeastSquares
from ..estimators.odd_gp.estimator import OddGP
from ..games.evaluation import Evaluator, Request
from ..pipeline.estimate import estimate
from ..pipeline.settings import Settings
from .checkpoints import Subject, digest
from .efficiency_gaps import HeldOutGaps
from .explainer_network import ExplainerNetwork
from .fitting import FittedModule, Schedule, fit
from .held_out_values import HeldOutValues, held_out_values
from .objectives import LABELS, TARGETS, efficient, label_loss, stochastic_loss
from .training_rows import SomeRows, TrainingRows


class TrainingOptions(Protocol):
    """What both hosts' users are asked; `Training` and `Schedule` say what it means."""

    targets: str
    evaluations: int | None
    paired: bool
    epochs: int
    rows_per_step: int
    learning_rate: float | None
    validation_share: float
    validation_evaluations: int | None
    patience: int | None
    seed: int
    folder: str | Path | None
    trainer_options: dict[str, Any] | None


@dataclass(frozen=True)
class Training(Schedule):
    """How to train; `Schedule` says how long and how fast.

    Attributes
    ----------
    target : {"oddgp", "leastsquares", "controlled", "simsemivalue", "fastshap"}
        What the network is trained towards. `"oddgp"` and `"leastsquares"` are estimates made once
        for each row; the others draw coalitions anew in each epoch: `"simsemivalue"` is SimSHAP
        (Zhang et al., 2023, Eq. 14), `"controlled"` the same target with the network's own additive
        game as control variate, which leaves its expectation and takes most of its variance,
        `"fastshap"` the loss of FastSHAP (Eq. 7).
    evaluations : int, optional
        Coalitions evaluated for each row: in all for labels, in each epoch for the other targets.
        By default 8 a player, at least 64, for labels, and 32 in each epoch.
    paired : bool
        Whether drawn coalitions come with their complements.
    validation_evaluations : int, optional
        Budget of each held-out row. By default, all held-out rows together cost at most a quarter
        of the training's evaluations: each gets up to all coalitions (32 a player beyond 12
        players), and at least 8 a player and 64; where that is too much for all of them, a random
        part of at least 16 gets values.
    """

    target: str = "oddgp"
    evaluations: int | None = None
    paired: bool = True
    validation_evaluations: int | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_choice("target", self.target, TARGETS)
        if self.evaluations is not None:
            checked_count("evaluations", self.evaluations, minimum=4)
        if self.validation_evaluations is not None:
            checked_count("validation_evaluations", self.validation_evaluations)

    @classmethod
    def of(cls, options: TrainingOptions) -> Training:
        """Return the training that a user asked for; errors speak of the options by their names."""
        return cls(
            target=options.targets,
            evaluations=options.evaluations,
            paired=options.paired,
            epochs=checked_count("epochs", options.epochs),
            batch_size=checked_count("rows_per_step", options.rows_per_step),
            learning_rate=options.learning_rate,
            validation_share=options.validation_share,
            validation_evaluations=options.validation_evaluations,
            patience=options.patience,
            seed=options.seed,
            folder=options.folder,
            trainer_options=options.trainer_options or {},
        )

    def evaluations_per_row(self, n_players: int) -> int:
        """Return how many coalitions a row costs, in all or in an epoch."""
        if self.evaluations is not None:
            return self.evaluations
        return max(64, 8 * n_players) if self.target in LABELS else 32

    def evaluations_in_all(self, n_players: int, n_rows: int) -> int:
        """Return how many evaluations training on so many rows costs at most."""
        n_times = 1 if self.target in LABELS else self.epochs
        return n_rows * (2 + n_times * self.evaluations_per_row(n_players))


@dataclass(frozen=True)
class Record:
    """What an epoch of training left.

    Attributes
    ----------
    epoch : int
        Counted from 1.
    evaluations : int
        Coalitions evaluated so far, labels and end points included, validation apart.
    loss : float
        Mean loss of the epoch, in units of the targets' squares.
    absolute_error, squared_error : float
        On held-out rows, the mean over rows and outputs of the sum over players of the error's
        absolute value, and the root of the mean sum of its squares.
    """

    epoch: int
    evaluations: int
    loss: float
    absolute_error: float
    squared_error: float


@dataclass(frozen=True)
class Trained:
    """A trained network and its history.

    Attributes
    ----------
    network : ExplainerNetwork
        With the weights of the epoch of least validation error.
    history : list of Record
        One for each epoch.
    evaluations, validation_evaluations : int
        Coalitions evaluated for the rows trained on, and for those held out; v(∅) and v(N) of all
        rows are among them.
    gaps : HeldOutGaps
        By how much the network misses the sums of held-out rows.
    """

    network: ExplainerNetwork
    history: list[Record]
    evaluations: int
    validation_evaluations: int
    gaps: HeldOutGaps


def train(
    rows: TrainingRows, network: ExplainerNetwork, training: Training, described: str
) -> Trained:
    """Train `network`, and return it with the weights of its best epoch.

    Costs two evaluations for each row, those of `Training.evaluations`, and those of validation.
    `described` tells the network from others where checkpoints of one are found.
    """
    held_out, kept = training.split(rows.n_real or rows.game.n_rows, rows.game.n_rows)
    valued = held_out_values(rows, held_out, training, len(kept))
    subject = Subject(
        training.options(),
        {"network": described, "the set of rows": digest(rows.inputs, rows.n_real, rows.active)},
        {
            "v(∅)": rows.empty,
            "v(N)": rows.empty + rows.rise,
            "values of the held-out rows": valued.values,
        },
    )
    module = _Module(rows, network, training, kept, valued, subject)
    fit(module, rows.progress)
    gaps = HeldOutGaps.of(network, rows, held_out)
    n_validation = valued.evaluations + 2 * len(held_out)
    return Trained(network, module.history, module.evaluations, n_validation, gaps)


class _Module(FittedModule):
    """One epoch after the other. All that is drawn depends on the seed, the epoch and the row."""

    network: ExplainerNetwork
    schedule: Training

    def __init__(
        self,
        rows: TrainingRows,
        network: ExplainerNetwork,
        training: Training,
        kept: IntArray,
        valued: HeldOutValues,
        subject: Subject,
    ) -> None:
        super().__init__(network, training, kept, valued.rows, subject)
        self.rows, self._wanted = rows, torch.as_tensor(valued.values)
        self.history: list[Record] = []
        self.evaluations = 2 * len(kept)
        self.labels: Tensor | None = None
        self._evaluate = Evaluator(rows.game)
        self._is_grad_enabled = torch.is_grad_enabled()  # for the model, as the caller has it
        self._losses: list[float] = []
        self._errors: list[Tensor] = []

    # --- steps ---

    def prepare(self, checkpoint: Mapping[str, Any] | None) -> None:
        """Compute the labels, if there are any and the checkpoint does not hold them."""
        if self.schedule.target in LABELS and checkpoint is None:
            self.labels, cost = _labels(self.rows, self.kept, self.schedule)
            self.evaluations += cost

    def training_step(self, places: Tensor, _: int) -> Tensor:
        rows = places.cpu().numpy()
        told = self._told(rows)
        scale = self.network.scale
        if self.labels is not None:
            at = np.searchsorted(self.kept, rows)
            wanted = self.labels[at].to(told)
            rise = torch.as_tensor(self.rows.rise[rows]).to(told)
            active = torch.as_tensor(self.rows.active[rows], device=told.device)
            loss = label_loss(told / scale, wanted / scale, rise / scale, active)
        else:
            loss = self._stochastic_loss(rows, told / scale, scale)
        self._losses.append(float(loss.detach()))
        return loss

    def _told(self, rows: IntArray) -> Tensor:
        active = torch.as_tensor(self.rows.active[rows], device=self.device)
        told: Tensor = self.network(self.rows.batch(rows).to(self.device), active)
        return told

    def _stochastic_loss(self, rows: IntArray, told: Tensor, scale: Tensor) -> Tensor:
        options = self.schedule
        n_players = self.rows.game.n_players
        n = options.evaluations_per_row(n_players)
        coalitions = _drawn(self.rows.active[rows], rows, n, options, self.current_epoch)
        table = CoalitionTable(coalitions, np.full(len(rows), n))
        with torch.set_grad_enabled(self._is_grad_enabled):
            (values,) = self._evaluate([Request(rows, table)])
        self.evaluations += n * len(rows)
        counts = self.rows.active[rows].sum(axis=1)
        totals = np.array([kernel_total(int(count)) if count > 1 else 0.0 for count in counts])

        def tensor(array: Any) -> Tensor:
            return torch.as_tensor(array, dtype=told.dtype, device=told.device)

        return stochastic_loss(
            options.target,
            told,
            tensor(coalitions),
            tensor(values - self.rows.empty[rows][:, None]) / scale,
            tensor(self.rows.rise[rows]) / scale,
            tensor(self.rows.active[rows]),
            tensor(totals),
        )

    def validation_step(self, places: Tensor, _: int) -> None:
        at = places.cpu().numpy()
        rows = self.held_out[at]
        told = self._told(rows)
        rise = torch.as_tensor(self.rows.rise[rows]).to(told)
        active = torch.as_tensor(self.rows.active[rows], device=told.device)
        self._errors.append(efficient(told, rise, active).cpu().double() - self._wanted[at])

    def on_validation_epoch_end(self) -> None:
        errors = torch.cat(self._errors)  # (R, M, K)
        self._errors.clear()
        absolute = float(errors.abs().sum(dim=1).mean())
        squared = float((errors**2).sum(dim=1).mean().sqrt())
        self.log_error(absolute)
        loss = float(np.mean(self._losses)) if self._losses else float("nan")
        self._losses.clear()
        epoch = self.current_epoch + 1
        self.history.append(Record(epoch, self.evaluations, loss, absolute, squared))

    # --- checkpoints: what the weights do not tell ---

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        super().on_save_checkpoint(checkpoint)
        checkpoint["history"] = [vars(record) for record in self.history]
        checkpoint["evaluations"] = self.evaluations
        checkpoint["labels"] = self.labels

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        super().on_load_checkpoint(checkpoint)
        self.history = [Record(**record) for record in checkpoint["history"]]
        self.evaluations = checkpoint["evaluations"]
        self.labels = checkpoint["labels"]


def _labels(rows: TrainingRows, kept: IntArray, training: Training) -> tuple[Tensor, int]:
    """Return an estimate for each row, and what they cost."""
    # Equal weights: the network averages over rows, and cannot use what learning them would add.
    estimator = OddGP("equal") if training.target == "oddgp" else LeastSquares()
    budget = training.evaluations_per_row(rows.game.n_players)
    settings = Settings(
        seed=training.seed,
        budget=budget,
        budget_name="evaluations",
        name=rows.progress.description("targets of training rows"),
        progress_delay=rows.progress.remaining_delay,
        is_for_training=True,
    )
    found = estimate(SomeRows(rows.game, kept), estimator, settings)
    labels = torch.as_tensor(found.values, dtype=torch.float32)
    return labels, int(found.evaluations.sum())


def _drawn(active: BoolArray, rows: IntArray, n: int, training: Training, epoch: int) -> BoolArray:
    """Return n coalitions of the active players of each row, (B, n, M), by the Shapley kernel."""
    n_drawn = -(-n // 2) if training.paired else n
    coalitions = np.zeros((len(rows), n_drawn, active.shape[1]), dtype=bool)
    for place, row in enumerate(rows):
        players = np.flatnonzero(active[place])
        if len(players) < 2:
            continue
        rng = np.random.default_rng([training.seed, 1, epoch, int(row)])
        every = np.arange(1, len(players))
        sizes = rng.choice(every, size=n_drawn, p=kernel_mass(len(players)))
        coalitions[place][:, players] = random_subsets(sizes, len(players), rng)
    if training.paired:
        others = active[:, None] & ~coalitions
        both = np.stack([coalitions, others], axis=2)
        coalitions = both.reshape(len(rows), -1, active.shape[1])
    return coalitions[:, :n]
