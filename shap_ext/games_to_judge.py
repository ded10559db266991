"""The games of a model and a masker, for criteria that evaluate coalitions."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import shap

from .coalition_explainer import CoalitionExplainer
from .masked_model_game import TabularGame
from .masker_game import MaskerGame
from .sparse_game import SparseGame


def game_of(
    model: Any,
    masker: Any,
    rows: Any,
    link: Any = shap.links.identity,
    groups: Mapping[str, Sequence[Any]] | None = None,
) -> TabularGame | SparseGame | MaskerGame:
    """Return the games of rows, with the players that explainers of this package see."""
    explainer = CoalitionExplainer(model, masker, link=link, groups=groups)
    return explainer.task((rows,)).game
