"""Conditional means of a model's outputs, predicted by regressors of scikit-learn."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

from ..arguments import checked_flag, checked_seed
from ..array_types import BoolArray, FloatArray, ValueArray
from ..coalitions.tables import random_subsets
from ..constructors import merged_docstring
from ..errors import InvalidArgumentError, InvalidArgumentTypeError, NonFiniteValueError
from ..games.evaluation import OutputShape, as_outputs
from .draws import checked_numbers
from .gaussian import Gaussian

DataT = TypeVar("DataT")

_COPIES, _MOST_ROWS, _MOST_COALITIONS = 16, 2**16, 1024
"""Copies of each row with different coalitions, rows in all and different coalitions at most. With
16 copies errors are .95 of those with 8, in half as much time again. Sizes between none and all are
equally likely; those of coin flips or of the Shapley kernel make no difference."""

_MOST_SEPARATE = 10
"""Features that can have one regressor for each coalition, of which there are then 1,023."""


class ConditionalMean(Generic[DataT]):
    """The mean output of a model given the present features, predicted by a regressor.

    The regressor learns the model's outputs for the data from the present values, in place of a
    distribution of the absent ones. Values are thus not drawn, each evaluation costs one
    prediction, and the model sees whole rows only, which all have likely values. NaN stands for
    absent values, and `reference` is a row of NaN.

    Whole rows get the output of the model itself, and rows of NaN the mean output of the data:
    attributions sum to the difference. A missing value of an explained row is an absent feature,
    with an attribution of 0.

    Parameters
    ----------
    model : callable
        The model. It is evaluated on the data once.
    data : {data}
        Rows of numbers without missing values, more than columns.
    regressor : regressor, optional
        Any object with `fit` and `predict`, such as those of scikit-learn and pipelines of them. A
        copy is fitted for each output of the model. By default, it is the mean of a kernel
        ridge regression, by Nyström's approximation, and of 50 extremely randomised trees.
    separate : bool
        Whether to fit one regressor for each coalition of at most 10 features, when the coalition
        is evaluated first, to its values alone. By default, a ridge regression of degree 2.
        Otherwise one regressor predicts for all coalitions: its inputs, (n, 2 D), are the values,
        with the absent ones at their linear prediction from the present ones, and marks of those
        that are present. It is fitted to 16 copies of each row with random coalitions, fewer of
        more than 4,096 rows.
    seed : int, optional
        Seed of the coalitions, and of regressors without `random_state`. None draws one.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If the data are not numbers, too few, or have missing values or too many columns for
        `separate`, or if the regressor has no `fit` and `predict`.

    Notes
    -----
    Errors of conditional Shapley values of 8 features, ``Σ|φ̂ − φ| / Σ|φ|``, with 300 and with 2,000
    rows of data, and seconds of the fit and of 10 rows with all coalitions; the means of 5 games,
    with standard errors of .01 to .08::

                            normal       skewed       seconds
        one regressor       .28  .16     .50  .35     .4   2.7
        separate=True       .19  .08     .53  .48     .5    .7
        Gaussian            .14  .08     .55  .54     .01   .01
        Copula              .18  .09     .16  .10     .03   .03
        Empirical           .37  .27     .55  .40     .06   .5
        Forest              .47  .38     .51  .41     5    14

    Distributions have 16 draws. The model is quadratic where features are normal, and has steps
    and ratios where they are log-normal. A distribution of the right family is best. Of the others,
    one regressor errs least on skewed features with 2,000 rows. `separate` is good where quadratic
    functions are. `criteria.mse_v` compares all of them on data of yours. Error bars leave out the
    error of the regression.

    References
    ----------
    Olsen, Glad, Jullum and Aas (2024), A comparative study of methods for estimating model-agnostic
    Shapley value explanations. Data Mining and Knowledge Discovery 38. In shapr, the approaches
    are `regression_surrogate` and `regression_separate`.
    """

    _data_text = "array, (N, D)"
    """How the host describes data."""

    def __init_subclass__(cls, **options: Any) -> None:
        """Complete the docstring of a host's class by the text here."""
        super().__init_subclass__(**options)
        cls.__doc__ = merged_docstring((ConditionalMean, cls), ()).replace("{data}", cls._data_text)

    def __init__(
        self,
        model: Any,
        data: DataT,
        regressor: Any = None,
        *,
        separate: bool = False,
        seed: int | None = 0,
    ) -> None:
        is_usable = hasattr(regressor, "fit") and hasattr(regressor, "predict")
        if isinstance(regressor, type) or (regressor is not None and not is_usable):
            needed = "regressor must be an object with fit and predict"
            raise InvalidArgumentTypeError(f"{needed}; got {regressor!r}.")
        self.model, self.regressor, self.separate = model, regressor, separate
        self.seed = checked_seed(seed)
        values, names, rows = self._read(data)
        self._data = checked_numbers(values, names)
        n_rows, n_columns = self._data.shape
        if checked_flag("separate", separate) and n_columns > _MOST_SEPARATE:
            raise InvalidArgumentError(
                f"separate=True is for at most {_MOST_SEPARATE} features; data has {n_columns} "
                "columns. Leave it out: one regressor then predicts for all coalitions."
            )
        self._shape = OutputShape("The model", "Explain such rows one at a time.")
        self._outputs = as_outputs(self._evaluated(rows), n_rows, self._shape)
        if not (finite := np.isfinite(self._outputs)).all():
            row, output = np.argwhere(~finite)[0]
            raise NonFiniteValueError(
                f"The output {output} of the model for row {row} of data is "
                f"{self._outputs[row, output]}. It must return finite numbers."
            )
        spread = self._outputs.std(axis=0)
        self._centre, self._spread = self._outputs.mean(axis=0), np.where(spread > 0, spread, 1.0)
        self._fits: dict[bytes, list[Any]] = {}
        if not separate:
            self._normal = Gaussian.fitted(self._data)
            self._fitted(np.ones(1, dtype=bool))

    def _read(self, data: DataT) -> tuple[npt.NDArray[Any], Any, Any]:
        """Return data as an array, (N, D), the names of columns, and as the model takes it."""
        raise NotImplementedError

    def _evaluated(self, rows: Any) -> Any:
        """Return the outputs of the model for whole rows."""
        raise NotImplementedError

    def _means(self, rows: FloatArray, selected: Callable[[BoolArray], Any]) -> ValueArray:
        """Return the means, (n,) or (n, K), for rows, (n, D), whose absent values are NaN.

        `selected` returns some of the rows as the model takes them.
        """
        present = ~np.isnan(rows)
        is_whole = np.asarray(present.all(axis=1))
        groups = present if self.separate else present.any(axis=1, keepdims=True)
        groups = groups & ~is_whole[:, None]  # none of rows of which nothing, or all, is present
        means: ValueArray = np.tile(self._centre, (len(rows), 1))
        for group in np.unique(groups[groups.any(axis=1)], axis=0):
            own = (groups == group).all(axis=1)
            inputs = self._inputs(rows[own], present[own])
            predicted = [np.ravel(fit.predict(inputs)) for fit in self._fitted(group)]
            means[own] += np.column_stack(predicted) * self._spread
        # Means of outputs are in their range: those of probabilities are probabilities.
        means = np.clip(means, self._outputs.min(axis=0), self._outputs.max(axis=0))
        if is_whole.any():
            outputs = self._evaluated(selected(is_whole))
            means[is_whole] = as_outputs(outputs, int(is_whole.sum()), self._shape)
        return means[:, 0] if means.shape[1] == 1 else means

    def _inputs(self, rows: FloatArray, present: BoolArray) -> npt.NDArray[Any]:
        """Return the inputs of a regressor; with `separate`, all rows have the same features."""
        if self.separate:
            return rows[:, present[0]]
        return np.column_stack([self._normal.means(rows, present), present])

    def _fitted(self, group: BoolArray) -> list[Any]:
        """Return a regressor for each output, of a coalition if there is one for each."""
        name = group.tobytes()
        if name not in self._fits:
            n_rows, n_columns = self._data.shape
            index, present = np.arange(n_rows), np.tile(group, (n_rows, 1))
            if not self.separate:
                rng = np.random.default_rng([self.seed, 6])
                n_pairs = int(np.clip(_MOST_ROWS // (2 * n_rows), 1, _COPIES // 2))
                sizes = rng.integers(1, max(n_columns, 2), _MOST_COALITIONS // 2)
                drawn = random_subsets(sizes, n_columns, rng)
                drawn = drawn[rng.permutation(n_pairs * n_rows) % len(drawn)]
                # With their complements, so that marks alone say nothing about the row.
                index, present = np.tile(index, 2 * n_pairs), np.concatenate([drawn, ~drawn])
            inputs = self._inputs(self._data[index], present)
            targets = ((self._outputs - self._centre) / self._spread)[index].T
            self._fits[name] = [self._copy(inputs).fit(inputs, target) for target in targets]
        return self._fits[name]

    def _copy(self, inputs: FloatArray) -> Any:
        """Return a regressor that is not fitted, with a seed where it has none."""
        from sklearn.base import clone

        seed = int(np.random.SeedSequence(self.seed).generate_state(1)[0])
        default = _default(inputs, self.separate)
        made = clone(default if self.regressor is None else self.regressor, safe=False)
        options: dict[str, Any] = getattr(made, "get_params", dict)()
        seeds = {k: seed for k, v in options.items() if k.endswith("random_state") and v is None}
        return made.set_params(**seeds) if seeds else made


def _default(inputs: FloatArray, is_separate: bool) -> Any:
    """Return the mean of a smooth function and of trees, or of each coalition a quadratic function.

    The mean errs less than either on normal and skewed features, and less than networks, boosted
    trees, forests and linear functions: on skewed features, networks and boosted trees need 2,000
    rows to err as little. For each coalition, it errs more than the quadratic function on normal
    features, as much on skewed ones, and takes 20 times as long.
    """
    from sklearn import ensemble, kernel_approximation, linear_model, pipeline, preprocessing

    scaler, ridge = preprocessing.StandardScaler(), linear_model.RidgeCV(np.logspace(-5, 3, 9))
    if is_separate:
        return pipeline.make_pipeline(scaler, preprocessing.PolynomialFeatures(2), ridge)
    gamma, n_points = 1 / (3 * inputs.shape[1]), min(300, len(inputs))
    kernel = kernel_approximation.Nystroem(gamma=gamma, n_components=n_points)
    trees = ensemble.ExtraTreesRegressor(50, min_samples_leaf=30, max_features=0.5)
    both = [("smooth", pipeline.make_pipeline(kernel, ridge)), ("trees", trees)]
    # Trees take single precision, which does not resolve dates, nor hold numbers beyond 3e38.
    return pipeline.make_pipeline(scaler, ensemble.VotingRegressor(both))
