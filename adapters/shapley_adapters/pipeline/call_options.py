"""The options of a call: name, type, default, check and text of each, declared once.

A host declares its options in a `TypedDict` whose entries are annotated by a `CallOption` and
described in its docstring; type checkers and editors then know the options of
`**options: Unpack[…]`. It extends `CallOptions`, whose options all hosts have. A function that
takes them reads them once, by `OptionTable.read`.
"""

# Annotations are evaluated: no `from __future__ import annotations`.

import difflib
import inspect
import re
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Annotated, Any, TypedDict, TypeVar

from ..arguments import checked_count, checked_seconds
from ..errors import InvalidArgumentError, InvalidArgumentTypeError
from .settings import checked_tolerance

FunctionT = TypeVar("FunctionT", bound=Callable[..., Any])

_WIDTH = 92
"""Characters in a line of the descriptions of options."""


@dataclass(frozen=True)
class CallOption:
    """One option of a call, beside its name, type and text.

    Attributes
    ----------
    default : object
        Its default, as users see it.
    check : callable
        Returns the value to use for a name and a value of the user; raises an error for a value
        that cannot be used. None is taken as it is where it is the default.
    setting : str
        The field of `Settings` that it sets; "" where the host uses it itself.
    refused : mapping
        The ways to call that do not take it, each with the end of a sentence that says why.
    """

    default: Any
    check: Callable[[str, Any], Any]
    setting: str = ""
    refused: Mapping[str, str] = field(default_factory=dict)


ONE_PASS = "means nothing to a network that explains in one pass."
_NO_SAMPLE = "does not go with a mean over rows, which have coalitions of their own. Leave it out."
_NO_STREAM = "does not go with rows that are explained part after part. Leave it out."


def _checked_tolerance(_: str, value: Any) -> Any:
    return checked_tolerance(value)


class CallOptions(TypedDict, total=False):
    """Options that have the same name in all hosts, and the text of the budget.

    Attributes
    ----------
    {budget}
        The budget: the number of coalitions evaluated per {row}, each once for all {backgrounds}.
        By default all 2^M for up to 10 features, and 16 per feature, at least 500, for more. If it
        allows all 2^M coalitions, the result is exact. A few further evaluations look for random
        answers: at most 5 % of the call's or, where these are more, four.
    tolerance
        The standard error at which evaluation of {a_row} stops: a number in units of the output, or
        a percentage of the distance between the {row}'s largest and smallest attribution, as in
        `"1%"`. `{budget}` is still the limit, and is by default twenty times as high. A warning
        names the {row}s that reach it first.
    max_model_rows
        The budget in rows of the model's input for each {row}, beside `{budget}`; the smaller one
        counts. Coalitions are then evaluated on a part of the {backgrounds}, and
        `last_estimate.value_errors` says how exactly; standard errors hold that error. With few
        rows, `{oddgp}` and `{best}` learn from each about all {backgrounds}. `{best}` takes half of
        the rows that `{budget}` would have by default, where there are more than ten features and
        more than ten {backgrounds}. Methods on graphs evaluate the coalitions of their order, each
        on as many {backgrounds} as the budget pays for.
    repeats
        How often each coalition is evaluated, for models that answer at random. Each answer counts
        as an evaluation, and `last_estimate.value_errors` holds the noise of the means. With 1, a
        few coalitions are evaluated twice; if answers differ, a warning says so, and every fourth
        coalition is evaluated twice to measure the noise.
    max_seconds
        The time for the call, for all {row}s together. The budget grows in rounds over all {row}s,
        until the next round would pass the time, so that it may differ from call to call. The same
        seed with `{budget}={explainer}.last_estimate.budget` repeats the numbers exactly. If you
        pass `{budget}`, it is a further limit.
    """

    tolerance: Annotated[
        float | str | None,
        CallOption(None, _checked_tolerance, "tolerance", {"importance": _NO_SAMPLE}),
    ]
    max_model_rows: Annotated[
        int | None,
        CallOption(
            None,
            checked_count,
            "max_model_rows",
            {"importance": _NO_SAMPLE, "network": f"{ONE_PASS} Pass {{budget}}, or use {{oddgp}}."},
        ),
    ]
    repeats: Annotated[
        int,
        CallOption(
            1,
            checked_count,
            "n_repeats",
            {"importance": _NO_SAMPLE, "network": f"{ONE_PASS} Use {{oddgp}}."},
        ),
    ]
    max_seconds: Annotated[
        float | None,
        CallOption(
            None,
            checked_seconds,
            "max_seconds",
            {
                "stream": _NO_STREAM,
                "batch": _NO_STREAM,
                "importance": _NO_SAMPLE,
                "budget": "has no number of evaluations before the call. Leave it out.",
                "network": f"{ONE_PASS} Pass {{budget}} or tolerance, or use {{oddgp}}.",
            },
        ),
    ]


