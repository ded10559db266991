"""Further arguments of the forward function: their entries per example, and copies of them."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shapley_adapters.array_types import IntArray
from shapley_adapters.errors import InvalidArgumentError

from .checks import no_tensor

_INDEX_TYPES = (torch.int64, torch.int32)


@dataclass(frozen=True, eq=False)
class Shared:
    """An argument of the forward function that is the same for all examples.

    The forward function gets `value` unchanged, for any shape. Without this mark, captum's
    convention applies: a tensor whose first dimension is the number of examples has one entry per
    example. With two examples, the edges of a graph, (2, E), would be such a tensor.

    Parameters
    ----------
    value : any
        The argument.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Exact, Shared
    >>> def forward(x, edge_index):  # the products over the edges, summed
    ...     sources, targets = edge_index
    ...     return (x[:, sources] * x[:, targets]).sum(1)
    >>> edge_index = torch.tensor([[0, 1], [1, 2]])
    >>> x = torch.tensor([[1.0, 2.0, 3.0], [1.0, 1.0, 1.0]])
    >>> Exact(forward).attribute(x, additional_forward_args=Shared(edge_index))
    tensor([[1.0000, 4.0000, 3.0000],
            [0.5000, 1.0000, 0.5000]])
    """

    value: Any


class PerExample(Tensor):
    """An argument of the forward function with one entry for each example.

    Each masked copy of an example is evaluated with the entry of the example. Plain tensors whose
    first dimension is the number of examples are treated in the same way. The mark is required for
    two kinds of tensors: whole numbers of shape (2, L) with two examples, whose columns could be
    the edges of a graph; and tensors within lists, tuples and dicts.

    Parameters
    ----------
    values : Tensor
        One entry per example, along the first dimension.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Exact, PerExample
    >>> x, order = torch.tensor([[1.0, 2.0, 0.0], [3.0, 4.0, 1.0]]), [[0, 1, 2], [2, 0, 1]]
    >>> Exact(lambda x, order: x.gather(1, order) @ torch.tensor([1.0, 2.0, 3.0])).attribute(
    ...     x, additional_forward_args=PerExample(torch.tensor(order))
    ... )
    tensor([[ 1.,  4.,  0.],
            [ 6., 12.,  1.]])
    """

    @staticmethod
    def __new__(cls, values: Tensor) -> PerExample:
        """Mark a tensor; its numbers are shared, not copied."""
        if not isinstance(values, Tensor):
            raise no_tensor("values", values)
        if values.dim() == 0:
            raise InvalidArgumentError(
                "values has no dimensions; the first one must count the examples."
            )
        return values.as_subclass(cls)

    def __deepcopy__(self, memo: dict[int, Any]) -> PerExample:
        """Copy the entries; captum's metrics copy their arguments."""
        return type(self)(copy.deepcopy(self.as_subclass(Tensor), memo))


def checked_additional(additional: object, inputs: tuple[Tensor, ...]) -> tuple[Any, ...]:
    """Return `additional_forward_args` as a tuple.

    Raises
    ------
    InvalidArgumentError
        If it is unclear whether a tensor has entries per example, or if the number of entries is
        not the number of examples.
    """
    arguments, n_examples = as_tuple(additional), len(inputs[0])
    max_nodes = max(size for tensor in inputs for size in (0, *tensor.shape[1:]))
    for index, argument in enumerate(arguments):
        name = f"additional_forward_args[{index}]"
        if _may_be_edges(argument, n_examples, max_nodes):
            raise InvalidArgumentError(
                f"{name} has whole numbers of shape {tuple(argument.shape)}, and there are "
                f"{n_examples} examples. It may be the edges of a graph, or have one row per "
                "example; captum's NoiseTunnel and metrics repeat such rows. Pass "
                "captum_ext.Shared(edge_index) for edges, or captum_ext.PerExample(rows)."
            )
        for part in _parts(argument):
            if isinstance(part, PerExample) and len(part) != n_examples:
                raise InvalidArgumentError(
                    f"{name} is marked PerExample and has {len(part)} entries, but there are "
                    f"{n_examples} examples."
                )
    return arguments


def arguments_of_rows(
    arguments: tuple[Any, ...], rows: IntArray, n_examples: int
) -> tuple[Any, ...]:
    """Return the further arguments for masked copies of the examples `rows`.

    Tensors and arrays are copies: the forward function may write into them.
    """
    return tuple(
        argument[rows]
        if _is_unmarked(argument) and argument.shape[:1] == (n_examples,)
        else _argument_rows(argument, rows)
        for argument in arguments
    )


def entries_of_examples(arguments: tuple[Any, ...], n_examples: int) -> list[Tensor]:
    """Return the tensors among the further arguments with one entry per example, or one for all."""
    lengths = (n_examples,), (1,)
    plain = [
        argument
        for argument in arguments
        if _is_unmarked(argument) and argument.shape[:1] in lengths
    ]
    per_example = [
        argument for argument in _parts(list(arguments)) if isinstance(argument, PerExample)
    ]
    return [*plain, *(argument.as_subclass(Tensor) for argument in per_example)]


