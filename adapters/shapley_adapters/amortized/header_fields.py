"""Plain checks of what the header of a file says, before anything is made of it."""

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
    place : str
        Where in the header the object is, for messages.
    values : dict
        The fields.
    """

    path: str
    place: str
    values: dict[str, Any]

    @classmethod
    def of(cls, path: str, place: str, value: Any, names: Sequence[str] | None = None) -> Fields:
        """Return the fields of `value`, which must be exactly those with these names, if given."""
        if not isinstance(value, dict):
            refuse_header(path, place, "an object", value)
        if names is not None and set(value) != set(names):
            refuse_header(path, place, f"an object of {', '.join(sorted(names))}", sorted(value))
        return cls(path, place, value)

    def part(self, name: str, names: Sequence[str] | None = None) -> Fields:
        """Return a field that is an object."""
        return Fields.of(self.path, self._place(name), self.values.get(name), names)

    def parts(self, name: str, names: Sequence[str]) -> list[Fields]:
        """Return a field that is a list of objects."""
        found: Any = self.values.get(name)
        if not isinstance(found, list):
            self.refuse(name, "a list")
        return [Fields.of(self.path, self._place(name), one, names) for one in found]

    def whole(self, name: str, least: int = 0, most: int | None = _LARGEST) -> int:
        """Return a field that is a whole number."""
        found: Any = self.values.get(name)
        if not _is_whole(found) or found < least or (most is not None and found > most):
            self.refuse(name, f"a whole number from {least} on")
        return int(found)

    def size(self, name: str) -> int:
        """Return a field that is the length of an axis."""
        return self.whole(name, 1, _LARGEST_SIZE)

    def shape(self, name: str, n_numbers: int | None = None) -> list[int]:
        """Return a field that is the shape of an array of any numbers, or of so many.

        No axis has length 0. Unless the number of numbers is given, there is at least one axis.
        """
        found: Any = self.values.get(name)
        least = 0 if n_numbers is not None else 1
        if not is_shape(found, least):
            self.refuse(name, "a shape")
        if n_numbers is not None and math.prod(found) != n_numbers:
            self.refuse(name, f"a shape of {n_numbers} numbers")
        return list(found)

    def number(self, name: str, least: float = -math.inf) -> float:
        """Return a field that is a number; NaN is none unless there is no least one."""
        found: Any = self.values.get(name)
        if not _is_number(found) or (least > -math.inf and not least <= found < math.inf):
            self.refuse(name, "a number" if least == -math.inf else f"a number from {least} on")
        return float(found)

    def numbers(self, name: str) -> list[float]:
        """Return a field that is a list of positive numbers."""
        found: Any = self.values.get(name)
        if not isinstance(found, list) or not all(
            _is_number(one) and 0 < one < math.inf for one in found
        ):
            self.refuse(name, "a list of positive numbers")
        return [float(one) for one in found]

    def text(self, name: str, choices: Sequence[str] | None = None) -> str:
        """Return a field that is a text, one of `choices` if there are any."""
        found: Any = self.values.get(name)
        if not isinstance(found, str) or len(found) > _LONGEST_TEXT:
            self.refuse(name, "a text")
        if choices is not None and found not in choices:
            self.refuse(name, f"one of {', '.join(choices)}")
        return str(found)

    def refuse(self, name: str, needed: str) -> NoReturn:
        """Refuse the file for one of the fields."""
        refuse_header(self.path, self._place(name), needed, self.values.get(name))

    def _place(self, name: str) -> str:
        return f"{self.place}.{name}"


def refuse_header(path: str, place: str, needed: str, found: Any) -> NoReturn:
    """Refuse a file for what its header says.

    Raises
    ------
    InvalidArgumentError
        Always.
    """
    raise InvalidArgumentError(
        f"{path} cannot be used: {place} in its header must be {needed}; it is "
        f"{reprlib.repr(found)}. The file was changed after it was saved; train and save again."
    )


def is_shape(value: Any, least_axes: int = 0) -> bool:
    """Tell whether a value of JSON is the shape of an array that is not empty."""
    return (
        isinstance(value, list)
        and least_axes <= len(value) <= _MOST_AXES
        and all(_is_whole(one) and 1 <= one <= _LARGEST_SIZE for one in value)
    )


def _is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def _is_number(value: Any) -> bool:
    is_finite_whole = _is_whole(value) and abs(value) <= _LARGEST
    return is_finite_whole or isinstance(value, float)
