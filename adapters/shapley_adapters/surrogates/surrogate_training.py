"""Training surrogates: networks that predict a model's outputs from random parts of its rows."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from ..amortized.explainer_network import are_whole, centre_and_spread, tensor_of
from ..amortized.fitting import Progress, Schedule, built, fit, outside_inference_mode
from ..amortized.networks import build, checked_network
from ..amortized.storage import (
    Blueprint,
    Fingerprint,
    read_file,
    refusing,
    with_weights,
    write_file,
)
from ..arguments import checked_choice, checked_count
from ..array_types import BoolArray, IntArray, ValueArray
from ..coalitions.tables import random_subsets
from ..errors import InvalidArgumentError

_ROWS_AT_ONCE = 2**14


class SurrogateNetwork(nn.Module):
    """A network from masked rows, with marks of the present entries, to outputs of a model.

    Numbers are standardised, and absent ones are set to 0, the mean. The marks, 1 for present and 0
    for absent entries, are added to the input: as additional channels of an image, (2 C, H, W), as
    additional numbers of each token of a sequence of embeddings, (T, 2 D), or as a second row,
    (2, …). Rows of token ids have no marks; absent tokens are replaced by `absent`.

    Parameters
    ----------
    network : Module
        Maps masked rows with their marks, (B, …), to raw outputs, (B, K), or to (B, n, K), which
        are averaged over n.
    centre, spread : Tensors
        Mean and scale of the numbers of a row; empty for token ids.
    offset, scale : Tensors, (K,)
        Raw outputs are multiplied by `scale`, then `offset` is added.
    absent : Tensor, scalar
        The id that replaces absent tokens.
    is_distribution : bool
        Whether outputs are probabilities: a softmax is applied to the raw outputs.
    is_sequence : bool
        Whether rows are sequences, with tokens along the first axis.
    """

    centre: Tensor
    spread: Tensor
    offset: Tensor
    scale: Tensor
    absent: Tensor

    def __init__(
        self,
        network: nn.Module,
        centre: Tensor,
        spread: Tensor,
        offset: Tensor,
        scale: Tensor,
        absent: Tensor,
        is_distribution: bool,
        is_sequence: bool,
    ) -> None:
        super().__init__()
        self.network = network
        for name, value in (("centre", centre), ("spread", spread)):
            self.register_buffer(name, value.float())
        for name, value in (("offset", offset), ("scale", scale)):
            self.register_buffer(name, value.double())
        self.register_buffer("absent", absent)
        self.is_distribution = is_distribution
        self.is_sequence = is_sequence

    @classmethod
    def around(
        cls, make: Any, rows: Any, outputs: ValueArray, absent: int, is_distribution: bool
    ) -> SurrogateNetwork:
        """Return the network that `make` builds for rows, with the scales of rows and outputs.

        `make` is a module, or a function of the shape of its inputs.
        """
        centre, spread = torch.zeros(0), torch.zeros(0)
        if not are_whole(rows):
            centre, spread = centre_and_spread(rows)
        mean, size = outputs.mean(axis=0), outputs.std(axis=0)
        offset = np.log(np.maximum(mean, 1e-9)) if is_distribution else mean
        scale = np.ones_like(size) if is_distribution else np.where(size > 0, size, 1.0)
        is_sequence = getattr(make, "is_sequence", False)
        surrogate = cls(
            nn.Identity(),
            centre,
            spread,
            torch.as_tensor(offset),
            torch.as_tensor(scale),
            torch.tensor(absent),
            is_distribution,
            is_sequence,
        )
        is_ready = isinstance(make, nn.Module)
        surrogate.network = make if is_ready else make(surrogate.masked_shape(rows.shape[1:]))
        return surrogate

    @property
    def is_of_tokens(self) -> bool:
        """Whether rows are token ids."""
        return not self.centre.numel()

    def masked_inputs(self, x: Tensor, present: Tensor) -> Tensor:
        """Return the inner network's inputs for rows, (B, …), with the entries `present`."""
        if self.is_of_tokens:
            return torch.where(present, x, self.absent.to(x))
        x = torch.where(present, (x.float() - self.centre) / self.spread, 0.0)
        marks = present.to(x)
        if self.is_sequence:
            return torch.cat([x, marks], dim=-1)
        return torch.cat([x, marks], dim=1) if x.dim() == 4 else torch.stack([x, marks], dim=1)

    def masked_shape(self, row_shape: Sequence[int]) -> list[int]:
        """Return the shape of the inner network's input for a row."""
        return masked_shape(row_shape, self.is_of_tokens, self.is_sequence)

    def forward(self, x: Tensor, present: Tensor) -> Tensor:
        """Return outputs, (B, K), as logarithms if they are probabilities, in double precision."""
        raw_outputs: Tensor = self.network(self.masked_inputs(x, present))
        raw_outputs = raw_outputs.mean(dim=1) if raw_outputs.dim() == 3 else raw_outputs
        scaled = raw_outputs.double() * self.scale + self.offset
        return torch.log_softmax(scaled, dim=1) if self.is_distribution else scaled

    def outputs(self, rows: Any, present: BoolArray) -> ValueArray:
        """Return the outputs, (n, K), for rows and their present entries, both (n, …)."""
        parts = [batch.numpy() for batch in self._batches(rows, present)]
        return np.concatenate(parts) if parts else np.zeros((0, len(self.scale)))

    def _batches(self, rows: Any, present: BoolArray) -> Iterator[Tensor]:
        self.eval()
        for start in range(0, len(rows), _ROWS_AT_ONCE):
            part = slice(start, start + _ROWS_AT_ONCE)
            x = tensor_of(rows[part])
            with torch.no_grad():
                batch = self(x, torch.as_tensor(present[part]))
            yield batch.exp() if self.is_distribution else batch


def masked_shape(row_shape: Sequence[int], is_of_tokens: bool, is_sequence: bool) -> list[int]:
    """Return the shape of a row with the marks of its present entries; token ids have none."""
    shape = list(row_shape)
    if is_of_tokens:
        return shape
    if is_sequence:
        return [*shape[:-1], 2 * shape[-1]]
    return [2 * shape[0], *shape[1:]] if len(shape) == 3 else [2, *shape]


class NamedNetwork:
    """Builds a network of `NETWORKS` that returns outputs instead of attributions."""

    def __init__(self, name: str, n_outputs: int, options: Mapping[str, Any]) -> None:
        self.name, self.n_outputs, self.options = name, n_outputs, dict(options)

    @property
    def is_sequence(self) -> bool:
        """Whether the network takes sequences."""
        return self.name == "tokens"

    def __call__(self, shape: list[int]) -> nn.Module:
        """Return the network for inputs of a shape."""
        # Token networks return outputs per token, which are averaged.
        n_tokens = shape[0] if self.is_sequence else 1
        return build(self.name, shape, n_tokens, self.n_outputs, self.options)


LOSSES = ("auto", "kl", "squared")

_HELD_OUT_COALITIONS = 16
"""Coalitions of each held-out row."""


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
        n_parts = -(-len(self.held_out) * _HELD_OUT_COALITIONS // _ROWS_AT_ONCE)
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
