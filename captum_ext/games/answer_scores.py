"""Scores of a language model's answer as a function of the parts of a prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any, TypeAlias

import torch
from torch import Tensor

from shapley_adapters.errors import ModelOutputError

from .language_models import AnswersPrompts, Prompt


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
class AnswerScores:
    """The forward function of a prompt's parts: their presence in, scores of the answer out.

    Equal prompts are read once. A coalition that is asked for again is read again, because this is
    how answers at random are found and measured.

    Attributes
    ----------
    model : AnswersPrompts
        The language model.
    inp : captum.attr.InterpretableInput
        The prompt and its parts.
    target, contrast : Tensors, (T,) and (T',)
        The tokens of the answer, and of the answer that it is compared with, if any.
    score : {"log_prob", "prob"} or callable
        What is explained.
    gen_args : dict
        How the model writes answers.
    inspect : callable, optional
        Called with each prompt, the target and the scores, as in captum.
    is_scalar : bool
        Whether there is one score of each prompt only, in the form of captum's KernelShap.
    dtype : torch.dtype
        The type of the scores, known after the first call.
    """

    model: AnswersPrompts
    inp: Any
    target: Tensor
    contrast: Tensor | None
    score: Score
    gen_args: Mapping[str, Any]
    inspect: Callable[[Any, str, list[float]], None] | None = None
    is_scalar: bool = False
    dtype: torch.dtype = field(default=torch.float32, init=False)
    _known: dict[tuple[Any, int], Tensor] = field(default_factory=dict, init=False, repr=False)
    _times_asked: Counter[Any] = field(default_factory=Counter, init=False, repr=False)

    @property
    def rounding(self) -> float:
        """The relative rounding error of the model, which may exceed that of the scores."""
        return self.model.rounding

    @torch.no_grad()
    def __call__(self, presence: Tensor) -> Tensor:
        """Return the scores, (P, K), of parts whose presence is 1 or 0, (P, M)."""
        rows = presence.cpu()
        prompts = [self.inp.to_model_input(row[None]) for row in rows]
        times, keys = self._times_asked.copy(), []
        for row, prompt in zip(rows, prompts, strict=True):
            coalition = tuple(row.tolist())
            keys.append((_content(prompt, coalition), times[coalition]))
            times[coalition] += 1
        new = {key: i for i, key in enumerate(keys) if key not in self._known}
        if new:
            scores = self._scores([prompts[i] for i in new.values()])
            self.dtype = scores.dtype
            self._known.update(zip(new, scores, strict=True))
        self._times_asked = times  # after a pass that did not run out of memory
        together = torch.stack([self._known[key] for key in keys]).to(presence.device)
        return together[:, 0].squeeze() if self.is_scalar else together

    def _scores(self, prompts: list[Prompt]) -> Tensor:
        """Return the scores of prompts, (P, K): of the answer, and of its tokens if it has any."""
        answers = Answers(prompts, self.target, self.model, self.gen_args)
        if callable(self.score):
            scores = _one_number_each(self.score(answers), len(prompts))
        else:
            scores = self._in_units(answers.log_probs)
            if self.contrast is not None:
                other = self._in_units(self.model.log_probs(prompts, self.contrast))
                scores = scores[:, :1] - other[:, :1]
        if self.inspect is not None:
            decode = self.model.tokenizer.decode
            for prompt, of_prompt in zip(prompts, scores.tolist(), strict=True):
                text = decode(prompt[0]) if isinstance(prompt, Tensor) else prompt
                self.inspect(text, decode(self.target), of_prompt)
        return scores

    def _in_units(self, log_probs: Tensor) -> Tensor:
        """Return the scores of an answer and of its tokens, (P, 1 + T)."""
        scores = torch.cat([log_probs.sum(dim=1, keepdim=True), log_probs], dim=1)
        return scores.exp() if self.score == "prob" else scores


def _content(prompt: Prompt, coalition: tuple[float, ...]) -> Any:
    """Return what equal prompts have in common, by which they can be found again."""
    if isinstance(prompt, Tensor):
        return tuple(prompt.flatten().tolist())
    return prompt if isinstance(prompt, str) else coalition


def _one_number_each(scores: Any, n_answers: int) -> Tensor:
    """Return the scores of a user's function as (P, 1)."""
    tensor = torch.as_tensor(scores)
    if tensor.shape not in ((n_answers,), (n_answers, 1)):
        raise ModelOutputError(
            f"attr_target must return one number for each of its {n_answers} answers; its result "
            f"has shape {tuple(tensor.shape)}."
        )
    if not tensor.is_floating_point():
        tensor = tensor.to(torch.float32)
    return tensor.reshape(n_answers, 1)
