"""Fitting networks with Lightning: AdamW on row indices, and the weights of the best epoch."""

from __future__ import annotations

import io
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
from lightning.pytorch.plugins import TorchCheckpointIO
from torch import Tensor, nn
from torch.utils.data import DataLoader

from ..arguments import (
    checked_choice,
    checked_count,
    checked_positive,
    checked_probability,
    checked_seed,
)
from ..array_types import IntArray, ValueArray
from ..errors import InvalidArgumentError
from ..torch_support.random_state import seeded
from .ledger import REMEDY, check_model, digest
from .network_files import read_file, refusing, write_file
from .progress import Progress

_ROWS_AT_ONCE = 1024

_RATE, _STEPS_AT_RATE = 3e-3, 4000
"""The default learning rate, and the largest number of steps with it."""

RATE_SCHEDULES = ("one_cycle", "constant")

_WEIGHT_DECAY = 1e-4
"""Of AdamW, unless the network has its own."""

_DEFAULTS: Mapping[str, Any] = {
    "accelerator": "cpu",
    "enable_checkpointing": False,
    "enable_model_summary": False,
    "enable_progress_bar": False,
    "gradient_clip_val": 1.0,  # without clipping, wide networks sometimes diverge
    "logger": False,
    "num_sanity_val_steps": 0,
    "reload_dataloaders_every_n_epochs": 1,  # for a new order of the rows
}
"""Of Lightning's trainer."""

_OF_WEIGHTS = (
    *("gradient_clip_val", "gradient_clip_algorithm"),
    *("precision", "accumulate_grad_batches"),
)
"""The options of Lightning's trainer that change the weights."""

_RENAMED = "batch_size"
"""Is called `rows_per_step` by the hosts."""

