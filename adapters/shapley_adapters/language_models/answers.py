"""Answers of language models to some prompts, their tokens and their scores."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import Any, TypeAlias

import numpy as np
import torch
from torch import Tensor

from ..array_types import IntArray
from ..errors import InvalidArgumentError, InvalidArgumentTypeError, ModelOutputError
from .causal_model import AnswersPrompts, Prompt


@dataclass
class Answers:
    """The answers to some prompts; each of its properties is computed when it is read.

    Attributes
    ----------
    prompts : list
        P prompts: texts, or tokens, (1, L).
    target_tokens : Tensor, (T,)
        The tokens of the explained answer.
    """

    prompts: Sequence[Prompt]
    target_tokens: Tensor
    _model: AnswersPrompts
    _gen_args: Mapping[str, Any]

    @cached_property
    def logits(self) -> Tensor:
        """The logits before each token of the target, (P, T, vocabulary)."""
        return self._model.logits(self.prompts, self.target_tokens)

    @cached_property
    def log_probs(self) -> Tensor:
        """The log-probability of each token of the target, (P, T)."""
        return self._model.log_probs(self.prompts, self.target_tokens)

    @cached_property
    def texts(self) -> list[str]:
        """The P answers that the model writes itself, by `gen_args`."""
        return self._model.texts(self.prompts, self._gen_args)


Score: TypeAlias = str | Callable[[Answers], Any]


@dataclass
class AnswerScorer:
    """Scores the answer of a language model to prompts.

    Attributes
    ----------
    model : AnswersPrompts
        The language model.
    target, contrast : Tensors, (T,) and (T',)
        The tokens of the answer, and of the answer that it is compared with, if any.
    score : {"log_prob", "prob"} or callable
        What is explained: the (log-)probability of the answer, or a function of `Answers` that
        returns one number for each prompt.
    gen_args : dict
        How the model writes answers.

    Raises
    ------
    InvalidArgumentError
        If both answers are the same.
    """

    model: AnswersPrompts
    target: Tensor
    contrast: Tensor | None
    score: Score
    gen_args: Mapping[str, Any]

    def __post_init__(self) -> None:
        if self.contrast is not None and self.contrast.tolist() == self.target.tolist():
            raise InvalidArgumentError("contrast must differ from target; both are the same.")

    @property
    def samples_texts(self) -> bool:
        """Whether the score may depend on texts that the model draws at random."""
        return callable(self.score) and self.model.samples(self.gen_args)

    @torch.no_grad()
    def __call__(self, prompts: Sequence[Prompt]) -> Tensor:
        """Return the scores of prompts, (P, K): of the answer, and of its tokens if it has any."""
        answers = Answers(prompts, self.target, self.model, self.gen_args)
        if callable(self.score):
            return _one_number_each(self.score(answers), len(prompts))
        scores = self._in_units(answers.log_probs)
        if self.contrast is None:
            return scores
        other = self._in_units(self.model.log_probs(prompts, self.contrast))
        return scores[:, :1] - other[:, :1]

    def _in_units(self, log_probs: Tensor) -> Tensor:
        """Return the scores of an answer and of its tokens, (P, 1 + T)."""
        scores = torch.cat([log_probs.sum(dim=1, keepdim=True), log_probs], dim=1)
        return scores.exp() if self.score == "prob" else scores


def checked_answer(name: str, given: str | Tensor | IntArray, model: AnswersPrompts) -> Tensor:
    """Return the tokens of an answer of the user, (T,), after the checks of `check_answer`."""
    tokens = answer_tokens(given, model.tokenizer)
    check_answer(name, given, tokens, model)
    return tokens


def answer_tokens(answer: str | Tensor | IntArray, tokenizer: Any) -> Tensor:
    """Return the tokens of an answer, (T,), without those that start or end a text."""
    if isinstance(answer, np.ndarray):
        answer = torch.from_numpy(answer)
    if isinstance(answer, str):
        return torch.tensor(tokenizer.encode(answer, add_special_tokens=False), dtype=torch.long)
    if isinstance(answer, Tensor) and answer.dim() == 1 and not answer.is_floating_point():
        return answer.cpu()
    raise InvalidArgumentTypeError(
        "target and contrast must be texts or tensors of tokens, (T,); got "
        f"{type(answer).__name__}{list(getattr(answer, 'shape', []))}."
    )


def check_answer(name: str, given: Any, tokens: Tensor, model: AnswersPrompts) -> None:
    """Refuse an answer without tokens, or with tokens that the model does not know.

    Parameters
    ----------
    name : str
        The name of the argument.
    given : str, Tensor, array or None
        What the user passed; None where the model wrote the answer.
    tokens : Tensor, (T,)
        The tokens of the answer.
    model : AnswersPrompts
        The model.

    Raises
    ------
    InvalidArgumentError
        If the answer cannot be explained.
    """
    if len(tokens) == 0:
        came = "the model wrote nothing" if given is None else f"got {given!r}"
        raise InvalidArgumentError(f"{name} has no token: {came}. Pass at least one token.")
    tokenizer, vocabulary = model.tokenizer, model.vocabulary
    ids, unknown = tokens.tolist(), getattr(tokenizer, "unk_token_id", None)
    if isinstance(given, str) and unknown in ids and str(tokenizer.unk_token) not in given:
        raise InvalidArgumentError(
            f"{name} has words that the tokenizer does not know: {given!r} becomes "
            f"{tokenizer.convert_ids_to_tokens(ids)}. Use words of its vocabulary, or pass a "
            "tensor of tokens."
        )
    lowest, highest = int(tokens.min()), int(tokens.max())
    if lowest < 0 or (vocabulary is not None and highest >= vocabulary):
        raise InvalidArgumentError(
            f"{name} has tokens from {lowest} to {highest}; those of the model are from 0 to "
            f"{'its last' if vocabulary is None else vocabulary - 1}. Use its own tokenizer."
        )


def _one_number_each(scores: Any, n_answers: int) -> Tensor:
    """Return the scores of a user's function as (P, 1)."""
    tensor = torch.as_tensor(scores)
    if tensor.shape not in ((n_answers,), (n_answers, 1)):
        raise ModelOutputError(
            f"The score must return one number for each of its {n_answers} answers; its result "
            f"has shape {tuple(tensor.shape)}."
        )
    if not tensor.is_floating_point():
        tensor = tensor.to(torch.float32)
    return tensor.reshape(n_answers, 1)
