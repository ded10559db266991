"""Batches of a stream: their inputs, and other arguments with one entry per row."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
from torch import Tensor

from shapley_adapters.arguments import checked_choice
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError
from shapley_adapters.frames import pandas_frame, with_floats
from shapley_adapters.row_sources import Block, batches_of, is_arrow, is_sliced, slices_of

from .baselines import BaselineDistribution
from .forward_arguments import PerExample, Shared, as_tuple

ROLES = (
    "inputs",
    "baselines",
    "target",
    "additional_forward_args",
    "feature_mask",
    "unused",
)
"""Roles of a part of a batch: an argument of `attribute`, or `"unused"`."""


@dataclass
class StreamedRows:
    """The parts of the batches of a stream.

    Attributes
    ----------
    rows : object
        The source.
    roles : sequence of str, optional
        The role of each part of a batch; all are inputs where None.
    batched : bool
        Whether items are batches, not single rows.
    is_tuple : bool
        Whether the inputs of a batch are a tuple, known after the first one.
    """

    rows: Any
    roles: Sequence[str] | None = None
    batched: bool = True
    is_tuple: bool = False

    def __post_init__(self) -> None:
        if self.roles is None:
            return
        if isinstance(self.roles, str) or "inputs" not in self.roles:
            raise InvalidArgumentError(
                f"roles must be a list with 'inputs' among its entries; got {self.roles!r}."
            )
        for role in self.roles:
            checked_choice("roles", role, ROLES)
        self.is_tuple = list(self.roles).count("inputs") > 1

    def blocks(self, size: int) -> Iterator[Block]:
        """Yield the needed parts of the batches as tensors."""
        are_tables = isinstance(self.rows, tuple) and all(map(is_sliced, self.rows))
        if are_tables:
            items: Any = zip(*(slices_of(part, size) for part in self.rows), strict=True)
        else:
            items = batches_of(self.rows, size)
        for item in items:
            parts = self._parts(item)
            roles = ["inputs"] * len(parts) if self.roles is None else self.roles
            pairs = zip(parts, roles, strict=True)
            tensors = tuple(_tensor(part) for part, role in pairs if role != "unused")
            yield tensors if self.batched else tuple(tensor[None] for tensor in tensors)

    def arguments(self, block: Block) -> dict[str, Any]:
        """Return the arguments of `attribute` that the parts of a block are."""
        roles = ["inputs"] * len(block) if self.roles is None else self.roles
        needed = [role for role in roles if role != "unused"]
        of_role: dict[str, Any] = {}
        for part, role in zip(block, needed, strict=True):
            of_role[role] = (*of_role.get(role, ()), part)
        arguments = {
            role: parts[0] if len(parts) == 1 else parts for role, parts in of_role.items()
        }
        if self.is_tuple:
            arguments["inputs"] = of_role["inputs"]
        if "additional_forward_args" in of_role:
            per_example = tuple(map(PerExample, of_role["additional_forward_args"]))
            arguments["additional_forward_args"] = per_example
        if "target" in of_role:
            (targets,) = of_role["target"]
            if targets.dim() > 1:  # where outputs have several dimensions
                targets = [tuple(row) for row in targets.tolist()]
            arguments["target"] = targets
        return arguments

    def _parts(self, item: Any) -> tuple[Any, ...]:
        """Return the parts of a batch, and check that their roles are known."""
        parts = tuple(item) if isinstance(item, (list, tuple)) else (item,)
        if self.roles is None:
            if isinstance(item, list) and len(item) > 1:
                raise InvalidArgumentError(
                    f"rows: a batch is a list with {len(item)} parts, such as inputs and labels. "
                    "Name their roles, for example roles=('inputs', 'unused') or "
                    "roles=('inputs', 'target')."
                )
            self.is_tuple = isinstance(item, tuple)
        elif len(parts) != len(self.roles):
            raise InvalidArgumentError(
                f"roles names {len(self.roles)} parts of a batch; the batches have {len(parts)}."
            )
        return parts


def check_shared(arguments: Mapping[str, Any], roles: Sequence[str] | None) -> None:
    """Refuse arguments whose meaning would depend on the number of rows in a chunk."""
    for name in ("baselines", "target", "feature_mask"):
        if arguments[name] is not None and name in (roles or ()):
            raise InvalidArgumentError(f"{name} is given twice: as an argument, and in roles.")
    for value in as_tuple(arguments["baselines"]):
        if _n_entries(value) > 1 and not isinstance(value, BaselineDistribution):
            raise InvalidArgumentError(
                f"baselines has {_n_entries(value)} rows, which may be a distribution or one "
                "baseline for each row. Mark a distribution by captum_ext.BaselineDistribution, or "
                "pass batches that hold the baselines, with 'baselines' in roles."
            )
    if isinstance(arguments["target"], list) or _n_entries(arguments["target"]) > 1:
        raise InvalidArgumentError(
            "target has an entry for each row, but a stream is explained in chunks. Pass one "
            "target for all rows, or batches that hold the targets, with 'target' in roles."
        )
    for value in as_tuple(arguments["feature_mask"]):
        if _n_entries(value) > 1:
            raise InvalidArgumentError(
                f"feature_mask has {_n_entries(value)} rows. Pass one row for all, or batches that "
                "hold the masks, with 'feature_mask' in roles."
            )
    for value in as_tuple(arguments["additional_forward_args"]):
        if isinstance(value, PerExample) or (isinstance(value, Tensor) and value.dim() > 0):
            raise InvalidArgumentError(
                "additional_forward_args holds a tensor, which may be the same for all rows or "
                "have an entry for each. Mark it by captum_ext.Shared, or pass batches that hold "
                "it, with 'additional_forward_args' in roles."
            )


def identity_of(arguments: Mapping[str, Any]) -> dict[str, Any]:
    """Return the arguments with marked ones replaced by their values, which identify them."""
    plain = dict(arguments)
    additional = as_tuple(arguments["additional_forward_args"])
    plain["additional_forward_args"] = [
        value.value if isinstance(value, Shared) else value for value in additional
    ]
    return plain


def _tensor(part: Any) -> Tensor:
    """Return rows as a tensor of their own type."""
    if isinstance(part, Tensor):
        return part
    part = part.to_pandas() if is_arrow(part) else pandas_frame(part, "rows")
    if isinstance(part, pd.DataFrame):
        part = with_floats(part).to_numpy()
    if not isinstance(part, (np.ndarray, np.number)) or part.dtype.kind not in "biuf":
        raise InvalidArgumentTypeError(
            f"rows: a batch must be a tensor, or an array or table of numbers; got "
            f"{type(part).__name__}."
        )
    return torch.from_numpy(np.array(part))  # a copy, because memory maps are read-only


def _n_entries(value: Any) -> int:
    """Return the length of the first dimension of a tensor; 0 for all else."""
    return len(value) if isinstance(value, Tensor) and value.dim() > 0 else 0
