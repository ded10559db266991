"""Training surrogates: networks that predict a model's outputs from random parts of its rows."""

from __future__ import annotations

import copy
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from ..amortized.fitting import Schedule, built, fit, outside_inference_mode
from ..amortized.network_files import read_file, refusing, write_file
from ..amortized.networks import checked_network
from ..amortized.progress import Progress
from ..amortized.storage import Blueprint, Fingerprint, with_weights
from ..arguments import checked_choice, checked_count
from ..array_types import BoolArray, IntArray, ValueArray
from ..coalitions.tables import random_subsets
from ..errors import InvalidArgumentError
from .surrogate_network import NamedNetwork, SurrogateNetwork, masked_shape

LOSSES = ("auto", "kl", "squared")

_HELD_OUT_COALITIONS, _ROWS_AT_ONCE = 16, 1024
"""Coalitions of each held-out row, and the rows of a pass."""


@dataclass(frozen=True)
class SurrogateTraining(Schedule):
    """Loss and number of coalitions of a surrogate; see `Schedule` for the other options.

    Attributes
    ----------
    loss : {"auto", "kl", "squared"}
        The distance to the model's outputs: `"kl"` is the Kullback–Leibler divergence, for
        probabilities of several classes; `"squared"` is the sum over outputs of squared differences
        divided by the output's variance. `"auto"` takes `"kl"` if the outputs are probabilities.
    coalitions : int
        Number of coalitions per row and epoch. Their sizes are drawn uniformly.
    """

    loss: str = "auto"
    coalitions: int = 16

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_choice("loss", self.loss, LOSSES)
        checked_count("coalitions", self.coalitions)


@dataclass(frozen=True)
class SurrogateValidation:
    """Distances between a surrogate and the model on held-out rows.

    Attributes
    ----------
    loss : {"kl", "squared"}
        The distance, as in `SurrogateTraining`.
    error : float
        Mean over held-out rows and random coalitions. It is positive even for the exact conditional
        expectation, because the absent features also change the output.
    constant_error : float
        The same for a constant prediction, the mean output.
    full_error : float
        Mean over held-out rows with all features present. It is 0 for a perfect surrogate.
    n_rows : int
        Number of held-out rows.
    """

    loss: str
    error: float
    constant_error: float
    full_error: float
    n_rows: int


