"""What an exported network needs to know about an explainer: players, outputs and reference."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
import pandas as pd

from shapley_adapters.games.value_functions import checked_value_function

from ..inputs.backgrounds import Background
from .surrogate import channels_first, network_inputs

if TYPE_CHECKING:
    from shapley_adapters.amortized.export import ExportContext, ReferenceInputs

    from ..games.explained_rows import ExplainedRows
    from .amortized_explainer import AmortizedExplainer


def export_context(explainer: AmortizedExplainer, rows: Any) -> ExportContext:
    """Return the players, outputs and reference of an explainer, read from some of its rows."""
    from shapley_adapters.amortized.export import ExportContext

    explained = explainer.explained_rows((rows,))
    groups = explained.groups
    players = range(explained.layout.n_players) if groups is None else groups.names
    names = explainer.output_names
    made_by = "features= of the explainer" if explainer.features is not None else "nothing else"
    return ExportContext(
        "shap",
        list(map(str, players)),
        None if names is None else list(map(str, names)),
        _reference(explainer, explained, rows),
        {
            "rows_are_changed_by": made_by,
            "values": {
                "of": "the model" if explainer.surrogate is None else "the surrogate",
                "link": getattr(explainer.link, "__name__", repr(explainer.link)),
                "value_function": checked_value_function(explainer.value_function).kind,
            },
        },
    )


def _reference(
    explainer: AmortizedExplainer, explained: ExplainedRows, rows: Any
) -> ReferenceInputs | None:
    """Return the background as the network would see it; None if it sees other numbers."""
    from shapley_adapters.amortized.export import ReferenceInputs

    if explainer.surrogate is not None or explainer.features is not None:
        return None
    background = Background.from_masker(explainer.masker, explainer._background_dtypes)
    row_shape = np.shape(rows)[1:]
    if explained.groups is None or (background is not None and background.is_sparse):
        return None
    if background is not None:
        values = background.values.reshape(-1, *row_shape)
    elif explainer.masker is None:
        values = np.zeros((1, *row_shape))
    else:
        return None
    if values.dtype == object:  # of frames with columns of several types
        values = pd.DataFrame(values).to_numpy(dtype=np.float32, na_value=np.nan)
    players = explained.groups.players.reshape(1, *row_shape)
    return ReferenceInputs(
        network_inputs(values, explainer.student), channels_first(players, explainer.student)[0]
    )
