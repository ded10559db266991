"""Shapley explainers for shap, with fewer model calls and with error bars.

Importing this package makes `shap.Explainer` know them by name: see `algorithms`.
"""

from shapley_adapters.errors import required_packages

with required_packages("shap_ext needs shap", extra="shap"):
    import shap

    del shap

from shapley_adapters import (
    Estimate,
    PlayerGraph,
    PlayerTree,
    RemoteModel,
    ValueFunction,
    draw_graph,
    windows,
)
from shapley_adapters import __version__ as __version__

from . import criteria, explainers, maskers, models, plots
from .aggregates import AVAExplainer, CentroidExplainer, ConvexExplainer, LowComplexityExplainer
from .aggregates.methods import combine
from .explained_games import explain_game
from .explainers import *  # noqa: F403, who adds an estimator adds no name here
from .explainers.surrogate import Surrogate
from .importance import global_importance
from .registration import register, register_estimator, unregister, unregister_estimator
from .report_page import report
from .results.interactions import rank_interactions
from .results.streamed_explanations import StreamedExplanations
from .shap_internals import algorithms

__all__ = [
    "AVAExplainer",
    "CentroidExplainer",
    "ConvexExplainer",
    "Estimate",
    "LowComplexityExplainer",
    "PlayerGraph",
    "PlayerTree",
    "RemoteModel",
    "StreamedExplanations",
    "Surrogate",
    "ValueFunction",
    "algorithms",
    "combine",
    "criteria",
    "draw_graph",
    "explain_game",
    "global_importance",
    "maskers",
    "models",
    "plots",
    "rank_interactions",
    "register",
    "register_estimator",
    "report",
    "unregister",
    "unregister_estimator",
    "windows",
]
__all__ += explainers.__all__

register()
