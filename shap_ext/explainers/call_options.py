"""The options of a call of an explainer."""

# Annotations are evaluated: no `from __future__ import annotations`.

from collections.abc import Sequence
from typing import Annotated, Any

import numpy as np

from shapley_adapters.arguments import checked_count, checked_flag, count_or_auto
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.interactions.result import checked_pairs
from shapley_adapters.pipeline.call_options import ONE_PASS, CallOption, CallOptions, OptionTable

from ..argument_types import Outputs
from ..shap_internals import BAR_DELAY, is_op_chain

_FIXED = "does not go with a table of attributions, whose columns are fixed. Leave it out."
_NO_CALL = "changes nothing about the budget of a call. Leave it out."
_OF_ROWS = "does not go with the importance over rows. Leave it out."
_IS_CHOSEN = "does not go with index=. For pairs, leave index= out: interactions='banzhaf'."


def checked_outputs(name: str, outputs: Any) -> Any:
    """Return checked indices of outputs, or None or a chain of operations as it is."""
    if outputs is None or is_op_chain(outputs):
        return outputs
    if isinstance(outputs, (str, bytes)) or not isinstance(outputs, (Sequence, np.ndarray)):
        raise InvalidArgumentTypeError(
            f"{name} must be a list of places of outputs; got {type(outputs).__name__}."
        )
    if len(outputs) == 0:
        raise InvalidArgumentError(f"{name} is empty; pass None to explain all outputs.")
    return [checked_count(name, index, minimum=0) for index in outputs]


def _checked_effects(name: str, main_effects: Any) -> None:
    if main_effects:
        raise InvalidArgumentError(
            f"{name}=True is not supported: these estimators do not single them out."
        )


class ExplainerOptions(CallOptions, total=False):
    """The options of a call of an explainer, as keyword arguments.

    Attributes
    ----------
    error_bounds
        Whether to return standard errors (`error_std`) and 95 % intervals (`lower_bounds` and
        `upper_bounds`, which waterfall plots draw).
    batch_size
        How many coalitions are evaluated in one call of the model. By default the first batches are
        timed, and batches grow as long as this saves time.
    outputs
        Indices of the outputs to explain; all by default. A chain such as
        `shap.Explanation.argsort.flip[:2]` is applied to the outputs of each row; streams take
        indices alone.
    silent
        Whether to show no progress bar; otherwise one appears after ten seconds.
    check_additivity
        Whether to raise an error if attributions do not sum to the model's output. Those of
        efficient estimators always do.
    interactions
        Whether to return the interactions of all pairs of features instead, and by which index; see
        `set_interactions`. True is `"shapley"`. They need no further evaluations. See the page
        "Interactions" for the methods that have them.
    trace
        Whether to store the estimates from the first evaluations alone in `last_estimate.trace`.
        This needs no further evaluations, and includes the error bounds.
    main_effects
        Not supported.
    """

    max_evals: Annotated[int | str, CallOption("auto", count_or_auto, "budget")]
    error_bounds: Annotated[
        bool,
        CallOption(
            False, checked_flag, "with_errors", {"budget": _NO_CALL, "importance": _OF_ROWS}
        ),
    ]
    batch_size: Annotated[
        int | str, CallOption("auto", count_or_auto, "batch_size", {"budget": _NO_CALL})
    ]
    outputs: Annotated[
        Outputs,
        CallOption(
            None,
            checked_outputs,
            refused={"budget": _NO_CALL, "importance": _OF_ROWS, "batch": _FIXED},
        ),
    ]
    silent: Annotated[
        bool,
        CallOption(
            False,
            lambda name, value: None if checked_flag(name, value) else BAR_DELAY,
            "progress_delay",
            {"budget": _NO_CALL, "batch": "has no effect: batches have no bars. Leave it out."},
        ),
    ]
    check_additivity: Annotated[
        bool,
        CallOption(
            False,
            checked_flag,
            refused={"budget": _NO_CALL, "importance": _OF_ROWS, "batch": _FIXED},
        ),
    ]
    interactions: Annotated[
        bool | str,
        CallOption(
            False,
            checked_pairs,
            "interactions",
            {
                "stream": "is not supported by explain_stream, whose files hold attributions. Call "
                "explainer(X, interactions=True) for a part of the rows at a time, and store its "
                "values.",
                "budget": _NO_CALL,
                "importance": _OF_ROWS,
                "batch": _FIXED,
                "interactions": _IS_CHOSEN,
                "network": f"{ONE_PASS} Use oddgp.",
            },
        ),
    ]
    trace: Annotated[
        bool,
        CallOption(
            False,
            checked_flag,
            "trace",
            {
                "stream": "does not go with a stream, whose files hold attributions. Leave it out.",
                "budget": _NO_CALL,
                "importance": _OF_ROWS,
                "batch": _FIXED,
                "interactions": "stores first estimates of attributions. Leave it out.",
                "game": "fills last_estimate, which only explainers have. Leave it out.",
                "network": f"{ONE_PASS} Use oddgp.",
            },
        ),
    ]
    main_effects: Annotated[
        bool,
        CallOption(
            False,
            _checked_effects,
            refused=dict.fromkeys(
                ("stream", "budget", "importance", "batch", "interactions", "network", "game"),
                "is not supported. Leave it out.",
            ),
        ),
    ]


OPTIONS = OptionTable(
    ExplainerOptions,
    CallOptions,
    row="row",
    a_row="a row",
    budget="max_evals",
    backgrounds="background rows",
    explainer="explainer",
    oddgp="oddgp",
    best="best",
)
