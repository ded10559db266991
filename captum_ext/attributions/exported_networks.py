"""What an exported network needs to know about a method: players, reference and output shape."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from shapley_adapters.games.value_functions import checked_value_function

from ..games.forward_function_game import ForwardFunctionGame
from .surrogate import network_inputs

if TYPE_CHECKING:
    from shapley_adapters.amortized.export import ExportContext, ReferenceInputs

    from .amortized_attribution import AmortizedAttribution


def export_context(method: AmortizedAttribution, game: ForwardFunctionGame) -> ExportContext:
    """Return the players and the reference of the game of some examples."""
    from shapley_adapters.amortized.export import ExportContext

    host = {} if method.trained is None else method.trained.saved.description.host
    further = {name: host[name] for name in ("output_shape", "inputs") if name in host}
    return ExportContext(
        "captum",
        [str(number) for number in game.groups.ids.tolist()],
        None,
        _reference(method, game),
        {
            **{f"{name}_of_an_example": value for name, value in further.items()},
            "values": {
                "of": "the model" if method.surrogate is None else "the surrogate",
                "value_function": checked_value_function(method.value_function).kind,
            },
        },
    )


def _reference(method: AmortizedAttribution, game: ForwardFunctionGame) -> ReferenceInputs | None:
    """Return the baselines as the network would see them; None if examples have their own."""
    from shapley_adapters.amortized.export import ReferenceInputs

    baselines, groups = game.baselines, game.groups
    if method.surrogate is not None or baselines.differ_by_example or groups.differ_by_example:
        return None
    if getattr(game, "draws_values", False):
        return None
    n_draws = baselines.n_draws
    rows = tuple(tensor.expand(n_draws, *tensor.shape[1:]) for tensor in baselines.tensors)
    seen = network_inputs(rows, method.student).cpu().numpy()
    players = np.concatenate([players[0].reshape(-1) for players in groups.players])
    return ReferenceInputs(seen, players)
