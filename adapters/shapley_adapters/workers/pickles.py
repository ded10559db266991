"""Objects that workers receive: pickled once, and loaded once in each worker."""

from __future__ import annotations

import hashlib
import io
import pickle
import sys
import threading
from collections import OrderedDict
from dataclasses import dataclass
from typing import Any

import cloudpickle
import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgumentError, InvalidArgumentTypeError, WorkerError

_of_process: OrderedDict[str, Any] = OrderedDict()
_loading = threading.Lock()
_MOST_OBJECTS = 4
"""The objects that a process keeps for the next batches."""

_SMALL_BYTES = 2**20
"""Bound on the bytes that are sent with each task."""


@dataclass(frozen=True, eq=False)
class Pickled:
    """An object for workers.

    Attributes
    ----------
    data : array of bytes
        The pickle.
    digest : str
        Digest of the pickle, by which a worker finds an object that it has loaded already.
    """

    data: npt.NDArray[np.uint8]
    digest: str

    @classmethod
    def from_object(cls, thing: object, advice: str) -> Pickled:
        """Pickle an object; models and functions may be defined in a script or a notebook.

        Raises
        ------
        InvalidArgumentTypeError
            If it holds something that cannot be pickled; the message ends with `advice`.
        InvalidArgumentError
            If it holds a tensor on a GPU or another device.
        """
        stream = io.BytesIO()
        try:
            _Pickler(stream, protocol=pickle.HIGHEST_PROTOCOL).dump(thing)
        except _DeviceError as error:
            raise InvalidArgumentError(
                f"The model or its inputs are on {error}, which other processes cannot share. "
                "Use threads, by joblib.parallel_config(backend='threading'), or move them to the "
                "CPU."
            ) from None
        except Exception as error:  # the objects may raise any error
            raise InvalidArgumentTypeError(
                "The model, the masker or the data cannot be sent to other processes: "
                f"{type(error).__name__}: {error}. {advice}"
            ) from error
        data = stream.getvalue()
        digest = hashlib.blake2b(data, digest_size=16).hexdigest()
        return cls(np.frombuffer(data, dtype=np.uint8), digest)

    @property
    def argument(self) -> bytes | npt.NDArray[np.uint8]:
        """The pickle as the argument of many tasks of joblib.

        joblib sends bytes with each task and an array to each worker once. Dask's backend sends an
        array to one worker first and then prefers this worker for the first tasks, so that the
        others wait. Therefore a small pickle is sent as bytes.
        """
        return self.data.tobytes() if self.data.nbytes <= _SMALL_BYTES else self.data


def loaded_once(data: npt.NDArray[np.uint8], digest: str) -> Any:
    """Return the object of a pickle, loaded once in each process.

    For objects that threads may share, such as explainers. A process keeps the latest ones.

    Raises
    ------
    WorkerError
        If the process cannot load it.
    """
    with _loading:
        if digest not in _of_process:
            _of_process[digest] = load(data)
        _of_process.move_to_end(digest)
        while len(_of_process) > _MOST_OBJECTS:
            _of_process.popitem(last=False)
        return _of_process[digest]


def load(data: bytes | npt.NDArray[np.uint8]) -> Any:
    """Return the object of a pickle.

    Raises
    ------
    WorkerError
        If the worker cannot load it, for example because it lacks a module.
    """
    try:
        return pickle.loads(bytes(data))
    except Exception as error:  # loading runs the code of the objects
        raise WorkerError(
            f"A worker cannot load the model: {type(error).__name__}: {error}. Install the same "
            "packages there; and define classes and functions in a package that is installed, or "
            "in the script or notebook itself."
        ) from error


class _DeviceError(Exception):
    """A tensor is on the device that the message names."""


class _Pickler(cloudpickle.Pickler):  # type: ignore[misc] # cloudpickle is untyped
    """A pickler that refuses tensors on devices of this process."""

    def reducer_override(self, obj: Any) -> Any:
        torch = sys.modules.get("torch")
        is_tensor = torch is not None and isinstance(obj, torch.Tensor)
        if is_tensor and obj.device.type not in ("cpu", "meta"):
            raise _DeviceError(str(obj.device))
        return super().reducer_override(obj)
