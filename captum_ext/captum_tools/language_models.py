"""captum's attribution of language models, with the methods of this package."""

from __future__ import annotations

import copy
import functools
import inspect
from typing import Any

import captum.attr
from torch import Tensor

from shapley_adapters.errors import InvalidArgumentError, warn_user

from ..attributions.amortized_attribution import refuse_trained
from ..attributions.attribute_methods import NamedAttribution
from ..attributions.coalition_attribution import CoalitionAttribution
from ..captum_internals import SecondStep


class LLMAttribution(NamedAttribution, captum.attr.LLMAttribution):  # type: ignore[misc] # captum is untyped
    """`captum.attr.LLMAttribution` that also accepts the methods of this package.

    Methods, inputs, arguments and results are otherwise those of captum. A method of this package
    explains the whole target and each of its tokens with the same evaluations. An evaluation is a
    forward pass of a single prompt, or, with captum's default `forward_in_tokens=True`, one forward
    pass per token of the target. Pass the number of evaluations as `n_samples` to `attribute`. The
    number that was used and the standard errors are in `attr_method.last_estimate`.

    By default captum runs the target token by token with the model's cache
    (`use_cached_outputs=True`). With transformers 5 it passes all earlier tokens to the model in
    addition to the cache, and the results are wrong. This class first checks one such step, which
    costs a forward pass. If the step has more than the new token, no cache is used, and
    `use_cached_outputs=True` is refused, also for captum's methods.

    Parameters
    ----------
    attr_method : PerturbationAttribution
        A method of captum or of this package, with the model as its `forward_func`.
    tokenizer : tokenizer
        The tokenizer of the model.
    attr_target : {"log_prob", "prob"}
        Whether log-probabilities or probabilities of the target are explained.
    """

    SUPPORTED_METHODS = (*captum.attr.LLMAttribution.SUPPORTED_METHODS, CoalitionAttribution)
    SUPPORTED_PER_TOKEN_ATTR_METHODS = (
        *captum.attr.LLMAttribution.SUPPORTED_PER_TOKEN_ATTR_METHODS,
        CoalitionAttribution,
    )

    _is_cache_asked_for = False
    _is_cache_right: bool | None = None  # None before the check

    # The arguments differ between versions of captum.
    @functools.wraps(captum.attr.LLMAttribution.attribute)
    def attribute(self, *args: Any, **kwargs: Any) -> Any:
        """Attribute the probability of a target to the parts of a prompt, as captum does."""
        bound = inspect.signature(super().attribute).bind(*args, **kwargs)
        self._is_cache_asked_for = bound.arguments.get("use_cached_outputs", False)
        self._is_cache_right = None
        refuse_trained(self.attr_method, "the probability of a text")
        if isinstance(self.attr_method, CoalitionAttribution):
            if bound.arguments.get("num_trials", 1) > 1:
                warn_user(
                    f"num_trials={bound.arguments['num_trials']}: each trial starts from the same "
                    "seed, so that trials differ only where the model or the baselines are "
                    "random. For smaller errors raise n_samples."
                )
            kwargs = _single_prompt_arguments(kwargs)
        return super().attribute(*args, **kwargs)

    # captum sets this as the forward function of the method.
    def _forward_func(
        self,
        perturbed_tensor: Any,
        inp: Any,
        target_tokens: Tensor,
        use_cached_outputs: bool = False,
        inspect_forward: Any = None,
        *forward_in_tokens: bool,
    ) -> Any:
        if use_cached_outputs and all(forward_in_tokens):  # else captum uses no cache
            use_cached_outputs = self._uses_cache(perturbed_tensor, inp, target_tokens)
        return super()._forward_func(
            perturbed_tensor,
            inp,
            target_tokens,
            use_cached_outputs,
            inspect_forward,
            *forward_in_tokens,
        )

    def _uses_cache(self, perturbed_tensor: Any, inp: Any, target_tokens: Tensor) -> bool:
        """Return whether to use the model's cache; refuse it if it is requested and wrong."""
        if len(target_tokens) < 2:
            return self._is_cache_asked_for
        if self._is_cache_right is None:
            probe = copy.copy(self)
            probe.model = steps = SecondStep(self.model)
            self._is_cache_right = steps.holds_one_token(
                lambda: captum.attr.LLMAttribution._forward_func(
                    probe, perturbed_tensor, inp, target_tokens[:2], True
                )
            )
        if self._is_cache_asked_for and not self._is_cache_right:
            raise InvalidArgumentError(
                "use_cached_outputs=True cannot be used: captum passes all earlier tokens to the "
                "model in addition to the cache, as with transformers 5, or the model lacks the "
                "methods for it. Leave use_cached_outputs out. In captum 0.9, "
                "forward_in_tokens=False is faster: one forward pass for the whole target."
            )
        return self._is_cache_right


if hasattr(captum.attr, "RemoteLLMAttribution"):  # since captum 0.9

    class RemoteLLMAttribution(LLMAttribution, captum.attr.RemoteLLMAttribution):  # type: ignore[misc]
        """`captum.attr.RemoteLLMAttribution` that also accepts the methods of this package."""


def _single_prompt_arguments(arguments: dict[str, Any]) -> dict[str, Any]:
    """Return the arguments for a method; captum's forward function takes one prompt at a time."""
    if arguments.get("perturbations_per_eval", 1) not in (1, None):
        raise InvalidArgumentError(
            "perturbations_per_eval must be 1, because captum's LLMAttribution runs one prompt at "
            f"a time; got {arguments['perturbations_per_eval']!r}. Leave it out."
        )
    if arguments.get("return_standard_error", False):
        raise InvalidArgumentError(
            "return_standard_error is not supported: captum's LLMAttributionResult has no standard "
            "errors. Leave it out, and read attr_method.last_estimate.standard_errors."
        )
    return {**arguments, "perturbations_per_eval": 1}
