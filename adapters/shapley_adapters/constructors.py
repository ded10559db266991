"""Constructors of the classes that users build: written once, as the fields of a dataclass.

A class writes only its own options, as annotated attributes with their defaults. Those that it
shares with others are fields of its base class.
"""

from __future__ import annotations

import difflib
import functools
import inspect
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any, TypeVar

from .errors import InvalidArgumentTypeError

if TYPE_CHECKING:
    from typing_extensions import dataclass_transform
else:

    def dataclass_transform(**_: object):
        """Do nothing: only type checkers and editors read this mark, new in Python 3.11."""
        return lambda decorator: decorator


KindT = TypeVar("KindT", bound=type)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def write_constructor(kind: KindT) -> KindT:
    """Decorate a class: make its `__init__` of its fields, as `dataclasses.dataclass` does.

    Fields are keyword-only, but for those marked by `field(kw_only=False)`. Checks belong in
    `__post_init__`. Beyond a dataclass, an unknown argument is refused with the names that are
    near, and arguments by position with the names that must be written.
    """
    dataclass(eq=False, repr=False, kw_only=True)(kind)
    vars_of_kind: Any = kind
    vars_of_kind.__init__ = _checking_names(vars_of_kind.__init__)
    return kind


def fill_docstring(kind: KindT, **texts: str) -> KindT:
    """Put texts that several classes share where a docstring names them in braces.

    The lines of the texts are indented as in a class. Python 3.13 removes the indentation of
    docstrings, and older ones leave it, so all of it is removed here.
    """
    # Under `python -OO` there are no docstrings to complete.
    docstring = inspect.cleandoc(kind.__doc__ or "")
    for name, text in texts.items():
        docstring = docstring.replace(f"{{{name}}}", text.replace("\n    ", "\n"))
    kind.__doc__ = docstring
    return kind


def _checking_names(constructor: Callable[..., None]) -> Callable[..., None]:
    """Return an `__init__` that refuses names and positions which `constructor` does not take."""
    parameters = dict(inspect.signature(constructor).parameters)
    del parameters["self"]

    @functools.wraps(constructor)
    def __init__(self: Any, *args: Any, **options: Any) -> None:  # noqa: N807
        kind = type(self).__name__
        _refuse_positions(kind, len(args), parameters)
        for name in options:
            _refuse_unknown(kind, name, parameters)
        constructor(self, *args, **options)

    return __init__


def _refuse_positions(kind: str, n_given: int, parameters: Mapping[str, inspect.Parameter]) -> None:
    by_name = [name for name, one in parameters.items() if one.kind is one.KEYWORD_ONLY]
    by_position = [name for name in parameters if name not in by_name]
    if n_given > len(by_position):
        raise InvalidArgumentTypeError(
            f"{kind} takes at most {len(by_position)} arguments by position "
            f"({', '.join(by_position)}); got {n_given}. Pass the others by name: "
            f"{', '.join(by_name)}."
        )


def _refuse_unknown(kind: str, name: str, parameters: Mapping[str, inspect.Parameter]) -> None:
    if name in parameters:
        return
    near = difflib.get_close_matches(name, parameters)
    hint = f"Did you mean {' or '.join(near)}? " if near else ""
    raise InvalidArgumentTypeError(
        f"{kind} has no argument {name!r}. {hint}Its arguments are {', '.join(parameters)}."
    )
