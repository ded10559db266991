"""The explainers that train a network."""

from __future__ import annotations

import numbers
from collections.abc import Callable
from pathlib import Path
from typing import TYPE_CHECKING, Any, Unpack

import numpy as np
import pandas as pd
from tqdm.auto import tqdm

from shapley_adapters import Estimate, Game, Settings
from shapley_adapters.arguments import checked_flag, checked_seed
from shapley_adapters.array_types import AttributionArray, FloatArray
from shapley_adapters.constructors import fill_docstring, write_constructor
from shapley_adapters.errors import InvalidArgumentError, warn_user
from shapley_adapters.frames import pandas_frame
from shapley_adapters.surrogates.surrogate_model import surrogate_for
from shapley_adapters.torch_support.tensor_arrays import array_of
from shapley_adapters.training_options import (
    FASTSHAP_PRESETS,
    SIMSHAP_PRESETS,
    TrainingArguments,
    training_parameters,
)

from ..argument_types import Rows, Table
from ..games.explained_rows import ExplainedRows
from ..inputs.rows_json import rows_as_json, rows_of_json
from ..shap_internals import BAR_DELAY
from .call_options import OPTIONS, ExplainerOptions
from .coalition_explainer import CoalitionExplainer
from .legacy_calls import no_expected_value
from .shared_parameters import TEXTS, documented
from .surrogate import Surrogate, network_inputs

if TYPE_CHECKING:
    from shapley_adapters.amortized.amortized import AmortizedShapley
    from shapley_adapters.amortized.training import Training

_CHUNK = 2**14
"""Rows that `stream` holds at a time."""


