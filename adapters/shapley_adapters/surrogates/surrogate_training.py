"""Training surrogates: networks that predict a model's outputs from random parts of its rows."""

from __future__ import annotations

import copy
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from ..amortized.explainer_network import centre_and_spread, tensor_of
from ..amortized.fitting import Progress, built, fit, outside_inference_mode, split_rows
from ..amortized.networks import build, checked_network
from ..amortized.storage import Blueprint, Fingerprint, read_file, refusing, write_file
from ..arguments import checked_choice
from ..array_types import BoolArray, IntArray, ValueArray
from ..coalitions.tables import random_subsets
from ..errors import InvalidArgumentError
from ..training_options import LOSSES, SurrogateOptions

_ROWS_AT_ONCE = 2**14


class SurrogateNetwork(nn.Module):
    """A network from masked rows, with marks of the present entries, to outputs of a model.

    Numbers are standardised, and absent ones are set to 0, the mean. The marks, 1 for present and 0
    for absent entries, are added to the input: as additional channels of an image, (2 C, H, W), or
    as a second row, (2, …).

    Parameters
    ----------
    network : Module
        Maps masked rows with their marks, (B, …), to raw outputs, (B, K) or (B, 1, K).
    centre, spread : Tensors
        Mean and scale of the numbers of a row.
    offset, scale : Tensors, (K,)
        Raw outputs are multiplied by `scale`, then `offset` is added.
    is_distribution : bool
        Whether outputs are probabilities: a softmax is applied to the raw outputs.
    """

    centre: Tensor
    spread: Tensor
    offset: Tensor
    scale: Tensor

    def __init__(
        self,
        network: nn.Module,
        centre: Tensor,
        spread: Tensor,
        offset: Tensor,
        scale: Tensor,
        is_distribution: bool,
    ) -> None:
        super().__init__()
        self.network = network
        self.register_buffer("centre", centre.float())
        self.register_buffer("spread", spread.float())
        self.register_buffer("offset", offset.double())
        self.register_buffer("scale", scale.double())
        self.is_distribution = is_distribution

    def raw_outputs(self, x: Tensor, present: Tensor) -> Tensor:
        """Return the inner network's outputs for rows, (B, …), and their present entries."""
        x = torch.where(present, (x.float() - self.centre) / self.spread, 0.0)
        marks = present.to(x)
        marked = torch.cat([x, marks], dim=1) if x.dim() == 4 else torch.stack([x, marks], dim=1)
        return self.network(marked)

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        """Return outputs, (B, K), as logarithms if they are probabilities, in double precision."""
        scaled = self.raw_outputs(x, present).flatten(1).double() * self.scale + self.offset
        return torch.log_softmax(scaled, dim=1) if self.is_distribution else scaled

    def outputs(self, rows: Any, present: BoolArray) -> ValueArray:
        """Return the outputs, (n, K), for rows and their present entries, both (n, …)."""
        self.eval()
        parts = [np.zeros((0, len(self.scale)))]
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            with torch.no_grad():
                batch = self(tensor_of(rows[part]), torch.as_tensor(present[part]))
            parts.append((batch.exp() if self.is_distribution else batch).numpy())
        return np.concatenate(parts)


def marked_shape(row_shape: Sequence[int]) -> list[int]:
    """Return the shape of a row with the marks of its present entries."""
    return [2 * row_shape[0], *row_shape[1:]] if len(row_shape) == 3 else [2, *row_shape]


_HELD_OUT_COALITIONS = 16
"""Coalitions of each held-out row."""


