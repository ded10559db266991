"""Language models behind an interface."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import torch
from torch import Tensor

from ..errors import InvalidArgumentError, ModelOutputError
from ..remote import RemoteModel, Usage
from .answers import answer_tokens
from .causal_model import Prompt


@dataclass
class RemoteLanguageModel:
    """A language model behind an interface that takes one prompt in a call.

    Attributes
    ----------
    provider : object
        The interface, with the methods of `captum.attr.RemoteLLMProvider`.
    tokenizer : tokenizer
        The tokenizer of the model.
    options : dict
        Those of `RemoteModel`: how calls are repeated, limited, counted and remembered.
    """

    provider: Any
    tokenizer: Any
    options: Mapping[str, Any]
    rounding: float = field(default=0.0, init=False)
    vocabulary: int | None = field(default=None, init=False)

    def __post_init__(self) -> None:
        self._scores = RemoteModel(self._score, **{"rows_per_call": 1, **self.options})
        # Written texts may be random, so that none is remembered.
        others = {k: v for k, v in self.options.items() if k != "memory"}
        self._texts = RemoteModel(self._write, **{"rows_per_call": 1, **others})
        self.rows_at_once = self._scores.rows_at_once

    @property
    def usage(self) -> Usage:
        """What the interface was used for so far."""
        return self._scores.usage + self._texts.usage

    def check(self, prompt: Prompt, n_tokens: int) -> None:
        """Leave the check of lengths to the interface."""

    def logits(self, prompts: Sequence[Prompt], tokens: Tensor) -> Tensor:
        """Refuse: interfaces give log-probabilities of tokens only."""
        raise InvalidArgumentError(
            "The score asks for logits, but a remote model gives log-probabilities of the "
            "target's tokens only. Use answers.log_probs or answers.texts."
        )

    def log_probs(self, prompts: Sequence[Prompt], tokens: Tensor) -> Tensor:
        """Return the log-probability of each token of an answer, (P, T)."""
        target = self.tokenizer.decode(tokens)
        rows = self._scores([self._text(prompt) for prompt in prompts], target, len(tokens))
        return torch.as_tensor(np.asarray(rows, dtype=np.float64))

    def generated(self, prompt: Prompt, options: Mapping[str, Any]) -> Tensor:
        """Return the tokens that the model writes after one prompt, (T,)."""
        (text,) = self.texts([prompt], options)
        return answer_tokens(text, self.tokenizer)

    def texts(self, prompts: Sequence[Prompt], options: Mapping[str, Any]) -> list[str]:
        """Return the answer that the model writes to each prompt."""
        if not callable(getattr(self.provider, "generate", None)):
            raise InvalidArgumentError(
                "The model is to write an answer, but the provider has no method generate. Pass "
                "target= with a text."
            )
        return list(self._texts([self._text(prompt) for prompt in prompts], options))

    def samples(self, options: Mapping[str, Any]) -> bool:
        """Return whether the provider is told to write at random."""
        return bool(options.get("do_sample", False))

    def _score(self, prompts: Sequence[str], target: str, n_tokens: int) -> Any:
        rows = [
            self.provider.get_logprobs(
                input_prompt=prompt, target_str=target, tokenizer=self.tokenizer
            )
            for prompt in prompts
        ]
        for row in rows:
            if len(row) != n_tokens:
                raise ModelOutputError(
                    f"The provider returned {len(row)} log-probabilities for a target of "
                    f"{n_tokens} tokens: check that the tokenizer is that of the model."
                )
        return np.asarray(rows, dtype=np.float64)

    def _write(self, prompts: Sequence[str], options: Mapping[str, Any]) -> list[str]:
        return [self.provider.generate(prompt, **options) for prompt in prompts]

    def _text(self, prompt: Prompt) -> str:
        return str(self.tokenizer.decode(prompt[0]) if isinstance(prompt, Tensor) else prompt)
