"""Games of a model and a masker, and draws of a masker, for criteria of coalitions."""

from __future__ import annotations

import numpy as np
import shap

from shapley_adapters.array_types import CoalitionArray, FloatArray
from shapley_adapters.criteria.coalition_errors import Draw
from shapley_adapters.errors import InvalidArgumentTypeError

from ..argument_types import Groups, Link, Masker, Model, Rows, Table
from ..games.explained_rows import ExplainedRows
from ..games.game_choice import table_and_background
from ..inputs.backgrounds import Background
from ..inputs.datasets import checked_dataset
from ..maskers import ConditionalMasker
from .coalition_explainer import CoalitionExplainer


def rows_with_game(
    model: Model,
    masker: Masker,
    rows: Table,
    link: Link = shap.links.identity,
    groups: Groups | None = None,
) -> ExplainedRows:
    """Return rows with their games, with the players that explainers of this package see."""
    explainer = CoalitionExplainer(model, masker, link=link, groups=groups)
    return explainer.explained_rows((rows,))


def rows_and_draws(masker: Masker, rows: Rows) -> tuple[FloatArray, Draw]:
    """Return rows as numbers, (R, D), and the draws of absent features of a masker.

    Raises
    ------
    InvalidArgumentTypeError
        If the masker is neither a distribution nor background rows, or the rows hold no numbers.
    """
    drawn = masker if isinstance(masker, ConditionalMasker) else None
    background = _background_of(masker) if drawn is None else drawn.background
    table, absent, _ = table_and_background(checked_dataset(rows), background)
    if table.dtype.kind not in "biuf" or absent.dtype.kind not in "biuf":
        raise InvalidArgumentTypeError(
            "energy_score measures distances, for which X and the masker must hold numbers. Leave "
            "out texts and categories, or compare maskers by mse_v."
        )
    if drawn is not None:
        return table.astype(np.float64), drawn.draws.drawn

    def of_background(row: FloatArray, masks: CoalitionArray, repeat: int) -> FloatArray:
        del repeat  # the distribution itself: all of its rows
        return np.where(masks[:, None], row, absent)

    return table.astype(np.float64), of_background


def _background_of(masker: Masker) -> Background:
    explainer = CoalitionExplainer(np.asarray, masker)  # which makes a masker of a table
    background = Background.from_masker(explainer.masker, explainer._background_dtypes)
    if background is None:
        raise InvalidArgumentTypeError(
            "masker must be a distribution of shap_ext.maskers or background rows; got "
            f"{type(masker).__name__}."
        )
    return background
