"""Training networks that predict attributions (Zhang et al., 2023, Definition 3).

All objectives are distances ‖g(x) − φ_x‖_M between predictions g(x) and targets φ_x. With M = I,
the target is an unbiased estimate from a few coalitions (SimSHAP), or a label that is computed
before training. With M = XᵀWX it is the loss of the regression itself (FastSHAP).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..arguments import checked_choice, checked_count
from ..array_types import BoolArray, FloatArray, IntArray, ValueArray
from ..coalitions.tables import CoalitionTable, kernel_mass, kernel_total
from ..errors import InvalidArgumentError
from ..estimators.least_squares.regression import LeastSquares
from ..estimators.odd_gp.estimator import OddGP
from ..games.evaluation import Evaluator, Request
from ..pipeline.settings import Settings
from .efficiency_gaps import HeldOutGaps, TrainingRows
from .explainer_network import ExplainerNetwork
from .fitting import WEIGHT_DECAY, Schedule, fit
from .held_out_values import HeldOutValues, evaluations_of_label, held_out_values, stated_errors
from .ledger import PaidValues
from .networks import EmbeddingNetwork
from .regressors import FittedRegressor, is_regressor
from .stated_errors import StatedErrors
from .storage import digest
from .unlike_rows import ReferenceRows

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


@dataclass(frozen=True)
class Training(Schedule):
    """Target and budgets of a training; see `Schedule` for its other options.

    Attributes
    ----------
    target : {"oddgp", "leastsquares", "controlled", "simsemivalue", "fastshap"}
        The target of the network. `"oddgp"` and `"leastsquares"` are labels: estimates that are
        computed once per row. The other targets draw new coalitions in each epoch.
        `"simsemivalue"` is SimSHAP (Zhang et al., 2023, Eq. 14). `"controlled"` is the same target
        with the additive game of the network's prediction as control variate, which does not change
        the expectation and removes most of the variance. `"fastshap"` is the loss of FastSHAP
        (Eq. 7).
    evaluations : int, optional
        Number of evaluations per row: once for labels, in each epoch for the other targets. By
        default 8 per player and at least 64 for labels, and 32 per epoch for other targets.
    paired : bool
        Whether the complement of each drawn coalition is evaluated too.
    validation_evaluations : int, optional
        Budget of each held-out row. By default, validation costs at most a tenth of the training's
        evaluations. For up to 12 players, all coalitions of each row are evaluated if the tenth
        allows it, otherwise 8 per player and at least 64. If this is too much for all rows, only
        random rows get values. These are at least 16, even if they cost more than a tenth.
    efficient : bool
        Whether the attributions on held-out rows, of which the errors choose the best epoch, are
        made to sum to v(N) − v(∅) first.
    preset : str, optional
        The name of the settings, for the file; nothing depends on it.
    """

    target: str = "oddgp"
    evaluations: int | None = None
    paired: bool = True
    validation_evaluations: int | None = None
    efficient: bool = True
    preset: str | None = None

    def __post_init__(self) -> None:
        super().__post_init__()
        checked_choice("target", self.target, TARGETS)
        if self.evaluations is not None:
            checked_count("evaluations", self.evaluations, minimum=4)
        if self.validation_evaluations is not None:
            checked_count("validation_evaluations", self.validation_evaluations)

    @classmethod
    def of_explainer(cls, options: Any) -> Training:
        """Return the training of a host's options; errors use the names of these options."""
        check_target(options.student, str(options.labels))
        names = "evaluations", "paired", "efficient", "preset", "validation_evaluations"
        further = {name: getattr(options, name) for name in names}
        target = checked_choice("labels", options.labels, TARGETS)
        return cls.from_options(options, target=target, **further)

    def evaluations_per_row(self, n_players: int) -> int:
        """Return the evaluations per row, for labels in total, for other targets per epoch."""
        if self.evaluations is not None:
            return self.evaluations
        return evaluations_of_label(n_players) if self.target in LABELS else 32

    def settings(self) -> dict[str, str]:
        """Return the settings as texts, for the file of a trained network."""
        stored_elsewhere = ("seed", "target")
        options = {k: v for k, v in self.options().items() if k not in stored_elsewhere}
        return options | {"preset": str(self.preset)}

    def evaluations_in_all(self, n_players: int, n_rows: int) -> int:
        """Return the largest number of evaluations for training on `n_rows` rows."""
        per_row = self.evaluations_per_row(n_players)
        if self.target in LABELS:  # which evaluate no coalition twice
            n_coalitions: int = 2**n_players
            return n_rows * (2 + min(per_row, n_coalitions))
        return n_rows * (2 + self.epochs * per_row)


