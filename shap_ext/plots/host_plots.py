"""Calls of shap's plots, and the artists that they draw."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, TypeVar

import numpy as np
import numpy.typing as npt
import shap

from shapley_adapters.errors import InvalidArgumentTypeError, PlotError, required_packages

from .features import drawable

if TYPE_CHECKING:
    from matplotlib.axes import Axes

Artist = TypeVar("Artist")


def pyplot() -> Any:
    """Return `matplotlib.pyplot`, which is imported when a plot is drawn."""
    with required_packages("shap_ext.plots needs matplotlib", extra="plots"):
        import matplotlib.pyplot as plt

    return plt


@dataclass(frozen=True)
class Drawing:
    """The axes of a plot, and the artists that shap drew on them.

    Attributes
    ----------
    axes : Axes
        The axes.
    artists : sequence of artists
        Those that were not there before, in the order in which they were drawn.
    """

    axes: Axes
    artists: Sequence[Any]

    def artists_of_kind(self, kind: type[Artist]) -> list[Artist]:
        """Return the new artists of a type; the background of the axes is not one of them."""
        return [
            artist
            for artist in self.artists
            if isinstance(artist, kind) and artist is not self.axes.patch
        ]


@dataclass(frozen=True)
class HostPlot:
    """A plot of shap and the arguments of one call.

    Attributes
    ----------
    name : str
        Its name in `shap.plots`.
    function : callable
        The plot.
    arguments : mapping
        All its arguments, with shap's defaults.
    """

    name: str
    function: Callable[..., Any]
    arguments: Mapping[str, Any]

    @classmethod
    def from_call(
        cls, name: str, positional: Sequence[Any], options: Mapping[str, Any]
    ) -> HostPlot:
        """Return the call of a plot; arguments that shap does not have are refused."""
        pyplot()
        function = getattr(shap.plots, name)
        try:
            bound = inspect.signature(function).bind(*positional, **options)
        except TypeError as error:
            raise InvalidArgumentTypeError(
                f"shap_ext.plots.{name} takes the arguments of shap.plots.{name} of shap "
                f"{shap.__version__}: {error}."
            ) from error
        bound.apply_defaults()
        return cls(name, function, bound.arguments)

    def draw(self, *, on_current_axes: bool = True, **changes: Any) -> Drawing:
        """Draw shap's plot without showing it.

        Parameters
        ----------
        on_current_axes : bool
            Whether shap draws on the current axes if the call names none; else it makes a figure.
        **changes
            Arguments of shap that replace those of the call.
        """
        plt = pyplot()
        axes = self.arguments.get("ax")
        if axes is None and on_current_axes:
            axes = plt.gca()
        before = set() if axes is None else {id(artist) for artist in axes.get_children()}
        is_interactive = plt.isinteractive()
        arguments = {**self.arguments, **changes, "show": False}
        drawn_axes = self.function(**{name: _drawable(name, arguments[name]) for name in arguments})
        if is_interactive:  # shap switches it off
            plt.ion()
        if axes is None:  # shap returns them from scatter, but not from image
            axes = plt.gca() if drawn_axes is None else drawn_axes
        new = [artist for artist in axes.get_children() if id(artist) not in before]
        return Drawing(axes, new)

    def finish(self, axes: Axes) -> Axes | None:
        """Show the figure, or return its axes with `show=False`, as shap does."""
        if not self.arguments.get("show", True):
            return axes
        pyplot().show()
        return None


def _drawable(argument: str, value: Any) -> Any:
    """Return an argument with names of features that matplotlib can draw."""
    names = value if argument == "feature_names" else None
    if isinstance(value, shap.Explanation):
        names = value.feature_names
    if names is None or np.ndim(names) > 1:
        return value
    new = drawable(names) if isinstance(names, str) else [drawable(str(name)) for name in names]
    if np.array_equal(new, names):
        return value
    if argument == "feature_names":
        return new
    renamed = copy.copy(value)
    renamed.feature_names = new
    return renamed


def check_values(
    plotted: npt.NDArray[Any], expected: npt.NDArray[Any], plot: str, artists: str
) -> None:
    """Refuse to draw error bars at other values than those that shap drew."""
    scale = max(float(np.abs(expected).max(initial=0.0)), np.finfo(np.float64).tiny)
    if np.shape(plotted) != np.shape(expected) or not np.allclose(
        plotted, expected, rtol=0, atol=1e-6 * scale, equal_nan=True
    ):
        raise PlotError(
            f"shap {shap.__version__} drew other {artists} in plots.{plot} than expected, so that "
            f"error bars would show other values. Call shap.plots.{plot} for a plot without "
            "error bars, and please report the arguments of this call."
        )
