"""Language models behind an interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor

from shapley_adapters.errors import InvalidArgumentError, ModelOutputError

from .language_models import Prompt


@dataclass
class RemoteLanguageModel:
    """A language model behind an interface of captum, which takes one prompt at a time.

    Attributes
    ----------
    provider : captum.attr.RemoteLLMProvider
        The interface.
    tokenizer : tokenizer
        The tokenizer of the model.
    """

    provider: Any
    tokenizer: Any
    rounding: float = 0.0
    vocabulary: int | None = None

    def check(self, prompt: Prompt, n_tokens: int) -> None:
        """Leave the check of lengths to the interface."""

    def logits(self, prompts: Sequence[Prompt], tokens: Tensor) -> Tensor:
        """Refuse: interfaces give log-probabilities of tokens only."""
        raise InvalidArgumentError(
            "attr_target asks for logits, but a remote model gives log-probabilities of the "
            "target's tokens only. Use answers.log_probs or answers.texts."
        )

    def log_probs(self, prompts: Sequence[Prompt], tokens: Tensor) -> Tensor:
        """Return the log-probability of each token of an answer, (P, T)."""
        target = self.tokenizer.decode(tokens)
        rows = [
            self.provider.get_logprobs(
                input_prompt=self._text(prompt), target_str=target, tokenizer=self.tokenizer
            )
            for prompt in prompts
        ]
        for row in rows:
            if len(row) != len(tokens):
                raise ModelOutputError(
                    f"The provider returned {len(row)} log-probabilities for a target of "
                    f"{len(tokens)} tokens: check that the tokenizer is that of the model."
                )
        return torch.tensor(rows, dtype=torch.float64)

    def texts(self, prompts: Sequence[Prompt], options: Mapping[str, Any]) -> list[str]:
        """Return the answer that the model writes to each prompt."""
        return [self.provider.generate(self._text(prompt), **options) for prompt in prompts]

    def _text(self, prompt: Prompt) -> str:
        return str(self.tokenizer.decode(prompt[0]) if isinstance(prompt, Tensor) else prompt)
