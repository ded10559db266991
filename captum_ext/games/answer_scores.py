"""Scores of a language model's answer as a function of the parts of a prompt."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import torch
from torch import Tensor

from shapley_adapters.language_models.answers import AnswerScorer
from shapley_adapters.language_models.causal_model import Prompt
from shapley_adapters.remote import Usage

from ..inputs.prompts import inputs_of_cases


@dataclass
class AnswerScores:
    """The forward function of a prompt's parts: their presence in, scores of the answer out.

    Baselines that are drawn from few cases are replaced by the mean over these. Otherwise each
    evaluation draws them. Equal prompts are read once. A coalition that is asked for again is read
    again, because this is how answers at random are found and measured.

    Attributes
    ----------
    scorer : AnswerScorer
        What is explained.
    inp : captum.attr.InterpretableInput
        The prompt and its parts.
    inspect : callable, optional
        Called with each prompt, the target and the scores, as in captum.
    is_scalar : bool
        Whether there is one score of each prompt only, in the form of captum's KernelShap.
    dtype : torch.dtype
        The type of the scores, known after the first call.
    """

    scorer: AnswerScorer
    inp: Any
    inspect: Callable[[Any, str, list[float]], None] | None = None
    is_scalar: bool = False
    dtype: torch.dtype = field(default=torch.float32, init=False)
    _known: dict[tuple[Any, int], Tensor] = field(default_factory=dict, init=False, repr=False)
    _times_asked: Counter[Any] = field(default_factory=Counter, init=False, repr=False)

    _cases: list[Any] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        self._cases = inputs_of_cases(self.inp)

    derivative_obstacle = "the parts of a prompt are there or not"

    @property
    def rounding(self) -> float:
        """The relative rounding error of the model, which may exceed that of the scores."""
        return self.scorer.model.rounding

    @property
    def usage(self) -> Usage | None:
        """What a remote model was used for so far."""
        return getattr(self.scorer.model, "usage", None)

    @property
    def rows_at_once(self) -> int | None:
        """The prompts that keep a model behind an interface busy; None for others."""
        return getattr(self.scorer.model, "rows_at_once", None)

    @property
    def answers_at_random(self) -> bool:
        """Whether equal coalitions have different scores: absent parts or answers are drawn."""
        return self._draws_parts or self.scorer.samples_texts

    @property
    def only_absence_is_random(self) -> bool:
        """Whether absent parts are drawn, and nothing else."""
        return self._draws_parts and not self.scorer.samples_texts

    @property
    def _draws_parts(self) -> bool:
        return callable(getattr(self._cases[0], "baselines", None))

    @torch.no_grad()
    def __call__(self, presence: Tensor) -> Tensor:
        """Return the scores, (P, K), of parts whose presence is 1 or 0, (P, M)."""
        rows = presence.cpu()
        prompts, times, keys = [], self._times_asked.copy(), []
        for row in rows:
            coalition = tuple(row.tolist())
            for number, case in enumerate(self._cases):
                prompt = case.to_model_input(row[None])
                prompts.append(prompt)
                content = _content(prompt, (number, *coalition))
                keys.append((content, times[coalition]))
            times[coalition] += 1
        new = {key: i for i, key in enumerate(keys) if key not in self._known}
        if new:
            scores = self._scores([prompts[i] for i in new.values()])
            self.dtype = scores.dtype
            self._known.update(zip(new, scores, strict=True))
        self._times_asked = times  # after a pass that did not run out of memory
        together = torch.stack([self._known[key] for key in keys]).to(presence.device)
        if len(self._cases) > 1:
            together = together.reshape(len(rows), len(self._cases), -1).mean(dim=1)
        return together[:, 0].squeeze() if self.is_scalar else together

    def _scores(self, prompts: list[Prompt]) -> Tensor:
        """Return the scores of prompts, (P, K), and show them to `inspect`."""
        scores = self.scorer(prompts)
        if self.inspect is not None:
            decode = self.scorer.model.tokenizer.decode
            for prompt, of_prompt in zip(prompts, scores.tolist(), strict=True):
                text = decode(prompt[0]) if isinstance(prompt, Tensor) else prompt
                self.inspect(text, decode(self.scorer.target), of_prompt)
        return scores


def _content(prompt: Prompt, coalition: tuple[float, ...]) -> Any:
    """Return what equal prompts have in common, by which they can be found again."""
    if isinstance(prompt, Tensor):
        return tuple(prompt.flatten().tolist())
    return prompt if isinstance(prompt, str) else coalition
