"""captum's attribution of language models, in few passes, with the methods of this package."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import captum.attr
import numpy as np
import torch
from torch import Tensor

from shapley_adapters.arguments import checked_choice, checked_count
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.global_generators import seeded_draws
from shapley_adapters.interactions.result import InteractionRequest, checked_pairs
from shapley_adapters.language_models.answers import (
    Answers,
    AnswerScorer,
    answer_tokens,
    check_answer,
    checked_answer,
)
from shapley_adapters.language_models.causal_model import AnswersPrompts
from shapley_adapters.language_models.encoder_decoder_model import language_model
from shapley_adapters.language_models.remote_language_model import RemoteLanguageModel
from shapley_adapters.pipeline.result import mean_estimate
from shapley_adapters.torch_support.array_module import warn_in_training_mode
from shapley_adapters.torch_support.random_state import seeded

from ..attributions.amortized_attribution import refuse_trained
from ..attributions.attribute_methods import NamedAttribution
from ..attributions.coalition_attribution import CoalitionAttribution
from ..captum_internals import DEFAULT_GEN_ARGS, readable_tokens
from ..games.answer_scores import AnswerScores
from ..inputs.prompts import check_prompt, players_of_parts
from ..results.language_model_results import LLMAttributionResult

_ATTRIBUTE = inspect.signature(captum.attr.LLMAttribution.attribute)


class LLMAttribution(NamedAttribution, captum.attr.LLMAttribution):  # type: ignore[misc] # captum is untyped
    """`captum.attr.LLMAttribution` in few passes, with standard errors, for our methods, too.

    Inputs and arguments are those of captum. Prompts run in batches, and the whole target takes one
    pass: the model reads it together with the prompt. Prompts of several lengths are padded, and
    equal prompts are read once. Our methods explain the whole target and each of its tokens with
    the same evaluations; their number is `n_samples` of `attribute`, and at most
    `perturbations_per_eval` of them are one batch. By default the batches are timed.

    Retrieved passages or sentences are parts of a `TextTemplateInput`, whose template may be a
    function that joins those that are left.

    Parameters
    ----------
    attr_method : PerturbationAttribution
        A method of captum or of this package, with the model as its `forward_func`.
    tokenizer : tokenizer
        The tokenizer of the model.
    attr_target : {"log_prob", "prob"} or callable
        Whether log-probabilities or probabilities of the target are explained. A function gets the
        answers to P prompts and returns P numbers: `answers.logits`, (P, T, vocabulary), and
        `answers.log_probs`, (P, T), belong to the T tokens of the target; `answers.texts` are P
        texts that the model writes itself, as `gen_args` say.

    Examples
    --------
    Whether the model answers yes rather than no, and whether its own answer has a word:

    >>> def prefers_yes(answers):
    ...     return answers.logits[:, 0, yes] - answers.logits[:, 0, no]
    >>> def names_paris(answers):
    ...     return [float("Paris" in text) for text in answers.texts]
    """

    SUPPORTED_METHODS = (*captum.attr.LLMAttribution.SUPPORTED_METHODS, CoalitionAttribution)
    SUPPORTED_PER_TOKEN_ATTR_METHODS = (
        *captum.attr.LLMAttribution.SUPPORTED_PER_TOKEN_ATTR_METHODS,
        CoalitionAttribution,
    )

    def __init__(
        self,
        attr_method: Any,
        tokenizer: Any,
        attr_target: str | Callable[[Answers], Any] = "log_prob",
    ) -> None:
        self._check_parts(attr_method, tokenizer, attr_target)
        super().__init__(attr_method, tokenizer, "prob" if callable(attr_target) else attr_target)
        self.attr_target = attr_target
        # A model's device may be a text.
        self.device: torch.device = torch.device(self.device)
        refuse_trained(attr_method, "the probability of a text")

    def _check_parts(self, method: Any, tokenizer: Any, attr_target: object) -> None:
        """Refuse a method, a model or a tokenizer that captum's constructor cannot take."""
        if not isinstance(method, self.SUPPORTED_METHODS):
            raise InvalidArgumentTypeError(
                "attr_method must be a method of this package or a perturbation method of captum; "
                f"got {type(method).__name__}. Pass captum_ext.Best(model)."
            )
        if not callable(attr_target):
            checked_choice("attr_target", attr_target, ("log_prob", "prob"))
        if not callable(getattr(tokenizer, "encode", None)):
            raise InvalidArgumentTypeError(
                "tokenizer must have the methods of those of transformers, such as encode; got "
                f"{type(tokenizer).__name__}. Pass AutoTokenizer.from_pretrained(name)."
            )
        model = method.forward_func
        parameters = getattr(model, "parameters", None)
        if not hasattr(model, "device") and not callable(parameters):
            raise InvalidArgumentTypeError(
                "The forward_func of attr_method must be a language model, a module with the "
                f"interface of transformers; got a {type(model).__name__}. Pass the model itself."
            )
        if not hasattr(model, "device") and next(iter(model.parameters()), None) is None:
            raise InvalidArgumentTypeError(
                f"The forward_func of attr_method, {type(model).__name__}, has no device and no "
                "parameters. Set model.device."
            )

    def attribute(
        self,
        inp: Any,
        target: str | Tensor | None = None,
        *arguments: Any,
        contrast: str | Tensor | None = None,
        interactions: bool | str = False,
        **options: Any,
    ) -> Any:
        """Attribute the answer of the model to the parts of a prompt.

        Parameters
        ----------
        inp : captum.attr.InterpretableInput
            The prompt: `TextTokenInput`, `TextTemplateInput` or `ImageMaskInput`.
        target : str or Tensor, (T,), optional
            The answer, a text or tokens. Without it, the model writes one first, as `gen_args` say;
            with one of our methods, sampled answers follow from the seed of the method.
        contrast : str or Tensor, optional
            Another answer: the log-probability (or probability) of the target less that of the
            other is explained. Each batch then takes two passes.
        interactions : bool or str
            Whether the result holds the interactions of all pairs of parts, from the same
            evaluations; True is "shapley". For our methods.
        *arguments, **options
            The other arguments of captum's `attribute`, and those of the method's, such as
            `n_samples`, `perturbations_per_eval`, `feature_mask` and `tolerance`. `num_trials` is
            the number of explanations, each with draws of its own, whose mean is returned.
            `use_cached_outputs` and `forward_in_tokens` have no effect, because there is one pass
            for all tokens of the target.

        Returns
        -------
        LLMAttributionResult
            With captum's `seq_attr`, `token_attr` and plots; for our methods with
            `seq_standard_error`, `token_standard_error`, `estimate` and interactions, too, and in
            double precision if the model computes in it. There are no attributions to tokens with
            `contrast` or with a function as `attr_target`.

        Raises
        ------
        InvalidArgumentError, InvalidArgumentTypeError
            Before the first pass, if the text has one token, the target has none or unknown ones,
            or the prompt and the target need more positions than the model has.
        """
        given = _ATTRIBUTE.bind(self, inp, target, *arguments, **options).arguments
        n_trials = checked_count("num_trials", given.get("num_trials", 1))
        method, request = self.attr_method, checked_pairs("interactions", interactions)
        is_ours = isinstance(method, CoalitionAttribution)
        if request is not None and not is_ours:
            raise InvalidArgumentTypeError(
                f"interactions={interactions!r} needs a method of this package, such as OddGP; "
                f"attr_method is {type(method).__name__}."
            )
        if isinstance(self.model, torch.nn.Module):
            warn_in_training_mode(self.model)
        seed = getattr(method, "seed", None)
        with seeded(seed, self.device), seeded_draws(seed):
            scores = self._scores(inp, given, contrast)
            with _explaining(method, scores, request):
                result = self._estimated if is_ours else self._averaged
                return result(scores, n_trials, given.get("kwargs", {}))

    def _estimated(
        self, scores: AnswerScores, n_trials: int, options: dict[str, Any]
    ) -> LLMAttributionResult:
        """Return the result of a method of this package, with all that its estimate holds."""
        inp, method, names = scores.inp, self.attr_method, self._names(scores)
        first_seed, trials = method.seed, []
        try:
            for trial in range(n_trials):
                if trial > 0:
                    sequence = np.random.SeedSequence([first_seed, trial])
                    method.seed = int(sequence.generate_state(1, np.uint64)[0])
                method.attribute(inp.to_tensor().to(self.device), **options)
                trials.append(method.last_estimate)
                if not trials[0].standard_errors.any() and trials[0].enumerated.all():
                    break  # the others would be equal
        finally:
            method.seed = first_seed
        method.last_estimate = mean_estimate(trials)
        players = players_of_parts(inp, options.get("feature_mask"))
        return LLMAttributionResult(
            method.last_estimate, players, scores.dtype, self.device, **names
        )

    def _averaged(self, scores: AnswerScores, n_trials: int, options: dict[str, Any]) -> Any:
        """Return captum's result of one of its methods, the mean of some trials."""
        inp, names = scores.inp, self._names(scores)
        parts = inp.to_tensor().to(self.device)
        trials = [self.attr_method.attribute(parts, **options) for _ in range(n_trials)]
        # captum's methods differ in the shape of several outputs.
        mean = torch.stack(trials).mean(dim=0).reshape(-1, inp.n_itp_features)
        attributions = inp.format_attr(mean)
        return captum.attr.LLMAttributionResult(
            seq_attr=attributions[0],
            token_attr=attributions[1:] if len(attributions) > 1 else None,
            **names,
        )

    def _scores(self, inp: Any, given: dict[str, Any], contrast: Any) -> AnswerScores:
        """Return the forward function of a call, its arguments checked before the first pass."""
        target, gen_args = given.get("target"), given.get("gen_args")
        check_prompt(inp, self.SUPPORTED_INPUTS)
        if contrast is not None and callable(self.attr_target):
            raise InvalidArgumentError(
                "contrast cannot be used where attr_target is a function: let it compare both."
            )
        if gen_args is not None and target is not None and not callable(self.attr_target):
            raise InvalidArgumentError(
                "gen_args say how the model writes a target, but target is given. Leave one out."
            )
        model, gen_args = self._answering_model(), gen_args or DEFAULT_GEN_ARGS
        _check_pass(model, inp, 1)
        others = None if contrast is None else checked_answer("contrast", contrast, model)
        if target is None:
            tokens = model.generated(inp.to_model_input(), gen_args)
        else:
            tokens = answer_tokens(target, self.tokenizer)
        check_answer("target", target, tokens, model)
        _check_pass(model, inp, max(len(tokens), 0 if others is None else len(others)))
        return AnswerScores(
            scorer=AnswerScorer(model, tokens, others, self.attr_target, gen_args),
            inp=inp,
            inspect=given.get("_inspect_forward"),
            is_scalar=not self.include_per_token_attr,
        )

    def _answering_model(self) -> AnswersPrompts:
        return language_model(self.model, self.tokenizer, self.device)

    def _names(self, scores: AnswerScores) -> dict[str, Any]:
        """Return what captum's results have beside attributions.

        Asked for first: evaluations must not be lost to a tokenizer that cannot name its tokens.
        """
        return {
            "input_tokens": scores.inp.values,
            "output_tokens": readable_tokens(scores.scorer.target, self.tokenizer),
            "inp": scores.inp,
        }


