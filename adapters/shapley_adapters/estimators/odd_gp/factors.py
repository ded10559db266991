"""Factors of covariances: stacks of them by LAPACK, and a cache for later calls.

NumPy factors a stack of matrices with two copies of each, and solves no triangular equations. The
wrappers of SciPy do both without copies, but no other thread runs meanwhile. So this module calls
the functions that SciPy offers to compiled code (`scipy.linalg.cython_lapack`) through ctypes,
which lets other threads run. Each matrix has calls of its own, so that its result does not depend
on the rest of the stack.

LAPACK stores columns one after the other. So a symmetric matrix is the same for NumPy and for
LAPACK, the factor L is stored as its transpose, and the rows of an array are columns to LAPACK.

Rows and calls with as many players mostly have the same coalitions, up to the order of the players.
If all players have equal strengths, the order matters for nothing but the order of the results. So
the players are sorted, and matrices are computed once for many calls.
"""

from __future__ import annotations

import ctypes
from collections import OrderedDict
from collections.abc import Callable, Hashable, Iterator
from dataclasses import dataclass, fields, is_dataclass
from functools import lru_cache
from threading import Lock
from typing import Any, Generic, TypeVar

import numpy as np
from scipy.linalg import cython_blas, cython_lapack

from ...array_types import BoolArray, FloatArray, IntArray


@dataclass(frozen=True)
class LowerFactors:
    """The factors L of covariances L Lᵀ, (R, n, n).

    Attributes
    ----------
    transposed : array, (R, n, n)
        The transpose of each factor. Entries below its diagonal have no meaning.
    """

    transposed: FloatArray

    @classmethod
    def from_covariances(cls, covariances: FloatArray) -> LowerFactors:
        """Factor symmetric matrices, of which the part below the diagonals is not read.

        The memory of the array is overwritten. An array that is not contiguous is copied.
        """
        matrices = np.ascontiguousarray(covariances, dtype=np.float64)
        n, factor = _number(matrices.shape[-1]), _function("dpotrf")
        for pointer in _pointers(matrices):
            info = ctypes.c_int()
            factor(b"L", n, pointer, n, ctypes.byref(info))
            if info.value:
                raise np.linalg.LinAlgError("A covariance is not positive definite.")
        return cls(matrices)

    def subset_games(self, games: BoolArray) -> LowerFactors:
        """Return the factors of some games, which are not copied where these are all."""
        return self if games.all() else LowerFactors(self.transposed[games])

    def half_log_determinants(self) -> FloatArray:
        """Return half the logarithms of the determinants of the covariances, (R,)."""
        diagonals = np.diagonal(self.transposed, axis1=-2, axis2=-1)
        halves: FloatArray = np.log(diagonals).sum(axis=-1)
        return halves

    def whitened(self, rows: FloatArray, by_transpose: bool = False) -> FloatArray:
        """Return L⁻¹, or L⁻ᵀ, times each of the rows, (R, k, n)."""
        whitened = np.array(rows, dtype=np.float64, order="C")
        if not whitened.size:
            return whitened
        n, n_rows = _number(rows.shape[-1]), _number(rows.shape[-2])
        one = ctypes.byref(ctypes.c_double(1.0))
        solve, operation = _function("dtrsm"), b"T" if by_transpose else b"N"
        for factor, columns in zip(_pointers(self.transposed), _pointers(whitened), strict=True):
            solve(b"L", b"L", operation, b"N", n, n_rows, one, factor, n, columns, n)
        return whitened

    def upper_inverses(self) -> FloatArray:
        """Return the inverses of the covariances, (R, n, n); only the upper triangles have meaning.

        The factors are overwritten.
        """
        n, invert = _number(self.transposed.shape[-1]), _function("dpotri")
        for pointer in _pointers(self.transposed):
            info = ctypes.c_int()
            invert(b"L", n, pointer, n, ctypes.byref(info))
            if info.value:
                raise np.linalg.LinAlgError("A covariance is singular.")
        return self.transposed


