"""Classes of the hosts, built from estimators: ours, and those of other packages.

An estimator is declared once, by its class: options, docstring and `Declaration`. The results of
estimators of other packages are checked.
"""

from __future__ import annotations

import copy
import copyreg
import dataclasses
import inspect
import numbers
from collections.abc import Callable, Collection, Mapping
from functools import partial
from inspect import Parameter
from types import ModuleType
from typing import Any, ClassVar, TypeVar, dataclass_transform

import numpy as np

from ..array_types import ValueArray
from ..constructors import merged_docstring, write_constructor
from ..errors import EstimatorError, InvalidArgumentError, InvalidArgumentTypeError
from .protocol import Declaration, Design, DesignRequest, Solution

KindT = TypeVar("KindT", bound=type)


def with_checks(estimator: Any) -> Any:
    """Return a copy of an estimator whose three methods check what they return.

    The copy has the class of the estimator, and can be pickled if the estimator can.
    """
    checked = copy.copy(estimator)
    methods: dict[str, Callable[..., Any]] = {
        "minimum_budget": _minimum_budget,
        "design": _design,
        "solve": _solve,
    }
    for name, method in methods.items():
        object.__setattr__(checked, name, partial(method, estimator))  # estimators may be frozen
    return checked


def _minimum_budget(estimator: Any, n_players: int, with_errors: bool = False) -> Any:
    budget = estimator.minimum_budget(n_players, with_errors)
    if not isinstance(budget, numbers.Real) or not np.isfinite(float(budget)):
        raise _wrong(estimator, "minimum_budget", f"{budget!r}; return a whole number")
    return budget


def _design(estimator: Any, request: DesignRequest) -> Any:
    design = estimator.design(request)
    if not isinstance(design, Design):
        advice = "return a shapley_adapters.estimators.Design"
        raise _wrong(estimator, "design", f"{_brief(design)}; {advice}")
    n_players = design.table.coalitions.shape[-1]
    if n_players != request.n_players and not estimator.needs_graph:
        advice = f"return coalitions of {request.n_players}, the request's n_players"
        raise _wrong(estimator, "design", f"coalitions of {n_players} players; {advice}")
    return design


def _solve(estimator: Any, design: Any, values: ValueArray) -> Any:
    solution = estimator.solve(design, values)
    if not isinstance(solution, Solution):
        advice = "return a shapley_adapters.estimators.Solution"
        raise _wrong(estimator, "solve", f"{_brief(solution)}; {advice}")
    n_players = design.table.coalitions.shape[-1]
    if estimator.needs_graph:  # which solves for all nodes of the graph
        n_players = np.shape(solution.values)[1:2] or n_players
    shape = (len(values), *np.atleast_1d(n_players).tolist(), values.shape[2])
    for name in ("values", "standard_errors"):
        _check_numbers(estimator, name, getattr(solution, name), shape)
    if not np.isfinite(solution.values).all():
        advice = "all values given to it are finite. Return finite attributions"
        raise _wrong(estimator, "solve", f"values that are NaN or infinite; {advice}")
    if (solution.standard_errors < 0).any():
        advice = "return numbers from 0 on, or NaN where an error is unknown"
        raise _wrong(estimator, "solve", f"negative standard_errors; {advice}")
    return solution


def _check_numbers(estimator: Any, name: str, array: object, shape: tuple[int, ...]) -> None:
    if not isinstance(array, np.ndarray) or array.dtype.kind not in "fiu" or array.shape != shape:
        advice = f"return an array of numbers of shape {shape}: rows, players and outputs"
        raise _wrong(estimator, "solve", f"{name} that are {_brief(array)}; {advice}")


def _brief(value: object) -> str:
    if value is None:
        return "None"
    if isinstance(value, np.ndarray):
        return f"an array of {value.dtype} of shape {value.shape}"
    return f"an object of type {type(value).__name__}"


def _wrong(estimator: Any, method: str, result: str) -> EstimatorError:
    return EstimatorError(f"{type(estimator).__name__}.{method} returned {result}.")


_METHODS = ("minimum_budget", "design", "solve")

STRUCTURES: dict[str | None, dict[str, str]] = {
    None: {},
    "graph": {"graph": "GraphLike | None"},
    "distances": {"graph": "GraphLike | None"},
    "hierarchy": {"hierarchy": "HierarchyLike | None"},
    "causes": {"order": "CausalOrder | None", "graph": "CausalEdges | None"},
}
"""What users pass about the relations of players, for each `Declaration.structure`, and its type.

The hosts read it, and pass it on as the graph of the game."""

_IN_EXAMPLES = {
    "graph": ', graph="line"',
    "hierarchy": ", hierarchy=[0, [1, 2]]",
    "causes": ", order=[[0, 1], 2]",
}


