"""Classes of the hosts that are made from the estimators of other packages."""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Collection, Mapping
from inspect import Parameter
from typing import Any

from ..constructors import write_constructor
from ..errors import InvalidArgumentError, InvalidArgumentTypeError
from .checked_results import with_checks

_METHODS = ("minimum_budget", "design", "solve")


class MadeFromEstimator(type):
    """The type of classes that are made from an estimator class, so that they can be pickled."""

    estimator_class: type[Any]


def class_from_estimator(
    kind: type[MadeFromEstimator],
    class_name: str,
    base: type[Any],
    estimator: type[Any],
    shared: Mapping[str, Any] | None = None,
) -> Any:
    """Return a class of a host whose options are those of an estimator class.

    Parameters
    ----------
    kind : type
        The type of the class, which defines how it is pickled.
    class_name : str
        Its name.
    base : type
        The host's class that it inherits from.
    estimator : type
        A class with the methods of `Estimator`, usually a frozen dataclass.
    shared : mapping, optional
        Options of the host's class, and their defaults, that come before those of the estimator.

    Raises
    ------
    InvalidArgumentTypeError
        If `estimator` is not the class of an estimator, or an option cannot be passed by name.
    InvalidArgumentError
        If an option has a name that the host's class uses.
    """
    shared = shared or {}
    options = _options(estimator, {*dir(base), *inspect.signature(base).parameters, *shared})

    def _estimator(self: Any) -> Any:
        given = {option.name: getattr(self, option.name) for option in options}
        return with_checks(estimator(**given))

    members = {
        "__module__": estimator.__module__,
        "__doc__": estimator.__doc__,
        "__annotations__": dict.fromkeys([*shared, *(option.name for option in options)], Any),
        **shared,
        **{option.name: _field(option, estimator) for option in options},
        "_estimator": _estimator,
        "estimator_class": estimator,
    }
    return write_constructor(kind(class_name, (base,), members))


def _field(option: Parameter, estimator: Any) -> Any:
    """Return the field of an option, with the estimator's default if there is one."""
    if dataclasses.is_dataclass(estimator):
        fields = {field.name: field for field in dataclasses.fields(estimator)}
        factory = fields[option.name].default_factory
        if factory is not dataclasses.MISSING:
            return dataclasses.field(default_factory=factory)
    if option.default is Parameter.empty:
        return dataclasses.field()
    return dataclasses.field(default=option.default)


def _options(estimator: Any, reserved: Collection[str]) -> list[Parameter]:
    """Return the options of an estimator class: the arguments of its constructor."""
    if not inspect.isclass(estimator):
        raise InvalidArgumentTypeError(
            f"estimator must be a class; got {estimator!r}. Pass the class itself, not an object."
        )
    missing = [name for name in _METHODS if not callable(getattr(estimator, name, None))]
    if missing:
        raise InvalidArgumentTypeError(
            f"{estimator.__name__} lacks {', '.join(missing)}. Inherit from "
            "shapley_adapters.estimators.Estimator and write these methods."
        )
    options = list(inspect.signature(estimator).parameters.values())
    for option in options:
        _check(option, estimator.__name__, reserved)
    return options


def _check(option: Parameter, owner: str, reserved: Collection[str]) -> None:
    if option.kind not in (Parameter.POSITIONAL_OR_KEYWORD, Parameter.KEYWORD_ONLY):
        raise InvalidArgumentTypeError(
            f"{owner} takes {option}, whose names are not known. Give each option a name, as a "
            "dataclass does."
        )
    if option.name in reserved:
        raise InvalidArgumentError(
            f"{owner} has an option {option.name!r}, a name that the host's class uses itself. "
            "Rename the option."
        )
