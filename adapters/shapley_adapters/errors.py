"""Exceptions and warnings of shapley-ext, and the numbers of rows in their messages.

Every exception derives from `ShapleyExtError` and from the built-in exception that a caller would
already catch.
"""

from __future__ import annotations

import sys
import threading
import time
import warnings
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import SupportsInt


class ShapleyExtError(Exception):
    """Base of all exceptions raised by shapley-ext."""


class InvalidArgumentError(ShapleyExtError, ValueError):
    """An argument has a value that cannot be used."""


class InvalidArgumentTypeError(ShapleyExtError, TypeError):
    """An argument has a type that cannot be used."""


class BudgetError(InvalidArgumentError):
    """The number of evaluations is too small for the method, or too large to be carried out.

    Attributes
    ----------
    needed : int or None
        The smallest number of evaluations per row, if it is known.
    """

    def __init__(self, message: str, needed: int | None = None) -> None:
        super().__init__(message)
        self.needed = needed


class DerivativeError(ShapleyExtError, RuntimeError):
    """The requested derivatives cannot be computed for this model."""


class NonFiniteValueError(ShapleyExtError, ArithmeticError):
    """The model returned NaN or an infinite number for a coalition."""


class SingularSystemError(ShapleyExtError, ArithmeticError):
    """The evaluated coalitions do not determine the attributions."""


class AdditivityError(ShapleyExtError, ArithmeticError):
    """Attributions and base value do not sum to the model's output, although this was required."""


class NoExpectedValueError(ShapleyExtError, AttributeError):
    """The value without any feature is unknown, or differs between rows."""


class ModelOutputError(ShapleyExtError, ValueError):
    """The model's output does not have one entry for each of its input rows."""


class EstimatorError(ShapleyExtError, ValueError):
    """An estimator of another package returned something that is no estimate."""


class WorkerError(ShapleyExtError, RuntimeError):
    """The model failed in a worker, or the worker ended.

    The message names the row and the model's own error, where the worker could report them.
    """


class FutureError(ShapleyExtError, RuntimeError):
    """A Future that the forward function returned ended with an error."""


class RemoteCallError(ShapleyExtError, RuntimeError):
    """A call of a remote model failed for good; no other one was started after it."""


class CheckpointError(InvalidArgumentError):
    """Results on disk are damaged, or belong to another model, other data or another call."""


class PlotError(ShapleyExtError, RuntimeError):
    """A host drew a plot in a form in which the values of its parts are not recognised."""


class MissingPackageError(ShapleyExtError, ModuleNotFoundError):
    """A package is not installed that this part of shapley-ext needs."""


@contextmanager
def required_packages(needed_by: str, extra: str) -> Iterator[None]:
    """Report which extra to install if an import in the block fails.

    Parameters
    ----------
    needed_by : str
        The part that cannot work and the packages that it needs, such as "shap_ext needs shap".
    extra : str
        The extra of shapley-ext that installs these packages.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        raise MissingPackageError(
            f"{needed_by}, but {error.name} is not installed: pip install 'shapley-ext[{extra}]'.",
            name=error.name,
        ) from error


class ShapleyExtWarning(UserWarning):
    """A warning about an explanation or about the training of a network."""


_PASSED_OVER = frozenset(["shapley_adapters", "shap_ext", "captum_ext", "shap", "captum"])


class _Latest(threading.local):
    """The latest warnings of a thread, with their times."""

    def __init__(self) -> None:
        self.messages: deque[tuple[float, str]] = deque(maxlen=100)


_latest = _Latest()


def warnings_since(started: float) -> tuple[str, ...]:
    """Return the texts of our warnings in this thread since a time, in seconds since 1970."""
    return tuple(message for moment, message in _latest.messages if moment >= started)


_subjects: ContextVar[set[str] | None] = ContextVar("subjects", default=None)
_first_row: ContextVar[int | None] = ContextVar("first_row", default=None)


@contextmanager
def warnings_once() -> Iterator[None]:
    """Warn only once of each subject in this block, which calls us many times for one purpose."""
    token = _subjects.set(set())
    try:
        yield
    finally:
        _subjects.reset(token)


def warn_user(message: str, subject: str | None = None) -> None:
    """Warn at the line of the user's code that called us or a host.

    `subject` identifies warnings whose texts differ in numbers only.
    """
    subjects, subject = _subjects.get(), subject or message
    if subjects is not None and subject in subjects:
        return
    if subjects is not None:
        subjects.add(subject)
    _latest.messages.append((time.time(), message))
    level, frame = 1, sys._getframe()
    while frame.f_back and frame.f_globals.get("__name__", "").partition(".")[0] in _PASSED_OVER:
        level, frame = level + 1, frame.f_back
    warnings.warn(message, ShapleyExtWarning, stacklevel=level)


@contextmanager
def rows_counted_from(first: int | None) -> Iterator[None]:
    """Count the rows of the calls in this block from `first` in all messages; None: of all rows."""
    token = _first_row.set(first)
    try:
        yield
    finally:
        _first_row.reset(token)


def row_number(row: SupportsInt) -> int:
    """Return the number by which messages name a row of the present call."""
    return int(row) + (_first_row.get() or 0)


def first_row() -> int | None:
    """Return the number of the first row of a part of the user's rows; None for all rows."""
    return _first_row.get()
