"""Attributions of the answer of a language model with standard errors and interactions."""

from __future__ import annotations

from contextlib import AbstractContextManager
from textwrap import shorten
from typing import TYPE_CHECKING, Any

import captum.attr
import numpy as np
import torch
from torch import Tensor

from shapley_adapters import Estimate
from shapley_adapters.arguments import checked_probability
from shapley_adapters.array_types import FloatArray, IntArray
from shapley_adapters.errors import InvalidArgumentError
from shapley_adapters.pipeline.result import percent, quantiles

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

_MAX_COLUMNS_OF_NUMBERS = 16
"""With more of them a heat map is too wide to read its numbers on a page."""


class LLMAttributionResult(captum.attr.LLMAttributionResult):  # type: ignore[misc] # captum is untyped
    """`captum.attr.LLMAttributionResult` with standard errors, interactions, and both in its plots.

    Parameters
    ----------
    estimate : Estimate
        Attributions of the players to the score of the answer and, if there are any, of its tokens.
    players : array, (N,)
        The player of each part of the prompt.
    dtype : torch.dtype
        The type of the attributions.
    device : torch.device
        Their device.
    **names : list of str
        captum's `input_tokens`, `output_tokens` and `inp`.
    """

    def __init__(
        self,
        estimate: Estimate,
        players: IntArray,
        dtype: torch.dtype,
        device: torch.device,
        **names: Any,
    ) -> None:
        self.estimate, self._players = estimate, players
        self._form: Any = {"dtype": dtype, "device": device}
        attributions = self._of_parts(estimate.values)
        super().__init__(
            seq_attr=attributions[0],
            token_attr=attributions[1:] if len(attributions) > 1 else None,
            **names,
        )

    @property
    def seq_standard_error(self) -> Tensor:
        """Standard errors of `seq_attr`, (N,); NaN where they are unknown."""
        return self._of_parts(self.estimate.standard_errors)[0]

    @property
    def token_standard_error(self) -> Tensor | None:
        """Standard errors of `token_attr`, (T, N)."""
        errors = self._of_parts(self.estimate.standard_errors)[1:]
        return errors if len(errors) else None

    @property
    def player_names(self) -> list[str]:
        """The text of each player: of its part of the prompt, or of all its parts."""
        names: list[list[str]] = [[] for _ in self.estimate.values[0]]
        for name, player in zip(self.input_tokens, self._players, strict=True):
            names[player].append(name)
        return [" ".join(of_player) for of_player in names]

    @property
    def seq_interactions(self) -> Tensor:
        """Interactions of the M players, (M, M), with main effects on the diagonal.

        Both entries of a pair hold half of its interaction, so that rows sum to attributions.
        """
        return self._interactions()[0][0]

    @property
    def token_interactions(self) -> Tensor:
        """Interactions for each token of the answer, (T, M, M)."""
        return self._interactions()[0][1:]

    @property
    def seq_interactions_standard_error(self) -> Tensor:
        """Standard errors of `seq_interactions`, (M, M)."""
        return self._interactions()[1][0]

    @property
    def token_interactions_standard_error(self) -> Tensor:
        """Standard errors of `token_interactions`, (T, M, M)."""
        return self._interactions()[1][1:]

    def plot_seq_attr(self, show: bool = False, level: float = 0.95) -> tuple[Figure, Axes] | None:
        """Draw the attributions to the whole answer as captum does, with intervals.

        Parameters
        ----------
        show : bool
            Whether to show the figure instead of returning it.
        level : float
            The share of cases in which an interval shall hold the true attribution.

        Returns
        -------
        figure, axes
            None with `show`.
        """
        widths = self._widths(level)[0]
        with _constrained_layout():
            figure, axes = super().plot_seq_attr(show=False)
        places, values = range(len(widths)), self.seq_attr.cpu().numpy()
        axes.errorbar(places, values, yerr=widths, fmt="none", ecolor="black", capsize=3)
        axes.axhline(0, color="black", linewidth=0.8)
        axes.set_ylabel(f"Sequence Attribution, {percent(level)} intervals")
        _grow(figure, axes, max(5.0, 0.4 * len(widths)), 3.5)
        return _shown_or_returned(figure, axes, show)

    def plot_token_attr(
        self, show: bool = False, level: float = 0.95
    ) -> tuple[Figure, Axes] | None:
        """Draw the attributions to each token of the answer as captum does, with intervals.

        The arguments and the result are those of `plot_seq_attr`. Above 16 parts there are no
        numbers, and a dot where the interval contains 0 or is unknown.
        """
        widths = self._widths(level)[1:]
        with _constrained_layout():
            figure, axes = super().plot_token_attr(show=False)
        if _add_errors(axes, widths, widths):
            axes.set_xlabel(f"±: {percent(level)} intervals")
        else:
            axes.set_xlabel(f"dots: the {percent(level)} interval contains 0, or is unknown")
        _grow_cells(figure, axes)
        return _shown_or_returned(figure, axes, show)

    def plot_interactions(
        self, show: bool = False, token: int | None = None
    ) -> tuple[Figure, Axes] | None:
        """Draw the interactions of all pairs of players, with standard errors.

        Above 16 players there are no numbers, and a dot where 0 is within two standard errors, or
        where these are unknown.

        Parameters
        ----------
        show : bool
            Whether to show the figure instead of returning it.
        token : int, optional
            The token of the answer; by default the whole answer.

        Returns
        -------
        figure, axes
            None with `show`.
        """
        import matplotlib.pyplot as plt

        pairs, of_pairs = self._interactions()
        output = 0 if token is None else range(1, len(pairs))[token]
        values, errors = pairs[output].cpu().numpy(), of_pairs[output].cpu().numpy()
        figure, axes = plt.subplots(layout="constrained")
        limit = float(np.abs(values).max()) or 1.0
        image = axes.imshow(values, cmap="RdBu", vmin=-limit, vmax=limit, aspect="auto")
        for (row, column), value in np.ndenumerate(values):
            colour = "white" if abs(value) > 0.6 * limit else "black"
            axes.text(column, row, f"{value:.3f}", ha="center", va="center", color=colour)
        places = range(len(values))
        names = [shorten(repr(name)[1:-1], 50, placeholder="...") for name in self.player_names]
        axes.set_xticks(places, names, rotation=30, ha="right", rotation_mode="anchor")
        axes.set_yticks(places, names)
        if _add_errors(axes, errors, 2 * errors):
            axes.set_xlabel("±: standard errors")
        else:
            axes.set_xlabel("dots: 0 is within two standard errors, or these are unknown")
        figure.colorbar(image, label="main effects, and half of each interaction")
        _grow_cells(figure, axes)
        return _shown_or_returned(figure, axes, show)

    def _of_parts(self, of_players: FloatArray) -> Tensor:
        """Return numbers of players, (1, M, K), for each part of the prompt, (K, N)."""
        return torch.as_tensor(of_players[0].T[:, self._players].copy(), **self._form)

    def _widths(self, level: float) -> FloatArray:
        """Return half the width of the interval of each part of the prompt, (K, N)."""
        estimate = self.estimate
        checked_probability("level", level)
        widths = quantiles(level, estimate.degrees_of_freedom) * estimate.standard_errors
        return widths[0].T[:, self._players]

    def _interactions(self) -> tuple[Tensor, Tensor]:
        """Return the matrices of players, (K, M, M), and their standard errors."""
        pairs = self.estimate.interactions
        if pairs is None:
            raise InvalidArgumentError(
                "The result has no interactions. Ask for them: attribute(..., interactions=True)."
            )
        matrices = (pairs.matrices(self.estimate.values), pairs.error_matrices())
        values, errors = (
            torch.as_tensor(np.moveaxis(matrix[0], 2, 0).copy(), **self._form)
            for matrix in matrices
        )
        return values, errors


