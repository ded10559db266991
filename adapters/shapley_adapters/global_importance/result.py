"""The importance of features over a data set."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Self

import numpy as np
import pandas as pd

from ..arguments import checked_count, checked_probability
from ..array_types import FloatArray
from ..errors import InvalidArgumentError, required_packages
from ..pipeline.result import percent, quantiles
from .estimate_importance import ImportanceEstimate

if TYPE_CHECKING:
    from matplotlib.axes import Axes


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
        bias that remains in means of absolute values.
    bias_bounds : array, of the shape of `values`
        The largest bias that may remain in a mean of absolute values, estimated; 0 for the other
        kinds. `standard_errors` include it as a uniform distribution between −β and β. If errors do
        not cancel between rows, this is 0 and their mean is a part of `standard_errors` instead.
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
    budget : int or None
        Evaluations per row: those that the user named, or that were chosen after the pilot sample.
        None for the default.
    seed : int or None
        The seed of the sample of rows and of the coalitions.
    """

    values: FloatArray
    standard_errors: FloatArray
    bias_bounds: FloatArray
    degrees_of_freedom: FloatArray
    kind: str
    names: Sequence[str]
    output_names: Sequence[str] | None
    n_rows: int
    n_rows_available: int
    evaluations: int = 0
    budget: int | None = None
    seed: int | None = None

    @classmethod
    def from_estimate(
        cls,
        estimate: ImportanceEstimate,
        kind: str,
        names: Sequence[str] | None,
        output_names: Sequence[str] | None = None,
        seed: int | None = None,
    ) -> Self:
        """Return an estimate with names; with one output, without an axis of outputs."""
        parts = estimate.parts
        n_players, n_outputs = parts.mean.shape
        shape = (n_players,) if n_outputs == 1 else (n_players, n_outputs)
        return cls(
            values=parts.mean.reshape(shape),
            standard_errors=np.sqrt(estimate.variance).reshape(shape),
            bias_bounds=parts.bias_bounds.reshape(shape),
            degrees_of_freedom=estimate.freedom.reshape(shape),
            kind=kind,
            names=[f"Feature {i}" for i in range(n_players)] if names is None else list(names),
            output_names=None if n_outputs == 1 or output_names is None else list(output_names),
            n_rows=estimate.n_rows,
            n_rows_available=estimate.n_rows_available,
            evaluations=estimate.evaluations,
            budget=estimate.budget,
            seed=seed,
        )

    def __repr__(self) -> str:
        """Summarize in one line and list the five most important features."""
        of_rows = f"{self.n_rows:,} of {self.n_rows_available:,} rows"
        cost = f", {self.evaluations:,} evaluations" if self.evaluations else ""
        if self.budget is not None:
            cost += f" (at most {self.budget:,} per row in the end)"
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
        return self.values - widths, self.values + widths

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
        return _draw(frame, TITLES[self.kind], confidence, ax)


def _draw(frame: pd.DataFrame, title: str, confidence: float, ax: Axes | None) -> Any:
    """Draw a table of `GlobalImportance.to_frame`, its first row at the top."""
    with required_packages("plot needs matplotlib", extra="shap"):
        import matplotlib.pyplot as plt

    axes: Any = ax
    if ax is None:
        axes = plt.subplots(figsize=(7, 1 + 0.4 * len(frame)), layout="constrained")[1]
    importance = frame["importance"].to_numpy()
    below = importance - frame["lower"].to_numpy()
    above = frame["upper"].to_numpy() - importance
    axes.barh(
        range(len(frame)),
        importance,
        xerr=[below, above],
        color=[_POSITIVE if value >= 0 else _NEGATIVE for value in importance],
        ecolor="0.25",
        capsize=3,
    )
    axes.set_yticks(range(len(frame)), [str(name).replace("$", r"\$") for name in frame.index])
    axes.invert_yaxis()
    axes.axvline(0, color="0.5", linewidth=0.8)
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_xlabel(f"{title}, with {percent(confidence)} intervals")
    return axes