def check_target(student: object, target: str) -> None:
    """Refuse a target that a student without gradients cannot learn.

    Raises
    ------
    InvalidArgumentError
        If trees or a regressor would have to learn from coalitions that are drawn in each epoch.
    """
    if target in LABELS or not (student == "trees" or is_regressor(student)):
        return
    raise InvalidArgumentError(
        f"student={student!r:.100} learns labels, which are estimated once for each row, but "
        f"labels={target!r} draws new coalitions for each step of a network. Pass labels='oddgp' "
        "(of SimSHAP), or a network as student=."
    )


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
    absolute_error, squared_error : float
        Errors on held-out rows. The first is the sum over players of absolute errors, averaged over
        rows and outputs. The second sums squared errors instead, and is the root of the average.
    standard_error : float
        Standard error of `absolute_error` as an average over rows; NaN for a single row.
    """

    epoch: int
    evaluations: int
    loss: float
    absolute_error: float
    squared_error: float
    standard_error: float


@dataclass(frozen=True)
class TrainedNetwork:
    """A trained network and its history.

    Attributes
    ----------
    network : ExplainerNetwork
        With the weights of the epoch of least validation error.
    history : list of EpochMetrics
        One for each epoch.
    evaluations, validation_evaluations : int
        All evaluations of the training, and those of them that validation took. Both include v(∅)
        and v(N). Validation includes the artificial rows from which stated errors are learned.
    gaps : HeldOutGaps
        Efficiency gaps of the network on held-out rows.
    errors : StatedErrors
        How large the network's errors are.
    reference : ReferenceRows
        Training rows, from which the distance of other rows is measured.
    """

    network: ExplainerNetwork
    history: list[EpochMetrics]
    evaluations: int
    validation_evaluations: int
    gaps: HeldOutGaps
    errors: StatedErrors
    reference: ReferenceRows


def train(
    rows: TrainingRows,
    network: ExplainerNetwork,
    training: Training,
    shifted: TrainingRows | None = None,
) -> TrainedNetwork:
    """Train `network`, and return it with the weights of its best epoch.

    Costs v(∅) and v(N) of each row, the evaluations of `Training.evaluations`, and those of
    validation. `shifted` are rows unlike the training rows, from which the growth of errors is
    learned.
    """
    held_out, training_rows = training.split(rows.n_real or rows.game.n_rows, rows.game.n_rows)
    n_shifted = 0 if shifted is None else shifted.game.n_rows
    end_points = 2 * (len(held_out) + n_shifted)
    valued = held_out_values(rows, held_out, training, len(training_rows), end_points)
    n_validation = valued.evaluations + end_points
    spent = n_validation + 2 * len(training_rows)
    if isinstance(network.network, FittedRegressor):
        history, spent = _learned_at_once(
            rows, network, network.network, training, training_rows, valued, spent
        )
    else:
        objective = _Objective(rows, network, training, training_rows, valued, spent)
        architecture, decay = network.network, WEIGHT_DECAY
        if isinstance(architecture, EmbeddingNetwork):
            decay = architecture.weight_decay
        steps = objective.loss, objective.validate
        fit(network, training, training_rows, *steps, rows.progress, decay)
        history, spent = objective.history, objective.evaluations
    gaps = HeldOutGaps.from_network(network, rows, held_out)
    reference = ReferenceRows.draw(network, rows.inputs, training_rows, training.seed)
    errors = stated_errors(network, reference, rows, valued, shifted)
    return TrainedNetwork(network, history, spent, n_validation, gaps, errors, reference)


def _learned_at_once(
    rows: TrainingRows,
    network: ExplainerNetwork,
    student: FittedRegressor,
    training: Training,
    training_rows: IntArray,
    valued: HeldOutValues,
    spent: int,
) -> tuple[list[EpochMetrics], int]:
    """Fit a student to labels; return its history, and all evaluations.

    Of a student that learns in stages, those after the stage of least error on held-out rows are
    dropped.

    Raises
    ------
    InvalidArgumentError
        If the target is not one of labels.
    """
    labels, cost = _labels(rows, training_rows, training)
    scaled = (labels / network.scale).flatten(1).double().numpy()
    inputs = network.standardised(rows.batch(training_rows)).flatten(1).double().numpy()
    student.learn(inputs, scaled, training.seed)
    losses = _stage_errors(rows, network, student, training_rows, labels, False)[1].mean(axis=1)
    targets = torch.as_tensor(valued.values)
    absolute, squares = _stage_errors(
        rows, network, student, valued.rows, targets, training.efficient
    )
    history = [
        EpochMetrics(
            number + 1,
            spent + cost,
            float(losses[number]),
            float(absolute[number].mean()),
            float(np.sqrt(squares[number].mean())),
            _standard_error(absolute[number]),
        )
        for number in range(len(losses))
    ]
    student.keep(1 + int(np.argmin(absolute.mean(axis=1))))
    return history, spent + cost


def _stage_errors(
    rows: TrainingRows,
    network: ExplainerNetwork,
    student: FittedRegressor,
    indices: IntArray,
    targets: Tensor,
    is_efficient: bool,
) -> tuple[FloatArray, FloatArray]:
    """Return the absolute and the squared errors of rows, (stages, R), summed over players.

    They are means over outputs, after each stage of the fit.
    """
    active = torch.as_tensor(rows.active[indices]).float()
    rise = torch.as_tensor(rows.grand_minus_empty[indices])
    of_stages: list[FloatArray] = []
    for stage in student.stages(network.standardised(rows.batch(indices))):
        predicted = (stage * network.scale).double() * active[:, :, None]
        errors = (efficient(predicted, rise, active) if is_efficient else predicted) - targets
        sums = torch.stack([errors.abs().sum(dim=1), (errors**2).sum(dim=1)])
        of_stages.append(sums.mean(dim=2).numpy())
    absolute, squares = np.stack(of_stages, axis=1)
    return absolute, squares


@dataclass
class _Objective:
    """Losses and errors of a training. Random draws depend on the seed, the epoch and the row only.

    Attributes
    ----------
    rows : TrainingRows
        All rows.
    network : ExplainerNetwork
        The network to train.
    training : Training
        The options of the training.
    training_rows : array of int
        The rows to train on, in increasing order.
    valued : HeldOutValues
        The held-out rows with values.
    evaluations : int
        Evaluations up to now.
    history : list of EpochMetrics
        One for each epoch up to now.
    """

    rows: TrainingRows
    network: ExplainerNetwork
    training: Training
    training_rows: IntArray
    valued: HeldOutValues
    evaluations: int
    history: list[EpochMetrics] = field(default_factory=list)

    def __post_init__(self) -> None:
        self._labels: Tensor | None = None
        if self.training.target in LABELS:
            self._labels, cost = _labels(self.rows, self.training_rows, self.training)
            self.evaluations += cost
        self._evaluate = Evaluator(self.rows.game)
        self._is_grad_enabled = torch.is_grad_enabled()  # for the model, as the caller has it
        self._new: list[ValueArray] = []
        self._kept: ValueArray | None = None
        self._epoch = -1

    def loss(self, rows: IntArray, epoch: int) -> Tensor:
        """Return the loss of some training rows in an epoch."""
        predictions, rise, active = self._predicted(rows)
        scale = self.network.scale
        predictions, rise = predictions / scale, rise / scale
        if self._labels is not None:
            labels = self._labels[np.searchsorted(self.training_rows, rows)].to(predictions)
            return label_loss(predictions, labels / scale, rise, active)
        n = self.training.evaluations_per_row(self.rows.game.n_players)
        coalitions = draw_coalitions(self.rows.active[rows], rows, n, self.training, epoch)
        values = self._values(rows, coalitions, epoch) - self.rows.empty[rows][:, None]
        counts, which = np.unique(self.rows.active[rows].sum(axis=1), return_inverse=True)
        totals = np.array([kernel_total(int(count)) for count in counts])[which]
        return stochastic_loss(
            self.training.target,
            predictions,
            torch.as_tensor(coalitions).to(predictions),
            torch.as_tensor(values).to(predictions) / scale,
            rise,
            active.to(predictions),
            torch.as_tensor(totals).to(predictions),
        )

    def _predicted(self, rows: IntArray) -> tuple[Tensor, Tensor, Tensor]:
        """Return attributions, v(N) − v(∅) and the active players of some rows."""
        device = self.network.scale.device
        active = torch.as_tensor(self.rows.active[rows], device=device)
        predictions: Tensor = self.network(self.rows.batch(rows).to(device), active)
        rise = torch.as_tensor(self.rows.grand_minus_empty[rows]).to(predictions)
        return predictions, rise, active

    def _values(self, rows: IntArray, coalitions: BoolArray, epoch: int) -> ValueArray:
        """Return the values of drawn coalitions, (B, n, K), or those of the folder."""
        if epoch != self._epoch:
            self._epoch, self._new = epoch, []
            kept = self.rows.ledger.read(self._name(epoch), PaidValues)
            self._kept = None if kept is None else kept.values
        n = coalitions.shape[1]
        self.evaluations += n * len(rows)
        if self._kept is not None:
            values, self._kept = self._kept[: len(rows)], self._kept[len(rows) :]
            return values
        with torch.set_grad_enabled(self._is_grad_enabled):
            table = CoalitionTable(coalitions, np.full(len(rows), n))
            (values,) = self._evaluate([Request(rows, table)])
        self._new.append(values)
        return values

    def _name(self, epoch: int) -> str:
        """Return the name of the values of an epoch, which depend on no other options."""
        if self.rows.ledger.folder is None:
            return ""
        own = self.training
        n = own.evaluations_per_row(self.rows.game.n_players)
        of_rows = np.asarray(self.rows.inputs), self.rows.active, self.training_rows
        return f"epoch-{digest(own.seed, own.paired, n, *of_rows)}-{epoch}"

    def validate(self, epoch: int, loss: float) -> float:
        """Return the error on held-out rows, and keep what the epoch has paid for."""
        if self._new:
            self.rows.ledger.write(self._name(epoch), PaidValues(np.concatenate(self._new)))
        errors = []
        for part in np.array_split(self.valued.rows, -(-len(self.valued.rows) // _ROWS_AT_ONCE)):
            predictions, rise, active = self._predicted(part)
            if self.training.efficient:
                predictions = efficient(predictions, rise, active)
            errors.append(predictions.cpu().double().numpy())
        differences = np.concatenate(errors) - self.valued.values  # (R, M, K)
        of_rows = np.abs(differences).sum(axis=1).mean(axis=1)
        error, uncertainty = float(of_rows.mean()), _standard_error(of_rows)
        squared = float(np.sqrt((differences**2).sum(axis=1).mean()))
        self.history.append(
            EpochMetrics(epoch + 1, self.evaluations, loss, error, squared, uncertainty)
        )
        return error


def _standard_error(numbers: FloatArray) -> float:
    """Return the standard error of the mean of some numbers; NaN for a single one."""
    if len(numbers) < 2:
        return float("nan")
    return float(numbers.std(ddof=1) / np.sqrt(len(numbers)))


def _labels(rows: TrainingRows, training_rows: IntArray, training: Training) -> tuple[Tensor, int]:
    """Return an estimate for each row, and the number of evaluations."""
    # Equal weights: the network averages errors over rows, so that learned weights do not help.
    estimator = OddGP("equal") if training.target == "oddgp" else LeastSquares()
    budget = training.evaluations_per_row(rows.game.n_players)
    settings = Settings(
        seed=training.seed,
        budget=budget,
        budget_name="evaluations",
        name=rows.progress.description("targets of training rows"),
        n_jobs=rows.n_jobs,
        progress_delay=rows.progress.remaining_delay,
        is_for_training=True,
    )
    paid = rows.ledger.estimated("labels", rows, training_rows, estimator, settings)
    return torch.as_tensor(paid.values, dtype=torch.float32), int(paid.evaluations.sum())


def draw_coalitions(
    active: BoolArray, rows: IntArray, n: int, training: Training, epoch: int
) -> BoolArray:
    """Draw n coalitions of the active players of each row, (B, n, M), by the Shapley kernel."""
    n_drawn = -(-n // 2) if training.paired else n
    n_players, counts = active.shape[1], active.sum(axis=1)
    # Of each coalition, the first number draws the size, the others the order of the players.
    numbers = _random_numbers(rows, (n_drawn, 1 + n_players), training.seed, epoch)
    sizes: IntArray = np.zeros((len(rows), n_drawn), dtype=np.intp)
    for count in np.unique(counts[counts > 1]):
        alike = counts == count
        bounds = kernel_mass(int(count)).cumsum()[:-1]
        sizes[alike] = 1 + np.searchsorted(bounds, numbers[alike, :, 0], side="right")
    order = np.where(active[:, None], numbers[:, :, 1:], np.inf)
    coalitions: BoolArray = order < np.take_along_axis(np.sort(order), sizes[:, :, None], axis=2)
    if training.paired:
        complements = active[:, None] & ~coalitions
        pairs = np.stack([coalitions, complements], axis=2)
        coalitions = pairs.reshape(len(rows), -1, n_players)
    return coalitions[:, :n]


def _random_numbers(rows: IntArray, shape: tuple[int, ...], seed: int, epoch: int) -> FloatArray:
    """Return numbers from 0 to 1, (B, …), that depend on the seed, the epoch and the row only."""
    bits = np.random.Philox(np.random.SeedSequence([seed, 1, epoch]))
    generator, state = np.random.Generator(bits), bits.state
    numbers = np.empty((len(rows), *shape))
    for row, of_row in zip(rows, numbers, strict=True):
        # Counting from a place of each row takes a sixth of the time of a generator of its own.
        state["state"]["counter"][3] = row
        bits.state = state
        generator.random(out=of_row)
    return numbers
