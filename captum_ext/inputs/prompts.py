"""Prompts of language models with parts to explain."""

from __future__ import annotations

import copy
import itertools
import math
from typing import Any

import captum.attr
import numpy as np
import torch
from torch import Tensor

from shapley_adapters.array_types import IntArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

_MOST_CASES = 64
"""Cases of random baselines that are evaluated one by one."""


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
    if callable(baselines := getattr(inp, "baselines", None)):
        _check_drawn(baselines, inp)
    for index, mask in enumerate(getattr(inp, "mask_list", None) or ()):
        if not mask.any():
            raise InvalidArgumentError(f"inp.mask_list[{index}] has no pixels. Leave it out.")


def players_of_parts(inp: Any, feature_mask: Tensor | None) -> IntArray:
    """Return the player of each text that captum shows for a prompt, (N,)."""
    players = np.arange(inp.n_itp_features)
    if feature_mask is not None:
        ids = feature_mask.reshape(-1).cpu().numpy()
        players = np.unique(ids, return_inverse=True)[1].reshape(-1)
    of_texts = inp.format_attr(torch.from_numpy(players)[None])  # slots of a template in groups
    return np.asarray(of_texts[0].numpy(), dtype=np.intp)


def _check_drawn(baselines: Any, inp: Any) -> None:
    """Refuse a function of baselines whose result does not fit the parts of a template."""
    names, n_parts = inp.dict_keys, len(inp.values)
    if isinstance(baselines, captum.attr.ProductBaselines):
        lists = baselines.baseline_values
        for index, values in enumerate(lists):
            if len(values) == 0:
                raise InvalidArgumentError(f"baselines: list {index} holds no value. Add one.")
        drawn: Any = [values[0] for values in lists]
        if baselines.dict_keys:
            drawn = baselines()
    else:
        drawn = baselines()
    missing: Any
    if names:
        missing = [name for name in names if not isinstance(drawn, dict) or name not in drawn]
        wanted = f"a dict with a text for each of {str(names)[1:-1]}, the names in the template"
        came = f"a {type(drawn).__name__} without {str(missing)[1:-1]}"
    else:
        missing = not isinstance(drawn, list) or len(drawn) != n_parts
        wanted = f"a list of {n_parts} texts, one for each part of the template"
        n_values = f" of {len(drawn)} values" if isinstance(drawn, list) else ""
        came = f"a {type(drawn).__name__}{n_values} for {n_parts} parts"
    if missing:
        raise InvalidArgumentError(f"baselines must return {wanted}; it returned {came}.")


def inputs_of_cases(inp: Any) -> list[Any]:
    """Return the prompt with the baselines of each case, if these are drawn from few cases.

    `ProductBaselines` draws a value of each of some lists. Other prompts are returned as they are.
    """
    baselines = getattr(inp, "baselines", None)
    if not isinstance(baselines, captum.attr.ProductBaselines):
        return [inp]
    lists = baselines.baseline_values
    if not 0 < math.prod(map(len, lists)) <= _MOST_CASES:
        return [inp]
    cases = []
    for drawn in itertools.product(*lists):
        values: Any = list(drawn)
        if baselines.dict_keys:
            by_name: dict[str, Any] = {}
            for name, value in zip(baselines.dict_keys, drawn, strict=True):
                names, parts = (name, value) if isinstance(name, tuple) else ([name], [value])
                by_name.update(zip(names, parts, strict=True))
            values = [by_name[name] for name in inp.dict_keys]
        case = copy.copy(inp)
        case.baselines = values
        cases.append(case)
    return cases