class RemoteLLMAttribution(captum.attr.RemoteLLMAttribution, LLMAttribution):  # type: ignore[misc] # captum is untyped
    """`captum.attr.RemoteLLMAttribution` with many calls at once, repeated after errors.

    It takes the methods of this package, too, and explains what `LLMAttribution` explains, but
    for logits. The provider gets one prompt in a call.

    Parameters
    ----------
    attr_method : PerturbationAttribution
        A method of captum or of this package, of `RemoteLLMAttribution.placeholder_model`.
    tokenizer : tokenizer
        The tokenizer of the model.
    provider : captum.attr.RemoteLLMProvider
        The interface: `get_logprobs(input_prompt, target_str, tokenizer)` returns the
        log-probability of each token of the target, and `generate(prompt, **gen_args)` a text.
    attr_target : {"log_prob", "prob"} or callable
        As in `LLMAttribution`.
    **remote_options
        Options of `RemoteModel`: `concurrency`, which is 16 by default (1 for a provider that
        is not thread-safe), `retries`, `retry_on`, `rate`, `timeout`, `cost`, and `memory` and
        `name`, by which nothing is paid for twice. `estimate.usage` of the result counts calls.
    """

    def __init__(
        self,
        attr_method: Any,
        tokenizer: Any,
        provider: Any,
        attr_target: str | Callable[[Answers], Any] = "log_prob",
        **remote_options: Any,
    ) -> None:
        # captum's own constructor comes next.
        super().__init__(attr_method, tokenizer, provider, attr_target)  # type: ignore[call-arg]
        self._remote = RemoteLanguageModel(provider, tokenizer, remote_options)

    def _answering_model(self) -> AnswersPrompts:
        return self._remote


def _check_pass(model: AnswersPrompts, inp: Any, n_tokens: int) -> None:
    """Refuse a prompt that the model cannot read, with all parts and with none."""
    parts = inp.to_tensor()
    for presence in (parts, torch.zeros_like(parts)):
        model.check(inp.to_model_input(presence), n_tokens)


@contextmanager
def _explaining(
    method: Any, scores: AnswerScores, request: InteractionRequest | None
) -> Iterator[None]:
    """Let a method explain the scores of a call, with interactions if they are asked for."""
    model, method.forward_func = method.forward_func, scores
    method._interactions = request
    try:
        yield
    finally:
        method.forward_func, method._interactions = model, None
