"""Criteria as functions of a host: its arguments, then the options, and the text of both."""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable, Collection
from typing import Any

from ..constructors import docstring_of, docstring_sections


def hosted(
    criterion: Callable[..., Any],
    translate: Callable[..., tuple[Any, ...]],
    *,
    module: str,
    returned: str,
    to_host: Callable[[Any], Any] | None = None,
    **fixed: Any,
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
    **fixed
        Arguments of `translate` that users do not choose.
    """
    own, its = inspect.signature(translate), inspect.signature(criterion)
    options = {n: p for n, p in its.parameters.items() if p.kind is p.KEYWORD_ONLY}
    of_host = [p for n, p in own.parameters.items() if n not in fixed]
    by_name = [p for p in of_host if p.kind is p.KEYWORD_ONLY]
    by_position = [p for p in of_host if p.kind is not p.KEYWORD_ONLY]
    is_array = its.return_annotation == "FloatArray"
    signature = its.replace(parameters=[*by_position, *options.values(), *by_name])
    if is_array and to_host is not None:
        annotation = inspect.signature(to_host).return_annotation
        signature = signature.replace(return_annotation=annotation)

    def judge(*args: Any, **arguments: Any) -> Any:
        given = signature.bind(*args, **arguments).arguments
        chosen = {name: given.pop(name) for name in options if name in given}
        found = criterion(*translate(**given, **fixed), **chosen)
        return found if to_host is None or not is_array else to_host(found)

    made: Any = judge
    made.__name__ = made.__qualname__ = criterion.__name__
    made.__module__, made.__signature__ = module, signature
    sections, texts = docstring_sections(criterion), docstring_sections(translate)
    entries = [
        *_entries(texts.get("Parameters", ""), own.parameters.keys() - fixed),
        *_entries(sections.get("Parameters", ""), options),
    ]
    text = {"": sections[""], "Parameters": "\n".join(entries)}
    sections |= text | {"Examples": ""}  # which are of arrays and games
    if is_array and "Returns" in sections:
        sections["Returns"] = re.sub("^.*", returned, sections["Returns"], count=1)
    if not fixed:
        sections["Examples"] = texts.get("Examples", "")
    made.__doc__ = docstring_of(text | sections)
    return made


def _entries(text: str, names: Collection[str]) -> list[str]:
    """Return the entries of a section of parameters that describe some of the names."""
    entries = re.findall(r"^\S.*(?:\n +.*)*", text, re.MULTILINE)
    return [one for one in entries if set(names) & set(re.split(r",? ", re.split(" :|\n", one)[0]))]
