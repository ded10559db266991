"""Fitting networks: AdamW on row indices, the weights of the best epoch, and progress bars."""

from __future__ import annotations

import copy
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import numpy as np
import torch
from torch import Tensor, nn
from tqdm.auto import tqdm

from ..array_types import IntArray
from ..errors import InvalidArgumentError
from ..pipeline.one_round import BY_MEAN_SPEED
from ..torch_support.random_state import seeded
from ..training_options import Schedule


@dataclass(frozen=True)
class Progress:
    """A progress bar for each part of a training.

    Attributes
    ----------
    name : str
        Name of the training, shown at the start of each bar.
    delay : float, optional
        Seconds from now until bars appear; None for no bars.
    """

    name: str = "training"
    delay: float | None = None
    _start: float = field(default_factory=time.monotonic)

    def description(self, part: str) -> str:
        """Return the text at the start of the bar of a part."""
        return f"{self.name}: {part}"

    @property
    def remaining_delay(self) -> float | None:
        """Remaining seconds until bars appear; None for no bars."""
        return None if self.delay is None else max(0.0, self._start + self.delay - time.monotonic())

    def bar(self, part: str, total: int, unit: str) -> tqdm[Any]:
        """Return the bar of a part, to be used in a `with` statement."""
        delay, text = self.remaining_delay, self.description(part)
        shown: dict[str, Any] = {"disable": delay is None, "delay": delay or 0.0, **BY_MEAN_SPEED}
        return tqdm(total=total, desc=text, unit=f" {unit}", **shown)


_RATE, _STEPS_AT_RATE = 3e-3, 4000
"""The default learning rate, and the largest number of steps with it."""

WEIGHT_DECAY = 1e-4
"""Of AdamW, unless the network has its own."""

ModuleT = TypeVar("ModuleT", bound=nn.Module)


def rate_of(schedule: Schedule, n_steps: int) -> float:
    """Return the largest learning rate for a number of steps; more steps have a smaller one."""
    if schedule.learning_rate is not None:
        return schedule.learning_rate
    return float(_RATE * min(1.0, np.sqrt(_STEPS_AT_RATE / n_steps)))


def split_rows(schedule: Schedule, n_real: int, n_rows: int) -> tuple[IntArray, IntArray]:
    """Return the held-out rows, drawn from the real rows, and the training rows."""
    if n_real < 2:
        raise InvalidArgumentError(
            f"Training needs at least 2 rows, one of which is held out; got {n_real}."
        )
    order = np.random.default_rng([schedule.seed, 0]).permutation(n_real)
    n_held_out = min(n_real - 1, max(1, round(schedule.validation_share * n_real)))
    training_rows = np.concatenate([np.sort(order[n_held_out:]), np.arange(n_real, n_rows)])
    return np.sort(order[:n_held_out]), training_rows


def fit(
    network: nn.Module,
    schedule: Schedule,
    training_rows: IntArray,
    loss_of: Callable[[IntArray, int], Tensor],
    validate: Callable[[int, float], float],
    progress: Progress,
    weight_decay: float = WEIGHT_DECAY,
) -> None:
    """Fit a network on the device of its parameters; it then has the weights of its best epoch.

    Parameters
    ----------
    network : Module
        The network to train.
    schedule : Schedule
        The options of the training.
    training_rows : array of int
        The rows to train on, in an order of each epoch that depends on the seed only.
    loss_of : callable
        Returns the loss of a batch of rows in an epoch, counted from 0.
    validate : callable
        Gets an epoch and its mean loss, and returns the network's error.
    progress : Progress
        Shows the steps.
    weight_decay : float
        Of AdamW.

    Raises
    ------
    InvalidArgumentError
        If no epoch had a finite error.
    """
    n_steps = schedule.epochs * -(-len(training_rows) // schedule.rows_per_step)
    rate = rate_of(schedule, n_steps)
    device = next(network.parameters()).device
    optimizer = torch.optim.AdamW(network.parameters(), lr=rate, weight_decay=weight_decay)
    cycle = None
    if schedule.learning_rate_schedule == "one_cycle":
        cycle = torch.optim.lr_scheduler.OneCycleLR(optimizer, max_lr=rate, total_steps=n_steps)
    smallest, best_weights, n_worse = np.inf, None, 0
    patience = schedule.patience or max(10, schedule.epochs // 2)
    # Layers such as dropout draw from torch's own generators.
    with progress.bar("fitting", n_steps, "steps") as bar, seeded(schedule.seed, device):
        for epoch in range(schedule.epochs):
            order = np.random.default_rng([schedule.seed, 2, epoch]).permutation(training_rows)
            losses = []
            network.train()
            for start in range(0, len(order), schedule.rows_per_step):
                with torch.enable_grad():
                    loss = loss_of(order[start : start + schedule.rows_per_step], epoch)
                    optimizer.zero_grad()
                    loss.backward()  # type: ignore[no-untyped-call]
                if schedule.max_gradient_norm is not None:
                    nn.utils.clip_grad_norm_(network.parameters(), schedule.max_gradient_norm)
                optimizer.step()
                if cycle is not None:
                    cycle.step()
                losses.append(float(loss.detach()))
                bar.update()
            network.eval()
            with torch.no_grad():
                error = validate(epoch, float(np.mean(losses)))
            n_worse += 1
            if error < smallest:
                smallest, best_weights, n_worse = error, copy.deepcopy(network.state_dict()), 0
            if n_worse >= patience:
                break
    if best_weights is None:
        raise InvalidArgumentError(
            "Training diverged: the validation error was NaN or infinite in each epoch. Pass a "
            f"learning_rate below {rate:.2g}, or look for outputs of the model that are too large "
            "for single precision."
        )
    network.load_state_dict(best_weights)
    network.cpu().eval()


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
