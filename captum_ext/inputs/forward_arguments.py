"""Further arguments of the forward function: which of them belong to examples, and copies."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from torch import Tensor

from shapley_adapters.array_types import IntArray
from shapley_adapters.errors import InvalidArgumentError, InvalidArgumentTypeError

_INDEX_TYPES = (torch.int64, torch.int32)


@dataclass(frozen=True, eq=False)
class Shared:
    """An argument of the forward function that is the same for all examples.

    The forward function gets `value` as it is, whatever its shape. Without the mark, captum's
    convention holds: a tensor whose first dimension is the number of examples has an entry for
    each example. The edges of a graph, (2, E), look the same where there are two examples.

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

    Each masked copy of an example goes with the entry of the example. Plain tensors whose first
    dimension is the number of examples are taken so, too, except whole numbers of shape (2, L)
    with two examples, which may be the edges of a graph. Needed for these, and for tensors within
    lists, tuples and dicts.

    Parameters
    ----------
    values : Tensor
        The first dimension counts the examples.

    Examples
    --------
    >>> import torch
    >>> from captum_ext import Exact, PerExample
    >>> x, mask = torch.tensor([[1.0, 2.0], [3.0, 4.0]]), torch.tensor([[1, 0], [1, 1]])
    >>> Exact(lambda x, mask: (x * mask).sum(1)).attribute(
    ...     x, additional_forward_args=PerExample(mask)
    ... )
    tensor([[1., 0.],
            [3., 4.]])
    """

    @staticmethod
    def __new__(cls, values: Tensor) -> PerExample:
        """Mark a tensor; its numbers are shared, not copied."""
        if not isinstance(values, Tensor):
            raise InvalidArgumentTypeError(
                f"values must be a tensor; got {type(values).__name__}. Convert it with "
                "torch.as_tensor."
            )
        if values.dim() == 0:
            raise InvalidArgumentError(
                "values has no dimensions; the first one must count the examples."
            )
        marked: PerExample = values.as_subclass(cls)
        return marked

    def __deepcopy__(self, memo: dict[int, Any]) -> PerExample:
        """Copy the entries; captum's metrics copy their arguments."""
        return type(self)(copy.deepcopy(self.as_subclass(Tensor), memo))


def checked_additional(additional: object, n_examples: int) -> tuple[Any, ...]:
    """Return `additional_forward_args` as a tuple.

    Raises
    ------
    InvalidArgumentError
        If a tensor may belong to the examples or not, or has not as many entries as there are
        examples.
    """
    arguments = as_tuple(additional)
    for index, argument in enumerate(arguments):
        name = f"additional_forward_args[{index}]"
        if _may_be_edges(argument, n_examples):
            raise InvalidArgumentError(
                f"{name} holds whole numbers of shape {tuple(argument.shape)}, with {n_examples} "
                "examples: it may be the edges of a graph, whose rows captum's NoiseTunnel and "
                "metrics repeat, or hold a row for each example. Pass "
                "captum_ext.Shared(edge_index) for edges, or captum_ext.PerExample(rows)."
            )
        _check_lengths(name, argument, n_examples)
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
        else _of_rows(argument, rows)
        for argument in arguments
    )


def entries_of_examples(arguments: tuple[Any, ...], n_examples: int) -> list[Tensor]:
    """Return the tensors among the further arguments with an entry for each example, or one."""
    lengths = (n_examples,), (1,)
    plain = [one for one in arguments if _is_unmarked(one) and one.shape[:1] in lengths]
    marked = [one for one in _parts(list(arguments)) if isinstance(one, PerExample)]
    return [*plain, *(one.as_subclass(Tensor) for one in marked)]


def as_tuple(additional: object) -> tuple[Any, ...]:
    """Return `additional_forward_args` as a tuple, empty for None."""
    if additional is None:
        return ()
    return additional if isinstance(additional, tuple) else (additional,)


