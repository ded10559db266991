"""Training networks that explain, on Lightning."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import lightning.pytorch as pl
import numpy as np
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Sampler

from ..arguments import checked_choice, checked_count
from ..array_types import BoolArray, IntArray, ValueArray
from ..batched_evaluation import Evaluator, Request
from ..coalition_sets import CoalitionTable, end_points
from ..errors import InvalidArgumentError
from ..estimation import Settings, estimate
from ..estimators.least_squares import LeastSquares
from ..estimators.odd_gp import OddGP
from ..games import Game
from ..size_distributions import kernel_mass, kernel_total, random_subsets
from .explainer_network import ExplainerNetwork
from .objectives import LABELS, TARGETS, efficient, stochastic_loss

_EXACT_PLAYERS = 12
"""Up to here, validation values are exact by default."""

_ROWS_AT_ONCE = 1024


@dataclass(frozen=True)
class Training:
    """How to train.

    Attributes
    ----------
    target : {"oddgp", "leastsquares", "controlled", "simsemivalue", "fastshap"}
        What the network is trained towards. `"oddgp"` and `"leastsquares"` are estimates made once
        for each row; the others draw coalitions anew in each epoch: `"simsemivalue"` is SimSHAP
        (`simshap.txt`, Eq. 14), `"controlled"` the same target with the network's own additive game
        as control variate, which leaves its expectation and takes most of its variance,
        `"fastshap"` the loss of FastSHAP (Eq. 7).
    evaluations : int, optional
        Coalitions evaluated for each row: in all for labels, in each epoch for the other targets.
        By default 8 a player, at least 64, for labels, and 32 in each epoch.
    paired : bool
        Whether drawn coalitions come with their complements.
    epochs, batch_size, learning_rate
        Of the optimiser, AdamW with one cycle of the learning rate.
    validation_share : float
        Share of the rows that are held out. Their values are estimated once.
    validation_evaluations : int, optional
        Budget of each held-out row: all coalitions up to 12 players, else 32 a player.
    patience : int, optional
        Epochs without a smaller validation error after which training ends; half of them, and at
        least 10, by default.
    seed : int
        Seed of the weights, the order of the rows, the split and all coalitions.
    folder : path, optional
        Where checkpoints go. If it holds some of the same training, it goes on from there.
    trainer_options : mapping
        Handed to `lightning.Trainer`: `accelerator`, `devices`, `precision`, `logger`, ….
    """

    target: str = "oddgp"
    evaluations: int | None = None
    paired: bool = True
    epochs: int = 100
    batch_size: int = 64
    learning_rate: float = 3e-3
    validation_share: float = 0.1
    validation_evaluations: int | None = None
    patience: int | None = None
    seed: int = 0
    folder: Path | str | None = None
    trainer_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checked_choice("target", self.target, TARGETS)
        checked_count("epochs", self.epochs)
        checked_count("batch_size", self.batch_size)
        if self.evaluations is not None:
            checked_count("evaluations", self.evaluations, minimum=4)
        if not 0 < self.validation_share < 1:
            raise InvalidArgumentError(
                f"validation_share must lie between 0 and 1; got {self.validation_share}."
            )
        if not self.learning_rate > 0:
            raise InvalidArgumentError(f"learning_rate must be positive; got {self.learning_rate}.")

    def evaluations_per_row(self, n_players: int) -> int:
        """Return how many coalitions a row costs, in all or in an epoch."""
        if self.evaluations is not None:
            return self.evaluations
        return max(64, 8 * n_players) if self.target in LABELS else 32


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
        Coalitions evaluated for training, and for the held-out values.
    """

    network: ExplainerNetwork
    history: list[Record]
    evaluations: int
    validation_evaluations: int


@dataclass
class TrainingRows:
    """The rows to train on: a game for each and what the network sees of it.

    Attributes
    ----------
    game : Game
        The games.
    inputs : array or Tensor, (R, …)
        What the network is given.
    n_real : int, optional
        How many of the rows, the first ones, are real: held-out rows are taken from these.
    """

    game: Game
    inputs: Any
    n_real: int | None = None
    active: BoolArray = field(init=False)
    empty: ValueArray = field(init=False)
    rise: ValueArray = field(init=False)

    def __post_init__(self) -> None:
        if len(self.inputs) != self.game.n_rows:
            raise InvalidArgumentError(
                f"The network's inputs have {len(self.inputs)} rows, the game has "
                f"{self.game.n_rows}."
            )
        self.active = self.game.active_players()
        table = CoalitionTable(end_points(self.game.n_players)[None], np.array([2]))
        (ends,) = Evaluator(self.game)([Request(np.arange(self.game.n_rows), table)])
        self.empty, self.rise = ends[:, 0], ends[:, 1] - ends[:, 0]

    def batch(self, rows: IntArray) -> Tensor:
        """Return what the network is given for some rows."""
        return as_tensor(self.inputs[rows])


