"""Fitting networks with Lightning: AdamW on row indices, and the weights of the best epoch."""

from __future__ import annotations

import logging
import signal
import warnings
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import lightning.pytorch as pl
import numpy as np
import torch
from lightning.pytorch.callbacks import Callback, Checkpoint, EarlyStopping
from torch import Tensor, nn
from torch.utils.data import DataLoader, Dataset, Sampler

from ..arguments import checked_choice, checked_count
from ..array_types import IntArray
from ..errors import InvalidArgumentError
from ..torch_support.random_state import seeded
from .checkpoints import TrainingFingerprint, sign_checkpoint
from .progress import Progress

_ROWS_AT_ONCE = 1024

_RATE, _STEPS_AT_RATE = 3e-3, 4000
"""The default learning rate, and the largest number of steps with it."""

RATE_SCHEDULES = ("one_cycle", "constant")

_LAST = "last.ckpt"

_WEIGHT_DECAY = 1e-4
"""Of AdamW, unless the network has its own."""

LARGEST_GRADIENT = 1.0

_WEIGHT_OPTIONS = (
    "gradient_clip_val",
    "gradient_clip_algorithm",
    "precision",
    "accumulate_grad_batches",
)
"""The options of Lightning's trainer that change the weights."""
"""Norm to which gradients are clipped: without clipping, wide networks sometimes diverge."""

ModuleT = TypeVar("ModuleT", bound=nn.Module)


@dataclass(frozen=True)
class Schedule:
    """Epochs, learning rate and held-out rows of a training.

    Attributes
    ----------
    epochs, batch_size : int
        Epochs and batch size of the optimiser, AdamW.
    learning_rate : float, optional
        The largest learning rate of the one cycle, or the constant rate; the default is computed
        by `rate`.
    learning_rate_schedule : {"one_cycle", "constant"}
        How the learning rate changes over the steps.
    validation_share : float
        Share of the rows that are held out.
    patience : int, optional
        Number of epochs without a smaller validation error after which training ends, at least 1;
        by default half of all epochs, and at least 10.
    seed : int
        Seed of the weights, the order of the rows, the split and all coalitions.
    folder : path, optional
        Folder of the checkpoints. If it holds a checkpoint of the same training, training continues
        from it; a checkpoint of another training is refused.
    trainer_options : mapping
        Passed to `lightning.Trainer`: `accelerator`, `devices`, `precision`, `logger`, …; also
        `gradient_clip_val`, which is 1 by default and None for no clipping.
    """

    epochs: int = 100
    batch_size: int = 64
    learning_rate: float | None = None
    learning_rate_schedule: str = "one_cycle"
    validation_share: float = 0.1
    patience: int | None = None
    seed: int = 0
    folder: Path | str | None = None
    trainer_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checked_count("epochs", self.epochs)
        checked_count("batch_size", self.batch_size)
        checked_choice("learning_rate_schedule", self.learning_rate_schedule, RATE_SCHEDULES)
        if self.patience is not None:
            checked_count("patience", self.patience)
        if not 0 < self.validation_share < 1:
            raise InvalidArgumentError(
                f"validation_share must lie between 0 and 1; got {self.validation_share}."
            )
        if self.learning_rate is not None and not self.learning_rate > 0:
            raise InvalidArgumentError(f"learning_rate must be positive; got {self.learning_rate}.")
        if "max_epochs" in self.trainer_options:
            raise InvalidArgumentError("trainer_options holds max_epochs; pass it as epochs=.")

    def rate(self, n_steps: int) -> float:
        """Return the largest learning rate for a number of steps; more steps have a smaller one."""
        if self.learning_rate is not None:
            return self.learning_rate
        return float(_RATE * min(1.0, np.sqrt(_STEPS_AT_RATE / n_steps)))

    def options(self) -> dict[str, str]:
        """Return the options that a network depends on."""
        excluded = {"folder", "trainer_options", "preset"}
        names = [option.name for option in fields(self) if option.name not in excluded]
        passed = {name: self.trainer_options.get(name) for name in _WEIGHT_OPTIONS}
        of_trainer = {f"trainer_options[{name!r}]": str(value) for name, value in passed.items()}
        return {name: str(getattr(self, name)) for name in names} | of_trainer

    def split(self, n_real: int, n_rows: int) -> tuple[IntArray, IntArray]:
        """Return the held-out rows, drawn from the real rows, and the training rows."""
        if n_real < 2:
            raise InvalidArgumentError(
                f"Training needs at least 2 rows, one of which is held out; got {n_real}."
            )
        order = np.random.default_rng([self.seed, 0]).permutation(n_real)
        n_held_out = min(n_real - 1, max(1, round(self.validation_share * n_real)))
        training_rows = np.concatenate([np.sort(order[n_held_out:]), np.arange(n_real, n_rows)])
        return np.sort(order[:n_held_out]), training_rows


