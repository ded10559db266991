"""Bounds on the threads of BLAS, OpenMP and torch inside a worker."""

from __future__ import annotations

import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager

from threadpoolctl import ThreadpoolController

from ..threads.blas_threads import Library, set_threads


class _ThreadLimits:
    """The numbers of threads of the libraries, bounded while any worker of the process runs.

    BLAS libraries have one number for the process: the first worker bounds it, and the last one
    restores it. OpenMP has one number for each thread, and torch both: each worker sets them, and
    restores the number that the first one found.
    """

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._n_inside = 0
        self._of_process: dict[Library, int] = {}
        self._of_torch: int | None = None

    @contextmanager
    def at_most(self, n_threads: int) -> Iterator[None]:
        """Bound the libraries that are loaded to `n_threads`."""
        of_process: list[Library] = []
        of_thread: dict[Library, int] = {}
        for controller in ThreadpoolController().lib_controllers:
            library = Library.from_controller(controller)
            if library.is_of_thread or controller.user_api == "openmp":
                of_thread[library] = library.get_threads()
            else:
                of_process.append(library)
        self._enter(of_process, n_threads)
        _bound(of_thread, n_threads)
        try:
            yield
        finally:
            set_threads(of_thread)
            self._leave()

    def _enter(self, libraries: list[Library], n_threads: int) -> None:
        with self._lock:
            self._n_inside += 1
            torch = sys.modules.get("torch")
            # Torch initialises the number of a thread where it is first read: before it is set.
            of_torch = None if torch is None else torch.get_num_threads()
            if self._n_inside == 1:
                self._of_process = {library: library.get_threads() for library in libraries}
                self._of_torch = of_torch
                _bound(self._of_process, n_threads)
            if torch is not None and self._of_torch is not None:
                torch.set_num_threads(min(self._of_torch, n_threads))

    def _leave(self) -> None:
        with self._lock:
            self._n_inside -= 1
            torch = sys.modules.get("torch")
            if torch is not None and self._of_torch is not None:
                torch.set_num_threads(self._of_torch)
            if self._n_inside == 0:
                set_threads(self._of_process)


def _bound(numbers: dict[Library, int], n_threads: int) -> None:
    set_threads({library: n_threads for library, number in numbers.items() if number > n_threads})


at_most_threads = _ThreadLimits().at_most
"""Context in which BLAS, OpenMP and torch use at most so many threads."""
