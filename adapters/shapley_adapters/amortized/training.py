"""Training networks that predict attributions (Zhang et al., 2023, Definition 3).

All objectives are distances ‖g(x) − φ_x‖_M between predictions g(x) and targets φ_x. With M = I,
the target is an unbiased estimate from a few coalitions (SimSHAP), or a label that is computed
before training. With M = XᵀWX it is the loss of the regression itself (FastSHAP).
"""

from __future__ import annotations

from dataclasses import InitVar, dataclass, field
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor

from ..arguments import checked_choice, checked_count
from ..array_types import BoolArray, IntArray, ValueArray
from ..coalitions.tables import kernel_mass, kernel_total
from ..constructors import write_constructor
from ..errors import InvalidArgumentError
from ..estimators.least_squares.regression import LeastSquares
from ..estimators.odd_gp.estimator import OddGP
from ..games.game import SomeRows
from ..training_options import Schedule, TargetOptions
from .explainer_network import ExplainerNetwork
from .fitting import WEIGHT_DECAY, fit, split_rows
from .ledger import TrainingRows, estimated
from .networks import EmbeddingNetwork, FittedRegressor, is_regressor
from .stated_errors import RowsWithErrors, StatedErrors
from .unlike_rows import ReferenceRows, predictions_and_gaps, with_residual

STOCHASTIC = ("controlled", "simsemivalue", "fastshap")
"""Targets for which new coalitions are drawn in each epoch."""

LABELS = ("oddgp", "leastsquares")
"""Targets that are estimated once for each row."""

TARGETS = LABELS + STOCHASTIC


def method_of(target: str) -> str:
    """Return the method whose target this is, "simshap" or "fastshap"."""
    return "fastshap" if target == "fastshap" else "simshap"


_WEIGHT_OF_GAPS = 0.02
"""Of the squared gap to v(N) − v(∅) in the loss. On digits, errors with labels of 5.5, 4.9, 6.6 and
9.6 with 0, 0.02, 0.1 and 1; on Adult, .145 with all."""


def efficient(attributions: Tensor, grand_minus_empty: Tensor, active: Tensor) -> Tensor:
    """Return attributions, (B, M, K), that sum to v(N) − v(∅), `rise`, (B, K).

    The difference is shared equally by the `active` players, (B, M).
    """
    share = active[:, :, None].to(attributions.dtype)
    counts = share.sum(dim=1).clamp(min=1.0)
    missing = (grand_minus_empty - attributions.sum(dim=1)) / counts
    return attributions + share * missing[:, None]


def label_loss(
    attributions: Tensor, labels: Tensor, grand_minus_empty: Tensor, active: Tensor
) -> Tensor:
    """Return the squared distance to labels, with attributions, (B, M, K), made efficient first.

    The gap to v(N) − v(∅), `grand_minus_empty`, is known when a row is explained, so that the
    network need not learn it. It has a small weight in the loss nevertheless, for use of the
    network without v(N).
    """
    fair = efficient(attributions, grand_minus_empty, active)
    return (
        ((fair - labels) ** 2 + _WEIGHT_OF_GAPS * (attributions - fair) ** 2).sum(dim=(1, 2)).mean()
    )