def inverses_of_lower(factors: FloatArray) -> FloatArray:
    """Return the inverses of lower triangular matrices, (..., n, n).

    Entries above the diagonals are not read.
    """
    if not factors.size:
        return factors.copy()
    n = factors.shape[-1]
    inverses = np.array(factors.swapaxes(-1, -2), order="C").reshape(-1, n, n)
    size, invert = _number(n), _function("dtrtri")
    for pointer in _pointers(inverses):
        info = ctypes.c_int()
        invert(b"L", b"N", size, pointer, size, ctypes.byref(info))
        if info.value:
            raise np.linalg.LinAlgError("The factor of a covariance is singular.")
    inverses[..., np.tri(n, k=-1, dtype=bool)] = 0.0  # what was not read may be no number
    return inverses.reshape(factors.shape).swapaxes(-1, -2)


def _pointers(matrices: FloatArray) -> Iterator[ctypes.c_void_p]:
    """Yield a pointer to each matrix of a contiguous stack."""
    if not matrices.flags.c_contiguous:
        raise ValueError("LAPACK needs contiguous matrices.")
    first, step = matrices.ctypes.data, matrices.strides[0]
    for index in range(len(matrices)):
        yield ctypes.c_void_p(first + index * step)


def _number(value: int) -> Any:
    """Return a pointer to an integer."""
    return ctypes.byref(ctypes.c_int(value))


@lru_cache(maxsize=8)
def _function(name: str) -> Any:
    """Return a function of BLAS or LAPACK, which lets other threads run."""
    module = cython_blas if name == "dtrsm" else cython_lapack
    capsule = module.__pyx_capi__[name]
    # Prototypes of our own: those of ctypes.pythonapi belong to the whole process.
    name_of = ctypes.PYFUNCTYPE(ctypes.c_char_p, ctypes.py_object)
    address_of = ctypes.PYFUNCTYPE(ctypes.c_void_p, ctypes.py_object, ctypes.c_char_p)
    signature = name_of(("PyCapsule_GetName", ctypes.pythonapi))(capsule)
    if b", int *" not in signature:
        raise RuntimeError(
            f"SciPy's {name} takes {signature.decode()}; shapley-ext needs integers of C's type "
            "int. Install another build of SciPy."
        )
    address = address_of(("PyCapsule_GetPointer", ctypes.pythonapi))(capsule, signature)
    return ctypes.CFUNCTYPE(None)(address)


_MOST_BYTES = 2**25
"""Bound on the bytes of one cache. Larger matrices take so long to factor only because they have
many values, which take long to evaluate."""

_MOST_ENTRIES = 256
"""Bound on the entries, because small ones consist mostly of Python's objects."""

_T = TypeVar("_T")


class FactorCache(Generic[_T]):
    """The most recently used matrices, each a dataclass of arrays."""

    def __init__(self, most_bytes: int = _MOST_BYTES) -> None:
        self.most_bytes = most_bytes
        self._entries: OrderedDict[Hashable, _T] = OrderedDict()
        self._n_bytes = 0
        self._lock = Lock()  # explainers may run in threads

    def get(self, key: Hashable, compute: Callable[[], _T]) -> _T:
        """Return the entry of a key, computed if it is not there."""
        with self._lock:
            if key in self._entries:
                self._entries.move_to_end(key)
                return self._entries[key]
        entry = compute()
        if n_bytes(entry) <= self.most_bytes:
            self._put(key, entry)
        return entry

    def clear(self) -> None:
        """Remove all entries."""
        with self._lock:
            self._entries.clear()
            self._n_bytes = 0

    def _put(self, key: Hashable, entry: _T) -> None:
        with self._lock:
            if key in self._entries:  # another thread was faster
                return
            self._entries[key] = entry
            self._n_bytes += n_bytes(entry)
            while self._n_bytes > self.most_bytes or len(self._entries) > _MOST_ENTRIES:
                self._n_bytes -= n_bytes(self._entries.popitem(last=False)[1])


def n_bytes(entry: Any) -> int:
    """Return the bytes of the arrays of a dataclass, and of those that it holds."""
    values = [getattr(entry, field.name) for field in fields(entry)]
    return sum(n_bytes(v) if is_dataclass(v) else getattr(v, "nbytes", 0) for v in values)


def sorted_players(signs: FloatArray) -> IntArray:
    """Return an order of the players that depends only on the coalitions of each, (M,)."""
    of_players = np.packbits(signs > 0, axis=0).T
    order = sorted(range(len(of_players)), key=lambda player: of_players[player].tobytes())
    return np.array(order, dtype=np.intp)


def coalitions_key(signs: FloatArray) -> Hashable:
    """Return a key of coalitions, (n, M)."""
    return signs.shape, np.packbits(signs > 0).tobytes()
