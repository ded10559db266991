"""The importance of features over a data set, and its standard errors.

An estimate for a row is φ(x) + e: the attribution of a random row x, and the error of the random
coalitions. The squared standard error of the mean over R rows is (between + within) / R + bias²:

- *between* is the variance of φ(x) over the rows,
- *within* is the variance of e. The variance of the estimates over the rows is the sum of both, if
  the errors of the rows are independent and have mean 0,
- *bias* does not fall with the number of rows. If the errors of the rows do not cancel, because
  rows share their draws or the estimator is biased, it is their mean standard error, as if all rows
  had the same error. Otherwise it is 0, but for absolute values.

**Absolute values.** That of an estimate x = φ + σZ is too large on average, most of all where
φ = 0. The same noise once more adds E|x + σZ| − |x|, which can be calculated. The noise in x adds
at most 1 + √2 times as much on average: E|φ + √v Z| grows with v at the rate exp(−φ²/2v) / √(2πv),
and the integral over (0, σ²) is at most 1 / (√2 − 1) times that over (σ², 2σ²), with equality for
φ = 0. So the bias is between 0 and a bound. A uniform distribution there has a mean square of a
third of the bound's square. Where errors are not normal, such as those of few orders of players,
they are mostly 0, and the true bias is smaller.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from hashlib import blake2b
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd
import scipy.special

from ..arguments import checked_count, checked_probability
from ..array_types import AttributionArray, FloatArray, IntArray
from ..errors import InvalidArgumentError, required_packages
from ..estimators.protocol import Estimator
from ..games.fingerprints import fingerprint
from ..games.game import SomeRows
from ..graphs.reading import Structure
from ..pipeline.estimate import estimate
from ..pipeline.result import percent, quantiles
from ..pipeline.settings import Settings

if TYPE_CHECKING:
    from matplotlib.axes import Axes
if TYPE_CHECKING:
    import torch


@dataclass
class SampledRows(SomeRows):
    """Some of the rows of a game, of which equal ones have random draws of their own.

    Attributes
    ----------
    digests : list of bytes
        A digest of each row of `game`; equal rows have different ones.
    """

    digests: list[bytes]

    @classmethod
    def drawn(cls, game: Any, n_rows: int | None, seed: int) -> SampledRows:
        """Return rows drawn without replacement; all rows where `n_rows` is None.

        Which rows they are does not depend on their order in the table.
        """
        # Random draws depend on the digest of a row. Equal rows need draws of their own, or their
        # errors would be equal, too.
        counts: Counter[bytes] = Counter()
        digests = []
        for digest in game.row_fingerprints():
            digests.append(fingerprint(digest, counts[digest]) if counts[digest] else digest)
            counts[digest] += 1
        key = fingerprint(seed)
        ranks = [blake2b(digest, key=key).digest() for digest in digests]
        order = np.array(sorted(range(len(ranks)), key=ranks.__getitem__), dtype=np.intp)
        return cls(game, np.sort(order[:n_rows]), digests)

    def row_fingerprints(self) -> list[bytes]:
        """Return a digest of each sampled row."""
        return [self.digests[row] for row in self.rows]

    def repeated(self, n_repeats: int) -> SampledRows:
        """Return the game of repetitions, where the values of the inner game are random."""
        rows = (self.rows[:, None] * n_repeats + np.arange(n_repeats)).ravel()
        digests = [digest for digest in self.digests for _ in range(n_repeats)]
        return SampledRows(self.game.repeated(n_repeats), rows, digests)

    @property
    def derivative_obstacle(self) -> str | None:
        """The reason why there are no derivatives; None if there are."""
        return self.game.derivative_obstacle

    def fully_present(self, n_points: int) -> torch.Tensor:
        """Return ones in the model's precision."""
        return self.game.fully_present(n_points)

    def presence_values(self, rows: IntArray, presence: torch.Tensor) -> torch.Tensor:
        """Return the values of the outputs at `presence`, (P, K)."""
        return self.game.presence_values(self.rows[rows], presence)