def stochastic_loss(
    target: str,
    attributions: Tensor,
    coalitions: Tensor,
    values: Tensor,
    grand_minus_empty: Tensor,
    active: Tensor,
    kernel_total: Tensor,
) -> Tensor:
    """Return the loss of a batch.

    FastSHAP's says nothing about the sum of the network's own attributions. The gap has a small
    weight in it, for use of the network without v(N), and because gaps tell which rows are unlike
    the training rows.

    Parameters
    ----------
    target : str
        One of `STOCHASTIC`.
    attributions : Tensor, (B, M, K)
        Predictions of the network; 0 for players that are not active.
    coalitions : Tensor, (B, S, M)
        Drawn by the Shapley kernel of each row's active players.
    values : Tensor, (B, S, K)
        v(S) − v(∅).
    rise : Tensor, (B, K)
        v(N) − v(∅).
    active : Tensor, (B, M)
        Which players can change the value of the row.
    kernel_total : Tensor, (B,)
        γ of each row's active players.
    """
    if target == "fastshap":
        fair = efficient(attributions, grand_minus_empty, active)
        loss = ((values - coalitions @ fair) ** 2).mean(dim=1).sum(dim=1).mean()
        return loss + _WEIGHT_OF_GAPS * ((attributions - fair).sum(dim=1) ** 2).sum(dim=1).mean()
    control_variate = torch.zeros_like(attributions)
    if target == "controlled":
        control_variate = efficient(attributions.detach(), grand_minus_empty, active)
    targets = sim_semivalues(
        coalitions, values - coalitions @ control_variate, active, kernel_total
    )
    counts = active.sum(dim=1).clamp(min=1.0)[:, None]
    remainder = (grand_minus_empty - control_variate.sum(dim=1)) / counts
    targets = control_variate + targets + remainder[:, None] * active[:, :, None]
    return ((attributions - targets) ** 2).sum(dim=(1, 2)).mean()


def sim_semivalues(
    coalitions: Tensor, values: Tensor, active: Tensor, kernel_total: Tensor
) -> Tensor:
    """Return the mean of a_S v(S) over the coalitions, (B, M, K) (Zhang et al., 2023, Table 1).

    a_S is γ (d − s) for members of S and −γ s for other players, with d active players.
    """
    sizes = coalitions.sum(dim=2, keepdim=True)
    counts = active.sum(dim=1)[:, None, None]
    coefficients = (counts * coalitions - sizes) * active[:, None] * kernel_total[:, None, None]
    return coefficients.transpose(1, 2) @ values / coalitions.shape[1]


_ROWS_AT_ONCE = 1024

_SHARE = 0.1
"""Evaluations for validation, as a share of those for training rows."""

_EXACT_PLAYERS = 12
"""Up to this number of players, the values are exact if the share is large enough."""

_PER_PLAYER, _FEWEST_EVALUATIONS = 8, 64
"""Evaluations of an estimated value by default: per player, and at least."""

_FEWEST_ROWS = 16
"""Smallest number of rows with values, even above the share: fewer do not rank epochs reliably."""


_ROUNDING = 1e-6
"""Smallest error that is stated, relative to the scale of an output: single precision."""


def evaluations_of_label(n_players: int) -> int:
    """Return the default number of evaluations for the label of a row."""
    return max(_FEWEST_EVALUATIONS, _PER_PLAYER * n_players)


@write_constructor
class Training(Schedule, TargetOptions):
    """Target and budgets of a training.

    `labels` is one of `TARGETS`, by default `"oddgp"`. `"oddgp"` and `"leastsquares"` are labels:
    estimates that are computed once per row. The other targets draw new coalitions in each epoch.
    `"simsemivalue"` is SimSHAP (Zhang et al., 2023, Eq. 14). `"controlled"` is the same target with
    the additive game of the network's prediction as control variate, which does not change the
    expectation and removes most of the variance. `"fastshap"` is the loss of FastSHAP (Eq. 7).
    """

    seed: Any = 0
    labels: str = LABELS[0]

    def __post_init__(self) -> None:
        self._check_schedule()
        self.labels = checked_choice("labels", self.labels, TARGETS)
        is_at_once = self.student == "trees" or is_regressor(self.student)
        if is_at_once and self.labels not in LABELS:
            raise InvalidArgumentError(
                f"student={self.student!r:.100} learns labels, which are estimated once for each "
                f"row, but labels={self.labels!r} draws new coalitions for each step of a network. "
                "Pass labels='oddgp' (of SimSHAP), or a network as student=."
            )
        if self.evaluations is not None:
            checked_count("evaluations", self.evaluations, minimum=4)
        if self.validation_evaluations is not None:
            checked_count("validation_evaluations", self.validation_evaluations)

    @classmethod
    def of(cls, options: object) -> Training:
        """Return the training that the options of a host describe."""
        return cls(**{name: getattr(options, name) for name in cls.__dataclass_fields__})

    def evaluations_per_row(self, n_players: int) -> int:
        """Return the evaluations per row, for labels in total, for other targets per epoch."""
        if self.evaluations is not None:
            return self.evaluations
        return evaluations_of_label(n_players) if self.labels in LABELS else 32

    def settings(self) -> dict[str, str]:
        """Return the settings as texts, for the file of a trained network."""
        stored_elsewhere = {"seed", "folder", "labels", "student", "student_options"}
        return {k: str(v) for k, v in vars(self).items() if k not in stored_elsewhere}

    def evaluations_in_all(self, n_players: int, n_rows: int) -> int:
        """Return the largest number of evaluations for training on `n_rows` rows."""
        per_row = self.evaluations_per_row(n_players)
        if self.labels in LABELS:  # which evaluate no coalition twice
            n_coalitions: int = 2**n_players
            return n_rows * (2 + min(per_row, n_coalitions))
        return n_rows * (2 + self.epochs * per_row)


