"""Checks of the header of a file, before anything is built from it."""

from __future__ import annotations

import math
import reprlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, NoReturn

from ..errors import InvalidArgumentError

_LARGEST = 2**63 - 1
_LARGEST_SIZE = 2**31 - 1
_MOST_AXES = 8
_LONGEST_TEXT = 1000


@dataclass(frozen=True)
class Fields:
    """An object of JSON, whose fields are read one by one.

    Attributes
    ----------
    path : str
        The file.
    location : str
        Path of the object in the header, for messages.
    values : dict
        The fields.
    """

    path: str
    location: str
    values: dict[str, Any]

    @classmethod
    def from_value(
        cls, path: str, location: str, value: Any, names: Sequence[str] | None = None
    ) -> Fields:
        """Return the fields of `value`; if `names` is given, they must have exactly these names."""
        if not isinstance(value, dict):
            refuse_header(path, location, "an object", value)
        if names is not None and set(value) != set(names):
            refuse_header(path, location, f"an object of {', '.join(sorted(names))}", sorted(value))
        return cls(path, location, value)

    def part(self, name: str, names: Sequence[str] | None = None) -> Fields:
        """Return a field that is an object."""
        return Fields.from_value(self.path, self._location(name), self.values.get(name), names)

    def parts(self, name: str, names: Sequence[str]) -> list[Fields]:
        """Return a field that is a list of objects."""
        value: Any = self.values.get(name)
        if not isinstance(value, list):
            self.refuse(name, "a list")
        return [Fields.from_value(self.path, self._location(name), entry, names) for entry in value]

    def whole_number(self, name: str, smallest: int = 0, largest: int | None = _LARGEST) -> int:
        """Return a field that is a whole number."""
        value: Any = self.values.get(name)
        if not _is_whole(value) or value < smallest or (largest is not None and value > largest):
            self.refuse(name, f"a whole number from {smallest} on")
        return int(value)

    def size(self, name: str) -> int:
        """Return a field that is the length of an axis."""
        return self.whole_number(name, 1, _LARGEST_SIZE)

    def shape(self, name: str, n_numbers: int | None = None) -> list[int]:
        """Return a field that is the shape of an array, with `n_numbers` entries if given.

        No axis has length 0. If `n_numbers` is None, there is at least one axis.
        """
        value: Any = self.values.get(name)
        smallest = 0 if n_numbers is not None else 1
        if not is_shape(value, smallest):
            self.refuse(name, "a shape")
        if n_numbers is not None and math.prod(value) != n_numbers:
            self.refuse(name, f"a shape of {n_numbers} numbers")
        return list(value)

    def number(self, name: str, smallest: float = -math.inf, largest: float = math.inf) -> float:
        """Return a field that is a number; NaN is allowed only if `smallest` is −inf."""
        value: Any = self.values.get(name)
        is_within = _is_number(value) and smallest <= value <= largest and value < math.inf
        if not _is_number(value) or (smallest > -math.inf and not is_within):
            needed = "a number" if smallest == -math.inf else f"a number from {smallest} on"
            self.refuse(name, needed if largest == math.inf else f"{needed}, up to {largest}")
        return float(value)

    def numbers(self, name: str) -> list[float]:
        """Return a field that is a list of positive numbers."""
        value: Any = self.values.get(name)
        if not isinstance(value, list) or not all(
            _is_number(entry) and 0 < entry < math.inf for entry in value
        ):
            self.refuse(name, "a list of positive numbers")
        return [float(entry) for entry in value]

    def text(self, name: str, choices: Sequence[str] | None = None) -> str:
        """Return a field that is a text; if `choices` is given, it must be one of them."""
        value: Any = self.values.get(name)
        if not isinstance(value, str) or len(value) > _LONGEST_TEXT:
            self.refuse(name, "a text")
        if choices is not None and value not in choices:
            self.refuse(name, f"one of {', '.join(choices)}")
        return str(value)

    def refuse(self, name: str, needed: str) -> NoReturn:
        """Refuse the file because of one of the fields."""
        refuse_header(self.path, self._location(name), needed, self.values.get(name))

    def _location(self, name: str) -> str:
        return f"{self.location}.{name}"


def refuse_header(path: str, location: str, needed: str, value: Any) -> NoReturn:
    """Refuse a file because of an entry of its header.

    Raises
    ------
    InvalidArgumentError
        Always.
    """
    raise InvalidArgumentError(
        f"{path} cannot be used: {location} in its header must be {needed}; it is "
        f"{reprlib.repr(value)}. The file was changed after it was saved; train and save again."
    )


def is_shape(value: Any, least_axes: int = 0) -> bool:
    """Return whether a JSON value is the shape of an array that is not empty."""
    return (
        isinstance(value, list)
        and least_axes <= len(value) <= _MOST_AXES
        and all(_is_whole(entry) and 1 <= entry <= _LARGEST_SIZE for entry in value)
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    is_finite_whole = _is_whole(value) and abs(value) <= _LARGEST
    return is_finite_whole or isinstance(value, float)