@dataclass(frozen=True)
class SurrogateValidation:
    """Distances between a surrogate and the model on held-out rows.

    Attributes
    ----------
    loss : {"kl", "squared"}
        The distance, as in `SurrogateOptions`.
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
        training: SurrogateOptions,
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
        training : SurrogateOptions
            Options of the training. A copy of its network is trained, if that is a module; see
            `SurrogateNetwork` for its inputs.
        host : mapping, optional
            Data of the host for the file.
        progress : Progress, optional
            Progress bars of the training; none by default.
        """
        is_distribution = _checked_loss(training.loss, outputs) == "kl"
        network = training.network
        held_out, training_rows = split_rows(training, len(rows), len(rows))
        name = network if isinstance(network, str) else type(network).__name__
        if isinstance(network, str) and checked_network(network) in ("embeddings", "trees"):
            raise InvalidArgumentError(
                f"network={network!r} returns attributions, not the outputs of a model, so that a "
                "surrogate cannot use it. Use network='mlp' for the surrogate: "
                "surrogate=Surrogate(model, network='mlp')."
            )
        options, n_outputs = dict(training.network_options or {}), outputs.shape[1]
        shape = list(rows.shape[1:])
        with outside_inference_mode():
            if isinstance(network, str):
                make = partial(build, network, marked_shape(shape), 1, n_outputs, options)
                module = built(training.seed, make)
            else:
                module = copy.deepcopy(network).float()  # its inputs are in single precision
            known = outputs[training_rows]
            mean, size = known.mean(axis=0), known.std(axis=0)
            offset = np.log(np.maximum(mean, 1e-9)) if is_distribution else mean
            scale = np.ones_like(size) if is_distribution else np.where(size > 0, size, 1.0)
            scales = *centre_and_spread(rows), torch.as_tensor(offset), torch.as_tensor(scale)
            surrogate = SurrogateNetwork(module, *scales, is_distribution)
            _check_shape(surrogate, rows)
            objective = _Objective(rows, outputs, players, surrogate, training, held_out)
            steps = objective.loss, objective.validate
            fit(surrogate, training, training_rows, *steps, progress or Progress())
            validation = objective.validation(mean)
        fingerprint = Fingerprint.from_rows(rows, outputs[:, None], "surrogate")
        about = Blueprint(name, options, shape, 1, n_outputs, host=host or {})
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
        with refusing(path, "surrogate"):
            is_distribution = checked_choice("loss", saved.validation.loss, LOSSES[1:]) == "kl"
            row, weights = saved.about.input_shape, cast(dict[str, Tensor], saved.network)
            marked = replace(saved.about, input_shape=marked_shape(row))
        wrap = partial(SurrogateNetwork, is_distribution=is_distribution)
        inner = marked.network_of(path, "surrogate", network, wrap, row, weights)
        return replace(saved, network=inner)


@dataclass
class _Objective:
    """Losses of a training. The coalitions depend on the seed, the epoch and the rows only."""

    rows: Any
    outputs: ValueArray
    players: IntArray
    network: SurrogateNetwork
    training: SurrogateOptions
    held_out: IntArray

    def __post_init__(self) -> None:
        rng = np.random.default_rng([self.training.seed, 5])
        self._masks = self._draw_coalitions(len(self.held_out), _HELD_OUT_COALITIONS, rng)

    def loss(self, rows: IntArray, epoch: int) -> Tensor:
        """Return the loss of some training rows in an epoch."""
        rng = np.random.default_rng([self.training.seed, 4, epoch, int(rows[0])])
        coalitions = self._draw_coalitions(len(rows), self.training.coalitions, rng)
        return self._losses(rows, coalitions).mean()

    def validate(self, epoch: int, loss: float) -> float:
        """Return the error on the held-out rows."""
        del epoch, loss  # no history is kept
        return self._error(self._masks)

    def validation(self, mean: ValueArray) -> SurrogateValidation:
        """Return the errors of the network, and of the mean output, on the held-out rows."""
        model_outputs = torch.as_tensor(self.outputs[self.held_out])
        constant = torch.as_tensor(mean).expand_as(model_outputs)
        if self.network.is_distribution:
            constant = constant.clamp(min=1e-9).log()
        with torch.no_grad():
            return SurrogateValidation(
                "kl" if self.network.is_distribution else "squared",
                self._error(self._masks),
                float(self._distances(constant, model_outputs).mean()),
                self._error(np.ones_like(self._masks[:, :1])),
                len(self.held_out),
            )

    def _error(self, masks: BoolArray) -> float:
        """Return the mean distance on the held-out rows for coalitions, (R, n, M)."""
        parts = np.array_split(np.arange(len(masks)), -(-masks[..., 0].size // _ROWS_AT_ONCE))
        losses = [self._losses(self.held_out[part], masks[part]) for part in parts]
        return float(torch.cat(losses).mean())

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
        return random_subsets(sizes, n_players, rng).reshape(n_rows, n, n_players)


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


def _check_shape(surrogate: SurrogateNetwork, rows: Any) -> None:
    x = torch.as_tensor(np.ascontiguousarray(rows[:2]))
    with torch.no_grad():
        shape = tuple(surrogate.raw_outputs(x, torch.ones_like(x, dtype=torch.bool)).shape)
    n_rows, n_outputs = len(x), len(surrogate.scale)
    if shape not in ((n_rows, n_outputs), (n_rows, 1, n_outputs)):
        raise InvalidArgumentError(
            f"network must return (rows, outputs) = {(n_rows, n_outputs)} for {n_rows} rows; it "
            f"returned {shape}."
        )
