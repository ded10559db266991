"""The options of a call of `attribute`."""

# Annotations are evaluated: no `from __future__ import annotations`.

from typing import Annotated, TypedDict

from shapley_adapters.arguments import checked_count, checked_flag
from shapley_adapters.pipeline.call_options import ONE_PASS, CallOption, CallOptions, OptionTable

_NO_CALL = "changes nothing about the budget of a call. Leave it out."
_FIXED = "does not go with a table of attributions, whose columns are fixed. Leave it out."
_IS_ASKED = "does not go with explain_game, which returns standard errors. Leave it out."
_OF_EXAMPLES = "does not go with the importance over examples. Leave it out."


class ByPosition(TypedDict, total=False):
    """The options that captum takes by position, too.

    Attributes
    ----------
    perturbations_per_eval
        The largest number of masked copies of all examples in one forward pass. By default the
        first batches are timed, and batches grow as long as this saves time. With 1, the forward
        function may also return one result for the whole batch, a tensor of any shape.
    """

    n_samples: Annotated[int | None, CallOption(None, checked_count, "budget")]
    perturbations_per_eval: Annotated[
        int | None,
        CallOption(None, checked_count, refused={"budget": _NO_CALL, "network": ONE_PASS}),
    ]


class ByName(CallOptions, total=False):
    """The options of `attribute` that are passed by name.

    Attributes
    ----------
    show_progress
        Whether to show a progress bar.
    return_input_shape
        Whether attributions have the shape of the inputs. False returns one number for each feature
        of `feature_mask`, as captum's KernelShap does.
    return_standard_error
        Whether to return the standard errors, too; not inside captum's `NoiseTunnel`.
    """

    show_progress: Annotated[
        bool,
        CallOption(
            False,
            lambda name, value: 0.0 if checked_flag(name, value) else None,
            "progress_delay",
            {
                "budget": _NO_CALL,
                "batch": "has no effect: batches have no bars. Leave it out.",
                "network": ONE_PASS,
            },
        ),
    ]
    return_input_shape: Annotated[
        bool,
        CallOption(
            True,
            checked_flag,
            refused={
                "budget": _NO_CALL,
                "batch": _FIXED,
                "stream": "does not go with a stream, whose files have the shape of the inputs.",
                "importance": _OF_EXAMPLES,
                "interactions": "does not go with matrices of features. Leave it out.",
                "game": "does not go with players, which have no input. Leave it out.",
            },
        ),
    ]
    return_standard_error: Annotated[
        bool,
        CallOption(
            False,
            checked_flag,
            "with_errors",
            {"budget": _NO_CALL, "importance": _OF_EXAMPLES, "game": _IS_ASKED},
        ),
    ]


class AttributeOptions(ByPosition, ByName, total=False):
    """The options of `attribute`, as keyword arguments."""


OPTIONS = OptionTable(
    ByPosition,
    ByName,
    CallOptions,
    row="example",
    a_row="an example",
    budget="n_samples",
    backgrounds="draws of the baselines",
    explainer="method",
    oddgp="OddGP",
    best="Best",
)