ModuleT = TypeVar("ModuleT", bound=nn.Module)
ScheduleT = TypeVar("ScheduleT", bound="Schedule")


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
        from it; other trainings may share the folder.
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
        for name in ("epochs", "batch_size", *["patience"] * (self.patience is not None)):
            checked_count(name, getattr(self, name))
        checked_choice("learning_rate_schedule", self.learning_rate_schedule, RATE_SCHEDULES)
        checked_probability("validation_share", self.validation_share)
        if self.learning_rate is not None:
            checked_positive("learning_rate", self.learning_rate)
        if "max_epochs" in self.trainer_options:
            raise InvalidArgumentError("trainer_options holds max_epochs; pass it as epochs=.")

    @classmethod
    def from_options(cls: type[ScheduleT], options: Any, **further: Any) -> ScheduleT:
        """Return the schedule of a host's options; errors use the names of these options."""
        shared = {f.name: getattr(options, f.name) for f in fields(Schedule) if f.name != _RENAMED}
        shared["epochs"] = checked_count("epochs", options.epochs)
        shared["seed"] = checked_seed(options.seed)
        shared["trainer_options"] = dict(options.trainer_options or {})
        size = checked_count("rows_per_step", options.rows_per_step)
        return cls(**shared, batch_size=size, **further)

    def rate(self, n_steps: int) -> float:
        """Return the largest learning rate for a number of steps; more steps have a smaller one."""
        if self.learning_rate is not None:
            return self.learning_rate
        return float(_RATE * min(1.0, np.sqrt(_STEPS_AT_RATE / n_steps)))

    def options(self) -> dict[str, str]:
        """Return the options that a network depends on."""
        excluded = {"folder", "trainer_options", "preset"}
        of_trainer = {**_DEFAULTS, **self.trainer_options}
        own = {f.name: getattr(self, f.name) for f in fields(self) if f.name not in excluded}
        own |= {name: of_trainer.get(name) for name in _OF_WEIGHTS}
        return {name: str(value) for name, value in own.items()}

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
    """The module to fit. Steps take row indices, and call `log_error`.

    Parameters
    ----------
    network : Module
        The network to train.
    schedule : Schedule
        The options of the training.
    training_rows, held_out : arrays of int
        The rows to train on, and those to validate on.
    identity : str
        A digest of the network and the data; with the options, it names the checkpoint.
    values : array
        Values of the model; a checkpoint of another model is refused.
    progress : Progress
        Shows the steps.

    Attributes
    ----------
    record : dict
        What a checkpoint holds beside the state of Lightning.
    """

    weight_decay = _WEIGHT_DECAY

    def __init__(
        self,
        network: nn.Module,
        schedule: Schedule,
        training_rows: IntArray,
        held_out: IntArray,
        identity: str,
        values: ValueArray,
        progress: Progress,
    ) -> None:
        super().__init__()
        self.network, self.schedule, self.progress = network, schedule, progress
        self.training_rows, self.held_out = training_rows, held_out
        self.n_steps = schedule.epochs * -(-len(training_rows) // schedule.batch_size)
        self.checkpoint: Path | None = None
        if schedule.folder is not None:
            name = f"training-{digest(identity, schedule.options())}.safetensors"
            self.checkpoint = Path(schedule.folder) / name
        self.record: dict[str, Any] = {"values": torch.as_tensor(values), "history": []}
        self.record |= {"error": np.inf, "weights": None, "n_worse": 0, "evaluations": 0}

    def prepare(self) -> None:
        """Compute data for the first epoch."""

    def log_error(self, error: float) -> None:
        """Log the validation error of an epoch, and store the weights if it is the smallest."""
        self.log("error", error)
        self.record["n_worse"] += 1
        if error < self.record["error"]:
            weights = self.network.state_dict().items()
            copies = {name: tensor.detach().cpu().clone() for name, tensor in weights}
            self.record |= {"error": error, "weights": copies, "n_worse": 0}
        self.trainer.should_stop |= self.has_stopped

    @property
    def has_stopped(self) -> bool:
        """Whether training ends early, because the error no longer decreases."""
        patience = self.schedule.patience or max(10, self.schedule.epochs // 2)
        return bool(self.record["n_worse"] >= patience)

    def train_dataloader(self) -> DataLoader[Any]:
        """Return batches of training rows, in an order of the epoch that depends on the seed."""
        rng = np.random.default_rng([self.schedule.seed, 2, self.current_epoch])
        return _batches(rng.permutation(self.training_rows), self.schedule.batch_size)

    def val_dataloader(self) -> DataLoader[Any]:
        """Return the positions 0, 1, … of the held-out rows."""
        return _batches(np.arange(len(self.held_out)), _ROWS_AT_ONCE)

    def on_train_start(self) -> None:
        """Show the steps."""
        self._bar = self.progress.bar("fitting", self.n_steps, "steps", self.global_step)

    def on_train_batch_end(self, *_: Any) -> None:
        """Count a step."""
        self._bar.update()

    def on_train_epoch_end(self) -> None:
        """Write the checkpoint."""
        if self.checkpoint is not None:
            self.trainer.save_checkpoint(self.checkpoint)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Add the record."""
        checkpoint["record"] = self.record

    def on_load_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Take the record; refuse one of another model."""
        values = (record["values"].numpy() for record in (checkpoint["record"], self.record))
        check_model(Path(str(self.checkpoint)), *values)
        self.record = checkpoint["record"]

    def teardown(self, stage: str) -> None:
        """Close the bar."""
        if hasattr(self, "_bar"):
            self._bar.close()

    def configure_optimizers(self) -> Any:
        """Return AdamW, and by default one cycle of the learning rate over all steps."""
        rate, decay = self.schedule.rate(self.n_steps), self.weight_decay
        optimizer = torch.optim.AdamW(self.network.parameters(), lr=rate, weight_decay=decay)
        if self.schedule.learning_rate_schedule == "constant":
            return optimizer
        cycle = torch.optim.lr_scheduler.OneCycleLR(
            optimizer, max_lr=rate, total_steps=self.n_steps
        )
        return [optimizer], [{"scheduler": cycle, "interval": "step"}]


def _batches(rows: IntArray, size: int) -> DataLoader[Any]:
    """Return row indices in parts of a size."""
    parts: Any = torch.split(torch.as_tensor(rows), size)
    return DataLoader(parts, batch_size=None)


def fit(module: FittedModule) -> None:
    """Fit a module; its network then has the weights of its best epoch.

    Raises
    ------
    InvalidArgumentError
        If the checkpoint is damaged, or one of another model; or if no epoch had a finite error.
    KeyboardInterrupt
        If the user interrupts; with a folder, training can continue from its last epoch.
    """
    schedule, path = module.schedule, module.checkpoint
    is_resumed = path is not None and path.is_file()
    module.prepare()
    if is_resumed:
        module.on_load_checkpoint(_Files().load_checkpoint(path))
    if not module.has_stopped:
        plugins = np.ravel(schedule.trainer_options.get("plugins") or []).tolist()
        own = {"plugins": [*plugins, _Files()], "max_epochs": schedule.epochs}
        options: dict[str, Any] = {**_DEFAULTS, **schedule.trainer_options, **own}
        with _quiet(), torch.enable_grad():
            trainer = pl.Trainer(**options)
            device = trainer.strategy.root_device  # on which layers such as dropout draw
            with _keyboard_interrupts(schedule), seeded(schedule.seed, device):
                trainer.fit(module, ckpt_path=path if is_resumed else None, weights_only=True)
    if not module.record["weights"]:
        raise InvalidArgumentError(
            "Training diverged: the validation error was NaN or infinite in each epoch. Pass a "
            f"learning_rate below {schedule.rate(module.n_steps):.2g}, or look for outputs of the "
            "model that are too large for single precision."
        )
    module.network.load_state_dict(module.record["weights"])
    module.network.cpu().eval()


class _Files(TorchCheckpointIO):
    """Checkpoints of Lightning as files of ours, with a checksum, replaced in one step.

    They hold the bytes that torch writes, which it reads without running code.
    """

    def save_checkpoint(
        self, checkpoint: dict[str, Any], path: Any, storage_options: Any = None
    ) -> None:
        buffer = io.BytesIO()
        torch.save(checkpoint, buffer)
        Path(path).parent.mkdir(parents=True, exist_ok=True)
        content = torch.frombuffer(buffer.getbuffer(), dtype=torch.uint8)
        write_file(path, "training", {"content": content})

    def load_checkpoint(self, path: Any, *_: Any, **__: Any) -> dict[str, Any]:
        saved = read_file(path, "training", dict[str, Tensor], REMEDY)
        with refusing(path, "training", REMEDY):
            file = io.BytesIO(saved["content"].numpy().tobytes())
            checkpoint: dict[str, Any] = torch.load(file, "cpu", weights_only=True)
        return checkpoint


@contextmanager
def _keyboard_interrupts(schedule: Schedule) -> Iterator[None]:
    """Let Ctrl-C raise KeyboardInterrupt as usual.

    Lightning would end the interpreter, or, while it prepares an epoch, fail in its own clean-up.
    """
    handler = signal.getsignal(signal.SIGINT)
    try:
        yield
    except BaseException as error:
        cause: BaseException | None = error
        while cause is not None and not isinstance(cause, KeyboardInterrupt):
            cause = cause.__context__
        if cause is None:
            raise
        if signal.getsignal(signal.SIGINT) is not handler:  # Lightning ignores the signal
            signal.signal(signal.SIGINT, handler)
        remedy = "With folder= and seed=, it could continue from its last epoch."
        if schedule.folder is not None:
            remedy = f"Call fit again to continue from the last epoch in {str(schedule.folder)!r}."
        raise KeyboardInterrupt(f"Training was interrupted. {remedy}") from None


@contextmanager
def _quiet() -> Iterator[None]:
    """Silence Lightning's messages about workers, devices and tips."""
    logger = logging.getLogger("lightning.pytorch")
    level = logger.level
    logger.setLevel(logging.ERROR)
    try:
        with warnings.catch_warnings():
            warnings.filterwarnings("ignore", module="lightning.*")
            warnings.filterwarnings("ignore", message=".*does not have many workers.*")
            yield
    finally:
        logger.setLevel(level)


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