def _constrained_layout() -> AbstractContextManager[None]:
    """Return a context whose new figures leave room for long names."""
    import matplotlib as mpl

    return mpl.rc_context({"figure.constrained_layout.use": True})


def _add_errors(axes: Axes, errors: FloatArray, widths: FloatArray) -> bool:
    """Add errors to the numbers of a heat map, or replace both by dots if there are too many.

    A dot means that the value is not larger than its entry of `widths`, or that this is NaN.
    """
    values: FloatArray = np.asarray(axes.images[0].get_array())
    has_numbers = bool(values.shape[1] <= _MAX_COLUMNS_OF_NUMBERS)
    are_unclear = ~(np.abs(values) > widths) & (widths != 0)
    for text, error, is_unclear in zip(axes.texts, errors.flat, are_unclear.flat, strict=True):
        if not has_numbers:
            text.set_text("•" if is_unclear else "")
        elif error > 0:
            text.set_text(f"{text.get_text()}\n± {error:.2g}")
    return has_numbers


def _grow_cells(figure: Figure, axes: Axes) -> None:
    """Make the cells of a heat map larger than their texts and the distance of two names."""
    n_rows, n_columns = axes.images[0].get_size()
    figure.draw_without_rendering()
    boxes = [text.get_window_extent() for text in axes.texts if text.get_text()]
    width, height = (
        max((getattr(box, side) / figure.dpi for box in boxes), default=0.0)
        for side in ("width", "height")
    )
    width, height = max(0.35, 1.15 * width), max(0.22, 1.15 * height)
    _grow(figure, axes, max(3.0, n_columns * width), max(2.0, n_rows * height))


def _grow(figure: Figure, axes: Axes, width: float, height: float) -> None:
    """Give axes a size in inches, with the room that names and colour bar need around them."""
    for _ in range(4):  # the room around them changes a little with the size
        figure.draw_without_rendering()
        missing = np.array([width, height]) - np.array(axes.bbox.size) / figure.dpi
        figure.set_size_inches(*(figure.get_size_inches() + missing))


def _shown_or_returned(figure: Figure, axes: Axes, show: bool) -> tuple[Figure, Axes] | None:
    """Show a figure, or return it, as captum's plots do."""
    if not show:
        return figure, axes
    import matplotlib.pyplot as plt

    plt.show()
    return None