class OptionTable:
    """The options of the calls of a host, by name.

    Parameters
    ----------
    *declared : TypedDict
        The options, without those that they inherit.
    words : str
        The words of the host in the texts: `row`, `a_row`, `budget`, `backgrounds`, `explainer`,
        `oddgp` and `best`.
    """

    def __init__(self, *declared: Any, **words: str) -> None:
        hints = {name: hint for kind in declared for name, hint in kind.__annotations__.items()}
        self._words = words
        self._types = {name: _text_of(hint.__origin__) for name, hint in hints.items()}
        self._options: dict[str, CallOption] = {n: h.__metadata__[0] for n, h in hints.items()}
        self._defaults = {
            n: None if o.default is None else o.check(n, o.default)
            for n, o in self._options.items()
        }
        docs = [inspect.cleandoc(kind.__doc__ or "").format(**words) for kind in declared]
        entries = [
            entry for text in docs for entry in re.findall(r"^(\w+)\n((?: .*\n?)+)", text, re.M)
        ]
        self._texts = {name: " ".join(text.split()) for name, text in entries}

    def read(self, way: str, given: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Return the fields of `Settings` and the other options of a call, checked.

        Parameters
        ----------
        way : str
            The way to call, as in `CallOption.refused`.
        given : mapping
            What the user passed.

        Raises
        ------
        InvalidArgumentTypeError, InvalidArgumentError
            If there is no such option, this way does not take it, or its value cannot be used.
        """
        values = self._defaults.copy()
        for name, value in given.items():
            option = self._options.get(name)
            if option is None:
                similar = difflib.get_close_matches(name, self._taken(way))
                hint = f" Did you mean {' or '.join(similar)}?" if similar else ""
                raise InvalidArgumentTypeError(
                    f"unexpected keyword argument {name!r}.{hint} The options are "
                    f"{', '.join(self._taken(way))}."
                )
            is_default = value is option.default or (
                isinstance(value, (bool, float, int, str)) and value == option.default
            )
            if way in option.refused and not is_default:
                why = option.refused[way].format(**self._words)
                raise InvalidArgumentError(f"{name}={value!r} {why}")
            is_none = value is None and option.default is None
            values[name] = None if is_none else option.check(name, value)
        fields = {o.setting: values.pop(n) for n, o in self._options.items() if o.setting}
        return fields, values

    def complete(self, way: str, given: Mapping[str, Any]) -> dict[str, Any]:
        """Return what the user passed, with the defaults of the other options of a way to call."""
        self.read(way, given)
        return {n: given.get(n, option.default) for n, option in self._taken(way).items()}

    def documented(self, way: str, like: Any = None) -> Callable[[FunctionT], FunctionT]:
        """Decorate a function with `**options`: give it their signature and their descriptions.

        Its docstring has an entry `**options`, which the options replace that it does not describe
        itself.

        Parameters
        ----------
        way : str
            The way to call.
        like : callable, optional
            A function whose parameters take the place of `*arguments`.
        """

        def decorate(function: FunctionT) -> FunctionT:
            own = dict(inspect.signature(function).parameters)
            if like is not None:
                other = inspect.signature(like).parameters
                by_position = {n: p for n, p in other.items() if p.kind is not p.KEYWORD_ONLY}
                own = by_position | {n: p for n, p in own.items() if p.kind is p.KEYWORD_ONLY}
            own = {n: p for n, p in own.items() if p.kind is not p.VAR_KEYWORD}
            for name, option in self._taken(way).items():
                further = inspect.Parameter(
                    name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=option.default,
                    annotation=self._types[name],
                )
                own.setdefault(name, further)
            made: Any = function
            made.__signature__ = inspect.signature(function).replace(parameters=list(own.values()))
            text = inspect.cleandoc(function.__doc__ or "")  # empty under `python -OO`
            entries = [
                self._entry(name)
                for name in self._taken(way)
                if not re.search(rf"^(\w+, )*{name}(, \w+)*( :|$)", text, flags=re.MULTILINE)
            ]
            pattern = re.compile(r"^\*\*options\n(    .*\n)+", flags=re.MULTILINE)
            function.__doc__ = pattern.sub(lambda _: "\n".join([*entries, ""]), text + "\n").strip()
            return function

        return decorate

    def _taken(self, way: str) -> dict[str, CallOption]:
        return {name: o for name, o in self._options.items() if way not in o.refused}

    def _entry(self, name: str) -> str:
        """Return the entry of an option in a docstring."""
        lines = textwrap.wrap(self._texts.get(name, ""), _WIDTH, break_long_words=False)
        return "\n    ".join([f"{name} : {self._types[name]}", *lines])


def _text_of(kind: Any) -> str:
    """Return a type as in an annotation."""
    text: str = getattr(kind, "__forward_arg__", None) or inspect.formatannotation(kind)
    return text