@write_constructor
class AmortizedExplainer(TrainingArguments, CoalitionExplainer):
    """Base of the explainers that train a network.

    Attributes
    ----------
    trained : AmortizedShapley or None
        The trained network, and in `trained.history` how its training went.
    last_efficiency_gaps : array, (R, K), or None
        After a call: by how much the network's own values missed the sum that they
        should have; NaN where `efficient=False`.
    last_unlike_rows : array of int, or None
        After a call: the rows, counted from 0, on which the network misses that sum by far more
        than on held-out rows. The call warns of them. Where
        `efficient=False`, those that are far from the training rows.
    """

    _evaluates_coalitions = False
    _way = "network"

    training_data: Any = None
    features: Callable[[Any], Any] | None = None
    trained: AmortizedShapley | str | Path | None = None

    def __post_init__(self) -> None:
        if self.training_data is None:
            self.training_data = self.masker  # all of it: shap draws from a large table
        super().__post_init__()
        self._loadable = self._check_training()
        self.surrogate = surrogate_for(self.surrogate, Surrogate, self, self.model)
        self.last_efficiency_gaps: Any = None
        self.last_unlike_rows: Any = None
        self._training()  # refuses options that cannot be used
        if isinstance(self.trained, (str, Path)):
            self.trained = self._loaded(self.trained)

    def fit(self, training_data: Table | None = None, silent: bool = False) -> Any:
        """Train the network on rows, by default those given as `training_data` or as masker.

        Explaining does this by itself where it has not been done. What it has evaluated is
        kept where there is a `folder`, so that a training after an interrupt does not pay for it
        again.

        Parameters
        ----------
        training_data : array or DataFrame, (R, …), optional
            The rows.
        silent : bool
            Whether to show no progress bars; otherwise they appear after ten seconds.

        Returns
        -------
        AmortizedExplainer
            Itself. `trained.evaluations` is the number of all evaluations, and
            `trained.validation_evaluations` how many of them validation took.
        """
        from shapley_adapters.amortized.amortized import AmortizedShapley
        from shapley_adapters.amortized.fitting import Progress

        delay = None if checked_flag("silent", silent) else BAR_DELAY
        data = self.training_data if training_data is None else training_data
        data = pandas_frame(data, "training_data")
        _check_rows(data)
        n_real = len(data)
        if self.surrogate is not None and not self.surrogate.is_fitted:
            self.surrogate.with_model(self.model).fit(data, self.groups, silent)
        if self.n_mixed_rows > 0:
            data = self._with_mixed_rows(data)
        explained = self.explained_rows((data,))
        groups = None if self.features is not None else explained.groups
        trained = AmortizedShapley.fit(
            self._valued(explained),
            self._inputs(data),
            self._training(),
            n_real,
            Progress(str(self.name), delay),
            self.n_jobs,
            lambda: self._shifted_rows(_part(data, 0, n_real)),
            None if groups is None else groups.players,
        )
        n_kept = len(trained.fingerprint.inputs)
        rows_json = None  # of images, for which the network's inputs suffice
        if self.features is not None or isinstance(data, pd.DataFrame) or np.ndim(data) == 2:
            rows_json = rows_as_json(_part(data, 0, n_kept))
        self.trained = trained.with_host({"rows": rows_json})
        return self

    def explained_rows(self, args: tuple[Any, ...], model: Any = None) -> ExplainedRows:
        """Return the rows of a call with the game of the model, or of its surrogate."""
        if self.surrogate is None:
            return super().explained_rows(args, model)
        if not self.surrogate.is_fitted:
            self.fit()
        of_surrogate = CoalitionExplainer(
            self.surrogate,
            self.surrogate.reference,
            self.link,
            feature_names=self.feature_names,
            linearize_link=self.linearize_link,
            groups=self.groups,
        )
        return of_surrogate.explained_rows(args)

    def _training(self) -> Training:
        from shapley_adapters.amortized.training import Training

        return Training.of(self)

    def _with_mixed_rows(self, data: Table) -> Any:
        """Return rows with more of them, each made of two that are not held out."""
        from shapley_adapters.amortized.fitting import split_rows
        from shapley_adapters.amortized.unlike_rows import mixed_rows

        groups = self.explained_rows((_part(data, 0, 2),)).groups
        if groups is None or np.ndim(data) != 2:
            raise InvalidArgumentError(
                f"n_mixed_rows={self.n_mixed_rows} needs tables, whose columns are features or "
                "groups of them."
            )
        values = data.to_numpy() if isinstance(data, pd.DataFrame) else np.asarray(data)
        _, training_rows = split_rows(self._training(), len(values), len(values))
        mixed = mixed_rows(
            values[training_rows], groups.players, self.n_mixed_rows, checked_seed(self.seed)
        )
        if isinstance(data, pd.DataFrame):
            frame = pd.DataFrame(mixed, columns=data.columns).astype(data.dtypes)
            return pd.concat([data, frame], ignore_index=True)
        return np.concatenate([values, mixed])

    def _shifted_rows(self, data: Table) -> tuple[Game, Any]:
        """Return the games and the inputs of rows unlike the training rows."""
        from shapley_adapters.amortized.unlike_rows import shifted_rows

        shifted = shifted_rows(data, checked_seed(self.seed))
        return self._valued(self.explained_rows((shifted,))), self._inputs(shifted)

    def stream(
        self, rows: Table, out: FloatArray | None = None, silent: bool = False
    ) -> AttributionArray:
        """Explain rows without number, by the network alone, in bounded memory.

        Parameters
        ----------
        rows : array, memory-mapped array, or DataFrame, (R, …)
            The rows; read some thousand at a time.
        out : array, (R, M, K), or (R, M) where there is one output, optional
            Where attributions go, such as a memory-mapped array; a new one by default.
        silent : bool
            Whether to show no progress bar.

        Returns
        -------
        array
            `out`. The sums are not corrected, even if `efficient` is true, because this would
            evaluate the model.
        """
        rows = pandas_frame(rows, "rows")
        about = self._fitted().description
        n_rows, shape = len(rows), (about.n_players, about.n_outputs)
        if out is None:
            out = np.empty((n_rows, *(shape[:1] if shape[1] == 1 else shape)))
        if out.shape[:2] != (n_rows, shape[0]) or out.size != n_rows * shape[0] * shape[1]:
            raise InvalidArgumentError(
                f"out must have shape {(n_rows, *shape)}; it has {out.shape}."
            )
        with tqdm(total=n_rows, unit=" rows", disable=checked_flag("silent", silent)) as bar:
            for start in range(0, n_rows, _CHUNK):
                part = _part(rows, start, start + _CHUNK)
                active = self._valued(self.explained_rows((part,))).active_players()
                batches = self._fitted().stream(self._inputs(part), active, first=start)
                values = np.concatenate(list(batches))
                out[start : start + len(values)] = values.reshape(-1, *out.shape[1:])
                bar.update(len(values))
        return out

    @OPTIONS.documented("network")
    def __call__(self, *args: Rows, **options: Unpack[ExplainerOptions]) -> Any:
        """Explain rows by the network, after training it where that has not been done.

        Parameters
        ----------
        *args : array or DataFrame, (R, …)
            The rows.
        max_evals : int or "auto"
            The number of coalitions evaluated per row to improve the network's attributions. They
            are the prior mean of `oddgp`'s regression. By default, as with 0, the network alone
            explains. Needs `efficient`.
        error_bounds : bool
            Whether to return standard errors and 95 % intervals. Those of the network are stated
            from its errors on held-out rows, the distance of a row to the training rows, and the
            row's efficiency gap.
        tolerance : float or str, optional
            The standard error above which coalitions are evaluated for a row, until it is met. Rows
            that meet it by the network alone cost nothing more. Needs `efficient`.
        **options
            The other options of a call.

        Returns
        -------
        shap.Explanation
            Values (R, M), or (R, M, K) for K outputs.

        Warns
        -----
        ShapleyExtWarning
            With `efficient`, of rows unlike those that were trained on: the network misses the
            model's output by far more than on held-out rows. `last_unlike_rows` holds them.
        """
        max_evals = options.get("max_evals", "auto")
        if isinstance(max_evals, numbers.Integral) and max_evals == 0 and max_evals is not False:
            options["max_evals"] = max_evals = "auto"
        OPTIONS.read(self._way, options)
        self._check_refinement(max_evals=max_evals != "auto", tolerance=options.get("tolerance"))
        if self.surrogate is not None and not self.surrogate.is_fitted:
            self.fit(silent=options.get("silent", False))
        return super().__call__(*args, **options)

    def _estimate(self, game: Game, args: tuple[Any, ...], settings: Settings) -> Estimate:
        explained = self._fitted(settings.progress_delay is None).explain(
            game, self._inputs(args[0]), self.efficient, settings.batch_size, settings
        )
        self.last_efficiency_gaps = explained.efficiency_gaps
        self.last_unlike_rows = explained.unlike_rows
        return explained.estimate

    def _check_sums(self, estimate: Estimate) -> None:
        if not self.efficient:
            raise InvalidArgumentError(
                "check_additivity=True needs efficient=True: without it the model is not evaluated "
                "for the explained rows, and last_efficiency_gaps is not known."
            )
        super()._check_sums(estimate)

    def _empty_value(self) -> FloatArray:
        if self.surrogate is not None and not self.surrogate.is_fitted:
            raise no_expected_value("it is that of the surrogate, which has not been trained.")
        return super()._empty_value()

    def _fitted(self, silent: bool = False) -> AmortizedShapley:
        if self.trained is None:
            self.fit(silent=silent)
        if self.trained is None or isinstance(self.trained, (str, Path)):
            raise InvalidArgumentError("The network has not been trained; call fit.")
        return self.trained

    def _inputs(self, data: Table) -> Any:
        """Return the inputs of the network for rows."""
        if self.features is not None:
            return np.array(array_of(self.features(data.copy())))  # it may reuse its memory
        return network_inputs(data, self.student)

    def _loaded(self, path: str | Path) -> AmortizedShapley:
        """Read a trained network, and see that this model is the one it was trained on."""
        from shapley_adapters.amortized.amortized import AmortizedShapley, ends_of

        if self.surrogate is not None and not self.surrogate.is_fitted:
            raise InvalidArgumentError(
                "trained= goes with the surrogate that the network was trained on: pass it as "
                "surrogate=Surrogate.load(path)."
            )
        loaded = AmortizedShapley.load(path, self.student, self._loadable)
        self.labels = loaded.description.target
        rows_json = loaded.description.host.get("rows")
        probes = loaded.fingerprint.inputs.numpy()
        if rows_json is not None:
            rows = rows_of_json(rows_json, str(path), len(probes))
        elif self.features is None:
            is_moved = self.student == "unet" and probes.ndim == 4
            rows = np.moveaxis(probes, 1, -1) if is_moved else probes
        else:
            warn_user(
                f"shapley-ext cannot check whether {path} was trained on this model. Its training "
                "rows have objects that cannot be stored in a file, or too many columns."
            )
            return loaded
        game = self._valued(self.explained_rows((rows,)))
        loaded.check(game.n_players, self._inputs(rows).shape[1:])
        loaded.fingerprint.check(ends_of(game, len(rows)))
        return loaded


