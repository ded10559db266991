"""Prompts of language models with parts to explain, and the tokens of answers; both checked."""

from __future__ import annotations

from typing import Any

import captum.attr
import numpy as np
import torch
from torch import Tensor

from shapley_adapters.array_types import IntArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError


def check_prompt(inp: Any, kinds: tuple[Any, ...]) -> None:
    """Refuse what is no prompt of one of captum's kinds, or has no parts to tell apart.

    Raises
    ------
    InvalidArgumentError, InvalidArgumentTypeError
        If it cannot be explained.
    """
    if not isinstance(inp, kinds):
        names = ", ".join(kind.__name__ for kind in kinds)
        raise InvalidArgumentTypeError(f"inp must be one of {names}; got {type(inp).__name__}.")
    n_least = 2 if isinstance(inp, captum.attr.TextTokenInput) else 1
    if inp.n_itp_features < n_least:
        raise InvalidArgumentError(
            f"inp has {inp.n_itp_features} parts to explain and needs {n_least}: the attribution "
            "of a single token is the difference that its absence makes. Pass a longer text."
        )


def answer_tokens(answer: str | Tensor, tokenizer: Any) -> Tensor:
    """Return the tokens of an answer, (T,), without those that start or end a text."""
    if isinstance(answer, str):
        return torch.tensor(tokenizer.encode(answer, add_special_tokens=False), dtype=torch.long)
    if isinstance(answer, Tensor) and answer.dim() == 1 and not answer.is_floating_point():
        return answer.cpu()
    raise InvalidArgumentTypeError(
        "target and contrast must be texts or tensors of tokens, (T,); got "
        f"{type(answer).__name__}{list(getattr(answer, 'shape', []))}."
    )


def skip(tokens: Tensor, skipped: Any, tokenizer: Any) -> Tensor:
    """Return an answer without the tokens to skip, an argument of captum 0.8."""
    if not skipped:
        return tokens
    if isinstance(skipped[0], str):
        skipped = tokenizer.convert_tokens_to_ids(skipped)
    return tokens[~torch.isin(tokens, torch.tensor(skipped))]


def check_answer(
    name: str, given: Any, tokens: Tensor, tokenizer: Any, vocabulary: int | None
) -> None:
    """Refuse an answer without tokens, or with tokens that the model does not know.

    Parameters
    ----------
    name : str
        The name of the argument.
    given : str, Tensor or None
        What the user passed; None where the model wrote the answer.
    tokens : Tensor, (T,)
        The tokens of the answer.
    tokenizer : tokenizer
        The tokenizer.
    vocabulary : int, optional
        The number of tokens that the model knows.

    Raises
    ------
    InvalidArgumentError
        If the answer cannot be explained.
    """
    if len(tokens) == 0:
        came = "the model wrote nothing" if given is None else f"got {given!r}"
        raise InvalidArgumentError(f"{name} has no token: {came}. Pass at least one token.")
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


def players_of_parts(inp: Any, feature_mask: Tensor | None) -> IntArray:
    """Return the player of each text that captum shows for a prompt, (N,)."""
    players = np.arange(inp.n_itp_features)
    if feature_mask is not None:
        ids = feature_mask.reshape(-1).cpu().numpy()
        players = np.unique(ids, return_inverse=True)[1].reshape(-1)
    of_texts = inp.format_attr(torch.from_numpy(players)[None])  # slots of a template in groups
    return np.asarray(of_texts[0].numpy(), dtype=np.intp)
