"""The names of methods in messages and on progress bars."""

from __future__ import annotations

import captum.attr

_NAMES = {
    "AVA": "AVA",
    "CShapley": "C-Shapley",
    "FastShap": "FastSHAP",
    "LLMAttribution": "LLM Attribution",
    "LShapley": "L-Shapley",
    "OddGP": "Odd GP",
    "RemoteLLMAttribution": "Remote LLM Attribution",
    "Shear": "SHEAR",
    "SimSemivalue": "Sim-Semivalue",
    "SimShap": "SimSHAP",
}


class NamedAttribution(captum.attr.Attribution):  # type: ignore[misc] # captum is untyped
    """Attribution whose name reads well: captum puts a space before every capital."""

    @classmethod
    def get_name(cls) -> str:
        """Return the readable name of the class."""
        return _NAMES.get(cls.__name__) or super().get_name()
