"""Criteria as functions of a host: its arguments, then the options, and the text of both."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from typing import Any

from ..constructors import docstring_of, docstring_sections


def hosted(
    criterion: Callable[..., Any],
    translate: Callable[..., tuple[Any, ...]],
    *,
    module: str,
    returned: str,
    to_host: Callable[[Any], Any] | None = None,
) -> Any:
    """Return a criterion of this package as a function of a host.

    Parameters
    ----------
    criterion : callable
        Its options are its keyword-only parameters.
    translate : callable
        Takes the host's arguments and returns those that the criterion takes by position. Its
        docstring describes its parameters, and may have examples.
    module : str
        The module of the host that has the function.
    returned : str
        The description of arrays that the criterion returns.
    to_host : callable, optional
        Converts such arrays.
    """
    own, its = inspect.signature(translate), inspect.signature(criterion)
    options = {n: p for n, p in its.parameters.items() if p.kind is p.KEYWORD_ONLY}
    by_name = [p for p in own.parameters.values() if p.kind is p.KEYWORD_ONLY]
    by_position = [p for p in own.parameters.values() if p.kind is not p.KEYWORD_ONLY]
    is_array = its.return_annotation == "FloatArray"
    signature = its.replace(parameters=[*by_position, *options.values(), *by_name])
    if is_array and to_host is not None:
        annotation = inspect.signature(to_host).return_annotation
        signature = signature.replace(return_annotation=annotation)

    def judge(*args: Any, **arguments: Any) -> Any:
        given = signature.bind(*args, **arguments).arguments
        chosen = {name: given.pop(name) for name in options if name in given}
        found = criterion(*translate(**given), **chosen)
        return found if to_host is None or not is_array else to_host(found)

    made: Any = judge
    made.__name__ = made.__qualname__ = criterion.__name__
    made.__module__, made.__signature__ = module, signature
    made.__doc__ = _docstring(criterion, translate, set(options), returned if is_array else "")
    return made


def _docstring(criterion: Any, translate: Any, options: set[str], returned: str) -> str:
    """Return the text of a criterion, with the host's arguments in place of arrays and games."""
    sections, of_host = docstring_sections(criterion), docstring_sections(translate)
    entries = re.findall(r"^\S.*(?:\n +.*)*", sections.pop("Parameters", ""), re.MULTILINE)
    kept = [entry for entry in entries if options & set(re.findall(r"\w+", entry.split("\n")[0]))]
    parameters = "\n".join([of_host["Parameters"], *kept]) if of_host else ""
    if returned and "Returns" in sections:
        sections["Returns"] = re.sub("^.*", returned, sections["Returns"], count=1)
    examples = of_host.get("Examples", "")  # those of the criterion are of arrays and games
    text = {"": sections.pop("", ""), "Parameters": parameters}
    return docstring_of(text | sections | {"Examples": examples})
