"""The games of a model and a masker, for criteria that evaluate coalitions."""

from __future__ import annotations

import shap

from ..argument_types import Groups, Link, Masker, Model, Table
from ..games.explained_rows import ExplainedRows
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
