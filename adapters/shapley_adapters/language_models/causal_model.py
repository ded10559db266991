"""Language models that score and write answers to many prompts in few passes."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, Protocol, TypeAlias

import torch
from torch import Tensor
from torch.nn.utils.rnn import pad_sequence

from ..errors import InvalidArgumentError, warn_user

Prompt: TypeAlias = str | Tensor | Mapping[str, Any]
"""What a coalition becomes: a text, tokens (1, L), or arguments of the model."""

_MOST_TOKENS, _MOST_LOGITS = 2**15, 2**28
"""Tokens and logits of one pass at most. A device that runs out of memory says so, and the batch is
halved; a process on the CPU is ended instead. 2^28 logits take 1 GiB in single precision."""


class AnswersPrompts(Protocol):
    """A language model, here or behind an interface.

    Attributes
    ----------
    tokenizer : tokenizer
        Its tokenizer.
    rounding : float
        The relative rounding error of its numbers.
    vocabulary : int, optional
        The number of tokens that it knows.
    """

    tokenizer: Any
    rounding: float
    vocabulary: int | None

    def check(self, prompt: Prompt, n_tokens: int) -> None:
        """Refuse a prompt that the model cannot read together with an answer of `n_tokens`."""

    def logits(self, prompts: Sequence[Prompt], tokens: Tensor) -> Tensor:
        """Return the logits before each token of an answer, (P, T, vocabulary)."""

    def log_probs(self, prompts: Sequence[Prompt], tokens: Tensor) -> Tensor:
        """Return the log-probability of each token of an answer, (P, T)."""

    def generated(self, prompt: Prompt, options: Mapping[str, Any]) -> Tensor:
        """Return the tokens that the model writes after one prompt, (T,)."""

    def texts(self, prompts: Sequence[Prompt], options: Mapping[str, Any]) -> list[str]:
        """Return the answer that the model writes to each prompt."""

    def samples(self, options: Mapping[str, Any]) -> bool:
        """Return whether it is known that the model writes at random with these options."""


@dataclass
class CausalLanguageModel:
    """A causal language model with the interface of transformers.

    An answer is read together with its prompt (teacher forcing), so that all its tokens take one
    pass. Shorter prompts are padded on the right: a causal model reads from left to right, so that
    padding changes neither positions nor what a token sees, whatever side the tokenizer pads.
    Tokens with which all prompts of a pass begin are read once.

    Attributes
    ----------
    model : torch.nn.Module
        The model.
    tokenizer : tokenizer
        Its tokenizer.
    device : torch.device
        Where the model is.
    rounding : float
        The relative rounding error of the coarsest of its parameters.
    vocabulary : int, optional
        The number of tokens that it knows.
    """

    _padding_side: ClassVar[str] = "left"
    """Where prompts are padded before the model writes: the new tokens begin at one place."""

    model: Any
    tokenizer: Any
    device: torch.device
    rounding: float = field(init=False)
    vocabulary: int | None = field(init=False)
    _has_warned: bool = field(default=False, init=False, repr=False)

    def __post_init__(self) -> None:
        types = {p.dtype for p in self.model.parameters() if p.is_floating_point()}
        self.rounding = max((torch.finfo(dtype).eps for dtype in types), default=0.0)
        self._parameters = frozenset(inspect.signature(self.model.forward).parameters)
        can_cache = self._parameters >= {"past_key_values", "use_cache", "attention_mask"}
        self._prefixes = PrefixCache(self.model, self.rounding) if can_cache else None
        config: Any = getattr(self.model, "config", None)
        config = config.get_text_config() if hasattr(config, "get_text_config") else config
        self._n_positions: int | None = getattr(config, "max_position_embeddings", None)
        self.vocabulary = getattr(config, "vocab_size", None)

    def check(self, prompt: Prompt, n_tokens: int) -> None:
        """Refuse a prompt that the model cannot read together with an answer of `n_tokens`.

        Raises
        ------
        InvalidArgumentError
            If it has no token, or if both have more tokens than the model has positions.
        """
        tokens = self._arguments(prompt)["input_ids"]
        self._check_length(tokens.shape[1], n_tokens)
        start = getattr(self.tokenizer, "bos_token_id", None)
        is_double = start is not None and tokens[0, :2].tolist() == [start, start]
        if is_double and not self._has_warned:
            self._has_warned = True
            text = getattr(self.tokenizer, "bos_token", start)
            warn_user(
                f"The prompt begins with {text} twice: the text has one, as chat templates write "
                "it, and the tokenizer adds another. Models are not trained on that. Pass the "
                "text without it: text.removeprefix(tokenizer.bos_token).",
                subject="two start tokens",
            )

    def _check_length(self, length: int, n_tokens: int) -> None:
        if length == 0:
            raise InvalidArgumentError(
                "The prompt has no token left where its parts are absent, but a model predicts "
                "each token from those before. Put a text in place of absent parts (baselines= in "
                "captum, mask_token= in shap) or around them (template=). Or use a tokenizer that "
                "adds a start token."
            )
        needed = self._n_read(length, n_tokens)
        if self._n_positions is not None and needed > self._n_positions:
            raise InvalidArgumentError(
                f"The prompt has {length} tokens and the target {n_tokens}, which need {needed} "
                f"positions; the model has {self._n_positions} (max_position_embeddings). Shorten "
                "the prompt or the target."
            )

    def _n_read(self, length: int, n_tokens: int) -> int:
        """Return the positions that a prompt and an answer need."""
        return length + max(0, n_tokens - 1)  # nothing follows the last token

    def logits(self, prompts: Sequence[Prompt], tokens: Tensor) -> Tensor:
        """Return the logits before each token of an answer, (P, T, V), at least in float32."""
        return torch.cat([self._pass(part, tokens) for part in self._passes(prompts, len(tokens))])

    def log_probs(self, prompts: Sequence[Prompt], tokens: Tensor) -> Tensor:
        """Return the log-probability of each token of an answer, (P, T)."""
        parts = []
        for part in self._passes(prompts, len(tokens)):
            logs = torch.log_softmax(self._pass(part, tokens), dim=2)
            at = tokens.to(logs.device).expand(len(part), -1)[..., None]
            parts.append(logs.gather(2, at)[..., 0])
        return torch.cat(parts)

    def generated(self, prompt: Prompt, options: Mapping[str, Any]) -> Tensor:
        """Return the tokens that the model writes after one prompt, (T,)."""
        arguments = self._arguments(prompt)
        return self._generate(arguments, options)[0].cpu()

    def texts(self, prompts: Sequence[Prompt], options: Mapping[str, Any]) -> list[str]:
        """Return the answer that the model writes to each prompt."""
        texts: list[str] = []
        for part in self._passes(prompts, int(options.get("max_new_tokens") or 1)):
            side = self._padding_side
            arguments = part[0] if len(part) == 1 else self._padded(part, side)
            answers = self._generate(arguments, options)
            texts += [self.tokenizer.decode(ids, skip_special_tokens=True) for ids in answers]
        return texts

    def samples(self, options: Mapping[str, Any]) -> bool:
        """Return whether the model writes at random with these options."""
        config = getattr(self.model, "generation_config", None)
        return bool(options.get("do_sample", getattr(config, "do_sample", False)))

    def _generate(self, arguments: dict[str, Any], options: Mapping[str, Any]) -> Tensor:
        if not callable(getattr(self.model, "generate", None)):
            raise InvalidArgumentError(
                "target is missing: the model has no method generate that could write one. Pass "
                "target= with a text or its tokens."
            )
        ids = arguments["input_ids"]
        written = self.model.generate(
            **{"attention_mask": torch.ones_like(ids), **arguments}, **options
        )
        return self._new_tokens(written, arguments)

    def _new_tokens(self, written: Tensor, arguments: Mapping[str, Any]) -> Tensor:
        """Return what `generate` has added to the prompts."""
        return written[:, arguments["input_ids"].shape[1] :]

    def _arguments(self, prompt: Prompt) -> dict[str, Any]:
        """Return a prompt as arguments of the model."""
        if isinstance(prompt, str):
            tokens: Tensor = self.tokenizer.encode(prompt, return_tensors="pt")
            prompt = tokens
        if isinstance(prompt, Mapping):
            return dict(prompt)
        return {"input_ids": prompt.to(self.device, torch.long)}

    def _passes(self, prompts: Sequence[Prompt], n_tokens: int) -> list[list[dict[str, Any]]]:
        """Return the prompts of each pass; those with more than tokens, as images, run alone."""
        all_arguments = [self._arguments(prompt) for prompt in prompts]
        lengths = [arguments["input_ids"].shape[1] for arguments in all_arguments]
        for length in set(lengths):
            self._check_length(length, n_tokens)
        if any(len(arguments) > 1 for arguments in all_arguments):
            return [[arguments] for arguments in all_arguments]
        longest = max(lengths) + n_tokens
        n_logits = (n_tokens if "logits_to_keep" in self._parameters else longest) * (
            self.vocabulary or 1
        )
        size = max(1, min(_MOST_TOKENS // longest, _MOST_LOGITS // n_logits))
        return [all_arguments[i : i + size] for i in range(0, len(all_arguments), size)]

    def _padded(self, rows: Sequence[dict[str, Any]], side: str) -> dict[str, Tensor]:
        """Return tokens of several lengths as one tensor, with the mask of those to be read."""
        ids = [row["input_ids"][0] for row in rows]
        if side == "left":
            ids = [row.flip(0) for row in ids]
        padding = getattr(self.tokenizer, "pad_token_id", None) or 0  # never read
        padded = pad_sequence(ids, batch_first=True, padding_value=padding)
        lengths = torch.tensor([len(row) for row in ids], device=padded.device)
        mask = (torch.arange(padded.shape[1], device=padded.device) < lengths[:, None]).long()
        if side == "left":
            padded, mask = padded.flip(1), mask.flip(1)
        return {"input_ids": padded, "attention_mask": mask}

    def _pass(self, rows: Sequence[dict[str, Any]], tokens: Tensor) -> Tensor:
        """Return the logits before each token of an answer, (P, T, V), by one pass."""
        answer = tokens[:-1].to(self.device)[None]  # nothing follows the last token
        joined = [
            {**row, "input_ids": torch.cat([row["input_ids"], answer], dim=1)} for row in rows
        ]
        arguments: dict[str, Any] = self._padded(joined, side="right")
        if "attention_mask" in rows[0]:  # of a processor of images: one row
            of_prompt = rows[0]["attention_mask"]
            arguments["attention_mask"] = torch.cat([of_prompt, torch.ones_like(answer)], dim=1)
        firsts = torch.tensor([row["input_ids"].shape[1] - 1 for row in rows], device=self.device)
        n_read = arguments["input_ids"].shape[1]
        if "logits_to_keep" in self._parameters:
            arguments["logits_to_keep"] = n_read - int(firsts.min())
        if "use_cache" in self._parameters:
            arguments["use_cache"] = False
        arguments = {**rows[0], **arguments}
        if self._prefixes is not None and len(rows[0]) == 1:
            logits = self._prefixes.logits(arguments, int(firsts.min()))
        else:
            logits = self.model(**arguments).logits
        if logits.dim() == 4:  # with a dimension of length 1, as in Llama 4
            logits = logits[:, 0]
        steps = torch.arange(len(tokens), device=logits.device)
        at = firsts.to(logits.device)[:, None] + steps - (n_read - logits.shape[1])
        chosen: Tensor = logits[torch.arange(len(rows), device=logits.device)[:, None], at]
        return chosen if chosen.dtype == torch.float64 else chosen.float()


_FEWEST_TOKENS = 16
"""Fewer tokens than these are read with each prompt: a pass of their own would take as long."""

_MOST_BYTES = 2**30
"""Memory of what is kept for the prompts of one pass; with more, each prompt is read whole."""


@dataclass
class PrefixCache:
    """What a model keeps of the tokens with which many prompts begin.

    Whether a model may go on from what it has kept is decided by its numbers: two prompts are read
    in both ways, and logits that differ by more than rounding rule it out. Nothing is kept from one
    pass to the next, between which the user may change the weights.

    Attributes
    ----------
    model : torch.nn.Module
        The model, which takes `past_key_values`.
    rounding : float
        The relative rounding error of its numbers.
    """

    model: Any
    rounding: float
    _is_right: bool | None = field(default=None, init=False)

    def logits(self, arguments: dict[str, Any], limit: int) -> Tensor:
        """Return the logits of one pass.

        Parameters
        ----------
        arguments : dict
            Those of the model: tokens (P, L) with their mask, padded on the right.
        limit : int
            The first position whose logits are asked for, which is read with each prompt.
        """
        ids = arguments["input_ids"]
        differs = (ids != ids[:1]).any(dim=0)
        n_equal = int(differs.int().argmax()) if bool(differs.any()) else ids.shape[1]
        n_shared = min(n_equal, limit)
        if self._is_right is False or len(ids) == 1 or n_shared < _FEWEST_TOKENS:
            return self._whole(arguments)
        if self._is_right is None:
            first_rows = {**arguments, "input_ids": ids[:2]}
            first_rows["attention_mask"] = arguments["attention_mask"][:2]
            self._is_right = self._goes_on(first_rows, n_shared)
        found = self._continued(arguments, n_shared) if self._is_right else None
        return self._whole(arguments) if found is None else found

    def _goes_on(self, arguments: dict[str, Any], n_shared: int) -> bool | None:
        """Return whether both ways give the same logits; None if that was not tried."""
        found = self._continued(arguments, n_shared)
        if found is None:
            return None
        whole = self._whole(arguments)
        n_common = min(whole.shape[1], found.shape[1])
        is_read = arguments["attention_mask"][:, -n_common:, None].bool()
        differences = (whole[:, -n_common:] - found[:, -n_common:]).abs() * is_read
        return bool(differences.max() <= self.rounding**0.5 * whole.abs().max())

    def _whole(self, arguments: dict[str, Any]) -> Tensor:
        return self.model(**arguments).logits

    def _continued(self, arguments: dict[str, Any], n_shared: int) -> Tensor | None:
        """Return the logits behind the shared tokens; None where the model keeps too much."""
        ids = arguments["input_ids"]
        kept = self.model(input_ids=ids[:1, :n_shared], use_cache=True).past_key_values
        if not hasattr(kept, "batch_repeat_interleave"):
            return None
        if _n_bytes(kept) * len(ids) * ids.shape[1] / n_shared > _MOST_BYTES:
            return None
        rest = {**arguments, "input_ids": ids[:, n_shared:], "use_cache": True}
        return self.model(**rest, past_key_values=_repeated(kept, len(ids))).logits


def _repeated(kept: Any, count: int) -> Any:
    """Return a copy for `count` prompts, to which the model may add."""
    twin = copy.deepcopy(kept)
    twin.batch_repeat_interleave(count)
    return twin


def _n_bytes(kept: Any) -> int:
    """Return the memory that tensors of a cache take."""
    if isinstance(kept, Tensor):
        return kept.nbytes
    if isinstance(kept, (tuple, list)):
        return sum(map(_n_bytes, kept))
    return sum(map(_n_bytes, vars(kept).values())) if hasattr(kept, "__dict__") else 0