@dataclass(frozen=True)
class EpochMetrics:
    """Losses and errors of an epoch of training.

    Attributes
    ----------
    epoch : int
        Number of the epoch, from 1.
    evaluations : int
        Evaluations up to this epoch, including labels, v(∅), v(N) and validation.
    loss : float
        Mean loss of the epoch, in squared units of the targets.
    absolute_error : float
        The sum over players of absolute errors, averaged over held-out rows and outputs.
    """

    epoch: int
    evaluations: int
    loss: float
    absolute_error: float


@dataclass
class Objective:
    """Losses and errors of a training. Random draws depend on the seed and the epoch only.

    Attributes
    ----------
    rows : TrainingRows
        All rows.
    network : ExplainerNetwork
        The network to train.
    training : Training
        The options of the training.
    held_out, training_rows : arrays of int
        The rows for validation and to train on, in increasing order.
    selected : array of int
        The held-out rows with values.
    valued : PaidEstimates
        Their values.
    validation_evaluations : int
        Evaluations for validation.
    evaluations : int
        All evaluations up to now.
    history : list of EpochMetrics
        One for each epoch up to now.
    """

    rows: TrainingRows
    network: ExplainerNetwork
    training: Training
    n_shifted: InitVar[int] = 0
    history: list[EpochMetrics] = field(default_factory=list)

    def __post_init__(self, n_shifted: int) -> None:
        rows, training = self.rows, self.training
        n_rows = rows.game.n_rows
        self.held_out, self.training_rows = split_rows(training, rows.n_real or n_rows, n_rows)
        self._value_held_out_rows(2 * (len(self.held_out) + n_shifted))
        self.evaluations = self.validation_evaluations + 2 * len(self.training_rows)
        self._labels: Tensor | None = None
        if training.labels in LABELS:
            self._labels, cost = _labels(rows, self.training_rows, training)
            self.evaluations += cost
        self._is_grad_enabled = torch.is_grad_enabled()  # for the model, as the caller has it
        self._drawn: tuple[BoolArray, ValueArray]
        self._epoch = -1

    def fit(self) -> None:
        """Train the network; it then has the weights of its best epoch."""
        student, training = self.network.network, self.training
        if isinstance(student, FittedRegressor):
            labels = cast(Tensor, self._labels) / self.network.scale
            inputs = self.network.standardised(self.rows.batch(self.training_rows))
            x, y = (part.flatten(1).double().numpy() for part in (inputs, labels))
            student.learn(x, y, training.seed)
            with torch.no_grad():
                self.validate(0, float(self.loss(self.training_rows, 0)))
            return
        decay = student.weight_decay if isinstance(student, EmbeddingNetwork) else WEIGHT_DECAY
        steps, progress = (self.loss, self.validate), self.rows.progress
        fit(self.network, training, self.training_rows, *steps, progress, decay)

    def _value_held_out_rows(self, n_ends: int) -> None:
        """Value the held-out rows, or random ones if all would cost too much.

        `n_ends` is the number of v(∅) and v(N) that validation has evaluated already.
        """
        rows, training, held_out = self.rows, self.training, self.held_out
        budget, n_rows = training.validation_evaluations, len(held_out)
        # Weights learned per row would take most of the time; they are used with a budget of the
        # user.
        estimator = OddGP("equal" if budget is None else "learned")
        if budget is None:
            n_players = rows.game.n_players
            planned = training.evaluations_in_all(n_players, len(self.training_rows))
            budget, n_rows = _affordable(_SHARE * planned - n_ends, n_players, n_rows)
        order = np.random.default_rng([training.seed, 6]).permutation(len(held_out))
        self.selected = np.sort(held_out[order[:n_rows]])
        name, source = "values of held-out rows", "validation_evaluations"
        self.valued = estimated(rows, self.selected, estimator, name, training.seed, budget, source)
        self.validation_evaluations = int(self.valued.evaluations.sum()) + n_ends

    def stated_errors(self, reference: ReferenceRows, shifted: TrainingRows | None) -> StatedErrors:
        """Return how large the errors of the trained network are; costs no evaluations.

        `reference` are training rows, from which distances are measured, and `shifted` are rows
        unlike the training rows.
        """
        network, rows, selected = self.network, self.rows, self.selected
        predictions, gaps = predictions_and_gaps(network, rows, selected)
        active = rows.active[selected]
        held_out = RowsWithErrors(
            reference.distances(network, rows.inputs[selected]),
            gaps,
            with_residual(predictions, gaps, active) - self.valued.values,
            self.valued.standard_errors**2,
            active,
        )
        distances, gaps_of_shifted = np.zeros(0), gaps[:0]
        if shifted is not None:
            distances = reference.distances(network, shifted.inputs)
            every_row = np.arange(shifted.game.n_rows)
            _, gaps_of_shifted = predictions_and_gaps(network, shifted, every_row)
        rounding = _ROUNDING * network.scale.double().numpy()
        return StatedErrors.fit(held_out, distances, gaps_of_shifted, rounding)

    def loss(self, rows: IntArray, epoch: int) -> Tensor:
        """Return the loss of some training rows in an epoch."""
        predictions, rise, active = self._predicted(rows)
        scale, places = self.network.scale, np.searchsorted(self.training_rows, rows)
        predictions, rise = predictions / scale, rise / scale
        if self._labels is not None:
            labels = self._labels[places].to(predictions)
            return label_loss(predictions, labels / scale, rise, active)
        if epoch != self._epoch:
            self._draw(epoch)
        coalitions, values = (torch.as_tensor(a[places]).to(predictions) for a in self._drawn)
        counts, which = np.unique(self.rows.active[rows].sum(axis=1), return_inverse=True)
        totals = np.array([kernel_total(int(count)) for count in counts])[which]
        return stochastic_loss(
            self.training.labels,
            predictions,
            coalitions,
            values / scale,
            rise,
            active.to(predictions),
            torch.as_tensor(totals).to(predictions),
        )

    def _draw(self, epoch: int) -> None:
        """Draw and evaluate the coalitions of all training rows in an epoch, or read the values."""
        rows, indices, training = self.rows, self.training_rows, self.training
        n = training.evaluations_per_row(rows.game.n_players)
        rng = np.random.default_rng([training.seed, 1, epoch])
        coalitions = draw_coalitions(rows.active[indices], n, training.paired, rng)
        with torch.set_grad_enabled(self._is_grad_enabled):
            game = SomeRows(rows.game, indices)
            values = rows.ledger.values(game, coalitions, rows.inputs[indices])
        self.evaluations += n * len(indices)
        self._epoch, self._drawn = epoch, (coalitions, values - rows.empty[indices][:, None])

    def _predicted(self, rows: IntArray) -> tuple[Tensor, Tensor, Tensor]:
        """Return attributions, v(N) − v(∅) and the active players of some rows."""
        device = self.network.scale.device
        active = torch.as_tensor(self.rows.active[rows], device=device)
        predictions: Tensor = self.network(self.rows.batch(rows).to(device), active)
        rise = torch.as_tensor(self.rows.grand_minus_empty[rows]).to(predictions)
        return predictions, rise, active

    def validate(self, epoch: int, loss: float) -> float:
        """Return the error on held-out rows."""
        errors = []
        for part in np.array_split(self.selected, -(-len(self.selected) // _ROWS_AT_ONCE)):
            predictions, rise, active = self._predicted(part)
            if self.training.efficient:
                predictions = efficient(predictions, rise, active)
            errors.append(predictions.cpu().double().numpy())
        differences = np.concatenate(errors) - self.valued.values  # (R, M, K)
        error = float(np.abs(differences).sum(axis=1).mean())
        self.history.append(EpochMetrics(epoch + 1, self.evaluations, loss, error))
        return error


def _affordable(total: float, n_players: int, n_held_out: int) -> tuple[int, int]:
    """Return the evaluations per row and the number of rows for a total of evaluations.

    Each row gets all coalitions if the total allows this, and otherwise the default number of
    evaluations for a label. More would be more accurate, but the time of `oddgp` grows with the
    cube of this number and would then exceed that of the training. If the total is too small even
    for this, only some rows get values.
    """
    n_coalitions = 2**n_players
    if n_players <= _EXACT_PLAYERS and n_coalitions * n_held_out <= total:
        return n_coalitions, n_held_out
    budget = min(n_coalitions, evaluations_of_label(n_players))
    return budget, min(n_held_out, max(int(total // budget), _FEWEST_ROWS))


def _labels(rows: TrainingRows, training_rows: IntArray, training: Training) -> tuple[Tensor, int]:
    """Return an estimate for each row, and the number of evaluations."""
    # Equal weights: the network averages errors over rows, so that learned weights do not help.
    estimator = OddGP("equal") if training.labels == "oddgp" else LeastSquares()
    budget = training.evaluations_per_row(rows.game.n_players)
    name, seed = "labels of training rows", training.seed
    paid = estimated(rows, training_rows, estimator, name, seed, budget, "evaluations")
    return torch.as_tensor(paid.values, dtype=torch.float32), int(paid.evaluations.sum())


def draw_coalitions(active: BoolArray, n: int, paired: bool, rng: np.random.Generator) -> BoolArray:
    """Draw n coalitions of the active players of each row, (R, n, M), by the Shapley kernel."""
    parts = np.array_split(active, -(-len(active) // _ROWS_AT_ONCE))  # which bounds the memory
    return np.concatenate([_drawn(part, n, paired, rng) for part in parts])


def _drawn(active: BoolArray, n: int, paired: bool, rng: np.random.Generator) -> BoolArray:
    n_drawn = -(-n // 2) if paired else n
    n_players, counts = active.shape[1], active.sum(axis=1)
    draws = rng.random((len(active), n_drawn))
    sizes: IntArray = np.zeros(draws.shape, dtype=np.intp)
    for count in np.unique(counts[counts > 1]):
        alike = counts == count
        bounds = kernel_mass(int(count)).cumsum()[:-1]
        sizes[alike] = 1 + np.searchsorted(bounds, draws[alike], side="right")
    order = np.where(active[:, None], rng.random((*draws.shape, n_players)), np.inf)
    coalitions: BoolArray = order < np.take_along_axis(np.sort(order), sizes[:, :, None], axis=2)
    if paired:
        complements = active[:, None] & ~coalitions
        pairs = np.stack([coalitions, complements], axis=2)
        coalitions = pairs.reshape(len(active), -1, n_players)
    return coalitions[:, :n]
