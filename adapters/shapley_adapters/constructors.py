"""Constructors of the public classes, made from annotated attributes as in a dataclass.

A class defines only the options that it does not share, as annotated attributes with defaults. The
shared options are fields of its base class.
"""

from __future__ import annotations

import difflib
import functools
import inspect
import re
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from typing import TYPE_CHECKING, Any, TypeVar, dataclass_transform

from .errors import InvalidArgumentTypeError

KindT = TypeVar("KindT", bound=type)
ObjectT = TypeVar("ObjectT")

if TYPE_CHECKING:
    default = property
else:

    def default(value_of):
        """Return the value of a property of all classes: some may have an attribute of it."""
        return value_of(None)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def write_constructor(kind: KindT) -> KindT:
    """Decorate a class: make its `__init__` from its fields, as `dataclasses.dataclass` does.

    Fields are keyword-only, except those with `field(kw_only=False)`. Checks belong in
    `__post_init__`. The errors say more than those of a dataclass: for an unknown argument they
    list similar names, and for arguments by position the names to use.

    A class may have a class method `_completed_options`. It gets the arguments that the caller
    passed by name, and returns them with further ones. It thus knows an argument that was passed,
    even with its default value, from one that was left out.
    """
    dataclass(eq=False, repr=False, kw_only=True)(kind)
    vars_of_kind: Any = kind
    vars_of_kind.__init__ = _checking_names(vars_of_kind.__init__)
    return kind


def fill_docstring(kind: KindT, **texts: str) -> KindT:
    """Replace names in braces in a docstring by texts that several classes share.

    The lines of the texts are indented as in a class. Python 3.13 removes the indentation of
    docstrings and older versions do not, so this function removes it.
    """
    # Under `python -OO` there are no docstrings to complete.
    docstring = inspect.cleandoc(kind.__doc__ or "")
    for name, text in texts.items():
        docstring = docstring.replace(f"{{{name}}}", text.replace("\n    ", "\n"))
    kind.__doc__ = docstring
    return kind


def docstring_sections(owner: Any) -> dict[str, str]:
    """Return the sections of a docstring by title; what comes before them has none."""
    text = inspect.cleandoc(owner.__doc__ or "")  # empty under `python -OO`
    first, *others = re.split(r"^(\w[\w ]*)\n-{3,}\n", text, flags=re.MULTILINE)
    named = zip(others[::2], others[1::2], strict=True)
    return {"": first.strip()} | {title: section.strip() for title, section in named}


def indented_sections(owner: Any) -> defaultdict[str, str]:
    """Return the sections of a docstring, indented for `fill_docstring`; others are empty."""
    sections = docstring_sections(owner).items()
    return defaultdict(str, {title: text.replace("\n", "\n    ") for title, text in sections})


def docstring_of(sections: Mapping[str, str]) -> str:
    """Return the docstring of sections, by title; those without text are left out."""
    return "\n\n".join(
        f"{title}\n{'-' * len(title)}\n{section}" if title else section
        for title, section in sections.items()
        if section
    )


def merged_docstring(owners: Sequence[Any], shared: Sequence[str], examples: str = "") -> str:
    """Return the sections of several docstrings; `shared` begins the parameters.

    The lines of shared texts are indented as in a class.
    """
    parameters = "\n".join(shared).replace("\n    ", "\n")
    merged = {"": "", "Parameters": parameters}
    for owner in owners:
        for title, section in docstring_sections(owner).items():
            between = "\n" if title == "Parameters" else "\n\n"
            merged[title] = f"{merged.get(title, '')}{between}{section}".strip()
    if examples:
        merged.setdefault("Examples", examples)
    return docstring_of(merged)


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(field,))
def options_of(core: Any, *shared: str) -> Callable[[KindT], KindT]:
    """Decorate a class of a host: give it the options and the docstring of a class of the core.

    Its docstring, of what holds for this host alone, follows that of the core, section by section.
    `with_options_of` returns the object of the core.

    Parameters
    ----------
    core : type
        A dataclass of options.
    *shared : str
        What the host says of further parameters.
    """

    def decorate(kind: KindT) -> KindT:
        host_class: Any = kind
        annotations = {option.name: option.type for option in fields(core)}
        for option in fields(core):
            setattr(kind, option.name, option.default)
        host_class.__annotations__ = annotations | inspect.get_annotations(kind)
        host_class._kind, host_class._option_names = core, tuple(annotations)
        kind.__doc__ = merged_docstring((core, kind), shared)
        return write_constructor(kind)

    return decorate


def with_options_of(kind: type[ObjectT], owner: object) -> ObjectT:
    """Return an object of a dataclass whose options are attributes of another object."""
    options: Any = fields(kind)  # type: ignore[arg-type] # of a dataclass
    return kind(**{option.name: getattr(owner, option.name) for option in options})


def _checking_names(constructor: Callable[..., None]) -> Callable[..., None]:
    """Return an `__init__` that refuses names and positions that `constructor` does not have."""
    parameters = dict(inspect.signature(constructor).parameters)
    del parameters["self"]

    @functools.wraps(constructor)
    def __init__(self: Any, *args: Any, **options: Any) -> None:  # noqa: N807
        kind = type(self).__name__
        _refuse_positions(kind, len(args), parameters)
        for name in options:
            _refuse_unknown(kind, name, parameters)
        complete = getattr(type(self), "_completed_options", None)
        constructor(self, *args, **(options if complete is None else complete(options)))

    return __init__


def _refuse_positions(kind: str, n_given: int, parameters: Mapping[str, inspect.Parameter]) -> None:
    by_name = [
        name for name, parameter in parameters.items() if parameter.kind is parameter.KEYWORD_ONLY
    ]
    by_position = [name for name in parameters if name not in by_name]
    if n_given > len(by_position):
        raise InvalidArgumentTypeError(
            f"{kind} takes at most {len(by_position)} arguments by position "
            f"({', '.join(by_position)}); got {n_given}. Pass the others by name: "
            f"{', '.join(by_name)}."
        )


_NEW_NAMES = {
    "data": "The background is masker=.",
    "nsamples": "The budget is an argument of the call: explainer(X, max_evals=…).",
    "l1_reg": "All features are estimated: leave it out.",
    "keep_index": "A DataFrame as masker keeps names and types of the columns: leave it out.",
    "keep_index_ordered": "Leave it out.",
}
"""What the arguments of shap's KernelExplainer are called here."""


def _refuse_unknown(kind: str, name: str, parameters: Mapping[str, inspect.Parameter]) -> None:
    if name in parameters:
        return
    similar = difflib.get_close_matches(name, parameters)
    hint = f"Did you mean {' or '.join(similar)}? " if similar else ""
    if name in _NEW_NAMES and "masker" in parameters:
        hint = f"{_NEW_NAMES[name]} "
    raise InvalidArgumentTypeError(
        f"{kind} has no argument {name!r}. {hint}Its arguments are {', '.join(parameters)}."
    )
