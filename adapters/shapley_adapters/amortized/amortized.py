"""The amortized explainer of both hosts: training, explaining, saving and loading."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Any, cast

import numpy as np
import torch
from torch import Tensor, nn

from ..array_types import AttributionArray, BoolArray, IntArray, ValueArray
from ..coalitions.tables import CoalitionTable, end_points
from ..errors import InvalidArgumentError, warn_user
from ..games.evaluation import Evaluator, Request
from ..games.game import Game, SomeRows
from ..pipeline.result import Estimate, blank_estimate
from ..pipeline.settings import Settings
from .explainer_network import ExplainerNetwork, check_finite
from .fitting import Progress, built, outside_inference_mode
from .ledger import Ledger, TrainingRows
from .networks import FittedRegressor, build, default_student, is_regressor, with_players
from .refinement import refined
from .stated_errors import StatedErrors
from .storage import Description, Fingerprint, read_file, write_file
from .training import TARGETS, EpochMetrics, Objective, Training, method_of
from .unlike_rows import HeldOutGaps, ReferenceRows, warn_of_rows, with_residual

_ROUNDING = 1e-3
"""Largest relative difference between v(∅) and its value in training."""


@dataclass(frozen=True)
class NetworkExplanation:
    """Attributions of a network, and the errors of their sums.

    Attributes
    ----------
    estimate : Estimate
        The attributions.
    efficiency_gaps : array, (R, K)
        v(N) − v(∅) − Σφ of the network's predictions φ; NaN if v(N) was not evaluated.
    unlike_rows : array of int
        The rows with gaps far larger than those of held-out rows; where v(N) was not evaluated,
        those far from the training rows. A warning names them.
    """

    estimate: Estimate
    efficiency_gaps: ValueArray
    unlike_rows: IntArray


@dataclass(frozen=True, repr=False)
class AmortizedShapley:
    """A network trained to predict Shapley values.

    Explaining a row costs one pass of the network and one evaluation of v(∅), or one for all rows
    if v(∅) is the same for all. With `efficient`, it also costs one evaluation of v(N) per row. The
    attributions are biased; `history` has their errors on held-out rows.

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
    description : Description
        What network it is, and how it was trained.
    fingerprint : Fingerprint
        Some training rows, with v(∅) and v(N).
    """

    network: ExplainerNetwork
    history: list[EpochMetrics]
    evaluations: int
    validation_evaluations: int
    gaps: HeldOutGaps
    errors: StatedErrors
    reference: ReferenceRows
    description: Description
    fingerprint: Fingerprint

    def __repr__(self) -> str:
        about = self.description
        settings = ", ".join(f"{name}={value}" for name, value in about.settings.items())
        error = min(record.absolute_error for record in self.history)
        return (
            f"AmortizedShapley(labels={about.target}, {settings}, network={about.network}, "
            f"options={about.options}, {about.n_players} players, {about.n_outputs} outputs, "
            f"{self.evaluations:,} evaluations, error {error:.3g} on held-out rows)"
        )

    @classmethod
    def fit(
        cls,
        game: Game,
        inputs: Any,
        training: Training,
        n_real: int | None = None,
        progress: Progress | None = None,
        n_jobs: int | None = 1,
        shifted: Callable[[], tuple[Game, Any]] | None = None,
        players: IntArray | None = None,
    ) -> AmortizedShapley:
        """Train a network on the games of rows and on its inputs for these rows, (R, …).

        Parameters
        ----------
        game : Game
            The games of all training rows.
        inputs : array or Tensor, (R, …)
            The network's inputs.
        training : Training
            Options of the training. Its student is a name of `NETWORKS`; a module that maps inputs
            to (rows, players, outputs); or a regressor of scikit-learn, of several outputs. A copy
            of these is trained. By default it is that of `default_student`.
        n_real : int, optional
            Number of real rows, which come first; all by default.
        progress : Progress, optional
            Progress bars of the training; none by default.
        n_jobs : int, optional
            The number of workers that evaluate the coalitions of labels.
        shifted : callable, optional
            Makes the games and the network's inputs of rows unlike the training rows, from which
            the growth of errors is learned. They cost two evaluations each.
        players : array of int, optional
            The player of each number of the network's inputs for a row, for a network that needs
            it; by default there is one player for each number.

        Warns
        -----
        ShapleyExtWarning
            If the model cannot be evaluated for these rows.

        Raises
        ------
        InvalidArgumentError
            If inputs hold NaN or infinite numbers, the network does not fit them, values are means
            of drawn features, or `folder` holds values of another model.
        """
        check_finite(inputs)
        if game.draws_values:
            raise InvalidArgumentError(
                "A network learns values without noise, not those of drawn features. Explain a "
                "ConditionalMean with its reference, or pass background rows or a baseline."
            )
        student = training.student
        student = default_student(inputs, players) if student is None else student
        options = with_players(student, training.student_options or {}, players)
        with outside_inference_mode():
            ledger = Ledger(training.folder)
            rows = TrainingRows(game, inputs, n_real, progress or Progress(), n_jobs, ledger)
            outside = None if shifted is None else _shifted_rows(shifted, rows)
            shape, n_outputs = list(inputs.shape[1:]), rows.grand_minus_empty.shape[1]
            name = student if isinstance(student, str) else type(student).__name__
            module: nn.Module
            if isinstance(student, nn.Module):
                module = copy.deepcopy(student).float()  # the inputs are in single precision
            elif is_regressor(student):
                module = FittedRegressor(student, game.n_players, n_outputs)
            else:
                make = partial(build, name, shape, game.n_players, n_outputs, options)
                module = built(training.seed, make)
            explainer = ExplainerNetwork.around(module, inputs, rows.grand_minus_empty, rows.empty)
            if not isinstance(module, FittedRegressor):
                _check_shape(explainer, rows)
            objective = Objective(rows, explainer, training, outside.game.n_rows if outside else 0)
            objective.fit()
            gaps = HeldOutGaps.from_network(explainer, rows, objective.held_out)
            learned = objective.training_rows
            reference = ReferenceRows.draw(explainer, inputs, learned, training.seed)
            errors = objective.stated_errors(reference, outside)
        about = Description(
            *(name, options, shape, game.n_players, n_outputs),
            *(training.labels, training.seed, training.settings()),
        )
        ends = np.stack([rows.empty, rows.empty + rows.grand_minus_empty], axis=1)
        return cls(
            network=explainer,
            history=objective.history,
            evaluations=objective.evaluations,
            validation_evaluations=objective.validation_evaluations,
            gaps=gaps,
            errors=errors,
            reference=reference,
            description=about,
            fingerprint=Fingerprint.from_rows(inputs, ends),
        )

    def with_host(self, host: Mapping[str, Any]) -> AmortizedShapley:
        """Return a copy with data of the host for the file, which must be valid JSON."""
        return replace(self, description=replace(self.description, host=dict(host)))

    def explain(
        self,
        game: Game,
        inputs: Any,
        efficient: bool,
        batch_size: int | None = None,
        refinement: Settings | None = None,
    ) -> NetworkExplanation:
        """Explain all rows of `game`; evaluate coalitions to improve them, as `refinement` says.

        A refinement without a budget and a tolerance is none.

        Raises
        ------
        InvalidArgumentError
            If the rows have another shape than the training rows or hold NaN, or if v(∅) was the
            same for all training rows and is different now.

        Warns
        -----
        ShapleyExtWarning
            If efficiency gaps are far larger than those of held-out rows; without `efficient`, if
            rows are far from the training rows.
        """
        self.check(game.n_players, inputs.shape[1:])
        active = game.active_players()
        parts = list(self.network.explained(inputs, active, batch_size))
        values: AttributionArray = np.concatenate(parts)
        empty, grand, n_evaluations = self._ends(game, efficient)
        self._check_reference(empty)
        gaps = np.full_like(empty, np.nan)
        distances = self.reference.distances(self.network, inputs)
        if efficient:
            gaps = grand - empty - values.sum(axis=1)
            errors = self.errors.row_errors(distances, gaps, active)
            unlike = self.gaps.rows_beyond(gaps)
            excess = self.gaps.relative(gaps).max(initial=0.0) / self.gaps.largest
            reason = (
                "the sum of their attributions differs from the model's output by up to "
                f"{excess:.3g} times the largest gap of {self.gaps.n_rows} held-out rows"
            )
            warn_of_rows(unlike, game.n_rows, reason)
            values = with_residual(values, gaps, active)
        else:
            errors = self.errors.raw_row_errors(distances, active)
            unlike = self.errors.far_rows(distances)
            excess = distances.max(initial=0.0) / self.errors.largest
            reason = (
                f"their distance to the nearest of these is up to {excess:.3g} times that of 95 % "
                "of the held-out rows"
            )
            advice = "Pass efficient=True to see how far their sum is from the model's output. "
            warn_of_rows(unlike, game.n_rows, reason, advice)
            grand = empty + values.sum(axis=1)
        ends, seed = np.stack([empty, grand], axis=1), self.description.seed
        estimate = replace(
            blank_estimate(ends, game.n_players, seed, "trained network"),
            values=values,
            standard_errors=errors,
            degrees_of_freedom=np.full(values.shape, self.errors.freedom),
            evaluations=n_evaluations,
            model_rows=n_evaluations * game.n_backgrounds,
        )
        if refinement is not None and (refinement.budget, refinement.tolerance) != (None, None):
            estimate = refined(game, estimate, refinement)
        return NetworkExplanation(estimate, gaps, unlike)

    def stream(
        self, inputs: Any, active: BoolArray, batch_size: int | None = None, first: int = 0
    ) -> Iterator[AttributionArray]:
        """Yield the network's attributions in batches; costs no evaluations.

        `first` is the number of the first row for messages, if the inputs are part of a stream.
        """
        self.check(active.shape[1], inputs.shape[1:])
        yield from self.network.explained(inputs, active, batch_size, first)

    def check(self, n_players: int, input_shape: Any) -> None:
        """Refuse rows of another shape than the training rows."""
        about = self.description
        if list(input_shape) != about.input_shape or n_players != about.n_players:
            raise InvalidArgumentError(
                f"The explainer was trained on rows of shape {tuple(about.input_shape)} with "
                f"{about.n_players} players; these have shape {tuple(input_shape)} and "
                f"{n_players} players."
            )

    def save(self, path: Path | str) -> None:
        """Write everything to a file; see `load`.

        Raises
        ------
        InvalidArgumentError
            If the student is trees, or a regressor of scikit-learn.
        """
        if isinstance(self.network.network, FittedRegressor):
            raise InvalidArgumentError(
                f"A student of kind {self.description.network!r} cannot be written to a "
                "file. Only a pickle holds objects of scikit-learn and LightGBM, and reading one "
                "runs any code in it. Train a network, such as student='mlp'; or pickle the "
                "explainer yourself, and read only files that you trust."
            )
        write_file(path, "explainer", self)

    @classmethod
    def load(
        cls,
        path: Path | str,
        student: object = None,
        targets: Sequence[str] = TARGETS,
    ) -> AmortizedShapley:
        """Read a file that `save` wrote.

        `student` is required if it was a module of the user.

        Raises
        ------
        InvalidArgumentError
            If the file is damaged, was not written by this version of the package, has another
            target than `targets`, or its weights do not fit `student`.
        """
        saved = read_file(path, "explainer", cls)
        about, weights = saved.description, cast(dict[str, Tensor], saved.network)
        if about.target not in targets:
            method, wanted = method_of(about.target), method_of(targets[0])
            raise InvalidArgumentError(
                f"{path} holds a network trained by {method} with labels={about.target!r}, not by "
                f"{wanted} with {' or '.join(map(repr, targets))}. Load it by algorithm={method!r} "
                "(captum: the class of this name), without labels= and preset=."
            )
        module = student if isinstance(student, nn.Module) else None
        row = [0] if "centre" in weights and not weights["centre"].numel() else about.input_shape
        network = about.network_of(path, "explainer", module, ExplainerNetwork, row, weights)
        return replace(saved, network=network)

    def _ends(self, game: Game, efficient: bool) -> tuple[ValueArray, ValueArray, IntArray]:
        """Return v(∅) and v(N) of all rows, and the number of evaluations per row.

        If v(∅) was the same for all training rows, it is evaluated for the first row only. Without
        `efficient`, v(N) is not evaluated and v(∅) is returned instead.
        """
        is_common = bool(np.isfinite(self.network.empty.numpy()).all())
        rows: IntArray = np.arange(game.n_rows)
        first = rows[:1] if is_common else rows
        of_none, of_all = (
            CoalitionTable(coalition[None, None], np.array([1]))
            for coalition in end_points(game.n_players)
        )
        requests = [Request(first, of_none), *[Request(rows, of_all)] * efficient]
        values = [part[:, 0] for part in Evaluator(game)(requests)]
        empty = np.broadcast_to(values[0], (game.n_rows, values[0].shape[1])).copy()
        evaluations: IntArray = np.isin(rows, first).astype(np.intp) + efficient
        return empty, values[-1] if efficient else empty, evaluations

    def _check_reference(self, empty: ValueArray) -> None:
        """Refuse v(∅), (R, K), that differs from the one of all training rows."""
        network = self.network
        training_empty, scale = network.empty.numpy(), network.scale.double().numpy()
        if empty.shape[1] != len(training_empty):
            raise InvalidArgumentError(
                f"The network was trained on a model with {len(training_empty)} outputs; this one "
                f"has {empty.shape[1]}."
            )
        gaps = np.nan_to_num(np.abs(empty - training_empty))  # NaN: it differed between rows
        if (gaps > _ROUNDING * np.maximum(np.abs(np.nan_to_num(training_empty)), scale)).any():
            row, output = np.unravel_index(np.argmax(gaps), gaps.shape)
            raise InvalidArgumentError(
                "The reference is not the one of the training: with all features absent, the "
                f"model returns {empty[row, output]:.6g}, but it returned "
                f"{training_empty[output]:.6g} in training. Pass the same baselines (captum) or "
                "masker (shap), or train again."
            )


def _shifted_rows(make: Callable[[], tuple[Game, Any]], rows: TrainingRows) -> TrainingRows | None:
    """Return rows unlike the training rows; None, with a warning, if the model fails on them."""
    try:
        game, inputs = make()
        check_finite(inputs)
        return TrainingRows(game, inputs, progress=rows.progress, ledger=rows.ledger)
    except Exception as error:  # the user's code, called with rows that are not the user's
        warn_user(
            "The model cannot be evaluated for artificial rows unlike the training rows "
            f"({type(error).__name__}: {error!s:.200}). Standard errors of rows outside the "
            "training data are therefore a guess: they grow with the square of the distance. "
            "Nothing else is affected."
        )
        return None


def ends_of(game: Game, n_rows: int) -> ValueArray:
    """Return v(∅) and v(N) of the first rows, (R, 2, K)."""
    return Ledger().values(SomeRows(game, np.arange(n_rows)), end_points(game.n_players))


def _check_shape(explainer: ExplainerNetwork, rows: TrainingRows) -> None:
    first_rows = np.arange(min(2, rows.game.n_rows))
    with torch.no_grad():
        prediction = explainer.network(rows.batch(first_rows))
    expected_shape = (len(first_rows), rows.game.n_players, rows.grand_minus_empty.shape[1])
    if tuple(prediction.shape) != expected_shape:
        raise InvalidArgumentError(
            f"student must return (rows, players, outputs) = {expected_shape} for "
            f"{len(first_rows)} rows; it returned {tuple(prediction.shape)}."
        )
