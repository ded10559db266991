"""Short digests of the content of rows, the same in every process and on every platform."""

from __future__ import annotations

import hashlib
import struct
from collections.abc import Iterator, Mapping
from datetime import date, timedelta
from typing import Any

import numpy as np
import numpy.typing as npt

from ..errors import InvalidArgumentTypeError

_N_BYTES = 16


def fingerprint(*contents: Any) -> bytes:
    """Return a digest of numbers, texts, arrays and collections of them.

    Numbers are compared by value, not by type: 1, 1.0 and an array of single precision that holds 1
    have the same digest.

    Raises
    ------
    InvalidArgumentTypeError
        If the contents include an object of another type.
    """
    digest = hashlib.blake2b(digest_size=_N_BYTES)
    for part in _parts(list(contents)):
        digest.update(struct.pack("<q", len(part)))  # marks where each part ends
        digest.update(part)
    return digest.digest()


def as_words(fingerprints: list[bytes]) -> npt.NDArray[np.uint32]:
    """Return digests as numbers, (R, 4), for seeds."""
    words = np.frombuffer(b"".join(fingerprints), dtype="<u4").astype(np.uint32)
    return words.reshape(len(fingerprints), _N_BYTES // 4)


def _parts(content: Any) -> Iterator[bytes]:
    """Yield a content as bytes; each part begins with the name of its kind."""
    if isinstance(content, str):
        yield b"text" + content.encode("utf-8", "surrogatepass")
    elif isinstance(content, bytes):
        yield b"bytes" + content
    elif isinstance(content, Mapping):
        yield b"mapping"
        for name in sorted(content, key=repr):
            yield from _parts(name)
            yield from _parts(content[name])
    elif isinstance(content, (list, tuple)):
        yield b"sequence" + struct.pack("<q", len(content))
        for item in content:
            yield from _parts(item)
    elif content is None or type(content).__name__ in ("NAType", "NaTType"):
        yield b"nothing"
    elif isinstance(content, (date, timedelta)):
        yield b"time" + str(content).encode()
    else:
        yield from _parts_of_array(content)


def _parts_of_array(content: Any) -> Iterator[bytes]:
    array = np.asarray(content)
    yield b"array" + struct.pack(f"<{array.ndim}q", *array.shape)
    if array.dtype.kind in "biuf":
        yield _number_bytes(array)
    elif array.dtype.kind == "c":
        yield _number_bytes(array.real) + _number_bytes(array.imag)
    elif array.dtype.kind in "mMUS":
        yield from (str(item).encode("utf-8", "surrogatepass") for item in array.ravel())
    elif array.dtype.kind == "O" and array.ndim > 0:
        for item in array.ravel():
            yield from _parts(item)
    else:
        raise InvalidArgumentTypeError(
            "independent_rows=True derives the random draws of a row from its content, which must "
            f"be numbers, texts or times; got {type(content).__name__}. Use "
            "independent_rows=False."
        )


def _number_bytes(numbers: npt.NDArray[Any]) -> bytes:
    values = np.atleast_1d(numbers).astype("<f8") + 0.0  # −0.0 becomes 0.0
    values[np.isnan(values)] = np.nan  # all NaNs become the same
    return values.tobytes()
