"""Checks of arguments, shared by both hosts."""

from __future__ import annotations

import numbers
import secrets
from collections.abc import Callable, Sequence
from os import PathLike, fsencode, fspath
from pathlib import Path
from typing import Any

import numpy as np

from .errors import InvalidArgumentError, InvalidArgumentTypeError

_LONGEST_NAME = 200
"""Bytes of the name of a file: systems allow 255, and names of files beside it are longer."""


def checked_choice(name: str, value: Any, choices: Sequence[str]) -> str:
    """Return `value` if it is one of `choices`; else raise an error that lists the choices."""
    if not isinstance(value, str):
        raise InvalidArgumentTypeError(
            f"{name} must be one of {', '.join(map(repr, choices))}; got {type(value).__name__}."
        )
    if value not in choices:
        raise InvalidArgumentError(
            f"{name} must be one of {', '.join(map(repr, choices))}; got {value!r}."
        )
    return value


def checked_flag(name: str, value: Any) -> bool:
    """Return `value` if it is a bool."""
    if not isinstance(value, bool):
        raise InvalidArgumentTypeError(f"{name} must be True or False; got {value!r}.")
    return value


def checked_count(name: str, value: Any, minimum: int = 1) -> int:
    """Return `value` as an int if it is a whole number of at least `minimum`."""
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise InvalidArgumentTypeError(
            f"{name} must be a whole number; got {value!r} ({type(value).__name__})."
        )
    if value < minimum:
        raise InvalidArgumentError(f"{name} must be at least {minimum}; got {value}.")
    return int(value)


def count_or_auto(name: str, value: object) -> int | None:
    """Return `value` if it is a whole number from 1 on, None if it is "auto"."""
    if isinstance(value, str) and value == "auto":
        return None
    if isinstance(value, str):
        raise InvalidArgumentTypeError(f"{name} must be a whole number or 'auto'; got {value!r}.")
    return checked_count(name, value)


def checked_path(name: str, value: Any) -> Path:
    """Return `value` as the path of a file or folder to write, in a folder that exists."""
    if not isinstance(value, (str, PathLike)) or isinstance(fspath(value), bytes):
        raise InvalidArgumentTypeError(
            f"{name} must be a path, as a text or a Path; got {type(value).__name__}."
        )
    path = Path(value)
    shown = f"{name}={str(value)!r}"
    if not path.name:
        raise InvalidArgumentError(f"{shown} names no file. Pass a path such as 'results/first'.")
    if not _can_be_path(path):
        raise InvalidArgumentError(
            f"{shown} cannot be a path: names have at most {_LONGEST_NAME} bytes, and no NUL or "
            "half characters. Choose another one."
        )
    if not path.parent.is_dir():
        raise InvalidArgumentError(f"{shown}: the folder {path.parent} does not exist.")
    return path


def _can_be_path(path: Path) -> bool:
    try:
        fsencode(path)
    except UnicodeEncodeError:  # half of a character
        return False
    return "\0" not in str(path) and len(fsencode(path.name)) <= _LONGEST_NAME


def checked_number(name: str, value: Any, what: str, is_usable: Callable[[float], bool]) -> float:
    """Return `value` as a float if it is a real number, and `what` the user may pass."""
    if isinstance(value, bool) or not isinstance(value, numbers.Real):
        raise InvalidArgumentTypeError(f"{name} must be {what}; got {value!r}.")
    if not is_usable(float(value)):
        raise InvalidArgumentError(f"{name} must be {what}; got {value!r}.")
    return float(value)


def checked_positive(name: str, value: Any, what: str = "a positive number") -> float:
    """Return `value` as a float if it is a positive, finite number."""
    return checked_number(name, value, what, lambda number: 0 < number < np.inf)


def checked_seconds(name: str, value: Any) -> float:
    """Return `value` as a float if it is a positive number of seconds."""
    return checked_positive(name, value, "a positive number of seconds")


def check_unmasked(name: str, value: Any) -> None:
    """Refuse NumPy masked arrays that have masked entries: these have no value."""
    if np.ma.is_masked(value):
        n_masked = int(np.ma.getmaskarray(value).sum())
        raise InvalidArgumentError(
            f"{name} is a masked array with {n_masked} masked entries, which have no value. "
            "Fill them, for example by .filled(0), or by .filled(np.nan) if the model takes "
            "missing values, or leave their rows out."
        )


def checked_seed(seed: Any) -> int:
    """Return `seed`, or a new one from the operating system if it is None.

    The caller stores the new seed, so that every explanation can be repeated.
    """
    if seed is None:
        return secrets.randbits(63)
    return checked_count("seed", seed, minimum=0)


def checked_probability(name: str, value: Any) -> float:
    """Return `value` as a float between 0 and 1, both excluded."""
    return checked_number(name, value, "a number between 0 and 1", lambda share: 0 < share < 1)
