"""The names of methods in messages and on progress bars."""

from __future__ import annotations

import re

import captum.attr

_AS_PAPERS_WRITE_THEM = {"FastShap": "FastSHAP", "Shear": "SHEAR", "SimShap": "SimSHAP"}


class NamedAttribution(captum.attr.Attribution):  # type: ignore[misc] # captum is untyped
    """Attribution whose name reads well: captum puts a space before every capital."""

    @classmethod
    def get_name(cls) -> str:
        """Return the readable name of the class."""
        name = cls.__name__
        if name in _AS_PAPERS_WRITE_THEM:
            return _AS_PAPERS_WRITE_THEM[name]
        # A single capital, as in L-Shapley, belongs to the next word, and so does the prefix "Sim".
        # Each other word has a space before it; abbreviations such as LLM stay whole.
        hyphened = re.sub(r"^(Sim|[A-Z])(?=[A-Z][a-z])", r"\1-", name)
        return re.sub(r"(?<=[a-z])(?=[A-Z])|(?<=[A-Z])(?=[A-Z][a-z])", " ", hyphened)
