"""One BLAS thread for our own linear algebra, whatever the environment says.

Our matrices have some hundred rows. Several threads make the factorisation of such a matrix ten
times slower, and their number can change the last bits of a result. The user's model is never
called inside.
"""

from __future__ import annotations

import os
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from threadpoolctl import LibController, OpenBLASController, ThreadpoolController


class _BlasLibraries:
    """The BLAS libraries of the process, limited to one thread while any of our code needs it.

    Most libraries have one number of threads for the whole process. The first caller sets it to
    one, and the last caller restores it, in whichever thread that is. In the meantime a model that
    runs in another thread has one BLAS thread, too; torch has threads of its own, which stay as
    they are. OpenBLAS built on OpenMP has a number for each thread, which each thread restores.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._own = threading.local()
        self._n_threads_inside = 0
        self._restore_process: Callable[[], None] = _nothing
        self._n_modules = -1
        self._of_process: Any = None
        self._of_thread: Any = None

    @contextmanager
    def one_thread(self) -> Iterator[None]:
        """Limit the libraries; calls of the same thread may be nested."""
        if getattr(self._own, "is_inside", False):
            yield
            return
        self._own.n_outside = self._n_outside()
        restore_thread = self._enter()
        self._own.is_inside = True
        try:
            yield
        finally:
            self._own.is_inside = False
            restore_thread()
            self._leave()

    def n_threads_outside(self, default: int) -> int:
        """Return the number of threads that BLAS may use outside of our code.

        Where another thread is inside, it is one. Where no library says, it is `default`.
        """
        is_inside = getattr(self._own, "is_inside", False)
        n_outside = self._own.n_outside if is_inside else self._n_outside()
        return default if n_outside is None else n_outside

    def reset_after_fork(self) -> None:
        """Forget the threads that exist in the parent process only."""
        self._lock = threading.Lock()
        is_inside = getattr(self._own, "is_inside", False)
        self._n_threads_inside = int(is_inside)
        if not is_inside:
            self._restore_process()
            self._restore_process = _nothing

    def _n_outside(self) -> int | None:
        with self._lock:
            self._find_libraries()
            libraries = (*self._of_process.lib_controllers, *self._of_thread.lib_controllers)
        return min((one.num_threads for one in libraries), default=None)

    def _enter(self) -> Callable[[], None]:
        with self._lock:
            if self._n_threads_inside == 0:
                self._find_libraries()
                self._restore_process = _limited(self._of_process)
            restore_thread = _limited(self._of_thread)
            self._n_threads_inside += 1
        return restore_thread

    def _leave(self) -> None:
        with self._lock:
            self._n_threads_inside -= 1
            if self._n_threads_inside == 0:
                self._restore_process()
                self._restore_process = _nothing

    def _find_libraries(self) -> None:
        """Look for libraries; again only after imports, because imports load them."""
        if len(sys.modules) == self._n_modules:
            return
        self._n_modules = len(sys.modules)
        blas = ThreadpoolController().select(user_api="blas")
        paths = {info["filepath"]: _is_of_thread(info) for info in blas.info()}
        self._of_thread = blas.select(filepath=[path for path, own in paths.items() if own])
        self._of_process = blas.select(filepath=[path for path, own in paths.items() if not own])


def _nothing() -> None:
    """Restore nothing."""


def _limited(libraries: Any) -> Callable[[], None]:
    """Limit libraries to one thread, and return the function that restores their numbers."""
    before = {one: one.num_threads for one in libraries.lib_controllers if one.num_threads != 1}
    if not before:
        return _nothing
    _set_threads(dict.fromkeys(before, 1))
    return lambda: _set_threads(before)


def _set_threads(numbers: dict[LibController, int]) -> None:
    # Newer threadpoolctl ignores all threads but the first that set a number, until it gives that
    # right up. Here any thread may be the first or the last one inside.
    _give_up_control()
    for library, number in numbers.items():
        library.set_num_threads(number)
    _give_up_control()


def _give_up_control() -> None:
    give_up = getattr(OpenBLASController, "clear_controlling_thread", None)
    if give_up is not None:
        give_up(force=True)


def _is_of_thread(info: dict[str, Any]) -> bool:
    return info["internal_api"] == "openblas" and info.get("threading_layer") == "openmp"


_libraries = _BlasLibraries()
one_blas_thread = _libraries.one_thread
"""Context, or decorator, in which the BLAS libraries use one thread."""
n_threads_outside = _libraries.n_threads_outside

if hasattr(os, "register_at_fork"):  # not on Windows
    os.register_at_fork(after_in_child=_libraries.reset_after_fork)