class FittedModule(pl.LightningModule):
    """The module to fit. Steps take row indices, and log the validation error as "error".

    Parameters
    ----------
    network : Module
        The network to train.
    schedule : Schedule
        The options of the training.
    training_rows, held_out : arrays of int
        The rows to train on, and those to validate on.
    fingerprint : TrainingFingerprint
        Is stored in the checkpoints, to recognise those of this training.
    """

    def __init__(
        self,
        network: nn.Module,
        schedule: Schedule,
        training_rows: IntArray,
        held_out: IntArray,
        fingerprint: TrainingFingerprint,
    ) -> None:
        super().__init__()
        self.network, self.fingerprint = network, fingerprint
        self.schedule, self.training_rows, self.held_out = schedule, training_rows, held_out
        self._best_error, self._best_weights = float("inf"), dict[str, Tensor]()

    def prepare(self) -> None:
        """Compute data for the first epoch."""

    def log_error(self, error: float) -> None:
        """Log the validation error of an epoch, and store the weights if it is the smallest."""
        self.log("error", error)
        if error < self._best_error:
            weights = self.network.state_dict()
            self._best_weights = {
                name: tensor.detach().cpu().clone() for name, tensor in weights.items()
            }
            self._best_error = error

    def take_best_weights(self) -> None:
        """Give the network the weights of its best epoch.

        Raises
        ------
        InvalidArgumentError
            If no epoch had a finite validation error.
        """
        if not self._best_weights:
            raise InvalidArgumentError(
                "Training diverged: the validation error was NaN or infinite in each epoch. Pass a "
                f"learning_rate below {self._rate():.2g}, or look for outputs of the model that "
                "are too large for single precision."
            )
        self.network.load_state_dict(self._best_weights)
        self.network.cpu().eval()

    def train_dataloader(self) -> DataLoader[Any]:
        """Return the indices of the training rows."""
        order = _Order(len(self.training_rows), self.schedule.seed)
        size = self.schedule.batch_size
        return DataLoader(_RowNumbers(self.training_rows), batch_size=size, sampler=order)

    def val_dataloader(self) -> DataLoader[Any]:
        """Return the positions 0, 1, … of the held-out rows."""
        return DataLoader(_RowNumbers(np.arange(len(self.held_out))), batch_size=_ROWS_AT_ONCE)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Is called by Lightning."""
        self.fingerprint.write(checkpoint)
        checkpoint["best_error"] = self._best_error
        checkpoint["best_weights"] = self._best_weights

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Is called by Lightning."""
        self._best_error = checkpoint["best_error"]
        self._best_weights = checkpoint["best_weights"]

    @property
    def n_steps(self) -> int:
        """Steps of the optimiser in all epochs."""
        return self.schedule.epochs * -(-len(self.training_rows) // self.schedule.batch_size)

    @property
    def weight_decay(self) -> float:
        """Weight decay of AdamW."""
        return _WEIGHT_DECAY

    def _rate(self) -> float:
        return self.schedule.rate(self.n_steps)

    def configure_optimizers(self) -> Any:
        """Return AdamW, and by default one cycle of the learning rate over all steps."""
        rate = self._rate()
        optimizer = torch.optim.AdamW(
            self.network.parameters(), lr=rate, weight_decay=self.weight_decay
        )
        if self.schedule.learning_rate_schedule == "constant":
            return optimizer
        schedule = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=rate, total_steps=self.n_steps
        )
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }


def fit(module: FittedModule, progress: Progress) -> None:
    """Fit a module; its network then has the weights of its best epoch.

    Raises
    ------
    InvalidArgumentError
        If the folder holds checkpoints of another training, or damaged ones.
    KeyboardInterrupt
        If the user interrupts; with a folder, training can continue from its last epoch.
    """
    schedule = module.schedule
    last = None if schedule.folder is None else Path(schedule.folder) / _LAST
    checkpoint = None
    if last is not None and last.is_file():
        checkpoint = module.fingerprint.read_checkpoint(last)
    module.prepare()
    if checkpoint is not None and _has_stopped(checkpoint):
        module.on_load_checkpoint(checkpoint)
    else:
        with _quiet(), torch.enable_grad():
            _run(module, last, checkpoint is not None, progress)
    module.take_best_weights()