def as_tensor(inputs: Any) -> Tensor:
    """Return network inputs as a tensor; numbers that are no whole numbers in single precision."""
    tensor = inputs if isinstance(inputs, Tensor) else torch.as_tensor(np.asarray(inputs))
    return tensor.float() if tensor.is_floating_point() or tensor.dtype == torch.bool else tensor


def train(rows: TrainingRows, network: ExplainerNetwork, training: Training) -> Trained:
    """Train `network`, and return it with the weights of its best epoch.

    Costs two evaluations for each row, those of `Training.evaluations`, and those of validation.
    """
    n_real = rows.n_real or rows.game.n_rows
    if n_real < 2:
        raise InvalidArgumentError(
            f"Training needs at least 2 rows, one of which is held out; got {n_real}."
        )
    held_out, kept = _split(n_real, rows.game.n_rows, training)
    wanted, n_validation = _validation_values(rows, held_out, training)
    module = _Module(rows, network, training, kept)
    module.validate_on(held_out, wanted)
    with tempfile.TemporaryDirectory() as temporary, _quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(training.seed)  # for layers that draw, such as dropout
        folder = Path(training.folder or temporary)
        keep_best = ModelCheckpoint(folder, "best", monitor="error", save_last=True)
        callbacks: list[Callback] = [
            keep_best,
            EarlyStopping("error", patience=training.patience or max(10, training.epochs // 2)),
        ]
        options = {
            "accelerator": "cpu",
            "logger": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            **training.trainer_options,
        }
        trainer = pl.Trainer(
            max_epochs=training.epochs,
            callbacks=[*callbacks, *options.pop("callbacks", [])],
            num_sanity_val_steps=0,
            **options,
        )
        last = folder / "last.ckpt"
        trainer.fit(module, ckpt_path=str(last) if last.is_file() else None, weights_only=False)
        best = torch.load(keep_best.best_model_path, map_location="cpu", weights_only=True)
    state = {
        name.removeprefix("network."): value
        for name, value in best["state_dict"].items()
        if name.startswith("network.")
    }
    network.load_state_dict(state)
    network.cpu().eval()
    return Trained(network, module.history, module.evaluations, n_validation)


def _split(n_real: int, n_rows: int, training: Training) -> tuple[IntArray, IntArray]:
    """Return the held-out rows, which are real ones, and the others."""
    order = np.random.default_rng([training.seed, 0]).permutation(n_real)
    n_held_out = min(n_real - 1, max(1, round(training.validation_share * n_real)))
    kept = np.concatenate([np.sort(order[n_held_out:]), np.arange(n_real, n_rows)])
    return np.sort(order[:n_held_out]), kept


def _validation_values(
    rows: TrainingRows, held_out: IntArray, training: Training
) -> tuple[ValueArray, int]:
    """Return exact or well-estimated values of the held-out rows, and what they cost."""
    n_players = rows.game.n_players
    budget = training.validation_evaluations
    if budget is None:
        budget = 2**n_players if n_players <= _EXACT_PLAYERS else 32 * n_players
    found = estimate(
        SomeRows(rows.game, held_out), OddGP(), Settings(seed=training.seed, budget=budget)
    )
    return found.values, int(found.evaluations.sum())


@dataclass(frozen=True)
class SomeRows:
    """The games of some of the rows of another."""

    game: Game
    rows: IntArray

    @property
    def n_rows(self) -> int:
        """Number of rows."""
        return len(self.rows)

    @property
    def n_players(self) -> int:
        """Number of players."""
        return self.game.n_players

    @property
    def evaluations_per_batch(self) -> int:
        """What the whole game asks for."""
        return self.game.evaluations_per_batch

    def active_players(self) -> BoolArray:
        """Tell which players can change the value."""
        return self.game.active_players()[self.rows]

    def __call__(self, rows: IntArray, coalitions: BoolArray) -> ValueArray:
        """Return values, (P, K)."""
        return self.game(self.rows[rows], coalitions)


class _Module(pl.LightningModule):
    """One epoch after the other. All that is drawn depends on the seed, the epoch and the row."""

    def __init__(
        self, rows: TrainingRows, network: ExplainerNetwork, training: Training, kept: IntArray
    ) -> None:
        super().__init__()
        self.network = network
        self.rows, self.training_options, self.kept = rows, training, kept
        self.history: list[Record] = []
        self.evaluations = 2 * len(kept)
        self.labels: Tensor | None = None
        self._evaluate = Evaluator(rows.game)
        self._losses: list[float] = []
        self._errors: list[Tensor] = []

    def validate_on(self, held_out: IntArray, wanted: ValueArray) -> None:
        self._held_out, self._wanted = held_out, torch.as_tensor(wanted)

    # --- data ---

    def train_dataloader(self) -> DataLoader[Any]:
        order = _Order(len(self.kept), self.training_options.seed)
        size = self.training_options.batch_size
        return DataLoader(_Places(self.kept), batch_size=size, sampler=order)

    def val_dataloader(self) -> DataLoader[Any]:
        return DataLoader(_Places(np.arange(len(self._held_out))), batch_size=_ROWS_AT_ONCE)

    # --- steps ---

    def on_fit_start(self) -> None:
        if self.training_options.target in LABELS and self.labels is None:
            self.labels, cost = _labels(self.rows, self.kept, self.training_options)
            self.evaluations += cost

    def training_step(self, places: Tensor, _: int) -> Tensor:
        rows = places.cpu().numpy()
        told = self._told(rows)
        scale = self.network.scale
        if self.labels is not None:
            at = np.searchsorted(self.kept, rows)
            wanted = self.labels[at].to(told)
            loss = (((told - wanted) / scale) ** 2).sum(dim=(1, 2)).mean()
        else:
            loss = self._stochastic_loss(rows, told / scale, scale)
        self._losses.append(float(loss.detach()))
        return loss

    def _told(self, rows: IntArray) -> Tensor:
        active = torch.as_tensor(self.rows.active[rows], device=self.device)
        told: Tensor = self.network(self.rows.batch(rows).to(self.device), active)
        return told

    def _stochastic_loss(self, rows: IntArray, told: Tensor, scale: Tensor) -> Tensor:
        options = self.training_options
        n_players = self.rows.game.n_players
        n = options.evaluations_per_row(n_players)
        coalitions = _drawn(self.rows.active[rows], rows, n, options, self.current_epoch)
        table = CoalitionTable(coalitions, np.full(len(rows), n))
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
        rows = self._held_out[at]
        told = self._told(rows)
        rise = torch.as_tensor(self.rows.rise[rows]).to(told)
        active = torch.as_tensor(self.rows.active[rows], device=told.device)
        self._errors.append(efficient(told, rise, active).cpu().double() - self._wanted[at])

    def on_validation_epoch_end(self) -> None:
        errors = torch.cat(self._errors)  # (R, M, K)
        self._errors.clear()
        absolute = float(errors.abs().sum(dim=1).mean())
        squared = float((errors**2).sum(dim=1).mean().sqrt())
        self.log("error", absolute)
        loss = float(np.mean(self._losses)) if self._losses else float("nan")
        self._losses.clear()
        epoch = self.current_epoch + 1
        self.history.append(Record(epoch, self.evaluations, loss, absolute, squared))

    # --- optimiser ---

    def configure_optimizers(self) -> Any:
        options = self.training_options
        optimizer = torch.optim.AdamW(
            self.network.parameters(), lr=options.learning_rate, weight_decay=1e-4
        )
        n_steps = options.epochs * -(-len(self.kept) // options.batch_size)
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=options.learning_rate, total_steps=n_steps
        )
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }

    # --- checkpoints: what the weights do not tell ---

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        checkpoint["history"] = [vars(record) for record in self.history]
        checkpoint["evaluations"] = self.evaluations
        checkpoint["labels"] = self.labels

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        self.history = [Record(**record) for record in checkpoint["history"]]
        self.evaluations = checkpoint["evaluations"]
        self.labels = checkpoint["labels"]


def _labels(rows: TrainingRows, kept: IntArray, training: Training) -> tuple[Tensor, int]:
    """Return an estimate for each row, and what they cost."""
    # Equal weights: the network averages over rows, and cannot use what learning them would add.
    estimator = OddGP("equal") if training.target == "oddgp" else LeastSquares()
    budget = training.evaluations_per_row(rows.game.n_players)
    settings = Settings(seed=training.seed, budget=budget, budget_name="evaluations")
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


class _Places(Dataset[int]):
    """Rows by their numbers; what belongs to them is looked up where it is needed."""

    def __init__(self, rows: IntArray) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, place: int) -> int:
        return int(self.rows[place])