@dataclass(frozen=True)
class TrainedSurrogate:
    """A network that predicts outputs of a model from parts of a row.

    The loss is least for the conditional expectation of the output given the present features, over
    the distribution of the training rows. This is the value function that the network approximates.

    Attributes
    ----------
    network : SurrogateNetwork
        The network.
    validation : SurrogateValidation
        Its errors on held-out rows.
    evaluations : int
        Number of rows on which the model was evaluated.
    fingerprint : Fingerprint
        Some rows, and the model's outputs for them.
    about : Blueprint
        What network it is; `input_shape` is that of a row.
    """

    network: SurrogateNetwork
    validation: SurrogateValidation
    evaluations: int
    fingerprint: Fingerprint
    about: Blueprint

    @classmethod
    def fit(
        cls,
        rows: Any,
        outputs: ValueArray,
        players: IntArray,
        training: SurrogateTraining,
        network: str | nn.Module = "mlp",
        options: Mapping[str, Any] | None = None,
        absent: int = 0,
        host: Mapping[str, Any] | None = None,
        progress: Progress | None = None,
    ) -> TrainedSurrogate:
        """Train on rows, (R, …), and the model's outputs for them, (R, K).

        Parameters
        ----------
        rows, outputs : arrays
            Inputs of the model, and its outputs for them.
        players : array, (size of one row,)
            The player of each entry of a row.
        training : SurrogateTraining
            Options of the training.
        network : str or Module
            A name of `NETWORKS`, or a module, of which a copy is trained; see `SurrogateNetwork`
            for its inputs.
        options : mapping, optional
            Options of a network given by its name.
        absent : int
            Replaces absent tokens, if rows are token ids.
        host : mapping, optional
            Data of the host for the file.
        progress : Progress, optional
            Progress bars of the training; none by default.
        """
        is_distribution = _checked_loss(training.loss, outputs) == "kl"
        held_out, training_rows = training.split(len(rows), len(rows))
        name = network if isinstance(network, str) else type(network).__name__
        make: NamedNetwork | nn.Module
        if isinstance(network, str):
            if checked_network(network) in ("embeddings", "trees"):
                raise InvalidArgumentError(
                    f"network={network!r} returns attributions, not the outputs of a model, so "
                    "that a surrogate cannot use it. Use network='mlp' for the surrogate: "
                    "surrogate=Surrogate(model, network='mlp')."
                )
            make = NamedNetwork(network, outputs.shape[1], options or {})
        else:
            make = copy.deepcopy(network).float()  # its inputs are in single precision
        shape = list(rows.shape[1:])
        about = Blueprint(name, dict(options or {}), shape, 1, outputs.shape[1], host=host or {})
        with outside_inference_mode():
            surrogate = built(
                training.seed,
                lambda: SurrogateNetwork.around(
                    make, rows, outputs[training_rows], absent, is_distribution
                ),
            )
            _check_shape(surrogate, rows, outputs.shape[1])
            objective = _Objective(rows, outputs, players, surrogate, training, held_out)
            steps = objective.loss, objective.validate
            fit(surrogate, training, training_rows, *steps, progress or Progress())
            validation = objective.validation(outputs[training_rows].mean(axis=0))
        fingerprint = Fingerprint.from_rows(rows, outputs[:, None], "surrogate")
        return cls(surrogate, validation, len(rows), fingerprint, about)

    def outputs(self, rows: Any, present: BoolArray) -> ValueArray:
        """Return outputs, (n, K), for rows and their present entries, both (n, …)."""
        expected_shape = self.about.input_shape
        if list(rows.shape[1:]) != list(expected_shape):
            raise InvalidArgumentError(
                f"The surrogate was trained on rows of shape {tuple(expected_shape)}; these have "
                f"shape {tuple(rows.shape[1:])}."
            )
        return self.network.outputs(rows, present)

    def save(self, path: Path | str) -> None:
        """Write everything to a file; see `load`."""
        write_file(path, "surrogate", self)

    @classmethod
    def load(cls, path: Path | str, network: nn.Module | None = None) -> TrainedSurrogate:
        """Read a file that `save` wrote; `network` is required if it was a module of the user.

        Raises
        ------
        InvalidArgumentError
            If the file is damaged, was not written by this version of the package, or its weights
            do not fit `network`.
        """
        saved = read_file(path, "surrogate", cls)
        about, weights = saved.about, cast(dict[str, Tensor], saved.network)
        row, n_outputs = about.input_shape, about.n_outputs
        is_sequence = NamedNetwork(about.network, n_outputs, about.options).is_sequence
        with refusing(path, "surrogate"):
            about.check(saved.fingerprint, 1)
            is_of_tokens = not weights["centre"].numel()
            inner = masked_shape(row, is_of_tokens, is_sequence)
            masked = replace(about, input_shape=inner, n_players=inner[0] if is_sequence else 1)
            shapes = *([[0]] * 2 if is_of_tokens else [row] * 2), *[[n_outputs]] * 2
        bare = masked.skeleton(path, "surrogate", network)
        with refusing(path, "surrogate"):
            is_distribution = checked_choice("loss", saved.validation.loss, LOSSES[1:]) == "kl"
            centre, spread, offset, scale = (torch.zeros(s, device="meta") for s in shapes)
            buffers = centre, spread, offset, scale, torch.tensor(0)
            surrogate = SurrogateNetwork(bare, *buffers, is_distribution, is_sequence)
        with_weights(path, "surrogate", surrogate, weights)
        return replace(saved, network=surrogate)