def _run(module: FittedModule, last: Path | None, is_resumed: bool, progress: Progress) -> None:
    """Run Lightning's trainer; write the last checkpoint to `last`, or resume from it."""
    schedule = module.schedule
    patience = schedule.patience
    if patience is None:
        patience = max(10, schedule.epochs // 2)
    options = {
        "accelerator": "cpu",
        "logger": False,
        "enable_progress_bar": False,
        "enable_model_summary": False,
        "enable_checkpointing": last is not None,
        "gradient_clip_val": LARGEST_GRADIENT,
        **schedule.trainer_options,
    }
    callbacks: list[Callback] = [
        EarlyStopping("error", patience=patience),
        _Bar(module, progress),
        *options.pop("callbacks", []),
    ]
    if last is not None:
        callbacks.append(_LastCheckpoint(last))
    trainer = pl.Trainer(
        max_epochs=schedule.epochs, callbacks=callbacks, num_sanity_val_steps=0, **options
    )
    device = trainer.strategy.root_device  # on which layers such as dropout draw
    with _keyboard_interrupts(schedule), seeded(schedule.seed, device):
        trainer.fit(module, ckpt_path=str(last) if is_resumed else None, weights_only=True)


def _has_stopped(checkpoint: Mapping[str, Any]) -> bool:
    """Return whether training ended early, because the error no longer decreased."""
    states = checkpoint["callbacks"]
    return any(
        state["stopped_epoch"] > 0
        for name, state in states.items()
        if name.startswith("EarlyStopping")
    )


@contextmanager
def _keyboard_interrupts(schedule: Schedule) -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt as usual; Lightning would end the interpreter."""
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except SystemExit as error:
        if not isinstance(error.__context__, KeyboardInterrupt):
            raise
        signal.signal(signal.SIGINT, handler)  # Lightning ignores the signal from then on
        if schedule.folder is None:
            remedy = "With folder= and seed=, it could continue from its last epoch."
        else:
            remedy = f"Call fit again to continue from the last epoch in {str(schedule.folder)!r}."
        raise KeyboardInterrupt(f"Training was interrupted. {remedy}") from None


class _LastCheckpoint(Checkpoint):
    """Writes the checkpoint of the last epoch.

    It holds the best weights and no paths, so that the folder may be moved. Lightning calls
    checkpoints after all other callbacks.
    """

    def __init__(self, path: Path) -> None:
        self._path = path

    def on_train_epoch_end(self, trainer: pl.Trainer, _: pl.LightningModule) -> None:
        part = self._path.with_name(f"{self._path.name}.part")
        trainer.save_checkpoint(part)  # by all processes, where there are several; one writes
        if trainer.is_global_zero:
            sign_checkpoint(part, self._path)


class _Bar(Callback):
    """The progress bar of the steps."""

    def __init__(self, module: FittedModule, progress: Progress) -> None:
        self._n_steps, self._progress = module.n_steps, progress
        self._bar: Any = None

    def on_train_start(self, trainer: pl.Trainer, _: pl.LightningModule) -> None:
        self._bar = self._progress.bar("fitting", self._n_steps, "steps", trainer.global_step)

    def on_train_batch_end(self, *_: Any) -> None:
        self._bar.update()

    def teardown(self, *_: Any, **__: Any) -> None:
        if self._bar is not None:
            self._bar.close()


class _RowNumbers(Dataset[int]):
    """A data set of row indices; the steps look up the data of the rows."""

    def __init__(self, rows: IntArray) -> None:
        self.rows = rows

    def __len__(self) -> int:
        return len(self.rows)

    def __getitem__(self, index: int) -> int:
        return int(self.rows[index])


class _Order(Sampler[int]):
    """A new order of the rows in each epoch, which depends on the seed only."""

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
    """Silence Lightning's messages about workers, devices and tips."""

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


def built(seed: int, make: Callable[[], ModuleT]) -> ModuleT:
    """Return the module that `make` builds, its weights drawn from `seed` alone."""
    with seeded(seed), in_single_precision():
        return make()


@contextmanager
def in_single_precision() -> Iterator[None]:
    """Build layers in single precision, independent of torch's default."""
    default = torch.get_default_dtype()
    torch.set_default_dtype(torch.float32)
    try:
        yield
    finally:
        torch.set_default_dtype(default)


@contextmanager
def outside_inference_mode() -> Iterator[None]:
    """Allow training even if the caller is inside `torch.inference_mode()`."""
    is_grad_enabled = torch.is_grad_enabled()
    with torch.inference_mode(False), torch.set_grad_enabled(is_grad_enabled):
        yield
