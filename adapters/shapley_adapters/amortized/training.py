"""Training networks that predict attributions, with Lightning."""

from __future__ import annotations

from contextlib import ExitStack
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..arguments import checked_choice, checked_count
from ..array_types import BoolArray, FloatArray, IntArray
from ..coalitions.tables import CoalitionTable, kernel_mass, kernel_total
from ..errors import InvalidArgumentError
from ..estimators.least_squares.regression import LeastSquares
from ..estimators.odd_gp.estimator import OddGP
from ..games.evaluation import Evaluator, Request
from ..pipeline.settings import Settings
from .efficiency_gaps import HeldOutGaps, TrainingRows
from .embedding_network import EmbeddingNetwork
from .explainer_network import ExplainerNetwork
from .fitting import FittedModule, Schedule, fit
from .held_out_values import HeldOutValues, evaluations_of_label, held_out_values, stated_errors
from .ledger import digest
from .objectives import LABELS, TARGETS, efficient, label_loss, stochastic_loss
from .regressors import FittedRegressor, is_regressor
from .stated_errors import StatedErrors
from .unlike_rows import ReferenceRows


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
    described: str,
    shifted: TrainingRows | None = None,
) -> TrainedNetwork:
    """Train `network`, and return it with the weights of its best epoch.

    Costs v(∅) and v(N) of each row, the evaluations of `Training.evaluations`, and those of
    validation. `described` is a digest of the network, by which checkpoints are recognised.
    `shifted` are rows unlike the training rows, from which the growth of errors is learned.
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
        identity = digest(described, rows.inputs, rows.n_real, rows.active)
        module = _Module(rows, network, training, training_rows, valued, spent, identity)
        fit(module)
        history = [EpochMetrics(**record) for record in module.record["history"]]
        spent = module.record["evaluations"]
    gaps = HeldOutGaps.from_network(network, rows, held_out)
    reference = ReferenceRows.draw(network, rows.inputs, training_rows, training.seed)
    errors = stated_errors(network, reference, rows, valued, shifted)
    spent += rows.ledger.lost
    trained = TrainedNetwork(network, history, spent, n_validation, gaps, errors, reference)
    rows.progress.write(_summary(rows, trained, valued))
    return trained


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


class _Module(FittedModule):
    """The module to fit. Random draws depend on the seed, the epoch and the row only."""

    network: ExplainerNetwork
    schedule: Training

    def __init__(
        self,
        rows: TrainingRows,
        network: ExplainerNetwork,
        training: Training,
        training_rows: IntArray,
        valued: HeldOutValues,
        spent: int,
        identity: str,
    ) -> None:
        ends = rows.grand_minus_empty
        super().__init__(
            network, training, training_rows, valued.rows, identity, ends, rows.progress
        )
        if isinstance(network.network, EmbeddingNetwork):
            self.weight_decay = network.network.weight_decay
        self.rows, self._held_out_values = rows, torch.as_tensor(valued.values)
        self.record["evaluations"] = spent
        self.labels: Tensor | None = None
        self._evaluate = Evaluator(rows.game)
        self._is_grad_enabled = torch.is_grad_enabled()  # for the model, as the caller has it
        self._losses: list[float] = []
        self._errors: list[Tensor] = []
        self._epoch = ExitStack()

    # --- steps ---

    def prepare(self) -> None:
        """Compute the labels, if the target has labels, or read those that have been paid for."""
        if self.schedule.target in LABELS:
            self.labels, cost = _labels(self.rows, self.training_rows, self.schedule)
            self.record["evaluations"] += cost

    def on_train_epoch_start(self) -> None:
        """Count the evaluations of the epoch as lost until the next one begins."""
        self._epoch.close()
        if self.labels is None:
            per_row = self.schedule.evaluations_per_row(self.rows.game.n_players)
            self._epoch.enter_context(self.rows.ledger.begun(per_row * len(self.training_rows)))

    def on_fit_end(self) -> None:
        """Count the evaluations of the last epoch as finished."""
        self._epoch.close()

    def training_step(self, row_numbers: Tensor, _: int) -> Tensor:
        rows = row_numbers.cpu().numpy()
        predictions = self._predict(rows)
        scale = self.network.scale
        if self.labels is not None:
            indices = np.searchsorted(self.training_rows, rows)
            labels = self.labels[indices].to(predictions)
            grand_minus_empty = torch.as_tensor(self.rows.grand_minus_empty[rows]).to(predictions)
            active = torch.as_tensor(self.rows.active[rows], device=predictions.device)
            loss = label_loss(
                predictions / scale, labels / scale, grand_minus_empty / scale, active
            )
        else:
            loss = self._stochastic_loss(rows, predictions / scale, scale)
        self._losses.append(float(loss.detach()))
        return loss

    def _predict(self, rows: IntArray) -> Tensor:
        active = torch.as_tensor(self.rows.active[rows], device=self.device)
        predictions: Tensor = self.network(self.rows.batch(rows).to(self.device), active)
        return predictions

    def _stochastic_loss(self, rows: IntArray, predictions: Tensor, scale: Tensor) -> Tensor:
        options = self.schedule
        n_players = self.rows.game.n_players
        n = options.evaluations_per_row(n_players)
        coalitions = draw_coalitions(self.rows.active[rows], rows, n, options, self.current_epoch)
        table = CoalitionTable(coalitions, np.full(len(rows), n))
        with torch.set_grad_enabled(self._is_grad_enabled):
            (values,) = self._evaluate([Request(rows, table)])
        self.record["evaluations"] += n * len(rows)
        counts, which = np.unique(self.rows.active[rows].sum(axis=1), return_inverse=True)
        totals = np.array([kernel_total(int(count)) for count in counts])[which]

        def tensor(array: Any) -> Tensor:
            return torch.as_tensor(array, dtype=predictions.dtype, device=predictions.device)

        return stochastic_loss(
            options.target,
            predictions,
            tensor(coalitions),
            tensor(values - self.rows.empty[rows][:, None]) / scale,
            tensor(self.rows.grand_minus_empty[rows]) / scale,
            tensor(self.rows.active[rows]),
            tensor(totals),
        )

    def validation_step(self, numbers: Tensor, _: int) -> None:
        indices = numbers.cpu().numpy()
        rows = self.held_out[indices]
        predictions = self._predict(rows)
        grand_minus_empty = torch.as_tensor(self.rows.grand_minus_empty[rows]).to(predictions)
        active = torch.as_tensor(self.rows.active[rows], device=predictions.device)
        if self.schedule.efficient:
            predictions = efficient(predictions, grand_minus_empty, active)
        self._errors.append(predictions.cpu().double() - self._held_out_values[indices])

    def on_validation_epoch_end(self) -> None:
        errors = torch.cat(self._errors)  # (R, M, K)
        self._errors.clear()
        of_rows = errors.abs().sum(dim=1).mean(dim=1).numpy()
        absolute, uncertainty = float(of_rows.mean()), _standard_error(of_rows)
        squared = float((errors**2).sum(dim=1).mean().sqrt())
        self.log_error(absolute)
        loss = float(np.mean(self._losses)) if self._losses else float("nan")
        self._losses.clear()
        epoch = self.current_epoch + 1
        numbers = epoch, self.record["evaluations"], loss, absolute, squared, uncertainty
        self.record["history"].append(vars(EpochMetrics(*numbers)))


def _standard_error(numbers: FloatArray) -> float:
    """Return the standard error of the mean of some numbers; NaN for a single one."""
    if len(numbers) < 2:
        return float("nan")
    return float(numbers.std(ddof=1) / np.sqrt(len(numbers)))


def _summary(
    rows: TrainingRows,
    trained: TrainedNetwork,
    valued: HeldOutValues,
) -> str:
    """Return a line about the cost and the errors of a training."""
    size = float(np.abs(valued.values).sum(axis=1).mean())
    best = min(trained.history, key=lambda record: record.absolute_error)
    relative = "unknown"
    if size:
        relative = f"{best.absolute_error / size:.3g} ± {best.standard_error / size:.2g}"
    # What the same evaluations pay for, row by row: the held-out rows have values by `oddgp`.
    n_rows = int(trained.evaluations * len(valued.rows) / max(1, valued.evaluations))
    sums = np.sqrt((rows.grand_minus_empty**2).mean(axis=0))
    gap = float((np.array(trained.gaps.sizes) / np.where(sums > 0, sums, 1.0)).mean())
    return (
        f"{trained.evaluations - trained.validation_evaluations:,} evaluations for training, "
        f"{trained.validation_evaluations:,} for validation, {rows.progress.seconds:.0f} s; "
        f"error of the attributions {relative} of their size on {len(valued.rows)} held-out rows, "
        f"whose own values have one of {valued.absolute_error:.2g}; with as many evaluations, "
        f"oddgp explains {n_rows:,} rows as well as these; efficiency gap {gap:.3g} of v(N) − v(∅)"
    )


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