def _check_rows(data: Table) -> None:
    """Raise an error if the data hold no rows to train on."""
    if isinstance(data, (np.ndarray, pd.DataFrame)) and data.ndim >= 2 and len(data) >= 2:
        return
    came = type(data).__name__
    if isinstance(data, (np.ndarray, pd.DataFrame)):
        came = f"one of shape {data.shape}"
    raise InvalidArgumentError(
        f"There are no rows to train on: training_data is {came}. Pass training_data=, an array or "
        "DataFrame, (R, …), of at least 2 rows, better some hundred. Join batches of a loader or "
        "generator by np.concatenate. Or pass trained=, a file that save_trained wrote."
    )


def _part(rows: Table, start: int, stop: int) -> Any:
    return rows.iloc[start:stop] if isinstance(rows, pd.DataFrame) else np.asarray(rows[start:stop])


def _with_training(explainer: type) -> type:
    training = f"{TEXTS['networks']}\n    {training_parameters()}"
    return documented(fill_docstring(explainer, training=training))


@_with_training
@write_constructor
class SimShapExplainer(AmortizedExplainer):
    """Shapley values from one pass of a network, trained once (SimSHAP, Zhang et al., 2023).

    Trains in the first call, or by `fit`. Biased: `trained.history` has its error on
    held-out rows. Features that equal the reference get exactly 0. Training costs `evaluations`
    coalitions per row. Explaining costs one evaluation per call, and with `efficient` one more per
    row. Needs torch and safetensors: `pip install shapley-ext[amortized]`.

    Parameters
    ----------
    {parameters}
    preset : {"paper", "paper_images"}, optional
        The settings of the paper's experiments with tables or with images, for all arguments that
        you leave out. Arguments that you pass have priority, even with their default values; of
        mappings, the entries that you pass. Pass `paired=False` for Algorithm 1 of the paper,
        which has no pairs. The page "Explaining by networks" lists all values.
    labels : {"oddgp", "leastsquares", "controlled", "simsemivalue"}
        The numbers that the network learns to predict. `"oddgp"`, `"leastsquares"`: labels,
        estimated once per training row. `"simsemivalue"`: sim-semivalues of coalitions that are
        drawn in each epoch, as in the paper (Eq. 14). `"controlled"`: the same with the network's
        additive game as control variate; they have the same expectation and far less variance.
    {training}
    """

    name = "SimSHAP"
    _choices = ("oddgp", "leastsquares", "controlled", "simsemivalue")
    _presets = SIMSHAP_PRESETS

    rows_per_step: int = 64


@_with_training
@write_constructor
class FastShapExplainer(AmortizedExplainer):
    """Shapley values from one pass of a network trained on the loss of the regression (FastSHAP).

    Jethani et al., FastSHAP: Real-Time Shapley Value Estimation, ICLR 2022 (Zhang et al., 2023,
    Eq. 7), with additive efficient normalisation. All else as in `SimShapExplainer`, whose default
    targets had 0.75 to 0.98 of its error with a tenth of the evaluations, validation included
    (`benchmarks/amortized_accuracy.py`, four tables).

    Parameters
    ----------
    {parameters}
    preset : {"paper"}, optional
        The settings of the authors' example with census data, for all arguments that you leave out.
        Arguments that you pass have priority, even with their default values; of mappings, the
        entries that you pass. The page "Explaining by networks" lists all values.
    labels : {"fastshap"}, optional
        There is one only.
    {training}
    """

    name = "FastSHAP"
    _choices = ("fastshap",)
    _presets = FASTSHAP_PRESETS

    rows_per_step: int = 32  # with 1,000 rows, 64 have half as many steps and 1.25 times the error