class _Order(Sampler[int]):
    """A new order of the rows in each epoch, the same for each seed."""

    def __init__(self, n_rows: int, seed: int) -> None:
        self.n_rows, self.seed, self.epoch = n_rows, seed, 0

    def set_epoch(self, epoch: int) -> None:
        """Is called by Lightning."""
        self.epoch = epoch

    def __len__(self) -> int:
        return self.n_rows

    def __iter__(self) -> Iterator[int]:
        rng = np.random.default_rng([self.seed, 2, self.epoch])
        return iter(rng.permutation(self.n_rows).tolist())


class _quiet:  # noqa: N801  used as a function
    """Keep Lightning's notes on workers, devices and tips to itself."""

    def __enter__(self) -> None:
        self._logger = logging.getLogger("lightning.pytorch")
        self._level = self._logger.level
        self._logger.setLevel(logging.ERROR)
        self._warnings = warnings.catch_warnings()
        self._warnings.__enter__()
        warnings.filterwarnings("ignore", module="lightning.*")
        warnings.filterwarnings("ignore", message=".*does not have many workers.*")

    def __exit__(self, *_: object) -> None:
        self._warnings.__exit__(None, None, None)
        self._logger.setLevel(self._level)


def seeded(seed: int, make: Any) -> nn.Module:
    """Return the module that `make` builds, its weights drawn from `seed` alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        module: nn.Module = make()
    return module