def as_tuple(additional: object) -> tuple[Any, ...]:
    """Return `additional_forward_args` as a tuple, empty for None."""
    if additional is None:
        return ()
    return additional if isinstance(additional, tuple) else (additional,)


def shared_arguments_only(additional: object, n_examples: int) -> tuple[Any, ...]:
    """Return `additional_forward_args`, marked as the same for all examples.

    For calls that explain other rows than the examples: a tensor does not belong to these rows just
    because its number of entries is the number of rows.

    Raises
    ------
    InvalidArgumentError
        If an argument has one entry per example, or may have, without a mark.
    """
    arguments = as_tuple(additional)
    for index, argument in enumerate(arguments):
        name = f"additional_forward_args[{index}]"
        is_alike = _is_unmarked(argument) and argument.shape[:1] == (n_examples,) != (1,)
        if is_alike or any(isinstance(part, PerExample) for part in _parts(argument)):
            raise InvalidArgumentError(
                f"{name} has a row for each of the {n_examples} examples, but rows other than "
                "these are explained. Pass one row for all examples; or, if the argument is the "
                "same for all examples, mark it by captum_ext.Shared."
            )
    return tuple(Shared(part) if _is_unmarked(part) else part for part in arguments)


def are_marked(additional: object) -> bool:
    """Return whether an argument holds `Shared` or `PerExample`."""
    return any(isinstance(part, (Shared, PerExample)) for part in _parts(additional))


def unmarked(argument: object) -> Any:
    """Return arguments without their marks, for the forward function."""
    if isinstance(argument, Shared):
        return argument.value
    if isinstance(argument, PerExample):
        return argument.as_subclass(Tensor)
    return _mapped(unmarked, argument)


def copied(argument: object) -> Any:
    """Copy tensors and arrays, also within lists, tuples and dicts; return other things as is."""
    if isinstance(argument, Tensor):
        return argument.detach().clone().requires_grad_(argument.requires_grad)
    if isinstance(argument, np.ndarray):
        return argument.copy()
    return _mapped(copied, argument)


def _argument_rows(argument: object, rows: IntArray) -> Any:
    """Return an argument for rows: marked parts by their marks, copies of all others."""
    if isinstance(argument, PerExample):
        return argument.as_subclass(Tensor)[rows]
    if isinstance(argument, (Shared, Tensor, np.ndarray)):
        value = copied(argument.value if isinstance(argument, Shared) else argument)
        if isinstance(value, Tensor):  # which a RemoteModel does not divide
            value.is_for_all_rows = True  # type: ignore[attr-defined] # of its own
        return value
    return _mapped(lambda part: _argument_rows(part, rows), argument)


def _mapped(function: Callable[[Any], Any], argument: Any) -> Any:
    """Apply a function to the parts of a plain list, tuple or dict; return other things as is."""
    if type(argument) in (list, tuple):
        return type(argument)(map(function, argument))
    if type(argument) is dict:
        return {name: function(part) for name, part in argument.items()}
    return argument


def _parts(argument: Any) -> Iterator[Any]:
    """Yield an argument and all parts of plain lists, tuples and dicts."""
    yield argument
    if type(argument) in (list, tuple, dict):
        for part in argument.values() if type(argument) is dict else argument:
            yield from _parts(part)


def _is_unmarked(argument: object) -> bool:
    return isinstance(argument, Tensor) and not isinstance(argument, PerExample)


def _may_be_edges(argument: Any, n_examples: int, max_nodes: int) -> bool:
    """Return whether a tensor may be the edges of a graph, (2, E), or have one row per example.

    NoiseTunnel and captum's metrics repeat each example and each row of such a tensor. Hence a
    tensor of two different halves, each with equal rows, may also be edges.
    """
    if not _is_unmarked(argument) or argument.dtype not in _INDEX_TYPES or argument.dim() != 2:
        return False
    n_repeats, odd = divmod(len(argument), 2)
    if odd or n_repeats == 0 or n_examples % n_repeats:
        return False
    if n_repeats == 1 and n_examples != 2:
        return False
    pair = argument[::n_repeats]
    return torch.equal(argument, pair.repeat_interleave(n_repeats, 0)) and _are_edges(
        pair, max_nodes
    )


def _are_edges(pair: Tensor, max_nodes: int) -> bool:
    """Return whether the columns of whole numbers, (2, L), could be the edges of a graph.

    Edges are different pairs of nodes, not all of them loops. Attention masks and types of tokens
    hold only 0 and 1 or repeat a column; positions are equal in both rows; most ids of tokens
    exceed the number of nodes.
    """
    if pair.numel() == 0 or not 1 < int(pair.max()) < max_nodes or int(pair.min()) < 0:
        return False
    is_repeated = len(torch.unique(pair, dim=1)[0]) < pair.shape[1]
    return not is_repeated and not torch.equal(pair[0], pair[1])