def shared_arguments_only(additional: object, n_examples: int) -> tuple[Any, ...]:
    """Return `additional_forward_args`, marked as the same for all examples.

    For calls that explain other rows than the examples: a tensor must not be taken for theirs
    because it happens to have as many entries as there are rows.

    Raises
    ------
    InvalidArgumentError
        If one belongs to the examples, or looks so and is not marked.
    """
    arguments = as_tuple(additional)
    for index, argument in enumerate(arguments):
        name = f"additional_forward_args[{index}]"
        is_alike = _is_unmarked(argument) and argument.shape[:1] == (n_examples,) != (1,)
        if is_alike or any(isinstance(one, PerExample) for one in _parts(argument)):
            raise InvalidArgumentError(
                f"{name} has a row for each of the {n_examples} examples, but rows other than "
                "these are explained. Pass one row for all; or mark what is the same for all "
                "examples, as captum_ext.Shared(edge_index)."
            )
    return tuple(Shared(one) if _is_unmarked(one) else one for one in arguments)


def are_marked(additional: object) -> bool:
    """Tell whether an argument holds `Shared` or `PerExample`."""
    return any(isinstance(one, (Shared, PerExample)) for one in _parts(additional))


def unmarked(given: object) -> Any:
    """Return arguments without their marks, as the forward function takes them."""
    if isinstance(given, Shared):
        return given.value
    if isinstance(given, PerExample):
        return given.as_subclass(Tensor)
    return _mapped(unmarked, given)


def copied(given: object) -> Any:
    """Copy tensors and arrays, also within lists, tuples and dicts; return other things as is."""
    if isinstance(given, Tensor):
        return given.detach().clone().requires_grad_(given.requires_grad)
    if isinstance(given, np.ndarray):
        return given.copy()
    return _mapped(copied, given)


def _of_rows(argument: object, rows: IntArray) -> Any:
    """Return an argument for rows: marked parts by their marks, copies of all others."""
    if isinstance(argument, Shared):
        return copied(argument.value)
    if isinstance(argument, PerExample):
        return argument.as_subclass(Tensor)[rows]
    if isinstance(argument, (Tensor, np.ndarray)):
        return copied(argument)
    return _mapped(lambda part: _of_rows(part, rows), argument)


def _mapped(function: Callable[[Any], Any], given: Any) -> Any:
    """Apply a function to the parts of a plain list, tuple or dict; return other things as is."""
    if type(given) in (list, tuple):
        return type(given)(map(function, given))
    if type(given) is dict:
        return {name: function(part) for name, part in given.items()}
    return given


def _parts(given: Any) -> Iterator[Any]:
    """Go through an argument and all parts of plain lists, tuples and dicts."""
    yield given
    if type(given) in (list, tuple, dict):
        for part in given.values() if type(given) is dict else given:
            yield from _parts(part)


def _is_unmarked(argument: object) -> bool:
    return isinstance(argument, Tensor) and not isinstance(argument, PerExample)


def _may_be_edges(argument: Any, n_examples: int) -> bool:
    """Tell whether a tensor may be the edges of a graph, (2, E), and also rows of examples.

    NoiseTunnel and captum's metrics repeat examples and each row of such a tensor alike: one of
    two different halves, each of equal rows, may be edges, too.
    """
    if not _is_unmarked(argument) or argument.dtype not in _INDEX_TYPES or argument.dim() != 2:
        return False
    n_repeats, odd = divmod(len(argument), 2)
    if odd or n_repeats == 0 or n_examples % n_repeats:
        return False
    if n_repeats == 1:
        return n_examples == 2
    first, second = argument[0], argument[n_repeats]
    repeated = torch.stack([first, second]).repeat_interleave(n_repeats, dim=0)
    return torch.equal(argument, repeated) and not torch.equal(first, second)


def _check_lengths(name: str, argument: Any, n_examples: int) -> None:
    for part in _parts(argument):
        if isinstance(part, PerExample) and len(part) != n_examples:
            raise InvalidArgumentError(
                f"{name} is marked PerExample and has {len(part)} entries, but there are "
                f"{n_examples} examples."
            )