def estimators_in(package: ModuleType) -> list[type[Any]]:
    """Return the public estimators of a package that the hosts build classes of."""
    public = (getattr(package, name) for name in package.__all__)
    return [one for one in public if getattr(one, "declaration", None)]


@dataclass_transform(kw_only_default=True, eq_default=False, field_specifiers=(dataclasses.field,))
def options_from(estimator: Any, texts: Mapping[str, str]) -> Callable[[KindT], KindT]:
    """Decorate a class of a host: give it the options and the docstring of an estimator.

    The class may have further options, and a docstring of what holds for this host alone. Its text
    follows that of the estimator, section by section.

    Parameters
    ----------
    estimator : type
        A class with the methods of `Estimator`, usually a frozen dataclass.
    texts : mapping
        The host's texts: the descriptions of `"shared"` parameters, of `"independent_rows"` and of
        the options of each structure, and `"examples"`.

    Raises
    ------
    InvalidArgumentTypeError
        If `estimator` is not the class of an estimator, or an option cannot be passed by name.
    InvalidArgumentError
        If an option has a name that the host's class uses.
    """
    _check_class(estimator)
    of_class: Declaration | None = vars(estimator).get("declaration")
    declaration: Declaration = of_class or getattr(estimator, "declaration", None) or Declaration()
    structure = declaration.structure
    if structure is None and getattr(estimator, "needs_graph", False):
        structure = "graph"
    # A subclass in another package is made by itself, not by the function of our class.
    make: Any = (of_class and of_class.made_by) or estimator

    def decorate(kind: KindT) -> KindT:
        host_class: Any = kind
        relations: dict[str, Any] = dict.fromkeys(STRUCTURES[structure])
        reserved = {*dir(kind), *inspect.signature(kind).parameters, *relations}
        options = {option.name: option for option in _options(make, estimator.__name__, reserved)}
        annotations = {name: _annotation(option) for name, option in options.items()}
        if structure != "distances":  # whose graph may be left out, so that it comes last
            annotations = STRUCTURES[structure] | annotations
        annotations |= STRUCTURES[structure]
        defaults = relations | {name: _default(one, make) for name, one in options.items()}
        if not declaration.is_random:
            annotations["independent_rows"], defaults["independent_rows"] = ClassVar[bool], False
        for name, default in defaults.items():
            setattr(kind, name, default)
        host_class.__annotations__ = annotations | inspect.get_annotations(kind)
        host_class._make, host_class._option_names = staticmethod(make), tuple(options)
        host_class.name, host_class.structure = declaration.name, structure
        shared = [texts["shared"]]
        shared += [texts["independent_rows"]] if declaration.is_random else []
        shared += [texts[structure]] if structure else []
        argument = _IN_EXAMPLES.get(structure or "", "")
        examples = texts["examples"].format(name=kind.__name__, argument=argument)
        kind.__doc__ = merged_docstring((make, kind), shared, examples)
        return write_constructor(kind)

    return decorate


class Registered(type):
    """The type of classes made of estimators of other packages, so that they can be pickled."""

    recipe: tuple[Any, ...]


copyreg.pickle(Registered, lambda kind: vars(kind).get("recipe", kind.__qualname__))


def class_from_estimator(
    base: type[Any],
    suffix: str,
    estimator: Any,
    texts: dict[str, str],
    recipe: tuple[Any, ...],
) -> Any:
    """Return a class of a host for an estimator of another package, whose results are checked.

    Parameters
    ----------
    base : type
        The host's class that it inherits from.
    suffix : str
        What follows the estimator's name in that of the class.
    estimator, texts
        As in `options_from`.
    recipe : tuple
        The function that returns the class, and its arguments, for pickles.
    """
    _check_class(estimator)
    members = {"__module__": estimator.__module__, "recipe": recipe}
    kind: Any = Registered(f"{estimator.__name__}{suffix}", (base,), members)
    # No examples: they import our classes.
    options_from(estimator, texts | {"examples": ""})(kind)
    kind._estimator = lambda self: with_checks(base._estimator(self))
    return kind


def _annotation(option: Parameter) -> Any:
    return Any if option.annotation is Parameter.empty else option.annotation


def _default(option: Parameter, make: Any) -> Any:
    """Return the default of an option, or the field of one without."""
    if dataclasses.is_dataclass(make):
        fields = {field.name: field for field in dataclasses.fields(make)}
        factory = fields[option.name].default_factory
        if factory is not dataclasses.MISSING:
            return dataclasses.field(default_factory=factory)
    return dataclasses.field() if option.default is Parameter.empty else option.default


def _check_class(estimator: Any) -> None:
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


def _options(make: Any, owner: str, reserved: Collection[str]) -> list[Parameter]:
    """Return the options of an estimator: the arguments of its constructor."""
    options = list(inspect.signature(make).parameters.values())
    for option in options:
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
    return options
