"""Language models that read a prompt with an encoder and write with a decoder, as T5 and BART."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from .causal_model import CausalLanguageModel


class EncoderDecoderModel(CausalLanguageModel):
    """An encoder-decoder with the interface of transformers.

    The encoder reads the prompt. The decoder reads its start token and the answer (teacher
    forcing), so that all tokens of the answer take one pass. Shorter prompts are padded on the
    right, where the mask hides it from the encoder and the decoder.
    """

    _padding_side = "right"

    def __post_init__(self) -> None:
        super().__post_init__()
        self._prefixes = None  # prompts have no prefix whose states are independent of the rest
        configs = getattr(self.model, "generation_config", None), self.model.config
        starts = [getattr(config, "decoder_start_token_id", None) for config in configs]
        starts.append(getattr(self.model.config, "bos_token_id", None))
        self._start = next((start for start in starts if start is not None), 0)

    def _n_read(self, length: int, n_tokens: int) -> int:
        return max(length, n_tokens)

    def _new_tokens(self, written: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        return written[:, 1:]  # after the start token

    def _pass(self, rows: Sequence[dict[str, Any]], tokens: Tensor) -> Tensor:
        """Return the logits before each token of an answer, (P, T, V), by one pass."""
        arguments = {**rows[0], **self._padded(rows, side="right")}
        if "attention_mask" in rows[0]:
            arguments["attention_mask"] = rows[0]["attention_mask"]
        start = torch.tensor([self._start])
        answer = torch.cat([start, tokens[:-1]]).to(self.device).expand(len(rows), -1)
        logits: Tensor = self.model(**arguments, decoder_input_ids=answer, use_cache=False).logits
        return logits if logits.dtype == torch.float64 else logits.float()


def language_model(model: Any, tokenizer: Any, device: torch.device) -> CausalLanguageModel:
    """Return a model of transformers as one that answers prompts."""
    has_encoder = getattr(getattr(model, "config", None), "is_encoder_decoder", False)
    return (EncoderDecoderModel if has_encoder else CausalLanguageModel)(model, tokenizer, device)