_POSITIVE, _NEGATIVE = "#ff0051", "#008bfb"
"""The colours of shap's bars."""


TITLES = {
    "mean_absolute": "mean |attribution|",
    "mean": "mean attribution",
    "loss": "mean reduction of the loss",
}


@dataclass(frozen=True)
class GlobalImportance:
    """The importance of each feature over a data set, with standard errors.

    Attributes
    ----------
    values : array, (M,) or (M, K)
        The importance of each of M features, for each of K outputs.
    standard_errors : array, of the shape of `values`
        The uncertainty of `values`: of the sample of rows, of the random coalitions, and of the
        bias of means of absolute values. NaN where it is unknown.
    degrees_of_freedom : array, of the shape of `values`
        Those of the standard errors.
    kind : {"mean_absolute", "mean", "loss"}
        What is averaged over rows.
    names : sequence of str
        The names of the features.
    output_names : sequence of str, or None
        The names of the outputs.
    n_rows : int
        The number of rows that were evaluated.
    n_rows_available : int
        The number of rows that were passed.
    evaluations : int
        The number of evaluations for all rows together; 0 if they were made before.
    seed : int or None
        The seed of the sample of rows and of the coalitions.
    """

    values: FloatArray
    standard_errors: FloatArray
    degrees_of_freedom: FloatArray
    kind: str
    names: Sequence[str]
    output_names: Sequence[str] | None
    n_rows: int
    n_rows_available: int
    evaluations: int = 0
    seed: int | None = None

    @classmethod
    def from_attributions(
        cls,
        values: AttributionArray,
        errors: AttributionArray,
        kind: str,
        *,
        errors_cancel: bool,
        is_population: bool,
        n_rows_available: int | None = None,
        names: Sequence[str] | None = None,
        output_names: Sequence[str] | None = None,
        evaluations: int = 0,
        seed: int | None = None,
    ) -> Self:
        """Return the mean over rows; with one output, without an axis of outputs.

        Parameters
        ----------
        values, errors : arrays, (R, M, K)
            Attributions and their standard errors, which may be NaN where a mean of attributions
            themselves over a sample does not need them.
        kind : {"mean_absolute", "mean", "loss"}
            Whether to average absolute values, or the attributions themselves.
        errors_cancel : bool
            Whether the errors of the rows are independent and have mean 0.
        is_population : bool
            Whether the available rows are all that there are, rather than a sample.
        n_rows_available : int, optional
            The rows from which these were drawn; by default there were no others.
        names, output_names, evaluations, seed
            See the attributes.
        """
        n_rows, n_players, n_outputs = values.shape
        if n_rows < 2 and not is_population:
            raise InvalidArgumentError(
                f"global_importance needs at least 2 rows; got {n_rows}. One row has no spread "
                "from which a standard error could be estimated."
            )
        n_rows_available = n_rows_available or n_rows
        share = n_rows / n_rows_available if is_population else 0.0
        averaged = np.abs(values) if kind == "mean_absolute" else values
        within = bias = np.zeros((n_players, n_outputs))
        if not errors_cancel:
            bias = errors.mean(axis=0)
        elif kind == "mean_absolute":
            within, bias = (errors**2).mean(axis=0), _bias_of_absolute(values, errors)
        else:
            within = (errors**2).mean(axis=0)
        of_rows = _variance_of_rows(averaged, within, share)
        with np.errstate(divide="ignore", invalid="ignore"):  # Welch and Satterthwaite
            freedom = (n_rows - 1) * ((of_rows + bias**2) / of_rows) ** 2
        freedom = np.where(np.isnan(freedom) | (share == 1), np.inf, freedom)
        shape = (n_players,) if n_outputs == 1 else (n_players, n_outputs)
        return cls(
            values=averaged.mean(axis=0).reshape(shape),
            standard_errors=np.sqrt(of_rows + bias**2).reshape(shape),
            degrees_of_freedom=freedom.reshape(shape),
            kind=kind,
            names=[f"Feature {i}" for i in range(n_players)] if names is None else list(names),
            output_names=None if n_outputs == 1 or output_names is None else list(output_names),
            n_rows=n_rows,
            n_rows_available=n_rows_available,
            evaluations=evaluations,
            seed=seed,
        )

    @classmethod
    def from_game(
        cls,
        game: Any,
        estimator: Estimator[Any],
        settings: Settings,
        kind: str,
        *,
        n_rows: int | None,
        is_population: bool,
        names: Sequence[str] | None = None,
    ) -> Self:
        """Estimate rows of a game, each with random coalitions of its own.

        Parameters
        ----------
        game : Game
            The games of all rows that may be drawn.
        estimator : Estimator
            The estimator for a row.
        settings : Settings
            The settings for a row.
        n_rows : int, optional
            The number of rows to draw; by default all.
        kind, is_population, names
            See `from_attributions`.
        """
        scores = estimator.score_source
        if isinstance(scores, np.ndarray) and scores.ndim == 3:
            raise InvalidArgumentError(
                f"cooperators has shape {scores.shape}, with scores for each row, but "
                "global_importance draws the rows. Pass scores (M, M) for all rows."
            )
        sample, graph = SampledRows.drawn(game, n_rows, settings.seed), settings.graph
        if not (graph is None or isinstance(graph, Structure)):
            graph = [graph[row] for row in sample.rows]
        # An estimator whose errors do not cancel needs their size.
        with_errors = kind == "mean_absolute" or is_population or not estimator.is_unbiased
        settings = replace(settings, independent_rows=True, with_errors=with_errors, graph=graph)
        found = estimate(sample, estimator, settings)
        if with_errors and np.isnan(found.standard_errors).any():
            raise InvalidArgumentError(
                f"{settings.name} has no standard errors for these rows and this budget, which "
                f"kind={kind!r} needs. Use another method, such as random order."
            )
        return cls.from_attributions(
            found.values,
            found.standard_errors,
            kind,
            errors_cancel=found.errors_cancel,
            is_population=is_population,
            n_rows_available=game.n_rows,
            names=names,
            evaluations=int(found.evaluations.sum()) + found.check_evaluations,
            seed=settings.seed,
        )

    def __repr__(self) -> str:
        """Summarize in one line and list the five most important features."""
        of_rows = f"{self.n_rows:,} of {self.n_rows_available:,} rows"
        cost = f", {self.evaluations:,} evaluations" if self.evaluations else ""
        lines = [f"GlobalImportance: {TITLES[self.kind]}, {of_rows}{cost}"]
        values = self.values.reshape(len(self.values), -1)
        errors = self.standard_errors.reshape(values.shape)
        order = np.argsort(-np.abs(values).max(axis=1), kind="stable")
        for player in order[:5]:
            numbers = (
                f"{value:.4g} ± {error:.2g}"
                for value, error in zip(values[player], errors[player], strict=True)
            )
            lines.append(f"  {self.names[player]}: {', '.join(numbers)}")
        if len(order) > 5:
            lines.append(f"  … {len(order) - 5} more features")
        return "\n".join(lines)

    def interval(self, confidence: float = 0.95) -> tuple[FloatArray, FloatArray]:
        """Return the lower and upper ends of intervals that contain the importance so often.

        Those of means of absolute values begin at 0 or above.

        Parameters
        ----------
        confidence : float
            The share of cases, between 0 and 1.

        Returns
        -------
        tuple of arrays, of the shape of `values`
            NaN where there are no standard errors.
        """
        checked_probability("confidence", confidence)
        widths = quantiles(confidence, self.degrees_of_freedom) * self.standard_errors
        lower = self.values - widths
        if self.kind == "mean_absolute":
            lower = np.maximum(lower, 0.0)
        return lower, self.values + widths

    def to_frame(self, output: int | None = None, confidence: float = 0.95) -> pd.DataFrame:
        """Return a table of the features, the most important one first.

        Parameters
        ----------
        output : int, optional
            The output; needed if there are several.
        confidence : float
            That of the interval from `lower` to `upper`.
        """
        lower, upper = (self.output_part(end, output) for end in self.interval(confidence))
        frame = pd.DataFrame(
            {
                "importance": self.output_part(self.values, output),
                "standard_error": self.output_part(self.standard_errors, output),
                "lower": lower,
                "upper": upper,
            },
            index=pd.Index(list(self.names), name="feature"),
        )
        return frame.sort_values("importance", key=np.abs, ascending=False, kind="stable")

    def output_part(self, array: FloatArray, output: int | None) -> FloatArray:
        """Return the part of an array of the shape of `values` that belongs to an output, (M,)."""
        if array.ndim == 1:
            return array
        n_outputs = array.shape[1]
        if output is None and n_outputs == 1:
            output = 0
        if output is None or checked_count("output", output, minimum=0) >= n_outputs:
            raise InvalidArgumentError(
                f"output must be one of the {n_outputs} outputs, counted from 0; got {output}."
            )
        return array[:, output]

    def plot(
        self,
        output: int | None = None,
        *,
        max_display: int = 10,
        confidence: float = 0.95,
        ax: Axes | None = None,
    ) -> Any:
        """Draw the most important features as bars with their intervals.

        Needs matplotlib.

        Parameters
        ----------
        output : int, optional
            The output; needed if there are several.
        max_display : int
            The number of features to draw.
        confidence : float
            That of the intervals.
        ax : matplotlib axes, optional
            The axes to draw on; by default those of a new figure.

        Returns
        -------
        matplotlib axes
        """
        frame = self.to_frame(output, confidence).head(checked_count("max_display", max_display))
        return draw_bars(frame, TITLES[self.kind], confidence, ax)


