"""The games of a model and a masker, for criteria that evaluate coalitions."""

from __future__ import annotations

import shap

from ..argument_types import Groups, Link, Masker, Model, Table
from ..games.dense_game import TabularGame
from ..games.masker_game import MaskerGame
from ..games.sparse_game import SparseGame
from .coalition_explainer import CoalitionExplainer


def game_of(
    model: Model,
    masker: Masker,
    rows: Table,
    link: Link = shap.links.identity,
    groups: Groups | None = None,
) -> TabularGame | SparseGame | MaskerGame:
    """Return the games of rows, with the players that explainers of this package see."""
    explainer = CoalitionExplainer(model, masker, link=link, groups=groups)
    return explainer.explained_rows((rows,)).game
