"""Fitting networks on Lightning: rows by their numbers, one optimiser, the best epoch kept."""

from __future__ import annotations

import logging
import tempfile
import warnings
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import Any, TypeVar

import lightning.pytorch as pl
import numpy as np
import torch
from lightning.pytorch.callbacks import Callback, EarlyStopping, ModelCheckpoint
from torch import nn
from torch.utils.data import DataLoader, Dataset, Sampler

from ..arguments import checked_count
from ..array_types import IntArray
from ..errors import InvalidArgumentError
from .checkpoints import Subject

_ROWS_AT_ONCE = 1024

_RATE, _STEPS_AT_RATE = 3e-3, 4000
"""The learning rate, and up to how many steps."""

_LARGEST_GRADIENT = 1.0
"""Norm to which gradients are cut: without, wide networks diverge now and then."""

ModuleT = TypeVar("ModuleT", bound=nn.Module)


@dataclass(frozen=True)
class Schedule:
    """How long and how fast to fit, and by which rows to tell the best epoch.

    Attributes
    ----------
    epochs, batch_size : int
        Of the optimiser, AdamW.
    learning_rate : float, optional
        The highest of its one cycle; by default as `rate` says.
    validation_share : float
        Share of the rows that are held out.
    patience : int, optional
        Epochs without a smaller validation error after which training ends, at least 1; half of
        all, and at least 10, by default.
    seed : int
        Seed of the weights, the order of the rows, the split and all coalitions.
    folder : path, optional
        Where checkpoints go. If it holds some of the same training, it goes on from there; those
        of another one are refused.
    trainer_options : mapping
        Handed to `lightning.Trainer`: `accelerator`, `devices`, `precision`, `logger`, …; with
        `gradient_clip_val`, 1 by default, None for gradients as they are.
    """

    epochs: int = 100
    batch_size: int = 64
    learning_rate: float | None = None
    validation_share: float = 0.1
    patience: int | None = None
    seed: int = 0
    folder: Path | str | None = None
    trainer_options: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        checked_count("epochs", self.epochs)
        checked_count("batch_size", self.batch_size)
        if self.patience is not None:
            checked_count("patience", self.patience)
        if not 0 < self.validation_share < 1:
            raise InvalidArgumentError(
                f"validation_share must lie between 0 and 1; got {self.validation_share}."
            )
        if self.learning_rate is not None and not self.learning_rate > 0:
            raise InvalidArgumentError(f"learning_rate must be positive; got {self.learning_rate}.")

    def rate(self, n_steps: int) -> float:
        """Return the highest learning rate for so many steps: the more there are, the smaller."""
        if self.learning_rate is not None:
            return self.learning_rate
        return float(_RATE * min(1.0, np.sqrt(_STEPS_AT_RATE / n_steps)))

    def options(self) -> dict[str, str]:
        """Return the options that a network depends on."""
        passed_over = {"folder", "trainer_options"}
        names = [one.name for one in fields(self) if one.name not in passed_over]
        return {name: str(getattr(self, name)) for name in names}

    def split(self, n_real: int, n_rows: int) -> tuple[IntArray, IntArray]:
        """Return the held-out rows, which are among the first, real ones, and all others."""
        if n_real < 2:
            raise InvalidArgumentError(
                f"Training needs at least 2 rows, one of which is held out; got {n_real}."
            )
        order = np.random.default_rng([self.seed, 0]).permutation(n_real)
        n_held_out = min(n_real - 1, max(1, round(self.validation_share * n_real)))
        kept = np.concatenate([np.sort(order[n_held_out:]), np.arange(n_real, n_rows)])
        return np.sort(order[:n_held_out]), kept


class FittedModule(pl.LightningModule):
    """What is fitted; steps are given the numbers of rows, and log the validation error as "error".

    Parameters
    ----------
    network : Module
        Whose weights are sought.
    schedule : Schedule
        How.
    kept, held_out : arrays of int
        The rows to train on, and those to validate on.
    subject : Subject
        What checkpoints say they are of.
    """

    def __init__(
        self,
        network: nn.Module,
        schedule: Schedule,
        kept: IntArray,
        held_out: IntArray,
        subject: Subject,
    ) -> None:
        super().__init__()
        self.network, self.subject = network, subject
        self.schedule, self.kept, self.held_out = schedule, kept, held_out

    def train_dataloader(self) -> DataLoader[Any]:
        """Return the numbers of the rows to train on."""
        order = _Order(len(self.kept), self.schedule.seed)
        size = self.schedule.batch_size
        return DataLoader(_Places(self.kept), batch_size=size, sampler=order)

    def val_dataloader(self) -> DataLoader[Any]:
        """Return the places of the held-out rows among themselves."""
        return DataLoader(_Places(np.arange(len(self.held_out))), batch_size=_ROWS_AT_ONCE)

    def on_save_checkpoint(self, checkpoint: dict[str, Any]) -> None:
        """Is called by Lightning."""
        self.subject.write(checkpoint)

    def configure_optimizers(self) -> Any:
        """Return AdamW, and one cycle of the learning rate over all steps."""
        options = self.schedule
        n_steps = options.epochs * -(-len(self.kept) // options.batch_size)
        rate = options.rate(n_steps)
        optimizer = torch.optim.AdamW(self.network.parameters(), lr=rate, weight_decay=1e-4)
        schedule = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rate, total_steps=n_steps)
        return {
            "optimizer": optimizer,
            "lr_scheduler": {"scheduler": schedule, "interval": "step"},
        }


def fit(module: FittedModule) -> None:
    """Fit a module, and leave its network with the weights of its best epoch.

    Raises
    ------
    InvalidArgumentError
        If the folder holds checkpoints of another training.
    """
    schedule = module.schedule
    with tempfile.TemporaryDirectory() as temporary, _quiet(), torch.random.fork_rng(devices=[]):
        torch.manual_seed(schedule.seed)  # for layers that draw, such as dropout
        folder = Path(schedule.folder or temporary)
        patience = schedule.patience
        if patience is None:
            patience = max(10, schedule.epochs // 2)
        keep_best = ModelCheckpoint(folder, "best", monitor="error", save_last=True)
        callbacks: list[Callback] = [
            keep_best,
            EarlyStopping("error", patience=patience),
        ]
        options = {
            "accelerator": "cpu",
            "logger": False,
            "enable_progress_bar": False,
            "enable_model_summary": False,
            "gradient_clip_val": _LARGEST_GRADIENT,
            **schedule.trainer_options,
        }
        trainer = pl.Trainer(
            max_epochs=schedule.epochs,
            callbacks=[*callbacks, *options.pop("callbacks", [])],
            num_sanity_val_steps=0,
            **options,
        )
        last = folder / "last.ckpt"
        if last.is_file():
            module.subject.check(last)
        trainer.fit(module, ckpt_path=str(last) if last.is_file() else None, weights_only=False)
        best = torch.load(keep_best.best_model_path, map_location="cpu", weights_only=True)
    state = {
        name.removeprefix("network."): value
        for name, value in best["state_dict"].items()
        if name.startswith("network.")
    }
    module.network.load_state_dict(state)
    module.network.cpu().eval()


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


def seeded(seed: int, make: Callable[[], ModuleT]) -> ModuleT:
    """Return the module that `make` builds, its weights drawn from `seed` alone."""
    with torch.random.fork_rng(devices=[]):
        torch.manual_seed(seed)
        return make()