def _variance_of_rows(averaged: AttributionArray, within: FloatArray, share: float) -> FloatArray:
    """Return (between + within) / R, (M, K).

    `share` is that of the rows of a finite population that are in the sample; 0 for a sample of
    infinitely many.
    """
    n_rows = len(averaged)
    if share == 1:
        return within / n_rows
    if n_rows == 1:
        return np.full(within.shape, np.nan)
    spread: FloatArray = averaged.var(axis=0, ddof=1)
    if share > 0:
        spread = spread - share * np.maximum(spread - within, 0.0)
    return spread / n_rows


def _bias_of_absolute(values: AttributionArray, errors: AttributionArray) -> FloatArray:
    """Return the root mean square of the bias of means of absolute values, (M, K).

    For t = |x| / σ, E|x + σZ| − |x| = 2σ (p(t) − t P(−t)), with the density p and the distribution
    function P of Z. See the module for the other factors.
    """
    with np.errstate(over="ignore"):
        sizes = np.divide(np.abs(values), errors, out=np.zeros(values.shape), where=errors > 0)
    t = np.minimum(sizes, 30.0)  # p(30) is 0 beside the rounding of x
    density = np.exp(-(t**2) / 2) / np.sqrt(2 * np.pi)
    excess = 2 * errors * (density - t * scipy.special.ndtr(-t))
    return (1 + np.sqrt(2)) / np.sqrt(3) * excess.mean(axis=0)


def draw_bars(frame: pd.DataFrame, title: str, confidence: float, ax: Axes | None) -> Any:
    """Draw the first column of a table, with `lower` and `upper`, its first row at the top."""
    with required_packages("plot needs matplotlib", extra="shap"):
        import matplotlib.pyplot as plt

    axes: Any = ax
    if ax is None:
        axes = plt.subplots(figsize=(7, 1 + 0.4 * len(frame)), layout="constrained")[1]
    values = frame.iloc[:, 0].to_numpy()
    below = values - frame["lower"].to_numpy()
    above = frame["upper"].to_numpy() - values
    axes.barh(
        range(len(frame)),
        values,
        xerr=[below, above],
        color=[_POSITIVE if value >= 0 else _NEGATIVE for value in values],
        ecolor="0.25",
        capsize=3,
    )
    axes.set_yticks(range(len(frame)), [str(name).replace("$", r"\$") for name in frame.index])
    axes.invert_yaxis()
    axes.axvline(0, color="0.5", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(f"{title}, with {percent(confidence)} intervals")
    return axes
