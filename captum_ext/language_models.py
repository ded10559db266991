"""captum's attribution of language models, with the methods of this package."""

from __future__ import annotations

import functools
import inspect
from typing import Any

import captum.attr

from shapley_adapters.errors import InvalidArgumentError, warn_user

from .coalition_attribution import CoalitionAttribution


class LLMAttribution(captum.attr.LLMAttribution):  # type: ignore[misc] # captum is untyped
    """`captum.attr.LLMAttribution` that takes the methods of this package, too.

    Everything else is captum's: its methods, inputs, arguments and results. A method of this
    package explains the whole target and each of its tokens from the same evaluations. One of them
    is a forward pass of a single prompt, or, with captum's default `forward_in_tokens=True`, one
    for each token of the target. Pass `n_samples` to `attribute` to say how many. What was spent,
    and the standard errors, are in `attr_method.last_estimate`.

    Parameters
    ----------
    attr_method : PerturbationAttribution
        One of captum's methods or of this package's, made with the model as its `forward_func`.
    tokenizer : tokenizer
        The model's.
    attr_target : {"log_prob", "prob"}
        Whether log-probabilities or probabilities of the target are explained.
    """

    SUPPORTED_METHODS = (*captum.attr.LLMAttribution.SUPPORTED_METHODS, CoalitionAttribution)
    SUPPORTED_PER_TOKEN_ATTR_METHODS = (
        *captum.attr.LLMAttribution.SUPPORTED_PER_TOKEN_ATTR_METHODS,
        CoalitionAttribution,
    )

    # Its arguments differ between versions of captum.
    @functools.wraps(captum.attr.LLMAttribution.attribute)
    def attribute(self, *args: Any, **kwargs: Any) -> Any:
        """Attribute the probability of a target to the parts of a prompt, as captum does."""
        if isinstance(self.attr_method, CoalitionAttribution):
            bound = inspect.signature(super().attribute).bind(*args, **kwargs)
            if bound.arguments.get("num_trials", 1) > 1:
                warn_user(
                    f"num_trials={bound.arguments['num_trials']}: each trial starts from the same "
                    "seed, so that trials differ only where the model or the baselines are "
                    "random. For smaller errors raise n_samples."
                )
            kwargs = _of_single_prompts(kwargs)
        return super().attribute(*args, **kwargs)


if hasattr(captum.attr, "RemoteLLMAttribution"):  # since captum 0.9

    class RemoteLLMAttribution(LLMAttribution, captum.attr.RemoteLLMAttribution):  # type: ignore[misc]
        """`captum.attr.RemoteLLMAttribution` that takes the methods of this package, too."""


def _of_single_prompts(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments for a method; captum's forward function takes one prompt at a time."""
    if arguments.get("perturbations_per_eval", 1) not in (1, None):
        raise InvalidArgumentError(
            "perturbations_per_eval must be 1, because captum's LLMAttribution runs one prompt at "
            f"a time; got {arguments['perturbations_per_eval']!r}. Leave it out."
        )
    if arguments.get("return_standard_error", False):
        raise InvalidArgumentError(
            "return_standard_error has no place in captum's LLMAttributionResult; leave it out, "
            "and read attr_method.last_estimate.standard_errors."
        )
    return {**arguments, "perturbations_per_eval": 1}