class _Objective:
    """Losses of a training. The coalitions depend on the seed, the epoch and the rows only."""

    def __init__(
        self,
        rows: Any,
        outputs: ValueArray,
        players: IntArray,
        network: SurrogateNetwork,
        training: SurrogateTraining,
        held_out: IntArray,
    ) -> None:
        self.rows, self.outputs, self.players = rows, outputs, players
        self.network, self.training, self.held_out = network, training, held_out
        rng = np.random.default_rng([training.seed, 5])
        self._masks = self._draw_coalitions(len(held_out), _HELD_OUT_COALITIONS, rng)

    def loss(self, rows: IntArray, epoch: int) -> Tensor:
        """Return the loss of some training rows in an epoch."""
        rng = np.random.default_rng([self.training.seed, 4, epoch, int(rows[0])])
        coalitions = self._draw_coalitions(len(rows), self.training.coalitions, rng)
        return self._losses(rows, coalitions).mean()

    def validate(self, epoch: int, loss: float) -> float:
        """Return the error on the held-out rows."""
        del epoch, loss  # no history is kept
        return float(self._held_out_losses(self._masks).mean())

    def validation(self, mean: ValueArray) -> SurrogateValidation:
        """Return the errors of the network, and of the mean output, on the held-out rows."""
        model_outputs = torch.as_tensor(self.outputs[self.held_out])
        constant = torch.as_tensor(mean).expand_as(model_outputs)
        if self.network.is_distribution:
            constant = constant.clamp(min=1e-9).log()
        with torch.no_grad():
            return SurrogateValidation(
                "kl" if self.network.is_distribution else "squared",
                self.validate(0, 0.0),
                float(self._distances(constant, model_outputs).mean()),
                float(self._held_out_losses(np.ones_like(self._masks[:, :1])).mean()),
                len(self.held_out),
            )

    def _held_out_losses(self, masks: BoolArray) -> Tensor:
        n_parts = -(-len(self.held_out) // _ROWS_AT_ONCE)
        parts = np.array_split(np.arange(len(self.held_out)), n_parts)
        return torch.cat([self._losses(self.held_out[part], masks[part]) for part in parts])

    def _losses(self, rows: IntArray, coalitions: BoolArray) -> Tensor:
        """Return the distances for coalitions, (B, n, M), of rows, (B,), as (B n,)."""
        n, device = coalitions.shape[1], self.network.scale.device
        x = torch.as_tensor(np.ascontiguousarray(self.rows[rows]), device=device)
        marks = coalitions[:, :, self.players].reshape(-1, *x.shape[1:])
        model_outputs = torch.as_tensor(self.outputs[rows], device=device)
        surrogate_outputs = self.network(
            x.repeat_interleave(n, dim=0), torch.as_tensor(marks, device=device)
        )
        return self._distances(surrogate_outputs, model_outputs.repeat_interleave(n, dim=0))

    def _distances(self, surrogate_outputs: Tensor, model_outputs: Tensor) -> Tensor:
        if self.network.is_distribution:
            return (
                torch.xlogy(model_outputs, model_outputs) - model_outputs * surrogate_outputs
            ).sum(dim=1)
        return (((surrogate_outputs - model_outputs) / self.network.scale) ** 2).sum(dim=1)

    def _draw_coalitions(self, n_rows: int, n: int, rng: np.random.Generator) -> BoolArray:
        """Draw coalitions, (n_rows, n, M), whose sizes are uniform from 0 to M."""
        n_players = int(self.players.max()) + 1
        sizes = rng.integers(0, n_players + 1, size=n_rows * n)
        coalitions: BoolArray = random_subsets(sizes, n_players, rng).reshape(n_rows, n, n_players)
        return coalitions


def _checked_loss(loss: str, outputs: ValueArray) -> str:
    """Return the loss for some outputs; refuse `"kl"` if they are not probabilities."""
    are_probabilities = (
        outputs.shape[1] > 1
        and bool((outputs >= 0).all())
        and bool((np.abs(outputs.sum(axis=1) - 1) < 1e-4).all())
    )
    if loss == "auto":
        return "kl" if are_probabilities else "squared"
    if loss == "kl" and not are_probabilities:
        raise InvalidArgumentError(
            "loss='kl' needs probabilities of several classes, none negative and adding up to 1; "
            f"the model returned {outputs[0].tolist()} for the first row. Use loss='squared'."
        )
    return loss


def _check_shape(surrogate: SurrogateNetwork, rows: Any, n_outputs: int) -> None:
    first_rows = torch.as_tensor(np.ascontiguousarray(rows[:2]))
    with torch.no_grad():
        raw_outputs = surrogate.network(
            surrogate.masked_inputs(first_rows, torch.ones_like(first_rows, dtype=torch.bool))
        )
    if raw_outputs.dim() not in (2, 3) or (len(raw_outputs), raw_outputs.shape[-1]) != (
        len(first_rows),
        n_outputs,
    ):
        raise InvalidArgumentError(
            f"network must return (rows, outputs) = {(len(first_rows), n_outputs)} for "
            f"{len(first_rows)} rows; it returned {tuple(raw_outputs.shape)}."
        )
